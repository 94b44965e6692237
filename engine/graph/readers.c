/* readers.c - lists of readers, one for each value, in one block. */
#include "engine/graph/readers.h"

#include "engine/base/mem.h"

#include <string.h>

void tgi_readers_free(tgi_readers *r)
{
    tgi_free(r->first);
    tgi_free(r->entry);
    *r = (tgi_readers){0};
}

void tgi_readers_clear(tgi_readers *r)
{
    for (int v = 0; v < r->n_values; v++)
        r->first[v] = -1;
    r->n = 0;
}

static tg_status make_room(tgi_readers *r, int value, tgi_err *err)
{
    if (value >= r->n_values) {
        const int n = value < 32 ? 64 : value * 2;
        int *first = tgi_realloc_n(TGI_TAG_GRAPH, r->first, (size_t)n, sizeof *first);
        if (!first)
            return tgi_fail(err, TG_E_NOMEM, "no memory for the readers of %d values", n);
        for (int v = r->n_values; v < n; v++)
            first[v] = -1;
        r->first = first;
        r->n_values = n;
    }
    if (r->n == r->cap) {
        const int cap = r->cap ? r->cap * 2 : 128;
        tgi_reader *entry = tgi_realloc_n(TGI_TAG_GRAPH, r->entry, (size_t)cap, sizeof *entry);
        if (!entry)
            return tgi_fail(err, TG_E_NOMEM, "no memory for %d readers", cap);
        r->entry = entry;
        r->cap = cap;
    }
    return TG_OK;
}

tg_status tgi_readers_add(tgi_readers *r, int value, int node, tgi_err *err)
{
    TGI_TRY(make_room(r, value, err));
    r->entry[r->n] = (tgi_reader){node, r->first[value]};
    r->first[value] = r->n++;
    return TG_OK;
}
