#include "engine/base/cancel.h"

#include <stdatomic.h>

/* A handler may run on one thread while another asks: sig_atomic_t is for one thread alone, an
 * atomic that needs no lock is for both. */
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler may not wait for a lock");
static atomic_int requested;

void tgi_cancel(int signal_number)
{
    atomic_store(&requested, signal_number);
}

int tgi_cancel_signal(void)
{
    return atomic_load(&requested);
}

tg_status tgi_check_cancel(tgi_err *err)
{
    const int signal_number = tgi_cancel_signal();
    return signal_number ? tgi_fail(err, TG_E_CANCELLED, "stopped by signal %d", signal_number)
                         : TG_OK;
}
