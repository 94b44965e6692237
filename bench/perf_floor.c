/* perf_floor.c - a floor under the speed of each kernel, relative to this machine.
 *
 *   perf_floor [--plant X] [--scale X] [--isa NAME] [--thorough]
 *
 * A kernel's rate on one thread is divided by that of a loop of nothing but vector
 * multiply-adds (of the kernel's numbers: float32, bfloat16), taken in turns with it: the share does not depend on clock or generation as
 * long as the processor keeps its balance of arithmetic to caches, and the layers are small
 * enough for the second-level cache. Time is the thread's processor time, so other work on the
 * machine disturbs through caches and clock only; and of a window of short turns the best of
 * each side counts (of the loop also the window before: what disturbs it must not help). A
 * kernel passes in the first window in which it stands above its floor. What SECONDS_MOST have
 * not brought there is asked again behind all others, PASSES times in all: neighbours that hold
 * the caches for seconds took a quarter from the kernels that load more than they multiply.
 *
 * Floors are FLOOR_OF_SHARE of the share measured on a quiet core of Zen 5: a loss of 1.5 is
 * below, one of 1.3 is not. --scale multiplies them, for processors of another
 * balance; --thorough spends all the time and shows the best share. --plant X shows that they
 * are tight: each kernel is run so often that it loses a factor of X, and the test must fail
 * (it is one of the tests).
 *
 * Exit: 0 all above, 1 one below, 77 no calibration loop for this processor. */
#include "bench/layer_case.h"
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOOR_OF_SHARE 0.72
#define SECONDS_MOST 0.8
#define PASSES 4
#define SECONDS_PLANTED 0.3 /* a planted loss has to be seen, not to be forgiven */
#define ROUNDS_LEAST 3      /* of a window, before it can pass */
#define WINDOW 8            /* rounds: the clock may change between windows */
#define TURN_SECONDS 0.004
#define PLANT_RUNS 10 /* of a turn, at least, when a loss is planted */

typedef struct row {
    layer l;
    const char *variant;
    double share[TGI_ISA_COUNT]; /* of the loop, as measured; 0: not guarded */
} row;

/* Shares in the order portable, AVX2, AVX-512. */
static const row rows[] = {
    {{"3x3 32->32", 32, 32, 0, 64, 64, 3, 1, 1, 0, 0}, "conv_direct", {0, 0.905, 0.955}},
    {{"3x3 128->128", 128, 128, 0, 32, 32, 3, 1, 1, 0, 0}, "conv_direct", {0, 0.915, 0.965}},
    {{"3x3 97->64", 97, 64, 0, 32, 32, 3, 1, 1, 0, 0}, "conv_direct", {0, 0.920, 0.955}},
    {{"3x3 64->64", 64, 64, 0, 64, 64, 3, 1, 1, 0, 0}, "conv_winograd", {0, 3.19, 2.7}},
    {{"3x3 256->256", 256, 256, 0, 32, 32, 3, 1, 1, 0, 0}, "conv_winograd", {0, 2.78, 3.0}},
    {{"1x1 64->64", 64, 64, 0, 64, 64, 1, 1, 1, 0, 0}, "conv_direct", {0, 0.820, 0.875}},
    {{"stem 3x3 1->32", 1, 32, 0, 64, 64, 3, 1, 1, 0, 0}, "conv_stem", {0, 0.74, 0.65}},
    {{"few 3x3 64->1", 64, 1, 0, 64, 64, 3, 1, 1, 0, 0}, "conv_few", {0, 0.46, 0.335}},
    {{"depthwise 3x3 64", 64, 64, 0, 32, 32, 3, 1, 64, 0, 0},
     "conv_depthwise",
     {0, 0.437, 0.345}},
    {{"transposed 2x2 128->64", 128, 64, 0, 32, 32, 2, 2, 1, 1, 0},
     "conv_transpose",
     {0, 0.797, 0.825}},
    {{"g8 3x3 128->128", 128, 128, 0, 32, 32, 3, 1, 8, 0, 0}, "conv_grouped", {0, 0.75, 0.79}},
    {{"g32 3x3 128->128", 128, 128, 0, 32, 32, 3, 1, 32, 0, 0},
     "conv_grouped",
     {0, 0.36, 0.22}},
    {{"transposed 4x4 64->3", 64, 3, 0, 48, 48, 4, 2, 1, 1, 0},
     "conv_transpose_few",
     {0, 0.72, 0.33}},
    {{"bf16 3x3 128->128", 128, 128, 0, 32, 32, 3, 1, 1, 0, 0}, "conv_bf16", {0, 0, 0.94}},
    {{"bf16 3x3 16->16", 16, 16, 0, 64, 64, 3, 1, 1, 0, 0}, "conv_bf16", {0, 0, 0.755}},
    {{"bf16 1x1 128->128", 128, 128, 0, 64, 64, 1, 1, 1, 0, 0}, "conv_bf16", {0, 0, 0.845}},
    {{"bf16 stride 2 64->128", 64, 128, 0, 64, 64, 3, 2, 1, 0, 0}, "conv_bf16", {0, 0, 0.90}},
    {{"bf16 T 2x2 128->64", 128, 64, 0, 32, 32, 2, 2, 1, 1, 0},
     "conv_transpose_bf16",
     {0, 0, 0.845}},
};

typedef struct settings {
    double plant, scale;
    int thorough;
    const tgi_kernel_set *be;
} settings;

/* `best`: rate of the best turn so far. */
static void kernel_turn(layer_case *k, int reps, double plant, double *best)
{
    const int run = (int)(reps * plant + 0.5);
    const double t0 = measure_now();
    for (int i = 0; i < run; i++)
        layer_case_run(k);
    const double rate = k->flops * reps / (measure_now() - t0);
    *best = fmax(*best, rate);
}

static int repetitions(layer_case *k, double plant)
{
    layer_case_run(k);
    const double t0 = measure_now();
    layer_case_run(k);
    const int reps = (int)(TURN_SECONDS / (measure_now() - t0)) + 1;
    return plant > 1 && reps < PLANT_RUNS ? PLANT_RUNS : reps;
}

/* Turns until a window is above `floor`, or the time is over; `thorough` uses it all. Returns
 * the best share of a window. */
static double best_share(layer_case *k, const settings *s, double (*peak)(tgi_isa),
                         double floor, int *rounds)
{
    double best = 0, kernel = 0, loop = 0, loop_before = 0; /* of this window, of the last */
    const int reps = repetitions(k, s->plant);
    const double end = measure_now() + (s->plant > 1 ? SECONDS_PLANTED : SECONDS_MOST);
    for (int r = 0; r < ROUNDS_LEAST || measure_now() < end; r++) {
        if (r % WINDOW == 0) {
            loop_before = loop;
            kernel = loop = 0;
        }
        loop = fmax(loop, peak(s->be->isa));
        kernel_turn(k, reps, s->plant, &kernel);
        if (r % WINDOW >= ROUNDS_LEAST - 1)
            best = fmax(best, kernel / fmax(loop, loop_before));
        *rounds = r + 1;
        if (best >= floor && !s->thorough)
            break;
    }
    return best;
}

/* Products of bfloat16 numbers: a feature of its own, which not every processor has. */
static int is_bf16(const row *r)
{
    return strstr(r->variant, "bf16") != NULL;
}

/* 1: the kernel stands above its floor, or is not there. */
static int above(const row *r, const settings *s)
{
    layer_case k;
    int rounds = 0;
    double share = 0;
    const layer_choice want = {.variant = r->variant, .kinds = is_bf16(r) ? TGI_KIND_BF16 : 0};
    const double floor = r->share[s->be->isa] * FLOOR_OF_SHARE * s->scale;
    if (is_bf16(r) && (floor <= 0 || !tgi_isa_has_bf16(s->be->isa)))
        return 1;
    if (layer_case_open(&k, &r->l, s->be, &want, NULL))
        share =
            best_share(&k, s, is_bf16(r) ? measure_peak_bf16 : measure_peak, floor, &rounds);
    else
        fprintf(stderr, "%s does not take %s\n", r->variant, r->l.name);
    layer_case_close(&k);
    printf("%-8s%-26s%-18s%6.1f %% of the loop, floor %5.1f %%, %3d rounds%s\n", s->be->name,
           r->l.name, r->variant, 100 * share, 100 * floor, rounds,
           share >= floor ? "" : "  BELOW");
    return share >= floor;
}

#define ROWS (sizeof rows / sizeof *rows)

static int all_above(settings *s, tgi_isa isa)
{
    int good[ROWS] = {0}, below = ROWS;
    s->be = tgi_backend_for(isa);
    if (!s->be)
        return 1;
    for (int pass = 0; below && pass < (s->plant > 1 ? 1 : PASSES); pass++) {
        below = 0;
        for (size_t i = 0; i < ROWS; i++) {
            if (!good[i])
                good[i] = above(&rows[i], s);
            below += !good[i];
        }
    }
    return below == 0;
}

int main(int argc, char **argv)
{
    settings s = {.plant = 1, .scale = 1};
    tgi_isa cap = TGI_ISA_COUNT;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--thorough") == 0)
            s.thorough = 1;
        else if (strcmp(argv[i], "--plant") == 0)
            s.plant = strtod(value, NULL), i++;
        else if (strcmp(argv[i], "--scale") == 0)
            s.scale = strtod(value, NULL), i++;
        else if (strcmp(argv[i], "--isa") == 0 && tgi_isa_parse(value, &cap))
            i++;
        else
            layer_die("usage: perf_floor [--plant X] [--scale X] [--isa NAME] [--thorough]");
    }
    const tgi_isa best = tgi_isa_detect(cap);
    measure_clock(CLOCK_THREAD_CPUTIME_ID);
    if (tgi_isa_emulated(best)) {
        printf("skipped: this build computes %s with smaller vectors\n", tgi_isa_name(best));
        return 77;
    }
    if (measure_peak(best) <= 0) {
        printf("skipped: no calibration loop for %s\n", tgi_isa_name(best));
        return 77;
    }
    int good = all_above(&s, best);
    if (best > TGI_ISA_AVX2 && cap == TGI_ISA_COUNT)
        good &= all_above(&s, TGI_ISA_AVX2);
    return good ? 0 : 1;
}
