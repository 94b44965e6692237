/* pp_pixels.c - see pp_pixels.h. */
#include "engine/inpaint/pp_pixels.h"

#include <string.h>

void tgi_pp_pack_bits(const uint8_t *from, int64_t height, int64_t width, uint8_t *mask)
{
    const int64_t pitch = (width + 7) / 8;
    memset(mask, 0, tgi_pp_mask_bytes(height, width));
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            mask[y * pitch + x / 8] |= (uint8_t)((from[y * width + x] != 0) << x % 8);
}

void tgi_pp_unpack_bits(const uint8_t *mask, int64_t height, int64_t width, uint8_t *to)
{
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            to[y * width + x] = (uint8_t)tgi_pp_bit(mask, width, y, x);
}

typedef struct planes {
    const uint8_t *rgb;
    int64_t height, width;
    float *to;
} planes;

static void planes_row(void *arg, int64_t y, int thread)
{
    const planes *p = arg;
    const uint8_t *from = p->rgb + y * p->width * 3;
    (void)thread;
    for (int64_t c = 0; c < 3; c++) {
        float *to = p->to + (c * p->height + y) * p->width;
        for (int64_t x = 0; x < p->width; x++)
            to[x] = tgi_pp_float(from[3 * x + c]);
    }
}

void tgi_pp_to_floats(tgi_threads *pool, const uint8_t *rgb, int64_t height, int64_t width,
                      float *to)
{
    planes p = {rgb, height, width, to};
    tgi_parallel(pool, height, planes_row, &p);
}
