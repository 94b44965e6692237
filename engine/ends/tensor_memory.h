/* tensor_memory.h - arrays that lie in the caller's memory (tegula_array.h). */
#ifndef TGI_TENSOR_MEMORY_H
#define TGI_TENSOR_MEMORY_H

#include "engine/ends/tensors.h"

/* 1: outputs go to memory, and no files are written. */
int tgi_memory_has_sinks(const tg_opts *o);
/* Every name given is one of the network's. */
tg_status tgi_memory_check_names(const tg_opts *o, const tgi_graph *g, tgi_err *err);
/* The source of input i, the sink of output o, or NULL. */
const tg_array *tgi_memory_source(const tgi_tensor_set *set, int i);
const tg_array *tgi_memory_sink(const tgi_tensors *t, int o);

/* Its type and shape into in->desc, its strides into in->step; plan made of it. */
tg_status tgi_memory_open_source(const tg_array *array, const char *port, tgi_tensor_in *in,
                                 tgi_err *err);
/* The arrays as they are now, before pixels move: sources as they were planned, sinks as the
 * outputs are. */
tg_status tgi_memory_begin_sources(tgi_tensors *t, tgi_err *err);
tg_status tgi_memory_begin(tgi_tensors *t, tgi_err *err);

#endif
