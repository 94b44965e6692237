/* Files that hold several images, and images that lie in several files. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/tg_test.h"
#include "tests/unit/tiff_by_hand.h"

#include <math.h>
#include <sys/stat.h>

static char folder[64] = "/tmp/tegula-sets-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][256];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static void one_page(const char *name, int fill)
{
    const hand_page p = {.w = 32, .h = 16, .bits = 8, .samples = 1, .fill = (uint8_t)fill};
    hand_tiff(in_folder(name), &p, 1);
}

static tgi_source *opened(const char *path, const tgi_open_opts *o)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts defaults = {.threads = 1};
    CHECK_OK(tgi_source_open(path, o ? o : &defaults, &s, &err), err);
    return s;
}

static void refused(const char *path, const tgi_open_opts *o, tg_status want, const char *words)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tgi_open_opts defaults = {.threads = 1};
    CHECK_EQ(tgi_source_open(path, o ? o : &defaults, &s, &err), want);
    CHECK(strstr(err.text, words) != NULL);
    if (!strstr(err.text, words))
        fprintf(stderr, "  said: %s\n", err.text);
    tgi_source_close(&s);
}

/* Pixel (0, 0) of a plane. */
static int corner(tgi_source *s, int thread, int64_t plane)
{
    uint8_t v[8] = {0};
    tgi_err err = {0};
    CHECK_OK(s->ops->read(s, thread, plane, 0, 1, 0, 1, 0, 1, v, 8, 8, &err), err);
    return v[0];
}

static void sub_folder(const char *name)
{
    mkdir(in_folder(name), 0700);
}

/* ---- Slides ---- */

static void test_levels_of_a_slide_are_its_tiled_pages(void)
{
    static const char text[] = "Aperio Image Library v11\r\nmade for a test";
    const hand_page p[] = {
        {.w = 128, .h = 64, .bits = 8, .samples = 3, .tiled = 1, .text = text, .fill = 1},
        {.w = 64, .h = 32, .bits = 8, .samples = 3, .text = text, .fill = 2}, /* thumbnail */
        {.w = 32, .h = 16, .bits = 8, .samples = 3, .tiled = 1, .text = text, .fill = 3},
        {.w = 24, .h = 24, .bits = 8, .samples = 3, .subfile = 1, .text = "label", .fill = 4},
        {.w = 80, .h = 24, .bits = 8, .samples = 3, .subfile = 9, .text = "macro", .fill = 5}};
    hand_tiff(in_folder("made.svs"), p, 5);
    tgi_source *s = opened(in_folder("made.svs"), NULL);
    if (!s)
        return;
    CHECK_EQ(s->ops->info(s)->n_levels, 2);
    CHECK_EQ(s->ops->info(s)->n_series, 4);
    CHECK_STR(s->ops->info(s)->series[1].name, "thumbnail");
    CHECK_STR(s->ops->info(s)->series[2].name, "label");
    CHECK_STR(s->ops->info(s)->series[3].name, "macro");
    CHECK_EQ(corner(s, 0, 0), 1);
    tgi_source_close(&s);
    const tgi_open_opts level = {.threads = 1, .level = 1};
    if ((s = opened(in_folder("made.svs"), &level))) {
        CHECK_EQ(s->ops->info(s)->width, 32);
        CHECK_EQ(corner(s, 0, 0), 3);
        tgi_source_close(&s);
    }
    const tgi_open_opts macro = {.threads = 1, .series = 3};
    if ((s = opened(in_folder("made.svs"), &macro))) {
        CHECK_EQ(s->ops->info(s)->width, 80);
        CHECK_EQ(corner(s, 0, 0), 5);
        tgi_source_close(&s);
    }
}

/* ---- Folders, globs, numbers ---- */

static void test_a_folder_is_a_stack_in_natural_order(void)
{
    sub_folder("natural");
    one_page("natural/img_10.tif", 30);
    one_page("natural/img_9.TIF", 20);
    one_page("natural/img_1.tiff", 10);
    FILE *f = fopen(in_folder("natural/notes.txt"), "w");
    if (f)
        fclose(f);
    tgi_source *s = opened(in_folder("natural"), NULL);
    if (!s)
        return;
    CHECK_STR(s->ops->info(s)->axes, "IYX");
    CHECK_EQ(s->ops->info(s)->shape[0], 3);
    CHECK_EQ(s->ops->info(s)->n_files, 3);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(corner(s, 0, i), 10 * i + 10);
    CHECK(strstr(s->ops->info(s)->note, "files") == NULL); /* other endings: other files */
    CHECK(strstr(tgi_source_file(s, "", 1), "img_9.TIF") != NULL);
    CHECK(tgi_source_file(s, "", 3) == NULL);
    tgi_source_close(&s);
}

static void test_gaps_in_the_numbers_are_reported(void)
{
    sub_folder("gaps");
    one_page("gaps/img_00001.tif", 1);
    one_page("gaps/img_00002.tif", 2);
    one_page("gaps/img_00005.tif", 5);
    one_page("gaps/img_6.tif", 6); /* not five digits */
    one_page("gaps/other_00003.tif", 3);
    tgi_source *s = opened(in_folder("gaps/img_%05d.tif"), NULL);
    if (s) {
        CHECK_EQ(s->ops->info(s)->n_planes, 3);
        CHECK_EQ(corner(s, 0, 2), 5);
        CHECK(strstr(s->ops->info(s)->note, "a gap: after 2 comes 5") != NULL);
        tgi_source_close(&s);
    }
    if ((s = opened(in_folder("gaps/img_0000[12].tif"), NULL))) {
        CHECK_EQ(s->ops->info(s)->n_planes, 2);
        CHECK_STR(s->ops->info(s)->note, "");
        tgi_source_close(&s);
    }
    refused(in_folder("gaps/none_%d.tif"), NULL, TG_E_NOT_FOUND, "no image file matches");
    refused(in_folder("gaps/none*"), NULL, TG_E_NOT_FOUND, "no image file matches");
}

static void test_names_give_channels_and_times_their_places(void)
{
    static const char *const dye[] = {"DAPI", "GFP"};
    char name[64];
    sub_folder("grid");
    for (int t = 0; t < 3; t++)
        for (int c = 0; c < 2; c++) {
            snprintf(name, sizeof name, "grid/exp_t%d_%s.tif", t * 10, dye[c]);
            one_page(name, 100 * c + t);
        }
    const tgi_open_opts o = {.threads = 2, .key = {NULL, "_([A-Z]+)\\.", "t(\\d+)"}};
    tgi_source *s = opened(in_folder("grid"), &o);
    if (s) {
        const tgi_image_info *i = s->ops->info(s);
        CHECK_STR(i->axes, "TCYX");
        CHECK_EQ(i->shape[0], 3);
        CHECK_EQ(i->shape[1], 2);
        CHECK_STR(i->note, ""); /* 0, 10, 20: no gap */
        CHECK_EQ(i->meta.n_channels, 2);
        CHECK_STR(i->meta.channel_name[1], "GFP");
        for (int p = 0; p < 6; p++)
            CHECK_EQ(corner(s, p % 2, p), 100 * (p % 2) + p / 2);
        tgi_source_close(&s);
    }
    const tgi_open_opts vague = {.threads = 1, .key = {NULL, NULL, "t(\\d+)"}};
    refused(in_folder("grid"), &vague, TG_E_ARG, "the same place in the stack");
    const tgi_open_opts two = {.threads = 1, .key = {NULL, "(t)(\\d+)", NULL}};
    refused(in_folder("grid"), &two, TG_E_ARG, "must have one group");
    const tgi_open_opts broken = {.threads = 1, .key = {NULL, "t(\\d+", NULL}};
    refused(in_folder("grid"), &broken, TG_E_ARG, "no regular expression");
    const tgi_open_opts pluses = {.threads = 1, .key = {NULL, "++++++++++++++t(.)", NULL}};
    const tgi_open_opts braces = {.threads = 1, .key = {NULL, "t{255}{255}(.)", NULL}};
    const tgi_open_opts groups = {.threads = 1, .key = {NULL, "(t{99}){99}", NULL}};
    refused(in_folder("grid"), &pluses, TG_E_ARG, "repeats too often");
    refused(in_folder("grid"), &braces, TG_E_ARG, "repeats too often");
    refused(in_folder("grid"), &groups, TG_E_ARG, "repeats too often");
    unlink(in_folder("grid/exp_t10_GFP.tif"));
    refused(in_folder("grid"), &o, TG_E_ARG, "no file for c=GFP t=10");
    refused(in_folder("grid/exp_t0_GFP.tif"), &o, TG_E_ARG, "is one file");
}

static void test_files_that_differ_are_named(void)
{
    sub_folder("differ");
    one_page("differ/a1.tif", 1);
    one_page("differ/a2.tif", 2);
    const hand_page wide = {.w = 33, .h = 16, .bits = 8, .samples = 1};
    hand_tiff(in_folder("differ/a3.tif"), &wide, 1);
    refused(in_folder("differ"), NULL, TG_E_FORMAT, "a3.tif has 33 x 16 pixels");
    const hand_page deep = {.w = 32, .h = 16, .bits = 16, .samples = 1};
    hand_tiff(in_folder("differ/a3.tif"), &deep, 1);
    refused(in_folder("differ"), NULL, TG_E_FORMAT, "a3.tif holds uint16");
    const hand_page pages[] = {{.w = 32, .h = 16, .bits = 8, .samples = 1},
                               {.w = 32, .h = 16, .bits = 8, .samples = 1}};
    hand_tiff(in_folder("differ/a1.tif"), pages, 2);
    unlink(in_folder("differ/a3.tif"));
    refused(in_folder("differ"), NULL, TG_E_FORMAT, "a2.tif has 1 planes, plane 1");
}

static void test_few_files_are_open_at_a_time(void)
{
    char name[64];
    sub_folder("many");
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "many/f%d.tif", i);
        one_page(name, i % 200);
    }
    const tgi_open_opts o = {.threads = 2};
    tgi_source *s = opened(in_folder("many"), &o);
    if (!s)
        return;
    tgi_err err = {0};
    CHECK_OK(s->ops->expect(s, 50, 1, &err), err);
    tgi_mem_stats m;
    for (int i = 0; i < 600; i++)
        CHECK_EQ(corner(s, i % 2, i * 7 % 300), i * 7 % 300 % 200);
    int open_files = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct stat sb;
        open_files += fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode);
    }
    CHECK(open_files <= 2 * 16 + 3);
    tgi_mem_get_stats(&m);
    CHECK(m.live_bytes <= s->ops->codec_bytes(s) + (64u << 10));
    tgi_source_close(&s);
}

/* ---- OME in several files ---- */

static void ome_text(char *xml, size_t cap, const char *self, int n, const char *first,
                     const char *second)
{
    const char *const file[] = {first, second};
    size_t at = (size_t)snprintf(
        xml, cap,
        "<?xml version=\"1.0\"?><OME UUID=\"urn:uuid:%s\"><Image ID=\"Image:0\"><Pixels "
        "DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"32\" SizeY=\"16\" SizeZ=\"2\" "
        "SizeC=\"%d\" SizeT=\"1\" PhysicalSizeZ=\"2.5\">",
        self, n);
    for (int c = 0; c < n; c++)
        at += (size_t)snprintf(xml + at, cap - at, "<Channel Name=\"ch%d\"/>", c);
    for (int c = 0; c < n; c++)
        for (int z = 0; z < 2; z++) /* planes are stored backwards */
            at += (size_t)snprintf(xml + at, cap - at,
                                   "<TiffData IFD=\"%d\" FirstZ=\"%d\" FirstC=\"%d\" "
                                   "PlaneCount=\"1\"><UUID FileName=\"%s\">urn:uuid:%s</UUID>"
                                   "</TiffData>",
                                   1 - z, z, c, file[c], file[c]);
    snprintf(xml + at, cap - at, "</Pixels></Image></OME>");
}

static void two_pages(const char *name, const char *text, int fill)
{
    const hand_page p[] = {
        {.w = 32, .h = 16, .bits = 8, .samples = 1, .text = text, .fill = (uint8_t)fill},
        {.w = 32, .h = 16, .bits = 8, .samples = 1, .fill = (uint8_t)(fill + 1)}};
    hand_tiff(in_folder(name), p, 2);
}

static void check_ome_set(const char *name)
{
    tgi_source *s = opened(in_folder(name), NULL);
    if (!s)
        return;
    const tgi_image_info *i = s->ops->info(s);
    CHECK_STR(i->axes, "TCZYX");
    CHECK_STR(i->flavor, "ome");
    CHECK_EQ(i->n_planes, 4);
    CHECK_EQ(i->meta.n_channels, 2);
    CHECK(i->meta.physical[0] == 2.5);
    CHECK_EQ(corner(s, 0, 0), 11); /* c 0, z 0: directory 1 of the first */
    CHECK_EQ(corner(s, 0, 1), 10);
    CHECK_EQ(corner(s, 0, 2), 21);
    CHECK_EQ(corner(s, 0, 3), 20);
    tgi_source_close(&s);
}

/* Two channels of three samples each, in directories the other way round: the schema has FirstC
 * count channels (0, 1), some writers count samples (0, 3). */
static void test_first_c_counts_channels_or_samples(void)
{
    sub_folder("ome_c");
    for (int step = 1; step <= 3; step += 2) {
        char xml[1024];
        snprintf(xml, sizeof xml,
                 "<OME><Image ID=\"Image:0\"><Pixels DimensionOrder=\"XYCZT\" Type=\"uint8\" "
                 "SizeX=\"32\" SizeY=\"16\" SizeZ=\"1\" SizeC=\"6\" SizeT=\"1\">"
                 "<TiffData IFD=\"1\" FirstC=\"0\"/><TiffData IFD=\"0\" FirstC=\"%d\"/>"
                 "</Pixels></Image></OME>",
                 step);
        const hand_page p[] = {
            {.w = 32, .h = 16, .bits = 8, .samples = 3, .text = xml, .fill = 10},
            {.w = 32, .h = 16, .bits = 8, .samples = 3, .fill = 11}};
        hand_tiff(in_folder("ome_c/a.ome.tif"), p, 2);
        tgi_source *s = opened(in_folder("ome_c/a.ome.tif"), NULL);
        if (!s)
            return;
        CHECK_EQ(s->ops->info(s)->n_planes, 2);
        CHECK_EQ(corner(s, 0, 0), 11);
        CHECK_EQ(corner(s, 0, 1), 10);
        tgi_source_close(&s);
        unlink(in_folder("ome_c/a.ome.tif"));
    }
}

static void test_every_file_of_an_ome_set_opens_the_set(void)
{
    char a[4096], b[4096];
    sub_folder("ome");
    ome_text(a, sizeof a, "one.ome.tif", 2, "one.ome.tif", "two.ome.tif");
    ome_text(b, sizeof b, "two.ome.tif", 2, "one.ome.tif", "two.ome.tif");
    two_pages("ome/one.ome.tif", a, 10);
    two_pages("ome/two.ome.tif", b, 20);
    check_ome_set("ome/one.ome.tif");
    check_ome_set("ome/two.ome.tif");
    refused(in_folder("ome"), NULL, TG_E_UNSUPPORTED, "give this file alone");
    unlink(in_folder("ome/two.ome.tif"));
    refused(in_folder("ome/one.ome.tif"), NULL, TG_E_FORMAT, "ome/two.ome.tif");
    ome_text(a, sizeof a, "one.ome.tif", 2, "one.ome.tif", "../two.ome.tif");
    two_pages("ome/one.ome.tif", a, 10);
    refused(in_folder("ome/one.ome.tif"), NULL, TG_E_FORMAT, "outside the file's folder");
}

static void test_a_companion_file_describes_the_set(void)
{
    static const char only[] =
        "<OME UUID=\"urn:uuid:x\"><BinaryOnly MetadataFile=\"set.companion.ome\" "
        "UUID=\"urn:uuid:y\"/></OME>";
    char xml[4096];
    sub_folder("companion");
    two_pages("companion/one.tif", only, 10);
    two_pages("companion/two.tif", only, 20);
    tgi_source *s = opened(in_folder("companion/two.tif"), NULL); /* its companion is missing */
    if (s) {
        CHECK_STR(s->ops->info(s)->axes, "IYX");
        CHECK_EQ(corner(s, 0, 1), 21);
        CHECK(strstr(s->ops->info(s)->note, "\"set.companion.ome\", which is missing") != NULL);
        tgi_source_close(&s);
    }
    ome_text(xml, sizeof xml, "y", 2, "one.tif", "two.tif");
    FILE *f = fopen(in_folder("companion/set.companion.ome"), "w");
    if (f) {
        fputs(xml, f);
        fclose(f);
    }
    check_ome_set("companion/one.tif");
    check_ome_set("companion/two.tif");
    check_ome_set("companion/set.companion.ome");
    f = fopen(in_folder("companion/set.companion.ome"), "w");
    if (f) {
        fputs("<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>", f);
        fputs(xml, f);
        fclose(f);
    }
    refused(in_folder("companion/set.companion.ome"), NULL, TG_E_FORMAT, "DOCTYPE");
}

static void test_images_of_one_ome_file_are_its_series(void)
{
    static const char xml[] =
        "<?xml version=\"1.0\"?><OME>"
        "<Image Name=\"big\"><Pixels DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"32\" "
        "SizeY=\"16\" SizeZ=\"1\" SizeC=\"1\" SizeT=\"1\"><TiffData "
        "IFD=\"0\"/></Pixels></Image>"
        "<Image Name=\"small\"><Pixels DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"24\" "
        "SizeY=\"8\" SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"><TiffData IFD=\"1\" PlaneCount=\"2\"/>"
        "</Pixels></Image></OME>";
    const hand_page p[] = {{.w = 32, .h = 16, .bits = 8, .samples = 1, .text = xml, .fill = 1},
                           {.w = 24, .h = 8, .bits = 8, .samples = 1, .fill = 2},
                           {.w = 24, .h = 8, .bits = 8, .samples = 1, .fill = 3}};
    hand_tiff(in_folder("images.ome.tif"), p, 3);
    const tgi_open_opts second = {.threads = 1, .series = 1};
    tgi_source *s = opened(in_folder("images.ome.tif"), &second);
    if (s) {
        CHECK_EQ(s->ops->info(s)->n_series, 2);
        CHECK_STR(s->ops->info(s)->series[1].name, "small");
        CHECK_EQ(s->ops->info(s)->width, 24);
        CHECK_EQ(s->ops->info(s)->n_planes, 2);
        CHECK_EQ(corner(s, 0, 1), 3);
        tgi_source_close(&s);
    }
    const tgi_open_opts third = {.threads = 1, .series = 2};
    refused(in_folder("images.ome.tif"), &third, TG_E_ARG, "no series 2: the file has 2");
}

/* As microscopes' software writes positions: each file describes all of them. */
static void test_a_file_of_a_set_is_the_image_in_it(void)
{
    char xml[1600];
    static const char image[] =
        "<Image Name=\"%s\"><Pixels DimensionOrder=\"XYZCT\" Type=\"uint8\" SizeX=\"32\" "
        "SizeY=\"16\" SizeZ=\"1\" SizeC=\"1\" SizeT=\"1\"><TiffData IFD=\"0\" "
        "PlaneCount=\"1\"><UUID FileName=\"%s.ome.tif\">urn:uuid:%s</UUID>"
        "</TiffData></Pixels></Image>";
    static const char *const name[] = {"here", "there"};
    char both[2][480], path[64];
    sub_folder("positions");
    for (int k = 0; k < 2; k++)
        snprintf(both[k], sizeof both[k], image, name[k], name[k], name[k]);
    for (int k = 0; k < 2; k++) {
        snprintf(xml, sizeof xml, "<?xml version=\"1.0\"?><OME UUID=\"urn:uuid:%s\">%s%s</OME>",
                 name[k], both[0], both[1]);
        const hand_page p = {
            .w = 32, .h = 16, .bits = 8, .samples = 1, .text = xml, .fill = (uint8_t)(5 + k)};
        snprintf(path, sizeof path, "positions/%s.ome.tif", name[k]);
        hand_tiff(in_folder(path), &p, 1);
    }
    /* image of the file, or the first where it was asked for; first where the XML has no id of its own */
    snprintf(xml, sizeof xml, "<?xml version=\"1.0\"?><OME>%s%s</OME>", both[0], both[1]);
    sub_folder("positions/bare");
    for (int k = 0; k < 2; k++) {
        const hand_page p = {
            .w = 32, .h = 16, .bits = 8, .samples = 1, .text = xml, .fill = (uint8_t)(5 + k)};
        snprintf(path, sizeof path, "positions/bare/%s.ome.tif", name[k]);
        hand_tiff(in_folder(path), &p, 1);
    }
    for (int k = 0; k < 2; k++) {
        const tgi_open_opts o = {.threads = 1, .any_series = !k};
        tgi_source *s = opened(in_folder("positions/bare/there.ome.tif"), &o);
        if (!s)
            continue;
        CHECK_EQ(corner(s, 0, 0), k ? 5 : 6);
        CHECK_EQ(s->ops->info(s)->at_series, !k);
        tgi_source_close(&s);
    }
    for (int k = 0; k < 4; k++) {
        const tgi_open_opts o = {.threads = 1, .any_series = k < 2};
        snprintf(path, sizeof path, "positions/%s.ome.tif", name[k % 2]);
        tgi_source *s = opened(in_folder(path), &o);
        if (!s)
            continue;
        CHECK_EQ(corner(s, 0, 0), k == 1 ? 6 : 5);
        CHECK_EQ(s->ops->info(s)->at_series, k == 1);
        CHECK_EQ(s->ops->info(s)->n_series, 2);
        tgi_source_close(&s);
    }
}

/* ---- ImageJ's metadata ---- */

static void put32(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, 4);
}

/* Two tables, ranges of two channels, one name; `twice`: tables again, more of them. */
static void imagej_file(const char *name, int twice, uint32_t last)
{
    static uint8_t bytes[8192];
    uint32_t count[16] = {0}, n = 1, at = 4;
    static const uint32_t type[] = {0x6c61626c, 0x72616e67, 0x6c757473, 0x6c757473};
    static const uint32_t number[] = {1, 1, 2, 4};
    const int types = twice ? 4 : 3;
    const double range[4] = {1, 2, 3, 4.5};
    memset(bytes, 0, sizeof bytes);
    put32(bytes, 0x494a494a);
    for (int i = 0; i < types; i++, at += 8) {
        put32(bytes + at, type[i]);
        put32(bytes + at + 4, number[i]);
    }
    count[0] = at;
    memcpy(bytes + at, "n\0b\0", count[n++] = 4);
    at += 4;
    memcpy(bytes + at, range, count[n++] = 32);
    at += 32;
    for (int k = 0; k < (twice ? 6 : 2); k++, at += 768) {
        count[n++] = 768;
        bytes[at + 255] = (uint8_t)(k ? 0 : 255); /* red, then blue */
        bytes[at + 767] = (uint8_t)(k ? 255 : 0);
    }
    count[n - 1] = last;
    const hand_page p[] = {{.w = 32,
                            .h = 16,
                            .bits = 8,
                            .samples = 1,
                            .text = "ImageJ=1.53t\nimages=2\nchannels=2\n",
                            .n_extra = 2,
                            .extra = {{50838, 4, n, count}, {50839, 1, at, bytes}}},
                           {.w = 32, .h = 16, .bits = 8, .samples = 1, .fill = 1}};
    hand_tiff(in_folder(name), p, 2);
}

static void test_tables_ranges_and_names_of_imagej_are_read(void)
{
    imagej_file("ij.tif", 0, 768);
    tgi_source *s = opened(in_folder("ij.tif"), NULL);
    if (s) {
        const tgi_image_meta *m = &s->ops->info(s)->meta;
        CHECK_EQ(m->n_luts, 2);
        CHECK_EQ(m->n_ranges, 2);
        CHECK(m->range[3] == 4.5);
        CHECK_EQ(m->n_labels, 1);
        CHECK_STR(m->label[0], "nb");
        CHECK_EQ(m->n_channels, 2);
        CHECK_EQ(m->channel_color[0], 0xff0000ff);
        CHECK_EQ(m->channel_color[1], 0x0000ffff);
        CHECK_STR(s->ops->info(s)->note, "");
        tgi_source_close(&s);
    }
    imagej_file("ij.tif", 1, 768); /* a second list of tables, larger than the first */
    if ((s = opened(in_folder("ij.tif"), NULL))) {
        CHECK_EQ(s->ops->info(s)->meta.n_luts, 2);
        tgi_source_close(&s);
    }
    imagej_file("ij.tif", 0, 1u << 30); /* the last table ends nowhere */
    if ((s = opened(in_folder("ij.tif"), NULL))) {
        CHECK(strstr(s->ops->info(s)->note, "damaged") != NULL);
        CHECK_EQ(s->ops->info(s)->n_planes, 2);
        tgi_source_close(&s);
    }
}

/* ---- MetaMorph ---- */

static void test_a_metamorph_stack_has_all_its_planes_or_is_refused(void)
{
    static uint8_t more[2 * 32 * 16];
    static const uint32_t uic2[6] = {1, 1, 2, 1, 3, 1};
    hand_page p = {.w = 32,
                   .h = 16,
                   .bits = 8,
                   .samples = 1,
                   .fill = 5,
                   .n_extra = 2,
                   .extra = {{33629, 5, 3, uic2}, {65000, 1, sizeof more, more}}};
    memset(more, 7, sizeof more);
    hand_tiff(in_folder("made.stk"), &p, 1);
    tgi_source *s = opened(in_folder("made.stk"), NULL);
    if (s) {
        uint8_t v[32];
        tgi_err err = {0};
        CHECK_STR(s->ops->info(s)->axes, "IYX");
        CHECK_STR(s->ops->info(s)->flavor, "stk");
        CHECK_EQ(s->ops->info(s)->shape[0], 3);
        CHECK_EQ(corner(s, 0, 0), 5);
        CHECK_OK(s->ops->read(s, 0, 2, 0, 1, 3, 4, 0, 32, v, 32, 32, &err), err);
        CHECK_EQ(v[9], 7);
        tgi_source_close(&s);
    }
    p.extra[1].count = 16; /* the last planes are not there */
    hand_tiff(in_folder("made.stk"), &p, 1);
    refused(in_folder("made.stk"), NULL, TG_E_FORMAT, "MetaMorph says 3 planes");
}

/* ---- Zeiss LSM ---- */

static void lsm_block(uint8_t *b, uint32_t z, uint32_t t, unsigned scan)
{
    const uint32_t head[7] = {0x0400494c, 120, 32, 16, z, 1, t};
    const double voxel[3] = {1e-7, 2e-7, 5e-7}, seconds = 1.5;
    memset(b, 0, 120);
    memcpy(b, head, sizeof head);
    memcpy(b + 40, voxel, sizeof voxel);
    b[88] = (uint8_t)scan;
    memcpy(b + 112, &seconds, sizeof seconds);
}

/* Pages of z and t, each with a thumbnail behind it. */
static void made_lsm(uint32_t z, uint32_t t, unsigned scan)
{
    static uint8_t block[120];
    hand_page p[12];
    lsm_block(block, z, t, scan);
    for (int i = 0; i < 12; i++)
        p[i] = (hand_page){.w = i % 2 ? 8 : 32,
                           .h = i % 2 ? 4 : 16,
                           .bits = 8,
                           .samples = 1,
                           .subfile = i % 2,
                           .fill = (uint8_t)(10 * i)};
    p[0].n_extra = 1;
    p[0].extra[0] = (hand_tag){34412, 1, sizeof block, block};
    hand_tiff(in_folder("made.lsm"), p, 12);
}

static void test_an_lsm_file_has_slices_frames_and_sizes(void)
{
    static const struct {
        unsigned z, t, scan;
        const char *axes;
    } kinds[] = {{3, 2, 6, "TZYX"}, {6, 1, 0, "ZYX"}, {1, 6, 3, "TYX"},
                 {3, 1, 0, "PZYX"}, {5, 1, 0, "IYX"}, {1, 6, 4, "IYX"}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        made_lsm(kinds[k].z, kinds[k].t, kinds[k].scan);
        tgi_source *s = opened(in_folder("made.lsm"), NULL);
        if (!s)
            continue;
        const tgi_image_info *i = s->ops->info(s);
        CHECK_STR(i->axes, kinds[k].axes);
        CHECK_STR(i->flavor, "lsm");
        CHECK_EQ(i->n_planes, 6);
        CHECK(fabs(i->meta.physical[2] - 0.1) < 1e-12 &&
              fabs(i->meta.physical[1] - 0.2) < 1e-12);
        CHECK(fabs(i->meta.physical[0] - 0.5) < 1e-12);
        CHECK_EQ(i->meta.time_increment > 0, strchr(kinds[k].axes, 'T') != NULL);
        CHECK_EQ(corner(s, 0, 5), 100); /* the thumbnails are none of its planes */
        tgi_source_close(&s);
    }
    made_lsm(4, 2, 6);
    refused(in_folder("made.lsm"), NULL, TG_E_FORMAT, "Zeiss LSM says 8 planes");
    made_lsm(0x7fffffff, 0x7fffffff, 6);
    refused(in_folder("made.lsm"), NULL, TG_E_FORMAT, "Zeiss LSM says");
}

/* One page with a text under a maker's tag, or as its description (tag 0): its size along x. */
static double size_said(int tag, const char *text)
{
    hand_page p = {.w = 32, .h = 16, .bits = 8, .samples = 1, .text = tag ? NULL : text};
    if (tag) {
        p.n_extra = 1;
        p.extra[0] = (hand_tag){(uint16_t)tag, 2, (uint32_t)strlen(text) + 1, text};
    }
    hand_tiff(in_folder("maker.tif"), &p, 1);
    tgi_source *s = opened(in_folder("maker.tif"), NULL);
    const double x = s ? s->ops->info(s)->meta.physical[2] : -1;
    tgi_source_close(&s);
    return x;
}

static void test_makers_texts_are_believed_where_they_are_plausible(void)
{
    static const struct {
        int tag;
        const char *text;
        double um;
    } said[] = {
        {34118, "0\r\nAP_PIXEL_SIZE\r\nPixel Size = 10.5 nm\r\n", 0.0105},
        {34118, "AP_IMAGE_PIXEL_SIZE\r\nImage Pixel Size = 2 \xb5m\r\nPixel Size = 9 nm\r\n",
         2},
        {34118, "Pixel Size = 10.5 parsec\r\n", 0},
        {34118, "Pixel Size =", 0},
        {34680, "[User]\r\nPixelWidth=5\r\n[Scan]\r\nPixelWidth=1e-8\r\nPixelHeight=1e-8\r\n",
         0.01},
        {34682, "[Scan]\nPixelWidth=1e-8\n", 0}, /* one of two says nothing */
        {34682, "[Scan]\nPixelWidth=inf\nPixelHeight=-1\n", 0},
        {0, "Aperio Image Library v10\r\n|AppMag = 40|MPP = 0.2498|Left = 1", 0.2498},
        {0, "Aperio Image Library v10\r\n|XMPP = 7|MPP = 1e9", 0},
        {0, "Aperio Image Library v10\r\n|MPP", 0},
        {0, "Someone else |MPP = 0.5", 0},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
        CHECK(fabs(size_said(said[i].tag, said[i].text) - said[i].um) < 1e-12);
}

int main(void)
{
    if (!mkdtemp(folder))
        TEST_SKIP("no temporary folder");
    RUN(test_levels_of_a_slide_are_its_tiled_pages);
    RUN(test_a_folder_is_a_stack_in_natural_order);
    RUN(test_gaps_in_the_numbers_are_reported);
    RUN(test_names_give_channels_and_times_their_places);
    RUN(test_files_that_differ_are_named);
    RUN(test_few_files_are_open_at_a_time);
    RUN(test_first_c_counts_channels_or_samples);
    RUN(test_every_file_of_an_ome_set_opens_the_set);
    RUN(test_a_companion_file_describes_the_set);
    RUN(test_images_of_one_ome_file_are_its_series);
    RUN(test_a_file_of_a_set_is_the_image_in_it);
    RUN(test_tables_ranges_and_names_of_imagej_are_read);
    RUN(test_a_metamorph_stack_has_all_its_planes_or_is_refused);
    RUN(test_an_lsm_file_has_slices_frames_and_sizes);
    RUN(test_makers_texts_are_believed_where_they_are_plausible);
    char rm[128];
    snprintf(rm, sizeof rm, "rm -rf '%s'", folder);
    return system(rm) ? 1 : TEST_END();
}
