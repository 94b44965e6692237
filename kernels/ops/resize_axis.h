/* resize_axis.h - Resize is separable: on each axis an output coordinate reads at most four
 * input coordinates with weights that depend on nothing else. Kernels make their tables from
 * this. */
#ifndef TGI_RESIZE_AXIS_H
#define TGI_RESIZE_AXIS_H

#include "kernels/op.h"
#include "kernels/ops/op_attrs.h"

typedef struct tgi_resize_axis {
    int mode, coord, nearest; /* tgi_resize_mode, tgi_resize_coord, tgi_resize_nearest */
    int exclude_outside;
    int antialias; /* linear or cubic, and shrinking: the filter is widened, see below */
    double cubic_a;
    int64_t in, out;
    double scale;          /* outputs per input */
    double length;         /* extent in align_corners: out, or from opset 19 scale * in */
    double roi_lo, roi_hi; /* tf_crop_and_resize */
} tgi_resize_axis;

/* Inputs of one output coordinate: sorted, inside [0, in), perhaps repeated; weights sum to
 * one. n == 0: outside the crop of tf_crop_and_resize, the value is extrapolation_value. */
typedef struct tgi_taps {
    int n;
    int64_t at[4];
    double w[4];
} tgi_taps;

/* Axes z,y,x of a Resize or Upsample node with all defaults resolved; `ctx->dst` is not read.
 * @return TG_E_FORMAT, TG_E_UNSUPPORTED (resized channels, scales not constant). */
tg_status tgi_resize_axes(const tgi_op_ctx *ctx, tgi_resize_axis *ax, tgi_err *err);

/* Exact for any output coordinate; monotone in it (descending for a reversed crop). */
void tgi_resize_taps(const tgi_resize_axis *ax, int64_t o, tgi_taps *taps);

/* With `antialias` an output coordinate reads any number of inputs: position, first input (may
 * be outside), how many, and the sum of their weights. */
typedef struct tgi_filter {
    double center, sum;
    int64_t first, n;
} tgi_filter;
tgi_filter tgi_resize_filter(const tgi_resize_axis *ax, int64_t o);
/* Weight of input `at` of [first, first + n), before division by the sum. */
double tgi_resize_weight(const tgi_resize_axis *ax, const tgi_filter *f, int64_t at);

/* infer, slide, rule and ref of both operators. */
tg_status tgi_resize_infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err);
tg_status tgi_resize_ref(const tgi_call *call, tgi_err *err);
double tgi_resize_flops(const tgi_op_ctx *ctx);
int tgi_resize_slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);
void tgi_resize_rule(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *rule);
int tgi_resize_doubles(const tgi_op_ctx *ctx);
extern const char *const tgi_resize_modes[];

#endif
