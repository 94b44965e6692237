/* scratch.c - creates the temporary file, writes it, and moves windows over it. */
#include "engine/out/scratch.h"

#include "engine/base/mem.h"
#include "engine/memory/monitor_machine.h"
#include "io/file_ops.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tgi_scratch {
    tgi_rfile f;
    const char *folder; /* borrowed: for messages */
};

tg_status tgi_scratch_look(const char *folder, tgi_scratch_place *out, tgi_err *err)
{
    struct stat st;
    tg_disk disk;
    if (stat(folder, &st) != 0 || !tgi_disk_look(folder, &disk))
        return tgi_fail(err, TG_E_NOT_FOUND, "--scratch %s: %s", folder, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return tgi_fail(err, TG_E_NOT_FOUND, "--scratch %s: not a folder", folder);
    if (access(folder, W_OK | X_OK) != 0)
        return tgi_fail(err, TG_E_EXISTS, "--scratch %s: no file can be made there: %s", folder,
                        strerror(errno));
    *out = (tgi_scratch_place){.free_bytes = disk.free_bytes,
                               .device = (uint64_t)st.st_dev,
                               .in_memory = disk.in_memory != 0};
    return TG_OK;
}

tg_status tgi_scratch_create(const char *folder, uint64_t bytes, tgi_scratch **out,
                             tgi_err *err)
{
    tgi_scratch *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a temporary file");
    s->f = (tgi_rfile){.fd = -1, .size = bytes};
    s->folder = folder;
    tg_status st = tgi_file_open_unnamed(folder, &s->f.fd, err);
    if (st == TG_OK)
        st = tgi_file_reserve(s->f.fd, folder, bytes, err);
    if (st == TG_OK)
        st = tgi_file_truncate(s->f.fd, folder, bytes, err);
    if (st != TG_OK)
        tgi_scratch_close(&s);
    *out = s;
    return st;
}

int tgi_scratch_fd(const tgi_scratch *s)
{
    return s->f.fd;
}

void tgi_scratch_close(tgi_scratch **sp)
{
    if (!sp || !*sp)
        return;
    tgi_rfile_close(&(*sp)->f);
    tgi_free(*sp);
    *sp = NULL;
}

tg_status tgi_scratch_write(tgi_scratch *s, uint64_t at, const void *bytes, size_t n,
                            tgi_err *err)
{
    if (at > s->f.size || n > s->f.size - at)
        return tgi_fail(err, TG_E_INTERNAL, "%zu bytes at %llu of a scratch file of %llu", n,
                        (unsigned long long)at, (unsigned long long)s->f.size);
    return tgi_file_pwrite(s->f.fd, s->folder, bytes, n, at, err);
}

tg_status tgi_scratch_read(const tgi_scratch *s, tgi_window *w, uint64_t at, size_t n,
                           const uint8_t **out, tgi_err *err)
{
    return tgi_window_get(w, &s->f, at, n, n, out, err);
}
