/* op_max_pool.c - MaxPool: largest value of each window; the second output is not done.
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
    if (ctx->n_dst > 1)
        return tgi_fail(err, TG_E_UNSUPPORTED, "the second output (indices)");
    return tgi_infer_pool(ctx, dst, err);
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

const tg_op tg_op_max_pool = {
    .name = "MaxPool",
    .attrs = rows,
    .attrs_size = sizeof(pool_attrs),
    .infer = infer,
    .need = tgi_need_pool,
    .ref = ref,
    .flops = tgi_flops_pool,
};
