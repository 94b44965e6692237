/* job_picture.h - outputs that are PNG or JPEG files.
 *
 * Such a file is written from top to bottom in one go, so the tiles of a run go where they
 * always go, into OUT.partial, and the picture is made out of them at the end: a run for a
 * picture is resumed like any other, and costs the disk its pixels twice for a while. */
#ifndef TGI_JOB_PICTURE_H
#define TGI_JOB_PICTURE_H

#include "engine/run/journal.h"
#include "io/picture_out.h"

/* What a layout asks of a picture. TG_E_ARG: more than one plane, or the format says no; `path`
 * is named, and what to write instead. */
tg_status tgi_picture_check(const char *path, const tg_sink_layout *l, tgi_err *err);
/* Memory that making it takes; 0 when `path` names no picture. */
size_t tgi_picture_make_bytes(const char *path, const tg_sink_layout *l);
/* Make it, when `path` names one: before tgi_journal_finish. `meta` as for the layout. */
tg_status tgi_picture_make(const char *path, const tg_sink_layout *l, const tg_image_meta *meta,
                           tg_journal *j, tgi_err *err);

#endif
