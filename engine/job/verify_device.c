#include "engine/job/verify_device.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/job/distance.h"
#include "engine/run/dense.h"
#include "engine/run/device_exec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct passes {
    tg_job *job;
    const tg_net *net;
    tg_stages *stages;
    const float *in;
    float *out;    /* written, or compared with: */
    int comparing; /* bit by bit */
    int64_t unequal;
    float *staging[2];
    int next;
} passes;

/* ---- Pixels are numbers here ------------------------------------------------------------- */

typedef struct extent {
    tg_range z, y, x;
    int64_t depth, height, width;
} extent;

static extent extent_of(const tg_desc *d, const tg_box *b)
{
    const int volume = d->rank == 5;
    return (extent){.z = volume ? b->ax[2] : (tg_range){0, 1},
                    .y = b->ax[d->rank - 2],
                    .x = b->ax[d->rank - 1],
                    .depth = volume ? d->dim[2] : 1,
                    .height = d->dim[d->rank - 2],
                    .width = d->dim[d->rank - 1]};
}

/* Row (z,y) of channel c of a dense array, from column x.lo on. */
static size_t row_at(const extent *e, int64_t c, int64_t z, int64_t y)
{
    return (size_t)(((c * e->depth + z) * e->height + y) * e->width + e->x.lo);
}

static tg_status fetch(void *user, const tg_device_cell *cell, int i, const tg_box *box,
                       tg_device_pixels *px, const void **at, size_t *bytes, tgi_err *err)
{
    passes *p = user;
    (void)cell;
    (void)i; /* an image is the only input */
    (void)err;
    const tg_desc *d = &p->net->shapes.desc[p->net->in[0]];
    const extent e = extent_of(d, box);
    const size_t row = (size_t)tgi_range_len(e.x) * sizeof(float);
    float *dst = p->staging[p->next];
    *at = dst;
    p->next = !p->next;
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t c = 0; c < d->dim[1]; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++, dst += tgi_range_len(e.x))
                memcpy(dst, p->in + row_at(&e, c, z, y), row);
    *bytes = (size_t)(tgi_range_len(e.z) * d->dim[1] * tgi_range_len(e.y)) * row;
    *px = (tg_device_pixels){.type = TG_DTYPE_F32,
                             .channels = d->dim[1],
                             .together = 1,
                             .rows = e.y,
                             .cols = e.x,
                             .extent = {e.depth, e.height, e.width},
                             .pad = TG_LOAD_ZERO,
                             .mul = 1};
    return TG_OK;
}

static void ahead(void *user, const tg_device_cell *cell, const tg_box *box)
{
    (void)user;
    (void)cell;
    (void)box;
}

static tg_status take(void *user, const tg_device_cell *cell, int o, const tg_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    passes *p = user;
    (void)cell;
    (void)o; /* the first is compared */
    (void)counts;
    (void)err;
    const tg_desc *d = &p->net->shapes.desc[p->net->out[0]];
    const extent e = extent_of(d, box);
    const size_t n = (size_t)tgi_range_len(e.x);
    const float *src = pixels;
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t c = 0; c < d->dim[1]; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++, src += n) {
                float *dst = p->out + row_at(&e, c, z, y);
                if (p->comparing)
                    p->unequal += memcmp(dst, src, n * sizeof *src) != 0;
                else
                    memcpy(dst, src, n * sizeof *src);
            }
    return TG_OK;
}

/* ---- One pass ---------------------------------------------------------------------------- */

static tg_device_form form_of(const tg_tiling *t)
{
    const tg_net *net = t->net;
    const tg_slot *in = &t->slot[net->in[0]];
    const int64_t n = net->values[net->in[0]].c * in->ring * in->rows * in->width;
    tg_device_form f = {0};
    f.in[0] = (tg_device_port){.type = TG_DTYPE_F32, .bytes = (size_t)n * sizeof(float)};
    f.out[0] = (tg_device_port){
        .type = TG_DTYPE_F32, .channels = net->values[net->out[0]].c, .together = 1};
    return f;
}

static size_t extra(void *user, const tg_tiling *t)
{
    const passes *p = user;
    tg_device_need need;
    const tg_device_form form = form_of(t);
    if (tgi_device_need_of(p->job->dev.ops, t, &form, &need, NULL) != TG_OK)
        return SIZE_MAX;
    return tgi_sat_add(need.block - need.arena, need.program);
}

static tg_status run_cells(passes *p, const tg_tiling *t, tgi_err *err)
{
    const tg_job_device *d = &p->job->dev;
    const tg_device_form form = form_of(t);
    const tg_device_io io = {p, fetch, ahead, take};
    tg_device_exec *e = NULL;
    tg_status st = TG_OK;
    for (int k = 0; k < 2; k++) {
        p->staging[k] = tgi_malloc(TGI_TAG_IO, form.in[0].bytes);
        if (!p->staging[k])
            st = tgi_fail(err, TG_E_NOMEM, "no memory for rows on their way to the device");
    }
    if (st == TG_OK)
        st = tgi_device_exec_open(d->ops, d->device, t, &form, &io, &e, err);
    for (int64_t k = 0; st == TG_OK && k < t->cells; k++) {
        tg_range core[3];
        const tg_device_cell cell = {.cell = k, .mul = 1};
        tgi_tiling_cell(t, k, core);
        tgi_device_exec_begin(e, &cell, core);
        for (int done = 0; st == TG_OK && !done;)
            st = tgi_device_exec_band(e, &done, err);
    }
    if (st == TG_OK)
        st = tgi_device_exec_drain(e, err);
    tgi_device_exec_close(&e);
    for (int k = 0; k < 2; k++) {
        tgi_free(p->staging[k]);
        p->staging[k] = NULL;
    }
    return st;
}

static double seconds(void *user, const tg_tiling *t)
{
    return tgi_job_device_seconds(((passes *)user)->job, t);
}

/* In the cells that the device's memory allows; `fixed` sides (0: free). */
static tg_status pass(passes *p, const int64_t fixed[3], int64_t *cells, tgi_err *err)
{
    const tg_choose_args a = {.stage = &p->stages->one,
                              .threads = p->job->set.threads,
                              .limit_bytes = p->job->dev.limit_bytes,
                              .unit = {1, 1, 1},
                              .fixed = {fixed[0], fixed[1], fixed[2]},
                              .seconds = seconds,
                              .tallest = TGI_JOB_DEVICE_TALLEST,
                              .extra = extra,
                              .user = p};
    tg_choice c;
    const tg_status st = tgi_choose(&a, &c, err);
    if (st == TG_E_BUDGET)
        return tgi_job_device_refuse(p->job, c.smallest_bytes, err);
    TGI_TRY(st);
    *cells = c.tiling.cells;
    const tg_status ran = run_cells(p, &c.tiling, err);
    tgi_tiling_free(&c.tiling);
    return ran;
}

/* Peak signal-to-noise ratio in dB, the peak being the range of the processor's result. */
static void compare(const float *device, const float *whole, size_t n, tg_verify_result *out)
{
    tgi_distance s = {0};
    for (size_t i = 0; i < n; i++)
        tgi_distance_add(&s, device[i], whole[i]);
    const double range = out->output_max - out->output_min;
    out->device_max_abs = s.most;
    out->device_relative_l2 = tgi_distance_relative(&s);
    out->device_psnr = s.squares > 0 && range > 0
                           ? 10 * log10(range * range * (double)n / s.squares)
                           : INFINITY;
}

tg_status tgi_verify_device(tg_job *job, const float *in, const float *whole, float *other,
                            tg_verify_result *out, tgi_err *err)
{
    const tg_desc *d = &job->out_desc;
    const int64_t free_cells[3] = {0, 0, 0};
    const int64_t thirds[3] = {0, d->dim[d->rank - 2] / 2 + 3, d->dim[d->rank - 1] / 3 + 5};
    passes p = {.job = job, .in = in, .out = other};
    tg_net *net = NULL;
    int64_t n = 0, cells[2] = {0, 0};
    tgi_desc_count(d, &n);
    tg_status st = tgi_job_device_open(job, err);
    if (st == TG_OK)
        st = tgi_net_new(job->graph, job->dev.ops->backend(job->dev.element), &job->in_desc,
                         tgi_job_net_flags(job), &net, err);
    p.net = net;
    if (st == TG_OK)
        st = tgi_stages_new(net, &p.stages, err);
    if (st == TG_OK)
        st = pass(&p, free_cells, &cells[0], err);
    if (st == TG_OK) {
        compare(other, whole, (size_t)n, out);
        p.comparing = 1;
        if (!p.stages->one.whole_op)
            st = pass(&p, thirds, &cells[1], err);
    }
    if (st == TG_OK) {
        snprintf(out->device, sizeof out->device, "%.159s", job->device_text);
        snprintf(out->device_precision, sizeof out->device_precision, "%s",
                 tgi_job_precision(job));
        out->device_tiles = cells[1];
        out->device_bit_equal = p.unequal == 0;
    }
    tgi_stages_free(&p.stages);
    tgi_net_free(&net);
    return st;
}
