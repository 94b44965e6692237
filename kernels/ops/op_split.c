/* op_split.c - Split: pieces along an axis. On images along channels only; constants anywhere.
 * Border: none, each element has one source element.
 * @source ONNX operator Split, versions 2, 11 (attribute), 13 (input), 18 (num_outputs). */
#include "kernels/ops/dense_plan.h"

typedef struct split_attrs {
    int64_t axis, num_outputs;
    tgi_ints split;
} split_attrs;

static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, offsetof(split_attrs, axis), 0, -8, 7, NULL, "axis that is cut"},
    {"num_outputs", TGI_ATTR_INT, offsetof(split_attrs, num_outputs), 0, 0, 0, NULL,
     "equal pieces, the last one smaller"},
    {"split", TGI_ATTR_INTS, offsetof(split_attrs, split), 0, 0, 0, NULL, "opset < 13"},
    {0}};

/* Extents of the pieces. */
tg_status tgi_split_pieces(const tgi_op_ctx *ctx, int *axis, int64_t *n, tgi_err *err)
{
    const split_attrs *a = ctx->attrs;
    tgi_ints list = a->split;
    int64_t sum = 0;
    TGI_TRY(tgi_axis(a->axis, ctx->src[0].rank, axis, err));
    const int64_t extent = ctx->src[0].dim[*axis];
    if (ctx->opset >= 13) {
        list.n = -1;
        if (tgi_given(ctx, 1))
            TGI_TRY(tgi_const_ints(ctx, 1, "split", &list, err));
    }
    if (list.n < 0 && ctx->opset < 18 && extent % ctx->n_dst)
        return tgi_fail(err, TG_E_FORMAT, "%" PRId64 " in %d equal pieces", extent, ctx->n_dst);
    if (list.n >= 0 && list.n != ctx->n_dst)
        return tgi_fail(err, TG_E_FORMAT, "%d sizes for %d outputs", list.n, ctx->n_dst);
    const int64_t piece = (extent + ctx->n_dst - 1) / ctx->n_dst;
    for (int i = 0; i < ctx->n_dst; i++) {
        n[i] = list.n >= 0 ? list.v[i] : tgi_clamp(extent - i * piece, 0, piece);
        if (n[i] < 0 || n[i] > extent - sum)
            return tgi_fail(err, TG_E_FORMAT, "piece %d of %" PRId64 " in %" PRId64, i, n[i],
                            extent);
        sum += n[i];
    }
    if (sum != extent)
        return tgi_fail(err, TG_E_FORMAT, "pieces sum to %" PRId64 ", the axis has %" PRId64,
                        sum, extent);
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    int64_t n[TGI_OP_MAX_DST];
    int axis;
    if (ctx->n_dst < 1 || ctx->n_dst > TGI_OP_MAX_DST)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%d outputs, at most %d", ctx->n_dst,
                        TGI_OP_MAX_DST);
    TGI_TRY(tgi_split_pieces(ctx, &axis, n, err));
    if (axis != 1 && ctx->src[0].rank >= 4 && !tgi_const(ctx, 0))
        return tgi_fail(err, TG_E_UNSUPPORTED, "an image cut along axis %d: channels only",
                        axis);
    for (int i = 0; i < ctx->n_dst; i++) {
        dst[i] = ctx->src[0];
        dst[i].dim[axis] = n[i];
    }
    return TG_OK;
}

/* All channels of the same rows. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    (void)ctx, (void)src_i, (void)axis;
    *out = TGI_SLIDE_SAME;
    return 1;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_px q = {p->c + *(const int64_t *)arg, p->z, p->y, p->x};
    return tgi_src_at(call, 0, &q);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    int64_t first = 0;
    (void)err;
    for (int i = 0; i < call->ctx->n_dst; i++) {
        tgi_ref_each(call, i, value, &first);
        first += call->dst[i].c;
    }
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    int64_t n[TGI_OP_MAX_DST], stride[TGI_MAX_RANK], first = 0;
    int axis;
    TGI_TRY(tgi_split_pieces(ctx, &axis, n, err));
    tgi_dense_strides(&ctx->src[0], stride);
    for (int i = 0; i < ctx->n_dst; i++) {
        tgi_gather_dense(&ctx->dst[i], dst_data[i], ctx->const_src[0]->data,
                         first * stride[axis], stride, tgi_dtype_size(ctx->src[0].dtype));
        first += n[i];
    }
    return TG_OK;
}

const tgi_op tgi_op_split = {
    .name = "Split",
    .any_type = 1,
    .attrs = rows,
    .attrs_size = sizeof(split_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
};
