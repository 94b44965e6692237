/* ctx.h - the context as the files behind the public calls see it. Defined in tegula.c. */
#ifndef TGI_CTX_H
#define TGI_CTX_H

#include "engine/base/status.h"

/* The detail slot of a context, emptied for a new public call; NULL for a NULL context. */
tgi_err *tgi_ctx_err(tg_ctx *ctx);

#endif
