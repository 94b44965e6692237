/* verify_stages.c - forces a plan in stages on an item that fits, and runs it. */
#include "engine/verbs/verify_stages.h"

#include "engine/base/arith.h"
#include "engine/exec/dense.h"
#include "engine/job/ends.h"
#include "engine/job/job_plan.h"
#include "engine/job/pass.h"
#include "engine/plan/staged_text.h"

#include <string.h>

int tgi_verify_in_stages(const tg_job *job, const tgi_stages *cut)
{
    return cut->one.whole_op && cut->n > 1 && job->ends->rows_in &&
           !tgi_mapping_boxed(&job->map);
}

/* The output is cut in thirds and halves, as that of networks that are tiled. */
static tgi_staged_args args_of(const tg_job *job, tgi_stages *cut, size_t limit)
{
    const tgi_net *net = cut->one.net;
    tgi_staged_args a = {.choose = {.threads = job->set.threads,
                                    .limit_bytes = limit,
                                    .unit = {1, 1, 1},
                                    .flops_per_second = tgi_flops_per_second(
                                        job->set.backend->isa, job->set.threads)},
                         .cut = cut};
    a.choose.fixed[1] = tgi_net_dim(net, net->out[0], net->rank - 2) / 2 + 3;
    a.choose.fixed[2] = tgi_net_dim(net, net->out[0], net->rank - 1) / 3 + 5;
    return a;
}

tg_status tgi_verify_stages_plan(const tg_job *job, tgi_stages *cut, size_t uncut,
                                 tgi_choice *out, tgi_err *err)
{
    tgi_staged_args a = args_of(job, cut, 0);
    const tg_status st = tgi_choose_staged(&a, out, NULL);
    if (st != TG_E_BUDGET || out->smallest_bytes == SIZE_MAX)
        return tgi_fail(err, st == TG_OK ? TG_E_INTERNAL : st, "no memory to plan %d stages",
                        cut->n);
    const size_t least = out->smallest_bytes;
    a.choose.limit_bytes = uncut > least ? least + (uncut - least) / 4 : least;
    return tgi_choose_staged(&a, out, err);
}

size_t tgi_verify_stages_bytes(const tgi_choice *c)
{
    const tgi_staged *s = c->staged;
    return tgi_sat_add(tgi_sat_add(s->arena_bytes, tgi_staged_beside(s)),
                       s->cut->one.net->packed_bytes);
}

tg_status tgi_verify_stages_run(tg_job *job, const tgi_choice *c, const tgi_verify_values *v,
                                int64_t *cells, tgi_err *err)
{
    const tgi_staged *s = c->staged;
    const tgi_net *net = s->cut->one.net;
    tgi_pass p = {0};
    tgi_dense_io dense = {.net = net};
    tgi_tiling t = c->tiling; /* borrowed but for the arena, which is that of all stages */
    void *numbers = NULL;
    const tgi_want want[] = {
        {"kept", s->kept_bytes, &p.stages.memory},
        {"states", s->state_bytes, &p.stages.states},
        {"numbers", tgi_align_size(s->n_numbers * sizeof(float), 64), &numbers}};
    const tgi_pass_end end = {.user = &dense, .load = tgi_dense_load, .store = tgi_dense_store};
    for (int i = 0; i < net->n_in; i++)
        dense.in[i] = v->in[i];
    for (int o = 0; o < net->n_out; o++)
        dense.out[o] = v->other[o];
    t.arena_bytes = s->arena_bytes;
    tg_status st = tgi_pass_take(&p, job, &t, 0, want, 3, 0, err);
    p.stages.plan = s;
    p.stages.numbers = numbers;
    if (st == TG_OK)
        st = tgi_pass_open(&p, NULL, &end, err);
    if (st == TG_OK)
        st = tgi_pass_stages_walk(&p, err);
    *cells = tgi_staged_sum(s).cells;
    tgi_pass_close(&p);
    return st;
}
