/* flow_sample.h - source `src` of a reference at the place that a flow points to from pixel p. */
#ifndef TGI_FLOW_SAMPLE_H
#define TGI_FLOW_SAMPLE_H

#include "kernels/ops/op_shared.h"
#include "kernels/ops/sample_place.h"

/* The flow, channels dx and dy of source `src`, and where it points to. */
typedef struct tgi_arrow {
    float dx, dy, x, y;
} tgi_arrow;

static inline tgi_arrow tgi_arrow_at(const tgi_call *call, int src, const tgi_px *p)
{
    const tgi_px x = {0, p->z, p->y, p->x}, y = {1, p->z, p->y, p->x};
    tgi_arrow a = {.dx = tgi_src_broadcast(call, src, -1, &x),
                   .dy = tgi_src_broadcast(call, src, -1, &y)};
    a.x = (float)p->x + a.dx;
    a.y = (float)p->y + a.dy;
    return a;
}

/* Two pixels of a row, weighed; what has no weight is not read. */
static inline float tgi_flow_pair(const tgi_call *call, int src, int64_t c, int64_t y,
                                  const tgi_between *x)
{
    float v[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (x->weight[i] != 0)
            v[i] =
                x->weight[i] * tgi_src_broadcast(call, src, -1, &(tgi_px){c, 0, y, x->lo + i});
    return v[0] + v[1];
}

/* Channel c, bilinear: rows first, then between them. */
static inline float tgi_flow_bilinear(const tgi_call *call, int src, int64_t c,
                                      const tgi_arrow *a)
{
    const tgi_desc *d = &call->ctx->src[src];
    const tgi_between y = tgi_between_of(a->y, d->dim[2]), x = tgi_between_of(a->x, d->dim[3]);
    float v[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (y.weight[i] != 0)
            v[i] = y.weight[i] * tgi_flow_pair(call, src, c, y.lo + i, &x);
    return v[0] + v[1];
}

#endif
