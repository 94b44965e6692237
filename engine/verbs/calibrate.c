/* calibrate.c - measure this machine once and keep what was measured. */
#include "engine/verbs/calibrate.h"

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/job/job.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_machine.h"
#include "io/text_file.h"

#include <stdio.h>
#include <string.h>

static tg_status keep(const char *path, const tgi_speeds *s, char **json, tgi_err *err)
{
    tgi_jw w = {0};
    tgi_jw_begin(&w, NULL, '{');
    tgi_speeds_write(&w, s);
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, json, err));
    const tg_status st = tgi_write_text(path, *json, 1, err);
    if (st != TG_OK) {
        tgi_free(*json);
        *json = NULL;
    }
    return st;
}

void tgi_calibrate_progress(tg_ctx *ctx, double began, double fraction)
{
    const tg_progress p = {.phase = "calibrate",
                           .fraction = fraction < 1 ? fraction : 1,
                           .seconds = tgi_seconds() - began,
                           .eta_seconds = -1,
                           .memory_bytes = tgi_mem_measured()};
    tgi_ctx_progress(ctx, &p);
}

tg_status tgi_calibrate(tg_ctx *ctx, char **json, tgi_err *err)
{
    char path[1024], folder[1024];
    tgi_processors here;
    const double began = tgi_seconds();
    tgi_processors_read("", &here);
    tgi_speeds s = {.processors = here.usable};
    TGI_TRY(tgi_speeds_path(path, sizeof path, err));
    TGI_TRY(tgi_make_folders(path, err));
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    snprintf(s.processor, sizeof s.processor, "%s", here.model);
    tgi_calibrate_progress(ctx, began, 0);
    TGI_TRY(tgi_calibrate_kernels(&s, err));
    tgi_calibrate_progress(ctx, began, TGI_KERNELS_SHARE);
    TGI_TRY(tgi_calibrate_pipeline(ctx, began, folder, &s, err));
    return keep(path, &s, json, err);
}
