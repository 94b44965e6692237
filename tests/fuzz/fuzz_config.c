/* fuzz_config.c - any JSON as the files that go with a job: a job file, a preset, a model's
 * descriptor, the statistics of another run, a machine file. What a job file sets must read
 * back as the same job file. */
#include "engine/base/mem.h"
#include "engine/job/descriptor.h"
#include "engine/job/job.h"
#include "engine/job/stats_file.h"
#include "engine/settings/opts.h"
#include "engine/settings/preset.h"
#include "tests/fuzz/fuzz_target.h"

/* Every option's value as the engine asks for it. */
static void ask_all(const tg_opts *o)
{
    tgi_ram_spec ram;
    tgi_tile_spec tile;
    tgi_roi_spec roi;
    tgi_planes_spec planes;
    tgi_normalize_spec norm;
    tgi_compress_spec compress;
    tg_dtype type;
    int64_t at[3], count;
    tgi_err err = {0};
    (void)tgi_opts_ram(o, &ram);
    tgi_opts_tile(o, &tile);
    if (tgi_opts_roi(o, &roi)) {
        const int64_t extent[3] = {1, 100, 200};
        tgi_range box[3];
        fuzz_check(tgi_roi_resolve(&roi, extent, box, &err), &err);
    }
    tgi_opts_planes(o, &planes);
    err = (tgi_err){0};
    const tg_status st = tgi_planes_resolve(&planes, 12, &count, &err);
    fuzz_check(st, &err);
    for (int64_t i = 0; st == TG_OK && i < count; i++)
        if (tgi_planes_at(&planes, i) < 0 || tgi_planes_at(&planes, i) >= 12)
            abort();
    (void)tgi_opts_normalize(o, &norm);
    (void)tgi_opts_dtype(o, &type);
    tgi_opts_compress(o, &compress);
    (void)tgi_opts_at(o, at);
    for (int i = 0; i < TGI_OPT_COUNT; i++)
        (void)tgi_opts_str(o, (tgi_opt)i);
}

static tg_status job_file(const char *text, size_t n, char **again)
{
    tgi_err err = {0};
    tg_opts *o = NULL;
    *again = NULL;
    tg_status st = tgi_opts_new(&o, &err);
    if (st == TG_OK)
        st = tgi_opts_from_json(o, text, n, "made.json", &err);
    fuzz_check(st, &err);
    if (st == TG_OK) {
        ask_all(o);
        st = tgi_opts_to_json(o, again, &err);
    }
    tg_opts_free(&o);
    return st;
}

static void job_file_twice(const char *text, size_t n)
{
    char *first = NULL, *second = NULL;
    if (job_file(text, n, &first) == TG_OK)
        if (job_file(first, strlen(first), &second) != TG_OK || strcmp(first, second) != 0)
            abort();
    tgi_free(first);
    tgi_free(second);
}

/* What a preset sets belongs into one, and a set of options that takes it has just that. */
static void preset(const char *path)
{
    tgi_preset p = {0};
    tg_opts *o = NULL;
    tgi_err err = {0};
    const tg_status st = tgi_preset_open(path, &p, &err);
    fuzz_check(st, &err);
    err = (tgi_err){0};
    if (tgi_opts_new(&o, &err) != TG_OK || tgi_opts_set(o, "preset", path, &err) != st)
        abort();
    for (int i = 0; i < TGI_OPT_COUNT; i++) {
        const tgi_opt id = (tgi_opt)i;
        if (id == TGI_OPT_PRESET || !tgi_opts_given(o, id))
            continue;
        if (st != TG_OK || !tgi_opt_in_preset(id) ||
            strcmp(tgi_opts_str(o, id), tgi_opts_str(p.settings, id)) != 0)
            abort();
    }
    if (st == TG_OK)
        ask_all(o);
    tg_opts_free(&o);
    tgi_preset_close(&p);
}

static void descriptor(const char *path)
{
    tgi_descriptor d;
    tgi_err err = {0};
    tg_opts *o = NULL;
    if (tgi_opts_new(&o, &err) != TG_OK || tgi_opts_set(o, "descriptor", path, &err) != TG_OK)
        abort();
    fuzz_check(tgi_descriptor_load("made.onnx", o, &d, &err), &err);
    tg_opts_free(&o);
}

static void statistics(const char *path)
{
    tg_job job = {.set = {.normalize_text = "minmax"}, .map = {.n_stats = 3}};
    tgi_stats sets[3] = {0};
    tgi_err err = {0};
    int found;
    if (tgi_opts_new(&job.opts, &err) != TG_OK ||
        tgi_opts_set(job.opts, "stats", path, &err) != TG_OK)
        abort();
    const tg_status st = tgi_job_stats_read(&job, sets, &found, &err);
    fuzz_check(st, &err);
    for (int i = 0; st == TG_OK && i < 3; i++)
        if (sets[i].count < 0 || sets[i].nans < 0)
            abort();
    tgi_free(job.given);
    tg_opts_free(&job.opts);
}

static void machine(const char *text, size_t n)
{
    tgi_machine m;
    tgi_err err = {0};
    int in_memory;
    uint64_t room;
    char line[256];
    const tg_status st = tgi_machine_parse(text, n, "made.json", &m, &err);
    fuzz_check(st, &err);
    if (st != TG_OK)
        return;
    if (m.processors < 1 || !m.sets || !(m.sets >> m.isa & 1) || m.n_disks < 0 ||
        m.n_disks > TGI_MACHINE_DISKS || m.n_gpus < 0 || m.n_gpus > TGI_MACHINE_GPUS)
        abort();
    (void)tgi_machine_disk_free(&m, "/tmp/out.tif");
    (void)tgi_machine_temp(&m, &in_memory, &room);
    (void)tgi_machine_text(&m, line, sizeof line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[64];
    fuzz_file(data, n, path);
    job_file_twice((const char *)data, n);
    machine((const char *)data, n);
    preset(path);
    descriptor(path);
    statistics(path);
    fuzz_check_leaks();
    return 0;
}
