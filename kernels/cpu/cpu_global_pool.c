/* cpu_global_pool.c - GlobalAveragePool and GlobalMaxPool, on all threads.
 *
 * The average is that of kernels/granule.h, so it has the reference's bits. The maximum is
 * taken over strips of 64 rows, then over the strips in their order; within a strip row by row.
 * Only which of two zeros wins depends on that order: a zero becomes +0, as in granule.h. */
#include "kernels/cpu/cpu_granule.h"

#include <math.h>

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && !ctx->const_src[0] && lay->src_segs[0] > 0 &&
           (lay->src_cb[0] == 1 || lay->src_cb[0] == TGI_L) &&
           (ctx->src[0].rank == 4 || ctx->src[0].rank == 5);
}

static void finish(const tgi_call *call)
{
    const tgi_row_part part = {0, tgi_view_blocks(&call->dst[0]), 0, 0, 0, 1};
    TGS(tgi_epilogue_part)(call, 0, &part);
}

static size_t average_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)width;
    return TGS(tgi_moments_bytes)(ctx, lay, threads);
}

static void run_average(const tgi_call *call)
{
    if (tgi_box_empty(&call->box))
        return;
    const tgi_moments *m = TGS(tgi_moments_of)(call, call->scratch);
    for (int64_t c = 0; c < call->dst[0].c; c++)
        *tgi_view_at(&call->dst[0], c, 0, 0, 0) = (float)tgi_moments_mean(&m[c]);
    finish(call);
}

/* ---- maximum ----------------------------------------------------------------------------- */

#define STRIP 64

typedef struct max_job {
    const tgi_call *call;
    int cb;
    int64_t units, strips, seg_c[TGI_MAX_SEG];
    float *top; /* [unit][strip][TGI_L] */
} max_job;

static int64_t strip_count(const tgi_desc *d)
{
    return tgi_desc_axis(d, TGI_Z) * tgi_ceil_div64(tgi_desc_axis(d, TGI_Y), STRIP);
}

static size_t max_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                        int threads)
{
    const int64_t units = TGS(tgi_unit_count)(lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    (void)width, (void)threads;
    return sizeof(float) * (size_t)(units * strip_count(&ctx->src[0]) * TGI_L);
}

/* Lane-wise maximum of n vectors' worth of floats, a part of a vector at the end. */
static vf max_of_row(const float *p, int64_t n, vf top)
{
    int64_t i = 0;
    for (; i + TGI_L <= n; i += TGI_L)
        top = vf_max(vf_load(p + i), top);
    if (i < n) {
        const vf none = vf_set1(-INFINITY);
        top = vf_max(vf_select(vi_first(n - i), vf_load_n(p + i, n - i), none), top);
    }
    return top;
}

static void strip_job(void *arg, int64_t job, int thread)
{
    const max_job *j = arg;
    const tgi_desc *d = &j->call->ctx->src[0];
    const tgi_operand *src = &j->call->src[0];
    const tgi_unit u = TGS(tgi_unit_at)(j->cb, src->n_seg, j->seg_c, job / j->strips);
    const tgi_view *v = &src->seg[u.seg];
    const int64_t ny = tgi_desc_axis(d, TGI_Y), per_z = tgi_ceil_div64(ny, STRIP);
    const int64_t strip = job % j->strips, z = strip / per_z, y0 = strip % per_z * STRIP;
    vf top = vf_set1(-INFINITY);
    (void)thread;
    for (int64_t y = y0; y < tgi_min64(y0 + STRIP, ny); y++)
        top = max_of_row(tgi_view_row(v, u.block, z, y) - v->x0 * v->cb,
                         tgi_desc_axis(d, TGI_X) * v->cb, top);
    vf_store(j->top + job * TGI_L, top);
}

/* Fold the strips of unit i, and the lanes where they are pixels. */
static void store_max(const max_job *j, int64_t i)
{
    const tgi_unit u = TGS(tgi_unit_at)(j->cb, j->call->src[0].n_seg, j->seg_c, i);
    vf top = vf_set1(-INFINITY);
    for (int64_t s = 0; s < j->strips; s++)
        top = vf_max(vf_load(j->top + (i * j->strips + s) * TGI_L), top);
    float best = -INFINITY;
    for (int k = 0; k < TGI_L; k++)
        best = top[k] > best ? top[k] : best;
    for (int k = 0; k < u.lanes; k++)
        *tgi_view_at(&j->call->dst[0], u.channel + k, 0, 0, 0) =
            (j->cb == 1 ? best : top[k]) + 0.0f;
}

static void run_max(const tgi_call *call)
{
    const tgi_operand *src = &call->src[0];
    max_job j = {.call = call,
                 .cb = src->seg[0].cb,
                 .strips = strip_count(&call->ctx->src[0]),
                 .top = call->scratch};
    if (tgi_box_empty(&call->box))
        return;
    for (int s = 0; s < src->n_seg; s++)
        j.seg_c[s] = src->seg[s].c;
    j.units = TGS(tgi_unit_count)(j.cb, src->n_seg, j.seg_c);
    tgi_parallel(call->threads, j.units * j.strips, strip_job, &j);
    for (int64_t i = 0; i < j.units; i++)
        store_max(&j, i);
    finish(call);
}

const tgi_variant TGS(tgi_global_average_pool) = {.name = "global_average_pool",
                                                  .op = "GlobalAveragePool",
                                                  .accepts = accepts,
                                                  .scratch_bytes = average_bytes,
                                                  .run = TGI_RUN(run_average)};
const tgi_variant TGS(tgi_global_max_pool) = {.name = "global_max_pool",
                                              .op = "GlobalMaxPool",
                                              .accepts = accepts,
                                              .scratch_bytes = max_bytes,
                                              .run = TGI_RUN(run_max)};
