/* rfile.c - windows over a file: pread into a buffer, or mmap of a bounded stretch.
 *
 * A mapped window starts on a page, holds at least what was asked and at most `cap` bytes more,
 * and is unmapped before the next one is mapped, so resident file pages stay bounded per reader
 * and leave the address space when the reader moves on. */
#include "io/rfile.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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
    *f = (tgi_rfile){.fd = fd, .size = (uint64_t)sb.st_size};
    return TG_OK;
}

void tgi_rfile_close(tgi_rfile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

tg_status tgi_rfile_check(const tgi_rfile *f, tgi_err *err)
{
    struct stat sb;
    if (fstat(f->fd, &sb) != 0)
        return tgi_fail(err, TG_E_IO, "fstat: %s", strerror(errno));
    if ((uint64_t)sb.st_size < f->size)
        return tgi_fail(err, TG_E_FORMAT,
                        "the file shrank from %llu to %llu bytes while it was read",
                        (unsigned long long)f->size, (unsigned long long)sb.st_size);
    return TG_OK;
}

bool tgi_rfile_is_remote(const tgi_rfile *f)
{
    /* @source statfs(2), f_type. */
    static const uint32_t remote[] = {
        0x6969,     /* NFS */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x517b,     /* SMB */
        0x65735546, /* FUSE */
        0x01021997, /* 9p */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x19830326, /* BeeGFS */
    };
    struct statfs sf;
    if (fstatfs(f->fd, &sf) != 0)
        return true; /* unknown: take the form that cannot fault */
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        if ((uint32_t)sf.f_type == remote[i])
            return true;
    return false;
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

tg_status tgi_window_init(tgi_window *w, bool mapped, size_t cap, tgi_err *err)
{
    *w = (tgi_window){.cap = cap};
    if (mapped)
        return TG_OK;
    w->buf = tgi_malloc(TGI_TAG_IO, cap);
    return w->buf ? TG_OK
                  : tgi_fail(err, TG_E_NOMEM, "no memory for a window of %zu bytes", cap);
}

static void unmap(tgi_window *w)
{
    if (w->map)
        munmap(w->map, w->len);
    w->map = NULL;
    w->len = 0;
}

void tgi_window_free(tgi_window *w)
{
    unmap(w);
    tgi_free(w->buf);
    w->buf = NULL;
}

static tg_status map_window(tgi_window *w, const tgi_rfile *f, uint64_t off, size_t len,
                            tgi_err *err)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t from = off / page * page;
    uint64_t n = off - from + len;
    unmap(w);
    if (n < w->cap)
        n = w->cap;
    if (n > f->size - from)
        n = f->size - from;
    TGI_TRY(tgi_rfile_check(f, err));
    void *p = mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, f->fd, (off_t)from);
    if (p == MAP_FAILED)
        return tgi_fail(err, TG_E_NOMEM, "mapping %llu bytes at offset %llu: %s",
                        (unsigned long long)n, (unsigned long long)from, strerror(errno));
    w->map = p;
    w->off = from;
    w->len = (size_t)n;
    return TG_OK;
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
        w->len == 0) {
        if (w->buf)
            TGI_TRY(fill_window(w, f, off, len, ahead, err));
        else
            TGI_TRY(map_window(w, f, off, len, err));
    }
    *out = (w->buf ? w->buf : w->map) + (off - w->off);
    return TG_OK;
}
