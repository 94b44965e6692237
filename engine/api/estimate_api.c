/* estimate_api.c - the door of the estimators: which one is asked, and its answer as a text. */
#include "engine/base/mem.h"
#include "engine/base/spec.h"
#include "engine/estimate/estimate.h"

#include <string.h>

static const struct {
    const char *name;
    tg_status (*run)(const tgi_question *q, tgi_jw *w, tgi_err *err);
} estimators[] = {
    {"data", tgi_estimate_data},         {"batch", tgi_estimate_batch},
    {"training", tgi_estimate_training}, {"gpu", tgi_estimate_gpu},
    {"video", tgi_estimate_video},
};
#define N_ESTIMATORS (sizeof estimators / sizeof estimators[0])

static tg_status unknown(const char *what, tgi_err *err)
{
    char text[64];
    tgi_nearest near = tgi_nearest_to(what);
    for (size_t i = 0; i < N_ESTIMATORS; i++)
        tgi_nearest_offer(&near, estimators[i].name, estimators[i].name);
    return tgi_fail(err, TG_E_ARG,
                    "there is nothing to estimate called \"%.40s\"%s: it is data, batch, "
                    "training, gpu or video",
                    what, tgi_nearest_text(&near, text, sizeof text));
}

tg_status tg_estimate_json(tg_ctx *ctx, const char *what, const tg_opts *o,
                           const char *const *files, size_t n_files, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!ctx || !what || !o || (n_files && !files) || !json)
        return tgi_fail(err, TG_E_ARG, "tg_estimate_json: NULL argument");
    tgi_question q = {.ctx = ctx, .o = o, .files = files, .n_files = n_files};
    char machine[256];
    tgi_jw w = {0};
    size_t i = 0;
    *json = NULL;
    while (i < N_ESTIMATORS && strcmp(estimators[i].name, what) != 0)
        i++;
    if (i == N_ESTIMATORS)
        return unknown(what, err);
    if (tgi_opts_given(o, TGI_OPT_DEVICE) && estimators[i].run != tgi_estimate_video)
        return tgi_fail(err, TG_E_ARG, "--device is of estimate video, not of estimate %s",
                        what);
    TGI_TRY(tgi_machine_of(o, &q.machine, err));
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "estimate", what);
    if (!q.machine.here)
        tgi_jw_str(&w, "machine", tgi_machine_text(&q.machine, machine, sizeof machine));
    const tg_status st = estimators[i].run(&q, &w, err);
    tgi_jw_end(&w, '}');
    char *text = NULL;
    const tg_status taken = tgi_jw_take(&w, &text, err);
    if (taken != TG_OK)
        return taken;
    if (st == TG_OK || st == TG_E_BUDGET || st == TG_E_DEVICE)
        *json = text;
    else
        tgi_free(text);
    return st;
}

tg_status tg_estimate_image_bytes(int64_t n, int64_t height, int64_t width, int64_t channels,
                                  tg_dtype dtype, uint64_t *out)
{
    return tgi_estimate_image_bytes(n, height, width, channels, dtype, out);
}

tg_status tg_estimate_text_bytes(int64_t n, int64_t length, tg_dtype dtype, uint64_t *out)
{
    return tgi_estimate_text_bytes(n, length, dtype, out);
}

tg_status tg_estimate_vqa(const tg_vqa_spec *spec, tg_vqa_size *out)
{
    return tgi_estimate_vqa(spec, out);
}

tg_data_strategy tg_estimate_strategy(uint64_t needed, uint64_t available)
{
    return tgi_estimate_strategy(needed, available);
}

const char *tg_data_strategy_name(tg_data_strategy s)
{
    return tgi_data_strategy_name(s);
}

tg_status tg_estimate_batch(const tg_batch_spec *spec, tg_batch_result *out)
{
    return tgi_formula_batch(spec, out);
}

tg_status tg_estimate_training(tg_ctx *ctx, const tg_train_spec *spec, tg_train_size *out)
{
    return tgi_formula_training(ctx, spec, out);
}
