/* dense.h - whole arrays as the executor's source and sink: one pass over arrays in memory, for
 * verify, previews and tests. Arrays are dense, in the graph's order of axes, and
 * float32 but for flat ones of another type. */
#ifndef TGI_DENSE_H
#define TGI_DENSE_H

#include "engine/exec/exec.h"

typedef struct tg_dense_io {
    const tg_net *net;
    const float *in[TG_MAX_PORTS];
    float *out[TG_MAX_PORTS]; /* NULL: that output is dropped */
} tg_dense_io;

/* Callbacks for tg_exec_io; user = tg_dense_io. */
tg_status tgi_dense_load(void *io, int i, const tg_view *view, const tg_box *box, tgi_err *err);
tg_status tgi_dense_store(void *io, int o, const tg_view *view, const tg_box *box,
                          tgi_err *err);
/* Copy the first channels over a box, from one layout to another. */
void tgi_copy_box(const tg_view *from, const tg_view *to, int64_t channels, const tg_box *box);
/* Zero the lanes behind the last channel over a box. */
void tgi_clear_lanes(const tg_view *v, const tg_box *box);
/* A planar view over a dense array of value v. */
tg_view tgi_dense_view(const tg_net *net, int v, float *data);

#endif
