/* stream.c - composes needs backward over a cell, and advances values band by band. */
#include "engine/plan/stream.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/granule.h"

#include <string.h>

/* ---- One axis, backward ------------------------------------------------------------------ */

static tgi_range clip_to(const tgi_net *net, int v, int axis, tgi_range r)
{
    return tgi_range_clip(r, 0, tgi_net_dim(net, v, axis));
}

/* What is handed to the next frame is wanted where the image is padded, too: the first cell's share and the last one's reach
 * as far as there are pixels. */
static tgi_range carried_share(const tgi_stage *stage, int axis, tgi_range core,
                               tgi_range share, int64_t d)
{
    const tgi_fit *f = &stage->fit[axis - TGI_STREAM_AXIS];
    if (tgi_range_empty(core) || !f->out)
        return share;
    return (tgi_range){core.lo == f->crop ? 0 : share.lo,
                       core.hi == f->crop + f->out ? d : share.hi};
}

static int is_carried(const tgi_stage *stage, int o)
{
    const int port = stage->out[o].port;
    return port >= 0 && tgi_graph_is_carried(stage->net->g, port);
}

tgi_range tgi_axis_share(const tgi_stage *stage, int axis, int o, tgi_range core)
{
    const tgi_range all = core;
    const int64_t d0 = tgi_stage_out_dim(stage, 0, axis);
    const int64_t d = tgi_stage_out_dim(stage, o, axis);
    if (d != d0)
        core = (tgi_range){core.lo * d / d0, core.hi * d / d0};
    if (stage->out[o].reduced && axis >= stage->net->rank - 2)
        return tgi_granule_share(core, d); /* x and y */
    return is_carried(stage, o) ? carried_share(stage, axis, all, core, d) : core;
}

/* Rows of a value for each core that is asked about: those of value v from v * n on. */
static tgi_range *row_of(tgi_range *ranges, int v, int n)
{
    return ranges + (size_t)v * (size_t)n;
}

static int all_empty(const tgi_range *r, int n)
{
    while (n > 0 && tgi_range_empty(r[n - 1]))
        n--;
    return n == 0;
}

static void need_of_operands(const tgi_net *net, int i, int axis, const tgi_range *dst, int n,
                             tgi_range *stored)
{
    const tgi_read *end, *r = tgi_reads_of(&net->reads, i, axis, &end);
    if (all_empty(dst, n))
        return;
    for (; r < end; r++)
        tgi_read_needs(net, i, r, axis, dst, row_of(stored, r->value, n), n);
}

/* What a node that runs must yield of each result: flat ones as a whole, of unused ones a row,
 * so that none is left behind; the others what is asked for. */
static void fill_flat(const tgi_net *net, const tgi_net_node *node, int axis, int n, int k,
                      tgi_range *stored, tgi_range *inside)
{
    int used = 0;
    for (int d = 0; d < node->ctx.n_dst; d++)
        used |= !tgi_range_empty(row_of(stored, node->node->dst[d], n)[k]);
    for (int d = 0; d < node->ctx.n_dst && used; d++) {
        const int v = node->node->dst[d];
        tgi_range *r = row_of(stored, v, n) + k;
        if (net->values[v].flat)
            *r = (tgi_range){0, tgi_net_dim(net, v, axis)};
        else if (tgi_range_empty(*r))
            *r = (tgi_range){0, 1};
        row_of(inside, v, n)[k] = clip_to(net, v, axis, *r);
    }
}

/* A node computes one box for all its results. */
static void fill_alike(const tgi_net *net, const tgi_net_node *node, int axis, int n, int k,
                       tgi_range *stored, tgi_range *inside)
{
    tgi_range all = {0, 0};
    for (int d = 0; d < node->ctx.n_dst; d++)
        all = tgi_range_hull(all, row_of(stored, node->node->dst[d], n)[k]);
    const tgi_range dst = clip_to(net, node->node->dst[0], axis, all);
    for (int d = 0; d < node->ctx.n_dst; d++) {
        row_of(stored, node->node->dst[d], n)[k] = all;
        row_of(inside, node->node->dst[d], n)[k] = dst;
    }
}

static void clip_value(const tgi_net *net, int v, int axis, int n, const tgi_range *stored,
                       tgi_range *inside)
{
    const int64_t dim = tgi_net_dim(net, v, axis);
    for (size_t k = (size_t)v * (size_t)n; k < ((size_t)v + 1) * (size_t)n; k++)
        inside[k] = tgi_range_clip(stored[k], 0, dim);
}

static void fill_node(const tgi_net *net, int i, int axis, int n, tgi_range *stored,
                      tgi_range *inside)
{
    const tgi_reader *reader = &net->reads.node[i];
    if (!reader->flat && reader->n_dst == 1)
        clip_value(net, reader->dst, axis, n, stored, inside);
    for (int k = 0; reader->flat && k < n; k++)
        fill_flat(net, &net->nodes[i], axis, n, k, stored, inside);
    for (int k = 0; !reader->flat && reader->n_dst > 1 && k < n; k++)
        fill_alike(net, &net->nodes[i], axis, n, k, stored, inside);
}

static void clear_value(int v, int n, tgi_range *stored, tgi_range *inside)
{
    memset(row_of(stored, v, n), 0, (size_t)n * sizeof *stored);
    memset(row_of(inside, v, n), 0, (size_t)n * sizeof *inside);
}

/* Nothing is needed yet of what the stage knows. A net may have hundreds of values that a stage of a few
 * nodes never sees, and it is asked thousands of times. */
static void clear_needs(const tgi_stage *s, int n, tgi_range *stored, tgi_range *inside)
{
    const tgi_net *net = s->net;
    for (int p = 0; p < s->n_nodes; p++) {
        const tgi_net_node *node = tgi_stage_node(s, p);
        for (int d = 0; d < node->ctx.n_dst; d++)
            clear_value(node->node->dst[d], n, stored, inside);
        for (int j = 0; j < node->n_operands; j++)
            for (int k = 0; k < node->operand[j].n_seg; k++)
                clear_value(node->operand[j].value[k], n, stored, inside);
    }
    for (int i = 0; i < s->n_in; i++)
        clear_value(s->in[i].value, n, stored, inside);
    for (int o = 0; o < s->n_out; o++)
        clear_value(s->out[o].value, n, stored, inside);
    for (int i = 0; i < net->n_in; i++)
        clear_value(net->in[i], n, stored, inside);
}

void tgi_axis_needs(const tgi_stage *stage, int axis, const tgi_range *core, int n,
                    tgi_range *stored, tgi_range *inside)
{
    const tgi_net *net = stage->net;
    clear_needs(stage, n, stored, inside);
    for (int o = 0; o < stage->n_out; o++) {
        tgi_range *r = row_of(stored, stage->out[o].value, n);
        for (int k = 0; k < n; k++)
            r[k] = tgi_range_hull(r[k], tgi_axis_share(stage, axis, o, core[k]));
    }
    for (int p = stage->n_nodes - 1; p >= 0; p--) {
        const int i = stage->node[p];
        fill_node(net, i, axis, n, stored, inside);
        need_of_operands(net, i, axis, row_of(inside, net->reads.node[i].dst, n), n, stored);
    }
    for (int i = 0; i < stage->n_loaded; i++)
        clip_value(net, stage->in[i].value, axis, n, stored, inside);
}

void tgi_axis_need(const tgi_stage *stage, int axis, tgi_range core, tgi_range *stored,
                   tgi_range *inside)
{
    tgi_axis_needs(stage, axis, &core, 1, stored, inside);
}

/* ---- The flow ---------------------------------------------------------------------------- */

tg_status tgi_flow_open(tgi_flow *f, const tgi_stage *stage, tgi_err *err)
{
    const size_t n = (size_t)stage->net->n_values + 1;
    memset(f, 0, sizeof *f);
    f->stage = stage;
    f->lo = tgi_calloc(TGI_TAG_PLAN, n * 5, sizeof *f->lo);
    f->work = tgi_calloc(TGI_TAG_PLAN, n * 2, sizeof *f->work);
    if (!f->lo || !f->work) {
        tgi_flow_close(f);
        return tgi_fail(err, TG_E_NOMEM, "no memory to follow the rows of %zu values", n);
    }
    f->hi = f->lo + n;
    f->end = f->lo + 2 * n;
    f->keep = f->lo + 3 * n;
    f->step = f->lo + 4 * n;
    return TG_OK;
}

size_t tgi_flow_bytes(const tgi_stage *stage)
{
    const size_t n = (size_t)stage->net->n_values + 1;
    return n * (5 * sizeof(int64_t) + 2 * sizeof(tgi_range));
}

void tgi_flow_close(tgi_flow *f)
{
    tgi_free(f->lo);
    tgi_free(f->work);
    memset(f, 0, sizeof *f);
}

/* The band of input 0 with which input i, which begins at row `lo`, is first fed. */
static int64_t first_band(const tgi_flow *f, int i, int64_t lo)
{
    const int64_t d0 = tgi_stage_in_dim(f->stage, 0, TGI_STREAM_AXIS);
    const int64_t d = tgi_stage_in_dim(f->stage, i, TGI_STREAM_AXIS);
    return tgi_floor_div(i ? lo * d0 : lo, (i ? d : 1) * f->band);
}

void tgi_flow_begin(tgi_flow *f, tgi_range core, int64_t band)
{
    const int n_values = f->stage->net->n_values;
    tgi_range *stored = f->work, *inside = f->work + n_values;
    tgi_axis_need(f->stage, TGI_STREAM_AXIS, core, stored, inside);
    f->band = band;
    for (int v = 0; v < n_values; v++) {
        f->lo[v] = f->end[v] = f->keep[v] = inside[v].lo;
        f->hi[v] = tgi_max(inside[v].lo, inside[v].hi);
    }
    int64_t first = INT64_MAX;
    for (int i = 0; i < f->stage->n_loaded; i++)
        if (i == 0 || !f->stage->in[i].at_once)
            first = tgi_min(first, first_band(f, i, f->lo[f->stage->in[i].value]));
    f->at = f->stage->n_loaded ? first * band : 0;
}

/* Where input i stands in the band up to row r of input 0: its proportional share, also where input 0 ends
 * before, or where it is loaded at once. So a part of a cell is fed no more in any band than the cell. */
static int64_t share_of_input(const tgi_flow *f, int i, int64_t r)
{
    const int v = f->stage->in[i].value;
    if (f->stage->in[i].at_once)
        return f->hi[v];
    if (i == 0)
        return tgi_min(r, f->hi[v]);
    const int64_t d0 = tgi_stage_in_dim(f->stage, 0, TGI_STREAM_AXIS);
    const int64_t d = tgi_stage_in_dim(f->stage, i, TGI_STREAM_AXIS);
    return tgi_clamp(tgi_ceil_div(r * d, d0), f->end[v], f->hi[v]);
}

tgi_range tgi_flow_feed(tgi_flow *f, int i)
{
    const int v = f->stage->in[i].value;
    if (i == 0) /* is fed first; the others follow where it would stand then */
        f->at += f->band;
    const tgi_range r = {f->end[v], tgi_max(f->end[v], share_of_input(f, i, f->at))};
    f->end[v] = r.hi;
    return r;
}

/* Are the rows that rows [from,to) of node i read all there? */
static int computable(const tgi_flow *f, int i, tgi_reached ends, int64_t from, int64_t to)
{
    const tgi_net *net = f->stage->net;
    const tgi_read *end, *r = tgi_reads_of(&net->reads, i, TGI_STREAM_AXIS, &end);
    for (; r < end; r++) {
        const int64_t need = tgi_read_hi(net, i, r, TGI_STREAM_AXIS, (tgi_range){from, to});
        if (tgi_min(need, r->rows) > ends.at[r->value * ends.stride])
            return 0;
    }
    return 1;
}

/* How many rows of node i can be had of what is there, where each read tells; not less than
 * `from`. */
static int64_t known_end(const tgi_flow *f, int i, tgi_reached ends, int64_t from, int64_t hi)
{
    const tgi_net *net = f->stage->net;
    const tgi_read *end, *r = tgi_reads_of(&net->reads, i, TGI_STREAM_AXIS, &end);
    for (; r < end && hi > from; r++) {
        int64_t most;
        tgi_read_ends(net, r, TGI_STREAM_AXIS, from, &ends.at[r->value * ends.stride], &most,
                      1);
        hi = tgi_min(hi, most);
    }
    return tgi_max(from, hi);
}

/* The last row that node i can yield, of which the first missing one is `from`. Most bands are
 * like the one before: its step is tried first, then on or back from there, twice as far each
 * time, until the end lies between two that were tried. */
static int64_t searched_end(tgi_flow *f, int i, tgi_reached ends, int64_t from, int64_t hi)
{
    const int v = f->stage->net->reads.node[i].dst;
    int64_t good = from,
            bad = hi + 1; /* (from, good) is computable or empty, (from, bad) not */
    int64_t mid = tgi_min(from + tgi_max(1, f->step[v]), hi);
    for (int64_t far = 1; bad - good > 1; far *= 2) {
        if (computable(f, i, ends, from, mid))
            good = mid;
        else
            bad = mid;
        if (bad > hi)
            mid = tgi_min(good + far, hi);
        else if (good == from)
            mid = tgi_max(bad - far, from + 1);
        else
            mid = good + (bad - good) / 2;
    }
    if (good > from)
        f->step[v] = good - from;
    return good;
}

int64_t tgi_flow_reach(tgi_flow *f, int i, tgi_reached ends, int64_t from)
{
    const tgi_reader *n = &f->stage->net->reads.node[i];
    const int64_t hi = f->hi[n->dst];
    const int64_t last =
        n->ends[0] ? known_end(f, i, ends, from, hi) : searched_end(f, i, ends, from, hi);
    return n->flat && last < hi ? from : last; /* a flat one yields everything at once */
}

tgi_range tgi_flow_advance(tgi_flow *f, int k)
{
    const tgi_net *net = f->stage->net;
    const int i = f->stage->node[k];
    const tgi_reader *n = &net->reads.node[i];
    const int64_t from = f->end[n->dst];
    const int64_t last = tgi_flow_reach(f, i, (tgi_reached){f->end, 1}, from);
    if (n->n_dst == 1)
        f->end[n->dst] = last;
    else
        for (int d = 0; d < n->n_dst; d++) {
            const int v = net->nodes[i].node->dst[d];
            f->end[v] = !n->flat ? last : last > from ? f->hi[v] : f->end[v];
        }
    return (tgi_range){from, last};
}

void tgi_flow_release(tgi_flow *f)
{
    const tgi_stage *stage = f->stage;
    for (int v = 0; v < stage->net->n_values; v++)
        f->keep[v] = f->end[v];
    for (int k = 0; k < stage->n_nodes; k++) {
        const int i = stage->node[k], d = stage->net->reads.node[i].dst;
        if (f->end[d] >= f->hi[d])
            continue;
        /* All rows to come, not the next alone: a mirrored border reads upwards as it goes
         * down. */
        const tgi_read *end, *r = tgi_reads_of(&stage->net->reads, i, TGI_STREAM_AXIS, &end);
        for (; r < end; r++) {
            const int v = r->value;
            int64_t lo;
            tgi_read_begins(stage->net, i, r, TGI_STREAM_AXIS, &f->end[d], f->hi[d], &lo, 1);
            f->keep[v] = tgi_min(f->keep[v], tgi_max(lo, f->lo[v]));
        }
    }
}

int tgi_flow_done(const tgi_flow *f)
{
    for (int o = 0; o < f->stage->n_out; o++) {
        const int v = f->stage->out[o].value;
        if (f->end[v] < f->hi[v])
            return 0;
    }
    return 1;
}
