/* op_tile.c - Tile: the tensor repeated a constant number of times along each axis.
 * Border: none. A box inside one repetition reads the same box of the source, any other reads
 * its whole axis.
 * @source ONNX operator Tile, versions 1 (tiles and axis) and 6 to 13 (repeats). */
#include "kernels/ops/op_shared.h"

static tg_status repeats_of(const tgi_op_ctx *ctx, tgi_ints *r, tgi_err *err)
{
    tgi_ints tiles, axis;
    int k;
    const int rank = ctx->src[0].rank;
    if (ctx->opset >= 6) {
        TGI_TRY(tgi_const_ints(ctx, 1, "repeats", r, err));
        return r->n == rank ? TG_OK
                            : tgi_fail(err, TG_E_FORMAT, "%d repeats for rank %d", r->n, rank);
    }
    TGI_TRY(tgi_const_ints(ctx, 1, "tiles", &tiles, err));
    TGI_TRY(tgi_const_ints(ctx, 2, "axis", &axis, err));
    if (tiles.n != 1 || axis.n != 1)
        return tgi_fail(err, TG_E_FORMAT, "tiles and axis are one number each");
    TGI_TRY(tgi_axis(axis.v[0], rank, &k, err));
    r->n = rank;
    for (int i = 0; i < rank; i++)
        r->v[i] = i == k ? tiles.v[0] : 1;
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_ints r = {0};
    tgi_desc d = ctx->src[0];
    TGI_TRY(repeats_of(ctx, &r, err));
    for (int k = 0; k < d.rank; k++)
        if (r.v[k] < 0 || !tgi_mul64_ok(d.dim[k], r.v[k], &d.dim[k]))
            return tgi_fail(err, TG_E_FORMAT, "repeat %" PRId64 " of axis %d", r.v[k], k);
    dst[0] = d;
    return TG_OK;
}

static tgi_range need(const void *given, tgi_range out)
{
    const int64_t n = *(const int64_t *)given, turn = out.lo / n;
    if ((out.hi - 1) / n != turn)
        return (tgi_range){0, n};
    return (tgi_range){out.lo - turn * n, out.hi - turn * n};
}

static void rule(const tgi_op_ctx *ctx, int src_i, int axis, tgi_rule *out)
{
    const int64_t n = tgi_desc_axis(&ctx->src[src_i], axis);
    tgi_rule_all(ctx, src_i, axis, out);
    if (src_i == 0)
        TGI_RULE(out, need, n);
}

/* An axis that is there once. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    const int64_t n = tgi_desc_axis(&ctx->src[src_i], axis);
    *out = src_i == 0 ? TGI_SLIDE_SAME : tgi_slide_all(n);
    return src_i != 0 || tgi_desc_axis(&ctx->dst[0], axis) == n;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_desc *s = arg;
    return tgi_src_at(call, 0,
                      &(tgi_px){p->c % s->dim[1], p->z % tgi_desc_axis(s, TGI_Z),
                                p->y % tgi_desc_axis(s, TGI_Y),
                                p->x % tgi_desc_axis(s, TGI_X)});
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    (void)err;
    tgi_ref_each(call, 0, value, &call->ctx->src[0]);
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const tgi_desc *s = &ctx->src[0];
    const size_t size = tgi_dtype_size(s->dtype);
    int64_t at[TGI_MAX_RANK] = {0}, stride[TGI_MAX_RANK];
    char *out = dst_data[0];
    (void)err;
    tgi_dense_strides(s, stride);
    if (tgi_dense_count(&ctx->dst[0]) == 0)
        return TG_OK;
    do {
        int64_t from = 0;
        for (int k = 0; k < s->rank; k++)
            from += at[k] % s->dim[k] * stride[k];
        memcpy(out, (const char *)ctx->const_src[0]->data + (size_t)from * size, size);
        out += size;
    } while (tgi_next_index(&ctx->dst[0], at));
    return TG_OK;
}

const tgi_op tgi_op_tile = {
    .name = "Tile",
    .any_type = 1,
    .infer = infer,
    .slide = slide,
    .rule = rule,
    .ref = ref,
    .eval = eval,
};
