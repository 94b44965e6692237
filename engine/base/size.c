/* size.c - parses and prints sizes and times; every size that the program shows comes from
 * here. */
#include "engine/base/size.h"

#include "engine/base/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    double factor;
} units[] = {
    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0},
    {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"TB", 1e12}};

tg_status tgi_size_parse(const char *text, uint64_t of, uint64_t *bytes, tgi_err *err)
{
    double v;
    const size_t digits = strspn(text, "0123456789.");
    if (!tgi_number_parse(text, digits, &v))
        return tgi_fail(err, TG_E_ARG, "\"%s\" is no size: write 1GiB, 800MiB or 80%%", text);
    const char *unit = text + digits;
    if (*unit == 0)
        return tgi_fail(err, TG_E_ARG, "\"%s\" has no unit: write %sMiB or %sGiB", text, text,
                        text);
    if (strcmp(unit, "%") == 0) {
        if (!of)
            return tgi_fail(err, TG_E_ARG,
                            "\"%s\": a percentage is of nothing here: write 1GiB or 800MiB",
                            text);
        if (v <= 0 || v > 100)
            return tgi_fail(err, TG_E_ARG,
                            "\"%s\": a percentage must be above 0 and at most 100", text);
        *bytes = (uint64_t)((double)of * v / 100.0);
        return TG_OK;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0) {
            const double b = v * units[i].factor;
            if (!(b < 9.2e18))
                return tgi_fail(err, TG_E_ARG, "\"%s\" is larger than any memory", text);
            *bytes = (uint64_t)b;
            return TG_OK;
        }
    return tgi_fail(err, TG_E_ARG,
                    "\"%s\": unknown unit, use KiB MiB GiB TiB, KB MB GB TB or %%", text);
}

tg_status tgi_duration_parse(const char *text, double *seconds, tgi_err *err)
{
    static const struct {
        const char *name;
        double factor;
    } time[] = {{"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}};
    double v;
    const size_t digits = strspn(text, "0123456789.");
    if (!tgi_number_parse(text, digits, &v))
        return tgi_fail(err, TG_E_ARG, "\"%s\" is no time: write 500ms, 1s or 2m", text);
    if (!text[digits])
        return tgi_fail(err, TG_E_ARG, "\"%s\" has no unit: write %ss or %sms", text, text,
                        text);
    for (size_t i = 0; i < sizeof time / sizeof time[0]; i++)
        if (strcmp(text + digits, time[i].name) == 0) {
            const double t = v * time[i].factor;
            if (!(t > 0 && t <= 864000.0))
                return tgi_fail(err, TG_E_ARG, "\"%s\": above 0 and at most ten days", text);
            *seconds = t;
            return TG_OK;
        }
    return tgi_fail(err, TG_E_ARG, "\"%s\": unknown unit, use ms, s, m or h", text);
}

static double nearest(double v)
{
    return floor(v + 0.5);
}

/* Hundredths of the largest unit of which there is a whole one, rounded by `to_whole`. */
static const char *size_text(uint64_t bytes, double (*to_whole)(double), char *buf, size_t cap)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes / 1024;
    int i = 0;
    if (bytes < 1024) {
        snprintf(buf, cap, "%llu B", (unsigned long long)bytes);
        return buf;
    }
    while (to_whole(v * 100) >= 102400 && i < 5) { /* else it prints as 1024.00 */
        v /= 1024;
        i++;
    }
    snprintf(buf, cap, "%.2f %s", to_whole(v * 100) / 100, unit[i]);
    return buf;
}

const char *tgi_size_text(uint64_t bytes, char *buf, size_t cap)
{
    return size_text(bytes, nearest, buf, cap);
}

const char *tgi_size_above(uint64_t bytes, char *buf, size_t cap)
{
    return size_text(bytes, ceil, buf, cap);
}

/* Hundredths of the unit that it is told in, and nothing over. */
static int is_hundredth(uint64_t bytes)
{
    double v = (double)bytes / 1024 * 100;
    while (v >= 102400)
        v /= 1024;
    return v == floor(v);
}

/* Where 4.46 MiB end is no whole byte: "4.46MiB" is read as the byte in which they end, which
 * alone would be told as 4.45. So where a hundredth ends within the byte that follows, that
 * hundredth is told; where it ends with it (6 MiB), the byte is missing and it is not. */
const char *tgi_size_below(uint64_t bytes, char *buf, size_t cap)
{
    const int cut = bytes >= 1024 && bytes < UINT64_MAX && !is_hundredth(bytes + 1);
    return size_text(bytes + (uint64_t)cut, floor, buf, cap);
}
