/* test_lessons.c - what finished runs took corrects what is said of the next, and nothing else.
 */
#include "engine/plan/lessons.h"
#include "tests/tg_test.h"

#include <sys/stat.h>

static tgi_lessons *empty(void)
{
    return tgi_calloc(TGI_TAG_MISC, 1, sizeof(tgi_lessons));
}

static void a_key_is_corrected_by_its_own_lessons_and_others_by_their_kind(void)
{
    tgi_lessons *l = empty();
    CHECK_NEAR(tgi_lessons_factor(l, "avx2 conv_direct"), 1, 0);
    tgi_lessons_add(l, "avx2 conv_direct", 3, 1);
    tgi_lessons_add(l, "avx2 eltwise", 1, 1);
    tgi_lessons_add(l, "flat MatMul", 10, 1);
    tgi_lessons_add(l, "beside", 1, 2);
    CHECK_NEAR(tgi_lessons_factor(l, "avx2 conv_direct"), 3, 1e-12);
    CHECK_NEAR(tgi_lessons_factor(l, "avx2 max_pool"), 2, 1e-12); /* 4 s of 2 */
    CHECK_NEAR(tgi_lessons_factor(l, "reference Where"), 10, 1e-12);
    CHECK_NEAR(tgi_lessons_factor(l, "beside"), 0.5, 1e-12);
    CHECK_NEAR(tgi_lessons_overall(l), 3, 1e-12);
    tgi_free(l);
}

static void the_last_runs_count_most(void)
{
    tgi_lessons *l = empty();
    for (int i = 0; i < 10; i++)
        tgi_lessons_add(l, "avx2 eltwise", 8, 1);
    for (int i = 0; i < 4; i++)
        tgi_lessons_add(l, "avx2 eltwise", 1, 1);
    CHECK(tgi_lessons_factor(l, "avx2 eltwise") < 1.5);
    tgi_free(l);
}

static void what_cannot_be_a_lesson_is_left_out(void)
{
    tgi_lessons *l = empty();
    char key[16];
    tgi_lessons_add(l, "a", 0, 1);
    tgi_lessons_add(l, "a", 1, 0);
    tgi_lessons_add(l, "a", -1, 1);
    tgi_lessons_add(l, "a", NAN, 1);
    tgi_lessons_add(l, "a", INFINITY, 1);
    CHECK_EQ(l->n, 0);
    for (int i = 0; i < 2 * TGI_MAX_LESSONS; i++) {
        snprintf(key, sizeof key, "%d", i);
        tgi_lessons_add(l, key, 1, 1);
    }
    CHECK_EQ(l->n, TGI_MAX_LESSONS);
    tgi_free(l);
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void a_file_holds_them_for_the_speeds_they_are_of(void)
{
    static const char *const damaged[] = {"", "{", "[]", "{\"of\":1}",
                                          "{\"of\":\"x\",\"runs\":1,\"seconds\":{}}"};
    char folder[] = "/tmp/tegula-lessons-XXXXXX", path[256];
    tgi_err err = {0};
    tg_env cache, learn;
    tgi_speeds usual, measured;
    tgi_lessons *l = empty(), *back = empty();
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/lessons.json", folder);
    tg_env_lend(&cache, "TEGULA_CACHE", folder);
    tg_env_lend(&learn, "TEGULA_LEARN", "yes");
    tgi_speeds_usual(2, NULL, &usual);
    tgi_speeds_usual(2, &usual, &measured);
    tgi_lessons_load(&usual, 0, back);
    CHECK_EQ(back->n, 0);
    tgi_lessons_add(l, "avx2 eltwise", 3, 2);
    l->runs = 7;
    CHECK_OK(tgi_lessons_save(&usual, 0, l, &err), err);
    tgi_lessons_load(&usual, 0, back);
    CHECK(back->n == 1 && back->runs == 7);
    CHECK_NEAR(tgi_lessons_factor(back, "avx2 eltwise"), 1.5, 1e-12);
    tgi_lessons_load(&measured, 1, back); /* other speeds were corrected */
    CHECK_EQ(back->n, 0);
    setenv("TEGULA_LEARN", "no", 1);
    tgi_lessons_load(&usual, 0, back);
    CHECK(back->n == 0 && !tgi_lessons_wanted());
    setenv("TEGULA_LEARN", "yes", 1);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        put(path, damaged[i]);
        tgi_lessons_load(&usual, 0, back);
        CHECK(back->n == 0 && back->runs == 0);
    }
    unlink(path);
    rmdir(folder);
    tg_env_back(&cache);
    tg_env_back(&learn);
    tgi_free(l);
    tgi_free(back);
}

static void what_was_measured_here_comes_before_what_is_usual(void)
{
    tgi_speeds here = {.processors = 8, .fixed = 9}, s;
    tgi_speed_set(&here, "avx2 eltwise", 11, 12);
    tgi_speeds_usual(4, NULL, &s);
    CHECK(s.processors == 4 && s.n_kernels > 40 && s.n_kernels < TGI_MAX_SPEEDS);
    tgi_speeds_usual(4, &here, &s);
    CHECK(s.processors == 8);
    CHECK_NEAR(s.fixed, 9, 0);
    for (int i = 0; i < s.n_kernels; i++) { /* of tuned kernels nothing but what was measured */
        const char *key = s.kernel[i].key;
        CHECK(strncmp(key, "flat", 4) == 0 || strncmp(key, "reference", 9) == 0 ||
              (strcmp(key, "avx2 eltwise") == 0 && s.kernel[i].all == 12));
    }
}

int main(void)
{
    RUN(a_key_is_corrected_by_its_own_lessons_and_others_by_their_kind);
    RUN(the_last_runs_count_most);
    RUN(what_cannot_be_a_lesson_is_left_out);
    RUN(a_file_holds_them_for_the_speeds_they_are_of);
    RUN(what_was_measured_here_comes_before_what_is_usual);
    return TEST_END();
}
