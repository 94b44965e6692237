/* run_pipe.h - the steps of a run whose output is a film through standard output: frames as they are done, in
 * order. There is no journal, no receipt and no name: what was sent is gone, and a stop starts over. The
 * input may come through a pipe, too; then the run ends with it. A film that comes through a pipe and becomes a
 * file takes the same steps: its packets wait in a spool (film_spool.h), of which the film is made at the end,
 * with a receipt. */
#ifndef TGI_RUN_PIPE_H
#define TGI_RUN_PIPE_H

#include "engine/job/run.h"

extern const tgi_run_steps tgi_pipe_steps;

#endif
