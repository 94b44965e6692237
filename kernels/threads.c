/* threads.c - the pool behind tgi_parallel.
 *
 * A loop is published as (function, argument, job count) under a new generation number. Each
 * thread has a contiguous share of the job numbers and draws from it in order; one that has
 * finished its own draws from the others' shares. Neighbouring rows thus stay with one
 * processor from layer to layer, where they are in its cache: drawing all rows from one counter
 * made a 1->32 convolution on two threads slower than on one. Between loops a worker spins
 * briefly, since the next loop of a network usually follows within microseconds, then sleeps on
 * a condition: nothing burns beside the reader and the writer.
 *
 * A worker takes part in a loop by entering it, and the caller, when no job is left, closes it and
 * waits for those that are inside. One that the system has not run meanwhile (another program has
 * its processor) finds the loop closed: nobody waited for it. Two runs at once, of small layers and
 * as many threads each as there are processors, held each other up while every loop waited for all
 * of its workers (test_threads).
 *
 * INVARIANTS
 *  1. one loop at a time; only the owner of the pool calls tgi_parallel.
 *  2. function, argument and shares change only while the loop is closed and nobody is inside; a
 *     worker looks at them only inside. Both are in one word, `loop`, so entering a loop that is
 *     being closed fails. */
#include "kernels/threads.h"

#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)256 << 10)
#define SPIN_ROUNDS 2000 /* some 20 to 50 microseconds */
#define LOOP_INSIDE ((uint64_t)0xffff)
#define LOOP_CLOSED ((uint64_t)1 << 16)
#define LOOP_ONE ((uint64_t)1 << 17)

/* A thread's part of the loop; alone on its cache line. */
typedef struct share {
    _Atomic int64_t next;
    int64_t end;
    char pad[48];
} share;

typedef struct worker {
    pthread_t id;
    struct tgi_threads *pool;
    int index; /* 1.. ; 0 is the caller */
} worker;

struct tgi_threads {
    int n; /* caller included */
    int n_started;
    int spin;
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    _Atomic uint64_t loop; /* its number * LOOP_ONE + (LOOP_CLOSED) + workers inside */
    int sleepers;          /* guarded by lock */
    int stop;              /* changes as the loop's function does */
    share *shares;         /* n */
    void (*fn)(void *arg, int64_t job, int thread);
    void *arg;
    const tgi_flag *lent; /* of who handed out the jobs */
    worker *workers;
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void draw_jobs(tgi_threads *t, int thread)
{
    for (int k = 0; k < t->n; k++) {
        share *s = &t->shares[(thread + k) % t->n];
        for (;;) {
            const int64_t job = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
            if (job >= s->end)
                break;
            t->fn(t->arg, job, thread);
        }
    }
}

/* Whether the loop is open and another than number `seen`. */
static bool is_open(uint64_t loop, uint64_t seen)
{
    return !(loop & LOOP_CLOSED) && loop / LOOP_ONE != seen;
}

/* Wait for an open loop other than number `seen`; returns the word that was seen of it. */
static uint64_t next_loop(tgi_threads *t, uint64_t seen)
{
    uint64_t now;
    for (int i = 0; i < t->spin; i++) {
        now = atomic_load_explicit(&t->loop, memory_order_acquire);
        if (is_open(now, seen))
            return now;
        relax();
    }
    pthread_mutex_lock(&t->lock);
    t->sleepers++;
    while (!is_open(now = atomic_load_explicit(&t->loop, memory_order_acquire), seen))
        pthread_cond_wait(&t->wake, &t->lock);
    t->sleepers--;
    pthread_mutex_unlock(&t->lock);
    return now;
}

/* Be counted inside the loop whose word was `now`; false: it is closed, or another. */
static bool enter(tgi_threads *t, uint64_t now)
{
    const uint64_t number = now / LOOP_ONE;
    while (!(now & LOOP_CLOSED) && now / LOOP_ONE == number)
        if (atomic_compare_exchange_weak_explicit(&t->loop, &now, now + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

static void leave(tgi_threads *t)
{
    const uint64_t was = atomic_fetch_sub_explicit(&t->loop, 1, memory_order_acq_rel);
    if ((was & LOOP_CLOSED) && (was & LOOP_INSIDE) == 1) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_signal(&t->done);
        pthread_mutex_unlock(&t->lock);
    }
}

static void *work(void *arg)
{
    worker *w = arg;
    tgi_threads *t = w->pool;
    uint64_t seen = 0;
    for (;;) {
        const uint64_t now = next_loop(t, seen);
        seen = now / LOOP_ONE;
        if (!enter(t, now))
            continue;
        const bool stop = t->stop;
        if (!stop) {
            (void)tgi_cancel_lend(t->lent);
            draw_jobs(t, w->index);
        }
        leave(t);
        if (stop)
            return NULL;
    }
}

/* The next loop, which is closed and empty so far, is open. */
static void open_loop(tgi_threads *t)
{
    pthread_mutex_lock(&t->lock);
    const uint64_t was = atomic_load_explicit(&t->loop, memory_order_relaxed);
    atomic_store_explicit(&t->loop, (was / LOOP_ONE + 1) * LOOP_ONE, memory_order_release);
    if (t->sleepers)
        pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

static uint64_t inside(tgi_threads *t)
{
    return atomic_load_explicit(&t->loop, memory_order_acquire) & LOOP_INSIDE;
}

/* Let nobody in any more, and wait for who is inside. */
static void close_loop(tgi_threads *t)
{
    atomic_fetch_or_explicit(&t->loop, LOOP_CLOSED, memory_order_acq_rel);
    for (int i = 0; i < t->spin; i++) {
        if (!inside(t))
            return;
        relax();
    }
    pthread_mutex_lock(&t->lock);
    while (inside(t))
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static tg_status start_workers(tgi_threads *t, tgi_err *err)
{
    int bad = 0;
    while (!bad && t->n_started < t->n - 1) {
        worker *w = &t->workers[t->n_started];
        *w = (worker){.pool = t, .index = t->n_started + 1};
        bad = tgi_thread_start(&w->id, STACK_BYTES, work, w);
        t->n_started += !bad;
    }
    return bad ? tgi_fail(err, TG_E_NOMEM,
                          "the system refused thread %d of %d: try --threads %d",
                          t->n_started + 2, t->n, t->n_started + 1)
               : TG_OK;
}

tg_status tgi_threads_open(int n, tgi_threads **out, tgi_err *err)
{
    if (n < 1 || n > 4096)
        return tgi_fail(err, TG_E_ARG, "%d threads: 1 to 4096 are possible", n);
    tgi_threads *t = tgi_calloc(TGI_TAG_MISC, 1, sizeof *t);
    worker *workers = tgi_calloc(TGI_TAG_MISC, (size_t)n, sizeof *workers);
    share *shares = tgi_calloc(TGI_TAG_MISC, (size_t)n, sizeof *shares);
    if (!t || !workers || !shares) {
        tgi_free(t);
        tgi_free(shares);
        tgi_free(workers);
        return tgi_fail(err, TG_E_NOMEM, "no memory for a pool of %d threads", n);
    }
    t->n = n;
    t->workers = workers;
    t->shares = shares;
    atomic_init(&t->loop, LOOP_CLOSED);
    /* With more threads than processors a spinning worker holds up the one it waits for. */
    t->spin = n <= sysconf(_SC_NPROCESSORS_ONLN) ? SPIN_ROUNDS : 0;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->wake, NULL);
    pthread_cond_init(&t->done, NULL);
    const tg_status st = start_workers(t, err);
    if (st != TG_OK)
        tgi_threads_close(&t);
    else
        *out = t;
    return st;
}

void tgi_threads_close(tgi_threads **pt)
{
    tgi_threads *t = pt ? *pt : NULL;
    if (!t)
        return;
    t->stop = 1;
    open_loop(t); /* and never closed: who comes late finds it, too */
    for (int i = 0; i < t->n_started; i++)
        pthread_join(t->workers[i].id, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_cond_destroy(&t->done);
    pthread_mutex_destroy(&t->lock);
    tgi_free(t->workers);
    tgi_free(t->shares);
    tgi_free(t);
    *pt = NULL;
}

int tgi_threads_count(const tgi_threads *t)
{
    return t ? t->n : 1;
}

void tgi_parallel(tgi_threads *t, int64_t n_jobs,
                  void (*fn)(void *arg, int64_t job, int thread), void *arg)
{
    if (!t || t->n == 1 || n_jobs <= 1) {
        for (int64_t i = 0; i < n_jobs; i++)
            fn(arg, i, 0);
        return;
    }
    t->fn = fn;
    t->arg = arg;
    t->lent = tgi_cancel_lent();
    for (int i = 0; i < t->n; i++) {
        atomic_store_explicit(&t->shares[i].next, n_jobs * i / t->n, memory_order_relaxed);
        t->shares[i].end = n_jobs * (i + 1) / t->n;
    }
    open_loop(t);
    draw_jobs(t, 0);
    close_loop(t);
}
