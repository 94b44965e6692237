/* job_tensor.c - jobs whose outputs are arrays: the network as it is, shapes as the model
 * declares them (NCHW or NHWC), still in strips and bands inside the budget.
 *
 * Inputs are arrays of a batch, or the planes of an image, looped over, one sample at a time.
 * Arrays are read and written piece by piece, never mapped: a file that is cut short meanwhile,
 * or a disk that is full, is an error then and no signal. There is no journal, a stopped run
 * starts over. */
#include "engine/base/arith.h"
#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/ends/input_hash.h"
#include "engine/ends/load.h"
#include "engine/exec/exec.h"
#include "engine/job/job_log.h"
#include "engine/job/run_device.h"
#include "engine/job/tensors.h"
#include "engine/memory/monitor.h"

#include <string.h>

/* ---- Run --------------------------------------------------------------------------------- */

typedef struct tensor_run {
    tg_job *job;
    int64_t sample;
    tgi_reserve *reserve;
    tgi_threads *pool;
    tgi_exec *exec;
    tgi_loader *loader;    /* of an image */
    tgi_run_device device; /* in exec's place, when the job has one */
    tg_tracker *tracker;
    tgi_stats *sets;
    tgi_affine out;
    tgi_input_hash *hash; /* of all inputs */
    void *packed, *arena, *staging[2], *rows;
} tensor_run;

#define HASH_BYTES ((size_t)16 << 10) /* of the allowance */

int tgi_tensor_files(const void *of, int64_t i, tgi_held *out)
{
    const tg_job *job = of;
    if (job->source)
        return tgi_source_held(job->source, i, out);
    if (i >= job->graph->n_in)
        return 0;
    out->path = job->tensors->in[i].path;
    tgi_rfile_held(&job->tensors->in[i].npy.file, out);
    return 1;
}

static tg_status load_input(void *user, int i, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    const tensor_run *r = user;
    tgi_box next;
    if (!r->loader)
        return tgi_tensor_load(r->job, i, r->sample, view, box, r->rows, err);
    TGI_TRY(tgi_loader_fill(r->loader, view, box, err));
    tgi_exec_next_load(r->exec, 0, &next);
    tgi_loader_prefetch(r->loader, &next);
    return TG_OK;
}

static tg_status store_output(void *user, int o, const tgi_view *view, const tgi_box *box,
                              tgi_err *err)
{
    const tensor_run *r = user;
    return tgi_tensor_store(r->job, o, r->sample, &r->out, view, box, r->rows, err);
}

static tg_status hash_tick(void *user, double fraction, tgi_err *err)
{
    (void)user;
    (void)fraction;
    return tg_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED,
                          "stopped: arrays keep no journal, the same command starts over")
               : TG_OK;
}

static tg_status check_stop(void *user, tgi_err *err)
{
    const tensor_run *r = user;
    TGI_TRY(hash_tick(NULL, 0, err));
    return tgi_input_hash_check(r->hash, hash_tick, NULL, err);
}

/* An image: its planes' statistics, and a loader for them. */
static tg_status open_image(tensor_run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_bytes *b = &job->plan.bytes;
    r->sets = tgi_calloc(TGI_TAG_PLAN, (size_t)job->map.n_stats, sizeof *r->sets);
    if (!r->sets)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the statistics");
    if (tgi_normalize_needs_stats(&job->set.normalize)) {
        TGI_TRY(tgi_job_stats_collect(job, r->reserve, r->staging[0], b->staging / 2, r->sets,
                                      err));
        TGI_TRY(tgi_input_hash_check(r->hash, hash_tick, NULL, err));
        TGI_TRY(tgi_job_stats_write(job, r->sets, err));
    }
    const tgi_loader_opts load = {.source = job->source,
                                  .map = &job->map,
                                  .rank = job->plan.net->rank,
                                  .staging = {r->staging[0], r->staging[1]},
                                  .staging_bytes = b->staging / 2,
                                  .pool = r->pool,
                                  .be = job->plan.net->be};
    TGI_TRY(tgi_loader_open(&load, &r->loader, err));
    r->device.loader = r->loader;
    r->device.sets = r->sets;
    return TG_OK;
}

/* The device has weights and arena, and pins the staging. */
static tg_status open_device(tensor_run *r, tgi_err *err)
{
    const tgi_bytes *b = &r->job->plan.bytes;
    TGI_TRY(tgi_reserve_open(b->statistics + b->rows + 2 * 64, &r->reserve, err));
    TGI_TRY(tgi_reserve_take(r->reserve, "window", b->rows, &r->rows, err));
    TGI_TRY(tgi_threads_open(r->job->set.threads, &r->pool, err));
    TGI_TRY(tgi_run_device_open(&r->device, r->job, r->rows, err));
    for (int i = 0; i < 2; i++)
        r->staging[i] = r->device.staging[i].at;
    TGI_TRY(tgi_graph_unchanged(r->job->graph, err));
    return r->job->source ? open_image(r, err) : TG_OK;
}

static tg_status open_run(tensor_run *r, tgi_err *err)
{
    tg_job *job = r->job;
    const tgi_bytes *b = &job->plan.bytes;
    const tgi_exec_io io = {r, load_input, store_output, check_stop};
    if (job->dev.ops)
        return open_device(r, err);
    TGI_TRY(
        tgi_reserve_open(b->weights + b->arena + b->staging + b->statistics + b->rows + 7 * 64,
                         &r->reserve, err));
    TGI_TRY(tgi_reserve_take(r->reserve, "weights", b->weights, &r->packed, err));
    TGI_TRY(tgi_reserve_take(r->reserve, "arena", b->arena, &r->arena, err));
    TGI_TRY(tgi_reserve_take(r->reserve, "window", b->rows, &r->rows, err));
    for (int i = 0; i < 2; i++)
        TGI_TRY(tgi_reserve_take(r->reserve, "staging", b->staging / 2, &r->staging[i], err));
    TGI_TRY(tgi_threads_open(job->set.threads, &r->pool, err));
    tgi_net_pack(job->plan.net, r->packed, r->pool);
    TGI_TRY(tgi_graph_unchanged(job->graph, err));
    TGI_TRY(tgi_exec_open(&job->plan.choice.tiling, r->packed, r->arena, r->pool, &io, &r->exec,
                          err));
    tgi_job_learn_begin(job, r->exec);
    return job->source ? open_image(r, err) : TG_OK;
}

static void close_run(tensor_run *r)
{
    tgi_input_hash_close(&r->hash);
    tgi_run_device_stop(&r->device);
    tgi_loader_close(&r->loader);
    tgi_run_device_close(&r->device);
    tgi_exec_close(&r->exec);
    tgi_threads_close(&r->pool);
    tgi_reserve_close(&r->reserve);
    tgi_free(r->sets);
}

static tg_status run_cell(tensor_run *r, int64_t k, tgi_err *err)
{
    const tgi_tiling *t = &r->job->plan.choice.tiling;
    tgi_range core[3];
    int64_t in[3], out[3];
    tgi_tiling_cell(t, k, core);
    tgi_tiling_shift(t, k, in, out);
    if (r->loader)
        tgi_loader_place(r->loader, in);
    return tgi_exec_cell(r->exec, core, err);
}

/* Cells of a sample by the processor. */
static tg_status run_sample(tensor_run *r, tg_run_result *res, tgi_err *err)
{
    const tg_job *job = r->job;
    r->out = (tgi_affine){1, 0};
    if (r->loader) {
        tgi_affine in;
        tgi_job_affine(job, &r->sets[tgi_mapping_stats_of(&job->map, r->sample)], &in, &r->out);
        tgi_loader_item(r->loader, r->sample, in);
    }
    for (int64_t k = 0; k < job->plan.choice.tiling.cells; k++, res->tiles++) {
        tgi_tracker_update(r->tracker, "run", res->tiles);
        TGI_TRY(run_cell(r, k, err));
    }
    return TG_OK;
}

/* The same into the queues of a device: the next sample follows without emptying them. */
static tg_status queue_sample(tensor_run *r, tg_run_result *res, tgi_err *err)
{
    for (int64_t k = 0; k < r->job->plan.choice.tiling.cells; k++, res->tiles++) {
        tgi_tracker_update(r->tracker, "run", res->tiles);
        TGI_TRY(tgi_run_device_cell(&r->device, r->sample, k, check_stop, r, err));
    }
    return TG_OK;
}

/* Where the time went. */
static void fill_times(const tensor_run *r, tg_run_result *res)
{
    if (r->device.exec) {
        const tgi_device_times d = tgi_device_exec_seconds(r->device.exec);
        res->compute_seconds = d.wait;
        res->convert_seconds = d.take;
        res->stall_read_seconds = r->loader ? tgi_loader_wait_seconds(r->loader) : d.fetch;
        return;
    }
    const tgi_exec_times s = tgi_exec_seconds(r->exec);
    res->compute_seconds = s.compute;
    res->convert_seconds = s.load + s.store;
}

static tg_status run_samples(tensor_run *r, tg_run_result *res, tgi_err *err)
{
    const tg_job *job = r->job;
    const double before = tgi_processor_seconds(), t0 = tgi_seconds();
    for (r->sample = 0; r->sample < job->tensors->batch; r->sample++)
        TGI_TRY(job->dev.ops ? queue_sample(r, res, err) : run_sample(r, res, err));
    if (job->dev.ops)
        TGI_TRY(tgi_run_device_drain(&r->device, err));
    res->bands = job->plan.choice.tiling.bands * job->tensors->batch;
    res->bands_seconds = tgi_seconds() - t0;
    fill_times(r, res);
    res->processor_seconds = tgi_processor_seconds() - before;
    res->nonfinite = r->device.nonfinite;
    return TG_OK;
}

/* Behind the last pixel. */
static tg_status check_inputs(tensor_run *r, tgi_err *err)
{
    tgi_input_digest d;
    TGI_TRY(tgi_input_hash_finish(r->hash, hash_tick, NULL, &d, err));
    if (d.trouble[0])
        tgi_job_warn(r->job, "%s: %s", d.file, d.trouble);
    return TG_OK;
}

static tg_status compute(tg_job *job, tg_run_result *res, tgi_err *err)
{
    tensor_run r = {.job = job};
    if (job->plan.net->reads_model)
        tgi_graph_sum(job->graph); /* a touch of it costs nothing then */
    tg_status st = tgi_input_hash_open(tgi_tensor_files, job, NULL, HASH_BYTES, &r.hash, err);
    if (st == TG_OK)
        st = open_run(&r, err);
    if (st == TG_OK)
        st = tgi_job_tracker_open(job, 0, &r.tracker, err);
    tgi_mem_trim();
    res->predicted_peak_bytes =
        tgi_mem_measured() + job->plan.bytes.allowance + job->plan.bytes.decoder;
    tgi_tracker_expect(r.tracker, res->predicted_peak_bytes, job->plan.budget);
    if (st == TG_OK)
        st = run_samples(&r, res, err);
    if (st == TG_OK)
        st = check_inputs(&r, err);
    st = tgi_input_blame(tgi_tensor_files, job, st, err);
    tgi_err none = {0};
    if (st == TG_E_FORMAT && tgi_input_unchanged(tgi_tensor_files, job, &none) != TG_OK)
        tgi_job_stats_forget(job);
    if (r.device.exec)
        tgi_job_device_result(job, res);
    res->measured_peak_bytes = tgi_job_tracker_close(job, &r.tracker);
    close_run(&r);
    return st;
}

/* Numbers of a smaller range than the processor's, perhaps. */
static void warn_of_nonfinite(tg_job *job, const tg_run_result *res)
{
    if (res->nonfinite)
        tgi_job_warn(job, "%lld values that the network gave are NaN or infinite%s",
                     (long long)res->nonfinite,
                     job->dev.element == TG_DTYPE_F16 ? "; --precision fp32 has a larger range"
                                                      : "");
}

/* All samples; from the first again, and with a smaller plan, when the memory that the plan of
 * a device counted on is gone. */
static tg_status compute_until_it_fits(tg_job *job, tg_run_result *res, tgi_err *err)
{
    tgi_err e = {0};
    const tg_run_result fresh = *res;
    tg_status st = compute(job, res, &e);
    for (int again = 0; again < 3 && tgi_job_device_shrink(job, st, &e); again++) {
        memset(&e, 0, sizeof e);
        *res = fresh;
        st = tgi_job_plan(job, &e);
        if (st == TG_OK)
            st = compute(job, res, &e);
    }
    return st == TG_OK ? st : tgi_job_device_answer(job, st, &e, err);
}

/* *named: they were complete, by a run that was killed while they got their names. */
static tg_status fill_outputs(tg_job *job, tg_run_result *res, int *named, tgi_err *err)
{
    TGI_TRY(tgi_tensors_name(job, err));
    TGI_TRY(tgi_names_go_on(job, named, &res->bad_regions, err));
    if (*named)
        return TG_OK;
    TGI_TRY(tgi_tensors_create(job, err));
    TGI_TRY(tgi_bad_tiles_begin_output(job->bad, job->set.output, err));
    TGI_TRY(compute_until_it_fits(job, res, err));
    TGI_TRY(tgi_net_unchanged(job->plan.net, err));
    warn_of_nonfinite(job, res);
    tgi_job_warn_of_surplus(job);
    if (job->bad)
        TGI_TRY(tgi_bad_tiles_write(job->bad, job->set.input, err));
    TGI_TRY(tgi_tensors_finish(job, err));
    res->bad_regions = tgi_bad_tiles_count(job->bad);
    return TG_OK;
}

tg_status tgi_job_run_arrays(tg_job *job, tg_run_result *out, tgi_err *err)
{
    const double t0 = tgi_seconds();
    tg_run_result res = {.size = sizeof res, .budget_bytes = 0};
    int64_t n = 0;
    int named = 0;
    TGI_TRY(tgi_job_sides_look(job, err));
    job->running = 1;
    TGI_TRY(tgi_job_plan_output(job, err));
    const tg_status st = fill_outputs(job, &res, &named, err);
    tgi_tensors_drop(job->tensors);
    if (st != TG_OK) {
        tgi_job_sides_drop(job, st);
        if (job->bad)
            tgi_bad_tiles_clear(job->bad);
        return st;
    }
    const tgi_net *net = job->plan.net;
    tgi_desc_count(&job->tensors->out[0].file, &n);
    res.budget_bytes = job->plan.budget;
    res.seconds = tgi_seconds() - t0;
    res.megapixels_per_second =
        (double)n / (double)tgi_max(1, net->values[net->out[0]].c) / 1e6 / res.seconds;
    res.recomputed_fraction = tgi_tiling_recomputed(&job->plan.choice.tiling);
    res.output = job->set.output;
    const tg_status answer =
        tgi_bad_tiles_verdict(res.bad_regions, job->set.input, job->set.output, err);
    if (!job->dev.ops && !named)
        tgi_job_learn_end(job, res.seconds);
    if (out)
        *out = res;
    return answer;
}
