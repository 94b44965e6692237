/* tegula.c - the public door: check arguments, call down, nothing else. */
#include "tegula.h"
#include "engine/base/sized.h"
#include "engine/ends/tensors.h"
#include "engine/job/copy.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/job_post.h"
#include "engine/job/job_settings.h"
#include "engine/job/plan_report.h"
#include "engine/job/run.h"
#include "engine/verbs/convert_weights.h"
#include "engine/verbs/describe.h"
#include "engine/verbs/job_preview.h"
#include "engine/verbs/job_verify.h"
#include "engine/verbs/output_status.h"
#include "tegula_array.h"
#include "tegula_preset.h"

#include "engine/auto/auto.h"
#include "engine/auto/inpaint_choice.h"
#include "engine/base/cancel.h"
#include "engine/base/clock.h"
#include "engine/base/ctx.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/job/ends.h"
#include "engine/job/job.h"
#include "engine/settings/lent.h"
#include "engine/verbs/calibrate.h"
#include "engine/verbs/refusal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tg_ctx {
    tgi_err err;
    tg_ctx_opts opts;
    const char *last_phase;
    double last_report;
    tg_refusal refusal; /* of `err`, when it is one of memory */
    int refused;
    tg_remedy remedy; /* what tg_ctx_remedy shows */
    int keeps;        /* tg_ctx_keep_model */
    struct {
        char *key;
        void *thing;
        void (*release)(void *thing);
    } kept;
};

/* ---- Context ----------------------------------------------------------------------------- */

void tg_cancel(int signal_number)
{
    tgi_cancel(signal_number);
}

int tg_cancel_signal(void)
{
    return tgi_cancel_signal();
}

tgi_err *tgi_ctx_err(tg_ctx *ctx)
{
    if (!ctx)
        return NULL;
    memset(&ctx->err, 0, sizeof ctx->err);
    ctx->refused = 0;
    return &ctx->err;
}

/* A function of the caller's answered so: what its memory lacks is not known here. */
static int of_caller(const tgi_err *err)
{
    return err->asked_by && strcmp(err->asked_by, TGI_CALLER_ASKS) == 0;
}

/* Calls that open no job leave the figures to whoever asks for them. */
const tg_refusal *tg_ctx_refusal(const tg_ctx *ctx)
{
    tg_ctx *c = (tg_ctx *)ctx; /* the caller's const is about the answer */
    if (c && !c->refused && c->err.code == TG_E_NOMEM && !of_caller(&c->err)) {
        tgi_refusal_explain(&c->err, TGI_DO_RUN, NULL, NULL, &c->refusal);
        c->refused = 1;
    }
    return c && c->refused ? &c->refusal : NULL;
}

const tg_remedy *tg_ctx_remedy(const tg_ctx *ctx, size_t k)
{
    tg_ctx *c = (tg_ctx *)ctx;
    if (!c || c->err.code == TG_OK || !c->err.try_option)
        return NULL;
    const char *value = c->err.try_value;
    for (; k && *value; k--)
        value += strcspn(value, "\n") + (strchr(value, '\n') != NULL);
    if (!*value)
        return NULL;
    c->remedy = (tg_remedy){.n_options = 1, .option = {{.name = c->err.try_option}}};
    snprintf(c->remedy.option[0].value, sizeof c->remedy.option[0].value, "%.*s",
             (int)strcspn(value, "\n"), value);
    return &c->remedy;
}

/* The last step of calls that need memory: when it was refused, find out what would do. */
static tg_status answer(tg_ctx *ctx, tgi_verb verb, const tg_opts *opts, const tg_job *job,
                        tg_status st)
{
    if (ctx && (st == TG_E_BUDGET || st == TG_E_NOMEM) && ctx->err.code == st &&
        !of_caller(&ctx->err)) {
        tgi_refusal_explain(&ctx->err, verb, opts, job, &ctx->refusal);
        ctx->refused = 1;
        if (verb == TGI_DO_RUN && opts)
            tgi_inpaint_remedy(opts, st, &ctx->refusal);
    }
    return st;
}

static void drop_kept(tg_ctx *ctx)
{
    if (ctx->kept.thing)
        ctx->kept.release(ctx->kept.thing);
    tgi_free(ctx->kept.key);
    memset(&ctx->kept, 0, sizeof ctx->kept);
}

void tgi_ctx_keep(tg_ctx *ctx, const char *key, void *thing, void (*release)(void *thing))
{
    char *copy = ctx && ctx->keeps ? tgi_strdup(TGI_TAG_MISC, key) : NULL;
    if (!copy) {
        release(thing);
        return;
    }
    drop_kept(ctx);
    ctx->kept.key = copy;
    ctx->kept.thing = thing;
    ctx->kept.release = release;
}

void *tgi_ctx_kept(tg_ctx *ctx, const char *key)
{
    void *thing = NULL;
    if (!ctx || !ctx->kept.thing)
        return NULL;
    if (strcmp(ctx->kept.key, key) == 0) {
        thing = ctx->kept.thing;
        ctx->kept.thing = NULL;
    }
    drop_kept(ctx);
    return thing;
}

int tgi_ctx_keeps(const tg_ctx *ctx)
{
    return ctx && ctx->keeps;
}

void tg_ctx_keep_model(tg_ctx *ctx, int keep)
{
    if (!ctx)
        return;
    if (!ctx->keeps != !keep)
        tgi_pages_keep(keep);
    ctx->keeps = keep != 0;
    if (!keep)
        drop_kept(ctx);
}

tg_status tg_ctx_open(const tg_ctx_opts *opts, tg_ctx **out)
{
    tg_ctx_opts own = {0};
    if (!out || (opts && !tgi_sized_take(opts, &own, sizeof own)))
        return TG_E_ARG;
    tg_ctx *ctx = tgi_calloc(TGI_TAG_MISC, 1, sizeof *ctx);
    if (!ctx)
        return TG_E_NOMEM;
    ctx->opts = own;
    *out = ctx;
    return TG_OK;
}

void tg_ctx_close(tg_ctx **ctx)
{
    if (!ctx || !*ctx)
        return;
    tg_ctx_keep_model(*ctx, 0);
    tgi_free(*ctx);
    *ctx = NULL;
}

const char *tg_ctx_detail(const tg_ctx *ctx)
{
    return ctx ? ctx->err.text : "";
}

void tg_text_free(char *text)
{
    tgi_free(text);
}

void tgi_ctx_progress(tg_ctx *ctx, const tg_progress *p)
{
    const double now = tgi_seconds();
    if (!ctx || !ctx->opts.progress)
        return;
    if (ctx->last_phase == p->phase && now - ctx->last_report < 0.1 && p->fraction < 1)
        return;
    ctx->last_phase = p->phase;
    ctx->last_report = now;
    ctx->opts.progress(ctx->opts.user, p);
}

void tgi_ctx_log(tg_ctx *ctx, tg_log_level level, const char *fmt, ...)
{
    char line[768];
    va_list ap;
    if (!ctx || !ctx->opts.log)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20)
            *c = '?';
    ctx->opts.log(ctx->opts.user, level, line);
}

/* ---- Look -------------------------------------------------------------------------------- */

tg_status tg_describe(tg_ctx *ctx, const char *path, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !path || !json)
        return tgi_fail(err, TG_E_ARG, "tg_describe: NULL argument");
    return answer(ctx, TGI_DO_RUN, NULL, NULL, tgi_describe(path, NULL, json, err));
}

tg_status tg_describe_part(tg_ctx *ctx, const char *path, const tg_opts *opts, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !path || !opts || !json)
        return tgi_fail(err, TG_E_ARG, "tg_describe_part: NULL argument");
    return answer(ctx, TGI_DO_RUN, NULL, NULL, tgi_describe(path, opts, json, err));
}

tg_status tg_output_look(tg_ctx *ctx, const char *output, tg_output_status *out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tg_output_status own;
    if (!ctx || !output || !out)
        return tgi_fail(err, TG_E_ARG, "tg_output_look: NULL argument");
    if (!tgi_sized_take(out, &own, sizeof own))
        return tgi_sized_refuse(out, "tg_output_look: status", err);
    TGI_TRY(tgi_output_look(output, &own, err));
    tgi_sized_give(out, &own);
    return TG_OK;
}

/* ---- Job --------------------------------------------------------------------------------- */

tg_status tg_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !o || !out)
        return tgi_fail(err, TG_E_ARG, "tg_job_open: NULL argument");
    return answer(ctx, TGI_DO_RUN, o, NULL, tgi_job_open(ctx, o, out, err));
}

int tg_job_is_one_image(const tg_job *job)
{
    return job && tgi_job_is_one_image(job);
}

void tg_job_close(tg_job **job)
{
    tgi_job_close(job);
}

void tg_job_cancel(tg_job *job)
{
    if (job)
        atomic_store(&job->asked, 1);
}

/* A call on a job that works: it can be cancelled, and a refusal of memory has its figures. */
typedef tg_status work_fn(tg_job *job, void *out, tgi_err *err);

static tg_status work_on(tg_job *job, tgi_verb verb, work_fn *fn, void *out)
{
    if (job->at_work) /* its plan and its memory are in use */
        return tgi_fail(tgi_ctx_err(job->ctx), TG_E_BUSY,
                        "the job is at work: a function that it calls may ask it to stop "
                        "(tg_job_cancel), and nothing else of it");
    job->at_work = 1;
    const tgi_flag *was = tgi_cancel_lend(&job->asked);
    tgi_err own = {0}; /* a function that the call runs may fill the context's */
    tg_status st = tgi_check_cancel(&own);
    if (st == TG_OK)
        st = fn(job, out, &own);
    *tgi_ctx_err(job->ctx) = own;
    st = answer(job->ctx, verb, job->opts, job, st);
    (void)tgi_cancel_lend(was);
    job->at_work = 0;
    if (st == TG_E_CANCELLED) /* else the request came too late, and is the next call's */
        atomic_store(&job->asked, 0);
    return st;
}

static tg_status plan(tg_job *job, void *out, tgi_err *err)
{
    (void)out;
    return tgi_job_plan_output(job, err);
}

tg_status tg_job_plan(tg_job *job, tg_plan_info *out)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    tg_plan_info own;
    if (out && !tgi_sized_take(out, &own, sizeof own))
        return tgi_sized_refuse(out, "tg_job_plan: plan_info", err);
    TGI_TRY(work_on(job, TGI_DO_RUN, plan, NULL));
    if (out) {
        tgi_job_plan_info(job, &own);
        tgi_sized_give(out, &own);
    }
    return TG_OK;
}

tg_status tg_job_plan_json(tg_job *job, int why, char **json)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    if (!json)
        return tgi_fail(err, TG_E_ARG, "tg_job_plan_json: NULL argument");
    TGI_TRY(work_on(job, TGI_DO_RUN, plan, NULL));
    return tgi_job_plan_json(job, why, json, err);
}

tg_status tg_job_rejected_json(const tg_job *job, char **json)
{
    tgi_err e = {0}; /* why the plan was refused is what the context tells */
    return job && json ? tgi_job_rejected_json(job, json, &e) : TG_E_ARG;
}

tg_status tg_job_save_json(tg_job *job, char **json)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    if (!json)
        return tgi_fail(err, TG_E_ARG, "tg_job_save_json: NULL argument");
    TGI_TRY(work_on(job, TGI_DO_RUN, plan, NULL));
    return tgi_job_save_json(job, json, err);
}

tg_status tg_job_settings(tg_job *job, const tg_setting **list, size_t *n)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    if (!list || !n)
        return tgi_fail(err, TG_E_ARG, "tg_job_settings: NULL argument");
    TGI_TRY(work_on(job, TGI_DO_RUN, plan, NULL));
    return tgi_job_settings(job, list, n, err);
}

tg_status tg_job_output(tg_job *job, int i, const char **name, tg_array *out)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    tg_array own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return tgi_sized_refuse(out, "tg_job_output: array", err);
    TGI_TRY(work_on(job, TGI_DO_RUN, plan, NULL));
    if (job->ends->image_out)
        return tgi_fail(err, TG_E_ARG, "tg_job_output: the job makes an image: give it a sink");
    if (i < 0 || i >= job->graph->n_out)
        return tgi_fail(err, TG_E_NOT_FOUND, "the network has %d outputs", job->graph->n_out);
    TGI_TRY(tgi_tensors_shape(job->tensors, err));
    const tgi_desc *d = &job->tensors->out[i].file;
    own.dtype = d->dtype;
    own.rank = d->rank;
    memset(own.stride, 0, sizeof own.stride);
    memset(own.shape, 0, sizeof own.shape);
    memcpy(own.shape, d->dim, (size_t)d->rank * sizeof own.shape[0]);
    tgi_sized_give(out, &own);
    if (name)
        *name = job->graph->out[i].name;
    return TG_OK;
}

static tg_status run(tg_job *job, void *out, tgi_err *err)
{
    return tgi_job_run_all(job, out, err);
}

tg_status tg_job_run(tg_job *job, tg_run_result *out)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    tg_run_result own;
    if (out && !tgi_sized_take(out, &own, sizeof own))
        return tgi_sized_refuse(out, "tg_job_run: result", err);
    TGI_TRY(tgi_job_needs_here(job, "run", err));
    const tg_status st = work_on(job, TGI_DO_RUN, run, out ? &own : NULL);
    if (out && (st == TG_OK || st == TG_E_FORMAT)) /* with regions that count as 0 */
        tgi_sized_give(out, &own);
    return st;
}

static tg_status verify(tg_job *job, void *out, tgi_err *err)
{
    tgi_job_post_leave(job);
    return tgi_job_verify(job, out, err);
}

tg_status tg_job_verify(tg_job *job, tg_verify_result *out)
{
    if (!job)
        return TG_E_ARG;
    tgi_err *err = tgi_ctx_err(job->ctx);
    tg_verify_result own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return tgi_sized_refuse(out, "tg_job_verify: result", err);
    TGI_TRY(tgi_job_needs_here(job, "be verified", err));
    TGI_TRY(work_on(job, TGI_DO_VERIFY, verify, &own));
    tgi_sized_give(out, &own);
    return TG_OK;
}

static tg_status preview(tg_job *job, void *out, tgi_err *err)
{
    (void)out;
    tgi_job_post_leave(job);
    return tgi_job_preview(job, err);
}

tg_status tg_job_preview(tg_job *job)
{
    if (!job)
        return TG_E_ARG;
    TGI_TRY(tgi_job_needs_here(job, "be previewed", tgi_ctx_err(job->ctx)));
    return work_on(job, TGI_DO_PREVIEW, preview, NULL);
}

tg_status tg_preset_auto(tg_ctx *ctx, const tg_opts *o, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tgi_auto *a = NULL;
    if (!ctx || !o || !json)
        return tgi_fail(err, TG_E_ARG, "tg_preset_auto: NULL argument");
    tg_status st = tgi_auto_search(ctx, o, &a, err);
    if (st == TG_OK)
        st = tgi_auto_finish(a, o, json, err);
    else if (a && a->opts)
        (void)answer(ctx, TGI_DO_RUN, a->opts, NULL, st);
    tgi_auto_free(&a);
    return st;
}

tg_status tg_inpaint_auto(tg_ctx *ctx, tg_opts *o, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !o || !json)
        return tgi_fail(err, TG_E_ARG, "tg_inpaint_auto: NULL argument");
    tgi_inpaint_refused no;
    const tg_status st = tgi_inpaint_choose(o, json, &no, err);
    (void)answer(ctx, TGI_DO_RUN, no.job ? no.job->opts : o, no.job, st);
    tg_refusal *r = &ctx->refusal;
    if (st != TG_OK && ctx->refused && no.least.n_options &&
        r->n_remedies < sizeof r->remedy / sizeof r->remedy[0])
        r->remedy[r->n_remedies++] = no.least;
    tgi_job_close(&no.job);
    return st;
}

tg_status tg_calibrate(tg_ctx *ctx, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !json)
        return tgi_fail(err, TG_E_ARG, "tg_calibrate: NULL argument");
    return tgi_calibrate(ctx, json, err);
}

tg_status tg_copy(tg_ctx *ctx, const tg_opts *o)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !o)
        return tgi_fail(err, TG_E_ARG, "tg_copy: NULL argument");
    if (tgi_opts_lent(o, TGI_LENT_SOURCE, 0) || tgi_opts_lent(o, TGI_LENT_SINK, 0))
        return tgi_fail(err, TG_E_ARG,
                        "tg_copy copies files, and the options have a source or a sink: take "
                        "it back with tg_opts_set_source or tg_opts_set_sink and NULL");
    return answer(ctx, TGI_DO_COPY, o, NULL, tgi_copy(ctx, o, NULL, err));
}

tg_status tg_convert_weights(tg_ctx *ctx, const tg_opts *o)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !o)
        return tgi_fail(err, TG_E_ARG, "tg_convert_weights: NULL argument");
    return answer(ctx, TGI_DO_RUN, NULL, NULL, tgi_convert_weights(o, err));
}
