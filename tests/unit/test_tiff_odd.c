/* Directories as other programs write them: with less than there should be, or more. */
#include "io/image.h"
#include "io/lzw.h"
#include "tests/unit/tiff_by_hand.h"

static char path[256];

static tgi_source *opened(int level, tgi_err *err)
{
    const tgi_open_opts o = {.threads = 1, .level = level};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(path, &o, &s, err), *err);
    return s;
}

/* Pixel (0, 0) of plane 0; -1: it is not read. */
static int first_pixel(int level)
{
    tgi_err err = {0};
    uint8_t v = 0;
    tgi_source *s = opened(level, &err);
    const tg_status st = s ? s->ops->read(s, 0, 0, 0, 1, 0, 1, 0, 1, &v, 1, 1, &err) : TG_E_IO;
    CHECK_OK(st, err);
    tgi_source_close(&s);
    return st == TG_OK ? v : -1;
}

static void test_bits_of_a_sample_that_is_not_there_do_not_count(void)
{
    const hand_page p = {.w = 16, .h = 16, .bits = 8, .samples = 3, .fill = 9, .more_bits = 1};
    hand_tiff(path, &p, 1);
    CHECK_EQ(first_pixel(0), 9);
}

/* As the thumbnails of Exif are: a JPEG and its length. */
static void test_a_subifd_that_says_nothing_of_pixels_is_no_image(void)
{
    const hand_page p[] = {{.w = 16, .h = 16, .bits = 8, .samples = 1, .fill = 7},
                           {.w = 1, .h = 1, .bits = 8, .samples = 1, .sub = 1, .bare = 1},
                           {.w = 8, .h = 8, .bits = 8, .samples = 1, .sub = 1, .subfile = 1}};
    tgi_err err = {0};
    hand_tiff(path, p, 3);
    CHECK_EQ(first_pixel(0), 7);
    tgi_source *s = opened(0, &err);
    CHECK_EQ(s ? s->ops->info(s)->n_levels : 0, 2);
    tgi_source_close(&s);
    hand_page alone = p[1];
    alone.sub = 0;
    hand_tiff(path, &alone, 1);
    CHECK_STATUS(tgi_source_open(path, NULL, &s, &err), TG_E_FORMAT, err);
}

static void put(uint8_t *at, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(v >> 8 * i);
}

static uint8_t *entry(uint8_t *at, unsigned tag, unsigned type, uint32_t count, uint32_t v)
{
    put(at, tag, 2);
    put(at + 2, type, 2);
    put(at + 4, count, 4);
    put(at + 8, v, 4);
    return at + 12;
}

/* They are passed over, but not a thousand times as many bytes as the file has. */
static void test_subifds_that_are_one_directory_are_counted(void)
{
    enum { SUBS = 1000, TAGS = 5000, LIST = 512, DIR = LIST + 4 * SUBS };
    static uint8_t file[DIR + 2 + 12 * TAGS + 4];
    uint8_t *p = file + 10;
    memcpy(file, "II*\0\10\0\0\0\11\0", 10);
    p = entry(p, 256, 4, 1, 4);
    p = entry(p, 257, 4, 1, 4);
    p = entry(p, 258, 3, 1, 8);
    p = entry(p, 259, 3, 1, 1);
    p = entry(p, 262, 3, 1, 1);
    p = entry(p, 273, 4, 1, 256);
    p = entry(p, 278, 4, 1, 4);
    p = entry(p, 279, 4, 1, 16);
    entry(p, 330, 4, SUBS, LIST);
    for (int i = 0; i < SUBS; i++)
        put(file + LIST + 4 * i, DIR, 4);
    put(file + DIR, TAGS, 2);
    for (int i = 0; i < TAGS; i++)
        entry(file + DIR + 2 + 12 * i, 40000 + (unsigned)i, 3, 1, 0);
    tgi_err err = {0};
    tgi_source *s = NULL;
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(file, sizeof file, 1, f) == 1 && fclose(f) == 0);
    CHECK_EQ(tgi_source_open(path, NULL, &s, &err), TG_E_FORMAT);
    CHECK(strstr(err.text, "directories overlap") != NULL);
}

/* tifffile marks no SubIFD as a level when it is not told to. */
static void test_smaller_subifds_of_tifffile_are_levels(void)
{
    const hand_page p[] = {
        {.w = 16, .h = 16, .bits = 8, .samples = 1, .fill = 7, .text = "{\"shape\": [16, 16]}"},
        {.w = 8, .h = 8, .bits = 8, .samples = 1, .sub = 1, .fill = 5},
        {.w = 16, .h = 16, .bits = 8, .samples = 1, .sub = 1, .fill = 3}};
    tgi_err err = {0};
    hand_tiff(path, p, 3);
    tgi_source *s = opened(0, &err);
    CHECK_EQ(s ? s->ops->info(s)->n_levels : 0, 2);
    CHECK_EQ(s ? s->ops->info(s)->n_planes : 0, 1);
    tgi_source_close(&s);
    CHECK_EQ(first_pixel(1), 5);
}

static void test_of_a_tag_that_appears_twice_the_first_counts(void)
{
    static const uint16_t white = 0, bits = 16, cmyk = 5;
    const hand_page p = {.w = 16,
                         .h = 16,
                         .bits = 8,
                         .samples = 1,
                         .fill = 4,
                         .extra = {{258, 3, 1, &bits}, {262, 3, 1, &white}, {262, 3, 1, &cmyk}},
                         .n_extra = 3};
    tgi_err err = {0};
    hand_tiff(path, &p, 1);
    CHECK_EQ(first_pixel(0), 4);
    tgi_source *s = opened(0, &err);
    CHECK_EQ(s ? s->ops->info(s)->meta.stored_as : TGI_STORED_CMYK, TGI_STORED_LIGHT);
    CHECK_EQ(s ? s->ops->info(s)->dtype : TG_DTYPE_NONE, TG_DTYPE_U8);
    tgi_source_close(&s);
}

/* L, a and b come as they are stored, and are said to be that. */
static void test_lab_is_read_as_it_is_stored(void)
{
    static const tgi_stored as[] = {TGI_STORED_CIELAB, TGI_STORED_ICCLAB};
    for (int k = 0; k < 2; k++) {
        const hand_page p = {
            .w = 16, .h = 16, .bits = 8, .samples = 3, .fill = 11, .photometric = 8 + k};
        tgi_err err = {0};
        hand_tiff(path, &p, 1);
        CHECK_EQ(first_pixel(0), 11);
        tgi_source *s = opened(0, &err);
        CHECK_EQ(s ? s->ops->info(s)->meta.stored_as : TGI_STORED_LIGHT, as[k]);
        CHECK_EQ(s ? s->ops->info(s)->meta.colours : 0, 3);
        tgi_source_close(&s);
    }
    const hand_page itu = {.w = 16, .h = 16, .bits = 8, .samples = 3, .photometric = 10};
    tgi_err err = {0};
    tgi_source *s = NULL;
    hand_tiff(path, &itu, 1);
    CHECK_EQ(tgi_source_open(path, NULL, &s, &err), TG_E_UNSUPPORTED);
    CHECK(strstr(err.text, "photometric 10 (ITU Lab)") != NULL);
}

/* Photoshop packs a byte too much into each strip, also of a thumbnail, which it does not sign. */
static void test_a_level_in_a_file_of_photoshop_is_photoshop_s(void)
{
    static const uint32_t at = 8;
    static uint8_t src[65], packed[400];
    uint8_t *state = malloc(tgi_lzw_state_bytes());
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * i);
    const uint32_t bytes = (uint32_t)tgi_lzw(state, src, sizeof src, packed);
    free(state);
    for (int mark = 0; mark < 2; mark++) {
        const uint16_t lzw = 5, one = 1, eight = 8;
        const uint32_t side = 8, wide = 16, reduced = 1;
        FILE *f = fopen(path, "wb");
        fwrite("II*\0\0\0\0\0", 1, 8, f);
        fwrite(packed, 1, bytes, f);
        hand_ifd d = {.n = 0};
        hand_add(&d, 254, 4, 1, &reduced);
        hand_add(&d, 256, 4, 1, &side);
        hand_add(&d, 257, 4, 1, &side);
        hand_add(&d, 258, 3, 1, &eight);
        hand_add(&d, 259, 3, 1, &lzw);
        hand_add(&d, 262, 3, 1, &one);
        hand_add(&d, 273, 4, 1, &at);
        hand_add(&d, 279, 4, 1, &bytes);
        const uint32_t sub = hand_ifd_write(f, &d);
        uint8_t pixels[256] = {0};
        const uint32_t large = (uint32_t)ftell(f), n = 256;
        fwrite(pixels, 1, n, f);
        d = (hand_ifd){.n = 0};
        hand_add(&d, 256, 4, 1, &wide);
        hand_add(&d, 257, 4, 1, &wide);
        hand_add(&d, 258, 3, 1, &eight);
        hand_add(&d, 262, 3, 1, &one);
        hand_add(&d, 273, 4, 1, &large);
        hand_add(&d, 279, 4, 1, &n);
        hand_add(&d, 330, 4, 1, &sub);
        if (mark)
            hand_add(&d, 34377, 1, 4, "8BIM");
        const uint32_t first = hand_ifd_write(f, &d);
        fseek(f, 4, SEEK_SET);
        fwrite(&first, 4, 1, f);
        fclose(f);
        tgi_err err = {0};
        uint8_t got[64] = {0};
        tgi_source *s = opened(1, &err);
        const tg_status st =
            s ? s->ops->read(s, 0, 0, 0, 1, 0, 8, 0, 8, got, 8, 64, &err) : TG_E_IO;
        tgi_source_close(&s);
        CHECK_EQ(st, mark ? TG_OK : TG_E_FORMAT);
        CHECK(!mark || memcmp(got, src, sizeof got) == 0);
    }
}

int main(void)
{
    snprintf(path, sizeof path, "test_tiff_odd.%d.tif", (int)getpid());
    RUN(test_bits_of_a_sample_that_is_not_there_do_not_count);
    RUN(test_a_subifd_that_says_nothing_of_pixels_is_no_image);
    RUN(test_subifds_that_are_one_directory_are_counted);
    RUN(test_smaller_subifds_of_tifffile_are_levels);
    RUN(test_of_a_tag_that_appears_twice_the_first_counts);
    RUN(test_lab_is_read_as_it_is_stored);
    RUN(test_a_level_in_a_file_of_photoshop_is_photoshop_s);
    unlink(path);
    return TEST_END();
}
