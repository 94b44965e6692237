/* held.c - see held.h. Source: POSIX.1-2017 fstat(2), open(2): O_NONBLOCK of a FIFO. */
#include "engine/base/held.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tgi_stamp stamp_of(const struct stat *st)
{
    return (tgi_stamp){.dev = (uint64_t)st->st_dev,
                       .ino = (uint64_t)st->st_ino,
                       .size = (uint64_t)st->st_size,
                       .sec = (int64_t)st->st_mtim.tv_sec,
                       .nsec = (int64_t)st->st_mtim.tv_nsec,
                       .csec = (int64_t)st->st_ctim.tv_sec,
                       .cnsec = (int64_t)st->st_ctim.tv_nsec};
}

int tgi_stamp_fd(int fd, tgi_stamp *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return errno;
    *out = stamp_of(&st);
    return 0;
}

int tgi_stamp_path(const char *path, tgi_stamp *out)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno;
    *out = stamp_of(&st);
    return 0;
}

int tgi_stamp_same_file(const tgi_stamp *a, const tgi_stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino;
}

int tgi_stamp_same_state(const tgi_stamp *a, const tgi_stamp *b)
{
    return a->size == b->size && a->sec == b->sec && a->nsec == b->nsec;
}

tgi_held_state tgi_held_look(const tgi_held *h, tgi_stamp *now)
{
    tgi_stamp named = {0}; /* nobody's */
    const int there = tgi_stamp_path(h->path, &named) == 0;
    const int ours = there && tgi_stamp_same_file(&named, &h->was);
    *now = ours ? named : h->was;
    if (h->fd >= 0 && tgi_stamp_fd(h->fd, now) != 0)
        *now = h->was;
    if (!tgi_stamp_same_state(now, &h->was))
        return TGI_HELD_CHANGED;
    return ours ? TGI_HELD_SAME : TGI_HELD_RENAMED;
}

tg_status tgi_held_open(const tgi_held *h, int *fd, tgi_err *err)
{
    tgi_stamp is;
    struct stat st;
    *fd = h->fd;
    if (h->fd >= 0)
        return TG_OK;
    *fd = open(h->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", h->path, strerror(errno));
    if (fstat(*fd, &st) == 0 && S_ISREG(st.st_mode)) {
        is = stamp_of(&st);
        if (tgi_stamp_same_file(&is, &h->was))
            return TG_OK;
    }
    tgi_held_close(h, fd);
    return tgi_fail(err, TG_E_FORMAT, "%s: another file has its name now", h->path);
}

void tgi_held_close(const tgi_held *h, int *fd)
{
    if (*fd >= 0 && *fd != h->fd)
        close(*fd);
    *fd = -1;
}
