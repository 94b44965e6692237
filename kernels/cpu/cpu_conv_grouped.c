/* cpu_conv_grouped.c - convolutions in groups, with a blocked result: every output channel
 * reads the channels of its group only.
 *
 * A block of TGI_L output channels belongs to one group or to several small ones. It reads the
 * source channels of all its groups, which are neighbours, through the tiles of
 * cpu_conv_tile.h; where a channel is not of an output's group its weight is zero. So groups
 * of 16 channels and more waste nothing, groups of 8 half of the multiply-adds with 16 lanes,
 * groups of 4 three quarters; shuffling source lanes instead would save half of that at most,
 * since a shuffle takes as long as a multiply-add.
 *
 * Order: bias, then unit, kz, ky, kx, channel, zeros included. Columns outside the image are
 * stored zeros; rows outside are not listed.
 *
 * Packed: bias [blocks][TGI_L], then for each block [unit it reads][kz][ky][kx][lanes of a
 * unit][TGI_L], as much room for each as the block with the most units takes. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/cpu_conv_tile.h"
#include "kernels/ops/op_attrs.h"

#define ROWS_MAX 128 /* tap rows of a list; more are taken in turns */

typedef struct grouped {
    tgi_geom g;
    int cb, n_seg;
    int64_t seg_c[TGI_MAX_SEG], units, blocks;
    int64_t most; /* units that a block reads */
    const float *bias, *weights;
} grouped;

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           tgi_conv_geometry(ctx, &g, NULL) == TG_OK && g.groups > 1 && lay->lanes == TGI_L &&
           lay->dst_cb == TGI_L && lay->src_segs[0] > 0 &&
           (lay->src_cb[0] == 1 || lay->src_cb[0] == TGI_L);
}

/* The source channels that output block b reads. */
static tgi_range channels_of(const tgi_geom *g, int64_t b)
{
    const int64_t in = g->in_c / g->groups, out = g->out_c / g->groups;
    const int64_t last = tgi_min64((b + 1) * TGI_L, g->out_c) - 1;
    return (tgi_range){b * TGI_L / out * in, (last / out + 1) * in};
}

/* The units that hold these channels. */
static tgi_range units_of(const grouped *c, tgi_range channels)
{
    if (c->n_seg == 1)
        return (tgi_range){channels.lo / c->cb, (channels.hi - 1) / c->cb + 1};
    tgi_range r = {c->units, 0};
    for (int64_t i = 0; i < c->units; i++) {
        const tgi_unit u = TGS(tgi_unit_at)(c->cb, c->n_seg, c->seg_c, i);
        if (u.channel < channels.hi && u.channel + u.lanes > channels.lo) {
            r.lo = tgi_min64(r.lo, i);
            r.hi = i + 1;
        }
    }
    return r;
}

static void understand(grouped *c, int cb, int n_seg, const int64_t *seg_c)
{
    c->cb = cb;
    c->n_seg = n_seg;
    for (int s = 0; s < n_seg; s++)
        c->seg_c[s] = seg_c[s];
    c->units = TGS(tgi_unit_count)(cb, n_seg, seg_c);
    c->blocks = tgi_ceil_div64(c->g.out_c, TGI_L);
    c->most = 0;
    for (int64_t b = 0; b < c->blocks; b++)
        c->most = tgi_max64(c->most, tgi_range_len(units_of(c, channels_of(&c->g, b))));
}

/* Floats of one unit's weights for one block. */
static int64_t unit_floats(const grouped *c)
{
    return c->g.k[TGI_Z] * c->g.k[TGI_Y] * c->g.k[TGI_X] * c->cb * TGI_L;
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    grouped c;
    if (tgi_conv_geometry(ctx, &c.g, NULL) != TG_OK)
        return 0; /* `accepts` said no */
    understand(&c, lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    return sizeof(float) * (size_t)(c.blocks * (TGI_L + c.most * unit_floats(&c)));
}

/* The lanes of a unit that a block reads. */
static tgi_range lanes_of(const tgi_unit *u, tgi_range channels)
{
    return (tgi_range){tgi_max64(channels.lo - u->channel, 0),
                       tgi_min64(channels.hi - u->channel, u->lanes)};
}

static void pack_block(const grouped *c, int64_t b, const void *w, float *out)
{
    const tgi_geom *g = &c->g;
    const int64_t in = g->in_c / g->groups, out_g = g->out_c / g->groups;
    const int64_t taps = g->k[TGI_Z] * g->k[TGI_Y] * g->k[TGI_X];
    const tgi_range channels = channels_of(g, b), units = units_of(c, channels);
    for (int64_t i = units.lo; i < units.hi; i++) {
        const tgi_unit u = TGS(tgi_unit_at)(c->cb, c->n_seg, c->seg_c, i);
        const tgi_range lanes = lanes_of(&u, channels);
        for (int64_t k = 0; k < taps * c->cb * TGI_L; k++) {
            const int64_t tap = k / (c->cb * TGI_L), oc = b * TGI_L + k % TGI_L;
            const int64_t ic = u.channel + lanes.lo + k / TGI_L % c->cb;
            const int is = oc < g->out_c && ic < u.channel + lanes.hi && ic / in == oc / out_g;
            *out++ = is ? tgi_const_at(w, (oc * in + ic % in) * taps + tap) : 0.0f;
        }
    }
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    grouped c;
    float *out = dst;
    if (tgi_conv_geometry(ctx, &c.g, NULL) != TG_OK)
        return;
    understand(&c, lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    memset(dst, 0, packed_bytes(ctx, lay));
    for (int64_t o = 0; o < c.g.out_c && !tgi_is_absent(ctx, 2); o++)
        out[o] = tgi_const_at(ctx->const_src[2]->data, o);
    for (int64_t b = 0; b < c.blocks; b++)
        pack_block(&c, b, ctx->const_src[1]->data,
                   out + c.blocks * TGI_L + b * c.most * unit_floats(&c));
}

/* Sum the rows listed so far. */
static void flush(tile_job *j, tap_row *rows, int planar)
{
    j->rows = rows;
    TGS(tgi_conv_part)(j, 1, planar);
    j->n_rows = 0;
    j->bias = NULL;
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const grouped *c = arg;
    const tgi_geom *g = &c->g;
    const tgi_view *dv = &call->dst[0];
    const tgi_range channels = channels_of(g, p->b0), units = units_of(c, channels);
    const int64_t taps = g->k[TGI_Z] * g->k[TGI_Y], x = p->x0 * g->s[TGI_X] - g->p0[TGI_X];
    const float *w = c->weights + p->b0 * c->most * unit_floats(c);
    const int relu = call->n_epi && call->epi[0].kind == TGI_EPI_RELU;
    tap_row rows[ROWS_MAX];
    tile_job j = {.ahead = TILE_AHEAD,
                  .n_kx = (int)g->k[TGI_X],
                  .kx_step = g->d[TGI_X] * c->cb,
                  .src_step = g->s[TGI_X] * c->cb,
                  .bias = c->bias + p->b0 * TGI_L,
                  .dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * TGI_L,
                  .dst_block = dv->block_pitch,
                  .dst_step = TGI_L,
                  .n = p->x1 - p->x0};
    for (int64_t i = units.lo; i < units.hi; i++) {
        const tgi_unit u = TGS(tgi_unit_at)(c->cb, c->n_seg, c->seg_c, i);
        const tgi_range lanes = lanes_of(&u, channels);
        const tgi_view *v = &call->src[0].seg[u.seg];
        for (int64_t t = 0; t < taps; t++, w += g->k[TGI_X] * c->cb * TGI_L) {
            const int64_t z = p->z * g->s[TGI_Z] - g->p0[TGI_Z] + t / g->k[TGI_Y] * g->d[TGI_Z];
            const int64_t y = p->y * g->s[TGI_Y] - g->p0[TGI_Y] + t % g->k[TGI_Y] * g->d[TGI_Y];
            if (z < 0 || z >= g->in[TGI_Z] || y < 0 || y >= g->in[TGI_Y])
                continue;
            if (j.n_rows == ROWS_MAX)
                flush(&j, rows, c->cb == 1);
            rows[j.n_rows++] =
                (tap_row){tgi_view_row(v, u.block, z, y) + (x - v->x0) * v->cb + lanes.lo, w,
                          (int)tgi_range_len(lanes)};
        }
    }
    j.relu = relu;
    flush(&j, rows, c->cb == 1);
    return relu;
}

static void run(const tgi_call *call)
{
    grouped c = {.bias = call->packed};
    int64_t seg_c[TGI_MAX_SEG];
    const tgi_operand *src = &call->src[0];
    if (tgi_conv_geometry(call->ctx, &c.g, NULL) != TG_OK)
        return;
    for (int s = 0; s < src->n_seg; s++)
        seg_c[s] = src->seg[s].c;
    understand(&c, src->seg[0].cb, src->n_seg, seg_c);
    c.weights = c.bias + c.blocks * TGI_L;
    TGS(tgi_each_part)(call, part, &c);
}

const tgi_variant TGS(tgi_conv_grouped) = {.name = "conv_grouped",
                                           .op = "Conv",
                                           .work = TGI_WORK_CONV,
                                           .accepts = accepts,
                                           .packed_bytes = packed_bytes,
                                           .pack = pack,
                                           .run = TGI_RUN(run)};
