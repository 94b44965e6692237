/* place.c - finds scale and shift between input and output by walking the needs backward. */
#include "engine/graph/place.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/graph/graph_priv.h"

#include <stdio.h>
#include <string.h>

/* The second size of the slope lies this many divisors above the first: a multiple of every
 * stride up to 10, and of the powers of two up to 64. */
#define SLOPE_STEPS ((int64_t)20160)
#define MIDDLE_MOST                                                                            \
    ((int64_t)1 << 24)                /* extents in which the middle must be free of borders   \
                                       */
#define REACH_MOST ((int64_t)1 << 15) /* output pixels of a box that are looked at */
#define HIDDEN_STRIDE 16 /* strides that the divisor may not show: roundings hide them */

/* ---- Backward ---------------------------------------------------------------------------- */

/* What node n reads of its source j when it computes `dst` of its first output; 0: nothing that
 * says where. */
static int need_of(const tgi_node *n, int flat, const tgi_op_ctx *ctx, int j, int axis,
                   tgi_need how, tgi_range dst, tgi_range *need)
{
    const tgi_desc *d = &ctx->dst[0], *s = &ctx->src[j];
    if (s->rank != d->rank || axis >= d->rank ||
        (how != TGI_NEED_ALL && s->dim[axis] == 1 && d->dim[axis] != 1))
        return 0;
    if (flat || n->op_class == TGI_OP_WHOLE) {
        *need = dst;
        return s->dim[axis] == d->dim[axis];
    }
    tgi_slide slide;
    if (axis >= 2 && !n->op->rule && tgi_op_slide(n->op, ctx, j, axis + 3 - d->rank, &slide)) {
        *need = tgi_slide_need(&slide, dst);
        return 1;
    }
    tgi_box box = tgi_box_full(d), in;
    box.ax[axis] = dst;
    tgi_op_need(n->op, ctx, 0, &box, j, &in);
    *need = in.ax[axis];
    return 1;
}

static void join(tgi_range *need, int v, tgi_range r)
{
    need[v] = tgi_range_hull(need[v], r);
}

static void need_of_node(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n, int axis,
                         tgi_need how, tgi_range *need)
{
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    tgi_op_ctx ctx;
    tgi_range all = {0, 0}, in;
    for (int d = 0; d < n->n_dst; d++)
        all = tgi_range_hull(all, need[n->dst[d]]);
    if (tgi_range_empty(all) || tgi_node_is_known(s, n))
        return;
    tgi_node_ctx(g, s, n, src, dst, consts, &ctx);
    const int flat = tgi_node_is_flat(g, s, n);
    for (int j = 0; j < n->n_src; j++)
        if (n->src[j] >= 0 && !consts[j] && need_of(n, flat, &ctx, j, axis, how, all, &in))
            join(need, n->src[j], in);
    for (int e = 0; e < n->n_epi; e++)
        if (n->epi[e].value >= 0)
            join(need, n->epi[e].value, all);
}

int tgi_graph_axis_need(const tgi_graph *g, const tgi_shapes *s, int axis, tgi_range core,
                        tgi_need how, tgi_range *need)
{
    const int far = how == TGI_NEED_FAR;
    int inside = 1;
    for (int v = 0; v < g->n_values; v++)
        need[v] = (tgi_range){0, 0};
    need[g->out[0].value] = core;
    for (int i = g->n_nodes - 1; i >= 0; i--)
        need_of_node(g, s, &g->nodes[i], axis, how, need);
    for (int v = 0; v < g->n_values && inside; v++)
        if (!tgi_range_empty(need[v]) && axis < s->desc[v].rank)
            inside = need[v].lo >= far && need[v].hi <= s->desc[v].dim[axis] - far;
    return inside;
}

/* ---- Scale and place --------------------------------------------------------------------- */

static tg_status infer_at(const tgi_graph *g, int k, int64_t n, tgi_shapes *s, tgi_err *err)
{
    tgi_desc in[TGI_MAX_PORTS];
    int64_t ext[3] = {g->base[0], g->base[1], g->base[2]};
    ext[k] = n;
    tgi_graph_input_descs(g, ext, in);
    return tgi_graph_infer(g, in, s, err);
}

/* Axis of an activation that is axis k of z,y,x. */
static int axis_of(const tgi_graph *g, int k)
{
    return g->spatial + 2 - 3 + k;
}

tg_status tgi_graph_output_extent(const tgi_graph *g, int k, int64_t n, int64_t *out,
                                  tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(infer_at(g, k, n, &s, err));
    const tgi_desc *d = &s.desc[g->out[0].value];
    *out = tgi_is_image(g, d) ? d->dim[axis_of(g, k)] : 1;
    tgi_shapes_free(&s);
    return TG_OK;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static void set_scale(tgi_place *p, int64_t up, int64_t down)
{
    const int64_t common = common_divisor(up, down);
    p->up = up / common;
    p->down = tgi_max(1, down / common); /* is 1 at least; the analyser cannot know */
}

/* Twice the distance, in output pixels times `down`, from output pixel o to the centre of what
 * it reads. A single pixel tells nothing where strides are: over a whole period those that lie
 * left of their block's centre and those right of it make up for each other. */
static int64_t shift_of(const tgi_place *p, int64_t o, tgi_range in)
{
    return (in.lo + in.hi) * p->up - (2 * o + 1) * p->down;
}

/* Half of the mean of n such distances, to the nearest pixel; a half goes to the far side. */
static int64_t lead_of(const tgi_place *p, int64_t sum, int64_t n)
{
    return tgi_ceil_div(sum - n * p->down, 2 * n * p->down);
}

/* The lead by what some periods in the middle read. *found 0: at extent n a border is too near.
 */
static tg_status lead_at(const tgi_graph *g, int k, int64_t n, tgi_place *p, int *found,
                         tgi_err *err)
{
    tgi_shapes s;
    const int axis = axis_of(g, k);
    const int64_t divisor = tgi_max(1, g->divisor[k]);
    const int64_t period = p->up * divisor * tgi_ceil_div(HIDDEN_STRIDE, divisor);
    int64_t sum = 0;
    tg_status st = TG_OK;
    TGI_TRY(infer_at(g, k, n, &s, err));
    tgi_range *need = tgi_calloc(TGI_TAG_GRAPH, (size_t)g->n_values + 1, sizeof *need);
    if (!need) {
        tgi_shapes_free(&s);
        return tgi_fail(err, TG_E_NOMEM, "no memory to place the output");
    }
    const int64_t q = s.desc[g->out[0].value].dim[axis], at = q / 2 / period * period;
    *found = at + period <= q;
    for (int64_t o = at; *found && o < at + period; o++) {
        if ((st = tgi_check_cancel(err)) != TG_OK)
            break;
        *found = tgi_graph_axis_need(g, &s, axis, (tgi_range){o, o + 1}, TGI_NEED_FAR, need);
        sum += shift_of(p, o, need[g->in[0].value]);
    }
    if (*found)
        p->lead = lead_of(p, sum, period);
    tgi_free(need);
    tgi_shapes_free(&s);
    return st;
}

static tg_status place_free(const tgi_graph *g, int k, tgi_place *out, tgi_err *err)
{
    const int64_t base = g->base[k], more = SLOPE_STEPS * tgi_max(1, g->divisor[k]);
    int64_t q0, q1;
    tgi_err e = {0};
    int found = 0;
    TGI_TRY(tgi_graph_output_extent(g, k, base, &q0, err));
    const tg_status st = tgi_graph_output_extent(g, k, base + more, &q1, &e);
    if (tgi_search_ends(st))
        return tgi_fail(err, st, "%s", e.text);
    if (st != TG_OK || q1 <= q0)
        return TG_OK;
    set_scale(out, q1 - q0, more);
    out->lost = tgi_ceil_div(base * out->up, out->down) - q0;
    out->lead = tgi_floor_div(out->lost, 2); /* should no extent show it */
    for (int64_t n = base; out->lost != 0 && !found && n <= MIDDLE_MOST; n = 2 * n)
        TGI_TRY(lead_at(g, k, tgi_graph_extent(g, k, n), out, &found, err));
    return TG_OK;
}

/* ---- One fixed extent -------------------------------------------------------------------- */

/* Whether what two output pixels `step` apart read differs by a shift only, of every value
 * alike: where an operator stops at a border (Resize repeats the edge pixel, without reading
 * beyond it), it does not. */
typedef struct walker {
    const tgi_graph *g;
    tgi_shapes s;
    int axis;
    tgi_need how;
    int64_t q, step;
    tgi_range *at, *next; /* per value: what pixel o and pixel o + step read */
    int64_t *move;        /* per value: by how much; 0: not known yet */
    tg_status st;         /* TG_E_CANCELLED: nothing steps on */
    tgi_err *err;
} walker;

static tg_status open_walker(walker *w, const tgi_graph *g, int k, int64_t extent, tgi_need how,
                             tgi_err *err)
{
    const size_t n = (size_t)g->n_values + 1;
    *w = (walker){.g = g, .axis = axis_of(g, k), .how = how, .err = err};
    TGI_TRY(infer_at(g, k, extent, &w->s, err));
    const tgi_desc *d = &w->s.desc[g->out[0].value];
    w->q = tgi_is_image(g, d) ? d->dim[w->axis] : 1;
    w->at = tgi_calloc(TGI_TAG_GRAPH, 2 * n, sizeof *w->at);
    w->move = tgi_calloc(TGI_TAG_GRAPH, n, sizeof *w->move);
    if (!w->at || !w->move)
        return tgi_fail(err, TG_E_NOMEM, "no memory to place the output");
    w->next = w->at + n;
    return TG_OK;
}

static void close_walker(walker *w)
{
    tgi_free(w->at);
    tgi_free(w->move);
    tgi_shapes_free(&w->s);
}

/* Both pixels read inside the images, and the shift of every value is the known one. */
static int steps_from(walker *w, int64_t o)
{
    const tgi_range a = {o, o + 1}, b = {o + w->step, o + w->step + 1};
    if (w->st == TG_OK)
        w->st = tgi_check_cancel(w->err);
    if (w->st != TG_OK || o < 0 || b.hi > w->q ||
        !tgi_graph_axis_need(w->g, &w->s, w->axis, a, w->how, w->at) ||
        !tgi_graph_axis_need(w->g, &w->s, w->axis, b, w->how, w->next))
        return 0;
    for (int v = 0; v < w->g->n_values; v++) {
        const int64_t by = w->next[v].lo - w->at[v].lo;
        if (tgi_range_empty(w->at[v]) && tgi_range_empty(w->next[v]))
            continue;
        if (w->move[v] == 0)
            w->move[v] = by;
        if (by <= 0 || by != w->move[v] || w->next[v].hi - w->at[v].hi != by)
            return 0;
    }
    return 1;
}

/* Is `step` a period? Asked of more than twice as many pixels in the middle: what moves with
 * another period stands still, or moves by another shift, for one of step + 1 pixels. */
static int is_period(walker *w, int64_t step)
{
    const int64_t from = (w->q - step) / 2 - step - 1;
    w->step = step;
    memset(w->move, 0, (size_t)w->g->n_values * sizeof *w->move);
    for (int64_t o = from; o < from + 2 * step + 3; o++)
        if (!steps_from(w, o))
            return 0;
    return 1;
}

/* Smallest step of the output in which what it reads moves by one and the same step, and the
 * output pixels around the middle for which that holds. */
static void find_step(walker *w, tgi_place *out)
{
    int64_t step = 1, sum = 0;
    if (w->q > REACH_MOST)
        return;
    while (3 * step <= w->q && w->st == TG_OK && !is_period(w, step))
        step++;
    if (3 * step > w->q || w->st != TG_OK)
        return;
    int64_t lo = (w->q - step) / 2, hi = lo + 1;
    while (steps_from(w, lo - 1))
        lo--;
    while (steps_from(w, hi))
        hi++;
    out->step_out = step;
    out->step_in = w->move[w->g->in[0].value];
    out->keep = (tgi_range){lo, hi + step};
    set_scale(out, out->step_out, out->step_in);
    for (int64_t o = lo; o < lo + step; o++) {
        steps_from(w, o);
        sum += shift_of(out, o, w->at[w->g->in[0].value]);
    }
    out->lead = lead_of(out, sum, step);
}

/* It keeps pieces from being computed apart. */
const tgi_node *tgi_graph_whole_node(const tgi_graph *g, const tgi_shapes *s)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const tgi_node *n = &g->nodes[i];
        if (!tgi_node_is_known(s, n) &&
            (n->op_class == TGI_OP_WHOLE || tgi_node_is_flat(g, s, n)))
            return n;
    }
    return NULL;
}

/* Does one pixel of the node's output read its input from edge to edge? */
static int reads_all(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n, int axis)
{
    tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    tgi_op_ctx ctx;
    tgi_range in;
    tgi_node_ctx(g, s, n, src, dst, consts, &ctx);
    if (tgi_node_is_known(s, n) || axis >= dst[0].rank)
        return 0;
    const int64_t at = dst[0].dim[axis] / 2;
    for (int j = 0; j < n->n_src; j++)
        if (n->src[j] >= 0 && !consts[j] && axis < src[j].rank && src[j].dim[axis] > 1 &&
            need_of(n, 0, &ctx, j, axis, TGI_NEED_ALL, (tgi_range){at, at + 1}, &in) &&
            in.lo <= 0 && in.hi >= src[j].dim[axis])
            return 1;
    return 0;
}

/* Why an axis has no steps: the first node that reads all of it, if it is a single one. */
static tg_status say_why(const tgi_graph *g, int k, const tgi_node *whole, tgi_place *out,
                         tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(infer_at(g, k, g->base[k], &s, err));
    out->whole = whole != NULL;
    for (int i = 0; i < g->n_nodes && !whole; i++)
        if (reads_all(g, &s, &g->nodes[i], axis_of(g, k)))
            whole = &g->nodes[i];
    if (whole)
        snprintf(out->why, sizeof out->why, "%s \"%.100s\" %s", whole->op->name, whole->name,
                 out->whole ? "reads the whole image"
                            : "has a window as large as the image, at the size that the "
                              "network takes");
    else
        snprintf(out->why, sizeof out->why,
                 "the network reads as far as its size, or not in even steps");
    tgi_shapes_free(&s);
    return TG_OK;
}

/* The scale of a network that says nothing else: whole ratios of its extents. */
static void guess_scale(int64_t n, int64_t q, tgi_place *out)
{
    if (q > 0 && (q % n == 0 || n % q == 0))
        set_scale(out, q, n);
}

static tg_status place_fixed(const tgi_graph *g, int k, int64_t n, tgi_need how, tgi_place *out,
                             tgi_err *err)
{
    const tgi_node *whole = NULL;
    walker w;
    tg_status st = open_walker(&w, g, k, n, how, err);
    if (st == TG_OK && how == TGI_NEED_ALL)
        whole = tgi_graph_whole_node(g, &w.s);
    if (st == TG_OK && !whole)
        find_step(&w, out);
    if (st == TG_OK)
        st = w.st;
    if (st == TG_OK && out->step_in > 0) {
        out->lost = tgi_ceil_div(n * out->up, out->down) - w.q;
    } else if (st == TG_OK) {
        guess_scale(n, w.q, out);
        st = say_why(g, k, whole, out, err);
    }
    close_walker(&w);
    return st;
}

tg_status tgi_graph_place(const tgi_graph *g, int k, tgi_place *out, tgi_err *err)
{
    *out = (tgi_place){.down = 1};
    return tgi_graph_fixed_extent(g, k) ? place_fixed(g, k, g->base[k], TGI_NEED_ALL, out, err)
                                        : place_free(g, k, out, err);
}

tg_status tgi_graph_place_box(const tgi_graph *g, int k, int64_t n, tgi_place *out,
                              tgi_err *err)
{
    *out = (tgi_place){.down = 1};
    return place_fixed(g, k, n, TGI_NEED_PLACED, out, err);
}
