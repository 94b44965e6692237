/* run.c - the runner: obeys the plan, and calls the steps of the job's ends.
 *
 * Everything that takes memory is opened before the first band; between the first and the last
 * band our code allocates nothing. But a run in stages opens a loader and an executor for each stage
 * and closes them behind it: tables, which the allowance holds; rows and values lie in the reservation. */
#include "engine/job/run.h"
#include "engine/inpaint/inpaint.h"

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/job_done.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_log.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/plan_seconds.h"
#include "engine/job/source_device.h"
#include "engine/job/stats_file.h"
#include "engine/plan/staged_text.h"
#include "io/film_out.h"

#include <string.h>

static const tgi_run_steps *steps_of(const tgi_run *r)
{
    return r->job->ends->steps;
}

/* ---- Before the bands -------------------------------------------------------------------- */

static tg_status open_run(tgi_run *r, tgi_err *err)
{
    TGI_TRY(tgi_pass_open(&r->pass, r->source, &r->end, err));
    tgi_job_learn_drop(r->job); /* of a run that failed, maybe in another plan */
    if (!r->part && (r->pass.exec || r->job->plan.choice.staged))
        tgi_job_learn_begin(r->job);
    if (r->pass.exec)
        tgi_job_learn_stage(r->job, 0, r->pass.exec);
    TGI_TRY(tgi_input_hash_open(steps_of(r)->files, r->of, r->hashing.buffer, r->hashing.bytes,
                                &r->hash, err));
    if (r->hashing.before)
        tgi_input_hash_expect(r->hash, r->hashing.before);
    tgi_mem_trim(); /* what opening freed is no part of the peak */
    r->predicted = r->job->plan.bytes.total;
    tgi_tracker_expect(r->tracker, r->predicted, r->job->plan.budget);
    tgi_tracker_watch(r->tracker, TGI_BUSY_DECODE, tgi_film_source_busy(r->job->source));
    tgi_tracker_watch(r->tracker, TGI_BUSY_COMPUTE, &r->pass.busy);
    return TG_OK;
}

/* In the arena, before the network uses it; a job into arrays has tables of its own. */
static tg_status collect(tgi_run *r, tgi_stats *sets, tgi_err *err)
{
    tgi_pass *p = &r->pass;
    tgi_stats_args with = {.source = r->source, .tick = r->stats_tick, .user = r};
    if (r->job->plan.bytes.statistics) {
        TGI_TRY(tgi_stats_scratch(p->reserve, &with.scratch, err));
        with.rows = p->staging[0];
        with.rows_bytes = p->staging_bytes;
    } else {
        with.scratch = p->arena;
        with.rows = (char *)p->arena + TGI_STATS_SCRATCH;
        with.rows_bytes = r->job->plan.bytes.arena - TGI_STATS_SCRATCH;
    }
    r->t_phase = tgi_seconds();
    return tgi_job_stats_collect(r->job, &with, sets, err);
}

/* Those that an interrupted run kept, those of --stats, or those of the image, which --stats is
 * written from. */
static tg_status get_statistics(tgi_run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_run_steps *s = steps_of(r);
    tgi_stats *sets = r->pass.sets;
    int found, given = 0;
    if (!r->source || !tgi_normalize_needs_stats(&job->set.normalize))
        return TG_OK;
    const int kept = s->kept && s->kept(r, sets, &given);
    job->stats_given = given;
    if (kept) /* new is the wish for a file of them */
        return tgi_job_stats_write(job, sets, err);
    TGI_TRY(tgi_job_stats_read(job, sets, &found, err));
    if (!found) {
        TGI_TRY(collect(r, sets, err));
        TGI_TRY(tgi_run_input_holds(r, err));
        TGI_TRY(tgi_job_stats_write(job, sets, err));
    }
    job->stats_given = found && !job->stats_made;
    return s->keep ? s->keep(r, sets, job->stats_given, err) : TG_OK;
}

/* ---- Bands ------------------------------------------------------------------------------- */

/* The share of the time that would have done, had no other program been there. Threads wait for
 * each other's processors, too: with no other program these are as many as there are, or less. */
static double undisturbed(const tgi_turns *from, const tgi_turns *to, double seconds)
{
    const double ran = to->ran - from->ran, waited = to->waited - from->waited;
    if (!(ran > 0) || !(waited > 0) || !(seconds > 0))
        return 1;
    const double alone = ran / (ran + waited), busy = ran / (seconds * tgi_usable_processors());
    return alone > busy ? alone : busy < 1 ? busy : 1;
}

static void bands_begin(tgi_run *r)
{
    r->bands_seconds = -tgi_seconds();
    r->processor_seconds = -tgi_processor_seconds();
    tgi_turns_read("", &r->turns);
}

static void bands_end(tgi_run *r)
{
    r->bands_seconds += tgi_seconds();
    r->processor_seconds += tgi_processor_seconds();
    tgi_turns now;
    tgi_turns_read("", &now);
    r->job->undisturbed = undisturbed(&r->turns, &now, r->bands_seconds);
}

/* What is removed is as much of the input as the film is. */
static tg_status masks_hold(const tgi_run *r, tgi_err *err)
{
    const tgi_masks *masks = tgi_inpaint_masks(r->job->source);
    return masks ? tgi_input_unchanged(tgi_masks_held, masks, err) : TG_OK;
}

tg_status tgi_run_input_holds(tgi_run *r, tgi_err *err)
{
    r->t_check = tgi_seconds();
    tg_status st = tgi_input_hash_check(r->hash, r->check_tick, r, err);
    if (st == TG_OK)
        st = masks_hold(r, err);
    r->input_changed |= st == TG_E_FORMAT;
    return st;
}

/* ---- After ------------------------------------------------------------------------------- */

static void warn_of_hidden(tg_job *job)
{
    const int64_t n = tgi_inpaint_all_hidden(job->source);
    if (n)
        tgi_job_warn(
            job,
            "%lld frame%s hidden wholly: places of the nearest frames that show them are "
            "taken as they are, others are black",
            (long long)n, n == 1 ? " is" : "s are");
}

static tg_status input_digest(tgi_run *r, tgi_input_digest *d, tgi_err *err)
{
    tg_status st = tgi_input_hash_finish(r->hash, r->check_tick, r, d, err);
    if (st == TG_OK)
        st = masks_hold(r, err);
    if (st == TG_OK)
        warn_of_hidden(r->job);
    r->input_changed |= st == TG_E_FORMAT;
    if (st == TG_OK && d->trouble[0])
        tgi_job_warn(r->job, "%s: %s", d->file, d->trouble);
    return st;
}

/* A run that ended in `st`: damage in an input that was changed meanwhile is that change, and
 * statistics of it are forgotten. */
static tg_status blame(tgi_run *r, tg_status st, tgi_err *err)
{
    tgi_err none = {0};
    if (st == TG_E_FORMAT && !r->input_changed) {
        st = tgi_input_blame(steps_of(r)->files, r->of, st, err);
        r->input_changed = tgi_input_unchanged(steps_of(r)->files, r->of, &none) != TG_OK;
    }
    if (r->input_changed)
        tgi_job_stats_forget(r->job);
    return st;
}

void tgi_run_warn_of_nonfinite(tg_job *job, int64_t n, const char *cure)
{
    if (n)
        tgi_job_warn(job, "%lld values that the network gave are NaN or infinite%s",
                     (long long)n, cure);
}

static void say_speed(const tg_job *job, double t0, tg_run_result *res)
{
    const double pixels = job->ends->steps->pixels(job);
    res->budget_bytes = job->plan.budget;
    res->seconds = tgi_seconds() - t0;
    res->megapixels_per_second = res->seconds > 0 ? pixels / 1e6 / res->seconds : 0;
    res->recomputed_fraction = tgi_choice_recomputed(&job->plan.choice);
    res->output = job->set.output;
}

void tgi_run_result(const tgi_run *r, tg_run_result *res)
{
    const int complete = r->bands_seconds > 0;
    res->predicted_peak_bytes = r->predicted;
    tgi_pass_times(&r->pass, r->write_wait - r->flush_wait, res);
    res->bands_seconds = complete ? r->bands_seconds : 0;
    res->processor_seconds = complete ? r->processor_seconds : 0;
    res->stall_write_seconds = r->write_wait;
    if (r->job->dev.device)
        tgi_job_device_result(r->job, res);
    steps_of(r)->result(r, res);
    say_speed(r->job, r->t0, res);
}

/* ---- An attempt -------------------------------------------------------------------------- */

typedef struct outcome {
    tg_run_result res; /* holds when: */
    int finished;      /* the output is there, whatever the status */
    int done;          /* by an earlier run */
    int lesson;        /* what it took is what such a job takes */
    double t0;
} outcome;

/* All that must stand before rows come. */
static tg_status take(tgi_run *r, tgi_err *err)
{
    const tgi_run_steps *s = steps_of(r);
    if (s->room)
        TGI_TRY(s->room(r, err));
    TGI_TRY(tgi_pass_reserve(&r->pass, r->job, err)); /* a refusal leaves nothing behind */
    TGI_TRY(tgi_job_source_begin(r->job, err));
    TGI_TRY(s->open(r, err));
    TGI_TRY(open_run(r, err));
    TGI_TRY(get_statistics(r, err));
    return s->ready ? s->ready(r, err) : TG_OK;
}

static tg_status walk(tgi_run *r, tgi_err *err)
{
    const tgi_run_steps *s = steps_of(r);
    r->t_phase = tgi_seconds();
    bands_begin(r);
    TGI_TRY(tgi_pass_walk(&r->pass, err));
    if (s->complete)
        TGI_TRY(s->complete(r, err));
    bands_end(r);
    return TG_OK;
}

static tg_status work(tgi_run *r, tg_run_result *res, tgi_err *err)
{
    const tgi_run_steps *s = steps_of(r);
    tgi_input_digest input;
    tg_status st = take(r, err);
    if (st == TG_OK)
        st = walk(r, err);
    if (s->settle)
        st = s->settle(r, st, err);
    if (st == TG_OK)
        st = input_digest(r, &input, err);
    if (st == TG_OK && s->finish)
        st = s->finish(r, &input, res, err);
    if (st != TG_OK && !r->finished) {
        st = blame(r, st, err);
        if (s->leave)
            s->leave(r, st, err);
    }
    return st;
}

static void close_run(tgi_run *r)
{
    const tgi_run_steps *s = steps_of(r);
    tgi_pass_stop(&r->pass);
    if (s->stop)
        s->stop(r);
    tgi_input_hash_close(&r->hash);
    tgi_pass_close(&r->pass);
    if (s->close)
        s->close(r);
    tgi_free(r);
}

/* Begin, or go on with, or find finished. */
static tg_status attempt(tg_job *job, outcome *o, tgi_err *err)
{
    const tgi_run_steps *s = job->ends->steps;
    tgi_run *r = tgi_calloc(TGI_TAG_PLAN, 1, s->bytes);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory to run a job");
    tg_run_result *res = &o->res;
    r->job = job;
    r->t0 = o->t0;
    r->end.user = r;
    *res = (tg_run_result){.size = sizeof *res};
    tg_status st = s->begin(r, &o->done, err);
    if (st == TG_OK && !o->done) {
        st = tgi_job_tracker_open(job, r->goes_on, &r->tracker, err);
        if (st == TG_OK)
            st = work(r, res, err);
    }
    tgi_run_result(r, res);
    if (r->tracker)
        res->measured_peak_bytes = tgi_job_tracker_close(job, &r->tracker);
    o->finished = st == TG_OK || r->finished;
    o->lesson = !r->part && !o->done;
    close_run(r);
    return st;
}

/* Memory that was free when it was planned is gone: the frames that a method keeps may be fewer. 1: it is planned again. */
static int shrink(tg_job *job, tg_status st, const tgi_err *e)
{
    char had[32];
    const int of_device = e->asked_by && strcmp(e->asked_by, TGI_DEVICE_ASKS) == 0;
    const size_t had_all = job->plan.bytes.total;
    if (st != TG_E_NOMEM || of_device || tgi_job_pass_ops(job) ||
        !tgi_inpaint_is(job->source) || !had_all ||
        (job->ran_out && had_all > job->ran_out - job->ran_out / 64)) /* it gets no smaller */
        return 0;
    job->ran_out = had_all;
    tgi_job_warn(
        job,
        "memory that was free when it was planned is gone; planned again with less than %s",
        tgi_size_text(had_all, had, sizeof had));
    tgi_job_drop_plan(job);
    return 1;
}

/* As often as it helps; what is told then is what was missing. */
static tg_status attempt_with_less(tg_job *job, tg_status st, outcome *o, tgi_err *e)
{
    const tgi_err missing = *e;
    for (int again = 0; again < 8 && shrink(job, st, e); again++) {
        memset(e, 0, sizeof *e);
        st = attempt(job, o, e);
    }
    if (st != TG_E_BUDGET || missing.code != TG_E_NOMEM)
        return st;
    *e = missing;
    return missing.code;
}

/* So often too; no larger --vram brings back what is gone. */
static tg_status attempt_on_device(tg_job *job, tg_status st, outcome *o, tgi_err *e)
{
    tgi_err missing = *e;
    for (int again = 0; again < 3 && tgi_job_device_shrink(job, st, e); again++) {
        missing = *e;
        memset(e, 0, sizeof *e);
        st = attempt(job, o, e);
    }
    if (st != TG_E_BUDGET || missing.code != TG_E_NOMEM)
        return st;
    *e = missing;
    return missing.code;
}

/* Until it ends in something else than a device whose memory is not what the plan counted on;
 * and once more where job->again says that it is to begin anew. */
static tg_status attempts(tg_job *job, outcome *o, tgi_err *err)
{
    tgi_err e = {0};
    tg_status st = attempt(job, o, &e);
    if (st != TG_OK && job->again) {
        job->again = 0;
        memset(&e, 0, sizeof e);
        st = attempt(job, o, &e);
    }
    st = attempt_with_less(job, st, o, &e);
    st = attempt_on_device(job, st, o, &e);
    return st == TG_OK ? st : tgi_job_device_answer(job, st, &e, err);
}

/* ---- A run ------------------------------------------------------------------------------- */

static tg_status run(tg_job *job, outcome *o, tgi_err *err)
{
    const tgi_run_steps *s = job->ends->steps;
    if (s->prepare)
        TGI_TRY(s->prepare(job, &o->res, &o->done, err));
    if (!o->done)
        TGI_TRY(attempts(job, o, err));
    if (s->complete_all && !o->done) {
        o->finished = 0;
        TGI_TRY(s->complete_all(job, &o->res, err));
    }
    o->finished = 1;
    return TG_OK;
}

/* --skip-done: nothing is left to do, and nothing is touched. */
static tg_status skip(tg_job *job, int *skipped, tg_run_result *out, tgi_err *err)
{
    tg_run_result res = {.size = sizeof res};
    TGI_TRY(tgi_job_is_done(job, skipped, &res.bad_regions, err));
    if (!*skipped)
        return TG_OK;
    say_speed(job, tgi_seconds(), &res);
    if (out)
        *out = res;
    return tgi_bad_tiles_verdict(res.bad_regions, job->set.input, job->source, job->set.output,
                                 err);
}

tg_status tgi_job_run(tg_job *job, tg_run_result *out, tgi_err *err)
{
    const tgi_run_steps *s = job->ends->steps;
    outcome o = {.res = {.size = sizeof o.res}, .t0 = tgi_seconds()};
    int skipped;
    const tg_status is_done = skip(job, &skipped, out, err);
    if (is_done != TG_OK || skipped)
        return is_done;
    TGI_TRY(tgi_job_sides_look(job, err)); /* before there is a journal of ours */
    TGI_TRY(tgi_job_stats_look(job, err));
    if (s->plan)
        TGI_TRY(s->plan(job, err));
    tg_status st = run(job, &o, err);
    if (s->drop)
        s->drop(job, st);
    if (st != TG_OK)
        tgi_job_sides_drop(job, st);
    if (o.finished)
        say_speed(job, o.t0, &o.res);
    if (st == TG_OK && o.lesson)
        tgi_job_learn_end(job, o.res.seconds);
    if (o.finished && out)
        *out = o.res;
    return st == TG_OK ? tgi_bad_tiles_verdict(o.res.bad_regions, job->set.input, job->source,
                                               job->set.output, err)
                       : st;
}
