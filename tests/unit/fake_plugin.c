/* fake_plugin.c - a plugin that pretends, for tests of what opens plugins. It has devices to
 * list and computes nothing.
 *
 * Built as shared objects that are wrong in one way each: FAKE_STRANGER lacks the symbol,
 * FAKE_OTHER_ABI has none of our tables, FAKE_LIES has a table that says another number,
 * FAKE_HOLES a table with a hole, FAKE_NAME one of another name. What the good one answers
 * comes from the environment variable FAKE_PLUGIN, words apart by commas:
 *
 *   devices=N   how many (default 2)     nodriver   counting them fails
 *   reversed    in the order that is the management library's from behind
 *   lost=I      device I cannot be described
 *
 * Device i says the UUID that fake_nvml.c gives its GPU i. */
#include "kernels/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int word(const char *name, int otherwise)
{
    const char *s = getenv("FAKE_PLUGIN");
    const size_t n = strlen(name);
    for (; s && *s; s = strchr(s, ',') ? strchr(s, ',') + 1 : "")
        if (strncmp(s, name, n) == 0)
            return s[n] == '=' ? atoi(s + n + 1) : 1;
    return otherwise;
}

static tg_status refuse(tgi_err *err, const char *why)
{
    if (err && err->code == TG_OK) {
        err->code = TG_E_DEVICE;
        snprintf(err->text, sizeof err->text, "%s", why);
    }
    return TG_E_DEVICE;
}

static const tgi_kernel_set *no_backend(tg_dtype element)
{
    (void)element;
    return NULL;
}

static tg_status count(int *n, tgi_err *err)
{
    *n = 0;
    if (word("nodriver", 0))
        return refuse(err, "there is no pretended driver");
    *n = word("devices", 2);
    return TG_OK;
}

static tg_status describe(int id, tgi_device_info *out, tgi_err *err)
{
    const int n = word("devices", 2), gpu = word("reversed", 0) ? n - 1 - id : id;
    if (word("lost", -1) == id)
        return refuse(err, "the pretended device is lost");
    *out = (tgi_device_info){.id = id,
                             .major = 8,
                             .minor = 6,
                             .multiprocessors = 4,
                             .total_bytes = (uint64_t)12 << 30,
                             .driver = "pretended driver"};
    snprintf(out->name, sizeof out->name, "Pretended %d", id);
    snprintf(out->uuid, sizeof out->uuid, "GPU-00000000-0000-0000-0000-00000000000%d", gpu);
    return TG_OK;
}

static tg_status no_open(int id, tgi_device **out, tgi_err *err)
{
    (void)id;
    *out = NULL;
    return refuse(err, "a pretended device cannot be opened");
}

/* The rest is there and does nothing. */
static void no_close(tgi_device **d)
{
    (void)d;
}
static tg_status no_memory(tgi_device *d, uint64_t *f, uint64_t *t, tgi_err *err)
{
    (void)d, (void)f, (void)t;
    return refuse(err, "no");
}
static tg_status no_alloc(tgi_device *d, size_t bytes, void **at, tgi_err *err)
{
    (void)d, (void)bytes, (void)at;
    return refuse(err, "no");
}
static void no_release(tgi_device *d, void *at)
{
    (void)d, (void)at;
}
static tg_status no_copy(tgi_device *d, tgi_device_queue q, void *dst, const void *src,
                         size_t bytes, tgi_err *err)
{
    (void)d, (void)q, (void)dst, (void)src, (void)bytes;
    return refuse(err, "no");
}
static tg_status no_event(tgi_device *d, tgi_device_event **out, tgi_err *err)
{
    (void)d, (void)out;
    return refuse(err, "no");
}
static void no_event_free(tgi_device *d, tgi_device_event *e)
{
    (void)d, (void)e;
}
static tg_status no_place(tgi_device *d, tgi_device_queue q, tgi_device_event *e, tgi_err *err)
{
    (void)d, (void)q, (void)e;
    return refuse(err, "no");
}
static tg_status no_sync(tgi_device *d, tgi_device_event *e, tgi_err *err)
{
    (void)d, (void)e;
    return refuse(err, "no");
}
static tg_status no_program(tgi_device *d, tgi_device_queue q, const tgi_device_step *steps,
                            int n, tgi_device_program **out, size_t *bytes, tgi_err *err)
{
    (void)d, (void)q, (void)steps, (void)n, (void)out, (void)bytes;
    return refuse(err, "no");
}
static void no_program_close(tgi_device_program **p)
{
    (void)p;
}
static tg_status no_run(tgi_device_program *p, const tgi_device_step *steps, tgi_err *err)
{
    (void)p, (void)steps;
    return refuse(err, "no");
}
static int no_loose(const tgi_device_program *p)
{
    (void)p;
    return 0;
}

static tg_status no_time(tgi_device_program *p, const tgi_device_step *steps, double *seconds,
                         tgi_err *err)
{
    (void)p, (void)steps, (void)seconds;
    return refuse(err, "no");
}
static tg_status no_times(tgi_device *d, double seconds[3], tgi_err *err)
{
    (void)d, (void)seconds;
    return refuse(err, "no");
}

static tg_status no_library(tgi_device *d, int open, tgi_err *err)
{
    (void)d, (void)open;
    return refuse(err, "no");
}
static const char *no_library_name(tgi_device *d)
{
    (void)d;
    return NULL;
}

static const tgi_device_ops table = {
#ifdef FAKE_LIES
    .abi = TGI_DEVICE_ABI + 1,
#else
    .abi = TGI_DEVICE_ABI,
#endif
#ifdef FAKE_NAME
    .name = "abacus",
#else
    .name = "cuda",
#endif
    .backend = no_backend,
    .count = count,
    .describe = describe,
    .open = no_open,
    .close = no_close,
    .memory = no_memory,
    .alloc = no_alloc,
    .release = no_release,
    .pin = no_alloc,
    .unpin = no_release,
    .upload = no_copy,
    .download = no_copy,
    .copy = no_copy,
    .event_new = no_event,
    .event_free = no_event_free,
    .record = no_place,
    .wait = no_place,
#ifndef FAKE_HOLES
    .sync = no_sync,
#endif
    .program_open = no_program,
    .program_close = no_program_close,
    .program_run = no_run,
    .program_time = no_time,
    .program_loose = no_loose,
    .times = no_times,
    .library = no_library,
    .library_name = no_library_name};

#ifdef FAKE_STRANGER
EXPORT const tgi_device_ops *somebody_elses_symbol(uint32_t abi);
const tgi_device_ops *somebody_elses_symbol(uint32_t abi)
#else
EXPORT const tgi_device_ops *tgi_device_plugin(uint32_t abi);
const tgi_device_ops *tgi_device_plugin(uint32_t abi)
#endif
{
#ifdef FAKE_OTHER_ABI
    abi++;
#endif
    (void)no_sync;
    return abi == TGI_DEVICE_ABI ? &table : NULL;
}
