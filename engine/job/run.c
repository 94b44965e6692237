/* run.c - the steps that all runs share. */
#include "engine/job/run.h"

#include "engine/base/clock.h"
#include "engine/job/job_device.h"
#include "engine/job/job_open.h"
#include "engine/job/plan_seconds.h"
#include "engine/job/stats_file.h"
#include "engine/plan/staged_text.h"

#include <string.h>

/* ---- Before the bands -------------------------------------------------------------------- */

tg_status tgi_run_open(tgi_run *r, tgi_source *source, const tgi_pass_end *end, void *buffer,
                       size_t buffer_bytes, tgi_err *err)
{
    TGI_TRY(tgi_pass_open(&r->pass, source, end, err));
    tgi_job_learn_drop(r->job); /* of a run that failed, maybe in another plan */
    if (!r->part && (r->pass.exec || r->job->plan.choice.staged))
        tgi_job_learn_begin(r->job);
    if (r->pass.exec)
        tgi_job_learn_stage(r->job, 0, r->pass.exec);
    TGI_TRY(tgi_input_hash_open(r->files, r->of, buffer, buffer_bytes, &r->hash, err));
    /* The plan counts the program in whole steps, and slack: no more than was promised. */
    const size_t total = r->job->plan.bytes.total, now = tgi_pass_peak(&r->pass);
    r->predicted = now < total ? now : total;
    tgi_tracker_expect(r->tracker, r->predicted, r->job->plan.budget);
    return TG_OK;
}

tg_status tgi_run_statistics(tgi_run *r,
                             tg_status (*collect)(void *user, tgi_stats *sets, tgi_err *err),
                             int *given, tgi_err *err)
{
    int found;
    TGI_TRY(tgi_job_stats_read(r->job, r->pass.sets, &found, err));
    *given = found && !r->job->stats_made;
    if (found)
        return TG_OK;
    TGI_TRY(collect(r->user, r->pass.sets, err));
    TGI_TRY(tgi_run_input_holds(r, err));
    return tgi_job_stats_write(r->job, r->pass.sets, err);
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

void tgi_run_bands_begin(tgi_run *r)
{
    r->bands_seconds = -tgi_seconds();
    r->processor_seconds = -tgi_processor_seconds();
    tgi_turns_read("", &r->turns);
}

void tgi_run_bands_end(tgi_run *r)
{
    r->bands_seconds += tgi_seconds();
    r->processor_seconds += tgi_processor_seconds();
    tgi_turns now;
    tgi_turns_read("", &now);
    r->job->undisturbed = undisturbed(&r->turns, &now, r->bands_seconds);
}

tg_status tgi_run_input_holds(tgi_run *r, tgi_err *err)
{
    r->t_check = tgi_seconds();
    const tg_status st = tgi_input_hash_check(r->hash, r->tick, r->user, err);
    r->input_changed |= st == TG_E_FORMAT;
    return st;
}

/* ---- After ------------------------------------------------------------------------------- */

tg_status tgi_run_input_digest(tgi_run *r, tgi_input_digest *d, tgi_err *err)
{
    const tg_status st = tgi_input_hash_finish(r->hash, r->tick, r->user, d, err);
    r->input_changed |= st == TG_E_FORMAT;
    if (st == TG_OK && d->trouble[0])
        tgi_job_warn(r->job, "%s: %s", d->file, d->trouble);
    return st;
}

tg_status tgi_run_blame(tgi_run *r, tg_status st, tgi_err *err)
{
    tgi_err none = {0};
    if (st == TG_E_FORMAT && !r->input_changed) {
        st = tgi_input_blame(r->files, r->of, st, err);
        r->input_changed = tgi_input_unchanged(r->files, r->of, &none) != TG_OK;
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

void tgi_run_result(const tgi_run *r, tg_run_result *res)
{
    const int complete = r->bands_seconds > 0;
    res->predicted_peak_bytes = r->predicted;
    tgi_pass_times(&r->pass, r->write_wait - r->flush_wait, res);
    res->bands_seconds = complete ? r->bands_seconds : 0;
    res->processor_seconds = complete ? r->processor_seconds : 0;
    res->stall_write_seconds = r->write_wait;
    if (r->pass.device.exec)
        tgi_job_device_result(r->job, res);
}

void tgi_run_speed(const tg_job *job, double t0, double pixels, tg_run_result *res)
{
    res->budget_bytes = job->plan.budget;
    res->seconds = tgi_seconds() - t0;
    res->megapixels_per_second = res->seconds > 0 ? pixels / 1e6 / res->seconds : 0;
    res->recomputed_fraction = tgi_choice_recomputed(&job->plan.choice);
    res->output = job->set.output;
}

void tgi_run_close(tgi_run *r)
{
    tgi_input_hash_close(&r->hash);
    tgi_pass_close(&r->pass);
}

/* ---- Again ------------------------------------------------------------------------------- */

tg_status tgi_run_attempts(tg_job *job,
                           tg_status (*attempt)(tg_job *job, void *user, tgi_err *err),
                           void *user, tgi_err *err)
{
    tgi_err e = {0};
    tg_status st = attempt(job, user, &e);
    if (st != TG_OK && job->again) {
        job->again = 0;
        memset(&e, 0, sizeof e);
        st = attempt(job, user, &e);
    }
    for (int again = 0; again < 3 && tgi_job_device_shrink(job, st, &e); again++) {
        memset(&e, 0, sizeof e);
        st = attempt(job, user, &e);
    }
    return st == TG_OK ? st : tgi_job_device_answer(job, st, &e, err);
}
