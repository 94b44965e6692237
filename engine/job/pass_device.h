/* pass_device.h - a stage of a pass on a device: rows of the image and of what earlier stages left
 * go up, what it hands out comes back into the same stores and sums as from the processor. */
#ifndef TGI_PASS_DEVICE_H
#define TGI_PASS_DEVICE_H

#include "engine/device/pinned.h"
#include "engine/exec/device_exec.h"

/* Of a stage's inputs and outputs: too large for the stack, where a pass may lie. */
typedef struct tgi_pass_ports {
    tgi_device_form form;
    size_t up_at[TGI_DEVICE_PORTS];
    int turn[TGI_DEVICE_PORTS]; /* which of the two bands is next */
} tgi_pass_ports;

typedef struct tgi_pass_device {
    tgi_pass_ports *ports; /* owned */
    tgi_pinned up;         /* what earlier stages left, of two bands */
    size_t up_bytes;
} tgi_pass_device;

struct tgi_pass;

/* p->tiling is the stage's: its executor, and memory for what goes up. */
tg_status tgi_pass_device_begin(struct tgi_pass *p, tgi_err *err);
/* All bands of a core; what they hand out is stored when it returns. */
tg_status tgi_pass_device_core(struct tgi_pass *p, int64_t cell, const tgi_range core[3],
                               tg_status (*tick)(void *user, tgi_err *err), tgi_err *err);
/* Close the stage's executor and its memory; may be called again. */
void tgi_pass_device_end(struct tgi_pass *p);

#endif
