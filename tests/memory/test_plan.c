/* What the planner promises about memory, without running anything: the arena is as small as
 * lifetimes allow, and row streaming makes a deep network small and cheap. */
#include "engine/plan/choose.h"
#include "tests/memory/ref_unet.h"
#include "tests/planned.h"

#define MIB ((size_t)1 << 20)

static const char *const models[] = {"unet2d_nuclei_broad", "fmd_noise2noise_unet",
                                     "kair_dncnn25",        "span_x2_nomosuni",
                                     "compact_x2_nomosuni", "fsrcnn_x2",
                                     "super_resolution_10", "sci_low_light"};

/* ---- The arena --------------------------------------------------------------------------- */

static void arena_of(const char *name, const tgi_stage *stage, int64_t cut_y, int64_t cut_x,
                     int64_t band, double *worst)
{
    tgi_tiling t;
    tgi_err e = {0};
    const int64_t cut[3] = {1, cut_y, cut_x};
    CHECK_OK(tgi_tiling_make(stage, cut, band, 2, NULL, &t, &e), e);
    const double ratio = (double)t.arena_bytes / (double)t.lower_bound_bytes;
    CHECK(ratio >= 1.0);
    if (ratio > 1.02)
        fprintf(stderr, "%s: cut %lldx%lld, band %lld: arena is %.4f of the lower bound\n",
                name, (long long)cut_y, (long long)cut_x, (long long)band, ratio);
    CHECK(ratio <= 1.02);
    *worst = ratio > *worst ? ratio : *worst;
    tgi_tiling_free(&t);
}

static void arena_of_graph(const char *name, const tgi_graph *g)
{
    static const int64_t sizes[][2] = {{512, 512}, {1024, 3072}, {2048, 8192}};
    static const int64_t cuts[][2] = {{0, 0}, {0, 512}, {0, 208}, {512, 512}, {64, 64}};
    static const int64_t bands[] = {1, 2, 8, 16, 32, 64, 128, 256};
    double worst = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        planned p = planned_open(g, sizes[s][0], sizes[s][1]);
        for (size_t c = 0; p.one && c < sizeof cuts / sizeof cuts[0]; c++)
            for (size_t b = 0; b < sizeof bands / sizeof bands[0]; b++)
                if (bands[b] >= 8 || sizes[s][0] == 512) /* thin bands: many steps to walk */
                    arena_of(name, p.one, cuts[c][0], cuts[c][1], bands[b], &worst);
        planned_close(&p);
    }
    printf("%-24s arena at most %.4f of the lower bound\n", name, worst);
}

static void test_the_arena_is_within_two_percent_of_what_lives_together(void)
{
    char path[768];
    for (size_t i = 0; i <= sizeof models / sizeof models[0]; i++) {
        tgi_err e = {0};
        tgi_graph *g = NULL;
        const int own = i == sizeof models / sizeof models[0];
        snprintf(path, sizeof path, "%s/data/models/%s/model.onnx", TG_SHARED_DATA,
                 own ? "" : models[i]);
        if (own)
            snprintf(path, sizeof path, "%s/models/tegula_denoise.onnx", TG_SOURCE_DIR);
        if (!tg_has(path))
            continue;
        CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
        CHECK_OK(tgi_graph_finish(g, 0, &e), e);
        arena_of_graph(own ? "own" : models[i], g);
        tgi_graph_free(&g);
    }
}

static void test_the_reference_networks_arena_is_within_two_percent_too(void)
{
    tgi_graph *g = ref_unet(1);
    arena_of_graph("reference U-Net", g);
    tgi_graph_free(&g);
}

/* ---- Row streaming ----------------------------------------------------------------------- */

#define SIDE 4096

static size_t arena_bytes(const tgi_stage *stage, int64_t cut_y, int64_t cut_x, int64_t band,
                          double *recomputed)
{
    tgi_tiling t;
    tgi_err e = {0};
    const int64_t cut[3] = {1, cut_y, cut_x};
    CHECK_OK(tgi_tiling_make(stage, cut, band, 2, NULL, &t, &e), e);
    const size_t bytes = t.arena_bytes;
    *recomputed = tgi_tiling_recomputed(&t);
    tgi_tiling_free(&t);
    return bytes;
}

static void test_full_width_bands_take_a_tenth_of_the_memory_and_recompute_nothing(void)
{
    tgi_graph *g = ref_unet(2);
    planned p = planned_open(g, SIDE, SIDE);
    double again = 1;
    const size_t whole = arena_bytes(p.one, 0, 0, SIDE, &again);
    for (int64_t band = 16; band <= 32; band *= 2) {
        const size_t bytes = arena_bytes(p.one, 0, 0, band, &again);
        printf("%d wide, bands of %lld: %.1f MiB of %.1f MiB untiled (%.3f)\n", SIDE,
               (long long)band, (double)bytes / MIB, (double)whole / MIB,
               (double)bytes / (double)whole);
        CHECK((double)bytes <= 0.10 * (double)whole);
        CHECK(again == 0.0);
    }
    planned_close(&p);
    tgi_graph_free(&g);
}

/* Two kinds of square tile. The usual one runs the network on core and halo as if they were an
 * image and cuts the core out: everything is computed over the whole halo. Ours computes of
 * each value only what the core needs, which saves most of it; strips then save the rest. */
#define HALO 96 /* of this network, a multiple of its divisor 16 */

typedef struct square {
    int64_t side;
    double work; /* operations, of the whole image's */
} square;

static square best_usual_square(const tgi_graph *g, size_t limit)
{
    square best = {0, 1e30};
    for (int64_t padded = 2 * HALO + 16; padded <= SIDE; padded += 16) {
        planned n = planned_open(g, padded, padded);
        double again;
        const size_t bytes = arena_bytes(n.one, 0, 0, padded, &again);
        planned_close(&n);
        if (bytes > limit)
            break;
        const double t = (double)(padded - 2 * HALO), p = (double)padded;
        best = (square){padded - 2 * HALO, p * p / (t * t)};
    }
    return best;
}

static square best_own_square(const tgi_stage *stage, size_t limit)
{
    square best = {0, 1e30};
    double again;
    for (int64_t t = 64; t <= SIDE && arena_bytes(stage, t, t, SIDE, &again) <= limit; t += 32)
        if (1 + again < best.work)
            best = (square){t, 1 + again};
    return best;
}

static void strips_against_squares(const tgi_graph *g, const tgi_stage *stage, size_t limit)
{
    const tgi_choose_args a = {.stage = stage,
                               .threads = 2,
                               .limit_bytes = limit,
                               .unit = {1, 1, 64},
                               .flops_per_second = 3e11};
    tgi_choice c;
    tgi_err e = {0};
    CHECK_OK(tgi_choose(&a, &c, &e), e);
    const square usual = best_usual_square(g, limit), own = best_own_square(stage, limit);
    const double strip = 1 + tgi_tiling_recomputed(&c.tiling);
    printf(
        "%3.0f MiB: strips of %lld do %.3f of the work, usual tiles of %lld %.3f (%.2f times), "
        "our own of %lld %.3f (%.2f times)\n",
        (double)limit / MIB, (long long)c.tiling.cut[2], strip, (long long)usual.side,
        usual.work, usual.work / strip, (long long)own.side, own.work, own.work / strip);
    CHECK(c.tiling.arena_bytes <= limit);
    CHECK(usual.work / strip >= 1.6);
    CHECK(own.work / strip >= 1.1);
    tgi_tiling_free(&c.tiling);
}

static void test_at_192_MiB_strips_save_a_third_of_the_work_of_usual_square_tiles(void)
{
    tgi_graph *g = ref_unet(3);
    planned p = planned_open(g, SIDE, SIDE);
    strips_against_squares(g, p.one, 192 * MIB); /* for the activations alone */
    strips_against_squares(g, p.one, 192 * MIB - p.net->packed_bytes); /* and the weights */
    planned_close(&p);
    tgi_graph_free(&g);
}

int main(void)
{
    RUN(test_the_arena_is_within_two_percent_of_what_lives_together);
    RUN(test_the_reference_networks_arena_is_within_two_percent_too);
    RUN(test_full_width_bands_take_a_tenth_of_the_memory_and_recompute_nothing);
    RUN(test_at_192_MiB_strips_save_a_third_of_the_work_of_usual_square_tiles);
    return TEST_END();
}
