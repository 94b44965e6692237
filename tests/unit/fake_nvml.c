/* fake_nvml.c - a driver's management library that pretends, for tests.
 *
 * Built as shared libraries that differ in what they lack: FAKE_OLD has only what old drivers
 * have (no versioned memory call, no lists of processes), FAKE_BROKEN lacks nvmlInit_v2. What a
 * complete one answers comes from the environment variable FAKE_NVML, words apart by commas:
 *
 *   gpus=N     how many (default 2)       init=R     result of nvmlInit_v2
 *   lost=I     GPU I: memory calls fail   closed=I   GPU I: cannot be opened
 *   denied     lists of processes are not permitted, as in a container
 *   hidden     sizes of processes are not told
 *   crowd=N    N processes on GPU 0 instead of two
 *
 * GPU i has (i + 1) * 8 GiB, of which 2 GiB are used and 256 MiB reserved by the driver; the
 * last GPU has as much free as the one before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define GIB (1ull << 30)

typedef struct memory {
    unsigned long long total, free, used;
} memory;
typedef struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
} memory_v2;
typedef struct pci {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci;
typedef struct process {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} process;

static int word(const char *name, int otherwise)
{
    const char *s = getenv("FAKE_NVML");
    const size_t n = strlen(name);
    for (; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL)
        if (strncmp(s, name, n) == 0)
            return s[n] == '=' ? atoi(s + n + 1) : 1;
    return otherwise;
}

static int devices[64]; /* a handle is the address of a number */

static int index_of(void *handle)
{
    return (int)((int *)handle - devices);
}

#define FUNCTION(name, ...)                                                                    \
    EXPORT int name(__VA_ARGS__);                                                              \
    int name(__VA_ARGS__)

#ifndef FAKE_BROKEN
FUNCTION(nvmlInit_v2, void)
{
    return word("init", 0);
}
#endif

FUNCTION(nvmlShutdown, void)
{
    return 0;
}

FUNCTION(nvmlDeviceGetCount_v2, unsigned *n)
{
    *n = (unsigned)word("gpus", 2);
    return 0;
}

FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned i, void **handle)
{
    if ((int)i >= word("gpus", 2))
        return 2;
    if ((int)i == word("closed", -1))
        return 4;
    *handle = &devices[i];
    return 0;
}

static unsigned long long total_of(int i)
{
    const int n = word("gpus", 2);
    return (unsigned long long)(n > 1 && i == n - 1 ? i : i + 1) * 8 * GIB;
}

FUNCTION(nvmlDeviceGetMemoryInfo, void *handle, memory *m)
{
    const int i = index_of(handle);
    if (i == word("lost", -1))
        return 15;
    *m = (memory){total_of(i), total_of(i) - 2 * GIB, 2 * GIB};
    return 0;
}

#ifndef FAKE_OLD
FUNCTION(nvmlDeviceGetMemoryInfo_v2, void *handle, memory_v2 *m)
{
    const int i = index_of(handle);
    if (m->version != (sizeof *m | 2u << 24))
        return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
    if (i == word("lost", -1))
        return 15;
    *m =
        (memory_v2){m->version, total_of(i), GIB / 4, total_of(i) - 2 * GIB, 2 * GIB - GIB / 4};
    return 0;
}

FUNCTION(nvmlDeviceGetUUID, void *handle, char *out, unsigned n)
{
    snprintf(out, n, "GPU-00000000-0000-0000-0000-00000000000%d", index_of(handle));
    return 0;
}

FUNCTION(nvmlDeviceGetPciInfo_v3, void *handle, pci *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", index_of(handle) + 1);
    return 0;
}

FUNCTION(nvmlDeviceGetCudaComputeCapability, void *handle, int *major, int *minor)
{
    *major = 7;
    *minor = index_of(handle) ? 5 : 0;
    return 0;
}

FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3, void *handle, unsigned *n, process *list)
{
    const int two = index_of(handle) == 0, count = two ? word("crowd", 2) : 0;
    if (word("denied", 0))
        return 4;
    if (*n < (unsigned)count) {
        *n = (unsigned)count;
        return 7;
    }
    *n = (unsigned)count;
    for (int i = 0; i < count; i++)
        list[i] = (process){4711 + (unsigned)i,
                            word("hidden", 0) ? ~0ull : (unsigned)(i + 1) * (GIB / 64), 0, 0};
    return 0;
}

FUNCTION(nvmlDeviceGetGraphicsRunningProcesses_v3, void *handle, unsigned *n, process *list)
{
    (void)list;
    *n = 0;
    return word("denied", 0) && index_of(handle) == 0 ? 4 : 0;
}
#endif

FUNCTION(nvmlDeviceGetName, void *handle, char *out, unsigned n)
{
    snprintf(out, n, "Pretended %d\n", index_of(handle)); /* a control character to clean */
    return 0;
}

FUNCTION(nvmlSystemGetDriverVersion, char *out, unsigned n)
{
    snprintf(out, n, "555.42");
    return 0;
}
