/* pyramid.c - see pyramid.h. Means are of the values as stored: integers in double, rounded
 * half up; floats in their own precision, ((a + b) + (c + d)) / 4. Tiles have even sides, so no
 * 2x2 block lies in two of them, and the result does not depend on how the image was cut. */
#include "engine/out/pyramid.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_codec.h"
#include "io/tiff_form.h"
#include "kernels/pixels.h"

#include <math.h>
#include <string.h>

struct tgi_pyramid_builder {
    const tgi_sink_layout *l;
    tgi_unpack *unpack; /* NULL: tiles are stored as they are */
    tgi_form form;
    uint8_t *packed, *raw, *tmp;
};

static uint32_t code_of(tgi_compression c)
{
    static const uint32_t code[] = {TGI_TIFF_NONE, TGI_TIFF_DEFLATE, TGI_TIFF_ZSTD,
                                    TGI_TIFF_LZW};
    return code[c];
}

static tgi_packing packing_of(const tgi_sink_layout *l)
{
    return (tgi_packing){.compression = code_of(l->compression),
                         .fill_order = 1,
                         .photometric = 1,
                         .width = (uint32_t)l->tile_w,
                         .samples = (uint32_t)l->samples,
                         .block_bytes = l->tile_bytes};
}

static size_t row_bytes(const tgi_sink_layout *l)
{
    return (size_t)l->tile_w * l->pixel_bytes;
}

size_t tgi_pyramid_bytes(const tgi_sink_layout *l)
{
    if (l->n_levels < 2)
        return 0;
    const tgi_packing p = packing_of(l);
    const size_t state = l->compression == TGI_COMPRESSION_NONE ? 0 : tgi_unpack_bytes(&p);
    return sizeof(tgi_pyramid_builder) + l->tile_bytes + l->tile_bound + row_bytes(l) + state;
}

tg_status tgi_pyramid_open(const tgi_sink_layout *l, tgi_pyramid_builder **out, tgi_err *err)
{
    if (l->n_levels < 2)
        return TG_OK;
    tgi_pyramid_builder *b = tgi_calloc(TGI_TAG_IO, 1, sizeof *b);
    if (!b)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the pyramid");
    *out = b;
    b->l = l;
    b->packed = tgi_malloc(TGI_TAG_IO, l->tile_bound);
    b->raw = tgi_malloc(TGI_TAG_IO, l->tile_bytes);
    b->tmp = tgi_malloc(TGI_TAG_IO, row_bytes(l));
    if (!b->packed || !b->raw || !b->tmp)
        return tgi_fail(err, TG_E_NOMEM, "no memory for tiles of the pyramid");
    const size_t size = tgi_dtype_size(l->dtype);
    b->form = (tgi_form){.bits = 8 * (uint32_t)size,
                         .predictor = (uint32_t)l->predictor,
                         .elements = (size_t)l->tile_w * (size_t)l->samples,
                         .inner = (size_t)l->samples,
                         .sample_bytes = size,
                         .stored_row = row_bytes(l),
                         .row_bytes = row_bytes(l)};
    const tgi_packing p = packing_of(l);
    return l->compression == TGI_COMPRESSION_NONE ? TG_OK
                                                  : tgi_unpack_open(&p, &b->unpack, err);
}

void tgi_pyramid_close(tgi_pyramid_builder **bp)
{
    tgi_pyramid_builder *b = *bp;
    if (!b)
        return;
    tgi_unpack_close(&b->unpack);
    tgi_free(b->packed);
    tgi_free(b->raw);
    tgi_free(b->tmp);
    tgi_free(b);
    *bp = NULL;
}

/* ---- Reducing ---------------------------------------------------------------------------- */

/* Elements of a block of 2x2 pixels, of which `right` and `below` exist or not: then the others
 * stand for them. */
#define MEAN(name, type, sum_type, result)                                                     \
    static void name(const void *src, size_t right, size_t below, void *dst)                   \
    {                                                                                          \
        const type *p = src;                                                                   \
        const sum_type s = ((sum_type)p[0] + (sum_type)p[right]) +                             \
                           ((sum_type)p[below] + (sum_type)p[below + right]);                  \
        const type v = (type)(result);                                                         \
        memcpy(dst, &v, sizeof v);                                                             \
    }
MEAN(mean_u8, uint8_t, uint32_t, (s + 2) / 4)
MEAN(mean_u16, uint16_t, uint32_t, (s + 2) / 4)
MEAN(mean_u32, uint32_t, uint64_t, (s + 2) / 4)
MEAN(mean_i8, int8_t, double, floor(s / 4 + 0.5))
MEAN(mean_i16, int16_t, double, floor(s / 4 + 0.5))
MEAN(mean_i32, int32_t, double, floor(s / 4 + 0.5))
MEAN(mean_f32, float, float, s * 0.25f)
MEAN(mean_f64, double, double, s * 0.25)

/* Sums of 64-bit numbers do not fit: quarters first, what they leave behind after. */
#define MEAN64(name, type)                                                                     \
    static void name(const void *src, size_t right, size_t below, void *dst)                   \
    {                                                                                          \
        const type *p = src;                                                                   \
        const type a = p[0], b = p[right], c = p[below], d = p[below + right];                 \
        const type v = (a >> 2) + (b >> 2) + (c >> 2) + (d >> 2) +                             \
                       ((a & 3) + (b & 3) + (c & 3) + (d & 3) + 2) / 4;                        \
        memcpy(dst, &v, sizeof v);                                                             \
    }
MEAN64(mean_u64, uint64_t)
MEAN64(mean_i64, int64_t)

static void mean_f16(const void *src, size_t right, size_t below, void *dst)
{
    const uint16_t *p = src;
    const uint16_t half[4] = {p[0], p[right], p[below], p[below + right]};
    float v[4];
    tgi_pixels_load(TG_DTYPE_F16, half, 4, 1.0f, 0.0f, v, 1);
    v[0] = ((v[0] + v[1]) + (v[2] + v[3])) * 0.25f;
    tgi_pixels_store(TG_DTYPE_F16, v, 1, 1, 1.0f, 0.0f, dst, 1);
}

typedef void mean_of(const void *src, size_t right, size_t below, void *dst);

static mean_of *mean_for(tg_dtype t)
{
    switch (t) {
    case TG_DTYPE_U16:
        return mean_u16;
    case TG_DTYPE_U32:
        return mean_u32;
    case TG_DTYPE_U64:
        return mean_u64;
    case TG_DTYPE_I8:
        return mean_i8;
    case TG_DTYPE_I16:
        return mean_i16;
    case TG_DTYPE_I32:
        return mean_i32;
    case TG_DTYPE_I64:
        return mean_i64;
    case TG_DTYPE_F16:
        return mean_f16;
    case TG_DTYPE_F32:
        return mean_f32;
    case TG_DTYPE_F64:
        return mean_f64;
    default:
        return mean_u8;
    }
}

/* The decoded tile, h x w pixels of it inside the image, to a quarter of `dst`. */
static void reduce(const tgi_pyramid_builder *b, int64_t h, int64_t w, uint8_t *dst)
{
    const tgi_sink_layout *l = b->l;
    const size_t size = tgi_dtype_size(l->dtype), n = (size_t)l->samples;
    const size_t pitch = row_bytes(l);
    mean_of *mean = mean_for(l->dtype);
    for (int64_t y = 0; y < h; y += 2)
        for (int64_t x = 0; x < w; x += 2)
            for (size_t s = 0; s < n; s++) {
                const uint8_t *src =
                    b->raw + (size_t)y * pitch + (size_t)x * l->pixel_bytes + s * size;
                uint8_t *to =
                    dst + (size_t)(y / 2) * pitch + (size_t)(x / 2) * l->pixel_bytes + s * size;
                if (l->pyramid == TGI_PYRAMID_NEAREST)
                    memcpy(to, src, size);
                else
                    mean(src, x + 1 < w ? n : 0, y + 1 < h ? pitch / size : 0, to);
            }
}

static tg_status decode(tgi_pyramid_builder *b, const tgi_journal *j, int64_t tile,
                        tgi_err *err)
{
    const tgi_sink_layout *l = b->l;
    size_t n;
    if (!b->unpack)
        return tgi_journal_read_tile(j, tile, b->raw, l->tile_bytes, &n, err);
    TGI_TRY(tgi_journal_read_tile(j, tile, b->packed, l->tile_bound, &n, err));
    TGI_TRY(tgi_unpack_run(b->unpack, b->packed, n, b->raw, l->tile_bytes, l->tile_bytes, err));
    if (l->predictor > 1)
        tgi_form_block(&b->form, b->raw, (size_t)l->tile_h, b->tmp);
    return TG_OK;
}

/* One tile out of up to four of the level above. */
static tg_status build_tile(tgi_pyramid_builder *b, const tgi_journal *j, int64_t tile,
                            uint8_t *dst, tgi_err *err)
{
    const tgi_sink_layout *l = b->l;
    const tgi_tile_place at = tgi_sink_tile_place(l, tile);
    const tgi_sink_level *up = &l->level_of[at.level - 1];
    for (int64_t k = 0; k < 4; k++) {
        const int64_t ty = 2 * (at.y / l->tile_h) + k / 2, tx = 2 * (at.x / l->tile_w) + k % 2;
        if (ty >= up->tiles_y || tx >= up->tiles_x)
            continue;
        const int64_t above = up->first + (at.plane * up->tiles_y + ty) * up->tiles_x + tx;
        const tgi_tile_place p = tgi_sink_tile_place(l, above);
        TGI_TRY(decode(b, j, above, err));
        reduce(b, p.height, p.width,
               dst + (size_t)(k / 2 * l->tile_h / 2) * row_bytes(l) +
                   (size_t)(k % 2 * l->tile_w / 2) * l->pixel_bytes);
    }
    return TG_OK;
}

tg_status tgi_pyramid_build(tgi_pyramid_builder *b, const tgi_journal *j, tgi_commit *c,
                            tg_status (*stop)(void *user, tgi_err *err), void *user,
                            tgi_err *err)
{
    if (!b)
        return TG_OK;
    const tgi_sink_layout *l = b->l;
    TGI_TRY(tgi_commit_flush(c, err));
    int64_t seq = tgi_commit_written(c);
    for (int k = 1; k < l->n_levels; k++) {
        const int64_t end = k + 1 < l->n_levels ? l->level_of[k + 1].first : l->n_tiles;
        for (int64_t tile = l->level_of[k].first; tile < end; tile++) {
            void *slot;
            if (tgi_journal_has_tile(j, tile))
                continue;
            TGI_TRY(stop(user, err));
            TGI_TRY(tgi_commit_slot(c, seq, &slot, err));
            TGI_TRY(build_tile(b, j, tile, slot, err));
            TGI_TRY(tgi_commit_submit(c, seq++, tile, err));
        }
        TGI_TRY(tgi_commit_flush(c, err));
    }
    return TG_OK;
}
