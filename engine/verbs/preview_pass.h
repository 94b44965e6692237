/* preview_pass.h - crops out of a pass over a whole item, cut as a run's is: in one or in stages.
 *
 * Where an operator reads the whole image, all of it has to pass before a crop is right. All
 * stages but the one of the output compute everything; of that one rows without a crop are left
 * out. */
#ifndef TGI_PREVIEW_PASS_H
#define TGI_PREVIEW_PASS_H

#include "engine/job/pass.h"

#define TGI_PREVIEW_CROPS 3

/* Crops of output 0, all of one size. */
typedef struct tgi_preview_pass {
    tgi_pass pass;
    int n, channels;
    tgi_range core[TGI_PREVIEW_CROPS][3]; /* z,y,x, in the network's frame */
    float *data[TGI_PREVIEW_CROPS];       /* [channel][y][x] */
} tgi_preview_pass;

/* Reserve what the job's plan says, for processors; rows come from `source`, borrowed. */
tg_status tgi_preview_pass_open(tgi_preview_pass *p, tg_job *job, tgi_source *source,
                                tgi_err *err);
/* Once p->pass.sets and the crops are set: fill their data from an item. */
tg_status tgi_preview_pass_walk(tgi_preview_pass *p, int64_t item, tgi_err *err);

#endif
