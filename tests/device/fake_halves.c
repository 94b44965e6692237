/* fake_halves.c - the fake device in halves: a step gets its views as float32 and its weights rounded, computes as in float32, and
 * what it leaves is rounded. So results differ from those of float32 by the roundings alone that a device of halves makes. */
#include "kernels/op.h"
#include "kernels/pixels.h"
#include "tests/device/fake_device.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SRC (TGI_OP_MAX_SRC + 32)
#define MOST_DST 8
#define MOST_BLOCKS 192

typedef struct widened {
    tgi_operand src[MOST_SRC];
    tgi_view dst[MOST_DST];
    tgi_op_ctx ctx;
    tgi_constant weights;
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    void *block[MOST_BLOCKS];
    int n_blocks;
} widened;

static void *room(widened *w, size_t bytes)
{
    void *p = malloc(bytes + 1);
    if (!p || w->n_blocks == MOST_BLOCKS)
        abort();
    w->block[w->n_blocks++] = p;
    return p;
}

static void drop(widened *w)
{
    for (int i = 0; i < w->n_blocks; i++)
        free(w->block[i]);
}

/* ---- Views ------------------------------------------------------------------------------- */

/* Rows of a view of halves and of the same view of floats: `up`, from halves. */
static void convert(const tgi_view *halves, const tgi_view *floats, int up)
{
    const int64_t n = floats->width * floats->cb;
    for (int64_t z = 0; z < floats->z_ring; z++)
        for (int64_t y = 0; y < floats->y_ring; y++) {
            float *f = tgi_view_row(floats, 0, z, y);
            uint16_t *h = (uint16_t *)(void *)halves->base + (f - floats->base);
            if (up)
                tgi_pixels_load(TG_DTYPE_F16, h, n, 1, 0, f, 1);
            else
                tgi_pixels_store(TG_DTYPE_F16, f, 1, n, 1, 0, h, 1);
        }
}

static tgi_view widen(widened *w, const tgi_view *v)
{
    tgi_view f = *v;
    if (tgi_view_blocks(v) > 1)
        abort(); /* pixels lie whole */
    f.base = room(w, (v->z_pitch * (size_t)(v->z_ring - 1) + v->y_pitch * (size_t)v->y_ring) *
                         sizeof(float));
    convert(v, &f, 1);
    return f;
}

static void widen_operand(widened *w, const tgi_operand *from, tgi_operand *to, int wide)
{
    tgi_view *seg = room(w, (size_t)from->n_seg * sizeof *seg);
    for (int i = 0; i < from->n_seg; i++)
        seg[i] = wide ? from->seg[i] : widen(w, &from->seg[i]);
    *to = (tgi_operand){from->n_seg, seg};
}

/* ---- Nodes ------------------------------------------------------------------------------- */

static int multiplies(const char *op)
{
    static const char *const of[] = {"Conv", "ConvTranspose", "DeformConv", "MatMul", "Gemm"};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (strcmp(op, of[i]) == 0)
            return 1;
    return 0;
}

static void round_weights(widened *w, const tgi_call *c)
{
    const tgi_constant *from = c->ctx->const_src[1];
    int64_t n = 0;
    tgi_desc_count(&from->desc, &n);
    uint16_t *h = room(w, (size_t)n * sizeof *h);
    float *f = room(w, (size_t)n * sizeof *f);
    tgi_pixels_store(TG_DTYPE_F16, from->data, 1, n, 1, 0, h, 1);
    tgi_pixels_load(TG_DTYPE_F16, h, n, 1, 0, f, 1);
    w->weights = (tgi_constant){from->desc, f};
    memcpy(w->consts, c->ctx->const_src, (size_t)c->ctx->n_src * sizeof *w->consts);
    w->consts[1] = &w->weights;
    w->ctx.const_src = w->consts;
}

static void widen_node(widened *w, const tgi_op *op, tgi_call *c)
{
    int n_src = c->ctx->n_src;
    for (int i = 0; i < c->n_epi; i++)
        n_src = c->epi[i].src >= n_src ? c->epi[i].src + 1 : n_src;
    if (n_src > MOST_SRC || c->ctx->n_dst > MOST_DST)
        abort();
    for (int j = 0; j < n_src; j++)
        widen_operand(w, &c->src[j], &w->src[j], j < c->ctx->n_src && (op->wide_src >> j & 1));
    for (int k = 0; k < c->ctx->n_dst; k++)
        w->dst[k] = op->wide ? c->dst[k] : widen(w, &c->dst[k]);
    w->ctx = *c->ctx;
    if (multiplies(op->name) && c->ctx->n_src > 1 && c->ctx->const_src[1] &&
        c->ctx->const_src[1]->desc.dtype == TG_DTYPE_F32)
        round_weights(w, c);
    c->ctx = &w->ctx;
    c->src = w->src;
    c->dst = w->dst;
}

/* ---- Steps ------------------------------------------------------------------------------- */

tg_status fake_run_halves(const tgi_device_step *s,
                          tg_status (*run)(const tgi_device_step *s, tgi_err *err),
                          tgi_err *err)
{
    widened *w = calloc(1, sizeof *w);
    tgi_device_step wide = *s;
    const tgi_op *op = s->kind == TGI_STEP_NODE ? tgi_op_find(s->variant->op) : NULL;
    const int n_dst = op && !op->wide ? s->call.ctx->n_dst : s->kind == TGI_STEP_LOAD;
    if (!w)
        abort();
    if (op) {
        widen_node(w, op, &wide.call);
    } else if (s->kind == TGI_STEP_LOAD) {
        w->dst[0] = widen(w, &s->call.dst[0]);
        wide.call.dst = w->dst;
    } else {
        widen_operand(w, &s->call.src[0], &w->src[0], 0);
        wide.call.src = w->src;
    }
    const tg_status st = run(&wide, err);
    for (int k = 0; k < n_dst; k++)
        convert(&s->call.dst[k], &w->dst[k], 0);
    drop(w);
    free(w);
    return st;
}
