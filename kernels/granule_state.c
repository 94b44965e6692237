/* granule_state.c - what is kept of an image that streams by: the layout of a state, who may
 * add what, subtrees and their merging. The sums of rows are the kernel sets' (granules_add).
 *
 * A state's bytes: `head`, columns, sums, extremes (granule.h, tgi_granules). How many
 * subtrees a column has, which granules each covers and how many values it counts follow from
 * the column's [begin,end), so none of it is stored. */
#include "engine/base/arith.h"
#include "kernels/granule.h"
#include "kernels/ops/geometry.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define MAGIC 0x31656c756e617267 /* "granule1" of a little-endian machine */

typedef struct head {
    int64_t magic, what, rank, dim[4], bytes; /* dim: channels, z, y, x */
} head;

/* ---- Layout ------------------------------------------------------------------------------ */

/* Finished subtrees of a column of n granules, at most. From the top: as many as a number up to
 * n has ones. From anywhere: sizes double and halve again, 1 2 4 .. 4 2 1. */
static int most_slots(int64_t n, unsigned what)
{
    int p = 0;
    n = tgi_min(n, (int64_t)1 << 40); /* nobody gets there; shifts stay in range */
    if (!(what & TGI_GRANULES_ANYWHERE)) {
        while ((int64_t)1 << (p + 1) <= n + 1)
            p++;
        return p;
    }
    for (;; p++) {
        const int64_t half = (int64_t)1 << (p + 1) / 2;
        if (((p + 1) % 2 ? 3 * half : 2 * half) - 2 > n)
            return p;
    }
}

void tgi_granules_measure(tgi_granules *g, const tgi_desc *full, unsigned what)
{
    const int64_t gy = tgi_ceil_div(tgi_desc_axis(full, TGI_Y), TGI_GRANULE);
    const int is_volume = full->rank == 5;
    *g = (tgi_granules){.full = *full,
                        .what = what,
                        .leaves = is_volume ? tgi_desc_axis(full, TGI_Z) : gy,
                        .down = is_volume ? gy : 1,
                        .across = tgi_ceil_div(tgi_desc_axis(full, TGI_X), TGI_GRANULE),
                        .channels = full->dim[1]};
    g->slots = what & TGI_GRANULES_MOMENTS ? most_slots(g->leaves, what) : 0;
}

static size_t times_columns(const tgi_granules *g, size_t bytes)
{
    return tgi_sat_mul(tgi_sat_mul((size_t)g->down, (size_t)g->across), bytes);
}

static size_t sums_bytes(const tgi_granules *g)
{
    if (!(g->what & TGI_GRANULES_MOMENTS))
        return 0;
    return times_columns(
        g, tgi_sat_mul((size_t)g->channels, (size_t)(1 + g->slots) * 2 * sizeof(double)));
}

static size_t state_bytes(const tgi_granules *g)
{
    size_t n = tgi_sat_add(sizeof(head), times_columns(g, sizeof(tgi_column)));
    n = tgi_sat_add(n, sums_bytes(g));
    if (g->what & TGI_GRANULES_EXTREMES)
        n = tgi_sat_add(n,
                        times_columns(g, tgi_sat_mul((size_t)g->channels, 3 * sizeof(float))));
    return tgi_align_size(n, 8);
}

size_t tgi_granules_bytes(const tgi_desc *full, unsigned what)
{
    tgi_granules g;
    tgi_granules_measure(&g, full, what);
    return state_bytes(&g);
}

static void bind(tgi_granules *g, const tgi_desc *full, unsigned what, void *mem)
{
    tgi_granules_measure(g, full, what);
    g->mem = mem;
    g->column = (tgi_column *)((char *)mem + sizeof(head));
    g->sums = (double *)(g->column + g->down * g->across);
    g->extremes = (float *)((char *)g->sums + sums_bytes(g));
}

static head head_of(const tgi_granules *g)
{
    return (head){MAGIC,
                  (int64_t)g->what,
                  g->full.rank,
                  {g->channels, tgi_desc_axis(&g->full, TGI_Z), tgi_desc_axis(&g->full, TGI_Y),
                   tgi_desc_axis(&g->full, TGI_X)},
                  (int64_t)state_bytes(g)};
}

static float *extremes_of(const tgi_granules *g, int64_t column)
{
    return g->extremes + column * 3 * g->channels;
}

void tgi_granules_init(tgi_granules *g, const tgi_desc *full, unsigned what, void *mem)
{
    bind(g, full, what, mem);
    memset(mem, 0, state_bytes(g));
    const head h = head_of(g);
    memcpy(mem, &h, sizeof h);
    if (!(what & TGI_GRANULES_EXTREMES))
        return;
    for (int64_t i = 0; i < g->down * g->across; i++)
        for (int64_t c = 0; c < g->channels; c++) {
            extremes_of(g, i)[c] = -INFINITY;
            extremes_of(g, i)[g->channels + c] = INFINITY;
        }
}

static int64_t height(tgi_range r)
{
    return r.hi - r.lo;
}

tg_status tgi_granules_resume(tgi_granules *g, const tgi_desc *full, unsigned what, void *mem,
                              size_t bytes, tgi_err *err)
{
    bind(g, full, what, mem);
    const head h = head_of(g);
    if (bytes != state_bytes(g) || memcmp(mem, &h, sizeof h) != 0)
        return tgi_fail(err, TG_E_FORMAT,
                        "statistics: %zu bytes that are no state of this image (expected %zu)",
                        bytes, state_bytes(g));
    for (int64_t i = 0; i < g->down * g->across; i++) {
        const tgi_column *c = &g->column[i];
        const int is_in = c->begin >= 0 && c->begin <= c->end && c->end <= g->leaves;
        const int fits =
            is_in && (c->rows == 0 || (c->rows > 0 && c->end < g->leaves &&
                                       c->rows < height(tgi_granules_rows(g, i, c->end))));
        const int begins = c->begin == 0 || (what & TGI_GRANULES_ANYWHERE);
        if (!fits || !begins)
            return tgi_fail(err, TG_E_FORMAT,
                            "statistics: column %" PRId64 " has granules %" PRId64
                            " to %" PRId64 " and %" PRId64 " rows, which cannot be",
                            i, c->begin, c->end, c->rows);
    }
    return TG_OK;
}

/* ---- Who may add what -------------------------------------------------------------------- */

static int is_begun(const tgi_column *c)
{
    return c->end > c->begin || c->rows > 0;
}

tgi_range tgi_granules_rows(const tgi_granules *g, int64_t column, int64_t leaf)
{
    const int64_t gy = g->full.rank == 5 ? column / g->across : leaf;
    return (tgi_range){gy * TGI_GRANULE,
                       tgi_min((gy + 1) * TGI_GRANULE, tgi_desc_axis(&g->full, TGI_Y))};
}

int64_t tgi_granules_width(const tgi_granules *g, int64_t column)
{
    return tgi_min(TGI_GRANULE,
                   tgi_desc_axis(&g->full, TGI_X) - column % g->across * TGI_GRANULE);
}

static tgi_range granules_of(tgi_range px)
{
    return (tgi_range){px.lo / TGI_GRANULE, tgi_ceil_div(px.hi, TGI_GRANULE)};
}

void tgi_granules_columns(const tgi_granules *g, const tgi_box *box, tgi_range *down,
                          tgi_range *across)
{
    *across = granules_of(tgi_box_axis(box, TGI_X));
    *down = g->full.rank == 5 ? granules_of(tgi_box_axis(box, TGI_Y)) : (tgi_range){0, 1};
}

tgi_range tgi_granules_leaves(const tgi_granules *g, const tgi_box *box)
{
    return g->full.rank == 5 ? tgi_box_axis(box, TGI_Z) : granules_of(tgi_box_axis(box, TGI_Y));
}

static tgi_range rows_in(const tgi_granules *g, const tgi_box *box, int64_t column,
                         int64_t leaf)
{
    const tgi_range all = tgi_granules_rows(g, column, leaf), y = tgi_box_axis(box, TGI_Y);
    return (tgi_range){tgi_max(all.lo, y.lo), tgi_min(all.hi, y.hi)};
}

static tg_status admit_column(const tgi_granules *g, const tgi_box *box, int64_t column,
                              tgi_err *err)
{
    const tgi_column *at = &g->column[column];
    const tgi_range leaves = tgi_granules_leaves(g, box),
                    all = tgi_granules_rows(g, column, leaves.lo),
                    rows = rows_in(g, box, column, leaves.lo);
    const int64_t first = rows.lo - all.lo;
    const int goes_on =
        is_begun(at) ? leaves.lo == at->end && first == at->rows
                     : first == 0 && (leaves.lo == 0 || (g->what & TGI_GRANULES_ANYWHERE));
    if (!goes_on)
        return tgi_fail(err, TG_E_INTERNAL,
                        "statistics of granule column %" PRId64 ": expected row %" PRId64
                        " of granule %" PRId64 ", found row %" PRId64 " of %" PRId64
                        ": rows above are missing, or it came twice",
                        column, at->rows, at->end, first, leaves.lo);
    if (g->full.rank == 5 && leaves.hi - leaves.lo > 1 && height(rows) < height(all))
        return tgi_fail(err, TG_E_INTERNAL,
                        "statistics of granule column %" PRId64 ": several planes at once with "
                        "%" PRId64 " of its %" PRId64 " rows",
                        column, height(rows), height(all));
    return TG_OK;
}

tg_status tgi_granules_admit(const tgi_granules *g, const tgi_box *box, tgi_err *err)
{
    const tgi_range x = tgi_box_axis(box, TGI_X);
    tgi_range down, across;
    if (tgi_box_empty(box)) /* the share of a small tile */
        return TG_OK;
    for (int i = TGI_Z; i <= TGI_X; i++) {
        const tgi_range r = tgi_box_axis(box, i);
        if (r.lo < 0 || r.hi > tgi_desc_axis(&g->full, i))
            return tgi_fail(err, TG_E_INTERNAL, "statistics over a box beyond the image");
    }
    if (x.lo % TGI_GRANULE || (x.hi % TGI_GRANULE && x.hi != tgi_desc_axis(&g->full, TGI_X)))
        return tgi_fail(err, TG_E_INTERNAL,
                        "statistics over columns %" PRId64 " to %" PRId64
                        ", which divide a granule",
                        x.lo, x.hi);
    tgi_granules_columns(g, box, &down, &across);
    for (int64_t gy = down.lo; gy < down.hi; gy++)
        for (int64_t gx = across.lo; gx < across.hi; gx++)
            TGI_TRY(admit_column(g, box, gy * g->across + gx, err));
    return TG_OK;
}

int64_t tgi_granules_begin(const tgi_granules *g, int64_t column, const tgi_box *box)
{
    const tgi_column *at = &g->column[column];
    return is_begun(at) ? at->begin : tgi_granules_leaves(g, box).lo;
}

void tgi_granules_advance(tgi_granules *g, const tgi_box *box)
{
    tgi_range down, across;
    if (tgi_box_empty(box))
        return;
    const int64_t last = tgi_granules_leaves(g, box).hi - 1;
    tgi_granules_columns(g, box, &down, &across);
    for (int64_t gy = down.lo; gy < down.hi; gy++)
        for (int64_t gx = across.lo; gx < across.hi; gx++) {
            const int64_t i = gy * g->across + gx;
            const tgi_range all = tgi_granules_rows(g, i, last),
                            rows = rows_in(g, box, i, last);
            const int is_full = rows.hi == all.hi;
            g->column[i] = (tgi_column){tgi_granules_begin(g, i, box), last + is_full,
                                        is_full ? 0 : rows.hi - all.lo};
        }
}

/* ---- Subtrees ---------------------------------------------------------------------------- */

/* Where the last subtree of granules [begin,end) begins: the largest power of two granules at a
 * multiple of itself. */
static int64_t last_subtree(int64_t begin, int64_t end)
{
    int64_t size = end & -end;
    while (end - size < begin)
        size /= 2;
    return end - size;
}

static int subtrees(int64_t begin, int64_t end)
{
    int n = 0;
    for (; end > begin; end = last_subtree(begin, end))
        n++;
    return n;
}

/* Values of a channel in granules [lo,hi) of a column. */
static double values_in(const tgi_granules *g, int64_t column, int64_t lo, int64_t hi)
{
    const int64_t top = tgi_granules_rows(g, column, lo).lo,
                  bottom = tgi_granules_rows(g, column, hi - 1).hi;
    const int64_t rows = g->full.rank == 5 ? (hi - lo) * (bottom - top) : bottom - top;
    return (double)(rows * tgi_granules_width(g, column));
}

/* Merge n channels of a slot, which are on the left, into sum and m2. */
static void merge_slot(const double *slot, int64_t channels, double n_slot, double n_right,
                       int n, double *sum, double *m2)
{
    for (int i = 0; i < n; i++) {
        const tgi_moments a = {n_slot, slot[i], slot[channels + i]},
                          b = {n_right, sum[i], m2[i]}, m = tgi_moments_merge(&a, &b);
        sum[i] = m.sum;
        m2[i] = m.m2;
    }
}

#define AT_ONCE 16 /* channels: those of the widest block */

/* As a binary counter is incremented: a subtree of granules [lo,hi) completes others as long as
 * it is the right one of a pair whose left one is there. */
static void push(const tgi_granules *g, int64_t column, int64_t begin, int64_t lo, int64_t hi,
                 int64_t c, int n, const double *sum, const double *m2)
{
    double s[AT_ONCE], q[AT_ONCE];
    int top = subtrees(begin, lo);
    memcpy(s, sum, (size_t)n * sizeof *s);
    memcpy(q, m2, (size_t)n * sizeof *q);
    for (int64_t size = hi - lo; lo / size % 2 && lo - size >= begin; size *= 2) {
        merge_slot(tgi_granules_slot(g, column, top--) + c, g->channels,
                   values_in(g, column, lo - size, lo), values_in(g, column, lo, hi), n, s, q);
        lo -= size;
    }
    double *to = tgi_granules_slot(g, column, top + 1) + c;
    memcpy(to, s, (size_t)n * sizeof *s);
    memcpy(to + g->channels, q, (size_t)n * sizeof *q);
}

void tgi_granules_push(const tgi_granules *g, int64_t column, int64_t begin, int64_t leaf,
                       int64_t c, int n, const double *sum, const double *m2)
{
    push(g, column, begin, leaf, leaf + 1, c, n, sum, m2);
}

/* ---- Merging states ---------------------------------------------------------------------- */

static tg_status check_meeting(const tgi_granules *upper, const tgi_granules *lower, int64_t i,
                               tgi_err *err)
{
    const tgi_column *a = &upper->column[i], *b = &lower->column[i];
    const int meets = is_begun(a) ? a->end == b->begin && a->rows == 0
                                  : b->begin == 0 || (upper->what & TGI_GRANULES_ANYWHERE);
    if (is_begun(b) && !meets)
        return tgi_fail(err, TG_E_INTERNAL,
                        "statistics of granule column %" PRId64
                        ": a part up to granule %" PRId64 " and %" PRId64
                        " rows, and one from granule %" PRId64 " on do not meet",
                        i, a->end, a->rows, b->begin);
    return TG_OK;
}

/* Subtrees of `lower` from top to bottom: that of granules [lo,hi) is the last but those below.
 */
static void push_subtrees(tgi_granules *upper, const tgi_granules *lower, int64_t i,
                          int64_t begin)
{
    int64_t edge[130];
    const tgi_column *b = &lower->column[i];
    const int n = subtrees(b->begin, b->end);
    edge[n] = b->end;
    for (int k = n; k > 0; k--)
        edge[k - 1] = last_subtree(b->begin, edge[k]);
    for (int k = 0; k < n; k++)
        for (int64_t c = 0; c < upper->channels; c += AT_ONCE) {
            const double *from = tgi_granules_slot(lower, i, k + 1) + c;
            push(upper, i, begin, edge[k], edge[k + 1], c,
                 (int)tgi_min(AT_ONCE, upper->channels - c), from, from + upper->channels);
        }
}

static void merge_extremes(float *a, const float *b, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        a[c] = b[c] > a[c] ? b[c] : a[c];
        a[channels + c] = b[channels + c] < a[channels + c] ? b[channels + c] : a[channels + c];
        a[2 * channels + c] += b[2 * channels + c] > 0 && !(a[2 * channels + c] > 0);
    }
}

static void merge_column(tgi_granules *upper, const tgi_granules *lower, int64_t i)
{
    tgi_column *a = &upper->column[i];
    const tgi_column *b = &lower->column[i];
    const int64_t begin = is_begun(a) ? a->begin : b->begin;
    if (upper->what & TGI_GRANULES_MOMENTS) {
        push_subtrees(upper, lower, i, begin);
        memcpy(tgi_granules_slot(upper, i, 0), tgi_granules_slot(lower, i, 0),
               (size_t)upper->channels * 2 * sizeof(double));
    }
    if (upper->what & TGI_GRANULES_EXTREMES)
        merge_extremes(extremes_of(upper, i), extremes_of(lower, i), upper->channels);
    *a = (tgi_column){begin, b->end, b->rows};
}

tg_status tgi_granules_merge(tgi_granules *upper, const tgi_granules *lower, tgi_err *err)
{
    const int64_t columns = upper->down * upper->across;
    if (((upper->what ^ lower->what) & ~TGI_GRANULES_ANYWHERE) ||
        !tgi_desc_same_shape(&upper->full, &lower->full))
        return tgi_fail(err, TG_E_INTERNAL, "statistics of two different images");
    for (int64_t i = 0; i < columns; i++)
        TGI_TRY(check_meeting(upper, lower, i, err));
    for (int64_t i = 0; i < columns; i++)
        if (is_begun(&lower->column[i]))
            merge_column(upper, lower, i);
    return TG_OK;
}

/* ---- Results ----------------------------------------------------------------------------- */

/* 0: column i is whole. */
static int64_t is_missing(const tgi_granules *g, int64_t i)
{
    return g->column[i].begin != 0 || g->column[i].end != g->leaves;
}

int tgi_granules_complete(const tgi_granules *g)
{
    for (int64_t i = 0; i < g->down * g->across; i++)
        if (is_missing(g, i))
            return 0;
    return 1;
}

static tg_status want_complete(const tgi_granules *g, unsigned what, tgi_err *err)
{
    if (!(g->what & what))
        return tgi_fail(err, TG_E_INTERNAL, "statistics that were not gathered");
    for (int64_t i = 0; i < g->down * g->across; i++)
        if (is_missing(g, i))
            return tgi_fail(err, TG_E_INTERNAL,
                            "statistics: granule column %" PRId64 " has granules %" PRId64
                            " to %" PRId64 " and %" PRId64 " rows, expected 0 to %" PRId64,
                            i, g->column[i].begin, g->column[i].end, g->column[i].rows,
                            g->leaves);
    return TG_OK;
}

/* Channel c of a whole column: its subtrees merged from the smallest on. */
static tgi_moments column_moments(const tgi_granules *g, int64_t column, int64_t c)
{
    int i = subtrees(0, g->leaves);
    const double *slot = tgi_granules_slot(g, column, i) + c;
    int64_t at = last_subtree(0, g->leaves);
    tgi_moments m = {values_in(g, column, at, g->leaves), slot[0], slot[g->channels]};
    while (at > 0) {
        const int64_t end = at;
        slot = tgi_granules_slot(g, column, --i) + c;
        at = last_subtree(0, end);
        const tgi_moments left = {values_in(g, column, at, end), slot[0], slot[g->channels]};
        m = tgi_moments_merge(&left, &m);
    }
    return m;
}

tg_status tgi_granules_finish(const tgi_granules *g, int64_t c, tgi_moments *out, tgi_err *err)
{
    tgi_moments_tree tree = {.n_parts = 0};
    TGI_TRY(want_complete(g, TGI_GRANULES_MOMENTS, err));
    for (int64_t i = 0; i < g->down * g->across; i++) {
        const tgi_moments m = column_moments(g, i, c);
        tgi_tree_push(&tree, &m);
    }
    *out = tgi_tree_finish(&tree);
    return TG_OK;
}

tg_status tgi_granules_extremes(const tgi_granules *g, int64_t c, tgi_extremes *out,
                                tgi_err *err)
{
    float all[3] = {-INFINITY, INFINITY, 0};
    TGI_TRY(want_complete(g, TGI_GRANULES_EXTREMES, err));
    for (int64_t i = 0; i < g->down * g->across; i++) {
        const float *e = extremes_of(g, i) + c;
        const float one[3] = {e[0], e[g->channels], e[2 * g->channels]};
        merge_extremes(all, one, 1);
    }
    *out = (tgi_extremes){all[0] + 0.0f, all[1] + 0.0f, all[2] > 0}; /* -0 + 0 is +0 */
    return TG_OK;
}
