/* plan_report.h - the plan in lines, as the public structs and as JSON. */
#ifndef TGI_PLAN_REPORT_H
#define TGI_PLAN_REPORT_H

#include "engine/job/job.h"

/* One more line of the plan; `fmt` takes `arg`. Lines beyond the last are left
 * out. */
void tgi_job_add_line(tgi_plan_part *p, const char *name, uint64_t bytes, tg_plan_kind kind,
                      uint64_t free_bytes, const char *fmt, const char *arg);
/* Its line for the margin, where there is one. */
void tgi_job_add_margin(tgi_plan_part *p);
/* The plan in public form, and as JSON. After tgi_job_plan. */
void tgi_job_plan_info(const tg_job *job, tg_plan_info *out);
tg_status tgi_job_plan_json(tg_job *job, int why, char **json, tgi_err *err);
/* What lost, or, where no plan stands, what was tried. */
tg_status tgi_job_rejected_json(const tg_job *job, char **json, tgi_err *err);

#endif
