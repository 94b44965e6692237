/* cancel.h - the request to stop, for whoever works long: one flag for the process, set by a
 * signal handler or any thread, and one for each job, which the threads that work for it look
 * at beside. */
#ifndef TGI_CANCEL_H
#define TGI_CANCEL_H

#include "engine/base/status.h"

#include <stdatomic.h>

typedef atomic_int tgi_flag;

/* Async-signal-safe. `signal_number` is kept; 0 withdraws the request. */
void tgi_cancel(int signal_number);
/* The signal of the request, or 0: go on. TGI_BY_CALLER: the request is this thread's job's. */
int tgi_cancel_signal(void);
#define TGI_BY_CALLER (-1)
/* Who asked, in words: "signal 2". View, until this thread asks again. */
const char *tgi_cancel_by(void);
/* TG_E_CANCELLED with its sentence when there is a request. */
tg_status tgi_check_cancel(tgi_err *err);

/* This thread works for the job with that flag, borrowed (NULL: for none); returns what it
 * worked for. Who starts a thread hands it the flag of its own. */
const tgi_flag *tgi_cancel_lend(const tgi_flag *of_job);
const tgi_flag *tgi_cancel_lent(void);

#endif
