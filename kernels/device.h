/* device.h - a device that computes beside the processor: what a plugin gives the engine.
 *
 * The engine plans and obeys; a device owns memory, queues and kernels. Work put into a
 * queue is done in the order of the queue, at some later time; an event is a place in a queue
 * that another queue, or the caller, can wait for:
 *
 *     upload     | pixels k+1 |          | pixels k+2 |
 *     compute         | band k             | band k+1            |
 *     download             | pixels k-1 |       | pixels k  |
 *
 * MEMORY. Activations lie on the device as views (kernels/op.h) whose `base` is a device
 * address and whose elements have the backend's type: pitches count elements. Pixels lie whole
 * (NHWC): a value has one block, cb = tgi_whole_pixel(c) lanes, the unused ones zero, always.
 *
 * BORDERS. A device kernel decides by image coordinates alone (ctx->src[].dim) what lies
 * outside of the image and never reads there: stored columns outside of it, which kernels of
 * the processor find zero, hold anything here. Rows and columns inside it that are needed
 * are there.
 *
 * FLAT. A node that reads or yields something that is no image works on whole arrays
 * (tgi_variant.flat): dense, row-major, every number as the backend's element type.
 *
 * BANDS. A *program* is a list of steps that is the same for every band of every cell: what
 * changes between bands (views' first columns, boxes) is handed in each time, launch shapes
 * follow from call.most alone. A step with an empty box does nothing. So a plugin can keep all
 * launches as one graph and send the rest as a block of parameters.
 *
 * ERRORS. Every call answers; a failed launch shows at the latest in the next `sync`, which
 * then fails, as does everything after it (TG_E_DEVICE, sticky): no byte downloaded before a
 * good `sync` may be used. TG_E_NOMEM of alloc and pin is not sticky; where it is the device's
 * memory that is short the error says so (TGI_DEVICE_ASKS). */
#ifndef TGI_DEVICE_H
#define TGI_DEVICE_H

#include "engine/base/yuv.h"
#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TGI_DEVICE_ABI 12u /* rises with any change of this header, op.h or backend.h */

/* tgi_err.asked_by of a TG_E_NOMEM when the memory of the device ran out, not that of the
 * machine: a plan that takes less of it may succeed. */
#define TGI_DEVICE_ASKS "the device"

typedef struct tgi_device tgi_device;                 /* one device, opened: a context */
typedef struct tgi_device_event tgi_device_event;     /* a place in a queue */
typedef struct tgi_device_program tgi_device_program; /* the steps of a band, prepared */

/* Cells that are small enough to leave a device idle are computed beside each other, each in a
 * lane: a compute queue, a program and an arena of its own. */
#define TGI_DEVICE_LANES 8

typedef enum tgi_device_queue {
    TGI_QUEUE_UPLOAD,
    TGI_QUEUE_DOWNLOAD,
    TGI_QUEUE_COMPUTE, /* of lane 0; the others' follow */
    TGI_QUEUE_COUNT = TGI_QUEUE_COMPUTE + TGI_DEVICE_LANES
} tgi_device_queue;

static inline tgi_device_queue tgi_device_lane(int lane)
{
    return (tgi_device_queue)((int)TGI_QUEUE_COMPUTE + lane);
}

typedef struct tgi_device_info {
    int id;           /* as the driver counts */
    char name[96];    /* "NVIDIA H200" */
    char uuid[48];    /* "GPU-...", or "" */
    int major, minor; /* compute capability; 0.0 of a device that has none */
    int multiprocessors;
    uint64_t total_bytes; /* of its memory */
    int copies_overlap;   /* 1: copies both ways run beside kernels */
    int bf16;             /* 1: it multiplies bfloat16 numbers */
    unsigned kinds;       /* of variants that it can compute: TGI_KIND_* */
    char driver[64];      /* versions of driver and runtime, one line */
} tgi_device_info;

/* How coordinates outside of an image are filled when it is loaded; as tgi_pad_mode. */
typedef enum tgi_load_pad { TGI_LOAD_REFLECT, TGI_LOAD_EDGE, TGI_LOAD_ZERO } tgi_load_pad;

/* Staged pixels of a rectangle, dense, in this order: slab, plane, row, column, sample. A plane
 * holds `together` channels side by side; there are channels / together planes. Slabs are those
 * of the step's box (one for an image); rows and columns are numbered in the region's frame,
 * in which pixel i is i + shift[] (z,y,x) of the network. They may be more than the box has: then
 * the box is a part of what lies there. */
typedef struct tgi_device_pixels {
    void *at; /* device address, 16-byte aligned */
    tg_dtype type;
    tg_dtype element; /* of the activation beside the pixels: the backend's */
    int64_t channels, together;
    int64_t pitch; /* numbers from pixel to pixel of a plane; 0: together */
    tgi_range rows, cols;
    int64_t shift[3];
    int64_t extent[3]; /* of the region; load only: outside, `pad` says what is read */
    tgi_load_pad pad;
    float mul, add; /* load: value = pixel * mul + add; store: pixel = value * mul + add, as
                       kernels/pixels.h defines both */
    /* load: where .there, the pixels are staged as Y, U and V (engine/base/yuv.h says how, and what R, G and B they are, which
     * `mul` and `add` are then applied to); channels and together are 3, `type` that of the numbers. A program's step has
     * them in all bands or in none. */
    tgi_yuv yuv;
    /* store: two numbers for each row of the box (slabs times rows): values that are NaN or
     * infinite, and values that an integer type cannot hold. Added to by the kernel; device
     * address, zeroed by the step itself. */
    uint32_t *counts;
    /* store: 1: no pixels but moments of their rows (kernels/granule.h), whatever type and maps
     * say: numbers of 64 bits, in this order: slab, row, granule of the row, sums of its channels,
     * their squared distances. In x the box begins at a granule, and ends at one or at the
     * image's border. `counts` stays 0. */
    int moments;
    tgi_pick pick; /* store: the value is the number of a channel of the pixel, finite; channels
                     and together are 1. TGI_PICK_NONE: a value for each channel */
} tgi_device_pixels;

typedef enum tgi_device_step_kind {
    TGI_STEP_NODE,  /* call as its variant wants it */
    TGI_STEP_LOAD,  /* call.dst[0] over call.box := pixels */
    TGI_STEP_STORE, /* pixels := call.src[0].seg[0] over call.box, which lies in rows and cols */
} tgi_device_step_kind;

typedef struct tgi_device_step {
    tgi_device_step_kind kind;
    const tgi_variant *variant; /* of a node; one of the device's backend */
    tgi_call call;              /* addresses in it are the device's, `packed` and epilogue
                                  vectors (epi[].vec) included */
    tgi_device_pixels pixels;   /* of LOAD and STORE */
} tgi_device_step;

typedef struct tgi_device_ops {
    uint32_t abi;
    const char *name; /* "cuda": as --device spells it */
    /* Variants for activations of this type; NULL: not offered. Static. */
    const tgi_kernel_set *(*backend)(tg_dtype element);
    /* Devices there are. TG_E_DEVICE with the reason when there is no driver, or none that
     * fits. */
    tg_status (*count)(int *n, tgi_err *err);
    /* What can be known of device `id` without a context. */
    tg_status (*describe)(int id, tgi_device_info *out, tgi_err *err);
    /* Make a context on device `id`. When it returns, everything that takes memory there beside
     * `alloc` has been made: context, kernels, stack limits. Returned; `close`. */
    tg_status (*open)(int id, tgi_device **out, tgi_err *err);
    void (*close)(tgi_device **d);
    /* Bytes free and in all, as the driver says now. */
    tg_status (*memory)(tgi_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                        tgi_err *err);
    /* Device memory, 256-byte aligned; contents undefined. */
    tg_status (*alloc)(tgi_device *d, size_t bytes, void **at, tgi_err *err);
    void (*release)(tgi_device *d, void *at);
    /* Host memory that copies can use without the processor. */
    tg_status (*pin)(tgi_device *d, size_t bytes, void **at, tgi_err *err);
    void (*unpin)(tgi_device *d, void *at);
    /* Copies between pinned (or, slowly, any) host memory and the device. */
    tg_status (*upload)(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                        size_t bytes, tgi_err *err);
    tg_status (*download)(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                          size_t bytes, tgi_err *err);
    /* From one place of the device to another; src NULL: zeros. */
    tg_status (*copy)(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                      size_t bytes, tgi_err *err);
    tg_status (*event_new)(tgi_device *d, tgi_device_event **out, tgi_err *err);
    void (*event_free)(tgi_device *d, tgi_device_event *e);
    /* The event is from now on where the queue ends now. */
    tg_status (*record)(tgi_device *d, tgi_device_queue q, tgi_device_event *e, tgi_err *err);
    /* What is put into `q` later begins after the event, as it was last recorded; one never
     * recorded is past. */
    tg_status (*wait)(tgi_device *d, tgi_device_queue q, tgi_device_event *e, tgi_err *err);
    /* Block the caller until then. NULL: until all queues are empty. */
    tg_status (*sync)(tgi_device *d, tgi_device_event *e, tgi_err *err);
    /* Prepare a program of n steps for a compute queue. `*bytes`: what it holds on the device,
     * parameters and graphs; with out == NULL it is only counted. `d` may be NULL then.
     * TG_E_UNSUPPORTED: the library does not compute one of the steps: plan without it. */
    tg_status (*program_open)(tgi_device *d, tgi_device_queue q, const tgi_device_step *steps,
                              int n, tgi_device_program **out, size_t *bytes, tgi_err *err);
    void (*program_close)(tgi_device_program **p);
    /* Put the steps into the program's queue. `steps`: the same nodes, with this band's views
     * and boxes; read before the call returns. */
    tg_status (*program_run)(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err);
    /* The same, and wait: the seconds it took by the device's own clock. */
    tg_status (*program_time)(tgi_device_program *p, const tgi_device_step *steps,
                              double *seconds, tgi_err *err);
    /* Parts of the program whose launches go one by one, since the driver made no graph of
     * them. */
    int (*program_loose)(const tgi_device_program *p);
    /* Seconds that uploads, downloads and kernels (of all lanes together) have taken since the
     * device was opened; waits for what is in the queues. All 0: nobody measures. */
    tg_status (*times)(tgi_device *d, double seconds[3], tgi_err *err);
    /* Open the library that variants of TGI_KIND_LIBRARY compute with, or close it. When it is
     * open, everything that it takes on the device has been taken; closing gives back what can
     * be. TG_E_UNSUPPORTED with the reason in one line where there is none that fits: the
     * device is as it was. */
    tg_status (*library)(tgi_device *d, int open, tgi_err *err);
    /* What is open, with its version; NULL: nothing is. Lives until it is closed. */
    const char *(*library_name)(tgi_device *d);
} tgi_device_ops;

/* The one symbol of a plugin: its table, or NULL when it was built for another ABI. */
#define TGI_DEVICE_PLUGIN_SYMBOL "tgi_device_plugin"
typedef const tgi_device_ops *(*tgi_device_plugin_fn)(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif
