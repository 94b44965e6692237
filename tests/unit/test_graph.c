/* test_graph.c - import, canonical forms, sizes and fusion, on graphs built here and on the real
 * models of the shared data. */
#include "tests/tg_test.h"

#include "engine/graph/graph.h"

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
    {"span_x2_nomosuni", 3, 1, 2, 410712, 49, 26},
    {"fsrcnn_x2", 1, 1, 2, 8497, 9, 8},
    {"super_resolution_10", 1, 1, 3, 59657, 5, 3},
    {"sci_low_light", 3, 1, 1, 255, 3, 7},
};
#define N_MODELS ((int)(sizeof models / sizeof models[0]))

static tg_graph *load(const char *name)
{
    char path[1024];
    tg_graph *g = NULL;
    tgi_err e = {0};
    snprintf(path, sizeof path, MODELS "%s/model.onnx", name);
    CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
    return g;
}

static int count_steps(const tg_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += g->nodes[i].n_epi;
    return n;
}

static void real_models_run_at_any_multiple_of_their_divisor(void)
{
    for (int i = 0; i < N_MODELS; i++) {
        const model_case *m = &models[i];
        tg_graph *g = load(m->name);
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
            tg_desc in[TG_MAX_PORTS];
            tg_shapes s;
            tgi_graph_input_descs(g, ext, in);
            CHECK_OK(tgi_graph_infer(g, in, &s, &e), e);
            const tg_desc *out = &s.desc[g->out[0].value];
            CHECK_EQ(out->rank, 4);
            CHECK_EQ(out->dim[1], m->channels);
            CHECK_EQ(out->dim[2], ext[1] * m->scale);
            CHECK_EQ(out->dim[3], ext[2] * m->scale);
            tgi_shapes_free(&s);
        }
        tgi_graph_free(&g);
    }
}

int main(void)
{
    if (access(MODELS, R_OK) != 0)
        TEST_SKIP("no shared models");
    RUN(real_models_run_at_any_multiple_of_their_divisor);
    return TEST_END();
}
