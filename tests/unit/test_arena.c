/* Offsets of buffers: those of the plain way to find them, whatever is passed over on the way.
 */
#include "engine/plan/arena.h"

#include "engine/base/cancel.h"
#include "tests/tg_test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MOST 300

typedef struct entry {
    int item;
    size_t key1, key2;
} entry;

static int by_key(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->key1 != y->key1)
        return x->key1 < y->key1 ? 1 : -1;
    if (x->key2 != y->key2)
        return x->key2 < y->key2 ? 1 : -1;
    return x->item - y->item;
}

static int alive_together(const tgi_item *a, const tgi_item *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static size_t aligned(size_t n)
{
    return (n + TGI_ARENA_ALIGN - 1) / TGI_ARENA_ALIGN * TGI_ARENA_ALIGN;
}

/* Does item k, at `at`, meet none of the first `n` of the order? */
static int is_free(const tgi_item *items, const entry *order, int n, int k, size_t at)
{
    for (int i = 0; i < n; i++) {
        const tgi_item *o = &items[order[i].item];
        if (o->bytes && alive_together(o, &items[k]) && at < o->offset + o->bytes &&
            o->offset < at + items[k].bytes)
            return 0;
    }
    return 1;
}

/* Every offset that could be the lowest free one: 0 and the ends of those placed before. */
static size_t place_plainly(tgi_item *items, const entry *order, int n)
{
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        tgi_item *it = &items[order[i].item];
        size_t best = SIZE_MAX;
        for (int k = -1; k < i && it->bytes; k++) {
            const tgi_item *o = k < 0 ? NULL : &items[order[k].item];
            const size_t at = o ? aligned(o->offset + o->bytes) : 0;
            if ((!o || o->bytes) && at < best && is_free(items, order, i, order[i].item, at))
                best = at;
        }
        it->offset = it->bytes ? best : 0;
        if (it->bytes && it->offset + it->bytes > total)
            total = it->offset + it->bytes;
    }
    return total;
}

/* As arena.h says: the four orders, the first of the best. */
static size_t pack_plainly(tgi_item *items, int n)
{
    static entry order[4][MOST];
    size_t best = SIZE_MAX;
    int kind = 0;
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < n; i++) {
            const size_t life = (size_t)(items[i].last - items[i].first + 1);
            const size_t key[4] = {items[i].bytes, life,
                                   SIZE_MAX - (size_t)(items[i].first + 1),
                                   items[i].bytes * life};
            order[k][i] = (entry){i, key[k], k == 0 ? life : items[i].bytes};
        }
        qsort(order[k], (size_t)n, sizeof **order, by_key);
        const size_t total = place_plainly(items, order[k], n);
        if (total < best) {
            best = total;
            kind = k;
        }
    }
    place_plainly(items, order[kind], n);
    return aligned(best);
}

/* Steps that most live for, how many of 8 live through everything, sizes. */
static void draw(tgi_item *items, int n, int life, int through, int sizes, uint64_t *seed)
{
    for (int i = 0; i < n; i++) {
        const int first = (int)tg_rand_in(seed, -1, n);
        const int all = tg_rand_in(seed, 0, 7) < through;
        items[i] =
            (tgi_item){.bytes = (size_t)(64 * tg_rand_in(seed, 0, sizes) + (i % 3 ? 0 : 4)),
                       .first = all ? -1 : first,
                       .last = all ? n : first + (int)tg_rand_in(seed, 0, life)};
    }
}

static void test_offsets_are_those_of_the_plain_way(void)
{
    static tgi_item items[MOST], plain[MOST];
    uint64_t seed = 17;
    for (int t = 0; t < 60; t++) {
        const int n =
            t < 30 ? (int)tg_rand_in(&seed, 0, 60) : (int)tg_rand_in(&seed, 150, MOST);
        const int lives[] = {1, 9, n + 1};
        size_t total = 0, least = 0;
        tgi_err err = {0};
        draw(items, n, lives[t % 3], t % 5 * 2, t % 4 ? 40 : 2, &seed);
        memcpy(plain, items, sizeof plain);
        CHECK_OK(tgi_arena_pack(items, n, &total, &least, &err), err);
        CHECK_EQ(total, n ? pack_plainly(plain, n) : 0);
        CHECK(least <= total);
        for (int i = 0; i < n; i++)
            CHECK_EQ(items[i].offset, plain[i].offset);
    }
}

static void test_packing_stops_when_asked(void)
{
    tgi_item one = {.bytes = 64, .first = 0, .last = 1};
    size_t total, least;
    tgi_err err = {0};
    tgi_cancel(SIGINT);
    CHECK_EQ(tgi_arena_pack(&one, 1, &total, &least, &err), TG_E_CANCELLED);
    tgi_cancel(0);
}

int main(void)
{
    RUN(test_offsets_are_those_of_the_plain_way);
    RUN(test_packing_stops_when_asked);
    return TEST_END();
}
