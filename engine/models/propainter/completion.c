/* completion.c - motion behind what is hidden: networks of ProPainter's recurrent flow completion.
 *
 * Its convolutions over time read the steps t-2, t and t+2, so each is a network of three inputs; the driver keeps a few
 * steps of each. The recurrence reads two results before, so it is a network too.
 * @source Zhou, Li, Chan, Loy: ProPainter, ICCV 2023. */
#include "engine/models/propainter/networks.h"

#include <stdio.h>
#include <string.h>

#define C TGI_PP_COMPLETION
#define SLOPE 0.2f
#define RECUR_SLOPE 0.1f
#define GROUPS 16
#define REACH 5.0f /* of offsets, in pixels */

static int leaky(const tgi_trained *t, int x)
{
    return tgi_draft_leaky(t->draft, x, SLOPE);
}

/* A convolution whose weights have an axis of time, of one step. */
static int spatial(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                   const tgi_draft_window *w)
{
    char full[96];
    const int64_t k = w->kernel[0];
    snprintf(full, sizeof full, "%s.weight", name);
    const float *data = tgi_trained_floats(t, full, TGI_DIMS(to, from, 1, k, k));
    const int weight = tgi_draft_floats(t->draft, full, TGI_DIMS(to, from, k, k), data, NULL);
    snprintf(full, sizeof full, "%s.bias", name);
    return tgi_draft_conv(t->draft, name, x, weight, tgi_trained_const(t, full, TGI_DIMS(to)),
                          w);
}

static int spatial_3(const tgi_trained *t, int x, const char *name, int64_t from, int64_t to,
                     int64_t stride)
{
    return leaky(t, spatial(t, x, name, from, to,
                            &(tgi_draft_window){
                                .kernel = {3, 3}, .stride = {stride, stride}, .pad = {1, 1}}));
}

/* Over three steps that stand side by side. */
static int temporal(const tgi_trained *t, const int step[3], const char *name, int64_t c)
{
    char full[96];
    float *to = NULL;
    snprintf(full, sizeof full, "%s.weight", name);
    const float *from = tgi_trained_floats(t, full, TGI_DIMS(c, c, 3, 1, 1));
    const int weight = tgi_draft_floats(t->draft, full, TGI_DIMS(c, 3 * c, 1, 1), NULL, &to);
    for (int64_t o = 0; o < c && t->draft->st == TG_OK; o++)
        for (int64_t i = 0; i < c; i++)
            for (int64_t k = 0; k < 3; k++)
                to[(o * 3 + k) * c + i] = from[(o * c + i) * 3 + k];
    snprintf(full, sizeof full, "%s.bias", name);
    return tgi_draft_conv(t->draft, name, tgi_draft_concat(t->draft, 3, step), weight,
                          tgi_trained_const(t, full, TGI_DIMS(c)),
                          &(tgi_draft_window){.kernel = {1, 1}});
}

tg_status tgi_pp_lead(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                      tgi_err *err)
{
    static const int64_t border[2] = {2, 2};
    tgi_draft d;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    int x = tgi_draft_input(&d, "motion", 3, high, wide);
    x = tgi_draft_pad(&d, x, border, border, 1);
    x = leaky(&t, spatial(&t, x, "downsample.0", 3, 32,
                          &(tgi_draft_window){.kernel = {5, 5}, .stride = {2, 2}}));
    tgi_draft_output(&d, spatial_3(&t, x, "encoder1.0.conv1.0", 32, 32, 1));
    return tgi_draft_finish(&d, out, err);
}

/* Behind the last of them. */
static int middle(const tgi_trained *t, int x)
{
    char name[32];
    for (int i = 0; i < 3; i++) {
        const int64_t n = 3 - i;
        snprintf(name, sizeof name, "mid_dilation.%d", 2 * i);
        x = leaky(t, spatial(t, x, name, C, C,
                             &(tgi_draft_window){
                                 .kernel = {3, 3}, .pad = {n, n}, .dilation = {n, n}}));
    }
    return x;
}

tg_status tgi_pp_blend(const tgi_weights *w, int number, int64_t high, int64_t wide,
                       tgi_graph **out, tgi_err *err)
{
    static const struct {
        const char *name, *next; /* the convolution over time; what follows it */
        int64_t c, scale, to, stride;
    } all[4] = {{"encoder1.0.conv2.0", "encoder1.2.conv1.0", 32, 2, 64, 2},
                {"encoder1.2.conv2.0", "encoder2.0.conv1.0", 64, 4, 64, 1},
                {"encoder2.0.conv2.0", "encoder2.2.conv1.0", 64, 4, 128, 2},
                {"encoder2.2.conv2.0", NULL, 128, 8, 128, 1}};
    static const char *const name[3] = {"before", "now", "after"};
    tgi_draft d;
    int step[3];
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    for (int i = 0; i < 3; i++)
        step[i] = tgi_draft_input(&d, name[i], all[number].c, high / all[number].scale,
                                  wide / all[number].scale);
    const int x = leaky(&t, temporal(&t, step, all[number].name, all[number].c));
    if (number == 1)
        tgi_draft_output(&d, x);
    tgi_draft_output(&d, all[number].next ? spatial_3(&t, x, all[number].next, all[number].c,
                                                      all[number].to, all[number].stride)
                                          : middle(&t, x));
    return tgi_draft_finish(&d, out, err);
}

/* ---- Recurrence -------------------------------------------------------------------------- */

/* The two results before, brought to where the step has them. */
static int align(const tgi_trained *t, const char *way, int s, const int before[2])
{
    tgi_draft *d = t->draft;
    char name[96];
    const int around[3] = {before[0], s, before[1]};
    int offset, share;
    snprintf(name, sizeof name, "feat_prop_module.deform_align.%s", way);
    tgi_trained_offsets(t, tgi_draft_concat(d, 3, around), name, 3 * C, C, GROUPS, REACH,
                        &offset, &share);
    return tgi_trained_deform(t, tgi_draft_concat(d, 2, before), offset, share, name, 2 * C, C,
                              GROUPS);
}

/* backbone, of n values side by side. */
static int backbone(const tgi_trained *t, const char *way, int n, const int *part)
{
    tgi_draft *d = t->draft;
    char name[96];
    snprintf(name, sizeof name, "feat_prop_module.backbone.%s.0", way);
    int x = n == 1 ? part[0] : tgi_draft_concat(d, n, part);
    x = tgi_draft_leaky(d, tgi_trained_same(t, x, name, n * C, C, 3), RECUR_SLOPE);
    snprintf(name, sizeof name, "feat_prop_module.backbone.%s.2", way);
    return tgi_trained_same(t, x, name, C, C, 3);
}

tg_status tgi_pp_recur(const tgi_weights *w, int forward, int first, int64_t high, int64_t wide,
                       tgi_graph **out, tgi_err *err)
{
    const char *way = forward ? "forward_" : "backward_";
    const int64_t h = high / 8, width = wide / 8;
    tgi_draft d;
    int part[3], n = 0;
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    const int s = tgi_draft_input(&d, "s", C, h, width);
    part[n++] = s;
    if (forward)
        part[n++] = tgi_draft_input(&d, "back", C, h, width);
    if (first) {
        /* Nothing came before: zeros, which add nothing. */
        const int zero = tgi_draft_scale(&d, s, 0);
        part[n++] = zero;
        tgi_draft_output(&d, backbone(&t, way, n, part));
        return tgi_draft_finish(&d, out, err);
    }
    int before[2];
    before[0] = tgi_draft_input(&d, "one before", C, h, width);
    before[1] = tgi_draft_input(&d, "two before", C, h, width);
    const int aligned = align(&t, way, s, before);
    part[n++] = aligned;
    tgi_draft_output(&d, tgi_draft_binary(&d, "Add", backbone(&t, way, n, part), aligned));
    return tgi_draft_finish(&d, out, err);
}

/* ---- Decoder ----------------------------------------------------------------------------- */

/* A convolution, doubled in size, a convolution. */
static int enlarge(const tgi_trained *t, int x, const char *name, int64_t c, int64_t to,
                   int64_t h, int64_t w)
{
    char full[64];
    snprintf(full, sizeof full, "%s.0", name);
    x = leaky(t, tgi_trained_same(t, x, full, c, c, 3));
    snprintf(full, sizeof full, "%s.2.conv", name);
    return tgi_trained_same(t, tgi_draft_enlarge(t->draft, x, h, w), full, c, to, 3);
}

tg_status tgi_pp_decode(const tgi_weights *w, int64_t high, int64_t wide, tgi_graph **out,
                        tgi_err *err)
{
    static const char *const name[3] = {"s", "back", "forward"};
    tgi_draft d;
    int in[3];
    tgi_draft_begin(&d);
    const tgi_trained t = {&d, w};
    for (int i = 0; i < 3; i++)
        in[i] = tgi_draft_input(&d, name[i], C, high / 8, wide / 8);
    const int edge = tgi_draft_input(&d, "e1", 64, high / 4, wide / 4);
    int x = tgi_trained_same(&t, tgi_draft_concat(&d, 2, in + 1), "feat_prop_module.fusion",
                             2 * C, C, 1);
    x = tgi_draft_binary(&d, "Add", x, in[0]);
    x = leaky(&t, enlarge(&t, x, "decoder2", C, 64, high / 4, wide / 4));
    x = tgi_draft_binary(&d, "Add", x, edge);
    x = leaky(&t, enlarge(&t, x, "decoder1", 64, 32, high / 2, wide / 2));
    tgi_draft_output(&d, enlarge(&t, x, "upsample", 32, 2, high, wide));
    return tgi_draft_finish(&d, out, err);
}
