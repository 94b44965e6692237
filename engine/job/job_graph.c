/* job_graph.c - see job_graph.h. */
#include "engine/job/job_graph.h"

#include "engine/base/mem.h"
#include "engine/graph/card.h"
#include "engine/job/job_film.h"
#include "engine/job/job_open.h"
#include "engine/job/job_state.h"
#include "io/picked.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The network ------------------------------------------------------------------------- */

unsigned tgi_job_graph_flags(const tg_job *job)
{
    return (job->set.labels ? TGI_GRAPH_LABELS : 0) | (job->set.bare ? TGI_GRAPH_BARE : 0) |
           (job->set.card ? 0 : TGI_GRAPH_PLAIN);
}

/* Names a network as it is now; "": it is to be loaded in any case. */
static void model_key(const tg_job *job, char *buf, size_t cap)
{
    struct stat st;
    buf[0] = 0;
    if (!tgi_ctx_keeps(job->ctx) || job->set.card || job->set.bare || job->set.n_ties ||
        job->set.appended || !job->set.model || stat(job->set.model, &st) != 0)
        return;
    const int n = snprintf(buf, cap, "%llu:%llu %lld %lld.%09ld flags=%u %s",
                           (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                           (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                           st.st_mtim.tv_nsec, tgi_job_graph_flags(job), job->set.model);
    if (n >= (int)cap)
        buf[0] = 0;
}

static void release_graph(void *thing)
{
    tgi_graph *g = thing;
    tgi_graph_free(&g);
}

void tgi_job_graph_leave(tg_job *job)
{
    if (job->graph && job->model_key)
        tgi_ctx_keep(job->ctx, job->model_key, job->graph, release_graph);
    else
        tgi_graph_free(&job->graph);
    job->graph = NULL;
    tgi_free(job->model_key);
}

tg_status tgi_job_graph_load(tg_job *job, tgi_err *err)
{
    char key[4096];
    model_key(job, key, sizeof key);
    job->model_key = key[0] ? tgi_strdup(TGI_TAG_MISC, key) : NULL;
    if (job->model_key && (job->graph = tgi_ctx_kept(job->ctx, key)) != NULL)
        return TG_OK;
    TGI_TRY(tgi_graph_load_card(job->set.model, job->set.card, tgi_job_graph_flags(job),
                                job->set.tie, job->set.n_ties, &job->graph, err));
    if (job->set.bare)
        tgi_job_warn(job,
                     "--normalize stands for what the description does before the network");
    return tgi_job_state_append(job, err);
}

/* ---- Planes of the image ----------------------------------------------------------------- */

tg_status tgi_job_planes_again(const tg_job *job, tgi_source **s, tgi_err *err)
{
    int picked = 0;
    return job->picked.count ? tgi_picked_planes(s, job->picked.letters, &job->picked.planes,
                                                 job->picked.count, &picked, err)
                             : TG_OK;
}

tg_status tgi_job_planes_in_turn(tg_job *job, const tgi_image_info *of, tgi_err *err)
{
    tgi_in_turn made;
    TGI_TRY(tgi_in_turn_make(of, job->picked.letters, &job->map.planes, job->map.n_items, &made,
                             err));
    tgi_in_turn_free(&job->in_turn);
    job->in_turn = made;
    return TG_OK;
}

tg_status tgi_job_planes_pick(tg_job *job, int *again, tgi_err *err)
{
    const tgi_mapping *m = &job->map;
    if (!m->planes.n || m->loops_samples || job->set.window > 1 ||
        tgi_job_wants_film(job)) /* of films planes are frames */
        return TG_OK;
    for (int i = 0; i < m->n_loop; i++)
        job->picked.letters[i] = m->loop[i].letter;
    TGI_TRY(tgi_picked_planes(&job->source, job->picked.letters, &m->planes, m->n_items, again,
                              err));
    job->info = job->source->ops->info(job->source);
    if (*again && job->info->note[0])
        tgi_job_warn(job, "%s: %s", job->set.input, job->info->note);
    if (*again) {
        job->picked.planes = m->planes;
        job->picked.count = m->n_items;
    } else if (strcmp(job->info->format, "film") != 0) {
        TGI_TRY(tgi_job_planes_in_turn(job, job->info, err));
        tgi_job_warn(job, TGI_PLANES_MIXED, job->set.input,
                     tgi_in_turn_told(&job->in_turn, job->info));
    }
    return TG_OK;
}
