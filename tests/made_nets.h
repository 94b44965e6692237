/* made_nets.h - small networks of our own as ONNX files: a chain of helpers that append one
 * operator each, with weights drawn from a counter, to a graph of one input "x" and one output
 * "y". Two networks made by the same calls have the same weights. */
#ifndef TG_MADE_NETS_H
#define TG_MADE_NETS_H

#include "tests/onnx_bytes.h"
#include "tests/tg_test.h"

typedef struct made {
    bytes g;
    int spatial; /* 1 to 3 */
    int n_names;
    uint64_t seed;
} made;

/* Begin a network over [1, channels, ext...]; ext 0 is left open. */
static inline made made_begin(int spatial, int64_t channels, const int64_t *ext)
{
    made m = {.spatial = spatial, .seed = 5};
    int64_t dim[5] = {1, channels};
    for (int i = 0; i < spatial; i++)
        dim[2 + i] = ext[i];
    b_str(&m.g, 2, "made");
    b_port(&m.g, 11, "x", spatial + 2, dim);
    return m;
}

/* A fresh name; valid for a few calls. */
static inline const char *made_name(made *m)
{
    static char name[64][16];
    snprintf(name[m->n_names % 64], sizeof name[0], "v%d", m->n_names);
    return name[m->n_names++ % 64];
}

static inline const char *made_weights(made *m, int rank, const int64_t *dim)
{
    static float w[1 << 16];
    const char *name = made_name(m);
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    CHECK(n <= (int64_t)(sizeof w / sizeof *w));
    for (int64_t i = 0; i < n; i++)
        w[i] = tg_rand_unit(&m->seed) - 0.5f;
    b_init(&m->g, name, 1, rank, dim, w, (size_t)n * sizeof *w);
    return name;
}

static inline const char *made_longs(made *m, int n, const int64_t *v)
{
    const char *name = made_name(m);
    const int64_t dim[1] = {n};
    b_init(&m->g, name, 7, 1, dim, v, (size_t)n * sizeof *v);
    return name;
}

/* Append `op`; `y` NULL: a fresh name, which is returned. */
static inline const char *made_node(made *m, const char *op, const char *a, const char *b,
                                    const char *c, const char *d, bytes *attrs, const char *y)
{
    const char *in[5] = {a, b, c, d, NULL};
    const char *out = y ? y : made_name(m);
    b_node(&m->g, op, in, out, attrs);
    return out;
}

static inline void made_rep(bytes *attrs, const char *name, int n, int64_t v)
{
    const int64_t all[6] = {v, v, v, v, v, v};
    b_attr_ints(attrs, name, n, all);
}

/* Conv of kernel k (per axis), the same stride and padding on all axes. */
static inline const char *made_conv(made *m, const char *x, int64_t from, int64_t to,
                                    const int64_t *k, int64_t stride, int64_t pad,
                                    const char *y)
{
    bytes a = {0};
    int64_t dim[5] = {to, from};
    for (int i = 0; i < m->spatial; i++)
        dim[2 + i] = k[i];
    made_rep(&a, "strides", m->spatial, stride);
    made_rep(&a, "pads", 2 * m->spatial, pad);
    return made_node(m, "Conv", x, made_weights(m, m->spatial + 2, dim), NULL, NULL, &a, y);
}

/* Transposed convolution of kernel and stride k: each pixel becomes k x k. */
static inline const char *made_up(made *m, const char *x, int64_t from, int64_t to, int64_t k)
{
    bytes a = {0};
    const int64_t dim[5] = {from, to, k, k, k};
    made_rep(&a, "strides", m->spatial, k);
    return made_node(m, "ConvTranspose", x, made_weights(m, m->spatial + 2, dim), NULL, NULL,
                     &a, NULL);
}

static inline const char *made_pool(made *m, const char *x, int64_t k)
{
    bytes a = {0};
    made_rep(&a, "kernel_shape", m->spatial, k);
    made_rep(&a, "strides", m->spatial, k);
    return made_node(m, "MaxPool", x, NULL, NULL, NULL, &a, NULL);
}

/* Rows [y0,y1) and columns [x0,x1), as Slice counts them. */
static inline const char *made_slice(made *m, const char *x, int64_t y0, int64_t y1, int64_t x0,
                                     int64_t x1)
{
    const int64_t from[2] = {y0, x0}, to[2] = {y1, x1}, axes[2] = {2, 3};
    const char *f = made_longs(m, 2, from), *t = made_longs(m, 2, to);
    return made_node(m, "Slice", x, f, t, made_longs(m, 2, axes), NULL, NULL);
}

static inline const char *made_concat(made *m, int64_t along, const char *a, const char *b)
{
    bytes at = {0}, axis = {0};
    b_str(&axis, 1, "axis");
    b_int(&axis, 3, along);
    b_int(&axis, 20, 2);
    b_msg(&at, 5, &axis);
    return made_node(m, "Concat", a, b, NULL, NULL, &at, NULL);
}

/* Write the file; the graph is released. */
static inline void made_end_opset(made *m, const char *path, int opset)
{
    const int64_t open[5] = {0};
    b_port(&m->g, 12, "y", m->spatial + 2, open);
    bytes model = b_model(&m->g, opset);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(model.p, 1, model.n, f) == model.n);
    if (f)
        fclose(f);
    b_free(&model);
}

static inline void made_end(made *m, const char *path)
{
    made_end_opset(m, path, 13);
}

#endif
