/* cpu_instance_norm.c - InstanceNormalization: statistics of cpu_granule.c, then every pixel.
 *
 * A pixel is ((x - high) - low) * factor + shift in float32, high + low being the mean: x -
 * high is exact where cancellation threatens (images with a large offset), and low carries what
 * rounding the mean would lose. */
#include "kernels/cpu/cpu_granule.h"
#include "kernels/ops/op_attrs.h"

#include <math.h>

typedef struct channel { /* one array per number, so that lanes load */
    float *high, *low, *factor, *shift;
} channel;

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           !ctx->const_src[0] && tgi_is_const_f32(ctx, 1) && tgi_is_const_f32(ctx, 2) &&
           TGS(tgi_blocks_line_up)(lay, 0) && (ctx->src[0].rank == 4 || ctx->src[0].rank == 5);
}

static size_t channels_padded(const tgi_op_ctx *ctx)
{
    return (size_t)(tgi_ceil_div64(ctx->dst[0].dim[1], TGI_L) * TGI_L);
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)width;
    return 4 * channels_padded(ctx) * sizeof(float) + TGS(tgi_moments_bytes)(ctx, lay, threads);
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const channel *ch = arg;
    const tgi_view *dv = &call->dst[0];
    int64_t b = p->b0, i = 0;
    const tgi_view *sv = TGS(tgi_block_at)(&call->src[0], &b);
    const int64_t c = p->b0 * dv->cb, n = (p->x1 - p->x0) * dv->cb;
    const float *s = tgi_view_row(sv, b, p->z, p->y) + (p->x0 - sv->x0) * sv->cb;
    float *d = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb;
    const int planar = dv->cb == 1;
    const vf high = planar ? vf_set1(ch->high[c]) : vf_load(ch->high + c),
             low = planar ? vf_set1(ch->low[c]) : vf_load(ch->low + c),
             factor = planar ? vf_set1(ch->factor[c]) : vf_load(ch->factor + c),
             shift = planar ? vf_set1(ch->shift[c]) : vf_load(ch->shift + c);
    for (; i + TGI_L <= n; i += TGI_L)
        vf_store(d + i, vf_fma((vf_load(s + i) - high) - low, factor, shift));
    if (i < n)
        vf_store_n(d + i, vf_fma((vf_load_n(s + i, n - i) - high) - low, factor, shift), n - i);
    return 0;
}

static void run(const tgi_call *call)
{
    const instance_norm_attrs *a = call->ctx->attrs;
    const size_t padded = channels_padded(call->ctx);
    float *mem = call->scratch;
    channel ch = {mem, mem + padded, mem + 2 * padded, mem + 3 * padded};
    if (tgi_box_empty(&call->box))
        return;
    const tgi_moments *m = TGS(tgi_moments_of)(call, mem + 4 * padded);
    for (int64_t c = 0; c < (int64_t)padded; c++) {
        const int is = c < call->ctx->dst[0].dim[1];
        const double mean = is ? tgi_moments_mean(&m[c]) : 0,
                     var = is ? tgi_moments_variance(&m[c]) : 1;
        const double scale = is ? (double)tgi_const_at(call->ctx->const_src[1]->data, c) : 0;
        ch.high[c] = (float)mean;
        ch.low[c] = (float)(mean - (double)ch.high[c]);
        ch.factor[c] = (float)(scale / sqrt(var + (double)a->epsilon));
        ch.shift[c] = is ? tgi_const_at(call->ctx->const_src[2]->data, c) : 0;
    }
    TGS(tgi_each_part)(call, part, &ch);
}

const tgi_variant TGS(tgi_instance_norm) = {.name = "instance_norm",
                                            .op = "InstanceNormalization",
                                            .accepts = accepts,
                                            .scratch_bytes = scratch_bytes,
                                            .run = TGI_RUN(run)};
