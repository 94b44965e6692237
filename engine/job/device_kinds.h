/* device_kinds.h - what a device multiplies, and with which kinds of kernels. */
#ifndef TGI_DEVICE_KINDS_H
#define TGI_DEVICE_KINDS_H

#include "engine/job/job.h"

/* What the last bits of a result depend on: "avx512", or "cuda fp16 9.0 wgmma":
 * sums of tensor cores are another generation's in another generation. Returns buf. */
const char *tgi_job_computed_by(const tg_job *job, char *buf, size_t cap);
/* Choose precision and kinds of variants of the device. Why it cannot compute so; NULL: it can.
 */
const char *tgi_job_pick_kinds(tg_job *job);
/* Of a device that was chosen: take precision and kinds of `was`, in the words of
 * tgi_job_computed_by, where the options leave them open. */
void tgi_job_device_adopt(tg_job *job, const char *was);
/* What the device gains, measured now when nobody has yet; fills `m` with all that is known.
 * < 0: it cannot be measured. */
double tgi_job_gain(tg_job *job, tgi_gain which, tgi_measured *m);
/* For the next job; a folder that cannot be written is no failure. */
void tgi_job_keep_measured(tg_job *job, const tgi_measured *m);
/* 1: nothing but the plan decides whether the library is used. */
int tgi_job_library_is_open(const tg_job *job);
/* What convolutions and products of matrices multiply, as --precision spells
 * it, or "tf32". */
const char *tgi_job_precision(const tg_job *job);
/* TGI_NET_* of what the job's settings and device allow, for its own backend. */
unsigned tgi_job_net_flags(const tg_job *job);

#endif
