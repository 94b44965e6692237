/* run_device.c - reads pixels ahead for the device's executor and stores what it hands out. */
#include "engine/job/run_device.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_open.h"

#include <string.h>

/* ---- Pixels in and out ------------------------------------------------------------------- */

/* Where a cell lies, and the maps of its item's values. */
typedef struct place {
    tgi_range core[3];
    int64_t in[3], out[3];
    tgi_affine to_file;
} place;

static place place_of(const tgi_run_device *r, int64_t item, int64_t cell)
{
    const tgi_tiling *t = r->tiling;
    place p = {0};
    tgi_tiling_cell(t, cell, p.core);
    tgi_tiling_shift(t, cell, p.in, p.out);
    p.to_file = (tgi_affine){.mul = 1};
    if (r->loader)
        tgi_job_turn(r->job, r->sets, item, NULL, &p.to_file);
    return p;
}

static int port_of(const tgi_run_device *r, int i)
{
    return tgi_net_port(r->tiling->net, r->tiling->stage->in[i].value);
}

static tg_status fetch(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *out, const void **at, size_t *bytes, tgi_err *err)
{
    tgi_run_device *r = user;
    if (r->state.ops && tgi_device_state_in(&r->state, port_of(r, i), out)) {
        *bytes = 0;
        return TG_OK;
    }
    if (r->loader) /* an image is the only input, turned to the cell */
        return tgi_loader_pixels(r->loader, box, out, at, bytes, err);
    return tgi_tensor_reader_get(r->reader, cell->item, i, box, out, at, bytes, err);
}

static void ahead(void *user, const tgi_device_cell *cell, const tgi_box *box)
{
    tgi_run_device *r = user;
    if (!r->loader) {
        tgi_tensor_reader_ask(r->reader, cell->item, box);
        return;
    }
    const place p = place_of(r, cell->item, cell->cell);
    for (int i = 0; i < r->tiling->stage->n_loaded; i++)
        if (port_of(r, i) == 0 && !tgi_box_empty(&box[i]))
            tgi_loader_prefetch_at(r->loader, cell->item, p.in, &box[i]);
}

static int stays(void *user, int o, tgi_device_pixels *out)
{
    const tgi_run_device *r = user;
    return tgi_device_state_out(&r->state, r->tiling->stage->out[o].port, out);
}

void tgi_run_device_count(tgi_run_device *r, const tgi_box *box, const uint32_t *counts)
{
    const int64_t slabs = box->rank == 5 ? tgi_range_len(box->ax[2]) : 1;
    const int64_t rows = slabs * tgi_range_len(box->ax[box->rank - 2]);
    for (int64_t i = 0; i < rows; i++)
        r->nonfinite += counts[2 * i];
}

/* Rows of a cell that was begun some bands ago, maybe before the one that is loaded now. */
static tg_status take(void *user, const tgi_device_cell *cell, int o, const tgi_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    tgi_run_device *r = user;
    if (!r->store) {
        TGI_TRY(tgi_tensor_take(r->job->tensors, o, &r->job->dev.form.out[o], cell->item, box,
                                pixels, r->rows, err));
        tgi_run_device_count(r, box, counts);
        return TG_OK;
    }
    if (cell->item != r->item || cell->cell != r->cell) {
        const place p = place_of(r, cell->item, cell->cell);
        (void)tgi_store_cell(r->store, cell->item, p.core, p.out, p.to_file);
        r->item = cell->item;
        r->cell = cell->cell;
    }
    return tgi_store_pixels(r->store, box, pixels, counts, err);
}

/* ---- Open and close ---------------------------------------------------------------------- */

static tg_status open_reader(tgi_run_device *r, tgi_err *err)
{
    void *const staging[2] = {r->staging[0].at, r->staging[1].at};
    const tg_job *job = r->job;
    if (!job->tensors || job->source)
        return TG_OK;
    return tgi_tensor_reader_open(job->tensors, r->tiling, staging, r->rows + TGI_TENSOR_ROWS,
                                  &r->reader, err);
}

void tgi_run_device_warn(const tgi_run_device *r)
{
    tg_job *job = r->job;
    if (r->staging[0].ordinary || r->staging[1].ordinary || !tgi_device_exec_is_pinned(r->exec))
        tgi_job_device_warn_of_copies(job);
    if (tgi_device_exec_loose(r->exec))
        tgi_job_warn(job,
                     "%s: the driver made no graph of %d parts of the network; their kernels "
                     "are launched one by one, and small ones take longer",
                     job->device_text, tgi_device_exec_loose(r->exec));
}

tg_status tgi_run_device_open(tgi_run_device *r, tg_job *job, const tgi_tiling *t, void *rows,
                              tgi_err *err)
{
    const tgi_job_device *d = &job->dev;
    const tgi_device_io io = {
        .user = r, .fetch = fetch, .stays = stays, .ahead = ahead, .take = take};
    *r = (tgi_run_device){
        .job = job, .tiling = t, .rows = rows, .items = job->ends->items(job), .item = -1};
    job->dev.most_taken = 0;
    TGI_TRY(d->ops->times(d->device, job->dev.seconds_before, err));
    for (int k = 0; k < 2 && job->plan.bytes.staging; k++)
        TGI_TRY(tgi_pinned_get(d->ops, d->device, job->plan.bytes.staging / 2, &r->staging[k],
                               err));
    if (job->plan.choice.staged) /* each stage opens its own executor (pass_device.h) */
        return TG_OK;
    TGI_TRY(open_reader(r, err));
    TGI_TRY(tgi_device_state_open(&r->state, job, err));
    TGI_TRY(tgi_device_exec_open(d->ops, d->device, t, &d->form, &io, &r->exec, err));
    tgi_run_device_warn(r);
    return TG_OK;
}

tg_status tgi_run_device_open_ends(tgi_run_device *r, tg_job *job, const tgi_tiling *t,
                                   const tgi_device_form *form, const tgi_device_io *io,
                                   tgi_err *err)
{
    *r = (tgi_run_device){.job = job, .tiling = t, .items = 1, .item = -1};
    return tgi_device_exec_open(job->dev.ops, job->dev.device, t, form, io, &r->exec, err);
}

void tgi_run_device_stop(tgi_run_device *r)
{
    tgi_device_exec_close(&r->exec);
}

void tgi_run_device_close(tgi_run_device *r)
{
    tgi_run_device_stop(r);
    tgi_device_state_close(&r->state);
    tgi_tensor_reader_close(&r->reader);
    for (int k = 0; k < 2; k++)
        if (r->job)
            tgi_pinned_drop(r->job->dev.ops, r->job->dev.device, &r->staging[k]);
    memset(r, 0, sizeof *r);
}

/* ---- Bands ------------------------------------------------------------------------------- */

/* What of a cell is missing in the file; 0: nothing. */
static int missing_of(const tgi_run_device *r, int64_t item, int64_t cell, place *p)
{
    *p = place_of(r, item, cell);
    if (!r->store || r->state.ops) /* later frames need all of it; tiles that are there stay */
        return 1;
    p->core[0] = tgi_store_missing(r->store, item, p->core, p->out);
    return !tgi_range_empty(p->core[0]);
}

static tgi_device_cell id_of(const place *p, int64_t item, int64_t cell)
{
    return (tgi_device_cell){item, cell, (float)p->to_file.mul, (float)p->to_file.add};
}

/* Announce the cell that the run turns to after this one. */
static void expect_next(tgi_run_device *r, int64_t item, int64_t cell)
{
    const int64_t cells = r->tiling->cells;
    place p;
    do {
        cell = (cell + 1) % cells;
        item += cell == 0;
        if (item == r->items)
            return;
    } while (!missing_of(r, item, cell, &p));
    const tgi_device_cell id = id_of(&p, item, cell);
    tgi_device_exec_expect(r->exec, &id, p.core);
}

tg_status tgi_run_device_cell(tgi_run_device *r, int64_t item, int64_t cell,
                              tg_status (*tick)(void *user, tgi_err *err), void *user,
                              tgi_err *err)
{
    place p;
    if (!missing_of(r, item, cell, &p))
        return TG_OK;
    if (r->loader) {
        tgi_job_turn(r->job, r->sets, item, r->loader, &p.to_file);
        tgi_loader_place(r->loader, p.in);
    }
    const tgi_device_cell id = id_of(&p, item, cell);
    tgi_device_exec_begin(r->exec, &id, p.core);
    expect_next(r, item, cell);
    return tgi_device_exec_bands(r->exec, tick, user, err);
}

tg_status tgi_run_device_drain(tgi_run_device *r, tgi_err *err)
{
    return tgi_device_exec_drain(r->exec, err);
}
