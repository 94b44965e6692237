/* tiff_codec.h - compressed strips and tiles to native samples, whole or as a stream.
 *
 * An unpacker belongs to one thread and allocates everything at open. It reads untrusted bytes:
 * it never writes past the room it was given, and answers TG_E_FORMAT for damage.
 *
 * A stream takes compressed bytes and gives pixels in pieces of any size. So a strip of many
 * gigabytes takes no more memory than the codec's own history. */
#ifndef TGI_TIFF_CODEC_H
#define TGI_TIFF_CODEC_H

#include "engine/base/status.h"
#include "io/image.h"
#include "io/tiff_ifd.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_unpack tgi_unpack;

/* Bytes going in and coming out. The decoder moves both sides forward as it uses them. */
typedef struct tgi_pieces {
    const uint8_t *src;
    size_t n; /* left of src */
    uint8_t *dst;
    size_t room; /* left of dst */
    bool ended;  /* the decoder met the end mark: nothing more comes */
} tgi_pieces;

/* How the blocks of a file are packed. A decoder knows no more before it sees a block. */
typedef struct tgi_packing {
    uint32_t compression, fill_order, photometric, fax_options;
    uint32_t width, samples; /* of a block, pixels; samples that lie interleaved */
    uint32_t bits, format;   /* of a sample, as stored */
    uint32_t extra;          /* ExtraSamples of the last sample; 0: none */
    uint32_t lerc[2];        /* LercParameters: version, second compression */
    bool big_endian;
    bool one_more;      /* Photoshop wrote it: LZW may have a byte behind the last pixel */
    bool whole;         /* decode blocks whole, none as a stream */
    uint32_t stored_as; /* of TGI_TIFF_AS_RGB and of planes: the compression */
    tgi_tiff_ycbcr ycbcr;
    size_t block_bytes; /* decoded */
    size_t history;     /* the codec's `history` of the blocks; 0: it has none, or decodes whole
                       blocks (TGI_HISTORY_STREAMS) */
    uint64_t strips;    /* of what is placed: their number in a page */
    const tgi_rfile *file; /* of what is placed: borrowed as long as the decoder is open */
    const uint8_t *tables; /* JPEGTables, n_tables bytes, borrowed for the call; or NULL */
    size_t n_tables;
    atomic_int *surplus; /* tgi_open_opts has it; or NULL */
} tgi_packing;

typedef enum tgi_history {
    TGI_HISTORY_NONE,    /* the codec knows its own */
    TGI_HISTORY_STREAMS, /* needed to decode rows, not to decode whole blocks */
    TGI_HISTORY_ALWAYS
} tgi_history;

/* One codec. Each thread or stream opens a state of its own. */
typedef struct tgi_codec {
    const char *name;
    tgi_fuzzed fuzzed;
    tg_status (*open)(const tgi_packing *p, void **state, tgi_err *err);
    void (*close)(void *state);
    size_t (*bytes)(const tgi_packing *p); /* what open allocates, ours and the library's */
    void (*begin)(void *state);            /* a new block */
    /* Decode until the room is full, the source is used up, or the end mark is met. An empty
     * `src` says that the block has ended. */
    tg_status (*more)(void *state, tgi_pieces *io, tgi_err *err);
    /* Decode a whole block at once; *got: its bytes. Optional beside `more`, where it is
     * cheaper. A codec without `more` must have it, or `exact`. */
    tg_status (*whole)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                       size_t *got, tgi_err *err);
    /* Optional beside `more`, where it is faster: decode the first `want` bytes of a block that
     * may be longer. false: it cannot tell, `more` has to decode the block. */
    bool (*at_once)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want);
    /* Optional: told what tgi_unpack_spare is told. */
    void (*spare)(void *state, size_t bytes);
    /* Optional: name the next block and its page. The codec may then ignore the bytes that it
     * is given. */
    tg_status (*place)(void *state, const tgi_tiff_page *page, uint64_t block, tgi_err *err);
    /* Optional, instead of `more` and `whole`: decode a block of exactly `want` bytes at
     * once. */
    tg_status (*exact)(void *state, const uint8_t *src, size_t n, uint8_t *dst, size_t want,
                       tgi_err *err);
    /* Optional: tell the memory that a block needs, in bytes, from its first bytes `head` (how
     * far matches reach back, or what the library says). */
    size_t (*history)(const uint8_t *head, size_t n);
    tgi_history when;
    /* Blocks end in an end mark, most with a checksum: read it behind the last pixel, and count no
     * row before that. */
    bool sealed;
    /* Blocks end in an end mark, which some writers leave out: no pixel follows the last one. No
     * row counts before that is known. */
    bool marked;
    bool picture; /* gives pixels of 8 bits, whatever lies in the file: JPEG, WebP */
    bool native;  /* gives samples in this machine's order of bytes */
    bool turns;   /* the codec heeds FillOrder itself */
} tgi_codec;

#define TGI_LIB_SAMPLES 64u /* interleaved samples that libtiff's codecs get at most */

/* First bytes of a block that `history` needs. */
#define TGI_CODEC_HEAD 64

/* unpack_NAME.c each */
extern const tgi_codec tgi_codec_planes_as_rgb, tgi_codec_as_rgb, tgi_codec_ccitt,
    tgi_codec_jbig, tgi_codec_jpeg, tgi_codec_lerc, tgi_codec_logluv, tgi_codec_lzma,
    tgi_codec_lzw, tgi_codec_next, tgi_codec_old_jpeg, tgi_codec_packbits, tgi_codec_pixarlog,
    tgi_codec_store, tgi_codec_thunderscan, tgi_codec_webp, tgi_codec_zlib, tgi_codec_zstd;

/* Has the table a line for this code? It has one also where this build lacks the library. */
bool tgi_unpack_knows(uint32_t compression);
bool tgi_unpack_is_picture(uint32_t compression);
bool tgi_unpack_is_native(uint32_t compression);
/* Of a block of n bytes of pixels, the most bytes in the file that are looked at. PackBits may
 * say of each byte that it is one, LZW may begin a new table behind each code; other codecs make
 * nothing longer by more than half, but for constant parts. */
size_t tgi_unpack_longest(uint32_t compression, size_t n);
/* Add to what is said of a damaged block of `count` bytes that `seen` of them were looked at, where
 * these are not all. */
tg_status tgi_unpack_not_all(tg_status st, uint64_t count, size_t seen, tgi_err *err);
/* Open an unpacker for such blocks. TG_E_UNSUPPORTED: none exists, or this build has none. */
tg_status tgi_unpack_open(const tgi_packing *p, tgi_unpack **out, tgi_err *err);
void tgi_unpack_close(tgi_unpack **u);
/* Bytes that an unpacker will take; ask before opening it. */
size_t tgi_unpack_bytes(const tgi_packing *p);
/* Do its blocks end in a mark or checksum that proves their pixels? */
bool tgi_unpack_is_sealed(uint32_t compression);
/* Can it give rows before the block is decoded to its end? */
bool tgi_unpack_streams(uint32_t compression);
/* Do blocks of this compression tell the memory they need; and how much does one need? */
tgi_history tgi_unpack_has_history(uint32_t compression);
size_t tgi_unpack_history(const tgi_packing *p, const uint8_t *head, size_t n);
/* Must blocks of this compression be placed; and tell the place of the next one. */
bool tgi_unpack_is_placed(uint32_t compression);
tg_status tgi_unpack_place(tgi_unpack *u, const tgi_tiff_page *page, uint64_t block,
                           tgi_err *err);
/* Decode a whole block, n bytes of src. dst has room for `cap` >= want bytes. TG_E_FORMAT: the
 * block gives fewer than `want`. */
tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err);
/* Streaming: begin a block, then call `more` as often as there is something to decode. */
void tgi_unpack_begin(tgi_unpack *u);
tg_status tgi_unpack_more(tgi_unpack *u, tgi_pieces *io, tgi_err *err);
/* Bytes of pixels that may follow the last one of the next block: a strip cut off by the image
 * that its writer wrote in full. */
void tgi_unpack_spare(tgi_unpack *u, size_t bytes);
/* After the last pixel of a block: decode the rest to its end mark and checksum. Does nothing
 * for codecs that have none. Stops, where there is a checksum, when the rest claims far more pixels (*seen reaches
 * TGI_UNPACK_SURPLUS). Call it with piece after piece until io->ended: *seen is 0 at first,
 * `last` comes with the last piece. TG_E_FORMAT: the rest is damaged or cut off. */
#define TGI_UNPACK_SURPLUS ((size_t)1 << 20) /* pixels behind the last: some writers pad */
tg_status tgi_unpack_seal(tgi_unpack *u, tgi_pieces *io, size_t *seen, int last, tgi_err *err);
/* Fail with TG_E_FORMAT: the block ended behind `got` of `want` bytes. The words are the same
 * for whole blocks and streams, since the list of bad tiles quotes them. */
tg_status tgi_unpack_too_short(const tgi_unpack *u, uint64_t got, uint64_t want, tgi_err *err);
const char *tgi_unpack_name(const tgi_unpack *u);

#endif
