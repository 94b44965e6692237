/* Stages: drawn graphs are cut where a value is read from edge to edge, and nowhere else; what
 * crosses a cut is stored or recomputed by its cost. */
#include "engine/plan/stage_cut.h"
#include "engine/plan/staged.h"
#include "kernels/ops/op_attrs.h"
#include "tests/tg_test.h"

typedef struct draft {
    tgi_graph *g;
    tgi_net *net;
    tgi_stages *s;
    int n_names;
} draft;

static draft begin(void)
{
    draft d = {0};
    tgi_err e = {0};
    CHECK_OK(tgi_graph_new(&d.g, &e), e);
    return d;
}

static int value(draft *d, const char *name)
{
    int v = 0;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_value(d->g, name, &v, &e), e);
    return v;
}

static int input(draft *d, int64_t channels)
{
    const int64_t dim[4] = {1, channels, -1, -1};
    const int v = value(d, "in");
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_input(d->g, v, 4, dim, &e), e);
    return v;
}

/* A constant of `n` ones, or of the weights' shape. */
static int constant(draft *d, int64_t n, int64_t cin, int64_t k)
{
    const tgi_desc desc = {TG_DTYPE_F32, cin ? 4 : 1, {n, cin, k, k}};
    const size_t count = (size_t)(n * (cin ? cin * k * k : 1));
    char name[16];
    int v = 0;
    tgi_err e = {0};
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = 1.0f;
    snprintf(name, sizeof name, "k%d", d->n_names++);
    CHECK_OK(tgi_graph_add_const(d->g, name, &desc, data, 0, &v, &e), e);
    free(data);
    return v;
}

/* A node that yields a value of the same name as itself. */
static int add(draft *d, const char *op, const char *name, int n_src, const int *src)
{
    const int out = value(d, name);
    tgi_node *node = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_node(d->g, op, name, n_src, src, 1, &out, &node, &e), e);
    if (strcmp(op, "Conv") == 0 && node) {
        conv_attrs *a = node->attrs;
        const int64_t k = d->g->values[src[1]].cst.desc.dim[2];
        a->pads.n = 4;
        for (int i = 0; i < 4; i++)
            a->pads.v[i] = k / 2;
    }
    return out;
}

static int conv(draft *d, const char *name, int from, int64_t cin, int64_t cout, int64_t k)
{
    const int src[2] = {from, constant(d, cout, cin, k)};
    return add(d, "Conv", name, 2, src);
}

static int one(draft *d, const char *op, const char *name, int from)
{
    return add(d, op, name, 1, &from);
}

static int two(draft *d, const char *op, const char *name, int a, int b)
{
    const int src[2] = {a, b};
    return add(d, op, name, 2, src);
}

/* Each pixel of q looks at all of k and v. */
static int attend(draft *d, const char *name, int q, int k, int v)
{
    const int src[3] = {q, k, v};
    return add(d, "PixelAttention", name, 3, src);
}

static int norm(draft *d, const char *name, int from, int64_t c)
{
    const int src[3] = {from, constant(d, c, 0, 0), constant(d, c, 0, 0)};
    return add(d, "InstanceNormalization", name, 3, src);
}

/* Lay the graph out for a 256 x 256 image and cut it. The graph is left as drawn, without folding
 * and fusion, but for norms: each is two nodes of its name, the first of which yields numbers. */
static void cut(draft *d, int64_t channels)
{
    const tgi_desc in = {TG_DTYPE_F32, 4, {1, channels, 256, 256}};
    tgi_err e = {0};
    CHECK_OK(
        tgi_net_new(d->g, tgi_backend_for(TGI_ISA_PORTABLE), &in, TGI_NET_EXACT, &d->net, &e),
        e);
    if (d->net)
        CHECK_OK(tgi_stages_new(d->net, &d->s, &e), e);
    if (!d->s)
        exit(1);
}

static void output(draft *d, int v)
{
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_output(d->g, v, &e), e);
}

static void end(draft *d)
{
    tgi_stages_free(&d->s);
    tgi_net_free(&d->net);
    tgi_graph_free(&d->g);
}

/* ---- What a stage is, as text ------------------------------------------------------------ */

static const tgi_net_node *maker_of(const draft *d, int v)
{
    for (int i = 0; i < d->net->n_nodes; i++)
        if (d->net->nodes[i].node->dst[0] == v)
            return &d->net->nodes[i];
    return NULL;
}

/* "n#": the numbers of norm n. */
static const char *name_of(const draft *d, int v)
{
    static char text[4][64];
    static int next;
    const tgi_net_node *n = maker_of(d, v);
    char *at = text[next++ % 4];
    snprintf(at, sizeof text[0], "%.60s%s", d->net->g->values[v].name,
             n && strcmp(n->node->op->name, "NormNumbers") == 0 ? "#" : "");
    return at;
}

/* "nodes | in, *loaded at once, (recomputed) | out, out for waiting node, ~reduced for node" */
static const char *stage_text(const draft *d, const tgi_stage *s)
{
    static char buf[1024];
    int at = 0;
    for (int k = 0; k < s->n_nodes; k++)
        at += snprintf(buf + at, sizeof buf - (size_t)at, "%s%s", k ? " " : "",
                       tgi_stage_node(s, k)->node->name);
    at += snprintf(buf + at, sizeof buf - (size_t)at, " |");
    for (int i = 0; i < s->n_in; i++)
        at += snprintf(buf + at, sizeof buf - (size_t)at,
                       s->in[i].recomputed ? " (%s)"
                       : s->in[i].at_once  ? " *%s"
                                           : " %s",
                       name_of(d, s->in[i].value));
    at += snprintf(buf + at, sizeof buf - (size_t)at, " |");
    for (int o = 0; o < s->n_out; o++) {
        const tgi_stage_out *out = &s->out[o];
        at += snprintf(buf + at, sizeof buf - (size_t)at, out->reduced ? " ~%s" : " %s",
                       name_of(d, out->value));
        if (out->whole >= 0)
            at += snprintf(buf + at, sizeof buf - (size_t)at, ">%s",
                           d->net->nodes[out->whole].node->name);
    }
    return buf;
}

static void check_stage(const draft *d, int k, const char *want)
{
    CHECK(k < d->s->n);
    if (k < d->s->n)
        CHECK_STR(stage_text(d, &d->s->stage[k]), want);
}

/* ---- Behaviours -------------------------------------------------------------------------- */

static void a_local_network_is_one_stage_with_all_nodes(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 8, 3);
    const int b = one(&d, "Relu", "b", conv(&d, "c", a, 8, 8, 3));
    output(&d, two(&d, "Add", "sum", a, b));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 1);
    check_stage(&d, 0, "a c b sum | in | sum");
    CHECK_STR(stage_text(&d, &d.s->one), "a c b sum | in | sum");
    CHECK(d.s->one.whole_op == NULL);
    end(&d);
}

static void a_pool_in_the_middle_ends_the_stage_that_it_belongs_to(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 8, 3);
    const int p = one(&d, "GlobalAveragePool", "pool", a);
    output(&d, conv(&d, "head", p, 8, 4, 1));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "a | in | ~a>pool");
    check_stage(&d, 1, "head | pool | head");
    CHECK_STR(d.s->one.whole_op, "pool");
    CHECK(d.s->stage[0].whole_op == NULL); /* gathered while rows pass: no node of it */
    end(&d);
}

/* Its numbers are there when its stage is through: the next one hands them out. */
static void a_pool_at_the_very_end_is_handed_out_by_a_stage_of_its_own(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 8, 3);
    output(&d, one(&d, "GlobalMaxPool", "pool", a));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "a | in | ~a>pool");
    check_stage(&d, 1, " | pool | pool");
    end(&d);
}

/* Squeeze and excite: the image itself crosses the cut. Cheap to compute again. */
static void a_cheap_value_beside_a_squeeze_branch_is_recomputed(void)
{
    draft d = begin();
    const int in = input(&d, 1), x = conv(&d, "x", in, 1, 8, 3);
    const int p = one(&d, "GlobalAveragePool", "pool", x);
    const int g = one(&d, "Sigmoid", "gate", conv(&d, "squeeze", p, 8, 8, 1));
    output(&d, two(&d, "Mul", "scaled", x, g));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "x | in | ~x>pool");
    check_stage(&d, 1, "x squeeze gate scaled | in pool (x) | scaled");
    end(&d);
}

/* The same with 64 channels read by a 3x3 convolution: 1,152 operations a value are more than
 * moving its four bytes twice. Its input, too, is used after the cut, and cheap. */
static void a_dear_value_is_stored_and_a_cheap_one_beside_it_recomputed(void)
{
    draft d = begin();
    const int in = input(&d, 1), y = conv(&d, "y", in, 1, 64, 3),
              x = conv(&d, "x", y, 64, 64, 3);
    const int p = one(&d, "GlobalAveragePool", "pool", x);
    const int m = two(&d, "Mul", "scaled", x, p);
    output(&d, two(&d, "Add", "skip", m, y));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "y x | in | x ~x>pool");
    check_stage(&d, 1, "y scaled skip | x in pool (y) | skip"); /* x has more floats than in */
    /* Where a stage's lists say: loaded first, alive until handed out. */
    tgi_stage *s = &d.s->stage[1];
    tgi_err err = {0};
    CHECK_OK(tgi_stage_lifetimes(&d.s->stage[0], &err), err);
    CHECK_OK(tgi_stage_lifetimes(s, &err), err);
    CHECK_EQ(s->n_loaded, 3);
    CHECK_EQ(s->values[x].first, -1);
    CHECK_EQ(s->values[x].last, 1);
    CHECK_EQ(s->values[y].first, 0);
    CHECK_EQ(s->values[y].last, 2);
    CHECK_EQ(d.s->stage[0].values[x].last, 2);
    end(&d);
}

/* Sums along a chain of residual blocks: each could be had from all earlier ones, but reading
 * those costs more than keeping the sum. */
static void reading_many_values_to_recompute_one_is_dearer_than_storing_it(void)
{
    draft d = begin();
    char name[4][8];
    const int in = input(&d, 64);
    int sum = conv(&d, "x", in, 64, 64, 3);
    for (int i = 0; i < 4; i++) {
        snprintf(name[i], sizeof name[i], "c%d", i);
        const int c = conv(&d, name[i], sum, 64, 64, 3);
        name[i][0] = 'n';
        const int n = norm(&d, name[i], c, 64);
        name[i][0] = 's';
        sum = two(&d, "Add", name[i], sum, n);
    }
    output(&d, sum);
    cut(&d, 64);
    CHECK_EQ(d.s->n, 5);
    check_stage(&d, 0, "x c0 | in | x c0 ~c0>n0");
    check_stage(&d, 1, "n0 s0 c1 | x c0 n0# | s0 c1 ~c1>n1");
    check_stage(&d, 2, "n1 s1 c2 | s0 c1 n1# | s1 c2 ~c2>n2");
    check_stage(&d, 4, "n3 s3 | s2 c3 n3# | s3");
    end(&d);
}

static void a_chain_of_norms_is_cut_at_each(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 64, 3);
    const int n1 = norm(&d, "n1", a, 64), b = conv(&d, "b", n1, 64, 64, 3);
    const int n2 = norm(&d, "n2", b, 64);
    output(&d, conv(&d, "c", n2, 64, 1, 1));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 3);
    check_stage(&d, 0, "a | in | ~a>n1");
    check_stage(&d, 1, "a n1 b | in n1# (a) | b ~b>n2");
    check_stage(&d, 2, "n2 c | b n2# | c");
    CHECK_STR(d.s->one.whole_op, "n1");
    end(&d);
}

static void a_norm_of_the_input_needs_a_pass_that_only_reads(void)
{
    draft d = begin();
    const int in = input(&d, 2), n = norm(&d, "n", in, 2);
    output(&d, conv(&d, "a", n, 2, 1, 3));
    cut(&d, 2);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, " | in | ~in>n");
    check_stage(&d, 1, "n a | in n# | a");
    end(&d);
}

static void operators_that_wait_for_the_same_stage_share_a_cut(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 8, 3);
    const int b = conv(&d, "b", in, 1, 8, 5);
    const int p = one(&d, "GlobalAveragePool", "pool", a), n = norm(&d, "norm", b, 8);
    output(&d, two(&d, "Mul", "out", n, p));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "a b | in | ~a>pool ~b>norm");
    check_stage(&d, 1, "b norm out | in pool norm# (b) | out");
    end(&d);
}

/* A branch that is only needed after the cut is not computed before it. */
static void what_only_a_later_stage_uses_is_computed_there(void)
{
    draft d = begin();
    const int in = input(&d, 64), a = conv(&d, "a", in, 64, 64, 3);
    const int late = conv(&d, "late", in, 64, 64, 3);
    const int p = one(&d, "GlobalAveragePool", "pool", a);
    output(&d, two(&d, "Mul", "out", late, p));
    cut(&d, 64);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "a | in | ~a>pool");
    check_stage(&d, 1, "late out | in pool | out");
    end(&d);
}

/* A reduction of a single pixel waits for nothing. */
static void a_pool_of_one_pixel_cuts_nothing(void)
{
    draft d = begin();
    const int in = input(&d, 1), p = one(&d, "GlobalAveragePool", "pool", in);
    output(&d, one(&d, "GlobalMaxPool", "again", conv(&d, "a", p, 1, 4, 1)));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, " | in | ~in>pool");
    check_stage(&d, 1, "a again | pool | again");
    end(&d);
}

/* An operator that needs every pixel at once. */
static int mix(draft *d, const char *name, int from, int64_t c)
{
    static tgi_op mixer;
    const int v = norm(d, name, from, c);
    tgi_node *n = &d->g->nodes[d->g->n_nodes - 1];
    mixer = *n->op;
    mixer.name = "Mix";
    n->op = &mixer;
    return v;
}

/* It has a stage of its own, and the value before it is stored, however cheap. */
static void an_operator_that_needs_all_pixels_has_them_stored(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 8, 3);
    const int m = mix(&d, "mix", a, 8), n = norm(&d, "n", m, 8);
    output(&d, two(&d, "Add", "out", n, m));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 4);
    check_stage(&d, 0, "a | in | a>mix");
    check_stage(&d, 1, "mix | a | mix");
    check_stage(&d, 2, " | mix | ~mix>n");
    check_stage(&d, 3, "n out | mix n# | out"); /* not mixed once more */
    CHECK_STR(d.s->stage[1].whole_op, "mix");
    CHECK(d.s->stage[2].whole_op == NULL && d.s->stage[3].whole_op == NULL);
    end(&d);
}

/* Layers around it still stream: before it in the stage that stores its operand, behind it in
 * the next one. Two in a row are one stage. */
static void operators_that_need_all_pixels_share_a_stage_and_nothing_else_is_in_it(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 8, 3), b = conv(&d, "b", a, 8, 8, 3);
    const int m = mix(&d, "mix", b, 8), again = mix(&d, "again", m, 8);
    output(&d, conv(&d, "c", two(&d, "Add", "sum", again, a), 8, 1, 3));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 3);
    check_stage(&d, 0, "a b | in | b>mix");
    check_stage(&d, 1, "mix again | b | again");
    check_stage(&d, 2, "a sum c | again in (a) | c");
    end(&d);
}

/* Queries stream through the stage, which has keys and values from the one before. A layer behind
 * it is in the stage, too. */
static void queries_stream_past_keys_and_values_that_are_loaded_at_once(void)
{
    draft d = begin();
    const int in = input(&d, 8), a = conv(&d, "a", in, 8, 8, 3), q = conv(&d, "q", a, 8, 8, 1);
    const int k = conv(&d, "k", a, 8, 8, 1), v = conv(&d, "v", a, 8, 8, 15);
    const int look = attend(&d, "look", q, k, v);
    output(&d, conv(&d, "b", two(&d, "Add", "sum", look, a), 8, 8, 3));
    cut(&d, 8);
    CHECK_STR(d.s->one.whole_op, "look");
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "a k v | in | k>look v>look");
    check_stage(&d, 1, "a q look sum b | in *k *v (a) | b");
    CHECK(d.s->stage[0].whole_op == NULL && d.s->stage[1].whole_op == NULL);
    char text[160];
    tgi_stages_at_once_text(d.s, text, sizeof text);
    CHECK_STR(text, "");
    end(&d);
}

/* Queries, keys and values as parts of one product: the node that parts them does not run once more
 * for the queries beside keys and values that are loaded. */
static void what_parts_a_product_runs_once(void)
{
    draft d = begin();
    const int in = input(&d, 8), qkv = conv(&d, "qkv", in, 8, 24, 1);
    const int part[3] = {value(&d, "q"), value(&d, "k"), value(&d, "v")};
    tgi_node *node = NULL;
    tgi_err e = {0};
    CHECK_OK(tgi_graph_add_node(d.g, "Split", "split", 1, &qkv, 3, part, &node, &e), e);
    const int64_t axis = 1; /* the first attribute of Split, which no header has */
    memcpy(node->attrs, &axis, sizeof axis);
    const int look = attend(&d, "look", part[0], part[1], part[2]);
    output(&d, conv(&d, "b", look, 8, 8, 3));
    cut(&d, 8);
    CHECK_EQ(d.s->n, 2);
    check_stage(&d, 0, "qkv split | in | q k>look v>look");
    check_stage(&d, 1, "look b | q *k *v | b");
    end(&d);
}

/* A value that is looked at is stored, though another reader of its rows would make it again; one
 * that looks is never made again. */
static void what_is_looked_at_is_stored_and_what_looks_is_stored_for_later_stages(void)
{
    draft d = begin();
    const int in = input(&d, 8), a = conv(&d, "a", in, 8, 8, 1);
    const int look = attend(&d, "look", a, a, a), n = norm(&d, "n", look, 8);
    output(&d, two(&d, "Add", "sum", attend(&d, "last", n, in, in), look));
    cut(&d, 8);
    CHECK_EQ(d.s->n, 3);
    check_stage(&d, 0, "a | in | a>look");
    check_stage(&d, 1, "look | *a | look ~look>n");
    check_stage(&d, 2, "n last sum | look n# *in | sum");
    end(&d);
}

/* The stage hands its largest value out first. The parts of a reduction still are in order, and
 * have one place for its numbers. */
static void parts_of_a_reduction_share_its_numbers_in_any_order_of_the_outputs(void)
{
    draft d = begin();
    tgi_choice c;
    tgi_err err = {0};
    const int in = input(&d, 1), few = conv(&d, "few", in, 1, 8, 3);
    const int many = conv(&d, "many", few, 8, 32, 3), more = conv(&d, "more", few, 8, 16, 3);
    const int src[3] = {few, many, more};
    const int joined = add(&d, "Concat", "joined", 3, src);
    ((axis_attrs *)d.g->nodes[d.g->n_nodes - 1].attrs)->axis = 1;
    const int p = one(&d, "GlobalMaxPool", "pool", joined),
              q = one(&d, "GlobalAveragePool", "q", few);
    output(&d, two(&d, "Mul", "gated", joined, p));
    output(&d, q);
    cut(&d, 1);
    check_stage(&d, 0, "few many more | in | ~many>pool ~few>pool ~more>pool ~few>q");
    const tgi_staged_args args = {.choose = {.threads = 1,
                                             .limit_bytes = SIZE_MAX,
                                             .unit = {1, 1, 1},
                                             .flops_per_second = 1e9},
                                  .cut = d.s};
    CHECK_OK(tgi_choose_staged(&args, &c, &err), err);
    const tgi_gathered *g = c.staged->gathered;
    CHECK_EQ(c.staged->n_gathered, 4);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(g[i].node, g[0].node);
        CHECK_EQ(g[i].channel, i == 0 ? 0 : i == 1 ? 8 : 40);
        CHECK_EQ(g[i].numbers_at, g[0].numbers_at);
        CHECK(i == 0 || g[i].state_at >= g[i - 1].state_at + g[i - 1].state_bytes);
    }
    CHECK(g[3].numbers_at != g[0].numbers_at);
    CHECK_EQ(c.staged->n_numbers, 56 + 8);
    tgi_choice_free(&c);
    end(&d);
}

static void the_whole_net_is_one_stage_whatever_the_cut(void)
{
    draft d = begin();
    const int in = input(&d, 1), a = conv(&d, "a", in, 1, 64, 3), n = norm(&d, "n", a, 64);
    output(&d, conv(&d, "b", n, 64, 1, 3));
    cut(&d, 1);
    CHECK_EQ(d.s->n, 2);
    CHECK_STR(stage_text(&d, &d.s->one), "a n n b | in | b");
    CHECK_EQ(d.s->one.n_loaded, 1);
    CHECK_EQ(d.s->one.values[in].first, -1);
    CHECK_EQ(d.s->one.values[a].last, 2);
    end(&d);
}

/* ---- Any graph --------------------------------------------------------------------------- */

/* A random graph of local and whole-extent operators on 8 channels. */
static draft drawn(uint64_t seed)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
                                        "k", "l", "m", "n", "o", "p", "q", "r", "s", "t"};
    draft d = begin();
    int v[32] = {input(&d, 8)}, small[32] = {0}, n = 1;
    const int nodes = (int)tg_rand_in(&seed, 3, 20);
    for (int i = 0; i < nodes; i++) {
        const int a = (int)tg_rand_in(&seed, 0, n - 1), b = (int)tg_rand_in(&seed, 0, n - 1);
        small[n] = small[a];
        switch (tg_rand_in(&seed, 0, 7)) {
        case 0:
            v[n] = conv(&d, names[i], v[a], 8, 8, small[a] ? 1 : 3);
            break;
        case 1:
            v[n] = conv(&d, names[i], v[a], 8, 8, small[a] ? 1 : 15); /* dear */
            break;
        case 2:
            v[n] = norm(&d, names[i], v[a], 8);
            break;
        case 3:
            v[n] = one(&d, "GlobalAveragePool", names[i], v[a]);
            small[n] = 1;
            break;
        case 4:
            v[n] = tg_rand_in(&seed, 0, 3) ? one(&d, "Relu", names[i], v[a])
                                           : mix(&d, names[i], v[a], 8);
            break;
        case 5:
            v[n] = attend(&d, names[i], v[a], v[b], v[b]);
            break;
        default:
            v[n] = two(&d, "Mul", names[i], v[a], v[b]);
            small[n] = small[a] && small[b];
        }
        n++;
    }
    for (int i = 1; i < n; i++) { /* what nothing reads, and now and then another, goes out */
        int used = 0;
        for (int k = 0; k < d.g->n_nodes; k++)
            for (int j = 0; j < d.g->nodes[k].n_src; j++)
                used |= d.g->nodes[k].src[j] == v[i];
        if (d.g->n_out < TGI_MAX_PORTS && (!used || tg_rand_in(&seed, 0, 9) == 0))
            output(&d, v[i]);
    }
    return d;
}

static int hands_out(const tgi_stage *s, int v, int whole, int reduced)
{
    for (int o = 0; o < s->n_out; o++)
        if (s->out[o].value == v && s->out[o].reduced == reduced &&
            (whole < 0 || s->out[o].whole == whole))
            return 1;
    return 0;
}

static int runs(const tgi_stage *s, int node)
{
    for (int k = 0; k < s->n_nodes; k++)
        if (s->node[k] == node)
            return 1;
    return 0;
}

/* A node whose numbers are gathered: no stage runs it. */
static int is_gathered(const draft *d, int i)
{
    const tgi_net_node *n = &d->net->nodes[i];
    return n->node->op->reduce && d->net->shapes.desc[n->operand[0].value[0]].dim[2] > 1;
}

/* Values that stage k has without asking: loaded, from the net's inputs or earlier stages. */
static void check_loaded(const draft *d, int k, unsigned char *have)
{
    const tgi_stage *s = &d->s->stage[k];
    for (int i = 0; i < s->n_loaded; i++) {
        const int v = s->in[i].value;
        const tgi_net_node *n = maker_of(d, v);
        const int node = n ? (int)(n - d->net->nodes) : -1;
        int from = v == d->net->in[0];
        for (int j = 0; j < k; j++)
            from |= n && is_gathered(d, node)
                        ? hands_out(&d->s->stage[j], n->operand[0].value[0], node, 1)
                        : hands_out(&d->s->stage[j], v, -1, 0);
        CHECK(from);
        CHECK(s->in[i].at_once || /* in[0] drives */
              (!s->in[0].at_once && tgi_net_dim(d->net, v, 2) <= tgi_stage_in_dim(s, 0, 2)));
        have[v] = 1;
    }
}

/* What needs all pixels has them from outside, or from another such node before it; what looks at
 * them, from outside and at once. */
static void check_whole(const draft *d, const tgi_stage *s, const tgi_net_node *n)
{
    const int looks = n->node->op->by_rows && tgi_is_streamed(d->net, n->operand[0].value[0]);
    for (int j = 0; tgi_is_whole(n) && j < n->n_operands; j++) {
        const int v = n->operand[j].value[0];
        const tgi_net_node *by = looks ? NULL : maker_of(d, v);
        int loaded = looks ? !tgi_reads_whole(n, j) : !tgi_is_streamed(d->net, v);
        for (int i = 0; i < s->n_loaded; i++)
            loaded |= s->in[i].value == v && s->in[i].at_once >= looks;
        CHECK(n->operand[j].n_seg == 0 || loaded || (by && tgi_is_whole(by)));
    }
}

/* Each node's operands are there when it runs. */
static void check_runs(const draft *d, int k)
{
    const tgi_stage *s = &d->s->stage[k];
    unsigned char have[256] = {0};
    check_loaded(d, k, have);
    for (int i = 0; i < s->n_nodes; i++) {
        const tgi_net_node *n = tgi_stage_node(s, i);
        for (int j = 0; j < n->n_operands; j++)
            for (int g = 0; g < n->operand[j].n_seg; g++)
                CHECK(have[n->operand[j].value[g]]);
        have[n->node->dst[0]] = 1;
        check_whole(d, s, n);
    }
    for (int o = 0; o < s->n_out; o++)
        CHECK(have[s->out[o].value]);
}

static void of_any_graph_every_stage_has_what_it_reads_and_all_is_handed_out(void)
{
    int stages = 0, stored = 0, recomputed = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        draft d = drawn(seed);
        const int before = tg_failures;
        cut(&d, 8);
        for (int k = 0; k < d.s->n; k++) {
            const tgi_stage *s = &d.s->stage[k];
            check_runs(&d, k);
            recomputed += s->n_in - s->n_loaded;
            for (int i = 0; i < s->n_loaded; i++)
                stored += s->in[i].value != d.net->in[0];
        }
        for (int i = 0; i < d.net->n_nodes; i++) {
            int times = 0;
            const int gathered = is_gathered(&d, i), x = d.net->nodes[i].operand[0].value[0];
            for (int k = 0; k < d.s->n; k++)
                times +=
                    gathered ? hands_out(&d.s->stage[k], x, i, 1) : runs(&d.s->stage[k], i);
            CHECK(gathered ? times == 1 : times >= 1);
            for (int k = 0; k < d.s->n; k++)
                CHECK(!gathered || !runs(&d.s->stage[k], i));
        }
        for (int o = 0; o < d.net->n_out; o++) {
            int times = 0;
            for (int k = 0; k < d.s->n; k++)
                times += hands_out(&d.s->stage[k], d.net->out[o], -1, 0);
            CHECK_EQ(times, 1);
        }
        if (tg_failures > before)
            fprintf(stderr, "seed %d\n", (int)seed);
        stages += d.s->n;
        end(&d);
    }
    printf("     400 graphs, %d stages, %d values loaded, %d recomputed\n", stages, stored,
           recomputed);
    CHECK(stages > 800 && stored > 400 && recomputed > 400);
}

int main(void)
{
    RUN(a_local_network_is_one_stage_with_all_nodes);
    RUN(a_pool_in_the_middle_ends_the_stage_that_it_belongs_to);
    RUN(a_pool_at_the_very_end_is_handed_out_by_a_stage_of_its_own);
    RUN(a_cheap_value_beside_a_squeeze_branch_is_recomputed);
    RUN(a_dear_value_is_stored_and_a_cheap_one_beside_it_recomputed);
    RUN(reading_many_values_to_recompute_one_is_dearer_than_storing_it);
    RUN(a_chain_of_norms_is_cut_at_each);
    RUN(a_norm_of_the_input_needs_a_pass_that_only_reads);
    RUN(operators_that_wait_for_the_same_stage_share_a_cut);
    RUN(what_only_a_later_stage_uses_is_computed_there);
    RUN(a_pool_of_one_pixel_cuts_nothing);
    RUN(an_operator_that_needs_all_pixels_has_them_stored);
    RUN(operators_that_need_all_pixels_share_a_stage_and_nothing_else_is_in_it);
    RUN(queries_stream_past_keys_and_values_that_are_loaded_at_once);
    RUN(what_parts_a_product_runs_once);
    RUN(what_is_looked_at_is_stored_and_what_looks_is_stored_for_later_stages);
    RUN(parts_of_a_reduction_share_its_numbers_in_any_order_of_the_outputs);
    RUN(the_whole_net_is_one_stage_whatever_the_cut);
    RUN(of_any_graph_every_stage_has_what_it_reads_and_all_is_handed_out);
    return TEST_END();
}
