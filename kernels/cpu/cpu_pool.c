/* cpu_pool.c - MaxPool and AveragePool, blocked or planar, 2-D and 3-D.
 *
 * Taps outside the image do not take part, decided by image coordinates: `need` stays inside
 * the image, so nothing outside is stored. A window is visited in the order kz, ky, kx; an
 * average is a float32 sum divided once. Equal to the reference bit for bit for the maximum. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/ops/op_attrs.h"

#include <math.h>

#define ROWS_MAX 256 /* kz * ky */

typedef struct pool {
    tgi_geom g;
    int max, include_pad;
} pool;

static int accepts_any(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    return lay->lanes == TGI_L && ctx->n_dst == 1 && TGS(tgi_blocks_line_up)(lay, 0) &&
           tgi_pool_geometry(ctx, &g, NULL) == TG_OK && g.k[TGI_Z] * g.k[TGI_Y] <= ROWS_MAX;
}

/* Taps of the window at output coordinate o that lie inside the padded image. */
static int64_t padded_taps(const tgi_geom *g, int i, int64_t o)
{
    const int64_t room = g->in[i] + g->p1[i] - (o * g->s[i] - g->p0[i]);
    const int64_t n = room <= 0 ? 0 : tgi_ceil_div64(room, g->d[i]);
    return tgi_min64(n, g->k[i]);
}

/* First and last + 1 tap of the window at coordinate o that lie inside the image. */
static tgi_range inside_taps(const tgi_geom *g, int i, int64_t o)
{
    const int64_t first = o * g->s[i] - g->p0[i];
    const int64_t lo = first < 0 ? tgi_ceil_div64(-first, g->d[i]) : 0;
    const int64_t hi = first >= g->in[i] ? 0 : tgi_ceil_div64(g->in[i] - first, g->d[i]);
    return (tgi_range){lo, tgi_min64(hi, g->k[i])};
}

/* One pixel: rows[] point at tap 0 of its window, taps [k0,k1) are inside. */
TGI_INLINE void pixel(const float *const *rows, int n_rows, ptrdiff_t x, ptrdiff_t kx_step,
                      int64_t k0, int64_t k1, float count, float *dst, const int max,
                      const int planar)
{
    vf v = max ? vf_set1(-INFINITY) : vf_zero();
    for (int r = 0; r < n_rows; r++)
        for (int64_t k = k0; k < k1; k++) {
            const float *p = rows[r] + x + k * kx_step;
            const vf t = planar ? vf_set1(*p) : vf_load(p);
            v = max ? vf_max(t, v) : v + t;
        }
    if (!max)
        v = count > 0 ? v / vf_set1(count) : vf_zero();
    if (planar)
        *dst = v[0];
    else
        vf_store(dst, v);
}

TGI_INLINE void pixels(const pool *q, const float *const *rows, int n_rows,
                       const tgi_row_part *p, float rows_padded, float *dst, const int max,
                       const int planar)
{
    const tgi_geom *g = &q->g;
    const int cb = planar ? 1 : TGI_L;
    for (int64_t x = p->x0; x < p->x1; x++, dst += cb) {
        const int64_t first = x * g->s[TGI_X] - g->p0[TGI_X];
        const int inner = first >= 0 && first + (g->k[TGI_X] - 1) * g->d[TGI_X] < g->in[TGI_X];
        const tgi_range k = inner ? (tgi_range){0, g->k[TGI_X]} : inside_taps(g, TGI_X, x);
        float count = (float)n_rows * (float)tgi_range_len(k);
        if (q->include_pad)
            count = rows_padded * (float)(inner ? g->k[TGI_X] : padded_taps(g, TGI_X, x));
        pixel(rows, n_rows, first * cb, g->d[TGI_X] * cb, k.lo, k.hi, count, dst, max, planar);
    }
}

static int part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const pool *q = arg;
    const tgi_geom *g = &q->g;
    const tgi_view *dv = &call->dst[0];
    const tgi_range kz = inside_taps(g, TGI_Z, p->z), ky = inside_taps(g, TGI_Y, p->y);
    const float *rows[ROWS_MAX];
    int64_t b = p->b0;
    const tgi_view *v = TGS(tgi_block_at)(&call->src[0], &b);
    int n = 0;
    for (int64_t z = kz.lo; z < kz.hi; z++)
        for (int64_t y = ky.lo; y < ky.hi; y++)
            rows[n++] = tgi_view_row(v, b, p->z * g->s[TGI_Z] - g->p0[TGI_Z] + z * g->d[TGI_Z],
                                     p->y * g->s[TGI_Y] - g->p0[TGI_Y] + y * g->d[TGI_Y]) -
                        v->x0 * v->cb;
    const float padded = (float)(padded_taps(g, TGI_Z, p->z) * padded_taps(g, TGI_Y, p->y));
    float *dst = tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb;
    if (dv->cb == 1 && q->max)
        pixels(q, rows, n, p, padded, dst, 1, 1);
    else if (dv->cb == 1)
        pixels(q, rows, n, p, padded, dst, 0, 1);
    else if (q->max)
        pixels(q, rows, n, p, padded, dst, 1, 0);
    else
        pixels(q, rows, n, p, padded, dst, 0, 0);
    return 0;
}

static void run_any(const tgi_call *call, int max)
{
    const pool_attrs *a = call->ctx->attrs;
    pool q = {.max = max, .include_pad = !max && a->count_include_pad};
    if (tgi_pool_geometry(call->ctx, &q.g, NULL) == TG_OK)
        TGS(tgi_each_part)(call, part, &q);
}

static void run_max(const tgi_call *call)
{
    run_any(call, 1);
}
static void run_average(const tgi_call *call)
{
    run_any(call, 0);
}

const tgi_variant TGS(tgi_max_pool) = {
    .name = "max_pool", .op = "MaxPool", .accepts = accepts_any, .run = TGI_RUN(run_max)};
const tgi_variant TGS(tgi_average_pool) = {.name = "average_pool",
                                           .op = "AveragePool",
                                           .accepts = accepts_any,
                                           .run = TGI_RUN(run_average)};
