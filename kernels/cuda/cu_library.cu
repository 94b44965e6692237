/* cu_library.cu - see cu_library.cuh. */
#include "kernels/cuda/cu_library.cuh"

#include "kernels/cuda/cu_cublaslt.cuh"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#include "engine/base/arith.h"
#include "engine/base/mem.h"
}

#if !defined(TG_CUDA_EMULATED) && defined(__has_include)
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(CU_LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(CU_LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(CU_LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(CU_LT_MAJOR, MAJOR_VERSION);
SAME(CU_LT_MINOR, MINOR_VERSION);
SAME(CU_LT_PATCH, PATCH_LEVEL);
SAME(CU_LT_F32, CUDA_R_32F);
SAME(CU_LT_F16, CUDA_R_16F);
SAME(CU_LT_BF16, CUDA_R_16BF);
SAME(CU_LT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(CU_LT_TRANSPOSED, CUBLAS_OP_T);
SAME(CU_LT_EPILOGUE_NONE, CUBLASLT_EPILOGUE_DEFAULT);
SAME(CU_LT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU);
SAME(CU_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
SAME(CU_LT_EPILOGUE_RELU | CU_LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(CU_LT_COLUMNS, CUBLASLT_MATRIX_LAYOUT_COLS);
SAME(CU_LT_BATCHES, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CU_LT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(CU_LT_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CU_LT_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CU_LT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(CU_LT_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(CU_LT_MOST_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CU_LT_REDUCTIONS, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(CU_LT_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CU_LT_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(CU_LT_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(CU_LT_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(CU_LT_IMPLEMENTATIONS, CUBLASLT_MATMUL_PREF_IMPL_MASK);
SAME(CU_LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE);
SAME(CU_LT_SPLIT_K, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
SAME(CU_LT_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME);
SAME(sizeof(cu_lt_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(cu_lt_found), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(cu_lt_found, workspace),
     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(cu_lt_found, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
static_assert(CU_LT_NOT_FLOAT32 == (CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK |
                                    CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F |
                                    CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF |
                                    CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32),
              "implementations");
#undef SAME
#endif
#endif

#define CANDIDATES 16 /* algorithms that are looked at */

struct cu_library {
    void *so;
    cu_lt_handle handle;
    int products; /* that are open */
    char name[48];
#define MEMBER(member, symbol, result, arguments) result(*member) arguments;
    CU_LT_FUNCTIONS(MEMBER)
#undef MEMBER
};

struct cu_library_product {
    cu_library *l;
    const char *step;
    cu_product_form form;
    cu_lt_operation operation;
    cu_lt_layout a, b, c, d; /* c: only where something is added */
    cu_lt_algorithm algorithm;
    int32_t align_c;
};

/* ---- Opening ----------------------------------------------------------------------------- */

/* What a call answered that did not succeed; `step` may be NULL. */
static tg_status say(const cu_library *l, int e, const char *step, const char *call,
                     tg_status otherwise, tgi_err *err)
{
    const tg_status st =
        tgi_fail(err, e == CU_LT_ALLOC_FAILED ? TG_E_NOMEM : otherwise, "%s%s%s: %s: %s",
                 step ? step : "", step ? ": " : "", l->name, call, l->status_name(e));
    return st == TG_E_NOMEM ? tgi_err_tried(err, st, TGI_DEVICE_ASKS, 0) : st;
}

static tg_status find_functions(cu_library *l, tgi_err *err)
{
#define FIND(member, symbol, result, arguments)                                                \
    *(void **)(void *)&l->member = dlsym(l->so, #symbol);                                      \
    if (!l->member)                                                                            \
        return tgi_fail(err, TG_E_UNSUPPORTED, "cuBLASLt: the library has no " #symbol);
    CU_LT_FUNCTIONS(FIND)
#undef FIND
    return TG_OK;
}

static tg_status check_version(cu_library *l, int major, tgi_err *err)
{
    int is[3] = {0, 0, 0};
    for (int i = 0; i < 3; i++)
        if (l->property(CU_LT_MAJOR + i, &is[i]) != CU_LT_SUCCESS)
            return tgi_fail(err, TG_E_UNSUPPORTED, "cuBLASLt: the library has no version");
    snprintf(l->name, sizeof l->name, "cuBLASLt %d.%d.%d", is[0], is[1], is[2]);
    if (is[0] != major)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s: the plugin was built with CUDA %d, and needs the library of that",
                        l->name, major);
    return TG_OK;
}

static tg_status open_library(cu_library *l, int major, tgi_err *err)
{
    char file[32];
    const char *named = getenv("TEGULA_CUBLASLT");
    if (named && strcmp(named, "none") == 0)
        return tgi_fail(err, TG_E_UNSUPPORTED, "cuBLASLt: TEGULA_CUBLASLT=none");
    snprintf(file, sizeof file, "libcublasLt.so.%d", major);
    l->so = dlopen(named && *named ? named : file, RTLD_NOW | RTLD_LOCAL);
    if (!l->so) {
        const char *why = dlerror();
        return tgi_fail(err, TG_E_UNSUPPORTED, "cuBLASLt: %.200s", why ? why : file);
    }
    TGI_TRY(find_functions(l, err));
    TGI_TRY(check_version(l, major, err));
#ifdef TG_CUDA_EMULATED
    tgi_emulated_library(l->so);
#endif
    const int e = l->create(&l->handle);
    if (e != CU_LT_SUCCESS) {
        l->handle = NULL;
        return say(l, e, NULL, "cublasLtCreate", TG_E_UNSUPPORTED, err);
    }
    return TG_OK;
}

tg_status cu_library_open(int major, cu_library **out, tgi_err *err)
{
    *out = NULL;
    cu_library *l = (cu_library *)tgi_calloc(TGI_TAG_MISC, 1, sizeof *l);
    if (!l)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a library");
    const tg_status st = open_library(l, major, err);
    if (st != TG_OK)
        cu_library_close(&l);
    *out = l;
    return st;
}

void cu_library_close(cu_library **at)
{
    cu_library *l = *at;
    if (!l)
        return;
    if (l->handle)
        (void)l->destroy(l->handle);
    if (l->so)
        (void)dlclose(l->so);
    tgi_free(l);
    *at = NULL;
}

const char *cu_library_name(const cu_library *l)
{
    return l->name;
}

/* ---- A product: descriptors -------------------------------------------------------------- */

static tg_status answer(const cu_library_product *o, int e, const char *call,
                        tg_status otherwise, tgi_err *err)
{
    if (e == CU_LT_SUCCESS)
        return TG_OK;
    return say(o->l, e, o->step, call, otherwise, err);
}

/* While a program is opened: what the library does not do is done without it. */
#define TRY(call) TGI_TRY(answer(o, o->l->call, #call, TG_E_UNSUPPORTED, err))

static int type_of(const cu_product_form *f)
{
    return f->type == TG_DTYPE_F16     ? CU_LT_F16
           : f->type == TGI_DTYPE_BF16 ? CU_LT_BF16
                                       : CU_LT_F32;
}

static tg_status make_operation(cu_library_product *o, tgi_err *err)
{
    const cu_product_form *f = &o->form;
    const int32_t turned = CU_LT_TRANSPOSED;
    const void *aligned = (const void *)(uintptr_t)256; /* like the one to come */
    const uint32_t relu = f->relu ? (uint32_t)CU_LT_EPILOGUE_RELU : 0;
    const uint32_t bias = f->bias ? (uint32_t)CU_LT_EPILOGUE_BIAS : 0;
    const uint32_t epilogue = relu | bias ? relu | bias : (uint32_t)CU_LT_EPILOGUE_NONE;
    TRY(operation_new(&o->operation, CU_LT_COMPUTE_F32, CU_LT_F32));
    if (f->transposed_a)
        TRY(operation_set(o->operation, CU_LT_TRANSPOSE_A, &turned, sizeof turned));
    if (f->transposed_b)
        TRY(operation_set(o->operation, CU_LT_TRANSPOSE_B, &turned, sizeof turned));
    TRY(operation_set(o->operation, CU_LT_EPILOGUE, &epilogue, sizeof epilogue));
    if (f->bias)
        TRY(operation_set(o->operation, CU_LT_BIAS, &aligned, sizeof aligned));
    return TG_OK;
}

static tg_status make_layouts(cu_library_product *o, tgi_err *err)
{
    const cu_product_form *f = &o->form;
    const int type = type_of(f);
    const uint64_t m = (uint64_t)f->m, n = (uint64_t)f->n, k = (uint64_t)f->k;
    TRY(layout_new(&o->a, type, f->transposed_a ? k : m, f->transposed_a ? m : k, f->lda));
    TRY(layout_new(&o->b, type, f->transposed_b ? n : k, f->transposed_b ? k : n, f->ldb));
    TRY(layout_new(&o->d, type, m, n, f->ldd));
    if (f->add_c)
        TRY(layout_new(&o->c, type, m, n, f->ldc));
    TRY(layout_set(o->a, CU_LT_BATCH_STRIDE, &f->stride_a, sizeof f->stride_a));
    return TG_OK;
}

/* The layouts of n columns, that many matrices. Only what is not transposed has other columns
 * than the form's. */
static int set_sizes(const cu_library_product *o, int64_t n, int64_t batch, int64_t stride_b,
                     int64_t stride_d)
{
    const uint64_t columns = (uint64_t)n;
    const int32_t count = (int32_t)batch;
    const cu_lt_layout all[] = {o->a, o->b, o->d, o->c};
    int e = CU_LT_SUCCESS;
    if (!o->form.transposed_b)
        e = o->l->layout_set(o->b, CU_LT_COLUMNS, &columns, sizeof columns);
    for (int i = 0; i < 4 && e == CU_LT_SUCCESS; i++) {
        if (!all[i])
            continue;
        e = o->l->layout_set(all[i], CU_LT_BATCHES, &count, sizeof count);
        const int64_t *stride = i == 1 ? &stride_b : i > 1 ? &stride_d : NULL;
        if (e == CU_LT_SUCCESS && stride)
            e = o->l->layout_set(all[i], CU_LT_BATCH_STRIDE, stride, sizeof *stride);
        if (e == CU_LT_SUCCESS && i > 1)
            e = o->l->layout_set(all[i], CU_LT_COLUMNS, &columns, sizeof columns);
    }
    return e;
}

/* ---- A product: its algorithm ------------------------------------------------------------ */

static tg_status set_wishes(const cu_library_product *o, cu_lt_preference wish, tgi_err *err)
{
    const uint64_t workspace = CU_LIBRARY_WORKSPACE, float32 = ~CU_LT_NOT_FLOAT32;
    const uint32_t reductions = CU_LT_REDUCTION_NONE;
    const uint32_t a = (uint32_t)o->form.align_a, b = (uint32_t)o->form.align_b,
                   c = (uint32_t)o->align_c, d = (uint32_t)o->form.align_d;
    TRY(preference_set(wish, CU_LT_MOST_WORKSPACE, &workspace, sizeof workspace));
    TRY(preference_set(wish, CU_LT_REDUCTIONS, &reductions, sizeof reductions));
    TRY(preference_set(wish, CU_LT_ALIGNMENT_A, &a, sizeof a));
    TRY(preference_set(wish, CU_LT_ALIGNMENT_B, &b, sizeof b));
    TRY(preference_set(wish, CU_LT_ALIGNMENT_C, &c, sizeof c));
    TRY(preference_set(wish, CU_LT_ALIGNMENT_D, &d, sizeof d));
    if (type_of(&o->form) == CU_LT_F32)
        TRY(preference_set(wish, CU_LT_IMPLEMENTATIONS, &float32, sizeof float32));
    return TG_OK;
}

/* The algorithm's own word of how it sums. What it has no word for is not split. */
static int splits(const cu_library *l, const cu_lt_algorithm *a)
{
    int32_t parts = 0;
    uint32_t reduction = 0;
    size_t n = 0;
    if (l->configured(a, CU_LT_SPLIT_K, &parts, sizeof parts, &n) != CU_LT_SUCCESS)
        parts = 0;
    if (l->configured(a, CU_LT_REDUCTION, &reduction, sizeof reduction, &n) != CU_LT_SUCCESS)
        reduction = 0;
    return parts > 1 || reduction != CU_LT_REDUCTION_NONE;
}

/* Whether the algorithm computes pieces of that size, in the workspace there is. Rows of an
 * image are as far apart as they are long, or further. */
static int can(const cu_library_product *o, const cu_lt_algorithm *a, int64_t n, int64_t batch)
{
    const cu_product_form *f = &o->form;
    const int64_t stride_b = f->image ? n * f->ldb : f->stride_b;
    const int64_t stride_d = f->image ? n * f->ldd : f->stride_d;
    cu_lt_found found;
    memset(&found, 0, sizeof found);
    return set_sizes(o, n, batch, stride_b, stride_d) == CU_LT_SUCCESS &&
           o->l->check(o->l->handle, o->operation, o->a, o->b, o->c ? o->c : o->d, o->d, a,
                       &found) == CU_LT_SUCCESS &&
           found.workspace <= CU_LIBRARY_WORKSPACE;
}

/* The first that may be taken: decided by the form alone. */
static tg_status choose(cu_library_product *o, const cu_lt_found *found, int n, tgi_err *err)
{
    const cu_product_form *f = &o->form;
    for (int i = 0; i < n; i++) {
        const cu_lt_algorithm *a = &found[i].algorithm;
        if (found[i].state != CU_LT_SUCCESS || found[i].workspace > CU_LIBRARY_WORKSPACE ||
            splits(o->l, a) || !can(o, a, f->n, f->batch) || (f->image && !can(o, a, 1, 1)))
            continue;
        o->algorithm = *a;
        return TG_OK;
    }
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s: %s has no algorithm for products of %lld x %lld x %lld that keeps to "
                    "one order of the sum (of %d)",
                    o->step, o->l->name, (long long)f->m, (long long)f->n, (long long)f->k, n);
}

static tg_status search(cu_library_product *o, cu_lt_preference wish, tgi_err *err)
{
    const cu_product_form *f = &o->form;
    cu_lt_found found[CANDIDATES];
    int n = 0;
    memset(found, 0, sizeof found);
    TGI_TRY(set_wishes(o, wish, err));
    TGI_TRY(answer(o, set_sizes(o, f->n, f->batch, f->stride_b, f->stride_d), "layouts",
                   TG_E_UNSUPPORTED, err));
    const int e = o->l->find(o->l->handle, o->operation, o->a, o->b, o->c ? o->c : o->d, o->d,
                             wish, CANDIDATES, found, &n);
    if (e != CU_LT_NOT_SUPPORTED) /* which is an empty list */
        TGI_TRY(answer(o, e, "cublasLtMatmulAlgoGetHeuristic", TG_E_UNSUPPORTED, err));
    return choose(o, found, n < CANDIDATES ? n : CANDIDATES, err);
}

static tg_status find_algorithm(cu_library_product *o, tgi_err *err)
{
    cu_lt_preference wish = NULL;
    TRY(preference_new(&wish));
    const tg_status st = search(o, wish, err);
    (void)o->l->preference_free(wish);
    return st;
}

static tg_status prepare(cu_library_product *o, const cu_product *p, tgi_err *err)
{
    const cu_product_form *f = &o->form;
    o->align_c = f->add_c ? CU_PRODUCT_ALIGNMENT : f->align_d;
    if (f->add_c)
        cu_product_align(&o->align_c, f->ldc, tgi_dtype_size((tg_dtype)f->type));
    TGI_TRY(make_operation(o, err));
    TGI_TRY(make_layouts(o, err));
    TGI_TRY(find_algorithm(o, err));
    const int64_t together = tgi_min(p->most_n * p->most_batch, CU_PRODUCT_COLUMNS);
    if (!can(o, &o->algorithm, p->most_n, p->most_batch) ||
        (f->image && !can(o, &o->algorithm, together, 1)))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "%s: %s: its algorithm does not compute %lld matrices of %lld columns",
                        o->step, o->l->name, (long long)p->most_batch, (long long)p->most_n);
    return TG_OK;
}

tg_status cu_library_product_open(cu_library *l, const cu_product *p, const char *step,
                                  cu_library_product **out, tgi_err *err)
{
    *out = NULL;
    cu_library_product *o = (cu_library_product *)tgi_calloc(TGI_TAG_PLAN, 1, sizeof *o);
    if (!o)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a product");
    o->l = l;
    o->step = step;
    memcpy(&o->form, &p->form, sizeof o->form);
    (void)__atomic_add_fetch(&l->products, 1, __ATOMIC_RELAXED);
    const tg_status st = prepare(o, p, err);
    if (st != TG_OK)
        cu_library_product_close(&o);
    *out = o;
    return st;
}

void cu_library_product_close(cu_library_product **at)
{
    cu_library_product *o = *at;
    if (!o)
        return;
    const cu_lt_layout all[] = {o->a, o->b, o->c, o->d};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            (void)o->l->layout_free(all[i]);
    if (o->operation)
        (void)o->l->operation_free(o->operation);
    (void)__atomic_sub_fetch(&o->l->products, 1, __ATOMIC_RELAXED);
    tgi_free(o);
    *at = NULL;
}

int cu_library_products(const cu_library *l)
{
    return __atomic_load_n(&l->products, __ATOMIC_RELAXED);
}

/* ---- Running ----------------------------------------------------------------------------- */

static int multiple(const void *at, int32_t of)
{
    return (uintptr_t)at % (uintptr_t)of == 0;
}

/* What the algorithm was told of addresses. */
static int aligned(const cu_library_product *o, const cu_product *p, const cu_product_piece *i)
{
    const cu_product_form *f = &o->form;
    const int64_t element = (int64_t)tgi_dtype_size((tg_dtype)f->type);
    return multiple(i->a, f->align_a) && multiple(i->b, f->align_b) &&
           multiple(i->d, f->align_d) && multiple(p->c, o->align_c) &&
           multiple(p->bias, CU_PRODUCT_ALIGNMENT) &&
           (i->batch == 1 || (p->stride_b * element % f->align_b == 0 &&
                              p->stride_d * element % f->align_d == 0));
}

static tg_status run_piece(const cu_library_product *o, const cu_product *p,
                           const cu_product_piece *i, void *workspace, cudaStream_t q,
                           tgi_err *err)
{
    const cu_product_form *f = &o->form;
    if (!aligned(o, p, i))
        return tgi_fail(err, TG_E_INTERNAL, "%s: rows or arrays begin at odd addresses",
                        o->step);
    TGI_TRY(answer(o, set_sizes(o, i->n, i->batch, p->stride_b, p->stride_d), "layouts",
                   TG_E_DEVICE, err));
    return answer(o,
                  o->l->multiply(o->l->handle, o->operation, &f->alpha, i->a, o->a, i->b, o->b,
                                 &f->beta, f->add_c ? p->c : i->d, o->c ? o->c : o->d, i->d,
                                 o->d, &o->algorithm, workspace, CU_LIBRARY_WORKSPACE, q),
                  "cublasLtMatmul", TG_E_DEVICE, err);
}

tg_status cu_library_product_run(cu_library_product *o, const cu_product *p, void *workspace,
                                 cudaStream_t q, tgi_err *err)
{
    if (memcmp(&o->form, &p->form, sizeof o->form) != 0)
        return tgi_fail(err, TG_E_INTERNAL,
                        "%s: a product is another than when the program was opened", o->step);
    if (o->form.bias && p->n_pieces)
        TGI_TRY(answer(o,
                       o->l->operation_set(o->operation, CU_LT_BIAS, &p->bias, sizeof p->bias),
                       "bias", TG_E_DEVICE, err));
    for (int64_t i = 0; i < p->n_pieces; i++)
        TGI_TRY(run_piece(o, p, &p->piece[i], workspace, q, err));
    return TG_OK;
}
