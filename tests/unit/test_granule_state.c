/* Statistics from pieces: the bits of the whole image by every kernel set, however it is cut,
 * wherever a column begins, and over stops and resumptions. */
#include "tests/unit/granule_case.h"

#define BOTH (TGI_GRANULES_MOMENTS | TGI_GRANULES_EXTREMES)
#define GUARD 64 /* bytes behind a state that nobody may touch */

static tgi_threads *pool[4]; /* [n]: n threads */

/* ---- A state in memory of its own -------------------------------------------------------- */

typedef struct holder {
    tgi_granules g;
    size_t bytes;
    char *mem;
} holder;

static char *guarded(size_t bytes)
{
    char *p = malloc(bytes + GUARD);
    memset(p, 0xA5, bytes + GUARD);
    return p;
}

static void hold(holder *h, const picture *p, unsigned what)
{
    h->bytes = tgi_granules_bytes(&p->full, what);
    h->mem = guarded(h->bytes);
    tgi_granules_init(&h->g, &p->full, what, h->mem);
}

static void drop(holder *h)
{
    int touched = 0;
    for (int i = 0; i < GUARD; i++)
        touched += h->mem[h->bytes + (size_t)i] != (char)0xA5;
    CHECK_EQ(touched, 0);
    free(h->mem);
    h->mem = NULL;
}

/* Write the bytes away and read them back elsewhere; nothing of the old memory is left. */
static void save_and_resume(holder *h)
{
    tgi_err e = {0};
    char *elsewhere = guarded(h->bytes);
    const tgi_desc full = h->g.full;
    const unsigned what = h->g.what;
    memcpy(elsewhere, h->mem, h->bytes);
    memset(h->mem, 0xA5, h->bytes);
    memset(&h->g, 0xA5, sizeof h->g);
    drop(h);
    h->mem = elsewhere;
    CHECK_OK(tgi_granules_resume(&h->g, &full, what, h->mem, h->bytes, &e), e);
}

/* What a device would have computed of a box: the moments of its rows, by the definition. */
static double *sums_of(const picture *p, const tgi_box *b)
{
    const tgi_range z = tgi_box_axis(b, TGI_Z), y = tgi_box_axis(b, TGI_Y),
                    x = tgi_box_axis(b, TGI_X);
    const int64_t c = p->full.dim[1], granules = tgi_ceil_div(tgi_range_len(x), TGI_GRANULE);
    double *const all = calloc(
        (size_t)(tgi_range_len(z) * tgi_range_len(y) * granules * 2 * c) + 1, sizeof *all);
    double *to = all;
    for (int64_t k = z.lo; k < z.hi; k++)
        for (int64_t j = y.lo; j < y.hi; j++)
            for (int64_t i = x.lo; i < x.hi; i += TGI_GRANULE, to += 2 * c)
                for (int64_t a = 0; a < c; a++) {
                    const int64_t end = tgi_min(x.hi, i + TGI_GRANULE);
                    for (int64_t at = i; at < end; at++)
                        to[a] += (double)*pixel(p, a, k, j, at);
                    const double mean = to[a] / (double)(end - i);
                    for (int64_t at = i; at < end; at++) {
                        const double d = (double)*pixel(p, a, k, j, at) - mean;
                        to[c + a] += d * d;
                    }
                }
    return all;
}

/* The same box as sums of its rows. */
static tg_status add_sums(holder *h, const picture *p, const tgi_box *b, uint64_t *seed,
                          tgi_err *e)
{
    double *const sums = sums_of(p, b);
    const tg_status st = tgi_granules_add_rows(&h->g, sums, b, pool[tg_rand_in(seed, 0, 3)], e);
    free(sums);
    return st;
}

/* Add a box out of memory that holds nothing else, some as sums of rows. A refusal must leave every
 * byte. */
static tg_status add(holder *h, const picture *p, const tgi_box *b, const tgi_kernel_set *be,
                     uint64_t *seed)
{
    tgi_err e = {0};
    char *was = malloc(h->bytes);
    picture q = piece_of(p, b, seed);
    memcpy(was, h->mem, h->bytes);
    const int as_sums = !(h->g.what & TGI_GRANULES_EXTREMES) && tg_rand_in(seed, 0, 3) == 0;
    const tg_status st =
        as_sums ? add_sums(h, p, b, seed, &e)
                : be->granules_add(&h->g, operand(&q), b, pool[tg_rand_in(seed, 0, 3)], &e);
    if (st != TG_OK)
        CHECK(memcmp(was, h->mem, h->bytes) == 0 && st == TG_E_INTERNAL && e.text[0]);
    erase(&q);
    free(was);
    return st;
}

/* ---- What must come out ------------------------------------------------------------------ */

static void check_extremes(const holder *h, const picture *p, int64_t c)
{
    tgi_extremes got = {0};
    tgi_err e = {0};
    float largest = -INFINITY, smallest = INFINITY;
    int has_nan = 0;
    for (int64_t z = 0; z < tgi_desc_axis(&p->full, TGI_Z); z++)
        for (int64_t y = 0; y < tgi_desc_axis(&p->full, TGI_Y); y++)
            for (int64_t x = 0; x < tgi_desc_axis(&p->full, TGI_X); x++) {
                const float v = *pixel(p, c, z, y, x);
                largest = v > largest ? v : largest;
                smallest = v < smallest ? v : smallest;
                has_nan |= v != v;
            }
    CHECK_OK(tgi_granules_extremes(&h->g, c, &got, &e), e);
    CHECK(got.largest == largest && got.smallest == smallest && got.has_nan == has_nan);
}

static void check_whole(const holder *h, picture *p)
{
    tgi_err e = {0};
    CHECK(tgi_granules_complete(&h->g));
    for (int64_t c = 0; c < p->full.dim[1]; c++) {
        tgi_moments m = {0, 0, 0};
        const tgi_moments whole = tgi_granule_channel(operand(p), &p->full, c);
        CHECK_OK(tgi_granules_finish(&h->g, c, &m, &e), e);
        check_bits(&m, &whole);
        if (h->g.what & TGI_GRANULES_EXTREMES)
            check_extremes(h, p, c);
    }
}

/* ---- Cells ------------------------------------------------------------------------------- */

#define MAX_CELLS 256

typedef struct cell {
    tgi_range y, x; /* its share */
    int64_t at;     /* rows (of volumes planes) that were brought */
} cell;

typedef struct cutting {
    cell t[MAX_CELLS];
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
        if (c->n == MAX_CELLS)
            exit(1);
        c->t[c->n++] = (cell){tgi_granule_share(y, tgi_desc_axis(&p->full, TGI_Y)),
                              tgi_granule_share(x, tgi_desc_axis(&p->full, TGI_X)), 0};
        return;
    }
    const int64_t at = tg_rand_in(&c->seed, r.lo + 1, r.hi - 1);
    const tgi_range a = {r.lo, at}, b = {at, r.hi};
    cut_at_random(c, across ? y : a, across ? a : x, p, depth - 1);
    cut_at_random(c, across ? y : b, across ? b : x, p, depth - 1);
}

static void cut_picture(cutting *c, const picture *p, int depth)
{
    cut_at_random(c, (tgi_range){0, tgi_desc_axis(&p->full, TGI_Y)},
                  (tgi_range){0, tgi_desc_axis(&p->full, TGI_X)}, p, depth);
}

/* Stretch of the cell along the stream axis. */
static tgi_range stretch(const cell *t, const picture *p)
{
    return p->full.rank == 5 ? (tgi_range){0, p->full.dim[2]} : t->y;
}

static int is_done(const cell *t, const picture *p)
{
    return t->at >= tgi_range_len(stretch(t, p)) || tgi_range_len(t->x) == 0 ||
           tgi_range_len(t->y) == 0;
}

/* The next few rows of the cell; for volumes its next few planes. */
static tgi_box next_band(const cell *t, const picture *p, uint64_t *seed)
{
    tgi_box b = tgi_box_full(&p->full);
    const int r = b.rank;
    const int64_t rows = tg_rand_in(seed, 1, r == 5 ? 2 : 70);
    const tgi_range left = stretch(t, p);
    b.ax[r - 1] = t->x;
    b.ax[r - 2] = t->y;
    b.ax[2] = (tgi_range){left.lo + t->at, tgi_min(left.lo + t->at + rows, left.hi)};
    return b;
}

/* Cells in any order that the state takes: who comes before what is above it, tries again. */
static void bring_all(holder *h, picture *p, cutting *c, const tgi_kernel_set *be)
{
    for (int refused = 0; c->n && refused < 100000;) {
        const int i = (int)tg_rand_in(&c->seed, 0, c->n - 1);
        if (is_done(&c->t[i], p)) {
            c->t[i] = c->t[--c->n];
            continue;
        }
        const tgi_box b = next_band(&c->t[i], p, &c->seed);
        if (add(h, p, &b, be, &c->seed) == TG_OK)
            c->t[i].at += tgi_range_len(b.ax[2]);
        else
            refused++;
        if (tg_rand_in(&c->seed, 0, 3) == 0)
            save_and_resume(h);
    }
    CHECK_EQ(c->n, 0);
}

static void check_any_cells(picture *p, const tgi_kernel_set *be, int times)
{
    int cells = 0;
    for (int k = 1; k <= times; k++) {
        cutting c = {.seed = 7919ull * (uint64_t)k};
        holder h;
        hold(&h, p, k % 3 ? TGI_GRANULES_MOMENTS : BOTH);
        cut_picture(&c, p, k % 7);
        cells += c.n;
        bring_all(&h, p, &c, be);
        check_whole(&h, p);
        drop(&h);
    }
    printf("     %s, %d lanes: %d cuttings, %d cells\n", be->name, p->view[0].cb, times, cells);
}

static void any_cells_and_bands_give_the_same_bits(void)
{
    const tgi_kernel_set *be;
    for (int i = 0; (be = kernel_set(i)) != NULL; i++) {
        picture p = draw(3, 0, 1, 0, 211, 333, 1e4, 1.0, 1);
        check_any_cells(&p, be, 30);
        erase(&p);
        p = draw(2, 0, 1, 0, 640, 64, -3.0, 100.0, 2); /* the border on a granule's end */
        check_any_cells(&p, be, 20);
        erase(&p);
        p = draw(1, 0, 1, 0, 1, 1000, 0.5, 1e-3, 3);
        check_any_cells(&p, be, 10);
        erase(&p);
        p = draw(be->lanes + 3, 0, be->lanes, 0, 129, 129, 1e6, 1.0, 8); /* ends of one pixel */
        check_any_cells(&p, be, 14);
        erase(&p);
    }
}

static void volumes_and_segments_too(void)
{
    const tgi_kernel_set *be;
    for (int i = 0; (be = kernel_set(i)) != NULL; i++) {
        picture p = draw(2, 0, 1, 9, 70, 150, 0.0, 1.0, 4);
        check_any_cells(&p, be, 14);
        erase(&p);
        p = draw(be->lanes + 2, 0, be->lanes, 7, 65, 65, 1e5, 1.0, 6);
        check_any_cells(&p, be, 7);
        erase(&p);
        p = draw(be->lanes + 13, 9, be->lanes, 0, 130, 200, 5.0, 1.0, 5);
        check_any_cells(&p, be, 7);
        erase(&p);
        p = draw(5, 2, 1, 0, 130, 200, 5.0, 1.0, 5);
        check_any_cells(&p, be, 7);
        erase(&p);
    }
}

/* Rows of a plane of a volume in several bands: the granule is done when its rows are in. */
static void rows_within_the_planes_of_a_volume(void)
{
    picture p = draw(2, 0, 1, 5, 100, 70, 1.0, 1.0, 12);
    uint64_t seed = 99;
    holder h;
    hold(&h, &p, BOTH);
    for (int64_t z = 0; z < 5; z++)
        for (int64_t y = 0; y < 100;) {
            tgi_box b = tgi_box_full(&p.full);
            b.ax[2] = (tgi_range){z, z + 1};
            b.ax[3] = (tgi_range){y, tgi_min(y + tg_rand_in(&seed, 1, 40), 100)};
            CHECK_EQ(add(&h, &p, &b, kernel_set(0), &seed), TG_OK);
            save_and_resume(&h);
            y = b.ax[3].hi;
        }
    check_whole(&h, &p);
    drop(&h);
    erase(&p);
}

/* ---- Parts ------------------------------------------------------------------------------- */

/* Merge two states as far as they meet; a refusal leaves every byte. */
static int try_merge(holder *upper, holder *lower)
{
    tgi_err e = {0};
    char *was = malloc(upper->bytes);
    memcpy(was, upper->mem, upper->bytes);
    const tg_status st = tgi_granules_merge(&upper->g, &lower->g, &e);
    if (st != TG_OK)
        CHECK(memcmp(was, upper->mem, upper->bytes) == 0 && st == TG_E_INTERNAL && e.text[0]);
    free(was);
    return st == TG_OK;
}

static void fill_part(holder *h, picture *p, cell t, const tgi_kernel_set *be, uint64_t *seed)
{
    hold(h, p, BOTH | TGI_GRANULES_ANYWHERE);
    while (!is_done(&t, p)) {
        const tgi_box b = next_band(&t, p, seed);
        CHECK_EQ(add(h, p, &b, be, seed), TG_OK);
        t.at += tgi_range_len(b.ax[2]);
    }
    save_and_resume(h);
}

/* A box as one state: cut in two at random, each half a state of its own made the same way, and
 * merged. Halves beside each other have no column in common and merge either way. */
static holder box_in_parts(tgi_range y, tgi_range x, picture *p, const tgi_kernel_set *be,
                           int depth, uint64_t *seed, int *parts)
{
    holder h[2];
    const int across = (int)tg_rand_in(seed, 0, 2) == 0;
    const tgi_range r = across ? x : y;
    if (depth == 0 || tgi_range_len(r) < 2) {
        const cell t = {tgi_granule_share(y, tgi_desc_axis(&p->full, TGI_Y)),
                        tgi_granule_share(x, tgi_desc_axis(&p->full, TGI_X)), 0};
        fill_part(&h[0], p, t, be, seed);
        ++*parts;
        return h[0];
    }
    const int64_t at = tg_rand_in(seed, r.lo + 1, r.hi - 1);
    const tgi_range a = {r.lo, at}, b = {at, r.hi};
    h[0] = box_in_parts(across ? y : a, across ? a : x, p, be, depth - 1, seed, parts);
    h[1] = box_in_parts(across ? y : b, across ? b : x, p, be, depth - 1, seed, parts);
    const int swap = across && tg_rand_in(seed, 0, 1);
    CHECK(try_merge(&h[swap], &h[!swap]));
    drop(&h[!swap]);
    return h[swap];
}

static void check_any_parts(picture *p, const tgi_kernel_set *be, int times)
{
    int parts = 0;
    for (int k = 1; k <= times; k++) {
        uint64_t seed = 104729ull * (uint64_t)k;
        const tgi_range y = {0, tgi_desc_axis(&p->full, TGI_Y)},
                        x = {0, tgi_desc_axis(&p->full, TGI_X)};
        holder h = box_in_parts(y, x, p, be, 1 + k % 5, &seed, &parts);
        check_whole(&h, p);
        drop(&h);
    }
    printf("     %s: %d cuttings, %d parts\n", be->name, times, parts);
}

static void parts_that_begin_anywhere_merge_to_the_same_bits(void)
{
    const tgi_kernel_set *be;
    for (int i = 0; (be = kernel_set(i)) != NULL; i++) {
        picture p = draw(2, 0, 1, 0, 64 * 21 + 5, 70, 1e4, 1.0, 31); /* long columns */
        check_any_parts(&p, be, 25);
        erase(&p);
        p = draw(be->lanes + 3, 0, be->lanes, 0, 330, 200, 1e6, 1.0, 32);
        check_any_parts(&p, be, 10);
        erase(&p);
    }
}

/* Planes of a volume [from,to) into a state, a few at a time. */
static void add_planes(holder *h, picture *p, int64_t from, int64_t to, uint64_t *seed)
{
    while (from < to) {
        tgi_box b = tgi_box_full(&p->full);
        b.ax[2] = (tgi_range){from, tgi_min(from + tg_rand_in(seed, 1, 4), to)};
        CHECK_EQ(add(h, p, &b, kernel_set(0), seed), TG_OK);
        from = b.ax[2].hi;
    }
}

/* Every place where three parts of a column can meet, and where the tree is ragged. */
static void three_stretches_of_every_length_merge_in_both_orders(void)
{
    for (int64_t n = 1; n <= 19; n++) {
        picture p = draw(1, 0, 1, n, 1, 2, 1e3, 1.0, (uint64_t)n);
        uint64_t seed = 5;
        for (int64_t a = 0; a <= n; a++)
            for (int64_t b = a; b <= n; b++)
                for (int first = 0; first < 2; first++) {
                    const int64_t edge[] = {0, a, b, n};
                    holder h[3];
                    for (int i = 0; i < 3; i++) {
                        hold(&h[i], &p, TGI_GRANULES_MOMENTS | TGI_GRANULES_ANYWHERE);
                        add_planes(&h[i], &p, edge[i], edge[i + 1], &seed);
                    }
                    CHECK(try_merge(&h[first ? 1 : 0], &h[first ? 2 : 1]));
                    CHECK(try_merge(&h[0], &h[first ? 1 : 2]));
                    check_whole(&h[0], &p);
                    for (int i = 0; i < 3; i++)
                        drop(&h[i]);
                }
        erase(&p);
    }
}

/* A part that ends in the middle of a granule goes on behind the one above it. */
static void a_merged_state_goes_on_in_the_middle_of_a_granule(void)
{
    picture p = draw(3, 0, 1, 0, 400, 100, 10.0, 1.0, 40);
    uint64_t seed = 3;
    holder upper, lower;
    tgi_box b = tgi_box_full(&p.full);
    hold(&upper, &p, BOTH);
    hold(&lower, &p, BOTH | TGI_GRANULES_ANYWHERE);
    b.ax[2] = (tgi_range){192, 300};
    CHECK_EQ(add(&lower, &p, &b, kernel_set(0), &seed), TG_OK);
    b.ax[2] = (tgi_range){0, 100};
    CHECK_EQ(add(&upper, &p, &b, kernel_set(0), &seed), TG_OK);
    CHECK(!try_merge(&upper, &lower)); /* it ends in granule 1 */
    b.ax[2] = (tgi_range){100, 192};
    CHECK_EQ(add(&upper, &p, &b, kernel_set(0), &seed), TG_OK);
    CHECK(try_merge(&upper, &lower));
    CHECK(!tgi_granules_complete(&upper.g));
    save_and_resume(&upper);
    b.ax[2] = (tgi_range){300, 400};
    CHECK_EQ(add(&upper, &p, &b, kernel_set(0), &seed), TG_OK);
    check_whole(&upper, &p);
    drop(&upper);
    drop(&lower);
    erase(&p);
}

/* ---- Refused ----------------------------------------------------------------------------- */

static tg_status add_rows(holder *h, const picture *p, int64_t y0, int64_t y1, int64_t x1)
{
    uint64_t seed = 17;
    tgi_box b = tgi_box_full(&p->full);
    b.ax[2] = (tgi_range){y0, y1};
    b.ax[3].hi = x1;
    return add(h, p, &b, kernel_set(0), &seed);
}

static void what_divides_a_granule_or_comes_out_of_turn_is_refused(void)
{
    picture p = draw(1, 0, 1, 0, 200, 200, 0.0, 1.0, 6);
    tgi_moments m;
    tgi_extremes x;
    tgi_err e = {0};
    holder h, part;
    hold(&h, &p, TGI_GRANULES_MOMENTS);
    CHECK_EQ(add_rows(&h, &p, 0, 10, 100), TG_E_INTERNAL);  /* half a granule */
    CHECK_EQ(add_rows(&h, &p, 10, 20, 200), TG_E_INTERNAL); /* rows 0 to 9 are not there */
    CHECK_EQ(add_rows(&h, &p, 64, 70, 200), TG_E_INTERNAL); /* nor granule 0 */
    CHECK_STATUS(tgi_granules_finish(&h.g, 0, &m, &e), TG_E_INTERNAL, e);
    CHECK_EQ(add_rows(&h, &p, 0, 199, 200), TG_OK);
    CHECK_STATUS(tgi_granules_finish(&h.g, 0, &m, &e), TG_E_INTERNAL, e); /* row 199 */
    CHECK_EQ(add_rows(&h, &p, 198, 200, 200), TG_E_INTERNAL);             /* 198 twice */
    CHECK_EQ(add_rows(&h, &p, 199, 200, 200), TG_OK);
    CHECK_EQ(add_rows(&h, &p, 0, 1, 200), TG_E_INTERNAL);
    CHECK_OK(tgi_granules_finish(&h.g, 0, &m, &e), e);
    CHECK_STATUS(tgi_granules_extremes(&h.g, 0, &x, &e), TG_E_INTERNAL, e);
    hold(&part, &p, TGI_GRANULES_MOMENTS | TGI_GRANULES_ANYWHERE);
    CHECK_EQ(add_rows(&part, &p, 70, 80, 200), TG_E_INTERNAL); /* begins within a granule */
    CHECK_EQ(add_rows(&part, &p, 64, 80, 200), TG_OK);
    CHECK_STATUS(tgi_granules_finish(&part.g, 0, &m, &e), TG_E_INTERNAL, e);
    drop(&part);
    drop(&h);
    erase(&p);
}

static void several_planes_at_once_need_whole_granules(void)
{
    picture p = draw(1, 0, 1, 3, 100, 10, 0.0, 1.0, 6);
    uint64_t seed = 1;
    holder h;
    tgi_box b = tgi_box_full(&p.full);
    hold(&h, &p, TGI_GRANULES_MOMENTS);
    b.ax[3] = (tgi_range){0, 90};
    CHECK_EQ(add(&h, &p, &b, kernel_set(0), &seed), TG_E_INTERNAL);
    b.ax[3] = (tgi_range){0, 64};
    CHECK_EQ(add(&h, &p, &b, kernel_set(0), &seed), TG_OK);
    b.ax[3] = (tgi_range){64, 100};
    CHECK_EQ(add(&h, &p, &b, kernel_set(0), &seed), TG_OK);
    check_whole(&h, &p);
    drop(&h);
    erase(&p);
}

/* A state as it is read back after someone changed one number. */
static void check_damage(holder *h, int64_t *number, int64_t value)
{
    tgi_err e = {0};
    tgi_granules g;
    const int64_t was = *number;
    *number = value;
    CHECK_STATUS(tgi_granules_resume(&g, &h->g.full, h->g.what, h->mem, h->bytes, &e),
                 TG_E_FORMAT, e);
    *number = was;
    CHECK_OK(tgi_granules_resume(&g, &h->g.full, h->g.what, h->mem, h->bytes, &e), e);
}

static void what_is_no_state_is_not_resumed(void)
{
    picture p = draw(1, 0, 1, 0, 200, 200, 0.0, 1.0, 6);
    tgi_granules g;
    tgi_err e = {0};
    holder h;
    hold(&h, &p, TGI_GRANULES_MOMENTS);
    CHECK_EQ(add_rows(&h, &p, 0, 100, 200), TG_OK);
    CHECK_STATUS(tgi_granules_resume(&g, &p.full, TGI_GRANULES_MOMENTS, h.mem, h.bytes - 8, &e),
                 TG_E_FORMAT, e);
    CHECK_STATUS(tgi_granules_resume(&g, &p.full, BOTH, h.mem, h.bytes, &e), TG_E_FORMAT, e);
    tgi_desc other = p.full;
    other.dim[2]++; /* of as many granules */
    CHECK_STATUS(tgi_granules_resume(&g, &other, TGI_GRANULES_MOMENTS, h.mem, h.bytes, &e),
                 TG_E_FORMAT, e);
    for (int64_t *word = (int64_t *)(void *)h.mem; word < (int64_t *)h.g.column; word++)
        check_damage(&h, word, *word ^ 1);
    tgi_column *c = &h.g.column[3]; /* granule 0, and 36 rows of granule 1 */
    check_damage(&h, &c->begin, -1);
    check_damage(&h, &c->begin, 1); /* this state's columns begin at the top */
    check_damage(&h, &c->end, -1);
    check_damage(&h, &c->end, 4); /* rows of a granule that is not there */
    check_damage(&h, &c->end, INT64_MAX);
    check_damage(&h, &c->rows, -1);
    check_damage(&h, &c->rows, 64);
    *c = (tgi_column){0, 3, 7};
    check_damage(&h, &c->rows, 8); /* the last granule has 8 rows: it would be finished */
    drop(&h);
    erase(&p);
}

/* ---- Extremes, sizes --------------------------------------------------------------------- */

static void put(picture *p, int64_t c, float a, int64_t i)
{
    const int64_t nx = tgi_desc_axis(&p->full, TGI_X);
    *pixel(p, c, 0, i / nx, i % nx) = a;
}

static void extremes_of(picture *p, const tgi_kernel_set *be, int64_t c, tgi_extremes *out)
{
    uint64_t seed = 11;
    holder h;
    tgi_err e = {0};
    const tgi_box b = tgi_box_full(&p->full);
    hold(&h, p, TGI_GRANULES_EXTREMES);
    CHECK_EQ(add(&h, p, &b, be, &seed), TG_OK);
    check_extremes(&h, p, c);
    CHECK_OK(tgi_granules_extremes(&h.g, c, out, &e), e);
    drop(&h);
}

/* As GlobalMaxPool: NaN is skipped; that one was there is told beside. Zeros are +0. */
static void extremes_skip_nan_and_tell_of_it(void)
{
    const tgi_kernel_set *be;
    for (int i = 0; (be = kernel_set(i)) != NULL; i++)
        for (int planar = 0; planar < 2; planar++) {
            picture p = draw(3, 0, planar ? 1 : be->lanes, 0, 70, 67, 0.0, 0.0, 1);
            const int64_t n = 70 * 67;
            tgi_extremes x;
            for (int64_t k = 0; k < n; k++) {
                put(&p, 0, k == 4321 ? NAN : k == n - 1 ? 7.0f : -1.0f - (float)k, k);
                put(&p, 1, NAN, k);
                put(&p, 2, -0.0f, k);
            }
            extremes_of(&p, be, 0, &x);
            CHECK(x.largest == 7.0f && x.smallest == -(float)(n - 1) && x.has_nan);
            extremes_of(&p, be, 1, &x);
            CHECK(x.largest == -INFINITY && x.smallest == INFINITY && x.has_nan);
            extremes_of(&p, be, 2, &x);
            CHECK(!signbit(x.largest) && !signbit(x.smallest) && x.largest == 0 && !x.has_nan);
            erase(&p);
        }
}

static void a_state_is_small(void)
{
    const tgi_desc large = {TG_DTYPE_F32, 4, {1, 64, 65536, 65536}};
    const size_t top = tgi_granules_bytes(&large, TGI_GRANULES_MOMENTS),
                 part =
                     tgi_granules_bytes(&large, TGI_GRANULES_MOMENTS | TGI_GRANULES_ANYWHERE),
                 both = tgi_granules_bytes(&large, BOTH);
    printf("     65,536 x 65,536 x 64: %zu bytes, begun anywhere %zu, with extremes %zu\n", top,
           part, both);
    /* 1,024 columns of 24 bytes, and of 64 channels 16 bytes each for the granule that is being
     * filled and 10 (18) subtrees; a head of 64. */
    CHECK_EQ(top, 64 + 1024 * (24 + 64 * 16 * 11));
    CHECK_EQ(part, 64 + 1024 * (24 + 64 * 16 * 19));
    CHECK_EQ(both, top + 1024 * 64 * 12);
    const tgi_desc huge = {
        TG_DTYPE_F32, 5, {1, INT64_MAX / 2, INT64_MAX / 2, 1 << 30, 1 << 30}};
    CHECK(tgi_granules_bytes(&huge, TGI_GRANULES_MOMENTS) == SIZE_MAX);
}

/* All subtrees that a column can have at once find room: states are guarded, and planes of one
 * pixel let a column be long. */
static void the_longest_columns_find_room(void)
{
    for (int64_t n = 1; n <= 70; n++) {
        picture p = draw(1, 0, 1, n, 1, 1, 1.0, 1.0, (uint64_t)n);
        uint64_t seed = 2;
        for (int64_t from = 0; from < n; from++) {
            holder h;
            hold(&h, &p, TGI_GRANULES_MOMENTS | (from ? TGI_GRANULES_ANYWHERE : 0u));
            add_planes(&h, &p, from, n, &seed);
            drop(&h);
        }
        erase(&p);
    }
}

int main(void)
{
    tgi_err e = {0};
    for (int n = 1; n < 4; n++)
        CHECK_OK(tgi_threads_open(n, &pool[n], &e), e);
    RUN(any_cells_and_bands_give_the_same_bits);
    RUN(volumes_and_segments_too);
    RUN(rows_within_the_planes_of_a_volume);
    RUN(parts_that_begin_anywhere_merge_to_the_same_bits);
    RUN(three_stretches_of_every_length_merge_in_both_orders);
    RUN(a_merged_state_goes_on_in_the_middle_of_a_granule);
    RUN(what_divides_a_granule_or_comes_out_of_turn_is_refused);
    RUN(several_planes_at_once_need_whole_granules);
    RUN(what_is_no_state_is_not_resumed);
    RUN(extremes_skip_nan_and_tell_of_it);
    RUN(a_state_is_small);
    RUN(the_longest_columns_find_room);
    for (int n = 1; n < 4; n++)
        tgi_threads_close(&pool[n]);
    return TEST_END();
}
