/* cuts.c - see cuts.h. */
#include "engine/inpaint/cuts.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "io/film_out.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COLUMN "Start Frame"

void tgi_cuts_free(tgi_cuts *c)
{
    tgi_free(c->first);
    *c = (tgi_cuts){0};
}

static tg_status add(tgi_cuts *c, int64_t k, tgi_err *err)
{
    if ((c->n & (c->n - 1)) == 0) { /* room for twice as many */
        int64_t *more = tgi_malloc(TGI_TAG_MISC, (size_t)tgi_max(8, 2 * c->n) * sizeof *more);
        if (!more)
            return tgi_fail(err, TG_E_NOMEM, "no memory for %lld scenes", (long long)c->n);
        if (c->n)
            memcpy(more, c->first, (size_t)c->n * sizeof *more);
        tgi_free(c->first);
        c->first = more;
    }
    c->first[c->n++] = k;
    return TG_OK;
}

/* ---- A list ------------------------------------------------------------------------------- */

typedef struct list {
    const char *path;
    const tgi_source *film;
    int64_t line, frames; /* of the file; of the film */
    int column;           /* of a table: which one; -1: it is none */
} list;

static tg_status bad_line(const list *l, const char *line, const char *why, tgi_err *err)
{
    return tgi_fail(err, TG_E_FORMAT,
                    "%s, line %lld (\"%.40s\"): %s: a line has the number of a scene's first "
                    "frame, from 0 on, or a time, as 1:30.5; or it is a table with a column "
                    "\"" COLUMN "\"",
                    l->path, (long long)l->line, line, why);
}

/* Field i of a line. 0: there are fewer. */
static int field_of(const char *line, int i, char *to, size_t cap)
{
    for (; i > 0; i--) {
        line = strchr(line, ',');
        if (!line++)
            return 0;
    }
    snprintf(to, cap, "%.*s", (int)strcspn(line, ","), line);
    return 1;
}

static int column_of(const char *line)
{
    char field[64];
    for (int i = 0; field_of(line, i, field, sizeof field); i++)
        if (strcmp(field, COLUMN) == 0)
            return i;
    return -1;
}

/* "90.5", "1:30", "00:01:30.040" */
static int read_time(const char *text, double *seconds)
{
    int parts = 1;
    double all = 0, part = 0;
    text += strspn(text, " \t");
    text += *text == '+';
    const char *end = text + tgi_number_begin(text, &all);
    for (; end != text && *end == ':' && parts < 3; parts++) {
        text = end + 1;
        end = text + tgi_number_begin(text, &part);
        all = 60 * all + part;
    }
    *seconds = all;
    return end != text && !*end && all >= 0 && all < 1e9;
}

/* Seconds from the film's first frame to frame k of its file; below 0: it has no times. */
static double time_of(const list *l, int64_t k)
{
    const tgi_av_info *i = tgi_film_source_info(l->film);
    const int64_t first = tgi_film_source_first(l->film);
    const int64_t from = tgi_film_source_time(l->film, -first),
                  at = tgi_film_source_time(l->film, k - first);
    if (!i || from == TGI_AV_NO_TIME || at == TGI_AV_NO_TIME)
        return -1;
    return (double)(at - from) * (double)i->time_base.num / (double)i->time_base.den;
}

/* The frame that is shown nearest to that time. */
static tg_status frame_at(const list *l, const char *line, double seconds, int64_t *k,
                          tgi_err *err)
{
    int64_t lo = 0, hi = l->frames - 1;
    if (time_of(l, 0) < 0)
        return bad_line(l, line, "frames without times are numbered", err);
    while (lo < hi) {
        const int64_t middle = (lo + hi) / 2;
        if (time_of(l, middle) < seconds)
            lo = middle + 1;
        else
            hi = middle;
    }
    *k = lo > 0 && seconds - time_of(l, lo - 1) < time_of(l, lo) - seconds ? lo - 1 : lo;
    return TG_OK;
}

static tg_status read_number(const list *l, const char *line, const char *text, int64_t *k,
                             tgi_err *err)
{
    char *end;
    errno = 0;
    *k = strtoll(text, &end, 10);
    return end != text && !*end && !errno && *k >= 0
               ? TG_OK
               : bad_line(l, line, "no number of a frame", err);
}

static tg_status read_line(list *l, const char *line, tgi_cuts *out, tgi_err *err)
{
    char field[64];
    double seconds;
    int64_t k = 0;
    if (!*line || *line == '#' || strncmp(line, "Timecode List", 13) == 0)
        return TG_OK;
    if (l->column < 0 && (l->column = column_of(line)) >= 0)
        return TG_OK;
    if (l->column >= 0) {
        if (!field_of(line, l->column, field, sizeof field))
            return bad_line(l, line, "a row without that column", err);
        TGI_TRY(read_number(l, line, field, &k, err));
        if (k-- < 1)
            return bad_line(l, line, "in a table frames are numbered from 1 on", err);
    } else if (strpbrk(line, ":.")) {
        if (!read_time(line, &seconds))
            return bad_line(l, line, "no time", err);
        TGI_TRY(frame_at(l, line, seconds, &k, err));
    } else
        TGI_TRY(read_number(l, line, line, &k, err));
    if (k == 0 && out->n == 0)
        return TG_OK;
    if (out->n && k <= out->first[out->n - 1])
        return bad_line(l, line, "scenes stand in their order, each once", err);
    if (k == 0 || k >= l->frames)
        return bad_line(l, line, "the film has no scene that begins there", err);
    return add(out, k, err);
}

static tg_status read_lines(list *l, FILE *f, tgi_cuts *out, tgi_err *err)
{
    char line[4096];
    while (fgets(line, sizeof line, f)) {
        if (l->line == 0 && strncmp(line, "\xef\xbb\xbf", 3) == 0) /* a mark of UTF-8 */
            memmove(line, line + 3, strlen(line + 3) + 1);
        const int whole = strchr(line, '\n') || feof(f);
        l->line++;
        line[strcspn(line, "\r\n")] = 0;
        /* Only a list of timecodes, which does not count, may be longer. */
        for (int c = whole ? '\n' : 0; c != '\n' && c != EOF;)
            c = fgetc(f);
        TGI_TRY(read_line(l, line, out, err));
    }
    return ferror(f) ? tgi_fail(err, TG_E_IO, "%s: %s", l->path, strerror(errno)) : TG_OK;
}

static int64_t frames_of(const tgi_source *s)
{
    int64_t lo = 0, hi = s->ops->info(s)->n_planes;
    tgi_film_source_around(s, &lo, &hi);
    return hi + tgi_film_source_first(s);
}

tg_status tgi_cuts_read(const char *path, const tgi_source *s, tgi_cuts *out, tgi_err *err)
{
    list l = {.path = path, .film = s, .frames = frames_of(s), .column = -1};
    struct stat is;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
    *out = (tgi_cuts){0};
    if (!f) {
        const int e = errno;
        if (fd >= 0)
            close(fd);
        return tgi_fail(err, e == ENOENT ? TG_E_NOT_FOUND : TG_E_IO, "%s: %s", path,
                        strerror(e));
    }
    /* What is no file may have no end. */
    const tg_status st =
        fstat(fd, &is) == 0 && S_ISREG(is.st_mode)
            ? read_lines(&l, f, out, err)
            : tgi_fail(err, TG_E_FORMAT, "%s: a list of scenes is a file", path);
    fclose(f);
    if (st != TG_OK)
        tgi_cuts_free(out);
    return st;
}

char *tgi_cuts_text(const tgi_cuts *c, int64_t frames)
{
    const size_t cap = (size_t)(c->n + 2) * 96;
    char *text = tgi_malloc(TGI_TAG_MISC, cap);
    if (!text)
        return NULL;
    size_t n =
        (size_t)snprintf(text, cap, "Scene Number," COLUMN ",End Frame,Length (frames)\n");
    for (int64_t i = 0; i <= c->n; i++) {
        const int64_t from = i ? c->first[i - 1] : 0, until = i < c->n ? c->first[i] : frames;
        n += (size_t)snprintf(text + n, cap - n, "%lld,%lld,%lld,%lld\n", (long long)i + 1,
                              (long long)from + 1, (long long)until, (long long)(until - from));
    }
    return text;
}

/* ---- A film ------------------------------------------------------------------------------- */

#define THUMB_WIDE 32
#define THUMB_HIGH 18
#define CHANGE 8.0F /* levels of 255 */
#define RATIO 3.0F
#define FLASH 0.5F /* of the change: so alike are the frames around it */
#define GOES_ON                                                                                \
    1.15F /* of the change: so much more the frames around it differ in a fast motion, */
#define OTHERS 0.1F /* where so large a part of the levels or less becomes others */
#define LEVELS 16
#define COLOURS 3
#define THUMB (THUMB_WIDE * THUMB_HIGH * COLOURS)

typedef struct search {
    tgi_source *s;
    const tgi_image_info *info;
    void *frame;
    float thumb[3][THUMB]; /* of frame k: k % 3 */
    float *change, *over,
        *others; /* of frame k: from k - 1 to k, from k - 1 to k + 1; levels that become others; tgi_free */
} search;

static float level_at(const search *f, int64_t i)
{
    return f->info->dtype == TG_DTYPE_U16 ? (float)((const uint16_t *)f->frame)[i] / 257.0F
                                          : (float)((const uint8_t *)f->frame)[i];
}

/* Means over the pixels of each part; of large frames of every few of them. */
static void shrink(const search *f, float *to)
{
    const int64_t h = f->info->height, w = f->info->width;
    const int n = f->info->samples, colours = n < COLOURS ? 1 : COLOURS;
    const int64_t dy = tgi_max(1, h / (8 * THUMB_HIGH)), dx = tgi_max(1, w / (8 * THUMB_WIDE));
    float sum[THUMB] = {0}, count[THUMB] = {0};
    for (int64_t y = 0; y < h; y += dy)
        for (int64_t x = 0; x < w; x += dx) {
            const int64_t part =
                (y * THUMB_HIGH / h * THUMB_WIDE + x * THUMB_WIDE / w) * COLOURS;
            for (int c = 0; c < colours; c++) {
                sum[part + c] += level_at(f, (y * w + x) * n + c);
                count[part + c]++;
            }
        }
    for (int i = 0; i < THUMB; i++)
        to[i] = count[i] > 0 ? sum[i] / count[i] : to[i - i % COLOURS];
}

static float distance(const float *a, const float *b)
{
    float all = 0;
    for (int i = 0; i < THUMB; i++)
        all += fabsf(a[i] - b[i]);
    return all / THUMB;
}

/* The part of the means whose level, of LEVELS, is another one then. */
static float others_of(const float *a, const float *b)
{
    int count[LEVELS] = {0}, all = 0;
    for (int i = 0; i < THUMB; i++) {
        count[(int)(a[i] * LEVELS / 256)]++;
        count[(int)(b[i] * LEVELS / 256)]--;
    }
    for (int i = 0; i < LEVELS; i++)
        all += abs(count[i]);
    return (float)all / (2.0F * THUMB);
}

static tg_status look(search *f, int64_t lo, int64_t n, tg_status (*stop)(tgi_err *err),
                      tgi_err *err)
{
    const tgi_image_info *i = f->info;
    const size_t row = (size_t)i->width * (size_t)i->samples * tgi_dtype_size(i->dtype);
    for (int64_t k = 0; k < n; k++) {
        if (stop)
            TGI_TRY(stop(err));
        TGI_TRY(tgi_source_read(f->s, 0, lo + k, 0, i->samples, 0, i->height, 0, i->width,
                                f->frame, row, TGI_INTERLEAVED, err));
        shrink(f, f->thumb[k % 3]);
        f->change[k] = k ? distance(f->thumb[k % 3], f->thumb[(k - 1) % 3]) : 0;
        f->others[k] = k ? others_of(f->thumb[k % 3], f->thumb[(k - 1) % 3]) : 0;
        f->over[k] = INFINITY;
        if (k > 1)
            f->over[k - 1] = distance(f->thumb[k % 3], f->thumb[(k - 2) % 3]);
    }
    return TG_OK;
}

static int is_cut(const search *f, int64_t k, int64_t n)
{
    float around = 0;
    int count = 0;
    for (int64_t i = tgi_max(1, k - 2); i <= tgi_min(n - 1, k + 2); i++)
        if (i != k) {
            around += f->change[i];
            count++;
        }
    const float change = f->change[k];
    if (f->others[k] < OTHERS && f->over[k] > GOES_ON * change)
        return 0;
    return change >= CHANGE && change * (float)count >= RATIO * around &&
           f->over[k] > FLASH * change && f->over[k - 1] > FLASH * change;
}

static tg_status find(search *f, tg_status (*stop)(tgi_err *err), tgi_cuts *out, tgi_err *err)
{
    int64_t lo = 0, hi = f->info->n_planes;
    tgi_film_source_around(f->s, &lo, &hi);
    const int64_t n = hi - lo;
    f->frame = tgi_malloc(
        TGI_TAG_MISC, tgi_sat_mul((size_t)(f->info->height * f->info->width),
                                  (size_t)f->info->samples * tgi_dtype_size(f->info->dtype)));
    f->change = tgi_calloc(TGI_TAG_MISC, (size_t)n, sizeof *f->change);
    f->over = tgi_calloc(TGI_TAG_MISC, (size_t)n, sizeof *f->over);
    f->others = tgi_calloc(TGI_TAG_MISC, (size_t)n, sizeof *f->others);
    if (!f->frame || !f->change || !f->over || !f->others)
        return tgi_fail(err, TG_E_NOMEM, "no memory to look for scenes");
    TGI_TRY(look(f, lo, n, stop, err));
    for (int64_t k = 1; k < n; k++)
        if (is_cut(f, k, n))
            TGI_TRY(add(out, k, err));
    return TG_OK;
}

tg_status tgi_cuts_find(tgi_source *s, tg_status (*stop)(tgi_err *err), tgi_cuts *out,
                        tgi_err *err)
{
    search *f = tgi_calloc(TGI_TAG_MISC, 1, sizeof *f);
    *out = (tgi_cuts){0};
    if (!f)
        return tgi_fail(err, TG_E_NOMEM, "no memory to look for scenes");
    f->s = s;
    f->info = s->ops->info(s);
    const tg_status st = find(f, stop, out, err);
    if (st != TG_OK)
        tgi_cuts_free(out);
    tgi_free(f->frame);
    tgi_free(f->change);
    tgi_free(f->over);
    tgi_free(f->others);
    tgi_free(f);
    return st;
}
