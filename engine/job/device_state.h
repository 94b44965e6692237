/* device_state.h - what frames hand to each other (ends/carried.h) on a device: it stays there. The network reads the array of the
 * frame before and fills that of this one where they lie; the host's are filled when a stopped run is to go on with them.
 *
 * The device's memory is laid out as the host's, so whose turn it is the host's arrays say. */
#ifndef TGI_DEVICE_STATE_H
#define TGI_DEVICE_STATE_H

#include "engine/ends/carried.h"
#include "engine/exec/device_exec.h"
#include "engine/job/job.h"

/* TG_E_UNSUPPORTED: what the job hands on can only be handed on by the processor, and why. */
tg_status tgi_device_state_check(const tg_job *job, tgi_err *err);
/* The ports of a whole pass: by the stage's inputs and outputs, where `form` has the image's in front. */
void tgi_device_state_form(const tg_job *job, const tgi_tiling *t, tgi_device_form *form);

typedef struct tgi_device_state {
    const tgi_device_ops *ops; /* NULL: nothing is handed on */
    tgi_device *device;        /* borrowed */
    const tgi_carried *host;   /* borrowed, and its memory: */
    char *memory;
    size_t bytes;
    char *at; /* on the device */
    tgi_device_event *made;
} tgi_device_state;

/* Take the device's memory. tgi_device_state_close, any time. */
tg_status tgi_device_state_open(tgi_device_state *s, const tg_job *job, tgi_err *err);
void tgi_device_state_close(tgi_device_state *s);
/* Before the first frame: the device has what the host has. */
tg_status tgi_device_state_begin(tgi_device_state *s, const tgi_carried *host, void *memory,
                                 tgi_err *err);
/* The host has what the frame before handed on. */
tg_status tgi_device_state_home(tgi_device_state *s, tgi_err *err);
/* Where input `port` comes from, output `port` goes to. 0: it is none of these. */
int tgi_device_state_in(const tgi_device_state *s, int port, tgi_device_pixels *out);
int tgi_device_state_out(const tgi_device_state *s, int port, tgi_device_pixels *out);

#endif
