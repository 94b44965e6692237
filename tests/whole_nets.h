/* whole_nets.h - networks nobody drew among whose operators one to four read the whole image:
 * norms, reductions, pools, softmax over pixels and attention among convolutions, in two and
 * three dimensions, as they are and as gates, at the image's resolution, below and above it, of
 * several values joined. */
#ifndef TG_WHOLE_NETS_H
#define TG_WHOLE_NETS_H

#include "tests/made_nets.h"

enum {
    INSTANCE,
    GROUP,
    MEAN,
    MEAN_ALL,
    MAX,
    MAX_ALL,
    MIN,
    SUM,
    AVERAGE_POOL,
    MAX_POOL,
    SOFTMAX,
    CHANNELS_ATTEND,
    PIXELS_LOOK,
    PIXELS_ATTEND,
    KINDS
};
static const char *const kind_names[KINDS] = {"InstanceNormalization",
                                              "GroupNormalization",
                                              "ReduceMean",
                                              "ReduceMean of all",
                                              "ReduceMax",
                                              "ReduceMax of all",
                                              "ReduceMin",
                                              "ReduceSum",
                                              "GlobalAveragePool",
                                              "GlobalMaxPool",
                                              "Softmax",
                                              "attention of channels",
                                              "attention of queries",
                                              "attention of pixels"};

#define MAX_WHOLE 8

typedef struct whole { /* one whole-extent operator */
    int kind;
    char operand[16], result[16];
    int64_t c, ext[3];
    float scale[32], shift[32]; /* of norms, and what group a channel is in */
    int64_t groups;
} whole;

typedef struct drawn {
    made m;
    uint64_t seed;
    int64_t in_c;
    int64_t ext[3], c; /* of the value at hand */
    char x[16];        /* it */
    char early[16];    /* one of `early_c` channels before it, at the same resolution, or "" */
    int64_t early_c;
    whole whole[MAX_WHOLE];
    int n_whole;
    char second[16]; /* another output, or "" */
} drawn;

typedef struct counts {
    int runs, staged, volumes, stages, looks, seen[KINDS], held[KINDS];
} counts;

static counts n;

/* ---- Drawing ----------------------------------------------------------------------------- */

static void now(char at[16], const char *name)
{
    snprintf(at, 16, "%.15s", name);
}

static void real(bytes *attrs, const char *name, float v)
{
    bytes a = {0};
    b_str(&a, 1, name);
    b_var(&a, 2 << 3 | 5);
    b_raw(&a, &v, 4);
    b_int(&a, 20, 1);
    b_msg(attrs, 5, &a);
}

static void integer(bytes *attrs, const char *name, int64_t v)
{
    bytes a = {0};
    b_str(&a, 1, name);
    b_int(&a, 3, v);
    b_int(&a, 20, 2);
    b_msg(attrs, 5, &a);
}

static const char *one(drawn *d, const char *op, const char *x)
{
    return made_node(&d->m, op, x, NULL, NULL, NULL, NULL, NULL);
}

static const char *two(drawn *d, const char *op, const char *a, const char *b)
{
    return made_node(&d->m, op, a, b, NULL, NULL, NULL, NULL);
}

static int64_t pixels(const int64_t *ext, int spatial)
{
    int64_t count = 1;
    for (int i = 0; i < spatial; i++)
        count *= ext[i];
    return count;
}

/* A 3x3 convolution to `to` channels, or, of a `point`, a 1x1 one. */
static const char *conv(drawn *d, const char *x, int64_t from, int64_t to, int point)
{
    const int64_t k = point ? 1 : 3, kernel[3] = {k, k, k};
    return made_conv(&d->m, x, from, to, kernel, 1, k / 2, NULL);
}

static const char *reshape(drawn *d, const char *x, int rank, const int64_t *dim)
{
    return two(d, "Reshape", x, made_longs(&d->m, rank, dim));
}

/* [1,C,...] as [1,C,pixels]. */
static const char *flatten(drawn *d, const char *x, int64_t c)
{
    const int64_t dim[3] = {1, c, -1};
    return reshape(d, x, 3, dim);
}

static const char *image(drawn *d, const char *x, int64_t c, const int64_t *ext)
{
    int64_t dim[5] = {1, c, 0, 0, 0};
    memcpy(dim + 2, ext, (size_t)d->m.spatial * sizeof *ext);
    return reshape(d, x, d->m.spatial + 2, dim);
}

static const char *softmax(drawn *d, const char *x)
{
    bytes a = {0};
    integer(&a, "axis", -1);
    return made_node(&d->m, "Softmax", x, NULL, NULL, NULL, &a, NULL);
}

static const char *turned(drawn *d, const char *x)
{
    const int64_t perm[3] = {0, 2, 1};
    bytes a = {0};
    b_attr_ints(&a, "perm", 3, perm);
    return made_node(&d->m, "Transpose", x, NULL, NULL, NULL, &a, NULL);
}

/* Each of `rows` of [1,rows,n] looks at all others; small numbers, so that softmax has more than
 * one winner. */
static const char *attention(drawn *d, const char *rows, float scale)
{
    static const int64_t none[1] = {1};
    const char *factor = made_name(&d->m);
    b_init(&d->m.g, factor, 1, 1, none, &scale, sizeof scale);
    char copy[16];
    now(copy, rows);
    const char *scores = two(d, "MatMul", copy, turned(d, copy));
    return two(d, "MatMul", softmax(d, two(d, "Mul", scores, factor)), copy);
}

/* Weights that the test knows, too. */
static const char *listed(drawn *d, float *list, int64_t count, float scale, float shift)
{
    const char *name = made_name(&d->m);
    for (int64_t i = 0; i < count; i++)
        list[i] = shift + scale * tg_rand_unit(&d->seed);
    b_init(&d->m.g, name, 1, 1, &count, list, (size_t)count * sizeof *list);
    return name;
}

static const char *norm(drawn *d, whole *w, const char *x)
{
    bytes a = {0};
    w->groups = w->kind == GROUP && w->c % 2 == 0
                    ? w->c / (tg_rand_in(&d->seed, 0, 1) ? 2 : w->c)
                    : w->c;
    real(&a, "epsilon", 1e-5f);
    if (w->kind == GROUP)
        integer(&a, "num_groups", w->groups);
    const char *scale = listed(d, w->scale, w->c, 0.5f, 1);
    return made_node(&d->m, w->kind == GROUP ? "GroupNormalization" : "InstanceNormalization",
                     x, scale, listed(d, w->shift, w->c, 0.5f, 0), NULL, &a, NULL);
}

static const char *reduced(drawn *d, const whole *w, const char *x)
{
    static const char *const ops[KINDS] = {
        [MEAN] = "ReduceMean",   [MEAN_ALL] = "ReduceMean", [MAX] = "ReduceMax",
        [MAX_ALL] = "ReduceMax", [MIN] = "ReduceMin",       [SUM] = "ReduceSum"};
    const int all = w->kind == MEAN_ALL || w->kind == MAX_ALL;
    const int64_t axes[4] = {1, 2, 3, 4}, *first = all ? axes : axes + 1;
    if (w->kind == AVERAGE_POOL || w->kind == MAX_POOL)
        return one(d, w->kind == MAX_POOL ? "GlobalMaxPool" : "GlobalAveragePool", x);
    return two(d, ops[w->kind], x, made_longs(&d->m, d->m.spatial + all, first));
}

/* x, or a product of it. */
static const char *of_pixels(drawn *d, const char *x, int64_t c)
{
    return tg_rand_in(&d->seed, 0, 2) ? conv(d, x, c, c, 1) : x;
}

/* Queries, keys and values of each pixel, and an image again. */
static const char *pixels_look(drawn *d, const char *x, const whole *w)
{
    static const int64_t none[1] = {1};
    const float scale = 0.05f;
    char from[16], q[16], k[16], v[16];
    now(from, x);
    now(q, turned(d, flatten(d, of_pixels(d, from, w->c), w->c)));
    now(k, flatten(d, of_pixels(d, from, w->c), w->c));
    now(v, turned(d, flatten(d, of_pixels(d, from, w->c), w->c)));
    const char *factor = made_name(&d->m);
    b_init(&d->m.g, factor, 1, 1, none, &scale, sizeof scale);
    const char *weights = softmax(d, two(d, "Mul", two(d, "MatMul", q, k), factor));
    return image(d, turned(d, two(d, "MatMul", weights, v)), w->c, w->ext);
}

/* Among the pixels of x, pooled until there are few. */
static const char *pixels_attend(drawn *d, const char *x, int64_t c)
{
    int64_t least = 16;
    for (int i = 0; i < d->m.spatial; i++)
        least = d->ext[i] < least ? d->ext[i] : least;
    const char *small =
        made_pool(&d->m, x, d->m.spatial == 3 ? (least < 4 ? least : 4) : least);
    return attention(d, turned(d, flatten(d, small, c)), 0.01f);
}

/* What the operator makes of x, an image of the value's extent or of one pixel. */
static const char *whole_of(drawn *d, whole *w, const char *x)
{
    const char *y;
    char copy[16];
    now(copy, x);
    now(w->operand, x);
    if (w->kind <= GROUP) {
        y = norm(d, w, copy);
    } else if (w->kind == SOFTMAX) {
        y = image(d, softmax(d, flatten(d, copy, w->c)), w->c, w->ext);
    } else if (w->kind == CHANNELS_ATTEND) {
        y = image(d, attention(d, flatten(d, copy, w->c), 1e-4f), w->c, w->ext);
    } else if (w->kind == PIXELS_LOOK) {
        y = pixels_look(d, copy, w);
    } else if (w->kind == PIXELS_ATTEND) {
        const int64_t tokens[4] = {1, 1, -1, w->c}, mean[1] = {2}, perm[4] = {0, 3, 2, 1};
        y = reshape(d, pixels_attend(d, copy, w->c), 4, tokens);
        y = two(d, "ReduceMean", y, made_longs(&d->m, 1, mean));
        bytes a = {0};
        b_attr_ints(&a, "perm", 4, perm);
        y = made_node(&d->m, "Transpose", y, NULL, NULL, NULL, &a, NULL);
        const int64_t pixel[5] = {1, w->c, 1, 1, 1};
        y = reshape(d, y, d->m.spatial + 2, pixel);
    } else {
        y = reduced(d, w, copy);
    }
    now(w->result, y);
    return w->result;
}

static int gives_an_image(int kind)
{
    return kind <= GROUP || kind == SOFTMAX || kind == CHANNELS_ATTEND || kind == PIXELS_LOOK;
}

/* A gate of one pixel: as it is, or of 1x1 convolutions and a sigmoid. */
static void gate(drawn *d, const char *x, const whole *w)
{
    char from[16], g[16];
    now(from, x);
    now(g, w->result);
    const int together = w->kind == MEAN_ALL || w->kind == MAX_ALL;
    if (tg_rand_in(&d->seed, 0, 1)) {
        now(g, one(d, "Relu", conv(d, g, together ? 1 : w->c, 4, 1)));
        now(g, one(d, "Sigmoid", conv(d, g, 4, d->c, 1)));
        now(d->x, two(d, "Mul", from, g));
    } else if (!together && w->c != d->c) {
        now(d->x, two(d, "Add", from, one(d, "Sigmoid", conv(d, g, w->c, d->c, 1))));
    } else {
        static const char *const ops[] = {"Mul", "Add", "Sub"};
        now(d->x, two(d, ops[tg_rand_in(&d->seed, 0, 2)], from, one(d, "Tanh", g)));
    }
}

/* At another resolution the result can only be a gate. */
static void add_whole(drawn *d)
{
    const int last = d->n_whole == MAX_WHOLE;
    whole *w = &d->whole[d->n_whole - last];
    const int64_t where = tg_rand_in(&d->seed, 0, 5);
    char x[16], from[16];
    now(from, d->x);
    now(x, d->x);
    *w = (whole){.kind = (int)tg_rand_in(&d->seed, 0, KINDS - 1), .c = d->c};
    memcpy(w->ext, d->ext, sizeof w->ext);
    if (where == 0 && d->early[0] && d->early_c + d->c <= 24) { /* parts of several stages */
        now(x, made_concat(&d->m, 1, d->early, x));
        w->c += d->early_c;
    } else if ((where == 1 || where == 2) && !gives_an_image(w->kind) &&
               w->kind != PIXELS_ATTEND) {
        for (int i = 0; i < d->m.spatial; i++)
            w->ext[i] = where == 1 ? w->ext[i] / 2 : w->ext[i] * 2;
        if (where == 2)
            w->c = 3;
        now(x, where == 1 ? made_pool(&d->m, x, 2) : made_up(&d->m, x, d->c, 3, 2));
    }
    const char *y = whole_of(d, w, x);
    d->n_whole += !last;
    n.seen[w->kind]++;
    if (gives_an_image(w->kind)) {
        now(d->x, y);
        d->c = w->c;
    } else {
        gate(d, from, w);
    }
}

static void add_conv(drawn *d)
{
    static const char *const acts[] = {"Relu", "Tanh", "Sigmoid", "Identity"};
    const int64_t most = d->m.spatial == 3 ? 9 : 17, to = tg_rand_in(&d->seed, 3, most);
    now(d->early, d->x);
    d->early_c = d->c;
    now(d->x, conv(d, d->x, d->c, to, tg_rand_in(&d->seed, 0, 3) == 0));
    now(d->x, one(d, acts[tg_rand_in(&d->seed, 0, 3)], d->x));
    d->c = to;
}

static void draw(drawn *d, uint64_t seed)
{
    static const int64_t sides[] = {65, 129, 193, 127, 150, 64, 201, 97};
    *d = (drawn){.seed = seed * 0x9e3779b97f4a7c15ull | 1};
    const int spatial = tg_rand_in(&d->seed, 0, 3) ? 2 : 3;
    d->c = d->in_c = tg_rand_in(&d->seed, 1, 4);
    for (int i = 0; i < spatial; i++)
        d->ext[i] =
            spatial == 2 ? sides[tg_rand_in(&d->seed, 0, 7)] : tg_rand_in(&d->seed, 9, 40);
    if (spatial == 3)
        d->ext[2] = tg_rand_in(&d->seed, 0, 1) ? 65 : 70;
    d->m = made_begin(spatial, d->c, d->ext);
    d->m.seed = seed | 1;
    now(d->x, "x");
    if (tg_rand_in(&d->seed, 0, 3)) /* else the input itself is reduced */
        add_conv(d);
    const int64_t count = tg_rand_in(&d->seed, 1, 4);
    const int64_t second = tg_rand_in(&d->seed, 0, 3 * count);
    for (int64_t i = 0; i < count; i++) {
        add_whole(d);
        if (second == i)
            now(d->second, tg_rand_in(&d->seed, 0, 1) ? d->x : d->whole[i].result);
        for (int64_t k = tg_rand_in(&d->seed, 0, 2); k > 0; k--)
            add_conv(d);
    }
    n.volumes += spatial == 3;
}

/* Of joined values the narrow one last, which alone is copied; a later stage reads the numbers of an earlier
 * reduction once more. */
static void draw_joined(drawn *d, uint64_t seed)
{
    *d = (drawn){.seed = seed * 0x9e3779b97f4a7c15ull | 1, .ext = {136, 400}};
    const int64_t wide = 8 * tg_rand_in(&d->seed, 1, 2), narrow = tg_rand_in(&d->seed, 1, 3);
    const char *const pool = tg_rand_in(&d->seed, 0, 1) ? "GlobalMaxPool" : "GlobalAveragePool";
    char a[16], c[16], joined[16];
    d->in_c = narrow;
    d->m = made_begin(2, narrow, d->ext);
    d->m.seed = seed | 1;
    now(a, conv(d, "x", narrow, wide, 0));
    now(c, two(d, "Sub", a, one(d, pool, a)));
    now(joined, made_concat(&d->m, 1, c, "x"));
    now(d->x, two(d, "Add", joined, one(d, "GlobalAveragePool", joined)));
    d->c = wide + narrow;
}

/* x where offsets point to, which are made of x too; c channels of x, `groups` of offsets. */
static const char *deformed(drawn *d, const char *x, int64_t c, int64_t to, int64_t groups)
{
    const int64_t weights[4] = {to, c, 3, 3}, bias[1] = {to};
    const char *in[6] = {x};
    char names[5][16];
    bytes a = {0};
    now(names[1], made_weights(&d->m, 4, weights));
    now(names[2], conv(d, x, c, 18 * groups, 0));
    now(names[3], made_weights(&d->m, 1, bias));
    now(names[4], one(d, "Sigmoid", conv(d, x, c, 9 * groups, 1)));
    for (int i = 1; i < 5; i++)
        in[i] = names[i];
    integer(&a, "offset_group", groups);
    made_rep(&a, "pads", 4, 1);
    const char *y = made_name(&d->m);
    b_node(&d->m.g, "DeformConv", in, y, &a);
    return y;
}

/* Deformable convolutions of one value, or of two that are joined. */
static void draw_deformed(drawn *d, uint64_t seed)
{
    *d = (drawn){.seed = seed * 0x9e3779b97f4a7c15ull | 1, .ext = {136, 200}};
    const int64_t c = 8 * tg_rand_in(&d->seed, 1, 2), groups = 1 << tg_rand_in(&d->seed, 0, 3);
    const int joined = (int)tg_rand_in(&d->seed, 0, 1);
    char a[16], b[16];
    d->in_c = tg_rand_in(&d->seed, 1, 3);
    d->m = made_begin(2, d->in_c, d->ext);
    d->m.seed = seed | 1;
    now(a, one(d, "Tanh", conv(d, "x", d->in_c, c, 0)));
    now(b, one(d, "Tanh", deformed(d, a, c, c, groups)));
    if (joined)
        now(b, made_concat(&d->m, 1, a, b));
    d->c = 5;
    now(d->x, deformed(d, b, joined ? 2 * c : c, d->c, groups));
}

static void output_of(drawn *d, const char *name)
{
    static const int64_t open[5] = {0};
    b_port(&d->m.g, 12, name, d->m.spatial + 2, open);
}

/* `held`: its operand and its result are handed out. */
static void write_model(drawn *d, const whole *held, const char *path)
{
    const int64_t k[3] = {3, 3, 3};
    made_conv(&d->m, d->x, d->c, 2, k, 1, 1, "y");
    if (d->second[0] && !held)
        output_of(d, d->second);
    if (held) {
        output_of(d, held->result);
        if (strcmp(held->operand, "x") != 0)
            output_of(d, held->operand);
    }
    made_end_opset(&d->m, path, 21);
}

#endif
