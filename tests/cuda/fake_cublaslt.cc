/* fake_cublaslt.cc - a shared library that answers as cuBLASLt does, for an emulated device
 * whose memory is the host's: TEGULA_CUBLASLT names it. It looks at what it is asked as the
 * real one does, or more closely: sizes of attributes, shapes that fit each other, leading
 * dimensions, alignments that the algorithm was found for, results that overlap. And it has
 * algorithms to choose wrongly from, the first of these first:
 *
 *     stream   wants a workspace; cuts its sums where the number of columns says
 *     split    sums K in parts, which their number of columns decides
 *     cut      multiplies float32 numbers as bfloat16
 *     large    from 256 columns on; sums K backwards
 *     plain    sums K forwards
 *
 * What else it pretends comes from the environment variable TEGULA_FAKE_CUBLASLT, words apart
 * by commas:
 *
 *   version=N   its major version (13)            mib=N      memory that a handle takes
 *   nocreate    there is no handle                none       it finds no algorithm
 *   careless    it offers what was not wished     small      nothing beyond 20,000 columns
 *   none_beyond=N  it finds no algorithm for more columns than that
 *   fail=N      the N-th product from opening on fails       wrong      results are off by one
 *
 * @source cuBLAS library reference: cuBLASLt data types and functions. */
#include "tests/cuda/fake_cublaslt.h"
#include "kernels/cuda/cu_cublaslt.cuh"
#include "tests/cuda/emulated_numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
#define DECLARE(member, symbol, result, arguments)                                             \
    __attribute__((visibility("default"))) result symbol arguments;
CU_LT_FUNCTIONS(DECLARE)
#undef DECLARE
__attribute__((visibility("default"))) void tg_fake_device(const tg_fake_device_calls *c);
}

enum {
    OK = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    INVALID = 7,
    FAILED = 13,
    NOT_SUPPORTED = 15
};
enum { STREAM = 1, SPLIT, CUT, LARGE, PLAIN };
#define WORKSPACE 4096u

static tg_fake_device_calls device;
static int products, alive;

static int word(const char *name, int otherwise)
{
    const char *s = getenv("TEGULA_FAKE_CUBLASLT");
    const size_t n = strlen(name);
    for (; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : "")
        if (strncmp(s, name, n) == 0 && (s[n] == '=' || s[n] == ',' || !s[n]))
            return s[n] == '=' ? atoi(s + n + 1) : 1;
    return otherwise;
}

/* Nobody forgets a descriptor: a test that does ends here. */
__attribute__((destructor)) static void look_back(void)
{
    if (alive) {
        fprintf(stderr, "cuBLASLt: %d descriptors were forgotten\n", alive);
        abort();
    }
}

void tg_fake_device(const tg_fake_device_calls *c)
{
    device = *c;
}

/* ---- Descriptors ------------------------------------------------------------------------- */

struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld, stride;
    int32_t batches;
};
struct operation {
    int32_t turned[2];
    uint32_t epilogue;
    const void *bias;
};
struct preference {
    uint64_t workspace, implementations;
    uint32_t reductions, alignment[4];
};
struct algorithm {
    uint64_t kind, type, turned, align[4], unused;
};
static_assert(sizeof(algorithm) == sizeof(cu_lt_algorithm), "an algorithm");

static int put(void *at, size_t is, const void *value, size_t bytes)
{
    if (!value || bytes != is)
        return INVALID;
    memcpy(at, value, bytes);
    return OK;
}

int cublasLtGetProperty(int which, int *value)
{
    const int is[] = {word("version", 13), 1, 2};
    if (which < 0 || which > 2)
        return INVALID;
    *value = is[which];
    return OK;
}

const char *cublasLtGetStatusName(int status)
{
    return status == NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : status == ALLOC_FAILED  ? "CUBLAS_STATUS_ALLOC_FAILED"
           : status == INVALID       ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == FAILED        ? "CUBLAS_STATUS_EXECUTION_FAILED"
           : status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                     : "CUBLAS_STATUS_SUCCESS";
}

int cublasLtCreate(cu_lt_handle *out)
{
    if (word("nocreate", 0))
        return NOT_INITIALIZED;
    const int64_t bytes = (int64_t)word("mib", 0) << 20;
    if (bytes && device.take && !device.take(bytes))
        return ALLOC_FAILED;
    *out = (cu_lt_handle)calloc(1, sizeof bytes);
    memcpy((void *)*out, &bytes, sizeof bytes);
    products = 0;
    alive++;
    return OK;
}

int cublasLtDestroy(cu_lt_handle h)
{
    int64_t bytes;
    memcpy(&bytes, (const void *)h, sizeof bytes);
    if (bytes && device.take)
        (void)device.take(-bytes);
    free((void *)h);
    alive--;
    return OK;
}

int cublasLtMatrixLayoutCreate(cu_lt_layout *out, int type, uint64_t rows, uint64_t columns,
                               int64_t ld)
{
    *out = new layout{type, rows, columns, ld, 0, 1};
    alive++;
    return OK;
}

int cublasLtMatrixLayoutDestroy(cu_lt_layout l)
{
    delete (layout *)l;
    alive--;
    return OK;
}

int cublasLtMatrixLayoutSetAttribute(cu_lt_layout at, int which, const void *value,
                                     size_t bytes)
{
    layout *l = (layout *)at;
    return which == CU_LT_COLUMNS        ? put(&l->columns, sizeof l->columns, value, bytes)
           : which == CU_LT_BATCHES      ? put(&l->batches, sizeof l->batches, value, bytes)
           : which == CU_LT_BATCH_STRIDE ? put(&l->stride, sizeof l->stride, value, bytes)
                                         : INVALID;
}

int cublasLtMatmulDescCreate(cu_lt_operation *out, int compute, int scale)
{
    if (compute != CU_LT_COMPUTE_F32 || scale != CU_LT_F32)
        return NOT_SUPPORTED;
    *out = new operation{{0, 0}, CU_LT_EPILOGUE_NONE, NULL};
    alive++;
    return OK;
}

int cublasLtMatmulDescDestroy(cu_lt_operation o)
{
    delete (operation *)o;
    alive--;
    return OK;
}

int cublasLtMatmulDescSetAttribute(cu_lt_operation at, int which, const void *value,
                                   size_t bytes)
{
    operation *o = (operation *)at;
    return which == CU_LT_TRANSPOSE_A   ? put(&o->turned[0], sizeof(int32_t), value, bytes)
           : which == CU_LT_TRANSPOSE_B ? put(&o->turned[1], sizeof(int32_t), value, bytes)
           : which == CU_LT_EPILOGUE    ? put(&o->epilogue, sizeof o->epilogue, value, bytes)
           : which == CU_LT_BIAS        ? put(&o->bias, sizeof o->bias, value, bytes)
                                        : INVALID;
}

int cublasLtMatmulPreferenceCreate(cu_lt_preference *out)
{
    *out = new preference{0, ~(uint64_t)0, 7, {256, 256, 256, 256}};
    alive++;
    return OK;
}

int cublasLtMatmulPreferenceDestroy(cu_lt_preference p)
{
    delete (preference *)p;
    alive--;
    return OK;
}

int cublasLtMatmulPreferenceSetAttribute(cu_lt_preference at, int which, const void *value,
                                         size_t bytes)
{
    preference *p = (preference *)at;
    if (which >= CU_LT_ALIGNMENT_A && which <= CU_LT_ALIGNMENT_D)
        return put(&p->alignment[which - CU_LT_ALIGNMENT_A], sizeof(uint32_t), value, bytes);
    return which == CU_LT_MOST_WORKSPACE ? put(&p->workspace, sizeof p->workspace, value, bytes)
           : which == CU_LT_REDUCTIONS ? put(&p->reductions, sizeof p->reductions, value, bytes)
           : which == CU_LT_IMPLEMENTATIONS
               ? put(&p->implementations, sizeof p->implementations, value, bytes)
               : INVALID;
}

/* ---- What is asked ----------------------------------------------------------------------- */

struct asked {
    const operation *o;
    const layout *a, *b, *c, *d;
    uint64_t m, n, k;
};

static size_t element_of(int type)
{
    return type == CU_LT_F32 ? 4 : 2;
}

/* Every matrix as large as the operation wants it, with columns that do not overlap. */
static int look(const cu_lt_operation o, const cu_lt_layout a, const cu_lt_layout b,
                const cu_lt_layout c, const cu_lt_layout d, asked *q)
{
    *q = {(const operation *)o,
          (const layout *)a,
          (const layout *)b,
          (const layout *)c,
          (const layout *)d,
          0,
          0,
          0};
    const layout *all[] = {q->a, q->b, q->c, q->d};
    for (const layout *l : all)
        if (l->type != q->d->type || l->ld < (int64_t)l->rows || !l->rows || !l->columns ||
            l->batches != q->d->batches || l->batches < 1)
            return INVALID;
    q->m = q->d->rows;
    q->n = q->d->columns;
    q->k = q->o->turned[0] ? q->a->rows : q->a->columns;
    if ((q->o->turned[0] ? q->a->columns : q->a->rows) != q->m ||
        (q->o->turned[1] ? q->b->rows : q->b->columns) != q->n ||
        (q->o->turned[1] ? q->b->columns : q->b->rows) != q->k || q->c->rows != q->m ||
        q->c->columns != q->n)
        return INVALID;
    const int64_t rows = (int64_t)q->m, stride = q->d->stride, last = q->d->batches - 1;
    const int behind = stride >= (int64_t)(q->n - 1) * q->d->ld + rows;
    const int beside = stride >= rows && q->d->ld >= last * stride + rows;
    return last == 0 || behind || beside ? OK : INVALID;
}

static algorithm algorithm_of(const asked *q, const preference *p, int kind)
{
    algorithm a = {};
    a.kind = (uint64_t)kind;
    a.type = (uint64_t)q->d->type;
    a.turned = (uint64_t)(q->o->turned[0] + 2 * q->o->turned[1]);
    for (int i = 0; i < 4; i++)
        a.align[i] = p->alignment[i];
    return a;
}

int cublasLtMatmulAlgoGetHeuristic(cu_lt_handle, cu_lt_operation o, cu_lt_layout a,
                                   cu_lt_layout b, cu_lt_layout c, cu_lt_layout d,
                                   cu_lt_preference wish, int most, cu_lt_found *found, int *n)
{
    const preference *p = (const preference *)wish;
    const int careless = word("careless", 0);
    asked q;
    *n = 0;
    if (look(o, a, b, c, d, &q) != OK || most < 1)
        return INVALID;
    const int beyond = word("none_beyond", 0);
    if (word("none", 0) || (beyond && q.n * (uint64_t)q.d->batches > (uint64_t)beyond))
        return NOT_SUPPORTED;
    const int offered[] = {0,
                           careless || p->workspace >= WORKSPACE,
                           careless || (p->reductions & 2u) != 0,
                           q.d->type == CU_LT_F32 && (p->implementations & 2u),
                           q.n * (uint64_t)q.d->batches >= 256,
                           1};
    for (int kind = STREAM; kind <= PLAIN && *n < most; kind++) {
        if (!offered[kind])
            continue;
        const algorithm is = algorithm_of(&q, p, kind);
        memset(&found[*n], 0, sizeof *found);
        memcpy(&found[*n].algorithm, &is, sizeof is);
        found[*n].workspace = kind == STREAM ? WORKSPACE : 0;
        found[(*n)++].waves = 1;
    }
    return OK;
}

/* Numbers that the algorithm reads `bytes` at once. */
static int lies(const layout *l, const void *at, uint64_t bytes)
{
    const uint64_t e = element_of(l->type);
    return ((uint64_t)(uintptr_t)at | (uint64_t)l->ld * e |
            (l->batches > 1 ? (uint64_t)l->stride * e : 0)) %
               bytes ==
           0;
}

static int fits(const asked *q, const algorithm *a)
{
    return a->kind >= STREAM && a->kind <= PLAIN && a->type == (uint64_t)q->d->type &&
           a->turned == (uint64_t)(q->o->turned[0] + 2 * q->o->turned[1]) &&
           !(word("small", 0) && q->n * (uint64_t)q->d->batches > 20000) &&
           lies(q->a, NULL, a->align[0]) && lies(q->b, NULL, a->align[1]) &&
           lies(q->c, NULL, a->align[2]) && lies(q->d, NULL, a->align[3]);
}

int cublasLtMatmulAlgoCheck(cu_lt_handle, cu_lt_operation o, cu_lt_layout a, cu_lt_layout b,
                            cu_lt_layout c, cu_lt_layout d, const cu_lt_algorithm *how,
                            cu_lt_found *out)
{
    asked q;
    algorithm is;
    memcpy(&is, how, sizeof is);
    if (look(o, a, b, c, d, &q) != OK)
        return INVALID;
    if (!fits(&q, &is))
        return NOT_SUPPORTED;
    out->workspace = is.kind == STREAM ? WORKSPACE : 0;
    out->state = OK;
    return OK;
}

int cublasLtMatmulAlgoConfigGetAttribute(const cu_lt_algorithm *how, int which, void *value,
                                         size_t bytes, size_t *written)
{
    algorithm is;
    memcpy(&is, how, sizeof is);
    const uint32_t split = is.kind == SPLIT ? 4 : 1, reduction = is.kind == SPLIT ? 2 : 0;
    const uint32_t v = which == CU_LT_SPLIT_K ? split : reduction;
    if ((which != CU_LT_SPLIT_K && which != CU_LT_REDUCTION) || bytes != sizeof v)
        return INVALID;
    memcpy(value, &v, sizeof v);
    *written = sizeof v;
    return OK;
}

/* ---- Products ---------------------------------------------------------------------------- */

struct product {
    operation o;
    layout la, lb, lc, ld;
    algorithm how;
    const void *a, *b, *c;
    void *d;
    float alpha, beta;
    uint64_t m, n, k;
    int wrong;
};

static float get(const layout &l, const void *base, int64_t batch, uint64_t row,
                 uint64_t column)
{
    const int64_t i = batch * l.stride + (int64_t)column * l.ld + (int64_t)row;
    return l.type == CU_LT_F32   ? ((const float *)base)[i]
           : l.type == CU_LT_F16 ? __half2float(((const __half *)base)[i])
                                 : __bfloat162float(((const __nv_bfloat16 *)base)[i]);
}

static void set(const layout &l, void *base, int64_t batch, uint64_t row, uint64_t column,
                float v)
{
    const int64_t i = batch * l.stride + (int64_t)column * l.ld + (int64_t)row;
    if (l.type == CU_LT_F32)
        ((float *)base)[i] = v;
    else if (l.type == CU_LT_F16)
        ((__half *)base)[i] = __float2half_rn(v);
    else
        ((__nv_bfloat16 *)base)[i] = __float2bfloat16_rn(v);
}

static float term(const product &p, int64_t batch, uint64_t row, uint64_t column, uint64_t k,
                  float sum)
{
    float a = p.o.turned[0] ? get(p.la, p.a, batch, k, row) : get(p.la, p.a, batch, row, k);
    float b =
        p.o.turned[1] ? get(p.lb, p.b, batch, column, k) : get(p.lb, p.b, batch, k, column);
    if (p.how.kind == CUT) {
        a = __bfloat162float(__float2bfloat16_rn(a));
        b = __bfloat162float(__float2bfloat16_rn(b));
    }
    return fmaf(a, b, sum);
}

static float sum_of(const product &p, int64_t batch, uint64_t row, uint64_t column)
{
    float sum = 0, second = 0;
    const uint64_t from = p.how.kind == STREAM || p.how.kind == SPLIT ? p.n % p.k : 0;
    for (uint64_t k = 0; k < p.k; k++) {
        const uint64_t at = p.how.kind == LARGE ? p.k - 1 - k : k;
        float &s = k < from ? second : sum;
        s = term(p, batch, row, column, at, s);
    }
    return sum + second;
}

static void compute(void *arg)
{
    const product &p = *(const product *)arg;
    for (int64_t i = 0; i < p.ld.batches; i++)
        for (uint64_t column = 0; column < p.n; column++)
            for (uint64_t row = 0; row < p.m; row++) {
                float v = p.alpha * sum_of(p, i, row, column);
                if (p.beta != 0)
                    v = fmaf(p.beta, get(p.lc, p.c, i, row, column), v);
                if (p.o.epilogue & CU_LT_EPILOGUE_BIAS)
                    v += get({p.ld.type, 0, 0, 0, 0, 1}, p.o.bias, 0, row, 0);
                if (p.o.epilogue & CU_LT_EPILOGUE_RELU)
                    v = v < 0 ? 0 : v;
                set(p.ld, p.d, i, row, column, v + (float)p.wrong);
            }
}

int cublasLtMatmul(cu_lt_handle, cu_lt_operation o, const void *alpha, const void *a,
                   cu_lt_layout la, const void *b, cu_lt_layout lb, const void *beta,
                   const void *c, cu_lt_layout lc, void *d, cu_lt_layout ld,
                   const cu_lt_algorithm *how, void *workspace, size_t workspace_bytes,
                   void *stream)
{
    asked q;
    product p;
    memcpy(&p.how, how, sizeof p.how);
    if (++products == word("fail", 0))
        return FAILED;
    if (look(o, la, lb, lc, ld, &q) != OK || !a || !b || !c || !d)
        return INVALID;
    if (!fits(&q, &p.how) || !lies(q.a, a, p.how.align[0]) || !lies(q.b, b, p.how.align[1]) ||
        !lies(q.c, c, p.how.align[2]) || !lies(q.d, d, p.how.align[3]))
        return NOT_SUPPORTED;
    if (p.how.kind == STREAM && (!workspace || workspace_bytes < WORKSPACE))
        return INVALID;
    if ((q.o->epilogue & CU_LT_EPILOGUE_BIAS) &&
        (!q.o->bias || (uintptr_t)q.o->bias % element_of(q.d->type)))
        return INVALID;
    p.o = *q.o;
    p.la = *q.a;
    p.lb = *q.b;
    p.lc = *q.c;
    p.ld = *q.d;
    p.a = a;
    p.b = b;
    p.c = c;
    p.d = d;
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    p.m = q.m;
    p.n = q.n;
    p.k = q.k;
    p.wrong = word("wrong", 0);
    if (device.put && stream)
        device.put(stream, compute, &p, sizeof p);
    else
        compute(&p);
    return OK;
}
