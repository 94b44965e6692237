/* methods.c - writes the paragraph sentence by sentence. */
#include "engine/job/methods.h"

#include "engine/base/mem.h"
#include "engine/inpaint/inpaint.h"
#include "engine/job/device_kinds.h"
#include "engine/job/job_inpaint.h"
#include "engine/job/job_outpaint.h"
#include "engine/job/job_scenes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct paragraph {
    char *text;
    size_t n;
    int failed;
} paragraph;

static void say(paragraph *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(paragraph *p, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    const int more = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = more < 0 || p->failed
                     ? NULL
                     : tgi_realloc_n(TGI_TAG_MISC, p->text, p->n + (size_t)more + 1, 1);
    p->failed |= !text;
    if (text) {
        vsnprintf(text + p->n, (size_t)more + 1, fmt, again);
        p->text = text;
        p->n += (size_t)more;
    }
    va_end(again);
}

static const char *image(const tg_job *job)
{
    tgi_roi_spec roi;
    return tgi_opts_roi(job->opts, &roi) ? "a region" : "the whole image";
}

/* Statistics are gathered of what is processed. */
static const char *gathered_over(const tg_job *job)
{
    tgi_roi_spec roi;
    static const tgi_opt part[] = {TGI_OPT_PLANES, TGI_OPT_CHANNELS, TGI_OPT_C, TGI_OPT_Z,
                                   TGI_OPT_T};
    int some = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        some |= tgi_opts_given(job->opts, part[i]);
    if (!some)
        return image(job);
    return tgi_opts_roi(job->opts, &roi) ? "a region of the planes that were processed"
                                         : "the planes that were processed";
}

static void say_network(paragraph *p, const tg_job *job)
{
    const tgi_descriptor *d = &job->set.descriptor;
    say(p,
        "Images were processed with the network %s%s%s using tegula %s (%s kernels, %s "
        "products)",
        d->name[0] ? d->name : job->set.model, d->version[0] ? " " : "", d->version,
        TG_VERSION_STRING, job->dev.ops ? job->dev.ops->name : job->set.backend->name,
        tgi_job_precision(job));
}

static void say_normalisation(paragraph *p, const tg_job *job, int stats_of_file)
{
    const int needs = tgi_normalize_needs_stats(&job->set.normalize);
    say(p, "; input normalisation: %s", job->set.normalize_text);
    if (needs && stats_of_file)
        say(p, ", statistics given in a file (%s)", tgi_opts_str(job->opts, TGI_OPT_STATS));
    else if (needs)
        say(p, ", statistics over %s", gathered_over(job));
    if (job->set.invert)
        say(p, ", whose inverse maps the result back");
}

static void say_tiling(paragraph *p, const tg_job *job)
{
    if (job->set.norm_tiles)
        say(p, "; layers of the network that read the whole image (norms, means, attention) "
               "read tiles with their surroundings instead, each on its own, so that seams "
               "between tiles are possible.");
    else
        say(p, "; the tiled computation is bit-identical to processing %s at once.",
            image(job));
}

/* Nothing of it is made by a network of the user's. */
static void say_removal(paragraph *p, const tg_job *job)
{
    const char *mask = tgi_opts_str(job->opts, TGI_OPT_MASK),
               *boxes = tgi_opts_str(job->opts, TGI_OPT_MASK_BOX);
    const char *method = tgi_job_method(job->opts);
    const int shown = strcmp(method, "show") == 0;
    if (tgi_job_outpaints(job->opts))
        say(p,
            "Frames were extended by %s (height) and %s (width)%s, and what lies around them "
            "was %s by tegula %s",
            tgi_opts_str(job->opts, TGI_OPT_SCALE_H), tgi_opts_str(job->opts, TGI_OPT_SCALE_W),
            tgi_job_squeezes(job->opts) ? ", squeezed into their size again" : "",
            shown ? "shown in green" : "made", TG_VERSION_STRING);
    else
        say(p, "What %s%s%s%s%s hide was %s the frames by tegula %s",
            mask ? "the masks of " : "", mask ? mask : "", mask && boxes ? " and " : "",
            boxes ? "the boxes " : "", boxes ? boxes : "",
            shown ? "shown in green in" : "removed from", TG_VERSION_STRING);
    if (shown)
        say(p, ".");
    else if (tgi_job_draws(job->opts))
        say(p,
            " with ProPainter (Zhou, Li, Chan, Loy, ICCV 2023; weights of %s; subvideo_length "
            "%s, neighbor_length %s, ref_stride %s, %s iterations of RAFT).",
            tgi_opts_str(job->opts, TGI_OPT_WEIGHTS),
            tgi_opts_str(job->opts, TGI_OPT_SUBVIDEO_LENGTH),
            tgi_opts_str(job->opts, TGI_OPT_NEIGHBOR_LENGTH),
            tgi_opts_str(job->opts, TGI_OPT_REF_STRIDE),
            tgi_opts_str(job->opts, TGI_OPT_RAFT_ITER));
    else if (strcmp(method, "smooth") == 0)
        say(p, ": each frame is filled smoothly from around (Laplace's equation).");
    else
        say(p,
            ": hidden pixels come from frames at most %s away, followed along optical flow "
            "(network %s); what none of them shows is filled smoothly from around.",
            tgi_opts_str(job->opts, TGI_OPT_REACH), job->set.model);
    int64_t height, width;
    tgi_crop part;
    const tgi_image_info *film = job->source->ops->info(job->source);
    tgi_inpaint_frames(job->source, &height, &width, &part);
    if (part.height < film->height || part.width < film->width)
        say(p,
            " The method saw %" PRId64 " x %" PRId64 " pixels of each frame, at column %" PRId64
            ", row %" PRId64 ".",
            part.width, part.height, part.x, part.y);
    if (height != part.height || width != part.width)
        say(p, " It worked on frames of %" PRId64 " x %" PRId64 ".", width, height);
    if (tgi_job_splits(job->opts) && !shown)
        say(p, " Each scene was treated by itself: cuts in what was read: %" PRId64 ".",
            tgi_inpaint_cuts(job->source)->n);
}

static void say_processing(paragraph *p, const tg_job *job, int stats_of_file)
{
    say_network(p, job);
    say_normalisation(p, job, stats_of_file);
    say_tiling(p, job);
}

char *tgi_job_methods(const tg_job *job, const tg_run_result *res, int stats_of_file)
{
    paragraph p = {0};
    if (tgi_job_inpaints(job->opts))
        say_removal(&p, job);
    else
        say_processing(&p, job, stats_of_file);
    if (job->set.labels)
        say(&p, " Each pixel of the result is the number, from 0, of the network's largest "
                "output channel there.");
    if (res->bad_regions > 0)
        say(&p, " %" PRId64 " region%s of the input could not be decoded and counted as zeros.",
            (int64_t)res->bad_regions, res->bad_regions == 1 ? "" : "s");
    if (p.failed) {
        tgi_free(p.text);
        return NULL;
    }
    return p.text;
}
