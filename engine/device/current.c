/* current.c - remembers which device is in use and answers the memory monitor's questions about
 * it. */
#include "engine/device/current.h"

#include "engine/memory/gpu.h"

#include <stdatomic.h>
#include <string.h>

static atomic_int current_id; /* as the monitor counts */
#define DEVICES 32            /* more are never seen again */
static atomic_uint seen;      /* bits of those that were */
static atomic_ullong context[DEVICES];

static int current(void)
{
    return atomic_load(&current_id);
}

/* The context is the process's: it stays when the device is closed again. */
static tg_status preload(int id, tgi_err *err)
{
    tgi_devices all;
    tgi_devices_look("cuda", &all);
    for (int i = 0; i < all.n; i++) {
        tgi_device *d = NULL;
        if (tgi_gpu_of_uuid(all.info[i].uuid) != id)
            continue;
        TGI_TRY(all.ops->open(i, &d, err));
        all.ops->close(&d);
        return TG_OK;
    }
    return tgi_fail(err, TG_E_DEVICE, "no context can be made on GPU %d: %s", id,
                    all.n ? "CUDA_VISIBLE_DEVICES hides it" : all.why);
}

static const tgi_gpu_hooks hooks = {current, preload};

void tgi_device_is_current(const tgi_device_info *info)
{
    const int id = tgi_gpu_of_uuid(info->uuid);
    if (id != TG_GPU_NONE)
        atomic_store(&current_id, id);
    if (info->id >= 0 && info->id < DEVICES)
        atomic_fetch_or(&seen, 1u << info->id);
    tgi_gpu_set_hooks(&hooks);
}

int tgi_device_was_current(const tgi_device_info *info)
{
    return info->id < 0 || info->id >= DEVICES || (atomic_load(&seen) >> info->id & 1);
}

uint64_t tgi_device_context(const tgi_device_info *info, uint64_t bytes)
{
    if (info->id < 0 || info->id >= DEVICES)
        return bytes;
    unsigned long long most = atomic_load(&context[info->id]);
    while (most < bytes && !atomic_compare_exchange_weak(&context[info->id], &most, bytes))
        ;
    return most < bytes ? bytes : most;
}

tg_status tgi_device_be_backend(tgi_err *err)
{
    const tgi_device_ops *ops;
    TGI_TRY(tgi_device_open_plugin("cuda", &ops, err));
    tgi_gpu_set_hooks(&hooks);
    return TG_OK;
}
