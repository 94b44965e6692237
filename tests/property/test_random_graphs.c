/* Tiled equals whole, and tuned equals reference, for small networks nobody drew: random chains
 * and skips of convolutions, pools, resizes, shuffles, concats, pointwise and whole-extent
 * operators in one to three dimensions, random channel counts, cut at random. Those of one are
 * also held against their operators on arrays of three axes, before anything was rewritten.
 *
 * A value's spatial scale is tracked as a power of two relative to the input, so that branches
 * can be joined only where their extents agree. */
#include "kernels/ops/geometry.h"
#include "kernels/ops/op_attrs.h"
#include "tests/dense_eval.h"
#include "tests/net_run.h"

#define MAX_VALUES 64

typedef struct draft {
    tgi_graph *g;
    int spatial;
    int value[MAX_VALUES], log2[MAX_VALUES]; /* scale = 2^log2 */
    int64_t c[MAX_VALUES];
    int n, n_names;
    uint64_t seed;

} draft;

static int new_value(draft *d)
{
    char name[16];
    int v = 0;
    tgi_err e = {0};
    snprintf(name, sizeof name, "v%d", d->n_names++);
    CHECK_OK(tgi_graph_add_value(d->g, name, &v, &e), e);
    return v;
}

static int constant(draft *d, const tgi_desc *desc, float scale, float shift)
{
    int64_t n = 0;
    int v = 0;
    char name[16];
    tgi_err e = {0};
    tgi_desc_count(desc, &n);
    float *w = malloc((size_t)n * sizeof *w);
    for (int64_t i = 0; i < n; i++)
        w[i] = shift + scale * tg_rand_unit(&d->seed);
    snprintf(name, sizeof name, "k%d", d->n_names++);
    CHECK_OK(tgi_graph_add_const(d->g, name, desc, w, 0, &v, &e), e);
    free(w);
    return v;
}

static void *add(draft *d, const char *op, int n_src, const int *src, int *out)
{
    tgi_node *node = NULL;
    tgi_err e = {0};
    *out = new_value(d);
    CHECK_OK(tgi_graph_add_node(d->g, op, op, n_src, src, 1, out, &node, &e), e);
    return node ? node->attrs : NULL;
}

static void keep(draft *d, int value, int64_t c, int log2)
{
    d->value[d->n] = value;
    d->c[d->n] = c;
    d->log2[d->n++] = log2;
}

static void fill(tgi_ints *list, int n, int64_t v)
{
    list->n = n;
    for (int i = 0; i < n; i++)
        list->v[i] = v;
}

static int64_t random_channels(draft *d)
{
    static const int64_t some[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32, 48};
    return some[tg_rand_in(&d->seed, 0, 11)];
}

/* ---- Operators --------------------------------------------------------------------------- */

/* Margins of mirrored or repeated pixels, for a convolution that then has none. A small extent
 * may have no second pixel to mirror. */
static int add_margin(draft *d, int i, int64_t margin)
{
    const int n = d->spatial + 2;
    const tgi_desc list = {TG_DTYPE_I64, 1, {2 * n}};
    int64_t pads[10];
    char name[16];
    tgi_err e = {0};
    int src[2] = {d->value[i], -1}, out;
    for (int k = 0; k < 2 * n; k++)
        pads[k] = k % n < 2 ? 0 : margin;
    snprintf(name, sizeof name, "p%d", d->n_names++);
    CHECK_OK(tgi_graph_add_const(d->g, name, &list, pads, 0, &src[1], &e), e);
    pad_attrs *a = add(d, "Pad", 2, src, &out);
    a->mode = d->log2[i] >= 0 ? (int)tg_rand_in(&d->seed, 0, 2) : TGI_PADDING_EDGE;
    return out;
}

static void add_conv(draft *d, int i)
{
    const int64_t k = 1 + 2 * tg_rand_in(&d->seed, 0, d->spatial == 3 ? 1 : 2);
    const int64_t stride = d->log2[i] > -2 && tg_rand_in(&d->seed, 0, 4) == 0 ? 2 : 1;
    const int64_t dil = k == 3 && tg_rand_in(&d->seed, 0, 5) == 0 ? 2 : 1;
    const int depthwise = d->c[i] > 1 && tg_rand_in(&d->seed, 0, 5) == 0;
    const int64_t half = d->c[i] % 2 == 0 && tg_rand_in(&d->seed, 0, 5) == 0 ? 2 : 1;
    const int64_t groups = depthwise ? d->c[i] : half;
    const int64_t cout = depthwise ? d->c[i] : groups * random_channels(d),
                  cin = d->c[i] / groups;
    tgi_desc w = {TG_DTYPE_F32, d->spatial + 2, {cout, cin, k, k, k}},
             b = {TG_DTYPE_F32, 1, {cout}};
    const double taps = (double)cin * pow((double)k, d->spatial);
    const int64_t margin = (k - 1) * dil / 2;
    const int padded = margin && tg_rand_in(&d->seed, 0, 3) == 0;
    const int from = padded ? add_margin(d, i, margin) : d->value[i];
    const int src[3] = {from, constant(d, &w, (float)sqrt(3.0 / taps), 0.0f),
                        constant(d, &b, 0.1f, 0.0f)};
    int out;
    conv_attrs *a = add(d, "Conv", tg_rand_in(&d->seed, 0, 3) ? 3 : 2, src, &out);
    fill(&a->kernel_shape, d->spatial, k);
    fill(&a->strides, d->spatial, stride);
    fill(&a->dilations, d->spatial, dil);
    fill(&a->pads, 2 * d->spatial, padded ? 0 : margin);
    a->group = groups;
    keep(d, out, cout, d->log2[i] - (stride == 2));
}

static void add_pool(draft *d, int i)
{
    int out;
    const int average = tg_rand_in(&d->seed, 0, 2) == 0;
    if (d->log2[i] <= -2)
        return;
    pool_attrs *a = add(d, average ? "AveragePool" : "MaxPool", 1, &d->value[i], &out);
    const int64_t k = 2 + tg_rand_in(&d->seed, 0, 1);
    fill(&a->kernel_shape, d->spatial, k);
    fill(&a->strides, d->spatial, 2);
    fill(&a->pads, 2 * d->spatial, k == 3);
    keep(d, out, d->c[i], d->log2[i] - 1);
}

static void add_resize(draft *d, int i)
{
    int out;
    if (d->log2[i] >= 1)
        return;
    tgi_desc s = {TG_DTYPE_F32, 1, {d->spatial + 2}};
    const float scales[5] = {1, 1, 2, 2, 2};
    int k = 0;
    char name[16];
    tgi_err e = {0};
    snprintf(name, sizeof name, "s%d", d->n_names++);
    CHECK_OK(tgi_graph_add_const(d->g, name, &s, scales, 0, &k, &e), e);
    const int src[3] = {d->value[i], -1, k};
    resize_attrs *a = add(d, "Resize", 3, src, &out);
    a->mode = tg_rand_in(&d->seed, 0, 1) ? TGI_RESIZE_LINEAR : TGI_RESIZE_NEAREST;
    a->coord = tg_rand_in(&d->seed, 0, 1) ? TGI_COORD_HALF_PIXEL : TGI_COORD_ASYMMETRIC;
    a->nearest = TGI_NEAREST_FLOOR;
    keep(d, out, d->c[i], d->log2[i] + 1);
}

static void add_transposed(draft *d, int i)
{
    int out;
    if (d->log2[i] >= 1 || d->spatial == 3)
        return;
    const int64_t cout = random_channels(d), k = tg_rand_in(&d->seed, 0, 1) ? 2 : 4;
    const tgi_desc w = {TG_DTYPE_F32, d->spatial + 2, {d->c[i], cout, k, k}};
    const int src[2] = {d->value[i],
                        constant(d, &w, (float)sqrt(3.0 / (double)d->c[i]) / 2, 0)};
    conv_attrs *a = add(d, "ConvTranspose", 2, src, &out);
    fill(&a->kernel_shape, d->spatial, k);
    fill(&a->strides, d->spatial, 2);
    fill(&a->pads, 2 * d->spatial, k == 4);
    keep(d, out, cout, d->log2[i] + 1);
}

static void add_shuffle(draft *d, int i)
{
    int out;
    if (d->spatial != 2 || d->c[i] % 4 || d->log2[i] >= 1)
        return;
    d2s_attrs *a = add(d, "DepthToSpace", 1, &d->value[i], &out);
    a->blocksize = 2;
    a->mode = (int)tg_rand_in(&d->seed, 0, 1);
    keep(d, out, d->c[i] / 4, d->log2[i] + 1);
}

static void add_pointwise(draft *d, int i)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Abs", "LeakyRelu", "Neg"};
    int out;
    if (tg_rand_in(&d->seed, 0, 3) == 0) {
        const tgi_desc s = {TG_DTYPE_F32, d->spatial + 1, {d->c[i], 1, 1, 1}};
        const int src[2] = {d->value[i], constant(d, &s, 0.5f, 0.0f)};
        add(d, "PRelu", 2, src, &out);
    } else {
        add(d, ops[tg_rand_in(&d->seed, 0, 5)], 1, &d->value[i], &out);
    }
    keep(d, out, d->c[i], d->log2[i]);
}

static void add_softmax(draft *d, int i)
{
    int out;
    axis_attrs *a = add(d, "Softmax", 1, &d->value[i], &out);
    a->axis = 1;
    keep(d, out, d->c[i], d->log2[i]);
}

/* Another value of the same scale (and, for arithmetic, the same channels); -1: none. */
static int partner(draft *d, int i, int same_channels)
{
    for (int tries = 0; tries < 12; tries++) {
        const int j = (int)tg_rand_in(&d->seed, 0, d->n - 1);
        if (j != i && d->log2[j] == d->log2[i] && (!same_channels || d->c[j] == d->c[i]))
            return j;
    }
    return -1;
}

static void add_join(draft *d, int i)
{
    static const char *const ops[] = {"Add", "Sub", "Mul"};
    int out;
    const int j = partner(d, i, 1);
    if (j >= 0) {
        const int src[2] = {d->value[i], d->value[j]};
        add(d, ops[tg_rand_in(&d->seed, 0, 2)], 2, src, &out);
        keep(d, out, d->c[i], d->log2[i]);
    }
}

static void add_concat(draft *d, int i)
{
    int out;
    const int j = partner(d, i, 0);
    if (j < 0 || d->c[i] + d->c[j] > 96)
        return;
    const int src[2] = {d->value[i], d->value[j]};
    axis_attrs *a = add(d, "Concat", 2, src, &out);
    a->axis = 1;
    keep(d, out, d->c[i] + d->c[j], d->log2[i]);
}

/* Two readers of one value that meet again, a plain operator on one side or on both. */
static void add_fork(draft *d, int i)
{
    static const char *const sides[] = {"Sigmoid", "HardSigmoid", "Tanh", "LeakyRelu"};
    static const char *const joins[] = {"Mul", "Add", "Sub"};
    int a, b = d->value[i], out;
    add(d, sides[tg_rand_in(&d->seed, 0, 3)], 1, &d->value[i], &a);
    if (tg_rand_in(&d->seed, 0, 1)) {
        const int j = partner(d, i, 1), src[2] = {d->value[i], d->value[j < 0 ? i : j]};
        add(d, "Sub", 2, src, &b);
    }
    const int swap = (int)tg_rand_in(&d->seed, 0, 1), src[2] = {swap ? b : a, swap ? a : b};
    add(d, joins[tg_rand_in(&d->seed, 0, 2)], 2, src, &out);
    keep(d, out, d->c[i], d->log2[i]);
}

/* Operators that read the whole extent: a norm, or a gate from the mean of each channel. */
static void add_whole(draft *d, int i)
{
    int out, pooled, gate;
    const int64_t kind = tg_rand_in(&d->seed, 0, 3);
    if (kind < 2) {
        const tgi_desc k = {TG_DTYPE_F32, 1, {d->c[i]}};
        const int src[3] = {d->value[i], constant(d, &k, 0.5f, 1.0f),
                            constant(d, &k, 0.5f, 0.0f)};
        add(d, "InstanceNormalization", 3, src, &out);
    } else {
        add(d, kind == 2 ? "GlobalMaxPool" : "GlobalAveragePool", 1, &d->value[i], &pooled);
        add(d, "Sigmoid", 1, &pooled, &gate);
        const int src[2] = {d->value[i], gate};
        add(d, "Mul", 2, src, &out);
    }
    keep(d, out, d->c[i], d->log2[i]);
}

/* Values that are no floats, and reductions over channels: x less its channels' mean where it
 * is greater, Erf of that elsewhere; or x times the place of the input's largest channel. Both
 * are continuous in what kernels round: a choice that hangs on a last bit would say nothing. */
static void add_choice(draft *d, int i)
{
    const tgi_desc one = {TG_DTYPE_I64, 1, {1}};
    const int64_t axis = 1;
    int out, mean, mask, other, less, k = 0;
    char name[16];
    tgi_err e = {0};
    if (d->log2[i] == 0 && tg_rand_in(&d->seed, 0, 1)) {
        axis_attrs *a = add(d, "ArgMax", 1, &d->value[0], &mask); /* axis comes first */
        a->axis = 1;
        int64_t *to = add(d, "Cast", 1, &mask, &other);
        *to = 1; /* float32 */
        const int src[2] = {d->value[i], other};
        add(d, "Mul", 2, src, &out);
    } else {
        snprintf(name, sizeof name, "a%d", d->n_names++);
        CHECK_OK(tgi_graph_add_const(d->g, name, &one, &axis, 0, &k, &e), e);
        const int reduce[2] = {d->value[i], k};
        add(d, "ReduceMean", 2, reduce, &mean);
        const int pair[2] = {d->value[i], mean};
        add(d, "Greater", 2, pair, &mask);
        add(d, "Sub", 2, pair, &less);
        add(d, "Erf", 1, &less, &other);
        const int src[3] = {mask, less, other};
        add(d, "Where", 3, src, &out);
    }
    keep(d, out, d->c[i], d->log2[i]);
}

/* *spatial 0: two or three dimensions, as it comes. */
static tgi_graph *draw_graph(uint64_t seed, int *spatial)
{
    void (*const steps[])(draft *, int) = {
        add_conv,    add_conv,      add_conv,      add_pool,  add_resize, add_transposed,
        add_shuffle, add_pointwise, add_pointwise, add_join,  add_concat, add_concat,
        add_whole,   add_fork,      add_softmax,   add_choice};
    draft d = {.seed = seed};
    tgi_err e = {0};
    if (*spatial == 0)
        *spatial = tg_rand_in(&d.seed, 0, 3) ? 2 : 3;
    d.spatial = *spatial;
    CHECK_OK(tgi_graph_new(&d.g, &e), e);
    const int64_t c = tg_rand_in(&d.seed, 1, 5);
    const int64_t dims[5] = {-1, c, -1, -1, -1};
    const int in = new_value(&d);
    CHECK_OK(tgi_graph_add_input(d.g, in, d.spatial + 2, dims, &e), e);
    keep(&d, in, c, 0);
    add_conv(&d, 0); /* so that the input is always used */
    const int64_t n_steps = tg_rand_in(&d.seed, 2, 12);
    for (int64_t s = 0; s < n_steps && d.n < MAX_VALUES - 2; s++) {
        const int64_t back = tg_rand_in(&d.seed, 0, 2);
        const int i =
            (int)tgi_max(1, d.n - 1 - (back == 2 ? tg_rand_in(&d.seed, 0, d.n - 1) : 0));
        steps[tg_rand_in(&d.seed, 0, 15)](&d, i);
    }
    CHECK_OK(tgi_graph_add_output(d.g, d.value[d.n - 1], &e), e);
    d.g->opset = 17;
    return d.g;
}

static void finish(tgi_graph *g)
{
    tgi_err e = {0};
    const tg_status st = tgi_graph_finish(g, 0, &e);
    CHECK_EQ(st, TG_OK);
    if (st != TG_OK)
        fprintf(stderr, "  %s\n", e.text);
}

/* ---- The property ------------------------------------------------------------------------ */

static int64_t cut_of(uint64_t *s, int64_t dim)
{
    static const int64_t primes[] = {1, 2, 3, 5, 7, 11, 13, 17, 19, 23};
    return tg_rand_in(s, 0, 2) ? primes[tg_rand_in(s, 0, 9)] : tg_rand_in(s, 1, dim + 3);
}

static void check_cuts(const tgi_net *net, net_io *io, const float *whole, size_t n,
                       uint64_t *s, tgi_err *err)
{
    const tgi_desc *o = &net->shapes.desc[net->out[0]];
    for (int k = 0; k < 3; k++) {
        int64_t cut[3] = {0, cut_of(s, o->dim[o->rank - 2]), cut_of(s, o->dim[o->rank - 1])};
        if (o->rank == 5)
            cut[0] = cut_of(s, o->dim[2]);
        const int64_t band = tg_rand_in(s, 1, 9);
        memset(io->out[0], 0, n * sizeof(float));
        CHECK_OK(net_run(net, cut, band, k + 1, io, -1, err), *err);
        const int equal = memcmp(io->out[0], whole, n * sizeof(float)) == 0;
        CHECK(equal);
        if (!equal)
            fprintf(stderr, "  cut %lld,%lld,%lld band %lld threads %d\n", (long long)cut[0],
                    (long long)cut[1], (long long)cut[2], (long long)band, k + 1);
    }
}

/* A part of the output, cut at random, is that part of the whole, and nothing else is handed
 * out: what same-size jobs ask for. */
static void check_part(const tgi_net *net, net_io *io, const float *whole, size_t n,
                       uint64_t *s, tgi_err *err)
{
    const tgi_desc *d = &net->shapes.desc[net->out[0]];
    tgi_fit fit[3] = {{.out = 1}, {.out = 1}, {.out = 1}};
    int64_t cut[3] = {0, 0, 0};
    const int first = 5 - d->rank;
    for (int k = first; k < 3; k++) {
        const int64_t dim = d->dim[2 + k - first];
        fit[k].crop = tg_rand_in(s, 0, dim - 1);
        fit[k].out = tg_rand_in(s, 1, dim - fit[k].crop);
        cut[k] = tg_rand_in(s, 1, fit[k].out);
    }
    for (size_t i = 0; i < n; i++)
        io->out[0][i] = NAN;
    CHECK_OK(net_run_part(net, fit, cut, tg_rand_in(s, 1, 20), 1, io, -1, err), *err);
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t at = (int64_t)i;
        int inside = 1;
        for (int k = 2; k >= first; k--) {
            const int64_t dim = d->dim[2 + k - first], x = at % dim - fit[k].crop;
            inside &= x >= 0 && x < fit[k].out;
            at /= dim;
        }
        bad += inside ? memcmp(&io->out[0][i], &whole[i], sizeof *whole) != 0
                      : !isnan(io->out[0][i]);
    }
    CHECK_EQ(bad, 0);
}

/* bfloat16 errs by 2e-3 to 3e-3 a layer; over 400 graphs at most 6e-3 was seen. */
#define BF16_L2 2e-2
static double farthest;

/* Rounding: each layer is normalised, so a relative L2 of 1e-5 is some tens of float32 epsilons
 * for chains of at most 13 operators; a wrong pixel gives 1e-2 and more. */
static void check_reference(const tgi_graph *g, const tgi_desc *in, net_io *io,
                            const float *whole, size_t n, tgi_err *err)
{
    tgi_net *ref = NULL;
    const int64_t uncut[3] = {0, 0, 0};
    double d2 = 0, s2 = 0;
    CHECK_OK(tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), in,
                         TGI_NET_REFERENCE, &ref, err),
             *err);
    if (!ref)
        return;
    CHECK_OK(net_run(ref, uncut, 7, 1, io, -1, err), *err);
    for (size_t i = 0; i < n; i++) {
        const double d = (double)io->out[0][i] - (double)whole[i];
        d2 += d * d;
        s2 += (double)whole[i] * (double)whole[i];
    }
    const double most = net_in_bf16() ? BF16_L2 : 1e-5;
    CHECK(d2 <= most * most * s2 + 1e-12);
    farthest = s2 > 0 ? fmax(farthest, sqrt(d2 / s2)) : farthest;
    tgi_net_free(&ref);
}

/* Lines: the same graph with its three axes, node by node. Tolerances as above. */
static void check_plain(uint64_t seed, const tgi_desc *in, const float *x, const tgi_desc *got,
                        const float *whole, size_t n)
{
    int spatial = 1;
    tgi_graph *g = draw_graph(seed, &spatial);
    const tgi_desc line = {TG_DTYPE_F32, 3, {1, in->dim[1], in->dim[3]}};
    tgi_desc d = {0};
    float *plain = dense_eval(g, &line, x, &d);
    double d2 = 0, s2 = 0;
    CHECK_EQ(d.rank, 3);
    CHECK(d.dim[1] == got->dim[1] && got->dim[2] == 1 && d.dim[2] == got->dim[3]);
    for (size_t i = 0; plain && i < n; i++) {
        const double e = (double)plain[i] - (double)whole[i];
        d2 += e * e;
        s2 += (double)plain[i] * (double)plain[i];
    }
    CHECK(d2 <= 1e-10 * s2 + 1e-12);
    farthest = s2 > 0 ? fmax(farthest, sqrt(d2 / s2)) : farthest;
    tgi_free(plain);
    tgi_graph_free(&g);
}

static void check_net(const tgi_graph *g, const tgi_net *net, const tgi_desc *in, uint64_t seed,
                      int is_line, uint64_t *s)
{
    tgi_err err = {0};
    int64_t n_in = 0;
    const int64_t uncut[3] = {0, 0, 0};
    tgi_desc_count(in, &n_in);
    const size_t n = net_out_count(net, 0);
    float *x = malloc((size_t)n_in * sizeof *x), *whole = malloc(n * sizeof *x);
    float *other = malloc(n * sizeof *x);
    for (int64_t i = 0; i < n_in; i++)
        x[i] = tg_rand_unit(s);
    net_io io = {.in = {x}, .out = {whole}};
    CHECK_OK(net_run(net, uncut, 1 << 20, 1, &io, -1, &err), err);
    io.out[0] = other;
    check_cuts(net, &io, whole, n, s, &err);
    check_part(net, &io, whole, n, s, &err);
    check_reference(g, in, &io, whole, n, &err);
    if (is_line && !net_in_bf16())
        check_plain(seed, in, x, &net->shapes.desc[net->out[0]], whole, n);
    free(x);
    free(whole);
    free(other);
}

static int check_graph(uint64_t seed, int is_line)
{
    int spatial = is_line;
    tgi_err err = {0};
    tgi_net *net = NULL;
    tgi_graph *g = draw_graph(seed, &spatial);
    uint64_t s = seed ^ 0x9e3779b97f4a7c15ull;
    finish(g);
    tgi_desc in = {TG_DTYPE_F32, g->spatial + 2, {1, g->in[0].file_dim[1], 1}};
    for (int i = 0; i < spatial; i++) {
        const int64_t least =
            is_line ? tg_rand_in(&s, 8, 400) : tg_rand_in(&s, 8, spatial == 3 ? 14 : 40);
        in.dim[in.rank - spatial + i] = tgi_graph_extent(g, 3 - spatial + i, least);
    }
    CHECK_OK(tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), &in,
                         net_flags(seed), &net, &err),
             err);
    if (net)
        check_net(g, net, &in, seed, is_line, &s);
    tgi_net_free(&net);
    tgi_graph_free(&g);
    return spatial;
}

/* ---- Several inputs ---------------------------------------------------------------------- */

/* Two inputs that meet, each behind convolutions of its own: one reads farther ahead than the other, so
 * which rows of them a band takes differs. What a band takes at most is the same wherever a cell begins. */
static void check_pair(uint64_t seed)
{
    draft d = {.seed = seed, .spatial = 2};
    tgi_err e = {0};
    tgi_net *net = NULL;
    tgi_stages *stages = NULL;
    const int64_t dims[4] = {-1, 4, -1, -1};
    CHECK_OK(tgi_graph_new(&d.g, &e), e);
    int ends[2];
    for (int i = 0; i < 2; i++) {
        const int in = new_value(&d);
        CHECK_OK(tgi_graph_add_input(d.g, in, 4, dims, &e), e);
        keep(&d, in, 4, 0);
        for (int64_t n = tg_rand_in(&d.seed, 0, 4); n > 0; n--) {
            d.log2[d.n - 1] = -2; /* no strides: they meet at one size */
            add_conv(&d, d.n - 1);
        }
        ends[i] = d.n - 1;
    }
    const int src[2] = {d.value[ends[0]], d.value[ends[1]]};
    int out;
    axis_attrs *a = add(&d, "Concat", 2, src, &out);
    a->axis = 1;
    CHECK_OK(tgi_graph_add_output(d.g, out, &e), e);
    d.g->opset = 17;
    finish(d.g);
    const tgi_desc one = {TG_DTYPE_F32, 4, {1, 4, 96, 20}}, in[2] = {one, one};
    CHECK_OK(tgi_net_new(d.g, tgi_backend_for(TGI_ISA_PORTABLE), in, 0, &net, &e), e);
    CHECK_OK(tgi_stages_new(net, &stages, &e), e);
    for (int64_t band = 1; stages && band <= 64; band = 2 * band + band % 3)
        check_flow_counts(&stages->one, (tgi_range){0, 96}, band);
    tgi_stages_free(&stages);
    tgi_net_free(&net);
    tgi_graph_free(&d.g);
}

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261121;
    const int count = argc > 2 ? atoi(argv[2]) : 120;
    int volumes = 0;
    if (net_must_skip())
        TEST_SKIP("no AVX512_BF16");
    printf("seed %llu, %d graphs; replay one with: test_random_graphs SEED 1\n",
           (unsigned long long)seed, count);
    for (int i = 0; i < count; i++) {
        const int before = tg_failures;
        check_pair(seed + (uint64_t)i);
        volumes += check_graph(seed + (uint64_t)i * 7919, 0) == 3;
        check_graph(seed + (uint64_t)i * 7919, 1);
        if (tg_failures > before)
            printf("FAIL graph of seed %llu\n",
                   (unsigned long long)(seed + (uint64_t)i * 7919));
    }
    printf("farthest from the reference: relative L2 %.2g\n", farthest);
    CHECK(volumes > count / 10);
    return TEST_END();
}
