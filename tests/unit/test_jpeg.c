/* JPEG files as images, made and decoded a second time by libjpeg, cut and bent as well. */
#include "tests/unit/picture_kit.h"

#include <jpeglib.h>

enum { ONE_SCAN, PROGRESSIVE, APART /* a scan for each component */ };

static pic_bytes make_jpeg(uint32_t w, uint32_t h, int samples, int how)
{
    struct jpeg_compress_struct z;
    struct jpeg_error_mgr e;
    unsigned char *out = NULL;
    unsigned long n = 0;
    uint8_t *row = malloc((size_t)w * 4);
    z.err = jpeg_std_error(&e);
    jpeg_create_compress(&z);
    jpeg_mem_dest(&z, &out, &n);
    z.image_width = w;
    z.image_height = h;
    z.input_components = samples;
    z.in_color_space = samples == 1 ? JCS_GRAYSCALE : samples == 3 ? JCS_RGB : JCS_CMYK;
    jpeg_set_defaults(&z);
    if (samples < 4) {
        z.density_unit = 2;
        z.X_density = 100;
        z.Y_density = 200;
    }
    static const jpeg_scan_info apart[3] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (how == PROGRESSIVE)
        jpeg_simple_progression(&z);
    if (how == APART) {
        z.scan_info = apart;
        z.num_scans = samples;
    }
    jpeg_start_compress(&z, TRUE);
    for (uint32_t y = 0; y < h; y++) {
        for (size_t i = 0; i < (size_t)w * (size_t)samples; i++)
            row[i] = (uint8_t)(i * 3 + (size_t)y * y / 7 + (i * i + y) % 11);
        JSAMPROW at = row;
        jpeg_write_scanlines(&z, &at, 1);
    }
    jpeg_finish_compress(&z);
    jpeg_destroy_compress(&z);
    free(row);
    pic_bytes b = {malloc(n), n};
    memcpy(b.p, out, n);
    free(out);
    return b;
}

static uint8_t *decode_jpeg(const pic_bytes *b)
{
    struct jpeg_decompress_struct z;
    struct jpeg_error_mgr e;
    z.err = jpeg_std_error(&e);
    jpeg_create_decompress(&z);
    jpeg_mem_src(&z, b->p, b->n);
    jpeg_read_header(&z, TRUE);
    jpeg_start_decompress(&z);
    const size_t row = (size_t)z.output_width * (size_t)z.output_components;
    uint8_t *all = malloc(row * z.output_height);
    while (z.output_scanline < z.output_height) {
        JSAMPROW at = all + row * z.output_scanline;
        jpeg_read_scanlines(&z, &at, 1);
    }
    jpeg_destroy_decompress(&z);
    return all;
}

static void test_jpeg_files_are_read_in_any_order_as_libjpeg_decodes_them(void)
{
    uint64_t seed = 9;
    for (int k = 0; k < 12; k++) {
        const int samples = k % 3 == 0 ? 1 : k % 3 == 1 ? 3 : 4, progressive = k / 3 & 1;
        const uint32_t w = (uint32_t)tg_rand_in(&seed, 1, 300), h = 260;
        pic_bytes b = make_jpeg(w, h, samples, progressive);
        uint8_t *want = decode_jpeg(&b);
        const tgi_open_opts o = {.threads = 1, .decode_budget = k < 6 ? 0 : 1u << 20};
        tgi_err err = {0};
        tgi_source *s = NULL;
        pic_write(b.p, b.n);
        CHECK_OK(tgi_source_open(pic_path, &o, &s, &err), err);
        if (samples < 4)
            CHECK_NEAR(s->ops->info(s)->meta.resolution[0], 200, 1e-9);
        const tgi_mem_stats none = {0};
        tgi_mem_stats before = none, after = none;
        tgi_mem_get_stats(&before);
        for (int r = 0; r < 6; r++) {
            const int64_t y0 = r ? tg_rand_in(&seed, 0, h - 1) : 0, y1 = r ? y0 + 1 : h;
            uint16_t *got = pic_read(s, y0, y1, 0, w, &err);
            CHECK_STR(err.text, "");
            int equal = got != NULL;
            for (size_t i = 0; equal && i < (size_t)(y1 - y0) * w * (size_t)samples; i++)
                equal = got[i] == want[(size_t)y0 * w * (size_t)samples + i];
            CHECK(equal);
            free(got);
        }
        tgi_mem_get_stats(&after);
        CHECK_EQ(after.requests, before.requests);
        tgi_source_close(&s);
        free(want);
        free(b.p);
    }
}

static void test_a_cut_jpeg_is_damage_and_a_bent_one_ends_in_a_status(void)
{
    for (int progressive = 0; progressive < 2; progressive++) {
        pic_bytes b = make_jpeg(90, 70, 3, progressive);
        pic_cut_and_bend(b, 20, 20);
        free(b.p);
    }
}

/* No code is all ones. Where thousands of bytes follow, libjpeg-turbo takes it for a zero. */
static void test_a_code_that_is_none_is_damage_far_from_the_end_of_a_jpeg(void)
{
    for (int samples = 1; samples <= 3; samples += 2) {
        pic_bytes b = make_jpeg(400, 300, samples, 0);
        CHECK(b.n > 20000 && !pic_fails(b.p, b.n));
        for (size_t i = 0; i < 12; i++)
            b.p[b.n / 4 + i] = i % 2 ? 0 : 0xff;
        CHECK(pic_fails(b.p, b.n));
        free(b.p);
    }
}

/* Where the n-th marker of this kind from the end stands; 0: nowhere. */
static size_t marker_at(const pic_bytes *b, uint8_t kind, int n)
{
    for (size_t i = b->n - 2; i > 0; i--)
        if (b->p[i] == 0xff && b->p[i + 1] == kind && n-- == 0)
            return i;
    return 0;
}

/* The file without what lies from there to its end mark. */
static int fails_without(const pic_bytes *b, size_t from)
{
    uint8_t *left = malloc(from + 2);
    memcpy(left, b->p, from);
    memcpy(left + from, "\xff\xd9", 2);
    const int failed = pic_fails(left, from + 2);
    free(left);
    return failed;
}

/* libjpeg says nothing of scans that are missing, and that bytes are left over where their mark is
 * lost, or where the header claims fewer rows. */
static void test_a_jpeg_without_all_scans_or_rows_is_damage(void)
{
    for (int samples = 1; samples <= 3; samples += 2)
        for (int how = ONE_SCAN; how <= APART; how++) {
            pic_bytes b = make_jpeg(90, 70, samples, how);
            CHECK(!pic_fails(b.p, b.n));
            for (int k = 0; k < 4 && how; k++) {
                const size_t at = marker_at(&b, 0xda, k);
                if (!at || !marker_at(&b, 0xda, k + 1))
                    break;
                CHECK(fails_without(&b, at));
                b.p[at] = 0x7f;
                CHECK(pic_fails(b.p, b.n));
                b.p[at] = 0xff;
            }
            const size_t frame = marker_at(&b, how == PROGRESSIVE ? 0xc2 : 0xc0, 0);
            CHECK(frame > 0);
            b.p[frame + 6] ^= 64; /* 70 rows become 6 */
            CHECK(pic_fails(b.p, b.n));
            free(b.p);
        }
}

static void test_a_progressive_jpeg_over_budget_is_refused_by_name(void)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = 500u << 10};
    tgi_err err = {0};
    tgi_source *s = NULL;
    pic_bytes b = make_jpeg(500, 500, 3, 1);
    pic_write(b.p, b.n);
    CHECK_EQ(tgi_source_open(pic_path, &o, &s, &err), TG_E_BUDGET);
    CHECK(strstr(err.text, "a progressive JPEG of 500 x 500") != NULL);
    free(b.p);
}

int main(void)
{
    pic_begin();
    RUN(test_jpeg_files_are_read_in_any_order_as_libjpeg_decodes_them);
    RUN(test_a_cut_jpeg_is_damage_and_a_bent_one_ends_in_a_status);
    RUN(test_a_code_that_is_none_is_damage_far_from_the_end_of_a_jpeg);
    RUN(test_a_jpeg_without_all_scans_or_rows_is_damage);
    RUN(test_a_progressive_jpeg_over_budget_is_refused_by_name);
    unlink(pic_path);
    return TEST_END();
}
