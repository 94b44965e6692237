/* cpu_rows.c - the loop of kernels that compute row parts one by one, and moving channels
 * between layouts. */
#include "kernels/cpu/cpu_common.h"

#define PART_PX 96 /* 6 KiB of a 16-lane block: several passes stay in the first level */

typedef struct row_loop {
    const tgi_call *call;
    tgi_part_fn fn;
    const void *arg;
    int64_t blocks, rows;
} row_loop;

static void row_job(void *arg, int64_t job, int thread)
{
    const row_loop *l = arg;
    const tgi_range x = tgi_box_axis(&l->call->box, TGI_X);
    const int64_t line = job / l->blocks, b = job % l->blocks;
    (void)thread;
    tgi_row_part part = {.b0 = b,
                         .b1 = b + 1,
                         .z = tgi_box_axis(&l->call->box, TGI_Z).lo + line / l->rows,
                         .y = tgi_box_axis(&l->call->box, TGI_Y).lo + line % l->rows};
    for (part.x0 = x.lo; part.x0 < x.hi; part.x0 = part.x1) {
        part.x1 = tgi_min64(part.x0 + PART_PX, x.hi);
        const int done = l->fn(l->call, l->arg, &part);
        TGS(tgi_epilogue_part)(l->call, done, &part);
    }
}

void TGS(tgi_each_part)(const tgi_call *call, tgi_part_fn fn, const void *arg)
{
    row_loop l = {call, fn, arg, tgi_view_blocks(&call->dst[0]),
                  tgi_range_len(tgi_box_axis(&call->box, TGI_Y))};
    if (!tgi_box_empty(&call->box))
        tgi_parallel(call->threads,
                     l.blocks * l.rows * tgi_range_len(tgi_box_axis(&call->box, TGI_Z)),
                     row_job, &l);
}

const tgi_view *TGS(tgi_block_at)(const tgi_operand *o, int64_t *b)
{
    const tgi_view *v = o->seg;
    while (*b >= tgi_view_blocks(v))
        *b -= tgi_view_blocks(v++);
    return v;
}

int TGS(tgi_blocks_line_up)(const tgi_layout_hint *lay, int src)
{
    if (lay->src_cb[src] != lay->dst_cb)
        return 0;
    for (int s = 0; s < lay->src_segs[src] - 1; s++)
        if (lay->seg_c[src][s] % lay->dst_cb)
            return 0;
    return lay->src_segs[src] > 0;
}

tgi_lane TGS(tgi_lane_of)(const tgi_operand *o, int64_t c, int64_t z, int64_t y)
{
    const tgi_view *v = o->seg;
    while (c >= v->c)
        c -= (v++)->c;
    return (tgi_lane){tgi_view_row(v, c / v->cb, z, y) - v->x0 * v->cb + c % v->cb, v->cb};
}

void TGS(tgi_gather_lanes)(const tgi_lane *lane, int n, int64_t n_px, float *dst,
                           ptrdiff_t dst_step)
{
    int whole = dst_step % TGI_L == 0 && n <= TGI_L && lane[0].step % TGI_L == 0;
    for (int i = 1; i < n && whole; i++)
        whole = lane[i].p == lane[0].p + i && lane[i].step == lane[0].step;
    if (whole && n == TGI_L && dst_step == TGI_L && lane[0].step == TGI_L) {
        memcpy(dst, lane[0].p, (size_t)tgi_max64(n_px, 0) * TGI_L * sizeof *dst);
        return;
    }
    if (n == 1 && dst_step == 1 && lane[0].step == 1) {
        memcpy(dst, lane[0].p, (size_t)tgi_max64(n_px, 0) * sizeof *dst);
        return;
    }
    if (whole && n == TGI_L) {
        for (int64_t x = 0; x < n_px; x++)
            vf_store(dst + x * dst_step, vf_load(lane[0].p + x * lane[0].step));
        return;
    }
    if (whole && n > 1) {
        for (int64_t x = 0; x < n_px; x++)
            vf_store_n(dst + x * dst_step, vf_load_n(lane[0].p + x * lane[0].step, n), n);
        return;
    }
    for (int i = 0; i < n; i++) {
        const float *p = lane[i].p;
        const ptrdiff_t step = lane[i].step;
        for (int64_t x = 0; x < n_px; x++)
            dst[x * dst_step + i] = p[x * step];
    }
}
