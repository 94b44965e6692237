/* Masks grow by a distance along rows and columns. */
#include "io/mask_grow.h"
#include "tests/tg_test.h"

#include <stdlib.h>

#define MOST_POINTS 5

static int is_near(const int64_t *point, int points, int64_t w, int64_t y, int64_t x, int64_t n)
{
    int near = 0;
    for (int i = 0; i < points; i++)
        near |= llabs(point[i] / w - y) + llabs(point[i] % w - x) <= n;
    return near;
}

static void grow_one(uint64_t *seed, int64_t h, int64_t w, int n, int points)
{
    uint8_t *got = calloc((size_t)(h * w), 1);
    int64_t point[MOST_POINTS], other = 0;
    for (int i = 0; i < points; i++) {
        point[i] = tg_rand_in(seed, 0, h * w - 1);
        got[point[i]] = 255;
    }
    tgi_mask_grow(got, h, w, n);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            other += got[y * w + x] != is_near(point, points, w, y, x, n);
    CHECK_EQ(other, 0);
    free(got);
}

static void test_growth_is_all_within_the_distance(void)
{
    uint64_t seed = 71;
    printf("     seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 60; i++)
        grow_one(&seed, tg_rand_in(&seed, 1, 24), tg_rand_in(&seed, 1, 24),
                 (int)tg_rand_in(&seed, 0, 9), (int)tg_rand_in(&seed, 1, MOST_POINTS));
    grow_one(&seed, 300, 330, 254, 1);
    grow_one(&seed, 300, 330, 255, 1);
    grow_one(&seed, 2, 700, 520, 1);
    grow_one(&seed, 3, 5, INT32_MAX, 1);
}

int main(void)
{
    RUN(test_growth_is_all_within_the_distance);
    return TEST_END();
}
