/* pp_weights.h - the three published files of ProPainter's weights, in a folder. */
#ifndef TGI_PP_WEIGHTS_H
#define TGI_PP_WEIGHTS_H

#include "io/weights.h"

/* The file of network i (0 to 2) in the folder: the first that is there. 0: none is, or its name is too long. */
int tgi_pp_weights_path(const char *folder, int i, char *buf, size_t cap);
/* motion, completion, generator: raft-things, recurrent_flow_completion, ProPainter, each as .pth or .safetensors, the
 * first that is there. Returned; tgi_weights_close each. TG_E_NOT_FOUND: which is missing, and who publishes it under which
 * licence. */
tg_status tgi_pp_weights_open(const char *folder, tgi_weights *out[3], tgi_err *err);

#endif
