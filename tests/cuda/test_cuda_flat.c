/* Kernels over whole arrays with what stands behind them: every operator that yields something
 * which is no image, in float32, float16 and bfloat16, against its `eval`.
 *
 * Cases are the lines of tests/cases and those below. Their inputs become activations in turn,
 * integers too: arrays, or, where they are of that shape, images with their rows in rings and
 * NaN around them. For each
 *
 *   near      within 1e-5 of the value and of the array's RMS in float32; 1e-3 and 5e-3 in
 *             float16, eight times that in bfloat16, of the same (rounded) numbers; integers
 *             and truth exactly
 *   clean     of an image nothing outside of the box is written, unused lanes are zero
 *   rest      what is launched at rest is what is launched in a band (emulated device)
 *
 * An operator that takes none of its cases, or refuses one, has to stand in a list with the
 * reason. Usage: test_cuda_flat [SYMBOL | --table], the table
 * being docs/reference/operators_cuda.md. */
#include "tests/cuda/flat_case.h"
#include "tests/cuda/near.h"
#include "tests/cuda/product_lines.h"

/* ---- Checks ------------------------------------------------------------------------------ */

/* Integers and truth are exact. */
static int same_numbers(const float *got, const float *want, size_t n, const int *there)
{
    for (size_t i = 0; i < n; i++)
        if ((!there || there[i]) && !(fabsf(got[i] - want[i]) <= 0)) {
            fprintf(stderr, "%s: element %zu is %.9g, expected %.9g\n", case_where, i,
                    (double)got[i], (double)want[i]);
            return 0;
        }
    return 1;
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
        close &= f->n->dst[d].dtype == TG_DTYPE_F32
                     ? case_near(got, want[d], count, f->be->element, there)
                     : same_numbers(got, want[d], count, there);
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

/* Operators that may refuse a case over whole arrays: every one, or those with an activation
 * that is an integer; and why. */
enum when { ANY, INTEGERS };
static const struct {
    const char *op;
    enum when when;
    const char *why;
} refused[] = {
    {"BatchNormalization", ANY, "not with statistics of its input (training)"},
    {"BitShift", INTEGERS, "of 8 bits, in float32 16: elements hold all of them"},
    {"BitwiseAnd", INTEGERS, "of 8 bits, in float32 16: elements hold all of them"},
    {"BitwiseOr", INTEGERS, "of 8 bits, in float32 16: elements hold all of them"},
    {"BitwiseXor", INTEGERS, "of 8 bits, in float32 16: elements hold all of them"},
    {"Col2Im", ANY, "on the processor"},
    {"ConstantOfShape", ANY, "its input is known where it runs"},
    {"DeformConv", ANY, "in 16 bits where offsets and mask are inputs of the network"},
    {"EyeLike", ANY, "follows from its input's shape"},
    {"Gather", INTEGERS, "places that are known when the network is read"},
    {"GridSample", ANY, "on the processor"},
    {"MaxPool", INTEGERS, "with places: up to as many elements as elements count"},
    {"MaxUnpool", INTEGERS, "up to as many elements as elements count"},
    {"Range", ANY, "its inputs are known where it runs"},
};

static int may_refuse(const char *op, enum when when)
{
    if (tgi_op_find(op)->internal) /* rewrites make these of images alone */
        return 1;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].op, op) == 0 && (refused[i].when == ANY || when == INTEGERS))
            return 1;
    return 0;
}

/* Operators that only move, compare or count: with them an integer is right that is an element.
 * All others compute, where integers wrap as their type does and elements do not: those have to
 * refuse. */
static const char *const of_integers[] = {
    "And",          "ArgMax", "ArgMin",      "BitShift", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor",   "Cast",   "CastLike",    "Clip",     "Concat",     "DepthToSpace",
    "Equal",        "Expand", "Flatten",     "Gather",   "Greater",    "GreaterOrEqual",
    "Identity",     "Less",   "LessOrEqual", "Max",      "MaxPool",    "MaxUnpool",
    "Min",          "Not",    "Or",          "Pad",      "Reshape",    "Slice",
    "SpaceToDepth", "Split",  "Squeeze",     "Tile",     "Transpose",  "Unsqueeze",
    "Where",        "Xor"};

static int takes_integers(const char *op)
{
    for (size_t i = 0; i < sizeof of_integers / sizeof *of_integers; i++)
        if (strcmp(of_integers[i], op) == 0)
            return 1;
    return 0;
}

static int is_integer(tg_dtype t)
{
    return t != TG_DTYPE_NONE && t != TG_DTYPE_BOOL && !tgi_dtype_is_float(t);
}

static int integer_runs;
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
    const tgi_desc *d = &n->src[0];
    return t == TGI_DTYPE_BF16 && strncmp(n->op->name, "Arg", 3) == 0 &&
           d->dim[d->rank - 1] > 256;
}

/* Among the node's activations, results included. */
static int has_integers(const flat_node *f)
{
    int has = 0;
    for (int i = 0; i < f->ctx.n_src; i++)
        has |= is_activation(f, i) && is_integer(f->n->src[i].dtype);
    for (int d = 0; d < f->ctx.n_dst; d++)
        has |= is_integer(f->n->dst[d].dtype);
    return has;
}

static int is_element(tg_dtype t, float v)
{
    float there = v;
    device_round(t, &there, 1);
    return memcmp(&there, &v, sizeof v) == 0;
}

/* Integers of input i, activation or constant, are elements. */
static int are_elements(const op_node *n, int i, tg_dtype t)
{
    for (size_t k = 0; n->data[i] && is_integer(n->src[i].dtype) && k < desc_floats(&n->src[i]);
         k++) {
        const double v = tgi_num_at(&n->cst[i], (int64_t)k);
        if (fabs((double)(float)v - v) > 0 || !is_element(t, (float)v))
            return 0;
    }
    return 1;
}

/* A device may refuse a node with an integer that is no element. */
static int has_no_element(const op_node *n, float *const *want, tg_dtype t)
{
    for (int i = 0; i < n->ctx.n_src; i++)
        if (!are_elements(n, i, t))
            return 1;
    for (int d = 0; d < n->ctx.n_dst; d++)
        for (size_t k = 0; is_integer(n->dst[d].dtype) && k < desc_floats(&n->dst[d]); k++)
            if (!is_element(t, want[d][k]))
                return 1;
    return 0;
}

/* The node that nobody takes. */
static void check_refusal(const flat_node *f, float *const *want, uint32_t activations)
{
    const char *op = f->n->op->name;
    const enum when when = has_integers(f) ? INTEGERS : ANY;
    if (may_refuse(op, when) || counts_too_far(f->n, f->be->element) ||
        (when == INTEGERS &&
         (!takes_integers(op) || has_no_element(f->n, want, f->be->element))))
        return;
    tg_checks++;
    fprintf(stderr, "activations %x in %s: ", activations, tgi_dtype_name(f->be->element));
    case_complain("no variant takes it");
}

static int looked; /* nodes that were held against the kernels */

static void check_type(op_node *n, uint32_t activations, tg_dtype t, uint64_t *seed)
{
    flat_node f = {.n = n, .ctx = n->ctx, .be = ops->backend(t)};
    float *want[TGI_OP_MAX_DST] = {NULL};
    int exist = 1; /* such activations */
    for (int i = 0; i < n->ctx.n_src; i++) {
        const int live = (int)(activations >> i & 1u);
        f.consts[i] = n->data[i] && !live ? &n->cst[i] : NULL;
        exist &= !live || are_elements(n, i, t);
    }
    looked++;
    f.ctx.const_src = f.consts;
    mark_images(&f, seed);
    if (!exist || !reference(&f, want)) {
        /* `eval` refuses it too */
    } else if (pick(&f)) {
        lay_out(&f, seed);
        check_results(&f, want);
        runs++;
        integer_runs += has_integers(&f);
        if (has_integers(&f) && !takes_integers(n->op->name))
            case_complain("integers are computed with");
        if (!was_taken(n->op->name) && n_taken < 256)
            taken[n_taken++] = n->op->name;
    } else if (!kinds) {
        check_refusal(&f, want, activations);
    }
    release(&f);
    for (int d = 0; d < n->ctx.n_dst; d++)
        tgi_free(want[d]);
}

static int is_float(const op_node *n, int i)
{
    return n->data[i] && n->src[i].dtype == TG_DTYPE_F32;
}

/* A type that an activation may have: there are none of other floats. */
static int may_live(tg_dtype t)
{
    return t == TG_DTYPE_F32 || t == TG_DTYPE_BOOL || is_integer(t);
}

static int holds_results(const op_node *n)
{
    for (int d = 0; d < n->ctx.n_dst; d++)
        if (!may_live(n->dst[d].dtype))
            return 0;
    return 1;
}

/* `shape` alone is enough to know the node: nothing to run. */
static int is_known(const op_node *n)
{
    return strcmp(n->op->name, "Shape") == 0 || strcmp(n->op->name, "Size") == 0;
}

/* The inputs of a set being activations. */
static void check_set(op_node *n, uint32_t set, tg_dtype t, uint64_t *seed)
{
    tgi_op_ctx ctx = n->ctx;
    const tgi_constant *consts[TGI_OP_MAX_SRC];
    tgi_desc dst[TGI_OP_MAX_DST];
    int fits = set != 0;
    for (int i = 0; i < n->ctx.n_src; i++) {
        const int live = (int)(set >> i & 1u);
        consts[i] = n->data[i] && !live ? &n->cst[i] : NULL;
        fits &= !live || (n->data[i] && may_live(n->src[i].dtype));
    }
    ctx.const_src = consts;
    ctx.dst = NULL;
    if (!fits || n->op->infer(&ctx, dst, NULL) != TG_OK)
        return; /* such inputs have to be constant */
    check_type(n, set, t, seed);
}

static int is_new(const uint32_t *sets, int s)
{
    for (int i = 0; i < s; i++)
        if (sets[i] == sets[s])
            return 0;
    return 1;
}

/* The sets of inputs that are activations in turn: the case's own, input 0, all floats, the
 * first two, all. */
static void check_case(op_node *n, uint64_t *seed)
{
    static const tg_dtype types[] = {TG_DTYPE_F32, TG_DTYPE_F16, TGI_DTYPE_BF16};
    uint32_t sets[5] = {0};
    for (int i = 0; i < n->ctx.n_src; i++) {
        sets[0] |= n->is_const[i] || !n->data[i] ? 0 : 1u << i;
        sets[1] |= i == 0 && n->data[0] ? 1u : 0;
        sets[2] |= is_float(n, i) ? 1u << i : 0;
        sets[3] |= i < 2 && n->data[i] ? 1u << i : 0;
        sets[4] |= n->data[i] ? 1u << i : 0;
    }
    /* float32 with all of its bits: products lose none */
    for (int t = 0; t < 3 && device_has(types[t]); t++) {
        for (int i = 0; i < n->ctx.n_src; i++)
            if (is_float(n, i))
                device_round(types[t], n->data[i], desc_floats(&n->src[i]));
        for (int s = 0; s < 5; s++)
            if (is_new(sets, s))
                check_set(n, sets[s], types[t], seed);
    }
}

/* Inputs that no activation can be: floats of other widths. */
static int of_other_floats(const op_node *n)
{
    for (int i = 0; i < n->ctx.n_src; i++)
        if (n->data[i] && !may_live(n->src[i].dtype))
            return 1;
    return 0;
}

static void run_case(const tgi_op *op, char *line, uint64_t *seed)
{
    char *attrs = strsep(&line, "|"), *inputs = strsep(&line, "|"), *want = strsep(&line, "|");
    op_node n;
    tgi_err err = {0};
    if (!op->eval || is_known(&(op_node){.op = op}) || !want ||
        strncmp(case_trim(want), "error", 5) == 0)
        return;
    looked = 0;
    if (case_node(&n, op, case_trim(attrs), inputs, seed)) {
        for (int i = 0; i < n.ctx.n_src; i++)
            n.is_const[i] |= n.data[i] == NULL;
        const tg_status st = node_bind(&n, &err);
        if (st == TG_OK && holds_results(&n))
            check_case(&n, seed);
        tg_checks++;
        if (!looked && !may_refuse(op->name, ANY) && !of_other_floats(&n))
            case_complain("is held against no kernel");
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
    {"conv", "pads=1,1,1,1 | 3x16x9x8 ; 32x16x3x3 ; 32 | exact"}, /* without TF32 */
    {"conv", "group=16 | 2x16x9 ; 16x1x3 | exact"},
    {"conv_transpose", "strides=2,2 | 2x8x5x6 ; 8x3x2x2 ; 3 | exact"},
    {"max_pool", "kernel_shape=2,2 strides=2,2 | 3x9x8x8 | exact"},
    {"max_pool", "kernel_shape=2,2 strides=2,2 outputs=2 | 1x4x8x10 | exact"},
    {"max_pool", "kernel_shape=3,2 pads=1,1,0,0 dilations=2,1 outputs=2 | 2x3x9x7 | exact"},
    {"max_pool", "kernel_shape=2,3,2 storage_order=1 outputs=2 | 1x2x5x4x6 | exact"},
    {"max_pool", "kernel_shape=3 strides=2 ceil_mode=1 outputs=2 | 2x3x10 | exact"},
    {"max_unpool", "kernel_shape=2,2 strides=2,2 | f:1x2x1x2=1,2,3,4 ; i:1x2x1x2=1,6,15,8 | "
                   "exact"},
    {"max_unpool", "kernel_shape=2,2 strides=2,2 | f:1x1x1x4=1,2,3,4 ; i:1x1x1x4=1,9,1,9 ; "
                   "i:1,1,3,9 | exact"},
    {"bit_shift", "direction=LEFT | w:1,40000,3,65535 ; w:4,1,40,15 | exact"},
    {"bit_shift", "direction=RIGHT | u:200,40,255,1 ; u:3,0,7,200 | exact"},
    {"bitwise_and", " | w:2x3=1,40000,3,65535,255,256 ; w:3=65521,15,257 | exact"},
    {"bitwise_or", " | u:2x3=1,2,3,4,5,255 ; u:128 | exact"},
    {"bitwise_or", " | w:2x3=2048,2,3,4,5,256 ; w:1 | exact"},
    {"bitwise_xor", " | j:5=-1,5,-300,32767,-32768 ; j:5=3,-3,12345,-1,-32768 | exact"},
    {"where", " | b:4=1,0,0,1 ; i:4=1,2,3,4 ; i:4=2048,-7,0,9 | exact"},
    {"gather", "axis=1 | i:2x3=1,2,3,4,5,6 ; i:2,0 | exact"},
    {"concat", "axis=0 | i:2x2=1,2,3,4 ; i:1x2=-9,2000 | exact"},
    {"max", " | i:3=-4,5,2048 ; i:3=3,3,1000 | exact"},
    {"average_pool", "kernel_shape=3 pads=1,1 | 2x9x20 | exact"},
    {"resize", "mode=linear | 2x5x7x9 ; none ; f:1,1,2,2 | exact"},
    {"global_average_pool", " | 3x20x9x8 | exact"},
    {"batch_normalization", " | 2x4x9 ; f:1,2,3,4 ; f:0,1,2,3 ; f:5,-6,7,8 ; f:1,.5,2,3 | "
                            "exact"},
    {"group_normalization", "num_groups=4 opset=21 | 2x8x9x9 ; 8 ; 8 | exact"},
    {"lrn", "size=3 | 2x9x5x6 | exact"},
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
    int64_t dim[TGI_MAX_RANK];
    char shape[96], other[96], list[32] = "";
    random_shape(dim, rank, seed, shape);
    thinner(dim, rank, seed, other);
    int axis[TGI_MAX_RANK], at = 0;
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
    case_lines(only, sum_lines, N_SUM_LINES, run_case, &runs);
    printf("%d runs, %d of them with integers, %d of their sources and results images\n", runs,
           integer_runs, image_runs);
    CHECK(runs > 0);
}

#ifdef TG_TEST_EMULATED
/* Compute capability 7.5 has products of half the depth, and no asynchronous copies. */
static void test_products_of_the_first_tensor_cores_agree_too(void)
{
    device_generation(75);
    for (size_t i = 0; i < N_SUM_LINES; i++)
        case_one(&sum_lines[i], run_case, 70 + i, &runs);
    device_generation(80);
}
#endif

/* 0: there is none to test. */
static int begin_library(const tgi_device_ops **own)
{
    const int is_open = device_open_library(ops, device);
#ifdef TG_TEST_EMULATED
    CHECK(is_open);
#endif
    *own = ops;
    if (is_open) {
        ops = device_library_alone(ops);
        kinds = TGI_KIND_LIBRARY;
    }
    return is_open;
}

static void end_library(const tgi_device_ops *own)
{
    tgi_err err = {0};
    ops = own;
    kinds = 0;
    CHECK_OK(ops->library(device, 0, &err), err);
}

/* A case that is counted whether it ran or not: the count is then one too many. */
static void run_other_case(const tgi_op *op, char *line, uint64_t *seed)
{
    run_case(op, line, seed);
    runs++;
}

/* All that it takes, however small, and none of it by an own kernel. */
static void test_products_of_a_library_agree_too(void)
{
    static const char *const symbols[] = {"mat_mul", "gemm", "einsum"};
    const size_t n = sizeof products / sizeof products[0];
    const tgi_device_ops *own;
    char line[256] = "";
    uint64_t seed = 20261123;
    const int before = runs;
    if (!begin_library(&own))
        return;
    for (size_t i = 0; i < 3; i++)
        if (!only || strcmp(only, symbols[i]) == 0)
            case_every_op(symbols[i], run_case);
    case_lines(only, products, n, run_case, &runs);
    for (size_t i = 0; i < N_SUM_LINES; i++)
        if (!only && strcmp(sum_lines[i].symbol, "mat_mul") == 0)
            case_one(&sum_lines[i], run_case, 30 + i, &runs);
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
        const tgi_op *op = tgi_op_at(i);
        case_where = op->name;
        tg_checks++;
        if (op->eval && !is_known(&(op_node){.op = op}) && !was_taken(op->name) &&
            !may_refuse(op->name, ANY))
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
        for (const tgi_variant *const *v = ops->backend(types[t])->variants; *v; v++) {
            int known = strcmp((*v)->op, op) != 0 || (*v)->flat != flat;
            for (int i = 0; i < n; i++)
                known |= strcmp(seen[i], (*v)->name) == 0;
            if (known || n == 16)
                continue;
            fprintf(out, "%s%s", n ? ", " : "", (*v)->name);
            seen[n++] = (*v)->name;
        }
}

static const char *note_of(const tgi_op *op)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].op, op->name) == 0)
            return refused[i].why;
    return is_known(&(op_node){.op = op}) ? "known before anything runs"
           : !op->eval                    ? "images alone, on the processor too"
                                          : "";
}

static void print_table(FILE *out)
{
    fprintf(
        out,
        "# Operators on a CUDA device\n\n"
        "Printed by `test_cuda_flat --table`: the kernels of each operator, on images and\n"
        "over whole arrays (whatever has not the rank of the network's images, or more\n"
        "samples than one; a node without a kernel for images takes those as arrays). A\n"
        "network with a node that has none runs on the processor. *Integers*: an operator\n"
        "that moves, compares or counts takes arrays of them too, as elements hold them\n"
        "(whole numbers up to 2^24 in float32, 2048 in float16, 256 in bfloat16; what could\n"
        "make others is refused); all others compute with them on the processor, where they\n"
        "wrap as their type does.\n"
        "All of them run on the emulated device in the tests; what ran on a GPU says\n"
        "[gpu.md](../gpu.md).\n\n"
        "| operator | images | arrays | |\n|---|---|---|---|\n");
    for (int i = 0; case_symbols[i]; i++) {
        const tgi_op *op = tgi_op_at(i);
        if (op->internal) /* no model has it */
            continue;
        fprintf(out, "| %s | ", op->name);
        print_variants(out, op->name, 0);
        fprintf(out, " | ");
        print_variants(out, op->name, 1);
        const char *note = note_of(op), *integers = takes_integers(op->name) ? "integers" : "";
        fprintf(out, " | %s%s%s |\n", integers, *integers && *note ? ": " : "", note);
    }
}

#ifdef TG_TEST_EMULATED
static void test_the_table_of_operators_is_what_the_kernels_are(void)
{
    FILE *doc = fopen(TG_SOURCE_DIR "/docs/reference/operators_cuda.md", "r"),
         *made = tmpfile();
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
