/* cu_times.cu - times what a device's queues work, by events; TEGULA_CUDA_TIMES=1 asks for
 * it. */
#include "kernels/cuda/cu_times.cuh"

#include <stdlib.h>
#include <string.h>

static cu_times_kind *kind_of(cu_times *t, tgi_device_queue q)
{
    return &t->kind[q < TGI_QUEUE_COMPUTE ? (int)q : 2];
}

cudaError_t cu_times_open(cu_times *t)
{
    const char *wanted = getenv("TEGULA_CUDA_TIMES");
    cudaError_t e = cudaSuccess;
    t->on = wanted && strcmp(wanted, "1") == 0;
    for (int k = 0; t->on && k < 3; k++)
        for (int i = 0; e == cudaSuccess && i < CU_TIMES_PAIRS; i++) {
            e = cudaEventCreateWithFlags(&t->kind[k].from[i], cudaEventBlockingSync);
            if (e == cudaSuccess)
                e = cudaEventCreateWithFlags(&t->kind[k].to[i], cudaEventBlockingSync);
        }
    return e;
}

void cu_times_close(cu_times *t)
{
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < CU_TIMES_PAIRS; i++) {
            if (t->kind[k].from[i])
                (void)cudaEventDestroy(t->kind[k].from[i]);
            if (t->kind[k].to[i])
                (void)cudaEventDestroy(t->kind[k].to[i]);
        }
}

/* Add the oldest pair that was not read. */
static cudaError_t read_one(cu_times_kind *k)
{
    const unsigned i = k->read++ % CU_TIMES_PAIRS;
    float ms = 0;
    cudaError_t e = cudaEventSynchronize(k->to[i]);
    if (e == cudaSuccess)
        e = cudaEventElapsedTime(&ms, k->from[i], k->to[i]);
    k->seconds += (double)ms * 1e-3;
    return e;
}

cudaError_t cu_times_begin(cu_times *t, tgi_device_queue q, cudaStream_t s)
{
    cu_times_kind *k = kind_of(t, q);
    if (!t->on)
        return cudaSuccess;
    const cudaError_t e = k->begun - k->read == CU_TIMES_PAIRS ? read_one(k) : cudaSuccess;
    return e == cudaSuccess ? cudaEventRecord(k->from[k->begun % CU_TIMES_PAIRS], s) : e;
}

cudaError_t cu_times_end(cu_times *t, tgi_device_queue q, cudaStream_t s)
{
    cu_times_kind *k = kind_of(t, q);
    return t->on ? cudaEventRecord(k->to[k->begun++ % CU_TIMES_PAIRS], s) : cudaSuccess;
}

cudaError_t cu_times_read(cu_times *t, double seconds[3])
{
    cudaError_t e = cudaSuccess;
    for (int k = 0; k < 3; k++) {
        while (t->on && e == cudaSuccess && t->kind[k].read != t->kind[k].begun)
            e = read_one(&t->kind[k]);
        seconds[k] = t->kind[k].seconds;
    }
    return e;
}
