/* readers.h - which nodes read a value, found without looking at all of them.
 *
 * For each value a list of node numbers, kept by whoever edits the graph. A node is entered
 * when it begins to read the value, and is not removed when it stops. So a list may hold nodes
 * that are gone, changed or in it twice. Whoever walks a list checks each node, and drops stale
 * entries on the way. */
#ifndef TGI_READERS_H
#define TGI_READERS_H

#include "engine/base/status.h"

typedef struct tgi_reader {
    int node;
    int next; /* entry of the same value, or -1 */
} tgi_reader;

typedef struct tgi_readers {
    int *first; /* per value: its first entry, or -1 */
    int n_values;
    tgi_reader *entry;
    int n, cap;
} tgi_readers;

void tgi_readers_free(tgi_readers *r);
/* Forget all entries. */
void tgi_readers_clear(tgi_readers *r);
/* Node `node` reads `value` (>= 0); TG_E_NOMEM. */
tg_status tgi_readers_add(tgi_readers *r, int value, int node, tgi_err *err);

/* First entry of a value, or -1. */
static inline int tgi_readers_of(const tgi_readers *r, int value)
{
    return value < r->n_values ? r->first[value] : -1;
}

#endif
