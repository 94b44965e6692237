/* gpu_choice.c - `tegula estimate gpu [JOB]`: which GPUs of the table can run a job, in what
 * projected time, which is the least for a deadline, and which is worth having next.
 *
 *   fits       weights and arena of a plan in half precision <= memory less max(512 MiB, 10 %)
 *              and 512 MiB for the driver's context
 *   projected  the roofline over --efficiency
 *   least      of those done before the deadline the cheapest where prices are given, else the
 *              slowest
 *   next       of those at least 1.5 times as fast as the one named, by the same order
 *   host       16, 32 or 64 GiB: the least that holds the plan's host part, and 4 GiB for the
 *              system
 *
 * With --vram the GPUs are of these sizes, of unknown speed, and those that --gpu names; with
 * --machine they are that machine's, by the memory that is free of them, and the host part is
 * held against its budget. */
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/estimate/estimate.h"
#include "engine/job/roofline.h"
#include "engine/settings/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORTH_BUYING 1.5
#define SYSTEM_BYTES ((uint64_t)4 << 30)

typedef struct row {
    const tgi_gpu *gpu;
    tgi_device_plan plan;
    int fits;                   /* its memory holds the plan, and there are kernels for it */
    double roofline, projected; /* seconds */
    double price, cost;         /* of an hour, of the job; < 0: unknown */
} row;

typedef struct answer {
    tgi_gpus *table;
    row row[TGI_MAX_GPUS];
    int n, n_fit, n_unserved;
    double efficiency, deadline; /* deadline 0: none */
} answer;

/* ---- Rows -------------------------------------------------------------------------------- */

static tg_status fill_rows(const tgi_question *q, const tgi_device_job *d, answer *a,
                           tgi_err *err)
{
    const char *prices = tgi_opts_str(q->o, TGI_OPT_PRICE);
    const tgi_device_plan *like = NULL;
    for (int i = 0; i < a->table->n; i++) {
        row *r = &a->row[a->n++];
        r->gpu = &a->table->gpu[i];
        TGI_TRY(tgi_device_plan_make(d, r->gpu->memory_bytes, like, &r->plan, err));
        if (r->plan.fits)
            like = &r->plan;
        r->fits = r->plan.fits && tgi_gpu_is_served(r->gpu);
        a->n_fit += r->fits;
        a->n_unserved += !tgi_gpu_is_served(r->gpu);
        r->roofline = !r->plan.fits            ? 0
                      : r->gpu->fp16_flops > 0 ? tgi_roofline_seconds(d, &r->plan, r->gpu)
                                               : NAN; /* like none of the table */
        r->projected = r->roofline / a->efficiency;
        r->price = tgi_price_of(prices, r->gpu->name);
        r->cost = r->price < 0 ? -1 : r->price * r->projected / 3600;
    }
    return TG_OK;
}

/* 1: `a` is less than `b`: cheaper where both have a price, one with a price before one
 * without, else slower. */
static int is_less(const row *a, const row *b)
{
    if (!b)
        return 1;
    if (a->cost >= 0 && b->cost >= 0)
        return a->cost < b->cost;
    if ((a->cost >= 0) != (b->cost >= 0))
        return a->cost >= 0;
    return a->projected > b->projected;
}

/* The least row that is done within `seconds`; NULL when there is none. */
static const row *least_within(const answer *a, double seconds, const row *but)
{
    const row *best = NULL;
    for (int i = 0; i < a->n; i++) {
        const row *r = &a->row[i];
        if (r->fits && r != but && r->projected <= seconds && is_less(r, best))
            best = r;
    }
    return best;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void put_row(tgi_jw *w, const row *r)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "gpu", r->gpu->name);
    tgi_jw_uint(w, "memory_bytes", r->gpu->memory_bytes);
    tgi_jw_uint(w, "needed_bytes", r->plan.needed_bytes);
    tgi_jw_uint(w, "headroom_bytes", r->plan.usable_bytes - r->plan.needed_bytes);
    tgi_jw_num(w, "roofline_seconds", r->roofline);
    tgi_jw_num(w, "projected_seconds", r->projected);
    if (r->cost >= 0)
        tgi_jw_num(w, "projected_cost", r->cost);
    tgi_jw_bool(w, "verified", r->gpu->verified);
    tgi_jw_end(w, '}');
}

static void put_rows(tgi_jw *w, const answer *a)
{
    tgi_jw_begin(w, "fits", '[');
    for (int i = 0; i < a->n; i++)
        if (a->row[i].fits)
            put_row(w, &a->row[i]);
    tgi_jw_end(w, ']');
    tgi_jw_begin(w, "does_not_fit", '[');
    for (int i = 0; i < a->n; i++)
        if (!a->row[i].plan.fits && tgi_gpu_is_served(a->row[i].gpu))
            tgi_jw_str(w, NULL, a->row[i].gpu->name);
    tgi_jw_end(w, ']');
    if (!a->n_unserved)
        return;
    tgi_jw_begin(w, "without_kernels", '[');
    for (int i = 0; i < a->n; i++)
        if (!tgi_gpu_is_served(a->row[i].gpu))
            tgi_jw_str(w, NULL, a->row[i].gpu->name);
    tgi_jw_end(w, ']');
}

/* 16, 32, 64; 0 when more is needed. */
static int64_t host_tier(uint64_t host_bytes)
{
    for (int64_t gib = 16; gib <= 64; gib *= 2)
        if (host_bytes + SYSTEM_BYTES <= (uint64_t)gib << 30)
            return gib;
    return 0;
}

static void put_job(tgi_jw *w, const tgi_question *q, const tgi_device_job *d, const answer *a)
{
    const tgi_settings *s = &d->job->set;
    char text[32];
    tgi_jw_begin(w, "settings", '{');
    tgi_jw_str(w, "model", s->model);
    if (s->input)
        tgi_jw_str(w, "input", s->input);
    tgi_jw_str(w, "precision", "fp16, sums in fp32");
    tgi_jw_num(w, "efficiency", a->efficiency);
    tgi_jw_str(w, "margin", "max(512 MiB, 10 %) of the memory");
    tgi_jw_uint(w, "context_bytes", TGI_CONTEXT_BYTES);
    if (a->deadline > 0)
        tgi_jw_num(w, "deadline_seconds", a->deadline);
    if (tgi_opts_given(q->o, TGI_OPT_PRICE))
        tgi_jw_str(w, "price_per_hour", tgi_opts_str(q->o, TGI_OPT_PRICE));
    tgi_jw_end(w, '}');
    tgi_jw_int(w, "items", d->items);
    tgi_jw_num(w, "tflop", d->flops * (double)d->items / 1e12);
    tgi_jw_uint(w, "weights_bytes", d->weights_bytes);
    tgi_jw_uint(w, "host_bytes", d->host_bytes);
    const int64_t tier = host_tier(d->host_bytes);
    snprintf(text, sizeof text, "%lld GiB", (long long)(tier ? tier : 64));
    char line[48];
    snprintf(line, sizeof line, "%s%s", tier ? "" : "more than ", text);
    tgi_jw_str(w, "host_ram", line);
    if (!q->machine.here)
        tgi_jw_bool(w, "host_fits", d->host_bytes <= q->machine.budget_bytes);
}

/* ---- Advice ------------------------------------------------------------------------------ */

static const char *whose(const tgi_question *q)
{
    return !q->machine.here                     ? q->machine.name
           : tgi_opts_given(q->o, TGI_OPT_VRAM) ? "those asked for"
                                                : "the table";
}

static tg_status put_deadline(tgi_jw *w, const tgi_question *q, const answer *a, tgi_err *err)
{
    if (a->deadline <= 0)
        return TG_OK;
    const row *best = least_within(a, a->deadline, NULL);
    tgi_jw_str(w, "least_for_deadline", best ? best->gpu->name : NULL);
    if (best)
        return TG_OK;
    return tgi_fail(err, TG_E_DEVICE,
                    "no GPU of %s is projected to be done in %s: split the job over "
                    "several, or give it more time",
                    whose(q), tgi_opts_str(q->o, TGI_OPT_DEADLINE));
}

/* For each GPU that --gpu names: the next one worth having. */
static tg_status put_next(tgi_jw *w, const tgi_question *q, const answer *a, tgi_err *err)
{
    const char *list = tgi_opts_str(q->o, TGI_OPT_GPU), *item;
    if (!list)
        return TG_OK;
    tgi_jw_begin(w, "next", '[');
    while (*list) {
        const tgi_gpu *g = NULL;
        const size_t n = tgi_list_next(&list, &item);
        TGI_TRY(tgi_gpus_find(a->table, item, n, &g, err));
        const row *now = &a->row[g - a->table->gpu];
        const double most = now->fits ? now->projected / WORTH_BUYING : 1e300;
        const row *next = least_within(a, most, now);
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "gpu", g->name);
        tgi_jw_bool(w, "fits", now->fits);
        tgi_jw_str(w, "next", next ? next->gpu->name : NULL);
        if (next && now->fits)
            tgi_jw_num(w, "times_as_fast", round(now->projected / next->projected * 100) / 100);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    return TG_OK;
}

static void put_notes(tgi_jw *w, const answer *a)
{
    tgi_jw_begin(w, "notes", '[');
    tgi_jw_str(w, NULL,
               "projected, not measured: the roofline is a bound that no kernel beats, the "
               "efficiency an assumption; plan --device cuda plans for a GPU that is there");
    tgi_jw_str(w, NULL,
               "copies between host and device and the disk are not in these times; they "
               "overlap with computing where they are faster");
    if (a->n_unserved)
        tgi_jw_str(w, NULL,
                   "without_kernels: GPUs before compute capability 7.5, on which tegula does "
                   "not compute");
    tgi_jw_end(w, ']');
}

/* ---- The estimator ----------------------------------------------------------------------- */

static void put_table(tgi_jw *w, const tgi_gpus *t)
{
    tgi_jw_begin(w, "gpus", '[');
    for (int i = 0; i < t->n; i++) {
        const tgi_gpu *g = &t->gpu[i];
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "gpu", g->name);
        tgi_jw_uint(w, "memory_bytes", g->memory_bytes);
        tgi_jw_num(w, "fp16_tflops", g->fp16_flops / 1e12);
        tgi_jw_num(w, "gb_per_second", g->bytes_per_second / 1e9);
        tgi_jw_num(w, "compute_capability", g->major + 0.1 * g->minor);
        tgi_jw_int(w, "multiprocessors", g->multiprocessors);
        tgi_jw_bool(w, "verified", g->verified);
        tgi_jw_str(w, "source", g->source);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

/* The job's options: those given, and what the job file or the image says. */
static tg_status job_options(const tgi_question *q, tg_opts **out, tgi_err *err)
{
    TGI_TRY(tgi_opts_new(out, err));
    TGI_TRY(tgi_opts_copy(*out, q->o, err));
    if (q->n_files > 1)
        return tgi_fail(err, TG_E_ARG, "estimate gpu takes one job, \"%s\" is one too many",
                        q->files[1]);
    if (!q->n_files)
        return TG_OK;
    const char *dot = strrchr(q->files[0], '.');
    if (dot && strcmp(dot, ".json") == 0)
        return tgi_opts_load(*out, q->files[0], err);
    return tgi_opts_set(*out, "input", q->files[0], err);
}

static tg_status no_room(const tgi_question *q, const answer *a, tgi_err *err)
{
    const row *most = &a->row[0];
    char need[32], have[32];
    for (int i = 1; i < a->n; i++)
        if (a->row[i].plan.usable_bytes > most->plan.usable_bytes)
            most = &a->row[i];
    if (most->plan.fits)
        return tgi_fail(
            err, TG_E_DEVICE,
            "no GPU of %s has kernels: \"%s\" has compute capability %d.%d, they begin "
            "at 7.5",
            whose(q), most->gpu->name, most->gpu->major, most->gpu->minor);
    return tgi_fail(err, TG_E_BUDGET,
                    "no GPU of %s has room: %s are needed at least, \"%s\" has %s: "
                    "smaller images, or a network that can be cut",
                    whose(q), tgi_size_above(most->plan.needed_bytes, need, sizeof need),
                    most->gpu->name,
                    tgi_size_below(most->plan.usable_bytes, have, sizeof have));
}

static tg_status put_answer(const tgi_question *q, const tgi_device_job *d, answer *a,
                            tgi_jw *w, tgi_err *err)
{
    a->efficiency = 0.5;
    (void)tgi_share_parse(tgi_opts_str(q->o, TGI_OPT_EFFICIENCY), &a->efficiency, NULL);
    if (tgi_opts_given(q->o, TGI_OPT_DEADLINE))
        (void)tgi_duration_parse(tgi_opts_str(q->o, TGI_OPT_DEADLINE), &a->deadline, NULL);
    TGI_TRY(fill_rows(q, d, a, err));
    put_job(w, q, d, a);
    put_rows(w, a);
    TGI_TRY(put_next(w, q, a, err));
    const tg_status st = a->n_fit ? put_deadline(w, q, a, err) : no_room(q, a, err);
    put_notes(w, a);
    return st;
}

tg_status tgi_estimate_gpu(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    tg_opts *o = NULL;
    tgi_device_job d = {0};
    tgi_gpus *table = NULL;
    const int no_job = !q->n_files && !tgi_opts_given(q->o, TGI_OPT_MODEL);
    const int sizes = tgi_opts_given(q->o, TGI_OPT_VRAM);
    if (no_job && sizes)
        return tgi_fail(
            err, TG_E_ARG,
            "--vram asks whether a job fits: name it, JOB.json or -m MODEL.onnx IMAGE");
    TGI_TRY(q->machine.here && !sizes ? tgi_gpus_load(&table, err)
                                      : tgi_gpus_asked(q, &table, err));
    if (no_job) {
        put_table(w, table);
        tgi_free(table);
        return TG_OK;
    }
    answer *a = tgi_calloc(TGI_TAG_MISC, 1, sizeof *a);
    tg_status st = a ? job_options(q, &o, err)
                     : tgi_fail(err, TG_E_NOMEM, "no memory for the table of GPUs");
    if (st == TG_OK)
        st = tgi_device_job_open(q->ctx, o, &d, err);
    if (st == TG_OK) {
        a->table = table;
        st = put_answer(q, &d, a, w, err);
    }
    tgi_device_job_close(&d);
    tgi_opts_free(&o);
    tgi_free(a);
    tgi_free(table);
    return st;
}
