/* planned.h - a graph laid out at one size, with its stages: what tests and benchmarks of the
 * planner start from. */
#ifndef TG_PLANNED_H
#define TG_PLANNED_H

#include "engine/plan/stage.h"
#include "tests/tg_test.h"

typedef struct planned {
    tgi_net *net;
    tgi_stages *stages;
    const tgi_stage *one; /* the whole net */
} planned;

static inline planned planned_open(const tgi_graph *g, int64_t h, int64_t w)
{
    planned p = {0};
    tgi_err e = {0};
    tgi_desc in[TGI_MAX_PORTS];
    const int64_t ext[3] = {1, h, w};
    tgi_graph_input_descs(g, ext, in);
    CHECK_OK(tgi_net_new(g, tgi_backend_for(tgi_isa_detect(TGI_ISA_COUNT)), in, 0, &p.net, &e),
             e);
    if (p.net)
        CHECK_OK(tgi_stages_new(p.net, &p.stages, &e), e);
    p.one = p.stages ? &p.stages->one : NULL;
    return p;
}

static inline void planned_close(planned *p)
{
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
    p->one = NULL;
}

#endif
