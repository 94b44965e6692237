/* Products of matrices over whole arrays where TF32 is allowed (--tf32): MatMul, Gemm and
 * Einsum in float32. Results are off by what both factors were rounded by at most; what is no
 * product of matrices is computed in true float32. */
#include "tests/cuda/flat_case.h"
#include "tests/cuda/product_lines.h"

/* ---- Products of rounded numbers --------------------------------------------------------- */

static float *copy_of(const float *from, size_t n)
{
    float *to = floats(n);
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
    return to;
}

/* Of each result the sum of what its products are without their signs; what Gemm adds is none.
 */
static int magnitudes(flat_node *f, float **sum)
{
    float *kept[TGI_OP_MAX_SRC] = {NULL};
    const op_node *n = f->n;
    const int added = strcmp(n->op->name, "Gemm") == 0; /* input 2 */
    for (int i = 0; i < n->ctx.n_src; i++) {
        float *v = n->data[i];
        const size_t count = desc_floats(&n->src[i]);
        kept[i] = v ? copy_of(v, count) : NULL;
        for (size_t k = 0; v && k < count; k++)
            v[k] = i == 2 && added ? 0 : fabsf(v[k]);
    }
    const int good = reference(f, sum);
    for (int i = 0; i < n->ctx.n_src; i++) {
        if (kept[i])
            memcpy(n->data[i], kept[i], desc_floats(&n->src[i]) * sizeof(float));
        tgi_free(kept[i]);
    }
    return good;
}

static int n_rounded; /* products */
static int rounded;   /* the product was one of matrices */
static double worst;  /* of its results, over their bound */

/* Both factors are within 2^-11 of what they were, and a sum of float32 has 2^-24 a term. */
static void check_rounded_products(flat_node *f, const float *want, const float *sum)
{
    const size_t count = desc_floats(&f->n->dst[0]);
    float *got = floats(count);
    int *there = inside(&f->dst[0]), near = take(&f->dst[0], got);
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        const double bound =
            (0x1.01p-10 + 256 * 0x1p-24) * (double)sum[i] + 0x1p-23 * fabs((double)want[i]);
        if (there && !there[i])
            continue;
        near &= off <= bound;
        worst = off > bound * worst ? off / bound : worst;
    }
    tg_checks++;
    if (!near)
        case_complain("is further from the reference than TF32 is");
    tgi_free(got);
    tgi_free(there);
}

static void run_product(const tgi_op *op, char *line, uint64_t *seed)
{
    char *attrs = strsep(&line, "|"), *inputs = strsep(&line, "|");
    op_node n;
    float *want = NULL, *sum = NULL;
    tgi_err err = {0};
    if (!case_node(&n, op, case_trim(attrs), inputs, seed)) {
        node_close(&n);
        return;
    }
    CHECK_OK(node_bind(&n, &err), err);
    flat_node f = {.n = &n, .ctx = n.ctx, .be = ops->backend(TG_DTYPE_F32)};
    for (int i = 0; i < n.ctx.n_src; i++)
        f.consts[i] = n.data[i] && n.is_const[i] ? &n.cst[i] : NULL;
    f.ctx.const_src = f.consts;
    mark_images(&f, seed);
    CHECK(reference(&f, &want) && magnitudes(&f, &sum) && pick(&f));
    if (f.v) {
        rounded = strcmp(f.v->name, "cu_matmul_tf32") == 0;
        n_rounded += rounded;
        lay_out(&f, seed);
        CHECK_OK(compute(&f, &err), err);
        check_rounded_products(&f, want, sum);
        runs++;
    }
    release(&f);
    tgi_free(want);
    tgi_free(sum);
    node_close(&n);
}

/* What is allowed to be rounded is, and no further. */
static void test_products_with_tf32_are_as_near_as_their_rounding(void)
{
    tgi_device_info info = {.kinds =
                                TGI_KIND_TF32}; /* the emulated one's, which has no words */
    tgi_err err = {0};
    if (ops->describe)
        CHECK_OK(ops->describe(0, &info, &err), err);
    if (!(info.kinds & TGI_KIND_TF32)) {
        printf("no products of TF32 on this device\n");
        return;
    }
    kinds = TGI_KIND_TF32;
    for (size_t i = 0; i < N_SUM_LINES; i++) {
        rounded = 0;
        worst = 0;
        case_one(&sum_lines[i], run_product, 32 + i, &runs);
        CHECK(rounded ? worst > 0.02 : worst < 1e-3);
    }
    CHECK_EQ(n_rounded, N_SUM_LINES - 1); /* one has three factors */
}

int main(void)
{
    ops = device_of_test(&device);
    if (!ops)
        return 77;
    RUN(test_products_with_tf32_are_as_near_as_their_rounding);
    return TEST_END();
}
