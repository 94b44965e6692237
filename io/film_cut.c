/* film_cut.c - see film_cut.h. */
#include "io/film_cut.h"

#include "engine/base/number.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double tgi_film_seconds(const char *text)
{
    double sum = 0;
    for (int part = 0; part < 3; part++) {
        double n = 0;
        if (!isdigit((unsigned char)*text))
            return -1;
        if (text[strspn(text, "0123456789.")] && text[strspn(text, "0123456789.")] != ':')
            return -1; /* 1e3, 0x10 */
        const char *end = text + tgi_number_begin(text, &n);
        const int whole = n == floor(n) && !memchr(text, '.', (size_t)(end - text));
        if (n > 1e9 || (part && n >= 60))
            return -1;
        sum = sum * 60 + n;
        if (!*end)
            return sum;
        if (*end != ':' || !whole)
            return -1;
        text = end + 1;
    }
    return -1;
}

/* "120:480", "120:", ":480". */
static int read_numbers(const char *text, int64_t n, int64_t *first, int64_t *until)
{
    char *end = NULL;
    *first = 0;
    *until = n;
    errno = 0;
    if (*text != ':') {
        if (!isdigit((unsigned char)*text))
            return 0;
        *first = strtoll(text, &end, 10);
        text = end;
    }
    if (*text++ != ':')
        return 0;
    if (*text) {
        if (!isdigit((unsigned char)*text))
            return 0;
        *until = strtoll(text, &end, 10);
        text = end;
    }
    return !*text && !errno;
}

/* Of a film whose frames have no times each comes when its number says, at the header's rate. */
typedef struct film_clock {
    int64_t (*time)(const tgi_av_film *f, int64_t k); /* NULL: there are none */
    int64_t each;                                     /* ticks of a frame then */
    const tgi_av_film *film;
    double second; /* in ticks */
    double near;   /* seconds that are nothing */
} film_clock;

/* From the film's first frame to frame k. */
static int64_t ticks_to(const film_clock *c, int64_t k)
{
    return c->time ? c->time(c->film, k) - c->time(c->film, 0) : k * c->each;
}

/* The first frame of [lo, hi) that is shown at `seconds` from the beginning, or later; hi: none. Half a
 * millisecond is nothing, or a quarter of a frame's time: players and probes round. */
static int64_t find(const film_clock *c, int64_t lo, int64_t hi, double seconds)
{
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if ((double)ticks_to(c, mid) < (seconds - c->near) * c->second)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static tg_status find_times(const tgi_film_cut *c, const film_clock *clock, int64_t n,
                            int64_t *first, int64_t *until, tgi_err *err)
{
    const char *const texts[] = {c->start, c->end};
    int64_t *const to[] = {first, until};
    for (int i = 0; i < 2; i++) {
        if (!texts[i])
            continue;
        const double seconds = tgi_film_seconds(texts[i]);
        if (seconds < 0)
            return tgi_fail(
                err, TG_E_ARG,
                "--%s %s: a time from the first frame on, as 90, 1:30 or 00:01:30.04",
                i ? "end" : "start", texts[i]);
        *to[i] = find(clock, 0, n, seconds);
    }
    return TG_OK;
}

/* These times choose nothing: in times, too. */
static tg_status no_frame(const tgi_film_cut *c, const film_clock *clock, int64_t n,
                          tgi_err *err)
{
    const double last = (double)ticks_to(clock, n - 1) / clock->second,
                 from = c->start ? tgi_film_seconds(c->start) : 0;
    if (!c->end || from > last)
        return tgi_fail(err, TG_E_ARG,
                        "--start %s: no frame is shown then: the last one of the film comes at "
                        "%.3f s, counted from the first one",
                        c->start, last);
    if (tgi_film_seconds(c->end) <= from)
        return tgi_fail(err, TG_E_ARG, "--end %s: no frame is shown before, from %s on", c->end,
                        c->start ? c->start : "the beginning");
    return tgi_fail(err, TG_E_ARG, "--start %s --end %s: no frame begins between these times",
                    c->start ? c->start : "0", c->end);
}

tg_status tgi_film_cut_find(const tgi_film_cut *c, const tgi_av_info *all,
                            int64_t (*time)(const tgi_av_film *f, int64_t k),
                            const tgi_av_film *film, int64_t *first, int64_t *until,
                            tgi_err *err)
{
    const int64_t n = all->frames;
    *first = 0;
    *until = n;
    if (c->frames && (c->start || c->end))
        return tgi_fail(err, TG_E_ARG, "--frames and --%s both choose frames: give one of them",
                        c->start ? "start" : "end");
    if (c->frames && !read_numbers(c->frames, n, first, until))
        return tgi_fail(err, TG_E_ARG,
                        "--frames %s: the first number and the one behind the last, from 0 on, "
                        "as 120:480, 120: or :480",
                        c->frames);
    if (!c->start && !c->end) {
        if (*first < *until && *until <= n)
            return TG_OK;
    } else {
        const int timed = all->has_times && all->time_base.num;
        if (!timed && !all->rate.num)
            return tgi_fail(
                err, TG_E_ARG,
                "--%s: its frames have no times, and the film no rate; --frames A:B "
                "chooses by their numbers",
                c->start ? "start" : "end");
        const double every =
            all->rate.num ? (double)all->rate.den / (double)all->rate.num : 0.002;
        const film_clock clock = {.time = timed ? time : NULL,
                                  .each = all->rate.den,
                                  .film = film,
                                  .second = timed ? (double)all->time_base.den /
                                                        (double)all->time_base.num
                                                  : (double)all->rate.num,
                                  .near = fmin(0.0005, every / 4)};
        TGI_TRY(find_times(c, &clock, n, first, until, err));
        return *first < *until && *until <= n ? TG_OK : no_frame(c, &clock, n, err);
    }
    return tgi_fail(
        err, TG_E_ARG,
        "--frames %s: the film has frames 0 to %lld, and of these no%s [%lld, %lld)", c->frames,
        (long long)n - 1, *until > n ? "t all of" : "ne in", (long long)*first,
        (long long)*until);
}
