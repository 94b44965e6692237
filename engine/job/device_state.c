/* device_state.c - see device_state.h. */
#include "engine/job/device_state.h"

#include "engine/job/job_state.h"

#include <string.h>

/* ---- Plan -------------------------------------------------------------------------------- */

tg_status tgi_device_state_check(const tg_job *job, tgi_err *err)
{
    const char *why = NULL;
    if (!tgi_job_hands_on(job))
        return TG_OK;
    if (job->map.appended)
        why = "--constant: a device appends no channels to a frame";
    else if (job->plan.net->rank != 4)
        why = "--state: a device hands images on, no volumes and lines";
    return why ? tgi_fail(err, TG_E_UNSUPPORTED, "%s", why) : TG_OK;
}

void tgi_device_state_form(const tg_job *job, const tgi_tiling *t, tgi_device_form *form)
{
    const tgi_stage *s = t->stage;
    const tgi_device_port image = form->in[0], picture = form->out[0];
    for (int i = 0; i < s->n_loaded && i < TGI_DEVICE_PORTS; i++)
        form->in[i] = tgi_net_port(t->net, s->in[i].value) == 0
                          ? image
                          : (tgi_device_port){.type = TG_DTYPE_F32}; /* it is there */
    for (int o = 0; o < s->n_out && o < TGI_DEVICE_PORTS; o++) {
        const int port = s->out[o].port;
        if (port == 0)
            form->out[o] = picture;
        else if (port > 0 && tgi_graph_is_carried(job->graph, port))
            form->out[o] = (tgi_device_port){.type = TG_DTYPE_F32,
                                             .channels = t->net->values[s->out[o].value].c,
                                             .together = 1,
                                             .stays = 1};
        else
            form->out[o] = (tgi_device_port){.type = TG_DTYPE_NONE};
    }
}

/* ---- Run --------------------------------------------------------------------------------- */

tg_status tgi_device_state_open(tgi_device_state *s, const tg_job *job, tgi_err *err)
{
    const tgi_device_ops *ops = job->dev.ops;
    void *at = NULL;
    *s = (tgi_device_state){0};
    if (!tgi_job_hands_on(job) || !job->dev.need.far)
        return TG_OK;
    TGI_TRY(ops->alloc(job->dev.device, job->dev.need.far, &at, err));
    *s = (tgi_device_state){
        .ops = ops, .device = job->dev.device, .bytes = job->dev.need.far, .at = at};
    return ops->event_new(s->device, &s->made, err);
}

void tgi_device_state_close(tgi_device_state *s)
{
    if (!s->ops)
        return;
    if (s->made)
        s->ops->event_free(s->device, s->made);
    s->ops->release(s->device, s->at);
    *s = (tgi_device_state){0};
}

tg_status tgi_device_state_begin(tgi_device_state *s, const tgi_carried *host, void *memory,
                                 tgi_err *err)
{
    if (!s->ops)
        return TG_OK;
    s->host = host;
    s->memory = memory;
    TGI_TRY(s->ops->upload(s->device, TGI_QUEUE_UPLOAD, s->at, memory, s->bytes, err));
    return s->ops->sync(s->device, NULL, err);
}

static char *there(const tgi_device_state *s, const char *here)
{
    return s->at + (here - s->memory);
}

tg_status tgi_device_state_home(tgi_device_state *s, tgi_err *err)
{
    if (!s->ops)
        return TG_OK;
    TGI_TRY(s->ops->record(s->device, TGI_QUEUE_COMPUTE, s->made, err));
    TGI_TRY(s->ops->wait(s->device, TGI_QUEUE_DOWNLOAD, s->made, err));
    for (int k = 0; k < s->host->n; k++) {
        const tgi_carried_value *v = &s->host->value[k];
        if (v->next)
            TGI_TRY(s->ops->download(s->device, TGI_QUEUE_DOWNLOAD, v->now, there(s, v->now),
                                     v->bytes, err));
    }
    TGI_TRY(s->ops->record(s->device, TGI_QUEUE_DOWNLOAD, s->made, err));
    return s->ops->sync(s->device, s->made, err);
}

/* Planes of all of a value. */
static tgi_device_pixels whole(const tgi_device_state *s, int value, const char *here)
{
    const tgi_desc *d = &s->host->net->shapes.desc[value];
    return (tgi_device_pixels){.at = there(s, here),
                               .type = TG_DTYPE_F32,
                               .channels = d->dim[1],
                               .together = 1,
                               .rows = {0, d->dim[2]},
                               .cols = {0, d->dim[3]},
                               .extent = {1, d->dim[2], d->dim[3]},
                               .pad = TGI_LOAD_ZERO,
                               .mul = 1};
}

int tgi_device_state_in(const tgi_device_state *s, int port, tgi_device_pixels *out)
{
    for (int k = 0; s->ops && k < s->host->n; k++)
        if (s->host->value[k].in == port) {
            *out = whole(s, s->host->net->in[port], s->host->value[k].now);
            return 1;
        }
    return 0;
}

int tgi_device_state_out(const tgi_device_state *s, int port, tgi_device_pixels *out)
{
    for (int k = 0; s->ops && k < s->host->n; k++)
        if (s->host->value[k].out == port) {
            *out = whole(s, s->host->net->out[port], s->host->value[k].next);
            return 1;
        }
    return 0;
}
