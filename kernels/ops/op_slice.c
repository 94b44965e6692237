/* op_slice.c - Slice: every step-th element of an interval, per axis. On images: channels and
 * spatial axes; a spatial slice is a shifted box.
 * Border: none, each element has one source element.
 * @source ONNX operator Slice, versions 1 (attributes), 10, 11, 13 (inputs). */
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "kernels/ops/op_shared.h"

static const tgi_attr rows[] = {
    {"axes", TGI_ATTR_INTS, offsetof(slice_attrs, axes), 0, 0, 0, NULL, "opset < 10"},
    {"ends", TGI_ATTR_INTS, offsetof(slice_attrs, ends), 0, 0, 0, NULL, "opset < 10"},
    {"starts", TGI_ATTR_INTS, offsetof(slice_attrs, starts), 0, 0, 0, NULL, "opset < 10"},
    {0}};

static tg_status read_lists(const tgi_op_ctx *ctx, tgi_ints *starts, tgi_ints *ends,
                            tgi_ints *axes, tgi_ints *steps, tgi_err *err)
{
    const slice_attrs *a = ctx->attrs;
    *starts = a->starts;
    *ends = a->ends;
    *axes = a->axes;
    steps->n = -1;
    if (ctx->opset >= 10) {
        TGI_TRY(tgi_const_ints(ctx, 1, "starts", starts, err));
        TGI_TRY(tgi_const_ints(ctx, 2, "ends", ends, err));
        axes->n = -1;
        if (tgi_given(ctx, 3))
            TGI_TRY(tgi_const_ints(ctx, 3, "axes", axes, err));
        if (tgi_given(ctx, 4))
            TGI_TRY(tgi_const_ints(ctx, 4, "steps", steps, err));
    }
    if (starts->n < 0 || starts->n > TGI_MAX_RANK || ends->n != starts->n ||
        (axes->n >= 0 && axes->n != starts->n) || (steps->n >= 0 && steps->n != starts->n))
        return tgi_fail(err, TG_E_FORMAT, "%d starts, %d ends, %d axes, %d steps (-1: none)",
                        starts->n, ends->n, axes->n, steps->n);
    return TG_OK;
}

/* Clamp to the axis as numpy does. */
static tg_status cut(tgi_slice *s, int k, int64_t extent, int64_t from, int64_t to,
                     int64_t step, tgi_err *err)
{
    if (step == 0 || step <= -((int64_t)1 << 40) || step >= (int64_t)1 << 40)
        return tgi_fail(err, TG_E_FORMAT, "a step of %" PRId64 " along axis %d", step, k);
    const int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? extent : extent - 1;
    const int64_t a = tgi_clamp(from < 0 ? from + extent : from, step > 0 ? 0 : lo + 1, hi);
    const int64_t b = tgi_clamp(to < 0 ? to + extent : to, lo, hi);
    s->start[k] = a;
    s->step[k] = step;
    s->n[k] = step > 0 ? (b > a ? (b - a + step - 1) / step : 0)
                       : (a > b ? (a - b - step - 1) / -step : 0);
    if (extent == 0)
        s->n[k] = 0;
    return TG_OK;
}

tg_status tgi_slice_map(const tgi_op_ctx *ctx, tgi_slice *s, tgi_err *err)
{
    const tgi_desc *d = &ctx->src[0];
    tgi_ints starts, ends, axes, steps;
    TGI_TRY(read_lists(ctx, &starts, &ends, &axes, &steps, err));
    for (int k = 0; k < d->rank; k++) {
        s->start[k] = 0;
        s->step[k] = 1;
        s->n[k] = d->dim[k];
    }
    for (int i = 0; i < starts.n; i++) {
        int k;
        TGI_TRY(tgi_axis(axes.n >= 0 ? axes.v[i] : i, d->rank, &k, err));
        TGI_TRY(
            cut(s, k, d->dim[k], starts.v[i], ends.v[i], steps.n >= 0 ? steps.v[i] : 1, err));
    }
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_slice s;
    TGI_TRY(tgi_slice_map(ctx, &s, err));
    dst[0] = ctx->src[0];
    for (int k = 0; k < dst[0].rank; k++)
        dst[0].dim[k] = s.n[k];
    return TG_OK;
}

typedef struct steps {
    int64_t start, step;
} steps;

static tgi_range need(const void *given, tgi_range out)
{
    const steps *s = given;
    const int64_t a = s->start + out.lo * s->step, b = s->start + (out.hi - 1) * s->step;
    return (tgi_range){tgi_min(a, b), tgi_max(a, b) + 1};
}

static void rule(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *out)
{
    tgi_slice s;
    const int k = ctx->src[src_i].rank - 3 + axis;
    tgi_rule_all(ctx, src_i, axis, out);
    if (src_i != 0 || k < 2 || tgi_slice_map(ctx, &s, NULL) != TG_OK)
        return;
    const steps given = {s.start[k], s.step[k]};
    TGI_RULE(out, need, given);
}

/* Forwards; a reversed axis is for the rule alone. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    tgi_slice s;
    const int k = ctx->src[src_i].rank - 3 + axis;
    *out = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i != 0 || k < 2 || tgi_slice_map(ctx, &s, NULL) != TG_OK)
        return 1;
    *out = (tgi_slide){.num = s.step[k], .den = 1, .lo = s.start[k], .hi = s.start[k]};
    return s.step[k] > 0;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_slice *s = arg;
    const int r = call->ctx->src[0].rank;
    tgi_px q = {s->start[1] + p->c * s->step[1], p->z, s->start[r - 2] + p->y * s->step[r - 2],
                s->start[r - 1] + p->x * s->step[r - 1]};
    if (r == 5)
        q.z = s->start[2] + p->z * s->step[2];
    return tgi_src_at(call, 0, &q);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    tgi_slice s;
    TGI_TRY(tgi_slice_map(call->ctx, &s, err));
    tgi_ref_each(call, 0, value, &s);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    tgi_slice s;
    int64_t stride[TGI_MAX_RANK], base = 0;
    TGI_TRY(tgi_slice_map(ctx, &s, err));
    tgi_dense_strides(&ctx->src[0], stride);
    for (int k = 0; k < ctx->src[0].rank; k++) {
        base += s.start[k] * stride[k];
        stride[k] *= s.step[k];
    }
    tgi_gather_dense(&ctx->dst[0], dst_data[0], ctx->const_src[0]->data, base, stride,
                     tgi_dtype_size(ctx->dst[0].dtype));
    return TG_OK;
}

const tgi_op tgi_op_slice = {
    .name = "Slice",
    .any_type = 1,
    .attrs = rows,
    .attrs_size = sizeof(slice_attrs),
    .infer = infer,
    .slide = slide,
    .rule = rule,
    .ref = ref,
    .eval = eval,
};
