/* geometry.c - window geometry of Conv, ConvTranspose and pools, with defaults resolved.
 * @source ONNX operator specifications, sections auto_pad, pads, output_shape, ceil_mode. */
#include "kernels/ops/geometry.h"

#include "kernels/ops/op_attrs.h"

#include <inttypes.h>

/* An extent or a parameter beyond this is damage, and products of two stay below 2^63. */
#define GEOM_LIMIT ((int64_t)1 << 31)

/* Spread a list of `spatial` entries over z,y,x; axes not in it get `fill`. */
static tg_status spread(const tgi_ints *list, const char *what, int spatial, int64_t fill,
                        int64_t lo, int64_t *out, tgi_err *err)
{
    out[TGI_Z] = out[TGI_Y] = out[TGI_X] = fill;
    if (list->n < 0)
        return TG_OK;
    if (list->n != spatial)
        return tgi_fail(err, TG_E_FORMAT, "%s has %d entries, the image has %d spatial axes",
                        what, list->n, spatial);
    for (int i = 0; i < spatial; i++) {
        if (list->v[i] < lo || list->v[i] >= GEOM_LIMIT)
            return tgi_fail(err, TG_E_FORMAT, "%s[%d] is %" PRId64, what, i, list->v[i]);
        out[3 - spatial + i] = list->v[i];
    }
    return TG_OK;
}

static tg_status spread_pads(const tgi_ints *pads, int spatial, tgi_geom *g, tgi_err *err)
{
    for (int i = 0; i < 3; i++)
        g->p0[i] = g->p1[i] = 0;
    if (pads->n < 0)
        return TG_OK;
    if (pads->n != 2 * spatial)
        return tgi_fail(err, TG_E_FORMAT, "pads has %d entries, %d spatial axes need %d",
                        pads->n, spatial, 2 * spatial);
    for (int i = 0; i < spatial; i++) {
        if (pads->v[i] <= -GEOM_LIMIT || pads->v[i] >= GEOM_LIMIT ||
            pads->v[spatial + i] <= -GEOM_LIMIT || pads->v[spatial + i] >= GEOM_LIMIT)
            return tgi_fail(err, TG_E_FORMAT, "pads of axis %d are out of range", i);
        g->p0[3 - spatial + i] = pads->v[i];
        g->p1[3 - spatial + i] = pads->v[spatial + i];
    }
    return TG_OK;
}

static tg_status start(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err)
{
    const tgi_desc *x = &ctx->src[0];
    *g = (tgi_geom){.spatial = x->rank - 2, .groups = 1};
    if (x->rank < 3 || x->rank > 5)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "an input of rank %d: images of rank 3 to 5 are done here", x->rank);
    for (int i = 0; i < 3; i++)
        g->in[i] = tgi_desc_axis(x, i);
    g->in_c = x->dim[1];
    return TG_OK;
}

/* Kernel extents from the attribute, or the weights' own; they must agree. */
static tg_status kernel_from(const tgi_op_ctx *ctx, const conv_attrs *a, tgi_geom *g,
                             tgi_err *err)
{
    const tgi_desc *w = &ctx->src[1];
    if (ctx->n_src < 2 || w->rank != ctx->src[0].rank)
        return tgi_fail(err, TG_E_FORMAT, "weights of rank %d for an image of rank %d",
                        ctx->n_src < 2 ? 0 : w->rank, ctx->src[0].rank);
    TGI_TRY(spread(&a->kernel_shape, "kernel_shape", g->spatial, 1, 1, g->k, err));
    for (int i = 0; i < 3; i++) {
        const int64_t have = tgi_desc_axis(w, i);
        if (a->kernel_shape.n >= 0 && g->k[i] != have)
            return tgi_fail(err, TG_E_FORMAT, "kernel_shape says %" PRId64 ", weights %" PRId64,
                            g->k[i], have);
        g->k[i] = have;
        if (have < 1 || have >= GEOM_LIMIT)
            return tgi_fail(err, TG_E_FORMAT, "a kernel extent of %" PRId64, have);
    }
    return TG_OK;
}

static tg_status common(const tgi_op_ctx *ctx, const conv_attrs *a, tgi_geom *g, tgi_err *err)
{
    TGI_TRY(start(ctx, g, err));
    TGI_TRY(kernel_from(ctx, a, g, err));
    TGI_TRY(spread(&a->strides, "strides", g->spatial, 1, 1, g->s, err));
    TGI_TRY(spread(&a->dilations, "dilations", g->spatial, 1, 1, g->d, err));
    TGI_TRY(spread_pads(&a->pads, g->spatial, g, err));
    if (a->group < 1 || a->group >= GEOM_LIMIT)
        return tgi_fail(err, TG_E_FORMAT, "group is %" PRId64, a->group);
    g->groups = a->group;
    return TG_OK;
}

/* SAME: out = ceil(in / s), the padding that this takes; the odd one goes to the end (UPPER) or
 * to the beginning (LOWER). */
static void resolve_auto_pad(int auto_pad, tgi_geom *g)
{
    if (auto_pad == TGI_PAD_NOTSET)
        return;
    for (int i = 0; i < 3; i++) {
        int64_t total = 0;
        if (auto_pad != TGI_PAD_VALID) {
            const int64_t out = (g->in[i] + g->s[i] - 1) / g->s[i];
            total = (out - 1) * g->s[i] + (g->k[i] - 1) * g->d[i] + 1 - g->in[i];
            total = total < 0 ? 0 : total;
        }
        g->p0[i] = auto_pad == TGI_PAD_SAME_LOWER ? total - total / 2 : total / 2;
        g->p1[i] = total - g->p0[i];
    }
}

static tg_status check_out(const tgi_geom *g, tgi_err *err)
{
    for (int i = 0; i < 3; i++)
        if (g->out[i] < 1)
            return tgi_fail(err, TG_E_FORMAT,
                            "kernel %" PRId64 " with dilation %" PRId64
                            " does not fit an extent of %" PRId64 " padded by %" PRId64
                            " and %" PRId64,
                            g->k[i], g->d[i], g->in[i], g->p0[i], g->p1[i]);
    return TG_OK;
}

tg_status tgi_conv_geometry(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err)
{
    const conv_attrs *a = ctx->attrs;
    TGI_TRY(common(ctx, a, g, err));
    resolve_auto_pad(a->auto_pad, g);
    g->out_c = ctx->src[1].dim[0];
    if (ctx->src[1].dim[1] * g->groups != g->in_c || g->out_c % g->groups)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " input channels; weights want %" PRId64 " x %" PRId64
                        " groups for %" PRId64 " outputs",
                        g->in_c, ctx->src[1].dim[1], g->groups, g->out_c);
    for (int i = 0; i < 3; i++) {
        const int64_t room = g->in[i] + g->p0[i] + g->p1[i] - ((g->k[i] - 1) * g->d[i] + 1);
        g->out[i] = room < 0 ? 0 : room / g->s[i] + 1;
    }
    return check_out(g, err);
}

tg_status tgi_conv_transpose_geometry(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err)
{
    const conv_attrs *a = ctx->attrs;
    int64_t want[3];
    TGI_TRY(common(ctx, a, g, err));
    TGI_TRY(spread(&a->output_padding, "output_padding", g->spatial, 0, 0, g->out_pad, err));
    TGI_TRY(spread(&a->output_shape, "output_shape", g->spatial, 1, 1, want, err));
    g->out_c = ctx->src[1].dim[1] * g->groups;
    if (ctx->src[1].dim[0] != g->in_c || g->in_c % g->groups)
        return tgi_fail(err, TG_E_FORMAT,
                        "%" PRId64 " input channels in %" PRId64
                        " groups, weights for %" PRId64,
                        g->in_c, g->groups, ctx->src[1].dim[0]);
    const int same = a->auto_pad == TGI_PAD_SAME_UPPER || a->auto_pad == TGI_PAD_SAME_LOWER;
    for (int i = 0; i < 3; i++) {
        const int64_t grown =
            g->s[i] * (g->in[i] - 1) + g->out_pad[i] + (g->k[i] - 1) * g->d[i] + 1;
        if (a->auto_pad == TGI_PAD_VALID)
            g->p0[i] = g->p1[i] = 0;
        if (same || a->output_shape.n >= 0) {
            const int64_t out = a->output_shape.n >= 0 ? want[i] : g->in[i] * g->s[i];
            const int64_t total = grown > out ? grown - out : 0; /* a rest is at the end */
            g->p0[i] = a->auto_pad == TGI_PAD_SAME_UPPER ? total / 2 : total - total / 2;
            g->p1[i] = grown - out - g->p0[i];
        }
        g->out[i] = grown - g->p0[i] - g->p1[i];
    }
    return check_out(g, err);
}

tg_status tgi_pool_geometry(const tgi_op_ctx *ctx, tgi_geom *g, tgi_err *err)
{
    const pool_attrs *a = ctx->attrs;
    TGI_TRY(start(ctx, g, err));
    if (a->kernel_shape.n < 0)
        return tgi_fail(err, TG_E_FORMAT, "a pool without kernel_shape");
    TGI_TRY(spread(&a->kernel_shape, "kernel_shape", g->spatial, 1, 1, g->k, err));
    TGI_TRY(spread(&a->strides, "strides", g->spatial, 1, 1, g->s, err));
    TGI_TRY(spread(&a->dilations, "dilations", g->spatial, 1, 1, g->d, err));
    TGI_TRY(spread_pads(&a->pads, g->spatial, g, err));
    resolve_auto_pad(a->auto_pad, g);
    g->out_c = g->in_c;
    for (int i = 0; i < 3; i++) {
        const int64_t room = g->in[i] + g->p0[i] + g->p1[i] - ((g->k[i] - 1) * g->d[i] + 1);
        const int64_t up = a->ceil_mode && a->auto_pad == TGI_PAD_NOTSET ? g->s[i] - 1 : 0;
        g->out[i] = room < 0 ? 0 : (room + up) / g->s[i] + 1;
        if (g->out[i] > 1 && (g->out[i] - 1) * g->s[i] >= g->in[i] + g->p0[i])
            g->out[i]--;
    }
    return check_out(g, err);
}
