/* reads.c - writes down what each node reads along an axis, as a slide or as a rule. */
#include "engine/plan/reads.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/plan/net.h"

#include <string.h>

static int count_reads(const tgi_net *net)
{
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++)
        for (int j = 0; j < net->nodes[i].n_operands; j++)
            n += net->nodes[i].operand[j].n_seg;
    return n;
}

/* Operands of node n that have a rule where they are not even. */
static int count_rules(const tgi_net_node *n)
{
    int count = 0;
    for (int j = 0; n->node->op->rule && j < n->ctx.n_src; j++)
        count += n->operand[j].n_seg > 0;
    return count;
}

/* As tgi_net_need. */
tgi_along tgi_along_of(const tgi_net_node *n, const struct tgi_variant *variant, int j,
                       int axis, tgi_slide *at, tgi_rule *rule)
{
    const tgi_net *net = n->net;
    const tgi_op *op = n->node->op;
    const int at_axis = axis + 3 - net->rank;
    *at = TGI_SLIDE_SAME;
    if (n->flat)
        *at = tgi_slide_all(tgi_net_dim(net, n->operand[j].value[0], axis));
    if (n->flat || j >= n->ctx.n_src)
        return TGI_ALONG_EVENLY;
    if (n->src[j].rank != net->rank)
        return TGI_ALONG_UNKNOWN;
    if (tgi_variant_slide(variant, op, &n->ctx, j, at_axis, at))
        return TGI_ALONG_EVENLY;
    if (!op->rule || (variant && variant->slide))
        return TGI_ALONG_UNKNOWN;
    op->rule(&n->ctx, j, at_axis, rule);
    return TGI_ALONG_RULE;
}

static void fill_axis(const tgi_net *net, int i, int axis, tgi_reads *out)
{
    const tgi_net_node *n = &net->nodes[i];
    tgi_reader *reader = &out->node[i];
    tgi_read *r = out->read[axis - TGI_STREAM_AXIS] + reader->first;
    tgi_rule *const rules = out->rule[axis - TGI_STREAM_AXIS];
    int all = 1, next = reader->rule;
    for (int j = 0; j < n->n_operands; j++) {
        const tgi_net_operand *o = &n->operand[j];
        tgi_slide at;
        if (o->n_seg == 0)
            continue;
        const tgi_along how = tgi_along_of(n, n->variant, j, axis, &at, &rules[next]);
        const int even = how == TGI_ALONG_EVENLY, ruled = how == TGI_ALONG_RULE;
        all &= even || (ruled && rules[next].ends);
        for (int s = 0; s < o->n_seg; s++) {
            *r = (tgi_read){.value = o->value[s],
                            .operand = (short)j,
                            .doubled = o->doubled[s],
                            .even = (unsigned char)even,
                            .rule = ruled ? next : -1,
                            .rows = tgi_net_dim(net, o->value[s], axis)};
            if (even)
                r->at = at;
            r++;
        }
        next += ruled;
    }
    reader->ends[axis - TGI_STREAM_AXIS] = (unsigned char)all;
}

void tgi_reads_renew(const tgi_net *net, int i, tgi_reads *r)
{
    r->node[i].packed_bytes = net->nodes[i].packed_bytes;
    for (int axis = TGI_STREAM_AXIS; axis < net->rank; axis++)
        fill_axis(net, i, axis, r);
}

tg_status tgi_reads_make(const tgi_net *net, tgi_reads *out, tgi_err *err)
{
    const size_t n_reads = (size_t)count_reads(net) + 1;
    size_t n_rules = 0;
    const int axes = net->rank - TGI_STREAM_AXIS;
    tgi_reads_free(out);
    out->node = tgi_calloc(TGI_TAG_PLAN, (size_t)net->n_nodes + 1, sizeof *out->node);
    for (int i = 0; i < net->n_nodes; i++)
        n_rules += (size_t)count_rules(&net->nodes[i]);
    int made = out->node != NULL;
    for (int a = 0; a < axes; a++) {
        out->read[a] = tgi_calloc(TGI_TAG_PLAN, n_reads, sizeof *out->read[a]);
        out->rule[a] = tgi_calloc(TGI_TAG_PLAN, n_rules + 1, sizeof *out->rule[a]);
        made &= out->read[a] && out->rule[a];
    }
    if (!made)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what %d nodes read", net->n_nodes);
    int first = 0, rule = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        const tgi_net_node *n = &net->nodes[i];
        TGI_TRY(tgi_check_cancel(err));
        out->node[i] = (tgi_reader){.first = first,
                                    .rule = rule,
                                    .dst = n->node->dst[0],
                                    .n_dst = (short)n->ctx.n_dst,
                                    .flat = n->flat != 0};
        for (int j = 0; j < n->n_operands; j++)
            first += n->operand[j].n_seg;
        rule += count_rules(n);
        tgi_reads_renew(net, i, out);
    }
    out->node[net->n_nodes].first = first;
    return TG_OK;
}

void tgi_reads_free(tgi_reads *r)
{
    tgi_free(r->node);
    for (int a = 0; a < 3; a++) {
        tgi_free(r->read[a]);
        tgi_free(r->rule[a]);
    }
    memset(r, 0, sizeof *r);
}

int tgi_reads_are_plain(const tgi_net *net, int axis)
{
    const tgi_read *r = net->reads.read[axis - TGI_STREAM_AXIS];
    const tgi_read *end = r + net->reads.node[net->n_nodes].first;
    while (r < end && tgi_read_is_plain(r))
        r++;
    return r == end;
}

tgi_range tgi_read_part(int doubled, tgi_range r)
{
    if (!doubled || tgi_range_empty(r))
        return r;
    return (tgi_range){tgi_floor_div(r.lo, 2), tgi_floor_div(r.hi - 1, 2) + 1};
}

static tgi_range need_of_operand(const tgi_net *net, int i, const tgi_read *r, int axis,
                                 tgi_range dst)
{
    if (r->even)
        return tgi_slide_need(&r->at, dst);
    if (r->rule >= 0)
        return tgi_rule_need(&net->reads.rule[axis - TGI_STREAM_AXIS][r->rule], dst);
    const tgi_net_node *n = &net->nodes[i];
    tgi_box box = tgi_box_full(&net->values[n->node->dst[0]].ext), in;
    box.ax[axis] = dst;
    tgi_net_need(n, &box, r->operand, &in);
    return in.ax[axis];
}

tgi_range tgi_read_need(const tgi_net *net, int i, const tgi_read *r, int axis, tgi_range dst)
{
    return tgi_read_part(r->doubled, need_of_operand(net, i, r, axis, dst));
}

void tgi_read_needs(const tgi_net *net, int i, const tgi_read *r, int axis,
                    const tgi_range *dst, tgi_range *stored, int n)
{
    const int64_t lo = r->at.lo, hi = r->at.hi;
    if (tgi_read_is_plain(r) && r->at.of <= 0) {
        for (int k = 0; k < n; k++)
            if (!tgi_range_empty(dst[k]))
                stored[k] =
                    tgi_range_hull(stored[k], (tgi_range){dst[k].lo + lo, dst[k].hi + hi});
        return;
    }
    for (int k = 0; k < n; k++)
        if (!tgi_range_empty(dst[k]))
            stored[k] = tgi_range_hull(stored[k], tgi_read_need(net, i, r, axis, dst[k]));
}

static int is_rising(const tgi_net *net, const tgi_read *r, int axis)
{
    return r->even || (r->rule >= 0 && net->reads.rule[axis - TGI_STREAM_AXIS][r->rule].rising);
}

static const tgi_rule *rule_of(const tgi_net *net, const tgi_read *r, int axis)
{
    return &net->reads.rule[axis - TGI_STREAM_AXIS][r->rule];
}

void tgi_read_begins(const tgi_net *net, int i, const tgi_read *r, int axis, const int64_t *row,
                     int64_t hi, int64_t *out, int n)
{
    const int rising = is_rising(net, r, axis);
    if (r->even)
        tgi_slide_begins(&r->at, row, out, n);
    else if (rising && rule_of(net, r, axis)->begins)
        rule_of(net, r, axis)->begins(rule_of(net, r, axis)->u.given, row, out, n);
    else
        for (int k = 0; k < n; k++) {
            const tgi_range rows = {row[k], rising ? row[k] + 1 : hi};
            out[k] = k > 0 && row[k] == row[k - 1] ? out[k - 1]
                                                   : need_of_operand(net, i, r, axis, rows).lo;
        }
    for (int k = 0; r->doubled && k < n; k++)
        out[k] = tgi_floor_div(out[k], 2);
}

int64_t tgi_read_hi(const tgi_net *net, int i, const tgi_read *r, int axis, tgi_range dst)
{
    if (is_rising(net, r, axis))
        dst.lo = dst.hi - 1;
    return tgi_read_need(net, i, r, axis, dst).hi;
}

static void ends_of_operand(const tgi_net *net, const tgi_read *r, int axis, int64_t from,
                            int64_t *end, int n)
{
    if (r->even)
        tgi_slide_ends(&r->at, end, end, n);
    else
        rule_of(net, r, axis)->ends(rule_of(net, r, axis)->u.given, from, end, end, n);
}

void tgi_read_ends(const tgi_net *net, const tgi_read *r, int axis, int64_t from,
                   const int64_t *end, int64_t *out, int n)
{
    int part = 0; /* from which on all is there */
    while (part < n && end[part] < r->rows)
        part++;
    for (int k = 0; k < part; k++)
        out[k] = r->doubled ? 2 * end[k] : end[k];
    ends_of_operand(net, r, axis, from, out, part);
    for (int k = part; k < n; k++)
        out[k] = INT64_MAX;
}
