/* input.c - see input.h. Source: POSIX.1-2017 open(2), poll(2); pipe(7) and fifo(7) of Linux:
 * read(2) of a pipe that nobody has opened for writing yet answers as at its end, poll(2) does
 * not, so nothing is read before poll(2) says that there is something. */
#include "engine/base/input.h"

#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 50 /* how soon a request to stop is seen */

static int is_stream(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode) || S_ISSOCK(st->st_mode);
}

int tgi_input_is_stream(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && is_stream(&st);
}

tg_status tgi_input_open(const char *path, tgi_input *out, tgi_err *err)
{
    struct stat st;
    *out = (tgi_input){.path = path, .since = tgi_seconds()};
    out->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (out->fd < 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    const int known = fstat(out->fd, &st) == 0;
    out->stream = known && is_stream(&st);
    if (known && (out->stream || S_ISREG(st.st_mode)))
        return TG_OK;
    tgi_input_close(out);
    return tgi_fail(err, TG_E_FORMAT, "%s: neither a file nor a pipe", path);
}

tg_status tgi_input_open_stdin(tgi_input *out, tgi_err *err)
{
    *out = (tgi_input){.path = "standard input", .stream = 1, .since = tgi_seconds()};
    out->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return out->fd >= 0 ? TG_OK
                        : tgi_fail(err, TG_E_NOT_FOUND, "standard input: %s", strerror(errno));
}

/* Wait until something can be read, or the other end is closed. */
static tg_status wait_for(const tgi_input *in, tgi_err *err)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    for (;;) {
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "%s: stopped by %s while it was read",
                            in->path, tgi_cancel_by());
        const int ready = poll(&p, 1, LOOK_MS);
        if (ready > 0)
            return TG_OK;
        if (ready < 0 && errno != EINTR)
            return tgi_fail(err, TG_E_IO, "%s: %s", in->path, strerror(errno));
        if (!in->patient && tgi_seconds() - in->since > TGI_INPUT_SILENCE)
            return tgi_fail(err, TG_E_IO,
                            "%s: nothing came for %d seconds: is somebody writing to it?",
                            in->path, TGI_INPUT_SILENCE);
    }
}

tg_status tgi_input_read(tgi_input *in, void *bytes, size_t cap, size_t *n, tgi_err *err)
{
    for (;;) {
        if (in->stream)
            TGI_TRY(wait_for(in, err));
        const ssize_t k = read(in->fd, bytes, cap);
        if (k < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (k < 0)
            return tgi_fail(err, TG_E_IO, "%s: %s", in->path, strerror(errno));
        *n = (size_t)k;
        in->since = tgi_seconds();
        return TG_OK;
    }
}

void tgi_input_close(tgi_input *in)
{
    if (in->fd >= 0)
        close(in->fd);
    in->fd = -1;
}

/* Read to the end into a block that grows, one byte more than is allowed. */
static tg_status read_all(tgi_input *in, size_t most, char **text, size_t *n, tgi_err *err)
{
    size_t cap = 0, more = 1;
    *n = 0;
    while (more) {
        if (*n + 1 >= cap) {
            cap = cap ? 2 * cap : 8192;
            char *p = tgi_realloc_n(TGI_TAG_MISC, *text, cap, 1);
            if (!p)
                return tgi_fail(err, TG_E_NOMEM, "%s: no memory to read it", in->path);
            *text = p;
        }
        TGI_TRY(tgi_input_read(in, *text + *n, cap - *n - 1, &more, err));
        *n += more;
        char size[32];
        if (*n > most)
            return tgi_fail(err, TG_E_FORMAT, "%s: more than %s, which is no small file",
                            in->path, tgi_size_text(most, size, sizeof size));
    }
    (*text)[*n] = 0;
    return TG_OK;
}

tg_status tgi_input_load(const char *path, size_t most, char **text, size_t *n, tgi_err *err)
{
    tgi_input in;
    *text = NULL;
    TGI_TRY(tgi_input_open(path, &in, err));
    const tg_status st = read_all(&in, most, text, n, err);
    tgi_input_close(&in);
    if (st != TG_OK) {
        tgi_free(*text);
        *text = NULL;
    }
    return st;
}
