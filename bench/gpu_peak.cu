/* gpu_peak.cu - what a device can do at most, measured: multiply-adds of halves in the matrix
 * units (float32 sums), of float32 in the plain ones, and copies within its memory. One JSON
 * object on one line; bench_gpu's shares are of these. The matrix units by mma.sync and, on
 * compute capability 9.0, by groups of warps, which do more there. */
#include "kernels/cuda/cu_wgmma.cuh"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 7
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
static void launch_group(const work *w)
{
    group_kernel<<<w->blocks, 128>>>(w->out);
}
static void launch_plain(const work *w)
{
    plain_kernel<<<w->blocks, 256>>>(w->out);
}
static void launch_copy(const work *w)
{
    check(cudaMemcpyAsync(w->to, w->from, w->bytes, cudaMemcpyDeviceToDevice), "copy");
}

/* Seconds of the median round, after two that do not count. */
static double seconds_of(launch_fn launch, const work *w)
{
    cudaEvent_t from, to;
    float ms[ROUNDS];
    check(cudaEventCreate(&from), "event");
    check(cudaEventCreate(&to), "event");
    for (int i = -2; i < ROUNDS; i++) {
        check(cudaEventRecord(from), "record");
        launch(w);
        check(cudaGetLastError(), "launch");
        check(cudaEventRecord(to), "record");
        check(cudaEventSynchronize(to), "wait");
        if (i >= 0)
            check(cudaEventElapsedTime(&ms[i], from, to), "time");
    }
    for (int i = 0; i < ROUNDS; i++)
        for (int j = i + 1; j < ROUNDS; j++)
            if (ms[j] < ms[i]) {
                const float t = ms[i];
                ms[i] = ms[j];
                ms[j] = t;
            }
    check(cudaEventDestroy(from), "event");
    check(cudaEventDestroy(to), "event");
    return ms[ROUNDS / 2] * 1e-3;
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
    const double copy = seconds_of(launch_copy, &w), plain = seconds_of(launch_plain, &w);
    const double matrix = seconds_of(launch_matrix, &w);
    check(cudaMemcpy(&k, w.k, sizeof k, cudaMemcpyDeviceToHost), "memory");
    const double loops = (double)w.blocks * LOOPS * CHAINS;
    printf("{\"family\": \"gpu_peak\", \"device\": \"%s\", \"compute\": \"%d.%d\", "
           "\"mma_f16_tflops\": %.2f, \"fma_f32_tflops\": %.2f, \"copy_gbs\": %.1f",
           p.name, p.major, p.minor, loops * 8 /* warps */ * 2.0 * 16 * 8 * k / matrix * 1e-12,
           loops * 256 * 2.0 / plain * 1e-12, 2.0 * (double)w.bytes / copy * 1e-9);
#ifdef TG_CUDA_WGMMA
    if (p.major == 9 && p.minor == 0)
        printf(", \"wgmma_f16_tflops\": %.2f", (double)w.blocks * LOOPS * 2.0 * 64 * 256 * 16 /
                                                   seconds_of(launch_group, &w) * 1e-12);
#endif
    printf("}\n");
    return 0;
}
