/* stats.h - whole-image statistics in a streamed pass, and the linear map that comes of them.
 *
 * Exact, not sampled: 8- and 16-bit pixels fill a histogram with one bin per value; wider types
 * are seen as float32, as the network will see them, ordered as 32-bit keys and selected in two
 * passes (upper half of the key, then the lower half within the bin that holds the rank). Mean
 * and variance are merged in fixed pieces of rows in file order (Chan), so no thread or budget
 * changes them. NaN pixels are counted and left out.
 *
 * One set per channel when channels are looped, one for all when they enter the network
 * together; never per tile. A chain of steps may ask for one of each channel and of each item.
 *
 * Source: percentiles by linear interpolation between order statistics, rank (n-1)*p/100. */
#ifndef TGI_STATS_H
#define TGI_STATS_H

#include "engine/plan/mapping.h"

typedef struct tgi_stats {
    int64_t count, nans;
    double min, max, mean, deviation; /* deviation: population standard deviation */
    double low, high;                 /* the percentiles asked for, else min and max */
} tgi_stats;

/* x' = x * mul + add; where it clips, of x held in [lo, hi] first */
typedef struct tgi_affine {
    double mul, add;
    int clips;
    double lo, hi;
} tgi_affine;

#define TGI_STATS_SCRATCH ((size_t)(5 * 65536 * 8))

/* What the pass needs beside scratch: a row buffer of any size >= one row of one sample. */
typedef struct tgi_stats_args {
    tgi_source *source;
    const tgi_mapping *map;
    const tgi_normalize_spec *norm;
    void *scratch; /* TGI_STATS_SCRATCH bytes */
    void *rows;    /* row buffer */
    size_t rows_bytes;
    /* After each read: fraction in [0,1]; not TG_OK stops the pass with that status. NULL: none
     */
    tg_status (*tick)(void *user, double fraction);
    void *user;
} tgi_stats_args;

/* Fill sets[0 .. map->n_stats). */
tg_status tgi_stats_collect(const tgi_stats_args *a, tgi_stats *sets, tgi_err *err);

/* The map of channel c for one set; a flat image (no spread) gives mul = 1 after the shift. A chain of steps becomes one
 * such map, as steps are linear or clip. */
tgi_affine tgi_stats_affine(const tgi_normalize_spec *norm, const tgi_stats *s, int64_t c);
/* norm->back as a map of the network's results. */
tgi_affine tgi_stats_back(const tgi_normalize_spec *norm, const tgi_stats *s);

#endif
