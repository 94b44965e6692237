/* cu_eltwise.cu - pointwise operators that stand as nodes of their own.
 *
 * An operand is an activation or a constant, and broadcasts along the axes on which it has
 * extent 1: a gate (an image joined with a number per channel) is no case of its own. Constants
 * travel as float32 in the packed block, one after the other.
 *
 * The formulas (cu_formula.cuh) stand in three kernels: the stack that trigonometry wants shall
 * not be the others'. */
#include "kernels/cuda/cu_formula.cuh"
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_side.cuh"

/* ---- Device ------------------------------------------------------------------------------ */

template <class T, int V> struct cu_side_reader {
    const cu_pool &pool;
    const cu_place &p;
    int32_t first;
    __device__ __forceinline__ void operator()(int k, float (&v)[V]) const
    {
        cu_read_side<T, V>(pool, pool.item[first + k].side, p, v);
    }
};

/* F: what is computed at a pixel. */
template <class F> struct cu_pointwise_f {
    F formula;
    int32_t first, unused; /* operands: items of the pool */
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const cu_side_reader<T, V> read = {pool, p, first};
        formula.template at<V>(read, v);
    }
};

/* ---- Host: what is accepted -------------------------------------------------------------- */

static int accepts_row(const cu_row *r, const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const tgi_desc *d = &ctx->dst[0];
    const int n = cu_operands_of(r, ctx);
    if (!cu_fits(d) || lay->n_doubled || n < 1 || n > ctx->n_src || ctx->n_dst != 1)
        return 0;
    for (int i = 0; i < n; i++) {
        const tgi_desc *s = &ctx->src[i];
        if (ctx->const_src[i] ? tgi_const_count(ctx->const_src[i]) >= (int64_t)1 << 31
                              : s->rank != d->rank || lay->src_segs[i] < 1)
            return 0;
    }
    return 1;
}

/* ---- Host: launches ---------------------------------------------------------------------- */

template <class T> static void run_row(const cu_row *r, const tgi_call *call)
{
    cu_formula_of(r, call->ctx, [&](auto formula) {
        cu_map_args<cu_pointwise_f<decltype(formula)>> args;
        const int n = cu_operands_of(r, call->ctx);
        const float *packed = (const float *)call->packed;
        cu_map_begin(&args, call);
        args.f.formula = formula;
        args.f.first = args.pool.n;
        args.f.unused = 0;
        args.pool.n += n;
        for (int i = 0; i < n; i++)
            args.pool.item[args.f.first + i].side =
                cu_side_of(call, i, cu_lead_of(r, call->ctx, i), &packed, &args.pool);
        cu_map_go<T>(&args, call, 0);
    });
}

/* ---- The variants ------------------------------------------------------------------------ */

constexpr tgi_variant
pointwise_variant(const char *op, cu_accepts_fn accepts,
                  size_t (*bytes)(const tgi_op_ctx *, const tgi_layout_hint *),
                  void (*pack)(const tgi_op_ctx *, const tgi_layout_hint *, void *),
                  cu_run_fn run)
{
    tgi_variant v = cu_variant("cu_pointwise", op, accepts, run);
    v.packed_bytes = bytes;
    v.pack = pack;
    return v;
}

#define CU_POINTWISE_OF(suffix, T, name_)                                                      \
    constexpr tgi_variant cu_pointwise_##name_##_##suffix = pointwise_variant(                 \
        #name_, accepts_##name_, bytes_##name_, pack_##name_, run_##name_<T>);
#define CU_POINTWISE(name_)                                                                    \
    static int accepts_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)              \
    {                                                                                          \
        return accepts_row(&cu_row_##name_, ctx, lay);                                         \
    }                                                                                          \
    static size_t bytes_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)             \
    {                                                                                          \
        (void)lay;                                                                             \
        return cu_sides_bytes(ctx, cu_operands_of(&cu_row_##name_, ctx));                      \
    }                                                                                          \
    static void pack_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)     \
    {                                                                                          \
        (void)lay;                                                                             \
        cu_sides_pack(ctx, cu_operands_of(&cu_row_##name_, ctx), (float *)dst);                \
    }                                                                                          \
    template <class T> static void run_##name_(const tgi_call *call)                           \
    {                                                                                          \
        run_row<T>(&cu_row_##name_, call);                                                     \
    }                                                                                          \
    CU_ELEMENTS(CU_POINTWISE_OF, name_)
CU_POINTWISE_LIST(CU_POINTWISE)
