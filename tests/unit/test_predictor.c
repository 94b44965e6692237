/* test_predictor.c - rows of differences and sums against one element after the other. */
#include "io/predictor.h"
#include "tests/tg_test.h"

#define ROOM 4096

static uint64_t element(const uint8_t *row, size_t i, size_t size)
{
    uint64_t v = 0;
    for (size_t b = 0; b < size; b++)
        v |= (uint64_t)row[i * size + b] << 8 * b;
    return v;
}

static void set_element(uint8_t *row, size_t i, size_t size, uint64_t v)
{
    for (size_t b = 0; b < size; b++)
        row[i * size + b] = (uint8_t)(v >> 8 * b);
}

/* The format's words. */
static void differences(const uint8_t *row, uint8_t *out, size_t n, size_t size, size_t stride)
{
    for (size_t i = 0; i < n; i++)
        set_element(out, i, size,
                    element(row, i, size) - (i < stride ? 0 : element(row, i - stride, size)));
}

static void rows_become_differences_and_come_back_whatever_their_width(void)
{
    static uint8_t made[ROOM], want[ROOM], got[ROOM];
    uint64_t seed = 5;
    int wrong_differences = 0, wrong_sums = 0;
    for (size_t size = 1; size <= 8; size *= 2)
        for (size_t stride = 1; stride <= 7; stride++)
            for (size_t pixels = 1; pixels <= 70; pixels++) {
                const size_t n = pixels * stride, bytes = n * size;
                for (size_t i = 0; i < bytes + 16; i++)
                    made[i] = want[i] = (uint8_t)tg_rand(&seed);
                memcpy(got, made, sizeof got);
                differences(made, want, n, size, stride);
                tgi_difference_row(got, n, size, stride);
                wrong_differences += memcmp(got, want, bytes + 16) != 0; /* and no byte more */
                tgi_sum_row(got, n, size, stride);
                wrong_sums += memcmp(got, made, bytes + 16) != 0;
            }
    CHECK_EQ(wrong_differences, 0);
    CHECK_EQ(wrong_sums, 0);
}

int main(void)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    TEST_SKIP("elements are put together as on little-endian processors");
#endif
    RUN(rows_become_differences_and_come_back_whatever_their_width);
    return TEST_END();
}
