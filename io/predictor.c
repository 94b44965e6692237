/* predictor.c - rows of differences, sixteen bytes at a time.
 *
 * Differences go from the right to the left, so that every left neighbour is still itself.
 *
 * Sums within sixteen bytes take log2 steps: x + (x moved up by one pixel) sums pairs, then
 * by two pixels fours, then by four; what came before is added to the first pixel beforehand.
 * Only whole pixels count, so of three samples fifteen or twelve bytes are done at a time; the
 * next bytes are loaded before the rest is written over them. Bytes move by constants only:
 * each width of a pixel is a copy of the loop. */
#include "io/predictor.h"

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define BYTES 16 /* of a vector */

/* ---- Differences ------------------------------------------------------------------------- */

#define DIFFERENCES(T)                                                                         \
    do {                                                                                       \
        typedef T lanes __attribute__((vector_size(BYTES)));                                   \
        size_t i = n;                                                                          \
        for (; i >= stride + BYTES / sizeof(T); i -= BYTES / sizeof(T)) {                      \
            uint8_t *at = row + i * sizeof(T) - BYTES;                                         \
            lanes a, left;                                                                     \
            memcpy(&a, at, BYTES);                                                             \
            memcpy(&left, at - stride * sizeof(T), BYTES);                                     \
            a -= left;                                                                         \
            memcpy(at, &a, BYTES);                                                             \
        }                                                                                      \
        while (i-- > stride) {                                                                 \
            T a, left;                                                                         \
            memcpy(&a, row + i * sizeof(T), sizeof(T));                                        \
            memcpy(&left, row + (i - stride) * sizeof(T), sizeof(T));                          \
            a = (T)(a - left);                                                                 \
            memcpy(row + i * sizeof(T), &a, sizeof(T));                                        \
        }                                                                                      \
    } while (0)

void tgi_difference_row(uint8_t *row, size_t n, size_t size, size_t stride)
{
    if (size == 1)
        DIFFERENCES(uint8_t);
    else if (size == 2)
        DIFFERENCES(uint16_t);
    else if (size == 4)
        DIFFERENCES(uint32_t);
    else
        DIFFERENCES(uint64_t);
}

/* ---- Sums -------------------------------------------------------------------------------- */

/* Elements from `i` on, one by one. */
#define SUMS(T)                                                                                \
    for (; i < n; i++) {                                                                       \
        T a, left;                                                                             \
        memcpy(&left, row + (i - stride) * sizeof(T), sizeof(T));                              \
        memcpy(&a, row + i * sizeof(T), sizeof(T));                                            \
        a = (T)(a + left);                                                                     \
        memcpy(row + i * sizeof(T), &a, sizeof(T));                                            \
    }

static void sum_rest(uint8_t *row, size_t i, size_t n, size_t size, size_t stride)
{
    if (size == 1)
        SUMS(uint8_t)
    else if (size == 2)
        SUMS(uint16_t)
    else if (size == 4)
        SUMS(uint32_t)
    else
        SUMS(uint64_t)
}

#if defined(__SSE2__)
#define INLINE static inline __attribute__((always_inline))

INLINE __m128i add(__m128i a, __m128i b, int size)
{
    return size == 1   ? _mm_add_epi8(a, b)
           : size == 2 ? _mm_add_epi16(a, b)
           : size == 4 ? _mm_add_epi32(a, b)
                       : _mm_add_epi64(a, b);
}

/* x moved up by `by` bytes, and down; zeros follow. */
#define UP(x, by) ((by) < BYTES ? _mm_slli_si128(x, (by)&15) : _mm_setzero_si128())
#define DOWN(x, by) ((by) < BYTES ? _mm_srli_si128(x, (by)&15) : _mm_setzero_si128())

/* The elements that are summed: whole pixels of `pixel` bytes while sixteen bytes can be read.
 */
#define SUM_VECTORS(size, pixel)                                                               \
    INLINE size_t sum_##size##_##pixel(uint8_t *row, size_t bytes)                             \
    {                                                                                          \
        enum { step = BYTES - BYTES % (pixel) }; /* a constant to every compiler */            \
        size_t at = 0;                                                                         \
        __m128i before = _mm_setzero_si128(), next = before;                                   \
        if (bytes >= BYTES)                                                                    \
            next = _mm_loadu_si128((const __m128i *)(const void *)row);                        \
        for (; at + BYTES <= bytes; at += step) {                                              \
            __m128i x = add(next, before, size);                                               \
            if (at + step + BYTES <= bytes)                                                    \
                next = _mm_loadu_si128((const __m128i *)(const void *)(row + at + step));      \
            const __m128i rest = DOWN(_mm_loadu_si128((void *)(row + at)), step);              \
            x = add(x, UP(x, pixel), size);                                                    \
            x = add(x, UP(x, 2 * (pixel)), size);                                              \
            x = add(x, UP(x, 4 * (pixel)), size);                                              \
            x = add(x, UP(x, 8 * (pixel)), size);                                              \
            before = DOWN(UP(x, BYTES - step), BYTES - (pixel));                               \
            x = _mm_or_si128(DOWN(UP(x, BYTES - step), BYTES - step), UP(rest, step));         \
            _mm_storeu_si128((__m128i *)(void *)(row + at), x);                                \
        }                                                                                      \
        return at / (size);                                                                    \
    }
SUM_VECTORS(1, 1)
SUM_VECTORS(1, 2)
SUM_VECTORS(1, 3)
SUM_VECTORS(1, 4)
SUM_VECTORS(2, 2)
SUM_VECTORS(2, 4)
SUM_VECTORS(2, 6)
SUM_VECTORS(2, 8)
SUM_VECTORS(4, 4)
SUM_VECTORS(4, 8)
SUM_VECTORS(4, 12)

/* How many elements from the first on are done. */
static size_t sum_start(uint8_t *row, size_t n, size_t size, size_t stride)
{
    const size_t bytes = n * size;
    if (stride > 4)
        return 0;
    switch (size * 100 + size * stride) {
    case 101:
        return sum_1_1(row, bytes);
    case 102:
        return sum_1_2(row, bytes);
    case 103:
        return sum_1_3(row, bytes);
    case 104:
        return sum_1_4(row, bytes);
    case 202:
        return sum_2_2(row, bytes);
    case 204:
        return sum_2_4(row, bytes);
    case 206:
        return sum_2_6(row, bytes);
    case 208:
        return sum_2_8(row, bytes);
    case 404:
        return sum_4_4(row, bytes);
    case 408:
        return sum_4_8(row, bytes);
    case 412:
        return sum_4_12(row, bytes);
    default:
        return 0;
    }
}
#else
static size_t sum_start(uint8_t *row, size_t n, size_t size, size_t stride)
{
    (void)row, (void)n, (void)size, (void)stride;
    return 0;
}
#endif

void tgi_sum_row(uint8_t *row, size_t n, size_t size, size_t stride)
{
    const size_t done = sum_start(row, n, size, stride);
    sum_rest(row, done > stride ? done : stride, n, size, stride);
}
