/* op_window_attention.c - WindowAttention: ProPainter's sparse attention of tokens in windows.
 *
 * F frames stand one behind the other in channels. Frames are cut into windows of window_h x
 * window_w tokens; windows that reach beyond the last row or column are filled with tokens whose
 * key and value are constants. Each token of source 0, a query, becomes a mean of values, weighted
 * by the likeness of their keys, as in PixelAttention:
 *
 *   sources 1, 2    keys and values of the tokens, of source 0's shape; where the first `asked`
 *                   frames alone have queries, of as many more channels
 *   sources 3, 4    keys and values of pooled tokens, of the same channels
 *   source 5        a pixel for each window: not 0 where the window is masked
 *   sources 6, 7    key and value of a token that fills, constants of a frame's channels
 *
 * In a window that is not masked a query looks at the tokens of its own frame and window. In a
 * masked one it looks at frames `first`, first + 2, ...: in each at the window's tokens, at those
 * around it (window_tokens.h) and at all pooled ones, in that order. Channels of a frame are cut
 * into `heads` equal parts, each by itself. In float64: the largest likeness, then sums.
 * Border: see above; columns and rows around a window wrap at the filled grid's borders.
 * @source ProPainter's SPEC, section 5.6. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_tokens.h"

#include <math.h>

#define AT(field) offsetof(window_attrs, field)
static const tgi_attr rows[] = {
    {"asked", TGI_ATTR_INT, AT(asked), 0, 0, INT32_MAX, NULL,
     "frames that have queries, the first ones; 0: all"},
    {"first", TGI_ATTR_INT, AT(first), 0, 0, 1, NULL,
     "first frame with keys of masked windows"},
    {"frames", TGI_ATTR_INT, AT(frames), 1, 1, INT32_MAX, NULL, "frames, in channels"},
    {"heads", TGI_ATTR_INT, AT(heads), 4, 1, INT32_MAX, NULL, "parts of a frame's channels"},
    {"scale", TGI_ATTR_FLOAT, AT(scale), 1, 0, 0, NULL, "factor of likeness"},
    {"window_h", TGI_ATTR_INT, AT(window_h), 5, 1, TGI_WINDOW_MOST, NULL, "rows of a window"},
    {"window_w", TGI_ATTR_INT, AT(window_w), 9, 1, TGI_WINDOW_MOST, NULL, "columns of it"},
    {0}};

static tg_status check_channels(const tgi_op_ctx *ctx, tgi_err *err)
{
    const window_attrs *a = ctx->attrs;
    const int64_t all = ctx->src[0].dim[1], asked = tgi_window_asked(a);
    if (asked > a->frames)
        return tgi_fail(err, TG_E_FORMAT,
                        "queries of %" PRId64 " frames, of %" PRId64 " frames", asked,
                        a->frames);
    if (all % asked || all / asked % a->heads)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " channels are not %" PRId64 " frames of %" PRId64 " heads",
                        all, asked, a->heads);
    if (a->first >= a->frames)
        return tgi_fail(err, TG_E_FORMAT,
                        "keys from frame %" PRId64 " on, of %" PRId64 " frames", a->first,
                        a->frames);
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const window_attrs *a = ctx->attrs;
    const void *bias;
    for (int i = 0; i < 6; i++)
        TGI_TRY(tgi_want_frame(ctx, i, err));
    TGI_TRY(check_channels(ctx, err));
    tgi_desc tokens = ctx->src[0], pooled = ctx->src[3], windows = ctx->src[0];
    const int64_t channels = ctx->src[0].dim[1] / tgi_window_asked(a);
    pooled.dim[1] = tokens.dim[1] = a->frames * channels;
    windows.dim[1] = 1;
    windows.dim[2] = tgi_ceil_div(windows.dim[2], a->window_h);
    windows.dim[3] = tgi_ceil_div(windows.dim[3], a->window_w);
    TGI_TRY(tgi_want_shape(ctx, 1, "keys", &tokens, err));
    TGI_TRY(tgi_want_shape(ctx, 2, "values", &tokens, err));
    TGI_TRY(tgi_want_shape(ctx, 3, "pooled keys", &pooled, err));
    TGI_TRY(tgi_want_shape(ctx, 4, "pooled values", &pooled, err));
    TGI_TRY(tgi_want_shape(ctx, 5, "masked windows", &windows, err));
    TGI_TRY(tgi_const_f32(ctx, 6, "key of a token that fills", channels, &bias, err));
    TGI_TRY(tgi_const_f32(ctx, 7, "value of a token that fills", channels, &bias, err));
    *dst = ctx->src[0];
    return TG_OK;
}

static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    *out = src_i == 0 ? TGI_SLIDE_SAME : tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

/* ---- Reference --------------------------------------------------------------------------- */

#define PART 256 /* channels of a result that are summed together */

/* One query, and the part of the channels that it looks at. */
typedef struct query {
    const tgi_call *call;
    tgi_window_tokens t; /* of its window */
    int masked;
    int64_t channels, inner, pooled; /* of a frame, of a head; tokens of a frame */
    tgi_px at;                       /* its first channel */
    int64_t frame, c0;               /* first channel of a head */
    double top, sum;                 /* of all likenesses */
} query;

static int64_t keys_of_frame(const query *q)
{
    return q->masked ? q->t.n + q->pooled : q->t.own;
}

static int64_t n_keys(const query *q)
{
    const window_attrs *a = q->call->ctx->attrs;
    return q->masked ? (a->frames - a->first + 1) / 2 * keys_of_frame(q) : q->t.own;
}

/* Channel c of a frame of key j (kind 1) or its value (kind 2). */
static double element(const query *q, int kind, int64_t j, int64_t c)
{
    const window_attrs *a = q->call->ctx->attrs;
    const tgi_desc *d = &q->call->ctx->src[1];
    const int64_t per = keys_of_frame(q), i = j % per;
    const int64_t frame = q->masked ? a->first + 2 * (j / per) : q->frame;
    tgi_px p = {frame * q->channels + c, 0, 0, 0};
    if (i >= q->t.n) {
        const int64_t w = q->call->ctx->src[3].dim[3];
        p.y = (i - q->t.n) / w;
        p.x = (i - q->t.n) % w;
        return (double)tgi_src_broadcast(q->call, 2 + kind, -1, &p);
    }
    p.y = q->t.at[i].y;
    p.x = q->t.at[i].x;
    if (p.y >= d->dim[2] || p.x >= d->dim[3])
        return (double)tgi_f32_at(q->call->ctx->const_src[5 + kind]->data, c);
    return (double)tgi_src_broadcast(q->call, kind, -1, &p);
}

static double likeness(const query *q, int64_t j)
{
    const window_attrs *a = q->call->ctx->attrs;
    tgi_px p = q->at;
    double sum = 0;
    for (int64_t c = 0; c < q->inner; c++, p.c++)
        sum += (double)tgi_src_broadcast(q->call, 0, -1, &p) * element(q, 1, j, q->c0 + c);
    return (double)a->scale * sum;
}

static void weigh(query *q)
{
    const int64_t n = n_keys(q);
    q->top = -INFINITY;
    q->sum = 0;
    for (int64_t j = 0; j < n; j++) {
        const double v = likeness(q, j);
        q->top = v > q->top ? v : q->top;
    }
    for (int64_t j = 0; j < n; j++)
        q->sum += exp(likeness(q, j) - q->top);
}

/* Channels [c0, c1) of a head's result, at most PART. */
static void result(const query *q, int64_t c0, int64_t c1)
{
    const int64_t n = n_keys(q);
    double acc[PART] = {0};
    for (int64_t j = 0; j < n; j++) {
        const double w = exp(likeness(q, j) - q->top) / q->sum;
        for (int64_t c = c0; c < c1; c++)
            acc[c - c0] += w * element(q, 2, j, q->c0 + c);
    }
    for (int64_t c = c0; c < c1; c++)
        *tgi_view_at(&q->call->dst[0], q->at.c + c, 0, q->at.y, q->at.x) = (float)acc[c - c0];
}

static void token(query *q)
{
    const window_attrs *a = q->call->ctx->attrs;
    for (q->frame = 0; q->frame < tgi_window_asked(a); q->frame++)
        for (q->c0 = 0; q->c0 < q->channels; q->c0 += q->inner) {
            q->at.c = q->frame * q->channels + q->c0;
            weigh(q);
            for (int64_t c = 0; c < q->inner; c += PART)
                result(q, c, tgi_min(c + PART, q->inner));
        }
}

static void row(const tgi_call *call, int64_t z, int64_t y, tgi_range x)
{
    const window_attrs *a = call->ctx->attrs;
    const tgi_desc *d = call->ctx->src;
    query q = {.call = call, .channels = d->dim[1] / tgi_window_asked(a)};
    q.inner = q.channels / a->heads;
    q.pooled = d[3].dim[2] * d[3].dim[3];
    q.at = (tgi_px){0, z, y, 0};
    for (q.at.x = x.lo; q.at.x < x.hi; q.at.x++) {
        const tgi_px window = {0, 0, y / a->window_h, q.at.x / a->window_w};
        tgi_window_list(a, d, window.y, window.x, &q.t);
        q.masked = tgi_src_broadcast(call, 5, -1, &window) != 0;
        token(&q);
    }
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_rows(call, row);
    return TG_OK;
}

TGI_EVAL_BY_REF

/* Of a masked window, which takes the most: what a channel adds of every key, and its share of the
 * likenesses. */
static double flops(const tgi_op_ctx *ctx)
{
    const window_attrs *a = ctx->attrs;
    const int64_t frames = (a->frames - a->first + 1) / 2,
                  channels = ctx->src[0].dim[1] / tgi_window_asked(a);
    const int64_t tokens = tgi_window_around(a) + a->window_h * a->window_w;
    const double pooled = (double)ctx->src[3].dim[2] * (double)ctx->src[3].dim[3];
    const double exponential = 16 * (double)a->heads / (double)channels;
    return (double)frames * ((double)tokens + pooled) * (4 + exponential);
}

const tgi_op tgi_op_window_attention = {
    .name = "WindowAttention",
    .internal = 1,
    .op_class = TGI_OP_WHOLE,
    .by_rows = 1,
    .attrs = rows,
    .attrs_size = sizeof(window_attrs),
    .infer = infer,
    .slide = slide,
    .ref = ref,
    .eval = eval,
    .flops = flops,
};
