/* batch_check.c - a list of jobs that cannot be right is refused before any of them runs: a value that its option does
 * not take, a job without a mask, two jobs that write one file, a job that writes what another one reads.
 *
 * Names are compared as files: by device and number where they are there, and by their folder and last name, as they
 * may be before they are. A folder of frames, and pictures that are written into it, are one place. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tegula_preset.h>

/* ---- The options of a job ---------------------------------------------------------------- */

bool cli_batch_own(const char *option)
{
    return cli_word_in(
        "batch video-dir mask-dir jobs batch-log skip-done plan preview json quiet "
        "verbose",
        option);
}

/* Given on the command line, and not by the job file or preset, which a job reads itself. */
static bool is_given(const cli *c, const char *name)
{
    const char *from = tg_opts_origin(c->opts, name);
    return from && strcmp(from, "command line") == 0;
}

/* The cells, and what the command line says and no cell does. */
static tg_status set_all(const batch *b, const batch_job *j, tg_opts *o)
{
    size_t n;
    tg_status st = TG_OK;
    const tg_option *t = tg_option_table(&n);
    for (size_t i = 0; st == TG_OK && i < n; i++) {
        const int k = cli_batch_column(b, t[i].name);
        const char *cell = k < 0 ? NULL : j->cell[k];
        if (cell)
            st = tg_opts_set(o, t[i].name, cell);
        else if (is_given(b->c, t[i].name) && !cli_batch_own(t[i].name) &&
                 strcmp(t[i].name, "output") != 0)
            st = tg_opts_set(o, t[i].name, tg_opts_get(b->c->opts, t[i].name));
    }
    return st;
}

/* A row may take less than its share, never more: the budget is that of all. */
static tg_status set_shares(const batch *b, const batch_job *j, tg_opts *o)
{
    char text[TG_SIZE_TEXT], a[TG_SIZE_TEXT], c[TG_SIZE_TEXT], number[16];
    const int ram = cli_batch_column(b, "ram"), threads = cli_batch_column(b, "threads");
    const char *asked = ram < 0 ? NULL : j->cell[ram];
    uint64_t bytes = b->share_bytes;
    tg_status st = asked ? tg_size_parse(b->c->ctx, asked, b->share_bytes, &bytes) : TG_OK;
    if (st != TG_OK)
        return st;
    if (bytes > b->share_bytes)
        return cli_fail(b->c, TG_E_ARG,
                        "ram: %s is more than each of %d jobs at once may have of %s: %s",
                        asked, b->at_once, tg_size_text(b->budget_bytes, a, sizeof a),
                        tg_size_text(b->share_bytes, c, sizeof c));
    snprintf(text, sizeof text, "%lluKiB", (unsigned long long)(bytes / 1024));
    st = tg_opts_set(o, "ram", text);
    if (st != TG_OK || !b->threads || (threads >= 0 && j->cell[threads]))
        return st;
    snprintf(number, sizeof number, "%d", b->threads);
    return tg_opts_set(o, "threads", number);
}

tg_status cli_batch_options(batch *b, const batch_job *j, bool with_shares, tg_opts **out)
{
    tg_status st = tg_opts_new(b->c->ctx, out);
    if (st == TG_OK) {
        tg_opts_set_by(*out, "command line");
        st = set_all(b, j, *out);
    }
    if (st == TG_OK && with_shares)
        st = set_shares(b, j, *out);
    if (st != TG_OK)
        tg_opts_free(out);
    return st;
}

/* ---- Each by itself ---------------------------------------------------------------------- */

static tg_status check_job(batch *b, batch_job *j)
{
    char place[BATCH_PATH];
    tg_opts *o = NULL;
    cli *c = b->c;
    c->detail[0] = 0;
    tg_status st = cli_batch_options(b, j, true, &o);
    if (st != TG_OK) {
        char why[sizeof c->detail];
        snprintf(why, sizeof why, "%s", c->detail[0] ? c->detail : tg_ctx_detail(c->ctx));
        return cli_fail(c, st, "%s: %s", cli_batch_place(b, j, place, sizeof place), why);
    }
    const bool removes = cli_batch_removes(o);
    tg_opts_free(&o);
    return removes || j->hindered || tg_opts_get(c->opts, "config")
               ? TG_OK
               : cli_fail(c, TG_E_ARG,
                          "%s: what is to be removed is missing: a mask, or a mask-box",
                          cli_batch_place(b, j, place, sizeof place));
}

/* ---- Together ---------------------------------------------------------------------------- */

typedef enum use { OUTPUT, LOG, INPUT, MASK } use; /* writers first */

static const char *word_of(use u)
{
    static const char *const word[] = {"output", "log", "input", "mask"};
    return word[u];
}

/* A file, or the last name in a folder. */
typedef struct spot {
    dev_t dev;
    ino_t ino;
    const char *base; /* "": the file of that number itself */
    const char *path;
    const batch_job *job; /* NULL: of the batch */
    use use;
} spot;

typedef struct spots {
    spot *at;
    int n;
} spots;

static int by_spot(const void *x, const void *y)
{
    const spot *a = x, *b = y;
    const int names = a->dev != b->dev   ? (a->dev < b->dev ? -1 : 1)
                      : a->ino != b->ino ? (a->ino < b->ino ? -1 : 1)
                                         : strcmp(a->base, b->base);
    return names ? names : (int)a->use - (int)b->use;
}

static const char any_frame[] = "/"; /* no name is called so */

/* The folder that a path names a place in; where it is not there yet, the path is told apart by its text. */
static void add_name(spots *s, spot p, const char *base)
{
    char folder[BATCH_PATH];
    struct stat st;
    const int n = (int)(base - p.path);
    p.dev = 0;
    p.ino = 0;
    p.base = p.path;
    if (snprintf(folder, sizeof folder, "%.*s", n ? n : 1, n ? p.path : ".") <
            (int)sizeof folder &&
        stat(folder, &st) == 0) {
        p.dev = st.st_dev;
        p.ino = st.st_ino;
        p.base = base;
    }
    s->at[s->n++] = p;
    if (p.use == OUTPUT && p.ino && strchr(base, '%')) {
        p.base = any_frame;
        s->at[s->n++] = p;
    }
}

/* At most four spots: what it is, its name, and of pictures their folder. */
static void add_path(spots *s, const char *path, const batch_job *j, use u)
{
    struct stat st;
    spot p = {.path = path, .job = j, .use = u, .base = ""};
    if (!path)
        return;
    while (path[0] == '.' && path[1] == '/')
        path += 2;
    p.path = path;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (stat(path, &st) == 0) {
        p.dev = st.st_dev;
        p.ino = st.st_ino;
        if (S_ISDIR(st.st_mode))
            p.base = any_frame;
        s->at[s->n++] = p;
    }
    if (*base)
        add_name(s, p, base);
}

static bool is_same(const spot *a, const spot *b)
{
    return a->dev == b->dev && a->ino == b->ino && strcmp(a->base, b->base) == 0;
}

static tg_status refuse(batch *b, const spot *w, const spot *other)
{
    char here[BATCH_PATH], there[BATCH_PATH];
    const spot *at = w->job ? w : other;
    const spot *with = w->job ? other : w;
    cli_batch_place(b, at->job, here, sizeof here);
    if (!with->job)
        return cli_fail(b->c, TG_E_ARG, "%s: the %s %s is the batch's log, too", here,
                        word_of(at->use), at->path);
    if (with->job == at->job)
        return cli_fail(b->c, TG_E_ARG, "%s: the output %s is the %s itself", here, w->path,
                        word_of(other->use));
    cli_batch_place(b, with->job, there, sizeof there);
    if (other->use == OUTPUT)
        return cli_fail(b->c, TG_E_ARG, "%s: the output %s is that of %s, too", there,
                        other->path, here);
    return cli_fail(b->c, TG_E_ARG, "%s: the output %s is the %s of %s", here, w->path,
                    word_of(other->use), there);
}

/* Of equal spots writers stand first: the first one and any other are too many. */
static tg_status look_for_equal(batch *b, const spots *s)
{
    for (int i = 0, first = 0; i < s->n; i++) {
        if (!is_same(&s->at[i], &s->at[first]))
            first = i;
        const spot *w = &s->at[first], *o = &s->at[i];
        const bool self = o == w || (o->job == w->job && o->use == w->use);
        const bool frames = o->use == OUTPUT && strcmp(o->base, any_frame) == 0;
        if (w->use <= LOG && !self && !frames)
            return refuse(b, w, o);
    }
    return TG_OK;
}

tg_status cli_batch_check(batch *b, const char *log)
{
    spots s = {0};
    tg_status st = TG_OK;
    for (int i = 0; st == TG_OK && i < b->n; i++)
        st = check_job(b, &b->job[i]);
    if (st != TG_OK)
        return st;
    s.at = cli_batch_take(b, ((size_t)b->n * 7 + 3) * sizeof *s.at);
    if (!s.at)
        return cli_batch_no_memory(b);
    for (int i = 0; i < b->n; i++) {
        add_path(&s, b->job[i].output, &b->job[i], OUTPUT);
        add_path(&s, b->job[i].input, &b->job[i], INPUT);
        add_path(&s, b->job[i].mask, &b->job[i], MASK);
    }
    add_path(&s, log, NULL, LOG);
    qsort(s.at, (size_t)s.n, sizeof *s.at, by_spot);
    st = look_for_equal(b, &s);
    (void)tg_pool_free(b->pool, s.at);
    return st;
}
