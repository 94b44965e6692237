#include "engine/job/job_log.h"

#include "engine/base/mem.h"
#include "engine/memory/plot.h"

#include <stdio.h>
#include <string.h>

#define LINE_MS 100 /* unless --log-interval says otherwise */
#define PEAK_MS 5   /* short-lived memory that no line of the log would show */

/* OUT plus an ending; a folder's name without its slashes. Returned; tgi_free. */
static tg_status beside_output(const tg_job *job, const char *ending, char **out, tgi_err *err)
{
    const char *name = job->set.output;
    size_t n = name ? strlen(name) : 0;
    if (!n)
        return tgi_fail(err, TG_E_ARG,
                        "--plot: there is no output to name the picture after; "
                        "give --plot=FILE.svg and --log FILE.csv");
    while (n > 1 && name[n - 1] == '/')
        n--;
    const size_t cap = n + strlen(ending) + 1;
    *out = tgi_malloc(TGI_TAG_MISC, cap);
    if (!*out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of the log");
    snprintf(*out, cap, "%.*s%s", (int)n, name, ending);
    return TG_OK;
}

/* What an option names, or its default beside the output; NULL where neither is wanted. */
static tg_status name_of(const tg_job *job, tgi_opt opt, int wanted, const char *ending,
                         char **out, tgi_err *err)
{
    const char *given = tgi_opts_str(job->opts, opt);
    *out = NULL;
    if (!given && !wanted)
        return TG_OK;
    if (!given || !*given)
        return beside_output(job, ending, out, err);
    *out = tgi_strdup(TGI_TAG_MISC, given);
    return *out ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for the name of the log");
}

static tg_status log_name(const tg_job *job, char **out, tgi_err *err)
{
    return name_of(job, TGI_OPT_LOG, tgi_opts_given(job->opts, TGI_OPT_PLOT), ".memory.csv",
                   out, err);
}

tg_status tgi_job_tracker_open(tg_job *job, int go_on, tg_tracker **out, tgi_err *err)
{
    char *csv = NULL, *picture = NULL;
    tgi_tracker_opts o = {.every = {.ms = LINE_MS},
                          .peak_ms = PEAK_MS,
                          .go_on = go_on,
                          .budget = job->plan.budget};
    (void)tgi_opts_interval(job->opts, TGI_OPT_LOG_INTERVAL, &o.every);
    tg_status st = log_name(job, &csv, err);
    if (st == TG_OK) /* now, not after hours of work */
        st = name_of(job, TGI_OPT_PLOT, 0, ".memory.svg", &picture, err);
    o.csv = csv;
    o.look = tgi_look_here(csv != NULL);
    if (st == TG_OK)
        st = tgi_tracker_open(&o, out, err);
    tgi_free(picture);
    tgi_free(csv);
    return st;
}

uint64_t tgi_job_tracker_peak(tg_tracker *t)
{
    tg_tracker_maxima m;
    tgi_tracker_maxima(t, &m);
    return m.measured.bytes;
}

static tg_status draw(const tg_job *job, const char *csv, tgi_err *err)
{
    char *picture = NULL, title[120];
    const char *of = job->set.output ? job->set.output : job->set.input;
    const tg_plot_opts o = {.size = sizeof o, .title = title};
    const char *slash = of ? strrchr(of, '/') : NULL;
    snprintf(title, sizeof title, "Memory over time: %.90s",
             slash && slash[1] ? slash + 1
             : of              ? of
                               : "");
    tg_status st = name_of(job, TGI_OPT_PLOT, 0, ".memory.svg", &picture, err);
    if (st == TG_OK && picture)
        st = tgi_plot(csv, picture, &o, NULL, err);
    tgi_free(picture);
    return st;
}

uint64_t tgi_job_tracker_close(tg_job *job, tg_tracker **t)
{
    tg_tracker_maxima m = {0};
    tgi_err err = {0};
    char *csv = NULL;
    if (!*t)
        return 0;
    tgi_tracker_close(t, &m);
    if (m.problem[0])
        tgi_job_warn(job, "%s", m.problem);
    if (log_name(job, &csv, &err) != TG_OK || (csv && draw(job, csv, &err) != TG_OK))
        tgi_job_warn(job, "--plot: %s", err.text);
    tgi_free(csv);
    return m.measured.bytes;
}
