/* pp_cost.h - what a film costs ProPainter: the passes of all networks that its order asks for. */
#ifndef TGI_PP_COST_H
#define TGI_PP_COST_H

#include "engine/inpaint/pp_complete.h"
#include "engine/inpaint/pp_extent.h"
#include "engine/inpaint/pp_flow.h"
#include "engine/inpaint/pp_generate.h"

typedef struct tgi_pp_networks {
    const tgi_pp_flow *flow;
    const tgi_pp_complete *complete;
    const tgi_pp_generate *generate;
} tgi_pp_networks;

/* Of all of a film, where `of_pass` says it of a network's pass (seconds, operations). Features of the generator's encoder
 * and the tokens of references count once for each frame, as where memory has room for them. `masked`: the share of the attention's windows in which
 * something is hidden, 0 to 1; of the others each frame is attended to by itself. */
double tgi_pp_cost(const tgi_pp_networks *p, const tgi_pp_extent *x, double masked,
                   tgi_sched_pass *of_pass, void *user);

#endif
