/* reads.h - what every node of a net reads along every axis, in a form that is small enough to
 * walk once for each band of a deep network: ten thousand nodes and four thousand bands are
 * asked about together.
 *
 * A *read* is one part of one operand. Where the operator says that an axis goes on evenly
 * (tgi_slide) the read is arithmetic of one line; else it has the operator's rule (tgi_rule).
 */
#ifndef TGI_READS_H
#define TGI_READS_H

#include "engine/base/region.h"
#include "engine/base/status.h"

struct tgi_net;
struct tgi_net_node;
struct tgi_variant;

#define TGI_STREAM_AXIS 2 /* along which images are fed band by band: the first after N and C */

typedef struct tgi_read {
    int value;
    short operand;
    unsigned char doubled;
    unsigned char even; /* 1: as `at` says */
    int rule;           /* of an uneven one: which of the axis, or -1: as tgi_net_need says */
    int64_t rows;       /* extent of the value along the axis */
    tgi_slide at;       /* of the operand: with `doubled` twice as many rows as the value has */
} tgi_read;

/* Row by row, neither faster nor slower than the result: what most reads are. */
static inline int tgi_read_is_plain(const tgi_read *r)
{
    return r->even && !r->doubled && r->at.num == 1 && r->at.den == 1 && r->at.block <= 1;
}

typedef struct tgi_reader { /* a node */
    int first;              /* of its reads; the next node's first is behind its last */
    int rule;               /* first of its rules */
    int dst;                /* first result */
    short n_dst;
    unsigned char flat;
    unsigned char ends[3]; /* per axis from the stream axis on: tgi_read_ends knows all reads */
    size_t packed_bytes;
} tgi_reader;

typedef struct tgi_reads {
    tgi_reader *node;  /* net->n_nodes and one more */
    tgi_read *read[3]; /* per axis from the stream axis on */
    tgi_rule *rule[3]; /* of those that are not even */
} tgi_reads;

/* Reads of node i along an axis: from the first, up to *end. */
static inline const tgi_read *tgi_reads_of(const tgi_reads *r, int i, int axis,
                                           const tgi_read **end)
{
    const tgi_read *read = r->read[axis - TGI_STREAM_AXIS];
    *end = read + r->node[i + 1].first;
    return read + r->node[i].first;
}

/* Who says how operand j of a node goes on along an axis, by the word of `variant` (NULL: the
 * operator's): *at, *rule, or, where neither is set, tgi_net_need alone. */
typedef enum tgi_along { TGI_ALONG_EVENLY, TGI_ALONG_RULE, TGI_ALONG_UNKNOWN } tgi_along;
tgi_along tgi_along_of(const struct tgi_net_node *n, const struct tgi_variant *variant, int j,
                       int axis, tgi_slide *at, tgi_rule *rule);

/* Of the net as it is. */
tg_status tgi_reads_make(const struct tgi_net *net, tgi_reads *out, tgi_err *err);
/* Node i has another variant now. */
void tgi_reads_renew(const struct tgi_net *net, int i, tgi_reads *r);
void tgi_reads_free(tgi_reads *r);

/* 1: on this axis every node of the net reads plainly, so what one row reads tells of all. */
int tgi_reads_are_plain(const struct tgi_net *net, int axis);

/* Of a value that is read `doubled`, the rows (or columns) behind those of the operand. */
tgi_range tgi_read_part(int doubled, tgi_range r);

/* Rows of the value that rows `dst`, not empty, of node `i` read along an axis. May reach
 * outside the image. */
tgi_range tgi_read_need(const struct tgi_net *net, int i, const tgi_read *r, int axis,
                        tgi_range dst);
/* The same of n boxes: each is hulled into its own of `stored`; of empty ones nothing is read. */
void tgi_read_needs(const struct tgi_net *net, int i, const tgi_read *r, int axis,
                    const tgi_range *dst, tgi_range *stored, int n);
/* Where that begins for rows [row[k], hi), for each of n: many at half the price. */
void tgi_read_begins(const struct tgi_net *net, int i, const tgi_read *r, int axis,
                     const int64_t *row, int64_t hi, int64_t *out, int n);
/* Where it ends. */
int64_t tgi_read_hi(const struct tgi_net *net, int i, const tgi_read *r, int axis,
                    tgi_range dst);
/* For each of n ends, of which none is less than the one before: the largest b for which a read
 * by rows [from,b) finds all in the first end[k] rows of the value, or less than `from`;
 * INT64_MAX: there is none. Of an even read or one whose rule has `ends`. */
void tgi_read_ends(const struct tgi_net *net, const tgi_read *r, int axis, int64_t from,
                   const int64_t *end, int64_t *out, int n);

#endif
