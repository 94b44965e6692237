/* op_lrn.c - LRN: x / (bias + alpha / size * sum of squares over `size` neighbouring channels)
 * to the power beta; channels outside count 0. In float64.
 * Border: none, each pixel by itself.
 * @source ONNX operator LRN, versions 1, 13. */
#include "kernels/ops/op_shared.h"

#include <math.h>

#define AT(field) offsetof(lrn_attrs, field)
static const tgi_attr rows[] = {
    {"alpha", TGI_ATTR_FLOAT, AT(alpha), 1e-4, 0, 0, NULL, "factor of the mean square"},
    {"beta", TGI_ATTR_FLOAT, AT(beta), 0.75, 0, 0, NULL, "exponent"},
    {"bias", TGI_ATTR_FLOAT, AT(bias), 1, 0, 0, NULL, "added to it"},
    {"size", TGI_ATTR_INT, AT(size), 0, 1, 1 << 20, NULL, "channels that are summed"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_want_image(ctx, 0, err));
    if (((const lrn_attrs *)ctx->attrs)->size < 1)
        return tgi_fail(err, TG_E_FORMAT, "LRN without size");
    dst[0] = ctx->src[0];
    return TG_OK;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const lrn_attrs *a = arg;
    const int64_t lo = tgi_max(0, p->c - (a->size - 1) / 2);
    const int64_t hi = tgi_min(call->dst[0].c, p->c + a->size / 2 + 1);
    double sum = 0;
    for (int64_t c = lo; c < hi; c++) {
        const double v = (double)tgi_operand_get(&call->src[0], c, p->z, p->y, p->x);
        sum += v * v;
    }
    const double base = (double)a->bias + (double)a->alpha / (double)a->size * sum;
    return (float)((double)tgi_src_at(call, 0, p) / pow(base, (double)a->beta));
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->attrs);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    return 2.0 * (double)((const lrn_attrs *)ctx->attrs)->size + 20;
}

const tgi_op tgi_op_lrn = {
    .name = "LRN",
    .attrs = rows,
    .attrs_size = sizeof(lrn_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};
