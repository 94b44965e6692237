/* tiff_stream.c - decodes large blocks row by row, and proves their checksum before a row
 * counts. */
#include "io/tiff_stream.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/tiff_codec.h"

#include <string.h>

#define NO_BLOCK UINT64_MAX
/* Compressed bytes read at a time. Most decoders go on at any byte; those of fax want a row in
 * one piece, those of pictures a marker. */
#define PIECE ((size_t)8 << 10)
#define LARGE_PIECE ((size_t)64 << 10)
/* Blocks that are remembered as proven: a few rows of tiles, where there are fewer streams than
 * tiles in a row, or the statistics came before. */
#define PROVEN 512

typedef struct proven_block {
    uint64_t plane, block; /* block NO_BLOCK: nothing */
} proven_block;

struct tgi_stream {
    tgi_stream_block b; /* b.block NO_BLOCK: nothing */
    tgi_unpack *unpack;
    tgi_window win;
    uint64_t used;  /* when it was taken last */
    uint64_t taken; /* compressed bytes decoded so far */
    uint64_t next;  /* rows decoded so far */
    uint64_t lo;    /* rows [lo, next) lie in the ring, finished */
    tg_status st;   /* not TG_OK: row `next` and all behind it cannot be decoded */
    uint8_t *ring;  /* row y at y % keep */
};

struct tgi_streams {
    tgi_stream_shape shape;
    const tgi_rfile *f;
    uint8_t *tmp; /* one row, for the predictor */
    uint64_t clock, decoded;
    size_t n;
    tgi_stream *stream;
    proven_block proven[PROVEN]; /* each in its place, until another needs it */
};

static size_t piece_of(const tgi_packing *p)
{
    switch (p->compression) {
    case TGI_TIFF_LZW:
    case TGI_TIFF_DEFLATE:
    case TGI_TIFF_DEFLATE_OLD:
    case TGI_TIFF_LZMA:
    case TGI_TIFF_PACKBITS:
    case TGI_TIFF_ZSTD:
        return PIECE;
    default:
        return LARGE_PIECE;
    }
}

size_t tgi_stream_bytes(const tgi_stream_shape *p)
{
    const size_t rows = tgi_sat_mul(p->keep, p->form.row_bytes);
    const size_t state = tgi_unpack_bytes(&p->packing);
    return tgi_sat_add(tgi_sat_add(rows, state), sizeof(tgi_stream) + piece_of(&p->packing));
}

size_t tgi_streams_bytes(const tgi_stream_shape *p, size_t n)
{
    return tgi_sat_add(tgi_sat_mul(n, tgi_stream_bytes(p)),
                       tgi_sat_add(p->form.row_bytes, sizeof(tgi_streams)));
}

static tg_status stream_open(tgi_streams *s, tgi_stream *t, tgi_err *err)
{
    const tgi_stream_shape *p = &s->shape;
    t->b.block = NO_BLOCK;
    TGI_TRY(tgi_window_init(&t->win, piece_of(&p->packing), err));
    TGI_TRY(tgi_unpack_open(&p->packing, &t->unpack, err));
    t->ring = tgi_malloc(TGI_TAG_IO, tgi_sat_mul(p->keep, p->form.row_bytes));
    return t->ring ? TG_OK
                   : tgi_fail(err, TG_E_NOMEM, "no memory for rows of %zu bytes",
                              p->form.row_bytes);
}

tg_status tgi_streams_open(const tgi_stream_shape *shape, const tgi_rfile *f, size_t n,
                           tgi_streams **out, tgi_err *err)
{
    tg_status st = TG_OK;
    tgi_streams *s = tgi_calloc(TGI_TAG_IO, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a reader");
    s->shape = *shape;
    s->f = f;
    for (size_t i = 0; i < PROVEN; i++)
        s->proven[i].block = NO_BLOCK;
    s->tmp = tgi_malloc(TGI_TAG_IO, shape->form.row_bytes);
    s->stream = tgi_calloc(TGI_TAG_IO, n, sizeof *s->stream);
    if (!s->tmp || !s->stream)
        st = tgi_fail(err, TG_E_NOMEM, "no memory for %zu readers", n);
    while (st == TG_OK && s->n < n)
        st = stream_open(s, &s->stream[s->n++], err);
    if (st != TG_OK)
        tgi_streams_close(&s);
    *out = s;
    return st;
}

void tgi_streams_close(tgi_streams **sp)
{
    tgi_streams *s = *sp;
    if (!s)
        return;
    for (size_t i = 0; s->stream && i < s->n; i++) {
        tgi_window_free(&s->stream[i].win);
        tgi_unpack_close(&s->stream[i].unpack);
        tgi_free(s->stream[i].ring);
    }
    tgi_free(s->stream);
    tgi_free(s->tmp);
    tgi_free(s);
    *sp = NULL;
}

static void begin(tgi_stream *t)
{
    t->taken = t->next = t->lo = 0;
    t->st = TG_OK;
    tgi_unpack_begin(t->unpack);
}

tgi_stream *tgi_streams_take(tgi_streams *s, const tgi_stream_block *b)
{
    tgi_stream *t = &s->stream[0];
    for (size_t i = 0; i < s->n; i++) {
        tgi_stream *c = &s->stream[i];
        if (c->b.block != NO_BLOCK && c->b.plane == b->plane && c->b.column == b->column) {
            t = c;
            break;
        }
        if (c->used < t->used)
            t = c;
    }
    t->used = ++s->clock;
    if (t->b.block != b->block || t->b.plane != b->plane) {
        t->b = *b;
        begin(t);
    }
    return t;
}

/* Behind the last row: the end mark and the checksum of the block. */
static tg_status decode_seal(tgi_streams *s, tgi_stream *t, tgi_pieces *io, tgi_err *err)
{
    size_t seen = 0;
    tgi_unpack_spare(t->unpack, tgi_sat_mul((size_t)t->b.spare, s->shape.form.stored_row));
    for (int last = 0; !io->ended && !last && seen < TGI_UNPACK_SURPLUS;) {
        const uint64_t left = t->b.count - t->taken;
        const size_t n = (size_t)(left < t->win.cap ? left : t->win.cap);
        last = n == left;
        if (n)
            TGI_TRY(tgi_window_get(&t->win, s->f, t->b.off + t->taken, n, n, &io->src, err));
        io->n = n;
        TGI_TRY(tgi_unpack_seal(t->unpack, io, &seen, last, err));
        t->taken += n - io->n;
    }
    return TG_OK;
}

/* The next row of the block, as it is stored. */
static tg_status decode_row(tgi_streams *s, tgi_stream *t, uint8_t *dst, tgi_err *err)
{
    tgi_pieces io = {.dst = dst, .room = s->shape.form.stored_row};
    for (;;) {
        const uint64_t left = t->b.count - t->taken;
        const size_t n = (size_t)(left < t->win.cap ? left : t->win.cap);
        const size_t room = io.room;
        if (n)
            TGI_TRY(tgi_window_get(&t->win, s->f, t->b.off + t->taken, n, n, &io.src, err));
        io.n = n;
        TGI_TRY(tgi_unpack_more(t->unpack, &io, err));
        t->taken += n - io.n;
        if (!io.room)
            return t->next + 1 < t->b.rows ? TG_OK : decode_seal(s, t, &io, err);
        if (io.ended || (io.n == n && io.room == room)) {
            const uint64_t row = s->shape.form.stored_row;
            return tgi_unpack_too_short(t->unpack, t->next * row + (row - io.room),
                                        t->b.rows * row, err);
        }
    }
}

tg_status tgi_stream_row(tgi_streams *s, tgi_stream *t, uint64_t y, const uint8_t **row,
                         tgi_err *err)
{
    const tgi_stream_shape *p = &s->shape;
    if (y < t->lo)
        begin(t);
    if (t->st != TG_OK && t->next <= y)
        return tgi_fail(err, t->st, "%s data cannot be decoded from row %llu on",
                        tgi_unpack_name(t->unpack), (unsigned long long)t->next);
    while (t->next <= y) {
        uint8_t *at = t->ring + (size_t)(t->next % p->keep) * p->form.row_bytes;
        uint8_t *stored = p->form.packed ? s->tmp : at;
        t->st = decode_row(s, t, stored, err);
        if (t->st != TG_OK)
            return t->st;
        t->next++;
        s->decoded += p->form.row_bytes;
        if (t->next + p->keep <= y + 1) { /* on the way only: nobody will look at it */
            t->lo = t->next;
            if (p->cancelled && p->cancelled())
                return tgi_fail(err, TG_E_CANCELLED, "stopped on the way to a later row");
            continue;
        }
        tgi_form_row(&p->form, stored, at, s->tmp);
        if (t->next - t->lo > p->keep)
            t->lo = t->next - p->keep;
    }
    *row = t->ring + (size_t)(y % p->keep) * p->form.row_bytes;
    return TG_OK;
}

tg_status tgi_stream_prove(tgi_streams *s, tgi_stream *t, tgi_err *err)
{
    proven_block *p = &s->proven[(t->b.block + t->b.plane * 31) % PROVEN];
    const uint64_t decoded = s->decoded;
    const uint8_t *row;
    if (!s->shape.prove || (p->block == t->b.block && p->plane == t->b.plane))
        return TG_OK;
    TGI_TRY(tgi_stream_row(s, t, t->b.rows - 1, &row, err));
    *p = (proven_block){t->b.plane, t->b.block};
    if (t->lo == 0) /* all rows are kept */
        return TG_OK;
    s->decoded = decoded;
    begin(t);
    return TG_OK;
}

uint64_t tgi_streams_decoded(const tgi_streams *s)
{
    return s->decoded;
}
