/* Every operator's contract, from tests/cases/NAME.case (NAME: the symbol in op_list.h). A
 * line (how it is written: op_case.h):
 *
 *   attributes | inputs | what must hold
 *
 *   must hold   exact SHAPE ...   output shapes; any box computed from need's boxes alone, with
 *                                 poison around them, equals the whole bit for bit; need is
 *                                 monotone; as_step, where there is one, says what ref does;
 *                                 tuned variants agree with ref and, bit for bit, with
 *                                 themselves
 *               values SHAPE v,v  eval gives these in output 0
 *               error STATUS text infer or eval fails so, and the detail contains the text
 *
 * Random draws are replayed by the seed in main. Usage: test_ops [SYMBOL ...]. Compiled a second
 * time with TG_TEST_DEVICE the variants are a device's. */
#include "tests/cuda/near.h"
#include "tests/plain_step.h"
#include "tests/unit/op_case.h"

#include "kernels/ops/op_shared.h"
#include "kernels/ops/resize_axis.h"

#ifdef TG_TEST_DEVICE
#include "tests/cuda/device_run.h"
#endif

static int variant_runs;

/* ---- What must hold ---------------------------------------------------------------------- */

static int check_shapes(const op_node *n, char *text)
{
    char *save = NULL, *p = strtok_r(text, " ", &save);
    for (int i = 0; i < n->ctx.n_dst; i++, p = strtok_r(NULL, " ", &save)) {
        tgi_desc want = n->dst[i];
        tg_checks++;
        if (!p || !case_shape(p, &want))
            return case_complain("an expected shape is missing");
        if (!tgi_desc_same_shape(&want, &n->dst[i])) {
            char a[128], b[128];
            fprintf(stderr, "%s: shape %s, expected %s\n", case_where,
                    tgi_desc_text(&n->dst[i], a, sizeof a), tgi_desc_text(&want, b, sizeof b));
            tg_failures++;
            return 0;
        }
    }
    return 1;
}

/* A rule's `begins` are where its rows begin; its `ends` are where the rows by themselves say,
 * wherever what is there ends and whatever row is the next. One at a time and many together are
 * the same. */
static void check_rule_end(const op_node *n, int i, int axis, const tgi_rule *rule)
{
    enum { MOST = 64 };
    const int64_t rows = tgi_desc_axis(&n->src[i], axis), out = tgi_desc_axis(&n->dst[0], axis);
    int64_t at[MOST], got[MOST], one;
    for (int64_t first = 0; first < out && rule->begins; first += MOST) {
        const int many = (int)tgi_min(MOST, out - first);
        for (int k = 0; k < many; k++)
            at[k] = first + k;
        rule->begins(rule->u.given, at, got, many);
        for (int k = 0; k < many; k++) {
            const tgi_range row = {at[k], at[k] + 1};
            rule->begins(rule->u.given, &at[k], &one, 1);
            tg_checks++;
            if (got[k] != tgi_rule_need(rule, row).lo || got[k] != one)
                case_complain("a rule begins elsewhere than its row does");
        }
    }
    for (int64_t end = 0; end < rows && rule->ends; end++) {
        int64_t most = out;
        for (int64_t from = out - 1; from >= 0; from--) {
            if (tgi_rule_need(rule, (tgi_range){from, from + 1}).hi > end)
                most = from;
            const int many = (int)tgi_min(MOST, rows - end);
            for (int k = 0; k < many; k++)
                at[k] = end + k;
            rule->ends(rule->u.given, from, at, got, many);
            rule->ends(rule->u.given, from, &at[many - 1], &one, 1);
            tg_checks++;
            if (tgi_clamp(got[0], from, out) != most || got[many - 1] != one)
                case_complain("a rule ends elsewhere than its rows do");
        }
    }
}

/* Where an operator says that an axis goes on evenly it does: the same rows as need says, and
 * no row more can be had than the last of which need lies in what is there. */
static void check_slide(const op_node *n, int i, const tgi_box *box, uint64_t *seed)
{
    for (int axis = 0; axis < 3 && n->op->rule; axis++) { /* what a rule says of its ends */
        const tgi_range out = tgi_box_axis(box, axis);
        tgi_rule rule;
        n->op->rule(&n->ctx, i, axis, &rule);
        const tgi_range all = tgi_rule_need(&rule, out);
        tg_checks++;
        if (rule.rising &&
            (all.lo != tgi_rule_need(&rule, (tgi_range){out.lo, out.lo + 1}).lo ||
             all.hi != tgi_rule_need(&rule, (tgi_range){out.hi - 1, out.hi}).hi))
            case_complain("a rising rule is not told by its first and last row");
        check_rule_end(n, i, axis, &rule);
    }
    for (int axis = 0; axis < 3; axis++) {
        const int k = n->dst[0].rank - 3 + axis;
        tgi_slide s;
        tgi_box need;
        if (k < 2 || n->src[i].rank != n->dst[0].rank ||
            !tgi_op_slide(n->op, &n->ctx, i, axis, &s))
            continue;
        tgi_op_need(n->op, &n->ctx, 0, box, i, &need);
        const tgi_range r = tgi_slide_need(&s, box->ax[k]);
        tg_checks++;
        if (r.lo != need.ax[k].lo || r.hi != need.ax[k].hi)
            case_complain("slide is not what need says");
        const int64_t end = (int64_t)(tg_rand(seed) % (uint64_t)(n->src[i].dim[k] + 1));
        int64_t most;
        tgi_slide_ends(&s, &end, &most, 1);
        for (int64_t b = 1; b <= n->dst[0].dim[k]; b++) {
            const tgi_range one = tgi_slide_need(&s, (tgi_range){b - 1, b});
            tg_checks++;
            if ((one.hi <= end) != (b <= most))
                case_complain("slide ends elsewhere than need does");
        }
    }
}

/* The one row of the source that row o is made of, or (Resize) the first and last of them, by
 * what the reference computes with, not by what `slide` and `rule` say; empty: a constant. 0:
 * not an operator of those that move rows about. */
static int row_made_of(const op_node *n, int axis, int64_t o, tgi_range *r)
{
    const tgi_op_ctx *ctx = &n->ctx;
    const int k = ctx->src[0].rank - 3 + axis;
    const int64_t dim = ctx->src[0].dim[k];
    tgi_resize_axis ax[3];
    tgi_slice s;
    tgi_pad p;
    tgi_err e = {0};
    int64_t at = o;
    if (strncmp(n->op->name, "Reduce", 6) == 0) {
        *r = ctx->dst[0].dim[k] == dim ? (tgi_range){o, o + 1} : (tgi_range){0, dim};
        return 1;
    }
    if (strcmp(n->op->name, "Resize") == 0 || strcmp(n->op->name, "Upsample") == 0) {
        tgi_taps t;
        CHECK_OK(tgi_resize_axes(ctx, ax, &e), e);
        if (ax[axis].antialias || ax[axis].coord == TGI_COORD_TF_CROP_AND_RESIZE)
            return 0; /* a window and not four taps; rows that nothing covers */
        tgi_resize_taps(&ax[axis], o, &t);
        *r = (tgi_range){t.at[0], t.at[t.n - 1] + 1};
        return 1;
    }
    if (strcmp(n->op->name, "Slice") == 0) {
        CHECK_OK(tgi_slice_map(ctx, &s, &e), e);
        at = s.start[k] + o * s.step[k];
    } else if (strcmp(n->op->name, "Pad") == 0) {
        CHECK_OK(tgi_pad_map(ctx, &p, &e), e);
        at = tgi_pad_source(p.mode, o - p.p0[k], dim);
    } else if (strcmp(n->op->name, "Tile") == 0) {
        at = o % dim;
    } else {
        return 0;
    }
    *r = at < 0 ? (tgi_range){0, 0} : (tgi_range){at, at + 1};
    return 1;
}

/* What is asked for is the hull of what the rows are made of, no row more; of Tile the whole
 * where it is several times there, of Pad a pixel of the border beside a margin. */
static void check_tight(const op_node *n, const tgi_box *box, const tgi_box *need)
{
    for (int axis = 0; axis < 3; axis++) {
        const int k = n->dst[0].rank - 3 + axis;
        tgi_range all = {0, 0}, one = all;
        int known = k >= 2 && n->src[0].rank == n->dst[0].rank;
        for (int64_t o = known ? box->ax[k].lo : 0; known && o < box->ax[k].hi; o++) {
            known = row_made_of(n, axis, o, &one);
            all = tgi_range_hull(all, one);
        }
        if (!known || tgi_range_empty(all))
            continue;
        if (strcmp(n->op->name, "Tile") == 0 &&
            box->ax[k].lo / n->src[0].dim[k] != (box->ax[k].hi - 1) / n->src[0].dim[k])
            all = (tgi_range){0, n->src[0].dim[k]};
        tgi_pad p;
        if (strcmp(n->op->name, "Pad") == 0 && tgi_pad_map(&n->ctx, &p, NULL) == TG_OK)
            all = tgi_range_hull(all, tgi_clip_nonempty((tgi_range){box->ax[k].lo - p.p0[k],
                                                                    box->ax[k].hi - p.p0[k]},
                                                        n->src[0].dim[k]));
        tg_checks++;
        if (all.lo != need->ax[k].lo || all.hi != need->ax[k].hi)
            case_complain("need is not what the rows are made of");
    }
}

static void check_monotone(const op_node *n, uint64_t *seed)
{
    for (int t = 0; t < 100; t++) {
        const tgi_box a = box_random(&n->dst[0], seed), b = box_random(&n->dst[0], seed);
        const tgi_box both = tgi_box_hull(&a, &b);
        for (int i = 0; i < n->ctx.n_src; i++) {
            tgi_box small, large;
            if (!n->data[i] || n->is_const[i])
                continue;
            tgi_op_need(n->op, &n->ctx, 0, &a, i, &small);
            tgi_op_need(n->op, &n->ctx, 0, &both, i, &large);
            check_slide(n, i, &a, seed);
            if (i == 0)
                check_tight(n, &a, &small);
            tg_checks++;
            if (tgi_box_empty(&small) || !tgi_box_contains(&large, &small))
                case_complain("need is empty or not monotone");
        }
    }
}

/* The step from each input as the running value gives what ref gave, up to float rounding. */
static void check_steps(const op_node *n, const float *whole)
{
    const size_t count = desc_floats(&n->dst[0]);
    for (int chain = 0; chain < n->ctx.n_src && n->op->as_step; chain++) {
        tgi_epi_step s;
        if (n->is_const[chain] || !n->data[chain] || !n->op->as_step(&n->ctx, chain, &s))
            continue;
        const int other = n->ctx.n_src > 1 ? 1 - chain : chain;
        const float *acc = n->data[chain], *o = s.src >= 0 ? n->data[s.src] : n->data[other];
        const size_t others = desc_floats(&n->src[other]);
        const size_t plane = count / (size_t)n->dst[0].dim[1];
        for (size_t i = 0; i < count; i++) {
            const double v = s.src >= 0   ? (double)o[i]
                             : others > 1 ? (double)o[i / plane % others]
                                          : (double)s.a;
            const double want = (double)whole[i], got = plain_step(&s, (double)acc[i], v);
            tg_checks++;
            if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want))) &&
                !(isnan(got) && isnan(want))) {
                fprintf(stderr, "%s: step from input %d gives %g at %zu, ref %g\n", case_where,
                        chain, got, i, want);
                tg_failures++;
                break;
            }
        }
    }
}

static int same_in_box(const tgi_desc *d, const tgi_box *b, const float *p, const float *q)
{
    const tgi_range rz = tgi_box_axis(b, TGI_Z), ry = tgi_box_axis(b, TGI_Y),
                    rx = tgi_box_axis(b, TGI_X);
    for (int64_t c = 0; c < d->dim[1]; c++)
        for (int64_t z = rz.lo; z < rz.hi; z++)
            for (int64_t y = ry.lo; y < ry.hi; y++) {
                const int64_t row =
                    ((c * tgi_desc_axis(d, TGI_Z) + z) * tgi_desc_axis(d, TGI_Y) + y) *
                    tgi_desc_axis(d, TGI_X);
                if (memcmp(p + row + rx.lo, q + row + rx.lo,
                           (size_t)(rx.hi - rx.lo) * sizeof *p) != 0)
                    return 0;
            }
    return 1;
}

static void check_boxes(const op_node *n, float *const *whole, float *const *part,
                        uint64_t *seed)
{
    static const int lanes[] = {1, 8, 16};
    for (int t = 0; t < 24; t++) {
        const tgi_box box = box_random(&n->dst[0], seed);
        const int cb = lanes[tg_rand_in(seed, 0, 2)];
        tgi_err err = {0};
        int clean = 1;
        tg_checks++;
        if (node_run_box(n, &box, cb, 3, seed, part, &clean, &err) != TG_OK) {
            case_complain(err.text);
            return;
        }
        if (!clean)
            case_complain("wrote outside the box, or an unused lane is not zero");
        for (int k = 0; k < n->ctx.n_dst; k++) {
            const tgi_box b = box_of_output(n, k, &box);
            if (!same_in_box(&n->dst[k], &b, whole[k], part[k])) {
                case_complain("a box differs from the whole");
                return;
            }
        }
    }
}

/* On a device there is no reference behind a missing variant: those are listed. */
static void not_taken(const op_node *n, const tgi_kernel_set *be)
{
    if (be->whole_pixels)
        printf("no variant on %s: %s, %s\n", be->name, n->op->name, case_where);
}

#ifdef TG_TEST_DEVICE
/* Weights travel in the element type: what `ref` computes with those that it holds. */
static void expect_of(const op_node *n, tg_dtype element, float *const *ref, uint64_t *seed)
{
    const tgi_box full = tgi_box_full(&n->dst[0]);
    tgi_err err = {0};
    int clean = 1;
    for (int i = 0; i < n->ctx.n_src; i++)
        if (n->is_const[i] && n->data[i] && n->src[i].dtype == TG_DTYPE_F32 &&
            n->src[i].rank >= 4)
            device_round(element, n->data[i], desc_floats(&n->src[i]));
    CHECK_OK(node_run_box(n, &full, 1, 1, seed, ref, &clean, &err), err);
}
#endif

/* Every variant that takes the node: near ref, and any box equal to its own whole. The bound
 * has room for sums of a few hundred products of numbers below 2, and for functions good to
 * some units in the last place; one wrong tap or pixel is off by 0.1 and more. */
static void check_variants(const op_node *n, float *const *ref, float *const *whole,
                           float *const *part, uint64_t *seed)
{
    const tgi_box full = tgi_box_full(&n->dst[0]);
    const tgi_kernel_set *be;
    for (int at = 0; (be = runner_backend(at)); at++) {
        op_runner r;
        int clean = 1, same = 1;
#ifdef TG_TEST_DEVICE
        expect_of(n, be->element, ref, seed);
#endif
        if (!runner_open(&r, n, be, seed)) {
            not_taken(n, be);
            continue;
        }
        variant_runs++;
        node_run_variant(n, &r, &full, seed, whole, &clean);
        for (int k = 0; k < n->ctx.n_dst; k++)
            same &= case_near(whole[k], ref[k], desc_floats(&n->dst[k]), be->element, NULL);
        for (int t = 0; t < 6 && same && clean; t++) {
            const tgi_box box = box_random(&n->dst[0], seed);
            node_run_variant(n, &r, &box, seed, part, &clean);
            for (int k = 0; k < n->ctx.n_dst; k++) {
                const tgi_box b = box_of_output(n, k, &box);
                same &= same_in_box(&n->dst[k], &b, whole[k], part[k]);
            }
        }
        tg_checks++;
        if (!same || !clean) {
            fprintf(stderr, "%s on %s: ", r.v->name, be->name);
            case_complain(!clean ? "wrote outside the box, or an unused lane is not zero"
                                 : "differs from ref, or a box from the whole");
        }
        runner_close(&r);
    }
}

static void check_exact(const op_node *n, uint64_t *seed)
{
    float *whole[TGI_OP_MAX_DST] = {0}, *part[TGI_OP_MAX_DST] = {0},
          *fast[TGI_OP_MAX_DST] = {0};
    const tgi_box full = tgi_box_full(&n->dst[0]);
    tgi_err err = {0};
    int clean = 1, finite = 0;
#ifdef TG_TEST_DEVICE
    for (int i = 0; i < n->ctx.n_src; i++) /* numbers that every element type holds */
        if (!n->is_const[i] && n->src[i].dtype == TG_DTYPE_F32)
            for (int t = 0; t < 2; t++)
                device_round(t ? TGI_DTYPE_BF16 : TG_DTYPE_F16, n->data[i],
                             desc_floats(&n->src[i]));
#endif
    for (int k = 0; k < n->ctx.n_dst; k++) {
        whole[k] = tgi_calloc(TGI_TAG_MISC, desc_floats(&n->dst[k]), sizeof(float));
        part[k] = tgi_calloc(TGI_TAG_MISC, desc_floats(&n->dst[k]), sizeof(float));
        fast[k] = tgi_calloc(TGI_TAG_MISC, desc_floats(&n->dst[k]), sizeof(float));
    }
    tg_checks++;
    if (node_run_box(n, &full, 1, 1, seed, whole, &clean, &err) != TG_OK) {
        case_complain(err.text);
    } else {
        for (size_t i = 0; i < desc_floats(&n->dst[0]); i++)
            finite |= isfinite(whole[0][i]);
        if (!finite)
            case_complain("not one finite result: poison was read");
        check_boxes(n, whole, part, seed);
        check_variants(n, whole, fast, part, seed);
        check_monotone(n, seed);
        check_steps(n, whole[0]);
    }
    for (int k = 0; k < n->ctx.n_dst; k++) {
        tgi_free(whole[k]);
        tgi_free(part[k]);
        tgi_free(fast[k]);
    }
}

/* `eval` of the node, whose inputs all are constants, against a list. */
static void check_values(op_node *n, const char *list)
{
    double want[64];
    const int count = case_numbers(list, ',', want, 64);
    tgi_err err = {0};
    int64_t n_got = 0;
    tgi_desc_count(&n->dst[0], &n_got);
    void *out = tgi_calloc(TGI_TAG_MISC, (size_t)n_got + 1, 8);
    void *dst[TGI_OP_MAX_DST] = {out};
    tg_checks++;
    if (!n->op->eval || n->op->eval(&n->ctx, dst, &err) != TG_OK) {
        case_complain(err.text[0] ? err.text : "no eval");
        tgi_free(out);
        return;
    }
    for (int i = 0; i < count && i < n_got; i++) {
        const tgi_constant result = {n->dst[0], out};
        const double got = tgi_num_at(&result, i), near = 1e-6 * (1 + fabs(want[i]));
        tg_checks++;
        if (!(fabs(got - want[i]) <= near) && !(isnan(got) && isnan(want[i])) &&
            !(isinf(got) && isinf(want[i]) && (got > 0) == (want[i] > 0))) {
            fprintf(stderr, "%s: element %d is %.9g, expected %.9g\n", case_where, i, got,
                    want[i]);
            tg_failures++;
        }
    }
    if (count != n_got)
        case_complain("another number of values");
    tgi_free(out);
}

/* Evaluate and forget. */
static tg_status eval_anywhere(op_node *n, tgi_err *err)
{
    void *dst[TGI_OP_MAX_DST] = {0};
    for (int k = 0; k < n->ctx.n_dst; k++)
        dst[k] = tgi_calloc(TGI_TAG_MISC, desc_floats(&n->dst[k]) + 1, 8);
    const tg_status st = n->op->eval(&n->ctx, dst, err);
    for (int k = 0; k < n->ctx.n_dst; k++)
        tgi_free(dst[k]);
    return st;
}

/* ---- Files ------------------------------------------------------------------------------- */

static void run_case(const tgi_op *op, char *line, uint64_t *seed)
{
    char *attrs = strsep(&line, "|"), *inputs = strsep(&line, "|"), *want = strsep(&line, "|");
    op_node n;
    tgi_err err = {0};
    if (!want || !case_node(&n, op, case_trim(attrs), inputs, seed)) {
        case_complain("the line does not parse");
        if (want)
            node_close(&n);
        return;
    }
    want = case_trim(want);
    char *rest = strchr(want, ' ');
    rest = rest ? (*rest = 0, case_trim(rest + 1)) : want + strlen(want);
    if (strcmp(want, "values") == 0)
        for (int i = 0; i < n.ctx.n_src; i++)
            n.is_const[i] = n.data[i] != NULL;
    tg_status st = node_bind(&n, &err);
    if (strcmp(want, "error") == 0) {
        if (st == TG_OK && n.op->eval && tgi_all_const(&n.ctx))
            st = eval_anywhere(&n, &err);
        char *text = strchr(rest, ' ');
        if (text)
            *text++ = 0;
        CHECK_STR(tg_status_name(st), rest);
        if (!text || !strstr(err.text, text))
            case_complain(err.text[0] ? err.text : "no error");
    } else if (st != TG_OK) {
        case_complain(err.text);
    } else if (strcmp(want, "exact") == 0) {
        if (check_shapes(&n, rest))
            check_exact(&n, seed);
    } else {
        char *list = strchr(rest, ' ');
        list = list ? (*list = 0, case_trim(list + 1)) : rest + strlen(rest);
        if (check_shapes(&n, rest))
            check_values(&n, list);
    }
    node_close(&n);
}

static char **only; /* these operators' files, of all where there are none; NULL ends them */

static int wanted(const char *symbol)
{
    for (int i = 0; only[i]; i++)
        if (strcmp(only[i], symbol) == 0)
            return 1;
    return !only[0];
}

static void test_every_operator_keeps_its_contract(void)
{
    int total = 0;
    for (int i = 0; case_symbols[i]; i++) {
        if (!wanted(case_symbols[i]))
            continue;
        const int cases = case_each_line(case_symbols[i], run_case, tgi_op_at(i));
        case_where = case_symbols[i];
        tg_checks++;
        if (cases == 0)
            case_complain("no cases: tests/cases has no lines for this operator");
        total += cases;
    }
    printf("%d cases, %d of them by a variant (counted per instruction set)\n", total,
           variant_runs);
}

static void test_operators_are_found_by_their_onnx_name(void)
{
    CHECK(tgi_op_find("Conv") != NULL);
    CHECK(tgi_op_find("conv") == NULL);
    for (int i = 0; tgi_op_at(i); i++)
        CHECK(tgi_op_find(tgi_op_at(i)->name) == tgi_op_at(i));
}

static void test_every_operator_can_be_run_or_folded(void)
{
    for (int i = 0; tgi_op_at(i); i++) {
        const tgi_op *op = tgi_op_at(i);
        CHECK(op->infer != NULL);
        CHECK(op->op_class == TGI_OP_DENSE ? op->eval && !op->ref : op->ref != NULL);
        CHECK(op->op_class != TGI_OP_WHOLE || op->rule || op->slide);
        CHECK((op->attrs == NULL) == (op->attrs_size == 0));
    }
}

/* Scales that are fractions of a power of two slide, and they do so as their taps lie: near the
 * image's borders, in its middle and far away. */
static void test_a_resize_slides_as_its_taps_lie(void)
{
    uint64_t seed = 5;
    int slid = 0;
    for (int t = 0; t < 20000; t++) {
        const int64_t down = (int64_t)1 << tg_rand_in(&seed, 0, 6),
                      up = tg_rand_in(&seed, 1, 255);
        const int64_t in =
            tg_rand_in(&seed, 0, 2) ? tg_rand_in(&seed, 1, 40) : tg_rand_in(&seed, 1, 1 << 22);
        resize_attrs a = {.mode = (int)tg_rand_in(&seed, 0, 2),
                          .coord = (int)tg_rand_in(&seed, 0, 6),
                          .nearest = (int)tg_rand_in(&seed, 0, 3),
                          .scales = {.n = 4, .v = {1, 1, (float)up / (float)down, 1}},
                          .axes = {.n = -1}};
        const tgi_desc src = {TG_DTYPE_F32, 4, {1, 1, in, 1}};
        tgi_desc dst;
        const tgi_op_ctx ctx = {
            .attrs = &a, .opset = 19, .n_src = 1, .n_dst = 1, .src = &src, .dst = &dst};
        tgi_resize_axis ax[3];
        tgi_slide s;
        tgi_rule rule;
        tgi_err e = {0};
        if (in * up / down < 1 || a.coord == TGI_COORD_TF_CROP_AND_RESIZE)
            continue;
        CHECK_OK(tgi_resize_infer(&ctx, &dst, &e), e);
        CHECK_OK(tgi_resize_axes(&ctx, ax, &e), e);
        tgi_resize_rule(&ctx, 0, TGI_Y, &rule);
        const int even = tgi_resize_slide(&ctx, 0, TGI_Y, &s);
        slid += even;
        for (int i = 0; i < 12; i++) {
            const int64_t n = dst.dim[2], o = i < 4   ? tgi_min(i, n - 1)
                                              : i < 8 ? tgi_max(0, n - 1 - i)
                                                      : tg_rand_in(&seed, 0, n - 1);
            const tgi_range r = tgi_rule_need(&rule, (tgi_range){o, o + 1});
            tgi_taps taps;
            tgi_resize_taps(&ax[TGI_Y], o, &taps);
            CHECK_EQ(r.lo, taps.at[0]);
            CHECK_EQ(r.hi, taps.at[taps.n - 1] + 1);
            if (!even)
                continue;
            const tgi_range q = tgi_slide_need(&s, (tgi_range){o, o + 1});
            CHECK_EQ(q.lo, r.lo);
            CHECK_EQ(q.hi, r.hi);
        }
    }
    CHECK(slid > 10000);
}

int main(int argc, char **argv)
{
    (void)argc;
    only = argv + 1;
#ifdef TG_TEST_DEVICE
    if (!runner_backend(0))
        return 77;
#endif
    printf("seed: 88172645463325252 + line number\n");
    RUN(test_every_operator_keeps_its_contract);
    RUN(test_a_resize_slides_as_its_taps_lie);
    RUN(test_operators_are_found_by_their_onnx_name);
    RUN(test_every_operator_can_be_run_or_folded);
    return TEST_END();
}
