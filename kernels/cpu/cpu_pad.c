/* cpu_pad.c - Pad: rows copied, their margins pixel by pixel, any mix of layouts and segments.
 */
#include "kernels/cpu/cpu_common.h"

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_pad p;
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           lay->src_segs[0] > 0 && !ctx->const_src[0] &&
           (ctx->src[0].rank == 4 || ctx->src[0].rank == 5) &&
           tgi_pad_map(ctx, &p, NULL) == TG_OK;
}

/* The coordinate that pixel o of spatial axis i is a copy of; -1: the constant. */
static int64_t source(const tgi_pad *p, const tgi_desc *src, int i, int64_t o)
{
    const int at = src->rank - 3 + i;
    return at < 2 ? 0 : tgi_pad_source(p->mode, o - p->p0[at], src->dim[at]);
}

/* Pixels [x0,x1) of a part, none of them in the middle of a copied row: `dst` at column 0, the
 * lanes of source row (z,y), or none of them where the row itself is margin. */
static void margin(const tgi_call *call, const tgi_pad *pad, const tgi_lane *lane, int n,
                   int64_t x0, int64_t x1, float *dst)
{
    const int cb = call->dst[0].cb;
    for (int64_t x = x0; x < x1; x++) {
        const int64_t at = lane ? source(pad, &call->ctx->src[0], TGI_X, x) : -1;
        for (int i = 0; i < n; i++)
            dst[x * cb + i] = at < 0 ? pad->value : lane[i].p[at * lane[i].step];
    }
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const tgi_pad *pad = arg;
    const tgi_desc *src = &call->ctx->src[0];
    const tgi_view *dv = &call->dst[0];
    const int cb = dv->cb, n = (int)tgi_min64(cb, dv->c - p->b0 * cb);
    const int64_t z = source(pad, src, TGI_Z, p->z), y = source(pad, src, TGI_Y, p->y);
    const int64_t p0 = pad->p0[src->rank - 1], width = src->dim[src->rank - 1];
    const int64_t lo = tgi_min64(tgi_max64(p->x0, p0), p->x1); /* [lo,hi) is copied */
    const int64_t hi = tgi_max64(lo, tgi_min64(p->x1, p0 + width));
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) - dv->x0 * cb;
    tgi_lane lane[TGI_L], inner[TGI_L];
    if (z < 0 || y < 0) {
        margin(call, pad, NULL, n, p->x0, p->x1, dst);
        return 0;
    }
    for (int i = 0; i < n; i++) {
        lane[i] = inner[i] = TGS(tgi_lane_of)(&call->src[0], p->b0 * cb + i, z, y);
        inner[i].p += (lo - p0) * inner[i].step;
    }
    margin(call, pad, lane, n, p->x0, lo, dst);
    TGS(tgi_gather_lanes)(inner, n, hi - lo, dst + lo * cb, cb);
    margin(call, pad, lane, n, hi, p->x1, dst);
    return 0;
}

static void run(const tgi_call *call)
{
    tgi_pad p;
    if (tgi_pad_map(call->ctx, &p, NULL) == TG_OK)
        TGS(tgi_each_part)(call, part, &p);
}

const tgi_variant TGS(tgi_pad_copy) = {
    .name = "pad", .op = "Pad", .accepts = accepts, .run = TGI_RUN(run)};
