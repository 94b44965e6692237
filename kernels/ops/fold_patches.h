/* fold_patches.h - which patches of FoldBias hold a pixel, along one axis. */
#ifndef TGI_FOLD_PATCHES_H
#define TGI_FOLD_PATCHES_H

#include "engine/base/arith.h"
#include "engine/base/region.h"
#include "kernels/ops/op_attrs.h"

/* How many patches there are along an axis of n pixels; below 1: none. */
static inline int64_t tgi_fold_count(const fold_attrs *a, int64_t n)
{
    return tgi_floor_div(n + 2 * a->pad - a->kernel, a->stride) + 1;
}

/* Numbers of the patches over pixel `at` of n; may be empty. */
static inline tgi_range tgi_fold_patches(const fold_attrs *a, int64_t at, int64_t n)
{
    const int64_t count = tgi_fold_count(a, n);
    const int64_t from = tgi_ceil_div(at + a->pad - a->kernel + 1, a->stride);
    return (tgi_range){tgi_max(from, 0), tgi_min((at + a->pad) / a->stride + 1, count)};
}

#endif
