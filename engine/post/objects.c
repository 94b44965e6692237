/* objects.c - see objects.h. */
#include "engine/post/objects.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "engine/post/post.h"
#include "io/part.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT ((size_t)64 << 10)
#define LINE 4096

/* What is summed of an object; behind it a sum for each channel. */
typedef struct sums {
    uint64_t area, z, y, x;
    int64_t lo[3], hi[3];
} sums;

typedef union total {
    int64_t whole;
    double real;
} total;

typedef struct table {
    const tgi_objects_opts *o;
    tgi_post_shape shape;
    int whole;     /* tgi_post_is_whole */
    size_t stride; /* of an object */
    uint64_t room; /* objects at once */
    bool in_order; /* numbers: see `pass` */
    char *memory;
    double **rows; /* of each channel */
    double *row_memory;
    tgi_part part;
    uint64_t at; /* bytes in the file */
    char *text;  /* what is not there yet */
    size_t n;
} table;

/* ---- The file ---------------------------------------------------------------------------- */

static tg_status flush(table *t, tgi_err *err)
{
    TGI_TRY(tgi_part_write(&t->part, t->at, t->text, t->n, err));
    t->at += t->n;
    t->n = 0;
    return TG_OK;
}

/* For LINE bytes and a put behind them: no more is put between two calls. */
static tg_status make_room(table *t, tgi_err *err)
{
    return t->n + 2 * LINE > TEXT ? flush(t, err) : TG_OK;
}

static void put(table *t, const char *fmt, ...) TGI_PRINTF(2, 3);
static void put(table *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(t->text + t->n, LINE, fmt, ap);
    va_end(ap);
    t->n += n > 0 ? (size_t)tgi_min(n, LINE - 1) : 0;
}

static void put_number(table *t, double v)
{
    char text[TGI_NUMBER_TEXT];
    if (isnan(v)) { /* as pandas and others write and read it */
        put(t, ",");
        return;
    }
    tgi_number_text(v, text);
    put(t, ",%s", text);
}

/* ---- Columns of channels ----------------------------------------------------------------- */

#define COLUMN 80

/* A channel's name as a part of a column's: letters and digits, '_' for all else; its number where it has none. */
static void name_column(const table *t, int c, char text[COLUMN])
{
    const tgi_objects_opts *o = t->o;
    const char *name = c < o->channels && o->channel ? o->channel[c] : NULL;
    size_t n = 0;
    snprintf(text, COLUMN, "%d", c);
    for (; name && name[n] && n < 63; n++) {
        text[n] = (char)(isalnum((unsigned char)name[n]) ? name[n] : '_');
        text[n + 1] = 0;
    }
}

typedef struct column {
    char text[COLUMN];
    int c, twice;
} column;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const column *)a)->text, ((const column *)b)->text);
}

static int by_number(const void *a, const void *b)
{
    return ((const column *)a)->c - ((const column *)b)->c;
}

/* Names of all channels, and which are there twice; *any: one is. */
static void name_columns(const table *t, column *all, int *any)
{
    const size_t n = (size_t)t->shape.channels;
    for (size_t c = 0; c < n; c++) {
        all[c] = (column){.c = (int)c};
        name_column(t, (int)c, all[c].text);
    }
    qsort(all, n, sizeof *all, by_text);
    for (size_t c = 1; c < n; c++)
        if (strcmp(all[c - 1].text, all[c].text) == 0)
            *any = all[c - 1].twice = all[c].twice = 1;
    qsort(all, n, sizeof *all, by_number);
}

static int ends_in_number(const char *text)
{
    const char *last = strrchr(text, '_');
    return last && last[1] && !last[1 + strspn(last + 1, "0123456789")];
}

/* Names that are there twice have the channel's number behind them; and then those, too, that look as if they had one: no two
 * columns are the same. */
static tg_status put_columns(table *t, tgi_err *err)
{
    const size_t n = (size_t)t->shape.channels;
    int any = 0;
    column *all = tgi_calloc(TGI_TAG_IO, n ? n : 1, sizeof *all);
    tg_status st = all ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for names of columns");
    if (all)
        name_columns(t, all, &any);
    for (size_t c = 0; st == TG_OK && c < n; c++) {
        put(t, ",mean_%s", all[c].text);
        if (any && (all[c].twice || ends_in_number(all[c].text)))
            put(t, "_%d", all[c].c);
        st = make_room(t, err);
    }
    tgi_free(all);
    return st;
}

static int is_own(const table *t, char axis)
{
    return strchr("YXS", axis) || (axis == 'Z' && t->shape.volume);
}

static int has_unit(const table *t)
{
    const double *p = t->o->physical;
    return t->o->unit[0] && p[1] > 0 && p[2] > 0 && (!t->shape.volume || p[0] > 0);
}

static const char *unit_text(const table *t)
{
    const char *u = t->o->unit;
    return strcmp(u, "\xc2\xb5m") == 0 || strcmp(u, "\xce\xbcm") == 0 ? "um" : u;
}

static tg_status put_head(table *t, tgi_err *err)
{
    const tgi_post_shape *s = &t->shape;
    const int first = s->volume ? 0 : 1;
    const char *const axis = "zyx";
    put(t, "label");
    for (int a = 0; a < s->n_axes; a++)
        if (!is_own(t, s->axes[a]))
            put(t, ",%c", tolower((unsigned char)s->axes[a]));
    if (s->samples > 1)
        put(t, ",sample");
    put(t, ",area");
    for (int k = first; k < 3; k++)
        put(t, ",centroid_%c", axis[k]);
    for (int k = first; k < 3; k++)
        put(t, ",bbox_%c0", axis[k]);
    for (int k = first; k < 3; k++)
        put(t, ",bbox_%c1", axis[k]);
    if (has_unit(t)) {
        put(t, s->volume ? ",volume_%s3" : ",area_%s2", unit_text(t));
        for (int k = first; k < 3; k++)
            put(t, ",centroid_%c_%s", axis[k], unit_text(t));
    }
    TGI_TRY(put_columns(t, err));
    put(t, "\n");
    return flush(t, err);
}

/* ---- Sums -------------------------------------------------------------------------------- */

static sums *sums_of(const table *t, uint64_t number)
{
    return (sums *)(void *)(t->memory + number % t->room * t->stride);
}

static total *totals_of(const table *t, uint64_t number)
{
    return (total *)(void *)(t->memory + number % t->room * t->stride + sizeof(sums));
}

/* Columns [x0,x1) of a row belong to an object. */
static void add_run(table *t, uint64_t number, int64_t z, int64_t y, int64_t x0, int64_t x1)
{
    sums *s = sums_of(t, number);
    total *sum = totals_of(t, number);
    const int64_t lo[3] = {z, y, x0}, hi[3] = {z + 1, y + 1, x1};
    const uint64_t n = (uint64_t)(x1 - x0);
    for (int k = 0; k < 3; k++) {
        s->lo[k] = s->area && s->lo[k] < lo[k] ? s->lo[k] : lo[k];
        s->hi[k] = s->hi[k] > hi[k] ? s->hi[k] : hi[k];
    }
    s->area += n;
    s->z += (uint64_t)z * n;
    s->y += (uint64_t)y * n;
    s->x += (uint64_t)(x0 + x1 - 1) * n / 2;
    for (int c = 0; c < t->shape.channels; c++)
        for (int64_t x = x0; x < x1; x++)
            if (t->whole)
                sum[c].whole += (int64_t)t->rows[c][x];
            else
                sum[c].real += t->rows[c][x];
}

/* ---- Lines ------------------------------------------------------------------------------- */

/* Where the image lies among the others. */
static void put_place(table *t, const tgi_post_place *at)
{
    const tgi_post_shape *s = &t->shape;
    int64_t index[TGI_IMAGE_MAX_AXES];
    int64_t plane = tgi_post_plane(t->o->post, at);
    for (int a = s->n_axes - 1; a >= 0; a--) {
        if (strchr("YXS", s->axes[a]))
            continue;
        index[a] = plane % s->shape[a];
        plane /= s->shape[a];
    }
    for (int a = 0; a < s->n_axes; a++)
        if (!is_own(t, s->axes[a]))
            put(t, ",%lld", (long long)index[a]);
    if (s->samples > 1)
        put(t, ",%lld", (long long)(at->part % s->samples));
}

static tg_status put_object(table *t, const tgi_post_place *at, uint64_t number, tgi_err *err)
{
    const sums *s = sums_of(t, number);
    const total *sum = totals_of(t, number);
    const double n = (double)s->area, *p = t->o->physical;
    const double centre[3] = {(double)s->z / n, (double)s->y / n, (double)s->x / n};
    const int first = t->shape.volume ? 0 : 1;
    TGI_TRY(make_room(t, err));
    put(t, "%llu", (unsigned long long)number);
    put_place(t, at);
    put(t, ",%llu", (unsigned long long)s->area);
    for (int k = first; k < 3; k++)
        put_number(t, centre[k]);
    for (int k = first; k < 3; k++)
        put(t, ",%lld", (long long)s->lo[k]);
    for (int k = first; k < 3; k++)
        put(t, ",%lld", (long long)s->hi[k]);
    if (has_unit(t)) {
        put_number(t, n * p[1] * p[2] * (t->shape.volume ? p[0] : 1));
        for (int k = first; k < 3; k++)
            put_number(t, centre[k] * p[k]);
    }
    for (int c = 0; c < t->shape.channels; c++) {
        TGI_TRY(make_room(t, err)); /* there may be thousands */
        put_number(t, (t->whole ? (double)sum[c].whole : sum[c].real) / n);
    }
    put(t, "\n");
    return TG_OK;
}

/* ---- One image --------------------------------------------------------------------------- */

/* Pixels that touch have the numbers 1, 2, 3, ... in the order in which their first ones come, and leave no row out, of a
 * volume no plane. So sums of an object that the row before does not have are complete; they make room for a new one.
 * Where there is none, because an object that is not complete stands in the way, `until` is the number that it was lacking
 * for, and the next pass begins at its first row. Objects of a network may lie in several pieces: then
 * each pass reads all rows. */
typedef struct pass {
    uint64_t first, until; /* numbers: not in the file yet, and no longer in this pass */
    uint64_t most;         /* that was met */
    tgi_post_place from, next;
} pass;

static bool is_complete(const table *t, uint64_t number, const tgi_post_place *at)
{
    const sums *s = sums_of(t, number);
    return t->in_order && s->area && (t->shape.volume ? s->hi[0] < at->z : s->hi[1] < at->y);
}

static tg_status put_first(table *t, const tgi_post_place *at, pass *p, tgi_err *err)
{
    const tgi_post_place image = {at->group, at->part, 0, 0};
    TGI_TRY(put_object(t, &image, p->first, err));
    memset(sums_of(t, p->first), 0, t->stride);
    p->first++;
    return TG_OK;
}

/* Is there room for the sums of this one? */
static tg_status find_room(table *t, const tgi_post_place *at, uint64_t number, pass *p,
                           bool *has, tgi_err *err)
{
    while (number - p->first >= t->room && is_complete(t, p->first, at))
        TGI_TRY(put_first(t, at, p, err));
    *has = number - p->first < t->room;
    if (!*has && t->in_order) {
        p->until = number;
        p->next = *at;
    }
    return TG_OK;
}

static tg_status add_row(table *t, const tgi_post_place *at, pass *p, tgi_err *err)
{
    const uint32_t *number = NULL;
    const int64_t w = t->shape.width;
    int loaded = 0;
    TGI_TRY(tgi_post_numbers(t->o->post, at, &number, err));
    for (int64_t x = 0, end; x < w; x = end) {
        const uint32_t v = number[x];
        bool has = false;
        for (end = x + 1; end < w && number[end] == v;)
            end++;
        p->most = v > p->most ? v : p->most;
        if (v >= p->first && v < p->until)
            TGI_TRY(find_room(t, at, v, p, &has, err));
        if (!has)
            continue;
        for (int c = 0; c < t->shape.channels && !loaded; c++)
            TGI_TRY(tgi_post_intensity(t->o->post, at, c, t->rows[c], err));
        loaded = 1;
        add_run(t, v, at->z, at->y, x, end);
    }
    return TG_OK;
}

/* All rows from p->from on, or until the sums of this pass are complete. */
static tg_status pass_rows(table *t, pass *p, tgi_err *err)
{
    const tgi_post_shape *s = &t->shape;
    tgi_post_place at = p->from;
    for (; at.z < s->depth; at.z++, at.y = 0)
        for (; at.y < s->height; at.y++) {
            TGI_TRY(add_row(t, &at, p, err));
            TGI_TRY(tgi_post_tick(t->o->post, "objects", (double)at.z / (double)s->depth, err));
            while (p->until <= p->most && p->first < p->until && is_complete(t, p->first, &at))
                TGI_TRY(put_first(t, &at, p, err));
            if (p->first == p->until)
                return TG_OK;
        }
    return TG_OK;
}

static tg_status put_image(table *t, tgi_post_place at, tgi_err *err)
{
    pass p = {.first = 1, .from = at, .next = at};
    do {
        p.until = t->in_order ? UINT64_MAX : p.first + t->room;
        TGI_TRY(pass_rows(t, &p, err));
        while (p.first < p.until && p.first <= p.most)
            TGI_TRY(put_first(t, &at, &p, err));
        p.from = p.next;
    } while (p.first <= p.most);
    return TG_OK;
}

static tg_status put_all(table *t, tgi_err *err)
{
    TGI_TRY(put_head(t, err));
    for (int64_t g = 0; g < t->shape.groups; g++)
        for (int64_t part = 0; part < t->shape.parts; part++)
            TGI_TRY(put_image(t, (tgi_post_place){g, part, 0, 0}, err));
    return t->n ? flush(t, err) : TG_OK;
}

/* ---- Open -------------------------------------------------------------------------------- */

size_t tgi_objects_rest(const tgi_source *post)
{
    const tgi_post_shape s = tgi_post_shape_of(post);
    return TEXT + 4096 +
           (size_t)s.channels *
               ((size_t)s.width * sizeof(double) + sizeof(double *) + sizeof(column));
}

static tg_status allocate(table *t, tgi_err *err)
{
    const size_t n = (size_t)t->shape.channels, w = (size_t)t->shape.width;
    t->stride = sizeof(sums) + n * sizeof(total);
    t->room = t->o->bytes / t->stride ? t->o->bytes / t->stride : 1;
    t->memory = tgi_calloc(TGI_TAG_IO, t->room, t->stride);
    t->text = tgi_malloc(TGI_TAG_IO, TEXT);
    t->rows = tgi_calloc(TGI_TAG_IO, n, sizeof *t->rows);
    t->row_memory = tgi_calloc(TGI_TAG_IO, n * w, sizeof(double));
    if (!t->memory || !t->text || !t->rows || !t->row_memory)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a table of objects");
    for (size_t c = 0; c < n; c++)
        t->rows[c] = t->row_memory + c * w;
    return TG_OK;
}

/* Two files of the same bytes; false where one cannot be read. */
static bool same_bytes(const char *path, const char *other)
{
    char a[2048], b[2048];
    FILE *f = fopen(path, "rb"), *g = fopen(other, "rb");
    bool same = f && g;
    for (size_t n = 1; same && n;) {
        n = fread(a, 1, sizeof a, f);
        same =
            fread(b, 1, sizeof b, g) == n && memcmp(a, b, n) == 0 && !ferror(f) && !ferror(g);
    }
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    return same;
}

/* What is there is of the run that was stopped, or not ours. */
static tg_status keep_or_refuse(const tgi_objects_opts *o, const tgi_part *part, tgi_err *err)
{
    return same_bytes(o->path, part->partial)
               ? TG_OK
               : tgi_fail(err, TG_E_EXISTS,
                          "%s: exists already, and is another table; -y replaces it", o->path);
}

tg_status tgi_objects_place(const char *path, tgi_err *err)
{
    struct stat st;
    const char *slash = strrchr(path, '/');
    char *folder = tgi_strdup(TGI_TAG_MISC, slash ? path : ".");
    if (!folder)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the name of a folder");
    if (slash)
        folder[slash == path ? 1 : slash - path] = 0;
    tg_status is = TG_OK;
    if ((slash && !slash[1]) || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
        is =
            tgi_fail(err, TG_E_EXISTS,
                     "%s: the table would take the place of a folder, which is never replaced: "
                     "choose another name",
                     path);
    else if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
        is = tgi_fail(err, TG_E_EXISTS, "%s: cannot be created: there is no folder %s", path,
                      folder);
    else if (access(folder, W_OK | X_OK) != 0)
        is = tgi_fail(err, TG_E_EXISTS, "%s: cannot be created: %s: %s", path, folder,
                      strerror(errno));
    tgi_free(folder);
    return is;
}

tg_status tgi_objects_write(const tgi_objects_opts *o, tgi_err *err)
{
    table t = {.o = o, .shape = tgi_post_shape_of(o->post), .part = TGI_PART_CLOSED};
    const tgi_part_spec spec = {.path = o->path,
                                .ending = ".partial",
                                .bytes = TGI_PART_GROWS,
                                .replace = o->replace || o->goes_on,
                                .head = "label,",
                                .head_bytes = 6};
    t.whole = t.shape.whole;
    t.in_order = !tgi_post_takes_room(o->post);
    tg_status st = allocate(&t, err);
    if (st == TG_OK)
        st = tgi_part_create(&spec, &t.part, err);
    if (st == TG_OK)
        st = put_all(&t, err);
    if (st == TG_OK)
        st = tgi_part_sync(&t.part, err);
    if (st == TG_OK)
        st = o->goes_on && !o->replace && access(o->path, F_OK) == 0
                 ? keep_or_refuse(o, &t.part, err)
                 : tgi_part_name(&t.part, err);
    tgi_part_drop(&t.part);
    tgi_free(t.memory);
    tgi_free(t.text);
    tgi_free(t.rows);
    tgi_free(t.row_memory);
    return st;
}
