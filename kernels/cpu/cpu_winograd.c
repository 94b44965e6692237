/* cpu_winograd.c - 3x3 convolutions by Winograd's F(4x4,3x3): 36 multiplications where the
 * direct sum has 144.
 *
 * The result is cut into blocks of 4x4 pixels that start at multiples of 4 of the *image*, plus
 * the node's phase, so a pixel's block, and with it every rounding, is the same for any box. A
 * block reads 6x6 source pixels whole: `slide` below asks for whole blocks, also where only a
 * part of one is wanted.
 *
 * A job is a batch of blocks, in reading order, small enough for the second-level cache:
 *   1. source    each unit's 6x6 patches -> 36 numbers of V   [36][unit][block][TGI_L]
 *   2. multiply  36 matrix products M = U V, which are 1x1 convolutions over blocks and use the
 *                tiles of the direct kernel                   [36][out block][block][TGI_L]
 *   3. result    36 numbers of M -> 4x4 pixels, bias, epilogue
 *
 * The order of a sum: unit, channel within each of the 36 products, then the fixed trees of the
 * transforms. Error: about 3e-6 relative L2 a layer, direct about 1e-6.
 *
 * Packed weights: bias [blocks][TGI_L], then U [36][group][unit][lane][ob][TGI_L].
 *
 * @source A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015 (points 0,
 * 1, -1, 2, -2, infinity). */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/cpu_conv_tile.h"

#include <math.h>

#define OUT 4   /* pixels of a block along an axis */
#define PATCH 6 /* source pixels of a block along an axis */
#define POINTS 36
#define LINE 16                          /* floats of a cache line */
#define CACHE_BYTES ((int64_t)640 << 10) /* of V and M of a batch */
#define SHARED_BYTES ((int64_t)4 << 20)  /* of U */
#define MEMORY_BYTES ((int64_t)16 << 20) /* of U: more than a third level keeps */
#define BATCH_MIN (2 * TILE_PX(2))
#define BATCH_MAX 96

typedef struct wino {
    const tgi_call *call;
    tgi_geom g;
    int64_t seg_c[TGI_MAX_SEG];
    int64_t units, blocks;
    const float *bias, *weights;
    int64_t phase;
    tgi_range y, x;         /* of the box */
    int64_t by, bx;         /* first block row and column */
    int64_t per_row, total; /* blocks of a block row, and of the box */
    int64_t batch;
    float *v;                /* V of the first thread, or of all */
    size_t v_point, m_point; /* floats of a point in V and M */
    tgi_range shared;        /* the batch that all threads work on */
    int relu;                /* the epilogue starts with one */
} wino;

/* Blocks of pixels of the batch that lie in one block row. */
typedef struct stretch {
    int64_t at;     /* in the batch */
    int64_t by, bx; /* block row, first block column */
    int64_t n;
} stretch;

/* ---- Choice and packing ------------------------------------------------------------------ */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    if (ctx->src[0].rank != 4 || lay->lanes != TGI_L || lay->dst_cb != TGI_L ||
        lay->src_cb[0] != TGI_L || !tgi_is_const_f32(ctx, 1) ||
        !(tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) ||
        tgi_conv_geometry(ctx, &g, NULL) != TG_OK)
        return 0;
    for (int i = TGI_Y; i <= TGI_X; i++)
        if (g.k[i] != 3 || g.s[i] != 1 || g.d[i] != 1)
            return 0;
    return g.groups == 1 && g.in_c >= TGI_L && g.out_c >= TGI_L;
}

static int64_t units_of(const tgi_layout_hint *lay)
{
    return TGS(tgi_unit_count)(TGI_L, lay->src_segs[0], lay->seg_c[0]);
}

/* Where U outgrows the second-level cache, all threads work on one large batch, so that U is
 * read once for many blocks. Depends on channels alone, like all sizes here. */
static int is_shared(int64_t units, int64_t blocks)
{
    return units * blocks * POINTS * TGI_L * TGI_L * (int64_t)sizeof(float) > SHARED_BYTES;
}

/* Blocks of a batch: as many as the cache takes. */
static int64_t batch_of(int64_t units, int64_t blocks)
{
    if (is_shared(units, blocks))
        return BATCH_MAX;
    const int64_t one = POINTS * (units + blocks) * TGI_L * (int64_t)sizeof(float);
    const int64_t fit = CACHE_BYTES / one / TILE_PX(2) * TILE_PX(2);
    return tgi_max64(BATCH_MIN, tgi_min64(fit, BATCH_MAX));
}

/* Floats of one point of V or M. An odd number of cache lines: a patch writes to all 36 points
 * at once, which at a multiple of 4 KiB would share the sets of one way of the first level. */
static size_t point_floats(int64_t units, int64_t batch)
{
    const int64_t lines = tgi_ceil_div64(units * batch * TGI_L, LINE);
    return (size_t)((lines | 1) * LINE);
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int64_t blocks = tgi_ceil_div64(ctx->dst[0].dim[1], TGI_L);
    return sizeof(float) * (size_t)(blocks * TGI_L * (1 + POINTS * units_of(lay) * TGI_L));
}

/* One step of G on three values a lane; the factors of G' are the same. */
TGI_INLINE void weight_line(double o[PATCH][TGI_L], const double a[TGI_L],
                            const double b[TGI_L], const double c[TGI_L])
{
    static const double G[PATCH][3] = {{1. / 4, 0, 0},
                                       {-1. / 6, -1. / 6, -1. / 6},
                                       {-1. / 6, 1. / 6, -1. / 6},
                                       {1. / 24, 1. / 12, 1. / 6},
                                       {1. / 24, -1. / 12, 1. / 6},
                                       {0, 0, 1}};
    for (int i = 0; i < PATCH; i++)
        for (int l = 0; l < TGI_L; l++)
            o[i][l] = G[i][0] * a[l] + G[i][1] * b[l] + G[i][2] * c[l];
}

/* out[i * step + lane] = (G w G') for the kernels of TGI_L output channels, of which `lanes`
 * exist; in double, rounded once. Kernels of neighbouring channels are `apart` floats apart. */
static void transform_weights(const void *w, int64_t first, int64_t apart, int64_t lanes,
                              float *out, size_t step)
{
    double k[9][TGI_L] = {{0}}, half[3][PATCH][TGI_L], all[PATCH][TGI_L];
    for (int64_t l = 0; l < lanes; l++)
        for (int i = 0; i < 9; i++)
            k[i][l] = tgi_const_at(w, first + l * apart + i);
    for (int j = 0; j < 3; j++) /* columns of the kernel */
        weight_line(half[j], k[j], k[3 + j], k[6 + j]);
    for (int i = 0; i < PATCH; i++) {
        weight_line(all, half[0][i], half[1][i], half[2][i]);
        for (int j = 0; j < PATCH; j++, out += step)
            for (int l = 0; l < TGI_L; l++)
                out[l] = (float)all[j][l];
    }
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    tgi_geom g;
    if (tgi_conv_geometry(ctx, &g, NULL) != TG_OK)
        return; /* `accepts` said no */
    const int64_t blocks = tgi_ceil_div64(g.out_c, TGI_L), units = units_of(lay);
    const size_t step = (size_t)(blocks * units * TGI_L * TGI_L); /* of one point */
    const void *bias = tgi_is_absent(ctx, 2) ? NULL : ctx->const_src[2]->data;
    float *out = dst;
    for (int64_t i = 0; i < blocks * TGI_L; i++)
        *out++ = bias && i < g.out_c ? tgi_const_at(bias, i) : 0.0f;
    for (int64_t group = 0; group < tile_group_count(blocks); group++) {
        const int64_t ob = tile_group_size(blocks, group);
        for (int64_t i = 0; i < units; i++) {
            const tgi_unit u = TGS(tgi_unit_at)(TGI_L, lay->src_segs[0], lay->seg_c[0], i);
            for (int64_t at = 0; at < TGI_L * ob; at++, out += TGI_L) {
                const int64_t oc = (tile_group_first(blocks, group) + at % ob) * TGI_L;
                const int64_t ic = u.channel + at / ob;
                const int64_t lanes =
                    at / ob < u.lanes ? tgi_min64(TGI_L, tgi_max64(0, g.out_c - oc)) : 0;
                transform_weights(ctx->const_src[1]->data, 9 * (oc * g.in_c + ic), 9 * g.in_c,
                                  lanes, out, step);
            }
        }
    }
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    const int64_t blocks = tgi_ceil_div64(ctx->dst[0].dim[1], TGI_L), units = units_of(lay);
    (void)width;
    const int64_t batch = batch_of(units, blocks);
    return sizeof(float) * POINTS * (size_t)(is_shared(units, blocks) ? 1 : threads) *
           (point_floats(units, batch) + point_floats(blocks, batch));
}

/* Blocks are counted from the one that holds pixel `phase` as its first, which is number 0 up
 * to a multiple of the block. */
static int64_t block_of(int64_t pixel, int64_t phase)
{
    return tgi_floor_div64(pixel - phase % OUT, OUT);
}
static int64_t block_start(int64_t block, int64_t phase)
{
    return block * OUT + phase % OUT;
}

/* The transforms weigh on few channels. Measured with bench_op against conv_direct, AVX-512 and
 * AVX2: 0.64 to 0.66 at 16 channels, 0.33 to 0.41 at 32, 0.30 to 0.36 from 64 on; 0.53 at 512,
 * where U comes from memory for a few blocks. */
static double cost(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const double far = packed_bytes(ctx, lay) > (size_t)MEMORY_BYTES ? 0.25 : 0;
    return 0.28 + far + 2.8 / (double)ctx->src[0].dim[1] + 2.8 / (double)ctx->dst[0].dim[1];
}

/* Whole blocks: what any of their pixels reads. */
static int slide(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    tgi_geom g;
    *out = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i == 0 && axis >= TGI_Y && tgi_conv_geometry(ctx, &g, NULL) == TG_OK)
        *out = (tgi_slide){.num = 1,
                           .den = 1,
                           .lo = -g.p0[axis],
                           .hi = PATCH - 1 - g.p0[axis],
                           .block = OUT,
                           .phase = ctx->phase};
    return 1;
}

/* ---- Transforms -------------------------------------------------------------------------- */

/* B' a for the six values a, which are read before o is written. */
TGI_INLINE void source_line(vf o[PATCH], vf a0, vf a1, vf a2, vf a3, vf a4, vf a5)
{
    const vf four = vf_set1(4.0f), minus4 = vf_set1(-4.0f), minus5 = vf_set1(-5.0f);
    const vf two = vf_set1(2.0f);
    const vf p = vf_fma(minus4, a2, a4), q = vf_fma(minus4, a1, a3);
    const vf r = a4 - a2, s = two * (a3 - a1);
    o[0] = vf_fma(four, a0, vf_fma(minus5, a2, a4));
    o[1] = p + q;
    o[2] = p - q;
    o[3] = r + s;
    o[4] = r - s;
    o[5] = vf_fma(four, a1, vf_fma(minus5, a3, a5));
}

/* A' a. */
TGI_INLINE void result_line(vf o[OUT], vf a0, vf a1, vf a2, vf a3, vf a4, vf a5)
{
    const vf p = a1 + a2, q = a1 - a2, r = a3 + a4, s = a3 - a4;
    o[0] = (a0 + p) + r;
    o[1] = vf_fma(vf_set1(2.0f), s, q);
    o[2] = vf_fma(vf_set1(4.0f), r, p);
    o[3] = vf_fma(vf_set1(8.0f), s, q) + a5;
}

/* The patch at rows row[i]. Of a doubled source two columns in turn are the same stored one;
 * `odd`: the patch begins with the second of two. Both are literals. */
TGI_INLINE void source_patch(const float *const row[PATCH], float *v, size_t point,
                             const int doubled, const int odd)
{
    vf e[PATCH][PATCH]; /* [column][transformed row] */
    TGI_UNROLL
    for (int j = 0; j < PATCH; j++) {
        const int at = (doubled ? (j + odd) / 2 : j) * TGI_L;
        source_line(e[j], vf_load(row[0] + at), vf_load(row[1] + at), vf_load(row[2] + at),
                    vf_load(row[3] + at), vf_load(row[4] + at), vf_load(row[5] + at));
    }
    TGI_UNROLL
    for (int i = 0; i < PATCH; i++) {
        vf o[PATCH];
        source_line(o, e[0][i], e[1][i], e[2][i], e[3][i], e[4][i], e[5][i]);
        TGI_UNROLL
        for (int j = 0; j < PATCH; j++)
            vf_store(v + (size_t)(i * PATCH + j) * point, o[j]);
    }
}

/* n patches of a row of blocks. Each form is a function of its own: the registers of one would
 * else be short in the others. */
#define DEFINE_SOURCE(name, doubled, odd)                                                      \
    static __attribute__((noinline)) void name(const float *row[PATCH],                        \
                                               const ptrdiff_t step[PATCH], float *v,          \
                                               size_t point, int64_t n)                        \
    {                                                                                          \
        for (int64_t t = 0; t < n; t++, v += TGI_L) {                                          \
            source_patch(row, v, point, doubled, odd);                                         \
            for (int i = 0; i < PATCH; i++)                                                    \
                row[i] += step[i];                                                             \
        }                                                                                      \
    }
DEFINE_SOURCE(source_plain, 0, 0)
DEFINE_SOURCE(source_even, 1, 0)
DEFINE_SOURCE(source_odd, 1, 1)

static void source_stretch(const wino *w, const stretch *s, int64_t unit, float *v,
                           size_t point)
{
    static const float outside[PATCH * TGI_L];
    const tgi_operand *src = &w->call->src[0];
    const tgi_unit u = TGS(tgi_unit_at)(TGI_L, src->n_seg, w->seg_c, unit);
    const tgi_view *view = &src->seg[u.seg];
    const int half = view->doubled ? 2 : 1;
    const int64_t x0 = block_start(s->bx, w->phase) - w->g.p0[TGI_X];
    const int64_t x = tgi_floor_div64(x0, half) - view->x0;
    const int odd = view->doubled && x0 % 2 != 0;
    const float *row[PATCH];
    ptrdiff_t step[PATCH];
    for (int i = 0; i < PATCH; i++) {
        const int64_t y = block_start(s->by, w->phase) - w->g.p0[TGI_Y] + i;
        const int inside = y >= 0 && y < w->g.in[TGI_Y];
        row[i] = inside ? tgi_view_row(view, u.block, 0, y / half) + x * TGI_L : outside;
        step[i] = inside ? OUT / half * TGI_L : 0;
    }
    v += s->at * TGI_L;
    if (!view->doubled)
        source_plain(row, step, v, point, s->n);
    else if (odd)
        source_odd(row, step, v, point, s->n);
    else
        source_even(row, step, v, point, s->n);
}

/* The 4x4 pixels of one block, row by row in o. */
TGI_INLINE void result_block(const float *m, size_t point, vf bias, vf floor, vf o[OUT][OUT])
{
    vf e[PATCH][OUT]; /* [column][row] */
    TGI_UNROLL
    for (int j = 0; j < PATCH; j++)
        result_line(e[j], vf_load(m + (size_t)j * point),
                    vf_load(m + (size_t)(PATCH + j) * point),
                    vf_load(m + (size_t)(2 * PATCH + j) * point),
                    vf_load(m + (size_t)(3 * PATCH + j) * point),
                    vf_load(m + (size_t)(4 * PATCH + j) * point),
                    vf_load(m + (size_t)(5 * PATCH + j) * point));
    TGI_UNROLL
    for (int i = 0; i < OUT; i++) {
        result_line(o[i], e[0][i], e[1][i], e[2][i], e[3][i], e[4][i], e[5][i]);
        TGI_UNROLL
        for (int j = 0; j < OUT; j++)
            o[i][j] = vf_max(floor, o[i][j] + bias);
    }
}

static void result_stretch(const wino *w, const stretch *s, int64_t block, const float *m,
                           size_t point)
{
    const tgi_view *dst = &w->call->dst[0];
    const vf bias = vf_load(w->bias + block * TGI_L);
    const vf floor = w->relu ? vf_zero() : vf_set1(-INFINITY);
    const int64_t y0 = block_start(s->by, w->phase);
    const int64_t i0 = tgi_max64(w->y.lo - y0, 0), i1 = tgi_min64(w->y.hi - y0, OUT);
    float *row[OUT];
    for (int64_t i = 0; i < OUT; i++) /* rows outside the box are not written */
        row[i] = tgi_view_row(dst, block, 0, y0 + tgi_max64(i0, tgi_min64(i, i1 - 1))) -
                 dst->x0 * TGI_L;
    for (int64_t t = 0; t < s->n; t++) {
        vf o[OUT][OUT];
        result_block(m + (s->at + t) * TGI_L, point, bias, floor, o);
        const int64_t x0 = block_start(s->bx + t, w->phase);
        if (x0 >= w->x.lo && x0 + OUT <= w->x.hi && i1 - i0 == OUT) {
            TGI_UNROLL
            for (int i = 0; i < OUT; i++) {
                TGI_UNROLL
                for (int j = 0; j < OUT; j++)
                    vf_store(row[i] + (x0 + j) * TGI_L, o[i][j]);
            }
            continue;
        }
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = 0; j < OUT; j++)
                if (x0 + j >= w->x.lo && x0 + j < w->x.hi)
                    vf_store(row[i] + (x0 + j) * TGI_L, o[i][j]);
    }
    for (int64_t i = i0; i < i1; i++) {
        const tgi_row_part part = {block,
                                   block + 1,
                                   0,
                                   y0 + i,
                                   tgi_max64(block_start(s->bx, w->phase), w->x.lo),
                                   tgi_min64(block_start(s->bx + s->n, w->phase), w->x.hi)};
        TGS(tgi_epilogue_part)(w->call, w->relu, &part);
    }
}

/* ---- Running ----------------------------------------------------------------------------- */

/* M of one point and one group of output blocks: a 1x1 convolution over the batch. */
static void multiply(const wino *w, int64_t p, int64_t group, int64_t n, const float *v,
                     float *m)
{
    static const float zero[TILE_OB_MAX * TGI_L];
    const int ob = tile_group_size(w->blocks, group);
    const int64_t first = tile_group_first(w->blocks, group);
    const tgi_operand *src = &w->call->src[0];
    const float *u = w->weights + (size_t)((p * w->blocks + first) * w->units) * TGI_L * TGI_L;
    const float *vp = v + (size_t)p * w->v_point;
    tap_row rows[TGI_MAX_SEG * 32];
    int64_t done = 0;
    while (done < w->units) {
        const int64_t most = (int64_t)(sizeof rows / sizeof rows[0]);
        const int64_t count = tgi_min64(w->units - done, most);
        for (int64_t i = 0; i < count; i++)
            rows[i] = (tap_row){
                .src = vp + (done + i) * w->batch * TGI_L,
                .w = u + (done + i) * TGI_L * ob * TGI_L,
                .lanes = TGS(tgi_unit_at)(TGI_L, src->n_seg, w->seg_c, done + i).lanes};
        const tile_job j = {.rows = rows,
                            .ahead = TILE_AHEAD,
                            .n_rows = (int)count,
                            .n_kx = 1,
                            .src_step = TGI_L,
                            .bias = done ? NULL : zero,
                            .dst =
                                m + (size_t)p * w->m_point + (size_t)(first * w->batch) * TGI_L,
                            .dst_block = (size_t)(w->batch * TGI_L),
                            .dst_step = TGI_L,
                            .n = n};
        TGS(tgi_conv_part)(&j, ob, 0);
        done += count;
    }
}

/* The stretch of the batch [from,to) that begins at block `at`. */
static stretch stretch_at(const wino *w, int64_t from, int64_t at, int64_t to)
{
    const int64_t col = at % w->per_row;
    return (stretch){.at = at - from,
                     .by = w->by + at / w->per_row,
                     .bx = w->bx + col,
                     .n = tgi_min64(to - at, w->per_row - col)};
}

/* The three steps for one unit, point or block of the batch [from,to). */
static void source_unit(const wino *w, int64_t unit, tgi_range batch, float *v)
{
    for (int64_t at = batch.lo; at < batch.hi;) {
        const stretch s = stretch_at(w, batch.lo, at, batch.hi);
        source_stretch(w, &s, unit, v + unit * w->batch * TGI_L, w->v_point);
        at += s.n;
    }
}

static void result_of(const wino *w, int64_t block, tgi_range batch, const float *m)
{
    for (int64_t at = batch.lo; at < batch.hi;) {
        const stretch s = stretch_at(w, batch.lo, at, batch.hi);
        result_stretch(w, &s, block, m + block * w->batch * TGI_L, w->m_point);
        at += s.n;
    }
}

/* A batch on one thread. */
static void run_batch(void *arg, int64_t job, int thread)
{
    const wino *w = arg;
    float *v = w->v + (size_t)thread * POINTS * (w->v_point + w->m_point);
    float *m = v + POINTS * w->v_point;
    const tgi_range batch = {job * w->batch, tgi_min64((job + 1) * w->batch, w->total)};
    for (int64_t u = 0; u < w->units; u++)
        source_unit(w, u, batch, v);
    for (int64_t p = 0; p < POINTS; p++)
        for (int64_t g = 0; g < tile_group_count(w->blocks); g++)
            multiply(w, p, g, batch.hi - batch.lo, v, m);
    for (int64_t b = 0; b < w->blocks; b++)
        result_of(w, b, batch, m);
}

/* A batch on all threads. */
static void shared_source(void *arg, int64_t job, int thread)
{
    const wino *w = arg;
    (void)thread;
    source_unit(w, job, w->shared, w->v);
}
static void shared_multiply(void *arg, int64_t job, int thread)
{
    const wino *w = arg;
    const int64_t groups = tile_group_count(w->blocks);
    (void)thread;
    multiply(w, job / groups, job % groups, w->shared.hi - w->shared.lo, w->v,
             w->v + POINTS * w->v_point);
}
static void shared_result(void *arg, int64_t job, int thread)
{
    const wino *w = arg;
    (void)thread;
    result_of(w, job, w->shared, w->v + POINTS * w->v_point);
}

/* A batch of at most the usual size, such that few batches are shared out evenly. */
static int64_t even_batch(const wino *w, int threads)
{
    const int64_t most = batch_of(w->units, w->blocks);
    int64_t jobs = tgi_ceil_div64(w->total, most);
    if (jobs < 4 * threads)
        jobs = tgi_ceil_div64(jobs, threads) * threads;
    return tgi_ceil_div64(w->total, jobs);
}

static void run(const tgi_call *call)
{
    wino w = {.call = call};
    if (tgi_box_empty(&call->box) || tgi_conv_geometry(call->ctx, &w.g, NULL) != TG_OK)
        return;
    const tgi_operand *src = &call->src[0];
    for (int s = 0; s < src->n_seg; s++)
        w.seg_c[s] = src->seg[s].c;
    w.units = TGS(tgi_unit_count)(TGI_L, src->n_seg, w.seg_c);
    w.blocks = tgi_view_blocks(&call->dst[0]);
    w.bias = call->packed;
    w.weights = w.bias + w.blocks * TGI_L;
    w.y = tgi_box_axis(&call->box, TGI_Y);
    w.x = tgi_box_axis(&call->box, TGI_X);
    w.phase = call->ctx->phase;
    w.by = block_of(w.y.lo, w.phase);
    w.bx = block_of(w.x.lo, w.phase);
    w.per_row = block_of(w.x.hi - 1, w.phase) + 1 - w.bx;
    w.total = w.per_row * (block_of(w.y.hi - 1, w.phase) + 1 - w.by);
    w.batch = is_shared(w.units, w.blocks) ? BATCH_MAX
                                           : even_batch(&w, tgi_threads_count(call->threads));
    w.v = call->scratch;
    w.v_point = point_floats(w.units, w.batch);
    w.m_point = point_floats(w.blocks, w.batch);
    w.relu = call->n_epi && call->epi[0].kind == TGI_EPI_RELU;
    if (!is_shared(w.units, w.blocks)) {
        tgi_parallel(call->threads, tgi_ceil_div64(w.total, w.batch), run_batch, &w);
        return;
    }
    for (int64_t at = 0; at < w.total; at += w.batch) {
        w.shared = (tgi_range){at, tgi_min64(at + w.batch, w.total)};
        tgi_parallel(call->threads, w.units, shared_source, &w);
        tgi_parallel(call->threads, POINTS * tile_group_count(w.blocks), shared_multiply, &w);
        tgi_parallel(call->threads, w.blocks, shared_result, &w);
    }
}

const tgi_variant TGS(tgi_conv_winograd) = {.name = "conv_winograd",
                                            .op = "Conv",
                                            .rearranges = 1,
                                            .reads_doubled = 1,
                                            .work = TGI_WORK_CONV_CLASSES,
                                            .accepts = accepts,
                                            .packed_bytes = packed_bytes,
                                            .pack = pack,
                                            .scratch_bytes = scratch_bytes,
                                            .cost = cost,
                                            .slide = slide,
                                            .run = TGI_RUN(run)};
