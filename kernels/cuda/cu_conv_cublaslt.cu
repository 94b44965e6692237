/* cu_conv_cublaslt.cu - convolutions of single pixels as products of the library.
 *
 * Pixels lie whole, so a row of an image is a matrix already: its columns are pixels, `cb`
 * numbers each. Weights are packed as a matrix of out_c columns of cb numbers, zero in unused
 * lanes, whose own numbers are zero too; the result is their transpose times the row:
 *
 *     D [out_c x n] = relu(W' [out_c x cb] * X [cb x n] + bias)
 *
 * Rows of a box are a batch, from one end of a ring to where it begins again, in the source's
 * or the result's: at most three. Where the box has whole rows and both lie without gaps, all
 * pixels are one matrix, up to some millions.
 *
 * Weights and the bias are of the element type, the bias too, other than in own kernels: the
 * library knows no other. Unused lanes of the result would not stay zero beside an infinite
 * pixel, so there may be none. */
#include "kernels/cuda/cu_conv.cuh"
#include "kernels/cuda/cu_conv_list.cuh"
#include "kernels/cuda/cu_flat.cuh"
#include "kernels/cuda/cu_map.cuh"
#include "kernels/cuda/cu_product.cuh"

namespace
{

/* Fewer: pixels come in and go out, and little is multiplied between. */
const int worth_channels = 32;
/* Sizes that an algorithm is chosen for: those of an image on its way, whatever the launch. */
const int usual_columns = 1024, usual_rows = 16;

int is_pixelwise(const tgi_geom *g)
{
    int one = g->groups == 1;
    for (int i = 0; i < 3; i++)
        one &= g->k[i] == 1 && g->s[i] == 1 && g->p0[i] == 0 && g->in[i] == g->out[i];
    return one;
}

int fused(const tgi_layout_hint *lay)
{
    return lay->n_epi == 0 || (lay->n_epi == 1 && lay->epi[0].kind == TGI_EPI_RELU);
}

int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_geom g;
    return cu_conv_accepts(ctx, lay, 0, &g) && is_pixelwise(&g) && g.in[0] == 1 &&
           g.in[1] < (int64_t)CU_PRODUCT_BATCH * (CU_PRODUCT_PIECES - 2) &&
           lay->src_segs[0] == 1 && !lay->n_doubled && fused(lay) && g.in_c > 4 &&
           g.out_c > 4 && g.out_c == tgi_whole_pixel(g.out_c);
}

/* Of own products: round figures, that prefer it where it is allowed and worth it. */
double cost(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return ctx->src[0].dim[1] < worth_channels || ctx->dst[0].dim[1] < worth_channels ? 4
                                                                                      : 0.75;
}

size_t weights_bytes(const tgi_op_ctx *ctx, size_t element)
{
    return cu_flat_align((size_t)(ctx->dst[0].dim[1] * tgi_whole_pixel(ctx->src[0].dim[1])) *
                         element);
}

template <class T> size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return weights_bytes(ctx, sizeof(T)) +
           (cu_is_absent(ctx, 2) ? 0 : cu_flat_align((size_t)ctx->dst[0].dim[1] * sizeof(T)));
}

template <class T> void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *lay, void *dst)
{
    const int64_t in = ctx->src[0].dim[1], out = ctx->dst[0].dim[1], cb = tgi_whole_pixel(in);
    T *weight = (T *)dst, *bias = (T *)((char *)dst + weights_bytes(ctx, sizeof(T)));
    memset(dst, 0, bytes<T>(ctx, lay));
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++)
            cu_flat_put(&weight[o * cb + i],
                        (double)cu_const_at(ctx->const_src[1]->data, o * in + i));
        if (!cu_is_absent(ctx, 2))
            cu_flat_put(&bias[o], (double)cu_const_at(ctx->const_src[2]->data, o));
    }
}

template <class T> void say_form(const tgi_call *call, cu_product_form *f)
{
    const tgi_op_ctx *ctx = call->ctx;
    f->m = ctx->dst[0].dim[1];
    f->k = tgi_whole_pixel(ctx->src[0].dim[1]);
    f->n = usual_columns;
    f->batch = usual_rows;
    f->lda = f->ldb = f->k;
    f->ldc = f->ldd = f->m;
    f->stride_b = usual_columns * f->k;
    f->stride_d = usual_columns * f->m;
    f->type = cu_dtype_of((const T *)NULL);
    f->transposed_a = 1;
    f->bias = !cu_is_absent(ctx, 2);
    f->relu = call->n_epi;
    f->align_a = f->align_b = f->align_d = CU_PRODUCT_ALIGNMENT;
    f->image = 1;
    f->alpha = 1;
}

/* Where the pixel is; a ring of one row has no pitch that counts. */
template <class T> T *pixel(const tgi_view *v, int64_t y, int64_t x)
{
    return (T *)(void *)v->base + y % v->y_ring * (int64_t)v->y_pitch + (x - v->x0) * v->cb;
}

/* Rows from y on that lie one behind the other. */
int64_t rows_together(const tgi_view *v, int64_t y)
{
    return v->y_ring - y % v->y_ring;
}

/* 1: rows of n pixels without gaps between them. */
int dense(const tgi_view *v, int64_t n)
{
    return (int64_t)v->y_pitch == n * v->cb;
}

template <class T>
void say_pieces(const tgi_view *src, const tgi_view *dst, tgi_range rows, tgi_range columns,
                cu_product *p)
{
    const int64_t n = tgi_range_len(columns);
    const int whole = dense(src, n) && dense(dst, n);
    int64_t y = rows.lo;
    while (y < rows.hi && p->n_pieces < CU_PRODUCT_PIECES) {
        int64_t together = tgi_min(rows_together(src, y), rows_together(dst, y));
        together = tgi_min(together, tgi_min(rows.hi - y, CU_PRODUCT_BATCH));
        const int one = whole && together * n <= CU_PRODUCT_COLUMNS;
        cu_product_piece *at = &p->piece[p->n_pieces++];
        at->b = pixel<T>(src, y, columns.lo);
        at->d = pixel<T>(dst, y, columns.lo);
        at->a = p->piece[0].a;
        at->n = one ? together * n : n;
        at->batch = one ? 1 : together;
        y += together;
    }
}

template <class T> void run(const tgi_call *call)
{
    const tgi_view *src = call->src[0].seg, *dst = &call->dst[0];
    const int rank = call->box.rank;
    cu_product p;
    memset(&p, 0, sizeof p);
    say_form<T>(call, &p.form);
    p.most_n = tgi_max(call->most[rank - 1], 1);
    p.most_batch = rank < 4 ? 1 : tgi_min(tgi_max(call->most[rank - 2], 1), CU_PRODUCT_BATCH);
    if (!tgi_box_empty(&call->box)) {
        p.stride_b = (int64_t)src->y_pitch;
        p.stride_d = (int64_t)dst->y_pitch;
        p.piece[0].a = call->packed;
        p.bias = p.form.bias ? (const char *)call->packed + weights_bytes(call->ctx, sizeof(T))
                             : NULL;
        say_pieces<T>(src, dst, tgi_box_axis(&call->box, TGI_Y),
                      tgi_box_axis(&call->box, TGI_X), &p);
    }
    cu_put_product(call->recorder, &p);
}

template <class T> constexpr tgi_variant variant()
{
    tgi_variant v = cu_variant("conv_1x1_cublaslt", "Conv", accepts, run<T>);
    v.kinds = TGI_KIND_LIBRARY;
    v.packed_bytes = bytes<T>;
    v.pack = pack<T>;
    v.cost = cost;
    return v;
}

} // namespace

constexpr tgi_variant cu_conv_1x1_cublaslt_f32 = variant<float>();
constexpr tgi_variant cu_conv_1x1_cublaslt_f16 = variant<__half>();
constexpr tgi_variant cu_conv_1x1_cublaslt_bf16 = variant<__nv_bfloat16>();
