/* cellpose.h - masks from flows (Cellpose, in the plane).
 *
 * Planes: flow down, flow to the right, and how sure it is that a pixel belongs to a cell: what the network
 * says, unscaled. What comes out is what `cellpose` 4.2.1.1 (dynamics.compute_masks on the processor, then
 * utils.fill_holes_and_remove_small_masks) makes of the same planes:
 *
 * 1. Each pixel above the threshold follows the flow for `niter` steps. All arithmetic is in single
 *    precision and in their order, so the pixel it ends at is the same one.
 * 2. Where more than 10 end, and nowhere within 2 pixels more do, is a seed. It is extended to pixels where
 *    more than 2 end, five times by one pixel. The seed with the larger count wins; of equal ones the later
 *    in raster order. (There, theirs is left to a sort that is not stable.)
 * 3. A pixel belongs to the mask on which it ended. Masks of more than `max_size_fraction` of the image go.
 * 4. Flows are made from each mask (heat spread from its centre) and compared; masks further off than
 *    `flow_threshold` go.
 * 5. Masks below `min_size` go, holes are filled, masks below `min_size` go.
 * 6. Numbers from 1 in the order in which masks are met row by row.
 *
 * Rows are read in bands, some of them twice. Memory holds a window of flows, one number a pixel (or
 * nothing of that, with a scratch folder), the places where pixels end and the masks' table. */
#ifndef TGI_CELLPOSE_H
#define TGI_CELLPOSE_H

#include "engine/post/post_rows.h"

#include <stddef.h>

typedef struct tgi_cellpose_how {
    float cell_threshold;
    double flow_threshold; /* 0: masks are not compared with the flow */
    int niter;
    int min_size; /* 0: small ones stay */
    double max_size_fraction;
    int64_t band_rows;   /* rows that are worked on at once; 0: 64 */
    int64_t margin_rows; /* of flow that are read around them; 0: 64 */
    const char *scratch; /* folder for one number a pixel; NULL: in memory */
    int n_threads;       /* 0: 1 */
    size_t limit_bytes;  /* of all that it holds; 0: no limit */
} tgi_cellpose_how;

/* Their defaults. */
#define TGI_CELLPOSE_HOW                                                                       \
    {                                                                                          \
        .flow_threshold = 0.4, .niter = 200, .min_size = 15, .max_size_fraction = 0.4          \
    }

typedef struct tgi_cellpose tgi_cellpose;

/* Find the masks. `rows` is used during the call only. Returned. TG_E_ARG: a setting or a size out of range
 * (a side below 2 pixels, 2^32 - 1 pixels or more); TG_E_FORMAT: a flow of a cell's pixel that is no
 * number; TG_E_BUDGET: beyond the limit; those of scratch.h. */
tg_status tgi_cellpose_open(const tgi_post_rows *rows, const tgi_cellpose_how *how,
                            tgi_cellpose **out, tgi_err *err);
void tgi_cellpose_close(tgi_cellpose **c);

/* Bytes that it takes for an image of that size with so many masks, the tallest of so many rows, whose
 * pixels end at `n_ends` places, if no pixel goes further than the margin. */
size_t tgi_cellpose_bytes(const tgi_cellpose_how *how, int64_t height, int64_t width,
                          int64_t tallest, uint64_t n_masks, uint64_t n_ends);

uint32_t tgi_cellpose_count(const tgi_cellpose *c);
size_t tgi_cellpose_peak(const tgi_cellpose *c); /* the most bytes it held */

/* Rows [y0,y1) of the image, a number for each pixel, 0 where there is no mask. */
tg_status tgi_cellpose_paint(tgi_cellpose *c, int64_t y0, int64_t y1, uint32_t *dst,
                             tgi_err *err);

#endif
