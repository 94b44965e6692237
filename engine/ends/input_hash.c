/* input_hash.c - reads the input on a thread of the lowest priority and compares it when it was
 * touched. */
#include "engine/ends/input_hash.h"

#include "engine/base/arith.h"
#include "engine/base/beside.h"
#include "engine/base/clock.h"
#include "engine/base/fnv.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct tgi_input_hash {
    tgi_held_files *files;
    const void *of;
    void *buffer, *own;
    size_t cap;
    uint64_t all;        /* bytes, when they were opened */
    uint64_t state;      /* of all files: as they were when opened or last found the same */
    const char *touched; /* the first file that was; NULL: none */
    double next;         /* when they are looked at again */
    tgi_beside beside;
    atomic_int lost; /* becomes 1 + the number of a file that changed before all was read */
    atomic_int read; /* becomes 1 when all was */
    char sha256[TGI_SHA256_TEXT]; /* then; "": it could not be read */
    char before[TGI_SHA256_TEXT]; /* what an earlier run read; "": nobody knows */
    /* The thread's until all was read or it is stopped. */
    tgi_sha256 sha;
    int64_t file;      /* the one being read */
    tgi_held held;     /* itself */
    int fd;            /* -1: not open yet */
    uint64_t at;       /* in it */
    char trouble[160]; /* the first failure; "" */
};

static tg_status was_changed(const tgi_held *f, const tgi_stamp *now, tgi_err *err)
{
    return tgi_fail(
        err, TG_E_FORMAT,
        "%s was changed while it was read (%llu bytes, then %llu): what was made of "
        "it is discarded; the same command starts again",
        f->path, (unsigned long long)f->was.size, (unsigned long long)now->size);
}

/* All files as they are now. */
typedef struct found {
    uint64_t state;
    int64_t changed, resized, renamed; /* the first that is not as it was opened; -1: none */
} found;

static uint64_t mix(uint64_t h, const tgi_stamp *s)
{
    const uint64_t v[] = {s->size, (uint64_t)s->sec, (uint64_t)s->nsec};
    return tgi_fnv(h, v, sizeof v);
}

static found look(const tgi_input_hash *h)
{
    found all = {TGI_FNV_BEGIN, -1, -1, -1};
    tgi_held f;
    tgi_stamp now;
    for (int64_t i = 0; h->files(h->of, i, &f); i++) {
        const tgi_held_state s = tgi_held_look(&f, &now);
        all.state = mix(all.state, &now);
        if (s == TGI_HELD_CHANGED && all.changed < 0)
            all.changed = i;
        if (now.size != f.was.size && all.resized < 0)
            all.resized = i;
        if (s == TGI_HELD_RENAMED && all.renamed < 0)
            all.renamed = i;
    }
    return all;
}

tg_status tgi_input_unchanged(tgi_held_files *files, const void *of, tgi_err *err)
{
    tgi_held f;
    tgi_stamp now;
    for (int64_t i = 0; files(of, i, &f); i++)
        if (tgi_held_look(&f, &now) == TGI_HELD_CHANGED)
            return was_changed(&f, &now, err);
    return TG_OK;
}

tg_status tgi_input_blame(tgi_held_files *files, const void *of, tg_status st, tgi_err *err)
{
    tgi_err why = {0};
    if (st == TG_E_FORMAT && tgi_input_unchanged(files, of, &why) != TG_OK && err)
        *err = why;
    return st;
}

/* ---- Reading ----------------------------------------------------------------------------- */

static void give_up(tgi_input_hash *h, const char *why)
{
    snprintf(h->trouble, sizeof h->trouble, "no checksum of all of it: %.120s", why);
}

/* Read and mix the next piece, up to the size that the file had when it was opened; 0 at the
 * end of the last file and after a failure. */
static int read_on(tgi_input_hash *h)
{
    ssize_t n;
    if (h->trouble[0])
        return 0;
    if (h->fd < 0) {
        tgi_err e = {0};
        if (!h->files(h->of, h->file, &h->held))
            return 0;
        h->at = 0;
        if (tgi_held_open(&h->held, &h->fd, &e) != TG_OK)
            give_up(h, "another file has its name now, or none");
        return h->fd >= 0;
    }
    const uint64_t left = h->held.was.size - h->at;
    do
        n = left ? pread(h->fd, h->buffer, left < h->cap ? (size_t)left : h->cap, (off_t)h->at)
                 : 0;
    while (n < 0 && errno == EINTR);
    if (n < 0 || (left && !n))
        give_up(h, n < 0 ? strerror(errno) : "it ended early");
    if (n > 0) {
        tgi_sha256_add(&h->sha, h->buffer, (size_t)n);
        h->at += (uint64_t)n;
        return 1;
    }
    tgi_held_close(&h->held, &h->fd);
    h->file++;
    return n == 0;
}

/* The first time: each piece counts only if the file is as it was behind reading it, and all of
 * them only if all files are. */
static int step(void *arg)
{
    tgi_input_hash *h = arg;
    tgi_stamp now;
    if (atomic_load(&h->read) || atomic_load(&h->lost))
        return 0;
    if (read_on(h)) {
        if (h->fd >= 0 && tgi_held_look(&h->held, &now) == TGI_HELD_CHANGED)
            atomic_store(&h->lost, (int)(h->file + 1));
        return 1;
    }
    const found all = look(h);
    if (all.changed >= 0)
        atomic_store(&h->lost, (int)(all.changed + 1));
    if (!h->trouble[0])
        tgi_sha256_end(&h->sha, h->sha256);
    atomic_store(&h->read, 1);
    return 0;
}

tg_status tgi_input_hash_open(tgi_held_files *files, const void *of, void *buffer, size_t cap,
                              tgi_input_hash **out, tgi_err *err)
{
    tgi_held f;
    tgi_input_hash *h = tgi_calloc(TGI_TAG_IO, 1, sizeof *h);
    if (!h)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the input's checksum");
    *h = (tgi_input_hash){.files = files, .of = of, .buffer = buffer, .cap = cap, .fd = -1};
    if (!buffer && !(h->buffer = h->own = tgi_malloc(TGI_TAG_IO, cap))) {
        tgi_free(h);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the input's checksum");
    }
    h->state = TGI_FNV_BEGIN;
    for (int64_t i = 0; files(of, i, &f); i++) {
        h->all += f.was.size;
        h->state = mix(h->state, &f.was);
    }
    tgi_sha256_begin(&h->sha);
    tgi_beside_start(&h->beside, step, h);
    *out = h;
    return TG_OK;
}

/* ---- Deciding ---------------------------------------------------------------------------- */

static tg_status changed_file(const tgi_input_hash *h, int64_t i, tgi_err *err)
{
    tgi_held f;
    tgi_stamp now;
    h->files(h->of, i, &f);
    (void)tgi_held_look(&f, &now);
    return was_changed(&f, &now, err);
}

static tg_status lost(const tgi_input_hash *h, tgi_err *err)
{
    const int k = atomic_load(&h->lost);
    return k ? changed_file(h, k - 1, err) : TG_OK;
}

static tg_status read_all(tgi_input_hash *h, tgi_beside_step *one, tgi_input_tick *tick,
                          void *user, tgi_err *err)
{
    const double all = h->all ? (double)h->all : 1;
    while (one(h))
        TGI_TRY(tick(user, (double)h->sha.bytes / all, err));
    return TG_OK;
}

static int step_again(void *arg)
{
    return read_on(arg);
}

/* A file is not what it was: with its old bytes that is no harm. */
static tg_status read_again(tgi_input_hash *h, const found *now, tgi_input_tick *tick,
                            void *user, tgi_err *err)
{
    char sum[TGI_SHA256_TEXT] = "";
    const int64_t which = now->resized >= 0 ? now->resized : tgi_max(0, now->changed);
    if (!h->sha256[0] || now->resized >= 0)
        return changed_file(h, which, err);
    tgi_held_close(&h->held, &h->fd); /* where an earlier reading was stopped */
    h->file = 0;
    tgi_sha256_begin(&h->sha);
    TGI_TRY(read_all(h, step_again, tick, user, err));
    tgi_sha256_end(&h->sha, sum);
    if (h->trouble[0] || strcmp(sum, h->sha256) != 0)
        return changed_file(h, which, err);
    h->state = now->state;
    h->files(h->of, which, &h->held);
    h->touched = h->held.path;
    return TG_OK;
}

void tgi_input_hash_expect(tgi_input_hash *h, const char *sha256)
{
    snprintf(h->before, sizeof h->before, "%s", sha256);
}

const char *tgi_input_hash_known(const tgi_input_hash *h)
{
    return h && atomic_load(&h->read) && !atomic_load(&h->lost) && h->sha256[0] ? h->sha256
                                                                                : NULL;
}

/* All was read: is it what an earlier run read, too? What could not be read again says nothing. */
static tg_status as_before(const tgi_input_hash *h, tgi_err *err)
{
    tgi_held f;
    if (!h->before[0] || !h->sha256[0] || strcmp(h->before, h->sha256) == 0)
        return TG_OK;
    return tgi_fail(
        err, TG_E_FORMAT,
        "%s: has other bytes than the interrupted run read, though size and time are "
        "the same: what was made of it is discarded; the same command starts again",
        h->files(h->of, 0, &f) ? f.path : "the input");
}

/* Looking takes a hundredth of the time. */
tg_status tgi_input_hash_check(tgi_input_hash *h, tgi_input_tick *tick, void *user,
                               tgi_err *err)
{
    if (!h)
        return TG_OK;
    TGI_TRY(lost(h, err));
    const double t0 = tgi_seconds();
    if (!atomic_load(&h->read) || t0 < h->next)
        return TG_OK;
    TGI_TRY(as_before(h, err));
    const found now = look(h);
    h->next = t0 + 100 * (tgi_seconds() - t0);
    return now.state == h->state ? TG_OK : read_again(h, &now, tick, user, err);
}

/* The thread is not there any more. `sum`: a checksum is wanted. */
static tg_status conclude(tgi_input_hash *h, int sum, tgi_input_tick *tick, void *user,
                          tgi_input_digest *out, tgi_err *err)
{
    TGI_TRY(lost(h, err));
    if (atomic_load(&h->read))
        TGI_TRY(as_before(h, err));
    const found now = look(h);
    if (now.state != h->state)
        TGI_TRY(read_again(h, &now, tick, user, err));
    *out = (tgi_input_digest){.bytes = h->all, .changed = now.renamed >= 0};
    const int trouble = sum && h->trouble[0];
    if (sum)
        memcpy(out->sha256, h->sha256, sizeof out->sha256);
    const char *said = trouble ? h->trouble
                       : out->changed && !sum
                           ? "another file has its name now, or none: what was read is of the "
                             "one that was opened"
                       : out->changed
                           ? "another file has its name now, or none: what was read, and the "
                             "checksum, are of the one that was opened"
                       : h->touched ? "it was touched during the run; its bytes are the same"
                                    : "";
    snprintf(out->trouble, sizeof out->trouble, "%s", said);
    tgi_held f = h->held;
    out->file = trouble ? f.path : h->touched;
    if (!trouble && now.renamed >= 0 && h->files(h->of, now.renamed, &f))
        out->file = f.path;
    return TG_OK;
}

tg_status tgi_input_hash_finish(tgi_input_hash *h, tgi_input_tick *tick, void *user,
                                tgi_input_digest *out, tgi_err *err)
{
    tgi_beside_stop(&h->beside);
    TGI_TRY(read_all(h, step, tick, user, err));
    return conclude(h, 1, tick, user, out, err);
}

tg_status tgi_input_hash_settle(tgi_input_hash *h, tgi_input_tick *tick, void *user,
                                tgi_input_digest *out, tgi_err *err)
{
    tgi_beside_stop(&h->beside);
    return conclude(h, 0, tick, user, out, err);
}

void tgi_input_hash_close(tgi_input_hash **hp)
{
    tgi_input_hash *h = *hp;
    if (!h)
        return;
    tgi_beside_stop(&h->beside);
    tgi_held_close(&h->held, &h->fd);
    tgi_free(h->own);
    tgi_free(h);
    *hp = NULL;
}
