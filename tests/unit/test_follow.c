/* Hidden pixels followed to where they are seen, and the colours taken there, in drawn films whose motion is known.
 * `test_follow --time` prints what that takes. */
#include "engine/base/arith.h"
#include "engine/inpaint/follow.h"
#include "io/npy.h"
#include "tests/tg_test.h"

#include <time.h>

#define CANARY 0xA5
#define BEHIND 256
#define REACH 40

static int untouched(const unsigned char *room, size_t n)
{
    for (size_t i = 0; i < BEHIND; i++)
        if (room[n + i] != CANARY)
            return 0;
    return 1;
}

/* ---- Consistency ------------------------------------------------------------------------- */

static float *load(const char *name, tgi_desc *d)
{
    char path[512];
    void *data = NULL;
    tgi_err err = {0};
    snprintf(path, sizeof path,
             TG_SHARED_DATA "/conformance/propainter/ops/fb_consistency/%s.npy", name);
    CHECK_OK(tgi_npy_load(path, 0, d, &data, &err), err);
    return data;
}

static void test_motions_agree_as_in_the_source(void)
{
    tgi_desc d = {0};
    if (!tg_has(TG_SHARED_DATA "/conformance/propainter/ops/fb_consistency/valid.npy"))
        return;
    float *to = load("flow_fw", &d), *back = load("flow_bw", &d);
    uint8_t *valid = (uint8_t *)load("valid", &d);
    const int64_t h = d.dim[2], w = d.dim[3];
    const size_t n = (size_t)(h * w);
    /* A frame that hides all, then one that hides nothing: what agrees and stays inside is found. */
    uint8_t *mask = malloc(n), *frames = malloc(n), *none = calloc(n, 1);
    float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
    int found = 0, inside = 0;
    memset(mask, 1, n);
    const tgi_trace out = {frames, x, y};
    const tgi_trace_link link[2] = {{0}, {none, {to, h, w, 1}, {back, h, w, 1}}};
    tgi_trace_follow(h, w, 0, h, mask, link, 1, &out);
    for (int64_t i = 0; i < h * w; i++) {
        const int64_t row = i / w;
        const float at_x = (float)(i % w) + to[i], at_y = (float)row + to[h * w + i];
        if (!(at_x >= 0 && at_x <= (float)(w - 1) && at_y >= 0 && at_y <= (float)(h - 1)))
            continue;
        inside++;
        found += frames[i] == 1;
        CHECK_EQ(frames[i] == 1, valid[i]);
    }
    printf("     %d of %d agree\n", found, inside);
    CHECK(found > 20 && inside - found > 20);
    free(mask), free(frames), free(none), free(x), free(y);
    tgi_free(to), tgi_free(back), tgi_free(valid);
}

/* ---- Drawn films ------------------------------------------------------------------------- */

/* A film whose camera moves by one matrix a frame: a point of frame t lies at m * point + shift in frame t + 1. */
typedef struct film {
    int64_t height, width, frames;
    int step;
    double m[2][2], shift[2]; /* x, y */
    uint8_t **mask, **hidden; /* of each frame: bytes, bits */
    float *to, *back;         /* motions, the same for all frames */
    tgi_trace_link *link;     /* to each frame from the one before it */
    tgi_trace trace;
} film;

static void point_to(const film *f, double p[2], int times)
{
    for (int k = 0; k < times; k++) {
        const double x = p[0], y = p[1];
        p[0] = f->m[0][0] * x + f->m[0][1] * y + f->shift[0];
        p[1] = f->m[1][0] * x + f->m[1][1] * y + f->shift[1];
    }
}

static void point_back(const film *f, double p[2])
{
    const double det = f->m[0][0] * f->m[1][1] - f->m[0][1] * f->m[1][0];
    const double x = p[0] - f->shift[0], y = p[1] - f->shift[1];
    p[0] = (f->m[1][1] * x - f->m[0][1] * y) / det;
    p[1] = (f->m[0][0] * y - f->m[1][0] * x) / det;
}

static tgi_motion make_motion(const film *f, float **out, int backwards)
{
    tgi_motion m = {.height = tgi_ceil_div(f->height, f->step),
                    .width = tgi_ceil_div(f->width, f->step),
                    .step = f->step};
    float *at = malloc(sizeof *at * (size_t)(2 * m.height * m.width));
    for (int64_t i = 0; i < m.height; i++)
        for (int64_t j = 0; j < m.width; j++) {
            const double x = ((double)j + 0.5) * f->step - 0.5;
            const double y = ((double)i + 0.5) * f->step - 0.5;
            double p[2] = {x, y};
            if (backwards)
                point_back(f, p);
            else
                point_to(f, p, 1);
            at[i * m.width + j] = (float)(p[0] - x);
            at[(m.height + i) * m.width + j] = (float)(p[1] - y);
        }
    m.at = *out = at;
    return m;
}

/* Frame t hides the pixels that `hides` says. */
static void new_film(film *f, bool (*hides)(int64_t t, int64_t y, int64_t x))
{
    const int64_t pitch = (f->width + 7) / 8;
    const size_t n = (size_t)(f->height * f->width);
    const tgi_motion to = make_motion(f, &f->to, 0), back = make_motion(f, &f->back, 1);
    f->mask = malloc(sizeof *f->mask * (size_t)f->frames);
    f->hidden = malloc(sizeof *f->hidden * (size_t)f->frames);
    f->link = calloc((size_t)f->frames + 256, sizeof *f->link);
    for (int64_t t = 0; t < f->frames; t++) {
        f->mask[t] = calloc(n, 1);
        f->hidden[t] = calloc((size_t)(pitch * f->height), 1);
        for (int64_t y = 0; y < f->height; y++)
            for (int64_t x = 0; x < f->width; x++)
                if (hides(t, y, x)) {
                    f->mask[t][y * f->width + x] = 255;
                    f->hidden[t][y * pitch + x / 8] |= (uint8_t)(1 << x % 8);
                }
        f->link[t] = (tgi_trace_link){f->hidden[t], to, back};
    }
    f->trace = (tgi_trace){malloc(n), malloc(n * sizeof(float)), malloc(n * sizeof(float))};
}

static void end_film(film *f)
{
    for (int64_t t = 0; t < f->frames; t++)
        free(f->mask[t]), free(f->hidden[t]);
    free(f->mask), free(f->hidden), free(f->link), free(f->to), free(f->back);
    free(f->trace.frames), free(f->trace.x), free(f->trace.y);
}

static void follow_from(const film *f, int64_t t, int reach)
{
    tgi_trace_follow(f->height, f->width, 0, f->height, f->mask[t], f->link + t, reach,
                     &f->trace);
}

/* Looks at each pixel of frame 0 that was found: the largest distance from where it is, and how many were not. */
static double off_course(const film *f, int64_t *found, int64_t *lost)
{
    double worst = 0;
    *found = *lost = 0;
    for (int64_t i = 0; i < f->height * f->width; i++) {
        const int n = f->trace.frames[i];
        const int64_t row = i / f->width;
        double p[2] = {(double)(i % f->width), (double)row};
        CHECK_EQ(n != 0, f->mask[0][i] != 0);
        *lost += n == TGI_TRACE_NONE;
        if (n == 0 || n == TGI_TRACE_NONE)
            continue;
        ++*found;
        point_to(f, p, n);
        worst = fmax(worst, hypot((double)f->trace.x[i] - p[0], (double)f->trace.y[i] - p[1]));
        const int64_t x = (int64_t)f->trace.x[i], y = (int64_t)f->trace.y[i];
        CHECK(!f->mask[n][y * f->width + x]);
    }
    return worst;
}

static bool hides_box(int64_t t, int64_t y, int64_t x)
{
    (void)t;
    return y >= 30 && y < 70 && x >= 20 && x < 60;
}

static bool hides_all_until_40(int64_t t, int64_t y, int64_t x)
{
    (void)y;
    return t < 40 && x < 100;
}

static bool hides_nothing_after_0(int64_t t, int64_t y, int64_t x)
{
    (void)y, (void)x;
    return t == 0;
}

static void test_a_constant_motion_leads_to_its_multiple(void)
{
    int64_t found, lost;
    for (int step = 1; step < 5; step++) {
        film f = {
            .height = 100, .width = 180, .frames = 42, .step = step, .m = {{1, 0}, {0, 1}}};
        f.shift[0] = 1.3, f.shift[1] = -0.4;
        new_film(&f, hides_all_until_40);
        follow_from(&f, 0, REACH);
        CHECK_NEAR(off_course(&f, &found, &lost), 0, 1e-3);
        CHECK_EQ(f.trace.frames[50 * 180 + 20], 40);
        CHECK_NEAR(f.trace.x[50 * 180 + 20], 20 + 40 * 1.3, 1e-3);
        CHECK_NEAR(f.trace.y[50 * 180 + 20], 50 - 40 * 0.4, 1e-3);
        follow_from(&f, 0, REACH - 1);
        CHECK_EQ(f.trace.frames[50 * 180 + 20], TGI_TRACE_NONE);
        end_film(&f);
    }
}

/* Slower than half a pixel: to the nearest pixel nothing moves at all. */
static void test_a_slow_pan_is_followed(void)
{
    int64_t found, lost;
    film f = {.height = 80, .width = 120, .frames = 220, .step = 4, .m = {{1, 0}, {0, 1}}};
    f.shift[0] = 0.3;
    new_film(&f, hides_box);
    follow_from(&f, 0, 200);
    CHECK_NEAR(off_course(&f, &found, &lost), 0, 1e-3);
    CHECK_EQ(lost, 0);
    CHECK_EQ(f.trace.frames[50 * 120 + 59],
             4); /* 60.2 is the first place with none hidden around */
    CHECK_EQ(f.trace.frames[50 * 120 + 40], 67);
    end_film(&f);
}

static void test_a_camera_that_zooms_and_turns_is_followed(void)
{
    int64_t found, lost;
    film f = {.height = 100, .width = 180, .frames = 42, .step = 4};
    const double zoom = 1.005, turn = 0.01, mid[2] = {90, 50};
    f.m[0][0] = f.m[1][1] = zoom * cos(turn);
    f.m[1][0] = zoom * sin(turn), f.m[0][1] = -f.m[1][0];
    for (int c = 0; c < 2; c++)
        f.shift[c] = mid[c] - f.m[c][0] * mid[0] - f.m[c][1] * mid[1] + 0.2;
    new_film(&f, hides_box);
    follow_from(&f, 0, REACH);
    const double off = off_course(&f, &found, &lost);
    printf("     %.4f px off, %d found, %d lost\n", off, (int)found, (int)lost);
    CHECK(off < 0.05);
    CHECK(found > 700);
    end_film(&f);
}

static void test_who_leaves_the_picture_is_lost(void)
{
    film f = {.height = 30, .width = 40, .frames = 3, .step = 2, .m = {{1, 0}, {0, 1}}};
    f.shift[0] = 2.5, f.shift[1] = -1;
    new_film(&f, hides_nothing_after_0);
    follow_from(&f, 0, 2);
    for (int64_t y = 0; y < 30; y++)
        for (int64_t x = 0; x < 40; x++)
            CHECK_EQ(f.trace.frames[y * 40 + x], y < 1 || x > 36 ? TGI_TRACE_NONE : 1);
    follow_from(&f, 2, 2); /* the last frame, which hides nothing */
    for (int64_t i = 0; i < 30 * 40; i++)
        CHECK_EQ(f.trace.frames[i], 0);
    f.link[1].hidden = NULL; /* the film ends with frame 0 */
    follow_from(&f, 0, 2);
    for (int64_t i = 0; i < 30 * 40; i++)
        CHECK_EQ(f.trace.frames[i], TGI_TRACE_NONE);
    f.link[1].hidden = f.hidden[1];
    end_film(&f);
}

static void test_who_does_not_come_back_is_lost(void)
{
    film f = {.height = 30, .width = 40, .frames = 2, .step = 1, .m = {{1, 0}, {0, 1}}};
    new_film(&f, hides_nothing_after_0);
    for (int64_t i = 0; i < 30 * 40; i++)
        f.back[i] =
            i % 40 < 20 ? 0.70f : 0.72f; /* 0.01 * 0.7 ^ 2 + 0.5 lies between their squares */
    follow_from(&f, 0, 1);
    for (int64_t i = 0; i < 30 * 40; i++)
        CHECK_EQ(f.trace.frames[i], i % 40 < 20 ? 1 : TGI_TRACE_NONE);
    end_film(&f);
}

static bool hides_drift(int64_t t, int64_t y, int64_t x)
{
    return x > 17 + t / 2 && x < 90 + t / 3 && (y + t) % 61 > 15;
}

static void test_rows_and_reach_do_not_matter(void)
{
    film f = {.height = 90, .width = 131, .frames = 90, .step = 3, .m = {{1, 0.001}, {0, 1}}};
    const size_t n = 90 * 131;
    f.shift[0] = -0.8, f.shift[1] = 0.33;
    new_film(&f, hides_drift);
    follow_from(&f, 0, 80);
    uint8_t *frames = malloc(n);
    float *x = calloc(n, sizeof *x), *y = calloc(n, sizeof *y);
    const tgi_trace near = {frames, x, y};
    for (int64_t row = 0; row < 90; row += 7)
        tgi_trace_follow(90, 131, row, tgi_min(row + 7, 90), f.mask[0], f.link, 15, &near);
    int64_t seen_ones = 0, later = 0;
    for (size_t i = 0; i < n; i++) {
        const int far = f.trace.frames[i];
        CHECK_EQ(frames[i], far > 15 ? TGI_TRACE_NONE : far);
        later += far > 15 && far != TGI_TRACE_NONE;
        if (far == 0 || far > 15)
            continue;
        seen_ones++;
        CHECK(x[i] == f.trace.x[i] && y[i] == f.trace.y[i]);
    }
    CHECK(seen_ones > 100 && later > 100);
    free(frames), free(x), free(y);
    end_film(&f);
}

/* ---- Colours ----------------------------------------------------------------------------- */

static double panorama(double x, double y, int c)
{
    return 0.5 + 0.2 * sin(0.31 * x + 0.17 * y + c) + 0.15 * cos(0.45 * y - 0.2 * x + 2 * c) +
           0.1 * sin(0.7 * x - 0.6 * y);
}

/* Frame t of a film that pans, with what it hides black. */
static void draw_frame(const film *f, int64_t t, int samples, tg_dtype dtype, void *out)
{
    const double top = dtype == TG_DTYPE_U8 ? 255 : 65535;
    for (int64_t i = 0; i < f->height * f->width; i++) {
        const int64_t row = i / f->width;
        for (int c = 0; c < samples; c++) {
            const double x = (double)(i % f->width) - f->shift[0] * (double)t;
            const double y = (double)row - f->shift[1] * (double)t;
            const double v = t && f->mask[t][i] ? 0 : panorama(x, y, c) * top + 0.5;
            if (dtype == TG_DTYPE_U8)
                ((uint8_t *)out)[i * samples + c] = (uint8_t)v;
            else
                ((uint16_t *)out)[i * samples + c] = (uint16_t)v;
        }
    }
}

static double value(const void *p, tg_dtype dtype, int64_t i)
{
    return dtype == TG_DTYPE_U8 ? ((const uint8_t *)p)[i] / 255.0
                                : ((const uint16_t *)p)[i] / 65535.0;
}

/* Takes the colours of frame 0's hidden pixels; their PSNR. */
static double taken(const film *f, int samples, tg_dtype dtype, int64_t *found)
{
    const size_t bytes = (size_t)(f->height * f->width * samples) * tgi_dtype_size(dtype);
    uint8_t *frames = malloc((REACH + 1) * bytes), *out = malloc(bytes + BEHIND);
    tgi_trace_frame from[REACH + 1] = {{0}};
    double sum = 0, worst = 0;
    for (int64_t t = 0; t <= REACH; t++) {
        draw_frame(f, t, samples, dtype, frames + (size_t)t * bytes);
        from[t] = (tgi_trace_frame){frames + (size_t)t * bytes, f->hidden[t]};
    }
    memset(out, CANARY, bytes + BEHIND);
    follow_from(f, 0, REACH);
    for (int64_t y = 0; y < f->height; y += 9)
        tgi_trace_take(f->height, f->width, y, tgi_min(y + 9, f->height), samples, dtype,
                       &f->trace, from, REACH, out);
    CHECK(untouched(out, bytes));
    *found = 0;
    for (int64_t i = 0; i < f->height * f->width; i++) {
        const bool is = f->trace.frames[i] && f->trace.frames[i] != TGI_TRACE_NONE;
        *found += is;
        for (int c = 0; c < samples; c++) {
            const int64_t k = i * samples + c;
            const double d = value(out, dtype, k) - value(frames, dtype, k);
            if (is) {
                sum += d * d;
                worst = fmax(worst, fabs(d));
            } else if (out[(size_t)k * tgi_dtype_size(dtype)] != CANARY) {
                CHECK(!"no trace leads there");
            }
        }
    }
    free(frames), free(out);
    printf("     %d pixels, at worst %.3f off\n", (int)*found, worst);
    return 10 * log10((double)(*found * samples) / fmax(sum, 1e-12));
}

static void test_colours_are_those_behind(void)
{
    static const double SHIFT[][2] = {
        {-1.3, 0.4}, {0.3, 0.1}, {2.75, -1.2}, {0.9, 0.9}, {-0.5, 0}};
    for (size_t s = 0; s < sizeof SHIFT / sizeof *SHIFT; s++)
        for (int wide = 0; wide < 2; wide++) {
            film f = {.height = 95, .width = 141, .frames = REACH + 1, .step = 4};
            int64_t found;
            f.m[0][0] = f.m[1][1] = 1;
            f.shift[0] = SHIFT[s][0], f.shift[1] = SHIFT[s][1];
            new_film(&f, hides_box);
            const double psnr = taken(&f, 3 - wide, wide ? TG_DTYPE_U16 : TG_DTYPE_U8, &found);
            printf("     pan (%.2f, %.2f): %.1f dB\n", f.shift[0], f.shift[1], psnr);
            CHECK(psnr > 38);
            CHECK(found > 400);
            end_film(&f);
        }
}

static void test_whole_pixels_are_copied_at_borders_too(void)
{
    film f = {.height = 30, .width = 37, .frames = REACH + 1, .step = 1, .m = {{1, 0}, {0, 1}}};
    int64_t found;
    f.shift[0] = 1;
    new_film(&f, hides_nothing_after_0);
    CHECK(taken(&f, 3, TG_DTYPE_U8, &found) > 90);
    CHECK_EQ(found, 30 * 36);
    end_film(&f);
}

static void test_extremes_are_clipped_and_hidden_ones_do_not_count(void)
{
    /* A step from 0 to 255 between columns 3 and 4: cubic goes beyond both. */
    uint8_t pixels[8 * 8], frames[8 * 8] = {0}, hidden[8] = {0}, out[8 * 8] = {0};
    float x[64] = {0}, y[64] = {0};
    const tgi_trace trace = {frames, x, y};
    tgi_trace_frame from[2] = {{0}, {pixels, hidden}};
    for (int i = 0; i < 64; i++) {
        const int row = i / 8;
        pixels[i] = i % 8 > 3 ? 255 : 0;
        frames[i] = 1;
        x[i] = (float)(i % 8) + (i % 8 < 7 ? 0.5f : 0);
        y[i] = (float)row;
    }
    tgi_trace_take(8, 8, 0, 8, 1, TG_DTYPE_U8, &trace, from, 1, out);
    static const uint8_t WANT[8] = {0, 0, 0, 128, 255, 255, 255, 255};
    CHECK(memcmp(out + 24, WANT, 8) == 0);
    hidden[3] = 1 << 4; /* (4, 3): linear around it, and without it */
    tgi_trace_take(8, 8, 0, 8, 1, TG_DTYPE_U8, &trace, from, 1, out);
    CHECK_EQ(out[3 * 8 + 3], 0);
    CHECK_EQ(out[3 * 8 + 2], 0);
    CHECK_EQ(out[2 * 8 + 3], 128);
    from[1].pixels = NULL;
    memset(out, 9, sizeof out);
    tgi_trace_take(8, 8, 0, 8, 1, TG_DTYPE_U8, &trace, from, 1, out);
    CHECK_EQ(out[3 * 8 + 3], 9);
}

/* ---- Time -------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool hides_100k(int64_t t, int64_t y, int64_t x)
{
    (void)t;
    return y >= 400 && y < 650 && x >= 700 && x < 1100;
}

static void time_follow(double shift)
{
    film f = {.height = 1080, .width = 1920, .frames = REACH + 1, .step = 4};
    int64_t steps = 0, hidden = 0, found = 0;
    double best = INFINITY, take = INFINITY;
    f.m[0][0] = f.m[1][1] = 1;
    f.shift[0] = shift;
    new_film(&f, hides_100k);
    uint8_t *pixels = calloc(1080 * 1920, 3), *out = calloc(1080 * 1920, 3);
    tgi_trace_frame from[REACH + 1];
    for (int t = 0; t <= REACH; t++)
        from[t] = (tgi_trace_frame){pixels, f.hidden[t]};
    for (int k = 0; k < 5; k++) {
        double start = now();
        follow_from(&f, 0, REACH);
        best = fmin(best, now() - start);
        start = now();
        tgi_trace_take(1080, 1920, 0, 1080, 3, TG_DTYPE_U8, &f.trace, from, REACH, out);
        take = fmin(take, now() - start);
    }
    for (int64_t i = 0; i < 1080 * 1920; i++) {
        const int n = f.trace.frames[i];
        hidden += n > 0;
        found += n > 0 && n != TGI_TRACE_NONE;
        steps += n == TGI_TRACE_NONE ? REACH : n;
    }
    printf("1080p, pan %.1f: %d hidden, %d found; follow %.2f ms, %.1f ns a step; take %.2f "
           "ms, %.0f ns a pixel\n",
           shift, (int)hidden, (int)found, 1e3 * best, 1e9 * best / (double)steps, 1e3 * take,
           1e9 * take / (double)tgi_max(found, 1));
    free(pixels), free(out);
    end_film(&f);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--time") == 0) {
        time_follow(0);
        time_follow(0.5);
        time_follow(3);
        time_follow(30);
        return 0;
    }
    RUN(test_motions_agree_as_in_the_source);
    RUN(test_a_constant_motion_leads_to_its_multiple);
    RUN(test_a_slow_pan_is_followed);
    RUN(test_a_camera_that_zooms_and_turns_is_followed);
    RUN(test_who_leaves_the_picture_is_lost);
    RUN(test_who_does_not_come_back_is_lost);
    RUN(test_rows_and_reach_do_not_matter);
    RUN(test_colours_are_those_behind);
    RUN(test_whole_pixels_are_copied_at_borders_too);
    RUN(test_extremes_are_clipped_and_hidden_ones_do_not_count);
    return TEST_END();
}
