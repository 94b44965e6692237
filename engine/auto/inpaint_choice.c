/* inpaint_choice.c - see inpaint_choice.h. */
#include "engine/auto/inpaint_choice.h"

#include "engine/base/cancel.h"
#include "engine/base/ctx.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_open.h"
#include "engine/job/job_outpaint.h"
#include "engine/job/job_plan.h"
#include "engine/job/output_job.h"
#include "engine/job/roofline.h"
#include "engine/out/fingerprint_text.h"
#include "engine/out/frame_files.h"
#include "engine/plan/lessons.h"
#include "engine/settings/opts_internal.h"
#include "io/film_out.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AUTO "preset auto"
#define LOWER "--allow-lower-quality"
#define MOST_WAYS 64
#define SHORT 32

/* Options that a way sets, and what it says of each. */
enum { SUBVIDEO, NEIGHBOR, STRIDE, RATIO, EXACT, PRECISION, SCRATCH, VARIED };
static const tgi_opt varied[VARIED] = {
    TGI_OPT_SUBVIDEO_LENGTH, TGI_OPT_NEIGHBOR_LENGTH, TGI_OPT_REF_STRIDE, TGI_OPT_RESIZE_RATIO,
    TGI_OPT_EXACT,           TGI_OPT_PRECISION,       TGI_OPT_SCRATCH};

/* Each has references; the fewer neighbours, the more of those. */
static const int64_t steps[][3] = {
    {80, 10, 10}, {80, 8, 15}, {50, 6, 10}, {50, 3, 10}, {30, 3, 10}};
static const double ratios[] = {1, 0.75, 0.5, 0.375, 0.25};
#define N(list) ((int)(sizeof(list) / sizeof((list)[0])))

typedef struct way {
    const char *what;
    char value[VARIED][SHORT]; /* "": as it is */
    int region;                /* --region auto */
    int step, bf16, exact;
    int fits;
    tgi_err why_not;
    int64_t height, width, film_height, film_width;
    tgi_crop part;
    uint64_t peak, scratch, networks, budget;
    double most, least; /* seconds */
} way;

typedef struct choice {
    tg_opts *o;
    int lower;    /* what was asked may be lowered */
    int sized;    /* the size is said */
    int drawn;    /* ProPainter: it has settings */
    int may_bf16; /* the processor has it, and nobody said what to take */
    int kept;     /* of an earlier run */
    int64_t asked[3];
    double asked_ratio;
    size_t beside;
    int cuts; /* a file in memory: scenes that were found once (--split-scenes auto); < 0: none */
    tgi_machine_gpu gpu; /* the first one; no memory: there is none */
    way tried[MOST_WAYS];
    int n, shown[8], n_shown, chosen;
} choice;

/* ---- A way ------------------------------------------------------------------------------- */

static int is_open(const choice *c, int which)
{
    return c->lower || !tgi_opts_asked(c->o, varied[which]);
}

static tg_status options_of(const choice *c, const way *w, tg_opts *to, tgi_err *err)
{
    TGI_TRY(tgi_opts_copy(to, c->o, err));
    for (int i = 0; i < VARIED; i++)
        if (w->value[i][0])
            TGI_TRY(tgi_opts_set(to, tgi_option_table(NULL)[varied[i]].name, w->value[i], err));
    if (c->cuts >= 0) {
        char path[64];
        snprintf(path, sizeof path, "/dev/fd/%d", c->cuts);
        TGI_TRY(tgi_opts_set(to, "split-scenes", path, err));
    }
    return w->region ? tgi_opts_set(to, "region", "auto", err) : TG_OK;
}

/* Scenes are found in a pass over the film: once, not for each way. What cannot be kept is found again. */
static void keep_cuts(choice *c, const tg_job *job)
{
    const char *split = tgi_opts_str(c->o, TGI_OPT_SPLIT_SCENES);
    const tgi_cuts *found = job && job->source ? tgi_inpaint_cuts(job->source) : NULL;
    if (c->cuts >= 0 || !found || !split || strcmp(split, "auto") != 0)
        return;
    tgi_cuts own = {.n = found->n,
                    .first =
                        tgi_malloc(TGI_TAG_PLAN, (size_t)(found->n + 1) * sizeof *own.first)};
    for (int64_t i = 0; own.first && i < own.n; i++)
        own.first[i] = found->first[i] + tgi_film_source_first(job->source);
    char *text = own.first ? tgi_cuts_text(&own, 0) : NULL;
    const int fd = text ? memfd_create("cuts", MFD_CLOEXEC) : -1;
    if (fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text))
        c->cuts = fd;
    else if (fd >= 0)
        close(fd);
    tgi_free(text);
    tgi_free(own.first);
}

static void keep_plan(way *w, const tg_job *job)
{
    const double most = job->plan.seconds;
    const tgi_image_info *film = job->source->ops->info(job->source);
    tgi_inpaint_frames(job->source, &w->height, &w->width, &w->part);
    w->film_height = film->height;
    w->film_width = film->width;
    w->peak = job->plan.bytes.total;
    w->budget = job->plan.budget;
    w->scratch = tgi_inpaint_disk(job->source);
    w->networks = tgi_inpaint_networks(job->source);
    w->most = most;
    w->least = most - job->plan.masks_decide;
    w->fits = !w->scratch || w->scratch <= job->scratch_place.free_bytes;
    if (!w->fits)
        (void)tgi_fail(&w->why_not, TG_E_BUDGET, "no room for the frames in --scratch");
}

/* Plan it. What does not fit, or is too small for the method, is no failure. */
static tg_status plan_way(choice *c, way *w, tgi_err *err)
{
    static const tgi_lessons none;
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tgi_err e = {0};
    tg_status st = tgi_check_cancel(err);
    if (st != TG_OK)
        return st;
    st = tgi_opts_new(&o, &e);
    if (st == TG_OK)
        st = options_of(c, w, o, &e);
    if (st == TG_OK)
        st = tgi_job_open(NULL, o, &job, &e);
    if (st == TG_OK) {
        job->known.lessons = &none;
        job->known.others_bytes = c->beside;
        keep_cuts(c, job);
        st = tgi_job_plan_output(job, &e);
    }
    if (st == TG_OK)
        keep_plan(w, job);
    else
        w->why_not = e;
    tgi_job_close(&job);
    tgi_opts_free(&o);
    const int small = st == TG_E_ARG && (w->value[RATIO][0] || w->region);
    if (st == TG_OK || st == TG_E_BUDGET || small)
        return TG_OK;
    if (err)
        *err = e;
    return st;
}

/* Kernels: as they are; direct ones, whose weights are smaller; products of bfloat16. */
enum { USUAL, DIRECT, BF16, N_KERNELS };

/* A way of that step and size, below 0: of what was asked. */
static way make_way(const choice *c, const char *what, int step, double ratio, int kernels)
{
    way w = {.what = what, .step = step, .bf16 = kernels == BF16, .exact = kernels == DIRECT};
    for (int i = 0; i < 3 && step >= 0 && c->drawn; i++)
        if (is_open(c, i))
            snprintf(w.value[i], SHORT, "%lld", (long long)steps[step][i]);
    if (ratio < 1)
        snprintf(w.value[RATIO], SHORT, "%g", ratio * c->asked_ratio);
    if (w.exact)
        snprintf(w.value[EXACT], SHORT, "true");
    if (w.bf16)
        snprintf(w.value[PRECISION], SHORT, "bf16");
    if (!tgi_opts_given(c->o, TGI_OPT_SCRATCH))
        snprintf(w.value[SCRATCH], SHORT, "auto");
    return w;
}

/* Its place among those that were tried; < 0: *st is why. */
static int try_way(choice *c, const way *w, tg_status *st, tgi_err *err)
{
    if (c->n == MOST_WAYS)
        return -1;
    c->tried[c->n] = *w;
    *st = plan_way(c, &c->tried[c->n], err);
    return *st == TG_OK ? c->n++ : -1;
}

/* No better than what was asked, in anything. */
static int is_lower(const choice *c, int step)
{
    return steps[step][0] <= c->asked[0] && steps[step][1] <= c->asked[1] &&
           steps[step][2] >= c->asked[2];
}

/* 1: these kernels may be tried where the usual ones do not fit. */
static int may_take(const choice *c, int kernels, int step)
{
    if (kernels == USUAL)
        return 1;
    if (!c->drawn)
        return 0;
    return kernels == DIRECT ? !tgi_opts_asked(c->o, TGI_OPT_EXACT)
                             : c->may_bf16 && step + 1 == N(steps);
}

/* One step at a size, by the kernels that may be. *end: smaller steps are as little possible. */
static tg_status try_step(choice *c, const char *what, int region, double ratio, int step,
                          int *found, int *end, tgi_err *err)
{
    tg_status st = TG_OK;
    for (int kernels = USUAL; kernels < N_KERNELS; kernels++) {
        way w = make_way(c, what, step, ratio, kernels);
        w.region = region;
        if (!may_take(c, kernels, step))
            continue;
        const int at = try_way(c, &w, &st, err);
        *end = at < 0 || c->tried[at].why_not.code == TG_E_ARG;
        if (at >= 0 && c->tried[at].fits)
            *found = at;
        if (*end || *found >= 0)
            return st;
    }
    return TG_OK;
}

/* The first step from `from` on that fits at that size; *found < 0: none. */
static tg_status go_down(choice *c, const char *what, int region, double ratio, int from,
                         int *found, tgi_err *err)
{
    const int n = c->drawn ? N(steps) : 1;
    int end = 0;
    *found = -1;
    for (int step = from; step < n && !end && *found < 0; step++)
        if (!c->lower || is_lower(c, step))
            TGI_TRY(try_step(c, what, region, ratio, step, found, &end, err));
    return TG_OK;
}

static void show(choice *c, int at)
{
    for (int i = 0; i < c->n_shown; i++)
        if (c->shown[i] == at)
            return;
    if (at >= 0 && c->n_shown < N(c->shown))
        c->shown[c->n_shown++] = at;
}

/* ---- All of them ------------------------------------------------------------------------- */

/* The largest smaller size that fits. */
static tg_status find_smaller(choice *c, int *found, tgi_err *err)
{
    *found = -1;
    for (int i = 1; i < N(ratios) && *found < 0 && !c->sized; i++)
        TGI_TRY(go_down(c, "smaller frames", 0, ratios[i], 0, found, err));
    return TG_OK;
}

/* The first step below that takes less memory. */
static tg_status find_less(choice *c, int whole, int *found, tgi_err *err)
{
    *found = -1;
    if (whole < 0 || !c->drawn)
        return TG_OK;
    for (int step = c->tried[whole].step + 1; step < N(steps); step++) {
        TGI_TRY(go_down(c, "fewer frames together", 0, 1, step, found, err));
        if (*found >= 0 && c->tried[*found].peak < c->tried[whole].peak)
            return TG_OK;
    }
    *found = -1;
    return TG_OK;
}

static tg_status find_all(choice *c, tgi_err *err)
{
    int whole, less = -1, region = -1, smaller;
    const char *all = tgi_opts_given(c->o, TGI_OPT_REGION) ? "the region" : "whole frames";
    TGI_TRY(go_down(c, all, 0, 1, 0, &whole, err));
    if (whole > 0)
        show(c, 0); /* what more memory would be for */
    show(c, whole < 0 ? c->n - 1 : whole);
    const int may_crop = !tgi_opts_given(c->o, TGI_OPT_REGION) && !tgi_job_outpaints(c->o);
    if (may_crop)
        TGI_TRY(go_down(c, "--region auto", 1, 1, 0, &region, err));
    show(c, region < 0 && may_crop ? c->n - 1 : region);
    TGI_TRY(find_less(c, whole, &less, err));
    show(c, less);
    TGI_TRY(find_smaller(c, &smaller, err));
    show(c, smaller < 0 && !c->sized ? c->n - 1 : smaller);
    c->chosen = whole >= 0 ? whole : smaller;
    return TG_OK;
}

/* What was asked, if it fits, else what comes below it. */
static tg_status find_lower(choice *c, tgi_err *err)
{
    tg_status st = TG_OK;
    way asked = make_way(c, "as asked", -1, 1, 0);
    c->chosen = try_way(c, &asked, &st, err);
    if (c->chosen < 0 || c->tried[c->chosen].fits)
        return st;
    show(c, c->chosen);
    TGI_TRY(go_down(c, "fewer frames together", 0, 1, 0, &c->chosen, err));
    for (int i = 1; i < N(ratios) && c->chosen < 0; i++)
        TGI_TRY(go_down(c, "smaller frames", 0, ratios[i], 0, &c->chosen, err));
    show(c, c->chosen);
    return TG_OK;
}

/* Settings of the run whose output is there: the same command goes on with it. 0: there is none. */
static int find_kept(choice *c, way *w)
{
    char list[PATH_MAX];
    const char *output = tgi_opts_str(c->o, TGI_OPT_OUTPUT);
    char *job = output && !tgi_opts_flag(c->o, TGI_OPT_YES)
                    ? tgi_output_job(tgi_frames_list_of(output, list, sizeof list))
                    : NULL;
    if (!job)
        return 0;
    *w = make_way(c, "of the run that began it", -1, 1, 0);
    for (int i = SUBVIDEO; i <= EXACT; i++)
        if (is_open(c, i))
            (void)tgi_fingerprint_get(job, strlen(job), tgi_option_table(NULL)[varied[i]].name,
                                      w->value[i], SHORT);
    char kinds[SHORT] = "";
    (void)tgi_fingerprint_get(job, strlen(job), "precision", kinds, sizeof kinds);
    if (strcmp(kinds, "bf16") == 0 && is_open(c, PRECISION))
        snprintf(w->value[PRECISION], SHORT, "bf16");
    const int drew = w->value[SUBVIDEO][0] != 0 || !c->drawn;
    tgi_free(job);
    return drew;
}

static tg_status search(choice *c, tgi_err *err)
{
    tg_status st = TG_OK;
    way w;
    c->chosen = -1;
    if (find_kept(c, &w)) {
        c->kept = 1;
        c->chosen = try_way(c, &w, &st, err);
        show(c, c->chosen);
    } else {
        st = c->lower ? find_lower(c, err) : find_all(c, err);
    }
    if (st != TG_OK)
        return st;
    if (c->chosen >= 0 && c->tried[c->chosen].fits)
        return TG_OK;
    if (err)
        *err = c->tried[0].why_not;
    return c->tried[0].why_not.code;
}

/* ---- What is told ------------------------------------------------------------------------ */

static const char *value_of(const choice *c, const way *w, int which)
{
    return w->value[which][0] ? w->value[which] : tgi_opts_str(c->o, varied[which]);
}

static int is_published(const choice *c, const way *w)
{
    int same = c->drawn && !c->sized && !tgi_opts_given(c->o, TGI_OPT_REGION);
    for (int i = 0; i < 3; i++)
        same &= strtoll(value_of(c, w, i), NULL, 10) == steps[0][i];
    return same;
}

static const char *what_differs(const choice *c, const way *w)
{
    if (!w->fits)
        return w->why_not.text;
    if (w->region && w->part.height == w->film_height && w->part.width == w->film_width)
        return "nothing: what is hidden, and what is around it, is all of the frame";
    if (w->region && !c->drawn)
        return "what lies around the region is not looked at";
    if (w->region)
        return "motion and attention see nothing of the rest of the frames, so what is drawn "
               "is "
               "another thing";
    if (w->value[RATIO][0] && w->step > 0)
        return "what is drawn is enlarged, so it is softer, and fewer frames are seen together";
    if (w->value[RATIO][0])
        return "what is drawn is enlarged, so it is softer";
    if (w->step > 0)
        return "fewer frames are seen together, so less is found of what they show";
    if (w->bf16)
        return "products are rounded to bfloat16, some 3e-3 relative off";
    if (w->exact)
        return "direct kernels: it takes longer, and is the same but for rounding";
    if (c->kept)
        return "nothing: the output that is there is gone on with";
    return is_published(c, w) ? "nothing: the published script's settings" : "nothing";
}

static void put_way(tgi_jw *j, const choice *c, int at)
{
    const way *w = &c->tried[at];
    const char *scratch = value_of(c, w, SCRATCH), *kind = value_of(c, w, PRECISION);
    tgi_jw_begin(j, NULL, '{');
    tgi_jw_str(j, "what", w->what);
    tgi_jw_bool(j, "chosen", at == c->chosen);
    tgi_jw_bool(j, "fits", w->fits);
    tgi_jw_int(j, "width", w->width);
    tgi_jw_int(j, "height", w->height);
    if (c->drawn) {
        tgi_jw_str(j, "precision", kind && strcmp(kind, "bf16") == 0 ? "bf16" : "fp32");
        tgi_jw_bool(j, "exact", w->exact || tgi_opts_flag(c->o, TGI_OPT_EXACT));
        tgi_jw_int(j, "subvideo_length", strtoll(value_of(c, w, SUBVIDEO), NULL, 10));
        tgi_jw_int(j, "neighbor_length", strtoll(value_of(c, w, NEIGHBOR), NULL, 10));
        tgi_jw_int(j, "ref_stride", strtoll(value_of(c, w, STRIDE), NULL, 10));
    }
    if (w->fits) {
        char region[96];
        snprintf(region, sizeof region, "%lld,%lld,%lld,%lld", (long long)w->part.x,
                 (long long)w->part.y, (long long)w->part.width, (long long)w->part.height);
        tgi_jw_str(j, "region", region);
        tgi_jw_uint(j, "peak_bytes", w->peak);
        tgi_jw_uint(j, "scratch_bytes", w->scratch);
        tgi_jw_str(j, "scratch", w->scratch ? scratch : NULL);
        tgi_jw_uint(j, "device_bytes", w->networks);
        if (c->gpu.total_bytes && w->networks)
            tgi_jw_bool(j, "device_fits", w->networks <= tgi_device_usable(c->gpu.total_bytes));
        tgi_jw_str(j, "device", "planned, not run");
        tgi_jw_num(j, "seconds_least", w->least);
        tgi_jw_num(j, "seconds", w->most);
    }
    tgi_jw_str(j, "differs", what_differs(c, w));
    tgi_jw_end(j, '}');
}

/* Of nothing that fits there is no budget. */
static tg_status tell(const choice *c, char **json, tgi_err *err)
{
    tgi_jw j = {0};
    tgi_jw_begin(&j, NULL, '{');
    if (c->chosen >= 0)
        tgi_jw_uint(&j, "budget_bytes", c->tried[c->chosen].budget);
    tgi_jw_bool(&j, "kept", c->kept);
    tgi_jw_str(&j, "gpu", c->gpu.total_bytes ? c->gpu.name : NULL);
    tgi_jw_begin(&j, "ways", '[');
    for (int i = 0; i < c->n_shown; i++)
        put_way(&j, c, c->shown[i]);
    tgi_jw_end(&j, ']');
    tgi_jw_end(&j, '}');
    return tgi_jw_take(&j, json, err);
}

/* ---- The choice -------------------------------------------------------------------------- */

/* What was chosen, into the options; what was asked and is lowered is remembered for the receipt. */
static tg_status take(choice *c, tgi_err *err)
{
    const way *w = &c->tried[c->chosen];
    char text[sizeof c->o->lowered] = "";
    for (int i = 0; i < VARIED; i++) {
        const tg_option *row = &tgi_option_table(NULL)[varied[i]];
        const char *was = tgi_opts_str(c->o, varied[i]);
        const size_t n = strlen(text);
        if (!w->value[i][0] || (was && strcmp(was, w->value[i]) == 0))
            continue;
        if (c->lower && varied[i] != TGI_OPT_SCRATCH)
            snprintf(text + n, sizeof text - n, "%s%s %s, not %s", n ? "; " : "", row->name,
                     w->value[i],
                     was          ? was
                     : i == RATIO ? "1"
                                  : "false");
        TGI_TRY(tgi_opts_set_from(c->o, row->name, w->value[i],
                                  c->lower ? TGI_FROM_SET : TGI_FROM_PRESET,
                                  c->lower ? LOWER : AUTO, err));
    }
    memcpy(c->o->lowered, text, sizeof text);
    return TG_OK;
}

static tg_status look_at_machine(choice *c, tgi_err *err)
{
    tgi_machine *m = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *m);
    tg_status st = m ? tgi_machine_of(c->o, m, err)
                     : tgi_fail(err, TG_E_NOMEM, "no memory to look at the machine");
    if (st == TG_OK) {
        tgi_machine_find_gpus(m);
        if (m->n_gpus)
            c->gpu = m->gpu[0];
        c->may_bf16 = c->drawn && m->bf16 && !tgi_opts_asked(c->o, TGI_OPT_PRECISION);
    }
    tgi_free(m);
    return st;
}

static void look_at_options(choice *c)
{
    const char *ratio = tgi_opts_str(c->o, TGI_OPT_RESIZE_RATIO);
    for (int i = 0; i < 3; i++)
        c->asked[i] = tgi_opts_int(c->o, varied[i], steps[0][i]);
    c->asked_ratio = ratio ? strtod(ratio, NULL) : 1;
    c->drawn = tgi_job_draws(c->o);
    c->sized = tgi_opts_asked(c->o, TGI_OPT_WIDTH) || tgi_opts_asked(c->o, TGI_OPT_HEIGHT) ||
               tgi_opts_asked(c->o, TGI_OPT_RESIZE_RATIO);
}

static tg_status choose(choice *c, tg_opts *o, int lower, size_t held, tgi_err *err)
{
    c->o = o;
    c->cuts = -1;
    c->lower = lower;
    look_at_options(c);
    c->beside = held;
    const tg_status st = look_at_machine(c, err);
    return st == TG_OK ? search(c, err) : st;
}

static void end_choice(choice **c)
{
    if (*c && (*c)->cuts >= 0)
        close((*c)->cuts);
    tgi_free(*c);
    *c = NULL;
}

tg_status tgi_inpaint_choose(tg_opts *o, char **json, tgi_err *err)
{
    const char *preset = tgi_opts_str(o, TGI_OPT_PRESET);
    const int wanted = preset && strcmp(preset, "auto") == 0;
    *json = NULL;
    if (!wanted && !tgi_opts_flag(o, TGI_OPT_ALLOW_LOWER_QUALITY))
        return TG_OK;
    choice *c = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory to search settings");
    tg_status st = choose(c, o, !wanted, sizeof *c, err);
    tgi_err none = {0};
    if (st == TG_E_BUDGET)
        (void)tell(c, json, &none); /* what was tried */
    else if (st == TG_OK && (wanted || c->n_shown > 1))
        st = tell(c, json, err);
    if (st == TG_OK)
        st = take(c, err);
    end_choice(&c);
    return st;
}

/* ---- A remedy ---------------------------------------------------------------------------- */

static void write_remedy(const choice *c, tg_remedy *r)
{
    const way *w = &c->tried[c->chosen];
    *r = (tg_remedy){.peak_bytes = w->peak};
    int same = 1;
    for (int i = 0; i < 3; i++)
        same &= strtoll(value_of(c, w, i), NULL, 10) == c->asked[i];
    snprintf(r->loses, sizeof r->loses, "%s",
             w->value[RATIO][0] ? "quality: smaller frames, enlarged"
             : same             ? "time, and disk space while it runs"
                                : "quality: fewer frames are seen together");
    for (int i = 0; i < VARIED && r->n_options < sizeof r->option / sizeof r->option[0]; i++)
        if (w->value[i][0] && (i > STRIDE || !same)) {
            r->option[r->n_options].name = tgi_option_table(NULL)[varied[i]].name;
            snprintf(r->option[r->n_options++].value, sizeof r->option[0].value, "%s",
                     i == EXACT ? "1" : w->value[i]);
        }
}

void tgi_inpaint_remedy(const tg_opts *o, tg_status why, tg_refusal *r)
{
    tgi_err none = {0};
    tg_opts *own = NULL;
    char ram[32];
    if (r->n_remedies == sizeof r->remedy / sizeof r->remedy[0] || !tgi_job_inpaints(o) ||
        !tgi_job_draws(o) || tgi_opts_given(o, TGI_OPT_PRESET))
        return;
    choice *c = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *c);
    snprintf(ram, sizeof ram, "%lluMiB", (unsigned long long)(r->free_bytes / 10 * 9 >> 20));
    tg_status st = c ? tgi_opts_new(&own, &none) : TG_E_NOMEM;
    if (st == TG_OK)
        st = tgi_opts_copy(own, o, &none);
    if (st == TG_OK && why == TG_E_NOMEM)
        st = tgi_opts_set(own, "ram", ram, &none);
    /* What the failed job holds is gone when the command runs. */
    if (st == TG_OK && choose(c, own, 1, tgi_mem_held(), &none) == TG_OK && !c->kept) {
        tg_remedy *to = &r->remedy[r->n_remedies++];
        write_remedy(c, to);
        if (why == TG_E_NOMEM && to->n_options < sizeof to->option / sizeof to->option[0]) {
            to->option[to->n_options].name = "ram";
            snprintf(to->option[to->n_options++].value, sizeof to->option[0].value, "%s", ram);
        }
    }
    tgi_opts_free(&own);
    end_choice(&c);
}
