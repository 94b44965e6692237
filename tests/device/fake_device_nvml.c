/* fake_device_nvml.c - the management library of the fake device: the same plugin, named by
 * TEGULA_NVML. It tells what is free on a device that has a UUID (fake.told), without a
 * context, as the driver's does, and who else is there (fake.listed). */
#include "tests/device/fake_device.h"

#include <stdio.h>
#include <unistd.h>

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} nvml_process;

FAKE_API int nvmlInit_v2(void);
FAKE_API int nvmlDeviceGetCount_v2(unsigned *n);
FAKE_API int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle);
FAKE_API int nvmlDeviceGetMemoryInfo(void *handle, nvml_memory *m);
FAKE_API int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *n,
                                                     nvml_process *list);
FAKE_API int nvmlDeviceGetUUID(void *handle, char *out, unsigned n);

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = fake.told && fake.devices > 0;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **handle)
{
    *handle = &fake;
    return i ? 2 : 0;
}

int nvmlDeviceGetMemoryInfo(void *handle, nvml_memory *m)
{
    uint64_t free_bytes = 0, total = 0;
    (void)handle;
    (void)fake_device_ops()->memory(NULL, &free_bytes, &total, NULL);
    *m = (nvml_memory){total + fake.told_beside, free_bytes + fake.told_beside,
                       total - free_bytes};
    return 0;
}

int nvmlDeviceGetUUID(void *handle, char *out, unsigned n)
{
    (void)handle;
    snprintf(out, n, "%s", FAKE_UUID);
    return 0;
}

/* Somebody else is process 1. */
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *n, nvml_process *list)
{
    const size_t ours = fake_used_bytes();
    (void)handle;
    if (!fake.listed)
        return 3;
    *n = 0;
    if (fake.taken)
        list[(*n)++] = (nvml_process){1, fake.taken, 0, 0};
    if (ours)
        list[(*n)++] = (nvml_process){(unsigned)getpid(), ours, 0, 0};
    return 0;
}
