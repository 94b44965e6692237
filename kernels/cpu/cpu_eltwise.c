/* cpu_eltwise.c - pointwise operators that stand as nodes of their own.
 *
 * The op says what it is as an epilogue step (tgi_op.as_step); the kernel copies the running
 * input to dst, in pieces that stay in the first-level cache, and runs that step in front of
 * the node's own epilogue. So a pointwise op has one meaning, fused or not. dst may be the
 * running input itself.
 *
 * A gate joins each channel with one number that the network computed, a source of extent 1
 * along all spatial axes (squeeze and excitation; norms in parts): the numbers are put in a
 * channel vector in the scratch, then it is that step.
 *
 * Packed: the channel vector of a constant operand, padded with zeros to 16 lanes, when there
 * is one. */
#include "kernels/cpu/cpu_common.h"

#define EPI_MAX 24

typedef struct eltwise {
    int chain;    /* the source that is the running value */
    int channels; /* the constant operand is a channel vector: its source index, else -1 */
    tgi_epi_step step;
} eltwise;

/* Identity has no step: the copy alone. */
static int is_copy(const char *op_name)
{
    return strcmp(op_name, "Identity") == 0;
}

/* How the node reads as a step; 0: it does not. */
static int understand(const char *op_name, const tgi_op_ctx *ctx, eltwise *e)
{
    const tgi_op *op = tgi_op_find(op_name);
    e->chain = ctx->const_src[0] ? 1 : 0;
    e->channels = -1;
    if (is_copy(op_name))
        return ctx->n_src == 1 && !ctx->const_src[0];
    if (!op || !op->as_step || ctx->n_src < 1 || e->chain >= ctx->n_src ||
        ctx->const_src[e->chain] || !tgi_desc_same_shape(&ctx->src[e->chain], &ctx->dst[0]) ||
        !op->as_step(ctx, e->chain, &e->step))
        return 0;
    const int other = 1 - e->chain;
    if (e->step.kind < TGI_EPI_ADD && e->step.kind != TGI_EPI_PRELU)
        return 1;
    e->step.src = -1;
    if (!ctx->const_src[other]) {
        e->step.src = other;
        return tgi_desc_same_shape(&ctx->src[other], &ctx->dst[0]);
    }
    int64_t n;
    if (!tgi_desc_count(&ctx->src[other], &n))
        return 0;
    if (n > 1 || e->step.kind == TGI_EPI_PRELU)
        e->channels = other;
    return e->channels < 0 || (n == ctx->dst[0].dim[1] && tgi_is_const_f32(ctx, other));
}

static int accepts_as(const char *op, const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    eltwise e;
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           lay->n_epi < EPI_MAX && (ctx->dst[0].rank == 4 || ctx->dst[0].rank == 5) &&
           understand(op, ctx, &e) && lay->src_segs[e.chain] > 0;
}

static size_t packed_as(const char *op, const tgi_op_ctx *ctx)
{
    eltwise e;
    if (!understand(op, ctx, &e) || e.channels < 0)
        return 0;
    return sizeof(float) * (size_t)(tgi_ceil_div64(ctx->dst[0].dim[1], 16) * 16);
}

static void pack_as(const char *op, const tgi_op_ctx *ctx, void *dst)
{
    eltwise e;
    float *out = dst;
    if (!understand(op, ctx, &e) || e.channels < 0)
        return;
    const int64_t c = ctx->dst[0].dim[1];
    for (int64_t i = 0; i < tgi_ceil_div64(c, 16) * 16; i++)
        out[i] = i < c ? tgi_const_at(ctx->const_src[e.channels]->data, i) : 0.0f;
}

static int copy_part(const tgi_call *call, const void *arg, const tgi_row_part *p)
{
    const eltwise *e = arg;
    const tgi_view *dv = &call->dst[0];
    const int n = (int)tgi_min64(dv->cb, dv->c - p->b0 * dv->cb);
    tgi_lane lane[TGI_L];
    for (int i = 0; i < n; i++) {
        lane[i] = TGS(tgi_lane_of)(&call->src[e->chain], p->b0 * dv->cb + i, p->z, p->y);
        lane[i].p += p->x0 * lane[i].step;
    }
    TGS(tgi_gather_lanes)
    (lane, n, p->x1 - p->x0, tgi_view_row(dv, p->b0, p->z, p->y) + (p->x0 - dv->x0) * dv->cb,
     dv->cb);
    return 0;
}

static void run_as(const char *op, const tgi_call *call)
{
    eltwise e;
    tgi_epi_step steps[EPI_MAX + 1];
    tgi_call with = *call;
    if (!understand(op, call->ctx, &e) || call->n_epi > EPI_MAX)
        return;
    if (is_copy(op)) {
        TGS(tgi_each_part)(call, copy_part, &e);
        return;
    }
    if (e.channels >= 0)
        e.step.vec = call->packed;
    steps[0] = e.step;
    for (int i = 0; i < call->n_epi; i++)
        steps[i + 1] = call->epi[i];
    with.epi = steps;
    with.n_epi = call->n_epi + 1;
    TGS(tgi_each_part)(&with, copy_part, &e);
}

/* The source that is one number per channel; -1: there is none, or all is (an image of a
 * pixel).
 */
static int gate_of(const tgi_op_ctx *ctx)
{
    const tgi_desc *d = &ctx->dst[0];
    for (int i = 0; i < 2 && ctx->n_src == 2; i++) {
        const tgi_desc *s = &ctx->src[i];
        int64_t n;
        if (!ctx->const_src[0] && !ctx->const_src[1] && s->rank == d->rank &&
            tgi_desc_count(s, &n) && n == s->dim[1] && n == d->dim[1] &&
            tgi_desc_same_shape(&ctx->src[1 - i], d) && !tgi_desc_same_shape(s, d))
            return i;
    }
    return -1;
}

static int accepts_gate(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return lay->lanes == TGI_L && (lay->dst_cb == 1 || lay->dst_cb == TGI_L) &&
           lay->n_epi < EPI_MAX && (ctx->dst[0].rank == 4 || ctx->dst[0].rank == 5) &&
           gate_of(ctx) >= 0 && lay->src_segs[0] > 0 && lay->src_segs[1] > 0;
}

static size_t gate_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                         int threads)
{
    (void)lay, (void)width, (void)threads;
    return sizeof(float) * (size_t)(tgi_ceil_div64(ctx->dst[0].dim[1], 16) * 16);
}

static void run_gate(const tgi_call *call, tgi_epi_kind forward, tgi_epi_kind reverse)
{
    const int gate = gate_of(call->ctx);
    const eltwise e = {.chain = 1 - gate};
    const int64_t channels = call->ctx->dst[0].dim[1];
    float *vec = call->scratch;
    tgi_epi_step steps[EPI_MAX + 1] = {
        {.kind = gate == 1 ? forward : reverse, .src = -1, .vec = vec}};
    tgi_call with = *call;
    if (call->n_epi > EPI_MAX)
        return;
    for (int64_t c = 0; c < tgi_ceil_div64(channels, 16) * 16; c++)
        vec[c] = c < channels ? tgi_operand_get(&call->src[gate], c, 0, 0, 0) : 0.0f;
    for (int i = 0; i < call->n_epi; i++)
        steps[i + 1] = call->epi[i];
    with.epi = steps;
    with.n_epi = call->n_epi + 1;
    TGS(tgi_each_part)(&with, copy_part, &e);
}

#define DEFINE_GATE(name_, forward, reverse)                                                   \
    static void run_gate_##name_(const tgi_call *call)                                         \
    {                                                                                          \
        run_gate(call, forward, reverse);                                                      \
    }                                                                                          \
    const tgi_variant TGS(tgi_gate_##name_) = {.name = "gate",                                 \
                                               .op = #name_,                                   \
                                               .accepts = accepts_gate,                        \
                                               .scratch_bytes = gate_bytes,                    \
                                               .run = TGI_RUN(run_gate_##name_)};
TGI_GATE_LIST(DEFINE_GATE)

#define DEFINE(name_)                                                                          \
    static int accepts_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)              \
    {                                                                                          \
        return accepts_as(#name_, ctx, lay);                                                   \
    }                                                                                          \
    static size_t packed_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)            \
    {                                                                                          \
        (void)lay;                                                                             \
        return packed_as(#name_, ctx);                                                         \
    }                                                                                          \
    static void pack_##name_(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)     \
    {                                                                                          \
        (void)lay;                                                                             \
        pack_as(#name_, ctx, dst);                                                             \
    }                                                                                          \
    static void run_##name_(const tgi_call *call)                                              \
    {                                                                                          \
        run_as(#name_, call);                                                                  \
    }                                                                                          \
    const tgi_variant TGS(tgi_eltwise_##name_) = {.name = "eltwise",                           \
                                                  .op = #name_,                                \
                                                  .accepts = accepts_##name_,                  \
                                                  .packed_bytes = packed_##name_,              \
                                                  .pack = pack_##name_,                        \
                                                  .run = TGI_RUN(run_##name_)};
TGI_ELTWISE_LIST(DEFINE)
