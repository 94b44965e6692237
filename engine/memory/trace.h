/* trace.h - the calls of tegula_trace.h, as the engine uses them. */
#ifndef TGI_TRACE_H
#define TGI_TRACE_H

#include <tegula_trace.h>

tg_status tgi_trace_get(tg_trace *t, tg_trace_data *out);
tg_status tgi_trace_outside(tg_trace *t, tg_trace_data *out);
tg_status tgi_trace_begin(tg_trace *t, tg_pool *pool, const tg_trace_opts *opts);
void tgi_trace_stop(tg_trace *t);
void tgi_trace_start(tg_trace *t);
void tgi_trace_reset(tg_trace *t);
void tgi_trace_end(tg_trace *t);
const char *tgi_trace_to_string(tg_trace *t, const char *subctx, char *buf, size_t cap);
void tgi_trace_report(tg_trace *t, const char *subctx);
void tgi_trace_report_n_reset(tg_trace *t, const char *subctx);
void tgi_trace_silent(tg_trace *t, int on);

#endif
