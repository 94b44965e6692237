/* codec_absent.c - stands in for libraries that this build does without: files that need one
 * are refused by name, never read halfway. */
#include "io/ome_xml.h"
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
        .name = codec_name, .open = no_##id, .picture = is_picture};

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
#endif
#ifndef TG_HAVE_WEBP
ABSENT(webp, "WebP", "libwebp", true)
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
