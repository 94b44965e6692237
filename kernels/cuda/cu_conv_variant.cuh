/* cu_conv_variant.cuh - a kind of product of matrices (cu_gemm.cuh) as variants of Conv and
 * ConvTranspose. A kind is one struct:
 *
 *     struct halves {
 *         typedef __half element;             of activations
 *         typedef __half weight;              packed; made from float by a cast, rounding
 *         static const int threads = 128, kstep = 32;
 *         static const int lanes = 8;         of a place at most: channels read at once
 *         static const unsigned kinds = 0;    see tgi_variant
 *         static int takes(const cu_gemm_plan *p);        0: not for places of p->lanes
 *         static int channels(const cu_gemm_plan *p);     of a tile: chosen from p->lanes and
 *                                                         cu_gemm_channels(p)
 *         static double cost(const cu_gemm_plan *p);      over the time of products that count
 *         static cu_product_kernel kernel(const cu_gemm_plan *p, unsigned *shared_bytes);
 *
 *         static size_t bytes(const cu_gemm_plan *p);     packed
 *         static void pack(const cu_gemm_plan *p, const tgi_op_ctx *ctx, void *dst);
 *         static dim3 arguments(const cu_gemm_plan *p, const tgi_call *call, cu_gemm_args *a);
 *     };
 *
 * Kinds whose K runs over places have the last three from cu_by_places<halves>, and this:
 *
 *         static int64_t at(int bn, int k, int n);        place of a weight in a block: value k
 *                                                         of a step, channel n of the tile
 *
 *     constexpr tgi_variant cu_conv_mma_f16 = cu_product<halves, 0>("conv_mma");
 *     constexpr tgi_variant cu_conv_transpose_mma_f16 =
 *         cu_product<halves, 1>("conv_transpose_mma");
 */
#ifndef TGI_CU_CONV_VARIANT_CUH
#define TGI_CU_CONV_VARIANT_CUH

#include "kernels/cuda/cu_gemm.cuh"
#include "kernels/cuda/cu_map.cuh"

typedef void (*cu_product_kernel)(const cu_gemm_args *a);

template <class K> struct cu_by_places {
    static size_t bytes(const cu_gemm_plan *p)
    {
        return cu_gemm_layout_of(p, sizeof(typename K::weight)).bytes;
    }
    static void pack(const cu_gemm_plan *p, const tgi_op_ctx *ctx, void *dst)
    {
        cu_gemm_pack<K>(p, ctx, dst);
    }
    static dim3 arguments(const cu_gemm_plan *p, const tgi_call *call, cu_gemm_args *a)
    {
        return cu_gemm_arguments(p, call, sizeof(typename K::weight), a);
    }
};

template <class K, int TR> struct cu_product_of {
    static int plan(const tgi_op_ctx *ctx, const int64_t *seg_c, int n_seg, cu_gemm_plan *p)
    {
        if (!cu_gemm_plan_of(ctx, seg_c, n_seg, TR, K::lanes, p) || !K::takes(p))
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
        tgi_geom g;
        cu_gemm_plan p;
        return cu_conv_accepts(ctx, lay, TR, &g) && planned(ctx, lay, &p);
    }

    static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
    {
        cu_gemm_plan p;
        return planned(ctx, lay, &p) ? K::bytes(&p) : 0;
    }

    static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
    {
        cu_gemm_plan p;
        if (planned(ctx, lay, &p))
            K::pack(&p, ctx, dst);
    }

    static double cost(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
    {
        cu_gemm_plan p;
        return planned(ctx, lay, &p) ? K::cost(&p) : 1e9;
    }

    static void run(const tgi_call *call)
    {
        cu_gemm_plan p;
        cu_gemm_args a;
        unsigned shared_bytes = 0;
        int64_t seg_c[TGI_MAX_SEG];
        for (int s = 0; s < call->src[0].n_seg; s++)
            seg_c[s] = call->src[0].seg[s].c;
        if (!plan(call->ctx, seg_c, call->src[0].n_seg, &p))
            return; /* `accepts` said no */
        const dim3 grid = K::arguments(&p, call, &a);
        const cu_product_kernel kernel = K::kernel(&p, &shared_bytes);
        cu_launch_pool(call, kernel, grid, dim3(K::threads), shared_bytes, &a);
    }
};

template <class K, int TR> constexpr tgi_variant cu_product(const char *name)
{
    typedef cu_product_of<K, TR> P;
    tgi_variant v = cu_variant(name, TR ? "ConvTranspose" : "Conv", P::accepts, P::run);
    v.kinds = K::kinds;
    v.reads_doubled = 1;
    v.packed_bytes = P::packed_bytes;
    v.pack = P::pack;
    v.cost = P::cost;
    return v;
}

#endif
