/* test_threads.c - threads of the library: work done ahead, and no part in the program's signals. */
#include "engine/base/ahead.h"
#include "engine/base/beside.h"
#include "kernels/threads.h"
#include "tests/tg_test.h"

#include <signal.h>
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

int main(void)
{
    RUN(test_what_was_asked_for_is_done_when_it_is_taken);
    RUN(test_closing_waits_for_the_work_at_hand);
    RUN(test_handlers_run_on_threads_of_the_program_alone);
    return TEST_END();
}
