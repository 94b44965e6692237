/* cpu_flow.c - FlowWarp and FlowConsistency: a part of a row at a time, of which it is found out
 * first where its pixels lie, then what is there.
 *
 * Where the image lies in blocks its channels are lanes: each pixel loads four pixels, or the nearest
 * one. Elsewhere pixels are lanes, and gathered. Each number has the operations of the reference, in
 * its order and float32, so all of these have the same bits. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/sample.h"
#include "kernels/ops/op_attrs.h"

#define PART_PX 64
#define EXTENT_MOST ((int64_t)1 << 22) /* coordinates below it are rounded by adding */

/* Where the pixels of a part lie. */
typedef struct places {
    float flow[2][PART_PX]; /* to the right, down */
    int32_t y[2][PART_PX], x[2][PART_PX];
    float wy[2][PART_PX], wx[2][PART_PX];
    int32_t inside[PART_PX]; /* -1: something is there */
} places;

typedef struct work {
    const tgi_call *call;
    int flow, image; /* sources */
    int nearest, blocked;
    tgi_range y, x;
    int64_t cols, col_jobs;
} work;

typedef struct part {
    int64_t y, x, n;
} part;

/* ---- Places ------------------------------------------------------------------------------ */

TGI_INLINE vi vi_load(const int32_t *p)
{
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* x, x + 1, ... */
TGI_INLINE vf columns_from(int64_t x)
{
    static const float lanes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return vf_set1((float)x) + vf_load(lanes);
}

/* The pixel nearest to c, ties to even, in [-1, n]. */
TGI_INLINE vi nearest_of(vf c, int64_t n)
{
    const vf magic = vf_set1(12582912.0f); /* 1.5 * 2^23 */
    const vf in = vf_select((vi)(c > vf_set1(-1.0f)), c, vf_set1(-1.0f));
    const vf below = vf_min(in, vf_set1((float)n));
    return __builtin_convertvector((below + magic) - magic, vi);
}

static void find_nearest(const tgi_desc *d, const part *p, places *f)
{
    for (int64_t i = 0; i < p->n; i += TGI_L) {
        const vf cy = vf_set1((float)p->y) + vf_load(f->flow[1] + i);
        const vf cx = columns_from(p->x + i) + vf_load(f->flow[0] + i);
        const vi y = nearest_of(cy, d->dim[2]), x = nearest_of(cx, d->dim[3]);
        const vi inside = (vi)(y >= 0) & (vi)(y < (int32_t)d->dim[2]) & (vi)(x >= 0) &
                          (vi)(x < (int32_t)d->dim[3]);
        vi_store(f->y[0] + i, y & inside);
        vi_store(f->x[0] + i, x & inside);
        vi_store(f->inside + i, inside);
    }
}

static void find_between(const tgi_desc *d, const part *p, places *f)
{
    for (int64_t i = 0; i < p->n; i += TGI_L) {
        const between y = between_of(vf_set1((float)p->y) + vf_load(f->flow[1] + i), d->dim[2]);
        const between x =
            between_of(columns_from(p->x + i) + vf_load(f->flow[0] + i), d->dim[3]);
        for (int k = 0; k < 2; k++) {
            vi_store(f->y[k] + i, y.at[k]);
            vi_store(f->x[k] + i, x.at[k]);
            vf_store(f->wy[k] + i, y.weight[k]);
            vf_store(f->wx[k] + i, x.weight[k]);
        }
        vi_store(f->inside + i, y.inside & x.inside);
    }
}

static void find_places(const work *w, const part *p, places *f)
{
    const tgi_desc *d = &w->call->ctx->src[w->image];
    memset(f->flow, 0, sizeof f->flow);
    for (int c = 0; c < 2; c++) {
        tgi_lane l = TGS(tgi_lane_of)(&w->call->src[w->flow], c, 0, p->y);
        l.p += p->x * l.step;
        TGS(tgi_gather_lanes)(&l, 1, p->n, f->flow[c], 1);
    }
    if (w->nearest)
        find_nearest(d, p, f);
    else
        find_between(d, p, f);
}

/* ---- Channels in lanes ------------------------------------------------------------------- */

/* Blocks of a segment at pixel i of a part, to dst and on. */
TGI_INLINE void warp_blocks(const places *f, int64_t i, const tgi_view *v, int nearest,
                            float *dst, size_t dst_pitch)
{
    const float *row[2] = {v->base - v->x0 * TGI_L + (size_t)f->y[0][i] * v->y_pitch};
    const int64_t blocks = tgi_view_blocks(v);
    const ptrdiff_t left = (ptrdiff_t)f->x[0][i] * TGI_L;
    if (nearest) {
        for (int64_t b = 0; b < blocks; b++, dst += dst_pitch, row[0] += v->block_pitch)
            vf_store(dst, vf_load(row[0] + left));
        return;
    }
    row[1] = v->base - v->x0 * TGI_L + (size_t)f->y[1][i] * v->y_pitch;
    const ptrdiff_t right = (ptrdiff_t)f->x[1][i] * TGI_L;
    const vf x0 = vf_set1(f->wx[0][i]), x1 = vf_set1(f->wx[1][i]);
    const vf y0 = vf_set1(f->wy[0][i]), y1 = vf_set1(f->wy[1][i]);
    for (int64_t b = 0; b < blocks; b++, dst += dst_pitch) {
        const vf above = x0 * vf_load(row[0] + left) + x1 * vf_load(row[0] + right);
        const vf below = x0 * vf_load(row[1] + left) + x1 * vf_load(row[1] + right);
        vf_store(dst, y0 * above + y1 * below);
        row[0] += v->block_pitch;
        row[1] += v->block_pitch;
    }
}

static void warp_in_blocks(const work *w, const part *p, const places *f)
{
    const tgi_view *to = &w->call->dst[0];
    const tgi_operand *src = &w->call->src[w->image];
    float *dst = tgi_view_row(to, 0, 0, p->y) + (p->x - to->x0) * TGI_L;
    for (int64_t i = 0; i < p->n; i++, dst += TGI_L) {
        float *out = dst;
        for (int64_t b = 0; b < tgi_view_blocks(to) && !f->inside[i]; b++)
            vf_store(dst + (size_t)b * to->block_pitch, vf_zero());
        for (int s = 0; s < src->n_seg && f->inside[i]; s++) {
            if (w->nearest)
                warp_blocks(f, i, &src->seg[s], 1, out, to->block_pitch);
            else
                warp_blocks(f, i, &src->seg[s], 0, out, to->block_pitch);
            out += (size_t)tgi_view_blocks(&src->seg[s]) * to->block_pitch;
        }
    }
}

/* ---- Pixels in lanes --------------------------------------------------------------------- */

/* What is gathered of an image for a part: numbers of the four pixels, or of the nearest one. */
typedef struct corners {
    const tgi_view *v;        /* whose offsets these are */
    ptrdiff_t at[4][PART_PX]; /* from the channel's first row, in column 0 */
    float value[4][PART_PX];  /* of a channel */
} corners;

static void find_corners(const work *w, const part *p, const places *f, const tgi_view *v,
                         corners *k)
{
    k->v = v;
    for (int q = 0; q < (w->nearest ? 1 : 4); q++)
        for (int64_t i = 0; i < p->n; i++)
            k->at[q][i] = (ptrdiff_t)f->y[q / 2][i] * (ptrdiff_t)v->y_pitch +
                          (ptrdiff_t)f->x[q % 2][i] * v->cb;
    for (int64_t b = 0; b < tgi_view_blocks(v); b++) {
        const float *from = tgi_view_row(v, b, 0, 0) - v->x0 * v->cb;
        for (int q = 0; q < (w->nearest ? 1 : 4); q += 2)
            for (int64_t i = 0; i < p->n; i++)
                __builtin_prefetch(from + k->at[q][i]);
    }
}

/* By pixels, not by vectors: a gather of the processor takes longer than its loads. */
static void gather(const work *w, const part *p, const places *f, int64_t c, corners *k)
{
    const tgi_view *v = w->call->src[w->image].seg;
    while (c >= v->c)
        c -= (v++)->c;
    if (k->v != v)
        find_corners(w, p, f, v, k);
    const float *from = tgi_view_row(v, c / v->cb, 0, 0) - v->x0 * v->cb + c % v->cb;
    if (w->nearest) {
        for (int64_t i = 0; i < p->n; i++)
            k->value[0][i] = from[k->at[0][i]];
        return;
    }
    for (int64_t i = 0; i < p->n; i++) {
        const float a = from[k->at[0][i]], b = from[k->at[1][i]], e = from[k->at[2][i]],
                    d = from[k->at[3][i]];
        k->value[0][i] = a;
        k->value[1][i] = b;
        k->value[2][i] = e;
        k->value[3][i] = d;
    }
}

/* What was gathered, at pixels i and on of a part. */
TGI_INLINE vf warp_lanes(const work *w, const places *f, const corners *k, int64_t i)
{
    const vi inside = vi_load(f->inside + i);
    if (w->nearest)
        return vf_select(inside, vf_load(k->value[0] + i), vf_zero());
    const vf x0 = vf_load(f->wx[0] + i), x1 = vf_load(f->wx[1] + i);
    const vf above = x0 * vf_load(k->value[0] + i) + x1 * vf_load(k->value[1] + i);
    const vf below = x0 * vf_load(k->value[2] + i) + x1 * vf_load(k->value[3] + i);
    return vf_select(inside, vf_load(f->wy[0] + i) * above + vf_load(f->wy[1] + i) * below,
                     vf_zero());
}

/* Channel c of pixels i and on of a part of dst. */
static void put_lanes(const work *w, const part *p, int64_t c, int64_t i, vf v)
{
    const tgi_view *to = &w->call->dst[0];
    const int64_t n = tgi_min64(TGI_L, p->n - i);
    float *dst = tgi_view_at(to, c, 0, p->y, p->x + i);
    if (to->cb == 1 && n == TGI_L)
        vf_store(dst, v);
    else
        for (int64_t k = 0; k < n; k++)
            dst[k * to->cb] = v[k];
}

static void warp_in_lanes(const work *w, const part *p, const places *f)
{
    corners k;
    k.v = NULL;
    for (int64_t c = 0; c < w->call->dst[0].c; c++) {
        gather(w, p, f, c, &k);
        for (int64_t i = 0; i < p->n; i += TGI_L)
            put_lanes(w, p, c, i, warp_lanes(w, f, &k, i));
    }
}

static void compare(const work *w, const part *p, const places *f)
{
    corners right, down;
    right.v = down.v = NULL;
    gather(w, p, f, 0, &right);
    gather(w, p, f, 1, &down);
    for (int64_t i = 0; i < p->n; i += TGI_L) {
        const vf fx = vf_load(f->flow[0] + i), fy = vf_load(f->flow[1] + i);
        const vf bx = warp_lanes(w, f, &right, i), by = warp_lanes(w, f, &down, i);
        const vf ex = fx + bx, ey = fy + by;
        const vf there = fx * fx + fy * fy, back = bx * bx + by * by;
        const vf most = vf_set1(0.01f) * (there + back) + vf_set1(0.5f);
        put_lanes(w, p, 0, i,
                  vf_select((vi)(ex * ex + ey * ey < most), vf_set1(1.0f), vf_zero()));
    }
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static part part_of(const work *w, int64_t job)
{
    const int64_t x = w->x.lo + job % w->col_jobs * w->cols;
    return (part){w->y.lo + job / w->col_jobs, x, tgi_min64(w->cols, w->x.hi - x)};
}

static void finish(const work *w, const part *p)
{
    const tgi_row_part r = {
        .b1 = tgi_view_blocks(&w->call->dst[0]), .y = p->y, .x0 = p->x, .x1 = p->x + p->n};
    TGS(tgi_epilogue_part)(w->call, 0, &r);
}

static void warp_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const part p = part_of(w, job);
    places f;
    (void)thread;
    find_places(w, &p, &f);
    if (w->blocked)
        warp_in_blocks(w, &p, &f);
    else
        warp_in_lanes(w, &p, &f);
    finish(w, &p);
}

static void compare_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const part p = part_of(w, job);
    places f;
    (void)thread;
    find_places(w, &p, &f);
    compare(w, &p, &f);
    finish(w, &p);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && lay->src_segs[0] > 0 && lay->src_segs[1] > 0 &&
           ctx->src[0].dim[2] < EXTENT_MOST && ctx->src[0].dim[3] < EXTENT_MOST;
}

static void run_parts(work *w, void (*fn)(void *, int64_t, int))
{
    w->y = tgi_box_axis(&w->call->box, TGI_Y);
    w->x = tgi_box_axis(&w->call->box, TGI_X);
    if (tgi_box_empty(&w->call->box))
        return;
    w->col_jobs = tgi_ceil_div64(tgi_range_len(w->x), PART_PX);
    w->cols = PART_PX;
    tgi_parallel(w->call->threads, tgi_range_len(w->y) * w->col_jobs, fn, w);
}

static void run_warp(const tgi_call *call)
{
    const tgi_operand *src = &call->src[0];
    work w = {.call = call,
              .flow = 1,
              .nearest = ((const warp_attrs *)call->ctx->attrs)->mode,
              .blocked = call->dst[0].cb == TGI_L};
    for (int s = 0; s < src->n_seg; s++)
        if (src->seg[s].cb != TGI_L || (s + 1 < src->n_seg && src->seg[s].c % TGI_L))
            w.blocked = 0;
    run_parts(&w, warp_job);
}

static void run_consistency(const tgi_call *call)
{
    work w = {.call = call, .image = 1};
    run_parts(&w, compare_job);
}

const tgi_variant TGS(tgi_flow_warp) = {
    .name = "flow_warp", .op = "FlowWarp", .accepts = accepts, .run = TGI_RUN(run_warp)};
const tgi_variant TGS(tgi_flow_consistency) = {.name = "flow_consistency",
                                               .op = "FlowConsistency",
                                               .accepts = accepts,
                                               .run = TGI_RUN(run_consistency)};
