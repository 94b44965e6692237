/* input_hash.h - the checksum of the whole input, for the receipt, while the run computes.
 *
 * An input of several files is summed as if they were one, in the order of the stack: what
 * `cat FILES | sha256sum` prints.
 *
 * A thread of the lowest priority reads the input from end to end, a buffer at a time. Whatever
 * is left when the run is through with its pixels, the caller finishes itself, so that the
 * thread's priority holds nobody up. The file is a view of one moment only if it stayed as it
 * was: its size and time of change are looked at before and after. */
#ifndef TGI_INPUT_HASH_H
#define TGI_INPUT_HASH_H

#include "engine/base/sha256.h"
#include "engine/base/status.h"
#include "io/image.h"

/* One read, and so the buffer: a line of the plan. */
#define TGI_INPUT_HASH_BYTES ((size_t)256 << 10)

typedef struct tgi_input_hash tgi_input_hash;

typedef struct tgi_input_digest {
    char sha256[TGI_SHA256_TEXT]; /* "": none, `trouble` says why */
    uint64_t bytes;               /* that it covers */
    int changed;                  /* the file was written to or replaced meanwhile */
    char trouble[160];            /* "" when all went well */
} tgi_input_digest;

/* Start. `buffer` has TGI_INPUT_HASH_BYTES and is borrowed until close, as
 * are `path` and the source that was opened with it. A file that
 * cannot be read is no error of the run: the digest says so. TG_E_NOMEM */
tg_status tgi_input_hash_open(const tg_source *source, const char *path, void *buffer,
                              tgi_input_hash **out, tgi_err *err);
/* Finish what the thread has not done. `tick` is called between reads with the fraction done;
 * what it answers but TG_OK is answered here, and the digest is not filled. */
tg_status tgi_input_hash_finish(tgi_input_hash *h,
                                tg_status (*tick)(void *user, double fraction, tgi_err *err),
                                void *user, tgi_input_digest *out, tgi_err *err);
void tgi_input_hash_close(tgi_input_hash **h); /* at any time; NULL is fine */

#endif
