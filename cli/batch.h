/* batch.h - tegula inpaint of many films: --batch JOBS.csv, or --video-dir with --mask-dir.
 *
 *     batch_table.c    the table becomes a list of jobs,   batch_folder.c  or the folders do
 *     batch_check.c    the list is refused as a whole, before anything runs, where it cannot be right
 *     batch_share.c    the budget and the threads, divided by the jobs that run at once
 *     batch_child.c    one job: this program once more, in a process of its own, that says what it does as JSON
 *     batch_run.c      all of them, so many at once
 *     batch_log.c      what became of each: a line of the log, a line on stderr, an event
 *     batch_plans.c     what each takes, and all
 *     cmd_batch.c      in that order; or --plan
 *     run_each.c       tegula run, and plan, of many images: the same list and log, all in one process
 *
 * A job is what the command line says with the cells of its row in place of its options. A process of its own, since
 * one that crashes, or that the kernel kills, must cost the others nothing. Which outputs are complete, and which are
 * gone on with, each job finds out itself (--skip-done): a batch keeps no state of its own. */
#ifndef TGI_CLI_BATCH_H
#define TGI_CLI_BATCH_H

#include "cli.h"

#include <tegula_pool.h>

enum { BATCH_JOBS = 100000, BATCH_COLUMNS = 64, BATCH_AT_ONCE = 64, BATCH_PATH = 4096 };

typedef enum batch_state {
    BATCH_WAITS,
    BATCH_RUNS,
    BATCH_DONE,
    BATCH_COMPLETE, /* by an earlier run */
    BATCH_FAILED,
    BATCH_STOPPED
} batch_state;

typedef struct batch_job {
    const char **cell; /* of each column; NULL: not given */
    const char *input; /* cells, too */
    const char *mask;  /* NULL: of the command line */
    const char *output;
    const char *table;    /* of its objects (run_each.c); NULL: none */
    const char *hindered; /* why it cannot even begin; NULL: it can */
    int line;             /* of the table where its row begins; 0: it is of a folder */
    /* What became of it. */
    batch_state state;
    int code; /* exit code */
    double seconds;
    uint64_t peak_bytes;
    const char *message; /* NULL: none */
} batch_job;

typedef struct batch {
    cli *c;
    tg_pool *pool;      /* of all that lies here */
    const char *list;   /* the table, or the folder, for messages */
    const char *tables; /* of many images: the folder for their tables of objects; NULL: none */
    const tg_option *column[BATCH_COLUMNS];
    int n_columns;
    batch_job *job;
    int n, room;
    uint64_t budget_bytes, share_bytes; /* of all; of each */
    int at_once;
    int threads; /* of each; 0: as the command line says */
    int log;     /* descriptor; -1: none */
    bool log_failed;
    int ended[BATCH_STOPPED + 1]; /* how many, by state */
    tg_status
        alone; /* what the one image of a command for one ended in: the command does, too */
    double t0;
} batch;

/* Memory until the batch is closed. NULL: there is none, and the command says so. */
void *cli_batch_take(batch *b, size_t bytes);
char *cli_batch_text(batch *b, const char *text);
tg_status cli_batch_no_memory(batch *b);
/* A job more, with room for a cell of each column; NULL as above. */
batch_job *cli_batch_add(batch *b);
/* "jobs.csv: line 4" */
/* The column of that name; < 0: there is none. */
int cli_batch_column(const batch *b, const char *name);
/* What is to be removed is said, or nothing has to be: --mode outpainting. */
bool cli_batch_removes(const tg_opts *o);
const char *cli_batch_place(const batch *b, const batch_job *j, char *buf, size_t cap);
/* "a.mp4: TEXT"; the name alone is left out where the text says it. */
void cli_batch_put_of(FILE *to, const batch_job *j, const char *text);

tg_status cli_batch_read_table(batch *b, const char *path);
tg_status cli_batch_read_folders(batch *b);
/* Where outputs of folders go: made, where it is missing. */
tg_status cli_batch_output_folder(batch *b, char *buf, size_t cap);
/* And where that of one of these jobs goes, as 'OUTDIR/%s/%05d.png' has it. A table's are made by who wrote it. */
tg_status cli_batch_job_folder(batch *b, const batch_job *j);

/* Is a row's option one that a batch has for itself? */
bool cli_batch_own(const char *option);
/* The options of a job, as its process gets them; tg_opts_free. `with_shares`: with its part of budget and threads. */
tg_status cli_batch_options(batch *b, const batch_job *j, bool with_shares, tg_opts **out);
tg_status cli_batch_check(batch *b, const char *log);

tg_status cli_batch_share(batch *b);

tg_status cli_batch_log_open(batch *b);
void cli_batch_says_begin(batch *b, const batch_job *j);
void cli_batch_says_end(batch *b, const batch_job *j);
tg_status cli_batch_summary(batch *b);
const char *cli_batch_state(batch_state s);

/* One running job. */
typedef struct batch_child {
    batch_job *job; /* NULL: none runs here */
    int pid;
    int out, err; /* what it says; -1: it says no more */
    double t0, fraction;
    char line[16384]; /* of `out`, not yet complete */
    size_t n;
    bool too_long;  /* the rest of the line is passed over */
    char said[512]; /* the last line of `err` */
    size_t said_n;
    bool was_complete;
    char detail[768];
} batch_child;

tg_status cli_batch_child_start(batch *b, batch_job *j, batch_child *k);
/* Read what there is. */
void cli_batch_child_listen(batch *b, batch_child *k);
/* true: it has ended, and its job knows how. */
bool cli_batch_child_ended(batch *b, batch_child *k);

tg_status cli_batch_run(batch *b);

/* A plan of each, and their sum. `open`: a job of the list as it would run. TG_E_FORMAT: some were refused, each in its line. */
typedef tg_status cli_batch_open(batch *b, const batch_job *j, tg_job **out);
tg_status cli_batch_plan(batch *b, cli_batch_open *open);

/* run_each.c: many images are asked for, and tegula run of them. */
bool cli_each_asked(const cli *c);
/* One image for -o DIR/, and a network with one image as its output, which is one of many that happens to be alone: the
 * name of its output is written. It is asked of a job that is opened and closed again,
 * and leaves its model (tg_ctx_keep_model). */
bool cli_each_of_one(cli *c, char name[BATCH_PATH]);
/* -o is that name then, in a folder that is there, and what is finished is not made again. */
tg_status cli_each_take_name(cli *c, const char *name);
tg_status cli_run_each(cli *c);
tg_status cli_plan_each(cli *c);

/* An option is given that only a batch has. */
bool cli_batch_asked(const cli *c);
/* What inpaint is then. */
tg_status cli_cmd_batch(cli *c);

#endif
