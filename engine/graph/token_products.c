/* token_products.c - products of pixels with a matrix: each pixel's channels become sums of
 * them. By constants that is a 1x1 convolution, by a matrix that the network computes a
 * PixelMatMul. What multiplies pixels by pixels, or sums over them, has no form on images. */
#include "engine/graph/token_ops.h"

#include <string.h>

#define MATRIX_MOST 65536 /* elements of a matrix that is computed */

/* Operand `token` of a node, whose axis `summed` is channels, times the matrix `by`. */
typedef struct product {
    int token, summed;
    int by;
    int64_t inner, outer; /* channels that are summed, channels of the result */
    int by_rows;          /* the matrix is [inner, outer]; 0: the other way round */
    double factor;        /* of a constant matrix */
    int bias;             /* a constant of `outer` numbers or of one, or -1 */
    double bias_factor;
    tgi_order order; /* of the result; axis `channels` of it is */
    int channels;
} product;

/* ---- What to look at --------------------------------------------------------------------- */

/* The operand of two that is another order of an image, when the other is a matrix. */
static int token_operand(const tgi_tokens *t, const tgi_node *n)
{
    for (int k = 0; k < 2; k++)
        if (n->src[k] >= 0 && n->src[1 - k] >= 0 && tgi_token_is_other(t, n->src[k]) &&
            tgi_token_is_small(t, n->src[1 - k]))
            return k;
    return -1;
}

/* Its last two extents, when all before them are one. */
static int read_matrix(const tgi_tokens *t, int v, int64_t *rows, int64_t *columns)
{
    const tgi_desc *d = &tgi_token_of(t, v)->ext.at[0];
    if (d->rank < 2)
        return 0;
    for (int k = 0; k < d->rank - 2; k++)
        if (d->dim[k] != 1)
            return 0;
    *rows = d->dim[d->rank - 2];
    *columns = d->dim[d->rank - 1];
    return 1;
}

static int read_mat_mul(const tgi_tokens *t, const tgi_node *n, product *p)
{
    const int k = token_operand(t, n);
    int64_t rows, columns;
    if (k < 0 || !read_matrix(t, n->src[1 - k], &rows, &columns))
        return 0;
    const tgi_order *o = &tgi_token_of(t, n->src[k])->order;
    if (o->rank < 2 || tgi_token_of(t, n->src[1 - k])->ext.at[0].rank > o->rank)
        return 0;
    *p = (product){.token = k,
                   .by = n->src[1 - k],
                   .summed = k == 0 ? o->rank - 1 : o->rank - 2,
                   .inner = k == 0 ? rows : columns,
                   .outer = k == 0 ? columns : rows,
                   .by_rows = k == 0,
                   .factor = 1,
                   .bias = -1,
                   .order = *o};
    p->channels = p->summed;
    return 1;
}

/* C is one number, or one for each channel: along the last axis of the result. */
static int is_bias(const tgi_tokens *t, int v, int64_t n, int channels)
{
    const tgi_graph *g = t->g;
    if (!g->values[v].is_const || g->values[v].cst.desc.dtype != TG_DTYPE_F32)
        return 0;
    const tgi_desc *d = &g->values[v].cst.desc;
    int64_t count;
    if (!tgi_desc_count(d, &count))
        return 0;
    const int along = channels - (2 - d->rank); /* aligned at the end of two axes */
    return count == 1 ||
           (d->rank <= 2 && count == n && along >= 0 && along < d->rank && d->dim[along] == n);
}

static int read_gemm(const tgi_tokens *t, const tgi_node *n, product *p)
{
    const int k = token_operand(t, n);
    int64_t rows, columns;
    if (k < 0 || !read_matrix(t, n->src[1 - k], &rows, &columns) ||
        !t->g->values[n->src[1 - k]].is_const)
        return 0;
    const int turned = tgi_attr_int(n, k == 0 ? "transA" : "transB", 0) != 0;
    const int other = tgi_attr_int(n, k == 0 ? "transB" : "transA", 0) != 0;
    const int by_rows = (k == 0) != other;
    *p = (product){.token = k,
                   .by = n->src[1 - k],
                   .summed = (k == 0) != turned,
                   .inner = by_rows ? rows : columns,
                   .outer = by_rows ? columns : rows,
                   .by_rows = by_rows,
                   .factor = (double)tgi_attr_float(n, "alpha", 1),
                   .bias = n->n_src > 2 ? n->src[2] : -1,
                   .bias_factor = (double)tgi_attr_float(n, "beta", 1),
                   .order = {.rank = 2},
                   .channels = k == 0};
    p->order.axis[!p->channels] = tgi_token_of(t, n->src[k])->order.axis[!p->summed];
    return p->bias < 0 || is_bias(t, p->bias, p->outer, p->channels);
}

/* ---- Einsum ------------------------------------------------------------------------------ */

/* One term, letters only and each of them once. NULL: something else. */
static const char *read_letters(const char *s, tgi_letters *l)
{
    l->n = 0;
    for (; *s && *s != ',' && *s != '-'; s++) {
        const int is_letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
        if (*s == ' ')
            continue;
        if (!is_letter || l->n == TGI_MAX_RANK || memchr(l->of, *s, (size_t)l->n))
            return NULL;
        l->of[l->n++] = *s;
    }
    return s;
}

int tgi_token_equation(const tgi_node *n, tgi_letters term[3])
{
    const tgi_attr *row = tgi_attr_row(n->op, "equation");
    const char *s = row ? (const char *)n->attrs + row->offset : "";
    if (!(s = read_letters(s, &term[0])) || *s != ',' || !(s = read_letters(s + 1, &term[1])) ||
        s[0] != '-' || s[1] != '>')
        return 0;
    return (s = read_letters(s + 2, &term[2])) && !*s;
}

int tgi_letter_place(const tgi_letters *l, char c)
{
    const char *at = l->n ? memchr(l->of, c, (size_t)l->n) : NULL;
    return at ? (int)(at - l->of) : -1;
}

/* The matrix has one letter that is summed, of the tokens, and one that is new in the result,
 * where every other letter of the tokens is, too. */
static int read_einsum(const tgi_tokens *t, const tgi_node *n, product *p)
{
    tgi_letters term[3];
    const int k = token_operand(t, n);
    if (k < 0 || !tgi_token_equation(n, term) || term[1 - k].n != 2)
        return 0;
    const tgi_letters *x = &term[k], *m = &term[1 - k], *y = &term[2];
    const tgi_order *o = &tgi_token_of(t, n->src[k])->order;
    const tgi_extents *e = &tgi_token_of(t, n->src[1 - k])->ext;
    const int first =
        tgi_letter_place(x, m->of[0]) >= 0; /* it is summed over its first letter */
    const char in = m->of[!first], out = m->of[first];
    const int channels = tgi_letter_place(y, out), summed = tgi_letter_place(x, in);
    if (x->n != o->rank || y->n != x->n || channels < 0 || summed < 0 ||
        tgi_letter_place(x, out) >= 0 || tgi_letter_place(y, in) >= 0 || e->at[0].rank != 2)
        return 0;
    *p = (product){.token = k,
                   .summed = summed,
                   .by = n->src[1 - k],
                   .inner = e->at[0].dim[!first],
                   .outer = e->at[0].dim[first],
                   .by_rows = first,
                   .factor = 1,
                   .bias = -1,
                   .order = {.rank = y->n},
                   .channels = channels};
    for (int a = 0; a < y->n; a++) {
        const int at = tgi_letter_place(x, y->of[a]);
        if (a != channels && at < 0)
            return 0;
        if (a != channels)
            p->order.axis[a] = o->axis[at];
    }
    return 1;
}

/* ---- What it becomes --------------------------------------------------------------------- */

static double element(const tgi_graph *g, const product *p, int64_t in, int64_t out)
{
    return tgi_const_get(&g->values[p->by].cst,
                         p->by_rows ? in * p->outer + out : out * p->inner + in);
}

static tg_status add_weights(tgi_tokens *t, const product *p, int *id, tgi_err *err)
{
    tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = t->rank, .dim = {p->outer, p->inner}};
    for (int k = 2; k < d.rank; k++)
        d.dim[k] = 1;
    float *w = tgi_graph_own(t->g, (size_t)(p->outer * p->inner) * sizeof *w, err);
    if (!w)
        return TG_E_NOMEM;
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t i = 0; i < p->inner; i++)
            w[o * p->inner + i] = (float)(p->factor * element(t->g, p, i, o));
    return tgi_graph_add_const(t->g, t->g->values[p->by].name, &d, w, 1, id, err);
}

static tg_status add_bias(tgi_tokens *t, const product *p, int *id, tgi_err *err)
{
    const tgi_desc d = {.dtype = TG_DTYPE_F32, .rank = 1, .dim = {p->outer}};
    const tgi_constant *c = &t->g->values[p->bias].cst;
    int64_t count = 0;
    float *b = tgi_graph_own(t->g, (size_t)p->outer * sizeof *b, err);
    if (!b)
        return TG_E_NOMEM;
    tgi_desc_count(&c->desc, &count);
    for (int64_t o = 0; o < p->outer; o++)
        b[o] = (float)(p->bias_factor * tgi_const_get(c, count == 1 ? 0 : o));
    return tgi_graph_add_const(t->g, t->g->values[p->bias].name, &d, b, 1, id, err);
}

static tg_status add_conv(tgi_tokens *t, const char *name, int image, const product *p, int out,
                          tgi_err *err)
{
    int src[3] = {image, -1, -1};
    tgi_node *n;
    TGI_TRY(add_weights(t, p, &src[1], err));
    if (p->bias >= 0)
        TGI_TRY(add_bias(t, p, &src[2], err));
    TGI_TRY(
        tgi_graph_add_node(t->g, "Conv", name, p->bias >= 0 ? 3 : 2, src, 1, &out, &n, err));
    tgi_ints *k = tgi_token_ints(n, "kernel_shape");
    k->n = t->rank - 2;
    for (int i = 0; i < k->n; i++)
        k->v[i] = 1;
    t->convolutions++;
    return TG_OK;
}

/* The matrix [inner, outer] of an activation as the channels of one pixel. */
static tg_status add_pixel_product(tgi_tokens *t, const char *name, int image, const product *p,
                                   int out, tgi_err *err)
{
    static const tgi_ints exchanged = {2, {1, 0}};
    tgi_desc matrix = {.rank = 2, .dim = {p->outer, p->inner}};
    tgi_desc pixel = {.rank = t->rank, .dim = {1, p->inner * p->outer}};
    int src[2] = {image, p->by};
    tgi_node *n;
    for (int k = 2; k < pixel.rank; k++)
        pixel.dim[k] = 1;
    if (!p->by_rows) {
        int flat, turned;
        TGI_TRY(tgi_token_reshape(t, p->by, &matrix, &flat, err));
        TGI_TRY(tgi_token_add_value(t, t->g->values[p->by].name, &turned, err));
        TGI_TRY(tgi_graph_add_node(t->g, "Transpose", name, 1, &flat, 1, &turned, &n, err));
        *tgi_token_ints(n, "perm") = exchanged;
        src[1] = turned;
    }
    TGI_TRY(tgi_token_reshape(t, src[1], &pixel, &src[1], err));
    t->small_products++;
    return tgi_graph_add_node(t->g, "PixelMatMul", name, 2, src, 1, &out, NULL, err);
}

static tg_status put(tgi_tokens *t, int node, product *p, int *yes, tgi_err *err)
{
    const tgi_node *n = &t->g->nodes[node];
    const char *const name = n->name;
    const int image = tgi_token_of(t, n->src[p->token])->image, dst = n->dst[0];
    tgi_extents ext = tgi_token_of(t, image)->ext;
    int out;
    if (!t->g->values[p->by].is_const && p->inner * p->outer > MATRIX_MOST)
        return TG_OK;
    *yes = tgi_order_is_channels(&tgi_token_of(t, n->src[p->token])->order, &ext, p->summed) &&
           ext.at[0].dim[TGI_CHANNELS] == p->inner;
    for (int k = 0; k < ext.n; k++)
        ext.at[k].dim[TGI_CHANNELS] = p->outer;
    tgi_order_set_channels(&p->order, &ext, p->channels);
    *yes = *yes && tgi_order_fits(&p->order, &ext, &tgi_token_of(t, dst)->ext);
    if (!*yes)
        return TG_OK;
    TGI_TRY(tgi_token_add_image(t, t->g->values[dst].name, &ext, &out, err));
    tgi_token_of(t, dst)->image = out;
    tgi_token_of(t, dst)->order = p->order;
    return t->g->values[p->by].is_const ? add_conv(t, name, image, p, out, err)
                                        : add_pixel_product(t, name, image, p, out, err);
}

tg_status tgi_token_product(tgi_tokens *t, int node, int *yes, tgi_err *err)
{
    static const struct {
        const char *op;
        int (*read)(const tgi_tokens *t, const tgi_node *n, product *p);
    } table[] = {{"MatMul", read_mat_mul}, {"Gemm", read_gemm}, {"Einsum", read_einsum}};
    *yes = 0;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const tgi_node *n = &t->g->nodes[node];
        product p;
        if (tgi_node_is(n, table[i].op) && n->n_src >= 2 && table[i].read(t, n, &p))
            return put(t, node, &p, yes, err);
    }
    return TG_OK;
}
