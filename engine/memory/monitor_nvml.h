/* monitor_nvml.h - GPU memory as the driver tells it, through NVML opened at run time.
 *
 * NVML ("NVIDIA Management Library") comes with the driver, so it is neither linked nor needed
 * to build: its few functions are declared here by us, found by name, and its absence means
 * that there are no GPUs. Nothing else of tegula talks to NVML.
 *
 * The library is opened at the first question and stays open: closing and opening it again
 * costs some 20 ms each, and jobs that never ask never pay its megabytes. */
#ifndef TGI_MONITOR_NVML_H
#define TGI_MONITOR_NVML_H

#include "tegula_memory.h"

#define TGI_MAX_GPUS 64

/* One device that the driver showed; tg_gpu_handle of the public header. */
typedef struct tg_gpu_handle tgi_nvml_device;

/* Whether NVML answers, and where it does not, what kind of reason tg_gpu_driver.problem gives. */
typedef enum tgi_nvml_state {
    TGI_NVML_WORKS,      /* no problem */
    TGI_NVML_OFF,        /* switched off by TEGULA_NVML */
    TGI_NVML_MISSING,    /* no such library */
    TGI_NVML_NOT_LOADED, /* the library is there, the kernel's module is not loaded */
    TGI_NVML_MISMATCH,   /* library and module are of different versions */
    TGI_NVML_FAILED      /* anything else */
} tgi_nvml_state;

int tgi_nvml_count(void);                          /* 0: no driver, no GPU */
const tgi_nvml_device *tgi_nvml_device_at(int id); /* NULL: none; valid while open */
/* 1, or 0 with `why` (TGI_NVML_WHY characters; NULL allowed) when the driver refused. */
#define TGI_NVML_WHY 160
int tgi_nvml_memory(const tgi_nvml_device *d, uint64_t *total, uint64_t *free_bytes,
                    uint64_t *used, char *why);
/* Everything of tg_gpu but our pool; `root` is where names of processes are read. */
void tgi_nvml_look(const tgi_nvml_device *d, const char *root, tg_gpu *out);
/* Bytes that processes which compute there hold, `self` not counted; `*listed`: it is one of
 * them. 0: the driver does not tell, or not of all. */
int tgi_nvml_others(const tgi_nvml_device *d, unsigned self, uint64_t *bytes, int *listed);
tgi_nvml_state tgi_nvml_driver(tg_gpu_driver *out); /* but for `size` */
/* Close the library; the next question opens the one of TEGULA_NVML then. Handles die: for
 * tests, which pretend one machine after another. */
void tgi_nvml_close(void);

#endif
