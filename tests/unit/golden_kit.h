/* golden_kit.h - nodes with the operator goldens of ProPainter's conformance data as inputs, and their
 * results against the goldens' tolerances. By reference, then by the variants of each instruction
 * set, direct ones; with TG_TEST_DEVICE by a device's, in float32 and in halves. */
#ifndef TG_GOLDEN_KIT_H
#define TG_GOLDEN_KIT_H

#include "engine/base/json.h"
#include "io/npy.h"
#include "kernels/ops/op_attrs.h"
#include "tests/golden_bounds.h"
#include "tests/recipe_weights.h"
#include "tests/unit/op_harness.h"

#ifndef RECIPE /* the folder of the conformance data: whoever includes this says where it is */
#define RECIPE ""
#endif
#define OPS RECIPE "/ops"

static uint64_t seed = 88172645463325252ull;
static const tgi_kernel_set *set; /* NULL: references, of what is tested */
static tgi_json *ops_index;

/* ---- Data -------------------------------------------------------------------------------- */

static inline float *floats(size_t n)
{
    float *p = calloc(n, sizeof *p);
    if (!p)
        abort();
    return p;
}

/* As float32; tgi_free. */
static inline float *load(const char *name, const char *file, tgi_desc *d)
{
    char path[512];
    void *data = NULL;
    tgi_err err = {0};
    snprintf(path, sizeof path, OPS "/%s/%s.npy", name, file);
    CHECK_OK(tgi_npy_load(path, 0, d, &data, &err), err);
    if (!data || d->dtype == TG_DTYPE_F32)
        return data;
    const tgi_constant given = {*d, data};
    float *p = tgi_malloc(TGI_TAG_MISC, (desc_floats(d) + 1) * sizeof *p);
    for (size_t i = 0; p && i < desc_floats(d); i++)
        p[i] = (float)tgi_num_at(&given, (int64_t)i);
    d->dtype = TG_DTYPE_F32;
    tgi_free(data);
    return p;
}

static inline const tgi_json *case_of(const char *name)
{
    const tgi_json *c = tgi_json_first(tgi_json_get(ops_index, "cases"));
    for (const char *is = ""; c; c = tgi_json_next(c))
        if (tgi_json_str(tgi_json_get(c, "name"), &is) && strcmp(is, name) == 0)
            break;
    return c;
}

/* An output of a case, as the file has it. */
static inline void compare_within(const char *name, const char *output, golden_share share,
                                  const float *got)
{
    const tgi_json *t = tgi_json_get(tgi_json_get(case_of(name), "tolerance"), output);
    char what[96];
    tgi_desc d;
    float *want = load(name, output, &d);
    const size_t n = want ? desc_floats(&d) : 0;
    snprintf(what, sizeof what, "%s %s, %s", name, output, set ? set->name : "reference");
    CHECK(n);
    golden_check(what, t, set ? set->element : TG_DTYPE_F32, share, got, want, n);
    tgi_free(want);
}

static inline void compare(const char *name, const char *output, const float *got)
{
    compare_within(name, output, GOLDEN_SHARE, got);
}

/* ---- Nodes ------------------------------------------------------------------------------- */

static inline op_node open_node(const char *op, int n_src)
{
    op_node n;
    node_open(&n, tgi_op_find(op), 18, n_src, 1);
    n.exact = 1;
    return n;
}

static inline void give(op_node *n, int i, const tgi_desc *d, const float *data, int is_const)
{
    n->src[i] = *d;
    n->is_const[i] = is_const;
    memcpy(node_data(n, i), data, desc_floats(d) * sizeof *data);
}

static inline tgi_desc shape4(int64_t n, int64_t c, int64_t h, int64_t w)
{
    return (tgi_desc){TG_DTYPE_F32, 4, {n, c, h, w}};
}

/* The node's result, dense; the node is closed. `known`: of an operator that others test. */
static inline float *run(op_node *n, int known, tgi_desc *d)
{
    const tgi_kernel_set *be = set;
    for (int i = 0; known && !set && runner_backend(i); i++)
        be = runner_backend(i);
    tgi_err err = {0};
    op_runner r;
    int clean = 1;
    CHECK_OK(node_bind(n, &err), err);
    const tgi_box full = tgi_box_full(&n->dst[0]);
    float *out = floats(desc_floats(&n->dst[0]));
    const int fast = be && runner_open(&r, n, be, &seed);
    CHECK(fast || !golden_on_device()); /* there it would be the processor that was tested */
    if (fast) {
        node_run_variant(n, &r, &full, &seed, &out, &clean);
        runner_close(&r);
    } else {
        CHECK_OK(node_run_box(n, &full, 1, 1, &seed, &out, &clean, &err), err);
    }
    CHECK(clean);
    *d = n->dst[0];
    node_close(n);
    return out;
}

/* The i-th set that is tested: -1, references, which no device has. */
static inline int golden_set(int i)
{
    set = i < 0 ? NULL : runner_backend(i);
    return set ? set->element != TGI_DTYPE_BF16 : i < 0;
}

/* fn by references, then by each instruction set; nothing where there are no goldens, or no device to test. */
static inline void golden_each_set(void (*fn)(void))
{
    tgi_err err = {0};
    if (!tg_has(OPS "/index.json"))
        return;
    CHECK_OK(tgi_json_load(OPS "/index.json", &ops_index, &err), err);
    for (int i = golden_on_device() ? 0 : -1; golden_set(i); i++)
        fn();
    tgi_json_free(&ops_index);
}

/* 77 where a device is to be tested and there is none. */
static inline int golden_none(void)
{
    return golden_on_device() && !runner_backend(0) ? 77 : 0;
}

#endif
