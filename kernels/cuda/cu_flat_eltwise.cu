/* cu_flat_eltwise.cu - pointwise operators over whole arrays: operands broadcast, an array or a
 * constant each. The formulas are those of the kernels for images (cu_formula.cuh).
 *
 * A thread computes V neighbours along the innermost axis, where that axis is as long as that
 * and every operand has neighbours or one number there. */
#include "kernels/cuda/cu_flat.cuh"
#include "kernels/cuda/cu_formula.cuh"
#include "kernels/cuda/cu_ops.cuh"

#define CU_SIDES TGI_OP_MAX_SRC

/* An operand: elements, or float32 when it is constant. */
struct cu_array {
    const char *at;
    int32_t constant, neighbours; /* 0: one number serves all V */
};

template <class F> struct cu_flat_args {
    int64_t n;
    char *dst;
    F formula;
    cu_walk<CU_SIDES> walk;
    cu_array side[CU_SIDES];
};

template <class T, int V, class F> struct cu_array_reader {
    const cu_flat_args<F> *a;
    int64_t i;
    /* Where the operand's first number is. */
    __device__ __forceinline__ int64_t place(int k) const
    {
        const cu_walk<CU_SIDES> &w = a->walk;
        int64_t rest = i, off = 0;
        for (int axis = w.rank - 1; axis > 0; axis--) {
            const int64_t at = cu_take_axis(&rest, w.dim[axis]);
            off += at * w.stride[k][axis];
        }
        return off + rest * w.stride[k][0];
    }
    __device__ __forceinline__ void operator()(int k, float (&v)[V]) const
    {
        const cu_array &s = a->side[k];
        const int64_t at = place(k);
        if (V > 1 && s.neighbours && s.constant) {
            cu_load<float, V>(reinterpret_cast<const float *>(s.at) + at, v);
        } else if (V > 1 && s.neighbours) {
            cu_load<T, V>(reinterpret_cast<const T *>(s.at) + at, v);
        } else {
            const float one = s.constant ? reinterpret_cast<const float *>(s.at)[at]
                                         : cu_float(reinterpret_cast<const T *>(s.at)[at]);
#pragma unroll
            for (int k2 = 0; k2 < V; k2++)
                v[k2] = one;
        }
    }
};

/* Bits of two integers, as two's complement has them; shifts are of unsigned ones of 16 bits at
 * most. `mask`: to the left, of the bits that the type has; 0: to the right. A formula of its
 * own: the others' kernels have no registers left. */
struct cu_bits_formula {
    int32_t kind, mask;
    __device__ __forceinline__ float one(float x, float y) const
    {
        const uint32_t n = (uint32_t)fminf(y, 31.0f);
        switch (kind) {
        case CU_BIT_AND:
            return (float)((int32_t)x & (int32_t)y);
        case CU_BIT_OR:
            return (float)((int32_t)x | (int32_t)y);
        case CU_BIT_XOR:
            return (float)((int32_t)x ^ (int32_t)y);
        default: /* CU_SHIFT */
            return (float)(mask ? (uint32_t)x << n & (uint32_t)mask : (uint32_t)x >> n);
        }
    }
    template <int V, class R>
    __device__ __forceinline__ void at(const R &read, float (&v)[V]) const
    {
        float y[V];
        read(0, v);
        read(1, y);
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = one(v[i], y[i]);
    }
};

template <class T, int V, class F>
CU_KERNEL(cu_flat_pointwise, cu_flat_args<F>, CU_FLAT_THREADS, 4)
{
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step()) {
        const cu_array_reader<T, V, F> read = {a, i};
        float v[V];
        a->formula.template at<V>(read, v);
        cu_save<T, V>(reinterpret_cast<T *>(a->dst) + i * V, v);
    }
}

/* ---- Host -------------------------------------------------------------------------------- */

static uint32_t sides_of(const cu_row *r, const tgi_op_ctx *ctx)
{
    return (1u << cu_operands_of(r, ctx)) - 1u;
}

/* Integers that it makes are elements: constants among which it chooses; bits where the type
 * has no other numbers; what a cast cuts off or wraps, but for numbers below 0 in an unsigned
 * type that goes further than elements do. */
template <class T> static int accepts_integers(const cu_row *r, const tgi_op_ctx *ctx)
{
    const tg_dtype to = ctx->dst[0].dtype;
    if (r->integers == CU_I_NONE)
        return 1;
    if (!cu_flat_const_exact<T>(ctx, (1u << ctx->n_src) - 1u))
        return 0;
    if (r->kind == CU_CAST)
        return to != TG_DTYPE_U64 && to != TG_DTYPE_U32 &&
               (to != TG_DTYPE_U16 || cu_flat_holds<T>(to));
    if (r->integers != CU_I_BITS)
        return 1;
    return cu_flat_holds<T>(to) &&
           (r->kind != CU_SHIFT || to == TG_DTYPE_U8 || to == TG_DTYPE_U16);
}

template <class T>
static int accepts_row(const cu_row *r, const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int n = cu_operands_of(r, ctx);
    const cu_integers which = r->integers == CU_I_NONE ? CU_NO_INTEGERS : CU_ALL_INTEGERS;
    return cu_flat_accepts(ctx, lay, which) && ctx->n_dst == 1 && n >= 1 && n <= ctx->n_src &&
           n <= CU_SIDES && accepts_integers<T>(r, ctx);
}

static cu_walk<CU_SIDES> walk_of(const cu_row *r, const tgi_op_ctx *ctx)
{
    const tgi_desc *d = &ctx->dst[0];
    int64_t dense[CU_SIDES][TGI_MAX_RANK], stride[CU_SIDES];
    const int n = cu_operands_of(r, ctx);
    cu_walk<CU_SIDES> w;
    cu_walk_begin(&w);
    for (int i = 0; i < n; i++)
        tgi_dense_strides(&ctx->src[i], dense[i]);
    for (int k = 0; k < d->rank; k++) {
        memset(stride, 0, sizeof stride);
        for (int i = 0; i < n; i++) {
            const int at = k - cu_lead_of(r, ctx, i);
            if (at >= 0 && at < ctx->src[i].rank && ctx->src[i].dim[at] != 1)
                stride[i] = dense[i][at];
        }
        cu_walk_axis(&w, d->dim[k], stride);
    }
    return w;
}

/* Numbers that a thread computes at once. */
static int vector_of(const cu_walk<CU_SIDES> &w, int n, int most)
{
    const int last = w.rank - 1;
    if (last < 0 || w.dim[last] % most)
        return 1;
    for (int i = 0; i < n; i++) {
        if (w.stride[i][last] > 1)
            return 1;
        for (int k = 0; k < last; k++)
            if (w.stride[i][last] && w.stride[i][k] % most)
                return 1;
    }
    return most;
}

template <class T, class F>
static void put_row(const cu_row *r, const tgi_call *call, const F &formula)
{
    const int n = cu_operands_of(r, call->ctx), most = 16 / (int)sizeof(T);
    cu_flat f;
    cu_flat_args<F> a;
    memset(&a, 0, sizeof a);
    cu_flat_begin<T, float>(&f, call, sides_of(r, call->ctx));
    a.walk = walk_of(r, call->ctx);
    const int v = vector_of(a.walk, n, most);
    for (int i = 0; i < n; i++) {
        a.side[i].at = f.src[i];
        a.side[i].constant = call->ctx->const_src[i] != NULL;
        a.side[i].neighbours = a.walk.rank && a.walk.stride[i][a.walk.rank - 1];
    }
    cu_walk_vectors(&a.walk, v);
    a.formula = formula;
    a.dst = f.dst[0];
    const int64_t count = cu_count(&call->ctx->dst[0]) / v;
    a.n = f.count(count);
    void (*kernel)(const cu_flat_args<F> *) =
        v > 1 ? cu_flat_pointwise<T, 16 / (int)sizeof(T), F> : cu_flat_pointwise<T, 1, F>;
    cu_launch(call, kernel, cu_flat_grid(count, CU_FLAT_THREADS), dim3(CU_FLAT_THREADS), 0, a);
    cu_flat_end<T>(&f);
}

template <class T> static void run_row(const cu_row *r, const tgi_call *call)
{
    if (r->integers == CU_I_BITS) {
        float a, b;
        int32_t mask;
        cu_params_of(r, call->ctx, &a, &b, &mask);
        put_row<T>(r, call, cu_bits_formula{r->kind, mask});
        return;
    }
    cu_formula_of(r, call->ctx, [&](auto formula) { put_row<T>(r, call, formula); });
}

#define CU_FLAT_POINTWISE(name_)                                                               \
    template <class T>                                                                         \
    static int accepts_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)              \
    {                                                                                          \
        return accepts_row<T>(&cu_row_##name_, ctx, lay);                                      \
    }                                                                                          \
    template <class T>                                                                         \
    static size_t bytes_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *)                \
    {                                                                                          \
        return cu_flat_const_bytes<float>(ctx, sides_of(&cu_row_##name_, ctx));                \
    }                                                                                          \
    template <class T>                                                                         \
    static void pack_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)        \
    {                                                                                          \
        cu_flat_const_pack<float>(ctx, sides_of(&cu_row_##name_, ctx), dst);                   \
    }                                                                                          \
    template <class T> static void run_##name_(const tgi_call *call)                           \
    {                                                                                          \
        run_row<T>(&cu_row_##name_, call);                                                     \
    }                                                                                          \
    CU_FLAT_VARIANT(flat_##name_, "cu_flat_pointwise", #name_, accepts_##name_, bytes_##name_, \
                    pack_##name_, run_##name_)
CU_POINTWISE_LIST(CU_FLAT_POINTWISE)
CU_BITS_LIST(CU_FLAT_POINTWISE)
