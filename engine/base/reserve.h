/* reserve.h - the one reservation: every block a run owns lies in it.
 *
 * Anonymous memory, 2 MiB aligned, populated when opened: if the system cannot give it, that
 * shows at second zero as TG_E_NOMEM and not as a kill in the middle of the night. Blocks are
 * carved in order, 64-byte aligned, named for the ledger; none is given back before the end.
 * Nobody may count on zeros. */
#ifndef TGI_RESERVE_H
#define TGI_RESERVE_H

#include "engine/base/status.h"

typedef struct tgi_reserve tgi_reserve;

#define TGI_RESERVE_MAX_BLOCKS 16

typedef struct tgi_block {
    const char *name; /* static */
    void *at;
    size_t bytes;
} tgi_block;

/* Returned; close with tgi_reserve_close. With TEGULA_POISON set in the environment the pages
 * are filled with a pattern, so that tgi_reserve_touched can count; where it is
 * "nan" with the floats of that name, so that what is read before it was written shows. */
tg_status tgi_reserve_open(size_t bytes, tgi_reserve **out, tgi_err *err);
void tgi_reserve_close(tgi_reserve **r);
/* Carve a block; `name` must be static. TG_E_INTERNAL when the plan was too small. */
tg_status tgi_reserve_take(tgi_reserve *r, const char *name, size_t bytes, void **out,
                           tgi_err *err);
/* A block that is wanted, and where its place goes. */
typedef struct tgi_want {
    const char *name; /* static */
    size_t bytes;
    void **at;
} tgi_want;
/* Open a reservation that holds n blocks and `more` bytes, and carve the blocks. On failure
 * *out may be open: close it. */
tg_status tgi_reserve_all(const tgi_want *want, int n, size_t more, tgi_reserve **out,
                          tgi_err *err);
size_t tgi_reserve_bytes(const tgi_reserve *r);
/* The ledger; view. */
const tgi_block *tgi_reserve_blocks(const tgi_reserve *r, int *n);
/* Pages of a reservation that is closed wait for the next one, while it is asked for: many jobs of one process map and fill
 * them once. Each call with 1 asks, each with 0 asks no longer. */
void tgi_pages_keep(int more);
/* What waits beyond `bytes` is given back to the system: what follows plans no more. */
void tgi_pages_keep_at_most(size_t bytes);
/* Bytes that wait; they are the process's, and nobody's. */
size_t tgi_pages_kept(void);
/* Share of a block's 4 KiB pages that differ from the poison; 1 when nothing was poisoned. */
double tgi_reserve_touched(const tgi_reserve *r, const char *name);

#endif
