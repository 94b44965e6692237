/* data_scan.c - a data set as it lies on disk: folders, images and videos by their headers,
 * lists.
 *
 * Folders are walked to the ground, links are not followed, names beginning with a dot are
 * passed over. Every file is opened by the reader that a run would use, so what counts here can
 * be read there; no pixel is decoded. (Of videos only the headers can be read so far.) What no
 * reader knows is listed by kind, with the reason of the first such file. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/estimate/estimate.h"
#include "io/image.h"
#include "io/video_head.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_DEPTH 32

/* The end of a file's name, in small letters, without the dot; "" when there is none. */
static void kind_of(const char *path, char kind[24])
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    size_t n = 0;
    for (const char *p = dot ? dot + 1 : ""; *p && n < 23; p++)
        kind[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
    kind[n] = 0;
}

static int is_video(const char *kind)
{
    static const char *const kinds[] = {"mp4", "mkv", "mov",  "avi",  "webm", "m4v",
                                        "mpg", "ts",  "wmv",  "mpeg", "mts",  "ogv",
                                        "264", "265", "h264", "flv",  "3gp",  "y4m"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return 1;
    return 0;
}

static void not_counted(tgi_scan *s, const char *kind, const char *why)
{
    int i = 0;
    while (i < s->n_reasons && strcmp(s->reason[i].kind, kind) != 0)
        i++;
    s->not_counted++;
    if (i == TGI_MAX_REASONS) {
        i--; /* the last collects the rest */
        snprintf(s->reason[i].kind, sizeof s->reason[i].kind, "%s", "others");
    } else if (i == s->n_reasons) {
        s->n_reasons++;
        snprintf(s->reason[i].kind, sizeof s->reason[i].kind, "%s", kind);
        snprintf(s->reason[i].why, sizeof s->reason[i].why, "%s", why);
    }
    s->reason[i].files++;
}

static tg_status add_list(tgi_scan *s, const char *path, tgi_err *err)
{
    int64_t n = 0;
    char member[64];
    TGI_TRY(tgi_list_count(path, &n, member, sizeof member, err));
    s->lists++;
    s->list_samples += n;
    return TG_OK;
}

static tg_status add_image(tgi_scan *s, const char *path, tgi_err *err)
{
    const tgi_open_opts opts = {.threads = 1, .member = 1};
    tgi_source *source = NULL;
    TGI_TRY(tgi_source_open(path, &opts, &source, err));
    const tgi_image_info *i = source->ops->info(source);
    const int64_t f[] = {i->n_planes, i->height, i->width, i->samples,
                         (int64_t)tgi_dtype_size(i->dtype)};
    uint64_t bytes = 0;
    const tg_status st = tgi_product(path, f, 5, &bytes, err);
    if (st == TG_OK) {
        s->images++;
        s->planes += i->n_planes;
        s->decoded_bytes = tgi_sat_add(s->decoded_bytes, bytes);
        s->file_bytes += i->file_bytes;
        s->compressed += !i->plain;
        if (bytes > s->largest_bytes)
            s->largest_bytes = bytes;
        if (!tgi_dtype_is_float(i->dtype) || tgi_dtype_size(i->dtype) < 4)
            s->floats = 0;
    }
    tgi_source_close(&source);
    return st;
}

/* Frames as a loader hands them out: three bytes a pixel. */
static tg_status add_video(tgi_scan *s, const char *path, tgi_err *err)
{
    tgi_video_head h;
    uint64_t frame, all;
    TGI_TRY(tgi_video_head_read(path, &h, err));
    TGI_TRY(tgi_product(path, (const int64_t[]){h.width, h.height, 3}, 3, &frame, err));
    TGI_TRY(tgi_product(path, (const int64_t[]){h.width, h.height, 3, h.frames}, 4, &all, err));
    s->videos++;
    s->frames += h.frames;
    s->decoded_bytes = tgi_sat_add(s->decoded_bytes, all);
    s->file_bytes += h.file_bytes;
    s->compressed++;
    s->floats = 0;
    if (frame > s->largest_bytes)
        s->largest_bytes = frame;
    return TG_OK;
}

/* A file of a folder: what cannot be counted is noted; memory and a stop end the walk. */
static tg_status add_file(tgi_scan *s, const char *path, int named, tgi_err *err)
{
    char kind[24];
    tgi_err own = {0};
    kind_of(path, kind);
    const int list = strcmp(kind, "json") == 0 || strcmp(kind, "jsonl") == 0;
    const tg_status st = list             ? add_list(s, path, &own)
                         : is_video(kind) ? add_video(s, path, &own)
                                          : add_image(s, path, &own);
    if (st == TG_OK)
        return TG_OK;
    if (named || st == TG_E_NOMEM || st == TG_E_CANCELLED)
        return tgi_fail(err, st, "%s", own.text);
    not_counted(s, kind, own.text);
    return TG_OK;
}

static tg_status add_folder(tgi_scan *s, const char *path, int depth, tgi_err *err);

static tg_status add_entry(tgi_scan *s, const char *folder, const char *name, int depth,
                           tgi_err *err)
{
    char path[4096];
    struct stat st;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return tgi_fail(err, TG_E_ARG, "%s: names too long below it", folder);
    if (tgi_cancel_signal())
        return tgi_fail(err, TG_E_CANCELLED, "%s: stopped while counting", folder);
    if (lstat(path, &st) != 0) {
        not_counted(s, "", strerror(errno));
        return TG_OK;
    }
    if (S_ISDIR(st.st_mode))
        return add_folder(s, path, depth + 1, err);
    if (!S_ISREG(st.st_mode)) {
        not_counted(s, S_ISLNK(st.st_mode) ? "link" : "special",
                    S_ISLNK(st.st_mode) ? "links are not followed" : "not a regular file");
        return TG_OK;
    }
    return add_file(s, path, 0, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of a folder in order, so that a report is the same on every filesystem. */
static tg_status read_names(const char *path, char ***out, size_t *n, tgi_err *err)
{
    size_t cap = 0;
    tg_status st = TG_OK;
    DIR *d = opendir(path);
    if (!d)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    for (struct dirent *e; st == TG_OK && (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        if (*n == cap) {
            cap = 2 * cap + 64;
            char **grown = tgi_realloc_n(TGI_TAG_MISC, *out, cap, sizeof **out);
            if (!grown) {
                st = TG_E_NOMEM;
                break;
            }
            *out = grown;
        }
        (*out)[*n] = tgi_strdup(TGI_TAG_MISC, e->d_name);
        if ((*out)[*n])
            ++*n;
        else
            st = TG_E_NOMEM;
    }
    closedir(d);
    if (*n)
        qsort(*out, *n, sizeof **out, by_name);
    return st == TG_OK ? st : tgi_fail(err, st, "%s: no memory for its names", path);
}

static tg_status add_folder(tgi_scan *s, const char *path, int depth, tgi_err *err)
{
    char **name = NULL;
    size_t n = 0;
    if (depth > MAX_DEPTH)
        return tgi_fail(err, TG_E_ARG, "%s: more than %d folders deep", path, MAX_DEPTH);
    tg_status st = read_names(path, &name, &n, err);
    for (size_t i = 0; i < n; i++) {
        if (st == TG_OK)
            st = add_entry(s, path, name[i], depth, err);
        tgi_free(name[i]);
    }
    tgi_free(name);
    return st;
}

tg_status tgi_scan_path(tgi_scan *s, const char *path, tgi_err *err)
{
    struct stat st;
    if (s->images + s->videos + s->lists + s->not_counted == 0)
        s->floats = 1;
    if (stat(path, &st) != 0)
        return tgi_fail(err, TG_E_NOT_FOUND, "%s: %s", path, strerror(errno));
    return S_ISDIR(st.st_mode) ? add_folder(s, path, 0, err) : add_file(s, path, 1, err);
}
