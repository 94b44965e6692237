/* rfile.c - see rfile.h. */
#include "io/rfile.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tg_status tgi_rfile_open(const char *path, tgi_rfile *f, tgi_err *err)
{
    struct stat sb;
    /* O_NONBLOCK: a pipe given by mistake is refused below instead of waiting for a writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    if (fstat(fd, &sb) != 0 || !S_ISREG(sb.st_mode)) {
        close(fd);
        return tgi_fail(err, TG_E_ARG, "%s: not a regular file", path);
    }
    *f = (tgi_rfile){.fd = fd};
    if (tgi_stamp_fd(fd, &f->was) != 0) {
        tgi_rfile_close(f);
        return tgi_fail(err, TG_E_IO, "%s: cannot be looked at", path);
    }
    f->size = f->was.size;
    return TG_OK;
}

void tgi_rfile_held(const tgi_rfile *f, tgi_held *out)
{
    out->fd = f->fd;
    out->was = f->was;
}

void tgi_rfile_close(tgi_rfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

tg_status tgi_rfile_read(const tgi_rfile *f, uint64_t off, void *dst, size_t n, tgi_err *err)
{
    size_t done = 0;
    if (off > f->size || n > f->size - off)
        return tgi_fail(err, TG_E_FORMAT, "%zu bytes at offset %llu lie past the end (%llu)", n,
                        (unsigned long long)off, (unsigned long long)f->size);
    while (done < n) {
        const ssize_t k = pread(f->fd, (char *)dst + done, n - done, (off_t)(off + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return tgi_fail(err, TG_E_IO, "reading %zu bytes at offset %llu: %s", n,
                            (unsigned long long)off, strerror(errno));
        if (k == 0)
            return tgi_fail(err, TG_E_FORMAT, "the file ended at %llu while it was read",
                            (unsigned long long)(off + done));
        done += (size_t)k;
    }
    return TG_OK;
}

tg_status tgi_window_init(tgi_window *w, size_t cap, tgi_err *err)
{
    *w = (tgi_window){.cap = cap};
    w->buf = tgi_malloc(TGI_TAG_IO, cap);
    return w->buf ? TG_OK
                  : tgi_fail(err, TG_E_NOMEM, "no memory for a window of %zu bytes", cap);
}

void tgi_window_free(tgi_window *w)
{
    tgi_free(w->buf);
    *w = (tgi_window){0};
}

static tg_status fill_window(tgi_window *w, const tgi_rfile *f, uint64_t off, size_t len,
                             size_t ahead, tgi_err *err)
{
    size_t n = len > ahead ? len : ahead;
    if (len > w->cap)
        return tgi_fail(err, TG_E_INTERNAL, "a window of %zu bytes asked for %zu", w->cap, len);
    if (n > w->cap)
        n = w->cap;
    if (n > f->size - off)
        n = (size_t)(f->size - off);
    w->len = 0;
    TGI_TRY(tgi_rfile_read(f, off, w->buf, n, err));
    w->off = off;
    w->len = n;
    return TG_OK;
}

tg_status tgi_window_get(tgi_window *w, const tgi_rfile *f, uint64_t off, size_t len,
                         size_t ahead, const uint8_t **out, tgi_err *err)
{
    if (off > f->size || len > f->size - off)
        return tgi_fail(err, TG_E_FORMAT, "%zu bytes at offset %llu lie past the end (%llu)",
                        len, (unsigned long long)off, (unsigned long long)f->size);
    if (off < w->off || off - w->off > w->len || len > w->len - (size_t)(off - w->off) ||
        w->len == 0)
        TGI_TRY(fill_window(w, f, off, len, ahead, err));
    *out = w->buf + (off - w->off);
    return TG_OK;
}

#define NEAR ((uint64_t)16 << 10) /* a gap is read in the time of a call */
#define FAR ((uint64_t)128 << 10) /* what a system reads around a page that is missing */

size_t tgi_rfile_ahead(const tgi_rfile *f, const tgi_file_rows *r, size_t cap)
{
    const uint64_t all = (uint64_t)(r->n > 1 ? r->n - 1 : 0) * r->pitch + r->len;
    if (r->pitch / 2 <= r->len)
        return cap; /* nearly all that lies there: who reads this reads on */
    if (r->n < 2 || r->pitch <= NEAR)
        return all < cap ? (size_t)all : cap;
    if (r->pitch <= FAR)
        posix_fadvise(f->fd, (off_t)r->off, (off_t)((uint64_t)r->n * r->pitch),
                      POSIX_FADV_WILLNEED);
    else
        for (int64_t i = 0; i < r->n; i++)
            posix_fadvise(f->fd, (off_t)(r->off + (uint64_t)i * r->pitch), (off_t)r->len,
                          POSIX_FADV_WILLNEED);
    return r->len;
}
