/* Statistics over granules: the same bits from any tiles in any order, and as exact as double
 * sums can be. */
#include "kernels/granule.h"

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"
#include "tests/tg_test.h"

typedef struct picture {
    tgi_desc full;
    tgi_view view[2]; /* channels in one or two segments */
    tgi_operand src;
    float *mem[2];
} picture;

/* A picture of `c` channels, the first `split` of them in a segment of their own (0: none), in
 * blocks of cb lanes. Values are mean + spread * noise; z = 0: a 2-D image. */
static picture draw(int64_t c, int64_t split, int cb, int64_t z, int64_t y, int64_t x,
                    double mean, double spread, uint64_t seed)
{
    picture p = {.full = z ? (tgi_desc){TG_DTYPE_F32, 5, {1, c, z, y, x}}
                           : (tgi_desc){TG_DTYPE_F32, 4, {1, c, y, x}}};
    const int64_t part[2] = {split ? split : c, c - split}, planes = z ? z : 1;
    p.src.n_seg = split ? 2 : 1;
    for (int s = 0; s < p.src.n_seg; s++) {
        const int64_t blocks = tgi_ceil_div(part[s], cb);
        const size_t row = (size_t)(x * cb);
        const size_t n = row * (size_t)(y * planes * blocks);
        p.mem[s] = malloc(n * sizeof(float));
        for (size_t i = 0; i < n; i++) /* roughly normal, variance 1 */
            p.mem[s][i] =
                (float)(mean + spread * (double)(tg_rand_unit(&seed) + tg_rand_unit(&seed) +
                                                 tg_rand_unit(&seed)));
        p.view[s] = (tgi_view){.base = p.mem[s],
                               .c = part[s],
                               .cb = cb,
                               .width = x,
                               .y_pitch = row,
                               .z_pitch = row * (size_t)y,
                               .block_pitch = row * (size_t)(y * planes),
                               .y_ring = y,
                               .z_ring = planes};
    }
    return p;
}

static void erase(picture *p)
{
    free(p->mem[0]);
    free(p->mem[1]);
}

static const tgi_operand *operand(picture *p)
{
    p->src.seg = p->view;
    return &p->src;
}

static void check_bits(const tgi_moments *a, const tgi_moments *b)
{
    CHECK(memcmp(a, b, sizeof *a) == 0);
}

/* ---- Tiles ------------------------------------------------------------------------------- */

#define MAX_TILES 256

typedef struct tile {
    tgi_range y, x; /* the tile's share */
    int64_t at;     /* next row (2-D) or plane (3-D) to bring */
} tile;

typedef struct cutting {
    tile t[MAX_TILES];
    int n;
    uint64_t seed;
} cutting;

/* Cut a box at random until it is small or luck ends: any partition into boxes can come out,
 * cut anywhere. */
static void cut_at_random(cutting *c, tgi_range y, tgi_range x, const picture *p, int depth)
{
    const int across = (int)tg_rand_in(&c->seed, 0, 1);
    const tgi_range r = across ? x : y;
    if (depth == 0 || tgi_range_len(r) < 2 || tg_rand_in(&c->seed, 0, 7) == 0) {
        if (c->n == MAX_TILES)
            exit(1);
        c->t[c->n++] = (tile){tgi_granule_share(y, tgi_desc_axis(&p->full, TGI_Y)),
                              tgi_granule_share(x, tgi_desc_axis(&p->full, TGI_X)), 0};
        return;
    }
    const int64_t at = tg_rand_in(&c->seed, r.lo + 1, r.hi - 1);
    const tgi_range a = {r.lo, at}, b = {at, r.hi};
    cut_at_random(c, across ? y : a, across ? a : x, p, depth - 1);
    cut_at_random(c, across ? y : b, across ? b : x, p, depth - 1);
}

/* The next few rows of the tile; for volumes its next few planes. */
static tgi_box next_band(tile *t, const picture *p, uint64_t *seed)
{
    tgi_box b = tgi_box_full(&p->full);
    const int r = b.rank;
    const int64_t rows = tg_rand_in(seed, 1, r == 5 ? 2 : 70);
    b.ax[r - 1] = t->x;
    b.ax[r - 2] = t->y;
    const tgi_range left = r == 5 ? b.ax[2] : t->y;
    b.ax[2] = (tgi_range){left.lo + t->at, tgi_min(left.lo + t->at + rows, left.hi)};
    t->at += rows;
    return b;
}

static int is_done(const tile *t, const picture *p)
{
    return t->at >= (p->full.rank == 5 ? p->full.dim[2] : tgi_range_len(t->y));
}

static void accumulate(tgi_granules *g, picture *p, cutting *c)
{
    tgi_err e = {0};
    while (c->n) {
        const int i = (int)tg_rand_in(&c->seed, 0, c->n - 1);
        if (is_done(&c->t[i], p)) {
            c->t[i] = c->t[--c->n];
            continue;
        }
        const tgi_box b = next_band(&c->t[i], p, &c->seed);
        CHECK_OK(tgi_granules_add(g, operand(p), &b, &e), e);
    }
}

static void check_any_tiles(picture *p, int times)
{
    void *mem = malloc(tgi_granules_bytes(&p->full));
    int tiles = 0;
    for (int k = 1; k <= times; k++) {
        tgi_granules g;
        tgi_err e = {0};
        cutting c = {.seed = 7919ull * (uint64_t)k};
        tgi_granules_init(&g, &p->full, mem);
        cut_at_random(&c, (tgi_range){0, tgi_desc_axis(&p->full, TGI_Y)},
                      (tgi_range){0, tgi_desc_axis(&p->full, TGI_X)}, p, k % 7);
        tiles += c.n;
        accumulate(&g, p, &c);
        for (int64_t ch = 0; ch < p->full.dim[1]; ch++) {
            tgi_moments m;
            const tgi_moments whole = tgi_granule_channel(operand(p), &p->full, ch);
            CHECK_OK(tgi_granules_finish(&g, ch, &m, &e), e);
            check_bits(&m, &whole);
        }
    }
    printf("     %d cuttings, %d tiles\n", times, tiles);
    free(mem);
}

static void any_tiles_in_any_order_give_the_same_bits(void)
{
    picture p = draw(3, 0, 1, 0, 211, 333, 1e4, 1.0, 1);
    check_any_tiles(&p, 60);
    erase(&p);
    p = draw(2, 0, 1, 0, 64, 640, -3.0, 100.0, 2); /* the border on a granule's end */
    check_any_tiles(&p, 40);
    erase(&p);
    p = draw(1, 0, 1, 0, 1, 1000, 0.5, 1e-3, 3);
    check_any_tiles(&p, 20);
    erase(&p);
}

static void volumes_and_blocks_of_channels_and_segments_too(void)
{
    picture p = draw(2, 0, 1, 9, 70, 150, 0.0, 1.0, 4);
    check_any_tiles(&p, 30);
    erase(&p);
    p = draw(21, 9, 8, 0, 130, 200, 5.0, 1.0, 5);
    check_any_tiles(&p, 10);
    const tgi_moments a = tgi_granule_channel(operand(&p), &p.full, 12);
    /* Channel 12 is the fourth of the second segment. */
    double sum = 0;
    for (int64_t y = 0; y < 130; y++)
        for (int64_t x = 0; x < 200; x++)
            sum += (double)*tgi_view_at(&p.view[1], 3, 0, y, x);
    CHECK_NEAR(a.sum, sum, 1e-9 * fabs(sum));
    erase(&p);
}

static void what_divides_a_granule_or_comes_out_of_turn_is_refused(void)
{
    picture p = draw(1, 0, 1, 0, 100, 200, 0.0, 1.0, 6);
    void *mem = malloc(tgi_granules_bytes(&p.full));
    tgi_granules g;
    tgi_moments m;
    tgi_err e = {0};
    tgi_box b = tgi_box_full(&p.full);
    tgi_granules_init(&g, &p.full, mem);
    b.ax[3] = (tgi_range){0, 100};
    CHECK_STATUS(tgi_granules_add(&g, operand(&p), &b, &e), TG_E_INTERNAL, e);
    b.ax[3] = (tgi_range){0, 200};
    b.ax[2] = (tgi_range){10, 20}; /* rows 0 to 9 are not there */
    CHECK_STATUS(tgi_granules_add(&g, operand(&p), &b, &e), TG_E_INTERNAL, e);
    CHECK_STATUS(tgi_granules_finish(&g, 0, &m, &e), TG_E_INTERNAL, e);
    b.ax[2] = (tgi_range){0, 99}; /* the last row is missing */
    CHECK_OK(tgi_granules_add(&g, operand(&p), &b, &e), e);
    CHECK_STATUS(tgi_granules_finish(&g, 0, &m, &e), TG_E_INTERNAL, e);
    b.ax[2] = (tgi_range){98, 100}; /* row 98 a second time */
    CHECK_STATUS(tgi_granules_add(&g, operand(&p), &b, &e), TG_E_INTERNAL, e);
    free(mem);
    erase(&p);
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

/* Mean and variance in two passes, in extended precision. */
static void two_passes(const picture *p, long double *mean, long double *variance)
{
    const size_t n = (size_t)(p->full.dim[2] * p->full.dim[3]);
    long double s = 0, q = 0;
    for (size_t i = 0; i < n; i++)
        s += (long double)p->mem[0][i];
    *mean = s / (long double)n;
    for (size_t i = 0; i < n; i++) {
        const long double d = (long double)p->mem[0][i] - *mean;
        q += d * d;
    }
    *variance = q / (long double)n;
}

/* Sums of float32 values are all but exact in double, so a mean carries the rounding of its
 * one division: below 4 half units in the last place. A variance adds 1.7 million rounded
 * squares and 27,000 merges: errors of either sign, tens of units together. */
static void check_exact(double mean, double spread)
{
    picture p = draw(1, 0, 1, 0, 1500, 1111, mean, spread, 77);
    long double want_mean, want_variance;
    two_passes(&p, &want_mean, &want_variance);
    const tgi_moments m = tgi_granule_channel(operand(&p), &p.full, 0);
    const double em =
        (double)fabsl(((long double)tgi_moments_mean(&m) - want_mean) / want_mean);
    const double ev =
        (double)fabsl(((long double)tgi_moments_variance(&m) - want_variance) / want_variance);
    printf("     mean %g, deviation %g: relative errors %.1e and %.1e\n", mean, spread, em, ev);
    CHECK(em <= 4e-16);
    CHECK(ev <= 1e-14);
    erase(&p);
}

static void means_and_variances_are_exact_to_the_last_digits(void)
{
    check_exact(1e4, 1.0);
    check_exact(1.0, 1.0);
    check_exact(1e6, 0.5);
    check_exact(1e-3, 10.0); /* the mean is mostly cancellation */
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
    RUN(any_tiles_in_any_order_give_the_same_bits);
    RUN(volumes_and_blocks_of_channels_and_segments_too);
    RUN(what_divides_a_granule_or_comes_out_of_turn_is_refused);
    RUN(shares_of_neighbouring_tiles_meet_and_cover_all);
    RUN(the_tree_has_one_shape_for_each_number_of_leaves);
    RUN(means_and_variances_are_exact_to_the_last_digits);
    RUN(a_constant_has_no_variance);
    return TEST_END();
}
