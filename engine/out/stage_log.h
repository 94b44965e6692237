/* stage_log.h - what a run in stages has behind it, so that it survives a crash: OUT.stages.
 *
 *     0     mark: "tegula: stages\n" and a format number
 *     4096  place 0 \  {sequence, bytes, checksum}, then the bytes of a record; written in turn, the
 *     ...   place 1 /  valid one with the higher sequence counts
 *
 * A record is written when what it claims is on the disk: rows of kept values before it. What it
 * says is its owner's (job/stage_state.h). The file stands behind the lock of OUT.journal, and
 * goes before the output gets its name. The kept values themselves lie in a file of their own,
 * which the record names. */
#ifndef TGI_STAGE_LOG_H
#define TGI_STAGE_LOG_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_STAGES_END ".stages" /* behind the output's name */
#define TGI_STAGES_MARK "tegula: stages\n"
#define TGI_KEPT_MARK "tegula: kept\n\n\n"
#define TGI_KEPT_FRONT 4096u /* bytes of the kept file in front of the values */

typedef struct tgi_stage_log tgi_stage_log;

typedef struct tgi_stage_part { /* of a record */
    void *at;
    size_t bytes;
} tgi_stage_part;

/* Open or make OUT.stages with room for records of `bytes` bytes. A file of another size or format
 * has no record. TG_E_EXISTS: what is there is not ours. */
tg_status tgi_stage_log_open(const char *output, size_t bytes, tgi_stage_log **out,
                             tgi_err *err);
void tgi_stage_log_close(tgi_stage_log **l);
/* Write a record, durably. */
tg_status tgi_stage_log_write(tgi_stage_log *l, const tgi_stage_part *part, int n,
                              tgi_err *err);
/* Read the newest record into the same parts. *found 0: there is none. */
tg_status tgi_stage_log_read(tgi_stage_log *l, const tgi_stage_part *part, int n, int *found,
                             tgi_err *err);
/* The first `bytes` bytes of the newest record that holds, of a file that another process may be
 * writing; 0: there is none. */
int tgi_stage_log_look(const char *output, void *first, size_t bytes);
/* Remove it, and the kept file of that path if it begins as one of ours. NULL: not that one. */
void tgi_stage_log_remove(const char *output, const char *kept);

/* Where values of this output are kept in a folder, into buf. TG_E_ARG: too long. */
tg_status tgi_kept_path(const char *folder, const char *output, char *buf, size_t cap,
                        tgi_err *err);
/* Bytes of the disk that the file there holds, if a run of this output left one. */
uint64_t tgi_kept_holds(const char *folder, const char *output);
/* Open or make it, with `bytes` behind its front; `id` of who made it, 0 when it is new.
 * TG_E_EXISTS, TG_E_BUSY, TG_E_NO_SPACE, TG_E_IO. */
tg_status tgi_kept_open(const char *path, uint64_t bytes, int *fd, uint64_t *id, tgi_err *err);
/* Say whose it is. */
tg_status tgi_kept_mark(int fd, const char *path, uint64_t id, tgi_err *err);

#endif
