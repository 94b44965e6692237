/* gate.h - the check that every path passes before it is written.
 *
 *  1. A file that a command reads is never replaced by one that it writes, whatever -y says: an
 *     image may exist only once.
 *  2. No two files that it writes are the same one.
 *  3. A device or a pipe is never replaced by a file.
 *
 * Two names may mean the same file (links), so files are compared, not names.
 *
 *     tgi_gate g = {0};
 *     tgi_gate_options_write(&g, opts, &err)               first all that is written,
 *     tgi_gate_writes(&g, path, "the output", how, &err)
 *     tgi_gate_options_read(&g, opts, &err)                then all that is read
 *     tgi_gate_reads(&g, path, "the input", &err)
 *     tgi_gate_close(&g)
 *
 * The gate looks and changes nothing. What opens and renames files (io/file_ops.h,
 * io/side_file.h) checks once more that links at our own names are not followed and that
 * devices stay. */
#ifndef TGI_GATE_H
#define TGI_GATE_H

#include "engine/settings/opts.h"
#include "io/side_file.h"

#include <sys/types.h>

/* The list of outputs that are about to get their names (tensor_names.h). */
#define TGI_NAMES_FILE "/.tegula.names" /* behind the folder's name */
#define TGI_NAMES_HEAD "tegula: names=" /* what it begins with */

/* How a path is written. */
typedef enum tgi_gate_how {
    TGI_GATE_FILE, /* a file takes its place: a link that is there is replaced, not followed */
    TGI_GATE_OWN,  /* a name that is made from another one: no link may be there either */
    TGI_GATE_STREAM, /* written through: also a pipe, a terminal, /dev/null */
    TGI_GATE_JOB     /* as STREAM, and it may be the job file that was read */
} tgi_gate_how;

typedef struct tgi_gate_place {
    char *path;
    const char *what; /* static: "the output" */
    tgi_gate_how how;
    int there; /* a regular file */
    dev_t dev; /* of the file; where it is not there, of the nearest folder above that is */
    ino_t ino;
    size_t rest; /* what of the path lies in that folder */
} tgi_gate_place;

typedef struct tgi_gate {
    tgi_gate_place *at;
    int n, cap;
    int n_there; /* of them */
    int yes;     /* -y is among the options */
} tgi_gate;

/* TG_E_ARG when it is another write's, TG_E_EXISTS when what is there is no file. */
tg_status tgi_gate_writes(tgi_gate *g, const char *path, const char *what, tgi_gate_how how,
                          tgi_err *err);
/* An output, and every name that is made from its own; a folder of outputs has the list of what
 * could not be decoded, and that of outputs which get their names (engine/ends/tensor_names.h).
 * What stands at such a name and is not ours is TG_E_EXISTS: with -y a report is replaced, but
 * nothing that the user never named. */
tg_status tgi_gate_writes_output(tgi_gate *g, const char *path, tgi_err *err);
tg_status tgi_gate_writes_folder(tgi_gate *g, const char *path, tgi_err *err);
/* A file that grows as PATH and an ending, and takes its place when it is complete; a pipe is
 * written to. `begins`: what a complete one has at its beginning. */
tg_status tgi_gate_writes_whole(tgi_gate *g, const char *path, const char *what,
                                const char *ending, const char *begins, tgi_err *err);
/* TG_E_ARG when it is one of the writes. NULL: nothing. */
tg_status tgi_gate_reads(const tgi_gate *g, const char *path, const char *what, tgi_err *err);
/* All that the options name. A folder as the output names nothing yet. */
tg_status tgi_gate_options_write(tgi_gate *g, const tg_opts *o, tgi_err *err);
tg_status tgi_gate_options_read(const tgi_gate *g, const tg_opts *o, tgi_err *err);
void tgi_gate_close(tgi_gate *g);

/* How a side file (log, plot, trace, save) may be opened: without -y not when it is there,
 * unless an interrupted run of this output left it, and it is such a file. */
tgi_side_how tgi_gate_side(const tg_opts *o, tgi_opt side, const char *path);
/* 1 when an interrupted run of this output is there. */
int tgi_gate_interrupted(const char *output);
/* Where --plot draws and --log, or --plot, writes numbers, into buf; NULL: neither. */
const char *tgi_gate_plot(const tg_opts *o, char *buf, size_t cap);
const char *tgi_gate_log(const tg_opts *o, char *buf, size_t cap);

#endif
