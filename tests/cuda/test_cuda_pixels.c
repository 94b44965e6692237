/* Staged pixels to activations and back on the device, against the loader's and the store's own
 * functions of the processor (kernels/pixels.h, tgi_pad_index), bit for bit: all types, samples
 * side by side and in planes, borders, volumes, NaN and what a type does not hold; frames of films
 * as Y, U and V, against the pixels that the processor makes of them; and moments of rows. */
#include "engine/base/arith.h"
#include "engine/plan/mapping.h"
#include "io/film_yuv.h"
#include "kernels/granule.h"
#include "kernels/ops/geometry.h"
#include "kernels/pixels.h"
#include "tests/cuda/device_run.h"
#include "tests/tg_test.h"

#include <math.h>

static const tgi_device_ops *ops;
static tgi_device *device;
static uint64_t seed = 88172645463325252ull;

static const tg_dtype types[] = {TG_DTYPE_U8,  TG_DTYPE_I8,  TG_DTYPE_U16, TG_DTYPE_I16,
                                 TG_DTYPE_U32, TG_DTYPE_I32, TG_DTYPE_U64, TG_DTYPE_I64,
                                 TG_DTYPE_F16, TG_DTYPE_F32, TG_DTYPE_F64, TG_DTYPE_BOOL};

/* Of the i-th case: types of activations that the device has, by turns. */
static tg_dtype element_of(int i)
{
    static const tg_dtype elements[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
    return elements[i % (device_has(TGI_DTYPE_BF16) ? 3 : 2)];
}

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory in a test\n");
        exit(1);
    }
    return p;
}

/* One rectangle of pixels and the activation it belongs to. */
typedef struct scene {
    tgi_device_step step;
    tgi_view view;
    tgi_box box; /* of the network */
    tgi_desc full;
    char *staged;
    size_t staged_bytes, view_elements;
    void *elements; /* of the view */
    uint32_t *counts;
    size_t n_counts;
} scene;

static int64_t slabs_of(const scene *s)
{
    return tgi_range_len(tgi_box_axis(&s->box, TGI_Z));
}

/* Element of the staged pixels: channel c of row y, column x of slab z, counted from the first
 * staged. */
static size_t staged_at(const scene *s, int64_t z, int64_t c, int64_t y, int64_t x)
{
    const tgi_device_pixels *p = &s->step.pixels;
    const int64_t planes = p->channels / p->together;
    const int64_t row = ((z * planes + c / p->together) * tgi_range_len(p->rows) + y);
    return (size_t)((row * tgi_range_len(p->cols) + x) * p->together + c % p->together);
}

static size_t view_at(const scene *s, int64_t c, int64_t z, int64_t y, int64_t x)
{
    const tgi_view *v = &s->view;
    return (size_t)(z % v->z_ring) * v->z_pitch + (size_t)(y % v->y_ring) * v->y_pitch +
           (size_t)((x - v->x0) * v->cb + c);
}

static float element(const scene *s, size_t at)
{
    float v;
    if (s->step.pixels.element == TG_DTYPE_F32)
        return ((const float *)s->elements)[at];
    if (s->step.pixels.element == TGI_DTYPE_BF16)
        device_from_elements(TGI_DTYPE_BF16, (const uint16_t *)s->elements + at, 1, &v);
    else
        tgi_pixels_load(TG_DTYPE_F16, (const uint16_t *)s->elements + at, 1, 1, 0, &v, 1);
    return v;
}

static void put_element(scene *s, size_t at, float v)
{
    if (s->step.pixels.element == TG_DTYPE_F32)
        ((float *)s->elements)[at] = v;
    else if (s->step.pixels.element == TGI_DTYPE_BF16)
        device_to_elements(TGI_DTYPE_BF16, &v, 1, (uint16_t *)s->elements + at);
    else
        tgi_pixels_store(TG_DTYPE_F16, &v, 1, 1, 1, 0, (uint16_t *)s->elements + at, 1);
}

/* A random box, types and shapes; room for all of it. */
static void scene_open(scene *s, tgi_device_step_kind kind, tg_dtype type,
                       tg_dtype element_type)
{
    static const int64_t channels[] = {1, 2, 3, 4, 5, 12};
    memset(s, 0, sizeof *s);
    tgi_device_pixels *p = &s->step.pixels;
    const int rank = (int)tg_rand_in(&seed, 4, 5);
    const int64_t c = channels[tg_rand_in(&seed, 0, 5)];
    p->type = type;
    p->element = element_type;
    p->channels = c;
    p->together = tg_rand_in(&seed, 0, 1) ? c : 1;
    s->box.rank = rank;
    s->box.ax[0] = (tgi_range){0, 1};
    s->box.ax[1] = (tgi_range){0, c};
    for (int k = 2; k < rank; k++) {
        const int64_t lo = tg_rand_in(&seed, 0, 9);
        s->box.ax[k] = (tgi_range){lo, lo + tg_rand_in(&seed, 1, k == rank - 1 ? 70 : 5)};
    }
    tgi_view *v = &s->view;
    *v = (tgi_view){.c = c, .cb = (int)tgi_whole_pixel(c)};
    v->x0 = s->box.ax[rank - 1].lo - tg_rand_in(&seed, 0, 2);
    v->width = s->box.ax[rank - 1].hi - v->x0 + tg_rand_in(&seed, 0, 2);
    v->y_ring = tgi_range_len(tgi_box_axis(&s->box, TGI_Y)) + tg_rand_in(&seed, 0, 2);
    v->z_ring = slabs_of(s);
    v->y_pitch = (size_t)tgi_align_up(v->width * v->cb, 8);
    v->block_pitch = v->z_pitch = v->y_pitch * (size_t)v->y_ring;
    s->view_elements = v->z_pitch * (size_t)v->z_ring;
    s->elements = must(tgi_malloc(TGI_TAG_MISC, s->view_elements * 4));
    memset(s->elements, 0xff, s->view_elements * 4);
    v->base = s->elements;
    s->step.kind = kind;
    s->step.call.box = s->box;
    for (int k = 0; k < rank; k++)
        s->step.call.most[k] = tgi_range_len(s->box.ax[k]) + (k > 1 ? 3 : 0);
}

static void stage(scene *s)
{
    tgi_device_pixels *p = &s->step.pixels;
    s->staged_bytes =
        (size_t)(slabs_of(s) * p->channels * tgi_range_len(p->rows) * tgi_range_len(p->cols)) *
        tgi_dtype_size(p->type);
    s->staged = must(tgi_malloc(TGI_TAG_MISC, s->staged_bytes + 64));
    memset(s->staged, 0xaa, s->staged_bytes + 64);
}

static void scene_close(scene *s)
{
    tgi_free(s->elements);
    tgi_free(s->staged);
    tgi_free(s->counts);
}

/* What a step names on the host, over there. */
typedef struct moved {
    void *host, *there;
    size_t bytes;
} moved;

static void *send(moved *m, void *host, size_t bytes)
{
    tgi_err err = {0};
    *m = (moved){.host = host, .bytes = bytes};
    CHECK_OK(ops->alloc(device, bytes + 64, &m->there, &err), err);
    CHECK_OK(ops->upload(device, TGI_QUEUE_COMPUTE, m->there, host, bytes, &err), err);
    return m->there;
}

static void fetch(moved *m)
{
    tgi_err err = {0};
    CHECK_OK(ops->download(device, TGI_QUEUE_COMPUTE, m->host, m->there, m->bytes, &err), err);
    CHECK_OK(ops->sync(device, NULL, &err), err);
    ops->release(device, m->there);
}

static void run_step(const tgi_device_step *step)
{
    tgi_device_program *p = NULL;
    size_t bytes = 0;
    tgi_err err = {0};
    CHECK_OK(ops->program_open(device, TGI_QUEUE_COMPUTE, step, 1, &p, &bytes, &err), err);
    CHECK_OK(ops->program_run(p, step, &err), err);
    CHECK_OK(ops->sync(device, NULL, &err), err);
    ops->program_close(&p);
}

/* On the device, everything there and back. */
static void run(scene *s)
{
    tgi_device_step step = s->step;
    tgi_view view = s->view;
    const tgi_operand operand = {1, &view};
    moved elements, staged, counts = {0};
    view.base = send(&elements, s->elements, s->view_elements * 4);
    step.pixels.at = send(&staged, s->staged, s->staged_bytes + 64);
    if (s->counts)
        step.pixels.counts = send(&counts, s->counts, s->n_counts * sizeof *s->counts);
    if (step.kind == TGI_STEP_LOAD)
        step.call.dst = &view;
    else
        step.call.src = &operand;
    run_step(&step);
    fetch(&elements);
    fetch(&staged);
    if (s->counts)
        fetch(&counts);
}

/* ---- Load -------------------------------------------------------------------------------- */

static const tgi_pad_mode pads[] = {TGI_PAD_REFLECT, TGI_PAD_EDGE, TGI_PAD_ZERO};
static const tgi_load_pad load_pads[] = {TGI_LOAD_REFLECT, TGI_LOAD_EDGE, TGI_LOAD_ZERO};

/* The region lies somewhere about the box; staged is what its pixels need. */
static tgi_pad_mode place_region(scene *s)
{
    tgi_device_pixels *p = &s->step.pixels;
    const int mode = (int)tg_rand_in(&seed, 0, 2);
    tgi_range *staged[3] = {NULL, &p->rows, &p->cols};
    p->pad = load_pads[mode];
    for (int i = 0; i < 3; i++) {
        const tgi_range r = tgi_box_axis(&s->box, i);
        p->shift[i] = r.lo + tg_rand_in(&seed, -2, 4);
        p->extent[i] = tg_rand_in(&seed, 1, tgi_range_len(r) + 2);
        if (staged[i])
            *staged[i] = (tgi_range){0, p->extent[i]};
    }
    /* what lies in front may be left out when nobody needs it */
    if (tgi_box_axis(&s->box, TGI_X).lo - p->shift[2] > 0 && p->extent[2] > 40)
        p->cols.lo = 0;
    p->mul = 0.37f;
    p->add = -3.1f;
    return pads[mode];
}

static float loaded(const scene *s, tgi_pad_mode pad, int64_t c, int64_t z, int64_t y,
                    int64_t x)
{
    const tgi_device_pixels *p = &s->step.pixels;
    const int64_t sz = s->box.rank == 5 ? tgi_pad_index(pad, z - p->shift[0], p->extent[0]) : 0;
    const int64_t sy = tgi_pad_index(pad, y - p->shift[1], p->extent[1]);
    const int64_t sx = tgi_pad_index(pad, x - p->shift[2], p->extent[2]);
    float v = 0;
    if (sz >= 0 && sy >= 0 && sx >= 0)
        tgi_pixels_load(p->type,
                        s->staged + staged_at(s, z - tgi_box_axis(&s->box, TGI_Z).lo, c,
                                              sy - p->rows.lo, sx - p->cols.lo) *
                                        tgi_dtype_size(p->type),
                        1, p->mul, p->add, &v, 1);
    if (p->element == TG_DTYPE_F16) {
        uint16_t h;
        tgi_pixels_store(TG_DTYPE_F16, &v, 1, 1, 1, 0, &h, 1);
        tgi_pixels_load(TG_DTYPE_F16, &h, 1, 1, 0, &v, 1);
    }
    device_round(p->element == TGI_DTYPE_BF16 ? TGI_DTYPE_BF16 : TG_DTYPE_F32, &v, 1);
    return v;
}

/* Pixels of which all types hold finite numbers. */
static void fill_staged(scene *s)
{
    const size_t size = tgi_dtype_size(s->step.pixels.type);
    for (size_t i = 0; i < s->staged_bytes / size; i++) {
        const float v = s->step.pixels.type == TG_DTYPE_BOOL ? (float)tg_rand_in(&seed, 0, 1)
                                                             : (float)tg_rand_in(&seed, 0, 120);
        tgi_pixels_store(s->step.pixels.type, &v, 1, 1, 1, 0, s->staged + i * size, 1);
    }
}

static int check_loaded(scene *s, tgi_pad_mode pad)
{
    int bad = 0;
    size_t seen = 0, poison = 0;
    for (int64_t z = tgi_box_axis(&s->box, TGI_Z).lo; z < tgi_box_axis(&s->box, TGI_Z).hi; z++)
        for (int64_t y = tgi_box_axis(&s->box, TGI_Y).lo; y < tgi_box_axis(&s->box, TGI_Y).hi;
             y++)
            for (int64_t x = tgi_box_axis(&s->box, TGI_X).lo;
                 x < tgi_box_axis(&s->box, TGI_X).hi; x++)
                for (int64_t c = 0; c < s->view.cb; c++, seen++) {
                    const float want = c < s->view.c ? loaded(s, pad, c, z, y, x) : 0.0f;
                    const float got = element(s, view_at(s, c, z, y, x));
                    bad += memcmp(&want, &got, sizeof got) != 0;
                }
    for (size_t i = 0; i < s->view_elements; i++)
        poison += isnan(element(s, i)) != 0;
    return bad + (poison + seen != s->view_elements);
}

static void test_pixels_are_loaded_as_the_loader_does(void)
{
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int i = 0; i < 24; i++) {
            scene s;
            scene_open(&s, TGI_STEP_LOAD, types[t], element_of(i));
            const tgi_pad_mode pad = place_region(&s);
            stage(&s);
            fill_staged(&s);
            run(&s);
            const int bad = check_loaded(&s, pad);
            if (bad)
                fprintf(stderr, "%s to %s: %d elements differ\n", tgi_dtype_name(types[t]),
                        tgi_dtype_name(s.step.pixels.element), bad);
            CHECK_EQ(bad, 0);
            scene_close(&s);
        }
}

/* ---- Frames as Y, U and V ---------------------------------------------------------------- */

/* A film's frame: numbers drawn, and the pixels that its reader makes of them. */
typedef struct drawn {
    tgi_film_pixels pixels;
    tgi_yuv yuv;
    char *planes, *image;
} drawn;

static void draw_frame(drawn *d, int depth, int log2_w, int log2_h, const char *place)
{
    tgi_err err = {0};
    tgi_av_info i = {.width = (int)tg_rand_in(&seed, 1, 70),
                     .height = (int)tg_rand_in(&seed, 1, 9)};
    const int size = depth > 8 ? 2 : 1;
    i.form = (tgi_av_form){.n_components = 3,
                           .n_planes = 3,
                           .wide = size - 1,
                           .log2_chroma_w = log2_w,
                           .log2_chroma_h = log2_h};
    snprintf(i.form.chroma_place, sizeof i.form.chroma_place, "%s", place);
    snprintf(i.form.range, sizeof i.form.range, "%s", tg_rand_in(&seed, 0, 1) ? "tv" : "pc");
    for (int c = 0; c < 3; c++)
        i.form.component[c] = (tgi_av_component){.plane = c, .step = size, .depth = depth};
    CHECK_OK(tgi_film_pixels_make(&i, &d->pixels, &err), err);
    CHECK(tgi_film_yuv_of(&d->pixels, &d->yuv));
    const size_t n = (size_t)i.width * (size_t)i.height * 3;
    d->planes = must(tgi_malloc(TGI_TAG_MISC, n * 2));
    d->image = must(tgi_malloc(TGI_TAG_MISC, n * 2));
    for (size_t k = 0; k < n; k++)
        if (size == 2)
            ((uint16_t *)(void *)d->planes)[k] =
                (uint16_t)tg_rand_in(&seed, 0, (1 << depth) - 1);
        else
            ((uint8_t *)d->planes)[k] = (uint8_t)tg_rand_in(&seed, 0, 255);
    void *room = must(tgi_malloc(TGI_TAG_MISC, tgi_film_row_room(&d->pixels)));
    for (int64_t y = 0; y < i.height; y++)
        tgi_film_yuv_row(&d->pixels, d->planes, y,
                         d->image + (size_t)(y * i.width * 3) * (size_t)size, room);
    tgi_free(room);
}

/* Of the rows and columns that are staged, the pixels: what the frame would have been sent as. */
static void stage_pixels(scene *s, const drawn *d)
{
    const tgi_device_pixels *p = &s->step.pixels;
    const size_t pixel = 3 * tgi_dtype_size(p->type);
    stage(s);
    char *at = s->staged;
    for (int64_t y = p->rows.lo; y < p->rows.hi; y++)
        for (int64_t x = p->cols.lo; x < p->cols.hi; x++, at += pixel)
            memcpy(at,
                   d->image + (size_t)((y + d->yuv.y0) * d->yuv.width + x + d->yuv.x0) * pixel,
                   pixel);
}

/* A box about a region of the frame. */
static tgi_pad_mode place_frame(scene *s, drawn *d)
{
    tgi_device_pixels *p = &s->step.pixels;
    const tgi_pad_mode mode = place_region(s);
    const int64_t size[] = {0, d->yuv.height, d->yuv.width};
    tgi_range *staged[] = {NULL, &p->rows, &p->cols};
    int64_t *origin[] = {NULL, &d->yuv.y0, &d->yuv.x0};
    for (int i = 1; i < 3; i++) {
        *origin[i] = tg_rand_in(&seed, 0, size[i] - 1);
        p->extent[i] = tg_rand_in(&seed, 1, size[i] - *origin[i]);
        const tgi_range r = tgi_box_axis(&s->box, i);
        *staged[i] = tgi_pad_hull(mode, (tgi_range){r.lo - p->shift[i], r.hi - p->shift[i]},
                                  p->extent[i]);
    }
    return mode;
}

/* A step that loads three channels of an image. */
static void open_frame(scene *s, tg_dtype type, int i)
{
    do {
        if (s->elements)
            scene_close(s);
        scene_open(s, TGI_STEP_LOAD, type, element_of(i));
    } while (s->view.c != 3 || s->box.rank != 4 || s->step.pixels.together != 3);
}

static void check_frame(int depth, int log2_w, int log2_h, const char *place, int i)
{
    drawn d;
    scene s = {0};
    draw_frame(&d, depth, log2_w, log2_h, place);
    open_frame(&s, d.pixels.dtype, i);
    const tgi_pad_mode pad = place_frame(&s, &d);
    const tgi_yuv_staged what = tgi_yuv_stage(&d.yuv, s.step.pixels.rows, s.step.pixels.cols);
    s.step.pixels.yuv = d.yuv;
    s.staged_bytes = tgi_yuv_bytes(&d.yuv, &what);
    s.staged = must(tgi_malloc(TGI_TAG_MISC, s.staged_bytes + 64));
    tgi_film_yuv_stage(&d.yuv, &what, d.planes, s.staged);
    run(&s);
    tgi_free(s.staged);
    stage_pixels(&s, &d);
    const int bad = check_loaded(&s, pad);
    if (bad)
        fprintf(stderr, "%d bits, %dx%d, %s to %s: %d elements differ\n", depth, 1 << log2_w,
                1 << log2_h, place, tgi_dtype_name(s.step.pixels.element), bad);
    CHECK_EQ(bad, 0);
    scene_close(&s);
    tgi_free(d.planes);
    tgi_free(d.image);
}

static void test_frames_become_the_pixels_that_their_reader_makes(void)
{
    static const int sizes[][2] = {{0, 0}, {1, 0}, {1, 1}, {2, 2}, {2, 0}, {0, 1}};
    static const int depths[] = {8, 9, 10, 12, 14, 16};
    static const char *const places[] = {"", "left", "center", "topleft", "bottom"};
    int i = 0;
    for (int n = 0; n < 6; n++)
        for (int d = 0; d < 6; d++)
            for (int k = 0; k < 5; k++, i++)
                check_frame(depths[d], sizes[n][0], sizes[n][1], places[k], i);
}

/* ---- Store ------------------------------------------------------------------------------- */

static float odd_value(void)
{
    static const float odd[] = {NAN,    -NAN,   INFINITY, -INFINITY, 0.5f,  1.5f, 2.5f,
                                -0.5f,  255.5f, 256.0f,   65504.0f,  -1e6f, 4e9f, 1e19f,
                                -1e19f, 1e-6f,  127.5f,   -128.5f,   1e30f, 0.0f};
    return tg_rand_in(&seed, 0, 3) ? 130.0f * tg_rand_unit(&seed)
                                   : odd[tg_rand_in(&seed, 0, 19)];
}

/* Every pixel of the view, in the box and beside it. */
static void fill_view(scene *s)
{
    for (size_t i = 0; i < s->view_elements; i++)
        put_element(s, i, odd_value());
}

/* One stored number; a NaN has any bits. */
static int same_number(tg_dtype t, const void *a, const void *b)
{
    float x = 0, y = 0;
    tgi_pixels_load(t, a, 1, 1, 0, &x, 1);
    tgi_pixels_load(t, b, 1, 1, 0, &y, 1);
    return memcmp(a, b, tgi_dtype_size(t)) == 0 || (isnan(x) && isnan(y));
}

/* What becomes of channel c. */
static float wanted(const scene *s, int64_t c, int64_t z, int64_t y, int64_t x)
{
    const tgi_pick pick = s->step.pixels.pick;
    const int last = pick == TGI_PICK_LAST_LARGEST || pick == TGI_PICK_LAST_SMALLEST;
    const int largest = pick == TGI_PICK_FIRST_LARGEST || pick == TGI_PICK_LAST_LARGEST;
    int64_t at = 0;
    if (pick == TGI_PICK_NONE)
        return element(s, view_at(s, c, z, y, x));
    for (int64_t k = 1; k < s->view.c; k++) {
        const float v = element(s, view_at(s, k, z, y, x)),
                    best = element(s, view_at(s, at, z, y, x));
        if ((largest ? v > best : v < best) || (last && v == best))
            at = k;
    }
    return (float)at;
}

static int check_stored(const scene *s)
{
    const tgi_device_pixels *p = &s->step.pixels;
    const tgi_range rz = tgi_box_axis(&s->box, TGI_Z), ry = tgi_box_axis(&s->box, TGI_Y),
                    rx = tgi_box_axis(&s->box, TGI_X);
    const size_t size = tgi_dtype_size(p->type);
    int bad = 0;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++) {
            uint32_t want[2] = {0, 0};
            for (int64_t x = rx.lo; x < rx.hi; x++)
                for (int64_t c = 0; c < p->channels; c++) {
                    const float v = wanted(s, c, z, y, x);
                    _Alignas(8) char held[8];
                    tgi_pixels_store(p->type, &v, 1, 1, p->mul, p->add, held, 1);
                    const size_t at = staged_at(s, z - rz.lo, c, y - ry.lo, x - rx.lo);
                    bad += !same_number(p->type, held, s->staged + size * at);
                    want[0] += !isfinite(v);
                    want[1] +=
                        isfinite(v) && tgi_pixels_outside(p->type, &v, 1, 1, p->mul, p->add);
                }
            const uint32_t *got = s->counts + 2 * ((z - rz.lo) * tgi_range_len(ry) + y - ry.lo);
            bad += got[0] != want[0] || got[1] != want[1];
        }
    for (size_t i = 0; i < 64; i++) /* behind the last pixel */
        bad += s->staged[s->staged_bytes + i] != (char)0xaa;
    return bad;
}

/* A scene whose box and numbers stand is stored and looked at. */
static void store_and_check(scene *s)
{
    tgi_device_pixels *p = &s->step.pixels;
    const size_t rows = (size_t)(slabs_of(s) * tgi_range_len(p->rows));
    s->counts = must(tgi_malloc(TGI_TAG_MISC, 2 * rows * sizeof *s->counts));
    memset(s->counts, 0xff, 2 * rows * sizeof *s->counts);
    s->n_counts = 2 * rows;
    run(s);
    const int bad = check_stored(s);
    if (bad)
        fprintf(stderr, "%s from %s, pick %d: %d elements or counts differ\n",
                tgi_dtype_name(p->type), tgi_dtype_name(p->element), (int)p->pick, bad);
    CHECK_EQ(bad, 0);
}

static void test_values_are_stored_and_misfits_counted_as_the_store_does(void)
{
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int i = 0; i < 24; i++) {
            scene s;
            scene_open(&s, TGI_STEP_STORE, types[t], element_of(i));
            tgi_device_pixels *p = &s.step.pixels;
            p->rows = tgi_box_axis(&s.box, TGI_Y);
            p->cols = tgi_box_axis(&s.box, TGI_X);
            p->mul = i % 3 ? 1.0f : 1.7f;
            p->add = i % 3 ? 0.0f : 2.3f;
            stage(&s);
            fill_view(&s);
            store_and_check(&s);
            scene_close(&s);
        }
}

/* Elements of a row's granule in the stored moments: [row][granule][2][channel]. */
static int check_moments(const scene *s, int64_t granules)
{
    const tgi_range rz = tgi_box_axis(&s->box, TGI_Z), ry = tgi_box_axis(&s->box, TGI_Y),
                    rx = tgi_box_axis(&s->box, TGI_X);
    const int64_t channels = s->view.c;
    const double *got = (const double *)(const void *)s->staged;
    int bad = 0;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            for (int64_t g = 0; g < granules; g++, got += 2 * channels)
                for (int64_t c = 0; c < channels; c++) {
                    const int64_t from = rx.lo + g * TGI_GRANULE;
                    const int64_t n = tgi_min(TGI_GRANULE, rx.hi - from);
                    double sum = 0, m2 = 0;
                    for (int64_t i = 0; i < n; i++)
                        sum += (double)element(s, view_at(s, c, z, y, from + i));
                    for (int64_t i = 0; i < n; i++) {
                        const double v = (double)element(s, view_at(s, c, z, y, from + i));
                        m2 += (v - sum / (double)n) * (v - sum / (double)n);
                    }
                    bad += memcmp(&got[c], &sum, sizeof sum) != 0;
                    bad += memcmp(&got[channels + c], &m2, sizeof m2) != 0;
                }
    for (size_t i = 0; i < 64; i++)
        bad += s->staged[s->staged_bytes + i] != (char)0xaa;
    for (size_t i = 0; i < s->n_counts; i++)
        bad += s->counts[i] != 0;
    return bad;
}

static void test_rows_become_their_moments(void)
{
    for (int i = 0; i < 60; i++) {
        scene s;
        scene_open(&s, TGI_STEP_STORE, TG_DTYPE_F32, element_of(i));
        const int64_t rows = slabs_of(&s) * tgi_range_len(tgi_box_axis(&s.box, TGI_Y));
        const int64_t granules =
            tgi_ceil_div(tgi_range_len(tgi_box_axis(&s.box, TGI_X)), TGI_GRANULE);
        s.step.pixels.moments = 1;
        s.staged_bytes = (size_t)(rows * granules * 2 * s.view.c) * sizeof(double);
        s.staged = must(tgi_malloc(TGI_TAG_MISC, s.staged_bytes + 64));
        memset(s.staged, 0xaa, s.staged_bytes + 64);
        s.n_counts = 2 * (size_t)rows;
        s.counts = must(tgi_malloc(TGI_TAG_MISC, s.n_counts * sizeof *s.counts));
        memset(s.counts, 0xff, s.n_counts * sizeof *s.counts);
        for (size_t k = 0; k < s.view_elements; k++)
            put_element(&s, k, 100.0f + tg_rand_unit(&seed));
        run(&s);
        CHECK_EQ(check_moments(&s, granules), 0);
        scene_close(&s);
    }
}

/* Few different numbers, so that pixels have several largest and smallest ones. */
static void fill_with_equals(scene *s)
{
    for (size_t i = 0; i < s->view_elements; i++)
        put_element(s, i, (float)tg_rand_in(&seed, -2, 3));
}

static void test_pixels_become_the_number_of_a_channel(void)
{
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (int i = 0; i < 24; i++) {
            scene s;
            scene_open(&s, TGI_STEP_STORE, types[t], element_of(i));
            tgi_device_pixels *p = &s.step.pixels;
            p->pick =
                (tgi_pick)tg_rand_in(&seed, TGI_PICK_FIRST_LARGEST, TGI_PICK_LAST_SMALLEST);
            p->channels = p->together = 1;
            s.step.call.box.ax[1].hi = s.box.ax[1].hi = 1;
            p->rows = tgi_box_axis(&s.box, TGI_Y);
            p->cols = tgi_box_axis(&s.box, TGI_X);
            p->mul = i % 4 ? 1.0f : 60.0f;
            stage(&s);
            fill_with_equals(&s);
            store_and_check(&s);
            scene_close(&s);
        }
}

static void test_a_band_without_pixels_does_nothing(void)
{
    for (int k = 0; k < 2; k++) {
        scene s;
        scene_open(&s, k ? TGI_STEP_STORE : TGI_STEP_LOAD, TG_DTYPE_U8, TG_DTYPE_F32);
        place_region(&s);
        stage(&s);
        const int at = s.box.rank - 1 - (int)tg_rand_in(&seed, 0, 1);
        s.step.call.box.ax[at].hi = s.step.call.box.ax[at].lo;
        run(&s);
        for (size_t i = 0; i < s.staged_bytes; i++)
            CHECK_EQ(s.staged[i], (char)0xaa);
        for (size_t i = 0; i < s.view_elements; i++)
            CHECK(isnan(element(&s, i)));
        scene_close(&s);
    }
}

int main(void)
{
    ops = device_of_test(&device);
    if (!ops)
        return 77;
    RUN(test_pixels_are_loaded_as_the_loader_does);
    RUN(test_frames_become_the_pixels_that_their_reader_makes);
    RUN(test_values_are_stored_and_misfits_counted_as_the_store_does);
    RUN(test_rows_become_their_moments);
    RUN(test_pixels_become_the_number_of_a_channel);
    RUN(test_a_band_without_pixels_does_nothing);
    return TEST_END();
}
