/* av_palette.c - see av_palette.h. */
#include "io/av/av_palette.h"

#include <string.h>

#define COLOURS 256
#define OPAQUE 0xffu

/* Alpha, red, green, blue, from the highest byte on. */
typedef struct palette {
    uint32_t colour[COLOURS];
} palette;

int tgi_av_palette_has(enum AVPixelFormat stored)
{
    return stored == AV_PIX_FMT_PAL8 || stored == AV_PIX_FMT_MONOWHITE ||
           stored == AV_PIX_FMT_MONOBLACK;
}

/* Some decoders say no alpha at all. */
static palette palette_of(const AVFrame *f)
{
    palette p = {{0}};
    uint32_t seen = 0;
    if (f->data[1])
        memcpy(p.colour, f->data[1], sizeof p.colour);
    for (int i = 0; i < COLOURS; i++)
        seen |= p.colour[i] >> 24;
    for (int i = 0; i < COLOURS && !seen; i++)
        p.colour[i] |= OPAQUE << 24;
    return p;
}

static int is_grey(const palette *p)
{
    for (int i = 0; i < COLOURS; i++) {
        const uint32_t c = p->colour[i] & 0xffffff;
        if (c != (c & 0xff) * 0x010101)
            return 0;
    }
    return 1;
}

static int shows_through(const palette *p, const AVFrame *f)
{
    for (int y = 0; y < f->height; y++)
        for (int x = 0; x < f->width; x++)
            if (p->colour[f->data[0][(ptrdiff_t)y * f->linesize[0] + x]] >> 24 != OPAQUE)
                return 1;
    return 0;
}

enum AVPixelFormat tgi_av_palette_as(const AVFrame *f)
{
    if (f->format != AV_PIX_FMT_PAL8)
        return AV_PIX_FMT_GRAY8;
    const palette p = palette_of(f);
    return shows_through(&p, f) ? AV_PIX_FMT_RGBA
           : is_grey(&p)        ? AV_PIX_FMT_GRAY8
                                : AV_PIX_FMT_RGB24;
}

static int samples_of(enum AVPixelFormat as)
{
    return as == AV_PIX_FMT_GRAY8 ? 1 : as == AV_PIX_FMT_RGB24 ? 3 : 4;
}

size_t tgi_av_palette_pitch(enum AVPixelFormat as, int width)
{
    return (size_t)width * (size_t)samples_of(as);
}

/* The first pixel is the highest bit; of MONOWHITE 0 is white. */
static void make_bits(const AVFrame *f, uint8_t *to)
{
    const unsigned flip = f->format == AV_PIX_FMT_MONOWHITE;
    for (int y = 0; y < f->height; y++) {
        const uint8_t *row = f->data[0] + (ptrdiff_t)y * f->linesize[0];
        for (int x = 0; x < f->width; x++)
            *to++ = ((unsigned)row[x / 8] >> (7 - x % 8) & 1u) != flip ? 255 : 0;
    }
}

static void make_row(const palette *p, const uint8_t *row, int width, int samples, uint8_t *to)
{
    for (int x = 0; x < width; x++, to += samples) {
        const uint32_t c = p->colour[row[x]];
        to[0] = (uint8_t)(c >> 16); /* of a grey one as well */
        if (samples >= 3) {
            to[1] = (uint8_t)(c >> 8);
            to[2] = (uint8_t)c;
        }
        if (samples == 4)
            to[3] = (uint8_t)(c >> 24);
    }
}

tg_status tgi_av_palette_make(const AVFrame *f, enum AVPixelFormat as, uint8_t *to,
                              tgi_err *err)
{
    if (f->format != AV_PIX_FMT_PAL8) {
        make_bits(f, to);
        return TG_OK;
    }
    const palette p = palette_of(f);
    const int through = as != AV_PIX_FMT_RGBA && shows_through(&p, f);
    if (through || (as == AV_PIX_FMT_GRAY8 && !is_grey(&p)))
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "a frame has %s, which the first had not: decode it to another film first "
            "(ffmpeg -i IN -pix_fmt %s -c:v ffv1 OUT.mkv)",
            through ? "transparent pixels" : "a palette with colours",
            through ? "bgra" : "bgr0");
    for (int y = 0; y < f->height; y++)
        make_row(&p, f->data[0] + (ptrdiff_t)y * f->linesize[0], f->width, samples_of(as),
                 to + (size_t)y * tgi_av_palette_pitch(as, f->width));
    return TG_OK;
}
