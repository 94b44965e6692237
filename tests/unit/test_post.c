/* test_post.c - objects out of images (--post): numbers equal to those of a flood fill, in the order of their first
 * pixels, whatever rows are asked for together and whether tables are in memory or in a file. */
#include "engine/post/components.h"
#include "engine/post/objects.h"
#include "engine/post/otsu.h"
#include "engine/post/paged.h"
#include "engine/post/post.h"
#include "tests/tg_test.h"

#include <stdint.h>

/* ---- Drawn ------------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t draw(void) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

static int64_t between(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(draw() % (uint32_t)(hi - lo + 1));
}

/* ---- A source of bytes ------------------------------------------------------------------- */

typedef struct bytes {
    tgi_source base;
    tgi_image_info info;
    const uint8_t *pixel; /* [plane][row][column][sample] */
} bytes;

static const tgi_image_info *bytes_info(const tgi_source *s)
{
    return &((const bytes *)s)->info;
}

static tg_status bytes_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                            int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                            size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    const bytes *b = (const bytes *)base;
    const tgi_image_info *i = &b->info;
    (void)thread;
    (void)err;
    for (int s = s0; s < s1; s++)
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++)
                ((uint8_t *)dst)[(size_t)(s - s0) * sample_pitch +
                                 (size_t)(y - y0) * row_pitch + (size_t)(x - x0)] =
                    b->pixel[((plane * i->height + y) * i->width + x) * i->samples + s];
    return TG_OK;
}

static void bytes_close(tgi_source **s)
{
    tgi_free(*s);
    *s = NULL;
}

static size_t bytes_held(const tgi_source *s)
{
    (void)s;
    return sizeof(bytes);
}

static const tgi_source_ops bytes_ops = {.format = "bytes",
                                         .info = bytes_info,
                                         .read = bytes_read,
                                         .close = bytes_close,
                                         .codec_bytes = bytes_held};

/* An image whose axes are Z, C, Y, X, S, some of them of one. */
typedef struct image {
    int64_t z, c, h, w;
    int s;
    uint8_t *pixel;
} image;

static tgi_source *source_of(const image *m)
{
    bytes *b = tgi_calloc(TGI_TAG_MISC, 1, sizeof *b);
    b->base.ops = &bytes_ops;
    b->info = (tgi_image_info){.format = "bytes",
                               .n_axes = 5,
                               .axes = "ZCYXS",
                               .shape = {m->z, m->c, m->h, m->w, m->s},
                               .dtype = TG_DTYPE_U8,
                               .n_planes = m->z * m->c,
                               .height = m->h,
                               .width = m->w,
                               .samples = m->s};
    b->pixel = m->pixel;
    return &b->base;
}

static image draw_image(void)
{
    image m = {.z = between(1, 6),
               .c = between(1, 2),
               .h = between(1, 24),
               .w = between(1, 40),
               .s = (int)between(1, 2)};
    const int64_t n = m.z * m.c * m.h * m.w * m.s;
    const uint32_t share = (uint32_t)between(1, 99);
    m.pixel = tgi_malloc(TGI_TAG_MISC, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        m.pixel[i] = draw() % 100 < share ? (uint8_t)between(1, 255) : 0;
    return m;
}

static tgi_source *post_over(const image *m, const char *list, size_t cache, const char *folder)
{
    tgi_err err = {0};
    tgi_post_opts o = {.view = {.planes = {.n = 1, .range = {{0, m->z * m->c}}},
                                .n_planes = m->z * m->c,
                                .y = {0, m->h},
                                .x = {0, m->w},
                                .n_axes = 5,
                                .axes = "ZCYXS",
                                .shape = {m->z, m->c, m->h, m->w, m->s}}};
    tgi_source *inner = source_of(m), *s = NULL;
    CHECK_OK(tgi_post_parse(list, &o.spec, &err), err);
    CHECK_OK(tgi_post_open(inner, &o, &s, &err), err);
    if (!s) {
        tgi_source_close(&inner);
        return NULL;
    }
    const size_t most = tgi_post_most(s), least = tgi_post_least(s);
    CHECK(least <= most);
    CHECK_OK(tgi_post_settle(
                 s,
                 folder ? least + (size_t)((double)(most - least) * (double)cache / 100) : most,
                 folder, &err),
             err);
    return s;
}

/* ---- The other way: fill from each pixel ------------------------------------------------- */

typedef struct flood {
    const image *m;
    int neighbours, volume;
    uint8_t want; /* pixels that are not 0, or that are */
    int64_t *queue;
} flood;

static int64_t at(const image *m, int64_t z, int64_t c, int64_t y, int64_t x, int s)
{
    return (((z * m->c + c) * m->h + y) * m->w + x) * m->s + s;
}

static int are_neighbours(const flood *f, int64_t dz, int64_t dy, int64_t dx)
{
    const int64_t sides = (dz != 0) + (dy != 0) + (dx != 0);
    if (sides == 0 || (dz && !f->volume))
        return 0;
    return sides == 1 || f->neighbours == 8 || f->neighbours == 26;
}

/* The component of a pixel gets a number; how many pixels, and whether it lies at the border. */
static int64_t fill(flood *f, const uint8_t *mask, uint32_t *number, uint32_t n, int64_t z0,
                    int64_t c, int64_t y0, int64_t x0, int s, int *border)
{
    const image *m = f->m;
    int64_t head = 0, tail = 0;
    number[at(m, z0, c, y0, x0, s)] = n;
    f->queue[tail++] = (z0 * m->h + y0) * m->w + x0;
    *border = 0;
    while (head < tail) {
        const int64_t k = f->queue[head++], x = k % m->w, y = k / m->w % m->h,
                      z = k / m->w / m->h;
        *border |= x == 0 || y == 0 || x == m->w - 1 || y == m->h - 1 ||
                   (f->volume && (z == 0 || z == m->z - 1));
        for (int64_t d = 0; d < 27; d++) {
            const int64_t dz = d / 9 - 1, dy = d / 3 % 3 - 1, dx = d % 3 - 1;
            const int64_t nz = z + dz, ny = y + dy, nx = x + dx;
            if (!are_neighbours(f, dz, dy, dx) || nz < 0 || ny < 0 || nx < 0 || nz >= m->z ||
                ny >= m->h || nx >= m->w)
                continue;
            const int64_t i = at(m, nz, c, ny, nx, s);
            if ((mask[i] != 0) != f->want || number[i])
                continue;
            number[i] = n;
            f->queue[tail++] = (nz * m->h + ny) * m->w + nx;
        }
    }
    return tail;
}

static int64_t pixels(const image *m)
{
    return m->z * m->c * m->h * m->w * m->s;
}

/* Numbers of components of `size` pixels or more; of holes 1. */
static void number_all(const image *m, const uint8_t *mask, int neighbours, int holes,
                       int64_t size, uint32_t *number)
{
    uint32_t *all = tgi_calloc(TGI_TAG_MISC, (size_t)pixels(m), sizeof *all);
    uint32_t *kept = tgi_calloc(TGI_TAG_MISC, (size_t)pixels(m) + 1, sizeof *kept);
    flood f = {.m = m,
               .neighbours = neighbours,
               .volume = neighbours == 6 || neighbours == 26,
               .want = !holes,
               .queue = tgi_calloc(TGI_TAG_MISC, (size_t)pixels(m), sizeof(int64_t))};
    uint32_t n = 0;
    for (int64_t c = 0; c < m->c; c++)
        for (int s = 0; s < m->s; s++) {
            uint32_t k = 0;
            for (int64_t z = 0; z < m->z; z++) {
                k = f.volume ? k : 0; /* planes count by themselves */
                for (int64_t y = 0; y < m->h; y++)
                    for (int64_t x = 0; x < m->w; x++) {
                        const int64_t i = at(m, z, c, y, x, s);
                        int border;
                        if ((mask[i] != 0) == f.want && !all[i] &&
                            fill(&f, mask, all, ++n, z, c, y, x, s, &border) >= size)
                            kept[n] = holes ? !border : ++k;
                    }
            }
        }
    for (int64_t i = 0; i < pixels(m); i++)
        number[i] = kept[all[i]];
    tgi_free(all);
    tgi_free(kept);
    tgi_free(f.queue);
}

/* ---- Both -------------------------------------------------------------------------------- */

/* All that the source gives, `band` rows at a time, to where `expected` has it. */
static int64_t differences(tgi_source *s, const image *m, int64_t band,
                           const uint32_t *expected)
{
    const tgi_image_info *info = s->ops->info(s);
    const size_t size = tgi_dtype_size(info->dtype), row = (size_t)m->w * size;
    uint8_t *got = tgi_malloc(TGI_TAG_MISC, (size_t)(band * m->s) * row);
    int64_t others = 0;
    tgi_err err = {0};
    for (int64_t p = 0; p < m->z * m->c; p++)
        for (int64_t y = 0; y < m->h; y += band) {
            const int64_t y1 = y + band < m->h ? y + band : m->h;
            CHECK_OK(s->ops->read(s, 0, p, 0, m->s, y, y1, 0, m->w, got, row,
                                  row * (size_t)(y1 - y), &err),
                     err);
            for (int k = 0; k < m->s; k++)
                for (int64_t r = y; r < y1; r++)
                    for (int64_t x = 0; x < m->w; x++) {
                        uint32_t v = 0;
                        memcpy(&v,
                               got +
                                   ((size_t)(k * (y1 - y) + r - y) * (size_t)m->w + (size_t)x) *
                                       size,
                               size);
                        others += v != expected[at(m, p / m->c, p % m->c, r, x, k)];
                    }
        }
    tgi_free(got);
    return others;
}

static void expect(const image *m, const char *list, int64_t band, const uint32_t *expected)
{
    tgi_source *s = post_over(m, list, 0, NULL);
    if (!s)
        return;
    const int64_t n = differences(s, m, band, expected);
    if (n)
        fprintf(stderr, "%s of %lldx%lldx%lldx%lldx%d in bands of %lld: %lld pixels differ\n",
                list, (long long)m->z, (long long)m->c, (long long)m->h, (long long)m->w, m->s,
                (long long)band, (long long)n);
    CHECK_EQ(n, 0);
    tgi_source_close(&s);
}

static void test_500_volumes_in_bands(void)
{
    static const int around[] = {4, 8, 6, 26};
    char list[64];
    for (int k = 0; k < 500; k++) {
        state = (uint64_t)k;
        image m = draw_image();
        uint32_t *number = tgi_malloc(TGI_TAG_MISC, (size_t)pixels(&m) * sizeof *number);
        const int n = around[k % 4];
        const int64_t size = between(1, 12);
        snprintf(list, sizeof list, "label:%d", n);
        number_all(&m, m.pixel, n, 0, 0, number);
        expect(&m, list, between(1, m.h), number);
        expect(&m, list, k % 2 ? 1 : m.h, number);
        snprintf(list, sizeof list, "min-size:%lld,label:%d", (long long)size, n);
        number_all(&m, m.pixel, n, 0, size, number);
        expect(&m, list, between(1, m.h), number);
        tgi_free(number);
        tgi_free(m.pixel);
    }
}

static void test_steps_on_masks_follow_each_other(void)
{
    for (int k = 0; k < 100; k++) {
        state = (uint64_t)(1000 + k);
        image m = draw_image();
        const int64_t n = pixels(&m), size = between(2, 12);
        uint32_t *number = tgi_malloc(TGI_TAG_MISC, (size_t)n * sizeof *number);
        uint8_t *mask = tgi_malloc(TGI_TAG_MISC, (size_t)n);
        char list[64];
        for (int64_t i = 0; i < n; i++)
            mask[i] = m.pixel[i] > 99;
        number_all(&m, mask, 4, 1, 0, number);
        for (int64_t i = 0; i < n; i++)
            number[i] = mask[i] |= number[i] != 0;
        expect(&m, "threshold:99,fill-holes", between(1, m.h), number);
        number_all(&m, mask, 8, 0, size, number);
        for (int64_t i = 0; i < n; i++)
            number[i] = number[i] != 0;
        snprintf(list, sizeof list, "threshold:99,fill-holes,min-size:%lld", (long long)size);
        expect(&m, list, between(1, m.h), number);
        tgi_free(mask);
        tgi_free(number);
        tgi_free(m.pixel);
    }
}

/* Large enough that blocks go to the file and come back. */
static void test_tables_in_a_file_are_those_in_memory(void)
{
    static const char *const lists[] = {"label:4", "min-size:3,label:26", "fill-holes,label:6"};
    image m = {.z = 3, .c = 1, .h = 900, .w = 901, .s = 1};
    uint32_t *one = tgi_malloc(TGI_TAG_MISC, (size_t)pixels(&m) * sizeof *one);
    m.pixel = tgi_malloc(TGI_TAG_MISC, (size_t)pixels(&m));
    state = 7;
    for (int64_t i = 0; i < pixels(&m); i++)
        m.pixel[i] = draw() % 100 < 35;
    for (size_t k = 0; k < sizeof lists / sizeof lists[0]; k++) {
        tgi_err err = {0};
        tgi_source *s = post_over(&m, lists[k], 0, NULL);
        CHECK(tgi_post_least(s) < tgi_post_most(s));
        for (int64_t p = 0; p < m.z; p++)
            CHECK_OK(s->ops->read(s, 0, p, 0, 1, 0, m.h, 0, m.w, one + p * m.h * m.w,
                                  (size_t)m.w * 4, (size_t)(m.w * m.h) * 4, &err),
                     err);
        tgi_source_close(&s);
        for (size_t cache = 0; cache < 100; cache += 60) {
            s = post_over(&m, lists[k], cache, ".");
            CHECK_EQ(differences(s, &m, 100, one), 0);
            tgi_source_close(&s);
        }
    }
    tgi_free(m.pixel);
    tgi_free(one);
}

/* A line of means is longer than the text that is written at once. */
static void test_a_table_has_thousands_of_channels(void)
{
    enum { CHANNELS = 5000 };
    tgi_err err = {0};
    image m = {.z = 1, .c = CHANNELS, .h = 1, .w = 3, .s = 1};
    const double unknown[3] = {0, 0, 0};
    m.pixel = tgi_malloc(TGI_TAG_MISC, (size_t)pixels(&m));
    for (int64_t i = 0; i < pixels(&m); i++)
        m.pixel[i] = (uint8_t)(i < 3 ? 250 + i / 2 : 100 + i % 3 / 2);
    tgi_source *s = post_over(&m, "threshold:200,label", 0, NULL);
    const tgi_objects_opts o = {.post = s,
                                .path = "test_post.csv",
                                .replace = 1,
                                .bytes = 1 << 20,
                                .physical = unknown,
                                .unit = ""};
    CHECK_OK(tgi_objects_write(&o, &err), err);
    tgi_source_close(&s);
    tgi_free(m.pixel);
    FILE *f = fopen("test_post.csv", "r");
    int lines = 0, means = 0;
    char word[64];
    for (int c; f && fscanf(f, "%63[^,\n]", word) == 1 && (c = fgetc(f)) != EOF;) {
        lines += c == '\n';
        means += strcmp(word, "100.33333333333333") == 0;
    }
    if (f)
        fclose(f);
    (void)remove("test_post.csv");
    CHECK_EQ(lines, 2);
    CHECK_EQ(means, CHANNELS - 1);
}

/* What lies between the values is no number then: none of them has a bin outside of the table. */
static void test_otsu_of_the_largest_doubles(void)
{
    static const double values[] = {-1e308, 1e308, 0, 1e308, NAN, -INFINITY};
    tgi_otsu o;
    void *memory = tgi_malloc(TGI_TAG_MISC, TGI_OTSU_BYTES);
    tgi_otsu_begin(&o, TG_DTYPE_F64, memory);
    tgi_otsu_range(&o, values, 6);
    tgi_otsu_bins(&o);
    tgi_otsu_count(&o, values, 6);
    uint64_t all = 0;
    for (int i = 0; i < 256; i++)
        all += o.count[i];
    CHECK_EQ(all, 4);
    tgi_free(memory);
}

/* ---- Arrays ------------------------------------------------------------------------------ */

static void check_paged(int width)
{
    enum { N = 1200000, TOUCHED = 8000 };
    const tgi_paged_opts o = {.n = N, .width = width, .cache = TGI_PAGED_LEAST, .folder = "."};
    uint64_t *plain = tgi_calloc(TGI_TAG_MISC, N, sizeof *plain), v;
    tgi_paged *p = NULL;
    tgi_err err = {0};
    CHECK(tgi_paged_all(N, width) > 4 * o.cache);
    CHECK_OK(tgi_paged_open(&o, &p, &err), err);
    state = (uint64_t)width;
    int64_t wrong = 0;
    for (int k = 0; k < TOUCHED; k++) {
        const uint64_t i = (uint64_t)between(0, N - 1);
        if (tgi_paged_get(p, i, &v, &err) != TG_OK || v != plain[i])
            wrong++;
        plain[i] = width == 8 ? (uint64_t)draw() << 32 | draw() : draw();
        if (tgi_paged_set(p, i, plain[i], &err) != TG_OK)
            wrong++;
    }
    for (uint64_t i = 0; i < N; i++)
        wrong += tgi_paged_get(p, i, &v, &err) != TG_OK || v != plain[i];
    CHECK_EQ(wrong, 0);
    tgi_paged_close(&p);
    tgi_free(plain);
}

static void test_numbers_come_back_from_the_file(void)
{
    check_paged(4);
    check_paged(8);
}

/* ---- The language ------------------------------------------------------------------------ */

static void test_what_is_no_list_is_named(void)
{
    static const struct {
        const char *list, *says;
    } wrong[] = {{"", "a step is missing"},
                 {"label,", "a step is missing"},
                 {"lable", "the nearest is \"label\""},
                 {"treshold:0.5", "the nearest is \"threshold\""},
                 {"threshold", "threshold:0.5 is expected"},
                 {"threshold:half", "threshold:0.5 is expected"},
                 {"threshold:0.5:1", "threshold:0.5 is expected"},
                 {"min-size:0", "min-size:50 is expected"},
                 {"min-size:-3", "min-size:50 is expected"},
                 {"label:5", "label:26 is expected"},
                 {"otsu:3", "otsu is expected"},
                 {"label,label", "label stands there twice"},
                 {"label,threshold:1", "label is the last step"},
                 {"label,fill-holes", "label is the last step"},
                 {"fill-holes,threshold:1", "what comes there is a mask"},
                 {"threshold:1,otsu", "otsu behind threshold"},
                 {"threshold:1,sigmoid", "sigmoid behind threshold"},
                 {"sigmoid,softmax", "one of them makes probabilities"},
                 {"sigmoid,label", "threshold:X or otsu has to make a mask"},
                 {"softmax,min-size:4", "threshold:X or otsu has to make a mask"},
                 {"stardist:prob=2", "stardist[:prob=0.5]"},
                 {"stardist:prob=nan", "stardist[:prob=0.5]"},
                 {"stardist:flow=0", "stardist[:prob=0.5]"},
                 {"stardist:grid=0", "stardist[:prob=0.5]"},
                 {"stardist:rays-first=1", "stardist[:prob=0.5]"},
                 {"cellpose:rays-first", "cellpose[:prob=0]"},
                 {"cellpose:niter=1e9", "cellpose[:prob=0]"},
                 {"cellpose:", "cellpose[:prob=0]"},
                 {"cellpose::", "cellpose[:prob=0]"},
                 {"cellpose,cellpose", "stands there twice"},
                 {"softmax,stardist", "stand alone"},
                 {"cellpose,min-size:4", "cellpose:min-size=N"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tgi_post_spec s;
        tgi_err err = {0};
        CHECK_EQ(tgi_post_parse(wrong[i].list, &s, &err), TG_E_ARG);
        if (!strstr(err.text, wrong[i].says)) {
            fprintf(stderr, "\"%s\" is answered: %s\n", wrong[i].list, err.text);
            CHECK(0);
        }
    }
}

static void test_a_list_is_read(void)
{
    tgi_post_spec s = {0};
    tgi_err err = {0};
    CHECK_OK(
        tgi_post_parse("sigmoid,threshold:-1.5e-3,fill_holes,min-size:50,label:6", &s, &err),
        err);
    CHECK_EQ(s.n, 5);
    CHECK_NEAR(s.step[1].value, -1.5e-3, 0);
    CHECK_EQ(s.step[3].size, 50);
    CHECK_EQ(tgi_post_neighbours(&s), 6);
    CHECK(tgi_post_makes_mask(&s) && tgi_post_gives_classes(&s));
    CHECK_OK(tgi_post_parse("softmax", &s, &err), err);
    CHECK(!tgi_post_makes_mask(&s) && !tgi_post_gives_classes(&s));
}

static void test_networks_have_settings(void)
{
    tgi_post_spec s = {0};
    tgi_err err = {0};
    CHECK_OK(tgi_post_parse("stardist:nms=0.25:rays_first:grid=4", &s, &err), err);
    const tgi_post_step *n = tgi_post_network(&s);
    CHECK(n && n->kind == TGI_POST_STARDIST && n->rays_first && tgi_post_grid(&s) == 4);
    CHECK(n && n->nms == 0.25 && n->prob == 0.5);
    CHECK(tgi_post_gives_numbers(&s) && tgi_post_gives_classes(&s));
    CHECK_OK(tgi_post_parse("cellpose:prob=-1.5:min-size=0:niter=7", &s, &err), err);
    n = tgi_post_network(&s);
    CHECK(n && n->kind == TGI_POST_CELLPOSE && n->prob == -1.5 && n->flow == 0.4);
    CHECK(n && n->size == 0 && n->niter == 7 && tgi_post_grid(&s) == 1);
    CHECK_OK(tgi_post_parse("label", &s, &err), err);
    CHECK(!tgi_post_network(&s) && tgi_post_gives_numbers(&s) && tgi_post_grid(&s) == 1);
}

int main(void)
{
    RUN(test_what_is_no_list_is_named);
    RUN(test_a_list_is_read);
    RUN(test_networks_have_settings);
    RUN(test_numbers_come_back_from_the_file);
    RUN(test_500_volumes_in_bands);
    RUN(test_steps_on_masks_follow_each_other);
    RUN(test_tables_in_a_file_are_those_in_memory);
    RUN(test_a_table_has_thousands_of_channels);
    RUN(test_otsu_of_the_largest_doubles);
    return TEST_END();
}
