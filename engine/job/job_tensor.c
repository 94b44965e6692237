/* job_tensor.c - arrays in, arrays out: the network as it is, shapes as the model declares them
 * (NCHW or NHWC), still in strips and bands inside the budget.
 *
 * Inputs and outputs are mapped files: their pages are the kernel's, not ours. Outputs grow in
 * NAME.npy.partial and get their name when all of them are complete; there is no journal, a
 * stopped run starts over. A batch is looped over, one sample at a time. */
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/job/job.h"
#include "engine/memory/monitor.h"
#include "engine/run/exec.h"
#include "engine/run/pixels.h"
#include "io/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* An array seen along the graph's axes. */
typedef struct strided {
    tg_dtype type;
    char *data;
    int64_t stride[TG_MAX_RANK]; /* elements, per graph axis */
} strided;

struct tg_tensors {
    tgi_npy_map in[TG_MAX_PORTS];
    tg_desc in_desc[TG_MAX_PORTS]; /* graph order, N = 1 */
    tg_desc out_file[TG_MAX_PORTS];
    int64_t batch;
    char *out_path[TG_MAX_PORTS];
    char *map[TG_MAX_PORTS];
    size_t map_bytes[TG_MAX_PORTS], head_bytes[TG_MAX_PORTS];
};

/* ---- Inputs ------------------------------------------------------------------------------ */

static const char *file_of_port(const tg_job *job, int i)
{
    const char *file;
    char name[256];
    for (int k = 0; tgi_opts_tensor(job->opts, k, name, sizeof name, &file); k++)
        if (strcmp(name, job->graph->in[i].name) == 0)
            return file;
    return i == 0 ? job->set.input : NULL;
}

static tg_status open_input(tg_job *job, struct tg_tensors *t, int i, tgi_err *err)
{
    const tg_port *p = &job->graph->in[i];
    const char *path = file_of_port(job, i);
    char text[96];
    if (!path)
        return tgi_fail(err, TG_E_ARG,
                        "the network's input \"%s\" has no array: --input %s=FILE.npy", p->name,
                        p->name);
    TGI_TRY(tgi_npy_map_open(path, &t->in[i], err));
    const tg_desc *f = &t->in[i].desc;
    if (f->rank != p->file_rank)
        return tgi_fail(err, TG_E_ARG, "%s holds %s, the network's input \"%s\" has rank %d",
                        path, tgi_desc_text(f, text, sizeof text), p->name, p->file_rank);
    tg_desc *d = &t->in_desc[i];
    *d = (tg_desc){TG_DTYPE_F32, job->graph->spatial + 2, {0}};
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

/* Element strides of a dense file array along the graph's axes. */
static void set_strides(const tg_port *p, const tg_desc *file, int rank, strided *s)
{
    int64_t step[TG_MAX_RANK], n = 1;
    for (int i = file->rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= file->dim[i];
    }
    for (int a = 0; a < rank; a++)
        s->stride[a] = p->perm[a] >= 0 ? step[p->perm[a]] : 0;
    s->type = file->dtype;
}

static int64_t element(const strided *s, int rank, int64_t n, int64_t c, int64_t z, int64_t y)
{
    return n * s->stride[0] + c * s->stride[1] + (rank == 5 ? z * s->stride[2] : 0) +
           y * s->stride[rank - 2];
}

/* ---- Plan -------------------------------------------------------------------------------- */

void tgi_tensors_close(struct tg_tensors **tp)
{
    if (!tp || !*tp)
        return;
    struct tg_tensors *t = *tp;
    for (int i = 0; i < TG_MAX_PORTS; i++) {
        tgi_npy_unmap(&t->in[i]);
        if (t->map[i])
            munmap(t->map[i], t->map_bytes[i]);
        tgi_free(t->out_path[i]);
    }
    tgi_free(t);
    *tp = NULL;
}

/* Every name given is an input of the network. */
static tg_status check_names(const tg_job *job, tgi_err *err)
{
    const tg_graph *g = job->graph;
    const char *file;
    char name[256];
    for (int k = 0; tgi_opts_tensor(job->opts, k, name, sizeof name, &file); k++) {
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

static tg_status open_inputs(tg_job *job, tgi_err *err)
{
    TGI_TRY(check_names(job, err));
    struct tg_tensors *t = tgi_calloc(TGI_TAG_IO, 1, sizeof *t);
    if (!t)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the arrays");
    job->tensors = t;
    for (int i = 0; i < job->graph->n_in; i++)
        TGI_TRY(open_input(job, t, i, err));
    return TG_OK;
}

typedef struct choosing {
    const tg_plan_part *p;
    const tg_choose_args *base;
} choosing;

/* The best plan with the net's kernels as they are. */
static tg_status choose(void *user, tg_choice *out)
{
    const choosing *c = user;
    const tg_plan_part *p = c->p;
    const size_t weights = tgi_align_size(p->net->packed_bytes, 64);
    const size_t taken =
        weights + p->bytes.process + p->bytes.allowance + tgi_page_table_bytes(weights);
    const size_t left = p->budget > taken ? p->budget - taken : 0;
    tg_choose_args a = *c->base;
    a.stage = &p->stages->one;
    a.limit_bytes = left - left / 513; /* the rest maps it */
    return tgi_choose(&a, out, NULL);
}

tg_status tgi_job_plan_tensor(tg_job *job, const tg_choose_args *base, size_t budget,
                              tgi_err *err)
{
    tg_plan_part *p = &job->plan;
    char text[32], have[32];
    if (!job->tensors)
        TGI_TRY(open_inputs(job, err));
    TGI_TRY(tgi_job_net(job, job->tensors->in_desc, err));
    p->budget = budget;
    p->bytes = (tg_bytes){.process = tgi_mem_measured(), .allowance = base->limit_bytes};
    choosing c = {p, base};
    const tg_status st =
        tgi_choose_kernels(p->net, -1, !job->set.tile.automatic, choose, &c, &p->choice);
    p->bytes.weights = tgi_align_size(p->net->packed_bytes, 64);
    const size_t taken = p->bytes.weights + p->bytes.process + p->bytes.allowance;
    if (st == TG_E_BUDGET)
        return tgi_fail(err, st,
                        "the smallest plan needs %s, the budget is %s: give a larger --ram",
                        tgi_size_text(p->choice.smallest_bytes + taken, text, sizeof text),
                        tgi_size_text(budget, have, sizeof have));
    if (st != TG_OK)
        return tgi_fail(err, st, "no memory to plan");
    p->bytes.arena = p->choice.tiling.arena_bytes;
    p->bytes.page_tables = tgi_page_table_bytes(p->bytes.weights + p->bytes.arena);
    p->bytes.total = taken + p->bytes.arena + p->bytes.page_tables;
    tgi_job_add_line(p, "weights", p->bytes.weights, 0, 0, "%s", "packed for the kernels");
    tgi_job_add_line(p, "arena", p->bytes.arena, 0, 0, "%s", "activations");
    tgi_job_add_line(p, "process", p->bytes.process, 0, 0, "%s",
                     "the program and the parsed model");
    tgi_job_add_line(p, "page tables", p->bytes.page_tables, 0, 0, "%s", "of the blocks above");
    tgi_job_add_line(p, "allowance", p->bytes.allowance, 0, 0, "%s", "stacks, library slack");
    p->valid = 1;
    return TG_OK;
}

/* ---- Outputs ----------------------------------------------------------------------------- */

static tg_status name_output(const tg_job *job, int o, char *buf, size_t cap, tgi_err *err)
{
    const char *out = job->set.output;
    const size_t n = out ? strlen(out) : 0;
    if (!n)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.npy or -o DIR/) is missing");
    if (out[n - 1] != '/') {
        if (job->graph->n_out > 1)
            return tgi_fail(err, TG_E_ARG, "the network has %d outputs: give a folder, -o DIR/",
                            job->graph->n_out);
        snprintf(buf, cap, "%s", out);
        return TG_OK;
    }
    const int at = snprintf(buf, cap, "%s", out);
    snprintf(buf + at, cap - (size_t)at, "%s.npy", job->graph->out[o].name);
    for (char *c = buf + at; *c; c++)
        if (*c == '/')
            *c = '_';
    return TG_OK;
}

static tg_status map_output(struct tg_tensors *t, int o, const char *partial, tgi_err *err)
{
    char head[512];
    int64_t n = 0;
    TGI_TRY(tgi_npy_make_head(&t->out_file[o], head, sizeof head, &t->head_bytes[o], err));
    tgi_desc_count(&t->out_file[o], &n);
    t->map_bytes[o] = t->head_bytes[o] + (size_t)n * sizeof(float);
    const int fd = open(partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return tgi_fail(err, TG_E_EXISTS, "%s: cannot be created: %s", partial,
                        strerror(errno));
    const int e = posix_fallocate(fd, 0, (off_t)t->map_bytes[o]);
    void *p =
        e ? MAP_FAILED : mmap(NULL, t->map_bytes[o], PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED) {
        unlink(partial);
        return tgi_fail(err, e == ENOSPC ? TG_E_NO_SPACE : TG_E_IO, "%s: %s", partial,
                        strerror(e ? e : errno));
    }
    t->map[o] = p;
    memcpy(t->map[o], head, t->head_bytes[o]);
    return TG_OK;
}

static tg_status open_outputs(tg_job *job, tgi_err *err)
{
    struct tg_tensors *t = job->tensors;
    char path[4096], partial[4200];
    for (int o = 0; o < job->graph->n_out; o++) {
        const tg_port *p = &job->graph->out[o];
        const tg_desc *d = &job->plan.net->shapes.desc[p->value];
        TGI_TRY(name_output(job, o, path, sizeof path, err));
        if (access(path, F_OK) == 0 && !job->set.overwrite)
            return tgi_fail(err, TG_E_EXISTS, "%s exists: give -y to overwrite it", path);
        t->out_path[o] = tgi_strdup(TGI_TAG_IO, path);
        if (!t->out_path[o])
            return tgi_fail(err, TG_E_NOMEM, "no memory for a path");
        t->out_file[o] = (tg_desc){TG_DTYPE_F32, p->file_rank, {0}};
        for (int a = 0; a < d->rank; a++)
            if (p->perm[a] >= 0)
                t->out_file[o].dim[p->perm[a]] = a == 0 ? t->batch : d->dim[a];
        snprintf(partial, sizeof partial, "%s.partial", path);
        TGI_TRY(map_output(t, o, partial, err));
    }
    return TG_OK;
}

/* ---- Run --------------------------------------------------------------------------------- */

typedef struct tensor_run {
    tg_job *job;
    int64_t sample;
} tensor_run;

static void box_zyx(int rank, const tg_box *b, tg_range r[3])
{
    r[0] = rank == 5 ? b->ax[2] : (tg_range){0, 1};
    r[1] = b->ax[rank - 2];
    r[2] = b->ax[rank - 1];
}

static tg_status load_array(void *user, int i, const tg_view *view, const tg_box *box,
                            tgi_err *err)
{
    (void)err;
    const tensor_run *r = user;
    const tgi_npy_map *m = &r->job->tensors->in[i];
    strided s = {.data = NULL};
    tg_range q[3];
    set_strides(&r->job->graph->in[i], &m->desc, box->rank, &s);
    box_zyx(box->rank, box, q);
    const size_t size = tgi_dtype_size(s.type);
    const int64_t sx = s.stride[box->rank - 1];
    for (int64_t c = 0; c < tgi_view_blocks(view) * view->cb; c++)
        for (int64_t z = q[0].lo; z < q[0].hi; z++)
            for (int64_t y = q[1].lo; y < q[1].hi; y++) {
                float *dst = tgi_view_at(view, c, z, y, q[2].lo);
                const int64_t at = element(&s, box->rank, r->sample, c, z, y) + q[2].lo * sx;
                const char *src = (const char *)m->data + (size_t)at * size;
                for (int64_t x = 0; x < tgi_range_len(q[2]); x++)
                    if (c >= view->c)
                        dst[x * view->cb] = 0;
                    else
                        tgi_pixels_load(s.type, src + (size_t)(x * sx) * size, 1, 1.0f, 0.0f,
                                        dst + x * view->cb, 1);
            }
    return TG_OK;
}

static tg_status store_array(void *user, int o, const tg_view *view, const tg_box *box,
                             tgi_err *err)
{
    (void)err;
    const tensor_run *r = user;
    const struct tg_tensors *t = r->job->tensors;
    strided s = {.data = t->map[o] + t->head_bytes[o]};
    tg_range q[3];
    set_strides(&r->job->graph->out[o], &t->out_file[o], box->rank, &s);
    box_zyx(box->rank, box, q);
    const int64_t sx = s.stride[box->rank - 1];
    float *data = (float *)(void *)s.data;
    for (int64_t c = 0; c < view->c; c++)
        for (int64_t z = q[0].lo; z < q[0].hi; z++)
            for (int64_t y = q[1].lo; y < q[1].hi; y++)
                tgi_pixels_store(
                    TG_DTYPE_F32, tgi_view_at(view, c, z, y, q[2].lo), view->cb,
                    tgi_range_len(q[2]), 1.0f, 0.0f,
                    data + element(&s, box->rank, r->sample, c, z, y) + q[2].lo * sx, sx);
    return TG_OK;
}

static tg_status check_stop(void *user, tgi_err *err)
{
    (void)user;
    return tg_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED,
                          "stopped: arrays keep no journal, the same command starts over")
               : TG_OK;
}

static tg_status run_samples(tg_job *job, tg_exec *e, tensor_run *r, tg_run_result *res,
                             tgi_err *err)
{
    const tg_tiling *t = &job->plan.choice.tiling;
    for (r->sample = 0; r->sample < job->tensors->batch; r->sample++)
        for (int64_t k = 0; k < t->cells; k++) {
            tg_range core[3];
            tgi_tiling_cell(t, k, core);
            TGI_TRY(tgi_exec_cell(e, core, err));
            res->tiles++;
        }
    res->bands = t->bands * job->tensors->batch;
    const tg_exec_times s = tgi_exec_seconds(e);
    res->compute_seconds = s.compute;
    res->convert_seconds = s.load + s.store;
    res->bands_seconds = s.compute + s.load + s.store;
    return TG_OK;
}

static tg_status finish_outputs(const tg_job *job, tgi_err *err)
{
    const struct tg_tensors *t = job->tensors;
    char partial[4200];
    for (int o = 0; o < job->graph->n_out; o++) {
        snprintf(partial, sizeof partial, "%s.partial", t->out_path[o]);
        if (msync(t->map[o], t->map_bytes[o], MS_SYNC) != 0 ||
            rename(partial, t->out_path[o]) != 0)
            return tgi_fail(err, TG_E_IO, "%s: %s", t->out_path[o], strerror(errno));
    }
    return TG_OK;
}

static tg_status compute(tg_job *job, tg_run_result *res, tgi_err *err)
{
    tgi_reserve *reserve = NULL;
    tg_threads *pool = NULL;
    tg_exec *exec = NULL;
    tg_monitor *monitor = NULL;
    void *packed = NULL, *arena = NULL;
    tensor_run r = {.job = job};
    const tg_bytes *b = &job->plan.bytes;
    const tg_exec_io io = {&r, load_array, store_array, check_stop};
    tg_status st = tgi_reserve_open(b->weights + b->arena + 128, &reserve, err);
    if (st == TG_OK)
        st = tgi_reserve_take(reserve, "weights", b->weights, &packed, err);
    if (st == TG_OK)
        st = tgi_reserve_take(reserve, "arena", b->arena, &arena, err);
    if (st == TG_OK)
        st = tgi_threads_open(job->set.threads, &pool, err);
    if (st == TG_OK)
        tgi_net_pack(job->plan.net, packed, pool);
    if (st == TG_OK)
        st = tgi_exec_open(&job->plan.choice.tiling, packed, arena, pool, &io, &exec, err);
    if (st == TG_OK)
        st = tgi_monitor_open(5, tgi_opts_str(job->opts, TGI_OPT_LOG), &monitor, err);
    res->predicted_peak_bytes = tgi_mem_measured() + b->allowance;
    if (st == TG_OK)
        st = run_samples(job, exec, &r, res, err);
    res->measured_peak_bytes = tgi_monitor_close(&monitor);
    tgi_exec_close(&exec);
    tgi_threads_close(&pool);
    tgi_reserve_close(&reserve);
    return st;
}

/* There is no journal that says how far they are: nothing could go on from them. */
static void drop_outputs(const tg_job *job)
{
    char partial[4200];
    for (int o = 0; o < job->graph->n_out; o++)
        if (job->tensors->map[o]) {
            snprintf(partial, sizeof partial, "%s.partial", job->tensors->out_path[o]);
            unlink(partial);
        }
}

static tg_status fill_outputs(tg_job *job, tg_run_result *res, tgi_err *err)
{
    TGI_TRY(open_outputs(job, err));
    const tg_status st = compute(job, res, err);
    return st == TG_OK ? finish_outputs(job, err) : st;
}

tg_status tgi_job_run_tensor(tg_job *job, tg_run_result *out, tgi_err *err)
{
    const double t0 = tgi_seconds();
    tg_run_result res = {.size = sizeof res, .budget_bytes = 0};
    int64_t n = 0;
    TGI_TRY(tgi_job_plan(job, err));
    const tg_status st = fill_outputs(job, &res, err);
    if (st != TG_OK) {
        drop_outputs(job);
        return st;
    }
    tgi_desc_count(&job->tensors->out_file[0], &n);
    res.budget_bytes = job->plan.budget;
    res.seconds = tgi_seconds() - t0;
    res.megapixels_per_second =
        (double)n /
        (double)tgi_max(1, job->plan.net->shapes.desc[job->plan.net->out[0]].dim[1]) / 1e6 /
        res.seconds;
    res.recomputed_fraction = tgi_tiling_recomputed(&job->plan.choice.tiling);
    res.output = job->set.output;
    if (out)
        *out = res;
    return TG_OK;
}
