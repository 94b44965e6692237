/* op_reshape.c - Reshape: same elements, other extents; 0 copies (unless allowzero), one -1 is
 * what remains. On images it is never executed: the importer rewrites known patterns.
 * @source ONNX operator Reshape, versions 1 (shape attribute), 5, 13, 14 (allowzero). */
#include "kernels/ops/op_shared.h"

typedef struct reshape_attrs {
    int64_t allowzero;
    tgi_ints shape;
} reshape_attrs;

static const tgi_attr rows[] = {
    {"allowzero", TGI_ATTR_INT, offsetof(reshape_attrs, allowzero), 0, 0, 1, NULL, "0 means 0"},
    {"shape", TGI_ATTR_INTS, offsetof(reshape_attrs, shape), 0, 0, 0, NULL, "opset < 5"},
    {0}};

/* Extents with 0 resolved; *hole: the axis that is -1, or -1. */
static tg_status fill(const tgi_desc *s, const tgi_ints *want, int allowzero, tgi_desc *d,
                      int *hole, tgi_err *err)
{
    *hole = -1;
    for (int k = 0; k < d->rank; k++) {
        int64_t n = want->v[k];
        if (n == 0 && !allowzero) {
            if (k >= s->rank)
                return tgi_fail(err, TG_E_FORMAT, "extent %d copies an axis that is not there",
                                k);
            n = s->dim[k];
        }
        if (n < -1 || (n == -1 && *hole >= 0))
            return tgi_fail(err, TG_E_FORMAT, "extent %d is %" PRId64, k, n);
        if (n == -1)
            *hole = k;
        d->dim[k] = n == -1 ? 1 : n;
    }
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const reshape_attrs *a = ctx->attrs;
    const tgi_desc *s = &ctx->src[0];
    tgi_ints want = a->shape;
    int64_t have = 0, n = 0;
    int hole;
    if (ctx->opset >= 5)
        TGI_TRY(tgi_const_ints(ctx, 1, "shape", &want, err));
    if (want.n < 0 || want.n > TGI_MAX_RANK)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a shape of %d extents", want.n);
    tgi_desc d = {s->dtype, want.n, {0}};
    TGI_TRY(fill(s, &want, a->allowzero != 0, &d, &hole, err));
    const int ok = tgi_desc_count(s, &have) && tgi_desc_count(&d, &n);
    if (ok && hole >= 0 && n > 0 && have % n == 0) {
        d.dim[hole] = have / n;
        n = have;
    }
    if (!ok || n != have) {
        char p[128], q[128];
        return tgi_fail(err, TG_E_FORMAT, "%s does not reshape into %s",
                        tgi_desc_text(s, p, sizeof p), tgi_desc_text(&d, q, sizeof q));
    }
    dst[0] = d;
    return TG_OK;
}

const tgi_op tgi_op_reshape = {
    .name = "Reshape",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(reshape_attrs),
    .infer = infer,
    .eval = tgi_eval_copy,
};
