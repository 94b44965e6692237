/* png_maker.c - see png_maker.h. */
#include "tests/unit/png_maker.h"

#include "engine/base/arith.h"
#include "io/deflate.h"
#include "tests/tg_test.h"

#include <zlib.h>

void png_put32(pic_bytes *b, uint32_t v)
{
    for (int k = 24; k >= 0; k -= 8)
        b->p[b->n++] = (uint8_t)(v >> k);
}

void png_chunk(pic_bytes *b, const char *type, const void *data, size_t n)
{
    png_put32(b, (uint32_t)n);
    memcpy(b->p + b->n, type, 4);
    if (n)
        memcpy(b->p + b->n + 4, data, n);
    const uint32_t crc = (uint32_t)crc32_z(0, b->p + b->n, n + 4);
    b->n += n + 4;
    png_put32(b, crc);
}

int png_channels(const png_form *f)
{
    static const int n[7] = {1, 0, 3, 1, 2, 0, 4};
    return n[f->colour];
}

uint16_t *png_draw(const png_form *f, uint64_t *seed)
{
    const size_t n = (size_t)f->w * f->h * (size_t)png_channels(f);
    uint16_t *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const uint64_t sample = f->colour == 3 ? (uint64_t)tg_rand_in(seed, 0, f->n_palette - 1)
                                               : tg_rand(seed) & ((1u << f->bits) - 1);
        v[i] = (uint16_t)sample;
    }
    return v;
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
static void put_pass(const png_form *f, const uint16_t *v, uint32_t x0, uint32_t dx,
                     uint32_t y0, uint32_t dy, pic_bytes *out)
{
    const int c = png_channels(f);
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

static void put_data(const png_form *f, const pic_bytes *filtered, pic_bytes *out)
{
    const size_t cap = tgi_deflate_bound(filtered->n) + 64;
    uint8_t *packed = malloc(cap);
    void *memory = aligned_alloc(64, tgi_deflate_state_bytes());
    const size_t n =
        tgi_deflate(tgi_deflate_open(memory, 6), filtered->p, filtered->n, packed, cap);
    if (!n)
        abort();
    for (size_t at = 0; at < n; at += f->idat)
        png_chunk(out, "IDAT", packed + at, tgi_min(f->idat, n - at));
    free(memory);
    free(packed);
}

/* The file of these samples; free .p. */
pic_bytes png_make(const png_form *f, const uint16_t *v, const uint8_t *palette)
{
    static const uint8_t x0[7] = {0, 4, 0, 2, 0, 1, 0}, dx[7] = {8, 8, 4, 4, 2, 2, 1};
    static const uint8_t y0[7] = {0, 0, 4, 0, 2, 0, 1}, dy[7] = {8, 8, 8, 4, 4, 2, 2};
    const size_t most = ((size_t)f->w * 8 + 16) * f->h + 4096;
    pic_bytes filtered = {malloc(most), 0},
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
    png_chunk(&out, "IHDR", head, 13);
    png_chunk(&out, "pHYs", "\x00\x00\x27\x10\x00\x00\x4e\x20\x01", 9); /* 10000, 20000 per m */
    if (f->colour == 3) {
        uint8_t rgb[768], alpha[256];
        for (int i = 0; i < f->n_palette; i++) {
            memcpy(rgb + 3 * i, palette + 4 * i, 3);
            alpha[i] = palette[4 * i + 3];
        }
        png_chunk(&out, "PLTE", rgb, (size_t)f->n_palette * 3);
        if (f->n_alpha)
            png_chunk(&out, "tRNS", alpha, (size_t)f->n_alpha);
    }
    if (f->note)
        png_chunk(&out, f->note, f->note + 4, f->note_bytes);
    for (int k = 0; f->interlaced && k < 7; k++)
        put_pass(f, v, x0[k], dx[k], y0[k], dy[k], &filtered);
    if (!f->interlaced)
        put_pass(f, v, 0, 1, 0, 1, &filtered);
    put_data(f, &filtered, &out);
    png_chunk(&out, "IEND", NULL, 0);
    free(filtered.p);
    return out;
}
