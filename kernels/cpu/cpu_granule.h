/* cpu_granule.h - mean and variance of every channel of an operand that is there from edge to
 * edge, on all threads; the bits are those of kernels/granule.h. */
#ifndef TGI_CPU_GRANULE_H
#define TGI_CPU_GRANULE_H

#include "kernels/cpu/cpu_common.h"
#include "kernels/granule.h"

/* Bytes for the statistics of a value of this shape. */
size_t TGS(tgi_moments_bytes)(const tgi_desc *full);
/* Moments of the channels of the call's source 0, in that much memory, 8-byte aligned. */
const tgi_moments *TGS(tgi_moments_of)(const tgi_call *call, void *mem);

#endif
