/* op_space_to_depth.c - SpaceToDepth: blocks of b x b pixels become b*b groups of channels.
 *
 *   out[k * C_in + c, y, x] = in[c, y * b + k / b, x * b + k mod b]
 *
 * Border: none; each output element has one source pixel.
 * @source ONNX operator SpaceToDepth, versions 1, 13. */
#include "kernels/ops/op_shared.h"

static const tgi_attr rows[] = {
    {"blocksize", TGI_ATTR_INT, offsetof(d2s_attrs, blocksize), 0, 1, 1024, NULL, "b"}, {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const d2s_attrs *a = ctx->attrs;
    const int64_t b = a->blocksize;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    tgi_desc d = ctx->src[0];
    if (d.rank != 4)
        return tgi_fail(err, TG_E_FORMAT, "an input of rank %d: defined for rank 4", d.rank);
    if (b < 1 || b > 1024 || d.dim[2] % b || d.dim[3] % b)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " x %" PRId64 " pixels in blocks of %" PRId64, d.dim[2],
                        d.dim[3], b);
    if (!tgi_mul64_ok(d.dim[1], b * b, &d.dim[1]))
        return tgi_fail(err, TG_E_FORMAT, "the number of channels overflows");
    d.dim[2] /= b;
    d.dim[3] /= b;
    dst[0] = d;
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    const int64_t b = ((const d2s_attrs *)ctx->attrs)->blocksize;
    (void)src_i;
    *out = axis == TGI_Z ? TGI_SLIDE_SAME : (tgi_slide){.num = b, .den = 1, .hi = b - 1};
    return 1;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const int64_t b = ((const d2s_attrs *)arg)->blocksize, n = call->ctx->src[0].dim[1];
    const int64_t k = p->c / n;
    return tgi_src_at(call, 0, &(tgi_px){p->c % n, 0, p->y * b + k / b, p->x * b + k % b});
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->attrs);
    return TG_OK;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_space_to_depth = {
    .name = "SpaceToDepth",
    .attrs = rows,
    .attrs_size = sizeof(d2s_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
};
