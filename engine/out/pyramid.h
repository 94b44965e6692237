/* pyramid.h - the levels of an output, made of its own finished tiles.
 *
 * When all tiles of the image are in the file, each level is made of the one above: four tiles
 * are read back and decoded, one after the other, and become a quarter each of a new one. New
 * tiles take the same way as the image's (commit.h), so they are compressed in parallel,
 * journalled, and skipped by a run that goes on. Memory is two tiles, whatever the image. */
#ifndef TGI_PYRAMID_H
#define TGI_PYRAMID_H

#include "engine/out/commit.h"
#include "engine/out/journal.h"

typedef struct tgi_pyramid_builder tgi_pyramid_builder;

/* What it holds, the decoder's state included: a line of the plan; 0 without a pyramid. */
size_t tgi_pyramid_bytes(const tgi_sink_layout *l);
/* Allocates all of it; *out stays NULL without a pyramid. */
tg_status tgi_pyramid_open(const tgi_sink_layout *l, tgi_pyramid_builder **out, tgi_err *err);
void tgi_pyramid_close(tgi_pyramid_builder **b);
/* All levels. Flushes the writer before each. `stop` is asked before each tile. */
tg_status tgi_pyramid_build(tgi_pyramid_builder *b, const tgi_journal *j, tgi_commit *c,
                            tg_status (*stop)(void *user, tgi_err *err), void *user,
                            tgi_err *err);

#endif
