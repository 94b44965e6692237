/* net_run.h - run a network over dense arrays through the planner and the executor: what the
 * property tests and goldens share. Everything aborts the test program on a failure of its own
 * preparation; what is tested is returned. */
#ifndef TG_NET_RUN_H
#define TG_NET_RUN_H

#include "engine/base/arith.h"
#include "engine/exec/dense.h"
#include "engine/plan/tiling.h"
#include "tests/flow_plain.h"
#include "tests/tg_test.h"

#include <stdint.h>

typedef tgi_dense_io net_io;

/* TG_TEST_PRECISION=bf16 runs a property test with bfloat16 products: of odd cases in all
 * convolutions that have them, of even ones where the planner takes them. */
static inline int net_in_bf16(void)
{
    const char *p = getenv("TG_TEST_PRECISION");
    return p && strcmp(p, "bf16") == 0;
}
static inline unsigned net_flags(uint64_t number)
{
    return !net_in_bf16() ? 0 : TGI_NET_KINDS(TGI_KIND_BF16) | (number % 2 ? TGI_NET_EXACT : 0);
}
/* The machine cannot run what TG_TEST_PRECISION asks for. */
static inline int net_must_skip(void)
{
    return net_in_bf16() && !tgi_isa_has_bf16(tgi_isa_detect(TGI_ISA_COUNT));
}

/* Elements of output o. */
static inline size_t net_out_count(const tgi_net *net, int o)
{
    int64_t n = 0;
    tgi_desc_count(&net->shapes.desc[net->out[o]], &n);
    return (size_t)n;
}

/* Run every cell of a tiling of what `fit` (z,y,x; NULL: everything) keeps of output 0. The
 * arena is filled with NaN before each cell, so anything read that was not computed shows.
 * `only` >= 0: that cell alone. */
static inline tg_status net_run_part(const tgi_net *net, const tgi_fit *fit,
                                     const int64_t cut[3], int64_t band, int threads,
                                     net_io *io, int64_t only, tgi_err *err)
{
    tgi_tiling t;
    tgi_exec *e = NULL;
    tgi_threads *pool = NULL;
    tgi_stages *stages = NULL;
    TGI_TRY(tgi_stages_new(net, &stages, err));
    if (fit)
        tgi_stages_fit(stages, fit);
    TGI_TRY(tgi_tiling_make(&stages->one, cut, band, threads, NULL, &t, err));
    void *packed = aligned_alloc(64, tgi_align_size(net->packed_bytes + 64, 64));
    float *arena = aligned_alloc(64, tgi_align_size(t.arena_bytes + 64, 64));
    tgi_net_pack(net, packed, NULL);
    io->net = net;
    tg_status st = tgi_threads_open(threads, &pool, err);
    const tgi_exec_io eio = {.user = io, .load = tgi_dense_load, .store = tgi_dense_store};
    if (st == TG_OK)
        st = tgi_exec_open(&t, packed, arena, pool, &eio, &e, err);
    for (int64_t k = 0; st == TG_OK && k < t.cells; k++) {
        tgi_range core[3];
        if (only >= 0 && k != only)
            continue;
        for (size_t i = 0; i < t.arena_bytes / 4; i++)
            arena[i] = NAN;
        tgi_tiling_cell(&t, k, core);
        check_flow_counts(&stages->one, core[0], band);
        st = tgi_exec_cell(e, core, err);
    }
    tgi_exec_close(&e);
    tgi_threads_close(&pool);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    free(packed);
    free(arena);
    return st;
}

static inline tg_status net_run(const tgi_net *net, const int64_t cut[3], int64_t band,
                                int threads, net_io *io, int64_t only, tgi_err *err)
{
    return net_run_part(net, NULL, cut, band, threads, io, only, err);
}

#endif
