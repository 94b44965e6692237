/* tiff_codec.h - compressed strips and tiles to native samples, whole or as a stream.
 *
 * An unpacker belongs to one thread, allocates everything at open and reads untrusted bytes: it
 * never writes past the room it was given and answers TG_E_FORMAT for damage. Streaming means
 * that compressed bytes go in and pixels come out in pieces of any size, so a strip of many
 * gigabytes takes the memory of the codec's own history and nothing else. */
#ifndef TGI_TIFF_CODEC_H
#define TGI_TIFF_CODEC_H

#include "engine/base/status.h"
#include "io/tiff_ifd.h"

#include <stdatomic.h>
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

/* How the blocks of a file are packed: all that a decoder may ask before it sees one. */
typedef struct tgi_packing {
    uint32_t compression, fill_order, photometric, fax_options;
    uint32_t width, samples; /* of a block, pixels; samples that lie interleaved */
    uint32_t bits, format;   /* of a sample, as stored */
    uint32_t extra;          /* ExtraSamples of the last sample; 0: none */
    uint32_t lerc[2];        /* LercParameters: version, how the data are packed once more */
    bool big_endian;
    bool whole;         /* blocks are decoded whole, none as a stream */
    uint32_t stored_as; /* of TGI_TIFF_AS_RGB: the compression */
    tgi_tiff_ycbcr ycbcr;
    size_t block_bytes; /* decoded */
    size_t history;  /* what the codec's `history` says of the blocks; 0 where it has none, or
                        (TGI_HISTORY_STREAMS) blocks are decoded whole */
    uint64_t strips; /* of old JPEG: how many a page has */
    const tgi_rfile *file; /* of old JPEG: borrowed as long as the decoder is open */
    const uint8_t *tables; /* JPEGTables, n_tables bytes, borrowed for the call; or NULL */
    size_t n_tables;
    atomic_int *surplus; /* tgi_open_opts has it; or NULL */
} tgi_packing;

typedef enum tgi_history {
    TGI_HISTORY_NONE,    /* the codec knows its own */
    TGI_HISTORY_STREAMS, /* decoding rows asks for it, decoding whole blocks does not */
    TGI_HISTORY_ALWAYS
} tgi_history;

/* One codec: state is made once per thread or stream. */
typedef struct tgi_codec {
    const char *name;
    bool fuzzed; /* as in tgi_source_ops */
    tg_status (*open)(const tgi_packing *p, void **state, tgi_err *err);
    void (*close)(void *state);
    size_t (*bytes)(const tgi_packing *p); /* what open allocates, ours and the library's */
    void (*begin)(void *state);            /* a new block */
    /* Go on until the room is full, or the source is used up, or the end mark. `src` without
     * bytes says that the block has ended. */
    tg_status (*more)(void *state, tgi_pieces *io, tgi_err *err);
    /* Optional beside `more`: a whole block at once where that is cheaper, or (no `more`) the
     * only way. Returns bytes in *got. */
    tg_status (*whole)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                       size_t *got, tgi_err *err);
    /* Optional beside `more`: a block of at least `want` bytes, of which these are taken, where
     * that is faster. false: nothing is said of it, `more` has to. */
    bool (*at_once)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want);
    /* Optional: the next block is this one of this page. The bytes that it is then given may be
     * of no use to it. */
    tg_status (*place)(void *state, const tgi_tiff_page *page, uint64_t block, tgi_err *err);
    /* Optional, instead of both: a block of exactly `want` bytes at once. */
    tg_status (*exact)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want,
                       tgi_err *err);
    /* Optional: bytes of memory that the block beginning with these bytes asks for (how far
     * matches reach back, or the library's word). */
    size_t (*history)(const uint8_t *head, size_t n);
    tgi_history when;
    bool sealed;  /* blocks end in an end mark, most with a checksum: look behind the last
                     pixel, and count no row before that */
    bool picture; /* hands out pixels of 8 bits, whatever lies in the file: JPEG, WebP */
    bool native;  /* hands out samples in this machine's order of bytes */
    bool turns;   /* FillOrder is its own matter */
} tgi_codec;

#define TGI_LIB_SAMPLES 64u /* interleaved, that libtiff's codecs are given */

/* Bytes of a block that `history` needs to see. */
#define TGI_CODEC_HEAD 64

/* unpack_NAME.c each */
extern const tgi_codec tgi_codec_as_rgb, tgi_codec_ccitt, tgi_codec_jbig, tgi_codec_jpeg,
    tgi_codec_lerc, tgi_codec_logluv, tgi_codec_lzma, tgi_codec_lzw, tgi_codec_next,
    tgi_codec_old_jpeg, tgi_codec_packbits, tgi_codec_pixarlog, tgi_codec_store,
    tgi_codec_thunderscan, tgi_codec_webp, tgi_codec_zlib, tgi_codec_zstd;

/* Whether there is a line for this code in the table, also when this build lacks its library.
 */
bool tgi_unpack_knows(uint32_t compression);
bool tgi_unpack_is_picture(uint32_t compression);
bool tgi_unpack_is_native(uint32_t compression);
/* Unpacker for blocks packed like this. TG_E_UNSUPPORTED: there is none, or not in this build.
 */
tg_status tgi_unpack_open(const tgi_packing *p, tgi_unpack **out, tgi_err *err);
void tgi_unpack_close(tgi_unpack **u);
/* What an unpacker takes, before it is opened. */
size_t tgi_unpack_bytes(const tgi_packing *p);
/* Whether its blocks end in something that says whether their pixels are the right ones. */
bool tgi_unpack_is_sealed(uint32_t compression);
/* Whether rows can be had before their block is decoded to the end. */
bool tgi_unpack_streams(uint32_t compression);
/* Whether blocks of this compression state what memory they ask for, and what one does. */
tgi_history tgi_unpack_has_history(uint32_t compression);
size_t tgi_unpack_history(const tgi_packing *p, const uint8_t *head, size_t n);
/* Whether blocks of this compression want to be placed, and the place of the next one. */
bool tgi_unpack_is_placed(uint32_t compression);
tg_status tgi_unpack_place(tgi_unpack *u, const tgi_tiff_page *page, uint64_t block,
                           tgi_err *err);
/* Decode n bytes of src whole. dst has room for `cap` >= want bytes; fewer than `want` are
 * TG_E_FORMAT. */
tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err);
/* Streaming: begin a block, then go on as often as there is something to decode. */
void tgi_unpack_begin(tgi_unpack *u);
tg_status tgi_unpack_more(tgi_unpack *u, tgi_pieces *io, tgi_err *err);
/* The block's pixels are all there: go on through the rest of it to its end mark and checksum.
 * Does nothing for codecs without; what claims to hold far more pixels is not followed (*seen
 * reaches TGI_UNPACK_SURPLUS). Called with piece after piece, *seen being 0 at first and `last`
 * with the last, until io->ended. TG_E_FORMAT: damaged, or cut off before it. */
#define TGI_UNPACK_SURPLUS ((size_t)1 << 20) /* pixels behind the last: some writers pad */
tg_status tgi_unpack_seal(tgi_unpack *u, tgi_pieces *io, size_t *seen, int last, tgi_err *err);
/* TG_E_FORMAT: the block ended behind `got` of `want` bytes. In the same words whether it was
 * decoded whole or as a stream: they stand in the list of bad tiles. */
tg_status tgi_unpack_too_short(const tgi_unpack *u, uint64_t got, uint64_t want, tgi_err *err);
const char *tgi_unpack_name(const tgi_unpack *u);

#endif
