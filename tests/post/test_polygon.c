/* Polygons: areas with known answers, and drawn ones beside a count of fine squares. */
#include "engine/post/polygon.h"
#include "tests/tg_test.h"

#define RAYS 32

static tgi_polygon_work *work;

static int64_t common(const tgi_corner *a, int n_a, const tgi_corner *b, int n_b)
{
    return tgi_polygon_common2(work, a, n_a, b, n_b);
}

static void box(tgi_corner *p, int x0, int y0, int x1, int y1)
{
    p[0] = (tgi_corner){x0, y0};
    p[1] = (tgi_corner){x1, y0};
    p[2] = (tgi_corner){x1, y1};
    p[3] = (tgi_corner){x0, y1};
}

static void test_areas(void)
{
    tgi_corner p[4];
    box(p, -3, 2, 7, 6);
    CHECK_EQ(tgi_polygon_area2(p, 4), 80);
    const tgi_corner triangle[] = {{0, 0}, {0, 10}, {4, 0}};
    CHECK_EQ(tgi_polygon_area2(triangle, 3), 40);
    const tgi_corner flat[] = {{0, 0}, {5, 5}, {2, 2}};
    CHECK_EQ(tgi_polygon_area2(flat, 3), 0);
}

static void test_boxes_have_their_part_in_common(void)
{
    tgi_corner a[4], b[4];
    box(a, 0, 0, 10, 10);
    static const struct {
        int x0, y0, x1, y1, area;
    } of[] = {{2, 3, 5, 7, 12},      /* inside */
              {-5, -5, 20, 20, 100}, /* around */
              {0, 0, 10, 10, 100},   /* the same */
              {5, 5, 15, 15, 25},    {-5, 2, 15, 4, 20},
              {3, -9, 5, 30, 20},    {10, 0, 20, 10, 0}, /* one side in common */
              {10, 10, 20, 20, 0},                       /* one corner */
              {0, 0, 10, 5, 50},                         /* three sides in common */
              {30, 30, 40, 40, 0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        box(b, of[i].x0, of[i].y0, of[i].x1, of[i].y1);
        CHECK_EQ(common(a, 4, b, 4), 2 * of[i].area);
        CHECK_EQ(common(b, 4, a, 4), 2 * of[i].area);
        const tgi_corner turned[] = {b[3], b[2], b[1], b[0]}; /* the other way round */
        CHECK_EQ(common(a, 4, turned, 4), 2 * of[i].area);
    }
}

static void test_crossings_are_rounded(void)
{
    /* Two thin triangles cross at (2.5, 3.5) and so on: what is summed has whole corners. */
    tgi_corner a[4];
    box(a, 0, 0, 10, 10);
    const tgi_corner corner[] = {
        {7, 13}, {13, 8}, {13, 13}}; /* cuts off at (10, 10.5): outside */
    CHECK_EQ(common(a, 4, corner, 3), 0);
    const tgi_corner deep[] = {{4, 12}, {12, 5}, {12, 12}}; /* at (6.286, 10) and (10, 6.75) */
    CHECK_EQ(common(a, 4, deep, 3), 4 * 3);                 /* (6,10) (10,7) (10,10) */
}

static void test_what_turns_twice_is_inside(void)
{
    /* A path that goes round twice, and one that crosses over itself. */
    const tgi_corner twice[] = {{0, 0}, {8, 0}, {8, 8}, {0, 8}, {0, 0}, {8, 0}, {8, 8}, {0, 8}};
    const tgi_corner bow[] = {{0, 0}, {8, 8}, {8, 0}, {0, 8}};
    tgi_corner a[4];
    box(a, -1, -1, 20, 20);
    CHECK_EQ(common(a, 4, twice, 8), 2 * 64);
    CHECK_EQ(common(a, 4, bow, 4), 2 * 32);
    CHECK_EQ(common(twice, 8, bow, 4), 2 * 32);
    const tgi_corner spike[] = {{0, 0}, {6, 0}, {6, 6}, {6, 15}, {6, 6}, {0, 6}};
    CHECK_EQ(common(a, 4, spike, 6), 2 * 36);
    const tgi_corner point[] = {{3, 3}, {3, 3}, {3, 3}};
    CHECK_EQ(common(a, 4, point, 3), 0);
}

/* A star-convex polygon, as StarDist has them. */
static void star(tgi_corner *p, uint32_t *seed, int cx, int cy, double radius, double rough)
{
    for (int k = 0; k < RAYS; k++) {
        *seed = *seed * 1664525u + 1013904223u;
        const double r = radius * (1 + rough * ((*seed >> 8) / 16777216.0 - 0.5));
        p[k] = (tgi_corner){(int32_t)(cx + r * cos(2 * M_PI * k / RAYS)),
                            (int32_t)(cy + r * sin(2 * M_PI * k / RAYS))};
    }
}

static int winding(const tgi_corner *p, int n, double x, double y)
{
    int w = 0;
    for (int i = 0; i < n; i++) {
        const tgi_corner *a = &p[i], *b = &p[(i + 1) % n];
        if ((a->y <= y) == (b->y <= y))
            continue;
        const double at = a->x + (y - a->y) * (b->x - a->x) / (double)(b->y - a->y);
        if (at > x)
            w += b->y > a->y ? 1 : -1;
    }
    return w;
}

/* Area in common by counting points, 8 x 8 for each square. */
static double counted(const tgi_corner *a, const tgi_corner *b, int n, int size)
{
    int64_t in = 0;
    for (int y = 0; y < 8 * size; y++)
        for (int x = 0; x < 8 * size; x++) {
            const double px = (x + 0.47) / 8, py = (y + 0.53) / 8;
            in += winding(a, n, px, py) != 0 && winding(b, n, px, py) != 0;
        }
    return (double)in / 64;
}

/* 64 times as large: what rounding does to a crossing is 64 times as small beside it. */
static int64_t common_finely(const tgi_corner *a, const tgi_corner *b)
{
    tgi_corner fine_a[RAYS], fine_b[RAYS];
    for (int k = 0; k < RAYS; k++) {
        fine_a[k] = (tgi_corner){64 * a[k].x, 64 * a[k].y};
        fine_b[k] = (tgi_corner){64 * b[k].x, 64 * b[k].y};
    }
    return common(fine_a, RAYS, fine_b, RAYS);
}

static void test_drawn_stars_equal_a_count(void)
{
    uint32_t seed = 7;
    double worst = 0, worst_rounded = 0, worst_turned = 0;
    for (int i = 0; i < 45; i++) {
        tgi_corner a[RAYS], b[RAYS];
        const double rough = i % 3 * 0.5;
        star(a, &seed, 30, 30, 6 + i % 17, rough);
        star(b, &seed, 30 + i % 11, 30 - i % 7, 5 + i % 13, rough);
        const int64_t ab = common(a, RAYS, b, RAYS), fine = common_finely(a, b);
        /* which of the two comes first can move a rounded crossing */
        worst_turned = fmax(worst_turned, fabs((double)(common(b, RAYS, a, RAYS) - ab) / 2));
        worst = fmax(worst, fabs((double)fine / 8192 - counted(a, b, RAYS, 60)));
        worst_rounded = fmax(worst_rounded, fabs((double)(fine - 4096 * ab) / 8192));
        /* far out in an image it is the same */
        for (int k = 0; k < RAYS; k++) {
            a[k] = (tgi_corner){a[k].x + 8000000, a[k].y + 7000001};
            b[k] = (tgi_corner){b[k].x + 8000000, b[k].y + 7000001};
        }
        CHECK_EQ(common(a, RAYS, b, RAYS), ab);
    }
    printf("     most off a count of points: %.3f squares; by rounding: %.3f, by which comes "
           "first: %.3f\n",
           worst, worst_rounded, worst_turned);
    CHECK(
        worst <
        1.5); /* of points an eighth apart: an edge of 20 pixels along a row of them is off by 1.25 */
    CHECK(worst_turned < 3);
    CHECK(worst_rounded > 1 && worst_rounded < 10);
}

int main(void)
{
    tgi_err err = {0};
    CHECK_OK(tgi_polygon_work_open(RAYS, &work, &err), err);
    RUN(test_areas);
    RUN(test_boxes_have_their_part_in_common);
    RUN(test_crossings_are_rounded);
    RUN(test_what_turns_twice_is_inside);
    RUN(test_drawn_stars_equal_a_count);
    tgi_polygon_work_close(&work);
    return TEST_END();
}
