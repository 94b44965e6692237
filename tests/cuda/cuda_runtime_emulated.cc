/* cuda_runtime_emulated.cc - see cuda_runtime_emulated.h.
 *
 * A stream is a list of things to do, numbered as they were put in. `catch_up` does those below
 * a number; a wait inside it first catches up with the other stream, as far as the event stood
 * when the wait was put in. One lock around everything: threads take turns. */
#include "tests/cuda/cuda_runtime_emulated.h"
#include "tests/cuda/emulated_share.h"
#include "tests/cuda/fake_cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

struct tg_emulated_stream {
    std::deque<std::function<void()>> todo;
    uint64_t done;
    bool alive;
    uint64_t end() const
    {
        return done + todo.size();
    }
};
struct tg_emulated_event {
    tg_emulated_stream *stream; /* NULL: never recorded */
    uint64_t at;
    std::shared_ptr<double>
        seconds; /* when the queue came here; the work may outlive the event */
};
struct tg_emulated_node {
    const void *kernel;
    dim3 grid, block;
    unsigned shared_bytes;
    void *args;
};
struct tg_emulated_graph {
    std::deque<tg_emulated_node> nodes; /* addresses stay */
};
struct tg_emulated_exec {
    std::deque<tg_emulated_node> nodes;
};

tg_emulated_machine tg_emulated;

static struct {
    std::map<const char *, size_t> device, pinned; /* begin, bytes */
    std::vector<std::unique_ptr<tg_emulated_stream>> streams;
    std::map<const void *, size_t> shared_allowed; /* kernel, bytes */
    size_t device_bytes;
    int asked, context, others; /* others: events, graphs */
    int calls, fail_at, launches, fail_launch_at;
    cudaError_t fail_with, launch_fails_with, broken, last;
} m;

void tg_emulated_begin(void)
{
    if (tg_emulated_alive()) {
        fprintf(stderr, "tg_emulated_begin: %d things are alive\n", tg_emulated_alive());
        abort();
    }
    m.streams.clear();
    m.shared_allowed.clear();
    m.device_bytes = 0;
    m.asked = m.context = m.calls = m.fail_at = m.launches = m.fail_launch_at = 0;
    m.broken = m.last = cudaSuccess;
    tg_emulated = {13000, 13000, 1, 9, 0, (size_t)256 << 20, (size_t)8 << 20, 0, 0, 0, 0, 0, 4};
}

int tg_emulated_alive(void)
{
    int n = m.others + (int)(m.device.size() + m.pinned.size());
    for (const auto &s : m.streams)
        n += s->alive;
    return n;
}

size_t tg_emulated_device_bytes(void)
{
    return m.device_bytes;
}

int tg_emulated_fail_call(int k, cudaError_t e)
{
    const int was = m.calls;
    m.calls = 0;
    m.fail_at = k;
    m.fail_with = e;
    return was;
}

void tg_emulated_fail_launch(int k, cudaError_t e)
{
    m.launches = 0;
    m.fail_launch_at = k;
    m.launch_fails_with = e;
}

/* ---- Answers ----------------------------------------------------------------------------- */

static cudaError_t say(cudaError_t e)
{
    if (e != cudaSuccess)
        m.last = e;
    return e;
}

/* What every call that may fail begins with. */
static cudaError_t entry(void)
{
    if (++m.calls == m.fail_at)
        return say(m.fail_with);
    return say(m.broken);
}
static std::recursive_mutex turn;
#define TAKE_TURN() const std::lock_guard<std::recursive_mutex> mine_(turn)
#define ENTER()                                                                                \
    TAKE_TURN();                                                                               \
    do {                                                                                       \
        const cudaError_t entered_ = entry();                                                  \
        if (entered_ != cudaSuccess)                                                           \
            return entered_;                                                                   \
    } while (0)

static const struct {
    cudaError_t e;
    const char *name, *says;
} words[] = {{cudaSuccess, "cudaSuccess", "no error"},
             {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
             {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
             {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
              "CUDA driver version is insufficient for CUDA runtime version"},
             {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
             {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
             {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
              "no kernel image is available for execution on the device"},
             {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
              "an illegal memory access was encountered"},
             {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
             {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
             {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"}};

const char *cudaGetErrorName(cudaError_t e)
{
    for (const auto &w : words)
        if (w.e == e)
            return w.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e)
{
    for (const auto &w : words)
        if (w.e == e)
            return w.says;
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void)
{
    TAKE_TURN();
    const cudaError_t e = m.broken != cudaSuccess ? m.broken : m.last;
    m.last = cudaSuccess;
    return e;
}

/* ---- Devices ----------------------------------------------------------------------------- */

cudaError_t cudaDriverGetVersion(int *v)
{
    *v = tg_emulated.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
    *v = tg_emulated.runtime;
    return cudaSuccess;
}

static uint64_t told_others(void);

cudaError_t cudaGetDeviceCount(int *n)
{
    ENTER();
    if (tg_emulated.driver < tg_emulated.runtime)
        return say(cudaErrorInsufficientDriver);
    if (tg_emulated.devices == 0)
        return say(cudaErrorNoDevice);
    *n = tg_emulated.devices;
    if (!m.asked++ && tg_emulated.first_bytes) {
        m.device_bytes += tg_emulated.first_bytes;
        told_others();
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int id)
{
    ENTER();
    if (id < 0 || id >= tg_emulated.devices)
        return say(cudaErrorInvalidDevice);
    *p = cudaDeviceProp();
    snprintf(p->name, sizeof p->name, "Emulated %d", id);
    for (int i = 0; i < 16; i++)
        p->uuid.bytes[i] = (char)(i * 17);
    p->totalGlobalMem = tg_emulated.memory_bytes;
    p->sharedMemPerBlockOptin = tg_emulated_shared_most;
    p->major = tg_emulated.major;
    p->minor = tg_emulated.minor;
    p->multiProcessorCount = tg_emulated.multiprocessors;
    p->asyncEngineCount = 2;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int id)
{
    ENTER();
    return say(id >= 0 && id < tg_emulated.devices ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSetLimit(cudaLimit, size_t)
{
    ENTER();
    return cudaSuccess;
}

/* ---- Memory ------------------------------------------------------------------------------ */

static size_t taken(size_t bytes)
{
    return (bytes + 511) / 512 * 512;
}

/* What other processes have of the device, and ours for them to see. */
static uint64_t told_others(void)
{
    return tg_emulated_share_tell(m.device_bytes + (m.context ? tg_emulated.hidden_bytes : 0));
}

static void give(size_t bytes)
{
    m.device_bytes -= bytes;
    told_others();
}

static bool fits(uint64_t ours)
{
    const uint64_t others = told_others();
    return others <= tg_emulated.memory_bytes && ours <= tg_emulated.memory_bytes - others;
}

/* Looked at again when it is ours: of two that ask at the same time none gets what the other
 * has. */
static bool take(size_t bytes)
{
    if (!fits((uint64_t)m.device_bytes + bytes))
        return false;
    m.device_bytes += bytes;
    if (fits(m.device_bytes))
        return true;
    give(bytes);
    return false;
}

static bool lies_in(const std::map<const char *, size_t> &all, const void *at, size_t bytes)
{
    auto next = all.upper_bound((const char *)at);
    if (next == all.begin())
        return false;
    --next;
    return (const char *)at + bytes <= next->first + next->second;
}

static char *poisoned(size_t bytes)
{
    char *at = (char *)aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (at)
        memset(at, 0xff, bytes);
    return at;
}

static void make_context(void)
{
    if (m.context)
        return;
    m.context = 1;
    m.device_bytes += tg_emulated.context_bytes;
    told_others();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    ENTER();
    *total_bytes = tg_emulated.memory_bytes;
    const uint64_t used = m.device_bytes + told_others();
    *free_bytes = *total_bytes > used ? (size_t)(*total_bytes - used) : 0;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    ENTER();
    make_context();
    if (bytes > tg_emulated.memory_bytes || !take(taken(bytes)))
        return say(cudaErrorMemoryAllocation);
    char *got = poisoned(bytes);
    m.device[got] = bytes;
    *at = got;
    return cudaSuccess;
}

static void catch_up_with_all(void);

static void forget(std::map<const char *, size_t> *all, void *at)
{
    catch_up_with_all();
    if (all == &m.device)
        give(taken((*all)[(char *)at]));
    all->erase((char *)at);
    free(at);
}

cudaError_t cudaFree(void *at)
{
    TAKE_TURN();
    make_context();
    if (at && !m.device.count((char *)at))
        return say(cudaErrorInvalidValue);
    if (at)
        forget(&m.device, at);
    return say(m.broken);
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned)
{
    ENTER();
    char *got = poisoned(bytes);
    m.pinned[got] = bytes;
    *at = got;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at)
{
    TAKE_TURN();
    if (at && !m.pinned.count((char *)at))
        return say(cudaErrorInvalidValue);
    if (at)
        forget(&m.pinned, at);
    return say(m.broken);
}

/* ---- Streams and events ------------------------------------------------------------------ */

static void catch_up(tg_emulated_stream *s, uint64_t until)
{
    while (s->done < until && !s->todo.empty()) {
        const std::function<void()> next = s->todo.front();
        s->todo.pop_front();
        s->done++;
        next();
    }
}

static void catch_up_with_all(void)
{
    for (const auto &s : m.streams)
        catch_up(s.get(), s->end());
}

static void put(cudaStream_t q, std::function<void()> what)
{
    q->todo.push_back([what] {
        if (m.broken == cudaSuccess)
            what();
    });
}

static void copied(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind)
{
    memcpy(dst, src, bytes);
    if (kind == cudaMemcpyDeviceToHost && tg_emulated.wrong)
        *(char *)dst ^= 1;
}

/* Host memory that is not pinned: the runtime copies it before it returns, or returns when it
 * has been copied to. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t q)
{
    ENTER();
    const bool up = kind == cudaMemcpyHostToDevice, there = kind == cudaMemcpyDeviceToDevice;
    if (!lies_in(m.device, up ? dst : src, bytes) || (there && !lies_in(m.device, dst, bytes)))
        return say(cudaErrorInvalidValue);
    if (there || lies_in(m.pinned, up ? src : dst, bytes)) {
        put(q, [=] { copied(dst, src, bytes, kind); });
    } else if (up) {
        const std::vector<char> now((const char *)src, (const char *)src + bytes);
        put(q, [=] { copied(dst, now.data(), bytes, kind); });
    } else {
        put(q, [=] { copied(dst, src, bytes, kind); });
        catch_up(q, q->end());
    }
    return say(m.broken);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t q)
{
    ENTER();
    if (!lies_in(m.device, at, bytes))
        return say(cudaErrorInvalidValue);
    put(q, [=] { memset(at, value, bytes); });
    return say(m.broken);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *q, unsigned)
{
    ENTER();
    m.streams.push_back(std::make_unique<tg_emulated_stream>());
    *q = m.streams.back().get();
    (*q)->alive = true;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t q)
{
    TAKE_TURN();
    catch_up(q, q->end());
    q->alive = false;
    return say(m.broken);
}

cudaError_t cudaStreamSynchronize(cudaStream_t q)
{
    ENTER();
    catch_up(q, q->end());
    return say(m.broken);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t q, cudaEvent_t e, unsigned)
{
    ENTER();
    tg_emulated_stream *other = e->stream;
    const uint64_t at = e->at;
    if (other)
        put(q, [=] { catch_up(other, at); });
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    ENTER();
    *e = new tg_emulated_event();
    m.others++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    TAKE_TURN();
    delete e;
    m.others--;
    return say(m.broken);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t q)
{
    ENTER();
    const auto seconds = std::make_shared<double>(0);
    put(q, [seconds] {
        *seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
                .count();
    });
    e->stream = q;
    e->at = q->end();
    e->seconds = seconds;
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    ENTER();
    if (!from->stream || !to->stream)
        return cudaErrorInvalidValue;
    *ms = (float)((*to->seconds - *from->seconds) * 1e3);
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    ENTER();
    if (e->stream)
        catch_up(e->stream, e->at);
    return say(m.broken);
}

/* ---- Kernels ----------------------------------------------------------------------------- */

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *a, const void *)
{
    ENTER();
    if (tg_emulated.no_kernels)
        return say(cudaErrorNoKernelImageForDevice);
    *a = cudaFuncAttributes();
    a->maxThreadsPerBlock = 1024;
    a->numRegs = 32;
    return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *f, const void *kernel)
{
    *f = (cudaFunction_t)kernel;
    return tg_emulated.no_kernels ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}

static int loaded_kernels;

int tg_emulated_loaded(void)
{
    return loaded_kernels;
}

static int module_of(void **module, cudaFunction_t f)
{
    *module = f;
    return 0;
}

static int count_of_module(unsigned *n, void *module)
{
    *n = module ? 2 : 0;
    return 0;
}

static int list_of_module(cudaFunction_t *f, unsigned n, void *module)
{
    for (unsigned i = 0; i < n; i++)
        f[i] = (cudaFunction_t)(void *)((char *)module + i);
    return 0;
}

static int load_of_module(cudaFunction_t)
{
    loaded_kernels++;
    return 0;
}

void *tg_emulated_driver_call(const char *name)
{
    static const struct {
        const char *name;
        int since;
        void *call;
    } calls[] = {{"cuFuncGetModule", 11000, (void *)module_of},
                 {"cuModuleGetFunctionCount", 12040, (void *)count_of_module},
                 {"cuModuleEnumerateFunctions", 12040, (void *)list_of_module},
                 {"cuFuncLoad", 12040, (void *)load_of_module}};
    for (const auto &c : calls)
        if (strcmp(c.name, name) == 0 && tg_emulated.driver >= c.since)
            return c.call;
    return NULL;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute what, int value)
{
    ENTER();
    if (what == cudaFuncAttributePreferredSharedMemoryCarveout) /* percent; a hint */
        return value < -1 || value > 100 ? say(cudaErrorInvalidValue) : cudaSuccess;
    if (value < 0 || (size_t)value > tg_emulated_shared_most)
        return say(cudaErrorInvalidValue);
    m.shared_allowed[kernel] = (size_t)value;
    return cudaSuccess;
}

static bool may_launch(const tg_emulated_node &n)
{
    const auto allowed = m.shared_allowed.find(n.kernel);
    const size_t most = allowed == m.shared_allowed.end() ? 48u << 10 : allowed->second;
    return n.shared_bytes <= (most > 48u << 10 ? most : 48u << 10);
}

/* Arguments end somewhere before the end of their allocation. */
static size_t bytes_from(const void *at)
{
    auto next = m.device.upper_bound((const char *)at);
    if (next == m.device.begin())
        return 0;
    --next;
    const char *end = next->first + next->second;
    return (const char *)at < end ? (size_t)(end - (const char *)at) : 0;
}

static void execute(const tg_emulated_node &n)
{
    const size_t bytes = bytes_from(n.args);
    if (++m.launches == m.fail_launch_at)
        m.broken = m.launch_fails_with;
    else if (!bytes)
        m.broken = cudaErrorIllegalAddress;
    else
        tg_emulate(n.kernel, n.grid, n.block, n.shared_bytes, n.args,
                   bytes < 16384 ? bytes : 16384);
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **params,
                             size_t shared_bytes, cudaStream_t q)
{
    ENTER();
    const tg_emulated_node n = {kernel, grid, block, (unsigned)shared_bytes,
                                *(void **)params[0]};
    if (!may_launch(n))
        return say(cudaErrorInvalidValue);
    put(q, [=] { execute(n); });
    return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *g, unsigned)
{
    ENTER();
    if (tg_emulated.no_graphs)
        return say(cudaErrorNotSupported);
    *g = new tg_emulated_graph();
    m.others++;
    return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *out, cudaGraph_t g,
                                   const cudaGraphNode_t *after, size_t n_after,
                                   const cudaKernelNodeParams *p)
{
    ENTER();
    const tg_emulated_node n = {p->func, p->gridDim, p->blockDim, p->sharedMemBytes,
                                *(void **)p->kernelParams[0]};
    if (!may_launch(n))
        return say(cudaErrorInvalidValue);
    /* Only chains: a node that does not follow the last could run beside it. */
    if (n_after != !g->nodes.empty() || (n_after && after[0] != &g->nodes.back()))
        return say(cudaErrorNotSupported);
    g->nodes.push_back(n);
    *out = &g->nodes.back();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t g,
                                          unsigned long long)
{
    ENTER();
    *out = new tg_emulated_exec{g->nodes};
    m.others++;
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    ENTER();
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t q)
{
    ENTER();
    for (const tg_emulated_node &n : e->nodes)
        put(q, [=] { execute(n); });
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
    TAKE_TURN();
    delete g;
    m.others--;
    return say(m.broken);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e)
{
    TAKE_TURN();
    delete e;
    m.others--;
    return say(m.broken);
}

/* ---- A library --------------------------------------------------------------------------- */

static void put_work(void *stream, void (*fn)(void *), const void *arg, size_t bytes)
{
    TAKE_TURN();
    const std::vector<char> now((const char *)arg, (const char *)arg + bytes);
    put((cudaStream_t)stream, [=] {
        std::vector<char> mine = now;
        fn(mine.data());
    });
}

static int take_memory(int64_t bytes)
{
    TAKE_TURN();
    if (bytes > 0)
        return take((size_t)bytes);
    give((size_t)-bytes);
    return 1;
}

void tgi_emulated_library(void *so)
{
    static const tg_fake_device_calls calls = {put_work, take_memory};
    tg_fake_device_fn introduce;
    *(void **)(void *)&introduce = dlsym(so, TG_FAKE_DEVICE_SYMBOL);
    if (introduce)
        introduce(&calls);
}
