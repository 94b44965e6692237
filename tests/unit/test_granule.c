/* The order of sums over granules: what it is, and as exact as double sums can be. */
#include "tests/unit/granule_case.h"

/* ---- The order by its definition --------------------------------------------------------- */

/* A granule from its rows, each in two passes. */
static tgi_moments plain_granule(const picture *p, int64_t c, int64_t z, int64_t gy, int64_t gx)
{
    const int64_t bottom = tgi_min(gy * 64 + 64, tgi_desc_axis(&p->full, TGI_Y)),
                  right = tgi_min(gx * 64 + 64, tgi_desc_axis(&p->full, TGI_X));
    tgi_moments m = {0, 0, 0};
    for (int64_t y = gy * 64; y < bottom; y++) {
        tgi_moments row = {(double)(right - gx * 64), 0, 0};
        for (int64_t x = gx * 64; x < right; x++)
            row.sum += (double)*pixel(p, c, z, y, x);
        for (int64_t x = gx * 64; x < right; x++) {
            const double d = (double)*pixel(p, c, z, y, x) - row.sum / row.n;
            row.m2 += d * d;
        }
        m = y == gy * 64 ? row : tgi_moments_merge(&m, &row);
    }
    return m;
}

/* Merge n numbers in place, level by level: 0 with 1, 2 with 3; an odd one goes up. */
static tgi_moments level_by_level(tgi_moments *m, int64_t n)
{
    for (; n > 1; n = (n + 1) / 2)
        for (int64_t i = 0; i < (n + 1) / 2; i++)
            m[i] = 2 * i + 1 < n ? tgi_moments_merge(&m[2 * i], &m[2 * i + 1]) : m[2 * i];
    return m[0];
}

/* Columns along y of an image and z of a volume, then the columns. */
static tgi_moments plain_order(const picture *p, int64_t c)
{
    const int is_volume = p->full.rank == 5;
    const int64_t gx = tgi_ceil_div(tgi_desc_axis(&p->full, TGI_X), 64),
                  gy = tgi_ceil_div(tgi_desc_axis(&p->full, TGI_Y), 64);
    const int64_t leaves = is_volume ? p->full.dim[2] : gy, down = is_volume ? gy : 1;
    tgi_moments column[64], leaf[64];
    for (int64_t i = 0; i < down * gx; i++) {
        for (int64_t k = 0; k < leaves; k++)
            leaf[k] = plain_granule(p, c, is_volume ? k : 0, is_volume ? i / gx : k, i % gx);
        column[i] = level_by_level(leaf, leaves);
    }
    return level_by_level(column, down * gx);
}

static void check_order(int64_t z, int64_t y, int64_t x)
{
    picture p = draw(2, 0, 1, z, y, x, 1e3, 1.0, (uint64_t)(z + y * 7 + x * 13));
    for (int64_t c = 0; c < 2; c++) {
        const tgi_moments got = tgi_granule_channel(operand(&p), &p.full, c),
                          want = plain_order(&p, c);
        check_bits(&got, &want);
    }
    erase(&p);
}

static void the_reference_sums_down_columns_and_then_across(void)
{
    check_order(0, 64 * 11, 64 * 7); /* both not powers of two */
    check_order(0, 64 * 5 + 1, 64 * 6 + 1);
    check_order(0, 1, 1000);
    check_order(0, 1000, 1);
    check_order(11, 70, 150);
    check_order(1, 200, 200);
}

/* ---- Shares and the tree ----------------------------------------------------------------- */

static void shares_of_neighbouring_tiles_meet_and_cover_all(void)
{
    for (int64_t dim = 1; dim <= 300; dim += 7)
        for (int64_t step = 1; step <= dim; step += 5) {
            int64_t end = 0;
            for (int64_t lo = 0; lo < dim; lo += step) {
                const tgi_range s =
                    tgi_granule_share((tgi_range){lo, tgi_min(lo + step, dim)}, dim);
                CHECK_EQ(s.lo, end);
                CHECK(s.hi < lo + step + TGI_GRANULE);
                end = s.hi;
            }
            CHECK_EQ(end, dim);
        }
}

static tgi_moments leaf_number(int i)
{
    return (tgi_moments){64, 0.1 * (double)(i * i) + 1.0 / (double)(i + 3), 1.0 / (i + 1)};
}

/* Leaves [lo, hi): the left subtree has the largest power of two that leaves something. */
static tgi_moments by_definition(int lo, int hi)
{
    int left = 1;
    if (hi - lo == 1)
        return leaf_number(lo);
    while (2 * left < hi - lo)
        left *= 2;
    const tgi_moments a = by_definition(lo, lo + left), b = by_definition(lo + left, hi);
    return tgi_moments_merge(&a, &b);
}

static void the_tree_has_one_shape_for_each_number_of_leaves(void)
{
    for (int n = 1; n <= 70; n++) {
        tgi_moments_tree t = {.n_parts = 0};
        for (int i = 0; i < n; i++) {
            const tgi_moments m = leaf_number(i);
            tgi_tree_push(&t, &m);
        }
        const tgi_moments got = tgi_tree_finish(&t), want = by_definition(0, n);
        check_bits(&got, &want);
    }
}

/* ---- How exact --------------------------------------------------------------------------- */

#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 quad;
#else
typedef long double quad;
#endif

/* Mean and variance in two passes. With 113 bits both sums are exact to 1e-27. */
static void two_passes(const picture *p, quad *mean, quad *variance)
{
    const size_t n = (size_t)(p->full.dim[2] * p->full.dim[3]);
    quad s = 0, q = 0;
    for (size_t i = 0; i < n; i++)
        s += (quad)p->mem[0][i];
    *mean = s / (quad)n;
    for (size_t i = 0; i < n; i++) {
        const quad d = (quad)p->mem[0][i] - *mean;
        q += d * d;
    }
    *variance = q / (quad)n;
}

static double relative(double got, quad want)
{
    return fabs((double)(((quad)got - want) / want));
}

/* In units of u = 2^-53. Mean: sums of float32 values are all but exact in double, so it
 * carries the rounding of its one division: below 4 u.
 *
 * Variance: a row adds 64 rounded squares of either sign, some 8 u and 64 at worst, and merges a
 * few more. What counts is d of a merge, the difference of two products of a sum and a count:
 * both are mean * na * nb, and d only deviation * na * nb / nb^0.5 (nb: the smaller count).
 *  - Counts of whole granules are powers of two times few: the products have no more than 53
 *    bits and are exact, whatever the mean. Then the bound is 64 + 8 u.
 *  - Where the last granules are smaller, products are rounded by u of themselves each. That
 *    moves d * d / (na * nb * n) by 4 * mean * deviation * nb^0.5 u, of n * deviation^2. */
static void check_exact(int64_t h, int64_t w, double mean, double spread, double smaller)
{
    const double u = 0x1p-53, n = (double)(h * w);
    const double bound = 72 + 4 * mean / spread * sqrt(smaller) / n;
    picture p = draw(1, 0, 1, 0, h, w, mean, spread, 77);
    quad want_mean, want_variance;
    two_passes(&p, &want_mean, &want_variance);
    const tgi_moments m = tgi_granule_channel(operand(&p), &p.full, 0);
    const double em = relative(tgi_moments_mean(&m), want_mean) / u,
                 ev = relative(tgi_moments_variance(&m), want_variance) / u;
    printf("     %dx%d, mean %g, deviation %g: off by %.1f u and %.1f u (bound %.0f)\n", (int)h,
           (int)w, mean, spread, em, ev, bound);
    CHECK(em <= 4);
    CHECK(ev <= bound);
    erase(&p);
}

static void means_and_variances_are_exact_to_the_last_digits(void)
{
    static const double cases[][2] = {{1e4, 1},   {1e5, 1}, {1e6, 1},
                                      {1e6, 0.5}, {1, 1},   {1e-3, 10}}; /* mean, deviation */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_exact(1536, 1088, cases[i][0], cases[i][1], 0);
        /* Columns 0 to 15, then 16 with the narrow 17. */
        check_exact(1500, 1111, cases[i][0], cases[i][1], 1500 * (64 + 23));
    }
}

/* A constant image has no variance at all. */
static void a_constant_has_no_variance(void)
{
    picture p = draw(1, 0, 1, 0, 100, 300, 0.1, 0.0, 9);
    const tgi_moments m = tgi_granule_channel(operand(&p), &p.full, 0);
    CHECK(m.m2 == 0.0);
    CHECK((float)tgi_moments_mean(&m) == p.mem[0][0]);
    erase(&p);
}

int main(void)
{
    RUN(the_reference_sums_down_columns_and_then_across);
    RUN(shares_of_neighbouring_tiles_meet_and_cover_all);
    RUN(the_tree_has_one_shape_for_each_number_of_leaves);
    RUN(means_and_variances_are_exact_to_the_last_digits);
    RUN(a_constant_has_no_variance);
    return TEST_END();
}
