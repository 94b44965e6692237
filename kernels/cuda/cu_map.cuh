/* cu_map.cuh - kernels that compute each pixel by itself: the loop around them.
 *
 * Such an operator is a struct F of plain data with one device function
 *
 *     template <class T, int V> void at(const cu_pool &, const cu_place &, float (&v)[V]) const
 *
 * which says what channels c to c + V - 1 of a pixel are. cu_map calls it, applies the epilogue
 * and stores. What is computed at a pixel depends on its place alone, so a tile has the bits of
 * the whole.
 *
 * Blocks lie along rows, one grid axis for everything: block = (row, chunk of the row), thread
 * = (pixel, V channels), channels fastest, so neighbouring threads touch neighbouring bytes. */
#ifndef TGI_CU_MAP_CUH
#define TGI_CU_MAP_CUH

#include "kernels/cuda/cu_epilogue.cuh"

/* The box of a band, and how blocks cover the largest one. */
struct cu_cells {
    int32_t lo[3], hi[3]; /* z, y, x */
    uint32_t most_y;
    uint32_t chunks; /* blocks of a row */
    uint32_t vecs;   /* threads of a pixel */
    int32_t unused;
};

struct cu_shape {
    dim3 grid, block;
};

/* Lengths of the box at most, in any band: z, y, x. */
inline void cu_most_of(const tgi_call *call, int64_t most[3])
{
    for (int i = 0; i < 3; i++) {
        const int at = call->box.rank - 3 + i;
        most[i] = at < 2 ? 1 : call->most[at] < 1 ? 1 : call->most[at];
    }
}

/* `per_pixel`: threads that work on a pixel. */
inline cu_cells cu_cells_of(const tgi_call *call, int per_pixel, cu_shape *shape)
{
    cu_cells c;
    int64_t most[3];
    cu_most_of(call, most);
    for (int i = 0; i < 3; i++) {
        const tgi_range r = tgi_box_axis(&call->box, i);
        c.lo[i] = (int32_t)r.lo;
        c.hi[i] = (int32_t)r.hi;
    }
    const int64_t work = most[2] * per_pixel;
    const int64_t threads = work >= 256 ? 256 : (work + 31) / 32 * 32;
    c.most_y = (uint32_t)most[1];
    c.chunks = (uint32_t)((work + threads - 1) / threads);
    c.vecs = (uint32_t)per_pixel;
    c.unused = 0;
    shape->grid = dim3((unsigned)(c.chunks * most[1] * most[0]));
    shape->block = dim3((unsigned)threads);
    return c;
}

/* Where this thread works; false: nowhere. */
template <int V> __device__ __forceinline__ bool cu_place_of(const cu_cells &c, cu_place *p)
{
    const uint32_t row = blockIdx.x / c.chunks;
    const uint32_t i = blockIdx.x % c.chunks * blockDim.x + threadIdx.x;
    p->z = c.lo[0] + (int32_t)(row / c.most_y);
    p->y = c.lo[1] + (int32_t)(row % c.most_y);
    p->x = c.lo[2] + (int32_t)(i / c.vecs);
    p->c = (int32_t)(i % c.vecs) * V;
    return p->z < c.hi[0] && p->y < c.hi[1] && p->x < c.hi[2];
}

template <class F> struct cu_map_args {
    cu_cells cells;
    cu_view dst;
    cu_epi epi;
    F f;
    cu_pool pool;
};

template <class T, int V, class F>
__global__ void __launch_bounds__(256, 4) cu_map(const cu_map_args<F> *__restrict__ a)
{
    cu_place p;
    float v[V];
    if (!cu_offered<T>() || !cu_place_of<V>(a->cells, &p))
        return;
    a->f.template at<T, V>(a->pool, p, v);
    cu_epilogue<T, V>(a->pool, a->epi, p, v);
    cu_store<T, V>(a->dst, p, v);
}

/* ---- Host -------------------------------------------------------------------------------- */

template <class F> inline void cu_map_begin(cu_map_args<F> *a, const tgi_call *call)
{
    a->pool.n = a->pool.unused = 0;
    a->epi = cu_pool_epilogue(&a->pool, call);
}

/* Into output `dst`; all else of `a` is set. */
template <class T, class F>
inline void cu_map_go(cu_map_args<F> *a, const tgi_call *call, int dst)
{
    const int lanes = cu_lanes(call->dst[dst].cb);
    void (*kernel)(const cu_map_args<F> *) = lanes == 8   ? cu_map<T, 8, F>
                                             : lanes == 4 ? cu_map<T, 4, F>
                                             : lanes == 2 ? cu_map<T, 2, F>
                                                          : cu_map<T, 1, F>;
    cu_shape s;
    a->dst = cu_view_of(&call->dst[dst]);
    a->cells = cu_cells_of(call, call->dst[dst].cb / lanes, &s);
    cu_launch_pool(call, kernel, s.grid, s.block, 0, a);
}

/* ---- Variants ---------------------------------------------------------------------------- */

typedef int (*cu_accepts_fn)(const tgi_op_ctx *ctx, const tgi_layout_hint *lay);
typedef void (*cu_run_fn)(const tgi_call *call);

constexpr tgi_variant cu_variant(const char *name, const char *op, cu_accepts_fn accepts,
                                 cu_run_fn run)
{
    tgi_variant v = {};
    v.name = name;
    v.op = op;
    v.accepts = accepts;
    v.run = run;
    return v;
}

/* One operator that is an image of the ranks that run, its sources segments. */
inline int cu_accepts_image(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return cu_fits(&ctx->src[0]) && cu_fits(&ctx->dst[0]) && lay->src_segs[0] > 0 &&
           !lay->n_doubled;
}

/* A variant for each type of elements: cu_<symbol>_f32 and so on, declared in cu_ops.cuh. */
#define CU_VARIANT_OF(suffix, T, symbol, name, op, accepts, run)                               \
    constexpr tgi_variant cu_##symbol##_##suffix = cu_variant(name, op, accepts, run<T>);
#define CU_VARIANT(...) CU_ELEMENTS(CU_VARIANT_OF, __VA_ARGS__)

/* The same with what `pack` writes, which is of no type of elements. */
constexpr tgi_variant
cu_packed_variant(const char *name, const char *op, cu_accepts_fn accepts,
                  size_t (*bytes)(const tgi_op_ctx *, const tgi_layout_hint *),
                  void (*pack)(const tgi_op_ctx *, const tgi_layout_hint *, void *),
                  cu_run_fn run)
{
    tgi_variant v = cu_variant(name, op, accepts, run);
    v.packed_bytes = bytes;
    v.pack = pack;
    return v;
}
#define CU_PACKED_VARIANT_OF(suffix, T, symbol, name, op, accepts, bytes, pack, run)           \
    constexpr tgi_variant cu_##symbol##_##suffix =                                             \
        cu_packed_variant(name, op, accepts, bytes, pack, run<T>);
#define CU_PACKED_VARIANT(...) CU_ELEMENTS(CU_PACKED_VARIANT_OF, __VA_ARGS__)

#endif
