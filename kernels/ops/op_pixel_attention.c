/* op_pixel_attention.c - PixelAttention: each pixel of source 0, a query, becomes a mean of the
 * pixels of source 2, weighted by its likeness to the pixels of source 1, the keys:
 *
 *   out[q] = sum over j of w[q, j] * value[j]
 *   w[q, j] = softmax over j of scale * (query[q] . key[j])
 *
 * Source 2 has the pixels of source 1; source 0 may have others. Channels are cut into `heads`
 * equal parts, and each part of the result is made of the same parts of the sources by itself.
 * In float64, keys in the order of the image. No operator of ONNX: MatMul, Softmax, MatMul of
 * tokens, without their matrix of likenesses. A query reads one pixel of source 0 and all of the
 * others.
 * Border: none. */
#include "kernels/ops/op_shared.h"

#include <math.h>

static const tgi_attr rows[] = {{"heads", TGI_ATTR_INT, offsetof(attention_attrs, heads), 1, 1,
                                 INT32_MAX, NULL, "parts of the channels, each by itself"},
                                {"scale", TGI_ATTR_FLOAT, offsetof(attention_attrs, scale), 1,
                                 0, 0, NULL, "factor of likeness"},
                                {0}};

static int64_t heads_of(const tgi_op_ctx *ctx)
{
    return ((const attention_attrs *)ctx->attrs)->heads;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    for (int i = 0; i < 3; i++)
        TGI_TRY(tgi_want_image(ctx, i, err));
    const tgi_desc *q = &ctx->src[0], *k = &ctx->src[1], *v = &ctx->src[2];
    const int64_t heads = heads_of(ctx);
    tgi_desc pixels = *v;
    pixels.dim[1] = k->dim[1];
    if (q->rank != k->rank || q->dim[1] != k->dim[1])
        return tgi_fail(err, TG_E_FORMAT,
                        "queries of %" PRId64 " channels and keys of %" PRId64, q->dim[1],
                        k->dim[1]);
    if (!tgi_desc_same_shape(k, &pixels))
        return tgi_fail(err, TG_E_FORMAT, "%" PRId64 " keys and %" PRId64 " values",
                        tgi_dense_count(k) / tgi_max(k->dim[1], 1),
                        tgi_dense_count(v) / tgi_max(v->dim[1], 1));
    if (heads < 1 || k->dim[1] % heads || v->dim[1] % heads)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " and %" PRId64 " channels are not %" PRId64 " heads",
                        k->dim[1], v->dim[1], heads);
    *dst = *q;
    dst->dim[1] = v->dim[1];
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 0 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

/* ---- Reference --------------------------------------------------------------------------- */

#define PART 64 /* channels of a result that are summed together */

/* One query, and the part of the channels that it looks at. */
typedef struct query {
    const tgi_call *call;
    tgi_px at;
    int64_t inner, c0; /* channels of a head, and its first one */
    double top, sum;   /* of all likenesses */
} query;

static tgi_px key_at(const tgi_call *call, int64_t j)
{
    const tgi_desc *k = &call->ctx->src[1];
    const int64_t w = tgi_desc_axis(k, TGI_X), h = tgi_desc_axis(k, TGI_Y);
    return (tgi_px){0, j / w / h, j / w % h, j % w};
}

static int64_t n_keys(const tgi_op_ctx *ctx)
{
    return tgi_dense_count(&ctx->src[1]) / ctx->src[1].dim[1];
}

/* Element p of source i, which may be a constant. */
static double element(const tgi_call *call, int i, const tgi_px *p)
{
    const tgi_constant *given = tgi_const(call->ctx, i);
    const tgi_desc *d = &call->ctx->src[i];
    if (!given)
        return (double)tgi_src_at(call, i, p);
    const int64_t plane = p->c * tgi_desc_axis(d, TGI_Z) + p->z;
    const int64_t line = plane * tgi_desc_axis(d, TGI_Y) + p->y;
    return (double)tgi_f32_at(given->data, line * tgi_desc_axis(d, TGI_X) + p->x);
}

static double likeness(const query *q, int64_t j)
{
    const attention_attrs *a = q->call->ctx->attrs;
    tgi_px p = q->at, k = key_at(q->call, j);
    double sum = 0;
    for (int64_t c = q->c0; c < q->c0 + q->inner; c++) {
        p.c = k.c = c;
        sum += element(q->call, 0, &p) * element(q->call, 1, &k);
    }
    return (double)a->scale * sum;
}

static void weigh(query *q)
{
    const int64_t n = n_keys(q->call->ctx);
    q->top = -INFINITY;
    q->sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double v = likeness(q, j);
        q->top = v > q->top ? v : q->top;
    }
    for (int64_t j = 0; j < n; j++)
        q->sum += exp(likeness(q, j) - q->top);
}

/* Channels [c0, c1) of the result, at most PART. */
static void result(const query *q, int64_t c0, int64_t c1)
{
    const int64_t n = n_keys(q->call->ctx);
    double acc[PART] = {0};
    for (int64_t j = 0; j < n; j++) {
        const double w = exp(likeness(q, j) - q->top) / q->sum;
        tgi_px v = key_at(q->call, j);
        for (v.c = c0; v.c < c1; v.c++)
            acc[v.c - c0] += w * element(q->call, 2, &v);
    }
    for (int64_t c = c0; c < c1; c++)
        *tgi_view_at(&q->call->dst[0], c, q->at.z, q->at.y, q->at.x) = (float)acc[c - c0];
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    const int64_t heads = heads_of(call->ctx), outer = call->dst[0].c / heads;
    query q = {.call = call, .at = {0, z, y, 0}, .inner = call->ctx->src[0].dim[1] / heads};
    for (q.at.x = x.lo; q.at.x < x.hi; q.at.x++)
        for (int64_t head = 0; head < heads; head++) {
            q.c0 = head * q.inner;
            weigh(&q);
            for (int64_t c = 0; c < outer; c += PART)
                result(&q, head * outer + c, head * outer + tgi_min(c + PART, outer));
        }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

/* Of each channel of a result: what it adds of every key, and its share of the likenesses. */
static double flops(const tgi_op_ctx *ctx)
{
    const double inner = (double)ctx->src[1].dim[1], outer = (double)ctx->src[2].dim[1];
    const double exponential = 16 * (double)heads_of(ctx);
    double keys = 1;
    for (int a = 2; a < ctx->src[1].rank; a++)
        keys *= (double)ctx->src[1].dim[a];
    return keys * (2 * (inner + outer) + exponential) / outer;
}

const tgi_op tgi_op_pixel_attention = {
    .name = "PixelAttention",
    .internal = 1,
    .op_class = TGI_OP_WHOLE,
    .by_rows = 1,
    .attrs = rows,
    .attrs_size = sizeof(attention_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};
