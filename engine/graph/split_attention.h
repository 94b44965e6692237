/* split_attention.h - attention of pixels as operators over arrays, for devices without a kernel
 * for it. */
#ifndef TGI_SPLIT_ATTENTION_H
#define TGI_SPLIT_ATTENTION_H

#include "engine/graph/graph.h"

/* A graph that computes what `g` computes, each PixelAttention by MatMul and Softmax over arrays,
 * for the one size of `s`. It borrows from `g` and is good for inference and planning alone;
 * tgi_split_attention_free before `g` goes. *out NULL: there is no PixelAttention. */
tg_status tgi_split_attention_of(const tgi_graph *g, const tgi_shapes *s, tgi_graph **out,
                                 tgi_err *err);
void tgi_split_attention_free(tgi_graph **g);

#endif
