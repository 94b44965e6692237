/* batch_log.c - what became of each job, as it ends: a line of the log, a line for people, an event for programs; and of
 * all of them at the end.
 *
 * The log is a CSV that runs append to. Each line is one write, so that two batches may share it. */
#include "batch.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CELL = 2 * BATCH_PATH, LINE = 3 * CELL };

static const char columns[] = "time,input,output,state,exit,seconds,peak_bytes,message\n";

const char *cli_batch_state(batch_state s)
{
    static const char *const word[] = {"waiting",      "running", "done",
                                       "was complete", "failed",  "stopped"};
    return word[s];
}

/* ---- The log ----------------------------------------------------------------------------- */

tg_status cli_batch_log_open(batch *b)
{
    char have[sizeof columns];
    const size_t n = sizeof columns - 1;
    const char *path = tg_opts_get(b->c->opts, "batch-log");
    struct stat st;
    tg_status status = tg_opts_open_output(b->c->opts, "batch-log", TG_OUTPUT_APPEND, &b->log);
    if (status != TG_OK)
        return status;
    if (fstat(b->log, &st) != 0 || !S_ISREG(st.st_mode)) /* what was there, nobody knows */
        st.st_size = 0;
    if (st.st_size == 0)
        return write(b->log, columns, n) == (ssize_t)n
                   ? TG_OK
                   : cli_fail(b->c, TG_E_IO, "--batch-log %s: %s", path, strerror(errno));
    if (pread(b->log, have, n, 0) == (ssize_t)n && memcmp(have, columns, n) == 0)
        return TG_OK;
    return cli_fail(b->c, TG_E_EXISTS,
                    "--batch-log %s: the file is there and has other columns: choose another "
                    "name",
                    path);
}

/* In quotes where it must be; cut where it is longer than any path. */
static void cell(const char *text, char buf[CELL])
{
    size_t n = 0;
    const bool quotes = text && strpbrk(text, ",\"\r\n");
    if (quotes)
        buf[n++] = '"';
    for (const char *p = text ? text : ""; *p && n + 4 < CELL; p++) {
        if (*p == '"')
            buf[n++] = '"';
        buf[n++] = *p;
    }
    if (quotes)
        buf[n++] = '"';
    buf[n] = 0;
}

static void write_line(batch *b, const batch_job *j)
{
    static char in[CELL], out[CELL], message[CELL], line[LINE];
    char when[32] = "";
    const time_t now = time(NULL);
    struct tm t;
    if (!gmtime_r(&now, &t) || !strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &t))
        when[0] = 0;
    cell(j->input, in);
    cell(j->output, out);
    cell(j->message, message);
    const int n =
        snprintf(line, sizeof line, "%s,%s,%s,%s,%d,%.1f,%" PRIu64 ",%s\n", when, in, out,
                 cli_batch_state(j->state), j->code, j->seconds, j->peak_bytes, message);
    if (n < (int)sizeof line && write(b->log, line, (size_t)n) == n)
        return;
    if (!b->log_failed)
        fprintf(stderr, "tegula: warning: the log of the batch cannot be written: %s\n",
                strerror(errno));
    b->log_failed = true;
}

/* ---- Each job ---------------------------------------------------------------------------- */

static int number_of(const batch *b, const batch_job *j)
{
    return (int)(j - b->job) + 1;
}

static void put_head(batch *b, const batch_job *j)
{
    cli_progress_clear(b->c);
    fprintf(stderr, "%d of %d: ", number_of(b, j), b->n);
    cli_put_clean(stderr, j->input);
}

void cli_batch_says_begin(batch *b, const batch_job *j)
{
    if (b->c->quiet)
        return;
    put_head(b, j);
    fputs(": begins\n", stderr);
}

static void event(const batch *b, const batch_job *j)
{
    fputs("{\"event\":\"job\"", stdout);
    cli_json_int(stdout, "job", number_of(b, j));
    cli_json_int(stdout, "jobs", b->n);
    cli_json_text(stdout, "input", j->input);
    cli_json_text(stdout, "output", j->output);
    cli_json_text(stdout, "state", cli_batch_state(j->state));
    cli_json_int(stdout, "exit", j->code);
    cli_json_real(stdout, "seconds", j->seconds);
    cli_json_uint(stdout, "peak_bytes", j->peak_bytes);
    cli_json_text(stdout, "message", j->message);
    fputs("}\n", stdout);
    fflush(stdout);
}

void cli_batch_put_of(FILE *to, const batch_job *j, const char *text)
{
    if (!strstr(text, j->input)) {
        cli_put_clean(to, j->input);
        fputs(": ", to);
    }
    cli_put_clean(to, text);
}

static void put_failure(const batch_job *j)
{
    const char *why = j->message ? j->message : "";
    fputs(": failed: ", stderr);
    cli_put_clean(stderr, why);
    fprintf(stderr, " (exit code %d)\n", j->code);
}

void cli_batch_says_end(batch *b, const batch_job *j)
{
    char a[CLI_TEXT];
    write_line(b, j);
    if (b->c->json)
        event(b, j);
    if (b->c->quiet) /* failures are listed at the end */
        return;
    put_head(b, j);
    if (j->state == BATCH_FAILED)
        put_failure(j);
    else if (j->state == BATCH_DONE)
        fprintf(stderr, ": done in %s, peak %s\n", cli_seconds(j->seconds, a),
                cli_size(j->peak_bytes, (char[CLI_TEXT]){0}));
    else
        fprintf(stderr, ": %s\n", cli_batch_state(j->state));
}

/* ---- All of them ------------------------------------------------------------------------- */

static tg_status verdict(batch *b)
{
    const int good = b->ended[BATCH_DONE] + b->ended[BATCH_COMPLETE];
    if (tg_cancel_signal() && good < b->n)
        return cli_fail(
            b->c, TG_E_CANCELLED,
            "stopped by signal %d: %d of %d jobs are done; the same command goes on",
            tg_cancel_signal(), good, b->n);
    if (good < b->n)
        return b->alone ? b->alone : TG_E_FORMAT;
    return b->log_failed ? cli_fail(b->c, TG_E_IO, "all jobs are done; their log is not whole")
                         : TG_OK;
}

static void put_count(int n, const char *what)
{
    if (n)
        printf(", %d %s", n, what);
}

static void put_summary(const batch *b)
{
    char t[CLI_TEXT];
    const int *n = b->ended;
    const int left =
        b->n - n[BATCH_DONE] - n[BATCH_COMPLETE] - n[BATCH_FAILED] - n[BATCH_STOPPED];
    printf("%d job%s: %d done", b->n, b->n == 1 ? "" : "s", n[BATCH_DONE]);
    put_count(n[BATCH_COMPLETE], n[BATCH_COMPLETE] == 1 ? "was complete" : "were complete");
    put_count(n[BATCH_FAILED], "failed");
    put_count(n[BATCH_STOPPED], "stopped");
    put_count(left, "not begun");
    printf(", in %s; ", cli_seconds(cli_now() - b->t0, t));
    cli_put_clean(stdout, tg_opts_get(b->c->opts, "batch-log"));
    putchar('\n');
}

static void batch_event(const batch *b, tg_status st)
{
    fputs("{\"event\":\"batch\"", stdout);
    cli_json_int(stdout, "jobs", b->n);
    cli_json_int(stdout, "done", b->ended[BATCH_DONE]);
    cli_json_int(stdout, "complete", b->ended[BATCH_COMPLETE]);
    cli_json_int(stdout, "failed", b->ended[BATCH_FAILED]);
    cli_json_int(stdout, "stopped", b->ended[BATCH_STOPPED]);
    cli_json_real(stdout, "seconds", cli_now() - b->t0);
    cli_json_uint(stdout, "budget_bytes", b->budget_bytes);
    cli_json_uint(stdout, "share_bytes", b->share_bytes);
    cli_json_text(stdout, "log", tg_opts_get(b->c->opts, "batch-log"));
    cli_json_int(stdout, "exit", cli_exit_code(st));
    fputs("}\n", stdout);
}

/* A job names a --ram that is enough for it alone. */
static void advise(const batch *b)
{
    char t[CLI_TEXT], u[CLI_TEXT];
    bool small = false;
    for (int i = 0; i < b->n; i++)
        small |= b->job[i].code == cli_exit_code(TG_E_BUDGET);
    if (!small || !b->share_bytes) /* images one behind the other have all of --ram each */
        return;
    const uint64_t own = b->budget_bytes - b->share_bytes * (uint64_t)b->at_once;
    fprintf(stderr,
            "each job had %s: of --ram the batch takes %s, and %d job%s at once the rest in "
            "equal parts (--jobs)\n",
            cli_size(b->share_bytes, t), cli_size(own, u), b->at_once,
            b->at_once == 1 ? "" : "s");
}

tg_status cli_batch_summary(batch *b)
{
    const tg_status st = verdict(b);
    if (b->c->json)
        batch_event(b, st);
    else if (!b->c->quiet)
        put_summary(b);
    fflush(stdout);
    for (int i = 0; i < b->n && !b->alone; i++)
        if (b->job[i].state == BATCH_FAILED) {
            fputs("  ", stderr);
            cli_batch_put_of(stderr, &b->job[i], b->job[i].message ? b->job[i].message : "");
            fprintf(stderr, " (exit code %d)\n", b->job[i].code);
        }
    advise(b);
    b->c->reported = st == TG_E_FORMAT && !b->alone; /* it has been said */
    return st;
}
