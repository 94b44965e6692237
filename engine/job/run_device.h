/* run_device.h - the bands of a pass on a device: what the pass hands to the executor of the
 * device, and what it gets back. Pixels come from an image or from arrays, and go into tiles of
 * an image or into arrays; or both ends are the caller's. */
#ifndef TGI_RUN_DEVICE_H
#define TGI_RUN_DEVICE_H

#include "engine/device/pinned.h"
#include "engine/ends/load.h"
#include "engine/ends/store.h"
#include "engine/ends/tensor_rows.h"
#include "engine/exec/device_exec.h"
#include "engine/job/device_state.h"
#include "engine/job/job.h"

typedef struct tgi_run_device {
    tg_job *job;
    const tgi_tiling *tiling; /* whose cells are walked; dev.form is its */
    tgi_loader *loader;       /* of an image; NULL: */
    tgi_tensor_reader *reader;
    tgi_store *store;      /* of an image; NULL: arrays */
    char *rows;            /* of arrays: TGI_TENSOR_ROWS bytes to write, then as many to read */
    const tgi_stats *sets; /* of an image */
    tgi_device_exec *exec;
    tgi_pinned staging[2];
    tgi_device_state state; /* from frame to frame */
    int64_t items;          /* that are walked, one after the other */
    int64_t item, cell;     /* that the store is turned to; -1: none yet */
    int64_t nonfinite;      /* values in arrays that are NaN or infinite */
} tgi_run_device;

/* Take pinned staging and everything on the device. `rows`, borrowed: the plan's window where
 * arrays are read or written, else NULL. TG_E_NOMEM: somebody else has what the plan counted
 * on. Closing is safe any time. */
tg_status tgi_run_device_open(tgi_run_device *r, tg_job *job, const tgi_tiling *t, void *rows,
                              tgi_err *err);
/* The same for one item, whose pixels the caller fetches and takes, in `form`; no staging. */
tg_status tgi_run_device_open_ends(tgi_run_device *r, tg_job *job, const tgi_tiling *t,
                                   const tgi_device_form *form, const tgi_device_io *io,
                                   tgi_err *err);
/* Values of arrays that are no numbers: `counts` as a device's store counts them, by row of the
 * box. */
void tgi_run_device_count(tgi_run_device *r, const tgi_box *box, const uint32_t *counts);
/* Tell what the system pinned no memory for, and what the driver made no graph of. */
void tgi_run_device_warn(const tgi_run_device *r);
/* The device reads and writes nothing any more: what fills the staging can be closed. */
void tgi_run_device_stop(tgi_run_device *r);
void tgi_run_device_close(tgi_run_device *r);
/* All bands of a cell into the queues; `tick` after each. Rows before `from` of the core are in
 * the file. */
tg_status tgi_run_device_cell(tgi_run_device *r, int64_t item, int64_t cell,
                              tg_status (*tick)(void *user, tgi_err *err), void *user,
                              tgi_err *err);
/* Everything that is on its way is stored when it returns. */
tg_status tgi_run_device_drain(tgi_run_device *r, tgi_err *err);

#endif
