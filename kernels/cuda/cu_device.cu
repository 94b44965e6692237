/* cu_device.cu - tgi_device_ops over the CUDA runtime: contexts, memory, queues, events.
 *
 * The runtime is linked statically and finds the driver (libcuda.so.1) itself, at its first
 * call: this library opens on a machine that has none and says so.
 *
 * MEMORY. All that the driver takes on the device beside `alloc` is taken in `open`: the
 * context, the kernels (loaded eagerly, see tgi_device_plugin), threads' stacks, and what the
 * first launch, copy and graph need, by doing each once. The context is the runtime's one of
 * the process: `close` gives back what is ours, the context itself stays until the process
 * ends.
 *
 * THREADS. Calls may come from several threads; each makes the device its own first. The queues
 * do not order themselves against any other queue of the process.
 *
 * @source CUDA Runtime API reference: error handling, stream and event management. */
#include "kernels/cuda/cu_plugin.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_CAPABILITY 75 /* the first with matrix instructions of 16-bit numbers */

struct tgi_device_event {
    cudaEvent_t at;
};

/* ---- Answers ----------------------------------------------------------------------------- */

static void keep(tgi_device *d, const char *text)
{
    pthread_mutex_lock(&d->lock);
    if (!d->broken) {
        d->broken = 1;
        snprintf(d->why, sizeof d->why, "%s", text);
    }
    pthread_mutex_unlock(&d->lock);
}

static tg_status tell(tgi_device *d, cudaError_t e, const char *call, const char *step,
                      bool taking, tgi_err *err)
{
    if (e == cudaSuccess)
        return TG_OK;
    (void)cudaGetLastError(); /* else the next call that looks would find it again */
    char text[TGI_ERR_TEXT];
    const int n = d ? snprintf(text, sizeof text, "GPU %d: ", d->id) : 0;
    snprintf(text + n, sizeof text - (size_t)n, "%s%s%.200s: %s (%s)", step ? step : "",
             step ? ": " : "", call, cudaGetErrorString(e), cudaGetErrorName(e));
    if (e == cudaErrorMemoryAllocation && taking)
        return tgi_err_tried(err, tgi_fail(err, TG_E_NOMEM, "%s", text), TGI_DEVICE_ASKS, 0);
    if (d)
        keep(d, text);
    return tgi_fail(err, TG_E_DEVICE, "%s", text);
}

tg_status cu_answer(tgi_device *d, cudaError_t e, const char *call, const char *step,
                    tgi_err *err)
{
    return tell(d, e, call, step, true, err);
}

tg_status cu_done(tgi_device *d, cudaError_t e, const char *call, const char *step,
                  tgi_err *err)
{
    return tell(d, e, call, step, false, err);
}

tg_status cu_keep(tgi_device *d, tg_status st, const tgi_err *why)
{
    if (st == TG_E_DEVICE)
        keep(d, why->text);
    return st;
}

tg_status cu_enter(tgi_device *d, tgi_err *err)
{
    char why[TGI_ERR_TEXT] = "";
    pthread_mutex_lock(&d->lock);
    if (d->broken)
        snprintf(why, sizeof why, "%s", d->why);
    pthread_mutex_unlock(&d->lock);
    if (why[0])
        return tgi_fail(err, TG_E_DEVICE, "%s", why);
    CU_DO(d, cudaSetDevice(d->id), err);
    return TG_OK;
}

/* ---- Which devices there are ------------------------------------------------------------- */

static void version_text(int v, char *out, size_t cap)
{
    snprintf(out, cap, "%d.%d", v / 1000, v % 1000 / 10);
}

/* The driver is missing, or older than the runtime that this library was built with. */
static tg_status say_driver(tgi_err *err)
{
    int driver = 0, runtime = 0;
    char has[16], wants[16];
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return tgi_fail(err, TG_E_DEVICE, "there is no NVIDIA driver (libcuda.so.1)");
    (void)cudaRuntimeGetVersion(&runtime);
    version_text(driver, has, sizeof has);
    version_text(runtime, wants, sizeof wants);
    return tgi_fail(err, TG_E_DEVICE,
                    "the driver is of CUDA %s, the plugin was built with CUDA %s: a newer "
                    "driver, or a plugin built with an older toolkit",
                    has, wants);
}

static tg_status device_count(int *n, tgi_err *err)
{
    *n = 0;
    const cudaError_t e = cudaGetDeviceCount(n);
    if (e == cudaSuccess)
        return TG_OK;
    *n = 0;
    (void)cudaGetLastError();
    if (e == cudaErrorNoDevice)
        return TG_OK;
    if (e == cudaErrorInsufficientDriver)
        return say_driver(err);
    return cu_answer(NULL, e, "cudaGetDeviceCount", NULL, err);
}

static void uuid_text(const cudaUUID_t *u, char *out, size_t cap)
{
    static const int dash_before[] = {4, 6, 8, 10};
    size_t n = (size_t)snprintf(out, cap, "GPU-");
    for (int i = 0, k = 0; i < 16 && n + 4 < cap; i++) {
        if (k < 4 && i == dash_before[k]) {
            out[n++] = '-';
            k++;
        }
        n += (size_t)snprintf(out + n, cap - n, "%02x", (unsigned)(uint8_t)u->bytes[i]);
    }
}

/* Code for 9.0 with features of that generation alone runs there alone. */
static bool has_wgmma(const cudaDeviceProp *p)
{
#if defined(TG_CUDA_WGMMA) || defined(TG_CUDA_EMULATED)
    return p->major == 9 && p->minor == 0 && p->sharedMemPerBlockOptin >= CU_PATCH_SHARED;
#else
    (void)p;
    return false;
#endif
}

static tg_status device_describe(int id, tgi_device_info *out, tgi_err *err)
{
    cudaDeviceProp p = {};
    int driver = 0, runtime = 0;
    char a[16], b[16];
    memset(out, 0, sizeof *out);
    CU_TRY(NULL, cudaGetDeviceProperties(&p, id), err);
    (void)cudaDriverGetVersion(&driver);
    (void)cudaRuntimeGetVersion(&runtime);
    version_text(driver, a, sizeof a);
    version_text(runtime, b, sizeof b);
    out->id = id;
    snprintf(out->name, sizeof out->name, "%.95s", p.name);
    uuid_text(&p.uuid, out->uuid, sizeof out->uuid);
    out->major = p.major;
    out->minor = p.minor;
    out->multiprocessors = p.multiProcessorCount;
    out->total_bytes = p.totalGlobalMem;
    out->copies_overlap = p.asyncEngineCount >= 2;
    out->bf16 = p.major >= 8;
    out->kinds = TGI_KIND_LIBRARY | (p.major >= 8 ? TGI_KIND_TF32 : 0u);
    if (has_wgmma(&p))
        out->kinds |= TGI_KIND_WGMMA;
    snprintf(out->driver, sizeof out->driver, "driver of CUDA %s, runtime %s", a, b);
    return TG_OK;
}

/* ---- A context --------------------------------------------------------------------------- */

struct probe_args {
    uint32_t *out;
    uint32_t add;
};

/* What opening a device tries: threads write their numbers. */
CU_KERNEL(cu_probe, probe_args, 32, 1)
{
    a->out[threadIdx.x] = threadIdx.x + a->add;
}

#define PROBE_BYTES (32 * sizeof(uint32_t))
#define PROBE_ADD 1234567u

/* The probe's launch in a graph, so that what a driver makes at its first one is there
 * afterwards. One that makes none is asked for the launch alone, as programs ask it. */
static cudaError_t launch_probe(void **params, cudaStream_t q)
{
    cudaKernelNodeParams node = {};
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t first;
    node.func = (void *)cu_probe;
    node.gridDim = dim3(1);
    node.blockDim = dim3(32);
    node.kernelParams = params;
    cudaError_t e = cudaGraphCreate(&graph, 0);
    if (e == cudaSuccess) {
        e = cudaGraphAddKernelNode(&first, graph, NULL, 0, &node);
        if (e == cudaSuccess)
            e = cudaGraphInstantiateWithFlags(&exec, graph, 0);
        (void)cudaGraphDestroy(graph);
    }
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        return cudaLaunchKernel((const void *)cu_probe, dim3(1), dim3(32), params, 0, q);
    }
    e = cudaGraphLaunch(exec, q);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(q);
    (void)cudaGraphExecDestroy(exec);
    return e;
}

/* One upload, one launch, one download: what the driver makes at the first of each is there
 * afterwards, and a device that does not compute is found before any image is read. */
static tg_status probe_at(tgi_device *d, uint8_t *device, tgi_err *err)
{
    uint32_t got[32] = {0};
    const cudaStream_t q = d->queue[TGI_QUEUE_COMPUTE];
    const probe_args args = {(uint32_t *)(void *)device, PROBE_ADD};
    void *at = device + PROBE_BYTES;
    void *params[1] = {&at};
    CU_TRY(d, cudaMemcpyAsync(at, &args, sizeof args, cudaMemcpyHostToDevice, q), err);
    cudaError_t e = launch_probe(params, q);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(got, device, PROBE_BYTES, cudaMemcpyDeviceToHost, q);
    if (e == cudaSuccess)
        e = cudaStreamSynchronize(q);
    TGI_TRY(cu_answer(d, e, "the first launch", NULL, err));
    for (uint32_t i = 0; i < 32; i++)
        if (got[i] != i + PROBE_ADD)
            return tgi_fail(err, TG_E_DEVICE, "GPU %d computes wrongly: %u + %u = %u", d->id, i,
                            PROBE_ADD, got[i]);
    return TG_OK;
}

static tg_status probe(tgi_device *d, tgi_err *err)
{
    void *at = NULL;
    CU_TRY(d, cudaMalloc(&at, PROBE_BYTES + sizeof(probe_args)), err);
    const tg_status st = probe_at(d, (uint8_t *)at, err);
    const cudaError_t e = cudaFree(at);
    return st != TG_OK ? st : cu_answer(d, e, "cudaFree", NULL, err);
}

static tg_status check_capability(tgi_device *d, tgi_err *err)
{
    cudaDeviceProp p = {};
    CU_TRY(d, cudaGetDeviceProperties(&p, d->id), err);
    d->shared_limit = p.sharedMemPerBlockOptin;
    if (p.major * 10 + p.minor < LEAST_CAPABILITY)
        return tgi_fail(
            err, TG_E_DEVICE,
            "GPU %d (%.95s) has compute capability %d.%d: the kernels begin at %d.%d", d->id,
            p.name, p.major, p.minor, LEAST_CAPABILITY / 10, LEAST_CAPABILITY % 10);
    cudaFuncAttributes attr;
    const cudaError_t e = cudaFuncGetAttributes(&attr, (const void *)cu_probe);
    if (e == cudaSuccess)
        return TG_OK;
    (void)cudaGetLastError();
    return tgi_fail(
        err, TG_E_DEVICE,
        "GPU %d (%.95s): the plugin has no kernels for compute capability %d.%d: %s", d->id,
        p.name, p.major, p.minor, cudaGetErrorString(e));
}

static tg_status make_context(tgi_device *d, tgi_err *err)
{
    CU_TRY(d, cudaSetDevice(d->id), err);
    CU_TRY(d, cudaFree(NULL), err); /* makes the context with every toolkit */
    TGI_TRY(check_capability(d, err));
    TGI_TRY(cu_modules_load(err));
    CU_TRY(d, cudaDeviceSetLimit(cudaLimitStackSize, CU_STACK_BYTES), err);
    for (int q = 0; q < TGI_QUEUE_COUNT; q++) {
        CU_TRY(d, cudaStreamCreateWithFlags(&d->queue[q], cudaStreamNonBlocking), err);
        CU_TRY(d,
               cudaEventCreateWithFlags(&d->end[q],
                                        cudaEventDisableTiming | cudaEventBlockingSync),
               err);
    }
    CU_TRY(d, cu_times_open(&d->times), err);
    return probe(d, err);
}

static void device_close(tgi_device **at)
{
    tgi_device *d = *at;
    if (!d)
        return;
    (void)cudaSetDevice(d->id); /* of a broken device all of these fail, and nobody minds */
    cu_device_library_close(d);
    cu_times_close(&d->times);
    for (int q = 0; q < TGI_QUEUE_COUNT; q++) {
        if (d->end[q])
            (void)cudaEventDestroy(d->end[q]);
        if (d->queue[q])
            (void)cudaStreamDestroy(d->queue[q]);
    }
    (void)cudaGetLastError();
    pthread_mutex_destroy(&d->lock);
    tgi_free(d);
    *at = NULL;
}

static tg_status device_open(int id, tgi_device **out, tgi_err *err)
{
    int n = 0;
    *out = NULL;
    TGI_TRY(device_count(&n, err));
    if (n == 0)
        return tgi_fail(err, TG_E_DEVICE, "there is no GPU %d: the driver shows none", id);
    if (id < 0 || id >= n)
        return tgi_fail(err, TG_E_DEVICE, "there is no GPU %d: ids are 0 to %d", id, n - 1);
    tgi_device *d = (tgi_device *)tgi_calloc(TGI_TAG_MISC, 1, sizeof *d);
    if (!d)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a device");
    d->id = id;
    pthread_mutex_init(&d->lock, NULL);
    const tg_status st = make_context(d, err);
    if (st != TG_OK) {
        device_close(&d);
        return st;
    }
    *out = d;
    return TG_OK;
}

/* ---- Memory ------------------------------------------------------------------------------ */

static tg_status device_memory(tgi_device *d, uint64_t *free_bytes, uint64_t *total_bytes,
                               tgi_err *err)
{
    size_t f = 0, t = 0;
    TGI_TRY(cu_enter(d, err));
    CU_TRY(d, cudaMemGetInfo(&f, &t), err);
    *free_bytes = f;
    *total_bytes = t;
    return TG_OK;
}

/* A refusal that says who asked for how much. */
static tg_status asked(tgi_device *d, cudaError_t e, const char *call, const char *by,
                       size_t bytes, tgi_err *err)
{
    const tg_status st = cu_answer(d, e, call, NULL, err);
    if (st == TG_E_NOMEM && err) {
        err->asked_by = by;
        err->tried_bytes = bytes;
    }
    return st;
}

static tg_status device_alloc(tgi_device *d, size_t bytes, void **at, tgi_err *err)
{
    *at = NULL;
    TGI_TRY(cu_enter(d, err));
    return asked(d, cudaMalloc(at, bytes ? bytes : 1), "cudaMalloc", TGI_DEVICE_ASKS, bytes,
                 err);
}

static void device_release(tgi_device *d, void *at)
{
    if (!at)
        return;
    (void)cudaSetDevice(d->id);
    (void)cu_answer(d, cudaFree(at), "cudaFree", NULL, NULL);
}

static tg_status device_pin(tgi_device *d, size_t bytes, void **at, tgi_err *err)
{
    *at = NULL;
    TGI_TRY(cu_enter(d, err));
    return asked(d, cudaHostAlloc(at, bytes ? bytes : 1, cudaHostAllocDefault), "cudaHostAlloc",
                 "pinned memory", bytes, err);
}

static void device_unpin(tgi_device *d, void *at)
{
    if (!at)
        return;
    (void)cudaSetDevice(d->id);
    (void)cu_answer(d, cudaFreeHost(at), "cudaFreeHost", NULL, NULL);
}

/* ---- Queues and events ------------------------------------------------------------------- */

static tg_status copy(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                      size_t bytes, cudaMemcpyKind kind, tgi_err *err)
{
    TGI_TRY(cu_enter(d, err));
    if (bytes == 0)
        return TG_OK;
    CU_DO(d, cu_times_begin(&d->times, q, d->queue[q]), err);
    CU_DO(d, cudaMemcpyAsync(dst, src, bytes, kind, d->queue[q]), err);
    CU_DO(d, cu_times_end(&d->times, q, d->queue[q]), err);
    return TG_OK;
}

static tg_status device_upload(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                               size_t bytes, tgi_err *err)
{
    return copy(d, q, dst, src, bytes, cudaMemcpyHostToDevice, err);
}

static tg_status device_download(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                                 size_t bytes, tgi_err *err)
{
    return copy(d, q, dst, src, bytes, cudaMemcpyDeviceToHost, err);
}

static tg_status device_copy(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                             size_t bytes, tgi_err *err)
{
    if (src)
        return copy(d, q, dst, src, bytes, cudaMemcpyDeviceToDevice, err);
    TGI_TRY(cu_enter(d, err));
    if (bytes)
        CU_DO(d, cudaMemsetAsync(dst, 0, bytes, d->queue[q]), err);
    return TG_OK;
}

static tg_status event_new(tgi_device *d, tgi_device_event **out, tgi_err *err)
{
    *out = NULL;
    TGI_TRY(cu_enter(d, err));
    tgi_device_event *e = (tgi_device_event *)tgi_calloc(TGI_TAG_MISC, 1, sizeof *e);
    if (!e)
        return tgi_fail(err, TG_E_NOMEM, "no memory for an event");
    /* Whoever waits sleeps: the processors are the readers' and writers'. */
    const tg_status st = cu_answer(
        d, cudaEventCreateWithFlags(&e->at, cudaEventDisableTiming | cudaEventBlockingSync),
        "cudaEventCreateWithFlags", NULL, err);
    if (st != TG_OK)
        tgi_free(e);
    else
        *out = e;
    return st;
}

static void event_free(tgi_device *d, tgi_device_event *e)
{
    if (!e)
        return;
    (void)cudaSetDevice(d->id);
    (void)cu_answer(d, cudaEventDestroy(e->at), "cudaEventDestroy", NULL, NULL);
    tgi_free(e);
}

static tg_status event_record(tgi_device *d, tgi_device_queue q, tgi_device_event *e,
                              tgi_err *err)
{
    TGI_TRY(cu_enter(d, err));
    CU_DO(d, cudaEventRecord(e->at, d->queue[q]), err);
    return TG_OK;
}

static tg_status queue_wait(tgi_device *d, tgi_device_queue q, tgi_device_event *e,
                            tgi_err *err)
{
    TGI_TRY(cu_enter(d, err));
    CU_DO(d, cudaStreamWaitEvent(d->queue[q], e->at, 0), err);
    return TG_OK;
}

static tg_status device_sync(tgi_device *d, tgi_device_event *e, tgi_err *err)
{
    TGI_TRY(cu_enter(d, err));
    if (e)
        return cu_done(d, cudaEventSynchronize(e->at), "cudaEventSynchronize", NULL, err);
    for (int q = 0; q < TGI_QUEUE_COUNT; q++)
        CU_DO(d, cudaEventRecord(d->end[q], d->queue[q]), err);
    for (int q = 0; q < TGI_QUEUE_COUNT; q++)
        CU_DO(d, cudaEventSynchronize(d->end[q]), err);
    return TG_OK;
}

static tg_status device_times(tgi_device *d, double seconds[3], tgi_err *err)
{
    TGI_TRY(cu_enter(d, err));
    CU_DO(d, cu_times_read(&d->times, seconds), err);
    return TG_OK;
}

/* ---- The table --------------------------------------------------------------------------- */

static const tgi_device_ops cuda_ops = {
    TGI_DEVICE_ABI,   "cuda",           cu_backend_of,     device_count,
    device_describe,  device_open,      device_close,      device_memory,
    device_alloc,     device_release,   device_pin,        device_unpin,
    device_upload,    device_download,  device_copy,       event_new,
    event_free,       event_record,     queue_wait,        device_sync,
    cu_program_open,  cu_program_close, cu_program_run,    cu_program_time,
    cu_program_loose, device_times,     cu_device_library, cu_device_library_name,
};

extern "C" {
__attribute__((visibility("default"))) const tgi_device_ops *tgi_device_plugin(uint32_t abi);
}

const tgi_device_ops *tgi_device_plugin(uint32_t abi)
{
    return abi == TGI_DEVICE_ABI ? &cuda_ops : NULL;
}
