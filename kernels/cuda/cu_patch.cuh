/* cu_patch.cuh - a convolution as a matrix product whose pixels are copied once for many taps.
 *
 * Sets, tiles of channels, pixels of a block and what becomes of the sums are those of
 * cu_gemm.cuh. The order of K is another: a *step* is 16 or 32 channels of a segment (a few
 * *units* of 8) at a rectangle of taps, ny x nx of them, dy and dx pixels apart. For it a block
 * copies one *patch*: its own pixels and what the taps reach beyond them, so that each tap is
 * the patch read from another pixel on. With a stride of s, taps that differ by no multiple of
 * s read different pixels: they are steps of their own, whose patch has every s-th pixel.
 *
 * A block has 256 pixels, 8 x 32 or 32 x 8, always eights side by side along the *inner* axis
 * (that of 8): neighbours along it lie 16 bytes apart in a patch's plane of units, the next
 * eight a row of the patch further, and the same holds from any tap's first pixel on.
 *
 *     stage:   planes of pixels [units][outer * pitch + inner], each `plane_bytes` long, then
 *              weights [tap][two units][2][64 channels][8 values]: a straight copy
 *
 * K runs over segments, chunks of channels, taps along z, phases of a stride, rectangles, the
 * rectangle's taps by rows, units. This order depends on no box.
 *
 * Packed, in this order, each part aligned to 64 bytes:
 *
 *     tiles    cu_gemm_tile [tiles]; `first` counts steps, `weights` bytes
 *     steps    cu_patch_stage, then cu_patch_step of set after set
 *     bias     float [tiles][64]
 *     weights  [tiles][steps of its set] as above */
#ifndef TGI_CU_PATCH_CUH
#define TGI_CU_PATCH_CUH

#include "kernels/cuda/cu_gemm.cuh"
#include "kernels/cuda/cu_wgmma.cuh"

#define CU_PATCH_PIXELS_LOG 8 /* of a block */
#define CU_PATCH_PIXELS 256
#define CU_PATCH_THREADS 128
#define CU_PATCH_BN 64                      /* channels of a tile */
#define CU_PATCH_TAP (CU_PATCH_BN * 16 * 2) /* bytes of weights of a tap and two units */
#define CU_PATCH_TAPS 64                    /* of an axis, at most */
#define CU_PATCH_COPIES 12                  /* pixels of a patch that a thread copies at most */
#define CU_PATCH_BARRIERS 64                /* bytes of shared memory, of all stages' */
#define CU_PATCH_STAGES 6                   /* at most */
#define CU_PATCH_PRODUCTS 12                /* of a step at most: taps, and pairs of units */

/* How a stage lies in shared memory: of all steps. */
struct cu_patch_stage {
    int32_t units, plane_bytes, bytes; /* of a step; of a plane, a stage */
    int16_t count, alike;              /* stages; 1: steps of a set differ in channels alone */
};

struct cu_patch_step {
    int32_t source;  /* segment << 16 | first lane */
    int32_t z, y, x; /* offset of its first pixel from q * in_step */
    int32_t ny, nx, dy, dx;
    int32_t weights, pieces; /* of 16 bytes: the first, from the tile's; how many */
    int32_t units;           /* that there are; the stage's others are zeros */
    int32_t unused;
};
static_assert(sizeof(cu_patch_step) == 48 && sizeof(cu_patch_stage) == 16, "read by int4");

/* ---- Host: which taps share a patch ------------------------------------------------------ */

/* Taps of an axis that read pixels of one phase, the nearest first. */
struct cu_patch_run {
    int n;
    int32_t step; /* pixels of a patch from one to the next */
    int32_t tap[CU_PATCH_TAPS], offset[CU_PATCH_TAPS];
};

/* Of the set that has `rest` on the axis (0 of a convolution). */
inline cu_patch_run cu_patch_run_of(const cu_gemm_plan *p, int axis, int64_t rest, int phase)
{
    const tgi_geom *g = &p->g;
    const int64_t k = g->k[axis], s = g->s[axis], d = g->d[axis];
    cu_patch_run r = {0, 1, {}, {}};
    for (int64_t i = 0; i < k; i++) {
        const int64_t tap = p->transposed ? k - 1 - i : i;
        const int64_t at = tap * d - (p->transposed ? 0 : g->p0[axis]);
        if (p->transposed ? at % s != rest : ((at % s) + s) % s != phase)
            continue;
        r.tap[r.n] = (int32_t)tap;
        r.offset[r.n] = (int32_t)(p->transposed ? -(at / s) : at);
        r.n++;
    }
    if (r.n > 1)
        r.step = (r.offset[1] - r.offset[0]) / (int32_t)(p->transposed ? 1 : s);
    return r;
}

inline int cu_patch_phases(const cu_gemm_plan *p, int axis)
{
    return p->transposed ? 1 : (int)p->g.s[axis];
}

struct cu_patch_plan {
    cu_patch_stage stage;
    int rectangle[2]; /* taps of one at most, along y and x */
};

/* Pixels of a patch: of the larger of the two kinds. */
inline int64_t cu_patch_area(int64_t beyond_y, int64_t beyond_x)
{
    const int64_t tall = (32 + beyond_y) * (8 + beyond_x);
    const int64_t wide = (8 + beyond_y) * (32 + beyond_x);
    return tall > wide ? tall : wide;
}

/* A stage of 2 or 4 units. Planes begin so that copies of a warp's quarter, which lie in all of
 * them, are in different banks. */
inline cu_patch_stage cu_patch_stage_of(int units, int64_t area, int64_t taps)
{
    cu_patch_stage s;
    const int64_t odd = 8 / units;
    const int64_t pixels = area + ((odd - area) % 8 + 8) % 8;
    const int64_t bytes = units * pixels * 16 + taps * units / 2 * CU_PATCH_TAP;
    const bool fits = area * units <= CU_PATCH_COPIES * CU_PATCH_THREADS &&
                      taps * units / 2 <= CU_PATCH_PRODUCTS;
    s.units = units;
    s.plane_bytes = (int32_t)(pixels * 16);
    s.bytes = (int32_t)(fits ? bytes : 1 << 20);
    s.count = (int16_t)((CU_PATCH_SHARED - CU_PATCH_BARRIERS - CU_ARGUMENTS_NEAR) / s.bytes);
    s.alike = 0;
    s.count = s.count < CU_PATCH_STAGES ? s.count : CU_PATCH_STAGES;
    return s;
}

/* In equal parts of at most `most`. */
inline int cu_patch_part(int n, int most)
{
    const int parts = (n + most - 1) / most;
    return parts ? (n + parts - 1) / parts : 1;
}

/* Channels are a multiple of 32, or nearly, in all segments of all sets. */
inline int cu_patch_fits_four(const cu_gemm_plan *p)
{
    const int64_t per = p->g.in_c / p->g.groups * p->merged;
    for (int64_t lo = 0; lo < p->g.in_c; lo += per)
        for (int64_t s = 0, c0 = 0; s < p->n_seg; c0 += p->seg_c[s++]) {
            const int64_t from = lo > c0 ? lo - c0 : 0;
            const int64_t to = lo + per - c0 < p->seg_c[s] ? lo + per - c0 : p->seg_c[s];
            if (to > from && (to - from + 15) / 16 % 2)
                return 0;
        }
    return 1;
}

/* The rectangle that copies fewest bytes for a product, of equals the largest. 0: no stage is
 * small enough for three of them. */
inline int cu_patch_plan_of(const cu_gemm_plan *p, cu_patch_plan *out)
{
    cu_patch_run y = {}, x = {};
    for (int i = 0; i < 3; i++)
        if (p->g.k[i] > CU_PATCH_TAPS)
            return 0;
    for (int64_t rest = 0; rest < p->g.s[1]; rest++) {
        const cu_patch_run r = cu_patch_run_of(p, 1, rest, (int)rest);
        y = r.n > y.n ? r : y;
    }
    for (int64_t rest = 0; rest < p->g.s[2]; rest++) {
        const cu_patch_run r = cu_patch_run_of(p, 2, rest, (int)rest);
        x = r.n > x.n ? r : x;
    }
    double least = 0;
    for (int gy = 1; gy <= y.n && gy <= CU_PATCH_PRODUCTS; gy++)
        for (int gx = 1; gx <= x.n && gx * gy <= CU_PATCH_PRODUCTS; gx++) {
            const int ny = cu_patch_part(y.n, gy), nx = cu_patch_part(x.n, gx);
            const int64_t area =
                cu_patch_area((int64_t)(ny - 1) * y.step, (int64_t)(nx - 1) * x.step);
            const double bytes = (double)area * 32 / (ny * nx) + CU_PATCH_TAP;
            cu_patch_stage s = cu_patch_stage_of(2, area, ny * nx);
            const cu_patch_stage four = cu_patch_stage_of(4, area, ny * nx);
            if (four.count >= 3 && cu_patch_fits_four(p))
                s = four;
            if (s.count < 3 || (least > 0 && bytes > least))
                continue;
            least = bytes;
            out->stage = s;
            out->rectangle[0] = ny;
            out->rectangle[1] = nx;
        }
    return least > 0;
}

/* Offsets from a patch's first row to its last pixel have 32 bits, in pieces of 8 channels,
 * even where rows have margins as long as the image's. */
inline int cu_patch_reaches(const cu_gemm_plan *p, const cu_patch_plan *how)
{
    int64_t lanes = 8;
    for (int s = 0; s < p->n_seg; s++)
        lanes = p->seg_c[s] > lanes ? tgi_whole_pixel(p->seg_c[s]) : lanes;
    const int64_t row = 2 * p->g.in[TGI_X] * lanes / 8, rows = how->stage.plane_bytes / 16 / 8;
    return row * rows * (p->transposed ? 1 : p->g.s[TGI_Y]) < (int64_t)1 << 32;
}

/* ---- Host: steps ------------------------------------------------------------------------- */

struct cu_patch_taps {
    cu_patch_step step;
    int64_t channel, channels; /* of the whole source, and how many count */
    int32_t tap_z;
    const int32_t *tap_y, *tap_x;
};

/* Calls f(cu_patch_taps) for each rectangle of one chunk of channels. */
template <class F>
inline void cu_patch_each_rectangle(const cu_gemm_plan *p, const cu_patch_plan *how,
                                    int64_t set, cu_patch_taps at, F f)
{
    const int64_t n_phases = p->phases[0] * p->phases[1] * p->phases[2];
    const int64_t phase = set % n_phases;
    const int64_t rest[3] = {phase / (p->phases[1] * p->phases[2]),
                             phase / p->phases[2] % p->phases[1], phase % p->phases[2]};
    for (int fz = 0; fz < cu_patch_phases(p, 0); fz++)
        for (int fy = 0; fy < cu_patch_phases(p, 1); fy++)
            for (int fx = 0; fx < cu_patch_phases(p, 2); fx++) {
                const cu_patch_run z = cu_patch_run_of(p, 0, rest[0], fz);
                const cu_patch_run y = cu_patch_run_of(p, 1, rest[1], fy);
                const cu_patch_run x = cu_patch_run_of(p, 2, rest[2], fx);
                const int ny = cu_patch_part(y.n, how->rectangle[0]);
                const int nx = cu_patch_part(x.n, how->rectangle[1]);
                for (int i = 0; i < z.n * y.n * x.n; i++) {
                    const int iz = i / (y.n * x.n), iy = i / x.n % y.n, ix = i % x.n;
                    if (iy % ny || ix % nx)
                        continue;
                    at.step.z = z.offset[iz];
                    at.step.y = y.offset[iy];
                    at.step.x = x.offset[ix];
                    at.step.ny = y.n - iy < ny ? y.n - iy : ny;
                    at.step.nx = x.n - ix < nx ? x.n - ix : nx;
                    at.step.dy = y.step;
                    at.step.dx = x.step;
                    at.step.pieces =
                        at.step.ny * at.step.nx * how->stage.units / 2 * (CU_PATCH_TAP / 16);
                    at.tap_z = z.tap[iz];
                    at.tap_y = y.tap + iy;
                    at.tap_x = x.tap + ix;
                    f(at);
                    at.step.weights += at.step.pieces;
                }
            }
}

/* The only step of a set without taps (a transposed kernel smaller than its stride): zeros. */
inline cu_patch_taps cu_patch_nothing(const cu_patch_plan *how)
{
    static const int32_t tap = 0;
    cu_patch_taps at;
    memset(&at, 0, sizeof at);
    at.step.ny = at.step.nx = at.step.dy = at.step.dx = 1;
    at.step.pieces = how->stage.units / 2 * (CU_PATCH_TAP / 16);
    at.tap_y = at.tap_x = &tap;
    return at;
}

/* Calls f for all steps of a set, in order. */
template <class F>
inline void cu_patch_each_step(const cu_gemm_plan *p, const cu_patch_plan *how, int64_t set,
                               F f)
{
    const int64_t n_phases = p->phases[0] * p->phases[1] * p->phases[2];
    const int64_t per = p->g.in_c / p->g.groups * p->merged, lo = set / n_phases * per;
    const int64_t lanes = 8 * how->stage.units;
    int32_t weights = 0;
    for (int64_t s = 0, c0 = 0; s < p->n_seg; c0 += p->seg_c[s++]) {
        const int64_t from = lo > c0 ? lo - c0 : 0;
        const int64_t to = lo + per - c0 < p->seg_c[s] ? lo + per - c0 : p->seg_c[s];
        for (int64_t c = from; c < to; c += lanes) {
            cu_patch_taps at;
            memset(&at, 0, sizeof at);
            at.step.source = (int32_t)(s << 16 | c);
            at.step.weights = weights;
            at.channel = c0 + c;
            at.channels = to - c < lanes ? to - c : lanes;
            at.step.units = (int32_t)((at.channels + 7) / 8);
            cu_patch_each_rectangle(p, how, set, at, [&](const cu_patch_taps &t) {
                weights += t.step.pieces;
                f(t);
            });
        }
    }
    if (!weights)
        f(cu_patch_nothing(how));
}

/* Of a set: steps, pieces of weights of a tile, and bytes of pixels that a block copies. */
struct cu_patch_sum {
    int64_t steps, pieces, pixel_bytes;
};

inline cu_patch_sum cu_patch_sum_of(const cu_gemm_plan *p, const cu_patch_plan *how,
                                    int64_t set)
{
    cu_patch_sum sum = {0, 0, 0};
    cu_patch_each_step(p, how, set, [&](const cu_patch_taps &t) {
        const cu_patch_step *s = &t.step;
        sum.steps++;
        sum.pieces += s->pieces;
        sum.pixel_bytes +=
            cu_patch_area((int64_t)(s->ny - 1) * s->dy, (int64_t)(s->nx - 1) * s->dx) *
            how->stage.units * 16;
    });
    return sum;
}

/* ---- Host: packing ----------------------------------------------------------------------- */

inline cu_gemm_layout cu_patch_layout_of(const cu_gemm_plan *p, const cu_patch_plan *how)
{
    cu_gemm_layout l;
    int64_t steps = 0, pieces = 0;
    l.tiles = p->sets * cu_gemm_set_tiles(p);
    for (int64_t set = 0; set < p->sets; set++) {
        const cu_patch_sum sum = cu_patch_sum_of(p, how, set);
        steps += sum.steps;
        pieces += sum.pieces * cu_gemm_set_tiles(p);
    }
    l.places = cu_align64((size_t)l.tiles * sizeof(cu_gemm_tile));
    l.bias =
        l.places + cu_align64(sizeof(cu_patch_stage) + (size_t)steps * sizeof(cu_patch_step));
    l.weights = l.bias + cu_align64((size_t)(l.tiles * CU_PATCH_BN) * sizeof(float));
    l.bytes = l.weights + cu_align64((size_t)pieces * 16);
    return l;
}

/* Weights of one step for all tiles of a set, `per_tile` pieces apart. */
template <class W>
inline void cu_patch_pack_step(const cu_gemm_plan *p, const cu_conv_weights &w,
                               const cu_patch_taps &t, int64_t channel0, int64_t per_tile,
                               W *weights)
{
    const int64_t n = cu_gemm_channels(p), *k = p->g.k;
    const int64_t units = t.step.pieces / (t.step.ny * t.step.nx * CU_PATCH_BN);
    for (int64_t i = 0; i < t.step.ny * t.step.nx; i++) {
        const int64_t tap =
            (t.tap_z * k[1] + t.tap_y[i / t.step.nx]) * k[2] + t.tap_x[i % t.step.nx];
        for (int64_t c = 0; c < n; c++)
            for (int64_t lane = 0; lane < t.channels; lane++) {
                const int64_t piece = (i * units + lane / 8) * CU_PATCH_BN + c % CU_PATCH_BN;
                const int64_t tile = c / CU_PATCH_BN * per_tile;
                weights[(tile + t.step.weights + piece) * 8 + lane % 8] =
                    (W)w.at(t.channel + lane, channel0 + c, tap);
            }
    }
}

/* 1: step b is a's, of the next channels. */
inline int cu_patch_follows(const cu_patch_step &a, const cu_patch_step &b, int units)
{
    cu_patch_step next = a;
    next.source += units * 8;
    next.weights += a.pieces;
    return memcmp(&next, &b, sizeof next) == 0;
}

template <class W>
inline void cu_patch_pack(const cu_gemm_plan *p, const cu_patch_plan *how,
                          const tgi_op_ctx *ctx, void *dst)
{
    const cu_gemm_layout l = cu_patch_layout_of(p, how);
    const cu_conv_weights w = {ctx->const_src[1]->data, &p->g, p->transposed};
    const int64_t n_phases = p->phases[0] * p->phases[1] * p->phases[2];
    cu_gemm_tile *tile = (cu_gemm_tile *)dst;
    cu_patch_stage *stage = (cu_patch_stage *)((char *)dst + l.places);
    cu_patch_step *step = (cu_patch_step *)(stage + 1);
    float *bias = (float *)((char *)dst + l.bias);
    int64_t first = 0, weight = 0; /* step; piece */
    memset(dst, 0, l.bytes);
    *stage = how->stage;
    stage->alike = 1;
    for (int64_t set = 0; set < p->sets; set++) {
        const cu_patch_sum sum = cu_patch_sum_of(p, how, set);
        const int64_t channel0 = set / n_phases * cu_gemm_channels(p);
        W *weights = (W *)((char *)dst + l.weights) + weight * 8;
        int64_t in_set = 0;
        cu_patch_each_step(p, how, set, [&](const cu_patch_taps &t) {
            *step = t.step;
            stage->alike &= !in_set++ || cu_patch_follows(step[-1], *step, how->stage.units);
            step++;
            cu_patch_pack_step(p, w, t, channel0, sum.pieces, weights);
        });
        for (int64_t t = 0; t < cu_gemm_set_tiles(p); t++, tile++, bias += CU_PATCH_BN) {
            cu_gemm_pack_tile(p, ctx, set, t, tile, bias);
            tile->first = (int32_t)first;
            tile->steps = (int32_t)sum.steps;
            tile->weights = 16 * (weight + t * sum.pieces);
        }
        first += sum.steps;
        weight += sum.pieces * cu_gemm_set_tiles(p);
    }
}

/* Arguments, and how many blocks there are. */
inline dim3 cu_patch_arguments(const cu_gemm_plan *p, const cu_patch_plan *how,
                               const tgi_call *call, cu_gemm_args *a)
{
    static const int widths[] = {5, 3};
    int64_t most[3];
    cu_gemm_packed(p, call, cu_patch_layout_of(p, how), a, most);
    return cu_gemm_cover(CU_PATCH_PIXELS_LOG, widths, 2, most, a);
}

/* ---- Device: copying a patch ------------------------------------------------------------- */

__device__ __forceinline__ cu_patch_stage cu_patch_stage_at(const cu_gemm_args *a)
{
    const int4 s = __ldg(a->places);
    const cu_patch_stage stage = {s.x, s.y, s.z, (int16_t)(s.w & 0xffff), (int16_t)(s.w >> 16)};
    return stage;
}

__device__ __forceinline__ cu_patch_step cu_patch_step_at(const cu_gemm_args *a, int i)
{
    const int4 *at = a->places + 1 + 3 * i;
    const int4 u = __ldg(at), v = __ldg(at + 1), w = __ldg(at + 2);
    const cu_patch_step step = {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w, w.x, w.y, w.z, w.w};
    return step;
}

/* The step after `s`, which is the i-th. */
__device__ __forceinline__ void
cu_patch_next_step(const cu_gemm_args *a, const cu_patch_stage &how, int i, cu_patch_step *s)
{
    if (how.alike) {
        s->source += how.units * 8;
        s->weights += s->pieces;
    } else {
        *s = cu_patch_step_at(a, i);
    }
}

/* The tile is wide: y is the inner axis. */
__device__ __forceinline__ bool cu_patch_is_wide(const cu_gemm_args *a)
{
    return a->width_log == 5;
}
/* Pixels from one eight to the next in a patch. */
__device__ __forceinline__ int cu_patch_pitch(const cu_patch_step &s, bool wide)
{
    return 8 + (wide ? (s.ny - 1) * s.dy : (s.nx - 1) * s.dx);
}

/* Copies of a thread for a stage: which kernel it takes. */
inline int cu_patch_copies_of(const cu_patch_stage *s)
{
    const int pixels = CU_PATCH_THREADS / s->units;
    return (s->plane_bytes / 16 + pixels - 1) / pixels <= CU_PATCH_COPIES / 2
               ? CU_PATCH_COPIES / 2
               : CU_PATCH_COPIES;
}

#if CU_HAS_WGMMA

/* What a thread copies: one unit of every THREADS / UNITS-th pixel, COPIES at most, and one of
 * them the weights. Rows and columns that no pixel of the box reads may not be there: they are
 * zeros, as is what lies outside of the image. Where pixels lie is kept while steps differ in
 * channels alone. */
template <class T, int THREADS, int UNITS, int COPIES> struct cu_patch_copier {
    static const int pixels = THREADS / UNITS; /* from one copy to the next */
    int32_t y0, x0;        /* input coordinates of the block's first pixel, for offset 0 */
    int32_t height, width; /* pixels of the block that are in the box */
    int4 key;              /* segment, slab, first pixel of the patch at hand */
    int32_t key_taps;
    const uint4 *plane;  /* its first row that there is; NULL: outside */
    const uint4 *again;  /* that row, were it behind the ring's last: see `turned` */
    const char *weights; /* of the tile */
    int32_t count;       /* pixels of the patch that this thread copies */
    uint32_t inside;     /* bit i: the i-th is read */
    uint32_t turned;     /* ... from the ring's beginning on again */
    uint32_t at[COPIES]; /* ... at this piece from the row's: 32 bits for a patch, which has
                            few rows (cu_patch_reaches), not for a plane */

    __device__ __forceinline__ void begin(const cu_gemm_args *a, const cu_gemm_block &b)
    {
        const int32_t end[2] = {cu_gemm_first(a->hi[1], b.tile.out_first[1], a->out_step[1]),
                                cu_gemm_first(a->hi[2], b.tile.out_first[2], a->out_step[2])};
        y0 = b.q[1] * a->in_step[1];
        x0 = b.q[2] * a->in_step[2];
        height = min(end[0] - b.q[1], 1 << a->height_log);
        width = min(end[1] - b.q[2], 1 << a->width_log);
        key = make_int4(-1, 0, 0, 0);
        key_taps = count = 0;
        plane = again = NULL;
        weights = a->weights + b.tile.weights;
        inside = turned = 0;
#pragma unroll
        for (int k = 0; k < COPIES; k++)
            at[k] = 0;
    }

    __device__ __forceinline__ void locate(const cu_gemm_args *a, const cu_patch_step &s,
                                           const cu_gemm_source *from)
    {
        const bool wide = cu_patch_is_wide(a);
        const int first = (int)threadIdx.x / UNITS;
        const int beyond_y = (s.ny - 1) * s.dy, beyond_x = (s.nx - 1) * s.dx;
        const int pitch = cu_patch_pitch(s, wide);
        const int area = pitch * (32 + (wide ? beyond_x : beyond_y));
        const uint32_t over = (1u << 20) / (uint32_t)pitch + 1; /* i / pitch for i < 2^12 */
        const uint32_t y_pitch = (uint32_t)from->y_pitch / 8, cb = (uint32_t)from->cb / 8;
        const int32_t row0 = max(y0 + s.y, 0) >> from->doubled;
        const int32_t ring0 = cu_ring(row0, from->y_ring, from->y_magic);
        count = first < area ? (area - first - 1) / pixels + 1 : 0;
        inside = turned = 0;
        if (plane) {
            plane += (int64_t)ring0 * y_pitch;
            again = plane - (int64_t)from->y_ring * y_pitch;
        }
#pragma unroll
        for (int k = 0; k < COPIES; k++) {
            const int i = first + k * pixels;
            const int outer = (int)((uint32_t)i * over >> 20), inner = i - outer * pitch;
            const int py = wide ? inner : outer, px = wide ? outer : inner;
            const int32_t iy = y0 + s.y + py * a->in_step[1];
            const int32_t ix = x0 + s.x + px * a->in_step[2];
            const bool there = k < count && py < height + beyond_y && px < width + beyond_x &&
                               (uint32_t)iy < (uint32_t)a->in[1] &&
                               (uint32_t)ix < (uint32_t)a->in[2];
            const uint32_t row = (uint32_t)((iy >> from->doubled) - row0);
            const uint32_t column = (uint32_t)((ix >> from->doubled) - from->x0);
            at[k] = there ? row * y_pitch + column * cb : 0;
            inside |= (there ? 1u : 0u) << k;
            turned |= ((uint32_t)ring0 + row >= from->y_ring ? 1u : 0u) << k;
        }
    }

    __device__ __forceinline__ void move(const cu_gemm_args *a, const cu_patch_step &s, int z)
    {
        const int32_t seg = s.source >> 16, taps = s.ny << 16 | s.nx;
        if (seg == key.x && z == key.y && s.y == key.z && s.x == key.w && taps == key_taps)
            return;
        key = make_int4(seg, z, s.y, s.x);
        key_taps = taps;
        const cu_gemm_source *from =
            reinterpret_cast<const cu_gemm_source *>(&a->pool.item[a->src + seg]);
        plane = NULL;
        if (z >= 0 && z < a->in[0])
            plane = reinterpret_cast<const uint4 *>(
                reinterpret_cast<const T *>(from->base) +
                (z ? (int64_t)((uint32_t)z % from->z_ring) * from->z_pitch : 0));
        locate(a, s, from);
    }

    /* Those of step `s`; `barrier`: of the stage, see cu_bulk_copy. */
    __device__ __forceinline__ void start_copies(const cu_gemm_args *a, const cu_gemm_block &b,
                                                 const cu_patch_stage &how,
                                                 const cu_patch_step &s, unsigned char *stage,
                                                 uint64_t *barrier)
    {
        const int t = (int)threadIdx.x, unit = t % UNITS;
        if (t == 0)
            cu_bulk_copy(stage + UNITS * how.plane_bytes, weights + (int64_t)s.weights * 16,
                         (unsigned)s.pieces * 16, barrier);
        move(a, s, b.q[0] * a->in_step[0] + s.z);
        const uint32_t read = plane && unit < s.units ? inside : 0;
        const uint4 *const nothing = reinterpret_cast<const uint4 *>(a->places);
        const int lane = (s.source & 0xffff) / 8 + unit;
        const uint4 *const first = plane ? plane + lane : nothing;
        const uint4 *const others = plane ? again + lane : nothing;
        unsigned char *to = stage + unit * how.plane_bytes + t / UNITS * 16;
#pragma unroll
        for (int k = 0; k < COPIES; k++)
            cu_copy16_if(to + k * (pixels * 16), (turned >> k & 1 ? others : first) + at[k],
                         read >> k & 1, k < count);
    }
};

#endif
#endif
