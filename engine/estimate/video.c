/* video.c - `tegula estimate video`: what ProPainter takes for a film of a size and length, beside what is published of its
 * script (configs/published/propainter.json), and the smallest GPU that could hold it.
 *
 *   peak      of the frames and networks of `tegula inpaint --weights`: all in memory, and as little as --scratch allows.
 *             A film's decoder and encoder are not in it (`inpaint --plan` has them)
 *   device    the networks' block and weights alone; frames stay on the host. Planned: no GPU runs it yet
 *   seconds   of a GPU: operations over --efficiency of its rate in half precision
 *
 * No weights are needed: zeros of the same shapes stand in for them. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/estimate/estimate.h"
#include "engine/inpaint/propainter.h"
#include "engine/job/roofline.h"
#include "engine/settings/config.h"
#include "engine/settings/words.h"
#include "kernels/backend.h"

#include <stdio.h>
#include <string.h>

#define PUBLISHED "published/propainter.json"
#define USUAL_WIDTH 1280
#define USUAL_HEIGHT 720

typedef struct film {
    int64_t width, height, frames;
} film;

typedef struct ours {
    uint64_t all, least; /* bytes */
    uint64_t device;     /* of float32 */
    double flops;        /* of the whole film */
} ours;

/* ---- Ours -------------------------------------------------------------------------------- */

static tg_status plan_film(const tgi_question *q, const film *f, int bf16, ours *out,
                           tgi_err *err)
{
    const tgi_propainter_how how = {
        .height = f->height / 8 * 8,
        .width = f->width / 8 * 8,
        .hi = f->frames,
        .set = {tgi_opts_int(q->o, TGI_OPT_SUBVIDEO_LENGTH, 80),
                tgi_opts_int(q->o, TGI_OPT_NEIGHBOR_LENGTH, 10),
                tgi_opts_int(q->o, TGI_OPT_REF_STRIDE, 10)},
        .iterations = (int)tgi_opts_int(q->o, TGI_OPT_RAFT_ITER, 20),
        .threads = (int)tgi_opts_int(q->o, TGI_OPT_THREADS, q->machine.processors),
        .flags = TGI_NET_KINDS(bf16 ? TGI_KIND_BF16 : 0),
        .be = tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)),
        .scratch = "."};
    tgi_method *m = NULL;
    size_t block, weights;
    if (how.height < TGI_PP_SMALLEST || how.width < TGI_PP_SMALLEST)
        return tgi_fail(err, TG_E_ARG,
                        "--size %lldx%lld: ProPainter takes sides of %d pixels or more",
                        (long long)f->width, (long long)f->height, TGI_PP_SMALLEST);
    tg_status st = tgi_propainter_new(&how, &m, err);
    if (st != TG_OK)
        return st;
    tgi_propainter_networks(m, &block, &weights);
    out->all = m->ops->bytes(m);
    out->device = block + weights;
    out->flops = m->ops->flops(m) * (double)f->frames;
    while (m->ops->shrink(m))
        continue;
    out->least = m->ops->bytes(m);
    m->ops->free(&m);
    return TG_OK;
}

/* ---- GPUs -------------------------------------------------------------------------------- */

static int holds(const tgi_gpu *g, uint64_t bytes)
{
    return tgi_gpu_is_served(g) && bytes <= tgi_device_usable(g->memory_bytes);
}

/* The one of the least memory; of such the slowest. */
static const tgi_gpu *smallest(const tgi_gpus *t, uint64_t bytes)
{
    const tgi_gpu *best = NULL;
    for (int i = 0; i < t->n; i++) {
        const tgi_gpu *g = &t->gpu[i];
        if (holds(g, bytes) &&
            (!best || g->memory_bytes < best->memory_bytes ||
             (g->memory_bytes == best->memory_bytes && g->fp16_flops < best->fp16_flops)))
            best = g;
    }
    return best;
}

static void put_device(tgi_jw *w, const tgi_question *q, const tgi_gpus *t, const char *kind,
                       uint64_t bytes, double flops)
{
    const tgi_gpu *g = smallest(t, bytes);
    double efficiency = 0.5;
    (void)tgi_share_parse(tgi_opts_str(q->o, TGI_OPT_EFFICIENCY), &efficiency, NULL);
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "precision", kind);
    tgi_jw_uint(w, "device_bytes", bytes);
    tgi_jw_str(w, "smallest_gpu", g ? g->name : NULL);
    if (g && flops > 0 && g->fp16_flops > 0) {
        const double seconds = flops / (g->fp16_flops * efficiency);
        const double price = tgi_price_of(tgi_opts_str(q->o, TGI_OPT_PRICE), g->name);
        tgi_jw_num(w, "projected_seconds", seconds);
        if (price >= 0)
            tgi_jw_num(w, "projected_cost", price * seconds / 3600);
    }
    tgi_jw_str(w, "state", "planned, not run");
    tgi_jw_end(w, '}');
}

/* ---- Published --------------------------------------------------------------------------- */

static const tgi_key row_keys[] = {
    {"size", TGI_KEY_TEXT, 1, 0, 0},
    {"frames", TGI_KEY_NUMBER, 1, 1, 1e9},
    {"fp32_gb", TGI_KEY_NUMBER_OR_NULL, 1, 0, 1e6},
    {"fp16_gb", TGI_KEY_NUMBER_OR_NULL, 1, 0, 1e6},
};

static void put_gb(tgi_jw *w, const char *key, const tgi_json *row, const char *from)
{
    double v;
    if (tgi_json_num(tgi_json_get(row, from), &v))
        tgi_jw_num(w, key, v);
    else
        tgi_jw_str(w, key, "out of memory");
}

static tg_status put_row(const tgi_question *q, const tgi_json *row, tgi_jw *w, tgi_err *err)
{
    const char *size = "";
    double frames = 0;
    int64_t v[3] = {0, 0, 0};
    ours o = {0};
    TGI_TRY(tgi_config_check(row, row_keys, (int)(sizeof row_keys / sizeof row_keys[0]),
                             PUBLISHED, err));
    (void)tgi_json_str(tgi_json_get(row, "size"), &size);
    (void)tgi_json_num(tgi_json_get(row, "frames"), &frames);
    TGI_TRY(tgi_dims_parse(size, v, err));
    const film f = {v[0], v[1], (int64_t)frames};
    TGI_TRY(plan_film(q, &f, 0, &o, err));
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "size", size);
    tgi_jw_int(w, "frames", f.frames);
    put_gb(w, "published_fp32_gb", row, "fp32_gb");
    put_gb(w, "published_fp16_gb", row, "fp16_gb");
    tgi_jw_uint(w, "peak_bytes", o.all);
    tgi_jw_uint(w, "least_bytes", o.least);
    tgi_jw_end(w, '}');
    return TG_OK;
}

static tg_status put_published(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    char path[1024];
    const char *note = "";
    tgi_json *doc = NULL;
    TGI_TRY(tgi_config_path(PUBLISHED, path, sizeof path, err));
    TGI_TRY(tgi_json_load(path, &doc, err));
    (void)tgi_json_str(tgi_json_get(doc, "note"), &note);
    tgi_jw_str(w, "published", note);
    tgi_jw_begin(w, "beside", '[');
    tg_status st = TG_OK;
    for (const tgi_json *row = tgi_json_first(tgi_json_get(doc, "inference"));
         row && st == TG_OK; row = tgi_json_next(row))
        st = put_row(q, row, w, err);
    tgi_jw_end(w, ']');
    tgi_json_free(&doc);
    return st;
}

/* ---- The estimator ----------------------------------------------------------------------- */

static tg_status read_film(const tgi_question *q, film *f, tgi_err *err)
{
    const char *size = tgi_opts_str(q->o, TGI_OPT_SIZE),
               *frames = tgi_opts_str(q->o, TGI_OPT_FRAMES);
    int64_t v[3] = {USUAL_WIDTH, USUAL_HEIGHT, 0};
    if (q->n_files)
        return tgi_fail(err, TG_E_ARG,
                        "estimate video takes no file: --size WIDTHxHEIGHT and --frames N; "
                        "tegula inpaint %s ... --plan is about that film",
                        q->files[0]);
    if (size)
        TGI_TRY(tgi_dims_parse(size, v, err));
    *f = (film){v[0], v[1], 80};
    return frames ? tgi_int_parse(frames, 2, 1000000000, "--frames", &f->frames, err) : TG_OK;
}

static void put_settings(const tgi_question *q, const film *f, tgi_jw *w)
{
    char size[64];
    snprintf(size, sizeof size, "%lldx%lld", (long long)f->width, (long long)f->height);
    tgi_jw_begin(w, "settings", '{');
    tgi_jw_str(w, "size", size);
    tgi_jw_int(w, "frames", f->frames);
    tgi_jw_int(w, "subvideo_length", tgi_opts_int(q->o, TGI_OPT_SUBVIDEO_LENGTH, 80));
    tgi_jw_int(w, "neighbor_length", tgi_opts_int(q->o, TGI_OPT_NEIGHBOR_LENGTH, 10));
    tgi_jw_int(w, "ref_stride", tgi_opts_int(q->o, TGI_OPT_REF_STRIDE, 10));
    tgi_jw_int(w, "raft_iter", tgi_opts_int(q->o, TGI_OPT_RAFT_ITER, 20));
    tgi_jw_end(w, '}');
}

static tg_status put_host(const tgi_question *q, const film *f, tgi_jw *w, ours *fp32,
                          tgi_err *err)
{
    ours half;
    TGI_TRY(plan_film(q, f, 0, fp32, err));
    TGI_TRY(plan_film(q, f, 1, &half, err));
    const struct {
        const char *name;
        const ours *is;
    } row[] = {{"fp32", fp32}, {"bf16", &half}};
    tgi_jw_num(w, "tflop", fp32->flops / 1e12);
    tgi_jw_begin(w, "processor", '[');
    for (int i = 0; i < 2; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "precision", row[i].name);
        tgi_jw_uint(w, "peak_bytes", row[i].is->all);
        tgi_jw_uint(w, "least_bytes", row[i].is->least);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    return TG_OK;
}

tg_status tgi_estimate_video(const tgi_question *q, tgi_jw *w, tgi_err *err)
{
    film f;
    ours fp32;
    tgi_gpus *table = NULL;
    TGI_TRY(read_film(q, &f, err));
    put_settings(q, &f, w);
    TGI_TRY(put_host(q, &f, w, &fp32, err));
    TGI_TRY(tgi_gpus_load(&table, err));
    tgi_jw_begin(w, "device", '[');
    put_device(w, q, table, "fp32", fp32.device, 0);
    put_device(w, q, table, "fp16", fp32.device / 2, fp32.flops);
    tgi_jw_end(w, ']');
    tgi_free(table);
    return put_published(q, w, err);
}
