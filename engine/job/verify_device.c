#include "engine/job/verify_device.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/run/dense.h"
#include "engine/run/device_exec.h"

#include <stdio.h>
#include <string.h>

typedef struct passes {
    tg_job *job;
    const tg_net *net; /* the device's */
    tg_stages *stages;
    const tgi_verify_values *values; /* `other` is written, or compared with: */
    int comparing;                   /* bit by bit */
    int64_t unequal[TG_MAX_PORTS];
    char *staging[TG_MAX_PORTS][2];
    int next[TG_MAX_PORTS];
} passes;

/* ---- Pixels are numbers here ------------------------------------------------------------- */

/* A box of a dense array: rows of columns of channel planes. What is no image is one row. */
typedef struct extent {
    tg_range z, y, x;
    int64_t channels, depth, height, width;
    size_t size; /* of an element */
} extent;

static extent extent_of(const tg_net *net, int value, tg_dtype type, const tg_box *b)
{
    const tg_desc *d = &net->values[value].ext;
    const int volume = d->rank == 5;
    return (extent){.z = volume ? b->ax[2] : (tg_range){0, 1},
                    .y = b->ax[d->rank - 2],
                    .x = b->ax[d->rank - 1],
                    .channels = d->dim[1],
                    .depth = volume ? d->dim[2] : 1,
                    .height = d->dim[d->rank - 2],
                    .width = d->dim[d->rank - 1],
                    .size = tgi_dtype_size(type)};
}

/* Byte of row (z,y) of channel c in the array, from column x.lo on. */
static size_t row_at(const extent *e, int64_t c, int64_t z, int64_t y)
{
    return (size_t)(((c * e->depth + z) * e->height + y) * e->width + e->x.lo) * e->size;
}

static size_t row_bytes(const extent *e)
{
    return (size_t)tgi_range_len(e->x) * e->size;
}

static tg_status fetch(void *user, const tg_device_cell *cell, int i, const tg_box *box,
                       tg_device_pixels *px, const void **at, size_t *bytes, tgi_err *err)
{
    passes *p = user;
    (void)cell;
    (void)err;
    const extent e = extent_of(p->net, p->net->in[i], TG_DTYPE_F32, box);
    const char *src = (const char *)p->values->in[i];
    char *dst = p->staging[i][p->next[i]];
    *at = dst;
    p->next[i] = !p->next[i];
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t c = 0; c < e.channels; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++, dst += row_bytes(&e))
                memcpy(dst, src + row_at(&e, c, z, y), row_bytes(&e));
    *bytes = (size_t)(tgi_range_len(e.z) * e.channels * tgi_range_len(e.y)) * row_bytes(&e);
    *px = (tg_device_pixels){.type = TG_DTYPE_F32,
                             .channels = e.channels,
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

/* How the elements of output o come back: those of images as floats, others as they are. */
static tg_dtype out_type(const tg_net *net, int o)
{
    const tg_dtype type = net->shapes.desc[net->out[o]].dtype;
    if (!net->values[net->out[o]].flat)
        return TG_DTYPE_F32;
    return type == TG_DTYPE_BOOL ? TG_DTYPE_U8 : type; /* 0 or 1 */
}

static tg_status take(void *user, const tg_device_cell *cell, int o, const tg_box *box,
                      const void *pixels, const uint32_t *counts, tgi_err *err)
{
    passes *p = user;
    (void)cell;
    (void)counts;
    (void)err;
    const extent e = extent_of(p->net, p->net->out[o], out_type(p->net, o), box);
    const char *src = pixels;
    for (int64_t z = e.z.lo; z < e.z.hi; z++)
        for (int64_t c = 0; c < e.channels; c++)
            for (int64_t y = e.y.lo; y < e.y.hi; y++, src += row_bytes(&e)) {
                char *dst = (char *)p->values->other[o] + row_at(&e, c, z, y);
                if (p->comparing)
                    p->unequal[o] += memcmp(dst, src, row_bytes(&e)) != 0;
                else
                    memcpy(dst, src, row_bytes(&e));
            }
    return TG_OK;
}

/* ---- One pass ---------------------------------------------------------------------------- */

/* Of a band, at most. */
static size_t input_bytes(const tg_tiling *t, int i)
{
    const int v = t->net->in[i];
    const tg_slot *s = &t->slot[v];
    const int64_t rows = tgi_max(1, s->ring) * tgi_max(1, s->rows);
    return (size_t)(t->net->values[v].c * rows * tgi_max(1, s->width)) * sizeof(float);
}

static tg_device_form form_of(const tg_tiling *t)
{
    const tg_net *net = t->net;
    tg_device_form f = {0};
    for (int i = 0; i < net->n_in; i++)
        f.in[i] = (tg_device_port){.type = TG_DTYPE_F32, .bytes = input_bytes(t, i)};
    for (int o = 0; o < net->n_out; o++)
        f.out[o] = (tg_device_port){
            .type = out_type(net, o), .channels = net->values[net->out[o]].c, .together = 1};
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

static tg_status open_staging(passes *p, const tg_device_form *form, tgi_err *err)
{
    for (int i = 0; i < p->net->n_in; i++)
        for (int k = 0; k < 2; k++) {
            p->staging[i][k] = tgi_malloc(TGI_TAG_IO, form->in[i].bytes);
            if (!p->staging[i][k])
                return tgi_fail(err, TG_E_NOMEM,
                                "no memory for rows on their way to the device");
        }
    return TG_OK;
}

static void close_staging(passes *p)
{
    for (int i = 0; i < TG_MAX_PORTS; i++)
        for (int k = 0; k < 2; k++) {
            tgi_free(p->staging[i][k]);
            p->staging[i][k] = NULL;
        }
}

static tg_status run_cells(passes *p, const tg_tiling *t, tgi_err *err)
{
    const tg_job_device *d = &p->job->dev;
    const tg_device_form form = form_of(t);
    const tg_device_io io = {p, fetch, ahead, take};
    tg_device_exec *e = NULL;
    tg_status st = open_staging(p, &form, err);
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
    close_staging(p);
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

/* Each output of the device with the processor's. */
static void compare(passes *p)
{
    for (int o = 0; o < p->net->n_out; o++) {
        tg_verify_output *r = &p->job->verified[o];
        tgi_distance s = {0};
        const int64_t n = tgi_verify_distance(p->values, o, NULL, &s);
        r->device_max_abs = s.most;
        r->device_relative_l2 = tgi_distance_relative(&s);
        r->device_psnr = tgi_verify_psnr(&s, n, r);
        r->device_nonfinite = tgi_verify_nonfinite(p->values, o);
    }
}

/* A second time, in cells that the first did not have; not where there are none. */
static tg_status pass_in_thirds(passes *p, int64_t *cells, tgi_err *err)
{
    const tg_net *net = p->net;
    const int v = net->out[0];
    const int64_t thirds[3] = {0, tgi_net_dim(net, v, net->rank - 2) / 2 + 3,
                               tgi_net_dim(net, v, net->rank - 1) / 3 + 5};
    if (p->stages->one.whole_op || net->values[v].flat)
        return TG_OK;
    p->comparing = 1;
    return pass(p, thirds, cells, err);
}

static void say_what_it_was(const passes *p, int64_t tiles, tg_verify_result *out)
{
    snprintf(out->device, sizeof out->device, "%.159s", p->job->device_text);
    snprintf(out->device_precision, sizeof out->device_precision, "%s",
             tgi_job_precision(p->job));
    out->device_tiles = tiles;
    for (int o = 0; o < p->net->n_out; o++)
        p->job->verified[o].device_bit_equal = p->unequal[o] == 0;
}

tg_status tgi_verify_device(tg_job *job, const tgi_verify_values *v, tg_verify_result *out,
                            tgi_err *err)
{
    const int64_t free_cells[3] = {0, 0, 0};
    passes p = {.job = job, .values = v};
    tg_net *net = NULL;
    int64_t cells = 0, tiles = 0;
    tg_status st = tgi_job_device_open(job, err);
    if (st == TG_OK)
        st = tgi_net_new(job->graph, job->dev.ops->backend(job->dev.element),
                         tgi_verify_descs(job), tgi_job_net_flags(job), &net, err);
    p.net = net;
    if (st == TG_OK)
        st = tgi_stages_new(net, &p.stages, err);
    if (st == TG_OK)
        st = pass(&p, free_cells, &cells, err);
    if (st == TG_OK) {
        compare(&p);
        st = pass_in_thirds(&p, &tiles, err);
    }
    if (st == TG_OK)
        say_what_it_was(&p, tiles, out);
    tgi_stages_free(&p.stages);
    tgi_net_free(&net);
    return st;
}
