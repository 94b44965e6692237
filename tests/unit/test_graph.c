/* test_graph.c - import, canonical forms, sizes and fusion, on graphs built here and on the real
 * models of the shared data. */
#include "tests/tg_test.h"

#include "engine/graph/graph.h"

#define MODELS TG_SHARED_DATA "/data/models/"

typedef struct model_case {
    const char *name;
    int64_t channels, divisor, scale; /* expected of both spatial axes */
} model_case;

static const model_case models[] = {
    {"kair_dncnn25", 1, 1, 1},    {"unet2d_nuclei_broad", 1, 8, 1},
    {"fmd_noise2noise_unet", 1, 32, 1}, {"compact_x2_nomosuni", 3, 1, 2},
    {"span_x2_nomosuni", 3, 1, 2}, {"sci_low_light", 3, 1, 1},
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
