/*
 * tegula_trace.h - what a stretch of code did to memory: used and peaked.
 *
 * EXPERIMENTAL: the declarations of this header may still change from one version to the next.
 *
 * A *trace* watches the allocated bytes of one pool from when it was begun:
 *
 *     used   = allocated now - allocated at the start      (negative: more was freed)
 *     peaked = most allocated meanwhile - allocated at the start, less `used` when that is
 *              positive: what was needed on top and is gone again
 *
 * The peak comes from the pool's own counters: it is exact, however short it was, and any
 * number of traces may overlap, be reset and end in any order. What lies outside of pools can
 * only be sampled; that is a line of its own which says so (tg_trace_opts.outside_ms).
 *
 *     void step(tg_pool *pool)
 *     {
 *         TG_TRACE_FUNCTION(pool);                    // reports on every way out:
 *         load(pool);                                 // △Used Peaked MB: 40 200 (step: exit)
 *         TG_TRACE_SCOPE(pool, "train");
 *         ...
 *     }
 *
 * A trace belongs to one thread at a time; traces of one pool may lie in several threads.
 * Source of the format and of the two numbers: fastai's GPUMemTrace.
 */
#ifndef TEGULA_TRACE_H
#define TEGULA_TRACE_H

#include <tegula_pool.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options of a trace. Zero means default in every field; `size` is sizeof(tg_trace_opts). */
typedef struct tg_trace_opts {
    size_t size;
    const char *ctx;    /* name in reports, borrowed; default none */
    int silent;         /* 1: reports say nothing until tg_trace_silent(t, 0) */
    int no_exit_report; /* 1: tg_trace_end does not report; by default it does */
    int outside_ms;     /* also sample this process's memory outside of pools so often;
                           default: not */
    /* Where lines go, without newline; the library itself prints nothing. Default: nowhere;
     * tg_trace_print is one. */
    void (*emit)(void *user, const char *line);
    void *user;
} tg_trace_opts;

/** A trace lies where you put it, and must stay there from tg_trace_begin to tg_trace_end. All
 * fields are the library's. */
typedef struct tg_trace {
    struct { /* in the pool's list while it runs */
        void *next, *prev;
        uint64_t start_bytes, peak_bytes;
    } scope;
    tg_pool *pool;
    tg_trace_opts opts;
    int running, ended;
    int64_t used_bytes, peaked_bytes; /* as they were when it was stopped */
    void *sampler;
} tg_trace;

/** The two numbers of a trace. */
typedef struct tg_trace_data {
    int64_t used_bytes, peaked_bytes;
    int64_t used_mib, peaked_mib; /* whole MiB, towards zero */
} tg_trace_data;

/**
 * Begin to watch a pool; counting starts now. @param pool borrowed, open until tg_trace_end.
 * @param opts copied; NULL for defaults.
 * @return TG_E_ARG    NULL, or opts->size is not one we know: the trace is then silent and its
 *                     numbers are 0, and it may be ended as others
 *         TG_E_NOMEM  no thread for sampling; the trace runs without it
 */
TG_API tg_status tg_trace_begin(tg_trace *t, tg_pool *pool, const tg_trace_opts *opts);
/** Report with subctx "exit" unless that is off, and stop for good. Again: nothing happens. */
TG_API void tg_trace_end(tg_trace *t);
/** Make a trace count from now on. */
TG_API void tg_trace_reset(tg_trace *t);
/** Freeze the numbers; they stay readable. */
TG_API void tg_trace_stop(tg_trace *t);
/** Count again from now on, after a stop. A running trace is reset. */
TG_API void tg_trace_start(tg_trace *t);
/** Read the numbers of now, or of when the trace was stopped. @return TG_E_ARG. */
TG_API tg_status tg_trace_get(tg_trace *t, tg_trace_data *out);
/** Read the same for this process's anonymous memory outside of host pools. It is sampled every
 * outside_ms, so the peak is what was seen. @return TG_E_UNSUPPORTED when it is not sampled. */
TG_API tg_status tg_trace_outside(tg_trace *t, tg_trace_data *out);

#define TG_TRACE_TEXT 256
/**
 * Write the numbers as text: "△Used Peaked MB: %6d %6d", then " (ctx: subctx)", or the one of
 * them that is there, or nothing. @param subctx NULL or "" for none. @return buf, cut to cap;
 * UTF-8.
 */
TG_API const char *tg_trace_to_string(tg_trace *t, const char *subctx, char *buf, size_t cap);
/** Emit the line of tg_trace_to_string. When outside memory is sampled a second line follows,
 * with "outside the pool, sampled every N ms" in place of the subctx. Nothing when silent. */
TG_API void tg_trace_report(tg_trace *t, const char *subctx);
/** Report, then count from now on. */
TG_API void tg_trace_report_n_reset(tg_trace *t, const char *subctx);
/** Switch reports off (1) or on again (0). */
TG_API void tg_trace_silent(tg_trace *t, int on);

/** Print a line to stderr, from your program: for `emit`. */
static inline void tg_trace_print(void *user, const char *line)
{
    (void)user;
    fprintf(stderr, "%s\n", line);
}

#if defined(__GNUC__)
/* What the two macros below report to. */
#ifndef TG_TRACE_EMIT
#define TG_TRACE_EMIT tg_trace_print
#endif
#define TG_TRACE_JOIN_(a, b) a##b
#define TG_TRACE_JOIN(a, b) TG_TRACE_JOIN_(a, b)
#define TG_TRACE_NAMED_(t, pool, name)                                                         \
    __attribute__((cleanup(tg_trace_end))) tg_trace t;                                         \
    do {                                                                                       \
        tg_trace_opts tg_trace_o_ = {0};                                                       \
        tg_trace_o_.size = sizeof tg_trace_o_;                                                 \
        tg_trace_o_.ctx = (name);                                                              \
        tg_trace_o_.emit = TG_TRACE_EMIT;                                                      \
        (void)tg_trace_begin(&t, (pool), &tg_trace_o_);                                        \
    } while (0)
/** Trace from here to the end of the block, reported on every way out of it: return, break,
 * goto. (Leaving by longjmp reports nothing.) Needs the cleanup attribute of GCC and Clang. */
#define TG_TRACE_SCOPE(pool, name)                                                             \
    TG_TRACE_NAMED_(TG_TRACE_JOIN(tg_trace_at_, __LINE__), pool, name)
/** Trace a whole function, with its name as ctx: the function's first line. */
#define TG_TRACE_FUNCTION(pool) TG_TRACE_SCOPE(pool, __func__)
#endif

#ifdef __cplusplus
}
#endif

#endif
