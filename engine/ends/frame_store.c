/* frame_store.c - see frame_store.h. */
#include "engine/ends/frame_store.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/out/scratch.h"
#include "io/file_ops.h"

#define NOBODY (-1)

/* Where an item of place `frame % span` is. */
typedef struct item {
    int64_t frame; /* NO_FRAME: there is none */
    int slot;      /* NOBODY: not in memory */
    int on_disk;
} item;
#define NO_FRAME INT64_MIN

typedef struct kind {
    tgi_frame_kind is;
    item *item;   /* span */
    int *user_of; /* slots: place of the item that has it; NOBODY */
    int *held;    /* slots: by so many */
    char *memory;
    uint64_t file_at;
} kind;

struct tgi_frame_store {
    tgi_frame_store_how how;
    kind kind[TGI_FRAME_KINDS];
    tgi_scratch *scratch;
    int64_t written, read;
};

static size_t item_bytes(const tgi_frame_kind *k)
{
    return tgi_align_size(k->bytes, 64);
}

static int is_short(const tgi_frame_kind *k)
{
    return k->slots < k->span && !k->drop;
}

size_t tgi_frame_store_bytes(const tgi_frame_store_how *how)
{
    size_t n = 0;
    for (int i = 0; i < how->n_kinds; i++)
        n = tgi_sat_add(n, tgi_sat_mul((size_t)how->kind[i].slots, item_bytes(&how->kind[i])));
    return n;
}

uint64_t tgi_frame_store_disk(const tgi_frame_store_how *how)
{
    uint64_t n = 0;
    for (int i = 0; i < how->n_kinds; i++)
        if (is_short(&how->kind[i]))
            n = tgi_sat_add(n,
                            tgi_sat_mul((size_t)how->kind[i].span, item_bytes(&how->kind[i])));
    return n;
}

int tgi_frame_store_shrink(tgi_frame_store_how *how, int fewest)
{
    int changed = 0;
    for (int i = 0; i < how->n_kinds; i++) {
        int *slots = &how->kind[i].slots;
        if (*slots <= fewest)
            continue;
        *slots = *slots * 3 / 4 > fewest ? *slots * 3 / 4 : fewest;
        changed = 1;
    }
    return changed;
}

static tg_status open_kind(kind *k, const tgi_frame_kind *is, char **memory, uint64_t *at,
                           tgi_err *err)
{
    k->is = *is;
    k->memory = *memory;
    k->file_at = *at;
    *memory += (size_t)is->slots * item_bytes(is);
    if (is_short(is))
        *at += (uint64_t)is->span * item_bytes(is);
    k->item = tgi_calloc(TGI_TAG_PLAN, (size_t)is->span, sizeof *k->item);
    k->user_of = tgi_calloc(TGI_TAG_PLAN, (size_t)is->slots, sizeof *k->user_of);
    k->held = tgi_calloc(TGI_TAG_PLAN, (size_t)is->slots, sizeof *k->held);
    if (!k->item || !k->user_of || !k->held)
        return tgi_fail(err, TG_E_NOMEM, "no memory for tables of kept frames");
    for (int64_t i = 0; i < is->span; i++)
        k->item[i] = (item){.frame = NO_FRAME, .slot = NOBODY};
    for (int i = 0; i < is->slots; i++)
        k->user_of[i] = NOBODY;
    return TG_OK;
}

static tg_status open_scratch(tgi_frame_store *s, uint64_t bytes, tgi_err *err)
{
    char size[32];
    const tg_status st = tgi_scratch_create(s->how.scratch, bytes, &s->scratch, err);
    return st == TG_E_NO_SPACE
               ? tgi_fail(err, st, "--scratch %s: no room for frames that are kept, %s",
                          s->how.scratch, tgi_size_above(bytes, size, sizeof size))
               : st;
}

tg_status tgi_frame_store_open(const tgi_frame_store_how *how, void *memory,
                               tgi_frame_store **out, tgi_err *err)
{
    tgi_frame_store *s = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *s);
    if (!s)
        return tgi_fail(err, TG_E_NOMEM, "no memory for kept frames");
    s->how = *how;
    char *at = memory;
    uint64_t file_at = 0;
    tg_status st = TG_OK;
    for (int i = 0; i < how->n_kinds && st == TG_OK; i++)
        st = open_kind(&s->kind[i], &how->kind[i], &at, &file_at, err);
    if (st == TG_OK && file_at)
        st = how->scratch ? open_scratch(s, file_at, err)
                          : tgi_fail(err, TG_E_ARG, "kept frames have no scratch folder");
    if (st != TG_OK)
        tgi_frame_store_close(&s);
    *out = s;
    return st;
}

void tgi_frame_store_close(tgi_frame_store **sp)
{
    tgi_frame_store *s = *sp;
    if (!s)
        return;
    for (int i = 0; i < s->how.n_kinds; i++) {
        tgi_free(s->kind[i].item);
        tgi_free(s->kind[i].user_of);
        tgi_free(s->kind[i].held);
    }
    tgi_scratch_close(&s->scratch);
    tgi_free(s);
    *sp = NULL;
}

/* ---- Slots ------------------------------------------------------------------------------- */

static item *item_of(const tgi_frame_store *s, int k, int64_t frame)
{
    const int64_t span = s->kind[k].is.span, place = frame % span;
    return &s->kind[k].item[place < 0 ? place + span : place];
}

static char *slot_at(const kind *k, int slot)
{
    return k->memory + (size_t)slot * item_bytes(&k->is);
}

/* The slot that is free, or whose item is needed last; NOBODY: all are held. */
static int choose_slot(const tgi_frame_store *s, int kind_of)
{
    const kind *k = &s->kind[kind_of];
    int best = NOBODY;
    int64_t latest = INT64_MIN;
    for (int i = 0; i < k->is.slots; i++) {
        if (k->user_of[i] == NOBODY)
            return i;
        if (k->held[i])
            continue;
        const int64_t next =
            s->how.next ? s->how.next(s->how.user, kind_of, k->item[k->user_of[i]].frame) : 0;
        if (best == NOBODY || next > latest) {
            best = i;
            latest = next;
        }
    }
    return best;
}

static uint64_t place_of(const kind *k, const item *i)
{
    return k->file_at + (uint64_t)(i - k->item) * item_bytes(&k->is);
}

/* Its item goes to the file, if that does not have it. */
static tg_status make_room(tgi_frame_store *s, kind *k, int slot, tgi_err *err)
{
    if (k->user_of[slot] == NOBODY)
        return TG_OK;
    item *was = &k->item[k->user_of[slot]];
    if (k->is.drop) {
        k->user_of[slot] = NOBODY;
        *was = (item){.frame = NO_FRAME, .slot = NOBODY};
        return TG_OK;
    }
    if (!was->on_disk) {
        TGI_TRY(tgi_scratch_write(s->scratch, place_of(k, was), slot_at(k, slot), k->is.bytes,
                                  err));
        s->written++;
        was->on_disk = 1;
    }
    was->slot = NOBODY;
    k->user_of[slot] = NOBODY;
    return TG_OK;
}

/* A slot for the item, which has none, held. */
static tg_status take_slot(tgi_frame_store *s, int kind_of, item *i, tgi_err *err)
{
    kind *k = &s->kind[kind_of];
    const int slot = choose_slot(s, kind_of);
    if (slot == NOBODY)
        return tgi_fail(err, TG_E_INTERNAL, "all %d slots of kept frames are held",
                        k->is.slots);
    TGI_TRY(make_room(s, k, slot, err));
    k->user_of[slot] = (int)(i - k->item);
    k->held[slot] = 1;
    i->slot = slot;
    return TG_OK;
}

/* ---- Items ------------------------------------------------------------------------------- */

int tgi_frame_store_has(const tgi_frame_store *s, int kind_of, int64_t frame)
{
    return item_of(s, kind_of, frame)->frame == frame;
}

tg_status tgi_frame_store_add(tgi_frame_store *s, int kind_of, int64_t frame, void **out,
                              tgi_err *err)
{
    item *i = item_of(s, kind_of, frame);
    if (i->frame != NO_FRAME)
        return tgi_fail(err, TG_E_INTERNAL, "frame %lld has the place of frame %lld",
                        (long long)frame, (long long)i->frame);
    TGI_TRY(take_slot(s, kind_of, i, err));
    i->frame = frame;
    i->on_disk = 0;
    *out = slot_at(&s->kind[kind_of], i->slot);
    return TG_OK;
}

tg_status tgi_frame_store_get(tgi_frame_store *s, int kind_of, int64_t frame, const void **out,
                              tgi_err *err)
{
    item *i = item_of(s, kind_of, frame);
    kind *k = &s->kind[kind_of];
    if (i->frame != frame)
        return tgi_fail(err, TG_E_INTERNAL, "frame %lld is not kept", (long long)frame);
    if (i->slot != NOBODY) {
        k->held[i->slot]++;
    } else {
        TGI_TRY(take_slot(s, kind_of, i, err));
        const int fd = tgi_scratch_fd(s->scratch);
        const tg_status st = tgi_file_pread(fd, s->how.scratch, slot_at(k, i->slot),
                                            k->is.bytes, place_of(k, i), err);
        if (st != TG_OK) {
            k->user_of[i->slot] = NOBODY;
            k->held[i->slot] = 0;
            i->slot = NOBODY;
            return st;
        }
        s->read++;
    }
    *out = slot_at(k, i->slot);
    return TG_OK;
}

tg_status tgi_frame_store_edit(tgi_frame_store *s, int kind_of, int64_t frame, void **out,
                               tgi_err *err)
{
    const void *at;
    TGI_TRY(tgi_frame_store_get(s, kind_of, frame, &at, err));
    item *i = item_of(s, kind_of, frame);
    i->on_disk = 0;
    *out = slot_at(&s->kind[kind_of], i->slot);
    return TG_OK;
}

void tgi_frame_store_let_go(tgi_frame_store *s, int kind_of, int64_t frame)
{
    const item *i = item_of(s, kind_of, frame);
    if (i->frame == frame && i->slot != NOBODY && s->kind[kind_of].held[i->slot] > 0)
        s->kind[kind_of].held[i->slot]--;
}

void tgi_frame_store_forget_of(tgi_frame_store *s, int kind_of, int64_t frame)
{
    kind *k = &s->kind[kind_of];
    for (int64_t p = 0; p < k->is.span; p++) {
        item *i = &k->item[p];
        if (i->frame == NO_FRAME || i->frame >= frame)
            continue;
        if (i->slot != NOBODY) {
            k->user_of[i->slot] = NOBODY;
            k->held[i->slot] = 0;
        }
        *i = (item){.frame = NO_FRAME, .slot = NOBODY};
    }
}

void tgi_frame_store_forget(tgi_frame_store *s, int64_t frame)
{
    for (int n = 0; n < s->how.n_kinds; n++)
        tgi_frame_store_forget_of(s, n, frame);
}

void tgi_frame_store_moved(const tgi_frame_store *s, int64_t *written, int64_t *read)
{
    *written = s->written;
    *read = s->read;
}
