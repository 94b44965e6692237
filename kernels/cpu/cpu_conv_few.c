/* cpu_conv_few.c - convolutions with a planar result: the last layer with 1 to 4 channels, and
 * small networks on RGB.
 *
 * Blocks of output channels would leave most lanes idle here, so the lanes hold something else:
 *   conv_few     blocked source: input channels. A pixel's sum is TGI_L partial sums, one per
 * lane, added at the end in the fixed tree of vf_reduce; then the bias. conv_planar  planar
 * source: neighbouring pixels. Bias first, then one multiply-add per tap in the order channel,
 * kz, ky, kx. Neither order depends on where the pixel lies in the box.
 *
 * Up to 4 output channels are computed together, a *set*. A planar convolution may have groups;
 * a set then lies in one of them and reads the channels of that group.
 *
 * Packed: bias [set][4], then few: [set][unit][kz][ky][kx][4][TGI_L]; planar: [set][channel of
 * the group][kz][ky][kx][4]. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#define OC 4     /* output channels together */
#define FEW_PX 8 /* pixels together in conv_few: 8 to 16 sums */
/* Vectors of pixels together in conv_planar: with 4 channels, half of the registers. */
#define PLANAR_VECS (TG_SIMD_ISA == 2 ? 4 : 2)

typedef struct few {
    const tgi_call *call;
    tgi_geom g;
    int cb;
    int64_t units; /* that a set reads */
    int64_t rows, seg_c[TGI_MAX_SEG];
    const float *bias, *weights;
    size_t tap_floats; /* weights of one tap and one group of OC */
    tgi_range z, y, x;
} few;

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int src_cb)
{
    tgi_geom g;
    return tgi_is_conv_to_planar(ctx, lay, src_cb) &&
           tgi_conv_geometry(ctx, &g, NULL) == TG_OK && (g.groups == 1 || src_cb == 1);
}
static int accepts_few(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, TGI_L);
}
static int accepts_planar(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, 1);
}

/* Output channels that read the same input, and sets that this makes. */
static int64_t sets_of_group(const tgi_geom *g)
{
    return tgi_ceil_div64(g->out_c / g->groups, OC);
}
static int64_t set_count(const tgi_geom *g)
{
    return g->groups * sets_of_group(g);
}
/* First output channel of a set, and how many it has. */
static int64_t set_first(const tgi_geom *g, int64_t set)
{
    const int64_t per = sets_of_group(g);
    return set / per * (g->out_c / g->groups) + set % per * OC;
}
static int set_size(const tgi_geom *g, int64_t set)
{
    return (int)tgi_min64(OC, g->out_c / g->groups - set % sets_of_group(g) * OC);
}
/* First unit that a set reads. */
static int64_t set_unit(const tgi_geom *g, int64_t set)
{
    return g->groups == 1 ? 0 : set / sets_of_group(g) * (g->in_c / g->groups);
}

static int64_t units_of_set(const tgi_geom *g, int cb, int n_seg, const int64_t *seg_c)
{
    return TGS(tgi_unit_count)(cb, n_seg, seg_c) / g->groups;
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    if (tgi_conv_geometry(ctx, &g, NULL) != TG_OK)
        return 0; /* `accepts` said no */
    const int64_t cb = lay->src_cb[0];
    const int64_t units = units_of_set(&g, lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    return sizeof(float) * (size_t)(set_count(&g) * OC * (1 + units * cb * tgi_tap_count(ctx)));
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    tgi_geom g;
    if (tgi_conv_geometry(ctx, &g, NULL) != TG_OK)
        return;
    const int cb = lay->src_cb[0];
    const int64_t ic = ctx->src[1].dim[1], taps = tgi_tap_count(ctx), sets = set_count(&g);
    const int64_t units = units_of_set(&g, cb, lay->src_segs[0], lay->seg_c[0]);
    const void *bias = tgi_is_absent(ctx, 2) ? NULL : ctx->const_src[2]->data;
    const void *w = ctx->const_src[1]->data;
    float *out = dst;
    for (int64_t i = 0; i < sets * OC; i++)
        *out++ = bias && i % OC < set_size(&g, i / OC)
                     ? tgi_const_at(bias, set_first(&g, i / OC) + i % OC)
                     : 0.0f;
    for (int64_t i = 0; i < sets * units; i++) {
        const int64_t set = i / units, first = set_unit(&g, set);
        const tgi_unit u =
            TGS(tgi_unit_at)(cb, lay->src_segs[0], lay->seg_c[0], first + i % units);
        for (int64_t t = 0; t < taps * OC; t++)
            for (int lane = 0; lane < cb; lane++) {
                const int64_t o = set_first(&g, set) + t % OC;
                const int64_t c = g.groups == 1 ? u.channel + lane : i % units;
                *out++ = t % OC < set_size(&g, set) && lane < u.lanes
                             ? tgi_const_at(w, (o * ic + c) * taps + t / OC)
                             : 0.0f;
            }
    }
}

/* Source row of unit u under tap row `tap` of output row (z,y), at column 0 of the image; NULL
 * outside the image. */
static const float *tap_src(const few *f, int64_t u, int64_t tap, int64_t z, int64_t y)
{
    const tgi_geom *g = &f->g;
    const int64_t ky = tap % g->k[TGI_Y], kz = tap / g->k[TGI_Y];
    const int64_t iz = z * g->s[TGI_Z] - g->p0[TGI_Z] + kz * g->d[TGI_Z];
    const int64_t iy = y * g->s[TGI_Y] - g->p0[TGI_Y] + ky * g->d[TGI_Y];
    if (iz < 0 || iz >= g->in[TGI_Z] || iy < 0 || iy >= g->in[TGI_Y])
        return NULL;
    const tgi_operand *src = &f->call->src[0];
    const tgi_unit unit = TGS(tgi_unit_at)(f->cb, src->n_seg, f->seg_c, u);
    const tgi_view *v = &src->seg[unit.seg];
    return tgi_view_row(v, unit.block, iz, iy) - v->x0 * v->cb;
}

/* ---- blocked source ---------------------------------------------------------------------- */

#define FEW_COLS 64 /* columns of a piece: their lane sums wait on the stack */
#define FEW_ROWS 64 /* tap rows summed in registers */

typedef struct few_tap { /* source at column 0 of the piece, weights [kx][OC][TGI_L] */
    const float *x, *w;
} few_tap;

/* Add the listed taps to the lane sums of px columns from `at`: sums[column][oc]. */
TGI_INLINE void few_tile(const few *f, const few_tap *taps, int n_taps, int64_t at, vf *sums,
                         const int px, const int oc)
{
    const ptrdiff_t step = f->g.s[TGI_X] * TGI_L, kx_step = f->g.d[TGI_X] * TGI_L;
    vf acc[FEW_PX * 2];
    sums += at * oc;
    TGI_UNROLL
    for (int i = 0; i < px * oc; i++)
        acc[i] = sums[i];
    for (int t = 0; t < n_taps; t++) {
        const float *x = taps[t].x + at * step, *w = taps[t].w;
        TGI_UNROLL
        for (int p = 0; p < px; p++) /* the next tile: each line is summed once and soon gone */
            __builtin_prefetch(x + (px + p) * step);
        for (int64_t k = 0; k < f->g.k[TGI_X]; k++, x += kx_step, w += OC * TGI_L) {
            TGI_UNROLL
            for (int p = 0; p < px; p++) {
                const vf xv = vf_load(x + p * step);
                TGI_UNROLL
                for (int o = 0; o < oc; o++)
                    acc[p * oc + o] = vf_fma(xv, vf_load(w + o * TGI_L), acc[p * oc + o]);
            }
        }
    }
    TGI_UNROLL
    for (int i = 0; i < px * oc; i++)
        sums[i] = acc[i];
}

/* All columns of a piece; px * oc sums at a time cover the latency of the multiply-add. */
TGI_INLINE void few_taps(const few *f, const few_tap *taps, int n_taps, int64_t n, vf *sums,
                         const int px, const int oc)
{
    int64_t at = 0;
    for (; at + px <= n; at += px)
        few_tile(f, taps, n_taps, at, sums, px, oc);
    for (; at < n; at++)
        few_tile(f, taps, n_taps, at, sums, 1, oc);
}

static void few_sum(const few *f, const few_tap *taps, int n_taps, int64_t n, vf *sums, int oc)
{
    if (oc == 1)
        few_taps(f, taps, n_taps, n, sums, FEW_PX, 1);
    else if (oc == 2)
        few_taps(f, taps, n_taps, n, sums, FEW_PX / 2, 2);
    else if (oc == 3)
        few_taps(f, taps, n_taps, n, sums, FEW_PX / 2, 3);
    else
        few_taps(f, taps, n_taps, n, sums, FEW_PX / 2, 4);
}

static void few_piece(const few *f, int64_t group, int oc, int64_t z, int64_t y, int64_t x0,
                      int64_t n)
{
    const tgi_view *dst = &f->call->dst[0];
    vf sums[FEW_COLS * OC];
    few_tap taps[FEW_ROWS];
    int n_taps = 0;
    for (int64_t i = 0; i < n * oc; i++)
        sums[i] = vf_zero();
    for (int64_t t = 0; t < f->units * f->rows; t++) {
        const float *x = tap_src(f, t / f->rows, t % f->rows, z, y);
        if (!x)
            continue;
        taps[n_taps++] =
            (few_tap){x + (x0 * f->g.s[TGI_X] - f->g.p0[TGI_X]) * TGI_L,
                      f->weights + (size_t)((group * f->units * f->rows + t) * f->g.k[TGI_X]) *
                                       f->tap_floats};
        if (n_taps == FEW_ROWS) {
            few_sum(f, taps, n_taps, n, sums, oc);
            n_taps = 0;
        }
    }
    few_sum(f, taps, n_taps, n, sums, oc);
    for (int o = 0; o < oc; o++) {
        float *out = tgi_view_row(dst, group * OC + o, z, y) + x0 - dst->x0;
        const vf bias = vf_set1(f->bias[group * OC + o]);
        int64_t i = 0;
        for (; i + TGI_L <= n; i += TGI_L)
            vf_store(out + i, vf_reduce_all(sums + i * oc + o, oc) + bias);
        for (; i < n; i++)
            out[i] = vf_reduce(sums[i * oc + o]) + bias[0];
    }
}

/* ---- planar source ----------------------------------------------------------------------- */

/* The rows under one output row are listed once and serve all its pixels. More than fit the
 * list are taken in turns; the sums then wait in dst, a float32 like the accumulator. */
#define PLANAR_ROWS 128

typedef struct planar_row {
    const few *f;
    few_tap taps[PLANAR_ROWS]; /* source at column 0 of the image, weights [kx][OC] */
    int n_taps, first;         /* first: sums begin with the bias */
    float *out[OC];            /* at column 0 of the image */
    const float *bias;
} planar_row;

/* n pixels (at most TGI_L * vecs) of oc channels; `full` means n == TGI_L * vecs. `kx` and `s`
 * are literals where they are 3 and 1. */
TGI_INLINE void planar_piece(const planar_row *r, const int oc, const int vecs, const int full,
                             const int64_t kx, const ptrdiff_t s, int64_t x0, int64_t n)
{
    const ptrdiff_t dilation = r->f->g.d[TGI_X];
    vf acc[PLANAR_VECS * OC];
    TGI_UNROLL
    for (int i = 0; i < vecs * oc; i++) {
        const float *out = r->out[i % oc] + x0 + i / oc * TGI_L;
        acc[i] = r->first ? vf_set1(r->bias[i % oc]) : full ? vf_load(out) : vf_load_n(out, n);
    }
    for (int t = 0; t < r->n_taps; t++) {
        const float *x = r->taps[t].x + x0 * s, *w = r->taps[t].w;
        TGI_UNROLL_4
        for (int64_t k = 0; k < kx; k++, x += dilation, w += OC) {
            TGI_UNROLL
            for (int v = 0; v < vecs; v++) {
                const vf xv = s != 1 ? vf_load_step(x + v * TGI_L * s, s, full ? TGI_L : n)
                              : full ? vf_load(x + v * TGI_L)
                                     : vf_load_n(x, n);
                TGI_UNROLL
                for (int o = 0; o < oc; o++)
                    acc[v * oc + o] = vf_fma(xv, vf_set1(w[o]), acc[v * oc + o]);
            }
        }
    }
    TGI_UNROLL
    for (int i = 0; i < vecs * oc; i++) {
        float *out = r->out[i % oc] + x0 + i / oc * TGI_L;
        if (full)
            vf_store(out, acc[i]);
        else
            vf_store_n(out, acc[i], n);
    }
}

TGI_INLINE void planar_pieces(const planar_row *r, const int oc, const int64_t kx,
                              const ptrdiff_t s, tgi_range x)
{
    const int wide = PLANAR_VECS * TGI_L;
    int64_t at = x.lo;
    for (; at + wide <= x.hi; at += wide)
        planar_piece(r, oc, PLANAR_VECS, 1, kx, s, at, wide);
    for (; at + TGI_L <= x.hi; at += TGI_L)
        planar_piece(r, oc, 1, 1, kx, s, at, TGI_L);
    if (at < x.hi)
        planar_piece(r, oc, 1, 0, kx, s, at, x.hi - at);
}

TGI_INLINE void planar_sum(const planar_row *r, const int oc)
{
    const tgi_geom *g = &r->f->g;
    if (g->k[TGI_X] == 3 && g->s[TGI_X] == 1)
        planar_pieces(r, oc, 3, 1, r->f->x);
    else if (g->s[TGI_X] == 1)
        planar_pieces(r, oc, g->k[TGI_X], 1, r->f->x);
    else
        planar_pieces(r, oc, g->k[TGI_X], g->s[TGI_X], r->f->x);
}

static void planar_channels(const planar_row *r, int oc)
{
    if (oc == 1)
        planar_sum(r, 1);
    else if (oc == 2)
        planar_sum(r, 2);
    else if (oc == 3)
        planar_sum(r, 3);
    else
        planar_sum(r, 4);
}

static void planar_set(const few *f, int64_t set, int oc, int64_t z, int64_t y)
{
    const tgi_view *dst = &f->call->dst[0];
    planar_row r = {.f = f, .first = 1, .bias = f->bias + set * OC};
    const int64_t total = f->units * f->rows, unit = set_unit(&f->g, set);
    const float *w = f->weights + (size_t)(set * total * f->g.k[TGI_X]) * f->tap_floats;
    for (int o = 0; o < oc; o++)
        r.out[o] = tgi_view_row(dst, set_first(&f->g, set) + o, z, y) - dst->x0;
    for (int64_t t = 0; t < total; t++, w += f->g.k[TGI_X] * OC) {
        const float *x = tap_src(f, unit + t / f->rows, t % f->rows, z, y);
        if (!x)
            continue;
        r.taps[r.n_taps++] = (few_tap){x - f->g.p0[TGI_X], w};
        if (r.n_taps == PLANAR_ROWS) {
            planar_channels(&r, oc);
            r.n_taps = r.first = 0;
        }
    }
    if (r.n_taps || r.first)
        planar_channels(&r, oc);
}

/* ---- both -------------------------------------------------------------------------------- */

static void row_job(void *arg, int64_t job, int thread)
{
    const few *f = arg;
    /* There are jobs only where there are rows. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const int64_t height = tgi_range_len(f->y), z = f->z.lo + job / height;
    const int64_t y = f->y.lo + job % height, channels = f->call->dst[0].c;
    (void)thread;
    for (int64_t set = 0; set < set_count(&f->g); set++) {
        const int oc = set_size(&f->g, set);
        if (f->cb > 1) {
            for (int64_t x = f->x.lo; x < f->x.hi; x += FEW_COLS)
                few_piece(f, set, oc, z, y, x, tgi_min64(FEW_COLS, f->x.hi - x));
        } else {
            planar_set(f, set, oc, z, y);
        }
    }
    const tgi_row_part part = {0, channels, z, y, f->x.lo, f->x.hi};
    TGS(tgi_epilogue_part)(f->call, 0, &part);
}

static void run(const tgi_call *call)
{
    few f = {.call = call, .bias = call->packed};
    if (tgi_box_empty(&call->box) || tgi_conv_geometry(call->ctx, &f.g, NULL) != TG_OK)
        return;
    const tgi_operand *src = &call->src[0];
    f.cb = src->seg[0].cb;
    for (int s = 0; s < src->n_seg; s++)
        f.seg_c[s] = src->seg[s].c;
    f.units = units_of_set(&f.g, f.cb, src->n_seg, f.seg_c);
    f.rows = f.g.k[TGI_Z] * f.g.k[TGI_Y];
    f.weights = f.bias + set_count(&f.g) * OC;
    f.tap_floats = (size_t)OC * (size_t)f.cb;
    f.z = tgi_box_axis(&call->box, TGI_Z);
    f.y = tgi_box_axis(&call->box, TGI_Y);
    f.x = tgi_box_axis(&call->box, TGI_X);
    tgi_parallel(call->threads, tgi_range_len(f.z) * tgi_range_len(f.y), row_job, &f);
}

const tgi_variant TGS(tgi_conv_few) = {.name = "conv_few",
                                       .op = "Conv",
                                       .work = TGI_WORK_CONV_FEW,
                                       .accepts = accepts_few,
                                       .packed_bytes = packed_bytes,
                                       .pack = pack,
                                       .run = TGI_RUN(run)};
const tgi_variant TGS(tgi_conv_planar) = {.name = "conv_planar",
                                          .op = "Conv",
                                          .work = TGI_WORK_CONV_FEW,
                                          .accepts = accepts_planar,
                                          .packed_bytes = packed_bytes,
                                          .pack = pack,
                                          .run = TGI_RUN(run)};
