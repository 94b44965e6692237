/* refusal.h - what is said when memory is refused: figures, holders, and changes that were
 * planned and fit. Called at the public door, after a call failed with TG_E_BUDGET or
 * TG_E_NOMEM and before the job is closed. */
#ifndef TGI_REFUSAL_H
#define TGI_REFUSAL_H

#include "engine/base/status.h"
#include "engine/settings/opts.h"
#include "tegula_memory.h"

typedef enum tgi_verb { TGI_DO_RUN, TGI_DO_VERIFY, TGI_DO_PREVIEW, TGI_DO_COPY } tgi_verb;

/* Fill *out for the refusal in `err`; `opts` are the command's, `job` what was opened of it or
 * NULL. Takes as long as planning a few times does, some seconds at most. */
void tgi_refusal_explain(const tgi_err *err, tgi_verb verb, const tg_opts *opts,
                         const tg_job *job, tg_refusal *out);

#endif
