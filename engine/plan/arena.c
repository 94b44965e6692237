#include "engine/plan/arena.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

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

static int overlap_in_time(const tg_item *a, const tg_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset at which item `it` meets none of the placed ones. `placed` is sorted by offset.
 */
static size_t lowest_gap(const tg_item *items, const int *placed, int n_placed,
                         const tg_item *it)
{
    size_t at = 0;
    for (int i = 0; i < n_placed; i++) {
        const tg_item *p = &items[placed[i]];
        if (!overlap_in_time(p, it))
            continue;
        if (at + it->bytes <= p->offset)
            return at;
        if (p->offset + p->bytes > at)
            at = tgi_align_size(p->offset + p->bytes, TGI_ARENA_ALIGN);
    }
    return at;
}

static size_t place(tg_item *items, const order_entry *order, int n, int *placed)
{
    size_t total = 0;
    int n_placed = 0;
    for (int i = 0; i < n; i++) {
        tg_item *it = &items[order[i].item];
        it->offset = it->bytes ? lowest_gap(items, placed, n_placed, it) : 0;
        if (!it->bytes)
            continue;
        int at = n_placed++;
        for (; at > 0 && items[placed[at - 1]].offset > it->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = order[i].item;
        total = total > it->offset + it->bytes ? total : it->offset + it->bytes;
    }
    return total;
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

static size_t largest_live_set(const tg_item *items, int n)
{
    size_t best = 0;
    for (int i = 0; i < n; i++) { /* the sum changes only where something begins */
        size_t sum = 0;
        for (int k = 0; k < n; k++)
            if (items[k].first <= items[i].first && items[i].first <= items[k].last)
                sum += items[k].bytes;
        best = sum > best ? sum : best;
    }
    return best;
}

tg_status tgi_arena_pack(tg_item *items, int n, size_t *total, size_t *lower_bound,
                         tgi_err *err)
{
    order_entry *order = tgi_malloc(TGI_TAG_PLAN, ((size_t)n + 1) * sizeof *order);
    int *placed = tgi_malloc(TGI_TAG_PLAN, ((size_t)n + 1) * sizeof *placed);
    if (!order || !placed) {
        tgi_free(order);
        tgi_free(placed);
        return tgi_fail(err, TG_E_NOMEM, "no memory to place %d buffers", n);
    }
    int best_kind = 0;
    size_t best = SIZE_MAX;
    for (int kind = 0; kind <= 4; kind++) { /* the last round repeats the best order */
        make_order(items, n, kind == 4 ? best_kind : kind, order);
        const size_t t = place(items, order, n, placed);
        if (t < best) {
            best = t;
            best_kind = kind;
        }
    }
    *total = tgi_align_size(best == SIZE_MAX ? 0 : best, TGI_ARENA_ALIGN);
    *lower_bound = largest_live_set(items, n);
    tgi_free(order);
    tgi_free(placed);
    return TG_OK;
}
