/* mask_grow.c - see mask_grow.h.
 *
 * A pixel that is set has the number n + 1, one beside it 1 less, and so on until 0. Two passes, down and up, give each
 * pixel the largest number that reaches it, in its place: Rosenfeld and Pfaltz, "Sequential operations in digital picture
 * processing", 1966, who show that this is exact for this distance. */
#include "io/mask_grow.h"

#include "engine/base/arith.h"

#include <stddef.h>

static inline uint8_t one_less(uint8_t v)
{
    return v ? (uint8_t)(v - 1) : 0;
}

/* What a row of numbers reaches of another one, and what pixels of that one reach of those behind them. */
static void reach_row(uint8_t *restrict to, const uint8_t *restrict from, int64_t width,
                      int to_the_left)
{
    for (int64_t x = 0; from && x < width; x++) {
        const uint8_t v = one_less(from[x]);
        to[x] = v > to[x] ? v : to[x];
    }
    uint8_t last = 0;
    for (int64_t i = 0; i < width; i++) {
        uint8_t *at = &to[to_the_left ? width - 1 - i : i];
        last = one_less(last);
        last = *at > last ? *at : last;
        *at = last;
    }
}

/* n: 254 at most, as numbers are bytes. */
static void grow_some(uint8_t *mask, int64_t height, int64_t width, int n)
{
    for (int64_t y = 0; y < height; y++) {
        uint8_t *row = mask + y * width;
        for (int64_t x = 0; x < width; x++)
            row[x] = row[x] ? (uint8_t)(n + 1) : 0;
        reach_row(row, y ? row - width : NULL, width, 0);
    }
    for (int64_t y = height - 1; y >= 0; y--) {
        uint8_t *row = mask + y * width;
        reach_row(row, y < height - 1 ? row + width : NULL, width, 1);
    }
    for (int64_t i = 0; i < height * width; i++)
        mask[i] = mask[i] != 0;
}

/* Growth by a + b is growth by a, then by b. */
void tgi_mask_grow(uint8_t *mask, int64_t height, int64_t width, int64_t n)
{
    n = tgi_clamp(n, 0, height + width);
    do {
        grow_some(mask, height, width, (int)tgi_min(n, 254));
        n -= 254;
    } while (n > 0);
}
