/* op_fold_bias.c - FoldBias: what the bias of a linear layer becomes where its results are patches
 * that are laid over each other, and their mean:
 *
 *   out[c, y, x] = (in[c, y, x] + sum over patches of bias[c, y - top, x - left]) / n
 *
 * over the patches that hold (y,x). A patch has kernel x kernel pixels, its corner (top,left) lies
 * at -pad + stride * i on either axis, i from 0 to floor((extent + 2*pad - kernel) / stride). n is
 * the number of those patches with `mean` and where there are any, else 1. Source 1 is a constant
 * [C,kernel,kernel]. Summed in float64, patches row by row. No operator of ONNX: behind a
 * ConvTranspose of the same kernel, stride and pad it makes "linear, then fold" without patches.
 * Border: patches outside do not count, by image coordinates. */
#include "kernels/ops/fold_patches.h"
#include "kernels/ops/op_shared.h"

#define AT(field) offsetof(fold_attrs, field)
static const tgi_attr rows[] = {
    {"kernel", TGI_ATTR_INT, AT(kernel), 7, 1, 64, NULL, "rows and columns of a patch"},
    {"mean", TGI_ATTR_INT, AT(mean), 0, 0, 1, NULL, "divide by the number of patches"},
    {"pad", TGI_ATTR_INT, AT(pad), 3, 0, 63, NULL, "pixels before the image"},
    {"stride", TGI_ATTR_INT, AT(stride), 3, 1, 64, NULL, "from patch to patch"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const fold_attrs *a = ctx->attrs;
    const void *bias;
    TGI_TRY(tgi_want_frame(ctx, 0, err));
    TGI_TRY(
        tgi_const_f32(ctx, 1, "bias", ctx->src[0].dim[1] * a->kernel * a->kernel, &bias, err));
    *dst = ctx->src[0];
    return TG_OK;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const fold_attrs *a = call->ctx->attrs;
    const tgi_desc *d = &call->ctx->src[0];
    const tgi_range y = tgi_fold_patches(a, p->y, d->dim[2]),
                    x = tgi_fold_patches(a, p->x, d->dim[3]);
    double sum = (double)tgi_src_at(call, 0, p);
    for (int64_t i = y.lo; i < y.hi; i++)
        for (int64_t j = x.lo; j < x.hi; j++) {
            const int64_t ky = p->y + a->pad - i * a->stride,
                          kx = p->x + a->pad - j * a->stride;
            sum += (double)tgi_f32_at(arg, (p->c * a->kernel + ky) * a->kernel + kx);
        }
    const int64_t n = tgi_range_len(y) * tgi_range_len(x);
    return (float)(sum / (a->mean && n ? (double)n : 1.0));
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->const_src[1]->data);
    return TG_OK;
}

TGI_EVAL_BY_REF

static double flops(const tgi_op_ctx *ctx)
{
    (void)ctx;
    return 3;
}

const tgi_op tgi_op_fold_bias = {
    .name = "FoldBias",
    .internal = 1,
    .attrs = rows,
    .attrs_size = sizeof(fold_attrs),
    .infer = infer,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};
