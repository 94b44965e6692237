/* Plots: round axes, colours that can be told apart, logs of strangers, and pixels where they
 * belong. The golden picture is made again by
 *     tegula plot tests/golden/memory/two_gpus.csv -o tests/golden/memory/two_gpus.svg */
#include "engine/draw/plot.h"
#include "engine/draw/plot_axis.h"
#include "engine/draw/raster.h"
#include "engine/draw/stroke_font.h"
#include "engine/memory/log_file.h"
#include "io/image.h"
#include "tests/tg_test.h"

#define MIB ((uint64_t)1 << 20)
#define GOLDEN TG_SOURCE_DIR "/tests/golden/memory/two_gpus"

/* ---- Axes ---- */

static void test_sizes_step_by_powers_of_two_in_one_unit(void)
{
    static const struct {
        uint64_t top;
        int most;
        const char *first, *second, *last; /* ticks */
    } rows[] = {{552 * MIB, 7, "128 MiB", "256 MiB", "512 MiB"},
                {448 * MIB, 7, "64 MiB", "128 MiB", "448 MiB"},
                {449 * MIB, 7, "128 MiB", "256 MiB", "384 MiB"},
                {2047 * MIB, 7, "512 MiB", "1024 MiB", "1536 MiB"},
                {2048 * MIB, 7, "0.5 GiB", "1.0 GiB", "2.0 GiB"},
                {2048 * MIB, 8, "0.25 GiB", "0.50 GiB", "2.00 GiB"},
                {80ull << 30, 7, "16 GiB", "32 GiB", "80 GiB"},
                {3ull << 40, 7, "0.5 TiB", "1.0 TiB", "3.0 TiB"},
                {4096, 7, "1 KiB", "2 KiB", "4 KiB"},
                {700, 7, "128 B", "256 B", "640 B"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tgi_axis a = tgi_axis_bytes(rows[i].top, rows[i].most);
        char buf[TGI_AXIS_TEXT];
        CHECK_STR(tgi_axis_text(&a, 0, buf), "0");
        CHECK_STR(tgi_axis_text(&a, a.step, buf), rows[i].first);
        CHECK_STR(tgi_axis_text(&a, 2 * a.step, buf), rows[i].second);
        const double n = floor((double)rows[i].top / a.step);
        CHECK(n >= 3 && n <= rows[i].most);
        CHECK_STR(tgi_axis_text(&a, n * a.step, buf), rows[i].last);
    }
}

static void test_times_step_as_clocks_do(void)
{
    static const struct {
        double span;
        const char *first, *second;
    } rows[] = {{0.02, "0.002 s", "0.004 s"},
                {0.9, "0.1 s", "0.2 s"},
                {9, "1 s", "2 s"},
                {12.4, "2 s", "4 s"},
                {48, "5 s", "10 s"},
                {170, "20 s", "40 s"},
                {180, "20 s", "40 s"},
                {181, "1 min", "2 min"},
                {3600, "10 min", "20 min"},
                {7200, "15 min", "30 min"},
                {7201, "0.5 h", "1.0 h"},
                {86400, "3 h", "6 h"},
                {345600, "12 h", "24 h"},
                {345601, "1 d", "2 d"},
                {86400 * 365., "50 d", "100 d"},
                {1e10, "20000 d", "40000 d"},
                {1e-3, "0.0001 s", "0.0002 s"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tgi_axis a = tgi_axis_seconds(rows[i].span, 10);
        char buf[TGI_AXIS_TEXT];
        CHECK_STR(tgi_axis_text(&a, a.step, buf), rows[i].first);
        CHECK_STR(tgi_axis_text(&a, 2 * a.step, buf), rows[i].second);
        CHECK(rows[i].span / a.step <= 10 * (1 + 1e-9) && rows[i].span / a.step >= 3);
    }
}

/* ---- Colours ---- */

static double linear(double v)
{
    v /= 255;
    return v <= 0.03928 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

/* WCAG 2.1, "contrast ratio". */
static double contrast(tgi_colour a, tgi_colour b)
{
    const double la = 0.2126 * linear(a.r) + 0.7152 * linear(a.g) + 0.0722 * linear(a.b) + 0.05;
    const double lb = 0.2126 * linear(b.r) + 0.7152 * linear(b.g) + 0.0722 * linear(b.b) + 0.05;
    return la > lb ? la / lb : lb / la;
}

static tgi_colour over(tgi_colour below, tgi_colour above)
{
    const double a = above.alpha;
    return (tgi_colour){(unsigned char)(below.r + (above.r - below.r) * a + 0.5),
                        (unsigned char)(below.g + (above.g - below.g) * a + 0.5),
                        (unsigned char)(below.b + (above.b - below.b) * a + 0.5), 1};
}

static void test_text_and_lines_stand_out_from_all_they_may_lie_on(void)
{
    static const tgi_role grounds[] = {TGI_PAPER, TGI_PHASE_A, TGI_PHASE_B};
    for (int theme = 0; theme < 2; theme++)
        for (int i = 0; i < 3; i++) {
            const tgi_colour ground = tgi_role_colour(grounds[i], theme);
            const tgi_colour area = over(ground, tgi_role_colour(TGI_MEASURED_AREA, theme));
            const tgi_colour file = over(ground, tgi_role_colour(TGI_FILE_AREA, theme));
            for (int r = 0; r < 3; r++) {
                const tgi_role line[] = {TGI_MEASURED, TGI_BUDGET, TGI_PREDICTED};
                const tgi_colour c = tgi_role_colour(line[r], theme);
                CHECK(contrast(c, ground) >= 4.5); /* their names are text of that colour */
                CHECK(contrast(c, area) >= 3);
                CHECK(contrast(c, file) >= 3);
            }
            CHECK(contrast(tgi_role_colour(TGI_INK, theme), ground) >= 7);
            CHECK(contrast(tgi_role_colour(TGI_MUTED, theme), ground) >= 4.5);
        }
    for (int theme = 0; theme < 2; theme++) {
        CHECK(contrast(tgi_role_colour(TGI_INK, theme), tgi_role_colour(TGI_RIBBON_B, theme)) >=
              7);
        CHECK(contrast(tgi_role_colour(TGI_AXIS, theme), tgi_role_colour(TGI_PAPER, theme)) >=
              3);
    }
}

/* ---- Raster and letters ---- */

static void test_coverage_is_the_area_within_a_pixel(void)
{
    tgi_raster r;
    tgi_err e = {0};
    const tgi_colour black = {0, 0, 0, 1};
    CHECK_OK(tgi_raster_open(8, 8, &r, &e), e);
    const tgi_point half[4] = {{1.5, 2}, {3.25, 2}, {3.25, 3.5}, {1.5, 3.5}};
    tgi_raster_polygon(&r, half, 4);
    tgi_raster_paint(&r, black);
    static const int want[2][5] = {{255, 128, 0, 191, 255}, {255, 191, 128, 223, 255}};
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 5; x++)
            CHECK_NEAR(r.rgb[3 * (8 * (y + 2) + x)], want[y][x], 1);
    /* A diagonal halves the pixels it passes; right of it all is covered, up to the edge. */
    const tgi_point corner[3] = {{8, 4}, {8, 8}, {4, 8}};
    tgi_raster_polygon(&r, corner, 3);
    tgi_raster_paint(&r, black);
    for (int k = 0; k < 4; k++) {
        CHECK_NEAR(r.rgb[3 * (8 * (4 + k) + 7 - k)], 128, 1);
        CHECK_EQ(k ? r.rgb[3 * (8 * (4 + k) + 7)] : 0, 0);
    }
    CHECK_EQ(r.rgb[3 * (8 * 7 + 3)], 255);
    tgi_raster_close(&r);
}

static double darkness(tgi_raster *r, const tgi_point *p, int n)
{
    const tgi_colour half = {0, 0, 0, 0.5};
    double dark = 0;
    memset(r->rgb, 255, (size_t)3 * 1600);
    tgi_raster_line(r, p, n, 10);
    tgi_raster_paint(r, half);
    for (int i = 0; i < 1600; i++) {
        CHECK(r->rgb[3 * i] >= 127); /* nowhere painted twice */
        dark += (255 - r->rgb[3 * i]) / 127.5;
    }
    return dark;
}

static void test_pieces_of_a_line_unite(void)
{
    tgi_raster r;
    tgi_err e = {0};
    const tgi_point there[4] = {{10, 20}, {30, 20}, {10, 20}, {30, 20}};
    const double strip = 20 * 10 + 3.14159 * 25; /* and half a disc at each end */
    CHECK_OK(tgi_raster_open(40, 40, &r, &e), e);
    CHECK_NEAR(darkness(&r, there, 2), strip,
               3); /* discs of 18 sides lack 1.6, rounding to bytes takes 1 */
    /* Thrice the same way: only pixels that each piece covers in part, along the ends, add up.
     */
    CHECK_NEAR(darkness(&r, there, 4), strip, 6);
    tgi_raster_close(&r);
}

typedef struct extent {
    double lo_x, hi_x, lo_y, hi_y;
    int points;
} extent;

static void measure(void *user, const tgi_point *p, int n)
{
    extent *x = user;
    CHECK(n >= 2 && n < TGI_GLYPH_POINTS);
    for (int i = 0; i < n; i++, x->points++) {
        x->lo_x = fmin(x->lo_x, p[i].x), x->hi_x = fmax(x->hi_x, p[i].x);
        x->lo_y = fmin(x->lo_y, p[i].y), x->hi_y = fmax(x->hi_y, p[i].y);
    }
}

static void test_every_letter_is_drawn_within_its_place(void)
{
    for (int c = 32; c <= 127; c++) {
        extent x = {1e9, -1e9, 1e9, -1e9, 0};
        const int advance = tgi_glyph((unsigned char)c, measure, &x);
        CHECK(advance >= 20 && advance <= 92);
        CHECK_EQ(x.points > 0, c != ' ');
        if (c == ' ')
            continue;
        CHECK(x.lo_x >= 0 && x.hi_x <= advance && x.lo_y >= -20 && x.hi_y <= 78);
        const int digit = c >= '0' && c <= '9';
        CHECK(!digit || (advance == 56 && x.lo_y >= 3.9 && x.hi_y <= 68.1));
    }
    CHECK_NEAR(tgi_text_width("00", 10, 0), 11.2, 1e-9);
    CHECK_NEAR(tgi_text_width("\xc3\xa9\xff", 10, 0), 9.6, 1e-9); /* two boxes */
}

/* ---- Logs ---- */

static tgi_memlog *log_of(const char *text)
{
    tgi_memlog *log = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_memlog_parse(text, strlen(text), "a.csv", &log, &e), e);
    return log;
}

static void test_what_a_tracker_writes_is_read_back(void)
{
    char text[3 * TGI_LOG_LINE];
    tg_tracker_row r = {.seconds = 0.5,
                        .phase = "run",
                        .tile = 7,
                        .measured_bytes = 100 * MIB,
                        .peak_bytes = 120 * MIB,
                        .file_bytes = 3 * MIB,
                        .pool_reserved_bytes = 90 * MIB,
                        .available_bytes = 1000 * MIB,
                        .predicted_bytes = 130 * MIB,
                        .budget_bytes = 200 * MIB,
                        .n_gpus = TG_TRACKER_GPUS};
    r.gpu_used_bytes[15] = 5;
    r.gpu_free_bytes[15] = 6;
    size_t n = tgi_log_header(TG_TRACKER_GPUS, text);
    const int64_t busy[TGI_BUSY_KINDS] = {30, 480, INT64_MAX};
    n += tgi_log_line(&r, busy, text + n);
    r.seconds = 1e9 + 0.25;
    r.tile = INT64_MAX;
    memset(r.gpu_used_bytes, 0x7f, sizeof r.gpu_used_bytes);
    const size_t longest = tgi_log_line(&r, busy, text + n);
    CHECK(longest < TGI_LOG_LINE);
    tgi_memlog *log = log_of(text);
    if (log) {
        CHECK_EQ(log->rows, 2);
        CHECK_EQ(log->n_gpus, TG_TRACKER_GPUS);
        const tgi_memlog_group *g = &log->group[0];
        CHECK_EQ(g->high, 120 * MIB);
        CHECK_EQ(g->file, 3 * MIB);
        CHECK_EQ(g->pool, 90 * MIB);
        CHECK_EQ(g->available, 1000 * MIB);
        CHECK_EQ(g->predicted, 130 * MIB);
        CHECK_EQ(g->budget, 200 * MIB);
        CHECK_EQ(g->tile, 7);
        CHECK_EQ(g->gpu_used[15], 5);
        CHECK_EQ(g->gpu_total[15], 11);
        CHECK_EQ(g->busy_ms[TGI_BUSY_DECODE], 30);
        CHECK_EQ(g->busy_ms[TGI_BUSY_COMPUTE], 480);
        CHECK_EQ(log->n_groups, 2);
        CHECK_NEAR(log->to, 1e9 + 0.25, 0);
    }
    tgi_free(log);
}

static void test_other_columns_blank_lines_and_a_torn_end_are_no_trouble(void)
{
    tgi_memlog *log = log_of("colour,measured_bytes,seconds\r\n"
                             "blue,5,0\r\n"
                             "\r\n\n"
                             "\"red\",9,1.5\n"
                             "green,7,2\n"
                             "yellow,1");
    if (log) {
        CHECK_EQ(log->rows, 3);
        CHECK_EQ(log->unfinished, 1);
        CHECK_EQ(log->max.bytes, 9);
        CHECK_NEAR(log->max.seconds, 1.5, 0);
        CHECK_EQ(log->has_tile, 0);
    }
    tgi_free(log);
}

#define HEAD "seconds,phase,tile,measured_bytes,gpu0_used_bytes\n"
static void test_a_malformed_log_is_refused_with_its_line(void)
{
    static const char *const rows[][2] = {
        {"", "a.csv: no header: this is no memory log of tegula"},
        {"seconds,phase\n1,a\n",
         "a.csv: line 1: no column measured_bytes: this is no memory log of tegula"},
        {"phase,measured_bytes\n",
         "a.csv: line 1: no column seconds: this is no memory log of tegula"},
        {HEAD, "a.csv: line 2: the log has no sample"},
        {HEAD "1,run,2,3,4", "a.csv: line 2: the log has no sample"},
        {HEAD "1,run,2,3,4\n2,run,3,4\n", "a.csv: line 3 has 4 fields, the header has 5"},
        {HEAD "1,run,2,3,4,5\n", "a.csv: line 2 has 6 fields, the header has 5"},
        {HEAD "1,run,2,3.5,4\n", "a.csv: line 2: measured_bytes is \"3.5\", not a number"},
        {HEAD "1,run,2,-3,4\n", "a.csv: line 2: measured_bytes is \"-3\", not a number"},
        {HEAD "1,run,2,,4\n", "a.csv: line 2: measured_bytes is \"\", not a number"},
        {HEAD "1,run,x,3,4\n", "a.csv: line 2: tile is \"x\", not a number"},
        {HEAD "1,run,2,9223372036854775808,4\n",
         "a.csv: line 2: measured_bytes is \"9223372036854775808\", not a number"},
        {HEAD "1,run,2,3,0x4\n",
         "a.csv: line 2: a GPU's memory in bytes is \"0x4\", not a number"},
        {HEAD "\n\nsoon,run,2,3,4\n", "a.csv: line 4: seconds is \"soon\", not a number"},
        {HEAD "1e300,run,2,3,4\n", "a.csv: line 2: seconds is \"1e300\", not a number"},
        {HEAD "nan,run,2,3,4\n", "a.csv: line 2: seconds is \"nan\", not a number"},
        {HEAD "2,run,2,3,4\n1,run,2,3,4\n", "a.csv: line 3: time goes back, to \"1\" seconds"},
        {"seconds,measured_bytes,seconds\n", "a.csv: line 1: column seconds is there twice"},
        {HEAD "1,run,2,"
              "33333333333333333333333333333333333333333333333333,4\n",
         "a.csv: line 2: measured_bytes is \"3333333333333333333333333333333333333333...\", "
         "not a "
         "number"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tgi_memlog *log = NULL;
        tgi_err e = {0};
        CHECK_EQ(tgi_memlog_parse(rows[i][0], strlen(rows[i][0]), "a.csv", &log, &e),
                 TG_E_FORMAT);
        CHECK_STR(e.text, rows[i][1]);
        CHECK(log == NULL);
    }
}

static void test_long_lines_and_many_columns_are_refused(void)
{
    static char text[TGI_MEMLOG_LINE + 64];
    tgi_memlog *log = NULL;
    tgi_err e = {0};
    memset(text, 'a', TGI_MEMLOG_LINE + 1);
    text[TGI_MEMLOG_LINE + 1] = '\n';
    CHECK_STATUS(tgi_memlog_parse(text, strlen(text), "a.csv", &log, &e), TG_E_FORMAT, e);
    for (int i = 0; i < TGI_MEMLOG_COLUMNS + 1; i++)
        memcpy(text + 2 * i, "a,", 2);
    text[2 * TGI_MEMLOG_COLUMNS + 1] = '\n';
    text[2 * TGI_MEMLOG_COLUMNS + 2] = 0;
    CHECK_STATUS(tgi_memlog_parse(text, strlen(text), "a.csv", &log, &e), TG_E_FORMAT, e);
}

/* Columns of a picture: as many groups as columns at most, and every extreme is in one. */
static void test_a_long_log_keeps_its_extremes_in_bounded_memory(void)
{
    const int rows = 200000;
    const size_t cap = (size_t)rows * 48 + 64;
    char *text = tgi_malloc(TGI_TAG_MISC, cap);
    size_t n = (size_t)sprintf(text, "seconds,phase,tile,measured_bytes\n");
    for (int i = 0; i < rows; i++) {
        const int v = i == 123457 ? 999 : i == 77777 ? 100 : 500 + i % 7;
        n += (size_t)sprintf(text + n, "%d.%d,p%d,%d,%d\n", i / 10, i % 10, i / 500, i, v);
    }
    tgi_memlog *log = log_of(text);
    if (log) {
        tgi_memlog_group col[500];
        CHECK_EQ(log->rows, rows);
        CHECK(log->n_groups <= TGI_MEMLOG_GROUPS && log->n_groups >= TGI_MEMLOG_GROUPS / 2);
        CHECK_EQ(log->n_phases, TGI_MEMLOG_PHASES);
        CHECK_STR(log->phase[TGI_MEMLOG_PHASES - 1].name, "...");
        CHECK_NEAR(log->phase[TGI_MEMLOG_PHASES - 1].to, 19999.9, 1e-9);
        CHECK_EQ(log->max.bytes, 999);
        CHECK_EQ(log->max.tile, 123457);
        CHECK_STR(log->max.phase, "p246");
        const int k = tgi_memlog_columns(log, 500, col);
        int high = 0, low = 0;
        CHECK(k <= 500 && k >= 490);
        for (int i = 0; i < k; i++) {
            high += col[i].high == 999 && col[i].tile == 123457 &&
                    fabs(col[i].high_at - 12345.7) < 1e-6;
            low += col[i].low == 100 && fabs(col[i].low_at - 7777.7) < 1e-6;
            CHECK(i == 0 || col[i].from > col[i - 1].to);
        }
        CHECK_EQ(high, 1);
        CHECK_EQ(low, 1);
    }
    tgi_free(log);
    tgi_free(text);
}

/* ---- Pictures ---- */

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *text = tgi_calloc(TGI_TAG_MISC, 1, 1 << 20);
    *n = f && text ? fread(text, 1, (1 << 20) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static void test_the_svg_of_a_log_is_the_golden_one(void)
{
    tgi_err e = {0};
    size_t n = 0, want_n = 0;
    tg_plot_result r;
    CHECK_OK(tgi_plot(GOLDEN ".csv", "tegula_plot.svg", NULL, &r, &e), e);
    char *got = read_file("tegula_plot.svg", &n), *want = read_file(GOLDEN ".svg", &want_n);
    CHECK(want_n > 1000 && n == want_n && memcmp(got, want, n) == 0);
    CHECK_EQ(r.samples, 90);
    CHECK_STR(r.maximum.phase, "run");
    CHECK_EQ(r.maximum.tile, 31);
    CHECK_EQ(r.predicted_bytes, 455 * MIB);
    CHECK_EQ(r.budget_bytes, 512 * MIB);
    CHECK(strstr(got, "maximum 424.58 MiB") && strstr(got, "run, tile 31, at 21.0 s"));
    CHECK(strstr(got, "prefers-color-scheme:dark") && !strstr(got, "<script"));
    const char *link = strstr(got, "http"); /* the name space, and nothing to fetch */
    CHECK(link && !strstr(link + 1, "http") && !strstr(got, "url("));
    tgi_free(got);
    tgi_free(want);
    unlink("tegula_plot.svg");
}

/* Tags that open and close each other, attributes in quotes, no stray '<' or '&': 0 where not.
 */
static int well_formed(const char *s)
{
    char stack[16][16];
    int depth = 0;
    for (; *s; s++) {
        if (*s == '&' && strncmp(s, "&amp;", 5) != 0 && strncmp(s, "&lt;", 4) != 0 &&
            strncmp(s, "&gt;", 4) != 0 && strncmp(s, "&quot;", 6) != 0)
            return 0;
        if ((unsigned char)*s < 0x20 && *s != '\n')
            return 0;
        if (*s != '<')
            continue;
        const int closes = s[1] == '/';
        char name[16];
        if (sscanf(s + 1 + closes, "%15[a-z]", name) != 1)
            return 0;
        int quoted = 0;
        for (s++; *s && (quoted || *s != '>'); s++)
            quoted ^= *s == '"';
        if (!*s || (closes && (!depth || strcmp(stack[--depth], name) != 0)))
            return 0;
        if (!closes && s[-1] != '/') {
            if (depth == 16)
                return 0;
            strcpy(stack[depth++], name);
        }
    }
    return depth == 0;
}

static void test_names_of_strangers_cannot_leave_their_place_in_the_svg(void)
{
    FILE *f = fopen("tegula_plot.csv", "w");
    CHECK(f && fputs("seconds,phase,measured_bytes\n"
                     "0,</title><script>alert(1)</s>,5\n"
                     "1,\x1b[31m\"&\xff\xef\xbf\xbf,900\n"
                     "2,\xc3\xa9t\xc3\xa9 <b>,900\n",
                     f) >= 0);
    if (f)
        fclose(f);
    tgi_err e = {0};
    size_t n = 0;
    const tg_plot_opts o = {.size = sizeof o, .title = "<i>\"\x01&"};
    CHECK_OK(tgi_plot("tegula_plot.csv", "tegula_plot.svg", &o, NULL, &e), e);
    char *got = read_file("tegula_plot.svg", &n);
    CHECK(well_formed(got));
    CHECK(!strstr(got, "<script") && strstr(got, "&lt;script&gt;alert"));
    CHECK(!strchr(got, 0x1b) && !strchr(got, '\xff') && strstr(got, "\xc3\xa9t\xc3\xa9 &lt;b"));
    CHECK(well_formed("<a b=\"<\">&amp;<c/></a>") && !well_formed("<a>") && !well_formed("&x"));
    tgi_free(got);
    unlink("tegula_plot.csv");
    unlink("tegula_plot.svg");
}

/* A pixel of the PNG at a point of the picture. */
static void pixel(tgi_source *s, double x, double y, int rgb[3])
{
    uint8_t got[3] = {0};
    tgi_err e = {0};
    const int64_t px = (int64_t)(2 * x), py = (int64_t)(2 * y);
    CHECK_OK(s->ops->read(s, 0, 0, 0, 3, py, py + 1, px, px + 1, got, 3, TGI_INTERLEAVED, &e),
             e);
    for (int i = 0; i < 3; i++)
        rgb[i] = got[i];
}

static void check_pixel(tgi_source *s, double x, double y, tgi_colour want)
{
    int rgb[3];
    pixel(s, x, y, rgb);
    CHECK_NEAR(rgb[0], want.r, 2);
    CHECK_NEAR(rgb[1], want.g, 2);
    CHECK_NEAR(rgb[2], want.b, 2);
}

static void check_png(const tgi_memlog *log, int theme)
{
    tgi_err e = {0};
    tgi_source *s = NULL;
    const tg_plot_opts o = {.size = sizeof o, .theme = theme ? TG_THEME_DARK : TG_THEME_LIGHT};
    CHECK_OK(tgi_plot(GOLDEN ".csv", "tegula_plot.png", &o, NULL, &e), e);
    const tgi_open_opts open = {.threads = 1};
    CHECK_OK(tgi_source_open("tegula_plot.png", &open, &s, &e), e);
    if (!s)
        return;
    const tgi_image_info *info = s->ops->info(s);
    CHECK_EQ(info->width, 2 * 960);
    CHECK_EQ(info->height, 2 * tgi_plot_height(log));
    CHECK_EQ(info->samples, 3);
    const tgi_plot_frame f = tgi_plot_frame_of(log, 960);
    const double per = (f.y[1] - f.y[0]) / f.top; /* points a byte */
    const double at40 = f.x[0] + (f.x[1] - f.x[0]) * 40.2 / f.to;
    check_pixel(s, 3, 3, tgi_role_colour(TGI_PAPER, theme));
    check_pixel(s, at40, f.y[1] - per * 512 * (double)MIB, tgi_role_colour(TGI_BUDGET, theme));
    /* Between two grid lines inside of the area, in the third phase. */
    const tgi_colour tint = tgi_role_colour(TGI_PHASE_A, theme);
    check_pixel(s, at40, f.y[1] - per * 200 * (double)MIB,
                over(tint, tgi_role_colour(TGI_MEASURED_AREA, theme)));
    check_pixel(s, at40, f.y[1] - per * 500 * (double)MIB, tint); /* above all of it */
    check_pixel(s, f.x[0] + 3, f.y[1], tgi_role_colour(TGI_AXIS, theme));
    /* Half of the predicted line's width is dashes, all in its colour. */
    int dashes = 0;
    for (double x = f.x[0] + 60; x < f.x[1]; x += 0.5) {
        int rgb[3];
        const tgi_colour c = tgi_role_colour(TGI_PREDICTED, theme);
        pixel(s, x, f.y[1] - per * 455 * (double)MIB, rgb);
        dashes += abs(rgb[0] - c.r) <= 2 && abs(rgb[1] - c.g) <= 2 && abs(rgb[2] - c.b) <= 2;
    }
    CHECK(dashes > 0.5 * 2 * (f.x[1] - f.x[0] - 60) &&
          dashes < 0.9 * 2 * (f.x[1] - f.x[0] - 60));
    tgi_source_close(&s);
    unlink("tegula_plot.png");
}

static void test_the_png_has_its_colours_where_they_belong(void)
{
    tgi_memlog *log = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_memlog_read(GOLDEN ".csv", &log, &e), e);
    for (int theme = 0; log && theme < 2; theme++)
        check_png(log, theme);
    tgi_free(log);
}

/* Ten seconds: decoding takes a quarter of the first five, encoding all of the others. A line may say a little more
 * than there was. */
static void test_a_film_has_a_row_for_each_kind_of_its_work(void)
{
    static const char text[] = "seconds,phase,measured_bytes,decode_ms,compute_ms,encode_ms\n"
                               "0,start,900,0,0,0\n5,run,900,1250,0,0\n10,run,900,0,0,5003\n";
    FILE *f = fopen("tegula_plot.csv", "w");
    CHECK(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
    tgi_err e = {0};
    size_t n = 0;
    tgi_source *s = NULL;
    const tgi_open_opts open = {.threads = 1};
    const tg_plot_opts o = {.size = sizeof o, .theme = TG_THEME_LIGHT};
    CHECK_OK(tgi_plot("tegula_plot.csv", "tegula_plot.svg", &o, NULL, &e), e);
    char *got = read_file("tegula_plot.svg", &n);
    CHECK(well_formed(got) && strstr(got, ">decoding<") && strstr(got, ">1.25 s<"));
    CHECK(strstr(got, "decoding 25 %\ncomputing 0 %\nencoding 0 %"));
    CHECK(strstr(got, "decoding 0 %\ncomputing 0 %\nencoding 100 %"));
    tgi_free(got);
    CHECK_OK(tgi_plot("tegula_plot.csv", "tegula_plot.png", &o, NULL, &e), e);
    CHECK_OK(tgi_source_open("tegula_plot.png", &open, &s, &e), e);
    tgi_memlog *log = NULL, *images = log_of("seconds,measured_bytes,decode_ms,compute_ms\n"
                                             "0,900,0,0\n9,900,0,9\n");
    CHECK_OK(tgi_memlog_read("tegula_plot.csv", &log, &e), e);
    if (s && log && images) {
        const tgi_plot_frame at = tgi_plot_frame_of(log, 960);
        const double foot = tgi_plot_height(log) - 62,
                     quarter = at.x[0] + (at.x[1] - at.x[0]) / 4,
                     later = quarter + (at.x[1] - at.x[0]) / 2;
        const tgi_colour b = tgi_role_colour(TGI_PHASE_B, 0),
                         work = over(b, tgi_role_colour(TGI_MEASURED_AREA, 0)),
                         none = tgi_role_colour(TGI_PHASE_A, 0);
        CHECK_EQ(s->ops->info(s)->height, 2 * tgi_plot_height(log));
        CHECK(tgi_plot_height(log) > tgi_plot_height(images)); /* which have none */
        check_pixel(s, quarter, foot - 80 - 4,
                    over(none, tgi_role_colour(TGI_MEASURED_AREA, 0)));
        check_pixel(s, quarter, foot - 80 - 12, none);
        check_pixel(s, quarter, foot - 15, none);
        check_pixel(s, later, foot - 80 - 4, b);
        check_pixel(s, later, foot - 15, work);
        check_pixel(s, later, foot - 26, work);
    }
    CHECK(s && log && images);
    tgi_source_close(&s);
    tgi_free(log);
    tgi_free(images);
    unlink("tegula_plot.csv");
    unlink("tegula_plot.svg");
    unlink("tegula_plot.png");
}

static void test_a_budget_far_above_is_named_and_not_to_scale(void)
{
    tgi_memlog *log = log_of("seconds,measured_bytes,budget_bytes,predicted_bytes\n"
                             "0,104857600,42949672960,209715200\n"
                             "9,104857600,42949672960,209715200\n");
    if (log)
        CHECK_NEAR(tgi_plot_frame_of(log, 960).top, 200 * 1.08 * (double)MIB, 1);
    tgi_free(log);
    log = log_of("seconds,measured_bytes,budget_bytes\n0,104857600,209715200\n");
    if (log)
        CHECK_NEAR(tgi_plot_frame_of(log, 960).top, 200 * 1.08 * (double)MIB, 1);
    tgi_free(log);
}

static void test_what_cannot_be_drawn_is_refused_and_leaves_nothing(void)
{
    tgi_err e = {0};
    tg_plot_opts o = {.size = sizeof o, .width = 479};
    CHECK_STATUS(tgi_plot(GOLDEN ".csv", "a.jpg", NULL, NULL, &e), TG_E_ARG, e);
    CHECK_STATUS(tgi_plot(GOLDEN ".csv", ".svg", NULL, NULL, &e), TG_E_ARG, e);
    CHECK_STATUS(tgi_plot(GOLDEN ".csv", "tegula_none.svg", &o, NULL, &e), TG_E_ARG, e);
    o = (tg_plot_opts){.size = sizeof o, .width = 4000, .scale = 8};
    CHECK_STATUS(tgi_plot(GOLDEN ".csv", "tegula_none.png", &o, NULL, &e), TG_E_ARG, e);
    o.scale = 0.1;
    CHECK_STATUS(tgi_plot(GOLDEN ".csv", "tegula_none.png", &o, NULL, &e), TG_E_ARG, e);
    CHECK_STATUS(tgi_plot("no_such.csv", "tegula_none.svg", NULL, NULL, &e), TG_E_NOT_FOUND, e);
    CHECK_STATUS(tgi_plot("/proc/self", "tegula_none.svg", NULL, NULL, &e), TG_E_FORMAT, e);
    CHECK_STATUS(tgi_plot(GOLDEN ".csv", "no_such_folder/x.svg", NULL, NULL, &e), TG_E_EXISTS,
                 e);
    CHECK(access("tegula_none.svg", F_OK) != 0 && access("tegula_none.png", F_OK) != 0);
    CHECK_EQ(tg_plot(NULL, NULL, "tegula_none.svg", NULL, NULL), TG_E_ARG);
    o.size = 1;
    CHECK_EQ(tg_plot(NULL, GOLDEN ".csv", "tegula_none.svg", &o, NULL), TG_E_ARG);
}

static void test_every_refused_allocation_is_answered(void)
{
    for (int png = 0; png < 2; png++) {
        const char *out = png ? "tegula_plot.png" : "tegula_plot.svg";
        tg_status st = TG_E_NOMEM;
        int k = 1;
        for (; st != TG_OK && k < 100; k++) {
            tgi_err e = {0};
            tgi_mem_fail_at((uint64_t)k);
            st = tgi_plot(GOLDEN ".csv", out, NULL, NULL, &e);
            tgi_mem_fail_at(0);
            CHECK(st == TG_OK || (st == TG_E_NOMEM && e.text[0]));
            CHECK_EQ(access(out, F_OK) == 0, st == TG_OK);
        }
        CHECK(k > 5 && st == TG_OK);
        unlink(out);
    }
}

static void test_a_log_cut_anywhere_is_drawn_or_refused(void)
{
    size_t n = 0;
    char *text = read_file(GOLDEN ".csv", &n);
    int drawn = 0;
    for (size_t k = 0; k < n; k += 1 + k / 16) {
        tgi_memlog *log = NULL;
        tgi_err e = {0};
        const tg_status st = tgi_memlog_parse(text, k, "cut", &log, &e);
        CHECK(st == TG_OK || st == TG_E_FORMAT);
        drawn += st == TG_OK;
        tgi_free(log);
    }
    CHECK(drawn > 10);
    tgi_free(text);
}

int main(void)
{
    RUN(test_sizes_step_by_powers_of_two_in_one_unit);
    RUN(test_times_step_as_clocks_do);
    RUN(test_text_and_lines_stand_out_from_all_they_may_lie_on);
    RUN(test_coverage_is_the_area_within_a_pixel);
    RUN(test_pieces_of_a_line_unite);
    RUN(test_every_letter_is_drawn_within_its_place);
    RUN(test_what_a_tracker_writes_is_read_back);
    RUN(test_other_columns_blank_lines_and_a_torn_end_are_no_trouble);
    RUN(test_a_malformed_log_is_refused_with_its_line);
    RUN(test_long_lines_and_many_columns_are_refused);
    RUN(test_a_long_log_keeps_its_extremes_in_bounded_memory);
    RUN(test_the_svg_of_a_log_is_the_golden_one);
    RUN(test_names_of_strangers_cannot_leave_their_place_in_the_svg);
    RUN(test_the_png_has_its_colours_where_they_belong);
    RUN(test_a_film_has_a_row_for_each_kind_of_its_work);
    RUN(test_a_budget_far_above_is_named_and_not_to_scale);
    RUN(test_what_cannot_be_drawn_is_refused_and_leaves_nothing);
    RUN(test_every_refused_allocation_is_answered);
    RUN(test_a_log_cut_anywhere_is_drawn_or_refused);
    return TEST_END();
}
