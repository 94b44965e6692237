/* scratch.h - the tier below memory: one temporary file of known size, written in pieces and
 * read through windows.
 *
 * What lies here is the kernel's file pages, not ours, unless the folder is on a memory
 * filesystem: then it counts as memory, and the plan says so. The file never has a name that
 * outlives us (file_ops.h), so nothing is left after an error or a kill, and nothing of it is
 * used again by a run that goes on.
 *
 * One thread writes a byte before another reads it; who reads keeps a window of his own. */
#ifndef TGI_SCRATCH_H
#define TGI_SCRATCH_H

#include "io/rfile.h"

/* A folder, looked at before anything is written. */
typedef struct tgi_scratch_place {
    uint64_t free_bytes;
    uint64_t device; /* filesystems are the same when this is */
    bool in_memory;  /* tmpfs and the like */
} tgi_scratch_place;

/* Look. TG_E_NOT_FOUND: no such folder; TG_E_EXISTS: we may not write there. */
tg_status tgi_scratch_look(const char *folder, tgi_scratch_place *out, tgi_err *err);

typedef struct tgi_scratch tgi_scratch;

/* A file of `bytes` in `folder`, its disk space reserved where the filesystem can. Returned;
 * close with tgi_scratch_close. As tgi_scratch_look, and TG_E_NO_SPACE, TG_E_IO. */
tg_status tgi_scratch_create(const char *folder, uint64_t bytes, tgi_scratch **out,
                             tgi_err *err);
void tgi_scratch_close(tgi_scratch **s);
int tgi_scratch_fd(const tgi_scratch *s); /* for who reads and writes by itself; borrowed */
tg_status tgi_scratch_write(tgi_scratch *s, uint64_t at, const void *bytes, size_t n,
                            tgi_err *err);
/* One reader's window (tgi_window_init). */
#define TGI_SCRATCH_WINDOW ((size_t)64 << 10)
/* Pointer to n bytes, at most TGI_SCRATCH_WINDOW, at `at`, until the next call on this window.
 */
tg_status tgi_scratch_read(const tgi_scratch *s, tgi_window *w, uint64_t at, size_t n,
                           const uint8_t **out, tgi_err *err);

#endif
