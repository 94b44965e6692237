/* A set of kernels as plans see it on processors without it (kernels/cpu/simd.h) answers what
 * the set itself answers. Of sets that this processor has; of the others nothing can be asked.
 */
#include "engine/plan/net.h"
#include "tests/tg_test.h"

static tgi_net *net_of(const tgi_graph *g, const tgi_kernel_set *be, unsigned flags)
{
    tgi_net *net = NULL;
    tgi_err e = {0};
    tgi_desc in[TGI_MAX_PORTS];
    tgi_graph_input_descs(g, (const int64_t[]){1, 256, 320}, in);
    CHECK_OK(tgi_net_new(g, be, in, flags, &net, &e), e);
    return net;
}

static void compare(const char *name, const tgi_graph *g, const tgi_kernel_set *run,
                    const tgi_kernel_set *plan, unsigned flags)
{
    tgi_net *a = net_of(g, run, flags), *b = net_of(g, plan, flags);
    int with = 0;
    CHECK(a && b && a->n_nodes == b->n_nodes && a->packed_bytes == b->packed_bytes);
    for (int i = 0; a && b && i < a->n_nodes; i++) {
        const tgi_net_node *x = &a->nodes[i], *y = &b->nodes[i];
        CHECK(x->cost == y->cost && x->packed_bytes == y->packed_bytes);
        CHECK(!x->variant == !y->variant);
        if (!x->variant || !y->variant)
            continue;
        CHECK_STR(y->variant->name, x->variant->name);
        CHECK(x->variant->run != NULL && y->variant->run == NULL);
        with++;
    }
    printf("     %s, %s: %d kernels alike\n", name, run->name, with);
    CHECK(with > 0);
    tgi_net_free(&a);
    tgi_net_free(&b);
}

static void compare_graph(const char *name, const tgi_graph *g)
{
    for (int isa = TGI_ISA_AVX2; isa <= (int)tgi_isa_best(); isa++) {
        const tgi_kernel_set *run = tgi_backend_for((tgi_isa)isa),
                             *plan = tgi_backend_for_plans((tgi_isa)isa);
        if (!run)
            continue;
        CHECK(run != plan);
        compare(name, g, run, plan, 0);
        compare(name, g, run, plan, TGI_NET_EXACT);
        compare(name, g, run, plan, TGI_NET_KINDS(TGI_KIND_BF16));
    }
}

static void test_plans_of_a_set_are_the_same_where_it_is_missing(void)
{
    static const char *const models[] = {"unet2d_nuclei_broad", "fsrcnn_x2", "iat_lol_v1",
                                         "fns_candy_nc16", "kair_dncnn25"};
    char path[512];
    for (size_t i = 0; i <= sizeof models / sizeof models[0]; i++) {
        const int own = i == sizeof models / sizeof models[0];
        tgi_graph *g = NULL;
        tgi_err e = {0};
        snprintf(path, sizeof path, "%s/data/models/%s/model.onnx", TG_SHARED_DATA,
                 own ? "" : models[i]);
        if (own)
            snprintf(path, sizeof path, "%s/models/tegula_denoise.onnx", TG_SOURCE_DIR);
        if (!tg_has(path))
            continue;
        CHECK_OK(tgi_graph_load_onnx(path, 0, &g, &e), e);
        if (g)
            compare_graph(own ? "own" : models[i], g);
        tgi_graph_free(&g);
    }
}

int main(void)
{
    RUN(test_plans_of_a_set_are_the_same_where_it_is_missing);
    return TEST_END();
}
