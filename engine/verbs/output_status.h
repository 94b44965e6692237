/* output_status.h - how far the run of an output is, from the files beside it: `tegula status`.
 *
 * OUT.journal says which tiles are safe, and who works on it (journal_file.h); OUT.stages, how far a
 * run in stages is (stage_state.h). Both are written while they are read: each has checksums, and an
 * older place that holds. */
#ifndef TGI_OUTPUT_STATUS_H
#define TGI_OUTPUT_STATUS_H

#include "tegula.h"

#include "engine/base/status.h"

/* *out is whole, `size` apart. TG_E_NOT_FOUND, TG_E_NOMEM, TG_E_IO. */
tg_status tgi_output_look(const char *output, tg_output_status *out, tgi_err *err);

#endif
