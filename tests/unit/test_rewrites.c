/* test_rewrites.c - rewrites keep the numbers: graphs and real models before and after
 * canonical forms and fusion, on the reference kernels. What the graphs become: test_graph.c.
 */
#include "engine/graph/graph.h"
#include "io/onnx.h"
#include "tests/net_run.h"
#include "tests/onnx_bytes.h"

#define MODELS TG_SHARED_DATA "/data/models/"

static tgi_graph *load(const char *name)
{
    char path[1024];
    tgi_graph *g = NULL;
    tgi_err e = {0};
    snprintf(path, sizeof path, MODELS "%s/model.onnx", name);
    CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
    return g;
}

/* Run a finished graph on the reference kernels over [1,C,h,w] of noise (or `input`). */
static float *run_reference(const tgi_graph *g, int64_t h, int64_t w, const float *input,
                            size_t *count)
{
    const int64_t ext[3] = {1, h, w}, whole[3] = {0, 0, 0};
    tgi_desc in[TGI_MAX_PORTS];
    tgi_net *net = NULL;
    tgi_err e = {0};
    net_io io = {0};
    uint64_t seed = 5;
    int64_t n = 0;
    *count = 0;
    tgi_graph_input_descs(g, ext, in);
    tgi_desc_count(&in[0], &n);
    CHECK_OK(tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), in,
                         TGI_NET_REFERENCE, &net, &e),
             e);
    if (!net)
        return NULL;
    *count = net_out_count(net, 0);
    float *x = tgi_malloc(TGI_TAG_MISC, (size_t)n * sizeof *x);
    io.out[0] = tgi_malloc(TGI_TAG_MISC, *count * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = input ? input[i] : tg_rand_unit(&seed);
    io.in[0] = x;
    CHECK_OK(net_run(net, whole, 1 << 20, 1, &io, -1, &e), e);
    tgi_net_free(&net);
    tgi_free(x);
    return io.out[0];
}

/* Largest difference and largest magnitude. */
static void compare(const float *a, const float *b, size_t n, double *diff, double *top)
{
    *diff = *top = 0;
    for (size_t i = 0; i < n; i++) {
        *diff = fmax(*diff, fabs((double)a[i] - (double)b[i]));
        *top = fmax(*top, fabs((double)b[i]));
    }
}

/* The same model twice, plain and rewritten, on the same noise. */
static void same_numbers(const char *model, int64_t h, int64_t w, double relative)
{
    tgi_graph *a = load(model), *b = load(model);
    tgi_err e = {0};
    size_t n = 0, m = 0;
    double diff, top;
    CHECK_OK(tgi_graph_finish(a, TGI_GRAPH_NO_FUSE | TGI_GRAPH_NO_COMMUTE, &e), e);
    CHECK_OK(tgi_graph_finish(b, 0, &e), e);
    CHECK(a->n_nodes > b->n_nodes);
    float *p = run_reference(a, h, w, NULL, &n), *q = run_reference(b, h, w, NULL, &m);
    CHECK_EQ(n, m);
    compare(p, q, n, &diff, &top);
    CHECK(top > 0);
    if (!(diff <= relative * top))
        fprintf(stderr, "%s: differs by %.3g of %.3g\n", model, diff, top);
    CHECK(diff <= relative * top);
    tgi_free(p);
    tgi_free(q);
    tgi_graph_free(&a);
    tgi_graph_free(&b);
}

static void fusing_and_exchanging_change_roundings_at_most(void)
{
    /* The fused Sigmoid is the kernels' polynomial, the node the C library's: one rounding. */
    same_numbers("sci_low_light", 13, 21, 1.2e-7);
    same_numbers("span_x2_nomosuni", 5, 7, 2e-6); /* eighteen of them, through the layers */
    same_numbers("fsrcnn_x2", 9, 7, 0); /* a scalar sum before the shuffle: the same bits */
    /* The convolution before the bilinear Resize sums the same products in another order: three
     * of them, a few float32 roundings each. */
    same_numbers("unet2d_nuclei_broad", 16, 24, 1e-5);
}

/* 1xHxWx1 float32 .npy: data after the header. */
static float *read_npy(const char *path, size_t n)
{
    unsigned char head[10];
    FILE *f = fopen(path, "rb");
    float *p = tgi_malloc(TGI_TAG_MISC, n * sizeof *p);
    CHECK(f && p && fread(head, 1, 10, f) == 10);
    CHECK(f && fseek(f, 10 + head[8] + 256 * head[9], SEEK_SET) == 0);
    CHECK(f && fread(p, sizeof *p, n, f) == n);
    if (f)
        fclose(f);
    return p;
}

static void written_out_prelus_give_the_published_result(void)
{
    if (!tg_has(MODELS "fsrcnn_x2/odd.in.npy") || !tg_has(MODELS "fsrcnn_x2/odd.out.npy"))
        return;
    tgi_graph *g = load("fsrcnn_x2");
    tgi_err e = {0};
    size_t n;
    double diff, top;
    CHECK_OK(tgi_graph_finish(g, 0, &e), e);
    float *in = read_npy(MODELS "fsrcnn_x2/odd.in.npy", 97 * 131);
    float *want = read_npy(MODELS "fsrcnn_x2/odd.out.npy", 194 * 262);
    float *got = run_reference(g, 97, 131, in, &n);
    CHECK_EQ(n, 194 * 262);
    compare(got, want, n, &diff, &top);
    CHECK(diff <= 1e-5); /* golden.json allows 1e-3 relative + 1e-4; runtimes differ by 1e-6 */
    tgi_free(in);
    tgi_free(want);
    tgi_free(got);
    tgi_graph_free(&g);
}

/* Conv, BatchNormalization and a transpose to NHWC as an ONNX file, against the formula. */
static void a_batch_norm_is_folded_and_a_transpose_becomes_a_port(void)
{
    static const int64_t open[] = {0, 2, 0, 0}, nhwc[] = {0, 0, 0, 3}, w_dim[] = {3, 2, 1, 1},
                         v_dim[] = {3}, perm[] = {0, 2, 3, 1};
    static const float w[6] = {1, -2, .5f, 3, -1, .25f}, bias[3] = {.5f, -1, 2},
                       scale[3] = {2, .5f, -1}, shift[3] = {.125f, 3, -2},
                       mean[3] = {1, -.5f, .25f}, var[3] = {4, .25f, 1};
    static const char *const conv[] = {"x", "w", "b", NULL};
    static const char *const norm[] = {"c", "scale", "shift", "mean", "var", NULL};
    static const char *const turn[] = {"n", NULL};
    bytes g = {0}, a = {0};
    b_port(&g, 11, "x", 4, open);
    b_port(&g, 12, "y", 4, nhwc);
    b_init(&g, "w", 1, 4, w_dim, w, sizeof w);
    b_init(&g, "b", 1, 1, v_dim, bias, sizeof bias);
    b_init(&g, "scale", 1, 1, v_dim, scale, sizeof scale);
    b_init(&g, "shift", 1, 1, v_dim, shift, sizeof shift);
    b_init(&g, "mean", 1, 1, v_dim, mean, sizeof mean);
    b_init(&g, "var", 1, 1, v_dim, var, sizeof var);
    b_node(&g, "Conv", conv, "c", NULL);
    b_node(&g, "BatchNormalization", norm, "n", NULL);
    b_attr_ints(&a, "perm", 4, perm);
    b_node(&g, "Transpose", turn, "y", &a);
    bytes m = b_model(&g, 15);

    tgi_onnx_model *model = NULL;
    tgi_graph *graph = NULL;
    tgi_err e = {0};
    size_t n;
    CHECK_OK(tgi_onnx_parse(m.p, m.n, &model, &e), e);
    CHECK_OK(tgi_graph_lower_onnx(&model, &graph, &e), e);
    CHECK_OK(tgi_graph_finish(graph, 0, &e), e);
    CHECK_EQ(graph->n_nodes, 1);
    CHECK_EQ(graph->nodes[0].n_epi, 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(graph->out[0].perm[i], (i + 3) % 4 == 3 ? 0 : i == 1 ? 3 : i - 1);
    float x[2 * 4 * 5];
    for (int i = 0; i < 40; i++)
        x[i] = (float)(i * 7 % 11) - 4;
    float *y = run_reference(graph, 4, 5, x, &n);
    CHECK_EQ(n, 60);
    for (int o = 0; o < 3; o++)
        for (int i = 0; i < 20; i++) {
            const double c =
                (double)w[2 * o] * x[i] + (double)w[2 * o + 1] * x[20 + i] + bias[o];
            const double want = (c - mean[o]) / sqrt(var[o] + 1e-5) * scale[o] + shift[o];
            CHECK_NEAR(y[20 * o + i], want, 2e-5); /* weights of ~10, rounded once */
        }
    tgi_free(y);
    tgi_graph_free(&graph);
    b_free(&m);
}

/* ConstantOfShape carries its value as a tensor attribute: y = x + 3. */
static void a_tensor_filled_with_a_value_is_folded(void)
{
    const int64_t open[4] = {1, 2, 0, 0}, one[1] = {1}, four[1] = {4}, shape[4] = {1, 2, 1, 1};
    static const char *const fill[] = {"shape", NULL}, *const add[] = {"x", "three", NULL};
    const float three = 3;
    bytes g = {0}, a = {0}, attrs = {0}, t = b_tensor("", 1, 1, one);
    b_blob(&t, 9, &three, sizeof three);
    b_str(&a, 1, "value");
    b_msg(&a, 5, &t);
    b_int(&a, 20, 4);
    b_msg(&attrs, 5, &a);
    b_port(&g, 11, "x", 4, open);
    b_port(&g, 12, "y", 4, open);
    b_init(&g, "shape", 7, 1, four, shape, sizeof shape);
    b_node(&g, "ConstantOfShape", fill, "three", &attrs);
    b_node(&g, "Add", add, "y", NULL);
    bytes m = b_model(&g, 13);

    tgi_onnx_model *model = NULL;
    tgi_graph *graph = NULL;
    tgi_err e = {0};
    size_t n;
    CHECK_OK(tgi_onnx_parse(m.p, m.n, &model, &e), e);
    CHECK_OK(tgi_graph_lower_onnx(&model, &graph, &e), e);
    CHECK_OK(tgi_graph_finish(graph, 0, &e), e);
    CHECK_EQ(graph->n_nodes, 1);
    float x[2 * 3 * 4];
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    float *y = run_reference(graph, 3, 4, x, &n);
    CHECK_EQ(n, 24);
    for (int i = 0; i < 24; i++)
        CHECK_EQ(y[i], i + 3);
    tgi_free(y);
    tgi_graph_free(&graph);
    b_free(&m);
}

/* The graph written in `g` (released), through import and all rewrites. Its constants lie in
 * *m: free that after the graph. */
static tgi_graph *finished(bytes *g, int opset, bytes *m)
{
    tgi_onnx_model *model = NULL;
    tgi_graph *graph = NULL;
    tgi_err e = {0};
    *m = b_model(g, opset);
    CHECK_OK(tgi_onnx_parse(m->p, m->n, &model, &e), e);
    CHECK_OK(tgi_graph_lower_onnx(&model, &graph, &e), e);
    CHECK_OK(tgi_graph_finish(graph, 0, &e), e);
    return graph;
}

/* Does the graph turn [1, 2, 4, 6] into the blocks of 2x2 side by side, channel (i, j, c) from
 * row 2y + i and column 2x + j of channel c? `first_x`: j is the outer of the two. */
static void check_space_to_depth(const tgi_graph *graph, int first_x)
{
    float x[2 * 4 * 6];
    size_t n;
    int wrong = 0;
    for (int i = 0; i < 48; i++)
        x[i] = (float)i;
    float *y = run_reference(graph, 4, 6, x, &n);
    CHECK_EQ(n, 48);
    for (int k = 0; k < 48; k++) {
        const int block = k / 12, c = k / 6 % 2, row = k / 3 % 2, column = k % 3;
        const int i = first_x ? block % 2 : block / 2, j = first_x ? block / 2 : block % 2;
        wrong += !(fabsf(y[k] - x[c * 24 + (2 * row + i) * 6 + 2 * column + j]) <= 0);
    }
    CHECK_EQ(wrong, 0);
    tgi_free(y);
}

static void a_reshape_transpose_reshape_becomes_space_to_depth(void)
{
    static const int64_t in[] = {1, 2, 4, 6}, out[] = {1, 8, 2, 3}, six[] = {6}, four[] = {4},
                         mid[] = {1, 2, 2, 2, 3, 2}, perm[] = {0, 3, 5, 1, 2, 4};
    static const char *const first[] = {"x", "mid", NULL}, *const turn[] = {"m", NULL},
                             *const last[] = {"t", "out", NULL};
    bytes g = {0}, a = {0};
    b_port(&g, 11, "x", 4, in);
    b_port(&g, 12, "y", 4, out);
    b_init(&g, "mid", 7, 1, six, mid, sizeof mid);
    b_init(&g, "out", 7, 1, four, out, sizeof out);
    b_node(&g, "Reshape", first, "m", NULL);
    b_attr_ints(&a, "perm", 6, perm);
    b_node(&g, "Transpose", turn, "t", &a);
    b_node(&g, "Reshape", last, "y", NULL);
    bytes m;
    tgi_graph *graph = finished(&g, 13, &m);
    CHECK_EQ(graph->n_nodes, 1);
    CHECK_STR(graph->nodes[0].op->name, "SpaceToDepth");
    check_space_to_depth(graph, 0);
    tgi_graph_free(&graph);
    b_free(&m);
}

/* The detectors' "focus": every second row and column, four times, joined. No pattern makes one
 * node of it; what is asked for is the result, at sizes that the file leaves open. */
static void strided_slices_joined_are_space_to_depth(void)
{
    static const int64_t in[] = {0, 2, 0, 0}, out[] = {0, 8, 0, 0}, two[] = {2},
                         axes[] = {2, 3}, ends[] = {INT64_MAX, INT64_MAX}, steps[] = {2, 2},
                         at[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
    static const char *const name[4] = {"a", "b", "c", "d"}, *const from[4] = {"s0", "s1", "s2",
                                                                               "s3"};
    static const char *const all[] = {"a", "b", "c", "d", NULL};
    bytes g = {0}, a = {0}, axis = {0};
    b_port(&g, 11, "x", 4, in);
    b_port(&g, 12, "y", 4, out);
    b_init(&g, "axes", 7, 1, two, axes, sizeof axes);
    b_init(&g, "ends", 7, 1, two, ends, sizeof ends);
    b_init(&g, "steps", 7, 1, two, steps, sizeof steps);
    for (int k = 0; k < 4; k++) {
        const char *const slice[] = {"x", from[k], "ends", "axes", "steps", NULL};
        b_init(&g, from[k], 7, 1, two, at[k], sizeof at[k]);
        b_node(&g, "Slice", slice, name[k], NULL);
    }
    b_str(&axis, 1, "axis");
    b_int(&axis, 3, 1);
    b_int(&axis, 20, 2);
    b_msg(&a, 5, &axis);
    b_node(&g, "Concat", all, "y", &a);
    bytes m;
    tgi_graph *graph = finished(&g, 13, &m);
    check_space_to_depth(graph, 1);
    tgi_graph_free(&graph);
    b_free(&m);
}

/* y[o] at (2r + i, 2s + j) of a transposed 2x2 convolution of stride 2, two groups, by hand. */
static double transposed(const float *x, const float *w, float bias, int o, int row, int column)
{
    const int in = o / 2 * 2; /* each group: two channels in, two out */
    double sum = (double)bias;
    for (int c = 0; c < 2; c++)
        sum += (double)x[(in + c) * 6 + row / 2 * 3 + column / 2] *
               (double)w[((in + c) * 2 + o % 2) * 4 + row % 2 * 2 + column % 2];
    return sum;
}

static void a_batch_norm_is_folded_into_a_transposed_convolution(void)
{
    static const int64_t open[] = {0, 4, 0, 0}, w_dim[] = {4, 2, 2, 2}, v_dim[] = {4},
                         twice[] = {2, 2};
    static const float bias[4] = {.5f, -1, 2, .25f}, scale[4] = {2, .5f, -1, 3},
                       shift[4] = {.125f, 3, -2, 1}, mean[4] = {1, -.5f, .25f, 0},
                       var[4] = {4, .25f, 1, 9};
    static const char *const conv[] = {"x", "w", "b", NULL};
    static const char *const norm[] = {"c", "scale", "shift", "mean", "var", NULL};
    float w[4 * 2 * 4], x[4 * 6];
    bytes g = {0}, a = {0}, group = {0};
    for (int i = 0; i < 32; i++)
        w[i] = (float)(i * 5 % 13) / 4 - 1.5f;
    for (int i = 0; i < 24; i++)
        x[i] = (float)(i * 7 % 11) - 4;
    b_port(&g, 11, "x", 4, open);
    b_port(&g, 12, "y", 4, open);
    b_init(&g, "w", 1, 4, w_dim, w, sizeof w);
    b_init(&g, "b", 1, 1, v_dim, bias, sizeof bias);
    b_init(&g, "scale", 1, 1, v_dim, scale, sizeof scale);
    b_init(&g, "shift", 1, 1, v_dim, shift, sizeof shift);
    b_init(&g, "mean", 1, 1, v_dim, mean, sizeof mean);
    b_init(&g, "var", 1, 1, v_dim, var, sizeof var);
    b_attr_ints(&a, "strides", 2, twice);
    b_str(&group, 1, "group");
    b_int(&group, 3, 2);
    b_int(&group, 20, 2);
    b_msg(&a, 5, &group);
    b_node(&g, "ConvTranspose", conv, "c", &a);
    b_node(&g, "BatchNormalization", norm, "y", NULL);
    bytes m;
    tgi_graph *graph = finished(&g, 15, &m);
    CHECK_EQ(graph->n_nodes, 1);
    CHECK_EQ(graph->nodes[0].n_epi, 0);
    size_t n;
    float *y = run_reference(graph, 2, 3, x, &n);
    CHECK_EQ(n, 4 * 4 * 6);
    for (int k = 0; k < 96; k++) {
        const int o = k / 24;
        const double c = transposed(x, w, bias[o], o, k / 6 % 4, k % 6);
        const double want = (c - mean[o]) / sqrt(var[o] + 1e-5) * scale[o] + shift[o];
        CHECK_NEAR(y[k], want, 2e-5); /* values of ~30, rounded a few times */
    }
    tgi_free(y);
    tgi_graph_free(&graph);
    b_free(&m);
}

int main(void)
{
    RUN(a_tensor_filled_with_a_value_is_folded);
    RUN(a_batch_norm_is_folded_and_a_transpose_becomes_a_port);
    RUN(a_batch_norm_is_folded_into_a_transposed_convolution);
    RUN(a_reshape_transpose_reshape_becomes_space_to_depth);
    RUN(strided_slices_joined_are_space_to_depth);
    if (!tg_has(MODELS))
        return TEST_END();
    RUN(fusing_and_exchanging_change_roundings_at_most);
    RUN(written_out_prelus_give_the_published_result);
    return TEST_END();
}
