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
    uint64_t resident, virt;                           /* VmRSS, VmSize */
} tgi_process_memory;

typedef struct tgi_system_memory {
    uint64_t total, available, swap_total, swap_free; /* bytes; available 0: not told */
    uint64_t committed, commit_limit;                 /* of overcommit mode 2 */
} tgi_system_memory;

/* One level of a cgroup hierarchy above this process. */
typedef struct tgi_cgroup {
    int version;    /* 1 or 2 */
    char path[200]; /* below the mount: "/a/b", "/" for its root */
    uint64_t limit; /* the least of its limits; TGI_UNLIMITED: none */
    uint64_t used;  /* inactive file pages, which the kernel gives back, included */
    uint64_t inactive_file;
    uint64_t room; /* what it still allows */
} tgi_cgroup;
#define TGI_MAX_CGROUPS 32

typedef struct tgi_free_memory {
    uint64_t bytes;                         /* the least of all */
    uint64_t mem_available, cgroup, rlimit; /* TGI_UNLIMITED where there is no limit */
    char limited_by[256];                   /* "MemAvailable", "cgroup /a/b", "RLIMIT_AS" */
} tgi_free_memory;

int tgi_process_memory_read(const char *root, tgi_process_memory *out); /* 1 on success */
int tgi_system_memory_read(const char *root, tgi_system_memory *out);   /* 1 on success */
/* Levels that say anything, from the process's own group up to the root; returns how many of at
 * most `cap` were written. */
int tgi_cgroups_read(const char *root, tgi_cgroup *out, int cap);
/* Name of a process, cleaned of control characters; "?" when it is not there. Returns buf. */
const char *tgi_process_name(const char *root, int64_t pid, char *buf, size_t cap);
void tgi_free_memory_read(const char *root, tgi_free_memory *out);
/* Where a limit of the shell leaves the least, the command that raises it: "ulimit -v"; else NULL.
 */
const char *tgi_free_memory_option(const tgi_free_memory *f);

uint64_t tgi_measured_of(const tgi_process_memory *p); /* as above */
uint64_t tgi_mem_measured(void);                       /* now */
/* What is free now; `detail` may be NULL. */
uint64_t tgi_mem_available(tgi_free_memory *detail);
/* What a budget that nobody set leaves to others: max(512 MiB, 10 %) of what is free and
 * already ours. */
uint64_t tgi_margin_of(uint64_t free_bytes, uint64_t own_bytes);
/* Free and already ours, less the margin: of given numbers, and of now. */
uint64_t tgi_budget_of(uint64_t free_bytes, uint64_t own_bytes);
uint64_t tgi_mem_default_budget(void);

#endif
