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

/* The op's own rule where the kernel's would round to blocks that are to be placed first. */
static void plain_need(const tgi_net_node *n, const tgi_box *dst, int j, tgi_box *need)
{
    if (n->variant && n->variant->rearranges && j < n->ctx.n_src)
        tgi_op_need(n->node->op, &n->ctx, 0, dst, j, need);
    else
        tgi_net_need(n, dst, j, need);
}

/* Are the rows that row `row` of node n reads there, when value v has end[v]? */
static int there(const tgi_net_node *n, int64_t row, const int64_t *end)
{
    tgi_box box = tgi_box_full(&n->net->values[n->node->dst[0]].ext), need;
    box.ax[TGI_STREAM_AXIS] = (tgi_range){row, row + 1};
    for (int j = 0; j < n->n_operands; j++) {
        const tgi_net_operand *o = &n->operand[j];
        if (o->n_seg == 0)
            continue;
        plain_need(n, &box, j, &need);
        for (int s = 0; s < o->n_seg; s++)
            if (tgi_read_part(o->doubled[s], need.ax[TGI_STREAM_AXIS]).hi > end[o->value[s]])
                return 0;
    }
    return 1;
}

/* Rows of node n that can be computed: `there` holds below and not above. */
static int64_t end_of(const tgi_net_node *n, const int64_t *end)
{
    int64_t good = 0, bad = tgi_net_dim(n->net, n->node->dst[0], TGI_STREAM_AXIS) + 1;
    while (bad - good > 1) {
        const int64_t mid = good + (bad - good) / 2;
        if (there(n, mid - 1, end))
            good = mid;
        else
            bad = mid;
    }
    return good;
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
