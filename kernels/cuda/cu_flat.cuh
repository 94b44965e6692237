/* cu_flat.cuh - nodes over whole arrays: tokens, tables, whatever is no image.
 *
 * A flat value lies dense and row-major in the element type. A source that is an image is first
 * copied into such an array in scratch, a result that is one is copied out of it, so the
 * kernels between see arrays alone:
 *
 *     cu_flat f;
 *     cu_flat_begin<T>(&f, call, constants, form);     arrays of all sources and results
 *     ... cu_launch(call, kernel, grid, block, 0, args) ...
 *     cu_flat_end<T>(&f);
 *
 * Constants of any type travel in the packed block, in the element type or as float32, each on
 * a border of 64 bytes. What is launched follows from shapes alone. At rest (an empty box)
 * kernels get nothing to do: `f.count(n)` is 0 then.
 *
 * A *walk* is how an index of the result becomes places in N arrays: axes with a stride for
 * each; axes that all arrays step through alike are one. */
#ifndef TGI_CU_FLAT_CUH
#define TGI_CU_FLAT_CUH

#include "kernels/cuda/cu_map.cuh"

extern "C" {
#include "kernels/ops/dense_plan.h"
}

#define CU_FLAT_THREADS 256
#define CU_FLAT_BLOCKS (1 << 20) /* at most: threads go on in strides of the grid */

/* ---- Host: what is there ----------------------------------------------------------------- */

inline int64_t cu_count(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? n : 0;
}

/* Integers are elements like all numbers, and exact: whoever makes them (Cast, ArgMax, the
 * places of MaxPool) is refused where one would be no element. So what moves or compares them
 * takes every type; what computes with them cannot wrap as their type does, and takes none. */
typedef enum cu_integers { CU_NO_INTEGERS, CU_ALL_INTEGERS } cu_integers;

inline int cu_flat_type(tg_dtype t, cu_integers which)
{
    return t == TG_DTYPE_F32 || t == TG_DTYPE_BOOL ||
           (which == CU_ALL_INTEGERS && !tgi_dtype_is_float(t));
}

/* Every number of the type is an element. */
template <class T> inline int cu_flat_holds(tg_dtype t)
{
    return t == TG_DTYPE_BOOL || t == TG_DTYPE_U8 || t == TG_DTYPE_I8 ||
           ((t == TG_DTYPE_U16 || t == TG_DTYPE_I16) && cu_counts_to<T>() >= 1 << 16);
}

/* Every activation is of a type that the device holds, every image of extents that fit. */
inline int cu_flat_accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay,
                           cu_integers which = CU_NO_INTEGERS)
{
    if (!lay->flat || lay->n_epi || lay->n_doubled)
        return 0;
    for (int j = 0; j < ctx->n_src; j++) {
        if (ctx->const_src[j] || !tgi_given(ctx, j))
            continue;
        if (!cu_flat_type(ctx->src[j].dtype, which) || lay->src_segs[j] != 1 ||
            (!(ctx->flat_src >> j & 1u) && !cu_fits(&ctx->src[j])))
            return 0;
    }
    for (int d = 0; d < ctx->n_dst; d++)
        if (!cu_flat_type(ctx->dst[d].dtype, which) ||
            (!(ctx->flat_dst >> d & 1u) && !cu_fits(&ctx->dst[d])))
            return 0;
    return 1;
}

/* ---- Host: constants --------------------------------------------------------------------- */

inline size_t cu_flat_align(size_t n)
{
    return (n + 63) / 64 * 64;
}

/* Of the inputs whose bits are set, those that are constant, as numbers of type C. */
template <class C> inline size_t cu_flat_const_bytes(const tgi_op_ctx *ctx, uint32_t bits)
{
    size_t bytes = 0;
    for (int j = 0; j < ctx->n_src; j++)
        if (bits >> j & 1u && ctx->const_src[j])
            bytes += cu_flat_align(sizeof(C) * (size_t)tgi_const_count(ctx->const_src[j]));
    return bytes;
}

inline void cu_flat_put(float *at, double v)
{
    *at = (float)v;
}
inline void cu_flat_put(__half *at, double v)
{
    *at = __float2half_rn((float)v);
}
inline void cu_flat_put(__nv_bfloat16 *at, double v)
{
    *at = __float2bfloat16_rn((float)v);
}

inline double cu_flat_got(float v)
{
    return (double)v;
}
inline double cu_flat_got(__half v)
{
    return (double)__half2float(v);
}
inline double cu_flat_got(__nv_bfloat16 v)
{
    return (double)__bfloat162float(v);
}

/* Of those constants, integers are numbers of type C. */
template <class C> inline int cu_flat_const_exact(const tgi_op_ctx *ctx, uint32_t bits)
{
    for (int j = 0; j < ctx->n_src; j++) {
        const tgi_constant *c = bits >> j & 1u ? ctx->const_src[j] : NULL;
        const int64_t n = c && !tgi_dtype_is_float(c->desc.dtype) ? tgi_const_count(c) : 0;
        for (int64_t i = 0; i < n; i++) {
            C there;
            cu_flat_put(&there, tgi_num_at(c, i));
            if (!(cu_flat_got(there) == tgi_num_at(c, i)))
                return 0;
        }
    }
    return 1;
}

template <class C>
inline void cu_flat_const_pack(const tgi_op_ctx *ctx, uint32_t bits, void *to)
{
    char *at = (char *)to;
    for (int j = 0; j < ctx->n_src; j++) {
        const tgi_constant *c = bits >> j & 1u ? ctx->const_src[j] : NULL;
        const int64_t n = c ? tgi_const_count(c) : 0;
        for (int64_t i = 0; i < n; i++)
            cu_flat_put((C *)at + i, tgi_num_at(c, i));
        at += cu_flat_align(sizeof(C) * (size_t)n);
    }
}

/* ---- Host: arrays ------------------------------------------------------------------------ */

struct cu_flat {
    const tgi_call *call;
    int live; /* 0: at rest */
    const char *src[TGI_OP_MAX_SRC];
    char *dst[TGI_OP_MAX_DST];
    const char *packed; /* what the variant packed behind the constants */
    char *scratch;      /* what it booked for itself */
    int64_t count(int64_t n) const
    {
        return live ? n : 0;
    }
};

/* cu_flat_move.cu: all of an image as a dense array, and a box of it out of one. */
template <class T>
void cu_flat_take(const tgi_call *call, const tgi_view *from, const tgi_desc *d, void *to);
template <class T>
void cu_flat_give(const tgi_call *call, const void *from, const tgi_desc *d, const tgi_box *box,
                  const tgi_view *to);

inline char *cu_flat_base(const tgi_view *v, size_t element)
{
    return (char *)v->base - v->x0 * (int64_t)element;
}

inline char *cu_flat_next(char **at, const tgi_desc *d, size_t element)
{
    char *here = *at;
    *at += cu_flat_align((size_t)cu_count(d) * element);
    return here;
}

/* T: elements; C: how the constants among `bits` were packed. */
template <class T, class C>
inline void cu_flat_begin(cu_flat *f, const tgi_call *call, uint32_t bits)
{
    const tgi_op_ctx *ctx = call->ctx;
    f->call = call;
    f->live = !tgi_box_empty(&call->box);
    f->packed = (const char *)call->packed;
    f->scratch = (char *)call->scratch;
    for (int j = 0; j < ctx->n_src; j++) {
        f->src[j] = NULL;
        if (ctx->const_src[j]) {
            if (bits >> j & 1u) {
                f->src[j] = f->packed;
                f->packed +=
                    cu_flat_align(sizeof(C) * (size_t)tgi_const_count(ctx->const_src[j]));
            }
        } else if (call->src[j].n_seg && ctx->flat_src >> j & 1u) {
            f->src[j] = cu_flat_base(call->src[j].seg, sizeof(T));
        } else if (call->src[j].n_seg) {
            char *to = cu_flat_next(&f->scratch, &ctx->src[j], sizeof(T));
            cu_flat_take<T>(call, call->src[j].seg, &ctx->src[j], to);
            f->src[j] = to;
        }
    }
    for (int d = 0; d < ctx->n_dst; d++)
        f->dst[d] = ctx->flat_dst >> d & 1u
                        ? cu_flat_base(&call->dst[d], sizeof(T))
                        : cu_flat_next(&f->scratch, &ctx->dst[d], sizeof(T));
}

template <class T> inline void cu_flat_end(const cu_flat *f)
{
    const tgi_op_ctx *ctx = f->call->ctx;
    for (int d = 0; d < ctx->n_dst; d++)
        if (!(ctx->flat_dst >> d & 1u))
            cu_flat_give<T>(f->call, f->dst[d], &ctx->dst[d],
                            f->live ? &f->call->boxes[d] : &f->call->box, &f->call->dst[d]);
}

/* A grid for n pieces of work, `per_block` a block at a time. */
inline dim3 cu_flat_grid(int64_t n, int per_block)
{
    const int64_t blocks = (n + per_block - 1) / per_block;
    return dim3((unsigned)(blocks < 1 ? 1 : blocks < CU_FLAT_BLOCKS ? blocks : CU_FLAT_BLOCKS));
}

/* ---- Walks ------------------------------------------------------------------------------- */

template <int N> struct cu_walk {
    int32_t rank, unused;
    int64_t dim[TGI_CONTRACT_AXES];
    int64_t stride[N][TGI_CONTRACT_AXES];
};

template <int N> inline void cu_walk_begin(cu_walk<N> *w)
{
    memset(w, 0, sizeof *w);
}

/* One more axis, inside of those there are. */
template <int N>
inline void cu_walk_axis(cu_walk<N> *w, int64_t dim, const int64_t (&stride)[N])
{
    if (dim == 1)
        return;
    int joins = w->rank > 0;
    for (int k = 0; k < N && joins; k++)
        joins = w->stride[k][w->rank - 1] == dim * stride[k];
    const int at = joins ? w->rank - 1 : w->rank++;
    w->dim[at] = joins ? w->dim[at] * dim : dim;
    for (int k = 0; k < N; k++)
        w->stride[k][at] = stride[k];
}

template <int N> inline int64_t cu_walk_count(const cu_walk<N> &w)
{
    int64_t n = 1;
    for (int k = 0; k < w.rank; k++)
        n *= w.dim[k];
    return n;
}

/* Walk its last axis in steps of v: vectors of neighbours. */
template <int N> inline void cu_walk_vectors(cu_walk<N> *w, int v)
{
    if (w->rank == 0)
        return;
    w->dim[w->rank - 1] /= v;
    for (int k = 0; k < N; k++)
        w->stride[k][w->rank - 1] *= v;
}

/* The place on an axis of `dim` of what is left of an element's number, which loses it. 32 bits
 * divide several times faster than 64. */
__device__ __forceinline__ int64_t cu_take_axis(int64_t *left, int64_t dim)
{
    if (*left >> 31 == 0 && dim >> 31 == 0) {
        const uint32_t d = (uint32_t)dim, q = (uint32_t)*left / d, at = (uint32_t)*left - q * d;
        *left = q;
        return at;
    }
    const int64_t q = *left / dim, at = *left - q * dim;
    *left = q;
    return at;
}

/* Where element i is in each array. */
template <int N>
__device__ __forceinline__ void cu_walk_to(const cu_walk<N> &w, int64_t i, int64_t (&off)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
        off[k] = 0;
    int axis = w.rank - 1;
    for (; axis > 0; axis--) {
        const int64_t at = cu_take_axis(&i, w.dim[axis]);
#pragma unroll
        for (int k = 0; k < N; k++)
            off[k] += at * w.stride[k][axis];
    }
    if (axis == 0) {
#pragma unroll
        for (int k = 0; k < N; k++)
            off[k] += i * w.stride[k][0];
    }
}

/* This thread's first piece, and how far apart its pieces are. */
__device__ __forceinline__ int64_t cu_flat_first(void)
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t cu_flat_step(void)
{
    return (int64_t)gridDim.x * blockDim.x;
}

/* ---- Variants ---------------------------------------------------------------------------- */

typedef size_t (*cu_bytes_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay);
typedef void (*cu_pack_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst);

constexpr tgi_variant cu_flat_variant(const char *name, const char *op, cu_accepts_fn accepts,
                                      cu_bytes_fn bytes, cu_pack_fn pack, cu_run_fn run)
{
    tgi_variant v = cu_variant(name, op, accepts, run);
    v.flat = 1;
    v.packed_bytes = bytes;
    v.pack = pack;
    return v;
}

/* One operator for each element type; `bytes` and `pack` are of the type too. */
#define CU_FLAT_VARIANT_OF(suffix, T, symbol, name, op, accepts, bytes, pack, run)             \
    constexpr tgi_variant cu_##symbol##_##suffix =                                             \
        cu_flat_variant(name, op, accepts<T>, bytes<T>, pack<T>, run<T>);
#define CU_FLAT_VARIANT(...) CU_ELEMENTS(CU_FLAT_VARIANT_OF, __VA_ARGS__)

#endif
