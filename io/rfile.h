/* rfile.h - a file that is only read, through windows.
 *
 * A window is the part of the file that one reader looks at: mapped, or read into a buffer of
 * its own. The buffer form never faults when the file shrinks meanwhile; the mapped form checks
 * the file's size before it hands out a window, which leaves only a race of microseconds.
 * Windows keep the address space small: a 100 GiB file is read under RLIMIT_AS. */
#ifndef TGI_RFILE_H
#define TGI_RFILE_H

#include "engine/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_rfile {
    int fd; /* -1: closed */
    uint64_t size;
} tgi_rfile;

/* Open a regular file. TG_E_NOT_FOUND, TG_E_ARG for folders, pipes and devices. */
tg_status tgi_rfile_open(const char *path, tgi_rfile *f, tgi_err *err);
void tgi_rfile_close(tgi_rfile *f); /* safe on {.fd = -1} and after close */
/* TG_E_FORMAT when the file is shorter than it was at open. */
tg_status tgi_rfile_check(const tgi_rfile *f, tgi_err *err);
/* True when the file lies on NFS, CIFS, FUSE and the like, where mapping is slow or unsafe. */
bool tgi_rfile_is_remote(const tgi_rfile *f);
/* Read exactly n bytes at `off`. TG_E_FORMAT when the file ends before, TG_E_IO. */
tg_status tgi_rfile_read(const tgi_rfile *f, uint64_t off, void *dst, size_t n, tgi_err *err);

typedef struct tgi_window {
    uint8_t *buf; /* read form: cap bytes, owned; NULL: mapped form */
    size_t cap;   /* largest window to fill or map ahead */
    uint8_t *map; /* mapped form: start of the mapping or NULL */
    uint64_t off; /* file offset of the window's first byte */
    size_t len;   /* bytes in the window; 0: empty */
} tgi_window;

/* Read form: allocates `cap` bytes. Mapped form: allocates nothing, maps `cap` bytes ahead. */
tg_status tgi_window_init(tgi_window *w, bool mapped, size_t cap, tgi_err *err);
void tgi_window_free(tgi_window *w);
/* Pointer to `len` bytes at `off`, valid until the next call on this window. The read form
 * needs len <= cap and fetches up to `ahead` bytes (>= len is sensible) in one go. Past the end
 * of the file: TG_E_FORMAT. */
tg_status tgi_window_get(tgi_window *w, const tgi_rfile *f, uint64_t off, size_t len,
                         size_t ahead, const uint8_t **out, tgi_err *err);

#endif
