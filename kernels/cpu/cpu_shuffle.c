/* cpu_shuffle.c - moving without computing: DepthToSpace, SpaceToDepth, Slice, Concat as a
 * copy.
 *
 * Every channel of a result row is some channel of a source row with its own pixel step, so all
 * of them are "name the source of each lane, then gather", for any mix of planar and blocked
 * operands and of segments that start in the middle of a block. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

static int lanes_ok(const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           lay->src_segs[0] > 0;
}

static int accepts_shuffle(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lanes_ok(lay) && ctx->src[0].rank == 4;
}

/* Lanes of block b that exist. */
static int lanes_of(const tgi_view *v, int64_t b)
{
    return (int)tgi_min64(v->cb, v->c - b * v->cb);
}

/* Columns x, x + b, x + 2b, ... of a row come from one source row each: a phase at a time.
 * @source ONNX operator DepthToSpace, modes DCR and CRD. */
static int depth_to_space_part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const d2s_attrs *a = arg;
    const tgi_view *dv = &call->dst[0];
    const int64_t b = a->blocksize;
    const int n = lanes_of(dv, p->b0);
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) - dv->x0 * dv->cb;
    for (int64_t x = p->x0; x < p->x1 && x < p->x0 + b; x++) {
        const int64_t k = p->y % b * b + x % b;
        tgi_lane lane[TGI_L];
        for (int i = 0; i < n; i++) {
            const int64_t c = p->b0 * dv->cb + i;
            lane[i] = TGS(tgi_lane_of)(
                &call->src[0], a->mode == 0 ? k * dv->c + c : c * b * b + k, p->z, p->y / b);
            lane[i].p += x / b * lane[i].step;
        }
        TGS(tgi_gather_lanes)(lane, n, (p->x1 - x - 1) / b + 1, dst + x * dv->cb, b * dv->cb);
    }
    return 0;
}

/* Channel (i * b + j) * C + c is channel c at row y * b + i, column x * b + j.
 * @source ONNX operator SpaceToDepth. */
static int space_to_depth_part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const d2s_attrs *a = arg;
    const tgi_view *dv = &call->dst[0];
    const int64_t b = a->blocksize, channels = call->ctx->src[0].dim[1];
    const int n = lanes_of(dv, p->b0);
    tgi_lane lane[TGI_L];
    for (int i = 0; i < n; i++) {
        const int64_t c = p->b0 * dv->cb + i, k = c / channels;
        lane[i] = TGS(tgi_lane_of)(&call->src[0], c % channels, p->z, p->y * b + k / b);
        lane[i].p += (p->x0 * b + k % b) * lane[i].step;
        lane[i].step *= b;
    }
    TGS(tgi_gather_lanes)
    (lane, n, p->x1 - p->x0, tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb,
     dv->cb);
    return 0;
}

static void run_depth_to_space(const tgi_call *call)
{
    TGS(tgi_each_part)(call, depth_to_space_part, call->ctx->attrs);
}
static void run_space_to_depth(const tgi_call *call)
{
    TGS(tgi_each_part)(call, space_to_depth_part, call->ctx->attrs);
}

static int accepts_concat(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    for (int i = 0; i < ctx->n_src; i++)
        if (ctx->const_src[i] || lay->src_segs[i] < 1)
            return 0;
    return lanes_ok(lay) && (ctx->src[0].rank == 4 || ctx->src[0].rank == 5);
}

static int concat_part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const tgi_view *dv = &call->dst[0];
    const int n = lanes_of(dv, p->b0);
    tgi_lane lane[TGI_L];
    (void)arg;
    for (int i = 0; i < n; i++) {
        int64_t c = p->b0 * dv->cb + i;
        int s = 0;
        while (c >= call->ctx->src[s].dim[1])
            c -= call->ctx->src[s++].dim[1];
        lane[i] = TGS(tgi_lane_of)(&call->src[s], c, p->z, p->y);
        lane[i].p += p->x0 * lane[i].step;
    }
    TGS(tgi_gather_lanes)
    (lane, n, p->x1 - p->x0, tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb,
     dv->cb);
    return 0;
}

static void run_concat(const tgi_call *call)
{
    TGS(tgi_each_part)(call, concat_part, NULL);
}

static int accepts_slice(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_slice s;
    return lanes_ok(lay) && !ctx->const_src[0] &&
           (ctx->src[0].rank == 4 || ctx->src[0].rank == 5) &&
           tgi_slice_map(ctx, &s, NULL) == TG_OK;
}

static int slice_part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const tgi_slice *s = arg;
    const tgi_view *dv = &call->dst[0];
    const int n = lanes_of(dv, p->b0), r = call->ctx->src[0].rank;
    const int64_t z = r == 5 ? s->start[2] + p->z * s->step[2] : 0;
    const int64_t y = s->start[r - 2] + p->y * s->step[r - 2];
    const int64_t x = s->start[r - 1] + p->x0 * s->step[r - 1];
    tgi_lane lane[TGI_L];
    for (int i = 0; i < n; i++) {
        const int64_t c = s->start[1] + (p->b0 * dv->cb + i) * s->step[1];
        lane[i] = TGS(tgi_lane_of)(&call->src[0], c, z, y);
        lane[i].p += x * lane[i].step;
        lane[i].step *= s->step[r - 1];
    }
    TGS(tgi_gather_lanes)
    (lane, n, p->x1 - p->x0, tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb,
     dv->cb);
    return 0;
}

static void run_slice(const tgi_call *call)
{
    tgi_slice s;
    if (tgi_slice_map(call->ctx, &s, NULL) == TG_OK)
        TGS(tgi_each_part)(call, slice_part, &s);
}

const tgi_variant TGS(tgi_slice_copy) = {
    .name = "slice", .op = "Slice", .accepts = accepts_slice, .run = TGI_RUN(run_slice)};
const tgi_variant TGS(tgi_depth_to_space) = {.name = "depth_to_space",
                                             .op = "DepthToSpace",
                                             .accepts = accepts_shuffle,
                                             .run = TGI_RUN(run_depth_to_space)};
const tgi_variant TGS(tgi_space_to_depth) = {.name = "space_to_depth",
                                             .op = "SpaceToDepth",
                                             .accepts = accepts_shuffle,
                                             .run = TGI_RUN(run_space_to_depth)};
const tgi_variant TGS(tgi_concat_copy) = {.name = "concat_copy",
                                          .op = "Concat",
                                          .accepts = accepts_concat,
                                          .run = TGI_RUN(run_concat)};
