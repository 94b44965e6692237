/*
 * tegula_memory.h - who has the memory: the machine, its limits, this process, its GPUs.
 *
 * All sizes are bytes, in uint64_t, and say so in their names. Numbers are read when asked for
 * and belong to that moment: another program may take the memory a microsecond later, so plan
 * with a margin (tg_free_memory.margin_bytes is the one tegula itself leaves). Nothing here
 * needs a GPU or its driver: without one there are no GPUs, which is an answer and no error.
 *
 *     tg_system_memory m = {.size = sizeof m};
 *     char text[TG_SIZE_TEXT];
 *     if (tg_memory_system(NULL, &m) == TG_OK)
 *         printf("%s available\n", tg_size_text(m.available_bytes, text, sizeof text));
 *
 * Structs begin with `size`, set by the caller to sizeof; a size this version does not know is
 * TG_E_ARG. `root` is a folder below which the system's own files are read, such as "/host" in
 * a container that has the machine's root mounted there; NULL or "" is this machine's root. All
 * functions are thread safe.
 */
#ifndef TEGULA_MEMORY_H
#define TEGULA_MEMORY_H

#include <tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sizes and times as text ------------------------------------------------------------- */

#define TG_SIZE_TEXT 32 /* enough for tg_size_text */

/**
 * Write a size as text: "1.50 GiB", "512.00 MiB", "17 B". Units are powers of 1024, with two
 * decimals from KiB on. The whole program prints sizes with it. @return buf. @param cap at
 * least TG_SIZE_TEXT, or it is cut.
 */
TG_API const char *tg_size_text(uint64_t bytes, char *buf, size_t cap);

/**
 * Read a size as people write it: KiB MiB GiB TiB are powers of 1024, KB MB GB TB of 1000, and
 * "80%" is a share of `whole_bytes`. A number without a unit is refused: a guess is a bug.
 * @param ctx for the detail line; NULL: none. @param whole_bytes 0: percentages are refused.
 * @param bytes written only on TG_OK. @return TG_E_ARG with advice in the detail.
 */
TG_API tg_status tg_size_parse(tg_ctx *ctx, const char *text, uint64_t whole_bytes,
                               uint64_t *bytes);

/**
 * Read a time: "500ms", "1.5s", "2m", "1h"; a number without a unit is refused.
 * @param seconds written only on TG_OK. @return TG_E_ARG with advice in the detail.
 */
TG_API tg_status tg_duration_parse(tg_ctx *ctx, const char *text, double *seconds);

/** Convert to whole MiB (1024 x 1024 bytes), rounded down: 1048575 bytes are 0. */
TG_API uint64_t tg_bytes_to_mib(uint64_t bytes);

/* ---- Host -------------------------------------------------------------------------------- */

#define TG_NO_LIMIT UINT64_MAX /* where a limit could be and none is */

/** Memory of the machine. @source /proc/meminfo, proc(5). */
typedef struct tg_system_memory {
    size_t size;
    uint64_t total_bytes;
    uint64_t available_bytes; /* MemAvailable: what programs can get without swapping */
    uint64_t used_bytes;      /* total - available */
    double used_percent;      /* of total */
    uint64_t swap_total_bytes, swap_free_bytes;
} tg_system_memory;

/** Read the memory of the machine. @param out `size` set.
 * @return TG_E_ARG; TG_E_UNSUPPORTED where the system does not say. */
TG_API tg_status tg_memory_system(const char *root, tg_system_memory *out);

/** Memory of this process. @source /proc/self/status, proc(5). */
typedef struct tg_process_memory {
    size_t size;
    uint64_t anonymous_bytes;  /* RssAnon: heap, stacks, populated reservations */
    uint64_t file_bytes;       /* RssFile: mapped files; the system takes them back at will */
    uint64_t shared_bytes;     /* RssShmem */
    uint64_t swapped_bytes;    /* VmSwap */
    uint64_t page_table_bytes; /* VmPTE */
    uint64_t resident_bytes;   /* VmRSS: the first three */
    uint64_t peak_resident_bytes; /* VmHWM */
    uint64_t virtual_bytes;       /* VmSize: address space, mostly not memory */
    uint64_t measured_bytes;      /* what tegula holds against a budget: anonymous + shared +
                                     swapped + page tables; never file pages */
} tg_process_memory;

/** Read the memory of this process. @param out `size` set.
 * @return TG_E_ARG; TG_E_UNSUPPORTED where the system does not say. */
TG_API tg_status tg_memory_process(const char *root, tg_process_memory *out);

/** One level of the control groups above this process. @source cgroups(7), kernel
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst. */
typedef struct tg_cgroup_memory {
    int version;                /* 1 or 2 */
    char path[200];             /* below the mount; "/" is its root */
    uint64_t limit_bytes;       /* least of memory.max and memory.high; TG_NO_LIMIT */
    uint64_t used_bytes;        /* everything it is charged for */
    uint64_t reclaimable_bytes; /* of that, inactive file pages: given back when needed */
    uint64_t free_bytes;        /* limit - used + reclaimable; TG_NO_LIMIT */
} tg_cgroup_memory;

/**
 * List every control group that says anything, from the process's own group up to the root, v2
 * and v1.
 * @param list returned; release with tg_memory_list_free; NULL when *n is 0.
 * @return TG_E_ARG, TG_E_NOMEM.
 */
TG_API tg_status tg_memory_cgroups(const char *root, tg_cgroup_memory **list, size_t *n);

/** What is really free: the least of the machine, every cgroup above and the rlimits. */
typedef struct tg_free_memory {
    size_t size;
    uint64_t free_bytes;
    uint64_t available_bytes, cgroup_bytes, rlimit_bytes; /* TG_NO_LIMIT where there is none */
    char limited_by[224];  /* "MemAvailable", "cgroup /a/b", "RLIMIT_AS" */
    uint64_t margin_bytes; /* max(512 MiB, 10 %), left to others by a default budget */
    uint64_t budget_bytes; /* of a job without --ram: free and already ours, less the margin */
} tg_free_memory;

/** Find what is really free now. rlimits count for this machine only. @param out `size` set.
 * @return TG_E_ARG. */
TG_API tg_status tg_memory_free_now(const char *root, tg_free_memory *out);

/** Room of a filesystem. @source statvfs(3), statfs(2). */
typedef struct tg_disk {
    size_t size;
    uint64_t total_bytes, free_bytes; /* free: to this user */
    int in_memory;                    /* 1: tmpfs and the like, whose files are memory */
} tg_disk;

/** Look at the filesystem that `path` (a file or folder) lies on.
 * @return TG_E_ARG, TG_E_NOT_FOUND. */
TG_API tg_status tg_disk_look(const char *path, tg_disk *out);

/**
 * Describe the machine as one JSON object (schema "tegula.machine" 1, docs/reference/json.md):
 * memory, limits, processors, instruction sets, caches, disks of the current folder and of
 * TMPDIR, GPUs. Saved to a file it is what planning for another machine reads.
 * @param json returned; release with tg_text_free. @return TG_E_ARG, TG_E_NOMEM.
 */
TG_API tg_status tg_memory_json(tg_ctx *ctx, const char *root, char **json);

/** Release a list this header's functions returned; NULL allowed. */
TG_API void tg_memory_list_free(void *list);

/**
 * Empty every cache of this process: those registered inside tegula (memory pools), then what
 * the C library's allocator keeps. Nothing in use is touched; later allocations are slower
 * once.
 * @return bytes given back to the system, as far as they can be counted.
 */
TG_API uint64_t tg_mem_clear(void);

/* ---- Refusals ---------------------------------------------------------------------------- */

/** Memory that is held now, by what it is for ("graph", "plan", "io", ...). */
typedef struct tg_holder {
    const char *tag; /* static */
    uint64_t bytes;
} tg_holder;

/** A change to a command that makes it fit. */
typedef struct tg_remedy {
    struct {
        const char *name; /* of an option: "threads"; static */
        char value[240];
    } option[5]; /* to set, in place of what they were */
    size_t n_options;
    char loses[96];      /* what it costs: "nothing: so much is free" */
    uint64_t peak_bytes; /* predicted for the changed command by the planner itself */
} tg_remedy;

/** Why memory was refused, and what would do. */
typedef struct tg_refusal {
    const char *asked_by; /* "the plan", "the reservation", "verify", "an allocation"; static */
    uint64_t tried_bytes; /* that could not be had; 0: unknown */
    uint64_t free_bytes;  /* when it was refused, limited by: */
    char limited_by[224];
    uint64_t budget_bytes; /* of the command */
    tg_holder holder[16];  /* largest first */
    size_t n_holders;
    tg_remedy remedy[5]; /* least loss first; every one was planned and fits */
    size_t n_remedies;
} tg_refusal;

/**
 * Read the figures of the last memory refusal in this context (TG_E_BUDGET or TG_E_NOMEM). NULL
 * when the last failure was another one, or none. View, valid until the next call with this
 * context.
 * @source engine/verbs/refusal.c
 */
TG_API const tg_refusal *tg_ctx_refusal(const tg_ctx *ctx);

/**
 * Read the k-th of the ways (k from 0, the likeliest first) in which the last call that failed in this context would
 * go, where the failure itself says so: the channels of an image that a network could take. Nothing was planned: loses
 * and peak_bytes are not set. NULL: there are no more. View, valid until the next call with this context.
 * @source engine/api/tegula.c
 */
TG_API const tg_remedy *tg_ctx_remedy(const tg_ctx *ctx, size_t k);

/* ---- Doctor ------------------------------------------------------------------------------ */

/** How serious a finding is. */
typedef enum tg_finding_state {
    TG_FINDING_OK,     /* as it should be */
    TG_FINDING_NOTICE, /* slower or smaller than it could be */
    TG_FINDING_BLOCKS  /* jobs, or this one, cannot run */
} tg_finding_state;

/** One thing that was looked at. */
typedef struct tg_finding {
    const char *about; /* "ram", "cgroup", "driver", "job", ...; static */
    tg_finding_state state;
    char says[512];
    char remedy[512]; /* a command where there is one; "": nothing to do */
} tg_finding;

/**
 * Look at what jobs trip over: memory, limits, disks, processor, this build, the GPU driver and
 * who holds GPU memory; with a job also whether it fits. Changes nothing.
 * @param root as above. @param job options of a job, borrowed, or NULL. @param list returned;
 * release with tg_memory_list_free.
 * @return TG_E_ARG, TG_E_NOMEM, TG_E_CANCELLED. That a job cannot run is a finding, no failure.
 */
TG_API tg_status tg_doctor(tg_ctx *ctx, const char *root, const tg_opts *job, tg_finding **list,
                           size_t *n);

/* ---- GPUs -------------------------------------------------------------------------------- */
/*
 * Read through the driver's management library (NVML), opened when the first of these is
 * called: libnvidia-ml.so.1, or the path in the environment variable TEGULA_NVML ("" or "none":
 * as if there were no driver). Ids count the driver's GPUs from 0 in the order of their PCI
 * addresses, which is CUDA's with CUDA_DEVICE_ORDER=PCI_BUS_ID. Where a GPU cannot be read
 * (lost, not permitted) its numbers are 0 and `problem` says why.
 */

#define TG_GPU_CURRENT (-1) /* the device the GPU backend works on; 0 without a backend */
#define TG_GPU_NONE (-2)    /* "no GPU" as an answer */

/** A program that holds memory of a GPU. */
typedef struct tg_gpu_process {
    int64_t pid;
    uint64_t used_bytes; /* TG_NO_LIMIT: the driver does not tell (permissions, containers) */
    int graphics;        /* 1: draws; 0: computes */
    char name[32];       /* "?" when the process cannot be seen from here */
} tg_gpu_process;

/** A GPU and its memory. Set `size` first. */
typedef struct tg_gpu {
    size_t size;
    int id;
    char name[96], uuid[96], pci[32];             /* "" where the driver does not tell */
    int compute_major, compute_minor;             /* CUDA compute capability; 0.0: unknown */
    uint64_t total_bytes, free_bytes, used_bytes; /* used: by everybody, the driver included */
    uint64_t pool_allocated_bytes, pool_reserved_bytes; /* ours; 0 without a GPU backend */
    size_t n_processes; /* of all; the first of them, by size, are here: */
    tg_gpu_process process[16];
    char problem[160]; /* "": none */
} tg_gpu;

/** Count the GPUs; 0 without a driver. */
TG_API int tg_gpu_count(void);

/**
 * Read the memory of one GPU. Of an id that is none, or without any GPU, the sizes are 0 and
 * `problem` says why. @param id 0 .. count-1, or TG_GPU_CURRENT. @param out `size` set.
 * @return TG_E_ARG for NULL or an unknown size only.
 */
TG_API tg_status tg_gpu_memory(int id, tg_gpu *out);

/**
 * Read the memory of all GPUs; an empty list (NULL, 0) without one. @param root where the names
 * of processes are read. @param list returned; release with tg_memory_list_free. @return
 * TG_E_ARG,
 * TG_E_NOMEM.
 */
TG_API tg_status tg_gpu_memory_all(const char *root, tg_gpu **list, size_t *n);

/**
 * Ask for the free bytes of a GPU. @param with_cache 1: what our pool holds in reserve without
 * using it counts as free (we would get it); 0: as the driver sees it. 0 for an id that is
 * none.
 */
TG_API uint64_t tg_gpu_free_bytes(int id, int with_cache);

/** Ask for the used bytes of a GPU. @param with_cache 1: our pool's idle reserve counts as
 * used, as the driver sees it; 0: it does not. 0 for an id that is none. */
TG_API uint64_t tg_gpu_used_bytes(int id, int with_cache);

typedef struct tg_gpu_handle tg_gpu_handle;

/** Get a handle for tg_gpu_read: the device is looked up once. View of the library, valid for
 * the life of the process; NULL for an id that is none. */
TG_API const tg_gpu_handle *tg_gpu_open(int id);

/** Read the sizes of a GPU with one question to the driver: no names, no processes, no pool.
 * Any of the three may be NULL. @return TG_E_ARG (NULL handle), TG_E_DEVICE (the driver
 * refused; all are 0). */
TG_API tg_status tg_gpu_read(const tg_gpu_handle *gpu, uint64_t *total_bytes,
                             uint64_t *free_bytes, uint64_t *used_bytes);

/** Find the GPU with the most free bytes, the first of equals; TG_GPU_NONE without one.
 * @param free_bytes its free bytes, 0 without one; NULL allowed. */
TG_API int tg_gpu_most_free(uint64_t *free_bytes);

/**
 * Make the device's context now, so that what it takes is in the next measurement and not a
 * surprise after it. @return TG_E_ARG (no such GPU), TG_E_UNSUPPORTED (no GPU backend was
 * opened), TG_E_DEVICE.
 */
TG_API tg_status tg_gpu_preload(tg_ctx *ctx, int id);

/** The driver as NVML tells it. */
typedef struct tg_gpu_driver {
    size_t size;
    char library[256]; /* what was opened, or would have been */
    char version[96];  /* of the driver; "" when there is none */
    char problem[256]; /* why there is none, or what it lacks; "": nothing */
} tg_gpu_driver;

/** Look at the GPU driver. @param out `size` set. @return TG_E_ARG. */
TG_API tg_status tg_gpu_driver_look(tg_gpu_driver *out);

#ifdef __cplusplus
}
#endif

#endif
