/* rational.c - see rational.h. Convergents of the continued fraction of x, each the best of its
 * size; the last that fits 32 bits is closer than 1e-9. */
#include "io/rational.h"

#include <math.h>

bool tgi_rational(double x, uint32_t out[2])
{
    double num = 1, den = 0, num1 = 0, den1 = 1, rest = x;
    if (!(x >= 1e-6 && x < 4e9))
        return false;
    for (int i = 0; i < 64; i++) {
        const double whole = floor(rest);
        const double n = whole * num + num1, d = whole * den + den1;
        if (n > UINT32_MAX || d > UINT32_MAX)
            break;
        num1 = num, den1 = den;
        num = n, den = d;
        if (fabs(num / den - x) <= 1e-12 * x || rest == whole)
            break;
        rest = 1 / (rest - whole);
    }
    out[0] = (uint32_t)num;
    out[1] = (uint32_t)den;
    return num > 0 && den > 0;
}
