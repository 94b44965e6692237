/* granule.c - the order of sums, in plain C: rows, granules, columns, the image. */
#include "kernels/granule.h"

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"

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

/* Channel c of the rows y of one plane, 64 columns from x on or what is left of them. */
static tgi_moments granule_at(const tgi_operand *src, int64_t c, int64_t z, tgi_range y,
                              int64_t x, int64_t nx)
{
    tgi_moments m = {0, 0, 0};
    for (int64_t i = y.lo; i < y.hi; i++) {
        int64_t step;
        const float *row = row_at(src, c, z, i, x, &step);
        add_row(&m, row, step, tgi_min(TGI_GRANULE, nx - x));
    }
    return m;
}

static tgi_range granule_rows(int64_t i, int64_t ny)
{
    return (tgi_range){i * TGI_GRANULE, tgi_min((i + 1) * TGI_GRANULE, ny)};
}

/* The column of granules at x: down an image, through the planes of a volume at granule gy. */
static tgi_moments column_at(const tgi_operand *src, const tgi_desc *full, int64_t c,
                             int64_t gy, int64_t x)
{
    const int64_t nz = tgi_desc_axis(full, TGI_Z), ny = tgi_desc_axis(full, TGI_Y),
                  nx = tgi_desc_axis(full, TGI_X);
    const int is_volume = full->rank == 5;
    const int64_t leaves = is_volume ? nz : tgi_ceil_div(ny, TGI_GRANULE);
    tgi_moments_tree tree = {.n_parts = 0};
    for (int64_t i = 0; i < leaves; i++) {
        const tgi_moments m =
            granule_at(src, c, is_volume ? i : 0, granule_rows(is_volume ? gy : i, ny), x, nx);
        tgi_tree_push(&tree, &m);
    }
    return tgi_tree_finish(&tree);
}

tgi_moments tgi_granule_channel(const tgi_operand *src, const tgi_desc *full, int64_t c)
{
    const int64_t down =
        full->rank == 5 ? tgi_ceil_div(tgi_desc_axis(full, TGI_Y), TGI_GRANULE) : 1;
    tgi_moments_tree tree = {.n_parts = 0};
    for (int64_t gy = 0; gy < down; gy++)
        for (int64_t x = 0; x < tgi_desc_axis(full, TGI_X); x += TGI_GRANULE) {
            const tgi_moments m = column_at(src, full, c, gy, x);
            tgi_tree_push(&tree, &m);
        }
    return tgi_tree_finish(&tree);
}

tgi_range tgi_granule_share(tgi_range core, int64_t dim)
{
    return (tgi_range){tgi_min(tgi_align_up(core.lo, TGI_GRANULE), dim),
                       tgi_min(tgi_align_up(core.hi, TGI_GRANULE), dim)};
}
