/* batch.c - `tegula estimate batch`: by the number of parameters, or by a model's plan. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/estimate/estimate.h"
#include "engine/estimate/model.h"
#include "engine/memory/monitor.h"
#include "engine/settings/words.h"

#include <stdio.h>

/* The least that is missing on any GPU, for the refusal. */
typedef struct refused {
    char gpu[48];
    uint64_t shortfall;
} refused;

static void note_refused(refused *r, const char *gpu, uint64_t shortfall)
{
    if (r->shortfall && r->shortfall <= shortfall)
        return;
    snprintf(r->gpu, sizeof r->gpu, "%s", gpu);
    r->shortfall = shortfall;
}

static tg_status refuse(const refused *r, tgi_err *err)
{
    char text[32];
    if (!r->shortfall)
        return TG_OK;
    tgi_size_text(r->shortfall, text, sizeof text);
    return tgi_fail(err, TG_E_BUDGET,
                    "not one sample fits on \"%s\", where %s are missing: a larger GPU, a "
                    "smaller --size or fewer parameters",
                    r->gpu, text);
}

static void put_size(tgi_jw *w, const tgi_gpu *g, const char *model, const tg_batch_size *b)
{
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "gpu", g->name);
    tgi_jw_uint(w, "memory_bytes", g->memory_bytes);
    tgi_jw_str(w, "model", model);
    tgi_jw_uint(w, "weights_bytes", b->weights_bytes);
    tgi_jw_uint(w, "raw", b->raw);
    tgi_jw_uint(w, "batch", b->batch);
    if (!b->batch)
        tgi_jw_uint(w, "shortfall_bytes", b->shortfall_bytes);
    tgi_jw_end(w, '}');
}

/* ---- By parameters ----------------------------------------------------------------------- */

static void put_settings(tgi_jw *w, const tg_batch_spec *s)
{
    char size[64];
    snprintf(size, sizeof size, "%lldx%lldx3", (long long)s->height, (long long)s->width);
    tgi_jw_begin(w, "settings", '{');
    tgi_jw_int(w, "parameters", s->parameters);
    tgi_jw_str(w, "size", size);
    tgi_jw_str(w, "dtype", "float32");
    tgi_jw_int(w, "length", s->length < 0 ? 0 : s->length);
    tgi_jw_int(w, "hidden", s->hidden);
    tgi_jw_num(w, "share_of_what_weights_leave", TG_BATCH_SHARE);
    tgi_jw_end(w, '}');
}

static tg_status by_parameters(const tgi_question *q, const tgi_gpus *gpus, tgi_jw *w,
                               tgi_err *err)
{
    int64_t channels;
    refused worst = {0};
    tg_batch_spec s = {.size = sizeof s};
    tg_batch_result r = {.size = sizeof r};
    TGI_TRY(tgi_params_parse(tgi_opts_str(q->o, TGI_OPT_PARAMS), &s.parameters, err));
    tgi_estimate_dims(q->o, &s.height, &s.width, &channels);
    if (channels && channels != 3)
        return tgi_fail(
            err, TG_E_ARG,
            "--size: with --params images have 3 channels; with -m MODEL any number");
    s.length = tgi_opts_int(q->o, TGI_OPT_LENGTH, TG_BATCH_LENGTH);
    s.length = s.length ? s.length : -1;
    s.hidden = tgi_opts_int(q->o, TGI_OPT_HIDDEN, TG_BATCH_HIDDEN);
    put_settings(w, &s);
    for (int i = 0; i < gpus->n; i++) {
        const tgi_gpu *g = &gpus->gpu[i];
        s.memory_bytes = g->memory_bytes;
        const tg_status st = tgi_formula_batch(&s, &r);
        if (st != TG_OK && st != TG_E_BUDGET)
            return tgi_fail(err, st, "batch: a number is out of its range");
        if (i == 0) {
            tgi_jw_uint(w, "sample_bytes", r.sample_bytes);
            tgi_jw_begin(w, "batches", '[');
        }
        put_size(w, g, "published", &r.published);
        put_size(w, g, "exact", &r.exact);
        if (!r.exact.batch)
            note_refused(&worst, g->name, r.exact.shortfall_bytes);
    }
    tgi_jw_end(w, ']');
    return refuse(&worst, err);
}

/* ---- By a plan --------------------------------------------------------------------------- */

/* A batch is as many arenas; weights are there once; the margin is that of all plans. */
static tg_batch_size planned_batch(const tgi_sample_plan *p, uint64_t memory)
{
    const uint64_t usable = tgi_budget_of(memory, 0);
    const uint64_t sample = p->sample_bytes ? p->sample_bytes : 1;
    tg_batch_size b = {.weights_bytes = p->weights_bytes};
    if (usable > p->weights_bytes)
        b.raw = (usable - p->weights_bytes) / sample;
    b.batch = tgi_power_of_two(b.raw);
    if (!b.batch)
        b.shortfall_bytes = tgi_sat_add(p->weights_bytes, sample) - usable;
    return b;
}

static tg_status by_plan(const tgi_question *q, const tgi_gpus *gpus, tgi_jw *w, tgi_err *err)
{
    tgi_sample_plan p = {0};
    refused worst = {0};
    const char *model = tgi_opts_str(q->o, TGI_OPT_MODEL);
    TGI_TRY(tgi_plan_sample(model, q->o, &p, err));
    tgi_jw_begin(w, "settings", '{');
    tgi_jw_str(w, "model", model);
    tgi_jw_str(w, "size", p.size);
    tgi_jw_str(w, "dtype", "float32");
    tgi_jw_str(w, "margin", "max(512 MiB, 10 %) of the memory");
    tgi_jw_end(w, '}');
    tgi_jw_int(w, "parameters", p.parameters);
    tgi_jw_uint(w, "weights_bytes", p.weights_bytes);
    tgi_jw_uint(w, "sample_bytes", p.sample_bytes);
    tgi_jw_begin(w, "batches", '[');
    for (int i = 0; i < gpus->n; i++) {
        const tgi_gpu *g = &gpus->gpu[i];
        const tg_batch_size b = planned_batch(&p, g->memory_bytes);
        put_size(w, g, "planned", &b);
        if (!b.batch)
            note_refused(&worst, g->name, b.shortfall_bytes);
    }
    tgi_jw_end(w, ']');
    return refuse(&worst, err);
}

tg_status tgi_estimate_batch(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    tgi_gpus *gpus = NULL;
    const int model = tgi_opts_given(q->o, TGI_OPT_MODEL);
    if (q->n_files)
        return tgi_fail(err, TG_E_ARG, "estimate batch takes no files (\"%s\")", q->files[0]);
    if (model == tgi_opts_given(q->o, TGI_OPT_PARAMS))
        return tgi_fail(err, TG_E_ARG,
                        "estimate batch: give either --params 110M or -m MODEL.onnx");
    TGI_TRY(tgi_gpus_asked(q, &gpus, err));
    const tg_status st = model ? by_plan(q, gpus, w, err) : by_parameters(q, gpus, w, err);
    tgi_free(gpus);
    return st;
}
