/* tracker.h - the tracker behind tg_tracker (tegula_tracker.h), as the engine uses it.
 *
 * Invariants. (1) Every sample is folded into the maxima under the label that held when it was
 * taken. (2) The peak_bytes of the rows together cover all samples: each goes into exactly one
 * row. (3) By time, labelling within a phase waits for no file and no system call: a stalled
 * disk stops the log, not the run. (4) Nothing is allocated after opening. */
#ifndef TGI_TRACKER_H
#define TGI_TRACKER_H

#include "engine/base/busy.h"
#include "engine/base/spec.h"
#include "engine/memory/look.h"
#include "io/side_file.h"

typedef struct tgi_tracker_opts {
    tgi_interval_spec every; /* rows */
    int peak_ms;             /* > 0: looks between them */
    const char *csv;         /* or NULL */
    tgi_side_how how;        /* of a file that is there */
    int go_on;       /* with TGI_SIDE_REPLACE: continue it where it has the same columns */
    uint64_t budget; /* until tgi_tracker_expect says otherwise */
    tgi_look look;
} tgi_tracker_opts;

/* As tg_tracker_open. Returned; close with tgi_tracker_close. */
tg_status tgi_tracker_open(const tgi_tracker_opts *o, tg_tracker **out, tgi_err *err);
/* The rest allow NULL: no tracker, no numbers. */
void tgi_tracker_expect(tg_tracker *t, uint64_t predicted_bytes, uint64_t budget_bytes);
/* From now on lines say how long `of`, borrowed until the tracker is closed, ran. NULL: never. */
void tgi_tracker_watch(tg_tracker *t, int kind, tgi_busy *of);
/* As tg_tracker_update. 1 when a sample was taken. */
int tgi_tracker_update(tg_tracker *t, const char *phase, int64_t tile);
uint64_t tgi_tracker_current(tg_tracker *t);              /* measured_bytes of the last look */
void tgi_tracker_row(tg_tracker *t, tg_tracker_row *out); /* the last one */
void tgi_tracker_maxima(tg_tracker *t, tg_tracker_maxima *out);
/* A last row, and the end. `out` may be NULL. */
void tgi_tracker_close(tg_tracker **t, tg_tracker_maxima *out);

#endif
