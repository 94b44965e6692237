/* cu_gemm.cuh - a convolution as a matrix product: pixels times channels of the result, summed
 * over K = (channel, tap) without ever building the matrix of pixels.
 *
 * An output coordinate of an axis is o = q * out_step + out_first, the input coordinate of a
 * tap q * in_step + offset[tap]. A convolution is one *set* of such, with q = o. A transposed
 * one of stride s is a set for each phase (o + pad) mod s, holding the taps whose k * dilation
 * has the same rest; neighbours in q are then s apart in o. Groups make further sets: those of
 * few channels are merged, with zeros as weights between, until they fill whole places.
 *
 * A *place* is `lanes` neighbouring channels of a segment at one tap; 8 / lanes places make a
 * *unit* of 8 values of K, units make K steps. Places of a set run over segments, chunks of 32
 * channels, taps, and the lanes of the chunk: taps inside of chunks keep the pixels of a tile
 * in the first-level cache. The last step is filled up with places that are nowhere. This order
 * is the order of the sum; it depends on no box.
 *
 * Packed, in this order, each part aligned to 64 bytes:
 *
 *     tiles    cu_gemm_tile [tiles]: up to BN channels of a set's result
 *     places   int4 {z, y, x offset; segment << 16 | lane, or -1}, set after set; and a step
 *              more, as kernels may read one ahead
 *     bias     float [tiles][BN]
 *     weights  [tiles][steps of its set] blocks of KSTEP x BN, ordered as the kernel reads
 *
 * A block of threads computes BM = 128 pixels, a tile of 2^w x 2^(7 - w) chosen from the
 * launch's extents so that few are wasted, times one tile of channels.
 *
 * Another order of K, by patches of pixels, is cu_patch.cuh; it shares all but places. */
#ifndef TGI_CU_GEMM_CUH
#define TGI_CU_GEMM_CUH

#include "kernels/cuda/cu_conv.cuh"
#include "kernels/cuda/cu_mma.cuh"

#define CU_BM 128           /* pixels of a block */
#define CU_CHUNK 32         /* channels between which taps lie */
#define CU_FAR (-(1 << 30)) /* coordinate of a pixel that does not exist */

struct cu_gemm_tile {
    int32_t first, steps;    /* place; K steps */
    int32_t channel0, lanes; /* of the result: first, and how many are written */
    int32_t out_first[3];
    int32_t unused;
    int64_t weights; /* bytes from the first */
};

/* A segment as kernels address it; takes an item of the pool. */
struct cu_gemm_source {
    const char *base;
    int64_t z_pitch;
    int32_t y_pitch, x0, cb;
    uint32_t y_ring, y_magic; /* y mod y_ring without a division, see cu_ring */
    uint32_t z_ring;
    int32_t doubled, unused;
};
static_assert(sizeof(cu_gemm_source) <= sizeof(cu_item), "sources lie in the pool");

struct cu_gemm_args {
    const cu_gemm_tile *tiles;
    const int4 *places;
    const float *bias;
    const char *weights;
    cu_view dst;
    cu_epi epi;
    int32_t lo[3], hi[3]; /* the box: z, y, x */
    int32_t in[3], in_step[3], out_step[3];
    int32_t n_tiles, across, down; /* channel tiles; pixel tiles along x and y */
    int32_t width_log, height_log; /* of a pixel tile */
    int32_t lanes;                 /* of a place */
    int32_t src;                   /* first source, in the pool */
    cu_pool pool;
};

/* ---- Host: what there is to sum ---------------------------------------------------------- */

struct cu_gemm_plan {
    tgi_geom g;
    int transposed;
    int lanes;            /* of a place */
    int64_t sets, merged; /* groups in one set */
    int64_t phases[3];
    int n_seg;
    int64_t seg_c[TGI_MAX_SEG];
    int kstep, bn;
};

struct cu_gemm_place {
    int32_t off[3];
    int32_t seg, lane;
    int64_t channel, channels; /* of the whole source, and how many lanes count */
    int64_t tap;
};

/* Calls f(place) for all places of a set, in order. */
template <class F> inline void cu_gemm_each_place(const cu_gemm_plan *p, int64_t set, F f)
{
    const tgi_geom *g = &p->g;
    const int64_t n_phases = p->phases[0] * p->phases[1] * p->phases[2];
    const int64_t phase = set % n_phases, group = set / n_phases;
    const int64_t rest[3] = {phase / (p->phases[1] * p->phases[2]),
                             phase / p->phases[2] % p->phases[1], phase % p->phases[2]};
    const int64_t per = g->in_c / g->groups * p->merged, lo = group * per, hi = lo + per;
    const int64_t taps = g->k[0] * g->k[1] * g->k[2];
    for (int64_t s = 0, c0 = 0; s < p->n_seg; c0 += p->seg_c[s++]) {
        const int64_t from = lo > c0 ? lo - c0 : 0;
        const int64_t to = hi - c0 < p->seg_c[s] ? hi - c0 : p->seg_c[s];
        for (int64_t chunk = from; chunk < to; chunk += CU_CHUNK)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t k[3] = {t / (g->k[1] * g->k[2]), t / g->k[2] % g->k[1],
                                      t % g->k[2]};
                cu_gemm_place at;
                int there = 1;
                for (int i = 0; i < 3; i++) {
                    const int64_t kd = k[i] * g->d[i];
                    there &= !p->transposed || kd % g->s[i] == rest[i];
                    at.off[i] = (int32_t)(p->transposed ? -(kd / g->s[i]) : kd - g->p0[i]);
                }
                for (int64_t c = chunk; there && c < to && c < chunk + CU_CHUNK;
                     c += p->lanes) {
                    at.seg = (int32_t)s;
                    at.lane = (int32_t)c;
                    at.channel = c0 + c;
                    at.channels = to - c < p->lanes ? to - c : p->lanes;
                    at.tap = t;
                    f(at);
                }
            }
    }
}

inline int64_t cu_gemm_places(const cu_gemm_plan *p, int64_t set)
{
    int64_t n = 0;
    cu_gemm_each_place(p, set, [&](const cu_gemm_place &) { n++; });
    return n;
}
inline int64_t cu_gemm_steps(const cu_gemm_plan *p, int64_t places)
{
    return (places * p->lanes + p->kstep - 1) / p->kstep;
}
/* Channels of a set's result. */
inline int64_t cu_gemm_channels(const cu_gemm_plan *p)
{
    return p->g.out_c / p->g.groups * p->merged;
}
inline int64_t cu_gemm_set_tiles(const cu_gemm_plan *p)
{
    return (cu_gemm_channels(p) + p->bn - 1) / p->bn;
}

/* Merge groups until channels come in whole places and results in whole vectors. */
inline int cu_gemm_merge(cu_gemm_plan *p)
{
    const int64_t in = p->g.in_c / p->g.groups, out = p->g.out_c / p->g.groups;
    for (int64_t m = 1; m <= p->g.groups; m++) {
        if (p->g.groups % m || (m != p->g.groups && (m * in % p->lanes || m * out % 8)))
            continue;
        p->merged = m;
        return 1;
    }
    return 0;
}

/* Every set begins at a whole place of a segment. */
inline int cu_gemm_aligned(const cu_gemm_plan *p)
{
    const int64_t per = p->g.in_c / p->g.groups * p->merged;
    for (int64_t lo = 0; lo < p->g.in_c; lo += per) {
        int64_t c = lo;
        int s = 0;
        while (c >= p->seg_c[s])
            c -= p->seg_c[s++];
        if (c % p->lanes)
            return 0;
    }
    return 1;
}

/* 0: this convolution is not for products of matrices. `lanes`: of a place at most. `bn` is
 * chosen by the caller after. */
inline int cu_gemm_plan_of(const tgi_op_ctx *ctx, const int64_t *seg_c, int n_seg,
                           int transposed, int lanes, cu_gemm_plan *p)
{
    memset(p, 0, sizeof *p);
    if (!cu_conv_geometry(ctx, transposed, &p->g))
        return 0;
    p->transposed = transposed;
    p->n_seg = n_seg;
    p->lanes = lanes;
    for (int s = 0; s < n_seg; s++) {
        p->seg_c[s] = seg_c[s];
        p->lanes =
            (int)(tgi_whole_pixel(seg_c[s]) < p->lanes ? tgi_whole_pixel(seg_c[s]) : p->lanes);
        if (seg_c[s] >= 1 << 16)
            return 0;
    }
    for (int i = 0; i < 3; i++)
        p->phases[i] = transposed ? p->g.s[i] : 1;
    if (!cu_gemm_merge(p) || !cu_gemm_aligned(p))
        return 0;
    p->sets = p->g.groups / p->merged * p->phases[0] * p->phases[1] * p->phases[2];
    return p->sets < 1 << 16;
}

/* ---- Host: packing ----------------------------------------------------------------------- */

struct cu_gemm_layout {
    size_t places, bias, weights, bytes;
    int64_t tiles;
};

inline size_t cu_align64(size_t n)
{
    return (n + 63) / 64 * 64;
}

inline cu_gemm_layout cu_gemm_layout_of(const cu_gemm_plan *p, size_t element)
{
    cu_gemm_layout l;
    size_t places = 0, weights = 0;
    l.tiles = p->sets * cu_gemm_set_tiles(p);
    for (int64_t set = 0; set < p->sets; set++) {
        const int64_t steps = cu_gemm_steps(p, cu_gemm_places(p, set));
        places += (size_t)(steps * p->kstep / p->lanes);
        weights += (size_t)(steps * p->kstep * p->bn * cu_gemm_set_tiles(p));
    }
    l.places = cu_align64((size_t)l.tiles * sizeof(cu_gemm_tile));
    places += (size_t)(p->kstep / p->lanes); /* read one step ahead */
    l.bias = l.places + cu_align64(places * sizeof(int4));
    l.weights = l.bias + cu_align64((size_t)(l.tiles * p->bn) * sizeof(float));
    l.bytes = l.weights + cu_align64(weights * element);
    return l;
}

/* The arithmetic that is done over the arithmetic that counts. */
inline double cu_gemm_waste(const cu_gemm_plan *p)
{
    double done = 0, counts = 0;
    const int64_t taps = p->g.k[0] * p->g.k[1] * p->g.k[2];
    for (int64_t set = 0; set < p->sets; set++)
        done += (double)(cu_gemm_steps(p, cu_gemm_places(p, set)) * p->kstep) *
                (double)(cu_gemm_set_tiles(p) * p->bn);
    counts = (double)(p->g.in_c / p->g.groups * taps) * (double)p->g.out_c;
    return done / counts;
}

/* K: kernels' order of weights: K::weight type, K::at(bn, k, n) the place of value k of a
 * step, channel n of a tile, in a block. */
template <class K>
inline void cu_gemm_pack_set(const cu_gemm_plan *p, const tgi_op_ctx *ctx, int64_t set,
                             int4 *places, typename K::weight *weights)
{
    const cu_conv_weights w = {ctx->const_src[1]->data, &p->g, p->transposed};
    const int64_t n_phases = p->phases[0] * p->phases[1] * p->phases[2];
    const int64_t channel0 = set / n_phases * cu_gemm_channels(p), n = cu_gemm_channels(p);
    const int64_t steps = cu_gemm_steps(p, cu_gemm_places(p, set));
    const int64_t block = (int64_t)p->kstep * p->bn;
    int64_t i = 0;
    for (int64_t k = 0; k < steps * p->kstep / p->lanes; k++)
        places[k] = make_int4(0, 0, 0, -1);
    cu_gemm_each_place(p, set, [&](const cu_gemm_place &at) {
        places[i] = make_int4(at.off[0], at.off[1], at.off[2], at.seg << 16 | at.lane);
        for (int64_t c = 0; c < n; c++)
            for (int64_t lane = 0; lane < at.channels; lane++) {
                const int64_t k = i * p->lanes + lane, tile = c / p->bn;
                weights[(tile * steps + k / p->kstep) * block +
                        K::at(p->bn, (int)(k % p->kstep), (int)(c % p->bn))] =
                    (typename K::weight)w.at(at.channel + lane, channel0 + c, at.tap);
            }
        i++;
    });
}

/* Channel tile t of a set: what it writes, and its bias. */
inline void cu_gemm_pack_tile(const cu_gemm_plan *p, const tgi_op_ctx *ctx, int64_t set,
                              int64_t t, cu_gemm_tile *tile, float *bias)
{
    const int64_t n_phases = p->phases[0] * p->phases[1] * p->phases[2];
    const int64_t channels = cu_gemm_channels(p), phase = set % n_phases;
    const int64_t rest[3] = {phase / (p->phases[1] * p->phases[2]),
                             phase / p->phases[2] % p->phases[1], phase % p->phases[2]};
    const int64_t c0 = set / n_phases * channels + t * p->bn;
    const int64_t left = channels - t * p->bn < p->bn ? channels - t * p->bn : p->bn;
    tile->channel0 = (int32_t)c0;
    tile->lanes = /* pixels of more than four channels are whole vectors */
        (int32_t)(p->g.out_c > 4 ? (left + 7) / 8 * 8 : tgi_whole_pixel(left));
    for (int i = 0; i < 3; i++)
        tile->out_first[i] = (int32_t)(p->transposed ? rest[i] - p->g.p0[i] : 0);
    for (int64_t c = 0; c < left && !cu_is_absent(ctx, 2); c++)
        bias[c] = cu_const_at(ctx->const_src[2]->data, c0 + c);
}

template <class K>
inline void cu_gemm_pack(const cu_gemm_plan *p, const tgi_op_ctx *ctx, void *dst)
{
    const cu_gemm_layout l = cu_gemm_layout_of(p, sizeof(typename K::weight));
    const int64_t set_tiles = cu_gemm_set_tiles(p);
    cu_gemm_tile *tile = (cu_gemm_tile *)dst;
    float *bias = (float *)((char *)dst + l.bias);
    int64_t place = 0, weight = 0;
    memset(dst, 0, l.bytes);
    for (int64_t set = 0; set < p->sets; set++) {
        const int64_t steps = cu_gemm_steps(p, cu_gemm_places(p, set));
        const int64_t per_tile = steps * p->kstep * p->bn;
        cu_gemm_pack_set<K>(p, ctx, set, (int4 *)((char *)dst + l.places) + place,
                            (typename K::weight *)((char *)dst + l.weights) + weight);
        for (int64_t t = 0; t < set_tiles; t++, tile++, bias += p->bn) {
            cu_gemm_pack_tile(p, ctx, set, t, tile, bias);
            tile->first = (int32_t)place;
            tile->steps = (int32_t)steps;
            tile->weights = (int64_t)sizeof(typename K::weight) * (weight + t * per_tile);
        }
        place += steps * p->kstep / p->lanes;
        weight += per_tile * set_tiles;
    }
}

/* ---- Host: launching --------------------------------------------------------------------- */

inline cu_gemm_source cu_gemm_source_of(const tgi_view *v)
{
    cu_gemm_source s;
    s.base = (const char *)v->base;
    s.z_pitch = (int64_t)v->z_pitch;
    s.y_pitch = v->y_ring > 1 ? (int32_t)v->y_pitch : 0; /* see cu_ring */
    s.x0 = (int32_t)v->x0;
    s.cb = v->cb;
    s.y_ring = (uint32_t)v->y_ring;
    s.y_magic = cu_ring_magic(v->y_ring);
    s.z_ring = (uint32_t)v->z_ring;
    s.doubled = v->doubled != 0;
    s.unused = 0;
    return s;
}

/* Views, epilogue and box of a call. `most`: of each axis, of a set's coordinates. */
inline void cu_gemm_operands(const cu_gemm_plan *p, const tgi_call *call, cu_gemm_args *a,
                             int64_t (&most)[3])
{
    a->pool.n = a->pool.unused = 0;
    a->epi = cu_pool_epilogue(&a->pool, call);
    a->src = a->pool.n;
    for (int s = 0; s < call->src[0].n_seg; s++) {
        const cu_gemm_source source = cu_gemm_source_of(&call->src[0].seg[s]);
        memcpy(&a->pool.item[a->pool.n++], &source, sizeof source);
    }
    a->dst = cu_view_of(&call->dst[0]);
    for (int i = 0; i < 3; i++) {
        const tgi_range r = tgi_box_axis(&call->box, i);
        const int at = call->box.rank - 3 + i;
        const int64_t longest = at < 2 ? 1 : call->most[at] < 1 ? 1 : call->most[at];
        a->lo[i] = (int32_t)r.lo;
        a->hi[i] = (int32_t)r.hi;
        a->in[i] = (int32_t)p->g.in[i];
        a->in_step[i] = (int32_t)(p->transposed ? 1 : p->g.s[i]);
        a->out_step[i] = (int32_t)p->phases[i];
        most[i] = (longest + p->phases[i] - 1) / p->phases[i];
    }
}

/* Tiles of 2^log pixels as wide as one of the n widths says: the one that needs fewest of them,
 * of equals the first. Returns how many blocks there are. */
inline dim3 cu_gemm_cover(int log, const int *widths, int n, const int64_t (&most)[3],
                          cu_gemm_args *a)
{
    int64_t best = 0;
    for (int i = 0; i < n; i++) {
        const int64_t tw = (int64_t)1 << widths[i], th = (int64_t)1 << (log - widths[i]);
        const int64_t across = (most[2] + tw - 1) / tw, down = (most[1] + th - 1) / th;
        if (best && across * down >= best)
            continue;
        best = across * down;
        a->width_log = widths[i];
        a->height_log = log - widths[i];
        a->across = (int32_t)across;
        a->down = (int32_t)down;
    }
    return dim3((unsigned)(a->n_tiles * best * most[0]));
}

/* Arguments of what was packed so; `most`: see cu_gemm_operands. */
inline void cu_gemm_packed(const cu_gemm_plan *p, const tgi_call *call, const cu_gemm_layout &l,
                           cu_gemm_args *a, int64_t (&most)[3])
{
    const char *packed = (const char *)call->packed;
    cu_gemm_operands(p, call, a, most);
    a->tiles = (const cu_gemm_tile *)packed;
    a->places = (const int4 *)(packed + l.places);
    a->bias = (const float *)(packed + l.bias);
    a->weights = packed + l.weights;
    a->n_tiles = (int32_t)l.tiles;
    a->lanes = p->lanes;
}

/* Arguments, and how many blocks there are. */
inline dim3 cu_gemm_arguments(const cu_gemm_plan *p, const tgi_call *call, size_t element,
                              cu_gemm_args *a)
{
    static const int widths[] = {4, 3, 5, 6, 7}; /* the squarest first */
    int64_t most[3];
    cu_gemm_packed(p, call, cu_gemm_layout_of(p, element), a, most);
    return cu_gemm_cover(7, widths, 5, most, a);
}

/* ---- Device: where a block works --------------------------------------------------------- */

/* The arguments in shared memory, fetched by all threads at once: what a block asks of them one
 * by one would each time be on its way from the second level, as images pass through the first.
 * Where they are longer than that is (operands of many segments) they are read where they lie.
 */
__device__ __forceinline__ const cu_gemm_args *cu_arguments_near(const cu_gemm_args *a,
                                                                 uint4 *near_by)
{
    const uint4 *from = reinterpret_cast<const uint4 *>(a);
    for (int i = (int)threadIdx.x; i < CU_ARGUMENTS_NEAR / 16; i += (int)blockDim.x)
        near_by[i] = __ldg(from + i);
    __syncthreads();
    const cu_gemm_args *const there = reinterpret_cast<const cu_gemm_args *>(near_by);
    const size_t bytes = offsetof(cu_gemm_args, pool) + offsetof(cu_pool, item) +
                         (size_t)there->pool.n * sizeof(cu_item);
    return bytes <= CU_ARGUMENTS_NEAR ? there : a;
}

struct cu_gemm_block {
    cu_gemm_tile tile;
    int32_t tile_index;
    int32_t q[3]; /* of the block's first pixel */
    int32_t width_log;
};

__device__ __forceinline__ int32_t cu_gemm_first(int32_t lo, int32_t first, int32_t step)
{
    return step == 1 ? lo - first : (lo - first + step - 1) / step;
}

/* False: no pixel of the box is in the block. */
__device__ __forceinline__ bool cu_gemm_block_of(const cu_gemm_args *a, cu_gemm_block *b)
{
    uint32_t i = blockIdx.x;
    b->tile_index = (int32_t)(i % (uint32_t)a->n_tiles);
    i /= (uint32_t)a->n_tiles;
    const int32_t tx = (int32_t)(i % (uint32_t)a->across);
    i /= (uint32_t)a->across;
    const int32_t ty = (int32_t)(i % (uint32_t)a->down), tz = (int32_t)(i / (uint32_t)a->down);
    b->tile = a->tiles[b->tile_index];
    b->width_log = a->width_log;
    b->q[0] = cu_gemm_first(a->lo[0], b->tile.out_first[0], a->out_step[0]) + tz;
    b->q[1] =
        cu_gemm_first(a->lo[1], b->tile.out_first[1], a->out_step[1]) + (ty << a->height_log);
    b->q[2] =
        cu_gemm_first(a->lo[2], b->tile.out_first[2], a->out_step[2]) + (tx << b->width_log);
    for (int k = 0; k < 3; k++)
        if (b->q[k] * a->out_step[k] + b->tile.out_first[k] >= a->hi[k])
            return false;
    return true;
}

/* q of pixel m of the block on y and x. */
__device__ __forceinline__ int32_t cu_gemm_qy(const cu_gemm_block &b, int m)
{
    return b.q[1] + (m >> b.width_log);
}
__device__ __forceinline__ int32_t cu_gemm_qx(const cu_gemm_block &b, int m)
{
    return b.q[2] + (m & ((1 << b.width_log) - 1));
}
/* Output coordinates; false: outside of the box. */
__device__ __forceinline__ bool cu_gemm_out(const cu_gemm_args *a, const cu_gemm_block &b,
                                            int m, cu_place *p)
{
    p->z = b.q[0] * a->out_step[0] + b.tile.out_first[0];
    p->y = cu_gemm_qy(b, m) * a->out_step[1] + b.tile.out_first[1];
    p->x = cu_gemm_qx(b, m) * a->out_step[2] + b.tile.out_first[2];
    return p->y < a->hi[1] && p->x < a->hi[2];
}

/* ---- Device: reading pixels -------------------------------------------------------------- */

/* Reads N pixels of a block, place by place. What belongs to the segment and the slab is kept
 * while they stay. KEEP: where registers are short because copies wait there (7.5), coordinates
 * lie in shared memory, in each thread's own N words `kept`, CU_BM apart. */
template <class T, int N, bool KEEP> struct cu_gemm_reader {
    int32_t y[N], x[N]; /* input coordinates for offset 0 */
    int2 *kept;
    int32_t z, height, width;
    int32_t key, key_z; /* segment and slab at hand */
    const T *plane;     /* NULL: outside */
    int32_t y_pitch, x0, cb, doubled;
    uint32_t ring, magic;

    /* Pixels m0, m0 + step, ... */
    __device__ __forceinline__ void begin(const cu_gemm_args *a, const cu_gemm_block &b, int m0,
                                          int step)
    {
        cu_place p;
        z = b.q[0] * a->in_step[0];
        height = a->in[1];
        width = a->in[2];
        key = -1;
        key_z = 0;
        plane = NULL;
        y_pitch = x0 = cb = doubled = 0;
        ring = magic = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const int m = m0 + i * step;
            const bool inside = cu_gemm_out(a, b, m, &p);
            y[i] = inside ? cu_gemm_qy(b, m) * a->in_step[1] : CU_FAR;
            x[i] = inside ? cu_gemm_qx(b, m) * a->in_step[2] : CU_FAR;
            if (KEEP && !CU_HAS_ASYNC)
                kept[i * CU_BM] = make_int2(y[i], x[i]);
        }
    }

    __device__ __forceinline__ int2 coordinates(int i) const
    {
        return KEEP && !CU_HAS_ASYNC ? kept[i * CU_BM] : make_int2(y[i], x[i]);
    }

    __device__ __forceinline__ void move(const cu_gemm_args *a, const int4 &place)
    {
        const int32_t seg = place.w >> 16; /* -1: nowhere */
        if (seg == key && place.x == key_z)
            return;
        key = seg;
        key_z = place.x;
        plane = NULL;
        const int32_t at = z + place.x;
        if (seg < 0 || at < 0 || at >= a->in[0])
            return;
        const cu_gemm_source *s =
            reinterpret_cast<const cu_gemm_source *>(&a->pool.item[a->src + seg]);
        plane = reinterpret_cast<const T *>(s->base) +
                (at ? (int64_t)((uint32_t)at % s->z_ring) * s->z_pitch : 0);
        y_pitch = s->y_pitch;
        x0 = s->x0;
        cb = s->cb;
        doubled = s->doubled;
        ring = s->y_ring;
        magic = s->y_magic;
    }

    /* Address of the lanes of `place` at pixel i; false: zeros are read there. Call move
     * before. */
    __device__ __forceinline__ bool at(int i, const int4 &place, const T **p) const
    {
        const int2 q0 = coordinates(i);
        const int32_t iy = q0.x + place.y, ix = q0.y + place.z;
        const bool inside =
            plane && (uint32_t)iy < (uint32_t)height && (uint32_t)ix < (uint32_t)width;
        /* Computed outside too, where it means nothing: without a sign it may wrap. */
        const uint32_t row = (uint32_t)cu_ring(iy >> doubled, ring, magic);
        const uint32_t column = (uint32_t)((ix >> doubled) - x0) * (uint32_t)cb;
        const int64_t offset =
            (int64_t)(int32_t)row * y_pitch + (int32_t)(column + (uint32_t)(place.w & 0xffff));
        *p = inside ? plane + offset : plane;
        return inside;
    }
};

/* ---- Device: results --------------------------------------------------------------------- */

/* Where sums lie in shared memory, before bias and epilogue: channels [n0, n0 + EN) of a
 * block's tile at each of its pixels, neighbours side by side. */
template <int EN> struct cu_gemm_sums {
    static const int pixels = CU_BM, channels = EN;
    const float *first;
    template <int V> __device__ __forceinline__ void load(int pixel, int c, float (&v)[V]) const
    {
        cu_load<float, V>(first + pixel * (EN + 8) + c, v);
    }
};

/* Where a thread stores: V channels of every THREADS / vecs-th pixel of a block, the same
 * channels of all. What does not hang on the pixel is read once. */
template <class T, int V> struct cu_gemm_writer {
    cu_place at;     /* of the pixel that `to` was asked for last; c: the first channel */
    int32_t counted; /* channels that there are, of the V; the others become 0 */
    T *base;         /* of the slab, at the first channel */
    int64_t pitch;
    uint32_t ring, magic;
    int32_t x0, cb;

    __device__ __forceinline__ void begin(const cu_gemm_args *a, const cu_gemm_block &b,
                                          int32_t channel)
    {
        const cu_view &dst = a->dst;
        at.z = b.q[0] * a->out_step[0] + b.tile.out_first[0];
        at.c = channel;
        counted = dst.c - channel;
        ring = dst.y_ring;
        magic = dst.y_magic;
        pitch = dst.y_pitch;
        x0 = dst.x0;
        cb = dst.cb;
        base = reinterpret_cast<T *>(dst.base) + channel +
               (at.z ? (int64_t)((uint32_t)at.z % dst.z_ring) * dst.z_pitch : 0);
        cu_global(base);
    }

    /* Pixel m's; NULL: it is outside of the box. */
    __device__ __forceinline__ T *to(const cu_gemm_args *a, const cu_gemm_block &b, int m)
    {
        if (!cu_gemm_out(a, b, m, &at))
            return NULL;
        return base + (int64_t)cu_ring(at.y, ring, magic) * pitch + (int64_t)(at.x - x0) * cb;
    }

    __device__ __forceinline__ void put(T *to, float (&v)[V]) const
    {
#pragma unroll
        for (int i = 0; i < V; i++)
            v[i] = i < counted ? v[i] : 0.0f;
        cu_save<T, V>(to, v);
    }
};

/* They get their bias, epilogue and type, and are stored. KEEP: the bias stays in registers;
 * not where sums that are stored later still fill them. */
template <class T, class S, int V, int THREADS, bool KEEP>
__device__ __forceinline__ void cu_gemm_store_lanes(const cu_gemm_args *a,
                                                    const cu_gemm_block &b, int bn, int n0,
                                                    const S &sums)
{
    const int vecs = S::channels / V, step = THREADS / vecs;
    static_assert(THREADS % vecs == 0, "a thread keeps to its channels");
    const int c = (int)threadIdx.x % vecs * V;
    cu_gemm_writer<T, V> out;
    cu_light_epilogue<V> light;
    float bias[V], v[V];
    if (n0 + c >= b.tile.lanes)
        return;
    const float *const first_bias = a->bias + (int64_t)b.tile_index * bn + n0 + c;
    if (KEEP)
        cu_load<float, V>(first_bias, bias);
    out.begin(a, b, b.tile.channel0 + n0 + c);
    const bool is_light = light.begin(a->pool, a->epi, out.at.c);
#pragma unroll 1
    for (int m = (int)threadIdx.x / vecs; m < S::pixels; m += step) {
        T *const to = out.to(a, b, m);
        if (!to)
            continue;
        sums.template load<V>(m, c, v);
        if (!KEEP)
            cu_load<float, V>(first_bias, bias);
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] += bias[k];
        if (is_light)
            light.apply(v);
        else
            cu_epilogue<T, V>(a->pool, a->epi, out.at, v);
        out.put(to, v);
    }
}

template <class T, int EN, int THREADS, bool KEEP>
__device__ __forceinline__ void cu_gemm_store(const cu_gemm_args *a, const cu_gemm_block &b,
                                              int bn, int n0, const float *first)
{
    typedef cu_gemm_sums<EN> S;
    const S sums = {first};
    if (a->dst.cb >= 8) {
        cu_gemm_store_lanes<T, S, 8, THREADS, KEEP>(a, b, bn, n0, sums);
    } else if constexpr (EN <= 16) { /* pixels of few lanes have narrow tiles */
        if (a->dst.cb == 4)
            cu_gemm_store_lanes<T, S, 4, THREADS, KEEP>(a, b, bn, n0, sums);
        else if (a->dst.cb == 2)
            cu_gemm_store_lanes<T, S, 2, THREADS, KEEP>(a, b, bn, n0, sums);
        else
            cu_gemm_store_lanes<T, S, 1, THREADS, KEEP>(a, b, bn, n0, sums);
    }
}

#endif
