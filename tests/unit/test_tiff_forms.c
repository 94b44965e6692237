/* The forms that pixels take in TIFF files: bit depths, orders of bits, JPEG, LZMA, WebP.
 * libtiff writes (and for JPEG reads) what is compared; what it would not write is put together
 * here. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/image.h"
#include "tests/tg_test.h"

#include <math.h>
#include <pthread.h>
#include <tiffio.h>

#include <jpeglib.h>

static char path[256];

/* ---- Helpers ---- */

typedef struct shape {
    uint32_t w, h, bw, bh; /* block */
    int samples, tiled;
} shape;

static TIFF *begin(const char *mode, const shape *a, int bits, int format, int compression,
                   int photometric)
{
    TIFF *t = TIFFOpen(path, mode);
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, a->w);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, a->h);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, format);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, a->samples);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, 1);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, photometric);
    TIFFSetField(t, TIFFTAG_COMPRESSION, compression);
    if (a->tiled) {
        TIFFSetField(t, TIFFTAG_TILEWIDTH, a->bw);
        TIFFSetField(t, TIFFTAG_TILELENGTH, a->bh);
    } else {
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, a->bh);
    }
    return t;
}

static uint32_t rows_of(const shape *a, uint32_t y)
{
    return a->tiled || y + a->bh <= a->h ? a->bh : a->h - y;
}

static tgi_source *opened(size_t budget, int threads, tgi_err *err)
{
    const tgi_open_opts o = {.threads = threads, .decode_budget = budget};
    tgi_source *s = NULL;
    CHECK_OK(tgi_source_open(path, &o, &s, err), *err);
    return s;
}

/* All samples, planar, in bands of `rows` rows; NULL when a read failed (err says why). */
static uint8_t *read_all(tgi_source *s, int64_t rows, tgi_err *err)
{
    const tgi_image_info *i = s->ops->info(s);
    const size_t row = (size_t)i->width * tgi_dtype_size(i->dtype),
                 plane = row * (size_t)i->height;
    uint8_t *all = malloc(plane * (size_t)i->samples);
    for (int64_t y = 0; y < i->height; y += rows)
        if (s->ops->read(s, 0, 0, 0, i->samples, y, tgi_min(i->height, y + rows), 0, i->width,
                         all + (size_t)y * row, row, plane, err) != TG_OK) {
            free(all);
            return NULL;
        }
    return all;
}

/* ---- Bit depths ---- */

static void pack(uint8_t *dst, size_t i, unsigned bits, uint32_t v)
{
    for (unsigned b = 0; b < bits; b++) {
        const size_t at = i * bits + b;
        if (v >> (bits - 1 - b) & 1)
            dst[at / 8] |= (uint8_t)(0x80 >> at % 8);
    }
}

/* Rows of one block from `values` (interleaved); whole bytes in native order, as libtiff wants.
 */
static size_t pack_block(const shape *a, int bits, const uint32_t *values, uint32_t x0,
                         uint32_t y0, uint8_t *block)
{
    const size_t s = (size_t)a->samples;
    const size_t row = ((size_t)a->bw * s * (size_t)bits + 7) / 8, rows = rows_of(a, y0);
    memset(block, 0, row * rows);
    for (size_t y = 0; y < rows && y0 + y < a->h; y++)
        for (size_t x = 0; x < a->bw && x0 + x < a->w; x++)
            for (size_t k = 0; k < s; k++) {
                const uint32_t v = values[((y0 + y) * a->w + x0 + x) * s + k];
                if (bits % 8 == 0)
                    memcpy(block + y * row + (x * s + k) * (size_t)bits / 8, &v,
                           (size_t)bits / 8);
                else
                    pack(block + y * row, x * s + k, (unsigned)bits, v);
            }
    return row * rows;
}

static void write_bits(const shape *a, const char *mode, int bits, int format, int compression,
                       int fill, const uint32_t *values)
{
    TIFF *t = begin(mode, a, bits, format, compression, PHOTOMETRIC_MINISBLACK);
    uint8_t *block = malloc((size_t)a->bw * a->bh * (size_t)a->samples * 4 + 64);
    uint32_t n = 0;
    TIFFSetField(t, TIFFTAG_FILLORDER, fill);
    for (uint32_t y = 0; y < a->h; y += a->bh)
        for (uint32_t x = 0; x < a->w; x += a->bw, n++) {
            const tmsize_t bytes = (tmsize_t)pack_block(a, bits, values, x, y, block);
            CHECK(a->tiled ? TIFFWriteEncodedTile(t, n, block, bytes) == bytes
                           : TIFFWriteEncodedStrip(t, n, block, bytes) == bytes);
        }
    TIFFClose(t);
    free(block);
}

static int64_t sample_at(const uint8_t *p, tg_dtype type, size_t i)
{
    switch (type) {
    case TG_DTYPE_I8:
        return ((const int8_t *)p)[i];
    case TG_DTYPE_U16:
        return ((const uint16_t *)p)[i];
    case TG_DTYPE_I16:
        return ((const int16_t *)p)[i];
    case TG_DTYPE_U32:
        return ((const uint32_t *)p)[i];
    case TG_DTYPE_I32:
        return ((const int32_t *)p)[i];
    default:
        return p[i];
    }
}

static int same_values(const shape *a, int bits, int format, const uint32_t *values,
                       size_t budget, int *streamed)
{
    tgi_err err = {0};
    tgi_source *s = opened(budget, 1, &err);
    if (!s)
        return 0;
    const tgi_image_info *i = s->ops->info(s);
    const size_t n = (size_t)a->w * a->h, c = (size_t)a->samples;
    *streamed += s->ops->stream_rows(s) > 0;
    uint8_t *all = read_all(s, 7, &err);
    CHECK_OK(err.text[0] ? TG_E_FORMAT : TG_OK, err);
    int equal = all != NULL;
    for (size_t p = 0; equal && p < n * c; p++) {
        const uint32_t v = values[p], top = UINT32_C(1) << (bits - 1);
        const int64_t want = format == 2 && (v & top) ? (int64_t)v - 2 * (int64_t)top : v;
        equal = sample_at(all, i->dtype, p % c * n + p / c) == want;
    }
    free(all);
    tgi_source_close(&s);
    return equal;
}

static tg_dtype type_of(int bits, int format)
{
    static const tg_dtype types[2][3] = {{TG_DTYPE_U8, TG_DTYPE_U16, TG_DTYPE_U32},
                                         {TG_DTYPE_I8, TG_DTYPE_I16, TG_DTYPE_I32}};
    return bits == 1 ? TG_DTYPE_BOOL : types[format == 2][bits <= 8 ? 0 : bits <= 16 ? 1 : 2];
}

static void test_samples_of_any_depth_arrive_as_they_were_stored(void)
{
    static const int codecs[] = {1, 5, 8, 32773, 34925};
    static const char *const modes[] = {"wl", "wb", "wl8", "wb8"};
    uint64_t seed = 31;
    int n = 0, streamed = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    for (int bits = 1; bits < 32; bits++)
        for (int k = 0; k < 10; k++) {
            const int large = k >= 8; /* a strip that is streamed when the budget is small */
            shape a = {.w = (uint32_t)tg_rand_in(&seed, 1, large ? 900 : 70),
                       .h = (uint32_t)tg_rand_in(&seed, 1, large ? 400 : 50),
                       .samples = (int)tg_rand_in(&seed, 1, 3),
                       .tiled = k % 2 == 0 && !large};
            const int format = bits > 1 && tg_rand(&seed) % 3 == 0 ? 2 : 1;
            const int codec = codecs[k % 5], fill = 1 + (int)(tg_rand(&seed) & 1);
            a.bw = a.tiled ? 32 : a.w;
            a.bh = a.tiled ? 16 : large ? a.h : (uint32_t)tg_rand_in(&seed, 1, a.h);
            const size_t values = (size_t)a.w * a.h * (size_t)a.samples;
            uint32_t *v = malloc(values * sizeof *v);
            for (size_t i = 0; i < values; i++)
                v[i] = (uint32_t)tg_rand(&seed) & ((UINT32_C(1) << bits) - 1);
            write_bits(&a, modes[tg_rand(&seed) % 4], bits, format, codec, fill, v);
            tgi_err err = {0};
            tgi_source *s = opened(0, 1, &err);
            CHECK_EQ(s->ops->info(s)->dtype, type_of(bits, format));
            tgi_source_close(&s);
            const size_t budget = codec == 34925 ? 12u << 20 : 256u << 10;
            const int same = same_values(&a, bits, format, v, large ? budget : 0, &streamed);
            CHECK(same);
            if (!same)
                fprintf(stderr, "  %d bits, format %d, codec %d, fill %d, %ux%ux%d\n", bits,
                        format, codec, fill, a.w, a.h, a.samples);
            n += same;
            free(v);
        }
    printf("%d files, %d streamed\n", n, streamed);
    CHECK(streamed > 10);
}

/* What 24 bits stand for: a sign, 7 of exponent, 16 of fraction. */
static double value_of_24(uint32_t v)
{
    const int exponent = (int)(v >> 16 & 127);
    const double fraction = v & 0xffff;
    const double size = exponent == 127 ? (fraction > 0 ? NAN : INFINITY)
                        : exponent      ? ldexp(65536 + fraction, exponent - 63 - 16)
                                        : ldexp(fraction, -62 - 16);
    return v >> 23 ? -size : size;
}

static void test_floats_of_24_bits_arrive_with_their_values(void)
{
    static const uint32_t ends[] = {0,        1,        0xffff,   0x10000,
                                    0x3f0000, 0x7effff, 0x7f0000, 0x7f0001};
    const shape a = {.w = 64, .h = 48, .bw = 64, .bh = 20, .samples = 1};
    uint64_t seed = 32;
    uint32_t v[64 * 48];
    for (size_t i = 0; i < 64 * 48; i++)
        v[i] = i < 16 ? ends[i % 8] | (uint32_t)(i / 8) << 23 : (uint32_t)tg_rand(&seed) >> 8;
    for (int big = 0; big < 2; big++) {
        tgi_err err = {0};
        write_bits(&a, big ? "wb" : "wl", 24, 3, big ? 8 : 1, 1, v);
        tgi_source *s = opened(0, 1, &err);
        CHECK_EQ(s->ops->info(s)->dtype, TG_DTYPE_F32);
        float *got = (float *)(void *)read_all(s, 7, &err);
        CHECK(got != NULL);
        for (size_t i = 0; got && i < 64 * 48; i++) {
            const double want = value_of_24(v[i]);
            CHECK(isnan(want) ? isnan(got[i])
                              : got[i] == want && !signbit(got[i]) == !(v[i] >> 23));
        }
        free(got);
        tgi_source_close(&s);
    }
}

static void test_bits_of_photographs_and_masks_are_not_interpreted(void)
{
    static const int photometrics[] = {PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_PALETTE,
                                       PHOTOMETRIC_MASK};
    const shape a = {16, 2, 16, 2, 1, 0};
    uint16_t map[256] = {0};
    for (int i = 0; i < 3; i++)
        for (int bits = 1; bits <= 8; bits *= 2) {
            TIFF *t = begin("wl", &a, bits, 1, 1, photometrics[i]);
            uint8_t data[32];
            tgi_err err = {0};
            for (size_t k = 0; k < sizeof data; k++)
                data[k] = (uint8_t)(k * 37 + 5);
            if (photometrics[i] == PHOTOMETRIC_PALETTE)
                TIFFSetField(t, TIFFTAG_COLORMAP, map, map, map);
            CHECK(TIFFWriteEncodedStrip(t, 0, data, 4 * bits) == 4 * bits);
            TIFFClose(t);
            tgi_source *s = opened(0, 1, &err);
            CHECK_EQ(s->ops->info(s)->samples, 1);
            uint8_t *all = read_all(s, 2, &err);
            for (size_t p = 0; all && p < 32; p++) {
                const unsigned at = (unsigned)p * (unsigned)bits, shift = 8u - (unsigned)bits;
                CHECK_EQ(all[p], (data[at / 8] >> (shift - at % 8)) & ((1u << bits) - 1));
            }
            free(all);
            tgi_source_close(&s);
        }
}

/* ---- LZMA and WebP, without loss ---- */

/* Odd numbers: WebP keeps no colour where the fourth sample is zero. */
static uint8_t *smooth(const shape *a, uint64_t *seed)
{
    const size_t n = (size_t)a->w * a->h * (size_t)a->samples;
    uint8_t *p = malloc(n);
    for (size_t i = 0; i < n; i++) {
        const size_t x = i / (size_t)a->samples % a->w, y = i / (size_t)a->samples / a->w;
        p[i] = (uint8_t)(x * 2 + y + i % (size_t)a->samples * 60 + tg_rand(seed) % 9) | 1;
    }
    return p;
}

static void cut_block(const shape *a, const uint8_t *pixels, uint32_t x0, uint32_t y0,
                      uint8_t *block)
{
    const size_t s = (size_t)a->samples;
    memset(block, 0, (size_t)a->bw * a->bh * s);
    for (uint32_t y = y0; y < tgi_min(a->h, y0 + a->bh); y++)
        memcpy(block + (size_t)(y - y0) * a->bw * s, pixels + ((size_t)y * a->w + x0) * s,
               (size_t)tgi_min(a->bw, a->w - x0) * s);
}

static void write_blocks(TIFF *t, const shape *a, const uint8_t *pixels)
{
    uint8_t *block = malloc((size_t)a->bw * a->bh * (size_t)a->samples);
    uint32_t n = 0;
    for (uint32_t y = 0; y < a->h; y += a->bh)
        for (uint32_t x = 0; x < a->w; x += a->bw, n++) {
            const tmsize_t bytes = (tmsize_t)(rows_of(a, y) * a->bw * (uint32_t)a->samples);
            cut_block(a, pixels, x, y, block);
            CHECK(a->tiled ? TIFFWriteEncodedTile(t, n, block, bytes) == bytes
                           : TIFFWriteEncodedStrip(t, n, block, bytes) == bytes);
        }
    free(block);
}

static int equals_mixed(const shape *a, const uint8_t *planar, const uint8_t *mixed)
{
    const size_t n = (size_t)a->w * a->h, c = (size_t)a->samples;
    for (size_t i = 0; i < n * c; i++)
        if (planar[i % c * n + i / c] != mixed[i])
            return 0;
    return 1;
}

static void test_webp_and_lzma_without_loss_are_equal_bit_for_bit(void)
{
    uint64_t seed = 8;
    for (int k = 0; k < 24; k++) {
        const int webp = k & 1;
        shape a = {.w = (uint32_t)tg_rand_in(&seed, 1, 150),
                   .h = (uint32_t)tg_rand_in(&seed, 1, 150),
                   .samples = k & 2 ? 3 : 4,
                   .tiled = k & 4};
        a.bw = a.tiled ? 64 : a.w;
        a.bh = a.tiled ? 48 : (uint32_t)tg_rand_in(&seed, 1, a.h);
        if (webp ? !TIFFIsCODECConfigured(50001) : !TIFFIsCODECConfigured(34925))
            continue;
        uint8_t *pixels = smooth(&a, &seed);
        TIFF *t = begin("wl", &a, 8, 1, webp ? 50001 : 34925, PHOTOMETRIC_RGB);
        if (webp) {
            TIFFSetField(t, TIFFTAG_WEBP_LOSSLESS, 1);
        } else {
            TIFFSetField(t, TIFFTAG_PREDICTOR, 1 + k / 8 % 2);
        }
        write_blocks(t, &a, pixels);
        TIFFClose(t);
        tgi_err err = {0};
        tgi_source *s = opened(0, 1, &err);
        uint8_t *all = s ? read_all(s, 11, &err) : NULL;
        CHECK_STR(err.text, "");
        CHECK(all && equals_mixed(&a, all, pixels));
        free(all);
        free(pixels);
        tgi_source_close(&s);
    }
}

/* ---- JPEG ---- */

/* What libtiff decodes, cut out of its blocks. */
static uint8_t *decoded_by_libtiff(const shape *a)
{
    TIFF *t = TIFFOpen(path, "r");
    const size_t s = (size_t)a->samples;
    uint8_t *all = calloc((size_t)a->w * a->h, s), *block = malloc((size_t)a->bw * a->bh * s);
    uint32_t n = 0;
    uint16_t photometric = 0;
    TIFFGetField(t, TIFFTAG_PHOTOMETRIC, &photometric);
    if (photometric == PHOTOMETRIC_YCBCR)
        TIFFSetField(t, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    for (uint32_t y = 0; y < a->h; y += a->bh)
        for (uint32_t x = 0; x < a->w; x += a->bw, n++) {
            const tmsize_t bytes = (tmsize_t)(rows_of(a, y) * a->bw * s);
            CHECK(a->tiled ? TIFFReadEncodedTile(t, n, block, bytes) == bytes
                           : TIFFReadEncodedStrip(t, n, block, bytes) == bytes);
            for (uint32_t r = y; r < tgi_min(a->h, y + a->bh); r++)
                memcpy(all + ((size_t)r * a->w + x) * s, block + (size_t)(r - y) * a->bw * s,
                       (size_t)tgi_min(a->bw, a->w - x) * s);
        }
    TIFFClose(t);
    free(block);
    return all;
}

typedef struct colours {
    int photometric, samples, h, v; /* subsampling of YCbCr */
} colours;

static void write_jpeg(const shape *a, const colours *c, int tables, const uint8_t *pixels)
{
    TIFF *t = begin("wl", a, 8, 1, 7, c->photometric);
    if (c->photometric == PHOTOMETRIC_YCBCR) {
        TIFFSetField(t, TIFFTAG_YCBCRSUBSAMPLING, c->h, c->v);
        TIFFSetField(t, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    TIFFSetField(t, TIFFTAG_JPEGQUALITY, 85);
    TIFFSetField(t, TIFFTAG_JPEGTABLESMODE, tables);
    write_blocks(t, a, pixels);
    TIFFClose(t);
}

static void test_jpeg_blocks_equal_what_libtiff_decodes(void)
{
    static const colours kinds[] = {
        {PHOTOMETRIC_YCBCR, 3, 1, 1},    {PHOTOMETRIC_YCBCR, 3, 2, 1},
        {PHOTOMETRIC_YCBCR, 3, 2, 2},    {PHOTOMETRIC_YCBCR, 3, 1, 2},
        {PHOTOMETRIC_YCBCR, 3, 4, 1},    {PHOTOMETRIC_YCBCR, 3, 4, 2},
        {PHOTOMETRIC_RGB, 3, 1, 1},      {PHOTOMETRIC_MINISBLACK, 1, 1, 1},
        {PHOTOMETRIC_SEPARATED, 4, 1, 1}};
    uint64_t seed = 12;
    int streamed = 0, n = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int way = 0; way < 6; way++, n++) {
            shape a = {.w = (uint32_t)tg_rand_in(&seed, 1, way > 3 ? 900 : 200),
                       .h = (uint32_t)tg_rand_in(&seed, way > 3 ? 300 : 1, way > 3 ? 500 : 200),
                       .samples = kinds[k].samples,
                       .tiled = way & 1};
            a.bw = a.tiled ? 16u << way : a.w;
            a.bh = a.tiled ? 16u << way : way > 3 ? a.h : 32;
            uint8_t *pixels = smooth(&a, &seed);
            write_jpeg(&a, &kinds[k], way % 4, pixels);
            uint8_t *want = decoded_by_libtiff(&a);
            tgi_err err = {0};
            tgi_source *s = opened(way > 3 ? 400u << 10 : 0, 1, &err);
            streamed += s && s->ops->stream_rows(s) > 0;
            uint8_t *all = s ? read_all(s, 13, &err) : NULL;
            CHECK_STR(err.text, "");
            CHECK(all && equals_mixed(&a, all, want));
            free(all);
            free(want);
            free(pixels);
            tgi_source_close(&s);
        }
    printf("%d files, %d streamed\n", n, streamed);
    CHECK(streamed > 8);
}

typedef struct reader {
    tgi_source *s;
    int thread;
    const uint8_t *want;
    int equal;
} reader;

static void *read_boxes(void *arg)
{
    reader *r = arg;
    const tgi_image_info *i = r->s->ops->info(r->s);
    const size_t w = (size_t)i->width, h = (size_t)i->height;
    uint64_t seed = (uint64_t)r->thread + 1;
    tgi_err err = {0};
    uint8_t *box = malloc(3 * 64 * 64);
    r->equal = 1;
    for (int k = 0; k < 60; k++) {
        const int64_t y0 = tg_rand_in(&seed, 0, i->height - 64);
        const int64_t x0 = tg_rand_in(&seed, 0, i->width - 64);
        r->equal &= r->s->ops->read(r->s, r->thread, 0, 0, 3, y0, y0 + 64, x0, x0 + 64, box, 64,
                                    64 * 64, &err) == TG_OK;
        for (size_t p = 0; p < 3 * 64 * 64; p++) {
            const size_t y = (size_t)y0 + p / 64 % 64, x = (size_t)x0 + p % 64;
            r->equal &= box[p] == r->want[(p / 4096 * h + y) * w + x];
        }
    }
    free(box);
    return NULL;
}

static void test_threads_decode_jpeg_tiles_at_once_and_allocate_nothing(void)
{
    const colours c = {PHOTOMETRIC_YCBCR, 3, 2, 2};
    const shape a = {500, 400, 64, 64, 3, 1};
    uint64_t seed = 4;
    uint8_t *pixels = smooth(&a, &seed);
    tgi_err err = {0};
    pthread_t threads[3];
    reader readers[3];
    tgi_mem_stats before, during;
    write_jpeg(&a, &c, 1, pixels);
    tgi_mem_get_stats(&before);
    tgi_source *s = opened(0, 3, &err);
    tgi_mem_get_stats(&during);
    CHECK_EQ(s->ops->stream_rows(s), 0);
    /* What it says it holds is what it took, but for strings and libjpeg's own 8 KiB a decoder.
     */
    CHECK(during.live_bytes - before.live_bytes <= s->ops->codec_bytes(s) + 4096);
    CHECK(during.live_bytes - before.live_bytes + 3 * 8192 + 4096 >= s->ops->codec_bytes(s));
    uint8_t *want = read_all(s, 400, &err);
    for (int k = 0; k < 3; k++) {
        readers[k] = (reader){s, k, want, 0};
        pthread_create(&threads[k], NULL, read_boxes, &readers[k]);
    }
    for (int k = 0; k < 3; k++) {
        pthread_join(threads[k], NULL);
        CHECK(readers[k].equal);
    }
    tgi_mem_get_stats(&before);
    CHECK_EQ(before.requests, during.requests);
    tgi_source_close(&s);
    free(want);
    free(pixels);
}

/* Another page's tables would decode to other pixels. */
static void test_pages_with_other_jpeg_tables_are_refused_by_name(void)
{
    const shape a = {64, 64, 32, 32, 3, 1};
    uint64_t seed = 5;
    uint8_t *pixels = smooth(&a, &seed);
    tgi_err err = {0};
    tgi_source *s = NULL;
    for (int quality = 80; quality <= 90; quality += 10) {
        TIFF *t = begin(quality == 80 ? "wl" : "a", &a, 8, 1, 7, PHOTOMETRIC_RGB);
        TIFFSetField(t, TIFFTAG_JPEGQUALITY, quality);
        write_blocks(t, &a, pixels);
        TIFFClose(t);
    }
    CHECK_EQ(tgi_source_open(path, NULL, &s, &err), TG_E_UNSUPPORTED);
    CHECK(strstr(err.text, "other JPEGTables") != NULL);
    free(pixels);
}

typedef enum jpeg_kind { BASELINE, PROGRESSIVE, ARITHMETIC } jpeg_kind;

/* A JPEG by libjpeg, as slide scanners and cameras put them into TIFFs. */
static void make_jpeg(const shape *a, const uint8_t *rgb, jpeg_kind kind, J_COLOR_SPACE inside,
                      int jfif, unsigned char **out, unsigned long *n)
{
    struct jpeg_compress_struct z;
    struct jpeg_error_mgr e;
    z.err = jpeg_std_error(&e);
    jpeg_create_compress(&z);
    jpeg_mem_dest(&z, out, n);
    z.image_width = a->w;
    z.image_height = a->h;
    z.input_components = 3;
    z.in_color_space = JCS_RGB;
    jpeg_set_defaults(&z);
    jpeg_set_colorspace(&z, inside);
    z.write_JFIF_header = jfif;
    z.write_Adobe_marker = FALSE;
    z.arith_code = kind == ARITHMETIC;
    if (kind == PROGRESSIVE)
        jpeg_simple_progression(&z);
    jpeg_start_compress(&z, TRUE);
    for (uint32_t y = 0; y < a->h; y++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(rgb + (size_t)y * a->w * 3);
        jpeg_write_scanlines(&z, &row, 1);
    }
    jpeg_finish_compress(&z);
    jpeg_destroy_compress(&z);
}

static void write_raw(const shape *a, const void *data, size_t n)
{
    TIFF *t = begin("wl", a, 8, 1, 7, PHOTOMETRIC_RGB);
    TIFFSetField(t, TIFFTAG_JPEGTABLESMODE, 0);
    CHECK(TIFFWriteRawStrip(t, 0, (void *)(uintptr_t)data, (tmsize_t)n) == (tmsize_t)n);
    TIFFClose(t);
}

static void test_a_jfif_mark_says_ycbcr_although_the_page_says_rgb(void)
{
    const shape a = {48, 48, 48, 48, 3, 0};
    uint64_t seed = 6;
    uint8_t *pixels = smooth(&a, &seed);
    for (int jfif = 0; jfif < 2; jfif++) {
        unsigned char *data = NULL;
        unsigned long n = 0;
        tgi_err err = {0};
        int64_t off = 0;
        make_jpeg(&a, pixels, BASELINE, jfif ? JCS_YCbCr : JCS_RGB, jfif, &data, &n);
        write_raw(&a, data, n);
        tgi_source *s = opened(0, 1, &err);
        uint8_t *all = s ? read_all(s, 48, &err) : NULL;
        for (size_t i = 0; all && i < 48 * 48 * 3; i++) {
            const int d = all[i % 3 * 48 * 48 + i / 3] - pixels[i];
            off += d < 0 ? -d : d;
        }
        CHECK(all && off < 48 * 48 * 3 * 12); /* quality 75 errs by 6 a sample; YCbCr by 60 */
        free(all);
        free(data);
        tgi_source_close(&s);
    }
    free(pixels);
}

static void check_jpeg_is_refused(const shape *a, const void *data, size_t n, const char *why)
{
    tgi_err err = {0};
    write_raw(a, data, n);
    tgi_source *s = opened(0, 1, &err);
    CHECK(!read_all(s, 48, &err));
    CHECK(strstr(err.text, why) != NULL);
    tgi_source_close(&s);
}

static void test_other_kinds_and_sizes_of_jpeg_inside_a_tiff_are_named(void)
{
    static const char *const why[] = {
        "a JPEG of 48 columns and 3 samples in a block of 64 and 3",
        "progressive JPEG inside a TIFF", "JPEG with arithmetic coding inside a TIFF"};
    const shape a = {48, 48, 48, 48, 3, 0}, wide = {64, 48, 64, 48, 3, 0};
    uint64_t seed = 7;
    uint8_t *pixels = smooth(&wide, &seed);
    for (jpeg_kind kind = BASELINE; kind <= ARITHMETIC; kind++) {
        unsigned char *data = NULL;
        unsigned long n = 0;
        make_jpeg(&a, pixels, kind, JCS_YCbCr, 1, &data, &n);
        check_jpeg_is_refused(kind == BASELINE ? &wide : &a, data, n, why[kind]);
        free(data);
    }
    free(pixels);
}

/* No code is all ones: libjpeg-turbo takes it for a zero where thousands of bytes follow. */
static void test_a_code_that_is_none_is_damage_far_from_the_end_of_a_jpeg(void)
{
    const shape a = {400, 300, 400, 300, 3, 0};
    const size_t samples = (size_t)400 * 300 * 3;
    uint8_t *pixels = malloc(samples);
    unsigned char *data = NULL;
    unsigned long n = 0;
    for (size_t i = 0; i < samples; i++)
        pixels[i] = (uint8_t)(i * i % 251);
    make_jpeg(&a, pixels, BASELINE, JCS_YCbCr, 1, &data, &n);
    CHECK(n > 20000);
    memcpy(data + n / 4, (const uint8_t[]){0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0}, 8);
    check_jpeg_is_refused(&a, data, n, "bad Huffman code");
    free(data);
    free(pixels);
}

/* ---- Damage ---- */

static tmsize_t strip_of(const shape *a, int compression, uint8_t *bytes, tmsize_t cap)
{
    uint64_t seed = 9;
    uint8_t *pixels = smooth(a, &seed);
    TIFF *t = begin("wl", a, 8, 1, compression, PHOTOMETRIC_RGB);
    if (compression == 7)
        TIFFSetField(t, TIFFTAG_JPEGTABLESMODE, 0);
    write_blocks(t, a, pixels);
    TIFFClose(t);
    free(pixels);
    t = TIFFOpen(path, "r");
    const tmsize_t n = TIFFReadRawStrip(t, 0, bytes, cap);
    TIFFClose(t);
    return n;
}

/* A strip of these bytes, read: whether that failed. */
static int fails(const shape *a, int compression, const uint8_t *bytes, size_t n,
                 const char *words)
{
    TIFF *t = begin("wl", a, 8, 1, compression, PHOTOMETRIC_RGB);
    if (compression == 7)
        TIFFSetField(t, TIFFTAG_JPEGTABLESMODE, 0);
    CHECK(TIFFWriteRawStrip(t, 0, (void *)(uintptr_t)bytes, (tmsize_t)n) == (tmsize_t)n);
    TIFFClose(t);
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tg_status st = tgi_source_open(path, NULL, &s, &err);
    uint8_t *all = s ? read_all(s, a->h, &err) : NULL;
    const int failed = all == NULL;
    CHECK(st == TG_OK || st == TG_E_FORMAT || st == TG_E_UNSUPPORTED || st == TG_E_BUDGET);
    CHECK(!failed || err.text[0]);
    if (failed && st == TG_OK && !strstr(err.text, words)) {
        fprintf(stderr, "  \"%s\" is not about \"%s\"\n", err.text, words);
        CHECK(0);
    }
    free(all);
    tgi_source_close(&s);
    return failed;
}

/* Cut short anywhere it is damage; bent anywhere it ends in a status. */
static void damage(int compression, const char *words)
{
    const shape a = {80, 72, 80, 72, 3, 0};
    static uint8_t bytes[32768];
    uint64_t seed = 10;
    int bent = 0;
    const tmsize_t n = strip_of(&a, compression, bytes, sizeof bytes);
    CHECK(n > 100);
    CHECK(!fails(&a, compression, bytes, (size_t)n, words));
    for (int k = 0; k < 60; k++)
        CHECK(fails(&a, compression, bytes, (size_t)tg_rand_in(&seed, 1, n - 40), words));
    for (int k = 0; k < 150; k++) {
        const size_t at = (size_t)tg_rand_in(&seed, 0, n - 1);
        const uint8_t was = bytes[at];
        bytes[at] ^= (uint8_t)tg_rand_in(&seed, 1, 255);
        bent += fails(&a, compression, bytes, (size_t)n, words);
        bytes[at] = was;
    }
    printf("%s: %d of 150 bent bytes are found\n", words, bent);
    CHECK(bent > 0);
}

static void test_damaged_jpeg_lzma_and_webp_blocks_are_damage(void)
{
    damage(7, "JPEG");
    damage(34925, "LZMA data");
    if (TIFFIsCODECConfigured(50001))
        damage(50001, "WebP data");
}

/* ---- Refusals ---- */

static void refused(int bits, int format, int compression, int photometric, const char *words)
{
    const shape a = {16, 16, 16, 16, photometric == PHOTOMETRIC_YCBCR ? 3 : 1, 0};
    uint8_t zeros[16 * 16 * 16] = {0};
    tgi_err err = {0};
    tgi_source *s = NULL;
    TIFF *t = begin("wl", &a, bits, format, compression, photometric);
    TIFFWriteRawStrip(t, 0, zeros, sizeof zeros);
    TIFFClose(t);
    CHECK_EQ(tgi_source_open(path, NULL, &s, &err), TG_E_UNSUPPORTED);
    CHECK(strstr(err.text, words) != NULL);
    if (!strstr(err.text, words))
        fprintf(stderr, "  \"%s\" is not \"%s\"\n", err.text, words);
}

static void test_what_is_not_read_is_refused_by_its_name(void)
{
    refused(64, 6, 1, 1, "complex numbers");
    refused(32, 5, 1, 1, "complex numbers");
    refused(16, 2, 32909, 1, "PixarLog with 1 samples of 16 bits");
    refused(16, 2, 34676, 1, "SGI LogLuv with 1 samples of 16 bits");
    refused(16, 2, 1, PHOTOMETRIC_LOGL, "photometric 32844 (Log)");
    refused(64, 1, 34887, 1, "LERC with 1 samples of 64 bits");
    refused(16, 1, 1, PHOTOMETRIC_YCBCR, "photometric 6 (YCbCr)");
    refused(8, 3, 1, 1, "8 bits per sample, sample format 3");
    refused(8, 1, 4, 0, "CCITT fax 4 with 1 samples of 8 bits");
}

int main(void)
{
    TIFFSetWarningHandler(NULL);
    TIFFSetErrorHandler(NULL);
    snprintf(path, sizeof path, "test_tiff_forms.%d.tif", (int)getpid());
    RUN(test_samples_of_any_depth_arrive_as_they_were_stored);
    RUN(test_floats_of_24_bits_arrive_with_their_values);
    RUN(test_bits_of_photographs_and_masks_are_not_interpreted);
    RUN(test_webp_and_lzma_without_loss_are_equal_bit_for_bit);
    RUN(test_jpeg_blocks_equal_what_libtiff_decodes);
    RUN(test_threads_decode_jpeg_tiles_at_once_and_allocate_nothing);
    RUN(test_pages_with_other_jpeg_tables_are_refused_by_name);
    RUN(test_a_jfif_mark_says_ycbcr_although_the_page_says_rgb);
    RUN(test_other_kinds_and_sizes_of_jpeg_inside_a_tiff_are_named);
    RUN(test_a_code_that_is_none_is_damage_far_from_the_end_of_a_jpeg);
    RUN(test_damaged_jpeg_lzma_and_webp_blocks_are_damage);
    RUN(test_what_is_not_read_is_refused_by_its_name);
    unlink(path);
    return TEST_END();
}
