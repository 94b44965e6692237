/* tiff_ifd.h - one TIFF directory (IFD) as a plain struct, and the arrays it points to.
 *
 * A TIFF is a header and a chain of directories. A directory is a list of entries: tag, type,
 * count, and the values or their offset. Nothing here allocates, since values stay in the file
 * until they are asked for. So a count of four billion costs one comparison with the file's
 * size.
 *
 * Source: TIFF 6.0 (Adobe, 1992), TIFF Technical Notes 1-3, the BigTIFF design page (libtiff).
 */
#ifndef TGI_TIFF_IFD_H
#define TGI_TIFF_IFD_H

#include "engine/base/tensor.h"
#include "io/rfile.h"

enum {
    TGI_TIFF_NONE = 1,
    TGI_TIFF_CCITT_RLE = 2,
    TGI_TIFF_CCITT_FAX3 = 3,
    TGI_TIFF_CCITT_FAX4 = 4,
    TGI_TIFF_LZW = 5,
    TGI_TIFF_OLD_JPEG = 6,
    TGI_TIFF_JPEG = 7,
    TGI_TIFF_DEFLATE = 8,
    TGI_TIFF_DEFLATE_OLD = 32946,
    TGI_TIFF_NEXT = 32766,
    TGI_TIFF_CCITT_RLEW = 32771,
    TGI_TIFF_PACKBITS = 32773,
    TGI_TIFF_THUNDERSCAN = 32809,
    TGI_TIFF_PIXARLOG = 32909,
    TGI_TIFF_JBIG = 34661,
    TGI_TIFF_SGILOG = 34676,
    TGI_TIFF_SGILOG24 = 34677,
    TGI_TIFF_LERC = 34887,
    TGI_TIFF_LZMA = 34925,
    TGI_TIFF_ZSTD = 50000,
    TGI_TIFF_WEBP = 50001,
    /* No code that stands in files: YCbCr that is no JPEG, which becomes RGB, whatever its
     * compression. */
    TGI_TIFF_AS_RGB = 1 << 16,
    TGI_TIFF_PLANES_AS_RGB /* in planes; such a page is none of planes any more */
};
/* Values of PhotometricInterpretation that have a name here. */
enum {
    TGI_TIFF_MINISWHITE = 0,
    TGI_TIFF_MINISBLACK = 1,
    TGI_TIFF_RGB = 2,
    TGI_TIFF_PALETTE = 3,
    TGI_TIFF_CMYK = 5,
    TGI_TIFF_YCBCR = 6,
    TGI_TIFF_CIELAB = 8,
    TGI_TIFF_ICCLAB = 9,
    TGI_TIFF_LOG_L = 32844,
    TGI_TIFF_LOG_LUV = 32845
};

/* Tags of electron microscopes: a text about the image. */
enum { TGI_TIFF_ZEISS_SEM = 34118, TGI_TIFF_FEI = 34680, TGI_TIFF_FEI_HELIOS = 34682 };

/* What YCbCr means outside JPEG. */
typedef struct tgi_tiff_ycbcr {
    uint16_t subsampling[2];              /* pixels across and down that share a colour */
    uint16_t n_coefficients, n_reference; /* 0: the tag is absent; else 3 and 6 */
    float coefficients[3], reference[6];
} tgi_tiff_ycbcr;

/* Where the values of one tag lie in the file. count 0: the tag is absent. */
typedef struct tgi_tiff_array {
    uint64_t pos, count;
    uint16_t type;
} tgi_tiff_array;

/* Tags of old JPEG, in order: where its stream or its tables lie. */
#define TGI_OLD_JPEG_TAGS 7
extern const uint16_t tgi_old_jpeg_tags[TGI_OLD_JPEG_TAGS];

typedef struct tgi_tiff_page {
    uint64_t pos, next; /* of this directory, of the next one in the chain (0: last) */
    uint64_t n_entries;
    uint32_t subfile; /* NewSubfileType: bit 0 reduced, bit 2 mask */
    uint64_t width, height;
    uint32_t bits, format, samples; /* format: 1 uint, 2 int, 3 float, as SampleFormat */
    bool bits_differ;               /* samples differ in depth or format */
    bool no_image; /* it says nothing of pixels: not how many, nor where they lie */
    bool planar, tiled;
    uint32_t compression, predictor, photometric, fill_order, depth, orientation;
    uint32_t fax_options; /* T4Options of compression 3 */
    uint32_t lerc[2];     /* LercParameters */
    bool photoshop;       /* it has tag 34377, ImageResources: Photoshop wrote it */
    tgi_tiff_ycbcr ycbcr;
    uint32_t last_extra;       /* ExtraSamples of the last sample; 0: none */
    uint64_t block_w, block_h; /* tile, or width x rows per strip */
    uint64_t written_h; /* the same, also where the image is lower: rows that may be there */
    uint32_t resolution_unit;
    double resolution[2]; /* y,x; 0: absent */
    tgi_tiff_array offsets, counts, subifds, description, software, jpeg_tables, extra,
        colormap;
    tgi_tiff_array icc, ij_counts, ij_bytes;    /* ICC profile; ImageJ's metadata */
    tgi_tiff_array lsm, uic2;                   /* of Zeiss LSM and MetaMorph STK files */
    tgi_tiff_array old_jpeg[TGI_OLD_JPEG_TAGS]; /* as tgi_old_jpeg_tags */
    tgi_tiff_array maker; /* text of an electron microscope, under the tag `maker_tag` */
    uint16_t maker_tag;
    /* Derived by tgi_tiff_page_layout. */
    uint32_t codec; /* the compression, or TGI_TIFF_AS_RGB */
    tg_dtype dtype;
    size_t sample_bytes;
    uint64_t across, down, n_blocks; /* n_blocks counts all sample planes of a planar page */
    size_t row_bytes, block_bytes;   /* of one whole block, decoded */
    size_t stored_row;               /* of a row whose samples are still packed, <= row_bytes */
    bool raw;                        /* rows need no decoding but of their byte order */
    uint64_t plane_bytes;            /* all samples of the page, decoded, no padding */
} tgi_tiff_page;

/* What parsing needs of the file. `win` is a read-form window of at least 4 KiB. */
typedef struct tgi_tiff_file {
    tgi_rfile f;
    tgi_window win;
    bool big_endian, bigtiff;
    uint64_t first_ifd;
} tgi_tiff_file;

/* 1 when the first bytes are a classic or BigTIFF header. */
int tgi_tiff_probe(const uint8_t *head, size_t n);
/* Read the header of an open file. */
tg_status tgi_tiff_header(tgi_tiff_file *t, tgi_err *err);
/* Parse the directory at `pos`. TG_E_FORMAT: it does not fit the file, or a value that every
 * image needs is missing or zero. Refuses no feature: tgi_tiff_page_layout does. */
tg_status tgi_tiff_page_parse(tgi_tiff_file *t, uint64_t pos, tgi_tiff_page *out, tgi_err *err);
/* Derive element type and block grid. Refuse by name what we do not read. */
tg_status tgi_tiff_page_layout(tgi_tiff_page *p, uint64_t file_size, tgi_err *err);
/* Read the i-th integer of an array (BYTE, SHORT, LONG, LONG8, IFD, IFD8) through window
 * `w`. */
tg_status tgi_tiff_value(const tgi_tiff_file *t, tgi_window *w, const tgi_tiff_array *a,
                         uint64_t i, uint64_t *out, tgi_err *err);
/* Read the text of an ASCII (or BYTE) array: at most `cap` bytes, NUL-terminated. NULL: the tag
 * is absent. Returned; tgi_free. */
tg_status tgi_tiff_text(const tgi_tiff_file *t, const tgi_tiff_array *a, size_t cap, char **out,
                        tgi_err *err);
const char *tgi_tiff_compression_name(uint32_t code);

#endif
