/* cpu_blocks.h - channels of a token where they lie in whole blocks, as a rule, and copies of tokens
 * wherever they lie. */
#ifndef TGI_CPU_BLOCKS_H
#define TGI_CPU_BLOCKS_H

#include "kernels/cpu/cpu_common.h"

/* Channels c0, c0 + 1, ... of a pixel lie from p on: TGI_L of them, the next ones `pitch` behind.
 * p NULL: they do not. */
typedef struct in_blocks {
    float *p;
    size_t pitch;
} in_blocks;

/* Channels [c0, c0 + n) of a view. */
static inline in_blocks blocks_of(const tgi_view *v, int64_t c0, int64_t n, int64_t y,
                                  int64_t x)
{
    if (v->cb != TGI_L || c0 % TGI_L || c0 + n > v->c)
        return (in_blocks){NULL, 0};
    return (in_blocks){tgi_view_row(v, c0 / TGI_L, 0, y) + (x - v->x0) * TGI_L, v->block_pitch};
}

static inline in_blocks blocks_of_source(const tgi_operand *o, int64_t c0, int64_t n, int64_t y,
                                         int64_t x)
{
    const tgi_view *v = o->seg;
    while (c0 >= v->c)
        c0 -= (v++)->c;
    return blocks_of(v, c0, n, y, x);
}

/* Channel c0 + c of row y; b: blocks_of_source of its pixel x. */
static inline tgi_lane lane_in(const in_blocks *b, const tgi_operand *o, int64_t c0, int64_t c,
                               int64_t y, int64_t x)
{
    if (!b->p)
        return TGS(tgi_lane_of)(o, c0 + c, 0, y);
    return (tgi_lane){b->p + (size_t)(c / TGI_L) * b->pitch + c % TGI_L - x * TGI_L, TGI_L};
}

/* Channels [0, n) of TGI_L pixels, from where they lie (`pitch` as above), times `by`, to
 * dst[channel * room + pixel]; room for whole blocks. */
TGI_INLINE void turn_pixels(const float *const *from, size_t pitch, int64_t n, float by,
                            float *dst, int64_t room)
{
    for (int64_t c = 0; c < n; c += TGI_L) {
        vf v[TGI_L];
        TGI_UNROLL
        for (int i = 0; i < TGI_L; i++)
            v[i] = vf_load(from[i] + (size_t)(c / TGI_L) * pitch);
        vf_transpose(v);
        TGI_UNROLL
        for (int i = 0; i < TGI_L; i++)
            vf_store(dst + (c + i) * room, v[i] * vf_set1(by));
    }
}

/* Channels [c0, c0 + n) of n_px tokens of row y, to dst[token * step + block * pitch + channel of the
 * block]; what lies behind the last channel of its block is anything. */
static inline void copy_run(const tgi_operand *o, int64_t c0, int64_t n, int64_t y, int64_t x,
                            int64_t n_px, float *dst, int64_t step, int64_t pitch)
{
    const in_blocks b = blocks_of_source(o, c0, n, y, x);
    for (int64_t c = 0; c < n; c += TGI_L, dst += pitch) {
        const float *from = b.p + (size_t)(c / TGI_L) * b.pitch;
        for (int64_t k = 0; b.p && k < n_px; k++)
            vf_store(dst + k * step, vf_load(from + k * TGI_L));
        if (b.p)
            continue;
        const int many = (int)tgi_min64(TGI_L, n - c);
        tgi_lane lane[TGI_L];
        for (int k = 0; k < many; k++) {
            lane[k] = TGS(tgi_lane_of)(o, c0 + c + k, 0, y);
            lane[k].p += x * lane[k].step;
        }
        TGS(tgi_gather_lanes)(lane, many, n_px, dst, step);
    }
}

#endif
