/* fingerprint.h - the text that says which job an interrupted output belongs to.
 *
 * One "key=value" per line. All keys but those of the plan must be equal for a run to go on;
 * `isa` is looked at first, because a run on another processor can often use the old one. */
#ifndef TGI_FINGERPRINT_H
#define TGI_FINGERPRINT_H

#include "engine/job/fingerprint_text.h"
#include "engine/job/job.h"

/* Text for the job as planned (input identity, model, kernels, settings, plan). tgi_free. */
tg_status tgi_fingerprint_make(const tg_job *job, char **text, tgi_err *err);
/* The lines that every fingerprint begins with, whatever the job: program, bits, journal. */
void tgi_fingerprint_program(tgi_lines *t, const char *program);
/* The lines of what is chosen of an input: planes, axes, patterns, series, level. */
void tgi_fingerprint_chosen(tgi_lines *t, const tg_opts *o);

/* Size, time of change and a hash of a file: of all of it up to `limit` bytes, else of both
 * ends. TG_E_NOT_FOUND. */
tg_status tgi_file_identity(const char *path, int64_t limit, char *buf, size_t cap,
                            tgi_err *err);
/* The same of every file that the source `s`, opened as `path`, reads: names count too. */
tg_status tgi_input_identity(const tg_source *s, const char *path, char *buf, size_t cap,
                             tgi_err *err);

#endif
