#include "engine/memory/log_file.h"

#include "engine/base/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Text: decimal points and signs do not depend on the host program's locale ---- */

static size_t put_number(char *at, uint64_t v)
{
    return (size_t)sprintf(at, ",%llu", (unsigned long long)v);
}

size_t tgi_log_header(int n_gpus, char out[TGI_LOG_LINE])
{
    size_t n = (size_t)sprintf(out, "%s", TGI_LOG_COLUMNS);
    for (int i = 0; i < n_gpus; i++)
        n += (size_t)sprintf(out + n, ",gpu%d_used_bytes,gpu%d_free_bytes", i, i);
    out[n++] = '\n';
    out[n] = 0;
    return n;
}

size_t tgi_log_line(const tg_tracker_row *r, char out[TGI_LOG_LINE])
{
    const uint64_t v[] = {r->measured_bytes,      r->peak_bytes,       r->anonymous_bytes,
                          r->file_bytes,          r->shared_bytes,     r->swapped_bytes,
                          r->page_table_bytes,    r->high_water_bytes, r->pool_allocated_bytes,
                          r->pool_reserved_bytes, r->available_bytes,  r->predicted_bytes,
                          r->budget_bytes};
    const long long ms = (long long)(r->seconds * 1000);
    size_t n = (size_t)sprintf(out, "%lld.%03lld,%s,%lld", ms / 1000, ms % 1000, r->phase,
                               (long long)r->tile);
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        n += put_number(out + n, v[i]);
    for (int i = 0; i < r->n_gpus; i++) {
        n += put_number(out + n, r->gpu_used_bytes[i]);
        n += put_number(out + n, r->gpu_free_bytes[i]);
    }
    out[n++] = '\n';
    out[n] = 0;
    return n;
}

/* ---- File ---- */

/* Seconds at the beginning of the last whole line of an open log, which ends at *end; 0 where
 * that line is the header. */
static double last_seconds(int fd, off_t size, off_t *end)
{
    char tail[2 * TGI_LOG_LINE];
    const off_t from = size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0;
    const ssize_t n = pread(fd, tail, (size_t)(size - from), from);
    ssize_t stop = n, start;
    double s = 0;
    while (stop > 0 && tail[stop - 1] != '\n')
        stop--;
    for (start = stop - 1; start > 0 && tail[start - 1] != '\n';)
        start--;
    *end = from + stop;
    if (start < 0)
        return 0;
    const char *comma = memchr(tail + start, ',', (size_t)(stop - start));
    if (comma)
        (void)tgi_number_parse(tail + start, (size_t)(comma - (tail + start)), &s);
    return s >= 0 ? s : 0;
}

/* Open a log of these columns to go on with it; -1: there is none. */
static int open_old(const char *path, const char *header, size_t n, double *seconds)
{
    char first[TGI_LOG_LINE];
    struct stat st;
    off_t end = 0;
    const int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && pread(fd, first, n, 0) == (ssize_t)n &&
        memcmp(first, header, n) == 0) {
        *seconds = last_seconds(fd, st.st_size, &end);
        if (end >= (off_t)n && ftruncate(fd, end) == 0)
            return fd;
    }
    close(fd);
    *seconds = 0;
    return -1;
}

static int write_all(int fd, const char *text, size_t n)
{
    ssize_t done;
    do
        done = write(fd, text, n);
    while (done < 0 && errno == EINTR);
    if (done < 0 || done == (ssize_t)n)
        return done >= 0;
    const off_t end = lseek(fd, 0, SEEK_END); /* a part of a line is none */
    if (end < 0 || ftruncate(fd, end - done) < 0)
        return 0;
    errno = ENOSPC;
    return 0;
}

tg_status tgi_log_open(const char *path, int go_on, int n_gpus, tgi_log_file *out,
                       double *seconds, tgi_err *err)
{
    char header[TGI_LOG_LINE];
    const size_t n = tgi_log_header(n_gpus, header);
    *seconds = 0;
    *out = (tgi_log_file){.fd = go_on ? open_old(path, header, n, seconds) : -1};
    if (out->fd >= 0)
        return TG_OK;
    out->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (out->fd >= 0 && write_all(out->fd, header, n))
        return TG_OK;
    const tg_status st = tgi_fail(err, TG_E_IO, "%s: the memory log cannot be written: %s",
                                  path, strerror(errno));
    tgi_log_close(out);
    return st;
}

void tgi_log_append(tgi_log_file *l, const tg_tracker_row *row)
{
    char line[TGI_LOG_LINE];
    if (l->fd < 0)
        return;
    const size_t n = tgi_log_line(row, line);
    if (write_all(l->fd, line, n))
        return;
    snprintf(l->problem, sizeof l->problem, "the memory log ended at %.0f s: %s", row->seconds,
             strerror(errno));
    tgi_log_close(l); /* a log must not stop a run */
}

void tgi_log_close(tgi_log_file *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
