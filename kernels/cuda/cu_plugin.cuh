/* cu_plugin.cuh - the host side of the plugin: what its own files know of each other.
 *
 *     cu_device.cu   a device: context, memory, queues, events; the table tgi_device_ops
 *     cu_program.cu  the steps of a band as one graph over a block of parameters
 *     cu_modules.cu  all kernels, loaded when a device is opened
 *     cu_library.cu  cuBLASLt, opened at run time, and the products it computes
 *     cu_device_library.cu  the same as a device has it: opened, tried, closed
 *     cu_backend.cu  the variants, a table per element type
 *     cu_pixels.cu   pixels in and out
 *     cu_times.cu    how long queues have worked, for the benches
 *
 * Every call of the runtime is looked at. The first failure other than "no memory" is kept in
 * the device and answered from then on: after it nothing computed can be trusted. */
#ifndef TGI_CU_PLUGIN_CUH
#define TGI_CU_PLUGIN_CUH

#include "kernels/cuda/cu_common.cuh"
#include "kernels/cuda/cu_library.cuh"
#include "kernels/cuda/cu_times.cuh"
#ifdef TG_CUDA_EMULATED
#include "tests/cuda/cuda_runtime_emulated.h"
#endif

#include <pthread.h>

extern "C" {
#include "engine/base/mem.h"
}

/* What a thread's stack on the device holds before the driver takes more memory for it: set
 * when a device is opened, raised by a program whose kernels want more. */
#define CU_STACK_BYTES 1024u

struct tgi_device {
    int id;
    int alive;           /* context and queues are there */
    size_t shared_limit; /* bytes of shared memory a block can ask for */
    cudaStream_t queue[TGI_QUEUE_COUNT];
    cudaEvent_t end[TGI_QUEUE_COUNT]; /* for waiting until all queues are empty */
    pthread_mutex_t lock;             /* of the two below */
    int broken;
    char why[TGI_ERR_TEXT];
    cu_times times;
    cu_library *library; /* NULL: not open */
    void *workspaces;    /* on the device, of the library's products: one of each queue */
};

/* Turn a runtime's answer into a status. `step` names the step of a program, or is NULL. What
 * is not TG_OK or TG_E_NOMEM is kept in the device. `d` NULL: no device to keep it in. */
tg_status cu_answer(tgi_device *d, cudaError_t e, const char *call, const char *step,
                    tgi_err *err);
/* The same where nothing is taken any more: "no memory" is a failure like any other then, and
 * stays. Queues, waits, running programs. */
tg_status cu_done(tgi_device *d, cudaError_t e, const char *call, const char *step,
                  tgi_err *err);
/* Keep a failure that was answered elsewhere, if it is one of the device's (TG_E_DEVICE).
 * Returns `st`. */
tg_status cu_keep(tgi_device *d, tg_status st, const tgi_err *why);
/* TG_OK while the device is whole; makes it the calling thread's. */
tg_status cu_enter(tgi_device *d, tgi_err *err);

#define CU_TRY(d, call, err) TGI_TRY(cu_answer(d, call, #call, NULL, err))
#define CU_DO(d, call, err) TGI_TRY(cu_done(d, call, #call, NULL, err))

/* cu_program.cu; as tgi_device_ops says. */
tg_status cu_program_open(tgi_device *d, tgi_device_queue q, const tgi_device_step *steps,
                          int n, tgi_device_program **out, size_t *bytes, tgi_err *err);
void cu_program_close(tgi_device_program **p);
tg_status cu_program_run(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err);
int cu_program_loose(const tgi_device_program *p);
tg_status cu_program_time(tgi_device_program *p, const tgi_device_step *steps, double *seconds,
                          tgi_err *err);

/* cu_modules.cu: with the driver's help, where it has any; the device is the calling thread's. */
tg_status cu_modules_load(tgi_err *err);

/* cu_device_library.cu; as tgi_device_ops says. */
tg_status cu_device_library(tgi_device *d, int open, tgi_err *err);
const char *cu_device_library_name(tgi_device *d);
void cu_device_library_close(tgi_device *d);
void *cu_device_workspace(const tgi_device *d, tgi_device_queue q);

/* cu_backend.cu: the variants for activations of this type; NULL: not offered. */
const tgi_kernel_set *cu_backend_of(tg_dtype element);

/* cu_pixels.cu: launches of a LOAD or STORE step, whose call has its recorder. */
void cu_pixels_put(const tgi_device_step *step);

#endif
