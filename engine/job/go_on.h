/* go_on.h - what a run or a copy does with what an interrupted one left. */
#ifndef TGI_GO_ON_H
#define TGI_GO_ON_H

#include "engine/job/job.h"
#include "engine/out/journal.h"

/* What computed the interrupted output (tgi_job_computed_by) computes the rest of it.
 * TG_E_CHANGED: that is not here, or something else is asked for. */
tg_status tgi_adopt_device(tg_job *job, const char *was, tgi_err *err);
/* A finished output in the folder that is its own input, with its journal still there, is no
 * file of that input to the command that made it: *out is then `output`, to be left out, else
 * NULL. */
void tgi_leave_out(const char *input, const char *output, const char **out);
/* `st` is what the command answers to that journal. What is not that very output was one of the
 * input's files, and is TG_E_ARG: no -y replaces it. */
tg_status tgi_left_out(const tgi_journal *j, const char *output, tg_status st, tgi_err *err);
/* Is the input still what it was? Where size, time and what is hashed of it agree, the journal's text and
 * `ours` may still differ in when anything of it was changed (TGI_INPUT_CHANGED). A copy, other rights and another
 * name do that, and so does who writes into it and puts its time back. Then all of it is read once,
 * here, before a tile is made of it, and its checksum is compared with what the interrupted run read:
 * TG_E_CHANGED. *sum: that checksum, or "". *unsure: it had not read all, so nobody knows; the caller
 * says TGI_UNSURE_INPUT, with its name. */
tg_status tgi_same_input(tg_ctx *ctx, const tgi_journal *j, const tgi_source *s,
                         const char *ours, char sum[TGI_SHA256_TEXT], int *unsure,
                         tgi_err *err);
#define TGI_UNSURE_INPUT                                                                       \
    "%s: copied, renamed, given other rights or written to since the interrupted run, which "  \
    "had not read all of it; size, time and both ends are the same, so it goes on (-y starts " \
    "over)"
/* Before anything is taken over: an output with regions that --on-bad-tile fill filled is gone
 * on with under that option only (TG_E_CHANGED). `bad` NULL: without it. */
tg_status tgi_may_go_on(const tgi_journal *j, const tgi_bad_tiles *bad, const char *output,
                        tgi_err *err);
/* Take over the tiles, and the list of what was filled as far as `known` says (`bad` NULL: there is
 * none). TG_E_CHANGED: they are not what is known of them. */
tg_status tgi_go_on(tgi_journal *j, const tgi_sink_layout *layout, tgi_bad_tiles *bad,
                    const tgi_bad_state *known, tgi_err *err);
/* In state FINISHED: what is left besides the output is settled, the list written (it may be as
 * an earlier stop left it), and what could not be decoded is answered as it would have been.
 * *settled: nothing is left. */
tg_status tgi_settle(tgi_journal *j, tgi_bad_tiles *bad, const char *input,
                     const tgi_source *of, const char *output, int *settled, tgi_err *err);

#endif
