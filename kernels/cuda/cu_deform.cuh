/* cu_deform.cuh - DeformConv as a product of matrices (cu_gemm.cuh): the same places, packed weights
 * and stores as a convolution's, but what a place reads of a pixel is blended from the four that an
 * offset names, weighed by the mask, on its way into shared memory.
 *
 * A place is 8 channels of one offset group at one tap. Its z offset, which an image does not need,
 * is the number of the group and tap: offsets 2n and 2n + 1, mask n. Samples are made once for all
 * channels of a tile. */
#ifndef TGI_CU_DEFORM_CUH
#define TGI_CU_DEFORM_CUH

#include "kernels/cuda/cu_gemm.cuh"
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_sample.cuh"

#define CU_BLEND 8 /* channels of a place */

struct cu_deform_args {
    cu_operand offset, mask; /* mask.n = 0: all 1 */
    cu_gemm_args g;          /* last: its pool is */
};

/* ---- Host -------------------------------------------------------------------------------- */

/* The node as a convolution: data, weights, bias. */
struct cu_deform_as_conv {
    tgi_op_ctx ctx;
    tgi_desc src[3];
    const tgi_constant *consts[3];
    explicit cu_deform_as_conv(const tgi_op_ctx *from) : ctx(*from)
    {
        const int biased = !cu_is_absent(from, 3);
        for (int i = 0; i < 2 + biased; i++) {
            src[i] = from->src[i < 2 ? i : 3];
            consts[i] = from->const_src[i < 2 ? i : 3];
        }
        ctx.n_src = 2 + biased;
        ctx.src = src;
        ctx.const_src = consts;
    }
};

/* K: as in cu_conv_variant.cuh, its `kernel` over cu_deform_args. */
template <class K> struct cu_deform_of {
    static int64_t per_group(const tgi_op_ctx *ctx)
    {
        return ctx->src[0].dim[1] / ((const deform_attrs *)ctx->attrs)->offset_group;
    }

    static int plan(const tgi_op_ctx *ctx, const int64_t *seg_c, int n_seg, cu_gemm_plan *p)
    {
        const cu_deform_as_conv conv(ctx);
        const int64_t per = per_group(ctx);
        if (!cu_gemm_plan_of(&conv.ctx, seg_c, n_seg, 0, CU_BLEND, p) || p->lanes != CU_BLEND ||
            !K::takes(p) || p->g.groups != 1)
            return 0;
        for (int64_t s = 0, c0 = 0; s < n_seg; c0 += seg_c[s++]) /* a place has one group */
            if (per != p->g.in_c && (per % CU_BLEND || c0 % CU_BLEND))
                return 0;
        p->kstep = K::kstep;
        p->bn = K::channels(p);
        return 1;
    }

    static int planned(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, cu_gemm_plan *p)
    {
        return plan(ctx, lay->seg_c[0], lay->src_segs[0], p);
    }

    static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
    {
        const cu_deform_as_conv conv(ctx);
        const int masked = !cu_is_absent(ctx, 4);
        cu_gemm_plan p;
        tgi_geom g;
        return cu_conv_accepts(&conv.ctx, lay, 0, &g) && !ctx->const_src[0] &&
               !ctx->const_src[2] && cu_fits(&ctx->src[2]) && lay->src_segs[2] > 0 &&
               (!masked || (!ctx->const_src[4] && lay->src_segs[4] > 0)) && !lay->n_doubled &&
               planned(ctx, lay, &p);
    }

    static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
    {
        cu_gemm_plan p;
        return planned(ctx, lay, &p) ? K::bytes(&p) : 0;
    }

    static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
    {
        const cu_deform_as_conv conv(ctx);
        cu_gemm_plan p;
        if (!planned(ctx, lay, &p))
            return;
        K::pack(&p, &conv.ctx, dst);
        const int64_t taps = cu_conv_taps(&p.g), per = per_group(ctx);
        int4 *place =
            (int4 *)((char *)dst + cu_gemm_layout_of(&p, sizeof(typename K::weight)).places);
        cu_gemm_each_place(&p, 0, [&](const cu_gemm_place &at) {
            place++->x = (int)(at.channel / per * taps + at.tap);
        });
    }

    static double cost(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
    {
        cu_gemm_plan p;
        return planned(ctx, lay, &p) ? K::cost(&p) : 1e9;
    }

    static void run(const tgi_call *call)
    {
        int64_t seg_c[TGI_MAX_SEG];
        cu_gemm_plan p;
        cu_deform_args a;
        unsigned shared_bytes = 0;
        for (int s = 0; s < call->src[0].n_seg; s++)
            seg_c[s] = call->src[0].seg[s].c;
        if (!plan(call->ctx, seg_c, call->src[0].n_seg, &p))
            return; /* `accepts` said no */
        const dim3 grid = cu_gemm_arguments(&p, call, sizeof(typename K::weight), &a.g);
        a.offset = cu_pool_operand(&a.g.pool, &call->src[2]);
        a.mask = cu_operand{0, 0};
        if (!cu_is_absent(call->ctx, 4))
            a.mask = cu_pool_operand(&a.g.pool, &call->src[4]);
        void (*const kernel)(const cu_deform_args *) = K::kernel(&p, &shared_bytes);
        const size_t bytes =
            (size_t)((const char *)&a.g.pool.item[a.g.pool.n] - (const char *)&a);
        cu_put(call->recorder, (const void *)kernel, grid, dim3(K::threads), shared_bytes, &a,
               bytes);
    }
};

template <class K> constexpr tgi_variant cu_deform_variant(const char *name)
{
    typedef cu_deform_of<K> D;
    tgi_variant v =
        cu_packed_variant(name, "DeformConv", D::accepts, D::packed_bytes, D::pack, D::run);
    v.kinds = K::kinds;
    v.cost = D::cost;
    return v;
}

/* ---- Device ------------------------------------------------------------------------------ */

/* The samples of a place at pixel (y,x) of the result; `inside`: it is one. */
template <class T>
__device__ __forceinline__ void cu_deform_sample(const cu_deform_args *a, int32_t y, int32_t x,
                                                 bool inside, const int4 &place,
                                                 float (&v)[CU_BLEND])
{
    float d[2];
#pragma unroll
    for (int k = 0; k < CU_BLEND; k++)
        v[k] = 0.0f;
    if (!inside || place.w < 0)
        return;
    cu_read<float, 2>(a->g.pool, a->offset, 0, y, x, 2 * place.x, d);
    const cu_between down =
        cu_between_of((float)(y * a->g.in_step[1] + place.y) + d[0], a->g.in[1]);
    const cu_between right =
        cu_between_of((float)(x * a->g.in_step[2] + place.z) + d[1], a->g.in[2]);
    const float m = a->mask.n ? cu_read_one<float>(a->g.pool, a->mask, 0, y, x, place.x) : 1.0f;
    const cu_gemm_source *s =
        reinterpret_cast<const cu_gemm_source *>(&a->g.pool.item[a->g.src + (place.w >> 16)]);
    const T *const base = reinterpret_cast<const T *>(s->base) + (place.w & 0xffff);
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float one[CU_BLEND];
            if (down.weight[j] == 0.0f || right.weight[i] == 0.0f)
                continue; /* not read: what is there may be infinite */
            const int32_t row = cu_ring(down.lo + j, s->y_ring, s->y_magic);
            cu_load<T, CU_BLEND>(base + (int64_t)row * s->y_pitch +
                                     (int64_t)(right.lo + i - s->x0) * s->cb,
                                 one);
            const float w = down.weight[j] * right.weight[i];
#pragma unroll
            for (int k = 0; k < CU_BLEND; k++)
                v[k] = fmaf(w, one[k], v[k]);
        }
#pragma unroll
    for (int k = 0; k < CU_BLEND; k++)
        v[k] *= m;
}

#endif
