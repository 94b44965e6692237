/* op_concat.c - Concat. On images along channels only: there it is a list of views and nothing
 * moves. Constants (shape arithmetic) concatenate along any axis.
 * Border: none, each element by itself.
 * @source ONNX operator Concat, versions 4 to 13. */
#include "kernels/ops/op_shared.h"

static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, offsetof(axis_attrs, axis), 1, -8, 7, NULL, "where pieces meet"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    int axis;
    if (!tgi_given(ctx, 0))
        return tgi_fail(err, TG_E_FORMAT, "input 0 is missing");
    tgi_desc d = ctx->src[0];
    TGI_TRY(tgi_axis(a->axis, d.rank, &axis, err));
    for (int i = 1; i < ctx->n_src; i++) {
        tgi_desc s = ctx->src[i];
        const int64_t extent = s.rank == d.rank ? s.dim[axis] : 0;
        if (s.rank == d.rank)
            s.dim[axis] = d.dim[axis];
        if (!tgi_desc_same_shape(&s, &d) || s.dtype != d.dtype) {
            char p[128], q[128];
            return tgi_fail(err, TG_E_FORMAT,
                            "inputs 0 and %d are %s and %s: only axis %d may"
                            " differ",
                            i, tgi_desc_text(&ctx->src[0], p, sizeof p),
                            tgi_desc_text(&ctx->src[i], q, sizeof q), axis);
        }
        if (!tgi_add64_ok(d.dim[axis], extent, &d.dim[axis]))
            return tgi_fail(err, TG_E_FORMAT, "the extent of axis %d overflows", axis);
    }
    if (axis != 1 && d.rank >= 4 && !tgi_all_const(ctx))
        return tgi_fail(err, TG_E_UNSUPPORTED, "images side by side (axis %d): channels only",
                        axis);
    dst[0] = d;
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
    (void)arg;
    tgi_px q = *p;
    int i = 0;
    while (q.c >= call->ctx->src[i].dim[1])
        q.c -= call->ctx->src[i++].dim[1];
    return tgi_src_broadcast(call, i, -1, &q);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, NULL);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    const size_t size = tgi_dtype_size(ctx->dst[0].dtype);
    int axis;
    TGI_TRY(tgi_axis(a->axis, ctx->dst[0].rank, &axis, err));
    size_t outer = 1, inner = size;
    for (int k = 0; k < ctx->dst[0].rank; k++)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : (size_t)ctx->dst[0].dim[k];
    char *to = dst_data[0];
    for (size_t o = 0; o < outer; o++)
        for (int i = 0; i < ctx->n_src; i++) {
            const size_t n = (size_t)ctx->src[i].dim[axis] * inner;
            if (n)
                memcpy(to, (const char *)ctx->const_src[i]->data + o * n, n);
            to += n;
        }
    return TG_OK;
}

const tgi_op tgi_op_concat = {
    .name = "Concat",
    .any_type = 1,
    .attrs = rows,
    .attrs_size = sizeof(axis_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
};
