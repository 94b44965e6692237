/* memory_api.c - the public door of tegula_memory.h: check arguments, call down, nothing else.
 */
#include "engine/base/ctx.h"
#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/base/sized.h"
#include "engine/device/current.h"
#include "engine/memory/caches.h"
#include "engine/memory/gpu.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_machine.h"
#include "engine/memory/monitor_nvml.h"
#include "engine/plan/speed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *below(const char *root)
{
    return root ? root : "";
}

/* ---- Sizes ------------------------------------------------------------------------------- */

const char *tg_size_text(uint64_t bytes, char *buf, size_t cap)
{
    return tgi_size_text(bytes, buf, cap);
}

tg_status tg_size_parse(tg_ctx *ctx, const char *text, uint64_t whole_bytes, uint64_t *bytes)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!text || !bytes)
        return tgi_fail(err, TG_E_ARG, "tg_size_parse: NULL argument");
    return tgi_size_parse(text, whole_bytes, bytes, err);
}

tg_status tg_duration_parse(tg_ctx *ctx, const char *text, double *seconds)
{
    tgi_err *err = tgi_ctx_err(ctx);
    if (!text || !seconds)
        return tgi_fail(err, TG_E_ARG, "tg_duration_parse: NULL argument");
    return tgi_duration_parse(text, seconds, err);
}

uint64_t tg_bytes_to_mib(uint64_t bytes)
{
    return bytes >> 20;
}

/* ---- Host -------------------------------------------------------------------------------- */

tg_status tg_memory_system(const char *root, tg_system_memory *out)
{
    tgi_system_memory s;
    tg_system_memory own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    if (!tgi_system_memory_read(below(root), &s) || !s.total)
        return TG_E_UNSUPPORTED;
    const uint64_t used = s.total > s.available ? s.total - s.available : 0;
    own = (tg_system_memory){.size = sizeof own,
                             .total_bytes = s.total,
                             .available_bytes = s.available,
                             .used_bytes = used,
                             .used_percent = 100.0 * (double)used / (double)s.total,
                             .swap_total_bytes = s.swap_total,
                             .swap_free_bytes = s.swap_free};
    tgi_sized_give(out, &own);
    return TG_OK;
}

tg_status tg_memory_process(const char *root, tg_process_memory *out)
{
    tgi_process_memory p;
    tg_process_memory own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    if (!tgi_process_memory_read(below(root), &p))
        return TG_E_UNSUPPORTED;
    own = (tg_process_memory){.size = sizeof own,
                              .anonymous_bytes = p.anon,
                              .file_bytes = p.file,
                              .shared_bytes = p.shmem,
                              .swapped_bytes = p.swap,
                              .page_table_bytes = p.pte,
                              .resident_bytes = p.resident,
                              .peak_resident_bytes = p.high_water,
                              .virtual_bytes = p.virt,
                              .measured_bytes = tgi_measured_of(&p)};
    tgi_sized_give(out, &own);
    return TG_OK;
}

tg_status tg_memory_cgroups(const char *root, tg_cgroup_memory **list, size_t *n)
{
    tgi_cgroup level[TGI_MAX_CGROUPS];
    if (!list || !n)
        return TG_E_ARG;
    const int found = tgi_cgroups_read(below(root), level, TGI_MAX_CGROUPS);
    tg_cgroup_memory *out = NULL;
    if (found && !(out = tgi_calloc(TGI_TAG_MISC, (size_t)found, sizeof *out)))
        return TG_E_NOMEM;
    for (int i = 0; i < found; i++) {
        out[i] = (tg_cgroup_memory){.version = level[i].version,
                                    .limit_bytes = level[i].limit,
                                    .used_bytes = level[i].used,
                                    .reclaimable_bytes = level[i].inactive_file,
                                    .free_bytes = level[i].room};
        snprintf(out[i].path, sizeof out[i].path, "%s", level[i].path);
    }
    *list = out;
    *n = (size_t)found;
    return TG_OK;
}

tg_status tg_memory_free_now(const char *root, tg_free_memory *out)
{
    tgi_free_memory f;
    tgi_process_memory p;
    tg_free_memory own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    tgi_free_memory_read(below(root), &f);
    (void)tgi_process_memory_read(below(root), &p);
    const uint64_t held = tgi_measured_of(&p);
    own = (tg_free_memory){.size = sizeof own,
                           .free_bytes = f.bytes,
                           .available_bytes = f.mem_available,
                           .cgroup_bytes = f.cgroup,
                           .rlimit_bytes = f.rlimit,
                           .margin_bytes = tgi_margin_of(f.bytes, held),
                           .budget_bytes = tgi_budget_of(f.bytes, held)};
    snprintf(own.limited_by, sizeof own.limited_by, "%.223s", f.limited_by);
    tgi_sized_give(out, &own);
    return TG_OK;
}

tg_status tg_disk_look(const char *path, tg_disk *out)
{
    tg_disk own;
    if (!path || !tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    const int there = tgi_disk_look(path, &own);
    tgi_sized_give(out, &own);
    return there ? TG_OK : TG_E_NOT_FOUND;
}

/* What tegula calibrate measured, when it was this processor. */
static void put_speeds(tgi_jw *w, const char *root)
{
    tgi_processors p;
    tgi_speeds s;
    tgi_processors_read(root, &p);
    if (tgi_speeds_load(&s, NULL) != TG_OK || strcmp(s.processor, p.model) != 0)
        return;
    tgi_jw_begin(w, "speeds", '{');
    tgi_speeds_write(w, &s);
    tgi_jw_end(w, '}');
}

tg_status tg_memory_json(tg_ctx *ctx, const char *root, char **json)
{
    tgi_err *err = tgi_ctx_err(ctx);
    tgi_jw w = {0};
    if (!json)
        return tgi_fail(err, TG_E_ARG, "tg_memory_json: NULL argument");
    tgi_jw_begin(&w, NULL, '{');
    tgi_machine_json(&w, below(root));
    put_speeds(&w, below(root));
    tgi_jw_end(&w, '}');
    return tgi_jw_take(&w, json, err);
}

void tg_memory_list_free(void *list)
{
    tgi_free(list);
}

uint64_t tg_mem_clear(void)
{
    return tgi_caches_clear();
}

/* ---- GPUs -------------------------------------------------------------------------------- */

int tg_gpu_count(void)
{
    return tgi_nvml_count();
}

tg_status tg_gpu_memory(int id, tg_gpu *out)
{
    tg_gpu own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    tgi_gpu_memory(id, "", &own);
    tgi_sized_give(out, &own);
    return TG_OK;
}

tg_status tg_gpu_memory_all(const char *root, tg_gpu **list, size_t *n)
{
    if (!list || !n)
        return TG_E_ARG;
    const size_t count = (size_t)tgi_nvml_count();
    tg_gpu *out = NULL;
    if (count && !(out = tgi_calloc(TGI_TAG_MISC, count, sizeof *out)))
        return TG_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        out[i].size = sizeof *out;
        tgi_gpu_memory((int)i, below(root), &out[i]);
    }
    *list = out;
    *n = count;
    return TG_OK;
}

uint64_t tg_gpu_free_bytes(int id, int with_cache)
{
    uint64_t free_bytes, used;
    tgi_gpu_free_used(id, with_cache, &free_bytes, &used);
    return free_bytes;
}

uint64_t tg_gpu_used_bytes(int id, int with_cache)
{
    uint64_t free_bytes, used;
    tgi_gpu_free_used(id, !with_cache, &free_bytes, &used);
    return used;
}

const tg_gpu_handle *tg_gpu_open(int id)
{
    return tgi_nvml_device_at(tgi_gpu_resolve(id));
}

tg_status tg_gpu_read(const tg_gpu_handle *gpu, uint64_t *total_bytes, uint64_t *free_bytes,
                      uint64_t *used_bytes)
{
    uint64_t total = 0, free_now = 0, used = 0;
    const int got = gpu && tgi_nvml_memory(gpu, &total, &free_now, &used, NULL);
    if (total_bytes)
        *total_bytes = total;
    if (free_bytes)
        *free_bytes = free_now;
    if (used_bytes)
        *used_bytes = used;
    return !gpu ? TG_E_ARG : got ? TG_OK : TG_E_DEVICE;
}

int tg_gpu_most_free(uint64_t *free_bytes)
{
    return tgi_gpu_most_free(free_bytes);
}

tg_status tg_gpu_preload(tg_ctx *ctx, int id)
{
    tgi_err ignored = {0};
    (void)tgi_device_be_backend(&ignored); /* without one the next call says so */
    return tgi_gpu_preload(id, tgi_ctx_err(ctx));
}

tg_status tg_gpu_driver_look(tg_gpu_driver *out)
{
    tg_gpu_driver own;
    if (!tgi_sized_take(out, &own, sizeof own))
        return TG_E_ARG;
    tgi_nvml_driver(&own);
    tgi_sized_give(out, &own);
    return TG_OK;
}
