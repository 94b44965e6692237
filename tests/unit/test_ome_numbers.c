/* test_ome_numbers.c - numbers of strangers' texts, read and written where the program that loaded us writes 1,5. */
#include "engine/base/mem.h"
#include "engine/base/number.h"
#include "io/ome_write.h"
#include "io/ome_xml.h"
#include "io/text_number.h"
#include "tests/comma_locale.h"
#include "tests/tg_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void test_a_number_ends_where_the_text_is_none_any_more(void)
{
    static const struct {
        const char *text;
        size_t length;
        double value;
    } of[] = {{"1.5x", 3, 1.5}, {"-2e3,", 4, -2000}, {"7", 1, 7},    {"1.", 2, 1},
              {".5/2", 2, 0.5}, {"1.", 2, 1},        {"1e+", 1, 1},  {"1.2.3", 3, 1.2},
              {"0x10", 1, 0},   {"1,5", 1, 1},       {"x", 0, 9},    {"", 0, 9},
              {"-", 0, 9},      {".", 0, 9},         {" 1", 0, 9},   {"+1", 0, 9},
              {"nan", 0, 9},    {"inf", 0, 9},       {"e5", 0, 9},   {"-.e1", 0, 9},
              {"1e999", 0, 9},  {"1e-5\1", 4, 1e-5}, {"-0", 2, -0.0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        double v = 9;
        CHECK_EQ(tgi_number_begin(of[i].text, &v), of[i].length);
        CHECK_NEAR(v, of[i].value, 0);
    }
}

static void test_what_has_no_room_in_the_list_is_counted(void)
{
    char list[TGI_MALFORMED] = "", name[8];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "N%d", i);
        tgi_text_malformed(list, name, "a\"b, and 3 more of it", 21);
        tgi_text_malformed(list, "N0", "a\"b, and 3 more of it", 21); /* is in it already */
    }
    static const char first[] = "N0=\"a'b, and 3 more of it\", N1=\"a'b, and 3 more of it\", ";
    CHECK(strlen(list) < sizeof list);
    CHECK(strncmp(list, first, sizeof first - 1) == 0);
    int entries = 0;
    for (const char *at = list; (at = strstr(at, "=\"")) != NULL; at++)
        entries++;
    char end[48];
    snprintf(end, sizeof end, "of it\", and %d more", 5000 - entries);
    CHECK(strlen(list) > strlen(end));
    CHECK_STR(list + strlen(list) - strlen(end), end);
}

static const char said[] =
    "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\"><Image ID=\"Image:0\">"
    "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"4\" SizeY=\"4\" "
    "SizeC=\"1\" SizeZ=\"1\" SizeT=\"1\" PhysicalSizeX=\"0.25\" PhysicalSizeXUnit=\"nm\" "
    "TimeIncrement=\"1.5\" TimeIncrementUnit=\"s\"><Channel ID=\"Channel:0:0\"/>"
    "<TiffData IFD=\"0\" PlaneCount=\"1\"/>"
    "<Plane TheZ=\"0\" TheC=\"0\" TheT=\"0\" DeltaT=\"2.5\"/></Pixels></Image>"
    "<StructuredAnnotations><MapAnnotation ID=\"Annotation:imagej\" Namespace=\"imagej.net\">"
    "<Value><M K=\"Range 0\">0.5 9.75</M></Value></MapAnnotation></StructuredAnnotations>"
    "<ROI ID=\"ROI:0\"><Union><Rectangle ID=\"Shape:0\" X=\"1.25\" Y=\"1e300\" Width=\"2\" "
    "Height=\"0.5\" TheZ=\"0\"/></Union></ROI></OME>";

/* What is said of 1.25, 2.5, ... is said again; x is twice as large, y 1e30 times, which no number is. */
static void check_written(void)
{
    static const char *const there[] = {"PhysicalSizeX=\"0.25\"",
                                        "TimeIncrement=\"1.5\"",
                                        " DeltaT=\"2.5\"",
                                        "<M K=\"Range 0\">0.5 9.75",
                                        " X=\"2.5\"",
                                        " Width=\"4\"",
                                        " Y=\"1.7976931348623157e+308\"",
                                        " Height=\"5.0000000000000001e+29\"",
                                        " TheZ=\"0\""};
    tgi_err e = {0};
    tgi_ome ome;
    char *text = NULL;
    CHECK_OK(tgi_ome_parse(said, sizeof said - 1, "a.ome.tif", 0, &ome, &e), e);
    tgi_image_meta m = {.time_increment = ome.time_increment};
    memcpy(m.physical, ome.physical, sizeof m.physical);
    memcpy(m.unit, ome.unit, sizeof m.unit);
    tgi_ome_notes_take(&ome.notes, &m);
    m.ome_place.scale[0] = 1e30;
    m.ome_place.scale[1] = 2;
    const tgi_sink_layout l = {.n_axes = 2,
                               .axes = "YX",
                               .shape = {4, 4},
                               .n_planes = 1,
                               .height = 4,
                               .width = 4,
                               .samples = 1,
                               .dtype = TG_DTYPE_U8};
    CHECK_OK(tgi_ome_describe(&l, &m, &text, &e), e);
    for (size_t i = 0; text && i < sizeof there / sizeof there[0]; i++)
        if (!strstr(text, there[i])) {
            printf("     %s is not in %s\n", there[i], text);
            CHECK(0);
        }
    CHECK_STR(m.malformed, "");
    tgi_free(text);
    text = NULL;
    m.range[1] = INFINITY; /* ImageJ's are doubles of a file, any of them */
    CHECK_OK(tgi_ome_describe(&l, &m, &text, &e), e);
    CHECK(text && !strstr(text, "Range"));
    tgi_free(text);
    tgi_ome_notes left = {
        .title = m.title, .range = m.range, .n_ranges = m.n_ranges, .kept = m.ome};
    tgi_ome_notes_free(&left);
    tgi_ome_free(&ome);
}

static void test_ome_xml_says_the_same_numbers_again(void)
{
    check_written();
}

static void test_ome_xml_has_points_where_the_program_writes_commas(void)
{
    tg_commas commas;
    (void)tg_commas_begin(&commas);
    check_written();
    tg_commas_end(&commas);
}

int main(void)
{
    RUN(test_a_number_ends_where_the_text_is_none_any_more);
    RUN(test_what_has_no_room_in_the_list_is_counted);
    RUN(test_ome_xml_says_the_same_numbers_again);
    RUN(test_ome_xml_has_points_where_the_program_writes_commas);
    return TEST_END();
}
