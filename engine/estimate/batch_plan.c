/* batch_plan.c - what a model's own plan takes for one sample: the planner is asked for the
 * whole image at once, at a size that no file has to have.
 *
 * The kernels are the portable ones with direct convolutions, so the answer is the same on
 * every machine: it is about another machine's GPU, not about this processor. */
#include "engine/base/arith.h"
#include "engine/estimate/estimate.h"
#include "engine/estimate/model.h"
#include "engine/plan/choose.h"
#include "engine/settings/words.h"

#include <stdio.h>
#include <string.h>

/* Extent that the model's file declares on axis k of z,y,x; 0: open. */
static int64_t declared(const tgi_graph *g, const tgi_graph *raw, int k)
{
    const int axis = g->in[0].perm[g->spatial + 2 - 3 + k];
    const int64_t there = axis >= 0 ? raw->in[0].file_dim[axis] : 0;
    return there > 0 ? there : 0;
}

static tg_status check_extent(const tgi_graph *g, int k, int64_t n, tgi_err *err)
{
    const int64_t fixed = tgi_graph_fixed_extent(g, k);
    const int64_t works = fixed > 0 ? fixed : tgi_graph_extent(g, k, n);
    if (works == n)
        return TG_OK;
    return tgi_fail(err, TG_E_ARG, "--size: the network does not take %lld %s, but %lld",
                    (long long)n, k == 1 ? "rows" : "columns", (long long)works);
}

tg_status tgi_model_extent(const tgi_graph *g, const tgi_graph *raw, const tg_opts *o,
                           int64_t ext[3], tgi_err *err)
{
    int64_t asked[3] = {0, 0, 0};
    const char *text = tgi_opts_str(o, TGI_OPT_SIZE);
    if (text) {
        int64_t v[3];
        TGI_TRY(tgi_dims_parse(text, v, err));
        asked[1] = v[0];
        asked[2] = v[1];
    }
    memcpy(ext, g->base, 3 * sizeof *ext);
    for (int k = 3 - g->spatial; k < 3; k++) {
        const int64_t fixed = tgi_graph_fixed_extent(g, k), there = declared(g, raw, k);
        if (asked[k])
            TGI_TRY(check_extent(g, k, asked[k], err));
        ext[k] = asked[k]    ? asked[k]
                 : fixed > 0 ? fixed
                 : there     ? there
                             : tgi_graph_extent(g, k, k ? TG_DATA_HEIGHT : 16);
    }
    return TG_OK;
}

void tgi_extent_text(const tgi_graph *g, const int64_t ext[3], char *buf, size_t cap)
{
    int n = 0;
    buf[0] = 0;
    for (int k = 3 - g->spatial; k < 3; k++)
        n += snprintf(buf + n, cap - (size_t)n, "%s%lld", n ? "x" : "", (long long)ext[k]);
}

tg_status tgi_plan_sample(const char *path, const tg_opts *o, tgi_sample_plan *out,
                          tgi_err *err)
{
    tgi_graph *g = NULL, *raw = NULL;
    tgi_net *net = NULL;
    tgi_stages *stages = NULL;
    tgi_choice choice = {0};
    int64_t ext[3];
    tgi_desc in[TGI_MAX_PORTS];
    tg_status st = tgi_graph_load_onnx(path, 0, &g, err);
    if (st == TG_OK)
        st = tgi_graph_import_onnx(path, &raw, err);
    if (st == TG_OK)
        st = tgi_model_extent(g, raw, o, ext, err);
    if (st == TG_OK) {
        tgi_graph_input_descs(g, ext, in);
        st = tgi_net_new(g, tgi_backend_for(TGI_ISA_PORTABLE), in, TGI_NET_EXACT, &net, err);
    }
    if (st == TG_OK)
        st = tgi_stages_new(net, &stages, err);
    if (st == TG_OK) {
        const tgi_choose_args a = {.stage = &stages->one,
                                   .threads = 1,
                                   .limit_bytes = SIZE_MAX,
                                   .unit = {1, 1, 16},
                                   .whole = 1,
                                   .flops_per_second = 1};
        st = tgi_choose(&a, &choice, err);
    }
    if (st == TG_OK) {
        *out = (tgi_sample_plan){.parameters = g->n_params,
                                 .weights_bytes = net->packed_bytes,
                                 .sample_bytes = choice.tiling.arena_bytes};
        tgi_extent_text(g, ext, out->size, sizeof out->size);
    }
    tgi_tiling_free(&choice.tiling);
    tgi_stages_free(&stages);
    tgi_net_free(&net);
    tgi_graph_free(&raw);
    tgi_graph_free(&g);
    return st;
}
