/* Frames at other sizes: what Pillow and OpenCV make of the same pixels, 16 bits beside sums in double, memory. */
#include "engine/base/fnv.h"
#include "engine/inpaint/resize.h"
#include "io/npy.h"
#include "tests/tg_test.h"

/* ---- Sizes and pixels ---- */

typedef struct sizes {
    int64_t from_h, from_w, to_h, to_w;
} sizes;

static tgi_resize *made(tgi_resize_how how, sizes s, int samples)
{
    tgi_resize *r = NULL;
    tgi_err err = {0};
    CHECK_OK(tgi_resize_new(how, s.from_h, s.from_w, s.to_h, s.to_w, samples, &r, &err), err);
    return r;
}

static size_t numbers(int64_t h, int64_t w, int samples)
{
    return (size_t)(h * w * samples);
}

static uint8_t *noise(uint64_t seed, size_t n)
{
    uint8_t *v = malloc(n);
    for (size_t i = 0; i < n; i++)
        v[i] = (uint8_t)(tg_rand(&seed) >> 56);
    return v;
}

/* A third of them black, a third white: what overshoots is cut. */
static uint16_t *noise16(uint64_t seed, size_t n)
{
    uint16_t *v = malloc(n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const int64_t k = tg_rand_in(&seed, -65536, 131071);
        v[i] = (uint16_t)(k < 0 ? 0 : k > 65535 ? 65535 : k);
    }
    return v;
}

/* ---- Bytes ---- */

/* Sums of what Pillow 9.4 and 12.0 and OpenCV 4.6 and 5.0 (without IPP) make of noise(71 + line of the table). */
static void test_sums_of_pillow_and_opencv(void)
{
    static const struct {
        sizes s;
        int samples;
        uint64_t sum[3];
    } all[] = {
        {{48, 64, 72, 96}, 3, {0xa2522a6ef22cb745u, 0xf6b034bd2c204386u, 0x1c26e76d7a5676cau}},
        {{72, 96, 48, 64}, 3, {0x8bcc6710e7b8999au, 0x21b5a71bd186eff9u, 0xe617cae3d2600e90u}},
        {{37, 53, 41, 29}, 3, {0xa9fa6c536222471cu, 0xb65b60e5c8404a1eu, 0x93e3096164e1e540u}},
        {{37, 53, 20, 77}, 1, {0x5ddb22f17c4c0d82u, 0x15e6fac553c3b0dcu, 0xd3cc3ebd9d7bbbebu}},
        {{31, 45, 62, 90}, 4, {0xcf3b9de7ecfa8aefu, 0x2b5c844434587fd5u, 0x0dc902e0a680f617u}},
        {{64, 48, 32, 24}, 3, {0x339b601bef715872u, 0x06dfa486d8f4278du, 0x113e877fe48d2cabu}},
        {{1, 40, 17, 33}, 3, {0x4a0ccc5d29d783fcu, 0x12e9bee88ca7cc1eu, 0x029bc81f0adf8da0u}},
        {{40, 1, 17, 33}, 1, {0xd9eb68ff91819b84u, 0x9259e2d5b8bb18e7u, 0x4d55a9f4ddc14cacu}},
        {{1, 1, 5, 7}, 3, {0xa49cc16b985e741cu, 0xa49cc16b985e741cu, 0xa49cc16b985e741cu}},
        {{2, 3, 9, 8}, 3, {0x19fc20b36e9ed843u, 0xdc54901572530399u, 0xc4b626b581e3c8b2u}},
        {{33, 21, 1, 1}, 3, {0x37ec5e1ae5ff92c9u, 0x0a9e4a17f755325cu, 0x0a9e4a17f755325cu}},
        {{203, 15, 301, 15},
         1,
         {0x8b6b920e47556dadu, 0xa25d603850710961u, 0x651bd0fff00b043fu}},
        {{20, 207, 30, 207},
         3,
         {0x6826e9dbb0163d81u, 0x1fd10ee1fd187da0u, 0x62b305b7bbc926ddu}},
        {{25, 64, 25, 40}, 3, {0xd5d9a7178689cab9u, 0x01eac28f53c4e6a0u, 0x6adac10e02d79d1bu}},
        {{6000, 3, 1, 3}, 3, {0x10e792474418361au, 0x66d8c237fd244db3u, 0xe33f708525a678d8u}},
        {{3, 6000, 5, 2}, 1, {0xfb97ae0039453195u, 0x7961994548896914u, 0x969192126209e77du}},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const sizes s = all[i].s;
        const size_t n = numbers(s.to_h, s.to_w, all[i].samples);
        uint8_t *from = noise(71 + i, numbers(s.from_h, s.from_w, all[i].samples));
        uint8_t *to = malloc(n);
        for (int how = 0; how < 3; how++) {
            tgi_resize *r = made((tgi_resize_how)how, s, all[i].samples);
            memset(to, 0, n);
            if (r)
                tgi_resize_run(r, from, to);
            const int same = tgi_fnv(TGI_FNV_BEGIN, to, n) == all[i].sum[how];
            CHECK(same);
            if (!same)
                fprintf(stderr, "  line %zu of the table, way %d\n", i, how);
            tgi_resize_free(&r);
        }
        free(from);
        free(to);
    }
}

static void test_equal_sizes_are_copies(void)
{
    const sizes s = {13, 17, 13, 17};
    const size_t n = numbers(13, 17, 3);
    uint8_t *from = noise(5, n), *to = malloc(n);
    uint16_t *deep = noise16(5, n), *deep_to = malloc(n * sizeof *deep);
    for (int how = 0; how < 3; how++) {
        tgi_resize *r = made((tgi_resize_how)how, s, 3);
        memset(to, 0, n);
        memset(deep_to, 0, n * sizeof *deep);
        if (r) {
            tgi_resize_run(r, from, to);
            tgi_resize_run16(r, deep, deep_to);
        }
        CHECK(memcmp(from, to, n) == 0);
        CHECK(memcmp(deep, deep_to, n * sizeof *deep) == 0);
        tgi_resize_free(&r);
    }
    free(from);
    free(to);
    free(deep);
    free(deep_to);
}

static void test_what_is_of_one_colour_stays_so(void)
{
    static const sizes some[] = {{9, 31, 40, 21}, {40, 21, 9, 31}, {700, 2, 3, 3}};
    for (int i = 0; i < 9; i++) {
        const sizes s = some[i / 3];
        const size_t n = numbers(s.from_h, s.from_w, 1), m = numbers(s.to_h, s.to_w, 1);
        uint8_t *from = malloc(n), *to = malloc(m);
        tgi_resize *r = made((tgi_resize_how)(i % 3), s, 1);
        int64_t other = 0;
        for (int v = 0; r && v < 256; v++) {
            memset(from, v, n);
            tgi_resize_run(r, from, to);
            for (size_t k = 0; k < m; k++)
                other += to[k] != v;
        }
        CHECK_EQ(other, 0);
        tgi_resize_free(&r);
        free(from);
        free(to);
    }
}

/* ---- 16 bits ---- */

static double cubic(double x, double a)
{
    x = fabs(x);
    if (x <= 1)
        return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

/* Share of place k of the source in place i. OpenCV's places have the precision of float32. */
static double share(int how, int64_t from, int64_t to, int64_t i, int64_t k)
{
    const double ratio = (double)from / (double)to, middle = ((double)i + 0.5) * ratio - 0.5;
    const double wide = how == TGI_RESIZE_PILLOW_BICUBIC && ratio > 1 ? ratio : 1;
    const double far = (double)k - (wide > 1 || !how ? middle : (double)(float)middle);
    if (how == TGI_RESIZE_CV_LINEAR)
        return fabs(far) < 1 ? 1 - fabs(far) : 0;
    return cubic(far / wide, how == TGI_RESIZE_CV_CUBIC ? -0.75 : -0.5);
}

/* Shares of all places of the source; what lies beyond is its first or last place, or nothing. */
static void shares(int how, int64_t from, int64_t to, int64_t i, double *of)
{
    double sum = 0;
    for (int64_t k = 0; k < from; k++)
        of[k] = 0;
    for (int64_t k = -3; k < from + 3; k++) {
        const int64_t at = k < 0 ? 0 : k >= from ? from - 1 : k;
        if (how != TGI_RESIZE_PILLOW_BICUBIC || at == k)
            of[at] += share(how, from, to, i, k);
    }
    for (int64_t k = 0; k < from; k++)
        sum += of[k];
    for (int64_t k = 0; k < from; k++)
        of[k] /= sum;
}

/* The most that a number of `got` differs from the sum of its shares. */
static double far_off(int how, sizes s, int samples, const uint16_t *from, const uint16_t *got)
{
    double down[128], across[128], most = 0;
    for (int64_t y = 0; y < s.to_h; y++) {
        shares(how, s.from_h, s.to_h, y, down);
        for (int64_t x = 0; x < s.to_w * samples; x++) {
            double sum = 0;
            shares(how, s.from_w, s.to_w, x / samples, across);
            for (int64_t k = 0; k < s.from_h * s.from_w; k++)
                sum +=
                    down[k / s.from_w] * across[k % s.from_w] * from[k * samples + x % samples];
            sum = sum < 0 ? 0 : sum > 65535 ? 65535 : sum;
            most = fmax(most, fabs(sum - got[y * s.to_w * samples + x]));
        }
    }
    return most;
}

static void test_16_bits_are_rounded_once(void)
{
    static const sizes some[] = {{24, 31, 37, 50}, {37, 50, 24, 31}, {31, 32, 7, 9},
                                 {1, 9, 4, 3},     {9, 1, 3, 4},     {2, 3, 1, 7}};
    for (int i = 0; i < 18; i++) {
        const sizes s = some[i / 3];
        const int samples = i % 2 ? 3 : 1;
        uint16_t *from = noise16(9 + i, numbers(s.from_h, s.from_w, samples));
        uint16_t *to = malloc(numbers(s.to_h, s.to_w, samples) * sizeof *to);
        tgi_resize *r = made((tgi_resize_how)(i % 3), s, samples);
        if (r)
            tgi_resize_run16(r, from, to);
        CHECK(r && far_off(i % 3, s, samples, from, to) < 0.55);
        if (r && far_off(i % 3, s, samples, from, to) >= 0.55)
            fprintf(stderr, "  case %d: %g\n", i, far_off(i % 3, s, samples, from, to));
        tgi_resize_free(&r);
        free(from);
        free(to);
    }
}

/* ---- Memory ---- */

static void test_frames_follow_each_other_and_nothing_is_allocated(void)
{
    const sizes s = {40, 33, 25, 61};
    const size_t n = numbers(40, 33, 3), m = numbers(25, 61, 3);
    uint8_t *from = noise(3, n), *to = malloc(m), *again = malloc(m);
    uint16_t *deep = noise16(4, n), *deep_to = malloc(2 * m);
    for (int how = 0; how < 3; how++) {
        const size_t held = tgi_mem_held();
        tgi_resize *r = made((tgi_resize_how)how, s, 3);
        if (!r)
            continue;
        tgi_mem_stats before, after;
        CHECK_EQ(tgi_resize_bytes(r), tgi_mem_held() - held);
        tgi_mem_get_stats(&before);
        tgi_resize_run(r, from, to);
        tgi_resize_run16(r, deep, deep_to);
        tgi_resize_run(r, from, again);
        tgi_mem_get_stats(&after);
        CHECK_EQ(after.requests, before.requests);
        CHECK(memcmp(to, again, m) == 0);
        tgi_resize_free(&r);
        CHECK(r == NULL);
        tgi_resize_free(&r);
    }
    free(from);
    free(to);
    free(again);
    free(deep);
    free(deep_to);
}

static void test_requests_for_memory_that_fail(void)
{
    int ends = 0;
    for (uint64_t k = 1; k < 30 && !ends; k++) {
        tgi_err err = {0};
        tgi_resize *r = NULL;
        tgi_mem_fail_at(k);
        const tg_status st =
            tgi_resize_new(TGI_RESIZE_PILLOW_BICUBIC, 9, 9, 5, 20, 3, &r, &err);
        tgi_mem_fail_at(0);
        ends = st == TG_OK;
        CHECK(ends || st == TG_E_NOMEM);
        CHECK(ends == (r != NULL));
        tgi_resize_free(&r);
    }
    CHECK(ends);
}

static void test_sizes_that_are_none_are_refused(void)
{
    static const struct {
        sizes s;
        int samples;
    } wrong[] = {{{0, 4, 4, 4}, 3}, {{4, -1, 4, 4}, 3},
                 {{4, 4, 0, 4}, 3}, {{4, 4, 4, TGI_RESIZE_SIDE + 1}, 3},
                 {{4, 4, 4, 4}, 0}, {{4, 4, 4, 4}, TGI_RESIZE_SAMPLES + 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const sizes s = wrong[i].s;
        tgi_err err = {0};
        tgi_resize *r = NULL;
        CHECK_EQ(tgi_resize_new(TGI_RESIZE_CV_LINEAR, s.from_h, s.from_w, s.to_h, s.to_w,
                                wrong[i].samples, &r, &err),
                 TG_E_ARG);
        CHECK(r == NULL && strstr(err.text, "expected sides of 1 to 1048576") != NULL);
    }
}

/* ---- Goldens ---- */

static uint8_t *golden(const char *name, int64_t *h, int64_t *w)
{
    char path[600];
    tgi_desc d;
    void *data = NULL;
    tgi_err err = {0};
    snprintf(path, sizeof path, "%s/conformance/propainter/ops/%s", TG_SHARED_DATA, name);
    CHECK_OK(tgi_npy_load(path, 0, &d, &data, &err), err);
    if (!data)
        return NULL;
    CHECK(d.rank == 3 && d.dtype == TG_DTYPE_U8 && d.dim[2] == 3);
    *h = d.dim[0];
    *w = d.dim[1];
    return data;
}

static void against_golden(tgi_resize_how how, const char *image, const char *name)
{
    sizes s = {0};
    uint8_t *from = golden(image, &s.from_h, &s.from_w);
    uint8_t *want = golden(name, &s.to_h, &s.to_w);
    tgi_resize *r = from && want ? made(how, s, 3) : NULL;
    CHECK(r != NULL);
    if (r) {
        const size_t n = numbers(s.to_h, s.to_w, 3);
        uint8_t *got = malloc(n);
        int64_t other = 0;
        tgi_resize_run(r, from, got);
        for (size_t i = 0; i < n; i++)
            other += got[i] != want[i];
        CHECK_EQ(other, 0);
        free(got);
    }
    tgi_resize_free(&r);
    tgi_free(from);
    tgi_free(want);
}

static void test_goldens_of_propainter(void)
{
    if (!tg_has(TG_SHARED_DATA "/conformance/propainter/ops/index.json"))
        return;
    static const char *const made_by_pillow[] = {"pil_resize_frame/bicubic_160x128.npy",
                                                 "pil_resize_frame/bicubic_237x132.npy",
                                                 "pil_resize_frame/bicubic_232x128.npy"};
    for (int i = 0; i < 3; i++)
        against_golden(TGI_RESIZE_PILLOW_BICUBIC, "pil_resize_frame/image.npy",
                       made_by_pillow[i]);
    against_golden(TGI_RESIZE_CV_LINEAR, made_by_pillow[2], "cv2_resize_output/linear.npy");
    against_golden(TGI_RESIZE_CV_CUBIC, made_by_pillow[2], "cv2_resize_output/cubic.npy");
}

int main(void)
{
    RUN(test_sums_of_pillow_and_opencv);
    RUN(test_equal_sizes_are_copies);
    RUN(test_what_is_of_one_colour_stays_so);
    RUN(test_16_bits_are_rounded_once);
    RUN(test_frames_follow_each_other_and_nothing_is_allocated);
    RUN(test_requests_for_memory_that_fail);
    RUN(test_sizes_that_are_none_are_refused);
    RUN(test_goldens_of_propainter);
    return TEST_END();
}
