/* samples.h - do the samples of a batch stay apart in a network? */
#ifndef TGI_SAMPLES_H
#define TGI_SAMPLES_H

#include "engine/graph/graph.h"

/* `raw`: as it was imported, before tgi_graph_finish, so in the axes of the model's file; `in`:
 * its inputs with one sample each, which lie along axis[i]. TG_OK: computed with more samples in one batch, each has what
 * it has alone, or the network takes one alone. TG_E_UNSUPPORTED, with the node that mixes them.
 *
 * It is worked out from shapes with one sample and with two: an axis that has twice as many
 * elements is the one of the samples, and there is one such axis at most in every value that the
 * inputs decide. What keeps a shape and yet looks along that axis is known by name. */
tg_status tgi_graph_keeps_samples(const tgi_graph *raw, const tgi_desc *in, const int *axis,
                                  tgi_err *err);

#endif
