/* granule_rows.c - moments of rows that somebody else has computed, into a state. */
#include "engine/base/arith.h"
#include "kernels/granule.h"
#include "kernels/ops/geometry.h"
#include "kernels/threads.h"

#define TOGETHER 16 /* channels of a job */

typedef struct adding {
    const tgi_granules *g;
    const double *sum;
    const tgi_box *box;
    tgi_range down, across;
} adding;

/* Where the moments of a row lie, of the granule `across` of the box. */
static const double *row_at(const adding *a, int64_t z, int64_t y, int64_t across)
{
    const tgi_range rows = tgi_box_axis(a->box, TGI_Y);
    const int64_t row =
        (z - tgi_box_axis(a->box, TGI_Z).lo) * tgi_range_len(rows) + y - rows.lo;
    return a->sum + (row * tgi_range_len(a->across) + across) * 2 * a->g->channels;
}

typedef struct several {
    double sum[TOGETHER], m2[TOGETHER];
} several;

/* Channels [c, c + n) of a row of `width` pixels, behind those that are there. */
static void merge_row(several *m, double there, double width, const double *row,
                      int64_t channels, int64_t c, int n)
{
    for (int i = 0; i < n; i++) {
        const tgi_moments one = {width, row[c + i], row[channels + c + i]};
        const tgi_moments above = {there, m->sum[i], m->m2[i]};
        const tgi_moments both = there > 0 ? tgi_moments_merge(&above, &one) : one;
        m->sum[i] = both.sum;
        m->m2[i] = both.m2;
    }
}

/* Channels of granule `leaf` of a column, as far as the box has it: go on with it, or finish it. */
static void add_granule(const adding *a, int64_t column, int64_t leaf, int64_t c, int n)
{
    const tgi_granules *g = a->g;
    const tgi_range all = tgi_granules_rows(g, column, leaf), y = tgi_box_axis(a->box, TGI_Y);
    const tgi_range here = {tgi_max(all.lo, y.lo), tgi_min(all.hi, y.hi)};
    const double width = (double)tgi_granules_width(g, column);
    double *const open = tgi_granules_slot(g, column, 0) + c;
    double there = (double)(here.lo - all.lo) * width;
    several m;
    for (int i = 0; i < n; i++) {
        m.sum[i] = open[i];
        m.m2[i] = open[g->channels + i];
    }
    for (int64_t i = here.lo; i < here.hi; i++, there += width)
        merge_row(&m, there, width,
                  row_at(a, g->full.rank == 5 ? leaf : 0, i, column % g->across - a->across.lo),
                  g->channels, c, n);
    if (here.hi == all.hi) {
        tgi_granules_push(g, column, tgi_granules_begin(g, column, a->box), leaf, c, n, m.sum,
                          m.m2);
        return;
    }
    for (int i = 0; i < n; i++) {
        open[i] = m.sum[i];
        open[g->channels + i] = m.m2[i];
    }
}

/* Some channels of a column. */
static void add_job(void *arg, int64_t job, int thread)
{
    const adding *a = arg;
    const int64_t parts = tgi_ceil_div(a->g->channels, TOGETHER), of = job / parts;
    const int64_t across = tgi_range_len(a->across), c = job % parts * TOGETHER;
    const int64_t column =
        (a->down.lo + of / across) * a->g->across + a->across.lo + of % across;
    const tgi_range leaves = tgi_granules_leaves(a->g, a->box);
    (void)thread;
    for (int64_t leaf = leaves.lo; leaf < leaves.hi; leaf++)
        add_granule(a, column, leaf, c, (int)tgi_min(TOGETHER, a->g->channels - c));
}

tg_status tgi_granules_add_rows(tgi_granules *g, const double *sum, const tgi_box *box,
                                tgi_threads *threads, tgi_err *err)
{
    adding a = {.g = g, .sum = sum, .box = box};
    if (g->what & TGI_GRANULES_EXTREMES)
        return tgi_fail(err, TG_E_INTERNAL, "extremes are not known of sums of rows");
    TGI_TRY(tgi_granules_admit(g, box, err));
    if (tgi_box_empty(box))
        return TG_OK;
    tgi_granules_columns(g, box, &a.down, &a.across);
    const int64_t columns = tgi_range_len(a.down) * tgi_range_len(a.across);
    tgi_parallel(threads, columns * tgi_ceil_div(g->channels, TOGETHER), add_job, &a);
    tgi_granules_advance(g, box);
    return TG_OK;
}
