/* preset_use.c - a preset into a set of options (preset.h). */
#include "engine/base/ctx.h"
#include "engine/base/size.h"
#include "engine/settings/opts_internal.h"
#include "engine/settings/preset.h"

#include <stdio.h>
#include <string.h>

tg_status tgi_preset_open(const char *name, tgi_preset *out, tgi_err *err)
{
    out->settings = NULL;
    TGI_TRY(tgi_preset_find(name, &out->info, err));
    return tgi_preset_read(out, err);
}

/* What is said when a preset is taken: nothing is dropped in silence. */
static void tell(const tg_opts *o, const tgi_preset *p, const char *name)
{
    char device[96], size[32];
    const tg_preset_info *i = &p->info;
    if (o->ctx && p->chosen[0])
        tgi_ctx_log(o->ctx, TG_LOG_WARN, "preset %s: %s of memory: %s", name,
                    tgi_size_text(p->memory, size, sizeof size), p->chosen);
    if (o->ctx && i->device.memory_bytes)
        tgi_ctx_log(
            o->ctx, TG_LOG_WARN,
            "preset %s: its device part (%s) is not used: a plan on a GPU chooses its own",
            name, tgi_preset_device_text(&i->device, device, sizeof device));
}

/* Set what the preset says where nothing of a higher rank is; `lost`: against job files. */
static tg_status take(tg_opts *o, const tg_opts *settings, const char *origin, tgi_opt *lost,
                      int *n_lost, tgi_err *err)
{
    for (int i = 0; i < TGI_OPT_COUNT; i++) {
        const char *name = tgi_option_table(NULL)[i].name, *value = settings->value[i];
        if (value && o->from[i] < TGI_FROM_PRESET)
            TGI_TRY(tgi_opts_set_from(o, name, value, TGI_FROM_PRESET, origin, err));
        else if (value && o->from[i] == TGI_FROM_JOB && strcmp(value, o->value[i]) != 0)
            lost[(*n_lost)++] = (tgi_opt)i;
    }
    return TG_OK;
}

tg_status tgi_preset_apply(tg_opts *o, const char *name, int by_name, tgi_err *err)
{
    tgi_preset p = {0};
    tgi_opt lost[TGI_OPT_COUNT];
    int n_lost = 0;
    char origin[1100];
    p.of = o;
    if (strcmp(name, "auto") == 0) { /* chosen when the job is known (inpaint_choice.h) */
        tgi_opts_drop(o, TGI_FROM_PRESET);
        return TG_OK;
    }
    tg_status st = tgi_preset_open(name, &p, err);
    if (st == TG_OK) {
        snprintf(origin, sizeof origin, "preset %s", name);
        tgi_opts_drop(o, TGI_FROM_PRESET);
        st = take(o, p.settings, origin, lost, &n_lost, err);
    }
    if (st == TG_OK)
        tell(o, &p, name);
    if (st == TG_OK && by_name && n_lost)
        tgi_opts_tell_lost(o, o->file[lost[0]], name, lost, n_lost);
    tgi_preset_close(&p);
    return st;
}
