/* reduce.h - whole images that become a few numbers (tgi_reduce of kernels/op.h). */
#ifndef TGI_REDUCE_H
#define TGI_REDUCE_H

#include "kernels/granule.h"

/* How this node is made piece by piece; NULL: it is no such reduction. */
const tgi_reduce *tgi_reduce_of(const tgi_op *op, const tgi_op_ctx *ctx);
/* What a state gathers for it: TGI_GRANULES_MOMENTS or _EXTREMES. */
unsigned tgi_reduce_what(const tgi_reduce *r);
/* Bytes of what is gathered of one channel, at most. */
#define TGI_REDUCE_CHANNEL sizeof(tgi_moments)
/* Channels from `first` on of a complete state, into an array for all channels of the node. */
tg_status tgi_reduce_take(const tgi_reduce *r, const tgi_granules *g, int64_t first,
                          void *channels, tgi_err *err);
/* dst[0], dense, of such an array. */
void tgi_reduce_finish(const tgi_reduce *r, const tgi_op_ctx *ctx, const void *channels,
                       float *dst);
/* dst[0] of a reduction whose source 0 is there from edge to edge: the reference. */
tg_status tgi_ref_reduce(const tgi_call *call, const tgi_reduce *r, tgi_err *err);
/* The numbers that `finish` gave, to a view of one pixel. */
void tgi_put_numbers(const tgi_view *dst, const float *numbers);

#endif
