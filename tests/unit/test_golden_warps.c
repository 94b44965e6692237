/* Operators of ProPainter that read where a flow or offsets point to give what the official modules
 * gave: warped images, flows that lead back, deformable convolutions. */
#define RECIPE TG_SHARED_DATA "/conformance/propainter"
#include "tests/unit/golden_kit.h"

static void warp(const char *name, const char *output, int nearest)
{
    tgi_desc d, flow;
    op_node n = open_node("FlowWarp", 2);
    float *x = load(name, "x", &d), *f = load(name, "flow", &flow);
    ((warp_attrs *)n.attrs)->mode = nearest;
    give(&n, 0, &d, x, 0);
    give(&n, 1, &flow, f, 0);
    float *got = run(&n, 0, &d);
    compare(name, output, got);
    free(got);
    tgi_free(x);
    tgi_free(f);
}

static void test_warps_are_the_official_ones(void)
{
    warp("flow_warp_bilinear", "bilinear", 0);
    warp("flow_warp_nearest", "nearest", 1);
}

static void test_consistency_is_the_official_one(void)
{
    const char *const name = "fb_consistency";
    tgi_desc d, back;
    op_node n = open_node("FlowConsistency", 2);
    float *f = load(name, "flow_fw", &d), *b = load(name, "flow_bw", &back);
    give(&n, 0, &d, f, 0);
    give(&n, 1, &back, b, 0);
    float *got = run(&n, 0, &d);
    compare(name, "valid", got);
    free(got);
    tgi_free(f);
    tgi_free(b);
}

static void deformed(const char *name, const char *model, const char *layer)
{
    char tensor[128];
    tgi_desc d, offset, mask;
    op_node n = open_node("DeformConv", 5);
    deform_attrs *a = n.attrs;
    float *x = load(name, "x", &d), *o = load(name, "offset", &offset),
          *m = load(name, "mask", &mask);
    const tgi_desc weights = shape4(128, d.dim[1], 3, 3);
    snprintf(tensor, sizeof tensor, "feat_prop_module.deform_align.%s.weight", layer);
    float *w = recipe_tensor(RECIPE, model, tensor, desc_floats(&weights));
    snprintf(tensor, sizeof tensor, "feat_prop_module.deform_align.%s.bias", layer);
    float *b = recipe_tensor(RECIPE, model, tensor, 128);
    a->conv.pads = (tgi_ints){4, {1, 1, 1, 1}};
    a->offset_group = 16;
    give(&n, 0, &d, x, 0);
    give(&n, 1, &weights, w, 1);
    give(&n, 2, &offset, o, 0);
    give(&n, 3, &(tgi_desc){TG_DTYPE_F32, 1, {128}}, b, 1);
    give(&n, 4, &mask, m, 0);
    float *got = run(&n, 0, &d);
    compare(name, "y", got);
    free(got);
    free(w);
    free(b);
    tgi_free(x);
    tgi_free(o);
    tgi_free(m);
}

static void test_deformable_convolutions_are_the_official_ones(void)
{
    deformed("deform_conv_gen", "gen", "backward_1");
    deformed("deform_conv_rfc", "rfc", "forward_");
}

static void test_all(void)
{
    RUN(test_warps_are_the_official_ones);
    RUN(test_consistency_is_the_official_one);
    RUN(test_deformable_convolutions_are_the_official_ones);
}

int main(void)
{
    if (golden_none())
        return golden_none();
    golden_each_set(test_all);
    return TEST_END();
}
