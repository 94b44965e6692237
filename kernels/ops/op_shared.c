/* op_shared.c - constants, shapes and the loops of reference kernels. Broadcasting and folding:
 * op_fold.c. */
#include "kernels/ops/op_shared.h"
#include "kernels/threads.h"

#include <math.h>

/* ---- Elements of any type ---------------------------------------------------------------- */

#define LOAD(type)                                                                             \
    do {                                                                                       \
        type v_;                                                                               \
        memcpy(&v_, (const char *)c->data + (size_t)i * sizeof v_, sizeof v_);                 \
        return (ret)v_;                                                                        \
    } while (0)

/* IEEE half to double: 1 sign, 5 exponent, 10 fraction bits. */
static double half_value(uint16_t h)
{
    const int e = (h >> 10) & 31;
    const double m = h & 1023, sign = h & 0x8000 ? -1.0 : 1.0;
    if (e == 31)
        return (h & 1023) ? (double)NAN : sign * (double)INFINITY;
    return sign * (e ? ldexp(1024.0 + m, e - 25) : ldexp(m, -24));
}

/* Nearest half, ties to even. */
static uint16_t half_bits(double v)
{
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const double a = fabs(v);
    if (isnan(v))
        return 0x7e00;
    if (a >= 65520.0)
        return (uint16_t)(sign | 0x7c00);
    int e = 0;
    frexp(a, &e); /* a = m * 2^e, m in [0.5, 1) */
    e = a > 0 && e > -13 ? e : -13;
    const int q = (int)nearbyint(ldexp(a, 11 - e)); /* fraction with its leading bit */
    return (uint16_t)(sign | (((e + 13) << 10) + q));
}

double tgi_num_at(const tgi_constant *c, int64_t i)
{
    typedef double ret;
    switch (c->desc.dtype) {
    case TG_DTYPE_F32:
        LOAD(float);
    case TG_DTYPE_F64:
        LOAD(double);
    case TG_DTYPE_U64:
        LOAD(uint64_t);
    case TG_DTYPE_F16: {
        uint16_t h;
        memcpy(&h, (const char *)c->data + (size_t)i * 2, 2);
        return half_value(h);
    }
    default:
        return (double)tgi_int_at(c, i);
    }
}

int64_t tgi_int_at(const tgi_constant *c, int64_t i)
{
    typedef int64_t ret;
    switch (c->desc.dtype) {
    case TG_DTYPE_BOOL:
    case TG_DTYPE_U8:
        LOAD(uint8_t);
    case TG_DTYPE_I8:
        LOAD(int8_t);
    case TG_DTYPE_U16:
        LOAD(uint16_t);
    case TG_DTYPE_I16:
        LOAD(int16_t);
    case TG_DTYPE_U32:
        LOAD(uint32_t);
    case TG_DTYPE_I32:
        LOAD(int32_t);
    case TG_DTYPE_U64:
        LOAD(uint64_t);
    case TG_DTYPE_I64:
        LOAD(int64_t);
    case TG_DTYPE_F16:
    case TG_DTYPE_F32:
    case TG_DTYPE_F64: {
        const double v = tgi_num_at(c, i);
        if (!(v > -9.2e18 && v < 9.2e18)) /* not a number, or no int64 */
            return v < 0 ? INT64_MIN : v > 0 ? INT64_MAX : 0;
        return (int64_t)v;
    }
    case TG_DTYPE_NONE:
        break;
    }
    return 0;
}
#undef LOAD

#define STORE(type, value)                                                                     \
    do {                                                                                       \
        const type v_ = (type)(value);                                                         \
        memcpy((char *)data + (size_t)i * sizeof v_, &v_, sizeof v_);                          \
    } while (0)

void tgi_int_put(tg_dtype t, void *data, int64_t i, int64_t v)
{
    switch (tgi_dtype_is_float(t) ? 0 : tgi_dtype_size(t)) {
    case 0:
        tgi_num_put(t, data, i, (double)v);
        break;
    case 1:
        STORE(uint8_t, t == TG_DTYPE_BOOL ? v != 0 : v);
        break;
    case 2:
        STORE(uint16_t, v);
        break;
    case 4:
        STORE(uint32_t, v);
        break;
    default:
        STORE(uint64_t, v);
        break;
    }
}

void tgi_num_put(tg_dtype t, void *data, int64_t i, double v)
{
    switch (t) {
    case TG_DTYPE_NONE:
        break;
    case TG_DTYPE_F16:
        STORE(uint16_t, half_bits(v));
        break;
    case TG_DTYPE_F32:
        STORE(float, v);
        break;
    case TG_DTYPE_F64:
        STORE(double, v);
        break;
    case TG_DTYPE_BOOL:
        STORE(uint8_t, v != 0);
        break;
    case TG_DTYPE_U64:
        STORE(uint64_t, v >= 0 && v < 1.8e19 ? (uint64_t)v : 0);
        break;
    default: {
        const tgi_constant one = {{TG_DTYPE_F64, 0, {0}}, &v};
        tgi_int_put(t, data, i, tgi_int_at(&one, 0));
    }
    }
}
#undef STORE

/* ---- Inputs ------------------------------------------------------------------------------ */

int64_t tgi_const_count(const tgi_constant *c)
{
    int64_t n = 0;
    return tgi_desc_count(&c->desc, &n) ? n : 0;
}

tg_status tgi_const_f32(const tgi_op_ctx *ctx, int i, const char *what, int64_t count,
                        const void **data, tgi_err *err)
{
    if (!tgi_given(ctx, i))
        return tgi_fail(err, TG_E_FORMAT, "input %d (%s) is missing", i, what);
    const tgi_constant *c = tgi_const(ctx, i);
    if (!c)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s (input %d) computed by the graph", what, i);
    if (c->desc.dtype != TG_DTYPE_F32 &&
        (!tgi_dtype_is_float(c->desc.dtype) || c->desc.dtype != ctx->src[0].dtype))
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s of type %s", what,
                        tgi_dtype_name(c->desc.dtype));
    if (count >= 0 && tgi_const_count(c) != count)
        return tgi_fail(err, TG_E_FORMAT, "%s has %" PRId64 " elements, expected %" PRId64,
                        what, tgi_const_count(c), count);
    *data = c->data;
    return TG_OK;
}

tg_status tgi_const_ints(const tgi_op_ctx *ctx, int i, const char *what, tgi_ints *out,
                         tgi_err *err)
{
    if (!tgi_given(ctx, i))
        return tgi_fail(err, TG_E_FORMAT, "input %d (%s) is missing", i, what);
    const tgi_constant *c = tgi_const(ctx, i);
    if (!c)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s (input %d) computed by the graph", what, i);
    const int64_t n = tgi_const_count(c);
    if (tgi_dtype_is_float(c->desc.dtype) || c->desc.rank > 1 || n > TGI_ATTR_MAX_INTS)
        return tgi_fail(err, TG_E_FORMAT,
                        "%s is not a list of at most %d integers (rank %d, %" PRId64 " of %s)",
                        what, TGI_ATTR_MAX_INTS, c->desc.rank, n,
                        tgi_dtype_name(c->desc.dtype));
    out->n = (int)n;
    for (int k = 0; k < out->n; k++)
        out->v[k] = tgi_int_at(c, k);
    return TG_OK;
}

int tgi_all_const(const tgi_op_ctx *ctx)
{
    for (int i = 0; i < ctx->n_src; i++)
        if (tgi_given(ctx, i) && !tgi_const(ctx, i))
            return 0;
    return 1;
}

/* ---- Shapes ------------------------------------------------------------------------------ */

tg_status tgi_infer_same(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    if (!tgi_given(ctx, 0))
        return tgi_fail(err, TG_E_FORMAT, "input 0 is missing");
    dst[0] = ctx->src[0];
    return TG_OK;
}

tg_status tgi_axis(int64_t axis, int rank, int *out, tgi_err *err)
{
    if (axis < -rank || axis >= rank)
        return tgi_fail(err, TG_E_FORMAT, "axis %" PRId64 " of a tensor of rank %d", axis,
                        rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return TG_OK;
}

tg_status tgi_want_image(const tgi_op_ctx *ctx, int i, tgi_err *err)
{
    if (!tgi_given(ctx, i))
        return tgi_fail(err, TG_E_FORMAT, "input %d is missing", i);
    const tgi_desc *d = &ctx->src[i];
    if (d->rank < 3 || d->rank > 5) {
        char text[128];
        return tgi_fail(err, TG_E_UNSUPPORTED, "input %d is %s: done here for ranks 3 to 5", i,
                        tgi_desc_text(d, text, sizeof text));
    }
    return TG_OK;
}

tg_status tgi_want_frame(const tgi_op_ctx *ctx, int i, tgi_err *err)
{
    if (!tgi_given(ctx, i))
        return tgi_fail(err, TG_E_FORMAT, "input %d is missing", i);
    const tgi_desc *d = &ctx->src[i];
    if (d->rank != 4 || d->dim[0] != 1) {
        char text[128];
        return tgi_fail(err, TG_E_UNSUPPORTED, "input %d is %s: done here for [1,C,H,W]", i,
                        tgi_desc_text(d, text, sizeof text));
    }
    return TG_OK;
}

tg_status tgi_want_shape(const tgi_op_ctx *ctx, int i, const char *what, const tgi_desc *want,
                         tgi_err *err)
{
    char is[128], expected[128];
    if (tgi_desc_same_shape(&ctx->src[i], want))
        return TG_OK;
    return tgi_fail(err, TG_E_FORMAT, "%s (input %d) of shape %s, expected %s", what, i,
                    tgi_desc_text(&ctx->src[i], is, sizeof is),
                    tgi_desc_text(want, expected, sizeof expected));
}

int tgi_slide_whole(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide)
{
    *slide = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    return 1;
}

static tgi_range all_of(const void *given, tgi_range out)
{
    (void)out;
    return *(const tgi_range *)given;
}

void tgi_rule_all(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *rule)
{
    const tgi_range all = {0, tgi_desc_axis(&ctx->src[src_i], axis)};
    TGI_RULE(rule, all_of, all);
}

tgi_range tgi_clip_nonempty(tgi_range r, int64_t n)
{
    return (tgi_range){tgi_clamp(r.lo, 0, n - 1), tgi_clamp(r.hi, 1, n)};
}

/* ---- Reference loops --------------------------------------------------------------------- */

void tgi_zero_lanes(const tgi_view *v, const tgi_box *box)
{
    const int used = (int)(v->c % v->cb);
    const tgi_range rz = tgi_box_axis(box, TGI_Z), ry = tgi_box_axis(box, TGI_Y),
                    rx = tgi_box_axis(box, TGI_X);
    if (!used)
        return;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++) {
            float *row = tgi_view_row(v, v->c / v->cb, z, y);
            for (int64_t x = rx.lo; x < rx.hi; x++)
                for (int l = used; l < v->cb; l++)
                    row[(x - v->x0) * v->cb + l] = 0.0f;
        }
}

void tgi_ref_each(const tgi_call *call, int dst_i, tgi_px_fn fn, const void *arg)
{
    const tgi_view *v = &call->dst[dst_i];
    const tgi_range rz = tgi_box_axis(&call->box, TGI_Z), ry = tgi_box_axis(&call->box, TGI_Y),
                    rx = tgi_box_axis(&call->box, TGI_X);
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = rx.lo; x < rx.hi; x++) {
                    const tgi_px p = {c, z, y, x};
                    *tgi_view_at(v, c, z, y, x) = fn(call, arg, &p);
                }
    tgi_zero_lanes(v, &call->box);
}

typedef struct rows {
    const tgi_call *call;
    tgi_ref_row *row;
    tgi_range z, y, x; /* of the box */
    int64_t height;
} rows;

static void row_job(void *arg, int64_t job, int thread)
{
    const rows *r = arg;
    (void)thread;
    r->row(r->call, r->z.lo + job / r->height, r->y.lo + job % r->height, r->x);
}

void tgi_ref_rows(const tgi_call *call, tgi_ref_row *row)
{
    rows r = {.call = call,
              .row = row,
              .z = tgi_box_axis(&call->box, TGI_Z),
              .y = tgi_box_axis(&call->box, TGI_Y),
              .x = tgi_box_axis(&call->box, TGI_X)};
    r.height = tgi_range_len(r.y);
    tgi_parallel(call->threads, tgi_range_len(r.z) * r.height, row_job, &r);
    tgi_zero_lanes(&call->dst[0], &call->box);
}

static float copy_px(const tgi_call *call, const void *arg, const tgi_px *p)
{
    (void)arg;
    return tgi_src_at(call, 0, p);
}

tg_status tgi_ref_copy(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, copy_px, NULL);
    return TG_OK;
}

static float unary_px(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_unary_fn fn = *(const tgi_unary_fn *)arg;
    return (float)fn((double)tgi_src_at(call, 0, p), call->ctx->attrs);
}

tg_status tgi_ref_unary(const tgi_call *call, tgi_unary_fn fn, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, unary_px, &fn);
    return TG_OK;
}
