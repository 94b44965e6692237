/* net_run.h - run a network over dense arrays through the planner and the executor: what the
 * property tests and goldens share. Everything aborts the test program on a failure of its own
 * preparation; what is tested is returned. */
#ifndef TG_NET_RUN_H
#define TG_NET_RUN_H

#include "engine/base/arith.h"
#include "engine/plan/tiling.h"
#include "engine/run/exec.h"
#include "tests/tg_test.h"

#include <stdint.h>

typedef struct net_io {
    const tg_net *net;
    const float *in[TG_MAX_PORTS]; /* dense, graph order of axes */
    float *out[TG_MAX_PORTS];
} net_io;

static inline void zyx_of(const tg_net *net, const tg_box *b, tg_range r[3])
{
    r[0] = net->rank == 5 ? b->ax[2] : (tg_range){0, 1};
    r[1] = b->ax[net->rank - 2];
    r[2] = b->ax[net->rank - 1];
}

static inline size_t dense_at(const tg_net *net, int v, int64_t c, int64_t z, int64_t y, int64_t x)
{
    const tg_desc *d = &net->shapes.desc[v];
    const int64_t depth = net->rank == 5 ? d->dim[2] : 1;
    return (size_t)(((c * depth + z) * d->dim[net->rank - 2] + y) * d->dim[net->rank - 1] + x);
}

static inline tg_status net_load(void *user, int i, const tg_view *view, const tg_box *box,
                                 tgi_err *err)
{
    (void)err;
    const net_io *io = user;
    tg_range r[3];
    zyx_of(io->net, box, r);
    for (int64_t c = 0; c < tgi_view_blocks(view) * view->cb; c++)
        for (int64_t z = r[0].lo; z < r[0].hi; z++)
            for (int64_t y = r[1].lo; y < r[1].hi; y++)
                for (int64_t x = r[2].lo; x < r[2].hi; x++)
                    *tgi_view_at(view, c, z, y, x) =
                        c < view->c ? io->in[i][dense_at(io->net, io->net->in[i], c, z, y, x)] : 0;
    return TG_OK;
}

static inline tg_status net_store(void *user, int o, const tg_view *view, const tg_box *box,
                                  tgi_err *err)
{
    (void)err;
    const net_io *io = user;
    tg_range r[3];
    zyx_of(io->net, box, r);
    for (int64_t c = 0; c < view->c; c++)
        for (int64_t z = r[0].lo; z < r[0].hi; z++)
            for (int64_t y = r[1].lo; y < r[1].hi; y++)
                for (int64_t x = r[2].lo; x < r[2].hi; x++)
                    io->out[o][dense_at(io->net, io->net->out[o], c, z, y, x)] =
                        *tgi_view_at(view, c, z, y, x);
    return TG_OK;
}

/* Elements of output o. */
static inline size_t net_out_count(const tg_net *net, int o)
{
    int64_t n = 0;
    tgi_desc_count(&net->shapes.desc[net->out[o]], &n);
    return (size_t)n;
}

/* Run every cell of a tiling. The arena is filled with NaN before each cell, so anything read
 * that was not computed shows. `only` >= 0: that cell alone. */
static inline tg_status net_run(const tg_net *net, const int64_t cut[3], int64_t band, int threads,
                                net_io *io, int64_t only, tgi_err *err)
{
    tg_tiling t;
    tg_exec *e = NULL;
    tg_threads *pool = NULL;
    TGI_TRY(tgi_tiling_make(net, cut, band, threads, NULL, &t, err));
    void *packed = aligned_alloc(64, tgi_align_size(net->packed_bytes + 64, 64));
    float *arena = aligned_alloc(64, tgi_align_size(t.arena_bytes + 64, 64));
    tgi_net_pack(net, packed);
    io->net = net;
    tg_status st = tgi_threads_open(threads, &pool, err);
    const tg_exec_io eio = {io, net_load, net_store, NULL};
    if (st == TG_OK)
        st = tgi_exec_open(&t, packed, arena, pool, &eio, &e, err);
    for (int64_t k = 0; st == TG_OK && k < t.cells; k++) {
        tg_range core[3];
        if (only >= 0 && k != only)
            continue;
        for (size_t i = 0; i < t.arena_bytes / 4; i++)
            arena[i] = NAN;
        tgi_tiling_cell(&t, k, core);
        st = tgi_exec_cell(e, core, err);
    }
    tgi_exec_close(&e);
    tgi_threads_close(&pool);
    tgi_tiling_free(&t);
    free(packed);
    free(arena);
    return st;
}

#endif
