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

static tg_status make_names(const char *path, tgi_part *p, tgi_err *err)
{
    const size_t n = strlen(path), cap = n + sizeof ".partial";
    p->path = tgi_strdup(TGI_TAG_IO, path);
    p->partial = tgi_malloc(TGI_TAG_IO, cap);
    if (!p->path || !p->partial)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of an output");
    snprintf(p->partial, cap, "%s.partial", path);
    return TG_OK;
}

/* Before the lock nothing is looked at twice and nothing is changed: who held it before us may
 * have finished PATH meanwhile. */
static tg_status open_part(tgi_part *p, uint64_t bytes, tgi_err *err)
{
    TGI_TRY(tgi_file_open_locked(p->partial, p->path, &p->fd, err));
    TGI_TRY(refuse_existing(p, err));
    TGI_TRY(tgi_file_truncate(p->fd, p->partial, 0, err));
    TGI_TRY(tgi_file_reserve(p->fd, p->partial, bytes, err));
    return tgi_file_truncate(p->fd, p->partial, bytes, err);
}

tg_status tgi_part_create(const char *path, uint64_t bytes, int replace, tgi_part *out,
                          tgi_err *err)
{
    tgi_part p = {.fd = -1, .replace = replace};
    tg_status st = make_names(path, &p, err);
    if (st == TG_OK)
        st = open_part(&p, bytes, err);
    if (st != TG_OK)
        tgi_part_drop(&p);
    *out = p;
    return st;
}

tg_status tgi_part_write(const tgi_part *p, uint64_t at, const void *bytes, size_t n,
                         tgi_err *err)
{
    return tgi_file_pwrite(p->fd, p->partial, bytes, n, at, err);
}

tg_status tgi_part_sync(const tgi_part *p, tgi_err *err)
{
    return tgi_file_sync(p->fd, p->partial, err);
}

tg_status tgi_part_name(tgi_part *p, tgi_err *err)
{
    const tg_status st = tgi_file_rename(p->partial, p->path, p->replace, err);
    p->keep = st == TG_OK || st == TG_E_EXISTS;
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
