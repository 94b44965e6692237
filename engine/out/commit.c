/* commit.c - ring of slots, encoder threads, one committer.
 *
 * The caller's block:  [tgi_commit | cells | per encoder: codec state, spare | slots]
 *
 * A cell goes FREE -> FILLING -> QUEUED -> ENCODING -> READY -> FREE; without compression
 * submit takes it from FILLING to READY at once. An encoder compresses into its spare buffer
 * and copies the result back over the raw pixels, so a slot (max of raw and bound) serves for
 * both and a slow neighbour never holds an encoder up.
 *
 * Invariants (all under `lock`)
 *  1. Cell i belongs to the one sequence number s with s % window == i and
 *     next <= s < next + window, where `next` is the committer's next tile.
 *  2. Encoders take queued cells in ascending order, so the oldest is never starved.
 *  3. Only the committer, and flush and close when it is idle or gone, call what the tiles go to; but
 *     tiles begun are counted by who takes a slot.
 *  4. `failed` is set once; from then on nothing is appended. */
#include "engine/out/commit.h"

#include "engine/base/clock.h"
#include "engine/base/thread.h"

#include "engine/base/arith.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define STACK_BYTES (256u * 1024u)
#define COMMITTER_BYTES                                                                        \
    (1024u * 1024u) /* of a film it runs an encoder, of which 172 KiB were seen */
#define MAX_ENCODERS 64

typedef enum cell_state { FREE, FILLING, QUEUED, ENCODING, READY } cell_state;

typedef struct cell {
    cell_state state;
    int64_t seq, tile;
    size_t bytes; /* of the encoded tile, when READY */
} cell;

typedef struct encoder {
    tgi_commit *c;
    tgi_tile_codec *codec;
    void *spare;
    pthread_t thread;
} encoder;

struct tgi_commit {
    tgi_tiles to;
    const tgi_sink_layout *layout;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* any state; few threads, coarse tiles: one condition will do */
    pthread_t committer;
    int window, n_encoders, started_encoders, started_committer;
    int64_t next;   /* the committer's next sequence number */
    int flushing;   /* callers of flush that wait for a sync */
    int64_t synced; /* tiles safe after the last sync of ours */
    int stopping, closing, failed;
    double waited; /* by callers of slot and flush, in seconds */
    tgi_err error;
    size_t slot_bytes;
    char *slots;
    cell *cells;
    encoder encoders[MAX_ENCODERS];
};

/* ---- Memory ------------------------------------------------------------------------------ */

static size_t up64(size_t n)
{
    return tgi_align_size(n, 64);
}

static int encoders_for(const tgi_sink_layout *l, int encoders)
{
    if (l->compression == TGI_COMPRESSION_NONE)
        return 0;
    return encoders < 1 ? 1 : encoders > MAX_ENCODERS ? MAX_ENCODERS : encoders;
}

static size_t slot_bytes(const tgi_sink_layout *l)
{
    return up64(l->tile_bound > l->tile_bytes ? l->tile_bound : l->tile_bytes);
}

static size_t encoder_bytes(const tgi_sink_layout *l)
{
    return up64(tgi_tile_codec_bytes(l)) + slot_bytes(l);
}

size_t tgi_commit_bytes(const tgi_sink_layout *layout, int window, int encoders)
{
    const size_t n = (size_t)(window < 1 ? 1 : window);
    size_t all = up64(sizeof(tgi_commit)) + up64(tgi_sat_mul(n, sizeof(cell)));
    all = tgi_sat_add(all, tgi_sat_mul(n, slot_bytes(layout)));
    return tgi_sat_add(
        all, tgi_sat_mul((size_t)encoders_for(layout, encoders), encoder_bytes(layout)));
}

int tgi_commit_threads(const tgi_sink_layout *layout, int encoders)
{
    return 1 + encoders_for(layout, encoders);
}

static cell *cell_of(tgi_commit *c, int64_t seq)
{
    return &c->cells[seq % c->window];
}

static void *slot_of(tgi_commit *c, int64_t seq)
{
    return c->slots + (size_t)(seq % c->window) * c->slot_bytes;
}

/* ---- Threads ----------------------------------------------------------------------------- */

/* Keep the first error for everybody. Under lock. */
static void fail_all(tgi_commit *c, const tgi_err *e)
{
    if (!c->failed) {
        c->failed = 1;
        c->error = *e;
    }
    pthread_cond_broadcast(&c->changed);
}

/* The oldest queued cell, or NULL. Under lock. */
static cell *oldest_queued(tgi_commit *c)
{
    for (int64_t s = c->next; s < c->next + c->window; s++) {
        cell *k = cell_of(c, s);
        if (k->state == QUEUED && k->seq == s)
            return k;
    }
    return NULL;
}

static void encode_cell(encoder *e, cell *k)
{
    tgi_commit *c = e->c;
    void *slot = slot_of(c, k->seq);
    tgi_err err = {0};
    size_t n = 0;
    k->state = ENCODING;
    pthread_mutex_unlock(&c->lock);
    const tg_status st = tgi_tile_encode(e->codec, slot, e->spare, &n, &err);
    if (st == TG_OK)
        memcpy(slot, e->spare, n);
    pthread_mutex_lock(&c->lock);
    if (st != TG_OK) {
        fail_all(c, &err);
        return;
    }
    k->bytes = n;
    k->state = READY;
    pthread_cond_broadcast(&c->changed);
}

static void *encoder_main(void *arg)
{
    encoder *e = arg;
    tgi_commit *c = e->c;
    pthread_mutex_lock(&c->lock);
    while (!c->failed && !c->stopping) {
        cell *k = oldest_queued(c);
        if (k)
            encode_cell(e, k);
        else if (c->closing)
            break;
        else
            pthread_cond_wait(&c->changed, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Append the next tile. Called and left under lock; that works without it. */
static void append_next(tgi_commit *c, cell *k)
{
    tgi_err err = {0};
    pthread_mutex_unlock(&c->lock);
    const tg_status st = c->to.append(c->to.user, k->tile, slot_of(c, k->seq), k->bytes, &err);
    if (st == TG_E_NO_SPACE || st == TG_E_IO)
        c->to.sync(c->to.user, NULL); /* save what came before it, if that can be */
    pthread_mutex_lock(&c->lock);
    if (st != TG_OK) {
        fail_all(c, &err);
        return;
    }
    k->state = FREE;
    c->next++;
    pthread_cond_broadcast(&c->changed);
}

static void sync_now(tgi_commit *c)
{
    tgi_err err = {0};
    const int64_t upto = c->next;
    pthread_mutex_unlock(&c->lock);
    const tg_status st = c->to.sync(c->to.user, &err);
    pthread_mutex_lock(&c->lock);
    if (st != TG_OK)
        fail_all(c, &err);
    c->synced = upto;
    pthread_cond_broadcast(&c->changed);
}

/* No cell that follows without a gap is still on its way to READY: nothing more comes by
 * itself. */
static int nothing_coming(tgi_commit *c)
{
    const cell *k = cell_of(c, c->next);
    if (k->seq != c->next || k->state == FREE || k->state == FILLING)
        return 1;
    return c->stopping && k->state == QUEUED;
}

/* Wait for a change, or until its time limit asks for a sync. Under lock. */
static void wait_or_due(tgi_commit *c)
{
    const double due = c->to.sync_due(c->to.user);
    if (due < 0) {
        pthread_cond_wait(&c->changed, &c->lock);
        return;
    }
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double ns = (double)t.tv_nsec + due * 1e9;
    t.tv_sec += (time_t)(ns / 1e9);
    t.tv_nsec = (long)(ns - 1e9 * (double)(time_t)(ns / 1e9));
    if (due > 0 && !pthread_cond_timedwait(&c->changed, &c->lock, &t))
        return;
    if (c->to.sync_due(c->to.user) == 0)
        sync_now(c);
}

static void *committer_main(void *arg)
{
    tgi_commit *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->failed) {
        cell *k = cell_of(c, c->next);
        if (k->state == READY && k->seq == c->next)
            append_next(c, k);
        else if (nothing_coming(c) && (c->closing || (c->flushing && c->synced < c->next)))
            sync_now(c);
        else
            wait_or_due(c);
        if (c->closing && nothing_coming(c) && c->synced == c->next)
            break;
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static tg_status start(pthread_t *t, size_t stack, void *(*fn)(void *), void *arg, tgi_err *err)
{
    const int e = tgi_thread_start(t, stack, fn, arg);
    return e ? tgi_fail(err, TG_E_NOMEM, "no memory for a writer's thread: %s", strerror(e))
             : TG_OK;
}

/* ---- Open and close ---------------------------------------------------------------------- */

static tg_status start_threads(tgi_commit *c, tgi_err *err)
{
    for (int i = 0; i < c->n_encoders; i++) {
        TGI_TRY(start(&c->encoders[i].thread, STACK_BYTES, encoder_main, &c->encoders[i], err));
        c->started_encoders++;
    }
    TGI_TRY(start(&c->committer, COMMITTER_BYTES, committer_main, c, err));
    c->started_committer = 1;
    return TG_OK;
}

/* Deal the caller's block out. */
static tg_status lay_out(tgi_commit *c, char *p, tgi_err *err)
{
    const tgi_sink_layout *l = c->layout;
    p += up64(sizeof *c);
    c->cells = (cell *)(void *)p;
    p += up64((size_t)c->window * sizeof(cell));
    for (int i = 0; i < c->window; i++)
        c->cells[i] = (cell){.state = FREE, .seq = -1};
    for (int i = 0; i < c->n_encoders; i++) {
        encoder *e = &c->encoders[i];
        e->c = c;
        TGI_TRY(tgi_tile_codec_open(l, p, &e->codec, err));
        e->spare = p + up64(tgi_tile_codec_bytes(l));
        p += encoder_bytes(l);
    }
    c->slot_bytes = slot_bytes(l);
    c->slots = p;
    return TG_OK;
}

tg_status tgi_commit_open(const tgi_commit_opts *opts, tgi_commit **out, tgi_err *err)
{
    if (opts->window < 1 || !opts->memory || (uintptr_t)opts->memory % 64)
        return tgi_fail(err, TG_E_INTERNAL, "commit: window %d", opts->window);
    tgi_commit *c = opts->memory;
    memset(c, 0, sizeof *c);
    c->to = opts->to;
    c->layout = opts->layout;
    c->window = opts->window;
    c->n_encoders = encoders_for(opts->layout, opts->encoders);
    c->next = c->to.appended(c->to.user);
    c->synced = c->to.safe(c->to.user);
    TGI_TRY(lay_out(c, opts->memory, err));
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &a);
    pthread_condattr_destroy(&a);
    const tg_status st = start_threads(c, err);
    if (st != TG_OK) {
        tgi_commit_close(&c, NULL);
        return st;
    }
    *out = c;
    return TG_OK;
}

/* The sticky error, or TG_OK. Under lock. */
static tg_status trouble(tgi_commit *c, tgi_err *err)
{
    if (c->failed)
        return tgi_fail(err, c->error.code, "%s", c->error.text);
    return TG_OK;
}

tg_status tgi_commit_close(tgi_commit **c, tgi_err *err)
{
    tgi_commit *p = *c;
    if (!p)
        return TG_OK;
    pthread_mutex_lock(&p->lock);
    p->closing = 1;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started_encoders; i++)
        pthread_join(p->encoders[i].thread, NULL);
    if (p->started_committer)
        pthread_join(p->committer, NULL);
    const tg_status st = trouble(p, err);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    *c = NULL;
    return st;
}

/* ---- Producers --------------------------------------------------------------------------- */

tg_status tgi_commit_slot(tgi_commit *c, int64_t seq, void **slot, tgi_err *err)
{
    pthread_mutex_lock(&c->lock);
    const double t0 = tgi_seconds();
    while (!c->failed && !c->stopping && seq >= c->next + c->window)
        pthread_cond_wait(&c->changed, &c->lock);
    c->waited += tgi_seconds() - t0;
    tg_status st = trouble(c, err);
    cell *k = cell_of(c, seq);
    if (st == TG_OK && c->stopping)
        st = tgi_fail(err, TG_E_CANCELLED, "stopped on request");
    else if (st == TG_OK && (seq < c->next || k->state != FREE))
        st = tgi_fail(err, TG_E_INTERNAL, "commit: tile %lld asked for twice", (long long)seq);
    if (st == TG_OK) {
        *k = (cell){.state = FILLING, .seq = seq};
        *slot = slot_of(c, seq);
        c->to.begin(c->to.user);
    }
    pthread_mutex_unlock(&c->lock);
    return st;
}

tg_status tgi_commit_submit(tgi_commit *c, int64_t seq, int64_t tile_id, tgi_err *err)
{
    if (tile_id < 0 || tile_id >= c->layout->n_tiles)
        return tgi_fail(err, TG_E_INTERNAL, "commit: no tile %lld", (long long)tile_id);
    pthread_mutex_lock(&c->lock);
    cell *k = cell_of(c, seq);
    const int ours = k->state == FILLING && k->seq == seq;
    pthread_mutex_unlock(&c->lock);
    if (!ours)
        return tgi_fail(err, TG_E_INTERNAL, "commit: tile %lld was not being filled",
                        (long long)seq);
    tgi_sink_tile_pad(c->layout, tile_id, slot_of(c, seq));
    pthread_mutex_lock(&c->lock);
    k->tile = tile_id;
    k->bytes = c->layout->tile_bytes;
    k->state = c->n_encoders ? QUEUED : READY;
    const tg_status st = trouble(c, err);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return st;
}

tg_status tgi_commit_flush(tgi_commit *c, tgi_err *err)
{
    pthread_mutex_lock(&c->lock);
    const double t0 = tgi_seconds();
    c->flushing++;
    pthread_cond_broadcast(&c->changed);
    while (!c->failed && !(nothing_coming(c) && c->synced == c->next))
        pthread_cond_wait(&c->changed, &c->lock);
    c->flushing--;
    c->waited += tgi_seconds() - t0;
    const tg_status st = trouble(c, err);
    pthread_mutex_unlock(&c->lock);
    return st;
}

void tgi_commit_stop(tgi_commit *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

double tgi_commit_wait_seconds(tgi_commit *c)
{
    pthread_mutex_lock(&c->lock);
    const double s = c->waited;
    pthread_mutex_unlock(&c->lock);
    return s;
}

int64_t tgi_commit_written(tgi_commit *c)
{
    pthread_mutex_lock(&c->lock);
    const int64_t n = c->next;
    pthread_mutex_unlock(&c->lock);
    return n;
}
