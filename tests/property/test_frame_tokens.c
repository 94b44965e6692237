/* Networks built in code out of operators that no model's file names: window attention between
 * convolutions and folds, correlation lookup and convex upsampling of a flow. Through the planner and
 * the executor they give what the operators give one by one, and cut at random the same bits. */
#include "tests/token_draft.h"

#define SIZES 4

static int conv(draft *d, int from, int64_t to, int64_t k)
{
    const int64_t dim[4] = {to, d->channels, k, k};
    const int src[2] = {from, floats(d, 4, dim, 0, sqrtf(3.0f / (float)(d->channels * k * k)))};
    int out;
    conv_attrs *a = node(d, "Conv", 2, src, 1, &out);
    a->pads = (tgi_ints){4, {k / 2, k / 2, k / 2, k / 2}};
    return out;
}

/* Means of n x n; with `up` the last ones of what is left. */
static int pooled(draft *d, int from, int64_t n, int up)
{
    int out;
    pool_attrs *a = node(d, "AveragePool", 1, &from, 1, &out);
    a->kernel_shape = a->strides = (tgi_ints){2, {n, n}};
    a->ceil_mode = up;
    return out;
}

static int one(draft *d, const char *op, int from)
{
    int out;
    node(d, op, 1, &from, 1, &out);
    return out;
}

/* A number for each window of 5x9, 0 for half of them. */
static int masked(draft *d, int from)
{
    int out;
    pool_attrs *a = node(d, "MaxPool", 1, &from, 1, &out);
    a->kernel_shape = (tgi_ints){2, {1, 1}};
    a->strides = (tgi_ints){2, {5, 9}};
    return one(d, "Relu", out);
}

/* Patches of 7x7 tokens' channels over each other, as large as three times the tokens less two. */
static void fold(draft *d, int64_t to, int mean)
{
    const int64_t dim[4] = {d->channels, to, 7, 7}, patch[3] = {to, 7, 7};
    conv_attrs *a =
        then(d, "ConvTranspose", floats(d, 4, dim, 0, sqrtf(3.0f / (float)d->channels)), -1);
    a->strides = (tgi_ints){2, {3, 3}};
    a->pads = (tgi_ints){4, {3, 3, 3, 3}};
    fold_attrs *f = then(d, "FoldBias", floats(d, 3, patch, 0, 1), -1);
    f->mean = mean;
    d->channels = to;
}

static draft draw_attention(uint64_t seed)
{
    draft d = begin(2, 5, seed);
    uint64_t s = seed;
    const int64_t frames = tg_rand_in(&s, 1, 3), each = 16 * tg_rand_in(&s, 1, 2);
    const int64_t all = frames * each;
    const int x = d.at, q = conv(&d, x, all, 1), k = conv(&d, x, all, 1),
              v = conv(&d, x, all, 3);
    const int mask = masked(&d, conv(&d, x, 1, 1));
    const int src[8] = {q,
                        k,
                        v,
                        pooled(&d, k, 4, 1),
                        pooled(&d, v, 4, 1),
                        mask,
                        floats(&d, 1, &each, 0, 1),
                        floats(&d, 1, &each, 0, 1)};
    window_attrs *a = node(&d, "WindowAttention", 8, src, 1, &d.at);
    a->frames = frames;
    a->heads = 2;
    a->first = frames > 1 ? tg_rand_in(&s, 0, 1) : 0;
    a->scale = 0.5f;
    d.channels = all;
    fold(&d, 8, (int)tg_rand_in(&s, 0, 1));
    return d;
}

static draft draw_lookup(uint64_t seed)
{
    draft d = begin(2, 5, seed);
    const int x = d.at, flow = conv(&d, x, 2, 3), f1 = conv(&d, x, 24, 3);
    int src[5] = {f1, flow, conv(&d, x, 24, 1)};
    for (int l = 3; l < 5; l++)
        src[l] = pooled(&d, src[l - 1], 2, 0);
    lookup_attrs *a = node(&d, "CorrelationLookup", 5, src, 1, &d.at);
    a->radius = 2;
    d.channels = 75;
    const int mask[2] = {flow, conv(&d, d.at, 144, 3)};
    convex_attrs *u = node(&d, "ConvexUpsample", 2, mask, 1, &d.at);
    u->scale = 4;
    return d;
}

static void check(draft (*draw)(uint64_t), uint64_t seed)
{
    draft d = draw(seed), plain = draw(seed);
    if (finish(&d, 0) && finish(&plain, ~0u))
        for (int k = 0; k < SIZES; k++) {
            const tgi_desc in = {
                TG_DTYPE_F32, 4, {1, 5, tg_rand_in(&seed, 8, 24), tg_rand_in(&seed, 8, 40)}};
            int flat = 0;
            check_size(d.g, plain.g, &in, 3, &seed, &flat);
            CHECK_EQ(flat, 0);
        }
    tgi_graph_free(&d.g);
    tgi_graph_free(&plain.g);
}

static void test_attention_in_windows_is_cut_as_one_likes(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        check(draw_attention, seed * 7919);
}

static void test_lookups_and_upsampling_are_cut_as_one_likes(void)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        check(draw_lookup, seed * 104729);
}

int main(void)
{
    RUN(test_attention_in_windows_is_cut_as_one_likes);
    RUN(test_lookups_and_upsampling_are_cut_as_one_likes);
    printf("largest difference: %.2g\n", farthest);
    return TEST_END();
}
