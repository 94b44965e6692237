/* cpu_granule.h - statistics of kernels/granule.h on all threads: a box of rows into a state, and
 * every channel of an operand that is there from edge to edge. */
#ifndef TGI_CPU_GRANULE_H
#define TGI_CPU_GRANULE_H

#include "kernels/cpu/cpu_common.h"
#include "kernels/granule.h"

/* tgi_kernel_set.granules_add. */
tg_status TGS(tgi_granules_add)(tgi_granules *g, const tgi_operand *src, const tgi_box *box,
                                tgi_threads *threads, tgi_err *err);

/* Bytes for what `what` (TGI_GRANULES_*) says of source 0, on that many threads. */
size_t TGS(tgi_whole_bytes)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, unsigned what,
                            int threads);
/* All of the call's source 0 in a state in that much memory, 8-byte aligned. */
void TGS(tgi_whole_granules)(const tgi_call *call, unsigned what, void *mem, tgi_granules *out);
/* Moments of channels, one after another, behind it. */
const tgi_moments *TGS(tgi_moments_of)(const tgi_call *call, void *mem);
size_t TGS(tgi_moments_bytes)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int threads);

#endif
