/* cpu_attention.c - PixelAttention without the matrix of likenesses.
 *
 * Queries lie in lanes, so that largest values, sums and exponentials are those of lanes. A tile
 * of TILE_V vectors of queries meets the keys in blocks of BLOCK: likenesses of the block, the
 * largest of all so far, weights, and what they add of the values. Where the largest grew, what
 * was summed before is scaled down to it ("online softmax": Milakov, Gimelshein,
 * arXiv:1805.02867; by blocks: Rabe, Staats, arXiv:2112.05682). Blocks are counted from the
 * first key of the image and a lane looks at no other lane, so a query has the same bits in any
 * tile, band or thread. Likenesses are summed channel by channel, values key by key in a block
 * and then block by block.
 *
 * Where keys and values come in pieces (tgi_variant.piece), all tiles of the box stay in scratch from
 * piece to piece; else only those of the jobs at hand.
 *
 * A job is some tiles of one head. It copies each block of keys and values once for all of its
 * tiles, from whatever layout they have: rows of a key's channels, which are broadcast. */
#include "kernels/cpu/cpu_attend.h"
#include "kernels/ops/op_attrs.h"

#include <math.h>

#define JOB (16 / TGI_L * 4) /* tiles of a job at most: as many queries with any set */

static int64_t round_up(int64_t n, int64_t to)
{
    return tgi_ceil_div64(n, to) * to;
}

/* ---- What there is ----------------------------------------------------------------------- */

typedef struct sizes {
    int64_t heads, inner, outer;  /* channels of a key and of a value, of one head */
    int64_t key_room, value_room; /* floats of one that is copied */
    int64_t n_keys, n_queries;
} sizes;

static sizes sizes_of(const tgi_op_ctx *ctx)
{
    const attention_attrs *a = ctx->attrs;
    const int64_t inner = ctx->src[0].dim[1] / a->heads, outer = ctx->src[2].dim[1] / a->heads;
    sizes s = {.heads = a->heads, .inner = inner, .outer = outer, .n_keys = 1};
    s.key_room = round_up(inner, TGI_L);
    s.value_room = round_up(outer, TGI_L); /* a multiple of STEP */
    for (int k = TGI_Z; k <= TGI_X; k++)
        s.n_keys *= tgi_desc_axis(&ctx->src[1], k);
    return s;
}

/* Of a tile: its queries, and what is known by now. */
static int64_t tile_floats(const sizes *s)
{
    return (s->inner + s->value_room + 2) * TILE;
}

/* Of a thread: tiles, a block of keys and values, its likenesses. */
static int64_t thread_floats(const sizes *s)
{
    return JOB * tile_floats(s) + BLOCK * (s->key_room + s->value_room + TILE);
}

typedef struct tile {
    float *query, *sum; /* [channel][TILE] */
    float *top, *weight;
} tile;

static tile tile_at(const sizes *s, float *p)
{
    tile t = {.query = p};
    t.sum = t.query + s->inner * TILE;
    t.top = t.sum + s->value_room * TILE;
    t.weight = t.top + TILE;
    return t;
}

/* A box whose pixels are counted row by row: where it begins, rows of a plane and columns. */
typedef struct grid {
    int64_t z, y, x, h, w;
} grid;

typedef struct work {
    const tgi_call *call;
    sizes s;
    grid queries;
    int64_t tiles, jobs; /* of a job; of a head */
    tgi_range keys;      /* that are there */
    float *state;        /* tiles of all heads, kept from piece to piece; NULL: all is there */
    float scale;
} work;

/* ---- Pixels by number -------------------------------------------------------------------- */

/* Pixels of a row. */
typedef struct run_of {
    int64_t z, y, x, n;
} run_of;

/* The longest run from pixel i on, of those before `end`. */
static run_of run_at(const grid *g, int64_t i, int64_t end)
{
    const int64_t row = i / g->w, x = i % g->w, n = tgi_min64(g->w - x, end - i);
    return (run_of){g->z + row / g->h, g->y + row % g->h, g->x + x, n};
}

static grid grid_of_image(const tgi_desc *d)
{
    return (grid){.h = tgi_desc_axis(d, TGI_Y), .w = tgi_desc_axis(d, TGI_X)};
}

static grid grid_of_box(const tgi_box *b)
{
    const tgi_range y = tgi_box_axis(b, TGI_Y), x = tgi_box_axis(b, TGI_X);
    return (grid){.z = tgi_box_axis(b, TGI_Z).lo,
                  .y = y.lo,
                  .x = x.lo,
                  .h = tgi_range_len(y),
                  .w = tgi_range_len(x)};
}

/* ---- Copies ------------------------------------------------------------------------------ */

/* Channels [c0, c0 + n) of pixels [i0, i1) of source k, to dst[pixel * room + channel]. */
static void copy_block(const tgi_call *call, int src, int64_t c0, int64_t n, int64_t i0,
                       int64_t i1, float *dst, int64_t room)
{
    const tgi_operand *o = &call->src[src];
    const int in_a_row = call->in_pieces >> src & 1;
    const grid g = grid_of_image(&call->ctx->src[src]);
    for (int64_t i = i0; i < i1;) {
        const run_of u = in_a_row ? (run_of){.x = i, .n = i1 - i} : run_at(&g, i, i1);
        for (int64_t c = 0; c < n; c += TGI_L) {
            const int many = (int)tgi_min64(TGI_L, n - c);
            tgi_lane lane[TGI_L];
            for (int k = 0; k < many; k++) {
                lane[k] = TGS(tgi_lane_of)(o, c0 + c + k, u.z, u.y);
                lane[k].p += u.x * lane[k].step;
            }
            TGS(tgi_gather_lanes)(lane, many, u.n, dst + (i - i0) * room + c, room);
        }
        i += u.n;
    }
}

/* The queries [i0, i1) of the box in lanes; lanes behind them hold zeros. */
static void copy_queries(const work *w, int64_t head, int64_t i0, int64_t i1, float *dst)
{
    memset(dst, 0, (size_t)(w->s.inner * TILE) * sizeof *dst);
    for (int64_t i = i0; i < i1;) {
        const run_of u = run_at(&w->queries, i, i1);
        for (int64_t c = 0; c < w->s.inner; c++) {
            const tgi_lane l =
                TGS(tgi_lane_of)(&w->call->src[0], head * w->s.inner + c, u.z, u.y);
            for (int64_t k = 0; k < u.n; k++)
                dst[c * TILE + i - i0 + k] = l.p[(u.x + k) * l.step] * w->scale;
        }
        i += u.n;
    }
}

static void put_results(const work *w, int64_t head, int64_t i0, int64_t i1, const float *sum)
{
    const tgi_view *v = &w->call->dst[0];
    for (int64_t i = i0; i < i1;) {
        const run_of u = run_at(&w->queries, i, i1);
        for (int64_t c = 0; c < w->s.outer; c++) {
            float *to = tgi_view_at(v, head * w->s.outer + c, u.z, u.y, u.x);
            for (int64_t k = 0; k < u.n; k++)
                to[k * v->cb] = sum[c * TILE + i - i0 + k];
        }
        i += u.n;
    }
}

/* ---- A tile and a block ------------------------------------------------------------------ */

/* What n weighted keys add to STEP channels. With `scale`, vectors of factors of what was there.
 */
TGI_INLINE void value_step(const float *weight, const float *value, int64_t room, int64_t n,
                           const vf *scale, float *sum)
{
    vf acc[STEP * TILE_V];
    TGI_UNROLL
    for (int i = 0; i < STEP * TILE_V; i++)
        acc[i] = vf_zero();
    for (int64_t j = 0; j < n; j++) {
        vf w[TILE_V];
        TGI_UNROLL
        for (int v = 0; v < TILE_V; v++)
            w[v] = vf_load(weight + j * TILE + v * TGI_L);
        TGI_UNROLL
        for (int c = 0; c < STEP; c++) {
            const vf k = vf_set1(value[j * room + c]);
            TGI_UNROLL
            for (int v = 0; v < TILE_V; v++)
                acc[c * TILE_V + v] = vf_fma(k, w[v], acc[c * TILE_V + v]);
        }
    }
    TGI_UNROLL
    for (int c = 0; c < STEP; c++)
        TGI_UNROLL
    for (int v = 0; v < TILE_V; v++) {
        float *s = sum + c * TILE + v * TGI_L;
        vf_store(s, vf_fma(vf_load(s), scale[v], acc[c * TILE_V + v]));
    }
}

/* Likenesses of n keys become weights of them; *scale: by what earlier sums shrink. */
static void weigh(const tile *t, float *like, int64_t n, int first, vf *scale)
{
    vf top[TILE_V], sum[TILE_V];
    for (int v = 0; v < TILE_V; v++) {
        top[v] = vf_load(first ? like + v * TGI_L : t->top + v * TGI_L);
        sum[v] = vf_zero();
    }
    for (int64_t j = 0; j < n; j++)
        for (int v = 0; v < TILE_V; v++)
            top[v] = vf_max(vf_load(like + j * TILE + v * TGI_L), top[v]);
    for (int64_t j = 0; j < n; j++)
        for (int v = 0; v < TILE_V; v++) {
            const vf w = exp_below(vf_load(like + j * TILE + v * TGI_L) - top[v]);
            vf_store(like + j * TILE + v * TGI_L, w);
            sum[v] += w;
        }
    for (int v = 0; v < TILE_V; v++) {
        scale[v] = first ? vf_zero() : exp_below(vf_load(t->top + v * TGI_L) - top[v]);
        vf_store(t->top + v * TGI_L, top[v]);
        vf_store(t->weight + v * TGI_L,
                 first ? sum[v] : vf_fma(vf_load(t->weight + v * TGI_L), scale[v], sum[v]));
    }
}

static void add_block(const sizes *s, const tile *t, const float *key, const float *value,
                      float *like, int64_t n, int first)
{
    vf scale[TILE_V];
    for (int64_t j = 0; j < n; j += STEP)
        like_step(t->query, key + j * s->key_room, s->key_room, s->inner, like + j * TILE);
    weigh(t, like, n, first, scale);
    for (int64_t c = 0; c < s->outer; c += STEP)
        value_step(like, value + c, s->value_room, n, scale, t->sum + c * TILE);
}

static void divide(const sizes *s, const tile *t)
{
    for (int v = 0; v < TILE_V; v++) {
        const vf share = vf_set1(1.0f) / vf_load(t->weight + v * TGI_L);
        for (int64_t c = 0; c < s->outer; c++) {
            float *p = t->sum + c * TILE + v * TGI_L;
            vf_store(p, vf_load(p) * share);
        }
    }
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static void tiles_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const sizes *s = &w->s;
    const int64_t head = job / w->jobs, i0 = job % w->jobs * w->tiles * TILE;
    const int64_t i1 = tgi_min64(i0 + w->tiles * TILE, s->n_queries);
    const int64_t n = tgi_ceil_div64(i1 - i0, TILE);
    float *p = (float *)w->call->scratch + thread * thread_floats(s);
    float *key = p + JOB * tile_floats(s), *value = key + BLOCK * s->key_room;
    float *like = value + BLOCK * s->value_room;
    const int64_t first = head * tgi_ceil_div64(s->n_queries, TILE) + i0 / TILE;
    float *const tiles = w->state ? w->state + first * tile_floats(s) : p;
    tile t[JOB];
    memset(key, 0, (size_t)(BLOCK * (s->key_room + s->value_room)) * sizeof *key);
    for (int64_t k = 0; k < n; k++) {
        t[k] = tile_at(s, tiles + k * tile_floats(s));
        if (w->keys.lo > 0)
            continue;
        memset(t[k].sum, 0, (size_t)(s->value_room * TILE) * sizeof *t[k].sum);
        copy_queries(w, head, i0 + k * TILE, tgi_min64(i0 + (k + 1) * TILE, i1), t[k].query);
    }
    for (int64_t j = w->keys.lo; j < w->keys.hi; j += BLOCK) {
        const int64_t end = tgi_min64(j + BLOCK, w->keys.hi);
        copy_block(w->call, 1, head * s->inner, s->inner, j, end, key, s->key_room);
        copy_block(w->call, 2, head * s->outer, s->outer, j, end, value, s->value_room);
        for (int64_t k = 0; k < n; k++)
            add_block(s, &t[k], key, value, like, end - j, j == 0);
    }
    for (int64_t k = 0; k < n && w->keys.hi == s->n_keys; k++) {
        divide(s, &t[k]);
        put_results(w, head, i0 + k * TILE, tgi_min64(i0 + (k + 1) * TILE, i1), t[k].sum);
    }
}

/* Every head of a row is there now. */
static void row_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const grid *g = &w->queries;
    const tgi_row_part part = {.b1 = tgi_view_blocks(&w->call->dst[0]),
                               .z = g->z + job / g->h,
                               .y = g->y + job % g->h,
                               .x0 = g->x,
                               .x1 = g->x + g->w};
    (void)thread;
    TGS(tgi_epilogue_part)(w->call, 0, &part);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int rank = ctx->src[0].rank;
    for (int i = 0; i < 3; i++)
        if (ctx->const_src[i] || lay->src_segs[i] < 1)
            return 0;
    return lay->lanes == TGI_L && (rank == 4 || rank == 5);
}

/* Behind the threads' own scratch: a whole number of cache lines. */
static size_t own_floats(const sizes *s, int threads)
{
    return (size_t)round_up(threads * thread_floats(s), 16);
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    const sizes s = sizes_of(ctx);
    (void)lay, (void)width;
    return own_floats(&s, threads) * sizeof(float);
}

static size_t state_bytes(const tgi_op_ctx *ctx, int64_t pixels)
{
    const sizes s = sizes_of(ctx);
    const int64_t tiles = tgi_ceil_div64(pixels, TILE) * s.heads;
    return (size_t)(tiles * tile_floats(&s)) * sizeof(float);
}

static void run(const tgi_call *call)
{
    const attention_attrs *a = call->ctx->attrs;
    work w = {.call = call,
              .s = sizes_of(call->ctx),
              .queries = grid_of_box(&call->box),
              .scale = a->scale};
    w.keys = call->in_pieces ? call->piece : (tgi_range){0, w.s.n_keys};
    if (call->in_pieces)
        w.state = (float *)call->scratch + own_floats(&w.s, tgi_threads_count(call->threads));
    const int64_t rows = tgi_range_len(tgi_box_axis(&call->box, TGI_Z)) * w.queries.h;
    if (tgi_box_empty(&call->box))
        return;
    w.s.n_queries = rows * w.queries.w;
    const int64_t tiles = tgi_ceil_div64(w.s.n_queries, TILE);
    const int64_t share = tiles * w.s.heads / (4 * tgi_threads_count(call->threads));
    w.tiles = tgi_max64(1, tgi_min64(JOB, share));
    w.jobs = tgi_ceil_div64(tiles, w.tiles);
    tgi_parallel(call->threads, w.jobs * w.s.heads, tiles_job, &w);
    if (w.keys.hi == w.s.n_keys)
        tgi_parallel(call->threads, rows, row_job, &w);
}

const tgi_variant TGS(tgi_attention) = {.name = "attention",
                                        .op = "PixelAttention",
                                        .work = TGI_WORK_ATTENTION,
                                        .accepts = accepts,
                                        .scratch_bytes = scratch_bytes,
                                        .piece = BLOCK,
                                        .state_bytes = state_bytes,
                                        .run = TGI_RUN(run)};
