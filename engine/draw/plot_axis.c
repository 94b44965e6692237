/* plot_axis.c - chooses the marks of an axis and their labels. */
#include "engine/draw/plot_axis.h"

#include <math.h>
#include <stdio.h>

size_t tgi_decimal(double v, int decimals, char *buf, size_t cap)
{
    uint64_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    const uint64_t n = (uint64_t)(v * (double)scale + 0.5);
    const int len = decimals
                        ? snprintf(buf, cap, "%llu.%0*llu", (unsigned long long)(n / scale),
                                   decimals, (unsigned long long)(n % scale))
                        : snprintf(buf, cap, "%llu", (unsigned long long)n);
    return len > 0 && (size_t)len < cap ? (size_t)len : 0;
}

/* Decimals that tell multiples of step apart; ours end after a few. */
static int decimals_of(double step)
{
    int n = 0;
    for (double s = step; n < 6 && fabs(s - floor(s + 0.5)) > 1e-9 * s; n++)
        s *= 10;
    return n;
}

tgi_axis tgi_axis_bytes(uint64_t top, int most)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1, "B"},
                 {1024, "KiB"},
                 {1048576, "MiB"},
                 {1073741824, "GiB"},
                 {1099511627776, "TiB"},
                 {1125899906842624, "PiB"}};
    tgi_axis a = {.step = 1};
    int u = 0;
    while ((double)top / a.step > (double)most)
        a.step *= 2;
    while (u < 5 && (double)top >= 2 * units[u + 1].unit)
        u++;
    a.unit = units[u].unit;
    a.name = units[u].name;
    a.decimals = decimals_of(a.step / a.unit);
    return a;
}

tgi_axis tgi_axis_seconds(double span, int ticks)
{
    const double most = ticks * (1 + 1e-9); /* steps are decimal fractions: not exact */
    static const struct {
        double unit, until; /* the unit of spans up to */
        const char *name;
        double steps[8]; /* of the unit; 0 ends */
    } units[] = {
        {1, 180, "s", {1, 2, 5, 10, 20, 30, 60, 0}},
        {60, 7200, "min", {1, 2, 5, 10, 15, 20, 30, 0}},
        {3600, 4 * 86400, "h", {0.5, 1, 2, 3, 6, 12, 24, 0}},
        {86400, 1e300, "d", {1, 2, 5, 7, 14, 0}},
    };
    int u = 0;
    while (span > units[u].until)
        u++;
    tgi_axis a = {.unit = units[u].unit, .name = units[u].name};
    /* Below one second: 1, 2, 5 and powers of ten. */
    for (int power = -6; u == 0 && a.step == 0 && power < 0; power++)
        for (int k = 0; k < 3 && a.step == 0; k++)
            if (span / (pow(10, power) * (k == 0 ? 1 : k == 1 ? 2 : 5)) <= most)
                a.step = pow(10, power) * (k == 0 ? 1 : k == 1 ? 2 : 5);
    for (int k = 0; a.step == 0 && units[u].steps[k] > 0; k++)
        if (span / (units[u].steps[k] * a.unit) <= most)
            a.step = units[u].steps[k] * a.unit;
    for (int power = 0; a.step == 0; power++) /* beyond the list */
        for (int k = 1; k <= 5 && a.step == 0; k += k == 2 ? 3 : 1)
            if (k != 3 && span / (a.unit * pow(10, power) * k) <= most)
                a.step = a.unit * pow(10, power) * k;
    a.decimals = decimals_of(a.step / a.unit);
    return a;
}

const char *tgi_axis_text(const tgi_axis *a, double value, char buf[TGI_AXIS_TEXT])
{
    if (value < 0.5 * a->step)
        return "0";
    const size_t n = tgi_decimal(value / a->unit, a->decimals, buf, TGI_AXIS_TEXT);
    snprintf(buf + n, TGI_AXIS_TEXT - n, " %s", a->name);
    return buf;
}
