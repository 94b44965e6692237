/* timeline_read.h - a timeline (`--trace`, docs/reference/json.md) read back: what was held,
 * over time.
 *
 * One line is one allocation. All of them are kept until the end, since one that lives long is
 * written before those that came and went meanwhile: 16 bytes for each end of each, at most
 * TGI_TIMELINE_MOST of them, which is what a timeline has. */
#ifndef TGI_TIMELINE_READ_H
#define TGI_TIMELINE_READ_H

#include "engine/base/status.h"

#define TGI_TIMELINE_MOST (1 << 20)

typedef struct tgi_timeline tgi_timeline;

/* Bytes are allocated or given back. */
typedef struct tgi_timeline_step {
    int64_t ns; /* since the beginning of the command */
    int64_t bytes;
} tgi_timeline_step;

/* 1: this first line is that of a timeline, not of a log. */
int tgi_timeline_begins(const char *line, size_t n);
/* Its next line; the first one makes *t. `name` and `number` are for the detail. Returned in
 * *t; tgi_timeline_free. */
tg_status tgi_timeline_line(tgi_timeline **t, const char *name, int64_t number,
                            const char *line, size_t n, tgi_err *err);
/* 1: its last line was there. */
int tgi_timeline_ended(const tgi_timeline *t);
/* By time, what is given back first. A view. */
const tgi_timeline_step *tgi_timeline_steps(tgi_timeline *t, int64_t *n);
void tgi_timeline_free(tgi_timeline **t);

#endif
