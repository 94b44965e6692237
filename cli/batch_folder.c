/* batch_folder.c - --video-dir and --mask-dir: films and masks that belong together by their names.
 *
 * A film is a file with the ending of one, or a folder with pictures in it; its stem is its name without the ending. Its
 * mask is the picture, film or folder of that stem, or of STEM_mask. Both folders may be one: then what is called
 * STEM_mask beside STEM is no film. */
#include "batch.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES = BATCH_JOBS };

static const char films[] =
    "mp4 mov mkv webm avi m4v y4m mpg mpeg ts mts m2ts wmv flv ogv 3gp mxf gif "
    "264 h264 265 h265 hevc";
static const char pictures[] = "png jpg jpeg tif tiff";

typedef enum entry_kind { FILM, PICTURE, FRAMES } entry_kind;

typedef struct entry {
    const char *path; /* the folder's name included */
    const char *name; /* in it */
    size_t stem;      /* characters of the name */
    entry_kind kind;
    bool used; /* it is the mask of a film */
} entry;

typedef struct folder {
    const char *path;
    entry *entry;
    int n;
} folder;

/* ---- What is there ----------------------------------------------------------------------- */

/* "" where there is none; in lower case. */
static void ending_of(const char *name, char buf[8])
{
    const char *dot = strrchr(name, '.');
    size_t n = 0;
    for (const char *p = dot ? dot + 1 : ""; *p && n < 7; p++)
        buf[n++] = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    buf[n] = 0;
}

static bool ends_as(const char *name, const char *list)
{
    char ending[8];
    ending_of(name, ending);
    return *ending && name[0] != '.' && cli_word_in(list, ending);
}

static bool holds_pictures(const char *path)
{
    bool found = false;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = ends_as(e->d_name, pictures);
    if (d)
        closedir(d);
    return found;
}

/* false: it is neither film nor frames nor, by its ending, a picture. */
static bool kind_of(const char *path, const char *name, entry_kind *kind)
{
    struct stat st;
    if (name[0] == '.' || stat(path, &st) != 0)
        return false;
    if (S_ISDIR(st.st_mode)) {
        *kind = FRAMES;
        return holds_pictures(path);
    }
    *kind = ends_as(name, films) ? FILM : PICTURE;
    return ends_as(name, films) || ends_as(name, pictures);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static tg_status add(batch *b, folder *f, const char *name)
{
    char path[BATCH_PATH];
    const size_t n = strlen(f->path);
    entry e = {0};
    if (snprintf(path, sizeof path, "%s%s%s", f->path, n && f->path[n - 1] == '/' ? "" : "/",
                 name) >= (int)sizeof path ||
        !kind_of(path, name, &e.kind))
        return TG_OK;
    if (f->n == ENTRIES)
        return cli_fail(b->c, TG_E_ARG, "%s: more than 100,000 films or masks", f->path);
    const char *dot = e.kind == FRAMES ? NULL : strrchr(name, '.');
    e.path = cli_batch_text(b, path);
    if (!e.path)
        return cli_batch_no_memory(b);
    e.name = e.path + strlen(path) - strlen(name);
    e.stem = dot ? (size_t)(dot - name) : strlen(name);
    f->entry[f->n++] = e;
    return TG_OK;
}

static tg_status list(batch *b, folder *f)
{
    tg_status st = TG_OK;
    DIR *d = opendir(f->path);
    if (!d)
        return cli_fail(b->c, TG_E_NOT_FOUND, "%s: %s", f->path, strerror(errno));
    int room = 0;
    while (readdir(d))
        room++;
    rewinddir(d);
    room = room < ENTRIES ? room + 64 : ENTRIES; /* others may be made meanwhile */
    f->entry = cli_batch_take(b, (size_t)room * sizeof *f->entry);
    if (!f->entry)
        st = cli_batch_no_memory(b);
    for (const struct dirent *e; st == TG_OK && f->n < room && (e = readdir(d));)
        st = add(b, f, e->d_name);
    closedir(d);
    if (st == TG_OK)
        qsort(f->entry, (size_t)f->n, sizeof *f->entry, by_name);
    return st;
}

/* ---- Which belong together --------------------------------------------------------------- */

static const char mark[] = "_mask";

/* Is this the stem, or with the mark behind it? */
static bool is_stem(const entry *e, const char *stem, size_t n, bool marked)
{
    const size_t m = marked ? sizeof mark - 1 : 0;
    return e->stem == n + m && memcmp(e->name, stem, n) == 0 &&
           memcmp(e->name + n, mark, m) == 0;
}

/* In one folder with the films: called NAME_mask beside NAME. */
static bool is_beside(const folder *f, const entry *e)
{
    const size_t m = sizeof mark - 1;
    for (int i = 0; e->stem > m && i < f->n; i++)
        if (f->entry[i].kind != PICTURE && is_stem(e, f->entry[i].name, f->entry[i].stem, true))
            return true;
    return false;
}

static tg_status find_mask(batch *b, folder *masks, const entry *film, const char **mask)
{
    const entry *found = NULL;
    for (int i = 0; i < masks->n; i++) {
        entry *e = &masks->entry[i];
        if (strcmp(e->path, film->path) == 0 || (!is_stem(e, film->name, film->stem, false) &&
                                                 !is_stem(e, film->name, film->stem, true)))
            continue;
        if (found)
            return cli_fail(b->c, TG_E_ARG, "%s: has two masks: %s and %s", film->path,
                            found->path, e->path);
        e->used = true;
        found = e;
    }
    *mask = found ? found->path : NULL;
    return TG_OK;
}

static void warn_of_others(const batch *b, const folder *masks)
{
    for (int i = 0; i < masks->n; i++) {
        if (masks->entry[i].used)
            continue;
        fputs("tegula: warning: ", stderr);
        cli_put_clean(stderr, masks->entry[i].path);
        fprintf(stderr, ": a mask, and %s has no film of that name\n", b->list);
    }
}

/* ---- Where outputs go -------------------------------------------------------------------- */

/* -o: the name of a folder, or one with %s where the film's name stands. */
static bool is_pattern(const char *out)
{
    return strstr(out, "%s") != NULL;
}

static tg_status check_output(batch *b, const char *out)
{
    struct stat st;
    const char *slash = out ? strrchr(out, '/') : NULL, *base = slash ? slash + 1 : out;
    if (!out)
        return cli_fail(b->c, TG_E_ARG, "the folder of outputs (-o OUTDIR/) is missing");
    if (is_pattern(out) || !*base || (stat(out, &st) == 0 && S_ISDIR(st.st_mode)) ||
        !strchr(base, '.'))
        return TG_OK;
    return cli_fail(
        b->c, TG_E_ARG,
        "-o %s: of many films -o names a folder, OUTDIR/, or 'OUTDIR/%%s.mkv' where "
        "%%s is the name of each",
        out);
}

/* Of the input where that is written, unless the codec asks for another. */
static const char *container_for(const batch *b, const entry *film)
{
    static const char written[] = "mp4 mov mkv webm y4m";
    static const char *const of_codec[][2] = {{"ffv1", "mkv"}, {"prores", "mov"}};
    static char ending[8];
    const char *codec = tg_opts_get(b->c->opts, "codec");
    ending_of(film->name, ending);
    for (size_t i = 0; codec && i < sizeof of_codec / sizeof of_codec[0]; i++)
        if (strcmp(codec, of_codec[i][0]) == 0 && strcmp(ending, "mkv") != 0 &&
            strcmp(ending, "mov") != 0)
            return of_codec[i][1];
    return film->kind == FILM && cli_word_in(written, ending) ? ending : "mp4";
}

/* The name in each place of %s. */
static tg_status fill_in(batch *b, const char *pattern, const entry *film, char *buf)
{
    size_t n = 0;
    for (const char *p = pattern; *p && n < BATCH_PATH;) {
        const bool here = p[0] == '%' && p[1] == 's';
        const size_t m = here ? film->stem : 1;
        if (n + m >= BATCH_PATH)
            return cli_fail(b->c, TG_E_ARG, "%s: the name of the output is too long",
                            film->path);
        memcpy(buf + n, here ? film->name : p, m);
        n += m;
        p += here ? 2 : 1;
    }
    buf[n] = 0;
    return TG_OK;
}

static tg_status name_output(batch *b, const entry *film, const char **output)
{
    char pattern[BATCH_PATH], name[BATCH_PATH];
    const char *out = tg_opts_get(b->c->opts, "output");
    const size_t n = strlen(out);
    const int m = is_pattern(out)
                      ? snprintf(pattern, sizeof pattern, "%s", out)
                      : snprintf(pattern, sizeof pattern, "%s%s%%s.%s", out,
                                 out[n - 1] == '/' ? "" : "/", container_for(b, film));
    if (m >= (int)sizeof pattern)
        return cli_fail(b->c, TG_E_ARG, "-o %.80s...: the name is too long", out);
    const tg_status st = fill_in(b, pattern, film, name);
    if (st != TG_OK)
        return st;
    *output = cli_batch_text(b, name);
    return *output ? TG_OK : cli_batch_no_memory(b);
}

static tg_status make_folders(batch *b, char *path)
{
    for (char *p = path + 1;; p++) {
        const char was = *p;
        if (was && was != '/')
            continue;
        *p = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return cli_fail(b->c, TG_E_EXISTS, "%s: %s", path, strerror(errno));
        *p = was;
        if (!was)
            return TG_OK;
    }
}

tg_status cli_batch_output_folder(batch *b, char *buf, size_t cap)
{
    const char *out = tg_opts_get(b->c->opts, "output"), *mark_at = strstr(out, "%s");
    size_t n = mark_at ? (size_t)(mark_at - out) : strlen(out);
    while (mark_at && n && out[n - 1] != '/')
        n--;
    while (n > 1 && out[n - 1] == '/')
        n--;
    if (snprintf(buf, cap, "%.*s", n ? (int)n : 1, n ? out : ".") >= (int)cap)
        return cli_fail(b->c, TG_E_ARG, "-o %.80s...: the name is too long", out);
    return cli_flag(b->c, "plan") ? TG_OK : make_folders(b, buf);
}

tg_status cli_batch_job_folder(batch *b, const batch_job *j)
{
    char path[BATCH_PATH];
    const char *slash = j->line ? NULL : strrchr(j->output, '/');
    if (!slash || slash == j->output)
        return TG_OK;
    snprintf(path, sizeof path, "%.*s", (int)(slash - j->output), j->output);
    return make_folders(b, path);
}

/* ---- The list ---------------------------------------------------------------------------- */

static const tg_option *option_called(const char *name)
{
    size_t n;
    const tg_option *o = tg_option_table(&n);
    while (n && strcmp(o->name, name) != 0)
        o++, n--;
    return o;
}

static tg_status add_film(batch *b, folder *masks, const entry *film)
{
    batch_job *j = cli_batch_add(b);
    if (!j)
        return cli_batch_no_memory(b);
    tg_status st = masks ? find_mask(b, masks, film, &j->mask) : TG_OK;
    if (st == TG_OK)
        st = name_output(b, film, &j->output);
    j->input = film->path;
    if (masks && !j->mask)
        j->hindered = "there is no mask of that name in --mask-dir";
    j->cell[0] = j->input;
    j->cell[1] = j->mask;
    j->cell[2] = j->output;
    return st;
}

static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static tg_status pair(batch *b, folder *video, folder *masks)
{
    const bool one = masks && same_folder(video->path, masks->path);
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < video->n; i++) {
        const entry *e = &video->entry[i];
        if (e->kind != PICTURE && !(one && is_beside(video, e)))
            st = add_film(b, one ? video : masks, e);
    }
    if (st == TG_OK && !b->n)
        st = cli_fail(b->c, TG_E_ARG, "%s: holds no film and no folder of frames", video->path);
    if (st == TG_OK && masks && !one)
        warn_of_others(b, masks);
    return st;
}

tg_status cli_batch_read_folders(batch *b)
{
    const tg_opts *o = b->c->opts;
    folder video = {.path = tg_opts_get(o, "video-dir")},
           masks = {.path = tg_opts_get(o, "mask-dir")};
    b->list = video.path;
    b->column[0] = option_called("input");
    b->column[1] = option_called("mask");
    b->column[2] = option_called("output");
    b->n_columns = 3;
    if (!masks.path && !cli_batch_removes(o))
        return cli_fail(b->c, TG_E_ARG,
                        "what is to be removed is missing: --mask-dir DIR, or --mask or "
                        "--mask-box for all films");
    tg_status st = check_output(b, tg_opts_get(o, "output"));
    if (st == TG_OK)
        st = list(b, &video);
    if (st == TG_OK && masks.path)
        st = list(b, &masks);
    return st == TG_OK ? pair(b, &video, masks.path ? &masks : NULL) : st;
}
