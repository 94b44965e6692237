/* pool_check.c - every invariant of pool_priv.h held against the structures themselves, by
 * walking all of them. For tests: nothing of the library calls it. */
#include "engine/base/pool_priv.h"

typedef struct sums {
    uint64_t reserved, active, n_used, n_idle, n_segments, n_free;
} sums;

static const char *check_block(const tg_pool *p, const tgi_segment *s, const block *b,
                               const char *at)
{
    if (b->seg != s || b->at != at || !b->bytes)
        return "a block does not follow its neighbour";
    if (b->after ? b->after->before != b : s->last != b)
        return "neighbours disagree";
    if (b->in_use && b->rec.mark != RECORD_BLOCK)
        return "a block in use has no record";
    if (b->in_use && b->rec.bytes > b->bytes)
        return "a block is smaller than what was asked for";
    if (b->in_use && s->room != ROOM_OWN && tgi_blocks_lookup(p, b->at) != b)
        return "a block in use is not in the table";
    if (!b->in_use && !b->slot && b->after && !b->after->in_use && !b->after->slot)
        return "two neighbours are free";
    return NULL;
}

static const char *check_segment(const tg_pool *p, const tgi_segment *s, sums *sum)
{
    const char *at = s->at;
    size_t n_used = 0;
    for (const block *b = s->first; b; b = b->after) {
        const char *wrong = check_block(p, s, b, at);
        if (wrong)
            return wrong;
        at += b->bytes;
        n_used += b->in_use;
        sum->active += b->in_use ? b->bytes : 0;
        sum->n_free += !b->in_use;
    }
    if (s->room != ROOM_OWN && at != s->at + s->bytes)
        return "blocks do not fill their segment";
    if (n_used != s->n_used)
        return "a segment counts its blocks wrongly";
    sum->reserved += s->bytes;
    sum->n_used += n_used;
    sum->n_idle += !n_used && s->room != ROOM_OWN;
    sum->n_segments++;
    return NULL;
}

static const char *check_shelves(const tg_pool *p, uint64_t *n_free)
{
    for (int r = 0; r < N_ROOMS; r++)
        for (int i = 0; i < N_SORTS; i++) {
            const shelf *s = &p->shelf[r];
            if ((s->map[i / 64] >> i % 64 & 1) != (s->list[i] != NULL))
                return "the bit map disagrees with a class";
            for (const block *b = s->list[i]; b; b = b->next_free, (*n_free)++)
                if (b->in_use || b->slot || tgi_sort_of(p, b->bytes) != i ||
                    (b->seg->room == ROOM_LARGE) != r)
                    return "a block lies in the wrong class";
        }
    for (int c = 0; c < TG_POOL_CLASSES; c++)
        for (const block *b = p->slots[c]; b; b = b->next_free, (*n_free)++)
            if (b->in_use || b->slot != c + 1)
                return "a slot lies wrongly";
    return NULL;
}

static const char *check_ledger(const tg_pool *p, sums *sum)
{
    uint64_t n = 0, blocks = 0, bytes = 0, last = 0, by_tag = 0;
    for (const record *r = p->live.newer; r != &p->live; r = r->newer, n++) {
        if (r->newer->older != r || r->number <= last || r->tag >= p->n_tags)
            return "the ledger is out of order";
        last = r->number;
        bytes += r->bytes;
        blocks += r->mark == RECORD_BLOCK;
        sum->reserved += r->mark == RECORD_DIRECT ? r->bytes : 0;
        sum->active += r->mark == RECORD_DIRECT ? r->bytes : 0;
    }
    for (uint32_t i = 0; i < p->n_tags; i++)
        by_tag += p->tag_bytes[i];
    if (n != p->n_live || p->allocs - p->frees != n || blocks != sum->n_used)
        return "the ledger counts its blocks wrongly";
    if (bytes != p->allocated.now || by_tag != bytes)
        return "the ledger's bytes do not add up";
    return NULL;
}

const char *tgi_pool_broken(tg_pool *pool)
{
    sums sum = {0};
    const char *wrong = NULL;
    uint64_t n_free = 0;
    pthread_mutex_lock(&pool->lock);
    for (const tgi_segment *s = pool->segments; s && !wrong; s = s->next)
        wrong = check_segment(pool, s, &sum);
    if (!wrong)
        wrong = check_shelves(pool, &n_free);
    if (!wrong)
        wrong = check_ledger(pool, &sum);
    if (!wrong && n_free != sum.n_free)
        wrong = "a free block is on no shelf";
    if (!wrong && (sum.reserved != pool->reserved.now || sum.active != pool->active.now))
        wrong = "reserved or active bytes do not add up";
    if (!wrong && (sum.n_idle != pool->n_idle || sum.n_segments != pool->n_segments))
        wrong = "segments are counted wrongly";
    pthread_mutex_unlock(&pool->lock);
    return wrong;
}
