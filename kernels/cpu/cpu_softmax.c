/* cpu_softmax.c - Softmax over the channels of each pixel.
 *
 * exp(x - max) / sum in float32: the largest term is 1, so nothing overflows. Blocked views
 * have channels in their lanes: terms are added block by block, lane by lane, then the lanes in
 * the tree of vf_reduce. Planar ones have pixels there and add channel by channel. Unused lanes
 * count as minus infinity. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#include <math.h>

#define PIECE 64 /* pixels of a row at a time */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const axis_attrs *a = ctx->attrs;
    const int rank = ctx->src[0].rank;
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           (rank == 4 || rank == 5) && !ctx->const_src[0] && ctx->opset >= 13 &&
           (a->axis == 1 || a->axis == 1 - rank) && TGS(tgi_blocks_line_up)(lay, 0);
}

typedef struct row_args {
    const tgi_call *call;
    int64_t rows; /* of a plane */
} row_args;

/* The row of block b of source 0, at image column 0. */
static const float *source_row(const tgi_call *call, int64_t b, int64_t z, int64_t y)
{
    const tgi_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    return tgi_view_row(v, b, z, y) - v->x0 * v->cb;
}

static float max_lane(vf v)
{
    float top = v[0];
    for (int i = 1; i < TGI_L; i++)
        top = v[i] > top ? v[i] : top;
    return top;
}

/* n pixels from x0. Each pass goes over all blocks, so the sums of a piece wait here. */
static void blocked_piece(const tgi_call *call, int64_t z, int64_t y, int64_t x0, int64_t n)
{
    const tgi_view *dv = &call->dst[0];
    const int64_t blocks = tgi_view_blocks(dv);
    const vi last = vi_first(dv->c - (blocks - 1) * TGI_L);
    vf acc[PIECE]; /* largest values, then sums */
    for (int64_t i = 0; i < n; i++)
        acc[i] = vf_set1(-INFINITY);
    for (int64_t b = 0; b < blocks; b++) {
        const float *s = source_row(call, b, z, y) + x0 * TGI_L;
        for (int64_t i = 0; i < n; i++) {
            const vf v = vf_load(s + i * TGI_L);
            acc[i] = vf_max(b < blocks - 1 ? v : vf_select(last, v, acc[i]), acc[i]);
        }
    }
    float top[PIECE];
    for (int64_t i = 0; i < n; i++) {
        top[i] = max_lane(acc[i]);
        acc[i] = vf_zero();
    }
    for (int64_t b = 0; b < blocks; b++) {
        const float *s = source_row(call, b, z, y) + x0 * TGI_L;
        float *d = tgi_view_row(dv, b, z, y) + (x0 - dv->x0) * TGI_L;
        for (int64_t i = 0; i < n; i++) {
            vf e = vf_exp(vf_load(s + i * TGI_L) - vf_set1(top[i]));
            e = b < blocks - 1 ? e : vf_select(last, e, vf_zero());
            vf_store(d + i * TGI_L, e);
            acc[i] += e;
        }
    }
    for (int64_t i = 0; i < n; i++)
        acc[i] = vf_set1(1.0f / vf_reduce(acc[i]));
    for (int64_t b = 0; b < blocks; b++) {
        float *d = tgi_view_row(dv, b, z, y) + (x0 - dv->x0) * TGI_L;
        for (int64_t i = 0; i < n; i++)
            vf_store(d + i * TGI_L, vf_load(d + i * TGI_L) * acc[i]);
    }
}

/* A vector of n pixels from x0. */
static void planar_piece(const tgi_call *call, int64_t z, int64_t y, int64_t x0, int64_t n)
{
    const tgi_view *dv = &call->dst[0];
    vf top = vf_set1(-INFINITY), sum = vf_zero();
    for (int64_t c = 0; c < dv->c; c++)
        top = vf_max(vf_load_n(source_row(call, c, z, y) + x0, n), top);
    for (int64_t c = 0; c < dv->c; c++) {
        const vf e = vf_exp(vf_load_n(source_row(call, c, z, y) + x0, n) - top);
        vf_store_n(tgi_view_row(dv, c, z, y) + x0 - dv->x0, e, n);
        sum += e;
    }
    for (int64_t c = 0; c < dv->c; c++) {
        float *d = tgi_view_row(dv, c, z, y) + x0 - dv->x0;
        vf_store_n(d, vf_load_n(d, n) * (vf_set1(1.0f) / sum), n);
    }
}

static void row_job(void *arg, int64_t job, int thread)
{
    const row_args *r = arg;
    const tgi_view *dv = &r->call->dst[0];
    const tgi_range x = tgi_box_axis(&r->call->box, TGI_X);
    const int64_t z = tgi_box_axis(&r->call->box, TGI_Z).lo + job / r->rows;
    const int64_t y = tgi_box_axis(&r->call->box, TGI_Y).lo + job % r->rows;
    const int64_t step = dv->cb == 1 ? TGI_L : PIECE;
    (void)thread;
    for (int64_t x0 = x.lo; x0 < x.hi; x0 += step) {
        const int64_t n = tgi_min64(step, x.hi - x0);
        const tgi_row_part part = {0, tgi_view_blocks(dv), z, y, x0, x0 + n};
        if (dv->cb == 1)
            planar_piece(r->call, z, y, x0, n);
        else
            blocked_piece(r->call, z, y, x0, n);
        TGS(tgi_epilogue_part)(r->call, 0, &part);
    }
}

static void run(const tgi_call *call)
{
    row_args r = {call, tgi_range_len(tgi_box_axis(&call->box, TGI_Y))};
    if (!tgi_box_empty(&call->box))
        tgi_parallel(call->threads, r.rows * tgi_range_len(tgi_box_axis(&call->box, TGI_Z)),
                     row_job, &r);
}

const tgi_variant TGS(tgi_softmax) = {
    .name = "softmax", .op = "Softmax", .accepts = accepts, .run = TGI_RUN(run)};
