/* layer_case.c - makes the data of one convolution and runs it through a variant. */
#include "bench/layer_case.h"

#include "engine/base/arith.h"
#include "kernels/ops/geometry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void layer_die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

float *layer_floats(size_t n)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, (n + 64) * sizeof(float)))
        layer_die("out of memory");
    memset(p, 0, (n + 64) * sizeof(float));
    return p;
}

/* The same numbers for every case of a layer. */
static float *noise(size_t n, float scale, uint32_t s)
{
    float *p = layer_floats(n);
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        p[i] = scale * ((float)(s >> 8) / 8388608.0f - 1.0f);
    }
    return p;
}

size_t layer_count(const tgi_desc *d)
{
    int64_t n = 0;
    return tgi_desc_count(d, &n) ? (size_t)n : 0;
}

static tgi_desc desc(const layer *l, int64_t a, int64_t b, int64_t d, int64_t h, int64_t w)
{
    return l->d ? (tgi_desc){TG_DTYPE_F32, 5, {a, b, d, h, w}}
                : (tgi_desc){TG_DTYPE_F32, 4, {a, b, h, w}};
}

/* Stored as the executor does it: the blocks of a row side by side. */
static tgi_view make_view(const tgi_desc *d, int cb, tgi_range columns, float **mem)
{
    tgi_view v = {.c = d->dim[1], .cb = cb, .x0 = columns.lo};
    v.width = tgi_range_len(columns);
    v.y_ring = tgi_desc_axis(d, TGI_Y);
    v.z_ring = tgi_desc_axis(d, TGI_Z);
    v.block_pitch = tgi_align_size((size_t)(v.width * cb), 16);
    if (v.block_pitch % 1024 == 0)
        v.block_pitch += 16;
    v.y_pitch = v.block_pitch * (size_t)tgi_view_blocks(&v);
    v.z_pitch = v.y_pitch * (size_t)v.y_ring;
    *mem = layer_floats(v.z_pitch * (size_t)v.z_ring);
    v.base = *mem;
    return v;
}

static void each(const tgi_desc *d, const tgi_view *v, float *dense, int to_view)
{
    size_t i = 0;
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t z = 0; z < tgi_desc_axis(d, TGI_Z); z++)
            for (int64_t y = 0; y < tgi_desc_axis(d, TGI_Y); y++)
                for (int64_t x = 0; x < tgi_desc_axis(d, TGI_X); x++, i++) {
                    float *p = tgi_view_at(v, c, z, y, x);
                    if (to_view)
                        *p = dense[i];
                    else
                        dense[i] = *p;
                }
}

static void shape_layer(layer_case *k, const layer *l)
{
    const int64_t kd = l->d ? l->k : 1, kw = l->kw ? l->kw : l->k;
    const int n = l->d ? 3 : 2;
    k->l = l;
    k->attrs = (conv_attrs){.group = l->groups,
                            .kernel_shape.n = -1,
                            .dilations.n = -1,
                            .output_padding.n = -1,
                            .output_shape.n = -1};
    k->attrs.strides.n = n;
    k->attrs.pads.n = 2 * n;
    for (int i = 0; i < 2 * n; i++) {
        k->attrs.strides.v[i % n] = l->s;
        const int64_t size = i % n == n - 1 ? kw : l->k;
        k->attrs.pads.v[i] = l->transposed ? (size - l->s) / 2 : size / 2;
    }
    k->src[0] = desc(l, 1, l->ci, l->d, l->h, l->w);
    k->src[1] = desc(l, l->transposed ? l->ci : l->co,
                     (l->transposed ? l->co : l->ci) / l->groups, kd, l->k, kw);
    k->src[2] = (tgi_desc){TG_DTYPE_F32, 1, {l->co}};
    k->ctx = (tgi_op_ctx){.attrs = &k->attrs,
                          .opset = 17,
                          .n_src = 3,
                          .n_dst = 1,
                          .src = k->src,
                          .dst = &k->dst,
                          .const_src = k->cp};
    tgi_geom g;
    tgi_err err = {0};
    if ((l->transposed ? tgi_conv_transpose_geometry(&k->ctx, &g, &err)
                       : tgi_conv_geometry(&k->ctx, &g, &err)) != TG_OK)
        layer_die(err.text);
    k->dst = desc(l, 1, l->co, g.out[TGI_Z], g.out[TGI_Y], g.out[TGI_X]);
    k->flops = 2.0 * (double)layer_count(&k->src[1]) *
               (double)(l->transposed ? layer_count(&k->src[0]) / (size_t)l->ci
                                      : layer_count(&k->dst) / (size_t)l->co);
}

/* The one of that name, or the planner's choice. */
static const tgi_variant *find_variant(const tgi_kernel_set *be, const layer_choice *want,
                                       const char *op, const tgi_op_ctx *ctx,
                                       const tgi_layout_hint *lay)
{
    if (!want->variant)
        return tgi_variant_pick(be, op, ctx, lay);
    for (const tgi_variant *const *v = be->variants; *v; v++)
        if (strcmp((*v)->name, want->variant) == 0 && strcmp((*v)->op, op) == 0 &&
            (*v)->accepts(ctx, lay))
            return *v;
    return NULL;
}

/* The columns that the executor would store: what the kernel needs and the whole image. */
static tgi_range columns_of_source(const layer_case *k)
{
    const tgi_op *op = tgi_op_find(k->v->op);
    const tgi_box full = tgi_box_full(&k->dst);
    tgi_box need = tgi_box_full(&k->src[0]);
    if (op)
        tgi_variant_need(k->v, op, &k->ctx, 0, &full, 0, &need);
    tgi_range x = tgi_box_axis(&need, TGI_X);
    x.lo = tgi_min(x.lo, 0);
    x.hi = tgi_max(x.hi, tgi_desc_axis(&k->src[0], TGI_X));
    return x;
}

static void make_data(layer_case *k)
{
    const double fan = (double)layer_count(&k->src[1]) / (double)k->l->co;
    k->x = noise(layer_count(&k->src[0]), 1, 1);
    k->w = noise(layer_count(&k->src[1]), (float)sqrt(3.0 / fan), 77);
    k->b = noise((size_t)k->l->co, 0.1f, 991);
    k->cst[1] = (tgi_constant){k->src[1], k->w};
    k->cst[2] = (tgi_constant){k->src[2], k->b};
    k->cp[1] = &k->cst[1];
    k->cp[2] = &k->cst[2];
}

/* Lanes of a block of a value with c channels, as the planner has them. */
static int lanes_of(const tgi_kernel_set *be, int64_t c)
{
    if (be->whole_pixels)
        return (int)tgi_whole_pixel(c);
    return c <= 4 ? 1 : be->lanes;
}

int layer_case_open(layer_case *k, const layer *l, const tgi_kernel_set *be,
                    const layer_choice *want, tgi_threads *pool)
{
    memset(k, 0, sizeof *k);
    shape_layer(k, l);
    make_data(k);
    if (want->round) {
        want->round(k->x, layer_count(&k->src[0]));
        want->round(k->w, layer_count(&k->src[1]));
    }
    k->relu = (tgi_epi_step){TGI_EPI_RELU, -1, 0, 0, NULL};
    tgi_layout_hint lay = {.lanes = be->lanes,
                           .exact = want->exact,
                           .kinds = want->kinds,
                           .n_src = 3,
                           .src_segs = {1},
                           .epi = &k->relu,
                           .n_epi = 1};
    lay.seg_c[0][0] = l->ci;
    lay.src_cb[0] = lanes_of(be, l->ci);
    lay.dst_cb = lanes_of(be, l->co);
    k->v = find_variant(be, want, l->transposed ? "ConvTranspose" : "Conv", &k->ctx, &lay);
    if (!k->v)
        return 0;
    const tgi_range whole = {0, tgi_desc_axis(&k->dst, TGI_X)};
    k->sv = make_view(&k->src[0], lay.src_cb[0], columns_of_source(k), &k->mem[0]);
    k->dv = make_view(&k->dst, lay.dst_cb, whole, &k->mem[1]);
    each(&k->src[0], &k->sv, k->x, 1);
    k->packed_bytes = k->v->packed_bytes(&k->ctx, &lay);
    k->mem[2] = layer_floats(k->packed_bytes / sizeof(float));
    k->v->pack(&k->ctx, &lay, k->mem[2]);
    if (k->v->scratch_bytes)
        k->scratch_bytes =
            k->v->scratch_bytes(&k->ctx, &lay, k->dv.width, tgi_threads_count(pool));
    if (k->scratch_bytes)
        k->mem[3] = layer_floats(k->scratch_bytes / sizeof(float));
    k->operand = (tgi_operand){1, &k->sv};
    k->call = (tgi_call){.ctx = &k->ctx,
                         .src = &k->operand,
                         .dst = &k->dv,
                         .box = tgi_box_full(&k->dst),
                         .epi = &k->relu,
                         .n_epi = 1,
                         .packed = k->mem[2],
                         .scratch = k->mem[3],
                         .threads = pool};
    return 1;
}

void layer_case_run(layer_case *k)
{
    k->v->run(&k->call);
}

void layer_case_reference(layer_case *k, float *dense)
{
    const tgi_op *op = tgi_op_find(k->v->op);
    tgi_err err = {0};
    if (!op || op->ref(&k->call, &err) != TG_OK)
        layer_die("no reference");
    each(&k->dst, &k->dv, dense, 0);
    for (size_t i = 0; i < layer_count(&k->dst); i++)
        dense[i] = dense[i] > 0 ? dense[i] : 0;
}

void layer_case_dense(const layer_case *k, float *dense)
{
    each(&k->dst, &k->dv, dense, 0);
}

void layer_case_answer(layer_case *k, float *dense)
{
    layer_case_run(k);
    layer_case_dense(k, dense);
}

void layer_case_close(layer_case *k)
{
    free(k->x);
    free(k->w);
    free(k->b);
    for (int i = 0; i < 4; i++)
        free(k->mem[i]);
}
