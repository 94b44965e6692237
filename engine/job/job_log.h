/* job_log.h - a job's tracker: its log and its plot, where the options say. */
#ifndef TGI_JOB_LOG_H
#define TGI_JOB_LOG_H

#include "engine/job/job.h"
#include "engine/memory/tracker.h"

/* Start to watch. `go_on`: the job continues an interrupted one, and so does its log. TG_E_ARG
 * (--plot without a name, and no output to name it after), TG_E_IO, TG_E_NOMEM. */
tg_status tgi_job_tracker_open(tg_job *job, int go_on, tg_tracker **out, tgi_err *err);
/* Watch what follows in the same job: its log goes on where it is a file; a pipe has had its end. */
tg_status tgi_job_tracker_again(tg_job *job, tg_tracker **out, tgi_err *err);
/* Largest measured memory so far; NULL allowed (0). */
uint64_t tgi_job_tracker_peak(tg_tracker *t);
/* Stop, draw, and return the peak. What goes wrong with log or plot is a warning: the job's
 * work is done. NULL allowed (0). */
uint64_t tgi_job_tracker_close(tg_job *job, tg_tracker **t);

/* An earlier run completed the output, and nothing was watched: --plot draws nothing then. */
void tgi_job_warn_of_no_picture(tg_job *job);

#endif
