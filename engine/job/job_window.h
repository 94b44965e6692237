/* job_window.h - networks that take several frames at once (--window N). */
#ifndef TGI_JOB_WINDOW_H
#define TGI_JOB_WINDOW_H

#include "engine/job/job.h"

/* Settings of the options, else of the descriptor. */
void tgi_job_window_pick(const tg_opts *o, tgi_settings *s);
/* Channels of one frame that the network takes, as its file says; 0: it does not. */
int64_t tgi_job_frame_channels(const tg_job *job);
/* Windows in place of frames, where the network takes several; *source is replaced. TG_E_ARG: its channels are no
 * such, or the frames come through a pipe. */
tg_status tgi_job_window_open(const tg_job *job, tgi_source **source, tgi_err *err);
/* What of an item's channels and slices is the frame itself, and the slice that is kept of the output. */
void tgi_job_window_map(tg_job *job);

#endif
