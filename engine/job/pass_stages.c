/* pass_stages.c - walks the stages of an item. */
#include "engine/job/pass_stages.h"

#include "engine/base/arith.h"
#include "engine/job/ends.h"
#include "engine/job/pass.h"
#include "engine/job/plan_seconds.h"

#include <string.h>

static const tgi_stage *stage_of(const tgi_pass *p)
{
    return p->tiling->stage;
}

/* ---- Rows -------------------------------------------------------------------------------- */

/* Is the stage at hand behind the one that is written down? Then only its values in memory are made
 * again; what is written down stays. The same where nothing is. */
static int makes_again(const tgi_pass *p)
{
    return !p->stages.state.log || p->stages.at < p->stages.known;
}

tg_status tgi_pass_stages_load(tgi_pass *p, int i, const tgi_view *view, const tgi_box *box,
                               tgi_err *err)
{
    const int v = stage_of(p)->in[i].value, port = tgi_net_port(p->tiling->net, v);
    return port < 0 ? tgi_kept_read(&p->stages.kept, v, view, box, err)
                    : tgi_pass_load_port(p, port, i, view, box, err);
}

tg_status tgi_pass_stages_piece(tgi_pass *p, int i, const tgi_view *view, tgi_range pixels,
                                tgi_err *err)
{
    return tgi_kept_read_pixels(&p->stages.kept, stage_of(p)->in[i].value, view, pixels, err);
}

const float *tgi_pass_stages_place(const tgi_pass *p, int i)
{
    return tgi_kept_place(&p->stages.kept, stage_of(p)->in[i].value);
}

void tgi_pass_stages_rows(tgi_pass *p, int o, const tgi_box *box)
{
    if (o == 0)
        tgi_stage_state_rows(p, box->ax[TGI_STREAM_AXIS].hi);
}

/* Rows of output o are there: what of them an earlier run has not handed out. */
static tgi_box rest_of(tgi_pass *p, int o, const tgi_box *box)
{
    int64_t *done = makes_again(p) ? NULL : &p->stages.state.done[o];
    tgi_box rest = *box;
    tgi_pass_stages_rows(p, o, box);
    if (!done || stage_of(p)->out[o].port >= 0)
        return rest;
    rest.ax[TGI_STREAM_AXIS].lo = tgi_max(rest.ax[TGI_STREAM_AXIS].lo, *done);
    if (!tgi_box_empty(&rest))
        *done = rest.ax[TGI_STREAM_AXIS].hi;
    return rest;
}

tg_status tgi_pass_stages_store_sums(tgi_pass *p, int o, const double *sum, const tgi_box *box,
                                     tgi_err *err)
{
    const tgi_box rest = rest_of(p, o, box);
    if (tgi_box_empty(&rest) || p->stages.at < p->stages.known)
        return TG_OK;
    return tgi_gathering_add_rows(&p->stages.gathering, o, sum, box,
                                  rest.ax[TGI_STREAM_AXIS].lo, err);
}

tg_status tgi_pass_stages_store(tgi_pass *p, int o, const tgi_view *view, const tgi_box *box,
                                tgi_err *err)
{
    const tgi_stage_out *out = &stage_of(p)->out[o];
    const tgi_kept_value *kept = tgi_kept_of(p->stages.plan, out->value);
    const tgi_box rest = rest_of(p, o, box);
    if (tgi_box_empty(&rest))
        return TG_OK;
    if (out->reduced)
        return p->stages.at < p->stages.known
                   ? TG_OK
                   : tgi_gathering_add(&p->stages.gathering, o, view, &rest, err);
    if (kept && kept->made == p->stages.at &&
        !(kept->on_disk && p->stages.at < p->stages.known))
        TGI_TRY(tgi_kept_write(&p->stages.kept, out->value, view, &rest, err));
    return out->port < 0 ? TG_OK : tgi_pass_store_port(p, out->port, view, box, err);
}

/* Where output 0 has to begin so that no row behind `done` of output o is missing. */
static int64_t row_for(const tgi_tiling *t, int o, int64_t done)
{
    const int64_t d0 = tgi_stage_out_dim(t->stage, 0, TGI_STREAM_AXIS);
    const int64_t d = tgi_stage_out_dim(t->stage, o, TGI_STREAM_AXIS);
    if (t->stage->out[o].reduced && t->net->rank == 4) /* shares begin with a granule */
        done = done / TGI_GRANULE * TGI_GRANULE;
    return done * d0 / d;
}

void tgi_pass_stages_turn(tgi_pass *p, int64_t cell, tgi_range core[3])
{
    tgi_stage_state *s = &p->stages.state;
    const tgi_tiling *t = p->tiling;
    int64_t from = core[0].hi;
    tgi_stage_state_watch(p, cell, &core[0]);
    if (makes_again(p))
        return;
    tgi_stage_state_turn(p, cell);
    if (!p->stages.resumes || cell != p->stages.first) {
        for (int o = 0; o < t->stage->n_out; o++)
            s->done[o] = -1;
        return;
    }
    for (int o = 0; o < t->stage->n_out; o++) {
        const tgi_box share = tgi_stage_state_share(t, o, cell, -1);
        if (!tgi_box_empty(&share))
            from = tgi_min(from, s->done[o] < 0 ? core[0].lo : row_for(t, o, s->done[o]));
    }
    core[0].lo = tgi_max(core[0].lo, from);
    tgi_ctx_log(p->job->ctx, TG_LOG_DEBUG, "stage %d of %d: goes on with row %lld of cell %lld",
                p->stages.at + 1, p->stages.plan->n, (long long)core[0].lo,
                (long long)cell + 1);
}

/* ---- Open and close ---------------------------------------------------------------------- */

static tg_status open_files(tgi_pass *p, tgi_err *err)
{
    tgi_pass_stages *s = &p->stages;
    if (s->output)
        TGI_TRY(tgi_stage_state_open(p, s->output, s->job, err));
    else if (s->plan->disk_bytes)
        TGI_TRY(tgi_scratch_create(p->job->set.scratch, s->plan->disk_bytes, &s->file, err));
    s->kept = (tgi_kept){.plan = s->plan,
                         .memory = s->memory,
                         .numbers = s->numbers,
                         .fd = s->output ? s->state.fd
                               : s->file ? tgi_scratch_fd(s->file)
                                         : -1,
                         .path = s->output ? s->state.owner.kept : p->job->set.scratch,
                         .front = s->output ? TGI_KEPT_FRONT : 0,
                         .sums = s->state.sums,
                         .pool = p->pool,
                         .stop = p->end.stop,
                         .user = p->end.user};
    return TG_OK;
}

tg_status tgi_pass_stages_open(tgi_pass *p, tgi_source *source, tgi_err *err)
{
    tgi_pass_stages *s = &p->stages;
    int64_t out[3];
    s->source = source;
    tgi_tiling_shift(&p->job->plan.choice.tiling, 0, s->shift, out);
    if (!s->idle)
        TGI_TRY(open_files(p, err));
    return tgi_gathering_open(&s->gathering, s->plan, s->states, s->numbers, p->pool,
                              p->job->set.backend, err);
}

void tgi_pass_stages_close(tgi_pass *p)
{
    tgi_gathering_close(&p->stages.gathering);
    tgi_scratch_close(&p->stages.file);
    tgi_stage_state_close(&p->stages.state);
}

/* ---- One stage --------------------------------------------------------------------------- */

static int loads_image(const tgi_pass *p)
{
    const tgi_stage *t = stage_of(p);
    for (int i = 0; p->stages.source && i < t->n_loaded; i++)
        if (tgi_net_port(t->net, t->in[i].value) >= 0)
            return 1;
    return 0;
}

/* Behind the arena lie the rows on their way in. */
static tg_status begin_stage(tgi_pass *p, int k, tgi_err *err)
{
    const tgi_tiling *t = &p->stages.plan->tiling[k];
    p->stages.at = k;
    p->tiling = t;
    if (p->stages.resumes)
        TGI_TRY(tgi_gathering_resume(&p->stages.gathering, k, err));
    else if (k >= p->stages.known)
        tgi_gathering_begin(&p->stages.gathering, k);
    if (tgi_job_pass_ops(p->job)) {
        if (loads_image(p))
            TGI_TRY(tgi_pass_open_loader(p, p->stages.source, err));
        return tgi_pass_device_begin(p, err);
    }
    if (loads_image(p)) {
        p->staging_bytes = p->job->ends->rows_in(p->job, t) / 2;
        p->staging[0] = (char *)p->arena + t->arena_bytes;
        p->staging[1] = (char *)p->staging[0] + p->staging_bytes;
        TGI_TRY(tgi_pass_open_loader(p, p->stages.source, err));
    }
    TGI_TRY(tgi_pass_open_exec(p, err));
    tgi_job_learn_stage(p->job, k, p->exec);
    return TG_OK;
}

static void end_stage(tgi_pass *p)
{
    tgi_pass_device_end(p); /* what it still copies is the loader's */
    if (p->exec) {
        const tgi_exec_times t = tgi_exec_seconds(p->exec);
        p->stages.behind.compute += t.compute;
        p->stages.behind.load += t.load;
        p->stages.behind.store += t.store;
    }
    if (p->loader)
        p->stages.waited += tgi_loader_wait_seconds(p->loader);
    tgi_loader_close(&p->loader);
    tgi_exec_close(&p->exec);
}

/* Who watches sees the next stage: its first band may take minutes. */
static void watch_next(tgi_pass *p, int k)
{
    tgi_range core[3];
    p->stages.at = k;
    p->tiling = &p->stages.plan->tiling[k];
    tgi_tiling_cell(p->tiling, 0, core);
    tgi_stage_state_watch(p, 0, &core[0]);
}

/* Its numbers are there: that is written down before the next stage writes over what this one
 * read. */
static tg_status stage_done(tgi_pass *p, int k, tgi_err *err)
{
    tgi_stage_state *s = &p->stages.state;
    if (k < p->stages.known)
        return TG_OK;
    TGI_TRY(tgi_gathering_end(&p->stages.gathering, err));
    if (!s->log)
        return TG_OK;
    if (k + 1 == p->stages.plan->n)
        return TG_OK; /* its tiles may not be on the disk yet: they say what is missing of it */
    s->now.stage = k + 1;
    s->now.cell = 0;
    s->now.band = 0; /* nothing of it was handed out */
    for (int o = 0; o < s->n_done; o++)
        s->done[o] = -1;
    watch_next(p, k + 1);
    return tgi_stage_state_write(p, err);
}

static tg_status walk_stage(tgi_pass *p, int k, int64_t cell, tgi_err *err)
{
    tg_status st = begin_stage(p, k, err);
    tgi_ctx_log(p->job->ctx, TG_LOG_DEBUG, "stage %d of %d%s", k + 1, p->stages.plan->n,
                k < p->stages.known ? ": only its values, once more" : "");
    if (st == TG_OK)
        st = tgi_pass_walk_cells(p, cell, err);
    end_stage(p);
    p->stages.resumes = 0;
    return st == TG_OK ? stage_done(p, k, err) : st;
}

/* What an earlier run had behind it of the item that this one begins with. */
static void count_before(tgi_pass *p)
{
    tgi_pass_stages *s = &p->stages;
    if (s->walked)
        return;
    s->walked = 1;
    s->before = s->known;
    for (int k = 0; k < s->known; k++)
        s->again += s->state.needs[k];
}

tg_status tgi_pass_stages_walk(tgi_pass *p, tgi_err *err)
{
    const tgi_staged *plan = p->stages.plan;
    tgi_stage_state *s = &p->stages.state;
    if (p->stages.idle)
        TGI_TRY(open_files(p, err));
    p->stages.idle = 0;
    TGI_TRY(tgi_stage_state_item(p, &p->stages.known, &p->stages.first, err));
    const int first = p->stages.known;
    count_before(p);
    const int resumes = s->log && first < plan->n && s->now.band > 0;
    for (int k = 0; k < plan->n; k++) {
        if (s->log && !s->needs[k])
            continue;
        p->stages.resumes = resumes && k == first;
        TGI_TRY(walk_stage(p, k, p->stages.resumes ? p->stages.first : 0, err));
    }
    return TG_OK;
}
