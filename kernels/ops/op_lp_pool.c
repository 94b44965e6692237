/* op_lp_pool.c - LpPool: the p-norm of each window; GlobalLpPool is not one of these. Summed in
 * float64.
 * Border: windows are cut at the image; padding counts 0. `need` stays inside the image.
 * @source ONNX operator LpPool, versions 2 to 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"

#include <math.h>

static const tgi_attr rows[] = {
    TGI_WINDOW_ROWS(pool_attrs),
    {"ceil_mode", TGI_ATTR_INT, offsetof(pool_attrs, ceil_mode), 0, 0, 1, NULL,
     "keep the rest"},
    {"p", TGI_ATTR_INT, offsetof(lp_pool_attrs, p), 2, 1, 64, NULL, "of the norm"},
    {0}};

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_geom *g = arg;
    const double e = (double)((const lp_pool_attrs *)call->ctx->attrs)->p;
    double sum = 0;
    tgi_range k[3];
    tgi_pool_taps(g, p, k);
    for (int64_t z = k[TGI_Z].lo; z < k[TGI_Z].hi; z += g->d[TGI_Z])
        for (int64_t y = k[TGI_Y].lo; y < k[TGI_Y].hi; y += g->d[TGI_Y])
            for (int64_t x = k[TGI_X].lo; x < k[TGI_X].hi; x += g->d[TGI_X])
                sum += pow(fabs((double)tgi_src_at(call, 0, &(tgi_px){p->c, z, y, x})), e);
    return (float)pow(sum, 1 / e);
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    tgi_geom g;
    TGI_TRY(tgi_pool_geometry(call->ctx, &g, err));
    tgi_ref_each(call, 0, value, &g);
    return TG_OK;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_lp_pool = {
    .name = "LpPool",
    .attrs = rows,
    .attrs_size = sizeof(lp_pool_attrs),
    .infer = tgi_infer_pool,
    .slide = tgi_slide_pool,
    .ref = ref,
    .eval = eval,
    .flops = tgi_flops_pool,
};
