/* roofline.h - a job on a GPU that is not here: what its plan takes in half precision, and the
 * least time that arithmetic and memory traffic allow.
 *
 * Nothing of this is measured, whatever GPU is here: every time is *projected*. Per node the
 * slower of its operations at the GPU's FP16 rate and its bytes at the GPU's bandwidth (each
 * operand read once, each result written once, two bytes an element); weights once per band.
 * @source Williams et al., "Roofline", CACM 52(4), 2009. */
#ifndef TGI_ROOFLINE_H
#define TGI_ROOFLINE_H

#include "engine/job/job.h"
#include "engine/settings/gpus.h"

/* What a driver and libraries take of a GPU before the first tensor; an assumption. */
#define TGI_CONTEXT_BYTES ((uint64_t)512 << 20)

/* A job, planned for devices. */
typedef struct tgi_device_job {
    tg_job *job; /* planned for a host without a budget */
    tgi_net *net;
    tgi_stages *stages;
    int64_t items;
    uint64_t weights_bytes; /* half precision */
    uint64_t host_bytes;    /* of the plan, without the arena */
    double flops;           /* of one item, nothing computed twice */
} tgi_device_job;

/* What one amount of device memory gives. */
typedef struct tgi_device_plan {
    uint64_t usable_bytes; /* memory less margin and context */
    uint64_t needed_bytes; /* weights and arena; where nothing fits, the least that would */
    int fits;
    double recomputed;            /* work beyond one pass, relative */
    double flops, weight_traffic; /* of the whole job */
} tgi_device_plan;

/* Open and plan the job of options `o` (taken over as a copy). Release with
 * tgi_device_job_close, also after a failure. */
tg_status tgi_device_job_open(tg_ctx *ctx, const tg_opts *o, tgi_device_job *out, tgi_err *err);
void tgi_device_job_close(tgi_device_job *d);

/* What of a GPU's memory a plan may take: less a margin and the context. */
uint64_t tgi_device_usable(uint64_t memory_bytes);

/* The plan for that much memory. `like` (or NULL): a plan already made; where it fits as it
 * is, it is taken. */
tg_status tgi_device_plan_make(const tgi_device_job *d, uint64_t memory_bytes,
                               const tgi_device_plan *like, tgi_device_plan *out, tgi_err *err);

/* The plan whose cells are squares (volumes: cubes) of at most `side` pixels; 0: of
 * any form. */
tg_status tgi_device_plan_tile(const tgi_device_job *d, uint64_t memory_bytes, int64_t side,
                               tgi_device_plan *out, tgi_err *err);

/* The least seconds of all items on this GPU. */
double tgi_roofline_seconds(const tgi_device_job *d, const tgi_device_plan *p,
                            const tgi_gpu *gpu);

#endif
