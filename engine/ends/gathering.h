/* gathering.h - the reductions of a stage while its rows pass (plan/staged.h): states that take
 * rows, and the numbers that come of them when the stage ends. */
#ifndef TGI_GATHERING_H
#define TGI_GATHERING_H

#include "engine/plan/staged.h"
#include "kernels/granule.h"

typedef struct tgi_gathering {
    const tgi_staged *plan; /* borrowed */
    int stage;              /* at hand */
    void *states;           /* plan->state_bytes, 64-byte aligned, borrowed */
    float *numbers;         /* plan->n_numbers, borrowed */
    tgi_threads *pool;
    const tgi_kernel_set *be; /* of the processor: adds rows, whatever computed them */
    tgi_granules *of;         /* plan->n_gathered, owned */
} tgi_gathering;

tg_status tgi_gathering_open(tgi_gathering *g, const tgi_staged *plan, void *states,
                             float *numbers, tgi_threads *pool, const tgi_kernel_set *be,
                             tgi_err *err);
void tgi_gathering_close(tgi_gathering *g);
/* Stage k begins: nothing is gathered. */
void tgi_gathering_begin(tgi_gathering *g, int k);
/* Stage k goes on with the states that lie there. TG_E_FORMAT: they are none. */
tg_status tgi_gathering_resume(tgi_gathering *g, int k, tgi_err *err);
/* Rows of output `o` of the stage, whole granules of them in x (tgi_axis_share). */
tg_status tgi_gathering_add(tgi_gathering *g, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err);
/* The same of moments of rows, as tgi_granules_add_rows takes them; `box` is all that `sum` is of, and
 * rows before `from` are there already. */
tg_status tgi_gathering_add_rows(tgi_gathering *g, int o, const double *sum, const tgi_box *box,
                                 int64_t from, tgi_err *err);
/* The stage is through: its numbers. */
tg_status tgi_gathering_end(tgi_gathering *g, tgi_err *err);

#endif
