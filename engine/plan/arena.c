#include "engine/plan/arena.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct order_entry {
    int item;
    size_t key1, key2; /* larger first */
} order_entry;

static int by_key(const void *a, const void *b)
{
    const order_entry *x = a, *y = b;
    if (x->key1 != y->key1)
        return x->key1 < y->key1 ? 1 : -1;
    if (x->key2 != y->key2)
        return x->key2 < y->key2 ? 1 : -1;
    return x->item - y->item;
}

typedef struct placed { /* small: they are all gone through for each new one */
    size_t from, to;
    int first, last;
} placed;

/* The placed ones, by offset. Those that live through everything and lie at the bottom without
 * a gap need not be gone through again: the first `ground` ones, up to offset `bottom`. */
typedef struct shelf {
    placed *p;
    int n, ground;
    size_t bottom;
    int first, last; /* of all items */
} shelf;

/* Lowest offset at which item `it` meets none of the placed ones. */
static size_t lowest_gap(const shelf *s, const tg_item *it)
{
    size_t at = s->bottom;
    for (int i = s->ground; i < s->n; i++) {
        const placed *p = &s->p[i];
        if (p->first > it->last || it->first > p->last)
            continue;
        if (at + it->bytes <= p->from)
            return at;
        if (p->to > at)
            at = tgi_align_size(p->to, TGI_ARENA_ALIGN);
    }
    return at;
}

/* Behind those at the same offset. */
static void put(shelf *s, const tg_item *it)
{
    int lo = s->ground, hi = s->n;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (s->p[mid].from <= it->offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    memmove(&s->p[lo + 1], &s->p[lo], (size_t)(s->n++ - lo) * sizeof *s->p);
    s->p[lo] = (placed){it->offset, it->offset + it->bytes, it->first, it->last};
    for (; s->ground < s->n; s->ground++) {
        const placed *p = &s->p[s->ground];
        if (p->from != s->bottom || p->first > s->first || p->last < s->last)
            break;
        s->bottom = tgi_align_size(p->to, TGI_ARENA_ALIGN);
    }
}

static tg_status place(tg_item *items, const order_entry *order, int n, placed *list,
                       size_t *total, tgi_err *err)
{
    *total = 0;
    shelf s = {.p = list, .first = INT_MAX, .last = INT_MIN};
    for (int i = 0; i < n; i++) {
        s.first = items[i].first < s.first ? items[i].first : s.first;
        s.last = items[i].last > s.last ? items[i].last : s.last;
    }
    for (int i = 0; i < n; i++) {
        tg_item *it = &items[order[i].item];
        TGI_TRY(tgi_check_cancel(err));
        it->offset = it->bytes ? lowest_gap(&s, it) : 0;
        if (!it->bytes)
            continue;
        put(&s, it);
        *total = *total > it->offset + it->bytes ? *total : it->offset + it->bytes;
    }
    return TG_OK;
}

static void make_order(const tg_item *items, int n, int kind, order_entry *order)
{
    for (int i = 0; i < n; i++) {
        const size_t life = (size_t)(items[i].last - items[i].first + 1);
        order[i].item = i;
        switch (kind) {
        case 0: /* largest first */
            order[i].key1 = items[i].bytes;
            order[i].key2 = life;
            break;
        case 1: /* longest life first */
            order[i].key1 = life;
            order[i].key2 = items[i].bytes;
            break;
        case 2: /* as the steps come */
            order[i].key1 = SIZE_MAX - (size_t)(items[i].first + 1);
            order[i].key2 = items[i].bytes;
            break;
        default: /* most bytes times steps first */
            order[i].key1 = tgi_sat_mul(items[i].bytes, life);
            order[i].key2 = items[i].bytes;
            break;
        }
    }
    qsort(order, (size_t)n, sizeof *order, by_key);
}

/* By `edge`: where bytes begin and, one step after the last, end. */
typedef struct edge {
    int at;
    size_t begins, ends;
} edge;

static int by_step(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static size_t largest_live_set(const tg_item *items, int n, edge *edges)
{
    size_t best = 0, now = 0;
    for (int i = 0; i < n; i++) {
        edges[2 * i] = (edge){items[i].first, items[i].bytes, 0};
        edges[2 * i + 1] = (edge){items[i].last + 1, 0, items[i].bytes};
    }
    qsort(edges, 2 * (size_t)n, sizeof *edges, by_step);
    for (int i = 0; i < 2 * n;) {
        const int at = edges[i].at;
        for (; i < 2 * n && edges[i].at == at; i++)
            now += edges[i].begins - edges[i].ends; /* wraps and comes back */
        best = now > best ? now : best;
    }
    return best;
}

tg_status tgi_arena_pack(tg_item *items, int n, size_t *total, size_t *lower_bound,
                         tgi_err *err)
{
    order_entry *order = tgi_malloc(TGI_TAG_PLAN, ((size_t)n + 1) * sizeof *order);
    placed *list = tgi_malloc(TGI_TAG_PLAN, ((size_t)n + 1) * sizeof *list);
    edge *edges = tgi_malloc(TGI_TAG_PLAN, (2 * (size_t)n + 1) * sizeof *edges);
    if (!order || !list || !edges) {
        tgi_free(order);
        tgi_free(list);
        tgi_free(edges);
        return tgi_fail(err, TG_E_NOMEM, "no memory to place %d buffers", n);
    }
    int best_kind = 0;
    size_t best = SIZE_MAX, t;
    tg_status st = TG_OK;
    for (int kind = 0; st == TG_OK && kind <= 4; kind++) { /* the last repeats the best order */
        make_order(items, n, kind == 4 ? best_kind : kind, order);
        st = place(items, order, n, list, &t, err);
        if (t < best) {
            best = t;
            best_kind = kind;
        }
    }
    *total = tgi_align_size(best == SIZE_MAX ? 0 : best, TGI_ARENA_ALIGN);
    *lower_bound = largest_live_set(items, n, edges);
    tgi_free(order);
    tgi_free(list);
    tgi_free(edges);
    return st;
}
