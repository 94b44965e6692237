/* pass_stages.h - a pass in stages (plan/staged.h): the same cells and bands for each stage in
 * turn, values kept from one to another, reductions gathered. */
#ifndef TGI_PASS_STAGES_H
#define TGI_PASS_STAGES_H

#include "engine/ends/gathering.h"
#include "engine/ends/kept.h"
#include "engine/exec/exec.h"
#include "engine/job/pass_device.h"
#include "engine/job/stage_state.h"
#include "engine/out/scratch.h"
#include "io/image.h"

typedef struct tgi_pass_stages {
    const tgi_staged *plan; /* NULL: the net runs in one */
    tgi_source *source;     /* of an image, borrowed; NULL: inputs are arrays */
    tgi_kept kept;
    tgi_gathering gathering;
    tgi_scratch *file;
    void *memory, *states; /* blocks of the plan */
    float *numbers;
    int at;             /* stage at hand */
    const char *output; /* what is done is written down beside it; NULL: nowhere */
    uint64_t job;       /* then: checksum of what the output's journal says */
    int idle;      /* all is in the output already: no file is opened before an item wants it */
    int resumes;   /* the first stage of the item goes on in its midst */
    int64_t first; /* then: with this cell */
    int known;     /* stages before it have their numbers: they only make values again */
    /* Of the first item, once walked: stages that an earlier run was through with; how many of them make
     * values again. */
    int walked, before, again;
    tgi_stage_state state;
    int64_t shift[3];       /* from the region to the network, z,y,x */
    tgi_exec_times behind;  /* of the stages that are through */
    double waited;          /* for rows of the image, there */
    tgi_pass_device device; /* of the stage at hand */
} tgi_pass_stages;

struct tgi_pass;

/* After the blocks are there. */
tg_status tgi_pass_stages_open(struct tgi_pass *p, tgi_source *source, tgi_err *err);
/* All stages of the pass's item. */
tg_status tgi_pass_stages_walk(struct tgi_pass *p, tgi_err *err);
void tgi_pass_stages_close(struct tgi_pass *p);

/* A cell begins: rows of its core that are still missing. */
void tgi_pass_stages_turn(struct tgi_pass *p, int64_t cell, tgi_range core[3]);
/* Rows of input i of the stage at hand, and of its output o. */
tg_status tgi_pass_stages_load(struct tgi_pass *p, int i, const tgi_view *view,
                               const tgi_box *box, tgi_err *err);
/* Where an input lies that is read in place. */
const float *tgi_pass_stages_place(const struct tgi_pass *p, int i);
tg_status tgi_pass_stages_piece(struct tgi_pass *p, int i, const tgi_view *view,
                                tgi_range pixels, tgi_err *err);
/* Rows of output o are there: for what is written down. */
void tgi_pass_stages_rows(struct tgi_pass *p, int o, const tgi_box *box);
tg_status tgi_pass_stages_store(struct tgi_pass *p, int o, const tgi_view *view,
                                const tgi_box *box, tgi_err *err);
/* The same of a reduction's output, of which moments of rows came (tgi_granules_add_rows). */
tg_status tgi_pass_stages_store_sums(struct tgi_pass *p, int o, const double *sum,
                                     const tgi_box *box, tgi_err *err);

#endif
