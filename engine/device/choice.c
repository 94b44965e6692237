/* choice.c - see choice.h.
 *
 * Free memory without a context is the driver's other library's to tell (monitor_nvml.h). It
 * numbers devices in an order of its own, so they are matched by UUID. */
#include "engine/device/choice.h"

#include "engine/base/spec.h"
#include "engine/memory/gpu.h"
#include "engine/memory/monitor_nvml.h"

#include <stdio.h>
#include <string.h>

static const char *const words[] = {"auto", "cpu", "cuda"};
#define N_WORDS (sizeof words / sizeof words[0])

tg_status tgi_device_parse(const char *text, tgi_device_spec *out, tgi_err *err)
{
    char near_text[96];
    tgi_nearest near = tgi_nearest_to(text);
    if (strncmp(text, "cuda:", 5) == 0) {
        int64_t id = 0;
        TGI_TRY(tgi_int_parse(text + 5, 0, TGI_MAX_DEVICES - 1, "device", &id, err));
        *out = (tgi_device_spec){TGI_DEVICE_OF_PLUGIN, "cuda", (int)id};
        return TG_OK;
    }
    for (size_t i = 0; i < N_WORDS; i++) {
        tgi_nearest_offer(&near, words[i], words[i]);
        if (strcmp(text, words[i]) == 0) {
            *out = (tgi_device_spec){(tgi_device_kind)i, i == TGI_DEVICE_CPU ? NULL : "cuda",
                                     TGI_DEVICE_ANY};
            return TG_OK;
        }
    }
    return tgi_fail(err, TG_E_ARG,
                    "device \"%.40s\": auto, cpu, cuda, or cuda:N for one of several%s", text,
                    tgi_nearest_text(&near, near_text, sizeof near_text));
}

/* ---- The one with most free memory ------------------------------------------------------- */

/* 0 when nobody knows. */
static uint64_t free_of(const tgi_device_info *info)
{
    uint64_t bytes = 0, used;
    const int id = tgi_gpu_of_uuid(info->uuid);
    if (id != TG_GPU_NONE)
        tgi_gpu_free_used(id, 0, &bytes, &used);
    return bytes;
}

static int most_free(const tgi_devices *all)
{
    int best = 0;
    uint64_t most = 0;
    for (int i = 0; all->n > 1 && i < all->n; i++) {
        const uint64_t bytes = free_of(&all->info[i]);
        if (bytes > most) {
            best = i;
            most = bytes;
        }
    }
    return best;
}

/* ---- The choice -------------------------------------------------------------------------- */

tg_status tgi_device_choose(const tgi_device_spec *want, tgi_device_choice *out, tgi_err *err)
{
    tgi_devices all;
    memset(out, 0, sizeof *out);
    if (want->kind == TGI_DEVICE_CPU)
        return TG_OK;
    tgi_devices_look(want->plugin, &all);
    const int id = want->id == TGI_DEVICE_ANY ? most_free(&all) : want->id;
    if (id < all.n) {
        out->ops = all.ops;
        out->info = all.info[id];
        return TG_OK;
    }
    if (want->kind == TGI_DEVICE_OF_PLUGIN && all.n)
        return tgi_fail(err, TG_E_DEVICE, "there is no device %s:%d: there are 0 to %d",
                        want->plugin, id, all.n - 1);
    if (want->kind == TGI_DEVICE_OF_PLUGIN)
        return tgi_fail(err, TG_E_DEVICE, "no %s device: %s", want->plugin, all.why);
    /* Who has neither plugin nor GPU expects none. */
    if (all.path[0] || tgi_nvml_count() > 0)
        snprintf(out->notice, sizeof out->notice, "no %s device: %s", want->plugin, all.why);
    return TG_OK;
}
