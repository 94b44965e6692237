/* carried.h - what a network hands from one frame to the next (--state): whole arrays, of which the network reads
 * those of the frame before while it fills those of this one.
 *
 * Arrays are dense float32 in the graph's order of axes, one behind the other in memory that the caller reserves. */
#ifndef TGI_CARRIED_H
#define TGI_CARRIED_H

#include "engine/plan/net.h"

typedef struct tgi_carried_value {
    int in, out;      /* ports */
    size_t bytes;     /* of one array */
    char *now, *next; /* of the frame before; of this frame */
} tgi_carried_value;

typedef struct tgi_carried {
    const tgi_net *net; /* borrowed */
    int n;              /* 0: nothing is carried */
    tgi_carried_value value[TGI_MAX_PORTS];
} tgi_carried;

/* What they take at these shapes; 0: nothing is carried. */
size_t tgi_carried_bytes(const tgi_graph *g, const tgi_shapes *s);
/* `memory` is borrowed; all zeros then. */
void tgi_carried_open(tgi_carried *c, const tgi_graph *g, const tgi_net *net, void *memory);
/* 1: input `port` is one of them. */
int tgi_carried_is(const tgi_graph *g, int port);
/* Rows of input `port`; where nothing is carried zeros. */
void tgi_carried_load(const tgi_carried *c, int port, const tgi_view *view, const tgi_box *box);
/* Rows of output `port`, if it is carried. */
void tgi_carried_store(const tgi_carried *c, int port, const tgi_view *view,
                       const tgi_box *box);
/* The frame is done: what it filled is that of the frame before. */
void tgi_carried_turn(tgi_carried *c);

#endif
