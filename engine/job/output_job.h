/* output_job.h - which job an output belongs to: the fingerprint of the run that is at work on it, or that made it. */
#ifndef TGI_OUTPUT_JOB_H
#define TGI_OUTPUT_JOB_H

#include "engine/base/status.h"

/* Its lines (out/fingerprint_text.h), of OUT.journal, else of the receipt beside an output that is there. Returned;
 * tgi_free. NULL: there is none, or it cannot be read. */
char *tgi_output_job(const char *output);

#endif
