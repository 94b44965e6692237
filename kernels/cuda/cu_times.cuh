/* cu_times.cuh - how long queues have worked: for the benches, and only where somebody wants to
 * know (TEGULA_CUDA_TIMES=1). Two events around each copy and each run of a program; pairs are
 * read when they are needed again, some dozens of pieces of work later, and in the end. */
#ifndef TGI_CU_TIMES_CUH
#define TGI_CU_TIMES_CUH

#include "kernels/cuda/cu_common.cuh"
#ifdef TG_CUDA_EMULATED
#include "tests/cuda/cuda_runtime_emulated.h"
#endif

#define CU_TIMES_PAIRS 64 /* of each kind */

struct cu_times_kind {
    cudaEvent_t from[CU_TIMES_PAIRS], to[CU_TIMES_PAIRS];
    unsigned begun, read;
    double seconds;
};

struct cu_times {
    bool on;
    cu_times_kind kind[3]; /* uploads, downloads, kernels of all lanes */
};

/* Makes the events when the environment asks for them. */
cudaError_t cu_times_open(cu_times *t);
void cu_times_close(cu_times *t);
/* Around what is put into queue q, which is stream s. */
cudaError_t cu_times_begin(cu_times *t, tgi_device_queue q, cudaStream_t s);
cudaError_t cu_times_end(cu_times *t, tgi_device_queue q, cudaStream_t s);
/* Waits for what has begun. */
cudaError_t cu_times_read(cu_times *t, double seconds[3]);

#endif
