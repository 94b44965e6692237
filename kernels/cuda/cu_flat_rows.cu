/* cu_flat_rows.cu - whole arrays, row by row (cu_rows.cuh): Softmax and its like, norms, Lp
 * normalisation, scales and shifts per channel, and reductions over any axes.
 *
 * Statistics are sums in float64, of the numbers' distances from their mean where a variance is
 * wanted. A normalised number is (x - mean) * factor * scale + shift in float32, the mean as
 * two floats so that a large offset cancels. */
#include "kernels/cuda/cu_fold.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_rows.cuh"

enum cu_row_kind {
    CU_SOFT,
    CU_LOG_SOFT,
    CU_HARD,
    CU_NORM1,  /* by the sum of magnitudes */
    CU_NORM2,  /* by the root of the sum of squares */
    CU_CENTRE, /* mean 0, variance 1: 1 / sqrt(variance + epsilon) */
    CU_SCALE,  /* mean square 1 */
    CU_MVN,    /* 1 / (deviation + 1e-9) */
    CU_AFFINE  /* scale and shift alone */
};

struct cu_row_args {
    cu_rows rows;
    const char *src;
    char *dst, *mean, *factor; /* the last two: results of their own, or NULL */
    const char *scale, *shift; /* NULL: 1, 0 */
    int32_t kind;
    int32_t const_scale, const_shift; /* 1: float32, 0: elements */
    float epsilon;
    cu_walk<3> outer, inner; /* places of the data, the scale, the shift */
};

/* What is written at an element v of a row. */
struct cu_row_found {
    float high, low, factor; /* (v - high - low) * factor */
    int64_t at;              /* CU_HARD: where the largest is */
    float log_sum;           /* CU_LOG_SOFT */
};

template <class T>
__device__ __forceinline__ float cu_side_at(const char *p, int own, int64_t i)
{
    return own ? reinterpret_cast<const float *>(p)[i]
               : cu_float(reinterpret_cast<const T *>(p)[i]);
}

/* fn(element, its number in the row) for this member's share. */
template <class T, int TEAM, class F>
__device__ __forceinline__ void cu_each_member(const cu_row_args *a, int64_t base, const F &fn)
{
    for (int64_t i = cu_member<TEAM>(); i < a->rows.n; i += TEAM) {
        int64_t off[3];
        cu_walk_to<3>(a->inner, i, off);
        fn(cu_float(reinterpret_cast<const T *>(a->src)[base + off[0]]), i);
    }
}

template <class T, int TEAM>
__device__ __forceinline__ cu_row_found cu_look_for_top(const cu_row_args *a, int64_t base)
{
    cu_best_of best = {-INFINITY, -1};
    double sum = 0;
    cu_each_member<T, TEAM>(a, base, [&](float v, int64_t i) {
        if (best.at < 0 || v > best.v)
            best = cu_best_of{v, i};
    });
    best = cu_team_best<TEAM>(best, false);
    if (a->kind != CU_HARD) {
        cu_each_member<T, TEAM>(a, base, [&](float v, int64_t) { sum += expf(v - best.v); });
        sum = cu_team_sum<TEAM>(sum);
    }
    cu_row_found f = {best.v, 0.0f, (float)(1 / sum), best.at, 0.0f};
    f.log_sum = a->kind == CU_LOG_SOFT ? (float)log(sum) : 0.0f;
    return f;
}

template <class T, int TEAM>
__device__ __forceinline__ cu_row_found cu_look_for_moments(const cu_row_args *a, int64_t base)
{
    const int kind = a->kind;
    double sum = 0, squares = 0, mean = 0, factor;
    if (kind == CU_CENTRE || kind == CU_MVN) {
        cu_each_member<T, TEAM>(a, base, [&](float v, int64_t) { sum += (double)v; });
        mean = cu_team_sum<TEAM>(sum) / (double)a->rows.n;
    }
    cu_each_member<T, TEAM>(a, base, [&](float v, int64_t) {
        const double d = (double)v - mean;
        squares += kind == CU_NORM1 ? fabs(d) : d * d;
    });
    squares = cu_team_sum<TEAM>(squares);
    if (kind == CU_NORM1 || kind == CU_NORM2)
        factor = squares > 0 ? 1 / (kind == CU_NORM1 ? squares : sqrt(squares)) : 0.0;
    else if (kind == CU_MVN)
        factor = 1 / (sqrt(squares / (double)a->rows.n) + 1e-9);
    else
        factor = 1 / sqrt(squares / (double)a->rows.n + (double)a->epsilon);
    cu_row_found f = {(float)mean, 0.0f, (float)factor, 0, 0.0f};
    f.low = (float)(mean - (double)f.high);
    return f;
}

template <class T>
__device__ __forceinline__ float cu_row_result(const cu_row_args *a, const cu_row_found &f,
                                               float v, int64_t i, int64_t scale_at,
                                               int64_t shift_at)
{
    if (a->kind == CU_HARD)
        return i == f.at ? 1.0f : 0.0f;
    if (a->kind == CU_LOG_SOFT)
        return v - f.high - f.log_sum;
    if (a->kind == CU_SOFT)
        return expf(v - f.high) * f.factor;
    float x = (v - f.high - f.low) * f.factor;
    if (a->scale)
        x *= cu_side_at<T>(a->scale, a->const_scale, scale_at);
    return a->shift ? x + cu_side_at<T>(a->shift, a->const_shift, shift_at) : x;
}

template <class T, int TEAM>
__device__ __forceinline__ void cu_do_row(const cu_row_args *a, int64_t row)
{
    int64_t base[3];
    cu_row_found f = {0.0f, 0.0f, 1.0f, 0, 0.0f};
    cu_walk_to<3>(a->outer, row, base);
    if (a->kind <= CU_HARD)
        f = cu_look_for_top<T, TEAM>(a, base[0]);
    else if (a->kind != CU_AFFINE)
        f = cu_look_for_moments<T, TEAM>(a, base[0]);
    if (cu_member<TEAM>() == 0 && a->mean)
        reinterpret_cast<T *>(a->mean)[row] = cu_element<T>(f.high);
    if (cu_member<TEAM>() == 0 && a->factor)
        reinterpret_cast<T *>(a->factor)[row] = cu_element<T>(f.factor);
    for (int64_t i = cu_member<TEAM>(); i < a->rows.n; i += TEAM) {
        int64_t off[3];
        cu_walk_to<3>(a->inner, i, off);
        const float v = cu_float(reinterpret_cast<const T *>(a->src)[base[0] + off[0]]);
        reinterpret_cast<T *>(a->dst)[base[0] + off[0]] =
            cu_element<T>(cu_row_result<T>(a, f, v, i, base[1] + off[1], base[2] + off[2]));
    }
}

template <class T, int TEAM> CU_KERNEL(cu_flat_row, cu_row_args, CU_FLAT_THREADS, 2)
{
    cu_each_row<TEAM>(a->rows, [&](int64_t row) { cu_do_row<T, TEAM>(a, row); });
}

/* ---- Host: rows -------------------------------------------------------------------------- */

/* What a node is: axes whose bits are set make a row. */
struct cu_row_plan {
    int kind;
    unsigned bits;
    float epsilon;
    int scale, shift;              /* inputs, or -1 */
    int64_t side[2][TGI_MAX_RANK]; /* their strides along the data's axes */
};

typedef int (*cu_row_plan_fn)(const tgi_op_ctx *ctx, cu_row_plan *p);

static void no_sides(cu_row_plan *p, int kind)
{
    memset(p, 0, sizeof *p);
    p->kind = kind;
    p->scale = p->shift = -1;
}

/* Input j, which broadcasts to the data, as side s. */
static void side_of(const tgi_op_ctx *ctx, cu_row_plan *p, int s, int j)
{
    int64_t dense[TGI_MAX_RANK];
    const tgi_desc *d = &ctx->src[0], *in = &ctx->src[j];
    if (!tgi_given(ctx, j))
        return;
    *(s ? &p->shift : &p->scale) = j;
    tgi_dense_strides(in, dense);
    for (int k = 0; k < in->rank; k++)
        p->side[s][d->rank - in->rank + k] = in->dim[k] == 1 ? 0 : dense[k];
}

static int plan_softmax(const tgi_op_ctx *ctx, cu_row_plan *p, int kind)
{
    int64_t outer, n, inner;
    int axis;
    no_sides(p, kind);
    if (tgi_softmax_rows(ctx, &axis, &outer, &n, &inner, NULL) != TG_OK)
        return 0;
    for (int k = axis; k < ctx->src[0].rank; k++)
        p->bits |= k == axis || ctx->opset < 13 ? 1u << k : 0;
    return 1;
}
static int plan_soft(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    return plan_softmax(ctx, p, CU_SOFT);
}
static int plan_log(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    return plan_softmax(ctx, p, CU_LOG_SOFT);
}
static int plan_hard(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    return plan_softmax(ctx, p, CU_HARD);
}

static int plan_lp(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    const lp_norm_attrs *a = (const lp_norm_attrs *)ctx->attrs;
    int axis;
    no_sides(p, a->p == 1 ? CU_NORM1 : CU_NORM2);
    if (tgi_axis(a->axis, ctx->src[0].rank, &axis, NULL) != TG_OK)
        return 0;
    p->bits = 1u << axis;
    return 1;
}

static int plan_axis_norm(const tgi_op_ctx *ctx, cu_row_plan *p, int kind)
{
    const layer_norm_attrs *a = (const layer_norm_attrs *)ctx->attrs;
    int axis;
    no_sides(p, kind);
    if (tgi_axis(a->axis, ctx->src[0].rank, &axis, NULL) != TG_OK)
        return 0;
    for (int k = axis; k < ctx->src[0].rank; k++)
        p->bits |= 1u << k;
    p->epsilon = a->epsilon;
    side_of(ctx, p, 0, 1);
    side_of(ctx, p, 1, 2);
    return 1;
}
static int plan_layer(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    return plan_axis_norm(ctx, p, CU_CENTRE);
}
static int plan_rms(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    return plan_axis_norm(ctx, p, CU_SCALE);
}

static int plan_mvn(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    no_sides(p, CU_MVN);
    return tgi_mvn_axes(ctx, &p->bits, NULL) == TG_OK;
}

/* Numbers per channel. */
static void channel_side(cu_row_plan *p, int s, int j)
{
    *(s ? &p->shift : &p->scale) = j;
    p->side[s][1] = 1;
}

static int plan_instance(const tgi_op_ctx *ctx, cu_row_plan *p)
{
    no_sides(p, CU_CENTRE);
    p->epsilon = ((const instance_norm_attrs *)ctx->attrs)->epsilon;
    for (int k = 2; k < ctx->src[0].rank; k++)
        p->bits |= 1u << k;
    channel_side(p, 0, 1);
    channel_side(p, 1, 2);
    return 1;
}

/* The data's axes with a stride in the data and in both sides. */
static void walks_of(const tgi_op_ctx *ctx, const cu_row_plan *p, cu_walk<3> *outer,
                     cu_walk<3> *inner)
{
    const tgi_desc *d = &ctx->src[0];
    int64_t dense[TGI_MAX_RANK];
    tgi_dense_strides(d, dense);
    cu_walk_begin(outer);
    cu_walk_begin(inner);
    for (int k = 0; k < d->rank; k++) {
        const int64_t stride[3] = {dense[k], p->side[0][k], p->side[1][k]};
        cu_walk_axis<3>(p->bits >> k & 1u ? inner : outer, d->dim[k], stride);
    }
}

static uint32_t sides_of(const cu_row_plan *p)
{
    return 1u | (p->scale < 0 ? 0 : 1u << p->scale) | (p->shift < 0 ? 0 : 1u << p->shift);
}

static int accepts_rows(cu_row_plan_fn fn, const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    cu_row_plan p;
    return cu_flat_accepts(ctx, lay) && !ctx->const_src[0] && ctx->n_dst <= 3 && fn(ctx, &p);
}

static int team_of(const cu_row_args *a)
{
    const int last = a->outer.rank - 1;
    return cu_team_of(a->rows.n, last < 0 ? 0 : a->outer.stride[0][last]);
}

template <class T> static void run_rows(cu_row_plan_fn fn, const tgi_call *call)
{
    cu_row_plan p;
    cu_flat f;
    cu_row_args a;
    if (!fn(call->ctx, &p))
        return; /* `accepts` said no */
    memset(&a, 0, sizeof a);
    cu_flat_begin<T, float>(&f, call, sides_of(&p));
    walks_of(call->ctx, &p, &a.outer, &a.inner);
    a.src = f.src[0];
    a.dst = f.dst[0];
    a.mean = call->ctx->n_dst > 1 ? f.dst[1] : NULL;
    a.factor = call->ctx->n_dst > 2 ? f.dst[2] : NULL;
    a.scale = p.scale < 0 ? NULL : f.src[p.scale];
    a.shift = p.shift < 0 ? NULL : f.src[p.shift];
    a.const_scale = p.scale >= 0 && call->ctx->const_src[p.scale];
    a.const_shift = p.shift >= 0 && call->ctx->const_src[p.shift];
    a.kind = p.kind;
    a.epsilon = p.epsilon;
    a.rows.n = cu_walk_count(a.inner);
    const int64_t rows = cu_walk_count(a.outer);
    a.rows.rows = f.count(a.rows.n ? rows : 0);
    cu_rows_launch(call, team_of(&a), rows, a, cu_flat_row<T, 1>, cu_flat_row<T, 32>,
                   cu_flat_row<T, 256>);
    cu_flat_end<T>(&f);
}

#define CU_ROWS(symbol, op, fn)                                                                \
    template <class T>                                                                         \
    static int accepts_##symbol(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)             \
    {                                                                                          \
        return accepts_rows(fn, ctx, lay);                                                     \
    }                                                                                          \
    template <class T>                                                                         \
    static size_t bytes_##symbol(const tgi_op_ctx *ctx, const tgi_layout_hint *)               \
    {                                                                                          \
        cu_row_plan p;                                                                         \
        return fn(ctx, &p) ? cu_flat_const_bytes<float>(ctx, sides_of(&p)) : 0;                \
    }                                                                                          \
    template <class T>                                                                         \
    static void pack_##symbol(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)       \
    {                                                                                          \
        cu_row_plan p;                                                                         \
        if (fn(ctx, &p))                                                                       \
            cu_flat_const_pack<float>(ctx, sides_of(&p), dst);                                 \
    }                                                                                          \
    template <class T> static void run_##symbol(const tgi_call *call)                          \
    {                                                                                          \
        run_rows<T>(fn, call);                                                                 \
    }                                                                                          \
    CU_FLAT_VARIANT(symbol, "cu_flat_row", op, accepts_##symbol, bytes_##symbol,               \
                    pack_##symbol, run_##symbol)

CU_ROWS(flat_softmax, "Softmax", plan_soft)
CU_ROWS(flat_log_softmax, "LogSoftmax", plan_log)
CU_ROWS(flat_hardmax, "Hardmax", plan_hard)
CU_ROWS(flat_lp_normalization, "LpNormalization", plan_lp)
CU_ROWS(flat_layer_norm, "LayerNormalization", plan_layer)
CU_ROWS(flat_rms_norm, "RMSNormalization", plan_rms)
CU_ROWS(flat_mvn, "MeanVarianceNormalization", plan_mvn)
CU_ROWS(flat_instance_norm, "InstanceNormalization", plan_instance)

/* ---- Reductions -------------------------------------------------------------------------- */

struct cu_reduce_args {
    cu_rows rows;
    const char *src;
    char *dst;
    int32_t kind, last; /* a fold; or a search for the largest, kind -1, or smallest, -2 */
    cu_walk<1> outer, inner;
};

struct cu_fold_of {
    cu_fold<double> f;
    __device__ __forceinline__ void from_lane(const cu_fold_of &x, int apart)
    {
        f.acc = cu_down(x.f.acc, apart);
        f.top = cu_down(x.f.top, apart);
    }
    __device__ __forceinline__ void first_lane(const cu_fold_of &x)
    {
        f.acc = cu_first(x.f.acc);
        f.top = cu_first(x.f.top);
    }
};

template <class T, int TEAM, class F>
__device__ __forceinline__ void cu_each_folded(const cu_reduce_args *a, int64_t base,
                                               const F &fn)
{
    for (int64_t i = cu_member<TEAM>(); i < a->rows.n; i += TEAM) {
        int64_t off[1];
        cu_walk_to<1>(a->inner, i, off);
        fn(cu_float(reinterpret_cast<const T *>(a->src)[base + off[0]]), i);
    }
}

template <class T, int TEAM>
__device__ __forceinline__ float cu_fold_row(const cu_reduce_args *a, int64_t base)
{
    const int kind = a->kind;
    cu_fold_of x = {cu_fold_start<double>(kind)};
    cu_each_folded<T, TEAM>(a, base,
                            [&](float v, int64_t) { cu_fold_add(kind, &x.f, (double)v); });
    x = cu_team<TEAM>(x, [kind](const cu_fold_of &p, const cu_fold_of &q) {
        return cu_fold_of{cu_fold_merge(kind, p.f, q.f)};
    });
    return cu_fold_result(kind, x.f, (double)a->rows.n);
}

template <class T, int TEAM>
__device__ __forceinline__ float cu_search_row(const cu_reduce_args *a, int64_t base)
{
    const float sign = a->kind == -1 ? 1.0f : -1.0f;
    const bool last = a->last != 0;
    cu_best_of best = {0.0f, -1};
    cu_each_folded<T, TEAM>(a, base, [&](float v, int64_t i) {
        const float s = sign * v;
        if (best.at < 0 || s > best.v || (last && s >= best.v))
            best = cu_best_of{s, i};
    });
    return (float)cu_team_best<TEAM>(best, last).at;
}

template <class T, int TEAM> CU_KERNEL(cu_flat_reduce, cu_reduce_args, CU_FLAT_THREADS, 2)
{
    cu_each_row<TEAM>(a->rows, [&](int64_t row) {
        int64_t base[1];
        cu_walk_to<1>(a->outer, row, base);
        const float v =
            a->kind < 0 ? cu_search_row<T, TEAM>(a, base[0]) : cu_fold_row<T, TEAM>(a, base[0]);
        if (cu_member<TEAM>() == 0)
            reinterpret_cast<T *>(a->dst)[row] = cu_element<T>(v);
    });
}

template <class T>
static void reduce_axes(const tgi_call *call, unsigned bits, int kind, int64_t last)
{
    const tgi_desc *d = &call->ctx->src[0];
    int64_t dense[TGI_MAX_RANK];
    cu_flat f;
    cu_reduce_args a;
    memset(&a, 0, sizeof a);
    cu_flat_begin<T, float>(&f, call, 1u);
    tgi_dense_strides(d, dense);
    for (int k = 0; k < d->rank; k++) {
        const int64_t stride[1] = {dense[k]};
        cu_walk_axis<1>(bits >> k & 1u ? &a.inner : &a.outer, d->dim[k], stride);
    }
    a.src = f.src[0];
    a.dst = f.dst[0];
    a.kind = kind;
    a.last = last != 0;
    a.rows.n = cu_walk_count(a.inner);
    const int64_t rows = cu_walk_count(a.outer);
    a.rows.rows = f.count(rows);
    const int64_t side = a.outer.rank ? a.outer.stride[0][a.outer.rank - 1] : 0;
    cu_rows_launch(call, cu_team_of(a.rows.n, side), rows, a, cu_flat_reduce<T, 1>,
                   cu_flat_reduce<T, 32>, cu_flat_reduce<T, 256>);
    cu_flat_end<T>(&f);
}

static int accepts_reduce(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    unsigned bits;
    return cu_flat_accepts(ctx, lay) && !ctx->const_src[0] && tgi_given(ctx, 0) &&
           tgi_reduce_axes(ctx, &bits, NULL) == TG_OK;
}

template <class T, int KIND> static void run_reduce(const tgi_call *call)
{
    unsigned bits;
    if (tgi_reduce_axes(call->ctx, &bits, NULL) == TG_OK)
        reduce_axes<T>(call, bits, KIND, 0);
}

#define CU_FLAT_REDUCE_OF(suffix, T, symbol, op, kind)                                         \
    constexpr tgi_variant cu_flat_##symbol##_##suffix = cu_flat_variant(                       \
        "cu_flat_reduce", op, accepts_reduce, NULL, NULL, run_reduce<T, kind>);
#define CU_FLAT_REDUCE(...) CU_ELEMENTS(CU_FLAT_REDUCE_OF, __VA_ARGS__)
CU_FOLD_LIST(CU_FLAT_REDUCE)

/* The place is a number of the element type: it has to be one. */
template <class T> static int accepts_arg(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const arg_attrs *a = (const arg_attrs *)ctx->attrs;
    tgi_desc dst = ctx->dst[0];
    tgi_op_ctx numbers = *ctx;
    int axis;
    dst.dtype = TG_DTYPE_F32;
    numbers.dst = &dst;
    return cu_flat_accepts(&numbers, lay, CU_ALL_INTEGERS) && !ctx->const_src[0] &&
           tgi_axis(a->axis, ctx->src[0].rank, &axis, NULL) == TG_OK &&
           ctx->src[0].dim[axis] <= cu_counts_to<T>();
}

template <class T, int KIND> static void run_arg(const tgi_call *call)
{
    const arg_attrs *a = (const arg_attrs *)call->ctx->attrs;
    int axis;
    if (tgi_axis(a->axis, call->ctx->src[0].rank, &axis, NULL) == TG_OK)
        reduce_axes<T>(call, 1u << axis, KIND, a->last);
}

#define CU_FLAT_ARG_OF(suffix, T, symbol, op, kind)                                            \
    constexpr tgi_variant cu_flat_##symbol##_##suffix =                                        \
        cu_flat_variant("cu_flat_reduce", op, accepts_arg<T>, NULL, NULL, run_arg<T, kind>);
#define CU_FLAT_ARG(...) CU_ELEMENTS(CU_FLAT_ARG_OF, __VA_ARGS__)
CU_FLAT_ARG(arg_max, "ArgMax", -1)
CU_FLAT_ARG(arg_min, "ArgMin", -2)
