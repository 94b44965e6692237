/* cpu_conv_transpose_few.c - transposed convolutions with a planar result: what ends many
 * super-resolution and decoder networks, 1 to 4 channels.
 *
 * Seen from the result. Output columns x with the same (x + pad) mod stride meet the same taps
 * kx, and the source columns of two neighbours among them are neighbours; so a row is computed
 * phase by phase, and each phase is a convolution of stride 1 whose results lie a stride apart.
 * Rows are taken one by one: those taps ky that divide.
 *
 * As in cpu_conv_few.c the lanes cannot hold output channels:
 *   conv_transpose_few     blocked source: lanes are input channels. TGI_L partial sums per
 *                          result, added at the end in the tree of vf_reduce; then the bias.
 *   conv_transpose_planar  planar source: lanes are pixels of one phase. Bias first, then one
 *                          multiply-add per tap.
 * Order of the taps: unit (block or channel), kz, ky, kx, in both. Columns outside the image
 * are stored zeros, rows outside are not listed: the order does not depend on the box. (Holding
 * stride * stride * channels results in the lanes, as a matrix product, was weighed: at 4x4
 * stride 2 to 3 channels it takes as many multiply-adds, at 9x9 stride 2 to 1 channel four
 * times as many.)
 *
 * Packed: bias [oc, padded to 4], then [oc/4][unit][kz][ky][kx][4][lanes of a unit]. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#define OC 4        /* output channels together */
#define COLS 64     /* results of a phase at a time: their sums wait on the stack */
#define TAPS_MAX 64 /* kx, and kz * ky */
#define TAPS 128    /* taps of a list; more are taken in turns */

typedef struct few {
    const tgi_call *call;
    tgi_geom g;
    int cb;
    int64_t units, rows, seg_c[TGI_MAX_SEG]; /* rows: kz * ky */
    const float *bias, *weights;
    tgi_range z, y, x;
} few;

/* Taps that one phase of one row meets, and what they read. */
typedef struct row_taps {
    int64_t row[TAPS_MAX], iz[TAPS_MAX], iy[TAPS_MAX]; /* row: kz * ky's number */
    int64_t kx[TAPS_MAX], ix[TAPS_MAX];                /* ix: at the phase's first column */
    int n_rows, n_kx;
} row_taps;

typedef struct few_tap { /* source under the first result, weights [OC][lanes] */
    const float *x, *w;
} few_tap;

/* Results x0, x0 + s, ... of one row and one group of channels. */
typedef struct phase {
    const few *f;
    few_tap taps[TAPS];
    int n_taps, oc;
    int64_t n;      /* results */
    int first;      /* nothing summed yet */
    vf *sums;       /* blocked: [result][oc]; planar: [vector][oc] */
    const float *b; /* bias of the group */
} phase;

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int src_cb)
{
    tgi_geom g;
    return tgi_is_conv_to_planar(ctx, lay, src_cb) &&
           tgi_conv_transpose_geometry(ctx, &g, NULL) == TG_OK && g.groups == 1 &&
           g.k[TGI_X] <= TAPS_MAX && g.k[TGI_Z] * g.k[TGI_Y] <= TAPS_MAX;
}
static int accepts_few(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, TGI_L);
}
static int accepts_planar(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, 1);
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int64_t oc = tgi_ceil_div64(ctx->src[1].dim[1], OC) * OC, cb = lay->src_cb[0];
    const int64_t units = TGS(tgi_unit_count)(lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    return sizeof(float) * (size_t)(oc * (1 + units * cb * tgi_tap_count(ctx)));
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    const int cb = lay->src_cb[0];
    const int64_t oc = ctx->src[1].dim[1], taps = tgi_tap_count(ctx);
    const int64_t groups = tgi_ceil_div64(oc, OC);
    const int64_t units = TGS(tgi_unit_count)(cb, lay->src_segs[0], lay->seg_c[0]);
    const void *bias = tgi_is_absent(ctx, 2) ? NULL : ctx->const_src[2]->data;
    const void *w = ctx->const_src[1]->data; /* [C, M, k] */
    float *out = dst;
    for (int64_t o = 0; o < groups * OC; o++)
        *out++ = bias && o < oc ? tgi_const_at(bias, o) : 0.0f;
    for (int64_t i = 0; i < groups * units; i++) {
        const tgi_unit u = TGS(tgi_unit_at)(cb, lay->src_segs[0], lay->seg_c[0], i % units);
        for (int64_t t = 0; t < taps * OC; t++)
            for (int lane = 0; lane < cb; lane++) {
                const int64_t o = i / units * OC + t % OC;
                *out++ = o < oc && lane < u.lanes
                             ? tgi_const_at(w, ((u.channel + lane) * oc + o) * taps + t / OC)
                             : 0.0f;
            }
    }
}

/* ---- one phase --------------------------------------------------------------------------- */

/* Add the listed taps to the lane sums of px results from `at`. px and oc are literals. */
TGI_INLINE void few_tile(phase *p, int64_t at, const int px, const int oc)
{
    vf acc[16], *sums = p->sums + at * oc;
    TGI_UNROLL
    for (int i = 0; i < px * oc; i++)
        acc[i] = p->first ? vf_zero() : sums[i];
    for (int t = 0; t < p->n_taps; t++) {
        const float *x = p->taps[t].x + at * TGI_L, *w = p->taps[t].w;
        TGI_UNROLL
        for (int q = 0; q < px; q++) {
            const vf xv = vf_load(x + q * TGI_L);
            TGI_UNROLL
            for (int o = 0; o < oc; o++)
                acc[q * oc + o] = vf_fma(xv, vf_load(w + o * TGI_L), acc[q * oc + o]);
        }
    }
    TGI_UNROLL
    for (int i = 0; i < px * oc; i++)
        sums[i] = acc[i];
}

/* px * oc sums at a time cover the latency of the multiply-add. */
TGI_INLINE void few_tiles(phase *p, const int px, const int oc)
{
    int64_t at = 0;
    for (; at + px <= p->n; at += px)
        few_tile(p, at, px, oc);
    for (; at < p->n; at++)
        few_tile(p, at, 1, oc);
}

/* Vectors of TGI_L results; the last may be part. */
TGI_INLINE void planar_tiles(phase *p, const int oc)
{
    for (int64_t at = 0; at < p->n; at += TGI_L) {
        const int64_t left = p->n - at;
        vf acc[OC], *sums = p->sums + at / TGI_L * oc;
        TGI_UNROLL
        for (int o = 0; o < oc; o++)
            acc[o] = p->first ? vf_set1(p->b[o]) : sums[o];
        for (int t = 0; t < p->n_taps; t++) {
            const float *x = p->taps[t].x + at, *w = p->taps[t].w;
            const vf xv = left >= TGI_L ? vf_load(x) : vf_load_n(x, left);
            TGI_UNROLL
            for (int o = 0; o < oc; o++)
                acc[o] = vf_fma(xv, vf_set1(w[o]), acc[o]);
        }
        TGI_UNROLL
        for (int o = 0; o < oc; o++)
            sums[o] = acc[o];
    }
}

static void sum_list(phase *p)
{
    const int planar = p->f->cb == 1;
    if (p->oc == 1)
        planar ? planar_tiles(p, 1) : few_tiles(p, 8, 1);
    else if (p->oc == 2)
        planar ? planar_tiles(p, 2) : few_tiles(p, 6, 2);
    else if (p->oc == 3)
        planar ? planar_tiles(p, 3) : few_tiles(p, 4, 3);
    else
        planar ? planar_tiles(p, 4) : few_tiles(p, 4, 4);
    p->n_taps = p->first = 0;
}

/* The source coordinate that tap k of output coordinate o reads on an axis; 0: it meets none.
 */
static int tap_source(const tgi_geom *g, int axis, int64_t o, int64_t k, int64_t *i)
{
    const int64_t t = o + g->p0[axis] - k * g->d[axis];
    *i = tgi_floor_div64(t, g->s[axis]);
    return *i * g->s[axis] == t;
}

/* The taps (kz,ky) of output row (z,y) whose source lies inside the image. */
static void list_rows(row_taps *l, const tgi_geom *g, int64_t z, int64_t y)
{
    l->n_rows = 0;
    for (int64_t tap = 0; tap < g->k[TGI_Z] * g->k[TGI_Y]; tap++) {
        int64_t iz, iy;
        if (tap_source(g, TGI_Z, z, tap / g->k[TGI_Y], &iz) && iz >= 0 && iz < g->in[TGI_Z] &&
            tap_source(g, TGI_Y, y, tap % g->k[TGI_Y], &iy) && iy >= 0 && iy < g->in[TGI_Y]) {
            l->row[l->n_rows] = tap;
            l->iz[l->n_rows] = iz;
            l->iy[l->n_rows++] = iy;
        }
    }
}

/* The taps kx that output column x meets. */
static void list_columns(row_taps *l, const tgi_geom *g, int64_t x)
{
    l->n_kx = 0;
    for (int64_t k = 0; k < g->k[TGI_X]; k++)
        if (tap_source(g, TGI_X, x, k, &l->ix[l->n_kx]))
            l->kx[l->n_kx++] = k;
}

/* Sum all taps of p->n results; `ahead`: source columns past those of the lists. */
static void sum_phase(phase *p, const row_taps *l, int64_t group, int64_t ahead)
{
    const few *f = p->f;
    const tgi_operand *src = &f->call->src[0];
    const int64_t tap = OC * f->cb, row = f->g.k[TGI_X] * tap;
    const float *w = f->weights + (size_t)(group * f->units * f->rows * row);
    p->n_taps = 0;
    p->first = 1;
    for (int64_t i = 0; i < f->units; i++, w += f->rows * row) {
        const tgi_unit u = TGS(tgi_unit_at)(f->cb, src->n_seg, f->seg_c, i);
        const tgi_view *v = &src->seg[u.seg];
        for (int r = 0; r < l->n_rows; r++) {
            const float *x =
                tgi_view_row(v, u.block, l->iz[r], l->iy[r]) + (ahead - v->x0) * v->cb;
            for (int k = 0; k < l->n_kx; k++) {
                if (p->n_taps == TAPS)
                    sum_list(p);
                p->taps[p->n_taps++] =
                    (few_tap){x + l->ix[k] * f->cb, w + l->row[r] * row + l->kx[k] * tap};
            }
        }
    }
    sum_list(p);
}

/* Results of channel o of the phase into out[0], out[step], ... */
static void store_phase(const phase *p, int o, float *out, int64_t step)
{
    const int planar = p->f->cb == 1;
    for (int64_t at = 0; at < p->n; at += TGI_L) {
        const int64_t n = tgi_min64(TGI_L, p->n - at);
        vf v;
        if (planar) {
            v = p->sums[at / TGI_L * p->oc + o];
        } else if (n == TGI_L) {
            v = vf_reduce_all(p->sums + at * p->oc + o, p->oc) + vf_set1(p->b[o]);
        } else {
            v = vf_zero();
            for (int64_t i = 0; i < n; i++)
                v[i] = vf_reduce(p->sums[(at + i) * p->oc + o]) + p->b[o];
        }
        float *to = out + at * step;
        for (int64_t i = 0; i < n; i++)
            to[i * step] = v[i];
    }
}

static void row_job(void *arg, int64_t job, int thread)
{
    const few *f = arg;
    /* There are jobs only where there are rows. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const int64_t height = tgi_range_len(f->y), z = f->z.lo + job / height;
    const int64_t y = f->y.lo + job % height, channels = f->call->dst[0].c;
    const int64_t s = f->g.s[TGI_X];
    const tgi_view *dst = &f->call->dst[0];
    vf sums[COLS * OC];
    phase p = {.f = f, .sums = sums};
    row_taps list;
    (void)thread;
    list_rows(&list, &f->g, z, y);
    for (int64_t first = f->x.lo; first < tgi_min64(f->x.lo + s, f->x.hi); first++) {
        list_columns(&list, &f->g, first);
        for (int64_t c = 0; c < channels; c += OC) {
            p.oc = (int)tgi_min64(OC, channels - c);
            p.b = f->bias + c;
            for (int64_t x = first; x < f->x.hi; x += COLS * s) {
                p.n = tgi_min64(COLS, (f->x.hi - x - 1) / s + 1);
                sum_phase(&p, &list, c / OC, (x - first) / s);
                for (int o = 0; o < p.oc; o++)
                    store_phase(&p, o, tgi_view_row(dst, c + o, z, y) + x - dst->x0, s);
            }
        }
    }
    const tgi_row_part part = {0, channels, z, y, f->x.lo, f->x.hi};
    TGS(tgi_epilogue_part)(f->call, 0, &part);
}

static void run(const tgi_call *call)
{
    few f = {.call = call, .bias = call->packed};
    if (tgi_box_empty(&call->box) ||
        tgi_conv_transpose_geometry(call->ctx, &f.g, NULL) != TG_OK)
        return;
    const tgi_operand *src = &call->src[0];
    f.cb = src->seg[0].cb;
    for (int s = 0; s < src->n_seg; s++)
        f.seg_c[s] = src->seg[s].c;
    f.units = TGS(tgi_unit_count)(f.cb, src->n_seg, f.seg_c);
    f.rows = f.g.k[TGI_Z] * f.g.k[TGI_Y];
    f.weights = f.bias + tgi_ceil_div64(f.g.out_c, OC) * OC;
    f.z = tgi_box_axis(&call->box, TGI_Z);
    f.y = tgi_box_axis(&call->box, TGI_Y);
    f.x = tgi_box_axis(&call->box, TGI_X);
    tgi_parallel(call->threads, tgi_range_len(f.z) * tgi_range_len(f.y), row_job, &f);
}

const tgi_variant TGS(tgi_conv_transpose_few) = {.name = "conv_transpose_few",
                                                 .op = "ConvTranspose",
                                                 .work = TGI_WORK_CONV_FEW,
                                                 .accepts = accepts_few,
                                                 .packed_bytes = packed_bytes,
                                                 .pack = pack,
                                                 .run = TGI_RUN(run)};
const tgi_variant TGS(tgi_conv_transpose_planar) = {.name = "conv_transpose_planar",
                                                    .op = "ConvTranspose",
                                                    .work = TGI_WORK_CONV_FEW,
                                                    .accepts = accepts_planar,
                                                    .packed_bytes = packed_bytes,
                                                    .pack = pack,
                                                    .run = TGI_RUN(run)};
