/* op_max_pool.c - MaxPool: largest value of each window; with a second output, which says where
 * it was (the first of equals, counted in the whole tensor), on dense tensors.
 * Border: windows are cut at the image; padding never wins. `need` stays inside the image.
 * @source ONNX operator MaxPool, versions 1 to 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"

#include <math.h>

static const tg_attr rows[] = {
    TG_WINDOW_ROWS(pool_attrs),
    {"ceil_mode", TG_ATTR_INT, offsetof(pool_attrs, ceil_mode), 0, 0, 1, NULL, "keep the rest"},
    {"storage_order", TG_ATTR_INT, offsetof(pool_attrs, storage_order), 0, 0, 1, NULL,
     "of the second output"},
    {0}};

static tg_status infer(const tg_op_ctx *ctx, tg_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_infer_pool(ctx, dst, err));
    if (ctx->n_dst > 1) {
        dst[1] = dst[0];
        dst[1].dtype = TG_DTYPE_I64;
    }
    return TG_OK;
}

static tg_op_class classify(const tg_op_ctx *ctx)
{
    return ctx->n_dst > 1 ? TG_OP_DENSE : TG_OP_LOCAL;
}

static float value(const tg_call *call, const void *arg, const tgi_px *p)
{
    const tgi_geom *g = arg;
    float best = -INFINITY;
    tg_range k[3];
    tgi_pool_taps(g, p, k);
    for (int64_t z = k[TG_Z].lo; z < k[TG_Z].hi; z += g->d[TG_Z])
        for (int64_t y = k[TG_Y].lo; y < k[TG_Y].hi; y += g->d[TG_Y])
            for (int64_t x = k[TG_X].lo; x < k[TG_X].hi; x += g->d[TG_X]) {
                const float v = tgi_src_at(call, 0, &(tgi_px){p->c, z, y, x});
                best = v > best ? v : best;
            }
    return best;
}

static tg_status ref(const tg_call *call, tgi_err *err)
{
    tgi_geom g;
    TGI_TRY(tgi_pool_geometry(call->ctx, &g, err));
    tgi_ref_each(call, 0, value, &g);
    return TG_OK;
}

/* One window of plane `plane` ([N,C] counted through): the offset of its largest element. */
static int64_t find_top(const tg_op_ctx *ctx, const tgi_geom *g, int64_t plane, const tgi_px *p)
{
    const int64_t base = plane * g->in[TG_Z] * g->in[TG_Y] * g->in[TG_X];
    int64_t top = -1;
    tg_range k[3];
    tgi_pool_taps(g, p, k);
    for (int64_t z = k[TG_Z].lo; z < k[TG_Z].hi; z += g->d[TG_Z])
        for (int64_t y = k[TG_Y].lo; y < k[TG_Y].hi; y += g->d[TG_Y])
            for (int64_t x = k[TG_X].lo; x < k[TG_X].hi; x += g->d[TG_X]) {
                const int64_t at = base + (z * g->in[TG_Y] + y) * g->in[TG_X] + x;
                if (top < 0 ||
                    tgi_num_at(ctx->const_src[0], at) > tgi_num_at(ctx->const_src[0], top))
                    top = at;
            }
    return top;
}

/* The offset as storage_order counts: 1 is columns first. */
static int64_t as_stored(const tg_op_ctx *ctx, const tgi_geom *g, int64_t at)
{
    const pool_attrs *a = ctx->attrs;
    const int64_t h = g->in[TG_Y], w = g->in[TG_X], z = g->in[TG_Z], volume = z * h * w;
    const int64_t in = at % volume, plane = at / volume;
    if (!a->storage_order)
        return at;
    return plane * volume + (in % w * h + in / w % h) * z + in / w / h;
}

static tg_status eval(const tg_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const size_t size = tgi_dtype_size(ctx->src[0].dtype);
    int64_t n = 0;
    tgi_geom g;
    TGI_TRY(tgi_pool_geometry(ctx, &g, err));
    for (int64_t plane = 0; plane < ctx->src[0].dim[0] * g.in_c; plane++)
        for (int64_t z = 0; z < g.out[TG_Z]; z++)
            for (int64_t y = 0; y < g.out[TG_Y]; y++)
                for (int64_t x = 0; x < g.out[TG_X]; x++, n++) {
                    const int64_t at = find_top(ctx, &g, plane, &(tgi_px){0, z, y, x});
                    if (at < 0)
                        return tgi_fail(err, TG_E_FORMAT, "a window without a pixel");
                    memcpy((char *)dst_data[0] + (size_t)n * size,
                           (const char *)ctx->const_src[0]->data + (size_t)at * size, size);
                    if (ctx->n_dst > 1)
                        tgi_int_put(TG_DTYPE_I64, dst_data[1], n, as_stored(ctx, &g, at));
                }
    return TG_OK;
}

const tg_op tg_op_max_pool = {
    .name = "MaxPool",
    .classify = classify,
    .attrs = rows,
    .attrs_size = sizeof(pool_attrs),
    .infer = infer,
    .slide = tgi_slide_pool,
    .ref = ref,
    .eval = eval,
    .flops = tgi_flops_pool,
};
