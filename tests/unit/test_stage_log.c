/* A record of OUT.stages that a run writes again and again while another process looks at it: a look finds one, whole, and none
 * that is older than what an earlier look found. */
#include "engine/out/stage_log.h"
#include "tests/tg_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 1 << 16, LOOKERS = 6, LOOKS = 60, RECORDS = 20 };

typedef struct writing {
    tgi_stage_log *log;
    const char *output;
    atomic_int stop, ended, missed, torn, older;
    atomic_ullong records;
    uint64_t words[WORDS];
} writing;

static tg_status write_record(writing *w)
{
    tgi_err e = {0};
    const uint64_t number = atomic_fetch_add(&w->records, 1) + 1;
    for (int i = 0; i < WORDS; i++)
        w->words[i] = number;
    const tgi_stage_part part = {w->words, sizeof w->words};
    return tgi_stage_log_write(w->log, &part, 1, &e);
}

static void *write_on(void *arg)
{
    writing *w = arg;
    while (!atomic_load(&w->stop) && write_record(w) == TG_OK)
        ;
    atomic_store(&w->ended, 1);
    return NULL;
}

/* Until so many looks were taken and so many records written: on a busy machine the writer may come late. */
static int looks_go_on(writing *w, int k)
{
    return k < LOOKS || (atomic_load(&w->records) < RECORDS && !atomic_load(&w->ended));
}

/* More of them than there are processors, so that two records may be written within one look. */
static void *look_on(void *arg)
{
    writing *w = arg;
    uint64_t *seen = calloc(WORDS, sizeof *seen), last = 0;
    for (int k = 0; seen && looks_go_on(w, k); k++) {
        if (!tgi_stage_log_look(w->output, NULL, seen, WORDS * sizeof *seen)) {
            atomic_fetch_add(&w->missed, 1);
            continue;
        }
        for (int i = 1; i < WORDS; i++)
            if (seen[i] != seen[0]) {
                atomic_fetch_add(&w->torn, 1);
                break;
            }
        if (seen[0] < last)
            atomic_fetch_add(&w->older, 1);
        last = seen[0];
    }
    if (!seen)
        atomic_fetch_add(&w->missed, 1);
    free(seen);
    return NULL;
}

static void test_looks_find_a_record(void)
{
    char folder[] = "/tmp/tegula-stage-log-XXXXXX", output[80];
    const tgi_stage_owner owner = {.job = 1};
    static writing w;
    pthread_t writer, looker[LOOKERS];
    tgi_err e = {0};
    CHECK(mkdtemp(folder) != NULL);
    snprintf(output, sizeof output, "%s/out.tif", folder);
    w.output = output;
    CHECK_OK(tgi_stage_log_open(output, &owner, sizeof w.words, &w.log, &e), e);
    CHECK(write_record(&w) == TG_OK);
    CHECK(pthread_create(&writer, NULL, write_on, &w) == 0);
    for (int i = 0; i < LOOKERS; i++)
        CHECK(pthread_create(&looker[i], NULL, look_on, &w) == 0);
    for (int i = 0; i < LOOKERS; i++)
        pthread_join(looker[i], NULL);
    atomic_store(&w.stop, 1);
    pthread_join(writer, NULL);
    printf("%d looks or more, %llu records\n", LOOKERS * LOOKS,
           (unsigned long long)atomic_load(&w.records));
    CHECK_EQ(atomic_load(&w.missed), 0);
    CHECK_EQ(atomic_load(&w.torn), 0);
    CHECK_EQ(atomic_load(&w.older), 0);
    CHECK(atomic_load(&w.records) >= RECORDS);
    tgi_stage_log_close(&w.log);
    CHECK_OK(tgi_stage_log_discard(output, &e), e);
    CHECK(rmdir(folder) == 0);
}

int main(void)
{
    RUN(test_looks_find_a_record);
    return TEST_END();
}
