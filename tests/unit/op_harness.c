/* op_harness.c - see op_harness.h. */
#include "tests/unit/op_harness.h"

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"
#ifdef TG_TEST_DEVICE
#include "tests/cuda/device_run.h"
#endif

#define MAX_VIEWS 4 /* segments per source */

static void *must(void *p)
{
    if (!p) {
        fprintf(stderr, "out of memory in a test\n");
        exit(1);
    }
    return p;
}

size_t desc_floats(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (size_t)n : 0;
}

void node_open(op_node *n, const tgi_op *op, int opset, int n_src, int n_dst)
{
    *n = (op_node){.op = op};
    n->attrs = must(tgi_calloc(TGI_TAG_MISC, 1, op->attrs_size + 1));
    tgi_attrs_default(op->attrs, n->attrs);
    n->ctx = (tgi_op_ctx){.attrs = n->attrs, .opset = opset, .n_src = n_src, .n_dst = n_dst};
}

void *node_data(op_node *n, int i)
{
    n->data[i] = must(
        tgi_calloc(TGI_TAG_MISC, desc_floats(&n->src[i]) + 1, tgi_dtype_size(n->src[i].dtype)));
    return n->data[i];
}

tg_status node_bind(op_node *n, tgi_err *err)
{
    for (int i = 0; i < n->ctx.n_src; i++) {
        n->cst[i] = (tgi_constant){n->src[i], n->data[i]};
        n->consts[i] = n->is_const[i] ? &n->cst[i] : NULL;
    }
    n->ctx.src = n->src;
    n->ctx.const_src = n->consts;
    n->ctx.dst = NULL;
    const tg_status st = n->op->infer(&n->ctx, n->dst, err);
    n->ctx.dst = n->dst;
    return st;
}

void node_close(op_node *n)
{
    for (int i = 0; i < TGI_OP_MAX_SRC; i++)
        tgi_free(n->data[i]);
    tgi_free(n->attrs);
    *n = (op_node){0};
}

/* ---- Views ------------------------------------------------------------------------------- */

void view_open(test_view *t, const tgi_desc *d, int64_t channels, const tgi_box *box, int cb,
               uint64_t *seed)
{
    const int whole = !cb; /* a device's: pixels lie whole */
    if (whole)
        cb = (int)tgi_whole_pixel(channels);
    const tgi_box in = tgi_box_clip(*box, d); /* rows outside the image are never stored */
    const int64_t margin = tg_rand_in(seed, 0, 3);
    tgi_view *v = &t->v;
    *v = (tgi_view){.c = channels, .cb = cb};
    v->x0 = tgi_box_axis(box, TGI_X).lo - margin;
    v->width = tgi_range_len(tgi_box_axis(box, TGI_X)) + 2 * margin;
    v->y_ring = tgi_max(1, tgi_range_len(tgi_box_axis(&in, TGI_Y))) + tg_rand_in(seed, 0, 2);
    v->z_ring = tgi_max(1, tgi_range_len(tgi_box_axis(&in, TGI_Z))) + tg_rand_in(seed, 0, 1);
    /* Rows of whole pixels begin where pixels do, or 16 bytes if that is less. */
    const int64_t odd = tg_rand_in(seed, 0, 5) * (whole ? tgi_min(cb, 8) : 1);
    v->y_pitch = (size_t)(v->width * cb + odd);
    v->z_pitch = v->y_pitch * (size_t)v->y_ring;
    v->block_pitch = v->z_pitch * (size_t)v->z_ring + (whole ? 8 : 3);
    t->floats = v->block_pitch * (size_t)tgi_view_blocks(v);
    t->mem = must(tgi_malloc(TGI_TAG_MISC, (t->floats + 1) * sizeof(float)));
    for (size_t i = 0; i < t->floats; i++)
        t->mem[i] = NAN;
    v->base = t->mem;
}

void view_close(test_view *t)
{
    tgi_free(t->mem);
    t->mem = NULL;
}

static int64_t dense_at(const tgi_desc *d, int64_t c, int64_t z, int64_t y, int64_t x)
{
    return ((c * tgi_desc_axis(d, TGI_Z) + z) * tgi_desc_axis(d, TGI_Y) + y) *
               tgi_desc_axis(d, TGI_X) +
           x;
}

void view_fill(test_view *t, const tgi_desc *d, const float *dense, int64_t c0,
               const tgi_box *box)
{
    const tgi_box in = tgi_box_clip(*box, d);
    const tgi_range rz = tgi_box_axis(&in, TGI_Z), ry = tgi_box_axis(&in, TGI_Y),
                    rx = tgi_box_axis(box, TGI_X);
    const int64_t lanes = tgi_view_blocks(&t->v) * t->v.cb;
    for (int64_t c = 0; c < lanes; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = rx.lo; x < rx.hi; x++) {
                    const int there = c < t->v.c && x >= 0 && x < tgi_desc_axis(d, TGI_X);
                    *tgi_view_at(&t->v, c, z, y, x) =
                        there ? dense[dense_at(d, c0 + c, z, y, x)] : 0.0f;
                }
}

/* Move the box out of a view into dense data; 0 when lanes are not zero or more was written. */
static int view_take(test_view *t, const tgi_desc *d, float *dense, const tgi_box *box)
{
    const tgi_range rz = tgi_box_axis(box, TGI_Z), ry = tgi_box_axis(box, TGI_Y),
                    rx = tgi_box_axis(box, TGI_X);
    const int64_t lanes = tgi_view_blocks(&t->v) * t->v.cb;
    int clean = 1;
    for (int64_t c = 0; c < lanes; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++)
                for (int64_t x = rx.lo; x < rx.hi; x++) {
                    float *p = tgi_view_at(&t->v, c, z, y, x);
                    if (c < t->v.c)
                        dense[dense_at(d, c, z, y, x)] = *p;
                    else if (!(*p == 0.0f))
                        clean = 0;
                    *p = NAN;
                }
    for (size_t i = 0; i < t->floats; i++)
        if (!isnan(t->mem[i]))
            clean = 0;
    return clean;
}

/* ---- Running ----------------------------------------------------------------------------- */

tgi_box box_of_output(const op_node *n, int i, const tgi_box *box)
{
    tgi_box b = *box;
    b.ax[1] = (tgi_range){0, n->dst[i].dim[1]};
    return b;
}

/* The hull over outputs of what source i must hold, by the variant's need or the op's own. */
static tgi_box need_of(const op_node *n, const op_runner *r, int i, const tgi_box *box)
{
    tgi_box hull = {0};
    for (int k = 0; k < n->ctx.n_dst; k++) {
        const tgi_box b = box_of_output(n, k, box);
        tgi_box need;
        tgi_variant_need(r ? r->v : NULL, n->op, &n->ctx, k, &b, i, &need);
        hull = k ? tgi_box_hull(&hull, &need) : need;
    }
    return hull;
}

/* Cut c channels at random places into at most `max` segments. */
static int cut_channels(int64_t c, int max, int64_t *seg_c, uint64_t *seed)
{
    int k = 0;
    for (int64_t at = 0; at < c; at += seg_c[k++])
        seg_c[k] = k + 1 >= max || k + 1 >= MAX_VIEWS ? c - at : tg_rand_in(seed, 1, c - at);
    return k;
}

/* What one call reads and writes. */
typedef struct operands {
    test_view in[TGI_OP_MAX_SRC][MAX_VIEWS], out[TGI_OP_MAX_DST];
    tgi_view segs[TGI_OP_MAX_SRC][MAX_VIEWS], outs[TGI_OP_MAX_DST];
    tgi_operand src[TGI_OP_MAX_SRC];
} operands;

static void operands_open(operands *o, const op_node *n, const op_runner *r, const tgi_box *box,
                          int cb, int max_seg, uint64_t *seed)
{
    int64_t seg_c[MAX_VIEWS];
    memset(o, 0, sizeof *o);
    for (int i = 0; i < n->ctx.n_src; i++) {
        if (n->is_const[i] || !n->data[i])
            continue;
        const tgi_box need = need_of(n, r, i, box);
        const int count =
            r ? r->lay.src_segs[i] : cut_channels(n->src[i].dim[1], max_seg, seg_c, seed);
        int64_t at = 0;
        for (int k = 0; k < count; k++) {
            const int64_t c = r ? r->lay.seg_c[i][k] : seg_c[k];
            view_open(&o->in[i][k], &n->src[i], c, &need, cb, seed);
            view_fill(&o->in[i][k], &n->src[i], n->data[i], at, &need);
            o->segs[i][k] = o->in[i][k].v;
            at += c;
        }
        o->src[i] = (tgi_operand){count, o->segs[i]};
    }
    for (int k = 0; k < n->ctx.n_dst; k++) {
        const tgi_box b = box_of_output(n, k, box);
        view_open(&o->out[k], &n->dst[k], n->dst[k].dim[1], &b, cb, seed);
        o->outs[k] = o->out[k].v;
    }
}

/* Results into dense outputs when `dst` is given; 1 when nothing else was written. */
static int operands_close(operands *o, const op_node *n, const tgi_box *box, float *const *dst)
{
    int clean = 1;
    for (int k = 0; k < n->ctx.n_dst; k++) {
        const tgi_box b = box_of_output(n, k, box);
        if (dst)
            clean &= view_take(&o->out[k], &n->dst[k], dst[k], &b);
        view_close(&o->out[k]);
    }
    for (int i = 0; i < n->ctx.n_src; i++)
        for (int k = 0; k < o->src[i].n_seg; k++)
            view_close(&o->in[i][k]);
    return clean;
}

tg_status node_run_box(const op_node *n, const tgi_box *box, int cb, int max_seg,
                       uint64_t *seed, float *const *dst, int *clean, tgi_err *err)
{
    operands o;
    operands_open(&o, n, NULL, box, cb, max_seg, seed);
    const tgi_call call = {.ctx = &n->ctx, .src = o.src, .dst = o.outs, .box = *box};
    const tg_status st = n->op->ref(&call, err);
    *clean = operands_close(&o, n, box, st == TG_OK ? dst : NULL);
    return st;
}

#ifdef TG_TEST_DEVICE
/* Stored columns outside of the image hold anything there, and the box at most is longer. */
static int run_variant(const op_node *n, const op_runner *r, operands *o, const tgi_call *call,
                       uint64_t *seed)
{
    device_block blocks[TGI_OP_MAX_SRC * MAX_VIEWS + TGI_OP_MAX_DST];
    tgi_err err = {0};
    int count = 0;
    for (int i = 0; i < n->ctx.n_src; i++)
        for (int k = 0; k < o->src[i].n_seg; k++) {
            const test_view *t = &o->in[i][k];
            const int64_t width = tgi_desc_axis(&n->src[i], TGI_X);
            for (size_t at = 0; at < t->floats; at++) {
                const size_t in_row = at % t->v.block_pitch % t->v.y_pitch;
                const int64_t x = (int64_t)in_row / t->v.cb + t->v.x0;
                if (x < 0 || x >= width)
                    t->mem[at] = NAN;
            }
            blocks[count++] = (device_block){t->mem, t->floats, 0};
        }
    for (int k = 0; k < n->ctx.n_dst; k++)
        blocks[count++] = (device_block){o->out[k].mem, o->out[k].floats, 1};
    tgi_device *d = NULL;
    const tgi_device_ops *ops = device_of_test(&d);
    if (device_run_scratch(ops, d, r->be, r->v, call, r->packed_bytes, r->scratch_bytes,
                           tg_rand_in(seed, 0, 3), blocks, count, &err) == TG_OK)
        return 1;
    fprintf(stderr, "%s\n", err.text);
    return 0;
}

const tgi_kernel_set *runner_backend(int i)
{
    static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
    tgi_device *d = NULL;
    const tgi_device_ops *ops = device_of_test(&d);
    return ops && i < 3 && device_has(types[i]) ? ops->backend(types[i]) : NULL;
}
#else
static int run_variant(const op_node *n, const op_runner *r, operands *o, const tgi_call *call,
                       uint64_t *seed)
{
    (void)n, (void)o, (void)seed;
    r->v->run(call);
    return 1;
}

const tgi_kernel_set *runner_backend(int i)
{
    for (int isa = 0; isa < TGI_ISA_COUNT; isa++)
        if (tgi_isa_detect((tgi_isa)isa) == (tgi_isa)isa && tgi_backend_for((tgi_isa)isa) &&
            i-- == 0)
            return tgi_backend_for((tgi_isa)isa);
    return NULL;
}
#endif

void node_run_variant(const op_node *n, const op_runner *r, const tgi_box *box, uint64_t *seed,
                      float *const *dst, int *clean)
{
    operands o;
    operands_open(&o, n, r, box, r->be->whole_pixels ? 0 : r->be->lanes, 0, seed);
    const tgi_call call = {.ctx = &n->ctx,
                           .src = o.src,
                           .dst = o.outs,
                           .box = *box,
                           .packed = r->packed,
                           .scratch = r->scratch};
    const int ran = run_variant(n, r, &o, &call, seed);
    *clean = operands_close(&o, n, box, dst) && ran;
}

static void *aligned_block(size_t bytes, void **block)
{
    *block = must(tgi_calloc(TGI_TAG_MISC, 1, bytes + 64));
    return (void *)(((uintptr_t)*block + 63) & ~(uintptr_t)63);
}

int runner_open(op_runner *r, const op_node *n, const tgi_kernel_set *be, uint64_t *seed)
{
    *r = (op_runner){
        .be = be,
        .lay = {
            .lanes = be->lanes, .n_src = n->ctx.n_src, .dst_cb = be->lanes, .exact = n->exact}};
    for (int i = 0; i < n->ctx.n_src; i++) {
        r->lay.src_cb[i] = be->lanes;
        if (!n->is_const[i] && n->data[i])
            r->lay.src_segs[i] = cut_channels(n->src[i].dim[1], (int)tg_rand_in(seed, 1, 2),
                                              r->lay.seg_c[i], seed);
    }
    r->v = tgi_variant_pick(be, n->op->name, &n->ctx, &r->lay);
    if (!r->v)
        return 0;
    const int64_t width = tgi_desc_axis(&n->dst[0], TGI_X);
    r->packed_bytes = r->v->packed_bytes ? r->v->packed_bytes(&n->ctx, &r->lay) : 0;
    r->packed = aligned_block(r->packed_bytes, &r->packed_block);
    r->scratch_bytes =
        r->v->scratch_bytes ? r->v->scratch_bytes(&n->ctx, &r->lay, width, 1) : 0;
    r->scratch = aligned_block(r->scratch_bytes, &r->scratch_block);
    if (r->v->pack)
        r->v->pack(&n->ctx, &r->lay, r->packed);
    return 1;
}

void runner_close(op_runner *r)
{
    tgi_free(r->packed_block);
    tgi_free(r->scratch_block);
    *r = (op_runner){0};
}

tgi_box box_random(const tgi_desc *d, uint64_t *seed)
{
    static const int64_t primes[] = {1, 2, 3, 5, 7, 11, 13};
    tgi_box b = tgi_box_full(d);
    const int kind = (int)tg_rand_in(seed, 0, 3);
    for (int k = 2; k < d->rank && kind < 3; k++) {
        const int64_t n = d->dim[k];
        const int64_t len = kind == 0   ? 1
                            : kind == 1 ? tgi_min(n, primes[tg_rand_in(seed, 0, 6)])
                                        : tg_rand_in(seed, 1, n);
        b.ax[k].lo = tg_rand_in(seed, 0, n - len);
        b.ax[k].hi = b.ax[k].lo + len;
    }
    return b;
}
