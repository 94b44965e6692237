/* side_file.c - see side_file.h. Source: POSIX.1-2017 open(2): opening a FIFO to write
 * without waiting is ENXIO while nobody reads; pthread_sigmask(3) and sigtimedwait(2) for
 * SIGPIPE, which belongs to the thread that writes. */
#include "io/side_file.h"

#include "engine/base/cancel.h"
#include "engine/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READER_SECONDS 30 /* for somebody to begin to read a pipe */
#define WRITE_MS 2000     /* for him to go on */
#define LOOK_MS 50

/* /dev/stderr and the like: descriptors that somebody else opened. */
static int is_descriptor(const char *path)
{
    static const char *const under[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof under / sizeof under[0]; i++)
        if (strncmp(path, under[i], strlen(under[i])) == 0)
            return 1;
    return strcmp(path, "/dev/stderr") == 0 || strcmp(path, "/dev/stdout") == 0;
}

static int flows(const struct stat *st)
{
    return S_ISFIFO(st->st_mode) || S_ISCHR(st->st_mode);
}

int tgi_is_stream(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && (flows(&st) || (S_ISREG(st.st_mode) && is_descriptor(path)));
}

static tg_status cannot(const char *path, const char *why, tgi_err *err)
{
    return tgi_fail(err, TG_E_EXISTS, "%s: cannot be written: %s", path, why);
}

/* What is there and flows. */
static tg_status open_flow(const char *path, tgi_side *out, tgi_err *err)
{
    const double since = tgi_seconds();
    for (;;) {
        out->fd = open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (out->fd >= 0)
            return TG_OK;
        if (errno != ENXIO && errno != EINTR)
            return cannot(path, strerror(errno), err);
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED, "%s: stopped while it waited for a reader",
                            path);
        if (tgi_seconds() - since > READER_SECONDS)
            return tgi_fail(err, TG_E_IO, "%s: nobody read it for %d seconds", path,
                            READER_SECONDS);
        const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000L};
        nanosleep(&nap, NULL);
    }
}

/* A file that somebody opened for us is written to as he opened it: where he stands in it, and
 * not at all if he reads. */
static tg_status open_descriptor(const char *path, const struct stat *st, tgi_side *out,
                                 tgi_err *err)
{
    const char *slash = strrchr(path, '/');
    const int fd = strcmp(slash, "/stderr") == 0   ? STDERR_FILENO
                   : strcmp(slash, "/stdout") == 0 ? STDOUT_FILENO
                                                   : (int)strtol(slash + 1, NULL, 10);
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
        return cannot(path, flags < 0 ? strerror(errno) : "it was opened to be read", err);
    if (!S_ISREG(st->st_mode)) /* so that it need not wait */
        return open_flow(path, out, err);
    out->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return out->fd >= 0 ? TG_OK : cannot(path, strerror(errno), err);
}

static tg_status open_new(const char *path, tgi_side *out, tgi_err *err)
{
    out->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
    out->is_file = out->made = out->fd >= 0;
    if (out->fd >= 0)
        return TG_OK;
    if (errno == EEXIST)
        return tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path);
    return cannot(path, strerror(errno), err);
}

static tg_status open_old(const char *path, tgi_side_how how, tgi_side *out, tgi_err *err)
{
    struct stat st;
    if (how == TGI_SIDE_NEW)
        return tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path);
    out->fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    if (out->fd < 0)
        return cannot(path,
                      errno == ELOOP ? "it is a symbolic link to a file, which is not followed"
                                     : strerror(errno),
                      err);
    out->is_file = 1;
    int good = fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode);
    if (good && st.st_nlink > 1) {
        tgi_side_close(out);
        return cannot(
            path, "the file has another name (a hard link), and would change there too", err);
    }
    if (good && how == TGI_SIDE_REPLACE)
        good = ftruncate(out->fd, 0) == 0;
    if (good)
        return TG_OK;
    tgi_side_close(out);
    return cannot(path, "it is no file that can be emptied", err);
}

tg_status tgi_side_open(const char *path, tgi_side_how how, tgi_side *out, tgi_err *err)
{
    struct stat st;
    *out = (tgi_side){.fd = -1};
    if (stat(path, &st) != 0)
        return open_new(path, out, err);
    if (tgi_is_stream(path))
        return is_descriptor(path) ? open_descriptor(path, &st, out, err)
                                   : open_flow(path, out, err);
    if (!S_ISREG(st.st_mode))
        return cannot(path, S_ISDIR(st.st_mode) ? "it is a folder" : "it is no file", err);
    return open_old(path, how, out, err);
}

ssize_t tgi_write_quietly(int fd, const char *p, size_t n)
{
    sigset_t pipe, before, waiting;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigemptyset(&waiting);
    sigpending(&waiting);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    const ssize_t k = write(fd, p, n);
    const int e = errno;
    if (k < 0 && e == EPIPE && !sigismember(&waiting, SIGPIPE)) {
        const struct timespec at_once = {0};
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = e;
    return k;
}

int tgi_side_write(const tgi_side *s, const char *text, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t k = tgi_write_quietly(s->fd, text + done, n - done);
        if (k > 0) {
            done += (size_t)k;
            continue;
        }
        struct pollfd p = {.fd = s->fd, .events = POLLOUT};
        if (k < 0 && errno == EINTR)
            continue;
        if (k == 0)
            errno = ENOSPC;
        if (errno == EAGAIN && poll(&p, 1, WRITE_MS) > 0)
            continue;
        break;
    }
    if (done == n || !done || !s->is_file)
        return done == n;
    const int e = errno;
    const off_t end = lseek(s->fd, 0, SEEK_END); /* a part of a line is none */
    if (end >= 0 && ftruncate(s->fd, end - (off_t)done) < 0)
        return 0;
    errno = e;
    return 0;
}

void tgi_side_close(tgi_side *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
