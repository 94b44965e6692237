/* codec_absent.c - stands in for libraries that this build does without: files that need one
 * are refused by name, never read halfway. */
#include "io/io_formats.h"
#include "io/ome_xml.h"
#include "io/picture_out.h"
#include "io/png.h"
#include "io/tiff_codec.h"

/* A line of the table of TIFF codecs whose library is not there. */
#define ABSENT(id, codec_name, library, is_picture)                                            \
    static tg_status no_##id(const tgi_packing *p, void **state, tgi_err *err)                 \
    {                                                                                          \
        (void)p, (void)state;                                                                  \
        return tgi_fail(err, TG_E_UNSUPPORTED,                                                 \
                        codec_name ": this build was made without " library);                  \
    }                                                                                          \
    const tgi_codec tgi_codec_##id = {                                                         \
        .name = codec_name, .fuzzed = TGI_FUZZED, .open = no_##id, .picture = is_picture};
#define ABSENT_LIB(id, codec_name)                                                             \
    static tg_status no_##id(const tgi_packing *p, void **state, tgi_err *err)                 \
    {                                                                                          \
        (void)p, (void)state;                                                                  \
        return tgi_fail(err, TG_E_UNSUPPORTED,                                                 \
                        codec_name ": this build was made without libtiff 4.5");               \
    }                                                                                          \
    const tgi_codec tgi_codec_##id = {.name = codec_name,                                      \
                                      .fuzzed = TGI_FUZZED,                                    \
                                      .open = no_##id,                                         \
                                      .native = true,                                          \
                                      .turns = true};

#ifndef TG_HAVE_ZLIB
ABSENT(zlib, "deflate", "zlib", false)
#endif
#ifndef TG_HAVE_ZSTD
ABSENT(zstd, "zstd", "libzstd", false)
#endif
#ifndef TG_HAVE_LZMA
ABSENT(lzma, "LZMA", "liblzma", false)
#endif
#ifndef TG_HAVE_JPEG
ABSENT(jpeg, "JPEG", "libjpeg", true)

static tg_status no_jpeg_source(const char *path, const tgi_open_opts *o, tgi_source **out,
                                tgi_err *err)
{
    (void)path, (void)o, (void)out;
    return tgi_fail(err, TG_E_UNSUPPORTED, "JPEG: this build was made without libjpeg");
}

static tg_status no_jpeg_writer(const tgi_picture_spec *s, tgi_err *err)
{
    (void)s;
    return tgi_fail(err, TG_E_UNSUPPORTED, "JPEG: this build was made without libjpeg");
}
const tgi_picture_writer tgi_jpeg_writer = {
    .name = "JPEG", .suffixes = "|jpg|jpeg|", .may = no_jpeg_writer};

const tgi_source_ops tgi_jpeg_source_ops = {
    .format = "jpeg", .fuzzed = TGI_FUZZED, .probe = tgi_jpeg_probe, .open = no_jpeg_source};
#endif
#ifndef TG_HAVE_PNG
static tg_status no_png_source(const char *path, const tgi_open_opts *o, tgi_source **out,
                               tgi_err *err)
{
    (void)path, (void)o, (void)out;
    return tgi_fail(err, TG_E_UNSUPPORTED, "PNG: this build was made without libpng");
}

static tg_status no_png_writer(const tgi_picture_spec *s, tgi_err *err)
{
    (void)s;
    return tgi_fail(err, TG_E_UNSUPPORTED, "PNG: this build was made without libpng");
}
const tgi_picture_writer tgi_png_writer = {
    .name = "PNG", .suffixes = "|png|", .may = no_png_writer};

tg_status tgi_png_write(const char *path, const uint8_t *pixels, int64_t height, int64_t width,
                        int channels, size_t pitch, tgi_err *err)
{
    (void)pixels, (void)height, (void)width, (void)channels, (void)pitch;
    return tgi_fail(err, TG_E_UNSUPPORTED, "%s: this build was made without libpng", path);
}

const tgi_source_ops tgi_png_source_ops = {
    .format = "png", .fuzzed = TGI_FUZZED, .probe = tgi_png_probe, .open = no_png_source};
#endif
#ifndef TG_HAVE_WEBP
ABSENT(webp, "WebP", "libwebp", true)
#endif

#ifndef TG_HAVE_TIFF
ABSENT_LIB(jbig, "JBIG")
ABSENT_LIB(lerc, "LERC")
ABSENT_LIB(logluv, "LogLuv")
ABSENT_LIB(next, "NeXT")
ABSENT_LIB(old_jpeg, "old JPEG")
ABSENT_LIB(pixarlog, "PixarLog")
#endif

#ifndef TG_HAVE_XML
tg_status tgi_ome_parse(const char *text, size_t n, const char *file_name, int image,
                        tgi_ome *out, tgi_err *err)
{
    (void)text, (void)n, (void)file_name, (void)image;
    *out = (tgi_ome){0};
    return tgi_fail(err, TG_E_UNSUPPORTED, "OME-TIFF: this build was made without libxml2");
}
#endif
