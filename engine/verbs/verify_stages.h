/* verify_stages.h - the pass that verify compares with the whole where operators read whole
 * extents: stage by stage, whatever the budget. */
#ifndef TGI_VERIFY_STAGES_H
#define TGI_VERIFY_STAGES_H

#include "engine/plan/staged.h"
#include "engine/verbs/verify_values.h"

/* 1: the job's network can run in stages. `cut`: of its net, all of the output wanted. */
int tgi_verify_in_stages(const tg_job *job, const tgi_stages *cut);
/* Into out->staged: what passes between stages in memory, and the rest in a quarter of what the
 * pass in one would take beyond that. Release with tgi_choice_free. */
tg_status tgi_verify_stages_plan(const tg_job *job, tgi_stages *cut, size_t uncut,
                                 tgi_choice *out, tgi_err *err);
/* Weights and all blocks of that pass. */
size_t tgi_verify_stages_bytes(const tgi_choice *c);
/* From v->in into v->other; how many cells all stages have. */
tg_status tgi_verify_stages_run(tg_job *job, const tgi_choice *c, const tgi_verify_values *v,
                                int64_t *cells, tgi_err *err);

#endif
