#include "engine/job/input_hash.h"

#include "engine/base/beside.h"
#include "engine/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tgi_input_hash {
    const tg_source *source;
    const char *path;
    void *buffer;
    tgi_beside beside;
    uint64_t before, bytes; /* stamp and size of all files at the start */
    /* The thread's until it is stopped. */
    tgi_sha256 sha;
    int64_t file; /* the one being read */
    int fd;       /* -1: not open yet */
    off_t at;     /* in it */
    int error;    /* errno of the first failure */
};

static uint64_t mix(uint64_t h, uint64_t v)
{
    return (h ^ v) * 1099511628211ull;
}

/* Who all files are and when they were written to; their size in *bytes. errno or 0. */
static int stamp(const tgi_input_hash *h, uint64_t *out, uint64_t *bytes)
{
    const char *path;
    struct stat st;
    *out = 14695981039346656037ull;
    *bytes = 0;
    for (int64_t i = 0; (path = tgi_source_file(h->source, h->path, i)); i++) {
        if (stat(path, &st) != 0)
            return errno;
        *out =
            mix(mix(mix(*out, (uint64_t)st.st_dev), (uint64_t)st.st_ino), (uint64_t)st.st_size);
        *out = mix(mix(*out, (uint64_t)st.st_mtim.tv_sec), (uint64_t)st.st_mtim.tv_nsec);
        *bytes += (uint64_t)st.st_size;
    }
    return 0;
}

/* Read and mix the next piece; 0 at the end of the last file and after a failure. */
static int step(void *arg)
{
    tgi_input_hash *h = arg;
    ssize_t n;
    if (h->error)
        return 0;
    if (h->fd < 0) {
        const char *path = tgi_source_file(h->source, h->path, h->file);
        if (!path)
            return 0;
        h->fd = open(path, O_RDONLY | O_CLOEXEC);
        h->at = 0;
        if (h->fd < 0)
            h->error = errno;
        return h->fd >= 0;
    }
    do
        n = pread(h->fd, h->buffer, TGI_INPUT_HASH_BYTES, h->at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        h->error = errno;
    if (n > 0) {
        tgi_sha256_add(&h->sha, h->buffer, (size_t)n);
        h->at += n;
        return 1;
    }
    close(h->fd);
    h->fd = -1;
    h->file++;
    return n == 0;
}

tg_status tgi_input_hash_open(const tg_source *source, const char *path, void *buffer,
                              tgi_input_hash **out, tgi_err *err)
{
    tgi_input_hash *h = tgi_calloc(TGI_TAG_IO, 1, sizeof *h);
    if (!h)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the input's checksum");
    h->source = source;
    h->path = path;
    h->buffer = buffer;
    h->fd = -1;
    tgi_sha256_begin(&h->sha);
    h->error = stamp(h, &h->before, &h->bytes);
    if (!h->error)
        tgi_beside_start(&h->beside, step, h);
    *out = h;
    return TG_OK;
}

tg_status tgi_input_hash_finish(tgi_input_hash *h,
                                tg_status (*tick)(void *user, double fraction, tgi_err *err),
                                void *user, tgi_input_digest *out, tgi_err *err)
{
    uint64_t after = 0, bytes = 0;
    tgi_beside_stop(&h->beside);
    while (step(h)) {
        const double all = h->bytes > 0 ? (double)h->bytes : 1;
        TGI_TRY(tick(user, (double)h->sha.bytes / all, err));
    }
    *out = (tgi_input_digest){.bytes = h->sha.bytes};
    if (h->error) {
        snprintf(out->trouble, sizeof out->trouble, "reading it whole: %s", strerror(h->error));
        return TG_OK;
    }
    out->changed =
        stamp(h, &after, &bytes) != 0 || after != h->before || h->sha.bytes != h->bytes;
    if (out->changed)
        snprintf(out->trouble, sizeof out->trouble,
                 "it was changed during the run: the checksum is of what was read, perhaps of "
                 "no single state");
    tgi_sha256_end(&h->sha, out->sha256);
    return TG_OK;
}

void tgi_input_hash_close(tgi_input_hash **hp)
{
    tgi_input_hash *h = *hp;
    if (!h)
        return;
    tgi_beside_stop(&h->beside);
    if (h->fd >= 0)
        close(h->fd);
    tgi_free(h);
    *hp = NULL;
}
