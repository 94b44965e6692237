/* cu_common.cuh - what every CUDA kernel file starts from: the contracts in C, the element
 * types, and how a launch is handed over.
 *
 * A variant's `run` (host code) turns a tgi_call into a struct of arguments of its own and
 * hands over (kernel, launch shape, arguments). Launch shapes follow from call.most alone; the
 * arguments, which hold views and boxes of this band, travel in one block of parameters for all
 * steps of a band, and the kernel reads its own from device memory. So the launches of a
 * program are the same in every band and can be one graph.
 *
 *     struct relu_args { ... };                             plain data, 8-byte aligned
 *     CU_KERNEL(cu_relu_f16, relu_args, 256, 2) { ... a->n ... }
 *     cu_launch(call, cu_relu_f16, grid, dim3(256), 0, args);
 *
 * A kernel whose box is empty, or whose block lies outside of it, returns at once. Kernels do
 * not allocate, print or synchronise; 64-bit indices wherever height times width may enter; the
 * image's height never on grid y or z alone (65,535).
 *
 * The same sources compile as C++ for the processor (TG_CUDA_EMULATED): tests run every kernel
 * there, block by block, against the reference. */
#ifndef TGI_CU_COMMON_CUH
#define TGI_CU_COMMON_CUH

#ifdef TG_CUDA_EMULATED
#include "tests/cuda/cuda_emulated.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "kernels/device.h"
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
}

/* A kernel over one struct of arguments. __restrict__ and const let the compiler read them
 * through the read-only path, once. */
#define CU_KERNEL(name, A, threads, blocks)                                                    \
    __global__ void __launch_bounds__(threads, blocks) name(const A *__restrict__ a)

/* Shared memory: a static array of n, and what the launch asked for. */
#ifndef TG_CUDA_EMULATED
#define CU_SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define CU_DYNAMIC_SHARED(T, name)                                                             \
    extern __shared__ __align__(16) unsigned char cu_dynamic_shared[];                         \
    T *const name = reinterpret_cast<T *>(cu_dynamic_shared)
#endif

/* As many bytes from the beginning of a launch's arguments on may be read, whatever they are.
 */
#define CU_ARGUMENTS_NEAR 1024

/* Shared memory that a block may take so that two are on a multiprocessor of compute capability
 * 9.0: half of its 228 KiB, less the 1 KiB that each block costs. */
#define CU_PATCH_SHARED 115712

/* X(suffix, type, ...) for each type that activations can have: a variant `cu_name` is
 * cu_name_f32, cu_name_f16 and cu_name_bf16. */
#define CU_ELEMENTS(X, ...)                                                                    \
    X(f32, float, __VA_ARGS__)                                                                 \
    X(f16, __half, __VA_ARGS__)                                                                \
    X(bf16, __nv_bfloat16, __VA_ARGS__)

/* cu_program.cu: note a launch of the step being recorded. Arguments are copied. Shared memory
 * beyond 48 KiB is asked for when the program is opened. */
void cu_put(void *recorder, const void *kernel, dim3 grid, dim3 block, unsigned shared_bytes,
            const void *args, size_t args_bytes);

template <class A>
inline void cu_launch(const tgi_call *call, void (*kernel)(const A *), dim3 grid, dim3 block,
                      unsigned shared_bytes, const A &args)
{
    cu_put(call->recorder, (const void *)kernel, grid, block, shared_bytes, &args, sizeof args);
}

#include "kernels/cuda/cu_modules.cuh"

#endif
