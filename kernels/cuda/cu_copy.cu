/* cu_copy.cu - values that move unchanged: Concat, Slice, Split, Pad, Tile.
 *
 * Each result pixel is a pixel of the source by a rule of its coordinates. Channels that lie
 * side by side there at a multiple of V move as one; where pieces meet in the middle of it, one
 * by one. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_side.cuh"

/* ---- Concat ------------------------------------------------------------------------------ */

/* All inputs are one operand of many segments. */
struct cu_concat_f {
    cu_operand src;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        cu_read<T, V>(pool, src, p.z, p.y, p.x, p.c, v);
    }
};

/* The same with constants among them: channel by channel. */
struct cu_concat_sides_f {
    int32_t first, n;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        int32_t next = p.c;
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = 0.0f;
        cu_each(v, [&](float) {
            int32_t c = next++, k = 0;
            for (; k < n && c >= pool.item[first + k].side.channels; k++)
                c -= pool.item[first + k].side.channels;
            if (k == n)
                return 0.0f;
            const cu_side &s = pool.item[first + k].side;
            const cu_operand o = {s.first, s.n};
            return s.n ? cu_read_one<T>(pool, o, p.z, p.y, p.x, c) : cu_const_at(s, p, c);
        });
    }
};

static int accepts_concat(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    for (int i = 0; i < ctx->n_src; i++)
        if (ctx->const_src[i] ? tgi_const_count(ctx->const_src[i]) >= (int64_t)1 << 31
                              : lay->src_segs[i] < 1)
            return 0;
    return cu_fits(&ctx->src[0]) && cu_fits(&ctx->dst[0]) && !lay->n_doubled;
}

static size_t concat_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    (void)lay;
    return cu_sides_bytes(ctx, ctx->n_src);
}

static void concat_pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    (void)lay;
    cu_sides_pack(ctx, ctx->n_src, (float *)dst);
}

template <class T> static void concat_sides(const tgi_call *call)
{
    const float *packed = (const float *)call->packed;
    cu_map_args<cu_concat_sides_f> a;
    cu_map_begin(&a, call);
    a.f.first = a.pool.n;
    a.f.n = call->ctx->n_src;
    a.pool.n += a.f.n;
    for (int i = 0; i < a.f.n; i++) {
        cu_side s = cu_side_of(call, i, 0, &packed, &a.pool);
        s.channels = (int32_t)call->ctx->src[i].dim[1];
        a.pool.item[a.f.first + i].side = s;
    }
    cu_map_go<T>(&a, call, 0);
}

template <class T> static void run_concat(const tgi_call *call)
{
    cu_map_args<cu_concat_f> a;
    if (concat_bytes(call->ctx, NULL)) {
        concat_sides<T>(call);
        return;
    }
    cu_map_begin(&a, call);
    a.f.src.first = a.pool.n;
    a.f.src.n = 0;
    for (int i = 0; i < call->ctx->n_src; i++)
        a.f.src.n += cu_pool_operand(&a.pool, &call->src[i]).n;
    cu_map_go<T>(&a, call, 0);
}

constexpr tgi_variant concat_variant(cu_run_fn run)
{
    tgi_variant v = cu_variant("cu_concat", "Concat", accepts_concat, run);
    v.packed_bytes = concat_bytes;
    v.pack = concat_pack;
    return v;
}
#define CONCAT(suffix, T, ...)                                                                 \
    constexpr tgi_variant cu_concat_##suffix = concat_variant(run_concat<T>);
CU_ELEMENTS(CONCAT, )

/* ---- Slice, Split ------------------------------------------------------------------------ */

struct cu_slice_f {
    cu_operand src;
    int32_t start[4], step[4]; /* c, z, y, x */
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int32_t c = start[0] + p.c * step[0], z = start[1] + p.z * step[1],
                      y = start[2] + p.y * step[2], x = start[3] + p.x * step[3];
        if (step[0] == 1)
            cu_read<T, V>(pool, src, z, y, x, c, v);
        else
            cu_gather<T, V>(pool, src, z, y, x, c, step[0], v);
    }
};

static int accepts_slice(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_slice s;
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay) &&
           tgi_slice_map(ctx, &s, NULL) == TG_OK;
}

template <class T> static void run_slice(const tgi_call *call)
{
    const int rank = call->ctx->src[0].rank;
    tgi_slice s;
    cu_map_args<cu_slice_f> a;
    if (tgi_slice_map(call->ctx, &s, NULL) != TG_OK)
        return;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    for (int i = 0; i < 4; i++) {
        const int k = i == 0 ? 1 : rank - 4 + i;
        const int there = i == 0 || k > 1; /* rank 4 has no z */
        /* a step beyond the extent is taken once, from 0 */
        const int64_t step = !there || s.n[k] == 1 ? 1 : s.step[k];
        a.f.start[i] = there ? (int32_t)s.start[k] : 0;
        a.f.step[i] = (int32_t)step;
    }
    cu_map_go<T>(&a, call, 0);
}

static int accepts_split(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    for (int i = 0; i < ctx->n_dst; i++)
        if (!cu_fits(&ctx->dst[i]))
            return 0;
    return lay->n_epi == 0 && !ctx->const_src[0] && cu_accepts_image(ctx, lay);
}

template <class T> static void run_split(const tgi_call *call)
{
    int32_t first = 0;
    for (int i = 0; i < call->ctx->n_dst; i++) {
        cu_map_args<cu_slice_f> a;
        cu_map_begin(&a, call);
        a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
        for (int k = 0; k < 4; k++) {
            a.f.start[k] = k == 0 ? first : 0;
            a.f.step[k] = 1;
        }
        cu_map_go<T>(&a, call, i);
        first += (int32_t)call->dst[i].c;
    }
}

/* ---- Pad --------------------------------------------------------------------------------- */

struct cu_pad_f {
    cu_operand src;
    int32_t mode; /* tgi_padding */
    int32_t before[3], in[3];
    float value;
    /* tgi_pad_source */
    __device__ __forceinline__ int32_t source(int k, int32_t o) const
    {
        const int32_t i = o - before[k], n = in[k];
        if (i >= 0 && i < n)
            return i;
        if (mode == TGI_PADDING_CONSTANT)
            return -1;
        if (mode == TGI_PADDING_WRAP)
            return i % n < 0 ? i % n + n : i % n;
        const int32_t far = mode == TGI_PADDING_EDGE ? i : i < 0 ? -i : 2 * (n - 1) - i;
        return far < 0 ? 0 : far >= n ? n - 1 : far;
    }
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int32_t z = source(0, p.z), y = source(1, p.y), x = source(2, p.x);
        if (z >= 0 && y >= 0 && x >= 0) {
            cu_read<T, V>(pool, src, z, y, x, p.c, v);
            return;
        }
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = value;
    }
};

static int accepts_pad(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_pad p;
    if (ctx->const_src[0] || !cu_accepts_image(ctx, lay) ||
        tgi_pad_map(ctx, &p, NULL) != TG_OK || p.p0[1] || p.p1[1])
        return 0;
    for (int k = 2; k < ctx->src[0].rank; k++)
        if (p.p0[k] >= (int64_t)1 << 30)
            return 0;
    return 1;
}

template <class T> static void run_pad(const tgi_call *call)
{
    const tgi_desc *s = &call->ctx->src[0];
    tgi_pad p;
    cu_map_args<cu_pad_f> a;
    if (tgi_pad_map(call->ctx, &p, NULL) != TG_OK)
        return;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.mode = p.mode;
    a.f.value = p.value;
    for (int i = 0; i < 3; i++) {
        const int k = s->rank - 3 + i;
        a.f.before[i] = k < 2 ? 0 : (int32_t)p.p0[k];
        a.f.in[i] = (int32_t)tgi_desc_axis(s, i);
    }
    cu_map_go<T>(&a, call, 0);
}

/* ---- Tile -------------------------------------------------------------------------------- */

struct cu_tile_f {
    cu_operand src;
    int32_t channels, in[3];
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        const int32_t z = p.z % in[0], y = p.y % in[1], x = p.x % in[2], c = p.c % channels;
        if (c + V <= channels) {
            cu_read<T, V>(pool, src, z, y, x, c, v);
            return;
        }
        int32_t i = p.c;
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = 0.0f;
        cu_each(v, [&](float) { return cu_read_one<T>(pool, src, z, y, x, i++ % channels); });
    }
};

template <class T> static void run_tile(const tgi_call *call)
{
    const tgi_desc *s = &call->ctx->src[0];
    cu_map_args<cu_tile_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.channels = (int32_t)s->dim[1];
    for (int i = 0; i < 3; i++)
        a.f.in[i] = (int32_t)tgi_desc_axis(s, i);
    cu_map_go<T>(&a, call, 0);
}

static int accepts_tile(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay);
}

CU_VARIANT(slice, "cu_slice", "Slice", accepts_slice, run_slice)
CU_VARIANT(split, "cu_split", "Split", accepts_split, run_split)
CU_VARIANT(pad, "cu_pad", "Pad", accepts_pad, run_pad)
CU_VARIANT(tile, "cu_tile", "Tile", accepts_tile, run_tile)
