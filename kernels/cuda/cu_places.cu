/* cu_places.cu - MaxPool with its second output, which says where each largest pixel was, and
 * MaxUnpool, which puts numbers back there. Over whole arrays.
 *
 * A place counts elements of the whole array (op_max_pool.c) and travels as an element: both
 * are taken where every place is one, up to 2^24 in float32. What several numbers go to has the
 * last of them, as if they were put one after the other: of each element first the greatest
 * number of a source that goes there is found, then it is filled, so no order of threads shows.
 *
 * A place outside of the array cannot come from MaxPool. It is an error on the processor; here
 * it makes the first element NaN. */
#include "kernels/cuda/cu_flat.cuh"
#include "kernels/cuda/cu_ops.cuh"

extern "C" {
#include "kernels/ops/geometry.h"
}

/* ---- MaxPool ----------------------------------------------------------------------------- */

/* Axes are z, y, x; planes are samples times channels. */
struct pool_args {
    int64_t n; /* results; 0 at rest */
    const char *src;
    char *dst, *place;
    int64_t k[3], s[3], d[3], p0[3], in[3], out[3];
    int64_t by_columns; /* storage_order */
};

/* The place of element `at`, as storage_order counts it. */
__device__ __forceinline__ int64_t place_of(const pool_args *a, int64_t at)
{
    if (!a->by_columns)
        return at;
    const int64_t x = cu_take_axis(&at, a->in[2]), y = cu_take_axis(&at, a->in[1]),
                  z = cu_take_axis(&at, a->in[0]);
    return ((at * a->in[2] + x) * a->in[1] + y) * a->in[0] + z;
}

template <class T> CU_KERNEL(pool_places, pool_args, CU_FLAT_THREADS, 4)
{
    const T *const src = reinterpret_cast<const T *>(a->src);
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step()) {
        int64_t first[3], plane = i, top = -1;
        for (int k = 2; k >= 0; k--)
            first[k] = cu_take_axis(&plane, a->out[k]) * a->s[k] - a->p0[k];
        for (int64_t kz = 0, z = first[0]; kz < a->k[0]; kz++, z += a->d[0])
            for (int64_t ky = 0, y = first[1]; ky < a->k[1]; ky++, y += a->d[1])
                for (int64_t kx = 0, x = first[2]; kx < a->k[2]; kx++, x += a->d[2]) {
                    if (z < 0 || y < 0 || x < 0 || z >= a->in[0] || y >= a->in[1] ||
                        x >= a->in[2])
                        continue;
                    const int64_t at = ((plane * a->in[0] + z) * a->in[1] + y) * a->in[2] + x;
                    if (top < 0 || cu_float(src[at]) > cu_float(src[top]))
                        top = at;
                }
        top = top < 0 ? 0 : top; /* `accepts`: there is one */
        reinterpret_cast<T *>(a->dst)[i] = src[top];
        reinterpret_cast<T *>(a->place)[i] = cu_element<T>((float)place_of(a, top));
    }
}

/* Every window has a pixel. */
static int windows_have_pixels(const tgi_geom *g)
{
    for (int i = 0; i < 3; i++)
        for (int64_t o = 0; o < g->out[i]; o++) {
            const int64_t lo = o * g->s[i] - g->p0[i];
            const int64_t at = lo < 0 ? lo + (-lo + g->d[i] - 1) / g->d[i] * g->d[i] : lo;
            if (at >= g->in[i] || at > lo + (g->k[i] - 1) * g->d[i])
                return 0;
        }
    return 1;
}

template <class T> int accepts_pool(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    return ctx->n_dst == 2 && cu_flat_accepts(ctx, lay, CU_ALL_INTEGERS) &&
           !ctx->const_src[0] && cu_count(&ctx->src[0]) <= cu_counts_to<T>() &&
           tgi_pool_geometry(ctx, &g, NULL) == TG_OK && windows_have_pixels(&g);
}

template <class T> void run_pool(const tgi_call *call)
{
    tgi_geom g;
    cu_flat f;
    pool_args a;
    if (tgi_pool_geometry(call->ctx, &g, NULL) != TG_OK)
        return; /* `accepts` said no */
    memset(&a, 0, sizeof a);
    cu_flat_begin<T, T>(&f, call, 0);
    for (int i = 0; i < 3; i++) {
        a.k[i] = g.k[i];
        a.s[i] = g.s[i];
        a.d[i] = g.d[i];
        a.p0[i] = g.p0[i];
        a.in[i] = g.in[i];
        a.out[i] = g.out[i];
    }
    a.by_columns = ((const pool_attrs *)call->ctx->attrs)->storage_order != 0;
    a.src = f.src[0];
    a.dst = f.dst[0];
    a.place = f.dst[1];
    const int64_t n = cu_count(&call->ctx->dst[0]);
    a.n = f.count(n);
    cu_launch(call, pool_places<T>, cu_flat_grid(n, CU_FLAT_THREADS), dim3(CU_FLAT_THREADS), 0,
              a);
    cu_flat_end<T>(&f);
}

/* ---- MaxUnpool --------------------------------------------------------------------------- */

#define NOWHERE INT32_MAX /* a place that is none; larger than every number of a source */

struct unpool_args {
    int64_t n, sources; /* results; 0 at rest */
    const char *src, *place;
    char *dst;
    int32_t *last; /* of each result the number of its source, or -1 */
    int64_t rank, covered[TGI_MAX_RANK], stride[TGI_MAX_RANK];
    int64_t places; /* that are covered */
};

CU_KERNEL(unpool_clear, unpool_args, CU_FLAT_THREADS, 4)
{
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step())
        a->last[i] = -1;
}

template <class T> CU_KERNEL(unpool_find, unpool_args, CU_FLAT_THREADS, 4)
{
    for (int64_t i = cu_flat_first(); i < a->sources; i += cu_flat_step()) {
        const float at = cu_float(reinterpret_cast<const T *>(a->place)[i]);
        if (!(at >= 0.0f && at < (float)a->places)) {
            atomicMax(a->last, NOWHERE);
            continue;
        }
        int64_t rest = (int64_t)at, to = 0;
        for (int k = (int)a->rank - 1; k >= 0; k--)
            to += cu_take_axis(&rest, a->covered[k]) * a->stride[k];
        atomicMax(a->last + to, (int32_t)i);
    }
}

template <class T> CU_KERNEL(unpool_fill, unpool_args, CU_FLAT_THREADS, 4)
{
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step()) {
        const int32_t from = a->last[i];
        reinterpret_cast<T *>(a->dst)[i] = from == NOWHERE ? cu_element<T>(NAN)
                                           : from < 0
                                               ? cu_element<T>(0.0f)
                                               : reinterpret_cast<const T *>(a->src)[from];
    }
}

template <class T> int accepts_unpool(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_desc d;
    return ctx->n_dst == 1 && cu_flat_accepts(ctx, lay, CU_ALL_INTEGERS) &&
           ctx->dst[0].dtype == TG_DTYPE_F32 && tgi_unpool_covered(ctx, &d, NULL) == TG_OK &&
           cu_count(&d) >= 1 && cu_count(&d) <= cu_counts_to<T>() &&
           cu_count(&ctx->src[0]) < NOWHERE && cu_flat_const_exact<T>(ctx, 2u);
}

const uint32_t numbers_and_places = 3u;

template <class T> size_t bytes_unpool(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return cu_flat_const_bytes<T>(ctx, numbers_and_places);
}

template <class T> void pack_unpool(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    cu_flat_const_pack<T>(ctx, numbers_and_places, dst);
}

static size_t scratch_unpool(const tgi_op_ctx *ctx, const tgi_layout_hint *, int64_t, int)
{
    return cu_flat_align((size_t)cu_count(&ctx->dst[0]) * sizeof(int32_t));
}

template <class T> void run_unpool(const tgi_call *call)
{
    const tgi_op_ctx *ctx = call->ctx;
    cu_flat f;
    unpool_args a;
    tgi_desc d;
    if (tgi_unpool_covered(ctx, &d, NULL) != TG_OK)
        return; /* `accepts` said no */
    memset(&a, 0, sizeof a);
    cu_flat_begin<T, T>(&f, call, numbers_and_places);
    a.src = f.src[0];
    a.place = f.src[1];
    a.dst = f.dst[0];
    a.last = (int32_t *)(void *)f.scratch;
    a.rank = d.rank;
    for (int k = 0; k < d.rank; k++)
        a.covered[k] = d.dim[k];
    tgi_dense_strides(&ctx->dst[0], a.stride);
    a.places = cu_count(&d);
    const int64_t n = cu_count(&ctx->dst[0]), sources = cu_count(&ctx->src[0]);
    a.n = f.count(n);
    a.sources = f.count(sources);
    const dim3 results = cu_flat_grid(n, CU_FLAT_THREADS), block(CU_FLAT_THREADS);
    cu_launch(call, unpool_clear, results, block, 0, a);
    cu_launch(call, unpool_find<T>, cu_flat_grid(sources, CU_FLAT_THREADS), block, 0, a);
    cu_launch(call, unpool_fill<T>, results, block, 0, a);
    cu_flat_end<T>(&f);
}

/* ---- The variants ------------------------------------------------------------------------ */

template <class T> constexpr tgi_variant unpool_variant(void)
{
    tgi_variant v = cu_flat_variant("cu_max_unpool", "MaxUnpool", accepts_unpool<T>,
                                    bytes_unpool<T>, pack_unpool<T>, run_unpool<T>);
    v.scratch_bytes = scratch_unpool;
    return v;
}

#define CU_PLACES_OF(suffix, T, unused)                                                        \
    constexpr tgi_variant cu_max_pool_places_##suffix = cu_flat_variant(                       \
        "cu_max_pool_places", "MaxPool", accepts_pool<T>, NULL, NULL, run_pool<T>);            \
    constexpr tgi_variant cu_max_unpool_##suffix = unpool_variant<T>();
CU_ELEMENTS(CU_PLACES_OF, unused)
