/* unpack_zstd.c - zstd strips through libzstd, one frame each, in a single call: that form
 * needs no window beside the output, so the context made at open is all it ever holds. */
#include "io/tiff_codec.h"

#include <zstd.h>

static tg_status zstd_open(void **state, tgi_err *err)
{
    *state = ZSTD_createDCtx();
    return *state ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a zstd decoder");
}

static void zstd_close(void *state)
{
    ZSTD_freeDCtx(state);
}

static size_t zstd_bytes(const void *state)
{
    return ZSTD_sizeof_DCtx(state);
}

static tg_status zstd_run(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                          size_t want, tgi_err *err)
{
    const size_t frame = ZSTD_findFrameCompressedSize(src, n); /* bytes behind it are padding */
    if (ZSTD_isError(frame))
        return tgi_fail(err, TG_E_FORMAT, "zstd data: %s", ZSTD_getErrorName(frame));
    const size_t got = ZSTD_decompressDCtx(state, dst, cap, src, frame);
    if (ZSTD_isError(got))
        return tgi_fail(err, TG_E_FORMAT, "zstd data: %s", ZSTD_getErrorName(got));
    if (got < want)
        return tgi_fail(err, TG_E_FORMAT, "zstd data ends after %zu of %zu bytes", got, want);
    return TG_OK;
}

const tgi_codec tgi_codec_zstd = {zstd_open, zstd_close, zstd_bytes, zstd_run};
