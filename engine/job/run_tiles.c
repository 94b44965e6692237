/* run_tiles.c - the steps of a run into an image: a journal, which a stop leaves and the same command goes on from;
 * a writer of tiles; the receipt, then the name. */
#include "engine/job/run_tiles.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/fnv.h"
#include "engine/base/mem.h"
#include "engine/base/pool.h"
#include "engine/ends/decoded.h"
#include "engine/ends/store.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/fingerprint.h"
#include "engine/job/go_on.h"
#include "engine/job/job.h"
#include "engine/job/job_film.h"
#include "engine/job/job_log.h"
#include "engine/job/job_open.h"
#include "engine/job/job_picture.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_state.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/receipt.h"
#include "engine/job/run_state.h"
#include "engine/job/stats_file.h"
#include "engine/memory/trace.h"
#include "engine/out/commit.h"
#include "engine/out/pyramid.h"
#include "engine/out/stage_log.h"

#include <string.h>

typedef struct run {
    tgi_run all;         /* what every run has */
    tgi_source *decoded; /* in front of job->source when the plan uses scratch */
    tgi_journal *journal;
    tgi_film_tiles *film; /* the tiles become frames, whose packets the journal has; or NULL */
    tgi_tiles tiles;      /* where tiles go; zero until there is a journal */
    tgi_commit *commit;
    tgi_store *store;
    tgi_pyramid_builder *pyramid;
    tg_trace memory;     /* of the library's pool: a debug line after each step */
    tgi_run_state state; /* of a network that hands values from frame to frame */
    char *fingerprint;
    int start_over; /* nothing to go on from, or another job's and -y was given */
    int64_t found;  /* the journal had something, if only a part of a segment of a film */
    int settled;    /* all was there: only what the end leaves was to be done */
    char input_sum
        [TGI_SHA256_TEXT]; /* of the whole input, as the journal knows it; "": not yet */
    unsigned beside;       /* what frames that were read have, as the journal was told it */
    int unsure;            /* nobody knows whether the input is what the interrupted run read */
    int64_t tiles_before, repairs; /* tiles found; of them damaged, and computed again */
} run;

/* ---- Watching ---------------------------------------------------------------------------- */

static void say_memory(void *user, const char *line)
{
    tgi_ctx_log(((run *)user)->all.job->ctx, TG_LOG_DEBUG, "%s", line);
}

static void trace_begin(run *r)
{
    const tg_trace_opts o = {.size = sizeof o, .ctx = "run", .emit = say_memory, .user = r};
    (void)tgi_trace_begin(&r->memory, tgi_pool_engine(), &o);
}

/* The fraction is that of the tiles that are written, or of the work where it is done in stages. */
#define BY_TILES (-1.0)

/* Time left is told by what this run does itself: tiles that it found took it none. */
static void report(run *r, const char *phase, double fraction, double since)
{
    const double spent = tgi_seconds() - since;
    const int64_t all = r->all.job->plan.layout->n_tiles, again = r->repairs;
    const int64_t written = r->commit       ? tgi_commit_written(r->commit)
                            : r->tiles.user ? r->tiles.appended(r->tiles.user) + again
                                            : 0;
    double share = fraction;
    const int staged =
        fraction < 0 && tgi_stage_state_progress(&r->all.pass, &fraction, &share);
    if (fraction < 0) {
        fraction = (double)(written - again) / (double)tgi_max(1, all);
        share = (double)(written - r->tiles_before) /
                (double)tgi_max(1, all - r->tiles_before + again);
    }
    const tg_progress p = {.phase = phase,
                           .fraction = fraction,
                           .seconds = spent,
                           .eta_seconds = share > 0.01 ? spent / share * (1 - share) : -1,
                           .memory_bytes = tgi_tracker_current(r->all.tracker),
                           .predicted_bytes = r->all.predicted,
                           .budget_bytes = r->all.job->plan.budget,
                           .tiles_done = written - again,
                           .tiles_total = all,
                           .tiles_resumed = r->tiles_before - again,
                           .frames_done = tgi_job_frames_of(r->all.job, written - again),
                           .frames_total = tgi_job_frames(r->all.job),
                           .frames_resumed =
                               tgi_job_frames_of(r->all.job, r->tiles_before - again),
                           .stage = staged ? r->all.pass.stages.at + 1 : 0,
                           .stages = staged ? r->all.pass.stages.plan->n : 0,
                           .stage_resumed = r->all.pass.stages.state.resumed};
    tgi_tracker_update(r->all.tracker, phase, p.tiles_done);
    tgi_ctx_progress(r->all.job->ctx, &p);
}

static tg_status stopped(tgi_err *err)
{
    return tgi_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s; the same command goes on",
                          tgi_cancel_by())
               : TG_OK;
}

/* ---- Before the bands -------------------------------------------------------------------- */

/* What a run in stages writes down stands beside this very journal. */
static uint64_t job_of(const tgi_journal *j)
{
    size_t n;
    const void *says = tgi_journal_job(j, &n);
    return tgi_fnv(TGI_FNV_BEGIN, says, n);
}

/* What an interrupted run decided holds for this one too, as far as it can. */
static tg_status adopt_plan(run *r, tgi_err *err)
{
    size_t n;
    char isa[64], plan[TGI_DECIDED_TEXT];
    tgi_decided decided;
    const char *stored = tgi_journal_job(r->journal, &n);
    if (tgi_fingerprint_get(stored, n, "isa", isa, sizeof isa))
        TGI_TRY(tgi_adopt_device(r->all.job, isa, err));
    if (tgi_fingerprint_get(stored, n, "plan", plan, sizeof plan) &&
        tgi_decided_read(plan, &decided)) /* else plan afresh */
        tgi_job_adopt(r->all.job, &decided);
    tgi_job_stay_in_scratch(r->all.job, job_of(r->journal));
    return TG_OK;
}

static tg_status plan_afresh(run *r, tgi_err *err)
{
    TGI_TRY(tgi_job_plan_to_run(r->all.job, err));
    tgi_free(r->fingerprint);
    r->fingerprint = NULL;
    return tgi_fingerprint_make(r->all.job, &r->fingerprint, err);
}

/* Where the folder that it had has no room any more, in the one that was given. */
static tg_status plan_where_there_is_room(run *r, tgi_err *err)
{
    tg_job *job = r->all.job;
    const tg_status st = plan_afresh(r, err);
    if (st != TG_E_NO_SPACE || !job->set.stays)
        return st;
    tgi_job_stay_no_more(job);
    *err = (tgi_err){0};
    return plan_afresh(r, err);
}

/* Plan as the interrupted run did; TG_E_CHANGED when it was another job's. */
static tg_status plan_to_go_on(run *r, tgi_err *err)
{
    size_t n;
    TGI_TRY(tgi_may_go_on(r->journal, r->all.job->bad, r->all.job->set.output, err));
    TGI_TRY(adopt_plan(r, err));
    TGI_TRY(plan_where_there_is_room(r, err));
    const char *stored = tgi_journal_job(r->journal, &n);
    TGI_TRY(tgi_fingerprint_compare(stored, n, r->fingerprint, err));
    TGI_TRY(tgi_same_input(r->all.job->ctx, r->journal, r->all.job->source, r->fingerprint,
                           r->input_sum, &r->unsure, err));
    if (r->unsure)
        tgi_job_warn(r->all.job, TGI_UNSURE_INPUT, r->all.job->set.input);
    tgi_job_warn_of_staying(r->all.job);
    return tgi_job_stats_same(r->all.job, r->journal, err);
}

/* -y: what another job left is discarded, when the new plan stands and the run begins. */
static tg_status discard_other(run *r, const tgi_kernel_set *ours, tgi_err *err)
{
    tgi_job_warn(r->all.job,
                 "-y: %s.partial, an interrupted output of another job, is discarded",
                 r->all.job->set.output);
    *err = (tgi_err){0}; /* why it is another's is no matter any more */
    r->all.job->set.backend = ours;
    tgi_job_adopt_none(r->all.job);
    tgi_job_stay_no_more(r->all.job);
    r->start_over = 1;
    return plan_afresh(r, err);
}

static void warn_of_small_tiles(tg_job *job)
{
    char text[192];
    tgi_tile_note(job, text, sizeof text);
    if (text[0])
        tgi_job_warn(job, "tiles of the output file: %s", text);
}

static tg_status open_journal(run *r, tgi_err *err)
{
    tg_job *job = r->all.job;
    const tgi_kernel_set *ours = job->set.backend;
    if (!job->set.output)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.tif) is missing");
    TGI_TRY(tgi_journal_open(job->set.output, job->set.overwrite, NULL, &r->journal, err));
    const int fresh = tgi_journal_state(r->journal) == TGI_JOURNAL_FRESH;
    job->goes_on = !fresh;
    tg_status st = fresh ? plan_afresh(r, err) : plan_to_go_on(r, err);
    if (job->but)
        st = tgi_left_out(r->journal, job->set.output, st, err);
    else if (!fresh && st == TG_E_CHANGED && job->set.overwrite)
        st = discard_other(r, ours, err);
    job->goes_on = 0;
    if (fresh && st == TG_OK)
        warn_of_small_tiles(job);
    return st;
}

static tg_status open_scratch(run *r, tgi_err *err)
{
    tg_job *job = r->all.job;
    if (!job->plan.scratch.used)
        return TG_OK;
    return tgi_decoded_open(job->source, TGI_JOB_READERS, &job->map, job->set.scratch,
                            &r->decoded, err);
}

/* Where rows are read from. */
static tgi_source *source_of(const run *r)
{
    return r->decoded ? r->decoded : r->all.job->source;
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

tg_status tgi_run_open_writer(tgi_run *r, tgi_tiles to, tgi_commit **commit, tgi_store **store,
                              tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_plan_part *p = &job->plan;
    const tgi_commit_opts c = {.to = to,
                               .layout = p->layout,
                               .window = p->window,
                               .encoders = job->set.threads,
                               .memory = r->pass.window};
    TGI_TRY(tgi_commit_open(&c, commit, err));
    const tgi_store_opts s = {.map = &job->map,
                              .tiling = &p->choice.tiling,
                              .layout = p->layout,
                              .to = to,
                              .commit = *commit,
                              .pool = r->pass.pool,
                              .be = job->set.backend};
    TGI_TRY(tgi_store_open(&s, store, err));
    r->pass.device.store = *store;
    return TG_OK;
}

tg_status tgi_run_close_writer(tgi_commit **commit, tg_status st, tgi_err *err)
{
    tgi_err late = {0};
    if (!*commit)
        return st;
    if (st != TG_OK)
        tgi_commit_stop(*commit);
    const tg_status sc = tgi_commit_close(commit, &late);
    return st == TG_OK && sc != TG_OK ? tgi_fail(err, sc, "%s", late.text) : st;
}

/* After the statistics: from here on the journal belongs to the committer's thread. */
static tg_status open_writer(run *r, tgi_err *err)
{
    TGI_TRY(tgi_run_open_writer(&r->all, r->tiles, &r->commit, &r->store, err));
    return tgi_pyramid_open(r->all.job->plan.layout, &r->pyramid, err);
}

/* ---- The input --------------------------------------------------------------------------- */

static tg_status reread_tick(void *user, double fraction, tgi_err *err)
{
    run *r = user;
    report(r, "check", fraction, r->all.t_check);
    return stopped(err);
}

/* Who goes on with the journal knows then what all of the input was. */
static void say_input(run *r)
{
    const char *sum = tgi_input_hash_known(r->all.hash);
    if (!sum || r->input_sum[0] ||
        r->unsure) /* it may be another's than what is there was made of */
        return;
    snprintf(r->input_sum, sizeof r->input_sum, "%s", sum);
    tgi_journal_say_input(r->journal, sum);
}

/* Who goes on with the journal does not read these frames again. */
static void say_beside(run *r)
{
    const unsigned now = tgi_film_source_beside(r->all.job->source);
    if (!(now & ~r->beside))
        return;
    r->beside |= now | (unsigned)tgi_journal_beside(r->journal);
    tgi_journal_say_beside(r->journal, r->beside);
}

/* ---- Statistics -------------------------------------------------------------------------- */

static tg_status stats_tick(void *user, double fraction)
{
    run *r = user;
    report(r, "statistics", fraction, r->all.t_phase);
    return tgi_cancel_signal() ? TG_E_CANCELLED : TG_OK;
}

static int kept(tgi_run *all, tgi_stats *sets, int *given)
{
    return tgi_job_stats_kept(all->job, ((run *)all)->journal, sets, given);
}

static tg_status keep(tgi_run *all, const tgi_stats *sets, int given, tgi_err *err)
{
    return tgi_job_stats_keep(all->job, ((run *)all)->journal, sets, given, err);
}

/* ---- Bands ------------------------------------------------------------------------------- */

static tg_status run_tick(void *user, tgi_err *err)
{
    run *r = user;
    report(r, "run", BY_TILES, r->all.t_phase);
    TGI_TRY(stopped(err));
    TGI_TRY(tgi_run_input_holds(&r->all, err));
    say_input(r);
    say_beside(r);
    return TG_OK;
}

/* Rows of a cell that the file does not have yet. */
static tgi_range turn(void *user, int64_t item, const tgi_range core[3], const int64_t at[3],
                      tgi_affine out)
{
    return tgi_store_cell(((run *)user)->store, item, core, at, out);
}

/* Is a row of any cell of the item missing? */
static int wants(void *user, int64_t item)
{
    const run *r = user;
    const tgi_tiling *t = &r->all.job->plan.choice.tiling;
    int64_t in[3], out[3];
    tgi_range core[3];
    for (int64_t k = 0; k < t->cells; k++) {
        tgi_tiling_cell(t, k, core);
        tgi_tiling_shift(t, k, in, out);
        if (!tgi_range_empty(tgi_store_missing(r->store, item, core, out)))
            return 1;
    }
    return 0;
}

/* ---- From frame to frame ----------------------------------------------------------------- */

static tg_status first_frame(void *user, int64_t *first, tgi_err *err)
{
    run *r = user;
    const tg_job *job = r->all.job;
    int64_t missing = 0;
    while (missing < job->map.n_items && !wants(r, missing))
        missing++;
    TGI_TRY(tgi_run_state_begin(&r->state, &r->all.pass, missing, first, err));
    if (missing == job->map.n_items)
        *first = missing;
    else if (r->found)
        tgi_ctx_log(
            job->ctx, TG_LOG_INFO,
            *first ? "goes on with frame %lld, of which it knows what the one before handed on"
                   : "begins with frame %lld again: what the frames that are there handed on "
                     "is not known",
            (long long)*first);
    return TG_OK;
}

static tg_status frame_begins(void *user, int64_t item, tgi_err *err)
{
    run *r = user;
    return tgi_run_state_item(&r->state, &r->all.pass, r->commit, item, err);
}

/* Before anything is made of the tiles: those that were found must be what was written. What
 * is not is computed again. */
static tg_status repair(run *r, tgi_err *err)
{
    int64_t damaged;
    if (!r->found)
        return TG_OK;
    TGI_TRY(tgi_commit_flush(r->commit, err));
    r->all.t_check = tgi_seconds();
    TGI_TRY(tgi_journal_recheck(r->journal, reread_tick, r, &damaged, err));
    r->repairs = damaged && r->film
                     ? tgi_min(tgi_film_tiles_look_again(r->film), r->tiles_before)
                     : damaged;
    if (!damaged)
        return TG_OK;
    tgi_job_warn(
        r->all.job,
        "%s.partial: %lld of the %lld tiles that the interrupted run left were damaged "
        "and are computed again",
        r->all.job->set.output, (long long)damaged, (long long)r->found);
    return tgi_pass_walk(&r->all.pass, err);
}

static tg_status complete(tgi_run *all, tgi_err *err)
{
    run *r = (run *)all;
    TGI_TRY(repair(r, err));
    TGI_TRY(tgi_pyramid_build(r->pyramid, r->journal, r->commit, run_tick, r, err));
    const double bands_end = tgi_seconds();
    TGI_TRY(tgi_commit_flush(r->commit, err));
    r->all.flush_wait = tgi_seconds() - bands_end;
    r->all.write_wait = tgi_commit_wait_seconds(r->commit);
    tgi_ctx_log(r->all.job->ctx, TG_LOG_DEBUG,
                "bands end; %.2f %% of the arena's pages were written",
                100.0 * tgi_reserve_touched(r->all.pass.reserve, "arena"));
    tgi_run_state_close(&r->state);
    TGI_TRY(tgi_stage_state_remove(&r->all.pass, r->all.job->set.output, err));
    tgi_kept_sweep(r->all.job->set.scratch, r->all.job->set.output);
    tgi_kept_sweep(r->all.job->set.stays_for, r->all.job->set.output);
    tgi_trace_report(&r->memory, "bands");
    return TG_OK;
}

static tg_status begin_anew(run *r, tgi_err *err)
{
    r->input_sum[0] = 0;
    r->unsure = 0;
    TGI_TRY(tgi_job_film_begin_files(r->all.job, err));
    TGI_TRY(tgi_journal_begin(r->journal, tgi_job_stored(r->all.job), r->fingerprint,
                              strlen(r->fingerprint), err));
    return tgi_bad_tiles_begin_output(r->all.job->bad, r->all.job->set.output, err);
}

static int goes_on(const run *r)
{
    return !r->start_over && tgi_journal_state(r->journal) == TGI_JOURNAL_RESUME;
}

static tg_status go_on(run *r, tgi_err *err)
{
    const tg_job *job = r->all.job;
    tgi_bad_state bad = *tgi_journal_bad(r->journal);
    tgi_stage_state_bad(job->set.output, job_of(r->journal), &bad);
    return tgi_go_on(r->journal, tgi_job_stored(job), job->bad, &bad, err);
}

/* Where finished tiles go. */
static tg_status open_tiles(run *r, tgi_err *err)
{
    const tg_job *job = r->all.job;
    r->tiles = tgi_journal_tiles(r->journal);
    if (!job->film)
        return TG_OK;
    const tgi_film_rest rest = {.user = (void *)(uintptr_t)job, .put = tgi_job_film_rest};
    TGI_TRY(job->set.pictures
                ? tgi_film_tiles_open_files(&job->film->out, job->plan.layout, r->journal,
                                            &job->film->files, &r->film, err)
                : tgi_film_tiles_open(&job->film->out, job->plan.layout, r->journal, rest,
                                      &r->film, err));
    r->tiles = tgi_film_tiles_to(r->film);
    tgi_tracker_watch(r->all.tracker, TGI_BUSY_ENCODE, tgi_film_tiles_busy(r->film));
    return TG_OK;
}

static tg_status begin_journal(run *r, tgi_err *err)
{
    tg_status st = TG_E_CHANGED;
    tgi_err why = {0};
    if (tgi_journal_state(r->journal) != TGI_JOURNAL_RESUME)
        r->start_over = 1;
    if (!r->start_over)
        st = go_on(r, &why);
    if (st == TG_E_CHANGED && (r->start_over || r->all.job->set.overwrite))
        st = begin_anew(r, err);
    else if (st != TG_OK)
        return tgi_fail(err, st, "%s", why.text);
    if (r->all.job->bad)
        tgi_journal_watch_bad(r->journal, r->all.job->bad);
    if (st != TG_OK)
        return st;
    TGI_TRY(open_tiles(r, err));
    r->found = tgi_journal_appended(r->journal);
    r->tiles_before = r->tiles.appended(r->tiles.user);
    tgi_journal_introduce(r->journal, r->all.job->set.input, r->all.job->set.model,
                          r->all.job->film ? r->all.job->film->out.coding.segment : 0);
    return TG_OK;
}

/* The tiles of the image are there, so that nothing is computed but what turns out to be damaged:
 * it takes no room for values that pass between stages. */
static int has_all(const run *r)
{
    const tgi_sink_layout *l = tgi_job_stored(r->all.job);
    return goes_on(r) && tgi_journal_committed(r->journal) >=
                             (l->n_levels > 1 ? l->level_of[1].first : l->n_tiles);
}

static tg_status room(tgi_run *all, tgi_err *err)
{
    all->of = all->job->source; /* by now: a plan may have opened it anew, to hold less */
    return has_all((run *)all) ? TG_OK : tgi_job_check_disk(all->job, err);
}

/* Values between stages that are found no more would stay for ever. */
static void warn_of_lost_values(tg_job *job)
{
    char path[TGI_KEPT_PATH];
    if (!tgi_kept_lost(job->set.scratch, job->set.output, path, sizeof path))
        return;
    if (strchr(path, '/'))
        tgi_job_warn(
            job,
            "%s: values between stages of a run whose output had another path: they are "
            "of no use if that output was moved; remove them then",
            path);
    else
        tgi_job_warn(
            job,
            "%s%s is damaged: if the stopped run had a --scratch folder, %s in it is of "
            "no use any more and stays; remove it",
            job->set.output, TGI_STAGES_END, path);
}

static tg_status open_ends(tgi_run *all, tgi_err *err)
{
    run *r = (run *)all;
    tgi_pass_stages *stages = &all->pass.stages;
    tgi_trace_report(&r->memory, "reserve");
    TGI_TRY(open_scratch(r, err));
    warn_of_lost_values(all->job);
    TGI_TRY(begin_journal(r, err));
    all->part = r->tiles_before != 0;
    stages->idle = r->tiles_before && has_all(r);
    stages->output = tgi_job_hands_on(all->job) ? NULL : all->job->set.output;
    stages->job = job_of(r->journal);
    r->state =
        (tgi_run_state){.output = all->job->set.output,
                        .job = stages->job,
                        .segment = all->job->film ? all->job->film->out.coding.segment : 1};
    all->source = source_of(r);
    all->hashing.buffer = all->pass.receipt;
    all->hashing.bytes = TGI_INPUT_HASH_BYTES;
    all->hashing.before = r->input_sum;
    return TG_OK;
}

static void ahead_tick(void *user, double fraction)
{
    run *r = user;
    report(r, "look ahead", fraction, r->all.t_phase);
}

static tg_status ready(tgi_run *all, tgi_err *err)
{
    run *r = (run *)all;
    tgi_inpaint_watch(all->job->source, ahead_tick, r);
    TGI_TRY(open_writer(r, err));
    tgi_trace_report(&r->memory, "open");
    tgi_ctx_log(all->job->ctx, TG_LOG_DEBUG,
                "bands begin"); /* nothing is allocated until they end */
    return TG_OK;
}

/* ---- After ------------------------------------------------------------------------------- */

static void stop(tgi_run *all)
{
    run *r = (run *)all;
    tgi_err ignored = {0};
    tgi_inpaint_watch(all->job->source, NULL, NULL);
    tgi_source_close(&r->decoded);
    tgi_run_state_close(&r->state);
    tgi_store_close(&r->store);
    tgi_pyramid_close(&r->pyramid);
    if (r->commit)
        tgi_commit_close(&r->commit, &ignored);
    r->tiles = (tgi_tiles){0};
    tgi_film_tiles_close(&r->film);
    tgi_journal_close(&r->journal);
    if (all->job->bad)
        tgi_bad_tiles_end(all->job->bad);
}

static void close_ends(tgi_run *all)
{
    run *r = (run *)all;
    tgi_free(r->fingerprint);
    tgi_trace_end(&r->memory);
}

static double pixels_of(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    return (double)m->out_extent[0] * (double)m->out_extent[1] * (double)m->out_extent[2] *
           (double)m->n_items;
}

static void result(const tgi_run *all, tg_run_result *res)
{
    const run *r = (const run *)all;
    res->tiles = r->store ? tgi_store_tiles_done(r->store) : 0;
    res->tiles_resumed = r->tiles_before - r->repairs;
    res->frames = tgi_job_frames_of(all->job, res->tiles);
    res->frames_resumed = tgi_job_frames_of(all->job, res->tiles_resumed);
    res->tiles_begun = r->journal ? tgi_journal_begun(r->journal) : 0;
    res->stages = all->pass.stages.plan ? all->pass.stages.plan->n : 0;
    res->stages_resumed = all->pass.stages.before;
    res->stages_again = all->pass.stages.again;
    res->bad_regions =
        r->settled ? tgi_journal_bad(r->journal)->regions : tgi_bad_tiles_count(all->job->bad);
    res->nonfinite = r->store ? tgi_store_nonfinite(r->store) : 0;
}

static tg_status finish_tick(void *user, double fraction, tgi_err *err)
{
    run *r = user;
    report(r, "finish", fraction, r->all.t_phase);
    return stopped(err);
}

static void join_tick(void *user, double fraction)
{
    run *r = user;
    report(r, "join", fraction, r->all.t_check);
}

/* The output's checksum for the receipt; an output that is a picture is made for it. */
static tg_status check_files(run *r, tgi_receipt_files *files, tgi_err *err)
{
    tgi_image_meta meta;
    tgi_job_meta(r->all.job, &meta);
    r->all.t_check = tgi_seconds();
    TGI_TRY(tgi_job_film_join(r->all.job, r->journal, join_tick, r, err));
    TGI_TRY(tgi_picture_make(r->all.job->set.writer, r->all.job->plan.layout, &meta, r->journal,
                             err));
    return tgi_journal_output_check(r->journal, &files->output_crc32c, &files->output_bytes,
                                    err);
}

/* A few clipped values are noise around black; many mean a type or a scale that does not fit.
 */
void tgi_warn_of_clipped(tg_job *job, const tgi_store *store)
{
    const double share = store ? tgi_store_clipped(store) : 0;
    if (share > TGI_CLIPPED_MANY)
        tgi_job_warn(
            job,
            "%.0f %% of the values do not fit %s and were clipped: another --dtype, or "
            "--normalize, may be meant",
            100 * share, tgi_dtype_name(job->set.dtype));
}

/* The receipt comes before the output gets its name: whoever sees OUT finds it, crash or not;
 * the list of what was filled, and the picture of its memory, too.
 */
static tg_status finish(tgi_run *all, const tgi_input_digest *input, tg_run_result *res,
                        tgi_err *err)
{
    run *r = (run *)all;
    tg_job *job = all->job;
    tgi_receipt_files files = {.input = *input};
    TGI_TRY(check_files(r, &files, err));
    report(r, "finish", 1, all->t_phase);
    tgi_run_result(all, res);
    tgi_run_warn_of_nonfinite(job, res->nonfinite,
                              tgi_dtype_is_float(job->set.dtype)
                                  ? ""
                                  : "; NaN is written as 0, infinity as the end of the range");
    tgi_warn_of_clipped(job, r->store);
    tgi_job_warn_of_surplus(job);
    res->measured_peak_bytes = tgi_job_tracker_peak(all->tracker);
    TGI_TRY(tgi_receipt_write(job, res, all->pass.sets, r->fingerprint, &files, err));
    if (job->bad)
        TGI_TRY(tgi_bad_tiles_write(job->bad, job->set.input, job->source, err));
    TGI_TRY(tgi_journal_seal(r->journal, err));
    res->measured_peak_bytes = tgi_job_tracker_close(job, &all->tracker); /* and the picture */
    TGI_TRY(tgi_journal_name(r->journal, err));
    all->finished = 1;
    return TG_OK;
}

/* Of a run that failed: what of it nobody should go on with. What was stopped otherwise stays,
 * whatever became of the input: the fingerprint compares that, and knows more than a time. */
static void leave(tgi_run *all, tg_status st, const tgi_err *err)
{
    run *r = (run *)all;
    tg_job *job = all->job;
    if (st == TG_E_CHANGED && job->set.overwrite && tgi_journal_is_another(r->journal)) {
        tgi_job_warn(job, "-y: %s.partial is discarded: %.160s", job->set.output, err->text);
        tgi_journal_forget(r->journal);
        job->again = 1;
    } else if (all->input_changed) {
        tgi_journal_forget(r->journal);
    } else if (st != TG_E_FORMAT) {
        return;
    } else { /* rows before the one that told may have been wrong, too, and are in values by now */
        (void)tgi_stage_log_discard(job->set.output, NULL);
        if (!tgi_journal_abandon(r->journal))
            return;
    }
    if (job->bad)
        tgi_bad_tiles_clear(job->bad);
}

/* Write what is ready; then the file is finished, or there is a journal that the next run goes on
 * from. */
static tg_status settle(tgi_run *all, tg_status st, tgi_err *err)
{
    st = tgi_run_close_writer(&((run *)all)->commit, st, err);
    all->t_phase = tgi_seconds();
    all->check_tick = finish_tick;
    return st;
}

/* ---- Begin ------------------------------------------------------------------------------- */

static tg_status begin(tgi_run *all, int *done, tgi_err *err)
{
    run *r = (run *)all;
    tg_job *job = all->job;
    all->end = (tgi_pass_end){.user = r,
                              .store = store_rows,
                              .stop = check_stop,
                              .tick = run_tick,
                              .turn = turn,
                              .wants = wants,
                              .first = first_frame,
                              .begins = frame_begins};
    all->check_tick = reread_tick;
    all->stats_tick = stats_tick;
    trace_begin(r);
    TGI_TRY(open_journal(r, err));
    if (!r->start_over && tgi_journal_state(r->journal) == TGI_JOURNAL_FINISHED) {
        *done = r->settled = 1;
        tgi_job_warn_of_no_picture(job);
        return tgi_settle(r->journal, job->bad, job->set.input, job->source, job->set.output,
                          &all->finished, err);
    }
    all->goes_on = goes_on(r);
    tgi_mem_trim(); /* what others freed in this process is not the run's */
    /* the log is the first file that another run would find */
    return tgi_journal_claim(r->journal, tgi_job_stored(job), err);
}

const tgi_run_steps tgi_tile_steps = {.bytes = sizeof(run),
                                      .files = tgi_source_held,
                                      .begin = begin,
                                      .room = room,
                                      .open = open_ends,
                                      .kept = kept,
                                      .keep = keep,
                                      .ready = ready,
                                      .complete = complete,
                                      .settle = settle,
                                      .finish = finish,
                                      .leave = leave,
                                      .result = result,
                                      .stop = stop,
                                      .close = close_ends,
                                      .pixels = pixels_of};
