/* lzw.c - TIFF's LZW: codes of 9 to 12 bits, most significant bit first, the width grows one
 * entry early, 256 clears, 257 ends. Source: TIFF 6.0, section 13. */
#include "io/lzw.h"

#include <stdint.h>
#include <string.h>

enum { CLEAR = 256, END = 257, FIRST = 258, FULL = 4094, SLOTS = 8192, EMPTY = 0 };

/* Open-addressed dictionary: (prefix code, next byte) -> code. At most 3,836 of 8,192 slots. */
typedef struct dictionary {
    uint32_t key[SLOTS]; /* prefix << 8 | byte, plus 1: 0 is empty */
    uint16_t code[SLOTS];
} dictionary;

typedef struct writer {
    uint8_t *p;
    uint32_t bits; /* the low `have` bits wait for output */
    int have;
    int width; /* of the next code */
    int next;  /* code of the next dictionary entry */
} writer;

size_t tgi_lzw_bound(size_t n)
{
    return n + n / 2 + n / 1024 + 64; /* 12 bits for a byte, the clears, both ends */
}

size_t tgi_lzw_state_bytes(void)
{
    return sizeof(dictionary);
}

static void put(writer *w, int code)
{
    w->bits = w->bits << w->width | (uint32_t)code;
    w->have += w->width;
    while (w->have >= 8) {
        w->have -= 8;
        *w->p++ = (uint8_t)(w->bits >> w->have);
    }
}

static void start_over(writer *w, dictionary *d)
{
    memset(d->key, EMPTY, sizeof d->key);
    w->width = 9;
    w->next = FIRST;
}

/* An entry was added (by us or, at the end, by the reader): grow the width, or clear. */
static void count_entry(writer *w, dictionary *d)
{
    w->next++;
    if (w->next == FULL) {
        put(w, CLEAR);
        start_over(w, d);
    } else if (w->next == 1 << w->width) {
        w->width++;
    }
}

/* The slot that holds `key`, or the empty one where it belongs. */
static uint32_t find(const dictionary *d, uint32_t key)
{
    uint32_t i = (key * 2654435761u) >> (32 - 13);
    while (d->key[i] != EMPTY && d->key[i] != key)
        i = (i + 1) % SLOTS;
    return i;
}

size_t tgi_lzw(void *state, const void *src, size_t n, void *dst)
{
    dictionary *d = state;
    const uint8_t *s = src;
    writer w = {.p = dst};
    start_over(&w, d);
    put(&w, CLEAR);
    if (n) {
        int prefix = s[0];
        for (size_t i = 1; i < n; i++) {
            const uint32_t key = ((uint32_t)prefix << 8 | s[i]) + 1;
            const uint32_t slot = find(d, key);
            if (d->key[slot] == key) {
                prefix = d->code[slot];
                continue;
            }
            put(&w, prefix);
            d->key[slot] = key;
            d->code[slot] = (uint16_t)w.next;
            count_entry(&w, d);
            prefix = s[i];
        }
        put(&w, prefix);
        count_entry(&w, d);
    }
    put(&w, END);
    if (w.have)
        *w.p++ = (uint8_t)(w.bits << (8 - w.have));
    return (size_t)(w.p - (uint8_t *)dst);
}
