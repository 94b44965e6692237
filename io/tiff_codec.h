/* tiff_codec.h - compressed strips and tiles to native samples, whole or as a stream.
 *
 * An unpacker belongs to one thread, allocates everything at open and reads untrusted bytes: it
 * never writes past the room it was given and answers TG_E_FORMAT for damage. Streaming means
 * that compressed bytes go in and pixels come out in pieces of any size, so a strip of many
 * gigabytes takes the memory of the codec's own history and nothing else. */
#ifndef TGI_TIFF_CODEC_H
#define TGI_TIFF_CODEC_H

#include "engine/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_unpack tgi_unpack;

/* What goes in and out; both sides move forward as they are used. */
typedef struct tgi_pieces {
    const uint8_t *src;
    size_t n; /* left of src */
    uint8_t *dst;
    size_t room; /* left of dst */
    bool ended;  /* the codec's end mark was met: nothing more will come */
} tgi_pieces;

/* One codec: state is made once per thread or stream. */
typedef struct tgi_codec {
    const char *name;
    /* `history`: bytes that matches may reach back, as the codec's `history` says; 0 when
     * blocks are decoded whole only. */
    tg_status (*open)(size_t history, void **state, tgi_err *err);
    void (*close)(void *state);
    size_t (*bytes)(size_t history); /* what open allocates, ours and the library's */
    void (*begin)(void *state);      /* a new block */
    /* Go on until the room is full, or the source is used up, or the end mark. */
    tg_status (*more)(void *state, tgi_pieces *io, tgi_err *err);
    /* Optional: a whole block at once where that is cheaper. Returns bytes in *got. */
    tg_status (*whole)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                       size_t *got, tgi_err *err);
    /* Optional: the history that the block beginning with these bytes asks for. */
    size_t (*history)(const uint8_t *head, size_t n);
} tgi_codec;

/* Bytes of a block that `history` needs to see. */
#define TGI_CODEC_HEAD 18

/* unpack_lzw.c, unpack_packbits.c, unpack_zlib.c, unpack_zstd.c */
extern const tgi_codec tgi_codec_lzw, tgi_codec_packbits, tgi_codec_zlib, tgi_codec_zstd;

/* Unpacker for a TIFF compression code. TG_E_UNSUPPORTED: there is none. */
tg_status tgi_unpack_open(uint32_t compression, size_t history, tgi_unpack **out, tgi_err *err);
void tgi_unpack_close(tgi_unpack **u);
/* What an unpacker takes, before it is opened. */
size_t tgi_unpack_bytes(uint32_t compression, size_t history);
/* 1 when blocks of this compression state how far back they reach. */
bool tgi_unpack_has_history(uint32_t compression);
size_t tgi_unpack_history(uint32_t compression, const uint8_t *head, size_t n);
/* Decode n bytes of src whole. dst has room for `cap` >= want bytes; fewer than `want` are
 * TG_E_FORMAT. */
tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err);
/* Streaming: begin a block, then go on as often as there is something to decode. */
void tgi_unpack_begin(tgi_unpack *u);
tg_status tgi_unpack_more(tgi_unpack *u, tgi_pieces *io, tgi_err *err);
const char *tgi_unpack_name(const tgi_unpack *u);

/* Undo a predictor on `rows` rows of `n` elements of `size` bytes, elements of one sample lying
 * `stride` elements apart; turns file order into native order at the same time. `tmp` holds one
 * row. predictor 1 only swaps. @source TIFF 6.0 section 14; TIFF Technical Note 3. */
void tgi_unpredict(uint32_t predictor, bool swap, uint8_t *data, size_t rows, size_t n,
                   size_t size, size_t stride, uint8_t *tmp);

#endif
