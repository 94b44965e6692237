/* reserve.c - see reserve.h. The segment and its blocks belong to the pool "engine": they are
 * in its ledger under the names of the blocks, while the reservation lasts. */
#include "engine/base/reserve.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/pool_priv.h"
#include "engine/base/size.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((size_t)4096)
#define POISON 0xA5     /* TEGULA_POISON=1: a small number, as a float */
#define POISON_NAN 0xFF /* =nan: what is read and was not computed spreads */

struct tgi_reserve {
    tgi_segment *segment;
    size_t bytes, used;
    int poison; /* what the bytes were filled with; 0: nothing */
    tgi_block block[TGI_RESERVE_MAX_BLOCKS];
    int n_blocks;
};

tg_status tgi_reserve_open(size_t bytes, tgi_reserve **out, tgi_err *err)
{
    tgi_reserve *r = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *r);
    if (!r)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the reservation's ledger");
    r->bytes = tgi_align_size(bytes ? bytes : 1, PAGE);
    r->segment = tgi_pool_take_segment(tgi_pool_engine(), &tgi_raw_populated, r->bytes);
    if (!r->segment) {
        char text[32];
        tgi_reserve_close(&r);
        return tgi_err_tried(
            err,
            tgi_fail(err, TG_E_NOMEM,
                     "the system refused a reservation of %s (memory, or a limit such as "
                     "ulimit -v): give a smaller --ram",
                     tgi_size_text(bytes, text, sizeof text)),
            "the reservation", bytes);
    }
    const char *poison = getenv("TEGULA_POISON");
    if (poison) {
        r->poison = strcmp(poison, "nan") == 0 ? POISON_NAN : POISON;
        memset(tgi_segment_base(r->segment), r->poison, r->bytes);
    }
    *out = r;
    return TG_OK;
}

void tgi_reserve_close(tgi_reserve **r)
{
    if (!r || !*r)
        return;
    tgi_pool_drop_segment(tgi_pool_engine(), &(*r)->segment);
    tgi_free(*r);
    *r = NULL;
}

tg_status tgi_reserve_take(tgi_reserve *r, const char *name, size_t bytes, void **out,
                           tgi_err *err)
{
    const size_t at = tgi_align_size(r->used, 64);
    if (r->n_blocks == TGI_RESERVE_MAX_BLOCKS)
        return tgi_fail(err, TG_E_INTERNAL, "no room in the ledger for \"%s\"", name);
    if (bytes > r->bytes || at > r->bytes - bytes)
        return tgi_fail(err, TG_E_INTERNAL,
                        "the plan reserved %zu bytes, %zu are taken, \"%s\" needs %zu",
                        r->bytes, r->used, name, bytes);
    void *p = tgi_pool_carve(tgi_pool_engine(), r->segment, bytes, 64, name, TG_POOL_SITE);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the ledger of \"%s\"", name);
    r->used = at + bytes;
    r->block[r->n_blocks++] = (tgi_block){name, p, bytes};
    *out = p;
    return TG_OK;
}

tg_status tgi_reserve_all(const tgi_want *want, int n, size_t more, tgi_reserve **out,
                          tgi_err *err)
{
    size_t all = tgi_sat_add(more, 64); /* `more` may begin on the next line of the cache */
    for (int i = 0; i < n; i++)
        all = tgi_sat_add(all, tgi_align_size(want[i].bytes, 64));
    TGI_TRY(tgi_reserve_open(all, out, err));
    for (int i = 0; i < n; i++)
        TGI_TRY(tgi_reserve_take(*out, want[i].name, want[i].bytes, want[i].at, err));
    return TG_OK;
}

size_t tgi_reserve_bytes(const tgi_reserve *r)
{
    return r->bytes;
}

const tgi_block *tgi_reserve_blocks(const tgi_reserve *r, int *n)
{
    *n = r->n_blocks;
    return r->block;
}

static int page_is(int poison, const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != poison)
            return 0;
    return 1;
}

double tgi_reserve_touched(const tgi_reserve *r, const char *name)
{
    size_t pages = 0, touched = 0;
    for (int i = 0; r->poison && i < r->n_blocks; i++) {
        const tgi_block *b = &r->block[i];
        if (strcmp(b->name, name) != 0)
            continue;
        for (size_t at = 0; at < b->bytes; at += PAGE, pages++)
            touched += !page_is(r->poison, (unsigned char *)b->at + at,
                                b->bytes - at < PAGE ? b->bytes - at : PAGE);
    }
    return pages ? (double)touched / (double)pages : 1.0;
}
