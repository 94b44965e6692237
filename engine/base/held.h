/* held.h - a file as it was opened: which one it is, and which state of it.
 *
 * A name can be given to another file while ours is read, and bytes can be written into ours.
 * So whoever asks later what a reader read (a checksum, a second look, opening it once more)
 * asks the reader's descriptor, or opens the name again and compares. Who puts back the time of
 * change is not seen. */
#ifndef TGI_HELD_H
#define TGI_HELD_H

#include "engine/base/status.h"

#include <stdint.h>

/* Device and number say which file, size and time of change which state. The second time is that of
 * any change, of its rights or names too: nobody can put it back, but a copy has a new one. */
typedef struct tgi_stamp {
    uint64_t dev, ino, size;
    int64_t sec, nsec;   /* of the last change of its bytes (mtime) */
    int64_t csec, cnsec; /* of anything of it (ctime); no part of its state */
} tgi_stamp;

/* errno, or 0. */
int tgi_stamp_fd(int fd, tgi_stamp *out);
int tgi_stamp_path(const char *path, tgi_stamp *out);
int tgi_stamp_same_file(const tgi_stamp *a, const tgi_stamp *b);
int tgi_stamp_same_state(const tgi_stamp *a, const tgi_stamp *b);

typedef struct tgi_held {
    const char *path; /* a view */
    int fd;           /* the reader's; -1: it opens the file when it needs it */
    tgi_stamp was;    /* when it was opened first */
} tgi_held;

/* The i-th file that `of` is read from; 0: there are no more. */
typedef int tgi_held_files(const void *of, int64_t i, tgi_held *out);

typedef enum tgi_held_state {
    TGI_HELD_SAME,
    TGI_HELD_RENAMED, /* the name is another file's, or nobody's */
    TGI_HELD_CHANGED  /* size or time of change is another */
} tgi_held_state;

/* *now: the stamp of ours; of one that is RENAMED and not held as it was. */
tgi_held_state tgi_held_look(const tgi_held *h, tgi_stamp *now);

/* A descriptor for pread: the reader's, or one of the same file opened anew, which never waits.
 * TG_E_NOT_FOUND, TG_E_FORMAT: the name is another file's. */
tg_status tgi_held_open(const tgi_held *h, int *fd, tgi_err *err);
void tgi_held_close(const tgi_held *h, int *fd); /* *fd -1 is fine, and is it afterwards */

#endif
