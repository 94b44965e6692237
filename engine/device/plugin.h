/* plugin.h - devices beside the processor: the plugin that drives them, and what it has.
 *
 * A plugin is a shared library of ours with one symbol (kernels/device.h). It is opened at the
 * first question and stays open: what a driver starts in a process, threads and handlers at its
 * end, does not survive its code. It is looked for
 *     where TEGULA_CUDA_PLUGIN says ("none": nowhere),
 *     in the folder of the program or library that asks,
 *     in lib/tegula of that folder or of one up to three above it,
 * and nowhere else: not in the working folder, not where the system's loader looks.
 *
 * That there is no plugin, no driver or no device is no failure of ours: each has its one line,
 * which `--device cuda` says when it ends and `--device auto` when it goes on without. */
#ifndef TGI_PLUGIN_H
#define TGI_PLUGIN_H

#include "kernels/device.h"

#define TGI_MAX_DEVICES 32

typedef struct tgi_devices {
    const tgi_device_ops *ops; /* NULL: no plugin could be opened */
    char path[512];            /* that was opened, or could not be; "": none was found */
    int n;
    tgi_device_info info[TGI_MAX_DEVICES];
    char why[256]; /* of n == 0: one line; else "" */
} tgi_devices;

/* The table of a plugin ("cuda"). TG_E_DEVICE with the reason in one line; it is found again,
 * not looked for again, by later calls. */
tg_status tgi_device_open_plugin(const char *name, const tgi_device_ops **out, tgi_err *err);

/* What a plugin has, without making a context anywhere. */
void tgi_devices_look(const char *name, tgi_devices *out);

/* Bytes of the device that the driver took when this process first asked it anything; 0: none,
 * or nobody knows. */
uint64_t tgi_device_first_bytes(const tgi_device_info *info);

/* Close all, so that the next question looks again: for tests, which pretend one machine after
 * another. */
void tgi_device_close_plugins(void);

#endif
