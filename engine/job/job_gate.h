/* job_gate.h - all that a job writes and reads passes the gate (engine/out/gate.h); its side
 * files. */
#ifndef TGI_JOB_GATE_H
#define TGI_JOB_GATE_H

#include "engine/job/job.h"

/* All that the job writes and reads passes the gate (engine/out/gate.h). */
struct tgi_gate;
tg_status tgi_job_gate(const tg_job *job, tgi_err *err);
tg_status tgi_gate_reads_source(const struct tgi_gate *g, const tgi_source *s, const char *path,
                                tgi_err *err);
/* The same for one more file that is made of what a job is: it is none that the job reads. */
tg_status tgi_job_spares(const tg_job *job, const char *path, const char *what, tgi_err *err);
/* Before a run or verify touches anything: TG_E_EXISTS where --log or --plot names what is
 * there, -y is not given and no interrupted run left it. */
tg_status tgi_job_sides_look(tg_job *job, tgi_err *err);
/* A run that ended in `st`, with nothing to go on from, and that the same command is to begin
 * anew: remove what this job made of them, so that it finds nothing in its way. */
void tgi_job_sides_drop(const tg_job *job, tg_status st);

#endif
