/* unpack_webp.c - WebP strips and tiles through libwebp, whole.
 *
 * libwebp has no hooks for memory. What it takes while it decodes one block is bounded by the
 * picture's size, which is compared with the block's before anything is decoded; the bound is
 * part of the plan. Source: webp/decode.h; the container and lossless bitstream specifications.
 */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <webp/decode.h>

typedef struct webp {
    uint32_t width, samples;
} webp;

static tg_status webp_open(const tgi_packing *p, void **state, tgi_err *err)
{
    webp *w = tgi_malloc(TGI_TAG_IO, sizeof *w);
    if (!w)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a WebP decoder");
    *w = (webp){p->width, p->samples};
    *state = w;
    return TG_OK;
}

static void webp_begin(void *state)
{
    (void)state;
}

/* Lossless: 4 bytes a pixel for the picture and as many for its transforms; codes and caches
 * beside it. Lossy takes less: rows, and the alpha plane. */
static size_t webp_bytes(const tgi_packing *p)
{
    return sizeof(webp) + p->block_bytes / p->samples * 8 + ((size_t)1 << 20);
}

static tg_status webp_whole(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                            size_t *got, tgi_err *err)
{
    const webp *w = state;
    const size_t pitch = (size_t)w->width * w->samples;
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(src, n, &f) != VP8_STATUS_OK)
        return tgi_fail(err, TG_E_FORMAT, "WebP data: no header");
    if (f.has_animation)
        return tgi_fail(err, TG_E_FORMAT, "WebP data: an animation");
    if ((uint32_t)f.width != w->width || (size_t)f.height > cap / pitch)
        return tgi_fail(err, TG_E_FORMAT, "WebP data: %d x %d pixels in a block of %u x %zu",
                        f.width, f.height, w->width, cap / pitch);
    const uint8_t *done = w->samples == 4 ? WebPDecodeRGBAInto(src, n, dst, cap, (int)pitch)
                                          : WebPDecodeRGBInto(src, n, dst, cap, (int)pitch);
    if (!done)
        return tgi_fail(err, TG_E_FORMAT, "WebP data: damaged, or memory ran out");
    *got = (size_t)f.height * pitch;
    return TG_OK;
}

const tgi_codec tgi_codec_webp = {.name = "WebP",
                                  .fuzzed = TGI_FUZZED,
                                  .open = webp_open,
                                  .close = tgi_free,
                                  .bytes = webp_bytes,
                                  .begin = webp_begin,
                                  .whole = webp_whole,
                                  .picture = true};
