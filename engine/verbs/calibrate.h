/* calibrate.h - measure what engine/plan/speed.h adds up. */
#ifndef TGI_CALIBRATE_H
#define TGI_CALIBRATE_H

#include "engine/base/ctx.h"
#include "engine/plan/speed.h"

/* Tell the context's watcher, when there is one, how much of it is done since `began`
 * (tgi_seconds). */
void tgi_calibrate_progress(tg_ctx *ctx, double began, double fraction);
/* Of the whole, by time. */
#define TGI_KERNELS_SHARE 0.6

/* Run each kind of kernel of every instruction set this processor has, on one thread and on
 * all. TG_E_CANCELLED, TG_E_NOMEM. */
tg_status tgi_calibrate_kernels(tgi_speeds *s, tgi_err *err);
/* Run small jobs in `folder` (made and removed inside it): conversion, codecs, what a run
 * takes beside its bands. Needs the speeds of kernels. */
tg_status tgi_calibrate_pipeline(tg_ctx *ctx, double began, const char *folder, tgi_speeds *s,
                                 tgi_err *err);

/* Both, kept where tgi_speeds_path says. *json: the object that was written; returned. */
tg_status tgi_calibrate(tg_ctx *ctx, char **json, tgi_err *err);

#endif
