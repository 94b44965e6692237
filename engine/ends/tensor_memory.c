/* tensor_memory.c - arrays in the caller's memory: which input or output each is of,
 * how its elements lie, and what is refused before pixels move. */
#include "engine/ends/tensor_memory.h"

#include "engine/settings/lent.h"

#include <stdint.h>
#include <string.h>

/* ---- Names ------------------------------------------------------------------------------- */

static const tg_array *lent_to(const tg_opts *o, tgi_lent_way way, const char *name, int i)
{
    const tgi_lent *l;
    for (int k = 0; (l = tgi_opts_lent(o, way, k)); k++)
        if (l->name ? strcmp(l->name, name) == 0 : i == 0)
            return l->array;
    return NULL;
}

static tg_status check_way(const tg_opts *o, tgi_lent_way way, const tgi_port *ports, int n,
                           tgi_err *err)
{
    const char *what = way == TGI_LENT_SOURCE ? "input" : "output";
    const tgi_lent *l;
    unsigned char taken[TGI_MAX_PORTS] = {0};
    for (int k = 0; (l = tgi_opts_lent(o, way, k)); k++) {
        int i = 0;
        while (l->name && i < n && strcmp(l->name, ports[i].name) != 0)
            i++;
        if (i == n)
            return tgi_fail(err, TG_E_ARG, "the network has no %s \"%s\"; its first is \"%s\"",
                            what, l->name, n ? ports[0].name : "");
        if (taken[i]++) /* as the first, and by its name */
            return tgi_fail(err, TG_E_ARG, "the network's %s \"%s\" has two arrays", what,
                            ports[i].name);
    }
    return TG_OK;
}

tg_status tgi_memory_check_names(const tg_opts *o, const tgi_graph *g, tgi_err *err)
{
    TGI_TRY(check_way(o, TGI_LENT_SOURCE, g->in, g->n_in, err));
    return check_way(o, TGI_LENT_SINK, g->out, g->n_out, err);
}

int tgi_memory_has_sinks(const tg_opts *o)
{
    return tgi_opts_lent(o, TGI_LENT_SINK, 0) != NULL;
}

const tg_array *tgi_memory_source(const tgi_tensor_set *set, int i)
{
    return lent_to(set->opts, TGI_LENT_SOURCE, set->graph->in[i].name, i);
}

const tg_array *tgi_memory_sink(const tgi_tensors *all, int o)
{
    return lent_to(all->set.opts, TGI_LENT_SINK, all->set.graph->out[o].name, o);
}

/* ---- Where elements lie ------------------------------------------------------------------ */

/* Elements from one to the next along each axis. */
static void steps_of(const tg_array *a, int64_t *step)
{
    const int64_t size = (int64_t)tgi_dtype_size(a->dtype);
    int64_t dense = 1, any = 0;
    for (int i = 0; i < a->rank; i++)
        any |= a->stride[i];
    for (int i = a->rank - 1; i >= 0; dense *= a->shape[i--])
        step[i] = any ? a->stride[i] / size : dense;
}

/* First and last byte of it. */
static void extent_of(const tg_array *a, uintptr_t *first, uintptr_t *last)
{
    int64_t step[TG_ARRAY_RANK], far = 1;
    steps_of(a, step);
    for (int i = 0; i < a->rank; i++)
        far += (a->shape[i] - 1) * step[i];
    *first = (uintptr_t)a->data;
    *last = *first + (uintptr_t)far * tgi_dtype_size(a->dtype) - 1;
}

/* No two elements of a sink in one place: axes by their steps, each steps over what the smaller
 * ones reach. (Strange ones that interleave are refused too.) */
static int is_apart(const tg_array *a)
{
    int64_t step[TG_ARRAY_RANK], reach = 1;
    unsigned done = 0;
    steps_of(a, step);
    for (int k = 0; k < a->rank; k++) {
        int least = -1;
        for (int i = 0; i < a->rank; i++)
            if (!(done >> i & 1) && (least < 0 || step[i] < step[least]))
                least = i;
        done |= 1u << least;
        if (a->shape[least] == 1)
            continue;
        if (step[least] < reach)
            return 0;
        reach = step[least] * (a->shape[least] - 1) + reach;
    }
    return 1;
}

/* ---- At the plan, and at the run --------------------------------------------------------- */

/* The array as it is now; which one it was, where it is none. */
static tg_status look(const tg_array *array, const char *what, const char *port, tg_array *now,
                      tgi_desc *shape, tgi_err *err)
{
    const tg_status st = tgi_lent_look(array, now, shape, err);
    if (st != TG_OK)
        tgi_err_prefix(err, "the %s of \"%.100s\"", what, port);
    return st;
}

tg_status tgi_memory_open_source(const tg_array *array, const char *port, tgi_tensor_in *in,
                                 tgi_err *err)
{
    TGI_TRY(look(array, "source", port, &in->now, &in->desc, err));
    in->lent = array;
    in->port = port;
    in->path = "the source";
    steps_of(&in->now, in->step);
    return TG_OK;
}

static tg_status begin_source(tgi_tensor_in *in, const char *name, tgi_err *err)
{
    const tg_array *was = &in->now; /* and stays, where this one is refused */
    tg_array now;
    tgi_desc shape;
    TGI_TRY(look(in->lent, "source", name, &now, &shape, err));
    if (now.dtype != was->dtype || now.rank != was->rank ||
        memcmp(now.shape, was->shape, (size_t)was->rank * sizeof was->shape[0]) != 0 ||
        memcmp(now.stride, was->stride, (size_t)was->rank * sizeof was->stride[0]) != 0)
        return tgi_fail(err, TG_E_ARG,
                        "the source of \"%s\" has another type, shape or strides than when it "
                        "was planned: open another job",
                        name);
    in->now = now;
    if (!now.data && !now.move)
        return tgi_fail(err, TG_E_ARG, "the source of \"%s\" has no data: set `data` or `move`",
                        name);
    return TG_OK;
}

static tg_status begin_sink(tgi_tensor_out *t, const char *name, tgi_err *err)
{
    char have[96], want[96];
    tgi_desc shape;
    TGI_TRY(look(t->lent, "sink", name, &t->now, &shape, err));
    t->port = name;
    if (shape.dtype != t->file.dtype || !tgi_desc_same_shape(&shape, &t->file))
        return tgi_fail(err, TG_E_ARG,
                        "the sink of \"%s\" is %s, the output %s (tg_job_output)", name,
                        tgi_desc_text(&shape, have, sizeof have),
                        tgi_desc_text(&t->file, want, sizeof want));
    if (!t->now.data && !t->now.move)
        return tgi_fail(err, TG_E_ARG, "the sink of \"%s\" has no data: set `data` or `move`",
                        name);
    if (!is_apart(&t->now))
        return tgi_fail(
            err, TG_E_ARG,
            "the sink of \"%s\" has elements in one place: its strides lead there twice", name);
    return TG_OK;
}

/* The strides of a sink along the graph's axes. */
static void lay_out(tgi_tensors *all, int o)
{
    tgi_tensor_out *t = &all->out[o];
    const tgi_port *p = &all->set.graph->out[o];
    const tgi_net *net = all->stage->net;
    int64_t step[TG_ARRAY_RANK];
    steps_of(&t->now, step);
    for (int a = 0; a < net->shapes.desc[net->out[o]].rank; a++)
        t->stride[a] = p->perm[a] >= 0 ? step[p->perm[a]] : 0;
    t->sample_stride = net->shapes.desc[net->out[o]].rank ? t->stride[0] : 0;
}

/* Rows of a result are written while later rows of the input are still to be read. */
static tg_status check_apart(const tgi_tensors *t, int o, tgi_err *err)
{
    const tgi_graph *g = t->set.graph;
    uintptr_t a, b, c, d;
    if (!t->out[o].now.data)
        return TG_OK;
    extent_of(&t->out[o].now, &a, &b);
    for (int i = 0; i < g->n_in + o; i++) {
        const int in = i < g->n_in;
        const tg_array *other = in ? &t->in[i].now : &t->out[i - g->n_in].now;
        if (!(in ? t->in[i].lent : t->out[i - g->n_in].lent) || !other->data)
            continue;
        extent_of(other, &c, &d);
        if (a <= d && c <= b)
            return tgi_fail(
                err, TG_E_ARG,
                "the sink of \"%s\" lies in the memory of a %s, that of \"%s\": give each "
                "array memory of its own",
                g->out[o].name, in ? "source" : "second sink",
                in ? g->in[i].name : g->out[i - g->n_in].name);
    }
    return TG_OK;
}

tg_status tgi_memory_begin_sources(tgi_tensors *t, tgi_err *err)
{
    const tgi_graph *g = t->set.graph;
    for (int i = 0; i < g->n_in; i++)
        if (t->in[i].lent)
            TGI_TRY(begin_source(&t->in[i], g->in[i].name, err));
    return TG_OK;
}

tg_status tgi_memory_begin(tgi_tensors *t, tgi_err *err)
{
    const tgi_graph *g = t->set.graph;
    TGI_TRY(tgi_memory_begin_sources(t, err));
    for (int o = 0; o < g->n_out; o++) {
        t->out[o].lent = tgi_memory_sink(t, o);
        if (!t->out[o].lent)
            continue;
        TGI_TRY(begin_sink(&t->out[o], g->out[o].name, err));
        lay_out(t, o);
        TGI_TRY(check_apart(t, o, err));
    }
    return TG_OK;
}
