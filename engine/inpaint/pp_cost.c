/* pp_cost.c - see pp_cost.h. */
#include "engine/inpaint/pp_cost.h"

static double of_nets(const tgi_schedule *s, const int *net, int n, tgi_sched_pass *of_pass,
                      void *user)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        if (net[i] >= 0)
            sum += of_pass(user, &s->net[net[i]]);
    return sum;
}

/* All motions of a pair; of a motion in a completion window, both directions; of a step. */
static double of_pair(const tgi_pp_networks *p, tgi_sched_pass *of_pass, void *user)
{
    const tgi_schedule *s = p->flow->schedule;
    double sum = 0;
    for (int k = p->flow->look; k < p->flow->end; k++)
        if (s->step[k].net >= 0)
            sum += of_pass(user, &s->net[s->step[k].net]) *
                   (s->step[k].repeat > 1 ? s->step[k].repeat : 1);
    return sum;
}

static double of_completion(const tgi_pp_networks *p, tgi_sched_pass *of_pass, void *user)
{
    const tgi_pp_complete *c = p->complete;
    const int net[] = {c->lead,     c->blend[0],    c->blend[1],    c->blend[2],
                       c->blend[3], c->recur[0][0], c->recur[1][0], c->decode};
    return 2 * of_nets(c->schedule, net, (int)(sizeof net / sizeof net[0]), of_pass, user);
}

#define AROUND 148 /* tokens around a window that one which hides something attends to */

/* Of a step's attention, which passes count as if all windows were masked: every other frame, with what is around and
 * pooled, where an unmasked window attends to its own tokens. */
static double of_attention(const tgi_pp_generate *g, double masked)
{
    const double window = TGI_PP_WINDOW_H * TGI_PP_WINDOW_W,
                 keys = (g->most + 1) / 2 *
                        (window + AROUND + (double)(g->tokens.pool_h * g->tokens.pool_w));
    return masked + (1 - masked) * window / keys;
}

static double of_step(const tgi_pp_networks *p, const tgi_pp_extent *x, double masked,
                      tgi_sched_pass *of_pass, void *user)
{
    const tgi_pp_generate *g = p->generate;
    const double steps = x->steps > 0 ? (double)x->steps : 1, frames = x->step_frames / steps,
                 local = x->step_local / steps, new_ones = (double)x->frames / steps;
    const int of_local[] = {g->net_propagate[0][0], g->net_propagate[1][0], g->net_join,
                            g->net_compose};
    double sum = new_ones * of_nets(g->schedule, &g->net_encode, 1, of_pass, user) +
                 (local + (frames - local < new_ones ? frames - local : new_ones)) *
                     of_nets(g->schedule, &g->net_split, 1, of_pass, user) +
                 local * of_nets(g->schedule, of_local, 4, of_pass, user);
    for (int b = 0; b < TGI_PP_BLOCKS; b++) {
        const tgi_pp_block *k = &g->block[b];
        const int each[] = {k->net_queries, k->net_mix};
        const tgi_pp_attention *a = &k->attend[k->n_attend - 1]; /* of the most frames */
        const double asked = b + 1 < TGI_PP_BLOCKS ? frames : local;
        sum += frames * of_nets(g->schedule, &k->net_keys, 1, of_pass, user) +
               asked * of_nets(g->schedule, each, 2, of_pass, user) +
               of_attention(g, masked) * of_nets(g->schedule, &a->net, 1, of_pass, user);
    }
    return sum;
}

double tgi_pp_cost(const tgi_pp_networks *p, const tgi_pp_extent *x, double masked,
                   tgi_sched_pass *of_pass, void *user)
{
    return (double)x->motions * of_pair(p, of_pass, user) +
           x->windowed * of_completion(p, of_pass, user) +
           (double)x->steps * of_step(p, x, masked, of_pass, user);
}
