/* Kernels of the device with what stands behind them: the lines `exact` of tests/cases, and
 * larger shapes, in float32, float16 and bfloat16, with random epilogues.
 *
 * Operands lie as the device keeps them: whole pixels, unused lanes zero, rows in rings, NaN in
 * whatever `need` does not name and outside of the image. For each case
 *
 *   near      the whole result is near the reference, computed from the same (rounded) numbers:
 *             within 1e-5 of the value and of the image's RMS in float32; 1e-3 and 5e-3 in
 *             float16; 4e-3 (2^-8) and 2e-3 in bfloat16
 *   tile      boxes have the bits of the whole
 *   clean     nothing outside of the box is written, unused lanes are zero
 *   rest      what is launched follows from shapes and call.most alone (emulated device)
 *
 * and all again with a random epilogue behind the node.
 * (test_cuda_ops runs the same lines without epilogues.) Usage: test_cuda_chains [SYMBOL]. */
#include "tests/cuda/device_run.h"
#include "tests/cuda/near.h"
#include "tests/plain_step.h"
#include "tests/unit/op_case.h"

#include "kernels/ops/op_shared.h"

#include <math.h>

#define MAX_VIEWS 4
#define MAX_STEPS 7
#define MAX_EXTRA 2

static const tgi_device_ops *ops;
static tgi_device *device;
static int runs, epilogue_runs, by_groups;

/* ---- Views of the device ----------------------------------------------------------------- */

typedef struct dev_view {
    tgi_view v;
    float *mem;
    size_t floats;
} dev_view;

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory in a test\n");
        exit(1);
    }
    return p;
}

/* Room for `box` of c channels as whole pixels, all NaN. */
static void dev_open(dev_view *d, const tgi_desc *full, int64_t c, const tgi_box *box,
                     uint64_t *seed)
{
    const tgi_box in = tgi_box_clip(*box, full);
    const int64_t margin = tg_rand_in(seed, 0, 3);
    tgi_view *v = &d->v;
    *v = (tgi_view){.c = c, .cb = (int)tgi_whole_pixel(c)};
    v->x0 = tgi_box_axis(box, TGI_X).lo - margin;
    v->width = tgi_range_len(tgi_box_axis(box, TGI_X)) + 2 * margin;
    v->y_ring = tgi_max(1, tgi_range_len(tgi_box_axis(&in, TGI_Y))) + tg_rand_in(seed, 0, 2);
    v->z_ring = tgi_max(1, tgi_range_len(tgi_box_axis(&in, TGI_Z))) + tg_rand_in(seed, 0, 1);
    v->y_pitch = (size_t)(tgi_align_up(v->width * v->cb, 8) + 8 * tg_rand_in(seed, 0, 2));
    v->z_pitch = v->y_pitch * (size_t)v->y_ring;
    v->block_pitch = v->z_pitch * (size_t)v->z_ring;
    d->floats = v->block_pitch;
    d->mem = must(tgi_malloc(TGI_TAG_MISC, d->floats * sizeof *d->mem));
    for (size_t i = 0; i < d->floats; i++)
        d->mem[i] = NAN;
    v->base = d->mem;
}

static size_t dense_at(const tgi_desc *d, int64_t c, int64_t z, int64_t y, int64_t x)
{
    return (size_t)(((c * tgi_desc_axis(d, TGI_Z) + z) * tgi_desc_axis(d, TGI_Y) + y) *
                        tgi_desc_axis(d, TGI_X) +
                    x);
}

typedef int (*pixel_fn)(const tgi_desc *d, const tgi_view *v, float *dense, int64_t c0,
                        const int64_t at[3]);

/* fn for every pixel of the box; 1 when it is 1 for all. */
static int each_pixel(const tgi_desc *d, const tgi_view *v, float *dense, int64_t c0,
                      const tgi_box *box, pixel_fn fn)
{
    const tgi_range rz = tgi_box_axis(box, TGI_Z), ry = tgi_box_axis(box, TGI_Y),
                    rx = tgi_box_axis(box, TGI_X);
    int good = 1;
    for (int64_t z = rz.lo; z < rz.hi; z++)
        for (int64_t y = ry.lo; y < ry.hi; y++)
            for (int64_t x = rx.lo; x < rx.hi; x++)
                good &= fn(d, v, dense, c0, (const int64_t[3]){z, y, x});
    return good;
}

static int fill_pixel(const tgi_desc *d, const tgi_view *v, float *dense, int64_t c0,
                      const int64_t at[3])
{
    float *p = tgi_view_at(v, 0, at[0], at[1], at[2]);
    for (int64_t c = 0; c < v->cb; c++)
        p[c] = c < v->c ? dense[dense_at(d, c0 + c, at[0], at[1], at[2])] : 0.0f;
    return 1;
}

/* Out of the view into dense data, NaN stays behind; 0: an unused lane is not zero. */
static int take_pixel(const tgi_desc *d, const tgi_view *v, float *dense, int64_t c0,
                      const int64_t at[3])
{
    float *p = tgi_view_at(v, 0, at[0], at[1], at[2]);
    int zero = 1;
    for (int64_t c = 0; c < v->cb; c++) {
        if (c < v->c)
            dense[dense_at(d, c0 + c, at[0], at[1], at[2])] = p[c];
        else
            zero &= p[c] == 0.0f;
        p[c] = NAN;
    }
    return zero;
}

static int all_poison(const dev_view *v)
{
    for (size_t i = 0; i < v->floats; i++)
        if (!isnan(v->mem[i]))
            return 0;
    return 1;
}

/* ---- One node on the device -------------------------------------------------------------- */

typedef struct dev_node {
    const op_node *n;
    const tgi_kernel_set *be;
    const tgi_variant *v;
    tg_dtype t;
    tgi_layout_hint lay;
    tgi_epi_step epi[MAX_STEPS];
    int n_epi, n_extra;
    float *extra[MAX_EXTRA]; /* operands of the epilogue, of dst's shape */
    float *vec[MAX_STEPS];
    char *packed;
    size_t packed_size, scratch_size;
} dev_node;

/* c channels in up to three segments, often at multiples of 8. */
static int cut(int64_t c, int64_t *seg_c, uint64_t *seed)
{
    const int most = (int)tg_rand_in(seed, 1, 3), even = (int)tg_rand_in(seed, 0, 1);
    int k = 0;
    for (int64_t at = 0; at < c; at += seg_c[k++]) {
        int64_t n = k + 1 >= most ? c - at : tg_rand_in(seed, 1, c - at);
        if (even && n < c - at)
            n = tgi_min(tgi_align_up(n, 8), c - at);
        seg_c[k] = n;
    }
    return k;
}

/* Every second time the one by groups of warps, whatever it costs, where the device has it and
 * it takes the node; else the cheapest. */
static const tgi_variant *dev_choose(const dev_node *d)
{
    static unsigned turn;
    device_generation(90);
    for (const tgi_variant *const *v = d->be->variants; *v; v++)
        if ((*v)->kinds & device_kinds() & TGI_KIND_WGMMA &&
            strcmp((*v)->op, d->n->op->name) == 0 && (*v)->accepts(&d->n->ctx, &d->lay) &&
            turn++ % 2 == 0) {
            by_groups++;
            return *v;
        }
    device_generation(80);
    return tgi_variant_pick(d->be, d->n->op->name, &d->n->ctx, &d->lay);
}

/* 0: no variant takes the node. */
static int dev_pick(dev_node *d, uint64_t *seed)
{
    const op_node *n = d->n;
    d->lay = (tgi_layout_hint){.lanes = d->be->lanes, .n_src = n->ctx.n_src};
    for (int i = 0; i < n->ctx.n_src; i++)
        if (!n->is_const[i] && n->data[i]) {
            d->lay.src_segs[i] = cut(n->src[i].dim[1], d->lay.seg_c[i], seed);
            d->lay.src_cb[i] = (int)tgi_whole_pixel(n->src[i].dim[1]);
        }
    d->lay.dst_cb = (int)tgi_whole_pixel(n->dst[0].dim[1]);
    d->lay.epi = d->epi;
    d->lay.n_epi = d->n_epi;
    d->v = dev_choose(d);
    if (!d->v)
        return 0;
    d->packed_size = d->v->packed_bytes ? d->v->packed_bytes(&n->ctx, &d->lay) : 0;
    d->scratch_size =
        d->v->scratch_bytes
            ? d->v->scratch_bytes(&n->ctx, &d->lay, tgi_desc_axis(&n->dst[0], TGI_X), 1)
            : 0;
    d->packed = must(tgi_malloc(TGI_TAG_MISC, d->packed_size + 1));
    if (d->packed_size)
        d->v->pack(&n->ctx, &d->lay, d->packed);
    return 1;
}

static void dev_close(dev_node *d)
{
    tgi_free(d->packed);
    for (int i = 0; i < MAX_EXTRA; i++)
        tgi_free(d->extra[i]);
    for (int i = 0; i < MAX_STEPS; i++)
        tgi_free(d->vec[i]);
}

static tgi_box need_of(const dev_node *d, int i, const tgi_box *box)
{
    const op_node *n = d->n;
    tgi_box hull = {0};
    for (int k = 0; k < n->ctx.n_dst; k++) {
        const tgi_box b = box_of_output(n, k, box);
        tgi_box need;
        tgi_variant_need(d->v, n->op, &n->ctx, k, &b, i, &need);
        hull = k ? tgi_box_hull(&hull, &need) : need;
    }
    return hull;
}

typedef struct dev_run {
    dev_view in[TGI_OP_MAX_SRC + MAX_EXTRA][MAX_VIEWS], out[TGI_OP_MAX_DST];
    tgi_view segs[TGI_OP_MAX_SRC + MAX_EXTRA][MAX_VIEWS], outs[TGI_OP_MAX_DST];
    tgi_operand src[TGI_OP_MAX_SRC + MAX_EXTRA];
} dev_run;

static void open_operand(dev_run *r, int i, const tgi_desc *full, float *dense,
                         const tgi_box *need, int n_seg, const int64_t *seg_c, uint64_t *seed)
{
    const tgi_box in = tgi_box_clip(*need, full);
    int64_t at = 0;
    for (int k = 0; k < n_seg; at += seg_c[k++]) {
        dev_open(&r->in[i][k], full, seg_c[k], need, seed);
        each_pixel(full, &r->in[i][k].v, dense, at, &in, fill_pixel);
        r->segs[i][k] = r->in[i][k].v;
    }
    r->src[i] = (tgi_operand){n_seg, r->segs[i]};
}

static void dev_run_open(dev_run *r, const dev_node *d, const tgi_box *box, uint64_t *seed)
{
    const op_node *n = d->n;
    int64_t seg_c[MAX_VIEWS];
    memset(r, 0, sizeof *r);
    for (int i = 0; i < n->ctx.n_src; i++) {
        if (n->is_const[i] || !n->data[i])
            continue;
        const tgi_box need = need_of(d, i, box);
        open_operand(r, i, &n->src[i], n->data[i], &need, d->lay.src_segs[i], d->lay.seg_c[i],
                     seed);
    }
    for (int i = 0; i < d->n_extra; i++) {
        const int n_seg = cut(n->dst[0].dim[1], seg_c, seed);
        open_operand(r, n->ctx.n_src + i, &n->dst[0], d->extra[i], box, n_seg, seg_c, seed);
    }
    for (int k = 0; k < n->ctx.n_dst; k++) {
        const tgi_box b = box_of_output(n, k, box);
        dev_open(&r->out[k], &n->dst[k], n->dst[k].dim[1], &b, seed);
        r->outs[k] = r->out[k].v;
    }
}

/* The blocks that views lie in, sources first. */
static int blocks_of(const dev_run *r, const dev_node *d, device_block *blocks)
{
    int n = 0;
    for (int i = 0; i < d->n->ctx.n_src + d->n_extra; i++)
        for (int k = 0; k < r->src[i].n_seg; k++)
            blocks[n++] = (device_block){r->in[i][k].mem, r->in[i][k].floats, 0};
    for (int k = 0; k < d->n->ctx.n_dst; k++)
        blocks[n++] = (device_block){r->out[k].mem, r->out[k].floats, 1};
    return n;
}

#ifdef TG_TEST_EMULATED
/* A program's launches are made once, at rest: without addresses, from call.most alone. Those
 * of a band have to be the same. */
static void check_at_rest(const dev_node *d, const tgi_call *band, const dev_run *r)
{
    dev_run rest = *r;
    tgi_call call = *band;
    tgi_epi_step epi[MAX_STEPS];
    int n = 0, n_rest = 0;
    for (int i = 0; i < d->n->ctx.n_src + d->n_extra; i++) {
        rest.src[i].seg = rest.segs[i];
        for (int k = 0; k < rest.src[i].n_seg; k++)
            rest.segs[i][k] = (tgi_view){.c = rest.segs[i][k].c, .cb = rest.segs[i][k].cb};
    }
    for (int k = 0; k < d->n->ctx.n_dst; k++)
        rest.outs[k] = (tgi_view){.c = rest.outs[k].c, .cb = rest.outs[k].cb};
    for (int i = 0; i < d->n_epi; i++) {
        epi[i] = d->epi[i];
        epi[i].vec = NULL;
    }
    call.src = rest.src;
    call.dst = rest.outs;
    call.epi = epi;
    call.packed = NULL;
    for (int k = 2; k < call.box.rank; k++) {
        call.box.ax[k] = (tgi_range){0, 0};
        call.most[k] = tgi_range_len(band->box.ax[k]) + 2;
    }
    tgi_call same = *band;
    memcpy(same.most, call.most, sizeof same.most);
    same.scratch = same.most; /* some address: nothing runs */
    const uint64_t in_band = device_launches(d->v, &same, &n);
    tg_checks++;
    if (device_launches(d->v, &call, &n_rest) != in_band || n != n_rest || n < 1)
        case_complain("its launches are others at rest than in a band");
}
#endif

/* Compute a box of all outputs into dense arrays; 1: clean. */
static int dev_box(const dev_node *d, const tgi_box *box, float *const *dst, uint64_t *seed)
{
    const op_node *n = d->n;
    device_block blocks[(TGI_OP_MAX_SRC + MAX_EXTRA) * MAX_VIEWS + TGI_OP_MAX_DST];
    tgi_err err = {0};
    dev_run r;
    dev_run_open(&r, d, box, seed);
    const tgi_call call = {.ctx = &n->ctx,
                           .src = r.src,
                           .dst = r.outs,
                           .box = *box,
                           .epi = d->epi,
                           .n_epi = d->n_epi,
                           .packed = d->packed};
    const int count = blocks_of(&r, d, blocks);
#ifdef TG_TEST_EMULATED
    check_at_rest(d, &call, &r);
#endif
    const tg_status st =
        device_run_scratch(ops, device, d->be, d->v, &call, d->packed_size, d->scratch_size,
                           tg_rand_in(seed, 0, 2), blocks, count, &err);
    CHECK_OK(st, err);
    int clean = st == TG_OK;
    for (int k = 0; k < n->ctx.n_dst; k++) {
        const tgi_box b = box_of_output(n, k, box);
        clean &= each_pixel(&n->dst[k], &r.outs[k], dst[k], 0, &b, take_pixel);
        clean &= all_poison(&r.out[k]);
    }
    for (int i = 0; i < count; i++)
        tgi_free(blocks[i].at);
    return clean;
}

/* ---- Epilogues --------------------------------------------------------------------------- */

static float *random_floats(size_t n, float lo, float hi, uint64_t *seed)
{
    float *p = must(tgi_malloc(TGI_TAG_MISC, n * sizeof *p));
    for (size_t i = 0; i < n; i++)
        p[i] = lo + (hi - lo) * (0.5f + 0.5f * tg_rand_unit(seed));
    return p;
}

/* A vector of the epilogue: padded with zeros. */
static float *random_vec(dev_node *d, int at, float lo, uint64_t *seed)
{
    const int64_t c = d->n->dst[0].dim[1], padded = tgi_align_up(c, 16);
    d->vec[at] = random_floats((size_t)padded, lo, lo + 1, seed);
    for (int64_t i = c; i < padded; i++)
        d->vec[at][i] = 0.0f;
    return d->vec[at];
}

static void put_step(dev_node *d, tgi_epi_kind kind, int src, float a, float b, float *vec)
{
    d->epi[d->n_epi++] = (tgi_epi_step){kind, src, a, b, vec};
}

/* An operand of the epilogue, of the result's shape. */
static void add_extra(dev_node *d, uint64_t *seed)
{
    const size_t n = desc_floats(&d->n->dst[0]);
    d->extra[d->n_extra] = random_floats(n, -2, 2, seed);
    device_round(d->t, d->extra[d->n_extra++], n);
}

/* A step, or more where some make another's argument lie where it is defined. */
static void random_step(dev_node *d, uint64_t *seed)
{
    static const tgi_epi_kind plain[] = {TGI_EPI_RELU,        TGI_EPI_LEAKY,     TGI_EPI_CLIP,
                                         TGI_EPI_SIGMOID,     TGI_EPI_TANH,      TGI_EPI_ABS,
                                         TGI_EPI_NEG,         TGI_EPI_ELU,       TGI_EPI_SILU,
                                         TGI_EPI_HARDSIGMOID, TGI_EPI_HARDSWISH, TGI_EPI_GELU,
                                         TGI_EPI_GELU_TANH};
    static const tgi_epi_kind binary[] = {TGI_EPI_ADD, TGI_EPI_SUB, TGI_EPI_RSUB,
                                          TGI_EPI_MUL, TGI_EPI_MIN, TGI_EPI_MAX};
    const int first = d->n->ctx.n_src;
    switch (tg_rand_in(seed, 0, 7)) {
    case 0:
    case 1:
        put_step(d, plain[tg_rand_in(seed, 0, 12)], -1, 0.3f, 0.9f, NULL);
        break;
    case 2:
        if (d->n_extra < MAX_EXTRA)
            add_extra(d, seed);
        put_step(d, binary[tg_rand_in(seed, 0, 5)],
                 first + (int)tg_rand_in(seed, 0, d->n_extra - 1), 0, 0, NULL);
        break;
    case 3:
        put_step(d, binary[tg_rand_in(seed, 0, 5)], -1, 0.7f, 0, NULL);
        break;
    case 4:
        put_step(d, tg_rand_in(seed, 0, 1) ? TGI_EPI_DIV : TGI_EPI_PRELU, -1, 0, 0,
                 random_vec(d, d->n_epi, 1, seed));
        break;
    case 5:
        put_step(d, TGI_EPI_ABS, -1, 0, 0, NULL);
        put_step(d, TGI_EPI_ADD, -1, 0.5f, 0, NULL); /* near 0 a root makes much of little */
        put_step(d, TGI_EPI_SQRT, -1, 0, 0, NULL);
        break;
    case 6:
        put_step(d, TGI_EPI_CLIP, -1, 0.5f, 2.5f, NULL);
        put_step(d, tg_rand_in(seed, 0, 1) ? TGI_EPI_EXP : TGI_EPI_RDIV, -1, 2, 0, NULL);
        break;
    default:
        put_step(d, tg_rand_in(seed, 0, 1) ? TGI_EPI_KEEP : TGI_EPI_SWAP, -1, 0, 0, NULL);
        put_step(d, binary[tg_rand_in(seed, 0, 5)], TGI_EPI_KEPT, 0, 0, NULL);
        break;
    }
}

/* The node's reference with the steps behind it. */
static void apply_steps(const dev_node *d, float *dense)
{
    const tgi_desc *full = &d->n->dst[0];
    const size_t count = desc_floats(full), plane = count / (size_t)full->dim[1];
    for (size_t i = 0; i < count; i++) {
        double x = (double)dense[i], kept = 0;
        for (int k = 0; k < d->n_epi; k++) {
            const tgi_epi_step *s = &d->epi[k];
            if (s->kind == TGI_EPI_KEEP || s->kind == TGI_EPI_SWAP) {
                const double was = kept;
                kept = x;
                x = s->kind == TGI_EPI_SWAP ? was : x;
                continue;
            }
            const double o = s->src >= 0   ? (double)d->extra[s->src - d->n->ctx.n_src][i]
                             : s->src < -1 ? kept
                             : s->vec      ? (double)s->vec[i / plane]
                                           : (double)s->a;
            x = plain_step(s, x, o);
        }
        dense[i] = (float)x;
    }
}

/* ---- Checks ------------------------------------------------------------------------------ */

static int same_in_box(const tgi_desc *d, const tgi_box *b, const float *p, const float *q)
{
    const tgi_range rz = tgi_box_axis(b, TGI_Z), ry = tgi_box_axis(b, TGI_Y),
                    rx = tgi_box_axis(b, TGI_X);
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++) {
                const size_t row = dense_at(d, c, z, y, rx.lo);
                if (memcmp(p + row, q + row, (size_t)(rx.hi - rx.lo) * sizeof *p) != 0)
                    return 0;
            }
    return 1;
}

static void check_node(dev_node *d, float *const *ref, float *const *whole, float *const *part,
                       uint64_t *seed)
{
    const op_node *n = d->n;
    const tgi_box full = tgi_box_full(&n->dst[0]);
    int clean = dev_box(d, &full, whole, seed), same = 1, close = 1;
    for (int k = 0; k < n->ctx.n_dst; k++)
        close &= case_near(whole[k], ref[k], desc_floats(&n->dst[k]), d->t, NULL);
    for (int i = 0; i < 4 && clean && close && same; i++) {
        const tgi_box box = box_random(&n->dst[0], seed);
        clean &= dev_box(d, &box, part, seed);
        for (int k = 0; k < n->ctx.n_dst; k++) {
            const tgi_box b = box_of_output(n, k, &box);
            same &= same_in_box(&n->dst[k], &b, whole[k], part[k]);
        }
    }
    tg_checks++;
    if (!clean || !close || !same) {
        fprintf(stderr, "%s in %s, %d steps behind it: ", d->v->name, tgi_dtype_name(d->t),
                d->n_epi);
        case_complain(!close   ? "differs from the reference"
                      : !clean ? "wrote outside the box, or an unused lane is not zero"
                               : "a box differs from the whole");
    }
}

/* Activations and weights become numbers that the type holds: what is looked for is a wrong
 * sum, and steps behind it can make much of a weight's rounding (a difference of two that are
 * nearly equal). */
static void round_inputs(op_node *n, tg_dtype t)
{
    for (int i = 0; i < n->ctx.n_src; i++)
        if (n->data[i] &&
            (!n->is_const[i] ||
             (t != TG_DTYPE_F32 && n->src[i].dtype == TG_DTYPE_F32 && n->src[i].rank >= 4)))
            device_round(t, n->data[i], desc_floats(&n->src[i]));
}

static int is_image(const op_node *n)
{
    for (int i = 0; i < n->ctx.n_src; i++)
        if (!n->is_const[i] && n->data[i] && n->src[i].rank != 4 && n->src[i].rank != 5)
            return 0;
    return n->dst[0].rank == 4 || n->dst[0].rank == 5;
}

static void note_no_variant(const char *op);

/* Rounded before they are all summed: samples to the type, or sums of thousands of products. A step
 * behind them that makes all results small (Clip) leaves their roundings as they are, and the bound
 * is a part of the results. */
static int rounds_inside(const op_node *n, tg_dtype t)
{
    return strcmp(n->op->name, "DeformConv") == 0 &&
           (t != TG_DTYPE_F32 || desc_floats(&n->src[1]) > 1000 * (size_t)n->src[1].dim[0]);
}

/* The case in one type, plain and with an epilogue. */
static void check_type(op_node *n, tg_dtype t, uint64_t *seed)
{
    float *bufs[3][TGI_OP_MAX_DST];
    const tgi_box full = tgi_box_full(&n->dst[0]);
    tgi_err err = {0};
    int clean = 1;
    for (int b = 0; b < 3; b++)
        for (int k = 0; k < n->ctx.n_dst; k++)
            bufs[b][k] =
                must(tgi_calloc(TGI_TAG_MISC, desc_floats(&n->dst[k]) + 1, sizeof(float)));
    for (int with = 0; with < (n->ctx.n_dst > 1 || rounds_inside(n, t) ? 1 : 3); with++) {
        dev_node d = {.n = n, .be = ops->backend(t), .t = t};
        CHECK_OK(node_run_box(n, &full, 1, 1, seed, bufs[0], &clean, &err), err);
        while (with && d.n_epi < with * 2)
            random_step(&d, seed);
        if (dev_pick(&d, seed)) {
            apply_steps(&d, bufs[0][0]);
            check_node(&d, bufs[0], bufs[1], bufs[2], seed);
            runs++;
            epilogue_runs += d.n_epi > 0;
        } else if (!with) {
            note_no_variant(n->op->name);
        }
        dev_close(&d);
    }
    for (int b = 0; b < 3; b++)
        for (int k = 0; k < n->ctx.n_dst; k++)
            tgi_free(bufs[b][k]);
}

/* ---- Cases ------------------------------------------------------------------------------- */

/* Operators whose cases found no variant, once each. */
static const char *without[64];
static int n_without;

static void note_no_variant(const char *op)
{
    /* Of processors: a device has norms as they are, and attention as products (net.c). */
    if (strcmp(op, "PixelAttention") == 0 || strncmp(op, "Norm", 4) == 0)
        return;
    for (int i = 0; i < n_without; i++)
        if (strcmp(without[i], op) == 0)
            return;
    if (n_without < 64)
        without[n_without++] = op;
}

static void run_case(const tgi_op *op, char *line, uint64_t *seed)
{
    char *attrs = strsep(&line, "|"), *inputs = strsep(&line, "|"), *want = strsep(&line, "|");
    op_node n;
    tgi_err err = {0};
    if (!want || strncmp(case_trim(want), "exact", 5) != 0)
        return;
    if (case_node(&n, op, case_trim(attrs), inputs, seed) && node_bind(&n, &err) == TG_OK &&
        tgi_op_class(op, &n.ctx) != TGI_OP_DENSE && is_image(&n)) {
        static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
        for (size_t i = 0; i < sizeof types / sizeof *types && device_has(types[i]); i++) {
            round_inputs(&n, types[i]);
            check_type(&n, types[i], seed);
        }
    }
    node_close(&n);
}

/* Shapes that the files have no need of: pixels of several vectors, rows of several blocks,
 * images of several granules and chunks. */
static const case_line larger[] = {
    {"relu", " | 1x20x5x90 | exact 1x20x5x90"},
    {"add", " | 1x24x3x41 ; a:1x24x1x1 | exact"},
    {"mul", " | 1x20x7x9 ; a:1x1x7x9 | exact"},
    {"sub", " | c:1x1x3x1 ; a:1x4x3x50 | exact"},
    {"sum", " | 1x16x5x9 ; a:1x16x5x9 ; c:16x1x1 ; a:1x16x1x9 | exact"},
    {"where", " | a:1x16x5x9 ; a:1x1x5x9 ; c:5x1 | exact"},
    {"gelu", " | 1x19x5x33 | exact"},
    {"max_pool", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 | 1x40x31x67 | exact"},
    {"average_pool", "kernel_shape=2,3,2 pads=0,1,0,1,0,1 count_include_pad=1 | 1x10x4x9x8 | "
                     "exact"},
    {"resize", "mode=linear | 1x24x21x35 ; none ; f:1,1,2,2 | exact"},
    {"resize", "mode=cubic antialias=1 | 1x16x40x35 ; none ; f:1,1,0.3,0.7 | exact"},
    {"resize", "mode=nearest coordinate_transformation_mode=asymmetric nearest_mode=floor | "
               "1x48x9x40 ; none ; f:1,1,2,2 | exact"},
    {"depth_to_space", "blocksize=2 | 1x64x7x20 | exact"},
    {"depth_to_space", "blocksize=3 mode=CRD | 1x27x7x20 | exact"},
    {"space_to_depth", "blocksize=2 | 1x16x8x20 | exact"},
    {"space_to_depth", "blocksize=2 | 1x3x8x20 | exact"},
    {"concat", "axis=1 | 1x16x5x9 ; a:1x8x5x9 ; a:1x3x5x9 | exact"},
    {"slice", " | 1x32x9x40 ; i:8,1 ; i:24,39 ; i:1,3 | exact"},
    {"split", "axis=1 outputs=3 | 1x30x5x40 ; i:8,16,6 | exact"},
    {"pad", "mode=reflect | 1x12x9x40 ; i:0,0,5,7,0,0,8,3 | exact"},
    {"instance_normalization", " | 1x20x70x130 ; 20 ; 20 | exact"},
    {"instance_normalization", " | 1x3x3x70x66 ; 3 ; 3 | exact"},
    {"instance_normalization", " | 1x2x330x200 ; 2 ; 2 | exact"},
    {"group_normalization", "num_groups=4 opset=21 | 1x40x66x70 ; 40 ; 40 | exact"},
    {"batch_normalization", " | 1x4x5x9 ; f:1,2,3,4 ; f:0,1,2,3 ; f:5,-6,7,8 ; f:1,.5,2,3 | "
                            "exact"},
    {"global_average_pool", " | 1x36x130x200 | exact"},
    {"global_max_pool", " | 1x36x130x200 | exact"},
    {"reduce_mean", " | 1x20x150x130 ; i:2,3 | exact"},
    {"reduce_mean", " | 1x20x150x130 ; i:1,2,3 | exact"},
    {"reduce_log_sum_exp", " | 1x9x140x130 ; i:2,3 | exact"},
    {"reduce_max", " | 1x20x5x130 ; i:3 | exact"},
    {"reduce_sum", " | 1x20x5x130 ; i:1,2 | exact"},
    {"softmax", "axis=1 | 1x40x5x70 | exact"},
    {"log_softmax", "axis=1 | 1x40x5x70 | exact"},
    {"arg_max", "axis=1 | 1x40x5x70 | exact"},
    {"lrn", "size=5 | 1x24x5x40 | exact"},
    {"lp_normalization", "axis=1 | 1x24x5x40 | exact"},
    {"flow_warp", " | 1x16x9x70 ; a:1x2x9x70 | exact"},
    {"deform_conv",
     "pads=1,1,1,1 | 1x24x9x20 ; 128x24x3x3 ; a:1x18x9x20 ; 128 ; a:1x9x9x20 | exact"},
    {"deform_conv", "strides=2,2 pads=1,1,1,1 | 1x32x13x21 ; 30x32x3x3 ; a:1x18x7x11 | exact"},
    {"deform_conv", "pads=0,2,1,1 | 1x16x8x9 ; 12x16x2x3 ; a:1x12x8x10 | exact"},
};

static const char *only; /* the one operator to look at */

static void test_kernels_agree_with_the_references(void)
{
    case_every_op(only, run_case);
    case_lines(only, larger, sizeof larger / sizeof larger[0], run_case, &runs);
    printf("%d runs, %d of them with an epilogue, %d by groups of warps\n", runs, epilogue_runs,
           by_groups);
    CHECK(runs > 0);
    device_generation(90);
    CHECK(only || by_groups > 0 || !(device_kinds() & TGI_KIND_WGMMA));
    device_generation(80);
}

/* Values of up to 2^42 of which a granule of 64 x 64 pixels and another one far away cancel: what
 * is left of their sum is the roundings of the order in which it was made. */
static void fill_cancelling(op_node *n, uint64_t seed)
{
    const tgi_desc *d = &n->src[0];
    const int64_t nz = tgi_desc_axis(d, TGI_Z), ny = tgi_desc_axis(d, TGI_Y),
                  nx = tgi_desc_axis(d, TGI_X), all = nz * (ny / 64) * (nx / 64);
    float pattern[64 * 64], scale[64], *at = n->data[0];
    for (int i = 0; i < 64 * 64; i++)
        pattern[i] = ldexpf(2.0f + tg_rand_unit(&seed), i % 41);
    for (int i = 0; i < 64; i++)
        scale[i] = 2.0f + tg_rand_unit(&seed);
    for (int64_t i = 0; i < d->dim[1] * nz * ny * nx; i++) {
        const int64_t x = i % nx, y = i / nx % ny, z = i / nx / ny % nz;
        const int64_t k = (z * (ny / 64) + y / 64) * (nx / 64) + x / 64;
        const float v = pattern[y % 64 * 64 + x % 64] * scale[k < all / 2 ? k : all - 1 - k];
        at[i] = k < all / 2 ? v : -v;
    }
}

/* Returns 1 where anything was left. */
static int check_order(char *inputs, uint64_t *seed)
{
    float want[64], got[64], *wants[TGI_OP_MAX_DST] = {want}, *gots[TGI_OP_MAX_DST] = {got};
    op_node n;
    tgi_err err = {0};
    char none[] = "";
    int clean = 1;
    CHECK(case_node(&n, tgi_op_find("GlobalAveragePool"), none, inputs, seed) != 0);
    CHECK_OK(node_bind(&n, &err), err);
    fill_cancelling(&n, *seed);
    const tgi_box full = tgi_box_full(&n.dst[0]);
    dev_node d = {.n = &n, .be = ops->backend(TG_DTYPE_F32), .t = TG_DTYPE_F32};
    CHECK_OK(node_run_box(&n, &full, 1, 1, seed, wants, &clean, &err), err);
    CHECK(dev_pick(&d, seed) && dev_box(&d, &full, gots, seed));
    CHECK(fabsf(want[0]) < 1);
    CHECK(memcmp(want, got, desc_floats(&n.dst[0]) * sizeof *want) == 0);
    dev_close(&d);
    node_close(&n);
    return want[0] != 0;
}

static void test_statistics_are_summed_in_the_order_of_the_reference(void)
{
    char lines[][24] = {"1x3x320x256", "1x2x640x192", "1x3x6x128x192", "1x2x2x64x448"};
    uint64_t seed = 20261125;
    int left = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        left += check_order(lines[i], &seed);
    CHECK(left > 0);
}

/* What `ref` can do on images the device can do too. */
static void test_every_operator_on_images_has_a_kernel(void)
{
    for (int i = 0; i < n_without; i++) {
        case_where = without[i];
        case_complain("no variant takes one of its cases");
    }
    tg_checks++;
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    ops = device_of_test(&device);
    if (!ops)
        return 77;
    RUN(test_kernels_agree_with_the_references);
    RUN(test_statistics_are_summed_in_the_order_of_the_reference);
    RUN(test_every_operator_on_images_has_a_kernel);
    return TEST_END();
}
