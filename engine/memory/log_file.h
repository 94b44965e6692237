/* log_file.h - the CSV that a tracker writes: its columns, and appending whole lines.
 *
 * One write per line to a file opened for appending, so what a kill leaves behind is whole
 * lines; only a kill inside of the system call, or a full disk, can leave a part of one. Such a
 * part has no newline: readers leave it out (log_read.h), and a run that goes on cuts it off.
 */
#ifndef TGI_LOG_FILE_H
#define TGI_LOG_FILE_H

#include "engine/base/busy.h"
#include "engine/base/status.h"
#include "io/side_file.h"
#include "tegula_tracker.h"

/* Columns of the host, in order; then gpuN_used_bytes,gpuN_free_bytes for each GPU. */
#define TGI_LOG_COLUMNS                                                                        \
    "seconds,phase,tile,measured_bytes,peak_bytes,anonymous_bytes,file_bytes,shared_bytes,"    \
    "swapped_bytes,page_table_bytes,high_water_bytes,pool_allocated_bytes,"                    \
    "pool_reserved_bytes,available_bytes,predicted_bytes,budget_bytes,decode_ms,compute_ms,"   \
    "encode_ms"
#define TGI_LOG_LINE 2048 /* bytes that no line of ours exceeds */

typedef struct tgi_log_file {
    tgi_side to;       /* fd -1: none, or given up */
    char problem[160]; /* why it was given up */
} tgi_log_file;

/* Create the log. One that is there is TG_E_EXISTS, or (TGI_SIDE_REPLACE) begun anew, or
 * (go_on) continued where it has the same columns: *seconds is the time of its last line then,
 * else 0. TG_E_IO, TG_E_CANCELLED. */
tg_status tgi_log_open(const char *path, tgi_side_how how, int go_on, int n_gpus,
                       tgi_log_file *out, double *seconds, tgi_err *err);
/* Append a line; `ms`: since the one before, of each kind of work (busy.h). A file that refuses it is closed, with the reason in `problem`. */
void tgi_log_append(tgi_log_file *l, const tg_tracker_row *row,
                    const int64_t ms[TGI_BUSY_KINDS]);
void tgi_log_close(tgi_log_file *l);

/* The texts that are written, newline included; return their length. */
size_t tgi_log_header(int n_gpus, char out[TGI_LOG_LINE]);
size_t tgi_log_line(const tg_tracker_row *row, const int64_t ms[TGI_BUSY_KINDS],
                    char out[TGI_LOG_LINE]);

#endif
