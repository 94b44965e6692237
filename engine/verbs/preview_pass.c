/* preview_pass.c - see preview_pass.h. */
#include "engine/verbs/preview_pass.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/job/job.h"
#include "engine/memory/monitor.h"
#include "engine/plan/staged_text.h"

/* Index of z,y,x of the network's first axis. */
static int first_axis(const tgi_preview_pass *p)
{
    return 3 - p->pass.job->map.spatial;
}

static tgi_range common(tgi_range a, tgi_range b)
{
    return tgi_range_clip(a, b.lo, b.hi);
}

/* Rows of a cell in which crops lie. */
static tgi_range turn(void *user, int64_t item, const tgi_range core[3], const int64_t at[3],
                      tgi_affine out)
{
    const tgi_preview_pass *p = user;
    const int first = first_axis(p);
    tgi_range rows = {core[0].lo, core[0].lo};
    (void)item;
    (void)at;
    (void)out;
    for (int i = 0; i < p->n; i++) {
        int meets = 1;
        for (int k = first; k < 3; k++)
            meets &= !tgi_range_empty(common(p->core[i][k], core[k - first]));
        if (meets)
            rows = tgi_range_hull(rows, common(p->core[i][first], core[0]));
    }
    return rows;
}

static void copy_rows(const tgi_preview_pass *p, int i, const tgi_view *view, int64_t z,
                      tgi_range y, tgi_range x)
{
    const tgi_range *core = p->core[i];
    const int64_t h = tgi_range_len(core[1]), w = tgi_range_len(core[2]);
    for (int c = 0; c < p->channels; c++)
        for (int64_t r = y.lo; r < y.hi; r++) {
            const float *src = tgi_view_at(view, c, z, r, x.lo);
            float *dst = p->data[i] + ((int64_t)c * h + r - core[1].lo) * w + x.lo - core[2].lo;
            for (int64_t k = 0; k < tgi_range_len(x); k++)
                dst[k] = src[k * view->cb];
        }
}

static tg_status store_rows(void *user, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    const tgi_preview_pass *p = user;
    const int volume = box->rank == 5;
    (void)err;
    for (int i = 0; i < p->n && o == 0; i++) {
        const int64_t z = volume ? p->core[i][0].lo : 0;
        if (volume && (z < box->ax[2].lo || z >= box->ax[2].hi))
            continue;
        copy_rows(p, i, view, z, common(p->core[i][1], box->ax[box->rank - 2]),
                  common(p->core[i][2], box->ax[box->rank - 1]));
    }
    return TG_OK;
}

static tg_status check_stop(void *user, tgi_err *err)
{
    (void)user;
    return tgi_cancel_signal() ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s", tgi_cancel_by())
                               : TG_OK;
}

/* Some bands of the last stage are left out: the end comes sooner. */
static tg_status tick(void *user, tgi_err *err)
{
    const tgi_pass *p = &((tgi_preview_pass *)user)->pass;
    const tgi_choice *c = &p->job->plan.choice;
    const int64_t bands = c->staged ? tgi_staged_sum(c->staged).bands : c->tiling.bands;
    const tg_progress now = {.phase = "preview",
                             .fraction =
                                 (double)p->bands / (double)tgi_max(p->bands + 1, bands),
                             .eta_seconds = -1,
                             .memory_bytes = tgi_mem_measured(),
                             .budget_bytes = p->job->plan.budget,
                             .stage = c->staged ? p->stages.at + 1 : 0,
                             .stages = c->staged ? c->staged->n : 0};
    tgi_ctx_progress(p->job->ctx, &now);
    return check_stop(user, err);
}

tg_status tgi_preview_pass_open(tgi_preview_pass *p, tg_job *job, tgi_source *source,
                                tgi_err *err)
{
    const tgi_pass_end end = {
        .user = p, .store = store_rows, .stop = check_stop, .tick = tick, .turn = turn};
    TGI_TRY(tgi_pass_reserve(&p->pass, job, err));
    return tgi_pass_open(&p->pass, source, &end, err);
}

tg_status tgi_preview_pass_walk(tgi_preview_pass *p, int64_t item, tgi_err *err)
{
    p->pass.item = item;
    return p->pass.stages.plan ? tgi_pass_stages_walk(&p->pass, err)
                               : tgi_pass_walk_cells(&p->pass, 0, err);
}
