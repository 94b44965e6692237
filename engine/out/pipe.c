/* pipe.c - see pipe.h. Source: POSIX.1-2017 poll(2), write(2): a pipe that poll(2) says can be written takes PIPE_BUF
 * bytes without waiting, so a request to stop is seen however slow the reader is. */
#include "engine/out/pipe.h"

#include "engine/base/cancel.h"
#include "io/side_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 50              /* how soon a request to stop is seen */
#define PIECE ((size_t)1 << 20) /* of a file */

tg_status tgi_pipe_open_stdout(int *out, tgi_err *err)
{
    if (isatty(STDOUT_FILENO))
        return tgi_fail(
            err, TG_E_ARG,
            "-o -: standard output is a terminal: send the film to a program, `| ffmpeg "
            "-i - ...`");
    const int mode = fcntl(STDOUT_FILENO, F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY)
        return tgi_fail(err, TG_E_IO,
                        "-o -: standard output is closed, or cannot be written: the film has "
                        "nowhere to go");
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return *out >= 0 ? TG_OK : tgi_fail(err, TG_E_IO, "standard output: %s", strerror(errno));
}

static tg_status failed(tgi_err *err)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return tgi_fail(err, TG_E_NO_SPACE, "standard output: %s", strerror(errno));
    return tgi_fail(err, TG_E_IO, "standard output: %s",
                    errno == EPIPE ? "nobody reads it any more" : strerror(errno));
}

tg_status tgi_pipe_write(int fd, const void *bytes, size_t n, tgi_err *err)
{
    struct stat st;
    const char *p = bytes;
    const size_t most = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? PIECE : PIPE_BUF;
    while (n) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (tgi_cancel_signal())
            return tgi_fail(err, TG_E_CANCELLED,
                            "stopped by %s: what went to standard output ends here",
                            tgi_cancel_by());
        const int k = poll(&ready, 1, LOOK_MS);
        if (k == 0 || (k < 0 && errno == EINTR))
            continue;
        const ssize_t done = tgi_write_quietly(fd, p, n < most ? n : most);
        if (done < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (done < 0)
            return failed(err);
        p += done;
        n -= (size_t)done;
    }
    return TG_OK;
}
