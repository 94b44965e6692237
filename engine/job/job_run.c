/* job_run.c - obey the plan: journal, reservation, threads, statistics, bands, finish.
 *
 * Everything that takes memory is opened before the first band; between the first and the last
 * band our code allocates nothing. `run` owns it all and closes in reverse order. */
#include "engine/job/job_run.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/pool.h"
#include "engine/ends/decoded.h"
#include "engine/ends/input_hash.h"
#include "engine/ends/store.h"
#include "engine/job/fingerprint.h"
#include "engine/job/go_on.h"
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_log.h"
#include "engine/job/job_open.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_plan.h"
#include "engine/job/pass.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/plan_seconds.h"
#include "engine/job/receipt.h"
#include "engine/job/stats_file.h"
#include "engine/memory/monitor.h"
#include "engine/memory/trace.h"
#include "engine/out/commit.h"
#include "engine/out/pyramid.h"

#include <stdio.h>
#include <string.h>

typedef struct run {
    tg_job *job;
    tgi_pass pass;
    tgi_source *decoded; /* in front of job->source when the plan uses scratch */
    tgi_journal *journal;
    tgi_commit *commit;
    tgi_store *store;
    tgi_pyramid_builder *pyramid;
    tg_tracker *tracker;
    tg_trace memory; /* of the library's pool: a debug line after each step */
    char *fingerprint;
    int finished;   /* the output has its name */
    int start_over; /* nothing to go on from, or another job's and -y was given */
    tgi_input_hash *hash;
    int input_changed;             /* what was made of it is worth nothing */
    int64_t tiles_before, repairs; /* tiles found; of them damaged, and computed again */
    size_t predicted;
    double t0, t_phase, t_check;
    double bands_seconds;          /* all of them, to the last tile that is written */
    double write_wait, flush_wait; /* flush_wait: of write_wait, after the bands */
    double processor_seconds;
} run;

/* ---- Watching ---------------------------------------------------------------------------- */

static void say_memory(void *user, const char *line)
{
    tgi_ctx_log(((run *)user)->job->ctx, TG_LOG_DEBUG, "%s", line);
}

static void trace_begin(run *r)
{
    const tg_trace_opts o = {.size = sizeof o, .ctx = "run", .emit = say_memory, .user = r};
    (void)tgi_trace_begin(&r->memory, tgi_pool_engine(), &o);
}

#define BY_TILES (-1.0) /* the fraction is that of the tiles that are written */

/* Time left is told by what this run does itself: tiles that it found took it none. */
static void report(run *r, const char *phase, double fraction, double since)
{
    const double spent = tgi_seconds() - since;
    const int64_t all = r->job->plan.layout->n_tiles, again = r->repairs;
    const int64_t written = r->commit    ? tgi_commit_written(r->commit)
                            : r->journal ? tgi_journal_appended(r->journal) + again
                                         : 0;
    double share = fraction;
    if (fraction < 0) {
        fraction = (double)(written - again) / (double)tgi_max(1, all);
        share = (double)(written - r->tiles_before) /
                (double)tgi_max(1, all - r->tiles_before + again);
    }
    const tg_progress p = {.phase = phase,
                           .fraction = fraction,
                           .seconds = spent,
                           .eta_seconds = share > 0.01 ? spent / share * (1 - share) : -1,
                           .memory_bytes = tgi_tracker_current(r->tracker),
                           .predicted_bytes = r->predicted,
                           .budget_bytes = r->job->plan.budget,
                           .tiles_done = written - again,
                           .tiles_total = all,
                           .tiles_resumed = r->tiles_before - again};
    tgi_tracker_update(r->tracker, phase, p.tiles_done);
    tgi_ctx_progress(r->job->ctx, &p);
}

static tg_status stopped(tgi_err *err)
{
    return tgi_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s; the same command goes on",
                          tgi_cancel_by())
               : TG_OK;
}

/* ---- Before the bands -------------------------------------------------------------------- */

/* What an interrupted run decided holds for this one too, as far as it can. */
static tg_status adopt_plan(run *r, tgi_err *err)
{
    size_t n;
    char isa[64], plan[TGI_DECIDED_TEXT];
    tgi_decided decided;
    const char *stored = tgi_journal_job(r->journal, &n);
    if (tgi_fingerprint_get(stored, n, "isa", isa, sizeof isa))
        TGI_TRY(tgi_adopt_device(r->job, isa, err));
    if (tgi_fingerprint_get(stored, n, "plan", plan, sizeof plan) &&
        tgi_decided_read(plan, &decided)) /* else plan afresh */
        tgi_job_adopt(r->job, &decided);
    return TG_OK;
}

static tg_status plan_afresh(run *r, tgi_err *err)
{
    TGI_TRY(tgi_job_plan_output(r->job, err));
    tgi_free(r->fingerprint);
    r->fingerprint = NULL;
    return tgi_fingerprint_make(r->job, &r->fingerprint, err);
}

/* Plan as the interrupted run did; TG_E_CHANGED when it was another job's. */
static tg_status plan_to_go_on(run *r, tgi_err *err)
{
    size_t n;
    TGI_TRY(tgi_may_go_on(r->journal, r->job->bad, r->job->set.output, err));
    TGI_TRY(adopt_plan(r, err));
    TGI_TRY(plan_afresh(r, err));
    const char *stored = tgi_journal_job(r->journal, &n);
    TGI_TRY(tgi_fingerprint_compare(stored, n, r->fingerprint, err));
    return tgi_job_stats_same(r->job, r->journal, err);
}

/* -y: what another job left is discarded, when the new plan stands and the run begins. */
static tg_status discard_other(run *r, const tgi_kernel_set *ours, tgi_err *err)
{
    tgi_job_warn(r->job, "-y: %s.partial, an interrupted output of another job, is discarded",
                 r->job->set.output);
    *err = (tgi_err){0}; /* why it is another's is no matter any more */
    r->job->set.backend = ours;
    tgi_job_adopt_none(r->job);
    r->start_over = 1;
    return plan_afresh(r, err);
}

static tg_status open_journal(run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_kernel_set *ours = job->set.backend;
    if (!job->set.output)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.tif) is missing");
    TGI_TRY(tgi_journal_open(job->set.output, job->set.overwrite, NULL, &r->journal, err));
    const int fresh = tgi_journal_state(r->journal) == TGI_JOURNAL_FRESH;
    const tg_status st = fresh ? plan_afresh(r, err) : plan_to_go_on(r, err);
    if (job->but)
        return tgi_left_out(r->journal, job->set.output, st, err);
    if (fresh)
        return st;
    return st == TG_E_CHANGED && job->set.overwrite ? discard_other(r, ours, err) : st;
}

static tg_status open_scratch(run *r, tgi_err *err)
{
    tg_job *job = r->job;
    if (!job->plan.scratch.used)
        return TG_OK;
    return tgi_decoded_open(job->source, TGI_JOB_READERS, &job->map, job->set.scratch,
                            &r->decoded, err);
}

/* Where rows are read from. */
static tgi_source *source_of(const run *r)
{
    return r->decoded ? r->decoded : r->job->source;
}

static tg_status store_rows(void *user, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    return tgi_store_rows(((run *)user)->store, o, view, box, err);
}

static tg_status check_stop(void *user, tgi_err *err)
{
    (void)user;
    return stopped(err);
}

/* After the statistics: from here on the journal belongs to the committer's thread. */
static tg_status open_writer(run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_plan_part *p = &job->plan;
    const tgi_commit_opts commit = {.journal = r->journal,
                                    .layout = p->layout,
                                    .window = p->window,
                                    .encoders = job->set.threads,
                                    .memory = r->pass.window};
    TGI_TRY(tgi_commit_open(&commit, &r->commit, err));
    const tgi_store_opts store = {.map = &job->map,
                                  .tiling = &p->choice.tiling,
                                  .layout = p->layout,
                                  .journal = r->journal,
                                  .commit = r->commit,
                                  .pool = r->pass.pool,
                                  .be = job->set.backend};
    TGI_TRY(tgi_store_open(&store, &r->store, err));
    r->pass.device.store = r->store;
    return tgi_pyramid_open(p->layout, &r->pyramid, err);
}

/* ---- The input ----------------------------------------------------------------------------
 */

static tg_status reread_tick(void *user, double fraction, tgi_err *err)
{
    run *r = user;
    report(r, "check", fraction, r->t_check);
    return stopped(err);
}

/* Before what was read counts. */
static tg_status input_holds(run *r, tgi_err *err)
{
    r->t_check = tgi_seconds();
    const tg_status st = tgi_input_hash_check(r->hash, reread_tick, r, err);
    r->input_changed |= st == TG_E_FORMAT;
    return st;
}

/* ---- Statistics -------------------------------------------------------------------------- */

static tg_status stats_tick(void *user, double fraction)
{
    run *r = user;
    report(r, "statistics", fraction, r->t_phase);
    return tgi_cancel_signal() ? TG_E_CANCELLED : TG_OK;
}

static tg_status collect(run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_stats_args a = {.source = source_of(r),
                              .ops = source_of(r)->ops,
                              .map = &job->map,
                              .norm = &job->set.normalize,
                              .scratch = r->pass.arena,
                              .rows = (char *)r->pass.arena + TGI_STATS_SCRATCH,
                              .rows_bytes = job->plan.bytes.arena - TGI_STATS_SCRATCH,
                              .tick = stats_tick,
                              .user = r};
    r->t_phase = tgi_seconds();
    const tg_status st = tgi_stats_collect(&a, r->pass.sets, err);
    if (st == TG_E_CANCELLED)
        return stopped(err);
    return st;
}

static tg_status get_statistics(run *r, tgi_err *err)
{
    tg_job *job = r->job;
    int found = 0;
    if (!tgi_normalize_needs_stats(&job->set.normalize))
        return TG_OK;
    if (tgi_job_stats_kept(job, r->journal,
                           r->pass.sets)) /* new is the wish for a file of them */
        return tgi_job_stats_write(job, r->pass.sets, err);
    TGI_TRY(tgi_job_stats_read(job, r->pass.sets, &found, err));
    if (!found) {
        TGI_TRY(collect(r, err));
        TGI_TRY(input_holds(r, err));
        TGI_TRY(tgi_job_stats_write(job, r->pass.sets, err));
    }
    return tgi_job_stats_keep(job, r->journal, r->pass.sets, found && !job->stats_made, err);
}

/* ---- Bands ------------------------------------------------------------------------------- */

static tg_status run_tick(void *user, tgi_err *err)
{
    run *r = user;
    report(r, "run", BY_TILES, r->t_phase);
    TGI_TRY(stopped(err));
    return input_holds(r, err);
}

/* Rows of a cell that the file does not have yet. */
static tgi_range turn(void *user, int64_t item, const tgi_range core[3], const int64_t at[3],
                      tgi_affine out)
{
    return tgi_store_cell(((run *)user)->store, item, core, at, out);
}

/* Before anything is made of the tiles: those that were found must be what was written. What
 * is not is computed again. */
static tg_status repair(run *r, tgi_err *err)
{
    int64_t damaged;
    if (!r->tiles_before)
        return TG_OK;
    TGI_TRY(tgi_commit_flush(r->commit, err));
    r->t_check = tgi_seconds();
    TGI_TRY(tgi_journal_recheck(r->journal, reread_tick, r, &damaged, err));
    r->repairs = damaged;
    if (!damaged)
        return TG_OK;
    tgi_job_warn(
        r->job,
        "%s.partial: %lld of the %lld tiles that the interrupted run left were damaged "
        "and are computed again",
        r->job->set.output, (long long)damaged, (long long)r->tiles_before);
    return tgi_pass_walk(&r->pass, err);
}

static tg_status run_items(run *r, tgi_err *err)
{
    const tg_job *job = r->job;
    r->t_phase = tgi_seconds();
    r->processor_seconds = -tgi_processor_seconds();
    tgi_ctx_log(job->ctx, TG_LOG_DEBUG,
                "bands begin"); /* nothing is allocated until they end */
    TGI_TRY(tgi_pass_walk(&r->pass, err));
    TGI_TRY(repair(r, err));
    TGI_TRY(tgi_pyramid_build(r->pyramid, r->journal, r->commit, run_tick, r, err));
    const double bands_end = tgi_seconds();
    TGI_TRY(tgi_commit_flush(r->commit, err));
    r->flush_wait = tgi_seconds() - bands_end;
    r->write_wait = tgi_commit_wait_seconds(r->commit);
    r->bands_seconds = tgi_seconds() - r->t_phase;
    r->processor_seconds += tgi_processor_seconds();
    tgi_ctx_log(job->ctx, TG_LOG_DEBUG, "bands end; %.2f %% of the arena's pages were written",
                100.0 * tgi_reserve_touched(r->pass.reserve, "arena"));
    return TG_OK;
}

static tg_status begin_anew(run *r, tgi_err *err)
{
    TGI_TRY(tgi_journal_begin(r->journal, r->job->plan.layout, r->fingerprint,
                              strlen(r->fingerprint), err));
    return tgi_bad_tiles_begin_output(r->job->bad, r->job->set.output, err);
}

static tg_status begin_journal(run *r, tgi_err *err)
{
    tg_status st = TG_E_CHANGED;
    tgi_err why = {0};
    if (tgi_journal_state(r->journal) != TGI_JOURNAL_RESUME)
        r->start_over = 1;
    if (!r->start_over)
        st = tgi_go_on(r->journal, r->job->plan.layout, r->job->bad, &why);
    if (st == TG_E_CHANGED && (r->start_over || r->job->set.overwrite))
        st = begin_anew(r, err);
    else if (st != TG_OK)
        return tgi_fail(err, st, "%s", why.text);
    if (r->job->bad)
        tgi_journal_watch_bad(r->journal, r->job->bad);
    r->tiles_before = st == TG_OK ? tgi_journal_appended(r->journal) : 0;
    return st;
}

static tg_status work(run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_pass_end end = {
        .user = r, .store = store_rows, .stop = check_stop, .tick = run_tick, .turn = turn};
    TGI_TRY(tgi_job_check_disk(job, err));
    TGI_TRY(tgi_pass_reserve(&r->pass, job,
                             err)); /* before the journal: a refusal leaves nothing behind */
    tgi_trace_report(&r->memory, "reserve");
    TGI_TRY(open_scratch(r, err));
    TGI_TRY(begin_journal(r, err));
    TGI_TRY(tgi_pass_open(&r->pass, source_of(r), &end, err));
    if (r->pass.exec && !r->tiles_before) /* of a part nothing was said */
        tgi_job_learn_begin(job, r->pass.exec);
    TGI_TRY(tgi_input_hash_open(tgi_source_held, job->source, r->pass.receipt,
                                TGI_INPUT_HASH_BYTES, &r->hash, err));
    r->predicted = tgi_pass_peak(&r->pass);
    tgi_tracker_expect(r->tracker, r->predicted, job->plan.budget);
    TGI_TRY(get_statistics(r, err));
    TGI_TRY(open_writer(r, err));
    tgi_trace_report(&r->memory, "open");
    TGI_TRY(run_items(r, err));
    tgi_trace_report(&r->memory, "bands");
    return TG_OK;
}

/* ---- After ------------------------------------------------------------------------------- */

static void close_run(run *r)
{
    tgi_err ignored = {0};
    tgi_pass_stop(&r->pass);
    tgi_source_close(&r->decoded);
    tgi_store_close(&r->store);
    tgi_pyramid_close(&r->pyramid);
    if (r->commit)
        tgi_commit_close(&r->commit, &ignored);
    tgi_journal_close(&r->journal);
    if (r->job->bad)
        tgi_bad_tiles_end(r->job->bad);
    tgi_input_hash_close(&r->hash);
    tgi_pass_close(&r->pass); /* writers worked in its memory */
    tgi_free(r->fingerprint);
    tgi_trace_end(&r->memory);
}

static void fill_times(const run *r, tg_run_result *res)
{
    tgi_pass_times(&r->pass, r->write_wait - r->flush_wait, res);
    res->bands_seconds = r->bands_seconds;
    res->processor_seconds = r->bands_seconds > 0 ? r->processor_seconds : 0;
    res->stall_write_seconds = r->write_wait;
}

static void fill_result(const run *r, tg_run_result *res)
{
    const tg_job *job = r->job;
    const tgi_mapping *m = &job->map;
    const double pixels = (double)m->out_extent[0] * (double)m->out_extent[1] *
                          (double)m->out_extent[2] * (double)m->n_items;
    res->predicted_peak_bytes = r->predicted;
    res->budget_bytes = job->plan.budget;
    res->seconds = tgi_seconds() - r->t0;
    fill_times(r, res);
    res->megapixels_per_second = res->seconds > 0 ? pixels / 1e6 / res->seconds : 0;
    res->tiles = r->store ? tgi_store_tiles_done(r->store) : 0;
    res->tiles_resumed = r->tiles_before - r->repairs;
    res->tiles_begun = r->journal ? tgi_journal_begun(r->journal) : 0;
    res->recomputed_fraction = tgi_tiling_recomputed(&job->plan.choice.tiling);
    res->output = job->set.output;
    if (r->pass.device.exec)
        tgi_job_device_result(job, res);
    res->bad_regions = tgi_bad_tiles_count(job->bad);
    res->nonfinite = r->store ? tgi_store_nonfinite(r->store) : 0;
}

static tg_status finish_tick(void *user, double fraction, tgi_err *err)
{
    run *r = user;
    report(r, "finish", fraction, r->t_phase);
    return stopped(err);
}

/* Checksums of both files for the receipt; an output that is a picture is made for it. */
static tg_status check_files(run *r, tgi_receipt_files *files, tgi_err *err)
{
    const tg_status st = tgi_input_hash_finish(r->hash, finish_tick, r, &files->input, err);
    r->input_changed |= st == TG_E_FORMAT;
    TGI_TRY(st);
    if (files->input.trouble[0])
        tgi_job_warn(r->job, "%s: %s", files->input.file, files->input.trouble);
    tgi_image_meta meta;
    tgi_mapping_meta(&r->job->map, r->job->info, &meta);
    TGI_TRY(tgi_picture_make(r->job->set.writer, r->job->plan.layout, &meta, r->journal, err));
    return tgi_journal_output_check(r->journal, &files->output_crc32c, &files->output_bytes,
                                    err);
}

/* What came out is not what a network should give: say so while there is still a receipt. */
static void warn_of_nonfinite(run *r)
{
    const int64_t n = r->store ? tgi_store_nonfinite(r->store) : 0;
    if (n)
        tgi_job_warn(r->job, "%lld values that the network gave are NaN or infinite%s",
                     (long long)n,
                     tgi_dtype_is_float(r->job->set.dtype) ? ""
                                                           : "; NaN is written as 0, infinity "
                                                             "as the end of the range");
}

/* A few clipped values are noise around black; many mean a type or a scale that does not fit.
 */
static void warn_of_clipped(run *r)
{
    const double share = r->store ? tgi_store_clipped(r->store) : 0;
    if (share > TGI_CLIPPED_MANY)
        tgi_job_warn(
            r->job,
            "%.0f %% of the values do not fit %s and were clipped: another --dtype, or "
            "--normalize, may be meant",
            100 * share, tgi_dtype_name(r->job->set.dtype));
}

/* The receipt comes before the output gets its name: whoever sees OUT finds it, crash or not;
 * the list of what was filled, and the picture of its memory, too.
 */
static tg_status finish(run *r, tg_run_result *res, tgi_err *err)
{
    tgi_receipt_files files = {0};
    r->t_phase = tgi_seconds();
    TGI_TRY(check_files(r, &files, err));
    report(r, "finish", 1, r->t_phase);
    warn_of_nonfinite(r);
    warn_of_clipped(r);
    tgi_job_warn_of_surplus(r->job);
    fill_result(r, res);
    res->measured_peak_bytes = tgi_job_tracker_peak(r->tracker);
    TGI_TRY(tgi_receipt_write(r->job, res, r->pass.sets, r->fingerprint, &files, err));
    if (r->job->bad)
        TGI_TRY(tgi_bad_tiles_write(r->job->bad, r->job->set.input, err));
    TGI_TRY(tgi_journal_seal(r->journal, err));
    res->measured_peak_bytes = tgi_job_tracker_close(r->job, &r->tracker); /* and the picture */
    TGI_TRY(tgi_journal_name(r->journal, err));
    r->finished = 1;
    return tgi_bad_tiles_verdict(res->bad_regions, r->job->set.input, r->job->set.output, err);
}

/* Of a run that failed: what of it nobody should go on with. What was stopped otherwise stays,
 * whatever became of the input: the fingerprint compares that, and knows more than a time. */
static void leave(run *r, tg_status st, tgi_err *err)
{
    tg_job *job = r->job;
    if (!r->journal || r->finished)
        return;
    if (st == TG_E_FORMAT && !r->input_changed) {
        tgi_err none = {0};
        (void)tgi_input_blame(tgi_source_held, job->source, st, err);
        r->input_changed = tgi_input_unchanged(tgi_source_held, job->source, &none) != TG_OK;
    }
    if (st == TG_E_CHANGED && job->set.overwrite && tgi_journal_is_another(r->journal)) {
        tgi_job_warn(job, "-y: %s.partial is discarded: %.160s", job->set.output, err->text);
        tgi_journal_forget(r->journal);
        job->again = 1;
    } else if (r->input_changed) {
        tgi_journal_forget(r->journal);
        tgi_job_stats_forget(job);
    } else if (st != TG_E_FORMAT || !tgi_journal_abandon(r->journal))
        return;
    if (job->bad)
        tgi_bad_tiles_clear(job->bad);
}

/* Write what is ready, then finish the file or leave a journal that the next run goes on from.
 */
static tg_status conclude(run *r, tg_status st, tg_run_result *res, tgi_err *err)
{
    tgi_err late = {0};
    if (r->commit) {
        if (st != TG_OK)
            tgi_commit_stop(r->commit);
        const tg_status sc = tgi_commit_close(&r->commit, &late);
        if (st == TG_OK && sc != TG_OK)
            st = tgi_fail(err, sc, "%s", late.text);
    }
    if (st == TG_OK)
        st = finish(r, res, err);
    if (st != TG_OK)
        leave(r, st, err);
    return st;
}

static int goes_on(const run *r)
{
    return !r->start_over && tgi_journal_state(r->journal) == TGI_JOURNAL_RESUME;
}

/* Begin, or go on with, or find finished. */
static tg_status attempt(tg_job *job, tg_run_result *res, int *finished, tgi_err *err)
{
    run r = {.job = job, .t0 = tgi_seconds()};
    trace_begin(&r);
    tg_status st = open_journal(&r, err);
    if (st == TG_OK && !r.start_over && tgi_journal_state(r.journal) == TGI_JOURNAL_FINISHED) {
        st = tgi_settle(r.journal, job->bad, job->set.input, job->set.output, &r.finished, err);
        fill_result(&r, res);
        res->bad_regions = tgi_journal_bad(r.journal)->regions;
        close_run(&r);
        *finished = r.finished;
        return st;
    }
    tgi_mem_trim();  /* what others freed in this process is not the run's */
    if (st == TG_OK) /* the log is the first file that another run would find */
        st = tgi_journal_claim(r.journal, job->plan.layout, err);
    if (st == TG_OK)
        st = tgi_job_tracker_open(job, goes_on(&r), &r.tracker, err);
    if (st == TG_OK)
        st = conclude(&r, work(&r, err), res, err);
    fill_result(&r, res);
    if (r.tracker)
        res->measured_peak_bytes = tgi_job_tracker_close(job, &r.tracker);
    if (st == TG_OK && r.pass.exec && !r.tiles_before)
        tgi_job_learn_end(job, res->seconds);
    close_run(&r);
    *finished = st == TG_OK || r.finished;
    return st;
}

tg_status tgi_job_run_tiles(tg_job *job, tg_run_result *out, tgi_err *err)
{
    tg_run_result res = {.size = sizeof res};
    int finished = 0;
    TGI_TRY(tgi_job_sides_look(job, err)); /* before there is a journal of ours */
    TGI_TRY(tgi_job_stats_look(job, err));
    job->running = 1;
    tgi_err e = {0};
    tg_status st = attempt(job, &res, &finished, &e);
    if (st != TG_OK && job->again) {
        job->again = 0;
        memset(&e, 0, sizeof e);
        st = attempt(job, &res, &finished, &e);
    }
    for (int again = 0; again < 3 && tgi_job_device_shrink(job, st, &e); again++) {
        memset(&e, 0, sizeof e);
        st = attempt(job, &res, &finished, &e);
    }
    if (st != TG_OK) {
        st = tgi_job_device_answer(job, st, &e, err);
        tgi_job_sides_drop(job, st);
    }
    if (finished && out)
        *out = res;
    return st;
}
