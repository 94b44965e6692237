/* log_read.h - a memory log (log_file.h) read back for drawing, from whomever, of any length.
 *
 * The memory that a reading takes does not depend on the file: rows are gathered in at most
 * TGI_MEMLOG_GROUPS groups, and when these are full, neighbours are joined. A group keeps the
 * least and the largest value and when they were, so nothing that a picture of fewer columns
 * would show is lost; maxima are exact. */
#ifndef TGI_LOG_READ_H
#define TGI_LOG_READ_H

#include "engine/base/busy.h"
#include "engine/base/status.h"
#include "tegula_tracker.h"

#define TGI_MEMLOG_GROUPS 4096
#define TGI_MEMLOG_PHASES 256
#define TGI_MEMLOG_LINE 4096 /* bytes of a line that is still read */
#define TGI_MEMLOG_COLUMNS 128

/* Rows that follow one another. `value` is peak_bytes, or measured_bytes in logs without. */
typedef struct tgi_memlog_group {
    double from, to; /* seconds of the first and last row */
    uint64_t low, high;
    double low_at, high_at;
    int phase; /* index, of the row of `high` */
    int64_t tile;
    uint64_t file, pool; /* largest: file pages; pool reserved */
    uint64_t available;  /* least */
    uint64_t predicted, budget;
    uint64_t busy_ms[TGI_BUSY_KINDS]; /* from `to` of the group before on */
    uint64_t gpu_used[TG_TRACKER_GPUS], gpu_total[TG_TRACKER_GPUS]; /* largest */
} tgi_memlog_group;

/* Rows of one phase that follow one another; the last of TGI_MEMLOG_PHASES takes all others and
 * is named "...". */
typedef struct tgi_memlog_phase {
    char name[TG_TRACKER_PHASE];
    double from, to; /* to: where the next one begins */
} tgi_memlog_phase;

typedef struct tgi_memlog {
    int64_t rows;
    double from, to;
    int n_groups, n_phases, n_gpus;
    int has_tile, unfinished; /* unfinished: the last line had no end, and is left out */
    tg_tracker_maximum max;
    uint64_t busy_ms[TGI_BUSY_KINDS]; /* all rows together */
    tgi_memlog_group group[TGI_MEMLOG_GROUPS];
    tgi_memlog_phase phase[TGI_MEMLOG_PHASES];
} tgi_memlog;

/* Returned; tgi_free. TG_E_NOT_FOUND, TG_E_IO, TG_E_NOMEM; TG_E_FORMAT names the line. Blank
 * lines and columns of unknown names are skipped. */
tg_status tgi_memlog_read(const char *path, tgi_memlog **out, tgi_err *err);
/* The same from memory; `name` is for the detail. */
tg_status tgi_memlog_parse(const char *text, size_t n, const char *name, tgi_memlog **out,
                           tgi_err *err);

/* The log in at most `columns` groups, by time: `out` has room for them. Returns how many. */
int tgi_memlog_columns(const tgi_memlog *log, int columns, tgi_memlog_group *out);

#endif
