/* auto.c - the search of auto.h: grid, bounds, plans. */
#include "engine/auto/auto.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/job/ends.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/plan_seconds.h"
#include "engine/plan/lessons.h"
#include "engine/plan/staged_text.h"
#include "engine/settings/opts_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
/* A bound is taken this much lower: blocks of Winograd end where cells do, so that a cut can
 * save a few rows of them. */
#define BOUND_SLACK 0.98
/* Predictions that are equal but for rounding. */
#define EQUAL 1e-9

/* ---- The grid ---------------------------------------------------------------------------- */

static int list_threads(const tgi_auto *a, int out[TGI_AUTO_THREADS])
{
    const int p = a->machine.processors;
    const int64_t given = tgi_opts_int(a->opts, TGI_OPT_THREADS, 0);
    const int all[TGI_AUTO_THREADS] = {p, p - 1, p * 3 / 4, p / 2, p / 4, 1};
    int n = 0;
    if (given > 0) {
        out[0] = (int)given;
        return 1;
    }
    for (int i = 0; i < TGI_AUTO_THREADS; i++) {
        int seen = all[i] < 1;
        for (int k = 0; k < n; k++)
            seen |= out[k] == all[i];
        if (!seen)
            out[n++] = all[i];
    }
    return n;
}

/* 0 stands for what the options say: auto, or their tile. */
static int list_tiles(const tgi_auto *a, int64_t out[TGI_AUTO_TILES])
{
    tgi_tile_spec given;
    int n = 0;
    const int64_t larger = tgi_max(a->extent[1], a->extent[2]);
    const int64_t most = a->volume ? 256 : 8192;
    tgi_opts_tile(a->opts, &given);
    out[n++] = 0;
    for (int64_t t = a->volume ? 64 : 256; t <= most && t < larger; t *= 2)
        if (given.automatic && !a->boxed && !a->tensor)
            out[n++] = t;
    return n;
}

static int list_sets(const tgi_auto *a, tgi_isa out[TGI_ISA_COUNT])
{
    const char *name = tgi_opts_str(a->opts, TGI_OPT_ISA);
    int n = 0;
    if (name && tgi_isa_parse(name, &out[0]))
        return 1;
    for (int i = TGI_ISA_COUNT - 1; i >= 0; i--)
        if (a->machine.sets >> i & 1 && tgi_backend_for((tgi_isa)i))
            out[n++] = (tgi_isa)i;
    return n;
}

tg_status tgi_auto_options(const tgi_auto *a, const tgi_auto_try *t, tg_opts *to, tgi_err *err)
{
    char text[80];
    TGI_TRY(tgi_opts_copy(to, a->opts, err));
    snprintf(text, sizeof text, "%d", t->threads);
    TGI_TRY(tgi_opts_set(to, "threads", text, err));
    TGI_TRY(tgi_opts_set(to, "isa", tgi_isa_name(t->isa), err));
    TGI_TRY(tgi_opts_set(to, "precision", t->bf16 ? "bf16" : "fp32", err));
    if (t->scratch)
        TGI_TRY(tgi_opts_set(to, "scratch", a->scratch, err));
    if (!t->tile)
        return TG_OK;
    if (a->volume)
        snprintf(text, sizeof text, "%lldx%lldx%lld", (long long)t->tile, (long long)t->tile,
                 (long long)t->tile);
    else
        snprintf(text, sizeof text, "%lld", (long long)t->tile);
    return tgi_opts_set(to, "tile", text, err);
}

/* ---- Planning a point -------------------------------------------------------------------- */

/* Opened and planned, without a context: what is to be warned of was said once. */
static tg_status plan_point(const tgi_auto *a, const tgi_auto_try *t, tg_job **out,
                            tgi_err *err)
{
    static const tgi_lessons none;
    tg_opts *o = NULL;
    tg_status st = tgi_opts_new(&o, err);
    if (st == TG_OK)
        st = tgi_auto_options(a, t, o, err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "device", "cpu", err);
    if (st == TG_OK)
        st = tgi_job_open(NULL, o, out, err);
    if (st == TG_OK) {
        (*out)->known.lessons =
            &none; /* what is chosen must not depend on what ran yesterday */
        (*out)->known.others_bytes = a->beside; /* a run holds no search */
        st = tgi_job_plan_output(*out, err);
    }
    tgi_opts_free(&o);
    return st;
}

/* Room for the scratch file, where it does not count as memory anyway. */
static int scratch_has_room(const tg_job *job)
{
    const tgi_scratch_part *s = &job->plan.scratch;
    return !s->used || job->scratch_place.in_memory ||
           s->bytes <= job->scratch_place.free_bytes;
}

/* Keep a point; `job` its plan, NULL when there is none. The grid has fewer than there is room
 * for. */
static void keep(tgi_auto *a, const tgi_auto_try *t, const tg_job *job)
{
    const tgi_auto_try *best = a->best < 0 ? NULL : &a->tried[a->best];
    if (a->n_tried == TGI_AUTO_TRIES)
        return;
    a->tried[a->n_tried++] = *t;
    if (!job || !t->fits || (best && t->seconds >= best->seconds * (1 - EQUAL)))
        return;
    a->best = a->n_tried - 1;
    a->calibrated = job->plan.calibrated;
    a->recomputed = tgi_choice_recomputed(&job->plan.choice);
    snprintf(a->scratch_why, sizeof a->scratch_why, "%s", job->plan.scratch.why);
}

static int was_tried(const tgi_auto *a, const tgi_auto_try *t)
{
    for (int i = 0; i < a->n_tried; i++) {
        const tgi_auto_try *o = &a->tried[i];
        if (o->isa == t->isa && o->bf16 == t->bf16 && o->threads == t->threads &&
            o->tile == t->tile && o->scratch == t->scratch)
            return 1;
    }
    return 0;
}

/* Plan one point; *helps: scratch would change something. What does not fit is no failure. */
static tg_status try_point(tgi_auto *a, tgi_auto_try *t, tg_job **keep_job, int *helps,
                           tgi_err *err)
{
    tg_job *job = NULL;
    tgi_err e = {0};
    const tg_status st = tgi_cancel_signal() ? tgi_fail(&e, TG_E_CANCELLED, "stopped")
                                             : plan_point(a, t, &job, &e);
    if (st != TG_OK && st != TG_E_BUDGET) {
        tgi_job_close(&job);
        *err = e;
        return st;
    }
    if (st == TG_E_BUDGET && a->refusal.code == TG_OK)
        a->refusal = e; /* of the default settings */
    *helps = st == TG_OK && !t->scratch && job->plan.scratch.helps && a->scratch[0];
    t->fits = st == TG_OK && scratch_has_room(job);
    if (st == TG_OK) {
        t->seconds = job->plan.seconds;
        t->peak_bytes = job->plan.bytes.total;
    }
    keep(a, t, st == TG_OK ? job : NULL);
    if (keep_job && st == TG_OK)
        *keep_job = job;
    else
        tgi_job_close(&job);
    return TG_OK;
}

/* ---- Bounds ------------------------------------------------------------------------------ */

/* Least seconds of a planned job's network with each number of threads: uncut, with each share
 * of rearranged sums that a plan may take. The job's plan is spoilt. */
static tg_status find_bounds(tg_job *job, const int *threads, int n, double *least,
                             tgi_err *err)
{
    tgi_plan_part *p = &job->plan;
    static const int64_t nothing[3] = {0, 0, 0};
    const int64_t *cut = tgi_mapping_boxed(&job->map) ? p->choice.tiling.cut : nothing;
    for (int i = 0; i < n; i++)
        least[i] = 1e300;
    for (int quarter = 4; quarter >= 0; quarter--) {
        tgi_tiling t;
        tgi_net_use_fast(p->net, p->net->n_fast * quarter / 4);
        TGI_TRY(tgi_tiling_make(&p->stages->one, cut, p->choice.tiling.band, 1, NULL, &t, err));
        for (int i = 0; i < n; i++)
            least[i] = fmin(least[i], tgi_job_least_seconds(job, &t, threads[i]));
        tgi_tiling_free(&t);
    }
    return TG_OK;
}

static int cannot_win(const tgi_auto *a, double bound)
{
    return a->best >= 0 && bound * BOUND_SLACK >= a->tried[a->best].seconds;
}

/* ---- The search -------------------------------------------------------------------------- */

/* All tiles of one set and number of threads, without and with scratch; auto is a tile too. */
static tg_status try_tiles(tgi_auto *a, const tgi_auto_try *of, tgi_err *err)
{
    int64_t tile[TGI_AUTO_TILES];
    const int n = list_tiles(a, tile);
    for (int i = 0; i < n; i++) {
        int helps = 0;
        tgi_auto_try t = *of;
        t.tile = tile[i];
        if (!was_tried(a, &t))
            TGI_TRY(try_point(a, &t, NULL, &helps, err));
        t.scratch = 1;
        if (helps)
            TGI_TRY(try_point(a, &t, NULL, &helps, err));
    }
    return TG_OK;
}

/* The first plan of a set: bounds for all numbers of threads, as far as it fits. *none: not
 * even one thread does, and more will not. */
static tg_status try_first(tgi_auto *a, const tgi_auto_try *first, const int *threads, int n,
                           double *bound, int *none, tgi_err *err)
{
    int helps = 0;
    tg_job *job = NULL;
    tgi_auto_try t = *first;
    TGI_TRY(try_point(a, &t, &job, &helps, err));
    tg_status st = job ? find_bounds(job, threads, n, bound, err) : TG_OK;
    *none = !job;
    tgi_job_close(&job); /* before another is planned: what it holds would count */
    t.scratch = 1;
    if (st == TG_OK && helps)
        st = try_point(a, &t, NULL, &helps, err);
    if (st != TG_OK || !*none || n == 1)
        return st;
    t = *first;
    t.threads = threads[n - 1];
    st = try_point(a, &t, NULL, &helps, err);
    *none = !t.fits;
    return st;
}

/* One instruction set and precision. */
static tg_status try_set(tgi_auto *a, tgi_isa isa, int bf16, tgi_err *err)
{
    int threads[TGI_AUTO_THREADS], none = 0;
    double bound[TGI_AUTO_THREADS] = {0};
    const int n = list_threads(a, threads);
    tgi_auto_try t = {.isa = isa, .bf16 = bf16, .threads = threads[0]};
    tg_status st = try_first(a, &t, threads, n, bound, &none, err);
    for (int i = 0; st == TG_OK && !none && i < n; i++) {
        t = (tgi_auto_try){.isa = isa, .bf16 = bf16, .threads = threads[i]};
        if (!cannot_win(a, bound[i])) {
            st = try_tiles(a, &t, err);
            continue;
        }
        t.skipped = 1;
        t.seconds = bound[i];
        if (!was_tried(a, &t))
            keep(a, &t, NULL);
    }
    return st;
}

static tg_status try_precision(tgi_auto *a, int bf16, tgi_err *err)
{
    tgi_isa sets[TGI_ISA_COUNT];
    const int n = list_sets(a, sets);
    for (int i = 0; i < n; i++)
        if (!bf16 || (a->machine.bf16 && sets[i] == a->machine.isa))
            TGI_TRY(try_set(a, sets[i], bf16, err));
    return TG_OK;
}

static tg_status try_all(tgi_auto *a, tgi_err *err)
{
    TGI_TRY(try_precision(a, 0, err));
    a->bf16_needed = a->best < 0 && a->bf16_may;
    if (a->bf16_asked || a->bf16_needed)
        TGI_TRY(try_precision(a, 1, err));
    if (a->best >= 0)
        return TG_OK;
    *err = a->refusal;
    return TG_E_BUDGET;
}

/* What the grid depends on, from the job as the options have it; its warnings go to ctx. */
static tg_status look_at_job(tg_ctx *ctx, tgi_auto *a, const char *output, tgi_err *err)
{
    tg_job *job = NULL;
    tg_status st = tgi_job_open(ctx, a->opts, &job, err);
    if (st == TG_OK && output)
        st = tgi_job_spares(job, output, "the preset", err);
    if (st == TG_OK) {
        a->tensor = !job->ends->image_out;
        a->bf16_may = a->bf16_may && !job->set.descriptor.fp32_only;
        a->volume = job->map.spatial == 3;
        a->boxed = !a->tensor && tgi_mapping_boxed(&job->map);
        memcpy(a->extent, job->map.out_extent, sizeof a->extent);
    }
    tgi_job_close(&job);
    return st;
}

const char *tgi_auto_output(const tg_opts *o)
{
    return o->from[TGI_OPT_OUTPUT] == TGI_FROM_SET ? tgi_opts_str(o, TGI_OPT_OUTPUT) : NULL;
}

static tg_status prepare(tg_ctx *ctx, const tg_opts *o, tgi_auto *a, tgi_err *err)
{
    char ram[32];
    int in_memory;
    uint64_t room;
    TGI_TRY(tgi_opts_new(&a->opts, err));
    TGI_TRY(tgi_opts_keep_pipes(o, err));
    TGI_TRY(tgi_opts_copy(a->opts, o, err));
    tgi_opts_forget(a->opts, TGI_OPT_OUTPUT); /* the preset's, not the job's */
    a->bf16_asked = tgi_opts_choice(o, TGI_OPT_PRECISION) == TGI_PRECISION_BF16;
    a->bf16_may = !tgi_opts_given(o, TGI_OPT_PRECISION);
    if (a->bf16_asked) /* allowed, where it is there */
        TGI_TRY(tgi_opts_set(a->opts, "precision", "fp32", err));
    TGI_TRY(tgi_machine_of(a->opts, &a->machine, err));
    tgi_machine_find_gpus(&a->machine);
    const char *temp = tgi_machine_temp(&a->machine, &in_memory, &room);
    if (temp && !tgi_opts_given(o, TGI_OPT_SCRATCH))
        snprintf(a->scratch, sizeof a->scratch, "%s", temp);
    const uint64_t mib = tgi_machine_budget(&a->machine, a->opts, NULL) / MIB;
    snprintf(ram, sizeof ram, "%lluMiB", (unsigned long long)(mib ? mib : 1));
    a->ram_given = tgi_opts_given(o, TGI_OPT_RAM);
    if (!a->ram_given)
        TGI_TRY(tgi_opts_set(a->opts, "ram", ram, err));
    return look_at_job(ctx, a, tgi_auto_output(o), err);
}

tg_status tgi_auto_search(tg_ctx *ctx, const tg_opts *o, tgi_auto **out, tgi_err *err)
{
    const size_t before = tgi_mem_held();
    tgi_auto *a = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *a);
    if (!a)
        return tgi_fail(err, TG_E_NOMEM, "no memory to search settings");
    *out = a;
    a->best = -1;
    const char *path = tgi_auto_output(o);
    if (path && !tgi_opts_flag(o, TGI_OPT_YES) && access(path, F_OK) == 0)
        return tgi_fail(err, TG_E_EXISTS, "%s is there already; -y overwrites it", path);
    TGI_TRY(prepare(ctx, o, a, err));
    const size_t now = tgi_mem_held();
    a->beside = now > before ? now - before : 0;
    TGI_TRY(try_all(a, err));
    return tgi_auto_find_device(ctx, a, err);
}

void tgi_auto_free(tgi_auto **a)
{
    if (!a || !*a)
        return;
    tgi_opts_free(&(*a)->opts);
    tgi_free(*a);
    *a = NULL;
}
