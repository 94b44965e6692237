/* Goldens: the networks of the model collection give, through the planner and the tuned
 * kernels, what the reference runtime gave, within the tolerance that golden.json states. */
#include "engine/base/json.h"
#include "io/npy.h"
#include "tests/net_run.h"

static const char *const models[] = {
    "kair_dncnn25",        "unet2d_nuclei_broad", "fmd_noise2noise_unet",
    "compact_x2_nomosuni", "span_x2_nomosuni",    "fsrcnn_x2",
    "super_resolution_10", "sci_low_light",       "waifu2x_cunet_n1_x2",
    "fns_candy_nc16",      "deeplab_v3",          "nanoflownet",
    "yolox_nano",          "mosaic_nc8",          "iat_lol_v1"};

/* One array of a case: as the file holds it, and in the graph's order of axes. */
typedef struct array {
    tgi_desc desc; /* graph order */
    float *data;
} array;

/* The elements of `file` in the order of the graph's axes: of NHWC ones every one moves. */
static array in_graph_order(const tgi_port *p, int rank, const tgi_desc *file,
                            const float *data)
{
    array a = {.desc = {TG_DTYPE_F32, rank, {0}}};
    int64_t stride[TGI_MAX_RANK], step = 1, n = 0, of[TGI_MAX_RANK] = {0};
    for (int i = file->rank - 1; i >= 0; step *= file->dim[i--])
        of[i] = step;
    for (int i = 0; i < rank; i++) {
        a.desc.dim[i] = p->perm[i] >= 0 ? file->dim[p->perm[i]] : 1;
        stride[i] = p->perm[i] >= 0 ? of[p->perm[i]] : 0;
    }
    tgi_desc_count(&a.desc, &n);
    a.data = malloc((size_t)n * sizeof *a.data);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0, left = k;
        for (int i = rank - 1; i >= 0; left /= a.desc.dim[i--])
            at += left % a.desc.dim[i] * stride[i];
        a.data[k] = data[at];
    }
    return a;
}

static array load(const char *folder, const tgi_json *j, const tgi_port *port, int rank)
{
    char path[768];
    const char *file = "", *name = "";
    tgi_desc desc = {0};
    tgi_err err = {0};
    void *p = NULL;
    CHECK(tgi_json_str(tgi_json_get(j, "file"), &file));
    CHECK(tgi_json_str(tgi_json_get(j, "name"), &name));
    CHECK_STR(name, port->name);
    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!tg_has(path))
        return (array){.data = NULL};
    CHECK_OK(tgi_npy_load(path, 0, &desc, &p, &err), err);
    CHECK_EQ(desc.dtype, TG_DTYPE_F32);
    CHECK_EQ(desc.rank, port->file_rank);
    const array a = in_graph_order(port, rank, &desc, p);
    tgi_free(p);
    return a;
}

static void compare(const char *model, const char *tag, const array *want, const float *got,
                    double rtol, double atol)
{
    int64_t n = 0, bad = 0;
    double worst = 0;
    tgi_desc_count(&want->desc, &n);
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)want->data[i]);
        worst = d > worst ? d : worst;
        bad += !(d <= atol + rtol * fabs((double)want->data[i]));
    }
    printf("%s %s: %lld elements, largest difference %.3g (atol %.3g rtol %.3g)\n", model, tag,
           (long long)n, worst, atol, rtol);
    CHECK(n > 0);
    CHECK_EQ(bad, 0);
}

/* bfloat16 products: a distance over the whole image, no bound per pixel. */
#define BF16_L2 5e-3
static void compare_bf16(const char *model, const char *tag, const array *want,
                         const float *got)
{
    int64_t n = 0;
    double d2 = 0, s2 = 0;
    tgi_desc_count(&want->desc, &n);
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)want->data[i];
        d2 += d * d;
        s2 += (double)want->data[i] * (double)want->data[i];
    }
    printf("%s %s in bf16: relative L2 %.3g\n", model, tag, sqrt(d2 / s2));
    CHECK(s2 > 0);
    CHECK(d2 <= BF16_L2 * BF16_L2 * s2);
}

/* One case through planner and executor; the outputs in their order. */
static void run_net(const char *model, const char *folder, const tgi_net *net, const array *in,
                    const tgi_json *v, const double tol[2])
{
    tgi_err err = {0};
    array want[TGI_MAX_PORTS];
    const char *tag = "";
    const int64_t cut[3] = {0, 0, 0};
    net_io io = {.in = {in->data}};
    int o = 0, lacks = 0;
    tgi_json_str(tgi_json_get(v, "tag"), &tag);
    for (const tgi_json *j = tgi_json_first(tgi_json_get(v, "outputs")); j && o < net->n_out;
         j = tgi_json_next(j), o++) {
        const tgi_desc *d = &net->shapes.desc[net->out[o]];
        want[o] = load(folder, j, &net->g->out[o], d->rank);
        lacks |= !want[o].data;
        CHECK(lacks || tgi_desc_same_shape(&want[o].desc, d));
        io.out[o] = malloc(net_out_count(net, o) * sizeof *io.out[o]);
    }
    CHECK_EQ(o, net->n_out);
    if (!lacks)
        CHECK_OK(net_run(net, cut, 32, 2, &io, -1, &err), err);
    for (int k = 0; k < o; k++) {
        if (lacks)
            ;
        else if (tol)
            compare(model, tag, &want[k], io.out[k], tol[0], tol[1]);
        else
            compare_bf16(model, tag, &want[k], io.out[k]);
        free(io.out[k]);
        free(want[k].data);
    }
}

static void run_case(const char *model, const char *folder, const tgi_graph *g,
                     const tgi_json *v, const double tol[2], unsigned flags)
{
    tgi_err err = {0};
    tgi_net *net = NULL;
    array in =
        load(folder, tgi_json_first(tgi_json_get(v, "inputs")), &g->in[0], g->spatial + 2);
    if (!in.data)
        return;
    CHECK_OK(tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), &in.desc, flags,
                         &net, &err),
             err);
    if (net)
        run_net(model, folder, net, &in, v, flags & TGI_NET_KINDS(TGI_KIND_BF16) ? NULL : tol);
    tgi_net_free(&net);
    free(in.data);
}

/* `file` NULL: the model lies beside its golden.json. */
static void run_model(const char *model, const char *folder, const char *file, unsigned flags)
{
    char path[768];
    tgi_err err = {0};
    tgi_json *doc = NULL;
    tgi_graph *g = NULL;
    double to[2] = {0, 0}; /* relative, absolute */
    snprintf(path, sizeof path, "%s/golden.json", folder);
    if (!tg_has(path))
        return;
    CHECK_OK(tgi_json_load(path, &doc, &err), err);
    const tgi_json *tol = tgi_json_get(doc, "suggested_tolerance");
    CHECK(tgi_json_num(tgi_json_get(tol, "rtol"), &to[0]));
    CHECK(tgi_json_num(tgi_json_get(tol, "atol"), &to[1]));
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    CHECK_OK(tgi_graph_import_onnx(file ? file : path, &g, &err), err);
    CHECK_OK(tgi_graph_finish(g, 0, &err), err);
    int cases = 0;
    for (const tgi_json *v = tgi_json_first(tgi_json_get(doc, "cases")); v;
         v = tgi_json_next(v))
        cases++, run_case(model, folder, g, v, to, flags);
    CHECK(cases > 0);
    tgi_graph_free(&g);
    tgi_json_free(&doc);
}

int main(void)
{
    const int bf16 = tgi_isa_has_bf16(tgi_isa_detect(TGI_ISA_COUNT));
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/data/models/%s", TG_SHARED_DATA, models[i]);
        run_model(models[i], folder, NULL, 0);
        if (strstr(models[i], "unet") && bf16) { /* all in bf16, and as the planner likes */
            run_model(models[i], folder, NULL, TGI_NET_KINDS(TGI_KIND_BF16) | TGI_NET_EXACT);
            run_model(models[i], folder, NULL, TGI_NET_KINDS(TGI_KIND_BF16));
        }
    }
    run_model("tegula_denoise", TG_SOURCE_DIR "/tests/golden/tegula_denoise",
              TG_SOURCE_DIR "/models/tegula_denoise.onnx", 0);
    run_model("heads", TG_SOURCE_DIR "/tests/golden/heads", NULL, 0);
    return TEST_END();
}
