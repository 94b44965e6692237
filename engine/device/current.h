/* current.h - the device in use, as the memory monitor sees it (engine/memory/gpu.h): drivers
 * number devices as CUDA_VISIBLE_DEVICES leaves them, the monitor as the management library
 * does; the UUID is what both know. */
#ifndef TGI_CURRENT_H
#define TGI_CURRENT_H

#include "engine/device/plugin.h"

/* From now on this is the current device of the monitor, and the monitor can make contexts. */
void tgi_device_is_current(const tgi_device_info *info);

/* 1: this process has been told so of the device before: its context may be there still, and
 * takes nothing when it is opened again. */
int tgi_device_was_current(const tgi_device_info *info);

/* The most that the device's context was seen to take in this process, `bytes` now included. */
uint64_t tgi_device_context(const tgi_device_info *info, uint64_t bytes);

/* The plugin as the monitor's backend, whichever device is current. TG_E_DEVICE: there is none.
 */
tg_status tgi_device_be_backend(tgi_err *err);

#endif
