/* device_time.c - the model of a device's seconds: blocks, launches, and pixels that nothing
 * hides. */
#include "engine/plan/device_time.h"

#include "engine/base/arith.h"
#include "engine/plan/speed.h"
#include "kernels/device.h"

#include <math.h>

/* For each multiprocessor, from the small ones of 7.5 on: what kernels reach, not what is
 * printed on the box. */
#define FLOPS_HALF 1e12
#define FLOPS_FLOAT 0.15e12
#define BYTES_PER_SECOND 15e9
#define BLOCKS 2.0
#define SMALL_DEVICE 24
#define SECONDS_PER_LAUNCH 2.5e-6 /* in a graph */
/* The host's side of pixels: files, codecs, conversions. */
#define PIXEL_BYTES_PER_SECOND 1.5e9
/* What a block computes of a convolution; other kernels' are of a like size. */
#define BLOCK_PIXELS 128.0
#define BLOCK_CHANNELS 64.0

tgi_rates tgi_device_rates(int multiprocessors, tg_dtype element)
{
    const double n = multiprocessors < 1 ? SMALL_DEVICE : multiprocessors;
    return (tgi_rates){.flops = n * (element == TG_DTYPE_F32 ? FLOPS_FLOAT : FLOPS_HALF),
                       .bytes = n * BYTES_PER_SECOND,
                       .blocks = n * BLOCKS};
}

double tgi_device_blocks(double pixels, double channels)
{
    return fmax(1, ceil(pixels / BLOCK_PIXELS)) * fmax(1, ceil(channels / BLOCK_CHANNELS));
}

/* The share of the device that so many blocks keep busy: the last round of them is not full. */
static double share_of(const tgi_rates *r, double blocks)
{
    const double rounds = blocks / r->blocks;
    return rounds / ceil(rounds);
}

/* Pixels of a node's result in a full band. */
static double band_pixels(const tgi_tiling *t, int k)
{
    const tgi_net_node *n = tgi_stage_node(t->stage, k);
    const tgi_slot *s = &t->slot[n->node->dst[0]];
    const double rows = t->net->rank == 5 ? (double)tgi_max(1, s->rows) : 1;
    return (double)t->band_rows[k] * rows * (double)tgi_max(1, s->width);
}

/* On a device that is busy all over. */
static double busy_seconds(const tgi_rates *r, const tgi_tiling *t, int k)
{
    const tgi_net_node *n = tgi_stage_node(t->stage, k);
    const double element = (double)tgi_element_bytes(t->net->be) / sizeof(float);
    return tgi_speed_both(t->node_flops[2 * k] * n->cost / r->flops,
                          tgi_speed_bytes(t, k) * element / r->bytes);
}

/* Of all bands' kernels: as the launches fill the device, and as if they did. */
static double kernel_seconds(const tgi_rates *r, const tgi_tiling *t, double *busy)
{
    double sum = (double)t->bands * (t->stage->n_nodes + 2) * SECONDS_PER_LAUNCH;
    *busy = 0;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const tgi_net_node *n = tgi_stage_node(t->stage, k);
        const double blocks = tgi_device_blocks(
            band_pixels(t, k), (double)tgi_net_dim(t->net, n->node->dst[0], 1));
        const double seconds = busy_seconds(r, t, k);
        *busy += seconds;
        sum += seconds / share_of(r, blocks);
    }
    return sum;
}

double tgi_device_pixel_seconds(double bytes)
{
    return bytes / PIXEL_BYTES_PER_SECOND;
}

double tgi_device_seconds(const tgi_rates *r, const tgi_tiling *t, double pixel_bytes)
{
    double busy;
    return tgi_device_pixel_seconds(pixel_bytes) + kernel_seconds(r, t, &busy);
}

double tgi_device_share(const tgi_rates *r, const tgi_tiling *t,
                        int (*is)(const void *user, const tgi_node *node), const void *user)
{
    double all = 0, theirs = 0;
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const double seconds = busy_seconds(r, t, k);
        all += seconds;
        theirs += is(user, tgi_stage_node(t->stage, k)->node) ? seconds : 0;
    }
    return all > 0 ? theirs / all : 0;
}

double tgi_device_all_seconds(const tgi_rates *r, const tgi_tiling *t, double items, int lanes,
                              double pixel_bytes)
{
    double busy;
    const double alone = kernel_seconds(r, t, &busy);
    const double kernels = items * fmax(busy, alone / lanes);
    const double pixels = tgi_device_pixel_seconds(pixel_bytes);
    const double bands = fmax(1, items * (double)t->bands);
    return fmax(kernels, pixels) + pixels / bands;
}

int tgi_device_lanes_wanted(const tgi_rates *r, const tgi_tiling *t)
{
    double busy;
    const double alone = kernel_seconds(r, t, &busy);
    if (t->bands != t->cells || busy <= 0)
        return 1;
    return (int)fmax(1, fmin(floor(alone / busy + 0.5), TGI_DEVICE_LANES)); /* half pays */
}
