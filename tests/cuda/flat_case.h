/* flat_case.h - a node over whole arrays on a device: its sources and results as the device
 * holds them, arrays or images, the variant that takes it, and one run. Outputs and scratch
 * hold NaN before. */
#ifndef TG_FLAT_CASE_H
#define TG_FLAT_CASE_H

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"
#include "tests/cuda/device_run.h"
#include "tests/unit/op_case.h"

#include <inttypes.h>
#include <math.h>

#define MAX_ARRAYS (TGI_OP_MAX_SRC + TGI_OP_MAX_DST)

static const tgi_device_ops *ops;
static tgi_device *device;
static int runs, image_runs; /* nodes that ran; sources and results that were images */
static unsigned kinds;       /* of variants that are allowed (TGI_KIND_*) */

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory in a test\n");
        exit(1);
    }
    return p;
}

static float *floats(size_t n)
{
    float *p = must(tgi_malloc(TGI_TAG_MISC, (n + 16) * sizeof *p));
    for (size_t i = 0; i < n + 16; i++)
        p[i] = NAN;
    return p;
}

/* ---- Arrays and images ------------------------------------------------------------------- */

/* A source or a result as the device has it. */
typedef struct held {
    tgi_desc d;
    int image;
    tgi_box box; /* of an image: what is there */
    tgi_view v;
    float *mem;
    size_t n;
} held;

static int may_be_image(const tgi_desc *d)
{
    if ((d->rank != 4 && d->rank != 5) || d->dim[0] != 1)
        return 0;
    for (int k = 1; k < d->rank; k++)
        if (d->dim[k] < 1)
            return 0;
    return 1;
}

static void hold(held *h, const tgi_desc *d, int image, const tgi_box *box, uint64_t *seed)
{
    *h = (held){.d = *d, .image = image};
    tgi_view *v = &h->v;
    if (image) {
        const int64_t c = d->dim[1], margin = tg_rand_in(seed, 0, 3);
        h->box = *box;
        *v = (tgi_view){.c = c, .cb = (int)tgi_whole_pixel(c)};
        v->x0 = tgi_box_axis(box, TGI_X).lo - margin;
        v->width = tgi_range_len(tgi_box_axis(box, TGI_X)) + 2 * margin;
        v->y_ring = tgi_range_len(tgi_box_axis(box, TGI_Y)) + tg_rand_in(seed, 0, 2);
        v->z_ring = tgi_range_len(tgi_box_axis(box, TGI_Z)) + tg_rand_in(seed, 0, 1);
        v->y_pitch = (size_t)(tgi_align_up(v->width * v->cb, 8) + 8 * tg_rand_in(seed, 0, 2));
        v->z_pitch = v->y_pitch * (size_t)v->y_ring;
        h->n = v->z_pitch * (size_t)v->z_ring;
    } else {
        *v = (tgi_view){.c = 1, .cb = 1, .y_ring = 1, .z_ring = 1};
        v->width = (int64_t)desc_floats(d);
        v->y_pitch = v->z_pitch = h->n = desc_floats(d);
    }
    v->block_pitch = h->n;
    h->mem = v->base = floats(h->n);
}

/* fn(element of the image, element of the dense array or NULL for an unused lane) for the box.
 */
static int each_lane(const held *h, float *dense, int (*fn)(float *at, float *dense))
{
    const tgi_range rz = tgi_box_axis(&h->box, TGI_Z), ry = tgi_box_axis(&h->box, TGI_Y),
                    rx = tgi_box_axis(&h->box, TGI_X);
    const int64_t D = tgi_desc_axis(&h->d, TGI_Z), H = tgi_desc_axis(&h->d, TGI_Y),
                  W = tgi_desc_axis(&h->d, TGI_X);
    int good = 1;
    for (int64_t c = 0; c < h->v.cb; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = rx.lo; x < rx.hi; x++)
                    good &= fn(tgi_view_at(&h->v, 0, z, y, x) + c,
                               c < h->v.c ? dense + ((c * D + z) * H + y) * W + x : NULL);
    return good;
}

static int put_lane(float *at, float *dense)
{
    *at = dense ? *dense : 0.0f;
    return 1;
}

static int take_lane(float *at, float *dense)
{
    const float v = *at;
    *at = NAN;
    if (dense)
        *dense = v;
    return dense || v == 0.0f;
}

static void fill(held *h, float *dense)
{
    if (h->image)
        each_lane(h, dense, put_lane);
    else
        memcpy(h->mem, dense, h->n * sizeof *dense);
}

/* 0: something outside of the box was written, or an unused lane is not zero. */
static int take(held *h, float *dense)
{
    int clean = 1;
    if (!h->image) {
        memcpy(dense, h->mem, h->n * sizeof *dense);
        return isnan(h->mem[h->n]) != 0; /* one more is there */
    }
    clean &= each_lane(h, dense, take_lane);
    for (size_t i = 0; i < h->n; i++)
        clean &= isnan(h->mem[i]) != 0;
    return clean;
}

/* ---- One node on the device -------------------------------------------------------------- */

typedef struct flat_node {
    op_node *n;
    tgi_op_ctx ctx;
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    const tgi_kernel_set *be;
    const tgi_variant *v;
    tgi_layout_hint lay;
    char *packed;
    size_t packed_bytes, scratch_bytes;
    held src[TGI_OP_MAX_SRC], dst[TGI_OP_MAX_DST];
    tgi_operand op[TGI_OP_MAX_SRC];
    tgi_view out[TGI_OP_MAX_DST];
    tgi_box boxes[TGI_OP_MAX_DST];
} flat_node;

static int is_activation(const flat_node *f, int i)
{
    return f->n->data[i] && !f->consts[i];
}

static void mark_images(flat_node *f, uint64_t *seed)
{
    for (int i = 0; i < f->ctx.n_src; i++)
        if (is_activation(f, i) && !(may_be_image(&f->n->src[i]) && tg_rand_in(seed, 0, 1)))
            f->ctx.flat_src |= 1u << i;
    for (int d = 0; d < f->ctx.n_dst; d++)
        if (!(may_be_image(&f->n->dst[d]) && tg_rand_in(seed, 0, 1)))
            f->ctx.flat_dst |= 1u << d;
}

/* As the planner does: the dense copies of images, then what the variant wants. */
static size_t scratch_of(const flat_node *f)
{
    size_t bytes = 0;
    const size_t element = device_element_bytes(f->be->element);
    for (int i = 0; i < f->ctx.n_src; i++)
        if (is_activation(f, i) && !(f->ctx.flat_src >> i & 1u))
            bytes += tgi_align_size(desc_floats(&f->n->src[i]) * element, 64);
    for (int d = 0; d < f->ctx.n_dst; d++)
        if (!(f->ctx.flat_dst >> d & 1u))
            bytes += tgi_align_size(desc_floats(&f->n->dst[d]) * element, 64);
    return bytes + (f->v->scratch_bytes ? f->v->scratch_bytes(&f->ctx, &f->lay, 0, 1) : 0);
}

/* 0: no variant takes the node. */
static int pick(flat_node *f)
{
    f->lay = (tgi_layout_hint){
        .lanes = f->be->lanes, .flat = 1, .kinds = kinds, .n_src = f->ctx.n_src};
    for (int i = 0; i < f->ctx.n_src; i++)
        if (is_activation(f, i)) {
            const int flat = (int)(f->ctx.flat_src >> i & 1u);
            f->lay.src_segs[i] = 1;
            f->lay.seg_c[i][0] = flat ? 1 : f->n->src[i].dim[1];
        }
    f->v = tgi_variant_pick(f->be, f->n->op->name, &f->ctx, &f->lay);
    if (!f->v)
        return 0;
    f->packed_bytes = f->v->packed_bytes ? f->v->packed_bytes(&f->ctx, &f->lay) : 0;
    f->packed = must(tgi_malloc(TGI_TAG_MISC, f->packed_bytes + 1));
    memset(f->packed, 0xff, f->packed_bytes);
    if (f->packed_bytes)
        f->v->pack(&f->ctx, &f->lay, f->packed);
    f->scratch_bytes = scratch_of(f);
    return 1;
}

static void fill_from(held *h, const tgi_constant *c)
{
    float *dense = floats(desc_floats(&h->d));
    for (size_t i = 0; i < desc_floats(&h->d); i++)
        dense[i] = (float)tgi_num_at(c, (int64_t)i);
    fill(h, dense);
    tgi_free(dense);
}

static void lay_out(flat_node *f, uint64_t *seed)
{
    for (int i = 0; i < f->ctx.n_src; i++) {
        if (!is_activation(f, i))
            continue;
        const int image = !(f->ctx.flat_src >> i & 1u);
        const tgi_box all = tgi_box_full(&f->n->src[i]);
        hold(&f->src[i], &f->n->src[i], image, &all, seed);
        fill_from(&f->src[i], &f->n->cst[i]);
        f->op[i] = (tgi_operand){1, &f->src[i].v};
        image_runs += image;
    }
    for (int d = 0; d < f->ctx.n_dst; d++) {
        const int image = !(f->ctx.flat_dst >> d & 1u);
        if (image) {
            f->boxes[d] = box_random(&f->n->dst[d], seed);
        } else { /* a row, as the planner sees it */
            f->boxes[d] = (tgi_box){.rank = 4};
            for (int k = 0; k < 4; k++)
                f->boxes[d].ax[k] = (tgi_range){0, 1};
            f->boxes[d].ax[3].hi = (int64_t)desc_floats(&f->n->dst[d]);
        }
        hold(&f->dst[d], &f->n->dst[d], image, &f->boxes[d], seed);
        f->out[d] = f->dst[d].v;
        image_runs += image;
    }
}

static void release(flat_node *f)
{
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        tgi_free(f->src[i].mem);
    for (int d = 0; d < TGI_OP_MAX_DST; d++)
        tgi_free(f->dst[d].mem);
    tgi_free(f->packed);
}

#ifdef TG_TEST_EMULATED
/* A program's launches are made once, without addresses and with nothing to do. */
static void check_at_rest(const flat_node *f, const tgi_call *band)
{
    flat_node rest = *f;
    tgi_call call = *band, same = *band;
    int n = 0, n_rest = 0;
    for (int i = 0; i < f->ctx.n_src; i++) {
        rest.src[i].v = (tgi_view){.c = f->src[i].v.c, .cb = f->src[i].v.cb};
        rest.op[i].seg = &rest.src[i].v;
    }
    for (int d = 0; d < f->ctx.n_dst; d++)
        rest.out[d] = (tgi_view){.c = f->out[d].c, .cb = f->out[d].cb};
    call.src = rest.op;
    call.dst = rest.out;
    call.boxes = NULL;
    call.packed = NULL;
    for (int k = 0; k < call.box.rank; k++)
        call.box.ax[k] = (tgi_range){0, 0};
    same.scratch = &same; /* some address: nothing runs */
    const uint64_t in_band = device_launches(f->v, &same, &n);
    tg_checks++;
    if (device_launches(f->v, &call, &n_rest) != in_band || n != n_rest || n < 1)
        case_complain("its launches are others at rest than in a band");
}
#endif

static tg_status compute(flat_node *f, tgi_err *err)
{
    device_block blocks[MAX_ARRAYS];
    int n = 0;
    for (int i = 0; i < f->ctx.n_src; i++)
        if (f->src[i].mem)
            blocks[n++] = (device_block){f->src[i].mem, f->src[i].n + 1, 0};
    for (int d = 0; d < f->ctx.n_dst; d++)
        blocks[n++] = (device_block){f->dst[d].mem, f->dst[d].n + 1, 1};
    const tgi_call call = {.ctx = &f->ctx,
                           .src = f->op,
                           .dst = f->out,
                           .box = f->boxes[0],
                           .boxes = f->boxes,
                           .packed = f->packed};
#ifdef TG_TEST_EMULATED
    check_at_rest(f, &call);
#endif
    return device_run_scratch(ops, device, f->be, f->v, &call, f->packed_bytes,
                              f->scratch_bytes, 0, blocks, n, err);
}

/* ---- What is expected -------------------------------------------------------------------- */

/* Results of `eval` as floats, one array each. */
static int reference(const flat_node *f, float **want)
{
    void *data[TGI_OP_MAX_DST];
    const tgi_constant *all[TGI_OP_MAX_SRC];
    tgi_op_ctx ctx = f->ctx;
    tgi_err err = {0};
    for (int i = 0; i < ctx.n_src; i++)
        all[i] = f->n->data[i] ? &f->n->cst[i] : NULL;
    ctx.const_src = all;
    for (int d = 0; d < ctx.n_dst; d++)
        data[d] = must(tgi_calloc(TGI_TAG_MISC, desc_floats(&f->n->dst[d]) + 1,
                                  tgi_dtype_size(f->n->dst[d].dtype)));
    const tg_status st = f->n->op->eval(&ctx, data, &err);
    for (int d = 0; d < ctx.n_dst; d++) {
        const tgi_constant c = {f->n->dst[d], data[d]};
        want[d] = floats(desc_floats(&f->n->dst[d]));
        for (size_t i = 0; st == TG_OK && i < desc_floats(&f->n->dst[d]); i++)
            want[d][i] = (float)tgi_num_at(&c, (int64_t)i);
        tgi_free(data[d]);
    }
    return st == TG_OK;
}

/* Which elements of an image the box has; NULL: all of them. */
static int *inside(const held *h)
{
    if (!h->image)
        return NULL;
    int *there = must(tgi_calloc(TGI_TAG_MISC, desc_floats(&h->d) + 1, sizeof *there));
    int64_t at[TGI_MAX_RANK] = {0};
    for (size_t i = 0; i < desc_floats(&h->d); i++) {
        int in = 1;
        for (int k = 2; k < h->d.rank; k++)
            in &= at[k] >= h->box.ax[k].lo && at[k] < h->box.ax[k].hi;
        there[i] = in;
        for (int k = h->d.rank - 1; k >= 0 && ++at[k] == h->d.dim[k]; k--)
            at[k] = 0;
    }
    return there;
}

#endif
