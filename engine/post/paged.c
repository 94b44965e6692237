/* paged.c - see paged.h. Block b of the array lies at b * TGI_PAGED_BLOCK of the file once it was
 * written; one that never was is zeros, and not read. */
#include "engine/post/paged.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/out/scratch.h"
#include "io/file_ops.h"

#include <string.h>

typedef struct slot {
    uint64_t block; /* FREE: none */
    uint8_t used, dirty;
} slot;

#define FREE UINT64_MAX
#define ABSENT UINT32_MAX

struct tgi_paged {
    int width;
    unsigned shift;  /* numbers of a block, as a power of two */
    uint8_t *blocks; /* of all slots; without a file: the array */
    tgi_scratch *file;
    const char *folder;
    uint32_t *slot_of; /* of each block; ABSENT */
    uint8_t *written;  /* a bit of each block: the file has it */
    slot *slots;
    uint32_t n_slots, hand;
    uint64_t last; /* the block that was used last, */
    uint8_t *at;   /* and where it is */
    slot *last_slot;
};

static uint64_t blocks_of(uint64_t n, int width)
{
    const uint64_t each = TGI_PAGED_BLOCK / (unsigned)width;
    return n / each + (n % each != 0);
}

size_t tgi_paged_all(uint64_t n, int width)
{
    return tgi_sat_mul((size_t)blocks_of(n, width), TGI_PAGED_BLOCK);
}

size_t tgi_paged_tables(uint64_t n, int width)
{
    const size_t blocks = (size_t)blocks_of(n, width);
    const size_t tables = tgi_sat_mul(blocks, sizeof(uint32_t) + sizeof(slot));
    return tgi_sat_add(tables, blocks / 8 + sizeof(tgi_paged) + 1024);
}

static tg_status open_file(tgi_paged *p, const tgi_paged_opts *o, uint64_t blocks, tgi_err *err)
{
    p->n_slots = (uint32_t)(o->cache / TGI_PAGED_BLOCK);
    p->slot_of = tgi_calloc(TGI_TAG_IO, (size_t)blocks, sizeof *p->slot_of);
    p->written = tgi_calloc(TGI_TAG_IO, (size_t)blocks / 8 + 1, 1);
    p->slots = tgi_calloc(TGI_TAG_IO, p->n_slots, sizeof *p->slots);
    p->blocks = tgi_calloc(TGI_TAG_IO, p->n_slots, TGI_PAGED_BLOCK);
    if (!p->slot_of || !p->written || !p->slots || !p->blocks)
        return tgi_fail(err, TG_E_NOMEM, "no memory for blocks of a scratch file");
    memset(p->slot_of, 0xff, (size_t)blocks * sizeof *p->slot_of);
    for (uint32_t i = 0; i < p->n_slots; i++)
        p->slots[i].block = FREE;
    return tgi_scratch_create(o->folder, blocks * TGI_PAGED_BLOCK, &p->file, err);
}

tg_status tgi_paged_open(const tgi_paged_opts *o, tgi_paged **out, tgi_err *err)
{
    const uint64_t blocks = blocks_of(o->n ? o->n : 1, o->width);
    tgi_paged *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an array");
    p->width = o->width;
    p->shift = o->width == 8 ? 13 : 14;
    p->folder = o->folder;
    p->last = FREE;
    tg_status st = TG_OK;
    if (o->cache / TGI_PAGED_BLOCK >= blocks)
        p->blocks = tgi_calloc(TGI_TAG_IO, (size_t)blocks, TGI_PAGED_BLOCK);
    else if (o->folder && o->cache >= TGI_PAGED_BLOCK && blocks < ABSENT)
        st = open_file(p, o, blocks, err);
    else
        st = tgi_fail(err, TG_E_INTERNAL, "an array of %llu blocks with %zu bytes of cache",
                      (unsigned long long)blocks, o->cache);
    if (st == TG_OK && !p->blocks)
        st = tgi_fail(err, TG_E_NOMEM, "no memory for an array of %llu numbers",
                      (unsigned long long)o->n);
    if (st != TG_OK)
        tgi_paged_close(&p);
    *out = p;
    return st;
}

void tgi_paged_close(tgi_paged **pp)
{
    tgi_paged *p = *pp;
    if (!p)
        return;
    tgi_scratch_close(&p->file);
    tgi_free(p->slot_of);
    tgi_free(p->written);
    tgi_free(p->slots);
    tgi_free(p->blocks);
    tgi_free(p);
    *pp = NULL;
}

static uint8_t *bytes_of(const tgi_paged *p, uint32_t i)
{
    return p->blocks + (size_t)i * TGI_PAGED_BLOCK;
}

/* A slot whose block is safe in the file, or that has none. */
static tg_status evict(tgi_paged *p, uint32_t *out, tgi_err *err)
{
    slot *s = &p->slots[p->hand];
    while (s->used) {
        s->used = 0;
        p->hand = (p->hand + 1) % p->n_slots;
        s = &p->slots[p->hand];
    }
    *out = p->hand;
    p->hand = (p->hand + 1) % p->n_slots;
    if (s->block == FREE)
        return TG_OK;
    if (s->dirty) {
        TGI_TRY(tgi_scratch_write(p->file, s->block * TGI_PAGED_BLOCK, bytes_of(p, *out),
                                  TGI_PAGED_BLOCK, err));
        p->written[s->block / 8] |= (uint8_t)(1u << s->block % 8);
    }
    p->slot_of[s->block] = ABSENT;
    s->block = FREE;
    return TG_OK;
}

static tg_status fetch(tgi_paged *p, uint64_t block, uint32_t *out, tgi_err *err)
{
    TGI_TRY(evict(p, out, err));
    if (p->written[block / 8] >> block % 8 & 1)
        TGI_TRY(tgi_file_pread(tgi_scratch_fd(p->file), p->folder, bytes_of(p, *out),
                               TGI_PAGED_BLOCK, block * TGI_PAGED_BLOCK, err));
    else
        memset(bytes_of(p, *out), 0, TGI_PAGED_BLOCK);
    p->slots[*out] = (slot){.block = block};
    p->slot_of[block] = *out;
    return TG_OK;
}

/* Where number i is. */
static tg_status find(tgi_paged *p, uint64_t i, int write, uint8_t **at, tgi_err *err)
{
    const uint64_t block = i >> p->shift;
    if (!p->file) {
        *at = p->blocks + (size_t)i * (unsigned)p->width;
        return TG_OK;
    }
    if (block != p->last) {
        uint32_t s = p->slot_of[block];
        p->last = FREE;
        if (s == ABSENT)
            TGI_TRY(fetch(p, block, &s, err));
        p->last = block;
        p->last_slot = &p->slots[s];
        p->last_slot->used = 1;
        p->at = bytes_of(p, s);
    }
    p->last_slot->dirty |= (uint8_t)write;
    *at = p->at + (size_t)(i & (((uint64_t)1 << p->shift) - 1)) * (unsigned)p->width;
    return TG_OK;
}

tg_status tgi_paged_get(tgi_paged *p, uint64_t i, uint64_t *out, tgi_err *err)
{
    uint8_t *at = NULL;
    TGI_TRY(find(p, i, 0, &at, err));
    if (p->width == 8) {
        memcpy(out, at, 8);
    } else {
        uint32_t v;
        memcpy(&v, at, 4);
        *out = v;
    }
    return TG_OK;
}

tg_status tgi_paged_set(tgi_paged *p, uint64_t i, uint64_t value, tgi_err *err)
{
    uint8_t *at = NULL;
    TGI_TRY(find(p, i, 1, &at, err));
    if (p->width == 8) {
        memcpy(at, &value, 8);
    } else {
        const uint32_t v = (uint32_t)value;
        memcpy(at, &v, 4);
    }
    return TG_OK;
}
