/* Operators that an export spells in parts are the operators: same result as the export that
 * names them, at the declared size and, though the parts hold constants of it, at others. */
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#define CH 6

static const int64_t k3[2] = {3, 3};

static const char *scalar(made *m, float v)
{
    const char *name = made_name(m);
    b_init(&m->g, name, 1, 0, NULL, &v, sizeof v);
    return name;
}

static const char *with_axes(made *m, const char *op, const char *x, int n, const int64_t *axes)
{
    bytes a = {0};
    b_attr_ints(&a, "axes", n, axes);
    return made_node(m, op, x, NULL, NULL, NULL, &a, NULL);
}

/* Means over [1,C,1,H*W] as old exports take them, or over both axes. */
static const char *mean(made *m, const char *x, int flattened)
{
    static const int64_t line[1] = {3}, both[2] = {2, 3}, shape[4] = {1, CH, 1, -1};
    if (!flattened)
        return with_axes(m, "ReduceMean", x, 2, both);
    const char *row =
        made_node(m, "Reshape", x, made_longs(m, 4, shape), NULL, NULL, NULL, NULL);
    return with_axes(m, "ReduceMean", row, 1, line);
}

/* Weights are drawn in the same order either way: scale, then shift. */
static const char *norm(made *m, const char *x, int parts)
{
    static const int64_t one[1] = {CH}, wide[3] = {CH, 1, 1};
    const char *scale = made_weights(m, parts ? 3 : 1, parts ? wide : one);
    const char *shift = made_weights(m, parts ? 3 : 1, parts ? wide : one);
    if (!parts)
        return made_node(m, "InstanceNormalization", x, scale, shift, NULL, NULL, NULL);
    const char *d = made_node(m, "Sub", x, mean(m, x, parts == 1), NULL, NULL, NULL, NULL);
    const char *square = parts == 1
                             ? made_node(m, "Mul", d, d, NULL, NULL, NULL, NULL)
                             : made_node(m, "Pow", d, scalar(m, 2), NULL, NULL, NULL, NULL);
    const char *v = mean(m, square, parts == 1);
    v = made_node(m, "Add", v, scalar(m, 1e-5f), NULL, NULL, NULL, NULL);
    v = made_node(m, "Sqrt", v, NULL, NULL, NULL, NULL, NULL);
    d = made_node(m, "Div", d, v, NULL, NULL, NULL, NULL);
    d = made_node(m, "Mul", d, scale, NULL, NULL, NULL, NULL);
    return made_node(m, "Add", d, shift, NULL, NULL, NULL, NULL);
}

static const char *doubled(made *m, const char *x, int parts, const int64_t *ext)
{
    static const int64_t column[2] = {-1, 1};
    const int64_t rows[2] = {-1, 2 * ext[1]}, image[4] = {-1, CH, 2 * ext[0], 2 * ext[1]};
    static const float two[4] = {1, 1, 2, 2};
    static const int64_t four[1] = {4};
    if (!parts) {
        bytes a = {0};
        const char *factors = made_name(m);
        b_init(&m->g, factors, 1, 1, four, two, sizeof two);
        b_attr_text(&a, "mode", "nearest");
        b_attr_text(&a, "coordinate_transformation_mode", "asymmetric");
        b_attr_text(&a, "nearest_mode", "floor");
        return made_node(m, "Resize", x, "", factors, NULL, &a, NULL);
    }
    x = made_node(m, "Reshape", x, made_longs(m, 2, column), NULL, NULL, NULL, NULL);
    x = made_concat(m, 1, x, x);
    x = made_node(m, "Reshape", x, made_longs(m, 2, rows), NULL, NULL, NULL, NULL);
    x = made_concat(m, 1, x, x);
    return made_node(m, "Reshape", x, made_longs(m, 4, image), NULL, NULL, NULL, NULL);
}

/* Joined with nothing, along an axis that no image is joined along. */
static const char *alone(made *m, const char *x)
{
    bytes at = {0}, axis = {0};
    b_str(&axis, 1, "axis");
    b_int(&axis, 3, 0);
    b_int(&axis, 20, 2);
    b_msg(&at, 5, &axis);
    return made_node(m, "Concat", x, NULL, NULL, NULL, &at, NULL);
}

/* parts 0: operators by name; 1: flattened means and Mul; 2: means over both axes and Pow. */
static void make_net(const char *path, int parts, const int64_t *ext)
{
    made m = made_begin(2, 3, ext);
    const char *f = made_conv(&m, "x", 3, CH, k3, 1, 1, NULL);
    if (parts == 2)
        f = alone(&m, f);
    f = norm(&m, f, parts);
    f = doubled(&m, f, parts == 1, ext);
    made_conv(&m, f, CH, 2, k3, 1, 1, "y");
    made_end(&m, path);
}

static void run(const char *model, const char *in, const char *out)
{
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_run_result r = {.size = sizeof r};
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", model), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", out), TG_OK);
    CHECK_EQ(tg_opts_set(o, "ram", "1GiB"), TG_OK);
    tg_status st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        st = tg_job_run(job, &r);
    if (st != TG_OK)
        fprintf(stderr, "%s: %s\n", model, tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
    tg_job_close(&job);
    tg_opts_free(&o);
}

static float *array_of(const char *path, tgi_desc *d)
{
    tgi_err err = {0};
    void *p = NULL;
    CHECK_OK(tgi_npy_load(path, 0, d, &p, &err), err);
    return p;
}

static void check_same(const char *a_path, const char *b_path)
{
    tgi_desc a, b;
    float *p = array_of(a_path, &a), *q = array_of(b_path, &b);
    int64_t n = 0, bad = 0;
    CHECK(tgi_desc_same_shape(&a, &b));
    tgi_desc_count(&a, &n);
    for (int64_t i = 0; i < n; i++) /* the same sums; the order of scale and factor is not */
        bad += !(fabsf(p[i] - q[i]) <= 1e-5f);
    CHECK(n > 0);
    CHECK_EQ(bad, 0);
    tgi_free(p);
    tgi_free(q);
}

static void test_parts_at_two_sizes(void)
{
    static const int64_t declared[2] = {16, 24}, sides[2][2] = {{16, 24}, {36, 28}};
    static const int64_t open[2] = {0, 0};
    uint64_t seed = 3;
    make_net(in_folder("named.onnx"), 0, open);
    make_net(in_folder("old.onnx"), 1, declared);
    make_net(in_folder("new.onnx"), 2, declared);
    for (int i = 0; i < 2; i++) {
        const tgi_desc d = {TG_DTYPE_F32, 4, {1, 3, sides[i][0], sides[i][1]}};
        float x[3 * 36 * 28];
        tgi_err err = {0};
        for (size_t k = 0; k < sizeof x / sizeof *x; k++)
            x[k] = 10 + tg_rand_unit(&seed); /* a large mean: what is subtracted shows */
        unlink(in_folder("named.npy"));
        unlink(in_folder("old.npy"));
        unlink(in_folder("new.npy"));
        CHECK_OK(tgi_npy_save(in_folder("x.npy"), &d, x, &err), err);
        run(in_folder("named.onnx"), in_folder("x.npy"), in_folder("named.npy"));
        run(in_folder("old.onnx"), in_folder("x.npy"), in_folder("old.npy"));
        run(in_folder("new.onnx"), in_folder("x.npy"), in_folder("new.npy"));
        check_same(in_folder("old.npy"), in_folder("named.npy"));
        check_same(in_folder("new.npy"), in_folder("named.npy"));
    }
}

static void test_the_operators_are_named(void)
{
    char *json = NULL;
    CHECK_EQ(tg_describe(ctx, in_folder("old.onnx"), &json), TG_OK);
    CHECK(json && strstr(json, "-> InstanceNormalization (1 times)"));
    CHECK(json && strstr(json, "-> Resize (1 times)"));
    /* What is listed is the model's. */
    CHECK(json && strstr(json, "\"ReduceMean\":2"));
    CHECK(json && !strstr(json, "\"InstanceNormalization\":"));
    CHECK(json && !strstr(json, "\"Resize\":"));
    CHECK(json && strstr(json, "\"fixed_size\":false"));
    CHECK(json &&
          !strstr(json, "NormNumbers")); /* how it is computed is no matter of its file */
    tg_text_free(json);
}

/* Those that a norm is computed by are none that a file may name. */
static void test_operators_of_our_own_are_none_of_a_file(void)
{
    static const char *const ours[] = {"NormNumbers", "NormApply"};
    static const int64_t open[3] = {0};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
        char *json = NULL;
        made m = made_begin(2, 3, open);
        const int64_t three[1] = {3};
        const char *k = made_weights(&m, 1, three);
        made_node(&m, ours[i], "x", k, k, NULL, NULL, "y");
        made_end(&m, in_folder("ours.onnx"));
        CHECK_EQ(tg_describe(ctx, in_folder("ours.onnx"), &json), TG_E_UNSUPPORTED);
        CHECK(strstr(tg_ctx_detail(ctx), ours[i]) != NULL);
        CHECK(strstr(tg_ctx_detail(ctx), "not implemented in this build") != NULL);
        tg_text_free(json);
    }
}

int main(void)
{
    help_open();
    test_parts_at_two_sizes();
    test_the_operators_are_named();
    test_operators_of_our_own_are_none_of_a_file();
    help_close();
    return TEST_END();
}
