/* id_set.c - see id_set.h. FNV-1a, and the slot behind a taken one. */
#include "io/id_set.h"

#include "engine/base/mem.h"

#define LEAST 256

static uint64_t hash_of(const char *id)
{
    uint64_t h = 14695981039346656037u;
    for (; *id; id++)
        h = (h ^ (unsigned char)*id) * 1099511628211u;
    return h ? h : 1;
}

/* Where the hash is, or would be. */
static size_t place_of(const uint64_t *slot, size_t room, uint64_t h)
{
    size_t i = (size_t)(h ^ h >> 32) & (room - 1);
    while (slot[i] && slot[i] != h)
        i = (i + 1) & (room - 1);
    return i;
}

static bool grow(tgi_id_set *s)
{
    const size_t room = s->room ? 2 * s->room : LEAST;
    uint64_t *slot = tgi_calloc(TGI_TAG_IO, room, sizeof *slot);
    if (!slot)
        return false;
    for (size_t i = 0; i < s->room; i++)
        if (s->slot[i])
            slot[place_of(slot, room, s->slot[i])] = s->slot[i];
    tgi_free(s->slot);
    s->slot = slot;
    s->room = room;
    return true;
}

bool tgi_id_set_add(tgi_id_set *s, const char *id)
{
    if (2 * s->n >= s->room && !grow(s))
        return false;
    const uint64_t h = hash_of(id);
    const size_t i = place_of(s->slot, s->room, h);
    s->n += !s->slot[i];
    s->slot[i] = h;
    return true;
}

bool tgi_id_set_has(const tgi_id_set *s, const char *id)
{
    const uint64_t h = hash_of(id);
    return s->n && s->slot[place_of(s->slot, s->room, h)] == h;
}

void tgi_id_set_clear(tgi_id_set *s)
{
    tgi_free(s->slot);
    *s = (tgi_id_set){0};
}
