/* test_pixels.c - every backend's rows of pixels against the definition, bit for bit. */
#include "kernels/backend.h"
#include "kernels/pixels_exact.h"
#include "tests/tg_test.h"

#define N 65536 /* every value of 16 bits */
#define GUARD 64

static const tg_dtype types[] = {TG_DTYPE_U8,  TG_DTYPE_I8,  TG_DTYPE_U16, TG_DTYPE_I16,
                                 TG_DTYPE_F32, TG_DTYPE_F16, TG_DTYPE_F64, TG_DTYPE_U32,
                                 TG_DTYPE_I32, TG_DTYPE_U64, TG_DTYPE_I64, TG_DTYPE_BOOL};
static const struct {
    float mul, add;
} affines[] = {{1, 0}, {1 / 255.0f, 0}, {65535.0f, 0.5f}, {-0.37f, 1e3f}, {1e-40f, -0.0f}};

static uint64_t seed = 88172645463325252ull;

static uint32_t draw(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

static float of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* All half integers of 16 bits, their neighbours, and what is not a number or far outside. */
static void awkward_floats(float *x)
{
    static const float odd[] = {-0.0f, 0.5f,   -0.5f,      1.5f,     2.5f,   255.5f,
                                1e9f,  -1e9f,  65535.5f,   32767.5f, 1e-42f, 3e38f,
                                1e20f, -1e20f, 4194303.5f, -32768.5f};
    for (int i = 0; i < N; i++)
        switch (i % 5) {
        case 0:
            x[i] = (float)(i - 30000) + 0.5f;
            break;
        case 1:
            x[i] = nextafterf((float)(i % 300) - 20.5f, i % 2 ? 1e9f : -1e9f);
            break;
        case 2:
            x[i] = of_bits(draw()); /* any bits: infinities, NaN, denormals too */
            break;
        case 3:
            x[i] = odd[(unsigned)i / 5 % 16];
            break;
        default:
            x[i] = i % 3 ? (float)i / 255.0f : i % 2 ? NAN : INFINITY;
        }
}

static char *zeros(size_t n)
{
    char *p = tgi_calloc(TGI_TAG_MISC, n, 1);
    if (!p)
        abort();
    return p;
}

typedef struct shape {
    tg_dtype type;
    int samples;
    int64_t n, stride, step;
} shape;

static void differ(const tgi_kernel_set *be, const char *what, const shape *s)
{
    fprintf(stderr, "%s: %s of %lld pixels of %s, %d samples, stride %lld, step %lld\n",
            be->name, what, (long long)s->n, tgi_dtype_name(s->type), s->samples,
            (long long)s->stride, (long long)s->step);
    CHECK(!"the bits of the definition");
}

/* ---- One shape --------------------------------------------------------------------------- */

static tgi_pixels run_of(const shape *s, size_t affine, float *values)
{
    tgi_pixels p = {.type = s->type,
                    .samples = s->samples,
                    .stride = s->stride,
                    .n = s->n,
                    .mul = affines[affine].mul,
                    .add = affines[affine].add,
                    .step = s->step};
    for (int k = 0; k < s->samples; k++) /* planar: behind each other; blocked: side by side */
        p.value[k] = values + (s->step == 1 ? k * s->n : k);
    return p;
}

static size_t floats_of(const shape *s)
{
    return (size_t)(s->step == 1 ? s->n * s->samples : s->n * s->step) + GUARD;
}

static void check_load(const tgi_kernel_set *be, const shape *s, size_t affine, const void *src)
{
    const size_t n = floats_of(s);
    float *want = (float *)(void *)zeros(n * sizeof *want);
    float *got = (float *)(void *)zeros(n * sizeof *got);
    const tgi_pixels pw = run_of(s, affine, want), pg = run_of(s, affine, got);
    tgi_pixels_load_run(&pw, src);
    be->pixels_load(&pg, src);
    tg_checks++;
    if (memcmp(want, got, n * sizeof *want) != 0)
        differ(be, "load", s);
    tgi_free(want);
    tgi_free(got);
}

static void check_store(const tgi_kernel_set *be, const shape *s, size_t affine, float *src)
{
    const size_t n = (size_t)(s->n * s->stride + GUARD) * tgi_dtype_size(s->type);
    char *want = zeros(n), *got = zeros(n);
    const tgi_pixels p = run_of(s, affine, src);
    tgi_pixels_store_run(&p, want);
    be->pixels_store(&p, got);
    tg_checks++;
    if (memcmp(want, got, n) != 0)
        differ(be, "store", s);
    tgi_free(want);
    tgi_free(got);
}

/* ---- Tests ------------------------------------------------------------------------------- */

static char *image;  /* every value of 16 bits, random ones of others */
static float *value; /* awkward */

static void prepare(void)
{
    const size_t bytes = (size_t)N * 8 * 5;
    image = zeros(bytes);
    value = (float *)(void *)zeros((size_t)N * 16 * sizeof *value + GUARD);
    for (size_t i = 0; i < bytes; i += 2) {
        const uint16_t v = i < 2 * (size_t)N ? (uint16_t)(i / 2) : (uint16_t)draw();
        memcpy(image + i, &v, sizeof v);
    }
    for (int i = 0; i < 16; i++)
        awkward_floats(value + (size_t)i * N);
}

static void check_both(const tgi_kernel_set *be, const shape *s)
{
    for (size_t a = 0; a < sizeof affines / sizeof *affines; a++) {
        check_load(be, s, a, image);
        check_store(be, s, a, value);
    }
}

static void each_backend(void (*check)(const tgi_kernel_set *be, const shape *s),
                         const shape *s)
{
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++)
        if (tgi_isa_detect((tgi_isa)isa) == (tgi_isa)isa && tgi_backend_for((tgi_isa)isa))
            check(tgi_backend_for((tgi_isa)isa), s);
}

static void every_value_of_every_type_has_the_bits_of_the_definition(void)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int samples = 1; samples <= TGI_PIXEL_SAMPLES; samples++) {
            const shape s = {types[t], samples, N / samples, samples, 1};
            each_backend(check_both, &s);
        }
}

static void rows_of_any_length_end_where_they_should(void)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int samples = 1; samples <= TGI_PIXEL_SAMPLES; samples++)
            for (int64_t n = 0; n < 70; n++) {
                const shape s = {types[t], samples, n + (n > 60 ? 200 : 0), samples, 1};
                each_backend(check_both, &s);
            }
}

static void samples_with_gaps_and_lanes_of_a_blocked_view(void)
{
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int samples = 1; samples <= TGI_PIXEL_SAMPLES; samples++) {
            const shape gaps = {types[t], samples, 555, samples + 3, 1};
            const shape lanes = {types[t], samples, 555, samples, 16};
            each_backend(check_both, &gaps);
            each_backend(check_both, &lanes);
        }
}

/* The definition itself, by hand. */
static void halves_go_to_even_and_nan_to_zero(void)
{
    float x[] = {0.5f, 1.5f, 2.5f, 254.5f, 255.5f, 300, -0.5f, -1, NAN, INFINITY, -INFINITY};
    static const uint8_t want[] = {0, 2, 2, 254, 255, 255, 0, 0, 0, 255, 0};
    static const int8_t want_signed[] = {0, 2, 2, 127, 127, 127, 0, -1, 0, 127, -128};
    uint8_t got[sizeof want];
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++) {
        const tgi_kernel_set *be = tgi_backend_for((tgi_isa)isa);
        if (!be || tgi_isa_detect((tgi_isa)isa) != (tgi_isa)isa)
            continue;
        tgi_pixels p = {.type = TG_DTYPE_U8,
                        .samples = 1,
                        .stride = 1,
                        .n = sizeof want,
                        .mul = 1,
                        .value = {x},
                        .step = 1};
        be->pixels_store(&p, got);
        CHECK_EQ(memcmp(got, want, sizeof want), 0);
        p.type = TG_DTYPE_I8;
        be->pixels_store(&p, got);
        CHECK_EQ(memcmp(got, want_signed, sizeof want_signed), 0);
    }
}

static void numbers_that_float32_lacks_stay_what_they_are(void)
{
    const uint32_t label[] = {0, 16777217, 4294967295u, 2147483648u};
    const int64_t far[] = {INT64_MIN, -1, 9007199254740993, INT64_MAX};
    const double real[] = {16777217.5, -0.5, NAN, 1e300};
    int32_t narrow[8] = {0};
    int64_t wide[4];
    uint64_t big[4];
    double d[4];
    CHECK(tgi_pixels_need_exact(TG_DTYPE_U32, TG_DTYPE_F64));
    CHECK(tgi_pixels_need_exact(TG_DTYPE_F64, TG_DTYPE_U8));
    CHECK(!tgi_pixels_need_exact(TG_DTYPE_U16, TG_DTYPE_I64)); /* float32 has all of 16 bits */
    CHECK(!tgi_pixels_need_exact(TG_DTYPE_U32, TG_DTYPE_F32));
    CHECK_EQ(tgi_pixels_convert_exact(TG_DTYPE_U32, label, 4, TG_DTYPE_I64, wide, 1), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(wide[i], label[i]);
    CHECK_EQ(tgi_pixels_convert_exact(TG_DTYPE_U32, label, 4, TG_DTYPE_I32, narrow, 2), 2);
    CHECK(narrow[0] == 0 && narrow[2] == 16777217 && narrow[4] == INT32_MAX);
    CHECK(narrow[6] == INT32_MAX && narrow[1] == 0 && narrow[3] == 0);
    CHECK_EQ(tgi_pixels_convert_exact(TG_DTYPE_U32, label, 4, TG_DTYPE_F64, d, 1), 0);
    CHECK(d[1] == 16777217.0 && d[2] == 4294967295.0);
    CHECK_EQ(tgi_pixels_convert_exact(TG_DTYPE_I64, far, 4, TG_DTYPE_U64, big, 1), 2);
    CHECK(big[0] == 0 && big[1] == 0 && big[2] == 9007199254740993u && big[3] == INT64_MAX);
    CHECK_EQ(tgi_pixels_convert_exact(TG_DTYPE_F64, real, 4, TG_DTYPE_I32, narrow, 1), 2);
    CHECK(narrow[0] == 16777218 && narrow[1] == 0 && narrow[2] == 0 && narrow[3] == INT32_MAX);
}

int main(void)
{
    prepare();
    RUN(every_value_of_every_type_has_the_bits_of_the_definition);
    RUN(rows_of_any_length_end_where_they_should);
    RUN(samples_with_gaps_and_lanes_of_a_blocked_view);
    RUN(numbers_that_float32_lacks_stay_what_they_are);
    RUN(halves_go_to_even_and_nan_to_zero);
    tgi_free(image);
    tgi_free(value);
    return TEST_END();
}
