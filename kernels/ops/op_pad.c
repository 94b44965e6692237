/* op_pad.c - Pad: margins of a constant, of mirrored, repeated or wrapped pixels; a negative
 * pad crops. Spatial axes of images; any axis of dense tensors. Border: by image coordinates.
 * What is asked for stays inside the image and is the hull of what is read, which for `wrap` at
 * a border is nearly the whole axis.
 * @source ONNX operator Pad, versions 2 (attributes), 11, 13, 18 (axes), 19 (wrap). */
#include "kernels/ops/op_shared.h"

static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};

static const tgi_attr rows[] = {
    {"mode", TGI_ATTR_ENUM, offsetof(pad_attrs, mode), 0, 0, 3, modes, "what the margin holds"},
    {"pads", TGI_ATTR_INTS, offsetof(pad_attrs, pads), 0, 0, 0, NULL, "opset < 11"},
    {"value", TGI_ATTR_FLOAT, offsetof(pad_attrs, value), 0, 0, 0, NULL, "opset < 11"},
    {0}};

tg_status tgi_pad_map(const tgi_op_ctx *ctx, tgi_pad *p, tgi_err *err)
{
    const pad_attrs *a = ctx->attrs;
    const int rank = ctx->src[0].rank;
    tgi_ints list = a->pads, axes = {.n = -1};
    *p = (tgi_pad){.mode = a->mode, .value = a->value};
    if (ctx->opset >= 11) {
        TGI_TRY(tgi_const_ints(ctx, 1, "pads", &list, err));
        p->value = 0;
        if (tgi_given(ctx, 2)) {
            const tgi_constant *c = tgi_const(ctx, 2);
            if (!c || tgi_const_count(c) != 1)
                return tgi_fail(err, TG_E_UNSUPPORTED, "a value that is not a constant scalar");
            p->value = (float)tgi_num_at(c, 0);
        }
        if (tgi_given(ctx, 3))
            TGI_TRY(tgi_const_ints(ctx, 3, "axes", &axes, err));
    }
    const int n = axes.n >= 0 ? axes.n : rank;
    if (list.n != 2 * n)
        return tgi_fail(err, TG_E_FORMAT, "%d pads for %d axes", list.n, n);
    for (int i = 0; i < n; i++) {
        int k;
        TGI_TRY(tgi_axis(axes.n >= 0 ? axes.v[i] : i, rank, &k, err));
        p->p0[k] = list.v[i];
        p->p1[k] = list.v[n + i];
    }
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    const int64_t far = (int64_t)1 << 31;
    tgi_pad p;
    TGI_TRY(tgi_pad_map(ctx, &p, err));
    tgi_desc d = ctx->src[0];
    for (int k = 0; k < d.rank; k++) {
        const int64_t in = d.dim[k];
        if (p.p0[k] <= -far || p.p0[k] >= far || p.p1[k] <= -far || p.p1[k] >= far ||
            in + p.p0[k] + p.p1[k] < 1)
            return tgi_fail(err, TG_E_FORMAT,
                            "pads %" PRId64 " and %" PRId64 " on axis %d of %" PRId64, p.p0[k],
                            p.p1[k], k, in);
        if (p.mode == TGI_PADDING_REFLECT && tgi_max(p.p0[k], p.p1[k]) >= in)
            return tgi_fail(err, TG_E_FORMAT,
                            "reflect pads %" PRId64 " and %" PRId64
                            " reach beyond an extent of %" PRId64,
                            p.p0[k], p.p1[k], in);
        d.dim[k] = in + p.p0[k] + p.p1[k];
    }
    dst[0] = d;
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    tgi_pad p;
    const int r = ctx->src[0].rank;
    if ((r != 4 && r != 5) || tgi_pad_map(ctx, &p, NULL) != TG_OK)
        return TGI_OP_DENSE;
    return p.p0[0] || p.p1[0] || p.p0[1] || p.p1[1] ? TGI_OP_DENSE : TGI_OP_LOCAL;
}

int64_t tgi_pad_source(int mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case TGI_PADDING_REFLECT:
        return tgi_clamp(i < 0 ? -i : 2 * (n - 1) - i, 0, n - 1);
    case TGI_PADDING_EDGE:
        return tgi_clamp(i, 0, n - 1);
    case TGI_PADDING_WRAP:
        return i - tgi_floor_div(i, n) * n;
    default:
        return -1;
    }
}

/* Smallest range that holds the sources of `r`, which lies on one side of [0,n). Not one by
 * one: pads can be a million pixels. */
static tgi_range mirrored(int mode, tgi_range r, int64_t n)
{
    if (tgi_range_empty(r))
        return (tgi_range){0, 0};
    const int64_t a = tgi_pad_source(mode, r.lo, n), b = tgi_pad_source(mode, r.hi - 1, n);
    if (mode == TGI_PADDING_WRAP && tgi_range_len(r) != b - a + 1)
        return (tgi_range){0, n}; /* around the end once or more */
    return (tgi_range){tgi_min(a, b), tgi_max(a, b) + 1};
}

typedef struct margin {
    int64_t before, n; /* pad, extent */
    int mode;
} margin;

static tgi_range need(const void *given, tgi_range out)
{
    const margin *m = given;
    const tgi_range r = {out.lo - m->before, out.hi - m->before};
    tgi_range hull = tgi_clip_nonempty(r, m->n);
    if (m->mode != TGI_PADDING_CONSTANT && r.lo < 0)
        hull =
            tgi_range_hull(hull, mirrored(m->mode, (tgi_range){r.lo, tgi_min(r.hi, 0)}, m->n));
    if (m->mode != TGI_PADDING_CONSTANT && r.hi > m->n)
        hull = tgi_range_hull(hull,
                              mirrored(m->mode, (tgi_range){tgi_max(r.lo, m->n), r.hi}, m->n));
    return hull;
}

/* Behind the top border a row reads the one `before` above it, and before it, until the image
 * ends; a mirrored top border reads less and less far. The bottom border reads the image's
 * last row. */
static void ends_of_rows(const void *given, int64_t from, const int64_t *end, int64_t *out,
                         int n)
{
    const margin *m = given;
    const int64_t at = from - m->before, first = tgi_pad_source(m->mode, at, m->n);
    for (int i = 0; i < n; i++)
        if (at >= m->n)
            out[i] = from;
        else if (m->mode == TGI_PADDING_REFLECT)
            out[i] = at < 0 && -at >= end[i] ? from : m->before + end[i];
        else
            out[i] = from - first + end[i]; /* not behind the image: end < m->n */
}

static void rule(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *out)
{
    tgi_pad p;
    const int k = ctx->src[src_i].rank - 3 + axis;
    tgi_rule_all(ctx, src_i, axis, out);
    if (src_i != 0 || k < 2 || tgi_pad_map(ctx, &p, NULL) != TG_OK)
        return;
    const margin m = {p.p0[k], ctx->src[0].dim[k], p.mode};
    TGI_RULE(out, need, m);
    if (p.mode == TGI_PADDING_REFLECT || p.mode == TGI_PADDING_WRAP)
        out->ends = ends_of_rows;
}

/* A mirrored border is read upwards as the result goes down, a wrapped one from the other end:
 * for the rule alone. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    tgi_pad p;
    const int k = ctx->src[src_i].rank - 3 + axis;
    *out = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i != 0 || k < 2 || tgi_pad_map(ctx, &p, NULL) != TG_OK)
        return 1;
    *out = (tgi_slide){
        .num = 1, .den = 1, .lo = -p.p0[k], .hi = -p.p0[k], .of = ctx->src[0].dim[k]};
    return p.mode == TGI_PADDING_CONSTANT || p.mode == TGI_PADDING_EDGE ||
           (p.p0[k] <= 0 && p.p1[k] <= 0);
}

static float value(const tgi_call *call, const void *arg, const tgi_px *q)
{
    const tgi_pad *p = arg;
    const tgi_desc *d = &call->ctx->src[0];
    const int r = d->rank;
    const int64_t z = r == 5 ? tgi_pad_source(p->mode, q->z - p->p0[2], d->dim[2]) : 0;
    const int64_t y = tgi_pad_source(p->mode, q->y - p->p0[r - 2], d->dim[r - 2]);
    const int64_t x = tgi_pad_source(p->mode, q->x - p->p0[r - 1], d->dim[r - 1]);
    if (z < 0 || y < 0 || x < 0)
        return p->value;
    return tgi_src_at(call, 0, &(tgi_px){q->c, z, y, x});
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    tgi_pad p;
    TGI_TRY(tgi_pad_map(call->ctx, &p, err));
    tgi_ref_each(call, 0, value, &p);
    return TG_OK;
}

/* The element at index `at` of the result, from the source or as the constant. */
static void put(const tgi_op_ctx *ctx, const tgi_pad *p, const int64_t *at,
                const int64_t *stride, void *dst, int64_t n)
{
    const tgi_constant *fill = ctx->opset >= 11 ? tgi_const(ctx, 2) : NULL;
    const tg_dtype t = ctx->dst[0].dtype;
    const size_t size = tgi_dtype_size(t);
    int64_t from = 0;
    for (int k = 0; k < ctx->dst[0].rank && from >= 0; k++) {
        const int64_t s = tgi_pad_source(p->mode, at[k] - p->p0[k], ctx->src[0].dim[k]);
        from = s < 0 ? -1 : from + s * stride[k];
    }
    if (from >= 0)
        memcpy((char *)dst + (size_t)n * size,
               (const char *)ctx->const_src[0]->data + (size_t)from * size, size);
    else if (fill && fill->desc.dtype == t)
        memcpy((char *)dst + (size_t)n * size, fill->data, size);
    else
        tgi_num_put(t, dst, n, (double)p->value);
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    int64_t at[TGI_MAX_RANK] = {0}, stride[TGI_MAX_RANK], n = 0;
    tgi_pad p;
    TGI_TRY(tgi_pad_map(ctx, &p, err));
    tgi_dense_strides(&ctx->src[0], stride);
    do
        put(ctx, &p, at, stride, dst_data[0], n++);
    while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}

const tgi_op tgi_op_pad = {
    .name = "Pad",
    .any_type = 1,
    .classify = classify,
    .attrs = rows,
    .attrs_size = sizeof(pad_attrs),
    .infer = infer,
    .slide = slide,
    .rule = rule,
    .ref = ref,
    .eval = eval,
};
