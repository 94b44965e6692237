/* tracker_api.c - the public face of tracker and plot: check arguments, call down. */
#include "engine/base/ctx.h"
#include "engine/base/sized.h"
#include "engine/draw/plot.h"
#include "engine/memory/tracker.h"

#define PEAK_MS_MOST 60000

tg_status tg_tracker_open(tg_ctx *ctx, const tg_tracker_opts *opts, tg_tracker **out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tg_tracker_opts o = {0};
    if (!out || (opts && !tgi_sized_take(opts, &o, sizeof o)))
        return tgi_fail(err, TG_E_ARG, "tg_tracker_open: NULL, or options of another version");
    tgi_tracker_opts t = {.peak_ms = o.peak_ms,
                          .csv = o.csv,
                          .how = TGI_SIDE_REPLACE,
                          .go_on = o.go_on,
                          .look = tgi_look_here(1)};
    if (o.peak_ms < 0 || o.peak_ms > PEAK_MS_MOST)
        return tgi_fail(err, TG_E_ARG, "peak_ms is %d; 0 to %d are possible", o.peak_ms,
                        PEAK_MS_MOST);
    TGI_TRY(tgi_interval_parse(o.every ? o.every : "10u", &t.every, err));
    return tgi_tracker_open(&t, out, err);
}

void tg_tracker_expect(tg_tracker *t, uint64_t predicted_bytes, uint64_t budget_bytes)
{
    tgi_tracker_expect(t, predicted_bytes, budget_bytes);
}

tg_status tg_tracker_update(tg_tracker *t, const char *phase, int64_t tile, tg_tracker_row *row)
{
    tg_tracker_row own;
    if (!t || (row && !tgi_sized_take(row, &own, sizeof own)))
        return TG_E_ARG;
    const int fresh = tgi_tracker_update(t, phase, tile);
    if (row) {
        tgi_tracker_row(t, &own);
        own.fresh = fresh;
        tgi_sized_give(row, &own);
    }
    return TG_OK;
}

tg_status tg_tracker_maxima_now(tg_tracker *t, tg_tracker_maxima *out)
{
    tg_tracker_maxima own;
    if (!t || !tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    tgi_tracker_maxima(t, &own);
    tgi_sized_give(out, &own);
    return TG_OK;
}

tg_status tg_tracker_close(tg_tracker **t, tg_tracker_maxima *out)
{
    tg_tracker_maxima own;
    const int right = tgi_sized_take(out, &own, sizeof own);
    tgi_tracker_close(t, right ? &own : NULL);
    if (right)
        tgi_sized_give(out, &own);
    return right || !out ? TG_OK : TG_E_ARG;
}

tg_status tg_plot(tg_ctx *ctx, const char *csv, const char *out, const tg_plot_opts *opts,
                  tg_plot_result *result)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tg_plot_opts o = {0};
    tg_plot_result r = {0};
    if (!csv || !out || (opts && !tgi_sized_take(opts, &o, sizeof o)) ||
        (result && !tgi_sized_take(result, &r, sizeof r)))
        return tgi_fail(err, TG_E_ARG, "tg_plot: NULL, or a struct of another version");
    const tg_status st = tgi_plot(csv, out, &o, &r, err);
    if (result)
        tgi_sized_give(result, &r);
    return st;
}
