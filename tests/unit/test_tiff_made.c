/* The TIFF reader against files made here: by libtiff in every layout we read (the oracle of
 * our LZW, PackBits and predictors), and by hand where a file must be huge, sparse or false. */
#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/unit/tiff_layout.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static char path[256];

/* ---- Round trips through libtiff ---- */

/* What libtiff itself reads back, into `pixels`. libtiff 4.5 writes big-endian files with
 * predictor 3 from swapped samples; its reader, and every other, then finds other numbers. */
static void read_back(const layout *a, uint8_t *pixels)
{
    TIFF *t = TIFFOpen(path, "r");
    const size_t size = (size_t)a->bits / 8, s = (size_t)a->samples;
    const size_t inner = a->planar ? 1 : s,
                 bytes = (size_t)a->block_w * a->block_h * inner * size;
    uint8_t *block = malloc(bytes);
    uint32_t n = 0;
    for (size_t k = 0; k < (a->planar ? s : 1); k++)
        for (uint32_t y0 = 0; y0 < a->h; y0 += a->block_h)
            for (uint32_t x0 = 0; x0 < a->w; x0 += a->block_w, n++) {
                CHECK(a->tiled ? TIFFReadEncodedTile(t, n, block, (tmsize_t)bytes) > 0
                               : TIFFReadEncodedStrip(t, n, block, (tmsize_t)bytes) > 0);
                for (uint32_t y = 0; y < a->block_h && y0 + y < a->h; y++)
                    for (uint32_t x = 0; x < a->block_w && x0 + x < a->w; x++)
                        memcpy(pixels + (((size_t)(y0 + y) * a->w + x0 + x) * s + k) * size,
                               block + ((size_t)y * a->block_w + x) * inner * size,
                               inner * size);
            }
    TIFFClose(t);
    free(block);
}

/* Random boxes of the file equal the pixels it was made from. */
static int same_pixels(const layout *a, const uint8_t *pixels, uint64_t *seed, int *streamed)
{
    /* Everything is held; a row of blocks is held when small; and when smaller still. zstd
     * needs a window of 4 MiB to stream what libtiff wrote. */
    static const size_t budgets[2][3] = {{0, 2u << 20, 600u << 10}, {0, 8u << 20, 6u << 20}};
    const size_t size = (size_t)a->bits / 8;
    const tgi_open_opts o = {
        .threads = 1, .decode_budget = budgets[a->compression == 50000][tg_rand(seed) % 3]};
    tgi_err err = {0};
    tgi_source *s = NULL;
    int equal = 1;
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        return 0;
    *streamed += s->ops->stream_rows(s) > 0;
    for (int k = 0; k < 4; k++) {
        const int64_t y0 = k ? tg_rand_in(seed, 0, a->h - 1) : 0;
        const int64_t x0 = k ? tg_rand_in(seed, 0, a->w - 1) : 0;
        const int64_t y1 = k ? tg_rand_in(seed, y0 + 1, a->h) : a->h;
        const int64_t x1 = k ? tg_rand_in(seed, x0 + 1, a->w) : a->w;
        const size_t n = (size_t)a->samples, box = (size_t)(x1 - x0) * (size_t)(y1 - y0) * size;
        const int together = k % 2; /* samples side by side, or sample planes */
        const size_t pixel = together ? n * size : size, row = (size_t)(x1 - x0) * pixel;
        const size_t plane = together ? size : box;
        uint8_t *got = malloc(box * n);
        CHECK_OK(s->ops->read(s, 0, 0, 0, a->samples, y0, y1, x0, x1, got, row,
                              together ? TGI_INTERLEAVED : plane, &err),
                 err);
        for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++)
                for (int c = 0; c < a->samples; c++)
                    equal &=
                        memcmp(got + (size_t)c * plane + (size_t)(y - y0) * row +
                                   (size_t)(x - x0) * pixel,
                               pixels + (((size_t)y * a->w + (size_t)x) * (size_t)a->samples +
                                         (size_t)c) *
                                            size,
                               size) == 0;
        free(got);
    }
    tgi_source_close(&s);
    return equal;
}

static void test_what_libtiff_writes_is_read_bit_for_bit(void)
{
    static const int codecs[] = {1, 5, 8, 32773, 32946, 50000};
    static const char *const modes[] = {"wl", "wb", "wl8", "wb8"};
    static const int bits[] = {8, 16, 32, 64};
    uint64_t seed = 77;
    int n = 0, streamed = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < 600; round++) {
        const int large = round % 5 == 0;
        layout a = {.compression = codecs[round % 6],
                    .planar = (int)(tg_rand(&seed) & 1),
                    .tiled = (int)(tg_rand(&seed) & 1),
                    .bits = bits[tg_rand(&seed) % 4],
                    .samples = (int)tg_rand_in(&seed, 1, 4),
                    .mode = modes[tg_rand(&seed) % 4],
                    .w = (uint32_t)tg_rand_in(&seed, 1, large ? 400 : 90),
                    .h = (uint32_t)tg_rand_in(&seed, 1, large ? 400 : 90),
                    .predictor = 1};
        a.format = a.bits == 8 ? 1 : (int)tg_rand_in(&seed, 1, 3);
        a.block_w = a.tiled ? (uint32_t)(16 * tg_rand_in(&seed, 1, large ? 16 : 4)) : a.w;
        a.block_h = (uint32_t)(a.tiled ? 16 * tg_rand_in(&seed, 1, large ? 16 : 4)
                                       : tg_rand_in(&seed, 1, a.h));
        if (a.compression != 1 && a.compression != 32773)
            a.predictor = (int)tg_rand_in(&seed, 1, a.format == 3 ? 3 : 2);
        uint8_t *pixels = make_pixels(&a, &seed);
        write_tiff(path, &a, pixels);
        if (a.predictor == 3 && a.mode[1] == 'b')
            read_back(&a, pixels);
        const int same = same_pixels(&a, pixels, &seed, &streamed);
        CHECK(same);
        if (!same)
            fprintf(stderr,
                    "  codec %d predictor %d planar %d tiled %d bits %d format %d "
                    "samples %d %ux%u %s\n",
                    a.compression, a.predictor, a.planar, a.tiled, a.bits, a.format, a.samples,
                    a.w, a.h, a.mode);
        free(pixels);
        n += same;
    }
    printf("%d files, %d of them as streams of rows\n", n, streamed);
    CHECK(streamed > 20);
}

/* What a run does: bands from top to bottom, all samples, two lanes in turn. Every block is
 * decoded once, whatever its size, also when the planes of three channels are read in turn. */
static void test_going_down_in_bands_decodes_every_strip_once(void)
{
    static const struct {
        int compression, predictor, bits, format;
    } ways[] = {
        {5, 2, 16, 1}, {8, 1, 8, 1}, {8, 3, 32, 3}, {32773, 1, 16, 2}, {50000, 2, 64, 1}};
    uint64_t seed = 78;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (int way = 0; way < 4; way++) {
            if (ways[w].compression == 50000 && way == 3)
                continue; /* its window is larger than such a tile, which is held then */
            layout a = {.compression = ways[w].compression,
                        .predictor = ways[w].predictor,
                        .bits = ways[w].bits,
                        .format = ways[w].format,
                        .samples = way ? 3 : 1,
                        .planar = way > 1,
                        .tiled = way == 3,
                        .mode = "wl8",
                        .w = 900,
                        .h = 700};
            a.block_w = a.tiled ? 512 : a.w;
            a.block_h = a.tiled ? 512 : a.h;
            uint8_t *pixels = make_pixels(&a, &seed);
            write_tiff(path, &a, pixels);
            const tgi_open_opts o = {.threads = 2,
                                     .decode_budget = w == 4 ? 40u << 20 : 5u << 20};
            tgi_err err = {0};
            tgi_source *s = NULL;
            CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
            if (!s)
                continue;
            const size_t size = (size_t)a.bits / 8, row = a.w * size;
            uint8_t *band = malloc(row * 48 * 3);
            int equal = 1, lane = 0;
            for (int64_t y = 0; y < a.h; y += 48, lane = !lane) {
                const int64_t ye = tgi_min(a.h, y + 48);
                CHECK_OK(s->ops->read(s, lane, 0, 0, a.samples, y, ye, 0, a.w, band, row,
                                      row * 48, &err),
                         err);
                for (int64_t r = y; r < ye; r++)
                    for (size_t x = 0; x < a.w * (size_t)a.samples; x++)
                        equal &=
                            memcmp(band + x % (size_t)a.samples * row * 48 +
                                       (size_t)(r - y) * row + x / (size_t)a.samples * size,
                                   pixels + ((size_t)r * a.w * (size_t)a.samples + x) * size,
                                   size) == 0;
            }
            const size_t blocks =
                (a.tiled ? 1024 : (size_t)a.w) * a.h; /* not the padding below */
            CHECK(equal);
            CHECK(s->ops->stream_rows(s) > 0);
            CHECK_EQ(s->ops->decoded_bytes(s), blocks * size * (size_t)a.samples);
            CHECK(s->ops->codec_bytes(s) < (w == 4 ? 15u << 20 : 3u << 20));
            free(band);
            tgi_source_close(&s);
            free(pixels);
        }
}

/* The tightest stream keeps the row it is asked for and no other: skipping and going back. */
static void test_rows_in_any_order_when_only_one_is_kept(void)
{
    const layout a = {.compression = 8,
                      .predictor = 2,
                      .bits = 16,
                      .format = 1,
                      .samples = 1,
                      .mode = "wb",
                      .w = 8000,
                      .h = 40,
                      .block_w = 8000,
                      .block_h = 40};
    static const int64_t order[] = {0, 1, 5, 5, 39, 4, 38, 39};
    const tgi_open_opts o = {.threads = 1, .decode_budget = 110000};
    uint64_t seed = 79;
    uint8_t *pixels = make_pixels(&a, &seed), row[16000];
    tgi_err err = {0};
    tgi_source *s = NULL;
    write_tiff(path, &a, pixels);
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    CHECK_EQ(s ? s->ops->stream_rows(s) : 0, 1);
    for (size_t i = 0; s && i < sizeof order / sizeof order[0]; i++) {
        CHECK_OK(s->ops->read(s, 0, 0, 0, 1, order[i], order[i] + 1, 0, 8000, row, 0, 0, &err),
                 err);
        CHECK(memcmp(row, pixels + (size_t)order[i] * sizeof row, sizeof row) == 0);
    }
    tgi_source_close(&s);
    free(pixels);
}

/* ---- Files made by hand ---- */

typedef struct maker {
    int fd, big;   /* big: BigTIFF; always little-endian */
    uint64_t end;  /* where the next directory goes */
    uint64_t link; /* where its offset must be written */
} maker;

static void put(const maker *m, uint64_t at, const void *p, size_t n)
{
    CHECK(pwrite(m->fd, p, n, (off_t)at) == (ssize_t)n);
}

static maker make_file(int big)
{
    maker m = {.fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), .big = big};
    const uint8_t head[16] = {'I', 'I', (uint8_t)(big ? 43 : 42), 0, (uint8_t)(big ? 8 : 0)};
    put(&m, 0, head, 16);
    m.link = big ? 8 : 4;
    m.end = 16;
    return m;
}

typedef struct entry {
    uint16_t tag, type;
    uint64_t count, value; /* value or offset, as it stands in the entry */
} entry;

/* A directory at m->end, linked to the one before. Returns its offset. */
static uint64_t add_ifd(maker *m, const entry *e, int n)
{
    const uint64_t at = m->end;
    const size_t head = m->big ? 8 : 2, each = m->big ? 20 : 12, word = m->big ? 8 : 4;
    const uint64_t count = (uint64_t)n, none = 0;
    put(m, m->link, &at, word);
    put(m, at, &count, head);
    for (int i = 0; i < n; i++) {
        uint8_t b[20];
        memcpy(b, &e[i].tag, 2);
        memcpy(b + 2, &e[i].type, 2);
        memcpy(b + 4, &e[i].count, word);
        memcpy(b + 4 + word, &e[i].value, word);
        put(m, at + head + (uint64_t)i * each, b, each);
    }
    m->link = at + head + (uint64_t)n * each;
    put(m, m->link, &none, word);
    m->end = m->link + word;
    return at;
}

static uint64_t add_text(maker *m, const char *text)
{
    const uint64_t at = m->end;
    put(m, at, text, strlen(text) + 1);
    m->end += strlen(text) + 1;
    return at;
}

static tg_status open_made(maker *m, const tgi_open_opts *o, tgi_source **s, tgi_err *err)
{
    close(m->fd);
    return tgi_source_open(path, o, s, err);
}

/* One u16 image of w x h, one strip at `strip`; text and counts as given. */
static void add_plain(maker *m, uint32_t w, uint32_t h, uint64_t strip, uint64_t bytes,
                      uint64_t text, uint64_t text_len)
{
    const uint16_t wide = m->big ? 16 : 4;
    const entry e[] = {{256, 4, 1, w},        {257, 4, 1, h}, {258, 3, 1, 16},
                       {259, 3, 1, 1},        {262, 3, 1, 1}, {270, 2, text_len, text},
                       {273, wide, 1, strip}, {277, 3, 1, 1}, {278, 4, 1, h},
                       {279, wide, 1, bytes}};
    add_ifd(m, e, 10);
}

static void test_an_imagej_stack_beyond_4_gib_has_all_its_planes(void)
{
    const char *text = "ImageJ=1.53t\nimages=600\nchannels=2\nslices=300\nunit=micron\n"
                       "spacing=0.5\nhyperstack=true\n";
    const uint64_t plane = 2048ull * 2048 * 2, data = 4096, last = data + 599 * plane;
    uint16_t mark = 0xbeef, got[4] = {0};
    for (int short_by = 0; short_by < 2; short_by++) {
        maker m = make_file(0);
        tgi_err err = {0};
        tgi_source *s = NULL;
        const uint64_t at = add_text(&m, text);
        add_plain(&m, 2048, 2048, data, (uint32_t)(600 * plane), at, strlen(text) + 1);
        put(&m, last + (2047ull * 2048 + 2045) * 2, &mark, 2);
        CHECK(ftruncate(m.fd, (off_t)(data + 600 * plane - (uint64_t)short_by)) == 0);
        if (short_by) { /* one byte is missing: an error, never plane 0 alone */
            CHECK_STATUS(open_made(&m, NULL, &s, &err), TG_E_FORMAT, err);
            continue;
        }
        CHECK_OK(open_made(&m, NULL, &s, &err), err);
        if (!s)
            continue;
        CHECK_STR(s->ops->info(s)->axes, "ZCYX");
        CHECK_EQ(s->ops->info(s)->n_planes, 600);
        CHECK_NEAR(s->ops->info(s)->meta.physical[0], 0.5, 0);
        CHECK_OK(s->ops->read(s, 0, 599, 0, 1, 2047, 2048, 2044, 2048, got, 8, 8, &err), err);
        CHECK_EQ(got[0], 0);
        CHECK_EQ(got[1], 0xbeef);
        tgi_source_close(&s);
    }
}

static void test_a_strip_beyond_4_gib_in_a_bigtiff_is_read_without_being_decoded_whole(void)
{
    const uint64_t data = 5ull << 30, w = 65536, h = 65536;
    uint16_t mark = 0x1234, got[3] = {0};
    maker m = make_file(1);
    add_plain(&m, (uint32_t)w, (uint32_t)h, data, w * h * 2, 0, 0);
    put(&m, data + (w * (h - 2) + 7) * 2, &mark, 2);
    CHECK(ftruncate(m.fd, (off_t)(data + w * h * 2)) == 0);
    close(m.fd);
    const tgi_open_opts o = {.threads = 1};
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        return;
    CHECK_OK(s->ops->read(s, 0, 0, 0, 1, 65534, 65535, 6, 9, got, 6, 6, &err), err);
    CHECK_EQ(got[1], 0x1234);
    CHECK(s->ops->codec_bytes(s) < 2u << 20);
    tgi_source_close(&s);
}

static void test_a_chain_that_loops_is_damage(void)
{
    maker m = make_file(0);
    tgi_err err = {0};
    tgi_source *s = NULL;
    uint64_t first = 0;
    for (int i = 0; i < 9; i++) {
        if (i == 2)
            first = m.end;
        add_plain(&m, 4, 4, 8, 32, 0, 0);
    }
    put(&m, m.link, &first, 4);
    CHECK_EQ(open_made(&m, NULL, &s, &err), TG_E_FORMAT);
    CHECK(strstr(err.text, "returns to offset") || strstr(err.text, "overlap"));
}

static void test_false_counts_are_refused_before_memory_is_asked_for(void)
{
    /* strips for rows that are not there; 4G x 4G; strips past the end; no offsets. */
    const entry lies[][7] = {
        {{256, 4, 1, 10},
         {257, 4, 1, 1000000},
         {258, 3, 1, 8},
         {259, 3, 1, 8},
         {273, 4, 1000000, 8},
         {278, 4, 1, 1},
         {279, 4, 1000000, 8}},
        {{256, 4, 1, 10},
         {257, 4, 1, 1000000},
         {258, 3, 1, 8},
         {259, 3, 1, 8},
         {273, 4, 1, 8},
         {278, 4, 1, 1},
         {279, 4, 1, 8}},
        {{256, 4, 1, 0xffffffff},
         {257, 4, 1, 0xffffffff},
         {258, 3, 1, 8},
         {259, 3, 1, 1},
         {273, 4, 1, 8},
         {278, 4, 1, 0xffffffff},
         {279, 4, 1, 8}},
        {{256, 4, 1, 4},
         {257, 4, 1, 4},
         {258, 3, 1, 8},
         {259, 3, 1, 1},
         {273, 4, 1, 1 << 20},
         {278, 4, 1, 4},
         {279, 4, 1, 16}},
        {{256, 4, 1, 4},
         {257, 4, 1, 4},
         {258, 3, 1, 8},
         {259, 3, 1, 1},
         {273, 4, 0, 8},
         {278, 4, 1, 4},
         {279, 4, 1, 16}},
        {{256, 4, 1, 4},
         {257, 4, 1, 4},
         {258, 3, 1, 8},
         {259, 3, 1, 1},
         {273, 4, 1, 0},
         {278, 4, 1, 4},
         {279, 4, 1, 0}},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        maker m = make_file(0);
        tgi_err err = {0};
        tgi_source *s = NULL;
        add_ifd(&m, lies[i], 7);
        const tg_status st = open_made(&m, NULL, &s, &err);
        CHECK_EQ(st, TG_E_FORMAT);
        if (st != TG_E_FORMAT)
            fprintf(stderr, "  lie %zu: %s\n", i, err.text);
        tgi_source_close(&s);
    }
}

static void test_a_strip_is_refused_only_when_not_even_a_stream_of_it_fits(void)
{
    maker m = make_file(0);
    const entry e[] = {{256, 4, 1, 100000}, {257, 4, 1, 100000}, {258, 3, 1, 8},
                       {259, 3, 1, 8},      {273, 4, 1, 8},      {278, 4, 1, 100000},
                       {279, 4, 1, 100}};
    const tgi_open_opts tight = {.threads = 2, .decode_budget = 200000};
    const tgi_open_opts wide = {.threads = 2, .decode_budget = 1000000};
    tgi_err err = {0};
    tgi_source *s = NULL;
    add_ifd(&m, e, 7);
    CHECK(ftruncate(m.fd, 200) == 0);
    CHECK_EQ(open_made(&m, &tight, &s, &err), TG_E_BUDGET);
    CHECK(strstr(err.text, "100000 x 100000") != NULL);
    err = (tgi_err){0};
    CHECK_OK(tgi_source_open(path, &wide, &s, &err), err);
    if (s)
        CHECK(s->ops->stream_rows(s) > 0 && s->ops->codec_bytes(s) < 1100000);
    tgi_source_close(&s);
}

static void test_a_file_that_shrinks_while_open_is_damage_and_no_fault(void)
{
    const tgi_open_opts o = {.threads = 1};
    maker m = make_file(0);
    tgi_err err = {0};
    tgi_source *s = NULL;
    uint16_t row[2000];
    add_plain(&m, 2000, 2000, 4096, 8000000, 0, 0);
    CHECK(ftruncate(m.fd, 4096 + 8000000) == 0);
    CHECK_OK(open_made(&m, &o, &s, &err), err);
    CHECK_OK(s->ops->read(s, 0, 0, 0, 1, 0, 1, 0, 2000, row, 4000, 4000, &err), err);
    CHECK(truncate(path, 100000) == 0);
    CHECK_STATUS(s->ops->read(s, 0, 0, 0, 1, 1999, 2000, 0, 2000, row, 4000, 4000, &err),
                 TG_E_FORMAT, err);
    tgi_source_close(&s);
}

/* Four pages of 4 x 4, filled with their own number, and OME-XML that places them. */
static tg_status open_ome(const char *pixels, tgi_source **s, tgi_err *err)
{
    char xml[2048];
    maker m = make_file(1);
    snprintf(xml, sizeof xml,
             "<?xml version=\"1.0\"?><OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/"
             "2016-06\" UUID=\"urn:uuid:a\"><Image ID=\"Image:0\">%s</Image></OME>",
             pixels);
    const uint64_t text = add_text(&m, xml);
    for (uint16_t i = 0; i < 4; i++) {
        uint16_t data[16];
        for (int k = 0; k < 16; k++)
            data[k] = i;
        const uint64_t at = m.end;
        put(&m, at, data, sizeof data);
        m.end += sizeof data;
        add_plain(&m, 4, 4, at, 32, i ? 0 : text, i ? 0 : strlen(xml) + 1);
    }
    return open_made(&m, NULL, s, err);
}

#define PIXELS(sizes)                                                                          \
    "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYZCT\" Type=\"uint16\" SizeX=\"4\" "            \
    "SizeY=\"4\" " sizes

static void test_ome_tiffdata_decides_which_directory_is_which_plane(void)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    CHECK_OK(open_ome(PIXELS("SizeZ=\"2\" SizeC=\"2\" SizeT=\"1\" PhysicalSizeX=\"250\" "
                             "PhysicalSizeXUnit=\"nm\" PhysicalSizeZ=\"2\">"
                             "<Channel ID=\"c0\" Name=\"DAPI\" Color=\"-1\"/>"
                             "<Channel ID=\"c1\" Name=\"&lt;GFP&gt;\"/>"
                             "<TiffData IFD=\"2\" PlaneCount=\"2\"/>"
                             "<TiffData IFD=\"1\" FirstZ=\"0\" FirstC=\"1\"/>"
                             "<TiffData IFD=\"0\" FirstZ=\"1\" FirstC=\"1\"/></Pixels>"),
                      &s, &err),
             err);
    if (!s)
        return;
    const tgi_image_info *i = s->ops->info(s);
    const uint16_t want[] = {2, 3, 1, 0};
    CHECK_STR(i->axes, "TCZYX");
    CHECK_STR(i->meta.channel_name[1], "<GFP>");
    CHECK_STR(i->meta.unit[2], "nm");
    CHECK_STR(i->meta.unit[0], "\xc2\xb5m");
    CHECK_NEAR(i->meta.physical[2], 250, 0);
    for (int p = 0; p < 4; p++) {
        uint16_t v[1];
        CHECK_OK(s->ops->read(s, 0, p, 0, 1, 3, 4, 3, 4, v, 2, 2, &err), err);
        CHECK_EQ(v[0], want[p]);
    }
    tgi_source_close(&s);
}

static void test_ome_claims_that_the_file_does_not_keep_are_refused(void)
{
    static const struct {
        const char *pixels;
        tg_status st;
    } cases[] = {
        /* five planes, four pages */
        {PIXELS("SizeZ=\"5\" SizeC=\"1\" SizeT=\"1\"><TiffData/></Pixels>"), TG_E_FORMAT},
        /* a plane without a place */
        {PIXELS("SizeZ=\"4\" SizeC=\"1\" SizeT=\"1\"><TiffData IFD=\"0\"/></Pixels>"),
         TG_E_FORMAT},
        /* a directory that is not there */
        {PIXELS("SizeZ=\"1\" SizeC=\"1\" SizeT=\"1\"><TiffData IFD=\"9\"/></Pixels>"),
         TG_E_FORMAT},
        /* half of it in another file */
        {PIXELS(
             "SizeZ=\"2\" SizeC=\"1\" SizeT=\"1\"><TiffData IFD=\"0\"><UUID FileName=\"x.tif\""
             ">urn:uuid:a</UUID></TiffData><TiffData IFD=\"0\" FirstZ=\"1\"><UUID FileName="
             "\"y.tif\">urn:uuid:b</UUID></TiffData></Pixels>"),
         TG_E_FORMAT},
        /* another size */
        {"<Pixels DimensionOrder=\"XYZCT\" SizeX=\"8\" SizeY=\"4\" SizeZ=\"4\" SizeC=\"1\" "
         "SizeT=\"1\"/>",
         TG_E_FORMAT},
        /* entities */
        {"<!DOCTYPE x [<!ENTITY a \"b\">]>", TG_E_FORMAT},
        /* not well formed */
        {"<Pixels", TG_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tgi_err err = {0};
        tgi_source *s = NULL;
        CHECK_STATUS(open_ome(cases[i].pixels, &s, &err), cases[i].st, err);
        tgi_source_close(&s);
    }
}

static void test_pages_stored_differently_are_not_dropped_in_silence(void)
{
    maker m = make_file(0);
    tgi_err err = {0};
    tgi_source *s = NULL;
    const uint16_t zero[16] = {0};
    put(&m, 16, zero, 32);
    m.end = 48;
    add_plain(&m, 4, 4, 16, 32, 0, 0);
    const entry e[] = {{256, 4, 1, 4},  {257, 4, 1, 4}, {258, 3, 1, 16}, {259, 3, 1, 8},
                       {273, 4, 1, 16}, {278, 4, 1, 4}, {279, 4, 1, 32}};
    add_ifd(&m, e, 7);
    CHECK_EQ(open_made(&m, NULL, &s, &err), TG_E_UNSUPPORTED);
    CHECK(strstr(err.text, "page 1 is stored differently") != NULL);
}

static void test_axes_can_be_renamed_but_not_moved(void)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    maker m = make_file(0);
    put(&m, 16, "0123456789abcdef0123456789abcdef", 32);
    m.end = 48;
    for (int i = 0; i < 3; i++)
        add_plain(&m, 4, 4, 16, 32, 0, 0);
    const tgi_open_opts z = {.threads = 1, .axes = "ZYX"}, bad = {.threads = 1, .axes = "YZX"};
    CHECK_OK(open_made(&m, &z, &s, &err), err);
    CHECK_STR(s->ops->info(s)->axes, "ZYX");
    CHECK_EQ(s->ops->info(s)->n_planes, 3);
    tgi_source_close(&s);
    CHECK_STATUS(tgi_source_open(path, &bad, &s, &err), TG_E_ARG, err);
}

/* ---- Threads, refused allocations ---- */

typedef struct reader {
    tgi_source *s;
    int lane, equal;
    const uint8_t *pixels;
} reader;

#define SIDE 200

static void *read_bands(void *arg)
{
    reader *r = arg;
    uint8_t band[7 * SIDE];
    tgi_err err = {0};
    r->equal = 1;
    for (int round = 0; round < 20; round++)
        for (int64_t y = r->lane; y < SIDE; y += 7) {
            const int64_t ye = tgi_min(SIDE, y + 7);
            r->equal &= r->s->ops->read(r->s, r->lane, 0, 0, 1, y, ye, 0, SIDE, band, SIDE, 0,
                                        &err) == TG_OK &&
                        memcmp(band, r->pixels + y * SIDE, (size_t)(ye - y) * SIDE) == 0;
        }
    return NULL;
}

static const layout tiled_lzw = {.compression = 5,
                                 .predictor = 2,
                                 .tiled = 1,
                                 .bits = 8,
                                 .format = 1,
                                 .samples = 1,
                                 .mode = "wl",
                                 .w = SIDE,
                                 .h = SIDE,
                                 .block_w = 32,
                                 .block_h = 48};

static void three_threads(size_t budget)
{
    uint64_t seed = 5;
    layout a = tiled_lzw;
    if (budget) { /* the smallest decoder: streams take less than tiles, however small */
        a.compression = 32773;
        a.predictor = 1;
        a.block_w = a.block_h = 208; /* a stream keeps a piece of the file, too */
    }
    uint8_t *pixels = make_pixels(&a, &seed);
    const tgi_open_opts o = {.threads = 3, .decode_budget = budget};
    pthread_t t[3];
    reader r[3];
    tgi_err err = {0};
    tgi_source *s = NULL;
    write_tiff(path, &a, pixels);
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    for (int i = 0; i < 3; i++) {
        r[i] = (reader){s, i, 0, pixels};
        CHECK_EQ(pthread_create(&t[i], NULL, read_bands, &r[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        CHECK(r[i].equal);
    }
    CHECK_EQ(s->ops->stream_rows(s) > 0, budget != 0);
    tgi_source_close(&s);
    free(pixels);
}

static void test_three_threads_read_one_source_at_once(void)
{
    three_threads(0);
    three_threads(120u << 10); /* large blocks: one set of decoders for all */
}

static void allocations(size_t budget)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = budget};
    uint64_t seed = 6;
    layout a = tiled_lzw;
    if (budget) {
        a.compression = 32773;
        a.predictor = 1;
        a.block_w = a.block_h = 208; /* a stream keeps a piece of the file, too */
    }
    uint8_t *pixels = make_pixels(&a, &seed), all[SIDE * SIDE];
    tgi_mem_stats before, after;
    tgi_err err = {0};
    tgi_source *s = NULL;
    int refused = 0;
    write_tiff(path, &a, pixels);
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    tgi_mem_get_stats(&before);
    CHECK_OK(s->ops->read(s, 0, 0, 0, 1, 0, SIDE, 0, SIDE, all, SIDE, 0, &err), err);
    tgi_mem_get_stats(&after);
    CHECK_EQ(after.requests, before.requests);
    CHECK(memcmp(all, pixels, sizeof all) == 0);
    CHECK(s->ops->codec_bytes(s) >= before.tag_bytes[TGI_TAG_IO]);
    tgi_source_close(&s);
    tgi_mem_get_stats(&before);
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    tgi_mem_get_stats(&after);
    tgi_source_close(&s);
    for (uint64_t k = 1; k <= after.requests - before.requests; k++) {
        tgi_mem_fail_at(k);
        const tg_status st = tgi_source_open(path, &o, &s, &err);
        tgi_mem_fail_at(0);
        tgi_source_close(&s);
        err = (tgi_err){0};
        CHECK(st == TG_E_NOMEM || st == TG_OK); /* giving room back may fail without harm */
        refused += st == TG_E_NOMEM;
    }
    CHECK(refused >= (int)(after.requests - before.requests) - 2);
    free(pixels);
}

static void test_reading_allocates_nothing_and_a_refused_allocation_at_open_is_clean(void)
{
    allocations(0);
    allocations(200u << 10);
}

int main(void)
{
    snprintf(path, sizeof path, "test_tiff_made.%d.tif", (int)getpid());
    TIFFSetWarningHandler(NULL);
    RUN(test_what_libtiff_writes_is_read_bit_for_bit);
    RUN(test_going_down_in_bands_decodes_every_strip_once);
    RUN(test_rows_in_any_order_when_only_one_is_kept);
    RUN(test_an_imagej_stack_beyond_4_gib_has_all_its_planes);
    RUN(test_a_strip_beyond_4_gib_in_a_bigtiff_is_read_without_being_decoded_whole);
    RUN(test_a_chain_that_loops_is_damage);
    RUN(test_false_counts_are_refused_before_memory_is_asked_for);
    RUN(test_a_strip_is_refused_only_when_not_even_a_stream_of_it_fits);
    RUN(test_a_file_that_shrinks_while_open_is_damage_and_no_fault);
    RUN(test_ome_tiffdata_decides_which_directory_is_which_plane);
    RUN(test_ome_claims_that_the_file_does_not_keep_are_refused);
    RUN(test_pages_stored_differently_are_not_dropped_in_silence);
    RUN(test_axes_can_be_renamed_but_not_moved);
    RUN(test_three_threads_read_one_source_at_once);
    RUN(test_reading_allocates_nothing_and_a_refused_allocation_at_open_is_clean);
    unlink(path);
    return TEST_END();
}
