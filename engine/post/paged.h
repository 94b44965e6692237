/* paged.h - an array of numbers that may be larger than memory: all of it in RAM, or in a scratch
 * file of which some blocks are in RAM.
 *
 * Numbers are 4 or 8 bytes each and begin as 0. Blocks that are needed no more are chosen by a
 * clock: each that was used since the hand came by stays for one more round. One thread. */
#ifndef TGI_PAGED_H
#define TGI_PAGED_H

#include "engine/base/status.h"

#include <stdint.h>

#define TGI_PAGED_BLOCK ((size_t)64 << 10) /* bytes */
#define TGI_PAGED_LEAST ((size_t)16 * TGI_PAGED_BLOCK)

typedef struct tgi_paged tgi_paged;

typedef struct tgi_paged_opts {
    uint64_t n; /* numbers */
    int width;  /* 4 or 8 bytes */
    size_t
        cache; /* bytes of blocks in RAM, TGI_PAGED_LEAST at least; >= tgi_paged_all: all of it */
    const char *folder; /* of the scratch file; NULL where all of it is in RAM; borrowed */
} tgi_paged_opts;

/* Bytes of all numbers, whole blocks. Saturates. */
size_t tgi_paged_all(uint64_t n, int width);
/* What it holds beside the blocks in RAM. Saturates. */
size_t tgi_paged_tables(uint64_t n, int width);

/* Allocates all it will ever need, and the disk space. Returned; close with tgi_paged_close.
 * As tgi_scratch_create. */
tg_status tgi_paged_open(const tgi_paged_opts *o, tgi_paged **out, tgi_err *err);
void tgi_paged_close(tgi_paged **p);

/* i is below n. What is set is at most 32 bits where the width is 4. */
tg_status tgi_paged_get(tgi_paged *p, uint64_t i, uint64_t *out, tgi_err *err);
tg_status tgi_paged_set(tgi_paged *p, uint64_t i, uint64_t value, tgi_err *err);

#endif
