/* unpack_ycbcr.c - YCbCr in TIFF that is no JPEG: whatever packs the bytes, then RGB of them.
 * Blocks are decoded whole, into room of our own. See ycbcr.h. */
#include "io/ycbcr.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <math.h>
#include <string.h>

/* ---- The numbers ---- */

#define SHIFT 16
#define MOST 4096.0F /* beyond it a component says nothing any more: 32 times its range */

static float within(float v, float least, float most)
{
    return v < least ? least : v > most ? most : v;
}

static int32_t fixed(float v)
{
    return (int32_t)((double)(within(v, 0, 2) * (float)(1 << SHIFT)) + 0.5);
}

/* Where v lies between black and white, from 0 to `range`. */
static int32_t between(int v, float black, float white, float range)
{
    const float wide = white - black;
    const float at = (float)(v - (int32_t)black) * range / (wide == 0 ? 1.0F : wide);
    return (int32_t)within(at, -MOST, MOST);
}

static bool makes_sense(const float *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i]) || fabsf(v[i]) > 1e9F)
            return false;
    return true;
}

tg_status tgi_ycbcr_init(const tgi_tiff_ycbcr *of, tgi_ycbcr *out, tgi_err *err)
{
    float luma[3] = {0.299F, 0.587F, 0.114F}, levels[6] = {0, 255, 128, 255, 128, 255};
    if (of->n_coefficients)
        memcpy(luma, of->coefficients, sizeof luma);
    if (of->n_reference)
        memcpy(levels, of->reference, sizeof levels);
    if (!makes_sense(luma, 3) || luma[1] == 0)
        return tgi_fail(err, TG_E_FORMAT, "YCbCrCoefficients of %g, %g, %g", luma[0], luma[1],
                        luma[2]);
    if (!makes_sense(levels, 6))
        return tgi_fail(err, TG_E_FORMAT, "ReferenceBlackWhite of %g to %g", levels[0],
                        levels[1]);
    const float red = 2 - 2 * luma[0], blue = 2 - 2 * luma[2];
    const int32_t d[4] = {fixed(red), -fixed(luma[0] * red / luma[1]), fixed(blue),
                          -fixed(luma[2] * blue / luma[1])};
    const int32_t half = 1 << (SHIFT - 1);
    for (int i = 0; i < 256; i++) {
        const int32_t cb = between(i - 128, levels[2] - 128, levels[3] - 128, 127),
                      cr = between(i - 128, levels[4] - 128, levels[5] - 128, 127);
        out->y[i] = between(i, levels[0], levels[1], 255);
        out->red[i] = (d[0] * cr + half) >> SHIFT;
        out->blue[i] = (d[2] * cb + half) >> SHIFT;
        out->green_of_cr[i] = d[1] * cr;
        out->green_of_cb[i] = d[3] * cb + half;
    }
    return TG_OK;
}

size_t tgi_ycbcr_packed(size_t w, size_t rows, unsigned across, unsigned down)
{
    const size_t units =
        tgi_sat_mul(w / across + (w % across != 0), rows / down + (rows % down != 0));
    return tgi_sat_mul(units, across * down + 2);
}

static uint8_t to_byte(int32_t v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

void tgi_ycbcr_spread(const tgi_ycbcr *t, const uint8_t *src, size_t w, size_t rows,
                      unsigned across, unsigned down, uint8_t *rgb)
{
    const size_t unit = across * down + 2;
    const size_t row_of_units = (w + across - 1) / across * unit;
    for (size_t y = 0; y < rows; y++) {
        const uint8_t *p = src + y / down * row_of_units, *light = p + y % down * across;
        for (size_t x = 0; x < w; p += unit, light += unit) {
            const int32_t cb = p[unit - 2], cr = p[unit - 1], red = t->red[cr],
                          blue = t->blue[cb],
                          green = (t->green_of_cb[cb] + t->green_of_cr[cr]) >> SHIFT;
            for (size_t end = tgi_min(w, x + across), k = 0; x < end; x++, k++, rgb += 3) {
                const int32_t v = t->y[light[k]];
                rgb[0] = to_byte(v + red);
                rgb[1] = to_byte(v + green);
                rgb[2] = to_byte(v + blue);
            }
        }
    }
}

void tgi_ycbcr_merge(const tgi_ycbcr *t, const uint8_t *y, size_t apart, size_t n, uint8_t *rgb)
{
    for (size_t i = 0; i < n; i++, rgb += 3) {
        const int32_t v = t->y[y[i]], cb = y[apart + i], cr = y[2 * apart + i];
        rgb[0] = to_byte(v + t->red[cr]);
        rgb[1] = to_byte(v + ((t->green_of_cb[cb] + t->green_of_cr[cr]) >> SHIFT));
        rgb[2] = to_byte(v + t->blue[cb]);
    }
}

/* ---- The codec ---- */

typedef struct ycbcr {
    tgi_ycbcr tables;
    tgi_unpack *inner;
    size_t width, cap, more_rows; /* that may follow the last one of a block */
    unsigned across, down;
    uint8_t *packed;
} ycbcr;

/* How the bytes of a block are packed, in which colours are shared. */
static tgi_packing inner_of(const tgi_packing *p)
{
    tgi_packing in = *p;
    const size_t rows = p->block_bytes / 3 / p->width;
    in.compression = p->stored_as;
    in.block_bytes =
        tgi_ycbcr_packed(p->width, rows, p->ycbcr.subsampling[0], p->ycbcr.subsampling[1]);
    return in;
}

static size_t ycbcr_bytes(const tgi_packing *p)
{
    const tgi_packing in = inner_of(p);
    return tgi_sat_add(sizeof(ycbcr), tgi_sat_add(in.block_bytes, tgi_unpack_bytes(&in)));
}

static void ycbcr_close(void *state)
{
    ycbcr *c = state;
    tgi_unpack_close(&c->inner);
    tgi_free(c->packed);
    tgi_free(c);
}

static tg_status ycbcr_open(const tgi_packing *p, void **state, tgi_err *err)
{
    const tgi_packing in = inner_of(p);
    ycbcr *c = tgi_calloc(TGI_TAG_IO, 1, sizeof *c);
    if (!c)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    c->width = p->width;
    c->across = p->ycbcr.subsampling[0];
    c->down = p->ycbcr.subsampling[1];
    c->cap = in.block_bytes;
    tg_status st = tgi_ycbcr_init(&p->ycbcr, &c->tables, err);
    if (st == TG_OK)
        st = tgi_unpack_open(&in, &c->inner, err);
    if (st == TG_OK && !(c->packed = tgi_malloc(TGI_TAG_IO, c->cap)))
        st = tgi_fail(err, TG_E_NOMEM, "no memory for a decoder of %zu bytes", c->cap);
    if (st == TG_OK)
        *state = c;
    else
        ycbcr_close(c);
    return st;
}

static void ycbcr_begin(void *state)
{
    (void)state;
}

static void ycbcr_spare(void *state, size_t bytes)
{
    ycbcr *c = state;
    c->more_rows = bytes / 3 / c->width;
}

static tg_status ycbcr_exact(void *state, const uint8_t *src, size_t n, uint8_t *dst,
                             size_t want, tgi_err *err)
{
    ycbcr *c = state;
    const size_t rows = want / 3 / c->width,
                 packed = tgi_ycbcr_packed(c->width, rows, c->across, c->down),
                 all = tgi_ycbcr_packed(c->width, tgi_sat_add(rows, c->more_rows), c->across,
                                        c->down);
    tgi_unpack_spare(c->inner, all - packed);
    const tg_status st = tgi_unpack_run(c->inner, src, n, c->packed, c->cap, packed, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "YCbCr");
        return st;
    }
    tgi_ycbcr_spread(&c->tables, c->packed, c->width, rows, c->across, c->down, dst);
    return TG_OK;
}

const tgi_codec tgi_codec_as_rgb = {.name = "YCbCr",
                                    .fuzzed = TGI_FUZZED,
                                    .open = ycbcr_open,
                                    .close = ycbcr_close,
                                    .bytes = ycbcr_bytes,
                                    .begin = ycbcr_begin,
                                    .spare = ycbcr_spare,
                                    .exact = ycbcr_exact,
                                    .turns = true};
