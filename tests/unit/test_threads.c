/* test_threads.c - threads of the library: work done ahead, loops, and no part in the program's
 * signals. */
#include "engine/base/ahead.h"
#include "engine/base/beside.h"
#include "engine/base/clock.h"
#include "kernels/threads.h"
#include "tests/tg_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- One piece of work ahead ------------------------------------------------------------- */

typedef struct sums {
    int from, sum; /* asked for, answered */
} sums;

static void add_up(void *user)
{
    sums *s = user;
    s->sum = 0;
    for (int i = s->from; i < s->from + 1000; i++)
        s->sum += i;
}

static void test_what_was_asked_for_is_done_when_it_is_taken(void)
{
    tgi_ahead a;
    tgi_err err = {0};
    sums s = {0, 0};
    CHECK_OK(tgi_ahead_open(&a, add_up, &s, &err), err);
    for (int i = 0; i < 2000; i++) {
        CHECK(tgi_ahead_free(&a));
        s.from = i;
        tgi_ahead_ask(&a);
        CHECK(!tgi_ahead_free(&a));
        CHECK(tgi_ahead_take(&a) >= 0);
        CHECK_EQ(s.sum, 1000 * i + 499500);
    }
    s.sum = -1;
    (void)tgi_ahead_take(&a); /* never asked for */
    CHECK_EQ(s.sum, -1);
    tgi_ahead_close(&a);
    tgi_ahead_close(&a);
}

static void test_closing_waits_for_the_work_at_hand(void)
{
    for (int i = 0; i < 200; i++) {
        tgi_ahead a;
        tgi_err err = {0};
        sums s = {i, -1};
        CHECK_OK(tgi_ahead_open(&a, add_up, &s, &err), err);
        tgi_ahead_ask(&a);
        tgi_ahead_close(&a);
        CHECK(s.sum == -1 || s.sum == 1000 * i + 499500);
        s.sum = -2; /* nobody writes it now */
        CHECK_EQ(s.sum, -2);
    }
}

/* ---- Signals ----------------------------------------------------------------------------- */

static pthread_t program;
static volatile sig_atomic_t caught, elsewhere;

static void on_signal(int number)
{
    (void)number;
    caught = 1;
    elsewhere = !pthread_equal(pthread_self(), program);
}

static int never_done(void *arg)
{
    const struct timespec nap = {0, 1000000};
    (void)arg;
    nanosleep(&nap, NULL);
    return 1;
}

/* While the program's thread holds a signal back, no other one may take it. */
static void test_handlers_run_on_threads_of_the_program_alone(void)
{
    const struct timespec nap = {0, 50000000};
    struct sigaction act = {.sa_handler = on_signal}, before;
    sigset_t one;
    tgi_err err = {0};
    tgi_threads *pool = NULL;
    tgi_ahead a;
    tgi_beside b = {0};
    sums s = {0, 0};
    program = pthread_self();
    sigaction(SIGUSR1, &act, &before);
    CHECK_OK(tgi_threads_open(4, &pool, &err), err);
    CHECK_OK(tgi_ahead_open(&a, add_up, &s, &err), err);
    tgi_beside_start(&b, never_done, NULL);
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    kill(getpid(), SIGUSR1);
    nanosleep(&nap, NULL);
    CHECK(!caught);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    CHECK(caught && !elsewhere);
    tgi_beside_stop(&b);
    tgi_ahead_close(&a);
    tgi_threads_close(&pool);
    sigaction(SIGUSR1, &before, NULL);
}

/* ---- Loops ------------------------------------------------------------------------------- */

typedef struct tally {
    atomic_int done[64];
    atomic_int strange; /* threads that are none of the pool */
    int n_threads;
} tally;

static void count_job(void *arg, int64_t job, int thread)
{
    tally *t = arg;
    atomic_fetch_add(&t->done[job], 1);
    if (thread < 0 || thread >= t->n_threads)
        atomic_fetch_add(&t->strange, 1);
}

/* Each loop has its own tally on the stack: who is late must not draw from the next one. */
static void test_every_job_is_done_once_however_late_a_worker_is(void)
{
    uint64_t seed = 3;
    for (int n = 1; n <= 9; n += 2) {
        tgi_err err = {0};
        tgi_threads *pool = NULL;
        CHECK_OK(tgi_threads_open(n, &pool, &err), err);
        int wrong = 0;
        for (int loop = 0; loop < 4000; loop++) {
            const int jobs = (int)tg_rand_in(&seed, 0, 64);
            tally t = {.n_threads = n};
            tgi_parallel(pool, jobs, count_job, &t);
            for (int i = 0; i < 64; i++)
                wrong += atomic_load(&t.done[i]) != (i < jobs);
            wrong += atomic_load(&t.strange);
        }
        CHECK_EQ(wrong, 0);
        tgi_threads_close(&pool);
    }
}

static void *burn(void *arg)
{
    atomic_bool *stop = arg;
    while (!atomic_load(stop)) {
    }
    return NULL;
}

/* The caller and a worker of a pool on one processor, the worker behind everybody else; 0: the
 * system does not allow it. What is set is the calling thread's. */
static int make_rare(tgi_threads **pool)
{
    const struct sched_param none = {0};
    const int cpu = sched_getcpu();
    cpu_set_t one;
    tgi_err err = {0};
    CPU_ZERO(&one);
    if (cpu < 0)
        return 0;
    CPU_SET((unsigned)cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0 ||
        sched_setscheduler(0, SCHED_IDLE, &none) != 0) /* what is started now is so, too */
        return 0;
    CHECK_OK(tgi_threads_open(2, pool, &err), err);
    return sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

/* Loops beside one that takes all there is of the processor; how many in ten seconds at most. */
static void *run_loops(void *arg)
{
    int *const loops = arg;
    atomic_bool stop = false;
    tgi_threads *pool = NULL;
    pthread_t burner;
    *loops = -1;
    if (make_rare(&pool) && pthread_create(&burner, NULL, burn, &stop) == 0) {
        const double start = tgi_seconds();
        for (*loops = 0; *loops < 20000 && tgi_seconds() - start < 10; ++*loops) {
            tally t = {.n_threads = 2};
            tgi_parallel(pool, 8, count_job, &t);
        }
        printf("%d loops in %.2f s\n", *loops, tgi_seconds() - start);
        atomic_store(&stop, true);
        pthread_join(burner, NULL);
    }
    tgi_threads_close(&pool);
    return NULL;
}

/* A worker that the system hardly runs. Were it waited for in every loop, twenty thousand would
 * take a minute. */
static void test_a_loop_waits_for_nobody_who_does_nothing_in_it(void)
{
    int loops;
    pthread_t own;
    CHECK(pthread_create(&own, NULL, run_loops, &loops) == 0);
    pthread_join(own, NULL);
    if (loops < 0)
        printf("skipped: the system lets nobody give up his turns and have them back\n");
    else
        CHECK_EQ(loops, 20000);
}

int main(void)
{
    RUN(test_what_was_asked_for_is_done_when_it_is_taken);
    RUN(test_closing_waits_for_the_work_at_hand);
    RUN(test_every_job_is_done_once_however_late_a_worker_is);
    RUN(test_a_loop_waits_for_nobody_who_does_nothing_in_it);
    RUN(test_handlers_run_on_threads_of_the_program_alone);
    return TEST_END();
}
