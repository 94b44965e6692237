/* job_gate.c - what a job writes and reads, put before the gate (engine/out/gate.h): the
 * options' files, the files that its input stands for, the model's external data, and what an
 * output folder will hold. And its side files that are there already. */
#include "engine/job/job_gate.h"
#include "engine/ends/tensors.h"
#include "engine/inpaint/inpaint.h"
#include "engine/inpaint/pp_weights.h"
#include "engine/job/job.h"
#include "engine/job/job_post.h"
#include "engine/out/gate.h"
#include "io/package.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* DIR/NAME.npy for each output, and what it is while it grows; an image's is NAME.tif. */
static tg_status writes_in_folder(tgi_gate *g, const tg_job *job, tgi_err *err)
{
    static const char *const end[] = {".npy", ".tif"};
    char path[4096];
    TGI_TRY(tgi_gate_writes_folder(g, job->set.output, err));
    for (int o = 0; o < job->graph->n_out; o++)
        for (size_t i = 0; i < sizeof end / sizeof end[0]; i++) {
            TGI_TRY(tgi_name_in_folder(job->set.output, job->graph->out[o].name, end[i], path,
                                       sizeof path, err));
            int known = 0; /* two outputs of one name are refused by who makes them */
            for (int k = 0; k < o && !known; k++)
                known = strcmp(job->graph->out[k].name, job->graph->out[o].name) == 0;
            if (!known)
                TGI_TRY(tgi_gate_writes_output(g, path, err));
        }
    return TG_OK;
}

static tg_status reads_model(const tgi_gate *g, const tg_job *job, tgi_err *err)
{
    char path[4096];
    const char *model = tgi_graph_path(job->graph), *slash, *name;
    model = model ? model : job->set.model;
    slash = strrchr(model, '/');
    const int folder = slash ? (int)(slash - model) + 1 : 0;
    TGI_TRY(tgi_gate_reads(g, model, "the model", err));
    for (int i = 0; tgi_package_file(job->set.model, i, path, sizeof path); i++)
        TGI_TRY(tgi_gate_reads(g, path, "the model's description", err));
    for (int i = 0; (name = tgi_graph_file(job->graph, i)); i++)
        if (snprintf(path, sizeof path, "%.*s%s", folder, model, name) < (int)sizeof path)
            TGI_TRY(tgi_gate_reads(g, path, "external data of the model", err));
    return TG_OK;
}

/* A folder has many. */
static tg_status reads_masks(const tgi_gate *g, const tg_job *job, tgi_err *err)
{
    const tgi_masks *masks = tgi_inpaint_masks(job->source);
    tgi_held f;
    for (int64_t i = 0; masks && g->n_there && tgi_masks_held(masks, i, &f); i++)
        TGI_TRY(tgi_gate_reads(g, f.path, "a mask", err));
    return TG_OK;
}

static tg_status reads_weights(const tgi_gate *g, const tg_job *job, tgi_err *err)
{
    const char *folder = tgi_opts_str(job->opts, TGI_OPT_WEIGHTS);
    char path[4096];
    for (int i = 0; folder && i < 3; i++)
        if (tgi_pp_weights_path(folder, i, path, sizeof path))
            TGI_TRY(tgi_gate_reads(g, path, "the weights", err));
    return TG_OK;
}

tg_status tgi_gate_reads_source(const tgi_gate *g, const tgi_source *s, const char *path,
                                tgi_err *err)
{
    const char *file;
    for (int64_t i = 0; g->n_there && (file = tgi_source_file(s, path, i)); i++)
        TGI_TRY(tgi_gate_reads(g, file, "the input", err));
    return TG_OK;
}

static tg_status reads(const tgi_gate *g, const tg_job *job, tgi_err *err)
{
    TGI_TRY(tgi_gate_options_read(g, job->opts, err));
    TGI_TRY(reads_model(g, job, err));
    TGI_TRY(reads_masks(g, job, err));
    TGI_TRY(reads_weights(g, job, err));
    return job->source ? tgi_gate_reads_source(g, job->source, job->set.input, err) : TG_OK;
}

tg_status tgi_job_gate(const tg_job *job, tgi_err *err)
{
    tgi_gate g = {0};
    const char *out = job->set.output;
    tg_status st = tgi_gate_options_write(&g, job->opts, err);
    if (st == TG_OK && job->post) /* its own output */
        st = job->post->output ? tgi_gate_writes_output(&g, job->post->output, err) : TG_OK;
    if (st == TG_OK && out && tgi_names_folder(out))
        st = writes_in_folder(&g, job, err);
    if (st == TG_OK)
        st = reads(&g, job, err);
    tgi_gate_close(&g);
    return st;
}

tg_status tgi_job_spares(const tg_job *job, const char *path, const char *what, tgi_err *err)
{
    tgi_gate g = {0};
    tg_status st = tgi_gate_writes_whole(&g, path, what, ".tmp", "{", err);
    if (st == TG_OK)
        st = reads(&g, job, err);
    tgi_gate_close(&g);
    return st;
}

/* ---- Log and plot ------------------------------------------------------------------------ */

static tg_status look_at(const tg_job *job, tgi_opt side, const char *path, tgi_job_side *out,
                         tgi_err *err)
{
    struct stat st;
    if (!path || tgi_is_stream(path))
        return TG_OK;
    const int there = lstat(path, &st) == 0;
    out->how = tgi_gate_side(job->opts, side, path);
    out->made = !there;
    return there && out->how == TGI_SIDE_NEW
               ? tgi_fail(err, TG_E_EXISTS, "%s: exists already; -y replaces it", path)
               : TG_OK;
}

tg_status tgi_job_sides_look(tg_job *job, tgi_err *err)
{
    char a[4096], b[4096];
    const char *log = tgi_gate_log(job->opts, a, sizeof a),
               *plot = tgi_gate_plot(job->opts, b, sizeof b);
    if (job->sides_known) /* another run of this job: what is there is its own */
        return TG_OK;
    if (log && plot && tgi_is_stream(log))
        return tgi_fail(
            err, TG_E_ARG,
            "%s: --plot draws what --log wrote, and this cannot be read again: give "
            "--log FILE.csv",
            log);
    TGI_TRY(look_at(job, TGI_OPT_LOG, log, &job->log, err));
    TGI_TRY(look_at(job, TGI_OPT_PLOT, plot, &job->drawn, err));
    job->sides_known = 1;
    return TG_OK;
}

void tgi_job_sides_drop(const tg_job *job, tg_status st)
{
    char buf[4096];
    const int again =
        st == TG_E_CANCELLED || st == TG_E_NO_SPACE || st == TG_E_IO || st == TG_E_DEVICE_LOST;
    if (!again || tgi_gate_interrupted(job->set.output))
        return;
    const char *path = tgi_gate_log(job->opts, buf, sizeof buf);
    if (path && job->log.made)
        unlink(path);
    path = tgi_gate_plot(job->opts, buf, sizeof buf);
    if (path && job->drawn.made)
        unlink(path);
}
