/* machine.h - the machine that is planned for: the one door through which planner and
 * estimators ask what there is, so that they can be asked about a machine they are not on.
 *
 * Filled from this machine, or from a machine file: what `tegula mem --json` printed there
 * (schema "tegula.machine", members in docs/reference/json.md). Of a file:
 *
 *   memory       `budget_bytes` is what a job without --ram gets; a file made by hand may leave
 *                it out, then `free_bytes`, else the least of `available_bytes` (or
 *                `total_bytes`) and what every cgroup leaves, less the usual margin
 *   process      `measured_bytes` is what the program itself holds there; a plan adds what the
 *                job's model and indexes take, which is counted here
 *   processors   `usable` and `instruction_sets`; kernels choose the sizes of their jobs by
 *                constants and not by the caches, so plans do not read `caches`
 *   disks        a path belongs to the disk whose `path` is its longest beginning, else to that
 *                of the role "current"
 *   speeds       as tegula calibrate measured them there; without them, or when they are of
 *                another processor, estimates are uncalibrated
 *
 * Keys: a file of this or an older version may have only those that are known, so that a slip
 * of the pen is told together with the nearest key. A file whose "tegula" is newer may have
 * others, which are skipped. Another schema or a higher `version` is refused. */
#ifndef TGI_MACHINE_H
#define TGI_MACHINE_H

#include "engine/plan/speed.h"
#include "engine/settings/opts.h"
#include "kernels/backend.h"

#define TGI_MACHINE_DISKS 8
#define TGI_MACHINE_GPUS 16

typedef struct tgi_machine_disk {
    char role[16]; /* "current", "temporary" */
    char path[256];
    uint64_t free_bytes;
    int in_memory;
} tgi_machine_disk;

typedef struct tgi_machine_gpu {
    char name[96];
    uint64_t total_bytes, free_bytes;
    int major, minor;    /* compute capability; 0.0: the file does not say */
    int multiprocessors; /* 0: it does not say */
} tgi_machine_gpu;

typedef struct tgi_machine {
    int here;       /* 1: this machine, asked again when it matters; 0: of a file */
    char name[256]; /* the file; "this machine" */
    char processor[96];
    int processors;      /* that a job may use */
    unsigned sets;       /* 1 << tgi_isa: instruction sets with kernels */
    tgi_isa isa;         /* the best of them */
    int bf16;            /* of that set */
    uint64_t free_bytes; /* every limit counted */
    uint64_t own_bytes;  /* of the program, before a job; part of what a budget may be */
    uint64_t budget_bytes, margin_bytes; /* without --ram */
    char limited_by[224];
    int calibrated;
    tgi_speeds speeds;
    tgi_machine_disk disk[TGI_MACHINE_DISKS]; /* of a file */
    int n_disks;
    tgi_machine_gpu gpu[TGI_MACHINE_GPUS];
    int n_gpus;
} tgi_machine;

/* This machine, but for its GPUs: those are asked for by tgi_machine_find_gpus, since it opens
 * the driver's library. */
void tgi_machine_here(tgi_machine *out);
/* A machine file. TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_NOMEM; details name the file and the key.
 */
tg_status tgi_machine_read(const tgi_json *doc, const char *what, tgi_machine *out,
                           tgi_err *err);
tg_status tgi_machine_load(const char *path, tgi_machine *out, tgi_err *err);
/* The same of a text. */
tg_status tgi_machine_parse(const char *text, size_t n, const char *what, tgi_machine *out,
                            tgi_err *err);
/* What --machine says, else this machine. */
tg_status tgi_machine_of(const tg_opts *o, tgi_machine *out, tgi_err *err);

/* What is free changes: read it again, where it is this machine's. */
void tgi_machine_look_again(tgi_machine *m);
/* Fill in GPUs, where it is this machine; those of a file are there. */
void tgi_machine_find_gpus(tgi_machine *m);

/* What --ram allows, or the budget of a job without it; *margin (NULL allowed) is 0 with --ram.
 */
size_t tgi_machine_budget(const tgi_machine *m, const tg_opts *o, size_t *margin);
/* What the process of a job holds: `held` bytes of the library (tgi_mem_held), their page
 * tables, and the program. What is measured of the program differs by some pages from start to
 * start (where the system puts things is drawn by lot), so it is rounded up to steps of 512 KiB: the
 * same command has the same plan each time, but where it lies within those pages of a step.
 * *program (0 at first) keeps it, so that it is the same for all plans of a job, and never
 * shrinks. *more: what the next start may count beyond it, where it lies near a step; a budget
 * that is named to the user leaves room for it. */
size_t tgi_machine_process(const tgi_machine *m, size_t held, uint64_t *program,
                           uint64_t *more);
/* Of a program whose share is known. */
size_t tgi_machine_process_of(uint64_t program, size_t held);
/* Room of the filesystem at a folder, or a file in one; NULL: the current folder. 0: unknown.
 */
uint64_t tgi_machine_disk_free(const tgi_machine *m, const char *path);
/* Of a file: the disk that `path` lies on; NULL: it names none. */
const tgi_machine_disk *tgi_machine_disk_of(const tgi_machine *m, const char *path);
/* Where its temporary files go; *in_memory, *free_bytes of that place. NULL: unknown. */
const char *tgi_machine_temp(const tgi_machine *m, int *in_memory, uint64_t *free_bytes);
/* "lab3.json: 16 processors, avx512, NAME"; returns buf. */
const char *tgi_machine_text(const tgi_machine *m, char *buf, size_t cap);

#endif
