/* test_spec.c - the small languages inside option values. */
#include "engine/base/spec.h"
#include "tests/tg_test.h"

static tgi_err err;

/* Every text of a NULL-terminated list is refused with TG_E_ARG and the detail quotes it. */
#define REFUSES(parse, T, ...)                                                                 \
    do {                                                                                       \
        static const char *const bad_[] = {__VA_ARGS__, NULL};                                 \
        for (int i_ = 0; bad_[i_]; i_++) {                                                     \
            T out_;                                                                            \
            memset(&out_, 0x5a, sizeof out_);                                                  \
            const T before_ = out_;                                                            \
            const tg_status st_ = parse(bad_[i_], &out_, &err);                                \
            if (st_ != TG_E_ARG)                                                               \
                fprintf(stderr, "accepted: \"%s\"\n", bad_[i_]);                               \
            CHECK(st_ == TG_E_ARG && strstr(err.text, bad_[i_]));                              \
            CHECK(memcmp(&out_, &before_, sizeof out_) == 0);                                  \
            memset(&err, 0, sizeof err);                                                       \
        }                                                                                      \
    } while (0)

static void test_a_budget_is_bytes_or_a_share(void)
{
    tgi_ram_spec s;
    CHECK_OK(tgi_ram_parse("1GiB", &s, &err), err);
    CHECK_EQ(s.bytes, 1 << 30);
    CHECK_EQ(s.percent, 0);
    CHECK_OK(tgi_ram_parse("80%", &s, &err), err);
    CHECK_EQ(s.bytes, 0);
    CHECK_NEAR(s.percent, 80.0, 0);
    CHECK_OK(tgi_ram_parse("0.5%", &s, &err), err);
    CHECK_NEAR(s.percent, 0.5, 0);
    REFUSES(tgi_ram_parse, tgi_ram_spec, "1024", "0%", "101%", "-5%", "%", "80%%", "1e9999%",
            "GiB", "-1GiB", "1GiB ", "0B");
}

static void test_a_tile_has_one_two_or_three_sides(void)
{
    tgi_tile_spec s;
    CHECK_OK(tgi_tile_parse("auto", &s, &err), err);
    CHECK(s.automatic);
    CHECK_OK(tgi_tile_parse("512", &s, &err), err);
    CHECK(!s.automatic && s.v[0] == 0 && s.v[1] == 512 && s.v[2] == 512);
    CHECK_OK(tgi_tile_parse("64x4096", &s, &err), err);
    CHECK(s.v[0] == 0 && s.v[1] == 64 && s.v[2] == 4096);
    CHECK_OK(tgi_tile_parse("3x64x4096", &s, &err), err);
    CHECK(s.v[0] == 3 && s.v[1] == 64 && s.v[2] == 4096);
    REFUSES(tgi_tile_parse, tgi_tile_spec, "0", "512x", "x512", "1x2x3x4", "512X512", " 512",
            "-1", "99999999999", "99999999999999999999999", "512x0", "automatic");
}

static void test_a_region_may_leave_bounds_open(void)
{
    tgi_roi_spec s;
    tgi_range r[3];
    const int64_t extent[3] = {7, 100, 200};
    CHECK_OK(tgi_roi_parse("1:3,:,10:", &s, &err), err);
    CHECK_OK(tgi_roi_resolve(&s, extent, r, &err), err);
    CHECK(r[0].lo == 1 && r[0].hi == 3 && r[1].lo == 0 && r[1].hi == 100);
    CHECK(r[2].lo == 10 && r[2].hi == 200);
    CHECK_OK(tgi_roi_parse("5:9,:8", &s, &err), err);
    CHECK_OK(tgi_roi_resolve(&s, extent, r, &err), err);
    CHECK(r[0].lo == 0 && r[0].hi == 7 && r[1].lo == 5 && r[1].hi == 9 && r[2].hi == 8);
    REFUSES(tgi_roi_parse, tgi_roi_spec, "5:9", "1:2,3:4,5:6,7:8", "3:3,:", "4:3,:", "1,2",
            ":,:,", "-1:3,:", "0:1,0:1;", ":0,:");
}

static void test_a_region_outside_the_image_names_the_axis(void)
{
    tgi_roi_spec s;
    tgi_range r[3];
    const int64_t extent[3] = {1, 100, 200};
    CHECK_OK(tgi_roi_parse("0:101,:", &s, &err), err);
    CHECK_EQ(tgi_roi_resolve(&s, extent, r, &err), TG_E_ARG);
    CHECK(strstr(err.text, "y from 0 to 101") && strstr(err.text, "100"));
    memset(&err, 0, sizeof err);
    CHECK_OK(tgi_roi_parse(":,200:", &s, &err), err);
    CHECK_STATUS(tgi_roi_resolve(&s, extent, r, &err), TG_E_ARG, err);
}

static void test_planes_are_counted_and_found(void)
{
    tgi_planes_spec s;
    int64_t n;
    CHECK_OK(tgi_planes_parse("0,2,5-9", &s, &err), err);
    CHECK_OK(tgi_planes_resolve(&s, 10, &n, &err), err);
    CHECK_EQ(n, 7);
    CHECK_EQ(tgi_planes_at(&s, 0), 0);
    CHECK_EQ(tgi_planes_at(&s, 1), 2);
    CHECK_EQ(tgi_planes_at(&s, 2), 5);
    CHECK_EQ(tgi_planes_at(&s, 6), 9);
    CHECK_EQ(tgi_planes_at(&s, 7), -1);
    CHECK_EQ(tgi_planes_at(&s, -1), -1);

    CHECK_OK(tgi_planes_parse("3-", &s, &err), err);
    CHECK_OK(tgi_planes_resolve(&s, 5, &n, &err), err);
    CHECK_EQ(n, 2);
    s = (tgi_planes_spec){0};
    CHECK_OK(tgi_planes_resolve(&s, 5, &n, &err), err);
    CHECK_EQ(n, 5);

    CHECK_OK(tgi_planes_parse("4-10", &s, &err), err);
    CHECK_STATUS(tgi_planes_resolve(&s, 10, &n, &err), TG_E_ARG, err);
    CHECK_OK(tgi_planes_parse("5-", &s, &err), err);
    CHECK_STATUS(tgi_planes_resolve(&s, 5, &n, &err), TG_E_ARG, err);
    REFUSES(tgi_planes_parse, tgi_planes_spec, "", "3,2", "2,2", "5-3", "0-4,4", "5-,7", "a",
            "1,", "9223372036854775807", "1--2", "0:12:2", "3:3", "5:2", ":3,2", "1:2-4", "-3");
}

static void test_planes_have_one_spelling(void)
{
    static const char *const same[][2] = {
        {"0,2,5-9", "0,2,5-9"}, {"2,3", "2-3"}, {"2:4", "2-3"}, {":3", "0-2"}, {"5:6", "5"},
        {"0-2,3:5,7", "0-4,7"}, {"10-", "10-"}, {"10:", "10-"}, {":", "0-"},   {"1,2-", "1-"}};
    char text[TGI_PLANES_TEXT], few[4];
    tgi_planes_spec s = {0};
    CHECK_STR(tgi_planes_text(&s, text, sizeof text), "all");
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        CHECK_OK(tgi_planes_parse(same[i][0], &s, &err), err);
        CHECK_STR(tgi_planes_text(&s, text, sizeof text), same[i][1]);
    }
    CHECK_OK(tgi_planes_parse("10,20,30", &s, &err), err);
    CHECK_STR(tgi_planes_text(&s, few, sizeof few), "10,");
}

static void test_a_step_is_told_in_full(void)
{
    char text[80];
    CHECK_STR(tgi_steps_text("0:12:2", text, sizeof text),
              "; steps are not taken, each is named: 0,2,4,6,8,10");
    CHECK_STR(tgi_steps_text(":3:2", text, sizeof text),
              "; steps are not taken, each is named: 0,2");
    CHECK_STR(tgi_steps_text("1:100:3", text, sizeof text),
              "; steps are not taken, each is named: 1,4,7,10,13,16,19,22,...");
    static const char *const none[] = {"0:12",  "0:12:0", "5:5:1", "0:12:2:1",
                                       "a:b:c", "::",     ""};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        CHECK_STR(tgi_steps_text(none[i], text, sizeof text), "");
}

static void test_too_many_plane_ranges_are_refused(void)
{
    char text[4 * TGI_PLANES_MAX * 2] = "0";
    tgi_planes_spec s;
    for (int i = 1; i < TGI_PLANES_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", 2 * i);
    CHECK_OK(tgi_planes_parse(text, &s, &err), err);
    CHECK_EQ(s.n, TGI_PLANES_MAX);
    strcat(text, ",900");
    CHECK_STATUS(tgi_planes_parse(text, &s, &err), TG_E_ARG, err);
}

static void test_normalisations_parse_with_their_numbers(void)
{
    tgi_normalize_spec s;
    CHECK_OK(tgi_normalize_parse("none", &s, &err), err);
    CHECK(s.kind == TGI_NORM_NONE && !tgi_normalize_needs_stats(&s));
    CHECK_OK(tgi_normalize_parse("scale:1/255,-0.5", &s, &err), err);
    CHECK(s.kind == TGI_NORM_SCALE && s.a == 1.0 / 255.0 && s.b == -0.5);
    CHECK(!tgi_normalize_needs_stats(&s));
    CHECK_OK(tgi_normalize_parse("scale:2e-3", &s, &err), err);
    CHECK(s.a == 2e-3 && s.b == 0.0);
    CHECK_OK(tgi_normalize_parse("percentile:1,99.8", &s, &err), err);
    CHECK(s.kind == TGI_NORM_PERCENTILE && s.a == 1.0 && s.b == 99.8);
    CHECK(tgi_normalize_needs_stats(&s));
    CHECK_OK(tgi_normalize_parse("zscore", &s, &err), err);
    CHECK(s.kind == TGI_NORM_ZSCORE && tgi_normalize_needs_stats(&s));
    CHECK_OK(tgi_normalize_parse("minmax", &s, &err), err);
    CHECK(s.kind == TGI_NORM_MINMAX);
    REFUSES(tgi_normalize_parse, tgi_normalize_spec, "Zscore", "scale", "scale:", "scale:0,1",
            "scale:nan,1", "scale:inf", "scale:0x10,1", "scale:1,2,3", "scale: 1", "scale:1/0",
            "percentile:99,1", "percentile:-1,50", "percentile:0,101", "percentile:5",
            "min-max", "scale:1e999", "scale:.");
}

static void test_types_and_codecs_parse(void)
{
    tg_dtype t = TG_DTYPE_BOOL;
    tgi_compress_spec c;
    CHECK_OK(tgi_dtype_spec_parse("same", &t, &err), err);
    CHECK_EQ(t, TG_DTYPE_NONE);
    CHECK_OK(tgi_dtype_spec_parse("uint16", &t, &err), err);
    CHECK_EQ(t, TG_DTYPE_U16);
    REFUSES(tgi_dtype_spec_parse, tg_dtype, "u16", "float", "UINT8", "none");

    CHECK_OK(tgi_compress_parse("deflate", &c, &err), err);
    CHECK(c.kind == TGI_COMPRESS_DEFLATE && c.level == -1);
    CHECK_OK(tgi_compress_parse("zstd:19", &c, &err), err);
    CHECK(c.kind == TGI_COMPRESS_ZSTD && c.level == 19);
    CHECK_STR(tgi_compress_name(c.kind), "zstd");
    REFUSES(tgi_compress_parse, tgi_compress_spec, "lzw:3", "zip", "zstd:", "zstd:3x", "none:0",
            "defl", "deflate ", "deflate:10", "zstd:0");
}

static void test_points_and_axes_parse(void)
{
    int64_t at[3];
    CHECK_OK(tgi_at_parse("3,40,50", at, &err), err);
    CHECK(at[0] == 3 && at[1] == 40 && at[2] == 50);
    CHECK_OK(tgi_at_parse("40,50", at, &err), err);
    CHECK(at[0] == -1 && at[1] == 40 && at[2] == 50);
    static const char *const bad_at[] = {"4", "1,2,3,4", "1,,2", "-1,2", "1,2 ", ""};
    for (size_t i = 0; i < sizeof bad_at / sizeof *bad_at; i++)
        CHECK_STATUS(tgi_at_parse(bad_at[i], at, &err), TG_E_ARG, err);

    CHECK_OK(tgi_axes_parse("TZCYX", &err), err);
    CHECK_OK(tgi_axes_parse("YXS", &err), err);
    static const char *const bad_axes[] = {"", "ZCX", "YYX", "yx", "TZCYXSQIP", "Y X"};
    for (size_t i = 0; i < sizeof bad_axes / sizeof *bad_axes; i++)
        CHECK_STATUS(tgi_axes_parse(bad_axes[i], &err), TG_E_ARG, err);
}

static void test_edit_distance_counts_typing_errors(void)
{
    CHECK_EQ(tgi_edit_distance("", ""), 0);
    CHECK_EQ(tgi_edit_distance("tile", "tile"), 0);
    CHECK_EQ(tgi_edit_distance("tiel", "tile"), 1); /* swapped neighbours */
    CHECK_EQ(tgi_edit_distance("tle", "tile"), 1);
    CHECK_EQ(tgi_edit_distance("tilee", "tile"), 1);
    CHECK_EQ(tgi_edit_distance("tole", "tile"), 1);
    CHECK_EQ(tgi_edit_distance("", "tile"), 4);
    CHECK_EQ(tgi_edit_distance("kitten", "sitting"), 3);
    CHECK_EQ(tgi_edit_distance("ab", "ba"), 1);
}

int main(void)
{
    RUN(test_a_budget_is_bytes_or_a_share);
    RUN(test_a_tile_has_one_two_or_three_sides);
    RUN(test_a_region_may_leave_bounds_open);
    RUN(test_a_region_outside_the_image_names_the_axis);
    RUN(test_planes_are_counted_and_found);
    RUN(test_planes_have_one_spelling);
    RUN(test_a_step_is_told_in_full);
    RUN(test_too_many_plane_ranges_are_refused);
    RUN(test_normalisations_parse_with_their_numbers);
    RUN(test_types_and_codecs_parse);
    RUN(test_points_and_axes_parse);
    RUN(test_edit_distance_counts_typing_errors);
    return TEST_END();
}
