/* token_draft.h - drafts of graphs whose arrays are images in another order of axes, operator by
 * operator, and a finished one against its operators on arrays. */
#ifndef TG_TOKEN_DRAFT_H
#define TG_TOKEN_DRAFT_H

#include "kernels/ops/op_attrs.h"
#include "tests/dense_eval.h"
#include "tests/graph_values.h"
#include "tests/net_run.h"

#define OPSET 23

typedef struct draft {
    tgi_graph *g;
    int spatial;
    int x;            /* the input */
    int at;           /* the array to go on from */
    int order;        /* how it holds the image */
    int64_t channels; /* of it now */
    int computed;     /* something small was computed of the whole image */
    uint64_t seed;
} draft;

static inline int value(draft *d, const char *name)
{
    return graph_value(d->g, name);
}

static inline int floats(draft *d, int rank, const int64_t *dim, float middle, float width)
{
    return graph_floats(d->g, &d->seed, rank, dim, middle, width);
}

static inline int longs(draft *d, int rank, int n, const int64_t *x)
{
    return graph_longs(d->g, rank, n, x);
}

static inline void *node(draft *d, const char *op, int n_src, const int *src, int n_dst,
                         int *dst)
{
    tgi_node *n = NULL;
    tgi_err err = {0};
    char name[64];
    snprintf(name, sizeof name, "value of %s", op);
    for (int k = 0; k < n_dst; k++)
        dst[k] = value(d, name);
    CHECK_OK(tgi_graph_add_node(d->g, op, op, n_src, src, n_dst, dst, &n, &err), err);
    return n ? n->attrs : NULL;
}

/* Append an operator of d->at and up to two more; its attributes. */
static inline void *then(draft *d, const char *op, int b, int c)
{
    const int src[3] = {d->at, b, c};
    return node(d, op, c >= 0 ? 3 : b >= 0 ? 2 : 1, src, 1, &d->at);
}

static inline void transpose(draft *d, int n, const int64_t *to)
{
    tgi_ints *perm = then(d, "Transpose", -1, -1);
    perm->n = n;
    memcpy(perm->v, to, (size_t)n * sizeof *to);
}

static inline void reshape(draft *d, int n, const int64_t *list)
{
    then(d, "Reshape", longs(d, 1, n, list), -1);
}

/* Channels last, or first, of [1,C,(D,)H,W]. */
static inline void channels_last(draft *d)
{
    static const int64_t two[4] = {0, 2, 3, 1}, three[5] = {0, 2, 3, 4, 1};
    transpose(d, d->spatial + 2, d->spatial == 2 ? two : three);
}

static inline void channels_first(draft *d)
{
    static const int64_t two[4] = {0, 3, 1, 2}, three[5] = {0, 4, 1, 2, 3};
    transpose(d, d->spatial + 2, d->spatial == 2 ? two : three);
}

/* ---- Orders ------------------------------------------------------------------------------ */

enum { ROWS, PIXELS, MATRIX, NO_BATCH, LINES_OF_CHANNELS, N_ORDERS };

static inline int rank_of(const draft *d)
{
    return d->order == MATRIX     ? 2
           : d->order == PIXELS   ? d->spatial + 2
           : d->order == NO_BATCH ? d->spatial + 1
                                  : 3;
}

/* The axis of channels: the last but in one order. */
static inline int channel_axis(const draft *d)
{
    return d->order == LINES_OF_CHANNELS ? 1 : rank_of(d) - 1;
}

static inline int by_channel(draft *d, float middle, float width)
{
    const int64_t dim[2] = {d->channels, 1};
    return floats(d, d->order == LINES_OF_CHANNELS ? 2 : 1, dim, middle, width);
}

static inline int weights(draft *d, int64_t to, int turned)
{
    const int64_t dim[2] = {turned ? to : d->channels, turned ? d->channels : to};
    return floats(d, 2, dim, 0, sqrtf(3.0f / (float)d->channels));
}

/* ---- Graphs ------------------------------------------------------------------------------ */

static inline draft begin(int spatial, int64_t channels, uint64_t seed)
{
    draft d = {.spatial = spatial, .channels = channels, .seed = seed};
    const int64_t dim[5] = {-1, channels, -1, -1, -1};
    tgi_err e = {0};
    CHECK_OK(tgi_graph_new(&d.g, &e), e);
    d.g->opset = OPSET;
    d.x = d.at = value(&d, "x");
    CHECK_OK(tgi_graph_add_input(d.g, d.x, spatial + 2, dim, &e), e);
    return d;
}

static inline void add_conv(draft *d, int64_t to)
{
    const int64_t dim[5] = {to, d->channels, 3, 3, 3};
    const float width = sqrtf(3.0f / (float)(d->channels * (d->spatial == 2 ? 9 : 27)));
    conv_attrs *a = then(d, "Conv", floats(d, d->spatial + 2, dim, 0, width), -1);
    a->pads.n = 2 * d->spatial;
    for (int k = 0; k < a->pads.n; k++)
        a->pads.v[k] = 1;
    d->channels = to;
}

/* ---- Running ----------------------------------------------------------------------------- */

/* Nodes on arrays as large as the image. */
static inline int n_flat(const tgi_net *net)
{
    const tgi_graph *g = net->g;
    const tgi_desc *in = &net->shapes.desc[g->in[0].value];
    int flat = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        int64_t most = 0, count = 0;
        for (int k = 0; k < n->n_src; k++)
            if (n->src[k] >= 0 && tgi_desc_count(&net->shapes.desc[n->src[k]], &count))
                most = tgi_max(most, count);
        flat += tgi_node_is_flat(g, &net->shapes, n) && !tgi_node_is_known(&net->shapes, n) &&
                most >= in->dim[in->rank - 1] * in->dim[in->rank - 2];
    }
    return flat;
}

static inline float *noise(int64_t n, uint64_t *s)
{
    float *x = tgi_malloc(TGI_TAG_MISC, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = tg_rand_unit(s);
    return x;
}

/* Output 0 of the net over x; cut at random, too: the same bits. Returned; tgi_free. */
static inline float *run(const tgi_net *net, const float *x, int cuts, uint64_t *s)
{
    static const int64_t whole[3] = {0, 0, 0};
    const size_t n = net_out_count(net, 0);
    const tgi_desc *o = &net->shapes.desc[net->out[0]];
    tgi_err e = {0};
    float *y = tgi_calloc(TGI_TAG_MISC, n, sizeof *y), *again;
    net_io io = {.in = {x}, .out = {y}};
    CHECK_OK(net_run(net, whole, 1 << 20, 1, &io, -1, &e), e);
    for (int k = 0; k < cuts; k++) {
        const int64_t cut[3] = {o->rank == 5 ? tg_rand_in(s, 1, o->dim[2]) : 0,
                                tg_rand_in(s, 1, o->dim[o->rank - 2]),
                                tg_rand_in(s, 3, o->dim[o->rank - 1])};
        again = tgi_calloc(TGI_TAG_MISC, n, sizeof *again);
        io.out[0] = again;
        CHECK_OK(net_run(net, cut, tg_rand_in(s, 1, 9), 2, &io, -1, &e), e);
        CHECK(memcmp(again, y, n * sizeof *y) == 0);
        tgi_free(again);
    }
    return y;
}

static double farthest;

/* The finished graph against the operators of `plain`, at one size. *flat: n_flat. */
static inline void check_size(const tgi_graph *g, const tgi_graph *plain, const tgi_desc *in,
                              int cuts, uint64_t *s, int *flat)
{
    int64_t n = 0, want_n = 0;
    tgi_desc want = {0};
    tgi_net *net = NULL;
    tgi_err e = {0};
    double most = 0, top = 1;
    tgi_desc_count(in, &n);
    float *x = noise(n, s), *p = dense_eval(plain, in, x, &want), *y = NULL;
    CHECK_OK(tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), in, 0, &net, &e),
             e);
    tgi_desc_count(&want, &want_n);
    if (net && p) {
        *flat = n_flat(net);
        y = run(net, x, *flat ? 0 : cuts, s);
        CHECK_EQ(net_out_count(net, 0), want_n);
    }
    for (int64_t i = 0; y && i < want_n; i++) {
        top = fmax(top, fabs((double)p[i]));
        most = fmax(most, fabs((double)y[i] - (double)p[i]));
    }
    farthest = fmax(farthest, most / top);
    CHECK(most / top < 2e-5);
    tgi_net_free(&net);
    tgi_free(x);
    tgi_free(p);
    tgi_free(y);
}

static inline int finish(draft *d, unsigned flags)
{
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_output(d->g, d->at, &e), e);
    const tg_status st = flags == ~0u ? TG_OK : tgi_graph_finish(d->g, flags, &e);
    CHECK_OK(st, e);
    return st == TG_OK;
}

static inline tgi_desc size_of(int spatial, int64_t channels, int k)
{
    static const int64_t two[3][2] = {{40, 64}, {37, 41}, {96, 33}},
                         three[3][3] = {{8, 16, 24}, {5, 13, 11}, {3, 16, 17}};
    tgi_desc d = {TG_DTYPE_F32, spatial + 2, {1, channels}};
    for (int i = 0; i < spatial; i++)
        d.dim[2 + i] = spatial == 2 ? two[k][i] : three[k][i];
    return d;
}

#endif
