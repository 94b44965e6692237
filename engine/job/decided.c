/* decided.c - writes and reads the text of what a run decided. */
#include "engine/job/decided.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* In the text's order: both directions go through this table. */
static const size_t member[] = {offsetof(tgi_decided, cut[0]), offsetof(tgi_decided, cut[1]),
                                offsetof(tgi_decided, cut[2]), offsetof(tgi_decided, band),
                                offsetof(tgi_decided, tile_h), offsetof(tgi_decided, tile_w),
                                offsetof(tgi_decided, fast),   offsetof(tgi_decided, staged)};
#define MEMBERS (sizeof member / sizeof member[0])
#define ALWAYS (MEMBERS - 1) /* the last is left out where it is 0 */

const char *tgi_decided_text(const tgi_decided *d, char *buf, size_t cap)
{
    size_t n = 0;
    buf[0] = 0;
    for (size_t i = 0; i < (d->staged ? MEMBERS : ALWAYS) && n < cap; i++) {
        const int64_t v = *(const int64_t *)((const char *)d + member[i]);
        n += (size_t)snprintf(buf + n, cap - n, "%s%lld", i ? "," : "", (long long)v);
    }
    return buf;
}

/* Could a run have decided that? */
static int possible(const tgi_decided *d)
{
    return d->cut[0] >= 0 && d->cut[1] >= 1 && d->cut[2] >= 1 && d->band >= 1 &&
           d->tile_h >= 16 && d->tile_w >= 16 && d->tile_h % 16 == 0 && d->tile_w % 16 == 0 &&
           d->fast >= 0 && d->staged >= 0;
}

int tgi_decided_read(const char *text, tgi_decided *out)
{
    tgi_decided d = {.staged = 0};
    size_t n = 0;
    for (char *end = NULL; n < MEMBERS && (!end || *end); text = end + 1) {
        errno = 0;
        *(int64_t *)((char *)&d + member[n++]) = strtoll(text, &end, 10);
        if (end == text || errno || (*end && *end != ',') || (*end && n == MEMBERS))
            return 0;
    }
    if (n < ALWAYS || (n == MEMBERS && !d.staged) || !possible(&d))
        return 0;
    *out = d;
    return 1;
}
