/* arena.c - places values by four orders and keeps the smallest result. */
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

typedef struct placed { /* small: they are gone through for each new one */
    size_t from, to;
    int first, last;
} placed;

/* The placed ones, by offset, and those at one offset by their first step, in pieces of which
 * most can be passed over as a whole: those that live at other times, and those that all live
 * now and leave no room between them. */
#define PIECE 64
typedef struct piece {
    int n;
    int least_first, most_first, least_last, most_last;
    size_t to, gap; /* end of the last byte; largest room between two */
    placed p[PIECE];
} piece;

typedef struct shelf {
    piece *piece; /* in no order */
    int *order;   /* of pieces, by offset */
    int n;
} shelf;

/* How many pieces hold n buffers: each but one is half full at least. */
static size_t pieces_for(int n)
{
    return (size_t)n / (PIECE / 2) + 2;
}

static size_t behind(size_t at, size_t to)
{
    return to > at ? tgi_align_size(to, TGI_ARENA_ALIGN) : at;
}

static void sum_up(piece *b)
{
    size_t at = 0;
    b->least_first = b->least_last = INT_MAX;
    b->most_first = b->most_last = INT_MIN;
    b->to = b->gap = 0;
    for (int i = 0; i < b->n; i++) {
        const placed *p = &b->p[i];
        if (i && p->from > at && p->from - at > b->gap)
            b->gap = p->from - at;
        at = behind(at, p->to);
        b->to = p->to > b->to ? p->to : b->to;
        b->least_first = p->first < b->least_first ? p->first : b->least_first;
        b->most_first = p->first > b->most_first ? p->first : b->most_first;
        b->least_last = p->last < b->least_last ? p->last : b->least_last;
        b->most_last = p->last > b->most_last ? p->last : b->most_last;
    }
}

/* Lowest offset at which item `it` meets none of the placed ones. */
static size_t lowest_gap(const shelf *s, const tgi_item *it)
{
    size_t at = 0;
    for (int k = 0; k < s->n; k++) {
        const piece *b = &s->piece[s->order[k]];
        if (b->least_first > it->last || b->most_last < it->first)
            continue;
        if (b->most_first <= it->last && b->least_last >= it->first && b->gap < it->bytes) {
            if (at + it->bytes <= b->p[0].from)
                return at;
            at = behind(at, b->to);
            continue;
        }
        for (int i = 0; i < b->n; i++) {
            const placed *p = &b->p[i];
            if (p->first > it->last || it->first > p->last)
                continue;
            if (at + it->bytes <= p->from)
                return at;
            at = behind(at, p->to);
        }
    }
    return at;
}

static int lies_before(const placed *a, const placed *b)
{
    return a->from != b->from ? a->from < b->from : a->first <= b->first;
}

/* The second half of the piece at place k goes into one of its own. */
static void split(shelf *s, int k)
{
    piece *b = &s->piece[s->order[k]], *more = &s->piece[s->n];
    more->n = b->n / 2;
    b->n -= more->n;
    memcpy(more->p, b->p + b->n, (size_t)more->n * sizeof *more->p);
    memmove(&s->order[k + 2], &s->order[k + 1], (size_t)(s->n - k - 1) * sizeof *s->order);
    s->order[k + 1] = s->n++;
    sum_up(b);
    sum_up(more);
}

static void put(shelf *s, const tgi_item *it)
{
    const placed one = {it->offset, it->offset + it->bytes, it->first, it->last};
    int lo = 0, hi = s->n - 1; /* the last piece that does not begin behind it, or the first */
    while (lo < hi) {
        const int mid = lo + (hi - lo + 1) / 2;
        if (lies_before(&s->piece[s->order[mid]].p[0], &one))
            lo = mid;
        else
            hi = mid - 1;
    }
    if (s->piece[s->order[lo]].n == PIECE) {
        split(s, lo);
        lo += lies_before(&s->piece[s->order[lo + 1]].p[0], &one);
    }
    piece *b = &s->piece[s->order[lo]];
    int at = b->n++;
    for (; at > 0 && !lies_before(&b->p[at - 1], &one); at--)
        b->p[at] = b->p[at - 1];
    b->p[at] = one;
    sum_up(b);
}

/* Give the items in `order` their places, or as many as take less than `limit`: an order that needs as
 * much as another one is of no use. */
static tg_status place(tgi_item *items, const order_entry *order, int n, size_t limit, shelf *s,
                       size_t *total, tgi_err *err)
{
    *total = 0;
    s->n = 1;
    s->order[0] = s->piece[0].n = 0;
    sum_up(&s->piece[0]);
    for (int i = 0; i < n && *total < limit; i++) {
        tgi_item *it = &items[order[i].item];
        TGI_TRY(tgi_check_cancel(err));
        it->offset = lowest_gap(s, it);
        put(s, it);
        *total = *total > it->offset + it->bytes ? *total : it->offset + it->bytes;
    }
    return TG_OK;
}

/* Of those that have bytes; returns how many. */
static int make_order(const tgi_item *items, int n, int kind, order_entry *order)
{
    int used = 0;
    for (int i = 0; i < n; i++) {
        const size_t bytes = items[i].bytes,
                     life = (size_t)(items[i].last - items[i].first + 1);
        if (!bytes)
            continue;
        order_entry *e = &order[used++];
        *e = (order_entry){.item = i, .key2 = bytes};
        switch (kind) {
        case 0: /* largest first */
            e->key1 = bytes;
            e->key2 = life;
            break;
        case 1: /* longest life first */
            e->key1 = life;
            break;
        case 2: /* as the steps come */
            e->key1 = SIZE_MAX - (size_t)(items[i].first + 1);
            break;
        default: /* most bytes times steps first */
            e->key1 = tgi_sat_mul(bytes, life);
            break;
        }
    }
    qsort(order, (size_t)used, sizeof *order, by_key);
    return used;
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

static size_t largest_live_set(const tgi_item *items, int n, edge *edges)
{
    size_t best = 0, now = 0;
    int used = 0;
    for (int i = 0; i < n; i++) {
        if (!items[i].bytes)
            continue;
        edges[used++] = (edge){items[i].first, items[i].bytes, 0};
        edges[used++] = (edge){items[i].last + 1, 0, items[i].bytes};
    }
    qsort(edges, (size_t)used, sizeof *edges, by_step);
    for (int i = 0; i < used;) {
        const int at = edges[i].at;
        for (; i < used && edges[i].at == at; i++)
            now += edges[i].begins - edges[i].ends; /* wraps and comes back */
        best = now > best ? now : best;
    }
    return best;
}

tg_status tgi_arena_pack(tgi_item *items, int n, size_t *total, size_t *lower_bound,
                         tgi_err *err)
{
    order_entry *order = tgi_malloc(TGI_TAG_PLAN, ((size_t)n + 1) * sizeof *order);
    shelf s = {.piece = tgi_calloc(TGI_TAG_PLAN, pieces_for(n), sizeof *s.piece),
               .order = tgi_calloc(TGI_TAG_PLAN, pieces_for(n), sizeof *s.order)};
    edge *edges = tgi_malloc(TGI_TAG_PLAN, (2 * (size_t)n + 1) * sizeof *edges);
    int best_kind = 0, last_kind = -1;
    size_t best = SIZE_MAX, t;
    tg_status st = order && s.piece && s.order && edges
                       ? TG_OK
                       : tgi_fail(err, TG_E_NOMEM, "no memory to place %d buffers", n);
    if (st == TG_OK)
        *lower_bound = largest_live_set(items, n, edges);
    for (int i = 0; i < n; i++)
        items[i].offset = 0;
    for (int kind = 0; st == TG_OK && kind < 4 && best > *lower_bound; kind++) {
        const int used = make_order(items, n, kind, order);
        st = place(items, order, used, best, &s, &t, err);
        last_kind = kind;
        if (t < best) {
            best = t;
            best_kind = kind;
        }
    }
    if (st == TG_OK && last_kind != best_kind) {
        const int used = make_order(items, n, best_kind, order);
        st = place(items, order, used, SIZE_MAX, &s, &t, err);
    }
    *total = tgi_align_size(best == SIZE_MAX ? 0 : best, TGI_ARENA_ALIGN);
    tgi_free(order);
    tgi_free(s.piece);
    tgi_free(s.order);
    tgi_free(edges);
    return st;
}
