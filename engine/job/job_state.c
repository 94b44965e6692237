/* job_state.c - see job_state.h. */
#include "engine/job/job_state.h"

#include "engine/base/mem.h"
#include "engine/ends/carried.h"
#include "engine/job/pass.h"
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

static const char not_files[] =
    "%s %s: an input of the network and a file, as IN=FILE.npy, and more of them behind commas";

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

/* Inputs that --constant names. */
static tg_status pick_constants(tgi_settings *s, tgi_err *err)
{
    char path[3072];
    for (const char *at = s->constant; at && *at; s->n_ties++) {
        tgi_tie *t = &s->tie[s->n_ties];
        if (s->n_ties == TGI_MAX_PORTS - 1)
            return tgi_fail(err, TG_E_ARG, "--constant: more than %d", TGI_MAX_PORTS - 1);
        if (!next_pair(&at, t->in, sizeof t->in, path, sizeof path))
            return tgi_fail(err, TG_E_ARG, not_files, "--constant", s->constant);
        t->out[0] = 0;
    }
    return TG_OK;
}

int tgi_job_hands_on(const tg_job *job)
{
    return job->set.n_ties > 0;
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
    s->constant = tgi_opts_str(o, TGI_OPT_CONSTANT);
    if (s->state_init && !s->n_ties)
        return tgi_fail(err, TG_E_ARG, "--state-init: nothing is carried without --state");
    return pick_constants(s, err);
}

/* ---- Files ------------------------------------------------------------------------------- */

/* Which input a file is for, and what it has to be. */
typedef struct target {
    const char *option;
    int port;
    tgi_desc want;
} target;

/* An array of other axes of one entry in front is the same. */
static int is_wanted(const tgi_desc *has, const tgi_desc *want)
{
    int more = has->rank - want->rank;
    if (has->dtype != TG_DTYPE_F32 || more < -1)
        return 0;
    for (int a = 0; a < has->rank; a++) {
        const int64_t d = a < more ? 1 : want->dim[a - more];
        if (has->dim[a] != d)
            return 0;
    }
    return more >= 0 || want->dim[0] == 1;
}

static tg_status check_shape(const target *t, const char *path, const tgi_desc *has,
                             tgi_err *err)
{
    char a[96], b[96];
    if (is_wanted(has, &t->want))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG, "%s %s: the network takes %s there, the file has %s",
                    t->option, path, tgi_desc_text(&t->want, a, sizeof a),
                    tgi_desc_text(has, b, sizeof b));
}

/* The input that a name of a list stands for: its port; 0: channels behind the image's. */
static tg_status target_of(const tg_job *job, const tgi_desc *desc, const char *option,
                           const char *name, target *t, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    const tgi_mapping *m = &job->map;
    const int constant = strcmp(option, "--constant") == 0;
    *t = (target){.option = option};
    if (constant && m->appended && strcmp(g->in[0].name, name) == 0) {
        t->want = (tgi_desc){TG_DTYPE_F32, 3, {m->appended, m->extent[1], m->extent[2]}};
        return TG_OK;
    }
    for (int i = 1; i < g->n_in; i++) {
        if (strcmp(g->in[i].name, name) != 0 || (tgi_graph_tied_to(g, i) < 0) != constant)
            continue;
        t->port = i;
        t->want = desc[g->in[i].value];
        for (int a = 0; a < t->want.rank; a++)
            if (g->in[i].perm[a] != a)
                return tgi_fail(
                    err, TG_E_UNSUPPORTED,
                    "%s %s: the network has axes in another order, in which files are not read",
                    option, name);
        return TG_OK;
    }
    return tgi_fail(err, TG_E_ARG, "%s: \"%s\" is no input that --state names", option, name);
}

/* Of an array that is read as it lies. */
static tg_status open_rows(const char *path, tgi_npy_in *out, tgi_err *err)
{
    TGI_TRY(tgi_npy_open(path, out, err));
    const tg_status st = tgi_npy_check_order(&out->head, path, err);
    if (st != TG_OK)
        tgi_npy_close(out);
    return st;
}

/* For each of a list: is the file what the network takes? */
static tg_status look_at_files(const tg_job *job, const tgi_shapes *shapes, const char *option,
                               const char *list, tgi_err *err)
{
    char name[128], path[3072];
    target t;
    for (const char *at = list; at && *at;) {
        tgi_npy_in file = {.file.fd = -1};
        if (!next_pair(&at, name, sizeof name, path, sizeof path))
            return tgi_fail(err, TG_E_ARG, not_files, option, list);
        TGI_TRY(target_of(job, shapes->desc, option, name, &t, err));
        TGI_TRY(open_rows(path, &file, err));
        const tgi_desc has = file.head.desc;
        tgi_npy_close(&file);
        TGI_TRY(check_shape(&t, path, &has, err));
    }
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

/* Frames do not follow each other along one axis. */
static int loops_elsewhere(const tgi_mapping *m)
{
    int many = 0;
    for (int i = 0; i < m->n_loop; i++)
        many += m->loop[i].size > 1;
    if (m->planes.n && !m->loops_samples)
        return m->n_items > 1 && !m->chosen.letter;
    return many > 1 || m->loops_samples;
}

static int carries(const tgi_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->n_in; i++)
        n += tgi_graph_tied_to(g, i) >= 0;
    return n > 0;
}

tg_status tgi_job_state_bind(tg_job *job, const tgi_shapes *shapes, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    job->carried_bytes = tgi_carried_bytes(g, shapes, &job->map);
    if (!tgi_job_hands_on(job))
        return TG_OK;
    for (int i = 0; i < g->n_in; i++)
        if (tgi_carried_is(g, i) && !tgi_is_image(g, &shapes->desc[g->in[i].value]))
            return tgi_fail(err, TG_E_UNSUPPORTED,
                            "--state: \"%s\" is no image: one that counts pixels is carried",
                            g->in[i].name);
    TGI_TRY(look_at_files(job, shapes, "--constant", job->set.constant, err));
    return look_at_files(job, shapes, "--state-init", job->set.state_init, err);
}

tg_status tgi_job_state_check(const tg_job *job, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    if (!tgi_job_hands_on(job))
        return TG_OK;
    if (tgi_mapping_boxed(m))
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "--state: the network works in boxes, each of which would need a state of its own");
    if (m->spatial == 3 && m->appended)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "--constant: channels are appended to images, not to volumes");
    if (carries(job->graph) && loops_elsewhere(m))
        return tgi_fail(
            err, TG_E_ARG,
            "--state: the network takes one plane at a time, and they are more than frames "
            "(axes %s%s): %s",
            job->info->axes, m->loops_samples ? ", each colour alone" : "",
            m->loops_samples ? "let it take luma (--on luma, into a film)"
                             : "choose those along one axis with --planes");
    return TG_OK;
}

/* Channels of a file, [channel][y][x] or [1][channel][y][x]. */
static tg_status channels_of(const char *path, int64_t *n, tgi_err *err)
{
    char text[96];
    tgi_npy_in file = {.file.fd = -1};
    TGI_TRY(open_rows(path, &file, err));
    const tgi_desc d = file.head.desc;
    tgi_npy_close(&file);
    *n = d.rank == 2 ? 1 : d.rank >= 3 ? d.dim[d.rank - 3] : 0;
    if (*n > 0 && (d.rank < 4 || (d.rank == 4 && d.dim[0] == 1)))
        return TG_OK;
    return tgi_fail(
        err, TG_E_ARG,
        "--constant %s: channels of a frame are [channels, height, width], the file has %s",
        path, tgi_desc_text(&d, text, sizeof text));
}

tg_status tgi_job_state_append(tg_job *job, tgi_err *err)
{
    char name[128], path[3072];
    for (const char *at = job->set.constant; at && *at;) {
        if (!next_pair(&at, name, sizeof name, path, sizeof path))
            return tgi_fail(err, TG_E_ARG, not_files, "--constant", job->set.constant);
        if (strcmp(job->graph->in[0].name, name) == 0)
            TGI_TRY(channels_of(path, &job->set.appended, err));
    }
    return TG_OK;
}

static char *place_of(const tgi_carried *c, int port)
{
    for (int k = 0; k < c->n && port; k++)
        if (c->value[k].in == port)
            return c->value[k].now;
    return (char *)c->appended;
}

static tg_status read_file(const target *t, const char *path, char *to, tgi_err *err)
{
    tgi_npy_in file = {.file.fd = -1};
    size_t n = sizeof(float);
    TGI_TRY(open_rows(path, &file, err));
    for (int k = 0; k < t->want.rank; k++)
        n *= (size_t)t->want.dim[k];
    tg_status st = check_shape(t, path, &file.head.desc, err);
    if (st == TG_OK)
        st = tgi_rfile_read(&file.file, file.head.data_off, to, n, err);
    tgi_npy_close(&file);
    return st;
}

static tg_status read_files(tgi_pass *p, const char *option, const char *list, tgi_err *err)
{
    char name[128], path[3072];
    target t;
    for (const char *at = list; at && *at;) {
        if (!next_pair(&at, name, sizeof name, path, sizeof path))
            return tgi_fail(err, TG_E_ARG, not_files, option, list);
        TGI_TRY(target_of(p->job, p->carried.net->shapes.desc, option, name, &t, err));
        TGI_TRY(read_file(&t, path, place_of(&p->carried, t.port), err));
    }
    return TG_OK;
}

/* ---- Before the first frame --------------------------------------------------------------- */

tg_status tgi_job_state_begin(tgi_pass *p, tgi_err *err)
{
    const tg_job *job = p->job;
    if (!tgi_job_hands_on(job))
        return TG_OK;
    tgi_carried_open(&p->carried, job->graph, job->plan.net, &job->map, p->carried_memory);
    TGI_TRY(read_files(p, "--constant", job->set.constant, err));
    return read_files(p, "--state-init", job->set.state_init, err);
}
