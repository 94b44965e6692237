/* main.c - dispatch, signals and exit codes of the command.
 *
 * The first SIGINT, SIGTERM or SIGHUP asks the library to stop (tg_cancel): it finishes what is
 * in flight, leaves a valid journal and the exit code is 128 + signal. The second one kills, as
 * if there were no handler; the journal survives that too, only later work is lost. */
#include "batch.h"
#include "cli.h"
#include "text.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* @source sysexits.h; docs/reference/exit-codes.md has cause and cure of each. */
int cli_exit_code(tg_status st)
{
    switch (st) {
    case TG_OK:
        return 0;
    case TG_E_ARG:
        return 64; /* EX_USAGE */
    case TG_E_FORMAT:
    case TG_E_UNSUPPORTED:
    case TG_E_CHANGED:
        return 65; /* EX_DATAERR */
    case TG_E_NOT_FOUND:
        return 66; /* EX_NOINPUT */
    case TG_E_DEVICE:
        return 69; /* EX_UNAVAILABLE */
    case TG_E_INTERNAL:
        return 70; /* EX_SOFTWARE */
    case TG_E_NOMEM:
    case TG_E_BUDGET:
        return 71; /* EX_OSERR: memory */
    case TG_E_EXISTS:
    case TG_E_NO_SPACE:
        return 73; /* EX_CANTCREAT */
    case TG_E_IO:
        return 74; /* EX_IOERR */
    case TG_E_BUSY:
    case TG_E_DEVICE_LOST:
        return 75; /* EX_TEMPFAIL */
    case TG_E_CANCELLED:
        return 128 + (tg_cancel_signal() ? tg_cancel_signal() : SIGINT);
    }
    return 70;
}

tg_status cli_fail(cli *c, tg_status st, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->detail, sizeof c->detail, fmt, ap);
    va_end(ap);
    return st;
}

static atomic_flag asked_to_stop = ATOMIC_FLAG_INIT; /* two threads may get a signal each */

static void on_signal(int sig)
{
    static const char note[] = "\ntegula: stopping "
                               "(once more to stop at once)\n";
    if (atomic_flag_test_and_set(&asked_to_stop)) {
        signal(sig, SIG_DFL);
        raise(sig); /* delivered when this handler returns */
        return;
    }
    tg_cancel(sig);
    if (write(STDERR_FILENO, note, sizeof note - 1) < 0)
        return; /* nobody listens; stopping goes on */
}

/* A stream that is closed stays so: the next file that is opened would take its number, and get what is said there. */
static void hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static void catch_signals(void)
{
    struct sigaction act, old;
    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    act.sa_flags = SA_RESTART;
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &act, NULL); /* nohup's choice is kept */
    signal(SIGXFSZ, SIG_IGN); /* a limit on files (ulimit -f) is an error of writing then */
    signal(SIGPIPE, SIG_IGN); /* and a reader that is gone; of a log it is none at all */
}

void cli_report(cli *c, tg_status st)
{
    const char *detail = c->detail[0] ? c->detail : c->ctx ? tg_ctx_detail(c->ctx) : "";
    if (!detail[0])
        detail = tg_status_sentence(st);
    cli_progress_clear(c);
    const tg_refusal *refusal = c->detail[0] || !c->ctx ? NULL : tg_ctx_refusal(c->ctx);
    fputs("tegula: ", stderr);
    cli_put_clean(stderr, detail);
    fputc('\n', stderr);
    const bool remedies = !c->detail[0] && c->ctx && tg_ctx_remedy(c->ctx, 0);
    if (refusal)
        cli_refusal_text(c, refusal);
    else if (remedies)
        cli_remedies_text(c);
    if (st == TG_E_ARG && c->verb)
        fprintf(stderr, "tegula: see tegula %s --help\n", c->verb->name);
    if (!c->json)
        return;
    fputs("{\"event\":\"error\"", stdout);
    cli_json_text(stdout, "status", tg_status_name(st));
    cli_json_int(stdout, "exit", cli_exit_code(st));
    cli_json_text(stdout, "detail", detail);
    if (refusal)
        cli_refusal_json(c, refusal);
    else if (remedies)
        cli_remedies_json(c);
    fputs("}\n", stdout);
}

static bool is_network(const char *path)
{
    static const char *const end[] = {".onnx", ".yaml", ".yml", ".zip"};
    const size_t n = path ? strlen(path) : 0;
    for (size_t i = 0; i < sizeof end / sizeof end[0]; i++)
        if (n > strlen(end[i]) && strcmp(path + n - strlen(end[i]), end[i]) == 0)
            return true;
    return false;
}

/* A network stands where an input belongs: what is to be read, or the word that -m needs. */
static tg_status check_order(cli *c)
{
    const char *model = tg_opts_get(c->opts, "model");
    const cli_verb *v = c->verb;
    for (int i = 0; cli_word_in(v->needs, "model") && i < c->n_files; i++) {
        if (!is_network(c->files[i]) || is_network(model))
            continue;
        if (model)
            return cli_fail(c, TG_E_ARG,
                            "%s: the network and the input are swapped: -m \"%s\" \"%s\"",
                            v->name, c->files[i], model);
        return cli_fail(c, TG_E_ARG, "%s: \"%s\" is a network: give it as -m \"%s\"", v->name,
                        c->files[i], c->files[i]);
    }
    return TG_OK;
}

/* Files that are there, of one ending each: of a pattern that a shell took apart. */
static bool are_pictures(const cli *c)
{
    const char *end = strrchr(c->files[0], '.');
    for (int i = 1; i < c->n_files && end; i++) {
        const char *other = strrchr(c->files[i], '.');
        if (!other || strcmp(end, other) != 0 || access(c->files[i], F_OK) != 0)
            return false;
    }
    return end != NULL;
}

static bool takes_each(const cli *c)
{
    return (c->verb->run == cli_cmd_run || c->verb->run == cli_cmd_plan) && c->n_files &&
           cli_each_asked(c);
}

/* As many as the verb takes? Asked again once a job file has said what is the output. */
static tg_status check_count(cli *c)
{
    const cli_verb *v = c->verb;
    if (c->n_files <= v->max_files || takes_each(c))
        return TG_OK;
    if (v->max_files == 1 && are_pictures(c))
        return cli_fail(
            c, TG_E_ARG,
            "%s takes one file, and these are %d: the output is named by -o, and of "
            "many pictures a pattern in quotes, as '*%s', that the shell leaves it as it is%s",
            v->name, c->n_files, strrchr(c->files[0], '.'),
            v->run == cli_cmd_run || v->run == cli_cmd_plan
                ? "; or -o DIR/ for an output of each"
                : "");
    return cli_fail(c, TG_E_ARG, "%s takes %d file%s, \"%s\" is one too many", v->name,
                    v->max_files, v->max_files == 1 ? "" : "s", c->files[v->max_files]);
}

/* What parsing cannot know: are the files and options there that the verb needs? */
static tg_status check_needs(cli *c)
{
    const cli_verb *v = c->verb;
    const char *first_file = c->n_files ? c->files[0] : NULL;
    tg_status order = check_order(c);
    if (order == TG_OK)
        order = check_count(c);
    if (order != TG_OK)
        return order;
    if (takes_each(c))
        return tg_opts_get(c->opts, "input")
                   ? cli_fail(c, TG_E_ARG, "\"%s\": the input was given by --input already",
                              first_file)
                   : tg_opts_set(c->opts, "input", first_file);
    if (v->max_files == 1 && first_file && v->run != cli_cmd_doctor) {
        const char *set = tg_opts_get(c->opts, "input");
        const tg_status st = tg_opts_set(c->opts, "input", first_file);
        if (st != TG_OK)
            return st;
        if (set)
            return cli_fail(c, TG_E_ARG, "\"%s\": the input was given by --input already",
                            first_file);
    }
    return TG_OK;
}

static tg_status check_complete(cli *c)
{
    const cli_verb *v = c->verb;
    static const struct {
        const char *name, *how;
    } need[] = {{"model", "-m MODEL.onnx"}, {"output", "-o OUT"}};
    const bool has_input =
        tg_opts_get(c->opts, "input") || tg_opts_get(c->opts, "input-tensor");
    if (v->max_files == 1 && v->min_files == 1 && !has_input)
        return cli_fail(c, TG_E_ARG, "%s: the %s", v->name,
                        v->run == cli_cmd_status ? "name of a run's output is missing"
                                                 : "input file is missing");
    if (v->max_files > 1 && c->n_files < v->min_files)
        return cli_fail(c, TG_E_ARG, "%s: name at least one file", v->name);
    for (size_t i = 0; i < sizeof need / sizeof need[0]; i++)
        if (cli_word_in(v->needs, need[i].name) && !tg_opts_get(c->opts, need[i].name))
            return cli_fail(c, TG_E_ARG, "%s: %s is missing", v->name, need[i].how);
    return TG_OK;
}

/* What leaves nothing behind and has said "stopping" was stopped, even when it was done by
 * then. No handler says it later: from here on a signal ends the program. */
static tg_status stopped(cli *c, tg_status st)
{
    if (c->verb->run != cli_cmd_info && c->verb->run != cli_cmd_plan)
        return st;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == on_signal)
            signal(signals[i], SIG_DFL);
    }
    return st == TG_OK && tg_cancel_signal()
               ? cli_fail(c, TG_E_CANCELLED, "stopped by signal %d", tg_cancel_signal())
               : st;
}

static tg_status run_verb(cli *c, int argc, char **argv)
{
    tg_status st = cli_parse(c, argc, argv);
    if (c->help && st == TG_OK) {
        cli_help_verb(stdout, c->verb);
        return TG_OK;
    }
    if (st == TG_OK)
        st = check_needs(c);
    const char *config = st == TG_OK ? tg_opts_get(c->opts, "config") : NULL;
    if (config)
        st = tg_opts_load(c->opts, config);
    if (st == TG_OK)
        st = check_count(c);
    if (st == TG_OK)
        st = check_complete(c);
    if (st != TG_OK)
        return st;
    st = cli_timeline_begin(c);
    if (st != TG_OK)
        return st;
    cli_progress_open(c);
    return cli_timeline_end(c, stopped(c, c->verb->run(c)));
}

/* --json must shape even the errors of parsing, so it is looked for before anything else. */
static bool wants_json(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            return true;
    return false;
}

static tg_status begin(cli *c, int argc, char **argv)
{
    const tg_ctx_opts ctx_opts = {
        .size = sizeof ctx_opts, .user = c, .log = cli_on_log, .progress = cli_on_progress};
    c->json = wants_json(argc, argv);
    if (!c->verb)
        return cli_no_verb(c, argv[1]);
    tg_status st = tg_ctx_open(&ctx_opts, &c->ctx);
    if (st == TG_OK)
        st = tg_opts_new(c->ctx, &c->opts);
    tg_opts_set_by(c->opts, "command line");
    return st == TG_OK ? run_verb(c, argc - 2, argv + 2) : st;
}

static const char *verb_word(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "version" : word;
}

int main(int argc, char **argv)
{
    static cli c; /* one per process; handlers and callbacks see it */
    if (argc < 2) {
        cli_help_all(stderr);
        return cli_exit_code(TG_E_ARG);
    }
    hold_streams();
    catch_signals();
    /* Read by CUDA's driver at its first call: cuBLASLt's kernels are then loaded with the
     * library, not in the midst of a run. The plugin sees to its own; a program that uses the
     * library decides for itself. What somebody else chose stays. */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    if (argc <= (int)(sizeof c.words / sizeof c.words[0]))
        while (c.n_words < argc) {
            c.words[c.n_words] = argv[c.n_words];
            c.n_words++;
        }
    c.verb = cli_verb_find(verb_word(argv[1]));
    tg_status st = begin(&c, argc, argv);
    if (st != TG_OK && !c.reported)
        cli_report(&c, st);
    cli_progress_clear(&c);
    if (st == TG_OK && atomic_flag_test_and_set(&asked_to_stop)) /* it said that it stops */
        fputs("tegula: it was finished before it could stop: there is nothing to continue\n",
              stderr);
    /* A result that did not reach its reader is no success: a full disk behind `> plan.json`, a
     * reader that is gone. What the verb did is done all the same. */
    int code = cli_exit_code(st);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        fputs("tegula: writing to standard output failed\n", stderr);
        code = cli_exit_code(TG_E_IO);
    }
    tg_opts_free(&c.opts);
    tg_ctx_close(&c.ctx);
    return cli_leaks_at_end(code);
}
