/* staged_text.h - what a plan in stages adds up to, and its stages as JSON. */
#ifndef TGI_STAGED_TEXT_H
#define TGI_STAGED_TEXT_H

#include "engine/base/json.h"
#include "engine/plan/staged.h"

/* Of all stages together. */
typedef struct tgi_staged_sums {
    int64_t cells, bands;
    int64_t halo[3];          /* z,y,x: the largest of any stage */
    double flops;             /* of one item */
    double once;              /* of these, with every node computed in one place, once */
    size_t lower_bound_bytes; /* of the stage that needs most */
} tgi_staged_sums;

tgi_staged_sums tgi_staged_sum(const tgi_staged *s);
/* What is computed more than once, relative to one pass: halos, and nodes that several stages
 * compute. */
double tgi_staged_recomputed(const tgi_staged *s);
static inline double tgi_choice_recomputed(const tgi_choice *c)
{
    return c->staged ? tgi_staged_recomputed(c->staged) : tgi_tiling_recomputed(&c->tiling);
}

/* Member "staged" of an open object. */
void tgi_staged_json(tgi_jw *w, const tgi_staged *s);

#endif
