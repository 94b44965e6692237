/* job_state.c - see job_state.h. */
#include "engine/job/job_state.h"

#include "engine/base/mem.h"
#include "engine/ends/carried.h"
#include "engine/job/pass.h"
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

/* ---- Names ------------------------------------------------------------------------------- */

/* The next "A=B" of a list; *text moves behind it. 0: it is none. */
static int next_pair(const char **text, char *a, size_t cap_a, char *b, size_t cap_b)
{
    const char *from = *text, *equal = strchr(from, '=');
    const size_t n = strcspn(from, ",");
    if (!equal || (size_t)(equal - from) >= n)
        return 0;
    const size_t na = (size_t)(equal - from), nb = n - na - 1;
    if (!na || !nb || na >= cap_a || nb >= cap_b)
        return 0;
    memcpy(a, from, na);
    memcpy(b, equal + 1, nb);
    a[na] = b[nb] = 0;
    *text = from + n + (from[n] == ',');
    return 1;
}

tg_status tgi_job_state_pick(const tg_opts *o, tgi_settings *s, tgi_err *err)
{
    const char *text = tgi_opts_str(o, TGI_OPT_STATE);
    s->state_init = tgi_opts_str(o, TGI_OPT_STATE_INIT);
    if (!text)
        text = s->descriptor.state;
    for (const char *at = text; *at; s->n_ties++) {
        tgi_tie *t = &s->tie[s->n_ties];
        if (s->n_ties == TGI_MAX_PORTS - 1)
            return tgi_fail(err, TG_E_ARG, "--state: more than %d", TGI_MAX_PORTS - 1);
        if (!next_pair(&at, t->out, sizeof t->out, t->in, sizeof t->in))
            return tgi_fail(err, TG_E_ARG,
                            "--state %s: names of an output and of an input of the network, as "
                            "OUT=IN, and more of them behind commas",
                            text);
    }
    if (s->state_init && !s->n_ties)
        return tgi_fail(err, TG_E_ARG, "--state-init: nothing is carried without --state");
    return TG_OK;
}

/* ---- Bind -------------------------------------------------------------------------------- */

void tgi_job_state_shapes(const tg_job *job, tgi_desc in[TGI_MAX_PORTS])
{
    int64_t ext[3] = {1, 1, 1};
    const int rank = job->in_desc.rank;
    for (int a = 2; a < rank; a++)
        ext[a - rank + 3] = job->in_desc.dim[a];
    if (job->graph->n_in > 1)
        tgi_graph_input_descs(job->graph, ext, in);
    in[0] = job->in_desc;
}

/* Axes of the image along which frames do not follow each other, that are looped over all the same. */
static int loops_elsewhere(const tgi_mapping *m)
{
    int many = 0;
    for (int i = 0; i < m->n_loop; i++)
        many += m->loop[i].size > 1;
    return many > 1 || m->loops_samples;
}

tg_status tgi_job_state_bind(tg_job *job, const tgi_shapes *shapes, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    const tgi_mapping *m = &job->map;
    job->carried_bytes = tgi_carried_bytes(g, shapes);
    if (!job->set.n_ties)
        return TG_OK;
    if (tgi_mapping_boxed(m))
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "--state: the network works in boxes, each of which would need a state of its own");
    if (loops_elsewhere(m))
        return tgi_fail(err, TG_E_ARG,
                        "--state: the network takes one plane at a time, and they are more "
                        "than frames (axes "
                        "%s%s): choose with --planes%s",
                        job->info->axes, m->loops_samples ? ", each colour alone" : "",
                        m->loops_samples ? ", or let it take luma (--on luma, into a film)"
                                         : "");
    for (int i = 0; i < g->n_in; i++)
        if (tgi_carried_is(g, i) && !tgi_is_image(g, &shapes->desc[g->in[i].value]))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "--state: \"%s\" is no image: one that counts pixels is carried",
                            g->in[i].name);
    return TG_OK;
}

/* ---- Before the first frame --------------------------------------------------------------- */

/* The file's shape is the port's, as the model's file has it. */
static tg_status check_file(const tgi_graph *g, const tgi_net *net, int port, const char *path,
                            const tgi_desc *has, tgi_err *err)
{
    char a[96], b[96];
    const tgi_port *p = &g->in[port];
    const tgi_desc *want = &net->shapes.desc[net->in[port]];
    for (int k = 0; k < want->rank; k++)
        if (p->perm[k] != k)
            return tgi_fail(
                err, TG_E_UNSUPPORTED,
                "--state-init %s: the network has axes in another order; zeros alone are taken",
                path);
    if (has->dtype == TG_DTYPE_F32 && tgi_desc_same_shape(has, want))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "--state-init %s: the network takes %s there, the file has %s", path,
                    tgi_desc_text(want, a, sizeof a), tgi_desc_text(has, b, sizeof b));
}

static tg_status fill(const tg_job *job, const tgi_carried *c, const char *name,
                      const char *path, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    tgi_npy_in file = {.file.fd = -1};
    int k = 0;
    while (k < c->n && strcmp(g->in[c->value[k].in].name, name) != 0)
        k++;
    if (k == c->n)
        return tgi_fail(err, TG_E_ARG, "--state-init: \"%s\" is no input that --state names",
                        name);
    TGI_TRY(tgi_npy_open(path, &file, err));
    tg_status st = check_file(g, c->net, c->value[k].in, path, &file.head.desc, err);
    size_t n = sizeof(float);
    for (int a = 0; a < file.head.desc.rank; a++)
        n *= (size_t)file.head.desc.dim[a];
    if (st == TG_OK)
        st = tgi_rfile_read(&file.file, file.head.data_off, c->value[k].now, n, err);
    tgi_npy_close(&file);
    return st;
}

tg_status tgi_job_state_begin(tgi_pass *p, tgi_err *err)
{
    const tg_job *job = p->job;
    char name[128], path[3072];
    if (!job->set.n_ties)
        return TG_OK;
    tgi_carried_open(&p->carried, job->graph, job->plan.net, p->carried_memory);
    for (const char *at = job->set.state_init; at && *at;) {
        if (!next_pair(&at, name, sizeof name, path, sizeof path))
            return tgi_fail(
                err, TG_E_ARG,
                "--state-init %s: an input of the network and a file, as IN=FILE.npy, and more "
                "of them behind commas",
                job->set.state_init);
        TGI_TRY(fill(job, &p->carried, name, path, err));
    }
    return TG_OK;
}
