/* flow_count.c - what a cell needs, by going through its bands without computing. Node by node
 * through some bands rather than band by band through all nodes: what a node reads is looked up
 * once for them. Forwards the nodes yield what they can; backwards they say what their next
 * rows read. A value has all its readers behind its maker, so there it is known and counted
 * while it is at hand: ten thousand values of a group of bands are megabytes. */
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/plan/stream.h"

#include <string.h>

#define BANDS 32           /* together */
#define STRIDE (BANDS + 1) /* the last of the bands before comes first */

typedef struct walk {
    tgi_flow *f;
    const tgi_net *net;
    const tgi_flow_count *count;
    int64_t *end, *keep; /* [n_values][STRIDE] */
    int64_t bands;       /* walked before these */
    int n;               /* of these: up to the one in which the last output is complete */
} walk;

static int64_t *row_of(int64_t *values, int v)
{
    return values + (size_t)v * STRIDE;
}

/* Before its readers say more, a value's rows are kept up to its end. */
static void keep_none(const walk *w, int v)
{
    memcpy(row_of(w->keep, v) + 1, row_of(w->end, v) + 1, BANDS * sizeof *w->keep);
}

static void feed_band(const walk *w)
{
    const tgi_stage *stage = w->f->stage;
    for (int i = 0; i < stage->n_loaded; i++) {
        int64_t *most = &w->count->fed[stage->in[i].value];
        *most = tgi_max(*most, tgi_range_len(tgi_flow_feed(w->f, i)));
    }
}

static void feed(walk *w)
{
    const tgi_stage *stage = w->f->stage;
    for (int b = 1; b <= BANDS; b++) {
        feed_band(w);
        for (int i = 0; i < stage->n_loaded; i++)
            row_of(w->end, stage->in[i].value)[b] = w->f->end[stage->in[i].value];
    }
    for (int i = 0; i < stage->n_loaded; i++)
        keep_none(w, stage->in[i].value);
}

static void lower(int64_t *last, const int64_t *most)
{
    for (int b = 0; b < BANDS; b++)
        last[b] = tgi_min(last[b], most[b]);
}

/* By a read of row r->at.hi more at most than the row itself. */
static void lower_plainly(const walk *w, const tgi_read *r, int64_t hi, int64_t *last)
{
    const int64_t *there = row_of(w->end, r->value);
    const int64_t all = r->at.of > 0 ? tgi_min(r->at.of, r->rows) : r->rows;
    const int64_t least = r->at.of > 0 ? tgi_max(1, r->at.least) : INT64_MIN;
    for (int b = 1; b <= BANDS; b++) {
        const int64_t to = there[b] < least ? last[0] : there[b] - r->at.hi;
        last[b] = tgi_min(last[b], there[b] >= all ? hi : to);
    }
}

/* Up to which rows node i, each of whose reads tells its end, can compute in each band. What it
 * has of one band it has in the next, so all bands may begin where the first does. */
static void reach_known(const walk *w, int i, int64_t *last)
{
    const tgi_read *end, *r = tgi_reads_of(&w->net->reads, i, TGI_STREAM_AXIS, &end);
    const int64_t hi = w->f->hi[w->net->reads.node[i].dst];
    int64_t most[BANDS];
    for (int b = 1; b <= BANDS; b++)
        last[b] = hi;
    for (; r < end; r++)
        if (tgi_read_is_plain(r)) {
            lower_plainly(w, r, hi, last);
        } else {
            tgi_read_ends(w->net, r, TGI_STREAM_AXIS, last[0], row_of(w->end, r->value) + 1,
                          most, BANDS);
            lower(last + 1, most);
        }
    for (int b = 1; b <= BANDS; b++)
        last[b] = tgi_max(last[b], last[b - 1]);
}

/* Nothing comes of these bands: all is there, or nothing has come that is read. */
static int is_idle(const walk *w, int i, const int64_t *last)
{
    const tgi_read *end, *first = tgi_reads_of(&w->net->reads, i, TGI_STREAM_AXIS, &end);
    const tgi_read *r = first;
    if (last[0] >= w->f->hi[w->net->reads.node[i].dst])
        return 1;
    while (r < end && row_of(w->end, r->value)[BANDS] == row_of(w->end, r->value)[0])
        r++;
    return r == end && r > first && w->bands > 0;
}

static void advance(walk *w, int i)
{
    const tgi_reader *n = &w->net->reads.node[i];
    int64_t *last = row_of(w->end, n->dst);
    if (is_idle(w, i, last))
        for (int b = 1; b <= BANDS; b++)
            last[b] = last[0];
    else if (!n->flat && n->ends[0])
        reach_known(w, i, last);
    else
        for (int b = 1; b <= BANDS; b++)
            last[b] = tgi_flow_reach(w->f, i, (tgi_reached){w->end + b, STRIDE}, last[b - 1]);
    keep_none(w, n->dst);
    for (int d = 1; d < n->n_dst; d++) {
        const int v = w->net->nodes[i].node->dst[d];
        int64_t *other = row_of(w->end, v);
        for (int b = 1; b <= BANDS; b++)
            other[b] = !n->flat ? last[b] : last[b] > last[b - 1] ? w->f->hi[v] : other[b - 1];
        keep_none(w, v);
    }
}

/* What the rows of node i that are still to come read. */
static void release(const walk *w, int i)
{
    const int dst = w->net->reads.node[i].dst;
    const int64_t *done = row_of(w->end, dst) + 1, hi = w->f->hi[dst];
    int n = 0; /* bands after which there are any */
    while (n < BANDS && done[n] < hi)
        n++;
    const tgi_read *end, *r = tgi_reads_of(&w->net->reads, i, TGI_STREAM_AXIS, &end);
    for (; r < end && n > 0; r++) {
        int64_t *keep = row_of(w->keep, r->value) + 1, lo[BANDS];
        const int64_t first = w->f->lo[r->value];
        if (tgi_read_is_plain(r) && r->at.of <= 0) {
            for (int b = 0; b < n; b++)
                keep[b] = tgi_min(keep[b], tgi_max(done[b] + r->at.lo, first));
        } else {
            tgi_read_begins(w->net, i, r, TGI_STREAM_AXIS, done, hi, lo, n);
            for (int b = 0; b < n; b++)
                keep[b] = tgi_min(keep[b], tgi_max(lo[b], first));
        }
    }
}

static int is_all_fed(const walk *w)
{
    const tgi_stage *stage = w->f->stage;
    for (int i = 0; i < stage->n_loaded; i++)
        if (w->f->end[stage->in[i].value] < w->f->hi[stage->in[i].value])
            return 0;
    return 1;
}

/* Who reads ahead may read what no band waits for any more. */
static void feed_rest(const walk *w)
{
    while (!is_all_fed(w))
        feed_band(w);
}

/* How many of the bands there are: up to the one in which the last output is complete. */
static int bands_of(const walk *w)
{
    const tgi_stage *stage = w->f->stage;
    int last = 1;
    for (int o = 0; o < stage->n_out; o++) {
        const int v = stage->out[o].value;
        const int64_t *end = row_of(w->end, v);
        while (last < BANDS && end[last] < w->f->hi[v])
            last++;
    }
    return last;
}

static void count_node(const walk *w, int k)
{
    const tgi_flow_count *c = w->count;
    const tgi_reader *n = &w->net->reads.node[w->f->stage->node[k]];
    const int64_t *end = row_of(w->end, n->dst);
    int64_t most = c->band_rows[k];
    int calls = 0;
    if (end[w->n] == end[0])
        return;
    for (int b = 1; b <= w->n; b++) {
        calls += end[b] > end[b - 1];
        most = tgi_max(most, end[b] - end[b - 1]);
    }
    c->band_rows[k] = most;
    c->rows[k] += (double)(end[w->n] - end[0]);
    c->cost->calls += calls;
    c->cost->weight_bytes += (double)calls * (double)n->packed_bytes;
}

/* All that reads value v has said what it still reads. The next bands go on where these end. */
static void count_value(const walk *w, int v)
{
    int64_t *end = row_of(w->end, v), *keep = row_of(w->keep, v);
    int64_t ring = w->count->ring[v], carried = 0;
    for (int b = 1; b <= w->n; b++) {
        ring = tgi_max(ring, end[b] - keep[b - 1]);
        carried = tgi_max(carried, end[b] - keep[b]);
    }
    w->count->ring[v] = ring;
    w->count->carried[v] |= carried > 0;
    end[0] = end[BANDS];
    keep[0] = keep[BANDS];
}

static void walk_bands(walk *w)
{
    const tgi_stage *stage = w->f->stage;
    feed(w);
    for (int k = 0; k < stage->n_nodes; k++)
        advance(w, stage->node[k]);
    w->n = bands_of(w);
    for (int k = stage->n_nodes - 1; k >= 0; k--) {
        const int i = stage->node[k];
        release(w, i);
        count_node(w, k);
        count_value(w, w->net->reads.node[i].dst);
        for (int d = 1; d < w->net->reads.node[i].n_dst; d++)
            count_value(w, w->net->nodes[i].node->dst[d]);
    }
    for (int i = 0; i < stage->n_loaded; i++)
        count_value(w, stage->in[i].value);
    w->bands += w->n;
}

static int is_done(const walk *w)
{
    const tgi_stage *stage = w->f->stage;
    for (int o = 0; o < stage->n_out; o++)
        if (row_of(w->end, stage->out[o].value)[w->n] < w->f->hi[stage->out[o].value])
            return 0;
    return 1;
}

tg_status tgi_flow_simulate(tgi_flow *f, tgi_range core, int64_t band, const tgi_flow_count *c,
                            int64_t *bands, tgi_err *err)
{
    const tgi_net *net = f->stage->net;
    const size_t n = ((size_t)net->n_values + 1) * STRIDE;
    walk w = {
        .f = f, .net = net, .count = c, .end = tgi_calloc(TGI_TAG_PLAN, 2 * n, sizeof *w.end)};
    tg_status st = TG_OK;
    if (!w.end)
        return tgi_fail(err, TG_E_NOMEM, "no memory to follow the rows of %d values",
                        net->n_values);
    w.keep = w.end + n;
    tgi_flow_begin(f, core, band);
    for (int v = 0; v < net->n_values; v++)
        for (int b = 0; b < STRIDE; b++)
            row_of(w.end, v)[b] = row_of(w.keep, v)[b] = f->lo[v];
    for (int done = tgi_flow_done(f); !done && st == TG_OK; done = is_done(&w)) {
        st = tgi_check_cancel(err);
        walk_bands(&w);
    }
    if (st == TG_OK)
        feed_rest(&w);
    *bands += w.bands;
    tgi_free(w.end);
    return st;
}
