/* libtiff has no hooks for memory: what it takes in decoding a block is bounded by the plan
 * (unpack_tiff.c), and here malloc is interposed and the bound held against what it takes. */
#include "io/tiff_ifd.h"
#include "tests/memory/weigh.h"
#include "tests/unit/tiff_lib_files.h"

static char path[256];

static void be_quiet(const char *module, const char *fmt, va_list ap)
{
    (void)module, (void)fmt, (void)ap;
}

/* What decoding the block takes beside its pixels, as a share of what is planned; also of
 * blocks that are damaged: `bent` is how many bytes are changed. */
static double share(const tgi_packing *p, const uint8_t *block, size_t n, size_t want, int bent,
                    uint64_t *seed, size_t *bytes)
{
    uint8_t *dst = malloc(want), *src = malloc(n);
    long long left;
    tgi_unpack *u = NULL;
    tgi_err err = {0};
    memcpy(src, block, n);
    for (int i = 0; i < bent; i++)
        src[tg_rand_in(seed, 0, (int64_t)n - 1)] = (uint8_t)tg_rand(seed);
    CHECK_OK(tgi_unpack_open(p, &u, &err),
             err); /* what our own pool keeps is there after that */
    tgi_unpack_close(&u);
    weigh_begin();
    tg_status st = tgi_unpack_open(p, &u, &err);
    CHECK_OK(st, err);
    st = tgi_unpack_run(u, src, n, dst, want, want, &err);
    tgi_unpack_close(&u);
    *bytes = weigh_end(&left);
    CHECK_EQ(left, 0);
    if (!bent)
        CHECK_OK(st, err);
    free(dst);
    free(src);
    return (double)*bytes / (double)tgi_unpack_bytes(p);
}

static void test_decoding_a_block_takes_no_more_than_is_planned(void)
{
    static const uint32_t sides[][2] = {{1, 1}, {64, 64}, {512, 512}, {4096, 8}, {8, 4096}};
    uint64_t seed = 5;
    for (int f = 0; f < LIB_FORMS; f++) {
        double worst = 0, worst_bent = 0;
        for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
            for (lib_noise = 0; lib_noise < 3; lib_noise++) {
                const lib_shape a = {.w = sides[k][0], .h = sides[k][1], .bh = sides[k][1]};
                uint8_t *block;
                size_t n, bytes;
                lib_write(path, &lib_forms[f], &a, &seed);
                const tgi_packing p = lib_first_block(path, &lib_forms[f], &a, &block, &n);
                const size_t want = lib_row(&lib_forms[f], a.w) * a.h;
                const double s = share(&p, block, n, want, 0, &seed, &bytes);
                worst = s > worst ? s : worst;
                CHECK(s <= 1);
                if (k == 2 && lib_noise == 1)
                    printf("%-20s 512 x 512: %zu bytes, %.2f for a byte, %.2f for a sample\n",
                           lib_forms[f].name, bytes, (double)bytes / (double)want,
                           (double)bytes / (512.0 * 512.0 * (double)lib_inner(&lib_forms[f])));
                for (int i = 0; i < 5; i++) {
                    const double b = share(&p, block, n, want, 1 + 2 * i, &seed, &bytes);
                    worst_bent = b > worst_bent ? b : worst_bent;
                    CHECK(b <= 1);
                }
                free(block);
            }
        printf("%-20s at most %.3f of the bound, damaged %.3f\n", lib_forms[f].name, worst,
               worst_bent);
        CHECK(worst > 0.2); /* else nothing was weighed */
    }
}

/* Pixels that share colours, in a compression that libtiff decodes for us with them. */
static void test_so_does_making_rgb_of_ycbcr(void)
{
    static const uint16_t codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW,
                                      COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS},
                          sub[][2] = {{1, 1}, {2, 1}, {2, 2}, {4, 2}};
    static const uint32_t sides[][2] = {{1, 1}, {64, 64}, {512, 512}, {4096, 8}, {8, 4096}};
    uint64_t seed = 6;
    double worst = 0;
    for (int k = 0; k < 5 * 4 * 4; k++) {
        const uint32_t w = sides[k / 16][0], h = sides[k / 16][1];
        const uint16_t *pixels = sub[k / 4 % 4];
        TIFF *t = TIFFOpen(path, "w");
        TIFFSetField(t, TIFFTAG_IMAGEWIDTH, w);
        TIFFSetField(t, TIFFTAG_IMAGELENGTH, h);
        TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
        TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3);
        TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
        TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
        TIFFSetField(t, TIFFTAG_YCBCRSUBSAMPLING, pixels[0], pixels[1]);
        TIFFSetField(t, TIFFTAG_COMPRESSION, codecs[k % 4]);
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, h);
        const size_t n = (size_t)TIFFStripSize(t);
        uint8_t *raw = malloc(n);
        for (size_t i = 0; i < n; i++)
            raw[i] = (uint8_t)tg_rand(&seed);
        CHECK(TIFFWriteEncodedStrip(t, 0, raw, (tmsize_t)n) == (tmsize_t)n);
        free(raw);
        TIFFClose(t);
        t = TIFFOpen(path, "rc"); /* one strip, as it stands */
        const size_t packed = (size_t)TIFFRawStripSize(t, 0), want = (size_t)w * h * 3;
        uint8_t *block = malloc(packed);
        CHECK(TIFFReadRawStrip(t, 0, block, (tmsize_t)packed) == (tmsize_t)packed);
        TIFFClose(t);
        const tgi_packing p = {.compression = TGI_TIFF_AS_RGB,
                               .stored_as = codecs[k % 4],
                               .fill_order = 1,
                               .photometric = TGI_TIFF_YCBCR,
                               .width = w,
                               .samples = 3,
                               .bits = 8,
                               .format = 1,
                               .ycbcr = {.subsampling = {pixels[0], pixels[1]}},
                               .block_bytes = want};
        size_t bytes;
        for (int i = 0; i < 5; i++) {
            const double s = share(&p, block, packed, want, 2 * i, &seed, &bytes);
            worst = s > worst ? s : worst;
            CHECK(s <= 1);
            if (s > 1)
                fprintf(stderr, "  %u x %u, codec %u, bent %d: %zu bytes, %.3f\n", w, h,
                        codecs[k % 4], i, bytes, s);
        }
        free(block);
    }
    printf("YCbCr at most %.3f of the bound\n", worst);
    CHECK(worst > 0.2);
}

int main(void)
{
#ifdef TG_WEIGHS_MALLOC
    snprintf(path, sizeof path, "test_tiff_lib_memory.%d.tif", (int)getpid());
    TIFFSetWarningHandler(be_quiet);
    TIFFSetErrorHandler(be_quiet);
    RUN(test_decoding_a_block_takes_no_more_than_is_planned);
    RUN(test_so_does_making_rgb_of_ycbcr);
    unlink(path);
    return TEST_END();
#else
    (void)test_decoding_a_block_takes_no_more_than_is_planned;
    (void)test_so_does_making_rgb_of_ycbcr, (void)be_quiet, (void)path;
    TEST_SKIP("malloc cannot be interposed here");
#endif
}
