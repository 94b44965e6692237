/* reduce.c - reductions of whole images by their `finish` (tgi_reduce): the reference
 * gathers the moments of an image that is there from edge to edge. */
#include "kernels/reduce.h"

#include "engine/base/mem.h"
#include "kernels/ops/geometry.h"

#include <math.h>

const tgi_reduce *tgi_reduce_of(const tgi_op *op, const tgi_op_ctx *ctx)
{
    if (tgi_op_class(op, ctx) != TGI_OP_WHOLE || !op->reduce || ctx->const_src[0])
        return NULL;
    return !op->reduce->fits || op->reduce->fits(ctx) ? op->reduce : NULL;
}

unsigned tgi_reduce_what(const tgi_reduce *r)
{
    return r->finish ? TGI_GRANULES_MOMENTS : TGI_GRANULES_EXTREMES;
}

tg_status tgi_reduce_take(const tgi_reduce *r, const tgi_granules *g, int64_t first,
                          void *channels, tgi_err *err)
{
    tgi_moments *m = (tgi_moments *)channels + first;
    tgi_extremes *e = (tgi_extremes *)channels + first;
    for (int64_t c = 0; c < g->full.dim[1]; c++)
        TGI_TRY(r->finish ? tgi_granules_finish(g, c, &m[c], err)
                          : tgi_granules_extremes(g, c, &e[c], err));
    return TG_OK;
}

void tgi_reduce_finish(const tgi_reduce *r, const tgi_op_ctx *ctx, const void *channels,
                       float *dst)
{
    if (r->finish)
        r->finish(ctx, channels, dst);
    else
        r->finish_extremes(ctx, channels, dst);
}

/* Lanes behind the last channel are zero, as everywhere. */
void tgi_put_numbers(const tgi_view *dst, const float *numbers)
{
    for (int64_t c = 0; c < tgi_view_blocks(dst) * dst->cb; c++)
        *tgi_view_at(dst, c, 0, 0, 0) = c < dst->c ? numbers[c] : 0;
}

/* Of a channel that is there from edge to edge. NaNs are skipped, and a zero has no sign, as in
 * granule.h. */
static tgi_extremes extremes_of(const tgi_operand *src, const tgi_desc *full, int64_t c)
{
    tgi_extremes e = {-INFINITY, INFINITY, 0};
    for (int64_t z = 0; z < tgi_desc_axis(full, TGI_Z); z++)
        for (int64_t y = 0; y < tgi_desc_axis(full, TGI_Y); y++)
            for (int64_t x = 0; x < tgi_desc_axis(full, TGI_X); x++) {
                const float v = tgi_operand_get(src, c, z, y, x) + 0.0f;
                e.has_nan |= isnan(v);
                e.largest = v > e.largest ? v : e.largest;
                e.smallest = v < e.smallest ? v : e.smallest;
            }
    return e;
}

tg_status tgi_ref_reduce(const tgi_call *call, const tgi_reduce *r, tgi_err *err)
{
    const tgi_op_ctx *ctx = call->ctx;
    const int64_t n_src = ctx->src[0].dim[1], n_dst = call->dst[0].c;
    if (tgi_box_empty(&call->box))
        return TG_OK;
    void *channels = tgi_calloc(TGI_TAG_MISC, (size_t)n_src + 1, TGI_REDUCE_CHANNEL);
    float *numbers = tgi_calloc(TGI_TAG_MISC, (size_t)n_dst + 1, sizeof *numbers);
    const tg_status st =
        channels && numbers ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a reduction");
    for (int64_t c = 0; st == TG_OK && c < n_src; c++)
        if (r->finish)
            ((tgi_moments *)channels)[c] = tgi_granule_channel(&call->src[0], &ctx->src[0], c);
        else
            ((tgi_extremes *)channels)[c] = extremes_of(&call->src[0], &ctx->src[0], c);
    if (st == TG_OK) {
        tgi_reduce_finish(r, ctx, channels, numbers);
        tgi_put_numbers(&call->dst[0], numbers);
    }
    tgi_free(channels);
    tgi_free(numbers);
    return st;
}
