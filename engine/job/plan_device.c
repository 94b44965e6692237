/* plan_device.c - a plan on the chosen device, and whether the device's library is worth its
 * memory.
 *
 * The library computes some products faster and takes half a gigabyte for it. So first there is
 * a plan without; then, of what it computes, the share that the library would take over and the
 * gain that was measured say what is saved; and what it takes when it is open, measured once
 * for each device, says what is left for bands. It is opened when the plan in the memory that
 * it leaves is still the faster one. */
#include "engine/job/plan_device.h"
#include "engine/base/arith.h"
#include "engine/device/measured.h"
#include "engine/job/device_kinds.h"
#include "engine/job/device_state.h"
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_state.h"
#include "engine/plan/device_time.h"

#include <string.h>

#define SAVED_LEAST 0.03 /* of the plan's seconds: less is not worth another plan */
/* Free for it before it is opened for the first time: what it takes is not known yet. */
#define ROOM_TO_MEASURE ((uint64_t)3 << 29)

/* ---- Open and closed --------------------------------------------------------------------- */

/* For jobs that only ask; where it is measured at all. */
static void keep_library(tg_job *job)
{
    tgi_measured m;
    tgi_measured_read(&job->dev.info, &m);
    if (m.gain[TGI_GAIN_LIBRARY] < 0 || m.library_bytes == job->dev.library_bytes)
        return;
    m.library_bytes = job->dev.library_bytes;
    tgi_job_keep_measured(job, &m);
}

static tg_status open_library(tg_job *job, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    if (d->library)
        return TG_OK;
    if (d->supposed) { /* nor a library: only what it took */
        tgi_measured m;
        tgi_measured_read(&d->info, &m);
        d->library = 1;
        d->library_bytes = m.library_bytes;
    } else {
        const uint64_t before = tgi_job_device_taken(job);
        TGI_TRY(d->ops->library(d->device, 1, err));
        d->library = 1;
        const uint64_t after = tgi_job_device_taken(job);
        d->library_bytes = after > before ? after - before : 0;
        keep_library(job);
    }
    d->limit_bytes -= d->library_bytes < d->limit_bytes ? d->library_bytes : d->limit_bytes;
    return TG_OK;
}

static void close_library(tg_job *job)
{
    tgi_job_device *d = &job->dev;
    if (!d->library)
        return;
    if (!d->supposed)
        (void)d->ops->library(d->device, 0, NULL);
    d->library = 0;
    d->library_bytes = 0;
    tgi_job_device_recount(job);
}

/* Gain and bytes; < 0 where they cannot be known now. */
static double gain_of(tg_job *job, tgi_measured *m)
{
    tgi_job_device *d = &job->dev;
    tgi_err e = {0};
    tgi_measured_read(&d->info, m);
    if (m->gain[TGI_GAIN_LIBRARY] >= 0)
        return m->gain[TGI_GAIN_LIBRARY];
    if (d->limit_bytes < ROOM_TO_MEASURE)
        return -1;
    if (open_library(job, &e) != TG_OK) {
        tgi_ctx_log(job->ctx, TG_LOG_DEBUG, "%s: computed without a library: %s",
                    job->device_text, e.text);
        return -1;
    }
    const double gain = tgi_job_gain(job, TGI_GAIN_LIBRARY, m);
    m->library_bytes = d->library_bytes;
    if (gain >= 0)
        tgi_job_keep_measured(job, m);
    close_library(job);
    return gain;
}

/* ---- What it saves ----------------------------------------------------------------------- */

/* Nodes of `net` that the library would compute. Another net of the same graph has copies of some,
 * which yield the same value. */
static int takes_over(const void *net, const tgi_node *node)
{
    const tgi_net *n = net;
    for (int i = 0; i < n->n_nodes; i++)
        if (n->nodes[i].node->dst[0] == node->dst[0])
            return n->nodes[i].variant && (n->nodes[i].variant->kinds & TGI_KIND_LIBRARY);
    return 0;
}

/* Of the plan's kernels, the share that the library would compute; 0 also where it cannot be
 * told. */
static double share_of(tg_job *job, const tgi_desc *in)
{
    tgi_job_device *d = &job->dev;
    tgi_net *net = NULL;
    tgi_err e = {0};
    double share = 0;
    d->kinds |= TGI_KIND_LIBRARY;
    const tg_status st = tgi_net_new(job->graph, d->ops->backend(d->element), in,
                                     tgi_job_net_flags(job), &net, &e);
    d->kinds &= ~TGI_KIND_LIBRARY;
    if (st == TG_OK && tgi_net_nodes_of(net, TGI_KIND_LIBRARY)) {
        const tgi_rates r = tgi_device_rates(d->info.multiprocessors, d->element);
        share = tgi_device_share(&r, &job->plan.choice.tiling, takes_over, net);
    }
    tgi_net_free(&net);
    return share;
}

typedef struct planner {
    tg_job *job;
    const tgi_desc *in;
    tg_status (*tile)(void *user, tgi_err *err);
    void *user;
} planner;

static tg_status plan_with(const planner *p, unsigned kinds, tgi_err *err)
{
    p->job->dev.kinds = kinds;
    tgi_job_drop_plan(p->job);
    TGI_TRY(tgi_job_net(p->job, p->in, err));
    return p->tile(p->user, err);
}

/* With a plan made: with the library, where that is faster. Else the plan as it was. */
static tg_status consider_library(const planner *p, tgi_err *err)
{
    tg_job *job = p->job;
    tgi_job_device *d = &job->dev;
    const unsigned kinds = d->kinds;
    const double seconds = job->plan.choice.seconds;
    tgi_measured m;
    tgi_err e = {0};
    if (!tgi_job_library_is_open(job))
        return TG_OK;
    const double share = share_of(job, p->in);
    if (share < SAVED_LEAST)
        return TG_OK;
    tgi_measured_read(&d->info, &m);
    if (d->supposed && m.gain[TGI_GAIN_LIBRARY] < 0) { /* it takes a context to know */
        TGI_TRY(tgi_job_device_open(job, err));
        TGI_TRY(plan_with(p, kinds, err));
    }
    const uint64_t limit = d->limit_bytes;
    const double gain = gain_of(job, &m);
    const double saved = gain > 0 ? share * (1 - 1 / gain) : 0;
    if (gain < tgi_gain_worth(TGI_GAIN_LIBRARY) || saved < SAVED_LEAST ||
        m.library_bytes >= d->limit_bytes) /* what measuring it left behind is gone */
        return d->limit_bytes < limit ? plan_with(p, kinds, err) : TG_OK;
    tg_status st = open_library(job, &e);
    if (st == TG_OK)
        st = plan_with(p, kinds | TGI_KIND_LIBRARY, &e);
    if (st == TG_OK && job->plan.choice.seconds * (1 - saved) < seconds * (1 - SAVED_LEAST))
        return TG_OK;
    close_library(job);
    return plan_with(p, kinds, err);
}

/* ---- A plan ------------------------------------------------------------------------------ */

/* Not the first plan of the job: what an earlier one decided is asked again, what the output
 * was begun with is not. */
static tg_status plan_again(const planner *p, tgi_err *err)
{
    tg_job *job = p->job;
    const unsigned without = job->dev.kinds & ~TGI_KIND_LIBRARY;
    if (!job->dev.settled) {
        close_library(job);
        TGI_TRY(plan_with(p, without, err));
        return consider_library(p, err);
    }
    TGI_TRY(open_library(job, err));
    return p->tile(p->user, err);
}

static tg_status plan_on_device(const planner *p, tgi_err *err)
{
    tg_job *job = p->job;
    TGI_TRY(tgi_job_net(job, p->in, err)); /* before a context is made for nothing */
    TGI_TRY(tgi_device_state_check(job, err));
    TGI_TRY(tgi_job_device_see(job, job->plan.ask.measured, err));
    if (job->dev.kinds & TGI_KIND_LIBRARY)
        return plan_again(p, err);
    TGI_TRY(p->tile(p->user, err));
    return consider_library(p, err);
}

tg_status tgi_job_plan_on_device(tg_job *job, const tgi_desc *in,
                                 tg_status (*tile)(void *user, tgi_err *err), void *user,
                                 tgi_err *err)
{
    const planner p = {job, in, tile, user};
    tgi_err e = {0};
    if (!tgi_job_pass_ops(job))
        return TG_OK;
    tg_status st = plan_on_device(&p, &e);
    if (st == TG_OK)
        return TG_OK;
    if (!job->dev.by_name)
        return tgi_job_device_leave(job, e.text, err);
    (void)tgi_fail(err, st, "%s", e.text);
    return tgi_err_tried(err, st, e.asked_by, e.tried_bytes);
}

tg_status tgi_job_device_confirm(tg_job *job, int *holds, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    const int library = d->library;
    const uint64_t supposed = d->context_bytes + d->library_bytes;
    *holds = 1;
    if (!d->supposed)
        return TG_OK;
    d->library = 0;
    d->library_bytes = 0;
    TGI_TRY(tgi_job_device_open(job, err));
    if (library && open_library(job, err) != TG_OK)
        *holds = 0; /* planning tells why, and goes on without */
    if (d->context_bytes + d->library_bytes != supposed ||
        tgi_sat_add(d->need.block, d->need.program) > d->limit_bytes)
        *holds = 0;
    return TG_OK;
}
