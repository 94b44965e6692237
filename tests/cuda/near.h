/* near.h - are a device's results near the reference's: within what the element type rounds. */
#ifndef TG_NEAR_H
#define TG_NEAR_H

#include "tests/unit/op_case.h"

#include <math.h>

/* How far off a result may be: in parts of itself, and of the root mean square of all results.
 * A bound in parts of itself alone is none where a sum cancels: its terms, as large as those of
 * the others, were rounded before. A half is rounded once more when it is stored, to 2^-11 of
 * itself; below 2^-14 it has steps of 2^-24. */
static inline double near_bound(tg_dtype t, double want, double rms)
{
    if (t == TG_DTYPE_F16)
        return 5e-3 * rms + 0x1p-11 * fabs(want) + 6e-8;
    if (t == TGI_DTYPE_BF16)
        return 2e-3 * rms + 4e-3 * fabs(want) + 1e-37;
    return 1e-5 * (rms + fabs(want)) + 1e-37;
}

/* `count` results; `there` NULL or where there are any. */
static inline int case_near(const float *got, const float *want, size_t count, tg_dtype t,
                            const int *there)
{
    const int half = t == TG_DTYPE_F16;
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
        const int near = isfinite(want[i]) && fabs(g - w) <= near_bound(t, w, rms);
        if (!near && !(isnan(g) && isnan(w)) && memcmp(&got[i], &want[i], sizeof(float)) != 0) {
            fprintf(stderr, "%s: element %zu is %.9g, expected %.9g (rms %g)\n", case_where, i,
                    g, w, rms);
            return 0;
        }
    }
    return 1;
}

#endif
