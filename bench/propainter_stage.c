/* propainter_stage.c - a stage of ProPainter over the arrays of its peer, in turns on demand; a part of the family `propainter`.
 *
 *   propainter_stage [--isa NAME] [--threads N] [--iterations N] [--refs N] STAGE DIR WEIGHTS
 *
 * STAGE: raft (the motions of all pairs, both ways), completion (of all motions, both ways), generator (one step over all
 * frames, the last --refs of them references). DIR: what `propainter_peer.py --keep` wrote: frames.npy, masks.npy,
 * flows_f.npy, flows_b.npy, and its results out0.npy, out1.npy. Says `ready` with how far the results are apart, relative L2,
 * as a line of JSON; runs one turn for each line on stdin and says its seconds; at stdin's end VmHWM of this process. */
#include "bench/measure.h"
#include "engine/base/mem.h"
#include "engine/inpaint/pp_complete.h"
#include "engine/inpaint/pp_flow.h"
#include "engine/inpaint/pp_generate.h"
#include "engine/inpaint/pp_weights.h"
#include "io/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *folder;
    int threads, iterations, refs;
    int64_t n, high, wide; /* frames and their size */
    const tgi_kernel_set *be;
    tgi_threads *pool;
    tgi_weights *weights[3];
    uint8_t *frames, *masks, **bits;
    float *flow[2], *made[2]; /* of the stage: motions both ways, or pictures in the first */
    size_t made_floats;       /* of each of them */
    tgi_pp_flow *find;
    tgi_pp_complete *complete;
    tgi_pp_generate *generate;
    void **item;
    void **features;
} s;

static void die(const tgi_err *e)
{
    fprintf(stderr, "propainter_stage: %s\n", e->text);
    exit(1);
}

static void must(tg_status st, const tgi_err *e)
{
    if (st != TG_OK)
        die(e);
}

static void *load(const char *name, tgi_desc *d)
{
    char path[4096];
    void *data = NULL;
    tgi_err e = {0};
    snprintf(path, sizeof path, "%s/%s.npy", s.folder, name);
    must(tgi_npy_load(path, 0, d, &data, &e), &e);
    return data;
}

static int64_t pixels(void)
{
    return s.high * s.wide;
}

static tgi_pp_at at_size(void)
{
    return (tgi_pp_at){s.be, s.high, s.wide, s.threads, 0, NULL};
}

/* As the command does. */
static void let_pages_go(void *weights)
{
    tgi_weights_rest(weights);
}

static tgi_schedule_memory memory_of(int file, size_t weight_bytes, size_t block_bytes)
{
    return (tgi_schedule_memory){.weights = measure_room(weight_bytes),
                                 .block = measure_room(block_bytes),
                                 .pool = s.pool,
                                 .packed = let_pages_go,
                                 .packed_user = s.weights[file]};
}

/* ---- Motion ------------------------------------------------------------------------------ */

static void open_raft(void)
{
    const tgi_pp_at at = at_size();
    tgi_err e = {0};
    must(tgi_pp_flow_new(s.weights[0], &at, s.iterations, &s.find, &e), &e);
    const tgi_schedule_memory m =
        memory_of(0, s.find->schedule->weight_bytes, s.find->schedule->block_bytes);
    must(tgi_pp_flow_open(s.find, &m, &e), &e);
}

static void turn_raft(void)
{
    tgi_err e = {0};
    tgi_pp_flow_forget(s.find);
    for (int64_t k = 0; k + 1 < s.n; k++) {
        const uint8_t *first = s.frames + k * pixels() * 3;
        must(tgi_pp_flow_find(s.find, k, first, first + pixels() * 3,
                              s.made[0] + k * 2 * pixels(), s.made[1] + k * 2 * pixels(), &e),
             &e);
    }
}

/* ---- Completion -------------------------------------------------------------------------- */

static tg_status motion(void *user, int back, int64_t k, const float **out, tgi_err *err)
{
    (void)user;
    (void)err;
    *out = s.flow[back] + k * 2 * pixels();
    return TG_OK;
}

static tg_status mask(void *user, int64_t k, const uint8_t **out, tgi_err *err)
{
    (void)user;
    (void)err;
    *out = s.bits[k];
    return TG_OK;
}

static tg_status keep(void *user, int back, int64_t k, const float *m, tgi_err *err)
{
    (void)user;
    (void)err;
    memcpy(s.made[back] + k * 2 * pixels(), m, (size_t)pixels() * 2 * sizeof *m);
    return TG_OK;
}

static void open_completion(void)
{
    const tgi_pp_at at = at_size();
    tgi_err e = {0};
    must(tgi_pp_complete_new(s.weights[1], &at, s.n - 1, &s.complete, &e), &e);
    const tgi_schedule_memory m =
        memory_of(1, s.complete->schedule->weight_bytes, tgi_pp_complete_bytes(s.complete));
    must(tgi_pp_complete_open(s.complete, &m, &e), &e);
}

static void turn_completion(void)
{
    const tgi_pp_window w = {0, s.n - 1, 0, s.n - 1};
    const tgi_pp_complete_io io = {NULL, motion, mask, keep};
    tgi_err e = {0};
    must(tgi_pp_complete_run(s.complete, &w, &io, &e), &e);
}

/* ---- A step of the generator ------------------------------------------------------------- */

static tg_status updated(void *user, int64_t k, tgi_pp_updated *out, tgi_err *err)
{
    (void)user;
    (void)err;
    *out = tgi_pp_updated_at(s.item[k], s.high, s.wide);
    return TG_OK;
}

static tg_status seen(void *user, int64_t k, int make, void **out, int *made, tgi_err *err)
{
    (void)user;
    (void)make;
    (void)err;
    *out = s.features[k];
    *made = 0; /* each turn makes them, as the peer does */
    return TG_OK;
}

static void release(void *user, int64_t k)
{
    (void)user;
    (void)k;
}

static tg_status put(void *user, int64_t k, const float *picture, tgi_err *err)
{
    (void)user;
    (void)err;
    memcpy(s.made[0] + k * 3 * pixels(), picture, (size_t)pixels() * 3 * sizeof *picture);
    return TG_OK;
}

static void open_generator(void)
{
    const tgi_pp_at at = at_size();
    tgi_pp_sorts has = {0};
    tgi_err e = {0};
    if (s.n > TGI_PP_MOST_FRAMES || s.refs >= s.n)
        exit(2);
    has[s.n] = (uint64_t)1 << (s.n - s.refs - 1);
    must(tgi_pp_generate_new(s.weights[2], &at, has, (int)s.n - s.refs, &s.generate, &e), &e);
    const tgi_schedule_memory m =
        memory_of(2, s.generate->schedule->weight_bytes, tgi_pp_generate_bytes(s.generate));
    must(tgi_pp_generate_open(s.generate, &m, &e), &e);
    s.item = measure_room((size_t)s.n * sizeof *s.item);
    s.features = measure_room((size_t)s.n * sizeof *s.features);
    for (int64_t k = 0; k < s.n; k++) {
        s.item[k] = measure_room(tgi_pp_updated_bytes(s.high, s.wide));
        s.features[k] = measure_room(tgi_pp_seen_bytes(s.generate));
        const tgi_pp_updated to = tgi_pp_updated_at(s.item[k], s.high, s.wide);
        tgi_pp_fill_begin(&to, s.frames + k * pixels() * 3, s.bits[k], s.high, s.wide);
    }
}

static void turn_generator(void)
{
    const tgi_pp_generate_io io = {NULL, updated, motion, seen, release, put};
    tgi_pp_step step = {.lo = 0, .hi = s.n - s.refs, .n_refs = s.refs};
    tgi_err e = {0};
    for (int i = 0; i < s.refs; i++)
        step.ref[i] = step.hi + i;
    must(tgi_pp_generate_run(s.generate, &step, &io, &e), &e);
}

/* ---- Turns ------------------------------------------------------------------------------- */

static const struct stage {
    const char *name;
    int results;
    void (*open)(void), (*turn)(void);
} all[] = {{"raft", 2, open_raft, turn_raft},
           {"completion", 2, open_completion, turn_completion},
           {"generator", 1, open_generator, turn_generator}};

static void load_inputs(void)
{
    tgi_desc d;
    s.frames = load("frames", &d);
    s.n = d.dim[0];
    s.high = d.dim[1];
    s.wide = d.dim[2];
    s.masks = load("masks", &d);
    s.flow[0] = load("flows_f", &d);
    s.flow[1] = load("flows_b", &d);
    s.bits = measure_room((size_t)s.n * sizeof *s.bits);
    for (int64_t k = 0; k < s.n; k++) {
        s.bits[k] = measure_room(tgi_pp_mask_bytes(s.high, s.wide));
        tgi_pp_pack_bits(s.masks + k * pixels(), s.high, s.wide, s.bits[k]);
    }
}

static void make_room(const struct stage *stage)
{
    s.made_floats =
        (size_t)(stage->results == 1 ? (s.n - s.refs) * 3 : (s.n - 1) * 2) * (size_t)pixels();
    for (int i = 0; i < stage->results; i++)
        s.made[i] = measure_room(s.made_floats * sizeof(float));
}

/* Of all results together, relative L2 from the peer's; < 0: they have another size. */
static double apart(const struct stage *stage)
{
    double off = 0, all_of_it = 0;
    for (int i = 0; i < stage->results; i++) {
        char name[16];
        tgi_desc d;
        snprintf(name, sizeof name, "out%d", i);
        float *want = load(name, &d);
        size_t n = 1;
        for (int k = 0; k < d.rank; k++)
            n *= (size_t)d.dim[k];
        if (n != s.made_floats)
            return -1;
        for (size_t k = 0; k < n; k++) {
            const double a = want[k], b = s.made[i][k];
            off += (a - b) * (a - b);
            all_of_it += a * a;
        }
        tgi_free(want);
    }
    return sqrt(off / (all_of_it > 0 ? all_of_it : 1));
}

static void serve(const struct stage *stage)
{
    char line[256];
    stage->open();
    stage->turn();
    printf("{\"event\":\"ready\",\"isa\":\"%s\",\"answer_relative_l2\":%.3g}\n", s.be->name,
           apart(stage));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const double t0 = measure_now();
        stage->turn();
        printf("{\"event\":\"turn\",\"seconds\":[%.6f]}\n", measure_now() - t0);
        fflush(stdout);
    }
    printf("{\"event\":\"end\",\"peak_rss_bytes\":%zu}\n", measure_peak_rss());
}

int main(int argc, char **argv)
{
    const struct stage *stage = NULL;
    tgi_isa isa = TGI_ISA_COUNT;
    tgi_err e = {0};
    s.threads = 2;
    s.iterations = 20;
    for (int i = 1; i + 1 < argc - 3; i += 2) {
        if (strcmp(argv[i], "--isa") == 0 && !tgi_isa_parse(argv[i + 1], &isa))
            return 2;
        if (strcmp(argv[i], "--threads") == 0)
            s.threads = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--iterations") == 0)
            s.iterations = atoi(argv[i + 1]);
        if (strcmp(argv[i], "--refs") == 0)
            s.refs = atoi(argv[i + 1]);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0] && argc > 3; i++)
        if (strcmp(argv[argc - 3], all[i].name) == 0)
            stage = &all[i];
    if (!stage) {
        fprintf(stderr, "propainter_stage [--threads N] ... STAGE DIR WEIGHTS\n");
        return 2;
    }
    s.folder = argv[argc - 2];
    s.be = tgi_backend_for(tgi_isa_detect(isa));
    must(tgi_threads_open(s.threads, &s.pool, &e), &e);
    must(tgi_pp_weights_open(argv[argc - 1], s.weights, &e), &e);
    load_inputs();
    make_room(stage);
    serve(stage);
    return 0;
}
