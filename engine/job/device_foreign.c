/* device_foreign.c - a GPU of a machine file as a device to plan for.
 *
 * A plan takes a plugin's kernels and no device: what it needs to know of one is in the file,
 * or in the row of configs/gpus.json that its name and memory are most like. Nothing was
 * measured there, so kinds of kernels that are used only where they were measured are left out,
 * and the context takes what estimates assume. */
#include "engine/job/job.h"
#include "engine/job/job_device.h"
#include "engine/job/roofline.h"
#include "engine/settings/gpus.h"

#include "engine/base/mem.h"

#include <stdio.h>
#include <string.h>

#define LEAST_CAPABILITY 75 /* ten times the compute capability that kernels begin at */

/* What the file does not say of it. */
static tg_status look_up(const tgi_machine *m, const tgi_machine_gpu *g, tgi_device_info *info,
                         tgi_err *err)
{
    tgi_gpus *table = NULL;
    TGI_TRY(tgi_gpus_load(&table, err));
    const tgi_gpu *like = tgi_gpus_like(table, g->name, g->total_bytes);
    if (like && !info->major) {
        info->major = like->major;
        info->minor = like->minor;
    }
    if (like && !info->multiprocessors)
        info->multiprocessors = like->multiprocessors;
    tgi_free(table);
    if (info->major && info->multiprocessors)
        return TG_OK;
    return tgi_fail(
        err, TG_E_DEVICE,
        "%s: GPU \"%.60s\" is like none of configs/gpus.json: add its compute_capability, "
        "such as [8, 6], and its multiprocessors",
        m->name, g->name);
}

/* The one asked for, or the one with most free memory. */
static const tgi_machine_gpu *pick(const tgi_machine *m, int id)
{
    const tgi_machine_gpu *best = NULL;
    for (int i = 0; i < m->n_gpus; i++)
        if (id == i ||
            (id == TGI_DEVICE_ANY && (!best || m->gpu[i].free_bytes > best->free_bytes)))
            best = &m->gpu[i];
    return best;
}

tg_status tgi_job_device_of_file(tg_job *job, const tgi_device_spec *want, tgi_err *err)
{
    const tgi_machine *m = &job->machine;
    const tgi_machine_gpu *g = pick(m, want->id);
    const tgi_device_ops *ops = NULL;
    if (!m->n_gpus)
        return tgi_fail(err, TG_E_DEVICE, "no %s device: %s has no GPU", want->plugin, m->name);
    if (!g)
        return tgi_fail(err, TG_E_DEVICE, "there is no device %s:%d: %s has 0 to %d",
                        want->plugin, want->id, m->name, m->n_gpus - 1);
    tgi_device_info info = {.id = (int)(g - m->gpu),
                            .major = g->major,
                            .minor = g->minor,
                            .multiprocessors = g->multiprocessors,
                            .total_bytes = g->total_bytes,
                            .copies_overlap = 1};
    snprintf(info.name, sizeof info.name, "%s", g->name);
    TGI_TRY(look_up(m, g, &info, err));
    if (10 * info.major + info.minor < LEAST_CAPABILITY)
        return tgi_fail(
            err, TG_E_DEVICE,
            "no %s device: \"%.60s\" of %s has compute capability %d.%d: the kernels begin at "
            "7.5",
            want->plugin, g->name, m->name, info.major, info.minor);
    const tg_status st = tgi_device_open_plugin(want->plugin, &ops, err);
    if (st != TG_OK) {
        tgi_err_prefix(err, "a plan for a GPU takes the kernels of the plugin: ");
        return st;
    }
    info.bf16 = info.major >= 8;
    info.kinds = info.major >= 8 ? TGI_KIND_TF32 : 0;
    job->dev = (tgi_job_device){
        .ops = ops, .info = info, .chosen = 1, .by_name = 1, .of_file = 1, .supposed = 1};
    job->dev.context_bytes = TGI_CONTEXT_BYTES;
    job->dev.free_bytes =
        g->free_bytes > TGI_CONTEXT_BYTES ? g->free_bytes - TGI_CONTEXT_BYTES : 0;
    return TG_OK;
}
