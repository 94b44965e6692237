/* device_run.h - run a variant of a device on views of the host: what a test has as float32 is
 * sent over in the device's element type, and comes back.
 *
 * The same tests are built twice: with the emulated device linked in
 * (tests/cuda/emulated_device.cc), and for one that the plugin opens (tests/gpu/gpu_device.c).
 */
#ifndef TG_DEVICE_RUN_H
#define TG_DEVICE_RUN_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A block of host memory that views of a call lie in. */
typedef struct device_block {
    float *at;
    size_t n;
    int written; /* 1: comes back after the run */
} device_block;

/* The device to test on and its table. NULL: there is none, as standard output says now; the
 * test is skipped. */
const tgi_device_ops *device_of_test(tgi_device **d);

/* Open the library that variants of TGI_KIND_LIBRARY compute with. 0: it is not there, as
 * standard output says now. */
int device_open_library(const tgi_device_ops *ops, tgi_device *d);
/* The table of a device that has those variants and no other, for every type. */
const tgi_device_ops *device_library_alone(const tgi_device_ops *ops);

/* Which generation's code the emulated device runs, 75, 80 or 90; a real one has its own. */
void device_generation(int capability);
/* Kinds of variants (TGI_KIND_*) that the device can compute, now. */
unsigned device_kinds(void);
/* 1: it computes with such numbers, now: bfloat16 comes with 8.0. */
int device_has(tg_dtype element);
/* The emulated device runs the last n blocks of each grid from now on; 0: all, as a real one
 * does whatever is said here. */
void device_blocks(unsigned last);
/* Of a device that the plugin opened (tests/gpu/gpu_device.c) alone: what it is. */
const tgi_device_info *device_described(void);

/* Numbers as the element type holds them: there, back, and both. */
size_t device_element_bytes(tg_dtype element);
void device_to_elements(tg_dtype element, const float *from, size_t n, void *to);
void device_from_elements(tg_dtype element, const void *from, size_t n, float *to);
void device_round(tg_dtype element, float *p, size_t n);

/* Run `call` of variant v once, as a program of one step. Views have bases inside of `blocks`.
 * `packed_bytes`: of call->packed. `slack`: how much longer call.most is than the box. */
tg_status device_run(const tgi_device_ops *ops, tgi_device *d, const tgi_kernel_set *be,
                     const tgi_variant *v, const tgi_call *call, size_t packed_bytes,
                     int64_t slack, const device_block *blocks, int n_blocks, tgi_err *err);
/* The same of a variant with scratch, which lies on the device; all its bits are set at first.
 */
tg_status device_run_scratch(const tgi_device_ops *ops, tgi_device *d, const tgi_kernel_set *be,
                             const tgi_variant *v, const tgi_call *call, size_t packed_bytes,
                             size_t scratch_bytes, int64_t slack, const device_block *blocks,
                             int n_blocks, tgi_err *err);

/* Of the emulated device alone: what `call` would launch, as one number (kernels, grids,
 * blocks, shared memory, bytes of arguments), and how many launches that is. */
uint64_t device_launches(const tgi_variant *v, const tgi_call *call, int *n);

#ifdef __cplusplus
}
#endif

#endif
