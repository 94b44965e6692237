/* stage_log.h - what a run in stages has behind it, so that it survives a crash: OUT.stages.
 *
 *     0     mark "tegula: stages\n", the journal's format number, whose job it is, where the kept
 *           values lie, a checksum
 *     4096  place 0 \  {sequence, bytes, checksum}, then the bytes of a record; written in turn, the
 *     ...   place 1 /  valid one with the higher sequence counts
 *
 * A record is written when what it claims is on the disk: rows of kept values before it. What it
 * says is its owner's (job/stage_state.h). The kept values themselves lie in a file of their own.
 *
 * WHOSE IT IS. The file stands behind the lock of OUT.journal. It is of use beside the very journal
 * that it was made beside: the front has a checksum of the job in it, and a journal that begins
 * removes it, durably, before it holds a job of its own. It goes before the output gets its name. */
#ifndef TGI_STAGE_LOG_H
#define TGI_STAGE_LOG_H

#include "engine/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define TGI_STAGES_END ".stages" /* behind the output's name */
#define TGI_STAGES_MARK "tegula: stages\n"
#define TGI_KEPT_MARK "tegula: kept\n\n\n"
#define TGI_KEPT_FRONT 4096u /* bytes of the kept file in front of the values */
#define TGI_KEPT_PATH 2048u  /* bytes of its path, at most */

typedef struct tgi_stage_log tgi_stage_log;

typedef struct tgi_stage_part { /* of a record */
    void *at;
    size_t bytes;
} tgi_stage_part;

/* What a file of ours is beside. */
typedef struct tgi_stage_owner {
    uint64_t job;             /* checksum of the text in the journal */
    char kept[TGI_KEPT_PATH]; /* the file of kept values; "": none */
} tgi_stage_owner;

/* Open or make OUT.stages with room for records of `bytes` bytes, on the disk before it returns. A
 * file of another size, format or owner has no record; the kept values of another owner go with it.
 * TG_E_EXISTS: what is there is not ours. */
tg_status tgi_stage_log_open(const char *output, const tgi_stage_owner *owner, size_t bytes,
                             tgi_stage_log **out, tgi_err *err);
void tgi_stage_log_close(tgi_stage_log **l);
/* Write a record, durably. */
tg_status tgi_stage_log_write(tgi_stage_log *l, const tgi_stage_part *part, int n,
                              tgi_err *err);
/* Read the newest record into the same parts. *found 0: there is none. */
tg_status tgi_stage_log_read(tgi_stage_log *l, const tgi_stage_part *part, int n, int *found,
                             tgi_err *err);
/* The first `bytes` bytes of the newest record that holds, of a file that another process may be
 * writing; 0: there is none. *job: whose it is (NULL: no matter). */
int tgi_stage_log_look(const char *output, uint64_t *job, void *first, size_t bytes);
/* The folder where values of that job are still kept, from what OUT.stages says; 0: none are. */
int tgi_stage_log_folder(const char *output, uint64_t job, char folder[TGI_KEPT_PATH]);
/* Remove it, and the file of kept values, where they begin as ours; durably. Nothing there: no
 * error, and nothing is written. The values are found where the front names them, be it damaged: their
 * name is of OUT and its folder, and what has it begins as ours. */
tg_status tgi_stage_log_discard(const char *output, tgi_err *err);
/* May a run write over OUT.stages? 1: nothing is there, or it is ours, perhaps damaged. */
int tgi_stages_ours(const char *path);
/* Remove values of this output that a stopped run left in a folder (--scratch), whatever names them; while
 * OUT.journal is locked and nobody has them open. */
void tgi_kept_sweep(const char *folder, const char *output);
/* 1: a stopped run may have left values that no run of this output finds: OUT.stages is ours and damaged,
 * and they are not in `folder` (--scratch, or NULL), or it names those of another path. While OUT.stages is
 * as it was left. `path`: that path, or the name that they have in whatever folder. */
int tgi_kept_lost(const char *folder, const char *output, char *path, size_t cap);

/* Where values of this output are kept in a folder, into buf: the same path however the output and
 * the folder are spelled, and from wherever. TG_E_ARG: too long. */
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
