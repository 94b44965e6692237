/* descriptor.h - MODEL.json beside the model, or what --descriptor names. */
#ifndef TGI_DESCRIPTOR_H
#define TGI_DESCRIPTOR_H

#include "engine/job/job.h"

/* Read MODEL.json beside the model, or what --descriptor names. */
tg_status tgi_descriptor_load(const char *model, const tg_opts *o, tgi_descriptor *d,
                              tgi_err *err);

#endif
