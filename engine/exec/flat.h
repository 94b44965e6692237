/* flat.h - run a node over whole arrays: tokens, tables of boxes, masks, whatever is no image.
 *
 * The operator's `eval` defines it, as it does for constants. Flat operands are dense where
 * they lie; images are copied into scratch first, and results that are images out of it. */
#ifndef TGI_FLAT_H
#define TGI_FLAT_H

#include "engine/plan/net.h"

typedef struct tgi_flat_call {
    const tgi_net *net;
    const tgi_net_node *node;
    const tgi_view *view;        /* per value of the net */
    char *scratch;               /* tgi_net_flat_scratch, 64-byte aligned */
    tgi_box box[TGI_OP_MAX_DST]; /* what is kept of results that are images */
} tgi_flat_call;

/* Compute all results. Nothing is allocated. */
tg_status tgi_flat_run(const tgi_flat_call *call, tgi_err *err);

#endif
