/* The floor: checked arithmetic, boxes, counted memory. */
#include "engine/base/arith.h"
#include "engine/base/region.h"
#include "engine/base/sized.h"
#include "tests/tg_test.h"

static void test_division_rounds_towards_the_named_side(void)
{
    CHECK_EQ(tgi_floor_div(-1, 2), -1);
    CHECK_EQ(tgi_floor_div(-4, 2), -2);
    CHECK_EQ(tgi_ceil_div(-1, 2), 0);
    CHECK_EQ(tgi_ceil_div(5, 2), 3);
    CHECK_EQ(tgi_align_up(17, 16), 32);
}

static void test_sizes_saturate_and_never_wrap(void)
{
    CHECK(tgi_sat_mul(SIZE_MAX / 2, 3) == SIZE_MAX);
    CHECK(tgi_sat_add(SIZE_MAX - 1, 2) == SIZE_MAX);
    tgi_desc d = {TG_DTYPE_F32, 3, {INT64_MAX / 2, 4, 4}};
    int64_t n;
    CHECK(!tgi_desc_count(&d, &n));
}

static void test_a_window_slides_by_the_closed_formula(void)
{
    const tgi_slide s = tgi_window_slide(3, 2, 1, 1);
    const tgi_range r = tgi_slide_need(&s, (tgi_range){10, 20});
    CHECK_EQ(r.lo, 19);
    CHECK_EQ(r.hi, 19 * 2 - 1 + 3);
}

static int64_t slide_end(const tgi_slide *s, int64_t end)
{
    tgi_slide_ends(s, &end, &end, 1);
    return end;
}

/* Rows below a slide's end find all they read, and one more row does not: asked row by row. */
static void test_a_slide_ends_where_its_need_does(void)
{
    uint64_t seed = 11;
    for (int t = 0; t < 3000; t++) {
        tgi_slide s = {.num = tg_rand_in(&seed, 0, 4),
                       .den = tg_rand_in(&seed, 1, 4),
                       .lo = tg_rand_in(&seed, -9, 9),
                       .block = tg_rand_in(&seed, 0, 5),
                       .phase = tg_rand_in(&seed, 0, 9),
                       .of = tg_rand_in(&seed, 0, 1) ? tg_rand_in(&seed, 1, 40) : 0};
        s.least = s.of ? tg_rand_in(&seed, 0, s.of < 3 ? s.of : 3) : 0;
        s.hi = s.lo + tg_rand_in(&seed, 0, 9);
        const int64_t end = tg_rand_in(&seed, -3, 50), most = slide_end(&s, end);
        for (int64_t b = -20; b <= 60; b++) {
            const tgi_range one = tgi_slide_need(&s, (tgi_range){b - 1, b});
            const tgi_range two = tgi_slide_need(&s, (tgi_range){b - 7, b});
            CHECK_EQ(one.hi <= end, b <= most);
            CHECK_EQ(one.hi, two.hi);
            CHECK(two.lo <= one.lo);
            CHECK(s.of == 0 || (one.lo >= 0 && one.lo < one.hi && one.hi <= s.of));
        }
    }
}

/* Rows near nought and far from it: quotients are had in more than one way. */
static void test_many_slide_as_each_does(void)
{
    uint64_t seed = 12;
    for (int t = 0; t < 3000; t++) {
        enum { MANY = 7 };
        const tgi_slide s = {.num = tg_rand_in(&seed, 1, 9),
                             .den = tg_rand_in(&seed, 1, 9),
                             .lo = tg_rand_in(&seed, -9, 9),
                             .hi = tg_rand_in(&seed, 9, 12),
                             .block = tg_rand_in(&seed, 0, 5),
                             .of = tg_rand_in(&seed, 0, 1) ? (int64_t)1 << 40 : 0};
        int64_t row[MANY], got[MANY];
        for (int k = 0; k < MANY; k++)
            row[k] = tg_rand_in(&seed, -50, 50) + (k % 2 ? (int64_t)1 << (30 + k) : 0);
        tgi_slide_begins(&s, row, got, MANY);
        for (int k = 0; k < MANY; k++) {
            const int64_t a = s.block <= 1 ? row[k] : tgi_floor_div(row[k], s.block) * s.block;
            const int64_t lo = tgi_floor_div(a * s.num + s.lo, s.den);
            CHECK_EQ(got[k], s.of ? tgi_clamp(lo, 0, s.of - 1) : lo);
            CHECK_EQ(got[k], tgi_slide_need(&s, (tgi_range){row[k], row[k] + 1}).lo);
        }
        tgi_slide_ends(&s, row, got, MANY);
        for (int k = 0; k < MANY; k++) {
            CHECK_EQ(got[k], slide_end(&s, row[k]));
            if (got[k] == INT64_MIN || got[k] == INT64_MAX)
                continue;
            CHECK(tgi_slide_need(&s, (tgi_range){got[k] - 1, got[k]}).hi <= row[k]);
            CHECK(tgi_slide_need(&s, (tgi_range){got[k], got[k] + 1}).hi > row[k]);
        }
    }
}

static void test_a_refused_allocation_is_null_once(void)
{
    tgi_mem_fail_at(1);
    CHECK(tgi_malloc(TGI_TAG_MISC, 8) == NULL);
    void *p = tgi_malloc(TGI_TAG_MISC, 8);
    CHECK(p != NULL);
    tgi_free(p);
    tgi_mem_fail_at(0);
}

static void test_an_error_line_cannot_be_forged(void)
{
    tgi_err e = {0};
    CHECK_EQ(tgi_fail(&e, TG_E_FORMAT, "bad tag \"%s\"", "a\nb"), TG_E_FORMAT);
    CHECK_STR(e.text, "bad tag \"a?b\"");
    CHECK_EQ(tgi_fail(&e, TG_E_IO, "later"), TG_E_IO);
    CHECK_STR(e.text, "bad tag \"a?b\"");
}

static void test_a_struct_that_is_not_taken_is_told_why(void)
{
    struct {
        size_t size;
        int known, later;
    } given = {.size = sizeof given, .later = 1};
    struct {
        size_t size;
        int known;
    } own;
    const size_t known = offsetof(__typeof__(given), later);
    tgi_err e = {0}, none = {0}, empty = {0};
    CHECK(!tgi_sized_take(&given, &own, known));
    CHECK_EQ(tgi_sized_refuse(&given, "out", &e), TG_E_ARG);
    CHECK_STR(e.text, "out has members that this version does not know, and they are not zero");
    given.later = 0;
    CHECK(tgi_sized_take(&given, &own, known));
    given.size = 0;
    CHECK(!tgi_sized_take(&given, &own, known));
    CHECK_EQ(tgi_sized_refuse(&given, "out", &empty), TG_E_ARG);
    CHECK_STR(empty.text, "out.size is 0: set it to the sizeof of the struct");
    CHECK_EQ(tgi_sized_refuse(NULL, "out", &none), TG_E_ARG);
    CHECK_STR(none.text, "out is NULL");
}

int main(void)
{
    RUN(test_division_rounds_towards_the_named_side);
    RUN(test_sizes_saturate_and_never_wrap);
    RUN(test_a_window_slides_by_the_closed_formula);
    RUN(test_a_slide_ends_where_its_need_does);
    RUN(test_many_slide_as_each_does);
    RUN(test_a_refused_allocation_is_null_once);
    RUN(test_an_error_line_cannot_be_forged);
    RUN(test_a_struct_that_is_not_taken_is_told_why);
    return TEST_END();
}
