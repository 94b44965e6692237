/* training.c - memory of one training step: weights, gradients, optimizer, activations.
 *
 *   precision   weights                  gradients   moments
 *   fp32        4                        4           4 each
 *   O1          4, and 2 where products  4           4 each
 *               read them (autocast's cache)
 *   O2          2, and 4 for the copy    2           4 each
 *               that is updated
 *
 * bytes a parameter. @source Micikevicius et al., "Mixed Precision Training", 2018; Rajbhandari
 * et al., "ZeRO", 2020, section 3.1 (16 bytes a parameter for O2 with Adam). */
#include "engine/estimate/training.h"
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/base/sized.h"
#include "engine/estimate/estimate.h"
#include "engine/estimate/saved.h"
#include "engine/memory/monitor.h"
#include "engine/settings/words.h"

#include <stdio.h>
#include <string.h>

#define MOST_SEGMENTS 64

/* Numbers that each optimizer keeps for a parameter; order of tg_optimizer and --optimizer. */
static const int moments[] = {2, 2, 0, 1, 1, 1, 3};

/* What was found of a model at one size. */
typedef struct trained {
    tgi_graph *raw; /* as imported: nothing is folded into its neighbour */
    tgi_saved saved;
    char size[64];
} trained;

static void close_trained(trained *t)
{
    tgi_saved_free(&t->saved);
    tgi_graph_free(&t->raw);
}

/* Descs of the inputs in the file's order of axes, at the extents of the finished graph. */
static void file_descs(const tgi_graph *g, const int64_t ext[3], tgi_desc *in)
{
    tgi_desc graph_order[TGI_MAX_PORTS];
    tgi_graph_input_descs(g, ext, graph_order);
    for (int i = 0; i < g->n_in; i++) {
        const tgi_port *p = &g->in[i];
        in[i] = (tgi_desc){graph_order[i].dtype, p->file_rank, {0}};
        for (int a = 0; a < p->file_rank; a++)
            in[i].dim[a] = p->file_dim[a] > 0 ? p->file_dim[a] : 1;
        for (int a = 0; a < graph_order[i].rank; a++)
            if (p->perm[a] >= 0)
                in[i].dim[p->perm[a]] = graph_order[i].dim[a];
    }
}

static tg_status open_trained(trained *t, const char *path, const tg_opts *o,
                              tg_train_precision precision, tgi_err *err)
{
    tgi_graph *g = NULL;
    int64_t ext[3];
    tgi_desc in[TGI_MAX_PORTS];
    *t = (trained){0};
    tg_status st = tgi_graph_load_onnx(path, TGI_GRAPH_NO_FUSE, &g, err);
    if (st == TG_OK)
        st = tgi_graph_import_onnx(path, &t->raw, err);
    if (st == TG_OK)
        st = tgi_model_extent(g, t->raw, o, ext, err);
    if (st == TG_OK) {
        file_descs(g, ext, in);
        tgi_extent_text(g, ext, t->size, sizeof t->size);
        st = tgi_saved_find(t->raw, in, precision, &t->saved, err);
    }
    tgi_graph_free(&g);
    return st;
}

/* ---- Bytes ------------------------------------------------------------------------------- */

static uint64_t at_batch(tgi_saved_bytes b, int64_t batch)
{
    return tgi_sat_add(tgi_sat_mul(b.per_sample, (size_t)batch), b.fixed);
}

void tgi_training_count(const tgi_saved *s, const tg_train_spec *spec, tg_train_size *r)
{
    const uint64_t p = (uint64_t)s->parameters;
    r->parameters = s->parameters;
    r->effective_batch = spec->batch * spec->accumulation;
    r->weights_bytes = p * 4 + s->buffers;
    r->gradients_bytes = p * 4;
    if (spec->precision == TG_TRAIN_O1)
        r->weights_bytes += (uint64_t)s->half_read * 2;
    if (spec->precision == TG_TRAIN_O2) {
        r->weights_bytes += p * 2;
        r->gradients_bytes = p * 2;
    }
    r->optimizer_bytes = p * 4 * (uint64_t)moments[spec->optimizer];
}

void tgi_training_total(tg_train_size *r)
{
    r->total_bytes = tgi_sat_add(tgi_sat_add(r->weights_bytes, r->gradients_bytes),
                                 tgi_sat_add(r->optimizer_bytes, r->activations_bytes));
}

/* The number of segments with the least height. */
static tg_status count_segments(const tgi_saved *s, int64_t batch, tg_train_size *r,
                                tgi_err *err)
{
    const int most = s->n_steps < MOST_SEGMENTS ? s->n_steps : MOST_SEGMENTS;
    uint64_t best = UINT64_MAX;
    for (int k = 1; k <= most; k++) {
        tgi_saved_bytes stored, largest;
        TGI_TRY(tgi_saved_segments(s, k, &stored, &largest, err));
        const uint64_t a = at_batch(stored, batch), b = at_batch(largest, batch);
        if (tgi_sat_add(a, b) >= best)
            continue;
        best = tgi_sat_add(a, b);
        r->segments = k;
        r->stored_bytes = a;
        r->segment_bytes = b;
        r->activations_bytes = best;
        r->per_sample_bytes = tgi_sat_add(stored.per_sample, largest.per_sample);
    }
    return TG_OK;
}

static tg_status count_all(const tgi_saved *s, const tg_train_spec *spec, tg_train_size *out,
                           tgi_err *err)
{
    tg_train_size r = {.size = sizeof r};
    tgi_saved_bytes all;
    tgi_training_count(s, spec, &r);
    TGI_TRY(tgi_saved_total(s, &all, err));
    r.activations_bytes = at_batch(all, spec->batch);
    r.per_sample_bytes = all.per_sample;
    if (spec->checkpointing)
        TGI_TRY(count_segments(s, spec->batch, &r, err));
    tgi_training_total(&r);
    *out = r;
    return TG_OK;
}

/* ---- The public call --------------------------------------------------------------------- */

static tg_status check_spec(tg_train_spec *s, tgi_err *err)
{
    const int64_t most = 1000000;
    s->batch = s->batch ? s->batch : 1;
    s->accumulation = s->accumulation ? s->accumulation : 1;
    if (!s->model)
        return tgi_fail(err, TG_E_ARG, "training: the model is missing");
    if (s->batch < 1 || s->batch > most || s->accumulation < 1 || s->accumulation > most ||
        s->height < 0 || s->width < 0 || (s->height == 0) != (s->width == 0))
        return tgi_fail(err, TG_E_ARG, "training: a number is out of its range");
    if ((int)s->precision < TG_TRAIN_FP32 || s->precision > TG_TRAIN_O2 ||
        (int)s->optimizer < TG_OPT_ADAM || s->optimizer > TG_OPT_AMSGRAD)
        return tgi_fail(err, TG_E_ARG, "training: no such precision or optimizer");
    return TG_OK;
}

tg_status tgi_formula_training(tg_ctx *ctx, const tg_train_spec *spec, tg_train_size *out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tg_train_spec s;
    tg_train_size own;
    if (!ctx || !tgi_sized_take(spec, &s, sizeof s) || !tgi_sized_take(out, &own, sizeof own))
        return tgi_fail(err, TG_E_ARG,
                        "tgi_formula_training: NULL argument, or a size of "
                        "another version");
    tg_opts *o = NULL;
    trained t = {0};
    char size[64];
    TGI_TRY(check_spec(&s, err));
    snprintf(size, sizeof size, "%lldx%lld", (long long)s.height, (long long)s.width);
    tg_status st = tgi_opts_new(&o, err);
    if (st == TG_OK && s.height)
        st = tgi_opts_set(o, "size", size, err);
    if (st == TG_OK)
        st = open_trained(&t, s.model, o, s.precision, err);
    if (st == TG_OK)
        st = count_all(&t.saved, &s, &own, err);
    close_trained(&t);
    tgi_opts_free(&o);
    tgi_sized_give(out, &own);
    return st;
}

/* ---- tegula estimate training ------------------------------------------------------------ */

void tgi_training_put_settings(tgi_jw *w, const tgi_question *q, const tg_train_spec *s,
                               const char *size, double loss_scale)
{
    const tg_opts *o = q->o;
    tgi_jw_begin(w, "settings", '{');
    tgi_jw_str(w, "model", s->model);
    tgi_jw_str(w, "size", size);
    tgi_jw_int(w, "batch", s->batch);
    tgi_jw_int(w, "accumulation", s->accumulation);
    tgi_jw_int(w, "effective_batch", s->batch * s->accumulation);
    tgi_jw_str(w, "precision",
               tgi_opts_choice(o, TGI_OPT_PRECISION) == TGI_PRECISION_AUTO
                   ? "fp32"
                   : tgi_opts_str(o, TGI_OPT_PRECISION));
    if (loss_scale > 0)
        tgi_jw_num(w, "loss_scale", loss_scale);
    else
        tgi_jw_str(w, "loss_scale", loss_scale < 0 ? "none" : "dynamic");
    tgi_jw_str(w, "optimizer", tgi_opts_str(o, TGI_OPT_OPTIMIZER));
    tgi_jw_bool(w, "checkpointing", s->checkpointing);
    tgi_jw_end(w, '}');
}

void tgi_training_put_bytes(tgi_jw *w, const tg_train_size *r)
{
    tgi_jw_int(w, "parameters", r->parameters);
    tgi_jw_begin(w, "needed", '{');
    tgi_jw_uint(w, "weights_bytes", r->weights_bytes);
    tgi_jw_uint(w, "gradients_bytes", r->gradients_bytes);
    tgi_jw_uint(w, "optimizer_bytes", r->optimizer_bytes);
    tgi_jw_uint(w, "activations_bytes", r->activations_bytes);
    tgi_jw_uint(w, "activations_per_sample_bytes", r->per_sample_bytes);
    if (r->segments) {
        tgi_jw_int(w, "segments", r->segments);
        tgi_jw_uint(w, "stored_bytes", r->stored_bytes);
        tgi_jw_uint(w, "segment_bytes", r->segment_bytes);
    }
    tgi_jw_uint(w, "total_bytes", r->total_bytes);
    tgi_jw_end(w, '}');
}

/* What of the ways to need less is not taken yet. */
static const char *ways_out(const tg_train_spec *s, char *buf, size_t cap)
{
    const char *way[3];
    int n = 0;
    if (s->batch > 1)
        way[n++] = "--accumulation with a smaller --batch";
    if (!s->checkpointing)
        way[n++] = "--checkpointing";
    if (s->precision != TG_TRAIN_O2)
        way[n++] = "--precision O2";
    if (!n)
        way[n++] = "a smaller --size, or a larger GPU";
    size_t at = 0;
    for (int i = 0; i < n && at < cap; i++)
        at += (size_t)snprintf(buf + at, cap - at, "%s%s",
                               !i           ? ""
                               : i == n - 1 ? (n > 2 ? ", or " : " or ")
                                            : ", ",
                               way[i]);
    return buf;
}

/* Whether the step fits each GPU, and the largest batch that would. Refuses when one has no
 * room for the batch asked for. */
tg_status tgi_training_put_gpus(tgi_jw *w, const tgi_question *q, const tg_train_spec *s,
                                const tg_train_size *r, tgi_err *err)
{
    tgi_gpus *gpus = NULL;
    char name[48] = "", text[32], ways[160];
    uint64_t missing = 0;
    if (!tgi_opts_given(q->o, TGI_OPT_VRAM) && !tgi_opts_given(q->o, TGI_OPT_GPU) &&
        !q->machine.n_gpus)
        return TG_OK;
    TGI_TRY(tgi_gpus_asked(q, &gpus, err));
    const uint64_t varies = tgi_sat_mul(r->per_sample_bytes, (size_t)s->batch);
    const uint64_t fixed = r->total_bytes > varies ? r->total_bytes - varies : 0;
    tgi_jw_begin(w, "gpus", '[');
    for (int i = 0; i < gpus->n; i++) {
        const tgi_gpu *g = &gpus->gpu[i];
        const uint64_t usable = tgi_budget_of(g->memory_bytes, 0);
        const int fits = r->total_bytes <= usable;
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "gpu", g->name);
        tgi_jw_uint(w, "usable_bytes", usable);
        tgi_jw_bool(w, "fits", fits);
        tgi_jw_uint(
            w, "largest_batch",
            usable > fixed && r->per_sample_bytes ? (usable - fixed) / r->per_sample_bytes : 0);
        tgi_jw_end(w, '}');
        if (!fits && r->total_bytes - usable > missing) {
            missing = r->total_bytes - usable;
            snprintf(name, sizeof name, "%s", g->name);
        }
    }
    tgi_jw_end(w, ']');
    tgi_free(gpus);
    if (!missing)
        return TG_OK;
    return tgi_fail(err, TG_E_BUDGET,
                    "training does not fit on \"%s\", where %s are missing: %s", name,
                    tgi_size_text(missing, text, sizeof text), ways_out(s, ways, sizeof ways));
}

/* What is not counted, and what was assumed. */
static void put_notes(tgi_jw *w, const tgi_saved *s, int64_t accumulation)
{
    tgi_jw_begin(w, "notes", '[');
    tgi_jw_str(w, NULL,
               "not counted: workspaces of kernels, the gradient of one activation at a time, "
               "the GPU's context, and what the allocator holds in reserve");
    if (accumulation > 1)
        tgi_jw_str(w, NULL, "accumulation adds no memory: gradients are summed where they are");
    for (int i = 0; i < s->n_assumed; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "%s has no rule: all operands and results of it are counted", s->assumed[i]);
        tgi_jw_str(w, NULL, text);
    }
    tgi_jw_end(w, ']');
}

/* The word instead of a model: the generator that tegula knows. */
static int of_propainter(const tgi_question *q)
{
    return q->n_files == 1 && strcmp(q->files[0], "propainter") == 0;
}

/* Options into a spec; bf16 is autocast without a scaled loss. */
static tg_status read_spec(const tgi_question *q, tg_train_spec *s, double *loss_scale,
                           tgi_err *err)
{
    const char *scale = tgi_opts_str(q->o, TGI_OPT_LOSS_SCALE),
               *batch = tgi_opts_str(q->o, TGI_OPT_BATCH);
    const int precision = tgi_opts_choice(q->o, TGI_OPT_PRECISION);
    *s = (tg_train_spec){.size = sizeof *s, .model = tgi_opts_str(q->o, TGI_OPT_MODEL)};
    if (q->n_files && !of_propainter(q))
        return tgi_fail(err, TG_E_ARG, "estimate training takes no files (\"%s\")",
                        q->files[0]);
    if (q->n_files && s->model)
        return tgi_fail(err, TG_E_ARG, "estimate training: either propainter or -m MODEL.onnx");
    if (q->n_files)
        s->model = q->files[0];
    if (!s->model)
        return tgi_fail(err, TG_E_ARG, "estimate training: -m MODEL.onnx is missing");
    s->batch = 1;
    if (batch)
        TGI_TRY(tgi_int_parse(batch, 1, 1000000, "batch: value", &s->batch, err));
    s->accumulation = tgi_opts_int(q->o, TGI_OPT_ACCUMULATION, 1);
    s->checkpointing = tgi_opts_flag(q->o, TGI_OPT_CHECKPOINTING);
    s->precision = precision <= TGI_PRECISION_FP32 ? TG_TRAIN_FP32
                   : precision == TGI_PRECISION_O2 ? TG_TRAIN_O2
                                                   : TG_TRAIN_O1;
    s->optimizer = (tg_optimizer)tgi_opts_choice(q->o, TGI_OPT_OPTIMIZER);
    *loss_scale = precision >= 2 ? 0 : -1;
    if (scale)
        TGI_TRY(tgi_loss_scale_parse(scale, loss_scale, err));
    if (scale && precision < 2 && *loss_scale >= 0)
        return tgi_fail(err, TG_E_ARG,
                        "--loss-scale is of half precision: --precision O1 or O2");
    return TG_OK;
}

tg_status tgi_estimate_training(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    tg_train_spec s;
    tg_train_size r = {.size = sizeof r};
    double loss_scale;
    trained t = {0};
    TGI_TRY(read_spec(q, &s, &loss_scale, err));
    if (of_propainter(q))
        return tgi_training_propainter(q, &s, loss_scale, w, err);
    tg_status st = open_trained(&t, s.model, q->o, s.precision, err);
    if (st == TG_OK)
        st = count_all(&t.saved, &s, &r, err);
    if (st == TG_OK) {
        tgi_training_put_settings(w, q, &s, t.size, loss_scale);
        tgi_training_put_bytes(w, &r);
        st = tgi_training_put_gpus(w, q, &s, &r, err);
        put_notes(w, &t.saved, s.accumulation);
    }
    close_trained(&t);
    return st;
}
