/* cmd_run.c - tegula run: plan, say so in a line, run or resume, and close with one line. */
#include "batch.h"
#include "cli.h"
#include "text.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The film itself goes to standard output. */
static bool is_piped(const cli *c)
{
    const char *out = tg_opts_get(c->opts, "output");
    return out && strcmp(out, "-") == 0;
}

/* Frames come once. */
static bool comes_by_pipe(const cli *c)
{
    struct stat st;
    const char *in = tg_opts_get(c->opts, "input");
    return in && (strcmp(in, "-") == 0 || (stat(in, &st) == 0 && S_ISFIFO(st.st_mode)));
}

/* A file of the run's own that is standard output; NULL: none is. */
static const char *other_on_stdout(const cli *c)
{
    static const char *const names[] = {"log", "trace", "plot"};
    struct stat out, file;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = tg_opts_get(c->opts, names[i]);
        if (path && (strcmp(path, "-") == 0 ||
                     (fstat(STDOUT_FILENO, &out) == 0 && stat(path, &file) == 0 &&
                      out.st_dev == file.st_dev && out.st_ino == file.st_ino)))
            return names[i];
    }
    return NULL;
}

static void announce(const tg_plan_info *p)
{
    char a[CLI_TEXT], b[CLI_TEXT], t[3 * CLI_TEXT];
    fprintf(stderr, "plan: peak %s of %s, %" PRId64 " strip%s, about %s%s\n",
            cli_size(p->peak_bytes, a), cli_size(p->budget_bytes, b), p->strips,
            p->strips == 1 ? "" : "s", cli_span(p->seconds_least, p->seconds_estimate, t),
            p->is_endless ? " a frame" : "");
    if (p->device_notice) {
        fputs("computed by the processor: ", stderr);
        cli_put_clean(stderr, p->device_notice);
        fputc('\n', stderr);
    }
}

/* "done in 5.0 s, 120 frames, 24.1 fps, 7.3 Mpx/s"; of an image there are pixels alone. */
static void put_speed(FILE *to, const tg_run_result *r)
{
    char t[CLI_TEXT];
    fprintf(to, ": done in %s", cli_seconds(r->seconds, t));
    if (r->frames > 0)
        fprintf(to, ", %" PRId64 " frame%s", r->frames, r->frames == 1 ? "" : "s");
    if (r->frames > 0 && r->seconds > 0)
        fprintf(to, ", %.1f fps", (double)r->frames / r->seconds);
    fprintf(to, ", %.1f Mpx/s", r->megapixels_per_second);
}

/* Of a film frames, of an image tiles; of a network in stages also those. */
static void put_resumed(const tg_run_result *r)
{
    const bool staged = r->stages_resumed > 0;
    if (staged)
        printf(", %" PRId64 " of %" PRId64 " stages", r->stages_resumed, r->stages);
    const int film = r->frames > 0 || r->frames_resumed > 0;
    const int64_t before = film ? r->frames_resumed : r->tiles_resumed,
                  now = film ? r->frames : r->tiles;
    if (before > 0)
        printf("%s %" PRId64 " of %" PRId64 " %s", staged ? " and" : ",", before, before + now,
               film ? "frames" : "tiles");
    if (staged || before > 0)
        fputs(" were done before", stdout);
    if (r->stages_again > 0)
        printf(" (%" PRId64 " stage%s ran again for values in memory)", r->stages_again,
               r->stages_again == 1 ? "" : "s");
}

static void close_piped(const tg_run_result *r)
{
    char a[CLI_TEXT], b[CLI_TEXT];
    fputs("standard output", stderr);
    put_speed(stderr, r);
    fprintf(stderr, ", peak %s of %s\n", cli_size(r->measured_peak_bytes, a),
            cli_size(r->budget_bytes, b));
}

static void close_text(const tg_run_result *r)
{
    char a[CLI_TEXT], b[CLI_TEXT], t[CLI_TEXT];
    cli_put_clean(stdout, r->output);
    if (!r->predicted_peak_bytes) { /* nothing was reserved */
        printf(": was complete already; %s\n", cli_opens_in(r->output));
        return;
    }
    put_speed(stdout, r);
    printf(", peak %s of %s", cli_size(r->measured_peak_bytes, a),
           cli_size(r->budget_bytes, b));
    printf(" (planned %s)", cli_size(r->predicted_peak_bytes, a));
    if (r->device)
        printf(", on %s %s of %s (planned %s)", r->device,
               cli_size(r->device_measured_bytes, a), cli_size(r->device_budget_bytes, b),
               cli_size(r->device_predicted_bytes, t));
    put_resumed(r);
    printf("; %s\n", cli_opens_in(r->output));
}

static void close_event(const tg_run_result *r)
{
    fputs("{\"event\":\"done\"", stdout);
    cli_json_uint(stdout, "predicted_peak_bytes", r->predicted_peak_bytes);
    cli_json_uint(stdout, "measured_peak_bytes", r->measured_peak_bytes);
    cli_json_uint(stdout, "budget_bytes", r->budget_bytes);
    if (r->device) {
        cli_json_text(stdout, "device", r->device);
        cli_json_uint(stdout, "device_predicted_bytes", r->device_predicted_bytes);
        cli_json_uint(stdout, "device_measured_bytes", r->device_measured_bytes);
        cli_json_uint(stdout, "device_budget_bytes", r->device_budget_bytes);
    }
    if (r->device_kernel_seconds > 0) {
        cli_json_real(stdout, "device_upload_seconds", r->device_upload_seconds);
        cli_json_real(stdout, "device_kernel_seconds", r->device_kernel_seconds);
        cli_json_real(stdout, "device_download_seconds", r->device_download_seconds);
    }
    cli_json_real(stdout, "seconds", r->seconds);
    cli_json_real(stdout, "compute_seconds", r->compute_seconds);
    cli_json_real(stdout, "bands_seconds", r->bands_seconds);
    cli_json_real(stdout, "stall_read_seconds", r->stall_read_seconds);
    cli_json_real(stdout, "stall_write_seconds", r->stall_write_seconds);
    cli_json_real(stdout, "convert_seconds", r->convert_seconds);
    cli_json_real(stdout, "processor_seconds", r->processor_seconds);
    cli_json_real(stdout, "megapixels_per_second", r->megapixels_per_second);
    cli_json_int(stdout, "tiles", r->tiles);
    cli_json_int(stdout, "bands", r->bands);
    cli_json_int(stdout, "tiles_resumed", r->tiles_resumed);
    cli_json_int(stdout, "tiles_begun", r->tiles_begun);
    if (r->frames > 0 || r->frames_resumed > 0) {
        cli_json_int(stdout, "frames", r->frames);
        cli_json_int(stdout, "frames_resumed", r->frames_resumed);
    }
    if (r->stages > 0) {
        cli_json_int(stdout, "stages", r->stages);
        cli_json_int(stdout, "stages_resumed", r->stages_resumed);
        cli_json_int(stdout, "stages_again", r->stages_again);
    }
    cli_json_int(stdout, "bad_regions", r->bad_regions);
    cli_json_int(stdout, "nonfinite", r->nonfinite);
    cli_json_real(stdout, "recomputed_fraction", r->recomputed_fraction);
    cli_json_text(stdout, "output", r->output);
    fputs("}\n", stdout);
}

static tg_status plan_first(cli *c, tg_job *job)
{
    tg_plan_info plan = {.size = sizeof plan};
    tg_status st = tg_job_plan(job, &plan);
    if (st != TG_OK)
        return st;
    if (!c->quiet)
        announce(&plan);
    if (!c->quiet && is_piped(c))
        fputs("output: through standard output, without a journal: a stop starts over\n",
              stderr);
    else if (!c->quiet && comes_by_pipe(c))
        fputs("input: through a pipe, so there is no journal: a stop starts over\n", stderr);
    char *json = NULL;
    if (c->json && (st = tg_job_plan_json(job, 0, &json)) == TG_OK)
        cli_print_event("plan", NULL, json);
    tg_text_free(json);
    return st;
}

/* Files that many images would not have in common: then the only one has no log of a batch. */
static bool names_one_file(const cli *c)
{
    static const char *const one[] = {"log", "trace", "plot", "save"};
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++)
        if (tg_opts_get(c->opts, one[i]) && *tg_opts_get(c->opts, one[i]))
            return true;
    return false;
}

tg_status cli_cmd_run(cli *c)
{
    tg_job *job = NULL;
    tg_run_result r = {.size = sizeof r};
    tg_status st = TG_OK;
    char name[BATCH_PATH];
    if (cli_each_asked(c))
        return cli_run_each(c);
    if (cli_each_of_one(c, name)) {
        if (!names_one_file(c))
            return cli_run_each(c);
        st = cli_each_take_name(c, name);
    }
    if (st == TG_OK && is_piped(c) && c->json) {
        c->json = false; /* nor does this error go there */
        st = cli_fail(c, TG_E_ARG, "--json writes to standard output, and so does -o -");
    }
    const char *other = is_piped(c) ? other_on_stdout(c) : NULL;
    if (st == TG_OK && other)
        st = cli_fail(c, TG_E_ARG, "--%s writes to standard output, and so does -o -", other);
    if (st == TG_OK)
        st = tg_job_open(c->ctx, c->opts, &job);
    tg_ctx_keep_model(c->ctx, 0); /* of cli_each_of_one */
    c->opened = st == TG_OK;
    if (st == TG_OK)
        st = plan_first(c, job);
    if (st == TG_OK)
        st = cli_save_look(c);
    if (st == TG_OK)
        st = tg_job_run(job, &r);
    if (st == TG_OK) /* not before: a run that is killed leaves nothing in its own way */
        st = cli_save_job(c, job);
    if (st == TG_OK || r.bad_regions > 0) { /* filled regions: done, and an error */
        cli_progress_clear(c);
        if (!r.output)
            r.output = tg_opts_get(c->opts, "output");
        if (c->json)
            close_event(&r);
        else if (!c->quiet && is_piped(c))
            close_piped(&r);
        else if (!c->quiet)
            close_text(&r);
    }
    tg_job_close(&job);
    return st;
}
