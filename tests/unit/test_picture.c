/* PNG and JPEG files as images. PNGs are put together here in every form there is (depths,
 * colours, filters, interlaced), JPEGs by libjpeg; both are cut and bent as well. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/deflate.h"
#include "io/exif.h"
#include "io/image.h"
#include "tests/tg_test.h"

#ifdef TG_TEST_JPEG
#include <jpeglib.h>
#endif
#include <zlib.h>

static char path[256];

static void write_file(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

/* ---- A PNG writer for every form ---- */

typedef struct form {
    uint32_t w, h;
    int bits, colour, interlaced;
    int n_palette, n_alpha;
    uint32_t idat;    /* bytes of data in a chunk at most */
    const char *note; /* a chunk in front of the pixels: its type and data; or NULL */
    size_t note_bytes;
} form;

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

static void put32(bytes *b, uint32_t v)
{
    for (int k = 24; k >= 0; k -= 8)
        b->p[b->n++] = (uint8_t)(v >> k);
}

static void put_chunk(bytes *b, const char *type, const void *data, size_t n)
{
    put32(b, (uint32_t)n);
    memcpy(b->p + b->n, type, 4);
    if (n)
        memcpy(b->p + b->n + 4, data, n);
    const uint32_t crc = (uint32_t)crc32_z(0, b->p + b->n, n + 4);
    b->n += n + 4;
    put32(b, crc);
}

static int channels_of(const form *f)
{
    static const int n[7] = {1, 0, 3, 1, 2, 0, 4};
    return n[f->colour];
}

static uint8_t guess(int filter, int left, int up, int corner)
{
    const int p = left + up - corner;
    const int a = abs(p - left), b = abs(p - up), c = abs(p - corner);
    switch (filter) {
    case 1:
        return (uint8_t)left;
    case 2:
        return (uint8_t)up;
    case 3:
        return (uint8_t)((left + up) / 2);
    case 4:
        return (uint8_t)(a <= b && a <= c ? left : b <= c ? up : corner);
    default:
        return 0;
    }
}

/* One picture (or pass) of the samples at x0 + k*dx, y0 + k*dy: each row with another filter.
 */
static void put_pass(const form *f, const uint16_t *v, uint32_t x0, uint32_t dx, uint32_t y0,
                     uint32_t dy, bytes *out)
{
    const int c = channels_of(f);
    const size_t w = f->w > x0 ? (f->w - x0 + dx - 1) / dx : 0;
    const size_t row = (w * (size_t)(c * f->bits) + 7) / 8,
                 step = (size_t)(c * f->bits + 7) / 8;
    uint8_t *line = calloc(2, row + 1), *above = line + row + 1;
    for (uint32_t y = y0; w && y < f->h; y += dy) {
        const int filter = (int)(y / dy % 5);
        memset(line, 0, row);
        for (size_t i = 0; i < w * (size_t)c; i++) {
            const size_t x = x0 + i / (size_t)c * dx;
            const unsigned s = v[((size_t)y * f->w + x) * (size_t)c + i % (size_t)c];
            if (f->bits == 16) {
                line[2 * i] = (uint8_t)(s >> 8);
                line[2 * i + 1] = (uint8_t)s;
            } else {
                const size_t at = i * (size_t)f->bits;
                line[at / 8] |= (uint8_t)(s << (8 - f->bits - (int)(at % 8)));
            }
        }
        out->p[out->n++] = (uint8_t)filter;
        for (size_t i = 0; i < row; i++)
            out->p[out->n++] =
                (uint8_t)(line[i] - guess(filter, i < step ? 0 : line[i - step], above[i],
                                          i < step ? 0 : above[i - step]));
        memcpy(above, line, row);
    }
    free(line);
}

static void put_data(const form *f, const bytes *filtered, bytes *out)
{
    const size_t cap = tgi_deflate_bound(filtered->n) + 64;
    uint8_t *packed = malloc(cap);
    void *memory = aligned_alloc(64, tgi_deflate_state_bytes());
    const size_t n =
        tgi_deflate(tgi_deflate_open(memory, 6), filtered->p, filtered->n, packed, cap);
    CHECK(n > 0);
    for (size_t at = 0; at < n; at += f->idat)
        put_chunk(out, "IDAT", packed + at, tgi_min(f->idat, n - at));
    free(memory);
    free(packed);
}

/* The file of these samples; free .p. */
static bytes make_png(const form *f, const uint16_t *v, const uint8_t *palette)
{
    static const uint8_t x0[7] = {0, 4, 0, 2, 0, 1, 0}, dx[7] = {8, 8, 4, 4, 2, 2, 1};
    static const uint8_t y0[7] = {0, 0, 4, 0, 2, 0, 1}, dy[7] = {8, 8, 8, 4, 4, 2, 2};
    const size_t most = ((size_t)f->w * 8 + 16) * f->h + 4096;
    bytes filtered = {malloc(most), 0},
          out = {malloc(2 * most + 64 * most / f->idat + f->note_bytes), 0};
    uint8_t head[13] = {0};
    for (int k = 0; k < 4; k++) {
        head[k] = (uint8_t)(f->w >> (24 - 8 * k));
        head[4 + k] = (uint8_t)(f->h >> (24 - 8 * k));
    }
    head[8] = (uint8_t)f->bits;
    head[9] = (uint8_t)f->colour;
    head[12] = (uint8_t)f->interlaced;
    memcpy(out.p, "\x89PNG\r\n\x1a\n", 8);
    out.n = 8;
    put_chunk(&out, "IHDR", head, 13);
    put_chunk(&out, "pHYs", "\x00\x00\x27\x10\x00\x00\x4e\x20\x01", 9); /* 10000, 20000 per m */
    if (f->colour == 3) {
        uint8_t rgb[768], alpha[256];
        for (int i = 0; i < f->n_palette; i++) {
            memcpy(rgb + 3 * i, palette + 4 * i, 3);
            alpha[i] = palette[4 * i + 3];
        }
        put_chunk(&out, "PLTE", rgb, (size_t)f->n_palette * 3);
        if (f->n_alpha)
            put_chunk(&out, "tRNS", alpha, (size_t)f->n_alpha);
    }
    if (f->note)
        put_chunk(&out, f->note, f->note + 4, f->note_bytes);
    for (int k = 0; f->interlaced && k < 7; k++)
        put_pass(f, v, x0[k], dx[k], y0[k], dy[k], &filtered);
    if (!f->interlaced)
        put_pass(f, v, 0, 1, 0, 1, &filtered);
    put_data(f, &filtered, &out);
    put_chunk(&out, "IEND", NULL, 0);
    free(filtered.p);
    return out;
}

/* ---- Reading ---- */

/* Samples of a box of the picture, interleaved; NULL with err when it failed. */
static uint16_t *read_box(tgi_source *s, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
                          tgi_err *err)
{
    const tgi_image_info *i = s->ops->info(s);
    const size_t c = (size_t)i->samples, n = (size_t)((y1 - y0) * (x1 - x0));
    const size_t size = tgi_dtype_size(i->dtype);
    uint8_t *planar = malloc(n * c * size + 1);
    uint16_t *mixed = malloc(n * c * 2 + 1);
    if (s->ops->read(s, 0, 0, 0, i->samples, y0, y1, x0, x1, planar, (size_t)(x1 - x0) * size,
                     n * size, err) != TG_OK) {
        free(planar);
        free(mixed);
        return NULL;
    }
    for (size_t k = 0; k < n * c; k++) {
        const size_t at = k % c * n + k / c;
        mixed[k] = planar[at];
        if (size == 2)
            memcpy(mixed + k, planar + 2 * at, 2);
    }
    CHECK_OK(s->ops->read(s, 0, 0, 0, i->samples, y0, y1, x0, x1, planar,
                          (size_t)(x1 - x0) * c * size, TGI_INTERLEAVED, err),
             *err);
    int same = 1; /* side by side they are the same samples */
    for (size_t k = 0; k < n * c; k++)
        same &= memcmp(mixed + k, planar + k * size, size) == 0;
    CHECK(same);
    free(planar);
    return mixed;
}

/* What the samples of a form mean: sample k of pixel p. */
static unsigned meaning(const form *f, const uint16_t *v, const uint8_t *palette, size_t p,
                        size_t k)
{
    if (f->colour == 3)
        return palette[4 * v[p] + k];
    const unsigned s = v[p * (size_t)channels_of(f) + k];
    return f->bits < 8 ? s * 255 / ((1u << f->bits) - 1) : s;
}

static int reads_back(const form *f, const uint16_t *v, const uint8_t *palette, uint64_t *seed)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    /* Everything is kept, or a few rows and the file is begun again. */
    const tgi_open_opts o = {.threads = 2, .decode_budget = tg_rand(seed) & 1 ? 0 : 600u << 10};
    CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
    if (!s)
        return 0;
    const tgi_image_info *i = s->ops->info(s);
    const size_t c = (size_t)(f->colour == 3 ? (f->n_alpha ? 4 : 3) : channels_of(f));
    CHECK_EQ(i->samples, c);
    CHECK_EQ(i->dtype, f->bits == 16 ? TG_DTYPE_U16 : TG_DTYPE_U8);
    CHECK_NEAR(i->meta.resolution[1], 100, 1e-9);
    CHECK_NEAR(i->meta.resolution[0], 200, 1e-9);
    int equal = i->width == f->w && i->height == f->h;
    for (int b = 0; b < 5 && equal; b++) {
        const int64_t y0 = b ? tg_rand_in(seed, 0, f->h - 1) : 0;
        const int64_t x0 = b ? tg_rand_in(seed, 0, f->w - 1) : 0;
        const int64_t y1 = b ? tg_rand_in(seed, y0 + 1, f->h) : f->h;
        const int64_t x1 = b ? tg_rand_in(seed, x0 + 1, f->w) : f->w;
        uint16_t *got = read_box(s, y0, y1, x0, x1, &err);
        CHECK_STR(err.text, "");
        for (size_t k = 0; got && k < (size_t)((y1 - y0) * (x1 - x0)) * c; k++) {
            const size_t w = (size_t)(x1 - x0), p = k / c;
            const size_t at = ((size_t)y0 + p / w) * f->w + (size_t)x0 + p % w;
            equal &= got[k] == meaning(f, v, palette, at, k % c);
        }
        free(got);
    }
    tgi_source_close(&s);
    return equal;
}

static uint16_t *draw_samples(const form *f, uint64_t *seed)
{
    const size_t n = (size_t)f->w * f->h * (size_t)channels_of(f);
    uint16_t *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const uint64_t sample = f->colour == 3 ? (uint64_t)tg_rand_in(seed, 0, f->n_palette - 1)
                                               : tg_rand(seed) & ((1u << f->bits) - 1);
        v[i] = (uint16_t)sample;
    }
    return v;
}

static void test_png_of_every_form_is_read_as_the_colours_it_means(void)
{
    static const int forms[][2] = {{0, 1}, {0, 2},  {0, 4},  {0, 8}, {0, 16},
                                   {2, 8}, {2, 16}, {3, 1},  {3, 2}, {3, 4},
                                   {3, 8}, {4, 8},  {4, 16}, {6, 8}, {6, 16}};
    uint64_t seed = 3;
    uint8_t palette[1024];
    int n = 0;
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)tg_rand(&seed);
    for (size_t k = 0; k < sizeof forms / sizeof forms[0]; k++)
        for (int way = 0; way < 8; way++) {
            form f = {.w = (uint32_t)tg_rand_in(&seed, 1, way > 5 ? 700 : 40),
                      .h = (uint32_t)tg_rand_in(&seed, 1, way > 5 ? 300 : 40),
                      .colour = forms[k][0],
                      .bits = forms[k][1],
                      .interlaced = way & 1,
                      .idat = way & 2 ? 100 : 1u << 20};
            f.n_palette = f.colour == 3 ? 1 << f.bits : 0;
            f.n_alpha = way & 4 ? f.n_palette / 2 : 0;
            for (int i = f.n_alpha; i < f.n_palette; i++)
                palette[4 * i + 3] = 255;
            if (f.interlaced && way > 5) /* has to fit the small budget as a whole */
                f.w = (uint32_t)tgi_min(f.w, 200), f.h = (uint32_t)tgi_min(f.h, 200);
            uint16_t *v = draw_samples(&f, &seed);
            bytes b = make_png(&f, v, palette);
            write_file(b.p, b.n);
            const int same = reads_back(&f, v, palette, &seed);
            CHECK(same);
            if (!same)
                fprintf(stderr, "  colour %d, %d bits, %ux%u, interlaced %d\n", f.colour,
                        f.bits, f.w, f.h, f.interlaced);
            n += same;
            free(b.p);
            free(v);
        }
    printf("%d files\n", n);
}

/* ---- Damage ---- */

/* Opened and read from end to end: whether that failed, always with a sentence. */
static int fails(const uint8_t *data, size_t n)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    write_file(data, n);
    const tg_status st = tgi_source_open(path, NULL, &s, &err);
    CHECK(st == TG_OK || st == TG_E_FORMAT || st == TG_E_UNSUPPORTED || st == TG_E_BUDGET);
    CHECK(st == TG_OK || err.text[0]);
    if (!s)
        return 1;
    const tgi_image_info *i = s->ops->info(s);
    uint16_t *all = NULL;
    if (i->width * i->height < 1 << 22)
        all = read_box(s, 0, i->height, 0, i->width, &err);
    const int failed = !all;
    CHECK(!failed || err.text[0]);
    free(all);
    tgi_source_close(&s);
    return failed;
}

/* Cut anywhere before its last bytes it is damage; of the bent, `least` of 300 are found. */
static void cut_and_bend(bytes b, size_t tail, int least)
{
    uint64_t seed = 5;
    int bent = 0;
    CHECK(!fails(b.p, b.n));
    for (int k = 0; k < 100; k++)
        CHECK(fails(b.p, (size_t)tg_rand_in(&seed, 20, (int64_t)(b.n - tail))));
    for (int k = 0; k < 300; k++) {
        const size_t at = (size_t)tg_rand_in(&seed, 0, (int64_t)(b.n - tail));
        const uint8_t was = b.p[at];
        b.p[at] ^= (uint8_t)tg_rand_in(&seed, 1, 255);
        bent += fails(b.p, b.n);
        b.p[at] = was;
    }
    printf("%d of 300 bent files are found\n", bent);
    CHECK(bent >= least);
}

/* Another checksum of the pixels, under a right one of the last chunk. */
static void bend_adler(bytes *b)
{
    size_t at = 8, last = 0;
    while (at + 12 < b->n) {
        last = at;
        at += 12 + ((size_t)b->p[at] << 24 | (size_t)b->p[at + 1] << 16 |
                    (size_t)b->p[at + 2] << 8 | b->p[at + 3]);
    }
    const size_t n = b->n - 12 - last - 12; /* IEND is behind it */
    CHECK(memcmp(b->p + last + 4, "IDAT", 4) == 0);
    b->p[last + 8 + n - 1] ^= 1;
    bytes crc = {b->p + last + 8 + n, 0};
    put32(&crc, (uint32_t)crc32_z(0, b->p + last + 4, n + 4));
}

static void test_a_cut_or_bent_png_is_damage(void)
{
    uint64_t seed = 6;
    uint8_t palette[1024] = {0};
    for (int k = 0; k < 2; k++) {
        form f = {
            .w = 60, .h = 50, .colour = k ? 3 : 2, .bits = 8, .interlaced = k, .idat = 500};
        f.n_palette = k ? 256 : 0;
        uint16_t *v = draw_samples(&f, &seed);
        bytes b = make_png(&f, v, palette);
        cut_and_bend(b, 40, 280); /* bytes of resolution mean something else, no more */
        free(b.p);
        free(v);
    }
}

/* The checksum of the data, which is the end of a PNG but for 16 bytes, is met before a row of
 * it counts: rows that end above it, in one chunk or in many, kept or not. */
static void test_no_row_of_a_png_counts_before_its_checksum(void)
{
    uint64_t seed = 9;
    for (int way = 0; way < 8; way++) {
        const form f = {
            .w = 700, .h = 300, .colour = 2, .bits = 8, .idat = way & 1 ? 100000 : 1u << 24};
        const tgi_open_opts o = {.threads = 1, .decode_budget = way & 2 ? 600u << 10 : 0};
        tgi_err err = {0};
        tgi_source *s = NULL;
        uint16_t *v = draw_samples(&f, &seed);
        bytes b = make_png(&f, v, NULL);
        if (way & 4) /* of the chunk; else of deflate, and the chunk's is right */
            b.p[b.n - 13] ^= 1;
        else
            bend_adler(&b);
        write_file(b.p, b.n);
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        CHECK_EQ(s->ops->stream_rows(s) >= f.h, !(way & 2));
        for (int64_t y = 0; y < f.h; y += 37) {
            const int64_t y1 = tgi_min(f.h, y + 37);
            tgi_err why = {0};
            uint16_t *got = read_box(s, y, y1, 0, f.w, &why);
            CHECK(!got && strstr(why.text, "row 299: ") == why.text);
            free(got);
        }
        tgi_source_close(&s);
        free(b.p);
        free(v);
    }
}

/* Opened and read from end to end; its samples or NULL with *st and err. */
static uint16_t *read_png(const form *f, const uint16_t *v, const uint8_t *palette,
                          tg_status *st, tgi_err *err)
{
    tgi_source *s = NULL;
    uint16_t *all = NULL;
    bytes b = make_png(f, v, palette);
    write_file(b.p, b.n);
    free(b.p);
    *st = tgi_source_open(path, NULL, &s, err);
    if (*st == TG_OK) {
        all = read_box(s, 0, f->h, 0, f->w, err);
        *st = all ? TG_OK : TG_E_FORMAT;
    }
    tgi_source_close(&s);
    return all;
}

static void test_png_chunks_of_others_are_passed_over_and_critical_ones_refused(void)
{
    static const struct {
        const char *chunk;
        size_t n;
        const char *refusal; /* or NULL */
    } notes[] = {{"tEXtComment\0nobody reads this", 25, NULL},
                 {"prVtanything", 8, NULL},
                 {"gAMA\0\0\xb1\x8f", 4, NULL},
                 {"gAMA\0\0\0\0\0\0\0\0\0", 9, NULL}, /* of a wrong size */
                 {"sRGB\0", 1, NULL},
                 {"iCCPname\0\0no deflate data", 22, NULL},
                 {"eXIfno TIFF", 7, NULL},
                 {"pHYs\0", 1, NULL},
                 {"tRNS\0\0\0\0\0\0", 6, NULL}, /* a transparent colour: not applied */
                 {"PLTE\1\2\3", 3, NULL},       /* colours for those who have few */
                 {"PLTE\1\2", 2, NULL},
                 {"CrITanything", 8, "CrIT"},
                 {"IHDR\0", 1, "IHDR"}};
    const form plain = {.w = 20, .h = 10, .colour = 2, .bits = 8, .idat = 1000};
    uint64_t seed = 4;
    uint16_t *v = draw_samples(&plain, &seed);
    for (size_t k = 0; k < sizeof notes / sizeof notes[0]; k++) {
        form f = plain;
        tgi_err err = {0};
        tg_status st;
        f.note = notes[k].chunk;
        f.note_bytes = notes[k].n;
        uint16_t *got = read_png(&f, v, NULL, &st, &err);
        CHECK(!notes[k].refusal || strstr(err.text, notes[k].refusal));
        CHECK_STATUS(st, notes[k].refusal ? TG_E_FORMAT : TG_OK, err);
        CHECK(!got || memcmp(got, v, 600 * sizeof *v) == 0);
        free(got);
    }
    free(v);
}

static void test_an_index_beyond_the_palette_is_damage(void)
{
    static const uint8_t palette[1024] = {0};
    for (int bits = 1; bits <= 8; bits *= 2)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            form f = {.w = 20, .h = 10, .colour = 3, .bits = bits, .idat = 1000};
            uint16_t v[200] = {0};
            tgi_err err = {0};
            tg_status st;
            f.interlaced = interlaced;
            f.n_palette = bits > 1 ? (1 << bits) - 1 : 1;
            free(read_png(&f, v, palette, &st, &err));
            CHECK_OK(st, err);
            v[137] = (uint16_t)f.n_palette;
            CHECK(!read_png(&f, v, palette, &st, &err));
            CHECK_EQ(st, TG_E_FORMAT);
        }
}

static void test_a_png_says_how_it_is_turned(void)
{
    char note[4 + TGI_EXIF_BYTES] = "eXIf";
    const form f = {.w = 4,
                    .h = 4,
                    .colour = 0,
                    .bits = 8,
                    .idat = 1000,
                    .note = note,
                    .note_bytes = TGI_EXIF_BYTES};
    const uint16_t v[16] = {0};
    tgi_exif_make(6, (uint8_t *)note + 4);
    tgi_err err = {0};
    tgi_source *s = NULL;
    bytes b = make_png(&f, v, NULL);
    write_file(b.p, b.n);
    CHECK_OK(tgi_source_open(path, NULL, &s, &err), err);
    CHECK_EQ(s->ops->info(s)->meta.orientation, 6);
    tgi_source_close(&s);
    free(b.p);
}

/* Two sources of one file, a row of each in turn; and nothing is allocated for rows. */
static void test_two_sources_of_a_png_are_read_in_turns(void)
{
    const form f = {.w = 700, .h = 300, .colour = 2, .bits = 8, .idat = 3000};
    const tgi_open_opts o = {.threads = 1, .spare = 1};
    uint64_t seed = 11;
    tgi_err err = {0};
    tgi_source *s[2] = {NULL};
    uint16_t *v = draw_samples(&f, &seed);
    bytes b = make_png(&f, v, NULL);
    write_file(b.p, b.n);
    for (int k = 0; k < 2; k++)
        CHECK_OK(tgi_source_open(path, &o, &s[k], &err), err);
    tgi_mem_stats before = {0}, after = {0};
    tgi_mem_get_stats(&before);
    for (int64_t y = 0; y < f.h; y++)
        for (int k = 0; k < 2; k++) {
            const int64_t at = k ? (y * 7) % 40 : y; /* one goes back, too */
            uint16_t *got = read_box(s[k], at, at + 1, 0, f.w, &err);
            CHECK(got && memcmp(got, v + (size_t)at * 2100, 2100 * sizeof *v) == 0);
            free(got);
        }
    tgi_mem_get_stats(&after);
    CHECK_EQ(after.requests, before.requests);
    for (int k = 0; k < 2; k++)
        tgi_source_close(&s[k]);
    free(b.p);
    free(v);
}

/* Headers that claim more than there is cost nothing. */
static void test_png_headers_that_claim_too_much_are_refused_before_memory_is_asked_for(void)
{
    static const struct {
        uint32_t w, h;
        int interlaced;
        size_t budget;
        tg_status want;
    } claims[] = {{2000000000, 2000000000, 0, 0, TG_E_FORMAT},
                  {60000, 60000, 1, 0, TG_E_FORMAT},
                  {1u << 31, 1, 0, 0, TG_E_FORMAT},
                  {0, 5, 0, 0, TG_E_FORMAT}};
    const form f = {.w = 4, .h = 4, .colour = 2, .bits = 8, .idat = 1000};
    uint16_t v[48] = {0};
    bytes b = make_png(&f, v, NULL);
    for (size_t k = 0; k < sizeof claims / sizeof claims[0]; k++) {
        tgi_mem_stats before, after;
        tgi_err err = {0};
        tgi_source *s = NULL;
        bytes head = {b.p + 16, 0};
        put32(&head, claims[k].w);
        put32(&head, claims[k].h);
        b.p[28] = (uint8_t)claims[k].interlaced;
        head.p = b.p + 29;
        head.n = 0;
        put32(&head, (uint32_t)crc32_z(0, b.p + 12, 17));
        write_file(b.p, b.n);
        tgi_mem_get_stats(&before);
        CHECK_STATUS(tgi_source_open(path, NULL, &s, &err), claims[k].want, err);
        tgi_mem_get_stats(&after);
        CHECK(after.peak_bytes - before.live_bytes < 64u << 20);
    }
    free(b.p);
}

static void test_an_interlaced_png_over_budget_is_refused_by_name(void)
{
    const form f = {.w = 300, .h = 300, .colour = 2, .bits = 8, .interlaced = 1, .idat = 9999};
    const tgi_open_opts o = {.threads = 1, .decode_budget = 200u << 10};
    uint64_t seed = 8;
    tgi_err err = {0};
    tgi_source *s = NULL;
    uint16_t *v = draw_samples(&f, &seed);
    bytes b = make_png(&f, v, NULL);
    write_file(b.p, b.n);
    CHECK_EQ(tgi_source_open(path, &o, &s, &err), TG_E_BUDGET);
    CHECK(strstr(err.text, "an interlaced PNG of 300 x 300") != NULL);
    free(b.p);
    free(v);
}

/* The least that a refusal names is enough, and the least. */
static void test_the_memory_that_a_png_is_refused_for_is_what_it_takes(void)
{
    static const uint32_t width[] = {300, 5000, 40000};
    uint64_t seed = 8;
    for (int k = 0; k < 12; k++) {
        form f = {.w = width[k / 4], .h = 9, .bits = k / 2 % 2 ? 16 : 8, .idat = 9999};
        f.interlaced = k % 2;
        f.colour = f.bits == 8 ? 2 : 6;
        uint16_t *v = draw_samples(&f, &seed);
        bytes b = make_png(&f, v, NULL);
        tgi_open_opts o = {.threads = 1, .decode_budget = 64u << 10};
        write_file(b.p, b.n);
        tgi_err err = {0}, less = {0};
        tgi_source *s = NULL;
        CHECK_EQ(tgi_source_open(path, &o, &s, &err), TG_E_BUDGET);
        CHECK_STR(err.asked_by, TGI_DECODER_ASKS);
        o.decode_budget = (size_t)err.tried_bytes - 1;
        CHECK_EQ(tgi_source_open(path, &o, &s, &less), TG_E_BUDGET);
        CHECK_EQ(less.tried_bytes, err.tried_bytes);
        o.decode_budget++;
        CHECK_EQ(tgi_source_open(path, &o, &s, NULL), TG_OK);
        CHECK(s && s->ops->codec_bytes(s) <=
                       o.decode_budget + (16u << 10)); /* the picture beside it */
        tgi_source_close(&s);
        free(b.p);
        free(v);
    }
}

/* A chunk with a profile of so many bytes; free it. */
static char *make_profile(size_t length, size_t *n)
{
    static const uint8_t white[12] = {0, 0, 0xf6, 0xd6, 0, 1, 0, 0, 0, 0, 0xd3, 0x2d};
    uint8_t *p = calloc(1, length);
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(length >> (24 - 8 * k));
    memcpy(p + 8, "\2\x40\0\0mntrRGB XYZ ", 16);
    memcpy(p + 36, "acsp", 4);
    memcpy(p + 68, white, 12);
    uLongf packed = compressBound(length);
    char *chunk = malloc(7 + packed);
    memcpy(chunk, "iCCPp\0", 7);
    compress2((Bytef *)chunk + 7, &packed, p, length, 1);
    *n = packed + 3;
    free(p);
    return chunk;
}

/* A profile is held in the budget, and left out where it takes more than the most. Damage behind
 * it is damage, not a lack of memory. */
static void test_a_profile_in_a_png_is_held_within_the_budget(void)
{
    static const struct {
        size_t profile, budget;
        tg_status want;
        int held;
    } turns[] = {
        {100u << 10, 64u << 10, TG_E_BUDGET, 0}, {100u << 10, 4u << 20, TG_OK, 1},
        {17u << 20, 64u << 20, TG_OK, 0},        {17u << 20, 4u << 20, TG_OK, 0},
        {100u << 10, 64u << 10, TG_E_FORMAT, 0}, {17u << 20, 4u << 20, TG_E_FORMAT, 0}};
    uint64_t seed = 8;
    form f = {.w = 30, .h = 20, .colour = 2, .bits = 8, .idat = 9999};
    uint16_t *v = draw_samples(&f, &seed);
    for (size_t k = 0; k < sizeof turns / sizeof turns[0]; k++) {
        char *chunk = make_profile(turns[k].profile, &f.note_bytes);
        f.note = chunk;
        bytes b = make_png(&f, v, NULL);
        if (turns[k].want == TG_E_FORMAT) /* the checksum of the profile's chunk is wrong */
            b.p[8 + 25 + 21 + f.note_bytes + 8] ^= 1;
        const tgi_open_opts o = {.threads = 1, .decode_budget = turns[k].budget};
        tgi_err err = {0};
        tgi_source *s = NULL;
        write_file(b.p, b.n);
        CHECK_STATUS(tgi_source_open(path, &o, &s, &err), turns[k].want, err);
        if (s) {
            const tgi_image_info *i = s->ops->info(s);
            CHECK_EQ(i->meta.icc_bytes, turns[k].held ? turns[k].profile : 0);
            CHECK_STR(i->note, turns[k].held ? ""
                                             : "its colour profile takes more than 16.00 MiB "
                                               "and is left out");
        }
        tgi_source_close(&s);
        free(b.p);
        free(chunk);
    }
    free(v);
}

/* Exif of any length costs nothing; where its first part does not say it, that is told. */
static void test_exif_of_any_length_says_how_a_png_is_turned(void)
{
    uint64_t seed = 8;
    form f = {.w = 30, .h = 20, .colour = 0, .bits = 8, .idat = 9999};
    uint16_t *v = draw_samples(&f, &seed);
    static const size_t length[] = {100u << 10, 9u << 20, 17u << 20};
    for (int k = 0; k < 6; k++) {
        const int far = k % 2;
        f.note_bytes = length[k / 2];
        char *note = calloc(1, f.note_bytes + 4);
        memcpy(note, "eXIf", 4);
        tgi_exif_make(6, (uint8_t *)note + 4);
        note[4 + 5] = (char)far; /* the directory is 64 KiB on */
        f.note = note;
        bytes b = make_png(&f, v, NULL);
        const tgi_open_opts o = {.threads = 1, .decode_budget = 128u << 10};
        tgi_err err = {0};
        tgi_source *s = NULL;
        write_file(b.p, b.n);
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        if (s) {
            const tgi_image_info *i = s->ops->info(s);
            CHECK_EQ(i->meta.orientation, far ? 0 : 6);
            CHECK_EQ(strstr(i->note, "do not say how the picture is turned") != NULL, far);
        }
        tgi_source_close(&s);
        free(b.p);
        free(note);
    }
    free(v);
}

/* What belongs before the pixels and stands behind them counts for nothing, and is told of. */
static void test_chunks_behind_the_pixels_of_a_png_are_told_of(void)
{
    static const struct {
        const char *chunk;
        size_t n;
        int told;
    } behind[] = {{"tRNS\0\1\0\2\0\3", 6, 1},
                  {"pHYs\0\0\0\1\0\0\0\1\1", 9, 1},
                  {"iCCPp\0\0", 3, 1},
                  {"eXIfMM\0*", 4, 1},
                  {"tRNS", 0, 1},
                  {"tEXta\0b", 3, 0}};
    uint64_t seed = 8;
    for (size_t k = 0; k < 2 * sizeof behind / sizeof behind[0]; k++) {
        form f = {.w = 30, .h = 20, .colour = 2, .bits = 8, .idat = 9999};
        f.interlaced = k % 2;
        uint16_t *v = draw_samples(&f, &seed);
        atomic_int surplus = 0;
        const tgi_open_opts o = {.threads = 1, .surplus = &surplus};
        tgi_err err = {0};
        tgi_source *s = NULL;
        bytes b = make_png(&f, v, NULL);
        b.n -= 12;
        put_chunk(&b, behind[k / 2].chunk, behind[k / 2].chunk + 4, behind[k / 2].n);
        put_chunk(&b, "IEND", NULL, 0);
        write_file(b.p, b.n);
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        free(read_box(s, 3, 5, 0, 30, &err));
        CHECK_STR(err.text, "");
        CHECK_EQ(atomic_load(&surplus), behind[k / 2].told ? TGI_SURPLUS_BEHIND : 0);
        tgi_source_close(&s);
        free(b.p);
        free(v);
    }
}

/* ---- JPEG ---- */

#ifdef TG_TEST_JPEG
static bytes make_jpeg(uint32_t w, uint32_t h, int samples, int progressive)
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
    if (progressive)
        jpeg_simple_progression(&z);
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
    bytes b = {malloc(n), n};
    memcpy(b.p, out, n);
    free(out);
    return b;
}

static uint8_t *decode_jpeg(const bytes *b)
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
        bytes b = make_jpeg(w, h, samples, progressive);
        uint8_t *want = decode_jpeg(&b);
        const tgi_open_opts o = {.threads = 1, .decode_budget = k < 6 ? 0 : 1u << 20};
        tgi_err err = {0};
        tgi_source *s = NULL;
        write_file(b.p, b.n);
        CHECK_OK(tgi_source_open(path, &o, &s, &err), err);
        if (samples < 4)
            CHECK_NEAR(s->ops->info(s)->meta.resolution[0], 200, 1e-9);
        const tgi_mem_stats none = {0};
        tgi_mem_stats before = none, after = none;
        tgi_mem_get_stats(&before);
        for (int r = 0; r < 6; r++) {
            const int64_t y0 = r ? tg_rand_in(&seed, 0, h - 1) : 0, y1 = r ? y0 + 1 : h;
            uint16_t *got = read_box(s, y0, y1, 0, w, &err);
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
        bytes b = make_jpeg(90, 70, 3, progressive);
        cut_and_bend(b, 20, 20);
        free(b.p);
    }
}

/* No code is all ones. Where thousands of bytes follow, libjpeg-turbo takes it for a zero. */
static void test_a_code_that_is_none_is_damage_far_from_the_end_of_a_jpeg(void)
{
    for (int samples = 1; samples <= 3; samples += 2) {
        bytes b = make_jpeg(400, 300, samples, 0);
        CHECK(b.n > 20000 && !fails(b.p, b.n));
        for (size_t i = 0; i < 12; i++)
            b.p[b.n / 4 + i] = i % 2 ? 0 : 0xff;
        CHECK(fails(b.p, b.n));
        free(b.p);
    }
}

static void test_a_progressive_jpeg_over_budget_is_refused_by_name(void)
{
    const tgi_open_opts o = {.threads = 1, .decode_budget = 500u << 10};
    tgi_err err = {0};
    tgi_source *s = NULL;
    bytes b = make_jpeg(500, 500, 3, 1);
    write_file(b.p, b.n);
    CHECK_EQ(tgi_source_open(path, &o, &s, &err), TG_E_BUDGET);
    CHECK(strstr(err.text, "a progressive JPEG of 500 x 500") != NULL);
    free(b.p);
}
#endif

int main(void)
{
    snprintf(path, sizeof path, "test_picture.%d.img", (int)getpid());
    RUN(test_png_of_every_form_is_read_as_the_colours_it_means);
    RUN(test_a_cut_or_bent_png_is_damage);
    RUN(test_no_row_of_a_png_counts_before_its_checksum);
    RUN(test_png_chunks_of_others_are_passed_over_and_critical_ones_refused);
    RUN(test_an_index_beyond_the_palette_is_damage);
    RUN(test_a_png_says_how_it_is_turned);
    RUN(test_two_sources_of_a_png_are_read_in_turns);
    RUN(test_png_headers_that_claim_too_much_are_refused_before_memory_is_asked_for);
    RUN(test_an_interlaced_png_over_budget_is_refused_by_name);
    RUN(test_the_memory_that_a_png_is_refused_for_is_what_it_takes);
    RUN(test_a_profile_in_a_png_is_held_within_the_budget);
    RUN(test_exif_of_any_length_says_how_a_png_is_turned);
    RUN(test_chunks_behind_the_pixels_of_a_png_are_told_of);
#ifdef TG_TEST_JPEG
    RUN(test_jpeg_files_are_read_in_any_order_as_libjpeg_decodes_them);
    RUN(test_a_cut_jpeg_is_damage_and_a_bent_one_ends_in_a_status);
    RUN(test_a_code_that_is_none_is_damage_far_from_the_end_of_a_jpeg);
    RUN(test_a_progressive_jpeg_over_budget_is_refused_by_name);
#endif
    unlink(path);
    return TEST_END();
}
