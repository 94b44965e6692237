/* sink.h - the output image: where every byte of it will lie, decided before the first pixel.
 *
 * The output is our own tiled TIFF. All of its directories stand in the front of the file, at
 * positions that depend on the layout alone; behind them tile data is appended in the order the
 * plan fixes, and last of all the front is written again with the offsets filled in:
 *
 *     [header | shared values | directory of plane 0, 1, ... | offsets | byte counts | pad]
 *     [tile data, in the order of appending                                              ]
 *
 * So an interrupted file is a front of zeros and a prefix of the tiles, which is what makes a
 * cheap journal possible (engine/out/journal.h). This header makes layouts, encodes single
 * tiles and generates the front; it opens no file.
 *
 * Source: TIFF 6.0; TIFF Technical Note 3 (floating-point predictor); the BigTIFF design page;
 * OME-XML schema 2016-06. */
#ifndef TGI_SINK_H
#define TGI_SINK_H

#include "engine/base/status.h"
#include "engine/base/tensor.h"
#include "io/image.h"

#include <stddef.h>
#include <stdint.h>

typedef enum tgi_compression {
    TGI_COMPRESSION_NONE,
    TGI_COMPRESSION_DEFLATE,
    TGI_COMPRESSION_ZSTD,
    TGI_COMPRESSION_LZW
} tgi_compression;

/* How a level of a pyramid is made of the one above it. */
typedef enum tgi_pyramid {
    TGI_PYRAMID_NONE,
    TGI_PYRAMID_MEAN,   /* of 2x2 pixels, fewer at an odd border */
    TGI_PYRAMID_NEAREST /* the first of them: for labels */
} tgi_pyramid;

/* What the caller wants. Zero means default in tile_h .. predictor. */
typedef struct tgi_sink_spec {
    tg_dtype dtype; /* BOOL is written as uint8 */
    /* Plane axes in order (last fastest), then Y, X and, when samples are interleaved, S:
     * "TZCYX", "YXS", "YX". */
    char axes[TGI_IMAGE_MAX_AXES + 1];
    int64_t shape[TGI_IMAGE_MAX_AXES];
    int64_t tile_h, tile_w; /* multiples of 16; 0: tgi_sink_tile_height, tgi_sink_tile_side */
    tgi_compression compression;
    int level;                  /* deflate 1..9, zstd 1..19; 0: the codec's default (6, 3) */
    int predictor;              /* 0, 1: none; 2: differences (integers); 3: floating point */
    tgi_pyramid pyramid;        /* levels in SubIFDs, down to one of at most 256 x 256 */
    const tgi_image_meta *meta; /* carried over; NULL: nothing known; borrowed for the call */
} tgi_sink_spec;

/* One level of the pyramid; 0 is the image. */
typedef struct tgi_sink_level {
    int64_t height, width, tiles_y, tiles_x;
    int64_t first; /* id of its first tile; others follow by plane, row, column */
} tgi_sink_level;

/* Everything that follows from a spec. Made by tgi_sink_layout_make, constant afterwards. */
typedef struct tgi_sink_layout {
    tg_dtype dtype;
    char axes[TGI_IMAGE_MAX_AXES + 1];
    int n_axes;
    int64_t shape[TGI_IMAGE_MAX_AXES];
    int64_t n_planes, height, width;
    int samples; /* interleaved in a pixel */
    int64_t tile_h, tile_w, tiles_y, tiles_x;
    int64_t n_tiles; /* of all levels and planes; of the image: tile id =
                        (plane * tiles_y + ty) * tiles_x + tx */
    tgi_pyramid pyramid;
    int n_levels; /* 1: no pyramid */
    tgi_sink_level level_of[TGI_IMAGE_MAX_LEVELS];
    tgi_compression compression;
    int level, predictor;
    int bigtiff;          /* offsets beyond 4 GiB are possible */
    size_t pixel_bytes;   /* samples * dtype size */
    size_t tile_bytes;    /* one raw tile: tile_h rows of tile_w pixels, no gaps */
    size_t tile_bound;    /* most bytes one encoded tile can take; == tile_bytes when NONE */
    uint64_t front_bytes; /* tile data begins here; multiple of 64 */
    uint64_t file_bytes;  /* exact size when NONE, else an upper bound (the plan's disk line) */
    /* Only for the generator of the front. */
    char *description; /* ImageDescription of the first directory; 7-bit; owned */
    uint8_t *icc;      /* colour profile, or NULL; owned */
    size_t icc_bytes;
    uint32_t resolution[2][2]; /* x,y: numerator, denominator */
    int resolution_unit;       /* 0: no resolution known */
    unsigned photometric;      /* as the tag */
    int orientation;           /* above 1: written */
    int alpha;                 /* ExtraSamples of the last sample */
    uint16_t *palette;         /* 3 * n_palette of photometric 3; owned */
    size_t n_palette;
} tgi_sink_layout;

/* Side of the tiles of an image of which nobody asked for a size: 256, or the smallest power of
 * two (from 16 on) that holds a plane. Tiles are stored at full size, so those of a long series
 * of small planes would be mostly padding. */
int64_t tgi_sink_tile_side(int64_t height, int64_t width);
/* Height of the tiles of that side: no more than the rows of the image need. */
int64_t tgi_sink_tile_height(int64_t height, int64_t side);

/* Side of the tiles of an image that is computed in cells of `cell` pixels, a multiple of 16. Cells
 * end on tiles, so it divides the cell: 256, 128 or 64, else the largest multiple of 16 up to 256,
 * else the smallest up to 512. Below TGI_SINK_TILE_SMALL only where no other divides the cell:
 * a file of such tiles is slow to read. */
int64_t tgi_sink_tile_of_cell(int64_t cell);
#define TGI_SINK_TILE_SMALL 64

/* What jobs choose: differences of integers, nothing of floats. Predictor 3 would save them a fifth (zstd, 512x512
 * denoised), but Bio-Formats, and so Fiji, QuPath and OMERO, does not read it. */
int tgi_sink_predictor(tgi_compression c, tg_dtype t);

/* Decide the layout of `spec`. Returned; release with tgi_sink_layout_free.
 * TG_E_ARG axes, shape or tile out of range; TG_E_UNSUPPORTED a codec this build lacks. */
tg_status tgi_sink_layout_make(const tgi_sink_spec *spec, tgi_sink_layout **out, tgi_err *err);
void tgi_sink_layout_free(tgi_sink_layout **l);

/* "none", "deflate", "zstd", "lzw" -> code and back; false when the name is none of these. */
bool tgi_compression_parse(const char *name, tgi_compression *out);
const char *tgi_compression_name(tgi_compression c);

/* One tile's place in the image. height and width are those of its part inside the image;
 * edge tiles are stored at full size all the same. */
typedef struct tgi_tile_place {
    int level;
    int64_t plane, y, x, height, width;
} tgi_tile_place;
tgi_tile_place tgi_sink_tile_place(const tgi_sink_layout *l, int64_t tile_id);

/* Zero what of a raw tile lies outside the image. */
void tgi_sink_tile_pad(const tgi_sink_layout *l, int64_t tile_id, void *raw);

/* ---- The front --------------------------------------------------------------------------- */

/* Takes the next `n` bytes of the front. */
typedef tg_status tgi_sink_emit(void *arg, const void *bytes, size_t n, tgi_err *err);

/* Generate all front_bytes in order, in pieces of at most 64 KiB put together in `scratch`
 * (TGI_SINK_SCRATCH bytes). offset[tile id] and length[tile id] fill the arrays; both NULL:
 * zeros. */
#define TGI_SINK_SCRATCH 65536u
tg_status tgi_sink_front(const tgi_sink_layout *l, const uint64_t *offset,
                         const uint32_t *length, void *scratch, tgi_sink_emit *emit, void *arg,
                         tgi_err *err);
/* The same with all bits of all offsets and lengths set. So a byte that is fixed is the same in
 * both, and any other is 0 in a front of zeros and 0xff in this one. */
tg_status tgi_sink_front_ones(const tgi_sink_layout *l, void *scratch, tgi_sink_emit *emit,
                              void *arg, tgi_err *err);

/* ---- One tile ---------------------------------------------------------------------------- */

/* State of one encoding worker; all of it lies in memory the caller gives. */
typedef struct tgi_tile_codec tgi_tile_codec;

/* Bytes that tgi_tile_codec_open needs for this layout (a multiple of 64). */
size_t tgi_tile_codec_bytes(const tgi_sink_layout *l);
/* Make a codec in `memory` (64-byte aligned, tgi_tile_codec_bytes). View of `memory`: nothing
 * is allocated besides it, there is nothing to close. */
tg_status tgi_tile_codec_open(const tgi_sink_layout *l, void *memory, tgi_tile_codec **out,
                              tgi_err *err);
/* Encode one raw tile into dst (tile_bound bytes); `raw` is spoiled (predictors work in place).
 * The same bytes for the same tile, whatever was encoded before and on which worker. */
tg_status tgi_tile_encode(tgi_tile_codec *c, void *raw, void *dst, size_t *n, tgi_err *err);
/* "zlib 1.2.13 level 6": belongs to a job's fingerprint, another version writes other bytes. */
const char *tgi_tile_codec_text(const tgi_sink_layout *l, char *buf, size_t cap);

#endif
