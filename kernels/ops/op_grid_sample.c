/* op_grid_sample.c - GridSample: source 0, [N,C,...], sampled where source 1, [N,...,axes], says: -1
 * and 1 are its ends, along x first. `align_corners` 1: the ends are the middles of its outer pixels,
 * 0: their edges. `mode` linear, nearest (of two as near the even one), or cubic with a = -0.75, each
 * along all axes. On dense tensors with 1 to 3 spatial axes, in float64. The grid has its
 * coordinates, not images, in its last axis: it is no image.
 * Border, `padding_mode`: what lies outside is zero; or the nearest pixel; or mirrored at the ends.
 * A place that is no number is zero.
 * @source ONNX operator GridSample, versions 16, 20 and 22. */
#include "kernels/ops/op_shared.h"

#include <math.h>

enum { LINEAR, NEAREST, CUBIC, BILINEAR, BICUBIC }; /* the last two: version 16 */
enum { ZEROS, BORDER, REFLECTION };
#define MOST_AXES 3
#define MOST_TAPS 4

typedef struct grid_attrs {
    int64_t align_corners;
    int mode, padding;
} grid_attrs;

static const char *const modes[] = {"linear", "nearest", "cubic", "bilinear", "bicubic", NULL};
static const char *const paddings[] = {"zeros", "border", "reflection", NULL};

#define AT(field) offsetof(grid_attrs, field)
static const tgi_attr rows[] = {
    {"align_corners", TGI_ATTR_INT, AT(align_corners), 0, 0, 1, NULL, "what -1 and 1 are"},
    {"mode", TGI_ATTR_ENUM, AT(mode), 0, 0, 4, modes, "what lies between pixels"},
    {"padding_mode", TGI_ATTR_ENUM, AT(padding), 0, 0, 2, paddings, "what lies outside"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    char a[128], b[128];
    if (ctx->n_src != 2 || !tgi_given(ctx, 0) || !tgi_given(ctx, 1))
        return tgi_fail(err, TG_E_FORMAT, "data or grid are missing");
    const tgi_desc *x = &ctx->src[0], *grid = &ctx->src[1];
    if (x->rank < 3 || x->rank > 2 + MOST_AXES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "input 0 is %s: done here for ranks 3 to 5",
                        tgi_desc_text(x, a, sizeof a));
    if (grid->rank != x->rank || grid->dim[0] != x->dim[0] ||
        grid->dim[grid->rank - 1] != x->rank - 2 || !tgi_dtype_is_float(grid->dtype))
        return tgi_fail(err, TG_E_FORMAT, "a grid of %s for data of %s",
                        tgi_desc_text(grid, a, sizeof a), tgi_desc_text(x, b, sizeof b));
    *dst = *x;
    for (int k = 2; k < x->rank; k++) {
        if (x->dim[k] < 1)
            return tgi_fail(err, TG_E_FORMAT, "data without pixels");
        dst->dim[k] = grid->dim[k - 1];
    }
    return TG_OK;
}

/* ---- Along one axis ---------------------------------------------------------------------- */

/* Mirrored at lo and hi until it lies between them. */
static double mirror(double c, double lo, double hi)
{
    const double length = hi - lo;
    if (c >= lo && c <= hi)
        return c;
    if (!(length > 0))
        return lo;
    const double past = c < lo ? lo - c : c - hi, rest = fmod(past, length);
    const int back = fmod(floor(past / length), 2) != 0;
    return (c < lo) == back ? hi - rest : lo + rest;
}

/* Pixels and what they weigh; -1: zero. */
typedef struct taps {
    int n;
    int64_t at[MOST_TAPS];
    double weight[MOST_TAPS];
} taps;

/* The pixel that whole coordinate c stands for: -1, zero. */
static int64_t pixel(const grid_attrs *a, double c, int64_t n)
{
    const double last = (double)(n - 1), half = a->align_corners ? 0 : 0.5;
    if (a->padding == ZEROS && !(c >= 0 && c <= last))
        return -1;
    if (a->padding == REFLECTION)
        c = mirror(c, -half, last + half);
    return (int64_t)(c <= 0 ? 0 : c >= last ? last : c);
}

/* Keys' kernel with a = -0.75 for the pixels at -1, 0, 1 and 2 of a place at f. */
static void cubic(double f, double *w)
{
    const double a = -0.75, g = 1 - f;
    w[0] = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a;
    w[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
    w[2] = ((a + 2) * g - (a + 3)) * g * g + 1;
    w[3] = ((a * (g + 1) - 5 * a) * (g + 1) + 8 * a) * (g + 1) - 4 * a;
}

/* Taps of coordinate v of the grid on an axis of n pixels. 0: the place is no number. */
static int find_taps(const grid_attrs *a, double v, int64_t n, taps *t)
{
    const double last = (double)(n - 1), half = a->align_corners ? 0 : 0.5;
    double c = a->align_corners ? (v + 1) / 2 * last : ((v + 1) * (double)n - 1) / 2;
    const int is_cubic = a->mode == CUBIC || a->mode == BICUBIC, nearest = a->mode == NEAREST;
    if (isnan(c))
        return 0;
    c = nearest ? rint(c) : c;
    if (a->padding == REFLECTION)
        c = isinf(c) ? 0 : mirror(c, -half, last + half);
    else /* there, all taps are one pixel or nothing */
        c = c < -4 ? -4 : c > last + 4 ? last + 4 : c;
    const double whole = nearest ? c : floor(c), part = c - whole;
    *t = (taps){.n = nearest ? 1 : is_cubic ? 4 : 2, .weight = {1 - part, part}};
    if (is_cubic)
        cubic(part, t->weight);
    if (nearest)
        t->weight[0] = 1;
    for (int i = 0; i < t->n; i++)
        t->at[i] = pixel(a, whole + i - (is_cubic ? 1 : 0), n);
    return 1;
}

/* ---- All of it --------------------------------------------------------------------------- */

/* Pixels of a channel and what they weigh, of all axes together. */
typedef struct places {
    int n;
    int64_t at[MOST_TAPS * MOST_TAPS * MOST_TAPS];
    double weight[MOST_TAPS * MOST_TAPS * MOST_TAPS];
} places;

/* Where entry g of the grid is. */
static void find_places(const tgi_op_ctx *ctx, int64_t g, places *p)
{
    const int axes = ctx->src[0].rank - 2;
    taps t[MOST_AXES];
    int count = 1;
    p->n = 0;
    for (int k = 0; k < axes; k++) { /* x, the last axis, comes first in the grid */
        if (!find_taps(ctx->attrs, tgi_num_at(ctx->const_src[1], g * axes + axes - 1 - k),
                       ctx->src[0].dim[2 + k], &t[k]))
            return;
        count *= t[k].n;
    }
    for (int i = 0; i < count; i++) {
        int64_t at = 0;
        double weight = 1;
        int rest = i, there = 1;
        for (int k = 0, per = count; k < axes; k++) {
            per /= t[k].n;
            const int j = rest / per;
            rest %= per;
            there &= t[k].at[j] >= 0;
            at = at * ctx->src[0].dim[2 + k] + t[k].at[j];
            weight *= t[k].weight[j];
        }
        p->at[p->n] = at;
        p->weight[p->n] = weight;
        p->n += there;
    }
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *d = &ctx->dst[0];
    int64_t pixels = 1, of_channel = 1;
    places p;
    (void)err;
    for (int k = 2; k < d->rank; k++) {
        pixels *= d->dim[k];
        of_channel *= ctx->src[0].dim[k];
    }
    for (int64_t g = 0; of_channel && g < d->dim[0] * pixels; g++) {
        find_places(ctx, g, &p);
        for (int64_t c = 0; c < d->dim[1]; c++) {
            const int64_t channel = g / pixels * d->dim[1] + c;
            double sum = 0;
            for (int i = 0; i < p.n; i++)
                sum +=
                    p.weight[i] * tgi_num_at(ctx->const_src[0], channel * of_channel + p.at[i]);
            tgi_num_put(d->dtype, dst_data[0], channel * pixels + g % pixels, sum);
        }
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
