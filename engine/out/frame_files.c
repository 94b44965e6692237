/* frame_files.c - see frame_files.h. */
#include "engine/out/frame_files.h"

#include "engine/base/cancel.h"
#include "io/bytes.h"
#include "io/crc32c.h"
#include "io/file_ops.h"
#include "io/numbered.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_ROOM 4096

const char *tgi_frames_list_of(const char *output, char *buf, size_t cap)
{
    tgi_numbered n;
    if (!output || !tgi_numbered_find(output, &n) || !tgi_frame_writer_for(output) ||
        snprintf(buf, cap, "%s" TGI_FRAMES_LIST, output) >= (int)cap)
        return output;
    return buf;
}

static int64_t number_of(const tgi_frame_files *f, int64_t k)
{
    return f->numbers ? f->numbers[k] : f->first + k;
}

/* The frame that has this number; -1: none. */
static int64_t frame_of(const tgi_frame_files *f, int64_t number)
{
    int64_t lo = 0, hi = f->frames;
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (number_of(f, mid) < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < f->frames && number_of(f, lo) == number ? lo : -1;
}

static tg_status name_of(const tgi_frame_files *f, int64_t k, char path[PATH_ROOM],
                         tgi_err *err)
{
    return tgi_numbered_name(f->pattern, number_of(f, k), path, PATH_ROOM)
               ? TG_OK
               : tgi_fail(err, TG_E_ARG, "%s: the name is too long", f->pattern);
}

/* Bytes and checksum of what is in a file. `asked`: a signal ends it. */
static tg_status record_of(int fd, const char *told, int asked,
                           uint8_t record[TGI_FRAME_RECORD], tgi_err *err)
{
    uint8_t piece[16384];
    uint64_t bytes;
    uint32_t crc = 0;
    TGI_TRY(tgi_file_size(fd, told, &bytes, err));
    for (uint64_t at = 0; at < bytes;) {
        const size_t n = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
        if (asked && tgi_cancel_signal())
            return TG_E_CANCELLED;
        TGI_TRY(tgi_file_pread(fd, told, piece, n, at, err));
        crc = tgi_crc32c(crc, piece, n);
        at += n;
    }
    tgi_save64(record, bytes, false);
    tgi_save32(record + 8, crc, false);
    return TG_OK;
}

static tg_status write_rows(const tgi_frame_files *f, tgi_part *to, const char *picture,
                            tgi_err *err)
{
    void *state = NULL;
    const size_t row =
        (size_t)f->spec.width * (size_t)f->spec.samples * tgi_dtype_size(f->spec.dtype);
    tg_status st = f->writer->create(to, &f->spec, &state, err);
    for (int64_t y = 0; st == TG_OK && y < f->spec.height; y++)
        st = f->writer->row(state, picture + (size_t)y * row, err);
    if (st == TG_OK)
        st = f->writer->finish(state, err);
    if (state)
        f->writer->close(state);
    return st;
}

tg_status tgi_frame_write(const tgi_frame_files *f, int64_t k, const void *picture,
                          uint8_t record[TGI_FRAME_RECORD], tgi_err *err)
{
    char path[PATH_ROOM];
    tgi_part to = TGI_PART_CLOSED;
    const int tiff = f->writer == &tgi_tiff_picture_writer;
    const char *head = tiff                           ? TGI_TIFF_PICTURE_HEAD
                       : f->writer == &tgi_png_writer ? "\x89PNG\r\n\x1a\n"
                                                      : "\xff\xd8\xff";
    const tgi_part_spec part = {.path = path,
                                .ending = ".partial",
                                .bytes = TGI_PART_GROWS,
                                .replace = 1,
                                .head = head, /* of one that was whole, and had no name yet */
                                .head_bytes =
                                    tiff ? TGI_TIFF_PICTURE_HEAD_BYTES : strlen(head)};
    TGI_TRY(name_of(f, k, path, err));
    tg_status st = tgi_part_create(&part, &to, err);
    if (st == TG_OK)
        st = write_rows(f, &to, picture, err);
    if (st == TG_OK)
        st = record_of(to.fd, to.told, 0, record, err);
    if (st == TG_OK)
        st = tgi_part_name(&to, err);
    tgi_part_drop(&to);
    return st;
}

int tgi_frame_is_there(const tgi_frame_files *f, int64_t k,
                       const uint8_t record[TGI_FRAME_RECORD])
{
    char path[PATH_ROOM];
    struct stat st;
    tgi_err none = {0};
    return name_of(f, k, path, &none) == TG_OK && lstat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && (uint64_t)st.st_size == tgi_load64(record, false);
}

int tgi_frame_is_same(const tgi_frame_files *f, int64_t k,
                      const uint8_t record[TGI_FRAME_RECORD])
{
    char path[PATH_ROOM];
    uint8_t now[TGI_FRAME_RECORD];
    tgi_err none = {0};
    if (!tgi_frame_is_there(f, k, record) || name_of(f, k, path, &none) != TG_OK)
        return 0;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int same = fd >= 0 && record_of(fd, path, 1, now, &none) == TG_OK &&
                     memcmp(now, record, TGI_FRAME_RECORD) == 0;
    if (fd >= 0)
        close(fd);
    return same;
}

tg_status tgi_frames_are_new(const tgi_frame_files *f, tgi_err *err)
{
    char path[PATH_ROOM];
    struct stat st;
    for (int64_t k = 0; k < f->frames; k++) {
        TGI_TRY(name_of(f, k, path, err));
        if (lstat(path, &st) == 0)
            return tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path);
    }
    return TG_OK;
}

int64_t tgi_frames_others(const tgi_frame_files *f, char *least, size_t cap)
{
    char folder[PATH_ROOM];
    tgi_numbered n;
    int64_t others = 0, number = 0;
    if (!tgi_numbered_find(f->pattern, &n) ||
        snprintf(folder, sizeof folder, "%.*s", (int)(n.base - f->pattern), f->pattern) >=
            (int)sizeof folder)
        return 0;
    DIR *d = opendir(folder[0] ? folder : ".");
    for (const struct dirent *e; d && (e = readdir(d));) {
        const int64_t k = tgi_number_of(f->pattern, e->d_name);
        if (k < 0 || frame_of(f, k) >= 0)
            continue;
        if (!others || k < number) {
            snprintf(least, cap, "%s", e->d_name);
            number = k;
        }
        others++;
    }
    if (d)
        closedir(d);
    return others;
}

/* Where a path leads to has its folder here. */
static int folder_of(const char *path, struct stat *st)
{
    char folder[PATH_ROOM];
    const char *slash = strrchr(path, '/');
    const size_t n = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof folder)
        return 0;
    memcpy(folder, path, n);
    folder[n] = 0;
    return stat(n ? folder : ".", st) == 0;
}

/* What lies, or will lie, in the same folder under the name of a frame; links are followed. */
tg_status tgi_frames_spare(const tgi_frame_files *f, const char *path, tgi_err *err)
{
    char ours[PATH_ROOM];
    struct stat a, b;
    char full[PATH_MAX];
    const char *real = realpath(path, full);
    real = real ? real : path; /* it is not there yet */
    const int64_t k = frame_of(f, tgi_number_of(f->pattern, real));
    int same = k >= 0;
    if (same)
        same = name_of(f, k, ours, err) == TG_OK && folder_of(ours, &a) &&
               folder_of(real, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    return !same ? TG_OK
                 : tgi_fail(err, TG_E_ARG,
                            "%s: a frame of the output would have this name, and it is never "
                            "replaced: choose another name",
                            path);
}

size_t tgi_frame_line(const tgi_frame_files *f, int64_t k,
                      const uint8_t record[TGI_FRAME_RECORD], char *text, size_t cap)
{
    char path[PATH_ROOM];
    if (!tgi_numbered_name(f->pattern, number_of(f, k), path, sizeof path))
        return 0;
    const char *slash = strrchr(path, '/');
    const int n =
        snprintf(text, cap, "%s %llu bytes, crc32c %08x\n", slash ? slash + 1 : path,
                 (unsigned long long)tgi_load64(record, false), tgi_load32(record + 8, false));
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}
