/* cpu_granule.h - statistics of kernels/granule.h on all threads: a box of rows into a state, and
 * every channel of an operand that is there from edge to edge. */
#ifndef TGI_CPU_GRANULE_H
#define TGI_CPU_GRANULE_H

#include "kernels/cpu/cpu_common.h"
#include "kernels/granule.h"

/* tgi_kernel_set.granules_add. */
tg_status TGS(tgi_granules_add)(tgi_granules *g, const tgi_operand *src, const tgi_box *box,
                                tgi_threads *threads, tgi_err *err);

/* Moments of the channels of the call's source 0, in that much memory, 8-byte aligned. */
const tgi_moments *TGS(tgi_moments_of)(const tgi_call *call, void *mem);
size_t TGS(tgi_moments_bytes)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int threads);

#endif
