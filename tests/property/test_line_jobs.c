/* Jobs over lines, [N,C,L], from file to file: arrays keep the axes of the model, samples are
 * looped over, cells of the line make no difference, and a long line takes little memory. */
#include "engine/plan/fit.h"
#include "tests/dense_eval.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#define CH 6

/* Batch norm behind a window folds into it; behind a pool it stays by itself. */
static const char *batch_norm(made *m, const char *x, int64_t channels, const char *y)
{
    float mean[CH], var[CH];
    const int64_t dim[1] = {channels};
    const char *scale = made_weights(m, 1, dim), *shift = made_weights(m, 1, dim);
    const char *means = made_name(m), *vars = made_name(m), *out = y ? y : made_name(m);
    for (int i = 0; i < CH; i++) {
        mean[i] = 0.1f * (float)i;
        var[i] = 0.5f + 0.2f * (float)i;
    }
    b_init(&m->g, means, 1, 1, dim, mean, (size_t)channels * sizeof *mean);
    b_init(&m->g, vars, 1, 1, dim, var, (size_t)channels * sizeof *var);
    const char *in[] = {x, scale, shift, means, vars, NULL};
    b_node(&m->g, "BatchNormalization", in, out, NULL);
    return out;
}

static void make_net(const char *path)
{
    static const int64_t k3[1] = {3}, k5[1] = {5}, open[1] = {0};
    made m = made_begin(1, 3, open);
    const char *f = made_conv(&m, "x", 3, CH, k3, 1, 1, NULL);
    f = batch_norm(&m, f, CH, NULL);
    const char *skip = made_node(&m, "Relu", f, NULL, NULL, NULL, NULL, NULL);
    f = made_pool(&m, skip, 2);
    f = batch_norm(&m, f, CH, NULL);
    f = made_conv(&m, f, CH, CH, k5, 1, 2, NULL);
    f = made_up(&m, f, CH, CH, 2);
    f = made_concat(&m, 1, f, skip);
    made_conv(&m, f, 2 * CH, 4, k3, 1, 1, "y");
    made_end(&m, path);
}

/* The job of x.npy to `out`; predicted bytes. */
static uint64_t run_job(const char *model, const char *out, const char *tile)
{
    tg_opts *o = NULL;
    tg_job *job = NULL;
    tg_run_result r = {.size = sizeof r};
    unlink(in_folder(out));
    CHECK_EQ(tg_opts_new(ctx, &o), TG_OK);
    CHECK_EQ(tg_opts_set(o, "model", in_folder(model)), TG_OK);
    CHECK_EQ(tg_opts_set(o, "input", in_folder("x.npy")), TG_OK);
    CHECK_EQ(tg_opts_set(o, "output", in_folder(out)), TG_OK);
    CHECK_EQ(tg_opts_set(o, "ram", "1GiB"), TG_OK);
    if (tile)
        CHECK_EQ(tg_opts_set(o, "tile", tile), TG_OK);
    tg_status st = tg_job_open(ctx, o, &job);
    if (st == TG_OK)
        st = tg_job_run(job, &r);
    if (st != TG_OK)
        fprintf(stderr, "%s: %s\n", out, tg_ctx_detail(ctx));
    CHECK_EQ(st, TG_OK);
    tg_job_close(&job);
    tg_opts_free(&o);
    return r.predicted_peak_bytes;
}

static float *array_of(const char *name, tgi_desc *d)
{
    tgi_err err = {0};
    void *p = NULL;
    *d = (tgi_desc){0};
    CHECK_OK(tgi_npy_load(in_folder(name), 0, d, &p, &err), err);
    return p;
}

static float *write_noise(int64_t n, int64_t channels, int64_t length)
{
    const tgi_desc d = {TG_DTYPE_F32, 3, {n, channels, length}};
    float *x = tgi_malloc(TGI_TAG_MISC, (size_t)(n * channels * length) * sizeof *x);
    uint64_t seed = 7;
    tgi_err err = {0};
    for (int64_t i = 0; i < n * channels * length; i++)
        x[i] = tg_rand_unit(&seed);
    CHECK_OK(tgi_npy_save(in_folder("x.npy"), &d, x, &err), err);
    return x;
}

/* Two samples, whole and in cells, against the model's own operators on arrays of three axes.
 */
static void arrays_keep_the_axes_of_the_model(void)
{
    const tgi_desc in = {TG_DTYPE_F32, 3, {2, 3, 500}};
    tgi_graph *g = NULL;
    tgi_err err = {0};
    tgi_desc a, b, want = {0};
    double d2 = 0, s2 = 0;
    int64_t n = 0;
    float *x = write_noise(2, 3, 500);
    make_net(in_folder("net.onnx"));
    run_job("net.onnx", "whole.npy", NULL);
    run_job("net.onnx", "cut.npy", "1x37");
    float *p = array_of("whole.npy", &a), *q = array_of("cut.npy", &b);
    CHECK_OK(tgi_graph_import_onnx(in_folder("net.onnx"), &g, &err), err);
    float *plain = g ? dense_eval(g, &in, x, &want) : NULL;
    CHECK(a.rank == 3 && a.dim[0] == 2 && a.dim[1] == 4 && a.dim[2] == 500);
    CHECK(tgi_desc_same_shape(&a, &b) && tgi_desc_same_shape(&a, &want));
    tgi_desc_count(&a, &n);
    CHECK(p && q && memcmp(p, q, (size_t)n * sizeof *p) == 0);
    for (int64_t i = 0; p && plain && i < n; i++) {
        d2 += ((double)p[i] - (double)plain[i]) * ((double)p[i] - (double)plain[i]);
        s2 += (double)plain[i] * (double)plain[i];
    }
    CHECK(s2 > 0 && d2 <= 1e-12 * s2); /* 1.1e-7 was seen */
    tgi_graph_free(&g);
    tgi_free(p);
    tgi_free(q);
    tgi_free(x);
    tgi_free(plain);
}

/* A line has no bands, so the plan cuts it: whole, this one's activations are 24 MiB. */
static void a_long_line_takes_little_memory(void)
{
    tgi_free(write_noise(1, 3, 400000));
    const uint64_t cut = run_job("net.onnx", "long.npy", NULL),
                   whole = run_job("net.onnx", "whole.npy", "1x400000");
    tgi_desc a, b;
    float *p = array_of("long.npy", &a), *q = array_of("whole.npy", &b);
    CHECK(TG_SANITIZED || cut < 8u << 20); /* the process itself takes more then */
    CHECK(whole > cut + (16u << 20));
    CHECK(whole > 24u << 20);
    CHECK(p && q && memcmp(p, q, (size_t)4 * 400000 * sizeof *p) == 0);
    tgi_free(p);
    tgi_free(q);
}

/* An image's rows are no lines of a network that has none. */
static void an_image_of_several_rows_is_refused(void)
{
    tgi_err err = {0};
    tgi_graph *g = NULL;
    tgi_fit fit;
    CHECK_OK(tgi_graph_load_onnx(in_folder("net.onnx"), 0, &g, &err), err);
    CHECK_EQ(tgi_fit_axis(g, 1, 8, 0, &fit, &err), TG_E_UNSUPPORTED);
    CHECK(strstr(err.text, "works on lines"));
    CHECK_OK(tgi_fit_axis(g, 1, 1, 0, &fit, &err), err);
    tgi_graph_free(&g);
}

int main(void)
{
    help_open();
    RUN(arrays_keep_the_axes_of_the_model);
    RUN(a_long_line_takes_little_memory);
    RUN(an_image_of_several_rows_is_refused);
    help_close();
    return TEST_END();
}
