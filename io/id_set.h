/* id_set.h - texts that were met, by their hashes of 64 bits: of n texts two are taken for one with a chance of n^2 / 2^65. */
#ifndef TGI_ID_SET_H
#define TGI_ID_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tgi_id_set {
    uint64_t *slot; /* 0: free; owned */
    size_t n, room; /* a power of two */
} tgi_id_set;

/* false: no memory. */
bool tgi_id_set_add(tgi_id_set *s, const char *id);
bool tgi_id_set_has(const tgi_id_set *s, const char *id);
void tgi_id_set_clear(tgi_id_set *s);

#endif
