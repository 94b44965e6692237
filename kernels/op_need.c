/* op_need.c - what an operator or a variant reads, from whichever member says it. */
#include "kernels/backend.h"
#include "kernels/ops/op_shared.h"

typedef int (*slide_fn)(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide);

static void need_by_slide(slide_fn slide, const tgi_op_ctx *ctx, const tgi_box *dst, int src_i,
                          tgi_box *need)
{
    *need = tgi_box_full(&ctx->src[src_i]);
    for (int i = 0; i < 3; i++) {
        tgi_slide s;
        if (slide(ctx, src_i, i, &s))
            tgi_box_set(need, i, tgi_slide_need(&s, tgi_box_axis(dst, i)));
    }
}

static void need_by_rule(const tgi_op *op, const tgi_op_ctx *ctx, const tgi_box *dst, int src_i,
                         tgi_box *need)
{
    *need = tgi_box_full(&ctx->src[src_i]);
    for (int i = 0; i < 3; i++) {
        tgi_rule r;
        op->rule(ctx, src_i, i, &r);
        tgi_box_set(need, i, tgi_rule_need(&r, tgi_box_axis(dst, i)));
    }
}

void tgi_op_need(const tgi_op *op, const tgi_op_ctx *ctx, int dst_i, const tgi_box *dst,
                 int src_i, tgi_box *need)
{
    (void)dst_i;
    if (op->rule)
        need_by_rule(op, ctx, dst, src_i, need);
    else if (op->slide)
        need_by_slide(op->slide, ctx, dst, src_i, need);
    else
        *need = *dst;
}

int tgi_op_slide(const tgi_op *op, const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide)
{
    if (op->slide)
        return op->slide(ctx, src_i, axis, slide);
    *slide = TGI_SLIDE_SAME;
    return !op->rule;
}

void tgi_variant_need(const tgi_variant *v, const tgi_op *op, const tgi_op_ctx *ctx, int dst_i,
                      const tgi_box *dst, int src_i, tgi_box *need)
{
    if (v && v->slide)
        need_by_slide(v->slide, ctx, dst, src_i, need);
    else
        tgi_op_need(op, ctx, dst_i, dst, src_i, need);
}

int tgi_variant_slide(const tgi_variant *v, const tgi_op *op, const tgi_op_ctx *ctx, int src_i,
                      int axis, tgi_slide *slide)
{
    return v && v->slide ? v->slide(ctx, src_i, axis, slide)
                         : tgi_op_slide(op, ctx, src_i, axis, slide);
}
