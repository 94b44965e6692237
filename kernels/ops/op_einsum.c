/* op_einsum.c - Einsum: letters name axes; the result keeps those after "->" and sums over the
 * others. Without "->" the result has the letters that occur once, in alphabetical order, after
 * the axes of an ellipsis. A letter twice in one term is a diagonal. On dense tensors.
 * @source ONNX operator Einsum, version 12; numpy.einsum. */
#include "kernels/ops/dense_plan.h"

#include <ctype.h>

/* Axes are numbered: 0 to 7 those of the ellipsis, 7 the last; then one for each letter. */
#define DOTS TGI_MAX_RANK
#define AXES (DOTS + 52)

typedef struct einsum_attrs {
    char equation[TGI_ATTR_TEXT];
} einsum_attrs;

static const tgi_attr rows[] = {{"equation", TGI_ATTR_STRING, offsetof(einsum_attrs, equation),
                                 0, 0, 0, NULL, "axes of each term -> axes of the result"},
                                {0}};

typedef struct term {
    int n, axis[TGI_MAX_RANK];
} term;

typedef struct plan {
    int n_in;
    term in[TGI_CONTRACT_INPUTS], out;
    int64_t dim[AXES]; /* 0: not used */
    int uses[AXES];
    int dots; /* axes of the longest ellipsis */
} plan;

static int letter(char c)
{
    return DOTS + (c >= 'a' ? c - 'a' + 26 : c - 'A');
}

/* Append the axes of an ellipsis of n axes, aligned at their end. */
static int add_dots(term *t, int n)
{
    if (n < 0 || t->n + n > TGI_MAX_RANK)
        return 0;
    for (int k = 0; k < n; k++)
        t->axis[t->n++] = DOTS - n + k;
    return 1;
}

/* One term up to ',' , '-' or the end; `dots` axes stand for an ellipsis. NULL: damaged. */
static const char *read_term(const char *s, int dots, term *t)
{
    t->n = 0;
    for (; *s && *s != ',' && *s != '-'; s++) {
        if (*s == ' ')
            continue;
        if (strncmp(s, "...", 3) == 0) {
            if (!add_dots(t, dots))
                return NULL;
            s += 2;
        } else if (isalpha((unsigned char)*s) && t->n < TGI_MAX_RANK) {
            t->axis[t->n++] = letter(*s);
        } else {
            return NULL;
        }
    }
    return s;
}

static int count_letters(const char *s)
{
    int n = 0;
    for (; *s && *s != ',' && *s != '-'; s++)
        n += isalpha((unsigned char)*s) != 0;
    return n;
}

static int has_dots(const char *s)
{
    for (; *s && *s != ',' && *s != '-'; s++)
        if (*s == '.')
            return 1;
    return 0;
}

/* Extents of the axes that input i names; 0: they conflict. */
static int note_extents(plan *p, const term *t, const tgi_desc *d)
{
    for (int k = 0; k < t->n; k++) {
        int64_t *have = &p->dim[t->axis[k]];
        p->uses[t->axis[k]]++;
        if (*have > 1 && d->dim[k] != *have && d->dim[k] != 1)
            return 0;
        if (*have == 0 || *have == 1)
            *have = d->dim[k];
    }
    return t->n == d->rank;
}

static void implied_result(plan *p)
{
    p->out.n = 0;
    add_dots(&p->out, p->dots);
    for (int c = 'A'; c <= 'z' && p->out.n < TGI_MAX_RANK; c++)
        if (isalpha(c) && p->uses[letter((char)c)] == 1)
            p->out.axis[p->out.n++] = letter((char)c);
}

static tg_status make_plan(const tgi_op_ctx *ctx, plan *p, tgi_err *err)
{
    const char *const equation = ((const einsum_attrs *)ctx->attrs)->equation, *s = equation;
    *p = (plan){.n_in = ctx->n_src};
    if (ctx->n_src > TGI_CONTRACT_INPUTS)
        return tgi_fail(err, TG_E_UNSUPPORTED, "%d inputs; at most %d are done", ctx->n_src,
                        TGI_CONTRACT_INPUTS);
    for (int i = 0; s && i < ctx->n_src; i++) {
        const int dots = has_dots(s) ? ctx->src[i].rank - count_letters(s) : 0;
        p->dots = dots > p->dots ? dots : p->dots;
        s = read_term(s, dots, &p->in[i]);
        if (s && !note_extents(p, &p->in[i], &ctx->src[i]))
            s = NULL;
        if (s && i + 1 < ctx->n_src)
            s = *s == ',' ? s + 1 : NULL;
    }
    if (s && s[0] == '-' && s[1] == '>')
        s = read_term(s + 2, p->dots, &p->out);
    else if (s && !*s)
        implied_result(p);
    if (!s || *s)
        return tgi_fail(err, TG_E_FORMAT, "the equation \"%s\" does not fit its inputs",
                        equation);
    return TG_OK;
}

static tg_status infer(const tgi_op_ctx *ctx, tgi_desc *dst, tgi_err *err)
{
    plan p;
    unsigned char seen[AXES] = {0};
    TGI_TRY(make_plan(ctx, &p, err));
    tgi_desc d = {ctx->src[0].dtype, p.out.n, {0}};
    for (int k = 0; k < p.out.n; k++) {
        if (!p.uses[p.out.axis[k]] || seen[p.out.axis[k]]++)
            return tgi_fail(err, TG_E_FORMAT, "axis %d of the result is named by no input", k);
        d.dim[k] = p.dim[p.out.axis[k]];
    }
    for (int i = 1; i < ctx->n_src; i++)
        if (ctx->src[i].dtype != d.dtype)
            return tgi_fail(err, TG_E_FORMAT, "inputs of types %s and %s",
                            tgi_dtype_name(d.dtype), tgi_dtype_name(ctx->src[i].dtype));
    dst[0] = d;
    return TG_OK;
}

/* Stride of input i along a named axis: a diagonal adds up, extent 1 repeats. */
static int64_t stride_along(const plan *p, const tgi_op_ctx *ctx, int i, int axis)
{
    int64_t dense[TGI_MAX_RANK], stride = 0;
    tgi_dense_strides(&ctx->src[i], dense);
    for (int k = 0; k < p->in[i].n; k++)
        if (p->in[i].axis[k] == axis && ctx->src[i].dim[k] != 1)
            stride += dense[k];
    return stride;
}

/* The summed axes, as far as they fit; returns how many there are. */
static int summed_axes(const plan *p, int *axis)
{
    int n = 0;
    for (int a = 0; a < AXES; a++) {
        int kept = !p->uses[a];
        for (int k = 0; k < p->out.n; k++)
            kept |= p->out.axis[k] == a;
        if (!kept && n++ < TGI_CONTRACT_AXES)
            axis[n - 1] = a;
    }
    return n;
}

tg_status tgi_einsum_sum(const tgi_op_ctx *ctx, tgi_contraction *c, tgi_err *err)
{
    plan p;
    int summed[TGI_CONTRACT_AXES];
    TGI_TRY(make_plan(ctx, &p, err));
    *c =
        (tgi_contraction){.n_in = p.n_in, .rank = p.out.n, .sum_rank = summed_axes(&p, summed)};
    if (c->sum_rank > TGI_CONTRACT_AXES)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a sum over %d axes", c->sum_rank);
    for (int k = 0; k < c->rank; k++)
        c->dim[k] = p.dim[p.out.axis[k]];
    for (int k = 0; k < c->sum_rank; k++)
        c->sum_dim[k] = p.dim[summed[k]];
    for (int i = 0; i < p.n_in; i++) {
        for (int k = 0; k < c->rank; k++)
            c->stride[i][k] = stride_along(&p, ctx, i, p.out.axis[k]);
        for (int k = 0; k < c->sum_rank; k++)
            c->sum_stride[i][k] = stride_along(&p, ctx, i, summed[k]);
    }
    return TG_OK;
}

static tg_status eval(const tgi_op_ctx *ctx, void *const *dst_data, tgi_err *err)
{
    tgi_contraction c;
    TGI_TRY(tgi_einsum_sum(ctx, &c, err));
    for (int i = 0; i < c.n_in; i++)
        c.in[i] = ctx->const_src[i];
    return tgi_contract(&c, dst_data[0], err);
}

static double flops(const tgi_op_ctx *ctx)
{
    plan p;
    int summed[TGI_CONTRACT_AXES];
    double n = ctx->n_src;
    if (make_plan(ctx, &p, NULL) != TG_OK)
        return 1;
    const int axes = summed_axes(&p, summed);
    for (int k = 0; k < axes && k < TGI_CONTRACT_AXES; k++)
        n *= (double)p.dim[summed[k]];
    return n;
}

const tgi_op tgi_op_einsum = {
    .name = "Einsum",
    .op_class = TGI_OP_DENSE,
    .attrs = rows,
    .attrs_size = sizeof(einsum_attrs),
    .infer = infer,
    .eval = eval,
    .flops = flops,
};
