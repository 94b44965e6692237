/* job_open.h - open a job: options, network and input bound to each other; and what it holds of
 * this machine. */
#ifndef TGI_JOB_OPEN_H
#define TGI_JOB_OPEN_H

#include "engine/ends/load.h"
#include "engine/job/job.h"
#include "engine/memory/monitor.h"

/* When the input has been read: what was not looked at of it. Once. */
void tgi_job_warn_of_surplus(tg_job *job);
/* A sentence about one of the bits tgi_surplus, behind a file's name. */
const char *tgi_surplus_text(enum tgi_surplus bit);
/* Keep a warning for the receipt and tell the log. */
void tgi_job_warn(tg_job *job, const char *fmt, ...) TGI_PRINTF(2, 3);
/* 1: the network has one output beside what is handed from frame to frame, and that is an image. */
int tgi_job_is_one_image(const tg_job *job);
tg_status tgi_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out, tgi_err *err);
void tgi_job_close(tg_job **job);
/* Open the input again to hold as little as it can: a plan that does not fit may fit then, at
 * the cost of decoding pixels more than once. 0: that is no less, or was done, or the file is
 * another one now. */
int tgi_job_spare_source(tg_job *job);
/* What is left of a budget for what a file says of itself, which is read before anything is planned. */
static inline size_t tgi_text_budget(size_t budget)
{
    const uint64_t held = tgi_mem_measured();
    return budget > held ? budget - (size_t)held : 1;
}
/* Of a budget, what a reader may allocate for decoding. Nothing runs in 2 MiB: what is opened
 * in that much can be planned, and the refusal has a figure. */
static inline size_t tgi_decode_budget(size_t budget)
{
    const size_t least = (size_t)2 << 20;
    return (budget > least ? budget : least) / 4;
}
/* The least budget of which that is so many bytes. */
static inline uint64_t tgi_decode_needs(uint64_t bytes)
{
    return bytes < UINT64_MAX / 4 ? 4 * bytes : UINT64_MAX;
}
/* What --scratch says; auto: where the machine's temporary files go. NULL: none. A view. */
const char *tgi_scratch_folder(const tg_opts *o, const tgi_machine *m);
/* After a reader's opening: where nobody tries what would be enough, the sentence names it. */
tg_status tgi_decode_refused(tg_status st, tgi_err *err);
/* What the process holds now that is this job's, the program's or the libraries'. */
size_t tgi_job_process_bytes(tg_job *job);
/* TG_E_ARG for a job that was planned for another machine: it cannot `act` ("run") there. */
tg_status tgi_job_needs_here(const tg_job *job, const char *act, tgi_err *err);
/* The maps of an item's values, by its statistics among `sets` (NULL: none are taken): the loader (NULL: there is none)
 * turns to the item, and *out leads from the network's values to the file's. */
void tgi_job_turn(const tg_job *job, const tgi_stats *sets, int64_t item, tgi_loader *loader,
                  tgi_affine *out);

#endif
