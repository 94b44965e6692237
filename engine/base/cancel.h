/* cancel.h - the request to stop, for whoever works long: one flag for the process, set by a
 * signal handler or any thread, asked by all. */
#ifndef TGI_CANCEL_H
#define TGI_CANCEL_H

#include "engine/base/status.h"

/* Async-signal-safe. `signal_number` is kept; 0 withdraws the request. */
void tgi_cancel(int signal_number);
/* The signal of the request, or 0: go on. */
int tgi_cancel_signal(void);
/* TG_E_CANCELLED with its sentence when there is a request. */
tg_status tgi_check_cancel(tgi_err *err);

#endif
