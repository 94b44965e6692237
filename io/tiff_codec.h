/* tiff_codec.h - one compressed strip or tile to native samples.
 *
 * An unpacker belongs to one thread, allocates everything at open and reads untrusted bytes:
 * it writes at most `cap` bytes and answers TG_E_FORMAT when fewer than `want` come out. */
#ifndef TGI_TIFF_CODEC_H
#define TGI_TIFF_CODEC_H

#include "engine/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_unpack tgi_unpack;

/* One codec: state is made once per thread. */
typedef struct tgi_codec {
    tg_status (*open)(void **state, tgi_err *err);
    void (*close)(void *state);
    size_t (*bytes)(const void *state); /* held by the state, ours and the library's */
    tg_status (*run)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                     size_t want, tgi_err *err);
} tgi_codec;

/* unpack_zlib.c, unpack_zstd.c */
extern const tgi_codec tgi_codec_zlib, tgi_codec_zstd;

/* Unpacker for a TIFF compression code. TG_E_UNSUPPORTED: there is none. */
tg_status tgi_unpack_open(uint32_t compression, tgi_unpack **out, tgi_err *err);
void tgi_unpack_close(tgi_unpack **u);
size_t tgi_unpack_bytes(const tgi_unpack *u);
/* Decode n bytes of src. dst has room for `cap` >= want bytes. */
tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err);

/* Undo a predictor on `rows` rows of `n` elements of `size` bytes, elements of one sample lying
 * `stride` elements apart; turns file order into native order at the same time. `tmp` holds one
 * row. predictor 1 only swaps. @source TIFF 6.0 section 14; TIFF Technical Note 3. */
void tgi_unpredict(uint32_t predictor, bool swap, uint8_t *data, size_t rows, size_t n,
                   size_t size, size_t stride, uint8_t *tmp);

#endif
