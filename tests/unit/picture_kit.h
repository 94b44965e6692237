/* picture_kit.h - what the tests of PNG and of JPEG files have in common: one file that is written
 * over and over, boxes of it read back, and damage. Its checks count for the test that includes
 * it, so all of it is static. */
#ifndef TGI_PICTURE_KIT_H
#define TGI_PICTURE_KIT_H

#include "engine/base/mem.h"
#include "io/image.h"
#include "tests/tg_test.h"
#include "tests/unit/png_maker.h"

#include <unistd.h>

/* The file, named after the process by pic_begin. */
static char pic_path[256];

static void pic_begin(void)
{
    snprintf(pic_path, sizeof pic_path, "test_picture.%d.img", (int)getpid());
}

static void pic_write(const void *bytes, size_t n)
{
    FILE *f = fopen(pic_path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

/* Samples of a box of the picture, interleaved; NULL with err when it failed. */
static uint16_t *pic_read(tgi_source *s, int64_t y0, int64_t y1, int64_t x0, int64_t x1,
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

/* Opened and read from end to end: whether that failed, always with a sentence. */
static int pic_fails(const uint8_t *data, size_t n)
{
    tgi_err err = {0};
    tgi_source *s = NULL;
    pic_write(data, n);
    const tg_status st = tgi_source_open(pic_path, NULL, &s, &err);
    CHECK(st == TG_OK || st == TG_E_FORMAT || st == TG_E_UNSUPPORTED || st == TG_E_BUDGET);
    CHECK(st == TG_OK || err.text[0]);
    if (!s)
        return 1;
    const tgi_image_info *i = s->ops->info(s);
    uint16_t *all = NULL;
    if (i->width * i->height < 1 << 22)
        all = pic_read(s, 0, i->height, 0, i->width, &err);
    const int failed = !all;
    CHECK(!failed || err.text[0]);
    free(all);
    tgi_source_close(&s);
    return failed;
}

/* Cut anywhere before its last bytes it is damage; of the bent, `least` of 300 are found. */
static void pic_cut_and_bend(pic_bytes b, size_t tail, int least)
{
    uint64_t seed = 5;
    int bent = 0;
    CHECK(!pic_fails(b.p, b.n));
    for (int k = 0; k < 100; k++)
        CHECK(pic_fails(b.p, (size_t)tg_rand_in(&seed, 20, (int64_t)(b.n - tail))));
    for (int k = 0; k < 300; k++) {
        const size_t at = (size_t)tg_rand_in(&seed, 0, (int64_t)(b.n - tail));
        const uint8_t was = b.p[at];
        b.p[at] ^= (uint8_t)tg_rand_in(&seed, 1, 255);
        bent += pic_fails(b.p, b.n);
        b.p[at] = was;
    }
    printf("%d of 300 bent files are found\n", bent);
    CHECK(bent >= least);
}

#endif
