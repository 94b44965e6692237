/* cpu_granule.c - kernels/granule.h for an image that is there, on all threads.
 *
 * The order of a sum is fixed by granule.h and is sequential along a row; channels and rows are
 * independent of each other. So lanes hold the channels of a block (blocked views) or rows of a
 * granule (planar ones), several rows at a time hide the latency of the addition, and a granule
 * of a block is a job. Every operation is that of granule.c in its order, in float64 and
 * without contraction: the bits are the same at any instruction set. */
#include "kernels/cpu/cpu_granule.h"

#define HALF (TGI_L / 2) /* doubles of a vector */
#define ROWS 4           /* of a blocked granule, together */

typedef double vd __attribute__((vector_size(4 * TGI_L)));
typedef float vh __attribute__((vector_size(2 * TGI_L), aligned(4), may_alias));

typedef struct job_args {
    const tgi_call *call;
    tgi_granules g;
    int cb;
    int64_t units, seg_c[TGI_MAX_SEG];
    tgi_moments *out;
} job_args;

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

/* A granule of a block: columns from x, rows [y0,y1). */
static void granule_blocked(const job_args *j, const tgi_unit *u, int64_t z, tgi_range y,
                            int64_t x, int64_t n, tgi_moments *out)
{
    const tgi_view *v = &j->call->src[0].seg[u->seg];
    half_moments m[2] = {{.n = 0}};
    const float *row[ROWS];
    int64_t at = y.lo;
    for (; at + ROWS <= y.hi; at += ROWS) {
        for (int i = 0; i < ROWS; i++)
            row[i] = tgi_view_row(v, u->block, z, at + i) + (x - v->x0) * TGI_L;
        add_rows(m, row, n, ROWS);
    }
    for (; at < y.hi; at++) {
        row[0] = tgi_view_row(v, u->block, z, at) + (x - v->x0) * TGI_L;
        add_rows(m, row, n, 1);
    }
    for (int i = 0; i < u->lanes; i++)
        out[i] =
            (tgi_moments){m[i / HALF].n, m[i / HALF].sum[i % HALF], m[i / HALF].m2[i % HALF]};
}

/* The same of one planar channel: lanes are rows. */
static void granule_planar(const job_args *j, const tgi_unit *u, int64_t z, tgi_range y,
                           int64_t x, int64_t n, tgi_moments *out)
{
    const tgi_view *v = &j->call->src[0].seg[u->seg];
    for (int64_t at = y.lo; at < y.hi; at += HALF) {
        const int rows = (int)tgi_min64(HALF, y.hi - at);
        vd px[TGI_GRANULE], sum = {0}, m2 = {0};
        for (int r = 0; r < HALF; r++) {
            const float *row =
                tgi_view_row(v, u->block, z, at + tgi_min64(r, rows - 1)) + x - v->x0;
            for (int64_t i = 0; i < n; i++)
                px[i][r] = (double)row[i];
        }
        for (int64_t i = 0; i < n; i++)
            sum += px[i];
        const vd mean = sum / set_all((double)n);
        for (int64_t i = 0; i < n; i++)
            m2 += (px[i] - mean) * (px[i] - mean);
        for (int r = 0; r < rows; r++) {
            const tgi_moments m = {(double)n, sum[r], m2[r]};
            *out = at + r == y.lo ? m : tgi_moments_merge(out, &m);
        }
    }
}

static void granule_job(void *arg, int64_t job, int thread)
{
    const job_args *j = arg;
    const tgi_granules *g = &j->g;
    const int64_t leaf = job % g->per_c, plane = leaf / g->gx; /* planes of granule rows */
    const int64_t z = plane / g->gy, y = plane % g->gy * TGI_GRANULE;
    const int64_t x = leaf % g->gx * TGI_GRANULE;
    const tgi_range rows = {y, tgi_min64(y + TGI_GRANULE, tgi_desc_axis(&g->full, TGI_Y))};
    const int64_t n = tgi_min64(TGI_GRANULE, tgi_desc_axis(&g->full, TGI_X) - x);
    const tgi_unit u = TGS(tgi_unit_at)(j->cb, j->call->src[0].n_seg, j->seg_c, job / g->per_c);
    tgi_moments m[TGI_L];
    (void)thread;
    if (j->cb == 1)
        granule_planar(j, &u, z, rows, x, n, m);
    else
        granule_blocked(j, &u, z, rows, x, n, m);
    for (int i = 0; i < u.lanes; i++)
        g->leaf[(u.channel + i) * g->per_c + leaf] = m[i];
}

/* The granules of one channel become its moments. */
static void finish_job(void *arg, int64_t c, int thread)
{
    const job_args *j = arg;
    (void)thread;
    tgi_granules_finish(&j->g, c, &j->out[c], NULL);
}

size_t TGS(tgi_moments_bytes)(const tgi_desc *full)
{
    return tgi_granules_bytes(full) + (size_t)full->dim[1] * sizeof(tgi_moments);
}

const tgi_moments *TGS(tgi_moments_of)(const tgi_call *call, void *mem)
{
    const tgi_operand *src = &call->src[0];
    const tgi_desc *full = &call->ctx->src[0];
    job_args j = {.call = call, .cb = src->seg[0].cb};
    for (int s = 0; s < src->n_seg; s++)
        j.seg_c[s] = src->seg[s].c;
    tgi_granules_init(&j.g, full, mem);
    j.out = (tgi_moments *)((char *)mem + tgi_granules_bytes(full));
    j.units = TGS(tgi_unit_count)(j.cb, src->n_seg, j.seg_c);
    tgi_parallel(call->threads, j.units * j.g.per_c, granule_job, &j);
    tgi_parallel(call->threads, full->dim[1], finish_job, &j);
    return j.out;
}
