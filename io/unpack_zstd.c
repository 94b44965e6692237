/* unpack_zstd.c - zstd strips through libzstd, one frame each.
 *
 * A block that is decoded whole is one call, which needs no window beside the output. Streaming
 * needs the window that the frame's header states; the context is then "static": it lives in a
 * block of ours, sized for the largest window of the file, and never allocates.
 * Source: zstd.h, sections "streaming decompression" and "static allocation". */
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticDStream, ZSTD_getFrameHeader, estimates */
#include <zstd.h>
#include <zstd_errors.h>

static size_t zstd_bytes(const tgi_packing *p)
{
    return p->history ? ZSTD_estimateDStreamSize(p->history) : ZSTD_estimateDCtxSize();
}

/* A static context is its own block: nothing else to free. */
static tg_status zstd_open(const tgi_packing *p, void **state, tgi_err *err)
{
    const size_t bytes = zstd_bytes(p);
    void *block = tgi_malloc(TGI_TAG_IO, bytes);
    if (!block)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a zstd decoder of %zu bytes", bytes);
    *state = p->history ? (void *)ZSTD_initStaticDStream(block, bytes)
                        : (void *)ZSTD_initStaticDCtx(block, bytes);
    if (*state == block)
        return TG_OK;
    tgi_free(block);
    return tgi_fail(err, TG_E_INTERNAL, "zstd does not start in %zu bytes", bytes);
}

static tg_status zstd_whole(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                            size_t *got, tgi_err *err)
{
    const size_t frame = ZSTD_findFrameCompressedSize(src, n); /* bytes behind it are padding */
    *got = 0;
    if (ZSTD_getErrorCode(frame) == ZSTD_error_srcSize_wrong)
        return TG_OK; /* too few pixels: the caller says so */
    if (ZSTD_isError(frame))
        return tgi_fail(err, TG_E_FORMAT, "zstd data: %s", ZSTD_getErrorName(frame));
    *got = ZSTD_decompressDCtx(state, dst, cap, src, frame);
    if (ZSTD_isError(*got))
        return tgi_fail(err, TG_E_FORMAT, "zstd data: %s", ZSTD_getErrorName(*got));
    return TG_OK;
}

static void zstd_begin(void *state)
{
    ZSTD_DCtx_reset(state, ZSTD_reset_session_only);
}

static tg_status zstd_more(void *state, tgi_pieces *io, tgi_err *err)
{
    while (io->room) {
        ZSTD_inBuffer in = {io->src, io->n, 0};
        ZSTD_outBuffer out = {io->dst, io->room, 0};
        const size_t rc = ZSTD_decompressStream(state, &out, &in);
        if (ZSTD_isError(rc))
            return tgi_fail(err, TG_E_FORMAT, "zstd data: %s", ZSTD_getErrorName(rc));
        io->src += in.pos, io->n -= in.pos;
        io->dst += out.pos, io->room -= out.pos;
        io->ended = rc == 0;
        if (io->ended || (!in.pos && !out.pos))
            break;
    }
    return TG_OK;
}

static size_t zstd_history(const uint8_t *head, size_t n)
{
    ZSTD_frameHeader h;
    return ZSTD_getFrameHeader(&h, head, n) == 0 ? (size_t)h.windowSize : 0;
}

const tgi_codec tgi_codec_zstd = {.name = "zstd",
                                  .fuzzed = TGI_FUZZED,
                                  .open = zstd_open,
                                  .close = tgi_free,
                                  .bytes = zstd_bytes,
                                  .begin = zstd_begin,
                                  .more = zstd_more,
                                  .sealed = true,
                                  .whole = zstd_whole,
                                  .history = zstd_history,
                                  .when = TGI_HISTORY_STREAMS};
