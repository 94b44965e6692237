/* pass_device.c - feeds the executor of a stage on a device, and stores what it hands out. */
#include "engine/job/pass_device.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/exec/dense.h"
#include "engine/job/device_stages.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/pass.h"

#include <string.h>

/* ---- Up ---------------------------------------------------------------------------------- */

/* What an earlier stage left, or rows of an array: pixels of a region that is the value itself. */
static tg_status fetch_planes(tgi_pass *p, int i, const tgi_box *box, tgi_device_pixels *out,
                              const void **at, size_t *bytes, tgi_err *err)
{
    tgi_pass_device *d = &p->stages.device;
    const int v = p->tiling->stage->in[i].value, n = box->rank;
    const tgi_net_value *value = &p->tiling->net->values[v];
    float *to = (float *)(void *)((char *)d->up.at + (size_t)d->ports->turn[i] * d->up_bytes +
                                  d->ports->up_at[i]);
    const tgi_view view = tgi_planes_view(to, box, value->c);
    d->ports->turn[i] = !d->ports->turn[i];
    TGI_TRY(tgi_pass_stages_load(p, i, &view, box, err));
    *out = (tgi_device_pixels){.type = TG_DTYPE_F32,
                               .channels = value->c,
                               .together = 1,
                               .rows = box->ax[n - 2],
                               .cols = box->ax[n - 1],
                               .pad = TGI_LOAD_ZERO,
                               .mul = 1};
    for (int k = 0; k < 3; k++)
        out->extent[k] = n - 3 + k < 2 ? 1 : value->ext.dim[n - 3 + k];
    *at = to;
    *bytes = sizeof(float) * (size_t)value->c;
    for (int a = TGI_STREAM_AXIS; a < n; a++)
        *bytes *= (size_t)tgi_range_len(box->ax[a]);
    return TG_OK;
}

static tg_status fetch(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *out, const void **at, size_t *bytes, tgi_err *err)
{
    tgi_pass *p = user;
    (void)cell;
    return p->loader && tgi_net_port(p->tiling->net, p->tiling->stage->in[i].value) >= 0
               ? tgi_loader_pixels(p->loader, box, out, at, bytes, err)
               : fetch_planes(p, i, box, out, at, bytes, err);
}

static void ahead(void *user, const tgi_device_cell *cell, const tgi_box *box)
{
    tgi_pass *p = user;
    const tgi_stage *t = p->tiling->stage;
    for (int i = 0; p->loader && i < t->n_loaded; i++)
        if (tgi_net_port(t->net, t->in[i].value) >= 0 && !tgi_box_empty(&box[i]))
            tgi_loader_prefetch_at(p->loader, cell->item, p->stages.shift, &box[i]);
}

/* ---- Back -------------------------------------------------------------------------------- */

static tg_status take(void *user, const tgi_device_cell *cell, int o, const tgi_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    tgi_pass *p = user;
    const tgi_stage_out *out = &p->tiling->stage->out[o];
    (void)cell;
    if (p->stages.device.ports->form.out[o].moments)
        return tgi_pass_stages_store_sums(p, o, pixels, box, err);
    if (out->port < 0 || !p->device.store) {
        const tgi_view view =
            tgi_planes_view(pixels, box, p->tiling->net->values[out->value].c);
        if (out->port >= 0)
            tgi_run_device_count(&p->device, box, counts);
        return tgi_pass_stages_store(p, o, &view, box, err);
    }
    tgi_pass_stages_rows(p, o, box);
    return tgi_store_pixels(p->device.store, box, pixels, counts, err);
}

/* ---- A stage ----------------------------------------------------------------------------- */

tg_status tgi_pass_device_begin(tgi_pass *p, tgi_err *err)
{
    tgi_pass_device *d = &p->stages.device;
    tg_job *job = p->job;
    const tgi_device_io io = {.user = p, .fetch = fetch, .ahead = ahead, .take = take};
    memset(d, 0, sizeof *d);
    d->ports = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *d->ports);
    if (!d->ports)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the ports of a stage");
    tgi_device_stage_form(job, p->tiling, &d->ports->form);
    const size_t up = tgi_device_stage_up(job, p->tiling, &d->ports->form, d->ports->up_at);
    d->up_bytes = up / 2;
    TGI_TRY(tgi_pinned_get(job->dev.ops, job->dev.device, up ? up : 1, &d->up, err));
    TGI_TRY(tgi_device_exec_open(job->dev.ops, job->dev.device, p->tiling, &d->ports->form, &io,
                                 &p->device.exec, err));
    tgi_device_exec_watch(p->device.exec, &p->busy);
    if (p->stages.at == 0)
        tgi_run_device_warn(&p->device);
    const uint64_t taken = tgi_job_device_taken(job);
    if (taken > job->dev.most_taken)
        job->dev.most_taken = taken;
    return tgi_graph_unchanged(job->graph, err);
}

tg_status tgi_pass_device_core(tgi_pass *p, int64_t cell, const tgi_range core[3],
                               tg_status (*tick)(void *user, tgi_err *err), tgi_err *err)
{
    const tgi_affine out =
        p->device.store ? p->out : (tgi_affine){.mul = 1}; /* else who stores maps */
    const tgi_device_cell id = {p->item, cell, (float)out.mul, (float)out.add};
    tgi_device_exec_begin(p->device.exec, &id, core);
    TGI_TRY(tgi_device_exec_bands(p->device.exec, tick, p, err));
    return tgi_device_exec_drain(p->device.exec, err);
}

void tgi_pass_device_end(tgi_pass *p)
{
    if (p->device.exec) {
        const tgi_device_times t = tgi_device_exec_seconds(p->device.exec);
        p->stages.behind.compute += t.wait;
        p->stages.behind.load += t.fetch;
        p->stages.behind.store += t.take;
    }
    tgi_device_exec_close(&p->device.exec);
    if (p->job)
        tgi_pinned_drop(p->job->dev.ops, p->job->dev.device, &p->stages.device.up);
    tgi_free(p->stages.device.ports);
    p->stages.device.ports = NULL;
}
