/* fingerprint.h - the text that says which job an interrupted output belongs to.
 *
 * One "key=value" per line. All keys but those of the plan must be equal for a run to go on;
 * `isa` is looked at first, because a run on another processor can often use the old one. */
#ifndef TGI_FINGERPRINT_H
#define TGI_FINGERPRINT_H

#include "engine/job/job.h"

/* Text for the job as planned (input identity, model, kernels, settings, plan). tgi_free. */
tg_status tgi_fingerprint_make(const tg_job *job, char **text, tgi_err *err);
/* Value of a key in a stored text, NUL-terminated into buf; 0 when absent or too long. */
int tgi_fingerprint_get(const char *text, size_t n, const char *key, char *buf, size_t cap);
/* TG_E_CHANGED naming the first key that differs; keys beginning with "plan" are not compared.
 */
tg_status tgi_fingerprint_compare(const char *stored, size_t n, const char *ours, tgi_err *err);

/* Size, time of change and a hash of a file: of all of it up to `limit` bytes, else of both
 * ends. TG_E_NOT_FOUND. */
tg_status tgi_file_identity(const char *path, int64_t limit, char *buf, size_t cap,
                            tgi_err *err);
/* The same of every file that the source `s`, opened as `path`, reads: names count too. */
tg_status tgi_input_identity(const tg_source *s, const char *path, char *buf, size_t cap,
                             tgi_err *err);

#endif
