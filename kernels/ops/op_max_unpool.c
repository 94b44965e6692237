/* op_max_unpool.c - MaxUnpool: each element goes back where MaxPool's second output says it
 * came from, everything else is 0. Indices count in the tensor that the kernel, strides and
 * pads give; `output_shape` may ask for a larger one, in whose corner that lies. On dense
 * tensors.
 * @source ONNX operator MaxUnpool, versions 9 to 22. */
#include "kernels/ops/dense_plan.h"
#include "kernels/ops/op_shared.h"

typedef struct unpool_attrs {
    tgi_ints kernel_shape, pads, strides;
} unpool_attrs;

#define AT(field) offsetof(unpool_attrs, field)
static const tgi_attr rows[] = {
    {"kernel_shape", TGI_ATTR_INTS, AT(kernel_shape), 0, 0, 0, NULL, "extents of the windows"},
    {"pads", TGI_ATTR_INTS, AT(pads), 0, 0, 0, NULL, "begins, then ends"},
    {"strides", TGI_ATTR_INTS, AT(strides), 0, 0, 0, NULL, "step per input"},
    {0}};

tg_status tgi_unpool_covered(const tgi_op_ctx *ctx, tgi_desc *d, tgi_err *err)
{
    const unpool_attrs *a = ctx->attrs;
    const int n = ctx->src[0].rank - 2;
    *d = ctx->src[0];
    if (n < 1 || n > 3 || a->kernel_shape.n != n || (a->pads.n >= 0 && a->pads.n != 2 * n) ||
        (a->strides.n >= 0 && a->strides.n != n))
        return tgi_fail(err, TG_E_FORMAT,
                        "kernel_shape, pads or strides of an input of rank %d", n + 2);
    for (int k = 0; k < n; k++) {
        const int64_t stride = a->strides.n < 0 ? 1 : a->strides.v[k];
        const int64_t pads = a->pads.n < 0 ? 0 : a->pads.v[k] + a->pads.v[n + k];
        const int64_t kernel = a->kernel_shape.v[k];
        if (stride < 1 || stride > 1 << 20 || pads < 0 || pads > 1 << 20 || kernel < 1 ||
            kernel > 1 << 20)
            return tgi_fail(err, TG_E_FORMAT, "a window of %" PRId64 " by steps of %" PRId64,
                            kernel, stride);
        if (!tgi_mul64_ok(d->dim[2 + k] - 1, stride, &d->dim[2 + k]))
            return tgi_fail(err, TG_E_FORMAT, "the extent overflows");
        d->dim[2 + k] += kernel - pads;
    }
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_desc d;
    tgi_ints shape;
    if (ctx->n_src < 2 || !tgi_desc_same_shape(&ctx->src[0], &ctx->src[1]))
        return tgi_fail(err, TG_E_FORMAT, "data and indices are not of one shape");
    TGI_TRY(tgi_unpool_covered(ctx, &d, err));
    if (tgi_given(ctx, 2)) {
        TGI_TRY(tgi_const_ints(ctx, 2, "output_shape", &shape, err));
        for (int k = 0; k < d.rank; k++) {
            if (shape.n != d.rank || shape.v[k] < d.dim[k])
                return tgi_fail(err, TG_E_FORMAT, "output_shape does not hold what is covered");
            d.dim[k] = shape.v[k];
        }
    }
    dst[0] = d;
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_constant *x = ctx->const_src[0], *index = ctx->const_src[1];
    const size_t size = tgi_dtype_size(x->desc.dtype);
    int64_t stride[TGI_MAX_RANK];
    tgi_desc d;
    TGI_TRY(tgi_unpool_covered(ctx, &d, err));
    const int64_t n = tgi_dense_count(&d);
    tgi_dense_strides(&ctx->dst[0], stride);
    memset(dst_data[0], 0, (size_t)tgi_dense_count(&ctx->dst[0]) * size);
    for (int64_t i = 0; i < tgi_const_count(x); i++) {
        int64_t rest = tgi_int_at(index, i), to = 0;
        if (rest < 0 || rest >= n)
            return tgi_fail(err, TG_E_FORMAT, "index %" PRId64 " of %" PRId64 " elements", rest,
                            n);
        for (int k = d.rank - 1; k >= 0; k--, rest /= d.dim[k + 1])
            to += rest % d.dim[k] * stride[k];
        memcpy((char *)dst_data[0] + (size_t)to * size,
               (const char *)x->data + (size_t)i * size, size);
    }
    return TG_OK;
}

const tgi_op tgi_op_max_unpool = {
    .name = "MaxUnpool",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(unpool_attrs),
    .infer = infer,
    .eval = eval,
};
