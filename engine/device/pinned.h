/* pinned.h - memory of the host that copies to and from a device can use. Where the system pins
 * none (a container's limit on locked memory, a subsystem without it) it is ordinary memory:
 * copies then pass through the driver's own buffers, and wait. */
#ifndef TGI_DEVICE_PINNED_H
#define TGI_DEVICE_PINNED_H

#include "kernels/device.h"

typedef struct tgi_pinned {
    void *at;     /* NULL: nothing */
    int ordinary; /* 1: it is not pinned */
} tgi_pinned;

/* Returned; tgi_pinned_drop. TG_E_NOMEM: there is no ordinary memory either. */
tg_status tgi_pinned_get(const tgi_device_ops *ops, tgi_device *d, size_t bytes,
                         tgi_pinned *out, tgi_err *err);
void tgi_pinned_drop(const tgi_device_ops *ops, tgi_device *d, tgi_pinned *p);

#endif
