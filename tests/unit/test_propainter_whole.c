/* A film that comes and goes frame by frame is made as one that lies in memory whole: ProPainter by the method of
 * propainter.h beside a statement of the published script that does one stage after the other over all frames, keeps
 * everything and makes every frame's features in every step anew. Bit for bit, for every branch of the schedule; the first
 * setting also with as few items in memory as can be. Arguments: a folder with the three files of weights (tools/draw_weights.c)
 * and how many frames of a drawn film, or "clips": those of the conformance data, with their settings. Long. */
#include "engine/base/arith.h"
#include "engine/base/json.h"
#include "engine/inpaint/pp_complete.h"
#include "engine/inpaint/pp_flow.h"
#include "engine/inpaint/pp_generate.h"
#include "engine/inpaint/pp_weights.h"
#include "engine/inpaint/propainter.h"
#include "io/npy.h"
#include "kernels/backend.h"
#include "tests/tg_test.h"

#define DATA TG_SHARED_DATA "/conformance/propainter"
#define PIXELS (high * wide)
#define MOTION (2 * (size_t)PIXELS)
#define FEATURES_AT_ONCE 256
#define AGAIN 3

static tgi_weights *weights[3];
static tgi_threads *pool;
static int64_t n_frames, high = TGI_PP_SMALLEST, wide = TGI_PP_SMALLEST;
static int iterations = 1;
static uint8_t *clip, *clip_hidden; /* of all frames; NULL: the film is drawn */

static void *room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!p)
        abort();
    memset(p, 0xff, bytes); /* no number: what is read before it was written shows */
    return p;
}

static tgi_pp_at at_size(void)
{
    return (tgi_pp_at){tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), high, wide, 2, 0, NULL};
}

/* ---- A film ------------------------------------------------------------------------------ */

/* A pattern that drifts, with grain; a box that walks over it, and is away in some frames. */
static void draw(int64_t k, uint8_t *rgb, uint8_t *hidden)
{
    uint32_t grain = 1234567u + 7919u * (uint32_t)k;
    const int64_t left = 12 + 3 * k % 60, top = 30 + k % 37, away = k % 23 > 19;
    if (clip) {
        memcpy(rgb, clip + 3 * k * PIXELS, 3 * (size_t)PIXELS);
        memcpy(hidden, clip_hidden + k * PIXELS, (size_t)PIXELS);
        return;
    }
    for (int64_t y = 0; y < high; y++)
        for (int64_t x = 0; x < wide; x++) {
            uint8_t *p = rgb + 3 * (y * wide + x);
            const int64_t u = x + k, v = y + k / 2;
            grain = grain * 1664525u + 1013904223u;
            p[0] = (uint8_t)(u * 5 % 200 + (grain >> 27));
            p[1] = (uint8_t)(v * 3 % 180 + (u / 16 + v / 16) % 2 * 60);
            p[2] = (uint8_t)((u * v / 8) % 256);
            hidden[y * wide + x] =
                !away && x >= left && x < left + 40 && y >= top && y < top + 34;
        }
}

/* ---- All of it in memory ----------------------------------------------------------------- */

typedef struct whole {
    tgi_pp_flow *flow;
    tgi_pp_complete *complete;
    tgi_pp_generate *generate;
    uint8_t **rgb, **bits; /* of each frame */
    float **motion[2], **completed[2];
    void **updated;
    void *features[FEATURES_AT_ONCE];
    int n_features;
    uint8_t **made;
} whole;

static void **table(int64_t n, size_t bytes)
{
    void **t = room((size_t)n * sizeof *t);
    for (int64_t i = 0; i < n; i++)
        t[i] = room(bytes);
    return t;
}

static void drop(void *t, int64_t n)
{
    void **all = t;
    for (int64_t i = 0; i < n; i++)
        free(all[i]);
    free(all);
}

static tg_status found(void *user, int back, int64_t k, const float **out, tgi_err *err)
{
    (void)err;
    *out = ((const whole *)user)->motion[back][k];
    return TG_OK;
}

static tg_status mask(void *user, int64_t k, const uint8_t **out, tgi_err *err)
{
    (void)err;
    *out = ((const whole *)user)->bits[k];
    return TG_OK;
}

static int64_t keep_from, keep_until; /* of a window of completion */

static tg_status keep(void *user, int back, int64_t k, const float *motion, tgi_err *err)
{
    (void)err;
    if (k >= keep_from && k < keep_until)
        memcpy(((const whole *)user)->completed[back][k], motion, MOTION * sizeof *motion);
    return TG_OK;
}

static tg_status updated(void *user, int64_t k, tgi_pp_updated *out, tgi_err *err)
{
    (void)err;
    *out = tgi_pp_updated_at(((const whole *)user)->updated[k], high, wide);
    return TG_OK;
}

static tg_status completed(void *user, int back, int64_t k, const float **out, tgi_err *err)
{
    (void)err;
    *out = ((const whole *)user)->completed[back][k];
    return TG_OK;
}

static tg_status seen(void *user, int64_t k, int make, void **out, int *made, tgi_err *err)
{
    whole *w = user;
    (void)k;
    (void)make;
    (void)err;
    if (w->n_features == FEATURES_AT_ONCE)
        abort();
    if (!w->features[w->n_features])
        w->features[w->n_features] = room(tgi_pp_seen_bytes(w->generate));
    *out = w->features[w->n_features++];
    *made = 0;
    return TG_OK;
}

static void release(void *user, int64_t k)
{
    (void)k;
    ((whole *)user)->n_features = 0; /* of neighbours once all are released */
}

static int64_t *times; /* that a frame was a neighbour */

static tg_status put(void *user, int64_t k, const float *picture, tgi_err *err)
{
    const whole *w = user;
    const tgi_pp_updated is = tgi_pp_updated_at(w->updated[k], high, wide);
    (void)err;
    for (int64_t i = 0; i < PIXELS; i++)
        for (int c = 0; c < 3; c++) {
            const float v = (picture[c * PIXELS + i] + 1) / 2 * 255;
            const int hidden = tgi_pp_bit(is.hidden, wide, i / wide, i % wide);
            const int now = hidden ? v < 0 ? 0 : v > 255 ? 255 : (int)v : w->rgb[k][3 * i + c];
            uint8_t *to = &w->made[k][3 * i + c];
            *to = (uint8_t)(times[k] ? (*to + now) / 2 : now);
        }
    times[k]++;
    return TG_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Motions [s, e) together, of which [f, until) are kept. */
static void complete_window(whole *w, int64_t s, int64_t e, int64_t f, int64_t until)
{
    const tgi_pp_complete_io io = {w, found, mask, keep};
    const tgi_pp_window all = {s, e, s, e};
    tgi_err err = {0};
    keep_from = f;
    keep_until = until;
    CHECK_OK(tgi_pp_complete_run(w->complete, &all, &io, &err), err);
}

static void fill(whole *w, void **item, int64_t t, int64_t from, int back)
{
    const int64_t pair = least(t, from);
    const tgi_pp_updated now = tgi_pp_updated_at(item[t], high, wide),
                         before = tgi_pp_updated_at(item[from], high, wide);
    tgi_pp_fill_step(&(tgi_pp_fill){pool, high, wide, &now, &before, w->completed[back][pair],
                                    w->completed[!back][pair]});
}

static void propagate_window(whole *w, int64_t s, int64_t e, int64_t f, int64_t until)
{
    void **item = table(n_frames, tgi_pp_updated_bytes(high, wide));
    for (int64_t t = s; t < e; t++) {
        const tgi_pp_updated to = tgi_pp_updated_at(item[t], high, wide);
        tgi_pp_fill_begin(&to, w->rgb[t], w->bits[t], high, wide);
    }
    for (int64_t t = e - 2; t >= s; t--)
        fill(w, item, t, t + 1, 0);
    for (int64_t t = s + 1; t < e; t++)
        fill(w, item, t, t - 1, 1);
    for (int64_t t = f; t < until; t++)
        memcpy(w->updated[t], item[t], tgi_pp_updated_bytes(high, wide));
    drop(item, n_frames);
}

static void in_windows(whole *w, int64_t count, int64_t length, int64_t pad,
                       void (*act)(whole *, int64_t, int64_t, int64_t, int64_t))
{
    if (count <= length)
        act(w, 0, count, 0, count);
    for (int64_t f = 0; count > length && f < count; f += length)
        act(w, f > pad ? f - pad : 0, least(count, f + length + pad), f,
            least(count, f + length));
}

/* The step around f: neighbours and references, as the published script lists them. */
static tgi_pp_step step_at(const tgi_pp_settings *s, int64_t f)
{
    const int64_t half = s->neighbor_length / 2, n = n_frames;
    tgi_pp_step step = {
        .mid = f, .lo = f > half ? f - half : 0, .hi = f + half + 1 < n ? f + half + 1 : n};
    int64_t from = 0, until = n;
    if (n > s->subvideo_length) {
        const int64_t reach = s->ref_stride * (s->subvideo_length / s->ref_stride / 2);
        from = f > reach ? f - reach : 0;
        until = least(n, f + reach);
    }
    for (int64_t i = from; i < until; i += s->ref_stride)
        if (i < step.lo || i >= step.hi)
            step.ref[step.n_refs++] = i;
    return step;
}

static void generate_all(whole *w, const tgi_pp_settings *s)
{
    const tgi_pp_generate_io io = {w, updated, completed, seen, release, put};
    const tgi_pp_at at = at_size();
    tgi_pp_sorts has = {0};
    int most = 0;
    tgi_err err = {0};
    for (int64_t f = 0; f < n_frames; f += s->neighbor_length / 2) {
        const tgi_pp_step p = step_at(s, f);
        has[p.hi - p.lo + p.n_refs] |= (uint64_t)1 << (p.hi - p.lo - 1);
        most = p.hi - p.lo > most ? (int)(p.hi - p.lo) : most;
    }
    CHECK_OK(tgi_pp_generate_new(weights[2], &at, has, most, &w->generate, &err), err);
    tgi_schedule_memory m = {.weights = room(w->generate->schedule->weight_bytes),
                             .block = room(tgi_pp_generate_bytes(w->generate)),
                             .pool = pool};
    CHECK_OK(tgi_pp_generate_open(w->generate, &m, &err), err);
    for (int64_t f = 0; f < n_frames && err.code == TG_OK; f += s->neighbor_length / 2) {
        const tgi_pp_step p = step_at(s, f);
        CHECK_OK(tgi_pp_generate_run(w->generate, &p, &io, &err), err);
    }
    tgi_pp_generate_free(&w->generate);
    free(m.weights);
    free(m.block);
    for (int i = 0; i < FEATURES_AT_ONCE; i++) {
        free(w->features[i]);
        w->features[i] = NULL;
    }
}

static void find_all(whole *w)
{
    const tgi_pp_at at = at_size();
    tgi_err err = {0};
    CHECK_OK(tgi_pp_flow_new(weights[0], &at, iterations, &w->flow, &err), err);
    tgi_schedule_memory m = {.weights = room(w->flow->schedule->weight_bytes),
                             .block = room(w->flow->schedule->block_bytes),
                             .pool = pool};
    CHECK_OK(tgi_pp_flow_open(w->flow, &m, &err), err);
    for (int64_t k = 0; k + 1 < n_frames && err.code == TG_OK; k++) {
        tgi_pp_flow_forget(w->flow);
        CHECK_OK(tgi_pp_flow_find(w->flow, k, w->rgb[k], w->rgb[k + 1], w->motion[0][k],
                                  w->motion[1][k], &err),
                 err);
    }
    tgi_pp_flow_free(&w->flow);
    free(m.weights);
    free(m.block);
}

static void complete_all(whole *w, const tgi_pp_settings *s)
{
    const tgi_pp_at at = at_size();
    tgi_err err = {0};
    CHECK_OK(tgi_pp_complete_new(weights[1], &at, least(n_frames - 1, s->subvideo_length + 10),
                                 &w->complete, &err),
             err);
    tgi_schedule_memory m = {.weights = room(w->complete->schedule->weight_bytes),
                             .block = room(tgi_pp_complete_bytes(w->complete)),
                             .pool = pool};
    CHECK_OK(tgi_pp_complete_open(w->complete, &m, &err), err);
    in_windows(w, n_frames - 1, s->subvideo_length, 5, complete_window);
    tgi_pp_complete_free(&w->complete);
    free(m.weights);
    free(m.block);
}

static whole begin_whole(void)
{
    whole w = {0};
    uint8_t *hidden = room(PIXELS);
    w.rgb = (uint8_t **)table(n_frames, 3 * PIXELS);
    w.bits = (uint8_t **)table(n_frames, tgi_pp_mask_bytes(high, wide));
    w.updated = table(n_frames, tgi_pp_updated_bytes(high, wide));
    w.made = (uint8_t **)table(n_frames, 3 * PIXELS);
    for (int i = 0; i < 2; i++) {
        w.motion[i] = (float **)table(n_frames, MOTION * sizeof(float));
        w.completed[i] = (float **)table(n_frames, MOTION * sizeof(float));
    }
    for (int64_t k = 0; k < n_frames; k++) {
        draw(k, w.rgb[k], hidden);
        tgi_pp_pack_bits(hidden, high, wide, w.bits[k]);
    }
    free(hidden);
    find_all(&w);
    return w;
}

static void end_whole(whole *w)
{
    drop(w->rgb, n_frames);
    drop(w->bits, n_frames);
    drop(w->updated, n_frames);
    drop(w->made, n_frames);
    for (int i = 0; i < 2; i++) {
        drop(w->motion[i], n_frames);
        drop(w->completed[i], n_frames);
    }
}

/* ---- As it comes ------------------------------------------------------------------------- */

static tg_status frame(void *user, int64_t k, void *pixels, uint8_t *hidden, tgi_err *err)
{
    (void)user;
    (void)err;
    draw(k, pixels, hidden);
    return TG_OK;
}

static tg_status reach(void *user, int64_t k, int *end, tgi_err *err)
{
    (void)user;
    (void)err;
    *end = k >= n_frames;
    return TG_OK;
}

/* `endless`: it is not known where the film ends. `scratch`: as few items in memory as can be. */
static void compare(const whole *w, const tgi_pp_settings *s, int endless, const char *scratch)
{
    tgi_propainter_how how = {.height = high,
                              .width = wide,
                              .hi = endless ? TGI_PP_NO_END : n_frames,
                              .set = *s,
                              .iterations = iterations,
                              .threads = 2,
                              .raft = weights[0],
                              .completion = weights[1],
                              .generator = weights[2],
                              .be = at_size().be,
                              .scratch = scratch,
                              .frame = frame,
                              .reach = endless ? reach : NULL};
    tgi_method *m = NULL;
    tgi_err err = {0};
    int64_t off = 0, frames = 0;
    CHECK_OK(tgi_propainter_new(&how, &m, &err), err);
    while (m && scratch && m->ops->shrink(m))
        continue;
    for (int64_t i = 0; i < n_frames + AGAIN && m && err.code == TG_OK; i++) {
        /* Then some amidst the film, as after a stop. */
        const int64_t k = i < n_frames ? i : n_frames * 2 / 3 + i - n_frames;
        tgi_propagated is = {0};
        CHECK_OK(m->ops->make(m, k, &is, &err), err);
        if (err.code != TG_OK)
            break;
        int64_t here = 0;
        for (int64_t n = 0; n < 3 * PIXELS; n++)
            here += ((const uint8_t *)is.pixels)[n] != w->made[k][n];
        off += here;
        frames += here != 0;
    }
    printf("     %d frames, %d %d %d%s%s: %d samples of %d frames differ\n", (int)n_frames,
           (int)s->subvideo_length, (int)s->neighbor_length, (int)s->ref_stride,
           endless ? ", no end known" : "", scratch ? ", most in a file" : "", (int)off,
           (int)frames);
    CHECK_EQ(off, 0);
    if (m)
        m->ops->free(&m);
}

/* All in memory beside as it comes: `endless`: its end is not known; `filed`: once more with most of it in a file. */
static void both_ways(whole *w, const tgi_pp_settings *s, int endless, int filed)
{
    complete_all(w, s);
    in_windows(w, n_frames, least(100, s->subvideo_length), 10, propagate_window);
    memset(times, 0, (size_t)n_frames * sizeof *times);
    generate_all(w, s);
    compare(w, s, endless, NULL);
    if (filed)
        compare(w, s, 0, ".");
}

static void test_as_it_comes_is_as_in_memory(void)
{
    const tgi_pp_settings set[] = {
        {n_frames, 20, 60}, /* T <= L; windows of 100 where they are fewer than that */
        {80, 20, 10},       /* as published */
        {(n_frames - 2) / 2, 20, 40}, /* a last window of one or two */
        {6, 10, 3},                   /* windows shorter than what stands around them */
        {12, 20, 13},                 /* no references */
    };
    whole w = begin_whole();
    times = room((size_t)n_frames * sizeof *times);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        both_ways(&w, &set[i], i % 2 == 1, i == 1);
    free(times);
    end_whole(&w);
}

static int number(const tgi_json *of, const char *name)
{
    double v = 0;
    CHECK(tgi_json_num(tgi_json_get(of, name), &v));
    return (int)v;
}

static void *load(const tgi_json *from, const char *name, tgi_desc *d)
{
    char path[512];
    const char *file = "";
    void *data = NULL;
    tgi_err err = {0};
    CHECK(tgi_json_str(tgi_json_get(tgi_json_get(from, name), "file"), &file));
    snprintf(path, sizeof path, DATA "/e2e/%s", file);
    CHECK_OK(tgi_npy_load(path, 0, d, &data, &err), err);
    return data;
}

static void one_clip(const tgi_json *of)
{
    const tgi_json *is = tgi_json_get(of, "params"), *from = tgi_json_get(of, "inputs");
    const tgi_pp_settings s = {number(is, "subvideo_length"), number(is, "neighbor_length"),
                               number(is, "ref_stride")};
    tgi_desc d = {0}, hidden = {0};
    clip = load(from, "frames", &d);
    clip_hidden = load(from, "masks", &hidden);
    n_frames = d.dim[0];
    high = d.dim[1];
    wide = d.dim[2];
    iterations = number(is, "raft_iter");
    whole w = begin_whole();
    times = room((size_t)n_frames * sizeof *times);
    both_ways(&w, &s, 0, 1);
    free(times);
    end_whole(&w);
    tgi_free(clip);
    tgi_free(clip_hidden);
}

static void test_clips_as_they_come(void)
{
    tgi_json *index = NULL;
    tgi_err err = {0};
    int n = 0;
    CHECK_OK(tgi_json_load(DATA "/e2e/index.json", &index, &err), err);
    for (const tgi_json *c = tgi_json_first(tgi_json_get(index, "cases")); c;
         c = tgi_json_next(c), n++)
        one_clip(c);
    CHECK_EQ(n, 2);
    tgi_json_free(&index);
}

int main(int argc, char **argv)
{
    tgi_err e = {0};
    if (argc < 3)
        return 2;
    if (!tg_has(DATA "/weights.csv"))
        return TEST_END();
    n_frames = strtoll(argv[2], NULL, 10);
    CHECK_OK(tgi_pp_weights_open(argv[1], weights, &e), e);
    CHECK_OK(tgi_threads_open(2, &pool, &e), e);
    if (n_frames > 0)
        RUN(test_as_it_comes_is_as_in_memory);
    else
        RUN(test_clips_as_they_come);
    tgi_threads_close(&pool);
    for (int i = 0; i < 3; i++)
        tgi_weights_close(&weights[i]);
    return TEST_END();
}
