/* eval_by_ref.c - a reference kernel as `eval`: dense tensors become planar views, one sample
 * at a time, and other element types pass through float32, which is what such kernels compute
 * in. A signal [N,C,W] is an image with one row: views and boxes of rank 3 say so by
 * themselves. */
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "kernels/ops/op_shared.h"

/* Operand 0 and the results as float32, and the other inputs as such constants. */
typedef struct floats {
    tgi_constant cst[TGI_OP_MAX_SRC];
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    void *made[TGI_OP_MAX_SRC + TGI_OP_MAX_DST]; /* owned */
    int n_made;
    float *src, *dst[TGI_OP_MAX_DST];
    tgi_desc src_desc[TGI_OP_MAX_SRC], dst_desc[TGI_OP_MAX_DST]; /* of one sample */
} floats;

static float *make(floats *f, const tgi_desc *d, tgi_err *err)
{
    float *p = tgi_calloc(TGI_TAG_MISC, (size_t)tgi_dense_count(d) + 1, sizeof *p);
    if (!p)
        tgi_fail(err, TG_E_NOMEM, "no memory to convert a tensor");
    f->made[f->n_made++] = p;
    return p;
}

/* The float32 data of a constant, converted where they are not, or not aligned. */
static const float *as_floats(floats *f, const tgi_constant *c, tgi_err *err)
{
    if (c->desc.dtype == TG_DTYPE_F32 && (uintptr_t)c->data % sizeof(float) == 0)
        return c->data;
    const int64_t n = tgi_const_count(c);
    float *p = make(f, &c->desc, err);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = (float)tgi_num_at(c, i);
    return p;
}

static tg_status open_floats(floats *f, const tgi_op_ctx *ctx, void *const *dst_data,
                             tgi_err *err)
{
    memset(f, 0, sizeof *f);
    for (int i = 0; i < ctx->n_src; i++) {
        f->src_desc[i] = ctx->src[i];
        if (!tgi_given(ctx, i))
            continue;
        const int is_float = tgi_dtype_is_float(ctx->src[i].dtype);
        f->cst[i] = *ctx->const_src[i];
        f->consts[i] = i > 0 ? &f->cst[i] : NULL;
        if (i > 0 && !is_float)
            continue; /* sizes, pads */
        if (!(f->cst[i].data = as_floats(f, ctx->const_src[i], err)))
            return TG_E_NOMEM;
        f->cst[i].desc.dtype = f->src_desc[i].dtype = TG_DTYPE_F32;
    }
    f->src = (float *)(uintptr_t)f->cst[0].data;
    f->src_desc[0].dim[0] = 1;
    for (int k = 0; k < ctx->n_dst; k++) {
        f->dst_desc[k] = ctx->dst[k];
        f->dst_desc[k].dim[0] = 1;
        f->dst_desc[k].dtype = TG_DTYPE_F32;
        f->dst[k] =
            ctx->dst[k].dtype == TG_DTYPE_F32 ? dst_data[k] : make(f, &ctx->dst[k], err);
        if (!f->dst[k])
            return TG_E_NOMEM;
    }
    return TG_OK;
}

/* Sample s of a dense tensor; d is the shape of one sample. */
static tgi_view view_of(const tgi_desc *d, float *data, int64_t s)
{
    const int64_t h = tgi_desc_axis(d, 1), w = tgi_desc_axis(d, 2), z = tgi_desc_axis(d, 0);
    return (tgi_view){.base = data + s * tgi_dense_count(d),
                      .c = d->dim[1],
                      .cb = 1,
                      .width = w,
                      .block_pitch = (size_t)(z * h * w),
                      .z_pitch = (size_t)(h * w),
                      .y_pitch = (size_t)w,
                      .z_ring = z,
                      .y_ring = h};
}

static tg_status run_samples(const floats *f, const tgi_op_ctx *ctx, tgi_ref_fn ref,
                             tgi_err *err)
{
    tgi_op_ctx one = *ctx;
    one.src = f->src_desc;
    one.dst = f->dst_desc;
    one.const_src = f->consts;
    for (int64_t s = 0; s < ctx->src[0].dim[0]; s++) {
        const tgi_view in = view_of(&f->src_desc[0], f->src, s);
        tgi_operand src[TGI_OP_MAX_SRC] = {{1, &in}};
        tgi_view dst[TGI_OP_MAX_DST];
        TGI_TRY(tgi_check_cancel(err));
        for (int k = 0; k < ctx->n_dst; k++)
            dst[k] = view_of(&f->dst_desc[k], f->dst[k], s);
        const tgi_call call = {
            .ctx = &one, .src = src, .dst = dst, .box = tgi_box_full(&f->dst_desc[0])};
        TGI_TRY(ref(&call, err));
    }
    return TG_OK;
}

tg_status tgi_eval_by_ref(const tgi_op_ctx *ctx, void *const *dst_data, tgi_ref_fn ref,
                          tgi_err *err)
{
    floats f;
    if (ctx->src[0].rank < 3 || ctx->src[0].rank > 5)
        return tgi_fail(err, TG_E_UNSUPPORTED, "an input of rank %d", ctx->src[0].rank);
    tg_status st = open_floats(&f, ctx, dst_data, err);
    if (st == TG_OK)
        st = run_samples(&f, ctx, ref, err);
    for (int k = 0; k < ctx->n_dst && st == TG_OK; k++)
        for (int64_t i = 0; f.dst[k] != dst_data[k] && i < tgi_dense_count(&ctx->dst[k]); i++)
            tgi_num_put(ctx->dst[k].dtype, dst_data[k], i, (double)f.dst[k][i]);
    for (int i = 0; i < f.n_made; i++)
        tgi_free(f.made[i]);
    return st;
}
