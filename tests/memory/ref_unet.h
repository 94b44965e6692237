/* ref_unet.h - the reference U-Net of the measurements: one channel in and out, five levels of
 * 32 to 512 channels, two 3x3 convolutions with ReLU each, 2x2 max pooling down, 2x2 transposed
 * convolution and concatenation up; 7.76 million parameters, 367 GFLOP per megapixel. Weights
 * are random, scaled so that values keep their size through the network. */
#ifndef TG_REF_UNET_H
#define TG_REF_UNET_H

#include "engine/graph/graph.h"
#include "kernels/ops/op_attrs.h"
#include "tests/tg_test.h"

#define REF_LEVELS 5

typedef struct ref_draft {
    tgi_graph *g;
    uint64_t seed;
    int n_names;
} ref_draft;

static inline int ref_value(ref_draft *d)
{
    char name[16];
    int v = 0;
    tgi_err e = {0};
    snprintf(name, sizeof name, "v%d", d->n_names++);
    CHECK_OK(tgi_graph_add_value(d->g, name, &v, &e), e);
    return v;
}

static inline int ref_const(ref_draft *d, const tgi_desc *desc, double scale)
{
    int64_t n = 0;
    int v = 0;
    char name[16];
    tgi_err e = {0};
    tgi_desc_count(desc, &n);
    float *w = malloc((size_t)n * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        w[i] = (float)scale * tg_rand_unit(&d->seed);
    snprintf(name, sizeof name, "k%d", d->n_names++);
    CHECK_OK(tgi_graph_add_const(d->g, name, desc, w, 0, &v, &e), e);
    free(w);
    return v;
}

static inline void *ref_node(ref_draft *d, const char *op, int n_src, const int *src, int *out)
{
    tgi_node *node = NULL;
    tgi_err e = {0};
    *out = ref_value(d);
    CHECK_OK(tgi_graph_add_node(d->g, op, op, n_src, src, 1, out, &node, &e), e);
    return node->attrs;
}

static inline void ref_pair(tgi_ints *list, int n, int64_t v)
{
    list->n = n;
    for (int i = 0; i < n; i++)
        list->v[i] = v;
}

static inline int ref_conv(ref_draft *d, int x, int64_t ci, int64_t co, int64_t k, int relu)
{
    const tgi_desc w = {TG_DTYPE_F32, 4, {co, ci, k, k}}, b = {TG_DTYPE_F32, 1, {co}};
    const int src[3] = {x, ref_const(d, &w, sqrt(6.0 / (double)(ci * k * k))),
                        ref_const(d, &b, 0.05)};
    int out, active;
    conv_attrs *a = ref_node(d, "Conv", 3, src, &out);
    ref_pair(&a->kernel_shape, 2, k);
    ref_pair(&a->strides, 2, 1);
    ref_pair(&a->dilations, 2, 1);
    ref_pair(&a->pads, 4, k / 2);
    a->group = 1;
    if (!relu)
        return out;
    ref_node(d, "Relu", 1, &out, &active);
    return active;
}

static inline int ref_pool(ref_draft *d, int x)
{
    int out;
    pool_attrs *a = ref_node(d, "MaxPool", 1, &x, &out);
    ref_pair(&a->kernel_shape, 2, 2);
    ref_pair(&a->strides, 2, 2);
    return out;
}

static inline int ref_up(ref_draft *d, int x, int skip, int64_t ci, int64_t co)
{
    const tgi_desc w = {TG_DTYPE_F32, 4, {ci, co, 2, 2}}, b = {TG_DTYPE_F32, 1, {co}};
    const int src[3] = {x, ref_const(d, &w, sqrt(3.0 / (double)ci)), ref_const(d, &b, 0.05)};
    int up, out;
    conv_attrs *a = ref_node(d, "ConvTranspose", 3, src, &up);
    ref_pair(&a->kernel_shape, 2, 2);
    ref_pair(&a->strides, 2, 2);
    ref_pair(&a->dilations, 2, 1);
    ref_pair(&a->pads, 4, 0);
    a->group = 1;
    const int both[2] = {up, skip};
    axis_attrs *cat = ref_node(d, "Concat", 2, both, &out);
    cat->axis = 1;
    return out;
}

/* The finished graph; release with tgi_graph_free. */
static inline tgi_graph *ref_unet(uint64_t seed)
{
    ref_draft d = {.seed = seed};
    tgi_err e = {0};
    int skip[REF_LEVELS];
    CHECK_OK(tgi_graph_new(&d.g, &e), e);
    int x = ref_value(&d);
    const int64_t file[4] = {1, 1, -1, -1};
    CHECK_OK(tgi_graph_add_input(d.g, x, 4, file, &e), e);
    int64_t c = 1;
    for (int level = 0; level < REF_LEVELS; level++) {
        const int64_t next = 32 << level;
        if (level > 0)
            x = ref_pool(&d, x);
        x = ref_conv(&d, x, c, next, 3, 1);
        skip[level] = x = ref_conv(&d, x, next, next, 3, 1);
        c = next;
    }
    for (int level = REF_LEVELS - 2; level >= 0; level--) {
        const int64_t next = 32 << level;
        x = ref_up(&d, x, skip[level], 2 * next, next);
        x = ref_conv(&d, x, 2 * next, next, 3, 1);
        x = ref_conv(&d, x, next, next, 3, 1);
    }
    x = ref_conv(&d, x, 32, 1, 1, 0);
    CHECK_OK(tgi_graph_add_output(d.g, x, &e), e);
    CHECK_OK(tgi_graph_finish(d.g, 0, &e), e);
    return d.g;
}

#endif
