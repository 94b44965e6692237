/* graph_print.c - the graph as text, a node a line: `%4 [1,16,512,512] = Conv(%3, w) + Relu`.
 */
#include "engine/graph/graph_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Growing text; `failed` sticks. */
typedef struct text {
    char *s;
    size_t n, cap;
    int failed;
} text;

static void TGI_PRINTF(2, 3) put(text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || t->failed)
        return;
    if (t->n + (size_t)n + 1 > t->cap) {
        const size_t cap = 2 * (t->n + (size_t)n) + 256;
        char *s = tgi_realloc_n(TGI_TAG_GRAPH, t->s, cap, 1);
        if (!s) {
            t->failed = 1;
            return;
        }
        t->s = s;
        t->cap = cap;
    }
    va_start(ap, fmt);
    vsnprintf(t->s + t->n, t->cap - t->n, fmt, ap);
    va_end(ap);
    t->n += (size_t)n;
}

static void put_shape(text *t, const tgi_shapes *s, int v)
{
    char buf[128];
    if (s && s->desc[v].dtype != TG_DTYPE_NONE)
        put(t, " %s", tgi_desc_text(&s->desc[v], buf, sizeof buf));
}

static void put_value(text *t, const tgi_graph *g, int v)
{
    if (v < 0)
        put(t, "-");
    else if (g->values[v].is_const)
        put(t, "'%s'", g->values[v].name);
    else
        put(t, "%%%d", v);
}

static void put_node(text *t, const tgi_graph *g, const tgi_shapes *s, const tgi_node *n)
{
    for (int i = 0; i < n->n_dst; i++) {
        put(t, "%s%%%d", i ? ", " : "", n->dst[i]);
        put_shape(t, s, n->dst[i]);
    }
    put(t, " = %s(", n->op ? n->op->name : "gone");
    for (int i = 0; i < n->n_src; i++) {
        put(t, "%s", i ? ", " : "");
        put_value(t, g, n->src[i]);
    }
    put(t, ")");
    for (int i = 0; i < n->n_epi; i++) {
        put(t, " + %s", n->epi[i].from);
        if (n->epi[i].value >= 0)
            put(t, "(%%%d)", n->epi[i].value);
        else if (n->epi[i].step.vec)
            put(t, "(per channel)");
    }
    put(t, "  \"%s\"\n", n->name);
}

static void put_port(text *t, const tgi_shapes *s, const char *what, const tgi_port *p)
{
    put(t, "%s \"%s\" = %%%d", what, p->name, p->value);
    put_shape(t, s, p->value);
    put(t, " file [");
    for (int i = 0; i < p->file_rank; i++)
        put(t, "%s%lld", i ? "," : "", (long long)p->file_dim[i]);
    put(t, "]\n");
}

char *tgi_graph_print(const tgi_graph *g, const tgi_shapes *s)
{
    text t = {0};
    for (int i = 0; i < g->n_in; i++)
        put_port(&t, s, "in ", &g->in[i]);
    for (int i = 0; i < g->n_nodes; i++)
        put_node(&t, g, s, &g->nodes[i]);
    for (int i = 0; i < g->n_out; i++)
        put_port(&t, s, "out", &g->out[i]);
    for (int i = 0; i < g->n_rewrites; i++)
        put(&t, "# %s\n", g->rewrites[i]);
    if (g->fixed_size)
        put(&t, "# fixed size: %s\n", g->fixed_why ? g->fixed_why : "?");
    if (t.failed) {
        tgi_free(t.s);
        return NULL;
    }
    return t.s ? t.s : tgi_strdup(TGI_TAG_GRAPH, "");
}
