/* bad_tiles.c - appends to OUT.errors.partial, takes it over after a stop, and writes
 * OUT.errors.json. */
#include "engine/out/bad_tiles.h"

#include "engine/base/json.h"
#include "engine/base/mem.h"
#include "io/crc32c.h"
#include "io/file_ops.h"
#include "io/film_out.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTED 4096
#define LINE 256

typedef struct region {
    int64_t plane, sample, y0, y1, x0, x1;
    char reason[128];
} region;

struct tgi_bad_tiles {
    char *partial, *list; /* OUT.errors.partial, OUT.errors.json */
    int fd;               /* of the first; -1: nothing noted yet */
    int begun;            /* by a run; else nothing is written: somebody only looks */
    tgi_bad_state safe;   /* what of it is on the disk */
    int64_t n, beyond;    /* regions listed; calls that found no room */
    pthread_mutex_t lock;
    region at[LISTED];
};

static char *joined(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end) + 1;
    char *p = tgi_malloc(TGI_TAG_IO, n + m);
    if (p) {
        memcpy(p, path, n);
        memcpy(p + n, end, m);
    }
    return p;
}

tg_status tgi_bad_tiles_new(const char *output, tgi_bad_tiles **out, tgi_err *err)
{
    tgi_bad_tiles *b = tgi_calloc(TGI_TAG_IO, 1, sizeof *b);
    if (!b)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the list of bad tiles");
    b->fd = -1;
    pthread_mutex_init(&b->lock, NULL);
    b->partial = joined(output, ".errors.partial");
    b->list = joined(output, ".errors.json");
    if (!b->partial || !b->list) {
        tgi_bad_tiles_free(&b);
        return tgi_fail(err, TG_E_NOMEM, "no memory for the list of bad tiles");
    }
    *out = b;
    return TG_OK;
}

void tgi_bad_tiles_free(tgi_bad_tiles **bp)
{
    tgi_bad_tiles *b = *bp;
    if (!b)
        return;
    if (b->fd >= 0)
        close(b->fd);
    pthread_mutex_destroy(&b->lock);
    tgi_free(b->partial);
    tgi_free(b->list);
    tgi_free(b);
    *bp = NULL;
}

static int is_same(const region *a, const region *b)
{
    return a->plane == b->plane && a->sample == b->sample && a->y0 == b->y0 && a->x0 == b->x0;
}

/* Keep a region unless it is known; 1 when it is new. */
static int keep(tgi_bad_tiles *b, const region *r)
{
    for (int64_t i = 0; i < b->n; i++)
        if (is_same(&b->at[i], r))
            return 0;
    if (b->n == LISTED) {
        b->beyond++;
        return 0;
    }
    b->at[b->n++] = *r;
    return 1;
}

/* ---- OUT.errors.partial: one line a region ----------------------------------------------- */

static tg_status append(tgi_bad_tiles *b, const region *r, tgi_err *err)
{
    char line[LINE];
    const int n =
        snprintf(line, sizeof line,
                 "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %s\n",
                 r->plane, r->sample, r->y0, r->y1, r->x0, r->x1, r->reason);
    if (b->fd < 0)
        TGI_TRY(tgi_file_create(b->partial, &b->fd, err));
    TGI_TRY(tgi_file_pwrite(b->fd, b->partial, line, (size_t)n, b->safe.bytes, err));
    TGI_TRY(tgi_file_sync(b->fd, b->partial, err));
    b->safe.check = tgi_crc32c(b->safe.check, line, (size_t)n);
    b->safe.bytes += (uint64_t)n;
    b->safe.regions++;
    return TG_OK;
}

/* Six numbers and a reason, as `append` writes them; 0 when the line is none. */
static int read_line(const char *line, region *r)
{
    int64_t *const number[] = {&r->plane, &r->sample, &r->y0, &r->y1, &r->x0, &r->x1};
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++) {
        char *end;
        errno = 0;
        *number[i] = strtoll(line, &end, 10);
        if (end == line || *end != ' ' || errno)
            return 0;
        line = end + 1;
    }
    const size_t n = strcspn(line, "\n");
    if (n == 0 || line[n] != '\n')
        return 0;
    snprintf(r->reason, sizeof r->reason, "%.*s", (int)n, line);
    return 1;
}

/* The beginning of such a line, to its first number at least: a write that was torn. */
static int is_torn_line(const char *line)
{
    int fields = 0;
    for (; fields < 6; fields++) {
        line += *line == '-';
        const size_t digits = strspn(line, "0123456789");
        if (!digits || line[digits] != ' ')
            return fields > 0 && line[digits] == 0;
        line += digits + 1;
    }
    return !strchr(line, '\n');
}

/* A list of ours has such a line first. */
int tgi_bad_tiles_ours(const char *path)
{
    char line[LINE];
    region r = {0};
    const tgi_left empty = {.path = path};
    if (tgi_file_is_ours(&empty))
        return 1;
    FILE *f = fopen(path, "re");
    struct stat st;
    const int ours = f && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode) &&
                     st.st_nlink == 1 && fgets(line, sizeof line, f) &&
                     (read_line(line, &r) || is_torn_line(line));
    if (f)
        fclose(f);
    return ours;
}

/* The next line of what is safe; 0 when there is none, or it is none of ours. */
static int take_line(tgi_bad_tiles *b, FILE *f, const tgi_bad_state *from)
{
    char line[LINE];
    region r = {0};
    if (!fgets(line, sizeof line, f) || !read_line(line, &r))
        return 0;
    const size_t n = strlen(line);
    b->safe.check = tgi_crc32c(b->safe.check, line, n);
    b->safe.bytes += n;
    b->safe.regions++;
    return b->safe.bytes <= from->bytes && keep(b, &r);
}

/* Take over what the journal knows, and cut off what it does not. */
static tg_status take_over(tgi_bad_tiles *b, const tgi_bad_state *from, tgi_err *err)
{
    FILE *f = fopen(b->partial, "re");
    while (f && b->safe.bytes < from->bytes && take_line(b, f, from))
        ;
    if (f)
        fclose(f);
    if (b->safe.bytes != from->bytes || b->safe.check != from->check ||
        b->safe.regions != from->regions)
        return tgi_fail(err, TG_E_CHANGED,
                        "%s: is missing or was changed: it lists what of the input the "
                        "interrupted run filled (%u region%s); give -y to discard its output "
                        "and start over",
                        b->partial, (unsigned)from->regions, from->regions == 1 ? "" : "s");
    b->beyond = b->safe.beyond = from->beyond;
    TGI_TRY(tgi_file_open(b->partial, &b->fd, err));
    return tgi_file_truncate(b->fd, b->partial, b->safe.bytes, err);
}

tg_status tgi_bad_tiles_begin(tgi_bad_tiles *b, const tgi_bad_state *from, tgi_err *err)
{
    if (b->fd >= 0) /* of an earlier run with the same job */
        close(b->fd);
    b->fd = -1;
    b->n = b->beyond = 0;
    b->safe = (tgi_bad_state){0};
    b->begun = 1;
    if (from && from->bytes)
        return take_over(b, from, err);
    TGI_TRY(tgi_file_unlink(b->partial, err));
    return tgi_file_unlink(b->list, err); /* of an output that is overwritten */
}

void tgi_bad_tiles_only_count(tgi_bad_tiles *b)
{
    b->n = b->beyond = 0;
    b->safe = (tgi_bad_state){0};
    b->begun = 0;
}

tg_status tgi_bad_tiles_note(void *arg, const tgi_bad_region *r, tgi_err *err)
{
    tgi_bad_tiles *b = arg;
    region k = {r->plane, r->sample, r->y0, r->y1, r->x0, r->x1, ""};
    snprintf(k.reason, sizeof k.reason, "%s", r->reason);
    pthread_mutex_lock(&b->lock);
    const tg_status st = keep(b, &k) && b->begun ? append(b, &k, err) : TG_OK;
    b->safe.beyond = b->beyond > 0;
    pthread_mutex_unlock(&b->lock);
    return st;
}

void tgi_bad_tiles_state(tgi_bad_tiles *b, tgi_bad_state *out)
{
    pthread_mutex_lock(&b->lock);
    *out = b->safe;
    pthread_mutex_unlock(&b->lock);
}

int64_t tgi_bad_tiles_count(const tgi_bad_tiles *b)
{
    return b ? b->n : 0;
}

/* ---- OUT.errors.json --------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
    const region *p = a, *q = b;
    const int64_t x[4] = {p->plane, p->sample, p->y0, p->x0};
    const int64_t y[4] = {q->plane, q->sample, q->y0, q->x0};
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* The frame that a plane of a film is. Its reason begins with what became of it (film_source.c). */
static void put_frame(tgi_jw *w, const region *r, const tgi_source *of)
{
    const tgi_av_info *film = tgi_film_source_info(of);
    char what[sizeof r->reason];
    if (!film)
        return;
    const int64_t time = tgi_film_source_time(of, r->plane);
    snprintf(what, sizeof what, "%.*s", (int)strcspn(r->reason, ",:"), r->reason);
    tgi_jw_int(w, "frame", tgi_film_source_first(of) + r->plane);
    if (time != TGI_AV_NO_TIME && r->plane < film->frames) {
        tgi_jw_int(w, "pts", time);
        tgi_jw_num(w, "seconds",
                   (double)time * (double)film->time_base.num / (double)film->time_base.den);
    }
    tgi_jw_str(w, "what", what);
    tgi_jw_bool(w, "kept", r->reason[strcspn(r->reason, ",:")] == ',');
}

static void put_region(tgi_jw *w, const region *r, const tgi_source *of)
{
    tgi_jw_begin(w, NULL, '{');
    put_frame(w, r, of);
    tgi_jw_int(w, "plane", r->plane);
    if (r->sample >= 0)
        tgi_jw_int(w, "sample", r->sample);
    tgi_jw_int(w, "y0", r->y0);
    tgi_jw_int(w, "y1", r->y1);
    tgi_jw_int(w, "x0", r->x0);
    tgi_jw_int(w, "x1", r->x1);
    tgi_jw_str(w, "reason", r->reason);
    tgi_jw_end(w, '}');
}

static tg_status write_list(const tgi_bad_tiles *b, const char *text, tgi_err *err)
{
    int fd;
    TGI_TRY(tgi_file_unlink(b->list, err)); /* as an earlier stop left it: engine/out/gate.h */
    TGI_TRY(tgi_file_create(b->list, &fd, err));
    tg_status st = tgi_file_pwrite(fd, b->list, text, strlen(text), 0, err);
    if (st == TG_OK)
        st = tgi_file_sync(fd, b->list, err);
    close(fd);
    return st;
}

tg_status tgi_bad_tiles_write(tgi_bad_tiles *b, const char *input, const tgi_source *of,
                              tgi_err *err)
{
    char *text = NULL;
    tgi_jw w = {0};
    if (!b->n)
        return TG_OK;
    qsort(b->at, (size_t)b->n, sizeof b->at[0], by_place);
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "input", input);
    tgi_jw_int(&w, "fill", 0);
    tgi_jw_bool(&w, "more", b->beyond > 0); /* than are listed */
    tgi_jw_begin(&w, "regions", '[');
    for (int64_t i = 0; i < b->n; i++)
        put_region(&w, &b->at[i], of);
    tgi_jw_end(&w, ']');
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, &text, err));
    const tg_status st = write_list(b, text, err);
    tgi_free(text);
    return st;
}

void tgi_bad_tiles_end(tgi_bad_tiles *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
    b->begun = 0;
}

tg_status tgi_bad_tiles_remove(const tgi_bad_tiles *b, tgi_err *err)
{
    return tgi_file_unlink(b->partial, err);
}

void tgi_bad_tiles_clear(tgi_bad_tiles *b)
{
    (void)tgi_bad_tiles_remove(b, NULL);
}

static void forget(const char *output, const char *end)
{
    char *path = joined(output, end);
    if (path)
        unlink(path);
    tgi_free(path);
}

tg_status tgi_bad_tiles_begin_output(tgi_bad_tiles *b, const char *output, tgi_err *err)
{
    if (b)
        return tgi_bad_tiles_begin(b, NULL, err);
    forget(output, ".errors.partial");
    forget(output, ".errors.json");
    return TG_OK;
}

int tgi_bad_tiles_left(const char *output)
{
    struct stat st;
    char *path = joined(output, ".errors.partial");
    const int yes = path && !stat(path, &st) && st.st_size > 0;
    tgi_free(path);
    return yes;
}

int tgi_bad_tiles_settled(const tgi_bad_tiles *b)
{
    struct stat st;
    return lstat(b->partial, &st) != 0 && lstat(b->list, &st) == 0;
}

static tg_status frames_verdict(int64_t n, const char *input, const char *output, tgi_err *err)
{
    const char *are = n == 1 ? "is" : "are";
    if (strcmp(output, TGI_FILM_STDOUT) == 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: %" PRId64
                        " of its frames %s damaged: what went to standard output "
                        "is whole but for that",
                        input, n, are);
    return tgi_fail(err, TG_E_FORMAT,
                    "%s: %" PRId64 " of its frames %s damaged: %s is there but for that, "
                    "%s.errors.json lists them",
                    input, n, are, output, output);
}

tg_status tgi_bad_tiles_verdict(int64_t n, const char *input, const tgi_source *of,
                                const char *output, tgi_err *err)
{
    if (n == 0)
        return TG_OK;
    if (output && tgi_film_source_info(of))
        return frames_verdict(n, input, output, err);
    if (!output) /* into memory: there is no list either */
        return tgi_fail(err, TG_E_FORMAT,
                        "%s: %" PRId64 " region%s of it cannot be decoded and count as 0",
                        input, n, n == 1 ? "" : "s");
    return tgi_fail(err, TG_E_FORMAT,
                    "%s: %" PRId64
                    " region%s of it cannot be decoded and counted as 0: %s is there but for "
                    "that, %s.errors.json lists it",
                    input, n, n == 1 ? "" : "s", output, output);
}
