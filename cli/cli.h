/* cli.h - what the files of the command share. The command knows tegula.h and nothing else of
 * tegula: if it needs something, other programs need it too.
 *
 * One run of the program is one `cli`. A verb is a row in verbs.c and one function that returns
 * a status; main.c turns that into messages and the exit code. Results go to stdout (text, or
 * one JSON object per line with --json), everything else to stderr. */
#ifndef TGI_CLI_H
#define TGI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tegula.h>
#include <tegula_estimate.h>
#include <tegula_memory.h>
#include <tegula_preset.h>

typedef struct cli cli;

typedef struct cli_verb {
    const char *name;
    const char *synopsis; /* after "tegula NAME " */
    const char *sentence; /* for --help and the manual */
    int min_files, max_files;
    const char *needs; /* options that must be set: "model output" */
    tg_status (*run)(cli *c);
} cli_verb;

/* Where the progress line stands (progress.c). */
typedef struct cli_progress {
    char phase[24];        /* of the last report */
    double shown_at;       /* seconds into the phase of the last text; < 0: none yet */
    double event_at;       /* the same for --json */
    size_t memory, budget; /* largest seen; what is allowed */
    size_t width_drawn;    /* characters to overwrite on the terminal */
    bool terminal, color;
    bool resumed; /* what was done before has been said */
} cli_progress;

struct cli {
    const cli_verb *verb;
    tg_ctx *ctx;
    tg_opts *opts;
    char **files; /* positional arguments; live in argv */
    int n_files;
    bool json, quiet, help, man;
    bool reported; /* the verb has said its failures itself */
    bool asks; /* a job is open to be asked of, and what it warns of will be said by the run */
    bool opened; /* its job: all that it reads and writes is known, and passed the gate */
    int trace;   /* file of --trace that was there; -1: none */
    int verbose;
    cli_progress progress;
    char *words[512]; /* the command as given, the program's name first; 0: longer than that */
    int n_words;
    char detail[768]; /* of a failure of the command itself; else the context has it */
};

/* verbs.c */
extern const cli_verb cli_verbs[];
extern const int cli_n_verbs;
const cli_verb *cli_verb_find(const char *name);
tg_status cli_no_verb(cli *c, const char *word); /* says so, and which one is nearest */

/* parse.c: fill c->opts, files and flags from the words after the verb. */
tg_status cli_parse(cli *c, int argc, char **argv);
/* An option that is a switch and on. */
bool cli_flag(const cli *c, const char *name);
/* True when `word` is one of the blank-separated `list`. */
bool cli_word_in(const char *list, const char *word);

/* help.c */
void cli_help_all(FILE *to);
void cli_help_verb(FILE *to, const cli_verb *v);
void cli_help_man(FILE *to);
/* Text from column `at` on, wrapped, later lines at `indent`; control characters as '?'. */
void cli_put_wrapped(FILE *to, const char *text, int at, int indent);

/* main.c: note why the command itself (not the library) fails; returns st. */
tg_status cli_fail(cli *c, tg_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int cli_exit_code(tg_status st);
/* The failure, for people on stderr and with --json for programs on stdout. */
void cli_report(cli *c, tg_status st);

/* refusal_text.c: what follows the line of a memory refusal. */
void cli_refusal_text(const cli *c, const tg_refusal *r);
/* The same of a refusal for another reason: the command that would do. */
void cli_remedies_text(const cli *c);
void cli_remedies_json(const cli *c);
void cli_refusal_json(const cli *c, const tg_refusal *r); /* members, a comma in front */
/* timeline.c: --trace. `end` passes on how the verb ended. */
tg_status cli_timeline_begin(cli *c);
tg_status cli_timeline_end(cli *c, tg_status st);

/* leaks.c: the exit code, or another when TEGULA_LEAKS is set and something is held. */
int cli_leaks_at_end(int code);

/* progress.c: callbacks of the context, `user` is the cli. */
void cli_on_progress(void *user, const tg_progress *p);
void cli_on_log(void *user, tg_log_level level, const char *line);
void cli_progress_open(cli *c);
void cli_progress_clear(cli *c); /* before anything else is written to stderr */

/* stages_text.c: member "staged" of a plan's JSON, as a table of stages. */
void cli_print_stages(const char *staged, size_t n);
/* rejected_text.c: the member `rejected` of a plan, a view of n characters, as a table. */
void cli_print_rejected(const char *list, size_t n);

/* ways_text.c: what tg_inpaint_auto told, as a table. */
void cli_print_ways(FILE *to, const char *json);

/* plan_text.c */
tg_status cli_print_plan(cli *c, tg_job *job, const tg_plan_info *p);
/* {"event":"NAME","file":FILE, + the members of the library's object, on one line; file may be
 * NULL. */
void cli_print_event(const char *event, const char *file, const char *object);
/* May the file of --save be written? */
tg_status cli_save_look(cli *c);
/* Write the resolved settings where --save says. */
tg_status cli_save_job(cli *c, tg_job *job);

/* The verbs. */
tg_status cli_cmd_info(cli *c);
tg_status cli_cmd_plan(cli *c);
tg_status cli_cmd_inpaint(cli *c);
tg_status cli_cmd_run(cli *c);
tg_status cli_cmd_preview(cli *c);
tg_status cli_cmd_verify(cli *c);
tg_status cli_cmd_copy(cli *c);
tg_status cli_cmd_convert_weights(cli *c);
tg_status cli_cmd_mem(cli *c);
tg_status cli_cmd_doctor(cli *c);
tg_status cli_cmd_calibrate(cli *c);
tg_status cli_cmd_estimate(cli *c);
tg_status cli_cmd_plot(cli *c);
tg_status cli_cmd_preset(cli *c);
tg_status cli_cmd_status(cli *c);
tg_status cli_cmd_version(cli *c);
tg_status cli_cmd_help(cli *c);

#endif
