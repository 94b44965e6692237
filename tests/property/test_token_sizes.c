/* Arrays that are images in another order of axes, and the sizes a network takes: what Squeeze,
 * Flatten and Gemm ask of extents holds after they became operators on images, too, and extents
 * of arrays are those of the operators as the model has them. */
#include "kernels/ops/dense_plan.h"
#include "tests/token_draft.h"

typedef int64_t extents[2];

/* A draft whose input is declared with these extents; -1: open. */
static draft begin_at(const extents declared, uint64_t seed)
{
    draft d = begin(2, 3, seed);
    d.g->in[0].file_dim[2] = declared[0];
    d.g->in[0].file_dim[3] = declared[1];
    return d;
}

static tgi_desc image_of(int64_t h, int64_t w)
{
    return (tgi_desc){TG_DTYPE_F32, 4, {1, 3, h, w}};
}

/* Convolution of kernel and step `by` rows and columns. */
static void add_steps(draft *d, int64_t to, int64_t by_h, int64_t by_w)
{
    const int64_t dim[4] = {to, d->channels, by_h, by_w};
    const float width = sqrtf(3.0f / (float)(d->channels * by_h * by_w));
    conv_attrs *a = then(d, "Conv", floats(d, 4, dim, 0, width), -1);
    a->strides = (tgi_ints){2, {by_h, by_w}};
    d->channels = to;
}

static void add_squeeze(draft *d, int64_t axis)
{
    then(d, "Squeeze", longs(d, 1, 1, &axis), -1);
}

static void add_mat_mul(draft *d, int64_t to)
{
    then(d, "MatMul", weights(d, to, 0), -1);
    d->channels = to;
}

static void rows_of_pixels(draft *d)
{
    static const int64_t turned[3] = {0, 2, 1};
    const int64_t list[3] = {1, d->channels, -1};
    reshape(d, 3, list);
    transpose(d, 3, turned);
    d->order = 0; /* channels are last */
}

/* The tokens as an image with the rows and columns of value `like`. */
static void pixels_like(draft *d, int like)
{
    static const int64_t turned[3] = {0, 2, 1}, rows_columns[2] = {2, 3};
    const int64_t first[2] = {1, d->channels};
    int shape, part[2], list;
    node(d, "Shape", 1, &like, 1, &shape);
    const int pick[2] = {shape, longs(d, 1, 2, rows_columns)};
    part[0] = longs(d, 1, 2, first);
    node(d, "Gather", 2, pick, 1, &part[1]);
    axis_attrs *a = node(d, "Concat", 2, part, 1, &list);
    a->axis = 0;
    transpose(d, 3, turned);
    then(d, "Reshape", list, -1);
}

/* ---- Axes of extent one ------------------------------------------------------------------ */

/* Four rows become one, which a Squeeze takes away; operators on tokens. */
static void text_line(draft *d)
{
    static const int64_t turned[3] = {0, 2, 1};
    add_steps(d, 8, 4, 1);
    then(d, "Relu", -1, -1);
    add_squeeze(d, 2);
    transpose(d, 3, turned);
    then(d, "LayerNormalization", by_channel(d, 1, 0.5f), by_channel(d, 0, 0.5f));
    add_mat_mul(d, 5);
    transpose(d, 3, turned); /* an output in another order is the port's business */
}

/* The same, and numbers by channel that a convolution takes along. */
static void line_that_is_folded(draft *d)
{
    static const int64_t turned[3] = {0, 2, 1};
    add_steps(d, 8, 4, 1);
    add_squeeze(d, 2);
    transpose(d, 3, turned);
    then(d, "Mul", by_channel(d, 1, 0.5f), -1);
    then(d, "Add", by_channel(d, 0, 0.5f), -1);
    then(d, "Relu", -1, -1);
    transpose(d, 3, turned);
}

/* The way back is an Unsqueeze. */
static void line_that_is_an_image_again(draft *d)
{
    const int64_t axis = 2;
    text_line(d);
    then(d, "Unsqueeze", longs(d, 1, 1, &axis), -1);
    add_steps(d, 4, 1, 1);
}

/* Nothing but the Squeeze, which the output takes over. */
static void line_at_the_edge(draft *d)
{
    add_steps(d, 8, 4, 1);
    add_squeeze(d, 2);
}

/* One pixel, flattened, two products, and back. */
static void bottleneck(draft *d)
{
    const int64_t back[4] = {-1, 8, 1, 1}, dim[4] = {8, 3, 4, 4};
    add_steps(d, 8, 4, 4);
    then(d, "Flatten", -1, -1);
    for (int64_t to = 4; to <= 8; to += 4) {
        gemm_attrs *a = then(d, "Gemm", weights(d, to, 1), floats(d, 1, &to, 0, 0.5f));
        a->trans_b = 1;
        d->channels = to;
    }
    reshape(d, 4, back);
    conv_attrs *a = then(d, "ConvTranspose", floats(d, 4, dim, 0, 0.3f), -1);
    a->strides = (tgi_ints){2, {4, 4}};
    d->channels = 3;
}

typedef struct unit_case {
    const char *name;
    void (*add)(draft *d);
    extents declared, works, fails;
} unit_case;

static const unit_case units[] = {
    {"declared rows", text_line, {4, -1}, {4, 23}, {8, 23}},
    {"all declared", text_line, {4, 20}, {4, 20}, {8, 40}},
    {"folded", line_that_is_folded, {4, -1}, {4, 23}, {8, 23}},
    {"an image again", line_that_is_an_image_again, {4, -1}, {4, 23}, {8, 23}},
    {"at the edge", line_at_the_edge, {4, -1}, {4, 23}, {8, 23}},
    {"bottleneck", bottleneck, {4, 4}, {4, 4}, {8, 8}},
};

/* May the finished graph take that size? Inference says so, of a run, too. */
static int takes(const tgi_graph *g, const extents e)
{
    const tgi_desc in = image_of(e[0], e[1]);
    tgi_shapes s;
    tgi_err err = {0};
    const tg_status st = tgi_graph_infer(g, &in, &s, &err);
    tgi_shapes_free(&s);
    return st == TG_OK;
}

static void check_unit(const unit_case *c)
{
    draft a = begin_at(c->declared, 3), b = begin_at(c->declared, 3);
    uint64_t s = 9;
    int flat = 0;
    c->add(&a);
    c->add(&b);
    finish(&b, ~0u);
    if (finish(&a, 0)) {
        const tgi_desc in = image_of(c->works[0], c->works[1]);
        check_size(a.g, b.g, &in, 2, &s, &flat);
        CHECK_EQ(a.g->fixed_size, 1);
        CHECK(takes(a.g, c->works));
        CHECK(!takes(a.g, c->fails));
        CHECK_EQ(tgi_graph_fixed_extent(a.g, 1), c->declared[0]);
        if (c->declared[1] < 0) { /* columns stay what they were: any */
            CHECK_EQ(tgi_graph_fixed_extent(a.g, 2), 0);
            CHECK_EQ(tgi_graph_extent(a.g, 2, 23), 23);
        }
    }
    tgi_graph_free(&a.g);
    tgi_graph_free(&b.g);
}

static void an_axis_of_one_is_asked_for_at_every_size(void)
{
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const int before = tg_failures;
        check_unit(&units[i]);
        if (tg_failures > before)
            fprintf(stderr, "  case: %s\n", units[i].name);
    }
}

/* Rows are open, and at each size that was looked at the line had one: more are refused then. */
static void open_rows_are_refused_where_there_are_two(void)
{
    static const extents open = {-1, -1}, one = {32, 40}, two = {64, 40};
    static const int64_t turned[3] = {0, 2, 1};
    draft d = begin_at(open, 5);
    add_steps(&d, 8, 32, 1);
    add_squeeze(&d, 2);
    transpose(&d, 3, turned);
    add_mat_mul(&d, 5);
    if (finish(&d, 0)) {
        CHECK(takes(d.g, one));
        CHECK(!takes(d.g, two));
    }
    tgi_graph_free(&d.g);
}

/* A declared size hides that there may be more rows: nothing but the file asks for one. */
static void rows_that_may_be_more_are_not_held(void)
{
    static const extents declared = {4, 12};
    draft pair[2];
    uint64_t s = 7;
    for (int i = 0; i < 2; i++) {
        pair[i] = begin_at(declared, 7);
        add_steps(&pair[i], 8, 4, 1);
        const int image = pair[i].at;
        rows_of_pixels(&pair[i]);
        add_mat_mul(&pair[i], 6);
        pixels_like(&pair[i], image);
        add_steps(&pair[i], 4, 1, 1);
    }
    finish(&pair[1], ~0u);
    if (finish(&pair[0], 0)) {
        CHECK_EQ(pair[0].g->fixed_size, 0);
        for (int64_t rows = 4; rows <= 12; rows += 4) {
            const tgi_desc in = image_of(rows, 12);
            int flat = -1;
            check_size(pair[0].g, pair[1].g, &in, 2, &s, &flat);
            CHECK_EQ(flat, 0);
        }
    }
    tgi_graph_free(&pair[0].g);
    tgi_graph_free(&pair[1].g);
}

/* ---- Extents that are the input's at even sizes ------------------------------------------ */

/* Half of each extent, rounded down, and twice that. */
static void halve_and_double(draft *d)
{
    static const float twice[4] = {1, 1, 2, 2};
    const tgi_desc four = {TG_DTYPE_F32, 1, {4}};
    int factors = 0;
    tgi_err e = {0};
    pool_attrs *p = then(d, "MaxPool", -1, -1);
    p->kernel_shape = p->strides = (tgi_ints){2, {2, 2}};
    CHECK_OK(tgi_graph_add_const(d->g, "factors", &four, twice, 0, &factors, &e), e);
    const int src[3] = {d->at, -1, factors};
    resize_attrs *r = node(d, "Resize", 3, src, 1, &d->at);
    r->coord = TGI_COORD_ASYMMETRIC;
    r->nearest = TGI_NEAREST_FLOOR;
}

/* Tokens that meet others: the array is made an image again. */
static void array_of_halves(draft *d)
{
    halve_and_double(d);
    const int image = d->at;
    rows_of_pixels(d);
    const int tokens = d->at;
    axis_attrs *a = then(d, "Softmax", -1, -1);
    a->axis = 1;
    then(d, "Add", tokens, -1);
    add_mat_mul(d, 6);
    pixels_like(d, image);
}

/* The Shape of tokens is asked for, by an array that is none. */
static void shape_of_halves(draft *d)
{
    static const int64_t all = -1;
    int shape;
    halve_and_double(d);
    const int image = d->at;
    rows_of_pixels(d);
    then(d, "Relu", -1, -1);
    node(d, "Shape", 1, &d->at, 1, &shape);
    axis_attrs *a = then(d, "Softmax", -1, -1);
    a->axis = 1;
    reshape(d, 1, &all);
    then(d, "Sigmoid", -1, -1);
    then(d, "Reshape", shape, -1);
    pixels_like(d, image);
}

typedef struct half_case {
    const char *name;
    void (*add)(draft *d);
    extents declared;
} half_case;

static const half_case halves[] = {{"array", array_of_halves, {-1, -1}},
                                   {"shape", shape_of_halves, {-1, -1}},
                                   {"array, declared", array_of_halves, {32, 48}},
                                   {"shape, declared", shape_of_halves, {32, 48}}};

static void check_half(const half_case *c)
{
    static const extents sizes[] = {{32, 48}, {33, 47}, {31, 31}};
    draft a = begin_at(c->declared, 3), b = begin_at(c->declared, 3);
    uint64_t s = 9;
    add_conv(&a, 8);
    add_conv(&b, 8);
    c->add(&a);
    c->add(&b);
    finish(&b, ~0u);
    const int ready = finish(&a, 0);
    CHECK_EQ(a.g->fixed_size, 0);
    CHECK_EQ(a.g->divisor[1] * a.g->divisor[2], 1);
    for (size_t k = 0; ready && k < sizeof sizes / sizeof sizes[0]; k++) {
        const tgi_desc in = image_of(sizes[k][0], sizes[k][1]);
        int flat = 0;
        check_size(a.g, b.g, &in, 0, &s, &flat);
    }
    tgi_graph_free(&a.g);
    tgi_graph_free(&b.g);
}

static void extents_are_the_models_at_odd_sizes(void)
{
    for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        const int before = tg_failures;
        check_half(&halves[i]);
        if (tg_failures > before)
            fprintf(stderr, "  case: %s\n", halves[i].name);
    }
}

/* ---- As many, and not the same ----------------------------------------------------------- */

/* Tokens of an image beside those of one with rows and columns exchanged. */
static void tokens_of_two_images(draft *d)
{
    static const int64_t exchanged[4] = {0, 1, 3, 2};
    add_conv(d, 8);
    const int image = d->at;
    rows_of_pixels(d);
    const int first = d->at;
    d->at = image;
    transpose(d, 4, exchanged);
    add_conv(d, 8);
    rows_of_pixels(d);
    const int both[2] = {first, d->at};
    axis_attrs *a = node(d, "Concat", 2, both, 1, &d->at);
    a->axis = 2;
    d->channels = 16;
    add_mat_mul(d, 6);
    pixels_like(d, image);
}

static void images_of_other_extents_are_not_joined(void)
{
    static const extents open = {-1, -1};
    draft a = begin_at(open, 3), b = begin_at(open, 3);
    uint64_t s = 9;
    tokens_of_two_images(&a);
    tokens_of_two_images(&b);
    finish(&b, ~0u);
    if (finish(&a, 0)) {
        const tgi_desc in = image_of(16, 24);
        int flat = 0;
        check_size(a.g, b.g, &in, 0, &s, &flat);
        CHECK(flat > 0);
    }
    tgi_graph_free(&a.g);
    tgi_graph_free(&b.g);
}

int main(void)
{
    RUN(an_axis_of_one_is_asked_for_at_every_size);
    RUN(open_rows_are_refused_where_there_are_two);
    RUN(rows_that_may_be_more_are_not_held);
    RUN(extents_are_the_models_at_odd_sizes);
    RUN(images_of_other_extents_are_not_joined);
    return TEST_END();
}
