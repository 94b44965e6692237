/* cu_flat_move.cu - whole arrays that are moved: relabelled, transposed, cut, joined, repeated,
 * padded, picked from.
 *
 * Such a result is base + the sum over its axes of a step for each coordinate, and a step is a
 * multiple of the coordinate or stands in a table (what Pad's margins and Gather's indices
 * make of it; a place of -1 there reads the constant that fills). A node is a *move* for each
 * piece: what is written has strides of its own, so Concat and Split are moves too. Elements
 * are bits here, 2, 4 or 16 bytes at once, the largest that shapes and strides allow.
 *
 * Images become arrays and arrays images by kernels of their own: a thread has a vector of
 * channels of a pixel, so both sides are read and written in runs. */
#include "kernels/cuda/cu_flat.cuh"
#include "kernels/cuda/cu_ops.cuh"

/* ---- Images ------------------------------------------------------------------------------ */

struct cu_take_args {
    cu_view view;
    char *dense;
    int64_t n;             /* threads' work: vectors of pixels, x fastest, then y, z, vectors */
    int32_t lo[3], len[3]; /* z, y, x */
    int32_t dim[3], unused;
};

template <class T, int V, bool TAKE> CU_KERNEL(cu_flat_image, cu_take_args, CU_FLAT_THREADS, 4)
{
    const int64_t plane = (int64_t)a->dim[0] * a->dim[1] * a->dim[2];
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step()) {
        int64_t rest = i;
        cu_place p;
        p.x = a->lo[2] + (int32_t)(rest % a->len[2]);
        rest /= a->len[2];
        p.y = a->lo[1] + (int32_t)(rest % a->len[1]);
        rest /= a->len[1];
        p.z = a->lo[0] + (int32_t)(rest % a->len[0]);
        p.c = (int32_t)(rest / a->len[0]) * V;
        T *at = reinterpret_cast<T *>(a->dense) + p.c * plane +
                ((int64_t)p.z * a->dim[1] + p.y) * a->dim[2] + p.x;
        float v[V];
        if (TAKE)
            cu_load<T, V>(cu_pixel<T>(a->view, p.z, p.y, p.x) + p.c, v);
#pragma unroll
        for (int k = 0; k < V; k++)
            if (TAKE && p.c + k < a->view.c)
                at[k * plane] = cu_element<T>(v[k]);
            else if (!TAKE)
                v[k] = p.c + k < a->view.c ? cu_float(at[k * plane]) : 0.0f;
        if (!TAKE)
            cu_store<T, V>(a->view, p, v);
    }
}

template <class T, bool TAKE>
static void put_image(const tgi_call *call, const tgi_view *v, const tgi_desc *d,
                      const tgi_box *box, const void *dense)
{
    const int lanes = cu_lanes(v->cb);
    const tgi_box all = tgi_box_full(d);
    int64_t most = v->cb / lanes;
    cu_take_args a;
    memset(&a, 0, sizeof a);
    a.view = cu_view_of(v);
    a.dense = (char *)(uintptr_t)dense;
    a.n = tgi_box_empty(&call->box) ? 0 : v->cb / lanes;
    for (int k = 0; k < 3; k++) {
        const tgi_range r = tgi_box_axis(box, k);
        a.lo[k] = (int32_t)r.lo;
        a.len[k] = (int32_t)tgi_range_len(r);
        a.dim[k] = (int32_t)tgi_desc_axis(d, k);
        a.n *= tgi_range_empty(r) ? 0 : tgi_range_len(r);
        most *= tgi_range_len(tgi_box_axis(&all, k));
    }
    void (*kernel)(const cu_take_args *) = lanes == 8   ? cu_flat_image<T, 8, TAKE>
                                           : lanes == 4 ? cu_flat_image<T, 4, TAKE>
                                           : lanes == 2 ? cu_flat_image<T, 2, TAKE>
                                                        : cu_flat_image<T, 1, TAKE>;
    cu_launch(call, kernel, cu_flat_grid(most, CU_FLAT_THREADS), dim3(CU_FLAT_THREADS), 0, a);
}

template <class T>
void cu_flat_take(const tgi_call *call, const tgi_view *from, const tgi_desc *d, void *to)
{
    const tgi_box all = tgi_box_full(d);
    put_image<T, true>(call, from, d, &all, to);
}

template <class T>
void cu_flat_give(const tgi_call *call, const void *from, const tgi_desc *d, const tgi_box *box,
                  const tgi_view *to)
{
    put_image<T, false>(call, to, d, box, from);
}

#define CU_FLAT_IMAGES(T)                                                                      \
    template void cu_flat_take<T>(const tgi_call *, const tgi_view *, const tgi_desc *,        \
                                  void *);                                                     \
    template void cu_flat_give<T>(const tgi_call *, const void *, const tgi_desc *,            \
                                  const tgi_box *, const tgi_view *);
CU_FLAT_IMAGES(float)
CU_FLAT_IMAGES(__half)
CU_FLAT_IMAGES(__nv_bfloat16)

/* ---- Moves ------------------------------------------------------------------------------- */

/* Axes from the outermost; places count elements of `size` bytes. */
struct cu_move_args {
    const char *src;
    char *dst;
    int64_t n;
    int32_t rank, unused;
    float fill;
    int32_t unused2;
    int64_t dim[TGI_MAX_RANK], to[TGI_MAX_RANK];
    int64_t step[TGI_MAX_RANK];
    const int64_t *table[TGI_MAX_RANK]; /* NULL: step times the coordinate */
};

/* T: the element type, of which U is one or several. */
template <class T, class U> CU_KERNEL(cu_flat_move, cu_move_args, CU_FLAT_THREADS, 4)
{
    for (int64_t i = cu_flat_first(); i < a->n; i += cu_flat_step()) {
        int64_t rest = i, from = 0, to = 0;
        bool inside = true;
        for (int k = a->rank - 1; k >= 0; k--) {
            int64_t at = rest;
            if (k > 0 && rest >> 31 == 0 && a->dim[k] >> 31 == 0) {
                const uint32_t d = (uint32_t)a->dim[k], q = (uint32_t)rest / d;
                at = (uint32_t)rest - q * d;
                rest = q;
            } else if (k > 0) {
                const int64_t q = rest / a->dim[k];
                at = rest - q * a->dim[k];
                rest = q;
            }
            const int64_t step = a->table[k] ? a->table[k][at] : at * a->step[k];
            inside = inside && step >= 0;
            from += step;
            to += at * a->to[k];
        }
        if (sizeof(U) == sizeof(T) && !inside)
            reinterpret_cast<T *>(a->dst)[to] = cu_element<T>(a->fill);
        else
            reinterpret_cast<U *>(a->dst)[to] = reinterpret_cast<const U *>(a->src)[from];
    }
}

/* An axis of a move; the table, if there is one, has a place for each coordinate. */
struct cu_axis {
    int64_t dim, step, to;
    int tabled;
    int64_t base;     /* of a negative step: the place of coordinate 0 is part of the base */
    int64_t table_at; /* in the packed tables */
};

/* One piece of a node. */
struct cu_move {
    int src, dst, n;
    cu_axis axis[TGI_MAX_RANK + 1];
    int64_t from, to; /* elements: where the piece begins */
    float fill;
};

static void add_axis(cu_move *m, int64_t dim, int64_t step, int64_t to)
{
    if (dim == 1)
        return;
    cu_axis *last = m->n ? &m->axis[m->n - 1] : NULL;
    if (last && !last->tabled && last->step == dim * step && last->to == dim * to) {
        last->dim *= dim;
        last->step = step;
        last->to = to;
        return;
    }
    m->axis[m->n++] = {dim, step, to, 0, 0, 0};
}

/* ---- Which operator moves what ----------------------------------------------------------- */

/* Writes the steps of one axis, or NULL: only how many there are. */
struct cu_tables {
    int64_t *at;
    int64_t n;
};

static void add_table(cu_move *m, cu_tables *t, int64_t dim, int64_t to)
{
    m->axis[m->n++] = {dim, 0, to, 1, 0, t->n};
    t->n += dim;
}

typedef struct cu_moves {
    int n;
    cu_move m[TGI_OP_MAX_SRC];
    cu_tables tables;
} cu_moves;

static cu_move *next_move(cu_moves *all, int src, int dst)
{
    cu_move *m = &all->m[all->n++];
    memset(m, 0, sizeof *m);
    m->src = src;
    m->dst = dst;
    return m;
}

typedef int (*cu_moves_fn)(const tgi_op_ctx *ctx, cu_moves *all);

static int moves_copy(const tgi_op_ctx *ctx, cu_moves *all)
{
    if (cu_count(&ctx->src[0]) != cu_count(&ctx->dst[0]) || ctx->n_dst != 1)
        return 0;
    add_axis(next_move(all, 0, 0), cu_count(&ctx->dst[0]), 1, 1);
    return 1;
}

static int moves_transpose(const tgi_op_ctx *ctx, cu_moves *all)
{
    const tgi_desc *d = &ctx->dst[0];
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK];
    cu_move *m = next_move(all, 0, 0);
    tgi_dense_strides(&ctx->src[0], from);
    tgi_dense_strides(d, to);
    for (int k = 0; k < d->rank; k++)
        add_axis(m, d->dim[k], from[tgi_transpose_source(ctx, k)], to[k]);
    return 1;
}

static int moves_expand(const tgi_op_ctx *ctx, cu_moves *all)
{
    const tgi_desc *s = &ctx->src[0], *d = &ctx->dst[0];
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK];
    cu_move *m = next_move(all, 0, 0);
    tgi_dense_strides(s, from);
    tgi_dense_strides(d, to);
    for (int k = 0; k < d->rank; k++) {
        const int at = k - (d->rank - s->rank);
        add_axis(m, d->dim[k], at < 0 || s->dim[at] == 1 ? 0 : from[at], to[k]);
    }
    return 1;
}

static int moves_slice(const tgi_op_ctx *ctx, cu_moves *all)
{
    const tgi_desc *d = &ctx->dst[0];
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK];
    cu_move *m = next_move(all, 0, 0);
    tgi_slice s;
    if (tgi_slice_map(ctx, &s, NULL) != TG_OK)
        return 0;
    tgi_dense_strides(&ctx->src[0], from);
    tgi_dense_strides(d, to);
    for (int k = 0; k < d->rank; k++) {
        const int64_t back = s.step[k] < 0 && d->dim[k] > 0 ? d->dim[k] - 1 : 0;
        m->from += (s.start[k] + back * s.step[k]) * from[k]; /* steps count from the lowest */
        m->to += back * to[k];
        add_axis(m, d->dim[k], (s.step[k] < 0 ? -s.step[k] : s.step[k]) * from[k],
                 s.step[k] < 0 ? -to[k] : to[k]);
    }
    return 1;
}

/* All of `part` from place `first` of `whole` on, one after the other along `axis`. */
static void add_part(cu_move *m, const tgi_desc *part, const int64_t *from, const int64_t *to)
{
    for (int k = 0; k < part->rank; k++)
        add_axis(m, part->dim[k], from[k], to[k]);
}

static int moves_concat(const tgi_op_ctx *ctx, cu_moves *all)
{
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK], first = 0;
    int axis;
    if (tgi_axis(((const axis_attrs *)ctx->attrs)->axis, ctx->dst[0].rank, &axis, NULL) !=
        TG_OK)
        return 0;
    tgi_dense_strides(&ctx->dst[0], to);
    for (int j = 0; j < ctx->n_src; j++) {
        cu_move *m = next_move(all, j, 0);
        tgi_dense_strides(&ctx->src[j], from);
        m->to = first * to[axis];
        add_part(m, &ctx->src[j], from, to);
        first += ctx->src[j].dim[axis];
    }
    return 1;
}

static int moves_split(const tgi_op_ctx *ctx, cu_moves *all)
{
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK], n[TGI_OP_MAX_DST], first = 0;
    int axis;
    if (tgi_split_pieces(ctx, &axis, n, NULL) != TG_OK)
        return 0;
    tgi_dense_strides(&ctx->src[0], from);
    for (int d = 0; d < ctx->n_dst; d++) {
        cu_move *m = next_move(all, 0, d);
        tgi_dense_strides(&ctx->dst[d], to);
        m->from = first * from[axis];
        add_part(m, &ctx->dst[d], from, to);
        first += n[d];
    }
    return 1;
}

static int moves_tile(const tgi_op_ctx *ctx, cu_moves *all)
{
    const tgi_desc *s = &ctx->src[0], *d = &ctx->dst[0];
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK];
    cu_move *m = next_move(all, 0, 0);
    tgi_dense_strides(s, from);
    tgi_dense_strides(d, to);
    for (int k = 0; k < d->rank; k++) {
        if (s->dim[k] != 1 && s->dim[k] != d->dim[k]) {
            if (m->n + 2 > TGI_MAX_RANK)
                return 0;
            add_axis(m, d->dim[k] / s->dim[k], 0, to[k] * s->dim[k]);
        }
        add_axis(m, s->dim[k] == 1 ? d->dim[k] : s->dim[k], s->dim[k] == 1 ? 0 : from[k],
                 to[k]);
    }
    return 1;
}

static int moves_pad(const tgi_op_ctx *ctx, cu_moves *all)
{
    const tgi_desc *s = &ctx->src[0], *d = &ctx->dst[0];
    int64_t from[TGI_MAX_RANK], to[TGI_MAX_RANK];
    cu_move *m = next_move(all, 0, 0);
    tgi_pad p;
    if (tgi_pad_map(ctx, &p, NULL) != TG_OK)
        return 0;
    m->fill = p.value;
    tgi_dense_strides(s, from);
    tgi_dense_strides(d, to);
    for (int k = 0; k < d->rank; k++) {
        if (p.p0[k] == 0 && p.p1[k] == 0) {
            add_axis(m, d->dim[k], from[k], to[k]);
            continue;
        }
        for (int64_t i = 0; all->tables.at && i < d->dim[k]; i++) {
            const int64_t at = tgi_pad_source(p.mode, i - p.p0[k], s->dim[k]);
            all->tables.at[all->tables.n + i] = at < 0 ? -1 : at * from[k];
        }
        add_table(m, &all->tables, d->dim[k], to[k]);
    }
    return 1;
}

static int moves_gather(const tgi_op_ctx *ctx, cu_moves *all)
{
    const tgi_desc *s = &ctx->src[0];
    const tgi_constant *list = tgi_const(ctx, 1);
    int64_t from[TGI_MAX_RANK], outer = 1, inner = 1;
    cu_move *m = next_move(all, 0, 0);
    int axis;
    if (!list ||
        tgi_axis(((const axis_attrs *)ctx->attrs)->axis, s->rank, &axis, NULL) != TG_OK)
        return 0;
    for (int k = 0; k < s->rank; k++)
        *(k < axis ? &outer : &inner) *= k == axis ? 1 : s->dim[k];
    tgi_dense_strides(s, from);
    const int64_t n = tgi_const_count(list);
    add_axis(m, outer, s->dim[axis] * inner, n * inner);
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = tgi_int_at(list, i);
        if (at < -s->dim[axis] || at >= s->dim[axis])
            return 0;
        if (all->tables.at)
            all->tables.at[all->tables.n + i] = (at < 0 ? at + s->dim[axis] : at) * inner;
    }
    add_table(m, &all->tables, n, inner);
    add_axis(m, inner, 1, 1);
    return 1;
}

/* b x b pixels of channels that belong together: six axes, two of them of the blocks. */
static int moves_shuffle(const tgi_op_ctx *ctx, cu_moves *all, int to_space)
{
    const d2s_attrs *a = (const d2s_attrs *)ctx->attrs;
    const tgi_desc *big = to_space ? &ctx->dst[0] : &ctx->src[0];
    const tgi_desc *small = to_space ? &ctx->src[0] : &ctx->dst[0];
    const int64_t b = a->blocksize, c = big->dim[1], h = small->dim[2], w = small->dim[3];
    const int64_t hw = h * w, W = w * b;
    const int crd = to_space && a->mode != 0; /* SpaceToDepth has DCR alone */
    cu_move *m = next_move(all, 0, 0);
    /* n, c, y, by, x, bx: strides in the image of few channels, and in the one of many */
    const int64_t dim[6] = {big->dim[0], c, h, b, w, b};
    const int64_t few[6] = {c * hw * b * b, hw * b * b, b * W, W, b, 1};
    const int64_t many[6] = {
        c * hw * b * b,   crd ? hw * b * b : hw, w, crd ? b * hw : b * c * hw, 1,
        crd ? hw : c * hw};
    for (int k = 0; k < 6; k++)
        add_axis(m, dim[k], to_space ? many[k] : few[k], to_space ? few[k] : many[k]);
    return 1;
}

static int moves_depth_to_space(const tgi_op_ctx *ctx, cu_moves *all)
{
    return moves_shuffle(ctx, all, 1);
}

static int moves_space_to_depth(const tgi_op_ctx *ctx, cu_moves *all)
{
    return moves_shuffle(ctx, all, 0);
}

/* ---- Packing and launching --------------------------------------------------------------- */

static int make_moves(cu_moves_fn fn, const tgi_op_ctx *ctx, int64_t *tables, cu_moves *all)
{
    memset(all, 0, sizeof *all);
    all->tables.at = tables;
    return fn(ctx, all);
}

/* Constants that moves read: not the lists that say where. */
static uint32_t moved_bits(const cu_moves *all)
{
    uint32_t bits = 0;
    for (int i = 0; i < all->n; i++)
        bits |= 1u << all->m[i].src;
    return bits;
}

template <class T>
static int accepts_moves(cu_moves_fn fn, const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    cu_moves all;
    return cu_flat_accepts(ctx, lay, CU_ALL_INTEGERS) && make_moves(fn, ctx, NULL, &all) &&
           cu_flat_const_exact<T>(ctx, moved_bits(&all));
}

template <class T> static size_t moves_bytes(cu_moves_fn fn, const tgi_op_ctx *ctx)
{
    cu_moves all;
    make_moves(fn, ctx, NULL, &all);
    return cu_flat_const_bytes<T>(ctx, moved_bits(&all)) +
           (size_t)all.tables.n * sizeof(int64_t);
}

template <class T> static void pack_moves(cu_moves_fn fn, const tgi_op_ctx *ctx, void *dst)
{
    cu_moves all;
    make_moves(fn, ctx, NULL, &all);
    const uint32_t bits = moved_bits(&all);
    cu_flat_const_pack<T>(ctx, bits, dst);
    make_moves(fn, ctx, (int64_t *)((char *)dst + cu_flat_const_bytes<T>(ctx, bits)), &all);
}

/* Elements that can move together. */
static int vector_of(const cu_move *m, int most)
{
    const cu_axis *last = m->n ? &m->axis[m->n - 1] : NULL;
    if (!last || last->tabled || last->step != 1 || last->to != 1 || last->dim % most ||
        m->from % most || m->to % most)
        return 1;
    for (int k = 0; k + 1 < m->n; k++)
        if (m->axis[k].tabled || m->axis[k].step % most || m->axis[k].to % most)
            return 1;
    return most;
}

template <class T> static void put_move(const cu_flat *f, const cu_move *m)
{
    const int v = vector_of(m, 16 / (int)sizeof(T));
    cu_move_args a;
    int64_t n = 1;
    memset(&a, 0, sizeof a);
    a.src = f->src[m->src] + m->from * (int64_t)sizeof(T);
    a.dst = f->dst[m->dst] + m->to * (int64_t)sizeof(T);
    a.fill = m->fill;
    a.rank = m->n;
    for (int k = 0; k < m->n; k++) {
        const int last = k + 1 == m->n;
        a.dim[k] = last ? m->axis[k].dim / v : m->axis[k].dim;
        a.step[k] = last ? m->axis[k].step : m->axis[k].step / v;
        a.to[k] = last ? m->axis[k].to : m->axis[k].to / v;
        if (m->axis[k].tabled)
            a.table[k] = (const int64_t *)(const void *)f->packed + m->axis[k].table_at;
        n *= a.dim[k];
    }
    a.n = f->count(n);
    void (*kernel)(const cu_move_args *) =
        v > 1 ? cu_flat_move<T, cu_bits<16>> : cu_flat_move<T, T>;
    cu_launch(f->call, kernel, cu_flat_grid(n, CU_FLAT_THREADS), dim3(CU_FLAT_THREADS), 0, a);
}

template <class T> static void run_moves(cu_moves_fn fn, const tgi_call *call)
{
    cu_moves all;
    cu_flat f;
    if (!make_moves(fn, call->ctx, NULL, &all))
        return; /* `accepts` said no */
    cu_flat_begin<T, T>(&f, call, moved_bits(&all));
    for (int i = 0; i < all.n; i++)
        put_move<T>(&f, &all.m[i]);
    cu_flat_end<T>(&f);
}

#define CU_MOVES(symbol, op, fn)                                                               \
    template <class T>                                                                         \
    static int accepts_##symbol(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)             \
    {                                                                                          \
        return accepts_moves<T>(fn, ctx, lay);                                                 \
    }                                                                                          \
    template <class T>                                                                         \
    static size_t bytes_##symbol(const tgi_op_ctx *ctx, const tgi_layout_hint *)               \
    {                                                                                          \
        return moves_bytes<T>(fn, ctx);                                                        \
    }                                                                                          \
    template <class T>                                                                         \
    static void pack_##symbol(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)       \
    {                                                                                          \
        pack_moves<T>(fn, ctx, dst);                                                           \
    }                                                                                          \
    template <class T> static void run_##symbol(const tgi_call *call)                          \
    {                                                                                          \
        run_moves<T>(fn, call);                                                                \
    }                                                                                          \
    CU_FLAT_VARIANT(symbol, "cu_flat_move", op, accepts_##symbol, bytes_##symbol,              \
                    pack_##symbol, run_##symbol)

CU_MOVES(flat_concat, "Concat", moves_concat)
CU_MOVES(flat_depth_to_space, "DepthToSpace", moves_depth_to_space)
CU_MOVES(flat_expand, "Expand", moves_expand)
CU_MOVES(flat_flatten, "Flatten", moves_copy)
CU_MOVES(flat_gather, "Gather", moves_gather)
CU_MOVES(flat_pad, "Pad", moves_pad)
CU_MOVES(flat_reshape, "Reshape", moves_copy)
CU_MOVES(flat_slice, "Slice", moves_slice)
CU_MOVES(flat_space_to_depth, "SpaceToDepth", moves_space_to_depth)
CU_MOVES(flat_split, "Split", moves_split)
CU_MOVES(flat_squeeze, "Squeeze", moves_copy)
CU_MOVES(flat_tile, "Tile", moves_tile)
CU_MOVES(flat_transpose, "Transpose", moves_transpose)
CU_MOVES(flat_unsqueeze, "Unsqueeze", moves_copy)
