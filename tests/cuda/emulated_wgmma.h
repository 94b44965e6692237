/* emulated_wgmma.h - products by groups of four warps on the emulated device
 * (kernels/cuda/cu_wgmma.cuh).
 *
 * A product's factors are read through their descriptors when its first thread comes, and
 * looked at again when the last one has come and when the last one has waited: had they
 * changed, the kernel wrote what a product in flight reads, or a product ran ahead of a
 * barrier. A thread's sums are computed when it waits, not before. So found here:      wrong
 * descriptors, operands not there yet or overwritten too early, copies with no cu_fence_async
 * behind them, threads of a group that differ, sums that are never waited for, a first product
 * without cu_wgmma_fence; not found here:  sums touched in flight (they have the values of
 * before, or of after).
 *
 * Layouts with exchanged units, and others than K-major, are refused. */
#ifndef TG_EMULATED_WGMMA_H
#define TG_EMULATED_WGMMA_H

#include "tests/cuda/cuda_emulated.h"

/* Copies that are done when their barrier is waited for, not before; until then NaN lies there.
 */
void tgi_emulated_bulk_begin(uint64_t *barrier);
void tgi_emulated_bulk_copy(void *to, const void *from, unsigned bytes, uint64_t *barrier);
void tgi_emulated_bulk_wait(uint64_t *barrier, unsigned parity);
/* Four matrices, turned, of lanes 8i to 8i + 7 the addresses of matrix i's columns. */
void tgi_emulated_stmatrix_turned(void *column, const uint32_t (&r)[4]);
void tgi_emulated_wgmma_fence(void);
/* c (n / 2 numbers of this thread) := 64 x 16 times 16 x n, or += when `add`; brains: of
 * bfloat16 numbers. */
void tgi_emulated_wgmma(float *c, int n, uint64_t a, uint64_t b, int add, int brains);
void tgi_emulated_wgmma_commit(void);
void tgi_emulated_wgmma_wait(int groups_left);
/* 1: a thread of the running block has products that it has not waited for. */
int tg_emulated_wgmma_pending(void);

#endif
