/* tracker.c - samples on the caller's thread and, by time, on one of its own.
 *
 * Two locks. `sampling` is held for a whole look at the system and the writing of its line, so
 * that lines are in the order of time; `state` for copying numbers only, so that labelling
 * (invariant 3) never waits. Order: sampling, then state. */
#include "engine/memory/tracker.h"

#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/thread.h"
#include "engine/base/utf8.h"
#include "engine/memory/log_file.h"

#include <pthread.h>
#include <string.h>

#define STACK_BYTES ((size_t)128 * 1024)

struct tg_tracker {
    pthread_mutex_t sampling, state;
    pthread_cond_t wake;
    pthread_t thread;
    int has_thread, quit; /* quit: state */
    tgi_look look;
    tgi_interval_spec every;
    int nap_ms;
    double t0;        /* of the log: its beginning on the monotonic clock */
    tgi_log_file log; /* sampling */
    /* All below: state. */
    double row_at; /* when the last row was taken */
    int64_t updates;
    char phase[TG_TRACKER_PHASE];
    int64_t tile;
    uint64_t predicted, budget;
    uint64_t current, since_row; /* measured: last look, largest since the last row */
    tg_tracker_row row;
    tg_tracker_maxima max;
    tgi_busy *busy[TGI_BUSY_KINDS];
    int64_t busy_ms[TGI_BUSY_KINDS]; /* as the last row had them */
};

/* ---- Samples ----------------------------------------------------------------------------- */

static void raise_to(tg_tracker_maximum *m, uint64_t bytes, const tg_tracker_row *r)
{
    if (bytes <= m->bytes)
        return;
    m->bytes = bytes;
    m->seconds = r->seconds;
    m->tile = r->tile;
    memcpy(m->phase, r->phase, sizeof m->phase);
}

/* Label a look at the process and let it count. */
static void fold_process(tg_tracker *t, tg_tracker_row *r)
{
    r->seconds = tgi_seconds() - t->t0;
    memcpy(r->phase, t->phase, sizeof r->phase);
    r->tile = t->tile;
    r->predicted_bytes = t->predicted;
    r->budget_bytes = t->budget;
    t->current = r->measured_bytes;
    if (r->measured_bytes > t->since_row)
        t->since_row = r->measured_bytes;
    raise_to(&t->max.measured, r->measured_bytes, r);
    raise_to(&t->max.resident, tgi_resident_of(r), r);
}

static void fold_row(tg_tracker *t, tg_tracker_row *r)
{
    r->peak_bytes = t->since_row;
    t->since_row = 0;
    raise_to(&t->max.pool_allocated, r->pool_allocated_bytes, r);
    for (int i = 0; i < r->n_gpus; i++)
        raise_to(&t->max.gpu_used[i], r->gpu_used_bytes[i], r);
    if (!t->max.samples++ || r->available_bytes < t->max.least_available_bytes)
        t->max.least_available_bytes = r->available_bytes;
    t->row = *r;
    t->row_at = r->seconds;
}

/* Since the last row. */
static void take_busy(tg_tracker *t, int64_t ms[TGI_BUSY_KINDS])
{
    for (int k = 0; k < TGI_BUSY_KINDS; k++) {
        const int64_t now = tgi_max(tgi_busy_ms(t->busy[k]),
                                    t->busy_ms[k]); /* it may have ended while it was asked */
        ms[k] = now - t->busy_ms[k];
        t->busy_ms[k] = now;
    }
}

/* One look; `whole`: a row, with all that is around the process. */
static void sample(tg_tracker *t, int whole)
{
    tg_tracker_row r = {.size = sizeof r};
    int64_t busy[TGI_BUSY_KINDS];
    pthread_mutex_lock(&t->sampling);
    int ok = tgi_look_process(&t->look, &r);
    if (whole)
        tgi_look_around(&t->look, &r);
    pthread_mutex_lock(&t->state);
    if (ok)
        fold_process(t, &r);
    ok = ok && whole;
    if (ok) {
        fold_row(t, &r);
        take_busy(t, busy);
    }
    pthread_mutex_unlock(&t->state);
    if (ok)
        tgi_log_append(&t->log, &r, busy);
    pthread_mutex_unlock(&t->sampling);
}

/* ---- By time ----------------------------------------------------------------------------- */

/* 1 when a row is due now: half a nap early is nearer than half a nap late. */
static int row_is_due(const tg_tracker *t)
{
    const double since = tgi_seconds() - t->t0 - t->row_at;
    return t->every.ms > 0 && since >= 1e-3 * ((double)t->every.ms - 0.5 * t->nap_ms);
}

static void *sampler(void *arg)
{
    tg_tracker *t = arg;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&t->state);
    while (!t->quit) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        until = now;
        until.tv_sec += t->nap_ms / 1000;
        until.tv_nsec += t->nap_ms % 1000 * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        while (!t->quit && pthread_cond_timedwait(&t->wake, &t->state, &until) == 0)
            ; /* woken early: to quit, or for no reason */
        if (t->quit)
            break;
        const int whole = row_is_due(t);
        pthread_mutex_unlock(&t->state);
        sample(t, whole);
        pthread_mutex_lock(&t->state);
    }
    pthread_mutex_unlock(&t->state);
    return NULL;
}

static tg_status start_thread(tg_tracker *t, tgi_err *err)
{
    t->has_thread = tgi_thread_start(&t->thread, STACK_BYTES, sampler, t) == 0;
    return t->has_thread ? TG_OK
                         : tgi_fail(err, TG_E_NOMEM, "the system refused the tracker's thread");
}

/* ---- Open and close ---------------------------------------------------------------------- */

static void init_locks(tg_tracker *t)
{
    pthread_condattr_t clock;
    pthread_mutex_init(&t->sampling, NULL);
    pthread_mutex_init(&t->state, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &clock);
    pthread_condattr_destroy(&clock);
}

static void free_tracker(tg_tracker *t)
{
    tgi_log_close(&t->log);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->state);
    pthread_mutex_destroy(&t->sampling);
    tgi_free(t);
}

tg_status tgi_tracker_open(const tgi_tracker_opts *o, tg_tracker **out, tgi_err *err)
{
    double before = 0;
    tg_tracker *t = tgi_calloc(TGI_TAG_MISC, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the tracker");
    init_locks(t);
    t->look = o->look;
    t->every = o->every;
    t->budget = o->budget;
    t->nap_ms = o->every.ms && (!o->peak_ms || o->every.ms < o->peak_ms) ? (int)o->every.ms
                                                                         : o->peak_ms;
    t->log.to.fd = -1;
    t->max.n_gpus = o->look.n_gpus;
    strcpy(t->phase, "start");
    tg_status st = TG_OK;
    if (o->csv)
        st = tgi_log_open(o->csv, o->how, o->go_on, o->look.n_gpus, &t->log, &before, err);
    t->t0 = tgi_seconds() - before;
    if (st == TG_OK)
        sample(t, 1);
    if (st == TG_OK && t->nap_ms > 0)
        st = start_thread(t, err);
    if (st == TG_OK)
        *out = t;
    else
        free_tracker(t);
    return st;
}

void tgi_tracker_close(tg_tracker **tp, tg_tracker_maxima *out)
{
    if (!tp || !*tp)
        return;
    tg_tracker *t = *tp;
    pthread_mutex_lock(&t->state);
    t->quit = 1;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->state);
    if (t->has_thread)
        pthread_join(t->thread, NULL);
    sample(t, 1);
    if (out)
        tgi_tracker_maxima(t, out);
    free_tracker(t);
    *tp = NULL;
}

/* ---- Labels and answers ------------------------------------------------------------------ */

/* A name that CSV needs no quotes for, whole characters of UTF-8. 1 when it is another. */
static int set_phase(tg_tracker *t, const char *name)
{
    char clean[TG_TRACKER_PHASE] = {0};
    size_t n = 0;
    for (const char *p = name; *p;) {
        const size_t len = tgi_utf8_length(p, strlen(p));
        const int plain = len && (unsigned char)*p >= 0x20 && !strchr(",\"\x7f", *p);
        const size_t step = len ? len : 1, put = plain ? len : 1;
        if (n + put >= sizeof clean)
            break;
        memcpy(clean + n, plain ? p : "_", put);
        n += put;
        p += step;
    }
    const int other = strcmp(t->phase, clean) != 0;
    memcpy(t->phase, clean, sizeof clean);
    return other;
}

void tgi_tracker_expect(tg_tracker *t, uint64_t predicted_bytes, uint64_t budget_bytes)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->state);
    t->predicted = predicted_bytes;
    t->budget = budget_bytes;
    pthread_mutex_unlock(&t->state);
}

void tgi_tracker_watch(tg_tracker *t, int kind, tgi_busy *of)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->state);
    t->busy[kind] = of;
    t->busy_ms[kind] = tgi_busy_ms(of);
    pthread_mutex_unlock(&t->state);
}

int tgi_tracker_update(tg_tracker *t, const char *phase, int64_t tile)
{
    if (!t)
        return 0;
    pthread_mutex_lock(&t->state);
    int due = phase && set_phase(t, phase);
    t->tile = tile;
    if (t->every.updates && t->updates % t->every.updates == 0)
        due = 1;
    t->max.updates = ++t->updates;
    pthread_mutex_unlock(&t->state);
    if (due)
        sample(t, 1);
    return due;
}

uint64_t tgi_tracker_current(tg_tracker *t)
{
    if (!t)
        return 0;
    pthread_mutex_lock(&t->state);
    const uint64_t now = t->current;
    pthread_mutex_unlock(&t->state);
    return now;
}

void tgi_tracker_row(tg_tracker *t, tg_tracker_row *out)
{
    pthread_mutex_lock(&t->state);
    *out = t->row;
    pthread_mutex_unlock(&t->state);
}

void tgi_tracker_maxima(tg_tracker *t, tg_tracker_maxima *out)
{
    *out = (tg_tracker_maxima){0};
    if (t) {
        pthread_mutex_lock(&t->sampling); /* the log's problem is of that lock */
        pthread_mutex_lock(&t->state);
        *out = t->max;
        memcpy(out->problem, t->log.problem, sizeof out->problem);
        pthread_mutex_unlock(&t->state);
        pthread_mutex_unlock(&t->sampling);
    }
    out->size = sizeof *out;
}
