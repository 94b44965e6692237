/* job_device.c - a device in the processor's place: whether there is one that can, what its
 * memory leaves, what a plan takes of it.
 *
 *   --vram >= context + block + program             measured | planned to the byte | planned
 *
 * The context is made before free memory is asked for, so what drivers and kernels take is not
 * free any more; how much that was is the difference to what was free before. It is kept
 * (measured.h), so that asking for a plan takes nobody's memory: a run measures. */
#include "engine/job/job_device.h"
#include "engine/base/arith.h"
#include "engine/device/current.h"
#include "engine/device/measured.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/device_kinds.h"
#include "engine/job/device_stages.h"
#include "engine/job/device_state.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_state.h"
#include "engine/job/plan_report.h"
#include "engine/job/source_device.h"
#include "engine/memory/gpu.h"
#include "engine/plan/device_time.h"

#include <stdio.h>
#include <string.h>

/* Left to others of what is free, where --vram does not decide. A desktop's windows come and
 * go by some hundred megabytes. */
#define MARGIN_BYTES ((uint64_t)256 << 20)

/* ---- Which ------------------------------------------------------------------------------- */

/* TG_E_DEVICE when the processor has no numbers of the precision asked for. */
static tg_status processor_has(const tg_job *job, const char *why, tgi_err *err)
{
    const tgi_isa isa = job->set.backend->isa;
    const char *colon = why ? ": " : "";
    if (tgi_opts_choice(job->opts, TGI_OPT_PRECISION) == TGI_PRECISION_FP16)
        return tgi_fail(err, TG_E_DEVICE,
                        "--precision fp16 needs a GPU; the processor has fp32 and bf16%s%s",
                        colon, why ? why : "");
    if (job->set.bf16 && !job->set.bf16_here)
        return tgi_fail(
            err, TG_E_DEVICE,
            "--precision bf16 needs a processor with AVX512_BF16; the kernels of this "
            "run are %s%s%s%s",
            tgi_isa_name(isa), isa == TGI_ISA_AVX512 ? " without it" : "", colon,
            why ? why : "");
    return TG_OK;
}

static tg_status refuse_or_stay(tg_job *job, tg_status st, const char *why, tgi_err *err)
{
    /* A refusal chooses nothing: who asks again is told the same. */
    memset(&job->dev, 0, sizeof job->dev);
    snprintf(job->device_text, sizeof job->device_text, "%.319s",
             why && st == TG_OK ? why : "");
    if (st != TG_OK)
        return tgi_fail(err, st, "--device %s: %s", tgi_opts_str(job->opts, TGI_OPT_DEVICE),
                        why);
    TGI_TRY(processor_has(job, why, err));
    job->dev.chosen = 1;
    return TG_OK;
}

/* A device applies one linear map to all pixels that it is sent. */
static int clips_or_differs(const tgi_normalize_spec *norm)
{
    int found = norm->kind == TGI_NORM_CHAIN && norm->by_channel;
    for (int i = 0; norm->kind == TGI_NORM_CHAIN && i < norm->n_step; i++)
        found |= norm->step[i].op == TGI_NORM_CLIP || norm->step[i].n > 1;
    return found;
}

/* What it computes with; it may not do. */
static tg_status settle_device(tg_job *job, tgi_err *err)
{
    const tgi_job_device *d = &job->dev;
    snprintf(job->device_text, sizeof job->device_text, "%s:%d, %s", d->ops->name, d->info.id,
             d->info.name);
    const char *missing =
        clips_or_differs(&job->set.normalize)
            ? "a device does not clip pixels, or normalise channel by channel, by numbers of "
              "the image"
            : tgi_job_pick_kinds(job);
    return missing ? tgi_job_device_leave(job, missing, err) : TG_OK;
}

static tg_status stay(tg_job *job, const char *why, tgi_err *err)
{
    if (why && *why)
        tgi_ctx_log(job->ctx, TG_LOG_INFO, "computed by the processor: %s", why);
    return refuse_or_stay(job, TG_OK, why && *why ? why : NULL, err);
}

/* The one that --device asks for, into job->dev, which is empty where auto finds none. */
static tg_status find_device(tg_job *job, const tgi_device_spec *want,
                             char notice[sizeof((tgi_device_choice *)0)->notice], tgi_err *err)
{
    tgi_device_choice found;
    if (!job->machine.here)
        return tgi_job_device_of_file(job, want, err);
    TGI_TRY(tgi_device_choose(want, &found, err));
    strcpy(notice, found.notice);
    if (found.ops)
        job->dev = (tgi_job_device){.ops = found.ops, .info = found.info, .chosen = 1};
    return TG_OK;
}

/* The processor takes over from a device that nobody named. */
static tg_status choose_device(tg_job *job, const tgi_device_spec *want, int by_name,
                               tgi_err *err)
{
    const int for_source = tgi_inpaint_is(job->source);
    const char *lacks = for_source ? tgi_job_source_lacks(job) : NULL;
    char notice[sizeof((tgi_device_choice *)0)->notice] = "";
    tgi_err e = {0};
    tg_status st = lacks ? tgi_fail(&e, TG_E_DEVICE, "--device %s: %s",
                                    tgi_opts_str(job->opts, TGI_OPT_DEVICE), lacks)
                         : find_device(job, want, notice, &e);
    if (st != TG_OK && by_name) {
        if (err)
            *err = e;
        return st;
    }
    if (st != TG_OK || !job->dev.ops)
        return stay(job, st != TG_OK ? e.text : notice, err);
    job->dev.by_name = by_name;
    job->dev.for_source = for_source;
    return settle_device(job, err);
}

tg_status tgi_job_device_choose(tg_job *job, tgi_err *err)
{
    tgi_device_spec want;
    tgi_ram_spec vram;
    if (job->dev.chosen)
        return TG_OK;
    if (tgi_opts_given(job->opts, TGI_OPT_VRAM) && !tgi_opts_vram(job->opts, &vram))
        return tgi_fail(err, TG_E_ARG, "--vram %s: a job runs on one GPU; give one size",
                        tgi_opts_str(job->opts, TGI_OPT_VRAM));
    tgi_opts_device(job->opts, &want);
    const int asked = want.kind == TGI_DEVICE_OF_PLUGIN;
    /* Where a plan is for another machine, a device is asked for. */
    if (want.kind == TGI_DEVICE_CPU ||
        (!asked && (tgi_inpaint_is(job->source) || !job->machine.here)))
        return stay(job, NULL, err);
    return choose_device(job, &want, asked && !tgi_job_device_by_auto(job->opts), err);
}

tg_status tgi_job_device_leave(tg_job *job, const char *why, tgi_err *err)
{
    char text[256];
    const int by_name = job->dev.by_name && why;
    if (!job->dev.ops)
        return TG_OK;
    snprintf(text, sizeof text, "%s", why ? why : "");
    tgi_job_drop_plan(job);
    tgi_job_device_close(job);
    job->device_peak = 0;
    if (!by_name) {
        job->refused_bytes = 0;
        job->refused.ops = NULL;
    }
    if (why && !by_name)
        tgi_ctx_log(job->ctx, TG_LOG_INFO, "computed by the processor: %s", text);
    return refuse_or_stay(job, by_name ? TG_E_UNSUPPORTED : TG_OK, why ? text : NULL, err);
}

tg_status tgi_job_plan_processor(tg_job *job, tgi_plan_ask ask, tgi_err *err)
{
    TGI_TRY(tgi_job_device_leave(job, NULL, err));
    if (tgi_opts_choice(job->opts, TGI_OPT_PRECISION) == TGI_PRECISION_FP16)
        return tgi_fail(err, TG_E_DEVICE,
                        "--precision fp16 needs a GPU; here the processor computes");
    TGI_TRY(processor_has(job, NULL, err));
    return tgi_job_plan(job, ask, err);
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* What --vram allows in all; 0: it does not say. */
static uint64_t budget_of(const tg_job *job, uint64_t free_before)
{
    tgi_ram_spec vram;
    if (!tgi_opts_vram(job->opts, &vram))
        return 0;
    return vram.bytes ? vram.bytes
                      : (uint64_t)((double)free_before * (double)vram.percent / 100.0);
}

/* What of `before` free bytes the job may take, beside a context that is known. */
static void allow(tg_job *job, uint64_t before, uint64_t total)
{
    tgi_job_device *d = &job->dev;
    d->budget_bytes = budget_of(job, before);
    d->margin_bytes = 0;
    if (!d->budget_bytes) {
        d->margin_bytes = tgi_max(MARGIN_BYTES, total / 20);
        d->margin_bytes =
            d->margin_bytes < d->free_bytes / 2 ? d->margin_bytes : d->free_bytes / 2;
        d->budget_bytes = before - d->margin_bytes;
    }
    const uint64_t allowed =
        d->budget_bytes > d->context_bytes ? d->budget_bytes - d->context_bytes : 0;
    d->limit_bytes = allowed < d->free_bytes ? allowed : d->free_bytes;
    /* Somebody took what an earlier plan of this job counted on: leave more than before. */
    const uint64_t part =
        d->for_source ? d->need.room : d->ran_out; /* the rest of it stays what it is */
    if (d->ran_out && d->limit_bytes > d->ran_out - part / 4)
        d->limit_bytes = d->ran_out - part / 4;
}

/* Free now, as the management library says; 0: it does not. Where it counts much more than the
 * device has, it speaks of the whole of which this one is an instance (MIG). */
static uint64_t told_free(const tgi_device_info *info)
{
    const int id = tgi_gpu_of_uuid(info->uuid); /* the driver may count others */
    uint64_t free_bytes = 0, used = 0;
    if (id != TG_GPU_NONE)
        tgi_gpu_free_used(id, 0, &free_bytes, &used);
    return free_bytes + used > info->total_bytes + info->total_bytes / 8 ? 0 : free_bytes;
}

static tgi_device_others others_now(const tgi_device_info *info)
{
    tgi_device_others o = {0};
    const int id = tgi_gpu_of_uuid(info->uuid);
    o.told = id != TG_GPU_NONE && tgi_gpu_others(id, &o.bytes, &o.listed);
    return o;
}

/* What is free and what others hold at the same moment: nobody came or went between two looks.
 * Without a context the management library tells both. */
#define LOOKS 8 /* somebody who is never still counts as ours */
static tg_status look(const tgi_job_device *d, uint64_t *free_bytes, uint64_t *total,
                      tgi_device_others *others, tgi_err *err)
{
    for (int i = 0; i < LOOKS; i++) {
        *others = others_now(&d->info);
        if (d->device)
            TGI_TRY(d->ops->memory(d->device, free_bytes, total, err));
        else
            *free_bytes = told_free(&d->info);
        const tgi_device_others again = others_now(&d->info);
        if (again.told == others->told && again.bytes == others->bytes)
            return TG_OK;
    }
    others->told = 0;
    return TG_OK;
}

uint64_t tgi_job_device_free_now(const tg_job *job)
{
    const tgi_job_device *d = &job->dev;
    tgi_device_others others;
    uint64_t now = 0, total = 0;
    return d->ops && look(d, &now, &total, &others, NULL) == TG_OK ? now : 0;
}

/* Of what is missing on the device, our part: free memory went from `had` to `has`, and others
 * from `then` to `now`. Without ourselves in the later list (a container may see that of
 * another namespace) all of it counts as ours. */
static uint64_t our_part(uint64_t had, uint64_t has, const tgi_device_others *then,
                         const tgi_device_others *now)
{
    int64_t ours = (int64_t)had - (int64_t)has;
    if (then->told && now->told && now->listed)
        ours -= (int64_t)now->bytes - (int64_t)then->bytes;
    return ours > 0 ? (uint64_t)ours : 0;
}

/* For jobs that only ask. A first context of the process, and nobody else's memory in it. */
static void keep_context(tg_job *job, int first)
{
    tgi_measured m;
    tgi_measured_read(&job->dev.info, &m);
    if (!first || !job->dev.context_bytes || m.context_bytes == job->dev.context_bytes)
        return;
    m.context_bytes = job->dev.context_bytes;
    tgi_job_keep_measured(job, &m);
}

tg_status tgi_job_device_open(tg_job *job, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    uint64_t told = 0, total = 0;
    tgi_device_others then;
    if (!d->ops || d->device || d->of_file)
        return TG_OK;
    TGI_TRY(look(d, &told, &total, &then, err));
    const int first = !tgi_device_was_current(&d->info);
    then.told = then.told && !(first && then.listed); /* who is listed, is somebody else */
    TGI_TRY(d->ops->open(d->info.id, &d->device, err));
    d->supposed = 0;
    tgi_device_is_current(&d->info);
    TGI_TRY(look(d, &d->free_bytes, &total, &d->others, err));
    /* nobody told: what others hold counts as ours, to be safe */
    const uint64_t before = told ? told : total;
    d->context_bytes = our_part(before, d->free_bytes, &then, &d->others);
    if (told && first)
        d->context_bytes += tgi_device_first_bytes(&d->info);
    if (told)
        keep_context(job, first);
    if (told) /* that of an earlier job in this process is there still, and was not free */
        d->context_bytes = tgi_device_context(&d->info, d->context_bytes);
    allow(job, d->context_bytes + d->free_bytes, total);
    return TG_OK;
}

void tgi_job_device_recount(tg_job *job)
{
    tgi_job_device *d = &job->dev;
    uint64_t now = 0, total = d->info.total_bytes;
    tgi_device_others others;
    if (d->device && look(d, &now, &total, &others, NULL) == TG_OK && now < d->free_bytes) {
        d->context_bytes += our_part(d->free_bytes, now, &d->others, &others);
        d->free_bytes = now;
        d->others = others;
    }
    allow(job, d->context_bytes + d->free_bytes, total);
}

tg_status tgi_job_device_see(tg_job *job, int measured, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    tgi_measured m;
    if (!d->ops || d->device)
        return TG_OK;
    if (d->of_file) {
        allow(job, d->context_bytes + d->free_bytes, d->info.total_bytes);
        return TG_OK;
    }
    if (job->known.device) {
        d->supposed = 1;
        d->context_bytes = job->known.device->context_bytes;
        d->free_bytes = job->known.device->free_bytes;
        allow(job, d->context_bytes + d->free_bytes, d->info.total_bytes);
        return TG_OK;
    }
    tgi_measured_read(&d->info, &m);
    const uint64_t told = told_free(&d->info);
    if (measured || !m.context_bytes || told <= m.context_bytes ||
        tgi_device_was_current(&d->info))
        return tgi_job_device_open(job, err);
    d->supposed = 1;
    d->context_bytes = m.context_bytes;
    d->free_bytes = told - m.context_bytes;
    allow(job, told, d->info.total_bytes);
    return TG_OK;
}

void tgi_job_device_close(tg_job *job)
{
    if (job->dev.for_source)
        tgi_inpaint_leave(job->source);
    if (job->dev.ops)
        job->dev.ops->close(&job->dev.device);
    job->dev.library = 0;
    job->dev.library_bytes = 0;
    job->dev.supposed = job->dev.of_file;
}

static tgi_rates rates_of(const tg_job *job)
{
    return tgi_device_rates(job->dev.info.multiprocessors, job->dev.element);
}

/* ---- Plan -------------------------------------------------------------------------------- */

static tgi_device_form form_of(const tg_job *job, const tgi_tiling *t)
{
    tgi_device_form f = {0};
    if (tgi_device_is_stage(job, t))
        tgi_device_stage_form(job, t, &f);
    else
        job->ends->form(job, t, &f);
    if (tgi_job_hands_on(job) && !tgi_device_is_stage(job, t))
        tgi_device_state_form(job, t, &f);
    return f;
}

/* Bytes that a tiling takes here beside what its executor pins. */
static size_t host_beside(const tg_job *job, const tgi_tiling *t, const tgi_device_form *form)
{
    size_t at[TGI_DEVICE_PORTS];
    if (!tgi_device_is_stage(job, t))
        return job->ends->device_beside(job, t);
    const size_t ends = t->stage->out[0].port == 0 ? job->ends->device_beside(job, t)
                                                   : job->ends->rows_in(job, t);
    return tgi_sat_add(tgi_sat_add(ends, job->dev.kept_bytes),
                       tgi_device_stage_up(job, t, form, at));
}

double tgi_job_device_seconds(void *user, const tgi_tiling *t)
{
    const tg_job *job = user;
    const tgi_rates r = rates_of(job);
    if (!tgi_device_is_stage(job, t))
        return tgi_device_seconds(&r, t, job->ends->band_pixels(job, t));
    const tgi_device_form form = form_of(job, t);
    return tgi_device_seconds(&r, t, tgi_device_stage_pixels(t, &form));
}

double tgi_job_device_all_seconds(const tg_job *job, const tgi_tiling *t, double items,
                                  double pixel_bytes)
{
    const tgi_rates r = rates_of(job);
    const int lanes = job->dev.form.lanes > 1 ? job->dev.form.lanes : 1;
    return tgi_device_all_seconds(&r, t, items, lanes, pixel_bytes);
}

static void next_stage(tgi_job_device *d, const void *stage)
{
    if (d->host_stage && d->stage_least > d->place_least)
        d->place_least = d->stage_least;
    d->host_stage = stage;
    d->stage_least = SIZE_MAX;
}

void tgi_job_device_next_place(tg_job *job)
{
    tgi_job_device *d = &job->dev;
    next_stage(d, NULL);
    if (d->place_least && d->place_least < d->host_least)
        d->host_least = d->place_least;
    d->place_least = 0;
}

size_t tgi_job_device_extra(tg_job *job, const tgi_tiling *t, size_t host)
{
    tgi_device_need need;
    const tgi_device_form form = form_of(job, t);
    tgi_err e = {0};
    if (tgi_device_need_of(job->dev.ops, t, &form, &need, &e) != TG_OK) {
        if (job->uncounted.code == TG_OK)
            job->uncounted = e;
        return SIZE_MAX;
    }
    const size_t here =
        tgi_sat_add(tgi_sat_add(need.pinned, need.packing), host_beside(job, t, &form));
    if (job->dev.host_stage != t->stage)
        next_stage(&job->dev, t->stage);
    if (here < job->dev.stage_least)
        job->dev.stage_least = here;
    if (here > host)
        return SIZE_MAX;
    /* The tiling's arena is counted by who asks; the device rounds it up. */
    const size_t block = need.block > t->arena_bytes ? need.block - t->arena_bytes : 0;
    return tgi_sat_add(tgi_sat_add(block, need.program), job->carried_bytes);
}

uint64_t tgi_job_device_planned(const tg_job *job)
{
    const tgi_job_device *d = &job->dev;
    return d->context_bytes + d->library_bytes + d->need.block + d->need.program;
}

uint64_t tgi_job_device_taken(const tg_job *job)
{
    const tgi_job_device *d = &job->dev;
    uint64_t now = 0, total;
    tgi_device_others others;
    if (!d->device || look(d, &now, &total, &others, NULL) != TG_OK)
        return 0;
    return d->context_bytes + our_part(d->free_bytes, now, &d->others, &others);
}

/* As many cells beside each other as the device wants and both memories hold. */
static tg_status add_lanes(tg_job *job, const tgi_tiling *t, size_t host, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    const tgi_rates r = rates_of(job);
    const int64_t cells =
        tgi_min(tgi_device_lanes_wanted(&r, t), t->cells * job->ends->items(job));
    const size_t fixed = tgi_sat_add(job->ends->device_beside(job, t), d->need.packing);
    for (int lanes = 2; lanes <= cells; lanes++) {
        tgi_device_form form = d->form;
        tgi_device_need need;
        form.lanes = lanes;
        TGI_TRY(tgi_device_need_of(d->ops, t, &form, &need, err));
        if (tgi_sat_add(need.block, need.program) > d->limit_bytes ||
            tgi_sat_add(need.pinned, fixed) > host)
            break;
        d->form = form;
        d->need = need;
    }
    return TG_OK;
}

tg_status tgi_job_device_count(tg_job *job, size_t host, tgi_err *err)
{
    tgi_job_device *d = &job->dev;
    const tgi_tiling *t = &job->plan.choice.tiling;
    d->form = form_of(job, t);
    if (job->plan.choice.staged) {
        TGI_TRY(tgi_device_stages_need(job, &d->need, &d->form, err));
    } else {
        TGI_TRY(tgi_device_need_of(d->ops, t, &d->form, &d->need, err));
        if (!tgi_job_hands_on(job)) /* else cells follow each other */
            TGI_TRY(add_lanes(job, t, host, err));
        d->need.far = job->carried_bytes;
        d->need.block = tgi_sat_add(d->need.block, d->need.far);
    }
    job->plan.bytes.weights = d->need.packing;
    job->plan.bytes.pinned = d->need.pinned;
    job->device_peak = tgi_job_device_planned(job);
    return TG_OK;
}

void tgi_job_device_lines(tg_job *job)
{
    const tgi_job_device *d = &job->dev;
    tgi_plan_part *p = &job->plan;
    const int lanes = d->form.lanes > 1 ? d->form.lanes : 1;
    char text[160], size[32];
    tgi_job_add_line(p, "context", d->context_bytes, TG_PLAN_DEVICE, 0, "%s",
                     "driver, libraries and kernels");
    if (d->library)
        tgi_job_add_line(p, "library", d->library_bytes, TG_PLAN_DEVICE, 0, "%s",
                         "of products of matrices; --no-cublas leaves it out");
    tgi_job_add_line(p, "weights", d->need.weights + d->need.constants, TG_PLAN_DEVICE, 0,
                     "packed for %s", tgi_job_precision(job));
    tgi_size_text(p->choice.tiling.lower_bound_bytes, size, sizeof size);
    if (lanes > 1)
        snprintf(text, sizeof text,
                 "activations of %d cells beside each other, %s live of each", lanes, size);
    else
        snprintf(text, sizeof text, "activations; %s live together at most", size);
    tgi_job_add_line(p, "arena", d->need.arena, TG_PLAN_DEVICE, 0, "%s", text);
    snprintf(text, sizeof text, "of %s on their way in, and as many out",
             lanes > 1 ? "these cells and one more" : "two bands");
    tgi_job_add_line(p, "pixels", d->need.pixels, TG_PLAN_DEVICE, 0, "%s", text);
    if (d->need.far)
        tgi_job_add_line(p, "state", d->need.far, TG_PLAN_DEVICE, 0, "%s",
                         "what frames hand on, of this one and of the one before");
    tgi_job_add_line(p, "program", d->need.program, TG_PLAN_DEVICE, 0, "%s",
                     "launches of a band and their parameters");
    if (d->margin_bytes)
        tgi_job_add_line(p, "margin", d->margin_bytes, TG_PLAN_DEVICE_MARGIN, 0, "%s",
                         "left free for others; --vram decides instead");
    tgi_job_add_line(p, "packing", p->bytes.weights, TG_PLAN_MEMORY, 0, "%s",
                     "the largest layer's weights, while they are sent");
    tgi_job_add_line(p, "pinned", p->bytes.pinned, TG_PLAN_MEMORY, 0, "%s",
                     p->choice.staged ? "what goes to the device and comes back, of a stage"
                                      : "rows that come back from the device");
}

void tgi_job_device_keep_refused(tg_job *job)
{
    job->refused = job->dev;
    job->refused.device = NULL;
}

tg_status tgi_job_device_refuse(tg_job *job, size_t least, tgi_err *err)
{
    const tgi_job_device *d = &job->dev;
    char need[32], have[32];
    const uint64_t all = tgi_sat_add(least, (size_t)(d->context_bytes + d->library_bytes));
    const uint64_t mib = (all + ((uint64_t)1 << 20) - 1) >> 20;
    const uint64_t there = d->context_bytes + d->free_bytes;
    const uint64_t may = d->context_bytes + d->library_bytes + d->limit_bytes;
    const char *or_cpu = d->by_name ? ", or --device cpu" : "";
    tgi_job_device_keep_refused(job);
    job->refused_bytes = all;
    tgi_size_above(all, need, sizeof need);
    tgi_size_below(d->budget_bytes < may ? d->budget_bytes : may, have, sizeof have);
    if (mib << 20 <= there)
        return tgi_fail(err, TG_E_BUDGET,
                        "the smallest plan needs %s of the memory of %s; %s may be used: give "
                        "--vram %lluMiB%s",
                        need, job->device_text, have, (unsigned long long)mib, or_cpu);
    tgi_size_below(there, have, sizeof have);
    return tgi_fail(err, TG_E_BUDGET,
                    "the smallest plan needs %s of the memory of %s; %s are free there%s", need,
                    job->device_text, have, d->by_name ? ": give --device cpu" : "");
}

void tgi_job_device_warn_of_copies(tg_job *job)
{
    tgi_job_warn(job,
                 "%s: the system pins no memory (a limit on locked memory?); copies pass "
                 "through the driver's, and take longer",
                 job->device_text);
}

/* ---- After a run ------------------------------------------------------------------------- */

int tgi_job_device_shrink(tg_job *job, tg_status st, const tgi_err *e)
{
    tgi_job_device *d = &job->dev;
    char had[32];
    if (!d->ops || !d->device)
        return 0;
    if (st == TG_E_UNSUPPORTED && d->library && !d->settled) {
        tgi_job_warn(job, "%s: planned again without its library (%.100s)", job->device_text,
                     e->text);
        d->info.kinds &= ~TGI_KIND_LIBRARY;
        d->kinds &= ~TGI_KIND_LIBRARY;
        tgi_job_drop_plan(job);
        tgi_job_device_close(job);
        return 1;
    }
    if (st != TG_E_NOMEM || !e->asked_by || strcmp(e->asked_by, TGI_DEVICE_ASKS) != 0)
        return 0;
    d->ran_out = d->need.block + d->need.program;
    tgi_job_warn(job,
                 "%s: memory that was free is gone (%.100s); planned again with less than %s",
                 job->device_text, e->text, tgi_size_text(d->ran_out, had, sizeof had));
    tgi_job_drop_plan(job);
    tgi_job_device_close(job);
    return 1;
}

tg_status tgi_job_device_answer(const tg_job *job, tg_status st, const tgi_err *e, tgi_err *err)
{
    if (err)
        *err = *e;
    if (!job->dev.ops || !job->dev.device || st != TG_E_DEVICE)
        return st;
    if (err)
        memset(err, 0, sizeof *err);
    return tgi_fail(err, TG_E_DEVICE_LOST, "%s: %s; the same command %s", job->device_text,
                    e->text, job->ends->after_stop);
}

void tgi_job_device_result(const tg_job *job, tg_run_result *res)
{
    const tgi_job_device *d = &job->dev;
    res->device = job->device_text;
    res->device_predicted_bytes = tgi_job_device_planned(job);
    const uint64_t now = tgi_job_device_taken(job);
    res->device_measured_bytes = now > d->most_taken ? now : d->most_taken;
    res->device_budget_bytes = d->budget_bytes;
    double seconds[3];
    if (d->device && d->ops->times(d->device, seconds, NULL) == TG_OK) {
        for (int i = 0; i < 3; i++)
            seconds[i] -= d->seconds_before[i];
        res->device_upload_seconds = seconds[TGI_QUEUE_UPLOAD];
        res->device_download_seconds = seconds[TGI_QUEUE_DOWNLOAD];
        res->device_kernel_seconds = seconds[TGI_QUEUE_COMPUTE];
    }
}
