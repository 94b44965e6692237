/* video_gpus.c - GPUs that could hold a film's networks: the smallest of the table for each precision, and those that --gpu and
 * --price name, with what they would cost.
 *
 *   bytes     the networks' block and weights; frames stay on the host. Half of it in half precision. With --device cuda what
 *             the plugin plans instead: as much as it likes, and the least that does
 *   seconds   operations over --efficiency of the GPU's rate in that precision */
#include "engine/base/mem.h"
#include "engine/estimate/video.h"
#include "engine/job/roofline.h"
#include "engine/settings/words.h"

#include <string.h>

static const char *const names[TGI_VIDEO_KINDS] = {"fp32", "fp16", "bf16"};

/* Compute capability 8.0 brought bf16; 0.0 is not known. */
static int has(const tgi_gpu *g, tgi_video_kind kind)
{
    return tgi_gpu_is_served(g) && (kind != TGI_VIDEO_BF16 || !g->major || g->major >= 8);
}

static double rate_of(const tgi_gpu *g, tgi_video_kind kind)
{
    return kind == TGI_VIDEO_FP32 ? g->fp32_flops : g->fp16_flops;
}

static int holds(const tgi_gpu *g, tgi_video_kind kind, uint64_t bytes)
{
    return bytes && has(g, kind) && bytes <= tgi_device_usable(g->memory_bytes);
}

/* Of as much memory, the slowest. */
const tgi_gpu *tgi_video_smallest(const tgi_gpus *t, tgi_video_kind kind, uint64_t bytes)
{
    const tgi_gpu *best = NULL;
    for (int i = 0; i < t->n; i++) {
        const tgi_gpu *g = &t->gpu[i];
        if (holds(g, kind, bytes) &&
            (!best || g->memory_bytes < best->memory_bytes ||
             (g->memory_bytes == best->memory_bytes && rate_of(g, kind) < rate_of(best, kind))))
            best = g;
    }
    return best;
}

/* < 0: the table has no rate. */
static double seconds_of(const tgi_question *q, const tgi_gpu *g, tgi_video_kind kind,
                         double flops)
{
    double efficiency = 0.5;
    (void)tgi_share_parse(tgi_opts_str(q->o, TGI_OPT_EFFICIENCY), &efficiency, NULL);
    const double rate = rate_of(g, kind) * efficiency;
    return rate > 0 ? flops / rate : -1;
}

/* < 0: it has no price. */
static double cost_of(const tgi_question *q, const tgi_gpu *g, double seconds)
{
    const double price = tgi_price_of(tgi_opts_str(q->o, TGI_OPT_PRICE), g->name);
    return price < 0 || seconds < 0 ? -1 : price * seconds / 3600;
}

static void put_time(const tgi_question *q, const tgi_gpu *g, tgi_video_kind kind, double flops,
                     tgi_jw *w)
{
    const double seconds = seconds_of(q, g, kind, flops), cost = cost_of(q, g, seconds);
    if (seconds >= 0)
        tgi_jw_num(w, "projected_seconds", seconds);
    if (cost >= 0)
        tgi_jw_num(w, "projected_cost", cost);
}

/* `least`: of a GPU's memory that does; 0: it does not compute so. */
static void put_smallest(const tgi_question *q, const tgi_gpus *t, tgi_video_kind kind,
                         uint64_t least, const tgi_video_need *n, tgi_jw *w)
{
    const tgi_gpu *g = tgi_video_smallest(t, kind, least);
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "precision", names[kind]);
    if (least) {
        tgi_jw_uint(w, "device_bytes", n->device[kind]);
        if (tgi_video_is_far(q))
            tgi_jw_uint(w, "least_device_bytes", least);
        tgi_jw_str(w, "smallest_gpu", g ? g->name : NULL);
    }
    if (g)
        put_time(q, g, kind, n->flops, w);
    tgi_jw_str(w, "state",
               !least                ? "refused: films are not inpainted so on a GPU"
               : tgi_video_is_far(q) ? "planned by the plugin, its context not counted"
                                     : "planned, not run");
    tgi_jw_end(w, '}');
}

static void put_named(const tgi_question *q, const tgi_gpu *g, const uint64_t *least,
                      const tgi_video_need *n, tgi_jw *w)
{
    for (int k = 0; k < TGI_VIDEO_KINDS; k++) {
        if (!has(g, (tgi_video_kind)k) || !least[k])
            continue;
        const int fits = holds(g, (tgi_video_kind)k, least[k]);
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_str(w, "gpu", g->name);
        tgi_jw_str(w, "precision", names[k]);
        tgi_jw_bool(w, "fits", fits);
        if (fits)
            put_time(q, g, (tgi_video_kind)k, n->flops, w);
        tgi_jw_end(w, '}');
    }
}

/* The price of a whole film, in half precision, is least on it; NULL: none of the priced ones holds it. */
static const tgi_gpu *cheapest(const tgi_question *q, const tgi_gpus *t, uint64_t least,
                               const tgi_video_need *n)
{
    const tgi_gpu *best = NULL;
    double cheap = 0;
    for (int i = 0; i < t->n; i++) {
        const tgi_gpu *g = &t->gpu[i];
        const double cost = cost_of(q, g, seconds_of(q, g, TGI_VIDEO_FP16, n->flops));
        if (cost >= 0 && (!best || cost < cheap) && holds(g, TGI_VIDEO_FP16, least)) {
            best = g;
            cheap = cost;
        }
    }
    return best;
}

static int is_listed(const tgi_gpus *t, const char *name)
{
    int i = 0;
    while (i < t->n && strcmp(t->gpu[i].name, name) != 0)
        i++;
    return i < t->n;
}

/* Each name with a price is one of the table's. */
static tg_status check_prices(const char *prices, const tgi_gpus *t, tgi_err *err)
{
    while (prices && *prices) {
        const char *item;
        const size_t n = tgi_list_next(&prices, &item);
        const char *end = memchr(item, '=', n);
        const size_t k = end ? (size_t)(end - item) : n;
        int i = 0;
        while (i < t->n && !tgi_same_name(item, k, t->gpu[i].name))
            i++;
        if (i == t->n)
            return tgi_fail(err, TG_E_ARG,
                            "--price: no GPU is called \"%.*s\" (configs/gpus.json)",
                            (int)(k < 60 ? k : 60), item);
    }
    return TG_OK;
}

/* GPUs that are asked about: by --gpu, --vram and --machine, and those with a price. *out NULL: none; tgi_free. */
static tg_status list_named(const tgi_question *q, const tgi_gpus *t, tgi_gpus **out,
                            tgi_err *err)
{
    const char *prices = tgi_opts_str(q->o, TGI_OPT_PRICE);
    const int asked = tgi_opts_given(q->o, TGI_OPT_GPU) || tgi_opts_given(q->o, TGI_OPT_VRAM) ||
                      (!q->machine.here && q->machine.n_gpus);
    *out = NULL;
    TGI_TRY(check_prices(prices, t, err));
    if (asked)
        TGI_TRY(tgi_gpus_asked(q, out, err));
    if (!*out && prices)
        *out = tgi_calloc(TGI_TAG_MISC, 1, sizeof **out);
    if (!*out)
        return prices ? tgi_fail(err, TG_E_NOMEM, "no memory for the table of GPUs") : TG_OK;
    for (int i = 0; i < t->n && (*out)->n < TGI_MAX_GPUS; i++)
        if (tgi_price_of(prices, t->gpu[i].name) >= 0 && !is_listed(*out, t->gpu[i].name))
            (*out)->gpu[(*out)->n++] = t->gpu[i];
    return TG_OK;
}

tg_status tgi_video_put_gpus(const tgi_question *q, const tgi_gpus *t, const tgi_video_film *f,
                             const tgi_video_need *n, tgi_jw *w, tgi_err *err)
{
    tgi_gpus *named = NULL;
    uint64_t least[TGI_VIDEO_KINDS];
    memcpy(least, n->device, sizeof least);
    for (int k = 0; k < TGI_VIDEO_KINDS && tgi_video_is_far(q); k++)
        TGI_TRY(tgi_video_least_device(q, f, (tgi_video_kind)k, &least[k], err));
    tgi_jw_begin(w, "device", '[');
    for (int k = 0; k < TGI_VIDEO_KINDS; k++)
        put_smallest(q, t, (tgi_video_kind)k, least[k], n, w);
    tgi_jw_end(w, ']');
    TGI_TRY(list_named(q, t, &named, err));
    if (!named)
        return TG_OK;
    tgi_jw_begin(w, "gpus", '[');
    for (int i = 0; i < named->n; i++)
        put_named(q, &named->gpu[i], least, n, w);
    tgi_jw_end(w, ']');
    int without = 0;
    for (int i = 0; i < named->n; i++)
        without += !tgi_gpu_is_served(&named->gpu[i]);
    if (without)
        tgi_jw_begin(w, "without_kernels", '[');
    for (int i = 0; i < named->n; i++)
        if (!tgi_gpu_is_served(&named->gpu[i]))
            tgi_jw_str(w, NULL, named->gpu[i].name);
    if (without)
        tgi_jw_end(w, ']');
    if (tgi_opts_given(q->o, TGI_OPT_PRICE)) {
        const tgi_gpu *g = cheapest(q, named, least[TGI_VIDEO_FP16], n);
        tgi_jw_str(w, "cheapest_gpu", g ? g->name : NULL);
    }
    tgi_free(named);
    return TG_OK;
}
