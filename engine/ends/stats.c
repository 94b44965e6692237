/* stats.c - counts pixels into histograms and merges mean and variance in fixed pieces. */
#include "engine/ends/stats.h"

#include "engine/base/arith.h"
#include "kernels/pixels.h"

#include <math.h>
#include <string.h>

typedef struct moments {
    double n, mean, m2;
} moments;

/* Chan, Golub and LeVeque: combine two sets of moments. */
static void merge(moments *a, moments b)
{
    const double n = a->n + b.n, d = b.mean - a->mean;
    if (b.n == 0)
        return;
    a->m2 += b.m2 + d * d * a->n * b.n / n;
    a->mean += d * b.n / n;
    a->n = n;
}

/* Order-preserving key of a float: all negative numbers below all positive ones. */
static uint32_t key_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}

static float value_of(uint32_t key)
{
    const uint32_t u = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- The pass ---------------------------------------------------------------------------- */

typedef struct pass {
    const tgi_stats_args *a;
    tg_dtype dtype;
    int narrow;         /* one histogram bin per value */
    int32_t bias;       /* added to a narrow value to get its bin */
    uint64_t *hist;     /* 65,536 bins */
    uint64_t *fine[4];  /* second pass: bins of the lower halves */
    uint32_t prefix[4]; /* upper halves they belong to */
    int n_fine;
    moments m;
    float min, max;
    uint64_t nans;
    double done, total;
} pass;

static void count_narrow(pass *p, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        p->hist[(int32_t)x[i] + p->bias]++;
}

static void count_wide(pass *p, const float *row, int64_t n)
{
    moments m = {0, 0, 0};
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const float x = row[i];
        if (isnan(x)) {
            p->nans++;
            continue;
        }
        p->hist[key_of(x) >> 16]++;
        p->min = x < p->min ? x : p->min;
        p->max = x > p->max ? x : p->max;
        sum += x;
        m.n++;
    }
    m.mean = m.n > 0 ? sum / m.n : 0;
    for (int64_t i = 0; i < n; i++) {
        const float x = row[i];
        if (!isnan(x))
            m.m2 += ((double)x - m.mean) * ((double)x - m.mean);
    }
    merge(&p->m, m);
}

static void count_fine(pass *p, const float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float x = row[i];
        if (isnan(x))
            continue;
        const uint32_t key = key_of(x);
        for (int f = 0; f < p->n_fine; f++)
            if (key >> 16 == p->prefix[f])
                p->fine[f][key & 0xffff]++;
    }
}

typedef void count_piece(pass *p, const float *x, int64_t n);

/* A row in pieces of fixed length: where a piece ends decides how moments are merged. */
static void count_row(pass *p, const char *row, int64_t n, count_piece *count)
{
    float x[1024];
    const size_t size = tgi_dtype_size(p->dtype);
    for (int64_t at = 0; at < n; at += 1024) {
        const int64_t k = tgi_min(1024, n - at);
        tgi_pixels_load(p->dtype, row + (size_t)at * size, k, 1.0f, 0.0f, x, 1);
        count(p, x, k);
    }
}

static tg_status read_plane(pass *p, int64_t plane, int sample, count_piece *count,
                            tgi_err *err)
{
    const tgi_stats_args *a = p->a;
    const tgi_mapping *m = a->map;
    const size_t pitch = (size_t)m->extent[2] * tgi_dtype_size(p->dtype);
    const int64_t step = tgi_max(1, (int64_t)(a->rows_bytes / pitch));
    for (int64_t y = 0; y < m->extent[1]; y += step) {
        const int64_t y1 = tgi_min(y + step, m->extent[1]);
        TGI_TRY(tgi_source_read(a->source, 0, plane, sample, sample + 1, m->origin[1] + y,
                                m->origin[1] + y1, m->origin[2], m->origin[2] + m->extent[2],
                                a->rows, pitch, pitch * (size_t)(y1 - y), err));
        for (int64_t r = 0; r < y1 - y; r++)
            count_row(p, (const char *)a->rows + (size_t)r * pitch, m->extent[2], count);
        p->done += (double)(y1 - y);
        if (a->tick)
            TGI_TRY(a->tick(a->user, p->done / p->total));
    }
    return TG_OK;
}

/* One item's planes, of the set's channel or of all. */
static tg_status walk_item(pass *p, int64_t set, int64_t item, count_piece *count, tgi_err *err)
{
    const tgi_mapping *m = p->a->map;
    for (int64_t z = m->own.slices.lo; z < m->own.slices.hi; z++)
        for (int64_t c = m->own.channels.lo; c < m->own.channels.hi; c++) {
            int sample;
            if (m->stats_each > 1 && c != set % m->stats_each)
                continue;
            const int64_t plane =
                tgi_mapping_plane(m, item, z, &sample) + c * m->channel_stride;
            TGI_TRY(read_plane(p, plane, m->from_samples ? (int)c : sample, count, err));
        }
    return TG_OK;
}

/* All planes of all items that belong to one set. */
static tg_status walk(pass *p, int64_t set, count_piece *count, tgi_err *err)
{
    const tgi_mapping *m = p->a->map;
    const int64_t first = m->stats_each > 1 ? set - set % m->stats_each : set;
    if (m->stats_by_item)
        return walk_item(p, set, m->stats_each > 1 ? set / m->stats_each : set, count, err);
    for (int64_t item = 0; item < m->n_items; item++)
        if (tgi_mapping_stats_of(m, item) == first)
            TGI_TRY(walk_item(p, set, item, count, err));
    return TG_OK;
}

/* ---- Order statistics -------------------------------------------------------------------- */

/* Bin that holds rank r (from 0) and the number of elements before it. */
static int64_t bin_of_rank(const uint64_t *hist, uint64_t r, uint64_t *before)
{
    uint64_t seen = 0;
    for (int64_t b = 0; b < 65536; b++) {
        if (r < seen + hist[b]) {
            *before = seen;
            return b;
        }
        seen += hist[b];
    }
    *before = seen;
    return 65535;
}

static double narrow_at(const pass *p, uint64_t r)
{
    uint64_t before;
    return (double)(bin_of_rank(p->hist, r, &before) - p->bias);
}

static double wide_at(const pass *p, uint64_t r)
{
    uint64_t before, within;
    const uint32_t upper = (uint32_t)bin_of_rank(p->hist, r, &before);
    for (int f = 0; f < p->n_fine; f++)
        if (p->prefix[f] == upper)
            return (double)value_of(upper << 16 |
                                    (uint32_t)bin_of_rank(p->fine[f], r - before, &within));
    return 0;
}

static double at_rank(const pass *p, uint64_t r)
{
    return p->narrow ? narrow_at(p, r) : wide_at(p, r);
}

/* Where a percentile lies among n values in order, from 0. */
static double rank_of(const pass *p, uint64_t n, double q)
{
    if (tgi_normalize_ranked(p->a->norm) == 1)
        return (double)(n - 1) * q / 100.0;
    const double at = ceil((double)n * (q / 100.0) - 1);
    return at > 0 ? at : 0;
}

static double percentile(const pass *p, uint64_t n, double q)
{
    const double pos = rank_of(p, n, q), lo = floor(pos);
    const double a = at_rank(p, (uint64_t)lo);
    const double b = at_rank(p, (uint64_t)lo + ((uint64_t)lo + 1 < n));
    return a + (b - a) * (pos - lo);
}

/* The bins that the second pass must refine: those of both percentiles and their neighbours. */
static void choose_fine(pass *p, uint64_t n)
{
    for (int i = 0; i < 4 && n > 0; i++) {
        const double q = i < 2 ? p->a->norm->a : p->a->norm->b;
        const uint64_t rank = (uint64_t)rank_of(p, n, q) + (uint64_t)(i & 1);
        uint64_t before;
        const uint32_t upper = (uint32_t)bin_of_rank(p->hist, rank < n ? rank : n - 1, &before);
        int known = 0;
        for (int f = 0; f < p->n_fine; f++)
            known |= p->prefix[f] == upper;
        if (!known && p->n_fine < 4)
            p->prefix[p->n_fine++] = upper;
    }
}

static void moments_of_histogram(pass *p)
{
    double n = 0, sum = 0;
    for (int b = 0; b < 65536; b++) {
        n += (double)p->hist[b];
        sum += (double)p->hist[b] * (b - p->bias);
    }
    p->m = (moments){n, n > 0 ? sum / n : 0, 0};
    for (int b = 0; b < 65536; b++) {
        const double d = b - p->bias - p->m.mean;
        p->m.m2 += (double)p->hist[b] * d * d;
    }
}

static void finish_set(pass *p, tgi_stats *s)
{
    const uint64_t n = (uint64_t)p->m.n;
    const int ranked = tgi_normalize_ranked(p->a->norm) != 0;
    *s = (tgi_stats){.count = (int64_t)n, .nans = (int64_t)p->nans};
    if (n == 0)
        return;
    s->mean = p->m.mean;
    s->deviation = sqrt(p->m.m2 / p->m.n);
    s->min = p->narrow ? at_rank(p, 0) : (double)p->min;
    s->max = p->narrow ? at_rank(p, n - 1) : (double)p->max;
    s->low = ranked ? percentile(p, n, p->a->norm->a) : s->min;
    s->high = ranked ? percentile(p, n, p->a->norm->b) : s->max;
}

static tg_status collect_set(pass *p, int64_t set, tgi_stats *s, tgi_err *err)
{
    memset(p->a->scratch, 0, TGI_STATS_SCRATCH);
    p->m = (moments){0, 0, 0};
    p->min = INFINITY;
    p->max = -INFINITY;
    p->nans = 0;
    p->n_fine = 0;
    TGI_TRY(walk(p, set, p->narrow ? count_narrow : count_wide, err));
    if (p->narrow) {
        moments_of_histogram(p);
    } else if (tgi_normalize_ranked(p->a->norm)) {
        choose_fine(p, (uint64_t)p->m.n);
        TGI_TRY(walk(p, set, count_fine, err));
    }
    finish_set(p, s);
    return TG_OK;
}

tg_status tgi_stats_collect(const tgi_stats_args *a, tgi_stats *sets, tgi_err *err)
{
    const tg_dtype t = a->source->ops->info(a->source)->dtype;
    pass p = {.a = a, .dtype = t};
    p.narrow = tgi_dtype_size(t) <= 2 && t != TG_DTYPE_F16;
    p.bias = t == TG_DTYPE_I8 ? 128 : t == TG_DTYPE_I16 ? 32768 : 0;
    p.hist = a->scratch;
    for (int f = 0; f < 4; f++)
        p.fine[f] = p.hist + (size_t)(f + 1) * 65536;
    const tgi_mapping *m = a->map;
    const int twice = !p.narrow && tgi_normalize_ranked(a->norm);
    p.total =
        (double)(m->n_items * m->extent[0] * m->extent[1] * m->channels) * (twice ? 2 : 1);
    for (int64_t s = 0; s < m->n_stats; s++)
        TGI_TRY(collect_set(&p, s, &sets[s], err));
    return TG_OK;
}

/* ---- What comes of them ------------------------------------------------------------------ */

static double bound(tgi_norm_from from, const double *here, int n, const tgi_stats *s,
                    int64_t c)
{
    switch (from) {
    case TGI_FROM_HERE:
        return here[c % n];
    case TGI_FROM_MIN:
        return s->min;
    case TGI_FROM_MAX:
        return s->max;
    case TGI_FROM_LOW:
        return s->low;
    case TGI_FROM_HIGH:
        return s->high;
    }
    return 0;
}

static double hold(double x, double lo, double hi)
{
    const double up = x > lo ? x : lo;
    return up < hi ? up : hi;
}

/* What is clipped behind a linear map is clipped before it, at other bounds. */
static void clip(tgi_affine *m, double lo, double hi)
{
    if (m->mul == 0) {
        m->add = hold(m->add, lo, hi);
        return;
    }
    const double p = (lo - m->add) / m->mul, q = (hi - m->add) / m->mul;
    const double from = p < q ? p : q, to = p < q ? q : p;
    m->lo = m->clips ? hold(m->lo, from, to) : from;
    m->hi = m->clips ? hold(m->hi, from, to) : to;
    m->clips = 1;
}

static void scale(tgi_affine *m, double mul, double add)
{
    m->mul *= mul;
    m->add = m->add * mul + add;
}

static tgi_affine chain(const tgi_normalize_spec *norm, const tgi_stats *s, int64_t c)
{
    tgi_affine m = {.mul = 1};
    for (int i = 0; i < norm->n_step; i++) {
        const tgi_norm_step *t = &norm->step[i];
        if (t->op == TGI_NORM_CENTRE) {
            scale(&m, 1 / (s->deviation + t->eps), -s->mean / (s->deviation + t->eps));
            continue;
        }
        const double a = bound(t->a_from, t->a, t->n, s, c),
                     b = bound(t->b_from, t->b, t->n, s, c);
        if (t->op == TGI_NORM_LINEAR)
            scale(&m, a, b);
        else if (t->op == TGI_NORM_CLIP)
            clip(&m, a, b);
        else
            scale(&m, 1 / (b - a + t->eps), -a / (b - a + t->eps));
    }
    return m;
}

tgi_affine tgi_stats_back(const tgi_normalize_spec *norm, const tgi_stats *s)
{
    const tgi_norm_step *t = &norm->back;
    if (t->op == TGI_NORM_CENTRE)
        return (tgi_affine){.mul = s->deviation + t->eps, .add = s->mean};
    const double a = bound(t->a_from, t->a, t->n, s, 0), b = bound(t->b_from, t->b, t->n, s, 0);
    return (tgi_affine){.mul = 1 / (b - a + t->eps), .add = -a / (b - a + t->eps)};
}

tgi_affine tgi_stats_affine(const tgi_normalize_spec *norm, const tgi_stats *s, int64_t c)
{
    double shift = 0, spread = 1;
    switch (norm->kind) {
    case TGI_NORM_NONE:
        return (tgi_affine){.mul = 1};
    case TGI_NORM_SCALE:
        return (tgi_affine){.mul = norm->a, .add = norm->b};
    case TGI_NORM_CHAIN:
        return chain(norm, s, c);
    case TGI_NORM_MINMAX:
    case TGI_NORM_PERCENTILE:
        shift = s->low;
        spread = s->high - s->low;
        break;
    case TGI_NORM_ZSCORE:
        shift = s->mean;
        spread = s->deviation;
        break;
    }
    if (!(spread > 0))
        spread = 1;
    return (tgi_affine){.mul = 1 / spread, .add = -shift / spread};
}
