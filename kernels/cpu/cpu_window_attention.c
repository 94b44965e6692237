/* cpu_window_attention.c - WindowAttention, window by window.
 *
 * A job is a head of a window: the queries of all frames that lie in the box, in tiles. The keys and
 * values that they look at are copied in chunks, one behind the other, wherever they come from, and
 * all tiles meet a chunk before the next is copied. A tile of queries lies in lanes: their likenesses
 * to the keys of a chunk, the largest of each, weights and sums. Weights are e to the likeness over a
 * power of two, the one next to e to the largest so far; where that grows, sums are multiplied by
 * powers of two, which rounds nothing that a number of this type can hold.
 * For what they add of the values, channels lie in lanes, so the result is written as it is stored.
 *
 * Order of sums: likenesses channel by channel, weights and values key by key in blocks of BLOCK
 * from the first key on, then block by block. A lane looks at no other, so a query has the same bits
 * in any tile, box or thread. */
#include "kernels/cpu/cpu_attend.h"
#include "kernels/cpu/cpu_blocks.h"
#include "kernels/ops/window_tokens.h"

#include <float.h>
#include <math.h>

/* Queries and vectors of channels whose sums are in registers together. */
#define VALUE_Q 6
#define VALUE_V (TG_SIMD_ISA == 2 ? 4 : 2)
#define CHUNK 256 /* keys that are copied together; whole blocks */

/* ---- What there is ----------------------------------------------------------------------- */

typedef struct sizes {
    int64_t channels, inner;      /* of a frame, of a head */
    int64_t key_room, value_room; /* floats of one that is copied */
    int64_t pooled;               /* tokens of a frame */
    int64_t tiles;                /* of a window */
} sizes;

static int64_t round_up(int64_t n, int64_t to)
{
    return tgi_ceil_div64(n, to) * to;
}

static sizes sizes_of(const tgi_op_ctx *ctx)
{
    const window_attrs *a = ctx->attrs;
    sizes s = {.channels = ctx->src[0].dim[1] / tgi_window_asked(a)};
    s.inner = s.channels / a->heads;
    s.key_room = round_up(s.inner, TGI_L);
    s.value_room = round_up(s.inner, VALUE_V * TGI_L);
    s.pooled = ctx->src[3].dim[2] * ctx->src[3].dim[3];
    s.tiles = tgi_ceil_div64(tgi_window_asked(a) * a->window_h * a->window_w, TILE);
    return s;
}

/* A tile of queries: what is known of it. */
typedef struct tile {
    float *query, *sum; /* [channel][TILE], [query][room] */
    double *shift;      /* of the queries: weights are e^x over 2^shift */
    float *ln[2];       /* shift ln 2 in two parts */
    float *weight;      /* their sum */
} tile;

static int64_t tile_floats(const sizes *s)
{
    return TILE * (s->key_room + s->value_room + 5);
}

static tile tile_at(const sizes *s, float *p)
{
    tile t = {.query = p};
    t.sum = t.query + s->key_room * TILE;
    t.ln[0] = t.sum + TILE * s->value_room;
    t.ln[1] = t.ln[0] + TILE;
    t.weight = t.ln[1] + TILE;
    t.shift = (double *)(void *)(t.weight + TILE);
    return t;
}

/* Of a thread: a chunk of keys and values, a tile's likenesses to it, all tiles of a window. */
static int64_t thread_floats(const sizes *s)
{
    return round_up(CHUNK * (s->key_room + s->value_room + TILE) + s->tiles * tile_floats(s),
                    16);
}

typedef struct buffers {
    float *key, *value; /* [key][room] */
    float *like;        /* [key][TILE] */
    float *tiles;
} buffers;

static buffers buffers_at(const sizes *s, float *p)
{
    buffers b = {.key = p};
    b.value = b.key + CHUNK * s->key_room;
    b.like = b.value + CHUNK * s->value_room;
    b.tiles = b.like + CHUNK * TILE;
    return b;
}

typedef struct work {
    const tgi_call *call;
    const window_attrs *a;
    sizes s;
    tgi_range y, x;          /* of the box */
    int64_t wy, wx, columns; /* its first window, and how many there are in a row */
} work;

/* The queries of a window that are in the box, of each frame. */
typedef struct window {
    int64_t wy, wx, head;
    int64_t y, x, h, w;
} window;

/* ---- Keys -------------------------------------------------------------------------------- */

/* What queries look at, in its order: of some frames the first n tokens of a list, and of a masked
 * window all pooled tokens behind them. */
typedef struct keys {
    const tgi_window_tokens *t;
    int64_t frame, end, step;
    int64_t n, pooled, at; /* of a frame; the next one of it */
} keys;

/* Tokens that lie side by side. */
typedef struct run_of {
    int src; /* of the keys; the values' is the next */
    int64_t frame, y, x, many;
    int there; /* 0: one that fills */
} run_of;

/* The next ones, `most` at most; 0: there are no more. */
static int next_run(const work *w, keys *k, int64_t most, run_of *r)
{
    if (k->at == k->n + k->pooled) {
        k->at = 0;
        k->frame += k->step;
    }
    if (k->frame >= k->end || most <= 0)
        return 0;
    const tgi_desc *d = w->call->ctx->src;
    *r = (run_of){.src = 1, .frame = k->frame, .there = 1};
    if (k->at < k->n) {
        const int64_t end = tgi_min64(k->n, k->at + most);
        r->y = k->t->at[k->at].y;
        r->x = k->t->at[k->at].x;
        r->there = r->y < d[1].dim[2] && r->x < d[1].dim[3];
        for (r->many = 1; r->there && k->at + r->many < end; r->many++)
            if (k->t->at[k->at + r->many].y != r->y ||
                k->t->at[k->at + r->many].x != r->x + r->many || r->x + r->many >= d[1].dim[3])
                break;
    } else {
        const int64_t wide = d[3].dim[3], i = k->at - k->n;
        r->src = 3;
        r->y = i / wide;
        r->x = i % wide;
        r->many = tgi_min64(wide - r->x, most);
    }
    k->at += r->many;
    return 1;
}

/* Keys (0) or values (1) of a run. */
static void copy_tokens(const work *w, const run_of *r, int64_t head, int which, float *dst,
                        int64_t room)
{
    const int64_t c0 = head * w->s.inner;
    if (r->there)
        copy_run(&w->call->src[r->src + which], r->frame * w->s.channels + c0, w->s.inner, r->y,
                 r->x, r->many, dst, room, TGI_L);
    for (int64_t c = 0; !r->there && c < w->s.inner; c++)
        dst[c] = tgi_const_at(w->call->ctx->const_src[6 + which]->data, c0 + c);
}

/* The next chunk; how many keys it has. */
static int64_t copy_chunk(const work *w, keys *k, int64_t head, const buffers *b)
{
    int64_t n = 0;
    for (run_of r; next_run(w, k, CHUNK - n, &r); n += r.many) {
        copy_tokens(w, &r, head, 0, b->key + n * w->s.key_room, w->s.key_room);
        copy_tokens(w, &r, head, 1, b->value + n * w->s.value_room, w->s.value_room);
    }
    return n;
}

/* These will be read soon. They lie in many short pieces, which no processor foresees. */
static void expect_run(const work *w, int src, const run_of *r, int64_t head)
{
    const in_blocks b =
        blocks_of_source(&w->call->src[src], r->frame * w->s.channels + head * w->s.inner,
                         w->s.inner, r->y, r->x);
    for (int64_t c = 0; b.p && c < w->s.inner; c += TGI_L)
        for (int64_t i = 0; i < r->many; i++)
            __builtin_prefetch(b.p + (size_t)(c / TGI_L) * b.pitch + i * TGI_L, 0, 2);
}

static void expect_chunk(const work *w, keys k, int64_t head)
{
    int64_t n = 0;
    for (run_of r; next_run(w, &k, CHUNK - n, &r); n += r.many)
        for (int which = 0; which < 2 && r.there; which++)
            expect_run(w, r.src + which, &r, head);
}

/* ---- Queries ----------------------------------------------------------------------------- */

static void put_run(const work *w, int64_t c0, int64_t y, int64_t x, int64_t n_px,
                    const float *sum, const float *share)
{
    const tgi_view *v = &w->call->dst[0];
    const in_blocks b =
        w->s.inner % TGI_L ? (in_blocks){NULL, 0} : blocks_of(v, c0, w->s.inner, y, x);
    for (int64_t k = 0; k < n_px; k++, sum += w->s.value_room) {
        for (int64_t c = 0; b.p && c < w->s.inner; c += TGI_L)
            vf_store(b.p + (size_t)(c / TGI_L) * b.pitch + k * TGI_L,
                     vf_load(sum + c) * vf_set1(share[k]));
        for (int64_t c = 0; !b.p && c < w->s.inner; c++)
            *tgi_view_at(v, c0 + c, 0, y, x + k) = sum[c] * share[k];
    }
}

/* A run of queries with numbers below `end`: how many of query i's row. */
typedef struct spot {
    int64_t frame, y, x, n;
} spot;

static spot spot_at(const window *w, int64_t i, int64_t end)
{
    const int64_t row = i / w->w, x = i % w->w;
    return (spot){row / w->h, w->y + row % w->h, w->x + x, tgi_min64(w->w - x, end - i)};
}

static in_blocks blocks_of_query(const work *w, const window *at, const spot *p)
{
    const int64_t c0 = p->frame * w->s.channels + at->head * w->s.inner;
    return blocks_of_source(&w->call->src[0], c0, w->s.inner, p->y, p->x);
}

/* Where queries [i0, i1) of a window lie, a tile at most; 0: not all in blocks, or not alike. Lanes
 * behind the last one get the first one's. */
static int find_queries(const work *w, const window *at, int64_t i0, int64_t i1,
                        const float **from, size_t *pitch)
{
    spot p = spot_at(at, i0, i1);
    const in_blocks first = blocks_of_query(w, at, &p);
    *pitch = first.pitch;
    if (!first.p)
        return 0;
    for (int i = 0; i < TILE; i++)
        from[i] = first.p;
    for (int64_t i = i0; i < i1; i += p.n) {
        p = spot_at(at, i, i1);
        const in_blocks b = blocks_of_query(w, at, &p);
        if (!b.p || b.pitch != first.pitch)
            return 0;
        for (int64_t k = 0; k < p.n; k++)
            from[i - i0 + k] = b.p + k * TGI_L;
    }
    return 1;
}

/* Queries [i0, i1) in lanes, scaled. */
static void turn_queries(const work *w, const window *at, int64_t i0, int64_t i1, float *dst)
{
    const float *from[TILE];
    size_t pitch;
    if (find_queries(w, at, i0, i1, from, &pitch)) {
        for (int64_t i = 0; i < TILE; i += TGI_L)
            turn_pixels(from + i, pitch, w->s.inner, w->a->scale, dst + i, TILE);
        return;
    }
    memset(dst, 0, (size_t)(w->s.inner * TILE) * sizeof *dst);
    for (int64_t i = i0; i < i1;) {
        const spot p = spot_at(at, i, i1);
        const int64_t c0 = p.frame * w->s.channels + at->head * w->s.inner;
        for (int64_t c = 0; c < w->s.inner; c++) {
            const tgi_lane l = TGS(tgi_lane_of)(&w->call->src[0], c0 + c, 0, p.y);
            for (int64_t k = 0; k < p.n; k++)
                dst[c * TILE + i - i0 + k] = l.p[(p.x + k) * l.step] * w->a->scale;
        }
        i += p.n;
    }
}

/* ---- A tile ------------------------------------------------------------------------------ */

/* What n weighted keys add to `many` queries, VALUE_Q at most, in VALUE_V vectors of channels. */
TGI_INLINE void value_few(int many, const float *weight, const float *value, int64_t room,
                          int64_t n, int first, float *sum)
{
    vf acc[VALUE_Q * VALUE_V];
    TGI_UNROLL
    for (int i = 0; i < many * VALUE_V; i++)
        acc[i] = vf_zero();
    for (int64_t j = 0; j < n; j++) {
        vf x[VALUE_V];
        TGI_UNROLL
        for (int v = 0; v < VALUE_V; v++)
            x[v] = vf_load(value + j * room + v * TGI_L);
        TGI_UNROLL
        for (int q = 0; q < many; q++) {
            const vf k = vf_set1(weight[j * TILE + q]);
            TGI_UNROLL
            for (int v = 0; v < VALUE_V; v++)
                acc[q * VALUE_V + v] = vf_fma(k, x[v], acc[q * VALUE_V + v]);
        }
    }
    TGI_UNROLL
    for (int q = 0; q < many; q++)
        TGI_UNROLL
    for (int v = 0; v < VALUE_V; v++) {
        float *s = sum + q * room + v * TGI_L;
        vf_store(s, first ? acc[q * VALUE_V + v] : vf_load(s) + acc[q * VALUE_V + v]);
    }
}

/* The last queries of a tile: a window of 5x9 has 45. */
static void value_rest(int64_t many, const float *weight, const float *value, int64_t room,
                       int64_t n, int first, float *sum)
{
    switch (many) {
    case 1:
        value_few(1, weight, value, room, n, first, sum);
        break;
    case 2:
        value_few(2, weight, value, room, n, first, sum);
        break;
    case 3:
        value_few(3, weight, value, room, n, first, sum);
        break;
    case 4:
        value_few(4, weight, value, room, n, first, sum);
        break;
    default:
        value_few(5, weight, value, room, n, first, sum);
        break;
    }
}

#define UP_TO_STEP(n) ((n) < STEP ? (n) : STEP)

/* The last keys of a block. */
static void like_rest(int64_t many, const float *query, const float *key, int64_t room,
                      int64_t inner, float *out)
{
    switch (many) {
    case 1:
        like_few(1, query, key, room, inner, out);
        break;
    case 2:
        like_few(2, query, key, room, inner, out);
        break;
    case 3:
        like_few(3, query, key, room, inner, out);
        break;
    case 4:
        like_few(4, query, key, room, inner, out);
        break;
    case 5:
        like_few(UP_TO_STEP(5), query, key, room, inner, out);
        break;
    case 6:
        like_few(UP_TO_STEP(6), query, key, room, inner, out);
        break;
    default:
        like_few(UP_TO_STEP(7), query, key, room, inner, out);
        break;
    }
}

/* Likenesses to n keys; the largest of each query. */
static void like_chunk(const sizes *s, const buffers *b, const tile *t, int64_t n,
                       vf top[TILE_V])
{
    int64_t j = 0;
    for (; j + STEP <= n; j += STEP)
        like_few(STEP, t->query, b->key + j * s->key_room, s->key_room, s->inner,
                 b->like + j * TILE);
    if (j < n)
        like_rest(n - j, t->query, b->key + j * s->key_room, s->key_room, s->inner,
                  b->like + j * TILE);
    for (int v = 0; v < TILE_V; v++)
        top[v] = vf_load(b->like + v * TGI_L);
    for (j = 1; j < n; j++)
        for (int v = 0; v < TILE_V; v++)
            top[v] = vf_max(vf_load(b->like + j * TILE + v * TGI_L), top[v]);
}

/* 2^k for whole k <= 0; below the normal numbers, 0. */
static float power_of_two(double k)
{
    return k < -126 ? 0 : (float)ldexp(1, (int)k);
}

/* What query q has summed, over 2^`more` more. */
static void shift_sums(const sizes *s, const tile *t, int64_t q, double more)
{
    const float by = power_of_two(-more);
    t->weight[q] *= by;
    for (int64_t c = 0; c < s->value_room; c += TGI_L) {
        float *sum = t->sum + q * s->value_room + c;
        vf_store(sum, vf_load(sum) * vf_set1(by));
    }
}

/* The powers of two for what is known now; what was summed before follows them. Infinite likenesses
 * leave them finite. */
static void shift_to(const sizes *s, const tile *t, const vf top[TILE_V], int first,
                     int64_t used)
{
    float is[TILE];
    double next[TILE];
    for (int v = 0; v < TILE_V; v++)
        vf_store(is + v * TGI_L, vf_max(vf_set1(-FLT_MAX), top[v]));
    for (int q = 0; q < TILE; q++)
        next[q] = rint((double)(is[q] < FLT_MAX ? is[q] : FLT_MAX) * M_LOG2E);
    for (int q = 0; q < TILE && !first; q++) {
        if (next[q] > t->shift[q] && q < used)
            shift_sums(s, t, q, next[q] - t->shift[q]);
        next[q] = next[q] > t->shift[q] ? next[q] : t->shift[q];
    }
    for (int q = 0; q < TILE; q++) {
        t->shift[q] = next[q];
        t->ln[0][q] = (float)(next[q] * M_LN2);
        t->ln[1][q] = (float)(next[q] * M_LN2 - (double)t->ln[0][q]);
        t->weight[q] = first ? 0 : t->weight[q];
    }
}

/* Likenesses of a block's keys become weights. */
static void weigh(const tile *t, float *like, int64_t n)
{
    vf ln[TILE_V][2], sum[TILE_V];
    for (int v = 0; v < TILE_V; v++) {
        for (int k = 0; k < 2; k++)
            ln[v][k] = vf_load(t->ln[k] + v * TGI_L);
        sum[v] = vf_zero();
    }
    for (int64_t j = 0; j < n; j++)
        for (int v = 0; v < TILE_V; v++) {
            float *at = like + j * TILE + v * TGI_L;
            const vf weight = exp_below(vf_load(at) - ln[v][0] - ln[v][1]);
            vf_store(at, weight);
            sum[v] += weight;
        }
    for (int v = 0; v < TILE_V; v++)
        vf_store(t->weight + v * TGI_L, vf_load(t->weight + v * TGI_L) + sum[v]);
}

/* Block j of the chunk; `used` of the lanes are queries. */
static void add_block(const sizes *s, const buffers *b, const tile *t, int64_t j, int64_t n,
                      int first, int64_t used)
{
    float *like = b->like + j * TILE;
    const float *value = b->value + j * s->value_room;
    weigh(t, like, n);
    for (int64_t c = 0; c < s->value_room; c += VALUE_V * TGI_L) {
        int64_t q = 0;
        for (; q + VALUE_Q <= used; q += VALUE_Q)
            value_few(VALUE_Q, like + q, value + c, s->value_room, n, first,
                      t->sum + q * s->value_room + c);
        if (q < used)
            value_rest(used - q, like + q, value + c, s->value_room, n, first,
                       t->sum + q * s->value_room + c);
    }
}

/* A tile meets the n keys of a chunk. */
static void meet(const sizes *s, const buffers *b, const tile *t, int64_t n, int first,
                 int64_t used)
{
    vf top[TILE_V];
    like_chunk(s, b, t, n, top);
    shift_to(s, t, top, first, used);
    for (int64_t j = 0; j < n; j += BLOCK)
        add_block(s, b, t, j, tgi_min64(BLOCK, n - j), first && j == 0, used);
}

static void put_tile(const work *w, const window *at, const tile *t, int64_t i0, int64_t i1)
{
    for (int v = 0; v < TILE_V; v++)
        vf_store(t->weight + v * TGI_L, vf_set1(1.0f) / vf_load(t->weight + v * TGI_L));
    for (int64_t i = i0; i < i1;) {
        const spot p = spot_at(at, i, i1);
        put_run(w, p.frame * w->s.channels + at->head * w->s.inner, p.y, p.x, p.n,
                t->sum + (i - i0) * w->s.value_room, t->weight + i - i0);
        i += p.n;
    }
}

/* Queries [i0, i1) of a window look at the keys. */
static void attend(const work *w, const window *at, const buffers *b, int64_t i0, int64_t i1,
                   keys k)
{
    const sizes *s = &w->s;
    int64_t n;
    for (int64_t i = i0; i < i1; i += TILE)
        turn_queries(w, at, i, tgi_min64(i + TILE, i1),
                     tile_at(s, b->tiles + (i - i0) / TILE * tile_floats(s)).query);
    for (int first = 1; (n = copy_chunk(w, &k, at->head, b)) > 0; first = 0) {
        expect_chunk(w, k, at->head);
        for (int64_t i = i0; i < i1; i += TILE) {
            const tile t = tile_at(s, b->tiles + (i - i0) / TILE * tile_floats(s));
            meet(s, b, &t, n, first, tgi_min64(TILE, i1 - i));
        }
    }
    for (int64_t i = i0; i < i1; i += TILE) {
        const tile t = tile_at(s, b->tiles + (i - i0) / TILE * tile_floats(s));
        put_tile(w, at, &t, i, tgi_min64(i + TILE, i1));
    }
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static void masked_window(const work *w, const window *at, const tgi_window_tokens *t,
                          const buffers *b)
{
    attend(w, at, b, 0, tgi_window_asked(w->a) * at->h * at->w,
           (keys){.t = t,
                  .frame = w->a->first,
                  .end = w->a->frames,
                  .step = 2,
                  .n = t->n,
                  .pooled = w->s.pooled});
}

/* A frame's queries, of its own tokens. The next frame's are on their way meanwhile. */
static void open_window(const work *w, const window *at, const tgi_window_tokens *t,
                        const buffers *b)
{
    const int64_t queries = at->h * at->w, frames = tgi_window_asked(w->a);
    for (int64_t f = 0; f < frames; f++) {
        const keys k = {.t = t, .frame = f, .end = f + 1, .step = 1, .n = t->own},
                   next = {.t = t, .frame = f + 1, .end = frames, .step = frames, .n = t->own};
        expect_chunk(w, next, at->head);
        for (int64_t y = 0; y < at->h && f + 1 < frames; y++)
            expect_run(w, 0,
                       &(run_of){.frame = f + 1, .y = at->y + y, .x = at->x, .many = at->w},
                       at->head);
        attend(w, at, b, f * queries, (f + 1) * queries, k);
    }
}

static void window_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const int64_t line = job / w->columns;
    window at = {.wy = w->wy + line / w->a->heads,
                 .wx = w->wx + job % w->columns,
                 .head = line % w->a->heads};
    const buffers b =
        buffers_at(&w->s, (float *)w->call->scratch + thread * thread_floats(&w->s));
    const int64_t y0 = at.wy * w->a->window_h, x0 = at.wx * w->a->window_w;
    tgi_window_tokens t;
    at.y = tgi_max64(y0, w->y.lo);
    at.x = tgi_max64(x0, w->x.lo);
    at.h = tgi_min64(y0 + w->a->window_h, w->y.hi) - at.y;
    at.w = tgi_min64(x0 + w->a->window_w, w->x.hi) - at.x;
    tgi_window_list(w->a, &w->call->ctx->src[0], at.wy, at.wx, &t);
    if (tgi_operand_get(&w->call->src[5], 0, 0, at.wy, at.wx) != 0)
        masked_window(w, &at, &t, &b);
    else
        open_window(w, &at, &t, &b);
}

/* Every head of a row is there now. */
static void row_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const tgi_row_part part = {.b1 = tgi_view_blocks(&w->call->dst[0]),
                               .y = w->y.lo + job,
                               .x0 = w->x.lo,
                               .x1 = w->x.hi};
    (void)thread;
    TGS(tgi_epilogue_part)(w->call, 0, &part);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    for (int i = 0; i < 6; i++)
        if (ctx->const_src[i] || lay->src_segs[i] < 1)
            return 0;
    return lay->lanes == TGI_L && tgi_is_const_f32(ctx, 6) && tgi_is_const_f32(ctx, 7);
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    const sizes s = sizes_of(ctx);
    (void)lay, (void)width;
    return (size_t)(threads * thread_floats(&s)) * sizeof(float);
}

static void run(const tgi_call *call)
{
    work w = {.call = call,
              .a = call->ctx->attrs,
              .s = sizes_of(call->ctx),
              .y = tgi_box_axis(&call->box, TGI_Y),
              .x = tgi_box_axis(&call->box, TGI_X)};
    if (tgi_box_empty(&call->box))
        return;
    w.wy = w.y.lo / w.a->window_h;
    w.wx = w.x.lo / w.a->window_w;
    w.columns = (w.x.hi - 1) / w.a->window_w + 1 - w.wx;
    const int64_t rows = (w.y.hi - 1) / w.a->window_h + 1 - w.wy;
    tgi_parallel(call->threads, rows * w.columns * w.a->heads, window_job, &w);
    tgi_parallel(call->threads, tgi_range_len(w.y), row_job, &w);
}

const tgi_variant TGS(tgi_window_attention) = {.name = "window_attention",
                                               .op = "WindowAttention",
                                               .work = TGI_WORK_ATTENTION,
                                               .accepts = accepts,
                                               .scratch_bytes = scratch_bytes,
                                               .run = TGI_RUN(run)};
