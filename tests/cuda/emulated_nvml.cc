/* emulated_nvml.cc - the driver's management library of the emulated device, named by
 * TEGULA_NVML: what all processes that share it (emulated_share.h) have taken, and which.
 *
 * TEGULA_EMULATED says how large it is, as for the plugin; `nobody` there: the list of
 * processes is not permitted, as in a container. */
#include "tests/cuda/emulated_share.h"

#include <stdio.h>

#define FUNCTION(name, ...)                                                                    \
    extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__)

struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
};
enum { OK = 0, INVALID_ARGUMENT = 2, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7 };

static int device; /* its address is the handle */

FUNCTION(nvmlInit_v2, void)
{
    return OK;
}

FUNCTION(nvmlShutdown, void)
{
    return OK;
}

FUNCTION(nvmlDeviceGetCount_v2, unsigned *n)
{
    *n = 1;
    return OK;
}

FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned i, void **handle)
{
    *handle = &device;
    return i == 0 ? OK : INVALID_ARGUMENT;
}

FUNCTION(nvmlDeviceGetUUID, void *, char *out, unsigned n)
{
    /* as cudaGetDeviceProperties has it */
    snprintf(out, n, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    return OK;
}

FUNCTION(nvmlDeviceGetMemoryInfo, void *, nvml_memory *m)
{
    tg_emulated_holder h[TG_EMULATED_HOLDERS];
    const int n = tg_emulated_share_list(h);
    *m = {(unsigned long long)tg_emulated_word("mib", 256) << 20, 0, 0};
    for (int i = 0; i < n; i++)
        m->used += h[i].bytes;
    m->free = m->used < m->total ? m->total - m->used : 0;
    return OK;
}

FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3, void *, unsigned *n, nvml_process *list)
{
    tg_emulated_holder h[TG_EMULATED_HOLDERS];
    const int there = tg_emulated_share_list(h);
    const unsigned room = *n;
    if (tg_emulated_word("nobody", 0))
        return NO_PERMISSION;
    const uint64_t first = (uint64_t)tg_emulated_word("first", 0) << 20;
    *n = 0;
    for (int i = 0; i < there; i++)
        if (h[i].bytes > first && (*n)++ < room) /* who has a context */
            list[*n - 1] = {(unsigned)h[i].pid, h[i].bytes, 0, 0};
    return room < *n ? INSUFFICIENT_SIZE : OK;
}
