/* run_state.h - what frames hand to each other (ends/carried.h), on the disk now and then, so that a stopped run goes
 * on: in OUT.stages (out/stage_log.h), when all that was made of the frames before is safe in the journal. */
#ifndef TGI_RUN_STATE_H
#define TGI_RUN_STATE_H

#include "engine/job/pass.h"
#include "engine/out/commit.h"
#include "engine/out/stage_log.h"

typedef struct tgi_run_state {
    tgi_stage_log *log;
    const char *output;
    uint64_t job;    /* checksum of what its journal says */
    int64_t segment; /* it is written before frames that this divides */
    int64_t went_on; /* frame that this run began with */
    double last;
} tgi_run_state;

/* Before the first frame is computed: read what an earlier run left, which holds for a frame that is not behind
 * `missing`; *first is that frame. */
tg_status tgi_run_state_begin(tgi_run_state *s, tgi_pass *p, int64_t missing, int64_t *first,
                              tgi_err *err);
/* Frame `item` is about to be computed. */
tg_status tgi_run_state_item(tgi_run_state *s, tgi_pass *p, tgi_commit *commit, int64_t item,
                             tgi_err *err);
void tgi_run_state_close(tgi_run_state *s);

#endif
