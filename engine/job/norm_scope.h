/* norm_scope.h - norms over tiles instead of over the image, for who asks for it (--norm-scope
 * tile): boxes of the network, each an image of its own to operators that read whole extents. */
#ifndef TGI_NORM_SCOPE_H
#define TGI_NORM_SCOPE_H

#include "engine/job/job.h"

/* Before the image is mapped: how->in_boxes and how->core. TG_E_ARG: --tile is missing, or it is
 * an array. */
tg_status tgi_norm_scope_ask(tg_job *job, tgi_mapping_opts *how, tgi_err *err);
/* Once it is mapped: notes what came of it (set.norm_tiles), and warns. */
void tgi_norm_scope_note(tg_job *job, const tgi_mapping_opts *how);
tg_status tgi_norm_scope_check_arrays(const tg_job *job, tgi_err *err);

#endif
