/* inpaint_choice.h - which settings a film is inpainted with, where nobody said so: of those that fit the memory the ones of
 * the highest quality (--preset auto), or the next ones below what was asked (--allow-lower-quality).
 *
 * Ways of whole frames at the film's own size come first, then smaller frames; in each the settings of ProPainter go down as far
 * as it takes:
 *
 *   subvideo-length/neighbor-length/ref-stride   80/10/10, 80/8/15, 50/6/10, 50/3/10, 30/3/10: each has references
 *   kernels                                      the usual ones; direct ones, whose weights are smaller; bf16 behind the last of
 *                                                these, where the processor has it, and fp16 on a GPU that does
 *   device                                       of --preset auto without --device: the processor and a GPU that is there; of both
 *                                                that have room the one of fewer predicted seconds
 *   size                                         the film's; 0.75, 0.5, 0.375 and 0.25 of its sides
 *   scratch                                      the folder for temporary files, on a disk; used where memory is short
 *
 * What somebody set stays. A region is shown beside that and never taken by itself: motion and attention are of whole
 * frames, so it draws another thing. Each way is planned as a run would be.
 *
 * An output that an earlier run began, or made, with such settings is gone on with by the very same ones, and by the
 * same of processor and GPU. A GPU that was chosen so, and by nobody's name, is left where it cannot be had: by the search,
 * which makes its context once before a run, else by the job (tgi_job_device_by_auto). */
#ifndef TGI_INPAINT_CHOICE_H
#define TGI_INPAINT_CHOICE_H

#include "engine/settings/opts.h"
#include "tegula_memory.h"

/* Choose, set in `o` what is chosen, and tell all ways that were planned as an object (docs/reference/json.md, "inpaint_auto"). Returned;
 * tgi_free; NULL where there was nothing to choose. TG_E_BUDGET: none fits, told as the plan of what `o` says;
 * *json has what was tried. */
typedef struct tgi_inpaint_refused {
    struct tg_job
        *job; /* what did not fit the memory of a GPU, tgi_job_close; NULL: it was not that */
    tg_remedy least; /* no options: there is none */
} tgi_inpaint_refused;
tg_status tgi_inpaint_choose(tg_opts *o, char **json, tgi_inpaint_refused *no, tgi_err *err);
/* One more remedy of a refusal `why` of a job with these options: lower settings that fit, if there are such. */
void tgi_inpaint_remedy(const tg_opts *o, tg_status why, tg_refusal *r);

#endif
