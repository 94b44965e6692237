/* stats_file.c - --stats FILE: the statistics of a run as JSON, to be used by others (one
 * slide's statistics for its neighbours, or a whole set's for each image). */
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/job/job.h"
#include "engine/memory/monitor.h"
#include "engine/text_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tg_status read_set(const tgi_json *v, const char *path, tg_stats *s, tgi_err *err)
{
    if (!tgi_json_int(tgi_json_get(v, "count"), &s->count) ||
        !tgi_json_int(tgi_json_get(v, "nans"), &s->nans) || s->count < 0 || s->nans < 0 ||
        !tgi_json_num(tgi_json_get(v, "min"), &s->min) ||
        !tgi_json_num(tgi_json_get(v, "max"), &s->max) ||
        !tgi_json_num(tgi_json_get(v, "mean"), &s->mean) ||
        !tgi_json_num(tgi_json_get(v, "deviation"), &s->deviation) ||
        !tgi_json_num(tgi_json_get(v, "low"), &s->low) ||
        !tgi_json_num(tgi_json_get(v, "high"), &s->high))
        return tgi_fail(err, TG_E_FORMAT, "%s: a set of statistics lacks a number", path);
    return TG_OK;
}

static tg_status read_doc(const tg_job *job, const tgi_json *doc, const char *path,
                          tg_stats *sets, tgi_err *err)
{
    const char *norm = "";
    tgi_json_str(tgi_json_get(doc, "normalize"), &norm);
    if (strcmp(norm, job->set.normalize_text) != 0)
        return tgi_fail(err, TG_E_ARG,
                        "%s holds statistics for --normalize %s, the job asks for %s", path,
                        norm, job->set.normalize_text);
    const tgi_json *v = tgi_json_first(tgi_json_get(doc, "channels"));
    for (int64_t i = 0; i < job->map.n_stats; i++, v = tgi_json_next(v)) {
        if (!v)
            return tgi_fail(err, TG_E_ARG,
                            "%s holds statistics of %lld channels, the image has %lld", path,
                            (long long)i, (long long)job->map.n_stats);
        TGI_TRY(read_set(v, path, &sets[i], err));
    }
    return TG_OK;
}

tg_status tgi_job_stats_read(const tg_job *job, tg_stats *sets, int *found, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    tgi_json *doc = NULL;
    *found = 0;
    if (!path || access(path, F_OK) != 0)
        return TG_OK;
    TGI_TRY(tgi_json_load(path, &doc, err));
    const tg_status st = read_doc(job, doc, path, sets, err);
    tgi_json_free(&doc);
    *found = st == TG_OK;
    return st;
}

void tgi_stats_json(tgi_jw *w, const tg_stats *sets, int64_t n)
{
    tgi_jw_begin(w, "channels", '[');
    for (int64_t i = 0; i < n; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_int(w, "count", sets[i].count);
        tgi_jw_int(w, "nans", sets[i].nans);
        tgi_jw_num(w, "min", sets[i].min);
        tgi_jw_num(w, "max", sets[i].max);
        tgi_jw_num(w, "mean", sets[i].mean);
        tgi_jw_num(w, "deviation", sets[i].deviation);
        tgi_jw_num(w, "low", sets[i].low);
        tgi_jw_num(w, "high", sets[i].high);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

/* A first pass can take as long as reading the image does: say so, and stop when asked. */
static tg_status tell(void *user, double fraction)
{
    const tg_job *job = user;
    const tg_progress p = {.phase = "statistics",
                           .fraction = fraction,
                           .eta_seconds = -1,
                           .memory_bytes = tgi_mem_measured(),
                           .budget_bytes = job->plan.budget};
    tgi_ctx_progress(job->ctx, &p);
    return tg_cancel_signal() ? TG_E_CANCELLED : TG_OK;
}

tg_status tgi_job_stats_collect(const tg_job *job, tgi_reserve *mem, void *rows,
                                size_t rows_bytes, tg_stats *sets, tgi_err *err)
{
    int found = 0;
    tg_stats_args a = {.source = job->source,
                       .ops = job->source->ops,
                       .map = &job->map,
                       .norm = &job->set.normalize,
                       .rows = rows,
                       .rows_bytes = rows_bytes,
                       .tick = tell,
                       .user = (void *)(uintptr_t)job};
    TGI_TRY(tgi_job_stats_read(job, sets, &found, err));
    if (found)
        return TG_OK;
    TGI_TRY(tgi_reserve_take(mem, "statistics", TGI_STATS_SCRATCH, &a.scratch, err));
    const tg_status st = tgi_stats_collect(&a, sets, err);
    return st == TG_E_CANCELLED ? tgi_fail(err, st, "stopped by signal %d", tg_cancel_signal())
                                : st;
}

tg_status tgi_job_stats_write(const tg_job *job, const tg_stats *sets, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    tgi_jw w = {0};
    char *text = NULL;
    if (!path)
        return TG_OK;
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "normalize", job->set.normalize_text);
    tgi_jw_str(&w, "image", job->set.input);
    tgi_stats_json(&w, sets, job->map.n_stats);
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, &text, err));
    const tg_status st = tgi_write_text(path, text, 1, err);
    tgi_free(text);
    return st;
}
