/* Attention of pixels to pixels as exporters write it, drawn, against its operators on arrays one
 * by one: heads, scales, turned keys, values and results, q, k and v of one product, keys of
 * another image. None of it is on arrays then, cut at random it has the same bits, and what is no
 * such attention stays what it was. */
#include "engine/graph/split.h"
#include "engine/plan/speed.h"
#include "tests/token_draft.h"

#define CH 3 /* of the input */

/* ---- Drafts ------------------------------------------------------------------------------ */

enum { UNSCALED, PRODUCT, PRODUCT_BY, QUERIES, KEYS, BOTH, N_SCALES };
enum { APART, GATHERED, SPLIT_OFF, HALVES, N_FUSED };

typedef struct form {
    int spatial, fused, scale, turned, fewer_keys, dropped, einsum;
    int64_t heads, inner, outer; /* channels of a head: of keys, of values */
    float width;                 /* of numbers in the products */
} form;

static int op(draft *d, const char *name, int a, int b)
{
    const int src[2] = {a, b};
    int out;
    node(d, name, b >= 0 ? 2 : 1, src, 1, &out);
    return out;
}

static int turned(draft *d, int v, int rank, const int64_t *perm)
{
    int out;
    tgi_ints *p = node(d, "Transpose", 1, &v, 1, &out);
    p->n = rank;
    memcpy(p->v, perm, (size_t)rank * sizeof *perm);
    return out;
}

static int reshaped(draft *d, int v, int rank, const int64_t *to)
{
    return op(d, "Reshape", v, longs(d, 1, rank, to));
}

static int number(draft *d, float x)
{
    const int64_t none[1] = {1};
    return floats(d, 0, none, x, 0);
}

static int drawn(draft *d, int64_t in, int64_t out, float width)
{
    const int64_t dim[2] = {in, out};
    return floats(d, 2, dim, 0, width * sqrtf(3.0f / (float)in));
}

/* [1,pixels,channels] of an image. */
static int tokens(draft *d, int image, int64_t channels)
{
    static const int64_t perm[3] = {0, 2, 1};
    const int64_t to[3] = {1, channels, -1};
    return turned(d, reshaped(d, image, 3, to), 3, perm);
}

/* [1,heads,pixels,each] of tokens; of one head [1,pixels,each]. */
static int in_heads(draft *d, int v, int64_t heads, int64_t each)
{
    static const int64_t perm[4] = {0, 2, 1, 3};
    const int64_t to[4] = {1, -1, heads, each};
    return heads == 1 ? v : turned(d, reshaped(d, v, 4, to), 4, perm);
}

static int last_two(draft *d, int v, int64_t heads)
{
    static const int64_t three[3] = {0, 2, 1}, four[4] = {0, 1, 3, 2};
    return turned(d, v, heads == 1 ? 3 : 4, heads == 1 ? three : four);
}

/* Queries, keys and values of the tokens t, or the last two of u. */
static void make_operands(draft *d, const form *f, int t, int u, int64_t channels, int *qkv)
{
    const int64_t inner = f->heads * f->inner, outer = f->heads * f->outer;
    qkv[0] = op(d, "MatMul", t, drawn(d, channels, inner, f->width));
    qkv[1] = op(d, "MatMul", u, drawn(d, channels, inner, f->width));
    qkv[2] = op(d, "MatMul", u, drawn(d, channels, outer, 1));
    for (int k = 0; k < 3; k++)
        qkv[k] = in_heads(d, qkv[k], f->heads, k == 2 ? f->outer : f->inner);
}

/* Of one product: [1,N,3,heads,each], the parts in front and then picked. */
static void make_fused(draft *d, const form *f, int t, int64_t channels, int *qkv)
{
    static const int64_t first[5] = {2, 0, 3, 1, 4}, second[5] = {0, 2, 3, 1, 4};
    const int64_t all = f->heads * f->inner, apart[5] = {1, -1, 3, f->heads, f->inner};
    const int64_t four[4] = {1, f->heads, -1, f->inner};
    const int one = op(d, "MatMul", t, drawn(d, channels, 3 * all, 1));
    const int v =
        turned(d, reshaped(d, one, 5, apart), 5, f->fused == SPLIT_OFF ? second : first);
    if (f->fused == SPLIT_OFF) {
        int64_t *a = node(d, "Split", 1, &v, 3, qkv);
        a[0] = 1;
        a[1] = 3;
        for (int k = 0; k < 3; k++)
            qkv[k] = reshaped(d, qkv[k], 4, four);
        return;
    }
    for (int64_t k = 0; k < 3; k++) {
        const int src[2] = {v, longs(d, 0, 1, &k)};
        axis_attrs *a = node(d, "Gather", 2, src, 1, &qkv[k]);
        a->axis = 0;
    }
}

/* Cut along the channels of tokens. */
static void make_halves(draft *d, const form *f, int t, int64_t channels, int *qkv)
{
    const int one = op(d, "MatMul", t, drawn(d, channels, 3 * f->heads * f->inner, 1));
    int64_t *a = node(d, "Split", 1, &one, 3, qkv);
    a[0] = 2;
    a[1] = 3;
    for (int k = 0; k < 3; k++)
        qkv[k] = in_heads(d, qkv[k], f->heads, f->inner);
}

static int by_letters(draft *d, const form *f, const char *equation, int a, int b)
{
    const int src[2] = {a, b};
    int out, n = 0;
    char *to = node(d, "Einsum", 2, src, 1, &out);
    for (const char *c = equation; *c; c++) /* without heads their letter goes */
        if (*c != 'h' || f->heads > 1)
            to[n++] = *c;
    to[n] = 0;
    return out;
}

static int likeness(draft *d, const form *f, int q, int k)
{
    const float by = 1 / sqrtf((float)f->inner), root = sqrtf(by);
    if (f->scale == QUERIES || f->scale == BOTH)
        q = op(d, "Mul", q, number(d, f->scale == BOTH ? root : by));
    if (f->scale == KEYS)
        k = op(d, "Div", k, number(d, 1 / by));
    if (!f->einsum)
        k = last_two(d, k, f->heads);
    if (f->scale == BOTH) /* as scaled_dot_product_attention is exported */
        k = op(d, "Mul", k, number(d, root));
    const int p = f->einsum ? by_letters(d, f, "bhic,bhjc->bhij", q, k) : op(d, "MatMul", q, k);
    return f->scale == PRODUCT      ? op(d, "Mul", number(d, by), p)
           : f->scale == PRODUCT_BY ? op(d, "Div", p, number(d, 1 / by))
                                    : p;
}

/* The weights of all pixels for each. */
static int weights_of(draft *d, int like)
{
    int out;
    axis_attrs *a = node(d, "Softmax", 1, &like, 1, &out);
    a->axis = -1;
    return out;
}

/* [1,pixels,channels] or, turned, [1,channels,pixels] of what the product yields. */
static int together(draft *d, const form *f, int v)
{
    static const int64_t four[4] = {0, 2, 1, 3};
    const int64_t rows[3] = {1, -1, f->heads * f->outer},
                  lines[3] = {1, f->heads * f->outer, -1};
    if (f->heads == 1)
        return v;
    return f->turned ? reshaped(d, v, 3, lines) : reshaped(d, turned(d, v, 4, four), 3, rows);
}

static int summed(draft *d, const form *f, int weights, int v)
{
    if (f->dropped)
        weights = op(d, "Dropout", weights, -1);
    if (f->einsum)
        return by_letters(d, f, f->turned ? "bhjc,bhij->bhci" : "bhij,bhjc->bhic",
                          f->turned ? v : weights, f->turned ? weights : v);
    return f->turned ? op(d, "MatMul", last_two(d, v, f->heads), last_two(d, weights, f->heads))
                     : op(d, "MatMul", weights, v);
}

/* [1,C,(D,)H,W] with the extents of the input, of tokens or lines. */
static void to_picture(draft *d, const form *f, int v, int64_t channels)
{
    static const int64_t perm[3] = {0, 2, 1};
    const int64_t one = 1, axes[3] = {2, 3, 4};
    const int shape = op(d, "Shape", d->x, -1);
    const int part[3] = {longs(d, 1, 1, &one), longs(d, 1, 1, &channels),
                         op(d, "Gather", shape, longs(d, 1, f->spatial, axes))};
    int list;
    axis_attrs *a = node(d, "Concat", 3, part, 1, &list);
    a->axis = 0;
    d->at = op(d, "Reshape", f->turned ? v : turned(d, v, 3, perm), list);
    d->channels = channels;
}

/* Every second pixel. */
static int fewer(draft *d, const form *f, int image)
{
    int out;
    pool_attrs *a = node(d, "MaxPool", 1, &image, 1, &out);
    a->kernel_shape.n = a->strides.n = f->spatial;
    for (int k = 0; k < f->spatial; k++) {
        a->kernel_shape.v[k] = 1;
        a->strides.v[k] = 2;
    }
    return out;
}

static draft make(const form *f, uint64_t seed)
{
    draft d = begin(f->spatial, CH, seed);
    int qkv[3];
    add_conv(&d, 8);
    const int t = tokens(&d, d.at, 8);
    const int u = f->fewer_keys ? tokens(&d, fewer(&d, f, d.at), 8) : t;
    if (f->fused == APART)
        make_operands(&d, f, t, u, 8, qkv);
    else if (f->fused == HALVES)
        make_halves(&d, f, t, 8, qkv);
    else
        make_fused(&d, f, t, 8, qkv);
    const int w = weights_of(&d, likeness(&d, f, qkv[0], qkv[1]));
    to_picture(&d, f, together(&d, f, summed(&d, f, w, qkv[2])), f->heads * f->outer);
    then(&d, "Tanh", -1, -1);
    add_conv(&d, 2);
    return d;
}

/* ---- What must hold ---------------------------------------------------------------------- */

static tgi_desc small(int spatial, int k)
{
    static const int64_t two[3][2] = {{12, 20}, {9, 17}, {16, 7}},
                         three[3][3] = {{2, 6, 8}, {3, 5, 7}, {5, 4, 6}};
    tgi_desc d = {TG_DTYPE_F32, spatial + 2, {1, CH}};
    for (int i = 0; i < spatial; i++)
        d.dim[2 + i] = spatial == 2 ? two[k][i] : three[k][i];
    return d;
}

static int count(const tgi_graph *g, const char *name)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++)
        n += strcmp(g->nodes[i].op->name, name) == 0;
    return n;
}

/* People see the model's operators. */
static void check_names(const tgi_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++)
        CHECK(strcmp(tgi_node_op_name(&g->nodes[i]), "PixelAttention") != 0);
    for (int i = 0; i < g->n_plain; i++)
        CHECK(strcmp(g->plain[i]->name, "PixelAttention") != 0);
}

static void check_form(const form *f, uint64_t seed)
{
    draft a = make(f, seed), b = make(f, seed);
    const int before = tg_failures;
    uint64_t s = seed;
    finish(&b, ~0u);
    const int sizes = finish(&a, 0) ? 3 : 0;
    CHECK_EQ(count(a.g, "PixelAttention"), 1);
    CHECK_EQ(count(a.g, "Softmax"), 0);
    check_names(a.g);
    for (int k = 0; k < sizes; k++) {
        const tgi_desc in = small(f->spatial, k);
        int flat = -1;
        check_size(a.g, b.g, &in, 3, &s, &flat);
        CHECK_EQ(flat, 0);
    }
    tgi_graph_free(&a.g);
    tgi_graph_free(&b.g);
    if (tg_failures > before)
        fprintf(stderr,
                "  %d axes, %lld heads of %lld and %lld, scale %d, fused %d, turned %d, fewer "
                "%d, einsum %d\n",
                f->spatial, (long long)f->heads, (long long)f->inner, (long long)f->outer,
                f->scale, f->fused, f->turned, f->fewer_keys, f->einsum);
}

static form draw(uint64_t seed, int k)
{
    uint64_t s = (seed + (uint64_t)k) * 6364136223846793005u | 1;
    form f = {.spatial = 2 + (k & 1),
              .fused = k / 2 % N_FUSED,
              .scale = (int)tg_rand_in(&s, 0, N_SCALES - 1),
              .turned = (int)tg_rand_in(&s, 0, 1),
              .fewer_keys = (int)tg_rand_in(&s, 0, 1),
              .dropped = k % 5 == 0,
              .einsum = tg_rand_in(&s, 0, 2) == 0,
              .heads = tg_rand_in(&s, 1, 4),
              .inner = tg_rand_in(&s, 1, 9),
              .outer = tg_rand_in(&s, 1, 9),
              .width = 2};
    if (f.fused != APART) {
        f.outer = f.inner;
        f.fewer_keys = 0;
    }
    if (f.fused == GATHERED || f.fused == SPLIT_OFF)
        f.heads = tgi_max(f.heads, 2);
    return f;
}

static void drawn_attention_is_on_images(void)
{
    for (int k = 0; k < 48; k++) {
        const form f = draw(71, k);
        check_form(&f, (uint64_t)k + 1);
    }
    printf("attention: farthest %.2g\n", farthest);
}

/* ---- What it is not ---------------------------------------------------------------------- */

static const form plain_form = {.spatial = 2, .heads = 1, .inner = 8, .outer = 8, .width = 1};

static void with_mask(draft *d, const int *qkv)
{
    const int64_t dim[3] = {1, 1, 1};
    const int like = likeness(d, &plain_form, qkv[0], qkv[1]);
    const int masked = op(d, "Add", like, floats(d, 3, dim, 1, 0));
    d->at = op(d, "MatMul", weights_of(d, masked), qkv[2]);
}

static void over_queries(draft *d, const int *qkv)
{
    const int like = likeness(d, &plain_form, qkv[0], qkv[1]);
    int w;
    axis_attrs *a = node(d, "Softmax", 1, &like, 1, &w);
    a->axis = 1;
    d->at = op(d, "MatMul", w, qkv[2]);
}

static void weights_read_twice(draft *d, const int *qkv)
{
    const int w = weights_of(d, likeness(d, &plain_form, qkv[0], qkv[1]));
    d->at = op(d, "Add", op(d, "MatMul", w, qkv[2]), op(d, "MatMul", w, qkv[0]));
}

static void product_read_twice(draft *d, const int *qkv)
{
    const int64_t axis = 2;
    const int like = likeness(d, &plain_form, qkv[0], qkv[1]);
    const int most = op(d, "ReduceMax", like, longs(d, 1, 1, &axis));
    d->at = op(d, "Add", op(d, "MatMul", weights_of(d, like), qkv[2]), most);
}

/* The channels attend to the channels. */
static void of_channels(draft *d, const int *qkv)
{
    const int like = op(d, "MatMul", last_two(d, qkv[0], 1), qkv[1]);
    d->at = last_two(d, op(d, "MatMul", weights_of(d, like), last_two(d, qkv[2], 1)), 1);
}

/* Not the softmax of a product. */
static void likeness_squared(draft *d, const int *qkv)
{
    const int like = likeness(d, &plain_form, qkv[0], qkv[1]);
    d->at = op(d, "MatMul", weights_of(d, op(d, "Mul", like, like)), qkv[2]);
}

/* Values by columns, keys by rows. */
static void values_of_other_places(draft *d, const int *qkv)
{
    static const int64_t exchanged[4] = {0, 1, 3, 2};
    const int v = tokens(d, turned(d, d->at, 4, exchanged), 8);
    const int w = weights_of(d, likeness(d, &plain_form, qkv[0], qkv[1]));
    d->at = op(d, "MatMul", w, op(d, "MatMul", v, drawn(d, 8, 8, 1)));
}

/* Two heads look at the same keys. */
static void keys_of_all_heads(draft *d, const int *qkv)
{
    static const int64_t four[4] = {0, 2, 1, 3};
    const int64_t one[4] = {1, 1, -1, 4}, rows[3] = {1, -1, 8};
    const int k = reshaped(d, op(d, "MatMul", qkv[1], drawn(d, 8, 4, 1)), 4, one);
    const int like = op(d, "MatMul", in_heads(d, qkv[0], 2, 4), last_two(d, k, 2));
    const int sum = op(d, "MatMul", weights_of(d, like), in_heads(d, qkv[2], 2, 4));
    d->at = reshaped(d, turned(d, sum, 4, four), 3, rows);
}

static void other_networks_keep_their_arrays(void)
{
    static const struct {
        const char *name;
        void (*add)(draft *d, const int *qkv);
    } other[] = {{"with a mask", with_mask},
                 {"over queries", over_queries},
                 {"weights read twice", weights_read_twice},
                 {"product read twice", product_read_twice},
                 {"of channels", of_channels},
                 {"values of other places", values_of_other_places},
                 {"keys of all heads", keys_of_all_heads},
                 {"likeness squared", likeness_squared}};
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        const int before = tg_failures;
        const tgi_desc in = small(2, 1);
        draft pair[2];
        uint64_t s = 3;
        int flat, qkv[3];
        for (int k = 0; k < 2; k++) {
            pair[k] = begin(2, CH, 7);
            add_conv(&pair[k], 8);
            const int t = tokens(&pair[k], pair[k].at, 8);
            make_operands(&pair[k], &plain_form, t, t, 8, qkv);
            other[i].add(&pair[k], qkv);
            to_picture(&pair[k], &plain_form, pair[k].at, 8);
            add_conv(&pair[k], 2);
        }
        finish(&pair[1], ~0u);
        if (finish(&pair[0], 0))
            check_size(pair[0].g, pair[1].g, &in, 0, &s, &flat);
        CHECK_EQ(count(pair[0].g, "PixelAttention"), 0);
        tgi_graph_free(&pair[0].g);
        tgi_graph_free(&pair[1].g);
        if (tg_failures > before)
            fprintf(stderr, "  case: %s\n", other[i].name);
    }
}

/* ---- Large numbers, many pixels, other machines ------------------------------------------ */

/* Likenesses of thousands: e to them is no number, the result is. */
static void large_likenesses_leave_no_gaps(void)
{
    const form f = {.spatial = 2, .heads = 2, .inner = 4, .outer = 4, .width = 300};
    draft d = make(&f, 9);
    tgi_net *net = NULL;
    tgi_err e = {0};
    uint64_t s = 4;
    const tgi_desc in = small(2, 0);
    if (finish(&d, 0))
        CHECK_OK(
            tgi_net_new(d.g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), &in, 0, &net, &e),
            e);
    if (net) {
        float *x = noise(CH * 12 * 20, &s), *y = run(net, x, 2, &s);
        int bad = 0;
        for (size_t i = 0; i < net_out_count(net, 0); i++)
            bad += !isfinite(y[i]);
        CHECK_EQ(bad, 0);
        tgi_free(x);
        tgi_free(y);
    }
    tgi_net_free(&net);
    tgi_graph_free(&d.g);
}

/* Operations of the network over an image of 64 rows of this width, and the stated seconds. */
static double work_of(const tgi_graph *g, int64_t width, double *seconds)
{
    static const int64_t uncut[3] = {0, 0, 0};
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, CH, 64, width}};
    tgi_net *net = NULL;
    tgi_stages *stages = NULL;
    tgi_tiling t = {0};
    tgi_speeds usual;
    tgi_err e = {0};
    double flops = 0;
    tgi_speeds_usual(1, NULL, &usual);
    CHECK_OK(tgi_net_new(g, tgi_backend_for(TGI_ISA_PORTABLE), &in, 0, &net, &e), e);
    CHECK_OK(tgi_stages_new(net, &stages, &e), e);
    CHECK_OK(tgi_tiling_make(&stages->one, uncut, 64, 1, NULL, &t, &e), e);
    for (int k = 0; k < stages->one.n_nodes; k++)
        flops += t.node_flops[2 * k];
    *seconds = tgi_speed_kernels(&usual, &t, 1);
    tgi_tiling_free(&t);
    tgi_stages_free(&stages);
    tgi_net_free(&net);
    return flops;
}

/* Four times the pixels: sixteen times the work, less what the layers around it take. */
static void work_and_time_are_those_of_all_pixels_by_all_pixels(void)
{
    draft d = make(&plain_form, 5);
    double less, more;
    if (finish(&d, 0)) {
        const double work = work_of(d.g, 64, &less);
        CHECK(work > 2.0 * 16 * 4096 * 4096);
        CHECK(work_of(d.g, 256, &more) > 15 * work);
        CHECK(more > 15 * less && more < 17 * less);
    }
    tgi_graph_free(&d.g);
}

/* For a device the operators on arrays, the same numbers. */
static void taken_apart_it_is_what_it_was(void)
{
    for (int k = 0; k < 8; k++) {
        const form f = draw(5, k);
        draft d = make(&f, (uint64_t)k + 2);
        tgi_graph *parts = NULL;
        tgi_shapes s = {0};
        tgi_err e = {0};
        uint64_t seed = 8;
        const tgi_desc in = small(f.spatial, 1);
        tgi_desc got, want;
        if (finish(&d, TGI_GRAPH_NO_FUSE)) {
            CHECK_OK(tgi_graph_infer(d.g, &in, &s, &e), e);
            CHECK_OK(tgi_split_attention_of(d.g, &s, &parts, &e), e);
        }
        CHECK(parts && count(parts, "PixelAttention") == 0 && count(parts, "Softmax") == 1);
        if (parts) {
            int64_t n = 0;
            tgi_desc_count(&in, &n);
            float *x = noise(n, &seed), *a = dense_eval(d.g, &in, x, &want);
            float *b = dense_eval(parts, &in, x, &got);
            CHECK(tgi_desc_same_shape(&got, &want));
            tgi_desc_count(&want, &n);
            for (int64_t i = 0; a && b && i < n; i++)
                CHECK(fabsf(a[i] - b[i]) < 1e-5f);
            check_names(parts);
            tgi_free(x);
            tgi_free(a);
            tgi_free(b);
        }
        tgi_split_free(&parts);
        tgi_shapes_free(&s);
        tgi_graph_free(&d.g);
    }
}

int main(void)
{
    RUN(drawn_attention_is_on_images);
    RUN(other_networks_keep_their_arrays);
    RUN(large_likenesses_leave_no_gaps);
    RUN(work_and_time_are_those_of_all_pixels_by_all_pixels);
    RUN(taken_apart_it_is_what_it_was);
    return TEST_END();
}
