/* go_on.c - compares an interrupted output's fingerprint with this job's, and goes on, refuses
 * or begins anew. */
#include "engine/job/go_on.h"
#include "engine/base/cancel.h"
#include "engine/ends/input_hash.h"
#include "engine/job/device_kinds.h"
#include "engine/job/job_device.h"
#include "engine/out/fingerprint_text.h"

#include <stdio.h>
#include <string.h>

/* Go on with the interrupted run's instruction set: another one gives other last bits. What
 * the user asked for by name is not overruled. */
static tg_status adopt_isa(tgi_settings *s, const char *isa, tgi_err *err)
{
    tgi_isa want;
    const tgi_kernel_set *be = NULL;
    if (strcmp(isa, s->backend->name) == 0)
        return TG_OK;
    if (s->isa_given)
        return tgi_fail(err, TG_E_CHANGED,
                        "the interrupted output was computed with %s, --isa asks for %s: go on "
                        "with --isa %s, or give -y to discard it and start over",
                        isa, s->backend->name, isa);
    if (tgi_isa_parse(isa, &want) && tgi_isa_detect(want) == want)
        be = tgi_backend_for(want);
    if (!be)
        return tgi_fail(err, TG_E_CHANGED,
                        "the interrupted output was computed with %s, which this machine "
                        "lacks: finish it on such a machine, or give -y to discard it and "
                        "start over",
                        isa);
    s->backend = be;
    return TG_OK;
}

/* Where --device says which of the two computes, the answer has the word that goes on. */
static tg_status began_elsewhere(const tg_job *job, const char *was, const char *now,
                                 tgi_err *err)
{
    const int on_device = strchr(was, ' ') != NULL;
    const char *other = !on_device ? "cpu" : !job->dev.ops ? "cuda" : NULL;
    char with[48] = "finish it with what began it";
    if (other)
        snprintf(with, sizeof with, "finish it with --device %s", other);
    const tg_status st =
        tgi_fail(err, TG_E_CHANGED,
                 "the interrupted output was computed with %s, this run would use %s: "
                 "%s, or give -y to discard it and start over",
                 was, now, with);
    return other ? tgi_err_try(err, st, "device", other) : st;
}

tg_status tgi_adopt_device(tg_job *job, const char *was, tgi_err *err)
{
    char now[64];
    const int on_device = strchr(was, ' ') != NULL; /* "cuda fp16 9.0" */
    TGI_TRY(tgi_job_device_choose(job, err));
    tgi_job_device_adopt(job, was);
    if (strcmp(was, tgi_job_computed_by(job, now, sizeof now)) == 0)
        return TG_OK;
    if (on_device || job->dev.by_name)
        return began_elsewhere(job, was, now, err);
    if (job->dev.ops)
        TGI_TRY(tgi_job_device_leave(job, NULL, err));
    return adopt_isa(&job->set, was, err);
}

void tgi_leave_out(const char *input, const char *output, const char **out)
{
    *out = input && output && tgi_source_is_set(input) && tgi_journal_left_finished(output)
               ? output
               : NULL;
}

tg_status tgi_left_out(const tgi_journal *j, const char *output, tg_status st, tgi_err *err)
{
    if (st != TG_E_CHANGED && (st != TG_OK || tgi_journal_state(j) == TGI_JOURNAL_FINISHED))
        return st;
    *err = (tgi_err){0}; /* what -y would do is not for this one */
    return tgi_fail(err, TG_E_ARG,
                    "%s: the output is the input itself, which is never replaced: choose "
                    "another name",
                    output);
}

static tg_status check_tick(void *user, double fraction, tgi_err *err)
{
    const tg_progress p = {.phase = "check", .fraction = fraction, .eta_seconds = -1};
    tgi_ctx_progress(user, &p);
    return tgi_cancel_signal()
               ? tgi_fail(err, TG_E_CANCELLED, "stopped by %s; the same command goes on",
                          tgi_cancel_by())
               : TG_OK;
}

static tg_status compare_all(tg_ctx *ctx, const tgi_source *s, const char *sum, tgi_err *err)
{
    tgi_input_hash *h = NULL;
    tgi_input_digest d = {.trouble = ""};
    tgi_ctx_log(
        ctx, TG_LOG_INFO,
        "the input was copied, renamed, given other rights or written to since: it is read "
        "and compared with what the interrupted run read");
    TGI_TRY(tgi_input_hash_open(tgi_source_held, s, NULL, TGI_INPUT_HASH_LITTLE, &h, err));
    const tg_status st = tgi_input_hash_finish(h, check_tick, ctx, &d, err);
    tgi_input_hash_close(&h);
    TGI_TRY(st);
    if (!d.sha256[0])
        return tgi_fail(
            err, TG_E_IO,
            "the input cannot be compared with what it was: %s; the same command goes on",
            d.trouble);
    return strcmp(d.sha256, sum) == 0
               ? TG_OK
               : tgi_fail(
                     err, TG_E_CHANGED,
                     "the interrupted output was made with another input (of the same size, "
                     "time and ends): restore it, or give -y to discard that output and start "
                     "over");
}

tg_status tgi_same_input(tg_ctx *ctx, const tgi_journal *j, const tgi_source *s,
                         const char *ours, char sum[TGI_SHA256_TEXT], int *unsure, tgi_err *err)
{
    char was[96] = "", now[96] = "";
    size_t n;
    *unsure = 0;
    const char *stored = tgi_journal_job(j, &n);
    tgi_journal_input_sum(j, sum);
    (void)tgi_fingerprint_get(stored, n, TGI_INPUT_CHANGED, was, sizeof was);
    (void)tgi_fingerprint_get(ours, strlen(ours), TGI_INPUT_CHANGED, now, sizeof now);
    if (strcmp(was, now) == 0 || tgi_journal_state(j) == TGI_JOURNAL_FINISHED ||
        tgi_journal_is_sealed(j)) /* nothing is made of it any more */
        return TG_OK;
    *unsure = !sum[0];
    return *unsure ? TG_OK : compare_all(ctx, s, sum, err);
}

tg_status tgi_may_go_on(const tgi_journal *j, const tgi_bad_tiles *bad, const char *output,
                        tgi_err *err)
{
    if (bad || (!tgi_journal_bad(j)->regions && !tgi_bad_tiles_left(output)))
        return TG_OK;
    return tgi_fail(err, TG_E_CHANGED,
                    "the interrupted output of %s has regions filled by --on-bad-tile fill: "
                    "give it again to continue, or -y to discard that output and start over",
                    output);
}

tg_status tgi_go_on(tgi_journal *j, const tgi_sink_layout *layout, tgi_bad_tiles *bad,
                    const tgi_bad_state *known, tgi_err *err)
{
    if (bad)
        TGI_TRY(tgi_bad_tiles_begin(bad, known, err));
    return tgi_journal_resume(j, layout, err);
}

tg_status tgi_settle(tgi_journal *j, tgi_bad_tiles *bad, const char *input,
                     const tgi_source *of, const char *output, int *settled, tgi_err *err)
{
    const tgi_bad_state was = *tgi_journal_bad(j);
    *settled = 0;
    if (was.regions && !tgi_bad_tiles_settled(bad)) { /* tgi_may_go_on: there is `bad` */
        TGI_TRY(tgi_bad_tiles_begin(bad, &was, err));
        TGI_TRY(tgi_bad_tiles_write(bad, input, of, err));
    }
    tgi_journal_watch_bad(j, bad);
    TGI_TRY(tgi_journal_clear_finished(j, err));
    *settled = 1;
    return tgi_bad_tiles_verdict(was.regions, input, of, output, err);
}
