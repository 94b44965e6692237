/* samples.h - do the samples of a batch stay apart in a network?
 *
 * It is worked out from shapes and shape arithmetic with one sample and with two. A value that
 * the inputs decide has one axis along which each sample has its own elements, in a row and in
 * the order of the samples; what an operator makes of that axis is known for each operator by
 * name, and whatever is not known to keep samples apart counts as if it did not. */
#ifndef TGI_SAMPLES_H
#define TGI_SAMPLES_H

#include "engine/graph/graph.h"

/* Of a graph in the axes of the model's file, without dead nodes: notes in g->together[axis] why
 * samples along that axis of the inputs do not stay apart; NULL: they do, or the file says that
 * it takes one. */
tg_status tgi_note_samples(tgi_graph *g, tgi_err *err);

#endif
