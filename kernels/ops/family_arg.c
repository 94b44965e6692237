/* family_arg.c - ArgMax and ArgMin: where along an axis the largest or smallest element is, the
 * first or the last of equals, as int64. Local on images along channels when the axis stays;
 * views hold the index as a float32, exact for any number of channels.
 * Border: none, each pixel by itself.
 * @source ONNX operators ArgMax and ArgMin, versions 1 to 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define AT(field) offsetof(arg_attrs, field)
static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, AT(axis), 0, 0, 0, NULL, "axis that is searched"},
    {"keepdims", TGI_ATTR_INT, AT(keepdims), 1, 0, 1, NULL, "the axis stays, 1"},
    {"select_last_index", TGI_ATTR_INT, AT(last), 0, 0, 1, NULL, "the last of equals"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const arg_attrs *a = ctx->attrs;
    int axis;
    TGI_TRY(tgi_axis(a->axis, ctx->src[0].rank, &axis, err));
    tgi_desc d = {TG_DTYPE_I64, 0, {0}};
    for (int k = 0; k < ctx->src[0].rank; k++)
        if (k != axis)
            d.dim[d.rank++] = ctx->src[0].dim[k];
        else if (a->keepdims)
            d.dim[d.rank++] = 1;
    if (ctx->src[0].dim[axis] < 1)
        return tgi_fail(err, TG_E_FORMAT, "axis %d is empty", axis);
    dst[0] = d;
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    const arg_attrs *a = ctx->attrs;
    int axis;
    return tgi_axis(a->axis, ctx->src[0].rank, &axis, NULL) == TG_OK && axis == 1 && a->keepdims
               ? TGI_OP_LOCAL
               : TGI_OP_DENSE;
}

/* Element i against the best so far; `sign` turns smallest into largest. */
static void note(double v, int64_t i, double sign, int64_t last, double *best, int64_t *at)
{
    const double s = sign * v;
    if (i == 0 || s > *best || (last && s >= *best)) {
        *best = s;
        *at = i;
    }
}

typedef struct search {
    double sign;
    int64_t last;
} search;

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const search *s = arg;
    double best = 0;
    int64_t at = 0;
    for (int64_t c = 0; c < call->ctx->src[0].dim[1]; c++)
        note((double)tgi_operand_get(&call->src[0], c, p->z, p->y, p->x), c, s->sign, s->last,
             &best, &at);
    return (float)at;
}

static tg_status ref_kind(const tgi_call *call, double sign, tgi_err *err)
{
    const search s = {sign, ((const arg_attrs *)call->ctx->attrs)->last};
    (void)err;
    tgi_ref_each(call, 0, value, &s);
    return TG_OK;
}

static tg_status eval_kind(const tgi_op_ctx *ctx, void *const *dst_data, double sign,
                           tgi_err *err)
{
    const arg_attrs *a = ctx->attrs;
    const tgi_constant *c = ctx->const_src[0];
    int64_t outer = 1, inner = 1;
    int axis;
    TGI_TRY(tgi_axis(a->axis, c->desc.rank, &axis, err));
    for (int k = 0; k < c->desc.rank; k++)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : c->desc.dim[k];
    for (int64_t o = 0; o < outer * inner; o++) {
        const int64_t base = o / inner * c->desc.dim[axis] * inner + o % inner;
        double best = 0;
        int64_t at = 0;
        for (int64_t k = 0; k < c->desc.dim[axis]; k++)
            note(tgi_num_at(c, base + k * inner), k, sign, a->last, &best, &at);
        tgi_int_put(TG_DTYPE_I64, dst_data[0], o, at);
    }
    return TG_OK;
}

static double flops(const tgi_op_ctx *ctx)
{
    return (double)ctx->src[0].dim[ctx->src[0].rank > 1];
}

static tgi_pick picks(const tgi_op_ctx *ctx, int smallest)
{
    const int last = ((const arg_attrs *)ctx->attrs)->last != 0;
    if (classify(ctx) != TGI_OP_LOCAL)
        return TGI_PICK_NONE;
    return smallest ? (last ? TGI_PICK_LAST_SMALLEST : TGI_PICK_FIRST_SMALLEST)
                    : (last ? TGI_PICK_LAST_LARGEST : TGI_PICK_FIRST_LARGEST);
}

#define ARG(symbol, onnx, sign)                                                                \
    static tgi_pick picks_##symbol(const tgi_op_ctx *ctx)                                      \
    {                                                                                          \
        return picks(ctx, (sign) < 0);                                                         \
    }                                                                                          \
    TGI_OP_OF_KIND(symbol, onnx, sign, .classify = classify, .any_type = 1, .attrs = rows,     \
                   .attrs_size = sizeof(arg_attrs), .infer = infer, .flops = flops,            \
                   .picks = picks_##symbol)

ARG(arg_max, "ArgMax", 1.0)
ARG(arg_min, "ArgMin", -1.0)
