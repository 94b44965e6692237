/* look.c - fills a sample from the monitor, the pools and the GPUs. */
#include "engine/memory/look.h"

#include "engine/base/pool.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_nvml.h"

static int ask_gpu(int i, uint64_t *used_bytes, uint64_t *free_bytes)
{
    uint64_t total;
    const tgi_nvml_device *d = tgi_nvml_device_at(i);
    return d && tgi_nvml_memory(d, &total, free_bytes, used_bytes, NULL);
}

tgi_look tgi_look_here(int gpus)
{
    const int n = gpus ? tgi_nvml_count() : 0;
    return (tgi_look){
        .root = "", .n_gpus = n < TG_TRACKER_GPUS ? n : TG_TRACKER_GPUS, .gpu = ask_gpu};
}

void tgi_pool_now(uint64_t *allocated_bytes, uint64_t *reserved_bytes)
{
    uint64_t allocated, reserved;
    tgi_pools_sum(TG_MEMORY_HOST, 0, allocated_bytes, reserved_bytes);
    tgi_pools_sum(TG_MEMORY_PINNED, 0, &allocated, &reserved);
    *allocated_bytes += allocated;
    *reserved_bytes += reserved;
}

int tgi_look_process(const tgi_look *l, tg_tracker_row *row)
{
    tgi_process_memory p;
    if (!tgi_process_memory_read(l->root, &p))
        return 0;
    row->measured_bytes = tgi_measured_of(&p);
    row->anonymous_bytes = p.anon;
    row->file_bytes = p.file;
    row->shared_bytes = p.shmem;
    row->swapped_bytes = p.swap;
    row->page_table_bytes = p.pte;
    row->high_water_bytes = p.high_water;
    return 1;
}

void tgi_look_around(const tgi_look *l, tg_tracker_row *row)
{
    tgi_free_memory f;
    tgi_free_memory_read(l->root, &f);
    row->available_bytes = f.bytes;
    tgi_pool_now(&row->pool_allocated_bytes, &row->pool_reserved_bytes);
    row->n_gpus = l->n_gpus;
    for (int i = 0; i < l->n_gpus; i++)
        if (!l->gpu(i, &row->gpu_used_bytes[i], &row->gpu_free_bytes[i]))
            row->gpu_used_bytes[i] = row->gpu_free_bytes[i] = 0;
}

uint64_t tgi_resident_of(const tg_tracker_row *row)
{
    return row->anonymous_bytes + row->file_bytes + row->shared_bytes;
}
