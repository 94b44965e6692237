/* rgb8.c - see rgb8.h. */
#include "engine/inpaint/rgb8.h"

static unsigned sample(tg_dtype dtype, const void *from, size_t i)
{
    return dtype == TG_DTYPE_U16 ? (((const uint16_t *)from)[i] + 128u) / 257u
                                 : ((const uint8_t *)from)[i];
}

static void set(tg_dtype dtype, void *to, size_t i, unsigned v)
{
    if (dtype == TG_DTYPE_U16)
        ((uint16_t *)to)[i] = (uint16_t)(v * 257u);
    else
        ((uint8_t *)to)[i] = (uint8_t)v;
}

void tgi_rgb8_from(int samples, tg_dtype dtype, const void *from, size_t n, uint8_t *rgb)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++)
            rgb[3 * i + c] =
                (uint8_t)sample(dtype, from, i * (size_t)samples + (samples >= 3 ? c : 0));
}

void tgi_rgb8_to(int samples, tg_dtype dtype, const uint8_t *rgb, size_t n, void *to)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *at = rgb + 3 * i;
        const size_t first = i * (size_t)samples;
        for (size_t c = 0; samples >= 3 && c < 3; c++)
            set(dtype, to, first + c, at[c]);
        if (samples < 3)
            set(dtype, to, first, (299u * at[0] + 587u * at[1] + 114u * at[2] + 500u) / 1000u);
        if (samples % 2 == 0)
            set(dtype, to, first + (size_t)samples - 1, 255);
    }
}
