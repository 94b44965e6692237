/* split_norms.h - norms over pixels as two nodes, for who computes an image in passes. */
#ifndef TGI_SPLIT_NORMS_H
#define TGI_SPLIT_NORMS_H

#include "engine/graph/graph.h"

/* A graph that computes what `g` computes, bit for bit but for the norms, with more nodes and with
 * values behind those of `g`. `s`: shapes of `g` at any size. It borrows from `g` and is good for
 * inference and planning alone; tgi_split_norms_free before `g` goes. *out NULL: no norm. */
tg_status tgi_split_norms_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                             tgi_err *err);
void tgi_split_norms_free(tgi_graph **g);

#endif
