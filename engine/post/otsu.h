/* otsu.h - the threshold between two classes of values, as skimage.filters.threshold_otsu 0.26 finds it.
 *
 * Whole numbers of up to 16 bits have a bin each. Other values have 256 bins of one width between
 * the smallest and the largest. Sums have the type that numpy gives them there, so that the bin that is
 * found is the same one. */
#ifndef TGI_OTSU_H
#define TGI_OTSU_H

#include "engine/base/tensor.h"

#include <stddef.h>

typedef struct tgi_otsu {
    tg_dtype type;
    double low, high; /* of the values; NaN are none */
    int64_t seen;     /* values */
    int n;            /* bins */
    double edge[257]; /* of bins that are no whole numbers */
    uint64_t
        *count; /* of each bin, and below it what is summed from the last bin to each: views */
    double *sum;
    float *weight;
} tgi_otsu;

#define TGI_OTSU_BYTES ((size_t)65536 * 20)

/* 1: every number has a bin, and one pass is enough. */
int tgi_otsu_one_pass(tg_dtype type);
/* `memory` has TGI_OTSU_BYTES; borrowed. */
void tgi_otsu_begin(tgi_otsu *o, tg_dtype type, void *memory);
/* The first pass: what the values lie between. Of types with one pass it counts, too. */
void tgi_otsu_range(tgi_otsu *o, const double *v, int64_t n);
/* Before the second. */
void tgi_otsu_bins(tgi_otsu *o);
void tgi_otsu_count(tgi_otsu *o, const double *v, int64_t n);
/* Values above it are objects. Of values that are all the same: this one. */
double tgi_otsu_threshold(const tgi_otsu *o);

#endif
