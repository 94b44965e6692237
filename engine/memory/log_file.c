/* log_file.c - writes the header and the lines of a memory log; goes on from a torn last
 * line. */
#include "engine/memory/log_file.h"

#include "engine/base/number.h"

#include <errno.h>
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

size_t tgi_log_line(const tg_tracker_row *r, const int64_t busy[TGI_BUSY_KINDS],
                    char out[TGI_LOG_LINE])
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
    for (int k = 0; k < TGI_BUSY_KINDS; k++)
        n += put_number(out + n, (uint64_t)busy[k]);
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

/* Go on with a log of these columns: cut off a last line that has no end. 0: it is another. */
static int take_up(int fd, const char *header, size_t n, double *seconds)
{
    char first[TGI_LOG_LINE];
    struct stat st;
    off_t end = 0;
    if (fstat(fd, &st) != 0 || pread(fd, first, n, 0) != (ssize_t)n ||
        memcmp(first, header, n) != 0)
        return 0;
    *seconds = last_seconds(fd, st.st_size, &end);
    if (end >= (off_t)n && ftruncate(fd, end) == 0)
        return 1;
    *seconds = 0;
    return 0;
}

tg_status tgi_log_open(const char *path, tgi_side_how how, int go_on, int n_gpus,
                       tgi_log_file *out, double *seconds, tgi_err *err)
{
    char header[TGI_LOG_LINE];
    const size_t n = tgi_log_header(n_gpus, header);
    *seconds = 0;
    *out = (tgi_log_file){.to.fd = -1};
    const tgi_side_how first = go_on && how == TGI_SIDE_REPLACE ? TGI_SIDE_KEEP : how;
    TGI_TRY(tgi_side_open(path, first, &out->to, err));
    if (first == TGI_SIDE_KEEP && out->to.is_file) {
        if (take_up(out->to.fd, header, n, seconds))
            return TG_OK;
        if (ftruncate(out->to.fd, 0) != 0)
            return tgi_fail(err, TG_E_IO, "%s: cannot be emptied: %s", path, strerror(errno));
    }
    if (tgi_side_write(&out->to, header, n))
        return TG_OK;
    const tg_status st = tgi_fail(err, TG_E_IO, "%s: the memory log cannot be written: %s",
                                  path, strerror(errno));
    tgi_log_close(out);
    return st;
}

void tgi_log_append(tgi_log_file *l, const tg_tracker_row *row,
                    const int64_t ms[TGI_BUSY_KINDS])
{
    char line[TGI_LOG_LINE];
    if (l->to.fd < 0)
        return;
    const size_t n = tgi_log_line(row, ms, line);
    if (tgi_side_write(&l->to, line, n))
        return;
    snprintf(l->problem, sizeof l->problem, "the memory log ended at %.0f s: %s", row->seconds,
             strerror(errno));
    tgi_log_close(l); /* a log must not stop a run */
}

void tgi_log_close(tgi_log_file *l)
{
    tgi_side_close(&l->to);
}
