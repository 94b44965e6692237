/* job_picture.h - outputs that are written from top to bottom in one go: PNG, JPEG, ImageJ's
 * stacks.
 *
 * The tiles of a run go where they always go, into OUT.partial, and the file is made out of
 * them at the end: such a run is resumed like any other, and costs the disk its pixels twice
 * for a while. */
#ifndef TGI_JOB_PICTURE_H
#define TGI_JOB_PICTURE_H

#include "engine/out/journal.h"
#include "engine/settings/opts.h"
#include "io/picture_out.h"

/* Choices of --format. */
enum { TGI_FORMAT_IMAGEJ = 1, TGI_FORMAT_RAW };

/* The writer of a job's output, by --format or the name; NULL: the tiles stay as they are.
 * TG_E_ARG: options that contradict --format. */
tg_status tgi_picture_choose(const tg_opts *opts, const tgi_picture_writer **out, tgi_err *err);
/* What a layout asks of the writer `w` (NULL: nothing). TG_E_ARG: the format says no; `path` is
 * named, and what to write instead. `meta` as for the layout. */
tg_status tgi_picture_check(const tgi_picture_writer *w, const char *path,
                            const tgi_sink_layout *l, const tgi_image_meta *meta, tgi_err *err);
/* Memory that making it takes; 0 when w is NULL. */
size_t tgi_picture_make_bytes(const tgi_picture_writer *w, const tgi_sink_layout *l,
                              const tgi_image_meta *meta);
/* Make it, unless w is NULL: before tgi_journal_finish. */
tg_status tgi_picture_make(const tgi_picture_writer *w, const tgi_sink_layout *l,
                           const tgi_image_meta *meta, tgi_journal *j, tgi_err *err);

/* Colours that are chosen for a network of one channel become channels with their names, where the output says these. */
int tgi_job_sets_colours_apart(const tg_job *job);
/* What of the input's metadata holds for the output; a view of the job's. */
void tgi_job_meta(const tg_job *job, tgi_image_meta *out);
/* What of the input the user should know, and what no output says. */
void tgi_job_tell_input(tg_job *job);
/* Once: what of the input's metadata the job's output does not say. Of what --post makes of it the copy tells the
 * rest. */
void tgi_job_tell_lost(tg_job *job, const tgi_image_meta *meta);
#define TGI_MALFORMED_META "%s: what is no number, or no unit, of its metadata was not read: %s"

#endif
