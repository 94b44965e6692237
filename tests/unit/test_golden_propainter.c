/* Stages of ProPainter give what the official code gave, within the tolerances of the conformance data: motion (RAFT), its
 * completion, image propagation and a step of the generator, with weights in the form they are published in. Arguments: a
 * folder with these files (tools/draw_weights.c); one of first, motion, completion, step: that alone of what networks compute.
 *
 * Built twice: for the processor, and for a device (TG_TEST_DEVICE), which computes the networks in float32 and in halves. */
#include "engine/base/json.h"
#include "engine/inpaint/pp_complete.h"
#include "engine/inpaint/pp_flow.h"
#include "engine/inpaint/pp_generate.h"
#include "engine/inpaint/pp_weights.h"
#include "io/npy.h"
#include "kernels/backend.h"
#include "tests/networks_on.h"

#include <math.h>

#define DATA TG_SHARED_DATA "/conformance/propainter/stages"
#define H 128
#define W 160
/* Of the norm, on a device. Halves: twice what was measured. */
#define FLOWS ((golden_share){1e-5, 0}) /* float32 whatever the others compute in */
/* Of one iteration: so small that the golden's own sums in float32 are off by 2e-5 of float64 (`tolerance_basis`), the
 * processor's as much. */
#define FIRST_FLOWS ((golden_share){4e-5, 0})
#define COMPLETED ((golden_share){1e-5, 3e-4})
#define FUSED ((golden_share){1e-5, 2e-3})
#define PICTURES ((golden_share){1e-5, 2.5e-3})

static tgi_json *stages_index;
static tgi_weights *weights[3];
static tgi_threads *pool;

/* ---- Data -------------------------------------------------------------------------------- */

static void *load(const char *file, tgi_desc *d)
{
    char path[512];
    void *data = NULL;
    tgi_err err = {0};
    snprintf(path, sizeof path, DATA "/%s.npy", file);
    CHECK_OK(tgi_npy_load(path, 0, d, &data, &err), err);
    return data;
}

static const tgi_json *case_of(const char *name)
{
    const tgi_json *c = tgi_json_first(tgi_json_get(stages_index, "cases"));
    for (const char *is = ""; c; c = tgi_json_next(c))
        if (tgi_json_str(tgi_json_get(c, "name"), &is) && strcmp(is, name) == 0)
            break;
    return c;
}

/* Part `at` of what the file has of an output, `n` numbers. */
static void compare(const char *name, const char *output, int64_t at, size_t n,
                    const float *got, golden_share share)
{
    char file[128], what[128];
    tgi_desc d;
    snprintf(file, sizeof file, "%s/%s", name, output);
    snprintf(what, sizeof what, "%s %s[%d]", name, output, (int)at);
    float *all = load(file, &d);
    CHECK(all);
    if (all)
        golden_check(what, tgi_json_get(tgi_json_get(case_of(name), "tolerance"), output),
                     networks_element(), share, got, all + (size_t)at * n, n);
    tgi_free(all);
}

static void *room(size_t bytes)
{
    return networks_room(bytes);
}

static const tgi_kernel_set *kernels(void)
{
    return tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT));
}

static unsigned flags; /* of networks */

static tgi_pp_at at_size(int64_t h, int64_t w)
{
    return (tgi_pp_at){kernels(), h, w, 2, flags, networks_of(0)};
}

/* ---- Motion ------------------------------------------------------------------------------ */

static void motion_of(const char *name, int64_t h, int64_t w, int iterations, const char *up)
{
    char file[64];
    tgi_desc d;
    tgi_err e = {0};
    const tgi_pp_at all = at_size(h, w), at = tgi_pp_at_on(&all, networks_of(1));
    tgi_pp_flow *f = NULL;
    snprintf(file, sizeof file, "%s/frames", name);
    uint8_t *frames = load(file, &d);
    CHECK_OK(tgi_pp_flow_new(weights[0], &at, iterations, &f, &e), e);
    if (f) {
        networks_memory m;
        float *there = room((size_t)(2 * h * w) * sizeof *there),
              *back = room((size_t)(2 * h * w) * sizeof *back);
        networks_take(&m, f->schedule, f->schedule->block_bytes, pool);
        CHECK_OK(tgi_pp_flow_open(f, &m.m, &e), e);
        CHECK_OK(tgi_pp_flow_find(f, 0, frames, frames + h * w * 3, there, back, &e), e);
        compare(name, up, 0, (size_t)(2 * h * w), there, iterations > 1 ? FLOWS : FIRST_FLOWS);
        tgi_pp_flow_free(&f);
        free(there);
        free(back);
        networks_give(&m);
    }
    tgi_free(frames);
}

static void test_first_motions_are_the_official_ones(void)
{
    motion_of("raft_160x128", 128, 160, 1, "flow_up_iter1");
    motion_of("raft_168x136", 136, 168, 1, "flow_up_iter1");
}

static void test_motions_are_the_official_ones(void)
{
    motion_of("raft_160x128", 128, 160, 20, "flow_up_last");
    motion_of("raft_168x136", 136, 168, 20, "flow_up_last");
}

/* ---- Completion -------------------------------------------------------------------------- */

typedef struct completion {
    float *flow[2], *made[2];
    uint8_t *bits[6];
} completion;

static tg_status found(void *user, int back, int64_t k, const float **out, tgi_err *err)
{
    (void)err;
    *out = ((const completion *)user)->flow[back] + k * 2 * H * W;
    return TG_OK;
}

static tg_status mask(void *user, int64_t k, const uint8_t **out, tgi_err *err)
{
    (void)err;
    *out = ((const completion *)user)->bits[k];
    return TG_OK;
}

static tg_status keep(void *user, int back, int64_t k, const float *motion, tgi_err *err)
{
    (void)err;
    memcpy(((const completion *)user)->made[back] + k * 2 * H * W, motion,
           2 * H * W * sizeof *motion);
    return TG_OK;
}

static void test_completed_motions_are_the_official_ones(void)
{
    const char *name = "flow_completion_bmx";
    const tgi_pp_window w = {0, 5, 0, 5};
    const tgi_pp_complete_io io = {.motion = found, .mask = mask, .put = keep};
    tgi_pp_complete_io own = io;
    completion c = {0};
    const tgi_pp_at at = at_size(H, W);
    tgi_pp_complete *p = NULL;
    tgi_err e = {0};
    tgi_desc d;
    c.flow[0] = load("flow_completion_bmx/flows_f", &d);
    c.flow[1] = load("flow_completion_bmx/flows_b", &d);
    uint8_t *masks = load("flow_completion_bmx/masks", &d);
    for (int i = 0; i < 6; i++) {
        c.bits[i] = room(tgi_pp_mask_bytes(H, W));
        tgi_pp_pack_bits(masks + i * H * W, H, W, c.bits[i]);
    }
    for (int i = 0; i < 2; i++)
        c.made[i] = room(5 * 2 * H * W * sizeof(float));
    own.user = &c;
    CHECK_OK(tgi_pp_complete_new(weights[1], &at, 5, &p, &e), e);
    if (p) {
        networks_memory m;
        networks_take(&m, p->schedule, tgi_pp_complete_bytes(p), pool);
        CHECK_OK(tgi_pp_complete_open(p, &m.m, &e), e);
        CHECK_OK(tgi_pp_complete_run(p, &w, &own, &e), e);
        for (int i = 0; i < 5; i++) {
            compare(name, "comb_f", i, 2 * H * W, c.made[0] + i * 2 * H * W, COMPLETED);
            compare(name, "comb_b", i, 2 * H * W, c.made[1] + i * 2 * H * W, COMPLETED);
        }
        tgi_pp_complete_free(&p);
        networks_give(&m);
    }
    for (int i = 0; i < 2; i++) {
        tgi_free(c.flow[i]);
        free(c.made[i]);
    }
    for (int i = 0; i < 6; i++)
        free(c.bits[i]);
    tgi_free(masks);
}

/* ---- Image propagation ------------------------------------------------------------------- */

/* Both walks over six frames, the motions completed; the frames, for free(). */
static void walk_both_ways(void *item[6], float *const flow[2])
{
    tgi_pp_updated at[6];
    for (int t = 5; t >= 0; t--) {
        at[t] = tgi_pp_updated_at(item[t], H, W);
        if (t < 5)
            tgi_pp_fill_step(&(tgi_pp_fill){pool, H, W, &at[t], &at[t + 1],
                                            flow[0] + t * 2 * H * W, flow[1] + t * 2 * H * W});
    }
    for (int t = 1; t < 6; t++)
        tgi_pp_fill_step(&(tgi_pp_fill){pool, H, W, &at[t], &at[t - 1],
                                        flow[1] + (t - 1) * 2 * H * W,
                                        flow[0] + (t - 1) * 2 * H * W});
}

/* Pixels and masks that differ: none may, though the data allow some. */
static void propagated(const char *name, const char *there, const char *back, int stored)
{
    char file[96];
    tgi_desc d;
    void *item[6];
    float *flow[2] = {load(there, &d), load(back, &d)};
    uint8_t *frames = load("image_propagation_net_bmx/frames", &d),
            *masks = load("flow_completion_bmx/masks", &d);
    snprintf(file, sizeof file, "%s/updated_masks", name);
    uint8_t *open = load(file, &d);
    snprintf(file, sizeof file, "%s/updated_frames", name);
    float *want = load(file, &d);
    int64_t off = 0, filled = 0;
    for (int t = 0; t < 6; t++) {
        uint8_t *bits = room(tgi_pp_mask_bytes(H, W));
        item[t] = room(tgi_pp_updated_bytes(H, W));
        const tgi_pp_updated to = tgi_pp_updated_at(item[t], H, W);
        tgi_pp_pack_bits(masks + t * H * W, H, W, bits);
        tgi_pp_fill_begin(&to, frames + t * H * W * 3, bits, H, W);
        free(bits);
    }
    walk_both_ways(item, flow);
    for (int t = 0; t < 6; t++) {
        const tgi_pp_updated is = tgi_pp_updated_at(item[t], H, W);
        for (int64_t i = 0; i < H * W; i++) {
            const int zero = tgi_pp_bit(is.zero, W, i / W, i % W),
                      left = tgi_pp_bit(is.open, W, i / W, i % W);
            off += left != open[t * H * W + i];
            filled += masks[t * H * W + i] && !left;
            for (int c = 0; c < 3 && (stored < 0 || stored == t); c++) {
                const float v = zero ? 0 : tgi_pp_float(is.rgb[3 * i + c]);
                off += v != want[((stored < 0 ? t : 0) * 3 + c) * H * W + i];
            }
        }
        free(item[t]);
    }
    printf("     %s: %d differ, %d pixels were filled\n", name, (int)off, (int)filled);
    CHECK_EQ(off, 0);
    CHECK(filled > 0);
    for (int i = 0; i < 2; i++)
        tgi_free(flow[i]);
    tgi_free(frames);
    tgi_free(masks);
    tgi_free(open);
    tgi_free(want);
}

static void test_propagated_frames_are_the_official_ones(void)
{
    propagated("image_propagation_synth_bmx", "image_propagation_synth_bmx/flows_f",
               "image_propagation_synth_bmx/flows_b", -1);
    propagated("image_propagation_net_bmx", "flow_completion_bmx/comb_f",
               "flow_completion_bmx/comb_b", 3);
}

/* Motions agree by the size of the motion back where the one to there leads, not of any other. */
static void test_motions_agree_by_what_lies_there(void)
{
    const int64_t n = H * W;
    float *to = room((size_t)n * 2 * sizeof *to), *back = room((size_t)n * 2 * sizeof *back);
    void *item[2];
    tgi_pp_updated at[2];
    uint8_t *bits = room(tgi_pp_mask_bytes(H, W)), *rgb = room((size_t)n * 3);
    for (int64_t i = 0; i < n; i++) { /* 12 to the right; back 11.2 there, and 40 elsewhere */
        const int far = i % W >= 92;
        to[i] = 12;
        to[n + i] = back[n + i] = 0;
        back[i] = far ? -11.2f : 40;
    }
    for (int k = 0; k < 2; k++) {
        memset(bits, 0, tgi_pp_mask_bytes(H, W));
        if (k == 0)
            bits[64 * (W / 8) + 10] =
                0x0f; /* columns 80 to 83 of row 64, which lead to 92 to 95 */
        if (k == 0)
            bits[64 * (W / 8) + 5] = 0x0f; /* columns 40 to 43 */
        memset(rgb, 50 + 100 * k, (size_t)n * 3);
        item[k] = room(tgi_pp_updated_bytes(H, W));
        at[k] = tgi_pp_updated_at(item[k], H, W);
        tgi_pp_fill_begin(&at[k], rgb, bits, H, W);
    }
    tgi_pp_fill_step(&(tgi_pp_fill){pool, H, W, &at[0], &at[1], to, back});
    for (int64_t x = 0; x < W; x++) {
        const int near = x >= 80 && x < 84, wrong = x >= 40 && x < 44;
        /* 0.8 apart: 0.64 < 0.01 * (144 + 125.44) + 0.5 */
        CHECK_EQ(at[0].rgb[(64 * W + x) * 3], near ? 150 : 50);
        CHECK_EQ(tgi_pp_bit(at[0].open, W, 64, x), wrong);
    }
    free(to);
    free(back);
    free(bits);
    free(rgb);
    free(item[0]);
    free(item[1]);
}

/* ---- A step of the generator ------------------------------------------------------------- */

typedef struct generation {
    void *item[6];
    float *flow[2];
    void *seen[6];
    float *made;
} generation;

static tg_status updated(void *user, int64_t k, tgi_pp_updated *out, tgi_err *err)
{
    (void)err;
    *out = tgi_pp_updated_at(((const generation *)user)->item[k], H, W);
    return TG_OK;
}

static tg_status completed(void *user, int back, int64_t k, const float **out, tgi_err *err)
{
    (void)err;
    *out = ((const generation *)user)->flow[back] + k * 2 * H * W;
    return TG_OK;
}

static tg_status seen(void *user, int64_t k, int make, void **out, int *there, tgi_err *err)
{
    (void)err;
    *out = !make ? NULL : ((const generation *)user)->seen[k];
    *there = 0;
    return TG_OK;
}

static void release(void *user, int64_t k)
{
    (void)user;
    (void)k;
}

static tg_status made(void *user, int64_t k, const float *picture, tgi_err *err)
{
    (void)err;
    memcpy(((const generation *)user)->made + k * 3 * H * W, picture,
           3 * H * W * sizeof *picture);
    return TG_OK;
}

/* Rows of blocks of lanes as dense channels; free(). */
static float *dense(const float *from, int lanes, int64_t c, int64_t h, int64_t w)
{
    const int64_t row = tgi_sched_row(lanes, c, w);
    float *to = room((size_t)(c * h * w) * sizeof *to);
    for (int64_t k = 0; k < c; k++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++)
                to[(k * h + y) * w + x] =
                    from[y * row + (k / lanes * w + x) * lanes + k % lanes];
    return to;
}

/* An updated frame in its compact form: pixels are those of 8 bits, or 0. */
static void *compact(const float *frame, const uint8_t *open, const uint8_t *hidden)
{
    void *item = room(tgi_pp_updated_bytes(H, W));
    const tgi_pp_updated to = tgi_pp_updated_at(item, H, W);
    uint8_t *zero = room(H * W);
    for (int64_t i = 0; i < H * W; i++) {
        zero[i] = frame[i] == 0 && frame[H * W + i] == 0 && frame[2 * H * W + i] == 0;
        for (int c = 0; c < 3; c++) {
            const float v = frame[c * H * W + i];
            to.rgb[3 * i + c] = (uint8_t)lrintf((v + 1) / 2 * 255);
            CHECK(zero[i] || tgi_pp_float(to.rgb[3 * i + c]) == v);
        }
    }
    tgi_pp_pack_bits(zero, H, W, to.zero);
    tgi_pp_pack_bits(open, H, W, to.open);
    tgi_pp_pack_bits(hidden, H, W, to.hidden);
    free(zero);
    return item;
}

/* A window is masked where a neighbour hides something in it; references do not count. */
static void check_windows(const tgi_pp_generate *g)
{
    tgi_desc d;
    uint8_t *pool_of = load("generator_bmx/mask_pool", &d);
    const tgi_pp_tokens *n = &g->tokens;
    for (int64_t w = 0; w < n->win_h * n->win_w; w++) {
        int masked = 0;
        for (int64_t i = 0; i < 4 * n->high * n->wide; i++) {
            const int64_t y = i / n->wide % n->high, x = i % n->wide;
            if (y / TGI_PP_WINDOW_H == w / n->win_w && x / TGI_PP_WINDOW_W == w % n->win_w)
                masked |= pool_of[i] != 0;
        }
        CHECK_EQ(g->windows[w] != 0, masked);
    }
    tgi_free(pool_of);
}

static void test_a_step_is_the_official_one(void)
{
    const char *name = "generator_bmx";
    const tgi_pp_step s = {.mid = 2, .lo = 0, .hi = 4, .n_refs = 2, .ref = {4, 5}};
    tgi_pp_sorts has = {0};
    generation n = {0};
    const tgi_pp_generate_io io = {&n, updated, completed, seen, release, made};
    const tgi_pp_at at = at_size(H, W);
    tgi_pp_generate *g = NULL;
    tgi_err e = {0};
    tgi_desc d;
    float *frames = load("image_propagation_synth_bmx/updated_frames", &d);
    uint8_t *hidden = load("flow_completion_bmx/masks", &d);
    uint8_t *open = load("generator_bmx/updated_masks", &d);
    n.flow[0] = load("image_propagation_synth_bmx/flows_f", &d);
    n.flow[1] = load("image_propagation_synth_bmx/flows_b", &d);
    n.made = room(4 * 3 * H * W * sizeof(float));
    for (int i = 0; i < 6; i++)
        n.item[i] = compact(frames + i * 3 * H * W, open + i * H * W, hidden + i * H * W);
    has[6] = 1 << 3;
    CHECK_OK(tgi_pp_generate_new(weights[2], &at, has, 4, &g, &e), e);
    if (g) {
        networks_memory m;
        networks_take(&m, g->schedule, tgi_pp_generate_bytes(g), pool);
        for (int i = 0; i < 6; i++)
            n.seen[i] = room(tgi_pp_seen_bytes(g));
        CHECK_OK(tgi_pp_generate_open(g, &m.m, &e), e);
        CHECK_OK(tgi_pp_generate_run(g, &s, &io, &e), e);
        for (int i = 0; i < 3; i++)
            compare(name, "ds_flows_f", i, 2 * 32 * 40, g->flow[0][i], FLOWS);
        check_windows(g);
        if (g->joined[1].type == TG_DTYPE_NONE) { /* it lies with the host */
            float *fused = dense(g->joined[1].at, kernels()->lanes, 128, 32, 40);
            compare(name, "prop_fused", 0, 128 * 32 * 40, fused, FUSED);
            free(fused);
        }
        for (int i = 0; i < 4; i++)
            compare(name, "out", i, 3 * H * W, n.made + i * 3 * H * W, PICTURES);
        tgi_pp_generate_free(&g);
        networks_give(&m);
    }
    for (int i = 0; i < 6; i++) {
        free(n.item[i]);
        free(n.seen[i]);
    }
    free(n.made);
    for (int i = 0; i < 2; i++)
        tgi_free(n.flow[i]);
    tgi_free(frames);
    tgi_free(hidden);
    tgi_free(open);
}

/* All networks share one block. RAFT's encoder holds its frame, for its norm sees all of it, and still the motions take
 * less of the block than the smallest step of the generator that a film of two frames has: holding less of the encoder
 * would free nothing. */
static void test_motions_never_set_the_peak(void)
{
    static const int64_t size[4][2] = {{240, 432}, {720, 1280}, {1080, 1920}, {2160, 3840}};
    for (int i = 0; i < 4; i++) {
        const tgi_pp_at at = at_size(size[i][0], size[i][1]);
        tgi_pp_flow *f = NULL;
        tgi_pp_generate *g = NULL;
        tgi_pp_sorts has = {0};
        tgi_err e = {0};
        has[2] = 1 << 1;
        CHECK_OK(tgi_pp_flow_new(weights[0], &at, 1, &f, &e), e);
        CHECK_OK(tgi_pp_generate_new(weights[2], &at, has, 2, &g, &e), e);
        if (f && g) {
            while (tgi_pp_seen_shrink(g))
                continue;
            const double flow = (double)f->schedule->block_bytes / 1048576,
                         step = (double)tgi_pp_generate_bytes(g) / 1048576;
            printf("     %dx%d: motions %.1f MiB, a step %.1f MiB\n", (int)size[i][1],
                   (int)size[i][0], flow, step);
            CHECK(flow < step);
        }
        tgi_pp_flow_free(&f);
        tgi_pp_generate_free(&g);
    }
}

static const char *part; /* that alone; NULL: all */

static int wants(const char *name)
{
    return !part || strcmp(part, name) == 0;
}

/* float32 whatever the others compute in. */
static void test_motions(void)
{
    if (wants("first"))
        RUN(test_first_motions_are_the_official_ones);
    if (wants("motion"))
        RUN(test_motions_are_the_official_ones);
}

static void test_others(void)
{
    if (wants("completion"))
        RUN(test_completed_motions_are_the_official_ones);
    if (wants("step"))
        RUN(test_a_step_is_the_official_one);
}

static void test_on_processor(void)
{
    for (int exact = 0; exact < 2; exact++) {
        flags = exact ? TGI_NET_EXACT : 0;
        test_motions();
        test_others();
    }
    RUN(test_motions_never_set_the_peak);
    RUN(test_propagated_frames_are_the_official_ones);
    RUN(test_motions_agree_by_what_lies_there);
}

static void test_on_device(void)
{
    flags = networks_flags();
    test_motions();
    test_others();
    if (networks_in(TG_DTYPE_F16))
        test_others();
}

int main(int argc, char **argv)
{
    tgi_err e = {0};
    if (argc < 2)
        return 2;
    if (!networks_in(TG_DTYPE_F32))
        return 77;
    if (!tg_has(DATA "/index.json"))
        return TEST_END();
    CHECK_OK(tgi_json_load(DATA "/index.json", &stages_index, &e), e);
    CHECK_OK(tgi_pp_weights_open(argv[1], weights, &e), e);
    CHECK_OK(tgi_threads_open(2, &pool, &e), e);
    part = argc > 2 ? argv[2] : NULL;
    if (golden_on_device())
        test_on_device();
    else
        test_on_processor();
    tgi_threads_close(&pool);
    for (int i = 0; i < 3; i++)
        tgi_weights_close(&weights[i]);
    tgi_json_free(&stages_index);
    return TEST_END();
}
