/* cu_epilogue.cuh - the pointwise steps behind a kernel, and the formulas of every step.
 *
 * Host: `epi = cu_pool_epilogue(&args.pool, call)`. Device: `cu_epilogue<T, V>(pool, epi,
 * place, v)` applies the steps in their order to V channels, in float32, before they are
 * rounded to the element type. Which step it is, is the same for all threads: the branches cost
 * a few instructions each. Steps of one or two instructions a lane are unrolled; the others are
 * there once, in a loop that turns the lanes around (indexing them would put them into memory).
 *
 * Meaning and treatment of NaN are those of kernels/cpu/cpu_epilogue.c. */
#ifndef TGI_CU_EPILOGUE_CUH
#define TGI_CU_EPILOGUE_CUH

#include "kernels/cuda/cu_view.cuh"

#include <math.h>

struct cu_epi {
    int32_t first, n; /* steps, in the pool */
};

/* Views of the other operands lie behind the steps. */
inline cu_epi cu_pool_epilogue(cu_pool *pool, const tgi_call *call)
{
    const cu_epi e = {pool->n, call->n_epi};
    pool->n += call->n_epi;
    for (int i = 0; i < call->n_epi; i++) {
        const tgi_epi_step *s = &call->epi[i];
        cu_step d;
        memset(&d, 0, sizeof d);
        d.kind = s->kind;
        d.src = s->src == TGI_EPI_KEPT ? TGI_EPI_KEPT : -1;
        d.a = s->a;
        d.b = s->b;
        d.vec = s->vec;
        if (s->src >= 0 && s->kind >= TGI_EPI_ADD) {
            const cu_operand o = cu_pool_operand(pool, &call->src[s->src]);
            d.src = o.first;
            d.n = o.n;
        }
        pool->item[e.first + i].step = d;
    }
    return e;
}

/* ---- One lane ---------------------------------------------------------------------------- */

__device__ __forceinline__ float cu_sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}
__device__ __forceinline__ float cu_clip(float x, float lo, float hi)
{
    const float v = x < lo ? lo : x;
    return v > hi ? hi : v;
}

/* `tanh_form`: the approximation by tanh, which is a sigmoid of twice its argument. */
__device__ __forceinline__ float cu_gelu(float x, int tanh_form)
{
    if (tanh_form)
        return x / (1.0f + expf(-1.5957691216057308f * (x + 0.044715f * x * x * x)));
    return 0.5f * x * erfcf(-0.70710678118654752f * x);
}

/* Steps worth a loop. `o`: the other operand, or the scalar a. */
__device__ __forceinline__ float cu_step_slow(int kind, float x, float o)
{
    switch (kind) {
    case TGI_EPI_SIGMOID:
        return cu_sigmoid(x);
    case TGI_EPI_TANH:
        return tanhf(x);
    case TGI_EPI_SQRT:
        return sqrtf(x);
    case TGI_EPI_EXP:
        return expf(x);
    case TGI_EPI_ELU:
        return x < 0.0f ? o * expm1f(x) : x;
    case TGI_EPI_SILU:
        return x * cu_sigmoid(x);
    case TGI_EPI_GELU:
        return cu_gelu(x, 0);
    case TGI_EPI_GELU_TANH:
        return cu_gelu(x, 1);
    case TGI_EPI_DIV:
        return x / o;
    default: /* TGI_EPI_RDIV */
        return o / x;
    }
}

/* ---- V lanes ----------------------------------------------------------------------------- */

#define CU_EACH(result)                                                                        \
    do {                                                                                       \
        _Pragma("unroll") for (int i = 0; i < V; i++)                                          \
        {                                                                                      \
            const float x = v[i], o = other[i];                                                \
            (void)o;                                                                           \
            v[i] = (result);                                                                   \
        }                                                                                      \
        return;                                                                                \
    } while (0)

/* v = step(v). `other`: second operand, channel vector, or the scalar a in all lanes. It may be
 * changed. */
template <int V>
__device__ __forceinline__ void cu_step_lanes(int kind, float b, float (&v)[V],
                                              float (&other)[V])
{
    switch (kind) {
    case TGI_EPI_RELU:
        CU_EACH(x < 0.0f ? 0.0f : x);
    case TGI_EPI_LEAKY:
    case TGI_EPI_PRELU:
        CU_EACH(x < 0.0f ? x * o : x);
    case TGI_EPI_CLIP:
        CU_EACH(cu_clip(x, o, b));
    case TGI_EPI_ABS:
        CU_EACH(fabsf(x));
    case TGI_EPI_NEG:
        CU_EACH(-x);
    case TGI_EPI_HARDSIGMOID:
        CU_EACH(cu_clip(x * o + b, 0.0f, 1.0f));
    case TGI_EPI_HARDSWISH:
        CU_EACH(x * cu_clip(x * o + b, 0.0f, 1.0f));
    case TGI_EPI_ADD:
        CU_EACH(x + o);
    case TGI_EPI_SUB:
        CU_EACH(x - o);
    case TGI_EPI_RSUB:
        CU_EACH(o - x);
    case TGI_EPI_MUL:
        CU_EACH(x * o);
    case TGI_EPI_MIN:
        CU_EACH(o < x || o != o ? o : x); /* NaN wins */
    case TGI_EPI_MAX:
        CU_EACH(o > x || o != o ? o : x);
    default:
        break;
    }
#pragma unroll 1
    for (int i = 0; i < V; i++) {
        const float done = cu_step_slow(kind, v[0], other[0]);
#pragma unroll
        for (int k = 0; k + 1 < V; k++) {
            v[k] = v[k + 1];
            other[k] = other[k + 1];
        }
        v[V - 1] = done;
    }
}
#undef CU_EACH

/* What a step joins the running value with. */
template <class T, int V>
__device__ __forceinline__ void cu_step_other(const cu_pool &pool, const cu_step &s,
                                              const cu_place &p, const float (&kept)[V],
                                              float (&other)[V])
{
    if (s.src >= 0 && s.n > 0) {
        const cu_operand o = {s.src, s.n};
        cu_read<T, V>(pool, o, p.z, p.y, p.x, p.c, other);
    } else if (s.vec && s.src != TGI_EPI_KEPT) {
        cu_global(s.vec);
        cu_load<float, V>(s.vec + p.c, other);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            other[i] = s.src == TGI_EPI_KEPT ? kept[i] : s.a;
    }
}

/* An epilogue of one step at most that joins no image: its other operand is the same at all
 * pixels, so it is read once for all of a thread's. */
template <int V> struct cu_light_epilogue {
    int32_t steps = 0, kind = 0;
    float b = 0.0f, other[V] = {};

    /* False: it is another kind of epilogue. */
    __device__ __forceinline__ bool begin(const cu_pool &pool, const cu_epi &e, int32_t c)
    {
        steps = e.n;
        if (steps == 0)
            return true;
        const cu_step &s = pool.item[e.first].step;
        kind = s.kind;
        b = s.b;
        if (steps > 1 || s.src >= 0 || s.src == TGI_EPI_KEPT || kind == TGI_EPI_KEEP ||
            kind == TGI_EPI_SWAP)
            return false;
        if (s.vec) {
            cu_global(s.vec);
            cu_load<float, V>(s.vec + c, other);
        } else {
#pragma unroll
            for (int i = 0; i < V; i++)
                other[i] = s.a;
        }
        return true;
    }

    __device__ __forceinline__ void apply(float (&v)[V]) const
    {
        if (steps == 0)
            return;
        float o[V]; /* cu_step_lanes may change it */
#pragma unroll
        for (int i = 0; i < V; i++)
            o[i] = other[i];
        cu_step_lanes<V>(kind, b, v, o);
    }
};

template <class T, int V>
__device__ __forceinline__ void cu_epilogue(const cu_pool &pool, const cu_epi &e,
                                            const cu_place &p, float (&v)[V])
{
    float kept[V];
#pragma unroll
    for (int i = 0; i < V; i++)
        kept[i] = 0.0f;
    for (int k = 0; k < e.n; k++) {
        const cu_step &s = pool.item[e.first + k].step;
        if (s.kind == TGI_EPI_KEEP || s.kind == TGI_EPI_SWAP) {
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float was = kept[i];
                kept[i] = v[i];
                v[i] = s.kind == TGI_EPI_SWAP ? was : v[i];
            }
            continue;
        }
        float other[V];
        cu_step_other<T, V>(pool, s, p, kept, other);
        cu_step_lanes<V>(s.kind, s.b, v, other);
    }
}

#endif
