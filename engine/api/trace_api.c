/* trace_api.c - tegula_trace.h. */
#include "engine/memory/trace.h"

tg_status tg_trace_get(tg_trace *t, tg_trace_data *out)
{
    return tgi_trace_get(t, out);
}

tg_status tg_trace_outside(tg_trace *t, tg_trace_data *out)
{
    return tgi_trace_outside(t, out);
}

tg_status tg_trace_begin(tg_trace *t, tg_pool *pool, const tg_trace_opts *opts)
{
    return tgi_trace_begin(t, pool, opts);
}

void tg_trace_stop(tg_trace *t)
{
    tgi_trace_stop(t);
}

void tg_trace_start(tg_trace *t)
{
    tgi_trace_start(t);
}

void tg_trace_reset(tg_trace *t)
{
    tgi_trace_reset(t);
}

void tg_trace_end(tg_trace *t)
{
    tgi_trace_end(t);
}

const char *tg_trace_to_string(tg_trace *t, const char *subctx, char *buf, size_t cap)
{
    return tgi_trace_to_string(t, subctx, buf, cap);
}

void tg_trace_report(tg_trace *t, const char *subctx)
{
    tgi_trace_report(t, subctx);
}

void tg_trace_report_n_reset(tg_trace *t, const char *subctx)
{
    tgi_trace_report_n_reset(t, subctx);
}

void tg_trace_silent(tg_trace *t, int on)
{
    tgi_trace_silent(t, on);
}
