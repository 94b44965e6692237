/* job_settings.c - every setting of a planned job: what holds, where it is from, and all of
 * them as a job file.
 *
 * A value that was set is shown as it was written. Where none was set and the engine found one,
 * the origin is "worked out" (from the machine, the budget, the input) or "descriptor". */
#include "engine/job/job_settings.h"
#include "engine/base/mem.h"
#include "engine/job/device_kinds.h"
#include "engine/job/ends.h"
#include "engine/job/for_images.h"
#include "engine/job/job.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_post.h"

#include <stdio.h>
#include <string.h>

#define VALUE 128    /* holds what is worked out */
#define MOST_OPEN 13 /* options that the engine may find a value for: those of worked_out */

struct tgi_job_settings_list {
    tg_setting at[TGI_OPT_COUNT];
    size_t n, n_text;
    char text[MOST_OPEN][VALUE];
};

/* The budget in a unit that --ram reads; below a KiB nothing is planned. */
static void budget_text(const tg_job *job, char *buf)
{
    snprintf(buf, VALUE, "%zuKiB", job->plan.budget / 1024);
}

static void tile_text(const tg_job *job, char *buf)
{
    const int64_t *cut = job->plan.choice.tiling.cut;
    if (cut[0] > 1)
        snprintf(buf, VALUE, "%lldx%lldx%lld", (long long)cut[0], (long long)cut[1],
                 (long long)cut[2]);
    else
        snprintf(buf, VALUE, "%lldx%lld", (long long)cut[1], (long long)cut[2]);
}

/* What holds where nobody said anything, or "auto". Returns the origin; NULL: the default. */
static const char *worked_out(const tg_job *job, tgi_opt id, char *buf)
{
    static const char by_engine[] = "worked out", by_descriptor[] = "descriptor";
    const tgi_settings *s = &job->set;
    switch (id) {
    case TGI_OPT_RAM:
        budget_text(job, buf);
        return by_engine;
    case TGI_OPT_TILE:
        tile_text(job, buf);
        return by_engine;
    case TGI_OPT_THREADS:
        snprintf(buf, VALUE, "%d", s->threads);
        return by_engine;
    case TGI_OPT_DEVICE:
        if (job->dev.ops)
            snprintf(buf, VALUE, "%s:%d", job->dev.ops->name, job->dev.info.id);
        else
            snprintf(buf, VALUE, "cpu");
        return by_engine;
    case TGI_OPT_PRECISION:
        snprintf(buf, VALUE, "%s", tgi_job_precision(job));
        return s->descriptor.fp32_only ? by_descriptor : by_engine;
    case TGI_OPT_VRAM:
        if (job->dev.ops)
            snprintf(buf, VALUE, "%lluKiB", (unsigned long long)(job->dev.budget_bytes / 1024));
        return job->dev.ops ? by_engine : NULL;
    case TGI_OPT_ISA:
        snprintf(buf, VALUE, "%s", s->backend->name);
        return by_engine;
    case TGI_OPT_NORMALIZE:
        snprintf(buf, VALUE, "%s", s->normalize_text);
        return s->descriptor.normalize[0] ? by_descriptor : NULL;
    case TGI_OPT_DTYPE:
        if (job->plan.layout && !job->post)
            snprintf(buf, VALUE, "%s", tgi_dtype_name(s->dtype));
        return !job->plan.layout || job->post ? NULL
               : s->descriptor.denormalize    ? by_descriptor
               : s->dtype == TG_DTYPE_F32     ? NULL
                                              : by_engine;
    case TGI_OPT_METHOD:
        snprintf(buf, VALUE, "%s", tgi_job_method(job->opts));
        return tgi_job_draws(job->opts) ? by_engine : NULL;
    case TGI_OPT_POST:
        snprintf(buf, VALUE, "%s", s->descriptor.post);
        return s->descriptor.post[0] ? by_descriptor : NULL;
    case TGI_OPT_LABELS:
        snprintf(buf, VALUE, "%s", s->labels ? "true" : "");
        return s->labels ? by_descriptor : NULL;
    default:
        return NULL;
    }
}

/* Part of the list: of the job, of what it does, and no file that the job is about. */
static int is_listed(const tg_job *job, tgi_opt id)
{
    const char *verb = tgi_job_inpaints(job->opts) ? "inpaint" : "run";
    static const tgi_opt files[] = {TGI_OPT_MODEL, TGI_OPT_INPUT, TGI_OPT_INPUT_TENSOR,
                                    TGI_OPT_OUTPUT, TGI_OPT_MASK};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (id == files[i])
            return 0;
    return tgi_opt_in_job(id) && strstr(tgi_option_table(NULL)[id].verbs, verb) != NULL;
}

static void add(const tg_job *job, struct tgi_job_settings_list *l, tgi_opt id)
{
    const tg_option *row = &tgi_option_table(NULL)[id];
    const tg_opts *asked = tgi_job_asked(job);
    const char *value = tgi_opts_str(asked, id);
    const char *origin = tgi_opts_origin(asked, id);
    const int open = !value || strcmp(value, "auto") == 0 ||
                     (id == TGI_OPT_LABELS && !tgi_opts_flag(asked, id));
    char *text = l->text[l->n_text], none[VALUE] = "";
    const char *found = open ? worked_out(job, id, l->n_text < MOST_OPEN ? text : none) : NULL;
    if (open && l->n_text < MOST_OPEN && text[0]) {
        value = text;
        l->n_text++;
    }
    if (found)
        origin = found;
    if (value)
        l->at[l->n++] =
            (tg_setting){row->name, value, origin,
                         !found && (!tgi_opts_given(asked, id) ||
                                    (row->fallback && strcmp(value, row->fallback) == 0))};
}

tg_status tgi_job_settings(tg_job *job, const tg_setting **list, size_t *n, tgi_err *err)
{
    if (!job->settings)
        job->settings = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *job->settings);
    if (!job->settings)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the settings of a job");
    memset(job->settings, 0, sizeof *job->settings);
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        if (is_listed(job, (tgi_opt)i))
            add(job, job->settings, (tgi_opt)i);
    *list = job->settings->at;
    *n = job->settings->n;
    return TG_OK;
}

tg_status tgi_job_put_settings(tgi_jw *w, tg_job *job, tgi_err *err)
{
    const tg_setting *s;
    size_t n;
    TGI_TRY(tgi_job_settings(job, &s, &n, err));
    tgi_jw_begin(w, "settings", '[');
    for (size_t i = 0; i < n; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "name", s[i].name);
        tgi_jw_str(w, "value", s[i].value);
        tgi_jw_str(w, "origin", s[i].origin);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    return TG_OK;
}

/* The tile stays "auto": the same budget chooses the same one, and a tile that is given also
 * decides the grid of the output file. A share of the free memory becomes what it is now. */
static tg_status set_resolved(const tg_job *job, const tg_setting *s, tg_opts *o, tgi_err *err)
{
    const tgi_opt id = tgi_opt_find(s->name);
    char budget[VALUE];
    budget_text(job, budget);
    if (id == TGI_OPT_TILE && !tgi_opts_given(tgi_job_asked(job), id))
        return tgi_opts_set(o, s->name, "auto", err);
    if (tgi_for_images_idle(job, id))
        return tgi_opts_set(o, s->name, tgi_for_images_idle(job, id), err);
    if (id == TGI_OPT_RAM && strchr(s->value, '%'))
        return tgi_opts_set(o, s->name, budget, err);
    if (id == TGI_OPT_DTYPE && job->plan.layout && !job->post)
        return tgi_opts_set(o, s->name, tgi_dtype_name(job->set.dtype), err);
    return tgi_opts_set(o, s->name, s->value, err);
}

tg_status tgi_job_save_json(tg_job *job, char **json, tgi_err *err)
{
    const tg_setting *s = NULL;
    tg_opts *o = NULL;
    size_t n = 0;
    tg_status st = tgi_job_settings(job, &s, &n, err);
    if (st == TG_OK)
        st = tgi_opts_new(&o, err);
    if (st == TG_OK)
        st = tgi_opts_copy(o, tgi_job_asked(job), err);
    for (size_t i = 0; st == TG_OK && i < n; i++)
        st = set_resolved(job, &s[i], o, err);
    if (st == TG_OK)
        st = tgi_opts_to_json(o, json, err);
    tgi_opts_free(&o);
    return st;
}
