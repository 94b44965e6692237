/* device_time.h - how long a device takes for a tiling; the choice of bands goes by it.
 *
 * A processor is busy with any band. A device of a hundred multiprocessors is not busy with the
 * few rows that a band has in the deep layers of a U-Net. So its bands are as tall as pays:
 *
 *   of a launch     its part of the node's work, over the rate that the device has with as many
 *                   blocks as the launch has; and what a launch costs by itself. A program
 *                   launches every node in every band, also those with nothing to do.
 *   of a pass       the first band's pixels are read, and the last one's written, while nothing
 *                   else happens: tall bands make that longer.
 *
 * Rates follow from the number of multiprocessors alone, so the same machine chooses the same
 * bands tomorrow. They are round figures between small devices and large ones. The ratio of
 * arithmetic to bandwidth decides, and that has stayed alike. */
#ifndef TGI_DEVICE_TIME_H
#define TGI_DEVICE_TIME_H

#include "engine/plan/tiling.h"

typedef struct tgi_rates {
    double flops, bytes; /* a second, with every multiprocessor busy */
    double blocks;       /* that run at once */
} tgi_rates;

/* For activations of `element`; multiprocessors < 1: of a small device. */
tgi_rates tgi_device_rates(int multiprocessors, tg_dtype element);

/* Blocks that a launch of `pixels` times `channels` has, at least 1. */
double tgi_device_blocks(double pixels, double channels);

/* Seconds of all bands of one item. `pixel_bytes`: of a band's pixels, both ways. */
double tgi_device_seconds(const tgi_rates *r, const tgi_tiling *t, double pixel_bytes);

/* Seconds that the host takes with so many bytes of pixels. */
double tgi_device_pixel_seconds(double bytes);

/* Of the kernels' seconds on a busy device, the share of the nodes for which `is` says yes. */
double tgi_device_share(const tgi_rates *r, const tgi_tiling *t,
                        int (*is)(const void *user, const tgi_node *node), const void *user);

/* Seconds of so many items, with `lanes` cells beside each other: what takes longer, the
 * kernels or the host with all pixels (`pixel_bytes`, both ways), and the first and the last
 * band's pixels, which travel alone. */
double tgi_device_all_seconds(const tgi_rates *r, const tgi_tiling *t, double items, int lanes,
                              double pixel_bytes);

/* Cells that keep the device as busy as one large one would, computed beside each other: 1
 * where a cell is more than one band, and at most TGI_DEVICE_LANES. */
int tgi_device_lanes_wanted(const tgi_rates *r, const tgi_tiling *t);

#endif
