/* job_post.h - a run with --post: the network's values go to OUT.values.tif, and objects are made of
 * these, as a copy is (copy.h), into OUT.
 *
 * Both are steps that a stopped run goes on with. While OUT.values.tif is not complete the network goes on;
 * when it is, it stays until OUT is complete, and only the copy goes on. It goes right before OUT gets its name. */
#ifndef TGI_JOB_POST_H
#define TGI_JOB_POST_H

#include "engine/base/post_spec.h"
#include "engine/job/job.h"
#include "engine/memory/tracker.h"

#define TGI_POST_VALUES ".values.tif" /* behind the name of OUT */

typedef struct tgi_job_post {
    tgi_post_spec spec;
    char text[TGI_POST_TEXT]; /* the list, of the command or of the descriptor */
    char *output;  /* OUT; the job's own output is OUT.values.tif. NULL: a plan names none */
    tg_opts *opts; /* as they were given */
    /* Of the plan: */
    size_t peak;                    /* of the copy */
    uint64_t disk, scratch;         /* bytes of OUT, and of the scratch files */
    struct tgi_sink_layout *layout; /* of OUT, while its journal is open */
    /* Of the copy, while it runs: */
    tg_tracker *tracker;
    double began;
} tgi_job_post;

/* Before the settings are read: take what the job's options and its descriptor say. */
tg_status tgi_job_post_open(tg_job *job, tgi_err *err);
void tgi_job_post_free(tg_job *job);
/* For what makes no objects (verify, preview): the job's output is the one that was named. */
void tgi_job_post_leave(tg_job *job);
/* When the input is known. */
tg_status tgi_job_post_check(const tg_job *job, tgi_err *err);
/* The options as the user gave them. */
const tg_opts *tgi_job_asked(const tg_job *job);
/* A plan stands: count the copy, too. TG_E_BUDGET: it does not fit. */
tg_status tgi_job_post_count(tg_job *job, tgi_err *err);
void tgi_job_post_lines(tg_job *job);
/* tgi_job_run, and the copy. */
tg_status tgi_job_run_all(tg_job *job, tg_run_result *out, tgi_err *err);

#endif
