/* finish.c - from what a file says to what can be executed: the order of the phases, and the
 * check of the invariants in graph.h at their end. */
#include "engine/graph/line_ops.h"
#include "engine/graph/samples.h"

#include <string.h>

/* How many operands of a node may be parameters: the factors of a Resize are none, nor is what
 * a norm measured. */
static int parameter_operands(const tgi_node *n)
{
    return tgi_node_is(n, "Resize") ? 0 : tgi_node_is(n, "BatchNormalization") ? 3 : n->n_src;
}

/* Elements of the float constants that live nodes read. */
static tg_status count_params(tgi_graph *g, tgi_err *err)
{
    unsigned char *seen = tgi_calloc(TGI_TAG_GRAPH, (size_t)g->n_values + 1, 1);
    if (!seen)
        return tgi_fail(err, TG_E_NOMEM, "no memory to count parameters");
    g->n_params = 0;
    for (int i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < parameter_operands(&g->nodes[i]); k++) {
            const int v = g->nodes[i].src[k];
            int64_t count = 0;
            if (v < 0 || !g->values[v].is_const || seen[v]++ ||
                !tgi_dtype_is_float(g->values[v].cst.desc.dtype))
                continue;
            tgi_desc_count(&g->values[v].cst.desc, &count);
            g->n_params += count;
        }
    tgi_free(seen);
    return TG_OK;
}

/* The first operand or result of the node that is flat, or NULL. */
static const tgi_desc *flat_value(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    for (int i = 0; i < n->n_src + n->n_dst; i++) {
        const int v = i < n->n_src ? n->src[i] : n->dst[i - n->n_src];
        if (v >= 0 && !g->values[v].is_const && !s->known[v].data &&
            !tgi_is_image(g, &s->desc[v]))
            return &s->desc[v];
    }
    return NULL;
}

static tg_status check_node(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n,
                            tgi_err *err)
{
    int n_act = 0;
    char text[128];
    if (tgi_node_is_known(s, n))
        return TG_OK;
    if (tgi_node_is_flat(g, s, n)) {
        const tgi_desc *d = flat_value(g, s, n);
        if (n->op->eval)
            return TG_OK;
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s \"%s\" works on %s; it is done here for [1,C,%sH,W] float32 only",
                        n->op->name, n->name,
                        d ? tgi_desc_text(d, text, sizeof text) : "pixels",
                        g->spatial == 3 ? "D," : "");
    }
    for (int i = 0; i < n->n_src; i++)
        n_act += n->src[i] >= 0 && !g->values[n->src[i]].is_const;
    if (n_act == 0)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s \"%s\" computes a constant that is not "
                        "folded here; an exporter can fold it",
                        n->op->name, n->name);
    return TG_OK;
}

/* More channels than this no view counts, and none has been seen: a damaged or malicious file.
 */
#define MAX_CHANNELS ((int64_t)1 << 24)

static tg_status check_channels(const tgi_graph *g, const tgi_shapes *s, const tgi_node *n,
                                tgi_err *err)
{
    char text[128];
    for (int i = 0; i < n->n_dst; i++) {
        const tgi_desc *d = &s->desc[n->dst[i]];
        if (tgi_is_image(g, d) && d->dim[1] > MAX_CHANNELS)
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "%s \"%s\" yields %s: more channels than can be computed",
                            n->op->name, n->name, tgi_desc_text(d, text, sizeof text));
    }
    return TG_OK;
}

static tg_status check_invariants(const tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    tg_status st = TG_OK;
    for (int i = 0; i < g->n_nodes && st == TG_OK; i++)
        if ((st = check_node(g, &s, &g->nodes[i], err)) == TG_OK)
            st = check_channels(g, &s, &g->nodes[i], err);
    for (int i = 0; i < g->n_out && st == TG_OK; i++) {
        const int v = g->out[i].value;
        if (g->values[v].is_const || s.known[v].data)
            st = tgi_fail(err, TG_E_UNSUPPORTED, "output \"%s\" does not depend on pixels",
                          g->out[i].name);
    }
    tgi_shapes_free(&s);
    return st;
}

/* What each node is, by its attributes and shapes. */
static tg_status classify(tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    TGI_TRY(tgi_infer_base(g, &s, err));
    for (int i = 0; i < g->n_nodes; i++) {
        tgi_desc src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
        const tgi_constant *consts[TGI_OP_MAX_SRC];
        tgi_op_ctx ctx;
        tgi_node_ctx(g, &s, &g->nodes[i], src, dst, consts, &ctx);
        g->nodes[i].op_class = tgi_op_class(g->nodes[i].op, &ctx);
    }
    tgi_shapes_free(&s);
    return TG_OK;
}

/* ArgMax over the channels of output 0, whatever axis of the file they are: an exporter's own
 * ArgMax would be the same node. */
static tg_status label_output(tgi_graph *g, tgi_err *err)
{
    char text[96];
    tgi_shapes s;
    tgi_port *p = &g->out[0];
    tgi_node *n;
    int labels;
    TGI_TRY(tgi_infer_base(g, &s, err));
    const tgi_desc d = s.desc[p->value];
    tgi_shapes_free(&s);
    if (!tgi_is_image(g, &d) || d.dim[1] < 2)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "labels are numbers of channels, and the output \"%s\" is %s", p->name,
                        tgi_desc_text(&d, text, sizeof text));
    TGI_TRY(tgi_graph_add_value(g, "labels", &labels, err));
    TGI_TRY(tgi_graph_add_node(g, "ArgMax", "labels", 1, &p->value, 1, &labels, &n, err));
    tgi_attr_set_int(n, "axis", 1);
    p->value = labels;
    if (p->perm[1] >= 0)
        p->file_dim[p->perm[1]] = 1;
    return tgi_graph_note(g, err, "the output is the number of its largest channel");
}

/* What has one row now takes the forms of images. */
static tg_status lines_as_images(tgi_graph *g, unsigned flags, tgi_err *err)
{
    TGI_TRY(tgi_rewrite_lines(g, err));
    TGI_TRY(tgi_rewrite_canonical(g, flags, err));
    return tgi_rewrite_edges(g, err);
}

/* The model's operators, before anything is rewritten: for who lists them. Shape arithmetic is
 * none of them. */
static tg_status note_plain(tgi_graph *g, tgi_err *err)
{
    tgi_shapes s;
    g->plain = tgi_graph_own(g, (size_t)(g->n_nodes + 1) * sizeof(void *), err);
    if (!g->plain)
        return TG_E_NOMEM;
    TGI_TRY(tgi_infer_base(g, &s, err));
    for (int i = 0; i < g->n_nodes; i++)
        if (!tgi_node_is_known(&s, &g->nodes[i]))
            g->plain[g->n_plain++] = g->nodes[i].op;
    tgi_shapes_free(&s);
    return TG_OK;
}

static tg_status run_phases(tgi_graph *g, unsigned flags, tgi_err *err)
{
    TGI_TRY(tgi_graph_clean(g, err));
    TGI_TRY(count_params(g, err));
    TGI_TRY(tgi_fold_constants(g, err));
    TGI_TRY(tgi_graph_clean(g, err));
    tgi_priv(g)->lines = tgi_has_lines_only(g);
    TGI_TRY(tgi_size_find_base(g, err));
    TGI_TRY(note_plain(g, err));
    TGI_TRY(tgi_note_samples(g, err));
    TGI_TRY(tgi_rewrite_tokens(g, flags, err));
    TGI_TRY(tgi_rewrite_canonical(g, flags, err));
    TGI_TRY(tgi_describe_outputs(g, err));
    TGI_TRY(tgi_rewrite_edges(g, err));
    if (tgi_priv(g)->base_in[0].rank <= TGI_LINE_RANK)
        TGI_TRY(lines_as_images(g, flags, err));
    TGI_TRY(tgi_size_find_rank(g, err));
    if (flags & TGI_GRAPH_LABELS)
        TGI_TRY(label_output(g, err));
    TGI_TRY(classify(g, err));
    TGI_TRY(tgi_size_analyse(g, err));
    if (!(flags & TGI_GRAPH_NO_FUSE))
        TGI_TRY(tgi_rewrite_fuse(g, err));
    return check_invariants(g, err);
}

tg_status tgi_graph_finish(tgi_graph *g, unsigned flags, tgi_err *err)
{
    if (tgi_priv(g)->finished)
        return tgi_fail(err, TG_E_ARG, "the graph is finished already");
    if (g->n_in == 0 || g->n_out == 0)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a graph without %s",
                        g->n_in ? "outputs" : "inputs");
    TGI_TRY(run_phases(g, flags, err));
    tgi_priv(g)->finished = 1;
    return TG_OK;
}
