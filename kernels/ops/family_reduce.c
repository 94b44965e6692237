/* family_reduce.c - the ten reductions: sums, extremes, norms and means over some axes, which
 * become 1 or vanish. Floats are folded in float64, integers in their own ring, always in the
 * order of the axes. The table at the end makes a tgi_op of each kind.
 *
 * On images a reduction over channels alone is local; over pixels it reads the whole extent;
 * one that drops axes does not yield an image and is computed on dense tensors.
 * Sums and means of whole images are made of the moments of granules (granule.h), as those of
 * GlobalAveragePool: in pieces they have the same bits.
 * Border: none.
 * @source ONNX operators of the names in the table, versions 1 to 20: axes are an attribute, or
 * input 1 from opset 13 (ReduceSum) or 18 on. */
#include "kernels/ops/dense_plan.h"
#include "kernels/reduce.h"

#include <math.h>

typedef enum kind { L1, L2, LOG_SUM, LOG_SUM_EXP, MAX, MEAN, MIN, PROD, SUM, SQUARES } kind;

typedef struct reduce_attrs {
    tgi_ints axes;
    int64_t keepdims, noop;
} reduce_attrs;

static const tgi_attr rows[] = {
    {"axes", TGI_ATTR_INTS, offsetof(reduce_attrs, axes), 0, 0, 0, NULL, "what is folded"},
    {"keepdims", TGI_ATTR_INT, offsetof(reduce_attrs, keepdims), 1, 0, 1, NULL, "axes stay, 1"},
    {"noop_with_empty_axes", TGI_ATTR_INT, offsetof(reduce_attrs, noop), 0, 0, 1, NULL,
     "no axes: nothing is folded"},
    {0}};

/* The folded axes as bits. */
tg_status tgi_reduce_axes(const tgi_op_ctx *ctx, unsigned *bits, tgi_err *err)
{
    const reduce_attrs *a = ctx->attrs;
    const int rank = ctx->src[0].rank;
    tgi_ints list = a->axes;
    *bits = 0;
    if (tgi_given(ctx, 1))
        TGI_TRY(tgi_const_ints(ctx, 1, "axes", &list, err));
    if (list.n <= 0 && !a->noop)
        *bits = (1u << rank) - 1u;
    for (int i = 0; i < list.n; i++) {
        int k;
        TGI_TRY(tgi_axis(list.v[i], rank, &k, err));
        *bits |= 1u << k;
    }
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const reduce_attrs *a = ctx->attrs;
    unsigned bits;
    TGI_TRY(tgi_reduce_axes(ctx, &bits, err));
    tgi_desc d = {ctx->src[0].dtype, 0, {0}};
    for (int k = 0; k < ctx->src[0].rank; k++)
        if (!(bits & 1u << k))
            d.dim[d.rank++] = ctx->src[0].dim[k];
        else if (a->keepdims)
            d.dim[d.rank++] = 1;
    dst[0] = d;
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    unsigned bits;
    if (tgi_reduce_axes(ctx, &bits, NULL) != TG_OK || ctx->dst[0].rank != ctx->src[0].rank ||
        (bits & 1u && ctx->src[0].dim[0] != 1))
        return TGI_OP_DENSE;
    return bits & ~3u ? TGI_OP_WHOLE : TGI_OP_LOCAL;
}

/* An axis that is folded is read as a whole, any other row by row. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    unsigned bits;
    const tgi_desc *s = &ctx->src[src_i];
    const int k = s->rank - 3 + axis;
    *out = tgi_slide_all(tgi_desc_axis(s, axis));
    if (src_i == 0 && k >= 2 && ctx->dst[0].rank == s->rank &&
        tgi_reduce_axes(ctx, &bits, NULL) == TG_OK && !(bits & 1u << k))
        *out = TGI_SLIDE_SAME;
    return 1;
}

/* ---- Floats ------------------------------------------------------------------------------ */

typedef struct fold {
    kind kind;
    double acc, top; /* top: the largest value, of LOG_SUM_EXP */
    int64_t n;
} fold;

static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static fold fold_start(kind k)
{
    const double acc = k == MAX ? -INFINITY : k == MIN ? INFINITY : k == PROD ? 1 : 0;
    return (fold){.kind = k, .acc = acc, .top = -INFINITY};
}

static void fold_add(fold *f, double v)
{
    f->n++;
    switch (f->kind) {
    case L1:
        f->acc += fabs(v);
        break;
    case L2:
    case SQUARES:
        f->acc += v * v;
        break;
    case LOG_SUM_EXP:
        f->acc += isinf(f->top) ? exp(v) : exp(v - f->top);
        break;
    case MAX:
        f->acc = larger(f->acc, v);
        break;
    case MIN:
        f->acc = -larger(-f->acc, -v);
        break;
    case PROD:
        f->acc *= v;
        break;
    case LOG_SUM:
    case MEAN:
    case SUM:
        f->acc += v;
        break;
    }
}

static double fold_result(const fold *f)
{
    switch (f->kind) {
    case L2:
        return sqrt(f->acc);
    case LOG_SUM:
        return log(f->acc);
    case LOG_SUM_EXP:
        return log(f->acc) + (isinf(f->top) ? 0 : f->top);
    case MEAN:
        return f->acc / (double)f->n;
    default:
        return f->acc;
    }
}

/* ---- Integers ---------------------------------------------------------------------------- */

typedef struct int_fold {
    kind kind;
    int is_unsigned;
    int64_t acc, n;
} int_fold;

static int done_in_ints(kind k, tg_dtype t)
{
    return !tgi_dtype_is_float(t) && k != L2 && k != LOG_SUM && k != LOG_SUM_EXP;
}

static void int_add(int_fold *f, int64_t v)
{
    const uint64_t u = (uint64_t)v, acc = (uint64_t)f->acc;
    const int greater = f->is_unsigned ? u > acc : v > f->acc;
    if (f->n++ == 0 && (f->kind == MAX || f->kind == MIN))
        f->acc = v;
    else if (f->kind == MAX || f->kind == MIN)
        f->acc = greater == (f->kind == MAX) ? v : f->acc;
    else if (f->kind == PROD)
        f->acc = (int64_t)(acc * u);
    else if (f->kind == SQUARES)
        f->acc = (int64_t)(acc + u * u);
    else if (f->kind == L1 && v < 0 && !f->is_unsigned)
        f->acc = (int64_t)(acc - u);
    else
        f->acc = (int64_t)(acc + u);
}

/* ---- Dense ------------------------------------------------------------------------------- */

/* The source seen as results (folded axes 1) and what is folded into one (the others 1). */
typedef struct walk {
    tgi_desc outer, inner;
    int64_t stride[TGI_MAX_RANK];
} walk;

static walk walk_of(const tgi_op_ctx *ctx, unsigned bits)
{
    walk w = {.outer = ctx->src[0], .inner = ctx->src[0]};
    tgi_dense_strides(&ctx->src[0], w.stride);
    for (int k = 0; k < ctx->src[0].rank; k++)
        *(bits & 1u << k ? &w.outer.dim[k] : &w.inner.dim[k]) = 1;
    return w;
}

static int64_t offset_of(const walk *w, const int64_t *a, const int64_t *b)
{
    int64_t off = 0;
    for (int k = 0; k < w->outer.rank; k++)
        off += (a[k] + b[k]) * w->stride[k];
    return off;
}

static double fold_floats(const walk *w, const tgi_constant *c, kind k, const int64_t *outer)
{
    fold f = fold_start(k);
    const int empty = tgi_dense_count(&w->inner) == 0;
    int64_t at[TGI_MAX_RANK] = {0}, again[TGI_MAX_RANK] = {0};
    if (empty)
        return fold_result(&f);
    if (k == LOG_SUM_EXP)
        do
            f.top = larger(f.top, tgi_num_at(c, offset_of(w, outer, again)));
        while (tgi_next_index(&w->inner, again));
    do
        fold_add(&f, tgi_num_at(c, offset_of(w, outer, at)));
    while (tgi_next_index(&w->inner, at));
    return fold_result(&f);
}

static int64_t fold_ints(const walk *w, const tgi_constant *c, kind k, const int64_t *outer)
{
    int_fold f = {.kind = k, .is_unsigned = tgi_dtype_is_unsigned(c->desc.dtype)};
    int64_t at[TGI_MAX_RANK] = {0};
    f.acc = k == PROD;
    if (tgi_dense_count(&w->inner) == 0)
        return f.acc;
    do
        int_add(&f, tgi_int_at(c, offset_of(w, outer, at)));
    while (tgi_next_index(&w->inner, at));
    return k == MEAN ? f.acc / f.n : f.acc;
}

static tg_status eval_kind(const tgi_op_ctx *ctx, void *const *dst_data, kind k, tgi_err *err)
{
    const tgi_constant *c = ctx->const_src[0];
    const tg_dtype t = c->desc.dtype;
    int64_t at[TGI_MAX_RANK] = {0}, n = 0;
    unsigned bits;
    TGI_TRY(tgi_reduce_axes(ctx, &bits, err));
    const walk w = walk_of(ctx, bits);
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        if (done_in_ints(k, t))
            tgi_int_put(t, dst_data[0], n, fold_ints(&w, c, k, at));
        else
            tgi_num_put(t, dst_data[0], n, fold_floats(&w, c, k, at));
        n++;
    } while (tgi_next_index(&w.outer, at));
    return TG_OK;
}

/* ---- Views ------------------------------------------------------------------------------- */

typedef struct image_fold {
    kind kind;
    unsigned bits;
} image_fold;

/* What is folded into pixel p: all of a folded axis, p's own place on the others. */
static void ranges_of(const tgi_op_ctx *ctx, unsigned bits, const tgi_px *p, tgi_range r[4])
{
    const tgi_desc *s = &ctx->src[0];
    const int64_t at[4] = {p->c, p->z, p->y, p->x};
    for (int i = 0; i < 4; i++) {
        const int k = i == 0 ? 1 : s->rank - 4 + i;
        const int folded = (i == 0 || k > 1) && (bits & 1u << k); /* rank 4 has no z */
        const int64_t n = i == 0 ? s->dim[1] : tgi_desc_axis(s, i - 1);
        r[i] = folded ? (tgi_range){0, n} : (tgi_range){at[i], at[i] + 1};
    }
}

static void fold_image(const tgi_call *call, const tgi_range r[4], fold *f, int tops)
{
    for (int64_t c = r[0].lo; c < r[0].hi; c++)
        for (int64_t z = r[1].lo; z < r[1].hi; z++)
            for (int64_t y = r[2].lo; y < r[2].hi; y++)
                for (int64_t x = r[3].lo; x < r[3].hi; x++) {
                    const double v = (double)tgi_src_at(call, 0, &(tgi_px){c, z, y, x});
                    if (tops)
                        f->top = larger(f->top, v);
                    else
                        fold_add(f, v);
                }
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const image_fold *a = arg;
    fold f = fold_start(a->kind);
    tgi_range r[4];
    ranges_of(call->ctx, a->bits, p, r);
    if (a->kind == LOG_SUM_EXP)
        fold_image(call, r, &f, 1);
    fold_image(call, r, &f, 0);
    return (float)fold_result(&f);
}

/* Are all pixels folded, to an image of one pixel? */
static int folds_pixels(const tgi_op_ctx *ctx)
{
    unsigned bits;
    if (tgi_reduce_axes(ctx, &bits, NULL) != TG_OK || ctx->dst[0].rank != ctx->src[0].rank)
        return 0;
    for (int k = 2; k < ctx->src[0].rank; k++)
        if (ctx->src[0].dim[k] > 1 && !(bits & 1u << k))
            return 0;
    return ctx->src[0].rank > 3;
}

/* Sums, or means, of the channels, or of all of them together. */
static void finish_kind(const tgi_op_ctx *ctx, const tgi_moments *m, kind k, float *dst)
{
    const int64_t n = ctx->src[0].dim[1];
    const int together = ctx->dst[0].dim[1] != n;
    double sum = 0, count = 0;
    for (int64_t c = 0; c < n; c++) {
        sum = together ? sum + m[c].sum : m[c].sum;
        count = together ? count + m[c].n : m[c].n;
        dst[together ? 0 : c] = (float)(k == MEAN ? sum / count : sum);
    }
}

static void finish_sum(const tgi_op_ctx *ctx, const tgi_moments *m, float *dst)
{
    finish_kind(ctx, m, SUM, dst);
}

static void finish_mean(const tgi_op_ctx *ctx, const tgi_moments *m, float *dst)
{
    finish_kind(ctx, m, MEAN, dst);
}

/* Largest values, or smallest ones; NaN where there was one. */
static void finish_extreme(const tgi_op_ctx *ctx, const tgi_extremes *e, kind k, float *dst)
{
    const int64_t n = ctx->src[0].dim[1];
    const int together = ctx->dst[0].dim[1] != n;
    fold f = fold_start(k);
    for (int64_t c = 0; c < n; c++) {
        if (!together)
            f = fold_start(k);
        fold_add(&f, e[c].has_nan ? (double)NAN
                                  : (double)(k == MAX ? e[c].largest : e[c].smallest));
        dst[together ? 0 : c] = (float)f.acc;
    }
}

static void finish_max(const tgi_op_ctx *ctx, const tgi_extremes *e, float *dst)
{
    finish_extreme(ctx, e, MAX, dst);
}

static void finish_min(const tgi_op_ctx *ctx, const tgi_extremes *e, float *dst)
{
    finish_extreme(ctx, e, MIN, dst);
}

/* By kind: how pixels are folded piece by piece. Sums of squares are not: all NULL. */
static const tgi_reduce pieces[SQUARES + 1] = {[MAX] = {folds_pixels, NULL, finish_max},
                                               [MIN] = {folds_pixels, NULL, finish_min},
                                               [MEAN] = {folds_pixels, finish_mean, NULL},
                                               [SUM] = {folds_pixels, finish_sum, NULL}};

static int has_pieces(kind k)
{
    return pieces[k].fits != NULL;
}

static tg_status ref_kind(const tgi_call *call, kind k, tgi_err *err)
{
    image_fold a = {.kind = k};
    if (has_pieces(k) && folds_pixels(call->ctx))
        return tgi_ref_reduce(call, &pieces[k], err);
    TGI_TRY(tgi_reduce_axes(call->ctx, &a.bits, err));
    tgi_ref_each(call, 0, value, &a);
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    const double to = (double)tgi_dense_count(&ctx->dst[0]);
    return to > 0 ? (double)tgi_dense_count(&ctx->src[0]) / to : 1;
}

/* ---- Operators --------------------------------------------------------------------------- */

#define REDUCTION(symbol, onnx, what, in_pieces)                                               \
    TGI_OP_OF_KIND(symbol, onnx, what, .classify = classify, .reduce = (in_pieces),            \
                   .attrs = rows, .attrs_size = sizeof(reduce_attrs), .infer = infer,          \
                   .slide = slide, .flops = flops)

REDUCTION(reduce_l1, "ReduceL1", L1, NULL)
REDUCTION(reduce_l2, "ReduceL2", L2, NULL)
REDUCTION(reduce_log_sum, "ReduceLogSum", LOG_SUM, NULL)
REDUCTION(reduce_log_sum_exp, "ReduceLogSumExp", LOG_SUM_EXP, NULL)
REDUCTION(reduce_max, "ReduceMax", MAX, &pieces[MAX])
REDUCTION(reduce_mean, "ReduceMean", MEAN, &pieces[MEAN])
REDUCTION(reduce_min, "ReduceMin", MIN, &pieces[MIN])
REDUCTION(reduce_prod, "ReduceProd", PROD, NULL)
REDUCTION(reduce_sum, "ReduceSum", SUM, &pieces[SUM])
REDUCTION(reduce_sum_square, "ReduceSumSquare", SQUARES, NULL)
