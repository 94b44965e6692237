/* cuda_runtime_emulated.h - the calls of the CUDA runtime that the plugin's host side makes, on
 * a device that is played on the processor.
 *
 * It is as late as the rules allow: what is put into a stream is done when somebody waits for
 * it, and no more of any stream than that. A copy whose source is written again too early, or a
 * wait that was forgotten, gives wrong numbers here, where a device would mostly be lucky.
 * Memory is limited, poisoned (NaN in every type) and counted; any call can be made to fail.
 *
 * @source CUDA Runtime API reference; numbers of errors as there. */
#ifndef TG_CUDA_RUNTIME_EMULATED_H
#define TG_CUDA_RUNTIME_EMULATED_H

#include "tests/cuda/cuda_emulated.h"

/* ---- What tests set and look at ---------------------------------------------------------- */

typedef struct tg_emulated_machine {
    int driver, runtime; /* versions, 13000 for 13.0; driver 0: there is none */
    int devices;
    int major, minor;
    size_t memory_bytes, context_bytes; /* of each device, and what a context takes of it */
    size_t hidden_bytes;                /* taken with a context, and not told of */
    size_t first_bytes;                 /* taken when the driver is first asked anything */
    int no_graphs;                      /* 1: graphs cannot be made */
    int no_kernels;                     /* 1: kernels are there for other devices only */
    int wrong;                          /* 1: what is downloaded has a wrong bit */
    int multiprocessors;
} tg_emulated_machine;
extern tg_emulated_machine tg_emulated;

/* A new machine: 13.0 throughout, one device of 9.0 with 256 MiB. Nothing may be alive. */
void tg_emulated_begin(void);
/* Allocations, streams, events and graphs that nobody gave back. */
int tg_emulated_alive(void);
size_t tg_emulated_device_bytes(void); /* in use, the context's too */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorUnknown = 999
};

/* The k-th call from now that may fail answers `e`; k 0: none. Returns how many there were
 * since the last time. */
int tg_emulated_fail_call(int k, cudaError_t e);
/* The k-th launch that is done from now fails while it runs: nothing is written, and every call
 * after that answers `e`. */
void tg_emulated_fail_launch(int k, cudaError_t e);

/* A library that works on the device has been opened: if it is the pretended cuBLASLt, it gets
 * a queue to work in and memory to take (fake_cublaslt.h). */
void tgi_emulated_library(void *so);

/* A call of the driver's own library by its name; NULL: this driver has none such. Each kernel
 * that the runtime is asked for lies in a module with one more. */
void *tg_emulated_driver_call(const char *name);
/* How many kernels have been loaded by it. */
int tg_emulated_loaded(void);

/* ---- The runtime ------------------------------------------------------------------------- */

typedef struct tg_emulated_stream *cudaStream_t;
typedef struct tg_emulated_event *cudaEvent_t;
typedef struct tg_emulated_graph *cudaGraph_t;
typedef struct tg_emulated_exec *cudaGraphExec_t;
typedef struct tg_emulated_node *cudaGraphNode_t;
typedef struct tg_emulated_kernel *cudaFunction_t;

typedef struct cudaUUID_t {
    char bytes[16];
} cudaUUID_t;
typedef struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem, sharedMemPerBlockOptin;
    int major, minor, multiProcessorCount, asyncEngineCount;
} cudaDeviceProp;
typedef struct cudaFuncAttributes {
    size_t sharedSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs;
} cudaFuncAttributes;
typedef struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
} cudaKernelNodeParams;

enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};
enum cudaLimit { cudaLimitStackSize = 0 };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaSharedCarveout { cudaSharedmemCarveoutMaxShared = 100 };
enum { cudaStreamNonBlocking = 1 };
enum { cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
enum { cudaHostAllocDefault = 0 };

const char *cudaGetErrorName(cudaError_t e);
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaGetLastError(void);
cudaError_t cudaDriverGetVersion(int *v);
cudaError_t cudaRuntimeGetVersion(int *v);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int id);
cudaError_t cudaSetDevice(int id);
cudaError_t cudaDeviceSetLimit(cudaLimit what, size_t bytes);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaMalloc(void **at, size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t q);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t q);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *q, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t q);
cudaError_t cudaStreamSynchronize(cudaStream_t q);
cudaError_t cudaStreamWaitEvent(cudaStream_t q, cudaEvent_t e, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t q);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *kernel);
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *f, const void *kernel);
cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute what, int value);
cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **params,
                             size_t shared_bytes, cudaStream_t q);
cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned flags);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t g,
                                   const cudaGraphNode_t *after, size_t n_after,
                                   const cudaKernelNodeParams *p);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t g,
                                          unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t e, cudaStream_t q);
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t q);
cudaError_t cudaGraphDestroy(cudaGraph_t g);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e);

#endif
