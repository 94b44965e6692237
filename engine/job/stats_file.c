/* stats_file.c - --stats FILE: the statistics of a run as JSON, to be used by others (one
 * slide's statistics for its neighbours, or a whole set's for each image). */
#include "engine/job/stats_file.h"
#include "engine/base/cancel.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/ends/input_hash.h"
#include "engine/job/job.h"
#include "engine/memory/monitor.h"
#include "engine/out/journal.h"
#include "io/picked.h"
#include "io/side_file.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tg_status read_set(const tgi_json *v, const char *path, tgi_stats *s, tgi_err *err)
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
    const char *wrong = s->deviation < 0   ? "a negative deviation"
                        : s->min > s->max  ? "a minimum above its maximum"
                        : s->low > s->high ? "a low percentile above its high one"
                                           : NULL;
    return wrong ? tgi_fail(err, TG_E_FORMAT, "%s: a set of statistics has %s", path, wrong)
                 : TG_OK;
}

/* Of all channels of the image those that were chosen. */
static tg_status read_picked(const tgi_json *first, const int64_t *picked, int64_t n,
                             const char *path, tgi_stats *sets, tgi_err *err)
{
    for (int64_t i = 0; i < n; i++) {
        const tgi_json *v = first;
        for (int64_t k = 0; k < picked[i]; k++)
            v = tgi_json_next(v);
        TGI_TRY(read_set(v, path, &sets[i], err));
    }
    return TG_OK;
}

/* A file of some channels is for these alone. */
static tg_status check_picked(const tgi_json *of, const int64_t *picked, int64_t n,
                              const char *path, tgi_err *err)
{
    int64_t k = 0, was = -1;
    const tgi_json *v = of;
    int same = !of == !picked;
    for (; v && same; v = tgi_json_next(v), k++)
        same = k < n && tgi_json_int(v, &was) && was == picked[k];
    if (same && (!of || k == n))
        return TG_OK;
    if (!of)
        return TG_OK; /* the count says it */
    for (v = of, k = 0; v && tgi_json_int(v, &was) && k < n && picked && was == picked[k]; k++)
        v = tgi_json_next(v);
    const int64_t missing = picked && k < n ? picked[k] : k == 0 && was == 0 ? 1 : 0;
    return tgi_fail(err, TG_E_ARG,
                    "%s holds no statistics of channel %lld, which the job reads: it was "
                    "written by one that "
                    "left it out; give --stats another name",
                    path, (long long)missing);
}

static tg_status read_doc(const tg_job *job, const tgi_json *doc, const char *path,
                          tgi_stats *sets, tgi_err *err)
{
    const char *norm = NULL, *image = NULL;
    tgi_json_str(tgi_json_get(doc, "normalize"), &norm);
    tgi_json_str(tgi_json_get(doc, "image"), &image);
    if (!norm)
        return tgi_fail(err, TG_E_FORMAT, "%s: no file of statistics: it lacks \"normalize\"",
                        path);
    if (strcmp(norm, job->set.normalize_text) != 0)
        return tgi_fail(err, TG_E_ARG,
                        "%s holds statistics for --normalize %s, the job asks for %s", path,
                        norm, job->set.normalize_text);
    const tgi_json *const first = tgi_json_first(tgi_json_get(doc, "channels"));
    const tgi_json *const of = tgi_json_first(tgi_json_get(doc, "channels_of"));
    int64_t there = 0, n = 0, all = 0;
    const int64_t *const picked = tgi_picked_channels(job->source, &n, &all);
    for (const tgi_json *v = first; v; v = tgi_json_next(v))
        there++;
    if (picked && !of && there == all && n == job->map.n_stats)
        return read_picked(first, picked, n, path, sets, err);
    TGI_TRY(check_picked(of, picked, n, path, err));
    if (there != job->map.n_stats)
        return tgi_fail(err, TG_E_ARG,
                        "%s holds statistics of %lld channels, the image has %lld", path,
                        (long long)there, (long long)job->map.n_stats);
    if (image && job->set.input && strcmp(image, job->set.input) != 0)
        tgi_ctx_log(job->ctx, TG_LOG_INFO, "statistics of %s, out of %s", image, path);
    const tgi_json *v = first;
    for (int64_t i = 0; i < there; i++, v = tgi_json_next(v))
        TGI_TRY(read_set(v, path, &sets[i], err));
    return TG_OK;
}

/* Statistics are there for what the job reads: a run over some planes has none of the others. */
static tg_status check_used(const tg_job *job, const tgi_stats *sets, const char *path,
                            tgi_err *err)
{
    for (int64_t item = 0; item < job->map.n_items; item++) {
        const int64_t i = tgi_mapping_stats_of(&job->map, item);
        if (sets[i].count == 0 && sets[i].nans == 0)
            return tgi_fail(err, TG_E_ARG,
                            "%s holds no statistics of channel %lld, which the job reads: it "
                            "was written by one that left it out; give --stats another name",
                            path, (long long)i);
    }
    return TG_OK;
}

/* What --stats named, read once: a pipe gives it only once. */
typedef struct tgi_given_stats {
    int64_t n;
    tgi_stats set[];
} tgi_given_stats;

static tg_status new_given(const tg_job *job, tgi_given_stats **out, tgi_err *err)
{
    const size_t n = (size_t)job->map.n_stats;
    *out = tgi_calloc(TGI_TAG_PLAN, 1, sizeof **out + n * sizeof(tgi_stats));
    if (!*out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the statistics");
    (*out)->n = job->map.n_stats;
    return TG_OK;
}

static tg_status load_given(tg_job *job, const char *path, tgi_err *err)
{
    tgi_json *doc = NULL;
    tgi_given_stats *g = NULL;
    TGI_TRY(tgi_opts_json(job->opts, TGI_OPT_STATS, &doc, err));
    tg_status st = new_given(job, &g, err);
    if (st == TG_OK)
        st = read_doc(job, doc, path, g->set, err);
    if (st == TG_OK)
        st = check_used(job, g->set, path, err);
    tgi_json_free(&doc);
    if (st == TG_OK)
        job->given = g;
    else
        tgi_free(g);
    return st;
}

tg_status tgi_job_stats_check(const tg_job *job, int arrays, tgi_err *err)
{
    char none[128];
    if (!tgi_opts_given(job->opts, TGI_OPT_STATS) ||
        (!arrays && tgi_normalize_needs_stats(&job->set.normalize)))
        return TG_OK;
    snprintf(none, sizeof none, "--normalize %s", job->set.normalize_text);
    return tgi_fail(err, TG_E_ARG, "--stats: %s takes no statistics: leave it out%s",
                    arrays ? "an array" : none,
                    arrays ? "" : ", or give --normalize minmax, zscore or percentile:LO,HI");
}

tg_status tgi_job_stats_look(tg_job *job, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    if (!path || job->given || access(path, F_OK) != 0 ||
        !tgi_normalize_needs_stats(&job->set.normalize))
        return TG_OK;
    return load_given(job, path, err);
}

tg_status tgi_job_stats_read(tg_job *job, tgi_stats *sets, int *found, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    *found = 0;
    if (!path || (!job->given && access(path, F_OK) != 0))
        return TG_OK;
    if (!job->given)
        TGI_TRY(load_given(job, path, err));
    memcpy(sets, job->given->set, (size_t)job->given->n * sizeof *sets);
    *found = 1;
    return TG_OK;
}

static int is_same(const tgi_stats *a, const tgi_stats *b)
{
    return a->count == b->count && a->nans == b->nans && a->min == b->min && a->max == b->max &&
           a->mean == b->mean && a->deviation == b->deviation && a->low == b->low &&
           a->high == b->high;
}

/* Behind the sets a journal has an int64_t: 1 when a file gave them, 0 when the run that began
 * it collected them. 0 bytes: the job needs none. */
static size_t kept_bytes(const tg_job *job)
{
    return tgi_normalize_needs_stats(&job->set.normalize)
               ? (size_t)job->map.n_stats * sizeof(tgi_stats) + sizeof(int64_t)
               : 0;
}

tg_status tgi_job_stats_keep(const tg_job *job, tgi_journal *j, const tgi_stats *sets,
                             int given, tgi_err *err)
{
    const size_t n = kept_bytes(job), of_sets = n - sizeof(int64_t);
    const int64_t from = given;
    char *text = tgi_malloc(TGI_TAG_PLAN, n);
    if (!text)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the statistics");
    memcpy(text, sets, of_sets);
    memcpy(text + of_sets, &from, sizeof from);
    const tg_status st = tgi_journal_set_stats(j, text, n, err);
    tgi_free(text);
    return st;
}

/* NULL: it has none, or those of another job. */
static const char *kept(const tg_job *job, const tgi_journal *j)
{
    size_t n;
    const void *text = tgi_journal_stats(j, &n);
    return n && n == kept_bytes(job) ? text : NULL;
}

int tgi_job_stats_kept(const tg_job *job, const tgi_journal *j, tgi_stats *sets, int *given)
{
    const char *text = kept(job, j);
    const size_t of_sets = kept_bytes(job) - sizeof(int64_t);
    int64_t from = 0;
    if (text) {
        memcpy(sets, text, of_sets);
        memcpy(&from, text + of_sets, sizeof from);
    }
    *given = from != 0;
    return text != NULL;
}

static tg_status not_given(const tg_job *job, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    return tgi_fail(err, TG_E_CHANGED,
                    "the interrupted output was made with statistics of a file, and %s%s: give "
                    "it by --stats, or give -y to discard that output and start over",
                    path ? path : "none is named now", path ? " is not there" : "");
}

tg_status tgi_job_stats_same(tg_job *job, const tgi_journal *j, tgi_err *err)
{
    int found;
    int64_t given;
    tgi_given_stats *now = NULL;
    const char *text = kept(job, j);
    if (!text)
        return TG_OK;
    const tgi_stats *used = (const void *)text;
    memcpy(&given, text + kept_bytes(job) - sizeof given, sizeof given);
    TGI_TRY(new_given(job, &now, err));
    tg_status st = tgi_job_stats_read(job, now->set, &found, err);
    if (st == TG_OK && !found && given)
        st = not_given(job, err);
    for (int64_t i = 0; st == TG_OK && found && i < now->n; i++)
        if (!is_same(&used[i], &now->set[i]))
            st = tgi_fail(err, TG_E_CHANGED,
                          "the interrupted output was made with other statistics than %s has "
                          "(of channel %lld, where the mean was %.9g and is %.9g): restore it, "
                          "or give -y to discard that output and start over",
                          tgi_opts_str(job->opts, TGI_OPT_STATS), (long long)i, used[i].mean,
                          now->set[i].mean);
    tgi_free(now);
    return st;
}

void tgi_stats_json(tgi_jw *w, const tgi_stats *sets, int64_t n)
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
    return tgi_cancel_signal() ? TG_E_CANCELLED : TG_OK;
}

tg_status tgi_stats_scratch(tgi_reserve *mem, void **scratch, tgi_err *err)
{
    return tgi_reserve_take(mem, "statistics", TGI_STATS_SCRATCH, scratch, err);
}

tg_status tgi_job_stats_collect(tg_job *job, const tgi_stats_args *with, tgi_stats *sets,
                                tgi_err *err)
{
    tgi_stats_args a = *with;
    a.map = &job->map;
    a.norm = &job->set.normalize;
    a.source = with->source ? with->source : job->source;
    if (!with->tick) {
        a.tick = tell;
        a.user = job;
    }
    const tg_status st = tgi_stats_collect(&a, sets, err);
    return st == TG_E_CANCELLED ? tgi_fail(err, st, "stopped by %s", tgi_cancel_by()) : st;
}

tg_status tgi_job_stats_get(tg_job *job, tgi_reserve *mem, void *rows, size_t rows_bytes,
                            tgi_stats *sets, tgi_err *err)
{
    tgi_stats_args with = {.rows = rows, .rows_bytes = rows_bytes};
    int found = 0;
    TGI_TRY(tgi_job_stats_read(job, sets, &found, err));
    if (found)
        return TG_OK;
    TGI_TRY(tgi_stats_scratch(mem, &with.scratch, err));
    TGI_TRY(tgi_job_stats_collect(job, &with, sets, err));
    TGI_TRY(tgi_input_unchanged(tgi_source_held, job->source, err));
    return tgi_job_stats_write(job, sets, err);
}

/* A file came while they were gathered: another run wrote it. What it says is what holds. */
static tg_status written_meanwhile(tg_job *job, const char *path, const tgi_stats *sets,
                                   tgi_err *err)
{
    TGI_TRY(load_given(job, path, err));
    for (int64_t i = 0; i < job->given->n; i++)
        if (!is_same(&sets[i], &job->given->set[i]))
            return tgi_fail(err, TG_E_CHANGED,
                            "%s was written meanwhile, with other statistics: give the same "
                            "command to take them, or --stats another name",
                            path);
    return TG_OK;
}

/* Which channels of the image these are, where it is not all of them. */
static void put_picked(tgi_jw *w, const tg_job *job)
{
    int64_t n = 0, all;
    const int64_t *const picked = tgi_picked_channels(job->source, &n, &all);
    if (!picked)
        return;
    tgi_jw_begin(w, "channels_of", '[');
    for (int64_t i = 0; i < n; i++)
        tgi_jw_int(w, NULL, picked[i]);
    tgi_jw_end(w, ']');
}

tg_status tgi_job_stats_write(tg_job *job, const tgi_stats *sets, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    tgi_jw w = {0};
    char *text = NULL;
    if (!path || job->given)
        return TG_OK;
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "normalize", job->set.normalize_text);
    tgi_jw_str(&w, "image", job->set.input);
    put_picked(&w, job);
    tgi_stats_json(&w, sets, job->map.n_stats);
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, &text, err));
    tgi_err e = {0};
    tg_status st = tgi_write_text(path, text, 0, &e); /* a file that is there was read */
    tgi_free(text);
    if (st == TG_E_EXISTS && access(path, F_OK) == 0)
        return written_meanwhile(job, path, sets, err);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", e.text);
    job->stats_made = 1;
    tgi_given_stats *g = NULL;
    if ((st = new_given(job, &g, err)) == TG_OK) {
        memcpy(g->set, sets, (size_t)g->n * sizeof *sets);
        job->given = g;
    }
    return st;
}

void tgi_job_stats_forget(tg_job *job)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    if (!job->stats_made || !path || tgi_is_stream(path))
        return;
    unlink(path);
    tgi_free(job->given);
    job->given = NULL;
    job->stats_made = 0;
}
