/* fuzz_image.h - any bytes, opened as an image of whatever format they look like, and read.
 * What varies beside them (level, mapping, threads, budget) follows from `how`. */
#ifndef TG_FUZZ_IMAGE_H
#define TG_FUZZ_IMAGE_H

#include "engine/base/arith.h"
#include "io/image.h"
#include "tests/fuzz/fuzz_target.h"

#define FUZZ_WIDE 512
#define FUZZ_ROWS 16

/* The last columns of some rows and planes, downwards; then a row further up again. */
static inline void fuzz_read(tgi_source *s)
{
    static uint8_t buf[FUZZ_WIDE * 8 * FUZZ_ROWS * 8];
    const tgi_image_info *i = s->ops->info(s);
    const int64_t width = tgi_min(i->width, FUZZ_WIDE), height = tgi_min(i->height, 200);
    const size_t row = (size_t)width * tgi_dtype_size(i->dtype);
    const int samples = (int)tgi_min(i->samples, 8);
    for (int64_t p = 0; p < tgi_min(i->n_planes, 3); p++)
        for (int64_t y = 0; y < height + FUZZ_ROWS; y += FUZZ_ROWS) {
            const int64_t y0 = y < height ? y : height / 2;
            tgi_err err = {0};
            fuzz_check(s->ops->read(s, 0, p, 0, samples, y0, tgi_min(i->height, y0 + FUZZ_ROWS),
                                    i->width - width, i->width, buf, row, row * FUZZ_ROWS,
                                    &err),
                       &err);
        }
}

static inline void fuzz_image(const uint8_t *data, size_t n, unsigned how)
{
    char path[64];
    fuzz_file(data, n, path);
    const tgi_open_opts o = {.threads = how & 8 ? 2 : 1,
                             .level = how & 1,
                             .decode_budget = how & 4 ? 64u << 10 : 16u << 20};
    tgi_err err = {0};
    tgi_source *s = NULL;
    const tg_status st = tgi_source_open(path, &o, &s, &err);
    fuzz_check(st, &err);
    if (st == TG_OK)
        fuzz_read(s);
    tgi_source_close(&s);
    fuzz_check_leaks();
}

#endif
