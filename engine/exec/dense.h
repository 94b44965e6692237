/* dense.h - whole arrays as the executor's source and sink: one pass over arrays in memory, for
 * verify, previews and tests. Arrays are dense, in the graph's order of axes, and
 * float32 but for flat ones of another type. */
#ifndef TGI_DENSE_H
#define TGI_DENSE_H

#include "engine/exec/exec.h"

typedef struct tgi_dense_io {
    const tgi_net *net;
    const float *in[TGI_MAX_PORTS];
    float *out[TGI_MAX_PORTS]; /* NULL: that output is dropped */
} tgi_dense_io;

/* Callbacks for tgi_exec_io; user = tgi_dense_io. */
tg_status tgi_dense_load(void *io, int i, const tgi_view *view, const tgi_box *box,
                         tgi_err *err);
tg_status tgi_dense_store(void *io, int o, const tgi_view *view, const tgi_box *box,
                          tgi_err *err);
/* Copy the first channels over a box, from one layout to another. */
void tgi_copy_box(const tgi_view *from, const tgi_view *to, int64_t channels,
                  const tgi_box *box);
/* Zero the lanes behind the last channel over a box. */
void tgi_clear_lanes(const tgi_view *v, const tgi_box *box);
/* Planes that hold a box and no more, as a view in the image's coordinates. */
tgi_view tgi_planes_view(const float *at, const tgi_box *box, int64_t c);
/* A planar view over a dense array of value v. */
tgi_view tgi_dense_view(const tgi_net *net, int v, float *data);

#endif
