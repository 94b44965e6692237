/* cu_pixels.cu - staged pixels to activations and back: the LOAD and STORE steps of a program.
 *
 * Numbers are those of kernels/pixels.h to the bit: two roundings, halves to even, clipping,
 * NaN as 0. Where a pixel lies outside of the region it is another one's copy, or 0, as
 * tgi_pad_index (engine/plan/mapping.c) says; there the loader of the processor does the same.
 *
 * Frames of films that are staged as Y, U and V are loaded by cu_yuv.cu.
 *
 * A thread moves up to 8 channels of a pixel; where a pixel becomes the number of its largest
 * channel it reads them all. The type of the image is looked at in the kernel,
 * once for all of them: these kernels wait for the bus, not for instructions. */
#include "kernels/cuda/cu_channels.cuh"
#include "kernels/cuda/cu_moments.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_staged.cuh"

extern "C" {
#include "kernels/granule.h"
}

struct cu_staged {
    char *at;
    int32_t type; /* tg_dtype */
    int32_t channels, together, pitch;
    int32_t row0, rows, col0, cols;
    int32_t shift[3], extent[3];
    int32_t pad; /* tgi_load_pad */
    float mul, add;
    uint32_t *counts;
    int32_t volume; /* 1: the box has a z axis */
    int32_t pick;   /* tgi_pick */
};

struct cu_pixels_args {
    cu_cells cells;
    cu_view view;
    cu_staged s;
};

/* ---- Load -------------------------------------------------------------------------------- */

/* Element i of staged pixels. */
__device__ __forceinline__ float cu_sample(const char *at, int32_t type, int64_t i)
{
    cu_global(at);
    switch (type) {
    case TG_DTYPE_U8:
    case TG_DTYPE_BOOL:
        return (float)((const uint8_t *)at)[i];
    case TG_DTYPE_I8:
        return (float)((const int8_t *)at)[i];
    case TG_DTYPE_U16:
        return (float)((const uint16_t *)at)[i];
    case TG_DTYPE_I16:
        return (float)((const int16_t *)at)[i];
    case TG_DTYPE_U32:
        return (float)((const uint32_t *)at)[i];
    case TG_DTYPE_I32:
        return (float)((const int32_t *)at)[i];
    case TG_DTYPE_U64:
        return (float)((const uint64_t *)at)[i];
    case TG_DTYPE_I64:
        return (float)((const int64_t *)at)[i];
    case TG_DTYPE_F64:
        return (float)((const double *)at)[i];
    case TG_DTYPE_F16:
        return cu_float(((const __half *)at)[i]);
    default:
        return ((const float *)at)[i];
    }
}

/* Where channel c of a staged pixel lies; slab, row and column count from the first staged. */
__device__ __forceinline__ int64_t cu_staged_at(const cu_staged &s, int32_t slab, int32_t row,
                                                int32_t col, int32_t c)
{
    const int32_t planes = s.channels / s.together, plane = c / s.together;
    return ((((int64_t)slab * planes + plane) * s.rows + row) * s.cols + col) * s.pitch +
           c % s.together;
}

template <class T, int V>
__global__ void __launch_bounds__(256, 4) cu_load_pixels(const cu_pixels_args *__restrict__ a)
{
    const cu_staged &s = a->s;
    cu_place p;
    if (!cu_offered<T>() || !cu_place_of<V>(a->cells, &p))
        return;
    const int32_t y = cu_pad_index(s.pad, p.y - s.shift[1], s.extent[1]);
    const int32_t x = cu_pad_index(s.pad, p.x - s.shift[2], s.extent[2]);
    const int32_t z = s.volume ? cu_pad_index(s.pad, p.z - s.shift[0], s.extent[0]) : 0;
    const int there = y >= 0 && x >= 0 && z >= 0;
    float v[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
        v[i] = 0.0f;
        if (there && p.c + i < s.channels)
            v[i] = cu_affine(cu_sample(s.at, s.type,
                                       cu_staged_at(s, p.z - a->cells.lo[0], y - s.row0,
                                                    x - s.col0, p.c + i)),
                             s.mul, s.add);
    }
    cu_store<T, V>(a->view, p, v);
}

/* ---- Store ------------------------------------------------------------------------------- */

/* To an integer type of at most 16 bits. */
__device__ __forceinline__ int32_t cu_to_small(float x, float lo, float hi)
{
    const float v = x > lo ? x : x <= lo ? lo : 0.0f;
    return (int32_t)rintf(v < hi ? v : hi);
}

/* tgi_float_to_half of kernels/half.h: a NaN keeps its sign and is quiet. */
__device__ __forceinline__ void cu_put_half(char *at, int64_t i, float x)
{
    if (x == x)
        ((__half *)at)[i] = __float2half_rn(x);
    else
        ((uint16_t *)at)[i] = (uint16_t)(0x7e00u | (__float_as_uint(x) >> 16 & 0x8000u));
}

#define CU_LARGE(T, LO, HI)                                                                    \
    do {                                                                                       \
        const double v = rint((double)x);                                                      \
        ((T *)at)[i] = v >= (double)(HI)   ? (T)(HI)                                           \
                       : v <= (double)(LO) ? (T)(LO)                                           \
                       : v == v            ? (T)v                                              \
                                           : (T)0;                                                        \
    } while (0)

__device__ __forceinline__ void cu_put_sample(char *at, int32_t type, int64_t i, float x)
{
    cu_global(at);
    switch (type) {
    case TG_DTYPE_U8:
        ((uint8_t *)at)[i] = (uint8_t)cu_to_small(x, 0.0f, 255.0f);
        break;
    case TG_DTYPE_BOOL:
        ((uint8_t *)at)[i] = (uint8_t)cu_to_small(x, 0.0f, 1.0f);
        break;
    case TG_DTYPE_I8:
        ((int8_t *)at)[i] = (int8_t)cu_to_small(x, -128.0f, 127.0f);
        break;
    case TG_DTYPE_U16:
        ((uint16_t *)at)[i] = (uint16_t)cu_to_small(x, 0.0f, 65535.0f);
        break;
    case TG_DTYPE_I16:
        ((int16_t *)at)[i] = (int16_t)cu_to_small(x, -32768.0f, 32767.0f);
        break;
    case TG_DTYPE_U32:
        CU_LARGE(uint32_t, 0u, UINT32_MAX);
        break;
    case TG_DTYPE_I32:
        CU_LARGE(int32_t, INT32_MIN, INT32_MAX);
        break;
    case TG_DTYPE_U64:
        CU_LARGE(uint64_t, 0u, UINT64_MAX);
        break;
    case TG_DTYPE_I64:
        CU_LARGE(int64_t, INT64_MIN, INT64_MAX);
        break;
    case TG_DTYPE_F64:
        ((double *)at)[i] = (double)x;
        break;
    case TG_DTYPE_F16:
        cu_put_half(at, i, x);
        break;
    default:
        ((float *)at)[i] = x;
        break;
    }
}

/* Smallest and largest number that an integer type takes without clipping, as
 * tgi_pixels_outside; infinite for floats. */
__device__ __forceinline__ void cu_type_bounds(int32_t type, float *below, float *above)
{
    double lo = 0, hi = 0;
    switch (type) {
    case TG_DTYPE_BOOL:
        hi = 1;
        break;
    case TG_DTYPE_U8:
        hi = 255;
        break;
    case TG_DTYPE_I8:
        lo = -128, hi = 127;
        break;
    case TG_DTYPE_U16:
        hi = 65535;
        break;
    case TG_DTYPE_I16:
        lo = -32768, hi = 32767;
        break;
    case TG_DTYPE_U32:
        hi = 4294967295.0;
        break;
    case TG_DTYPE_I32:
        lo = -2147483648.0, hi = 2147483647.0;
        break;
    case TG_DTYPE_U64:
        hi = 18446744073709551615.0;
        break;
    case TG_DTYPE_I64:
        lo = -9223372036854775808.0, hi = 9223372036854775807.0;
        break;
    default:
        *below = -INFINITY;
        *above = INFINITY;
        return;
    }
    *below = (float)(lo - 0.5);
    *above = (float)(hi + 0.5);
}

__device__ __forceinline__ bool cu_finite(float v)
{
    return (__float_as_uint(v) & 0x7f800000u) != 0x7f800000u;
}

__global__ void __launch_bounds__(256, 4) cu_clear_counts(const cu_pixels_args *__restrict__ a)
{
    const int32_t slabs = a->cells.hi[0] - a->cells.lo[0];
    const int64_t rows = slabs > 0 ? (int64_t)slabs * (a->cells.hi[1] - a->cells.lo[1]) : 0;
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (a->s.counts && i < 2 * rows)
        a->s.counts[i] = 0;
}

/* Adds a warp's misfits to its row's counts: all its threads have the same row. */
__device__ __forceinline__ void cu_count(uint32_t *of_row, uint32_t nonfinite, uint32_t clipped)
{
    uint32_t both = nonfinite | clipped << 16;
    if (!__any_sync(0xffffffffu, both != 0))
        return;
#pragma unroll
    for (int step = 16; step; step >>= 1)
        both += __shfl_xor_sync(0xffffffffu, both, step);
    if (threadIdx.x % 32 == 0 && (both & 0xffffu))
        atomicAdd(&of_row[0], both & 0xffffu);
    if (threadIdx.x % 32 == 0 && both >> 16)
        atomicAdd(&of_row[1], both >> 16);
}

struct cu_misfits {
    uint32_t nonfinite, clipped;
};

/* Channels p.c and following of a pixel. */
template <int V>
__device__ __forceinline__ cu_misfits cu_put_pixel(const cu_pixels_args *a, const cu_place &p,
                                                   const float (&v)[V])
{
    const cu_staged &s = a->s;
    cu_misfits m = {0, 0};
    float below, above;
    cu_type_bounds(s.type, &below, &above);
#pragma unroll
    for (int i = 0; i < V; i++) {
        if (p.c + i >= s.channels)
            continue;
        const float x = cu_affine(v[i], s.mul, s.add);
        const bool finite = cu_finite(v[i]);
        m.nonfinite += !finite;
        m.clipped += finite && !(x >= below && x <= above);
        cu_put_sample(
            s.at, s.type,
            cu_staged_at(s, p.z - a->cells.lo[0], p.y - s.row0, p.x - s.col0, p.c + i), x);
    }
    return m;
}

/* Channels p.c and following as they are. */
template <class T, int V> struct cu_as_it_is {
    static constexpr int lanes = V;
    static __device__ __forceinline__ bool here(void)
    {
        return cu_offered<T>();
    }
    static __device__ __forceinline__ cu_misfits put(const cu_pixels_args *a, const cu_place &p)
    {
        float v[V];
        cu_load<T, V>(cu_pixel<T>(a->view, p.z, p.y, p.x) + p.c, v);
        return cu_put_pixel<V>(a, p, v);
    }
};

/* The number of the channel that `pick` says, V at a time. */
template <class T, int V> struct cu_number_of {
    static constexpr int lanes = 1;
    static __device__ __forceinline__ bool here(void)
    {
        return cu_offered<T>();
    }
    static __device__ __forceinline__ cu_misfits put(const cu_pixels_args *a, const cu_place &p)
    {
        const int32_t pick = a->s.pick;
        const int32_t last = pick == TGI_PICK_LAST_LARGEST || pick == TGI_PICK_LAST_SMALLEST;
        const float sign =
            pick == TGI_PICK_FIRST_SMALLEST || pick == TGI_PICK_LAST_SMALLEST ? -1.0f : 1.0f;
        const T *at = cu_pixel<T>(a->view, p.z, p.y, p.x);
        cu_best b = {0.0f, 0};
        for (int32_t c = 0; c < a->view.c; c += V) {
            float v[V];
            cu_load<T, V>(at + c, v);
#pragma unroll
            for (int i = 0; i < V; i++)
                if (c + i < a->view.c)
                    b.offer(v[i], c + i, sign, last);
        }
        const float number[1] = {(float)b.at};
        return cu_put_pixel<1>(a, p, number);
    }
};

template <class OF>
__global__ void __launch_bounds__(256, 4) cu_store_pixels(const cu_pixels_args *__restrict__ a)
{
    const cu_cells &cells = a->cells;
    cu_place p;
    cu_misfits m = {0, 0};
    const bool there = cu_place_of<OF::lanes>(cells, &p);
    if (!OF::here() || p.z >= cells.hi[0] || p.y >= cells.hi[1]) /* the whole block */
        return;
    if (there)
        m = OF::put(a, p);
    if (a->s.counts)
        cu_count(a->s.counts + 2 * ((int64_t)(p.z - cells.lo[0]) * (cells.hi[1] - cells.lo[1]) +
                                    p.y - cells.lo[1]),
                 m.nonfinite, m.clipped);
}

/* ---- Moments of rows --------------------------------------------------------------------- */

/* A thread per channel of a granule's row; rows and granules as in a box of the most of both. */
struct cu_sums_args {
    cu_view view;
    double *at;
    int32_t lo[3], hi[3]; /* z, y, x of the box; empty: nothing to do */
    int32_t most_y, most_granules;
    int32_t width; /* of the image */
    int32_t unused;
};

template <class T>
__global__ void __launch_bounds__(256, 4) cu_store_sums(const cu_sums_args *__restrict__ a)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int32_t c = (int32_t)(i % a->view.c),
                  granule = (int32_t)(i / a->view.c % a->most_granules);
    const int64_t row = i / a->view.c / a->most_granules;
    const int32_t z = a->lo[0] + (int32_t)(row / a->most_y),
                  y = a->lo[1] + (int32_t)(row % a->most_y);
    const int32_t x = a->lo[2] + granule * TGI_GRANULE;
    if (!cu_offered<T>() || z >= a->hi[0] || y >= a->hi[1] || x >= a->hi[2])
        return;
    const int32_t granules = (a->hi[2] - a->lo[2] + TGI_GRANULE - 1) / TGI_GRANULE;
    const int64_t of_box = (int64_t)(z - a->lo[0]) * (a->hi[1] - a->lo[1]) + y - a->lo[1];
    const int32_t n = a->width - x < TGI_GRANULE ? a->width - x : TGI_GRANULE;
    double *to = a->at + (of_box * granules + granule) * 2 * a->view.c + c;
    cu_row_moments<T>(cu_pixel<T>(a->view, z, y, x) + c, a->view.cb, n, &to[0], &to[a->view.c]);
}

/* ---- Host -------------------------------------------------------------------------------- */

static cu_staged staged_of(const tgi_device_step *step)
{
    const tgi_device_pixels *p = &step->pixels;
    cu_staged s;
    s.at = (char *)p->at;
    s.type = p->type;
    s.channels = (int32_t)p->channels;
    s.together = (int32_t)p->together;
    s.pitch = (int32_t)(p->pitch ? p->pitch : p->together);
    s.row0 = (int32_t)p->rows.lo;
    s.rows = (int32_t)tgi_range_len(p->rows);
    s.col0 = (int32_t)p->cols.lo;
    s.cols = (int32_t)tgi_range_len(p->cols);
    for (int i = 0; i < 3; i++) {
        s.shift[i] = (int32_t)p->shift[i];
        s.extent[i] = (int32_t)p->extent[i];
    }
    s.pad = p->pad;
    s.mul = p->mul;
    s.add = p->add;
    s.counts = p->counts;
    s.volume = step->call.box.rank == 5;
    s.pick = p->pick;
    return s;
}

template <class T> static void put_sums(const tgi_device_step *step)
{
    const tgi_call *call = &step->call;
    const tgi_view *view = &call->src[0].seg[0];
    cu_sums_args a;
    cu_pixels_args counts;
    cu_shape shape;
    int64_t most[3];
    cu_most_of(call, most);
    counts.cells = cu_cells_of(call, 1, &shape);
    for (int i = 0; i < 3; i++) {
        a.lo[i] = counts.cells.lo[i];
        a.hi[i] = counts.cells.hi[i];
    }
    a.view = cu_view_of(view);
    a.at = (double *)step->pixels.at;
    a.most_y = (int32_t)most[1];
    a.most_granules = (int32_t)((most[2] + TGI_GRANULE - 1) / TGI_GRANULE);
    a.width = a.hi[2]; /* where the box ends before a whole granule the image does */
    a.unused = 0;
    counts.view = a.view;
    counts.s = staged_of(step);
    const int64_t rows = most[0] * most[1];
    cu_launch(call, cu_clear_counts, dim3((unsigned)((2 * rows + 255) / 256)), dim3(256), 0,
              counts);
    cu_launch(call, cu_store_sums<T>,
              dim3((unsigned)((rows * a.most_granules * view->c + 255) / 256)), dim3(256), 0,
              a);
}

typedef void (*cu_pixels_kernel)(const cu_pixels_args *);

template <class T, int V> static cu_pixels_kernel kernel_of(const tgi_device_step *step)
{
    if (step->kind == TGI_STEP_LOAD)
        return cu_load_pixels<T, V>;
    return step->pixels.pick == TGI_PICK_NONE ? cu_store_pixels<cu_as_it_is<T, V>>
                                              : cu_store_pixels<cu_number_of<T, V>>;
}

template <class T> static void put(const tgi_device_step *step)
{
    const tgi_call *call = &step->call;
    const int load = step->kind == TGI_STEP_LOAD;
    if (load && step->pixels.yuv.there) {
        cu_yuv_put(step);
        return;
    }
    if (!load && step->pixels.moments) {
        put_sums<T>(step);
        return;
    }
    const tgi_view *view = load ? &call->dst[0] : &call->src[0].seg[0];
    const int lanes = cu_lanes(view->cb), each = step->pixels.pick == TGI_PICK_NONE;
    cu_shape shape;
    cu_pixels_args a;
    a.cells = cu_cells_of(call, each ? view->cb / lanes : 1, &shape);
    a.view = cu_view_of(view);
    a.s = staged_of(step);
    if (!load) { /* a program's launches are the same in all bands, whoever counts */
        const unsigned rows = shape.grid.x / a.cells.chunks;
        cu_launch(call, cu_clear_counts, dim3((2 * rows + 255) / 256), dim3(256), 0, a);
    }
    const cu_pixels_kernel kernel = lanes == 8   ? kernel_of<T, 8>(step)
                                    : lanes == 4 ? kernel_of<T, 4>(step)
                                    : lanes == 2 ? kernel_of<T, 2>(step)
                                                 : kernel_of<T, 1>(step);
    cu_launch(call, kernel, shape.grid, shape.block, 0, a);
}

void cu_pixels_put(const tgi_device_step *step)
{
    if (step->pixels.element == TG_DTYPE_F16)
        put<__half>(step);
    else if (step->pixels.element == TGI_DTYPE_BF16)
        put<__nv_bfloat16>(step);
    else
        put<float>(step);
}
