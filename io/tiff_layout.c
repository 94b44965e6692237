/* tiff_layout.c - the layout of an output TIFF: its axes, levels, tiles, codec, and what it says
 * of its pixels; decided before the first of them (sink.h). tiff_front.c writes it down. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/deflate.h"
#include "io/lzw.h"
#include "io/ome_write.h"
#include "io/rational.h"
#include "io/resolution.h"
#include "io/sink.h"
#include "io/tiff_front.h"
#include "io/tiff_ifd.h"
#include "io/zstd_codec.h"

#include <string.h>

#define CLASSIC_LIMIT 0xffffffffull
#define PYRAMID_TOP 256 /* sides of the smallest level, at most */

/* ---- Names ------------------------------------------------------------------------------- */

static const char *const compression_names[] = {"none", "deflate", "zstd", "lzw"};

bool tgi_compression_parse(const char *name, tgi_compression *out)
{
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, compression_names[i])) {
            *out = (tgi_compression)i;
            return true;
        }
    return false;
}

const char *tgi_compression_name(tgi_compression c)
{
    return (unsigned)c < 4 ? compression_names[c] : "?";
}

/* ---- Layout ------------------------------------------------------------------------------ */

static tg_status take_axes(const tgi_sink_spec *spec, tgi_sink_layout *l, tgi_err *err)
{
    l->n_axes = (int)strlen(spec->axes);
    const char *yx = strstr(spec->axes, "YX");
    if (!yx || (yx[2] && strcmp(yx + 2, "S") != 0) || l->n_axes > TGI_IMAGE_MAX_AXES)
        return tgi_fail(err, TG_E_ARG, "output axes \"%s\" do not end in YX or YXS",
                        spec->axes);
    memcpy(l->axes, spec->axes, sizeof l->axes);
    l->n_planes = 1;
    l->samples = 1;
    for (int i = 0; i < l->n_axes; i++) {
        const char a = spec->axes[i];
        const int64_t n = l->shape[i] = spec->shape[i];
        if (a < 'A' || a > 'Z' || strchr(spec->axes + i + 1, a))
            return tgi_fail(err, TG_E_ARG, "output axes \"%s\": '%c' twice or no letter",
                            spec->axes, a);
        if (n < 1 || n > UINT32_MAX || (a == 'S' && n > UINT16_MAX))
            return tgi_fail(err, TG_E_ARG, "output axis %c has %lld elements", a, (long long)n);
        if (a == 'Y')
            l->height = n;
        else if (a == 'X')
            l->width = n;
        else if (a == 'S')
            l->samples = (int)n;
        else if (!tgi_mul64_ok(l->n_planes, n, &l->n_planes))
            return tgi_fail(err, TG_E_ARG, "output has too many planes");
    }
    return TG_OK;
}

/* The image, and below it halves of halves. */
static tg_status take_levels(tgi_sink_layout *l, tgi_err *err)
{
    int64_t h = l->height, w = l->width, n;
    l->n_levels = 0;
    l->n_tiles = 0;
    do {
        tgi_sink_level *v = &l->level_of[l->n_levels++];
        *v = (tgi_sink_level){h, w, tgi_ceil_div(h, l->tile_h), tgi_ceil_div(w, l->tile_w),
                              l->n_tiles};
        if (!tgi_mul64_ok(v->tiles_y, v->tiles_x, &n) || !tgi_mul64_ok(n, l->n_planes, &n) ||
            n > INT64_MAX / 128 || tgi_sat_mul((size_t)n, l->tile_bytes) > INT64_MAX / 8)
            return tgi_fail(err, TG_E_ARG, "output has too many tiles");
        l->n_tiles += n;
        if (h <= PYRAMID_TOP && w <= PYRAMID_TOP)
            break;
        h = tgi_ceil_div(h, 2);
        w = tgi_ceil_div(w, 2);
    } while (l->pyramid && l->n_levels < TGI_IMAGE_MAX_LEVELS);
    l->tiles_y = l->level_of[0].tiles_y;
    l->tiles_x = l->level_of[0].tiles_x;
    return TG_OK;
}

int64_t tgi_sink_tile_side(int64_t height, int64_t width)
{
    int64_t side = 16;
    while (side < 256 && (side < height || side < width))
        side *= 2;
    return side;
}

int64_t tgi_sink_tile_of_cell(int64_t cell)
{
    int64_t side = 256;
    while (side > TGI_SINK_TILE_SMALL && cell % side)
        side /= 2;
    if (cell % side)
        for (side = 256; cell % side;)
            side -= 16;
    for (int64_t more = 272; side < TGI_SINK_TILE_SMALL && more <= 512; more += 16)
        if (cell % more == 0)
            return more;
    return side;
}

int64_t tgi_sink_tile_height(int64_t height, int64_t side)
{
    return tgi_min(side, tgi_align_up(height, 16));
}

static tg_status take_tiles(const tgi_sink_spec *spec, tgi_sink_layout *l, tgi_err *err)
{
    const int64_t side = tgi_sink_tile_side(l->height, l->width);
    l->tile_h = spec->tile_h ? spec->tile_h : tgi_sink_tile_height(l->height, side);
    l->tile_w = spec->tile_w ? spec->tile_w : side;
    if (l->tile_h < 16 || l->tile_w < 16 || l->tile_h % 16 || l->tile_w % 16)
        return tgi_fail(err, TG_E_ARG, "output tile %lldx%lld: both must be multiples of 16",
                        (long long)l->tile_h, (long long)l->tile_w);
    l->pixel_bytes = (size_t)l->samples * tgi_dtype_size(l->dtype);
    l->tile_bytes =
        tgi_sat_mul(tgi_sat_mul((size_t)l->tile_h, (size_t)l->tile_w), l->pixel_bytes);
    if (!l->pixel_bytes || l->tile_bytes > INT32_MAX / 2)
        return tgi_fail(err, TG_E_ARG, "output tile %lldx%lldx%d %s takes 1 GiB or more",
                        (long long)l->tile_h, (long long)l->tile_w, l->samples,
                        tgi_dtype_name(l->dtype));
    l->pyramid = spec->pyramid;
    return take_levels(l, err);
}

int tgi_sink_predictor(tgi_compression c, tg_dtype t)
{
    return c == TGI_COMPRESSION_NONE || tgi_dtype_is_float(t) ? 1 : 2;
}

static tg_status take_codec(const tgi_sink_spec *spec, tgi_sink_layout *l, tgi_err *err)
{
    l->compression = spec->compression;
    l->level = spec->level;
    l->predictor = spec->predictor > 1 ? spec->predictor : 1;
    const int top = l->compression == TGI_COMPRESSION_DEFLATE ? 9 : 19;
    if (spec->level < 0 || spec->level > top)
        return tgi_fail(err, TG_E_ARG, "compression level %d is not 1 to %d", spec->level, top);
    if (l->predictor > 1 && (l->compression == TGI_COMPRESSION_NONE ||
                             l->predictor != (tgi_dtype_is_float(l->dtype) ? 3 : 2)))
        return tgi_fail(err, TG_E_ARG, "predictor %d does not go with %s %s", l->predictor,
                        tgi_compression_name(l->compression), tgi_dtype_name(l->dtype));
    switch (l->compression) {
    case TGI_COMPRESSION_NONE:
        l->tile_bound = l->tile_bytes;
        return TG_OK;
    case TGI_COMPRESSION_LZW:
        l->tile_bound = tgi_lzw_bound(l->tile_bytes);
        return TG_OK;
    case TGI_COMPRESSION_DEFLATE:
        l->tile_bound = tgi_deflate_bound(l->tile_bytes);
        if (tgi_deflate_available())
            return TG_OK;
        break;
    case TGI_COMPRESSION_ZSTD:
        l->tile_bound = tgi_zstd_bound(l->tile_bytes);
        if (tgi_zstd_available())
            return TG_OK;
        break;
    }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "this build cannot compress with %s; try none or lzw",
                    tgi_compression_name(l->compression));
}

static void take_resolution(const tgi_image_meta *m, tgi_sink_layout *l)
{
    double per_unit[2];
    const int unit = tgi_resolution_of(m, per_unit);
    if (unit && tgi_rational(per_unit[0], l->resolution[0]) &&
        tgi_rational(per_unit[1], l->resolution[1]))
        l->resolution_unit = unit;
}

static tg_status take_icc(const tgi_image_meta *m, tgi_sink_layout *l, tgi_err *err)
{
    if (!m || !m->icc_bytes)
        return TG_OK;
    l->icc = tgi_malloc(TGI_TAG_IO, m->icc_bytes);
    if (!l->icc)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the colour profile: %zu bytes",
                        m->icc_bytes);
    memcpy(l->icc, m->icc, m->icc_bytes);
    l->icc_bytes = m->icc_bytes;
    return TG_OK;
}

static int is_rgb(const tgi_sink_layout *l)
{
    return (l->samples == 3 || l->samples == 4) &&
           (l->dtype == TG_DTYPE_U8 || l->dtype == TG_DTYPE_U16);
}

/* What the numbers mean, where the input said it and they are as they were. Fewer than 256
 * colours of a palette are filled up. */
static tg_status take_form(const tgi_image_meta *m, tgi_sink_layout *l, tgi_err *err)
{
    const bool small =
        l->dtype == TG_DTYPE_BOOL || l->dtype == TG_DTYPE_U8 || l->dtype == TG_DTYPE_U16;
    const size_t n = l->dtype == TG_DTYPE_U16 ? 65536 : 256;
    l->photometric = is_rgb(l) ? TGI_TIFF_RGB : TGI_TIFF_MINISBLACK;
    if (!m)
        return TG_OK;
    l->orientation = m->orientation;
    l->alpha = l->samples > 1 ? m->alpha : 0;
    if (m->stored_as == TGI_STORED_MINISWHITE && l->samples == 1)
        l->photometric = TGI_TIFF_MINISWHITE;
    if (m->stored_as == TGI_STORED_CMYK && l->samples >= 4 && small)
        l->photometric = TGI_TIFF_CMYK;
    if (m->stored_as == TGI_STORED_CIELAB && l->samples >= 3)
        l->photometric = TGI_TIFF_CIELAB;
    if (m->stored_as == TGI_STORED_ICCLAB && l->samples >= 3)
        l->photometric = TGI_TIFF_ICCLAB;
    if (m->stored_as != TGI_STORED_PALETTE || !m->palette || l->samples > 1 || !small ||
        (size_t)m->n_palette > n)
        return TG_OK;
    l->palette = tgi_calloc(TGI_TAG_IO, 3 * n, sizeof *l->palette);
    if (!l->palette)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the palette");
    for (size_t k = 0; k < 3; k++)
        memcpy(l->palette + k * n, m->palette + k * (size_t)m->n_palette,
               (size_t)m->n_palette * sizeof *l->palette);
    l->n_palette = n;
    l->photometric = TGI_TIFF_PALETTE;
    return TG_OK;
}

/* Means that would be other colours. */
static tg_status check_means(const tgi_sink_spec *spec, const tgi_sink_layout *l, tgi_err *err)
{
    if (spec->pyramid != TGI_PYRAMID_MEAN)
        return TG_OK;
    if (l->photometric == TGI_TIFF_PALETTE)
        return tgi_fail(err, TG_E_ARG,
                        "means of a palette's numbers are other colours: --pyramid nearest, or "
                        "leave it out");
    if (l->photometric == TGI_TIFF_CIELAB && !tgi_dtype_is_float(l->dtype))
        return tgi_fail(err, TG_E_ARG,
                        "a and b of CIE Lab have a sign that their type has not, so means are "
                        "other colours: --pyramid nearest, or leave it out");
    return TG_OK;
}

static void choose_format(tgi_sink_layout *l)
{
    const size_t data = tgi_sat_mul((size_t)l->n_tiles, l->tile_bound);
    l->front_bytes = tgi_tiff_front_bytes(l, 0);
    l->bigtiff = tgi_sat_add(l->front_bytes, data) > CLASSIC_LIMIT;
    if (l->bigtiff)
        l->front_bytes = tgi_tiff_front_bytes(l, 1);
    l->file_bytes = tgi_sat_add(l->front_bytes, data);
}

tg_status tgi_sink_layout_make(const tgi_sink_spec *spec, tgi_sink_layout **out, tgi_err *err)
{
    tgi_sink_layout *l = tgi_calloc(TGI_TAG_IO, 1, sizeof *l);
    if (!l)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the layout of the output");
    l->dtype = spec->dtype;
    tg_status st;
    if ((st = take_axes(spec, l, err)) != TG_OK || (st = take_tiles(spec, l, err)) != TG_OK ||
        (st = take_codec(spec, l, err)) != TG_OK ||
        (st = tgi_ome_describe(l, spec->meta, &l->description, err)) != TG_OK ||
        (st = take_icc(spec->meta, l, err)) != TG_OK ||
        (st = take_form(spec->meta, l, err)) != TG_OK ||
        (st = check_means(spec, l, err)) != TG_OK) {
        tgi_sink_layout_free(&l);
        return st;
    }
    take_resolution(spec->meta, l);
    choose_format(l);
    *out = l;
    return TG_OK;
}

void tgi_sink_layout_free(tgi_sink_layout **l)
{
    if (!*l)
        return;
    tgi_free((*l)->description);
    tgi_free((*l)->icc);
    tgi_free((*l)->palette);
    tgi_free(*l);
    *l = NULL;
}

tgi_tile_place tgi_sink_tile_place(const tgi_sink_layout *l, int64_t tile_id)
{
    int k = 0;
    while (k + 1 < l->n_levels && tile_id >= l->level_of[k + 1].first)
        k++;
    const tgi_sink_level *v = &l->level_of[k];
    const int64_t at = tile_id - v->first, in_plane = at % tgi_sink_tiles_per_plane(l, k);
    tgi_tile_place p = {.level = k,
                        .plane = at / tgi_sink_tiles_per_plane(l, k),
                        .y = in_plane / v->tiles_x * l->tile_h,
                        .x = in_plane % v->tiles_x * l->tile_w};
    p.height = tgi_min(l->tile_h, v->height - p.y);
    p.width = tgi_min(l->tile_w, v->width - p.x);
    return p;
}

void tgi_sink_tile_pad(const tgi_sink_layout *l, int64_t tile_id, void *raw)
{
    const tgi_tile_place p = tgi_sink_tile_place(l, tile_id);
    const size_t pitch = (size_t)l->tile_w * l->pixel_bytes;
    const size_t inside = (size_t)p.width * l->pixel_bytes;
    char *row = raw;
    if (inside < pitch)
        for (int64_t y = 0; y < p.height; y++)
            memset(row + (size_t)y * pitch + inside, 0, pitch - inside);
    memset(row + (size_t)p.height * pitch, 0, (size_t)(l->tile_h - p.height) * pitch);
}
