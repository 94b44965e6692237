/* net.c - lays out every value and picks the kernel of every node. */
#include "engine/plan/net.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/graph/split.h"

#include <stdio.h>
#include <string.h>

static int is_activation(const tgi_net *net, int v)
{
    return v >= 0 && !net->g->values[v].is_const && !net->shapes.known[v].data &&
           net->shapes.desc[v].dtype != TG_DTYPE_NONE;
}

/* ---- Nodes and operands ------------------------------------------------------------------ */

static void add_operand(const tgi_net *net, tgi_net_operand *o, int value)
{
    o->n_seg = 0;
    if (is_activation(net, value))
        o->value[o->n_seg++] = value;
}

static void mark_flat(const tgi_net *net, tgi_net_node *n)
{
    for (int j = 0; j < n->ctx.n_src; j++)
        if (n->operand[j].n_seg && net->values[n->operand[j].value[0]].flat)
            n->ctx.flat_src |= 1u << j;
    for (int d = 0; d < n->ctx.n_dst; d++)
        if (net->values[n->node->dst[d]].flat)
            n->ctx.flat_dst |= 1u << d;
}

static tg_status fill_node(tgi_net *net, const tgi_node *gn, tgi_net_node *n, unsigned flags,
                           tgi_err *err)
{
    n->node = gn;
    n->net = net;
    n->flat = tgi_node_is_flat(net->g, &net->shapes, gn);
    n->exact = gn->exact || (flags & TGI_NET_EXACT);
    n->kinds = flags >> 8;
    tgi_node_ctx(net->g, &net->shapes, gn, n->src, n->dst, n->consts, &n->ctx);
    n->n_operands = gn->n_src;
    for (int j = 0; j < gn->n_src; j++)
        add_operand(net, &n->operand[j], gn->src[j]);
    mark_flat(net, n);
    net->values[gn->dst[0]].wide = gn->op->wide;
    n->n_epi = gn->n_epi;
    for (int i = 0; i < gn->n_epi; i++) {
        n->epi[i] = gn->epi[i].step;
        if (gn->epi[i].value < 0)
            continue; /* src says which: kept or none */
        if (n->n_operands >= TGI_MAX_OPERANDS)
            return tgi_fail(err, TG_E_INTERNAL, "node \"%s\" has too many operands", gn->name);
        n->epi[i].src = n->n_operands;
        add_operand(net, &n->operand[n->n_operands++], gn->epi[i].value);
    }
    const double own = gn->op->flops ? gn->op->flops(&n->ctx) : 1;
    n->flops_per_element = own + gn->n_epi;
    return TG_OK;
}

static tg_status check_ranks(tgi_net *net, tgi_err *err)
{
    for (int i = 0; i < net->n_nodes; i++) {
        const tgi_net_node *n = &net->nodes[i];
        if (n->flat)
            continue;
        for (int d = 0; d < n->ctx.n_dst; d++) {
            const tgi_desc *t = &n->dst[d];
            if (n->node->dst[d] < 0)
                continue;
            char text[96];
            if (t->rank != net->rank)
                return tgi_fail(err, TG_E_UNSUPPORTED,
                                "%s \"%s\" yields %s; only activations of rank %d can "
                                "be computed in bands",
                                tgi_node_op_name(n->node), n->node->name,
                                tgi_desc_text(t, text, sizeof text), net->rank);
        }
        if (!n->node->op->ref)
            return tgi_fail(err, TG_E_UNSUPPORTED, "%s \"%s\" on activations is not supported",
                            tgi_node_op_name(n->node), n->node->name);
    }
    return TG_OK;
}

/* ---- Layout ------------------------------------------------------------------------------ */

static int block_of(const tgi_net *net, int64_t channels, unsigned flags)
{
    if (net->be->whole_pixels)
        return (int)tgi_whole_pixel(channels);
    return (flags & TGI_NET_REFERENCE) || channels <= TGI_PLANAR_MAX ? 1 : net->be->lanes;
}

size_t tgi_net_dense_bytes(const tgi_net *net, int value)
{
    const tgi_desc *d = &net->shapes.desc[value];
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? tgi_sat_mul((size_t)n, tgi_dtype_size(d->dtype)) : SIZE_MAX;
}

/* Bytes of a value as a dense array where it is computed: a device knows one type. */
static size_t stored_bytes(const tgi_net *net, int v)
{
    const tgi_desc *d = &net->shapes.desc[v];
    int64_t n = 0;
    if (!net->be->whole_pixels)
        return tgi_net_dense_bytes(net, v);
    return tgi_desc_count(d, &n) ? tgi_sat_mul((size_t)n, tgi_element_bytes(net->be))
                                 : SIZE_MAX;
}

static void set_flat_extents(tgi_net *net, int v)
{
    tgi_desc *e = &net->values[v].ext;
    const size_t bytes = stored_bytes(net, v), size = tgi_element_bytes(net->be);
    *e = (tgi_desc){TG_DTYPE_F32, net->rank, {1, 1, 1, 1, 1}};
    e->dim[net->rank - 1] = (int64_t)(bytes / size + (bytes % size != 0));
}

static size_t copy_bytes(const tgi_net *net, int v)
{
    return net->values[v].flat ? 0 : tgi_align_size(stored_bytes(net, v), 64);
}

size_t tgi_net_flat_scratch(const tgi_net *net, const tgi_net_node *n)
{
    size_t bytes = 0;
    for (int j = 0; j < n->n_operands; j++)
        if (n->operand[j].n_seg)
            bytes = tgi_sat_add(bytes, copy_bytes(net, n->operand[j].value[0]));
    for (int d = 0; d < n->ctx.n_dst; d++)
        bytes = tgi_sat_add(bytes, copy_bytes(net, n->node->dst[d]));
    if (n->variant && n->variant->scratch_bytes)
        bytes = tgi_sat_add(bytes, n->variant->scratch_bytes(&n->ctx, &n->hint, 0, 1));
    return bytes;
}

static void lay_out_values(tgi_net *net, unsigned flags)
{
    for (int v = 0; v < net->n_values; v++) {
        tgi_net_value *t = &net->values[v];
        t->ext = net->shapes.desc[v];
        if (!is_activation(net, v))
            continue;
        t->flat = !tgi_is_image(net->g, &t->ext);
        if (t->flat)
            set_flat_extents(net, v);
        t->c = t->ext.dim[1];
        t->cb = block_of(net, t->c, flags);
    }
}

static void fill_hint(const tgi_net *net, tgi_net_node *n)
{
    tgi_layout_hint *h = &n->hint;
    memset(h, 0, sizeof *h);
    h->lanes = net->be->lanes;
    h->exact = n->exact;
    h->kinds = n->kinds;
    h->flat = n->flat;
    h->n_src = n->ctx.n_src;
    for (int j = 0; j < n->ctx.n_src; j++) {
        const tgi_net_operand *o = &n->operand[j];
        h->src_segs[j] = o->n_seg;
        h->src_cb[j] = o->n_seg ? net->values[o->value[0]].cb : 0;
        for (int s = 0; s < o->n_seg; s++) {
            h->seg_c[j][s] = net->values[o->value[s]].c;
            h->n_doubled += o->doubled[s];
        }
    }
    h->dst_cb = net->values[n->node->dst[0]].cb;
    h->epi = n->epi;
    h->n_epi = n->n_epi;
}

void tgi_net_pick_variant(const tgi_net *net, tgi_net_node *n, unsigned flags)
{
    fill_hint(net, n);
    n->variant = (flags & TGI_NET_REFERENCE) || (n->flat && !net->be->whole_pixels)
                     ? NULL
                     : tgi_variant_pick(net->be, n->node->op->name, &n->ctx, &n->hint);
}

/* The node's kernel and what follows from it. */
static void settle(const tgi_net *net, tgi_net_node *n, unsigned flags)
{
    tgi_net_pick_variant(net, n, flags);
    const tgi_variant *v = n->variant;
    n->packed_bytes = v && v->packed_bytes ? v->packed_bytes(&n->ctx, &n->hint) : 0;
    n->cost = v && v->cost ? v->cost(&n->ctx, &n->hint) : 1;
}

static void place_weights(tgi_net *net)
{
    net->packed_bytes = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        net->nodes[i].packed_offset = net->packed_bytes;
        net->packed_bytes += tgi_align_size(net->nodes[i].packed_bytes, 64);
    }
}

/* Flops that a byte of packed weights saves when the node rearranges its sums. */
static double worth(const tgi_net *net, int node)
{
    const tgi_net_node *n = &net->nodes[node];
    double flops = n->flops_per_element * (1 - n->cost);
    for (int i = 1; i < n->dst[0].rank; i++)
        flops *= (double)n->dst[0].dim[i];
    return flops / (double)(n->packed_bytes + 1);
}

/* List the nodes that rearrange, the most worthwhile first; equals in graph order. */
static void rank_fast(tgi_net *net)
{
    for (int i = 0; i < net->n_nodes; i++) {
        if (!net->nodes[i].variant || !net->nodes[i].variant->rearranges)
            continue;
        int k = net->n_fast++;
        for (; k > 0 && worth(net, net->fast[k - 1]) < worth(net, i); k--)
            net->fast[k] = net->fast[k - 1];
        net->fast[k] = i;
    }
    net->n_used = net->n_fast;
}

static tg_status choose_kernels(tgi_net *net, unsigned flags, tgi_err *err)
{
    for (int i = 0; i < net->n_nodes; i++) {
        TGI_TRY(tgi_check_cancel(err));
        tgi_net_pick_variant(net, &net->nodes[i], flags);
    }
    if (!(flags & TGI_NET_REFERENCE))
        TGI_TRY(tgi_net_remove_views(net, err));
    for (int i = 0; i < net->n_nodes; i++) {
        TGI_TRY(tgi_check_cancel(err));
        settle(net, &net->nodes[i], flags);
    }
    if (!(flags & TGI_NET_REFERENCE))
        rank_fast(net);
    place_weights(net);
    return TG_OK;
}

void tgi_net_use_fast(tgi_net *net, int n)
{
    for (int k = 0; k < net->n_fast; k++) {
        tgi_net_node *node = &net->nodes[net->fast[k]];
        node->exact = k >= n;
        settle(net, node, 0);
        tgi_reads_renew(net, net->fast[k], &net->reads);
    }
    net->n_used = n < net->n_fast ? n : net->n_fast;
    place_weights(net);
}

int tgi_net_nodes_of(const tgi_net *net, unsigned kinds)
{
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++)
        n += net->nodes[i].variant && (net->nodes[i].variant->kinds & kinds);
    return n;
}

/* Float32 on any device, too: inputs that nobody reads but as such numbers. */
static void widen_inputs(tgi_net *net)
{
    for (int i = 0; i < net->n_in; i++) {
        int as_wide = 0, as_others = net->values[net->in[i]].is_out;
        for (int k = 0; k < net->n_nodes; k++)
            for (int j = 0; j < net->nodes[k].node->n_src; j++)
                if (net->nodes[k].node->src[j] == net->in[i])
                    *(net->nodes[k].node->op->wide_src >> j & 1 ? &as_wide : &as_others) += 1;
        for (int k = 0; k < net->n_nodes; k++)
            for (int e = 0; e < net->nodes[k].node->n_epi; e++)
                as_others += net->nodes[k].node->epi[e].value == net->in[i];
        net->values[net->in[i]].wide = as_wide && !as_others;
    }
}

/* Operand j of a node holds the type that its kernel reads. */
static tg_status check_width(const tgi_net *net, const tgi_net_node *n, int j, tgi_err *err)
{
    const int wants = j < n->ctx.n_src && n->node->op->wide_src >> j & 1;
    for (int s = 0; s < n->operand[j].n_seg; s++)
        if (net->values[n->operand[j].value[s]].wide != wants)
            return tgi_fail(
                err, TG_E_UNSUPPORTED,
                wants ? "%s \"%s\" reads float32 numbers as input %d, and %s makes others there"
                      : "%s \"%s\" gets float32 numbers as input %d, and %s reads others there",
                tgi_node_op_name(n->node), n->node->name, j, net->be->name);
    return TG_OK;
}

static tg_status check_widths(const tgi_net *net, tgi_err *err)
{
    const int narrow = tgi_element_bytes(net->be) < sizeof(float);
    for (int i = 0; narrow && i < net->n_nodes; i++)
        for (int j = 0; j < net->nodes[i].n_operands; j++)
            TGI_TRY(check_width(net, &net->nodes[i], j, err));
    return TG_OK;
}

/* A device has no reference behind its variants. */
static tg_status check_variants(const tgi_net *net, tgi_err *err)
{
    for (int i = 0; net->be->whole_pixels && i < net->n_nodes; i++) {
        const tgi_net_node *n = &net->nodes[i];
        if (n->variant)
            continue;
        return tgi_fail(err, TG_E_UNSUPPORTED, "%s \"%s\" has no kernel for %s%s",
                        tgi_node_op_name(n->node), n->node->name, net->be->name,
                        n->flat ? " and these arrays" : "");
    }
    return TG_OK;
}

/* ---- Open and close ---------------------------------------------------------------------- */

static void find_unpacked(tgi_net *net)
{
    for (int i = 0; i < net->n_nodes && !net->reads_model; i++) {
        const tgi_net_node *n = &net->nodes[i];
        for (int j = 0; j < n->ctx.n_src && !n->packed_bytes; j++)
            net->reads_model |= n->consts[j] != NULL;
    }
}

tg_status tgi_net_unchanged(const tgi_net *net, tgi_err *err)
{
    return net->reads_model ? tgi_graph_unchanged(net->g, err) : TG_OK;
}

static int has_kernel(const tgi_kernel_set *be, const char *op)
{
    for (const tgi_variant *const *v = be->variants; *v; v++)
        if (strcmp((*v)->op, op) == 0)
            return 1;
    return 0;
}

/* Go on with the graph that `split` makes of the one at hand, if it makes one. */
static tg_status split_by(tgi_net *net, const tgi_desc *in,
                          tg_status (*split)(const tgi_graph *g, const tgi_shapes *s,
                                             tgi_graph **out, tgi_err *err),
                          int k, tgi_err *err)
{
    TGI_TRY(split(net->g, &net->shapes, &net->split[k], err));
    if (!net->split[k])
        return TG_OK;
    net->g = net->split[k];
    tgi_shapes_free(&net->shapes);
    return tgi_graph_infer(net->g, in, &net->shapes, err);
}

/* The graph that this set of kernels computes, and shapes of all its values. */
static tg_status infer(tgi_net *net, const tgi_desc *in, unsigned flags, tgi_err *err)
{
    TGI_TRY(tgi_graph_infer(net->g, in, &net->shapes, err));
    if (flags & TGI_NET_REFERENCE)
        return TG_OK;
    TGI_TRY(split_by(net, in, tgi_split_norms_of, 0, err));
    return has_kernel(net->be, "PixelAttention")
               ? TG_OK
               : split_by(net, in, tgi_split_attention_of, 1, err);
}

static tg_status build(tgi_net *net, const tgi_desc *in, unsigned flags, tgi_err *err)
{
    TGI_TRY(infer(net, in, flags, err));
    const tgi_graph *g = net->g;
    net->n_values = g->n_values;
    net->values = tgi_calloc(TGI_TAG_PLAN, (size_t)g->n_values + 1, sizeof *net->values);
    net->nodes = tgi_calloc(TGI_TAG_PLAN, (size_t)g->n_nodes + 1, sizeof *net->nodes);
    net->fast = tgi_calloc(TGI_TAG_PLAN, (size_t)g->n_nodes + 1, sizeof *net->fast);
    if (!net->values || !net->nodes || !net->fast)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the plan's node list");
    net->n_in = g->n_in;
    net->n_out = g->n_out;
    net->rank = net->shapes.desc[g->in[0].value].rank;
    for (int i = 0; i < g->n_in; i++)
        net->in[i] = g->in[i].value;
    for (int i = 0; i < g->n_out; i++)
        net->out[i] = net->held[i] = g->out[i].value;
    lay_out_values(net, flags);
    for (int i = 0; i < g->n_out; i++)
        net->values[g->out[i].value].is_out = 1;
    for (int i = 0; i < g->n_nodes; i++) /* shape arithmetic is done: nothing to execute */
        if (!tgi_node_is_known(&net->shapes, &g->nodes[i]))
            TGI_TRY(fill_node(net, &g->nodes[i], &net->nodes[net->n_nodes++], flags, err));
    widen_inputs(net);
    TGI_TRY(check_ranks(net, err));
    TGI_TRY(choose_kernels(net, flags, err));
    TGI_TRY(check_variants(net, err));
    TGI_TRY(check_widths(net, err));
    find_unpacked(net);
    TGI_TRY(tgi_net_align_blocks(net, err));
    return tgi_reads_make(net, &net->reads, err);
}

tg_status tgi_net_new(const tgi_graph *g, const tgi_kernel_set *be, const tgi_desc *in,
                      unsigned flags, tgi_net **out, tgi_err *err)
{
    tgi_net *net = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *net);
    if (!net)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the network's layout");
    net->g = g;
    net->be = be;
    const tg_status st = build(net, in, flags, err);
    if (st != TG_OK) {
        tgi_net_free(&net);
        return st;
    }
    *out = net;
    return TG_OK;
}

void tgi_net_free(tgi_net **net)
{
    if (!net || !*net)
        return;
    tgi_shapes_free(&(*net)->shapes);
    tgi_free((*net)->values);
    tgi_free((*net)->nodes);
    tgi_free((*net)->fast);
    tgi_reads_free(&(*net)->reads);
    for (int k = 1; k >= 0; k--) /* the second borrows from the first */
        tgi_split_free(&(*net)->split[k]);
    tgi_free(*net);
    *net = NULL;
}

typedef struct packing {
    const tgi_net *net;
    char *dst;
} packing;

static void pack_node(void *arg, int64_t job, int thread)
{
    const packing *p = arg;
    const tgi_net_node *n = &p->net->nodes[job];
    (void)thread;
    if (n->packed_bytes)
        n->variant->pack(&n->ctx, &n->hint, p->dst + n->packed_offset);
}

void tgi_net_pack(const tgi_net *net, void *dst, tgi_threads *pool)
{
    packing p = {net, dst};
    tgi_parallel(pool, net->n_nodes, pack_node, &p);
}

tg_status tgi_net_load(const tgi_net *net, void *dst, tgi_threads *pool, tgi_err *err)
{
    tgi_net_pack(net, dst, pool);
    return tgi_graph_unchanged(net->g, err);
}

void tgi_net_need(const tgi_net_node *n, const tgi_box *dst, int j, tgi_box *need)
{
    *need = *dst;
    if (n->flat)
        *need = tgi_box_full(&n->net->values[n->operand[j].value[0]].ext);
    if (j >= n->ctx.n_src || n->flat)
        return;
    tgi_variant_need(n->variant, n->node->op, &n->ctx, 0, dst, j, need);
}

char *tgi_net_text(const tgi_net *net)
{
    const size_t cap = 160 * (size_t)(net->n_nodes + net->n_out) + 64;
    char *text = tgi_malloc(TGI_TAG_PLAN, cap);
    if (!text)
        return NULL;
    size_t at = (size_t)snprintf(text, cap, "isa=%s", net->be->name);
    for (int i = 0; i < net->n_nodes && at < cap; i++) {
        const tgi_net_node *n = &net->nodes[i];
        at += (size_t)snprintf(text + at, cap - at, ";%s:%s", n->node->op->name,
                               n->variant ? n->variant->name
                               : n->flat  ? "flat"
                                          : "ref");
    }
    for (int o = 0; o < net->n_out && at < cap; o++)
        if (net->pick[o] != TGI_PICK_NONE)
            at += (size_t)snprintf(text + at, cap - at, ";out%d:pick%d", o, (int)net->pick[o]);
    return text;
}
