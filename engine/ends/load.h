/* load.h - rows of the source into a network input's view: read, pad, normalise.
 *
 * One reader thread fetches the rows of the next band into the second of two staging buffers
 * while the network computes; a fetch that was not foreseen is done on the spot. Staging lies
 * in the plan's reservation. */
#ifndef TGI_LOAD_H
#define TGI_LOAD_H

#include "engine/ends/stats.h"
#include "engine/plan/mapping.h"
#include "kernels/backend.h"
#include "kernels/device.h"
#include "kernels/threads.h"

typedef struct tgi_loader tgi_loader;

typedef struct tgi_loader_opts {
    tgi_source *source; /* opened for two threads at least: 0 the caller, 1 the reader */
    const tgi_mapping *map;
    int rank; /* of the network's input */
    void *staging[2];
    size_t staging_bytes;     /* of each; tgi_loader_bytes */
    tgi_threads *pool;        /* for the conversion; may be NULL */
    const tgi_kernel_set *be; /* which converts */
    tgi_yuv
        yuv; /* .there: the source is a film, and pixels go to a device as Y, U and V: no `fill` */
} tgi_loader_opts;

/* Bytes of one staging buffer for boxes of at most slabs x rows x columns (images: one slab),
 * padding included. */
size_t tgi_loader_bytes(const tgi_mapping *m, tg_dtype type, int64_t slabs, int64_t rows,
                        int64_t columns);

/* The same of an image that is staged as Y, U and V. */
size_t tgi_loader_yuv_bytes(const tgi_mapping *m, const tgi_yuv *yuv, int64_t rows,
                            int64_t columns);

tg_status tgi_loader_open(const tgi_loader_opts *o, tgi_loader **out, tgi_err *err);
void tgi_loader_close(tgi_loader **l);
/* The item (plane or volume) that boxes refer to from now on, and its normalisation; */
void tgi_loader_item(tgi_loader *l, int64_t item, tgi_affine affine);
/* behind that, of channel c alone: channels in their order. */
void tgi_loader_channel(tgi_loader *l, int64_t c, tgi_affine affine);
/* Where boxes lie: pixel i of the region is i + shift[] for the network (z,y,x). At first what
 * the mapping pads before the region. */
void tgi_loader_place(tgi_loader *l, const int64_t shift[3]);
/* Ask for a box to be fetched in the background; at most one is under way. */
void tgi_loader_prefetch(tgi_loader *l, const tgi_box *box);
/* The same for a box that another item, or another place, will be turned to for. */
void tgi_loader_prefetch_at(tgi_loader *l, int64_t item, const int64_t shift[3],
                            const tgi_box *box);
/* Fill the view over `box` (network coordinates, padding included). */
tg_status tgi_loader_fill(tgi_loader *l, const tgi_view *view, const tgi_box *box,
                          tgi_err *err);
/* What a device fills its view from: the staged pixels themselves, *bytes of them at *at, and
 * how they lie. They stay until the next box but one is asked for. */
tg_status tgi_loader_pixels(tgi_loader *l, const tgi_box *box, tgi_device_pixels *out,
                            const void **at, size_t *bytes, tgi_err *err);
/* Seconds that fill waited for bytes. */
double tgi_loader_wait_seconds(const tgi_loader *l);

#endif
