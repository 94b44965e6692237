/* pp_generate.h - a step of ProPainter's generator: neighbouring frames and references, of which the neighbours are made
 * anew. */
#ifndef TGI_PP_GENERATE_H
#define TGI_PP_GENERATE_H

#include "engine/exec/schedule_run.h"
#include "engine/inpaint/pp_at.h"
#include "engine/inpaint/pp_extent.h"
#include "engine/inpaint/pp_fill.h"
#include "engine/inpaint/pp_slots.h"
#include "engine/models/propainter/networks.h"

/* Attention of steps of `all` frames, of which the first `asked` have queries. */
typedef struct tgi_pp_attention {
    int all, asked, net;
    tgi_graph *graph;
} tgi_pp_attention;

typedef struct tgi_pp_block {
    tgi_graph *keys, *queries, *mix;
    int net_keys, net_queries, net_mix, n_attend;
    tgi_pp_attention *attend;
} tgi_pp_block;

/* What a frame shows the generator, in the caller's room: features of its encoder, and the tokens that they are split into,
 * which references alone are asked for: *split, 1: they are there. */
typedef struct tgi_pp_seen {
    float *features, *tokens;
    int *split;
} tgi_pp_seen;

/* Buffers between networks: of frames, of a whole step. They may stay on a device. */
typedef struct tgi_pp_between {
    int shown[TGI_PP_MOST_FRAMES], split[TGI_PP_MOST_FRAMES]; /* there alone: tgi_pp_slots */
    int way[2][TGI_PP_MOST_FRAMES], spare, x[TGI_PP_MOST_FRAMES], spare_x;
    int queries, keys, values, pooled_keys, pooled_values, attended;
} tgi_pp_between;

typedef struct tgi_pp_generate {
    int64_t height, width;
    int most, most_local; /* frames of a step; of them neighbours */
    tgi_pp_tokens tokens;
    tgi_schedule *schedule;
    tgi_graph *encode, *propagate[2][2], *join, *split, *compose;
    int net_encode, net_propagate[2][2], net_join, net_split, net_compose;
    tgi_pp_block block[TGI_PP_BLOCKS];
    tgi_schedule_run *run;
    tgi_threads *pool;
    int keeps_tokens;
    tgi_pp_between buffer;
    /* On a device, from step to step: features of neighbours, tokens of references. What lies there the caller need not
     * keep. */
    tgi_pp_slots shown_there, split_there;
    /* Behind the buffers, each of the frames of a step: */
    float *input, *picture, *windows;
    float *masks[TGI_PP_MOST_FRAMES], *flow[2][TGI_PP_MOST_FRAMES];
    /* Buffers that change places: */
    tgi_sched_at shown[TGI_PP_MOST_FRAMES], joined[TGI_PP_MOST_FRAMES], spare;
    tgi_sched_at way[2][TGI_PP_MOST_FRAMES], x[TGI_PP_MOST_FRAMES], spare_x;
    /* A reference whose tokens lie in a slot has its own buffer for what becomes of them. */
    tgi_sched_at own_x[TGI_PP_MOST_FRAMES];
    int lent[TGI_PP_MOST_FRAMES];
} tgi_pp_generate;

typedef struct tgi_pp_generate_io {
    void *user;
    /* Frame k, updated; motion k completed, there (0) or back (1). Until the next call. */
    tg_status (*updated)(void *user, int64_t k, tgi_pp_updated *out, tgi_err *err);
    tg_status (*motion)(void *user, int back, int64_t k, const float **out, tgi_err *err);
    /* Room for what frame k shows (tgi_pp_seen_bytes), the caller's until `release`; *made: it is there already, of this frame;
     * NULL: it is not, and `make` is 0. References are held one at a time, then all neighbours. */
    tg_status (*seen)(void *user, int64_t k, int make, void **out, int *made, tgi_err *err);
    void (*release)(void *user, int64_t k);
    /* What neighbour k became: [3][height][width] of -1..1. */
    tg_status (*put)(void *user, int64_t k, const float *picture, tgi_err *err);
} tgi_pp_generate_io;

/* `w`: ProPainter, borrowed. `has`: the sorts of steps that there are. Returned; tgi_pp_generate_free. */
tg_status tgi_pp_generate_new(const tgi_weights *w, const tgi_pp_at *at, const tgi_pp_sorts has,
                              int most_local, tgi_pp_generate **out, tgi_err *err);
void tgi_pp_generate_free(tgi_pp_generate **g);
/* Memory beside the weights (schedule->weight_bytes), of use in a step alone. */
size_t tgi_pp_generate_bytes(const tgi_pp_generate *g);
/* Of what a frame shows. */
size_t tgi_pp_seen_bytes(const tgi_pp_generate *g);
/* Less of it, before it is opened: tokens are made in each step. 0: it is as little as can be. */
int tgi_pp_seen_shrink(tgi_pp_generate *g);
/* The attention of block b; NULL: there is none for such steps. */
const tgi_pp_attention *tgi_pp_attention_of(const tgi_pp_generate *g, int b, int all,
                                            int local);
tg_status tgi_pp_generate_open(tgi_pp_generate *g, const tgi_schedule_memory *m, tgi_err *err);
void tgi_pp_generate_close(tgi_pp_generate *g);
/* Other networks ran since the last step, or another film begins: what lies on a device is of no use. */
void tgi_pp_generate_forget(tgi_pp_generate *g);
tg_status tgi_pp_generate_run(tgi_pp_generate *g, const tgi_pp_step *s,
                              const tgi_pp_generate_io *io, tgi_err *err);

#endif
