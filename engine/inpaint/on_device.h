/* on_device.h - a device that computes the networks of a method, in the processor's place. What the networks leave, and all
 * else that a method does, stays with the processor. */
#ifndef TGI_ON_DEVICE_H
#define TGI_ON_DEVICE_H

#include "engine/exec/schedule_device.h"

typedef struct tgi_on_device {
    const tgi_device_ops *ops; /* NULL: the processor computes */
    tgi_device *const *device; /* borrowed; opened before a method begins, until it is freed */
    unsigned flags;            /* of networks, in place of the processor's */
    tgi_sched_device how;
    tgi_sched_device motion; /* of the networks that find motions: float32 */
} tgi_on_device;

#endif
