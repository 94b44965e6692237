/* geometry.h - window geometry with every default resolved, on axes z,y,x.
 *
 * 2-D operators get a z axis of extent 1 with kernel 1: one code path for both ranks.
 * @source ONNX operator specifications Conv, ConvTranspose, MaxPool, AveragePool. */
#ifndef TGI_GEOMETRY_H
#define TGI_GEOMETRY_H

#include "kernels/op.h"

#define TGI_Z 0
#define TGI_Y 1
#define TGI_X 2

typedef struct tgi_geom {
    int spatial;              /* 1 to 3; axes that are not there have extent 1 */
    int64_t k[3], s[3], d[3]; /* kernel, stride, dilation */
    int64_t p0[3], p1[3];     /* padding before and after; may be negative for ConvTranspose */
    int64_t out_pad[3];       /* ConvTranspose output_padding */
    int64_t in[3], out[3];    /* full extents of the image, and of the result */
    int64_t groups;
    int64_t in_c, out_c;
} tgi_geom;

/* Conv: src[0] data, src[1] weights [M, C/group, k...]. `ctx->dst` is not read.
 * @return TG_E_FORMAT on a conflict (both sides in the detail), TG_E_UNSUPPORTED for ranks
 * beyond 3 to 5. */
tg_status tgi_conv_geometry(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err);
/* ConvTranspose: src[1] weights [C, M/group, k...]. */
tg_status tgi_conv_transpose_geometry(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err);
/* MaxPool, AveragePool (attrs: pool_attrs). With ceil_mode the last window starts inside the
 * image or its leading padding. */
tg_status tgi_pool_geometry(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err);

/* Interval of spatial axis `i` (TGI_Z..TGI_X) of a box of rank 3 to 5; [0,1) for an axis that
 * is not there. */
static inline tgi_range tgi_box_axis(const tgi_box *b, int i)
{
    const int at = b->rank - 3 + i;
    return at < 2 ? (tgi_range){0, 1} : b->ax[at];
}
/* Extent of spatial axis `i` of a value of rank 3 to 5. */
static inline int64_t tgi_desc_axis(const tgi_desc *d, int i)
{
    const int at = d->rank - 3 + i;
    return at < 2 ? 1 : d->dim[at];
}

/* Element o of axis k of a Slice is element start[k] + o * step[k] of its source. */
typedef struct tgi_slice {
    int64_t start[TGI_MAX_RANK], step[TGI_MAX_RANK], n[TGI_MAX_RANK];
} tgi_slice;
tg_status tgi_slice_map(const tgi_op_ctx *ctx, tgi_slice *s, tgi_err *err);

/* Pad: what the margin holds, and its extents per axis, before and after. */
typedef enum tgi_padding {
    TGI_PADDING_CONSTANT,
    TGI_PADDING_REFLECT,
    TGI_PADDING_EDGE,
    TGI_PADDING_WRAP
} tgi_padding;
typedef struct tgi_pad {
    int mode; /* tgi_padding */
    float value;
    int64_t p0[TGI_MAX_RANK], p1[TGI_MAX_RANK];
} tgi_pad;
tg_status tgi_pad_map(const tgi_op_ctx *ctx, tgi_pad *p, tgi_err *err);
/* The source of coordinate i (o minus the pad) on an axis of n; -1: the constant. */
int64_t tgi_pad_source(int mode, int64_t i, int64_t n);

#endif
