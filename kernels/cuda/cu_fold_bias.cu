/* cu_fold_bias.cu - FoldBias: the biases of the patches over a pixel, and the patches' mean. Patches
 * themselves are never there: a transposed convolution lays them over each other before.
 *
 * Bound by memory: an image is read and written once; the biases, float32 as [ky][kx][lanes], come
 * out of the first level, which neighbouring pixels share. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"

extern "C" {
#include "kernels/ops/fold_patches.h"
}

struct cu_fold_bias_f {
    cu_operand src;
    const float *bias;
    int32_t kernel, stride, pad, mean;
    int32_t count[2]; /* patches along y and x */
    int32_t lanes, unused;

    /* Patches over a pixel on one axis: kernels/ops/fold_patches.h. */
    __device__ __forceinline__ int2 over(int32_t at, int32_t all) const
    {
        const int32_t from = at + pad - kernel + 1, last = (at + pad) / stride + 1;
        return make_int2(from > 0 ? (from + stride - 1) / stride : 0, last < all ? last : all);
    }

    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int2 y = over(p.y, count[0]), x = over(p.x, count[1]);
        cu_read<T, V>(pool, src, 0, p.y, p.x, p.c, v);
#pragma unroll 1
        for (int32_t i = y.x; i < y.y; i++)
#pragma unroll 1
            for (int32_t j = x.x; j < x.y; j++) {
                const int32_t ky = p.y + pad - i * stride, kx = p.x + pad - j * stride;
                float b[V];
                cu_load<float, V>(bias + (int64_t)(ky * kernel + kx) * lanes + p.c, b);
#pragma unroll
                for (int k = 0; k < V; k++)
                    v[k] += b[k];
            }
        const int32_t down = y.y > y.x ? y.y - y.x : 0, across = x.y > x.x ? x.y - x.x : 0;
        if (mean && down * across > 1) {
            const float n = (float)(down * across);
#pragma unroll
            for (int k = 0; k < V; k++)
                v[k] = v[k] / n;
        }
    }
};

/* ---- Host -------------------------------------------------------------------------------- */

static const fold_attrs *attrs_of(const tgi_op_ctx *ctx)
{
    return (const fold_attrs *)ctx->attrs;
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && ctx->const_src[1] && cu_accepts_image(ctx, lay);
}

static size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    const fold_attrs *a = attrs_of(ctx);
    return sizeof(float) *
           (size_t)(a->kernel * a->kernel * tgi_whole_pixel(ctx->src[0].dim[1]));
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    const fold_attrs *a = attrs_of(ctx);
    const int64_t c = ctx->src[0].dim[1], lanes = tgi_whole_pixel(c),
                  taps = a->kernel * a->kernel;
    float *out = (float *)dst;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t i = 0; i < lanes; i++)
            *out++ = i < c ? (float)tgi_num_at(ctx->const_src[1], i * taps + k) : 0.0f;
}

template <class T> static void run(const tgi_call *call)
{
    const fold_attrs *fold = attrs_of(call->ctx);
    const tgi_desc *d = &call->ctx->src[0];
    cu_map_args<cu_fold_bias_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.bias = (const float *)call->packed;
    a.f.kernel = (int32_t)fold->kernel;
    a.f.stride = (int32_t)fold->stride;
    a.f.pad = (int32_t)fold->pad;
    a.f.mean = fold->mean != 0;
    for (int i = 0; i < 2; i++)
        a.f.count[i] = (int32_t)tgi_fold_count(fold, d->dim[2 + i]);
    a.f.lanes = (int32_t)tgi_whole_pixel(d->dim[1]);
    a.f.unused = 0;
    cu_map_go<T>(&a, call, 0);
}

CU_PACKED_VARIANT(fold_bias, "cu_fold_bias", "FoldBias", accepts, bytes, pack, run)
