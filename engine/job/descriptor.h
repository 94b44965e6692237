/* descriptor.h - MODEL.json beside the model, or what --descriptor names. */
#ifndef TGI_DESCRIPTOR_H
#define TGI_DESCRIPTOR_H

#include "engine/graph/card.h"
#include "engine/job/job.h"

/* Read MODEL.json beside the model, or what --descriptor names. */
tg_status tgi_descriptor_load(const char *model, const tg_opts *o, tgi_descriptor *d,
                              tgi_err *err);
/* The description of a package, where `model` is one, or its ONNX file, or --descriptor names one; *card NULL: there is none. Returned;
 * tgi_card_free. */
tg_status tgi_descriptor_card(const char *model, const tg_opts *o, tgi_descriptor *d,
                              tgi_card **card, tgi_err *err);
/* The same of a network alone: of the package that it is or is in, or of plans beside it. */
tg_status tgi_descriptor_card_beside(const char *model, tgi_card **card, tgi_err *err);
/* Of nnU-Net's plans, once the network and the image are open: which planes make a case; and what is said of spacing,
 * patches and mirroring. */
void tgi_job_plans_bind(tg_job *job);

#endif
