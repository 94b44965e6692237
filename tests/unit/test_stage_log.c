/* A record of OUT.stages that a run writes again and again while another process looks at it: a look finds one, whole, and none
 * that is older than what an earlier look found. */
#include "engine/out/stage_log.h"
#include "tests/tg_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 1 << 16, LOOKERS = 6, LOOKS = 60 };

typedef struct writing {
    tgi_stage_log *log;
    const char *output;
    atomic_int stop, missed, torn, older;
    uint64_t words[WORDS], records;
} writing;

static tg_status write_record(writing *w)
{
    tgi_err e = {0};
    w->records++;
    for (int i = 0; i < WORDS; i++)
        w->words[i] = w->records;
    const tgi_stage_part part = {w->words, sizeof w->words};
    return tgi_stage_log_write(w->log, &part, 1, &e);
}

static void *write_on(void *arg)
{
    writing *w = arg;
    while (!atomic_load(&w->stop) && write_record(w) == TG_OK)
        ;
    return NULL;
}

/* More of them than there are processors, so that two records may be written within one look. */
static void *look_on(void *arg)
{
    writing *w = arg;
    uint64_t *seen = calloc(WORDS, sizeof *seen), last = 0;
    for (int k = 0; seen && k < LOOKS; k++) {
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
    printf("%d looks, %llu records\n", LOOKERS * LOOKS, (unsigned long long)w.records);
    CHECK_EQ(atomic_load(&w.missed), 0);
    CHECK_EQ(atomic_load(&w.torn), 0);
    CHECK_EQ(atomic_load(&w.older), 0);
    CHECK(w.records > 1); /* else nothing was written meanwhile */
    tgi_stage_log_close(&w.log);
    CHECK_OK(tgi_stage_log_discard(output, &e), e);
    CHECK(rmdir(folder) == 0);
}

int main(void)
{
    RUN(test_looks_find_a_record);
    return TEST_END();
}
