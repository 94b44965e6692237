/* flat.h - run a node over whole arrays: tokens, tables of boxes, masks, whatever is no image.
 *
 * The operator's `eval` defines it, as it does for constants. Flat operands are dense where
 * they lie; images are copied into scratch first, and results that are images out of it. */
#ifndef TGI_FLAT_H
#define TGI_FLAT_H

#include "engine/plan/net.h"

typedef struct tg_flat_call {
    const tg_net *net;
    const tg_net_node *node;
    const tg_view *view;       /* per value of the net */
    char *scratch;             /* tgi_net_flat_scratch, 64-byte aligned */
    tg_box box[TG_OP_MAX_DST]; /* what is kept of results that are images */
} tg_flat_call;

/* Compute all results. Nothing is allocated. */
tg_status tgi_flat_run(const tg_flat_call *call, tgi_err *err);

#endif
