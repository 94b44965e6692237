/* propainter_inside.h - what the files of propainter.h share: the plan and the memory of it (propainter.c), and the acts of its order
 * with the items that they read and keep (propainter_acts.c). */
#ifndef TGI_PROPAINTER_INSIDE_H
#define TGI_PROPAINTER_INSIDE_H

#include "engine/base/arith.h"
#include "engine/base/reserve.h"
#include "engine/inpaint/pp_cost.h"
#include "engine/inpaint/propainter.h"

#define TGI_PP_NO_FRAME INT64_MIN

/* Kinds of the store: motions of both directions are items of their own. */
enum {
    FRAMES,
    FOUND,
    FOUND_BACK,
    COMPLETED,
    COMPLETED_BACK,
    UPDATED,
    PASSING,
    FEATURES,
    KINDS
};

typedef struct propainter {
    tgi_method base;
    tgi_propainter_how how;
    tgi_pp_extent most;
    tgi_pp_flow *flow;
    tgi_pp_complete *complete;
    tgi_pp_generate *generate;
    tgi_frame_store_how kept;
    uint8_t *unmoved; /* bits of how.moving's outside, in place of the frames'; or NULL */
    int64_t pending;  /* frames that are mixed at once */
    size_t
        planned; /* bytes that the plan itself takes: tables, and tensors in another order than their file's */
    tgi_sched_need need; /* of a device */
    /* While it runs. */
    tgi_sched_card card;
    tgi_reserve *reserve;
    tgi_threads *pool;
    tgi_frame_store *store;
    void *store_room, *weights[3], *block, *mixed_room, *hidden;
    int64_t *mixed_of; /* frames that lie there; tgi_free */
    tgi_pp_order order;
    struct { /* what is walked over, to know what is needed again when */
        int64_t at, lo, hi;
        int back; /* 1: from hi to lo */
    } walk;
    tgi_pp_extent ahead, done; /* of what the frame that is made next needs */
    int64_t made, first; /* the frame that was made last; the one that the order began for */
    int held_kind[2];    /* an item that an `until the next call` holds: FRAMES ..., -1 */
    int64_t held_frame[2];
} propainter;

static inline size_t pixels(const propainter *p)
{
    return (size_t)(p->how.height * p->how.width);
}

static inline size_t mask_bytes(const propainter *p)
{
    return tgi_pp_mask_bytes(p->how.height, p->how.width);
}

static inline int is_endless(const propainter *p)
{
    return p->how.hi == TGI_PP_NO_END;
}

/* Every other block looks at the second frame first: there has to be one. */
static inline tg_status one_frame(tgi_err *err)
{
    return tgi_fail(
        err, TG_E_ARG,
        "one frame alone: ProPainter draws from other frames; --method smooth fills "
        "a picture by itself");
}

/* Of a frame that is mixed: RGB, and bits of what it hides. */
static inline size_t mixed_bytes(const propainter *p)
{
    return 3 * pixels(p) + mask_bytes(p);
}

static inline int64_t reach_of(const propainter *p)
{
    const tgi_pp_settings *s = &p->how.set;
    return tgi_max(s->neighbor_length / 2, tgi_pp_reach(s));
}

static inline uint8_t *mixed_at(const propainter *p, int64_t k)
{
    return (uint8_t *)p->mixed_room + (size_t)(k % p->pending) * mixed_bytes(p);
}

static inline double operations(void *user, const tgi_sched_net *n)
{
    (void)user;
    return n->choice.tiling.flops;
}

static inline double of_film(const propainter *p, const tgi_pp_extent *x, double masked,
                             tgi_sched_pass *of_pass, void *user)
{
    return tgi_pp_cost(&(tgi_pp_networks){p->flow, p->complete, p->generate}, x, masked,
                       of_pass, user);
}

/* propainter_acts.c */

/* When an item is needed again, for the store. */
int64_t tgi_propainter_next_use(void *user, int kind, int64_t frame);
/* Items that an `until the next call` holds. */
void tgi_propainter_let_all_go(propainter *p);
/* Begin for frame k, as if nothing came before. */
void tgi_propainter_start_at(propainter *p, int64_t k);

#endif
