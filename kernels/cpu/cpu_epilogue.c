/* cpu_epilogue.c - pointwise steps on rows of a result.
 *
 * One pass over the row part per step: the part was written a moment ago and is at most a few
 * kilobytes, so a pass costs a load and a store per vector from the first-level cache, and no
 * kernel needs its own copy of every activation. A step is a lane-wise function, so the value
 * does not depend on how the row is cut.
 *
 * Unused lanes of the last block are zeroed last: sigmoid(0) is not 0. */
#include "kernels/cpu/cpu_common.h"

#define KEPT_FLOATS 2048 /* 8 KiB on the stack, where a kept value waits */

typedef struct step_args {
    vf a, b;            /* scalars, or the channel vector in a */
    const float *other; /* view operand: same layout as the row, or NULL */
} step_args;

TGI_INLINE vf apply(tgi_epi_kind kind, vf x, vf a, vf b)
{
    const vf zero = vf_zero(), one = vf_set1(1.0f);
    switch (kind) {
    case TGI_EPI_RELU:
        return vf_max(zero, x);
    case TGI_EPI_LEAKY:
    case TGI_EPI_PRELU:
        return vf_select((vi)(x < zero), x * a, x);
    case TGI_EPI_CLIP:
        return vf_min(b, vf_max(a, x));
    case TGI_EPI_SIGMOID:
        return vf_sigmoid(x);
    case TGI_EPI_TANH:
        return vf_tanh(x);
    case TGI_EPI_ABS:
        return vf_abs(x);
    case TGI_EPI_SQRT:
        return vf_sqrt(x);
    case TGI_EPI_EXP:
        return vf_exp(x);
    case TGI_EPI_NEG:
        return vf_neg(x);
    case TGI_EPI_HARDSIGMOID:
        return vf_min(one, vf_max(zero, x * a + b));
    case TGI_EPI_ELU:
        return vf_select((vi)(x < zero), a * (vf_exp(x) - one), x);
    case TGI_EPI_SILU:
        return x * vf_sigmoid(x);
    case TGI_EPI_HARDSWISH:
        return x * vf_min(one, vf_max(zero, x * a + b));
    case TGI_EPI_GELU:
        return vf_gelu(x);
    case TGI_EPI_GELU_TANH:
        return vf_gelu_tanh(x);
    case TGI_EPI_KEEP: /* these two move rows: keep_or_swap */
    case TGI_EPI_SWAP:
        break;
    case TGI_EPI_ADD:
        return x + a;
    case TGI_EPI_SUB:
        return x - a;
    case TGI_EPI_RSUB:
        return a - x;
    case TGI_EPI_MUL:
        return x * a;
    case TGI_EPI_DIV:
        return x / a;
    case TGI_EPI_RDIV:
        return a / x;
    case TGI_EPI_MIN:
        return vf_min(a, x);
    case TGI_EPI_MAX:
        return vf_max(a, x);
    }
    return x;
}

/* One step over n floats. `kind` is a literal at every call, so the switch above folds away. */
TGI_INLINE void run_kind(tgi_epi_kind kind, float *row, int64_t n, const step_args *s)
{
    const vf a = s->a, b = s->b;
    const float *other = s->other;
    int64_t i = 0;
    for (; i + TGI_L <= n; i += TGI_L)
        vf_store(row + i, apply(kind, vf_load(row + i), other ? vf_load(other + i) : a, b));
    if (i < n)
        vf_store_n(
            row + i,
            apply(kind, vf_load_n(row + i, n - i), other ? vf_load_n(other + i, n - i) : a, b),
            n - i);
}

static void run_step(tgi_epi_kind kind, float *row, int64_t n, const step_args *s)
{
    switch (kind) {
#define CASE(k)                                                                                \
    case k:                                                                                    \
        run_kind(k, row, n, s);                                                                \
        break
        CASE(TGI_EPI_RELU);
        CASE(TGI_EPI_LEAKY);
        CASE(TGI_EPI_PRELU);
        CASE(TGI_EPI_CLIP);
        CASE(TGI_EPI_SIGMOID);
        CASE(TGI_EPI_TANH);
        CASE(TGI_EPI_ABS);
        CASE(TGI_EPI_SQRT);
        CASE(TGI_EPI_EXP);
        CASE(TGI_EPI_NEG);
        CASE(TGI_EPI_HARDSIGMOID);
        CASE(TGI_EPI_ELU);
        CASE(TGI_EPI_SILU);
        CASE(TGI_EPI_HARDSWISH);
        CASE(TGI_EPI_GELU);
        CASE(TGI_EPI_GELU_TANH);
        CASE(TGI_EPI_ADD);
        CASE(TGI_EPI_SUB);
        CASE(TGI_EPI_RSUB);
        CASE(TGI_EPI_MUL);
        CASE(TGI_EPI_DIV);
        CASE(TGI_EPI_RDIV);
        CASE(TGI_EPI_MIN);
        CASE(TGI_EPI_MAX);
#undef CASE
    case TGI_EPI_KEEP:
    case TGI_EPI_SWAP:
        break;
    }
}

static void keep_or_swap(tgi_epi_kind kind, float *row, float *kept, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float was = kept[i];
        kept[i] = row[i];
        if (kind == TGI_EPI_SWAP)
            row[i] = was;
    }
}

/* The row of `o` that lies under block `b` of dst, when its lanes are the same; else NULL. */
static const float *aligned_row(const tgi_operand *o, const tgi_view *dst, int64_t b, int64_t z,
                                int64_t y, int64_t x)
{
    for (int s = 0; s < o->n_seg; s++) {
        const tgi_view *v = &o->seg[s];
        const int64_t blocks = tgi_view_blocks(v);
        if (v->cb != dst->cb)
            return NULL;
        const int shifts =
            v->c % v->cb && s < o->n_seg - 1; /* what follows, by part of a block */
        if (b < blocks - shifts)
            return tgi_view_row(v, b, z, y) + (x - v->x0) * v->cb;
        if (shifts)
            return NULL;
        b -= blocks;
    }
    return NULL;
}

/* A binary step whose operand has other lanes than dst: gathered a pixel at a time. */
static void step_gathered(tgi_epi_kind kind, const tgi_operand *o, const tgi_view *dst,
                          const tgi_row_part *p, int64_t block, float *row)
{
    const int64_t c0 = block * dst->cb, n = tgi_min64(dst->cb, dst->c - c0);
    float tmp[TGI_L] = {0};
    const step_args args = {.other = tmp};
    for (int64_t x = p->x0; x < p->x1; x++, row += dst->cb) {
        for (int64_t i = 0; i < n; i++)
            tmp[i] = tgi_operand_get(o, c0 + i, p->z, p->y, x);
        run_step(kind, row, n, &args);
    }
}

static void zero_unused(const tgi_view *dst, float *row, int64_t width)
{
    const vi keep = vi_first(dst->c % TGI_L);
    for (int64_t i = 0; i < width; i++, row += TGI_L)
        vf_store(row, vf_select(keep, vf_load(row), vf_zero()));
}

/* All steps on a piece of one block's row; `kept` holds as many floats as the piece. */
static void run_steps(const tgi_call *call, int from, const tgi_row_part *p, int64_t block,
                      float *row, float *kept)
{
    const tgi_view *dst = &call->dst[0];
    const int64_t n = (p->x1 - p->x0) * dst->cb;
    for (int i = from; i < call->n_epi; i++) {
        const tgi_epi_step *e = &call->epi[i];
        step_args s = {.a = vf_set1(e->a), .b = vf_set1(e->b)};
        if (e->kind == TGI_EPI_KEEP || e->kind == TGI_EPI_SWAP) {
            keep_or_swap(e->kind, row, kept, n);
            continue;
        }
        if (e->src == TGI_EPI_KEPT) {
            s.other = kept;
        } else if (e->src >= 0 && e->kind >= TGI_EPI_ADD) {
            s.other = aligned_row(&call->src[e->src], dst, block, p->z, p->y, p->x0);
            if (!s.other) {
                step_gathered(e->kind, &call->src[e->src], dst, p, block, row);
                continue;
            }
        } else if (e->vec) {
            s.a = dst->cb == 1 ? vf_set1(e->vec[block]) : vf_load(e->vec + block * TGI_L);
        }
        run_step(e->kind, row, n, &s);
    }
}

static int keeps(const tgi_call *call, int from)
{
    for (int i = from; i < call->n_epi; i++)
        if (call->epi[i].kind == TGI_EPI_KEEP || call->epi[i].kind == TGI_EPI_SWAP)
            return 1;
    return 0;
}

static void block_part(const tgi_call *call, int from, const tgi_row_part *p, int64_t block)
{
    const tgi_view *dst = &call->dst[0];
    float *row = tgi_view_row(dst, block, p->z, p->y) - dst->x0 * dst->cb;
    if (keeps(call, from)) {
        float kept[KEPT_FLOATS] = {0};
        tgi_row_part piece = *p;
        for (; piece.x0 < p->x1; piece.x0 = piece.x1) {
            piece.x1 = tgi_min64(piece.x0 + KEPT_FLOATS / dst->cb, p->x1);
            run_steps(call, from, &piece, block, row + piece.x0 * dst->cb, kept);
        }
    } else {
        run_steps(call, from, p, block, row + p->x0 * dst->cb, NULL);
    }
    if (dst->cb > 1 && (block + 1) * dst->cb > dst->c)
        zero_unused(dst, row + p->x0 * dst->cb, p->x1 - p->x0);
}

void TGS(tgi_epilogue_part)(const tgi_call *call, int from, const tgi_row_part *part)
{
    for (int64_t b = part->b0; b < part->b1; b++)
        block_part(call, from, part, b);
}

typedef struct whole_job {
    const tgi_call *call;
    int64_t rows; /* of a plane */
} whole_job;

static void whole_row(void *arg, int64_t job, int thread)
{
    const whole_job *w = arg;
    const tgi_box *box = &w->call->box;
    const tgi_range x = tgi_box_axis(box, TGI_X);
    (void)thread;
    const tgi_row_part part = {.b0 = 0,
                               .b1 = tgi_view_blocks(&w->call->dst[0]),
                               .z = tgi_box_axis(box, TGI_Z).lo + job / w->rows,
                               .y = tgi_box_axis(box, TGI_Y).lo + job % w->rows,
                               .x0 = x.lo,
                               .x1 = x.hi};
    TGS(tgi_epilogue_part)(w->call, 0, &part);
}

/* tgi_epilogue_apply of this set. */
void TGS(tgi_epilogue_whole)(const tgi_call *call)
{
    whole_job w = {call, tgi_range_len(tgi_box_axis(&call->box, TGI_Y))};
    tgi_parallel(call->threads, w.rows * tgi_range_len(tgi_box_axis(&call->box, TGI_Z)),
                 whole_row, &w);
}

int64_t TGS(tgi_unit_count)(int cb, int n_seg, const int64_t *seg_c)
{
    int64_t n = 0;
    for (int s = 0; s < n_seg; s++)
        n += tgi_ceil_div64(seg_c[s], cb);
    return n;
}

tgi_unit TGS(tgi_unit_at)(int cb, int n_seg, const int64_t *seg_c, int64_t i)
{
    tgi_unit u = {0};
    while (u.seg < n_seg - 1 && i >= tgi_ceil_div64(seg_c[u.seg], cb)) {
        i -= tgi_ceil_div64(seg_c[u.seg], cb);
        u.channel += seg_c[u.seg++];
    }
    u.block = i;
    u.channel += i * cb;
    u.lanes = (int)tgi_min64(cb, seg_c[u.seg] - i * cb);
    return u;
}
