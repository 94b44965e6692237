/* stage_cut.h - the cut itself (stage.h says what it is), and what stage.c lends to it. */
#ifndef TGI_STAGE_CUT_H
#define TGI_STAGE_CUT_H

#include "engine/plan/stage.h"

/* Fill s->stage and s->n. On failure what was made stays in them, for tgi_stages_free. Takes
 * time in proportion to the nodes and to what the stages list, whatever the number of stages.
 */
tg_status tgi_stages_cut(const tgi_net *net, tgi_sparing by, tgi_stages *s, tgi_err *err);

/* Bytes of all its pixels. */
double tgi_stage_value_bytes(const tgi_net *net, int v);
/* An image of more than a pixel, that passes through in bands? A single pixel and a flat value
 * are whole at once. */
int tgi_is_streamed(const tgi_net *net, int v);
/* Is operand j read from edge to edge before the node's first pixel? */
int tgi_reads_whole(const tgi_net_node *n, int j);
/* Does the node wait for a whole extent? */
int tgi_is_whole(const tgi_net_node *n);
/* Is input i of a stage looked at as a whole alone: is nothing read of it row by row, and is it
 * not handed on? */
int tgi_stage_only_looks(const tgi_stage *s, int i);
/* Of the inputs that are marked in_pieces, those stay so whose readers all take pieces. */
void tgi_stage_agree_on_pieces(tgi_stage *s);

/* An empty stage with room for nodes and inputs. */
tg_status tgi_stage_open(tgi_stage *s, const tgi_net *net, int n_nodes, int n_in, tgi_err *err);
/* One more output: value v, for which node `whole` waits (-1: none), or, from `channel` >= 0 of
 * its operand on, that node's reduction of it. Only counted while s->out is NULL. */
void tgi_stage_add_out(tgi_stage *s, int v, int whole, int64_t channel);
/* One more: output o of the net. */
void tgi_stage_add_out_of_net(tgi_stage *s, const tgi_net *net, int o, int whole);
/* At first all of output 0 is wanted. */
void tgi_stage_want_all(tgi_stage *s);

#endif
