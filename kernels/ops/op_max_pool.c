/* op_max_pool.c - MaxPool: largest value of each window; with a second output, which says where
 * it was (the first of equals, counted in the whole tensor), on dense tensors.
 * Border: windows are cut at the image; padding never wins. `need` stays inside the image.
 * @source ONNX operator MaxPool, versions 1 to 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"

#include <math.h>

static const tgi_attr rows[] = {TGI_WINDOW_ROWS(pool_attrs),
                                {"ceil_mode", TGI_ATTR_INT, offsetof(pool_attrs, ceil_mode), 0,
                                 0, 1, NULL, "keep the rest"},
                                {"storage_order", TGI_ATTR_INT,
                                 offsetof(pool_attrs, storage_order), 0, 0, 1, NULL,
                                 "of the second output"},
                                {0}};

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_infer_pool(ctx, dst, err));
    if (ctx->n_dst > 1) {
        dst[1] = dst[0];
        dst[1].dtype = TG_DTYPE_I64;
    }
    return TG_OK;
}

static tgi_op_kind classify(const tgi_op_ctx *ctx)
{
    return ctx->n_dst > 1 ? TGI_OP_DENSE : TGI_OP_LOCAL;
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_geom *g = arg;
    float best = -INFINITY;
    tgi_range k[3];
    tgi_pool_taps(g, p, k);
    for (int64_t z = k[TGI_Z].lo; z < k[TGI_Z].hi; z += g->d[TGI_Z])
        for (int64_t y = k[TGI_Y].lo; y < k[TGI_Y].hi; y += g->d[TGI_Y])
            for (int64_t x = k[TGI_X].lo; x < k[TGI_X].hi; x += g->d[TGI_X]) {
                const float v = tgi_src_at(call, 0, &(tgi_px){p->c, z, y, x});
                best = v > best ? v : best;
            }
    return best;
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    tgi_geom g;
    TGI_TRY(tgi_pool_geometry(call->ctx, &g, err));
    tgi_ref_each(call, 0, value, &g);
    return TG_OK;
}

/* One window of plane `plane` ([N,C] counted through): the offset of its largest element. */
static int64_t find_top(const tgi_op_ctx *ctx, const tgi_geom *g, int64_t plane,
                        const tgi_px *p)
{
    const int64_t base = plane * g->in[TGI_Z] * g->in[TGI_Y] * g->in[TGI_X];
    int64_t top = -1;
    tgi_range k[3];
    tgi_pool_taps(g, p, k);
    for (int64_t z = k[TGI_Z].lo; z < k[TGI_Z].hi; z += g->d[TGI_Z])
        for (int64_t y = k[TGI_Y].lo; y < k[TGI_Y].hi; y += g->d[TGI_Y])
            for (int64_t x = k[TGI_X].lo; x < k[TGI_X].hi; x += g->d[TGI_X]) {
                const int64_t at = base + (z * g->in[TGI_Y] + y) * g->in[TGI_X] + x;
                if (top < 0 ||
                    tgi_num_at(ctx->const_src[0], at) > tgi_num_at(ctx->const_src[0], top))
                    top = at;
            }
    return top;
}

/* The offset as storage_order counts: 1 is columns first. */
static int64_t as_stored(const tgi_op_ctx *ctx, const tgi_geom *g, int64_t at)
{
    const pool_attrs *a = ctx->attrs;
    const int64_t h = g->in[TGI_Y], w = g->in[TGI_X], z = g->in[TGI_Z], volume = z * h * w;
    const int64_t in = at % volume, plane = at / volume;
    if (!a->storage_order)
        return at;
    return plane * volume + (in % w * h + in / w % h) * z + in / w / h;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    const size_t size = tgi_dtype_size(ctx->src[0].dtype);
    int64_t n = 0;
    tgi_geom g;
    TGI_TRY(tgi_pool_geometry(ctx, &g, err));
    for (int64_t plane = 0; plane < ctx->src[0].dim[0] * g.in_c; plane++)
        for (int64_t z = 0; z < g.out[TGI_Z]; z++)
            for (int64_t y = 0; y < g.out[TGI_Y]; y++)
                for (int64_t x = 0; x < g.out[TGI_X]; x++, n++) {
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

const tgi_op tgi_op_max_pool = {
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
