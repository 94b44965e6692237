/* cpu_conv.c - convolutions with a blocked result: direct, stem (planar source), transposed.
 *
 * The result is cut into jobs of a few rows x some tiles of columns x one group of output
 * blocks, sized so that the job's source stays in the second-level cache. Inside a job the tap
 * rows are taken a chunk of weights at a time, and that chunk serves all pixels of the job
 * before the next comes; between chunks the sums wait in dst. A chunk is what the second level
 * holds beside the source, as a rule all weights: a tile asks for 11 bytes of weights a cycle
 * at most, which the second level delivers as well as the first, while chunks that fit the
 * first level took 3 to 16 % longer for moving the sums and for the tiles' ends.
 *
 * A transposed convolution with stride s is s convolutions of stride 1, one per phase of the
 * output column, each with every s-th tap of the kernel and with results s pixels apart: the
 * same tiles do it. Rows follow from oy + pad = iy * s + ky * d.
 *
 * A source that is read doubled is two convolutions as well, for even and odd columns of the
 * result: neighbours among these are neighbours in what is stored. Which stored column a tap
 * meets depends on the tap, so each kx becomes a tap row of its own, in the same order.
 *
 * Columns outside the image are stored zeros; rows outside the image are not listed. The order
 * of the sum is that of cpu_conv_tile.h.
 *
 * Packed weights: bias [blocks][TGI_L], then for each group of output blocks
 * [unit][kz][ky][kx by phase][lane][ob][TGI_L]; a planar unit has one lane. */
#include "kernels/cpu/cpu_common.h"
#include "kernels/cpu/cpu_conv_tile.h"
#include "kernels/ops/op_attrs.h"

#define CHUNK_BYTES ((int64_t)320 << 10) /* of weights */
#define CHUNK_ROWS_MAX 128
#define LINE_BYTES ((int64_t)24 << 10)    /* of a 1x1 job */
#define SOURCE_BYTES ((int64_t)320 << 10) /* of a job: what a chunk reads of it */
#define JOB_ROWS_MAX 32
/* Units up to which a 1x1 layer fetches weights ahead: it passes so much source and result
 * through the first level that its weights fall out of it. With more they stream from the
 * second level anyway, and fetching made 512 to 512 channels 3 % slower. */
#define AHEAD_UNITS 8

typedef struct conv {
    const tgi_call *call;
    tgi_geom g;
    int transposed, planar;
    int cb;              /* of the source */
    int phases;          /* of output columns: stride x when transposed, else 1 */
    int64_t units, taps; /* source units; kz*ky */
    int64_t seg_c[TGI_MAX_SEG];
    int any_doubled; /* a segment is read doubled */
    int64_t blocks, groups;
    const float *bias, *weights;
    size_t tap_row_floats; /* weights of one tap row for one output block */
    ptrdiff_t ahead;
    tgi_range z, y, x;
    int64_t job_rows, job_cols, row_jobs, col_jobs;
    int64_t job_groups, group_jobs; /* groups of a job, and jobs that this makes of them */
} conv;

/* ---- packing ----------------------------------------------------------------------------- */

static tg_status geometry(const tgi_op_ctx *ctx, int transposed, tgi_geom *g)
{
    return transposed ? tgi_conv_transpose_geometry(ctx, g, NULL)
                      : tgi_conv_geometry(ctx, g, NULL);
}

static int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed,
                   int planar)
{
    tgi_geom g;
    return tgi_is_const_f32(ctx, 1) && (tgi_is_absent(ctx, 2) || tgi_is_const_f32(ctx, 2)) &&
           geometry(ctx, transposed, &g) == TG_OK && g.groups == 1 && lay->lanes == TGI_L &&
           lay->dst_cb == TGI_L && lay->src_cb[0] == (planar ? 1 : TGI_L) &&
           (!transposed || g.d[TGI_X] == 1) && !(lay->n_doubled && g.k[TGI_X] > CHUNK_ROWS_MAX);
}

static int accepts_direct(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, 0, 0);
}
static int accepts_stem(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, 0, 1);
}
static int accepts_transpose(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    return accepts(ctx, lay, 1, lay->src_cb[0] == 1);
}

static size_t packed_bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    const int64_t *w = ctx->src[1].dim;
    int64_t taps = 1;
    for (int i = 2; i < ctx->src[1].rank; i++)
        taps *= w[i];
    const int64_t units = TGS(tgi_unit_count)(lay->src_cb[0], lay->src_segs[0], lay->seg_c[0]);
    const int64_t blocks = tgi_ceil_div64(ctx->dst[0].dim[1], TGI_L);
    return sizeof(float) * (size_t)(blocks * TGI_L * (1 + units * lay->src_cb[0] * taps));
}

/* Taps of kx in packed order: phase 0, stride, 2*stride, ..., then phase 1. Returns the kx. */
static int64_t kx_at(int64_t n_kx, int64_t phases, int64_t i)
{
    for (int64_t p = 0; p < phases; p++) {
        const int64_t n = p < n_kx ? (n_kx - p - 1) / phases + 1 : 0;
        if (i < n)
            return p + i * phases;
        i -= n;
    }
    return 0;
}

static void pack_unit(const tgi_geom *g, int transposed, int cb, const tgi_unit *u,
                      int64_t first, int ob, const void *w, float *out)
{
    const int64_t rows = g->k[TGI_Z] * g->k[TGI_Y], n_kx = g->k[TGI_X];
    const int64_t phases = transposed ? g->s[TGI_X] : 1;
    for (int64_t t = 0; t < rows * n_kx; t++) {
        const int64_t tap = t / n_kx * n_kx + kx_at(n_kx, phases, t % n_kx);
        for (int64_t i = 0; i < (int64_t)cb * ob * TGI_L; i++, out++) {
            const int64_t lane = i / (ob * TGI_L), oc = first * TGI_L + i % (ob * TGI_L);
            const int64_t ic = u->channel + lane;
            const int64_t at = transposed ? ic * g->out_c + oc : oc * g->in_c + ic;
            *out = lane < u->lanes && oc < g->out_c ? tgi_const_at(w, at * rows * n_kx + tap)
                                                    : 0.0f;
        }
    }
}

static void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int transposed, void *dst)
{
    tgi_geom g;
    if (geometry(ctx, transposed, &g) != TG_OK)
        return; /* `accepts` said no */
    const int cb = lay->src_cb[0];
    const int64_t blocks = tgi_ceil_div64(g.out_c, TGI_L);
    const int64_t units = TGS(tgi_unit_count)(cb, lay->src_segs[0], lay->seg_c[0]);
    const int64_t taps = g.k[TGI_Z] * g.k[TGI_Y] * g.k[TGI_X];
    const void *bias = tgi_is_absent(ctx, 2) ? NULL : ctx->const_src[2]->data;
    float *out = dst;
    for (int64_t i = 0; i < blocks * TGI_L; i++)
        *out++ = bias && i < g.out_c ? tgi_const_at(bias, i) : 0.0f;
    for (int64_t k = 0; k < tile_group_count(blocks); k++) {
        const int ob = tile_group_size(blocks, k);
        for (int64_t i = 0; i < units; i++, out += taps * cb * ob * TGI_L) {
            const tgi_unit u = TGS(tgi_unit_at)(cb, lay->src_segs[0], lay->seg_c[0], i);
            pack_unit(&g, transposed, cb, &u, tile_group_first(blocks, k), ob,
                      ctx->const_src[1]->data, out);
        }
    }
}

static void pack_conv(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    pack(ctx, lay, 0, dst);
}
static void pack_transpose(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    pack(ctx, lay, 1, dst);
}

/* ---- running ----------------------------------------------------------------------------- */

/* The source coordinate that tap k of output coordinate o reads on an axis; 0 when there is
 * none inside the image. */
static int tap_source(const conv *c, int axis, int64_t o, int64_t k, int64_t *i)
{
    const tgi_geom *g = &c->g;
    if (c->transposed) {
        const int64_t t = o + g->p0[axis] - k * g->d[axis];
        if (t < 0 || t % g->s[axis])
            return 0;
        *i = t / g->s[axis];
    } else {
        *i = o * g->s[axis] - g->p0[axis] + k * g->d[axis];
    }
    return *i >= 0 && *i < g->in[axis];
}

/* Tap rows [t0,t1) of output row (z,y) whose source lies inside the image. */
static int list_taps(const conv *c, const float *weights, size_t row_floats, int64_t t0,
                     int64_t t1, int64_t z, int64_t y, tap_row *rows)
{
    int n = 0;
    for (int64_t t = t0; t < t1; t++) {
        const int64_t tap = t % c->taps;
        int64_t iz, iy;
        if (!tap_source(c, TGI_Y, y, tap % c->g.k[TGI_Y], &iy) ||
            !tap_source(c, TGI_Z, z, tap / c->g.k[TGI_Y], &iz))
            continue;
        const tgi_operand *src = &c->call->src[0];
        const tgi_unit u = TGS(tgi_unit_at)(c->cb, src->n_seg, c->seg_c, t / c->taps);
        const tgi_view *v = &src->seg[u.seg];
        if (v->doubled)
            iy /= 2;
        rows[n++] = (tap_row){.src = tgi_view_row(v, u.block, iz, iy) - v->x0 * v->cb,
                              .w = weights + (size_t)t * row_floats,
                              .lanes = u.lanes};
    }
    return n;
}

/* Columns [x0,x1) of one output row and group: sum the listed rows, phase by phase. */
static void run_row(const conv *c, tap_row *rows, tile_job *j, int ob, float *dst_row,
                    int64_t dst_x0, int64_t x0, int64_t x1)
{
    const int64_t s = c->g.s[TGI_X], n_kx = c->g.k[TGI_X], p0 = c->g.p0[TGI_X];
    const size_t tap_floats = (size_t)(c->planar ? 1 : TGI_L) * (size_t)ob * TGI_L;
    if (!c->transposed) {
        for (int r = 0; r < j->n_rows; r++)
            rows[r].src += (x0 * s - p0) * c->cb;
        j->n_kx = (int)n_kx;
        j->kx_step = c->g.d[TGI_X] * c->cb;
        j->src_step = s * c->cb;
        j->dst_step = TGI_L;
        j->dst = dst_row + (x0 - dst_x0) * TGI_L;
        j->n = x1 - x0;
        TGS(tgi_conv_part)(j, ob, c->planar);
        return;
    }
    j->kx_step = -c->cb;
    j->src_step = c->cb;
    j->dst_step = s * TGI_L;
    for (int64_t ph = 0; ph < s; ph++) {
        const int64_t first = x0 + ((ph - (x0 + p0)) % s + s) % s;
        const int64_t taps = ph < n_kx ? (n_kx - ph - 1) / s + 1 : 0;
        const int64_t column = tgi_floor_div64(first + p0 - ph, s) * c->cb;
        if (first < x1) {
            for (int r = 0; r < j->n_rows; r++)
                rows[r].src += column;
            j->n_kx = (int)taps;
            j->dst = dst_row + (first - dst_x0) * TGI_L;
            j->n = (x1 - first - 1) / s + 1;
            TGS(tgi_conv_part)(j, ob, c->planar);
            for (int r = 0; r < j->n_rows; r++)
                rows[r].src -= column;
        }
        for (int r = 0; r < j->n_rows; r++)
            rows[r].w += (size_t)taps * tap_floats;
    }
}

/* The same over rows of a doubled source; `taps` has room for them times n_kx. */
static void run_doubled(const conv *c, const tap_row *rows, tap_row *taps, tile_job *j, int ob,
                        float *dst_row, int64_t dst_x0, int64_t x0, int64_t x1)
{
    const int64_t s = c->g.s[TGI_X], n_kx = c->g.k[TGI_X], p0 = c->g.p0[TGI_X];
    const int64_t phases = s % 2 ? 2 : 1; /* an even stride meets one of two columns only */
    const size_t tap_floats = (size_t)(TGI_L * ob * TGI_L);
    const int n = j->n_rows;
    j->rows = taps;
    j->n_rows = n * (int)n_kx;
    j->n_kx = 1;
    j->src_step = s * phases / 2 * TGI_L;
    j->dst_step = phases * TGI_L;
    for (int64_t first = x0; first < tgi_min64(x0 + phases, x1); first++) {
        for (int r = 0; r < j->n_rows; r++) {
            const int64_t kx = r % n_kx, x = first * s - p0 + kx * c->g.d[TGI_X];
            const tap_row *row = &rows[r / n_kx];
            taps[r] = (tap_row){.src = row->src + tgi_floor_div64(x, 2) * TGI_L,
                                .w = row->w + (size_t)kx * tap_floats,
                                .lanes = row->lanes};
        }
        j->dst = dst_row + (first - dst_x0) * TGI_L;
        j->n = (x1 - first - 1) / phases + 1;
        TGS(tgi_conv_part)(j, ob, 0);
    }
}

static int is_doubled(const conv *c, int64_t unit)
{
    const tgi_operand *src = &c->call->src[0];
    return src->seg[TGS(tgi_unit_at)(c->cb, src->n_seg, c->seg_c, unit).seg].doubled;
}

/* Where the chunk of tap rows that begins at t ends: they fit the lists and their sources are
 * all read doubled, or none. */
static int64_t chunk_end(const conv *c, int64_t t, int64_t most, int *doubled)
{
    const int64_t total = c->units * c->taps;
    *doubled = c->any_doubled && is_doubled(c, t / c->taps);
    if (*doubled)
        most = tgi_max64(1, tgi_min64(most, CHUNK_ROWS_MAX / c->g.k[TGI_X]));
    const int64_t end = tgi_min64(t + most, total);
    for (int64_t unit = t / c->taps + 1; unit * c->taps < end && c->any_doubled; unit++)
        if (is_doubled(c, unit) != *doubled)
            return unit * c->taps;
    return end;
}

/* One group of output blocks over rows [y0,y1) and columns [x0,x1). */
static void run_group(const conv *c, int64_t group, int64_t z, tgi_range y, tgi_range x)
{
    const tgi_view *dst = &c->call->dst[0];
    const int ob = tile_group_size(c->blocks, group);
    const int64_t first = tile_group_first(c->blocks, group), total = c->units * c->taps;
    const size_t row_floats = c->tap_row_floats * (size_t)ob;
    const float *weights =
        c->weights + (size_t)first * c->tap_row_floats * (size_t)(c->units * c->taps);
    const int64_t chunk = tgi_max64(
        1, tgi_min64(CHUNK_ROWS_MAX, CHUNK_BYTES / (int64_t)(row_floats * sizeof(float))));
    const int relu = c->call->n_epi && c->call->epi[0].kind == TGI_EPI_RELU;
    tap_row rows[CHUNK_ROWS_MAX], taps[CHUNK_ROWS_MAX];

    for (int64_t t = 0, end; t < total; t = end) {
        int doubled;
        end = chunk_end(c, t, chunk, &doubled);
        for (int64_t row = y.lo; row < y.hi; row++) {
            float *out = tgi_view_row(dst, first, z, row);
            tile_job j = {.rows = rows,
                          .bias = t == 0 ? c->bias + first * TGI_L : NULL,
                          .dst_block = dst->block_pitch,
                          .ahead = c->ahead,
                          .relu = relu && end == total};
            j.n_rows = list_taps(c, weights, row_floats, t, end, z, row, rows);
            if (!j.n_rows && t != 0 && !j.relu)
                continue;
            if (doubled)
                run_doubled(c, rows, taps, &j, ob, out, dst->x0, x.lo, x.hi);
            else
                run_row(c, rows, &j, ob, out, dst->x0, x.lo, x.hi);
        }
    }
    for (int64_t row = y.lo; row < y.hi; row++) {
        const tgi_row_part part = {first, first + ob, z, row, x.lo, x.hi};
        TGS(tgi_epilogue_part)(c->call, relu, &part);
    }
}

static void run_job(void *arg, int64_t job, int thread)
{
    const conv *c = arg;
    (void)thread;
    const int64_t g0 = job % c->group_jobs * c->job_groups;
    const int64_t col = job / c->group_jobs % c->col_jobs;
    const int64_t line = job / c->group_jobs / c->col_jobs;
    const int64_t z = c->z.lo + line / c->row_jobs;
    const int64_t y0 = c->y.lo + line % c->row_jobs * c->job_rows;
    const int64_t x0 = c->x.lo + col * c->job_cols;
    const tgi_range y = {y0, tgi_min64(y0 + c->job_rows, c->y.hi)};
    const tgi_range x = {x0, tgi_min64(x0 + c->job_cols, c->x.hi)};
    for (int64_t g = g0; g < tgi_min64(g0 + c->job_groups, c->groups); g++)
        run_group(c, g, z, y, x);
}

/* Rows and columns of a job: 8 tiles wide (64 where a source pixel is a few numbers) and as
 * many rows as the cache takes, fewer while there are too few jobs for the threads. Only speed
 * depends on it. */
static void size_jobs(conv *c)
{
    const int64_t width = tgi_range_len(c->x), height = tgi_range_len(c->y);
    const int64_t depth = tgi_range_len(c->z);
    const int64_t up = c->transposed ? c->g.s[TGI_X] : 1,
                  down = c->transposed ? 1 : c->g.s[TGI_X];
    const int64_t row_bytes = (int64_t)sizeof(float) * (int64_t)c->tap_row_floats;
    const int64_t chunk_rows =
        tgi_max64(1, CHUNK_BYTES / (row_bytes * tile_group_size(c->blocks, 0)));
    const int64_t chunk_units = tgi_min64(c->units, tgi_ceil_div64(chunk_rows, c->taps));
    const int64_t pixel = chunk_units * c->cb * (int64_t)sizeof(float) * c->g.k[TGI_Z];
    const int threads = tgi_threads_count(c->call->threads);
    const int64_t tile_px = TILE_PX(TILE_OB_MAX == 1 ? 1 : 2);
    int64_t cols = tgi_min64(width, (c->planar ? 64 : 8) * tile_px * up), rows = 1;
    while (cols > 2 * tile_px && 3 * cols * down / up * pixel > SOURCE_BYTES)
        cols /= 2;
    c->col_jobs = tgi_ceil_div64(width, cols);
    cols = tgi_ceil_div64(tgi_ceil_div64(width, c->col_jobs), tile_px * up) * tile_px * up;
    while (rows < height &&
           (rows * cols < 192 * up ||
            (rows + 3) * cols * down * down / (up * up) * pixel < SOURCE_BYTES) &&
           rows < JOB_ROWS_MAX)
        rows++;
    while (rows > 1 &&
           depth * tgi_ceil_div64(height, rows) * c->col_jobs * c->groups < 4 * threads)
        rows = (rows + 1) / 2;
    c->job_groups = 1;
    if (c->taps * c->g.k[TGI_X] == 1 && !c->planar) {
        /* 1x1: a source line serves one pixel only, so all groups take it from the first level,
         * or from the second where the weights are too many to come from there each time. */
        const int64_t weights = c->units * c->blocks * row_bytes;
        const int64_t bytes = weights > CHUNK_BYTES ? SOURCE_BYTES : LINE_BYTES;
        rows = tgi_max64(1, bytes / (cols * c->units * c->cb * (int64_t)sizeof(float)));
        const int64_t jobs = depth * tgi_ceil_div64(height, rows) * c->col_jobs;
        c->job_groups = jobs < 4 * threads ? 1 : c->groups;
    }
    c->group_jobs = tgi_ceil_div64(c->groups, c->job_groups);
    c->job_cols = tgi_min64(cols, width);
    c->job_rows = rows;
    c->col_jobs = tgi_ceil_div64(width, c->job_cols);
    c->row_jobs = tgi_ceil_div64(height, rows);
}

static void run_any(const tgi_call *call, int transposed)
{
    conv c = {.call = call, .transposed = transposed};
    if (tgi_box_empty(&call->box) || geometry(call->ctx, transposed, &c.g) != TG_OK)
        return;
    const tgi_operand *src = &call->src[0];
    c.cb = src->seg[0].cb;
    c.planar = c.cb == 1;
    for (int s = 0; s < src->n_seg; s++) {
        c.seg_c[s] = src->seg[s].c;
        c.any_doubled |= src->seg[s].doubled;
    }
    c.units = TGS(tgi_unit_count)(c.cb, src->n_seg, c.seg_c);
    c.taps = c.g.k[TGI_Z] * c.g.k[TGI_Y];
    c.blocks = tgi_view_blocks(&call->dst[0]);
    c.groups = tile_group_count(c.blocks);
    c.bias = call->packed;
    c.weights = c.bias + c.blocks * TGI_L;
    c.tap_row_floats = (size_t)(c.g.k[TGI_X] * c.cb * TGI_L);
    c.ahead = c.taps * c.g.k[TGI_X] == 1 && c.units > AHEAD_UNITS ? 0 : TILE_AHEAD;
    c.z = tgi_box_axis(&call->box, TGI_Z);
    c.y = tgi_box_axis(&call->box, TGI_Y);
    c.x = tgi_box_axis(&call->box, TGI_X);
    size_jobs(&c);
    const int64_t depth = tgi_range_len(c.z);
    tgi_parallel(call->threads, depth * c.row_jobs * c.col_jobs * c.group_jobs, run_job, &c);
}

static void run_conv(const tgi_call *call)
{
    run_any(call, 0);
}
static void run_transpose(const tgi_call *call)
{
    run_any(call, 1);
}

static size_t no_scratch(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, int64_t width,
                         int threads)
{
    (void)ctx, (void)lay, (void)width, (void)threads;
    return 0;
}

/* Every (i) with i*s + k*d = o + p for some tap k, unclipped: what lies outside the image is
 * stored as zeros and read. */
static int slide_transpose(const tgi_op_ctx *ctx, int src_i, int axis, tgi_slide *out)
{
    tgi_geom g;
    *out = tgi_slide_all(tgi_desc_axis(&ctx->src[src_i], axis));
    if (src_i != 0 || axis < 5 - ctx->src[0].rank || geometry(ctx, 1, &g) != TG_OK)
        return 1;
    const int64_t reach = (g.k[axis] - 1) * g.d[axis];
    *out = (tgi_slide){
        .num = 1, .den = g.s[axis], .lo = g.p0[axis] - reach + g.s[axis] - 1, .hi = g.p0[axis]};
    return 1;
}

const tgi_variant TGS(tgi_conv_direct) = {.name = "conv_direct",
                                          .op = "Conv",
                                          .reads_doubled = 1,
                                          .work = TGI_WORK_CONV_CLASSES,
                                          .accepts = accepts_direct,
                                          .packed_bytes = packed_bytes,
                                          .pack = pack_conv,
                                          .scratch_bytes = no_scratch,
                                          .run = TGI_RUN(run_conv)};
const tgi_variant TGS(tgi_conv_stem) = {.name = "conv_stem",
                                        .op = "Conv",
                                        .work = TGI_WORK_CONV,
                                        .accepts = accepts_stem,
                                        .packed_bytes = packed_bytes,
                                        .pack = pack_conv,
                                        .scratch_bytes = no_scratch,
                                        .run = TGI_RUN(run_conv)};
const tgi_variant TGS(tgi_conv_transpose) = {.name = "conv_transpose",
                                             .op = "ConvTranspose",
                                             .work = TGI_WORK_CONV,
                                             .accepts = accepts_transpose,
                                             .packed_bytes = packed_bytes,
                                             .pack = pack_transpose,
                                             .scratch_bytes = no_scratch,
                                             .slide = slide_transpose,
                                             .run = TGI_RUN(run_transpose)};
