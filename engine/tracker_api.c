/* tracker_api.c - the public face of tracker and plot: check arguments, call down. */
#include "engine/ctx.h"
#include "engine/memory/plot.h"
#include "engine/memory/tracker.h"

#define PEAK_MS_MOST 60000

tg_status tg_tracker_open(tg_ctx *ctx, const tg_tracker_opts *opts, tg_tracker **out)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!out || (opts && opts->size != sizeof *opts))
        return tgi_fail(err, TG_E_ARG, "tg_tracker_open: NULL, or options of another version");
    const tg_tracker_opts o = opts ? *opts : (tg_tracker_opts){0};
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
    if (!t || (row && row->size != sizeof *row))
        return TG_E_ARG;
    const int fresh = tgi_tracker_update(t, phase, tile);
    if (row) {
        tgi_tracker_row(t, row);
        row->fresh = fresh;
    }
    return TG_OK;
}

tg_status tg_tracker_maxima_now(tg_tracker *t, tg_tracker_maxima *out)
{
    if (!t || !out || out->size != sizeof *out)
        return TG_E_ARG;
    tgi_tracker_maxima(t, out);
    return TG_OK;
}

tg_status tg_tracker_close(tg_tracker **t, tg_tracker_maxima *out)
{
    const int right = !out || out->size == sizeof *out;
    tgi_tracker_close(t, right ? out : NULL);
    return right ? TG_OK : TG_E_ARG;
}

tg_status tg_plot(tg_ctx *ctx, const char *csv, const char *out, const tg_plot_opts *opts,
                  tg_plot_result *result)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!csv || !out || (opts && opts->size != sizeof *opts) ||
        (result && result->size != sizeof *result))
        return tgi_fail(err, TG_E_ARG, "tg_plot: NULL, or a struct of another version");
    return tgi_plot(csv, out, opts, result, err);
}
