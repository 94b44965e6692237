/* cu_pool.cu - MaxPool, AveragePool, LpPool: a window of pixels around each result.
 *
 * Windows are cut at the image by image coordinates, so nothing outside of it is read. Sums run
 * in float32 over z, then y, then x. A thread computes 8 channels, neighbours share the
 * window's pixels in the cache. */
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_ops.cuh"

struct cu_window {
    int32_t k[3], s[3], d[3], p0[3], p1[3], in[3]; /* z, y, x */
};

static cu_window window_of(const tgi_geom *g)
{
    cu_window w;
    for (int i = 0; i < 3; i++) {
        w.k[i] = (int32_t)g->k[i];
        w.s[i] = (int32_t)g->s[i];
        w.d[i] = (int32_t)g->d[i];
        w.p0[i] = (int32_t)g->p0[i];
        w.p1[i] = (int32_t)g->p1[i];
        w.in[i] = (int32_t)g->in[i];
    }
    return w;
}

/* Taps [lo, hi) of the window at output coordinate o, on axis i, that lie inside the image. */
__device__ __forceinline__ void cu_taps_inside(const cu_window &w, int i, int32_t o,
                                               int32_t *lo, int32_t *hi)
{
    const int32_t first = o * w.s[i] - w.p0[i], room = w.in[i] - first;
    *lo = first < 0 ? (-first + w.d[i] - 1) / w.d[i] : 0;
    *hi = room <= 0 ? 0 : (room + w.d[i] - 1) / w.d[i];
    *hi = *hi < w.k[i] ? *hi : w.k[i];
}

/* Taps inside the padded image: what count_include_pad divides by. */
__device__ __forceinline__ int32_t cu_taps_padded(const cu_window &w, int i, int32_t o)
{
    const int32_t room = w.in[i] + w.p1[i] - (o * w.s[i] - w.p0[i]);
    const int32_t n = room <= 0 ? 0 : (room + w.d[i] - 1) / w.d[i];
    return n < w.k[i] ? n : w.k[i];
}

enum cu_pool_kind { CU_POOL_MAX, CU_POOL_AVERAGE, CU_POOL_LP };

template <int KIND> struct cu_pool_f {
    cu_operand src;
    cu_window w;
    int32_t padded; /* count_include_pad */
    float power;
    template <class T, int V>
    __device__ __forceinline__ void at(const cu_pool &pool, const cu_place &p,
                                       float (&v)[V]) const
    {
        int32_t z0, z1, y0, y1, x0, x1;
        cu_taps_inside(w, 0, p.z, &z0, &z1);
        cu_taps_inside(w, 1, p.y, &y0, &y1);
        cu_taps_inside(w, 2, p.x, &x0, &x1);
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = KIND == CU_POOL_MAX ? -INFINITY : 0.0f;
        for (int32_t z = z0; z < z1; z++)
            for (int32_t y = y0; y < y1; y++)
                for (int32_t x = x0; x < x1; x++) {
                    float t[V];
                    cu_read<T, V>(pool, src, p.z * w.s[0] - w.p0[0] + z * w.d[0],
                                  p.y * w.s[1] - w.p0[1] + y * w.d[1],
                                  p.x * w.s[2] - w.p0[2] + x * w.d[2], p.c, t);
                    add<V>(v, t);
                }
        const int32_t inside = (z1 - z0) * (y1 - y0) * (x1 - x0);
        if (KIND == CU_POOL_AVERAGE)
            divide<V>(v, padded ? cu_taps_padded(w, 0, p.z) * cu_taps_padded(w, 1, p.y) *
                                      cu_taps_padded(w, 2, p.x)
                                : inside);
        if (KIND == CU_POOL_LP)
            root<V>(v);
    }
    template <int V> __device__ __forceinline__ void add(float (&v)[V], float (&t)[V]) const
    {
        if (KIND == CU_POOL_LP && power != 2.0f && power != 1.0f) {
            cu_each(t, [&](float x) { return powf(fabsf(x), power); });
        }
#pragma unroll
        for (int i = 0; i < V; i++) {
            if (KIND == CU_POOL_MAX)
                v[i] = t[i] > v[i] ? t[i] : v[i];
            else if (KIND == CU_POOL_AVERAGE)
                v[i] += t[i];
            else
                v[i] += power == 2.0f ? t[i] * t[i] : fabsf(t[i]);
        }
    }
    template <int V> __device__ __forceinline__ void divide(float (&v)[V], int32_t n) const
    {
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = n ? v[i] / (float)n : 0.0f;
    }
    template <int V> __device__ __forceinline__ void root(float (&v)[V]) const
    {
        if (power == 1.0f)
            return;
        cu_each(v, [&](float x) { return power == 2.0f ? sqrtf(x) : powf(x, 1.0f / power); });
    }
};

template <class T, int KIND> static void run_pool(const tgi_call *call)
{
    const pool_attrs *attrs = (const pool_attrs *)call->ctx->attrs;
    tgi_geom g;
    cu_map_args<cu_pool_f<KIND>> a;
    if (tgi_pool_geometry(call->ctx, &g, NULL) != TG_OK)
        return;
    cu_map_begin(&a, call);
    a.f.src = cu_pool_operand(&a.pool, &call->src[0]);
    a.f.w = window_of(&g);
    a.f.padded = KIND == CU_POOL_AVERAGE && attrs->count_include_pad;
    a.f.power = KIND == CU_POOL_LP ? (float)((const lp_pool_attrs *)call->ctx->attrs)->p : 0;
    cu_map_go<T>(&a, call, 0);
}

/* Windows that fit 31 bits, as coordinates do, and so do their pixels. */
static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    return ctx->n_dst == 1 && cu_accepts_image(ctx, lay) &&
           tgi_pool_geometry(ctx, &g, NULL) == TG_OK && cu_window_fits(&g) &&
           g.k[0] * g.k[1] < (int64_t)1 << 31 && g.k[0] * g.k[1] * g.k[2] < (int64_t)1 << 31;
}

template <class T> static void run_max(const tgi_call *call)
{
    run_pool<T, CU_POOL_MAX>(call);
}
template <class T> static void run_average(const tgi_call *call)
{
    run_pool<T, CU_POOL_AVERAGE>(call);
}
template <class T> static void run_lp(const tgi_call *call)
{
    run_pool<T, CU_POOL_LP>(call);
}

CU_VARIANT(max_pool, "cu_max_pool", "MaxPool", accepts, run_max)
CU_VARIANT(average_pool, "cu_average_pool", "AveragePool", accepts, run_average)
CU_VARIANT(lp_pool, "cu_lp_pool", "LpPool", accepts, run_lp)
