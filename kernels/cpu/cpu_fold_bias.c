/* cpu_fold_bias.c - FoldBias: of a row, the biases of the patches that hold it are added up by
 * columns of a patch; a pixel then adds those of its own patches, from left to right.
 *
 * Packed: [block][ky][kx][TGI_L]. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/fold_patches.h"

#define KERNEL_MAX 64

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const fold_attrs *a = ctx->attrs;
    (void)lay;
    return sizeof(float) * TGI_L *
           (size_t)(tgi_ceil_div64(ctx->src[0].dim[1], TGI_L) * a->kernel * a->kernel);
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    const fold_attrs *a = ctx->attrs;
    const int64_t c = ctx->src[0].dim[1], taps = a->kernel * a->kernel;
    float *out = dst;
    (void)lay;
    for (int64_t b = 0; b < c; b += TGI_L)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t l = b; l < b + TGI_L; l++)
                *out++ = l < c ? tgi_const_at(ctx->const_src[1]->data, l * taps + k) : 0.0f;
}

/* Of row y, for each column of a patch: biases of the rows that patches have there. */
static void sum_columns(const fold_attrs *a, const float *bias, int64_t y, tgi_range patches,
                        vf *column)
{
    for (int64_t k = 0; k < a->kernel; k++) {
        vf sum = vf_zero();
        for (int64_t i = patches.lo; i < patches.hi; i++)
            sum += vf_load(bias + ((y + a->pad - i * a->stride) * a->kernel + k) * TGI_L);
        column[k] = sum;
    }
}

static int fold_part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const fold_attrs *a = call->ctx->attrs;
    const tgi_desc *d = &call->ctx->src[0];
    const tgi_range rows = tgi_fold_patches(a, p->y, d->dim[2]);
    int64_t b = p->b0;
    const tgi_view *from = TGS(tgi_block_at)(&call->src[0], &b), *to = &call->dst[0];
    const float *src = tgi_view_row(from, b, p->z, p->y) - from->x0 * TGI_L;
    float *dst = tgi_view_row(to, p->b0, p->z, p->y) - to->x0 * TGI_L;
    vf column[KERNEL_MAX];
    (void)arg;
    sum_columns(a, (const float *)call->packed + p->b0 * a->kernel * a->kernel * TGI_L, p->y,
                rows, column);
    for (int64_t x = p->x0; x < p->x1; x++) {
        const tgi_range cols = tgi_fold_patches(a, x, d->dim[3]);
        const int64_t n = tgi_range_len(rows) * tgi_range_len(cols);
        vf sum = vf_load(src + x * TGI_L);
        for (int64_t j = cols.lo; j < cols.hi; j++)
            sum += column[x + a->pad - j * a->stride];
        vf_store(dst + x * TGI_L, a->mean && n > 1 ? sum / vf_set1((float)n) : sum);
    }
    return 0;
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return tgi_is_const_f32(ctx, 1) && lay->lanes == TGI_L && lay->dst_cb == TGI_L &&
           TGS(tgi_blocks_line_up)(lay, 0);
}

static void run(const tgi_call *call)
{
    TGS(tgi_each_part)(call, fold_part, NULL);
}

const tgi_variant TGS(tgi_fold_bias) = {.name = "fold_bias",
                                        .op = "FoldBias",
                                        .accepts = accepts,
                                        .packed_bytes = packed_bytes,
                                        .pack = pack,
                                        .run = TGI_RUN(run)};
