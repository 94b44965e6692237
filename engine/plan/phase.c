/* phase.c - where the blocks of block-wise kernels start.
 *
 * A kernel that computes whole blocks of rows (Winograd: 4) gives none of them before it can
 * give all. Were every node's blocks to start at row 0, each would wait for up to 3 rows that
 * its source has not yet finished either: delays would add up over the nodes, and with them the
 * rows that skips must keep. So blocks start where the rows end that can be computed when the
 * input stands at a multiple of 64, the end of most bands: there nobody waits. To the sides the
 * same shift makes a node's halo 1 pixel on one side and at most 4 on the other.
 *
 * Depends on the graph and the image, not on bands or strips. */
#include "engine/plan/net.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "kernels/reduce.h"

#define BAND 64

/* What one operand of a node reads along the stream axis. */
typedef struct operand_read {
    const tgi_net_node *n;
    int j;
    tgi_along how;
    tgi_slide at;
    tgi_rule rule;
} operand_read;

/* The op's own rule where the kernel's would round to blocks that are to be placed first. */
static void look_at(const tgi_net_node *n, int j, operand_read *r)
{
    const tgi_variant *v = n->variant && n->variant->rearranges ? NULL : n->variant;
    r->n = n;
    r->j = j;
    r->how = tgi_along_of(n, v, j, TGI_STREAM_AXIS, &r->at, &r->rule);
}

static tgi_range need_of_row(const operand_read *r, int64_t row)
{
    const tgi_range one = {row, row + 1};
    if (r->how == TGI_ALONG_EVENLY)
        return tgi_slide_need(&r->at, one);
    if (r->how == TGI_ALONG_RULE)
        return tgi_rule_need(&r->rule, one);
    tgi_box box = tgi_box_full(&r->n->net->values[r->n->node->dst[0]].ext), need;
    box.ax[TGI_STREAM_AXIS] = one;
    tgi_net_need(r->n, &box, r->j, &need);
    return need.ax[TGI_STREAM_AXIS];
}

/* Are the rows that row `row` reads there, when value v has end[v]? */
static int there(const operand_read *r, int64_t row, const int64_t *end)
{
    const tgi_net_operand *o = &r->n->operand[r->j];
    const tgi_range need = need_of_row(r, row);
    for (int s = 0; s < o->n_seg; s++)
        if (tgi_read_part(o->doubled[s], need).hi > end[o->value[s]])
            return 0;
    return 1;
}

/* Rows of node n that can be computed: all that it reads is there below and not above. */
static int64_t end_of(const tgi_net_node *n, const int64_t *end)
{
    int64_t most = tgi_net_dim(n->net, n->node->dst[0], TGI_STREAM_AXIS);
    for (int j = 0; j < n->n_operands && most > 0; j++) {
        operand_read r;
        if (n->operand[j].n_seg == 0)
            continue;
        look_at(n, j, &r);
        int64_t good = 0, bad = most + 1;
        while (bad - good > 1) {
            const int64_t mid = good + (bad - good) / 2;
            if (there(&r, mid - 1, end))
                good = mid;
            else
                bad = mid;
        }
        most = good;
    }
    return most;
}

/* Are these numbers of the whole image, which a stage finds made (stage.h)? Behind such a read the
 * rows go on as if there were none. */
static int at_hand(const tgi_net_node *n)
{
    return !n->flat && tgi_reduce_of(n->node->op, &n->ctx) != NULL;
}

tg_status tgi_net_align_blocks(tgi_net *net, tgi_err *err)
{
    int64_t *end = tgi_calloc(TGI_TAG_PLAN, (size_t)net->n_values + 1, sizeof *end);
    if (!end)
        return tgi_fail(err, TG_E_NOMEM, "no memory to place blocks");
    const int64_t rows = tgi_net_dim(net, net->in[0], TGI_STREAM_AXIS);
    const int64_t at = rows < BAND ? rows : rows / BAND * BAND;
    for (int i = 0; i < net->n_in; i++)
        end[net->in[i]] = tgi_net_dim(net, net->in[i], TGI_STREAM_AXIS) * at / rows;
    tg_status st = TG_OK;
    for (int i = 0; i < net->n_nodes && (st = tgi_check_cancel(err)) == TG_OK; i++) {
        tgi_net_node *n = &net->nodes[i];
        const int64_t stop = end_of(n, end);
        n->ctx.phase = stop;
        for (int d = 0; d < n->ctx.n_dst; d++)
            end[n->node->dst[d]] = at_hand(n) ? 1 : stop;
    }
    tgi_free(end);
    return st;
}
