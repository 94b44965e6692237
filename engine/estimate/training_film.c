/* training_film.c - `tegula estimate training propainter`: a step of its generator (training_propainter.h), the ways to need
 * less, and the table that is published (published.h), each figure in a column of its own.
 *
 * What masks hide decides what the attention keeps, so there is a most (each window hides something), which is the answer,
 * and a least. */
#include "engine/base/arith.h"
#include "engine/estimate/published.h"
#include "engine/estimate/training.h"
#include "engine/estimate/training_propainter.h"
#include "engine/settings/words.h"

#include <stdio.h>

#define USUAL_WIDTH 432
#define USUAL_HEIGHT 240
#define SMALLEST 32
#define LARGEST 4096

/* Bytes of a step; `masked` as in tgi_ppt_find. */
static tg_train_size step(const tgi_ppt_sample *f, const tg_train_spec *s, int masked)
{
    const tgi_saved parameters = tgi_ppt_parameters();
    tg_train_size r = {.size = sizeof r};
    tgi_ppt_kept kept;
    tgi_ppt_find(f, s->precision, masked, &kept);
    tgi_training_count(&parameters, s, &r);
    r.per_sample_bytes = kept.all;
    if (s->checkpointing) {
        r.segments = kept.segments;
        r.stored_bytes = tgi_sat_mul(kept.stored, (size_t)s->batch);
        r.segment_bytes = tgi_sat_mul(kept.largest, (size_t)s->batch);
        r.per_sample_bytes = kept.stored + kept.largest;
    }
    r.activations_bytes = tgi_sat_mul(r.per_sample_bytes, (size_t)s->batch);
    tgi_training_total(&r);
    return r;
}

static tg_status read_sample(const tgi_question *q, tgi_ppt_sample *f, tgi_err *err)
{
    const char *size = tgi_opts_str(q->o, TGI_OPT_SIZE),
               *frames = tgi_opts_str(q->o, TGI_OPT_FRAMES);
    int64_t v[3] = {USUAL_WIDTH, USUAL_HEIGHT, 0}, local = TGI_PPT_LOCAL;
    if (size)
        TGI_TRY(tgi_dims_parse(size, v, err));
    if (frames)
        TGI_TRY(tgi_int_parse(frames, 2, 1000, "--frames", &local, err));
    for (int i = 0; i < 2; i++)
        if (v[i] < SMALLEST || v[i] > LARGEST || v[i] % 4)
            return tgi_fail(err, TG_E_ARG,
                            "--size %lldx%lld: ProPainter's generator takes columns and rows "
                            "that are multiples of 4, from %d to %d",
                            (long long)v[0], (long long)v[1], SMALLEST, LARGEST);
    *f = (tgi_ppt_sample){v[0], v[1], local, TGI_PPT_REFS};
    return TG_OK;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void put_kept(tgi_jw *w, const tgi_ppt_sample *f, const tg_train_spec *s)
{
    tgi_ppt_kept most, least;
    tgi_ppt_find(f, s->precision, 1, &most);
    tgi_ppt_find(f, s->precision, 0, &least);
    tgi_jw_begin(w, "kept_of_a_sample", '[');
    for (int k = 0; k < TGI_PPT_PARTS; k++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "part", tgi_ppt_part_name((tgi_ppt_part)k));
        tgi_jw_uint(w, "least_bytes", least.part[k]);
        tgi_jw_uint(w, "most_bytes", most.part[k]);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

static void put_span(tgi_jw *w, const tgi_ppt_sample *f, const tg_train_spec *s,
                     const char *least, const char *most)
{
    tgi_jw_uint(w, least, step(f, s, 0).total_bytes);
    tgi_jw_uint(w, most, step(f, s, 1).total_bytes);
}

/* The same effective batch, by each of the remedies that are told, and by all of them. */
static void put_ways(tgi_jw *w, const tgi_ppt_sample *f, const tg_train_spec *s)
{
    const int64_t n = s->batch * s->accumulation;
    const struct {
        const char *name;
        int64_t batch;
        tg_train_precision precision;
        bool checkpointing;
    } way[] = {{"none", n, TG_TRAIN_FP32, false},
               {"accumulation", 1, TG_TRAIN_FP32, false},
               {"checkpointing", n, TG_TRAIN_FP32, true},
               {"O1", n, TG_TRAIN_O1, false},
               {"O2", n, TG_TRAIN_O2, false},
               {"accumulation, checkpointing, O2", 1, TG_TRAIN_O2, true}};
    tgi_jw_begin(w, "ways", '[');
    for (size_t i = 0; i < sizeof way / sizeof way[0]; i++) {
        tg_train_spec own = *s;
        own.batch = way[i].batch;
        own.accumulation = n / way[i].batch;
        own.precision = way[i].precision;
        own.checkpointing = way[i].checkpointing;
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "way", way[i].name);
        tgi_jw_int(w, "batch", own.batch);
        tgi_jw_int(w, "accumulation", own.accumulation);
        put_span(w, f, &own, "least_bytes", "most_bytes");
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

static tg_status put_row(tgi_jw *w, const tgi_json *row, const tg_train_spec *s, tgi_err *err)
{
    const char *size = "";
    int64_t v[3] = {0, 0, 0};
    tg_train_spec own = *s;
    (void)tgi_json_str(tgi_json_get(row, "size"), &size);
    TGI_TRY(tgi_dims_parse(size, v, err));
    const tgi_ppt_sample f = {v[0], v[1], TGI_PPT_LOCAL, TGI_PPT_REFS};
    own.batch = (int64_t)tgi_published_number(row, "batch");
    own.accumulation = 1;
    own.checkpointing = false;
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_int(w, "batch", own.batch);
    tgi_jw_str(w, "size", size);
    tgi_published_put_gb(w, "published_fp32_gb", row, "fp32_gb");
    own.precision = TG_TRAIN_FP32;
    put_span(w, &f, &own, "fp32_least_bytes", "fp32_most_bytes");
    tgi_published_put_gb(w, "published_fp16_gb", row, "fp16_gb");
    own.precision = TG_TRAIN_O1;
    put_span(w, &f, &own, "o1_least_bytes", "o1_most_bytes");
    tgi_jw_end(w, '}');
    return TG_OK;
}

static tg_status put_beside(tgi_jw *w, const tg_train_spec *s, tgi_err *err)
{
    tgi_json *doc = NULL;
    tg_status st = TG_OK;
    TGI_TRY(tgi_published_load(&doc, err));
    tgi_published_put_note(doc, w);
    tgi_jw_begin(w, "beside", '[');
    for (const tgi_json *row = tgi_published_rows(doc, "training"); row && st == TG_OK;
         row = tgi_json_next(row))
        st = put_row(w, row, s, err);
    tgi_jw_end(w, ']');
    tgi_json_free(&doc);
    return st;
}

static void put_notes(tgi_jw *w)
{
    tgi_jw_begin(w, "notes", '[');
    tgi_jw_str(w, NULL,
               "counted: weights, gradients, moments and activations of the generator, and the "
               "weights of the networks of motion and completion, which are not trained");
    tgi_jw_str(w, NULL,
               "not counted: the discriminator, losses, the frames themselves, what the "
               "networks of motion "
               "and completion hold before the generator runs, workspaces, gradients of "
               "activations, the GPU's context, and what the allocator holds in reserve");
    tgi_jw_str(w, NULL,
               "least and most: no window of the attention hides something, or each does; what "
               "was published is not said to be of either");
    tgi_jw_end(w, ']');
}

tg_status tgi_training_propainter(const tgi_question *q, const tg_train_spec *s,
                                  double loss_scale, tgi_jw *w, tgi_err *err)
{
    tgi_ppt_sample f;
    char size[64];
    TGI_TRY(read_sample(q, &f, err));
    snprintf(size, sizeof size, "%lldx%lld", (long long)f.wide, (long long)f.high);
    const tg_train_size r = step(&f, s, 1);
    tgi_training_put_settings(w, q, s, size, loss_scale);
    tgi_jw_int(w, "local_frames", f.local);
    tgi_jw_int(w, "ref_frames", f.refs);
    tgi_training_put_bytes(w, &r);
    tgi_jw_uint(w, "least_total_bytes", step(&f, s, 0).total_bytes);
    put_kept(w, &f, s);
    put_ways(w, &f, s);
    const tg_status fits = tgi_training_put_gpus(w, q, s, &r, err);
    if (fits != TG_OK && fits != TG_E_BUDGET)
        return fits;
    const tg_status st = put_beside(w, s, fits == TG_OK ? err : NULL);
    put_notes(w);
    return st == TG_OK ? fits : st;
}
