/* pass.c - reserves the memory of a pass, opens its ends and walks its cells. */
#include "engine/job/pass.h"

#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/job/ends.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "engine/job/job_state.h"
#include "engine/memory/monitor.h"

#include <stdio.h>
#include <string.h>

/* ---- Memory ------------------------------------------------------------------------------ */

/* A budget is what the user allows, not what there is: populating beyond a cgroup's limit would
 * be answered by a kill. */
static tg_status check_free(size_t need, tgi_err *err)
{
    tgi_free_memory free_now;
    char want[32], have[32];
    if (tgi_sat_add(tgi_mem_available(&free_now), tgi_pages_kept()) >= need)
        return TG_OK;
    const char *option = tgi_free_memory_option(&free_now);
    char other[48] = "free memory";
    if (option)
        snprintf(other, sizeof other, "raise that limit (%s)", option);
    return tgi_err_tried(
        err,
        tgi_fail(err, TG_E_NOMEM,
                 "the plan reserves %s, only %s is free now (%s): give a smaller --ram, or %s",
                 tgi_size_above(need, want, sizeof want),
                 tgi_size_below(free_now.bytes, have, sizeof have), free_now.limited_by, other),
        "the reservation", need);
}

/* Of a job on a device weights are sent and staging is pinned; neither lies in the
 * reservation. What a first pass takes of it by itself is left. */
static tg_status reserve_blocks(tgi_pass *p, tgi_err *err)
{
    const tgi_bytes *b = &p->job->plan.bytes;
    const int device = tgi_job_pass_ops(p->job) != NULL;
    const size_t weights = device ? 0 : b->weights, staging = device ? 0 : b->staging / 2;
    void *numbers = NULL;
    const tgi_want want[] = {
        {"weights", weights, &p->packed},         {"arena", b->arena, &p->arena},
        {"staging", staging, &p->staging[0]},     {"staging", staging, &p->staging[1]},
        {"window", b->window, &p->window},        {"rows", b->rows, &p->rows},
        {"receipt", b->receipt, &p->receipt},     {"kept", b->kept, &p->stages.memory},
        {"states", b->states, &p->stages.states}, {"numbers", b->numbers, &numbers},
        {"state", b->carried, &p->carried_memory}};
    TGI_TRY(check_free(weights + b->arena + 2 * staging + b->window + b->rows + b->receipt +
                           b->kept + b->states + b->numbers + b->carried + b->statistics +
                           (device ? b->weights + b->staging + b->pinned : 0),
                       err));
    TGI_TRY(
        tgi_reserve_all(want, sizeof want / sizeof want[0], b->statistics, &p->reserve, err));
    p->stages.numbers = numbers;
    return TG_OK;
}

/* Until a stage begins, all of the arena is there for a first pass over the image. */
static void lend_arena(tgi_pass *p)
{
    p->stages.plan = p->job->plan.choice.staged;
    if (!p->stages.plan || tgi_job_pass_ops(p->job))
        return;
    p->staging[0] = p->staging[1] = p->arena;
    p->staging_bytes = p->job->plan.bytes.arena;
}

tg_status tgi_pass_reserve(tgi_pass *p, tg_job *job, tgi_err *err)
{
    p->job = job;
    p->tiling = &job->plan.choice.tiling;
    p->staging_bytes = job->plan.bytes.staging / 2;
    tgi_mem_trim(); /* what planning freed is not there beside the reservation */
    TGI_TRY(tgi_threads_open(job->set.threads, &p->pool, err));
    TGI_TRY(reserve_blocks(p, err));
    lend_arena(p);
    if (!tgi_job_pass_ops(job))
        return tgi_net_load(job->plan.net, p->packed, p->pool, err);
    TGI_TRY(tgi_run_device_open(&p->device, job, p->tiling, p->rows, err));
    for (int k = 0; k < 2; k++)
        p->staging[k] = p->device.staging[k].at;
    return tgi_graph_unchanged(job->graph, err);
}

tg_status tgi_pass_take(tgi_pass *p, tg_job *job, const tgi_tiling *t, size_t staging,
                        const tgi_want *beside, int n, size_t more, tgi_err *err)
{
    tgi_want want[TGI_RESERVE_MAX_BLOCKS] = {
        {"weights", t ? t->net->packed_bytes : 0, &p->packed},
        {"arena", t ? t->arena_bytes : 0, &p->arena},
        {"staging", staging, &p->staging[0]}};
    p->job = job;
    p->tiling = t;
    p->staging_bytes = staging;
    if (n)
        memcpy(want + 3, beside, (size_t)n * sizeof *beside);
    tgi_mem_trim();
    TGI_TRY(tgi_threads_open(t ? t->threads : job->set.threads, &p->pool, err));
    TGI_TRY(tgi_reserve_all(want, 3 + n, more, &p->reserve, err));
    p->staging[1] = p->staging[0];
    return t ? tgi_net_load(t->net, p->packed, p->pool, err) : TG_OK;
}

tg_status tgi_pass_take_device(tgi_pass *p, tg_job *job, const tgi_tiling *t,
                               const tgi_device_form *form, const tgi_device_io *io,
                               tgi_err *err)
{
    p->job = job;
    p->tiling = t;
    TGI_TRY(tgi_run_device_open_ends(&p->device, job, t, form, io, err));
    return tgi_graph_unchanged(job->graph, err);
}

/* ---- Rows -------------------------------------------------------------------------------- */

tg_status tgi_pass_load_port(tgi_pass *p, int port, int i, const tgi_view *view,
                             const tgi_box *box, tgi_err *err)
{
    tgi_box next;
    if (p->job && tgi_carried_is(p->job->graph, port)) {
        tgi_carried_load(&p->carried, port, view, box);
        return TG_OK;
    }
    if (!p->loader)
        return p->end.load(p->end.user, port, view, box, err);
    TGI_TRY(tgi_loader_fill(p->loader, view, box, err));
    if (p->job->map.appended)
        tgi_carried_append(&p->carried, &p->job->map, p->at_in, view, box);
    if (p->staging[0] == p->staging[1])
        return TG_OK;
    tgi_exec_next_load(p->exec, i, &next);
    tgi_loader_prefetch(p->loader, &next);
    return TG_OK;
}

static tg_status load_rows(void *user, int i, const tgi_view *view, const tgi_box *box,
                           tgi_err *err)
{
    tgi_pass *p = user;
    return p->stages.plan
               ? tgi_pass_stages_load(p, i, view, box, err)
               : tgi_pass_load_port(p,
                                    tgi_net_port(p->tiling->net, p->tiling->stage->in[i].value),
                                    i, view, box, err);
}

tg_status tgi_pass_store_port(tgi_pass *p, int port, const tgi_view *view, const tgi_box *box,
                              tgi_err *err)
{
    tgi_carried_store(&p->carried, port, view, box);
    return p->end.store(p->end.user, port, view, box, err);
}

static tg_status store_rows(void *user, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    tgi_pass *p = user;
    TGI_TRY(tgi_net_unchanged(p->tiling->net, err));
    if (p->stages.plan)
        return tgi_pass_stages_store(p, o, view, box, err);
    return tgi_pass_store_port(p, o, view, box, err);
}

static const float *place_of(void *user, int i)
{
    return tgi_pass_stages_place(user, i);
}

static tg_status piece_of(void *user, int i, const tgi_view *view, tgi_range pixels,
                          tgi_err *err)
{
    return tgi_pass_stages_piece(user, i, view, pixels, err);
}

static tg_status check_stop(void *user, tgi_err *err)
{
    const tgi_pass *p = user;
    return p->end.stop ? p->end.stop(p->end.user, err) : TG_OK;
}

tg_status tgi_pass_open_loader(tgi_pass *p, tgi_source *source, tgi_err *err)
{
    const tg_job *job = p->job;
    tgi_loader_opts o = {.source = source,
                         .map = &job->map,
                         .rank = job->plan.net->rank,
                         .staging = {p->staging[0], p->staging[1]},
                         .staging_bytes = p->staging_bytes,
                         .pool = p->pool,
                         .be = job->set.backend};
    if (p->device.job && source == job->source && tgi_job_film_yuv(job, &o.yuv))
        TGI_TRY(tgi_film_source_keep_yuv(source, err));
    return tgi_loader_open(&o, &p->loader, err);
}

tg_status tgi_pass_open_exec(tgi_pass *p, tgi_err *err)
{
    const tgi_exec_io io = {.user = p,
                            .load = load_rows,
                            .store = store_rows,
                            .stop = check_stop,
                            .place = p->stages.plan ? place_of : NULL,
                            .piece = p->stages.plan ? piece_of : NULL};
    TGI_TRY(tgi_exec_open(p->tiling, p->packed, p->arena, p->pool, &io, &p->exec, err));
    tgi_exec_watch(p->exec, &p->busy);
    return TG_OK;
}

static tg_status open_source(tgi_pass *p, tgi_source *source, tgi_err *err)
{
    p->sets = tgi_calloc(TGI_TAG_PLAN, (size_t)p->job->map.n_stats, sizeof *p->sets);
    if (!p->sets)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the statistics");
    if (!p->stages.plan)
        TGI_TRY(tgi_pass_open_loader(p, source, err));
    p->device.loader = p->loader;
    p->device.sets = p->sets;
    return TG_OK;
}

tg_status tgi_pass_open(tgi_pass *p, tgi_source *source, const tgi_pass_end *end, tgi_err *err)
{
    p->end = *end;
    p->out = (tgi_affine){.mul = 1};
    if (source)
        TGI_TRY(open_source(p, source, err));
    if (p->stages.plan)
        return tgi_pass_stages_open(p, source, err);
    if (p->device.exec)
        tgi_device_exec_watch(p->device.exec, &p->busy);
    return p->tiling && !p->device.exec ? tgi_pass_open_exec(p, err) : TG_OK;
}

/* ---- Cells ------------------------------------------------------------------------------- */

static tg_status band_done(void *user, tgi_err *err)
{
    tgi_pass *p = user;
    p->bands++;
    if (p->stages.plan)
        TGI_TRY(tgi_stage_state_tick(p, err));
    return p->end.tick ? p->end.tick(p->end.user, err) : TG_OK;
}

tg_status tgi_pass_core(tgi_pass *p, const tgi_range core[3], tgi_err *err)
{
    for (int done = !tgi_exec_begin(p->exec, core); !done;) {
        TGI_TRY(tgi_exec_band(p->exec, &done, err));
        TGI_TRY(band_done(p, err));
    }
    return TG_OK;
}

static tg_status walk_cell(tgi_pass *p, int64_t cell, tgi_err *err)
{
    const tg_job *job = p->job;
    const tgi_tiling *t = p->tiling;
    tgi_range core[3];
    int64_t at_in[3], at_out[3];
    if (p->device.exec && !p->stages.plan)
        return tgi_run_device_cell(&p->device, p->item, cell, band_done, p, err);
    tgi_tiling_cell(t, cell, core);
    tgi_tiling_shift(t, cell, at_in, at_out);
    if (p->stages.plan) {
        memcpy(at_in, p->stages.shift, sizeof at_in);
        tgi_pass_stages_turn(p, cell, core);
    }
    if (p->sets || p->loader)
        tgi_job_turn(job, p->sets, p->item, p->loader, &p->out);
    if (p->end.turn && t->stage->out[0].port == 0) {
        const tgi_range rows = p->end.turn(p->end.user, p->item, core, at_out, p->out);
        if (!p->carried.n && !tgi_stage_hands_on(t->stage)) /* else tiles that are there stay */
            core[0] = rows;
    }
    if (tgi_range_empty(core[0]))
        return TG_OK;
    if (p->loader) {
        tgi_loader_place(p->loader, at_in);
        memcpy(p->at_in, at_in, sizeof p->at_in);
    }
    return p->device.exec ? tgi_pass_device_core(p, cell, core, band_done, err)
                          : tgi_pass_core(p, core, err);
}

tg_status tgi_pass_walk_cells(tgi_pass *p, int64_t from, tgi_err *err)
{
    for (int64_t k = from; k < p->tiling->cells; k++, p->cells++) {
        TGI_TRY(check_stop(p, err));
        TGI_TRY(walk_cell(p, k, err));
    }
    return TG_OK;
}

tg_status tgi_pass_walk(tgi_pass *p, tgi_err *err)
{
    const int64_t items = p->device.exec ? p->device.items
                          : p->job       ? p->job->ends->items(p->job)
                                         : 1;
    int64_t first = 0;
    if (p->job && tgi_job_hands_on(p->job))
        TGI_TRY(p->end.first ? p->end.first(p->end.user, &first, err)
                             : tgi_job_state_begin(p, err));
    TGI_TRY(tgi_device_state_begin(&p->device.state, &p->carried, p->carried_memory, err));
    for (p->item = first; p->item < items; p->item++) {
        if (p->carried.n && p->end.begins)
            TGI_TRY(p->end.begins(p->end.user, p->item, err));
        if (!p->stages.plan)
            TGI_TRY(tgi_pass_walk_cells(p, 0, err));
        else if (p->carried.n || !p->end.wants || p->end.wants(p->end.user, p->item))
            TGI_TRY(tgi_pass_stages_walk(p, err));
        tgi_carried_turn(&p->carried);
    }
    return p->device.exec ? tgi_run_device_drain(&p->device, err) : TG_OK;
}

/* ---- After ------------------------------------------------------------------------------- */

void tgi_pass_times(const tgi_pass *p, double write_wait, tg_run_result *res)
{
    const double reading = p->loader ? tgi_loader_wait_seconds(p->loader) : p->stages.waited;
    res->stall_read_seconds = reading;
    res->bands = p->bands;
    if (p->device.exec) {
        const tgi_device_times d = tgi_device_exec_seconds(p->device.exec);
        res->compute_seconds = d.wait;
        res->convert_seconds = d.take - write_wait;
        if (!p->loader)
            res->stall_read_seconds = d.fetch;
    } else if (p->exec || p->stages.plan) { /* the loader and the store convert, too */
        const tgi_exec_times s = p->exec ? tgi_exec_seconds(p->exec) : p->stages.behind;
        res->compute_seconds = s.compute;
        res->convert_seconds = s.load + s.store - reading - write_wait;
    }
}

void tgi_pass_stop(tgi_pass *p)
{
    if (p->stages.plan)
        tgi_pass_device_end(p);
    tgi_run_device_stop(&p->device); /* what it still copies is the loader's, */
    tgi_loader_close(&p->loader);    /* which may still be reading into the device's staging */
    tgi_run_device_close(&p->device);
    tgi_exec_close(&p->exec);
    tgi_pass_stages_close(p);
}

void tgi_pass_close(tgi_pass *p)
{
    tgi_pass_stop(p);
    tgi_threads_close(&p->pool);
    tgi_reserve_close(&p->reserve);
    tgi_free(p->sets);
    memset(p, 0, sizeof *p);
}
