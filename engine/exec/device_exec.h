/* device_exec.h - obeys a tiling on a device: while it computes a band, the pixels of the next
 * are read and uploaded and those of the one before are downloaded and written.
 *
 *     read    | k+2 |                       the caller's reader thread
 *     upload      | k+1 |                   queue UPLOAD
 *     compute | band k          | k+1 ...   queue COMPUTE
 *     download     | k-1 |                  queue DOWNLOAD
 *     write    | k-2 |                      this thread, then the committer's
 *
 * Two buffers on each side are enough: a buffer is free again when the step after it is done
 * with it, and that is what the events say. A buffer holds a band of every input, or of every
 * output that somebody takes, one behind the other: they travel together, behind one event. The
 * caller's thread puts band k into the queues, then hands out band k-2: so the device always
 * has another band to go on with, and the thread waits for nothing that it has just put there.
 * (Handing out k-1 instead left the device idle for an upload in each band.) Cells follow each
 * other without a gap in the queues; of one that was announced (expect) the first rows are read
 * ahead too.
 *
 * Memory is one block of the device, taken when the executor is opened; between the first band
 * and the last nothing is allocated. */
#ifndef TGI_DEVICE_EXEC_H
#define TGI_DEVICE_EXEC_H

#include "engine/base/busy.h"
#include "engine/plan/tiling.h"
#include "kernels/device.h"

/* Inputs, and outputs, of a stage at most. A network has fewer (TGI_MAX_PORTS); a stage that makes
 * values again loads the numbers of every norm on the way to them. */
#define TGI_DEVICE_PORTS 32

/* The form of the pixels of an input or output. */
typedef struct tgi_device_port {
    tg_dtype type;              /* of an output: TG_DTYPE_NONE: nobody takes it */
    int64_t channels, together; /* outputs: as tgi_device_pixels has them */
    size_t bytes;               /* inputs: of one band at most */
    int yuv;                    /* inputs: pixels are Y, U and V (tgi_device_pixels.yuv) */
    int once; /* inputs: the first band of a cell brings all of it, and no cell begins before the last one was handed out:
                 one buffer, which tgi_device_io.send fills */
    int stays; /* outputs: nothing of it ever comes back (tgi_device_io.stays), so no place is kept for that */
    int moments; /* outputs: moments of rows come back, as tgi_device_pixels says */
} tgi_device_port;

/* A job's pixels, on both ends of the device: by input and by output of the stage. */
typedef struct tgi_device_form {
    tgi_device_port in[TGI_DEVICE_PORTS], out[TGI_DEVICE_PORTS];
    int lanes; /* cells beside each other; 0: as 1 */
    int alone; /* 1: a band has nothing before or behind it that could be on its way meanwhile: one buffer on each side */
    /* Memory of the caller's, that executors which never run at once may share: tgi_device_need.room bytes of the
     * device, and .pinned of the host. NULL: the executor takes its own. */
    void *room, *back;
} tgi_device_form;

/* Bytes that a tiling takes: one block of the device, what the program holds beside it, and
 * pinned memory of the host for the pixels that come back. */
typedef struct tgi_device_need {
    size_t weights, constants, arena, pixels; /* parts of the block */
    size_t block, program;
    size_t room; /* of the block: arena and pixels, what form.room stands in for */
    size_t far;  /* of a schedule: buffers that stay on the device; of the block, too */
    size_t pinned;
    size_t packing; /* host: the largest node's weights, while they are uploaded */
} tgi_device_need;

tg_status tgi_device_need_of(const tgi_device_ops *ops, const tgi_tiling *t,
                             const tgi_device_form *form, tgi_device_need *out, tgi_err *err);

/* A cell as its owner knows it. */
typedef struct tgi_device_cell {
    int64_t item, cell;
    float mul, add; /* network value to output value */
} tgi_device_cell;

typedef struct tgi_device_io {
    void *user;
    /* The pixels of input i of a cell that fill `box`: how they lie, and where in (pinned)
     * memory. They stay until the second next call of fetch for this input. *bytes 0: they lie on the device already,
     * where out->at says, as the caller's queue of cells left them. */
    tg_status (*fetch)(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *out, const void **at, size_t *bytes, tgi_err *err);
    /* The same of an input that is loaded once, by the owner itself: put the pixels, as *out says that they lie, to `to` on
     * the device, in the queue UPLOAD. Of a form without such inputs NULL. out->at, NULL before: they lie there already. */
    tg_status (*send)(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                      void *to, tgi_device_pixels *out, tgi_err *err);
    /* Does output o stay on the device? 1: *out has the address, how its channels lie, their type, and which rows and columns
     * are there; nobody takes it. NULL: none does. */
    int (*stays)(void *user, int o, tgi_device_pixels *out);
    /* Announce the boxes that fetch will be asked for next: one for each input, and their cell.
     * Some may be empty. */
    void (*ahead)(void *user, const tgi_device_cell *cell, const tgi_box *box);
    /* Finished pixels of a cell over `box` of output o, and the counts of its rows. */
    tg_status (*take)(void *user, const tgi_device_cell *cell, int o, const tgi_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err);
} tgi_device_io;

typedef struct tgi_device_exec tgi_device_exec;

/* Take the memory, upload the weights, prepare the program. TG_E_NOMEM: the device (or the
 * host, for pinned memory) has less than the plan counted on; nothing is held then. All
 * borrowed; returned, tgi_device_exec_close. */
tg_status tgi_device_exec_open(const tgi_device_ops *ops, tgi_device *device,
                               const tgi_tiling *t, const tgi_device_form *form,
                               const tgi_device_io *io, tgi_device_exec **out, tgi_err *err);
/* What its tables take of the host, the plugin's own not counted. */
size_t tgi_device_exec_bytes(const tgi_tiling *t, const tgi_device_form *form);
/* 0: the system pinned no memory for what comes back (engine/device/pinned.h). */
int tgi_device_exec_is_pinned(const tgi_device_exec *e);
/* Parts of the programs, all lanes together, of which the driver made no graph. */
int tgi_device_exec_loose(const tgi_device_exec *e);
/* Waits for the queues first: the device may still read and write what the caller frees. */
void tgi_device_exec_close(tgi_device_exec **e);

/* Begin a cell (core as for tgi_exec_begin); bands of the one before may still be on their way.
 */
void tgi_device_exec_begin(tgi_device_exec *e, const tgi_device_cell *cell,
                           const tgi_range *core);
/* Announce the next cell. Once the current one is fed, the first rows of the next are asked for
 * ahead. */
void tgi_device_exec_expect(tgi_device_exec *e, const tgi_device_cell *cell,
                            const tgi_range *core);
/* All bands of the cell that was begun; `tick` (NULL: none) after each, not TG_OK ends them. */
tg_status tgi_device_exec_bands(tgi_device_exec *e, tg_status (*tick)(void *user, tgi_err *err),
                                void *user, tgi_err *err);
/* Hand out what is still on its way. */
tg_status tgi_device_exec_drain(tgi_device_exec *e, tgi_err *err);
/* After bands that did not end: wait for the device, and forget what would be handed out. */
void tgi_device_exec_give_up(tgi_device_exec *e);

/* Seconds that the caller's thread waited for the device, and for fetch. */
typedef struct tgi_device_times {
    double wait, fetch, take;
} tgi_device_times;
tgi_device_times tgi_device_exec_seconds(const tgi_device_exec *e);
/* From now on `busy`, borrowed, runs while the thread waits for the device. */
void tgi_device_exec_watch(tgi_device_exec *e, tgi_busy *busy);

#endif
