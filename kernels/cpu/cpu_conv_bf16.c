/* cpu_conv_bf16.c - convolutions, plain and transposed, with products of bfloat16 numbers and
 * float32 sums: twice the multiply-adds of float32 per instruction, half the bytes of weights.
 *
 * Activations stay float32 in memory. A job (some rows x some columns x output groups) first
 * converts the source that it reads, its *window*, into bfloat16 pairs in scratch: two
 * neighbouring channels of a pixel are one 32-bit word, as the dot product wants them. That is
 * one conversion for all taps and all output channels. Rows and columns outside the image are
 * zero in the window, so every pixel sums the same list of taps.
 *
 * The list of taps is taken a chunk of some 24 KiB of weights at a time, and the chunk serves
 * all pixels of the job before the next comes: weights come from the first-level cache, float32
 * sums wait in dst.
 *
 * ORDER OF A SUM: bias, then unit, kz, ky, kx, pair of channels, whatever box, job or thread; a
 * pair is one VDPBF16PS (which rounds to nearest even and flushes denormals). Both operands are
 * rounded to nearest even. Relative error per layer: about 2e-3 (L2), from 8-bit significands.
 *
 * A transposed convolution with stride s has s phases of output rows and columns, each a
 * convolution with stride 1 and its own taps: base_of, phase_of and tap_offset say which.
 *
 * Packed weights: bias [blocks][TGI_L] float32, then for each group of output blocks
 * [unit][kz][ky][kx][pair][ob][TGI_L] words.
 *
 * @source Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS,
 * VCVTNE2PS2BF16. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/cpu_conv_tile.h"

#include <immintrin.h>
#include <math.h>

#define PAIRS (TGI_L / 2)                   /* words of a pixel of one unit */
#define CHUNK_WORDS (48 * PAIRS * TGI_L)    /* weights that stay in the first-level cache */
#define CHUNK_TAPS 48                       /* so many at most: one block wide */
#define WINDOW_BYTES ((int64_t)256 << 10)   /* converted source of a job */
#define WINDOW_BYTES_MAX ((int64_t)1 << 20) /* where even the smallest job reads more */
#define ROWS_MAX 16
#define AHEAD (24 * TGI_L) /* floats that the conversion asks for beforehand: measured */

typedef uint32_t pair; /* two bfloat16: the even channel in the low half */

/* What follows from shapes alone. */
typedef struct shape {
    tgi_geom g;
    int transposed;
    int64_t units, blocks;
} shape;

typedef struct conv {
    const tgi_call *call;
    shape s;
    int64_t seg_c[TGI_MAX_SEG];
    int64_t taps, groups; /* taps of a unit */
    const float *bias;
    const pair *weights;
    tgi_range z, y, x;                      /* of the box */
    int64_t rows, cols, groups_together;    /* of a job */
    int64_t row_jobs, col_jobs, group_jobs; /* jobs along each */
    pair *scratch;
    size_t scratch_words; /* of a thread */
} conv;

/* Converted source [unit][plane][row][column][PAIRS] of a box of the source. */
typedef struct window {
    tgi_range z, y, x;
    pair *p;
    ptrdiff_t unit, plane, row; /* pitches, in words */
} window;

typedef struct tap {
    ptrdiff_t at;  /* words from the window's place of the output pixel */
    const pair *w; /* [pair][ob][TGI_L] */
    int pairs;     /* that exist */
} tap;

/* A row of output pixels `dst_step` floats apart, whose sources are `src_step` words apart. */
typedef struct part {
    const tap *taps;
    int n_taps;
    const pair *src;
    ptrdiff_t src_step;
    const float *bias; /* [ob][TGI_L], or NULL: go on from the sums in dst */
    float *dst;
    size_t dst_block;
    ptrdiff_t dst_step;
    int64_t n;
    int relu; /* the sums are complete and a ReLU comes next: done before the store */
} part;

/* ---- The tile ---------------------------------------------------------------------------- */

TGI_INLINE vf dot(vf acc, vi a, vi b)
{
    return (vf)_mm512_dpbf16_ps((__m512)acc, (__m512bh)a, (__m512bh)b);
}

TGI_INLINE vi load_words(const pair *p)
{
    return (vi)_mm512_loadu_si512(p);
}

TGI_INLINE void tile_tap(vf *acc, const pair *x, const pair *w, int pairs, const int ob,
                         const int px, const ptrdiff_t step)
{
    TGI_UNROLL_4
    for (int c = 0; c < pairs; c++) {
        vi wv[TILE_OB_MAX];
        TGI_UNROLL
        for (int q = 0; q < ob; q++)
            wv[q] = load_words(w + (c * ob + q) * TGI_L);
        TGI_UNROLL
        for (int p = 0; p < px; p++) {
            const vi xv = (vi)_mm512_set1_epi32((int)x[p * step + c]);
            TGI_UNROLL
            for (int q = 0; q < ob; q++)
                acc[p * ob + q] = dot(acc[p * ob + q], wv[q], xv);
        }
    }
}

/* px pixels from `at`, ob blocks. ob, px and a non-zero fixed_step are literals. */
TGI_INLINE void tile(const part *j, int64_t at, const int ob, const int px,
                     const ptrdiff_t fixed_step)
{
    const ptrdiff_t step = fixed_step ? fixed_step : j->src_step;
    const pair *src = j->src + at * step;
    float *dst = j->dst + at * j->dst_step;
    vf acc[TILE_SUMS_MAX];
    TGI_UNROLL
    for (int p = 0; p < px; p++) {
        TGI_UNROLL
        for (int q = 0; q < ob; q++)
            acc[p * ob + q] = j->bias ? vf_load(j->bias + q * TGI_L)
                                      : vf_load(dst + q * j->dst_block + p * j->dst_step);
    }
    if (j->bias) { /* the next tile's results: they will be written, and nothing fetches them */
        TGI_UNROLL
        for (int p = 0; p < px; p++) {
            TGI_UNROLL
            for (int q = 0; q < ob; q++)
                __builtin_prefetch(dst + q * j->dst_block + (px + p) * j->dst_step, 1);
        }
    }
    for (int t = 0; t < j->n_taps; t++) {
        const tap *k = &j->taps[t];
        if (k->pairs == PAIRS)
            tile_tap(acc, src + k->at, k->w, PAIRS, ob, px, step);
        else
            tile_tap(acc, src + k->at, k->w, k->pairs, ob, px, step);
    }
    const vf floor = j->relu ? vf_zero() : vf_set1(-INFINITY);
    TGI_UNROLL
    for (int p = 0; p < px; p++) {
        TGI_UNROLL
        for (int q = 0; q < ob; q++)
            vf_store(dst + q * j->dst_block + p * j->dst_step, vf_max(floor, acc[p * ob + q]));
    }
}

#define TILE_CASE(px_, ob, step)                                                               \
    case px_:                                                                                  \
        if (px_ <= TILE_PX(ob))                                                                \
            tile(j, at, ob, px_ <= TILE_PX(ob) ? px_ : 1, step);                               \
        break;
/* Cut the row into tiles of at most TILE_PX pixels, the last two of even size. */
#define DEFINE_PART(name, ob, step)                                                            \
    static void name(const part *j)                                                            \
    {                                                                                          \
        int px = 0;                                                                            \
        for (int64_t at = 0; at < j->n; at += px) {                                            \
            const int64_t left = j->n - at, most = TILE_PX(ob);                                \
            px = (int)(left <= most ? left : left >= 2 * most ? most : (left + 1) / 2);        \
            switch (px) {                                                                      \
                TILE_CASE(1, ob, step)                                                         \
                TILE_CASE(2, ob, step)                                                         \
                TILE_CASE(3, ob, step)                                                         \
                TILE_CASE(4, ob, step)                                                         \
                TILE_CASE(5, ob, step)                                                         \
                TILE_CASE(6, ob, step)                                                         \
                TILE_CASE(7, ob, step)                                                         \
                TILE_CASE(8, ob, step)                                                         \
                TILE_CASE(9, ob, step)                                                         \
                TILE_CASE(10, ob, step)                                                        \
                TILE_CASE(11, ob, step)                                                        \
                TILE_CASE(12, ob, step)                                                        \
                TILE_CASE(13, ob, step)                                                        \
                TILE_CASE(14, ob, step)                                                        \
            }                                                                                  \
        }                                                                                      \
    }
DEFINE_PART(part_1, 1, PAIRS)
DEFINE_PART(part_2, 2, PAIRS)
DEFINE_PART(part_3, 3, PAIRS)
DEFINE_PART(part_4, 4, PAIRS)
DEFINE_PART(part_1_step, 1, 0)
DEFINE_PART(part_2_step, 2, 0)
DEFINE_PART(part_3_step, 3, 0)
DEFINE_PART(part_4_step, 4, 0)

static void run_part(const part *j, int ob)
{
    static void (*const table[TILE_OB_MAX][2])(const part *) = {{part_1, part_1_step},
                                                                {part_2, part_2_step},
                                                                {part_3, part_3_step},
                                                                {part_4, part_4_step}};
    table[ob - 1][j->src_step != PAIRS](j);
}

/* ---- Where a pixel reads ----------------------------------------------------------------- */

/* Output coordinate o of an axis stands at base_of in the source; tap k reads tap_offset from
 * there. Transposed: only the taps that meet o's phase exist. */
static int64_t base_of(const shape *s, int axis, int64_t o)
{
    const int64_t p = s->g.p0[axis], step = s->g.s[axis];
    return s->transposed ? tgi_floor_div64(o + p, step) : o * step - p;
}
static int64_t phases_of(const shape *s, int axis)
{
    return s->transposed ? s->g.s[axis] : 1;
}
static int64_t phase_of(const shape *s, int axis, int64_t o)
{
    return s->transposed ? o + s->g.p0[axis] - base_of(s, axis, o) * s->g.s[axis] : 0;
}
static int tap_offset(const shape *s, int axis, int64_t phase, int64_t k, int64_t *offset)
{
    const int64_t t = phase - k * s->g.d[axis];
    *offset = s->transposed ? t / s->g.s[axis] : k * s->g.d[axis];
    return !s->transposed || t % s->g.s[axis] == 0;
}

/* Source coordinates of output coordinates [o.lo,o.hi). */
static tgi_range source_of(const shape *s, int axis, tgi_range o)
{
    const int64_t reach = (s->g.k[axis] - 1) * s->g.d[axis];
    tgi_range r = {base_of(s, axis, o.lo), base_of(s, axis, o.hi - 1) + 1};
    if (s->transposed)
        r.lo -= tgi_ceil_div64(reach, s->g.s[axis]);
    else
        r.hi += reach;
    return r;
}

/* Most coordinates that source_of gives for n output coordinates. */
static int64_t source_len(const shape *s, int axis, int64_t n)
{
    const int64_t reach = (s->g.k[axis] - 1) * s->g.d[axis], step = s->g.s[axis];
    return s->transposed ? tgi_ceil_div64(n - 1, step) + 1 + tgi_ceil_div64(reach, step)
                         : (n - 1) * step + 1 + reach;
}

static int64_t window_bytes(const shape *s, int64_t rows, int64_t cols)
{
    return source_len(s, TGI_Z, 1) * source_len(s, TGI_Y, rows) * source_len(s, TGI_X, cols) *
           s->units * PAIRS * (int64_t)sizeof(pair);
}

/* Bytes of a thread's window: the usual size, or what one tile of one row takes. */
static int64_t window_room(const shape *s)
{
    const int64_t least = window_bytes(s, 1, TILE_PX(2) * phases_of(s, TGI_X));
    return tgi_max64(WINDOW_BYTES, (least + 63) / 64 * 64);
}

/* ---- Choice and packing ------------------------------------------------------------------ */

static tg_status shape_of(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed,
                          shape *s)
{
    s->transposed = transposed;
    TGI_TRY(transposed ? tgi_conv_transpose_geometry(ctx, &s->g, NULL)
                       : tgi_conv_geometry(ctx, &s->g, NULL));
    s->units = TGS(tgi_unit_count)(TGI_L, lay->src_segs[0], lay->seg_c[0]);
    s->blocks = tgi_ceil_div64(s->g.out_c, TGI_L);
    return TG_OK;
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed)
{
    shape s;
    return (lay->kinds & TGI_KIND_BF16) && lay->lanes == TGI_L && lay->dst_cb == TGI_L &&
           lay->src_cb[0] == TGI_L && tgi_is_const_f32(ctx, 1) &&
           (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           shape_of(ctx, lay, transposed, &s) == TG_OK && s.g.groups == 1 &&
           window_room(&s) <= WINDOW_BYTES_MAX;
}

static int64_t taps_of(const tgi_geom *g)
{
    return g->k[TGI_Z] * g->k[TGI_Y] * g->k[TGI_X];
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed)
{
    shape s;
    if (shape_of(ctx, lay, transposed, &s) != TG_OK)
        return 0; /* `accepts` said no */
    return sizeof(pair) * (size_t)(s.blocks * TGI_L * (1 + s.units * taps_of(&s.g) * PAIRS));
}

/* Round to nearest even; NaN stays NaN. */
static pair bf16_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if (x != x)
        return (u >> 16) | 0x40;
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

/* Weight of one tap; 0 where a channel does not exist. */
static pair weight_at(const shape *s, const tgi_unit *u, int64_t lane, int64_t oc, int64_t at,
                      const void *w)
{
    const int64_t ic = u->channel + lane;
    if (lane >= u->lanes || oc >= s->g.out_c)
        return 0;
    const int64_t channels = s->transposed ? ic * s->g.out_c + oc : oc * s->g.in_c + ic;
    return bf16_of(tgi_const_at(w, channels * taps_of(&s->g) + at));
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed, void *dst)
{
    shape s;
    if (shape_of(ctx, lay, transposed, &s) != TG_OK)
        return; /* `accepts` said no */
    const void *bias = tgi_is_absent(ctx, 2) ? NULL : ctx->const_src[2]->data;
    const int64_t taps = taps_of(&s.g);
    float *b = dst;
    for (int64_t i = 0; i < s.blocks * TGI_L; i++)
        *b++ = bias && i < s.g.out_c ? tgi_const_at(bias, i) : 0.0f;
    pair *out = (pair *)(void *)b;
    for (int64_t k = 0; k < tile_group_count(s.blocks); k++) {
        const int64_t wide = tile_group_size(s.blocks, k) * TGI_L;
        for (int64_t t = 0; t < s.units * taps; t++) {
            const tgi_unit u =
                TGS(tgi_unit_at)(TGI_L, lay->src_segs[0], lay->seg_c[0], t / taps);
            for (int64_t i = 0; i < PAIRS * wide; i++) {
                const int64_t lane = i / wide * 2,
                              oc = tile_group_first(s.blocks, k) * TGI_L + i % wide;
                *out++ = weight_at(&s, &u, lane, oc, t % taps, ctx->const_src[1]->data) |
                         weight_at(&s, &u, lane + 1, oc, t % taps, ctx->const_src[1]->data)
                             << 16;
            }
        }
    }
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed,
                            int threads)
{
    shape s;
    if (shape_of(ctx, lay, transposed, &s) != TG_OK)
        return 0; /* `accepts` said no */
    return (size_t)threads * (size_t)window_room(&s);
}

/* ---- Conversion -------------------------------------------------------------------------- */

static void convert_row(const float *src, int64_t n, pair *dst)
{
    int64_t i = 0;
    for (; i + 2 <= n; i += 2, src += 2 * TGI_L, dst += 2 * PAIRS) {
        __builtin_prefetch(src + AHEAD);
        __builtin_prefetch(src + AHEAD + TGI_L);
        _mm512_storeu_si512(dst, (__m512i)_mm512_cvtne2ps_pbh((__m512)vf_load(src + TGI_L),
                                                              (__m512)vf_load(src)));
    }
    if (i < n)
        _mm256_storeu_si256((__m256i *)(void *)dst,
                            (__m256i)_mm512_cvtneps_pbh((__m512)vf_load(src)));
}

/* Row y of the window, of columns that the view stores; zero elsewhere. */
static void fill_row(const tgi_view *v, const window *w, const float *src, pair *dst)
{
    const int64_t lo = tgi_max64(w->x.lo, v->x0), hi = tgi_min64(w->x.hi, v->x0 + v->width);
    if (!src || lo >= hi) {
        memset(dst, 0, (size_t)w->row * sizeof *dst);
        return;
    }
    memset(dst, 0, (size_t)((lo - w->x.lo) * PAIRS) * sizeof *dst);
    convert_row(src + (lo - v->x0) * TGI_L, hi - lo, dst + (lo - w->x.lo) * PAIRS);
    memset(dst + (hi - w->x.lo) * PAIRS, 0, (size_t)((w->x.hi - hi) * PAIRS) * sizeof *dst);
}

/* The same of a doubled source, where two columns in turn are the same stored one. */
static void fill_doubled(const tgi_view *v, const window *w, const float *src, pair *dst)
{
    for (int64_t x = w->x.lo; x < w->x.hi; x++, dst += PAIRS) {
        const int64_t at = tgi_floor_div64(x, 2) - v->x0;
        if (src && at >= 0 && at < v->width)
            convert_row(src + at * TGI_L, 1, dst);
        else
            memset(dst, 0, PAIRS * sizeof *dst);
    }
}

static void fill_window(const conv *c, window *w)
{
    const tgi_geom *g = &c->s.g;
    const tgi_operand *src = &c->call->src[0];
    w->row = tgi_range_len(w->x) * PAIRS;
    w->plane = tgi_range_len(w->y) * w->row;
    w->unit = tgi_range_len(w->z) * w->plane;
    pair *dst = w->p;
    for (int64_t i = 0; i < c->s.units; i++) {
        const tgi_unit u = TGS(tgi_unit_at)(TGI_L, src->n_seg, c->seg_c, i);
        const tgi_view *v = &src->seg[u.seg];
        for (int64_t z = w->z.lo; z < w->z.hi; z++)
            for (int64_t y = w->y.lo; y < w->y.hi; y++, dst += w->row) {
                const int inside = z >= 0 && z < g->in[TGI_Z] && y >= 0 && y < g->in[TGI_Y];
                const int64_t row = v->doubled ? y / 2 : y;
                const float *at = inside ? tgi_view_row(v, u.block, z, row) : NULL;
                if (v->doubled)
                    fill_doubled(v, w, at, dst);
                else
                    fill_row(v, w, at, dst);
            }
    }
}

/* ---- Running ----------------------------------------------------------------------------- */

/* The next taps of a group from number *t on, at most `most`, that meet the phase. */
static int list_taps(const conv *c, const window *w, int64_t group, const int64_t phase[3],
                     int most, int64_t *t, tap *taps)
{
    const int64_t kx = c->s.g.k[TGI_X], ky = c->s.g.k[TGI_Y];
    const int64_t ob = tile_group_size(c->s.blocks, group), words = PAIRS * ob * TGI_L;
    const pair *weights = c->weights + tile_group_first(c->s.blocks, group) * c->s.units *
                                           c->taps * (PAIRS * TGI_L);
    const tgi_operand *src = &c->call->src[0];
    int n = 0;
    for (; *t < c->s.units * c->taps && n < most; ++*t) {
        const int64_t i = *t % c->taps;
        int64_t z, y, x;
        if (!tap_offset(&c->s, TGI_X, phase[TGI_X], i % kx, &x) ||
            !tap_offset(&c->s, TGI_Y, phase[TGI_Y], i / kx % ky, &y) ||
            !tap_offset(&c->s, TGI_Z, phase[TGI_Z], i / kx / ky, &z))
            continue;
        const tgi_unit u = TGS(tgi_unit_at)(TGI_L, src->n_seg, c->seg_c, *t / c->taps);
        taps[n++] = (tap){.at = *t / c->taps * w->unit + z * w->plane + y * w->row + x * PAIRS,
                          .w = weights + *t * words,
                          .pairs = (u.lanes + 1) / 2};
    }
    return n;
}

/* First coordinate >= lo of a phase. */
static int64_t first_of(const shape *s, int axis, int64_t lo, int64_t phase)
{
    const int64_t n = phases_of(s, axis);
    return lo + ((phase - phase_of(s, axis, lo)) % n + n) % n;
}

/* The pixels of one phase, for one group of output blocks. */
static void run_phase(const conv *c, const window *w, int64_t group, const int64_t phase[3],
                      int64_t z, tgi_range y, tgi_range x)
{
    const tgi_view *dst = &c->call->dst[0];
    const shape *s = &c->s;
    const int ob = tile_group_size(s->blocks, group);
    const int64_t block = tile_group_first(s->blocks, group), up = phases_of(s, TGI_X);
    const int64_t y0 = first_of(s, TGI_Y, y.lo, phase[TGI_Y]);
    const int64_t x0 = first_of(s, TGI_X, x.lo, phase[TGI_X]);
    if (x0 >= x.hi)
        return;
    const pair *src = w->p + (base_of(s, TGI_Z, z) - w->z.lo) * w->plane +
                      (base_of(s, TGI_X, x0) - w->x.lo) * PAIRS;
    tap taps[CHUNK_TAPS];
    part j = {.taps = taps,
              .bias = c->bias + block * TGI_L,
              .src_step = (s->transposed ? 1 : s->g.s[TGI_X]) * PAIRS,
              .dst_block = dst->block_pitch,
              .dst_step = up * TGI_L,
              .n = tgi_ceil_div64(x.hi - x0, up)};
    for (int64_t t = 0; t < s->units * c->taps; j.bias = NULL) {
        j.n_taps = list_taps(c, w, group, phase, CHUNK_WORDS / (PAIRS * TGI_L) / ob, &t, taps);
        j.relu =
            t >= s->units * c->taps && c->call->n_epi && c->call->epi[0].kind == TGI_EPI_RELU;
        for (int64_t row = y0; row < y.hi; row += phases_of(s, TGI_Y)) {
            j.src = src + (base_of(s, TGI_Y, row) - w->y.lo) * w->row;
            j.dst = tgi_view_row(dst, block, z, row) + (x0 - dst->x0) * TGI_L;
            run_part(&j, ob);
        }
    }
}

static void run_group(const conv *c, const window *w, int64_t group, int64_t z, tgi_range y,
                      tgi_range x)
{
    const int64_t first = tile_group_first(c->s.blocks, group);
    const int relu = c->call->n_epi && c->call->epi[0].kind == TGI_EPI_RELU;
    int64_t phase[3] = {phase_of(&c->s, TGI_Z, z), 0, 0};
    for (phase[TGI_Y] = 0; phase[TGI_Y] < phases_of(&c->s, TGI_Y); phase[TGI_Y]++)
        for (phase[TGI_X] = 0; phase[TGI_X] < phases_of(&c->s, TGI_X); phase[TGI_X]++)
            run_phase(c, w, group, phase, z, y, x);
    for (int64_t row = y.lo; row < y.hi; row++) {
        const tgi_row_part done = {
            first, first + tile_group_size(c->s.blocks, group), z, row, x.lo, x.hi};
        TGS(tgi_epilogue_part)(c->call, relu, &done);
    }
}

static void run_job(void *arg, int64_t job, int thread)
{
    const conv *c = arg;
    const int64_t g0 = job % c->group_jobs * c->groups_together;
    const int64_t col = job / c->group_jobs % c->col_jobs;
    const int64_t line = job / c->group_jobs / c->col_jobs;
    const int64_t z = c->z.lo + line / c->row_jobs;
    const int64_t y0 = c->y.lo + line % c->row_jobs * c->rows, x0 = c->x.lo + col * c->cols;
    const tgi_range y = {y0, tgi_min64(y0 + c->rows, c->y.hi)};
    const tgi_range x = {x0, tgi_min64(x0 + c->cols, c->x.hi)};
    window w = {.z = source_of(&c->s, TGI_Z, (tgi_range){z, z + 1}),
                .y = source_of(&c->s, TGI_Y, y),
                .x = source_of(&c->s, TGI_X, x),
                .p = c->scratch + (size_t)thread * c->scratch_words};
    fill_window(c, &w);
    for (int64_t g = g0; g < tgi_min64(g0 + c->groups_together, c->groups); g++)
        run_group(c, &w, g, z, y, x);
}

/* Rows and columns of a job: 8 tiles wide and as many rows as its window has room for; then
 * fewer groups and rows while there are too few jobs for the threads. Only speed depends on
 * it. */
static void size_jobs(conv *c)
{
    const int64_t width = tgi_range_len(c->x), height = tgi_range_len(c->y);
    const int64_t room = window_room(&c->s), tile_px = TILE_PX(2) * phases_of(&c->s, TGI_X);
    const int threads = tgi_threads_count(c->call->threads);
    int64_t cols = 8 * tile_px, rows = 1;
    while (cols > tile_px &&
           window_bytes(&c->s, cols > 2 * tile_px ? 4 : 1, tgi_min64(cols, width)) > room)
        cols /= 2;
    c->col_jobs = tgi_ceil_div64(width, cols);
    cols = tgi_ceil_div64(tgi_ceil_div64(width, c->col_jobs), tile_px) * tile_px;
    c->cols = tgi_min64(cols, width);
    c->col_jobs = tgi_ceil_div64(width, c->cols);
    while (rows < tgi_min64(height, ROWS_MAX) && window_bytes(&c->s, rows + 1, c->cols) <= room)
        rows++;
    const int64_t planes = tgi_range_len(c->z) * c->col_jobs,
                  enough = threads > 1 ? 4 * threads : 1;
    c->groups_together = c->groups;
    while (c->groups_together > 1 && planes * tgi_ceil_div64(height, rows) *
                                             tgi_ceil_div64(c->groups, c->groups_together) <
                                         enough)
        c->groups_together = (c->groups_together + 1) / 2;
    c->group_jobs = tgi_ceil_div64(c->groups, c->groups_together);
    while (rows > 1 && planes * tgi_ceil_div64(height, rows) * c->group_jobs < enough)
        rows = (rows + 1) / 2;
    c->rows = rows;
    c->row_jobs = tgi_ceil_div64(height, rows);
}

static void run_any(const tgi_call *call, int transposed)
{
    conv c = {.call = call, .s.transposed = transposed};
    const tgi_operand *src = &call->src[0];
    if (tgi_box_empty(&call->box) ||
        (transposed ? tgi_conv_transpose_geometry(call->ctx, &c.s.g, NULL)
                    : tgi_conv_geometry(call->ctx, &c.s.g, NULL)) != TG_OK)
        return;
    for (int i = 0; i < src->n_seg; i++)
        c.seg_c[i] = src->seg[i].c;
    c.s.units = TGS(tgi_unit_count)(TGI_L, src->n_seg, c.seg_c);
    c.s.blocks = tgi_view_blocks(&call->dst[0]);
    c.taps = taps_of(&c.s.g);
    c.groups = tile_group_count(c.s.blocks);
    c.bias = call->packed;
    c.weights = (const pair *)(const void *)(c.bias + c.s.blocks * TGI_L);
    c.z = tgi_box_axis(&call->box, TGI_Z);
    c.y = tgi_box_axis(&call->box, TGI_Y);
    c.x = tgi_box_axis(&call->box, TGI_X);
    c.scratch = call->scratch;
    c.scratch_words = (size_t)window_room(&c.s) / sizeof(pair);
    size_jobs(&c);
    tgi_parallel(call->threads, tgi_range_len(c.z) * c.row_jobs * c.col_jobs * c.group_jobs,
                 run_job, &c);
}

/* ---- The two variants -------------------------------------------------------------------- */

/* Measured with bench_op against the float32 kernels: 0.49 to 0.54 from 48 channels on; few
 * sums for each converted pixel, as of 1x1 layers with 64 results, 0.65. */
static double cost(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    int64_t sums = ctx->dst[0].dim[1];
    (void)lay;
    for (int i = 2; i < ctx->src[1].rank; i++)
        sums *= ctx->src[1].dim[i];
    return sums < 256 ? 0.65 : 0.51;
}

#define DEFINE_VARIANT(name, transposed)                                                       \
    static int name##_accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)               \
    {                                                                                          \
        return accepts(ctx, lay, transposed);                                                  \
    }                                                                                          \
    static size_t name##_packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)       \
    {                                                                                          \
        return packed_bytes(ctx, lay, transposed);                                             \
    }                                                                                          \
    static void name##_pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)      \
    {                                                                                          \
        pack(ctx, lay, transposed, dst);                                                       \
    }                                                                                          \
    static size_t name##_scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay,      \
                                       int64_t width, int threads)                             \
    {                                                                                          \
        (void)width;                                                                           \
        return scratch_bytes(ctx, lay, transposed, threads);                                   \
    }                                                                                          \
    static void name##_run(const tgi_call *call)                                               \
    {                                                                                          \
        run_any(call, transposed);                                                             \
    }
DEFINE_VARIANT(plain, 0)
DEFINE_VARIANT(transposed, 1)

const tgi_variant TGS(tgi_conv_bf16) = {.name = "conv_bf16",
                                        .op = "Conv",
                                        .kinds = TGI_KIND_BF16,
                                        .reads_doubled = 1,
                                        .work = TGI_WORK_CONV,
                                        .accepts = plain_accepts,
                                        .packed_bytes = plain_packed_bytes,
                                        .pack = plain_pack,
                                        .scratch_bytes = plain_scratch_bytes,
                                        .cost = cost,
                                        .run = TGI_RUN(plain_run)};
const tgi_variant TGS(tgi_conv_transpose_bf16) = {.name = "conv_transpose_bf16",
                                                  .op = "ConvTranspose",
                                                  .kinds = TGI_KIND_BF16,
                                                  .work = TGI_WORK_CONV,
                                                  .accepts = transposed_accepts,
                                                  .packed_bytes = transposed_packed_bytes,
                                                  .pack = transposed_pack,
                                                  .scratch_bytes = transposed_scratch_bytes,
                                                  .cost = cost,
                                                  .run = TGI_RUN(transposed_run)};
