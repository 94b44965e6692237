/* test_graph.c - import, canonical forms, sizes and fusion, on graphs built here and on the
 * real models of the shared data. That rewrites keep the numbers: test_rewrites.c. */
#include "engine/graph/graph.h"
#include "io/onnx.h"
#include "tests/net_run.h"
#include "tests/onnx_bytes.h"

#define MODELS TG_SHARED_DATA "/data/models/"

typedef struct model_case {
    const char *name;
    int64_t channels, divisor, scale, params; /* divisor, scale: of both spatial axes */
    int n_nodes, n_epi;                       /* after fusion */
} model_case;

/* Parameters and operators are those of the shared index; super_resolution_10 and
 * unet2d_nuclei_broad and sci_low_light declare one size and are freed. */
static const model_case models[] = {
    {"kair_dncnn25", 1, 1, 1, 555137, 17, 17},
    {"unet2d_nuclei_broad", 1, 8, 1, 449489, 27, 7},
    {"fmd_noise2noise_unet", 1, 32, 1, 987408, 33, 18},
    {"compact_x2_nomosuni", 3, 1, 2, 600654, 21, 18},
    {"span_x2_nomosuni", 3, 1, 2, 410712, 25, 50},
    {"fsrcnn_x2", 1, 1, 2, 8497, 9, 8},
    {"super_resolution_10", 1, 1, 3, 59657, 5, 3},
    {"sci_low_light", 3, 1, 1, 255, 3, 7},
};
#define N_MODELS ((int)(sizeof models / sizeof models[0]))

static tgi_graph *load(const char *name)
{
    char path[1024];
    tgi_graph *g = NULL;
    tgi_err e = {0};
    snprintf(path, sizeof path, MODELS "%s/model.onnx", name);
    CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
    return g;
}

static int count_steps(const tgi_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].n_epi;
    return n;
}

/* Sum of all float constants that nodes read, in node order. */
static double checksum(const tgi_graph *g)
{
    double sum = 0;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_src; k++) {
            const int v = g->nodes[i].src[k];
            int64_t n = 0;
            if (v < 0 || !g->values[v].is_const || g->values[v].cst.desc.dtype != TG_DTYPE_F32)
                continue;
            tgi_desc_count(&g->values[v].cst.desc, &n);
            for (int64_t j = 0; j < n; j++)
                sum += (double)((const float *)g->values[v].cst.data)[j] * (double)(j % 13 + 1);
        }
    return sum;
}

static void real_models_run_at_any_multiple_of_their_divisor(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        const model_case *m = &models[i];
        tgi_graph *g = load(m->name);
        tgi_err e = {0};
        if (!g)
            continue;
        CHECK_OK(tgi_graph_finish(g, 0, &e), e);
        CHECK_EQ(g->fixed_size, 0);
        CHECK_EQ(g->divisor[1], m->divisor);
        CHECK_EQ(g->divisor[2], m->divisor);
        CHECK_EQ(g->minimum[1], m->divisor);
        CHECK_EQ(g->minimum[2], m->divisor);
        CHECK_EQ(g->n_params, m->params);
        CHECK_EQ(g->n_nodes, m->n_nodes);
        CHECK_EQ(count_steps(g), m->n_epi);
        for (int64_t k = 1; k <= 5; k++) {
            const int64_t ext[3] = {1, m->divisor * k, m->divisor * (7 - k)};
            tgi_desc in[TGI_MAX_PORTS];
            tgi_shapes s;
            tgi_graph_input_descs(g, ext, in);
            CHECK_OK(tgi_graph_infer(g, in, &s, &e), e);
            const tgi_desc *out = &s.desc[g->out[0].value];
            CHECK_EQ(out->rank, 4);
            CHECK_EQ(out->dim[1], m->channels);
            CHECK_EQ(out->dim[2], ext[1] * m->scale);
            CHECK_EQ(out->dim[3], ext[2] * m->scale);
            tgi_shapes_free(&s);
        }
        tgi_graph_free(&g);
    }
}

/* Every way of storing a model gives the graph of the model: operators, parameters, sizes. */
static void storage_forms_give_the_same_graph(void)
{
    static const char *const forms[] = {"fsrcnn_constant_nodes",
                                        "fsrcnn_dead_code",
                                        "fsrcnn_external_many_files",
                                        "fsrcnn_extra_output",
                                        "fsrcnn_float_data",
                                        "fsrcnn_fp16_body",
                                        "fsrcnn_inside_if",
                                        "fsrcnn_value_info",
                                        "fsrcnn_weights_before_input",
                                        "sci_anonymous_nodes_docs",
                                        "sci_dynamic_nhw",
                                        "sci_external_many_files",
                                        "sci_float_data",
                                        "sci_fp16_body",
                                        "sci_inside_if",
                                        "sci_no_shapes",
                                        "sci_weights_are_inputs_ir3",
                                        "sci_weights_before_input"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        char path[1024];
        tgi_graph *g = NULL, *base = load(forms[i][0] == 'f' ? "fsrcnn_x2" : "sci_low_light");
        tgi_err e = {0};
        /* Half weights are rounded ones: each is off by 1/2048 of itself at most. */
        const int half = strstr(forms[i], "fp16") != NULL;
        snprintf(path, sizeof path,
                 TG_SHARED_DATA "/conformance/onnx/storage_forms/%s/model.onnx", forms[i]);
        CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
        if (g && base) {
            CHECK_OK(tgi_graph_finish(g, 0, &e), e);
            CHECK_OK(tgi_graph_finish(base, 0, &e), e);
            CHECK_EQ(g->n_params, base->n_params);
            CHECK_EQ(g->n_nodes, base->n_nodes);
            CHECK_EQ(g->fixed_size, 0);
            CHECK_EQ(g->n_in, 1);
            for (int k = 0; k < g->n_nodes && k < base->n_nodes; k++)
                CHECK_STR(g->nodes[k].op->name, base->nodes[k].op->name);
            CHECK_NEAR(checksum(g), checksum(base), half ? fabs(checksum(base)) / 2048 : 0);
        }
        tgi_graph_free(&g);
        tgi_graph_free(&base);
    }
}

static void an_inner_value_may_be_an_output_and_is_not_fused_away(void)
{
    tgi_graph *g = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_import_onnx(TG_SHARED_DATA "/conformance/onnx/storage_forms/"
                                                  "sci_extra_output/model.onnx",
                                   &g, &e),
             e);
    CHECK_OK(tgi_graph_finish(g, 0, &e), e);
    CHECK_EQ(g->n_out, 2);
    CHECK_STR(g->out[1].name, "input.1");
    CHECK_EQ(g->n_nodes, 4); /* the first Relu stays a node */
    CHECK_EQ(g->values[g->out[1].value].producer, 0);
    tgi_graph_free(&g);
}

static void axes_of_the_file_become_a_permutation(void)
{
    tgi_graph *g = load("fsrcnn_x2");
    tgi_err e = {0};
    CHECK_OK(tgi_graph_finish(g, 0, &e), e);
    const tgi_port *p = &g->in[0];
    CHECK_EQ(p->file_rank, 4); /* [N,H,W,1] */
    CHECK_EQ(p->perm[0], 0);
    CHECK_EQ(p->perm[1], 3);
    CHECK_EQ(p->perm[2], 1);
    CHECK_EQ(p->perm[3], 2);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(g->out[0].perm[i], i);
    tgi_graph_free(&g);
}

/* ---- Graphs built here ------------------------------------------------------------------- */

typedef struct builder {
    tgi_graph *g;
    uint64_t seed;
} builder;

static builder start(const int64_t *dim, int *x)
{
    builder b = {.seed = 77};
    tgi_err e = {0};
    CHECK_OK(tgi_graph_new(&b.g, &e), e);
    CHECK_OK(tgi_graph_add_value(b.g, "x", x, &e), e);
    CHECK_OK(tgi_graph_add_input(b.g, *x, 4, dim, &e), e);
    return b;
}

/* A node of up to four inputs; returns its value. The node is the last one of the graph. */
static int node(builder *b, const char *op, int n_src, int s0, int s1, int s2, int s3)
{
    const int src[4] = {s0, s1, s2, s3};
    int v = 0;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_value(b->g, op, &v, &e), e);
    CHECK_OK(tgi_graph_add_node(b->g, op, op, n_src, src, 1, &v, NULL, &e), e);
    return v;
}

static int weights(builder *b, int rank, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    const tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = rank, .dim = {d0, d1, d2, d3}};
    float w[4096];
    int id = 0;
    int64_t n = 0;
    tgi_err e = {0};
    CHECK(tgi_desc_count(&d, &n) && n <= 4096);
    for (int64_t i = 0; i < n; i++)
        w[i] = tg_rand_unit(&b->seed);
    CHECK_OK(tgi_graph_add_const(b->g, "w", &d, w, 0, &id, &e), e);
    return id;
}

/* An attribute of the last node by name. */
static void *attr(builder *b, const char *name)
{
    const tgi_node *n = &b->g->nodes[b->g->n_nodes - 1];
    for (const tgi_attr *r = n->op->attrs; r && r->name; r++)
        if (strcmp(r->name, name) == 0)
            return (char *)n->attrs + r->offset;
    CHECK(0 && "the attribute exists");
    return NULL;
}

static void set_ints(builder *b, const char *name, int n, const int64_t *v)
{
    tgi_ints *p = attr(b, name);
    if (p)
        p->n = n;
    for (int i = 0; p && i < n; i++)
        p->v[i] = v[i];
}

static int conv3x3(builder *b, int x, int64_t from, int64_t to)
{
    const int64_t pads[4] = {1, 1, 1, 1};
    const int v =
        node(b, "Conv", 3, x, weights(b, 4, to, from, 3, 3), weights(b, 1, to, 0, 0, 0), -1);
    set_ints(b, "pads", 4, pads);
    return v;
}

static int pool(builder *b, int x, int64_t k)
{
    const int64_t kk[2] = {k, k};
    const int v = node(b, "MaxPool", 1, x, -1, -1, -1);
    set_ints(b, "kernel_shape", 2, kk);
    set_ints(b, "strides", 2, kk);
    return v;
}

static int floats(builder *b, int n, const float *f)
{
    const tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = 1, .dim = {n}};
    int id = 0;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_const(b->g, "f", &d, f, 0, &id, &e), e);
    return id;
}

static int longs(builder *b, int n, const int64_t *v)
{
    const tgi_desc d = {.dtype = TG_DTYPE_I64, .rank = 1, .dim = {n}};
    int id = 0;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_const(b->g, "i", &d, v, 0, &id, &e), e);
    return id;
}

/* Resize by `k`; asymmetric nearest. */
static int enlarge(builder *b, int x, float k)
{
    const float f[4] = {1, 1, k, k};
    const int scales = floats(b, 4, f), v = node(b, "Resize", 3, x, -1, scales, -1);
    return v;
}

static void done(builder *b, int y, unsigned flags)
{
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_output(b->g, y, &e), e);
    CHECK_OK(tgi_graph_finish(b->g, flags, &e), e);
}

static void the_divisor_is_what_pools_and_skips_ask_for(void)
{
    static const int64_t open[4] = {0, 1, 0, 0};
    for (int64_t k = 2; k <= 13; k++) {
        int x;
        builder b = start(open, &x);
        const int up = enlarge(&b, pool(&b, x, k), (float)k);
        done(&b, node(&b, "Add", 2, x, up, -1, -1), 0);
        CHECK_EQ(b.g->fixed_size, 0);
        CHECK_EQ(b.g->divisor[1], k);
        CHECK_EQ(b.g->remainder[2], 0);
        CHECK_EQ(b.g->minimum[2], k);
        tgi_graph_free(&b.g);
    }
}

static void a_valid_convolution_has_a_minimum(void)
{
    static const int64_t open[4] = {0, 1, 0, 0};
    int x;
    builder b = start(open, &x);
    done(&b, node(&b, "Conv", 2, x, weights(&b, 4, 1, 1, 5, 3), -1, -1), 0);
    CHECK_EQ(b.g->divisor[1], 1);
    CHECK_EQ(b.g->minimum[1], 5);
    CHECK_EQ(b.g->minimum[2], 3);
    tgi_graph_free(&b.g);
}

static void a_constant_extent_fixes_the_size_and_is_named(void)
{
    static const int64_t fixed[4] = {1, 1, 24, 40}, sizes[4] = {1, 1, 50, 80};
    int x;
    builder b = start(fixed, &x);
    done(&b, node(&b, "Resize", 4, x, -1, -1, longs(&b, 4, sizes)), 0);
    CHECK_EQ(b.g->fixed_size, 1); /* 50 is no multiple of 24 */
    CHECK(b.g->fixed_why && strstr(b.g->fixed_why, "Resize") && strstr(b.g->fixed_why, "50"));
    CHECK_EQ(b.g->in[0].file_dim[2], 24);
    CHECK_EQ(b.g->minimum[2], 40);
    tgi_graph_free(&b.g);
}

/* Extents of output 0 when the input has h x w. */
static void check_output(const tgi_graph *g, int64_t h, int64_t w, int64_t oh, int64_t ow)
{
    const int64_t ext[3] = {1, h, w};
    tgi_desc in[TGI_MAX_PORTS];
    tgi_shapes s;
    tgi_err e = {0};
    tgi_graph_input_descs(g, ext, in);
    CHECK_OK(tgi_graph_infer(g, in, &s, &e), e);
    if (s.desc) {
        CHECK_EQ(s.desc[g->out[0].value].dim[2], oh);
        CHECK_EQ(s.desc[g->out[0].value].dim[3], ow);
    }
    tgi_shapes_free(&s);
}

static void sizes_that_are_multiples_follow_the_image(void)
{
    static const int64_t fixed[4] = {1, 1, 24, 40}, twice[4] = {1, 1, 48, 80};
    static const int64_t half[4] = {1, 1, 24, 40};
    int x;
    builder b = start(fixed, &x);
    const int up = node(&b, "Resize", 4, x, -1, -1, longs(&b, 4, twice));
    done(&b, node(&b, "Resize", 4, up, -1, -1, longs(&b, 4, half)), 0);
    CHECK_EQ(b.g->fixed_size, 0);
    CHECK_EQ(b.g->in[0].file_dim[2], -1);
    check_output(b.g, 24, 40, 24, 40);
    check_output(b.g, 31, 1000, 31, 1000);
    tgi_graph_free(&b.g);
}

/* 13 rows are pooled to 6 and enlarged to 13 again, to be joined with what was pooled: no
 * multiple, but the skip's own extent. */
static void sizes_may_be_those_of_the_skip_they_are_joined_with(void)
{
    static const int64_t fixed[4] = {1, 1, 13, 21}, sizes[4] = {1, 1, 13, 21};
    int x;
    builder b = start(fixed, &x);
    const int up = node(&b, "Resize", 4, pool(&b, x, 2), -1, -1, longs(&b, 4, sizes));
    done(&b, node(&b, "Add", 2, up, x, -1, -1), 0);
    CHECK_EQ(b.g->fixed_size, 0);
    CHECK_EQ(b.g->divisor[1], 1);
    check_output(b.g, 13, 21, 13, 21);
    check_output(b.g, 14, 333, 14, 333);
    tgi_graph_free(&b.g);
}

/* The first Resize could follow, the second cannot: both stay as the file has them. */
static void constants_are_put_back_when_another_holds_the_size(void)
{
    static const int64_t fixed[4] = {1, 1, 24, 40}, twice[4] = {1, 1, 48, 80};
    static const int64_t other[4] = {1, 1, 50, 81};
    int x;
    builder b = start(fixed, &x);
    const int up = node(&b, "Resize", 4, x, -1, -1, longs(&b, 4, twice));
    done(&b, node(&b, "Resize", 4, up, -1, -1, longs(&b, 4, other)), 0);
    CHECK_EQ(b.g->fixed_size, 1);
    CHECK_EQ(b.g->n_nodes, 2);
    CHECK_EQ(b.g->n_rewrites, 0);
    check_output(b.g, 24, 40, 50, 81);
    tgi_graph_free(&b.g);
}

static void a_slice_up_to_the_last_pixel_follows_the_image(void)
{
    static const int64_t fixed[4] = {1, 1, 24, 40}, from[2] = {2, 3}, to[2] = {24, 40};
    static const int64_t axes[2] = {2, 3};
    int x;
    builder b = start(fixed, &x);
    const int f = longs(&b, 2, from), t = longs(&b, 2, to);
    done(&b, node(&b, "Slice", 4, x, f, t, longs(&b, 2, axes)), 0);
    CHECK_EQ(b.g->fixed_size, 0);
    check_output(b.g, 24, 40, 22, 37);
    check_output(b.g, 100, 200, 98, 197);
    tgi_graph_free(&b.g);
}

static void a_value_whose_readers_do_not_meet_is_not_fused(void)
{
    static const int64_t open[4] = {0, 1, 0, 0};
    int x;
    builder b = start(open, &x);
    const int c = conv3x3(&b, x, 1, 4);
    const int r = conv3x3(&b, node(&b, "Relu", 1, c, -1, -1, -1), 4, 4);
    done(&b, node(&b, "Add", 2, c, r, -1, -1), 0);
    CHECK_EQ(b.g->n_nodes, 3);
    CHECK_EQ(b.g->nodes[0].n_epi, 0);
    CHECK_EQ(b.g->nodes[2].n_epi, 1); /* the second convolution carries the Add */
    tgi_graph_free(&b.g);
}

/* (c - 1) * (sigmoid(c) - x): put aside, one side, exchange, the other, join. */
static void readers_that_meet_again_are_steps_around_a_kept_value(void)
{
    static const int64_t open[4] = {0, 4, 0, 0};
    static const tgi_epi_kind kinds[] = {TGI_EPI_KEEP,    TGI_EPI_SUB, TGI_EPI_SWAP,
                                         TGI_EPI_SIGMOID, TGI_EPI_SUB, TGI_EPI_MUL};
    const float one = 1;
    int x;
    builder b = start(open, &x);
    const int c = conv3x3(&b, x, 4, 4);
    const int less = node(&b, "Sub", 2, c, floats(&b, 1, &one), -1, -1);
    const int gate = node(&b, "Sub", 2, node(&b, "Sigmoid", 1, c, -1, -1, -1), x, -1, -1);
    done(&b, node(&b, "Mul", 2, less, gate, -1, -1), 0);
    CHECK_EQ(b.g->n_nodes, 1);
    const tgi_node *n = &b.g->nodes[0];
    CHECK_EQ(n->n_epi, 6);
    for (int i = 0; i < 6 && i < n->n_epi; i++)
        CHECK_EQ(n->epi[i].step.kind, kinds[i]);
    CHECK_EQ(n->epi[4].value, x);
    CHECK_EQ(n->epi[5].step.src, TGI_EPI_KEPT);
    tgi_graph_free(&b.g);
}

static void a_value_times_its_sigmoid_is_one_step(void)
{
    static const int64_t open[4] = {0, 1, 0, 0};
    int x;
    builder b = start(open, &x);
    const int c = conv3x3(&b, x, 1, 4);
    done(&b, node(&b, "Mul", 2, node(&b, "Sigmoid", 1, c, -1, -1, -1), c, -1, -1), 0);
    CHECK_EQ(b.g->n_nodes, 1);
    CHECK_EQ(b.g->nodes[0].n_epi, 1);
    CHECK_EQ(b.g->nodes[0].epi[0].step.kind, TGI_EPI_SILU);
    tgi_graph_free(&b.g);
}

/* The first convolution is ready long before the sum; as host it has to wait for the other
 * operand. Of two convolutions the later one is the host. */
static void a_host_waits_for_the_other_operand(void)
{
    static const int64_t open[4] = {0, 1, 0, 0};
    int x;
    builder b = start(open, &x);
    const int c = conv3x3(&b, x, 1, 4);
    const int t = pool(&b, conv3x3(&b, enlarge(&b, x, 2), 1, 4), 2);
    done(&b, node(&b, "Sub", 2, c, t, -1, -1), 0);
    CHECK_EQ(b.g->n_nodes, 4);
    const tgi_node *last = &b.g->nodes[3];
    CHECK_STR(last->op->name, "Conv");
    CHECK_EQ(last->n_epi, 1);
    CHECK_EQ(last->epi[0].step.kind, TGI_EPI_SUB);
    CHECK_EQ(last->epi[0].value, t);
    CHECK_EQ(last->dst[0], b.g->out[0].value);
    tgi_graph_free(&b.g);
}

static void a_cycle_and_a_missing_value_are_refused(void)
{
    static const int64_t open[4] = {0, 1, 0, 0};
    int x, u = 0, v = 0;
    tgi_err e = {0};
    builder b = start(open, &x);
    CHECK_OK(tgi_graph_add_value(b.g, "u", &u, &e), e);
    CHECK_OK(tgi_graph_add_value(b.g, "v", &v, &e), e);
    CHECK_OK(tgi_graph_add_node(b.g, "Relu", "a", 1, &u, 1, &v, NULL, &e), e);
    CHECK_STATUS(tgi_graph_add_node(b.g, "Relu", "b", 1, &x, 1, &v, NULL, &e), TG_E_FORMAT, e);
    CHECK_OK(tgi_graph_add_node(b.g, "Relu", "c", 1, &v, 1, &u, NULL, &e), e);
    CHECK_OK(tgi_graph_add_output(b.g, v, &e), e);
    CHECK_STATUS(tgi_graph_finish(b.g, 0, &e), TG_E_FORMAT, e);
    tgi_graph_free(&b.g);
    b = start(open, &x);
    CHECK_OK(tgi_graph_add_value(b.g, "u", &u, &e), e);
    CHECK_OK(tgi_graph_add_output(b.g, node(&b, "Relu", 1, u, -1, -1, -1), &e), e);
    CHECK_STATUS(tgi_graph_finish(b.g, 0, &e), TG_E_FORMAT, e);
    CHECK_STATUS(tgi_graph_add_node(b.g, "Relu", "e", 0, NULL, 1, &v, NULL, &e), TG_E_FORMAT,
                 e);
    CHECK_STATUS(tgi_graph_add_node(b.g, "Nope", "d", 1, &x, 1, &v, NULL, &e), TG_E_UNSUPPORTED,
                 e);
    tgi_graph_free(&b.g);
}

int main(void)
{
    RUN(the_divisor_is_what_pools_and_skips_ask_for);
    RUN(a_valid_convolution_has_a_minimum);
    RUN(a_constant_extent_fixes_the_size_and_is_named);
    RUN(sizes_that_are_multiples_follow_the_image);
    RUN(sizes_may_be_those_of_the_skip_they_are_joined_with);
    RUN(constants_are_put_back_when_another_holds_the_size);
    RUN(a_slice_up_to_the_last_pixel_follows_the_image);
    RUN(a_value_whose_readers_do_not_meet_is_not_fused);
    RUN(readers_that_meet_again_are_steps_around_a_kept_value);
    RUN(a_value_times_its_sigmoid_is_one_step);
    RUN(a_host_waits_for_the_other_operand);
    RUN(a_cycle_and_a_missing_value_are_refused);
    if (!tg_has(MODELS))
        return TEST_END();
    RUN(real_models_run_at_any_multiple_of_their_divisor);
    RUN(storage_forms_give_the_same_graph);
    RUN(an_inner_value_may_be_an_output_and_is_not_fused_away);
    RUN(axes_of_the_file_become_a_permutation);
    return TEST_END();
}
