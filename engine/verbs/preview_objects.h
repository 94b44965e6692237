/* preview_objects.h - which values of a crop are objects, so that the picture can outline them. */
#ifndef TGI_PREVIEW_OBJECTS_H
#define TGI_PREVIEW_OBJECTS_H

#include "engine/job/job.h"
#include "engine/verbs/preview_picture.h"

/* What makes objects of the network's values: --labels, the network itself, or --post. Fills
 * result->objects and level. */
void tgi_preview_objects_choose(const tg_job *job, tgi_panel *result);
/* Says what the outlines of the picture are not, or why it has none in spite of --post. */
void tgi_preview_objects_note(tg_job *job, const tgi_panel *result);
/* Memory that tgi_preview_objects_level works in. */
size_t tgi_preview_objects_bytes(const tgi_panel *result);
/* Find Otsu's threshold of a crop that is filled; nothing to do for another one. */
void tgi_preview_objects_level(tgi_panel *result, void *memory);

#endif
