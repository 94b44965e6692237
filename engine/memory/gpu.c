/* gpu.c - see gpu.h. */
#include "engine/memory/gpu.h"

#include "engine/base/pool.h"
#include "engine/memory/monitor_nvml.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Atomic(const tgi_gpu_hooks *) hooks_of_backend;

void tgi_gpu_set_hooks(const tgi_gpu_hooks *hooks)
{
    atomic_store(&hooks_of_backend, hooks);
}

int tgi_gpu_resolve(int id)
{
    const tgi_gpu_hooks *h = atomic_load(&hooks_of_backend);
    if (id != TG_GPU_CURRENT)
        return id;
    return h ? h->current() : 0;
}

void tgi_gpu_memory(int id, const char *root, tg_gpu *out)
{
    const size_t size = out->size;
    const int at = tgi_gpu_resolve(id);
    const tgi_nvml_device *d = tgi_nvml_device_at(at);
    memset(out, 0, sizeof *out);
    out->size = size;
    out->id = at;
    if (!d) {
        tg_gpu_driver driver;
        const int n = tgi_nvml_count();
        tgi_nvml_driver(&driver);
        if (n > 0)
            snprintf(out->problem, sizeof out->problem, "there is no GPU %d: ids are 0 to %d",
                     at, n - 1);
        else
            snprintf(out->problem, sizeof out->problem, "there is no GPU: %.130s",
                     driver.problem[0] ? driver.problem : "the driver shows none");
        return;
    }
    tgi_nvml_look(d, root, out);
    tgi_pools_sum(TG_MEMORY_DEVICE, at, &out->pool_allocated_bytes, &out->pool_reserved_bytes);
}

void tgi_gpu_free_used(int id, int cache_is_free, uint64_t *free_bytes, uint64_t *used_bytes)
{
    uint64_t total, allocated, reserved;
    const int at = tgi_gpu_resolve(id);
    const tgi_nvml_device *d = tgi_nvml_device_at(at);
    *free_bytes = *used_bytes = 0;
    if (!d || !tgi_nvml_memory(d, &total, free_bytes, used_bytes, NULL) || !cache_is_free)
        return;
    tgi_pools_sum(TG_MEMORY_DEVICE, at, &allocated, &reserved);
    uint64_t idle = reserved > allocated ? reserved - allocated : 0;
    idle = idle < *used_bytes ? idle : *used_bytes; /* two clocks: never more than there is */
    *free_bytes += idle;
    *used_bytes -= idle;
}

int tgi_gpu_others(int id, uint64_t *bytes, int *listed)
{
    const tgi_nvml_device *d = tgi_nvml_device_at(tgi_gpu_resolve(id));
    return d && tgi_nvml_others(d, (unsigned)getpid(), bytes, listed);
}

int tgi_gpu_of_uuid(const char *uuid)
{
    for (int i = 0; uuid[0] && i < tgi_nvml_count(); i++) {
        tg_gpu g = {.size = sizeof g};
        tgi_gpu_memory(i, "", &g);
        if (strcmp(g.uuid, uuid) == 0)
            return i;
    }
    return TG_GPU_NONE;
}

int tgi_gpu_most_free(uint64_t *free_bytes)
{
    int best = TG_GPU_NONE;
    uint64_t most = 0;
    for (int i = 0; i < tgi_nvml_count(); i++) {
        uint64_t total, free_now, used;
        const tgi_nvml_device *d = tgi_nvml_device_at(i);
        if (!d || !tgi_nvml_memory(d, &total, &free_now, &used, NULL))
            continue; /* what cannot be read cannot be recommended */
        if (best == TG_GPU_NONE || free_now > most) {
            best = i;
            most = free_now;
        }
    }
    if (free_bytes)
        *free_bytes = most;
    return best;
}

tg_status tgi_gpu_preload(int id, tgi_err *err)
{
    const tgi_gpu_hooks *h = atomic_load(&hooks_of_backend);
    const int at = tgi_gpu_resolve(id);
    if (!h)
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "no GPU backend is open, so there is no context to make on GPU %d", at);
    if (!tgi_nvml_device_at(at))
        return tgi_fail(err, TG_E_ARG, "there is no GPU %d", at);
    return h->preload(at, err);
}
