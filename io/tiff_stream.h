/* tiff_stream.h - rows of large compressed strips and tiles, decoded in order, never the whole
 * block.
 *
 * A stream holds a decoder, a piece of the file and the last few rows. Asking for a row that is
 * ahead decodes up to it; one of the rows kept costs nothing; one further back begins the block
 * anew. A set has a stream for each block that is read in turn (the tiles across a row, the
 * planes that are channels), so going down an image band after band decodes every block once.
 * The set belongs to one thread at a time: its owner holds a lock.
 *
 * What a stream hands out cannot be taken back, and the checksum of a block comes last. So a
 * block is proven first: decoded to its end once, then begun anew for its rows. Where the rows
 * kept are the whole block, or one call takes all of them, that costs no second decoding. */
#ifndef TGI_TIFF_STREAM_H
#define TGI_TIFF_STREAM_H

#include "io/rfile.h"
#include "io/tiff_codec.h"
#include "io/tiff_form.h"

typedef struct tgi_stream_shape {
    tgi_packing packing; /* its tables: borrowed while the set is opened */
    tgi_form form;
    size_t keep;            /* rows kept, >= 1 */
    bool prove;             /* tgi_stream_prove does something */
    int (*cancelled)(void); /* as tgi_open_opts */
} tgi_stream_shape;

/* Which block, and where its bytes lie. `column`: what moves down through the image as one. */
typedef struct tgi_stream_block {
    uint64_t plane, block, column;
    uint64_t off, count;
    uint64_t rows;
} tgi_stream_block;

typedef struct tgi_streams tgi_streams;
typedef struct tgi_stream tgi_stream;

/* What one stream takes, and a set of n. */
size_t tgi_stream_bytes(const tgi_stream_shape *shape);
size_t tgi_streams_bytes(const tgi_stream_shape *shape, size_t n);
/* A set of n streams. Returned; close with tgi_streams_close. `f` is borrowed. */
tg_status tgi_streams_open(const tgi_stream_shape *shape, const tgi_rfile *f, size_t n,
                           tgi_streams **out, tgi_err *err);
void tgi_streams_close(tgi_streams **s);
/* The stream of a block: the one that is in it, else one that is begun anew. View. */
tgi_stream *tgi_streams_take(tgi_streams *s, const tgi_stream_block *b);
/* Pointer to row y of the block in native order, until the next call. TG_E_FORMAT. */
tg_status tgi_stream_row(tgi_streams *s, tgi_stream *t, uint64_t y, const uint8_t **row,
                         tgi_err *err);
/* Go on from where the stream is to the end of the block, its end mark and checksum: all of its
 * rows count, those handed out before too. Costs nothing where it was done: each of the last
 * blocks is remembered. TG_E_FORMAT: none of them counts. */
tg_status tgi_stream_prove(tgi_streams *s, tgi_stream *t, tgi_err *err);
/* Bytes of pixels decoded for their rows since open. */
uint64_t tgi_streams_decoded(const tgi_streams *s);

#endif
