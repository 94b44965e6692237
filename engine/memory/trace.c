/* trace.c - see tegula_trace.h. A trace is a scope of the pool's ledger (engine/base/pool.h)
 * and the words around it; only what no pool can count is sampled, by a thread of its own. */

#include "engine/memory/trace.h"
#include "engine/base/pool.h"
#include "engine/base/reserve.h"
#include "engine/base/sized.h"
#include "engine/base/thread.h"
#include "engine/memory/monitor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK_BYTES ((size_t)128 * 1024)

/* ---- Outside of the pools ---------------------------------------------------------------- */

typedef struct sampler {
    pthread_t id;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int stop, every_ms;
    int64_t start, now, peak;
} sampler;

/* What this process holds beyond what host pools have reserved, or will. */
static int64_t outside_now(void)
{
    uint64_t allocated, reserved, pinned;
    tgi_pools_sum(TG_MEMORY_HOST, 0, &allocated, &reserved);
    tgi_pools_sum(TG_MEMORY_PINNED, 0, &allocated, &pinned);
    return (int64_t)tgi_mem_measured() - (int64_t)(reserved + pinned + tgi_pages_kept());
}

static void look(sampler *s)
{
    s->now = outside_now();
    if (s->now > s->peak)
        s->peak = s->now;
}

static void *sample(void *arg)
{
    sampler *s = arg;
    struct timespec until;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        look(s);
        clock_gettime(CLOCK_MONOTONIC, &until);
        const int64_t ns = until.tv_nsec + (int64_t)s->every_ms * 1000000;
        until.tv_sec += ns / 1000000000;
        until.tv_nsec = ns % 1000000000;
        pthread_cond_timedwait(&s->wake, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void sampler_free(sampler *s)
{
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    tgi_books_free(s);
}

/* Its own memory is the pool's books, not the pool's: it would be in what it measures. */
static sampler *sampler_open(int every_ms)
{
    pthread_condattr_t clock;
    sampler *s = tgi_books_alloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (sampler){.every_ms = every_ms};
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &clock);
    pthread_condattr_destroy(&clock);
    s->start = s->now = s->peak = outside_now();
    if (tgi_thread_start(&s->id, STACK_BYTES, sample, s) == 0)
        return s;
    sampler_free(s);
    return NULL;
}

static void sampler_reset(sampler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->start = s->now = s->peak = outside_now();
    pthread_mutex_unlock(&s->lock);
}

static void sampler_close(sampler *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->id, NULL);
    sampler_free(s);
}

/* ---- Numbers ----------------------------------------------------------------------------- */

static void set_data(tg_trace_data *out, int64_t used, int64_t peak)
{
    const int64_t mib = 1 << 20;
    const int64_t peaked = peak - (used > 0 ? used : 0);
    *out = (tg_trace_data){used, peaked, used / mib, peaked / mib};
}

/* The header declares a scope's members without the type, which is not public. */
static tgi_scope *scope_of(tg_trace *t)
{
    _Static_assert(sizeof t->scope == sizeof(tgi_scope), "tg_trace holds a scope");
    return (tgi_scope *)(void *)&t->scope;
}

static void measure(tg_trace *t, tg_trace_data *out)
{
    uint64_t now, peak;
    tgi_scope *s = scope_of(t);
    tgi_scope_read(t->pool, s, &now, &peak);
    set_data(out, (int64_t)now - (int64_t)s->start_bytes, (int64_t)(peak - s->start_bytes));
}

tg_status tgi_trace_get(tg_trace *t, tg_trace_data *out)
{
    if (!t || !out)
        return TG_E_ARG;
    if (t->running)
        measure(t, out);
    else
        *out = (tg_trace_data){t->used_bytes, t->peaked_bytes, t->used_bytes / (1 << 20),
                               t->peaked_bytes / (1 << 20)};
    return TG_OK;
}

tg_status tgi_trace_outside(tg_trace *t, tg_trace_data *out)
{
    if (!t || !out)
        return TG_E_ARG;
    sampler *s = t->sampler;
    if (!s)
        return TG_E_UNSUPPORTED;
    pthread_mutex_lock(&s->lock);
    if (t->running)
        look(s);
    set_data(out, s->now - s->start, s->peak - s->start);
    pthread_mutex_unlock(&s->lock);
    return TG_OK;
}

/* ---- Begin and end ----------------------------------------------------------------------- */

tg_status tgi_trace_begin(tg_trace *t, tg_pool *pool, const tg_trace_opts *opts)
{
    if (!t)
        return TG_E_ARG;
    memset(t, 0, sizeof *t);
    t->ended = 1;
    if (!pool || (opts && !tgi_sized_take(opts, &t->opts, sizeof t->opts)))
        return TG_E_ARG;
    t->ended = 0;
    t->pool = pool;
    if (t->opts.outside_ms > 0)
        t->sampler = sampler_open(t->opts.outside_ms);
    tgi_scope_open(pool, scope_of(t));
    t->running = 1;
    return t->opts.outside_ms > 0 && !t->sampler ? TG_E_NOMEM : TG_OK;
}

void tgi_trace_stop(tg_trace *t)
{
    tg_trace_data d;
    if (!t || !t->running)
        return;
    measure(t, &d);
    t->used_bytes = d.used_bytes;
    t->peaked_bytes = d.peaked_bytes;
    tgi_scope_close(t->pool, scope_of(t));
    t->running = 0;
}

void tgi_trace_start(tg_trace *t)
{
    if (!t || t->ended)
        return;
    if (t->running)
        tgi_scope_reset(t->pool, scope_of(t));
    else
        tgi_scope_open(t->pool, scope_of(t));
    t->running = 1;
    sampler_reset(t->sampler);
}

void tgi_trace_reset(tg_trace *t)
{
    if (t && t->running)
        tgi_trace_start(t);
}

void tgi_trace_end(tg_trace *t)
{
    if (!t || t->ended)
        return;
    if (!t->opts.no_exit_report)
        tgi_trace_report(t, "exit");
    tgi_trace_stop(t);
    sampler_close(t->sampler);
    t->sampler = NULL;
    t->ended = 1;
}

/* ---- Words ------------------------------------------------------------------------------- */

static const char *line_of(const tg_trace_data *d, const char *ctx, const char *subctx,
                           char *buf, size_t cap)
{
    const int has_ctx = ctx && *ctx, has_sub = subctx && *subctx;
    snprintf(buf, cap, "△Used Peaked MB: %6lld %6lld%s%s%s%s%s", (long long)d->used_mib,
             (long long)d->peaked_mib, has_ctx || has_sub ? " (" : "", has_ctx ? ctx : "",
             has_ctx && has_sub ? ": " : "", has_sub ? subctx : "",
             has_ctx || has_sub ? ")" : "");
    return buf;
}

const char *tgi_trace_to_string(tg_trace *t, const char *subctx, char *buf, size_t cap)
{
    tg_trace_data d = {0};
    (void)tgi_trace_get(t, &d);
    return line_of(&d, t ? t->opts.ctx : NULL, subctx, buf, cap);
}

void tgi_trace_report(tg_trace *t, const char *subctx)
{
    char line[TG_TRACE_TEXT], what[64];
    tg_trace_data d;
    if (!t || t->ended || t->opts.silent || !t->opts.emit)
        return;
    t->opts.emit(t->opts.user, tgi_trace_to_string(t, subctx, line, sizeof line));
    if (tgi_trace_outside(t, &d) != TG_OK)
        return;
    snprintf(what, sizeof what, "outside the pool, sampled every %d ms", t->opts.outside_ms);
    t->opts.emit(t->opts.user, line_of(&d, t->opts.ctx, what, line, sizeof line));
}

void tgi_trace_report_n_reset(tg_trace *t, const char *subctx)
{
    tgi_trace_report(t, subctx);
    tgi_trace_reset(t);
}

void tgi_trace_silent(tg_trace *t, int on)
{
    if (t)
        t->opts.silent = on != 0;
}
