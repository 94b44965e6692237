/* gpu_peak.cu - what a device can do at most, measured: multiply-adds of halves in the matrix
 * units (float32 sums), of float32 in the plain ones, and copies within its memory. One JSON
 * object on one line; bench_gpu's shares are of these. The matrix units by mma.sync and, on
 * compute capability 9.0, by groups of warps, which do more there. Each twice, by events: a burst
 * (the median of seven launches of about a millisecond, which no clock falls in), and sustained
 * (SUSTAINED seconds and more behind as many that warm up: what power and heat leave of it). */
#include "kernels/cuda/cu_wgmma.cuh"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 7
#define SUSTAINED 1.0 /* seconds */
#define MOST_LAUNCHES 1000000
#define LOOPS 4096
#define CHAINS 8 /* independent, so that none waits for itself */

static void check(cudaError_t e, const char *what)
{
    if (e == cudaSuccess)
        return;
    fprintf(stderr, "gpu_peak: %s: %s\n", what, cudaGetErrorString(e));
    exit(e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver ? 77 : 1);
}

/* One instruction of a warp; operations counted as two per multiply-add. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define MMA_K 8
#else
#define MMA_K 16
#endif

__device__ __forceinline__ void mma(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#if MMA_K == 16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, "
                 "{%6}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
}

/* Random halves of about 1: zeros run faster on some devices. */
__device__ __forceinline__ uint32_t halves(uint32_t s)
{
    s = (s * 1664525u + 1013904223u) ^ threadIdx.x * 2654435761u;
    return (s & 0x83ff83ffu) | 0x38003800u;
}

__global__ void __launch_bounds__(256, 2) matrix_kernel(float *out, int *k)
{
    uint32_t a[4], b[2];
    float c[CHAINS][4] = {};
    for (uint32_t i = 0; i < 4; i++)
        a[i] = halves(i);
    for (uint32_t i = 0; i < 2; i++)
        b[i] = halves(i + 4);
    for (int i = 0; i < LOOPS; i++)
#pragma unroll
        for (int j = 0; j < CHAINS; j++)
            mma(c[j], a, b);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < CHAINS; j++)
        sum += c[j][0] + c[j][1] + c[j][2] + c[j][3];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    *k = MMA_K;
}

/* Chains of products of 64 x 16 times 16 x 256, both in shared memory: LOOPS of them a block.
 */
__global__ void __launch_bounds__(128, 2) group_kernel(float *out)
{
#if CU_HAS_WGMMA
    __shared__ __align__(128) uint32_t numbers[(64 + 256) * 16 / 2];
    float c[128];
    for (uint32_t i = threadIdx.x; i < sizeof numbers / 4; i += 128)
        numbers[i] = halves(i);
    cu_fence_async();
    __syncthreads();
    const uint64_t a = cu_wgmma_matrix(numbers, 1024, 128);
    const uint64_t b = cu_wgmma_matrix(numbers + 512, 4096, 128);
    for (int i = 0; i < LOOPS / CHAINS; i++) {
        cu_wgmma_fence();
#pragma unroll
        for (int j = 0; j < CHAINS; j++)
            cu_wgmma_64x256<__half>(c, a, b, j || i);
        cu_wgmma_commit();
        cu_wgmma_wait<1>();
    }
    cu_wgmma_finish(c);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 128; i++)
        sum += c[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#else
    (void)out;
#endif
}

__global__ void __launch_bounds__(256, 2) plain_kernel(float *out)
{
    float c[CHAINS], a = 1.0f + (float)threadIdx.x * 1e-9f, b = (float)blockIdx.x * 1e-9f;
#pragma unroll
    for (int j = 0; j < CHAINS; j++)
        c[j] = (float)j;
    for (int i = 0; i < LOOPS; i++)
#pragma unroll
        for (int j = 0; j < CHAINS; j++)
            c[j] = fmaf(c[j], a, b);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < CHAINS; j++)
        sum += c[j];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

typedef struct work {
    float *out;
    int *k;
    char *from, *to;
    size_t bytes;
    unsigned blocks;
} work;

typedef void (*launch_fn)(const work *w);

static void launch_matrix(const work *w)
{
    matrix_kernel<<<w->blocks, 256>>>(w->out, w->k);
}
#ifdef TG_CUDA_WGMMA
static void launch_group(const work *w)
{
    group_kernel<<<w->blocks, 128>>>(w->out);
}
#endif
static void launch_plain(const work *w)
{
    plain_kernel<<<w->blocks, 256>>>(w->out);
}
static void launch_copy(const work *w)
{
    check(cudaMemcpyAsync(w->to, w->from, w->bytes, cudaMemcpyDeviceToDevice), "copy");
}

typedef struct taken {
    double burst, sustained; /* seconds of a launch */
    double seconds;          /* that `sustained` was measured for */
} taken;

/* Seconds of n launches behind each other. */
static double seconds_of(launch_fn launch, const work *w, int n, const cudaEvent_t at[2])
{
    float ms = 0;
    check(cudaEventRecord(at[0]), "record");
    for (int i = 0; i < n; i++)
        launch(w);
    check(cudaGetLastError(), "launch");
    check(cudaEventRecord(at[1]), "record");
    check(cudaEventSynchronize(at[1]), "wait");
    check(cudaEventElapsedTime(&ms, at[0], at[1]), "time");
    return ms * 1e-3;
}

/* Of the median round, after two that do not count. */
static double burst_of(launch_fn launch, const work *w, const cudaEvent_t at[2])
{
    double t[ROUNDS];
    for (int i = -2; i < ROUNDS; i++) {
        const double once = seconds_of(launch, w, 1, at);
        if (i >= 0)
            t[i] = once;
    }
    for (int i = 0; i < ROUNDS; i++)
        for (int j = i + 1; j < ROUNDS; j++)
            if (t[j] < t[i]) {
                const double least = t[j];
                t[j] = t[i];
                t[i] = least;
            }
    return t[ROUNDS / 2];
}

/* So many launches that they take SUSTAINED seconds between two events; those that turned out to
 * be too few have warmed up, and so does a first turn of as many. */
static taken taken_by(launch_fn launch, const work *w)
{
    cudaEvent_t at[2];
    taken t;
    for (int i = 0; i < 2; i++)
        check(cudaEventCreate(&at[i]), "event");
    t.burst = burst_of(launch, w, at);
    double n = 1 + SUSTAINED / (t.burst > 0 ? t.burst : 1e-6), warm = 0;
    for (t.seconds = 0; warm < SUSTAINED || t.seconds < SUSTAINED;) {
        if (n > MOST_LAUNCHES)
            n = MOST_LAUNCHES;
        warm += t.seconds;
        t.seconds = seconds_of(launch, w, (int)n, at);
        t.sustained = t.seconds / (int)n;
        if (t.seconds < SUSTAINED)
            n = 1 + 1.1 * SUSTAINED / t.sustained;
    }
    for (int i = 0; i < 2; i++)
        check(cudaEventDestroy(at[i]), "event");
    return t;
}

/* `of`: operations or bytes of a launch, in the unit that is printed a second. */
static void print_ceiling(const char *name, double of, taken t)
{
    printf(
        ", \"%s\": %.2f, \"%s_sustained\": %.2f, \"%s_burst_ms\": %.3f, \"%s_seconds\": %.2f",
        name, of / t.burst, name, of / t.sustained, name, t.burst * 1e3, name, t.seconds);
}

int main(void)
{
    cudaDeviceProp p;
    size_t free_bytes = 0, total = 0;
    int k = 0;
    work w = {};
    check(cudaGetDeviceProperties(&p, 0), "device");
    check(cudaMemGetInfo(&free_bytes, &total), "memory");
    w.blocks = (unsigned)p.multiProcessorCount * 8;
    w.bytes = free_bytes / 4 < (size_t)1 << 30 ? free_bytes / 4 : (size_t)1 << 30;
    check(cudaMalloc((void **)&w.out, w.blocks * 256 * sizeof(float)), "memory");
    check(cudaMalloc((void **)&w.k, sizeof(int)), "memory");
    check(cudaMalloc((void **)&w.from, w.bytes), "memory");
    check(cudaMalloc((void **)&w.to, w.bytes), "memory");
    check(cudaMemset(w.from, 0x5a, w.bytes), "memory");
    const taken copy = taken_by(launch_copy, &w), plain = taken_by(launch_plain, &w);
    const taken matrix = taken_by(launch_matrix, &w);
    check(cudaMemcpy(&k, w.k, sizeof k, cudaMemcpyDeviceToHost), "memory");
    const double loops = (double)w.blocks * LOOPS * CHAINS;
    printf("{\"family\": \"gpu_peak\", \"device\": \"%s\", \"compute\": \"%d.%d\", "
           "\"clock\": \"events\"",
           p.name, p.major, p.minor);
    print_ceiling("mma_f16_tflops", loops * 8 /* warps */ * 2.0 * 16 * 8 * k * 1e-12, matrix);
    print_ceiling("fma_f32_tflops", loops * 256 * 2.0 * 1e-12, plain);
    print_ceiling("copy_gbs", 2.0 * (double)w.bytes * 1e-9, copy);
#ifdef TG_CUDA_WGMMA
    if (p.major == 9 && p.minor == 0)
        print_ceiling("wgmma_f16_tflops",
                      (double)w.blocks * LOOPS * 2.0 * 64 * 256 * 16 * 1e-12,
                      taken_by(launch_group, &w));
#endif
    printf("}\n");
    return 0;
}
