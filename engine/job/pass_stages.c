/* pass_stages.c - walks the stages of an item. */
#include "engine/job/pass_stages.h"

#include "engine/job/ends.h"
#include "engine/job/pass.h"

#include <string.h>

static const tgi_stage *stage_of(const tgi_pass *p)
{
    return p->tiling->stage;
}

/* Which input of the network a value is; -1: none. */
static int port_of(const tgi_net *net, int v)
{
    for (int i = 0; i < net->n_in; i++)
        if (net->in[i] == v)
            return i;
    return -1;
}

/* ---- Rows -------------------------------------------------------------------------------- */

tg_status tgi_pass_stages_load(tgi_pass *p, int i, const tgi_view *view, const tgi_box *box,
                               tgi_err *err)
{
    const int v = stage_of(p)->in[i].value, port = port_of(p->tiling->net, v);
    return port < 0 ? tgi_kept_read(&p->stages.kept, v, view, box, err)
                    : tgi_pass_load_port(p, port, i, view, box, err);
}

tg_status tgi_pass_stages_store(tgi_pass *p, int o, const tgi_view *view, const tgi_box *box,
                                tgi_err *err)
{
    const tgi_stage_out *out = &stage_of(p)->out[o];
    const tgi_kept_value *kept = tgi_kept_of(p->stages.plan, out->value);
    if (out->reduced)
        return tgi_gathering_add(&p->stages.gathering, o, view, box, err);
    if (kept && kept->made == p->stages.at)
        TGI_TRY(tgi_kept_write(&p->stages.kept, out->value, view, box, err));
    return out->port < 0 ? TG_OK : p->end.store(p->end.user, out->port, view, box, err);
}

/* ---- Open and close ---------------------------------------------------------------------- */

tg_status tgi_pass_stages_open(tgi_pass *p, tgi_source *source, tgi_err *err)
{
    tgi_pass_stages *s = &p->stages;
    int64_t out[3];
    s->source = source;
    tgi_tiling_shift(&p->job->plan.choice.tiling, 0, s->shift, out);
    if (s->plan->disk_bytes)
        TGI_TRY(tgi_scratch_create(p->job->set.scratch, s->plan->disk_bytes, &s->file, err));
    s->kept = (tgi_kept){.plan = s->plan,
                         .memory = s->memory,
                         .numbers = s->numbers,
                         .fd = s->file ? tgi_scratch_fd(s->file) : -1,
                         .path = p->job->set.scratch,
                         .pool = p->pool};
    return tgi_gathering_open(&s->gathering, s->plan, s->states, s->numbers, p->pool, err);
}

void tgi_pass_stages_close(tgi_pass *p)
{
    tgi_gathering_close(&p->stages.gathering);
    tgi_scratch_close(&p->stages.file);
}

/* ---- One stage --------------------------------------------------------------------------- */

static int loads_image(const tgi_pass *p)
{
    const tgi_stage *t = stage_of(p);
    for (int i = 0; p->stages.source && i < t->n_loaded; i++)
        if (port_of(t->net, t->in[i].value) >= 0)
            return 1;
    return 0;
}

/* Behind the arena lie the rows on their way in. */
static tg_status begin_stage(tgi_pass *p, int k, tgi_err *err)
{
    const tgi_tiling *t = &p->stages.plan->tiling[k];
    p->stages.at = k;
    p->tiling = t;
    tgi_gathering_begin(&p->stages.gathering, k);
    if (loads_image(p)) {
        p->staging_bytes = p->job->ends->rows_in(p->job, t) / 2;
        p->staging[0] = (char *)p->arena + t->arena_bytes;
        p->staging[1] = (char *)p->staging[0] + p->staging_bytes;
        TGI_TRY(tgi_pass_open_loader(p, p->stages.source, err));
    }
    return tgi_pass_open_exec(p, err);
}

static void end_stage(tgi_pass *p)
{
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

tg_status tgi_pass_stages_walk(tgi_pass *p, tgi_err *err)
{
    const tgi_staged *plan = p->stages.plan;
    tg_status st = TG_OK;
    for (int k = 0; k < plan->n && st == TG_OK; k++) {
        st = begin_stage(p, k, err);
        if (st == TG_OK)
            st = tgi_pass_walk_cells(p, err);
        end_stage(p);
        if (st == TG_OK)
            st = tgi_gathering_end(&p->stages.gathering, err);
    }
    return st;
}
