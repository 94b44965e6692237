/* Frames as pixels: every form of storing them, against the stated conversion written out here in
 * float64, pixel by pixel, within half a step and what float32 rounds. And those whose planes are staged for whoever
 * converts them pixel by pixel (engine/base/yuv.h), against rows of pixels, to the bit. */
#include "engine/base/arith.h"
#include "io/film_yuv.h"
#include "tests/tg_test.h"

#include <math.h>

static uint64_t seed = 11;

/* ---- Forms ------------------------------------------------------------------------------- */

/* Y, U, V (and alpha) in planes. */
static tgi_av_form planar(int n, int depth, int w, int h)
{
    tgi_av_form f = {.n_components = n, .n_planes = n, .log2_chroma_w = w, .log2_chroma_h = h};
    f.wide = depth > 8;
    for (int c = 0; c < n; c++)
        f.component[c] =
            (tgi_av_component){.plane = c, .step = depth > 8 ? 2 : 1, .depth = depth};
    f.has_alpha = n == 4 || n == 2;
    return f;
}

/* Components side by side in one plane, component c at offset[c]. */
static tgi_av_form packed(int n, const int *offset, int step)
{
    tgi_av_form f = {
        .n_components = n, .n_planes = 1, .is_rgb = n > 2, .has_alpha = n % 2 == 0};
    for (int c = 0; c < n; c++)
        f.component[c] = (tgi_av_component){.step = step, .offset = offset[c], .depth = 8};
    return f;
}

typedef struct stored {
    tgi_av_info info;
    tgi_av_frame frame;
    uint8_t *bytes[4];
} stored;

static int chroma(const tgi_av_form *f, int c)
{
    return !f->is_rgb && f->n_components > 2 && (c == 1 || c == 2);
}

static int64_t columns(const stored *s, int c)
{
    return chroma(&s->info.form, c) ? -((-s->info.width) >> s->info.form.log2_chroma_w)
                                    : s->info.width;
}

static int64_t lines(const stored *s, int c)
{
    return chroma(&s->info.form, c) ? -((-s->info.height) >> s->info.form.log2_chroma_h)
                                    : s->info.height;
}

/* Element (y, x) of component c, as stored. */
static unsigned element(const stored *s, int c, int64_t y, int64_t x)
{
    const tgi_av_component *k = &s->info.form.component[c];
    const uint8_t *p =
        s->bytes[k->plane] + y * s->frame.pitch[k->plane] + x * k->step + k->offset;
    const unsigned v = !s->info.form.wide        ? p[0]
                       : s->info.form.big_endian ? (unsigned)p[0] << 8 | p[1]
                                                 : (unsigned)p[1] << 8 | p[0];
    return v >> k->shift & ((1u << k->depth) - 1);
}

static void put(stored *s, int c, int64_t y, int64_t x, unsigned v)
{
    const tgi_av_component *k = &s->info.form.component[c];
    uint8_t *p = s->bytes[k->plane] + y * s->frame.pitch[k->plane] + x * k->step + k->offset;
    v <<= k->shift;
    if (!s->info.form.wide) {
        p[0] |= (uint8_t)v;
    } else {
        p[s->info.form.big_endian] |= (uint8_t)v;
        p[!s->info.form.big_endian] |= (uint8_t)(v >> 8);
    }
}

/* Random numbers in every element; planes have gaps behind their rows. */
static void draw(stored *s, const tgi_av_form *form, int w, int h)
{
    *s = (stored){.info = {.width = w, .height = h, .form = *form}};
    for (int p = 0; p < form->n_planes; p++) {
        s->frame.pitch[p] = 8 * (w + 5);
        s->bytes[p] = calloc((size_t)s->frame.pitch[p], (size_t)h + 1);
        s->frame.plane[p] = s->bytes[p];
    }
    for (int c = 0; c < form->n_components; c++)
        for (int64_t y = 0; y < lines(s, c); y++)
            for (int64_t x = 0; x < columns(s, c); x++)
                put(s, c, y, x,
                    (unsigned)tg_rand_in(&seed, 0, (1 << form->component[c].depth) - 1));
}

static void erase(stored *s)
{
    for (int p = 0; p < 4; p++)
        free(s->bytes[p]);
}

/* ---- The conversion, once more ------------------------------------------------------------- */

typedef struct meaning {
    int limited;
    double red, blue;  /* shares of luma */
    double at_x, at_y; /* of the first chroma sample */
} meaning;

static double as_number(const stored *s, const meaning *m, int c, unsigned v)
{
    const tgi_av_form *f = &s->info.form;
    const int depth = f->component[c].depth;
    const double unit = ldexp(1, depth - 8), all = ldexp(1, depth) - 1;
    if (chroma(f, c))
        return ((double)v - ldexp(1, depth - 1)) / (m->limited ? 224 * unit : all);
    if (m->limited && !f->is_rgb && !(f->has_alpha && c == f->n_components - 1))
        return ((double)v - 16 * unit) / (219 * unit);
    return (double)v / all;
}

static double component(const stored *s, const meaning *m, int c, int64_t y, int64_t x)
{
    const tgi_av_form *f = &s->info.form;
    if (!chroma(f, c))
        return as_number(s, m, c, element(s, c, y, x));
    const double fx = ((double)x - m->at_x) / (1 << f->log2_chroma_w);
    const double fy = ((double)y - m->at_y) / (1 << f->log2_chroma_h);
    double sum = 0;
    for (int j = 0; j < 2; j++)
        for (int i = 0; i < 2; i++) {
            const int64_t cx = tgi_clamp((int64_t)floor(fx) + i, 0, columns(s, c) - 1);
            const int64_t cy = tgi_clamp((int64_t)floor(fy) + j, 0, lines(s, c) - 1);
            const double px = fx - floor(fx), py = fy - floor(fy);
            sum += (i ? px : 1 - px) * (j ? py : 1 - py) *
                   as_number(s, m, c, element(s, c, cy, cx));
        }
    return sum;
}

static double wanted(const stored *s, const meaning *m, int k, int64_t y, int64_t x)
{
    const double v = component(s, m, k, y, x);
    if (!chroma(&s->info.form, 1) || k == 3)
        return v;
    const double luma = component(s, m, 0, y, x), u = component(s, m, 1, y, x),
                 w = component(s, m, 2, y, x);
    const double green = 1 - m->red - m->blue;
    return k == 0   ? luma + 2 * (1 - m->red) * w
           : k == 2 ? luma + 2 * (1 - m->blue) * u
                    : luma - (2 * m->blue * (1 - m->blue) * u + 2 * m->red * (1 - m->red) * w) /
                                 green;
}

/* Where pixel (y, x) is seen. */
static int64_t seen_at(const stored *s, int64_t y, int64_t x)
{
    const int64_t w = s->info.width, h = s->info.height;
    if (s->info.flipped)
        x = w - 1 - x;
    return s->info.rotation == 90    ? x * h + (h - 1 - y)
           : s->info.rotation == 180 ? (h - 1 - y) * w + (w - 1 - x)
           : s->info.rotation == 270 ? (w - 1 - x) * h + y
                                     : y * w + x;
}

/* ---- And the way back ---------------------------------------------------------------------- */

static double pixel(const stored *s, const tgi_film_pixels *p, const void *image, int k,
                    int64_t y, int64_t x)
{
    const int64_t at =
        seen_at(s, tgi_clamp(y, 0, s->info.height - 1), tgi_clamp(x, 0, s->info.width - 1)) *
            p->samples +
        k;
    return p->dtype == TG_DTYPE_U8 ? ((const uint8_t *)image)[at] / 255.0
                                   : ((const uint16_t *)image)[at] / 65535.0;
}

static double luma_of(const stored *s, const tgi_film_pixels *p, const meaning *m,
                      const void *image, int64_t y, int64_t x)
{
    return m->red * pixel(s, p, image, 0, y, x) + m->blue * pixel(s, p, image, 2, y, x) +
           (1 - m->red - m->blue) * pixel(s, p, image, 1, y, x);
}

/* How much of sample i, the first of which lies at `place`, pixel k counts. */
static double share_of(int64_t i, int64_t k, int log2, double place)
{
    const int64_t n = 1 << log2;
    const double far = fabs((double)k - ((double)(i * n) + place));
    if (place == 0 || place == (double)(n - 1))
        return far < (double)n ? ((double)n - far) / (double)(n * n) : 0;
    return far < (double)n / 2 ? 1.0 / (double)n : 0;
}

static double colour_of(const stored *s, const tgi_film_pixels *p, const meaning *m,
                        const void *image, int c, int64_t i, int64_t j)
{
    const int lw = s->info.form.log2_chroma_w, lh = s->info.form.log2_chroma_h;
    double sum = 0;
    for (int64_t y = (i << lh) - 8; y < (i << lh) + 16; y++)
        for (int64_t x = (j << lw) - 8; x < (j << lw) + 16; x++) {
            const double part = share_of(i, y, lh, m->at_y) * share_of(j, x, lw, m->at_x);
            if (part > 0)
                sum +=
                    part *
                    (pixel(s, p, image, c == 1 ? 2 : 0, y, x) - luma_of(s, p, m, image, y, x)) /
                    (2 * (1 - (c == 1 ? m->blue : m->red)));
        }
    return sum;
}

/* Where as_number leads from. */
static double element_of(const stored *s, const meaning *m, int c, double v)
{
    const double black = as_number(s, m, c, 0), step = as_number(s, m, c, 1) - black;
    return fmin(fmax((v - black) / step, 0), ldexp(1, s->info.form.component[c].depth) - 1);
}

static void check_back(const stored *s, const meaning *m, const tgi_film_pixels *p,
                       const void *image)
{
    stored made;
    tgi_av_blank blank = {{0}, {0}};
    draw(&made, &s->info.form, s->info.width, s->info.height);
    for (int i = 0; i < s->info.form.n_planes; i++) {
        blank.plane[i] = made.bytes[i];
        blank.pitch[i] = made.frame.pitch[i];
    }
    void *room = malloc(tgi_film_row_room(p));
    tgi_film_planes(p, p->samples, image, &blank, room);
    double worst = 0;
    for (int c = 0; c < s->info.form.n_components; c++)
        for (int64_t y = 0; y < lines(s, c); y++)
            for (int64_t x = 0; x < columns(s, c); x++) {
                const double v = chroma(&s->info.form, c) ? colour_of(s, p, m, image, c, y, x)
                                 : c == 0 && chroma(&s->info.form, 1)
                                     ? luma_of(s, p, m, image, y, x)
                                     : pixel(s, p, image, c, y, x);
                worst =
                    fmax(worst, fabs(element_of(s, m, c, v) - (double)element(&made, c, y, x)));
            }
    CHECK(worst <= (p->dtype == TG_DTYPE_U8 ? 0.5 + 0.001 : 0.5 + 0.06));
    if (worst > 0.6)
        printf("back off by %g\n", worst);
    erase(&made);
    free(room);
}

static tgi_range some_of(int64_t n)
{
    const int64_t lo = tg_rand_in(&seed, 0, n - 1);
    return (tgi_range){lo, tg_rand_in(&seed, lo + 1, n)};
}

/* Pixels of a rectangle of dense planes, of a part of the frame that begins anywhere: how many are not those of the picture. */
static int64_t count_others(const tgi_yuv *of, const void *planes, const void *image)
{
    tgi_yuv f = *of;
    const tgi_range rows = some_of(f.height), cols = some_of(f.width);
    f.y0 = tg_rand_in(&seed, 0, rows.lo);
    f.x0 = tg_rand_in(&seed, 0, cols.lo);
    const tgi_yuv_staged what = tgi_yuv_stage(&f, (tgi_range){rows.lo - f.y0, rows.hi - f.y0},
                                              (tgi_range){cols.lo - f.x0, cols.hi - f.x0});
    const size_t bytes = tgi_yuv_bytes(&f, &what);
    char *staged = malloc(bytes + 1); /* so that what lies behind is nobody's */
    staged[bytes] = 0x5a;
    tgi_film_yuv_stage(&f, &what, planes, staged);
    CHECK_EQ(staged[bytes], 0x5a);
    int64_t others = 0;
    for (int64_t y = rows.lo; y < rows.hi; y++)
        for (int64_t x = cols.lo; x < cols.hi; x++) {
            uint32_t rgb[3];
            tgi_yuv_pixel(&f, &what, staged, y, x, rgb);
            for (int c = 0; c < 3; c++) {
                const int64_t at = (y * f.width + x) * 3 + c;
                others += rgb[c] != (f.depth > 8 ? ((const uint16_t *)image)[at]
                                                 : ((const uint8_t *)image)[at]);
            }
        }
    free(staged);
    return others;
}

/* 1: frames are kept so. */
static int check_staged(const stored *s, const tgi_film_pixels *p, const void *image,
                        size_t bytes, void *room)
{
    tgi_yuv f;
    if (!tgi_film_yuv_of(p, &f))
        return 0;
    char *planes = malloc(bytes), *row = malloc(bytes);
    const size_t line = bytes / (size_t)p->height;
    tgi_film_yuv_take(p, &s->frame, planes);
    for (int k = 0; k < 4; k++)
        CHECK_EQ(count_others(&f, planes, image), 0);
    for (int64_t y = 0; y < p->height; y++) {
        tgi_film_yuv_row(p, planes, y, row, room);
        CHECK(memcmp(row, (const char *)image + (size_t)y * line, line) == 0);
    }
    tgi_film_yuv_black(p, planes);
    memset(row, 0, bytes);
    CHECK_EQ(count_others(&f, planes, row), 0);
    free(planes);
    free(row);
    return 1;
}

static int kept_as_yuv; /* frames of the test */

static void check(stored *s, const meaning *m)
{
    tgi_film_pixels p;
    tgi_err err = {0};
    CHECK_OK(tgi_film_pixels_make(&s->info, &p, &err), err);
    const int64_t n = (int64_t)s->info.width * s->info.height * p.samples;
    const double most = p.dtype == TG_DTYPE_U8 ? 255 : 65535;
    uint8_t *image = malloc((size_t)n * 2);
    void *room = malloc(tgi_film_row_room(&p));
    for (int64_t y = 0; y < s->info.height; y++)
        tgi_film_row(&p, &s->frame, y, image, room);
    double worst = 0;
    for (int64_t y = 0; y < s->info.height; y++)
        for (int64_t x = 0; x < s->info.width; x++)
            for (int k = 0; k < p.samples; k++) {
                const int64_t at = seen_at(s, y, x) * p.samples + k;
                const double got =
                    p.dtype == TG_DTYPE_U8 ? image[at] : ((uint16_t *)(void *)image)[at];
                const double want = fmin(fmax(wanted(s, m, k, y, x) * most, 0), most);
                worst = fmax(worst, fabs(got - want));
            }
    CHECK(worst <= (most > 255 ? 0.5 + 0.06 : 0.5 + 0.001));
    if (worst > 0.6)
        printf("off by %g\n", worst);
    kept_as_yuv += check_staged(s, &p, image, (size_t)n * tgi_dtype_size(p.dtype), room);
    check_back(s, m, &p, image);
    free(room);
    free(image);
}

/* ---- Tests ------------------------------------------------------------------------------- */

static void test_planes_of_every_size_and_depth(void)
{
    static const int sizes[][2] = {{0, 0}, {1, 0}, {1, 1}, {2, 2}, {2, 0}, {0, 1}};
    static const int depths[] = {8, 9, 10, 12, 16};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = 0; d < 5; d++)
            for (int n = 3; n <= 4; n++) {
                tgi_av_form f = planar(n, depths[d], sizes[i][0], sizes[i][1]);
                f.big_endian = d == 2 && (n == 4 || i % 2);
                stored s;
                draw(&s, &f, (int)tg_rand_in(&seed, 1, 23), (int)tg_rand_in(&seed, 1, 17));
                /* nothing is said: limited, BT.601, on the left and between rows */
                const meaning m = {1, 0.299, 0.114, 0, ((1 << sizes[i][1]) - 1) / 2.0};
                check(&s, &m);
                erase(&s);
            }
}

static void test_what_the_film_says_of_its_colours(void)
{
    static const struct {
        const char *matrix, *range, *place;
        meaning m;
    } said[] = {{"bt709", "tv", "left", {1, 0.2126, 0.0722, 0, 0.5}},
                {"bt709", "pc", "center", {0, 0.2126, 0.0722, 0.5, 0.5}},
                {"smpte170m", "tv", "topleft", {1, 0.299, 0.114, 0, 0}},
                {"bt470bg", "pc", "top", {0, 0.299, 0.114, 0.5, 0}},
                {"bt2020nc", "tv", "bottomleft", {1, 0.2627, 0.0593, 0, 1}},
                {"smpte240m", "tv", "bottom", {1, 0.212, 0.087, 0.5, 1}},
                {"fcc", "tv", "left", {1, 0.30, 0.11, 0, 0.5}}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        tgi_av_form f = planar(3, i % 2 ? 10 : 8, 1, 1);
        snprintf(f.matrix, sizeof f.matrix, "%s", said[i].matrix);
        snprintf(f.range, sizeof f.range, "%s", said[i].range);
        snprintf(f.chroma_place, sizeof f.chroma_place, "%s", said[i].place);
        stored s;
        draw(&s, &f, 19, 14);
        check(&s, &said[i].m);
        erase(&s);
    }
    tgi_av_info i = {.width = 2, .height = 720, .form = planar(3, 8, 1, 1)};
    tgi_film_pixels p;
    tgi_err err = {0};
    CHECK_OK(tgi_film_pixels_make(&i, &p, &err), err);
    CHECK_STR(p.assumed, "matrix of BT.709, limited range, chroma on the left");
    snprintf(i.form.matrix, sizeof i.form.matrix, "ictcp");
    CHECK_STATUS(tgi_film_pixels_make(&i, &p, &err), TG_E_UNSUPPORTED, err);
}

static void test_grey_and_rgb_are_what_they_are(void)
{
    static const int bgra[] = {2, 1, 0, 3}, rgb[] = {0, 1, 2}, grey[] = {0},
                     grey_alpha[] = {0, 1};
    const tgi_av_form forms[] = {packed(4, bgra, 4), packed(3, rgb, 3), packed(1, grey, 1),
                                 packed(2, grey_alpha, 2)};
    const meaning full = {0, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        stored s;
        draw(&s, &forms[i], 13, 9);
        check(&s, &full);
        erase(&s);
    }
    tgi_av_form planes = planar(3, 12, 0, 0), shifted = planar(3, 10, 1, 1);
    planes.is_rgb = 1;
    for (int c = 0; c < 3; c++)
        shifted.component[c].shift = 6; /* as P010 has them */
    const meaning none_said = {1, 0.299, 0.114, 0, 0.5};
    stored s;
    draw(&s, &planes, 8, 8);
    check(&s, &full);
    erase(&s);
    draw(&s, &shifted, 8, 8);
    check(&s, &none_said);
    erase(&s);
}

static void test_frames_come_upright(void)
{
    const tgi_av_form f = planar(3, 8, 1, 1);
    const meaning m = {1, 0.299, 0.114, 0, 0.5};
    for (int turn = 0; turn < 360; turn += 90)
        for (int flipped = 0; flipped < 2; flipped++) {
            stored s;
            draw(&s, &f, 21, 12);
            s.info.rotation = turn;
            s.info.flipped = flipped;
            check(&s, &m);
            erase(&s);
        }
}

static void test_frames_upright_and_opaque_are_kept_as_yuv(void)
{
    CHECK_EQ(kept_as_yuv, 30 + 7 + 1 + 1); /* of each test above */
}

int main(void)
{
    RUN(test_planes_of_every_size_and_depth);
    RUN(test_what_the_film_says_of_its_colours);
    RUN(test_grey_and_rgb_are_what_they_are);
    RUN(test_frames_come_upright);
    RUN(test_frames_upright_and_opaque_are_kept_as_yuv);
    return TEST_END();
}
