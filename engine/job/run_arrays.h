/* run_arrays.h - the steps of a run whose outputs are arrays. */
#ifndef TGI_RUN_ARRAYS_H
#define TGI_RUN_ARRAYS_H

#include "engine/job/run.h"

/* The files of all inputs (tgi_held_files); `of` is the job. */
int tgi_tensor_files(const void *of, int64_t i, tgi_held *out);

extern const tgi_run_steps tgi_array_steps;

#endif
