/* file_set.c - the files that a folder, a glob or a numbered name stands for, as one stack.
 *
 *   folder/               its TIFF, NPY and other image files
 *   folder/img_*.tif      what the shell would list
 *   folder/img_%05d.tif   numbered files, as ffmpeg and ImageJ write them: all that exist
 *
 * They are put in natural order (numbers by value: img_2 before img_10) on an axis I, or on
 * axes T, C, Z when regular expressions say where in a name these stand: the group of
 * `--c 'ch(\d+)'` or `--c '_(DAPI|GFP)'`, as CellProfiler and tifffile's patterns have them;
 * here they are POSIX extended ones, with \d for [0-9]. Then every combination must be there
 * once. Gaps in numbers along one axis are no error (a file may have been left out on purpose):
 * they are reported in the note. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/io_formats.h"
#include "io/numbered.h"
#include "io/stack.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define KEY_CAP 64
static const char axis_of_key[3] = {'T', 'C', 'Z'}; /* slowest first */
static const int key_of_axis[3] = {2, 1, 0};        /* opts.key is z, c, t */

typedef struct entry {
    char *path;
    char key[3][KEY_CAP]; /* t, c, z: what the expressions found */
    int64_t at[3];        /* its place along each */
} entry;

typedef struct list {
    entry *e;
    int64_t n, cap;
    int64_t skipped; /* files that do not match the expressions */
    tgi_err *err;
} list;

/* ---- Order ------------------------------------------------------------------------------- */

/* Numbers by value, everything else by its bytes. */
static int natural(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            const char *p = a + strspn(a, "0"), *q = b + strspn(b, "0");
            const size_t n = strspn(p, "0123456789"), m = strspn(q, "0123456789");
            const int c = n != m ? (n < m ? -1 : 1) : memcmp(p, q, n);
            if (c)
                return c;
            a = p + n;
            b = q + m;
            continue;
        }
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++;
        b++;
    }
    return *a ? 1 : *b ? -1 : 0;
}

static int by_path(const void *a, const void *b)
{
    const char *p = ((const entry *)a)->path, *q = ((const entry *)b)->path;
    const int c = natural(p, q);
    return c ? c : strcmp(p, q);
}

/* ---- Listing ----------------------------------------------------------------------------- */

static void free_list(list *l)
{
    for (int64_t i = 0; i < l->n; i++)
        tgi_free(l->e[i].path);
    tgi_free(l->e);
    *l = (list){0};
}

static tg_status add(list *l, const char *folder, size_t folder_len, const char *name)
{
    if (l->n == l->cap) {
        const int64_t cap = l->cap ? 2 * l->cap : 64;
        void *e = cap <= TGI_STACK_MAX_FILES
                      ? tgi_realloc_n(TGI_TAG_IO, l->e, (size_t)cap, sizeof *l->e)
                      : NULL;
        if (!e)
            return tgi_fail(l->err, cap > TGI_STACK_MAX_FILES ? TG_E_UNSUPPORTED : TG_E_NOMEM,
                            "no room for more than %lld files", (long long)l->n);
        l->e = e;
        l->cap = cap;
    }
    const size_t n = folder_len + strlen(name) + 1;
    char *path = tgi_malloc(TGI_TAG_IO, n);
    if (!path)
        return tgi_fail(l->err, TG_E_NOMEM, "no memory for the names of %lld files",
                        (long long)l->n);
    snprintf(path, n, "%.*s%s", (int)folder_len, folder, name);
    l->e[l->n++] = (entry){.path = path};
    return TG_OK;
}

static bool is_image_name(const char *name)
{
    static const char *const ends[] = {".tif", ".tiff", ".npy", ".png", ".jpg", ".jpeg"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (name[0] != '.' && n > strlen(ends[i]) &&
            strcasecmp(name + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* Files of a folder that look like images, or like the numbered name. */
static tg_status list_folder(list *l, const char *path, const tgi_numbered *number)
{
    char folder[4096];
    const size_t n = number ? (size_t)(number->base - path) : strlen(path);
    const char *slash = n && path[n - 1] == '/' ? "" : "/";
    if (n + 2 > sizeof folder)
        return tgi_fail(l->err, TG_E_ARG, "the name of the folder is too long");
    snprintf(folder, sizeof folder, "%.*s%s", (int)n, n ? path : ".", n ? slash : "");
    DIR *d = opendir(folder[0] ? folder : ".");
    if (!d)
        return tgi_fail(l->err, TG_E_NOT_FOUND, "%s: %s", folder, strerror(errno));
    const size_t shown = n ? strlen(folder) : 0; /* "img_%d.tif" gives "img_1.tif" */
    tg_status st = TG_OK;
    for (struct dirent *e; st == TG_OK && (e = readdir(d));)
        if (number ? tgi_numbered_fits(number, e->d_name) : is_image_name(e->d_name))
            st = add(l, folder, shown, e->d_name);
    closedir(d);
    return st;
}

static tg_status list_glob(list *l, const char *path)
{
    glob_t g = {0};
    const int rc = glob(path, GLOB_NOSORT, NULL, &g);
    tg_status st = rc && rc != GLOB_NOMATCH
                       ? tgi_fail(l->err, TG_E_IO, "%s: the folder cannot be listed", path)
                       : TG_OK;
    for (size_t i = 0; !rc && st == TG_OK && i < g.gl_pathc; i++) {
        struct stat sb;
        if (stat(g.gl_pathv[i], &sb) == 0 && S_ISREG(sb.st_mode))
            st = add(l, "", 0, g.gl_pathv[i]);
    }
    globfree(&g);
    return st;
}

int tgi_source_is_set(const char *path)
{
    struct stat sb;
    tgi_numbered n;
    if (stat(path, &sb) == 0)
        return S_ISDIR(sb.st_mode);
    return tgi_numbered_find(path, &n) || strpbrk(path, "*?[") != NULL;
}

/* What is this file, by whatever name, is none of the list. */
static int leave_out(list *l, const char *but)
{
    struct stat out, sb;
    int64_t kept = 0;
    if (!but || stat(but, &out) != 0)
        return 0;
    for (int64_t i = 0; i < l->n; i++)
        if (stat(l->e[i].path, &sb) == 0 && sb.st_dev == out.st_dev && sb.st_ino == out.st_ino)
            tgi_free(l->e[i].path);
        else
            l->e[kept++] = l->e[i];
    const int found = kept < l->n;
    l->n = kept;
    return found;
}

static tg_status list_files(list *l, const char *path, const tgi_open_opts *o)
{
    struct stat sb;
    tgi_numbered n;
    if (stat(path, &sb) == 0)
        TGI_TRY(list_folder(l, path, NULL));
    else if (tgi_numbered_find(path, &n))
        TGI_TRY(list_folder(l, path, &n));
    else
        TGI_TRY(list_glob(l, path));
    if (leave_out(l, o->but) && o->but_found)
        *o->but_found = 1;
    if (!l->n)
        return tgi_fail(l->err, TG_E_NOT_FOUND, "%s: %s", path,
                        stat(path, &sb) == 0
                            ? "a folder without images (.tif, .tiff, .npy, .png, .jpg)"
                            : "no image file matches");
    qsort(l->e, (size_t)l->n, sizeof *l->e, by_path);
    return TG_OK;
}

/* ---- Keys: which z, c, t ----------------------------------------------------------------- */

/* Regular expressions are compiled by copying: each + doubles what it repeats, {n} copies it n
 * times. So what is repeated again and again ("f+++++...") takes memory without end; counted
 * here before anything is compiled. */
#define MOST_PIECES 2000
#define MOST_GROUPS 8

static const char *skip_bracket(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    for (p += *p == ']'; *p && *p != ']';)
        p++;
    return *p ? p : p - 1;
}

/* The repetition at p of a piece of that size: its size afterwards. */
static double repeated(double size, const char *p)
{
    int from = 0, to = 0;
    if (*p != '{')
        return *p == '+' ? 2 * size : size;
    // NOLINTNEXTLINE(cert-err34-c)
    const int n = sscanf(p, "{%9d,%9d", &from, &to);
    return size * (1.0 + (n == 2 && to > from ? to : from));
}

/* 1: a pattern that its compiler can hold. */
static int is_modest(const char *p)
{
    double sum[MOST_GROUPS + 1] = {0}, last = 0; /* of each open group, and of its last piece */
    int depth = 0;
    for (; *p; p++) {
        if (strchr("+*?{", *p)) {
            sum[depth] -= last;
            last = repeated(fmax(1, last), p); /* of nothing: a character like others */
            if (*p == '{' && strchr(p, '}'))
                p = strchr(p, '}');
        } else if (*p == '(') {
            if (depth == MOST_GROUPS)
                return 0;
            sum[++depth] = last = 0;
            continue;
        } else if (*p == ')' && depth > 0) {
            last = sum[depth--];
        } else {
            p = *p == '[' ? skip_bracket(p) : *p == '\\' && p[1] ? p + 1 : p;
            last = 1;
        }
        sum[depth] += last;
        if (sum[depth] > MOST_PIECES)
            return 0;
    }
    return 1;
}

/* \d is what people write; POSIX has [0-9]. */
static tg_status compile(const char *text, char axis, regex_t *r, tgi_err *err)
{
    char posix[512];
    size_t n = 0;
    for (const char *p = text; *p && n + 8 < sizeof posix; p++)
        if (p[0] == '\\' && p[1] == 'd') {
            n += (size_t)snprintf(posix + n, sizeof posix - n, "[0-9]");
            p++;
        } else {
            posix[n++] = *p;
        }
    posix[n] = 0;
    if (!is_modest(posix))
        return tgi_fail(err, TG_E_ARG,
                        "--name-%c '%.80s' repeats too often what is repeated already", axis,
                        text);
    if (strlen(text) > 250 || regcomp(r, posix, REG_EXTENDED) != 0)
        return tgi_fail(err, TG_E_ARG, "--name-%c '%.80s' is no regular expression", axis,
                        text);
    if (r->re_nsub != 1) {
        regfree(r);
        return tgi_fail(
            err, TG_E_ARG,
            "--name-%c '%.80s' must have one group, the number or name: 'ch([0-9]+)'", axis,
            text);
    }
    return TG_OK;
}

static const char *name_of(const entry *e)
{
    const char *slash = strrchr(e->path, '/');
    return slash ? slash + 1 : e->path;
}

/* The key of every file along one axis; files without one are left out. */
static tg_status take_keys(list *l, int axis, const char *text)
{
    regex_t r;
    int64_t kept = 0;
    tg_status st = compile(text, (char)tolower(axis_of_key[axis]), &r, l->err);
    if (st != TG_OK)
        return st;
    for (int64_t i = 0; i < l->n; i++) {
        regmatch_t m[2];
        entry *e = &l->e[i];
        const char *name = name_of(e);
        if (regexec(&r, name, 2, m, 0) != 0 || m[1].rm_so < 0 ||
            m[1].rm_eo - m[1].rm_so >= KEY_CAP) {
            tgi_free(e->path);
            continue;
        }
        snprintf(e->key[axis], KEY_CAP, "%.*s", (int)(m[1].rm_eo - m[1].rm_so),
                 name + m[1].rm_so);
        l->e[kept++] = *e;
    }
    regfree(&r);
    l->skipped += l->n - kept;
    l->n = kept;
    return kept ? TG_OK
                : tgi_fail(l->err, TG_E_NOT_FOUND, "no file name matches --name-%c '%.80s'",
                           tolower(axis_of_key[axis]), text);
}

typedef struct ranked {
    const char *key;
    int64_t file;
} ranked;

static int by_key(const void *a, const void *b)
{
    return natural(((const ranked *)a)->key, ((const ranked *)b)->key);
}

/* Number the distinct keys of one axis in natural order. first[k]: a file that has the k-th. */
static tg_status rank_keys(list *l, int axis, int64_t *n, int64_t *first)
{
    ranked *r = tgi_malloc(TGI_TAG_IO, (size_t)l->n * sizeof *r);
    if (!r)
        return tgi_fail(l->err, TG_E_NOMEM, "no memory for %lld files", (long long)l->n);
    for (int64_t i = 0; i < l->n; i++)
        r[i] = (ranked){l->e[i].key[axis], i};
    qsort(r, (size_t)l->n, sizeof *r, by_key);
    *n = 0;
    for (int64_t i = 0; i < l->n; i++) {
        if (i == 0 || natural(r[i].key, r[i - 1].key) != 0)
            first[(*n)++] = r[i].file;
        l->e[r[i].file].at[axis] = *n - 1;
    }
    tgi_free(r);
    return TG_OK;
}

/* ---- Notes ------------------------------------------------------------------------------- */

/* The numbers in which two neighbours differ, when nothing else does. */
static bool neighbours(const char *a, const char *b, long long *x, long long *y)
{
    size_t i = 0;
    while (a[i] && a[i] == b[i])
        i++;
    while (i > 0 && isdigit((unsigned char)a[i - 1]))
        i--;
    char *p, *q;
    if (!isdigit((unsigned char)a[i]) || !isdigit((unsigned char)b[i]))
        return false;
    errno = 0;
    *x = strtoll(a + i, &p, 10);
    *y = strtoll(b + i, &q, 10);
    return !errno && strcmp(p, q) == 0;
}

/* Where numbers are missing: steps larger than the smallest one. `text` answers the i-th. */
static void note_gaps(const list *l, int axis, const int64_t *order, int64_t n, char *note,
                      size_t cap)
{
    long long step = 0, gaps = 0, from = 0, to = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 1; i < n; i++) {
            const entry *e = &l->e[order ? order[i - 1] : i - 1];
            const entry *f = &l->e[order ? order[i] : i];
            long long x, y;
            if (!(axis < 0 ? neighbours(name_of(e), name_of(f), &x, &y)
                           : neighbours(e->key[axis], f->key[axis], &x, &y)) ||
                y <= x)
                continue;
            if (pass == 0 && (!step || y - x < step))
                step = y - x;
            if (pass == 1 && y - x > step && gaps++ == 0) {
                from = x;
                to = y;
            }
        }
    if (!gaps)
        return;
    const size_t at = strlen(note);
    snprintf(note + at, cap - at, "%sthe numbers %s%c have %s: after %lld comes %lld",
             at ? "; " : "", axis < 0 ? "of the file" : "of ",
             axis < 0 ? 's' : (char)tolower(axis_of_key[axis]),
             gaps > 1 ? "gaps, the first" : "a gap", from, to);
}

/* ---- The stack --------------------------------------------------------------------------- */

static char free_letter(const char *axes)
{
    for (const char *p = "IQRVPAB"; *p; p++)
        if (!strchr(axes, *p))
            return *p;
    return 0;
}

typedef struct grid {
    char letter[3];
    int64_t size[3];
    int n;
    int key[3]; /* which key numbers it; -1: the order of the list */
} grid;

/* Axes of the files, then those of one file. Singleton axes of a letter in use are dropped. */
static tg_status take_axes(const list *l, const grid *g, const tgi_image_info *one,
                           tgi_image_info *out)
{
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        out->axes[n] = g->letter[i];
        out->shape[n++] = g->size[i];
    }
    for (int i = 0; i < one->n_axes; i++) {
        const char a = one->axes[i];
        bool used = false;
        for (int k = 0; k < g->n; k++)
            used |= g->letter[k] == a;
        if (used && one->shape[i] == 1)
            continue;
        if (used)
            return tgi_fail(l->err, TG_E_ARG,
                            "each file has an axis %c of its own (%lld): the files cannot be "
                            "numbered along it too",
                            a, (long long)one->shape[i]);
        if (n >= TGI_IMAGE_MAX_AXES)
            return tgi_fail(l->err, TG_E_UNSUPPORTED, "more than %d axes", TGI_IMAGE_MAX_AXES);
        out->axes[n] = a;
        out->shape[n++] = one->shape[i];
    }
    out->axes[n] = 0;
    out->n_axes = n;
    return TG_OK;
}

static tg_status number_files(list *l, const tgi_open_opts *o, const tgi_image_info *one,
                              grid *g, tgi_image_info *out)
{
    int64_t *first = tgi_malloc(TGI_TAG_IO, (size_t)l->n * sizeof *first);
    if (!first)
        return tgi_fail(l->err, TG_E_NOMEM, "no memory for %lld files", (long long)l->n);
    tg_status st = TG_OK;
    for (int a = 0; a < 3 && st == TG_OK; a++) {
        if (!o->key[key_of_axis[a]])
            continue;
        g->letter[g->n] = axis_of_key[a];
        g->key[g->n] = a;
        st = rank_keys(l, a, &g->size[g->n], first);
        if (st == TG_OK)
            note_gaps(l, a, first, g->size[g->n], out->note, sizeof out->note);
        if (st == TG_OK && axis_of_key[a] == 'C') { /* the group names the channels */
            const int64_t n = tgi_min(g->size[g->n], 4096);
            out->meta.channel_name =
                tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *out->meta.channel_name);
            out->meta.n_channels = out->meta.channel_name ? (int)n : 0;
            for (int64_t c = 0; c < out->meta.n_channels; c++)
                out->meta.channel_name[c] = tgi_strdup(TGI_TAG_IO, l->e[first[c]].key[a]);
        }
        g->n++;
    }
    tgi_free(first);
    if (st == TG_OK && !g->n) {
        g->letter[0] = free_letter(one->axes);
        g->size[0] = l->n;
        g->key[0] = -1;
        g->n = 1;
        note_gaps(l, -1, NULL, l->n, out->note, sizeof out->note);
    }
    return st;
}

static int64_t cell_of(const grid *g, const list *l, int64_t file)
{
    int64_t at = 0;
    for (int i = 0; i < g->n; i++)
        at = at * g->size[i] + (g->key[i] < 0 ? file : l->e[file].at[g->key[i]]);
    return at;
}

/* Every cell of the grid has one file. */
static tg_status place_files(const list *l, const grid *g, int64_t each, tgi_stack_plane *p)
{
    int64_t cells = 1;
    for (int i = 0; i < g->n; i++)
        cells *= g->size[i];
    for (int64_t f = 0; f < l->n; f++) {
        tgi_stack_plane *q = p + cell_of(g, l, f) * each;
        if (q->plane != UINT32_MAX)
            return tgi_fail(
                l->err, TG_E_ARG,
                "%s and %s have the same place in the stack: --name-z, --name-c and "
                "--name-t do not tell them apart",
                l->e[q->file].path, l->e[f].path);
        for (int64_t k = 0; k < each; k++)
            q[k] = (tgi_stack_plane){(uint32_t)f, (uint32_t)k};
    }
    for (int64_t c = 0; c < cells; c++) {
        char where[160] = "";
        int64_t rest = c;
        if (p[c * each].plane != UINT32_MAX)
            continue;
        for (int i = g->n - 1; i >= 0; i--, rest /= g->size[i + 1]) {
            const size_t n = strlen(where);
            for (int64_t f = 0; f < l->n; f++)
                if (l->e[f].at[g->key[i]] == rest % g->size[i]) {
                    snprintf(where + n, sizeof where - n, " %c=%s", tolower(g->letter[i]),
                             l->e[f].key[g->key[i]]);
                    break;
                }
        }
        return tgi_fail(l->err, TG_E_ARG,
                        "no file for%s: %lld files do not fill the grid of %lld", where,
                        (long long)l->n, (long long)cells);
    }
    return TG_OK;
}

/* A copy of n bytes at *p, which is another image's. */
static tg_status own(void **p, size_t n, tgi_err *err)
{
    void *mine = n ? tgi_malloc(TGI_TAG_IO, n) : NULL;
    if (n && !mine)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %zu bytes of metadata", n);
    if (n)
        memcpy(mine, *p, n);
    *p = mine;
    return TG_OK;
}

/* What the numbers mean, palette and profile. */
static tg_status take_form(tgi_image_meta *out, const tgi_image_meta *m, tgi_err *err)
{
    void *palette = m->palette, *icc = m->icc;
    out->orientation = m->orientation;
    out->stored_as = m->stored_as;
    out->colours = m->colours;
    out->alpha = m->alpha;
    TGI_TRY(own(&palette, 3 * (size_t)m->n_palette * sizeof *m->palette, err));
    out->palette = palette;
    out->n_palette = m->n_palette;
    TGI_TRY(own(&icc, m->icc_bytes, err));
    out->icc = icc;
    out->icc_bytes = m->icc_bytes;
    return TG_OK;
}

/* What one file knows about its pixels holds for the stack. */
static tg_status take_meta(tgi_image_info *out, const tgi_image_info *one, tgi_err *err)
{
    const tgi_image_meta *m = &one->meta;
    memcpy(out->meta.physical, m->physical, sizeof m->physical);
    memcpy(out->meta.unit, m->unit, sizeof m->unit);
    memcpy(out->meta.resolution, m->resolution, sizeof m->resolution);
    out->meta.resolution_unit = m->resolution_unit;
    out->meta.time_increment = m->time_increment;
    TGI_TRY(take_form(&out->meta, m, err));
    if (!strchr(one->axes, 'C') || out->meta.n_channels || !m->n_channels)
        return TG_OK;
    out->meta.channel_name =
        tgi_calloc(TGI_TAG_IO, (size_t)m->n_channels, sizeof *m->channel_name);
    if (!out->meta.channel_name)
        return tgi_fail(err, TG_E_NOMEM, "no memory for names of channels");
    out->meta.n_channels = m->n_channels;
    for (int i = 0; m->channel_name && i < m->n_channels; i++)
        if (m->channel_name[i])
            out->meta.channel_name[i] = tgi_strdup(TGI_TAG_IO, m->channel_name[i]);
    return TG_OK;
}

static tg_status build(list *l, const tgi_open_opts *o, const tgi_image_info *one,
                       tgi_stack_spec *spec)
{
    grid g = {0};
    tgi_image_info *i = &spec->info;
    TGI_TRY(number_files(l, o, one, &g, i));
    if (l->skipped) {
        const size_t n = strlen(i->note);
        snprintf(i->note + n, sizeof i->note - n,
                 "%s%lld files whose names do not match are "
                 "left out",
                 n ? "; " : "", (long long)l->skipped);
    }
    TGI_TRY(take_axes(l, &g, one, i));
    TGI_TRY(take_meta(i, one, l->err));
    i->height = one->height;
    i->width = one->width;
    i->samples = one->samples;
    i->dtype = one->dtype;
    snprintf(i->flavor, sizeof i->flavor, "files");
    int64_t cells = 1;
    for (int k = 0; k < g.n; k++)
        if (!tgi_mul64_ok(cells, g.size[k], &cells))
            return tgi_fail(l->err, TG_E_ARG,
                            "the grid of --name-z, --name-c and --name-t is absurd");
    if (cells > 4 * TGI_STACK_MAX_FILES || !tgi_mul64_ok(cells, one->n_planes, &i->n_planes) ||
        i->n_planes > UINT32_MAX / 16)
        return tgi_fail(l->err, TG_E_UNSUPPORTED, "a stack of %lld files of %lld planes each",
                        (long long)cells, (long long)one->n_planes);
    spec->planes = tgi_malloc(TGI_TAG_IO, (size_t)i->n_planes * sizeof *spec->planes);
    spec->path = tgi_calloc(TGI_TAG_IO, (size_t)l->n, sizeof *spec->path);
    if (!spec->planes || !spec->path)
        return tgi_fail(l->err, TG_E_NOMEM, "no memory for %lld files", (long long)l->n);
    memset(spec->planes, 0xff, (size_t)i->n_planes * sizeof *spec->planes);
    TGI_TRY(place_files(l, &g, one->n_planes, spec->planes));
    for (int64_t f = 0; f < l->n; f++) {
        spec->path[f] = l->e[f].path;
        l->e[f].path = NULL;
    }
    spec->n_files = l->n;
    return TG_OK;
}

tg_status tgi_file_set_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                            tgi_err *err)
{
    list l = {.err = err};
    tgi_source *first = NULL;
    tgi_stack_spec spec = {0};
    tgi_open_opts one = *o;
    one.axes = NULL;
    one.threads = 1;
    one.member = 1;
    tg_status st = list_files(&l, path, o);
    for (int a = 0; st == TG_OK && a < 3; a++)
        if (o->key[key_of_axis[a]])
            st = take_keys(&l, a, o->key[key_of_axis[a]]);
    if (st == TG_OK)
        st = tgi_source_open(l.e[0].path, &one, &first, err);
    if (st == TG_OK)
        st = build(&l, o, first->ops->info(first), &spec);
    tgi_source_close(&first);
    free_list(&l);
    if (st == TG_OK)
        return tgi_stack_open(&spec, o, out, err);
    tgi_stack_spec_free(&spec);
    return st;
}
