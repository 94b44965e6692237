/* device_kinds.c - what a device computes with where the options leave it open: precision, and
 * kinds of variants that are not used on trust.
 *
 * Measured when a device is first used, and kept (measured.h). A run that goes on takes what
 * its output was begun with, whatever was measured since. */
#include "engine/job/device_kinds.h"
#include "engine/base/clock.h"
#include "engine/device/measured.h"
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/job_plan.h"
#include "engine/job/source_device.h"

#include <stdio.h>
#include <string.h>

/* Kinds that are open, as tgi_job_computed_by spells them. */
static const struct {
    unsigned kind;
    const char *name;
} open_kinds[] = {{TGI_KIND_WGMMA, "wgmma"}, {TGI_KIND_LIBRARY, "library"}};
#define OPEN_KINDS (int)(sizeof open_kinds / sizeof *open_kinds)

const char *tgi_job_precision(const tg_job *job)
{
    if (!job->dev.ops)
        return job->set.bf16 ? "bf16" : "fp32";
    return job->dev.element == TG_DTYPE_F16     ? "fp16"
           : job->dev.element == TGI_DTYPE_BF16 ? "bf16"
           : job->dev.kinds & TGI_KIND_TF32     ? "tf32"
                                                : "fp32";
}

unsigned tgi_job_net_flags(const tg_job *job)
{
    const unsigned of_processor = job->set.bf16 && job->set.bf16_here ? TGI_KIND_BF16 : 0;
    return (job->set.exact ? TGI_NET_EXACT : 0) |
           TGI_NET_KINDS(tgi_job_pass_ops(job) ? job->dev.kinds : of_processor);
}

const char *tgi_job_computed_by(const tg_job *job, char *buf, size_t cap)
{
    const tgi_job_device *d = &job->dev;
    size_t n;
    if (!d->ops) {
        snprintf(buf, cap, "%s", job->set.backend->name);
        return buf;
    }
    snprintf(buf, cap, "%s %s %d.%d", d->ops->name, tgi_job_precision(job), d->info.major,
             d->info.minor);
    for (int i = 0; i < OPEN_KINDS; i++)
        if ((d->kinds & open_kinds[i].kind) && (n = strlen(buf)) < cap)
            snprintf(buf + n, cap - n, " %s", open_kinds[i].name);
    return buf;
}

/* ---- What is measured -------------------------------------------------------------------- */

void tgi_job_keep_measured(tg_job *job, const tgi_measured *m)
{
    tgi_err e = {0};
    if (tgi_measured_write(&job->dev.info, m, &e) != TG_OK)
        tgi_ctx_log(job->ctx, TG_LOG_DEBUG, "it is measured again next time: %s", e.text);
}

double tgi_job_gain(tg_job *job, tgi_gain which, tgi_measured *m)
{
    tgi_job_device *d = &job->dev;
    tgi_err e = {0};
    double gain = -1;
    char text[128];
    tgi_measured_read(&d->info, m);
    if (d->of_file)
        m->gain[which] = -1; /* of a device of that name here it says nothing */
    if (m->gain[which] >= 0 || job->known.device || d->of_file)
        return m->gain[which];
    tg_status st = tgi_job_device_open(job, &e);
    if (st == TG_OK) {
        tgi_measured_read(&d->info, m); /* the context's bytes may be new */
        m->gain[which] = 0; /* stays, if this breaks the device or ends the process */
        tgi_job_keep_measured(job, m);
        st = tgi_gain_measure(which, d->ops, d->device, &d->info, d->limit_bytes, &gain, &e);
        m->gain[which] = st == TG_OK ? gain : st == TG_E_DEVICE ? 0 : -1;
        tgi_job_keep_measured(job, m);
    }
    if (st != TG_OK)
        tgi_ctx_log(job->ctx, st == TG_E_DEVICE ? TG_LOG_WARN : TG_LOG_DEBUG,
                    "%s: %s could not be measured: %s", job->device_text, tgi_gain_name(which),
                    e.text);
    else
        tgi_ctx_log(job->ctx, TG_LOG_INFO, "%s: %s", job->device_text,
                    tgi_gain_text(which, gain, text, sizeof text));
    return st == TG_OK ? gain : -1;
}

/* What cannot be measured is believed to be as most devices are. */
static int half_is_faster(tg_job *job)
{
    tgi_measured m;
    if (!job->dev.ops->backend(TG_DTYPE_F16))
        return 0;
    const double gain = tgi_job_gain(job, TGI_GAIN_HALF, &m);
    return gain <= 0 || gain >= tgi_gain_worth(TGI_GAIN_HALF);
}

/* ---- What is taken ----------------------------------------------------------------------- */

/* auto: half precision where it is faster, unless the network's author says no. */
static tg_dtype element_of(tg_job *job)
{
    if (job->dev.for_source) /* no GPU has shown yet what halves are worth there */
        return tgi_job_wants_halves(job->opts) && tgi_job_source_halves(job) ? TG_DTYPE_F16
                                                                             : TG_DTYPE_F32;
    switch ((tgi_precision)tgi_opts_choice(job->opts, TGI_OPT_PRECISION)) {
    case TGI_PRECISION_FP16:
        return TG_DTYPE_F16;
    case TGI_PRECISION_BF16:
        return TGI_DTYPE_BF16;
    case TGI_PRECISION_AUTO:
        return job->set.exact || job->set.tf32 || job->set.descriptor.fp32_only ||
                       !half_is_faster(job)
                   ? TG_DTYPE_F32
                   : TG_DTYPE_F16;
    default:
        return TG_DTYPE_F32;
    }
}

/* Why the device cannot compute in the precision that was chosen; NULL: it can. */
static const char *lacks(const tgi_job_device *d)
{
    if (!d->ops->backend(d->element))
        return "it has no kernels of that precision: --precision fp32";
    if (d->element == TGI_DTYPE_BF16 && !d->info.bf16)
        return "it multiplies no bfloat16 numbers (NVIDIA's do from compute capability 8.0 "
               "on): --precision fp16 or fp32";
    return NULL;
}

/* Kinds that may be used on this device at all. */
static unsigned allowed(const tg_job *job)
{
    unsigned kinds = job->dev.info.kinds & (TGI_KIND_WGMMA | TGI_KIND_LIBRARY);
    if (job->set.exact)
        return 0;
    if (job->dev.element == TG_DTYPE_F32)
        kinds &= ~TGI_KIND_WGMMA;
    if (job->set.no_library || job->known.device ||
        job->dev.for_source) /* it takes a context to try it */
        kinds &= ~TGI_KIND_LIBRARY;
    return kinds;
}

/* Of those that need no memory: the library is the plan's question. */
static unsigned pays(tg_job *job)
{
    tgi_measured m;
    return (allowed(job) & TGI_KIND_WGMMA) &&
                   tgi_job_gain(job, TGI_GAIN_WGMMA, &m) >= tgi_gain_worth(TGI_GAIN_WGMMA)
               ? TGI_KIND_WGMMA
               : 0;
}

const char *tgi_job_pick_kinds(tg_job *job)
{
    tgi_job_device *d = &job->dev;
    const tgi_job_device *known = job->known.device;
    if (known && known->element != TG_DTYPE_NONE) {
        d->element = known->element;
        d->kinds = known->kinds & ~TGI_KIND_LIBRARY;
        return NULL;
    }
    d->element = element_of(job);
    const char *missing = lacks(d);
    if (missing)
        return missing;
    d->kinds = pays(job);
    if (job->set.tf32 && (d->info.kinds & TGI_KIND_TF32))
        d->kinds |= TGI_KIND_TF32;
    else if (job->set.tf32)
        tgi_ctx_log(job->ctx, TG_LOG_INFO, "%s: it has no TF32, float32 stays as it is",
                    job->device_text);
    return NULL;
}

int tgi_job_library_is_open(const tg_job *job)
{
    return (allowed(job) & TGI_KIND_LIBRARY) && !job->dev.settled;
}

/* ---- What an interrupted run took -------------------------------------------------------- */

/* 1: with these types and some of the open kinds it is what `was` says. */
static int is_some(tg_job *job, const char *was, tg_dtype element)
{
    tgi_job_device *d = &job->dev;
    char now[64];
    const unsigned fixed = d->kinds & ~(TGI_KIND_WGMMA | TGI_KIND_LIBRARY);
    d->element = element;
    for (int set = 0; set < 1 << OPEN_KINDS; set++) {
        unsigned kinds = 0;
        for (int i = 0; i < OPEN_KINDS; i++)
            kinds |= set >> i & 1 ? open_kinds[i].kind : 0;
        if (kinds & ~allowed(job))
            continue;
        d->kinds = fixed | kinds;
        if (strcmp(was, tgi_job_computed_by(job, now, sizeof now)) == 0)
            return !lacks(d);
    }
    return 0;
}

void tgi_job_device_adopt(tg_job *job, const char *was)
{
    static const tg_dtype open[] = {TG_DTYPE_F32, TG_DTYPE_F16};
    tgi_job_device *d = &job->dev;
    const tg_dtype chosen = d->element;
    const unsigned kinds = d->kinds;
    if (!d->ops)
        return;
    int found = is_some(job, was, chosen);
    if (tgi_opts_choice(job->opts, TGI_OPT_PRECISION) == TGI_PRECISION_AUTO)
        for (int i = 0; i < 2 && !found; i++)
            found = is_some(job, was, open[i]);
    d->settled = found;
    if (!found) {
        d->element = chosen;
        d->kinds = kinds;
    } else if (d->element != chosen || d->kinds != kinds) {
        tgi_job_drop_plan(job);
    }
}
