/* cpu_conv_grouped.c - convolutions in groups, with a blocked result: every output channel
 * reads the channels of its group only.
 *
 * A block of TG_L output channels belongs to one group or to several small ones. It reads the
 * source channels of all its groups, which are neighbours, through the tiles of
 * cpu_conv_tile.h; where a channel is not of an output's group its weight is zero. So groups
 * of 16 channels and more waste nothing, groups of 8 half of the multiply-adds with 16 lanes,
 * groups of 4 three quarters; shuffling source lanes instead would save half of that at most,
 * since a shuffle takes as long as a multiply-add.
 *
 * Order: bias, then unit, kz, ky, kx, channel, zeros included. Columns outside the image are
 * stored zeros; rows outside are not listed.
 *
 * Packed: bias [blocks][TG_L], then for each block [unit it reads][kz][ky][kx][lanes of a
 * unit][TG_L], as much room for each as the block with the most units takes. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/cpu_conv_tile.h"
#include "kernels/ops/op_attrs.h"

#define ROWS_MAX 128 /* tap rows of a list; more are taken in turns */

typedef struct grouped {
    tgi_geom g;
    int cb, n_seg;
    int64_t seg_c[TG_MAX_SEG], units, blocks;
    int64_t most; /* units that a block reads */
    const float *bias, *weights;
} grouped;

static int accepts(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    tgi_geom g;
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           tgi_conv_geometry(ctx, &g, NULL) == TG_OK && g.groups > 1 && lay->lanes == TG_L &&
           lay->dst_cb == TG_L && lay->src_segs[0] > 0 &&
           (lay->src_cb[0] == 1 || lay->src_cb[0] == TG_L);
}

/* The source channels that output block b reads. */
static tg_range channels_of(const tgi_geom *g, int64_t b)
{
    const int64_t in = g->in_c / g->groups, out = g->out_c / g->groups;
    const int64_t last = tgi_min64((b + 1) * TG_L, g->out_c) - 1;
    return (tg_range){b * TG_L / out * in, (last / out + 1) * in};
}

/* The units that hold these channels. */
static tg_range units_of(const grouped *c, tg_range channels)
{
    if (c->n_seg == 1)
        return (tg_range){channels.lo / c->cb, (channels.hi - 1) / c->cb + 1};
    tg_range r = {c->units, 0};
    for (int64_t i = 0; i < c->units; i++) {
        const tg_unit u = TGS(tgi_unit_at)(c->cb, c->n_seg, c->seg_c, i);
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
    c->blocks = tgi_ceil_div64(c->g.out_c, TG_L);
    c->most = 0;
    for (int64_t b = 0; b < c->blocks; b++)
        c->most = tgi_max64(c->most, tgi_range_len(units_of(c, channels_of(&c->g, b))));
}

/* Floats of one unit's weights for one block. */
static int64_t unit_floats(const grouped *c)
{
    return c->g.k[TG_Z] * c->g.k[TG_Y] * c->g.k[TG_X] * c->cb * TG_L;
}

static size_t packed_bytes(const tg_op_ctx *ctx, const tg_layout_hint *lay)
{
    grouped c;
    if (tgi_conv_geometry(ctx, &c.g, NULL) != TG_OK)
        return 0; /* `accepts` said no */
    understand(&c, lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    return sizeof(float) * (size_t)(c.blocks * (TG_L + c.most * unit_floats(&c)));
}

/* The lanes of a unit that a block reads. */
static tg_range lanes_of(const tg_unit *u, tg_range channels)
{
    return (tg_range){tgi_max64(channels.lo - u->channel, 0),
                      tgi_min64(channels.hi - u->channel, u->lanes)};
}

static void pack_block(const grouped *c, int64_t b, const void *w, float *out)
{
    const tgi_geom *g = &c->g;
    const int64_t in = g->in_c / g->groups, out_g = g->out_c / g->groups;
    const int64_t taps = g->k[TG_Z] * g->k[TG_Y] * g->k[TG_X];
    const tg_range channels = channels_of(g, b), units = units_of(c, channels);
    for (int64_t i = units.lo; i < units.hi; i++) {
        const tg_unit u = TGS(tgi_unit_at)(c->cb, c->n_seg, c->seg_c, i);
        const tg_range lanes = lanes_of(&u, channels);
        for (int64_t k = 0; k < taps * c->cb * TG_L; k++) {
            const int64_t tap = k / (c->cb * TG_L), oc = b * TG_L + k % TG_L;
            const int64_t ic = u.channel + lanes.lo + k / TG_L % c->cb;
            const int is = oc < g->out_c && ic < u.channel + lanes.hi && ic / in == oc / out_g;
            *out++ = is ? tgi_const_at(w, (oc * in + ic % in) * taps + tap) : 0.0f;
        }
    }
}

static void pack(const tg_op_ctx *ctx, const tg_layout_hint *lay, void *dst)
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
                   out + c.blocks * TG_L + b * c.most * unit_floats(&c));
}

/* Sum the rows listed so far. */
static void flush(tile_job *j, tap_row *rows, int planar)
{
    j->rows = rows;
    TGS(tgi_conv_part)(j, 1, planar);
    j->n_rows = 0;
    j->bias = NULL;
}

static int part(const tg_call *call, const void *arg, const tg_row_part *p)
{
    const grouped *c = arg;
    const tgi_geom *g = &c->g;
    const tg_view *dv = &call->dst[0];
    const tg_range channels = channels_of(g, p->b0), units = units_of(c, channels);
    const int64_t taps = g->k[TG_Z] * g->k[TG_Y], x = p->x0 * g->s[TG_X] - g->p0[TG_X];
    const float *w = c->weights + p->b0 * c->most * unit_floats(c);
    const int relu = call->n_epi && call->epi[0].kind == TG_EPI_RELU;
    tap_row rows[ROWS_MAX];
    tile_job j = {.ahead = TILE_AHEAD,
                  .n_kx = (int)g->k[TG_X],
                  .kx_step = g->d[TG_X] * c->cb,
                  .src_step = g->s[TG_X] * c->cb,
                  .bias = c->bias + p->b0 * TG_L,
                  .dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * TG_L,
                  .dst_block = dv->block_pitch,
                  .dst_step = TG_L,
                  .n = p->x1 - p->x0};
    for (int64_t i = units.lo; i < units.hi; i++) {
        const tg_unit u = TGS(tgi_unit_at)(c->cb, c->n_seg, c->seg_c, i);
        const tg_range lanes = lanes_of(&u, channels);
        const tg_view *v = &call->src[0].seg[u.seg];
        for (int64_t t = 0; t < taps; t++, w += g->k[TG_X] * c->cb * TG_L) {
            const int64_t z = p->z * g->s[TG_Z] - g->p0[TG_Z] + t / g->k[TG_Y] * g->d[TG_Z];
            const int64_t y = p->y * g->s[TG_Y] - g->p0[TG_Y] + t % g->k[TG_Y] * g->d[TG_Y];
            if (z < 0 || z >= g->in[TG_Z] || y < 0 || y >= g->in[TG_Y])
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

static void run(const tg_call *call)
{
    grouped c = {.bias = call->packed};
    int64_t seg_c[TG_MAX_SEG];
    const tg_operand *src = &call->src[0];
    if (tgi_conv_geometry(call->ctx, &c.g, NULL) != TG_OK)
        return;
    for (int s = 0; s < src->n_seg; s++)
        seg_c[s] = src->seg[s].c;
    understand(&c, src->seg[0].cb, src->n_seg, seg_c);
    c.weights = c.bias + c.blocks * TG_L;
    TGS(tgi_each_part)(call, part, &c);
}

const tg_variant TGS(tgi_conv_grouped) = {.name = "conv_grouped",
                                          .op = "Conv",
                                          .accepts = accepts,
                                          .packed_bytes = packed_bytes,
                                          .pack = pack,
                                          .run = run};
