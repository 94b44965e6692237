/* tensor_in.c - arrays as inputs: which file or source each input has, and whether it is as the
 * network declares it. */
#include "engine/base/mem.h"
#include "engine/ends/tensor_memory.h"
#include "engine/ends/tensors.h"

#include <string.h>

static const char *file_of_port(const tgi_tensor_set *set, int i)
{
    const char *file;
    char name[256];
    for (int k = 0; tgi_opts_tensor(set->opts, k, name, sizeof name, &file); k++)
        if (strcmp(name, set->graph->in[i].name) == 0)
            return file;
    return i == 0 ? set->input : NULL;
}

static tg_status open_file(const char *path, tgi_tensor_in *in, tgi_err *err)
{
    TGI_TRY(tgi_npy_open(path, &in->npy, err));
    in->path = path;
    in->desc = in->npy.head.desc;
    tgi_npy_steps(&in->npy.head, in->step);
    return TG_OK;
}

static tg_status open_input(tgi_tensors *t, int i, tgi_err *err)
{
    const tgi_graph *g = t->set.graph;
    const tgi_port *p = &g->in[i];
    const char *path = file_of_port(&t->set, i);
    const tg_array *lent = tgi_memory_source(&t->set, i);
    char text[96];
    if (lent)
        TGI_TRY(tgi_memory_open_source(lent, p->name, &t->in[i], err));
    else
        TGI_TRY(open_file(path, &t->in[i], err));
    path = t->in[i].path;
    const tgi_desc *f = &t->in[i].desc;
    if (!tgi_tensor_widen(p, &t->in[i].desc, t->in[i].step))
        return tgi_tensor_wrong_rank(p, path, f, err);
    tgi_desc *d = &t->in_desc[i], want_desc[TGI_MAX_PORTS];
    tgi_graph_input_descs(g, g->base, want_desc);
    *d = (tgi_desc){TG_DTYPE_F32, want_desc[i].rank, {0}};
    for (int a = 0; a < d->rank; a++) {
        d->dim[a] = p->perm[a] >= 0 ? f->dim[p->perm[a]] : 1;
        const int64_t want = p->perm[a] >= 0 ? p->file_dim[p->perm[a]] : -1;
        if (a > 0 && want >= 0 && d->dim[a] != want)
            return tgi_fail(err, TG_E_ARG,
                            "%s holds %s, the network's input \"%s\" wants %lld on axis %d",
                            path, tgi_desc_text(f, text, sizeof text), p->name, (long long)want,
                            p->perm[a]);
    }
    if (i > 0 && d->dim[0] != t->batch)
        return tgi_fail(err, TG_E_ARG, "%s holds %lld samples, the first input %lld", path,
                        (long long)d->dim[0], (long long)t->batch);
    t->batch = d->dim[0];
    d->dim[0] = 1;
    return TG_OK;
}

/* Every name given is an input of the network. */
static tg_status check_names(const tgi_tensor_set *set, tgi_err *err)
{
    const tgi_graph *g = set->graph;
    const char *file;
    char name[256];
    for (int k = 0; tgi_opts_tensor(set->opts, k, name, sizeof name, &file); k++) {
        int i = 0;
        while (i < g->n_in && strcmp(name, g->in[i].name) != 0)
            i++;
        if (i == g->n_in)
            return tgi_fail(err, TG_E_ARG,
                            "--input %s=%s: the network has no such input; its first is \"%s\"",
                            name, file, g->in[0].name);
    }
    return TG_OK;
}

static tg_status check_one(const tgi_tensor_set *set, int i, tgi_err *err)
{
    const tgi_port *p = &set->graph->in[i];
    const char *path = file_of_port(set, i);
    const int lent = tgi_memory_source(set, i) != NULL;
    if (path && lent)
        return tgi_fail(err, TG_E_ARG, "the network's input \"%s\" has a source and a file: %s",
                        p->name, path);
    if (!path && !lent)
        return tgi_fail(err, TG_E_ARG,
                        "the network's input \"%s\" has no array: --input %s=FILE.npy", p->name,
                        p->name);
    return TG_OK;
}

tg_status tgi_tensors_check(const tg_opts *opts, const tgi_graph *graph, const char *input,
                            tgi_err *err)
{
    const tgi_tensor_set set = {.graph = graph, .opts = opts, .input = input};
    TGI_TRY(check_names(&set, err));
    for (int i = 0; i < graph->n_in; i++)
        TGI_TRY(check_one(&set, i, err));
    return TG_OK;
}

static tg_status open_inputs(tgi_tensors *t, tgi_err *err)
{
    for (int i = 0; i < t->set.graph->n_in; i++)
        TGI_TRY(open_input(t, i, err));
    return TG_OK;
}

tg_status tgi_tensors_open(const tgi_tensor_set *set, tgi_tensors **out, tgi_err *err)
{
    if (!set->map) /* a preview of arrays has a name for a picture, and another refusal */
        TGI_TRY(tgi_check_output_name(set->output, 1, err));
    tgi_tensors *t = tgi_calloc(TGI_TAG_IO, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the arrays");
    t->set = *set;
    t->names = TGI_NAMES_CLOSED;
    for (int i = 0; i < TGI_MAX_PORTS; i++) {
        t->in[i].npy.file.fd = -1;
        t->out[i].npy.part = TGI_PART_CLOSED;
    }
    if (set->map) {
        t->in_desc[0] = *set->image;
        t->batch = set->map->n_items;
    }
    const tg_status st = set->map ? TG_OK : open_inputs(t, err);
    if (st != TG_OK)
        tgi_tensors_close(&t);
    *out = t;
    return st;
}

void tgi_tensors_close(tgi_tensors **tp)
{
    if (!tp || !*tp)
        return;
    tgi_tensors *t = *tp;
    tgi_tensors_drop(t);
    for (int i = 0; i < TGI_MAX_PORTS; i++)
        tgi_npy_close(&t->in[i].npy);
    tgi_free(t);
    *tp = NULL;
}
