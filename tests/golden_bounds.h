/* golden_bounds.h - a result beside a golden of ProPainter's conformance data. In float32 each difference and their mean stay
 * within what the data allow; on a device their norm, too, stays within a share of the golden's. In halves that share alone is
 * what a sum of another order and its roundings can be held to. */
#ifndef TG_GOLDEN_BOUNDS_H
#define TG_GOLDEN_BOUNDS_H

#include "engine/base/json.h"
#include "engine/base/tensor.h"
#include "tests/tg_test.h"

#include <math.h>

/* Of the golden's norm, on a device: about twice what was measured, on the fake one and the emulated one. */
typedef struct golden_share {
    double single, half; /* half 0: what is compared is float32 there, too */
} golden_share;
#define GOLDEN_SHARE ((golden_share){1e-5, 2e-3})

/* 1: this program is one that tests a device. */
static inline int golden_on_device(void)
{
#ifdef TG_TEST_DEVICE
    return 1;
#else
    return 0;
#endif
}

typedef struct golden_off {
    double worst, mean, share; /* of n differences; their norm, of the golden's */
} golden_off;

static inline golden_off golden_compare(const float *got, const float *want, size_t n)
{
    double worst = 0, sum = 0, square = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        worst = off <= worst || isnan(worst) ? worst : off; /* no number is the worst */
        sum += off;
        square += off * off;
        all += (double)want[i] * (double)want[i];
    }
    return (golden_off){worst, sum / (double)n, sqrt(square / all)};
}

/* `allowed`: max_abs and mean_abs. */
static inline void golden_check(const char *what, const tgi_json *allowed, tg_dtype element,
                                golden_share share, const float *got, const float *want,
                                size_t n)
{
    const golden_off off = golden_compare(got, want, n);
    double most = NAN, mean = NAN;
    if (element == TG_DTYPE_F16 && share.half > 0) {
        printf("     %s in halves: %.2g of the norm (%.2g), at most %.2g\n", what, off.share,
               share.half, off.worst);
        CHECK(off.share <= share.half);
        return;
    }
    CHECK(tgi_json_num(tgi_json_get(allowed, "max_abs"), &most) &&
          tgi_json_num(tgi_json_get(allowed, "mean_abs"), &mean));
    printf("     %s: at most %.2g (%.2g), on average %.2g (%.2g), %.2g of the norm (%.2g)\n",
           what, off.worst, most, off.mean, mean, off.share, share.single);
    CHECK(off.worst <= most && off.mean <= mean);
    CHECK(!golden_on_device() || off.share <= share.single);
}

#endif
