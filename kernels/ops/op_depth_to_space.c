/* op_depth_to_space.c - DepthToSpace (pixel shuffle): blocks of b*b channels become b*b pixels.
 *
 *   out[c, y, x] = in[channel, y / b, x / b],  k = (y mod b) * b + x mod b
 *   DCR: channel = k * C_out + c        CRD: channel = c * b * b + k
 *
 * Border: none; each output pixel has one source pixel.
 * @source ONNX operator DepthToSpace, versions 1 (DCR), 11, 13. */
#include "kernels/ops/op_shared.h"

static const char *const modes[] = {"DCR", "CRD", NULL};
static const tgi_attr rows[] = {
    {"blocksize", TGI_ATTR_INT, offsetof(d2s_attrs, blocksize), 0, 1, 1024, NULL, "b"},
    {"mode", TGI_ATTR_ENUM, offsetof(d2s_attrs, mode), 0, 0, 1, modes, "order of channels"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const d2s_attrs *a = ctx->attrs;
    const int64_t b = a->blocksize;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    tgi_desc d = ctx->src[0];
    if (d.rank != 4)
        return tgi_fail(err, TG_E_FORMAT, "an input of rank %d: defined for rank 4", d.rank);
    if (b < 1 || b > 1024 || d.dim[1] % (b * b))
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " channels in blocks of %" PRId64 " x %" PRId64, d.dim[1], b,
                        b);
    d.dim[1] /= b * b;
    if (!tgi_mul64_ok(d.dim[2], b, &d.dim[2]) || !tgi_mul64_ok(d.dim[3], b, &d.dim[3]))
        return tgi_fail(err, TG_E_FORMAT, "the extent overflows");
    dst[0] = d;
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    const int64_t b = ((const d2s_attrs *)ctx->attrs)->blocksize;
    (void)src_i;
    *out = axis == TGI_Z ? TGI_SLIDE_SAME : (tgi_slide){.num = 1, .den = b};
    return 1;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const d2s_attrs *a = arg;
    const int64_t b = a->blocksize, k = p->y % b * b + p->x % b;
    const int64_t c = a->mode == 0 ? k * call->dst[0].c + p->c : p->c * b * b + k;
    const tgi_px q = {c, 0, p->y / b, p->x / b};
    return tgi_src_at(call, 0, &q);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, call->ctx->attrs);
    return TG_OK;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_depth_to_space = {
    .name = "DepthToSpace",
    .attrs = rows,
    .attrs_size = sizeof(d2s_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
};
