/* job_log.c - opens a job's tracker, and draws its picture at the end. */
#include "engine/job/job_log.h"

#include "engine/base/reserve.h"
#include "engine/draw/plot.h"
#include "engine/job/job_open.h"
#include "engine/out/gate.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MS 100 /* unless --log-interval says otherwise */
#define PEAK_MS 5   /* short-lived memory that no line of the log would show */

tg_status tgi_job_tracker_open(tg_job *job, int go_on, tg_tracker **out, tgi_err *err)
{
    char path[4096];
    const tgi_bytes *b = &job->plan.bytes;
    const int drawn =
        tgi_opts_given(job->opts, TGI_OPT_PLOT); /* asked now, not after hours of work */
    const int named = drawn && tgi_gate_plot(job->opts, path, sizeof path);
    tgi_tracker_opts o = {.every = {.ms = LINE_MS},
                          .peak_ms = PEAK_MS,
                          .go_on = go_on,
                          .how = job->log.how,
                          .csv = tgi_gate_log(job->opts, path, sizeof path),
                          .budget = job->plan.budget};
    (void)tgi_opts_interval(job->opts, TGI_OPT_LOG_INTERVAL, &o.every);
    o.look = tgi_look_here(o.csv != NULL);
    if (drawn && (!o.csv || !named))
        return tgi_fail(err, TG_E_ARG,
                        "--plot: there is no output to name the picture after; "
                        "give --plot=FILE.svg and --log FILE.csv");
    /* What waits for this job's reservation is in its plan; more of it, of a larger job, is not. */
    tgi_pages_keep_at_most(
        tgi_job_pass_ops(job) ? 0 : b->weights + b->arena + b->staging + b->window);
    TGI_TRY(tgi_tracker_open(&o, out, err));
    job->log.how = TGI_SIDE_REPLACE; /* from here on it is this job's own */
    return TG_OK;
}

tg_status tgi_job_tracker_again(tg_job *job, tg_tracker **out, tgi_err *err)
{
    char path[4096];
    struct stat s;
    const char *csv = tgi_gate_log(job->opts, path, sizeof path);
    if (!csv || (!tgi_is_stream(csv) && (stat(csv, &s) != 0 || S_ISREG(s.st_mode))))
        return tgi_job_tracker_open(job, 1, out, err);
    const tgi_tracker_opts o = {
        .peak_ms = PEAK_MS, .budget = job->plan.budget, .look = tgi_look_here(0)};
    return tgi_tracker_open(&o, out, err);
}

uint64_t tgi_job_tracker_peak(tg_tracker *t)
{
    tg_tracker_maxima m;
    tgi_tracker_maxima(t, &m);
    return m.measured.bytes;
}

static tg_status draw(tg_job *job, const char *csv, tgi_err *err)
{
    char buf[4096], title[120];
    const char *picture = tgi_gate_plot(job->opts, buf, sizeof buf);
    const char *of = job->set.output ? job->set.output : job->set.input;
    const tg_plot_opts o = {.size = sizeof o, .title = title};
    const char *slash = of ? strrchr(of, '/') : NULL;
    snprintf(title, sizeof title, "Memory over time: %.90s",
             slash && slash[1] ? slash + 1
             : of              ? of
                               : "");
    if (!picture)
        return TG_OK;
    if (job->drawn.how == TGI_SIDE_NEW && !tgi_is_stream(picture) && access(picture, F_OK) == 0)
        return tgi_fail(err, TG_E_EXISTS, "%s came up meanwhile and is left as it is", picture);
    TGI_TRY(tgi_plot(csv, picture, &o, NULL, err));
    job->drawn.how = TGI_SIDE_REPLACE;
    return TG_OK;
}

/* The output gets its name in spite of it, so the same command would not draw it. */
static void warn_of_picture(tg_job *job, const char *csv, tg_status st, const tgi_err *err)
{
    char buf[4096];
    const char *picture = tgi_gate_plot(job->opts, buf, sizeof buf);
    if (st == TG_E_NO_SPACE || st == TG_E_IO)
        tgi_job_warn(job, "--plot: no picture, %s: tegula plot %s -o %s draws it",
                     st == TG_E_NO_SPACE ? "the disk is full" : "it cannot be written", csv,
                     picture);
    else
        tgi_job_warn(job, "--plot: %s", err->text);
}

void tgi_job_warn_of_no_picture(tg_job *job)
{
    char buf[4096], csv[4096];
    const char *picture = tgi_gate_plot(job->opts, buf, sizeof buf);
    const char *log = tgi_gate_log(job->opts, csv, sizeof csv);
    if (picture && log && access(picture, F_OK) != 0)
        tgi_job_warn(
            job, "--plot: no picture, the output was complete: tegula plot %s -o %s draws it",
            log, picture);
}

/* Apart: its buffers do not stand on the stack while the tracker is closed. */
static __attribute__((noinline)) void draw_log(tg_job *job)
{
    tgi_err err = {0};
    char buf[4096];
    const char *csv = tgi_gate_log(job->opts, buf, sizeof buf);
    const tg_status st = csv ? draw(job, csv, &err) : TG_OK;
    if (st != TG_OK)
        warn_of_picture(job, csv, st, &err);
}

uint64_t tgi_job_tracker_close(tg_job *job, tg_tracker **t)
{
    tg_tracker_maxima m = {0};
    if (!*t)
        return 0;
    tgi_tracker_close(t, &m);
    if (m.problem[0])
        tgi_job_warn(job, "%s", m.problem);
    draw_log(job);
    return m.measured.bytes;
}
