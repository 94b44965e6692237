/* ctx.h - the context as the files behind the public calls see it. Defined in tegula.c. */
#ifndef TGI_CTX_H
#define TGI_CTX_H

#include "engine/base/status.h"

/* The detail slot of a context, emptied for a new public call; NULL for a NULL context. */
tgi_err *tgi_ctx_err(tg_ctx *ctx);
/* Tell the watcher; at most some ten times a second reach it (a phase's end always does). */
void tgi_ctx_progress(tg_ctx *ctx, const tg_progress *p);
/* One event for the log callback. */
void tgi_ctx_log(tg_ctx *ctx, tg_log_level level, const char *fmt, ...) TGI_PRINTF(3, 4);

#endif
