/* Holes filled smoothly, against Laplace's equation solved in float64 until nothing moves, and motion in them, against
 * that of a camera.
 * `test_fill --time` prints what they take. */
#include "engine/base/arith.h"
#include "engine/inpaint/fill_smooth.h"
#include "tests/tg_test.h"

#include <inttypes.h>
#include <time.h>

#define CANARY 0xA5
#define BEHIND 256

static uint64_t seed = 5;

/* ---- Holes ------------------------------------------------------------------------------- */

typedef struct hole_case {
    int64_t height, width;
    float *field; /* one channel, or two for a motion */
    uint8_t *hole;
} hole_case;

static hole_case new_case(int64_t height, int64_t width, int channels)
{
    hole_case c = {height, width, NULL, NULL};
    c.field = calloc((size_t)(height * width * channels), sizeof *c.field);
    c.hole = calloc((size_t)(height * width), 1);
    return c;
}

static void end_case(hole_case *c)
{
    free(c->field);
    free(c->hole);
}

static void cut(hole_case *c, int64_t y0, int64_t y1, int64_t x0, int64_t x1)
{
    for (int64_t y = tgi_max(y0, 0); y < tgi_min(y1, c->height); y++)
        for (int64_t x = tgi_max(x0, 0); x < tgi_min(x1, c->width); x++)
            c->hole[y * c->width + x] = 1;
}

/* Numbers of a slope, waves and noise. */
static void paint(hole_case *c, double noise)
{
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++)
            c->field[y * c->width + x] =
                (float)(100 + 0.1 * (double)x + 8 * sin((double)y * 0.07 + (double)x * 0.03) +
                        noise * (double)tg_rand_unit(&seed));
}

/* A room full of rubbish, with what must stay as it is behind it. */
static unsigned char *new_room(int64_t height, int64_t width, size_t *n)
{
    *n = tgi_fill_smooth_bytes(height, width);
    unsigned char *room = aligned_alloc(64, tgi_align_size(*n, 64) + BEHIND);
    memset(room, CANARY, tgi_align_size(*n, 64) + BEHIND);
    return room;
}

static int untouched(const unsigned char *room, size_t n)
{
    for (size_t i = 0; i < BEHIND; i++)
        if (room[n + i] != CANARY)
            return 0;
    return 1;
}

/* Successive over-relaxation until nothing moves by 1e-7. */
static double *solved(const hole_case *c)
{
    const int64_t h = c->height, w = c->width;
    double *at = malloc(sizeof *at * (size_t)(h * w)), moved = 1;
    for (int64_t i = 0; i < h * w; i++)
        at[i] = c->hole[i] ? 100 : (double)c->field[i];
    const double over = 2 / (1 + sin(3.14159265 / (double)tgi_max(h, w)));
    for (int round = 0; moved > 1e-7 && round < 20000; round++) {
        moved = 0;
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++) {
                const int64_t i = y * w + x;
                if (!c->hole[i])
                    continue;
                double sum = 0;
                int n = 0;
                if (y > 0)
                    sum += at[i - w], n++;
                if (y + 1 < h)
                    sum += at[i + w], n++;
                if (x > 0)
                    sum += at[i - 1], n++;
                if (x + 1 < w)
                    sum += at[i + 1], n++;
                const double by = over * (sum / n - at[i]);
                at[i] += by;
                moved = fmax(moved, fabs(by));
            }
    }
    return at;
}

/* The largest error over the range of what is known, or 1. */
static double error_of(const hole_case *c, const float *got)
{
    double *want = solved(c), worst = 0, low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < c->height * c->width; i++) {
        if (!c->hole[i]) {
            low = fmin(low, (double)c->field[i]);
            high = fmax(high, (double)c->field[i]);
            continue;
        }
        worst = fmax(worst, fabs(want[i] - (double)got[i]));
        worst = isnan(got[i]) ? INFINITY : worst;
    }
    free(want);
    return worst / fmax(high - low, 1);
}

/* Fills a copy whose holes hold no numbers: the error; what is known keeps its bits. */
static double filled(const hole_case *c, float **out)
{
    const size_t places = (size_t)(c->height * c->width);
    float *copy = malloc(places * sizeof *copy);
    size_t n;
    unsigned char *room = new_room(c->height, c->width, &n);
    for (size_t i = 0; i < places; i++)
        copy[i] = c->hole[i] ? NAN : c->field[i];
    tgi_fill_smooth(copy, 1, c->height, c->width, c->hole, room);
    CHECK(untouched(room, n));
    for (size_t i = 0; i < places; i++)
        if (!c->hole[i] && copy[i] != c->field[i])
            CHECK(!"what is known keeps its bits");
    const double error = error_of(c, copy);
    free(room);
    if (out)
        *out = copy;
    else
        free(copy);
    return error;
}

static void shape_box(hole_case *c)
{
    cut(c, 20, 220, 30, 230);
}

static void shape_border(hole_case *c)
{
    cut(c, 0, 90, 0, 120);
    cut(c, 150, c->height, 100, 200);
    cut(c, 120, 140, 200, c->width);
}

static void shape_all_but_one(hole_case *c)
{
    cut(c, 0, c->height, 0, c->width);
    c->hole[(c->height / 3) * c->width + c->width / 5] = 0;
}

static void shape_disc_and_ring(hole_case *c)
{
    const int64_t mid_y = c->height / 2, mid_x = c->width / 2;
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++) {
            const double r = hypot((double)(y - mid_y), (double)(x - mid_x));
            c->hole[y * c->width + x] = r < 40 || (r > 60 && r < 95);
        }
}

static void shape_noise(hole_case *c)
{
    for (int64_t i = 0; i < c->height * c->width; i++)
        c->hole[i] = tg_rand_in(&seed, 0, 9) < 6;
}

static void shape_sparse(hole_case *c)
{
    for (int64_t i = 0; i < c->height * c->width; i++)
        c->hole[i] = tg_rand_in(&seed, 0, 999) > 0;
}

static void shape_blots(hole_case *c)
{
    for (int k = 0; k < 40; k++) {
        const int64_t y = tg_rand_in(&seed, -5, c->height), x = tg_rand_in(&seed, -5, c->width);
        cut(c, y, y + tg_rand_in(&seed, 1, 50), x, x + tg_rand_in(&seed, 1, 50));
    }
}

static void shape_comb(hole_case *c)
{
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++)
            c->hole[y * c->width + x] = x % 2 == 0 || y == 9;
}

static void shape_stairs(hole_case *c)
{
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++)
            c->hole[y * c->width + x] = (x + y) % 7 < 2 || (x - y + 1000) % 31 < 3;
}

static void shape_board(hole_case *c)
{
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++)
            c->hole[y * c->width + x] = (x / 3 + y / 3) % 2 == 0;
}

static void shape_walls(hole_case *c)
{
    cut(c, 0, c->height, 0, c->width);
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++)
            if (x % 37 == 11 || y % 53 == 20)
                c->hole[y * c->width + x] = 0;
}

static void shape_maze(hole_case *c) /* a way of two that winds through all */
{
    cut(c, 0, c->height, 0, c->width);
    for (int64_t y = 2; y < c->height; y += 3)
        for (int64_t x = 0; x < c->width; x++)
            if (y % 6 == 2 ? x > 1 : x < c->width - 2)
                c->hole[y * c->width + x] = 0;
}

static const struct {
    const char *name;
    void (*draw)(hole_case *c);
} SHAPES[] = {
    /* the first three in a large field, too */
    {"box of 200", shape_box},
    {"at the border", shape_border},
    {"disc, ring", shape_disc_and_ring},
    {"all but one", shape_all_but_one},
    {"noise", shape_noise},
    {"one of 1000 known", shape_sparse},
    {"blots", shape_blots},
    {"comb", shape_comb},
    {"stairs", shape_stairs},
    {"board", shape_board},
    {"walls", shape_walls},
    {"maze", shape_maze},
};

static void test_holes_of_any_shape_are_as_smooth_as_solved(void)
{
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++)
        for (int k = 0; k < 2; k++) {
            hole_case c = s < 3 && k == 0 ? new_case(240, 260, 1) : new_case(103, 131, 1);
            SHAPES[s].draw(&c);
            paint(&c, k ? 30 : 0);
            const double error = filled(&c, NULL);
            printf("     %-18s %" PRId64 " x %" PRId64 "%s: %.1e of the range\n",
                   SHAPES[s].name, c.height, c.width, k ? ", noise" : "", error);
            CHECK(error < 2e-3);
            end_case(&c);
        }
}

static void test_small_fields_of_any_size(void)
{
    double worst = 0;
    for (int64_t h = 1; h < 12; h++)
        for (int64_t w = 1; w < 12; w++)
            for (int k = 0; k < 10; k++) {
                hole_case c = new_case(h, w, 1);
                paint(&c, 10);
                for (int64_t i = 0; i < h * w; i++)
                    c.hole[i] = (uint8_t)(tg_rand_in(&seed, 0, 9) < 3 + k % 6 ? 7 : 0);
                c.hole[tg_rand_in(&seed, 0, h * w - 1)] = 0;
                worst = fmax(worst, filled(&c, NULL));
                end_case(&c);
            }
    printf("     worst %.1e of the range\n", worst);
    CHECK(worst < 2e-3);
}

static void test_a_field_that_is_all_hole_becomes_0(void)
{
    for (int64_t side = 1; side < 20; side += 6) {
        float *got;
        hole_case c = new_case(side, side + side / 2, 2);
        cut(&c, 0, c.height, 0, c.width);
        filled(&c, &got);
        for (int64_t i = 0; i < c.height * c.width; i++)
            CHECK(got[i] == 0);
        free(got);
        end_case(&c);
    }
}

static void test_channels_are_filled_alike_and_always_alike(void)
{
    hole_case c = new_case(90, 131, 3);
    size_t n;
    unsigned char *room = new_room(c.height, c.width, &n);
    const size_t places = (size_t)(c.height * c.width);
    shape_blots(&c);
    paint(&c, 5);
    memcpy(c.field + places, c.field, places * sizeof *c.field);
    memcpy(c.field + 2 * places, c.field, places * sizeof *c.field);
    tgi_fill_smooth(c.field, 2, c.height, c.width, c.hole, room);
    memset(room, 0xFF, n);
    tgi_fill_smooth(c.field + 2 * places, 1, c.height, c.width, c.hole, room);
    CHECK(memcmp(c.field, c.field + places, places * sizeof *c.field) == 0);
    CHECK(memcmp(c.field, c.field + 2 * places, places * sizeof *c.field) == 0);
    CHECK(untouched(room, n));
    free(room);
    end_case(&c);
}

/* ---- Holes in motion --------------------------------------------------------------------- */

/* A camera that pans, turns and zooms. */
static void camera(double y, double x, double to[2])
{
    to[0] = 3.5 + 0.02 * (x - 60) - 0.015 * (y - 40);
    to[1] = -1.25 + 0.015 * (x - 60) + 0.02 * (y - 40);
}

static void film_motion(hole_case *c)
{
    for (int64_t y = 0; y < c->height; y++)
        for (int64_t x = 0; x < c->width; x++) {
            double d[2];
            camera((double)y, (double)x, d);
            for (int k = 0; k < 2; k++)
                c->field[(k * c->height + y) * c->width + x] = (float)d[k];
        }
}

/* The largest distance from the camera's motion in the holes; what is known keeps its bits. */
static double off_camera(hole_case *c)
{
    const int64_t places = c->height * c->width;
    const size_t bytes = (size_t)(2 * places) * sizeof *c->field;
    float *before = malloc(bytes);
    double worst = 0;
    size_t n;
    unsigned char *room = new_room(c->height, c->width, &n);
    for (int64_t i = 0; i < 2 * places; i++)
        if (c->hole[i % places])
            c->field[i] = NAN;
    memcpy(before, c->field, bytes);
    tgi_fill_motion(c->field, c->height, c->width, c->hole, room);
    CHECK(untouched(room, n));
    free(room);
    for (int64_t i = 0; i < places; i++) {
        const int64_t row = i / c->width;
        const float *was = before + i, *is = c->field + i;
        double d[2];
        if (!c->hole[i]) {
            if (was[0] != is[0] || was[places] != is[places])
                CHECK(!"what is known keeps its bits");
            continue;
        }
        camera((double)row, (double)(i % c->width), d);
        worst = fmax(worst, hypot((double)is[0] - d[0], (double)is[places] - d[1]));
        CHECK(isfinite(is[0]) && isfinite(is[places]));
    }
    free(before);
    return worst;
}

static void test_a_camera_is_met_wherever_the_holes_lie(void)
{
    for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++) {
        hole_case c = new_case(240, 260, 2);
        SHAPES[s].draw(&c);
        film_motion(&c);
        if (SHAPES[s].draw != shape_all_but_one)
            CHECK_NEAR(off_camera(&c), 0, 1e-3);
        end_case(&c);
    }
}

static void test_small_fields_of_motion(void)
{
    for (int64_t h = 1; h < 12; h++)
        for (int64_t w = 1; w < 12; w++)
            for (int k = 0; k < 10; k++) {
                hole_case c = new_case(h, w, 2);
                film_motion(&c);
                for (int64_t i = 0; i < h * w; i++)
                    c.hole[i] = tg_rand_in(&seed, 0, 9) < k;
                CHECK(off_camera(&c) < 8);
                end_case(&c);
            }
}

/* Part of what lies around the hole moves with what is hidden, and does not touch the hole, so that nothing but what
 * is fitted sees it. Every sixth place has a rest of its own. */
static void test_what_is_left_of_a_moving_thing_does_not_count(void)
{
    static const char *const NAME[] = {"one side", "two corners", "here and there", "above"};
    for (int k = 0; k < 4; k++) {
        hole_case c = new_case(120, 160, 2);
        int64_t ring = 0, moved = 0;
        film_motion(&c);
        cut(&c, 40, 80, 60, 110);
        for (int64_t y = 28; y < 92; y++)
            for (int64_t x = 48; x < 122; x++) {
                const int64_t i = y * c.width + x;
                const bool touches = y >= 39 && y < 81 && x >= 59 && x < 111;
                const bool thing = k == 0   ? x >= 106
                                   : k == 1 ? (y < 51 && x < 76) || (y > 70 && x > 94)
                                   : k == 2 ? (x * 7 + y * 13) % 10 < 3
                                            : y < 38 && x > 50;
                ring += !c.hole[i];
                if (touches)
                    continue;
                moved += thing;
                c.field[i] = thing ? -14 : c.field[i] + (i % 6 ? 0 : 0.3f);
                c.field[c.height * c.width + i] += thing ? 6 : 0;
            }
        const double off = off_camera(&c);
        printf("     %s, %.0f %% of the ring: %.3f px off\n", NAME[k],
               100.0 * (double)moved / (double)ring, off);
        CHECK(off < 0.1);
        end_case(&c);
    }
}

static void test_too_little_is_known_for_an_affine_motion(void)
{
    static const struct {
        const char *name;
        int64_t y0, y1, x0, x1;
        int thinned;
    } CASES[] = {{"nothing", 0, 0, 0, 0, 0},       {"one", 7, 8, 9, 10, 0},
                 {"two", 7, 8, 9, 11, 0},          {"three", 7, 8, 9, 12, 0},
                 {"a row", 30, 31, 0, 200, 0},     {"a column", 0, 200, 0, 1, 0},
                 {"a diagonal", 0, 200, 0, 200, 1}};
    for (size_t s = 0; s < sizeof CASES / sizeof *CASES; s++) {
        hole_case c = new_case(71, 83, 2);
        film_motion(&c);
        for (int64_t y = 0; y < c.height; y++)
            for (int64_t x = 0; x < c.width; x++)
                c.hole[y * c.width + x] =
                    !(y >= CASES[s].y0 && y < CASES[s].y1 && x >= CASES[s].x0 &&
                      x < CASES[s].x1 && (!CASES[s].thinned || x == y));
        const double off = off_camera(&c);
        printf("     %s: %.2f px off\n", CASES[s].name, off);
        CHECK(off < 8); /* a pan, or nothing: what the camera's motion is at most */
        if (s == 0)
            CHECK(c.field[0] == 0 && c.field[71 * 83] == 0);
        end_case(&c);
    }
}

/* ---- Time -------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void time_fill(int64_t h, int64_t w, const char *name, void (*draw)(hole_case *),
                      int motion)
{
    hole_case c = new_case(h, w, 2);
    size_t n;
    unsigned char *room = new_room(h, w, &n);
    int64_t holes = 0;
    double best = INFINITY;
    draw(&c);
    paint(&c, 5);
    for (int64_t i = 0; i < h * w; i++)
        holes += c.hole[i];
    for (int k = 0; k < 5; k++) {
        const double from = now();
        if (motion)
            tgi_fill_motion(c.field, h, w, c.hole, room);
        else
            tgi_fill_smooth(c.field, 1, h, w, c.hole, room);
        best = fmin(best, now() - from);
    }
    printf("%s, %" PRId64 " x %" PRId64 ", %s: %.1f %% hole, %.1f ms, room %.1f MB\n",
           motion ? "motion" : "one channel", w, h, name,
           100.0 * (double)holes / (double)(h * w), 1e3 * best, (double)n * 1e-6);
    free(room);
    end_case(&c);
}

static void draw_third(hole_case *c)
{
    cut(c, c->height / 5, c->height * 4 / 5, c->width / 4, c->width * 3 / 4);
}

static void draw_small(hole_case *c)
{
    cut(c, c->height / 2, c->height / 2 + 50, c->width / 2, c->width / 2 + 40);
}

static void print_times(void)
{
    time_fill(1080, 1920, "a box", draw_third, 0);
    time_fill(1080, 1920, "noise", shape_noise, 0);
    time_fill(1080, 1920, "blots", shape_blots, 0);
    time_fill(1080, 1920, "small", draw_small, 0);
    time_fill(270, 480, "a box", draw_third, 1);
    time_fill(270, 480, "blots", shape_blots, 1);
    time_fill(270, 480, "small", draw_small, 1);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--time") == 0) {
        print_times();
        return 0;
    }
    RUN(test_holes_of_any_shape_are_as_smooth_as_solved);
    RUN(test_small_fields_of_any_size);
    RUN(test_a_field_that_is_all_hole_becomes_0);
    RUN(test_channels_are_filled_alike_and_always_alike);
    RUN(test_a_camera_is_met_wherever_the_holes_lie);
    RUN(test_small_fields_of_motion);
    RUN(test_what_is_left_of_a_moving_thing_does_not_count);
    RUN(test_too_little_is_known_for_an_affine_motion);
    return TEST_END();
}
