/* part.c - creates, grows and names OUT.partial files, and knows its own from a stranger's. */
#include "io/part.h"

#include "engine/base/mem.h"
#include "io/file_ops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static tg_status refuse_existing(const tgi_part *p, tgi_err *err)
{
    return !p->replace && access(p->path, F_OK) == 0
               ? tgi_fail(err, TG_E_EXISTS, "%s exists: give -y to overwrite it", p->path)
               : TG_OK;
}

static tg_status make_names(const tgi_part_spec *s, tgi_part *p, tgi_err *err)
{
    const size_t cap = strlen(s->path) + strlen(s->ending) + 1;
    p->path = tgi_strdup(TGI_TAG_IO, s->path);
    p->partial = tgi_malloc(TGI_TAG_IO, cap);
    if (!p->path || !p->partial)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of an output");
    snprintf(p->partial, cap, "%s%s", s->path, s->ending);
    p->told = p->partial;
    return TG_OK;
}

/* How much of the file the mark covers. */
static size_t marked(const tgi_part *p)
{
    return p->at_once                       ? 0
           : p->bytes < TGI_PART_MARK_BYTES ? (size_t)p->bytes
                                            : TGI_PART_MARK_BYTES;
}

/* All of its bytes, where they are known. */
static tg_status take_room(const tgi_part *p, tgi_err *err)
{
    if (p->bytes == TGI_PART_GROWS)
        return TG_OK;
    TGI_TRY(tgi_file_reserve(p->fd, p->told, p->bytes, err));
    return p->bytes < TGI_PART_MARK_BYTES ? TG_OK
                                          : tgi_file_truncate(p->fd, p->told, p->bytes, err);
}

/* Before the lock nothing is looked at twice and nothing is changed: who held it before us may
 * have finished PATH meanwhile. The mark is on the disk before the file has any size, so a stop
 * at any moment leaves what the next one knows. */
static tg_status open_part(const tgi_part_spec *s, tgi_part *p, tgi_err *err)
{
    const tgi_left left = {.path = p->partial,
                           .output = p->path,
                           .begins = TGI_PART_MARK,
                           .head = s->head,
                           .head_bytes = s->head_bytes};
    TGI_TRY(tgi_file_open_locked(&left, &p->fd, err));
    TGI_TRY(refuse_existing(p, err));
    TGI_TRY(tgi_file_truncate(p->fd, p->told, 0, err));
    if (p->at_once)
        return TG_OK;
    TGI_TRY(tgi_file_pwrite(p->fd, p->told, TGI_PART_MARK, TGI_PART_MARK_BYTES, 0, err));
    TGI_TRY(tgi_file_sync(p->fd, p->told, err));
    return take_room(p, err);
}

tg_status tgi_part_create(const tgi_part_spec *s, tgi_part *out, tgi_err *err)
{
    tgi_part p = {.fd = -1, .replace = s->replace, .at_once = s->at_once, .bytes = s->bytes};
    tg_status st = make_names(s, &p, err);
    if (st == TG_OK)
        st = open_part(s, &p, err);
    if (st != TG_OK)
        tgi_part_drop(&p);
    *out = p;
    return st;
}

tg_status tgi_part_open_complete(const tgi_part_spec *s, tgi_part *out, tgi_err *err)
{
    tgi_part p = {.fd = -1, .replace = s->replace, .at_once = 1, .keep = 1};
    tg_status st = make_names(s, &p, err);
    const tgi_left left = {
        .path = p.partial, .output = p.path, .head = s->head, .head_bytes = s->head_bytes};
    if (st == TG_OK && access(p.partial, F_OK) != 0)
        st = tgi_fail(err, TG_E_NOT_FOUND, "%s: is not there", p.partial);
    if (st == TG_OK)
        st = tgi_file_open_locked(&left, &p.fd, err);
    if (st != TG_OK)
        tgi_part_drop(&p);
    *out = p;
    return st;
}

tg_status tgi_part_unnamed(const char *folder, const char *of, uint64_t bytes, tgi_part *out,
                           tgi_err *err)
{
    char name[32];
    tgi_part p = {.fd = -1, .bytes = bytes, .keep = 1, .at_once = 1};
    tg_status st = tgi_file_open_unnamed(folder, &p.fd, err);
    snprintf(name, sizeof name, "/dev/fd/%d", p.fd);
    if (st == TG_OK &&
        (!(p.partial = tgi_strdup(TGI_TAG_IO, name)) || !(p.path = tgi_strdup(TGI_TAG_IO, of))))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for the name of an output");
    p.told = p.path;
    if (st == TG_OK)
        st = take_room(&p, err);
    if (st != TG_OK)
        tgi_part_drop(&p);
    *out = p;
    return st;
}

tg_status tgi_part_write(tgi_part *p, uint64_t at, const void *bytes, size_t n, tgi_err *err)
{
    const char *src = bytes;
    const size_t covered = marked(p);
    size_t kept = 0;
    if (at > p->bytes || n > p->bytes - at)
        return tgi_fail(err, TG_E_INTERNAL, "%s: %zu bytes at %llu of %llu", p->told, n,
                        (unsigned long long)at, (unsigned long long)p->bytes);
    if (at < covered) {
        kept = n < covered - (size_t)at ? n : covered - (size_t)at;
        memcpy(p->first + at, src, kept);
    }
    return kept == n ? TG_OK
                     : tgi_file_pwrite(p->fd, p->told, src + kept, n - kept, at + kept, err);
}

tg_status tgi_part_sync(const tgi_part *p, tgi_err *err)
{
    if (marked(p))
        TGI_TRY(tgi_file_pwrite(p->fd, p->told, p->first, marked(p), 0, err));
    if (p->bytes < TGI_PART_MARK_BYTES && !p->at_once)
        TGI_TRY(tgi_file_truncate(p->fd, p->told, p->bytes, err));
    return tgi_file_sync(p->fd, p->told, err);
}

tg_status tgi_part_name(tgi_part *p, tgi_err *err)
{
    const tg_status st = tgi_file_rename(p->partial, p->path, p->replace, err);
    p->keep |= st == TG_OK || st == TG_E_EXISTS;
    return st;
}

/* Whoever holds the lock removes; without it the file is another's. */
void tgi_part_drop(tgi_part *p)
{
    if (p->fd >= 0 && !p->keep)
        tgi_file_unlink(p->partial, NULL);
    if (p->fd >= 0)
        close(p->fd); /* the lock goes with it */
    tgi_free(p->path);
    tgi_free(p->partial);
    *p = TGI_PART_CLOSED;
}
