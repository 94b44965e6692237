/* neighbour_plugin.c - a plugin in front of another: a neighbour that takes a device's memory
 * at the worst moment, between a plan that counted on it and the allocation of what was
 * planned.
 *
 *   TEGULA_NEIGHBOUR_PLUGIN   the plugin behind: all calls are its own
 *   TEGULA_NEIGHBOUR_AT       the k-th allocation is the one (1). Gains are measured with
 *                             allocations too, where they are not known yet
 *   TEGULA_NEIGHBOUR_LEAVES   MiB that the neighbour leaves
 *   TEGULA_NEIGHBOUR_SAYS     a file for one line per event: "left BYTES", "alloc BYTES STATUS"
 *
 * What is taken is taken from the device and stays taken until the process ends. The allocation
 * then goes to the plugin behind as every other: if it fails, that is the device's answer. */
#include "kernels/device.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) const tgi_device_ops *tgi_device_plugin(uint32_t abi);

#define MIB ((uint64_t)1 << 20)

static const tgi_device_ops *behind;
static tgi_device_ops table;
static int allocations;

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

static void say(const char *format, ...)
{
    const char *name = getenv("TEGULA_NEIGHBOUR_SAYS");
    FILE *f = name ? fopen(name, "a") : NULL;
    va_list ap;
    if (!f)
        return;
    va_start(ap, format);
    vfprintf(f, format, ap);
    va_end(ap);
    fclose(f);
}

static uint64_t free_now(tgi_device *d)
{
    uint64_t free_bytes = 0, total = 0;
    (void)behind->memory(d, &free_bytes, &total, NULL);
    return free_bytes;
}

/* In pieces, as what is free need not lie together; drivers give no less than 2 MiB. */
static void take_all_but(tgi_device *d, uint64_t left)
{
    void *at;
    for (uint64_t piece = 4096 * MIB; piece >= 2 * MIB;) {
        tgi_err err = {0};
        if (free_now(d) < left + piece || behind->alloc(d, piece, &at, &err) != TG_OK)
            piece /= 2;
    }
}

static tg_status alloc(tgi_device *d, size_t bytes, void **at, tgi_err *err)
{
    if (++allocations == number("TEGULA_NEIGHBOUR_AT", 1)) {
        take_all_but(d, (uint64_t)number("TEGULA_NEIGHBOUR_LEAVES", 0) * MIB);
        say("left %llu\n", (unsigned long long)free_now(d));
    }
    const tg_status st = behind->alloc(d, bytes, at, err);
    say("alloc %zu %d\n", bytes, (int)st);
    return st;
}

const tgi_device_ops *tgi_device_plugin(uint32_t abi)
{
    const char *name = getenv("TEGULA_NEIGHBOUR_PLUGIN");
    void *dl = name ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *at = dl ? dlsym(dl, TGI_DEVICE_PLUGIN_SYMBOL) : NULL;
    tgi_device_plugin_fn ask = NULL;
    memcpy(&ask, &at, sizeof ask);
    behind = ask ? ask(abi) : NULL;
    if (!behind) {
        fprintf(stderr, "TEGULA_NEIGHBOUR_PLUGIN: %s\n", dl ? "of another version" : dlerror());
        return NULL;
    }
    table = *behind;
    table.alloc = alloc;
    return &table;
}
