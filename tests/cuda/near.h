/* near.h - are a device's results near the reference's: within what the element type rounds. */
#ifndef TG_NEAR_H
#define TG_NEAR_H

#include "tests/unit/op_case.h"

#include <math.h>

/* `count` results; `there` NULL or where there are any. In parts of the expected number, and of
 * the root mean square of all: a result is rounded once, and on its way there with others. */
static inline int case_near(const float *got, const float *want, size_t count, tg_dtype t,
                            const int *there)
{
    const int half = t == TG_DTYPE_F16, brain = t == TGI_DTYPE_BF16;
    const double rel = half ? 1e-3 : brain ? 4e-3 : 1e-5;
    const double part = half ? 5e-3 : brain ? 2e-3 : 1e-5;
    const double least = half ? 6e-8 : 1e-37; /* half of these there is no more */
    double squares = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(want[i])) {
            squares += (double)want[i] * (double)want[i];
            n++;
        }
    const double rms = n ? sqrt(squares / (double)n) : 0;
    for (size_t i = 0; i < count; i++) {
        const double g = (double)got[i], w = (double)want[i];
        if ((there && !there[i]) || (half && fabs(w) > 6e4)) /* more than it holds */
            continue;
        if (!(fabs(g - w) <= rel * fabs(w) + part * rms + least) && !(isnan(g) && isnan(w)) &&
            memcmp(&got[i], &want[i], sizeof(float)) != 0) {
            fprintf(stderr, "%s: element %zu is %.9g, expected %.9g (rms %g)\n", case_where, i,
                    g, w, rms);
            return 0;
        }
    }
    return 1;
}

#endif
