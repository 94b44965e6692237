/* rfile.h - a file that is only read, through windows.
 *
 * A window is the part of the file that one reader looks at, in a buffer of its own. Nothing is
 * mapped: of a file that is cut short meanwhile, or a disk that fails, a mapping gives SIGBUS,
 * which a library cannot answer, or zeros for the rest of the last page, which nobody sees.
 * Reading is as fast (bench/bench_read.c). */
#ifndef TGI_RFILE_H
#define TGI_RFILE_H

#include "engine/base/held.h"
#include "engine/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_rfile {
    int fd; /* -1: closed */
    uint64_t size;
    tgi_stamp was; /* when it was opened */
} tgi_rfile;

/* Open a regular file. TG_E_NOT_FOUND, TG_E_ARG for folders, pipes and devices. */
tg_status tgi_rfile_open(const char *path, tgi_rfile *f, tgi_err *err);
void tgi_rfile_close(tgi_rfile *f); /* safe on {.fd = -1} and after close */
/* The file as it was opened, for all but its name. */
void tgi_rfile_held(const tgi_rfile *f, tgi_held *out);
/* Read exactly n bytes at `off`. TG_E_FORMAT when the file ends before, TG_E_IO. */
tg_status tgi_rfile_read(const tgi_rfile *f, uint64_t off, void *dst, size_t n, tgi_err *err);

typedef struct tgi_window {
    uint8_t *buf; /* cap bytes, owned */
    size_t cap;
    uint64_t off; /* file offset of the window's first byte */
    size_t len;   /* bytes in the window; 0: empty */
} tgi_window;

tg_status tgi_window_init(tgi_window *w, size_t cap, tgi_err *err);
void tgi_window_free(tgi_window *w);
/* Pointer to `len` bytes (at most cap) at `off`, valid until the next call on this window. Up
 * to `ahead` bytes (>= len is sensible) are fetched in one go. Past the end of the file, or
 * where it ends meanwhile: TG_E_FORMAT. */
tg_status tgi_window_get(tgi_window *w, const tgi_rfile *f, uint64_t off, size_t len,
                         size_t ahead, const uint8_t **out, tgi_err *err);

/* Rows of `len` bytes, `pitch` from one to the next. */
typedef struct tgi_file_rows {
    uint64_t off; /* of the first */
    size_t len;
    uint64_t pitch;
    int64_t n;
} tgi_file_rows;

/* For rows that are going to be read one after the other: how far ahead a window shall fetch,
 * for `tgi_window_get`. Rows close together come with what lies between them. Of others the
 * system is told, so that a disk delivers them while the first ones are looked at: row by row
 * it would be asked for one page at a time. */
size_t tgi_rfile_ahead(const tgi_rfile *f, const tgi_file_rows *rows, size_t cap);

#endif
