/* cu_matmul_cublaslt.cu - MatMul, Gemm and Einsum as products of the library, over whole
 * arrays.
 *
 * The axis of the result whose numbers are neighbours is what the library calls rows: M or N of
 * cu_contract.cuh, whose factor is then the library's A, the other one its B. Either may lie
 * transposed; a factor whose numbers are neighbours along neither axis is not for the library.
 * Of the batch's axes the longest is the library's, the others are pieces. Shapes are those of
 * the node, whatever the band, and so is the algorithm. */
#include "kernels/cuda/cu_contract.cuh"
#include "kernels/cuda/cu_ops.cuh"
#include "kernels/cuda/cu_product.cuh"

namespace
{

/* Below, a launch of its own between two graphs costs more than the product. */
const double least_flops = 2.0 * 128 * 128 * 128;

/* A node in the library's words. */
struct said {
    cu_product_form form;
    int rows_of;     /* the factor that rows belong to: 0 or 1 */
    cu_walk<3> more; /* batches beside the library's: A, B, result of the node */
    int64_t ahead;   /* how many they are */
};

int64_t stride_of(const cu_walk<3> *w, int array, int axis, int64_t otherwise)
{
    return axis < 0 ? otherwise : w->stride[array][axis];
}

int64_t extent_of(const cu_walk<3> *w, int axis)
{
    return axis < 0 ? 1 : w->dim[axis];
}

/* How a factor lies: lines (rows or columns of the result) by k. 0: in no way for the library.
 * `*turned`: its columns are along k, not along the lines. */
int lies(int64_t line, int64_t lines, int64_t step, int64_t k, int *turned, int64_t *ld)
{
    if (step == 1 && (lines == 1 || line >= k)) {
        *turned = 1;
        *ld = lines == 1 ? k : line;
        return 1;
    }
    *turned = 0;
    *ld = step;
    return (line == 1 || lines == 1) && step >= lines;
}

int say_factors(const cu_contract_product *p, said *s)
{
    cu_product_form *f = &s->form;
    const int row = s->rows_of ? p->n : p->m, column = s->rows_of ? p->m : p->n;
    const int a = s->rows_of, b = 1 - a;
    int a_turned, b_turned;
    f->m = extent_of(&p->axes, row);
    f->n = extent_of(&p->axes, column);
    f->k = p->sums.rank ? p->sums.dim[0] : 1;
    f->ldc = f->ldd = stride_of(&p->axes, 2, column, f->m);
    if (p->sums.rank == 0 || f->ldd < f->m ||
        !lies(stride_of(&p->axes, a, row, 1), f->m, p->sums.stride[a][0], f->k, &a_turned,
              &f->lda) ||
        !lies(stride_of(&p->axes, b, column, 1), f->n, p->sums.stride[b][0], f->k, &b_turned,
              &f->ldb))
        return 0;
    f->transposed_a = a_turned; /* as A is rows by k, and B is k by columns */
    f->transposed_b = !b_turned;
    return 1;
}

/* The longest batch is the library's. */
int say_batches(const cu_contract_product *p, said *s)
{
    cu_product_form *f = &s->form;
    const cu_walk<3> *w = &p->axes;
    int best = -1;
    for (int k = 0; k < w->rank; k++)
        if (k != p->m && k != p->n && w->dim[k] <= CU_PRODUCT_BATCH &&
            (best < 0 || w->dim[k] > w->dim[best]))
            best = k;
    f->batch = extent_of(w, best);
    f->stride_a = stride_of(w, s->rows_of, best, 0);
    f->stride_b = stride_of(w, 1 - s->rows_of, best, 0);
    f->stride_d = stride_of(w, 2, best, 0);
    for (int k = 0; k < w->rank; k++)
        if (k != p->m && k != p->n && k != best) {
            const int64_t stride[3] = {w->stride[0][k], w->stride[1][k], w->stride[2][k]};
            cu_walk_axis<3>(&s->more, w->dim[k], stride);
        }
    s->ahead = cu_walk_count(s->more);
    return s->ahead <= CU_PRODUCT_PIECES;
}

void say_alignment(said *s, size_t element)
{
    cu_product_form *f = &s->form;
    const int a = s->rows_of;
    f->align_a = f->align_b = f->align_d = CU_PRODUCT_ALIGNMENT;
    cu_product_align(&f->align_a, f->lda, element);
    cu_product_align(&f->align_a, f->stride_a, element);
    cu_product_align(&f->align_b, f->ldb, element);
    cu_product_align(&f->align_b, f->stride_b, element);
    cu_product_align(&f->align_d, f->ldd, element);
    cu_product_align(&f->align_d, f->stride_d, element);
    for (int k = 0; k < s->more.rank; k++) {
        cu_product_align(&f->align_a, s->more.stride[a][k], element);
        cu_product_align(&f->align_b, s->more.stride[1 - a][k], element);
        cu_product_align(&f->align_d, s->more.stride[2][k], element);
    }
}

/* What Gemm adds: a number for each row, or a matrix that lies like the result. */
int say_added(const tgi_op_ctx *ctx, const gemm_attrs *g, said *s)
{
    cu_product_form *f = &s->form;
    int64_t along[2]; /* m, n */
    f->alpha = g->alpha;
    if (!tgi_given(ctx, 2))
        return 1;
    cu_gemm_c(&ctx->src[2], &along[0], &along[1]);
    const int64_t row = along[s->rows_of], column = along[1 - s->rows_of];
    f->bias = row == 1 && column == 0 && g->beta == 1;
    f->add_c = row == 1 && column >= f->m;
    f->beta = f->add_c ? g->beta : 0;
    f->ldc = f->add_c ? column : f->ldd;
    return f->bias || f->add_c;
}

/* 0: not for the library. `g`: of a Gemm. */
int say(const tgi_op_ctx *ctx, const tgi_contraction *c, const gemm_attrs *g, tg_dtype type,
        said *s)
{
    cu_contract_product p;
    memset(s, 0, sizeof *s);
    if (!cu_product_of(c, &p))
        return 0;
    s->rows_of = p.n >= 0 && p.axes.stride[2][p.n] == 1;
    if (!s->rows_of && (p.m < 0 || p.axes.stride[2][p.m] != 1))
        return 0; /* neighbours in the result are of different matrices */
    s->form.type = type;
    s->form.alpha = 1;
    if (!say_factors(&p, s) || !say_batches(&p, s) || (g && !say_added(ctx, g, s)))
        return 0;
    say_alignment(s, tgi_dtype_size(type));
    return 1;
}

template <cu_sum_fn FN> const gemm_attrs *gemm_of(const tgi_op_ctx *ctx)
{
    return FN == tgi_gemm_sum ? (const gemm_attrs *)ctx->attrs : NULL;
}

template <cu_sum_fn FN> int accepts(const tgi_op_ctx *ctx, const tgi_layout_hint *lay)
{
    tgi_contraction c;
    said s;
    return cu_flat_accepts(ctx, lay) && FN(ctx, &c, NULL) == TG_OK &&
           say(ctx, &c, gemm_of<FN>(ctx), TG_DTYPE_F32, &s);
}

/* Round figures that prefer it, where it is allowed and there is much to multiply. */
template <cu_sum_fn FN> double cost(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    tgi_contraction c;
    said s;
    if (FN(ctx, &c, NULL) != TG_OK || !say(ctx, &c, gemm_of<FN>(ctx), TG_DTYPE_F32, &s))
        return 1e9;
    const cu_product_form *f = &s.form;
    return 2.0 * (double)f->m * (double)f->n * (double)f->k * (double)(f->batch * s.ahead) <
                   least_flops
               ? 4
               : 0.5;
}

const uint32_t all_inputs = (1u << TGI_OP_MAX_SRC) - 1u;

template <class T> size_t bytes(const tgi_op_ctx *ctx, const tgi_layout_hint *)
{
    return cu_flat_const_bytes<T>(ctx, all_inputs);
}

template <class T> void pack(const tgi_op_ctx *ctx, const tgi_layout_hint *, void *dst)
{
    cu_flat_const_pack<T>(ctx, all_inputs, dst);
}

/* Where the i-th of `more` is in each array. */
void places(const cu_walk<3> *w, int64_t i, int64_t (&off)[3])
{
    memset(off, 0, sizeof off);
    for (int axis = w->rank - 1; axis >= 0; i /= w->dim[axis--])
        for (int k = 0; k < 3; k++)
            off[k] += i % w->dim[axis] * w->stride[k][axis];
}

template <class T> void put(const cu_flat *f, const said *s)
{
    const int a = s->rows_of;
    cu_product p;
    memset(&p, 0, sizeof p);
    p.form = s->form;
    p.most_n = s->form.n;
    p.most_batch = s->form.batch;
    p.stride_b = s->form.stride_b;
    p.stride_d = s->form.stride_d;
    p.bias = s->form.bias ? f->src[2] : NULL;
    p.c = s->form.add_c ? f->src[2] : NULL;
    p.n_pieces = f->count(s->ahead);
    for (int64_t i = 0; i < p.n_pieces; i++) {
        int64_t off[3];
        places(&s->more, i, off);
        p.piece[i].a = (const T *)(const void *)f->src[a] + off[a];
        p.piece[i].b = (const T *)(const void *)f->src[1 - a] + off[1 - a];
        p.piece[i].d = (T *)(void *)f->dst[0] + off[2];
        p.piece[i].n = s->form.n;
        p.piece[i].batch = s->form.batch;
    }
    cu_put_product(f->call->recorder, &p);
}

template <class T, cu_sum_fn FN> void run(const tgi_call *call)
{
    tgi_contraction c;
    said s;
    cu_flat f;
    if (FN(call->ctx, &c, NULL) != TG_OK ||
        !say(call->ctx, &c, gemm_of<FN>(call->ctx), cu_dtype_of((const T *)NULL), &s))
        return; /* `accepts` said no */
    cu_flat_begin<T, T>(&f, call, all_inputs);
    put<T>(&f, &s);
    cu_flat_end<T>(&f);
}

template <class T, cu_sum_fn FN> constexpr tgi_variant variant(const char *op)
{
    tgi_variant v =
        cu_flat_variant("matmul_cublaslt", op, accepts<FN>, bytes<T>, pack<T>, run<T, FN>);
    v.kinds = TGI_KIND_LIBRARY;
    v.cost = cost<FN>;
    return v;
}

} // namespace

#define VARIANTS(suffix, T, unused)                                                            \
    constexpr tgi_variant cu_mat_mul_cublaslt_##suffix =                                       \
        variant<T, tgi_mat_mul_sum>("MatMul");                                                 \
    constexpr tgi_variant cu_gemm_cublaslt_##suffix = variant<T, tgi_gemm_sum>("Gemm");        \
    constexpr tgi_variant cu_einsum_cublaslt_##suffix = variant<T, tgi_einsum_sum>("Einsum");
CU_ELEMENTS(VARIANTS, 0)
