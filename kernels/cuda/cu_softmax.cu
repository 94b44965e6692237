/* cu_softmax.cu - operators over the channels of each pixel: Softmax, LogSoftmax, Hardmax,
 * ArgMax, ArgMin, LpNormalization, LRN, ChannelNorm, PixelMatMul.
 *
 * A thread has a pixel: it walks the channels in their order for what it needs to know of them
 * (largest, sum, norm), then once more for the results. Sums are in float32; a softmax adds
 * eight partial sums, by channel modulo 8, so that long ones stay exact. */
#include "kernels/cuda/cu_channels.cuh"
#include "kernels/cuda/cu_ops.cuh"

enum cu_along { CU_SOFT, CU_LOG_SOFT, CU_HARD, CU_NORM_1, CU_NORM_2, CU_CENTRED, CU_SCALED };

struct cu_along_args {
    cu_cells cells;
    cu_view dst;
    cu_epi epi;
    cu_operand src;
    int32_t kind;  /* cu_along: looked at by the kernel, there are kernels enough */
    float epsilon; /* of CU_CENTRED and CU_SCALED */
    cu_pool pool;
};

struct cu_known {
    float top, sum; /* of the channels */
    int32_t at;     /* of the first largest */
};

/* Sum of v(x, channel) over the channels of a pixel, in eight parts. */
template <class T, class F>
__device__ __forceinline__ float cu_sum_channels(const cu_pool &pool, cu_operand src,
                                                 const cu_place &p, const F &of)
{
    float part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    cu_each_channel<T>(pool, src, p.z, p.y, p.x, [&](float v, int32_t) {
        /* the oldest sum comes to the front: channel c is added to sum c modulo 8 */
        const float sum = part[0] + of(v);
#pragma unroll
        for (int i = 0; i < 7; i++)
            part[i] = part[i + 1];
        part[7] = sum;
    });
    return ((part[0] + part[1]) + (part[2] + part[3])) +
           ((part[4] + part[5]) + (part[6] + part[7]));
}

/* top: the mean, or 0; sum: one over the deviation from it. */
template <class T>
__device__ __forceinline__ cu_known cu_know_norm(const cu_pool &pool, cu_operand src, int kind,
                                                 float epsilon, int32_t channels,
                                                 const cu_place &p)
{
    cu_known k = {0.0f, 0.0f, 0};
    const float n = (float)channels;
    if (kind == CU_CENTRED)
        k.top = cu_sum_channels<T>(pool, src, p, [&](float v) { return v; }) / n;
    const float mean = k.top;
    const float squares =
        cu_sum_channels<T>(pool, src, p, [&](float v) { return (v - mean) * (v - mean); });
    k.sum = 1.0f / sqrtf(squares / n + epsilon);
    return k;
}

template <class T>
__device__ __forceinline__ cu_known cu_know(const cu_pool &pool, cu_operand src, int kind,
                                            const cu_place &p)
{
    cu_known k = {-INFINITY, 0.0f, 0};
    if (kind <= CU_HARD)
        cu_each_channel<T>(pool, src, p.z, p.y, p.x, [&](float v, int32_t c) {
            if (v > k.top || c == 0) {
                k.top = v;
                k.at = c;
            }
        });
    if (kind == CU_HARD)
        return k;
    k.sum = cu_sum_channels<T>(pool, src, p, [&](float v) {
        return kind == CU_NORM_1 ? fabsf(v) : kind == CU_NORM_2 ? v * v : expf(v - k.top);
    });
    if (kind == CU_LOG_SOFT)
        k.sum = logf(k.sum);
    if (kind == CU_NORM_2)
        k.sum = sqrtf(k.sum);
    return k;
}

template <class T, int V>
__global__ void __launch_bounds__(256, 4) cu_along_channels(const cu_along_args *__restrict__ a)
{
    cu_place p;
    if (!cu_place_of<V>(a->cells, &p))
        return;
    const int kind = a->kind;
    const cu_known k = kind >= CU_CENTRED
                           ? cu_know_norm<T>(a->pool, a->src, kind, a->epsilon, a->dst.c, p)
                           : cu_know<T>(a->pool, a->src, kind, p);
    for (p.c = 0; p.c < a->dst.cb; p.c += V) {
        float v[V];
        int32_t c = p.c;
        cu_read<T, V>(a->pool, a->src, p.z, p.y, p.x, p.c, v);
        cu_each(v, [&](float x) {
            const int32_t mine = c++;
            return kind == CU_SOFT       ? expf(x - k.top) / k.sum
                   : kind == CU_LOG_SOFT ? x - k.top - k.sum
                   : kind == CU_HARD     ? (mine == k.at ? 1.0f : 0.0f)
                   : kind >= CU_CENTRED  ? (x - k.top) * k.sum
                   : k.sum > 0.0f        ? x / k.sum
                                         : 0.0f;
        });
        cu_epilogue<T, V>(a->pool, a->epi, p, v);
        cu_store<T, V>(a->dst, p, v);
    }
}

template <class T> static void run_along(const tgi_call *call, int kind, float epsilon = 0)
{
    const int lanes = cu_lanes(call->dst[0].cb);
    cu_shape s;
    cu_along_args a;
    a.kind = kind;
    a.epsilon = epsilon;
    a.pool.n = a.pool.unused = 0;
    a.epi = cu_pool_epilogue(&a.pool, call);
    a.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.dst = cu_view_of(&call->dst[0]);
    a.cells = cu_cells_of(call, 1, &s);
    cu_launch_pool(call,
                   lanes == 8   ? cu_along_channels<T, 8>
                   : lanes == 4 ? cu_along_channels<T, 4>
                   : lanes == 2 ? cu_along_channels<T, 2>
                                : cu_along_channels<T, 1>,
                   s.grid, s.block, 0, &a);
}

/* The axis is that of channels alone (family_softmax.c: before opset 13 those behind it count
 * too). */
static int accepts_softmax(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int64_t axis = ((const axis_attrs *)ctx->attrs)->axis;
    const int not_given = axis == 100, rank = ctx->src[0].rank;
    if (ctx->const_src[0] || !cu_accepts_image(ctx, lay))
        return 0;
    for (int k = 2; ctx->opset < 13 && k < rank; k++)
        if (ctx->src[0].dim[k] != 1)
            return 0;
    return axis == 1 || axis == 1 - rank || (not_given && ctx->opset < 13);
}

static int accepts_lp(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const lp_norm_attrs *n = (const lp_norm_attrs *)ctx->attrs;
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay) &&
           (n->axis == 1 || n->axis == 1 - ctx->src[0].rank);
}

template <class T> static void run_soft(const tgi_call *call)
{
    run_along<T>(call, CU_SOFT);
}
template <class T> static void run_log_soft(const tgi_call *call)
{
    run_along<T>(call, CU_LOG_SOFT);
}
template <class T> static void run_hard(const tgi_call *call)
{
    run_along<T>(call, CU_HARD);
}
template <class T> static void run_lp_norm(const tgi_call *call)
{
    if (((const lp_norm_attrs *)call->ctx->attrs)->p == 1)
        run_along<T>(call, CU_NORM_1);
    else
        run_along<T>(call, CU_NORM_2);
}

static int accepts_channel_norm(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay);
}
template <class T> static void run_channel_norm(const tgi_call *call)
{
    const channel_norm_attrs *n = (const channel_norm_attrs *)call->ctx->attrs;
    run_along<T>(call, n->centred ? CU_CENTRED : CU_SCALED, n->epsilon);
}

/* ---- Where the largest is ---------------------------------------------------------------- */

struct cu_arg_f {
    cu_operand src;
    float sign;   /* -1: the smallest */
    int32_t last; /* of equals */
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        cu_best b = {0.0f, 0};
        cu_each_channel<T>(pool, src, p.z, p.y, p.x,
                           [&](float x, int32_t c) { b.offer(x, c, sign, last); });
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = (float)b.at;
    }
};

/* The place is a number of the element type: it has to be one. */
template <class T> static int accepts_arg(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const arg_attrs *a = (const arg_attrs *)ctx->attrs;
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay) && a->keepdims &&
           ctx->src[0].dim[1] <= cu_counts_to<T>() &&
           (a->axis == 1 || a->axis == 1 - ctx->src[0].rank);
}

template <class T> static void run_arg(const tgi_call *call, float sign)
{
    cu_map_args<cu_arg_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.sign = sign;
    a.f.last = ((const arg_attrs *)call->ctx->attrs)->last != 0;
    cu_map_go<T>(&a, call, 0);
}
template <class T> static void run_arg_max(const tgi_call *call)
{
    run_arg<T>(call, 1.0f);
}
template <class T> static void run_arg_min(const tgi_call *call)
{
    run_arg<T>(call, -1.0f);
}

/* ---- LRN --------------------------------------------------------------------------------- */

struct cu_lrn_f {
    cu_operand src;
    float alpha, beta, bias; /* alpha over size */
    int32_t size, channels;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        int32_t c = p.c;
        cu_read<T, V>(pool, src, p.z, p.y, p.x, p.c, v);
        cu_each(v, [&](float x) {
            const int32_t from = c - (size - 1) / 2, to = c + size / 2;
            float sum = 0.0f;
            for (int32_t k = from < 0 ? 0 : from; k <= to && k < channels; k++) {
                const float t = cu_read_one<T>(pool, src, p.z, p.y, p.x, k);
                sum += t * t;
            }
            c++;
            return x / powf(bias + alpha * sum, beta);
        });
    }
};

static int accepts_lrn(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && cu_accepts_image(ctx, lay);
}

template <class T> static void run_lrn(const tgi_call *call)
{
    const lrn_attrs *attrs = (const lrn_attrs *)call->ctx->attrs;
    cu_map_args<cu_lrn_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.alpha = (float)((double)attrs->alpha / (double)attrs->size);
    a.f.beta = attrs->beta;
    a.f.bias = attrs->bias;
    a.f.size = (int32_t)attrs->size;
    a.f.channels = (int32_t)call->dst[0].c;
    cu_map_go<T>(&a, call, 0);
}

/* ---- A matrix that was computed ---------------------------------------------------------- */

struct cu_pixel_product_f {
    cu_operand src, matrix;
    int32_t outer, unused;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = 0.0f;
        cu_each_channel<T>(pool, src, p.z, p.y, p.x, [&](float x, int32_t k) {
#pragma unroll
            for (int i = 0; i < V; i++)
                if (p.c + i < outer)
                    v[i] += x * cu_read_one<T>(pool, matrix, 0, 0, 0, k * outer + p.c + i);
        });
    }
};

static int accepts_pixel_product(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return !ctx->const_src[0] && !ctx->const_src[1] && cu_accepts_image(ctx, lay);
}

template <class T> static void run_pixel_product(const tgi_call *call)
{
    cu_map_args<cu_pixel_product_f> a;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.matrix = cu_pool_operand(&a.pool, &call->src[1]);
    a.f.outer = (int32_t)call->dst[0].c;
    a.f.unused = 0;
    cu_map_go<T>(&a, call, 0);
}

CU_VARIANT(softmax, "cu_softmax", "Softmax", accepts_softmax, run_soft)
CU_VARIANT(log_softmax, "cu_log_softmax", "LogSoftmax", accepts_softmax, run_log_soft)
CU_VARIANT(hardmax, "cu_hardmax", "Hardmax", accepts_softmax, run_hard)
CU_VARIANT(lp_normalization, "cu_lp_normalization", "LpNormalization", accepts_lp, run_lp_norm)
#define CU_ARG(suffix, T, ...)                                                                 \
    constexpr tgi_variant cu_arg_max_##suffix =                                                \
        cu_variant("cu_arg_max", "ArgMax", accepts_arg<T>, run_arg_max<T>);                    \
    constexpr tgi_variant cu_arg_min_##suffix =                                                \
        cu_variant("cu_arg_min", "ArgMin", accepts_arg<T>, run_arg_min<T>);
CU_ELEMENTS(CU_ARG, )
CU_VARIANT(lrn, "cu_lrn", "LRN", accepts_lrn, run_lrn)
CU_VARIANT(channel_norm, "cu_channel_norm", "ChannelNorm", accepts_channel_norm,
           run_channel_norm)
CU_VARIANT(pixel_product, "cu_pixel_product", "PixelMatMul", accepts_pixel_product,
           run_pixel_product)
