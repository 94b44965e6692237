/* run.h - the one runner: watch, reserve, get statistics, walk the bands, hold the input to what
 * it was, finish, tell what it took; and again on a device that ran out of memory.
 *
 * What becomes of the rows is the affair of a job's ends (ends.h names their steps): tiles with a
 * journal (run_tiles.c), or arrays with names (run_arrays.c). */
#ifndef TGI_RUN_H
#define TGI_RUN_H

#include "engine/ends/input_hash.h"
#include "engine/job/pass.h"
#include "engine/memory/monitor_machine.h"

typedef struct tgi_run tgi_run;

/* The steps of a run that are its ends'. Those of an attempt get a struct of `bytes` that begins
 * with a tgi_run, and is zero behind it. NULL: nothing is to be done. */
typedef struct tgi_run_steps {
    size_t bytes;
    tgi_held_files *files; /* of the input, listed from run->of */

    tg_status (*plan)(tg_job *job, tgi_err *err); /* where `prepare` wants a valid plan */
    /* Before the first attempt. *done: an earlier run completed all there is to do; the rest of
     * the steps but `drop` is left out. */
    tg_status (*prepare)(tg_job *job, tg_run_result *res, int *done, tgi_err *err);

    /* ---- An attempt, in this order ---- */

    /* A valid plan, and what an interrupted run left. *done: as above, in whatever status. */
    tg_status (*begin)(tgi_run *r, int *done, tgi_err *err);
    /* Could the plan's files be written? The memory is not reserved yet. */
    tg_status (*room)(tgi_run *r, tgi_err *err);
    /* The memory is reserved: open what rows come from and go to, and say so in r->end,
     * r->source and r->hashing. */
    tg_status (*open)(tgi_run *r, tgi_err *err);
    /* Statistics that an interrupted run kept: 1. And keep these (`given`: from a file). */
    int (*kept)(tgi_run *r, tgi_stats *sets, int *given);
    tg_status (*keep)(tgi_run *r, const tgi_stats *sets, int given, tgi_err *err);
    /* All is open and known: rows come next. */
    tg_status (*ready)(tgi_run *r, tgi_err *err);
    /* All rows came: whatever else is made of them, to the last one that is written. */
    tg_status (*complete)(tgi_run *r, tgi_err *err);
    /* Behind the last row, or a failure `st`: stop writing. Returns what the attempt ends in. */
    tg_status (*settle)(tgi_run *r, tg_status st, tgi_err *err);
    /* All went well; `input` has the input's checksum. */
    tg_status (*finish)(tgi_run *r, const tgi_input_digest *input, tg_run_result *res,
                        tgi_err *err);
    /* It failed with `st`. */
    void (*leave)(tgi_run *r, tg_status st, const tgi_err *err);
    /* The counts of the ends: of tiles, cells, values. At any time. */
    void (*result)(const tgi_run *r, tg_run_result *res);
    /* In any state. stop: nothing is read or stored any more; the memory of the pass is there.
     * close: it is not. */
    void (*stop)(tgi_run *r);
    void (*close)(tgi_run *r);

    /* ---- After the last attempt ---- */

    /* It went well. */
    tg_status (*complete_all)(tg_job *job, tg_run_result *res, tgi_err *err);
    /* `st` is what the run ends in; also after a `prepare` that failed. */
    void (*drop)(tg_job *job, tg_status st);
    double (*pixels)(const tg_job *job); /* that the output has */
} tgi_run_steps;

/* What is known at a step; the ends' part lies behind it. */
struct tgi_run {
    tg_job *job;
    const void *of;     /* steps->files lists from it */
    tgi_source *source; /* rows come from it; NULL: from arrays */
    tgi_pass_end end;   /* its user is this run */
    struct {
        void *buffer; /* NULL: its own */
        size_t bytes;
        const char *before; /* its checksum, as an earlier run read it; NULL: there is none */
    } hashing;              /* the input, for its checksum */
    /* While the input is read for its checksum alone. */
    tgi_input_tick *check_tick;
    /* While statistics are collected; NULL: the engine says how far it is. */
    tg_status (*stats_tick)(void *user, double fraction);
    tgi_pass pass;
    tg_tracker *tracker;
    tgi_input_hash *hash;
    int goes_on;       /* with an earlier run: its log goes on, too */
    int part;          /* it has tiles of an earlier run: what it takes is no lesson */
    int finished;      /* the output has its name */
    int input_changed; /* what was made of it is worth nothing */
    size_t predicted;
    double t0;                     /* when the run began */
    double t_check;                /* when the input was last looked at */
    double t_phase;                /* when the phase at hand began */
    double write_wait, flush_wait; /* seconds; flush_wait: of write_wait, after the bands */
    double bands_seconds;          /* all of them, to the last row that is written */
    double processor_seconds;
    tgi_turns turns; /* when they begin */
};

/* Run the job, and plan it first, unless there is a valid plan. `out` (NULL: nobody asks) is
 * written when the output is there, also with TG_E_FORMAT: parts of it count as zeros. */
tg_status tgi_job_run(tg_job *job, tg_run_result *out, tgi_err *err);

/* ---- For the steps ----------------------------------------------------------------------- */

/* Between bands: TG_E_FORMAT when the input is not what it was. */
tg_status tgi_run_input_holds(tgi_run *r, tgi_err *err);
/* What came out is not what a network should give: `n` values; `cure` is said behind it. */
void tgi_run_warn_of_nonfinite(tg_job *job, int64_t n, const char *cure);
/* What it took by now, and its counts. */
void tgi_run_result(const tgi_run *r, tg_run_result *res);

#endif
