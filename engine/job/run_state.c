/* run_state.c - see run_state.h. */
#include "engine/job/run_state.h"

#include "engine/base/clock.h"
#include "engine/job/job_state.h"

#include <stdlib.h>
#include <string.h>

#define EVERY_SECONDS 10.0

/* In front of the arrays. */
typedef struct head {
    tgi_stage_record none; /* so that it is taken for no record of a run in stages */
    int64_t item, items;
    uint64_t bytes;
} head;

static int list_parts(const tgi_pass *p, head *h, tgi_stage_part *part)
{
    int n = 0;
    part[n++] = (tgi_stage_part){h, sizeof *h};
    for (int k = 0; k < p->carried.n; k++)
        if (p->carried.value[k].next) /* files are read again */
            part[n++] = (tgi_stage_part){p->carried.value[k].now, p->carried.value[k].bytes};
    return n;
}

static size_t record_bytes(const tgi_pass *p)
{
    size_t n = sizeof(head);
    for (int k = 0; k < p->carried.n; k++)
        n += p->carried.value[k].next ? p->carried.value[k].bytes : 0;
    return n;
}

tg_status tgi_run_state_begin(tgi_run_state *s, tgi_pass *p, int64_t missing, int64_t *first,
                              tgi_err *err)
{
    head h = {.item = 0};
    tgi_stage_part part[TGI_MAX_PORTS + 1];
    const tgi_stage_owner owner = {.job = s->job};
    int found = 0;
    *first = s->went_on = 0;
    TGI_TRY(tgi_job_state_begin(p, err));
    const size_t bytes = record_bytes(p);
    const int n = list_parts(p, &h, part);
    if (!s->log)
        TGI_TRY(tgi_stage_log_open(s->output, &owner, bytes, &s->log, err));
    TGI_TRY(tgi_stage_log_read(s->log, part, n, &found, err));
    s->last = tgi_seconds();
    if (found && h.bytes == bytes && h.items == p->job->map.n_items && h.item > 0 &&
        h.item <= missing) {
        *first = s->went_on = h.item;
        return TG_OK;
    }
    return found ? tgi_job_state_begin(p, err) : TG_OK; /* it filled the arrays */
}

static int is_due(const tgi_run_state *s, int64_t item)
{
    if (item <= s->went_on || item % s->segment)
        return 0;
    return getenv("TEGULA_SYNC_TILES") || tgi_seconds() - s->last >= EVERY_SECONDS;
}

tg_status tgi_run_state_item(tgi_run_state *s, tgi_pass *p, tgi_commit *commit, int64_t item,
                             tgi_err *err)
{
    tgi_stage_part part[TGI_MAX_PORTS + 1];
    if (!is_due(s, item))
        return TG_OK;
    if (p->device.exec) {
        TGI_TRY(tgi_run_device_drain(&p->device, err));
        TGI_TRY(tgi_device_state_home(&p->device.state, err));
    }
    head h = {.item = item, .items = p->job->map.n_items, .bytes = record_bytes(p)};
    const int n = list_parts(p, &h, part);
    TGI_TRY(tgi_commit_flush(commit, err));
    TGI_TRY(tgi_stage_log_write(s->log, part, n, err));
    s->last = tgi_seconds();
    return TG_OK;
}

void tgi_run_state_close(tgi_run_state *s)
{
    tgi_stage_log_close(&s->log);
}
