/* codec_absent.c - stands in for libraries that this build does without: files that need one
 * are refused by name, never read halfway. */
#include "io/ome_xml.h"
#include "io/tiff_codec.h"

#ifndef TG_HAVE_ZLIB
static tg_status no_zlib(size_t history, void **state, tgi_err *err)
{
    (void)history, (void)state;
    return tgi_fail(err, TG_E_UNSUPPORTED, "deflate: this build was made without zlib");
}
const tgi_codec tgi_codec_zlib = {.name = "deflate", .open = no_zlib};
#endif

#ifndef TG_HAVE_ZSTD
static tg_status no_zstd(size_t history, void **state, tgi_err *err)
{
    (void)history, (void)state;
    return tgi_fail(err, TG_E_UNSUPPORTED, "zstd: this build was made without libzstd");
}
const tgi_codec tgi_codec_zstd = {.name = "zstd", .open = no_zstd};
#endif

#ifndef TG_HAVE_XML
tg_status tgi_ome_parse(const char *text, size_t n, const char *file_name, tgi_ome *out,
                        tgi_err *err)
{
    (void)text, (void)n, (void)file_name;
    *out = (tgi_ome){0};
    return tgi_fail(err, TG_E_UNSUPPORTED, "OME-TIFF: this build was made without libxml2");
}
#endif
