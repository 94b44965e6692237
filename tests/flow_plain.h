/* flow_plain.h - the bands of a cell gone through one after the other, as the executor goes
 * through them: what tgi_flow_simulate, which goes node by node, must count. */
#ifndef TG_TESTS_FLOW_PLAIN_H
#define TG_TESTS_FLOW_PLAIN_H

#include "engine/base/arith.h"
#include "engine/plan/stream.h"
#include "tests/tg_test.h"

#include <stdlib.h>
#include <string.h>

typedef struct flow_counted {
    tgi_flow_count c;
    tgi_flow_cost cost;
    int64_t bands;
} flow_counted;

static inline flow_counted flow_counted_open(const tgi_stage *stage)
{
    const size_t n = (size_t)(stage->net->n_values + stage->n_nodes + 1);
    flow_counted f = {.c = {.ring = calloc(n, sizeof *f.c.ring),
                            .carried = calloc(n, 1),
                            .rows = calloc(n, sizeof *f.c.rows),
                            .band_rows = calloc(n, sizeof *f.c.band_rows),
                            .fed = calloc(n, sizeof *f.c.fed)}};
    return f;
}

static inline void flow_counted_close(flow_counted *f)
{
    free(f->c.ring);
    free(f->c.carried);
    free(f->c.rows);
    free(f->c.band_rows);
    free(f->c.fed);
}

static inline void flow_feed_plainly(tgi_flow *f, flow_counted *n)
{
    for (int i = 0; i < f->stage->n_loaded; i++) {
        const int v = f->stage->in[i].value;
        const tgi_range r = tgi_flow_feed(f, i);
        n->c.fed[v] = tgi_max(n->c.fed[v], r.hi - r.lo);
    }
}

static inline void flow_walk_plainly(tgi_flow *f, tgi_range core, int64_t band, flow_counted *n)
{
    const tgi_stage *stage = f->stage;
    for (tgi_flow_begin(f, core, band); !tgi_flow_done(f); n->bands++) {
        flow_feed_plainly(f, n);
        for (int k = 0; k < stage->n_nodes; k++) {
            const int64_t rows = tgi_range_len(tgi_flow_advance(f, k));
            n->c.rows[k] += (double)rows;
            n->c.band_rows[k] = tgi_max(n->c.band_rows[k], rows);
            n->cost.calls += rows > 0;
            if (rows > 0)
                n->cost.weight_bytes +=
                    (double)stage->net->reads.node[stage->node[k]].packed_bytes;
        }
        for (int v = 0; v < stage->net->n_values; v++)
            n->c.ring[v] = tgi_max(n->c.ring[v], f->end[v] - f->keep[v]);
        tgi_flow_release(f);
        for (int v = 0; v < stage->net->n_values; v++)
            n->c.carried[v] |= f->keep[v] < f->end[v];
    }
    for (int k = 0; k < 1000; k++) /* whoever reads ahead */
        flow_feed_plainly(f, n);
}

/* A part of a cell, as a run that goes on has it, or one that makes damaged tiles again, takes no more of anything
 * at once. */
static inline void check_part_of_cell(const tgi_stage *stage, tgi_flow *f, tgi_range part,
                                      int64_t band, const flow_counted *whole)
{
    flow_counted some = flow_counted_open(stage);
    flow_walk_plainly(f, part, band, &some);
    for (int v = 0; v < stage->net->n_values; v++) {
        CHECK(some.c.fed[v] <= whole->c.fed[v]);
        CHECK(some.c.ring[v] <= whole->c.ring[v]);
    }
    for (int k = 0; k < stage->n_nodes; k++)
        CHECK(some.c.band_rows[k] <= whole->c.band_rows[k]);
    flow_counted_close(&some);
}

static inline void check_parts(const tgi_stage *stage, tgi_flow *f, tgi_range core,
                               int64_t band, const flow_counted *whole)
{
    const int64_t rows = tgi_range_len(core), by = tgi_max(1, rows / 7);
    for (int64_t at = core.lo + 1; at < core.hi; at += by) {
        check_part_of_cell(stage, f, (tgi_range){at, core.hi}, band, whole);
        check_part_of_cell(stage, f, (tgi_range){core.lo, at}, band, whole);
        check_part_of_cell(stage, f, (tgi_range){at, tgi_min(at + by / 2 + 1, core.hi)}, band,
                           whole);
    }
}

static inline void check_flow_counts(const tgi_stage *stage, tgi_range core, int64_t band)
{
    tgi_flow f;
    tgi_err e = {0};
    flow_counted plain = flow_counted_open(stage), counted = flow_counted_open(stage);
    counted.c.cost = &counted.cost;
    CHECK_OK(tgi_flow_open(&f, stage, &e), e);
    flow_walk_plainly(&f, core, band, &plain);
    CHECK_OK(tgi_flow_simulate(&f, core, band, &counted.c, &counted.bands, &e), e);
    check_parts(stage, &f, core, band, &plain);
    tgi_flow_close(&f);
    CHECK_EQ(counted.bands, plain.bands);
    CHECK_EQ(counted.cost.calls, plain.cost.calls);
    CHECK_EQ(counted.cost.weight_bytes, plain.cost.weight_bytes);
    const size_t values = (size_t)stage->net->n_values, nodes = (size_t)stage->n_nodes;
    CHECK(memcmp(counted.c.ring, plain.c.ring, values * sizeof *plain.c.ring) == 0);
    CHECK(memcmp(counted.c.fed, plain.c.fed, values * sizeof *plain.c.fed) == 0);
    CHECK(memcmp(counted.c.carried, plain.c.carried, values) == 0);
    CHECK(memcmp(counted.c.rows, plain.c.rows, nodes * sizeof *plain.c.rows) == 0);
    CHECK(memcmp(counted.c.band_rows, plain.c.band_rows, nodes * sizeof(int64_t)) == 0);
    flow_counted_close(&plain);
    flow_counted_close(&counted);
}

#endif
