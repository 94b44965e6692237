/* tracker.h - memory over time: the peak of a run, and a CSV of it. */
#ifndef TGI_TRACKER_H
#define TGI_TRACKER_H

#include "engine/base/status.h"

/* A sampling thread: the maximum of `measured` while it runs, and a CSV line per sample when a
 * path is given. Columns: seconds, phase, tiles, anon, file, shmem, swap, pte, measured,
 * available, predicted, budget (bytes). Lines are whole even after a kill. */
typedef struct tgi_tracker tgi_tracker;
tg_status tgi_tracker_open(int interval_ms, const char *csv_path, tgi_tracker **out,
                           tgi_err *err);
/* What later samples are labelled with; `phase` static. */
void tgi_tracker_note(tgi_tracker *m, const char *phase, int64_t tiles, uint64_t predicted,
                      uint64_t budget);
uint64_t tgi_tracker_current(const tgi_tracker *m); /* last sample */
uint64_t tgi_tracker_peak(const tgi_tracker *m);
/* Stop; returns the peak. NULL allowed (0). */
uint64_t tgi_tracker_close(tgi_tracker **m);

#endif
