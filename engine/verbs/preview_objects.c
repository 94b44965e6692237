/* preview_objects.c - see preview_objects.h.
 *
 * Otsu's threshold is that of a whole image, which a preview does not compute: each crop has its
 * own, and a note says so. */
#include "engine/verbs/preview_objects.h"

#include "engine/base/post_spec.h"
#include "engine/job/job_open.h"
#include "engine/post/otsu.h"

#include <math.h>
#include <string.h>

static tgi_post_spec steps_of(const tg_job *job)
{
    const char *post = tgi_opts_str(job->opts, TGI_OPT_POST);
    tgi_post_spec spec = {0};
    tgi_err unused = {0};
    if (tgi_post_parse(post ? post : job->set.descriptor.post, &spec, &unused) != TG_OK)
        spec.n = 0; /* a run refuses it */
    return spec;
}

/* Numbers of objects or of classes as they are. */
static int gives_numbers(const tg_job *job)
{
    const tgi_graph *g = job->graph;
    const int made_by = g->values[g->out[0].value].producer;
    const char *op = made_by >= 0 ? g->nodes[made_by].op->name : "";
    return job->set.labels || strcmp(op, "ArgMax") == 0 || strcmp(op, "ArgMin") == 0;
}

void tgi_preview_objects_choose(const tg_job *job, tgi_panel *result)
{
    const tgi_post_spec spec = steps_of(job);
    if (result->channels != 1 || job->map.out_channels != 1)
        return;
    if (gives_numbers(job)) {
        result->objects = TGI_PANEL_NUMBERS;
        return;
    }
    for (int i = 0; i < spec.n && !result->objects; i++) {
        const double v = spec.step[i].value;
        if (spec.step[i].kind == TGI_POST_SIGMOID)
            result->sigmoid = 1;
        if (spec.step[i].kind == TGI_POST_THRESHOLD) {
            result->objects = TGI_PANEL_ABOVE;
            result->level = (float)(result->sigmoid ? log(v / (1 - v)) : v);
        }
        if (spec.step[i].kind == TGI_POST_OTSU)
            result->objects = TGI_PANEL_OTSU;
    }
}

void tgi_preview_objects_note(tg_job *job, const tgi_panel *result)
{
    const tgi_post_spec spec = steps_of(job);
    if (result->objects == TGI_PANEL_OTSU)
        tgi_job_warn(job, "--post otsu: each crop is outlined at its own threshold, a run has "
                          "that of the whole image");
    if (spec.n == 0 || result->objects)
        return;
    if (tgi_post_network(&spec))
        tgi_job_warn(job,
                     "--post %s: its objects are made of the whole image, the picture has "
                     "no outlines and shows the difference",
                     tgi_post_name(spec.step[0].kind));
    else if (job->map.out_channels != 1)
        tgi_job_warn(job,
                     "--post: the picture has no outlines, for the network gives %lld "
                     "channels, and shows the difference",
                     (long long)job->map.out_channels);
    else
        tgi_job_warn(job, "--post: the picture has no outlines, for no step makes objects, and "
                          "shows the difference");
}

size_t tgi_preview_objects_bytes(const tgi_panel *result)
{
    return result->objects == TGI_PANEL_OTSU ? TGI_OTSU_BYTES : 0;
}

typedef void otsu_pass(tgi_otsu *o, const double *v, int64_t n);

static void look(const tgi_panel *p, tgi_otsu *o, otsu_pass *pass)
{
    for (int64_t i = 0; i < p->h * p->w; i++) {
        const double v = (double)p->data[i], s = p->sigmoid ? 1 / (1 + exp(-v)) : v;
        pass(o, &s, 1);
    }
}

void tgi_preview_objects_level(tgi_panel *result, void *memory)
{
    tgi_otsu o;
    if (result->objects != TGI_PANEL_OTSU)
        return;
    tgi_otsu_begin(&o, TG_DTYPE_F32, memory);
    look(result, &o, tgi_otsu_range);
    tgi_otsu_bins(&o);
    look(result, &o, tgi_otsu_count);
    const double t = tgi_otsu_threshold(&o);
    result->level = (float)(result->sigmoid ? log(t / (1 - t)) : t);
}
