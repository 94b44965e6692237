/* resize_axis.c - which inputs an output coordinate of Resize reads, and with which weights.
 *
 * Coordinates are image coordinates in float64, so a tile cannot start counting anew.
 * @source ONNX operator Resize, versions 10 to 19 (attributes coordinate_transformation_mode,
 * nearest_mode, cubic_coeff_a). Where scale * in is no integer the official test outputs (opset
 * 19) take align_corners' length before rounding down; onnxruntime and PyTorch, whose exports
 * have older opsets, after it. Both are followed, by opset. */
#include "kernels/ops/resize_axis.h"

#include "kernels/ops/op_shared.h"

#include <math.h>

/* ---- Parameters -------------------------------------------------------------------------- */

/* Where a list given for `axes` (or for all axes) has its entry for axis k; -1: none. */
static int entry_of(const tgi_ints *axes, int rank, int k)
{
    if (axes->n < 0)
        return k;
    for (int i = 0; i < axes->n; i++)
        if (axes->v[i] == k || axes->v[i] + rank == k)
            return i;
    return -1;
}

typedef struct lists {
    int rank, n; /* rank of the image; entries expected in each list */
    const tgi_ints *axes;
    tgi_floats scales; /* n <= 0: sizes decide */
    tgi_ints sizes;
    double policy_scale; /* keep_aspect_ratio_policy: one scale for all axes; 0: none */
} lists;

static tg_status read_scales(const tgi_op_ctx *ctx, int i, lists *l, tgi_err *err)
{
    const void *data;
    if (!tgi_given(ctx, i) || (tgi_const(ctx, i) && tgi_const_count(tgi_const(ctx, i)) == 0))
        return TG_OK;
    TGI_TRY(tgi_const_f32(ctx, i, "scales", l->n, &data, err));
    l->scales.n = l->n;
    for (int k = 0; k < l->n; k++)
        l->scales.v[k] = tgi_f32_at(data, k);
    return TG_OK;
}

static tg_status read_lists(const tgi_op_ctx *ctx, lists *l, tgi_err *err)
{
    const resize_attrs *a = ctx->attrs;
    *l = (lists){.rank = ctx->src[0].rank, .axes = &a->axes, .scales = a->scales};
    l->n = a->axes.n < 0 ? l->rank : a->axes.n;
    l->sizes.n = -1;
    if (l->scales.n < 0)
        TGI_TRY(read_scales(ctx, ctx->opset < 11 ? 1 : 2, l, err));
    if (l->scales.n < 0 && ctx->opset >= 11 && tgi_given(ctx, 3))
        TGI_TRY(tgi_const_ints(ctx, 3, "sizes", &l->sizes, err));
    if (l->scales.n != l->n && l->sizes.n != l->n)
        return tgi_fail(err, TG_E_FORMAT,
                        "%d scales and %d sizes (-1: none) for %d axes: exactly one list fits",
                        l->scales.n, l->sizes.n, l->n);
    for (int k = 0; k < l->n; k++)
        if (l->scales.n == l->n ? !(l->scales.v[k] > 0 && l->scales.v[k] < 1e6f)
                                : l->sizes.v[k] < 1 || l->sizes.v[k] >= (int64_t)1 << 31)
            return tgi_fail(err, TG_E_FORMAT, "scale or size %d is out of range", k);
    return TG_OK;
}

/* The common scale of not_larger (smallest) and not_smaller (largest). */
static double policy_scale(const tgi_op_ctx *ctx, const lists *l)
{
    const resize_attrs *a = ctx->attrs;
    double best = 0;
    if (a->keep_aspect_ratio_policy == 0 || l->scales.n == l->n)
        return 0;
    for (int k = 0; k < l->rank; k++) {
        const int e = entry_of(l->axes, l->rank, k);
        if (e < 0)
            continue;
        const double s = (double)l->sizes.v[e] / (double)ctx->src[0].dim[k];
        if (best == 0 || (a->keep_aspect_ratio_policy == 1 ? s < best : s > best))
            best = s;
    }
    return best;
}

/* Extents and scale of axis k. */
static void size_axis(const lists *l, int k, int64_t in, int opset, tgi_resize_axis *ax)
{
    const int e = entry_of(l->axes, l->rank, k);
    ax->in = ax->out = in;
    ax->scale = 1;
    if (e >= 0 && l->scales.n == l->n) {
        ax->scale = (double)l->scales.v[e];
        ax->out = (int64_t)floor((double)in * ax->scale);
    } else if (e >= 0 && l->policy_scale > 0) {
        ax->scale = l->policy_scale;
        ax->out = (int64_t)floor((double)in * ax->scale + 0.5);
    } else if (e >= 0) {
        ax->out = l->sizes.v[e];
        ax->scale = (double)ax->out / (double)in;
    }
    ax->length = opset < 19 ? (double)ax->out : (double)in * ax->scale;
}

static tg_status read_roi(const tgi_op_ctx *ctx, const lists *l, int k, tgi_resize_axis *ax,
                          tgi_err *err)
{
    const void *roi;
    const int e = entry_of(l->axes, l->rank, k);
    ax->roi_lo = 0;
    ax->roi_hi = 1;
    if (ax->coord != TGI_COORD_TF_CROP_AND_RESIZE || e < 0)
        return TG_OK;
    TGI_TRY(tgi_const_f32(ctx, 1, "roi", 2 * l->n, &roi, err));
    ax->roi_lo = (double)tgi_f32_at(roi, e);
    ax->roi_hi = (double)tgi_f32_at(roi, l->n + e);
    if (!(fabs(ax->roi_lo) < 1e6 && fabs(ax->roi_hi) < 1e6))
        return tgi_fail(err, TG_E_FORMAT, "roi of axis %d is out of range", k);
    return TG_OK;
}

static tgi_resize_axis rules_of(const tgi_op_ctx *ctx)
{
    const resize_attrs *a = ctx->attrs;
    tgi_resize_axis r = {.mode = a->mode,
                         .coord = a->coord,
                         .nearest = a->nearest,
                         .exclude_outside = a->exclude_outside != 0,
                         .antialias = a->antialias && a->mode != TGI_RESIZE_NEAREST,
                         .cubic_a = (double)a->cubic_coeff_a};
    if (ctx->opset < 11 || a->opset10_rules) {
        r.coord = TGI_COORD_ASYMMETRIC;
        r.nearest = TGI_NEAREST_FLOOR;
    }
    return r;
}

tg_status tgi_resize_axes(const tgi_op_ctx *ctx, tgi_resize_axis *ax, tgi_err *err)
{
    const tgi_resize_axis rules = rules_of(ctx);
    const int rank = ctx->src[0].rank;
    lists l;
    TGI_TRY(read_lists(ctx, &l, err));
    l.policy_scale = policy_scale(ctx, &l);
    for (int i = 0; i < 3; i++)
        ax[i] = (tgi_resize_axis){.in = 1, .out = 1, .scale = 1, .length = 1, .roi_hi = 1};
    for (int k = 0; k < rank; k++) {
        tgi_resize_axis one = rules;
        size_axis(&l, k, ctx->src[0].dim[k], ctx->opset, &one);
        if (one.out < 1 || one.out >= (int64_t)1 << 40)
            return tgi_fail(err, TG_E_FORMAT, "axis %d would have %" PRId64 " elements", k,
                            one.out);
        if (k < 2 && one.out != one.in)
            return tgi_fail(err, TG_E_UNSUPPORTED, "Resize along axis %d: spatial axes only",
                            k);
        TGI_TRY(read_roi(ctx, &l, k, &one, err));
        one.antialias = one.antialias && one.scale < 1;
        if (k >= 2)
            ax[3 - rank + k] = one;
    }
    return TG_OK;
}

/* ---- Coordinates ------------------------------------------------------------------------- */

/* Output coordinate o lies at before + (o + add) * by / over - less in the input, computed from
 * the left: each way of ONNX rounds as its own formula does. */
typedef struct source_line {
    double before, add, by, over, less;
} source_line;

static source_line line_of(const tgi_resize_axis *ax)
{
    const source_line half = {.add = 0.5, .by = 1, .over = ax->scale, .less = 0.5};
    const source_line first = {.over = 1}; /* the first pixel, whatever is asked for */
    const double last = (double)(ax->in - 1);
    source_line l = half;
    switch (ax->coord) {
    case TGI_COORD_ASYMMETRIC:
        return (source_line){.by = 1, .over = ax->scale};
    case TGI_COORD_ALIGN_CORNERS:
        return ax->out == 1 || ax->length <= 1
                   ? first
                   : (source_line){.by = last, .over = ax->length - 1};
    case TGI_COORD_PYTORCH_HALF_PIXEL:
        return ax->out == 1 ? first : half;
    case TGI_COORD_HALF_PIXEL_SYMMETRIC:
        l.before = (double)ax->in / 2 * (1 - (double)ax->out / ax->length);
        return l;
    case TGI_COORD_TF_CROP_AND_RESIZE:
        if (ax->out == 1)
            return (source_line){.before = 0.5 * (ax->roi_lo + ax->roi_hi) * last, .over = 1};
        return (source_line){.before = ax->roi_lo * last,
                             .by = (ax->roi_hi - ax->roi_lo) * last,
                             .over = ax->length - 1};
    case TGI_COORD_TF_HALF_PIXEL_FOR_NN:
        l.less = 0;
        return l;
    default:
        return half;
    }
}

static inline double at_line(const source_line *l, int64_t o)
{
    return l->before + ((double)o + l->add) * l->by / l->over - l->less;
}

/* Where output coordinate o lies in the input; *outside when the crop does not cover it. */
static double source_of(const tgi_resize_axis *ax, int64_t o, int *outside)
{
    const source_line l = line_of(ax);
    const double v = at_line(&l, o);
    *outside = ax->coord == TGI_COORD_TF_CROP_AND_RESIZE && (v < 0 || v > (double)(ax->in - 1));
    return v;
}

/* Scales arrive as float32: 3 / 0.6f is 4.9999998 in float64 and means 5. A coordinate within
 * float32's error of a tie or a pixel centre is taken to lie on it; the cap keeps large images,
 * where that error would pass for a position, exact for exact scales. */
static double snap(double v)
{
    const double near = nearbyint(2 * v) / 2, error = (fabs(v) + 1) / 8388608.0;
    return fabs(v - near) <= (error < 1e-3 ? error : 1e-3) ? near : v;
}

/* floor and ceil of a coordinate without a call: plans ask for it a hundred million times. */
static int64_t down(double v)
{
    const int64_t i = (int64_t)v;
    return i - (v < (double)i);
}

static int64_t nearest_of(int rounding, double v)
{
    switch (rounding) {
    case TGI_NEAREST_ROUND_PREFER_CEIL:
        return down(snap(v) + 0.5);
    case TGI_NEAREST_FLOOR:
        return down(snap(v));
    case TGI_NEAREST_CEIL:
        return -down(-snap(v));
    default:
        return -down(0.5 - snap(v));
    }
}

/* Two neighbours; beyond the first and last pixel's centre that pixel alone. */
static void linear_taps(const tgi_resize_axis *ax, double v, tgi_taps *t)
{
    const double c = v < 0 ? 0 : v > (double)(ax->in - 1) ? (double)(ax->in - 1) : v;
    t->at[0] = (int64_t)floor(c);
    t->at[1] = tgi_min(t->at[0] + 1, ax->in - 1);
    t->w[1] = c - (double)t->at[0];
    t->w[0] = 1 - t->w[1];
    t->n = 2;
}

/* Weight of a pixel at distance d. @source R. Keys, Cubic convolution interpolation for digital
 * image processing, 1981, equation 4 with free parameter a. */
static double cubic_weight(double a, double d)
{
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static void cubic_taps(const tgi_resize_axis *ax, double v, tgi_taps *t)
{
    const int64_t first = (int64_t)floor(v) - 1;
    double sum = 0;
    t->n = 4;
    for (int i = 0; i < 4; i++) {
        const int64_t at = first + i;
        const int out = at < 0 || at >= ax->in;
        t->at[i] = tgi_clamp(at, 0, ax->in - 1);
        t->w[i] = out && ax->exclude_outside ? 0 : cubic_weight(ax->cubic_a, v - (double)at);
        sum += t->w[i];
    }
    for (int i = 0; i < 4 && ax->exclude_outside; i++)
        t->w[i] /= sum;
}

/* Coordinates as taps, the extrapolated ones too. */
static void taps_at(const tgi_resize_axis *ax, double v, tgi_taps *t)
{
    if (ax->mode == TGI_RESIZE_LINEAR) {
        linear_taps(ax, v, t);
    } else if (ax->mode == TGI_RESIZE_CUBIC) {
        cubic_taps(ax, v, t);
    } else {
        t->n = 1;
        t->at[0] = tgi_clamp(nearest_of(ax->nearest, v), 0, ax->in - 1);
        t->w[0] = 1;
    }
}

void tgi_resize_taps(const tgi_resize_axis *ax, int64_t o, tgi_taps *taps)
{
    int outside;
    const double v = source_of(ax, o, &outside);
    taps_at(ax, v, taps);
    if (outside)
        taps->n = 0;
}

/* The filter of linear (a triangle) or cubic, `scale` times as wide as the distance between two
 * pixels. A pixel outside is the edge pixel, or nothing with exclude_outside. */
double tgi_resize_weight(const tgi_resize_axis *ax, const tgi_filter *f, int64_t at)
{
    const double d = ((double)at - f->center) * ax->scale;
    if (ax->exclude_outside && (at < 0 || at >= ax->in))
        return 0;
    if (ax->mode == TGI_RESIZE_CUBIC)
        return cubic_weight(ax->cubic_a, d);
    return fabs(d) < 1 ? 1 - fabs(d) : 0;
}

tgi_filter tgi_resize_filter(const tgi_resize_axis *ax, int64_t o)
{
    int outside;
    tgi_filter f = {.center = source_of(ax, o, &outside)};
    const double reach = (ax->mode == TGI_RESIZE_CUBIC ? 2 : 1) / ax->scale;
    f.first = (int64_t)floor(f.center - reach) + 1;
    f.n = outside ? 0 : (int64_t)ceil(f.center + reach) - f.first;
    for (int64_t i = 0; i < f.n; i++)
        f.sum += tgi_resize_weight(ax, &f, f.first + i);
    return f;
}

/* ---- Operator members -------------------------------------------------------------------- */

const char *const tgi_resize_modes[] = {"nearest", "linear", "cubic", NULL};

tg_status tgi_resize_infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_resize_axis ax[3];
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(tgi_resize_axes(ctx, ax, err));
    dst[0] = ctx->src[0];
    for (int k = 2; k < dst[0].rank; k++)
        dst[0].dim[k] = ax[3 - dst[0].rank + k].out;
    return TG_OK;
}

/* What an axis gives one output coordinate, either way. */
typedef struct pick {
    const tgi_resize_axis *ax;
    tgi_taps t;
    tgi_filter f;
    int64_t n;
} pick;

static pick pick_at(const tgi_resize_axis *ax, int64_t o)
{
    pick p = {.ax = ax};
    if (ax->antialias) {
        p.f = tgi_resize_filter(ax, o);
        p.n = p.f.n;
    } else {
        tgi_resize_taps(ax, o, &p.t);
        p.n = p.t.n;
    }
    return p;
}

static int64_t pick_place(const pick *p, int64_t i)
{
    return p->ax->antialias ? tgi_clamp(p->f.first + i, 0, p->ax->in - 1) : p->t.at[i];
}

static double pick_weight(const pick *p, int64_t i)
{
    return p->ax->antialias ? tgi_resize_weight(p->ax, &p->f, p->f.first + i) / p->f.sum
                            : p->t.w[i];
}

/* Pixels of one row: its rows' taps are made once, columns' taps once per pixel. */
static void resize_row(const tgi_call *call, const tgi_resize_axis *ax, int64_t z, int64_t y)
{
    const resize_attrs *a = call->ctx->attrs;
    const tgi_view *v = &call->dst[0];
    const tgi_range rx = tgi_box_axis(&call->box, TGI_X);
    const pick tz = pick_at(&ax[TGI_Z], z), ty = pick_at(&ax[TGI_Y], y);
    for (int64_t x = rx.lo; x < rx.hi; x++) {
        const pick tx = pick_at(&ax[TGI_X], x);
        const int outside = !tz.n || !ty.n || !tx.n;
        for (int64_t c = 0; c < v->c; c++) {
            double sum = 0;
            for (int64_t i = 0; i < tz.n; i++)
                for (int64_t j = 0; j < ty.n; j++)
                    for (int64_t k = 0; k < tx.n; k++)
                        sum += pick_weight(&tz, i) * pick_weight(&ty, j) * pick_weight(&tx, k) *
                               (double)tgi_operand_get(&call->src[0], c, pick_place(&tz, i),
                                                       pick_place(&ty, j), pick_place(&tx, k));
            *tgi_view_at(v, c, z, y, x) = outside ? a->extrapolation_value : (float)sum;
        }
    }
}

tg_status tgi_resize_ref(const tgi_call *call, tgi_err *err)
{
    tgi_resize_axis ax[3];
    TGI_TRY(tgi_resize_axes(call->ctx, ax, err));
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y);
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            resize_row(call, ax, z, y);
    tgi_zero_lanes(&call->dst[0], &call->box);
    return TG_OK;
}

double tgi_resize_flops(const tgi_op_ctx *ctx)
{
    const resize_attrs *a = ctx->attrs;
    const double taps = a->mode == TGI_RESIZE_NEAREST  ? 1
                        : a->mode == TGI_RESIZE_LINEAR ? 2
                                                       : 4;
    return a->mode == TGI_RESIZE_NEAREST ? 1 : 2 * pow(taps, ctx->src[0].rank - 2);
}

#define BORDER 8 /* outputs at either end where coordinates are cut off, and more */

/* Is output o's coordinate that of o - 2 and 1, to the last bit? With a scale of 2 they are
 * quarters. */
static int repeats(const tgi_resize_axis *ax)
{
    return ax->scale == 2 && ax->length == (double)ax->out &&
           ax->coord != TGI_COORD_ALIGN_CORNERS && ax->coord != TGI_COORD_TF_CROP_AND_RESIZE;
}

static int doubles_axis(const tgi_resize_axis *ax)
{
    if (ax->mode != TGI_RESIZE_NEAREST || ax->out != 2 * ax->in)
        return 0;
    for (int64_t o = 0; o < ax->out; o++) {
        tgi_taps t;
        if (o == BORDER && ax->out > 2 * BORDER && repeats(ax))
            o = ax->out - BORDER;
        tgi_resize_taps(ax, o, &t);
        if (t.n != 1 || t.at[0] != o / 2)
            return 0;
    }
    return 1;
}

int tgi_resize_doubles(const tgi_op_ctx *ctx)
{
    tgi_resize_axis ax[3];
    return ctx->src[0].rank == 4 && tgi_resize_axes(ctx, ax, NULL) == TG_OK &&
           doubles_axis(&ax[TGI_Y]) && doubles_axis(&ax[TGI_X]);
}

/* ---- What is read, along one axis -------------------------------------------------------- */

/* Of an axis what that takes, with the line on which its coordinates lie and its inverse: made
 * once, asked a hundred million times. */
typedef struct reach {
    int mode, nearest, antialias;
    int64_t in, out;
    double scale;
    source_line line;
    double first; /* coordinate of output 0 */
    double per;   /* outputs per pixel of coordinates */
} reach;

static reach reach_of(const tgi_resize_axis *ax)
{
    reach r = {ax->mode, ax->nearest, ax->antialias, ax->in, ax->out, ax->scale, line_of(ax), 0,
               0};
    r.first = at_line(&r.line, 0);
    r.per = (double)(r.out - 1) / (at_line(&r.line, r.out - 1) - r.first);
    return r;
}

/* What a pixel would read, also one that a crop leaves outside and that reads nothing: so ends
 * rise with pixels. */
static tgi_range filter_width(const reach *r, int64_t o)
{
    const double center = at_line(&r->line, o);
    const double wide = (r->mode == TGI_RESIZE_CUBIC ? 2 : 1) / r->scale;
    return (tgi_range){(int64_t)floor(center - wide) + 1, (int64_t)ceil(center + wide)};
}

static tgi_range filter_need(const reach *r, tgi_range out)
{
    const tgi_range a = filter_width(r, out.lo), b = filter_width(r, out.hi - 1);
    const int64_t lo = tgi_min(a.lo, b.lo), hi = tgi_max(a.hi, b.hi);
    return tgi_clip_nonempty((tgi_range){lo, tgi_max(hi, lo + 1)}, r->in);
}

/* First and last tap at a coordinate, without their weights. */
static inline tgi_range reach_at(const reach *r, double v)
{
    const int64_t last = r->in - 1;
    if (r->mode == TGI_RESIZE_NEAREST) {
        const int64_t at = tgi_clamp(nearest_of(r->nearest, v), 0, last);
        return (tgi_range){at, at + 1};
    }
    if (r->mode == TGI_RESIZE_CUBIC) {
        const int64_t first = down(v) - 1;
        return (tgi_range){tgi_clamp(first, 0, last), tgi_clamp(first + 3, 0, last) + 1};
    }
    const int64_t at = down(v < 0 ? 0 : v > (double)last ? (double)last : v);
    return (tgi_range){at, tgi_min(at + 1, last) + 1};
}

/* Exact, and never empty. */
static tgi_range need_of_axis(const void *given, tgi_range out)
{
    const reach *r = given;
    if (r->antialias)
        return filter_need(r, out);
    const tgi_range a = reach_at(r, at_line(&r->line, out.lo));
    if (out.hi - out.lo == 1)
        return a;
    return tgi_range_hull(a, reach_at(r, at_line(&r->line, out.hi - 1)));
}

static void begins_of_axis(const void *given, const int64_t *row, int64_t *out, int n)
{
    const reach r = *(const reach *)given;
    const int64_t before = r.mode == TGI_RESIZE_CUBIC ? 1 : 0, last = r.in - 1;
    if (r.mode == TGI_RESIZE_NEAREST)
        for (int i = 0; i < n; i++)
            out[i] = reach_at(&r, at_line(&r.line, row[i])).lo;
    else
        for (int i = 0; i < n; i++)
            out[i] = tgi_clamp(down(at_line(&r.line, row[i])) - before, 0, last);
}

/* Of linear and cubic: an output reads up to `end` at most where its coordinate is below end -
 * ahead: so many are on the line before it. The inverse of the line is rounded, so the nearest
 * output decides, by its own coordinate. To ask it always is sooner than to ask whether it is
 * in doubt: where the scale is 3, each end has such an output. */
static void ends_of_line(const reach *r, const int64_t *end, int64_t *out, int n)
{
    const source_line l = r->line;
    const int64_t ahead = r->mode == TGI_RESIZE_LINEAR ? 1 : 2, rows = r->out;
    const int64_t least = ahead == 1 ? 2 : 1; /* what lies before the image reads so many */
    const double first = r->first, per = r->per, top = (double)rows;
    for (int i = 0; i < n; i++) {
        const double limit = (double)(end[i] - ahead), line = (limit - first) * per;
        const double at = line < 0 ? 0 : line > top ? top : line;
        const int64_t b = (int64_t)(at + 0.5);
        const int64_t more = (b < rows) & (at_line(&l, b) < limit);
        out[i] = end[i] < least ? 0 : b + more;
    }
}

static int64_t nearest_end(const reach *r, int64_t end)
{
    if (end < 1)
        return 0;
    const double line = ((double)end - r->first) * r->per;
    int64_t b = (int64_t)(line < 0 ? 0 : line > (double)r->out ? (double)r->out : line);
    while (b > 0 && reach_at(r, at_line(&r->line, b - 1)).hi > end)
        b--;
    while (b < r->out && reach_at(r, at_line(&r->line, b)).hi <= end)
        b++;
    return b;
}

static void ends_of_axis(const void *given, int64_t from, const int64_t *end, int64_t *out,
                         int n)
{
    (void)from;
    const reach r = *(const reach *)given;
    if (r.mode != TGI_RESIZE_NEAREST)
        ends_of_line(&r, end, out, n);
    for (int i = 0; i < n && r.mode == TGI_RESIZE_NEAREST; i++)
        out[i] = nearest_end(&r, end[i]);
}

void tgi_resize_rule(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *rule)
{
    tgi_resize_axis ax[3];
    tgi_rule_all(ctx, src_i, axis, rule);
    if (src_i != 0 || tgi_resize_axes(ctx, ax, NULL) != TG_OK)
        return;
    const reach r = reach_of(&ax[axis]);
    TGI_RULE(rule, need_of_axis, r);
    rule->rising = ax[axis].roi_lo <= ax[axis].roi_hi; /* a crop may be reversed */
    if (rule->rising && !r.antialias && r.per > 0 && r.per <= 1e6)
        rule->ends = ends_of_axis;
    if (rule->ends)
        rule->begins = begins_of_axis;
}

#define STEEPEST 256              /* `up` below: what is no half is one by 1/512 at least */
#define FINEST ((int64_t)1 << 20) /* `down` */
#define FARTHEST ((int64_t)1 << 31)

/* The scale as up / down, a power of two: then a coordinate is a multiple of 1 / (2 up), which
 * float64 has to the last bit where it is an integer or a half, and comes nowhere near one
 * where it is not. 0: it is no such number. */
static int ratio_of(const tgi_resize_axis *ax, int64_t *up, int64_t *down)
{
    for (*down = 1; *down <= FINEST; *down *= 2) {
        const double p = ax->scale * (double)*down;
        if (p > STEEPEST)
            return 0;
        if (p == floor(p)) {
            *up = (int64_t)p;
            return *up > 0;
        }
    }
    return 0;
}

/* Where a coordinate's numerator (over 2 up) must be moved so that rounding down is the op's
 * own rounding. */
static int64_t rounding_of(const tgi_resize_axis *ax, int64_t up)
{
    if (ax->mode != TGI_RESIZE_NEAREST || ax->nearest == TGI_NEAREST_FLOOR)
        return 0;
    return ax->nearest == TGI_NEAREST_CEIL                ? 2 * up - 1
           : ax->nearest == TGI_NEAREST_ROUND_PREFER_CEIL ? up
                                                          : up - 1;
}

/* Coordinates (x + .5) / scale - .5, or the like, as integers. */
static int slide_of_axis(const tgi_resize_axis *ax, tgi_slide *s)
{
    int64_t up, down;
    const int plain = ax->coord == TGI_COORD_ASYMMETRIC,
              top = ax->coord == TGI_COORD_TF_HALF_PIXEL_FOR_NN;
    if (ax->antialias || ax->coord == TGI_COORD_ALIGN_CORNERS ||
        ax->coord == TGI_COORD_TF_CROP_AND_RESIZE ||
        (ax->coord == TGI_COORD_PYTORCH_HALF_PIXEL && ax->out == 1) ||
        (ax->coord == TGI_COORD_HALF_PIXEL_SYMMETRIC && ax->length != (double)ax->out) ||
        tgi_max(ax->in, ax->out) >= FARTHEST || !ratio_of(ax, &up, &down))
        return 0;
    const int64_t first = (plain ? 0 : down) - (plain || top ? 0 : up) + rounding_of(ax, up);
    const int64_t before = ax->mode == TGI_RESIZE_CUBIC ? 1 : 0;
    const int64_t behind = ax->mode == TGI_RESIZE_CUBIC    ? 2
                           : ax->mode == TGI_RESIZE_LINEAR ? 1
                                                           : 0;
    *s = (tgi_slide){.num = 2 * down,
                     .den = 2 * up,
                     .lo = first - before * 2 * up,
                     .hi = first + behind * 2 * up,
                     .of = ax->in,
                     .least = ax->mode == TGI_RESIZE_LINEAR ? tgi_min(2, ax->in) : 1};
    return 1;
}

int tgi_resize_slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide)
{
    tgi_resize_axis ax[3];
    *slide = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i != 0 || tgi_resize_axes(ctx, ax, NULL) != TG_OK)
        return 1;
    if (slide_of_axis(&ax[axis], slide))
        return 1;
    *slide = (tgi_slide){.num = 1, .den = 2};
    return doubles_axis(&ax[axis]);
}
