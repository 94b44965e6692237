/* op_gather.c - Gather: pick slices along an axis by constant indices. Folded at import.
 * @source ONNX operator Gather, versions 1 to 13. */
#include "kernels/ops/op_shared.h"

static const tgi_attr rows[] = {
    {"axis", TGI_ATTR_INT, offsetof(axis_attrs, axis), 0, -8, 7, NULL, "axis picked from"},
    {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    const tgi_desc *d = &ctx->src[0], *at = &ctx->src[1];
    int axis;
    if (ctx->n_src != 2)
        return tgi_fail(err, TG_E_FORMAT, "%d inputs, expected data and indices", ctx->n_src);
    TGI_TRY(tgi_axis(a->axis, d->rank, &axis, err));
    if (d->rank - 1 + at->rank > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a result of rank %d", d->rank - 1 + at->rank);
    tgi_desc r = {d->dtype, d->rank - 1 + at->rank, {0}};
    for (int k = 0; k < r.rank; k++)
        r.dim[k] = k < axis              ? d->dim[k]
                   : k < axis + at->rank ? at->dim[k - axis]
                                         : d->dim[k - at->rank + 1];
    dst[0] = r;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const axis_attrs *a = ctx->attrs;
    const tgi_desc *d = &ctx->src[0];
    size_t outer = 1, inner = tgi_dtype_size(d->dtype);
    int axis;
    TGI_TRY(tgi_axis(a->axis, d->rank, &axis, err));
    for (int k = 0; k < d->rank; k++)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : (size_t)d->dim[k];
    const int64_t extent = d->dim[axis], n = tgi_const_count(ctx->const_src[1]);
    char *to = dst_data[0];
    for (size_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++, to += inner) {
            const int64_t at = tgi_int_at(ctx->const_src[1], i);
            if (at < -extent || at >= extent)
                return tgi_fail(err, TG_E_FORMAT, "index %" PRId64 " in an axis of %" PRId64,
                                at, extent);
            const size_t from = (o * (size_t)extent + (size_t)(at < 0 ? at + extent : at));
            if (inner)
                memcpy(to, (const char *)ctx->const_src[0]->data + from * inner, inner);
        }
    return TG_OK;
}

const tgi_op tgi_op_gather = {
    .name = "Gather",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(axis_attrs),
    .infer = infer,
    .eval = eval,
};
