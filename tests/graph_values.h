/* graph_values.h - values of a graph that a test drafts: a named one, drawn floats, given integers. */
#ifndef TG_GRAPH_VALUES_H
#define TG_GRAPH_VALUES_H

#include "engine/base/mem.h"
#include "engine/graph/graph.h"
#include "tests/tg_test.h"

#include <string.h>

static inline int graph_value(tgi_graph *g, const char *name)
{
    int v = 0;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_value(g, name, &v, &e), e);
    return v;
}

/* `width` to each side of `middle`. */
static inline int graph_floats(tgi_graph *g, uint64_t *seed, int rank, const int64_t *dim,
                               float middle, float width)
{
    int v = 0;
    int64_t n = 0;
    tgi_err e = {0};
    tgi_desc desc = {TG_DTYPE_F32, rank, {0}};
    memcpy(desc.dim, dim, (size_t)rank * sizeof *dim);
    tgi_desc_count(&desc, &n);
    float *w = tgi_malloc(TGI_TAG_MISC, (size_t)n * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        w[i] = middle + width * tg_rand_unit(seed);
    CHECK_OK(tgi_graph_add_const(g, "w", &desc, w, 0, &v, &e), e);
    tgi_free(w);
    return v;
}

static inline int graph_longs(tgi_graph *g, int rank, int n, const int64_t *x)
{
    int v = 0;
    tgi_err e = {0};
    const tgi_desc desc = {TG_DTYPE_I64, rank, {n}};
    CHECK_OK(tgi_graph_add_const(g, "n", &desc, x, 0, &v, &e), e);
    return v;
}

#endif
