/* methods.h - what a receipt says for the Methods section of a paper: what was computed, and
 * where the result is not that of one pass over the whole image. */
#ifndef TGI_METHODS_H
#define TGI_METHODS_H

#include "engine/job/job.h"

/* One paragraph. Returned, tgi_free; NULL: no memory. `stats_of_file`: --stats gave the
 * statistics. */
char *tgi_job_methods(const tg_job *job, const tg_run_result *res, int stats_of_file);

#endif
