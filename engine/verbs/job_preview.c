/* job_preview.c - a look at a few places before the long run.
 *
 * Each crop is a cell of the network's output computed by the executor with the whole image's
 * statistics and its true surroundings, so its pixels are those that the full run will write.
 * The cell is cut on the tile axes alone (any range of the stream axis is part of a cell), its
 * origin is a multiple of the network's period, and `fits` proves that the slots hold it.
 *
 * Where an operator reads the whole image, all of it has to be computed: then all crops come out of
 * one pass that is planned as a run's is, in stages where the budget wants it (preview_pass.h).
 *
 * Places: unless the user names one, the three crops of a coarse grid whose pixels vary most,
 * as judged by a few rows through the middle of each. Of a series of planes the middle one is
 * shown. */
#include "engine/verbs/job_preview.h"
#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/ends/decoded.h"
#include "engine/ends/input_hash.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_state.h"
#include "engine/job/page_tables.h"
#include "engine/job/pass.h"
#include "engine/job/plan_scratch.h"
#include "engine/job/stats_file.h"
#include "engine/memory/monitor.h"
#include "engine/verbs/inpaint_preview.h"
#include "engine/verbs/preview_inside.h"
#include "engine/verbs/preview_objects.h"
#include "engine/verbs/preview_picture.h"
#include "io/png.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BAND 64
#define PNG_BYTES ((size_t)2 << 20) /* what the PNG writer allocates, at most */

static tgi_pass *pass_of(tgi_preview *v)
{
    return v->at_once ? &v->all.pass : &v->pass;
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* Rows under a crop, and rows that are looked at. */
static size_t staging_beside(const tgi_preview *v)
{
    const tgi_mapping *m = &v->job->map;
    const tg_dtype type = v->job->info->dtype;
    const size_t crop = tgi_loader_bytes(m, type, 1, v->raw.h, v->raw.w);
    const size_t look =
        (size_t)(TGI_PREVIEW_LOOK_ROWS * m->extent[2] * v->raw.channels) * tgi_dtype_size(type);
    return tgi_align_size(crop > look ? crop : look, 64);
}

static size_t staging_for(const tgi_preview *v, int64_t band)
{
    const tg_job *job = v->job;
    const tgi_mapping *m = &job->map;
    const tgi_slot *in = &v->tiling.slot[v->net->in[0]];
    const int64_t fed = tgi_min(band, tgi_net_dim(v->net, v->net->in[0], TGI_STREAM_AXIS));
    const int volume = m->spatial == 3;
    const size_t banded = tgi_align_size(tgi_loader_bytes(m, job->info->dtype, volume ? fed : 1,
                                                          volume ? in->rows : fed, in->width),
                                         64);
    const size_t beside = staging_beside(v);
    return banded > beside ? banded : beside;
}

static size_t panel_bytes(const tgi_panel *p)
{
    return (size_t)(p->h * p->w) * (size_t)p->channels * sizeof(float);
}

/* The loader fills every channel of the input, the picture shows the first ones. */
static size_t raw_bytes(const tgi_preview *v)
{
    return (size_t)(v->raw.h * v->raw.w * v->job->map.channels) * sizeof(float);
}

/* For drawing a crop and what its outlines need, one behind the other. */
static size_t scratch_bytes(const tgi_preview *v)
{
    const size_t picture = tgi_picture_scratch(&v->raw, &v->result) * sizeof(float);
    const size_t objects = tgi_preview_objects_bytes(&v->result);
    return picture > objects ? picture : objects;
}

/* Everything but what computes and staging. */
static size_t other_bytes(const tgi_preview *v)
{
    const tgi_picture *p = &v->picture;
    const size_t pixels = (size_t)(p->width * p->height) * (size_t)p->samples;
    return raw_bytes(v) + (v->at_once ? TGI_PREVIEW_CROPS : 1) * panel_bytes(&v->result) +
           pixels + scratch_bytes(v) + TGI_STATS_SCRATCH + 16 * 64;
}

/* What is held while the plan of a run computes. */
static size_t beside_bytes(const tgi_preview *v)
{
    const size_t blocks = tgi_sat_add(other_bytes(v), staging_beside(v));
    return tgi_sat_add(blocks, tgi_page_table_bytes(blocks) + PNG_BYTES);
}

/* 1 when the slots of the tiling hold the crop at this place. */
static int fits(const tgi_preview *v, const tgi_preview_place *p)
{
    const tgi_net *net = v->net;
    tgi_range *stored = v->need, *inside = v->need + net->n_values;
    for (int dim = TGI_STREAM_AXIS + 1; dim < net->rank; dim++) {
        const int k = dim - TGI_STREAM_AXIS + tgi_preview_first_axis(v->job);
        tgi_axis_need(v->stage, dim, tgi_preview_core_of(v, k, p->at), stored, inside);
        for (int i = 0; i < net->n_values; i++) {
            const tgi_slot *s = &v->tiling.slot[i];
            /* Of rows a slot has those inside the value, of columns those around it, too. */
            const int64_t lacks = dim == net->rank - 1 ? tgi_range_len(stored[i]) - s->width
                                                       : tgi_range_len(inside[i]) - s->rows;
            if (v->stage->values[i].live && lacks > 0)
                return 0;
        }
    }
    return 1;
}

/* 1 when the slots hold the place that was asked for, or every place of the grid: those inside
 * the image repeat after a few dozen crops, those at its ends are looked at each. */
static int fits_everywhere(const tgi_preview *v)
{
    if (v->n_places)
        return fits(v, &v->place[0]);
    for (int k = tgi_preview_first_axis(v->job) + 1; k < 3; k++) {
        const int64_t n = tgi_max(1, v->ax[k].extent / v->ax[k].size);
        for (int64_t i = 0; i < n; i = i == TGI_PREVIEW_LOOKS ? tgi_max(n - 2, i + 1) : i + 1) {
            tgi_preview_place p = {0};
            p.at[k] = tgi_preview_inside_cell(v, k, i * v->ax[k].size);
            if (!fits(v, &p))
                return 0;
        }
    }
    return 1;
}

/* A tiling whose cells hold the crop at any place: somewhat larger than the crop, since blocks
 * of a kernel and the image's border lie otherwise in a cell than in a crop. */
static tg_status hold_crops(tgi_preview *v, int64_t band, tgi_err *err)
{
    for (int64_t margin = 2;; margin *= 2) {
        int64_t cut[3] = {0, 0, 0};
        int grows = 0;
        for (int k = tgi_preview_first_axis(v->job) + 1; k < 3; k++) {
            cut[k] = v->ax[k].size + margin * v->ax[k].align;
            grows |= cut[k] < v->ax[k].extent;
        }
        TGI_TRY(
            tgi_tiling_make(v->stage, cut, band, v->job->set.threads, NULL, &v->tiling, err));
        if (!grows || fits_everywhere(v))
            return TG_OK;
        tgi_tiling_free(&v->tiling);
    }
}

/* The largest band that the budget allows; v->peak is what all of it takes then. */
static tg_status choose_tiling(tgi_preview *v, tgi_err *err)
{
    const tgi_plan_part *plan = &v->job->plan;
    const size_t held =
        tgi_job_process_bytes(v->job) + plan->bytes.allowance + plan->bytes.decoder;
    size_t need = 0;
    for (int64_t band = FIRST_BAND; band >= 1; band /= 2) {
        TGI_TRY(hold_crops(v, band, err));
        v->staging_bytes = staging_for(v, band);
        need = tgi_sat_add(v->tiling.arena_bytes,
                           v->staging_bytes + other_bytes(v) + plan->bytes.weights + PNG_BYTES);
        v->peak = tgi_sat_add(tgi_sat_add(need, tgi_page_table_bytes(need)), held);
        if (v->peak <= plan->budget)
            return TG_OK;
        tgi_tiling_free(&v->tiling);
    }
    char text[2][32];
    const tg_status st = tgi_fail(
        err, TG_E_BUDGET,
        "the preview needs %s, the budget is %s: raise --ram or choose a smaller --roi",
        tgi_size_above(v->peak, text[0], sizeof text[0]),
        tgi_size_below(plan->budget, text[1], sizeof text[1]));
    return tgi_err_tried(err, st, "the preview", v->peak);
}

static tg_status reserve_crops(tgi_preview *v, tgi_err *err)
{
    tgi_picture *p = &v->picture;
    const size_t pixels = (size_t)(p->width * p->height) * (size_t)p->samples;
    const size_t scratch = scratch_bytes(v);
    void *raw, *result, *picture;
    const tgi_want want[] = {{"raw", raw_bytes(v), &raw},
                             {"result", panel_bytes(&v->result), &result},
                             {"picture", pixels, &picture},
                             {"scratch", scratch, &v->scratch}};
    TGI_TRY(tgi_pass_take(&v->pass, v->job, &v->tiling, v->staging_bytes, want,
                          sizeof want / sizeof want[0], TGI_STATS_SCRATCH, err));
    v->staging = v->pass.staging[0];
    v->taken = raw;
    v->result.data = result;
    p->pixels = picture;
    return TG_OK;
}

/* Beside a pass over the image. */
static tg_status reserve_beside(tgi_preview *v, tgi_err *err)
{
    tgi_picture *p = &v->picture;
    const size_t pixels = (size_t)(p->width * p->height) * (size_t)p->samples;
    const size_t scratch = scratch_bytes(v);
    const size_t result = panel_bytes(&v->result);
    void *raw, *results, *picture;
    v->staging_bytes = staging_beside(v);
    const tgi_want want[] = {{"raw", raw_bytes(v), &raw},
                             {"results", TGI_PREVIEW_CROPS * result, &results},
                             {"picture", pixels, &picture},
                             {"scratch", scratch, &v->scratch},
                             {"staging", v->staging_bytes, &v->staging}};
    TGI_TRY(tgi_reserve_all(want, sizeof want / sizeof want[0], TGI_STATS_SCRATCH, &v->reserve,
                            err));
    v->taken = raw;
    for (int i = 0; i < TGI_PREVIEW_CROPS; i++)
        v->all.data[i] = (float *)results + (size_t)i * (result / sizeof(float));
    p->pixels = picture;
    return TG_OK;
}

/* ---- One crop ---------------------------------------------------------------------------- */

static tg_status store_rows(void *user, int o, const tgi_view *view, const tgi_box *box,
                            tgi_err *err)
{
    tgi_preview *v = user;
    (void)err;
    const tgi_range z = box->rank == 5 ? box->ax[2] : (tgi_range){0, 1};
    const tgi_range y = box->ax[box->rank - 2], x = box->ax[box->rank - 1];
    if (o != 0)
        return TG_OK;
    const int64_t y0 = tgi_preview_core_of(v, 1, v->origin).lo,
                  x0 = tgi_preview_core_of(v, 2, v->origin).lo;
    for (int c = 0; c < v->result.channels; c++)
        for (int64_t r = y.lo; r < y.hi; r++) {
            const float *src = tgi_view_at(view, c, z.lo, r, x.lo);
            float *dst =
                v->result.data + ((int64_t)c * v->result.h + r - y0) * v->result.w + x.lo - x0;
            for (int64_t i = 0; i < tgi_range_len(x); i++)
                dst[i] = src[i * view->cb];
        }
    return TG_OK;
}

static tg_status check_stop(void *user, tgi_err *err)
{
    (void)user;
    return tgi_cancel_signal() ? tgi_fail(err, TG_E_CANCELLED, "stopped") : TG_OK;
}

/* The input under a crop, normalised as the network sees it. */
static tg_status load_raw(tgi_preview *v, tgi_err *err)
{
    const tgi_net *net = v->net;
    const tgi_range y = tgi_preview_input_of(v, 1, v->origin[1], v->origin[1] + v->ax[1].size);
    const tgi_range x = tgi_preview_input_of(v, 2, v->origin[2], v->origin[2] + v->ax[2].size);
    const int64_t z = tgi_preview_slice_of(v, v->origin[0]);
    tgi_box box = tgi_box_full(&net->shapes.desc[net->in[0]]);
    box.ax[net->rank - 2] = y;
    box.ax[net->rank - 1] = x;
    if (net->rank == 5)
        box.ax[2] = (tgi_range){z, z + 1};
    const int64_t h = tgi_range_len(y), w = tgi_range_len(x);
    const tgi_view view = {.base = v->taken,
                           .c = v->job->map.channels,
                           .cb = 1,
                           .x0 = x.lo,
                           .width = w,
                           .block_pitch = (size_t)(h * w),
                           .z_ring = 1,
                           .y_pitch = (size_t)w,
                           .y_ring = h};
    const int64_t here[3] = {0, 0, 0}; /* the box counts as the region does */
    v->raw.h = h;
    v->raw.w = w;
    v->raw.data = v->taken + v->job->map.own.channels.lo * h * w;
    tgi_loader_place(pass_of(v)->loader, here);
    TGI_TRY(tgi_loader_fill(pass_of(v)->loader, &view, &box, err));
    /* rows lie in a ring: turn it so that the first row comes first */
    /* A crop has rows: h > 0. */
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    const int64_t turn = y.lo % h;
    float *spare = v->scratch;
    for (int c = 0; c < v->raw.channels && turn; c++) {
        float *p = v->raw.data + (int64_t)c * h * w;
        memcpy(spare, p, (size_t)(turn * w) * sizeof *p);
        memmove(p, p + turn * w, (size_t)((h - turn) * w) * sizeof *p);
        memcpy(p + (h - turn) * w, spare, (size_t)(turn * w) * sizeof *p);
    }
    return TG_OK;
}

static tg_status compute_crop(tgi_preview *v, int i, tgi_err *err)
{
    tgi_range core[3];
    int64_t in[3], out;
    if (!fits(v, &v->place[i]))
        return tgi_fail(err, TG_E_INTERNAL, "the crop at y %lld, x %lld does not fit its cell",
                        (long long)v->place[i].at[1], (long long)v->place[i].at[2]);
    for (int k = 0; k < 3; k++)
        tgi_fit_shift(&v->job->map.fit[k], v->place[i].at[k], &in[k], &out);
    tgi_loader_place(v->pass.loader, in);
    for (int dim = TGI_STREAM_AXIS; dim < v->net->rank; dim++)
        core[dim - TGI_STREAM_AXIS] = tgi_preview_core_of(
            v, dim - TGI_STREAM_AXIS + tgi_preview_first_axis(v->job), v->origin);
    return tgi_pass_core(&v->pass, core, err);
}

static tg_status one_crop(tgi_preview *v, int i, tgi_err *err)
{
    memcpy(v->origin, v->place[i].at, sizeof v->origin);
    TGI_TRY(load_raw(v, err));
    if (v->at_once)
        v->result.data = v->all.data[i];
    else
        TGI_TRY(compute_crop(v, i, err));
    tgi_preview_objects_level(&v->result, v->scratch);
    tgi_picture_row(&v->picture, i, &v->raw, &v->result, v->scratch);
    const tg_progress p = {.phase = "preview",
                           .fraction = (double)(i + 1) / v->n_places,
                           .eta_seconds = -1,
                           .memory_bytes = tgi_mem_measured(),
                           .budget_bytes = v->job->plan.budget};
    if (!v->at_once || i + 1 == v->n_places)
        tgi_ctx_progress(v->job->ctx, &p);
    return TG_OK;
}

/* All crops out of one pass over the item. Then rows of the image come alone. */
static tg_status compute_all(tgi_preview *v, tgi_err *err)
{
    tgi_pass *pass = &v->all.pass;
    v->all.n = v->n_places;
    v->all.channels = v->result.channels;
    for (int i = 0; i < v->n_places; i++)
        for (int k = 0; k < 3; k++)
            v->all.core[i][k] = tgi_preview_core_of(v, k, v->place[i].at);
    TGI_TRY(tgi_preview_pass_walk(&v->all, v->item, err));
    tgi_loader_close(&pass->loader);
    pass->staging[0] = pass->staging[1] = v->staging;
    pass->staging_bytes = v->staging_bytes;
    return tgi_pass_open_loader(pass, tgi_preview_source_of(v), err);
}

/* ---- The whole --------------------------------------------------------------------------- */

/* Sizes of the panels, before any pixel. */
static void lay_panels(tgi_preview *v)
{
    const tgi_mapping *m = &v->job->map;
    const tgi_range y = tgi_preview_input_of(v, 1, 0, v->ax[1].size),
                    x = tgi_preview_input_of(v, 2, 0, v->ax[2].size);
    v->raw = (tgi_panel){.h = tgi_range_len(y),
                         .w = tgi_range_len(x),
                         .channels = tgi_range_len(m->own.channels) == 3 ? 3 : 1};
    v->result = (tgi_panel){
        .h = v->ax[1].size, .w = v->ax[2].size, .channels = m->out_channels == 3 ? 3 : 1};
    tgi_preview_objects_choose(v->job, &v->result);
    v->picture = tgi_picture_layout(TGI_PREVIEW_CROPS, &v->raw, &v->result);
}

/* Does an operator read all of the image that the network gets? */
static tg_status look_for_whole(tgi_preview *v, tgi_err *err)
{
    const tg_job *job = v->job;
    tgi_shapes s = {0};
    TGI_TRY(tgi_graph_infer(job->graph, job->in_descs, &s, err));
    const tgi_node *n =
        tgi_mapping_boxed(&job->map) ? NULL : tgi_graph_whole_node(job->graph, &s);
    v->at_once = n != NULL;
    if (n)
        tgi_ctx_log(job->ctx, TG_LOG_INFO,
                    "%s \"%.60s\" reads the whole image: all of it is computed, as by a run",
                    n->op->name, n->name);
    tgi_shapes_free(&s);
    return TG_OK;
}

/* A pass over the image is planned as that of a run. Crops that are computed alone read little of
 * it: --scratch changes nothing there. */
static tg_status plan(tgi_preview *v, tgi_err *err)
{
    tg_job *job = v->job;
    TGI_TRY(look_for_whole(v, err));
    tgi_preview_lay_axes(v);
    lay_panels(v);
    v->writer = job->set.writer;
    job->set.writer = NULL; /* the PNG is of the crops */
    if (!v->at_once) {
        v->no_scratch = job->set.scratch;
        job->set.scratch = NULL;
    }
    tgi_job_drop_plan(job); /* of something else */
    return tgi_job_plan_processor(job,
                                  (tgi_plan_ask){.remedy = v->at_once ? NULL : "a larger --ram",
                                                 .beside = v->at_once ? beside_bytes(v) : 0},
                                  err);
}

static tg_status lay_out(tgi_preview *v, tgi_err *err)
{
    int64_t at[3];
    const char *time = tgi_opts_str(v->job->opts, TGI_OPT_TIME);
    const int is_at = tgi_opts_at(v->job->opts, at);
    TGI_TRY(plan(v, err));
    v->stage = &v->job->plan.stages->one;
    v->net = v->job->plan.net;
    v->item = v->job->map.n_items / 2;
    v->slice = v->job->map.spatial == 3 ? v->ax[0].extent / 2 : 0;
    v->need = tgi_calloc(TGI_TAG_PLAN, 2 * (size_t)v->net->n_values, sizeof *v->need);
    if (!v->need)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the preview");
    if (time && is_at && at[0] >= 0)
        return tgi_fail(err, TG_E_ARG,
                        "--time and the z of --at both choose a frame: give --at y,x");
    if (time)
        TGI_TRY(tgi_preview_frame_given(v, time, err));
    if (is_at)
        TGI_TRY(tgi_preview_place_given(v, at, err));
    v->peak = v->job->plan.bytes.total;
    return v->at_once ? TG_OK : choose_tiling(v, err);
}

static tg_status open_pass(tgi_preview *v, tgi_err *err)
{
    tg_job *job = v->job;
    job->plan.bytes.output_sure = 0; /* it is not written */
    TGI_TRY(tgi_job_check_disk(job, err));
    TGI_TRY(reserve_beside(v, err));
    if (job->plan.scratch.used)
        TGI_TRY(tgi_decoded_open(job->source, TGI_JOB_READERS, &job->map, job->set.scratch,
                                 &v->decoded, err));
    return tgi_preview_pass_open(&v->all, job, tgi_preview_source_of(v), err);
}

static tg_status open_all(tgi_preview *v, tgi_err *err)
{
    const tgi_pass_end end = {.user = v, .store = store_rows, .stop = check_stop};
    TGI_TRY(lay_out(v, err));
    if (v->at_once)
        return open_pass(v, err);
    TGI_TRY(reserve_crops(v, err));
    return tgi_pass_open(&v->pass, v->job->source, &end, err);
}

static tg_status draw(tgi_preview *v, tgi_err *err)
{
    tg_job *job = v->job;
    tgi_pass *pass = pass_of(v);
    tgi_affine out;
    if (tgi_normalize_needs_stats(&job->set.normalize))
        TGI_TRY(tgi_job_stats_get(job, v->at_once ? v->reserve : pass->reserve, v->staging,
                                  v->staging_bytes, pass->sets, err));
    if (!v->n_places)
        TGI_TRY(tgi_preview_densest_places(v, err));
    tgi_picture *p = &v->picture;
    uint8_t *pixels = p->pixels;
    *p = tgi_picture_layout(v->n_places, &v->raw, &v->result);
    p->pixels = pixels;
    tgi_picture_begin(p);
    if (v->at_once)
        TGI_TRY(compute_all(v, err));
    tgi_job_turn(job, pass->sets, v->item, pass->loader, &out);
    for (int i = 0; i < v->n_places; i++)
        TGI_TRY(one_crop(v, i, err));
    TGI_TRY(tgi_input_unchanged(tgi_source_held, job->source, err));
    return tgi_png_write(job->set.output, p->pixels, p->height, p->width, p->samples,
                         (size_t)p->width * (size_t)p->samples, err);
}

static void close_all(tgi_preview *v)
{
    tgi_pass_close(&v->pass);
    tgi_pass_close(&v->all.pass);
    tgi_source_close(&v->decoded);
    tgi_reserve_close(&v->reserve);
    tgi_tiling_free(&v->tiling);
    tgi_free(v->need);
    tgi_job_drop_plan(v->job);
    if (v->writer)
        v->job->set.writer = v->writer;
    if (v->no_scratch)
        v->job->set.scratch = v->no_scratch;
}

tg_status tgi_job_preview_peak(tg_job *job, uint64_t *bytes, tgi_err *err)
{
    tgi_preview v = {.job = job};
    const tg_status st = lay_out(&v, err);
    *bytes = v.peak;
    close_all(&v);
    return st;
}

tg_status tgi_job_preview(tg_job *job, tgi_err *err)
{
    tgi_preview v = {.job = job};
    if (!job->ends->image_out)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "preview shows an image; give an image, not arrays");
    if (!job->set.output)
        return tgi_fail(err, TG_E_ARG, "the output (-o OUT.png) is missing");
    const size_t n = strlen(job->set.output);
    if (n < 4 || strcmp(job->set.output + n - 4, ".png") != 0)
        return tgi_fail(err, TG_E_ARG, "%s: a preview is a PNG: -o OUT.png", job->set.output);
    if (!job->set.overwrite && access(job->set.output, F_OK) == 0)
        return tgi_fail(err, TG_E_EXISTS, "%s exists: give -y to overwrite it",
                        job->set.output);
    if (tgi_inpaint_is(job->source))
        return tgi_inpaint_preview(job, err);
    if (tgi_job_hands_on(job))
        tgi_job_warn(job,
                     "--state: each frame is shown as a first one, with zeros handed to it");
    if (tgi_job_film_has_luma(job))
        tgi_job_warn(
            job, "the network takes one channel: the preview shows what it makes of red; a run "
                 "into a film gives it luma, if --on does not say each");
    tg_status st = open_all(&v, err);
    if (st == TG_OK)
        tgi_preview_objects_note(job, &v.result);
    if (st == TG_OK)
        st = draw(&v, err);
    close_all(&v);
    tgi_job_warn_of_surplus(job);
    return st;
}
