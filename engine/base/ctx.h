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

int tgi_ctx_keeps(const tg_ctx *ctx);
/* One thing that outlives a job, for the next one: what `key` names is handed over, and back. Keeping is asked for
 * (tg_ctx_keep_model); else it is freed at once, as is whatever was kept before. */
void tgi_ctx_keep(tg_ctx *ctx, const char *key, void *thing, void (*release)(void *thing));
/* NULL: nothing is kept under that key; what is kept under another goes. */
void *tgi_ctx_kept(tg_ctx *ctx, const char *key);

#endif
