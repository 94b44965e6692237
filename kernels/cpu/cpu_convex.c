/* cpu_convex.c - ConvexUpsample: the pixels that one pixel becomes lie in lanes, as its weights do;
 * the nine pixels of its neighbourhood are broadcast.
 *
 * A job is a row of the source: weights are made once for TOGETHER channels. */
#include "kernels/cpu/cpu_blocks.h"
#include "kernels/ops/op_attrs.h"

#define NEAR 9
#define TOGETHER 8 /* channels that share weights */

typedef struct work {
    const tgi_call *call;
    int64_t s;
    tgi_range y, x; /* of the box, in pixels of the source */
} work;

/* Weights of TGI_L pixels of a square from pixel `at` on. */
static void find_weights(const work *w, int64_t y, int64_t x, int64_t at, vf *weight)
{
    const int64_t n = w->s * w->s, many = tgi_min64(TGI_L, n - at);
    vf top, sum = vf_zero();
    for (int64_t k = 0; k < NEAR; k++) {
        const in_blocks b = blocks_of_source(&w->call->src[1], k * n + at, many, y, x);
        if (b.p) {
            weight[k] = vf_load(b.p);
        } else {
            float own[TGI_L] = {0};
            for (int64_t i = 0; i < many; i++)
                own[i] = tgi_operand_get(&w->call->src[1], k * n + at + i, 0, y, x);
            weight[k] = vf_load(own);
        }
        top = k ? vf_max(weight[k], top) : weight[k];
    }
    for (int k = 0; k < NEAR; k++)
        sum += weight[k] = vf_exp(weight[k] - top);
    for (int k = 0; k < NEAR; k++)
        weight[k] = weight[k] / sum;
}

/* Pixel (y,x) of channel c's neighbourhood, each times the scale; zero outside. */
static void find_near(const work *w, int64_t c, int64_t y, int64_t x, float *near)
{
    const tgi_desc *d = &w->call->ctx->src[0];
    for (int64_t k = 0; k < NEAR; k++) {
        const int64_t at_y = y + k / 3 - 1, at_x = x + k % 3 - 1;
        const int there = at_y >= 0 && at_y < d->dim[2] && at_x >= 0 && at_x < d->dim[3];
        near[k] = there ? (float)w->s * tgi_operand_get(&w->call->src[0], c, 0, at_y, at_x) : 0;
    }
}

/* Pixels of a square of channel c, from pixel `at` on; those in the box. */
static void put(const work *w, int64_t c, int64_t y, int64_t x, int64_t at, vf value)
{
    const tgi_view *v = &w->call->dst[0];
    const tgi_range by = tgi_box_axis(&w->call->box, TGI_Y),
                    bx = tgi_box_axis(&w->call->box, TGI_X);
    const int64_t many = tgi_min64(TGI_L, w->s * w->s - at);
    float own[TGI_L];
    vf_store(own, value);
    for (int64_t i = 0, n; i < many; i += n) {
        const int64_t row = y * w->s + (at + i) / w->s, col = x * w->s + (at + i) % w->s;
        n = tgi_min64(many - i, w->s - (at + i) % w->s);
        if (row < by.lo || row >= by.hi)
            continue;
        const int64_t from = tgi_max64(bx.lo - col, 0), to = tgi_min64(bx.hi - col, n);
        float *p = from < to ? tgi_view_at(v, c, 0, row, col + from) : NULL;
        for (int64_t k = from; k < to; k++)
            p[(k - from) * v->cb] = own[i + k];
    }
}

/* Channels [c0, c1), TOGETHER at most. */
static void do_square(const work *w, int64_t c0, int64_t c1, int64_t y, int64_t x)
{
    float near[TOGETHER][NEAR];
    for (int64_t c = c0; c < c1; c++)
        find_near(w, c, y, x, near[c - c0]);
    for (int64_t at = 0; at < w->s * w->s; at += TGI_L) {
        vf weight[NEAR];
        find_weights(w, y, x, at, weight);
        for (int64_t c = c0; c < c1; c++) {
            vf sum = vf_zero();
            for (int k = 0; k < NEAR; k++)
                sum = vf_fma(vf_set1(near[c - c0][k]), weight[k], sum);
            put(w, c, y, x, at, sum);
        }
    }
}

static void row_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const int64_t y = w->y.lo + job;
    const tgi_range by = tgi_box_axis(&w->call->box, TGI_Y),
                    bx = tgi_box_axis(&w->call->box, TGI_X);
    tgi_row_part part = {.b1 = tgi_view_blocks(&w->call->dst[0]), .x0 = bx.lo, .x1 = bx.hi};
    (void)thread;
    for (int64_t x = w->x.lo; x < w->x.hi; x++)
        for (int64_t c = 0; c < w->call->dst[0].c; c += TOGETHER)
            do_square(w, c, tgi_min64(c + TOGETHER, w->call->dst[0].c), y, x);
    for (part.y = tgi_max64(y * w->s, by.lo); part.y < tgi_min64((y + 1) * w->s, by.hi);
         part.y++)
        TGS(tgi_epilogue_part)(w->call, 0, &part);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && !ctx->const_src[1] && lay->src_segs[0] > 0 &&
           lay->src_segs[1] > 0 && lay->lanes == TGI_L;
}

static void run(const tgi_call *call)
{
    work w = {.call = call, .s = ((const convex_attrs *)call->ctx->attrs)->scale};
    const tgi_range y = tgi_box_axis(&call->box, TGI_Y), x = tgi_box_axis(&call->box, TGI_X);
    if (tgi_box_empty(&call->box))
        return;
    w.y = (tgi_range){y.lo / w.s, (y.hi - 1) / w.s + 1};
    w.x = (tgi_range){x.lo / w.s, (x.hi - 1) / w.s + 1};
    tgi_parallel(call->threads, tgi_range_len(w.y), row_job, &w);
}

const tgi_variant TGS(tgi_convex) = {
    .name = "convex", .op = "ConvexUpsample", .accepts = accepts, .run = TGI_RUN(run)};
