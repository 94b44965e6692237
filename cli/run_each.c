/* run_each.c - tegula run, and plan, of many images, each with an output of its own: several files, or --each and a folder.
 *
 * One process, one network after the other image: the model stays loaded (tg_ctx_keep_model). What became of each is
 * said and logged as a batch of films does (batch_log.c): one log, failures at the end, exit code 65. What an
 * earlier run finished is found by its receipt (--skip-done), what one began goes on by its journal. */
#include "batch.h"
#include "text.h"

#include <tegula_array.h>

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool names_folder(const char *path)
{
    struct stat st;
    return path && *path &&
           (path[strlen(path) - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

bool cli_each_asked(const cli *c)
{
    const char *out = tg_opts_get(c->opts, "output");
    return cli_flag(c, "each") ||
           (c->n_files > 1 && (names_folder(out) || (!out && c->verb->run == cli_cmd_plan)));
}

/* ---- The list ---------------------------------------------------------------------------- */

/* Where the ending of a picture's name begins; 0: it has none that is read. */
static size_t stem_of(const char *name)
{
    static const char *const endings[] = {".ome.tif", ".ome.tiff", ".tif", ".tiff", ".png",
                                          ".jpg",     ".jpeg",     ".svs", ".lsm"};
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t m = strlen(endings[i]);
        if (n > m && strcasecmp(name + n - m, endings[i]) == 0)
            return n - m;
    }
    return 0;
}

/* Of each image a table of its own in the folder that --objects names. */
static tg_status name_table(batch *b, batch_job *j, const char *name, size_t stem)
{
    char path[BATCH_PATH];
    const char *to = b->tables;
    const size_t n = strlen(to);
    if (snprintf(path, sizeof path, "%s%s%.*s.csv", to, to[n - 1] == '/' ? "" : "/", (int)stem,
                 name) >= (int)sizeof path)
        return cli_fail(b->c, TG_E_ARG, "%s: the name of the table is too long", j->input);
    j->table = cli_batch_text(b, path);
    return j->table ? TG_OK : cli_batch_no_memory(b);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The output of an image in the folder that -o names; "": that names none. false: too long. */
static bool name_output(const cli *c, const char *path, char out[BATCH_PATH])
{
    const char *to = tg_opts_get(c->opts, "output"), *name = name_of(path);
    const size_t stem = stem_of(name), n = to ? strlen(to) : 0;
    const char *format = tg_opts_get(c->opts, "format");
    const bool imagej =
        format && strcmp(format, "imagej") == 0; /* has no OME-XML, whatever the input has */
    const bool ome = stem && !imagej && strncasecmp(name + stem, ".ome.", 5) == 0;
    out[0] = 0;
    return !to || snprintf(out, BATCH_PATH, "%s%s%.*s%s", to, n && to[n - 1] == '/' ? "" : "/",
                           (int)(stem ? stem : strlen(name)), name,
                           ome ? ".ome.tif" : ".tif") < BATCH_PATH;
}

static tg_status add_image(batch *b, const char *path)
{
    char out[BATCH_PATH];
    const char *name = name_of(path);
    const size_t stem = stem_of(name);
    batch_job *j = cli_batch_add(b);
    if (!j)
        return cli_batch_no_memory(b);
    if (!name_output(b->c, path, out))
        return cli_fail(b->c, TG_E_ARG, "%s: the name of the output is too long", path);
    j->input = cli_batch_text(b, path);
    j->output = cli_batch_text(b, out); /* "": none is named */
    if (!j->input || !j->output)
        return cli_batch_no_memory(b);
    return b->tables ? name_table(b, j, name, stem ? stem : strlen(name)) : TG_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Pictures in a folder, by name; hidden ones are left out. */
static tg_status add_folder(batch *b, const char *folder)
{
    char path[BATCH_PATH];
    const char **name = NULL;
    int n = 0, room = 0;
    tg_status st = TG_OK;
    DIR *d = opendir(folder);
    if (!d)
        return cli_fail(b->c, TG_E_NOT_FOUND, "%s: %s", folder, strerror(errno));
    for (const struct dirent *e; st == TG_OK && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.' || !stem_of(e->d_name))
            continue;
        if (n == room) {
            room = room ? 2 * room : 64;
            const char **grown = cli_batch_take(b, (size_t)room * sizeof *grown);
            if (grown && n)
                memcpy(grown, name, (size_t)n * sizeof *grown);
            if (!grown)
                st = cli_batch_no_memory(b);
            name = grown ? grown : name;
        }
        if (st == TG_OK &&
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path)
            st = cli_fail(b->c, TG_E_ARG, "%s: the name is too long", e->d_name);
        if (st == TG_OK && !(name[n++] = cli_batch_text(b, path)))
            st = cli_batch_no_memory(b);
    }
    closedir(d);
    if (st == TG_OK && !n)
        st = cli_fail(b->c, TG_E_NOT_FOUND, "%s: holds no picture (.tif, .png, .jpg)", folder);
    if (n)
        qsort(name, (size_t)n, sizeof *name, by_name);
    for (int i = 0; st == TG_OK && i < n; i++)
        st = add_image(b, name[i]);
    return st;
}

/* A pattern that the shell was kept from. */
static tg_status add_matches(batch *b, const char *pattern)
{
    glob_t g = {0};
    tg_status st = TG_OK;
    if (glob(pattern, 0, NULL, &g) != 0)
        st = cli_fail(b->c, TG_E_NOT_FOUND, "%s: no file matches", pattern);
    for (size_t i = 0; st == TG_OK && i < g.gl_pathc; i++)
        st = add_image(b, g.gl_pathv[i]);
    globfree(&g);
    return st;
}

/* A file that is written, and the image that it is of. */
typedef struct written {
    const char *file, *of;
} written;

static int by_file(const void *a, const void *b)
{
    const written *x = a, *y = b;
    return strcmp(x->file, y->file);
}

/* Two images of one name would write one output; a.tif and a.ome.tif one table. */
static tg_status check_names(batch *b)
{
    written *all = cli_batch_take(b, 2 * (size_t)b->n * sizeof *all);
    size_t n = 0;
    if (!all)
        return cli_batch_no_memory(b);
    for (int i = 0; i < b->n; i++) {
        if (b->job[i].output[0])
            all[n++] = (written){b->job[i].output, b->job[i].input};
        if (b->job[i].table)
            all[n++] = (written){b->job[i].table, b->job[i].input};
    }
    qsort(all, n, sizeof *all, by_file);
    for (size_t i = 1; i < n; i++)
        if (strcmp(all[i - 1].file, all[i].file) == 0)
            return cli_fail(b->c, TG_E_ARG,
                            "%s and %s would both be written as %s: give them other names, or "
                            "run them apart",
                            all[i - 1].of, all[i].of, all[i].file);
    return TG_OK;
}

static tg_status list_images(batch *b)
{
    const cli *c = b->c;
    const char *one = tg_opts_get(c->opts, "input");
    struct stat st;
    tg_status status = TG_OK;
    for (int i = 0; status == TG_OK && i < (c->n_files ? c->n_files : 1); i++) {
        const char *file = c->n_files ? c->files[i] : one;
        if (!file)
            return cli_fail(b->c, TG_E_ARG, "--each: name images, or a folder of them");
        status = stat(file, &st) == 0
                     ? S_ISDIR(st.st_mode) ? add_folder(b, file) : add_image(b, file)
                 : strpbrk(file, "*?[") ? add_matches(b, file)
                                        : add_image(b, file);
    }
    return status == TG_OK ? check_names(b) : status;
}

/* ---- Each -------------------------------------------------------------------------------- */

static tg_status set(cli *c, const char *name, const char *value)
{
    return tg_opts_set(c->opts, name, value);
}

static tg_status open_job(batch *b, const batch_job *j, tg_job **out)
{
    cli *c = b->c;
    tg_status st = set(c, "input", j->input);
    if (st == TG_OK && j->output[0])
        st = set(c, "output", j->output);
    if (st == TG_OK && j->table) /* its table of objects */
        st = set(c, "objects", j->table);
    return st == TG_OK ? tg_job_open(c->ctx, c->opts, out) : st;
}

static tg_status run_job(batch *b, batch_job *j)
{
    tg_job *job = NULL;
    tg_run_result r = {.size = sizeof r};
    tg_plan_info plan = {.size = sizeof plan};
    tg_status st = open_job(b, j, &job);
    if (st == TG_OK)
        st = tg_job_plan(job, &plan);
    if (st == TG_OK)
        st = tg_job_run(job, &r);
    j->seconds = r.seconds;
    j->peak_bytes = r.measured_peak_bytes;
    j->state = st == TG_E_CANCELLED     ? BATCH_STOPPED
               : st != TG_OK            ? BATCH_FAILED
               : r.predicted_peak_bytes ? BATCH_DONE
                                        : BATCH_COMPLETE;
    tg_job_close(&job);
    return st;
}

/* Is it said by --each, or by several files? */
static bool are_many(const cli *c)
{
    return cli_flag(c, "each") || c->n_files > 1;
}

static tg_status run_one(batch *b, batch_job *j)
{
    cli *c = b->c;
    cli_batch_says_begin(b, j);
    j->state = BATCH_RUNS;
    const tg_status st = run_job(b, j);
    j->code = cli_exit_code(st);
    if (st != TG_OK) {
        const char *detail = tg_ctx_detail(c->ctx);
        j->message = cli_batch_text(b, detail[0] ? detail : tg_status_sentence(st));
    }
    cli_progress_clear(c);
    b->ended[j->state]++;
    cli_batch_says_end(b, j);
    if (!are_many(c))
        b->alone = st;
    return st == TG_E_CANCELLED ? st : TG_OK;
}

static tg_status make_folder(cli *c, const char *to)
{
    char path[BATCH_PATH];
    if (snprintf(path, sizeof path, "%s", to) >= (int)sizeof path)
        return cli_fail(c, TG_E_ARG, "-o %.80s...: the name is too long", to);
    for (char *p = path + 1;; p++) {
        const char was = *p;
        if (was && was != '/')
            continue;
        *p = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            return cli_fail(c, TG_E_EXISTS, "%s: %s", path, strerror(errno));
        *p = was;
        if (!was)
            return TG_OK;
    }
}

static tg_status name_log(batch *b)
{
    char path[BATCH_PATH];
    const char *to = tg_opts_get(b->c->opts, "output");
    if (tg_opts_get(b->c->opts, "batch-log"))
        return TG_OK;
    const size_t n = strlen(to);
    snprintf(path, sizeof path, "%s%sbatch.log.csv", to, n && to[n - 1] == '/' ? "" : "/");
    return set(b->c, "batch-log", path);
}

static tg_status check_options(cli *c)
{
    static const char *const one[] = {"log", "trace", "plot", "save"};
    const char *out = tg_opts_get(c->opts, "output");
    struct stat st;
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        if (tg_opts_get(c->opts, one[i]) && *tg_opts_get(c->opts, one[i]))
            return cli_fail(c, TG_E_ARG, "--%s names one file, and these are many images",
                            one[i]);
    const char *table = tg_opts_get(c->opts, "objects");
    if (table && *table && !names_folder(table) && are_many(c))
        return cli_fail(c, TG_E_ARG,
                        "--objects %s: of many images it names a folder for a table of each, "
                        "--objects DIR/",
                        table);
    if (out && out[strlen(out) - 1] != '/' && stat(out, &st) != 0 && stem_of(out))
        return cli_fail(c, TG_E_ARG, "-o %s: of many images -o names a folder, DIR/", out);
    if (tg_opts_get(c->opts, "input-tensor"))
        return cli_fail(c, TG_E_ARG, "--input-tensor is of one run, and these are many images");
    if (out && stat(out, &st) == 0 && !S_ISDIR(st.st_mode))
        return cli_fail(c, TG_E_ARG, "-o %s: of many images -o names a folder, DIR/", out);
    return TG_OK;
}

/* Which images, and what becomes of each. */
static tg_status list(batch *b)
{
    const char *table = tg_opts_get(b->c->opts, "objects");
    tg_status st = check_options(b->c);
    if (st == TG_OK && names_folder(table) && !(b->tables = cli_batch_text(b, table)))
        st = cli_batch_no_memory(b);
    return st == TG_OK ? list_images(b) : st;
}

static tg_status plan_all(batch *b)
{
    if (cli_flag(b->c, "why") && !b->c->json)
        return cli_fail(
            b->c, TG_E_ARG,
            "--why is of one plan, and these are many images: with --json each says "
            "it, or name one alone");
    tg_status st = list(b);
    if (st == TG_OK && are_many(b->c))
        st = set(b->c, "each", "true");
    b->c->opened = st == TG_OK;
    return st == TG_OK ? cli_batch_plan(b, open_job) : st;
}

static tg_status run_all(batch *b)
{
    cli *c = b->c;
    tg_status st = list(b);
    if (st == TG_OK)
        st = make_folder(c, tg_opts_get(c->opts, "output"));
    if (st == TG_OK && b->tables)
        st = make_folder(c, b->tables);
    if (st == TG_OK)
        st = name_log(b);
    if (st == TG_OK)
        st = cli_batch_log_open(b);
    if (st == TG_OK)
        st = set(c, "skip-done", "true");
    if (st == TG_OK && are_many(c))
        st = set(c, "each", "true");
    c->opened = st == TG_OK;
    for (int i = 0; st == TG_OK && i < b->n; i++) {
        if (tg_cancel_signal() || run_one(b, &b->job[i]) == TG_E_CANCELLED)
            break;
    }
    return st == TG_OK ? cli_batch_summary(b) : st;
}

bool cli_each_of_one(cli *c, char name[BATCH_PATH])
{
    char folder[BATCH_PATH];
    tg_job *job = NULL;
    struct stat st;
    const char *out = tg_opts_get(c->opts, "output"), *in = tg_opts_get(c->opts, "input");
    if (cli_each_asked(c) || !names_folder(out) || !in || !stem_of(name_of(in)) ||
        stat(in, &st) != 0 || !S_ISREG(st.st_mode) || tg_opts_get(c->opts, "input-tensor") ||
        !name_output(c, in, name) ||
        snprintf(folder, sizeof folder, "%s", out) >= (int)sizeof folder)
        return false;
    tg_ctx_keep_model(c->ctx, 1);
    c->asks = true;
    const bool is_one = set(c, "output", name) == TG_OK &&
                        tg_job_open(c->ctx, c->opts, &job) == TG_OK && tg_job_is_one_image(job);
    tg_job_close(&job);
    c->asks = false;
    return set(c, "output", folder) == TG_OK && is_one;
}

tg_status cli_each_take_name(cli *c, const char *name)
{
    const bool runs = c->verb->run == cli_cmd_run; /* a plan makes no folder */
    tg_status st = runs ? make_folder(c, tg_opts_get(c->opts, "output")) : TG_OK;
    if (st == TG_OK)
        st = set(c, "output", name);
    return st == TG_OK && runs ? set(c, "skip-done", "true") : st;
}

static tg_status do_each(cli *c, tg_status (*work)(batch *b))
{
    batch b = {.c = c, .list = "the images", .log = -1, .at_once = 1, .t0 = cli_now()};
    const tg_pool_opts how = {
        .size = sizeof how, .name = "batch", .margin_bytes = TG_POOL_NONE};
    tg_raw raw = {.size = sizeof raw};
    tg_raw_host(&raw);
    tg_status st = tg_pool_open(c->ctx, &raw, &how, &b.pool);
    tg_ctx_keep_model(c->ctx, 1);
    if (st == TG_OK)
        st = work(&b);
    tg_ctx_keep_model(c->ctx, 0);
    if (b.log >= 0)
        close(b.log);
    tg_pool_close(&b.pool, NULL);
    return st;
}

tg_status cli_run_each(cli *c)
{
    return do_each(c, run_all);
}

tg_status cli_plan_each(cli *c)
{
    return do_each(c, plan_all);
}
