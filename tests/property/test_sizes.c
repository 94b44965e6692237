/* test_sizes.c - images and networks whose sizes do not meet: what the network eats is padded
 * for, and extents it does not take are filled up. The expectation is always a run of the plain
 * network on an image that the test padded itself. A network of one size: test_boxes.c. */
#include "engine/plan/mapping.h"
#include "tests/property/sizes_case.h"

#define H 83
#define W 101

static const int64_t k5x3[2] = {5, 3};

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
    help_close();
    return TEST_END();
}
