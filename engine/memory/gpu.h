/* gpu.h - GPUs as the rest of tegula sees them: what the driver says (monitor_nvml.h) joined
 * with what a GPU backend says of itself and with our pools of that device. A backend registers
 * its hooks when a job opens a device (engine/device/current.h); without one the current device
 * is the first. */
#ifndef TGI_GPU_H
#define TGI_GPU_H

#include "engine/base/status.h"
#include "tegula_memory.h"

typedef struct tgi_gpu_hooks {
    int (*current)(void);                       /* id of the device it works on */
    tg_status (*preload)(int id, tgi_err *err); /* make its context now */
} tgi_gpu_hooks;

/* `hooks` static and complete; NULL takes them back. Before other threads ask. */
void tgi_gpu_set_hooks(const tgi_gpu_hooks *hooks);

int tgi_gpu_resolve(int id); /* TG_GPU_CURRENT to the device's id; others as they are */
void tgi_gpu_memory(int id, const char *root, tg_gpu *out); /* but for `size` */
/* Free and used bytes, our idle reserve on the side asked for; 0 and 0 when there is none. */
void tgi_gpu_free_used(int id, int cache_is_free, uint64_t *free_bytes, uint64_t *used_bytes);
/* Bytes that other processes hold on the device to compute with; `*listed`: this one is in the
 * driver's list too. 0: the driver does not tell. */
int tgi_gpu_others(int id, uint64_t *bytes, int *listed);
/* The id of the device with this UUID, TG_GPU_NONE when the management library shows none. */
int tgi_gpu_of_uuid(const char *uuid);
int tgi_gpu_most_free(uint64_t *free_bytes);
tg_status tgi_gpu_preload(int id, tgi_err *err);

#endif
