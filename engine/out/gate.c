/* gate.c - see gate.h. */
#include "engine/out/gate.h"

#include "engine/base/mem.h"
#include "engine/draw/plot.h"
#include "engine/out/bad_tiles.h"
#include "engine/out/frame_files.h"
#include "engine/out/journal_file.h"
#include "engine/out/stage_log.h"
#include "io/file_ops.h"
#include "io/part.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Places ------------------------------------------------------------------------------ */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The nearest folder above a path that is there; *rest: where in the path what lies in it begins,
 * folders that a run is yet to make included. */
static int stat_above(const char *path, struct stat *st, size_t *rest)
{
    char folder[4096];
    size_t n = (size_t)(base_of(path) - path);
    for (;;) {
        if (n >= sizeof folder)
            return -1;
        memcpy(folder, n ? path : ".", n ? n : 1);
        folder[n ? n : 1] = 0;
        *rest = n;
        if (stat(folder, st) == 0)
            return S_ISDIR(st->st_mode) ? 0 : -1;
        while (n && path[n - 1] == '/')
            n--;
        while (n && path[n - 1] != '/')
            n--;
    }
}

/* Slashes and dots that lead nowhere. */
static const char *next_name(const char *s)
{
    while (*s == '/' || (s[0] == '.' && (s[1] == '/' || !s[1])))
        s++;
    return s;
}

static int same_names(const char *a, const char *b)
{
    for (a = next_name(a), b = next_name(b); *a && *b; a = next_name(a), b = next_name(b)) {
        const size_t n = strcspn(a, "/");
        if (strcspn(b, "/") != n || memcmp(a, b, n) != 0)
            return 0;
        a += n;
        b += n;
    }
    return !*a && !*b;
}

static int same(const tgi_gate_place *a, const tgi_gate_place *b)
{
    return a->there == b->there && a->dev == b->dev && a->ino == b->ino &&
           (a->there || same_names(a->path + a->rest, b->path + b->rest));
}

static tg_status no_file(const tgi_gate_place *p, const char *is, tgi_err *err)
{
    return tgi_fail(
        err, TG_E_EXISTS,
        "%s: %s would take the place of %s, which is never replaced: choose another "
        "name",
        p->path, p->what, is);
}

/* Look at what is there. Something else than a file is one's own to write through at most. */
static tg_status look(tgi_gate_place *p, int *compared, tgi_err *err)
{
    struct stat st;
    const int link = lstat(p->path, &st) == 0 && S_ISLNK(st.st_mode);
    *compared = 1;
    if (link && p->how == TGI_GATE_OWN)
        return no_file(p, "a symbolic link", err);
    if (stat(p->path, &st) != 0) {
        *compared = !link && stat_above(p->path, &st, &p->rest) == 0;
    } else if (S_ISREG(st.st_mode)) {
        p->there = 1;
    } else {
        *compared = 0;
        if (p->how >= TGI_GATE_STREAM && tgi_is_stream(p->path))
            return TG_OK;
        if (p->how == TGI_GATE_FILE && S_ISDIR(st.st_mode))
            return TG_OK; /* a folder of outputs, or refused by who knows */
        return no_file(p, S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe", err);
    }
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    return TG_OK;
}

static tg_status keep(tgi_gate *g, const tgi_gate_place *p, tgi_err *err)
{
    if (g->n == g->cap) {
        const int cap = g->cap ? 2 * g->cap : 16;
        tgi_gate_place *at = tgi_realloc_n(TGI_TAG_MISC, g->at, (size_t)cap, sizeof *at);
        if (!at)
            return tgi_fail(err, TG_E_NOMEM, "no memory for the names of what is written");
        g->at = at;
        g->cap = cap;
    }
    g->at[g->n] = *p;
    g->at[g->n].path = tgi_strdup(TGI_TAG_MISC, p->path);
    if (!g->at[g->n].path)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the names of what is written");
    g->n_there += p->there;
    g->n++;
    return TG_OK;
}

tg_status tgi_gate_writes(tgi_gate *g, const char *path, const char *what, tgi_gate_how how,
                          tgi_err *err)
{
    tgi_gate_place p = {.path = (char *)(uintptr_t)path, .what = what, .how = how};
    int compared;
    TGI_TRY(look(&p, &compared, err));
    for (int i = 0; compared && i < g->n; i++)
        if (same(&p, &g->at[i]))
            return tgi_fail(err, TG_E_ARG,
                            "%s: %s and %s would be one file: choose another name", path,
                            g->at[i].what, what);
    return compared ? keep(g, &p, err) : TG_OK;
}

/* A name that is made from an output's. */
typedef struct derived {
    const char *end;
    const char *head; /* what a complete one begins with; NULL: who opens it looks */
    int (*is_ours)(const char *path); /* or NULL */
    int report;                       /* it stays, and -y replaces it with its output */
} derived;

static tg_status is_ours(const tgi_gate *g, const char *path, const derived *d, tgi_err *err)
{
    const tgi_left left = {.path = path,
                           .begins = d->report ? NULL : TGI_PART_MARK,
                           .head = d->head,
                           .head_bytes = d->head ? strlen(d->head) : 0};
    const tgi_left damaged = {.path = path, .begins = d->report ? NULL : d->head};
    if (d->is_ours ? d->is_ours(path)
                   : !d->head || tgi_file_is_ours(&left) || tgi_file_is_ours(&damaged))
        return TG_OK;
    if (!d->report)
        return tgi_file_in_the_way(path, err);
    return g->yes ? TG_OK
                  : tgi_fail(err, TG_E_EXISTS,
                             "%s: exists, and is no report of tegula: -y replaces it", path);
}

static tg_status writes_derived(tgi_gate *g, const char *path, const derived *d, int n,
                                tgi_err *err)
{
    char name[4096];
    for (int i = 0; i < n; i++) {
        if (snprintf(name, sizeof name, "%s%s", path, d[i].end) >= (int)sizeof name ||
            strlen(base_of(name)) > NAME_MAX)
            return tgi_fail(err, TG_E_ARG, "%s: the name is too long", path);
        TGI_TRY(tgi_gate_writes(g, name, "a file beside the output", TGI_GATE_OWN, err));
        TGI_TRY(is_ours(g, name, &d[i], err));
    }
    return TG_OK;
}

tg_status tgi_gate_writes_output(tgi_gate *g, const char *path, tgi_err *err)
{
    static const derived names[] = {
        {.end = ".partial"},
        {.end = ".journal"},
        {.end = ".made"},
        {.end = ".tegula.json", .head = "{\"tegula\":", .report = 1},
        {.end = ".tegula.json.tmp", .head = "{\"tegula\":"},
        {.end = ".errors.json", .head = "{\"input\":", .report = 1},
        {.end = ".errors.partial", .is_ours = tgi_bad_tiles_ours},
        {.end = TGI_STAGES_END, .is_ours = tgi_stages_ours},
    };
    TGI_TRY(tgi_gate_writes(g, path, "the output", TGI_GATE_FILE, err));
    return writes_derived(g, path, names, (int)(sizeof names / sizeof names[0]), err);
}

tg_status tgi_gate_writes_folder(tgi_gate *g, const char *path, tgi_err *err)
{
    static const derived names[] = {
        {.end = ".errors.json", .head = "{\"input\":", .report = 1},
        {.end = ".errors.partial", .is_ours = tgi_bad_tiles_ours},
        {.end = TGI_NAMES_FILE, .head = TGI_NAMES_HEAD},
    };
    return writes_derived(g, path, names, (int)(sizeof names / sizeof names[0]), err);
}

static int is_folder(const char *path)
{
    struct stat st;
    const size_t n = strlen(path);
    return (n && path[n - 1] == '/') || (stat(path, &st) == 0 && S_ISDIR(st.st_mode));
}

tg_status tgi_gate_writes_whole(tgi_gate *g, const char *path, const char *what,
                                const char *ending, const char *begins, tgi_err *err)
{
    const derived grows = {ending, begins, NULL, 0};
    if (tgi_is_stream(path))
        return TG_OK;
    const tgi_gate_place p = {.path = (char *)(uintptr_t)path, .what = what};
    if (is_folder(path))
        return no_file(&p, "a folder", err);
    TGI_TRY(tgi_gate_writes(g, path, what, TGI_GATE_FILE, err));
    return writes_derived(g, path, &grows, 1, err);
}

static tg_status writes_table(tgi_gate *g, const char *path, tgi_err *err)
{
    static const derived grows = {.end = ".partial", .head = "label,"};
    TGI_TRY(tgi_gate_writes(g, path, "--objects", TGI_GATE_FILE, err));
    return writes_derived(g, path, &grows, 1, err);
}

tg_status tgi_gate_reads(const tgi_gate *g, const char *path, const char *what, tgi_err *err)
{
    struct stat st;
    const int is_job = strcmp(what, "the job file") == 0;
    if (!path || !g->n_there)
        return TG_OK;
    const int there = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);
    if (there != 0 || !S_ISREG(st.st_mode))
        return TG_OK;
    for (int i = 0; i < g->n; i++) {
        const tgi_gate_place *w = &g->at[i];
        if (w->there && w->dev == st.st_dev && w->ino == st.st_ino &&
            !(is_job && w->how == TGI_GATE_JOB))
            return tgi_fail(err, TG_E_ARG,
                            "%s: %s is %s itself, which is never replaced: choose another name",
                            w->path, w->what, what);
    }
    return TG_OK;
}

void tgi_gate_close(tgi_gate *g)
{
    for (int i = 0; i < g->n; i++)
        tgi_free(g->at[i].path);
    tgi_free(g->at);
    *g = (tgi_gate){0};
}

/* ---- What options name ------------------------------------------------------------------- */

/* The output without the slashes behind it, and an ending. */
static const char *beside(const tg_opts *o, const char *ending, char *buf, size_t cap)
{
    const char *out = tgi_opts_str(o, TGI_OPT_OUTPUT);
    size_t n = out ? strlen(out) : 0;
    while (n > 1 && out[n - 1] == '/')
        n--;
    return n && snprintf(buf, cap, "%.*s%s", (int)n, out, ending) < (int)cap ? buf : NULL;
}

const char *tgi_gate_plot(const tg_opts *o, char *buf, size_t cap)
{
    const char *given = tgi_opts_str(o, TGI_OPT_PLOT);
    return !given ? NULL : *given ? given : beside(o, ".memory.svg", buf, cap);
}

const char *tgi_gate_log(const tg_opts *o, char *buf, size_t cap)
{
    const char *given = tgi_opts_str(o, TGI_OPT_LOG);
    if (given && *given)
        return given;
    return given || tgi_opts_given(o, TGI_OPT_PLOT) ? beside(o, ".memory.csv", buf, cap) : NULL;
}

static tg_status add_sides(tgi_gate *g, const tg_opts *o, tgi_err *err)
{
    static const struct {
        tgi_opt opt;
        const char *what;
        tgi_gate_how how;
    } through[] = {{TGI_OPT_TRACE, "--trace", TGI_GATE_STREAM},
                   {TGI_OPT_CSV, "--csv", TGI_GATE_STREAM},
                   {TGI_OPT_BATCH_LOG, "--batch-log", TGI_GATE_STREAM},
                   {TGI_OPT_SAVE, "--save", TGI_GATE_JOB}};
    char buf[4096];
    const char *path = tgi_gate_log(o, buf, sizeof buf);
    if (path)
        TGI_TRY(tgi_gate_writes(g, path, "--log", TGI_GATE_STREAM, err));
    for (size_t i = 0; i < sizeof through / sizeof through[0]; i++)
        if ((path = tgi_opts_str(o, through[i].opt)))
            TGI_TRY(tgi_gate_writes(g, path, through[i].what, through[i].how, err));
    if ((path = tgi_gate_plot(o, buf, sizeof buf))) {
        const size_t n = strlen(path);
        const int svg = n > 4 && strcmp(path + n - 4, ".svg") == 0;
        TGI_TRY(tgi_gate_writes_whole(g, path, "--plot", svg ? ".tmp" : ".made",
                                      svg ? "<svg " : "\x89PNG", err));
    }
    if ((path = tgi_opts_str(o, TGI_OPT_PICTURE)))
        TGI_TRY(tgi_gate_writes_whole(g, path, "--picture", ".made", "\x89PNG", err));
    if ((path = tgi_opts_str(o, TGI_OPT_OBJECTS)))
        TGI_TRY(writes_table(g, path, err));
    if ((path = tgi_opts_str(o, TGI_OPT_LIVE)))
        TGI_TRY(tgi_gate_writes_whole(g, path, "--live", ".made", "\x89PNG", err));
    path = tgi_opts_str(o, TGI_OPT_STATS);
    return path && access(path, F_OK) != 0
               ? tgi_gate_writes_whole(g, path, "--stats", ".tmp", "{", err)
               : TG_OK;
}

tg_status tgi_gate_options_read(const tgi_gate *g, const tg_opts *o, tgi_err *err)
{
    static const struct {
        tgi_opt opt;
        const char *what;
    } read[] = {
        {TGI_OPT_INPUT, "the input"},           {TGI_OPT_MODEL, "the model"},
        {TGI_OPT_DESCRIPTOR, "the descriptor"}, {TGI_OPT_CONFIG, "the job file"},
        {TGI_OPT_STATS, "the statistics"},      {TGI_OPT_MACHINE, "the machine file"},
        {TGI_OPT_PRESET, "the preset"},         {TGI_OPT_MASK, "the mask"},
        {TGI_OPT_BATCH, "the table"},           {TGI_OPT_SPLIT_SCENES, "the list of scenes"}};
    char name[256], beside_model[4096];
    const char *file, *model = tgi_opts_str(o, TGI_OPT_MODEL);
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        TGI_TRY(tgi_gate_reads(g, tgi_opts_str(o, read[i].opt), read[i].what, err));
    for (int i = 0; tgi_opts_tensor(o, i, name, sizeof name, &file); i++)
        TGI_TRY(tgi_gate_reads(g, file, "the input", err));
    const size_t n = model ? strlen(model) : 0;
    if (n > 5 && n < sizeof beside_model && strcmp(model + n - 5, ".onnx") == 0 &&
        !tgi_opts_str(o, TGI_OPT_DESCRIPTOR)) {
        snprintf(beside_model, sizeof beside_model, "%.*s.json", (int)(n - 5), model);
        TGI_TRY(tgi_gate_reads(g, beside_model, "the descriptor", err));
    }
    return TG_OK;
}

tg_status tgi_gate_options_write(tgi_gate *g, const tg_opts *o, tgi_err *err)
{
    const char *out = tgi_opts_str(o, TGI_OPT_OUTPUT);
    g->yes = tgi_opts_flag(o, TGI_OPT_YES);
    char list[4096];
    const char *named = out; /* a verb that knows no frames writes a file of this very name */
    out = tgi_frames_list_of(out, list, sizeof list);
    if (out != named)
        TGI_TRY(tgi_gate_writes(g, named, "the output", TGI_GATE_FILE, err));
    if (out && *out && !is_folder(out) && strcmp(out, "-") != 0) /* which is no file */
        TGI_TRY(tgi_gate_writes_output(g, out, err));
    return add_sides(g, o, err);
}

/* ---- Side files that are there ----------------------------------------------------------- */

static int begins(const char *path, const char *ending, const char *with)
{
    char name[4096];
    return snprintf(name, sizeof name, "%s%s", path, ending) < (int)sizeof name &&
           tgi_file_begins(name, with, strlen(with));
}

/* Does the folder hold what a run of ours left? */
static int holds_partial(const char *folder)
{
    char within[4096];
    if (snprintf(within, sizeof within, "%s/", folder) >= (int)sizeof within)
        return 0;
    DIR *d = opendir(folder);
    int found = 0;
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        found = n > 8 && ((strcmp(e->d_name + n - 8, ".partial") == 0 &&
                           begins(within, e->d_name, TGI_PART_MARK)) ||
                          (strcmp(e->d_name + n - 8, ".journal") == 0 &&
                           begins(within, e->d_name, TGI_JOURNAL_HEAD)));
    }
    if (d)
        closedir(d);
    return found;
}

int tgi_gate_interrupted(const char *output)
{
    char list[4096];
    output = tgi_frames_list_of(output, list, sizeof list);
    return output && *output &&
           (begins(output, ".journal", TGI_JOURNAL_HEAD) ||
            begins(output, ".partial", TGI_PART_MARK) ||
            begins(output, TGI_NAMES_FILE, TGI_NAMES_HEAD) ||
            (is_folder(output) && holds_partial(output)));
}

/* Does the file begin as what tegula writes for this option? One that is empty was begun. */
static int is_side_of_ours(tgi_opt side, const char *path)
{
#define KNOWN(side, text)                                                                      \
    {                                                                                          \
        side, text, sizeof text - 1                                                            \
    }
    static const struct {
        tgi_opt side;
        const char *begin;
        size_t n;
    } known[] = {KNOWN(TGI_OPT_LOG, "seconds,phase,tile,"), KNOWN(TGI_OPT_PLOT, TGI_PLOT_SVG),
                 KNOWN(TGI_OPT_PLOT, TGI_PLOT_PNG),
                 KNOWN(TGI_OPT_TRACE, "{\"tegula_timeline\"")};
#undef KNOWN
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
        return 1;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].side == side && tgi_file_begins(path, known[i].begin, known[i].n))
            return 1;
    return 0;
}

tgi_side_how tgi_gate_side(const tg_opts *o, tgi_opt side, const char *path)
{
    const int left = tgi_gate_interrupted(tgi_opts_str(o, TGI_OPT_OUTPUT));
    return tgi_opts_flag(o, TGI_OPT_YES) || (left && is_side_of_ours(side, path))
               ? TGI_SIDE_REPLACE
               : TGI_SIDE_NEW;
}
