/* plot_axis.h - round numbers on axes.
 *
 * Sizes step by powers of two, because memory does: 64, 128, 192 MiB and not 50, 100, 150.
 * Times step by what clocks have: 1, 2, 5, 10, 15, 30 of a second, a minute, an hour. One unit
 * holds for a whole axis. (The rule that a step is chosen from a short list of round ones, so
 * that there are about as many ticks as wanted, is that of Heckbert, Nice numbers for graph
 * labels, 1990.) */
#ifndef TGI_PLOT_AXIS_H
#define TGI_PLOT_AXIS_H

#include <stddef.h>
#include <stdint.h>

#define TGI_AXIS_TEXT 32

typedef struct tgi_axis {
    double step;      /* between ticks: bytes, or seconds */
    double unit;      /* what 1 on the axis is, in the same */
    const char *name; /* of the unit: "MiB", "min"; static */
    int decimals;
} tgi_axis;

/* For 0 .. top bytes, at most `most` ticks above zero (at least 2). */
tgi_axis tgi_axis_bytes(uint64_t top, int most);
/* The same for 0 .. span seconds. */
tgi_axis tgi_axis_seconds(double span, int ticks);
/* "384 MiB", "1.5 GiB", "90 s"; "0" at zero. Returns buf. */
const char *tgi_axis_text(const tgi_axis *a, double value, char buf[TGI_AXIS_TEXT]);
/* v with so many decimals, whatever the locale; v >= 0. Returns the length. */
size_t tgi_decimal(double v, int decimals, char *buf, size_t cap);

#endif
