/* monitor_machine.c - see monitor_machine.h; proc(5), sysfs: Documentation/ABI/testing/
 * sysfs-devices-system-cpu of the kernel. */
#include "engine/memory/monitor_machine.h"

#include "engine/memory/gpu.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_nvml.h"
#include "kernels/backend.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- Small files ------------------------------------------------------------------------- */

const char *tgi_system_word(const char *root, const char *path, char *buf, size_t cap)
{
    char full[1024];
    buf[0] = 0;
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full)
        return buf;
    const int fd = open(full, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = 0;
    buf[strcspn(buf, "\n")] = 0;
    for (char *c = buf; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return buf;
}

/* ---- Turns on processors ----------------------------------------------------------------- */

/* @source Linux, Documentation/scheduler/sched-stats.rst: /proc/<pid>/schedstat, nanoseconds on a
 * processor and on a run queue. */
static void add_turns(const char *folder, const char *thread, tgi_turns *sum)
{
    char name[64], text[128], *rest;
    if (snprintf(name, sizeof name, "/%.32s/schedstat", thread) >= (int)sizeof name)
        return;
    tgi_system_word(folder, name, text, sizeof text);
    sum->ran += 1e-9 * (double)strtoull(text, &rest, 10);
    sum->waited += 1e-9 * (double)strtoull(rest, NULL, 10);
}

void tgi_turns_read(const char *root, tgi_turns *out)
{
    char folder[256];
    const struct dirent *e;
    *out = (tgi_turns){0};
    if (snprintf(folder, sizeof folder, "%s/proc/self/task", root) >= (int)sizeof folder)
        return;
    DIR *d = opendir(folder);
    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] != '.')
            add_turns(folder, e->d_name, out);
    if (d)
        closedir(d);
}

/* ---- Processors -------------------------------------------------------------------------- */

/* Value of the first "key : value" line; /proc/cpuinfo may be long, its first page will do. */
static void cpu_model(const char *root, char *out, size_t cap)
{
    char full[1024], text[4096];
    out[0] = 0;
    if (snprintf(full, sizeof full, "%s/proc/cpuinfo", root) >= (int)sizeof full)
        return;
    const int fd = open(full, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *p = strstr(text, "model name");
    p = p ? strchr(p, ':') : NULL;
    if (!p)
        return;
    p += 1 + strspn(p + 1, " \t");
    snprintf(out, cap, "%.*s", (int)strcspn(p, "\n"), p);
}

/* Members of a list of ranges such as "0-3,8,10-11"; 0 for what is no list. */
static int count_list(const char *p)
{
    int64_t n = 0;
    while (*p >= '0' && *p <= '9') {
        char *end;
        const int64_t a = strtoll(p, &end, 10);
        int64_t b = a;
        if (*end == '-')
            b = strtoll(end + 1, &end, 10);
        if (b < a || b - a > 1 << 20)
            return 0;
        n += b - a + 1;
        p = *end == ',' ? end + 1 : end;
    }
    return *p || n > 1 << 20 ? 0 : (int)n;
}

static int read_cache(const char *root, int index, tgi_cpu_cache *c)
{
    char path[128], text[128], *unit;
    static const char folder[] = "/sys/devices/system/cpu/cpu0/cache/index";
    snprintf(path, sizeof path, "%s%d/level", folder, index);
    c->level = (int)strtol(tgi_system_word(root, path, text, sizeof text), NULL, 10);
    if (c->level < 1)
        return 0;
    snprintf(path, sizeof path, "%s%d/type", folder, index);
    tgi_system_word(root, path, c->type, sizeof c->type);
    snprintf(path, sizeof path, "%s%d/size", folder, index);
    c->bytes = strtoull(tgi_system_word(root, path, text, sizeof text), &unit, 10);
    c->bytes *= *unit == 'K' ? 1024 : *unit == 'M' ? 1 << 20 : 1;
    snprintf(path, sizeof path, "%s%d/shared_cpu_list", folder, index);
    c->shared_by = count_list(tgi_system_word(root, path, text, sizeof text));
    return 1;
}

int tgi_usable_processors(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) > 0)
        return CPU_COUNT(&mine);
    const long n = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t has room for */
    return n > 0 ? (int)n : 1;
}

void tgi_processors_read(const char *root, tgi_processors *out)
{
    char text[256];
    memset(out, 0, sizeof *out);
    cpu_model(root, out->model, sizeof out->model);
    out->online =
        count_list(tgi_system_word(root, "/sys/devices/system/cpu/online", text, sizeof text));
    if (!out->online)
        out->online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    out->usable = tgi_usable_processors();
    while (out->n_caches < TGI_MAX_CPU_CACHES &&
           read_cache(root, out->n_caches, &out->cache[out->n_caches]))
        out->n_caches++;
}

/* ---- Filesystems ------------------------------------------------------------------------- */

/* @source statfs(2), f_type: tmpfs, ramfs, hugetlbfs. */
static int is_memory(uint32_t type)
{
    return type == 0x01021994 || type == 0x858458f6 || type == 0x958458f6;
}

int tgi_disk_look(const char *path, tg_disk *out)
{
    struct statfs fs;
    struct statvfs room;
    if (statfs(path, &fs) != 0 || statvfs(path, &room) != 0)
        return 0;
    *out = (tg_disk){.size = out->size,
                     .total_bytes = (uint64_t)room.f_blocks * room.f_frsize,
                     .free_bytes = (uint64_t)room.f_bavail * room.f_frsize,
                     .in_memory = is_memory((uint32_t)fs.f_type)};
    return 1;
}

const char *tgi_temp_folder(void)
{
    const char *t = getenv("TMPDIR");
    return t && *t ? t : "/tmp";
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void put_limit(tgi_jw *w, const char *key, uint64_t v)
{
    if (v == TGI_UNLIMITED)
        tgi_jw_num(w, key, NAN); /* null */
    else
        tgi_jw_uint(w, key, v);
}

static void put_memory(tgi_jw *w, const char *root)
{
    tgi_system_memory s;
    tgi_free_memory f;
    tgi_process_memory p;
    (void)tgi_system_memory_read(root, &s);
    (void)tgi_process_memory_read(root, &p);
    tgi_free_memory_read(root, &f);
    const uint64_t own = tgi_measured_of(&p);
    tgi_jw_begin(w, "memory", '{');
    tgi_jw_uint(w, "total_bytes", s.total);
    tgi_jw_uint(w, "available_bytes", s.available);
    tgi_jw_uint(w, "used_bytes", s.total > s.available ? s.total - s.available : 0);
    tgi_jw_uint(w, "swap_total_bytes", s.swap_total);
    tgi_jw_uint(w, "swap_free_bytes", s.swap_free);
    put_limit(w, "free_bytes", f.bytes);
    tgi_jw_str(w, "limited_by", f.limited_by);
    put_limit(w, "rlimit_bytes", f.rlimit);
    tgi_jw_uint(w, "margin_bytes", tgi_margin_of(f.bytes, own));
    tgi_jw_uint(w, "budget_bytes", tgi_budget_of(f.bytes, own));
    tgi_jw_end(w, '}');
    tgi_jw_begin(w, "process", '{');
    tgi_jw_uint(w, "anonymous_bytes", p.anon);
    tgi_jw_uint(w, "file_bytes", p.file);
    tgi_jw_uint(w, "shared_bytes", p.shmem);
    tgi_jw_uint(w, "swapped_bytes", p.swap);
    tgi_jw_uint(w, "page_table_bytes", p.pte);
    tgi_jw_uint(w, "virtual_bytes", p.virt);
    tgi_jw_uint(w, "measured_bytes", own);
    tgi_jw_end(w, '}');
}

static void put_cgroups(tgi_jw *w, const char *root)
{
    tgi_cgroup level[TGI_MAX_CGROUPS];
    const int n = tgi_cgroups_read(root, level, TGI_MAX_CGROUPS);
    tgi_jw_begin(w, "cgroups", '[');
    for (int i = 0; i < n; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_int(w, "version", level[i].version);
        tgi_jw_str(w, "path", level[i].path);
        put_limit(w, "limit_bytes", level[i].limit);
        tgi_jw_uint(w, "used_bytes", level[i].used);
        tgi_jw_uint(w, "reclaimable_bytes", level[i].inactive_file);
        put_limit(w, "free_bytes", level[i].room);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
}

static void put_processors(tgi_jw *w, const char *root)
{
    tgi_processors p;
    const tgi_isa best = tgi_isa_detect(TGI_ISA_COUNT);
    tgi_processors_read(root, &p);
    tgi_jw_begin(w, "processors", '{');
    tgi_jw_str(w, "model", p.model);
    tgi_jw_int(w, "online", p.online);
    tgi_jw_int(w, "usable", p.usable);
    tgi_jw_begin(w, "caches", '[');
    for (int i = 0; i < p.n_caches; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_int(w, "level", p.cache[i].level);
        tgi_jw_str(w, "type", p.cache[i].type);
        tgi_jw_uint(w, "bytes", p.cache[i].bytes);
        tgi_jw_int(w, "shared_by", p.cache[i].shared_by);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    tgi_jw_begin(w, "instruction_sets", '[');
    for (int i = 0; i <= (int)best; i++)
        if (tgi_backend_for((tgi_isa)i))
            tgi_jw_str(w, NULL, tgi_isa_name((tgi_isa)i));
    tgi_jw_end(w, ']');
    tgi_jw_str(w, "best", tgi_isa_name(best));
    tgi_jw_bool(w, "bf16", tgi_isa_has_bf16(best));
    tgi_jw_end(w, '}');
}

static void put_disk(tgi_jw *w, const char *role, const char *path)
{
    tg_disk d = {.size = sizeof d};
    if (!tgi_disk_look(path, &d))
        return;
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_str(w, "role", role);
    tgi_jw_str(w, "path", path);
    tgi_jw_uint(w, "total_bytes", d.total_bytes);
    tgi_jw_uint(w, "free_bytes", d.free_bytes);
    tgi_jw_bool(w, "in_memory", d.in_memory);
    tgi_jw_end(w, '}');
}

static void put_gpu(tgi_jw *w, const tg_gpu *g)
{
    const size_t cap = sizeof g->process / sizeof g->process[0];
    tgi_jw_begin(w, NULL, '{');
    tgi_jw_int(w, "id", g->id);
    tgi_jw_str(w, "name", g->name);
    tgi_jw_str(w, "uuid", g->uuid);
    tgi_jw_str(w, "pci", g->pci);
    tgi_jw_begin(w, "compute_capability", '[');
    tgi_jw_int(w, NULL, g->compute_major);
    tgi_jw_int(w, NULL, g->compute_minor);
    tgi_jw_end(w, ']');
    tgi_jw_uint(w, "total_bytes", g->total_bytes);
    tgi_jw_uint(w, "free_bytes", g->free_bytes);
    tgi_jw_uint(w, "used_bytes", g->used_bytes);
    tgi_jw_uint(w, "pool_allocated_bytes", g->pool_allocated_bytes);
    tgi_jw_uint(w, "pool_reserved_bytes", g->pool_reserved_bytes);
    tgi_jw_begin(w, "processes", '[');
    for (size_t i = 0; i < g->n_processes && i < cap; i++) {
        tgi_jw_begin(w, NULL, '{');
        tgi_jw_int(w, "pid", g->process[i].pid);
        tgi_jw_str(w, "name", g->process[i].name);
        put_limit(w, "used_bytes", g->process[i].used_bytes);
        tgi_jw_bool(w, "graphics", g->process[i].graphics);
        tgi_jw_end(w, '}');
    }
    tgi_jw_end(w, ']');
    tgi_jw_str(w, "problem", g->problem[0] ? g->problem : NULL);
    tgi_jw_end(w, '}');
}

static void put_gpus(tgi_jw *w, const char *root)
{
    tg_gpu_driver d = {.size = sizeof d};
    tgi_nvml_driver(&d);
    tgi_jw_begin(w, "gpu_driver", '{');
    tgi_jw_str(w, "library", d.library);
    tgi_jw_str(w, "version", d.version[0] ? d.version : NULL);
    tgi_jw_str(w, "problem", d.problem[0] ? d.problem : NULL);
    tgi_jw_end(w, '}');
    tgi_jw_begin(w, "gpus", '[');
    for (int i = 0; i < tgi_nvml_count(); i++) {
        tg_gpu g = {.size = sizeof g};
        tgi_gpu_memory(i, root, &g);
        put_gpu(w, &g);
    }
    tgi_jw_end(w, ']');
}

void tgi_machine_json(tgi_jw *w, const char *root)
{
    char here[4096];
    struct utsname u;
    tgi_jw_str(w, "schema", TGI_MACHINE_SCHEMA);
    tgi_jw_int(w, "version", TGI_MACHINE_VERSION);
    tgi_jw_str(w, "tegula", TG_VERSION_STRING);
    tgi_jw_str(w, "system", uname(&u) == 0 ? u.sysname : NULL);
    put_memory(w, root);
    put_cgroups(w, root);
    put_processors(w, root);
    tgi_jw_begin(w, "disks", '[');
    put_disk(w, "current", getcwd(here, sizeof here) ? here : ".");
    put_disk(w, "temporary", tgi_temp_folder());
    tgi_jw_end(w, ']');
    put_gpus(w, root);
}
