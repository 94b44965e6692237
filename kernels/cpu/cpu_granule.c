/* cpu_granule.c - sums of rows of kernels/granule.h, on all threads.
 *
 * The order of a sum is fixed by granule.h and is sequential along a row; channels and rows are
 * independent of each other. So lanes hold the channels of a block (blocked views) or rows of a
 * granule (planar ones), several rows at a time hide the latency of the addition, and some
 * columns of granules of a block are a job. Every operation is that of granule.c in its order, in
 * float64 and without contraction: the bits are the same at any instruction set.
 *
 * A whole image goes the same way, as one box. Where it has few columns it is cut into parts
 * along the stream axis, each with a state of its own, so that every thread has work; merging
 * them gives the same bits (granule.h). */
#include "kernels/cpu/cpu_granule.h"

#include <math.h>

#define HALF (TGI_L / 2) /* doubles of a vector */
#define ROWS 4           /* of a blocked granule, together */

typedef double vd __attribute__((vector_size(4 * TGI_L)));
typedef float vh __attribute__((vector_size(2 * TGI_L), aligned(4), may_alias));

/* ---- Moments ----------------------------------------------------------------------------- */

TGI_INLINE vd load_half(const float *p)
{
    return __builtin_convertvector(*(const vh *)p, vd);
}
TGI_INLINE vd set_all(double x)
{
    return (vd){0} + x;
}

typedef struct half_moments { /* of HALF channels: tgi_moments by lanes */
    double n;
    vd sum, m2;
} half_moments;

/* Chan's merge as in tgi_moments_merge. */
TGI_INLINE void merge(half_moments *a, double n_b, vd sum, vd m2)
{
    const double n = a->n + n_b;
    const vd d = sum * set_all(a->n) - a->sum * set_all(n_b);
    a->sum = a->sum + sum;
    a->m2 = a->m2 + m2 + d * d / set_all(a->n * n_b * n);
    a->n = n;
}

/* `rows` image rows of n pixels of a block, merged into both halves in turn. `rows` is a
 * literal. */
TGI_INLINE void add_rows(half_moments *m, const float *const *row, int64_t n, const int rows)
{
    vd sum[ROWS * 2], m2[ROWS * 2], mean[ROWS * 2];
    TGI_UNROLL
    for (int i = 0; i < rows * 2; i++)
        sum[i] = m2[i] = (vd){0};
    for (int64_t x = 0; x < n; x++) {
        TGI_UNROLL
        for (int i = 0; i < rows * 2; i++)
            sum[i] += load_half(row[i / 2] + x * TGI_L + i % 2 * HALF);
    }
    TGI_UNROLL
    for (int i = 0; i < rows * 2; i++)
        mean[i] = sum[i] / set_all((double)n);
    for (int64_t x = 0; x < n; x++) {
        TGI_UNROLL
        for (int i = 0; i < rows * 2; i++) {
            const vd d = load_half(row[i / 2] + x * TGI_L + i % 2 * HALF) - mean[i];
            m2[i] += d * d;
        }
    }
    TGI_UNROLL
    for (int i = 0; i < rows * 2; i++) {
        half_moments *h = &m[i % 2];
        if (h->n > 0)
            merge(h, (double)n, sum[i], m2[i]);
        else
            *h = (half_moments){(double)n, sum[i], m2[i]};
    }
}

typedef struct adding { /* a box, or one image in several boxes with a state each */
    tgi_granules *state;
    const tgi_box *box;
    const tgi_operand *src;
    int cb;
    int64_t units, seg_c[TGI_MAX_SEG];
    tgi_range down, across; /* columns, the same of every box */
    int64_t wide, columns;  /* how many across, and in all */
    int64_t group;          /* columns of a job */
} adding;

typedef struct piece { /* rows of a granule of a block */
    const tgi_view *v;
    int64_t block, z, x, n; /* n: columns from x on */
    tgi_range y;
} piece;

typedef struct lane_moments { /* of a block's channels */
    double n, sum[TGI_L], m2[TGI_L];
} lane_moments;

static const float *row_of(const piece *p, int64_t y)
{
    return tgi_view_row(p->v, p->block, p->z, y) + (p->x - p->v->x0) * p->v->cb;
}

static void moments_blocked(const piece *p, lane_moments *to)
{
    half_moments m[2];
    const float *row[ROWS];
    int64_t at = p->y.lo;
    for (int i = 0; i < 2; i++) {
        m[i].n = to->n;
        memcpy(&m[i].sum, to->sum + i * HALF, sizeof m[i].sum);
        memcpy(&m[i].m2, to->m2 + i * HALF, sizeof m[i].m2);
    }
    for (; at + ROWS <= p->y.hi; at += ROWS) {
        for (int i = 0; i < ROWS; i++)
            row[i] = row_of(p, at + i);
        add_rows(m, row, p->n, ROWS);
    }
    for (; at < p->y.hi; at++) {
        row[0] = row_of(p, at);
        add_rows(m, row, p->n, 1);
    }
    for (int i = 0; i < 2; i++) {
        memcpy(to->sum + i * HALF, &m[i].sum, sizeof m[i].sum);
        memcpy(to->m2 + i * HALF, &m[i].m2, sizeof m[i].m2);
    }
}

/* The same of one planar channel: lanes are rows. */
static void moments_planar(const piece *p, lane_moments *to)
{
    tgi_moments all = {to->n, to->sum[0], to->m2[0]};
    for (int64_t at = p->y.lo; at < p->y.hi; at += HALF) {
        const int rows = (int)tgi_min64(HALF, p->y.hi - at);
        vd px[TGI_GRANULE], sum = {0}, m2 = {0};
        for (int r = 0; r < HALF; r++) {
            const float *row = row_of(p, at + tgi_min64(r, rows - 1));
            for (int64_t i = 0; i < p->n; i++)
                px[i][r] = (double)row[i];
        }
        for (int64_t i = 0; i < p->n; i++)
            sum += px[i];
        const vd mean = sum / set_all((double)p->n);
        for (int64_t i = 0; i < p->n; i++)
            m2 += (px[i] - mean) * (px[i] - mean);
        for (int r = 0; r < rows; r++) {
            const tgi_moments m = {(double)p->n, sum[r], m2[r]};
            all = all.n > 0 ? tgi_moments_merge(&all, &m) : m;
        }
    }
    to->sum[0] = all.sum;
    to->m2[0] = all.m2;
}

/* Rows of granule `leaf`, whose rows are `all`: go on with it, or finish it. */
static void add_moments(const tgi_granules *g, const tgi_box *box, const tgi_unit *u,
                        int64_t column, int64_t leaf, tgi_range all, const piece *p)
{
    lane_moments m = {.n = (double)((p->y.lo - all.lo) * p->n)};
    double *const open = tgi_granules_slot(g, column, 0) + u->channel;
    const size_t bytes = (size_t)u->lanes * sizeof *open;
    if (m.n > 0) {
        memcpy(m.sum, open, bytes);
        memcpy(m.m2, open + g->channels, bytes);
    }
    if (p->v->cb == 1)
        moments_planar(p, &m);
    else
        moments_blocked(p, &m);
    if (p->y.hi == all.hi) {
        tgi_granules_push(g, column, tgi_granules_begin(g, column, box), leaf, u->channel,
                          u->lanes, m.sum, m.m2);
        return;
    }
    memcpy(open, m.sum, bytes);
    memcpy(open + g->channels, m.m2, bytes);
}

/* ---- Extremes ---------------------------------------------------------------------------- */

typedef struct lane_extremes {
    vf largest, smallest;
    vi nan;
} lane_extremes;

/* Rows of a granule: lanes are channels, or pixels of a planar channel. */
static void extremes_of(const piece *p, lane_extremes *e)
{
    const int64_t n = p->n * p->v->cb;
    for (int64_t y = p->y.lo; y < p->y.hi; y++) {
        const float *row = row_of(p, y);
        int64_t i = 0;
        for (; i + TGI_L <= n; i += TGI_L) {
            const vf v = vf_load(row + i);
            e->largest = vf_max(v, e->largest);
            e->smallest = vf_min(v, e->smallest);
            e->nan |= (vi)(v != v);
        }
        if (i < n) {
            const vf v = vf_load_n(row + i, n - i);
            const vi is = vi_first(n - i);
            e->largest = vf_max(vf_select(is, v, e->largest), e->largest);
            e->smallest = vf_min(vf_select(is, v, e->smallest), e->smallest);
            e->nan |= (vi)(v != v);
        }
    }
}

static void keep_extremes(const tgi_granules *g, int64_t column, const tgi_unit *u, int cb,
                          const lane_extremes *e)
{
    float *const to = g->extremes + column * 3 * g->channels + u->channel;
    for (int i = 0; i < TGI_L; i++) {
        float *at = to + (cb == 1 ? 0 : i);
        if (cb > 1 && i >= u->lanes)
            break;
        at[0] = e->largest[i] > at[0] ? e->largest[i] : at[0];
        at[g->channels] = e->smallest[i] < at[g->channels] ? e->smallest[i] : at[g->channels];
        if (e->nan[i])
            at[2 * g->channels] = 1;
    }
}

/* ---- A box ------------------------------------------------------------------------------- */

/* Granule `leaf` of a column, as far as the box has it. */
static void add_granule(const adding *a, int part, const tgi_unit *u, int64_t column,
                        int64_t leaf)
{
    const tgi_granules *g = &a->state[part];
    const tgi_box *box = &a->box[part];
    const tgi_range all = tgi_granules_rows(g, column, leaf), y = tgi_box_axis(box, TGI_Y);
    const piece p = {.v = &a->src->seg[u->seg],
                     .block = u->block,
                     .z = g->full.rank == 5 ? leaf : 0,
                     .y = {tgi_max64(all.lo, y.lo), tgi_min64(all.hi, y.hi)},
                     .x = column % g->across * TGI_GRANULE,
                     .n = tgi_granules_width(g, column)};
    if (g->what & TGI_GRANULES_MOMENTS)
        add_moments(g, box, u, column, leaf, all, &p);
    if (g->what & TGI_GRANULES_EXTREMES) {
        lane_extremes e = {vf_set1(-INFINITY), vf_set1(INFINITY), {0}};
        extremes_of(&p, &e);
        keep_extremes(g, column, u, a->cb, &e);
    }
}

/* Neighbouring columns of a unit, granule row by granule row: as memory has them. */
static void add_job(void *arg, int64_t job, int thread)
{
    const adding *a = arg;
    const int64_t groups = tgi_ceil_div64(a->columns, a->group), unit = job / groups;
    const int part = (int)(unit / a->units);
    const int64_t from = job % groups * a->group, to = tgi_min64(from + a->group, a->columns);
    const tgi_unit u = TGS(tgi_unit_at)(a->cb, a->src->n_seg, a->seg_c, unit % a->units);
    const tgi_range leaves = tgi_granules_leaves(a->state, &a->box[part]);
    (void)thread;
    for (int64_t leaf = leaves.lo; leaf < leaves.hi; leaf++)
        for (int64_t i = from; i < to; i++)
            add_granule(a, part, &u,
                        (a->down.lo + i / a->wide) * a->state->across + a->across.lo +
                            i % a->wide,
                        leaf);
}

#define JOBS_PER_THREAD 4 /* so that one that starts late costs a quarter of its share */

/* Add box[i] to state[i], for n of them that have the same columns. */
static void add_boxes(tgi_granules *state, const tgi_box *box, int n, const tgi_operand *src,
                      tgi_threads *threads)
{
    adding a = {.state = state, .box = box, .src = src, .cb = src->seg[0].cb};
    for (int s = 0; s < src->n_seg; s++)
        a.seg_c[s] = src->seg[s].c;
    a.units = TGS(tgi_unit_count)(a.cb, src->n_seg, a.seg_c);
    tgi_granules_columns(state, box, &a.down, &a.across);
    a.wide = tgi_range_len(a.across);
    a.columns = tgi_range_len(a.down) * a.wide;
    const int count = tgi_threads_count(threads);
    a.group = count > 1 ? n * a.units * a.columns / (count * JOBS_PER_THREAD) : a.columns;
    a.group = tgi_max64(1, tgi_min64(a.group, a.columns));
    tgi_parallel(threads, n * a.units * tgi_ceil_div64(a.columns, a.group), add_job, &a);
    for (int i = 0; i < n; i++)
        tgi_granules_advance(&state[i], &box[i]);
}

tg_status TGS(tgi_granules_add)(tgi_granules *g, const tgi_operand *src, const tgi_box *box,
                                tgi_threads *threads, tgi_err *err)
{
    TGI_TRY(tgi_granules_admit(g, box, err));
    if (!tgi_box_empty(box))
        add_boxes(g, box, 1, src, threads);
    return TG_OK;
}

/* ---- A whole image ----------------------------------------------------------------------- */

#define MAX_PARTS 32

/* Parts along the stream axis: as many as give each thread some columns. */
static int parts_of(const tgi_granules *g, int64_t units, int threads)
{
    const int64_t jobs = units * g->down * g->across;
    if (threads <= 1)
        return 1;
    const int64_t parts = tgi_ceil_div64((int64_t)threads * JOBS_PER_THREAD, jobs);
    return (int)tgi_min64(tgi_min64(parts, MAX_PARTS), tgi_max64(g->leaves, 1));
}

/* Columns of whole images begin at the top, those of parts do not. */
static unsigned what_of(int parts)
{
    return TGI_GRANULES_MOMENTS | (parts > 1 ? TGI_GRANULES_ANYWHERE : 0u);
}

/* All of the call's source 0 in a state at `mem`. */
static void whole_granules(const tgi_call *call, void *mem, tgi_granules *out)
{
    const tgi_desc *full = &call->ctx->src[0];
    const tgi_operand *src = &call->src[0];
    const int axis = full->rank == 5 ? TGI_Z : TGI_Y;
    const int64_t dim = tgi_desc_axis(full, axis), leaf = axis == TGI_Z ? 1 : TGI_GRANULE;
    tgi_granules g[MAX_PARTS];
    tgi_box box[MAX_PARTS];
    int64_t seg_c[TGI_MAX_SEG];
    for (int s = 0; s < src->n_seg; s++)
        seg_c[s] = src->seg[s].c;
    tgi_granules_measure(g, full, TGI_GRANULES_MOMENTS);
    const int parts = parts_of(g, TGS(tgi_unit_count)(src->seg[0].cb, src->n_seg, seg_c),
                               tgi_threads_count(call->threads));
    const size_t bytes = tgi_granules_bytes(full, what_of(parts));
    const int64_t leaves = g->leaves;
    for (int i = 0; i < parts; i++) {
        tgi_granules_init(&g[i], full, what_of(parts), (char *)mem + (size_t)i * bytes);
        box[i] = tgi_box_full(full);
        box[i].ax[box[i].rank - 3 + axis] = (tgi_range){
            leaves * i / parts * leaf, tgi_min64(leaves * (i + 1) / parts * leaf, dim)};
    }
    add_boxes(g, box, parts, src, call->threads);
    for (int i = 1; i < parts; i++)
        tgi_granules_merge(g, &g[i], NULL);
    *out = *g;
}

typedef struct finishing {
    const tgi_granules *g;
    tgi_moments *out;
} finishing;

static void finish_job(void *arg, int64_t c, int thread)
{
    const finishing *f = arg;
    (void)thread;
    tgi_granules_finish(f->g, c, &f->out[c], NULL);
}

size_t TGS(tgi_moments_bytes)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int threads)
{
    const tgi_desc *full = &ctx->src[0];
    const int64_t units = TGS(tgi_unit_count)(lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    tgi_granules g;
    tgi_granules_measure(&g, full, TGI_GRANULES_MOMENTS);
    const int parts = parts_of(&g, units, threads);
    return tgi_granules_bytes(full, what_of(parts)) * (size_t)parts +
           (size_t)full->dim[1] * sizeof(tgi_moments);
}

const tgi_moments *TGS(tgi_moments_of)(const tgi_call *call, void *mem)
{
    tgi_granules g;
    const size_t moments = (size_t)call->ctx->src[0].dim[1] * sizeof(tgi_moments);
    whole_granules(call, (char *)mem + moments, &g);
    finishing f = {&g, mem};
    tgi_parallel(call->threads, g.channels, finish_job, &f);
    return f.out;
}
