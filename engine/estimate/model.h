/* model.h - what a model takes for one sample, by the planner. */
#ifndef TGI_ESTIMATE_MODEL_H
#define TGI_ESTIMATE_MODEL_H

#include "engine/settings/opts.h"

typedef struct tgi_sample_plan {
    int64_t parameters;
    uint64_t weights_bytes; /* as kernels hold them */
    uint64_t sample_bytes;  /* the arena of one whole sample, float32 */
    char size[64];          /* "224x224" */
} tgi_sample_plan;

/* Plan one sample of the model, whole. */
tg_status tgi_plan_sample(const char *path, const tg_opts *o, tgi_sample_plan *out,
                          tgi_err *err);

#endif
