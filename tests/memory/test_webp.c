/* libwebp has no hooks for memory: what it takes while it decodes a block is bounded by the
 * plan (unpack_webp.c), and here malloc is interposed and the bound held against what it takes,
 * for pictures that ask for the most: all transforms, large caches of colours, many codes. */
#include "io/tiff_codec.h"
#include "io/tiff_ifd.h"
#include "tests/memory/weigh.h"
#include "tests/tg_test.h"

#include <webp/encode.h>

/* ---- Pictures ---------------------------------------------------------------------------- */

enum { NOISE, SMOOTH, FEW_COLOURS, MIXED, KINDS };

static uint8_t *picture(int kind, int w, int h, int samples, uint64_t *seed)
{
    uint8_t *p = malloc((size_t)w * (size_t)h * (size_t)samples);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int k = 0; k < samples; k++) {
                const int here = kind == MIXED ? (x / 32 + y / 32) % 3 : kind;
                p[((size_t)y * (size_t)w + (size_t)x) * (size_t)samples + (size_t)k] =
                    (uint8_t)(here == NOISE    ? tg_rand(seed)
                              : here == SMOOTH ? (unsigned)(x * (k + 1) + y)
                                               : tg_rand(seed) % 13 * 19);
            }
    return p;
}

/* What decoding one block takes, as a share of what is planned. */
static double share(int kind, int w, int h, int samples, float quality, uint64_t *seed)
{
    uint8_t *pixels = picture(kind, w, h, samples, seed), *packed = NULL;
    const int pitch = w * samples;
    const size_t bytes = (size_t)pitch * (size_t)h;
    uint8_t *back = malloc(bytes);
    size_t n;
    if (quality < 0)
        n = samples == 4 ? WebPEncodeLosslessRGBA(pixels, w, h, pitch, &packed)
                         : WebPEncodeLosslessRGB(pixels, w, h, pitch, &packed);
    else
        n = samples == 4 ? WebPEncodeRGBA(pixels, w, h, pitch, quality, &packed)
                         : WebPEncodeRGB(pixels, w, h, pitch, quality, &packed);
    CHECK(n > 0);
    const tgi_packing p = {.compression = TGI_TIFF_WEBP,
                           .fill_order = 1,
                           .width = (uint32_t)w,
                           .samples = (uint32_t)samples,
                           .block_bytes = bytes};
    tgi_unpack *u = NULL;
    tgi_err err = {0};
    long long left;
    weigh_begin();
    tg_status st = tgi_unpack_open(&p, &u, &err);
    if (st == TG_OK)
        st = tgi_unpack_run(u, packed, n, back, bytes, bytes, &err);
    tgi_unpack_close(&u);
    const size_t taken = weigh_end(&left);
    CHECK_OK(st, err);
    CHECK_EQ(left, 0);
    if (quality < 0 && samples == 3) /* colours behind no alpha at all are not kept */
        CHECK(memcmp(back, pixels, bytes) == 0);
    const double part = (double)taken / (double)tgi_unpack_bytes(&p);
    WebPFree(packed);
    free(pixels);
    free(back);
    return part;
}

static void test_decoding_a_webp_block_takes_no_more_than_is_planned(void)
{
    static const int sides[][2] = {{16, 16},    {64, 64},  {256, 256}, {512, 512},
                                   {1024, 640}, {4096, 8}, {8, 4096}};
    uint64_t seed = 5;
    double worst = 0;
    for (size_t k = 0; k < sizeof sides / sizeof sides[0]; k++)
        for (int kind = 0; kind < KINDS; kind++)
            for (int samples = 3; samples <= 4; samples++)
                for (int q = -1; q < 1; q++) {
                    const double s = share(kind, sides[k][0], sides[k][1], samples,
                                           q < 0 ? -1.0f
                                           : q   ? 95.0f
                                                 : 20.0f,
                                           &seed);
                    worst = s > worst ? s : worst;
                    CHECK(s <= 1);
                    if (s > 1)
                        fprintf(stderr, "  %dx%d, kind %d, %d samples, quality %d: %.3f\n",
                                sides[k][0], sides[k][1], kind, samples, q, s);
                }
    printf("at most %.3f of the bound\n", worst);
    CHECK(worst > 0.2); /* else nothing was weighed */
}

int main(void)
{
#ifdef TG_WEIGHS_MALLOC
    RUN(test_decoding_a_webp_block_takes_no_more_than_is_planned);
    return TEST_END();
#else
    (void)test_decoding_a_webp_block_takes_no_more_than_is_planned;
    TEST_SKIP("malloc cannot be interposed here");
#endif
}
