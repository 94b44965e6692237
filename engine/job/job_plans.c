/* job_plans.c - what nnU-Net's plans say of an image, and what it does that is not done here. */
#include "engine/graph/card.h"
#include "engine/job/descriptor.h"
#include "engine/job/job_open.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Millimetres of a unit as images spell it; 0: another one. */
static double millimetres(const char *unit)
{
    static const struct {
        const char *name;
        double mm;
    } known[] = {{"nm", 1e-6}, {"um", 1e-3}, {"\xc2\xb5m", 1e-3}, {"micron", 1e-3},
                 {"mm", 1},    {"cm", 10},   {"m", 1000}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(unit, known[i].name) == 0)
            return known[i].mm;
    return 0;
}

static int is_near(double a, double b)
{
    return fabs(a - b) <= 0.02 * b;
}

/* Plans have no unit: nnU-Net takes what the files said, millimetres of most medical ones. */
static int is_same(const tgi_image_meta *m, int k, double spacing)
{
    return is_near(m->physical[k], spacing) ||
           is_near(m->physical[k] * millimetres(m->unit[k]), spacing);
}

static void warn_of_spacing(tg_job *job, const tgi_card_plan *p)
{
    const tgi_image_meta *m = &job->info->meta;
    for (int k = 3 - job->graph->spatial; k < 3; k++) {
        if (!(m->physical[k] > 0)) {
            tgi_job_warn(job,
                         "the image does not say how large its pixels are; the network was "
                         "trained at a spacing of %g (%c), and nothing is resampled",
                         p->spacing[k], "zyx"[k]);
            return;
        }
        if (is_same(m, k, p->spacing[k]))
            continue;
        tgi_job_warn(
            job,
            "the image has a spacing of %g %s along %c, the network was trained at %g: "
            "images are not resampled here, and results at another spacing are worse",
            m->physical[k], m->unit[k], "zyx"[k], p -> spacing[k]);
        return;
    }
}

void tgi_job_plans_bind(tg_job *job)
{
    const tgi_card_plan *p = &job->set.card->plan[job->graph->spatial == 3];
    char patch[64];
    if (job->graph->spatial == 2)
        job->set.normalize.by_item = 0; /* a case is all planes */
    warn_of_spacing(job, p);
    if (job->graph->spatial == 3)
        snprintf(patch, sizeof patch, "%lldx%lldx%lld", (long long)p->patch[0],
                 (long long)p->patch[1], (long long)p->patch[2]);
    else
        snprintf(patch, sizeof patch, "%lldx%lld", (long long)p->patch[1],
                 (long long)p->patch[2]);
    tgi_job_warn(
        job,
        "nnU-Net predicts in patches of %s that overlap, mirrored and blended; here the "
        "network sees the image once, whole and unmirrored",
        patch);
}
