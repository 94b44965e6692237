/* device_run.c - see device_run.h. */
#include "tests/cuda/device_run.h"

#include "engine/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_BLOCKS 128
#define MAX_SEGS 64
#define MAX_DST 8

/* ---- Element types ----------------------------------------------------------------------- */

static uint16_t half_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    const float a = fabsf(f);
    if (isnan(f))
        return 0x7fff;
    if (a >= 65520.0f)
        return (uint16_t)(sign | 0x7c00u);
    if (a == 0)
        return sign;
    int e;
    frexpf(a, &e); /* a = m * 2^e, 0.5 <= m < 1: ten bits behind the first */
    if (e < -13)
        e = -13;
    const long steps = lrintf(ldexpf(a, 11 - e)); /* in units of 2^(e - 11) */
    return (uint16_t)(sign | (uint32_t)(((long)(e + 13) << 10) + steps));
}

static float float_of(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const float a = e == 31 ? (m ? NAN : INFINITY)
                            : (e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24));
    return h & 0x8000u ? -a : a;
}

static uint16_t brain_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    const uint32_t half = 0x7fffu + (u >> 16 & 1u); /* ties to even */
    return isnan(f) ? 0x7fff : (uint16_t)((u + half) >> 16);
}

static float float_of_brain(uint16_t b)
{
    const uint32_t u = (uint32_t)b << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

size_t device_element_bytes(tg_dtype element)
{
    return element == TG_DTYPE_NONE ? sizeof(float) : tgi_dtype_size(element);
}

static int is_16(tg_dtype element)
{
    return element == TG_DTYPE_F16 || element == TGI_DTYPE_BF16;
}

void device_to_elements(tg_dtype element, const float *from, size_t n, void *to)
{
    uint16_t *h = to;
    if (!is_16(element))
        memcpy(to, from, n * sizeof *from);
    for (size_t i = 0; i < n && is_16(element); i++)
        h[i] = element == TG_DTYPE_F16 ? half_of(from[i]) : brain_of(from[i]);
}

void device_from_elements(tg_dtype element, const void *from, size_t n, float *to)
{
    const uint16_t *h = from;
    if (!is_16(element))
        memcpy(to, from, n * sizeof *to);
    for (size_t i = 0; i < n && is_16(element); i++)
        to[i] = element == TG_DTYPE_F16 ? float_of(h[i]) : float_of_brain(h[i]);
}

void device_round(tg_dtype element, float *p, size_t n)
{
    for (size_t i = 0; i < n && is_16(element); i++)
        p[i] =
            element == TG_DTYPE_F16 ? float_of(half_of(p[i])) : float_of_brain(brain_of(p[i]));
}

/* ---- A call, moved over ------------------------------------------------------------------ */

typedef struct moved {
    const tgi_device_ops *ops;
    tgi_device *d;
    tg_dtype element;
    const device_block *blocks;
    void *at[MAX_BLOCKS]; /* the blocks over there */
    int wide[MAX_BLOCKS]; /* their elements are floats */
    int n_blocks;
    void *other[MAX_BLOCKS]; /* packed weights, vectors of the epilogue */
    int n_other;
    tgi_operand src[TGI_OP_MAX_SRC + 16];
    tgi_view seg[MAX_SEGS], dst[MAX_DST];
    int n_seg;
    tgi_epi_step epi[16];
} moved;

static tg_status send(moved *m, const void *from, size_t bytes, void **at, tgi_err *err)
{
    TGI_TRY(m->ops->alloc(m->d, bytes, at, err));
    TGI_TRY(m->ops->upload(m->d, TGI_QUEUE_COMPUTE, *at, from, bytes, err));
    return m->ops->sync(m->d, NULL, err); /* `from` is not there for long */
}

static tg_dtype type_of(const moved *m, int block)
{
    return m->wide[block] ? TG_DTYPE_F32 : m->element;
}

/* Where a host address is on the device: elements are counted from the block's beginning. */
static void move_view(const moved *m, tgi_view *v)
{
    for (int i = 0; i < m->n_blocks; i++) {
        const device_block *b = &m->blocks[i];
        if (v->base >= b->at && v->base < b->at + b->n) {
            char *there = m->at[i];
            v->base = (float *)(void *)(there + (size_t)(v->base - b->at) *
                                                    device_element_bytes(type_of(m, i)));
            return;
        }
    }
}

static tg_status send_blocks(moved *m, tgi_err *err)
{
    for (; m->n_blocks < MAX_BLOCKS && m->blocks[m->n_blocks].at; m->n_blocks++) {
        const device_block *b = &m->blocks[m->n_blocks];
        const tg_dtype type = type_of(m, m->n_blocks);
        const size_t bytes = b->n * device_element_bytes(type);
        void *copy = tgi_malloc(TGI_TAG_MISC, bytes + 1);
        if (!copy)
            return tgi_fail(err, TG_E_NOMEM, "a test's block of %zu bytes", bytes);
        device_to_elements(type, b->at, b->n, copy);
        const tg_status st = send(m, copy, bytes, &m->at[m->n_blocks], err);
        tgi_free(copy);
        TGI_TRY(st);
    }
    return TG_OK;
}

static tg_status send_vectors(moved *m, tgi_call *c, size_t packed_bytes, tgi_err *err)
{
    if (packed_bytes) {
        TGI_TRY(send(m, c->packed, packed_bytes, &m->other[m->n_other], err));
        c->packed = m->other[m->n_other++];
    }
    const size_t lanes = (size_t)((c->dst[0].c + 15) / 16 * 16);
    for (int i = 0; i < c->n_epi; i++) {
        m->epi[i] = c->epi[i];
        if (!c->epi[i].vec)
            continue;
        TGI_TRY(send(m, c->epi[i].vec, lanes * sizeof(float), &m->other[m->n_other], err));
        m->epi[i].vec = m->other[m->n_other++];
    }
    c->epi = m->epi;
    return TG_OK;
}

static void move_operands(moved *m, tgi_call *c, int n_src)
{
    for (int i = 0; i < n_src; i++) {
        m->src[i] = (tgi_operand){c->src[i].n_seg, &m->seg[m->n_seg]};
        for (int s = 0; s < c->src[i].n_seg; s++) {
            m->seg[m->n_seg] = c->src[i].seg[s];
            move_view(m, &m->seg[m->n_seg++]);
        }
    }
    for (int i = 0; i < c->ctx->n_dst; i++) {
        m->dst[i] = c->dst[i];
        move_view(m, &m->dst[i]);
    }
    c->src = m->src;
    c->dst = m->dst;
}

static tg_status run_step(moved *m, const tgi_device_step *step, tgi_err *err)
{
    tgi_device_program *p = NULL;
    size_t bytes = 0;
    TGI_TRY(m->ops->program_open(m->d, TGI_QUEUE_COMPUTE, step, 1, &p, &bytes, err));
    tg_status st = m->ops->program_run(p, step, err);
    if (st == TG_OK)
        st = m->ops->sync(m->d, NULL, err);
    m->ops->program_close(&p);
    return st;
}

static tg_status fetch_blocks(const moved *m, tgi_err *err)
{
    for (int i = 0; i < m->n_blocks; i++) {
        const device_block *b = &m->blocks[i];
        if (!b->written)
            continue;
        const size_t bytes = b->n * device_element_bytes(type_of(m, i));
        void *copy = tgi_malloc(TGI_TAG_MISC, bytes + 1);
        if (!copy)
            return tgi_fail(err, TG_E_NOMEM, "a test's block of %zu bytes", bytes);
        tg_status st = m->ops->download(m->d, TGI_QUEUE_COMPUTE, copy, m->at[i], bytes, err);
        if (st == TG_OK)
            st = m->ops->sync(m->d, NULL, err);
        if (st == TG_OK)
            device_from_elements(type_of(m, i), copy, b->n, b->at);
        tgi_free(copy);
        TGI_TRY(st);
    }
    return TG_OK;
}

static tg_status make_scratch(moved *m, tgi_call *c, size_t bytes, tgi_err *err)
{
    void *ones = tgi_malloc(TGI_TAG_MISC, bytes + 1);
    if (!ones)
        return tgi_fail(err, TG_E_NOMEM, "a test's scratch of %zu bytes", bytes);
    memset(ones, 0xff, bytes);
    const tg_status st = send(m, ones, bytes, &c->scratch, err);
    m->other[m->n_other++] = c->scratch;
    tgi_free(ones);
    return st;
}

/* Blocks that views of an operand lie in. */
static void mark_wide(moved *m, const tgi_view *seg, int n)
{
    for (int s = 0; s < n; s++)
        for (int i = 0; i < MAX_BLOCKS && m->blocks[i].at; i++)
            m->wide[i] |= seg[s].base >= m->blocks[i].at &&
                          seg[s].base < m->blocks[i].at + m->blocks[i].n;
}

static void find_wide(moved *m, const tgi_variant *v, const tgi_call *call)
{
    const tgi_op *op = tgi_op_find(v->op);
    if (op->wide)
        mark_wide(m, &call->dst[0], 1);
    for (int j = 0; j < call->ctx->n_src; j++)
        if (op->wide_src >> j & 1)
            mark_wide(m, call->src[j].seg, call->src[j].n_seg);
}

static tg_status run_moved(moved *m, const tgi_variant *v, const tgi_call *call,
                           size_t packed_bytes, size_t scratch_bytes, int64_t slack,
                           tgi_err *err)
{
    tgi_device_step step = {.kind = TGI_STEP_NODE, .variant = v, .call = *call};
    int n_src = call->ctx->n_src;
    for (int i = 0; i < call->n_epi; i++)
        if (call->epi[i].src >= n_src)
            n_src = call->epi[i].src + 1;
    find_wide(m, v, call);
    TGI_TRY(send_blocks(m, err));
    TGI_TRY(send_vectors(m, &step.call, packed_bytes, err));
    if (scratch_bytes)
        TGI_TRY(make_scratch(m, &step.call, scratch_bytes, err));
    move_operands(m, &step.call, n_src);
    for (int a = 0; a < call->box.rank; a++)
        step.call.most[a] = call->box.ax[a].hi - call->box.ax[a].lo + (a < 2 ? 0 : slack);
    TGI_TRY(run_step(m, &step, err));
    return fetch_blocks(m, err);
}

tg_status device_run_scratch(const tgi_device_ops *ops, tgi_device *d, const tgi_kernel_set *be,
                             const tgi_variant *v, const tgi_call *call, size_t packed_bytes,
                             size_t scratch_bytes, int64_t slack, const device_block *blocks,
                             int n_blocks, tgi_err *err)
{
    device_block list[MAX_BLOCKS + 1] = {{0}};
    moved m = {.ops = ops, .d = d, .element = be->element, .blocks = list};
    if (n_blocks > MAX_BLOCKS)
        return tgi_fail(err, TG_E_UNSUPPORTED, "a test of %d blocks", n_blocks);
    memcpy(list, blocks, (size_t)n_blocks * sizeof *blocks);
    const tg_status st = run_moved(&m, v, call, packed_bytes, scratch_bytes, slack, err);
    for (int i = 0; i < m.n_blocks; i++)
        ops->release(d, m.at[i]);
    for (int i = 0; i < m.n_other; i++)
        ops->release(d, m.other[i]);
    return st;
}

tg_status device_run(const tgi_device_ops *ops, tgi_device *d, const tgi_kernel_set *be,
                     const tgi_variant *v, const tgi_call *call, size_t packed_bytes,
                     int64_t slack, const device_block *blocks, int n_blocks, tgi_err *err)
{
    return device_run_scratch(ops, d, be, v, call, packed_bytes, 0, slack, blocks, n_blocks,
                              err);
}

/* ---- The device's library ---------------------------------------------------------------- */

int device_open_library(const tgi_device_ops *ops, tgi_device *d)
{
    tgi_err err = {0};
    const tg_status st = ops->library(d, 1, &err);
    if (st != TG_OK)
        printf("without the library: %s\n", err.text);
    return st == TG_OK;
}

#define MAX_LIBRARY_VARIANTS 15

static const tgi_kernel_set *(*whole_backend)(tg_dtype element);

static const tgi_kernel_set *library_backend(tg_dtype element)
{
    static tgi_kernel_set backends[3];
    static const tgi_variant *variants[3][MAX_LIBRARY_VARIANTS + 1];
    const tgi_kernel_set *whole = whole_backend(element);
    const int i = element == TG_DTYPE_F32 ? 0 : element == TG_DTYPE_F16 ? 1 : 2;
    if (!whole)
        return NULL;
    int n = 0;
    for (const tgi_variant *const *v = whole->variants; *v && n < MAX_LIBRARY_VARIANTS; v++)
        if ((*v)->kinds & TGI_KIND_LIBRARY)
            variants[i][n++] = *v;
    backends[i] = *whole;
    backends[i].variants = variants[i];
    return &backends[i];
}

const tgi_device_ops *device_library_alone(const tgi_device_ops *ops)
{
    static tgi_device_ops alone;
    alone = *ops;
    whole_backend = ops->backend;
    alone.backend = library_backend;
    return &alone;
}
