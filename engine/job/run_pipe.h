/* run_pipe.h - the steps of a run whose output is a film through standard output: frames as they are done, in
 * order. There is no journal, no receipt and no name: what was sent is gone, and a stop starts over. The
 * input may come through a pipe, too; then the run ends with it. */
#ifndef TGI_RUN_PIPE_H
#define TGI_RUN_PIPE_H

#include "engine/job/run.h"

extern const tgi_run_steps tgi_pipe_steps;

#endif
