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
/* The lines of what is chosen of an input: planes, axes, patterns, series, level. Entries of axes are those that the
 * source has (NULL: none is chosen), as numbers, however they were written. `planes`: what is chosen of those. */
tg_status tgi_fingerprint_chosen(tgi_lines *t, const tg_opts *o, const tgi_source *s,
                                 const tgi_planes_spec *planes, tgi_err *err);

/* The lines of the files that a source reads, as they were opened. "input": size and a hash, of all of
 * what is small, else of both ends of each file, with its time of change; of a stack the names, too. Where
 * it is the ends, TGI_INPUT_CHANGED says when anything of the files was changed last (tgi_same_input
 * in go_on.h). TG_E_NOT_FOUND, TG_E_FORMAT: a file is gone, or another has its name. */
tg_status tgi_fingerprint_input(tgi_lines *t, const tgi_source *s, tgi_err *err);
/* One line of that form for other files. */
tg_status tgi_fingerprint_files(tgi_lines *t, const char *key, tgi_held_files *files,
                                const void *of, tgi_err *err);

#endif
