/* fake_sums.c - the fake device's WindowAttention and CorrelationLookup: the numbers of the references, by their sums in their
 * order, each likeness once and several side by side. The references take most of an hour for a film of two dozen frames. */
#include "engine/base/arith.h"
#include "kernels/op.h"
#include "kernels/ops/lookup_place.h"
#include "kernels/ops/op_shared.h"
#include "kernels/ops/window_tokens.h"
#include "tests/device/fake_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_BY_SIDE = 4 };

/* Sums over channels of a with each of n others. */
static void likenesses(const float *a, const float *const *with, int64_t n, int64_t channels,
                       double *out)
{
    int64_t k = 0;
    for (; k + SIDE_BY_SIDE <= n; k += SIDE_BY_SIDE) {
        const float *const *b = with + k;
        double sum[SIDE_BY_SIDE] = {0};
        for (int64_t c = 0; c < channels; c++)
            for (int i = 0; i < SIDE_BY_SIDE; i++)
                sum[i] += (double)a[c] * (double)b[i][c];
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            out[k + i] = sum[i];
    }
    for (; k < n; k++) {
        out[k] = 0;
        for (int64_t c = 0; c < channels; c++)
            out[k] += (double)a[c] * (double)with[k][c];
    }
}

/* Channel `c` of a pixel, `n` more of which lie behind it; NULL: they lie in several values. */
static const float *channels_at(const tgi_operand *o, int64_t c, int64_t n, int64_t y,
                                int64_t x)
{
    int s = 0;
    while (c >= o->seg[s].c)
        c -= o->seg[s++].c;
    const tgi_view *v = &o->seg[s];
    return c + n > v->c || tgi_view_blocks(v) > 1 || v->doubled ? NULL
                                                                : tgi_view_at(v, c, 0, y, x);
}

/* ---- Attention --------------------------------------------------------------------------- */

typedef struct window {
    const tgi_call *call;
    const window_attrs *a;
    tgi_window_tokens t;
    int masked;
    int64_t channels, inner, pooled; /* of a frame, of a head; tokens of a frame */
    int64_t most;                    /* keys */
    const float **of[2];             /* keys, values of the tokens that a query looks at */
    double *weight;
} window;

/* Channels of a frame of token i of it, as key (0) or value (1). */
static const float *token_at(const window *w, int kind, int64_t frame, int64_t i)
{
    const tgi_call *call = w->call;
    const tgi_desc *d = &call->ctx->src[1];
    const int64_t c = frame * w->channels, wide = call->ctx->src[3].dim[3];
    if (i >= w->t.n)
        return channels_at(&call->src[3 + kind], c, w->channels, (i - w->t.n) / wide,
                           (i - w->t.n) % wide);
    const int64_t y = w->t.at[i].y, x = w->t.at[i].x;
    if (y >= d->dim[2] || x >= d->dim[3])
        return call->ctx->const_src[6 + kind]->data;
    return channels_at(&call->src[1 + kind], c, w->channels, y, x);
}

/* How many tokens a query of the frame looks at; -1: they do not lie as they should. */
static int64_t list_tokens(const window *w, int64_t frame)
{
    const int64_t per = w->masked ? w->t.n + w->pooled : w->t.own,
                  n = w->masked ? (w->a->frames - w->a->first + 1) / 2 * per : per;
    for (int64_t j = 0; j < n; j++)
        for (int kind = 0; kind < 2; kind++) {
            const int64_t f = w->masked ? w->a->first + 2 * (j / per) : frame;
            w->of[kind][j] = token_at(w, kind, f, j % per);
            if (!w->of[kind][j])
                return -1;
        }
    return n;
}

static int head(const window *w, int64_t frame, int64_t c0, int64_t n, int64_t y, int64_t x)
{
    double top = -INFINITY, sum = 0, acc[TGI_WINDOW_MOST * TGI_WINDOW_MOST];
    const int64_t c = frame * w->channels + c0;
    const float *query = channels_at(&w->call->src[0], c, w->inner, y, x);
    if (!query || w->inner > TGI_WINDOW_MOST * TGI_WINDOW_MOST)
        return 0;
    likenesses(query, w->of[0], n, w->inner, w->weight);
    for (int64_t j = 0; j < n; j++) {
        w->weight[j] *= (double)w->a->scale;
        top = w->weight[j] > top ? w->weight[j] : top;
    }
    for (int64_t j = 0; j < n; j++)
        sum += exp(w->weight[j] - top);
    for (int64_t i = 0; i < w->inner; i++)
        acc[i] = 0;
    for (int64_t j = 0; j < n; j++) {
        const double share = exp(w->weight[j] - top) / sum;
        for (int64_t i = 0; i < w->inner; i++)
            acc[i] += share * (double)w->of[1][j][c0 + i];
    }
    for (int64_t i = 0; i < w->inner; i++)
        *tgi_view_at(&w->call->dst[0], c + i, 0, y, x) = (float)acc[i];
    return 1;
}

/* All heads of a query; keys of a head lie in its part of the channels. */
static int query(window *w, int64_t frame, int64_t y, int64_t x)
{
    const int64_t n = list_tokens(w, frame);
    if (n < 0)
        return 0;
    for (int64_t c0 = 0; c0 < w->channels; c0 += w->inner) {
        if (!head(w, frame, c0, n, y, x))
            return 0;
        for (int64_t j = 0; j < n; j++)
            w->of[0][j] += w->inner;
    }
    return 1;
}

static int attend(window *w, const tgi_box *box)
{
    const tgi_range rows = tgi_box_axis(box, TGI_Y), cols = tgi_box_axis(box, TGI_X);
    const tgi_desc *d = w->call->ctx->src;
    for (int64_t y = rows.lo; y < rows.hi; y++)
        for (int64_t x = cols.lo; x < cols.hi; x++) {
            const tgi_px at = {0, 0, y / w->a->window_h, x / w->a->window_w};
            tgi_window_list(w->a, d, at.y, at.x, &w->t);
            w->masked = tgi_src_broadcast(w->call, 5, -1, &at) != 0;
            for (int64_t f = 0; f < tgi_window_asked(w->a); f++)
                if (!query(w, f, y, x))
                    return 0;
        }
    return 1;
}

static int attention(const tgi_call *call)
{
    const window_attrs *a = call->ctx->attrs;
    const tgi_desc *d = call->ctx->src;
    window w = {.call = call, .a = a, .channels = d->dim[1] / tgi_window_asked(a)};
    w.inner = w.channels / a->heads;
    w.pooled = d[3].dim[2] * d[3].dim[3];
    w.most = a->frames * (5 * TGI_WINDOW_MOST * TGI_WINDOW_MOST + w.pooled);
    for (int i = 0; i < 2; i++)
        w.of[i] = malloc((size_t)w.most * sizeof *w.of[i]);
    w.weight = malloc((size_t)w.most * sizeof *w.weight);
    const int can = w.of[0] && w.of[1] && w.weight && attend(&w, &call->box);
    free(w.of[0]);
    free(w.of[1]);
    free(w.weight);
    if (can)
        tgi_zero_lanes(&call->dst[0], &call->box);
    return can;
}

/* ---- Lookup ------------------------------------------------------------------------------ */

#define ACROSS (TGI_LOOKUP_SIDE + 1)

/* A row of products of level l from column x on; zeros outside. */
static int products(const tgi_call *call, const float *first, int l, int64_t y, int64_t x,
                    int64_t n, double *out)
{
    const tgi_desc *d = &call->ctx->src[2 + l];
    const float *with[ACROSS];
    double made[ACROSS];
    int64_t lo = n, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = 0;
        if (y < 0 || y >= d->dim[2] || x + i < 0 || x + i >= d->dim[3])
            continue;
        with[i] = channels_at(&call->src[2 + l], 0, d->dim[1], y, x + i);
        if (!with[i])
            return 0;
        lo = tgi_min(lo, i);
        hi = i + 1;
    }
    if (lo < hi)
        likenesses(first, with + lo, hi - lo, d->dim[1], made);
    for (int64_t i = lo; i < hi; i++)
        out[i] = made[i - lo] / sqrt((double)d->dim[1]);
    return 1;
}

static int look_at(const tgi_call *call, const float *first, int l, int64_t py, int64_t px)
{
    const tgi_desc *d = &call->ctx->src[2 + l];
    const int64_t n = 2 * ((const lookup_attrs *)call->ctx->attrs)->radius + 1, r = n / 2;
    tgi_px at = {0, 0, py, px};
    const tgi_place x = tgi_lookup_place(px, tgi_src_broadcast(call, 1, -1, &at), l, d->dim[3]);
    at.c = 1;
    const tgi_place y = tgi_lookup_place(py, tgi_src_broadcast(call, 1, -1, &at), l, d->dim[2]);
    double is[ACROSS][ACROSS] = {{0}};
    for (int64_t j = 0; j <= n && !x.far && !y.far; j++)
        if (!products(call, first, l, y.whole + j - r, x.whole - r, n + 1, is[j]))
            return 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const double fx = (double)x.part, fy = (double)y.part;
            const double above = (1 - fx) * is[j][i] + fx * is[j][i + 1];
            const double below = (1 - fx) * is[j + 1][i] + fx * is[j + 1][i + 1];
            *tgi_view_at(&call->dst[0], (l * n + i) * n + j, 0, py, px) =
                (float)((1 - fy) * above + fy * below);
        }
    return 1;
}

static int lookup(const tgi_call *call)
{
    const tgi_range rows = tgi_box_axis(&call->box, TGI_Y),
                    cols = tgi_box_axis(&call->box, TGI_X);
    for (int64_t y = rows.lo; y < rows.hi; y++)
        for (int64_t x = cols.lo; x < cols.hi; x++) {
            const float *first = channels_at(&call->src[0], 0, call->ctx->src[0].dim[1], y, x);
            for (int l = 0; l < call->ctx->n_src - 2; l++)
                if (!first || !look_at(call, first, l, y, x))
                    return 0;
        }
    tgi_zero_lanes(&call->dst[0], &call->box);
    return 1;
}

int fake_sums(const char *op, const tgi_call *call)
{
    return strcmp(op, "WindowAttention") == 0     ? attention(call)
           : strcmp(op, "CorrelationLookup") == 0 ? lookup(call)
                                                  : 0;
}
