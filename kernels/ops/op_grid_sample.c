/* op_grid_sample.c - GridSample: source 0 at the places that source 1, the grid, names for each pixel
 * of the result: [N,out...,axes], the last axis first, -1 and 1 the ends of an axis, which are the
 * centres of its first and last pixel (align_corners) or their outer edges. Between pixels linear,
 * cubic (a = -0.75) or of the nearest pixel, ties to even. Coordinates in float32 where the grid is,
 * else all in float64.
 * Border: zeros outside, or the nearest pixel, or the image mirrored at its ends. A place that is no
 * number, or infinitely far, is 0.
 * @source ONNX operator GridSample, versions 16 to 22; its reference implementation. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define MOST_AXES 3
#define MOST_TAPS 4
#define FAR 1e15 /* beyond, one pixel is as good as the other */

typedef struct grid_attrs {
    int mode, padding_mode; /* in the order of their choices */
    int64_t align_corners;
} grid_attrs;

enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION }; /* BORDER: what neither of the others is */

static const char *const modes[] = {"bilinear", "nearest", "bicubic", "linear", "cubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
static const tgi_attr rows[] = {
    {"align_corners", TGI_ATTR_INT, offsetof(grid_attrs, align_corners), 0, 0, 1, NULL,
     "1: -1 and 1 are centres of pixels"},
    {"mode", TGI_ATTR_ENUM, offsetof(grid_attrs, mode), 0, 0, 4, modes, "between pixels"},
    {"padding_mode", TGI_ATTR_ENUM, offsetof(grid_attrs, padding_mode), 0, 0, 2, paddings,
     "outside"},
    {0}};

static int mode_of(const tgi_op_ctx *ctx)
{
    static const int of[] = {LINEAR, NEAREST, CUBIC, LINEAR, CUBIC};
    return of[((const grid_attrs *)ctx->attrs)->mode];
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(tgi_want_image(ctx, 1, err));
    const tgi_desc *x = &ctx->src[0], *grid = &ctx->src[1];
    const int axes = x->rank - 2;
    char a[128], b[128];
    if (grid->rank != x->rank || grid->dim[0] != x->dim[0] || grid->dim[axes + 1] != axes)
        return tgi_fail(err, TG_E_FORMAT, "a grid of shape %s for an input of shape %s",
                        tgi_desc_text(grid, a, sizeof a), tgi_desc_text(x, b, sizeof b));
    if (!tgi_dtype_is_float(grid->dtype))
        return tgi_fail(err, TG_E_FORMAT, "a grid of %s", tgi_dtype_name(grid->dtype));
    *dst = *x;
    for (int k = 0; k < axes; k++)
        dst->dim[2 + k] = grid->dim[1 + k];
    return TG_OK;
}

/* What a place reads along one axis; at -1: nothing. */
typedef struct taps {
    int n;
    int64_t at[MOST_TAPS];
    double weight[MOST_TAPS];
} taps;

/* An axis of n pixels, and where it is mirrored. */
typedef struct axis {
    int64_t n;
    double lo, hi;
    int padding, mode;
} axis;

static double mirrored(const axis *a, double x)
{
    const double length = a->hi - a->lo;
    if (x >= a->lo && x <= a->hi)
        return x;
    if (length <= 0)
        return a->lo;
    const double over = x < a->lo ? a->lo - x : x - a->hi;
    const double rest = fmod(over, length), even = fmod(floor(over / length), 2) == 0;
    return (x < a->lo) == (even != 0) ? a->lo + rest : a->hi - rest;
}

static int64_t pixel(const axis *a, double x)
{
    if (a->padding == ZEROS)
        return x >= 0 && x < (double)a->n ? (int64_t)x : -1;
    if (a->padding == REFLECTION)
        x = mirrored(a, x);
    return (int64_t)fmax(0, fmin((double)(a->n - 1), trunc(x)));
}

static void cubic_weights(double t, double *w)
{
    const double a = -0.75, u = t + 1, v = 1 - t, z = 2 - t;
    w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * v - (a + 3)) * v * v + 1;
    w[3] = ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

/* Of a coordinate in pixels. */
static taps taps_of(const axis *a, double x)
{
    taps t = {.n = a->mode == NEAREST ? 1 : a->mode == LINEAR ? 2 : 4};
    if (!isfinite(x)) {
        t.n = 0;
        return t;
    }
    x = fmax(-FAR, fmin(FAR, a->mode == NEAREST ? rint(x) : x));
    const double first = floor(x) - (a->mode == CUBIC), part = x - floor(x);
    t.weight[0] = a->mode == LINEAR ? 1 - part : 1;
    t.weight[1] = part;
    if (a->mode == CUBIC)
        cubic_weights(part, t.weight);
    for (int k = 0; k < t.n; k++)
        t.at[k] = pixel(a, first + k);
    return t;
}

/* A coordinate of the grid in pixels. */
static double in_pixels(const tgi_constant *grid, int64_t i, int64_t n, int aligned)
{
    const double v = tgi_num_at(grid, i);
    if (grid->desc.dtype == TG_DTYPE_F64)
        return aligned ? (v + 1) / 2 * (double)(n - 1) : ((v + 1) * (double)n - 1) / 2;
    const float f = (float)v;
    return (double)(aligned ? (f + 1) / 2 * (float)(n - 1) : ((f + 1) * (float)n - 1) / 2);
}

/* Where a pixel of the result looks: axes that are not there have one tap. */
static void look(const tgi_op_ctx *ctx, int64_t place, taps *t)
{
    const grid_attrs *g = ctx->attrs;
    const tgi_desc *d = &ctx->src[0];
    const int axes = d->rank - 2;
    for (int k = 0; k < MOST_AXES; k++) {
        const int from_end = MOST_AXES - 1 - k;
        t[k] = (taps){.n = 1, .weight = {1}};
        if (from_end >= axes)
            continue;
        axis a = {.n = d->dim[d->rank - 1 - from_end],
                  .padding = g->padding_mode,
                  .mode = mode_of(ctx)};
        a.lo = g->align_corners ? 0 : -0.5;
        a.hi = (double)a.n - 1 - a.lo;
        t[k] = taps_of(&a, in_pixels(ctx->const_src[1], place * axes + from_end, a.n,
                                     g->align_corners != 0));
    }
}

/* The image whose first element is `first`, there. */
static double value(const tgi_op_ctx *ctx, int64_t first, const taps *t)
{
    const int64_t h = tgi_desc_axis(&ctx->src[0], TGI_Y),
                  w = tgi_desc_axis(&ctx->src[0], TGI_X);
    double sum = 0;
    for (int z = 0; z < t[0].n; z++)
        for (int y = 0; y < t[1].n; y++)
            for (int x = 0; x < t[2].n; x++) {
                const int64_t at[3] = {t[0].at[z], t[1].at[y], t[2].at[x]};
                const double by = t[0].weight[z] * t[1].weight[y] * t[2].weight[x];
                if (at[0] >= 0 && at[1] >= 0 && at[2] >= 0 && by != 0)
                    sum += by * tgi_num_at(ctx->const_src[0],
                                           first + (at[0] * h + at[1]) * w + at[2]);
            }
    return sum;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *in = &ctx->src[0], *out = &ctx->dst[0];
    int64_t image = 1, result = 1;
    (void)err;
    for (int k = 2; k < in->rank; k++) {
        image *= in->dim[k];
        result *= out->dim[k];
    }
    if (image == 0)
        return tgi_fail(err, TG_E_FORMAT, "an input without pixels");
    for (int64_t n = 0; n < in->dim[0]; n++)
        for (int64_t p = 0; p < result; p++) {
            taps t[MOST_AXES];
            look(ctx, n * result + p, t);
            for (int64_t c = n * in->dim[1]; c < (n + 1) * in->dim[1]; c++)
                tgi_num_put(out->dtype, dst_data[0], c * result + p, value(ctx, c * image, t));
        }
    return TG_OK;
}

const tgi_op tgi_op_grid_sample = {
    .name = "GridSample",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(grid_attrs),
    .infer = infer,
    .eval = eval,
};
