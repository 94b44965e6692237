/* fake_device.h - a device for tests that behaves like one: limited memory, three queues, a
 * clock, failures to order. Its memory is the host's, its kernels are the references.
 *
 * It is *late*: what is put into a queue is done only when somebody waits for it, so a wait
 * that is missing reads what is not there yet, or overwrites what was still to be sent. Freed
 * and fresh memory is poisoned.
 *
 * Its clock is not the machine's. Every piece of work takes a time of its own; the host's time
 * advances when a test says so (fake_host_works) and when it waits. The log tells, in order of
 * the clock, which queue worked from when to when. */
#ifndef TG_FAKE_DEVICE_H
#define TG_FAKE_DEVICE_H

#include "kernels/device.h"

/* As a plugin it is reached by name. */
#define FAKE_API __attribute__((visibility("default")))

typedef enum fake_call {
    FAKE_OPEN,
    FAKE_ALLOC,
    FAKE_PIN,
    FAKE_UPLOAD,
    FAKE_DOWNLOAD,
    FAKE_RUN,
    FAKE_SYNC,
    FAKE_PROGRAM,
    FAKE_LIBRARY,
    FAKE_CALLS
} fake_call;

#define FAKE_UUID "GPU-fa4e"

typedef struct fake_settings {
    int devices;          /* how many there are; 0: "no device" */
    size_t bytes;         /* of memory */
    size_t taken;         /* of these, by somebody else */
    size_t context_bytes; /* taken by open */
    long comes;           /* bytes that somebody else takes meanwhile; < 0: gives back */
    int listed;           /* its management library lists processes */
    int uncountable;      /* what a program would take cannot be told */
    int told;             /* it has FAKE_UUID, and its management library shows it */
    size_t told_beside;   /* that counts so many bytes more: it shows what this is a part of */
    int keeps_context;    /* it is the process's: closing gives nothing back */
    size_t library_keeps; /* of its library's bytes, when that is closed */
    size_t library_bytes; /* taken by its library while it is open; 0: it has none */
    int newer_library;    /* it has another version */
    unsigned kinds;       /* of variants that it says it can (TGI_KIND_*) */
    int halves;           /* it has variants for float16 */
    double upload_per_byte, download_per_byte; /* seconds of the fake clock */
    double run_seconds;                        /* of a program with something to do */
    int hollow; /* nodes compute nothing: for tests of the clock alone */
    int counts; /* says what was copied when it is closed */
    int loose;  /* parts of each program that no graph was made of */
    int eager[TGI_QUEUE_COUNT];
    int fail_at[FAKE_CALLS]; /* the how-manieth call fails, from 1; 0: none; -n: and all later
                              */
    tg_status fail_with[FAKE_CALLS];
} fake_settings;

extern FAKE_API fake_settings
    fake; /* as the next calls find it; all zero but for one device of 1 GiB */

/* One piece of work on the fake clock. */
typedef struct fake_work {
    tgi_device_queue queue;
    double from, to;
} fake_work;

/* Forget log, clock and counters; settings as at first. */
FAKE_API void fake_reset(void);
FAKE_API double fake_now(void);
/* The host is busy for so many seconds. */
void fake_host_works(double seconds);
FAKE_API int fake_log(const fake_work **out);
/* Most bytes that were allocated at the same time, the context included. */
FAKE_API size_t fake_peak_bytes(void);
FAKE_API int fake_count(fake_call call);
/* Blocks, pinned blocks, events, programs and devices not given back. */
FAKE_API int fake_open_things(void);

/* The table that a plugin would give. */
const tgi_device_ops *fake_device_ops(void);
size_t fake_used_bytes(void); /* without what is somebody else's */

/* fake_kernels.c */
const tgi_kernel_set *fake_backend(tg_dtype element);
/* Do a step now: views and pixels are the host's. */
tg_status fake_run_step(const tgi_device_step *step, tgi_err *err);
/* A Conv's sums, those of the reference; 0: it is none of those that are made so. */
int fake_conv(const tgi_call *call);
int fake_conv_transpose(const tgi_call *call);
/* Those of an attention or a lookup. */
int fake_sums(const char *op, const tgi_call *call);
/* fake_halves.c: a step over numbers of 16 bits, by what runs one over float32. */
tg_status fake_run_halves(const tgi_device_step *step,
                          tg_status (*run)(const tgi_device_step *step, tgi_err *err),
                          tgi_err *err);

#endif
