/* stage_log.c - writes and reads OUT.stages, and makes the file of kept values. */
#include "engine/out/stage_log.h"

#include "engine/base/fnv.h"
#include "engine/base/mem.h"
#include "engine/base/versions.h"
#include "io/crc32c.h"
#include "io/file_ops.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FRONT 4096u
#define PLACE 64u /* bytes of a place in front of its record */

typedef struct front {
    char mark[16];
    uint32_t format;
    uint32_t check; /* of all below */
    uint64_t bytes; /* of a record */
    tgi_stage_owner owner;
} front;
_Static_assert(sizeof(front) <= FRONT, "it ends before the first place");

typedef struct place {
    uint64_t sequence, bytes;
    uint32_t record_check; /* of the record */
    uint32_t check;        /* of all above */
} place;

struct tgi_stage_log {
    int fd;
    char *path;
    size_t bytes;
    uint64_t sequence; /* of the newest record; 0: none */
};

/* ---- Places ------------------------------------------------------------------------------ */

static uint64_t place_at(size_t bytes, uint64_t sequence)
{
    const uint64_t all = (PLACE + (uint64_t)bytes + 4095) / 4096 * 4096;
    return FRONT + (sequence & 1) * all;
}

static uint32_t check_of(const place *p)
{
    return tgi_crc32c(0, p, offsetof(place, check));
}

/* The place that holds a record, or 0; *p is its head. */
static int read_place(int fd, const char *path, size_t bytes, uint64_t which, place *p)
{
    tgi_err none = {0};
    return tgi_file_pread(fd, path, p, sizeof *p, place_at(bytes, which), &none) == TG_OK &&
           p->check == check_of(p) && p->bytes == bytes && (p->sequence & 1) == which &&
           p->sequence > 0;
}

/* Does the record have its checksum? It is read through a small buffer. */
static int record_holds(int fd, const char *path, size_t bytes, const place *p)
{
    unsigned char buf[4096];
    uint64_t at = place_at(bytes, p->sequence) + PLACE;
    uint32_t crc = 0;
    tgi_err none = {0};
    for (size_t left = bytes; left > 0;) {
        const size_t n = left < sizeof buf ? left : sizeof buf;
        if (tgi_file_pread(fd, path, buf, n, at, &none) != TG_OK)
            return 0;
        crc = tgi_crc32c(crc, buf, n);
        at += n;
        left -= n;
    }
    return crc == p->record_check;
}

/* The newest record that holds; 0: there is none. */
static int newest(int fd, const char *path, size_t bytes, place *out)
{
    place p[2];
    int good[2];
    for (uint64_t k = 0; k < 2; k++)
        good[k] = read_place(fd, path, bytes, k, &p[k]);
    for (int tries = 0; tries < 2; tries++) {
        const int k = good[1] && (!good[0] || p[1].sequence > p[0].sequence);
        if (!good[k])
            return 0;
        *out = p[k];
        if (record_holds(fd, path, bytes, out))
            return 1;
        good[k] = 0;
    }
    return 0;
}

/* ---- Open and close ---------------------------------------------------------------------- */

static char *path_of(const char *output)
{
    const size_t n = strlen(output);
    char *p = tgi_malloc(TGI_TAG_IO, n + sizeof TGI_STAGES_END);
    if (p) {
        memcpy(p, output, n);
        memcpy(p + n, TGI_STAGES_END, sizeof TGI_STAGES_END);
    }
    return p;
}

static uint32_t front_check(const front *f)
{
    return tgi_crc32c(0, &f->bytes, sizeof *f - offsetof(front, bytes));
}

static front front_of(const tgi_stage_owner *owner, size_t bytes)
{
    front f;
    memset(&f, 0, sizeof f); /* what is between members is compared, too */
    memcpy(f.mark, TGI_STAGES_MARK, sizeof TGI_STAGES_MARK);
    f.format = TGI_JOURNAL_FORMAT;
    f.bytes = bytes;
    f.owner.job = owner->job;
    snprintf(f.owner.kept, sizeof f.owner.kept, "%s", owner->kept);
    f.check = front_check(&f);
    return f;
}

/* 0: there is none of this format, or it is damaged. */
static int read_front(int fd, const char *path, front *f)
{
    tgi_err none = {0};
    return tgi_file_pread(fd, path, f, sizeof *f, 0, &none) == TG_OK &&
           memcmp(f->mark, TGI_STAGES_MARK, sizeof TGI_STAGES_MARK) == 0 &&
           f->format == TGI_JOURNAL_FORMAT && f->check == front_check(f);
}

/* A file of that name in its folder is that of OUT, wherever OUT.stages was copied to. */
static int is_kept_of(const char *path, const char *output)
{
    char folder[4096], want[4096];
    tgi_err none = {0};
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    return slash &&
           tgi_kept_path(folder[0] ? folder : "/", output, want, sizeof want, &none) == TG_OK &&
           strcmp(path, want) == 0;
}

/* It is there, and begins as ours does, perhaps damaged, or is empty: a run was killed before it wrote
 * the mark. */
static int is_ours(const tgi_left *left)
{
    struct stat st;
    return lstat(left->path, &st) == 0 && tgi_file_is_ours(left);
}

static int is_kept(const char *path)
{
    return is_ours(&(tgi_left){.path = path, .begins = TGI_KEPT_MARK});
}

/* Has it a record in its first place? Nobody else writes one. */
static int has_record(int fd)
{
    place p;
    return pread(fd, &p, sizeof p, FRONT) == (ssize_t)sizeof p && p.sequence > 0 &&
           p.check == check_of(&p);
}

static tgi_left left_of(const char *path, const char *output)
{
    return (tgi_left){
        .path = path, .output = output, .begins = TGI_STAGES_MARK, .known = has_record};
}

int tgi_stages_ours(const char *path)
{
    const tgi_left left = left_of(path, NULL);
    return tgi_file_is_ours(&left);
}

static void remove_kept(const char *path, const char *output)
{
    tgi_err none = {0};
    if (path[0] && is_kept_of(path, output) && is_kept(path))
        (void)tgi_file_unlink(path, &none);
}

/* What a front of ours names, whatever else of it is damaged. */
static void remove_named(int fd, const char *path, const char *output, const char *but)
{
    front f;
    tgi_err none = {0};
    if (tgi_file_pread(fd, path, &f, sizeof f, 0, &none) != TG_OK)
        return;
    f.owner.kept[sizeof f.owner.kept - 1] = 0;
    if (strcmp(f.owner.kept, but) != 0)
        remove_kept(f.owner.kept, output);
}

/* The front is on the disk before there are values of its owner: whoever discards them finds them
 * by it. */
static tg_status make_front(tgi_stage_log *l, const front *f, tgi_err *err)
{
    const uint64_t size = place_at(l->bytes, 1) + PLACE + l->bytes;
    TGI_TRY(tgi_file_truncate(l->fd, l->path, 0, err));
    TGI_TRY(tgi_file_reserve(l->fd, l->path, size, err));
    TGI_TRY(tgi_file_pwrite(l->fd, l->path, f, sizeof *f, 0, err));
    TGI_TRY(tgi_file_truncate(l->fd, l->path, size, err));
    TGI_TRY(tgi_file_sync(l->fd, l->path, err));
    return tgi_file_sync_dir(l->path, err);
}

/* A file that is as ours is now, or made so: then it has no record. */
static tg_status settle_front(tgi_stage_log *l, const char *output,
                              const tgi_stage_owner *owner, tgi_err *err)
{
    const front want = front_of(owner, l->bytes);
    front is;
    place p;
    if (read_front(l->fd, l->path, &is) && memcmp(&is, &want, sizeof is) == 0) {
        l->sequence = newest(l->fd, l->path, l->bytes, &p) ? p.sequence : 0;
        return TG_OK;
    }
    remove_named(l->fd, l->path, output, want.owner.kept);
    return make_front(l, &want, err);
}

tg_status tgi_stage_log_open(const char *output, const tgi_stage_owner *owner, size_t bytes,
                             tgi_stage_log **out, tgi_err *err)
{
    tgi_stage_log *l = tgi_calloc(TGI_TAG_IO, 1, sizeof *l);
    tg_status st = TG_E_NOMEM;
    if (l) {
        *l = (tgi_stage_log){.fd = -1, .bytes = bytes, .path = path_of(output)};
        const tgi_left left = left_of(l->path, output);
        st = l->path ? tgi_file_open_locked(&left, &l->fd, err) : TG_E_NOMEM;
    }
    if (st == TG_OK)
        st = settle_front(l, output, owner, err);
    else if (st == TG_E_NOMEM)
        tgi_fail(err, st, "no memory for %s%s", output, TGI_STAGES_END);
    if (st != TG_OK)
        tgi_stage_log_close(&l);
    *out = l;
    return st;
}

void tgi_stage_log_close(tgi_stage_log **lp)
{
    tgi_stage_log *l = *lp;
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    tgi_free(l->path);
    tgi_free(l);
    *lp = NULL;
}

/* ---- Records ----------------------------------------------------------------------------- */

tg_status tgi_stage_log_write(tgi_stage_log *l, const tgi_stage_part *part, int n, tgi_err *err)
{
    place p = {.sequence = l->sequence + 1, .bytes = l->bytes};
    uint64_t at = place_at(l->bytes, p.sequence) + PLACE;
    const uint64_t head = at - PLACE;
    for (int i = 0; i < n; i++) {
        p.record_check = tgi_crc32c(p.record_check, part[i].at, part[i].bytes);
        TGI_TRY(tgi_file_pwrite(l->fd, l->path, part[i].at, part[i].bytes, at, err));
        at += part[i].bytes;
    }
    if (at != head + PLACE + l->bytes)
        return tgi_fail(err, TG_E_INTERNAL, "a record of %s has another size", l->path);
    p.check = check_of(&p);
    TGI_TRY(tgi_file_pwrite(l->fd, l->path, &p, sizeof p, head, err));
    TGI_TRY(tgi_file_sync(l->fd, l->path, err));
    l->sequence = p.sequence;
    return TG_OK;
}

tg_status tgi_stage_log_read(tgi_stage_log *l, const tgi_stage_part *part, int n, int *found,
                             tgi_err *err)
{
    uint64_t at = place_at(l->bytes, l->sequence) + PLACE;
    *found = l->sequence > 0;
    for (int i = 0; i < n && *found; i++) {
        TGI_TRY(tgi_file_pread(l->fd, l->path, part[i].at, part[i].bytes, at, err));
        at += part[i].bytes;
    }
    return TG_OK;
}

/* Open what another process may be writing; -1: there is no regular file. */
static int open_to_read(const char *path)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    close(fd);
    return -1;
}

/* -1: no such file of ours, or a damaged one. */
static int open_to_look(const char *path, front *f)
{
    const int fd = open_to_read(path);
    if (fd < 0 || read_front(fd, path, f))
        return fd;
    close(fd);
    return -1;
}

/* A run may write both places again while they are looked at: what was read holds if its record does before and behind it. */
#define LOOKS 16

static int look_at(int fd, const char *path, size_t all, void *first, size_t bytes)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    place p;
    tgi_err none = {0};
    for (int tries = 0; tries < LOOKS; tries++) {
        if (tries)
            nanosleep(&moment, NULL);
        if (newest(fd, path, all, &p) &&
            tgi_file_pread(fd, path, first, bytes, place_at(all, p.sequence) + PLACE, &none) ==
                TG_OK &&
            record_holds(fd, path, all, &p))
            return 1;
    }
    return 0;
}

int tgi_stage_log_look(const char *output, uint64_t *job, void *first, size_t bytes)
{
    char *path = path_of(output);
    front f;
    const int fd = path ? open_to_look(path, &f) : -1;
    int ok = fd >= 0 && f.bytes >= bytes && f.bytes < SIZE_MAX / 4;
    if (ok && job)
        *job = f.owner.job;
    ok = ok && look_at(fd, path, (size_t)f.bytes, first, bytes);
    if (fd >= 0)
        close(fd);
    tgi_free(path);
    return ok;
}

int tgi_stage_log_folder(const char *output, uint64_t job, char folder[TGI_KEPT_PATH])
{
    char *path = path_of(output);
    front f = {.owner = {.job = 0}};
    const int fd = path ? open_to_look(path, &f) : -1;
    f.owner.kept[sizeof f.owner.kept - 1] = 0;
    if (fd >= 0)
        close(fd);
    tgi_free(path);
    if (fd < 0 || f.owner.job != job || !f.owner.kept[0] || !is_kept_of(f.owner.kept, output) ||
        !tgi_file_begins(f.owner.kept, TGI_KEPT_MARK, sizeof TGI_KEPT_MARK - 1))
        return 0;
    const char *slash = strrchr(f.owner.kept, '/');
    const int n = slash > f.owner.kept ? (int)(slash - f.owner.kept) : 1;
    snprintf(folder, TGI_KEPT_PATH, "%.*s", n, f.owner.kept);
    return 1;
}

tg_status tgi_stage_log_discard(const char *output, tgi_err *err)
{
    char *path = path_of(output);
    tg_status st = TG_OK;
    if (!path)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %s%s", output, TGI_STAGES_END);
    const tgi_left left = left_of(path, output);
    if (is_ours(&left)) {
        const int fd = open_to_read(path);
        if (fd >= 0) {
            remove_named(fd, path, output, "");
            close(fd);
        }
        st = tgi_file_unlink(path, err);
        if (st == TG_OK)
            st = tgi_file_sync_dir(path, err);
    }
    tgi_free(path);
    return st;
}

/* ---- The file of kept values ------------------------------------------------------------- */

/* The folder of a path, as it is whatever links and dots lead to it; as it was given where it is not
 * there. */
static void real_folder(const char *path, size_t n, char out[PATH_MAX])
{
    char given[PATH_MAX];
    const int fits = snprintf(given, sizeof given, "%.*s", n ? (int)n : 1, n ? path : ".") <
                     (int)sizeof given;
    if (!fits || !realpath(given, out))
        snprintf(out, PATH_MAX, "%s", given);
}

tg_status tgi_kept_path(const char *folder, const char *output, char *buf, size_t cap,
                        tgi_err *err)
{
    char where[PATH_MAX], whole[PATH_MAX + 512];
    const char *slash = strrchr(output, '/'), *base = slash ? slash + 1 : output;
    real_folder(output, (size_t)(base - output), where);
    snprintf(whole, sizeof whole, "%s/%s", where, base);
    const uint64_t h = tgi_fnv(TGI_FNV_BEGIN, whole, strlen(whole));
    real_folder(folder, strlen(folder), where);
    const int n =
        snprintf(buf, cap, "%s/%.80s.%016llx.kept", where, base, (unsigned long long)h);
    return n > 0 && (size_t)n < cap
               ? TG_OK
               : tgi_fail(err, TG_E_ARG, "--scratch %s: the name is too long", folder);
}

uint64_t tgi_kept_holds(const char *folder, const char *output)
{
    char path[4096];
    struct stat st;
    tgi_err none = {0};
    if (tgi_kept_path(folder, output, path, sizeof path, &none) != TG_OK ||
        !tgi_file_nearly_begins(path, TGI_KEPT_MARK, sizeof TGI_KEPT_MARK - 1) ||
        stat(path, &st) != 0)
        return 0;
    return (uint64_t)st.st_blocks * 512;
}

void tgi_kept_sweep(const char *folder, const char *output)
{
    char path[4096];
    tgi_err none = {0};
    if (folder && output && tgi_kept_path(folder, output, path, sizeof path, &none) == TG_OK)
        remove_kept(path, output);
}

/* 1: they are not found by what the front says. *at: what to look for. */
static int is_lost(int fd, const char *path, const char *output, front *f, const char **at)
{
    const int whole = read_front(fd, path, f);
    f->owner.kept[sizeof f->owner.kept - 1] = 0;
    const int there = f->owner.kept[0] && is_kept(f->owner.kept);
    *at = whole ? f->owner.kept : NULL;
    if (whole) /* of an output of another path: it was moved, or copied */
        return there && !is_kept_of(f->owner.kept, output);
    return !there || !is_kept_of(f->owner.kept, output);
}

int tgi_kept_lost(const char *folder, const char *output, char *path, size_t cap)
{
    char *stages = path_of(output), name[4096] = "";
    const char *at = NULL;
    uint64_t size = 0;
    front f;
    tgi_err none = {0};
    memset(&f, 0, sizeof f);
    const tgi_left left = left_of(stages ? stages : "", output);
    const int fd = stages && is_ours(&left) ? open_to_read(stages) : -1;
    int lost = fd >= 0 && tgi_file_size(fd, stages, &size, &none) == TG_OK && size > 0 &&
               is_lost(fd, stages, output, &f, &at);
    if (lost && !at) {
        lost = (!folder || !tgi_kept_holds(folder, output)) &&
               tgi_kept_path(".", output, name, sizeof name, &none) == TG_OK;
        at = lost ? strrchr(name, '/') + 1 : "";
    }
    if (lost)
        snprintf(path, cap, "%s", at);
    if (fd >= 0)
        close(fd);
    tgi_free(stages);
    return lost;
}

typedef struct kept_front {
    char mark[16];
    uint64_t id;
} kept_front;

tg_status tgi_kept_mark(int fd, const char *path, uint64_t id, tgi_err *err)
{
    kept_front f = {.id = id};
    memcpy(f.mark, TGI_KEPT_MARK, sizeof TGI_KEPT_MARK);
    TGI_TRY(tgi_file_pwrite(fd, path, &f, sizeof f, 0, err));
    return tgi_file_sync(fd, path, err);
}

tg_status tgi_kept_open(const char *path, uint64_t bytes, int *fd, uint64_t *id, tgi_err *err)
{
    const tgi_left left = {.path = path, .output = path, .begins = TGI_KEPT_MARK};
    kept_front f;
    uint64_t size = 0;
    tgi_err none = {0};
    *fd = -1;
    *id = 0;
    tg_status st = tgi_file_open_locked(&left, fd, err);
    if (st != TG_OK)
        return st;
    st = tgi_file_size(*fd, path, &size, err);
    if (st == TG_OK && size == TGI_KEPT_FRONT + bytes &&
        tgi_file_pread(*fd, path, &f, sizeof f, 0, &none) == TG_OK) {
        *id = f.id;
        return TG_OK;
    }
    if (st == TG_OK) /* nothing of it is of use */
        st = tgi_file_truncate(*fd, path, 0, err);
    if (st == TG_OK)
        st = tgi_kept_mark(*fd, path, 0, err);
    if (st == TG_OK)
        st = tgi_file_reserve(*fd, path, TGI_KEPT_FRONT + bytes, err);
    if (st == TG_OK)
        st = tgi_file_truncate(*fd, path, TGI_KEPT_FRONT + bytes, err);
    if (st != TG_OK) {
        (void)tgi_file_unlink(path, &none);
        close(*fd);
        *fd = -1;
    }
    return st;
}
