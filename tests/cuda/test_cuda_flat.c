/* Kernels over whole arrays with what stands behind them: every operator that yields something
 * which is no image, in float32, float16 and bfloat16, against its `eval`.
 *
 * Cases are the lines of tests/cases and those below. Their floats become activations in turn:
 * arrays, or, where they are of that shape, images with their rows in rings and NaN around
 * them. For each
 *
 *   near      within 1e-5 of the value and of the array's RMS in float32; 1e-3 and 5e-3 in
 *             float16, eight times that in bfloat16, of the same (rounded) numbers
 *   clean     of an image nothing outside of the box is written, unused lanes are zero
 *   rest      what is launched at rest is what is launched in a band (emulated device)
 *
 * An operator that takes none of its cases, or refuses one, has to stand in a list with the
 * reason. Usage: test_cuda_flat [SYMBOL | --table], the table
 * being docs/operators_cuda.md. */
#include "tests/cuda/flat_case.h"
#include "tests/cuda/near.h"

/* ---- Checks ------------------------------------------------------------------------------ */

/* Results of `eval` as floats, one array each. */
static int reference(const flat_node *f, float **want)
{
    void *data[TG_OP_MAX_DST];
    const tg_const *all[TG_OP_MAX_SRC];
    tg_op_ctx ctx = f->ctx;
    tgi_err err = {0};
    for (int i = 0; i < ctx.n_src; i++)
        all[i] = f->n->data[i] ? &f->n->cst[i] : NULL;
    ctx.const_src = all;
    for (int d = 0; d < ctx.n_dst; d++)
        data[d] = must(tgi_calloc(TGI_TAG_MISC, desc_floats(&f->n->dst[d]) + 1,
                                  tgi_dtype_size(f->n->dst[d].dtype)));
    const tg_status st = f->n->op->eval(&ctx, data, &err);
    for (int d = 0; d < ctx.n_dst; d++) {
        const tg_const c = {f->n->dst[d], data[d]};
        want[d] = floats(desc_floats(&f->n->dst[d]));
        for (size_t i = 0; st == TG_OK && i < desc_floats(&f->n->dst[d]); i++)
            want[d][i] = (float)tgi_num_at(&c, (int64_t)i);
        tgi_free(data[d]);
    }
    return st == TG_OK;
}

/* Which elements of an image the box has; NULL: all of them. */
static int *inside(const held *h)
{
    if (!h->image)
        return NULL;
    int *there = must(tgi_calloc(TGI_TAG_MISC, desc_floats(&h->d) + 1, sizeof *there));
    int64_t at[TG_MAX_RANK] = {0};
    for (size_t i = 0; i < desc_floats(&h->d); i++) {
        int in = 1;
        for (int k = 2; k < h->d.rank; k++)
            in &= at[k] >= h->box.ax[k].lo && at[k] < h->box.ax[k].hi;
        there[i] = in;
        for (int k = h->d.rank - 1; k >= 0 && ++at[k] == h->d.dim[k]; k--)
            at[k] = 0;
    }
    return there;
}

static void check_results(flat_node *f, float *const *want)
{
    tgi_err err = {0};
    int clean = 1, close = 1;
    CHECK_OK(compute(f, &err), err);
    for (int d = 0; d < f->ctx.n_dst; d++) {
        const size_t count = desc_floats(&f->n->dst[d]);
        float *got = floats(count);
        int *there = inside(&f->dst[d]);
        clean &= take(&f->dst[d], got);
        close &= case_near(got, want[d], count, f->be->element, there);
        tgi_free(got);
        tgi_free(there);
    }
    tg_checks++;
    if (!clean || !close) {
        fprintf(stderr, "%s in %s: ", f->v->name, tgi_dtype_name(f->be->element));
        case_complain(close ? "wrote outside the box, or an unused lane is not zero"
                            : "differs from the reference");
    }
}

/* ---- Which operators have none ----------------------------------------------------------- */

/* Operators that may refuse a case over whole arrays, and why. */
static const struct {
    const char *op, *why;
} refused[] = {
    {"BatchNormalization", "not with statistics of its input (training)"},
    {"BitShift", "integers"},
    {"BitwiseAnd", "integers"},
    {"BitwiseOr", "integers"},
    {"BitwiseXor", "integers"},
    {"ConstantOfShape", "its input is known where it runs"},
    {"EyeLike", "follows from its input's shape"},
    {"MaxUnpool", "its places are integers"},
    {"Range", "its inputs are known where it runs"},
};

static int may_refuse(const char *op)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].op, op) == 0)
            return 1;
    return 0;
}

static const char *taken[256];
static int n_taken;

static int was_taken(const char *op)
{
    for (int i = 0; i < n_taken; i++)
        if (strcmp(taken[i], op) == 0)
            return 1;
    return 0;
}

/* ---- Cases ------------------------------------------------------------------------------- */

/* A place beyond 256 is no number of bfloat16. */
static int counts_too_far(const op_node *n, tg_dtype t)
{
    const tg_desc *d = &n->src[0];
    return t == TGI_DTYPE_BF16 && strncmp(n->op->name, "Arg", 3) == 0 &&
           d->dim[d->rank - 1] > 256;
}

static void check_type(op_node *n, uint32_t activations, tg_dtype t, uint64_t *seed)
{
    flat_node f = {.n = n, .ctx = n->ctx, .be = ops->backend(t)};
    float *want[TG_OP_MAX_DST] = {NULL};
    for (int i = 0; i < n->ctx.n_src; i++)
        f.consts[i] = n->data[i] && !(activations >> i & 1u) ? &n->cst[i] : NULL;
    f.ctx.const_src = f.consts;
    mark_images(&f, seed);
    if (!reference(&f, want)) {
        /* a case of something that `eval` refuses too */
    } else if (pick(&f)) {
        lay_out(&f, seed);
        check_results(&f, want);
        runs++;
        if (!was_taken(n->op->name) && n_taken < 256)
            taken[n_taken++] = n->op->name;
    } else if (!kinds && !may_refuse(n->op->name) && !counts_too_far(n, t)) {
        tg_checks++;
        fprintf(stderr, "activations %x: ", activations);
        case_complain("no variant takes it");
    }
    release(&f);
    for (int d = 0; d < n->ctx.n_dst; d++)
        tgi_free(want[d]);
}

static int is_float(const op_node *n, int i)
{
    return n->data[i] && n->src[i].dtype == TG_DTYPE_F32;
}

/* Results of types that a device holds. */
static int holds_results(const op_node *n)
{
    for (int d = 0; d < n->ctx.n_dst; d++)
        if (n->dst[d].dtype != TG_DTYPE_F32 && n->dst[d].dtype != TG_DTYPE_BOOL &&
            strncmp(n->op->name, "Arg", 3) != 0)
            return 0;
    return 1;
}

/* `shape` alone is enough to know the node: nothing to run. */
static int is_known(const op_node *n)
{
    return strcmp(n->op->name, "Shape") == 0 || strcmp(n->op->name, "Size") == 0;
}

/* The inputs of a set being activations, in types of one rounding. */
static void check_set(op_node *n, uint32_t set, const tg_dtype *types, int n_types,
                      uint64_t *seed)
{
    tg_op_ctx ctx = n->ctx;
    const tg_const *consts[TG_OP_MAX_SRC];
    tg_desc dst[TG_OP_MAX_DST];
    int fits = set != 0;
    for (int i = 0; i < n->ctx.n_src; i++) {
        const int live = (int)(set >> i & 1u);
        consts[i] = n->data[i] && !live ? &n->cst[i] : NULL;
        fits &= !live || is_float(n, i);
    }
    ctx.const_src = consts;
    ctx.dst = NULL;
    if (!fits || n->op->infer(&ctx, dst, NULL) != TG_OK)
        return; /* such inputs have to be constant */
    for (int t = 0; t < n_types; t++)
        check_type(n, set, types[t], seed);
}

/* The sets of inputs that are activations in turn: the case's own, input 0, all floats. */
static void check_case(op_node *n, uint64_t *seed)
{
    static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
    uint32_t sets[3] = {0};
    for (int i = 0; i < n->ctx.n_src; i++) {
        sets[0] |= n->is_const[i] || !n->data[i] ? 0 : 1u << i;
        sets[1] |= i == 0 && is_float(n, 0) ? 1u : 0;
        sets[2] |= is_float(n, i) ? 1u << i : 0;
    }
    for (int brain = 0; brain < 2; brain++) {
        for (int i = 0; i < n->ctx.n_src; i++)
            if (is_float(n, i))
                device_round(types[1 + brain], n->data[i], desc_floats(&n->src[i]));
        for (int s = 0; s < 3; s++)
            if (s == 0 || sets[s] != sets[s - 1])
                check_set(n, sets[s], &types[2 * brain], brain ? 1 : 2, seed);
    }
}

static void run_case(const tg_op *op, char *line, uint64_t *seed)
{
    char *attrs = strsep(&line, "|"), *inputs = strsep(&line, "|"), *want = strsep(&line, "|");
    op_node n;
    tgi_err err = {0};
    if (!op->eval || is_known(&(op_node){.op = op}) || !want ||
        strncmp(case_trim(want), "error", 5) == 0)
        return;
    if (case_node(&n, op, case_trim(attrs), inputs, seed)) {
        for (int i = 0; i < n.ctx.n_src; i++)
            n.is_const[i] |= n.data[i] == NULL;
        const tg_status st = node_bind(&n, &err);
        if (st == TG_OK && holds_results(&n))
            check_case(&n, seed);
    }
    node_close(&n);
}

/* Shapes that the files have no need of. */
static const case_line larger[] = {
    {"transpose", "perm=0,2,1 | 1x37x70 | exact"},
    {"transpose", "perm=2,0,3,1 | 3x4x16x24 | exact"},
    {"transpose", "perm=0,2,3,1 | 1x20x9x16 | exact"},
    {"transpose", "perm=1,0,2 | 7x9x32 | exact"},
    {"reshape", " | 1x24x5x9 ; i:1,24,45 | exact"},
    {"reshape", " | 45x24 ; i:1,24,5,9 | exact"},
    {"concat", "axis=-1 | 3x5x16 ; a:3x5x8 ; a:3x5x24 | exact"},
    {"concat", "axis=0 | 3x5 ; c:2x5 ; a:1x5 | exact"},
    {"split", "axis=-1 outputs=3 | 7x48 ; i:16,16,16 | exact"},
    {"split", "axis=2 outputs=2 | 2x3x7 ; i:3,4 | exact"},
    {"slice", " | 9x40 ; i:8,1 ; i:0,39 ; i:0,1 ; i:-2,3 | exact"},
    {"slice", " | 4x16x32 ; i:8 ; i:24 ; i:2 | exact"},
    {"expand", " | 5x1x8 ; i:2,5,3,8 | exact"},
    {"tile", " | 2x3x8 ; i:2,1,3 | exact"},
    {"tile", " | 2x3x5 ; i:1,4,2 | exact"},
    {"pad", "mode=constant | 5x7x3 ; i:1,0,2,0,3,0 ; F:0.5 | exact"},
    {"pad", "mode=reflect | 5x7 ; i:1,2,3,4 | exact"},
    {"pad", "mode=edge | 2x12x9x10 ; i:0,1,5,7,0,0,8,3 | exact"},
    {"gather", "axis=1 | 3x9x16 ; i:2x2=0,8,-1,3 | exact"},
    {"gather", "axis=0 | 9x5 ; I:3 | exact"},
    {"depth_to_space", "blocksize=2 | 2x12x5x3 | exact"},
    {"depth_to_space", "blocksize=2 mode=CRD | 2x12x5x3 | exact"},
    {"space_to_depth", "blocksize=3 | 2x2x6x9 | exact"},
    {"add", " | 3x5x16 ; a:16 | exact"},
    {"add", " | 3x5x16 ; a:3x5x16 | exact"},
    {"mul", " | 5x1x9 ; a:4x1x7x1 | exact"},
    {"sub", " | c:5x1 ; a:5x40 | exact"},
    {"sum", " | 16x9 ; a:1x9 ; c:16x1 ; a:9 | exact"},
    {"where", " | 16x9 ; a:9 ; a:16x1 | exact"},
    {"erf", " | 3x17x24 | exact"},
    {"gelu", " | 3x17x25 | exact"},
    {"clip", " | 3x24 ; F:0.5 ; F:1.5 | exact"},
    {"flatten", "axis=2 | 2x3x4x5 | exact"},
    {"squeeze", " | 3x1x5 ; i:1 | exact"},
    {"unsqueeze", " | 3x5 ; i:1 | exact"},
    {"mat_mul", " | 70x40 ; a:40x130 | exact"},
    {"mat_mul", " | 2x3x65x16 ; a:2x3x16x70 | exact"},
    {"mat_mul", " | 2x1x65x33 ; c:3x33x7 | exact"},
    {"mat_mul", " | 5x64x72 ; c:72x64 | exact"},
    {"mat_mul", " | 129 ; a:129x9 | exact"},
    {"mat_mul", " | 3x9x129 ; a:129 | exact"},
    {"gemm", "transA=1 transB=1 alpha=0.5 beta=2 | 40x70 ; a:66x40 ; a:66 | exact"},
    {"gemm", "transB=1 | 7x48 ; c:80x48 ; c:80 | exact"},
    {"gemm", "transA=1 | 33x65 ; a:33x64 ; a:65x1 | exact"},
    {"gemm", " | 1x96 ; c:96x10 ; c:10 | exact"},
    {"einsum", "equation=bhid,bhjd->bhij | 2x2x65x24 ; a:2x2x66x24 | exact"},
    {"einsum", "equation=bhij,bhjd->bihd | 1x2x33x40 ; a:1x2x40x16 | exact"},
    {"einsum", "equation=bchw,dc->bdhw | 1x20x5x16 ; c:24x20 | exact"},
    {"einsum", "equation=bhwc,cd->bdhw | 2x5x6x20 ; c:20x3 | exact"},
    {"einsum", "equation=viwh,vivwh->vwh | 3x2x5x4 ; a:3x2x3x5x4 | exact"},
    {"softmax", " | 3x5x70 | exact"},
    {"softmax", "axis=1 | 3x50x40 | exact"},
    {"softmax", "axis=0 | 2100x3 | exact"},
    {"softmax", "axis=1 opset=11 | 3x5x7x9 | exact"},
    {"log_softmax", " | 2x2500 | exact"},
    {"hardmax", "axis=-1 | 9x33 | exact"},
    {"arg_max", "axis=-1 keepdims=0 | 9x33 | exact"},
    {"arg_min", "axis=0 keepdims=0 | 40x9x8 | exact"},
    {"arg_max", "axis=1 | 3x2047 | exact"},
    {"layer_normalization", " | 5x7x48 ; 48 ; 48 | exact"},
    {"layer_normalization", "axis=1 | 3x7x40 ; a:7x40 | exact"},
    {"layer_normalization", "outputs=3 | 2x9x2200 ; 2200 ; a:2200 | exact"},
    {"rms_normalization", " | 5x7x48 ; 48 | exact"},
    {"mean_variance_normalization", " | 2x3x9x40 | exact"},
    {"mean_variance_normalization", "axes=1 | 2x40x9 | exact"},
    {"lp_normalization", "axis=-1 | 5x70 | exact"},
    {"lp_normalization", "axis=1 p=1 | 2x30x9 | exact"},
    {"instance_normalization", " | 3x5x9x8 ; 5 ; 5 | exact"},
    {"instance_normalization", " | 2x5x40 ; 5 ; 5 | exact"},
    {"reduce_mean", "keepdims=0 | 3x5x70 ; i:2 | exact"},
    {"reduce_mean", "keepdims=0 | 3x50x7 ; i:1 | exact"},
    {"reduce_sum", "keepdims=0 | 3x5x7x9 ; i:0,2 | exact"},
    {"reduce_max", "keepdims=0 | 3x4500 ; i:1 | exact"},
    {"reduce_log_sum_exp", "keepdims=0 | 3x4500 ; i:1 | exact"},
    {"reduce_l2", "keepdims=0 | 1x20x5x9 | exact"},
    {"conv", "pads=1,1,1,1 | 3x5x9x8 ; 16x5x3x3 ; 16 | exact"},
    {"conv", "group=16 | 2x16x9 ; 16x1x3 | exact"},
    {"conv_transpose", "strides=2,2 | 2x8x5x6 ; 8x3x2x2 ; 3 | exact"},
    {"max_pool", "kernel_shape=2,2 strides=2,2 | 3x9x8x8 | exact"},
    {"average_pool", "kernel_shape=3 pads=1,1 | 2x9x20 | exact"},
    {"resize", "mode=linear | 2x5x7x9 ; none ; f:1,1,2,2 | exact"},
    {"global_average_pool", " | 3x20x9x8 | exact"},
    {"batch_normalization", " | 2x4x9 ; f:1,2,3,4 ; f:0,1,2,3 ; f:5,-6,7,8 ; f:1,.5,2,3 | "
                            "exact"},
    {"group_normalization", "num_groups=4 opset=21 | 2x8x9x9 ; 8 ; 8 | exact"},
    {"lrn", "size=3 | 2x9x5x6 | exact"},
    {"einsum", "equation=ijk,ik,jk->i | 4x5x6 ; a:4x6 ; a:5x6 | exact"},
};

/* Products that lie in ways the library has words for, or has not. */
static const case_line products[] = {
    {"mat_mul", " | 3x5x24x40 ; a:3x5x40x16 | exact"},
    {"mat_mul", " | 5x24x40 ; a:40x16 | exact"},
    {"mat_mul", " | 24x40 ; a:5x40x16 | exact"},
    {"mat_mul", " | 3x1x24x40 ; a:1x4x40x16 | exact"},
    {"mat_mul", " | 2x3x4x5x24x33 ; a:2x3x4x5x33x7 | exact"},
    {"mat_mul", " | 1x40 ; a:40x9 | exact"},
    {"gemm", "transB=1 beta=0.5 | 24x40 ; a:16x40 ; a:24x16 | exact"},
    {"gemm", "transA=1 alpha=-2 | 40x24 ; a:40x16 ; a:16 | exact"},
    {"gemm", "alpha=0.5 beta=3 | 24x40 ; c:40x16 ; c:24x16 | exact"},
    {"gemm", " | 24x40 ; a:40x16 ; a:1x16 | exact"},
    {"gemm", " | 24x40 ; a:40x16 | exact"},
    {"gemm", " | 24x40 ; a:40x1 ; a:24x1 | exact"},
    {"einsum", "equation=ik,jk->ji | 24x40 ; a:16x40 | exact"},
    {"einsum", "equation=bhid,bhjd->bhij | 2x3x24x40 ; a:2x3x16x40 | exact"},
    {"einsum", "equation=bhij,bhjd->bihd | 1x2x33x40 ; a:1x2x40x16 | exact"},
};

/* No products of matrices, and what is added to one in ways that it has no words for. */
static const case_line no_products[] = {
    {"mat_mul", " | 1x40 ; a:40x1 | exact"},
    {"gemm", "beta=0.5 | 24x40 ; a:40x16 ; a:16 | exact"},
    {"gemm", " | 24x40 ; a:40x16 ; a:1 | exact"},
    {"gemm", "transA=1 | 33x65 ; a:33x64 ; a:65x1 | exact"},
    {"einsum", "equation=viwh,vivwh->vwh | 3x2x5x4 ; a:3x2x3x5x4 | exact"},
    {"einsum", "equation=ijk,ik,jk->i | 4x5x6 ; a:4x6 ; a:5x6 | exact"},
};

static const char *only; /* the one operator to look at */

/* ---- Random shapes ----------------------------------------------------------------------- */

/* Extents, and as "3x5x7". */
static void random_shape(int64_t *dim, int rank, uint64_t *seed, char *out)
{
    int at = 0;
    for (int k = 0; k < rank; k++) {
        dim[k] = tg_rand_in(seed, 1, k + 1 == rank ? 40 : 7);
        at += sprintf(out + at, "%s%" PRId64, k ? "x" : "", dim[k]);
    }
}

/* The same extents, some of them 1. */
static void thinner(const int64_t *dim, int rank, uint64_t *seed, char *out)
{
    int at = 0;
    for (int k = 0; k < rank; k++) {
        const int64_t d = tg_rand_in(seed, 0, 2) == 0 ? 1 : dim[k];
        at += sprintf(out + at, "%s%" PRId64, k ? "x" : "", d);
    }
}

static void random_product(uint64_t *seed, char *line)
{
    const int m = (int)tg_rand_in(seed, 1, 140), n = (int)tg_rand_in(seed, 1, 140),
              k = (int)tg_rand_in(seed, 1, 100), b = (int)tg_rand_in(seed, 1, 3);
    const int what = (int)tg_rand_in(seed, 0, 1);
    if (what)
        snprintf(line, 200, " | %dx1x%dx%d ; c:2x%dx%d | exact", b, m, k, k, n);
    else
        snprintf(line, 200, " | %dx%dx%d ; a:%dx%dx%d | exact", b, m, k, b, k, n);
}

/* A line for the operator at random. */
static const char *random_line(uint64_t *seed, char *line)
{
    static const char *const names[] = {"transpose", "add", "reduce_sum", "softmax", "mat_mul"};
    const int what = (int)tg_rand_in(seed, 0, 4), rank = (int)tg_rand_in(seed, 2, 5);
    int64_t dim[TG_MAX_RANK];
    char shape[96], other[96], list[32] = "";
    random_shape(dim, rank, seed, shape);
    thinner(dim, rank, seed, other);
    int axis[TG_MAX_RANK], at = 0;
    for (int k = 0; k < rank; k++)
        axis[k] = k;
    for (int k = rank - 1; k > 0; k--) {
        const int with = (int)tg_rand_in(seed, 0, k), was = axis[k];
        axis[k] = axis[with];
        axis[with] = was;
    }
    const int n = what == 2 ? (int)tg_rand_in(seed, 1, rank) : rank;
    for (int k = 0; k < n; k++)
        at += sprintf(list + at, "%s%d", k ? "," : "", axis[k]);
    if (what == 0)
        snprintf(line, 256, "perm=%s | %s | exact", list, shape);
    else if (what == 1)
        snprintf(line, 256, " | %s ; a:%s | exact", shape, other);
    else if (what == 2)
        snprintf(line, 256, "keepdims=0 | %s ; i:%s | exact", shape, list);
    else if (what == 3)
        snprintf(line, 256, "axis=%d | %s | exact", axis[0], shape);
    else
        random_product(seed, line);
    return names[what];
}

static void test_random_shapes_agree_with_the_references(void)
{
    uint64_t seed = 20261122;
    char line[256];
    for (int i = 0; i < 60 && !only; i++) {
        const char *symbol = random_line(&seed, line);
        case_one(&(case_line){symbol, line}, run_case, 1000 + (uint64_t)i, &runs);
    }
}

static void test_kernels_over_arrays_agree_with_the_references(void)
{
    case_every_op(only, run_case);
    case_lines(only, larger, sizeof larger / sizeof larger[0], run_case, &runs);
    printf("%d runs, %d of their sources and results images\n", runs, image_runs);
    CHECK(runs > 0);
}

#ifdef TG_TEST_EMULATED
/* Compute capability 7.5 has products of half the depth, and no asynchronous copies. */
static void test_products_of_the_first_tensor_cores_agree_too(void)
{
    device_generation(75);
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++)
        if (strcmp(larger[i].symbol, "mat_mul") == 0 || strcmp(larger[i].symbol, "gemm") == 0)
            case_one(&larger[i], run_case, 70 + i, &runs);
    device_generation(80);
}
#endif

/* 0: there is none to test. */
static int begin_library(const tg_device_ops **own)
{
    const int is_open = device_open_library(ops, device);
#ifdef TG_TEST_EMULATED
    CHECK(is_open);
#endif
    *own = ops;
    if (is_open) {
        ops = device_library_alone(ops);
        kinds = TG_KIND_LIBRARY;
    }
    return is_open;
}

static void end_library(const tg_device_ops *own)
{
    tgi_err err = {0};
    ops = own;
    kinds = 0;
    CHECK_OK(ops->library(device, 0, &err), err);
}

/* A case that is counted whether it ran or not: the count is then one too many. */
static void run_other_case(const tg_op *op, char *line, uint64_t *seed)
{
    run_case(op, line, seed);
    runs++;
}

/* All that it takes, however small, and none of it by an own kernel. */
static void test_products_of_a_library_agree_too(void)
{
    static const char *const symbols[] = {"mat_mul", "gemm", "einsum"};
    const size_t n = sizeof products / sizeof products[0];
    const tg_device_ops *own;
    char line[256] = "";
    uint64_t seed = 20261123;
    const int before = runs;
    if (!begin_library(&own))
        return;
    for (size_t i = 0; i < 3; i++)
        if (!only || strcmp(only, symbols[i]) == 0)
            case_every_op(symbols[i], run_case);
    case_lines(only, products, n, run_case, &runs);
    for (size_t i = 0; i < sizeof larger / sizeof larger[0]; i++)
        if (!only && strcmp(larger[i].symbol, "mat_mul") == 0)
            case_one(&larger[i], run_case, 30 + i, &runs);
    for (int i = 0; i < 12 && !only; i++) {
        random_product(&seed, line);
        case_one(&(case_line){"mat_mul", line}, run_case, 2000 + (uint64_t)i, &runs);
    }
    printf("%d runs by the library\n", runs - before);
    CHECK(only || runs - before > 100);
    const int taken_by_it = runs;
    for (size_t i = 0; i < sizeof no_products / sizeof no_products[0]; i++)
        case_one(&no_products[i], run_other_case, 50 + i, &runs);
    CHECK_EQ(runs - taken_by_it, sizeof no_products / sizeof no_products[0]);
    end_library(own);
}

static void test_every_operator_on_arrays_has_a_kernel(void)
{
    for (int i = 0; case_symbols[i] && !only; i++) {
        const tg_op *op = tgi_op_at(i);
        case_where = op->name;
        tg_checks++;
        if (op->eval && !is_known(&(op_node){.op = op}) && !was_taken(op->name) &&
            !may_refuse(op->name))
            case_complain("no variant computes it over whole arrays");
    }
}

/* ---- The table --------------------------------------------------------------------------- */

/* Names of an operator's variants, of either type of activations, each once. */
static void print_variants(FILE *out, const char *op, int flat)
{
    static const tg_dtype types[] = {TG_DTYPE_F16, TG_DTYPE_F32};
    const char *seen[16];
    int n = 0;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (const tg_variant *const *v = ops->backend(types[t])->variants; *v; v++) {
            int known = strcmp((*v)->op, op) != 0 || (*v)->flat != flat;
            for (int i = 0; i < n; i++)
                known |= strcmp(seen[i], (*v)->name) == 0;
            if (known || n == 16)
                continue;
            fprintf(out, "%s%s", n ? ", " : "", (*v)->name);
            seen[n++] = (*v)->name;
        }
}

static const char *note_of(const tg_op *op)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].op, op->name) == 0)
            return refused[i].why;
    return is_known(&(op_node){.op = op}) ? "known before anything runs" : "";
}

static void print_table(FILE *out)
{
    fprintf(out,
            "# Operators on a CUDA device\n\n"
            "Printed by `test_cuda_flat --table`: the kernels of each operator, on images and\n"
            "over whole arrays (whatever has not the rank of the network's images, or more\n"
            "samples than one). A network with a node that has none runs on the processor.\n"
            "All of them run on the emulated device in the tests; what ran on a GPU says\n"
            "[gpu.md](gpu.md).\n\n"
            "| operator | images | arrays | |\n|---|---|---|---|\n");
    for (int i = 0; case_symbols[i]; i++) {
        const tg_op *op = tgi_op_at(i);
        fprintf(out, "| %s | ", op->name);
        print_variants(out, op->name, 0);
        fprintf(out, " | ");
        print_variants(out, op->name, 1);
        fprintf(out, " | %s |\n", note_of(op));
    }
}

#ifdef TG_TEST_EMULATED
static void test_the_table_of_operators_is_what_the_kernels_are(void)
{
    FILE *doc = fopen(TG_SOURCE_DIR "/docs/operators_cuda.md", "r"), *made = tmpfile();
    CHECK(doc && made);
    if (doc && made) {
        int a, b;
        print_table(made);
        rewind(made);
        do {
            a = fgetc(made);
            b = fgetc(doc);
        } while (a == b && a != EOF);
        CHECK_EQ(a, b);
    }
    if (doc)
        fclose(doc);
    if (made)
        fclose(made);
}
#endif

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : NULL;
    ops = device_of_test(&device);
    if (!ops)
        return 77;
    if (only && strcmp(only, "--table") == 0) {
        print_table(stdout);
        return 0;
    }
    RUN(test_kernels_over_arrays_agree_with_the_references);
    RUN(test_random_shapes_agree_with_the_references);
#ifdef TG_TEST_EMULATED
    RUN(test_products_of_the_first_tensor_cores_agree_too);
#endif
    RUN(test_products_of_a_library_agree_too);
    RUN(test_every_operator_on_arrays_has_a_kernel);
#ifdef TG_TEST_EMULATED
    RUN(test_the_table_of_operators_is_what_the_kernels_are);
#endif
    return TEST_END();
}
