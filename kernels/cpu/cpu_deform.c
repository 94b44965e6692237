/* cpu_deform.c - DeformConv: what the taps see is written down first, then multiplied as any
 * convolution is.
 *
 * A job is up to JOB_PX pixels of a few rows. Channel units are taken a chunk at a time: for each
 * pixel and tap, what the offsets name is blended in lanes and weighed by the mask, into scratch as
 * [unit][tap][pixel][TGI_L]. That is what tiles of cpu_conv_tile.h read, and all groups of output
 * blocks multiply it before the next chunk comes; between chunks sums wait in dst. Samples are thus
 * made once, and weights are read once for all pixels of a job.
 *
 * Order: a sample is the sum over its four pixels, row by row; a result is bias first, then unit, tap,
 * channel, whatever the job. What a far offset names is pixel 0 with a weight of nothing.
 *
 * Packed: where taps lie, [T] of y and [T] of x with T = offset groups * taps; bias [blocks][TGI_L];
 * for each group of output blocks [unit][tap][lane][ob][TGI_L]. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/cpu_conv_tile.h"
#include "kernels/cpu/sample.h"
#include "kernels/ops/op_attrs.h"

#define JOB_PX 64
#define ROOM_PX (JOB_PX + 1) /* rows of samples do not begin a power of two apart */
#define CHUNK                                                                                  \
    (36 * 16 / TGI_L) /* of units times taps: 147 KiB of samples beside their weights */

/* What follows from shapes and attributes alone. */
typedef struct sizes {
    tgi_geom g;
    int64_t taps, places;   /* of a group; of all offset groups */
    int64_t per_offset;     /* input channels of an offset group */
    int64_t blocks;         /* of the result */
    int64_t chunk;          /* units */
    int64_t table;          /* places of a chunk, and what a vector holds behind them */
    int64_t offsets, masks; /* floats of a pixel's, the same */
} sizes;

static int64_t round_up(int64_t n, int64_t to)
{
    return tgi_ceil_div64(n, to) * to;
}

static int sizes_of(const tgi_op_ctx *ctx, sizes *s)
{
    const deform_attrs *a = ctx->attrs;
    if (tgi_conv_geometry(ctx, &s->g, NULL) != TG_OK)
        return 0;
    s->taps = s->g.k[TGI_Y] * s->g.k[TGI_X];
    s->places = a->offset_group * s->taps;
    s->per_offset = s->g.in_c / a->offset_group;
    s->blocks = tgi_ceil_div64(s->g.out_c, TGI_L);
    s->chunk = tgi_max64(1, CHUNK / s->taps);
    const int64_t groups = tgi_min64(a->offset_group, s->chunk * TGI_L / s->per_offset + 2);
    s->table = round_up(groups * s->taps + TGI_L, 16);
    s->offsets = round_up(2 * s->places + 2 * TGI_L, 16);
    s->masks = round_up(s->places + TGI_L, 16);
    return 1;
}

static int64_t packed_places(const sizes *s)
{
    return round_up(s->places + TGI_L, 16);
}

/* ---- Packing ----------------------------------------------------------------------------- */

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const deform_attrs *a = ctx->attrs;
    const int masked = !tgi_is_absent(ctx, 4);
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 3) || tgi_is_const_f32(ctx, 3)) &&
           a->conv.group == 1 && lay->lanes == TGI_L && lay->dst_cb == TGI_L &&
           lay->src_cb[0] == TGI_L && lay->src_segs[0] > 0 && lay->src_segs[2] > 0 &&
           (!masked || lay->src_segs[4] > 0) && ctx->src[0].dim[2] < 1 << 24 &&
           ctx->src[0].dim[3] < 1 << 24;
}

static int64_t units_of(const tgi_layout_hint *lay)
{
    return TGS(tgi_unit_count)(TGI_L, lay->src_segs[0], lay->seg_c[0]);
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    sizes s;
    if (!sizes_of(ctx, &s))
        return 0;
    return sizeof(float) * (size_t)(2 * packed_places(&s) +
                                    s.blocks * TGI_L * (1 + units_of(lay) * s.taps * TGI_L));
}

/* [tap][lane][ob][TGI_L] of a unit. */
static float *pack_unit(const sizes *s, const tgi_unit *u, int64_t first, int ob, const void *w,
                        float *out)
{
    for (int64_t tap = 0; tap < s->taps; tap++)
        for (int64_t i = 0; i < (int64_t)TGI_L * ob * TGI_L; i++) {
            const int64_t lane = i / (ob * TGI_L), oc = first * TGI_L + i % (ob * TGI_L);
            const int64_t at = (oc * s->g.in_c + u->channel + lane) * s->taps + tap;
            *out++ = lane < u->lanes && oc < s->g.out_c ? tgi_const_at(w, at) : 0.0f;
        }
    return out;
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    sizes s;
    float *out = dst;
    if (!sizes_of(ctx, &s))
        return; /* `accepts` said no */
    const int64_t room = packed_places(&s), columns = s.g.k[TGI_X];
    for (int64_t i = 0; i < room; i++) {
        const int64_t tap = i < s.places ? i % s.taps : 0;
        out[i] = (float)(tap / columns * s.g.d[TGI_Y]);
        out[room + i] = (float)(tap % columns * s.g.d[TGI_X]);
    }
    out += 2 * room;
    const void *bias = tgi_is_absent(ctx, 3) ? NULL : ctx->const_src[3]->data;
    for (int64_t i = 0; i < s.blocks * TGI_L; i++)
        *out++ = bias && i < s.g.out_c ? tgi_const_at(bias, i) : 0.0f;
    for (int64_t k = 0; k < tile_group_count(s.blocks); k++)
        for (int64_t i = 0; i < units_of(lay); i++) {
            const tgi_unit u = TGS(tgi_unit_at)(TGI_L, lay->src_segs[0], lay->seg_c[0], i);
            out = pack_unit(&s, &u, tile_group_first(s.blocks, k), tile_group_size(s.blocks, k),
                            ctx->const_src[1]->data, out);
        }
}

/* ---- Running ----------------------------------------------------------------------------- */

typedef struct work {
    const tgi_call *call;
    sizes s;
    int64_t seg_c[TGI_MAX_SEG];
    int64_t units;
    const float *tap_y, *tap_x, *bias, *weights;
    tgi_range y, x;
    int64_t rows, cols, col_jobs; /* of a job; jobs side by side */
} work;

/* Of a thread. */
typedef struct buffers {
    float *samples;         /* [unit][tap][ROOM_PX][TGI_L] */
    float *offsets, *masks; /* [pixel][channel] */
    int32_t *at[4];         /* [place], of a pixel: rows y0, y1, columns x0, x1 */
    float *weight[4];       /* the same: of (y0,x0), (y0,x1), (y1,x0), (y1,x1) */
} buffers;

static int64_t thread_floats(const sizes *s)
{
    return s->chunk * s->taps * ROOM_PX * TGI_L + JOB_PX * (s->offsets + s->masks) +
           8 * s->table;
}

static buffers buffers_at(const sizes *s, float *p)
{
    buffers b = {.samples = p};
    b.offsets = b.samples + s->chunk * s->taps * ROOM_PX * TGI_L;
    b.masks = b.offsets + JOB_PX * s->offsets;
    p = b.masks + JOB_PX * s->masks;
    for (int i = 0; i < 4; i++, p += 2 * s->table) {
        b.at[i] = (int32_t *)p;
        b.weight[i] = p + s->table;
    }
    return b;
}

/* Pixels of a job: rows and columns of the result. */
typedef struct pixels {
    tgi_range y, x;
} pixels;

/* All channels of source `src` at the job's pixels, to dst[pixel * room + channel]. */
static void copy_source(const work *w, int src, const pixels *p, float *dst, int64_t room)
{
    const int64_t n = tgi_range_len(p->x), c = w->call->ctx->src[src].dim[1];
    for (int64_t y = p->y.lo; y < p->y.hi; y++, dst += n * room)
        for (int64_t k = 0; k < c; k += TGI_L) {
            const int many = (int)tgi_min64(TGI_L, c - k);
            tgi_lane lane[TGI_L];
            for (int i = 0; i < many; i++) {
                lane[i] = TGS(tgi_lane_of)(&w->call->src[src], k + i, 0, y);
                lane[i].p += p->x.lo * lane[i].step;
            }
            TGS(tgi_gather_lanes)(lane, many, n, dst + k, room);
        }
}

#if TGI_L == 16
#define EVEN(a, b) VF_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b) VF_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#else
#define EVEN(a, b) VF_SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(a, b) VF_SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#endif

/* Where places [t0, t1) of result pixel (y,x) lie. mask NULL: all 1. */
static void find_places(const work *w, const buffers *b, int64_t y, int64_t x, int64_t t0,
                        int64_t t1, const float *offset, const float *mask)
{
    const tgi_geom *g = &w->s.g;
    const vf base_y = vf_set1((float)(y * g->s[TGI_Y] - g->p0[TGI_Y]));
    const vf base_x = vf_set1((float)(x * g->s[TGI_X] - g->p0[TGI_X]));
    for (int64_t t = t0; t < t1; t += TGI_L) {
        const vf a = vf_load(offset + 2 * t), c = vf_load(offset + 2 * t + TGI_L);
        const between v = between_of(base_y + vf_load(w->tap_y + t) + EVEN(a, c), g->in[TGI_Y]);
        const between u = between_of(base_x + vf_load(w->tap_x + t) + ODD(a, c), g->in[TGI_X]);
        const vf m = mask ? vf_load(mask + t) : vf_set1(1.0f);
        const int64_t i = t - t0;
        for (int k = 0; k < 2; k++) {
            vi_store(b->at[k] + i, v.at[k]);
            vi_store(b->at[2 + k] + i, u.at[k]);
            vf_store(b->weight[2 * k] + i, v.weight[k] * u.weight[0] * m);
            vf_store(b->weight[2 * k + 1] + i, v.weight[k] * u.weight[1] * m);
        }
    }
}

/* A channel unit of a chunk. */
typedef struct unit {
    const float *base; /* of row 0, column 0 */
    size_t y_pitch;
    int64_t first; /* of its places, in the chunk's */
    int groups;    /* offset groups that it holds channels of */
    int lanes;
    int32_t from[TGI_L]; /* the first lane of group k */
} unit;

/* A block at one place: all lanes. */
TGI_INLINE vf sample_block(const buffers *b, const unit *u, int64_t i)
{
    const float *above = u->base + (size_t)b->at[0][i] * u->y_pitch;
    const float *below = u->base + (size_t)b->at[1][i] * u->y_pitch;
    const int64_t left = (int64_t)b->at[2][i] * TGI_L, right = (int64_t)b->at[3][i] * TGI_L;
    vf v = vf_load(above + left) * vf_set1(b->weight[0][i]);
    v = vf_fma(vf_load(above + right), vf_set1(b->weight[1][i]), v);
    v = vf_fma(vf_load(below + left), vf_set1(b->weight[2][i]), v);
    return vf_fma(vf_load(below + right), vf_set1(b->weight[3][i]), v);
}

#if TGI_CODE == 2
typedef float half __attribute__((vector_size(32)));
typedef float half_unaligned __attribute__((vector_size(32), aligned(4), may_alias));

/* As sample_block, of the lanes [from, from + 8). */
TGI_INLINE void sample_half(const buffers *b, const unit *u, int64_t i, int from, float *dst)
{
    half v = {0};
    for (int k = 0; k < 4; k++) {
        const float *p = u->base + (size_t)b->at[k / 2][i] * u->y_pitch + from +
                         (int64_t)b->at[2 + k % 2][i] * TGI_L;
        const half x = *(const half_unaligned *)p, w = b->weight[k][i] - (half){0};
        v = k ? (half)_mm256_fmadd_ps((__m256)x, (__m256)w, (__m256)v) : x * w;
    }
    *(half_unaligned *)dst = v;
}

/* Two groups of 8 channels, the lanes that they hold and no others: half the work. */
static void sample_halves(const buffers *b, const unit *u, int64_t taps, float *dst)
{
    for (int64_t t = 0; t < taps; t++, dst += ROOM_PX * TGI_L) {
        sample_half(b, u, u->first + t, 0, dst);
        sample_half(b, u, u->first + taps + t, 8, dst + 8);
    }
}
#endif

/* All taps of a unit at one pixel, to dst and on, ROOM_PX pixels apart. */
TGI_INLINE void sample_taps(const buffers *b, const unit *u, int64_t taps, float *dst,
                            const int groups)
{
    const vi second = vi_from(u->from[1]);
    for (int64_t t = 0; t < taps; t++, dst += ROOM_PX * TGI_L) {
        vf v = sample_block(b, u, u->first + t);
        for (int k = 1; k < groups; k++)
            v = vf_select(k == 1 ? second : vi_from(u->from[k]),
                          sample_block(b, u, u->first + k * taps + t), v);
        vf_store(dst, v);
    }
}

static void sample_unit(const buffers *b, const unit *u, int64_t taps, float *dst)
{
#if TGI_CODE == 2
    if (u->groups == 2 && u->from[1] == 8) {
        sample_halves(b, u, taps, dst);
        return;
    }
#endif
    if (u->groups == 1)
        sample_taps(b, u, taps, dst, 1);
    else if (u->groups == 2)
        sample_taps(b, u, taps, dst, 2);
    else
        sample_taps(b, u, taps, dst, u->groups);
}

/* Unit i of the source, in a chunk that begins with group g0. */
static unit open_unit(const work *w, int64_t i, int64_t g0)
{
    const tgi_operand *src = &w->call->src[0];
    const tgi_unit s = TGS(tgi_unit_at)(TGI_L, src->n_seg, w->seg_c, i);
    const tgi_view *v = &src->seg[s.seg];
    const int64_t per = w->s.per_offset, first = s.channel / per,
                  last = (s.channel + s.lanes - 1) / per;
    unit u = {.base = tgi_view_row(v, s.block, 0, 0) - v->x0 * TGI_L,
              .y_pitch = v->y_pitch,
              .first = (first - g0) * w->s.taps,
              .groups = (int)(last - first + 1),
              .lanes = s.lanes};
    for (int k = 1; k < u.groups; k++)
        u.from[k] = (int32_t)((first + k) * per - s.channel);
    return u;
}

/* Samples of units [u0, u1) at all pixels of a job; rows of them are listed, but for weights. */
static void sample_chunk(const work *w, const buffers *b, const pixels *p, int64_t u0,
                         int64_t u1, tap_row *rows)
{
    const int64_t taps = w->s.taps, step = taps * ROOM_PX * TGI_L;
    const tgi_operand *src = &w->call->src[0];
    const int masked = !tgi_is_absent(w->call->ctx, 4);
    unit units[CHUNK];
    const int64_t g0 =
        TGS(tgi_unit_at)(TGI_L, src->n_seg, w->seg_c, u0).channel / w->s.per_offset;
    for (int64_t u = u0; u < u1; u++) {
        units[u - u0] = open_unit(w, u, g0);
        rows[u - u0] =
            (tap_row){.src = b->samples + (u - u0) * step, .lanes = units[u - u0].lanes};
    }
    const unit *end = &units[u1 - u0 - 1];
    const int64_t t0 = g0 * taps, t1 = t0 + end->first + end->groups * taps;
    const float *offset = b->offsets, *mask = masked ? b->masks : NULL;
    float *dst = b->samples;
    for (int64_t y = p->y.lo; y < p->y.hi; y++)
        for (int64_t x = p->x.lo; x < p->x.hi; x++, dst += TGI_L) {
            find_places(w, b, y, x, t0, t1, offset, mask);
            for (int64_t u = 0; u < u1 - u0; u++)
                sample_unit(b, &units[u], taps, dst + u * step);
            offset += w->s.offsets;
            mask = mask ? mask + w->s.masks : NULL;
        }
}

/* What units [u0, u1) add to one group of output blocks. */
static void multiply(const work *w, const pixels *p, int64_t group, int64_t u0, int64_t u1,
                     tap_row *rows)
{
    const tgi_view *dst = &w->call->dst[0];
    const int ob = tile_group_size(w->s.blocks, group);
    const int64_t first = tile_group_first(w->s.blocks, group), n = tgi_range_len(p->x);
    const size_t unit_floats = (size_t)(w->s.taps * TGI_L * TGI_L);
    const float *weights = w->weights + (size_t)(first * w->units) * unit_floats;
    const int ends = u1 == w->units;
    const int relu = ends && w->call->n_epi && w->call->epi[0].kind == TGI_EPI_RELU;
    tile_job j = {.rows = rows,
                  .n_rows = (int)(u1 - u0),
                  .n_kx = (int)w->s.taps,
                  .kx_step = ROOM_PX * TGI_L,
                  .src_step = TGI_L,
                  .bias = u0 == 0 ? w->bias + first * TGI_L : NULL,
                  .dst_block = dst->block_pitch,
                  .dst_step = TGI_L,
                  .n = n,
                  .ahead = TILE_AHEAD,
                  .relu = relu};
    for (int64_t u = u0; u < u1; u++)
        rows[u - u0].w = weights + (size_t)u * unit_floats * (size_t)ob;
    for (int64_t y = p->y.lo; y < p->y.hi; y++) {
        j.dst = tgi_view_row(dst, first, 0, y) + (p->x.lo - dst->x0) * TGI_L;
        TGS(tgi_conv_part)(&j, ob, 0);
        for (int64_t u = u0; u < u1; u++)
            rows[u - u0].src += n * TGI_L;
        if (ends) {
            const tgi_row_part part = {first, first + ob, 0, y, p->x.lo, p->x.hi};
            TGS(tgi_epilogue_part)(w->call, relu, &part);
        }
    }
    for (int64_t u = u0; u < u1; u++)
        rows[u - u0].src -= n * TGI_L * tgi_range_len(p->y);
}

static void run_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const buffers b =
        buffers_at(&w->s, (float *)w->call->scratch + thread * thread_floats(&w->s));
    const int64_t y = w->y.lo + job / w->col_jobs * w->rows,
                  x = w->x.lo + job % w->col_jobs * w->cols;
    const pixels p = {{y, tgi_min64(y + w->rows, w->y.hi)},
                      {x, tgi_min64(x + w->cols, w->x.hi)}};
    tap_row rows[CHUNK];
    copy_source(w, 2, &p, b.offsets, w->s.offsets);
    if (!tgi_is_absent(w->call->ctx, 4))
        copy_source(w, 4, &p, b.masks, w->s.masks);
    for (int64_t u = 0; u < w->units; u += w->s.chunk) {
        const int64_t end = tgi_min64(u + w->s.chunk, w->units);
        sample_chunk(w, &b, &p, u, end, rows);
        for (int64_t g = 0; g < tile_group_count(w->s.blocks); g++)
            multiply(w, &p, g, u, end, rows);
    }
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    sizes s;
    (void)lay, (void)width;
    return sizes_of(ctx, &s) ? (size_t)(threads * thread_floats(&s)) * sizeof(float) : 0;
}

static void run(const tgi_call *call)
{
    work w = {.call = call,
              .y = tgi_box_axis(&call->box, TGI_Y),
              .x = tgi_box_axis(&call->box, TGI_X)};
    if (tgi_box_empty(&call->box) || !sizes_of(call->ctx, &w.s))
        return;
    const tgi_operand *src = &call->src[0];
    for (int i = 0; i < src->n_seg; i++)
        w.seg_c[i] = src->seg[i].c;
    w.units = TGS(tgi_unit_count)(TGI_L, src->n_seg, w.seg_c);
    w.tap_y = call->packed;
    w.tap_x = w.tap_y + packed_places(&w.s);
    w.bias = w.tap_x + packed_places(&w.s);
    w.weights = w.bias + w.s.blocks * TGI_L;
    const int64_t width = tgi_range_len(w.x), height = tgi_range_len(w.y);
    w.col_jobs = tgi_ceil_div64(width, JOB_PX);
    w.cols = tgi_ceil_div64(width, w.col_jobs);
    const int64_t share =
        tgi_ceil_div64(height * w.col_jobs, 4 * tgi_threads_count(call->threads));
    w.rows = tgi_max64(1, tgi_min64(JOB_PX / w.cols, share));
    tgi_parallel(call->threads, tgi_ceil_div64(height, w.rows) * w.col_jobs, run_job, &w);
}

const tgi_variant TGS(tgi_deform) = {.name = "deform",
                                     .op = "DeformConv",
                                     .work = TGI_WORK_CONV,
                                     .accepts = accepts,
                                     .packed_bytes = packed_bytes,
                                     .pack = pack,
                                     .scratch_bytes = scratch_bytes,
                                     .run = TGI_RUN(run)};
