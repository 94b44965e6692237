/* line_ops.h - operators on lines, [1,C,L], and what each has to say differently of the same
 * line as an image of one row, [1,C,1,L] (rewrite_lines.c). */
#ifndef TGI_LINE_OPS_H
#define TGI_LINE_OPS_H

#include "engine/graph/graph_priv.h"

#define TGI_LINE_RANK 3
#define TGI_ROW_AXIS 2 /* the new axis, of extent one */

/* What a node on rows reads and yields, other than the same node on lines. */
typedef struct tgi_on_rows {
    int n_src;
    int src[TGI_OP_MAX_SRC]; /* lists that are longer now; operands are raised by the caller */
    tgi_ints drop; /* axes of the row form that the result lacks; n < 0: just TGI_ROW_AXIS */
} tgi_on_rows;

/* How an operator is dealt with; NULL: it has no form on rows. */
typedef struct tgi_line_op {
    const char *op;
    int says_so; /* what it reads is a line, whatever else is around: windows, resizing */
    /* Fill `r` and change the node's attributes; *yes = 0 and nothing changed where this node
     * cannot be said of rows. May add nodes: pointers to nodes move. NULL: nothing differs. */
    tg_status (*change)(tgi_graph *g, const tgi_shapes *s, int node, tgi_on_rows *r, int *yes,
                        tgi_err *err);
} tgi_line_op;

const tgi_line_op *tgi_line_op_of(const tgi_node *n);

#endif
