/* monitor_machine.h - what does not change while a program runs: processors, caches,
 * instruction sets, filesystems; and the whole machine as one JSON object.
 *
 * That object (schema "tegula.machine", version 1; members in docs/reference/json.md) is what
 * `tegula mem --json` prints and what planning for another machine reads back. Members may be
 * added to a version, never changed. */
#ifndef TGI_MONITOR_MACHINE_H
#define TGI_MONITOR_MACHINE_H

#include "engine/base/json.h"
#include "tegula_memory.h"

#define TGI_MACHINE_SCHEMA "tegula.machine"
#define TGI_MACHINE_VERSION 1

typedef struct tgi_cpu_cache {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    uint64_t bytes;
    int shared_by; /* processors; 0: unknown */
} tgi_cpu_cache;
#define TGI_MAX_CPU_CACHES 8

typedef struct tgi_processors {
    char model[96];                          /* "" when the system does not say */
    int online;                              /* of the machine */
    int usable;                              /* by this process: its affinity mask */
    tgi_cpu_cache cache[TGI_MAX_CPU_CACHES]; /* of the first processor */
    int n_caches;
} tgi_processors;

/* Processors that this process may run on, at least 1. */
int tgi_usable_processors(void);
/* From /proc/cpuinfo and /sys/devices/system/cpu below `root`. */
void tgi_processors_read(const char *root, tgi_processors *out);

/* Seconds that the threads of this process have had a processor, and have waited for one that
 * others had. Zero where the kernel does not say. From /proc/self/task below `root`. */
typedef struct tgi_turns {
    double ran, waited;
} tgi_turns;
void tgi_turns_read(const char *root, tgi_turns *out);

/* Room of the filesystem at `path`, but for `size`; 0 when there is none (errno tells). */
int tgi_disk_look(const char *path, tg_disk *out);
/* Where temporary files go: TMPDIR, else /tmp. */
const char *tgi_temp_folder(void);

/* A mode or flag of the kernel as one word or number: the first line of a small file below
 * root; "" when it is not there. Returns buf. */
const char *tgi_system_word(const char *root, const char *path, char *buf, size_t cap);

/* The members of the object, without its braces. */
void tgi_machine_json(tgi_jw *w, const char *root);

#endif
