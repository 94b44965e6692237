/* plan_stages.c - a plan in stages: which cut, what of its values is kept, and what that is told as. */
#include "engine/job/plan_stages.h"
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/job/device_stages.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_state.h"
#include "engine/job/plan_report.h"
#include "engine/out/stage_log.h"

#include <stdio.h>
#include <string.h>

/* Cuts that store less and less. */
#define SIZES_TRIED 6
#define DEARER_TRIED 5
#define CUTS_TRIED (SIZES_TRIED + DEARER_TRIED)

int tgi_plan_keeps_on_disk(const tg_job *job)
{
    return job->set.scratch && !job->scratch_place.in_memory;
}

int tgi_plan_knows_stages(const tg_job *job)
{
    return job->ends->rows_in && !tgi_mapping_boxed(&job->map) &&
           (!tgi_job_pass_ops(job) || tgi_device_takes_stages(job, job->plan.stages));
}

/* Values of --state stay on a device in one pass only. */
int tgi_plan_may_stage(const tg_job *job)
{
    const tgi_stages *s = job->plan.stages;
    return tgi_plan_knows_stages(job) && s->one.whole_op && s->n > 1 &&
           !(tgi_job_pass_ops(job) && tgi_job_hands_on(job));
}

static size_t rows_in_of(void *user, const tgi_tiling *t)
{
    const tg_job *job = user;
    return job->ends->rows_in(job, t);
}

/* Room for what passes between stages on disk. What a stopped run of this output has there already
 * is used again. */
static uint64_t kept_room(const tg_job *job)
{
    return job->scratch_place.free_bytes +
           (job->set.output ? tgi_kept_holds(job->set.scratch, job->set.output) : 0);
}

/* On a device stages have its memory, and what passes between them lies here. */
static size_t device_room_of(void *user, size_t beside)
{
    tg_job *job = user;
    tgi_job_device_next_place(job);
    job->dev.kept_bytes = beside;
    return tgi_plan_host_room(job) > beside ? job->dev.limit_bytes : 0;
}

/* What an interrupted run decided of its last stage holds for this one, too, as far as it can. */
static tgi_staged_args staged_args(const tg_job *job, const tgi_choose_args *a, tgi_stages *cut,
                                   uint64_t disk)
{
    const tgi_decided *was = &job->plan.adopted;
    const tgi_stages *s = job->plan.stages;
    tgi_staged_args args = {.choose = *a,
                            .cut = cut,
                            .other = cut == s ? NULL : s,
                            .disk_limit = disk,
                            .was_band = job->plan.adopts ? was->band : 0,
                            .rows = tgi_job_pass_ops(job) ? NULL : rows_in_of,
                            .room = tgi_job_pass_ops(job) ? device_room_of : NULL};
    memcpy(args.was_cut, was->cut, sizeof args.was_cut);
    return args;
}

/* All but `cut` and those of `s` and of the plan that is the best so far. */
static void drop_cuts(tg_job *job, const tgi_staged *s, const tgi_stages *cut)
{
    const tgi_staged *best = job->plan.choice.staged;
    const tgi_stages *keep[3] = {cut, s ? s->cut : NULL, best ? best->cut : NULL};
    tgi_stages_spare_only(job->plan.stages, keep, 3);
}

void tgi_plan_drop_cuts(tg_job *job)
{
    drop_cuts(job, NULL, NULL);
    tgi_staged_settle(job->plan.choice.staged);
}

/* Is there a question? Another cut before it may be the same, and none takes what a device does not. */
static int is_worth_it(const tg_job *job, const tgi_stages *cut, const tgi_stages *before)
{
    return (!before || !tgi_stages_alike(cut, before)) &&
           (!tgi_job_pass_ops(job) || tgi_device_takes_stages(job, cut));
}

/* Into *out if its stages are faster than what is there, or the first that fits; `any`: there is
 * one. */
static tg_status choose_cut(tg_job *job, const tgi_choose_args *a, tgi_stages *cut, int any,
                            tgi_choice *out)
{
    tgi_choice spared = *out; /* with what was tried in one pass */
    job->ends->fit(job, cut);
    tgi_staged_args args = staged_args(job, a, cut, 0);
    args.one_of_many = cut->spares.most > 0;
    const tg_status st = tgi_choose_staged(&args, &spared, NULL);
    const size_t least = spared.smallest_bytes < out->smallest_bytes ? spared.smallest_bytes
                                                                     : out->smallest_bytes;
    if (st == TG_OK && (!any || spared.seconds < out->seconds)) {
        if (any)
            tgi_choice_free(out);
        *out = spared;
    } else if (st == TG_OK) {
        tgi_choice_free(&spared);
    }
    out->smallest_bytes = least;
    return st;
}

/* What else may be stored, from the most to the least: no large values, of those that are left only
 * dear ones, none at all. */
static int list_spared(const tgi_stages *s, tgi_sparing by[CUTS_TRIED])
{
    double *size = NULL;
    int n = 0, m = 0;
    if (tgi_stages_sizes(s, &size, &n, NULL) != TG_OK)
        return 0;
    for (int i = 1; i <= SIZES_TRIED; i++) {
        const int64_t at = (int64_t)n * i / SIZES_TRIED;
        if (at < n && at > (int64_t)n * (i - 1) / SIZES_TRIED)
            by[m++] = (tgi_sparing){size[at], 1};
    }
    for (int i = 1; n > 0 && i <= DEARER_TRIED; i++)
        by[m++] = (tgi_sparing){size[n - 1], (double)(1 << i)};
    by[m++] = TGI_SPARES_ALL;
    tgi_free(size);
    return m;
}

/* Where what passes between stages has no room some is made again, or all. The last one is asked what
 * the smallest plan takes, too. */
static tg_status choose_sparing(tg_job *job, const tgi_choose_args *a, tgi_choice *out)
{
    tgi_sparing by[CUTS_TRIED];
    tgi_stages *s = job->plan.stages, *cut = NULL, *before = s;
    const int n = list_spared(s, by);
    int any = 0;
    if (n == 0)
        return TG_E_NOMEM;
    tg_status st = TG_OK;
    for (int i = 0; i < n && st == TG_OK; i++) {
        st = tgi_stages_spare(s, by[i], &cut, NULL);
        if (st != TG_OK || !is_worth_it(job, cut, i + 1 < n || any ? before : NULL))
            continue;
        st = choose_cut(job, a, cut, any, out);
        any |= st == TG_OK;
        st = st == TG_E_BUDGET ? TG_OK : st;
        before = cut;
        drop_cuts(job, any ? out->staged : NULL, cut);
    }
    if (st != TG_OK) {
        if (any)
            tgi_choice_free(out);
        return st;
    }
    return any ? TG_OK : TG_E_BUDGET;
}

/* Stages with at most `disk` bytes of values on disk. */
static tg_status stages_with(tg_job *job, const tgi_choose_args *a, uint64_t disk,
                             tgi_choice *out)
{
    const tgi_staged_args args = staged_args(job, a, job->plan.stages, disk);
    return tgi_choose_staged(&args, out, NULL);
}

tg_status tgi_plan_stages(tg_job *job, const tgi_choose_args *a, tgi_choice *out)
{
    const size_t uncut = out->smallest_bytes;
    const int disk = tgi_plan_keeps_on_disk(job);
    tg_status st = stages_with(job, a, disk ? kept_room(job) : 0, out);
    if (st == TG_E_BUDGET && disk)
        st = stages_with(job, a, UINT64_MAX, out);
    if (st == TG_E_BUDGET && !disk)
        st = choose_sparing(job, a, out);
    if (st != TG_OK && uncut < out->smallest_bytes)
        out->smallest_bytes = uncut;
    return st;
}

/* What --scratch would change, where it was not given: how much it would hold, or that less
 * memory would do with it; "" where it changes nothing. */
static void say_of_disk(tg_job *job, char *out, size_t cap)
{
    tgi_choose_args a;
    tgi_choice c = {.staged = NULL};
    char size[32];
    out[0] = 0;
    if (tgi_plan_keeps_on_disk(job) ||
        job->plan.ask.remedy) /* it was tried, or is no option here */
        return;
    tgi_plan_args(job, job->plan.fixed, &a);
    if (stages_with(job, &a, UINT64_MAX, &c) == TG_OK) {
        snprintf(out, cap, ", or --scratch DIR on a disk with %s free%s",
                 tgi_size_above(c.staged->disk_bytes, size, sizeof size),
                 job->scratch_place.in_memory ? " (the one given is memory)" : "");
        tgi_choice_free(&c);
    } else if (c.smallest_bytes < job->plan.choice.smallest_bytes) {
        snprintf(out, cap, ", less with --scratch DIR%s",
                 job->scratch_place.in_memory ? " on a disk (the one given is memory)" : "");
    }
}

/* The operator that a plan of `least` bytes owes a good part of them to; "": there is none. */
static void say_of_largest(const tg_job *job, size_t least, char out[200])
{
    memcpy(out, "; ", 3);
    if (tgi_stages_largest_text(job->plan.stages, out + 2, 198) < least / 8)
        out[0] = 0;
}

tg_status tgi_plan_refuse_stages(tg_job *job, size_t least, const char *need, const char *have,
                                 const char *must, tgi_err *err)
{
    char disk[128], largest[200];
    say_of_disk(job, disk, sizeof disk);
    say_of_largest(job, least, largest);
    return tgi_fail(
        err, TG_E_BUDGET,
        "the smallest plan needs %s, in %d stages%s; the budget is %s: give %s%s%s%s", need,
        job->plan.stages->n,
        tgi_plan_keeps_on_disk(job) ? " with what passes between them on disk" : "", have, must,
        disk, job->source ? ", or a smaller --roi" : ", or a smaller array", largest);
}

/* What of the values between stages lies in memory, and why not all. */
static void stores_line(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    const size_t kept = p->bytes.kept;
    const int sparing = p->choice.staged->cut != p->stages;
    char why[160] = "what passes from stage to stage";
    if (!kept && !sparing)
        return;
    if (sparing && job->scratch_place.in_memory)
        snprintf(why, sizeof why,
                 "%s made again in each stage; %.60s is memory, no disk to keep values on",
                 kept ? "some values are kept, others" : "values are", job->set.scratch);
    else if (sparing)
        snprintf(why, sizeof why, "%s made again in each stage; --scratch DIR keeps %s on disk",
                 kept ? "some values are kept, others" : "values are", kept ? "all" : "them");
    tgi_job_add_line(p, "stores", kept, TG_PLAN_MEMORY, 0, "%s", why);
}

void tgi_plan_stage_lines(tg_job *job)
{
    tgi_plan_part *p = &job->plan;
    const tgi_bytes *b = &p->bytes;
    const tgi_staged *s = p->choice.staged;
    if (!s)
        return;
    stores_line(job);
    tgi_job_add_line(p, "reductions", b->states + b->numbers, TG_PLAN_MEMORY, 0, "%s",
                     "sums of the whole image, and what came of them");
    tgi_job_add_line(p, "tilings", b->tilings, TG_PLAN_MEMORY, 0, "%s",
                     "tables of how each stage is cut");
    if (b->kept_disk)
        tgi_job_add_line(p, "stores", b->kept_disk, TG_PLAN_DISK, job->scratch_place.free_bytes,
                         "%s; what passes from stage to stage", job->set.scratch);
}
