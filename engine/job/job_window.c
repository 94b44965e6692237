/* job_window.c - see job_window.h. */
#include "engine/job/job_window.h"

#include "io/film_out.h"

#include <stdio.h>

void tgi_job_window_pick(const tg_opts *o, tgi_settings *s)
{
    s->window = (int)tgi_opts_int(o, TGI_OPT_WINDOW, 0);
    if (!s->window)
        s->window = s->descriptor.window > 0 ? (int)s->descriptor.window : 1;
    s->window_edge = tgi_opts_given(o, TGI_OPT_WINDOW_EDGE)
                         ? (tgi_window_edge)tgi_opts_choice(o, TGI_OPT_WINDOW_EDGE)
                     : s->descriptor.window_mirror ? TGI_WINDOW_MIRROR
                                                   : TGI_WINDOW_REPEAT;
}

int64_t tgi_job_frame_channels(const tg_job *job)
{
    const tgi_port *p = &job->graph->in[0];
    const int64_t n = (p->perm[1] >= 0 ? p->file_dim[p->perm[1]] : 1) - job->set.appended;
    if (n <= 0 || job->set.window == 1 || job->graph->spatial == 3)
        return n > 0 ? n : 0;
    return n % job->set.window ? 0 : n / job->set.window;
}

/* Its channels are no whole number for each frame. */
static tg_status refuse(const tg_job *job, const tgi_source *source, tgi_err *err)
{
    const tgi_port *p = &job->graph->in[0];
    const int64_t n = (p->perm[1] >= 0 ? p->file_dim[p->perm[1]] : 1) - job->set.appended;
    const int samples = source->ops->info(source)->samples;
    const int64_t fits = n % samples == 0 ? n / samples : n;
    char how[64] = "leave --window out";
    if (fits > 1)
        snprintf(how, sizeof how, "--window %lld is as many frames as it may take",
                 (long long)fits);
    return tgi_fail(
        err, TG_E_ARG,
        "--window %d: the network takes %lld channel%s, no whole number for each of %d "
        "frames: %s",
        job->set.window, (long long)n, n == 1 ? "" : "s", job->set.window, how);
}

tg_status tgi_job_window_open(const tg_job *job, tgi_source **source, tgi_err *err)
{
    const tgi_frame_window how = {.frames = job->set.window,
                                  .edge = job->set.window_edge,
                                  .volume = job->graph->spatial == 3,
                                  .channels = tgi_job_frame_channels(job)};
    if (how.frames == 1)
        return TG_OK;
    if (how.channels < 1)
        return refuse(job, *source, err);
    TGI_TRY(tgi_frame_window_open(*source, &how, source, err));
    return tgi_film_source_is_stream(*source) /* what it does not keep never comes again */
               ? (*source)->ops->expect(*source, how.frames, 1, err)
               : TG_OK;
}

void tgi_job_window_map(tg_job *job)
{
    tgi_mapping *m = &job->map;
    const int64_t middle = (job->set.window - 1) / 2;
    if (job->set.window == 1)
        return;
    m->own.slices = (tgi_range){m->spatial == 3 ? middle : 0, m->spatial == 3 ? middle + 1 : 1};
    const int64_t each = m->spatial == 3 ? m->channels : m->channels / job->set.window;
    const int64_t first = m->spatial == 3 ? 0 : middle * each;
    m->own.channels = (tgi_range){first, first + each};
    if (m->spatial == 3) {
        m->fit[0].crop += (m->fit[0].out - 1) / 2;
        m->fit[0].out = 1;
    }
}
