/* input_hash.h - is the input still what it was when the run opened it?
 *
 * The checksum of the whole input answers that. It is made while the run computes, and the
 * receipt names it. Several files are summed as if they were one, in the order of the stack:
 * what `cat FILES | sha256sum` prints.
 *
 * A thread of the lowest priority reads the files that the readers hold, from end to end, a
 * buffer at a time. What is left when the run is done with its pixels the caller reads itself,
 * so the thread's priority holds nobody up. Size and time of change say whether a file is as it
 * was. They are looked at before the first pixel is read, and as long as there are pixels to
 * read:
 *
 *  - They change before the checksum is there: nobody knows what was read before the change and
 *    what after it. The run ends at once.
 *  - They change later: all is read once more, there and then. If the checksum is the same, the
 *    file was touched, or copied over itself, and the run goes on.
 *  - The name is given to another file, or to none: the file that was opened is read on, and
 *    its checksum stands. The digest says that it is not the named file's. */
#ifndef TGI_INPUT_HASH_H
#define TGI_INPUT_HASH_H

#include "engine/base/held.h"
#include "engine/base/sha256.h"
#include "engine/base/status.h"

/* One read, and so the buffer: a line of the plan. */
#define TGI_INPUT_HASH_BYTES ((size_t)256 << 10)
/* The same where no line of the plan is for it: of the allowance (TGI_ALLOWANCE_BYTES). */
#define TGI_INPUT_HASH_LITTLE ((size_t)16 << 10)

typedef struct tgi_input_hash tgi_input_hash;

typedef struct tgi_input_digest {
    char sha256[TGI_SHA256_TEXT]; /* "": none, `trouble` says why */
    uint64_t bytes;               /* that it covers */
    int changed;                  /* the name is another file's, or nobody's */
    char trouble[160];            /* "" when all went well */
    const char *file;             /* whose trouble; a view of its path */
} tgi_input_digest;

/* Start. `buffer` has `cap` bytes and is borrowed until close, as is what `files` lists of
 * `of`; NULL: its own of that size. A file that cannot be read is no error of the run: the
 * digest says so. TG_E_NOMEM */
tg_status tgi_input_hash_open(tgi_held_files *files, const void *of, void *buffer, size_t cap,
                              tgi_input_hash **out, tgi_err *err);
/* Called again and again while the rest of the input is read, with the fraction done. Another
 * answer than TG_OK ends the reading and is returned to the caller. */
typedef tg_status tgi_input_tick(void *user, double fraction, tgi_err *err);
/* Between pixels: TG_E_FORMAT, naming the file, when it was changed. NULL: TG_OK. */
tg_status tgi_input_hash_check(tgi_input_hash *h, tgi_input_tick *tick, void *user,
                               tgi_err *err);
/* The checksum of what an earlier run read that this one goes on with; "": it is not known. As soon as
 * this run's is there both are compared. Where they differ check, finish and settle answer as if the
 * input had been changed meanwhile. Before check. */
void tgi_input_hash_expect(tgi_input_hash *h, const char *sha256);
/* The checksum, once all was read and found to be what it was; else NULL. */
const char *tgi_input_hash_known(const tgi_input_hash *h);
/* After the last pixel: read what the thread has not read yet, and check. The digest is filled
 * only with TG_OK. */
tg_status tgi_input_hash_finish(tgi_input_hash *h, tgi_input_tick *tick, void *user,
                                tgi_input_digest *out, tgi_err *err);
/* The same without a checksum: the rest of the input is not read to complete it, and the digest
 * has none. */
tg_status tgi_input_hash_settle(tgi_input_hash *h, tgi_input_tick *tick, void *user,
                                tgi_input_digest *out, tgi_err *err);
void tgi_input_hash_close(tgi_input_hash **h); /* at any time; NULL is fine */

/* Without a checksum, for what takes seconds: TG_E_FORMAT, naming the file whose size or time
 * of change is not what it was. */
tg_status tgi_input_unchanged(tgi_held_files *files, const void *of, tgi_err *err);
/* Reading ended in `st`: damage in a file that was changed meanwhile is answered as that
 * change. */
tg_status tgi_input_blame(tgi_held_files *files, const void *of, tg_status st, tgi_err *err);

#endif
