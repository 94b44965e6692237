/* cpu_correlation.c - CorrelationLookup without a volume: products of pixels with the places that
 * they look at, as a product of matrices.
 *
 * Pixels that lie together look at nearly the same places, so a tile of TGI_L pixels in lanes meets
 * all places of the rectangle that holds theirs: places are broadcast from where they lie, pixels
 * are copied once for all levels. Where flows differ so much that the rectangle has more places than
 * it saves, the tile falls into groups of its pixels, each with a rectangle of its own. What a pixel
 * looks at is then cut out of the products, and blended.
 *
 * Order of sums: channel by channel, in one accumulator; a lane looks at no other, so a pixel has
 * the same bits in any tile, group, box or thread. */
#include "kernels/cpu/cpu_blocks.h"
#include "kernels/ops/lookup_place.h"
#include "kernels/ops/op_attrs.h"

#define STEP_MAX (TG_SIMD_ISA == 2 ? 16 : 12) /* places whose sums are in registers together */
#define ROWS_MAX 4                            /* of a tile */
#define PLACES 768                 /* of a rectangle; a pixel alone has 18 * 18 at most */
#define SIDE (TGI_LOOKUP_SIDE + 1) /* places of a pixel along an axis, at most */
/* Of such a column, where vectors begin at any of them. */
#define COLUMN ((SIDE + TGI_L - 1) / TGI_L * TGI_L + TGI_L)

typedef struct work {
    const tgi_call *call;
    int64_t side;        /* numbers of a level along an axis */
    int64_t rows, tiles; /* of a tile; tiles side by side, of `rows` rows */
    int64_t channels;
    int levels;
    float scale;
    tgi_range y, x; /* of the box */
} work;

/* Of a thread. */
typedef struct buffers {
    float *pixels;   /* [channel][lane] */
    float *products; /* [place][lane] */
    float *places;   /* [block][place][TGI_L], of those that do not lie in blocks */
    float *out;      /* [lane][channel of the result] */
} buffers;

static int64_t blocks_floats(int64_t c)
{
    return tgi_ceil_div64(c, TGI_L) * TGI_L;
}

/* A pixel's results, and what a vector writes behind them. */
static int64_t out_floats(const tgi_op_ctx *ctx)
{
    return blocks_floats(ctx->dst[0].dim[1]) + COLUMN;
}

static int64_t thread_floats(const tgi_op_ctx *ctx)
{
    const int64_t c = blocks_floats(ctx->src[0].dim[1]);
    return (c + PLACES + out_floats(ctx)) * TGI_L + STEP_MAX * c;
}

static buffers buffers_at(const tgi_op_ctx *ctx, float *p)
{
    const int64_t c = blocks_floats(ctx->src[0].dim[1]);
    buffers b = {.pixels = p};
    b.products = b.pixels + c * TGI_L;
    b.places = b.products + PLACES * TGI_L;
    b.out = b.places + STEP_MAX * c;
    return b;
}

/* A rectangle of places of a level. */
typedef struct rect {
    tgi_range y, x;
} rect;

static int64_t area(const rect *r)
{
    return tgi_range_len(r->y) * tgi_range_len(r->x);
}

static rect hull(const rect *a, const rect *b)
{
    return (rect){tgi_range_hull(a->y, b->y), tgi_range_hull(a->x, b->x)};
}

/* What a pixel looks at on a level. */
typedef struct look {
    tgi_place y, x;
    rect r; /* of it, what is there */
} look;

/* Pixels in lanes: rows of `w`, one behind the other. */
typedef struct tile {
    int64_t y, x, h, w;
    int n;
    float flow[2][TGI_L]; /* to the right, down */
} tile;

/* ---- Products ---------------------------------------------------------------------------- */

/* The products of `step` places, one behind the other, with a tile. Blocks of places are `pitch`
 * apart. */
TGI_INLINE void multiply_step(const work *w, const float *pixels, const float *place,
                              size_t pitch, int step, float *out)
{
    vf acc[STEP_MAX];
    TGI_UNROLL
    for (int i = 0; i < step; i++)
        acc[i] = vf_zero();
    for (int64_t c = w->channels; c > 0; c -= TGI_L, place += pitch) {
        const int many = (int)tgi_min64(c, TGI_L);
        for (int k = 0; k < many; k++, pixels += TGI_L) {
            const vf a = vf_load(pixels);
            TGI_UNROLL
            for (int i = 0; i < step; i++)
                acc[i] = vf_fma(vf_set1(place[i * TGI_L + k]), a, acc[i]);
        }
    }
    TGI_UNROLL
    for (int i = 0; i < step; i++)
        vf_store(out + i * TGI_L, acc[i] * vf_set1(w->scale));
}

static void multiply(const work *w, const float *pixels, const float *place, size_t pitch,
                     int64_t n, float *out)
{
#define STEP(k)                                                                                \
    case k:                                                                                    \
        multiply_step(w, pixels, place, pitch, k, out);                                        \
        break;
    switch (n) {
        STEP(1)
        STEP(2)
        STEP(3)
        STEP(4)
        STEP(5)
        STEP(6)
        STEP(7)
        STEP(8)
        STEP(9)
        STEP(10)
        STEP(11)
        STEP(12)
#if TG_SIMD_ISA == 2
        STEP(13)
        STEP(14)
        STEP(15)
        STEP(16)
#endif
    }
#undef STEP
}

/* All places of a rectangle, row by row. */
static void multiply_rect(const work *w, const buffers *b, int level, const rect *r)
{
    const tgi_operand *o = &w->call->src[2 + level];
    const int64_t width = tgi_range_len(r->x), steps = tgi_ceil_div64(width, STEP_MAX);
    float *out = b->products;
    for (int64_t y = r->y.lo; y < r->y.hi; y++)
        for (int64_t s = 0; s < steps; s++) {
            const int64_t from = s * width / steps, n = (s + 1) * width / steps - from;
            in_blocks p = blocks_of_source(o, 0, w->channels, y, r->x.lo + from);
            if (!p.p) {
                p = (in_blocks){b->places, STEP_MAX * TGI_L};
                copy_run(o, 0, w->channels, y, r->x.lo + from, n, p.p, TGI_L, (int64_t)p.pitch);
            }
            multiply(w, b->pixels, p.p, p.pitch, n, out);
            out += n * TGI_L;
        }
}

/* ---- A pixel ----------------------------------------------------------------------------- */

static look look_at(const work *w, const tile *t, int lane, int level)
{
    const tgi_desc *d = &w->call->ctx->src[2 + level];
    const int64_t r = w->side / 2;
    look k = {.y = tgi_lookup_place(t->y + lane / t->w, t->flow[1][lane], level, d->dim[2]),
              .x = tgi_lookup_place(t->x + lane % t->w, t->flow[0][lane], level, d->dim[3])};
    if (k.y.far || k.x.far)
        return k;
    k.r.y = tgi_range_clip((tgi_range){k.y.whole - r, k.y.whole + r + 2}, 0, d->dim[2]);
    k.r.x = tgi_range_clip((tgi_range){k.x.whole - r, k.x.whole + r + 2}, 0, d->dim[3]);
    if (area(&k.r) == 0)
        k.r = (rect){{0, 0}, {0, 0}};
    return k;
}

/* A lane's products out of those of a rectangle, by columns; 0 outside. */
static void cut(const work *w, const look *k, const rect *all, const float *products,
                float (*column)[COLUMN])
{
    const int64_t r = w->side / 2, width = tgi_range_len(all->x);
    const float *p =
        products + ((k->r.y.lo - all->y.lo) * width + k->r.x.lo - all->x.lo) * TGI_L;
    float *to = &column[k->r.x.lo - (k->x.whole - r)][k->r.y.lo - (k->y.whole - r)];
    const int64_t h = tgi_range_len(k->r.y), n = tgi_range_len(k->r.x);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < h; j++)
            to[i * COLUMN + j] = p[(j * width + i) * TGI_L];
}

TGI_INLINE vf blend(vf a, vf b, vf part)
{
    return vf_fma(part, b, (vf_set1(1.0f) - part) * a);
}

/* Between columns, then down each of them. */
static void blend_level(const work *w, const look *k, float (*column)[COLUMN], float *out)
{
    const vf fx = vf_set1(k->x.part), fy = vf_set1(k->y.part);
    float at[COLUMN];
    for (int64_t i = 0; i < w->side; i++, out += w->side) {
        for (int64_t j = 0; j <= w->side; j += TGI_L)
            vf_store(at + j, blend(vf_load(column[i] + j), vf_load(column[i + 1] + j), fx));
        for (int64_t j = 0; j < w->side; j += TGI_L)
            vf_store(out + j, blend(vf_load(at + j), vf_load(at + j + 1), fy));
    }
}

static void finish_lane(const work *w, const look *k, const rect *all, const float *products,
                        float *out)
{
    float column[SIDE][COLUMN];
    memset(column, 0, sizeof column);
    if (area(&k->r))
        cut(w, k, all, products, column);
    blend_level(w, k, column, out);
}

/* ---- Tiles ------------------------------------------------------------------------------- */

/* The next group of lanes, as bits, out of those that are left, and its rectangle: lanes that are
 * dearer by themselves. */
static uint32_t next_group(const look *k, int n, uint32_t left, rect *all)
{
    uint32_t group = 0;
    *all = (rect){{0, 0}, {0, 0}};
    for (int i = 0; i < n; i++) {
        const rect both = hull(all, &k[i].r);
        if (left >> i & 1 && area(&both) <= area(all) + area(&k[i].r) &&
            area(&both) <= PLACES) {
            group |= 1u << i;
            *all = both;
        }
    }
    return group;
}

static void do_level(const work *w, const buffers *b, const tile *t, int level)
{
    const int64_t first = level * w->side * w->side, room = out_floats(w->call->ctx);
    look k[TGI_L];
    uint32_t left = (1u << t->n) - 1;
    for (int i = 0; i < t->n; i++)
        k[i] = look_at(w, t, i, level);
    while (left) {
        rect all;
        const uint32_t group = next_group(k, t->n, left, &all);
        multiply_rect(w, b, level, &all);
        for (int i = 0; i < t->n; i++)
            if (group >> i & 1)
                finish_lane(w, &k[i], &all, b->products + i, b->out + i * room + first);
        left &= ~group;
    }
}

/* The pixels of a row of the tile, in lanes from `at` on. */
static void copy_pixels(const work *w, const tile *t, int64_t y, float *dst)
{
    const tgi_operand *o = &w->call->src[0];
    for (int64_t c = 0; c < w->channels; c++) {
        const tgi_lane l = TGS(tgi_lane_of)(o, c, 0, y);
        for (int64_t k = 0; k < t->w; k++)
            dst[c * TGI_L + k] = l.p[(t->x + k) * l.step];
    }
}

static void open_tile(const work *w, const buffers *b, tile *t)
{
    const float *from[TGI_L];
    in_blocks p = {NULL, 0};
    t->n = (int)(t->h * t->w);
    memset(b->pixels, 0, (size_t)(w->channels * TGI_L) * sizeof *b->pixels);
    for (int i = 0; i < TGI_L; i++) {
        const int at = i < t->n ? i : 0;
        p = blocks_of_source(&w->call->src[0], 0, w->channels, t->y + at / t->w,
                             t->x + at % t->w);
        from[i] = p.p;
        for (int k = 0; k < 2; k++)
            t->flow[k][i] =
                tgi_operand_get(&w->call->src[1], k, 0, t->y + at / t->w, t->x + at % t->w);
    }
    if (p.p)
        turn_pixels(from, p.pitch, w->channels, 1, b->pixels, TGI_L);
    for (int64_t i = 0; i < t->h && !p.p; i++)
        copy_pixels(w, t, t->y + i, b->pixels + i * t->w);
}

static void close_tile(const work *w, const buffers *b, const tile *t)
{
    const tgi_view *v = &w->call->dst[0];
    const int64_t room = out_floats(w->call->ctx);
    for (int i = 0; i < t->n; i++) {
        const int64_t y = t->y + i / t->w, x = t->x + i % t->w;
        const in_blocks p = blocks_of(v, 0, v->c, y, x);
        const float *from = b->out + i * room;
        for (int64_t c = 0; p.p && c < v->c; c += TGI_L)
            vf_store(p.p + (size_t)(c / TGI_L) * p.pitch, vf_load(from + c));
        for (int64_t c = 0; !p.p && c < v->c; c++)
            *tgi_view_at(v, c, 0, y, x) = from[c];
    }
    for (int64_t y = t->y; y < t->y + t->h; y++) {
        const tgi_row_part part = {
            .b1 = tgi_view_blocks(v), .y = y, .x0 = t->x, .x1 = t->x + t->w};
        TGS(tgi_epilogue_part)(w->call, 0, &part);
    }
}

static void tile_job(void *arg, int64_t job, int thread)
{
    const work *w = arg;
    const buffers b = buffers_at(w->call->ctx, (float *)w->call->scratch +
                                                   thread * thread_floats(w->call->ctx));
    tile t = {.y = w->y.lo + job / w->tiles * w->rows};
    t.h = tgi_min64(w->rows, w->y.hi - t.y);
    t.x = w->x.lo + job % w->tiles * (TGI_L / w->rows);
    t.w = tgi_min64(TGI_L / w->rows, w->x.hi - t.x);
    open_tile(w, &b, &t);
    for (int l = 0; l < w->levels; l++)
        do_level(w, &b, &t, l);
    close_tile(w, &b, &t);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    for (int i = 0; i < ctx->n_src; i++)
        if (ctx->const_src[i] || lay->src_segs[i] < 1)
            return 0;
    return lay->lanes == TGI_L;
}

static size_t scratch_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                            int threads)
{
    (void)lay, (void)width;
    return (size_t)(threads * thread_floats(ctx)) * sizeof(float);
}

static void run(const tgi_call *call)
{
    work w = {.call = call,
              .side = 2 * ((const lookup_attrs *)call->ctx->attrs)->radius + 1,
              .rows = 1,
              .channels = call->ctx->src[0].dim[1],
              .levels = call->ctx->n_src - 2,
              .y = tgi_box_axis(&call->box, TGI_Y),
              .x = tgi_box_axis(&call->box, TGI_X)};
    if (tgi_box_empty(&call->box))
        return;
    w.scale = (float)(1 / sqrt((double)w.channels));
    while (w.rows < ROWS_MAX && 2 * w.rows <= tgi_range_len(w.y) && w.rows * w.rows < TGI_L)
        w.rows *= 2;
    w.tiles = tgi_ceil_div64(tgi_range_len(w.x), TGI_L / w.rows);
    tgi_parallel(call->threads, tgi_ceil_div64(tgi_range_len(w.y), w.rows) * w.tiles, tile_job,
                 &w);
}

const tgi_variant TGS(tgi_correlation) = {.name = "correlation",
                                          .op = "CorrelationLookup",
                                          .work = TGI_WORK_ATTENTION,
                                          .accepts = accepts,
                                          .scratch_bytes = scratch_bytes,
                                          .run = TGI_RUN(run)};
