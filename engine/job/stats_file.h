/* stats_file.h - statistics of the input: collected, kept in the journal, read from and written
 * to --stats. */
#ifndef TGI_STATS_FILE_H
#define TGI_STATS_FILE_H

#include "engine/job/job.h"

struct tgi_journal;
/* TG_E_ARG: --stats is given and changes nothing. */
tg_status tgi_job_stats_check(const tg_job *job, int arrays, tgi_err *err);
tg_status tgi_job_stats_look(tg_job *job, tgi_err *err); /* read them now, if they are there */
tg_status tgi_job_stats_read(tg_job *job, tgi_stats *sets, int *found, tgi_err *err);
/* Keep them in the journal, with where they are from (`given`: a file); and take both from it: 1
 * when it has them. */
tg_status tgi_job_stats_keep(const tg_job *job, struct tgi_journal *j, const tgi_stats *sets,
                             int given, tgi_err *err);
int tgi_job_stats_kept(const tg_job *job, const struct tgi_journal *j, tgi_stats *sets,
                       int *given);
/* TG_E_CHANGED when an interrupted output used others than the file that is there holds, or
 * those of a file, and none is there now. */
tg_status tgi_job_stats_same(tg_job *job, const struct tgi_journal *j, tgi_err *err);
/* In the memory of `with`, whose source and tick may be NULL: the job's source, and what a
 * context shows. */
tg_status tgi_job_stats_collect(tg_job *job, const tgi_stats_args *with, tgi_stats *sets,
                                tgi_err *err);
/* Memory for with.scratch, where no other block of the plan is free for it. */
tg_status tgi_stats_scratch(tgi_reserve *mem, void **scratch, tgi_err *err);
/* Read, or collected and written: verify and preview. */
tg_status tgi_job_stats_get(tg_job *job, tgi_reserve *mem, void *rows, size_t rows_bytes,
                            tgi_stats *sets, tgi_err *err);
tg_status tgi_job_stats_write(tg_job *job, const tgi_stats *sets, tgi_err *err);
void tgi_job_stats_forget(tg_job *job); /* of an input that was changed: what it wrote goes */
void tgi_stats_json(tgi_jw *w, const tgi_stats *sets, int64_t n); /* member "channels" */

#endif
