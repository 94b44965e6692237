/* cu_conv_wgmma.cu - convolutions of 16-bit numbers by groups of four warps, on compute
 * capability 9.0 alone: the product over patches of cu_patch.cuh. A block is one group: 64
 * channels (rows) times 256 pixels (columns), the largest product there is (m64n256k16), 128
 * sums a thread. That way round the pixels, of which there are always enough, are the wide
 * side, and 64 channels are no narrow case. Two blocks stay on a multiprocessor: one copies, or
 * writes its results, while the other multiplies.
 *
 * Pixels are copied by all threads (cp.async, zeros outside of the image), weights by the copy
 * engine; three to six stages. The products of a step are one group that is waited for a step
 * later, so the matrix units have the next ones before they are done with these.
 *
 * What bounds it, counted for 64 channels, 3x3, stride 1; a step is 16 channels at 9 taps. A
 * multiprocessor has 2048 multiply-adds a clock in its matrix units, 128 bytes of shared
 * memory, some 40 bytes from the second level:
 *
 *     products        9 x 128                                             1152 clocks
 *     shared memory   9 x (2 KiB weights + 8 KiB pixels) read, 10.6 KiB
 *                     of pixels and 18 KiB of weights written             950
 *     second level    the same 28.6 KiB, if the first level helps not     732
 *
 * Seen on an H100 (share of what its matrix units did alone): 0.33 with 64 channels, 0.47 with
 * 128, 0.49 with 256, 0.58 with 512. What is missing are clocks in which a warp waits: of
 * 45,000 a block of 128 channels was there, 9,000 were before its first product, 9,000 behind
 * its last one, and a step took 3,400, most of it until a value came from the second level.
 * Since then arguments are fetched at once, steps are counted on, and nothing but pixels is
 * copied by instructions; results leave as pairs without a second pass. With pixels gathered
 * tap by tap (cu_gemm.cuh) the copies alone would be 9 x 8 KiB of pixels, twice through the
 * first level's memory, which is the shared one: 2300 clocks a step. A 1x1 kernel copies 10 KiB
 * a product and is bound by the second level at half of the products' rate. Tried: a group of
 * warps that copies and one that multiplies, two blocks a multiprocessor; the assembler wants
 * 154 registers for such a product, of all threads (C7602), and 128 are there. */
#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_conv_variant.cuh"
#include "kernels/cuda/cu_patch.cuh"
#include "kernels/cuda/cu_wgmma.cuh"

namespace
{

const int threads = CU_PATCH_THREADS;
const int sums_pitch = CU_PATCH_BN + 4; /* see sum_at */
const int sums_bytes = CU_PATCH_PIXELS * sums_pitch * 4;

#if CU_HAS_WGMMA

const int pixel_bytes = CU_PATCH_BN * 2 + 16; /* of a pixel's results: see put_pairs */

/* What a step multiplies: matrices of its first tap and units, and where the next ones are. */
struct products {
    uint64_t pixels, weights;
    int n, nx;               /* products; taps of a row */
    int plane, tap_y, tap_x; /* bytes from one unit of pixels to the next, from tap to tap */
};

template <int UNITS>
__device__ __forceinline__ products products_of(const cu_patch_step &s, bool wide,
                                                const cu_patch_stage &how,
                                                const unsigned char *stage)
{
    const int row = cu_patch_pitch(s, wide) * 16;
    products p;
    p.pixels = cu_wgmma_matrix(stage, how.plane_bytes, row);
    p.weights = cu_wgmma_matrix(stage + UNITS * how.plane_bytes, CU_PATCH_BN * 16, 128);
    p.n = s.pieces / (CU_PATCH_TAP / 16);
    p.nx = s.nx;
    p.plane = how.plane_bytes;
    p.tap_y = s.dy * (wide ? 16 : row);
    p.tap_x = s.dx * (wide ? row : 16);
    return p;
}

/* The first product of all sets the sums, in front of the loop over steps: assemblers before
 * that of CUDA 12.9 wait for every product where sums that no product has set go into it. */
template <class T>
__device__ __forceinline__ void multiply_first(const products &p, float (&c)[128])
{
    cu_wgmma_fence();
    cu_wgmma_64x256<T>(c, p.weights, p.pixels, 0);
    cu_wgmma_commit();
}

/* Products FIRST to N - 1 of a step, tap by tap, two units at a time, and their group: one
 * piece of code without a branch, as the compiler would end a group at each. NX: taps of a row;
 * 0: as the step says. */
template <class T, int UNITS, int NX, int FIRST, int N>
__device__ __forceinline__ void multiply(const products &p, float (&c)[128])
{
    int x = 0, row = 0, unit = 0; /* of the product at hand; of its row: bytes */
    cu_wgmma_fence();
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int at =
            NX ? i / NX * p.tap_y + i % NX * p.tap_x : row + x * p.tap_x + unit * p.plane;
        if (i >= FIRST)
            cu_wgmma_64x256<T>(c, cu_wgmma_moved(p.weights, i * CU_PATCH_TAP),
                               cu_wgmma_moved(p.pixels, at), 1);
        const bool next_tap = unit + 2 == UNITS, next_row = next_tap && x + 1 == p.nx;
        unit = next_tap ? 0 : unit + 2;
        x = next_row ? 0 : x + next_tap;
        row += next_row ? p.tap_y : 0;
    }
    cu_wgmma_commit();
}

/* A step's, of which there are N at most, from FIRST on, which may be none. */
template <class T, int UNITS, int FIRST, int N>
__device__ __forceinline__ void multiply_up_to(const products &p, float (&c)[128])
{
    if (p.n == N)
        multiply<T, UNITS, 0, FIRST, N>(p, c);
    else if constexpr (N > FIRST + 1)
        multiply_up_to<T, UNITS, FIRST, N - 1>(p, c);
}
template <class T, int UNITS, int FIRST>
__device__ __forceinline__ void multiply_step(const products &p, float (&c)[128])
{
    if (UNITS == 2 && p.n == 9 && p.nx == 3)
        multiply<T, UNITS, 3, FIRST, 9>(p, c);
    else
        multiply_up_to<T, UNITS, FIRST, CU_PATCH_PRODUCTS>(p, c);
}

/* This thread's copies of all steps but the last `n` are there, and seen by products. */
__device__ __forceinline__ void wait_for_copies(int n)
{
    if (n == 0)
        cu_copy_wait<0>();
    else if (n == 1)
        cu_copy_wait<1>();
    else if (n == 2)
        cu_copy_wait<2>();
    else if (n == 3)
        cu_copy_wait<3>();
    else
        cu_copy_wait<4>();
    cu_fence_async();
}

/* All steps; the sums are in registers. While the products of a step are made, those of the one
 * before are waited for, by all warps, and the step `ahead` is copied into their stage: so the
 * matrix units always have products to go on with, and copies have all steps between for their
 * way. What a step is like is read a step earlier. */
template <class T, int UNITS, int COPIES>
__device__ __forceinline__ void sum_up(const cu_gemm_args *a, const cu_gemm_block &b,
                                       unsigned char *shared, float (&c)[128])
{
    CU_SHARED(uint64_t, barrier, CU_PATCH_STAGES);
    const cu_patch_stage how = cu_patch_stage_at(a);
    const bool wide = cu_patch_is_wide(a);
    const int steps = b.tile.steps, ahead = how.count - 1;
    cu_patch_copier<T, threads, UNITS, COPIES> copies;
    if (threadIdx.x == 0) { /* which alone copies by them, and so needs no other to know */
        for (int k = 0; k < how.count; k++)
            cu_bulk_begin(barrier + k);
        cu_fence_async();
    }
    copies.begin(a, b);
    cu_patch_step s = cu_patch_step_at(a, b.tile.first), to_copy = s;
    for (int k = 0; k < ahead; k++) {
        if (k < steps)
            copies.start_copies(a, b, how, to_copy, shared + k * how.bytes, barrier + k);
        if (k + 1 < steps)
            cu_patch_next_step(a, how, b.tile.first + k + 1, &to_copy);
        cu_copy_commit();
    }
    wait_for_copies(ahead - 1);
    __syncthreads();
    cu_bulk_wait(barrier, 0);
    products p = products_of<UNITS>(s, wide, how, shared);
    multiply_first<T>(p, c);
    multiply_step<T, UNITS, 1>(p, c);
    int now = 0, next = ahead; /* stages */
    unsigned parity = 0;       /* of the copies of stage `now` */
    for (int k = 0;;) {
        if (k + 1 < steps)
            cu_patch_next_step(a, how, b.tile.first + k + 1, &s);
        __syncwarp(); /* what waits for products wants warps whole */
        cu_wgmma_wait<1>();
        if (k + ahead < steps) {
            __syncthreads();
            if (COPIES > CU_PATCH_COPIES / 2) /* registers are short */
                to_copy = cu_patch_step_at(a, b.tile.first + k + ahead);
            copies.start_copies(a, b, how, to_copy, shared + next * how.bytes, barrier + next);
            if (COPIES <= CU_PATCH_COPIES / 2 && k + ahead + 1 < steps)
                cu_patch_next_step(a, how, b.tile.first + k + ahead + 1, &to_copy);
        }
        cu_copy_commit();
        if (++k == steps)
            break;
        now++;
        if (now == how.count) {
            now = 0;
            parity ^= 1;
        }
        next = next + 1 == how.count ? 0 : next + 1;
        wait_for_copies(ahead - 1);
        __syncthreads();
        cu_bulk_wait(barrier + now, parity);
        p = products_of<UNITS>(s, wide, how, shared + now * how.bytes);
        multiply_step<T, UNITS, 0>(p, c);
    }
    cu_wgmma_finish(c);
    cu_copy_wait<0>();
}

/* ---- Results ----------------------------------------------------------------------------- */

/* Of a thread: sums c[4j] and c[4j + 1] are of its first channel, c[4j + 2] and
 * c[4j + 3] of the one 8 further. */
__device__ __forceinline__ int first_channel(void)
{
    return (int)threadIdx.x / 32 * 16 + (int)threadIdx.x % 32 / 4;
}

#define EACH_SUM(result)                                                                       \
    do {                                                                                       \
        _Pragma("unroll") for (int i = 0; i < 128; i++)                                        \
        {                                                                                      \
            const float x = c[i], o = other[i / 2 % 2];                                        \
            (void)o;                                                                           \
            c[i] = (result);                                                                   \
        }                                                                                      \
        return true;                                                                           \
    } while (0)

/* A step where the sums lie; false: one that is made where eight channels lie together. As
 * cu_step_lanes has them. */
__device__ __forceinline__ bool step_sums(int kind, float b, const float (&other)[2],
                                          float (&c)[128])
{
    switch (kind) {
    case TGI_EPI_RELU:
        EACH_SUM(x < 0.0f ? 0.0f : x);
    case TGI_EPI_LEAKY:
    case TGI_EPI_PRELU:
        EACH_SUM(x < 0.0f ? x * o : x);
    case TGI_EPI_CLIP:
        EACH_SUM(cu_clip(x, o, b));
    default:
        return false;
    }
}

/* Bias, and an epilogue of such a step or none. False: nothing was done. */
__device__ __forceinline__ bool finish_sums(const cu_gemm_args *a, const cu_gemm_block &b,
                                            float (&c)[128])
{
    const float *bias = a->bias + (int64_t)b.tile_index * CU_PATCH_BN;
    cu_light_epilogue<1> light[2];
    float other[2], of[2];
    bool quick = true;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int n = first_channel() + 8 * h;
        quick &= light[h].begin(a->pool, a->epi, b.tile.channel0 + (n < b.tile.lanes ? n : 0));
        of[h] = bias[n];
        other[h] = light[h].other[0];
    }
    const int kind = light[0].steps ? light[0].kind : -1;
    if (!quick || (kind != -1 && kind != TGI_EPI_RELU && kind != TGI_EPI_LEAKY &&
                   kind != TGI_EPI_PRELU && kind != TGI_EPI_CLIP))
        return false;
#pragma unroll
    for (int i = 0; i < 128; i++)
        c[i] += of[i / 2 % 2];
    if (kind != -1)
        step_sums(kind, light[0].b, other, c);
    return true;
}

/* Finished sums as numbers of the image: a pixel's channels lie together, pixels 16 bytes
 * further apart than they need, so that what eight lanes write or read is in different banks.
 */
template <class T>
__device__ __forceinline__ void put_pairs(const float (&c)[128], int counted,
                                          unsigned char *shared)
{
    const int lane = (int)threadIdx.x % 32;
    const bool there[2] = {first_channel() < counted, first_channel() + 8 < counted};
    unsigned char *at = shared + (lane / 16 * 8 + lane % 8) * pixel_bytes +
                        ((int)threadIdx.x / 32 * 16 + lane / 8 % 2 * 8) * 2;
#pragma unroll
    for (int j = 0; j < 32; j += 2) {
        uint32_t r[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float *pair = &c[4 * (j + i / 2) + i % 2 * 2];
            r[i] = there[i % 2] ? cu_pair<T>(pair[0], pair[1]) : 0;
        }
        cu_put_matrices_turned(at + j * 8 * pixel_bytes, r);
    }
}

/* Which of a product's columns is pixel m, counted along x. */
__device__ __forceinline__ int column_of(int m, bool wide)
{
    return wide ? m % 32 * 8 + m / 32 : m;
}

/* Eight threads write a pixel, 16 pixels at a time: halves of rows of 32, or two rows of 8. */
template <class T>
__device__ __forceinline__ void store_pairs(const cu_gemm_args *a, const cu_gemm_block &b,
                                            const unsigned char *shared)
{
    const int n = (int)threadIdx.x % 8 * 8, m = (int)threadIdx.x / 8;
    const bool wide = cu_patch_is_wide(a);
    const int32_t y0 = b.q[1] * a->out_step[1] + b.tile.out_first[1], dy = a->out_step[1];
    const int32_t x0 = b.q[2] * a->out_step[2] + b.tile.out_first[2], dx = a->out_step[2];
    const int32_t y_end = a->hi[1], x_end = a->hi[2];
    cu_gemm_writer<T, 8> out;
    if (n >= b.tile.lanes)
        return;
    out.begin(a, b, b.tile.channel0 + n);
    const unsigned char *const from = shared + n * 2;
#pragma unroll 4
    for (int i = 0; i < CU_PATCH_PIXELS / (threads / 8); i++) {
        const int y = wide ? i / 2 : 2 * i + m / 8, x = wide ? i % 2 * 16 + m : m % 8;
        const int32_t oy = y0 + y * dy, ox = x0 + x * dx;
        const cu_bits<16> bits =
            cu_get_bits<cu_bits<16>>(from + (wide ? x * 8 + y : y * 8 + x) * pixel_bytes);
        T *const to = out.base + (int64_t)cu_ring(oy, out.ring, out.magic) * out.pitch +
                      (int64_t)(ox - out.x0) * out.cb;
        if (oy < y_end && ox < x_end)
            cu_put_bits(to, bits);
    }
}

/* Where channel c of a pixel lies: the first fours of all eights, then the second ones. With 68
 * words a pixel the 32 words that a warp writes at once are in different banks, and so are the
 * fours that eight threads read. */
__device__ __forceinline__ int sum_at(int c)
{
    return c / 8 * 4 + c % 4 + c / 4 % 2 * 36;
}

/* Rows of channels become columns: a pixel's channels lie together. */
__device__ __forceinline__ void put_sums(const float (&c)[128], float *sums)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float *at = sums + lane % 4 * 2 * sums_pitch + sum_at(warp * 16 + lane / 4);
#pragma unroll
    for (int j = 0; j < 32; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            at[(8 * j + i % 2) * sums_pitch + sum_at(i / 2 * 8)] = c[4 * j + i];
}

/* As cu_gemm_store wants them: pixels are counted along x there. */
struct turned_sums {
    static const int pixels = CU_PATCH_PIXELS, channels = CU_PATCH_BN;
    const float *first;
    bool wide;
    template <int V> __device__ __forceinline__ void load(int pixel, int c, float (&v)[V]) const
    {
        static_assert(V == 8, "two fours, 36 words apart");
        const int row = column_of(pixel, wide);
        float half[4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            cu_load<float, 4>(first + row * sums_pitch + sum_at(c + 4 * h), half);
#pragma unroll
            for (int i = 0; i < 4; i++)
                v[4 * h + i] = half[i];
        }
    }
};

/* Sums become results where they lie, if they can: half the shared memory, and no epilogue that
 * is looked up for each pixel. */
template <class T>
__device__ __forceinline__ void store(const cu_gemm_args *a, const cu_gemm_block &b,
                                      unsigned char *shared, float (&c)[128])
{
    const bool quick = finish_sums(a, b, c);
    __syncthreads(); /* all stages have been read */
    if (quick)
        put_pairs<T>(c, a->dst.c - b.tile.channel0, shared);
    else
        put_sums(c, reinterpret_cast<float *>(shared));
    __syncthreads();
    if (quick) {
        store_pairs<T>(a, b, shared);
    } else {
        const turned_sums sums = {reinterpret_cast<float *>(shared), cu_patch_is_wide(a)};
        cu_gemm_store_lanes<T, turned_sums, 8, threads, true>(a, b, CU_PATCH_BN, 0, sums);
    }
}

#endif

template <class T, int UNITS, int COPIES>
__global__ void __launch_bounds__(threads, 2) conv_wgmma(const cu_gemm_args *a)
{
#if CU_HAS_WGMMA
    CU_DYNAMIC_SHARED(unsigned char, shared);
    CU_SHARED(uint4, near_by, CU_ARGUMENTS_NEAR / 16);
    cu_gemm_block b;
    float c[128];
    a = cu_arguments_near(a, near_by);
    if (!cu_gemm_block_of(a, &b))
        return;
    sum_up<T, UNITS, COPIES>(a, b, shared, c);
    store<T>(a, b, shared, c);
#else
    (void)a; /* nobody launches it here */
#endif
}

/* ---- Host -------------------------------------------------------------------------------- */

template <class T> struct wgmma_product {
    typedef T element, weight;
    static const int threads = ::threads, kstep = 16, lanes = 8;
    static const unsigned kinds = TGI_KIND_WGMMA;

    static int takes(const cu_gemm_plan *p)
    {
        cu_patch_plan how;
        return p->lanes == lanes && p->g.out_c > 4 && cu_patch_plan_of(p, &how) &&
               cu_patch_reaches(p, &how);
    }
    static int channels(const cu_gemm_plan *)
    {
        return CU_PATCH_BN;
    }
    /* The longest of what a block waits for, over the time of mma.sync's products at 60 % of
     * the rate; see the top of this file. A step is some 1500 clocks of barriers and
     * instructions beside its products: with fewer than a 3x3 kernel's nine it is those that
     * count (stride 2 on an H100: 161 us, by mma.sync 110). */
    static constexpr double usual_products = 9, step_clocks = 1500;
    static double cost(const cu_gemm_plan *p)
    {
        cu_patch_plan how;
        double clocks = 0;
        if (!cu_patch_plan_of(p, &how))
            return 1e9;
        for (int64_t set = 0; set < p->sets; set++) {
            const cu_patch_sum sum = cu_patch_sum_of(p, &how, set);
            const double products = (double)sum.pieces * 16 / CU_PATCH_TAP;
            const double copied = (double)(sum.pixel_bytes + sum.pieces * 16);
            const double units = 128 * products;
            const double shared = (10240 * products + copied + sums_bytes * 2) / 128;
            const double second = copied / 40;
            const double many = units > shared && units > second ? units
                                : shared > second                ? shared
                                                                 : second;
            const double more = (double)sum.steps - products / usual_products;
            clocks +=
                (many + (more > 0 ? more * step_clocks : 0)) * (double)cu_gemm_set_tiles(p);
        }
        const double counts = (double)(p->g.in_c / p->g.groups) * (double)p->g.out_c *
                              (double)(p->g.k[0] * p->g.k[1] * p->g.k[2]);
        return clocks / (CU_PATCH_PIXELS * counts / (0.6 * 2048));
    }
    static cu_product_kernel kernel(const cu_gemm_plan *p, unsigned *shared_bytes)
    {
        cu_patch_plan how = {};
        cu_patch_plan_of(p, &how);
        const int stages = how.stage.bytes * how.stage.count;
        *shared_bytes = (unsigned)(stages > sums_bytes ? stages : sums_bytes);
        if (how.stage.units == 4)
            return conv_wgmma<T, 4, CU_PATCH_COPIES>;
        return cu_patch_copies_of(&how.stage) == CU_PATCH_COPIES
                   ? conv_wgmma<T, 2, CU_PATCH_COPIES>
                   : conv_wgmma<T, 2, CU_PATCH_COPIES / 2>;
    }
    static size_t bytes(const cu_gemm_plan *p)
    {
        cu_patch_plan how;
        return cu_patch_plan_of(p, &how) ? cu_patch_layout_of(p, &how).bytes : 0;
    }
    static void pack(const cu_gemm_plan *p, const tgi_op_ctx *ctx, void *dst)
    {
        cu_patch_plan how;
        if (cu_patch_plan_of(p, &how))
            cu_patch_pack<T>(p, &how, ctx, dst);
    }
    static dim3 arguments(const cu_gemm_plan *p, const tgi_call *call, cu_gemm_args *a)
    {
        cu_patch_plan how = {};
        cu_patch_plan_of(p, &how);
        return cu_patch_arguments(p, &how, call, a);
    }
};

} // namespace

constexpr tgi_variant cu_conv_wgmma_f16 = cu_product<wgmma_product<__half>, 0>("conv_wgmma");
constexpr tgi_variant cu_conv_transpose_wgmma_f16 =
    cu_product<wgmma_product<__half>, 1>("conv_transpose_wgmma");
constexpr tgi_variant cu_conv_wgmma_bf16 =
    cu_product<wgmma_product<__nv_bfloat16>, 0>("conv_wgmma");
constexpr tgi_variant cu_conv_transpose_wgmma_bf16 =
    cu_product<wgmma_product<__nv_bfloat16>, 1>("conv_transpose_wgmma");
