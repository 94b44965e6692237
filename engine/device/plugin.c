/* plugin.c - see plugin.h. */
#include "engine/device/plugin.h"

#include "engine/base/own_file.h"
#include "engine/memory/gpu.h"
#include "engine/memory/monitor_nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which plugins there are ------------------------------------------------------------- */

typedef struct plugin {
    const char *name, *file, *environment;
    int asked; /* whether opening was tried; all below is set then */
    void *dl;
    const tgi_device_ops *ops;
    char path[512], why[256];
} plugin;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static plugin plugins[] = {
    {.name = "cuda", .file = "libtegula_cuda.so", .environment = "TEGULA_CUDA_PLUGIN"}};
#define N_PLUGINS (sizeof plugins / sizeof plugins[0])

static plugin *plugin_of(const char *name)
{
    for (size_t i = 0; i < N_PLUGINS; i++)
        if (strcmp(plugins[i].name, name) == 0)
            return &plugins[i];
    return NULL;
}

/* ---- Finding and opening ----------------------------------------------------------------- */

/* A table lacks nothing: what is offered, works. */
static int complete(const tgi_device_ops *o)
{
    return o->name && o->backend && o->count && o->describe && o->open && o->close &&
           o->memory && o->alloc && o->release && o->pin && o->unpin && o->upload &&
           o->download && o->event_new && o->event_free && o->record && o->wait && o->sync &&
           o->program_open && o->program_close && o->program_run && o->times && o->library &&
           o->library_name;
}

/* Its table, or NULL with `why`. */
static const tgi_device_ops *table_of(plugin *p)
{
    tgi_device_plugin_fn ask = NULL;
    void *at = dlsym(p->dl, TGI_DEVICE_PLUGIN_SYMBOL);
    memcpy(&ask, &at, sizeof ask); /* POSIX says that a function may be had from it */
    if (!ask) {
        snprintf(p->why, sizeof p->why, "%.150s is no plugin: it lacks %s", p->path,
                 TGI_DEVICE_PLUGIN_SYMBOL);
        return NULL;
    }
    const tgi_device_ops *ops = ask(TGI_DEVICE_ABI);
    if (!ops || ops->abi != TGI_DEVICE_ABI) {
        snprintf(p->why, sizeof p->why, "%.150s belongs to another version of tegula", p->path);
        return NULL;
    }
    if (!complete(ops) || strcmp(ops->name, p->name) != 0) {
        snprintf(p->why, sizeof p->why, "%.150s is no complete plugin for \"%s\"", p->path,
                 p->name);
        return NULL;
    }
    return ops;
}

static void open_plugin(plugin *p)
{
    p->asked = 1;
    p->why[0] = p->path[0] = 0;
    if (!tgi_plugin_file(p->file, p->environment, p->path, sizeof p->path, p->why,
                         sizeof p->why))
        return;
    p->dl = dlopen(p->path, RTLD_NOW | RTLD_LOCAL);
    if (!p->dl) {
        const char *why = dlerror();
        snprintf(p->why, sizeof p->why, "%.250s", why ? why : "it cannot be opened");
        return;
    }
    p->ops = table_of(p);
    if (!p->ops) {
        dlclose(p->dl);
        p->dl = NULL;
    }
}

void tgi_device_close_plugins(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < N_PLUGINS; i++) {
        plugin *p = &plugins[i];
        if (p->dl)
            dlclose(p->dl);
        p->dl = NULL;
        p->ops = NULL;
        p->asked = 0;
    }
    pthread_mutex_unlock(&lock);
}

tg_status tgi_device_open_plugin(const char *name, const tgi_device_ops **out, tgi_err *err)
{
    plugin *p = plugin_of(name);
    *out = NULL;
    if (!p)
        return tgi_fail(err, TG_E_DEVICE, "there are no devices \"%.40s\"", name);
    pthread_mutex_lock(&lock);
    if (!p->asked)
        open_plugin(p);
    pthread_mutex_unlock(&lock);
    if (!p->ops)
        return tgi_fail(err, TG_E_DEVICE, "%s", p->why);
    *out = p->ops;
    return TG_OK;
}

/* ---- Devices ----------------------------------------------------------------------------- */

/* A driver that shows no device may have been told to. */
static void say_none(tgi_devices *out)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        snprintf(out->why, sizeof out->why,
                 "the driver shows no device (CUDA_VISIBLE_DEVICES=%.60s)", visible);
    else
        snprintf(out->why, sizeof out->why, "the driver shows no device");
}

/* ---- What the driver takes first --------------------------------------------------------- */

/* A driver takes a little of each device when a process first asks it anything (some 3 MiB on
 * an H100), before any context: no look at free memory that comes later sees it. */
static atomic_ullong first_bytes[TGI_MAX_DEVICES]; /* by the management library's number */

typedef struct looked {
    int n;
    uint64_t free_bytes[TGI_MAX_DEVICES], others[TGI_MAX_DEVICES];
} looked;

static void look_at_memory(looked *l)
{
    uint64_t used;
    int listed;
    memset(l, 0, sizeof *l);
    l->n = tgi_nvml_count() < TGI_MAX_DEVICES ? tgi_nvml_count() : TGI_MAX_DEVICES;
    for (int i = 0; i < l->n; i++) {
        tgi_gpu_free_used(i, 0, &l->free_bytes[i], &used);
        if (!tgi_gpu_others(i, &l->others[i], &listed))
            l->others[i] = 0; /* nobody tells: what went counts as ours */
    }
}

/* Where others came or went meanwhile, or much went, it was not the driver alone. */
#define MOST_FIRST ((uint64_t)64 << 20)
static void keep_first(const looked *before, const looked *after)
{
    for (int i = 0; i < before->n && i < after->n; i++) {
        const uint64_t had = before->free_bytes[i], has = after->free_bytes[i];
        if (before->others[i] == after->others[i] && had > has && had - has <= MOST_FIRST)
            atomic_store(&first_bytes[i], had - has);
    }
}

uint64_t tgi_device_first_bytes(const tgi_device_info *info)
{
    const int id = tgi_gpu_of_uuid(info->uuid);
    return id >= 0 && id < TGI_MAX_DEVICES ? atomic_load(&first_bytes[id]) : 0;
}

/* The driver's first answer in this process. */
static tg_status count_devices(const tgi_device_ops *ops, int *n, tgi_err *err)
{
    static atomic_flag asked = ATOMIC_FLAG_INIT;
    looked before, after;
    if (atomic_flag_test_and_set(&asked))
        return ops->count(n, err);
    look_at_memory(&before);
    TGI_TRY(ops->count(n, err));
    look_at_memory(&after);
    keep_first(&before, &after);
    return TG_OK;
}

void tgi_devices_look(const char *name, tgi_devices *out)
{
    tgi_err err = {0};
    int n = 0;
    memset(out, 0, sizeof *out);
    const plugin *p = plugin_of(name);
    tg_status st = tgi_device_open_plugin(name, &out->ops, &err);
    if (p)
        snprintf(out->path, sizeof out->path, "%s", p->path);
    if (st == TG_OK)
        st = count_devices(out->ops, &n, &err);
    n = n < TGI_MAX_DEVICES ? n : TGI_MAX_DEVICES;
    for (int i = 0; st == TG_OK && i < n; i++)
        st = out->ops->describe(i, &out->info[i], &err);
    if (st == TG_OK)
        out->n = n;
    if (st != TG_OK)
        snprintf(out->why, sizeof out->why, "%.250s", err.text);
    else if (n <= 0)
        say_none(out);
}
