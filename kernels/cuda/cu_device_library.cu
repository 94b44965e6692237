/* cu_device_library.cu - cuBLASLt as a device has it: opened, tried, closed.
 *
 * What the library takes on the device it takes when it is opened (its kernels, as
 * CUDA_MODULE_LOADING=EAGER asks; the command sets it) or when it first multiplies: so each
 * type of numbers is multiplied once here, and the memory that is free afterwards stays free.
 * The numbers are small and whole, so every order of their sums has the same result, and it is
 * known. */
#include "kernels/cuda/cu_plugin.cuh"

#include <string.h>

#define WORKSPACE_STEP ((size_t)256) /* from one queue's to the next: its alignment */
#define SIDE 32                      /* of the matrices that are tried */
#define MATRIX (SIDE * SIDE)
#define NUMBERS (3 * MATRIX + SIDE) /* A, B, D and a bias */

static float number_a(int row, int k)
{
    return (float)((row * 7 + k * 3) % 5 - 2);
}
static float number_b(int k, int column)
{
    return (float)((k + column * 2) % 3 - 1);
}

/* At most 32 * 2 + 3 of either sign: whole in all types. */
static float number_d(int row, int column)
{
    float sum = (float)(row % 4);
    for (int k = 0; k < SIDE; k++)
        sum += number_a(row, k) * number_b(k, column);
    return sum > 0 ? sum : 0;
}

static float as_float(float v)
{
    return v;
}
static float as_float(__half v)
{
    return __half2float(v);
}
static float as_float(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}
static void put(float *at, float v)
{
    *at = v;
}
static void put(__half *at, float v)
{
    *at = __float2half_rn(v);
}
static void put(__nv_bfloat16 *at, float v)
{
    *at = __float2bfloat16_rn(v);
}

static void say_product(cu_product *p, tg_dtype type)
{
    memset(p, 0, sizeof *p);
    cu_product_form *f = &p->form;
    f->m = f->n = f->k = SIDE;
    f->batch = 1;
    f->lda = f->ldb = f->ldc = f->ldd = SIDE;
    f->type = type;
    f->transposed_a = f->bias = f->relu = 1;
    f->align_a = f->align_b = f->align_d = CU_PRODUCT_ALIGNMENT;
    f->alpha = 1;
    p->most_n = SIDE;
    p->most_batch = 1;
    p->n_pieces = 1;
}

template <class T>
static tg_status try_at(tgi_device *d, cu_library *l, tg_dtype type, T *device, tgi_err *err)
{
    T host[NUMBERS];
    const cudaStream_t q = d->queue[TGI_QUEUE_COMPUTE];
    cu_library_product *o = NULL;
    cu_product p;
    say_product(&p, type);
    p.bias = device + 3 * MATRIX;
    p.piece[0] = {device, device + MATRIX, device + 2 * MATRIX, SIDE, 1};
    for (int i = 0; i < SIDE; i++) {
        put(&host[3 * MATRIX + i], (float)(i % 4));
        for (int k = 0; k < SIDE; k++) {
            put(&host[i * SIDE + k], number_a(i, k));
            put(&host[MATRIX + i * SIDE + k], number_b(k, i));
            put(&host[2 * MATRIX + i * SIDE + k], -1);
        }
    }
    TGI_TRY(cu_library_product_open(l, &p, cu_library_name(l), &o, err));
    cudaError_t e = cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, q);
    tg_status st =
        e == cudaSuccess
            ? cu_library_product_run(o, &p, cu_device_workspace(d, TGI_QUEUE_COMPUTE), q, err)
            : TG_OK;
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(host, device, sizeof host, cudaMemcpyDeviceToHost, q);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(q);
    cu_library_product_close(&o);
    if (st != TG_OK) /* the device is whole, unless it says otherwise */
        return e == cudaSuccess ? TG_E_UNSUPPORTED : cu_keep(d, TG_E_DEVICE, err);
    TGI_TRY(cu_answer(d, e, "the library's first product", NULL, err));
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            if (as_float(host[2 * MATRIX + column * SIDE + row]) != number_d(row, column))
                return tgi_fail(err, TG_E_UNSUPPORTED, "%s computes wrongly: %g instead of %g",
                                cu_library_name(l),
                                (double)as_float(host[2 * MATRIX + column * SIDE + row]),
                                (double)number_d(row, column));
    return TG_OK;
}

static tg_status try_types(tgi_device *d, cu_library *l, void *at, tgi_err *err)
{
    cudaDeviceProp p = {};
    CU_TRY(d, cudaGetDeviceProperties(&p, d->id), err);
    TGI_TRY(try_at(d, l, TG_DTYPE_F32, (float *)at, err));
    TGI_TRY(try_at(d, l, TG_DTYPE_F16, (__half *)at, err));
    return p.major >= 8 ? try_at(d, l, TGI_DTYPE_BF16, (__nv_bfloat16 *)at, err) : TG_OK;
}

static tg_status try_out(tgi_device *d, cu_library *l, tgi_err *err)
{
    void *at = NULL;
    CU_TRY(d, cudaMalloc(&at, NUMBERS * sizeof(float)), err);
    const tg_status st = try_types(d, l, at, err);
    const cudaError_t e = cudaFree(at);
    return st != TG_OK ? st : cu_answer(d, e, "cudaFree", NULL, err);
}

static tg_status open_library(tgi_device *d, tgi_err *err)
{
    int runtime = 0;
    cu_library *l = NULL;
    (void)cudaRuntimeGetVersion(&runtime);
    tg_status st = cu_library_open(runtime / 1000, &l, err);
    if (st == TG_OK)
        st = cu_answer(d, cudaMalloc(&d->workspaces, TGI_QUEUE_COUNT * WORKSPACE_STEP),
                       "cudaMalloc", NULL, err);
    if (st == TG_OK)
        st = try_out(d, l, err);
    (void)cudaGetLastError(); /* the library may have asked what a driver does not know */
    d->library = l;
    if (st != TG_OK)
        cu_device_library_close(d);
    return st;
}

void cu_device_library_close(tgi_device *d)
{
    cu_library_close(&d->library);
    if (d->workspaces)
        (void)cudaFree(d->workspaces);
    d->workspaces = NULL;
}

void *cu_device_workspace(const tgi_device *d, tgi_device_queue q)
{
    return (char *)d->workspaces + (size_t)q * WORKSPACE_STEP;
}

tg_status cu_device_library(tgi_device *d, int open, tgi_err *err)
{
    TGI_TRY(cu_enter(d, err));
    if (open)
        return d->library ? TG_OK : open_library(d, err);
    if (d->library && cu_library_products(d->library))
        return tgi_fail(err, TG_E_INTERNAL, "%s: programs are open that use it",
                        cu_library_name(d->library));
    cu_device_library_close(d);
    return TG_OK;
}

const char *cu_device_library_name(tgi_device *d)
{
    return d->library ? cu_library_name(d->library) : NULL;
}
