/* inpaint_inside.h - what the files of inpaint_choice.h share: the search (inpaint_choice.c), and what is told of it
 * (inpaint_told.c). */
#ifndef TGI_INPAINT_INSIDE_H
#define TGI_INPAINT_INSIDE_H

#include "engine/base/number.h"
#include "engine/inpaint/crop.h"
#include "engine/settings/machine.h"
#include "engine/settings/opts.h"

#define TGI_MOST_WAYS 128

/* Options that a way sets, and what it says of each. */
enum { SUBVIDEO, NEIGHBOR, STRIDE, RATIO, EXACT, PRECISION, SCRATCH, DEVICE, VARIED };
extern const tgi_opt tgi_way_sets[VARIED];

/* Of ProPainter: each has references; the fewer neighbours, the more of those. */
#define TGI_WAY_STEPS 5
extern const int64_t tgi_way_step[TGI_WAY_STEPS][3];

typedef struct way {
    const char *what;
    char value[VARIED][TGI_NUMBER_TEXT]; /* "": as it is */
    int region;                          /* --region auto */
    int step, rounded, exact;
    int far; /* a GPU computes the networks */
    int fits;
    tgi_err why_not;
    uint64_t needs; /* of a GPU that has less: at least */
    char vram[TGI_NUMBER_TEXT];
    int64_t height, width, film_height, film_width;
    tgi_crop part;
    uint64_t peak, scratch, budget;
    uint64_t device;    /* of the GPU that computes, or what one would hold */
    double most, least; /* seconds */
} way;

typedef struct choice {
    tg_opts *o;
    int lower;             /* what was asked may be lowered */
    int sized;             /* the size is said */
    int drawn;             /* ProPainter: it has settings */
    int may_bf16;          /* the processor has it, and nobody said what to take */
    int may_half;          /* the same of a GPU */
    int named;             /* the GPU is, by --device: no other way */
    int auto_device;       /* by --preset auto, whichever of the two */
    int may_near, may_far; /* the processor may compute the networks; a GPU may */
    int kept;              /* of an earlier run */
    int gone;         /* which a GPU computed that is not there now: the run says what then */
    char device[128]; /* the GPU that was planned; "" */
    char no_device[256]; /* why there is none although one could be expected; "" */
    int64_t asked[3];
    double asked_ratio;
    size_t beside;
    int cuts; /* a file in memory: scenes that were found once (--split-scenes auto); < 0: none */
    tgi_machine_gpu gpu; /* the first one; no memory: there is none */
    way tried[TGI_MOST_WAYS];
    int n, shown[12], n_shown, chosen;
} choice;

/* inpaint_told.c: what an option of VARIED is in that way; all ways that are shown, as an object. tgi_free. */
const char *tgi_way_value(const choice *c, const way *w, int which);
tg_status tgi_ways_tell(const choice *c, char **json, tgi_err *err);

#endif
