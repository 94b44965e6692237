/* tiff_stream.h - rows of large compressed strips and tiles, decoded in order, never the whole
 * block.
 *
 * A stream holds a decoder, a piece of the file and the last few rows. A row that is ahead is
 * decoded up to; a row that is kept costs nothing; for a row further back the block is begun
 * anew. A set has one stream for each block that is read in turn: the tiles across a row, the
 * planes that are channels. So going down an image band after band decodes every block once. A
 * set belongs to one thread at a time, and its owner holds a lock.
 *
 * A row that a stream gave cannot be taken back, and the checksum of a block comes last. So a
 * stream proves a block first: it decodes the block to its end, then begins it anew for its
 * rows. Where it keeps the whole block, or one call takes all rows, it decodes only once. */
#ifndef TGI_TIFF_STREAM_H
#define TGI_TIFF_STREAM_H

#include "io/rfile.h"
#include "io/tiff_codec.h"
#include "io/tiff_form.h"

typedef struct tgi_stream_shape {
    tgi_packing packing; /* its tables are borrowed during the opening of the set */
    tgi_form form;
    size_t keep;            /* rows kept, >= 1 */
    bool prove;             /* tgi_stream_prove does something */
    int (*cancelled)(void); /* as tgi_open_opts */
} tgi_stream_shape;

/* Which block, and where its bytes lie. `column`: tgi_tiff_column_of. */
typedef struct tgi_stream_block {
    uint64_t plane, block, column;
    uint64_t off, count;
    uint64_t rows, spare; /* of the image; behind them, in a strip that may be there in full */
} tgi_stream_block;

typedef struct tgi_streams tgi_streams;
typedef struct tgi_stream tgi_stream;

/* Bytes that one stream takes, and a set of n. */
size_t tgi_stream_bytes(const tgi_stream_shape *shape);
size_t tgi_streams_bytes(const tgi_stream_shape *shape, size_t n);
/* Open a set of n streams. Returned; close with tgi_streams_close. `f` is borrowed. */
tg_status tgi_streams_open(const tgi_stream_shape *shape, const tgi_rfile *f, size_t n,
                           tgi_streams **out, tgi_err *err);
void tgi_streams_close(tgi_streams **s);
/* Get the stream of a block: the one that stands in it, else one that begins it. View. */
tgi_stream *tgi_streams_take(tgi_streams *s, const tgi_stream_block *b);
/* Pointer to row y of the block in native order, until the next call. TG_E_FORMAT. */
tg_status tgi_stream_row(tgi_streams *s, tgi_stream *t, uint64_t y, const uint8_t **row,
                         tgi_err *err);
/* Decode from where the stream is to the end of the block, its end mark and checksum. Then all
 * of its rows count, those given before too. Costs nothing for a block that was proven lately.
 * TG_E_FORMAT: no row of the block counts. */
tg_status tgi_stream_prove(tgi_streams *s, tgi_stream *t, tgi_err *err);
/* Bytes of pixels that were decoded for rows since the set was opened. */
uint64_t tgi_streams_decoded(const tgi_streams *s);

#endif
