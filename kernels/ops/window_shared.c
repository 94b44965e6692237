/* window_shared.c - what operators with windows have in common: shapes, slides, taps. */
#include "kernels/ops/op_shared.h"

const char *const tgi_auto_pad_names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", NULL};

tg_status tgi_infer_conv(const tgi_op_ctx *ctx, tgi_geometry_fn geometry, tgi_desc *dst,
                         tgi_err *err)
{
    tgi_geom g;
    const void *unused;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(geometry(ctx, &g, err));
    TGI_TRY(tgi_const_f32(ctx, 1, "weights", -1, &unused, err));
    if (tgi_given(ctx, 2))
        TGI_TRY(tgi_const_f32(ctx, 2, "bias", g.out_c, &unused, err));
    dst[0] = ctx->src[0];
    dst[0].dim[1] = g.out_c;
    for (int i = 3 - g.spatial; i < 3; i++)
        dst[0].dim[dst[0].rank - 3 + i] = g.out[i];
    return TG_OK;
}

tg_status tgi_infer_pool(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    tgi_geom g;
    TGI_TRY(tgi_want_image(ctx, 0, err));
    TGI_TRY(tgi_pool_geometry(ctx, &g, err));
    dst[0] = ctx->src[0];
    for (int i = 3 - g.spatial; i < 3; i++)
        dst[0].dim[dst[0].rank - 3 + i] = g.out[i];
    return TG_OK;
}

int tgi_slide_pool(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *slide)
{
    tgi_geom g;
    *slide = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (tgi_pool_geometry(ctx, &g, NULL) == TG_OK) {
        *slide = tgi_window_slide(g.k[axis], g.s[axis], g.p0[axis], g.d[axis]);
        slide->of = g.in[axis];
    }
    return 1;
}

void tgi_pool_taps(const tgi_geom *g, const tgi_px *p, tgi_range *k)
{
    const int64_t o[3] = {p->z, p->y, p->x};
    for (int i = 0; i < 3; i++) {
        const int64_t lo = o[i] * g->s[i] - g->p0[i];
        const int64_t skip = lo < 0 ? tgi_ceil_div(-lo, g->d[i]) : 0;
        k[i] = (tgi_range){lo + skip * g->d[i],
                           tgi_min(lo + (g->k[i] - 1) * g->d[i] + 1, g->in[i])};
    }
}

double tgi_flops_pool(const tgi_op_ctx *ctx)
{
    tgi_geom g;
    return tgi_pool_geometry(ctx, &g, NULL) == TG_OK ? (double)(g.k[0] * g.k[1] * g.k[2]) : 1.0;
}

tg_status tgi_infer_global(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    TGI_TRY(tgi_want_image(ctx, 0, err));
    dst[0] = ctx->src[0];
    for (int k = 2; k < dst[0].rank; k++)
        dst[0].dim[k] = 1;
    return TG_OK;
}
