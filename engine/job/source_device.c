/* source_device.c - see source_device.h.
 *
 *   --vram >= context + weights of all networks + their programs + one room + buffers that stay
 *
 * The room is what any network computes in and what is on its way to and from it; it is as large as the largest needs
 * after each was cut for what is left beside weights and programs. What is left beside it is
 * for buffers between them: each that stays there is not copied. Where not all of them can, several rooms are tried. */
#include "engine/job/source_device.h"

#include "engine/base/arith.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/device_kinds.h"
#include "engine/job/job_device.h"
#include "engine/job/plan_report.h"
#include "engine/plan/device_time.h"

#include <string.h>

int tgi_job_wants_device(const tg_opts *o)
{
    tgi_device_spec want;
    tgi_opts_device(o, &want);
    return want.kind == TGI_DEVICE_OF_PLUGIN;
}

int tgi_job_device_by_auto(const tg_opts *o)
{
    return strcmp(tgi_opts_origin(o, TGI_OPT_DEVICE), TGI_AUTO_ORIGIN) == 0;
}

int tgi_job_wants_halves(const tg_opts *o)
{
    const int precision = tgi_opts_choice(o, TGI_OPT_PRECISION);
    return precision == TGI_PRECISION_FP16 ||
           (precision == TGI_PRECISION_AUTO && tgi_opts_flag(o, TGI_OPT_FP16));
}

int tgi_job_source_halves(const tg_job *job)
{
    return tgi_inpaint_weights(job->source, 0) != NULL;
}

const char *tgi_job_source_lacks(const tg_job *job)
{
    const int precision = tgi_opts_choice(job->opts, TGI_OPT_PRECISION);
    if (!tgi_inpaint_may_leave_processor(job->source))
        return "nothing of --method smooth is a network, which a GPU would compute: "
               "--method propagate, --method propainter";
    if (precision == TGI_PRECISION_BF16)
        return "what is removed is computed in fp32 or fp16 there: --precision fp32, or "
               "--precision fp16";
    if (precision == TGI_PRECISION_FP16 && !tgi_job_source_halves(job))
        return "the network of --method propagate finds motions, in fp32: --precision fp32";
    return NULL;
}

/* With networks cut for so much room. */
static tg_status plan_in(void *user, size_t room, tgi_err *err)
{
    tg_job *job = user;
    tgi_job_device *d = &job->dev;
    d->pace = (tgi_sched_pace){d->ops, tgi_device_rates(d->info.multiprocessors, d->element)};
    const tgi_on_device on = {
        .ops = d->ops,
        .device = &d->device,
        .flags = (job->set.exact ? TGI_NET_EXACT : 0) | TGI_NET_KINDS(d->kinds),
        .how = tgi_schedule_device_of(&d->pace, d->element, room, d->far),
        .motion = tgi_schedule_device_of(&d->pace, TG_DTYPE_F32, room, d->far)};
    tgi_sched_need need;
    TGI_TRY(tgi_inpaint_use(job->source, job->set.backend, &on, err));
    tgi_inpaint_need(job->source, &need);
    d->need =
        (tgi_device_need){.weights = need.weights,
                          .room = need.room,
                          .far = need.far,
                          .block = tgi_sat_add(need.weights, tgi_sat_add(need.room, need.far)),
                          .program = need.program,
                          .pinned = tgi_sat_add(need.up, need.back),
                          .packing = need.packing};
    d->missed = need.missed;
    return TG_OK;
}

static size_t taken(const tgi_device_need *n)
{
    return tgi_sat_add(n->block, n->program);
}

/* What fits beside a room: programs grow with the number of cells. 0: weights alone are more. */
static size_t less_room(const tgi_device_need *n, size_t limit, size_t room)
{
    const size_t others = taken(n) - n->room;
    return others >= limit ? 0 : (size_t)tgi_min((int64_t)(limit - others), (int64_t)room - 1);
}

/* The largest room up to *room in which all fits the limit. TG_E_BUDGET: there is none. */
static tg_status plan_within(tg_job *job, size_t *room, tgi_err *err)
{
    const size_t limit = (size_t)job->dev.limit_bytes;
    for (int i = 0; i < TGI_ROOMS_TRIED && *room; i++) {
        TGI_TRY(plan_in(job, *room, err));
        if (taken(&job->dev.need) <= limit)
            return TG_OK;
        *room = less_room(&job->dev.need, limit, *room);
    }
    return tgi_fail(err, TG_E_BUDGET, "no room is small enough");
}

#define TURNS 3
#define LITTLE 32 /* of the limit: not worth a turn */

/* Networks cut for so much room at most; then as many buffers stay as fit beside them, and networks are cut anew, as those
 * need not travel, in what is left. They may take less then, and leave room for more buffers. */
static tg_status plan_so(tg_job *job, size_t *room, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    const size_t limit = (size_t)d->limit_bytes;
    size_t far = 0;
    d->far = 0;
    TGI_TRY(plan_within(job, room, err));
    for (int i = 0; i < TURNS; i++) {
        const size_t left = limit - taken(&d->need);
        size_t anew = limit;
        tgi_err e = {0};
        if (i > 0 && (!d->missed || left < limit / LITTLE))
            return TG_OK;
        d->far = far + left;
        const tg_status st = plan_within(job, &anew, &e);
        if (st == TG_E_BUDGET)
            break;
        if (st != TG_OK)
            return tgi_fail(err, st, "%s", e.text);
        far = d->far;
        *room = anew;
    }
    if (d->far == far)
        return TG_OK;
    d->far = far;
    return plan_in(job, *room, err);
}

/* A large room and few buffers, or a small one and more of them: what is predicted to be fastest. */
static tg_status fit(tg_job *job, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    struct {
        size_t room, far;
        double seconds;
    } best = {0};
    int is_best = 0; /* the plan that stands is that one */
    for (size_t most = (size_t)d->limit_bytes; most; most /= 2) {
        tgi_err e = {0};
        size_t room = most;
        is_best = 0;
        const tg_status st = plan_so(job, &room, &e);
        if (st == TG_E_BUDGET)
            break;
        if (st != TG_OK)
            return tgi_fail(err, st, "%s", e.text);
        const double seconds =
            tgi_inpaint_seconds(job->source, 0, tgi_schedule_device_pass, &d->pace);
        is_best = !best.room || seconds < best.seconds;
        if (is_best) {
            best.room = room;
            best.far = d->far;
            best.seconds = seconds;
        }
        if (!d->missed)
            break;
    }
    if (best.room) {
        d->far = best.far;
        return is_best ? TG_OK : plan_in(job, best.room, err);
    }
    d->far = 0;
    TGI_TRY(tgi_schedule_device_least(plan_in, job, err));
    return tgi_job_device_refuse(job, taken(&d->need), err);
}

static tg_status plan_on_device(tg_job *job, tgi_err *err)
{
    TGI_TRY(tgi_job_device_see(job, job->plan.ask.measured, err));
    TGI_TRY(fit(job, err));
    job->device_peak = tgi_job_device_planned(job);
    return TG_OK;
}

tg_status tgi_job_plan_source(tg_job *job, tgi_err *err)
{
    tgi_err e = {0};
    if (!tgi_inpaint_is(job->source))
        return TG_OK;
    const tg_status st = job->dev.for_source ? plan_on_device(job, &e) : TG_OK;
    if (st != TG_OK && (job->dev.by_name || st == TG_E_CANCELLED)) {
        if (err)
            *err = e;
        return st;
    }
    if (st != TG_OK)
        TGI_TRY(tgi_job_device_leave(job, e.text, err));
    return job->dev.for_source ? TG_OK
                               : tgi_inpaint_use(job->source, job->set.backend, NULL, err);
}

tg_status tgi_job_source_begin(tg_job *job, tgi_err *err)
{
    TGI_TRY(tgi_inpaint_begin(job->source, err));
    if (tgi_inpaint_copies_wait(job->source))
        tgi_job_device_warn_of_copies(job);
    return TG_OK;
}

void tgi_job_source_device_lines(tg_job *job)
{
    const tgi_job_device *d = &job->dev;
    tgi_plan_part *p = &job->plan;
    if (!d->for_source)
        return;
    tgi_job_add_line(p, "context", d->context_bytes, TG_PLAN_DEVICE, 0, "%s",
                     "driver, libraries and kernels");
    tgi_job_add_line(p, "weights", d->need.weights, TG_PLAN_DEVICE, 0,
                     "of all networks, packed for %s", tgi_job_precision(job));
    tgi_job_add_line(p, "networks", d->need.room, TG_PLAN_DEVICE, 0, "%s",
                     "what one of them computes in, and bands on their way in and out");
    if (d->need.far)
        tgi_job_add_line(p, "buffers", d->need.far, TG_PLAN_DEVICE, 0, "%s",
                         "between networks, which stay there");
    tgi_job_add_line(p, "program", d->need.program, TG_PLAN_DEVICE, 0, "%s",
                     "launches of a band and their parameters");
    if (d->margin_bytes)
        tgi_job_add_line(p, "margin", d->margin_bytes, TG_PLAN_DEVICE_MARGIN, 0, "%s",
                         "left free for others; --vram decides instead");
}
