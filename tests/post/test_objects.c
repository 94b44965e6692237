/* Objects of StarDist and Cellpose on drawn discs: bands change nothing, memory stays below what is said before,
 * limits and damaged planes are refused, and refused allocations leave nothing behind. */
#include "engine/post/cellpose.h"
#include "engine/post/stardist.h"
#include "tests/tg_test.h"

#define H 150
#define W 130
#define RAYS 16
#define PITCH 22 /* from disc to disc */
#define RADIUS 8

typedef struct drawn {
    float star[RAYS + 1][H][W], cell[3][H][W];
    const float *planes; /* of the two, the one that is read */
} drawn;

static drawn d;

static tg_status rows_of(void *user, int64_t plane, int64_t y0, int64_t y1, float *dst,
                         tgi_err *err)
{
    const drawn *p = user;
    (void)err;
    memcpy(dst, p->planes + (plane * H + y0) * W, (size_t)((y1 - y0) * W) * sizeof *dst);
    return TG_OK;
}

static int discs(void)
{
    return (H / PITCH) * (W / PITCH);
}

static void draw_pixel(int y, int x)
{
    const int cy = y / PITCH * PITCH + PITCH / 2, cx = x / PITCH * PITCH + PITCH / 2;
    const double dy = y - cy, dx = x - cx, r = sqrt(dy * dy + dx * dx);
    const int in = r <= RADIUS && y / PITCH < H / PITCH && x / PITCH < W / PITCH;
    d.star[0][y][x] = in ? (float)(1 - r / (RADIUS + 1)) : 0;
    for (int k = 0; k < RAYS && in; k++) { /* to the circle: t with |p + t u| = RADIUS + 0.5 */
        const double uy = sin(2 * M_PI * k / RAYS), ux = cos(2 * M_PI * k / RAYS),
                     b = dy * uy + dx * ux;
        d.star[k + 1][y][x] =
            (float)(-b + sqrt(b * b - r * r + (RADIUS + 0.5) * (RADIUS + 0.5)));
    }
    d.cell[0][y][x] = in && r > 0 ? (float)(-5 * dy / r) : 0;
    d.cell[1][y][x] = in && r > 0 ? (float)(-5 * dx / r) : 0;
    d.cell[2][y][x] = in ? 3 : -3;
}

static void draw(void)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            draw_pixel(y, x);
}

static tgi_post_rows star_rows(void)
{
    d.planes = &d.star[0][0][0];
    return (tgi_post_rows){rows_of, &d, H, W, RAYS + 1};
}

static tgi_post_rows cell_rows(void)
{
    d.planes = &d.cell[0][0][0];
    return (tgi_post_rows){rows_of, &d, H, W, 3};
}

static uint32_t labels[H][W], first[H][W];

/* Each disc is one object: all pixels to RADIUS have its number, and none beyond `to` has one. Between the two lie
 * those that the corners of a polygon of 16 rays of RADIUS + 0.5 take in. */
static void check_discs(double to)
{
    int wrong = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const int cy = y / PITCH * PITCH + PITCH / 2, cx = x / PITCH * PITCH + PITCH / 2;
            const double r = hypot(y - cy, x - cx);
            if (d.cell[2][y][x] > 0)
                wrong += first[y][x] == 0 || first[y][x] != first[cy][cx];
            else if (r > to)
                wrong += first[y][x] != 0;
        }
    CHECK_EQ(wrong, 0);
}

static void test_stardist_in_bands(void)
{
    tgi_err err = {0};
    for (int64_t band = 1; band <= H; band = band * 3 + 1) {
        tgi_stardist_how how = TGI_STARDIST_HOW;
        how.band_rows = band;
        const tgi_post_rows rows = star_rows();
        tgi_stardist *s = NULL;
        CHECK_OK(tgi_stardist_open(&rows, &how, &s, &err), err);
        if (!s)
            return;
        CHECK_EQ(tgi_stardist_count(s), discs());
        for (int64_t y = 0; y < H; y += band)
            tgi_stardist_paint(s, y, y + band < H ? y + band : H, labels[y]);
        if (band == 1)
            memcpy(first, labels, sizeof first);
        CHECK(memcmp(first, labels, sizeof first) == 0);
        CHECK(tgi_stardist_peak(s) <=
              tgi_stardist_bytes(&how, W, RAYS, 2 * RADIUS + 1, (uint64_t)discs()));
        CHECK_EQ(tgi_stardist_object_at(s, 1)->y, PITCH / 2);
        CHECK_NEAR(tgi_stardist_distances(s, 1)[0], RADIUS + 0.5, 1e-5);
        tgi_stardist_close(&s);
    }
    check_discs(RADIUS + 0.5);
}

static void test_cellpose_in_bands(void)
{
    tgi_err err = {0};
    for (int64_t band = 1; band <= H; band = band * 3 + 1) {
        tgi_cellpose_how how = TGI_CELLPOSE_HOW;
        how.band_rows = how.margin_rows = band;
        how.scratch = band == 4 ? "." : NULL;
        how.n_threads = band == 13 ? 2 : 1;
        const tgi_post_rows rows = cell_rows();
        tgi_cellpose *c = NULL;
        CHECK_OK(tgi_cellpose_open(&rows, &how, &c, &err), err);
        if (!c)
            return;
        CHECK_EQ(tgi_cellpose_count(c), discs());
        CHECK_OK(tgi_cellpose_paint(c, 0, H, labels[0], &err), err);
        if (band == 1)
            memcpy(first, labels, sizeof first);
        CHECK(memcmp(first, labels, sizeof first) == 0);
        if (band >= 13) /* no disc is as high as the margin */
            CHECK(tgi_cellpose_peak(c) <=
                  tgi_cellpose_bytes(&how, H, W, 2 * RADIUS + 1, (uint64_t)discs(), H * W));
        tgi_cellpose_close(&c);
    }
    check_discs(RADIUS);
}

static void test_limits_are_kept(void)
{
    tgi_err err = {0};
    tgi_stardist_how star = TGI_STARDIST_HOW;
    tgi_cellpose_how cell = TGI_CELLPOSE_HOW;
    tgi_stardist *s = NULL;
    tgi_cellpose *c = NULL;
    for (size_t limit = 1000; limit < 2000000; limit = limit * 3 / 2) {
        star.limit_bytes = cell.limit_bytes = limit;
        const tgi_post_rows of_star = star_rows();
        tg_status st = tgi_stardist_open(&of_star, &star, &s, &err);
        CHECK(st == TG_E_BUDGET ? strstr(err.text, "try more memory") != NULL
                                : tgi_stardist_peak(s) <= limit);
        tgi_stardist_close(&s);
        err = (tgi_err){0};
        const tgi_post_rows of_cell = cell_rows();
        st = tgi_cellpose_open(&of_cell, &cell, &c, &err);
        CHECK(st == TG_E_BUDGET ? strstr(err.text, "try more memory") != NULL
                                : tgi_cellpose_peak(c) <= limit);
        tgi_cellpose_close(&c);
        err = (tgi_err){0};
    }
    star.limit_bytes = cell.limit_bytes = 1000;
    const tgi_post_rows rows = cell_rows();
    CHECK_STATUS(tgi_cellpose_open(&rows, &cell, &c, &err), TG_E_BUDGET, err);
}

static void test_damage_is_refused(void)
{
    tgi_err err = {0};
    tgi_stardist_how star = TGI_STARDIST_HOW;
    tgi_cellpose_how cell = TGI_CELLPOSE_HOW;
    tgi_stardist *s = NULL;
    tgi_cellpose *c = NULL;
    tgi_post_rows rows = star_rows();
    const float was = d.star[3][PITCH / 2][PITCH / 2];
    static const float wrong[] = {NAN, INFINITY, -INFINITY, 1e9f};
    for (int i = 0; i < 4; i++) {
        d.star[3][PITCH / 2][PITCH / 2] = wrong[i];
        CHECK_STATUS(tgi_stardist_open(&rows, &star, &s, &err), TG_E_FORMAT, err);
    }
    d.star[3][PITCH / 2][PITCH / 2] = was;
    rows.planes = 3;
    CHECK_STATUS(tgi_stardist_open(&rows, &star, &s, &err), TG_E_ARG, err);
    CHECK_STATUS(tgi_cellpose_open(&(tgi_post_rows){rows_of, &d, H, W, 4}, &cell, &c, &err),
                 TG_E_ARG, err);
    rows = cell_rows();
    d.cell[1][PITCH / 2][PITCH / 2] = NAN;
    CHECK_STATUS(tgi_cellpose_open(&rows, &cell, &c, &err), TG_E_FORMAT, err);
    d.cell[1][PITCH / 2][PITCH / 2] = 0;
    rows.width = 1;
    CHECK_STATUS(tgi_cellpose_open(&rows, &cell, &c, &err), TG_E_ARG, err);
}

/* The k-th allocation fails, for each k that there is. */
static void test_refused_memory(void)
{
    int refused = 0;
    for (uint64_t k = 1; k < 200; k++) {
        tgi_err err = {0};
        tgi_stardist_how star = TGI_STARDIST_HOW;
        tgi_cellpose_how cell = TGI_CELLPOSE_HOW;
        tgi_stardist *s = NULL;
        tgi_cellpose *c = NULL;
        star.band_rows = cell.band_rows = 40;
        tgi_post_rows rows = star_rows();
        tgi_mem_fail_at(k);
        const tg_status st = tgi_stardist_open(&rows, &star, &s, &err);
        tgi_stardist_close(&s);
        rows = cell_rows();
        tgi_mem_fail_at(k);
        const tg_status sc = tgi_cellpose_open(&rows, &cell, &c, &err);
        tgi_cellpose_close(&c);
        tgi_mem_fail_at(0);
        CHECK((st == TG_OK || st == TG_E_NOMEM) && (sc == TG_OK || sc == TG_E_NOMEM));
        refused += (st != TG_OK) + (sc != TG_OK);
    }
    CHECK(refused > 30);
}

int main(void)
{
    draw();
    RUN(test_stardist_in_bands);
    RUN(test_cellpose_in_bands);
    RUN(test_limits_are_kept);
    RUN(test_damage_is_refused);
    RUN(test_refused_memory);
    return TEST_END();
}
