/* pp_between.h - the buffers of a step of the generator, and which of its networks read and write them. */
#ifndef TGI_PP_BETWEEN_H
#define TGI_PP_BETWEEN_H

#include "engine/inpaint/pp_generate.h"

/* Behind the networks, before the plan. Errors are the schedule's. */
void tgi_pp_between_add(tgi_pp_generate *g);

#endif
