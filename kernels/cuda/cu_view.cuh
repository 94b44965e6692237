/* cu_view.cuh - views on the device: plain data made from tgi_view, and how kernels read and
 * write pixels through it.
 *
 * A thread works on V channels of one pixel, V being 1, 2, 4 or 8 as the pixel has lanes (8 of
 * 16-bit numbers are one access of 16 bytes, 8 floats are two), always in float32:
 *
 *     cu_read<T, V>(pool, operand, z, y, x, c, v)     v[i] = channel c + i, 0 beyond the last
 *     cu_store<T, V>(dst, z, y, x, c, v)              unused lanes become 0
 *
 * An operand may have many segments and an epilogue many steps, so they lie in a *pool* at the
 * end of a kernel's arguments, of which only what is used travels to the device.
 *
 * Coordinates are 32 bits wide, offsets in memory 64: `cu_fits` refuses images beyond that.
 * Within a row offsets have 31 bits.
 * Rows must begin where 16 bytes (or a pixel, if it is smaller) can be read at once. */
#ifndef TGI_CU_VIEW_CUH
#define TGI_CU_VIEW_CUH

#include "kernels/cuda/cu_common.cuh"

#include <string.h>

struct cu_view {
    char *base;
    int64_t y_pitch, z_pitch; /* in elements */
    int32_t x0, c, cb;
    uint32_t y_ring, z_ring;
    uint32_t y_magic; /* y mod y_ring without a division, see cu_ring */
};

/* A step of an epilogue: cu_epilogue.cuh. */
struct cu_step {
    int32_t kind;   /* tgi_epi_kind */
    int32_t src, n; /* views of the other operand: items from src on; or TGI_EPI_KEPT, or -1 */
    float a, b;     /* as tgi_epi_step */
    int32_t unused;
    const float *vec; /* device address, or NULL */
};

/* An operand of a pointwise operator, which may be constant and may broadcast. */
struct cu_side {
    int32_t first, n;  /* its views; n = 0: a constant */
    int32_t fixed;     /* bits: axis c, z, y, x (0 to 3) has extent 1 */
    int32_t stride[4]; /* of the constant, on those axes */
    int32_t channels;  /* of the constant: lanes from there on read 0 */
    const float *at;   /* device address of the constant */
};

union cu_item {
    cu_view view;
    cu_step step;
    cu_side side;
};

#define CU_ITEMS 560 /* 32 operands of 16 segments, 16 steps, 16 sides */

/* Last member of a kernel's arguments: items that are not used are not copied. */
struct cu_pool {
    int32_t n, unused;
    cu_item item[CU_ITEMS];
};

struct cu_operand {
    int32_t first, n; /* segments, in the pool */
};

/* Where a thread works. */
struct cu_place {
    int32_t z, y, x, c;
};

/* ---- Host: making arguments -------------------------------------------------------------- */

/* What cu_ring multiplies by: 0 of a ring of one row. */
inline uint32_t cu_ring_magic(int64_t ring)
{
    return ring > 1 ? (uint32_t)(((uint64_t)1 << 32) / (uint64_t)ring + 1) : 0;
}

inline cu_view cu_view_of(const tgi_view *v)
{
    cu_view d;
    d.base = (char *)v->base;
    d.y_pitch = v->y_ring > 1 ? (int64_t)v->y_pitch : 0; /* see cu_ring */
    d.z_pitch = (int64_t)v->z_pitch;
    d.x0 = (int32_t)v->x0;
    d.c = (int32_t)v->c;
    d.cb = v->cb;
    d.y_ring = (uint32_t)v->y_ring;
    d.z_ring = (uint32_t)v->z_ring;
    d.y_magic = cu_ring_magic(v->y_ring);
    return d;
}

inline cu_operand cu_pool_operand(cu_pool *pool, const tgi_operand *o)
{
    const cu_operand at = {pool->n, o->n_seg};
    for (int s = 0; s < o->n_seg; s++)
        pool->item[pool->n++].view = cu_view_of(&o->seg[s]);
    return at;
}

/* cu_launch of arguments whose last member is `pool`. */
template <class A>
inline void cu_launch_pool(const tgi_call *call, void (*kernel)(const A *), dim3 grid,
                           dim3 block, unsigned shared_bytes, const A *args)
{
    const size_t bytes =
        (size_t)((const char *)&args->pool.item[args->pool.n] - (const char *)args);
    cu_put(call->recorder, (const void *)kernel, grid, block, shared_bytes, args, bytes);
}

/* Extents and what is added to them are below this: a band may begin in the last row and have
 * blocks for as many rows as the image (all bands have the same launches), and a block of 128
 * rows that lie less than 2^16 apart may begin there; so twice an extent and 2^23 fit 31 bits.
 */
#define CU_MOST_EXTENT (((int64_t)1 << 30) - ((int64_t)1 << 23))
#define CU_MOST_STRIDE ((int64_t)1 << 16) /* of a window, below */
#define CU_MOST_PADDING ((int64_t)1 << 22)
#define CU_MOST_CHANNELS ((int64_t)1 << 27) /* kernels count a few times as many */
#define CU_MOST_ROW ((int64_t)1 << 30)      /* elements of one, and margins beside the image */

/* 1: extents fit, and rows of all slabs, and elements of a row; the ranks that run. */
inline int cu_fits(const tgi_desc *d)
{
    if (d->rank < 3 || d->rank > 5 || d->dim[0] != 1 || d->dim[1] >= CU_MOST_CHANNELS)
        return 0;
    for (int k = 1; k < d->rank; k++)
        if (d->dim[k] < 1 || d->dim[k] >= CU_MOST_EXTENT)
            return 0;
    return (d->rank < 5 || d->dim[2] * d->dim[3] < CU_MOST_EXTENT) &&
           d->dim[d->rank - 1] * tgi_whole_pixel(d->dim[1]) < CU_MOST_ROW;
}

/* 1: so do the coordinates that a window reaches. */
inline int cu_window_fits(const tgi_geom *g)
{
    for (int i = 0; i < 3; i++)
        if (g->in[i] + g->k[i] * g->d[i] >= (int64_t)1 << 30 || g->s[i] >= CU_MOST_STRIDE ||
            g->p0[i] <= -CU_MOST_PADDING || g->p0[i] >= CU_MOST_PADDING ||
            g->p1[i] <= -CU_MOST_PADDING || g->p1[i] >= CU_MOST_PADDING)
            return 0;
    return 1;
}

/* Lanes that a thread takes of a pixel of cb lanes. */
inline int cu_lanes(int cb)
{
    return cb < 8 ? cb : 8;
}

/* ---- Elements ---------------------------------------------------------------------------- */

__device__ __forceinline__ float cu_float(float v)
{
    return v;
}
__device__ __forceinline__ float cu_float(__half v)
{
    return __half2float(v);
}

/* The type's name among activations. */
template <class T> constexpr tg_dtype cu_dtype(void)
{
    return TG_DTYPE_F32;
}
template <> constexpr tg_dtype cu_dtype<__half>(void)
{
    return TG_DTYPE_F16;
}
template <> constexpr tg_dtype cu_dtype<__nv_bfloat16>(void)
{
    return TGI_DTYPE_BF16;
}

/* Up to which whole numbers are elements: places and classes have to be. */
template <class T> constexpr int64_t cu_counts_to(void)
{
    return (int64_t)1 << 24;
}
template <> constexpr int64_t cu_counts_to<__half>(void)
{
    return 1 << 11;
}
template <> constexpr int64_t cu_counts_to<__nv_bfloat16>(void)
{
    return 1 << 8;
}

/* False: this generation has no products of such numbers, so no kernel over them is launched
 * there (cu_device.cu says so of the device), and none is compiled. */
template <class T> __device__ __forceinline__ constexpr bool cu_offered(void)
{
    return true;
}
#ifdef TG_CUDA_EMULATED
template <> inline bool cu_offered<__nv_bfloat16>(void)
{
    return tgi_emulated_ampere != 0;
}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <> __device__ __forceinline__ constexpr bool cu_offered<__nv_bfloat16>(void)
{
    return false;
}
#endif

template <class T> __device__ __forceinline__ T cu_element(float v);
template <> __device__ __forceinline__ float cu_element<float>(float v)
{
    return v;
}
template <> __device__ __forceinline__ __half cu_element<__half>(float v)
{
    return __float2half_rn(v);
}

__device__ __forceinline__ float cu_float(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
template <> __device__ __forceinline__ __nv_bfloat16 cu_element<__nv_bfloat16>(float v)
{
    return __float2bfloat16_rn(v);
}

/* V elements that move together, as the bits that one access (two of 16 bytes) takes: as a
 * number of the device's own the compiler would take them apart. */
template <int BYTES> struct alignas(BYTES < 16 ? BYTES : 16) cu_bits {
    unsigned at[BYTES / 4];
};
template <> struct cu_bits<2> {
    unsigned short at[1];
};

#ifdef TG_CUDA_EMULATED
__device__ __forceinline__ void cu_global(const void *)
{
}
template <class B> __device__ __forceinline__ B cu_get_bits(const void *p)
{
    B bits;
    tgi_emulated_aligned(p, alignof(B));
    memcpy(&bits, __builtin_assume_aligned(p, alignof(B)), sizeof bits);
    return bits;
}
template <class B> __device__ __forceinline__ void cu_put_bits(void *p, const B &bits)
{
    tgi_emulated_aligned(p, alignof(B));
    memcpy(__builtin_assume_aligned(p, alignof(B)), &bits, sizeof bits);
}
#else
/* An address in arguments is one of global memory: the compiler cannot know. Not said of what
 * cu_load and cu_save get: that may be shared memory. */
__device__ __forceinline__ void cu_global(const void *p)
{
    __builtin_assume(__isGlobal(p));
}
template <class B> __device__ __forceinline__ B cu_get_bits(const void *p)
{
    return *static_cast<const B *>(p);
}
template <class B> __device__ __forceinline__ void cu_put_bits(void *p, const B &bits)
{
    *static_cast<B *>(p) = bits;
}
#endif

template <class T, int V> __device__ __forceinline__ void cu_load(const T *p, float (&out)[V])
{
    T v[V];
    const cu_bits<sizeof v> bits = cu_get_bits<cu_bits<sizeof v>>(p);
    memcpy(v, &bits, sizeof v);
#pragma unroll
    for (int i = 0; i < V; i++)
        out[i] = cu_float(v[i]);
}

template <class T, int V> __device__ __forceinline__ void cu_save(T *p, const float (&from)[V])
{
    T v[V];
    cu_bits<sizeof v> bits;
#pragma unroll
    for (int i = 0; i < V; i++)
        v[i] = cu_element<T>(from[i]);
    memcpy(&bits, v, sizeof bits);
    cu_put_bits(p, bits);
}

/* v[i] = f(v[i]), for what is long: the loop turns the array around instead of indexing it, so
 * it stays in registers and f is there once. */
template <int V, class F> __device__ __forceinline__ void cu_each(float (&v)[V], const F &f)
{
#pragma unroll 1
    for (int i = 0; i < V; i++) {
        const float next = f(v[0]);
#pragma unroll
        for (int k = 0; k + 1 < V; k++)
            v[k] = v[k + 1];
        v[V - 1] = next;
    }
}

/* ---- Pixels ------------------------------------------------------------------------------ */

/* n mod ring for n < 2^31, where magic = 2^32 / ring + 1: the quotient is at most one too
 * large, for n * (magic - 2^32 / ring) / 2^32 < 1. A ring of one row has pitch 0: any row will
 * do. */
__device__ __forceinline__ int32_t cu_ring(int32_t n, uint32_t ring, uint32_t magic)
{
    const int32_t r = (int32_t)((uint32_t)n - __umulhi((uint32_t)n, magic) * ring);
    return r < 0 ? r + (int32_t)ring : r;
}

template <class T>
__device__ __forceinline__ T *cu_pixel(const cu_view &v, int32_t z, int32_t y, int32_t x)
{
    const int64_t plane = z ? (int64_t)((uint32_t)z % v.z_ring) * v.z_pitch : 0;
    T *at = reinterpret_cast<T *>(v.base) + plane +
            (int64_t)cu_ring(y, v.y_ring, v.y_magic) * v.y_pitch + (int64_t)(x - v.x0) * v.cb;
    cu_global(at);
    return at;
}

/* Channel c of an operand, 0 beyond its last. */
template <class T>
__device__ __forceinline__ float cu_read_one(const cu_pool &pool, cu_operand o, int32_t z,
                                             int32_t y, int32_t x, int32_t c)
{
    for (int s = 0; s < o.n; s++) {
        const cu_view &v = pool.item[o.first + s].view;
        if (c < v.c)
            return cu_float(cu_pixel<T>(v, z, y, x)[c]);
        c -= v.c;
    }
    return 0.0f;
}

/* Channels c, c + step, ... one by one. The loop turns the array around instead of indexing it:
 * it stays in registers, and the code is there once. */
template <class T, int V>
__device__ __forceinline__ void cu_gather(const cu_pool &pool, cu_operand o, int32_t z,
                                          int32_t y, int32_t x, int32_t c, int32_t step,
                                          float (&out)[V])
{
#pragma unroll
    for (int k = 0; k < V; k++)
        out[k] = 0.0f;
#pragma unroll 1
    for (int i = 0; i < V; i++) {
        const float next = cu_read_one<T>(pool, o, z, y, x, c + i * step);
#pragma unroll
        for (int k = 0; k + 1 < V; k++)
            out[k] = out[k + 1];
        out[V - 1] = next;
    }
}

template <class T, int V>
__device__ __forceinline__ void cu_read(const cu_pool &pool, cu_operand o, int32_t z, int32_t y,
                                        int32_t x, int32_t c, float (&out)[V])
{
    const cu_view *v = &pool.item[o.first].view;
    int s = 1;
    int32_t at = c;
    for (; s < o.n && at >= v->c; s++) {
        at -= v->c;
        v++; /* see the assertion below */
    }
    static_assert(sizeof(cu_item) == sizeof(cu_view), "items are stepped as views");
    if (at % V == 0 && at + V <= (s < o.n ? v->c : v->cb))
        cu_load<T, V>(cu_pixel<T>(*v, z, y, x) + at, out);
    else
        cu_gather<T, V>(pool, o, z, y, x, c, 1, out);
}

template <class T, int V>
__device__ __forceinline__ void cu_store(const cu_view &dst, const cu_place &p,
                                         const float (&v)[V])
{
    float used[V];
#pragma unroll
    for (int i = 0; i < V; i++)
        used[i] = p.c + i < dst.c ? v[i] : 0.0f;
    cu_save<T, V>(cu_pixel<T>(dst, p.z, p.y, p.x) + p.c, used);
}

#endif
