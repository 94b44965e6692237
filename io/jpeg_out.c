/* jpeg_out.c - JPEG files, row by row, through libjpeg: quality 95, colours at full resolution
 * (4:4:4), since what is written is a result and not a web page. Memory is a block of ours. */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/exif.h"
#include "io/jpeg_lib.h"
#include "io/picture_out.h"
#include "io/resolution.h"

#include <math.h>

#define QUALITY 95
#define MOST 65500
#define ICC_PART 65519 /* of a profile in a segment */
#define PIECE ((size_t)64 << 10)

typedef struct encoder {
    struct jpeg_compress_struct z; /* first: callbacks get it and mean the encoder */
    struct jpeg_destination_mgr to;
    tgi_jpeg lib;
    tgi_part *part; /* borrowed */
    uint64_t at;
    uint8_t *memory; /* PIECE, then the block */
    tgi_err io_error;
    tg_status io_status;
} encoder;

static tg_status jpeg_may(const tgi_picture_spec *s, tgi_err *err)
{
    if (s->height < 1 || s->width < 1 || s->height > MOST || s->width > MOST ||
        s->dtype != TG_DTYPE_U8 || (s->samples != 1 && s->samples != 3))
        return tgi_fail(
            err, TG_E_ARG,
            "a JPEG holds uint8 in 1 or 3 samples and at most %d pixels a side, not "
            "%s in %d at %lldx%lld",
            MOST, tgi_dtype_name(s->dtype), s->samples, (long long)s->height,
            (long long)s->width);
    return TG_OK;
}

static size_t block_bytes(const tgi_picture_spec *s)
{
    return tgi_jpeg_rows_bytes((size_t)s->width);
}

static size_t jpeg_bytes(const tgi_picture_spec *s)
{
    return sizeof(encoder) + PIECE + block_bytes(s) + 64 + TGI_JPEG_OUTSIDE;
}

/* ---- Destination ---- */

static void start_piece(j_compress_ptr z)
{
    encoder *e = (encoder *)z;
    e->to.next_output_byte = e->memory;
    e->to.free_in_buffer = PIECE;
}

static void write_piece(encoder *e, size_t n)
{
    e->io_status = tgi_part_write(e->part, e->at, e->memory, n, &e->io_error);
    e->at += n;
    if (e->io_status != TG_OK)
        e->z.err->error_exit((j_common_ptr)&e->z);
}

static boolean full_piece(j_compress_ptr z)
{
    write_piece((encoder *)z, PIECE);
    start_piece(z);
    return TRUE;
}

static void last_piece(j_compress_ptr z)
{
    encoder *e = (encoder *)z;
    write_piece(e, PIECE - e->to.free_in_buffer);
}

static tg_status failed(const encoder *e, tgi_err *err)
{
    return e->io_status != TG_OK
               ? tgi_fail(err, e->io_status, "%s", e->io_error.text)
               : tgi_fail(err, TG_E_INTERNAL, "%s: %s", e->part->partial, e->lib.text);
}

/* ---- Writing ---- */

static void jpeg_close(void *state)
{
    encoder *e = state;
    tgi_jpeg_destroy(&e->lib, (j_common_ptr)&e->z);
    tgi_free(e->memory);
    tgi_free(e);
}

/* A JPEG's densities end at 65535 a centimetre: pixels below 0.16 micrometres have none. */
static void take_resolution(encoder *e, const tgi_image_meta *m)
{
    double per_unit[2];
    const int unit = tgi_resolution_of(m, per_unit);
    const double x = per_unit[0], y = per_unit[1];
    if ((unit != 2 && unit != 3) || !tgi_jpeg_says(per_unit))
        return;
    e->z.density_unit = unit == 2 ? 1 : 2;
    e->z.X_density = (UINT16)lround(x);
    e->z.Y_density = (UINT16)lround(y);
}

/* Exif's orientation, and the profile in parts of what a segment holds. */
static void write_marks(encoder *e, const tgi_picture_spec *s)
{
    const tgi_image_meta *m = s->meta;
    uint8_t exif[6 + TGI_EXIF_BYTES] = "Exif";
    const size_t parts = tgi_ceil_div((int64_t)m->icc_bytes, ICC_PART);
    if (m->orientation > 1) {
        tgi_exif_make(m->orientation, exif + 6);
        jpeg_write_marker(&e->z, JPEG_APP0 + 1, exif, sizeof exif);
    }
    for (size_t i = 0; tgi_icc_fits(m, s->samples) && parts < 256 && i < parts; i++) {
        static const char name[] = "ICC_PROFILE";
        const size_t at = i * ICC_PART, left = m->icc_bytes - at;
        const unsigned n = (unsigned)(left < ICC_PART ? left : ICC_PART);
        jpeg_write_m_header(&e->z, JPEG_APP0 + 2, n + sizeof name + 2);
        for (size_t k = 0; k < sizeof name; k++)
            jpeg_write_m_byte(&e->z, name[k]);
        jpeg_write_m_byte(&e->z, (int)i + 1);
        jpeg_write_m_byte(&e->z, (int)parts);
        for (unsigned k = 0; k < n; k++)
            jpeg_write_m_byte(&e->z, m->icc[at + k]);
    }
}

static tg_status start(encoder *e, const tgi_picture_spec *s, tgi_err *err)
{
    tgi_jpeg_errors(&e->lib, (j_common_ptr)&e->z);
    if (TGI_JPEG_TRY(&e->lib))
        return failed(e, err);
    jpeg_create_compress(&e->z);
    uint8_t *block = e->memory + PIECE;
    tgi_jpeg_memory(&e->lib, (j_common_ptr)&e->z, block + (64 - (uintptr_t)block % 64) % 64,
                    block_bytes(s));
    e->to = (struct jpeg_destination_mgr){.init_destination = start_piece,
                                          .empty_output_buffer = full_piece,
                                          .term_destination = last_piece};
    e->z.dest = &e->to;
    e->z.image_width = (JDIMENSION)s->width;
    e->z.image_height = (JDIMENSION)s->height;
    e->z.input_components = s->samples;
    e->z.in_color_space = s->samples == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->z);
    jpeg_set_quality(&e->z, QUALITY, TRUE);
    e->z.comp_info[0].h_samp_factor = e->z.comp_info[0].v_samp_factor = 1;
    take_resolution(e, s->meta);
    jpeg_start_compress(&e->z, TRUE);
    if (s->meta)
        write_marks(e, s);
    return TG_OK;
}

static tg_status jpeg_create(tgi_part *to, const tgi_picture_spec *s, void **state,
                             tgi_err *err)
{
    TGI_TRY(jpeg_may(s, err));
    encoder *e = tgi_calloc(TGI_TAG_IO, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", to->partial);
    e->part = to;
    e->memory = tgi_malloc(TGI_TAG_IO, PIECE + block_bytes(s) + 64);
    tg_status st =
        e->memory ? TG_OK
                  : tgi_fail(err, TG_E_NOMEM, "%s: no memory for the picture", to->partial);
    if (st == TG_OK)
        st = start(e, s, err);
    if (st != TG_OK)
        jpeg_close(e);
    else
        *state = e;
    return st;
}

static tg_status jpeg_row(void *state, const void *row, tgi_err *err)
{
    encoder *e = state;
    JSAMPROW at = (JSAMPROW)(uintptr_t)row;
    if (TGI_JPEG_TRY(&e->lib))
        return failed(e, err);
    jpeg_write_scanlines(&e->z, &at, 1);
    return TG_OK;
}

static tg_status finish(encoder *e, tgi_err *err)
{
    if (TGI_JPEG_TRY(&e->lib))
        return failed(e, err);
    jpeg_finish_compress(&e->z);
    return TG_OK;
}

static tg_status jpeg_finish(void *state, tgi_err *err)
{
    encoder *e = state;
    TGI_TRY(finish(e, err));
    return tgi_part_sync(e->part, err);
}

const tgi_picture_writer tgi_jpeg_writer = {.name = "JPEG",
                                            .suffixes = "|jpg|jpeg|",
                                            .may = jpeg_may,
                                            .bytes = jpeg_bytes,
                                            .create = jpeg_create,
                                            .row = jpeg_row,
                                            .finish = jpeg_finish,
                                            .close = jpeg_close};
