/* tensor_pieces.h - a box of an array that lies in a file, piece by piece.
 *
 * Arrays have their axes in the order of the model's own file (NCHW, NHWC, any other), boxes
 * come in the order of the graph. A piece is a part of the box whose elements lie close
 * together in the file, so that one read or one write moves it: rows where x is last, rows of
 * pixels where channels are, columns where an image lies transposed. */
#ifndef TGI_TENSOR_PIECES_H
#define TGI_TENSOR_PIECES_H

#include "engine/base/tensor.h"

/* Rows between a file and what is computed: the plan counts it. 64 KiB move as fast as 1 MiB.
 */
#define TGI_TENSOR_ROWS ((size_t)64 << 10)

typedef struct tgi_file_box {
    int rank;
    int64_t n[TGI_MAX_RANK];    /* elements along each axis */
    int64_t step[TGI_MAX_RANK]; /* elements of the file from one to the next */
} tgi_file_box;

typedef struct tgi_file_piece {
    int64_t lo[TGI_MAX_RANK], n[TGI_MAX_RANK]; /* of the box */
    int64_t first; /* its first element, counted from the box's first in the file */
    int64_t span;  /* elements of the file from there to its last */
} tgi_file_piece;

typedef enum tgi_file_gaps {
    TGI_FILE_DENSE, /* nothing else lies between the elements of a piece: to be written */
    TGI_FILE_NEAR   /* short gaps are read too */
} tgi_file_gaps;

typedef struct tgi_file_walk {
    const tgi_file_box *box;
    int order[TGI_MAX_RANK]; /* axes, smallest step first */
    int64_t part[TGI_MAX_RANK], at[TGI_MAX_RANK];
    int more;
} tgi_file_walk;

/* Pieces of at most `room` elements, in the order of the file. `also`, or NULL: the steps of
 * the same elements in memory; in a piece of one element or more both steps are equal then. */
void tgi_file_walk_begin(tgi_file_walk *w, const tgi_file_box *box, int64_t room,
                         tgi_file_gaps gaps, const int64_t *also);
/* 0 behind the last. */
int tgi_file_walk_next(tgi_file_walk *w, tgi_file_piece *out);

#endif
