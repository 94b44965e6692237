/* run_pipe.c - see run_pipe.h. */
#include "engine/job/run_pipe.h"

#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/ends/store.h"
#include "engine/job/ends.h"
#include "engine/job/fingerprint.h"
#include "engine/job/job_film.h"
#include "engine/job/job_log.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/receipt.h"
#include "engine/job/run_tiles.h"
#include "engine/out/commit.h"
#include "engine/out/journal_check.h"
#include "engine/out/pipe.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct run {
    tgi_run all;
    tgi_film_tiles *film;
    tgi_tiles tiles;
    tgi_commit *commit;
    tgi_store *store;
    int fd;               /* opened: fd - 1 */
    tgi_film_spool spool; /* or the film is a file, whose packets these are */
    tgi_part made;        /* of them */
    int spooled;
} run;

/* ---- Watching ---------------------------------------------------------------------------- */

/* Of a film that comes through a pipe nobody knows how many frames there will be. */
static void report(run *r)
{
    const tg_job *job = r->all.job;
    const int endless = tgi_film_source_is_stream(job->source);
    const int64_t all = endless ? 0 : job->plan.layout->n_tiles,
                  done = r->commit ? tgi_commit_written(r->commit) : 0;
    const double spent = tgi_seconds() - r->all.t_phase;
    const double share = all ? (double)done / (double)all : 0;
    const tg_progress p = {.phase = "run",
                           .fraction = endless ? -1 : share,
                           .seconds = spent,
                           .eta_seconds = share > 0.01 ? spent / share * (1 - share) : -1,
                           .memory_bytes = tgi_tracker_current(r->all.tracker),
                           .predicted_bytes = r->all.predicted,
                           .budget_bytes = job->plan.budget,
                           .tiles_done = done,
                           .tiles_total = all,
                           .frames_done = tgi_job_frames_of(job, done),
                           .frames_total = tgi_job_frames(job)};
    tgi_tracker_update(r->all.tracker, "run", done);
    tgi_ctx_progress(job->ctx, &p);
}

static tg_status check_stop(void *user, tgi_err *err)
{
    const run *r = user;
    return tgi_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED,
                          "stopped by %s: %s, the same command starts over", tgi_cancel_by(),
                          r->spooled ? "a film that comes through a pipe does not go on"
                                     : "what went to standard output ends here")
               : TG_OK;
}

static tg_status tick(void *user, tgi_err *err)
{
    run *r = user;
    report(r);
    TGI_TRY(check_stop(user, err));
    return tgi_run_input_holds(&r->all, err);
}

static tg_status check_tick(void *user, double fraction, tgi_err *err)
{
    (void)fraction;
    return check_stop(user, err);
}

/* ---- Rows -------------------------------------------------------------------------------- */

static tg_status store_rows(void *user, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    return tgi_store_rows(((run *)user)->store, o, view, box, err);
}

static tgi_range turn(void *user, int64_t item, const tgi_range core[3], const int64_t at[3],
                      tgi_affine out)
{
    return tgi_store_cell(((run *)user)->store, item, core, at, out);
}

/* ---- Steps ------------------------------------------------------------------------------- */

/* A file that is read and written at once has frames of both. Of one file nothing was read (job_standard.h). */
static tg_status check_stdout(const tg_job *job, tgi_err *err)
{
    tgi_held in;
    struct stat st;
    if (!job->source || fstat(STDOUT_FILENO, &st) != 0 || !S_ISREG(st.st_mode))
        return TG_OK;
    for (int64_t i = 0; tgi_source_held(job->source, i, &in); i++)
        if (st.st_dev == in.was.dev && st.st_ino == in.was.ino)
            return tgi_fail(err, TG_E_ARG,
                            "-o -: standard output is one of the input's files, %s",
                            in.path ? in.path : job->set.input);
    return TG_OK;
}

static tg_status begin(tgi_run *all, int *done, tgi_err *err)
{
    run *r = (run *)all;
    (void)done;
    all->end = (tgi_pass_end){
        .user = r, .store = store_rows, .stop = check_stop, .tick = tick, .turn = turn};
    all->check_tick = check_tick;
    if (tgi_job_wants_pipe(all->job)) {
        TGI_TRY(check_stdout(all->job, err));
        TGI_TRY(tgi_pipe_open_stdout(&r->fd, err));
        r->fd++;
    } else {
        r->spool = TGI_FILM_SPOOL_CLOSED;
        r->made = TGI_PART_CLOSED;
        r->spooled = 1;
        TGI_TRY(
            tgi_film_spool_open(all->job->set.output, all->job->set.overwrite, &r->spool, err));
    }
    if (!all->job->plan.valid)
        TGI_TRY(tgi_job_plan_to_run(all->job, err));
    all->of = all->job->source;
    return TG_OK;
}

static tg_status open_ends(tgi_run *all, tgi_err *err)
{
    run *r = (run *)all;
    tg_job *job = all->job;
    const tgi_film_rest rest = {.user = job, .put = tgi_job_film_rest};
    TGI_TRY(r->spooled ? tgi_film_tiles_open_spool(&job->film->out, job->plan.layout, &r->spool,
                                                   rest, &r->film, err)
                       : tgi_film_tiles_open_pipe(&job->film->out, job->plan.layout, r->fd - 1,
                                                  rest, &r->film, err));
    r->tiles = tgi_film_tiles_to(r->film);
    tgi_tracker_watch(all->tracker, TGI_BUSY_ENCODE, tgi_film_tiles_busy(r->film));
    all->source = job->source;
    all->part = tgi_film_source_is_stream(job->source); /* nobody knew how long: no lesson */
    all->hashing.buffer = all->pass.receipt;
    all->hashing.bytes = TGI_INPUT_HASH_BYTES;
    return TG_OK;
}

static tg_status ready(tgi_run *all, tgi_err *err)
{
    run *r = (run *)all;
    return tgi_run_open_writer(all, r->tiles, &r->commit, &r->store, err);
}

/* A film that came through a pipe and is over ends the pass, and this run well: with what a device still has of it. In
 * front of damage those are handed out, too. */
static tg_status settle(tgi_run *all, tg_status st, tgi_err *err)
{
    run *r = (run *)all;
    if (st == TG_E_CANCELLED && tgi_film_source_ended(all->job->source) >= 0 &&
        !tgi_cancel_signal()) {
        *err = (tgi_err){0};
        st = all->pass.device.exec ? tgi_run_device_drain(&all->pass.device, err) : TG_OK;
    }
    if (st == TG_E_FORMAT && all->part && all->pass.device.exec)
        (void)tgi_run_device_drain(&all->pass.device, NULL); /* what was damaged is told */
    if (st == TG_OK)
        st = tgi_commit_flush(r->commit, err);
    st = tgi_run_close_writer(&r->commit, st, err);
    if (st != TG_OK || !r->spooled)
        return st;
    all->job->film->out.frames = tgi_film_source_ended(all->job->source);
    return tgi_film_tiles_end(r->film, err);
}

/* Of a film that came through a pipe its end says how many. */
static int64_t frames_made(const tg_job *job, int64_t tiles)
{
    const int64_t ended = tgi_film_source_ended(job->source);
    return ended >= 0 ? ended : tgi_job_frames_of(job, tiles);
}

static void result(const tgi_run *all, tg_run_result *res)
{
    const run *r = (const run *)all;
    res->tiles = r->store ? tgi_store_tiles_done(r->store) : 0;
    res->frames = frames_made(all->job, res->tiles);
    res->nonfinite = r->store ? tgi_store_nonfinite(r->store) : 0;
    res->bad_regions = tgi_bad_tiles_count(all->job->bad);
}

/* The receipt comes before the name, as of any output; and what an output that is replaced had of damage goes. Nobody
 * has the input's bytes any more. */
static tg_status name_it(run *r, tg_run_result *res, tgi_err *err)
{
    const tg_job *job = r->all.job;
    tgi_receipt_files files = {0};
    char *fingerprint = NULL;
    TGI_TRY(tgi_check_file(r->made.partial, r->all.pass.receipt, &files.output_crc32c,
                           &files.output_bytes, err));
    res->measured_peak_bytes = tgi_job_tracker_peak(r->all.tracker);
    TGI_TRY(tgi_fingerprint_make(job, &fingerprint, err));
    tg_status st = tgi_receipt_write(job, res, r->all.pass.sets, fingerprint, &files, err);
    tgi_free(fingerprint);
    if (st == TG_OK)
        st = tgi_bad_tiles_begin_output(NULL, job->set.output, err);
    return st == TG_OK ? tgi_part_name(&r->made, err) : st;
}

static tg_status finish(tgi_run *all, const tgi_input_digest *input, tg_run_result *res,
                        tgi_err *err)
{
    run *r = (run *)all;
    tg_job *job = all->job;
    (void)input;
    if (r->spooled) {
        tgi_tracker_update(all->tracker, "join", tgi_store_tiles_done(r->store));
        TGI_TRY(tgi_job_film_join_spool(job, &r->spool, &r->made, err));
        tgi_tracker_update(all->tracker, "finish", tgi_store_tiles_done(r->store));
    } else {
        TGI_TRY(tgi_job_film_tell_rest(job, 0, err));
    }
    tgi_run_result(all, res);
    tgi_run_warn_of_nonfinite(job, res->nonfinite,
                              "; NaN is written as 0, infinity as the end of the range");
    tgi_warn_of_clipped(job, r->store);
    tgi_job_warn_of_surplus(job);
    if (r->spooled)
        TGI_TRY(name_it(r, res, err));
    all->finished = 1;
    return TG_OK;
}

static void stop(tgi_run *all)
{
    run *r = (run *)all;
    tgi_err ignored = {0};
    tgi_store_close(&r->store);
    if (r->commit)
        tgi_commit_close(&r->commit, &ignored);
    r->tiles = (tgi_tiles){0};
    tgi_film_tiles_close(&r->film);
    if (r->spooled) {
        tgi_part_drop(&r->made);
        tgi_film_spool_close(&r->spool);
    }
    if (r->fd)
        close(r->fd - 1);
    r->fd = 0;
}

static double pixels_of(const tg_job *job)
{
    const tgi_mapping *m = &job->map;
    const int64_t ended = tgi_film_source_ended(job->source);
    return (double)m->out_extent[0] * (double)m->out_extent[1] * (double)m->out_extent[2] *
           (double)(ended >= 0 ? ended : m->n_items);
}

const tgi_run_steps tgi_pipe_steps = {.bytes = sizeof(run),
                                      .files = tgi_source_held,
                                      .begin = begin,
                                      .open = open_ends,
                                      .ready = ready,
                                      .settle = settle,
                                      .finish = finish,
                                      .result = result,
                                      .stop = stop,
                                      .pixels = pixels_of};
