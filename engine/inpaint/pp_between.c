/* pp_between.c - see pp_between.h. */
#include "engine/inpaint/pp_between.h"

#include "engine/base/arith.h"

#define C TGI_PP_CHANNELS
#define TOKEN TGI_PP_TOKEN

static int add_buffer(tgi_pp_generate *g, const char *name, int64_t c, int64_t h, int64_t w)
{
    const int b = tgi_schedule_buffer(g->schedule, name, c, h, w);
    tgi_schedule_keep(g->schedule, b);
    return b;
}

static int add_features(tgi_pp_generate *g, const char *name)
{
    return add_buffer(g, name, C, g->height / 4, g->width / 4);
}

static int add_tokens(tgi_pp_generate *g, const char *name, int frames)
{
    return add_buffer(g, name, frames * TOKEN, g->tokens.high, g->tokens.wide);
}

static int add_pooled(tgi_pp_generate *g, const char *name)
{
    return add_buffer(g, name, g->most * TOKEN, g->tokens.pool_h, g->tokens.pool_w);
}

static void add_buffers(tgi_pp_generate *g)
{
    tgi_pp_between *b = &g->buffer;
    for (int i = 0; i < g->most_local; i++) {
        b->shown[i] = add_features(g, "features");
        tgi_schedule_far_only(g->schedule, b->shown[i]);
        for (int k = 0; k < 2; k++)
            b->way[k][i] = add_features(g, "propagated");
    }
    b->spare = add_features(g, "propagated");
    for (int i = 0; i < g->most; i++) {
        b->x[i] = add_tokens(g, "tokens", 1);
        b->split[i] = add_tokens(g, "references", 1);
        tgi_schedule_far_only(g->schedule, b->split[i]);
    }
    b->spare_x = add_tokens(g, "tokens", 1);
    b->queries = add_tokens(g, "queries", g->most);
    b->keys = add_tokens(g, "keys", g->most);
    b->values = add_tokens(g, "values", g->most);
    b->pooled_keys = add_pooled(g, "pooled keys");
    b->pooled_values = add_pooled(g, "pooled values");
    b->attended = add_tokens(g, "attended", g->most);
}

/* ---- Who reads and writes them ----------------------------------------------------------- */

static void reads(tgi_pp_generate *g, int net, int in, int buffer, int64_t times)
{
    tgi_schedule_reads(g->schedule, net, in, buffer, times);
}

static void writes(tgi_pp_generate *g, int net, int out, int buffer, int64_t times)
{
    tgi_schedule_writes(g->schedule, net, out, buffer, times);
}

static void bind_features(tgi_pp_generate *g, int64_t steps)
{
    const tgi_pp_between *b = &g->buffer;
    const int back = g->net_propagate[0][0], forward = g->net_propagate[1][0];
    for (int i = 0; i < g->most_local; i++) {
        writes(g, g->net_encode, 0, b->shown[i], steps);
        reads(g, back, 0, b->shown[i], steps);
        reads(g, g->net_join, 0, b->shown[i], steps);
        writes(g, back, 0, b->way[0][i], steps);
        reads(g, back, 1, b->way[0][i], steps);
        reads(g, forward, 0, b->way[0][i], steps);
        writes(g, forward, 0, b->way[1][i], steps);
        reads(g, forward, 1, b->way[1][i], steps);
        for (int k = 0; k < 2; k++)
            reads(g, g->net_join, 1 + k, b->way[k][i], steps);
    }
    writes(g, g->net_join, 0, b->spare, steps);
    reads(g, g->net_split, 0, b->spare, steps);
    reads(g, g->net_compose, 1, b->spare, steps);
}

static void bind_block(tgi_pp_generate *g, int n, int64_t steps)
{
    const tgi_pp_between *b = &g->buffer;
    const tgi_pp_block *k = &g->block[n];
    for (int i = 0; i <= g->most; i++) {
        const int x = i < g->most ? b->x[i] : b->spare_x;
        reads(g, k->net_keys, 0, x, steps);
        reads(g, k->net_queries, 0, x, steps);
        reads(g, k->net_mix, 1, x, steps);
        writes(g, k->net_mix, 0, x, steps);
    }
    const int of_keys[] = {b->keys, b->values, b->pooled_keys, b->pooled_values};
    writes(g, k->net_queries, 0, b->queries, steps);
    reads(g, k->net_mix, 0, b->attended, steps);
    for (int i = 0; i < 4; i++)
        writes(g, k->net_keys, i, of_keys[i], steps);
    for (int i = 0; i < k->n_attend; i++) {
        const int64_t of_these = tgi_ceil_div(steps, k->n_attend);
        reads(g, k->attend[i].net, 0, b->queries, of_these);
        for (int j = 0; j < 4; j++)
            reads(g, k->attend[i].net, 1 + j, of_keys[j], of_these);
        writes(g, k->attend[i].net, 0, b->attended, of_these);
        tgi_schedule_said(g->schedule, k->attend[i].net);
    }
    tgi_schedule_said(g->schedule, k->net_keys);
    tgi_schedule_said(g->schedule, k->net_queries);
    tgi_schedule_said(g->schedule, k->net_mix);
}

/* In as many steps as there are sorts of them. */
static void bind_buffers(tgi_pp_generate *g)
{
    const tgi_pp_between *b = &g->buffer;
    const int64_t steps = g->block[TGI_PP_BLOCKS - 1].n_attend;
    bind_features(g, steps);
    for (int n = 0; n < TGI_PP_BLOCKS; n++)
        bind_block(g, n, steps);
    for (int i = 0; i < g->most; i++) {
        writes(g, g->net_split, 0, b->x[i], steps);
        reads(g, g->net_compose, 0, b->x[i], steps);
        writes(g, g->net_split, 0, b->split[i], 1);
        reads(g, g->block[0].net_keys, 0, b->split[i], steps);
    }
}

void tgi_pp_between_add(tgi_pp_generate *g)
{
    if (g->schedule->st != TG_OK)
        return;
    add_buffers(g);
    if (g->schedule->st == TG_OK)
        bind_buffers(g);
}
