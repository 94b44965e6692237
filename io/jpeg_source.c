/* jpeg_source.c - JPEG files as images, row by row, through libjpeg.
 *
 * Colour is RGB, grey stays grey, CMYK and YCCK are four samples as stored. Sequential files
 * take a few rows of memory; progressive ones need all coefficients (two bytes a sample and
 * more), which the plan counts and the budget may refuse. A cut or damaged file is an error,
 * not a grey area. Memory is one block of ours, made once the header is known (jpeg_lib.h).
 *
 * Source: libjpeg.txt; JFIF 1.02 (density); Exif 2.3, section 4.5 (where orientation is). */
#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "io/bytes.h"
#include "io/io_formats.h"
#include "io/jpeg_lib.h"
#include "io/jpeg_marks.h"
#include "io/picture.h"

#include <string.h>

#define WINDOW ((size_t)32 << 10)
#define HEADER_BYTES ((size_t)32 << 10) /* for what reading a header takes */
#define MAX_SCANS 500 /* each one visits all coefficients, however few bytes it has */

typedef struct decoder {
    struct jpeg_decompress_struct z; /* first: callbacks get it and mean the decoder */
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    tgi_jpeg lib;
    const tgi_rfile *f;
    tgi_window win;
    uint64_t at;           /* the byte of the file behind the window */
    const uint8_t *behind; /* bytes of the window behind those that libjpeg sees */
    size_t n_behind;
    uint8_t *memory; /* the block, not aligned */
    size_t block_bytes;
    bool made_up;             /* the end mark, since the file ended */
    JDIMENSION width, height; /* at open */
    int components;
    tgi_err io_error; /* of the file, in a callback */
    tg_status io_status;
} decoder;

/* ---- Source ---- */

static void source_nothing(j_decompress_ptr z)
{
    (void)z;
}

/* The next bytes of the window: n are left of it. (What next_input_byte says of a row that is being
 * decoded is where it began.) */
static void show(decoder *d, const uint8_t *p, size_t n)
{
    const size_t now = n < TGI_JPEG_CAREFUL ? n : TGI_JPEG_CAREFUL;
    d->source.next_input_byte = p;
    d->source.bytes_in_buffer = now;
    d->behind = p + now;
    d->n_behind = n - now;
}

/* The next bytes, or the next window. At the end of the file an end mark is made up: sequential
 * data that lack their end are found damaged by libjpeg; scans that are missing would not be. */
static boolean source_more(j_decompress_ptr z)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    decoder *d = (decoder *)z;
    const uint8_t *p;
    if (d->n_behind) {
        show(d, d->behind, d->n_behind);
        return TRUE;
    }
    const uint64_t left = d->f->size > d->at ? d->f->size - d->at : 0;
    const size_t n = left < WINDOW ? (size_t)left : WINDOW;
    if (!n) {
        d->lib.damaged |= z->progressive_mode;
        if (z->progressive_mode)
            memcpy(d->lib.text, "the file ends too early", 24);
        d->made_up = true;
        d->source.next_input_byte = end;
        d->source.bytes_in_buffer = sizeof end;
        return TRUE;
    }
    d->io_status = tgi_window_get(&d->win, d->f, d->at, n, n, &p, &d->io_error);
    if (d->io_status != TG_OK)
        z->err->error_exit((j_common_ptr)z);
    d->at += n;
    show(d, p, n);
    return TRUE;
}

static void source_skip(j_decompress_ptr z, long n)
{
    decoder *d = (decoder *)z;
    const size_t want = n > 0 ? (size_t)n : 0, have = d->source.bytes_in_buffer + d->n_behind;
    const size_t now = want < have ? want : have;
    show(d, d->source.next_input_byte + now, have - now);
    d->at = tgi_sat_add(d->at, want - now); /* past the end: source_more sees it */
}

static void count_scans(j_common_ptr info)
{
    decoder *d = (decoder *)info;
    if (d->z.input_scan_number <= MAX_SCANS)
        return;
    d->io_status =
        tgi_fail(&d->io_error, TG_E_FORMAT, "a JPEG of more than %d scans", MAX_SCANS);
    info->err->error_exit(info);
}

static tg_status failed(const decoder *d, tgi_err *err)
{
    if (d->io_status != TG_OK)
        return tgi_fail(err, d->io_status, "%s", d->io_error.text);
    return tgi_fail(err, d->lib.starved ? TG_E_UNSUPPORTED : TG_E_FORMAT, "JPEG data: %s",
                    d->lib.starved ? "sampling factors that need more memory than planned"
                                   : d->lib.text);
}

/* ---- Header ---- */

static void start_over(decoder *d)
{
    tgi_jpeg_reset(&d->lib, (j_common_ptr)&d->z);
    d->at = 0;
    d->made_up = false;
    d->source.bytes_in_buffer = d->n_behind = 0;
    d->io_status = TG_OK;
}

static tg_status read_header(decoder *d, tgi_err *err)
{
    if (TGI_JPEG_TRY(&d->lib))
        return failed(d, err);
    start_over(d);
    jpeg_read_header(&d->z, TRUE);
    d->z.out_color_space = d->z.num_components == 4   ? JCS_CMYK
                           : d->z.num_components == 1 ? JCS_GRAYSCALE
                                                      : JCS_RGB;
    return TG_OK;
}

static tg_status check_header(const decoder *d, tgi_err *err)
{
    const int n = d->z.num_components;
    if (d->z.data_precision != 8)
        return tgi_fail(err, TG_E_UNSUPPORTED, "JPEG of %d bits a sample is not supported",
                        d->z.data_precision);
    if (n != 1 && n != 3 && n != 4)
        return tgi_fail(err, TG_E_UNSUPPORTED, "JPEG of %d components is not supported", n);
    return TG_OK;
}

static void fill_info(const decoder *d, tgi_image_info *i)
{
    const struct jpeg_decompress_struct *z = &d->z;
    const double per_metre = z->density_unit == 1 ? 100 / 2.54 : 100;
    i->width = z->image_width;
    i->height = z->image_height;
    i->samples = z->num_components;
    i->dtype = TG_DTYPE_U8;
    i->compression = "JPEG";
    i->meta.colours = z->num_components;
    i->meta.stored_as = z->num_components == 4 ? TGI_STORED_CMYK : TGI_STORED_LIGHT;
    if (z->saw_JFIF_marker && (z->density_unit == 1 || z->density_unit == 2))
        tgi_picture_resolution(&i->meta, z->X_density * per_metre, z->Y_density * per_metre);
}

/* ---- Memory ---- */

/* All coefficients of all components, where they are needed at once. */
static size_t coefficient_bytes(decoder *d)
{
    size_t n = 0;
    if (!jpeg_has_multiple_scans(&d->z))
        return 0;
    for (int i = 0; i < d->z.num_components; i++) {
        const jpeg_component_info *c = &d->z.comp_info[i];
        const size_t w = (size_t)c->width_in_blocks + (size_t)c->h_samp_factor;
        const size_t h = (size_t)c->height_in_blocks + (size_t)c->v_samp_factor;
        n += h * (w * sizeof(JBLOCK) + 64 + sizeof(void *)); /* <= 8189^2 * 128 each */
    }
    return n + ((size_t)64 << 10);
}

static size_t jpeg_bytes(const void *state)
{
    const decoder *d = state;
    return sizeof *d + d->block_bytes + 64 + WINDOW + TGI_JPEG_OUTSIDE;
}

static tg_status use_block(decoder *d, size_t bytes, tgi_err *err)
{
    tgi_free(d->memory);
    d->block_bytes = bytes;
    d->memory = tgi_malloc(TGI_TAG_IO, bytes + 64);
    if (!d->memory)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a JPEG decoder of %zu bytes", bytes);
    tgi_jpeg_memory(&d->lib, (j_common_ptr)&d->z,
                    d->memory + (64 - (uintptr_t)d->memory % 64) % 64, bytes);
    return TG_OK;
}

static void jpeg_close(void *state)
{
    decoder *d = state;
    tgi_jpeg_destroy(&d->lib, (j_common_ptr)&d->z);
    tgi_window_free(&d->win);
    tgi_free(d->memory);
    tgi_free(d);
}

static bool create(decoder *d)
{
    tgi_jpeg_errors(&d->lib, (j_common_ptr)&d->z);
    if (TGI_JPEG_TRY(&d->lib))
        return false;
    jpeg_create_decompress(&d->z);
    return true;
}

static tg_status open_parts(decoder *d, size_t budget, tgi_image_info *info, tgi_err *err)
{
    if (!create(d))
        return tgi_fail(err, TG_E_NOMEM, "no memory for a JPEG decoder");
    TGI_TRY(tgi_window_init(&d->win, WINDOW, err));
    TGI_TRY(use_block(d, HEADER_BYTES, err));
    d->source = (struct jpeg_source_mgr){.init_source = source_nothing,
                                         .fill_input_buffer = source_more,
                                         .skip_input_data = source_skip,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = source_nothing};
    d->progress.progress_monitor = count_scans;
    d->z.src = &d->source;
    d->z.progress = &d->progress;
    TGI_TRY(read_header(d, err));
    TGI_TRY(check_header(d, err));
    fill_info(d, info);
    TGI_TRY(tgi_jpeg_marks(d->f, &d->win, &info->meta, err));
    d->width = d->z.image_width;
    d->height = d->z.image_height;
    d->components = d->z.num_components;
    const size_t rows = tgi_jpeg_rows_bytes(d->z.image_width), all = coefficient_bytes(d);
    char text[2][32];
    d->block_bytes = rows + all;
    const size_t row = (size_t)d->z.image_width * (size_t)d->z.num_components;
    if (jpeg_bytes(d) + row > budget) {
        const tg_status st =
            tgi_fail(err, TG_E_BUDGET,
                     "a %sJPEG of %u x %u pixels needs %s to be decoded, %s are "
                     "allowed (a quarter of --ram): give a larger one",
                     all ? "progressive " : "", d->z.image_width, d->z.image_height,
                     tgi_size_above(jpeg_bytes(d) + row, text[0], sizeof text[0]),
                     tgi_size_below(budget, text[1], sizeof text[1]));
        return tgi_err_tried(err, st, TGI_DECODER_ASKS, jpeg_bytes(d) + row);
    }
    tgi_jpeg_reset(&d->lib, (j_common_ptr)&d->z);
    return use_block(d, rows + all, err);
}

static tg_status jpeg_open(const tgi_rfile *f, size_t budget, tgi_image_info *info,
                           void **state, tgi_err *err)
{
    decoder *d = tgi_calloc(TGI_TAG_IO, 1, sizeof *d);
    if (!d)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a JPEG reader");
    d->f = f;
    const tg_status st = open_parts(d, budget, info, err);
    if (st != TG_OK)
        jpeg_close(d);
    else
        *state = d;
    return st;
}

/* ---- Rows ---- */

static tg_status start(decoder *d, tgi_err *err)
{
    if (TGI_JPEG_TRY(&d->lib))
        return failed(d, err);
    d->z.do_block_smoothing = FALSE; /* it is for files that are still arriving */
    jpeg_start_decompress(&d->z);
    if (jpeg_has_multiple_scans(&d->z))
        tgi_jpeg_check_scans(&d->lib, &d->z);
    return TG_OK;
}

static tg_status read_row(decoder *d, uint8_t *row, tgi_err *err)
{
    JSAMPROW at = row;
    if (TGI_JPEG_TRY(&d->lib))
        return failed(d, err);
    jpeg_read_scanlines(&d->z, &at, 1);
    return TG_OK;
}

static tg_status damage(const decoder *d, tgi_err *err)
{
    return d->lib.damaged ? tgi_fail(err, TG_E_FORMAT, "JPEG data: %s", d->lib.text) : TG_OK;
}

static tg_status jpeg_begin(void *state, tgi_err *err)
{
    decoder *d = state;
    TGI_TRY(read_header(d, err));
    if (d->z.image_width != d->width || d->z.image_height != d->height ||
        d->z.num_components != d->components)
        return tgi_fail(err, TG_E_CHANGED, "the JPEG is not the one that was opened");
    TGI_TRY(start(d, err));
    return damage(d, err);
}

static tg_status jpeg_row(void *state, uint8_t *row, tgi_err *err)
{
    decoder *d = state;
    TGI_TRY(read_row(d, row, err));
    return damage(d, err);
}

static tg_status finish(decoder *d, tgi_err *err)
{
    if (TGI_JPEG_TRY(&d->lib))
        return failed(d, err);
    jpeg_finish_decompress(&d->z);
    return TG_OK;
}

static tg_status jpeg_end(void *state, tgi_err *err)
{
    decoder *d = state;
    TGI_TRY(finish(d, err));
    TGI_TRY(damage(d, err));
    return d->made_up ? tgi_fail(err, TG_E_FORMAT, "the JPEG is cut: it ends without EOI")
                      : TG_OK;
}

/* ---- The format ---- */

static const tgi_picture_ops ops = {.open = jpeg_open,
                                    .close = jpeg_close,
                                    .bytes = jpeg_bytes,
                                    .begin = jpeg_begin,
                                    .row = jpeg_row,
                                    .end = jpeg_end};

static tg_status source_open(const char *path, const tgi_open_opts *o, tgi_source **out,
                             tgi_err *err)
{
    return tgi_picture_open(&tgi_jpeg_source_ops, &ops, path, o, out, err);
}

const tgi_source_ops tgi_jpeg_source_ops = {
    .format = "jpeg",
    .fuzzed = TGI_FUZZED,
    .probe = tgi_jpeg_probe,
    .open = source_open,
    .info = tgi_picture_info,
    .read = tgi_picture_read,
    .close = tgi_picture_close,
    .codec_bytes = tgi_picture_bytes,
    .stream_rows = tgi_picture_keeps,
    .decoded_bytes = tgi_picture_decoded,
    .held = tgi_picture_held,
};
