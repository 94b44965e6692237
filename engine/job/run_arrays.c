/* run_arrays.c - jobs whose outputs are arrays: the network as it is, shapes as the model
 * declares them (NCHW or NHWC), still in strips and bands inside the budget.
 *
 * Inputs are arrays of a batch, or the planes of an image, looped over, one sample at a time.
 * Arrays are read and written piece by piece, never mapped: a file that is cut short meanwhile,
 * or a disk that is full, is an error then and no signal. There is no journal, a stopped run
 * starts over. */
#include "engine/job/run_arrays.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/ends/input_hash.h"
#include "engine/ends/tensor_memory.h"
#include "engine/ends/tensors.h"
#include "engine/job/copy.h"
#include "engine/job/ends.h"
#include "engine/job/fingerprint.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/run.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- Run --------------------------------------------------------------------------------- */

int tgi_tensor_files(const void *of, int64_t i, tgi_held *out)
{
    const tg_job *job = of;
    if (job->source)
        return tgi_source_held(job->source, i, out);
    for (int k = 0; k < job->graph->n_in; k++)
        i += k <= i && job->tensors->in[k].lent; /* what lies in memory is no file */
    if (i >= job->graph->n_in)
        return 0;
    out->path = job->tensors->in[i].path;
    tgi_rfile_held(&job->tensors->in[i].npy.file, out);
    return 1;
}

static tg_status load_input(void *user, int i, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    const tgi_run *r = user;
    return tgi_tensor_load(r->job->tensors, i, r->pass.item, view, box, r->pass.rows, err);
}

static tg_status store_output(void *user, int o, const tgi_view *view, const tgi_box *box,
                              tgi_err *err)
{
    const tgi_run *r = user;
    return tgi_tensor_store(r->job->tensors, o, r->pass.item, &r->pass.out, view, box,
                            r->pass.rows, err);
}

static tg_status hash_tick(void *user, double fraction, tgi_err *err)
{
    (void)user;
    (void)fraction;
    return tgi_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED,
                          "stopped: arrays keep no journal, the same command starts over")
               : TG_OK;
}

static tg_status check_stop(void *user, tgi_err *err)
{
    return hash_tick(user, 0, err);
}

/* By bands: a whole sample may be one cell. */
static void tell(const tgi_run *r)
{
    const tg_job *job = r->job;
    const tgi_staged *s = job->plan.choice.staged;
    int64_t cells = s ? 0 : r->pass.tiling->cells, bands = s ? 0 : r->pass.tiling->bands;
    for (int k = 0; s && k < s->n; k++) {
        cells += s->tiling[k].cells;
        bands += s->tiling[k].bands;
    }
    const int64_t items = job->ends->items(job);
    const double spent = tgi_seconds() - r->t_phase;
    const double share = fmin(1, (double)r->pass.bands / (double)tgi_max(1, bands * items));
    const tg_progress p = {.phase = "run",
                           .fraction = share,
                           .seconds = spent,
                           .eta_seconds = share > 0.01 ? spent / share * (1 - share) : -1,
                           .memory_bytes = tgi_tracker_current(r->tracker),
                           .predicted_bytes = r->predicted,
                           .budget_bytes = job->plan.budget,
                           .tiles_done = r->pass.cells,
                           .tiles_total = cells * items,
                           .stage = s ? r->pass.stages.at + 1 : 0,
                           .stages = s ? s->n : 0};
    tgi_ctx_progress(job->ctx, &p);
}

static tg_status tick(void *user, tgi_err *err)
{
    tgi_run *r = user;
    tgi_tracker_update(r->tracker, "run", r->pass.cells);
    tell(r);
    TGI_TRY(check_stop(user, err));
    return tgi_run_input_holds(r, err);
}

static tg_status begin(tgi_run *r, int *done, tgi_err *err)
{
    tg_job *job = r->job;
    (void)done;
    r->of = job;
    r->check_tick = hash_tick;
    r->end = (tgi_pass_end){
        .user = r, .load = load_input, .store = store_output, .stop = check_stop, .tick = tick};
    if (!job->plan.valid)
        TGI_TRY(tgi_job_plan_to_run(job, err));
    if (job->plan.net->reads_model)
        tgi_graph_sum(job->graph); /* a touch of it costs nothing then */
    return TG_OK;
}

static tg_status open_ends(tgi_run *r, tgi_err *err)
{
    (void)err;
    r->source = r->job->source;
    r->hashing.bytes = TGI_INPUT_HASH_LITTLE;
    return TG_OK;
}

static void result(const tgi_run *r, tg_run_result *res)
{
    res->tiles = r->pass.cells;
    res->nonfinite = r->pass.device.nonfinite;
}

/* Numbers of a smaller range than the processor's, perhaps. */
static void warn(tg_job *job, const tg_run_result *res)
{
    tgi_run_warn_of_nonfinite(
        job, res->nonfinite,
        job->dev.element == TG_DTYPE_F16 ? "; --precision fp32 has a larger range" : "");
    tgi_job_warn_of_surplus(job);
}

/* ---- Outputs ----------------------------------------------------------------------------- */

/* What a list of outputs begins with: which job they are of. */
static tg_status list_front(const tg_job *job, tgi_lines *out, tgi_err *err)
{
    *out = (tgi_lines){0};
    tgi_names_begin(job->tensors, out);
    const tg_status st = tgi_fingerprint_tensors(job, out, err);
    if (st != TG_OK)
        tgi_free(out->p);
    return st;
}

/* *named: an earlier run completed the outputs, and they have their names now. */
static tg_status go_on(tg_job *job, int *named, int64_t *bad, tgi_err *err)
{
    int there;
    tgi_lines front;
    *named = 0;
    TGI_TRY(tgi_names_find(job->tensors, &there, err));
    if (!there)
        return TG_OK;
    TGI_TRY(list_front(job, &front, err));
    return tgi_names_go_on(job->tensors, &front, named, bad, err);
}

/* The array is complete: what remains is another format. */
static tg_status make_image(const tg_job *job, int index, tgi_err *err)
{
    static const struct {
        tgi_opt id;
        const char *name;
    } handed_on[] = {{TGI_OPT_COMPRESS, "compress"}, {TGI_OPT_FORMAT, "format"}};
    const tgi_tensor_out *t = &job->tensors->out[index];
    tgi_image_meta meta;
    tg_opts *o = NULL;
    tgi_tensor_meta(job->tensors, index, &meta);
    TGI_TRY(tgi_opts_new(&o, err));
    tg_status st = tgi_opts_set(o, "input", t->npy.part.partial, err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "output", t->tiff, err);
    if (st == TG_OK)
        st = tgi_opts_set(o, "axes", t->axes, err);
    for (size_t i = 0; i < sizeof handed_on / sizeof handed_on[0] && st == TG_OK; i++)
        if (tgi_opts_str(job->opts, handed_on[i].id))
            st = tgi_opts_set(o, handed_on[i].name, tgi_opts_str(job->opts, handed_on[i].id),
                              err);
    const tgi_copy_part part = {.meta = &meta, .journal = t->journal};
    if (st == TG_OK)
        st = tgi_copy(job->ctx, o, &part, err);
    tgi_opts_free(&o);
    return st;
}

/* First all of them are complete and on the disk, then they get their names: a kill before that
 * leaves none, and the same command starts over. */
static tg_status give_names(tg_job *job, tgi_err *err)
{
    const int n = job->graph->n_out;
    tgi_lines front;
    TGI_TRY(tgi_tensors_seal(job->tensors, err));
    for (int o = 0; o < n; o++)
        if (job->tensors->out[o].tiff)
            TGI_TRY(make_image(job, o, err));
    if (n > 1) {
        TGI_TRY(list_front(job, &front, err));
        TGI_TRY(tgi_names_list(job->tensors, &front, err));
    }
    return tgi_names_give(job->tensors, err);
}

/* Into the caller's memory: no names, no disk. */
static int in_memory(const tg_job *job)
{
    return tgi_memory_has_sinks(job->opts);
}

static tg_status prepare_sinks(tg_job *job, tgi_err *err)
{
    TGI_TRY(tgi_tensors_shape(job->tensors, err));
    TGI_TRY(tgi_memory_begin(job->tensors, err));
    if (job->bad)
        tgi_bad_tiles_only_count(job->bad);
    return TG_OK;
}

/* *named: they were complete, by a run that was killed while they got their names. */
static tg_status prepare(tg_job *job, tg_run_result *res, int *named, tgi_err *err)
{
    if (in_memory(job))
        return prepare_sinks(job, err);
    const int there = access(job->set.output ? job->set.output : "", F_OK) == 0;
    if (!there) /* then nothing was completed, and a refusal makes no folder */
        TGI_TRY(tgi_job_check_disk(job, err));
    TGI_TRY(tgi_tensors_name(job->tensors, err));
    TGI_TRY(go_on(job, named, &res->bad_regions, err));
    if (*named)
        return TG_OK;
    if (there)
        TGI_TRY(tgi_job_check_disk(job, err));
    TGI_TRY(tgi_memory_begin(job->tensors, err));
    TGI_TRY(tgi_tensors_create(job->tensors, err));
    return tgi_bad_tiles_begin_output(job->bad, job->set.output, err);
}

static tg_status complete_all(tg_job *job, tg_run_result *res, tgi_err *err)
{
    TGI_TRY(tgi_net_unchanged(job->plan.net, err));
    warn(job, res);
    if (!in_memory(job)) {
        if (job->bad)
            TGI_TRY(tgi_bad_tiles_write(job->bad, job->set.input, job->source, err));
        TGI_TRY(give_names(job, err));
    }
    res->bad_regions = tgi_bad_tiles_count(job->bad);
    return TG_OK;
}

static void drop(tg_job *job, tg_status st)
{
    tgi_tensors_drop(job->tensors);
    if (!job->bad)
        return;
    tgi_bad_tiles_end(job->bad);
    if (st != TG_OK && !in_memory(job))
        tgi_bad_tiles_clear(job->bad);
}

static double pixels_of(const tg_job *job)
{
    const tgi_net *net = job->plan.net;
    int64_t n = 0;
    if (!net)
        return 0;
    tgi_desc_count(&job->tensors->out[0].file, &n);
    return (double)n / (double)tgi_max(1, net->values[net->out[0]].c);
}

const tgi_run_steps tgi_array_steps = {.bytes = sizeof(tgi_run),
                                       .files = tgi_tensor_files,
                                       .plan = tgi_job_plan_to_run,
                                       .prepare = prepare,
                                       .begin = begin,
                                       .open = open_ends,
                                       .result = result,
                                       .complete_all = complete_all,
                                       .drop = drop,
                                       .pixels = pixels_of};
