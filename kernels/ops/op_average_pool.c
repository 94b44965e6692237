/* op_average_pool.c - AveragePool: mean of each window, summed in float64.
 * Border: taps outside the image count as nothing; with count_include_pad the padding (but not
 * what ceil_mode overhangs beyond it) counts as zeros. `need` stays inside the image.
 * @source ONNX operator AveragePool, versions 1 to 22. */
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_rows.h"

static const tgi_attr rows[] = {TGI_WINDOW_ROWS(pool_attrs),
                                {"ceil_mode", TGI_ATTR_INT, offsetof(pool_attrs, ceil_mode), 0,
                                 0, 1, NULL, "keep the rest"},
                                {"count_include_pad", TGI_ATTR_INT,
                                 offsetof(pool_attrs, count_include_pad), 0, 0, 1, NULL,
                                 "padding counts as zeros"},
                                {0}};

/* Taps of the window at output coordinate o that lie inside the padded image. */
static int64_t padded_taps(const tgi_geom *g, int i, int64_t o)
{
    const int64_t first = o * g->s[i] - g->p0[i], end = g->in[i] + g->p1[i];
    return tgi_clamp(tgi_ceil_div(end - first, g->d[i]), 0, g->k[i]);
}

static float value(const tgi_call *call, const void *arg, const tgi_px *p)
{
    const tgi_geom *g = arg;
    const pool_attrs *a = call->ctx->attrs;
    double sum = 0;
    int64_t n = 0;
    tgi_range k[3];
    tgi_pool_taps(g, p, k);
    for (int64_t z = k[TGI_Z].lo; z < k[TGI_Z].hi; z += g->d[TGI_Z])
        for (int64_t y = k[TGI_Y].lo; y < k[TGI_Y].hi; y += g->d[TGI_Y])
            for (int64_t x = k[TGI_X].lo; x < k[TGI_X].hi; x += g->d[TGI_X]) {
                sum += (double)tgi_src_at(call, 0, &(tgi_px){p->c, z, y, x});
                n++;
            }
    if (a->count_include_pad)
        n = padded_taps(g, TGI_Z, p->z) * padded_taps(g, TGI_Y, p->y) *
            padded_taps(g, TGI_X, p->x);
    return n ? (float)(sum / (double)n) : 0.0f;
}

static tg_status ref(const tgi_call *call, tgi_err *err)
{
    tgi_geom g;
    TGI_TRY(tgi_pool_geometry(call->ctx, &g, err));
    tgi_ref_each(call, 0, value, &g);
    return TG_OK;
}

TGI_EVAL_BY_REF

const tgi_op tgi_op_average_pool = {
    .name = "AveragePool",
    .attrs = rows,
    .attrs_size = sizeof(pool_attrs),
    .infer = tgi_infer_pool,
    .slide = tgi_slide_pool,
    .ref = ref,
    .eval = eval,
    .flops = tgi_flops_pool,
};
