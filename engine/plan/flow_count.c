/* flow_count.c - what a cell needs, by going through its bands without computing. Node by node
 * through some bands rather than band by band through all nodes: what a node reads is looked up
 * once for them. */
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
    int64_t *end, *keep; /* [n_values][STRIDE] */
    int64_t bands;       /* walked before these */
} walk;

static int64_t *row_of(int64_t *values, int v)
{
    return values + (size_t)v * STRIDE;
}

static void feed(walk *w)
{
    const tgi_stage *stage = w->f->stage;
    for (int b = 1; b <= BANDS; b++)
        for (int i = 0; i < stage->n_loaded; i++) {
            tgi_flow_feed(w->f, i);
            row_of(w->end, stage->in[i].value)[b] = w->f->end[stage->in[i].value];
        }
}

/* Up to which rows a node whose reads are all even lines can compute in each band. */
static void reach_evenly(const walk *w, const tgi_reader *n, int64_t *last)
{
    const tgi_read *r = w->net->reads.read[0] + n->first,
                   *end = w->net->reads.read[0] + n[1].first;
    const int64_t hi = w->f->hi[n->dst];
    for (int b = 1; b <= BANDS; b++)
        last[b] = hi;
    for (; r < end; r++) {
        const int64_t *there = row_of(w->end, r->value);
        if (tgi_read_is_plain(r)) {
            const int64_t all = r->at.of > 0 ? tgi_min(r->at.of, r->rows) : r->rows;
            const int64_t least = r->at.of > 0 ? tgi_max(1, r->at.least) : INT64_MIN;
            for (int b = 1; b <= BANDS; b++) {
                const int64_t to = there[b] < least ? last[0] : there[b] - r->at.hi;
                last[b] = tgi_min(last[b], there[b] >= all ? hi : to);
            }
        } else {
            for (int b = 1; b <= BANDS; b++)
                last[b] = tgi_min(last[b],
                                  tgi_read_end(w->net, r, TGI_STREAM_AXIS, last[0], there[b]));
        }
    }
    for (int b = 1; b <= BANDS; b++)
        last[b] = tgi_max(last[b], last[b - 1]);
}

/* Nothing comes of these bands: all is there, or nothing has come that is read. */
static int is_idle(const walk *w, const tgi_reader *n, const int64_t *last)
{
    const tgi_read *r = w->net->reads.read[0] + n->first,
                   *end = w->net->reads.read[0] + n[1].first;
    if (last[0] >= w->f->hi[n->dst])
        return 1;
    while (r < end && row_of(w->end, r->value)[BANDS] == row_of(w->end, r->value)[0])
        r++;
    return r == end && r > w->net->reads.read[0] + n->first && w->bands > 0;
}

static int is_even(const walk *w, const tgi_reader *n)
{
    const tgi_read *r = w->net->reads.read[0] + n->first,
                   *end = w->net->reads.read[0] + n[1].first;
    while (r < end && r->even)
        r++;
    return r == end;
}

static void advance(walk *w, int i)
{
    const tgi_reader *n = &w->net->reads.node[i];
    int64_t *last = row_of(w->end, n->dst);
    if (is_idle(w, n, last))
        for (int b = 1; b <= BANDS; b++)
            last[b] = last[0];
    else if (!n->flat && is_even(w, n))
        reach_evenly(w, n, last);
    else
        for (int b = 1; b <= BANDS; b++)
            last[b] = tgi_flow_reach(w->f, i, (tgi_reached){w->end + b, STRIDE}, last[b - 1]);
    for (int d = 1; d < n->n_dst; d++) {
        const int v = w->net->nodes[i].node->dst[d];
        int64_t *other = row_of(w->end, v);
        for (int b = 1; b <= BANDS; b++)
            other[b] = !n->flat ? last[b] : last[b] > last[b - 1] ? w->f->hi[v] : other[b - 1];
    }
}

/* What the rows of node i that are still to come read. */
static void release(walk *w, int i)
{
    const tgi_reader *n = &w->net->reads.node[i];
    const int64_t *done = row_of(w->end, n->dst), hi = w->f->hi[n->dst];
    if (done[1] >= hi)
        return;
    const tgi_read *r = w->net->reads.read[0] + n->first,
                   *end = w->net->reads.read[0] + n[1].first;
    for (; r < end; r++) {
        int64_t *keep = row_of(w->keep, r->value);
        const int64_t first = w->f->lo[r->value];
        int64_t lo = INT64_MAX;
        if (tgi_read_is_plain(r) && r->at.of <= 0)
            for (int b = 1; b <= BANDS; b++)
                keep[b] = done[b] >= hi ? keep[b]
                                        : tgi_min(keep[b], tgi_max(done[b] + r->at.lo, first));
        else
            for (int b = 1; b <= BANDS && done[b] < hi; b++) {
                if (b == 1 || done[b] != done[b - 1])
                    lo = tgi_max(
                        tgi_read_lo(w->net, i, r, TGI_STREAM_AXIS, (tgi_range){done[b], hi}),
                        first);
                keep[b] = tgi_min(keep[b], lo);
            }
    }
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

static void count_nodes(const walk *w, int bands, const tgi_flow_count *c)
{
    const tgi_stage *stage = w->f->stage;
    for (int k = 0; k < stage->n_nodes; k++) {
        const tgi_reader *n = &w->net->reads.node[stage->node[k]];
        const int64_t *end = row_of(w->end, n->dst);
        int calls = 0;
        if (end[bands] == end[0])
            continue;
        for (int b = 1; b <= bands; b++) {
            calls += end[b] > end[b - 1];
            c->band_rows[k] = tgi_max(c->band_rows[k], end[b] - end[b - 1]);
        }
        c->rows[k] += (double)(end[bands] - end[0]);
        c->cost->calls += calls;
        c->cost->weight_bytes += (double)calls * (double)n->packed_bytes;
    }
}

static void count_values(const walk *w, int bands, const tgi_flow_count *c)
{
    for (int v = 0; v < w->net->n_values; v++) {
        const int64_t *end = row_of(w->end, v), *keep = row_of(w->keep, v);
        int64_t ring = c->ring[v], carried = 0;
        for (int b = 1; b <= bands; b++) {
            ring = tgi_max(ring, end[b] - keep[b - 1]);
            carried = tgi_max(carried, end[b] - keep[b]);
        }
        c->ring[v] = ring;
        c->carried[v] |= carried > 0;
    }
}

static void walk_bands(walk *w)
{
    const tgi_stage *stage = w->f->stage;
    feed(w);
    for (int k = 0; k < stage->n_nodes; k++)
        advance(w, stage->node[k]);
    for (int v = 0; v < w->net->n_values; v++)
        memcpy(row_of(w->keep, v) + 1, row_of(w->end, v) + 1, BANDS * sizeof *w->end);
    for (int k = 0; k < stage->n_nodes; k++)
        release(w, stage->node[k]);
}

tg_status tgi_flow_simulate(tgi_flow *f, tgi_range core, int64_t band, const tgi_flow_count *c,
                            int64_t *bands, tgi_err *err)
{
    const tgi_net *net = f->stage->net;
    const size_t n = ((size_t)net->n_values + 1) * STRIDE;
    walk w = {.f = f, .net = net, .end = tgi_calloc(TGI_TAG_PLAN, 2 * n, sizeof *w.end)};
    tg_status st = TG_OK;
    if (!w.end)
        return tgi_fail(err, TG_E_NOMEM, "no memory to follow the rows of %d values",
                        net->n_values);
    w.keep = w.end + n;
    tgi_flow_begin(f, core, band);
    for (int v = 0; v < net->n_values; v++)
        for (int b = 0; b < STRIDE; b++)
            row_of(w.end, v)[b] = row_of(w.keep, v)[b] = f->lo[v];
    for (int done = tgi_flow_done(f); !done && st == TG_OK;) {
        st = tgi_check_cancel(err);
        walk_bands(&w);
        const int n_bands = bands_of(&w);
        count_nodes(&w, n_bands, c);
        count_values(&w, n_bands, c);
        *bands += n_bands;
        w.bands += n_bands;
        done = 1;
        for (int o = 0; o < f->stage->n_out; o++)
            done &=
                row_of(w.end, f->stage->out[o].value)[n_bands] >= f->hi[f->stage->out[o].value];
        for (int v = 0; v < net->n_values; v++) {
            row_of(w.end, v)[0] = row_of(w.end, v)[BANDS];
            row_of(w.keep, v)[0] = row_of(w.keep, v)[BANDS];
        }
    }
    tgi_free(w.end);
    return st;
}
