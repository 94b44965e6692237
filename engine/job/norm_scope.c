/* norm_scope.c - whose numbers a norm takes: the image's, or each tile's own. */
#include "engine/job/norm_scope.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/graph/place.h"
#include "engine/job/job_open.h"
#include "io/picked.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int asks_for_tiles(const tg_job *job)
{
    return tgi_opts_choice(job->opts, TGI_OPT_NORM_SCOPE) == 1;
}

/* "InstanceNormalization "n3"", or "" where nothing reads the whole image. */
static tg_status whole_text(const tg_job *job, char *text, size_t cap, tgi_err *err)
{
    const tgi_graph *g = job->graph;
    tgi_desc in[TGI_MAX_PORTS];
    tgi_shapes s;
    tgi_graph_input_descs(g, g->base, in);
    TGI_TRY(tgi_graph_infer(g, in, &s, err));
    const tgi_node *n = tgi_graph_whole_node(g, &s);
    text[0] = 0;
    if (n)
        snprintf(text, cap, "%s \"%.60s\"", n->op->name, n->name);
    tgi_shapes_free(&s);
    return TG_OK;
}

static int has_statistics(const tg_job *job)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_STATS);
    return path && access(path, F_OK) == 0;
}

/* 1: some of the slices or times of the file alone. */
static int is_part(const tg_job *job, tgi_err *err)
{
    int part = 0;
    for (const char *axis = "ZT"; *axis; axis++) {
        tgi_axis_list l;
        if (tgi_picked_entries(job->source, *axis, &l, err) == TG_OK)
            part |= l.at != NULL;
        tgi_free(l.at);
    }
    return part;
}

tg_status tgi_norm_scope_ask(tg_job *job, tgi_mapping_opts *how, tgi_err *err)
{
    const tgi_tile_spec *tile = &job->set.tile;
    char whole[128];
    if (!how->roi && tgi_normalize_needs_stats(&job->set.normalize) &&
        !job->set.normalize.by_item && !has_statistics(job) && is_part(job, err))
        tgi_job_warn(job, "the statistics of --normalize are of the slices and times that are "
                          "chosen; --stats "
                          "FILE of a run over all of them has those of the whole image");
    if (!how->roi && !asks_for_tiles(job))
        return TG_OK;
    TGI_TRY(whole_text(job, whole, sizeof whole, err));
    if (how->roi && whole[0])
        tgi_job_warn(job,
                     "--roi: %s reads the whole image, here the region alone: its pixels "
                     "are not those of a run over the whole image",
                     whole);
    if (how->roi && tgi_normalize_needs_stats(&job->set.normalize) && !has_statistics(job))
        tgi_job_warn(job,
                     "--roi: the statistics of --normalize are of the region; --stats FILE "
                     "of a run, or preview, without --roi has those of the whole image");
    if (!asks_for_tiles(job))
        return TG_OK;
    if (!whole[0]) {
        tgi_job_warn(job, "no operator of the network reads the whole image: --norm-scope tile "
                          "changes nothing");
        return TG_OK;
    }
    if (tile->automatic && !job->graph->fixed_size)
        return tgi_fail(err, TG_E_ARG,
                        "--norm-scope tile needs --tile: which pixels share their numbers is "
                        "not left to the budget");
    how->in_boxes = 1;
    for (int k = 0; k < 3 && !tile->automatic; k++)
        how->core[k] = k ? tgi_align_up(tile->v[k], 16) : tile->v[k];
    if (job->graph->spatial == 2)
        how->core[0] = 0;
    return TG_OK;
}

void tgi_norm_scope_note(tg_job *job, const tgi_mapping_opts *how)
{
    job->set.norm_tiles = how->in_boxes && tgi_mapping_boxed(&job->map);
    if (job->set.norm_tiles)
        tgi_job_warn(job,
                     "--norm-scope tile: operators that read the whole image read each tile "
                     "with its surroundings alone; seams between tiles are possible");
}

tg_status tgi_norm_scope_check_arrays(const tg_job *job, tgi_err *err)
{
    if (!asks_for_tiles(job))
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "--norm-scope tile is for images: an array goes to the network as it is");
}
