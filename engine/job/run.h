/* run.h - what every run does, whatever becomes of its rows: hold the input to what it was, get
 * statistics, time the bands, warn, tell what it took, and try again on a device that ran out of
 * memory.
 *
 * A runner (job_run.c: tiles, job_tensor.c: arrays) calls these steps in their order and puts
 * between them what its outputs need: a journal and a writer, or names and pieces. */
#ifndef TGI_RUN_H
#define TGI_RUN_H

#include "engine/ends/input_hash.h"
#include "engine/job/pass.h"
#include "engine/memory/monitor_machine.h"

typedef struct tgi_run {
    tg_job *job;
    tgi_held_files *files; /* of the input, listed from `of`; borrowed */
    const void *of;
    tgi_input_tick *tick; /* while the input is read for its checksum alone; its user: */
    void *user;
    tgi_pass pass;
    tg_tracker *tracker;
    tgi_input_hash *hash;
    int part;          /* it goes on with an earlier run: what it takes is no lesson */
    int input_changed; /* what was made of it is worth nothing */
    size_t predicted;
    double t_check;                /* when the input was last looked at */
    double write_wait, flush_wait; /* seconds; flush_wait: of write_wait, after the bands */
    double bands_seconds;          /* all of them, to the last row that is written */
    double processor_seconds;
    tgi_turns turns; /* when they begin */
} tgi_run;

/* ---- Before the bands -------------------------------------------------------------------- */

/* The tracker is open, the pass is reserved: open the pass, and the checksum of the input, which
 * works in `buffer` (NULL: its own of that size). */
tg_status tgi_run_open(tgi_run *r, tgi_source *source, const tgi_pass_end *end, void *buffer,
                       size_t buffer_bytes, tgi_err *err);
/* The statistics of an image: those of --stats, else `collect` fills them, and --stats is
 * written. *given: they are those of a file that was there. */
tg_status tgi_run_statistics(tgi_run *r,
                             tg_status (*collect)(void *user, tgi_stats *sets, tgi_err *err),
                             int *given, tgi_err *err);

/* ---- Bands ------------------------------------------------------------------------------- */

void tgi_run_bands_begin(tgi_run *r);
void tgi_run_bands_end(tgi_run *r);
/* Between bands: TG_E_FORMAT when the input is not what it was. */
tg_status tgi_run_input_holds(tgi_run *r, tgi_err *err);

/* ---- After ------------------------------------------------------------------------------- */

/* Behind the last pixel: the input's checksum; that there is none, is a warning. */
tg_status tgi_run_input_digest(tgi_run *r, tgi_input_digest *d, tgi_err *err);
/* A run that ended in `st`: damage in an input that was changed meanwhile is that change, and
 * statistics of it are forgotten. */
tg_status tgi_run_blame(tgi_run *r, tg_status st, tgi_err *err);
/* What came out is not what a network should give: `n` values; `cure` is said behind it. */
void tgi_run_warn_of_nonfinite(tg_job *job, int64_t n, const char *cure);
/* What it took: memory, times, the device. */
void tgi_run_result(const tgi_run *r, tg_run_result *res);
/* What it was, having begun at t0, for so many pixels of the output. */
void tgi_run_speed(const tg_job *job, double t0, double pixels, tg_run_result *res);
/* After tgi_pass_stop, and what used the memory of the pass. */
void tgi_run_close(tgi_run *r);

/* ---- Again ------------------------------------------------------------------------------- */

/* `attempt`, until it ends in something else than a device whose memory is not what the plan
 * counted on; and once more where job->again says that it is to begin anew. */
tg_status tgi_run_attempts(tg_job *job,
                           tg_status (*attempt)(tg_job *job, void *user, tgi_err *err),
                           void *user, tgi_err *err);

#endif
