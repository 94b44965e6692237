/* inpaint_choice.c - see inpaint_choice.h. */
#include "engine/auto/inpaint_choice.h"
#include "engine/auto/inpaint_inside.h"

#include "engine/base/cancel.h"
#include "engine/base/ctx.h"
#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_open.h"
#include "engine/job/job_outpaint.h"
#include "engine/job/job_plan.h"
#include "engine/job/output_job.h"
#include "engine/job/roofline.h"
#include "engine/job/source_device.h"
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

#define LOWER "--allow-lower-quality"
#define SHORT TGI_NUMBER_TEXT

const tgi_opt tgi_way_sets[VARIED] = {
    TGI_OPT_SUBVIDEO_LENGTH, TGI_OPT_NEIGHBOR_LENGTH, TGI_OPT_REF_STRIDE, TGI_OPT_RESIZE_RATIO,
    TGI_OPT_EXACT,           TGI_OPT_PRECISION,       TGI_OPT_SCRATCH,    TGI_OPT_DEVICE};

const int64_t tgi_way_step[TGI_WAY_STEPS][3] = {
    {80, 10, 10}, {80, 8, 15}, {50, 6, 10}, {50, 3, 10}, {30, 3, 10}};
static const double ratios[] = {1, 0.75, 0.5, 0.375, 0.25};
#define N(list) ((int)(sizeof(list) / sizeof((list)[0])))

/* ---- A way ------------------------------------------------------------------------------- */

static int is_open(const choice *c, int which)
{
    return c->lower || !tgi_opts_asked(c->o, tgi_way_sets[which]);
}

static tg_status options_of(const choice *c, const way *w, tg_opts *to, tgi_err *err)
{
    TGI_TRY(tgi_opts_copy(to, c->o, err));
    for (int i = 0; i < VARIED; i++)
        if (w->value[i][0])
            TGI_TRY(tgi_opts_set(to, tgi_option_table(NULL)[tgi_way_sets[i]].name, w->value[i],
                                 err));
    if (c->cuts >= 0) {
        char path[64];
        snprintf(path, sizeof path, "/dev/fd/%d", c->cuts);
        TGI_TRY(tgi_opts_set(to, "split-scenes", path, err));
    }
    if (w->vram[0])
        TGI_TRY(tgi_opts_set(to, "vram", w->vram, err));
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
    w->device =
        job->dev.for_source ? tgi_job_device_planned(job) : tgi_inpaint_networks(job->source);
    w->most = most;
    w->least = most - job->plan.masks_decide;
    w->fits = !w->scratch || w->scratch <= job->scratch_place.free_bytes;
    if (!w->fits)
        (void)tgi_fail(&w->why_not, TG_E_BUDGET, "no room for the frames in --scratch");
}

/* A job of its own, planned; *out also where that failed, unless it could not be opened. */
static tg_status plan_job(choice *c, const way *w, tg_status (*by)(tg_job *job, tgi_err *err),
                          tg_job **out, tgi_err *err)
{
    static const tgi_lessons none;
    tg_opts *o = NULL;
    *out = NULL;
    tg_status st = tgi_opts_new(&o, err);
    if (st == TG_OK)
        st = options_of(c, w, o, err);
    if (st == TG_OK)
        st = tgi_job_open(NULL, o, out, err);
    if (st == TG_OK) {
        (*out)->known.lessons = &none;
        (*out)->known.others_bytes = c->beside;
        keep_cuts(c, *out);
        if (tgi_opts_given(c->o, TGI_OPT_PREVIEW))
            (*out)->set.writer = NULL; /* the PNG is of a strip */
        st = by(*out, err);
    }
    tgi_opts_free(&o);
    return st;
}

/* 1: the GPU, which nobody named, is done without from now on. */
static int gives_up_device(choice *c, const way *w, tg_status st, const tgi_err *why)
{
    if (!w->far || c->named || (st != TG_E_DEVICE && st != TG_E_UNSUPPORTED))
        return 0;
    c->may_far = 0;
    snprintf(c->no_device, sizeof c->no_device, "%.250s", why->text);
    return 1;
}

/* Plan it. What does not fit, or is too small for the method, is no failure. */
static tg_status plan_way(choice *c, way *w, tgi_err *err)
{
    tg_job *job = NULL;
    tgi_err e = {0};
    tg_status st = tgi_check_cancel(err);
    if (st != TG_OK)
        return st;
    st = plan_job(c, w, tgi_job_plan_output, &job, &e);
    if (st == TG_OK)
        keep_plan(w, job);
    else
        w->why_not = e;
    if (job && w->far) {
        w->needs = st == TG_E_BUDGET ? job->refused_bytes : 0;
        snprintf(c->device, sizeof c->device, "%.127s", job->device_text);
    }
    tgi_job_close(&job);
    const int small = st == TG_E_ARG && (w->value[RATIO][0] || w->region);
    if (st == TG_OK || st == TG_E_BUDGET || small || gives_up_device(c, w, st, &e))
        return TG_OK;
    if (err)
        *err = e;
    return st;
}

/* Kernels: as they are; direct ones, whose weights are smaller; products of bfloat16, or on a GPU all of float16. */
enum { USUAL, DIRECT, ROUNDED, N_KERNELS };

/* A way of that step and size, below 0: of what was asked. */
static way make_way(const choice *c, const char *what, int step, double ratio, int kernels,
                    int far)
{
    way w = {.what = what,
             .step = step,
             .rounded = kernels == ROUNDED,
             .exact = kernels == DIRECT,
             .far = far};
    for (int i = 0; i < 3 && step >= 0 && c->drawn; i++)
        if (is_open(c, i))
            snprintf(w.value[i], SHORT, "%lld", (long long)tgi_way_step[step][i]);
    if (ratio < 1)
        tgi_number_digits(ratio * c->asked_ratio, 6, w.value[RATIO]);
    if (w.exact)
        snprintf(w.value[EXACT], SHORT, "true");
    if (w.rounded)
        snprintf(w.value[PRECISION], SHORT, far ? "fp16" : "bf16");
    if (far && !c->named)
        snprintf(w.value[DEVICE], SHORT, "cuda");
    else if (tgi_job_device_by_auto(c->o)) /* it was chosen before */
        snprintf(w.value[DEVICE], SHORT, "cpu");
    if (!tgi_opts_given(c->o, TGI_OPT_SCRATCH))
        snprintf(w.value[SCRATCH], SHORT, "auto");
    return w;
}

/* Its place among those that were tried; < 0: *st is why. */
static int try_way(choice *c, const way *w, tg_status *st, tgi_err *err)
{
    if (c->n == TGI_MOST_WAYS)
        return -1;
    c->tried[c->n] = *w;
    *st = plan_way(c, &c->tried[c->n], err);
    return *st == TG_OK ? c->n++ : -1;
}

/* No better than what was asked, in anything. */
static int is_lower(const choice *c, int step)
{
    return tgi_way_step[step][0] <= c->asked[0] && tgi_way_step[step][1] <= c->asked[1] &&
           tgi_way_step[step][2] >= c->asked[2];
}

/* 1: these kernels may be tried there where the usual ones do not fit. */
static int may_take(const choice *c, int kernels, int step, int far)
{
    if (!(far ? c->may_far : c->may_near))
        return 0;
    if (kernels == USUAL)
        return 1;
    if (!c->drawn)
        return 0;
    return kernels == DIRECT ? !tgi_opts_asked(c->o, TGI_OPT_EXACT)
                             : (far ? c->may_half : c->may_bf16) && step + 1 == TGI_WAY_STEPS;
}

/* One step at a size by some kernels, on what of the two takes less time and has room. */
static tg_status try_kernels(choice *c, const way *as, double ratio, int kernels, int *found,
                             int *end, tgi_err *err)
{
    tg_status st = TG_OK;
    for (int far = 0; far <= 1 && !*end; far++) {
        way w = make_way(c, as->what, as->step, ratio, kernels, far);
        w.region = as->region;
        if (!may_take(c, kernels, as->step, far))
            continue;
        const int at = try_way(c, &w, &st, err);
        *end = at < 0 || c->tried[at].why_not.code == TG_E_ARG;
        if (at >= 0 && c->tried[at].fits &&
            (*found < 0 || c->tried[at].most < c->tried[*found].most))
            *found = at;
    }
    return st;
}

/* One step at a size, by the kernels that may be. *end: smaller steps are as little possible. */
static tg_status try_step(choice *c, const char *what, int region, double ratio, int step,
                          int *found, int *end, tgi_err *err)
{
    const way as = {.what = what, .region = region, .step = step};
    for (int kernels = USUAL; kernels < N_KERNELS && !*end && *found < 0; kernels++)
        TGI_TRY(try_kernels(c, &as, ratio, kernels, found, end, err));
    return TG_OK;
}

/* The first step from `from` on that fits at that size; *found < 0: none. */
static tg_status go_down(choice *c, const char *what, int region, double ratio, int from,
                         int *found, tgi_err *err)
{
    const int n = c->drawn ? TGI_WAY_STEPS : 1;
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

/* The same way on the other of the two, behind it: for comparison. */
static void show_other(choice *c, int at)
{
    const way *w = at >= 0 ? &c->tried[at] : NULL;
    for (int i = 0; w && i < c->n; i++) {
        const way *o = &c->tried[i];
        if (o->far != w->far && o->step == w->step && o->exact == w->exact &&
            o->rounded == w->rounded && o->region == w->region &&
            strcmp(o->value[RATIO], w->value[RATIO]) == 0 &&
            (o->fits || o->why_not.code == TG_E_BUDGET))
            show(c, i);
    }
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
    for (int step = c->tried[whole].step + 1; step < TGI_WAY_STEPS; step++) {
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
    if (whole > 0 && !c->tried[0].fits)
        show(c, 0); /* what more memory would be for */
    show(c, whole < 0 ? c->n - 1 : whole);
    show_other(c, whole);
    const int may_crop = !tgi_opts_given(c->o, TGI_OPT_REGION) && !tgi_job_outpaints(c->o);
    if (may_crop)
        TGI_TRY(go_down(c, "--region auto", 1, 1, 0, &region, err));
    show(c, region < 0 && may_crop ? c->n - 1 : region);
    TGI_TRY(find_less(c, whole, &less, err));
    show(c, less);
    TGI_TRY(find_smaller(c, &smaller, err));
    show(c, smaller < 0 && !c->sized ? c->n - 1 : smaller);
    c->chosen = whole >= 0 ? whole : smaller;
    show_other(c, c->chosen);
    return TG_OK;
}

/* What was asked, if it fits, else what comes below it. */
static tg_status find_lower(choice *c, tgi_err *err)
{
    tg_status st = TG_OK;
    way asked = make_way(c, "as asked", -1, 1, USUAL, c->named);
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
    char kinds[SHORT] = "", by[64] = "";
    (void)tgi_fingerprint_get(job, strlen(job), "isa", by, sizeof by);
    const int far =
        c->named || (c->auto_device && strchr(by, ' ') != NULL); /* "cuda fp16 9.0" */
    *w = make_way(c, "of the run that began it", -1, 1, USUAL, far);
    for (int i = SUBVIDEO; i <= EXACT; i++)
        if (is_open(c, i))
            (void)tgi_fingerprint_get(job, strlen(job),
                                      tgi_option_table(NULL)[tgi_way_sets[i]].name, w->value[i],
                                      SHORT);
    (void)tgi_fingerprint_get(job, strlen(job), "precision", kinds, sizeof kinds);
    if (strcmp(kinds, far ? "fp16" : "bf16") == 0 && is_open(c, PRECISION))
        snprintf(w->value[PRECISION], SHORT, "%s", kinds);
    c->gone = far && !c->named && !c->may_far;
    const int drew = w->value[SUBVIDEO][0] != 0 || !c->drawn;
    tgi_free(job);
    return drew;
}

static tg_status search(choice *c, tgi_err *err)
{
    tg_status st = TG_OK;
    way w;
    c->chosen = -1;
    c->gone = 0;
    c->n = c->n_shown = 0;
    if (find_kept(c, &w)) {
        c->kept = 1;
        if (c->gone) {
            w.fits = 1;
            c->tried[c->chosen = c->n++] = w;
            return TG_OK;
        }
        c->chosen = try_way(c, &w, &st, err);
        show(c, c->chosen);
        c->gone = w.far && !c->named && !c->may_far;
        if (c->gone)
            return TG_OK;
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

/* ---- The choice -------------------------------------------------------------------------- */

/* What was chosen, into the options; what was asked and is lowered is remembered for the receipt. */
static tg_status take(choice *c, tgi_err *err)
{
    const way *w = &c->tried[c->chosen];
    char text[sizeof c->o->lowered] = "";
    for (int i = 0; i < VARIED; i++) {
        const tg_option *row = &tgi_option_table(NULL)[tgi_way_sets[i]];
        const char *was = tgi_opts_str(c->o, tgi_way_sets[i]);
        const size_t n = strlen(text);
        if (!w->value[i][0] || (was && strcmp(was, w->value[i]) == 0))
            continue;
        if (c->lower && tgi_way_sets[i] != TGI_OPT_SCRATCH)
            snprintf(text + n, sizeof text - n, "%s%s %s, not %s", n ? "; " : "", row->name,
                     w->value[i],
                     was          ? was
                     : i == RATIO ? "1"
                                  : "false");
        TGI_TRY(tgi_opts_set_from(c->o, row->name, w->value[i],
                                  c->lower ? TGI_FROM_SET : TGI_FROM_PRESET,
                                  c->lower ? LOWER : TGI_AUTO_ORIGIN, err));
    }
    memcpy(c->o->lowered, text, sizeof text);
    return TG_OK;
}

/* A GPU that computes: the one that --device names; of --preset auto any that can. */
static void look_for_device(choice *c, const tgi_machine *m)
{
    const tgi_device_spec any = {TGI_DEVICE_AUTO, "cuda", TGI_DEVICE_ANY};
    const int precision = tgi_opts_choice(c->o, TGI_OPT_PRECISION);
    tgi_device_choice found = {0};
    tgi_err e = {0};
    if (m->here && (c->auto_device || c->named))
        (void)tgi_device_choose(&any, &found, &e);
    else if (m->n_gpus && (c->auto_device || c->named))
        (void)tgi_device_open_plugin("cuda", &found.ops, &e);
    if (c->auto_device)
        snprintf(c->no_device, sizeof c->no_device, "%.250s", found.notice);
    c->may_far = c->named || (c->auto_device && found.ops && precision != TGI_PRECISION_BF16);
    c->may_near = !c->may_far || (!c->named && precision != TGI_PRECISION_FP16);
    c->may_half = c->drawn && found.ops && found.ops->backend(TG_DTYPE_F16) &&
                  !tgi_opts_asked(c->o, TGI_OPT_PRECISION) &&
                  !tgi_opts_flag(c->o, TGI_OPT_FP16);
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
        look_for_device(c, m);
    }
    tgi_free(m);
    return st;
}

static void look_at_options(choice *c)
{
    const char *ratio = tgi_opts_str(c->o, TGI_OPT_RESIZE_RATIO);
    tgi_device_spec device;
    tgi_opts_device(c->o, &device);
    c->named = device.kind == TGI_DEVICE_OF_PLUGIN && !tgi_job_device_by_auto(c->o);
    for (int i = 0; i < 3; i++)
        c->asked[i] = tgi_opts_int(c->o, tgi_way_sets[i], tgi_way_step[0][i]);
    c->asked_ratio = 1;
    if (ratio)
        (void)tgi_number_begin(ratio, &c->asked_ratio);
    c->drawn = tgi_job_draws(c->o);
    c->auto_device = c->drawn && !c->lower && !c->named && device.kind != TGI_DEVICE_CPU;
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

/* Of a refusal: the job that did not fit a GPU, and what would do there at least. */
static void keep_refused(choice *c, tgi_inpaint_refused *out)
{
    const way *first = &c->tried[0], *least = first;
    tgi_err none = {0};
    if (!first->needs)
        return;
    (void)plan_job(c, first, tgi_job_plan_output, &out->job, &none);
    for (int i = 1; i < c->n; i++)
        if (c->tried[i].needs && c->tried[i].needs < least->needs && !c->tried[i].region)
            least = &c->tried[i];
    way w = *least;
    const uint64_t mib = (w.needs + ((uint64_t)1 << 20) - 1) >> 20;
    snprintf(w.vram, SHORT, "%lluMiB", (unsigned long long)mib);
    w.fits = 0;
    if (least == first || plan_way(c, &w, &none) != TG_OK || !w.fits)
        return;
    out->least = (tg_remedy){.peak_bytes = w.device, .n_options = 1};
    out->least.option[0].name = "vram";
    snprintf(out->least.option[0].value, sizeof out->least.option[0].value, "%s", w.vram);
    snprintf(out->least.loses, sizeof out->least.loses, "%s",
             w.value[RATIO][0] ? "quality: smaller frames, enlarged"
             : w.step > 0      ? "quality: fewer frames are seen together"
                               : "time: direct kernels");
}

/* Before a run its context is made once: what cannot be had is not chosen. */
static tg_status search_again(choice *c, tgi_err *err)
{
    tg_job *job = NULL;
    tgi_err e = {0};
    const way *w = &c->tried[c->chosen];
    if (!w->far || c->named || c->kept || tgi_opts_flag(c->o, TGI_OPT_PLAN_ONLY))
        return TG_OK;
    const tg_status st = plan_job(c, w, tgi_job_plan_to_run, &job, &e);
    tgi_job_close(&job);
    if (st == TG_OK)
        return TG_OK;
    TGI_TRY(tgi_check_cancel(err));
    c->may_far = 0;
    c->may_near = 1;
    snprintf(c->no_device, sizeof c->no_device, "%.250s", e.text);
    return search(c, err);
}

tg_status tgi_inpaint_choose(tg_opts *o, char **json, tgi_inpaint_refused *no, tgi_err *err)
{
    const char *preset = tgi_opts_str(o, TGI_OPT_PRESET);
    const int wanted = preset && strcmp(preset, "auto") == 0;
    *json = NULL;
    *no = (tgi_inpaint_refused){0};
    if (!wanted && !tgi_opts_flag(o, TGI_OPT_ALLOW_LOWER_QUALITY))
        return TG_OK;
    choice *c = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory to search settings");
    tg_status st = choose(c, o, !wanted, sizeof *c, err);
    tgi_err none = {0};
    if (st == TG_OK)
        st = search_again(c, err);
    if (st == TG_E_BUDGET) {
        (void)tgi_ways_tell(c, json, &none); /* what was tried */
        keep_refused(c, no);
    } else if (st == TG_OK && !c->gone && (wanted || c->n_shown > 1)) {
        st = tgi_ways_tell(c, json, err);
    }
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
        same &= strtoll(tgi_way_value(c, w, i), NULL, 10) == c->asked[i];
    snprintf(r->loses, sizeof r->loses, "%s",
             w->value[RATIO][0] ? "quality: smaller frames, enlarged"
             : same             ? "time, and disk space while it runs"
                                : "quality: fewer frames are seen together");
    for (int i = 0; i < VARIED && r->n_options < sizeof r->option / sizeof r->option[0]; i++)
        if (w->value[i][0] && (i > STRIDE || !same)) {
            r->option[r->n_options].name = tgi_option_table(NULL)[tgi_way_sets[i]].name;
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
