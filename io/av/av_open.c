/* av_open.c - see av_open.h. */
#include "io/av/av_open.h"

#include "engine/base/own_file.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int asked;
    void *dl;
    const tgi_av_ops *ops;
    char path[512], why[256];
} plugin;

static void look(void)
{
    tgi_av_plugin_fn ask = NULL;
    plugin.asked = 1;
    plugin.why[0] = 0;
    if (!tgi_plugin_file("libtegula_av.so", "TEGULA_AV_PLUGIN", plugin.path, sizeof plugin.path,
                         plugin.why, sizeof plugin.why))
        return;
    plugin.dl = dlopen(plugin.path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin.dl) {
        const char *why = dlerror();
        snprintf(plugin.why, sizeof plugin.why, "%.250s", why ? why : "it cannot be opened");
        return;
    }
    void *at = dlsym(plugin.dl, TGI_AV_PLUGIN_SYMBOL);
    memcpy(&ask, &at, sizeof ask); /* POSIX says that a function may be had from it */
    plugin.ops = ask ? ask(TGI_AV_ABI) : NULL;
    if (!plugin.ops)
        snprintf(plugin.why, sizeof plugin.why,
                 "%.150s is no such plugin, or of another version", plugin.path);
}

tg_status tgi_av_ops_get(const tgi_av_ops **out, tgi_err *err)
{
    pthread_mutex_lock(&lock);
    if (!plugin.asked)
        look();
    pthread_mutex_unlock(&lock);
    *out = plugin.ops;
    return plugin.ops ? TG_OK
                      : tgi_fail(err, TG_E_DEVICE, "films need the plugin libtegula_av.so: %s",
                                 plugin.why);
}

const char *tgi_av_path(void)
{
    return plugin.ops ? plugin.path : "";
}
