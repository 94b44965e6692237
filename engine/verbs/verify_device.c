/* verify_device.c - runs an item on the device under two cuts and compares the results. */
#include "engine/verbs/verify_device.h"
#include "engine/job/device_kinds.h"
#include "engine/job/ends.h"
#include "engine/job/job_device.h"
#include "engine/job/pass.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/exec/dense.h"

#include <stdio.h>
#include <string.h>

struct tgi_verify_device {
    tgi_net *net;
    tgi_stages *stages;
    tgi_tiling tiling[2]; /* in the memory there is; in other cells, where there are some */
    int n;
};

typedef struct passes {
    tg_job *job;
    const tgi_net *net;              /* the device's */
    const tgi_verify_values *values; /* `other` is written, or compared with: */
    int comparing;                   /* bit by bit */
    int64_t unequal[TGI_MAX_PORTS];
    char *staging[TGI_MAX_PORTS][2];
    int next[TGI_MAX_PORTS];
} passes;

/* ---- Pixels are numbers here ------------------------------------------------------------- */

/* A box of a dense array: rows of columns of channel planes. What is no image is one row. */
typedef struct extent {
    tgi_range z, y, x;
    int64_t channels, depth, height, width;
    size_t size; /* of an element */
} extent;

static extent extent_of(const tgi_net *net, int value, tg_dtype type, const tgi_box *b)
{
    const tgi_desc *d = &net->values[value].ext;
    const int volume = d->rank == 5;
    return (extent){.z = volume ? b->ax[2] : (tgi_range){0, 1},
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

static tg_status fetch(void *user, const tgi_device_cell *cell, int i, const tgi_box *box,
                       tgi_device_pixels *px, const void **at, size_t *bytes, tgi_err *err)
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
    *px = (tgi_device_pixels){.type = TG_DTYPE_F32,
                              .channels = e.channels,
                              .together = 1,
                              .rows = e.y,
                              .cols = e.x,
                              .extent = {e.depth, e.height, e.width},
                              .pad = TGI_LOAD_ZERO,
                              .mul = 1};
    return TG_OK;
}

static void ahead(void *user, const tgi_device_cell *cell, const tgi_box *box)
{
    (void)user;
    (void)cell;
    (void)box;
}

/* How the elements of output o come back: those of images as floats, others as they are. */
static tg_dtype out_type(const tgi_net *net, int o)
{
    const tg_dtype type = net->shapes.desc[net->out[o]].dtype;
    if (!net->values[net->out[o]].flat)
        return TG_DTYPE_F32;
    return type == TG_DTYPE_BOOL ? TG_DTYPE_U8 : type; /* 0 or 1 */
}

static tg_status take(void *user, const tgi_device_cell *cell, int o, const tgi_box *box,
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

/* ---- Run --------------------------------------------------------------------------------- */

/* Of a band, at most. */
static size_t input_bytes(const tgi_tiling *t, int i)
{
    const int v = t->net->in[i];
    const tgi_slot *s = &t->slot[v];
    const int64_t rows = tgi_max(1, s->ring) * tgi_max(1, s->rows);
    return (size_t)(t->net->values[v].c * rows * tgi_max(1, s->width)) * sizeof(float);
}

static tgi_device_form form_of(const tgi_tiling *t)
{
    const tgi_net *net = t->net;
    tgi_device_form f = {0};
    for (int i = 0; i < net->n_in; i++)
        f.in[i] = (tgi_device_port){.type = TG_DTYPE_F32, .bytes = input_bytes(t, i)};
    for (int o = 0; o < net->n_out; o++)
        f.out[o] = (tgi_device_port){
            .type = out_type(net, o), .channels = net->values[net->out[o]].c, .together = 1};
    return f;
}

static tg_status open_staging(passes *p, const tgi_device_form *form, tgi_err *err)
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
    for (int i = 0; i < TGI_MAX_PORTS; i++)
        for (int k = 0; k < 2; k++) {
            tgi_free(p->staging[i][k]);
            p->staging[i][k] = NULL;
        }
}

static tg_status run_cells(passes *p, const tgi_tiling *t, tgi_err *err)
{
    const tgi_device_form form = form_of(t);
    const tgi_device_io io = {.user = p, .fetch = fetch, .ahead = ahead, .take = take};
    tgi_pass pass = {0};
    tg_status st = open_staging(p, &form, err);
    if (st == TG_OK)
        st = tgi_pass_take_device(&pass, p->job, t, &form, &io, err);
    if (st == TG_OK)
        st = tgi_pass_walk(&pass, err);
    tgi_pass_close(&pass);
    close_staging(p);
    return st;
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

static void say_what_it_was(const passes *p, int64_t tiles, tg_verify_result *out)
{
    snprintf(out->device, sizeof out->device, "%.159s", p->job->device_text);
    snprintf(out->device_precision, sizeof out->device_precision, "%s",
             tgi_job_precision(p->job));
    out->device_tiles = tiles;
    for (int o = 0; o < p->net->n_out; o++)
        p->job->verified[o].device_bit_equal = p->unequal[o] == 0;
}

tg_status tgi_verify_device_run(tg_job *job, const tgi_verify_device *d,
                                const tgi_verify_values *v, tg_verify_result *out, tgi_err *err)
{
    passes p = {.job = job, .net = d->net, .values = v};
    TGI_TRY(tgi_job_device_open(job, err));
    TGI_TRY(run_cells(&p, &d->tiling[0], err));
    compare(&p);
    p.comparing = 1;
    if (d->n > 1)
        TGI_TRY(run_cells(&p, &d->tiling[1], err));
    say_what_it_was(&p, d->n > 1 ? d->tiling[1].cells : 0, out);
    return TG_OK;
}

/* ---- Plan -------------------------------------------------------------------------------- */

static tg_status need_of(const tg_job *job, const tgi_tiling *t, tgi_device_need *out)
{
    const tgi_device_form form = form_of(t);
    return tgi_device_need_of(job->dev.ops, t, &form, out, NULL);
}

static size_t extra(void *user, const tgi_tiling *t)
{
    tgi_device_need need;
    return need_of(user, t, &need) == TG_OK ? tgi_sat_add(need.block - need.arena, need.program)
                                            : SIZE_MAX;
}

/* In the cells that the device's memory allows; `fixed` sides (0: free). TG_E_BUDGET: nothing
 * fits less than *least. */
static tg_status choose(tg_job *job, tgi_verify_device *d, const int64_t fixed[3],
                        size_t *least)
{
    const tgi_choose_args a = {.stage = &d->stages->one,
                               .threads = job->set.threads,
                               .limit_bytes = job->dev.limit_bytes,
                               .unit = {1, 1, 1},
                               .fixed = {fixed[0], fixed[1], fixed[2]},
                               .seconds = tgi_job_device_seconds,
                               .tallest = TGI_JOB_DEVICE_TALLEST,
                               .extra = extra,
                               .user = job};
    tgi_device_need need;
    tgi_choice c;
    tg_status st = tgi_choose(&a, &c, NULL);
    *least = c.smallest_bytes;
    if (st != TG_OK)
        return st;
    d->tiling[d->n++] = c.tiling;
    st = need_of(job, &c.tiling, &need);
    if (st == TG_OK && need.block + need.program > job->dev.need.block + job->dev.need.program)
        job->dev.need = need;
    job->device_peak = tgi_job_device_planned(job);
    return st;
}

/* Cells that the first pass did not have, as large as fit; not where there are none. */
static tg_status choose_others(tg_job *job, tgi_verify_device *d)
{
    const tgi_net *net = d->net;
    const int v = net->out[0];
    int64_t h = tgi_net_dim(net, v, net->rank - 2) / 2 + 3,
            w = tgi_net_dim(net, v, net->rank - 1) / 3 + 5;
    tg_status st = TG_E_BUDGET;
    size_t least;
    if (d->stages->one.whole_op || net->values[v].flat)
        return TG_OK;
    for (; st == TG_E_BUDGET && h > 0 && w > 0; h /= 2, w /= 2) {
        const int64_t fixed[3] = {0, h, w};
        st = choose(job, d, fixed, &least);
    }
    return st == TG_E_BUDGET ? TG_OK : st;
}

static tg_status plan(tg_job *job, tgi_verify_device *d, tgi_err *err)
{
    const int64_t free_cells[3] = {0, 0, 0};
    size_t least;
    TGI_TRY(tgi_job_device_see(job, 1, err));
    TGI_TRY(tgi_net_new(job->graph, job->dev.ops->backend(job->dev.element),
                        job->ends->shapes(job), tgi_job_net_flags(job), &d->net, err));
    TGI_TRY(tgi_stages_new(d->net, &d->stages, err));
    tg_status st = choose(job, d, free_cells, &least);
    if (st == TG_E_BUDGET)
        return tgi_job_device_refuse(job, least, err);
    if (st == TG_OK)
        st = choose_others(job, d);
    return st == TG_OK ? st : tgi_fail(err, st, "no memory to plan for %s", job->device_text);
}

tg_status tgi_verify_device_plan(tg_job *job, tgi_verify_device **out, tgi_err *err)
{
    *out = tgi_calloc(TGI_TAG_PLAN, 1, sizeof **out);
    if (!*out)
        return tgi_fail(err, TG_E_NOMEM, "no memory to plan for %s", job->device_text);
    const tg_status st = plan(job, *out, err);
    if (st != TG_OK)
        tgi_verify_device_free(out);
    return st;
}

void tgi_verify_device_free(tgi_verify_device **dp)
{
    tgi_verify_device *d = *dp;
    if (!d)
        return;
    for (int i = 0; i < d->n; i++)
        tgi_tiling_free(&d->tiling[i]);
    tgi_stages_free(&d->stages);
    tgi_net_free(&d->net);
    tgi_free(d);
    *dp = NULL;
}
