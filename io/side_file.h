/* side_file.h - a file that is written from its beginning to its end, beside the output: a
 * log, a trace. Where the user names a pipe, a terminal or /dev/null, that is written as it is;
 * so is /dev/stderr, or another descriptor, whatever it is.
 *
 * A pipe may have no reader, or one that is slow or leaves. Opening waits for the first within
 * limits and until the caller is asked to stop (tg_cancel); writing gives up after a while, and
 * never raises SIGPIPE: a reader's end is not the program's. */
#ifndef TGI_SIDE_FILE_H
#define TGI_SIDE_FILE_H

#include "engine/base/status.h"

#include <stddef.h>
#include <sys/types.h>

typedef enum tgi_side_how {
    TGI_SIDE_NEW,     /* a file that is there is TG_E_EXISTS */
    TGI_SIDE_REPLACE, /* it is emptied */
    TGI_SIDE_KEEP     /* it is opened as it is; one that is not there is made */
} tgi_side_how;

typedef struct tgi_side {
    int fd;      /* -1: closed */
    int is_file; /* a regular one, which this is the only name for */
    int made;    /* it was not there */
} tgi_side;

/* 1: what is there is written to as it is, not replaced: no regular file, or a descriptor of
 * the process. */
int tgi_is_stream(const char *path);
/* TG_E_EXISTS (there already, a folder, a disk, cannot be created), TG_E_IO (a pipe that nobody
 * reads), TG_E_CANCELLED. The file can be read too. */
tg_status tgi_side_open(const char *path, tgi_side_how how, tgi_side *out, tgi_err *err);
/* All of it, or 0 with errno; of a file a part that was written is cut off again. */
int tgi_side_write(const tgi_side *s, const char *text, size_t n);
/* As write(2), but a reader that is gone is EPIPE and no signal to the program. */
ssize_t tgi_write_quietly(int fd, const char *p, size_t n);
void tgi_side_close(tgi_side *s);

#endif
