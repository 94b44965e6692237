/* op_upsample.c - Upsample: the older form of Resize: asymmetric coordinates, nearest rounds
 * down. Border: coordinates are clamped to the image.
 * @source ONNX operator Upsample, versions 7 (scales attribute) and 9 (scales input); it left
 * the standard with opset 10. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/resize_axis.h"

static const tgi_attr rows[] = {
    {"mode", TGI_ATTR_ENUM, offsetof(resize_attrs, mode), 0, 0, 1, tgi_resize_modes,
     "interpolation"},
    {"scales", TGI_ATTR_FLOATS, offsetof(resize_attrs, scales), 0, 0, 0, NULL, "version 7"},
    /* Unnamed rows: defaults of what only Resize has. */
    {"", TGI_ATTR_INTS, offsetof(resize_attrs, axes), 0, 0, 0, NULL, "not an attribute here"},
    {"", TGI_ATTR_INT, offsetof(resize_attrs, opset10_rules), 1, 0, 1, NULL, "always"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (ctx->opset >= 10)
        return tgi_fail(err, TG_E_FORMAT, "Upsample in opset %d: it ended with opset 9",
                        ctx->opset);
    return tgi_resize_infer(ctx, dst, err);
}

const tgi_op tgi_op_upsample = {
    .name = "Upsample",
    .attrs = rows,
    .attrs_size = sizeof(resize_attrs),
    .infer = infer,
    .slide = tgi_resize_slide,
    .rule = tgi_resize_rule,
    .ref = tgi_resize_ref,
    .flops = tgi_resize_flops,
    .doubles = tgi_resize_doubles,
};
