/* monitor_nvml.c - see monitor_nvml.h.
 *
 * Invariants: `lib.n` devices are set once, under the lock, when the library is opened, and
 * change only in tgi_nvml_close. Functions found by name are NULL where the driver lacks them;
 * init, count, handle and one of the two memory calls must be there, all others are optional.
 *
 * @source NVML API Reference Guide (docs.nvidia.com/deploy/nvml-api): names, numbers and the
 * layout of the structs below. Versioned structs carry sizeof | version << 24. */
#include "engine/memory/monitor_nvml.h"

#include "engine/memory/monitor.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Declarations of our own ------------------------------------------------------------- */

typedef int nv_result;
enum {
    NV_OK = 0,
    NV_UNINITIALIZED = 1,
    NV_INVALID_ARGUMENT = 2,
    NV_NOT_SUPPORTED = 3,
    NV_NO_PERMISSION = 4,
    NV_INSUFFICIENT_SIZE = 7,
    NV_DRIVER_NOT_LOADED = 9,
    NV_LIB_RM_VERSION_MISMATCH = 18
};
#define NV_VALUE_NOT_AVAILABLE UINT64_MAX /* of usedGpuMemory */

typedef struct nv_device_opaque *nv_device;

typedef struct nv_memory {
    unsigned long long total, free, used;
} nv_memory;

typedef struct nv_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nv_memory_v2;

typedef struct nv_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} nv_pci;

typedef struct nv_process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} nv_process;

/* Functions: name here, symbol, whether nothing works without it, arguments. */
#define NV_FUNCTIONS(X)                                                                        \
    X(init, "nvmlInit_v2", 1, (void))                                                          \
    X(shutdown, "nvmlShutdown", 0, (void))                                                     \
    X(count, "nvmlDeviceGetCount_v2", 1, (unsigned *))                                         \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", 1, (unsigned, nv_device *))                     \
    X(memory, "nvmlDeviceGetMemoryInfo", 0, (nv_device, nv_memory *))                          \
    X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", 0, (nv_device, nv_memory_v2 *))                 \
    X(name, "nvmlDeviceGetName", 0, (nv_device, char *, unsigned))                             \
    X(uuid, "nvmlDeviceGetUUID", 0, (nv_device, char *, unsigned))                             \
    X(pci, "nvmlDeviceGetPciInfo_v3", 0, (nv_device, nv_pci *))                                \
    X(compute, "nvmlDeviceGetCudaComputeCapability", 0, (nv_device, int *, int *))             \
    X(computing, "nvmlDeviceGetComputeRunningProcesses_v3", 0,                                 \
      (nv_device, unsigned *, nv_process *))                                                   \
    X(drawing, "nvmlDeviceGetGraphicsRunningProcesses_v3", 0,                                  \
      (nv_device, unsigned *, nv_process *))                                                   \
    X(driver, "nvmlSystemGetDriverVersion", 0, (char *, unsigned))

/* A result as a sentence; the driver's own text is not needed for these. */
static const char *words_of(nv_result r)
{
    switch (r) {
    case NV_OK:
        return "success";
    case NV_UNINITIALIZED:
        return "not initialised";
    case NV_INVALID_ARGUMENT:
        return "invalid argument";
    case NV_NOT_SUPPORTED:
        return "not supported by this device";
    case NV_NO_PERMISSION:
        return "no permission";
    case NV_DRIVER_NOT_LOADED:
        return "the driver is not loaded";
    case NV_LIB_RM_VERSION_MISMATCH:
        return "library and loaded driver are of different versions";
    case 15:
        return "the GPU has fallen off the bus";
    case 12:
        return "a library that NVML needs was not found";
    default:
        return "unknown error";
    }
}

/* ---- The library ------------------------------------------------------------------------- */

struct tg_gpu_handle {
    int id;
    nv_device device; /* NULL: the driver counted it and would not open it */
    char problem[TGI_NVML_WHY];
};

static struct {
    pthread_mutex_t lock;
    int opened; /* whether opening was tried */
    void *dl;
    char path[256], problem[256], version[96];
    tgi_nvml_state state; /* what kind of problem it is */
#define X(name, symbol, needed, args) nv_result(*name) args;
    NV_FUNCTIONS(X)
#undef X
    int n;
    tgi_nvml_device gpu[TGI_MAX_GPUS];
} lib = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* dlsym gives an object pointer; POSIX says that a function may be had from it. */
static void find(const char *symbol, void *function, size_t size)
{
    void *at = dlsym(lib.dl, symbol);
    memcpy(function, &at, size);
}

__attribute__((format(printf, 2, 3))) static void give_up(tgi_nvml_state why, const char *fmt,
                                                          ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(lib.problem, sizeof lib.problem, fmt, args);
    va_end(args);
    lib.state = why;
}

static tgi_nvml_state state_of(nv_result r)
{
    return r == NV_DRIVER_NOT_LOADED         ? TGI_NVML_NOT_LOADED
           : r == NV_LIB_RM_VERSION_MISMATCH ? TGI_NVML_MISMATCH
                                             : TGI_NVML_FAILED;
}

static int resolve(void)
{
    const char *missing = NULL;
#define X(name, symbol, needed, args)                                                          \
    find(symbol, &lib.name, sizeof lib.name);                                                  \
    if ((needed) && !lib.name && !missing)                                                     \
        missing = symbol;
    NV_FUNCTIONS(X)
#undef X
    if (!missing && !lib.memory && !lib.memory_v2)
        missing = "nvmlDeviceGetMemoryInfo";
    if (missing)
        give_up(TGI_NVML_FAILED, "%.120s lacks %s: too old, or not NVML", lib.path, missing);
    return !missing;
}

static void list_devices(void)
{
    unsigned n = 0;
    const nv_result r = lib.count(&n);
    if (r != NV_OK) {
        give_up(state_of(r), "counting GPUs: %s (NVML error %d)", words_of(r), r);
        return;
    }
    lib.n = n < TGI_MAX_GPUS ? (int)n : TGI_MAX_GPUS;
    for (int i = 0; i < lib.n; i++) {
        tgi_nvml_device *d = &lib.gpu[i];
        *d = (tgi_nvml_device){.id = i};
        const nv_result got = lib.handle((unsigned)i, &d->device);
        if (got != NV_OK) {
            d->device = NULL;
            snprintf(d->problem, sizeof d->problem, "opening it: %s (NVML error %d)",
                     words_of(got), got);
        }
    }
}

static void drop(void)
{
    if (lib.dl)
        dlclose(lib.dl);
    lib.dl = NULL;
    lib.n = 0;
}

/* dlopen tells why it failed in words alone; that no such file is there it says as strerror does. */
static void not_opened(const char *why)
{
    const int missing = why && strstr(why, strerror(ENOENT));
    give_up(missing ? TGI_NVML_MISSING : TGI_NVML_FAILED, "%.250s",
            why ? why : "cannot be opened");
}

/* Once, under the lock. */
static void open_library(void)
{
    const char *named = getenv("TEGULA_NVML");
    lib.opened = 1;
    lib.n = 0;
    lib.problem[0] = lib.version[0] = 0;
    lib.state = TGI_NVML_WORKS;
    snprintf(lib.path, sizeof lib.path, "%.255s", named ? named : "libnvidia-ml.so.1");
    if (!lib.path[0] || strcmp(lib.path, "none") == 0) {
        give_up(TGI_NVML_OFF, "switched off by TEGULA_NVML");
        return;
    }
    lib.dl = dlopen(lib.path, RTLD_NOW | RTLD_LOCAL);
    if (!lib.dl) {
        not_opened(dlerror());
        return;
    }
    if (!resolve()) {
        drop();
        return;
    }
    const nv_result r = lib.init();
    if (r != NV_OK) {
        give_up(state_of(r), "starting NVML: %s (NVML error %d)", words_of(r), r);
        drop();
        return;
    }
    if (lib.driver && lib.driver(lib.version, sizeof lib.version) != NV_OK)
        lib.version[0] = 0;
    lib.version[sizeof lib.version - 1] = 0;
    list_devices();
}

static void ensure_open(void)
{
    pthread_mutex_lock(&lib.lock);
    if (!lib.opened)
        open_library();
    pthread_mutex_unlock(&lib.lock);
}

void tgi_nvml_close(void)
{
    pthread_mutex_lock(&lib.lock);
    if (lib.dl && lib.shutdown)
        (void)lib.shutdown();
    drop();
    lib.opened = 0;
    pthread_mutex_unlock(&lib.lock);
}

int tgi_nvml_count(void)
{
    ensure_open();
    return lib.n;
}

const tgi_nvml_device *tgi_nvml_device_at(int id)
{
    ensure_open();
    return id >= 0 && id < lib.n ? &lib.gpu[id] : NULL;
}

tgi_nvml_state tgi_nvml_driver(tg_gpu_driver *out)
{
    ensure_open();
    snprintf(out->library, sizeof out->library, "%s", lib.path);
    snprintf(out->version, sizeof out->version, "%s", lib.version);
    snprintf(out->problem, sizeof out->problem, "%s", lib.problem);
    return lib.state;
}

/* ---- One device -------------------------------------------------------------------------- */

/* The second call counts what the driver keeps for itself apart; with the first it hides in
 * `used`. We want "used by everybody", so both give used = total - free. */
static nv_result ask_memory(const tgi_nvml_device *d, nv_memory *out)
{
    nv_result r = NV_NOT_SUPPORTED;
    if (lib.memory_v2) {
        nv_memory_v2 m = {.version = (unsigned)sizeof m | 2u << 24};
        r = lib.memory_v2(d->device, &m);
        if (r == NV_OK)
            *out = (nv_memory){m.total, m.free, m.total - m.free};
    }
    if (r != NV_OK && lib.memory) {
        nv_memory m = {0};
        r = lib.memory(d->device, &m);
        if (r == NV_OK)
            *out = (nv_memory){m.total, m.free, m.total - m.free};
    }
    return r == NV_OK && out->free > out->total ? NV_INVALID_ARGUMENT : r;
}

int tgi_nvml_memory(const tgi_nvml_device *d, uint64_t *total, uint64_t *free_bytes,
                    uint64_t *used, char *why)
{
    nv_memory m = {0};
    const nv_result r = d->device ? ask_memory(d, &m) : NV_UNINITIALIZED;
    if (why)
        why[0] = 0;
    if (r != NV_OK) {
        m = (nv_memory){0};
        if (why && !d->device)
            snprintf(why, TGI_NVML_WHY, "%s", d->problem);
        else if (why)
            snprintf(why, TGI_NVML_WHY, "its memory: %s (NVML error %d)", words_of(r), r);
    }
    *total = m.total;
    *free_bytes = m.free;
    *used = m.used;
    return r == NV_OK;
}

static void text_of(nv_result (*ask)(nv_device, char *, unsigned), nv_device d, char *out,
                    size_t cap)
{
    if (!ask || ask(d, out, (unsigned)cap) != NV_OK)
        out[0] = 0;
    out[cap - 1] = 0;
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

/* Known ones by size, largest first; those of unknown size last. */
static int holds_more(const tg_gpu_process *a, const tg_gpu_process *b)
{
    const uint64_t x = a->used_bytes == TG_NO_LIMIT ? 0 : a->used_bytes;
    const uint64_t y = b->used_bytes == TG_NO_LIMIT ? 0 : b->used_bytes;
    return x > y;
}

static void insert_process(tg_gpu *g, const tg_gpu_process *p)
{
    const size_t cap = sizeof g->process / sizeof g->process[0];
    size_t at = g->n_processes < cap ? g->n_processes : cap;
    g->n_processes++;
    while (at > 0 && holds_more(p, &g->process[at - 1])) {
        if (at < cap)
            g->process[at] = g->process[at - 1];
        at--;
    }
    if (at < cap)
        g->process[at] = *p;
}

#define MOST_PROCESSES 1024 /* asked for at once; 24 KiB, too large for a stack */

static struct {
    pthread_mutex_t lock;
    nv_process list[MOST_PROCESSES];
} answer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_processes(nv_result (*ask)(nv_device, unsigned *, nv_process *), int graphics,
                          const tgi_nvml_device *d, const char *root, tg_gpu *out)
{
    nv_process *const list = answer.list; /* the lock is the caller's */
    unsigned n = MOST_PROCESSES;
    memset(list, 0, sizeof answer.list);
    const nv_result r = ask ? ask(d->device, &n, list) : NV_NOT_SUPPORTED;
    if (r == NV_INSUFFICIENT_SIZE) { /* it tells none of them then */
        snprintf(out->problem, sizeof out->problem,
                 "who holds it: %u programs, too many to list", n);
        return;
    }
    if (r != NV_OK) {
        if (r != NV_NOT_SUPPORTED && !out->problem[0])
            snprintf(out->problem, sizeof out->problem, "who holds it: %s (NVML error %d)",
                     words_of(r), r);
        return;
    }
    for (size_t i = 0; i < n && i < MOST_PROCESSES; i++) {
        tg_gpu_process p = {.pid = list[i].pid,
                            .used_bytes = list[i].used == NV_VALUE_NOT_AVAILABLE ? TG_NO_LIMIT
                                                                                 : list[i].used,
                            .graphics = graphics};
        tgi_process_name(root, p.pid, p.name, sizeof p.name);
        insert_process(out, &p);
    }
}

static int sum_others(const tgi_nvml_device *d, unsigned self, uint64_t *bytes, int *listed)
{
    const nv_process *const list = answer.list;
    unsigned n = MOST_PROCESSES;
    memset(answer.list, 0, sizeof answer.list);
    if (lib.computing(d->device, &n, answer.list) != NV_OK)
        return 0;
    for (unsigned i = 0; i < n && i < MOST_PROCESSES; i++) {
        if (list[i].pid == self)
            *listed = 1;
        else if (list[i].used == NV_VALUE_NOT_AVAILABLE)
            return 0;
        else
            *bytes += list[i].used;
    }
    return 1;
}

int tgi_nvml_others(const tgi_nvml_device *d, unsigned self, uint64_t *bytes, int *listed)
{
    *bytes = 0;
    *listed = 0;
    if (!d->device || !lib.computing)
        return 0;
    pthread_mutex_lock(&answer.lock);
    const int told = sum_others(d, self, bytes, listed);
    pthread_mutex_unlock(&answer.lock);
    return told;
}

void tgi_nvml_look(const tgi_nvml_device *d, const char *root, tg_gpu *out)
{
    nv_pci pci;
    out->id = d->id;
    (void)tgi_nvml_memory(d, &out->total_bytes, &out->free_bytes, &out->used_bytes,
                          out->problem);
    if (!d->device)
        return;
    text_of(lib.name, d->device, out->name, sizeof out->name);
    text_of(lib.uuid, d->device, out->uuid, sizeof out->uuid);
    memset(&pci, 0, sizeof pci);
    if (lib.pci && lib.pci(d->device, &pci) == NV_OK)
        snprintf(out->pci, sizeof out->pci, "%.31s", pci.bus_id);
    if (!lib.compute ||
        lib.compute(d->device, &out->compute_major, &out->compute_minor) != NV_OK)
        out->compute_major = out->compute_minor = 0;
    pthread_mutex_lock(&answer.lock);
    add_processes(lib.computing, 0, d, root, out);
    add_processes(lib.drawing, 1, d, root, out);
    pthread_mutex_unlock(&answer.lock);
}
