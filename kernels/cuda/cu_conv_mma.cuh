/* cu_conv_mma.cuh - convolutions on tensor cores: implicit product of matrices (cu_gemm.cuh) of
 * whatever numbers they multiply, sums in float32. Kinds of numbers are files of their own.
 *
 * Four warps compute 128 pixels times BN channels: 64 x 64 each for BN = 128, 64 x 32 for 64,
 * 32 x BN below. A K step is 64 bytes of a pixel (32 values of 16 bits, 16 of 32), in three
 * stages of shared memory, 48 KiB at most, so that two blocks stay on a multiprocessor and one
 * copies while the other multiplies (on 7.5, which has 64 KiB, only for BN below 64). From 8.0
 * on copies are asynchronous and go two steps ahead, with zeros where a tap lies outside of the
 * image; on 7.5, and for pixels of less than 16 bytes, they wait in registers one step ahead,
 * while the products of the step before are made.
 *
 *     stage:  pixels   [128][4 units of 16 bytes], unit u of row r at u ^ (r / 2 % 4)
 *             weights  [BN][4 units], the same; packed so that a copy is a straight one
 *
 * With that exchange of units the eight rows that ldmatrix reads at once, 64 bytes apart, lie
 * in different banks, as do the eight threads' pieces of a copy.
 *
 * What bounds it, counted in its SASS, unverified on a GPU. BN = 128: a step of a block has 256
 * HMMA.16816 (512 clocks where 1024 multiply-adds are one, as on 8.0), 64 LDSM.x4 and 16 KiB of
 * copies (384 clocks of shared memory at 128 bytes each), and some 190 other instructions a
 * warp (190 clocks with one warp of the block on each scheduler): the products do. 32
 * multiply-adds for a byte copied: 32 bytes a clock, those of pixels mostly from the first
 * level for a 3x3 kernel, those of weights from the second. BN = 64: 256 clocks of products to
 * 288 of shared memory, which does there; narrower ones are bound by it and by the result's way
 * out.
 *
 * What is multiplied is a struct P: how numbers lie in memory, and the product of 16 x 8 of
 * them over 32 bytes of K: m16n8k16 of 16-bit numbers, m16n8k8 of 32-bit ones, whose registers
 * hold the same bytes.
 *
 *     typedef element, weight     see cu_conv_variant.cuh; both of one size
 *     everywhere                  on 7.5 too
 *     few                         pixels of less than 16 bytes too
 *     kinds, cost                 see tgi_variant; of a product, over one of halves
 *     prepare(a), multiply(c, a, b)
 */
#ifndef TGI_CU_CONV_MMA_CUH
#define TGI_CU_CONV_MMA_CUH

#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_conv_variant.cuh"
#include "kernels/cuda/cu_mma.cuh"

/* Internal: every file that includes this makes kernels of its own. */
namespace
{

const int threads = 128, stages = 3;
const int row_bytes = 64; /* a K step of a pixel or a channel */
const int pixel_bytes = CU_BM * row_bytes;

/* Where unit u of row r of a stage's pixels or weights lies. */
__device__ __forceinline__ int unit_at(int row, int unit)
{
    return row * row_bytes + ((unit ^ (row >> 1 & 3)) << 4);
}

template <int BN> struct shape {
    static const int warps_m = BN >= 64 ? 2 : 4;
    static const int wm = CU_BM / warps_m;      /* pixels of a warp */
    static const int wn = BN / (4 / warps_m);   /* channels of a warp */
    static const int mt = wm / 16, nt = wn / 8; /* products in it */
    static const int en = BN < 64 ? BN : 64;    /* channels that are stored together */
    static const int stage_bytes = pixel_bytes + BN * row_bytes;
    static const int weight_units = BN * 4;
    static const int per_thread = (weight_units + threads - 1) / threads;
    static const int sums_bytes = CU_BM * (en + 8) * 4;
    static const int shared_bytes =
        stages * stage_bytes > sums_bytes ? stages *stage_bytes : sums_bytes;
};

/* Sums of a warp. */
template <int BN> struct sums {
    float c[shape<BN>::mt][shape<BN>::nt][4];
};

/* Weights of N columns of products, units 2 * half and the next. */
template <int N>
__device__ __forceinline__ void read_weights(const unsigned char *weights, int n0, int half,
                                             uint32_t (&b)[N][2])
{
    const int lane = (int)threadIdx.x % 32, unit = 2 * half + (lane >> 3 & 1);
    if constexpr (N == 1) {
        cu_ldmatrix2(b[0], weights + unit_at(n0 + lane % 8, unit));
    } else {
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            uint32_t r[4];
            cu_ldmatrix4(r, weights + unit_at(n0 + n * 8 + lane % 8 + (lane >> 4) * 8, unit));
            b[n][0] = r[0];
            b[n][1] = r[1];
            b[n + 1][0] = r[2];
            b[n + 1][1] = r[3];
        }
    }
}

/* Products of one step. */
template <class P, int BN>
__device__ __forceinline__ void multiply(const unsigned char *stage, int wm0, int wn0,
                                         sums<BN> &s)
{
    typedef shape<BN> S;
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        uint32_t b[S::nt][2];
        read_weights<S::nt>(stage + pixel_bytes, wn0, half, b);
#pragma unroll
        for (int m = 0; m < S::mt; m++) {
            uint32_t a[4];
            cu_ldmatrix4(a, stage + unit_at(wm0 + m * 16 + lane % 16, 2 * half + (lane >> 4)));
            P::prepare(a);
#pragma unroll
            for (int n = 0; n < S::nt; n++)
                P::multiply(s.c[m][n], a, b[n]);
        }
    }
}

/* What a thread copies in a step: unit `threadIdx.x % 4` of four pixels, and pieces of weights.
 */
template <class P, int BN, bool FEW> struct copier {
    typedef shape<BN> S;
    typedef typename P::element T;
    static const int unit = 16 / (int)sizeof(T); /* values of one */
    cu_gemm_reader<T, 4, true> pixels;
    const int4 *places;
    const uint4 *weights;
    int lanes;
    int4 next; /* place of the step to come: known before its addresses are wanted */
    uint4 held_pixels[4], held_weights[S::per_thread];

    /* `shared`: all stages. The third is not one where copies go by way of registers. */
    __device__ __forceinline__ void begin(const cu_gemm_args *a, const cu_gemm_block &b,
                                          unsigned char *shared)
    {
        const int t = (int)threadIdx.x;
        pixels.kept = reinterpret_cast<int2 *>(shared + 2 * S::stage_bytes) + t;
        pixels.begin(a, b, t / 4, threads / 4);
        lanes = FEW ? a->lanes : unit;
        places = a->places + b.tile.first + t % 4 * (unit / lanes);
        weights = reinterpret_cast<const uint4 *>(a->weights + b.tile.weights) + t;
        next = __ldg(places);
    }

    /* Pieces of the weights that this thread has. */
    __device__ __forceinline__ bool has(int i) const
    {
        return S::weight_units % threads == 0 ||
               (int)threadIdx.x + i * threads < S::weight_units;
    }

    __device__ __forceinline__ void start_copies(const cu_gemm_args *a, int step,
                                                 unsigned char *stage)
    {
        const int t = (int)threadIdx.x;
        const int4 place = next;
        next = __ldg(places + (step + 1) * 4);
        pixels.move(a, place);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const T *from;
            const bool inside = pixels.at(i, place, &from);
            cu_copy16(stage + unit_at(t / 4 + i * (threads / 4), t % 4),
                      inside ? (const void *)from : (const void *)places, inside);
        }
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                cu_copy16_once(stage + pixel_bytes + (t + i * threads) * 16,
                               weights + (int64_t)step * S::weight_units + i * threads);
    }

    /* The unit of each pixel from places of few lanes: N of them, of numbers like W. */
    template <class W, int N>
    __device__ __forceinline__ void gather(const cu_gemm_args *a, int step)
    {
        union {
            W part[N];
            uint4 all;
        } u[4];
#pragma unroll
        for (int k = 0; k < N; k++) {
            const int4 place = __ldg(places + (step * 4 * N + k));
            pixels.move(a, place);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const T *from;
                W none = {};
                u[i].part[k] = pixels.at(i, place, &from)
                                   ? __ldg(reinterpret_cast<const W *>(from))
                                   : none;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            held_pixels[i] = u[i].all;
    }

    __device__ __forceinline__ void load(const cu_gemm_args *a, int step)
    {
        if constexpr (FEW) {
            const int bytes = lanes * (int)sizeof(T);
            if (bytes == 8)
                gather<uint2, 2>(a, step);
            else if (bytes == 4 || sizeof(T) == 4)
                gather<unsigned, 4>(a, step);
            else
                gather<unsigned short, 8>(a, step);
        } else {
            const int4 place = __ldg(places + step * 4);
            pixels.move(a, place);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const T *from;
                held_pixels[i] = pixels.at(i, place, &from)
                                     ? __ldg(reinterpret_cast<const uint4 *>(from))
                                     : make_uint4(0, 0, 0, 0);
            }
        }
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                held_weights[i] =
                    __ldg(weights + (int64_t)step * S::weight_units + i * threads);
    }

    __device__ __forceinline__ void put(unsigned char *stage) const
    {
        const int t = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < 4; i++)
            *reinterpret_cast<uint4 *>(stage + unit_at(t / 4 + i * (threads / 4), t % 4)) =
                held_pixels[i];
#pragma unroll
        for (int i = 0; i < S::per_thread; i++)
            if (has(i))
                *reinterpret_cast<uint4 *>(stage + pixel_bytes + (t + i * threads) * 16) =
                    held_weights[i];
    }
};

/* All steps; the sums stay in registers. Ahead is the stage of step k + 2, or k + 1 by way of
 * registers. */
template <class P, int BN, bool FEW>
__device__ __forceinline__ void sum_up(const cu_gemm_args *a, const cu_gemm_block &b,
                                       unsigned char *shared, int wm0, int wn0, sums<BN> &s)
{
    typedef shape<BN> S;
    const bool async = CU_HAS_ASYNC && !FEW;
    const int steps = b.tile.steps;
    copier<P, BN, FEW> c;
    c.begin(a, b, shared);
    if (async) {
        for (int k = 0; k < stages - 1; k++) {
            if (k < steps)
                c.start_copies(a, k, shared + k * S::stage_bytes);
            cu_copy_commit();
        }
    } else if (steps) {
        c.load(a, 0);
        c.put(shared);
        if (steps > 1)
            c.load(a, 1);
    }
    const int count = async ? stages : 2;
    int now = 0, ahead = count - 1; /* stages */
    for (int k = 0; k < steps; k++) {
        if (async)
            cu_copy_wait<stages - 2>();
        __syncthreads();
        if (async) {
            if (k + stages - 1 < steps)
                c.start_copies(a, k + stages - 1, shared + ahead * S::stage_bytes);
            cu_copy_commit();
        } else if (k + 1 < steps) {
            c.put(shared + ahead * S::stage_bytes);
            if (k + 2 < steps)
                c.load(a, k + 2);
        }
        multiply<P, BN>(shared + now * S::stage_bytes, wm0, wn0, s);
        now = now + 1 == count ? 0 : now + 1;
        ahead = ahead + 1 == count ? 0 : ahead + 1;
    }
    if (async)
        cu_copy_wait<0>();
}

template <int BN> __device__ __forceinline__ void clear(sums<BN> &s)
{
    typedef shape<BN> S;
#pragma unroll
    for (int m = 0; m < S::mt; m++)
#pragma unroll
        for (int n = 0; n < S::nt; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                s.c[m][n][i] = 0.0f;
}

/* By way of `out`, which takes the place of the stages. */
template <class T, int BN>
__device__ __forceinline__ void store(const cu_gemm_args *a, const cu_gemm_block &b, int wm0,
                                      int wn0, const sums<BN> &s, float *out)
{
    typedef shape<BN> S;
    const int lane = (int)threadIdx.x % 32;
    for (int n0 = 0; n0 < BN; n0 += S::en) {
        __syncthreads();
        if (wn0 >= n0 && wn0 < n0 + S::en)
#pragma unroll
            for (int m = 0; m < S::mt; m++)
#pragma unroll
                for (int n = 0; n < S::nt; n++)
#pragma unroll
                    for (int up = 0; up < 2; up++) {
                        const int row = wm0 + m * 16 + up * 8 + lane / 4;
                        const int column = wn0 - n0 + n * 8 + lane % 4 * 2;
                        *reinterpret_cast<float2 *>(out + row * (S::en + 8) + column) =
                            make_float2(s.c[m][n][2 * up], s.c[m][n][2 * up + 1]);
                    }
        __syncthreads();
        cu_gemm_store<T, S::en, threads, (BN < 128)>(a, b, BN, n0, out);
    }
}

template <class P, int BN, bool FEW>
__global__ void __launch_bounds__(threads, 2) conv_mma(const cu_gemm_args *__restrict__ a)
{
    typedef shape<BN> S;
    CU_DYNAMIC_SHARED(unsigned char, shared);
    cu_gemm_block b;
    if (!P::everywhere && !CU_HAS_ASYNC)
        return; /* nobody launches it: nothing of it is compiled */
    if (!cu_gemm_block_of(a, &b))
        return;
    const int warp = (int)threadIdx.x / 32;
    const int wm0 = warp % S::warps_m * S::wm, wn0 = warp / S::warps_m * S::wn;
    sums<BN> s;
    clear<BN>(s);
    sum_up<P, BN, FEW>(a, b, shared, wm0, wn0, s);
    store<typename P::element, BN>(a, b, wm0, wn0, s, reinterpret_cast<float *>(shared));
}

/* ---- Host -------------------------------------------------------------------------------- */

template <class P> struct mma_product : cu_by_places<mma_product<P>> {
    typedef typename P::element element;
    typedef typename P::weight weight;
    static const int threads = ::threads, kinds = P::kinds;
    static const int unit = 16 / (int)sizeof(element), kstep = 4 * unit, lanes = unit;

    static int takes(const cu_gemm_plan *p)
    {
        return P::few || p->lanes == unit;
    }
    static int channels(const cu_gemm_plan *p)
    {
        const int64_t n = cu_gemm_channels(p);
        if (p->lanes < unit)
            return n <= 8 ? 8 : n <= 32 ? 32 : 64;
        return n <= 8 ? 8 : n <= 16 ? 16 : n <= 32 ? 32 : (n + 63) / 64 % 2 ? 64 : 128;
    }
    static int64_t at(int, int k, int n)
    {
        return n * kstep + (((k / unit) ^ (n >> 1 & 3)) * unit + k % unit);
    }
    /* Of a product of halves; twice as long where pixels come by way of registers. */
    static double cost(const cu_gemm_plan *p)
    {
        return cu_gemm_waste(p) * (p->lanes < unit ? 2 : 1) * P::cost;
    }
    template <int BN, bool FEW> static cu_product_kernel one(unsigned *shared_bytes)
    {
        *shared_bytes = (unsigned)shape<BN>::shared_bytes;
        return conv_mma<P, BN, FEW>;
    }
    static cu_product_kernel kernel(const cu_gemm_plan *p, unsigned *shared_bytes)
    {
        if constexpr (P::few)
            if (p->lanes < unit)
                return (p->bn == 8    ? one<8, true>
                        : p->bn == 32 ? one<32, true>
                                      : one<64, true>)(shared_bytes);
        return (p->bn == 8    ? one<8, false>
                : p->bn == 16 ? one<16, false>
                : p->bn == 32 ? one<32, false>
                : p->bn == 64 ? one<64, false>
                              : one<128, false>)(shared_bytes);
    }
};

} // namespace

#endif
