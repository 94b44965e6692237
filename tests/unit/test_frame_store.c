/* Frames that are kept in memory and in a file: what is asked for is what was put in, whatever was moved meanwhile. */
#include "engine/ends/frame_store.h"

#include "tests/tg_test.h"

#include <stdlib.h>
#include <string.h>

#define CANARY 64

typedef struct kept {
    tgi_frame_store_how how;
    char *memory;
    tgi_frame_store *s;
    int64_t at; /* what is needed next */
} kept;

static int64_t next_use(void *user, int kind, int64_t frame)
{
    const kept *k = user;
    (void)kind;
    return frame < k->at ? INT64_MAX : frame - k->at;
}

static void open_store(kept *k, int64_t span, int slots0, int slots1)
{
    tgi_err e = {0};
    k->how = (tgi_frame_store_how){.kind = {{1000, span, slots0, 0}, {64, span, slots1, 0}},
                                   .n_kinds = 2,
                                   .scratch = ".",
                                   .next = next_use,
                                   .user = k};
    const size_t n = tgi_frame_store_bytes(&k->how);
    CHECK_EQ(n, slots0 * 1024 + slots1 * 64);
    k->memory = aligned_alloc(64, n + CANARY);
    memset(k->memory, 0x5a, n + CANARY);
    CHECK_OK(tgi_frame_store_open(&k->how, k->memory, &k->s, &e), e);
}

static void close_store(kept *k)
{
    const size_t n = tgi_frame_store_bytes(&k->how);
    for (int i = 0; i < CANARY; i++)
        CHECK(k->memory[n + (size_t)i] == 0x5a);
    tgi_frame_store_close(&k->s);
    free(k->memory);
}

static unsigned char byte_of(int kind, int64_t frame, size_t i)
{
    return (unsigned char)((size_t)(frame * 31 + kind * 7) + i);
}

static void put(kept *k, int kind, int64_t frame)
{
    void *at;
    tgi_err e = {0};
    CHECK_OK(tgi_frame_store_add(k->s, kind, frame, &at, &e), e);
    for (size_t i = 0; i < k->how.kind[kind].bytes; i++)
        ((unsigned char *)at)[i] = byte_of(kind, frame, i);
    tgi_frame_store_let_go(k->s, kind, frame);
}

static void look(kept *k, int kind, int64_t frame)
{
    const void *at;
    size_t other = 0;
    tgi_err e = {0};
    CHECK_OK(tgi_frame_store_get(k->s, kind, frame, &at, &e), e);
    for (size_t i = 0; i < k->how.kind[kind].bytes; i++)
        other += ((const unsigned char *)at)[i] != byte_of(kind, frame, i);
    CHECK_EQ(other, 0);
    tgi_frame_store_let_go(k->s, kind, frame);
}

static void moved(const kept *k, int64_t *written, int64_t *read)
{
    tgi_frame_store_moved(k->s, written, read);
}

/* A window of frames goes over a film, as a method does that looks around each. */
static void walk(int64_t span, int slots0, int slots1, int spills)
{
    kept k = {0};
    int64_t written, read;
    uint64_t seed = 5;
    open_store(&k, span, slots0, slots1);
    CHECK_EQ(tgi_frame_store_disk(&k.how) > 0, spills);
    for (int64_t t = -3; t < 60; t++) {
        k.at = t;
        tgi_frame_store_forget(k.s, t - span + 1);
        for (int kind = 0; kind < 2; kind++)
            put(&k, kind, t);
        for (int i = 0; i < 20; i++) {
            const int64_t lo = t - span + 1 > -3 ? t - span + 1 : -3;
            look(&k, i & 1, tg_rand_in(&seed, lo, t));
        }
        CHECK(!tgi_frame_store_has(k.s, 0, t - span));
        CHECK(tgi_frame_store_has(k.s, 1, t));
    }
    moved(&k, &written, &read);
    CHECK_EQ(written > 0 && read > 0, spills);
    close_store(&k);
}

static void test_frames_come_back(void)
{
    walk(9, 9, 9, 0);
    walk(9, 3, 9, 1);
    walk(9, 1, 1, 1);
    walk(1, 1, 1, 0);
}

static void test_what_is_needed_last_makes_room(void)
{
    kept k = {0};
    int64_t written, read;
    open_store(&k, 4, 2, 4);
    for (int64_t t = 0; t < 4; t++)
        put(&k, 0, t); /* 0 is needed first, so the others take turns in the other slot */
    moved(&k, &written, &read);
    CHECK_EQ(written, 2);
    look(&k, 0, 0);
    look(&k, 0, 3);
    moved(&k, &written, &read);
    CHECK_EQ(read, 0);
    look(&k, 0, 1); /* 3 goes to the file */
    look(&k, 0, 2); /* 1 lies there already */
    moved(&k, &written, &read);
    CHECK_EQ(read, 2);
    CHECK_EQ(written, 4 - 1);
    close_store(&k);
}

static void test_errors(void)
{
    kept k = {0};
    const void *a, *b;
    void *c;
    tgi_err e = {0};
    open_store(&k, 4, 2, 2);
    put(&k, 0, 0);
    put(&k, 0, 1);
    CHECK_OK(tgi_frame_store_get(k.s, 0, 0, &a, &e), e);
    CHECK_OK(tgi_frame_store_get(k.s, 0, 1, &b, &e), e);
    CHECK_STATUS(tgi_frame_store_add(k.s, 0, 2, &c, &e), TG_E_INTERNAL, e);
    tgi_frame_store_let_go(k.s, 0, 0);
    CHECK_OK(tgi_frame_store_add(k.s, 0, 2, &c, &e), e);
    CHECK_STATUS(tgi_frame_store_get(k.s, 0, 7, &a, &e), TG_E_INTERNAL, e);
    CHECK_STATUS(tgi_frame_store_add(k.s, 0, 5, &c, &e), TG_E_INTERNAL,
                 e); /* 1 has its place */
    close_store(&k);
    k.how.scratch = NULL;
    k.memory = aligned_alloc(64, tgi_frame_store_bytes(&k.how));
    e = (tgi_err){0};
    CHECK_STATUS(tgi_frame_store_open(&k.how, k.memory, &k.s, &e), TG_E_ARG, e);
    CHECK(k.s == NULL);
    free(k.memory);
}

int main(void)
{
    RUN(test_frames_come_back);
    RUN(test_what_is_needed_last_makes_room);
    RUN(test_errors);
    return TEST_END();
}
