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

/* The placed ones that live at every step (rows carried from band to band): what they cover,
 * by offset, without room between two of one stretch. */
typedef struct stretch {
    size_t from, to;
} stretch;

typedef struct always {
    int first, last; /* of all items: who lives from one to the other is one of them */
    stretch *s;
    int n;
} always;

static int is_always(const always *a, const tgi_item *it)
{
    return it->first <= a->first && it->last >= a->last;
}

static void cover(always *a, const tgi_item *it)
{
    stretch one = {it->offset, it->offset + it->bytes};
    int at = a->n;
    while (at > 0 && a->s[at - 1].from > one.from)
        at--;
    const int joins_left = at > 0 && behind(0, a->s[at - 1].to) >= one.from;
    const int joins_right = at < a->n && behind(0, one.to) >= a->s[at].from;
    if (joins_left)
        one.from = a->s[--at].from;
    if (joins_right)
        one.to = a->s[at + joins_left].to;
    const int gone = joins_left + joins_right;
    memmove(&a->s[at + 1], &a->s[at + gone], (size_t)(a->n - at - gone) * sizeof *a->s);
    a->s[at] = one;
    a->n += 1 - gone;
}

/* The others that are placed, by their first steps: a tree over all items in that order, each
 * node of which knows the largest last step of those below it that are placed. */
typedef struct times {
    int *item;  /* by first step */
    int *leaf;  /* of each item: where it stands there */
    int *last;  /* of node 1, the root; 2k and 2k + 1 are below node k */
    int leaves; /* a power of two */
} times;

static int leaves_for(int n)
{
    int leaves = 1;
    while (leaves < n)
        leaves *= 2;
    return leaves;
}

static void forget_all(times *t)
{
    for (int k = 0; k < 2 * t->leaves; k++)
        t->last[k] = INT_MIN;
}

static void note(times *t, int i, int last)
{
    for (int k = t->leaves + t->leaf[i]; k > 0 && t->last[k] < last; k /= 2)
        t->last[k] = last;
}

/* Those of them that live when an item does, by offset. */
#define FEW 48
typedef struct neighbours {
    int n; /* more than FEW: not all of them */
    stretch s[FEW];
} neighbours;

static void add(neighbours *f, const tgi_item *it)
{
    int at = f->n++;
    if (at >= FEW)
        return;
    for (; at > 0 && f->s[at - 1].from > it->offset; at--)
        f->s[at] = f->s[at - 1];
    f->s[at] = (stretch){it->offset, it->offset + it->bytes};
}

/* Those below node k, which has the leaves [from, from + wide), that live when `it` does. */
static void meet(const times *t, const tgi_item *items, const tgi_item *it, int k, int from,
                 int wide, neighbours *f)
{
    if (t->last[k] < it->first || f->n > FEW || items[t->item[from]].first > it->last)
        return;
    if (wide == 1) {
        add(f, &items[t->item[from]]);
        return;
    }
    meet(t, items, it, 2 * k, from, wide / 2, f);
    meet(t, items, it, 2 * k + 1, from + wide / 2, wide / 2, f);
}

/* By all that are placed, where many live when `it` does. */
static size_t lowest_on_shelf(const shelf *s, const tgi_item *it)
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

/* By `edge`: where bytes begin and, one step after the last, end. */
typedef struct edge {
    int at;
    size_t begins, ends;
} edge;

/* What placing takes beside the items. */
typedef struct room {
    order_entry *order;
    edge *edges;
    size_t *best; /* offsets of the best order so far */
    shelf s;
    always a;
    times t;
} room;

/* Lowest offset at which item `it` meets none of the placed ones. */
static size_t lowest_gap(const room *r, const tgi_item *items, const tgi_item *it)
{
    const always *a = &r->a;
    neighbours f = {0};
    size_t at = 0;
    if (!is_always(a, it))
        meet(&r->t, items, it, 1, 0, r->t.leaves, &f);
    if (f.n > FEW || is_always(a, it))
        return lowest_on_shelf(&r->s, it);
    for (int i = 0, k = 0; i < f.n || k < a->n;) {
        const int other = k == a->n || (i < f.n && f.s[i].from < a->s[k].from);
        const stretch *p = other ? &f.s[i++] : &a->s[k++];
        if (at + it->bytes <= p->from)
            break;
        at = behind(at, p->to);
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

/* Give the first n items of the order their places, or as many as take less than `limit`: an order that
 * needs as much as another one is of no use. */
static tg_status place(tgi_item *items, int n, size_t limit, room *r, size_t *total,
                       tgi_err *err)
{
    *total = 0;
    r->s.n = 1;
    r->s.order[0] = r->s.piece[0].n = 0;
    sum_up(&r->s.piece[0]);
    r->a.n = 0;
    forget_all(&r->t);
    for (int i = 0; i < n && *total < limit; i++) {
        const int k = r->order[i].item;
        tgi_item *it = &items[k];
        TGI_TRY(tgi_check_cancel(err));
        it->offset = lowest_gap(r, items, it);
        put(&r->s, it);
        if (is_always(&r->a, it))
            cover(&r->a, it);
        else
            note(&r->t, k, it->last);
        *total = *total > it->offset + it->bytes ? *total : it->offset + it->bytes;
    }
    return TG_OK;
}

enum { LARGEST, LONGEST, AS_STEPS_COME, MOST_BYTES_TIMES_STEPS, KINDS };

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
        case LARGEST:
            e->key1 = bytes;
            e->key2 = life;
            break;
        case LONGEST:
            e->key1 = life;
            break;
        case AS_STEPS_COME:
            e->key1 = SIZE_MAX - (size_t)(items[i].first + 1);
            break;
        default:
            e->key1 = tgi_sat_mul(bytes, life);
            break;
        }
    }
    qsort(order, (size_t)used, sizeof *order, by_key);
    return used;
}

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

static void room_close(room *r)
{
    tgi_free(r->order);
    tgi_free(r->edges);
    tgi_free(r->best);
    tgi_free(r->s.piece);
    tgi_free(r->s.order);
    tgi_free(r->a.s);
    tgi_free(r->t.item);
    tgi_free(r->t.leaf);
    tgi_free(r->t.last);
}

static tg_status room_open(room *r, int n, tgi_err *err)
{
    const size_t some = (size_t)n + 1, pieces = pieces_for(n);
    r->order = tgi_malloc(TGI_TAG_PLAN, some * sizeof *r->order);
    r->edges = tgi_malloc(TGI_TAG_PLAN, 2 * some * sizeof *r->edges);
    r->best = tgi_calloc(TGI_TAG_PLAN, some, sizeof *r->best);
    r->s.piece = tgi_calloc(TGI_TAG_PLAN, pieces, sizeof *r->s.piece);
    r->s.order = tgi_calloc(TGI_TAG_PLAN, pieces, sizeof *r->s.order);
    r->a.s = tgi_calloc(TGI_TAG_PLAN, some, sizeof *r->a.s);
    r->t.leaves = leaves_for(n);
    r->t.item = tgi_calloc(TGI_TAG_PLAN, some, sizeof *r->t.item);
    r->t.leaf = tgi_calloc(TGI_TAG_PLAN, some, sizeof *r->t.leaf);
    r->t.last = tgi_calloc(TGI_TAG_PLAN, 2 * (size_t)r->t.leaves, sizeof *r->t.last);
    if (r->order && r->edges && r->best && r->s.piece && r->s.order && r->a.s && r->t.item &&
        r->t.leaf && r->t.last)
        return TG_OK;
    return tgi_fail(err, TG_E_NOMEM, "no memory to place %d buffers", n);
}

static void sort_by_time(const tgi_item *items, int n, room *r)
{
    const int used = make_order(items, n, AS_STEPS_COME, r->order);
    r->a.first = INT_MAX;
    r->a.last = INT_MIN;
    for (int i = 0; i < used; i++) {
        const tgi_item *it = &items[r->order[i].item];
        r->a.first = it->first < r->a.first ? it->first : r->a.first;
        r->a.last = it->last > r->a.last ? it->last : r->a.last;
        r->t.item[i] = r->order[i].item;
        r->t.leaf[r->order[i].item] = i;
    }
}

/* By one kind of order; kept where it needs less than the best so far. */
static tg_status try_order(tgi_item *items, int n, int kind, room *r, size_t *best,
                           tgi_err *err)
{
    size_t total;
    const int used = make_order(items, n, kind, r->order);
    TGI_TRY(place(items, used, *best, r, &total, err));
    if (total >= *best)
        return TG_OK;
    *best = total;
    for (int i = 0; i < n; i++)
        r->best[i] = items[i].offset;
    return TG_OK;
}

tg_status tgi_arena_pack(tgi_item *items, int n, size_t *total, size_t *lower_bound,
                         tgi_err *err)
{
    room r = {0};
    size_t best = SIZE_MAX;
    tg_status st = room_open(&r, n, err);
    for (int i = 0; i < n; i++)
        items[i].offset = 0;
    if (st == TG_OK) {
        *lower_bound = largest_live_set(items, n, r.edges);
        sort_by_time(items, n, &r);
    }
    for (int kind = 0; st == TG_OK && kind < KINDS && best > *lower_bound; kind++)
        st = try_order(items, n, kind, &r, &best, err);
    for (int i = 0; i < n && st == TG_OK; i++)
        items[i].offset = r.best[i];
    *total = best == SIZE_MAX ? SIZE_MAX : tgi_align_size(best, TGI_ARENA_ALIGN);
    room_close(&r);
    return st;
}
