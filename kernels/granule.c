/* granule.c - sums granules row by row and merges them in a binary tree. */
#include "kernels/granule.h"

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"

#include <inttypes.h>
#include <string.h>

/* The means' difference comes from sums multiplied by counts, not from means: inside a granule
 * those products of float32 data are exact more often than not, rounded means never are. */
tgi_moments tgi_moments_merge(const tgi_moments *a, const tgi_moments *b)
{
    const double n = a->n + b->n, d = b->sum * a->n - a->sum * b->n;
    return (tgi_moments){n, a->sum + b->sum, a->m2 + b->m2 + d * d / (a->n * b->n * n)};
}

/* Add n values of one row to a granule, the ones above it being there. */
static void add_row(tgi_moments *m, const float *v, int64_t step, int64_t n)
{
    tgi_moments row = {(double)n, 0, 0};
    for (int64_t i = 0; i < n; i++)
        row.sum += (double)v[i * step];
    const double mean = row.sum / row.n;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)v[i * step] - mean;
        row.m2 += d * d;
    }
    *m = m->n > 0 ? tgi_moments_merge(m, &row) : row;
}

/* ---- The tree ---------------------------------------------------------------------------- */

/* As a binary counter is incremented: the n-th leaf completes as many subtrees as n has ones at
 * its end. */
void tgi_tree_push(tgi_moments_tree *t, const tgi_moments *leaf)
{
    tgi_moments m = *leaf;
    for (uint64_t k = t->n; k & 1; k >>= 1)
        m = tgi_moments_merge(&t->part[--t->n_parts], &m);
    t->part[t->n_parts++] = m;
    t->n++;
}

tgi_moments tgi_tree_finish(const tgi_moments_tree *t)
{
    tgi_moments m = t->part[t->n_parts - 1];
    for (int i = t->n_parts - 2; i >= 0; i--)
        m = tgi_moments_merge(&t->part[i], &m);
    return m;
}

/* ---- An image that is there -------------------------------------------------------------- */

/* Where column x of row (c, z, y) lies, and the distance to the next column. */
static const float *row_at(const tgi_operand *src, int64_t c, int64_t z, int64_t y, int64_t x,
                           int64_t *step)
{
    const tgi_view *v = src->seg;
    while (c >= v->c)
        c -= (v++)->c;
    *step = v->cb;
    return tgi_view_at(v, c, z, y, x);
}

tgi_moments tgi_granule_channel(const tgi_operand *src, const tgi_desc *full, int64_t c)
{
    const int64_t nz = tgi_desc_axis(full, TGI_Z), ny = tgi_desc_axis(full, TGI_Y),
                  nx = tgi_desc_axis(full, TGI_X);
    tgi_moments_tree tree = {.n_parts = 0};
    for (int64_t z = 0; z < nz; z++)
        for (int64_t top = 0; top < ny; top += TGI_GRANULE)
            for (int64_t x = 0; x < nx; x += TGI_GRANULE) {
                tgi_moments m = {0, 0, 0};
                for (int64_t y = top; y < tgi_min(top + TGI_GRANULE, ny); y++) {
                    int64_t step;
                    const float *row = row_at(src, c, z, y, x, &step);
                    add_row(&m, row, step, tgi_min(TGI_GRANULE, nx - x));
                }
                tgi_tree_push(&tree, &m);
            }
    return tgi_tree_finish(&tree);
}

/* ---- From pieces ------------------------------------------------------------------------- */

tgi_range tgi_granule_share(tgi_range core, int64_t dim)
{
    return (tgi_range){tgi_min(tgi_align_up(core.lo, TGI_GRANULE), dim),
                       tgi_min(tgi_align_up(core.hi, TGI_GRANULE), dim)};
}

static int64_t per_plane(const tgi_desc *full)
{
    return tgi_ceil_div(tgi_desc_axis(full, TGI_Y), TGI_GRANULE) *
           tgi_ceil_div(tgi_desc_axis(full, TGI_X), TGI_GRANULE);
}

size_t tgi_granules_bytes(const tgi_desc *full)
{
    const size_t planes = tgi_sat_mul((size_t)full->dim[1], (size_t)tgi_desc_axis(full, TGI_Z));
    return tgi_sat_mul(tgi_sat_mul(planes, (size_t)per_plane(full)), sizeof(tgi_moments));
}

void tgi_granules_init(tgi_granules *g, const tgi_desc *full, void *mem)
{
    *g = (tgi_granules){.full = *full,
                        .gy = tgi_ceil_div(tgi_desc_axis(full, TGI_Y), TGI_GRANULE),
                        .gx = tgi_ceil_div(tgi_desc_axis(full, TGI_X), TGI_GRANULE),
                        .per_c = tgi_desc_axis(full, TGI_Z) * per_plane(full),
                        .leaf = mem};
    memset(mem, 0, tgi_granules_bytes(full));
}

/* One image row of one channel over columns x, whole granules wide. */
static tg_status add_columns(tgi_granules *g, const tgi_operand *src, int64_t c, int64_t z,
                             int64_t y, tgi_range x, tgi_err *err)
{
    const int64_t nx = tgi_desc_axis(&g->full, TGI_X);
    tgi_moments *leaf = g->leaf + c * g->per_c + (z * g->gy + y / TGI_GRANULE) * g->gx;
    for (int64_t at = x.lo; at < x.hi; at += TGI_GRANULE) {
        const int64_t n = tgi_min(TGI_GRANULE, nx - at);
        tgi_moments *m = &leaf[at / TGI_GRANULE];
        if (m->n != (double)(y % TGI_GRANULE * n))
            return tgi_fail(err, TG_E_INTERNAL,
                            "statistics of channel %" PRId64 " at z %" PRId64 ", y %" PRId64
                            ", x %" PRId64 ": rows above are missing, or it came twice",
                            c, z, y, at);
        int64_t step;
        const float *row = row_at(src, c, z, y, at, &step);
        add_row(m, row, step, n);
    }
    return TG_OK;
}

tg_status tgi_granules_add(tgi_granules *g, const tgi_operand *src, const tgi_box *box,
                           tgi_err *err)
{
    const tgi_range rz = tgi_box_axis(box, TGI_Z), ry = tgi_box_axis(box, TGI_Y),
                    rx = tgi_box_axis(box, TGI_X);
    if (tgi_box_empty(box)) /* the share of a small tile */
        return TG_OK;
    if (rx.lo % TGI_GRANULE || (rx.hi % TGI_GRANULE && rx.hi != tgi_desc_axis(&g->full, TGI_X)))
        return tgi_fail(err, TG_E_INTERNAL,
                        "statistics over columns %" PRId64 " to %" PRId64
                        ", which divide a granule",
                        rx.lo, rx.hi);
    for (int64_t c = 0; c < g->full.dim[1]; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                TGI_TRY(add_columns(g, src, c, z, y, rx, err));
    return TG_OK;
}

tg_status tgi_granules_finish(const tgi_granules *g, int64_t c, tgi_moments *out, tgi_err *err)
{
    tgi_moments_tree tree = {.n_parts = 0};
    for (int64_t i = 0; i < g->per_c; i++) {
        const tgi_moments *leaf = &g->leaf[c * g->per_c + i];
        if (!(leaf->n > 0))
            return tgi_fail(err, TG_E_INTERNAL,
                            "statistics of channel %" PRId64 ": granule %" PRId64 " is missing",
                            c, i);
        tgi_tree_push(&tree, leaf);
    }
    *out = tgi_tree_finish(&tree);
    const double all = (double)tgi_desc_axis(&g->full, TGI_Z) *
                       (double)tgi_desc_axis(&g->full, TGI_Y) *
                       (double)tgi_desc_axis(&g->full, TGI_X);
    return out->n == all ? TG_OK
                         : tgi_fail(err, TG_E_INTERNAL,
                                    "statistics of channel %" PRId64 ": %.0f of %.0f pixels", c,
                                    out->n, all);
}
