/* tg_test.h - checks that print both values and survive NDEBUG. A test program is a main() that
 * calls RUN(function) for each behaviour and returns TEST_END(): 0, 1, or 77 for "skipped". */
#ifndef TG_TEST_H
#define TG_TEST_H

#include "engine/base/mem.h"
#include "engine/base/pool.h"
#include "engine/base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Under a sanitizer its runtime's memory counts as the process's, it takes over malloc, and it
 * maps terabytes of shadow: tests of small budgets, of counted allocations and of address space
 * limits ask here. Gcc defines the first two, clang has the features. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TG_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TG_SANITIZED 1
#endif
#endif
#ifndef TG_SANITIZED
#define TG_SANITIZED 0
#endif

static int tg_failures, tg_checks, tg_lacking;

#define CHECK(cond)                                                                            \
    do {                                                                                       \
        tg_checks++;                                                                           \
        if (!(cond)) {                                                                         \
            tg_failures++;                                                                     \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #cond);                \
        }                                                                                      \
    } while (0)
#define CHECK_EQ(a, b)                                                                         \
    do {                                                                                       \
        const long long tg_a_ = (long long)(a), tg_b_ = (long long)(b);                        \
        tg_checks++;                                                                           \
        if (tg_a_ != tg_b_) {                                                                  \
            tg_failures++;                                                                     \
            fprintf(stderr, "%s:%d: %s is %lld, expected %s = %lld\n", __FILE__, __LINE__, #a, \
                    tg_a_, #b, tg_b_);                                                         \
        }                                                                                      \
    } while (0)
#define CHECK_NEAR(a, b, tol)                                                                  \
    do {                                                                                       \
        const double tg_a_ = (double)(a), tg_b_ = (double)(b);                                 \
        tg_checks++;                                                                           \
        if (!(fabs(tg_a_ - tg_b_) <= (tol))) {                                                 \
            tg_failures++;                                                                     \
            fprintf(stderr, "%s:%d: %s is %.9g, expected %.9g within %.3g\n", __FILE__,        \
                    __LINE__, #a, tg_a_, tg_b_, (double)(tol));                                \
        }                                                                                      \
    } while (0)
#define CHECK_STR(a, b)                                                                        \
    do {                                                                                       \
        const char *tg_a_ = (a), *tg_b_ = (b);                                                 \
        tg_checks++;                                                                           \
        if (!tg_a_ || !tg_b_ || strcmp(tg_a_, tg_b_) != 0) {                                   \
            tg_failures++;                                                                     \
            fprintf(stderr, "%s:%d: %s is \"%s\", expected \"%s\"\n", __FILE__, __LINE__, #a,  \
                    tg_a_ ? tg_a_ : "(null)", tg_b_ ? tg_b_ : "(null)");                       \
        }                                                                                      \
    } while (0)
/* An environment variable for a while. What it was comes back, since a suite may run under it
 * (TEGULA_ISA). */
typedef struct tg_env {
    const char *name;
    char was[512];
    int had;
} tg_env;

static inline void tg_env_lend(tg_env *e, const char *name, const char *value)
{
    const char *was = getenv(name);
    e->name = name;
    e->had = was != NULL;
    snprintf(e->was, sizeof e->was, "%s", was ? was : "");
    setenv(name, value, 1);
}
static inline void tg_env_back(const tg_env *e)
{
    if (e->had)
        setenv(e->name, e->was, 1);
    else
        unsetenv(e->name);
}

/* A status with its detail line; `err` is a tgi_err lvalue, cleared afterwards. */
#define CHECK_OK(expr, err)                                                                    \
    do {                                                                                       \
        const tg_status tg_s_ = (expr);                                                        \
        tg_checks++;                                                                           \
        if (tg_s_ != TG_OK) {                                                                  \
            tg_failures++;                                                                     \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #expr,                  \
                    tg_status_name(tg_s_), (err).text);                                        \
        }                                                                                      \
        memset(&(err), 0, sizeof(err));                                                        \
    } while (0)
#define CHECK_STATUS(expr, want, err)                                                          \
    do {                                                                                       \
        const tg_status tg_s_ = (expr);                                                        \
        tg_checks++;                                                                           \
        if (tg_s_ != (want)) {                                                                 \
            tg_failures++;                                                                     \
            fprintf(stderr, "%s:%d: %s: %s (%s), expected %s\n", __FILE__, __LINE__, #expr,    \
                    tg_status_name(tg_s_), (err).text, #want);                                 \
        }                                                                                      \
        memset(&(err), 0, sizeof(err));                                                        \
    } while (0)
#define RUN(fn)                                                                                \
    do {                                                                                       \
        const int tg_before_ = tg_failures;                                                    \
        fn();                                                                                  \
        printf("%s %s\n", tg_failures == tg_before_ ? "ok  " : "FAIL", #fn);                   \
    } while (0)

/* Is this part of the sample data there? What is left out for the lack of it makes the whole
 * program a skipped one: it never passes. */
static inline int tg_has(const char *path)
{
    if (access(path, R_OK) == 0)
        return 1;
    printf("     not there: %s\n", path);
    tg_lacking++;
    return 0;
}

/* Ends a program: no failed check, and no block leaked; each is named with file and line. */
static inline int tg_test_end(void)
{
    static char leaks[4096];
    if (tgi_pool_leak_text(tgi_pool_engine(), 0, UINT64_MAX, leaks, sizeof leaks) &&
        strncmp(leaks, "no leak", 7) != 0) {
        fprintf(stderr, "%s%s", leaks, strlen(leaks) + 1 == sizeof leaks ? "...\n" : "");
        tg_failures++;
    }
    printf("%d checks, %d failed\n", tg_checks, tg_failures);
    if (tg_lacking)
        printf("skipped: what needs the sample data (%d of it not there); the rest ran\n",
               tg_lacking);
    return tg_failures ? 1 : tg_lacking ? 77 : 0;
}
#define TEST_END() tg_test_end()
#define TEST_SKIP(why)                                                                         \
    do {                                                                                       \
        printf("skipped: %s\n", why);                                                          \
        return 77;                                                                             \
    } while (0)

/* xorshift64*: the same numbers everywhere. Print the seed that a test uses. */
static inline uint64_t tg_rand(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return *s * 2685821657736338717ull;
}
static inline int64_t tg_rand_in(uint64_t *s, int64_t lo, int64_t hi) /* [lo, hi] */
{
    return lo + (int64_t)(tg_rand(s) % (uint64_t)(hi - lo + 1));
}
static inline float tg_rand_unit(uint64_t *s) /* [-1, 1) */
{
    return (float)((double)(tg_rand(s) >> 11) / 4503599627370496.0 - 1.0);
}

#endif
