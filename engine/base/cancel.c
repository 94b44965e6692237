/* cancel.c - the flag that asks to stop, of the process and of a job. */
#include "engine/base/cancel.h"

#include <stdio.h>

/* A handler may run on one thread while another asks: sig_atomic_t is for one thread alone, an
 * atomic that needs no lock is for both. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may not wait for a lock");
static atomic_int requested;
static _Thread_local const tgi_flag *lent;

void tgi_cancel(int signal_number)
{
    atomic_store(&requested, signal_number);
}

int tgi_cancel_signal(void)
{
    const int signal_number = atomic_load(&requested);
    if (signal_number)
        return signal_number;
    return lent && atomic_load(lent) ? TGI_BY_CALLER : 0;
}

const char *tgi_cancel_by(void)
{
    static _Thread_local char text[32];
    const int signal_number = tgi_cancel_signal();
    if (signal_number == TGI_BY_CALLER)
        return "its caller";
    snprintf(text, sizeof text, "signal %d", signal_number);
    return text;
}

tg_status tgi_check_cancel(tgi_err *err)
{
    return tgi_cancel_signal() ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s", tgi_cancel_by())
                               : TG_OK;
}

const tgi_flag *tgi_cancel_lend(const tgi_flag *of_job)
{
    const tgi_flag *was = lent;
    lent = of_job;
    return was;
}

const tgi_flag *tgi_cancel_lent(void)
{
    return lent;
}
