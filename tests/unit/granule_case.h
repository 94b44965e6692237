/* granule_case.h - drawn images for tests of statistics, and pieces of them that hold nothing else. */
#ifndef GRANULE_CASE_H
#define GRANULE_CASE_H

#include "engine/base/arith.h"
#include "kernels/backend.h"
#include "kernels/granule.h"
#include "kernels/ops/geometry.h"
#include "kernels/threads.h"
#include "tests/tg_test.h"

typedef struct picture {
    tgi_desc full;
    tgi_view view[2]; /* channels in one or two segments */
    tgi_operand src;
    float *mem[2];
} picture;

/* Views of the channels over a box, in rings of `more` rows and planes beyond it. */
static inline void picture_views(picture *p, int64_t split, int cb, const tgi_box *b, int more)
{
    const int64_t c = p->full.dim[1], part[2] = {split ? split : c, c - split};
    const tgi_range x = tgi_box_axis(b, TGI_X);
    p->src.n_seg = split ? 2 : 1;
    for (int s = 0; s < p->src.n_seg; s++) {
        tgi_view *v = &p->view[s];
        *v = (tgi_view){.c = part[s], .cb = cb, .x0 = x.lo, .width = tgi_range_len(x)};
        v->y_ring = tgi_range_len(tgi_box_axis(b, TGI_Y)) + more;
        v->z_ring = tgi_range_len(tgi_box_axis(b, TGI_Z)) + more;
        v->y_pitch = (size_t)(v->width * cb);
        v->z_pitch = v->y_pitch * (size_t)v->y_ring;
        v->block_pitch = v->z_pitch * (size_t)v->z_ring;
        const size_t n = v->block_pitch * (size_t)tgi_view_blocks(v);
        v->base = p->mem[s] = malloc(n * sizeof(float));
        for (size_t i = 0; i < n; i++)
            v->base[i] = NAN;
    }
}

/* A picture of `c` channels, the first `split` of them in a segment of their own (0: none), in
 * blocks of cb lanes. Values are mean + spread * noise; z = 0: a 2-D image. */
static inline picture draw(int64_t c, int64_t split, int cb, int64_t z, int64_t y, int64_t x,
                           double mean, double spread, uint64_t seed)
{
    picture p = {.full = z ? (tgi_desc){TG_DTYPE_F32, 5, {1, c, z, y, x}}
                           : (tgi_desc){TG_DTYPE_F32, 4, {1, c, y, x}}};
    const tgi_box all = tgi_box_full(&p.full);
    picture_views(&p, split, cb, &all, 0);
    for (int s = 0; s < p.src.n_seg; s++)
        for (size_t i = 0; i < p.view[s].block_pitch * (size_t)tgi_view_blocks(&p.view[s]); i++)
            p.mem[s][i] = /* roughly normal, variance 1 */
                (float)(mean + spread * (double)(tg_rand_unit(&seed) + tg_rand_unit(&seed) +
                                                 tg_rand_unit(&seed)));
    return p;
}

static inline void erase(picture *p)
{
    free(p->mem[0]);
    free(p->mem[1]);
}

static inline const tgi_operand *operand(picture *p)
{
    p->src.seg = p->view;
    return &p->src;
}

static inline float *pixel(const picture *p, int64_t c, int64_t z, int64_t y, int64_t x)
{
    const int s = c >= p->view[0].c;
    return tgi_view_at(&p->view[s], s ? c - p->view[0].c : c, z, y, x);
}

/* A box of the picture and nothing else: all around it, and in rings of up to two rows more,
 * are NaNs. */
static inline picture piece_of(const picture *p, const tgi_box *b, uint64_t *seed)
{
    picture q = {.full = p->full};
    const tgi_range z = tgi_box_axis(b, TGI_Z), y = tgi_box_axis(b, TGI_Y),
                    x = tgi_box_axis(b, TGI_X);
    const int64_t split = p->src.n_seg > 1 ? p->view[0].c : 0;
    picture_views(&q, split, p->view[0].cb, b, (int)tg_rand_in(seed, 0, 2));
    for (int64_t c = 0; c < p->full.dim[1]; c++)
        for (int64_t iz = z.lo; iz < z.hi; iz++)
            for (int64_t iy = y.lo; iy < y.hi; iy++)
                for (int64_t ix = x.lo; ix < x.hi; ix++)
                    *pixel(&q, c, iz, iy, ix) = *pixel(p, c, iz, iy, ix);
    return q;
}

static inline void check_bits(const tgi_moments *a, const tgi_moments *b)
{
    CHECK(memcmp(a, b, sizeof *a) == 0);
}

/* Kernel sets of this machine, as far as TEGULA_ISA allows; NULL past the last. */
static inline const tgi_kernel_set *kernel_set(int i)
{
    return i <= (int)tgi_isa_detect(TGI_ISA_COUNT) ? tgi_backend_for((tgi_isa)i) : NULL;
}

#endif
