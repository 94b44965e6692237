/* gpus.h - the table of GPUs (configs/gpus.json), and which row a machine's GPU is like. */
#ifndef TGI_GPUS_H
#define TGI_GPUS_H

#include "engine/settings/machine.h"

#define TGI_GIB 1073741824.0

typedef struct tgi_gpu {
    char name[48];
    uint64_t memory_bytes;
    double fp16_flops, fp32_flops, bytes_per_second; /* 0: unknown */
    int major, minor;                                /* compute capability; 0.0: unknown */
    int multiprocessors;                             /* 0: unknown */
    int verified;                                    /* the table's figures were looked up */
    char source[160];
} tgi_gpu;

#define TGI_MAX_GPUS 128

typedef struct tgi_gpus {
    tgi_gpu gpu[TGI_MAX_GPUS];
    int n;
} tgi_gpus;

/* configs/gpus.json, checked. Returned; tgi_free. */
tg_status tgi_gpus_load(tgi_gpus **out, tgi_err *err);
/* One by name; a name without its build ("RTX 3060") is that of the only build there is.
 * TG_E_ARG with the builds, or the nearest. */
tg_status tgi_gpus_find(const tgi_gpus *t, const char *name, size_t n, const tgi_gpu **out,
                        tgi_err *err);
/* 0: the plugin has no kernels for it (docs/gpu.md). */
int tgi_gpu_is_served(const tgi_gpu *g);
/* The GPUs of a machine, with what is free of their memory, and the speeds of the row of
 * `table` that they are most like. */
void tgi_gpus_of_machine(const tgi_machine *m, const tgi_gpus *table, tgi_gpus *out);
/* The row that a GPU's name, as its driver tells it, and its memory are most like: "NVIDIA
 * A100-SXM4-80GB" is "A100 80GB". NULL: none. */
const tgi_gpu *tgi_gpus_like(const tgi_gpus *t, const char *name, uint64_t total_bytes);

#endif
