/* cpu_norm.c - NormNumbers: the statistics of cpu_granule.c; NormApply: every pixel by them. */
#include "kernels/cpu/cpu_granule.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/reduce.h"

/* ---- NormNumbers ------------------------------------------------------------------------- */

static int numbers_accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && !ctx->const_src[0] && lay->src_segs[0] > 0 &&
           (lay->src_cb[0] == 1 || lay->src_cb[0] == TGI_L) && lay->n_epi == 0 &&
           tgi_is_const_f32(ctx, 1) && tgi_is_const_f32(ctx, 2) &&
           (ctx->src[0].rank == 4 || ctx->src[0].rank == 5);
}

static size_t numbers_room(const tgi_op_ctx *ctx)
{
    return ((size_t)ctx->dst[0].dim[1] * sizeof(float) + 63) / 64 * 64;
}

static size_t numbers_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)width;
    return numbers_room(ctx) + TGS(tgi_moments_bytes)(ctx, lay, threads);
}

static void run_numbers(const tgi_call *call)
{
    const tgi_op_ctx *ctx = call->ctx;
    if (tgi_box_empty(&call->box))
        return;
    float *numbers = call->scratch; /* in front: what follows is as large as the threads want */
    void *state = (char *)call->scratch + numbers_room(ctx);
    tgi_op_find("NormNumbers")->reduce->finish(ctx, TGS(tgi_moments_of)(call, state), numbers);
    tgi_put_numbers(&call->dst[0], numbers);
}

/* ---- NormApply --------------------------------------------------------------------------- */

typedef struct channels { /* one array per number, so that lanes load */
    float *high, *low, *factor, *shift;
} channels;

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           !ctx->const_src[0] && !ctx->const_src[1] && lay->src_segs[1] == 1 &&
           TGS(tgi_blocks_line_up)(lay, 0) && (ctx->src[0].rank == 4 || ctx->src[0].rank == 5);
}

static size_t channels_padded(const tgi_op_ctx *ctx)
{
    return (size_t)(tgi_ceil_div64(ctx->dst[0].dim[1], TGI_L) * TGI_L);
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)lay, (void)width, (void)threads;
    return 4 * channels_padded(ctx) * sizeof(float);
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const channels *ch = arg;
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
    const size_t padded = channels_padded(call->ctx);
    const int64_t n = call->ctx->dst[0].dim[1];
    float *mem = call->scratch;
    const channels ch = {mem, mem + padded, mem + 2 * padded, mem + 3 * padded};
    if (tgi_box_empty(&call->box))
        return;
    for (int64_t k = 0; k < 4; k++)
        for (int64_t c = 0; c < (int64_t)padded; c++)
            mem[(size_t)k * padded + (size_t)c] =
                c < n ? tgi_operand_get(&call->src[1], k * n + c, 0, 0, 0) : 0;
    TGS(tgi_each_part)(call, part, &ch);
}

const tgi_variant TGS(tgi_norm_numbers) = {.name = "norm_numbers",
                                           .op = "NormNumbers",
                                           .accepts = numbers_accepts,
                                           .scratch_bytes = numbers_bytes,
                                           .run = TGI_RUN(run_numbers)};
const tgi_variant TGS(tgi_norm_apply) = {.name = "norm_apply",
                                         .op = "NormApply",
                                         .accepts = accepts,
                                         .scratch_bytes = scratch_bytes,
                                         .run = TGI_RUN(run)};
