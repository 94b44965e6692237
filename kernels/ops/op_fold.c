/* op_fold.c - broadcasting, and evaluation of operators on dense constants of any rank.
 * @source ONNX docs Broadcasting.md: shapes are aligned at their last axis; extent 1 repeats.
 */
#include "kernels/ops/op_shared.h"

/* First axis of dst that input i touches. */
static int lead_of(const tgi_op_ctx *ctx, int i, int lead, int dst_rank)
{
    return lead >= 0 && i > 0 ? lead : dst_rank - ctx->src[i].rank;
}

/* Merge shape `s`, placed at axis `at`, into `d`. */
static tg_status merge(tgi_desc *d, const tgi_desc *s, int at, tgi_err *err)
{
    for (int k = 0; k < s->rank; k++) {
        int64_t *have = &d->dim[at + k];
        if (*have != s->dim[k] && *have != 1 && s->dim[k] != 1) {
            char a[128], b[128];
            return tgi_fail(err, TG_E_FORMAT, "shapes %s and %s do not broadcast",
                            tgi_desc_text(d, a, sizeof a), tgi_desc_text(s, b, sizeof b));
        }
        if (*have == 1)
            *have = s->dim[k];
    }
    return TG_OK;
}

tg_status tgi_infer_broadcast(const tgi_op_ctx *ctx, int lead, tgi_desc *dst, tgi_err *err)
{
    tgi_desc d = {.dtype = TG_DTYPE_NONE, .rank = 0};
    if (ctx->n_src < 1)
        return tgi_fail(err, TG_E_FORMAT, "it has no input");
    for (int i = 0; i < ctx->n_src; i++) {
        if (!tgi_given(ctx, i))
            return tgi_fail(err, TG_E_FORMAT, "input %d is missing", i);
        if (d.dtype == TG_DTYPE_NONE)
            d.dtype = ctx->src[i].dtype;
        if (ctx->src[i].dtype != d.dtype)
            return tgi_fail(err, TG_E_FORMAT, "inputs of types %s and %s",
                            tgi_dtype_name(d.dtype), tgi_dtype_name(ctx->src[i].dtype));
        d.rank = d.rank > ctx->src[i].rank ? d.rank : ctx->src[i].rank;
    }
    for (int k = 0; k < d.rank; k++)
        d.dim[k] = 1;
    for (int i = 0; i < ctx->n_src; i++) {
        const int at = lead_of(ctx, i, lead, d.rank);
        if (at < 0 || at + ctx->src[i].rank > d.rank)
            return tgi_fail(err, TG_E_FORMAT, "axis %d for an input of rank %d in rank %d", at,
                            ctx->src[i].rank, d.rank);
        TGI_TRY(merge(&d, &ctx->src[i], at, err));
    }
    dst[0] = d;
    return TG_OK;
}

int tgi_slide_broadcast(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide)
{
    const tgi_desc *s = &ctx->src[src_i];
    const int64_t n = tgi_desc_axis(s, axis);
    *slide = s->rank == ctx->dst[0].rank && n != 1 ? TGI_SLIDE_SAME : tgi_slide_all(n);
    return 1;
}

tgi_const_form tgi_const_form_of(const tgi_op_ctx *ctx, int i, int lead)
{
    const tgi_constant *c = tgi_const(ctx, i);
    if (!c)
        return TGI_NOT_CONST;
    if (tgi_const_count(c) == 1)
        return TGI_CONST_SCALAR;
    const tgi_desc *d = &ctx->dst[0];
    const int at = lead_of(ctx, i, lead, d->rank);
    for (int k = 0; k < c->desc.rank; k++)
        if (c->desc.dim[k] != (at + k == 1 ? d->dim[1] : 1))
            return TGI_CONST_OTHER;
    return TGI_CONST_CHANNEL;
}

/* Coordinate of axis k of a value of rank r at pixel p. */
static int64_t coord(const tgi_px *p, int k, int r)
{
    return k == 0 ? 0 : k == 1 ? p->c : k == r - 1 ? p->x : k == r - 2 ? p->y : p->z;
}

float tgi_src_broadcast(const tgi_call *call, int i, int lead, const tgi_px *p)
{
    const tgi_op_ctx *ctx = call->ctx;
    const tgi_desc *s = &ctx->src[i];
    const int r = ctx->dst[0].rank;
    if (call->src[i].n_seg) {
        const tgi_px q = {s->dim[1] == 1 ? 0 : p->c, tgi_desc_axis(s, TGI_Z) == 1 ? 0 : p->z,
                          tgi_desc_axis(s, TGI_Y) == 1 ? 0 : p->y,
                          tgi_desc_axis(s, TGI_X) == 1 ? 0 : p->x};
        return tgi_src_at(call, i, &q);
    }
    const int at = lead_of(ctx, i, lead, r);
    int64_t index = 0;
    for (int k = 0; k < s->rank; k++)
        index = index * s->dim[k] + (s->dim[k] == 1 ? 0 : coord(p, at + k, r));
    return (float)tgi_num_at(ctx->const_src[i], index);
}

/* ---- Reference and epilogue of binary operators ------------------------------------------ */

typedef struct arith_arg {
    const tgi_arith *op;
    int lead;
} arith_arg;

static float arith_px(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const arith_arg *a = arg;
    float v = tgi_src_broadcast(call, 0, a->lead, p);
    for (int i = 1; i < call->ctx->n_src; i++)
        v = (float)a->op->f((double)v, (double)tgi_src_broadcast(call, i, a->lead, p));
    return v;
}

tg_status tgi_check_ranks(const tgi_call *call, tgi_err *err)
{
    const tgi_op_ctx *ctx = call->ctx;
    for (int i = 0; i < ctx->n_src; i++)
        if (call->src[i].n_seg && ctx->src[i].rank != ctx->dst[0].rank)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "an activation of rank %d broadcast into rank %d", ctx->src[i].rank,
                            ctx->dst[0].rank);
    return TG_OK;
}

tg_status tgi_ref_arith(const tgi_call *call, const tgi_arith *op, int lead, tgi_err *err)
{
    const arith_arg arg = {op, lead};
    TGI_TRY(tgi_check_ranks(call, err));
    tgi_ref_each(call, 0, arith_px, &arg);
    return TG_OK;
}

int tgi_step_arith(const tgi_op_ctx *ctx, int chain, int lead, tgi_epi_kind fwd,
                   tgi_epi_kind rev, tgi_epi_step *step)
{
    const int other = 1 - chain;
    if (ctx->n_src != 2 || !tgi_desc_same_shape(&ctx->src[chain], &ctx->dst[0]))
        return 0;
    *step = (tgi_epi_step){.kind = chain == 0 ? fwd : rev, .src = -1};
    switch (tgi_const_form_of(ctx, other, lead)) {
    case TGI_CONST_SCALAR:
        step->a = (float)tgi_num_at(tgi_const(ctx, other), 0);
        return 1;
    case TGI_CONST_CHANNEL:
        return 1;
    case TGI_CONST_OTHER:
        return 0;
    case TGI_NOT_CONST:
        step->src = other;
        return tgi_desc_same_shape(&ctx->src[other], &ctx->dst[0]);
    }
    return 0;
}

const tgi_attr tgi_binary_rows[] = {{"axis", TGI_ATTR_INT, offsetof(tgi_binary_attrs, axis), -1,
                                     -8, 8, NULL, "opset < 7: where the second shape begins"},
                                    {"broadcast", TGI_ATTR_INT,
                                     offsetof(tgi_binary_attrs, broadcast), 0, 0, 1, NULL,
                                     "opset < 7: broadcasting allowed"},
                                    {0}};

int tgi_binary_lead(const tgi_op_ctx *ctx)
{
    const tgi_binary_attrs *a = ctx->attrs;
    return ctx->opset < 7 && a->broadcast ? (int)a->axis : -1;
}

/* ---- Dense evaluation -------------------------------------------------------------------- */

void tgi_dense_strides(const tgi_desc *d, int64_t *stride)
{
    int64_t s = 1;
    for (int k = d->rank - 1; k >= 0; k--) {
        stride[k] = s;
        s *= d->dim[k];
    }
}

int tgi_next_index(const tgi_desc *d, int64_t *at)
{
    for (int k = d->rank - 1; k >= 0; k--) {
        if (++at[k] < d->dim[k])
            return 1;
        at[k] = 0;
    }
    return 0;
}

int64_t tgi_dense_count(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? n : 0;
}

void tgi_gather_dense(const tgi_desc *dst, void *dst_data, const void *src_data, int64_t base,
                      const int64_t *stride, size_t size)
{
    int64_t at[TGI_MAX_RANK] = {0};
    char *out = dst_data;
    if (tgi_dense_count(dst) == 0)
        return;
    do {
        int64_t off = base;
        for (int k = 0; k < dst->rank; k++)
            off += at[k] * stride[k];
        memcpy(out, (const char *)src_data + (size_t)off * size, size);
        out += size;
    } while (tgi_next_index(dst, at));
}

tg_status tgi_eval_copy(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    (void)err;
    const size_t n = (size_t)tgi_dense_count(&ctx->dst[0]) * tgi_dtype_size(ctx->dst[0].dtype);
    if (n)
        memcpy(dst_data[0], ctx->const_src[0]->data, n);
    return TG_OK;
}

tg_status tgi_eval_unary(const tgi_op_ctx *ctx, void *const *dst_data, tgi_unary_fn fn,
                         tgi_err *err)
{
    (void)err;
    const int64_t n = tgi_dense_count(&ctx->dst[0]);
    const tg_dtype t = ctx->dst[0].dtype;
    for (int64_t i = 0; i < n; i++)
        tgi_num_put(t, dst_data[0], i, fn(tgi_num_at(ctx->const_src[0], i), ctx->attrs));
    return TG_OK;
}

int64_t tgi_dense_offset(const tgi_op_ctx *ctx, int i, int lead, const int64_t *at)
{
    const tgi_desc *s = &ctx->src[i];
    const int first = lead_of(ctx, i, lead, ctx->dst[0].rank);
    int64_t off = 0;
    for (int k = 0; k < s->rank; k++)
        off = off * s->dim[k] + (s->dim[k] == 1 ? 0 : at[first + k]);
    return off;
}

/* Element n, at index `at`; 0: the operator is not defined there. */
static int eval_arith_at(const tgi_op_ctx *ctx, const tgi_arith *op, int lead, int on_floats,
                         const int64_t *at, void *dst, int64_t n)
{
    const tg_dtype t = ctx->src[0].dtype;
    const int64_t o = tgi_dense_offset(ctx, 0, lead, at);
    if (on_floats) {
        double v = tgi_num_at(ctx->const_src[0], o);
        for (int i = 1; i < ctx->n_src; i++) {
            v = op->f(v, tgi_num_at(ctx->const_src[i], tgi_dense_offset(ctx, i, lead, at)));
            if (t == TG_DTYPE_F32)
                v = (double)(float)v;
        }
        tgi_num_put(ctx->dst[0].dtype, dst, n, v);
        return 1;
    }
    int64_t v = tgi_int_at(ctx->const_src[0], o);
    for (int i = 1; i < ctx->n_src; i++) {
        const int64_t b = tgi_int_at(ctx->const_src[i], tgi_dense_offset(ctx, i, lead, at));
        if (!op->i(v, b, tgi_dtype_is_unsigned(t), &v))
            return 0;
    }
    tgi_int_put(ctx->dst[0].dtype, dst, n, v);
    return 1;
}

tg_status tgi_eval_arith(const tgi_op_ctx *ctx, void *const *dst_data, const tgi_arith *op,
                         int lead, tgi_err *err)
{
    int64_t at[TGI_MAX_RANK] = {0}, n = 0;
    int on_floats = 0;
    for (int i = 0; i < ctx->n_src; i++)
        on_floats |= tgi_dtype_is_float(ctx->src[i].dtype);
    if (on_floats ? !op->f : !op->i)
        return tgi_fail(err, TG_E_UNSUPPORTED, "it is not defined for %s",
                        tgi_dtype_name(ctx->src[0].dtype));
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        if (!eval_arith_at(ctx, op, lead, on_floats, at, dst_data[0], n))
            return tgi_fail(err, TG_E_FORMAT,
                            "constants for which the operator is not defined, such as x/0");
        n++;
    } while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}
