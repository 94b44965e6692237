/* choose.h - the cheapest tiling of a stage that fits.
 *
 * Band heights are tried by powers of two, up to what the processor's caches like or as the
 * caller says. For each height the fewest strips (cells, for volumes) are taken whose memory is
 * below the limit. Among these the least estimated time wins. Every candidate that was looked
 * at is kept for `plan --why`. */
#ifndef TGI_CHOOSE_H
#define TGI_CHOOSE_H

#include "engine/plan/tiling.h"

#define TGI_MAX_TRIED 96

typedef struct tgi_tried {
    int64_t cut[3], band;
    size_t bytes; /* arena and what depends on the cut */
    double seconds, recomputed;
    int fits;
} tgi_tried;

struct tgi_staged;
typedef struct tgi_choice {
    tgi_tiling tiling;
    struct tgi_staged *staged; /* the net runs in stages (staged.h); NULL: in one */
    double seconds;            /* estimate, uncalibrated */
    double least_seconds;      /* of those that fit */
    tgi_tried tried[TGI_MAX_TRIED];
    int n_tried;
    size_t smallest_bytes; /* least that any candidate needed */
    size_t beside_bytes;   /* what the net's kernels need beside the arena; set by the caller */
    size_t chosen_bytes;
} tgi_choice;

typedef struct tgi_choose_args {
    const tgi_stage *stage;
    int threads;
    size_t limit_bytes;      /* for the arena and `extra` together */
    int64_t unit[3];         /* cells are multiples of this many output pixels (file tiles) */
    int64_t fixed[3];        /* z,y,x cell the user asked for; 0: free */
    int whole;               /* one cell, one band: the untiled pass */
    int any;                 /* the first that fits will do: the question is whether one does */
    double flops_per_second; /* of all threads */
    /* Seconds of one item on a device; NULL: on the processor. Bands on a device are as tall as
     * pays, up to `tallest` rows of input 0. */
    double (*seconds)(void *user, const tgi_tiling *t);
    int64_t tallest; /* 0: as the processor's */
    /* Bytes that depend on the tiling but are not the arena: staging, the writer's window. */
    size_t (*extra)(void *user, const tgi_tiling *t);
    void *user;
} tgi_choose_args;

/* Free the tiling, and those of stages. */
void tgi_choice_free(tgi_choice *c);

/* TG_E_BUDGET: nothing fits; out->smallest_bytes and tried[] are filled all the same. Release
 * it with tgi_choice_free after TG_OK. */
tg_status tgi_choose(const tgi_choose_args *a, tgi_choice *out, tgi_err *err);

/* Choose how many nodes of the net rearrange their sums (tgi_net_use_fast). Their packed
 * weights and larger halos take from the budget. So it is all of them when every pixel is
 * computed once anyway, else the share whose plan is the fastest.
 *
 * `choose` plans with the net as it is, like tgi_choose. With `first` the largest share that
 * fits is taken, so that cells given by the user never decide. `given` >= 0 is the number to
 * take. The net is left as `best` needs it. */
tg_status tgi_choose_kernels(tgi_net *net, int given, int first,
                             tg_status (*choose)(void *user, tgi_choice *out), void *user,
                             tgi_choice *best);

#endif
