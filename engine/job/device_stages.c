/* device_stages.c - counts the stages of a net on a device. */
#include "engine/job/device_stages.h"

#include "engine/base/arith.h"
#include "engine/exec/device_steps.h"
#include "engine/job/ends.h"
#include "engine/plan/staged.h"
#include "kernels/granule.h"
#include "kernels/reduce.h"

#include <string.h>

/* ---- Which ------------------------------------------------------------------------------- */

static int is_read_later(const tgi_stages *s, int k, int v)
{
    for (k++; k < s->n; k++)
        for (int i = 0; i < s->stage[k].n_loaded; i++)
            if (s->stage[k].in[i].value == v)
                return 1;
    return 0;
}

/* Does output o come back as planes of floats, as what passes between stages does? Else in the
 * form of the image that is written. */
static int comes_as_planes(const tg_job *job, const tgi_stage_out *o)
{
    return o->port < 0 || !job->ends->image_out;
}

/* Does input i go up as planes of floats? Else as pixels of the image that is read. */
static int goes_as_planes(const tg_job *job, const tgi_tiling *t, int i)
{
    return !job->source || tgi_net_port(t->net, t->stage->in[i].value) < 0;
}

/* Are sums of rows enough? Extremes are found here. */
static int comes_as_moments(const tgi_tiling *t, const tgi_stage_out *o)
{
    const tgi_net_node *n = o->reduced ? &t->net->nodes[o->whole] : NULL;
    return n && tgi_reduce_what(tgi_reduce_of(n->node->op, &n->ctx)) == TGI_GRANULES_MOMENTS;
}

/* What follows a reduction in its kernel would be computed here: with other bits. */
static int takes_out(const tg_job *job, const tgi_stages *s, int k, const tgi_stage_out *o)
{
    const tgi_net *net = s->one.net;
    if (o->reduced)
        return net->nodes[o->whole].n_epi == 0;
    if (o->pick != TGI_PICK_NONE && comes_as_planes(job, o))
        return 0; /* the device would store a number, whoever takes it looks for all channels */
    return !net->values[o->value].flat &&
           (comes_as_planes(job, o) || !is_read_later(s, k, o->value));
}

static int takes(const tg_job *job, const tgi_stages *s, int k)
{
    const tgi_stage *t = &s->stage[k];
    if (t->n_loaded > TGI_DEVICE_PORTS || t->n_out > TGI_DEVICE_PORTS)
        return 0;
    for (int i = 0; i < t->n_loaded; i++)
        if (t->net->values[t->in[i].value].flat)
            return 0;
    for (int o = 0; o < t->n_out; o++)
        if (!takes_out(job, s, k, &t->out[o]))
            return 0;
    return 1;
}

int tgi_device_takes_stages(const tg_job *job, const tgi_stages *s)
{
    for (int k = 0; k < s->n; k++)
        if (!takes(job, s, k))
            return 0;
    return 1;
}

int tgi_device_is_stage(const tg_job *job, const tgi_tiling *t)
{
    return job->plan.stages && t->stage != &job->plan.stages->one;
}

/* ---- Forms ------------------------------------------------------------------------------- */

void tgi_device_stage_form(const tg_job *job, const tgi_tiling *t, tgi_device_form *out)
{
    tgi_device_form ends = {0};
    job->ends->form(job, t, &ends);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < t->stage->n_loaded; i++) {
        const int v = t->stage->in[i].value;
        if (!goes_as_planes(job, t, i))
            out->in[i] = ends.in[tgi_net_port(t->net, v)];
        else
            out->in[i] = (tgi_device_port){.type = TG_DTYPE_F32,
                                           .bytes = tgi_device_load_most(t, v) * sizeof(float)};
    }
    for (int o = 0; o < t->stage->n_out; o++) {
        const tgi_stage_out *from = &t->stage->out[o];
        if (!comes_as_planes(job, from))
            out->out[o] = ends.out[from->port];
        else
            out->out[o] = (tgi_device_port){.type = TG_DTYPE_F32,
                                            .channels = t->net->values[from->value].c,
                                            .together = 1,
                                            .moments = comes_as_moments(t, from)};
    }
}

size_t tgi_device_stage_up(const tg_job *job, const tgi_tiling *t, const tgi_device_form *form,
                           size_t at[TGI_DEVICE_PORTS])
{
    size_t bytes = 0;
    for (int i = 0; i < t->stage->n_loaded; i++) {
        at[i] = bytes;
        if (goes_as_planes(job, t, i))
            bytes = tgi_sat_add(bytes, tgi_align_size(form->in[i].bytes, 64));
    }
    return tgi_sat_mul(2, bytes);
}

double tgi_device_stage_pixels(const tgi_tiling *t, const tgi_device_form *form)
{
    double bytes = 0;
    for (int i = 0; i < t->stage->n_loaded; i++)
        bytes += (double)form->in[i].bytes;
    for (int o = 0; o < t->stage->n_out; o++) {
        int64_t rows;
        bytes += (double)tgi_device_store_most(t, o, &form->out[o], &rows);
    }
    return bytes;
}

/* ---- All stages -------------------------------------------------------------------------- */

tg_status tgi_device_stages_need(tg_job *job, tgi_device_need *need, tgi_device_form *form,
                                 tgi_err *err)
{
    const tgi_staged *s = job->plan.choice.staged;
    size_t pinned = 0, packing = 0, at[TGI_DEVICE_PORTS];
    memset(need, 0, sizeof *need);
    for (int k = 0; k < s->n; k++) {
        const tgi_tiling *t = &s->tiling[k];
        tgi_device_form f;
        tgi_device_need one;
        tgi_device_stage_form(job, t, &f);
        TGI_TRY(tgi_device_need_of(job->dev.ops, t, &f, &one, err));
        const size_t here = tgi_sat_add(one.pinned, tgi_device_stage_up(job, t, &f, at));
        pinned = here > pinned ? here : pinned;
        packing = one.packing > packing ? one.packing : packing;
        if (tgi_sat_add(one.block, one.program) > tgi_sat_add(need->block, need->program))
            *need = one;
        if (k == tgi_stages_last(s->cut))
            *form = f;
    }
    need->pinned = pinned;
    need->packing = packing;
    return TG_OK;
}
