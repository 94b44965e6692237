/* Goldens: the networks of the model collection give, through the planner and the tuned
 * kernels, what the reference runtime gave, within the tolerance that golden.json states. */
#include "engine/base/json.h"
#include "io/npy.h"
#include "tests/net_run.h"

static const char *const models[] = {
    "kair_dncnn25",     "unet2d_nuclei_broad", "fmd_noise2noise_unet", "compact_x2_nomosuni",
    "span_x2_nomosuni", "fsrcnn_x2",           "super_resolution_10",  "sci_low_light"};

typedef struct pair {
    tg_desc in, out;
    float *x, *y;
} pair;

static void load(const char *folder, const tgi_json *port, tg_desc *desc, float **data)
{
    char path[768];
    const char *file = "";
    tgi_err err = {0};
    void *p = NULL;
    CHECK(tgi_json_str(tgi_json_get(port, "file"), &file));
    snprintf(path, sizeof path, "%s/%s", folder, file);
    CHECK_OK(tgi_npy_load(path, 0, desc, &p, &err), err);
    CHECK_EQ(desc->dtype, TG_DTYPE_F32);
    *data = p;
}

/* Shape of the array in the graph's order of axes. The goldens' other order only moves axes of
 * size 1, so the elements stay where they are. */
static tg_desc in_graph_order(const tg_port *p, int rank, const tg_desc *file)
{
    tg_desc d = {TG_DTYPE_F32, rank, {0}};
    for (int i = 0; i < rank; i++)
        d.dim[i] = p->perm[i] >= 0 ? file->dim[p->perm[i]] : 1;
    return d;
}

static void compare(const char *model, const char *tag, const pair *c, const float *got,
                    double rtol, double atol)
{
    int64_t n = 0, bad = 0;
    double worst = 0;
    tgi_desc_count(&c->out, &n);
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)c->y[i]);
        worst = d > worst ? d : worst;
        bad += !(d <= atol + rtol * fabs((double)c->y[i]));
    }
    printf("%s %s: %lld elements, largest difference %.3g (atol %.3g rtol %.3g)\n", model, tag,
           (long long)n, worst, atol, rtol);
    CHECK(n > 0);
    CHECK_EQ(bad, 0);
}

/* bfloat16 products: a distance over the whole image, no bound per pixel. */
#define BF16_L2 5e-3
static void compare_bf16(const char *model, const char *tag, const pair *c, const float *got)
{
    int64_t n = 0;
    double d2 = 0, s2 = 0;
    tgi_desc_count(&c->out, &n);
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)c->y[i];
        d2 += d * d;
        s2 += (double)c->y[i] * (double)c->y[i];
    }
    printf("%s %s in bf16: relative L2 %.3g\n", model, tag, sqrt(d2 / s2));
    CHECK(s2 > 0);
    CHECK(d2 <= BF16_L2 * BF16_L2 * s2);
}

static void run_case(const char *model, const char *folder, const tg_graph *g,
                     const tgi_json *v, double rtol, double atol, unsigned flags)
{
    pair c = {0};
    tgi_err err = {0};
    tg_net *net = NULL;
    const char *tag = "";
    const int64_t cut[3] = {0, 0, 0};
    tgi_json_str(tgi_json_get(v, "tag"), &tag);
    load(folder, tgi_json_first(tgi_json_get(v, "inputs")), &c.in, &c.x);
    load(folder, tgi_json_first(tgi_json_get(v, "outputs")), &c.out, &c.y);
    const tg_desc in = in_graph_order(&g->in[0], g->spatial + 2, &c.in);
    CHECK_OK(
        tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TG_ISA_COUNT)), &in, flags, &net, &err),
        err);
    if (net) {
        int64_t n = 0;
        tgi_desc_count(&c.out, &n);
        CHECK_EQ(net_out_count(net, 0), n);
        float *y = malloc((size_t)n * sizeof *y);
        net_io io = {.in = {c.x}, .out = {y}};
        CHECK_OK(net_run(net, cut, 32, 2, &io, -1, &err), err);
        if (flags & TG_NET_BF16)
            compare_bf16(model, tag, &c, y);
        else
            compare(model, tag, &c, y, rtol, atol);
        free(y);
    }
    tgi_net_free(&net);
    tgi_free(c.x);
    tgi_free(c.y);
}

/* `file` NULL: the model lies beside its golden.json. */
static void run_model(const char *model, const char *folder, const char *file, unsigned flags)
{
    char path[768];
    tgi_err err = {0};
    tgi_json *doc = NULL;
    tg_graph *g = NULL;
    double rtol = 0, atol = 0;
    snprintf(path, sizeof path, "%s/golden.json", folder);
    CHECK_OK(tgi_json_load(path, &doc, &err), err);
    const tgi_json *tol = tgi_json_get(doc, "suggested_tolerance");
    CHECK(tgi_json_num(tgi_json_get(tol, "rtol"), &rtol));
    CHECK(tgi_json_num(tgi_json_get(tol, "atol"), &atol));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    CHECK_OK(tgi_graph_import_onnx(file ? file : path, &g, &err), err);
    CHECK_OK(tgi_graph_finish(g, 0, &err), err);
    int cases = 0;
    for (const tgi_json *v = tgi_json_first(tgi_json_get(doc, "cases")); v;
         v = tgi_json_next(v))
        cases++, run_case(model, folder, g, v, rtol, atol, flags);
    CHECK(cases > 0);
    tgi_graph_free(&g);
    tgi_json_free(&doc);
}

int main(void)
{
    const int bf16 = tgi_isa_has_bf16(tgi_isa_detect(TG_ISA_COUNT));
    int found = 0;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/data/models/%s", TG_SHARED_DATA, models[i]);
        if (access(folder, R_OK) != 0)
            continue;
        found++;
        run_model(models[i], folder, NULL, 0);
        if (strstr(models[i], "unet") && bf16) { /* all in bf16, and as the planner likes */
            run_model(models[i], folder, NULL, TG_NET_BF16 | TG_NET_EXACT);
            run_model(models[i], folder, NULL, TG_NET_BF16);
        }
    }
    run_model("tegula_denoise", TG_SOURCE_DIR "/tests/golden/tegula_denoise",
              TG_SOURCE_DIR "/models/tegula_denoise.onnx", 0);
    if (!found)
        printf("skipped: the model collection is not there\n");
    return TEST_END();
}
