/* plan_text.c - a plan on paper, and the events that carry the library's own JSON. */
#include "cli.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static void line(const char *name, uint64_t bytes, const char *note)
{
    char a[CLI_TEXT];
    printf("  %-18s %11s  ", name, cli_size(bytes, a));
    cli_put_clean(stdout, note ? note : "");
    putchar('\n');
}

static void memory_lines(const tg_plan_info *p)
{
    char note[128], a[CLI_TEXT];
    puts("memory");
    for (size_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].kind == TG_PLAN_MEMORY)
            line(p->lines[i].name, p->lines[i].bytes, p->lines[i].note);
    snprintf(note, sizeof note, "of a budget of %s = %" PRIu64 " bytes (%.0f %%)",
             cli_size(p->budget_bytes, a), p->budget_bytes,
             p->budget_bytes ? 100.0 * (double)p->peak_bytes / (double)p->budget_bytes : 0.0);
    line("peak", p->peak_bytes, note);
    for (size_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].kind == TG_PLAN_MARGIN)
            line(p->lines[i].name, p->lines[i].bytes, p->lines[i].note);
}

static void device_lines(const tg_plan_info *p)
{
    char note[160], a[CLI_TEXT];
    if (p->device_notice) {
        fputs("computed by the processor: ", stdout);
        cli_put_clean(stdout, p->device_notice);
        putchar('\n');
    }
    if (!p->device)
        return;
    fputs("device ", stdout);
    cli_put_clean(stdout, p->device);
    putchar('\n');
    for (size_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].kind == TG_PLAN_DEVICE)
            line(p->lines[i].name, p->lines[i].bytes, p->lines[i].note);
    snprintf(note, sizeof note, "of a budget of %s = %" PRIu64 " bytes (%.0f %%)",
             cli_size(p->device_budget_bytes, a), p->device_budget_bytes,
             p->device_budget_bytes
                 ? 100.0 * (double)p->device_peak_bytes / (double)p->device_budget_bytes
                 : 0.0);
    line("peak", p->device_peak_bytes, note);
    for (size_t i = 0; i < p->n_lines; i++)
        if (p->lines[i].kind == TG_PLAN_DEVICE_MARGIN)
            line(p->lines[i].name, p->lines[i].bytes, p->lines[i].note);
}

static void disk_lines(const tg_plan_info *p)
{
    char note[160], a[CLI_TEXT];
    bool any = false;
    for (size_t i = 0; i < p->n_lines; i++) {
        const tg_plan_line *l = &p->lines[i];
        if (l->kind != TG_PLAN_DISK)
            continue;
        if (!any)
            puts("disk");
        any = true;
        snprintf(note, sizeof note, "%.100s%s%s%s free", l->note ? l->note : "",
                 l->note && *l->note ? "; " : "", l->bytes > l->free_bytes ? "ONLY " : "",
                 l->free_bytes == UINT64_MAX ? "it is not known what is"
                                             : cli_size(l->free_bytes, a));
        line(l->name, l->bytes, note);
    }
}

/* 2-D work is written H x W, 3-D work D x H x W. */
static const char *extent(const int64_t v[3], char *buf, size_t cap)
{
    if (v[0] > 1)
        snprintf(buf, cap, "%" PRId64 "x%" PRId64 "x%" PRId64, v[0], v[1], v[2]);
    else
        snprintf(buf, cap, "%" PRId64 "x%" PRId64, v[1], v[2]);
    return buf;
}

/* One slab on each side is a halo, while one slab of work is an image. */
static const char *halo(const int64_t v[3], char *buf, size_t cap)
{
    if (v[0] != 1)
        return extent(v, buf, cap);
    snprintf(buf, cap, "1x%" PRId64 "x%" PRId64, v[1], v[2]);
    return buf;
}

enum { ORIGIN = 20 }; /* columns of an origin: "preset small-memory" */

/* Settings of one origin, as many to a line as fit, the origin in front. */
static void of_origin(const tg_setting *s, size_t n, const char *origin, bool all)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t need = strlen(s[i].name) + strlen(s[i].value) + 2;
        if (strcmp(s[i].origin, origin) != 0 || (s[i].is_default && !all))
            continue;
        if (!at || at + need > 78) {
            fputs(at ? "\n  " : "  ", stdout);
            cli_put_clean(stdout, at ? "" : origin);
            at = at ? 0 : strlen(origin);
            printf("%*s", at < ORIGIN ? (int)(ORIGIN - at) : 0, "");
            at = 2 + (at < ORIGIN ? ORIGIN : at);
        }
        printf(" %s=", s[i].name);
        cli_put_clean(stdout, s[i].value);
        at += need;
    }
    if (at)
        putchar('\n');
}

/* What people said comes first, then what was found, then what nobody thought of. */
static int turn_of(const char *origin)
{
    return strcmp(origin, "default") == 0 ? 2 : strcmp(origin, "worked out") == 0;
}

/* Every setting that is not the default, with where it is from; with --why all of them. */
static tg_status settings(cli *c, tg_job *job)
{
    const tg_setting *s = NULL;
    size_t n = 0;
    const tg_status st = tg_job_settings(job, &s, &n);
    if (st != TG_OK)
        return st;
    puts("settings");
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < n; i++) {
            size_t first = 0; /* of this origin */
            while (strcmp(s[first].origin, s[i].origin) != 0)
                first++;
            if (first == i && turn_of(s[i].origin) == turn)
                of_origin(s, n, s[i].origin, cli_flag(c, "why"));
        }
    return TG_OK;
}

/* In one pass over the image, or stage by stage. */
static void print_cells(const tg_plan_info *p)
{
    char a[128];
    const char *all = p->staged ? " in all stages, those of the output" : " of";
    printf("  strips             %" PRId64 "%s at most %s pixels, %" PRId64 " bands in all",
           p->strips, all, extent(p->tile, a, sizeof a), p->bands);
    if (p->items > 1)
        printf(", for each of %" PRId64 " planes, volumes or samples", p->items);
    if (p->whole_image_only) {
        printf("\n  whole image only   ");
        cli_put_clean(stdout, p->whole_image_only);
    }
    putchar('\n');
}

static void print_stages(const tg_plan_info *p)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    if (p->staged)
        printf("  stages             %" PRId64 ", run one after another; %" PRId64
               " values kept between them, %s in memory, %s on disk\n",
               p->stages, p->kept_values, cli_size(p->kept_bytes, a),
               cli_size(p->kept_disk_bytes, b));
    else if (p->stages > 1)
        printf("  stages             %" PRId64 ", run as one: the whole image at once\n",
               p->stages);
}

tg_status cli_print_plan(cli *c, tg_job *job, const tg_plan_info *p)
{
    char a[128], b[CLI_TEXT], t[3 * CLI_TEXT];
    if (p->machine) {
        fputs("for the machine of ", stdout);
        cli_put_clean(stdout, p->machine);
        putchar('\n');
    }
    device_lines(p);
    memory_lines(p);
    disk_lines(p);
    puts("work");
    print_cells(p);
    print_stages(p);
    printf("  halo               %s pixels\n", halo(p->halo, a, sizeof a));
    printf("  recomputed         %.1f %%\n", 100.0 * p->recomputed_fraction);
    printf("  estimate           %s%s, %sflop%s\n",
           cli_span(p->seconds_least, p->seconds_estimate, t), p->is_endless ? " a frame" : "",
           cli_metric(p->flops, b),
           p->device       ? "; by a model of GPUs, nothing of it is measured"
           : p->lessons    ? "; as runs that finished here took"
           : p->calibrated ? ""
                           : "; uncalibrated: see tegula calibrate");
    return settings(c, job);
}

void cli_print_event(const char *event, const char *file, const char *object)
{
    printf("{\"event\":\"%s\"", event);
    if (file)
        cli_json_text(stdout, "file", file);
    while (*object && *object != '{')
        object++;
    if (*object)
        object++;
    while (*object && strchr(" \t\r\n", *object))
        object++;
    if (*object != '}')
        putchar(',');
    /* One object is one line. A raw line break inside a JSON text is layout, never content. */
    for (; *object; object++)
        if (!strchr("\t\r\n", *object))
            putchar(*object);
    putchar('\n');
    fflush(stdout);
}

tg_status cli_save_look(cli *c)
{
    int fd = -1;
    if (!tg_opts_get(c->opts, "save"))
        return TG_OK;
    const tg_status st = tg_opts_open_output(c->opts, "save", TG_OUTPUT_LOOK, &fd);
    if (fd >= 0)
        close(fd);
    return st;
}

tg_status cli_save_job(cli *c, tg_job *job)
{
    const char *path = tg_opts_get(c->opts, "save");
    char *json = NULL;
    if (!path)
        return TG_OK;
    tg_status st = tg_job_save_json(job, &json);
    if (st != TG_OK)
        return st;
    int fd = -1;
    st = tg_opts_open_output(c->opts, "save", TG_OUTPUT_OPEN, &fd);
    FILE *f = st == TG_OK ? fdopen(fd, "w") : NULL;
    if (!f && fd >= 0) {
        close(fd);
        st = cli_fail(c, TG_E_NOMEM, "--save %s: %s", path, strerror(errno));
    } else if (f) {
        const bool wrote = fputs(json, f) >= 0 && fputc('\n', f) != EOF;
        if (fclose(f) != 0 || !wrote)
            st = cli_fail(c, TG_E_IO, "--save %s: %s", path, strerror(errno));
    }
    tg_text_free(json);
    return st;
}
