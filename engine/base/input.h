/* input.h - small things that a user named to be read, whatever they are: a file, a terminal, a
 * pipe (`--config <(make_job)`).
 *
 * A pipe may be silent for ever and send for ever. Reading one waits for what comes, ends when
 * the caller is asked to stop (tg_cancel), and gives up after a silence; who reads says how
 * much is taken. Opening never waits. */
#ifndef TGI_INPUT_H
#define TGI_INPUT_H

#include "engine/base/status.h"

#include <stddef.h>

#define TGI_INPUT_SILENCE 30 /* seconds without a byte */

typedef struct tgi_input {
    const char *path; /* the caller's */
    int fd;           /* -1: closed */
    int stream;       /* no file: what it gives it gives once */
    double since;     /* when the last byte came */
    int patient;      /* a silence does not end it: who sends may compute */
} tgi_input;

/* 1: the path is there and is no regular file and no folder. */
int tgi_input_is_stream(const char *path);
/* Standard input, whatever it is; the process keeps its own. TG_E_NOT_FOUND: it is closed. */
tg_status tgi_input_open_stdin(tgi_input *out, tgi_err *err);
/* TG_E_NOT_FOUND, TG_E_FORMAT: a folder or a disk. */
tg_status tgi_input_open(const char *path, tgi_input *out, tgi_err *err);
/* At most `cap` bytes; *n == 0: the end. TG_E_CANCELLED, TG_E_IO. */
tg_status tgi_input_read(tgi_input *in, void *bytes, size_t cap, size_t *n, tgi_err *err);
void tgi_input_close(tgi_input *in);

/* All of it, at most `most` bytes (else TG_E_FORMAT), with a 0 behind. Returned; tgi_free. */
tg_status tgi_input_load(const char *path, size_t most, char **text, size_t *n, tgi_err *err);

#endif
