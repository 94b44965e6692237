/* auto_device.c - what a GPU of the machine would be given: the largest square tile of the
 * least projected time, and how many of them together.
 *
 * The GPU may be that of another machine, so this is the planner's arena at two bytes a number
 * and the roofline of job/roofline.h at half its rate: projected, and marked so. Precision
 * is FP16 with sums in FP32, the one whose rates configs/gpus.json has. */
#include "engine/auto/auto.h"
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/estimate/estimate.h"
#include "engine/job/roofline.h"

#include <stdio.h>
#include <string.h>

/* Share of the roofline that is assumed, as by default in `estimate gpu`. */
#define EFFICIENCY 0.5
#define MOST_TILE 16384
#define LEAST_TILE 256
#define MOST_CUBE 512
#define LEAST_CUBE 32
#define MOST_BATCH 64

/* The least power of two that covers the image, within [least, most]. */
static int64_t largest_tile(const tgi_auto *a)
{
    const int64_t most = a->volume ? MOST_CUBE : MOST_TILE;
    int64_t side = a->volume ? LEAST_CUBE : LEAST_TILE;
    int64_t larger = tgi_max(a->extent[1], a->extent[2]);
    if (a->volume)
        larger = tgi_max(larger, a->extent[0]);
    while (side < larger && side < most)
        side *= 2;
    return side;
}

static int64_t tiles_of(const tgi_auto *a, int64_t side, int64_t items)
{
    int64_t n = items;
    for (int k = a->volume ? 0 : 1; k < 3; k++)
        n *= tgi_ceil_div(a->extent[k], side);
    return n;
}

/* One side on one GPU: what it takes, into *out when it fits and is faster than that. */
static tg_status try_side(const tgi_auto *a, const tgi_device_job *d, const tgi_gpu *gpu,
                          int64_t side, tgi_auto_device *out, tgi_err *err)
{
    tgi_device_plan p;
    TGI_TRY(tgi_device_plan_tile(d, gpu->memory_bytes, side, &p, err));
    if (!p.fits)
        return TG_OK;
    const uint64_t tile = p.needed_bytes - d->weights_bytes;
    const uint64_t most = (p.usable_bytes - d->weights_bytes) / (tile ? tile : 1);
    int64_t batch = tgi_min((int64_t)tgi_power_of_two(most ? most : 1), MOST_BATCH);
    batch = tgi_min(batch, (int64_t)tgi_power_of_two((uint64_t)tiles_of(a, side, d->items)));
    p.weight_traffic /= (double)batch; /* read once for all of them */
    const double seconds =
        gpu->fp16_flops > 0 ? tgi_roofline_seconds(d, &p, gpu) / EFFICIENCY : -1;
    if (out->there && (seconds < 0 || seconds >= out->seconds))
        return TG_OK;
    out->there = 1;
    out->tile = side;
    out->batch = batch;
    out->seconds = seconds;
    out->needed_bytes = d->weights_bytes + (uint64_t)batch * tile;
    return TG_OK;
}

/* GPU i of the machine, into *out when it is better than what is there. */
static tg_status try_gpu(const tgi_auto *a, const tgi_device_job *d, const tgi_gpu *gpu, int i,
                         tgi_auto_device *out, tgi_err *err)
{
    const tgi_machine_gpu *g = &a->machine.gpu[i];
    tgi_auto_device one = {.gib = (double)g->total_bytes / TGI_GIB};
    for (int64_t side = largest_tile(a); side >= (a->volume ? LEAST_CUBE : LEAST_TILE);
         side /= 2)
        TGI_TRY(try_side(a, d, gpu, side, &one, err));
    if (!one.there)
        return TG_OK;
    const int better =
        !out->there || (one.seconds >= 0 && (out->seconds < 0 || one.seconds < out->seconds));
    if (!better)
        return TG_OK;
    snprintf(one.gpu, sizeof one.gpu, "%s", g->name);
    for (int k = 0; k < a->machine.n_gpus; k++)
        one.alike += strcmp(a->machine.gpu[k].name, g->name) == 0;
    *out = one;
    return TG_OK;
}

static tg_status try_gpus(tgi_auto *a, const tgi_device_job *d, tgi_err *err)
{
    tgi_gpus *table = NULL, *own = NULL;
    TGI_TRY(tgi_gpus_load(&table, err));
    own = tgi_calloc(TGI_TAG_MISC, 1, sizeof *own);
    tg_status st = own ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for the GPUs");
    if (own)
        tgi_gpus_of_machine(&a->machine, table, own);
    for (int i = 0; st == TG_OK && i < own->n; i++)
        st = try_gpu(a, d, &own->gpu[i], i, &a->device, err);
    tgi_free(own);
    tgi_free(table);
    return st;
}

tg_status tgi_auto_find_device(tg_ctx *ctx, tgi_auto *a, tgi_err *err)
{
    tgi_device_job d = {0};
    tgi_auto_device *to = &a->device;
    (void)ctx;
    if (!a->machine.n_gpus || a->tensor || a->boxed) {
        snprintf(to->why_not, sizeof to->why_not, "%s",
                 !a->machine.n_gpus ? "the machine has no GPU"
                 : a->tensor        ? "arrays are not cut in tiles"
                                    : "the network works at one size, in boxes of its own");
        return TG_OK;
    }
    tg_status st = tgi_device_job_open(NULL, a->opts, &d, err);
    if (st == TG_OK)
        st = try_gpus(a, &d, err);
    if (st == TG_OK && !to->there)
        snprintf(to->why_not, sizeof to->why_not,
                 "no GPU of the machine has room for the smallest tile");
    tgi_device_job_close(&d);
    return st;
}
