/* monitor.h - the truth about host memory: what this process holds and what is really free.
 *
 * measured = RssAnon + RssShmem + VmSwap + VmPTE of /proc/self/status. File pages are reported
 * beside it, never counted: the kernel takes them back when it needs them.
 *
 * free = the least of MemAvailable, what every cgroup above this process still allows (v1 and
 * v2, each level up to the root, inactive file pages given back), and the rlimits.
 *
 * All readers take a root prefix ("" for the machine) so that tests feed them made-up trees;
 * they allocate nothing and are cheap enough to be asked every few milliseconds. */
#ifndef TGI_MONITOR_H
#define TGI_MONITOR_H

#include "engine/base/status.h"

#define TGI_UNLIMITED UINT64_MAX

typedef struct tgi_process_memory {
    uint64_t anon, file, shmem, swap, pte, high_water; /* bytes */
} tgi_process_memory;

typedef struct tgi_free_memory {
    uint64_t bytes;                         /* the least of all */
    uint64_t mem_available, cgroup, rlimit; /* TGI_UNLIMITED where there is no limit */
    char limited_by[256];                   /* "MemAvailable", "cgroup /a/b", "RLIMIT_AS" */
} tgi_free_memory;

int tgi_process_memory_read(const char *root, tgi_process_memory *out); /* 1 on success */
void tgi_free_memory_read(const char *root, tgi_free_memory *out);

uint64_t tgi_measured_of(const tgi_process_memory *p); /* as above */
uint64_t tgi_mem_measured(void);                       /* now */
/* What is free now; `detail` may be NULL. */
uint64_t tgi_mem_available(tgi_free_memory *detail);
/* Free and already ours, less max(512 MiB, 10 %) as margin: of given numbers, and of now. */
uint64_t tgi_budget_of(uint64_t free_bytes, uint64_t own_bytes);
uint64_t tgi_mem_default_budget(void);

#endif
