/* cmd_mem.c - tegula mem: who has the memory, once or again and again.
 *
 * One sample is read into a `sample`, and printed as a report, as a line of --watch, as a JSON
 * event or as a row of --csv. A row is one write to a file opened for appending: what a kill
 * leaves is whole lines. */
#include "cli.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tegula_memory.h>

typedef struct sample {
    const char *root;
    tg_system_memory system;
    tg_process_memory process;
    tg_free_memory free_now;
    tg_cgroup_memory *cgroup;
    tg_gpu *gpu;
    size_t n_cgroups, n_gpus;
} sample;

static tg_status read_sample(cli *c, sample *s)
{
    s->root = tg_opts_get(c->opts, "root");
    s->system.size = sizeof s->system;
    s->process.size = sizeof s->process;
    s->free_now.size = sizeof s->free_now;
    tg_status st = tg_memory_system(s->root, &s->system);
    if (st != TG_OK)
        return cli_fail(c, TG_E_NOT_FOUND, "%s/proc/meminfo: cannot be read",
                        s->root ? s->root : "");
    (void)tg_memory_process(s->root, &s->process); /* not there below a foreign root: zeros */
    if ((st = tg_memory_free_now(s->root, &s->free_now)) == TG_OK &&
        (st = tg_memory_cgroups(s->root, &s->cgroup, &s->n_cgroups)) == TG_OK)
        st = tg_gpu_memory_all(s->root, &s->gpu, &s->n_gpus);
    return st;
}

static void drop_sample(sample *s)
{
    tg_memory_list_free(s->cgroup);
    tg_memory_list_free(s->gpu);
    memset(s, 0, sizeof *s);
}

/* ---- The report -------------------------------------------------------------------------- */

static void line(const char *name, uint64_t bytes, const char *note)
{
    char a[CLI_TEXT];
    printf("  %-18s %11s%s", name, cli_size(bytes, a), note && *note ? "  " : "");
    cli_put_clean(stdout, note ? note : "");
    putchar('\n');
}

static void print_system(const sample *s)
{
    char note[320], a[CLI_TEXT];
    puts("memory");
    line("total", s->system.total_bytes, NULL);
    line("available", s->system.available_bytes, NULL);
    snprintf(note, sizeof note, "%.1f %%", s->system.used_percent);
    line("used", s->system.used_bytes, note);
    if (s->system.swap_total_bytes) {
        snprintf(note, sizeof note, "%s free", cli_size(s->system.swap_free_bytes, a));
        line("swap", s->system.swap_total_bytes, note);
    }
    snprintf(note, sizeof note, "limited by %.200s", s->free_now.limited_by);
    line("free", s->free_now.free_bytes, note);
    line("margin", s->free_now.margin_bytes, "left to others: max(512 MiB, 10 %)");
    line("budget", s->free_now.budget_bytes, "of a job without --ram");
}

static void print_process(const tg_process_memory *p)
{
    puts("process");
    line("anonymous", p->anonymous_bytes, NULL);
    line("file", p->file_bytes, "pages of mapped files: the system's, given back at will");
    line("shared", p->shared_bytes, NULL);
    line("swapped", p->swapped_bytes, NULL);
    line("page tables", p->page_table_bytes, NULL);
    line("virtual", p->virtual_bytes, "address space, mostly no memory");
}

static void print_cgroups(const sample *s)
{
    if (s->n_cgroups)
        puts("cgroups");
    for (size_t i = 0; i < s->n_cgroups; i++) {
        const tg_cgroup_memory *g = &s->cgroup[i];
        char a[CLI_TEXT], b[CLI_TEXT], note[320];
        snprintf(note, sizeof note, "used, %s of it reclaimable; %s%s  v%d %.200s",
                 cli_size(g->reclaimable_bytes, a),
                 g->limit_bytes == TG_NO_LIMIT ? "no limit" : "limit ",
                 g->limit_bytes == TG_NO_LIMIT ? "" : cli_size(g->limit_bytes, b), g->version,
                 g->path);
        line("group", g->used_bytes, note);
    }
}

static void print_gpu(const tg_gpu *g)
{
    char a[CLI_TEXT], b[CLI_TEXT], note[128];
    printf("gpu %d  ", g->id);
    cli_put_clean(stdout, g->name[0] ? g->name : "(no name)");
    printf("%s%s\n", g->pci[0] ? "  " : "", g->pci);
    line("total", g->total_bytes, NULL);
    line("free", g->free_bytes, NULL);
    line("used", g->used_bytes, NULL);
    snprintf(note, sizeof note, "allocated of %s reserved",
             cli_size(g->pool_reserved_bytes, b));
    line("our pool", g->pool_allocated_bytes, note);
    const size_t shown = sizeof g->process / sizeof g->process[0];
    for (size_t i = 0; i < g->n_processes && i < shown; i++) {
        const tg_gpu_process *p = &g->process[i];
        printf("  %-18s %11s  pid %" PRId64 " ", p->graphics ? "drawing" : "computing",
               p->used_bytes == TG_NO_LIMIT ? "unknown" : cli_size(p->used_bytes, a), p->pid);
        cli_put_clean(stdout, p->name);
        putchar('\n');
    }
    if (g->n_processes > shown)
        printf("  and %zu more processes\n", g->n_processes - shown);
    if (g->problem[0]) {
        fputs("  ", stdout);
        cli_put_clean(stdout, g->problem);
        putchar('\n');
    }
}

static void print_disk(const char *name, const char *path)
{
    tg_disk d = {.size = sizeof d};
    char a[CLI_TEXT], note[512];
    if (tg_disk_look(path, &d) != TG_OK)
        return;
    snprintf(note, sizeof note, "free of %s  %.400s%s", cli_size(d.total_bytes, a), path,
             d.in_memory ? " (memory)" : "");
    line(name, d.free_bytes, note);
}

static void print_report(const sample *s)
{
    tg_gpu_driver d = {.size = sizeof d};
    const char *tmp = getenv("TMPDIR");
    print_system(s);
    print_process(&s->process);
    print_cgroups(s);
    for (size_t i = 0; i < s->n_gpus; i++)
        print_gpu(&s->gpu[i]);
    if (!s->n_gpus && tg_gpu_driver_look(&d) == TG_OK) {
        fputs("gpu  none: ", stdout);
        cli_put_clean(stdout, d.problem[0] ? d.problem : "the driver shows none");
        putchar('\n');
    }
    puts("disk");
    print_disk("current folder", ".");
    print_disk("temporary", tmp && *tmp ? tmp : "/tmp");
}

/* One line of --watch. */
static void print_line(const sample *s)
{
    char a[CLI_TEXT], b[CLI_TEXT], when[16];
    const time_t now = time(NULL);
    struct tm t;
    if (!localtime_r(&now, &t) || !strftime(when, sizeof when, "%H:%M:%S", &t))
        when[0] = 0;
    printf("%s  available %s of %s, %.1f %% used", when, cli_size(s->system.available_bytes, a),
           cli_size(s->system.total_bytes, b), s->system.used_percent);
    printf("; free %s", cli_size(s->free_now.free_bytes, a));
    for (size_t i = 0; i < s->n_gpus; i++)
        printf("; gpu %d free %s of %s", s->gpu[i].id, cli_size(s->gpu[i].free_bytes, a),
               cli_size(s->gpu[i].total_bytes, b));
    putchar('\n');
    fflush(stdout);
}

static tg_status print_sample(cli *c, const sample *s, bool watching)
{
    char *json = NULL;
    if (!c->json) {
        if (c->quiet)
            return TG_OK;
        if (watching)
            print_line(s);
        else
            print_report(s);
        return TG_OK;
    }
    const tg_status st = tg_memory_json(c->ctx, s->root, &json);
    if (st == TG_OK)
        cli_print_event("mem", NULL, json);
    tg_text_free(json);
    return st;
}

/* ---- CSV --------------------------------------------------------------------------------- */

enum { ROW = 4096 };

static const char csv_columns[] =
    "time,seconds,total_bytes,available_bytes,used_bytes,swap_free_bytes,free_bytes,"
    "budget_bytes,process_anonymous_bytes,process_file_bytes,process_virtual_bytes";

/* The columns that there are with n GPUs; returns the length, newline included. */
static size_t csv_header(size_t n_gpus, char row[ROW])
{
    size_t n = (size_t)snprintf(row, ROW, "%s", csv_columns);
    for (size_t i = 0; i < n_gpus && n < ROW - 128; i++)
        n += (size_t)snprintf(row + n, ROW - n,
                              ",gpu%zu_total_bytes,gpu%zu_free_bytes,gpu%zu_used_bytes", i, i,
                              i);
    n += (size_t)snprintf(row + n, ROW - n, "\n");
    return n;
}

static tg_status open_csv(cli *c, const sample *s, const char *path, int *out)
{
    char want[ROW], have[ROW];
    const size_t n = csv_header(s->n_gpus, want);
    struct stat st;
    int fd;
    const tg_status opened = tg_opts_open_output(c->opts, "csv", TG_OUTPUT_APPEND, &fd);
    if (opened != TG_OK)
        return opened;
    if (fstat(fd, &st) != 0) {
        close(fd);
        return cli_fail(c, TG_E_EXISTS, "--csv %s: %s", path, strerror(errno));
    }
    *out = fd;
    if (!S_ISREG(st.st_mode)) /* what was there before, nobody knows */
        st.st_size = 0;
    if (st.st_size == 0 && write(fd, want, n) == (ssize_t)n)
        return TG_OK;
    if (st.st_size > 0 && pread(fd, have, n, 0) == (ssize_t)n && memcmp(have, want, n) == 0)
        return TG_OK; /* goes on where an earlier watch ended */
    if (st.st_size == 0)
        return cli_fail(c, TG_E_IO, "--csv %s: %s", path, strerror(errno));
    return cli_fail(c, TG_E_EXISTS,
                    "--csv %s: the file is there and has other columns: choose another name",
                    path);
}

static tg_status write_row(cli *c, const sample *s, double seconds, int fd)
{
    char row[ROW], when[32];
    const time_t now = time(NULL);
    struct tm t;
    if (!gmtime_r(&now, &t) || !strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &t))
        when[0] = 0;
    size_t n = (size_t)snprintf(
        row, ROW,
        "%s,%.3f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
        ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
        when, seconds, s->system.total_bytes, s->system.available_bytes, s->system.used_bytes,
        s->system.swap_free_bytes, s->free_now.free_bytes, s->free_now.budget_bytes,
        s->process.anonymous_bytes, s->process.file_bytes, s->process.virtual_bytes);
    for (size_t i = 0; i < s->n_gpus && n < ROW - 128; i++)
        n +=
            (size_t)snprintf(row + n, ROW - n, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                             s->gpu[i].total_bytes, s->gpu[i].free_bytes, s->gpu[i].used_bytes);
    n += (size_t)snprintf(row + n, ROW - n, "\n");
    if (write(fd, row, n) != (ssize_t)n)
        return cli_fail(c, TG_E_IO, "--csv %s: %s", tg_opts_get(c->opts, "csv"),
                        strerror(errno));
    return TG_OK;
}

/* ---- --require --------------------------------------------------------------------------- */

static tg_status check_required(cli *c, const sample *s)
{
    const char *ram = tg_opts_get(c->opts, "require");
    const char *vram = tg_opts_get(c->opts, "require-vram");
    uint64_t need = 0, most = 0;
    char a[CLI_TEXT], b[CLI_TEXT];
    if (ram) {
        const tg_status st = tg_size_parse(c->ctx, ram, 0, &need);
        if (st != TG_OK)
            return st;
        if (s->free_now.free_bytes < need)
            return cli_fail(c, TG_E_BUDGET,
                            "warning: %s of memory are required, %s are free (limited by %s)",
                            cli_size(need, a), cli_size(s->free_now.free_bytes, b),
                            s->free_now.limited_by);
    }
    if (!vram)
        return TG_OK;
    const tg_status st = tg_size_parse(c->ctx, vram, 0, &need);
    if (st != TG_OK)
        return st;
    const int id = tg_gpu_most_free(&most);
    if (id == TG_GPU_NONE)
        return cli_fail(c, TG_E_BUDGET,
                        "warning: %s of GPU memory are required, there is no GPU",
                        cli_size(need, a));
    if (most < need)
        return cli_fail(c, TG_E_BUDGET,
                        "warning: %s of GPU memory are required, %s are free at most (GPU %d)",
                        cli_size(need, a), cli_size(most, b), id);
    return TG_OK;
}

/* ---- Once, or again and again ------------------------------------------------------------ */

/* Sleep until `at` on cli_now's clock, or a signal. */
static void sleep_until(double at)
{
    for (double left; !tg_cancel_signal() && (left = at - cli_now()) > 0;) {
        const double nap = left < 0.2 ? left : 0.2;
        const struct timespec t = {0, (long)(nap * 1e9)};
        nanosleep(&t, NULL);
    }
}

static tg_status one_sample(cli *c, double seconds, bool watching, int *csv)
{
    const char *path = tg_opts_get(c->opts, "csv");
    sample s = {0};
    tg_status st = read_sample(c, &s);
    if (st == TG_OK)
        st = print_sample(c, &s, watching);
    if (st == TG_OK && path && *csv < 0)
        st = open_csv(c, &s, path, csv);
    if (st == TG_OK && path)
        st = write_row(c, &s, seconds, *csv);
    if (st == TG_OK)
        st = check_required(c, &s);
    drop_sample(&s);
    return st;
}

tg_status cli_cmd_mem(cli *c)
{
    const char *every = tg_opts_get(c->opts, "watch"), *most = tg_opts_get(c->opts, "samples");
    const long n = most ? strtol(most, NULL, 10) : 0;
    double step = 0;
    int csv = -1;
    tg_status st = every ? tg_duration_parse(c->ctx, every, &step) : TG_OK;
    if (st == TG_OK && most && !every)
        st = cli_fail(c, TG_E_ARG, "--samples belongs to --watch");
    const double t0 = cli_now();
    for (long i = 0; st == TG_OK && !tg_cancel_signal(); i++) {
        if (i)
            sleep_until(t0 + (double)i * step);
        if (i && tg_cancel_signal())
            break; /* the usual end of a watch, no failure */
        st = one_sample(c, i ? cli_now() - t0 : 0.0, every != NULL, &csv);
        if (!every || (n && i + 1 >= n))
            break;
        if (ferror(stdout) && csv < 0) /* nobody watches any more */
            break;
    }
    if (csv >= 0)
        close(csv);
    return st;
}
