/* tiff_codec.c - the table of codecs.
 *
 * Why not libtiff's decoders, but for the rare ones (unpack_tiff.c): they are reachable only
 * through a TIFF handle, which parses the directories a second time (with its own allocations
 * and limits) and keeps one directory per handle; random access over a million pages through it
 * is slow, and its memory cannot be planned. LZW and PackBits are a page of code each when
 * bounds are checked on every step; libtiff stays the oracle in the tests, which read back what
 * it wrote.
 *
 * FillOrder 2 turns the bits of every byte of the packed data around, so it is undone here, in
 * front of whatever codec: pieces go through a small buffer. (Not for JPEG, whose bytes are
 * never turned.) */
#include "io/tiff_codec.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/image.h"
#include "io/tiff_ifd.h"

#define TURNED 4096

struct tgi_unpack {
    const tgi_codec *codec;
    void *state;
    uint8_t *turned; /* TURNED bytes, for FillOrder 2; else NULL */
    atomic_int *surplus;
    size_t spare;    /* tgi_unpack_spare */
    size_t one_more; /* 1: before the end mark there may be a byte that is of no pixel */
};

/* ---- The table ---- */

static const struct {
    uint32_t compression;
    const tgi_codec *codec;
} codecs[] = {
    {TGI_TIFF_NONE, &tgi_codec_store},
    {TGI_TIFF_LZW, &tgi_codec_lzw},
    {TGI_TIFF_JPEG, &tgi_codec_jpeg},
    {TGI_TIFF_DEFLATE, &tgi_codec_zlib},
    {TGI_TIFF_DEFLATE_OLD, &tgi_codec_zlib},
    {TGI_TIFF_PACKBITS, &tgi_codec_packbits},
    {TGI_TIFF_LZMA, &tgi_codec_lzma},
    {TGI_TIFF_ZSTD, &tgi_codec_zstd},
    {TGI_TIFF_WEBP, &tgi_codec_webp},
    {TGI_TIFF_CCITT_RLE, &tgi_codec_ccitt},
    {TGI_TIFF_CCITT_FAX3, &tgi_codec_ccitt},
    {TGI_TIFF_CCITT_FAX4, &tgi_codec_ccitt},
    {TGI_TIFF_CCITT_RLEW, &tgi_codec_ccitt},
    {TGI_TIFF_LERC, &tgi_codec_lerc},
    {TGI_TIFF_PIXARLOG, &tgi_codec_pixarlog},
    {TGI_TIFF_SGILOG, &tgi_codec_logluv},
    {TGI_TIFF_SGILOG24, &tgi_codec_logluv},
    {TGI_TIFF_NEXT, &tgi_codec_next},
    {TGI_TIFF_JBIG, &tgi_codec_jbig},
    {TGI_TIFF_AS_RGB, &tgi_codec_as_rgb},
    {TGI_TIFF_OLD_JPEG, &tgi_codec_old_jpeg},
    {TGI_TIFF_THUNDERSCAN, &tgi_codec_thunderscan},
    {TGI_TIFF_PLANES_AS_RGB, &tgi_codec_planes_as_rgb},
};

static const tgi_codec *codec_of(uint32_t compression)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++)
        if (codecs[i].compression == compression)
            return codecs[i].codec;
    return NULL;
}

bool tgi_unpack_knows(uint32_t compression)
{
    return codec_of(compression) != NULL;
}

bool tgi_unpack_is_picture(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && codec->picture;
}

bool tgi_unpack_is_native(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && codec->native;
}

bool tgi_unpack_is_sealed(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && (codec->sealed || codec->marked);
}

size_t tgi_unpack_longest(uint32_t compression, size_t n)
{
    const size_t extra = tgi_unpack_is_picture(compression) ? (size_t)1 << 20 : 4096;
    const size_t more = compression == TGI_TIFF_PACKBITS ? n
                        : compression == TGI_TIFF_LZW    ? n + n / 4
                                                         : n / 2;
    return tgi_sat_add(tgi_sat_add(n, more), extra);
}

tg_status tgi_unpack_not_all(tg_status st, uint64_t count, size_t seen, tgi_err *err)
{
    if (st == TG_E_FORMAT && count > seen)
        tgi_err_prefix(err, "of %llu bytes, more than pixels take, %zu were looked at",
                       (unsigned long long)count, seen);
    return st;
}

static bool turns(const tgi_packing *p, const tgi_codec *codec)
{
    return p->fill_order == 2 && !codec->turns;
}

static tg_status open_turned(const tgi_packing *p, tgi_unpack *u, tgi_err *err)
{
    if (!turns(p, u->codec))
        return TG_OK;
    if (!u->codec->more)
        return tgi_fail(err, TG_E_UNSUPPORTED, "FillOrder 2 with compression %u (%s)",
                        p->compression, tgi_tiff_compression_name(p->compression));
    u->turned = tgi_malloc(TGI_TAG_IO, TURNED);
    return u->turned ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
}

tg_status tgi_unpack_open(const tgi_packing *p, tgi_unpack **out, tgi_err *err)
{
    const tgi_codec *codec = codec_of(p->compression);
    if (!codec)
        return tgi_fail(err, TG_E_UNSUPPORTED, "this build cannot decode compression %u (%s)",
                        p->compression, tgi_tiff_compression_name(p->compression));
    TGI_TRY(tgi_untrusted_check(codec->fuzzed, codec->name, err));
    tgi_unpack *u = tgi_calloc(TGI_TAG_IO, 1, sizeof *u);
    if (!u)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a decoder");
    u->codec = codec;
    u->surplus = p->surplus;
    u->one_more = p->one_more;
    tg_status st = open_turned(p, u, err);
    if (st == TG_OK)
        st = codec->open(p, &u->state, err);
    if (st != TG_OK) {
        tgi_free(u->turned);
        tgi_free(u);
        return st;
    }
    *out = u;
    return TG_OK;
}

void tgi_unpack_close(tgi_unpack **u)
{
    if (!*u)
        return;
    (*u)->codec->close((*u)->state);
    tgi_free((*u)->turned);
    tgi_free(*u);
    *u = NULL;
}

size_t tgi_unpack_bytes(const tgi_packing *p)
{
    const tgi_codec *codec = codec_of(p->compression);
    const size_t ours = sizeof(tgi_unpack) + (codec && turns(p, codec) ? TURNED : 0);
    return tgi_sat_add(ours, codec && codec->bytes ? codec->bytes(p) : 0);
}

bool tgi_unpack_streams(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && codec->more;
}

tgi_history tgi_unpack_has_history(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && codec->history ? codec->when : TGI_HISTORY_NONE;
}

bool tgi_unpack_is_placed(uint32_t compression)
{
    const tgi_codec *codec = codec_of(compression);
    return codec && codec->place;
}

tg_status tgi_unpack_place(tgi_unpack *u, const tgi_tiff_page *page, uint64_t block,
                           tgi_err *err)
{
    return u->codec->place(u->state, page, block, err);
}

const char *tgi_unpack_name(const tgi_unpack *u)
{
    return u->codec->name;
}

void tgi_unpack_begin(tgi_unpack *u)
{
    u->codec->begin(u->state);
}

/* ---- Decoding ---- */

static uint8_t turn(uint8_t v)
{
    v = (uint8_t)(v >> 4 | v << 4);
    v = (uint8_t)((v & 0xcc) >> 2 | (v & 0x33) << 2);
    return (uint8_t)((v & 0xaa) >> 1 | (v & 0x55) << 1);
}

size_t tgi_unpack_history(const tgi_packing *p, const uint8_t *head, size_t n)
{
    const tgi_codec *codec = codec_of(p->compression);
    uint8_t turned[TGI_CODEC_HEAD];
    if (!turns(p, codec))
        return codec->history(head, n);
    n = n < sizeof turned ? n : sizeof turned;
    for (size_t i = 0; i < n; i++)
        turned[i] = turn(head[i]);
    return codec->history(turned, n);
}

/* The same as `more`, over bytes turned around piece by piece. A piece of nothing says that the
 * block has ended: that is for the caller to say. */
static tg_status more_turned(tgi_unpack *u, tgi_pieces *io, tgi_err *err)
{
    for (int first = 1; io->room && !io->ended && (first || io->n); first = 0) {
        const size_t n = io->n < TURNED ? io->n : TURNED, room = io->room;
        tgi_pieces part = {.src = u->turned, .n = n, .dst = io->dst, .room = room};
        for (size_t i = 0; i < n; i++)
            u->turned[i] = turn(io->src[i]);
        TGI_TRY(u->codec->more(u->state, &part, err));
        io->src += n - part.n, io->n -= n - part.n;
        io->dst = part.dst, io->room = part.room;
        io->ended = part.ended;
        if (part.n == n && part.room == room)
            break;
    }
    return TG_OK;
}

tg_status tgi_unpack_more(tgi_unpack *u, tgi_pieces *io, tgi_err *err)
{
    static const uint8_t nothing;
    if (!io->src) /* the block has ended; pointers move on by 0, and NULL may not */
        io->src = &nothing;
    return u->turned ? more_turned(u, io, err) : u->codec->more(u->state, io, err);
}

/* Pieces until the room is full or nothing moves any more. */
static tg_status run_pieces(tgi_unpack *u, tgi_pieces *io, tgi_err *err)
{
    u->codec->begin(u->state);
    for (size_t n = io->n + 1, room = io->room;
         io->room && !io->ended && (io->n < n || io->room < room);) {
        n = io->n;
        room = io->room;
        TGI_TRY(tgi_unpack_more(u, io, err));
    }
    return TG_OK;
}

/* What a codec decodes at once gives no bytes where it fails. */
tg_status tgi_unpack_too_short(const tgi_unpack *u, uint64_t got, uint64_t want, tgi_err *err)
{
    if (u->codec->whole)
        return tgi_fail(err, TG_E_FORMAT, "%s data ends too early", u->codec->name);
    return tgi_fail(err, TG_E_FORMAT, "%s data ends after %llu of %llu bytes", u->codec->name,
                    (unsigned long long)got, (unsigned long long)want);
}

static tg_status cut_off(const tgi_unpack *u, tgi_err *err)
{
    if (u->codec->whole)
        return tgi_unpack_too_short(u, 0, 0, err);
    return tgi_fail(err, TG_E_FORMAT, "%s data are cut off behind the last pixel",
                    u->codec->name);
}

void tgi_unpack_spare(tgi_unpack *u, size_t bytes)
{
    u->spare = bytes;
    if (u->codec->spare)
        u->codec->spare(u->state, bytes);
}

#define LEAST_CODES 3 /* bytes that hold more than one code of any width */

/* Bytes of the last string that the block had no room for: they come without another code. */
static tg_status hand_over_held(tgi_unpack *u, tgi_pieces *io, size_t *seen, tgi_err *err)
{
    uint8_t surplus[4096];
    const size_t rest = io->n;
    io->n = 0;
    io->dst = surplus;
    io->room = sizeof surplus;
    const tg_status st = tgi_unpack_more(u, io, err);
    io->n = rest;
    io->dst = NULL;
    *seen += sizeof surplus - io->room;
    return st;
}

/* A block that is complete has as many bytes behind the last pixel as one may have. Photoshop 7
 * packs a byte too much, before the mark. */
static bool may_end(const tgi_unpack *u, const tgi_pieces *io, size_t seen)
{
    const size_t more = io->ended ? u->one_more : 0;
    return seen == 0 || seen == u->spare || seen == more || seen == u->spare + more;
}

/* Behind the last pixel there is the mark, or a byte or two that fill up a word, or all that a
 * strip has behind the image. */
static tg_status seal_marked(tgi_unpack *u, tgi_pieces *io, size_t *seen, int last,
                             tgi_err *err)
{
    uint8_t surplus[4096];
    const size_t rest = io->n;
    TGI_TRY(hand_over_held(u, io, seen, err));
    const size_t before = *seen;
    size_t n;
    tg_status st;
    do {
        n = io->n;
        io->dst = surplus;
        io->room = sizeof surplus;
        st = tgi_unpack_more(u, io, err);
        *seen += sizeof surplus - io->room;
        io->dst = NULL;
    } while (st == TG_OK && !io->ended && *seen <= u->spare + u->one_more &&
             (io->n < n || !io->room));
    if (last && before == 0 && rest < LEAST_CODES && !io->ended)
        return TG_OK;
    const bool may =
        io->ended || last ? may_end(u, io, *seen) : *seen <= u->spare + u->one_more;
    if (st == TG_OK && !may)
        return tgi_fail(err, TG_E_FORMAT, "%s data go on behind the last pixel",
                        u->codec->name);
    return st;
}

tg_status tgi_unpack_seal(tgi_unpack *u, tgi_pieces *io, size_t *seen, int last, tgi_err *err)
{
    uint8_t surplus[4096];
    if (u->codec->marked)
        return seal_marked(u, io, seen, last, err);
    while (u->codec->sealed && !io->ended && *seen < TGI_UNPACK_SURPLUS) {
        const size_t n = io->n;
        io->dst = surplus;
        io->room = sizeof surplus;
        const tg_status st = tgi_unpack_more(u, io, err);
        const size_t got = sizeof surplus - io->room;
        *seen += got;
        io->dst = NULL;
        if (st != TG_OK)
            return st;
        if (!io->ended && io->n == n && !got)
            return last ? cut_off(u, err) : TG_OK;
    }
    if (u->surplus && u->codec->sealed && !io->ended)
        atomic_fetch_or(u->surplus, TGI_SURPLUS_DATA);
    return TG_OK;
}

tg_status tgi_unpack_run(tgi_unpack *u, const uint8_t *src, size_t n, uint8_t *dst, size_t cap,
                         size_t want, tgi_err *err)
{
    size_t got;
    if (u->codec->exact)
        return u->codec->exact(u->state, src, n, dst, want, err);
    if (u->codec->at_once && !u->turned && u->codec->at_once(u->state, src, n, dst, want))
        return TG_OK;
    if (u->codec->whole && !u->turned) {
        TGI_TRY(u->codec->whole(u->state, src, n, dst, cap, &got, err));
    } else {
        tgi_pieces io = {.src = src, .n = n, .dst = dst, .room = want};
        TGI_TRY(run_pieces(u, &io, err));
        got = want - io.room;
        size_t seen = 0;
        if (got >= want)
            TGI_TRY(tgi_unpack_seal(u, &io, &seen, 1, err));
    }
    return got >= want ? TG_OK : tgi_unpack_too_short(u, got, want, err);
}
