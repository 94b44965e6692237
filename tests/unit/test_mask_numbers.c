/* What a mask's file says of a pixel: grey of every type, colours, palettes, alpha, white that is 0. */
#include "tests/unit/mask_kit.h"
#include "tests/unit/tiff_by_hand.h"

static void test_a_picture_is_for_all_frames(void)
{
    save_png("dot.png", DOT, 255);
    tgi_masks_how how = of(in_folder("dot.png"), 5);
    tgi_masks *m = opened(&how);
    NOTES(m, "");
    FRAME_IS(m, 0, DOT);
    FRAME_IS(m, 4, DOT);
    tgi_held held;
    CHECK(m && tgi_masks_is_still(m));
    CHECK(m && tgi_masks_held(m, 0, &held) && strstr(held.path, "dot.png"));
    CHECK(m && !tgi_masks_held(m, 1, &held));
    tgi_masks_close(&m);
    const tgi_mask_box b = {0, 0, 1, 1, 2, 3}; /* makes it another one in a frame */
    how.box = &b;
    how.n_boxes = 1;
    how.dilation = 1;
    m = opened(&how);
    FRAME_IS(m, 1, "..#...|.###..|..#...|......");
    FRAME_IS(m, 2, "###...|####..|..#...|......");
    CHECK(m && !tgi_masks_is_still(m));
    tgi_masks_close(&m);
}

static void test_anything_but_0_counts_and_a_threshold_is_of_255(void)
{
    uint8_t v[W * H] = {0, 1, 127, 128, 255};
    tgi_err err = {0};
    CHECK_OK(tgi_png_write(in_folder("grey.png"), v, H, W, 1, W, &err), err);
    tgi_masks_how how = of(in_folder("grey.png"), 1);
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, ".####.|......|......|......");
    NOTES(m, "grey.png: 5 different numbers: those above 0 are masked, 16.7 % of its pixels; "
             "--mask-threshold N");
    tgi_masks_close(&m);
    how.threshold = 127;
    m = opened(&how);
    FRAME_IS(m, 0, "...##.|......|......|......");
    NOTES(m, "those above 127 are masked");
    tgi_masks_close(&m);
    how.invert = 1;
    m = opened(&how);
    FRAME_IS(m, 0, "###..#|######|######|######");
    NOTES(m, "those above 127 are kept");
    tgi_masks_close(&m);
    how.invert = 0;
    how.threshold = 255;
    refused(&how, TG_E_ARG,
            "nothing is masked: no number in it is above 255: --mask-threshold");
}

static void test_more_bits_are_shifted_and_stay_above_0(void)
{
    const png_form f = {.w = W, .h = H, .bits = 16, .colour = 0, .idat = 4096};
    const uint16_t v[W * H] = {0, 1, 32767, 32768, 65535};
    save_form("deep.png", &f, v, NULL);
    shows("deep.png", ".####.|......|......|......");
    tgi_masks_how how = of(in_folder("deep.png"), 1);
    how.threshold = 127;
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, "...##.|......|......|......");
    tgi_masks_close(&m);
    const png_form two = {.w = W, .h = H, .bits = 1, .colour = 0, .idat = 4096};
    const uint16_t bits[W * H] = {0, 1, 0, 1};
    save_form("bits.png", &two, bits, NULL);
    shows("bits.png", ".#.#..|......|......|......");
}

static void test_arrays_of_every_type(void)
{
    const float f[W * H] = {0, 1e-6f, 127 / 255.0f, 128 / 255.0f, 1, -1};
    const double d[W * H] = {0, 1e-300, 0.4, 0.6, 300, -1};
    const uint16_t h[W * H] = {0,      1,      0x3600,
                               0x3a00, 0x7c00, 0xbc00}; /* 3/8, 3/4, infinity, -1 */
    const int8_t i8[W * H] = {0, 1, 63, 64, 127, -1};
    const int32_t i32[W * H] = {0, 1, 1 << 29, 1 << 30, INT32_MAX, -1};
    const uint64_t u64[W * H] = {0, 1, 1, UINT64_C(1) << 63, UINT64_MAX, 0};
    const struct {
        tg_dtype type;
        const void *v;
    } all[] = {{TG_DTYPE_F32, f}, {TG_DTYPE_F64, d},   {TG_DTYPE_F16, h},
               {TG_DTYPE_I8, i8}, {TG_DTYPE_I32, i32}, {TG_DTYPE_U64, u64}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        save_npy("a.npy", all[i].type, 0, H, W, all[i].v);
        shows("a.npy", ".####.|......|......|......");
        tgi_masks_how how = of(in_folder("a.npy"), 1);
        how.threshold = 127;
        tgi_masks *m = opened(&how);
        FRAME_IS(m, 0, "...##.|......|......|......");
        tgi_masks_close(&m);
    }
    float bytes[256]; /* a byte divided by 255 is that byte again */
    for (int i = 0; i < 256; i++)
        bytes[i] = (float)i / 255;
    save_npy("a.npy", TG_DTYPE_F32, 0, 1, 256, bytes);
    tgi_masks_how how = of(in_folder("a.npy"), 1);
    how.height = 1;
    how.width = 256;
    for (how.threshold = 0; how.threshold < 255; how.threshold++) {
        uint8_t got[256];
        tgi_err err = {0};
        tgi_masks *m = opened(&how);
        if (m)
            CHECK_OK(tgi_masks_read(m, 0, got, &err), err);
        CHECK(m && got[how.threshold] == 0 && got[how.threshold + 1] == 1);
        tgi_masks_close(&m);
    }
    uint8_t b[W * H] = {0, 1};
    save_npy("b.npy", TG_DTYPE_BOOL, 0, H, W, b);
    how = of(in_folder("b.npy"), 1);
    how.threshold = 127;
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, ".#....|......|......|......");
    tgi_masks_close(&m);
}

static void test_colours_count_by_their_luma(void)
{
    uint8_t v[W * H * 3] = {0, 0, 0, 128, 0, 0, 0, 0, 4, 0, 0, 5, 0, 1, 0, 1, 0, 0};
    tgi_err err = {0};
    CHECK_OK(tgi_png_write(in_folder("rgb.png"), v, H, W, 3, (size_t)W * 3, &err), err);
    shows("rgb.png", ".#.##.|......|......|......"); /* 4 of blue is 0.46, rounded 0 */
}

static void test_palettes(void)
{
    const png_form f = {.w = W, .h = H, .bits = 8, .colour = 3, .n_palette = 3, .idat = 4096};
    const uint8_t palette[3 * 4] = {0, 0, 0, 255, 128, 0, 0, 255, 0, 128, 0, 255};
    const uint16_t v[W * H] = {0, 1, 2};
    save_form("davis.png", &f, v, palette);
    shows("davis.png", ".##...|......|......|......");
    uint16_t colours[768] = {0}; /* each black: the index counts */
    const hand_page p = {.w = W,
                         .h = H,
                         .bits = 8,
                         .samples = 1,
                         .photometric = 3,
                         .fill = 250, /* 250 to 264, so 0 at the 7th step */
                         .extra = {{320, 3, 768, colours}},
                         .n_extra = 1};
    hand_tiff(in_folder("index.tif"), &p, 1);
    tgi_masks_how how = of(in_folder("index.tif"), 1);
    how.invert = 1;
    tgi_masks *m = opened(&how); /* fill + x + 3 * y is 256 at (3, 1) and (0, 2) */
    FRAME_IS(m, 0, "......|...#..|#.....|......");
    tgi_masks_close(&m);
}

/* A TIFF whose 0 is white: the picture is meant, not its numbers. */
static void test_white_that_is_0(void)
{
    const hand_page p = {.w = W, .h = H, .bits = 8, .samples = 1, .fill = 250};
    static const uint8_t entry[] = {6, 1, 3, 0, 1, 0, 0, 0, 1};
    uint8_t bytes[1024];
    hand_tiff(in_folder("white.tif"), &p, 1);
    FILE *f = fopen(in_folder("white.tif"), "rb+");
    const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    for (size_t i = 0; i + sizeof entry < n; i++)
        if (memcmp(bytes + i, entry, sizeof entry) == 0) {
            fseek(f, (long)i + 8, SEEK_SET);
            fputc(0, f);
        }
    if (f)
        fclose(f);
    shows("white.tif", "#####.|##.###|######|######"); /* 255 at (5, 0) and (2, 1) is black */
}

static void test_alpha_counts_where_colours_say_nothing(void)
{
    uint8_t v[W * H * 4] = {0};
    tgi_err err = {0};
    v[4 * 8 + 3] = 255;
    CHECK_OK(tgi_png_write(in_folder("drawn.png"), v, H, W, 4, (size_t)W * 4, &err), err);
    tgi_masks_how how = of(in_folder("drawn.png"), 1);
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, DOT);
    NOTES(m, "its colours are all the same: alpha is the mask");
    tgi_masks_close(&m);
    v[0] = v[1] = v[2] = 255; /* a colour says something */
    CHECK_OK(tgi_png_write(in_folder("drawn.png"), v, H, W, 4, (size_t)W * 4, &err), err);
    shows("drawn.png", CORNER);
    const png_form f = {.w = W, .h = H, .bits = 8, .colour = 4, .idat = 4096};
    uint16_t grey[W * H * 2];
    for (int i = 0; i < W * H; i++) {
        grey[2 * i] = 200;
        grey[2 * i + 1] = i == 8 ? 255 : 0;
    }
    save_form("ga.png", &f, grey, NULL);
    shows("ga.png", DOT);
}

/* The first mask that is drawn says that alpha is meant. */
static void test_alpha_of_a_folder(void)
{
    uint8_t v[W * H * 4];
    tgi_err err = {0};
    sub_folder("alpha");
    for (int i = 0; i < W * H * 4; i++)
        v[i] = i % 4 == 3 ? 0 : 255;
    CHECK_OK(tgi_png_write(in_folder("alpha/1.png"), v, H, W, 4, (size_t)W * 4, &err), err);
    v[4 * 8 + 3] = 255;
    CHECK_OK(tgi_png_write(in_folder("alpha/2.png"), v, H, W, 4, (size_t)W * 4, &err), err);
    const tgi_masks_how how = of(in_folder("alpha"), 2);
    tgi_masks *m = opened(&how);
    FRAME_IS(m, 0, NONE);
    FRAME_IS(m, 1, DOT);
    tgi_masks_close(&m);
}

int main(void)
{
    CHECK(mkdtemp(folder) != NULL);
    RUN(test_a_picture_is_for_all_frames);
    RUN(test_anything_but_0_counts_and_a_threshold_is_of_255);
    RUN(test_more_bits_are_shifted_and_stay_above_0);
    RUN(test_arrays_of_every_type);
    RUN(test_colours_count_by_their_luma);
    RUN(test_palettes);
    RUN(test_white_that_is_0);
    RUN(test_alpha_counts_where_colours_say_nothing);
    RUN(test_alpha_of_a_folder);
    remove_all();
    return TEST_END();
}
