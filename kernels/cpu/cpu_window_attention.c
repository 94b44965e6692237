/* cpu_window_attention.c - WindowAttention, window by window.
 *
 * A job is a head of a window: the queries of all frames that lie in the box. The keys and values
 * that they look at are copied once, one behind the other, wherever they come from; what follows
 * is a product, a softmax and a product over memory without gaps. A tile of queries lies in lanes:
 * their likenesses to all keys, the largest of each, and only then weights and sums, so nothing is
 * ever rescaled. For what they add of the values, channels lie in lanes, so the result is written
 * as it is stored.
 *
 * Order of sums: likenesses channel by channel, weights and values key by key in blocks of BLOCK
 * from the first key on, then block by block. A lane looks at no other, so a query has the same bits
 * in any tile, box or thread. */
#include "kernels/cpu/cpu_attend.h"
#include "kernels/cpu/cpu_blocks.h"
#include "kernels/ops/window_tokens.h"

/* Queries and vectors of channels whose sums are in registers together. */
#define VALUE_Q 6
#define VALUE_V (TG_SIMD_ISA == 2 ? 4 : 2)
/* Tiles that meet a block of keys one after the other: keys of a window of 720p do not fit the second
 * level, and its queries are 17 tiles. */
#define TOGETHER 4

/* ---- What there is ----------------------------------------------------------------------- */

typedef struct sizes {
    int64_t channels, inner;      /* of a frame, of a head */
    int64_t key_room, value_room; /* floats of one that is copied */
    int64_t key_frames, pooled;   /* of a masked window; pooled tokens of a frame */
    int64_t most;                 /* keys of a query */
} sizes;

static int64_t round_up(int64_t n, int64_t to)
{
    return tgi_ceil_div64(n, to) * to;
}

static sizes sizes_of(const tgi_op_ctx *ctx)
{
    const window_attrs *a = ctx->attrs;
    const int64_t own = a->window_h * a->window_w;
    sizes s = {.channels = ctx->src[0].dim[1] / tgi_window_asked(a)};
    s.inner = s.channels / a->heads;
    s.key_room = round_up(s.inner, TGI_L);
    s.value_room = round_up(s.inner, VALUE_V * TGI_L);
    s.key_frames = (a->frames - a->first + 1) / 2;
    s.pooled = ctx->src[3].dim[2] * ctx->src[3].dim[3];
    s.most = round_up(s.key_frames * (own + tgi_window_around(a) + s.pooled), STEP);
    return s;
}

/* Of a tile of queries: what is known of it. */
static int64_t tile_floats(const sizes *s)
{
    return TILE * (s->most + s->key_room + s->value_room + 2);
}

/* Of a thread: keys and values, tiles. */
static int64_t thread_floats(const sizes *s)
{
    return round_up(s->most * (s->key_room + s->value_room) + TOGETHER * tile_floats(s), 16);
}

typedef struct tile {
    float *like;         /* [key][TILE] */
    float *query, *sum;  /* [channel][TILE], [query][room] */
    float *top, *weight; /* of the queries */
} tile;

typedef struct buffers {
    float *key, *value; /* [key][room] */
    tile t[TOGETHER];
} buffers;

static buffers buffers_at(const sizes *s, float *p)
{
    buffers b = {.key = p};
    b.value = b.key + s->most * s->key_room;
    p = b.value + s->most * s->value_room;
    for (int i = 0; i < TOGETHER; i++, p += tile_floats(s)) {
        tile *t = &b.t[i];
        t->like = p;
        t->query = t->like + s->most * TILE;
        t->sum = t->query + s->key_room * TILE;
        t->top = t->sum + TILE * s->value_room;
        t->weight = t->top + TILE;
    }
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

/* ---- Copies ------------------------------------------------------------------------------ */

/* Tokens [0, n) of a list, in a frame: keys (source 1) or values (source 2) of a head. */
static void copy_list(const work *w, int src, int64_t frame, int64_t head,
                      const tgi_window_tokens *t, int64_t n, float *dst, int64_t room)
{
    const tgi_desc *d = &w->call->ctx->src[src];
    const void *fill = w->call->ctx->const_src[src + 5]->data;
    const int64_t c0 = head * w->s.inner;
    for (int64_t i = 0, many; i < n; i += many, dst += many * room) {
        const int64_t y = t->at[i].y, x = t->at[i].x;
        const int there = y < d->dim[2] && x < d->dim[3];
        many = 1;
        while (there && i + many < n && t->at[i + many].y == y &&
               t->at[i + many].x == x + many && x + many < d->dim[3])
            many++;
        if (there)
            copy_run(&w->call->src[src], frame * w->s.channels + c0, w->s.inner, y, x, many,
                     dst, room, TGI_L);
        for (int64_t c = 0; !there && c < w->s.inner; c++)
            dst[c] = tgi_const_at(fill, c0 + c);
    }
}

/* All that a masked window looks at in a frame; returns where the next frame's begins. */
static float *copy_frame(const work *w, int src, int64_t frame, int64_t head,
                         const tgi_window_tokens *t, float *dst, int64_t room)
{
    const tgi_desc *d = &w->call->ctx->src[src + 2];
    copy_list(w, src, frame, head, t, t->n, dst, room);
    dst += t->n * room;
    for (int64_t y = 0; y < d->dim[2]; y++, dst += d->dim[3] * room)
        copy_run(&w->call->src[src + 2], frame * w->s.channels + head * w->s.inner, w->s.inner,
                 y, 0, d->dim[3], dst, room, TGI_L);
    return dst;
}

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

/* What n weighted keys add to VALUE_Q queries in VALUE_V vectors of channels. */
TGI_INLINE void value_step(const float *weight, const float *value, int64_t room, int64_t n,
                           int first, float *sum)
{
    vf acc[VALUE_Q * VALUE_V];
    TGI_UNROLL
    for (int i = 0; i < VALUE_Q * VALUE_V; i++)
        acc[i] = vf_zero();
    for (int64_t j = 0; j < n; j++) {
        vf x[VALUE_V];
        TGI_UNROLL
        for (int v = 0; v < VALUE_V; v++)
            x[v] = vf_load(value + j * room + v * TGI_L);
        TGI_UNROLL
        for (int q = 0; q < VALUE_Q; q++) {
            const vf k = vf_set1(weight[j * TILE + q]);
            TGI_UNROLL
            for (int v = 0; v < VALUE_V; v++)
                acc[q * VALUE_V + v] = vf_fma(k, x[v], acc[q * VALUE_V + v]);
        }
    }
    TGI_UNROLL
    for (int q = 0; q < VALUE_Q; q++)
        TGI_UNROLL
    for (int v = 0; v < VALUE_V; v++) {
        float *s = sum + q * room + v * TGI_L;
        vf_store(s, first ? acc[q * VALUE_V + v] : vf_load(s) + acc[q * VALUE_V + v]);
    }
}

/* The largest likenesses, with those of keys [from, to). */
static void find_top(const tile *t, int64_t from, int64_t to)
{
    vf top[TILE_V];
    for (int v = 0; v < TILE_V; v++)
        top[v] = vf_load(from ? t->top + v * TGI_L : t->like + v * TGI_L);
    for (int64_t j = from; j < to; j++)
        for (int v = 0; v < TILE_V; v++)
            top[v] = vf_max(vf_load(t->like + j * TILE + v * TGI_L), top[v]);
    for (int v = 0; v < TILE_V; v++)
        vf_store(t->top + v * TGI_L, top[v]);
}

/* Likenesses of a block's keys become weights. */
static void weigh(const tile *t, float *like, int64_t n, int first)
{
    vf top[TILE_V], sum[TILE_V];
    for (int v = 0; v < TILE_V; v++) {
        top[v] = vf_load(t->top + v * TGI_L);
        sum[v] = vf_zero();
    }
    for (int64_t j = 0; j < n; j++)
        for (int v = 0; v < TILE_V; v++) {
            const vf w = exp_below(vf_load(like + j * TILE + v * TGI_L) - top[v]);
            vf_store(like + j * TILE + v * TGI_L, w);
            sum[v] += w;
        }
    for (int v = 0; v < TILE_V; v++) {
        float *s = t->weight + v * TGI_L;
        vf_store(s, first ? sum[v] : vf_load(s) + sum[v]);
    }
}

static void like_block(const sizes *s, const buffers *b, const tile *t, int64_t from,
                       int64_t to)
{
    for (int64_t j = from; j < to; j += STEP)
        like_step(t->query, b->key + j * s->key_room, s->key_room, s->inner,
                  t->like + j * TILE);
    find_top(t, from, to);
}

/* `used` of the lanes are queries. */
static void add_block(const sizes *s, const buffers *b, const tile *t, int64_t from, int64_t to,
                      int64_t used)
{
    float *like = t->like + from * TILE;
    const float *value = b->value + from * s->value_room;
    weigh(t, like, to - from, from == 0);
    for (int64_t c = 0; c < s->value_room; c += VALUE_V * TGI_L)
        for (int64_t q = 0; q < used; q += VALUE_Q)
            value_step(like + q, value + c, s->value_room, to - from, from == 0,
                       t->sum + q * s->value_room + c);
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

/* Queries [i0, i1) of a window, TOGETHER tiles at most, which look at n keys. A block of keys or
 * values is taken out of the second level by the first of the tiles. */
static void do_tiles(const work *w, const window *at, const buffers *b, int64_t i0, int64_t i1,
                     int64_t n)
{
    const int64_t tiles = tgi_ceil_div64(i1 - i0, TILE);
    for (int64_t k = 0; k < tiles; k++)
        turn_queries(w, at, i0 + k * TILE, tgi_min64(i0 + (k + 1) * TILE, i1), b->t[k].query);
    for (int64_t j = 0; j < n; j += BLOCK)
        for (int64_t k = 0; k < tiles; k++)
            like_block(&w->s, b, &b->t[k], j, tgi_min64(j + BLOCK, n));
    for (int64_t j = 0; j < n; j += BLOCK)
        for (int64_t k = 0; k < tiles; k++)
            add_block(&w->s, b, &b->t[k], j, tgi_min64(j + BLOCK, n),
                      tgi_min64(TILE, i1 - i0 - k * TILE));
    for (int64_t k = 0; k < tiles; k++)
        put_tile(w, at, &b->t[k], i0 + k * TILE, tgi_min64(i0 + (k + 1) * TILE, i1));
}

/* ---- Jobs -------------------------------------------------------------------------------- */

static void masked_window(const work *w, const window *at, const tgi_window_tokens *t,
                          const buffers *b)
{
    const int64_t queries = tgi_window_asked(w->a) * at->h * at->w;
    float *key = b->key, *value = b->value;
    for (int64_t f = w->a->first; f < w->a->frames; f += 2) {
        key = copy_frame(w, 1, f, at->head, t, key, w->s.key_room);
        value = copy_frame(w, 2, f, at->head, t, value, w->s.value_room);
    }
    for (int64_t i = 0; i < queries; i += TOGETHER * TILE)
        do_tiles(w, at, b, i, tgi_min64(i + TOGETHER * TILE, queries),
                 (key - b->key) / w->s.key_room);
}

static void open_window(const work *w, const window *at, const tgi_window_tokens *t,
                        const buffers *b)
{
    const int64_t queries = at->h * at->w;
    for (int64_t f = 0; f < tgi_window_asked(w->a); f++) {
        copy_list(w, 1, f, at->head, t, t->own, b->key, w->s.key_room);
        copy_list(w, 2, f, at->head, t, t->own, b->value, w->s.value_room);
        for (int64_t i = f * queries; i < (f + 1) * queries; i += TOGETHER * TILE)
            do_tiles(w, at, b, i, tgi_min64(i + TOGETHER * TILE, (f + 1) * queries), t->own);
    }
}

static void window_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const int64_t window_at = job / w->a->heads;
    window at = {.wy = w->wy + window_at / w->columns,
                 .wx = w->wx + window_at % w->columns,
                 .head = job % w->a->heads};
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
