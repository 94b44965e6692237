/* fingerprint.h - the text that says which job an interrupted output belongs to.
 *
 * One "key=value" per line. All keys but those of the plan must be equal for a run to go on;
 * `isa` is looked at first, because a run on another processor can often use the old one. */
#ifndef TGI_FINGERPRINT_H
#define TGI_FINGERPRINT_H

#include "engine/job/job.h"
#include "engine/out/fingerprint_text.h"

/* Text for the job as planned (input identity, model, kernels, settings, plan). tgi_free. */
tg_status tgi_fingerprint_make(const tg_job *job, char **text, tgi_err *err);
/* What --on-bad-tile says: "stop", "fill", "keep". */
const char *tgi_on_bad_word(const tg_job *job);
/* The lines of a job whose outputs are arrays, or images in a folder: what their bytes depend
 * on, so that of equal lines come equal files. */
tg_status tgi_fingerprint_tensors(const tg_job *job, tgi_lines *t, tgi_err *err);
/* The lines that every fingerprint begins with, whatever the job: program, bits, journal. */
void tgi_fingerprint_program(tgi_lines *t, const char *program);
/* The lines of what is chosen of an input: planes, axes, patterns, series, level. */
void tgi_fingerprint_chosen(tgi_lines *t, const tg_opts *o);

/* Size, time of change and a hash of the file that the source reads, as it was opened: of all
 * of a small one, else of both ends. Of a stack those of every file, and their names.
 * TG_E_NOT_FOUND, TG_E_FORMAT: a file of it is gone, or another has its name. */
tg_status tgi_input_identity(const tgi_source *s, char *buf, size_t cap, tgi_err *err);

#endif
