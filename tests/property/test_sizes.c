/* test_sizes.c - images and networks whose sizes do not meet: what the network eats is padded
 * for, extents it does not take are filled up, and a network of one size runs in boxes. The
 * expectation is always a run of the plain network on an image that the test padded itself. */
#include "engine/plan/mapping.h"
#include "tests/made_nets.h"
#include "tests/unit/job_help.h"

#define H 83
#define W 101

static const int64_t open2[2] = {0, 0}, k3[3] = {3, 3, 3}, k5x3[2] = {5, 3};

/* ---- Networks ---------------------------------------------------------------------------- */

/* Eats 3 + 3 rows and 2 + 2 columns. */
static void make_valid(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 20, k5x3, 1, 0, NULL);
    made_conv(&m, a, 20, 1, k3, 1, 0, "y");
    made_end(&m, path);
}

/* The same with operators that reduce and compare channels at each pixel. */
static void make_gated(const char *path)
{
    bytes soft = {0}, most = {0}, axis = {0};
    const int64_t channels[1] = {1};
    made m = made_begin(2, 1, open2);
    b_str(&axis, 1, "axis");
    b_int(&axis, 3, 1);
    b_int(&axis, 20, 2);
    b_msg(&soft, 5, &axis);
    b_attr_ints(&most, "axes", 1, channels);
    const char *a = made_conv(&m, "x", 1, 20, k5x3, 1, 0, NULL);
    const char *p = made_node(&m, "Softmax", a, NULL, NULL, NULL, &soft, NULL);
    const char *q = made_node(&m, "ReduceMax", p, NULL, NULL, NULL, &most, NULL);
    const char *r = made_node(&m, "Less", p, q, NULL, NULL, NULL, NULL);
    const char *s = made_node(&m, "Where", r, a, p, NULL, NULL, NULL);
    made_conv(&m, made_node(&m, "HardSwish", s, NULL, NULL, NULL, NULL, NULL), 20, 1, k3, 1, 0,
              "y");
    made_end_opset(&m, path, 14);
}

/* Eats 3 + 2 rows and 1 + 4 columns. */
static void make_lopsided(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 20, k3, 1, 0, NULL);
    made_conv(&m, made_slice(&m, a, 2, -1, 0, -3), 20, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* Down by two, which rounds up, and up again: 83 pixels become 84. */
static void make_rounding(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 20, k3, 2, 1, NULL);
    made_conv(&m, made_up(&m, a, 20, 20, 2), 20, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* The same rounding down: 83 pixels become 82. */
static void make_flooring(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_up(&m, made_pool(&m, "x", 2), 1, 20, 2);
    made_conv(&m, a, 20, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* Adds a pixel at each side. */
static void make_bordering(const char *path)
{
    made m = made_begin(2, 1, open2);
    made_conv(&m, "x", 1, 1, k3, 1, 2, "y");
    made_end(&m, path);
}

/* Twice as large, less half a pixel of the input at each side. */
static void make_enlarging(const char *path)
{
    made m = made_begin(2, 1, open2);
    made_conv(&m, made_up(&m, "x", 1, 20, 2), 20, 1, k3, 1, 0, "y");
    made_end(&m, path);
}

/* A U-Net of valid convolutions: takes 4k + 2, eats 10 at each side. */
static void make_unet(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 0, NULL);
    const char *b = made_conv(&m, made_pool(&m, a, 2), 8, 8, k3, 1, 0, NULL);
    const char *c = made_conv(&m, made_pool(&m, b, 2), 8, 8, k3, 1, 0, NULL);
    const char *skip = made_slice(&m, b, 2, -2, 2, -2);
    const char *d = made_node(&m, "Add", made_up(&m, c, 8, 8, 2), skip, NULL, NULL, NULL, NULL);
    const char *e = made_conv(&m, d, 8, 8, k3, 1, 0, NULL);
    const char *f =
        made_concat(&m, 1, made_up(&m, e, 8, 8, 2), made_slice(&m, a, 8, -8, 8, -8));
    made_conv(&m, f, 16, 1, k3, 1, 0, "y");
    made_end(&m, path);
}

/* Pools by 5 and by 7 and joins what it pooled: takes multiples of 35. */
static void make_odd(const char *path)
{
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 4, k3, 1, 1, NULL);
    const char *b = made_up(&m, made_pool(&m, a, 5), 4, 4, 5);
    const char *c = made_up(&m, made_pool(&m, a, 7), 4, 4, 7);
    made_conv(&m, made_concat(&m, 1, made_concat(&m, 1, b, c), a), 12, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* Pools, enlarges and joins; the last Slice keeps rows and columns [start, ends). A positive
 * end before the last pixel fixes the size. */
static void make_boxed(const char *path, const int64_t ext[2], const int64_t ends[2],
                       int64_t start, int64_t pad)
{
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, pad, NULL);
    const char *b = made_conv(&m, made_pool(&m, a, 2), 8, 8, k3, 1, 1, NULL);
    const char *c = made_concat(&m, 1, made_up(&m, b, 8, 8, 2), a);
    made_conv(&m, made_slice(&m, c, start, ends[0], start, ends[1]), 16, 1, k3, 1, pad, "y");
    made_end(&m, path);
}

/* An export of 40 x 56 whose Resizes have constant sizes: enlarged to what was pooled (20 x 28
 * from 10 x 14), then to the image's size. */
static void make_resized(const char *path, const int64_t ext[2])
{
    const int64_t half[4] = {1, 8, ext[0] / 2, ext[1] / 2}, all[4] = {1, 8, ext[0], ext[1]};
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *b = made_pool(&m, a, 2), *c = made_pool(&m, b, 2);
    const char *d = made_node(&m, "Resize", c, "", "", made_longs(&m, 4, half), NULL, NULL);
    const char *e = made_node(&m, "Add", d, b, NULL, NULL, NULL, NULL);
    const char *f = made_node(&m, "Resize", e, "", "", made_longs(&m, 4, all), NULL, NULL);
    made_conv(&m, made_concat(&m, 1, f, a), 16, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

/* The same with sizes that the file computes: Concat([1, 8], Slice(Shape(x)) / 2). */
static void make_computed(const char *path)
{
    static const int64_t head[2] = {1, 8}, two[2] = {2, 2}, from[1] = {2}, to[1] = {4}, zero[1];
    made m = made_begin(2, 1, open2);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *b = made_pool(&m, a, 2), *c = made_pool(&m, b, 2);
    const char *shape = made_node(&m, "Shape", "x", NULL, NULL, NULL, NULL, NULL);
    const char *f = made_longs(&m, 1, from), *t = made_longs(&m, 1, to);
    const char *hw = made_node(&m, "Slice", shape, f, t, made_longs(&m, 1, zero), NULL, NULL);
    const char *half = made_node(&m, "Div", hw, made_longs(&m, 2, two), NULL, NULL, NULL, NULL);
    const char *lead = made_longs(&m, 2, head);
    const char *s1 = made_concat(&m, 0, lead, half), *s2 = made_concat(&m, 0, lead, hw);
    const char *d = made_node(&m, "Resize", c, "", "", s1, NULL, NULL);
    const char *e = made_node(&m, "Add", d, b, NULL, NULL, NULL, NULL);
    const char *g = made_node(&m, "Resize", e, "", "", s2, NULL, NULL);
    made_conv(&m, made_concat(&m, 1, g, a), 16, 1, k3, 1, 1, "y");
    made_end(&m, path);
}

static tgi_graph *graph_of(const char *path)
{
    tgi_graph *g = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_import_onnx(path, &g, &e), e);
    if (g)
        CHECK_OK(tgi_graph_finish(g, 0, &e), e);
    return g;
}

/* ---- Graphs ------------------------------------------------------------------------------ */

typedef struct placed {
    const char *name;
    void (*make)(const char *path);
    int64_t divisor, remainder, minimum;
    int64_t up, lost_y, lead_y, lost_x, lead_x;
} placed;

static const placed nets[] = {
    {"valid.onnx", make_valid, 1, 0, 7, 1, 6, 3, 4, 2},
    {"gated.onnx", make_gated, 1, 0, 7, 1, 6, 3, 4, 2},
    {"lopsided.onnx", make_lopsided, 1, 0, 6, 1, 5, 3, 5, 1},
    {"enlarging.onnx", make_enlarging, 1, 0, 2, 2, 2, 1, 2, 1},
    {"unet.onnx", make_unet, 4, 2, 22, 1, 20, 10, 20, 10},
    {"odd.onnx", make_odd, 35, 0, 35, 1, 0, 0, 0, 0},
};
#define N_NETS ((int)(sizeof nets / sizeof nets[0]))

static void extents_and_what_is_eaten_are_found(void)
{
    for (int i = 0; i < N_NETS; i++) {
        const placed *n = &nets[i];
        n->make(in_folder(n->name));
        tgi_graph *g = graph_of(in_folder(n->name));
        tgi_place y, x;
        tgi_err e = {0};
        if (!g)
            continue;
        CHECK_EQ(g->fixed_size, 0);
        CHECK_EQ(g->divisor[1], n->divisor);
        CHECK_EQ(g->remainder[1], n->remainder);
        CHECK_EQ(g->minimum[1], n->minimum);
        CHECK_OK(tgi_graph_place(g, 1, &y, &e), e);
        CHECK_OK(tgi_graph_place(g, 2, &x, &e), e);
        CHECK_EQ(y.up, n->up);
        CHECK_EQ(y.down, 1);
        CHECK_EQ(y.lost, n->lost_y);
        CHECK_EQ(y.lead, n->lead_y);
        CHECK_EQ(x.lost, n->lost_x);
        CHECK_EQ(x.lead, n->lead_x);
        for (int64_t k = 1; k < 200; k++) {
            const int64_t ext = tgi_graph_extent(g, 1, k);
            CHECK(ext >= k && ext >= n->minimum && ext % n->divisor == n->remainder);
            CHECK(ext - n->divisor < k || ext == n->minimum);
        }
        tgi_graph_free(&g);
    }
}

static void a_stride_is_placed_by_its_period(void)
{
    static const int64_t k5[2] = {5, 5};
    made m = made_begin(2, 1, open2);
    made_conv(&m, "x", 1, 1, k5, 2, 0, "y");
    made_end(&m, in_folder("stride.onnx"));
    tgi_graph *g = graph_of(in_folder("stride.onnx"));
    tgi_fit f;
    tgi_err e = {0};
    if (!g)
        return;
    /* output o is centred on input 2o + 2: one pixel of output is missing before the first */
    CHECK_OK(tgi_fit_axis(g, 1, 83, 1, &f, &e), e);
    CHECK_EQ(f.place.up, 1);
    CHECK_EQ(f.place.down, 2);
    CHECK_EQ(f.place.lead, 1);
    CHECK_EQ(f.before, 2);
    CHECK_EQ(f.crop, 0);
    CHECK_EQ(f.out, 42);
    CHECK(f.size >= 87);
    tgi_graph_free(&g);
}

static void a_border_is_mirrored_without_its_edge_as_often_as_it_takes(void)
{
    static const int64_t want[] = {2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2};
    for (int64_t i = -8; i <= 4; i++) {
        CHECK_EQ(tgi_pad_index(TGI_PAD_REFLECT, i, 4), want[i + 8]);
        CHECK_EQ(tgi_pad_index(TGI_PAD_EDGE, i, 4), i < 0 ? 0 : i > 3 ? 3 : i);
        CHECK_EQ(tgi_pad_index(TGI_PAD_ZERO, i, 4), i < 0 || i > 3 ? -1 : i);
        CHECK_EQ(tgi_pad_index(TGI_PAD_REFLECT, i, 1), 0);
    }
}

/* ---- Jobs -------------------------------------------------------------------------------- */

typedef struct image {
    int64_t d, h, w; /* planes, rows, columns */
    float *px;
} image;

static image picture(int64_t d, int64_t h, int64_t w)
{
    image i = {d, h, w, malloc((size_t)(d * h * w) * sizeof(float))};
    uint64_t seed = 11;
    for (int64_t k = 0; k < d * h * w; k++)
        i.px[k] = tg_rand_unit(&seed);
    return i;
}

/* Mirror, repeat or zero: the definition, written down once more. */
static int64_t outside(char how, int64_t i, int64_t n)
{
    while (how == 'r' && (i < 0 || i >= n))
        i = i < 0 ? -i : 2 * (n - 1) - i;
    if (i >= 0 && i < n)
        return i;
    return how == 'z' ? -1 : i < 0 ? 0 : n - 1;
}

/* before[] and after[] are z,y,x. */
static image padded(const image *a, const int64_t before[3], const int64_t after[3], char how)
{
    image b = {a->d + before[0] + after[0], a->h + before[1] + after[1],
               a->w + before[2] + after[2], NULL};
    b.px = calloc((size_t)(b.d * b.h * b.w), sizeof(float));
    for (int64_t z = 0; z < b.d; z++)
        for (int64_t y = 0; y < b.h; y++)
            for (int64_t x = 0; x < b.w; x++) {
                const int64_t sz = outside(how, z - before[0], a->d);
                const int64_t sy = outside(how, y - before[1], a->h);
                const int64_t sx = outside(how, x - before[2], a->w);
                if (sz >= 0 && sy >= 0 && sx >= 0)
                    b.px[(z * b.h + y) * b.w + x] = a->px[(sz * a->h + sy) * a->w + sx];
            }
    return b;
}

static void save(const image *a, const char *path)
{
    const tgi_desc d = {TG_DTYPE_F32, 3, {a->d, a->h, a->w}};
    tgi_err e = {0};
    CHECK_OK(tgi_npy_save(in_folder("px.npy"), &d, a->px, &e), e);
    CHECK_COPY(TG_OK, "input", in_folder("px.npy"), "output", path, "axes", "ZYX", "yes",
               "true");
}

static tg_status job(int (*verb)(tg_job *), const char *name, ...)
{
    va_list ap;
    tg_job *j = NULL;
    va_start(ap, name);
    tg_opts *o = opts_of(ap);
    va_end(ap);
    tg_status st = tg_job_open(ctx, o, &j);
    if (st == TG_OK)
        st = (tg_status)verb(j);
    tg_job_close(&j);
    tg_opts_free(&o);
    return st;
}

static int run_verb(tg_job *j)
{
    tg_run_result r = {.size = sizeof r};
    return (int)tg_job_run(j, &r);
}

static int verify_verb(tg_job *j)
{
    tg_verify_result r = {.size = sizeof r};
    const tg_status st = tg_job_verify(j, &r);
    CHECK(r.bit_equal);
    return (int)st;
}

#define CHECK_JOB(want, verb, ...)                                                             \
    do {                                                                                       \
        const tg_status got_ = job(verb, "", __VA_ARGS__, "yes", "true", NULL);                \
        if (got_ != (want))                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tg_ctx_detail(ctx));            \
        CHECK_EQ(got_, want);                                                                  \
    } while (0)

static image load(const char *path)
{
    tgi_source *s = open_image(path);
    image a = {0, 0, 0, NULL};
    if (!s)
        return a;
    const tgi_image_info *i = s->ops->info(s);
    const size_t plane = (size_t)(i->height * i->width);
    a = (image){i->n_planes, i->height, i->width, NULL};
    a.px = calloc((size_t)a.d * plane, sizeof(float));
    for (int64_t z = 0; z < a.d; z++) {
        float *p = pixels_of(s, z, 0, a.h, 0, a.w);
        memcpy(a.px + (size_t)z * plane, p, plane * sizeof *p);
        free(p);
    }
    tgi_source_close(&s);
    return a;
}

/* `got` is `whole` from pixel `at` (z,y,x) on, bit by bit. */
static void check_part(const image *got, const image *whole, const int64_t at[3],
                       const int64_t size[3])
{
    const int before = tg_failures;
    int64_t bad = 0;
    CHECK_EQ(got->d, size[0]);
    CHECK_EQ(got->h, size[1]);
    CHECK_EQ(got->w, size[2]);
    CHECK(whole->d >= at[0] + size[0] && whole->h >= at[1] + size[1] &&
          whole->w >= at[2] + size[2]);
    if (tg_failures > before)
        return;
    for (int64_t z = 0; z < size[0]; z++)
        for (int64_t y = 0; y < size[1]; y++)
            bad += memcmp(got->px + (z * got->h + y) * got->w,
                          whole->px + ((z + at[0]) * whole->h + y + at[1]) * whole->w + at[2],
                          (size_t)size[2] * sizeof(float)) != 0;
    CHECK_EQ(bad, 0);
}

typedef struct same_case {
    const char *model;
    int64_t before[3], after[3]; /* what the test pads, extents that the network takes */
    int64_t scale, crop;
} same_case;

static const same_case sames[] = {
    {"valid.onnx", {0, 3, 2}, {0, 3, 2}, 1, 0},
    {"gated.onnx", {0, 3, 2}, {0, 3, 2}, 1, 0},
    {"lopsided.onnx", {0, 3, 1}, {0, 2, 4}, 1, 0},
    {"enlarging.onnx", {0, 1, 1}, {0, 1, 1}, 2, 1},
    {"unet.onnx", {0, 10, 10}, {0, 13, 11}, 1, 0}, /* 106 = 4*26+2, 122 = 4*30+2 */
    {"odd.onnx", {0, 0, 0}, {0, 22, 4}, 1, 0},     /* 105 and 105 */
    {"rounding.onnx", {0, 0, 0}, {0, 0, 0}, 1, 0}, /* 84 and 102, of which 83 and 101 stay */
    {"flooring.onnx", {0, 0, 0}, {0, 1, 1}, 1, 0},
    {"bordering.onnx", {0, 0, 0}, {0, 0, 0}, 1, 1},
};

static void the_output_covers_the_image_pixel_for_pixel(void)
{
    static const char *const pads[] = {"reflect", "edge", "zero"};
    image in = picture(1, H, W);
    save(&in, in_folder("in.tif"));
    make_rounding(in_folder("rounding.onnx"));
    make_flooring(in_folder("flooring.onnx"));
    make_bordering(in_folder("bordering.onnx"));
    for (size_t i = 0; i < sizeof sames / sizeof sames[0]; i++)
        for (int p = 0; p < 3; p++) {
            const same_case *c = &sames[i];
            image wide = padded(&in, c->before, c->after, pads[p][0]);
            save(&wide, in_folder("wide.tif"));
            CHECK_JOB(TG_OK, run_verb, "model", in_folder(c->model), "input",
                      in_folder("wide.tif"), "output", in_folder("whole.tif"), "raw-size",
                      "true");
            image whole = load(in_folder("whole.tif"));
            static const char *const tiles[] = {"auto", "16", "48x32"};
            const int64_t at[3] = {0, c->crop, c->crop};
            const int64_t size[3] = {1, c->scale * H, c->scale * W};
            for (int t = 0; t < 3; t++) {
                CHECK_JOB(TG_OK, run_verb, "model", in_folder(c->model), "input",
                          in_folder("in.tif"), "output", in_folder("same.tif"), "pad", pads[p],
                          "tile", tiles[t], "threads", t == 1 ? "3" : "2");
                image same = load(in_folder("same.tif"));
                check_part(&same, &whole, at, size);
                free(same.px);
            }
            free(whole.px);
            free(wide.px);
        }
    CHECK_JOB(TG_OK, verify_verb, "model", in_folder("unet.onnx"), "input",
              in_folder("in.tif"));
    free(in.px);
}

static void a_volume_is_padded_along_z_too(void)
{
    static const int64_t open3[3] = {0, 0, 0}, before[3] = {1, 1, 1};
    made m = made_begin(3, 1, open3);
    made_conv(&m, "x", 1, 1, k3, 1, 0, "y");
    made_end(&m, in_folder("valid3.onnx"));
    image in = picture(9, 37, 41);
    image wide = padded(&in, before, before, 'r');
    save(&in, in_folder("in3.tif"));
    save(&wide, in_folder("wide3.tif"));
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("valid3.onnx"), "input",
              in_folder("wide3.tif"), "output", in_folder("whole.tif"), "raw-size", "true");
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("valid3.onnx"), "input", in_folder("in3.tif"),
              "output", in_folder("same.tif"), "tile", "4x16x32");
    CHECK_JOB(TG_OK, verify_verb, "model", in_folder("valid3.onnx"), "input",
              in_folder("in3.tif"));
    image whole = load(in_folder("whole.tif")), same = load(in_folder("same.tif"));
    check_part(&same, &whole, (int64_t[3]){0, 0, 0}, (int64_t[3]){9, 37, 41});
    free(in.px);
    free(wide.px);
    free(whole.px);
    free(same.px);
}

static void raw_size_is_what_the_network_gives(void)
{
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("valid.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("raw.tif"), "raw-size", "true");
    image raw = load(in_folder("raw.tif"));
    CHECK_EQ(raw.h, H - 6);
    CHECK_EQ(raw.w, W - 4);
    free(raw.px);
    static const struct {
        const char *model;
        int64_t more;
    } given[] = {{"rounding.onnx", 1}, {"flooring.onnx", -1}, {"bordering.onnx", 2}};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        CHECK_JOB(TG_OK, run_verb, "model", in_folder(given[i].model), "input",
                  in_folder("in.tif"), "output", in_folder("raw.tif"), "raw-size", "true");
        raw = load(in_folder("raw.tif"));
        CHECK_EQ(raw.h, H + given[i].more);
        CHECK_EQ(raw.w, W + given[i].more);
        free(raw.px);
    }
    CHECK_JOB(TG_E_ARG, run_verb, "model", in_folder("valid.onnx"), "input",
              in_folder("in.tif"), "output", in_folder("raw.tif"), "raw-size", "true",
              "same-size", "true");
    CHECK_JOB(TG_E_ARG, run_verb, "model", in_folder("valid.onnx"), "input",
              in_folder("px.npy"), "output", in_folder("raw.npy"), "same-size", "true");
}

/* ---- Fixed boxes ------------------------------------------------------------------------- */

typedef struct box_case {
    int64_t h, w; /* of the image */
    int64_t start, pad;
    int64_t end_y, end_x;     /* of the Slice; the network is declared for 64 x 96 */
    int64_t lead;             /* eaten before, rows and columns; the same after: */
    int64_t after_y, after_x; /* beyond that, up to even extents */
} box_case;

static const box_case boxes[] = {
    {200, 255, 0, 1, 60, 92, 0, 4, 5}, /* both axes in boxes; nothing eaten before */
    {50, 255, 0, 1, 60, 92, 0, 14, 5}, /* rows fit into one */
    {31, 40, 0, 1, 60, 92, 0, 33, 56}, /* all in one */
    {200, 255, 2, 0, 60, 92, 4, 0, 1}, /* valid convolutions and a crop: padded before, too */
};

/* The same weights with the size left open: what the boxes must add up to. With direct
 * convolutions, because blocks of Winograd begin where a box does. */
static void boxes_give_what_the_free_network_gives(void)
{
    static const int64_t ext[2] = {64, 96};
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        const box_case *c = &boxes[i];
        const int64_t ends[2] = {c->end_y, c->end_x};
        const int64_t left = 64 - (c->pad ? 0 : 2) - c->end_y; /* rows behind the Slice */
        const int64_t follow[2] = {left ? -left : INT32_MAX, left ? -left : INT32_MAX};
        const int64_t before[3] = {0, c->lead, c->lead};
        const int64_t after[3] = {0, c->lead + c->after_y, c->lead + c->after_x};
        make_boxed(in_folder("fixed.onnx"), ext, ends, c->start, c->pad);
        make_boxed(in_folder("free.onnx"), open2, follow, c->start, c->pad);
        tgi_graph *g = graph_of(in_folder("fixed.onnx"));
        CHECK(g && g->fixed_size);
        tgi_graph_free(&g);
        image in = picture(1, c->h, c->w);
        image wide = padded(&in, before, after, 'r');
        save(&in, in_folder("in.tif"));
        save(&wide, in_folder("wide.tif"));
        CHECK_JOB(TG_OK, run_verb, "model", in_folder("free.onnx"), "input",
                  in_folder("wide.tif"), "output", in_folder("whole.tif"), "raw-size", "true",
                  "exact", "true");
        image whole = load(in_folder("whole.tif"));
        static const char *const rams[] = {"1GiB", TG_SANITIZED ? "2GiB" : "100MiB"};
        for (int t = 0; t < 2; t++) {
            CHECK_JOB(TG_OK, run_verb, "model", in_folder("fixed.onnx"), "input",
                      in_folder("in.tif"), "output", in_folder("boxed.tif"), "ram", rams[t],
                      "exact", "true", "compress", t ? "zstd" : "none", "threads",
                      t ? "3" : "1");
            image boxed = load(in_folder("boxed.tif"));
            check_part(&boxed, &whole, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, c->h, c->w});
            free(boxed.px);
        }
        CHECK_JOB(TG_OK, verify_verb, "model", in_folder("fixed.onnx"), "input",
                  in_folder("in.tif"));
        free(whole.px);
        free(wide.px);
        free(in.px);
    }
}

/* Labels: the same as the largest channel of what the network gives, cut in any way; the same
 * as the network's own ArgMax; and small integers. */
static void labels_are_the_number_of_the_largest_channel(void)
{
    static const char *const tiles[] = {"auto", "16", "48x32"};
    for (int own = 0; own < 2; own++) {
        bytes arg = {0}, axis = {0};
        made m = made_begin(2, 1, open2);
        b_str(&axis, 1, "axis");
        b_int(&axis, 3, 1);
        b_int(&axis, 20, 2);
        b_msg(&arg, 5, &axis);
        const char *a = made_conv(&m, "x", 1, 7, k3, 1, 1, own ? NULL : "y");
        if (own)
            made_node(&m, "ArgMax", a, NULL, NULL, NULL, &arg, "y");
        else
            b_free(&arg);
        made_end(&m, in_folder(own ? "own.onnx" : "classes.onnx"));
    }
    image in = picture(1, H, W);
    save(&in, in_folder("in.tif"));
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("classes.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("scores.tif"), "tile", "auto");
    image scores = load(in_folder("scores.tif"));
    CHECK_EQ(scores.d, 7);
    for (int t = 0; t < 6; t++) {
        int64_t wrong = 0;
        CHECK_JOB(TG_OK, run_verb, "model", in_folder(t < 3 ? "classes.onnx" : "own.onnx"),
                  "input", in_folder("in.tif"), "output", in_folder("labels.tif"), "tile",
                  tiles[t % 3], "labels", t < 3 ? "true" : "false", "dtype", "float32");
        image got = load(in_folder("labels.tif"));
        CHECK_EQ(got.d, 1);
        for (int64_t i = 0; i < H * W && got.px && scores.d == 7; i++) {
            int best = 0;
            for (int c = 1; c < 7; c++)
                best = scores.px[c * H * W + i] > scores.px[best * H * W + i] ? c : best;
            wrong += got.px[i] != (float)best;
        }
        CHECK_EQ(wrong, 0);
        CHECK_JOB(TG_OK, run_verb, "model", in_folder(t < 3 ? "classes.onnx" : "own.onnx"),
                  "input", in_folder("in.tif"), "output", in_folder("labels.tif"), "labels",
                  t < 3 ? "true" : "false");
        tgi_source *s = open_image(in_folder("labels.tif"));
        if (s)
            CHECK_EQ(s->ops->info(s)->dtype, TG_DTYPE_U8);
        if (s)
            tgi_source_close(&s);
        free(got.px);
    }
    CHECK_JOB(TG_OK, verify_verb, "model", in_folder("classes.onnx"), "input",
              in_folder("in.tif"), "labels", "true");
    FILE *f = fopen(in_folder("classes.json"), "wb"); /* the descriptor says the same */
    CHECK(f && fputs("{\"output\": \"argmax\"}", f) >= 0 && fclose(f) == 0);
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("classes.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("said.tif"), "dtype", "float32");
    image said = load(in_folder("said.tif"));
    CHECK_EQ(said.d, 1);
    free(said.px);
    CHECK_JOB(TG_E_UNSUPPORTED, run_verb, "model", in_folder("valid.onnx"), "input",
              in_folder("in.tif"), "output", in_folder("no.tif"), "labels", "true");
    CHECK_JOB(TG_E_ARG, run_verb, "model", in_folder("classes.onnx"), "input",
              in_folder("in.tif"), "output", in_folder("no.tif"), "labels", "true", "pyramid",
              "mean");
    free(scores.px);
    free(in.px);
}

static int plan_verb(tg_job *j)
{
    tg_plan_info p = {.size = sizeof p};
    const tg_status st = tg_job_plan(j, &p);
    int said = 0;
    for (size_t i = 0; i < p.n_lines; i++)
        said += strstr(p.lines[i].note, "fixed boxes of 64x96, core 48x80") != NULL ||
                strstr(p.lines[i].note, "4 + 4 rows, 4 + 5 columns before + after") != NULL;
    CHECK_EQ(said, 2);
    return (int)st;
}

/* A Resize repeats its edge pixel and never reads beyond: at the border of a box that is none
 * of the image such pixels must not be kept. */
static void a_box_keeps_nothing_that_its_own_border_changed(void)
{
    static const int64_t ext[2] = {64, 96}, k9[2] = {9, 9};
    static const float by2[4] = {1, 1, 2, 2};
    static const int64_t four[1] = {4};
    for (int fixed = 0; fixed < 2; fixed++) {
        made m = made_begin(2, 1, fixed ? ext : open2);
        bytes at = {0};
        b_attr_text(&at, "mode", "linear");
        b_init(&m.g, "by2", 1, 1, four, by2, sizeof by2);
        const char *p = made_pool(&m, made_slice(&m, "x", 4, -4, 4, -4), 2);
        const char *a = made_node(&m, "Resize", p, "", "by2", NULL, &at, NULL);
        /* reads further than the Resize: hides in the input what the Resize reads */
        const char *b = made_conv(&m, "x", 1, 4, k9, 1, 0, NULL);
        const char *d = made_concat(&m, 1, b, a);
        const char *e =
            fixed ? made_slice(&m, d, 0, 54, 0, 86) : made_slice(&m, d, 0, -2, 0, -2);
        made_conv(&m, e, 5, 1, k3, 1, 0, "y");
        made_end(&m, in_folder(fixed ? "fixed2.onnx" : "free2.onnx"));
    }
    image in = picture(1, 200, 256);
    save(&in, in_folder("in.tif"));
    for (int fixed = 0; fixed < 2; fixed++)
        CHECK_JOB(TG_OK, run_verb, "model", in_folder(fixed ? "fixed2.onnx" : "free2.onnx"),
                  "input", in_folder("in.tif"), "output",
                  in_folder(fixed ? "boxed.tif" : "whole.tif"), "raw-size", "true", "exact",
                  "true");
    image a = load(in_folder("whole.tif")), b = load(in_folder("boxed.tif"));
    check_part(&b, &a, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, 188, 244});
    free(a.px);
    free(b.px);
    free(in.px);
}

static void the_plan_says_how_the_image_is_padded_and_cut(void)
{
    image in = picture(1, 200, 255);
    save(&in, in_folder("in.tif"));
    CHECK_JOB(TG_OK, plan_verb, "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"));
    CHECK_JOB(TG_E_ARG, run_verb, "model", in_folder("fixed.onnx"), "input",
              in_folder("in.tif"), "output", in_folder("no.tif"), "tile", "64");
    free(in.px);
}

/* Stops a run at the first word it says of its bands. */
static int stopping;
static void stop(void *user, const tg_progress *p)
{
    (void)user;
    if (stopping && strcmp(p->phase, "run") == 0)
        tg_cancel(2);
}

static void a_stopped_run_in_boxes_goes_on_to_the_same_file(void)
{
    const tg_ctx_opts watch = {.size = sizeof watch, .progress = stop};
    tg_ctx *const plain = ctx;
    image in = picture(1, 400, 455);
    save(&in, in_folder("in.tif"));
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("whole.tif"));
    ctx = NULL;
    CHECK_EQ(tg_ctx_open(&watch, &ctx), TG_OK);
    stopping = 1;
    CHECK_EQ(job(run_verb, "", "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("parts.tif"), NULL),
             TG_E_CANCELLED);
    tg_cancel(0);
    stopping = 0;
    CHECK_EQ(job(run_verb, "", "model", in_folder("fixed.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("parts.tif"), NULL),
             TG_OK);
    tg_ctx_close(&ctx);
    ctx = plain;
    image a = load(in_folder("whole.tif")), b = load(in_folder("parts.tif"));
    check_part(&b, &a, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, 400, 455});
    free(a.px);
    free(b.px);
    free(in.px);
}

/* Instance norm looks at the whole box, a pool of its size as well: no pieces. The refusal
 * names file and node. */
static void what_is_not_local_has_no_boxes(void)
{
    static const int64_t ext[2] = {64, 96}, one[1] = {8};
    made m = made_begin(2, 1, ext);
    const char *a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    const char *scale = made_weights(&m, 1, one), *bias = made_weights(&m, 1, one);
    const char *b = made_node(&m, "InstanceNormalization", a, scale, bias, NULL, NULL, NULL);
    made_conv(&m, made_slice(&m, b, 0, 60, 0, 92), 8, 1, k3, 1, 1, "y");
    made_end(&m, in_folder("whole.onnx"));
    CHECK_EQ(job(run_verb, "", "model", in_folder("whole.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("no.tif"), NULL),
             TG_E_UNSUPPORTED);
    CHECK(strstr(tg_ctx_detail(ctx), "whole.onnx") != NULL);
    CHECK(strstr(tg_ctx_detail(ctx), "InstanceNormalization") != NULL);
    CHECK(strstr(tg_ctx_detail(ctx), "Slice") != NULL);
    static const int64_t square[2] = {64, 64};
    m = made_begin(2, 1, square);
    a = made_conv(&m, "x", 1, 8, k3, 1, 1, NULL);
    b = made_up(&m, made_pool(&m, a, 64), 8, 8, 8);
    b = made_conv(&m, made_up(&m, b, 8, 8, 8), 8, 8, k3, 1, 1, NULL);
    made_conv(&m, made_slice(&m, made_concat(&m, 1, a, b), 0, 60, 0, 60), 16, 1, k3, 1, 1, "y");
    made_end(&m, in_folder("pool.onnx"));
    CHECK_EQ(job(run_verb, "", "model", in_folder("pool.onnx"), "input", in_folder("in.tif"),
                 "output", in_folder("no.tif"), NULL),
             TG_E_UNSUPPORTED);
    CHECK(strstr(tg_ctx_detail(ctx), "MaxPool") != NULL);
}

/* The same network exported for another size is what the freed one must be there. */
static void a_freed_export_is_the_export_of_that_size(void)
{
    static const int64_t small[2] = {40, 56}, large[2] = {200, 256};
    make_resized(in_folder("small.onnx"), small);
    make_resized(in_folder("large.onnx"), large);
    image in = picture(1, 200, 256);
    save(&in, in_folder("in.tif"));
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("large.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("whole.tif"));
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("small.onnx"), "input", in_folder("in.tif"),
              "output", in_folder("freed.tif"), "tile", "32");
    image a = load(in_folder("whole.tif")), b = load(in_folder("freed.tif"));
    check_part(&b, &a, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, 200, 256});
    free(a.px);
    free(b.px);
    free(in.px);
}

/* Shape arithmetic is done anew for each size, and what it yields is no node of the net. */
static void sizes_that_the_file_computes_follow_the_image(void)
{
    static const int64_t sides[][2] = {{40, 56}, {200, 256}, {8, 1000}, {36, 44}};
    make_computed(in_folder("computed.onnx"));
    tgi_graph *g = graph_of(in_folder("computed.onnx"));
    for (size_t i = 0; g && i < sizeof sides / sizeof sides[0]; i++) {
        const int64_t ext[3] = {1, sides[i][0], sides[i][1]};
        tgi_desc in[TGI_MAX_PORTS];
        tgi_shapes s;
        tgi_err e = {0};
        int known = 0;
        tgi_graph_input_descs(g, ext, in);
        CHECK_OK(tgi_graph_infer(g, in, &s, &e), e);
        for (int n = 0; n < g->n_nodes && s.desc; n++) {
            const tgi_constant *c = &s.known[g->nodes[n].dst[0]];
            if (strcmp(g->nodes[n].op->name, "Div") != 0 || !c->data)
                continue;
            known++;
            CHECK_EQ(((const int64_t *)c->data)[0], sides[i][0] / 2);
            CHECK_EQ(((const int64_t *)c->data)[1], sides[i][1] / 2);
        }
        CHECK_EQ(known, 1);
        tgi_shapes_free(&s);
    }
    tgi_graph_free(&g);
    CHECK_JOB(TG_OK, run_verb, "model", in_folder("computed.onnx"), "input",
              in_folder("in.tif"), "output", in_folder("computed.tif"), "tile", "48");
    image a = load(in_folder("whole.tif")), b = load(in_folder("computed.tif"));
    check_part(&b, &a, (int64_t[3]){0, 0, 0}, (int64_t[3]){1, 200, 256});
    free(a.px);
    free(b.px);
}

int main(void)
{
    help_open();
    RUN(extents_and_what_is_eaten_are_found);
    RUN(a_stride_is_placed_by_its_period);
    RUN(a_border_is_mirrored_without_its_edge_as_often_as_it_takes);
    RUN(the_output_covers_the_image_pixel_for_pixel);
    RUN(a_volume_is_padded_along_z_too);
    RUN(raw_size_is_what_the_network_gives);
    RUN(a_freed_export_is_the_export_of_that_size);
    RUN(sizes_that_the_file_computes_follow_the_image);
    RUN(labels_are_the_number_of_the_largest_channel);
    RUN(boxes_give_what_the_free_network_gives);
    RUN(a_box_keeps_nothing_that_its_own_border_changed);
    RUN(the_plan_says_how_the_image_is_padded_and_cut);
    RUN(a_stopped_run_in_boxes_goes_on_to_the_same_file);
    RUN(what_is_not_local_has_no_boxes);
    help_close();
    return TEST_END();
}
