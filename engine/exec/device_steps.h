/* device_steps.h - the steps of a band as a device wants them: a load for each input, one step
 * for each node, a store for each output that somebody takes. Views and boxes are those of the
 * band. */
#ifndef TGI_DEVICE_STEPS_H
#define TGI_DEVICE_STEPS_H

#include "engine/exec/cell.h"
#include "engine/exec/device_exec.h"

/* Where on the device lies what the steps point to. */
typedef struct tgi_device_places {
    char *weights, *constants, *arena;
} tgi_device_places;

typedef struct tgi_device_steps {
    tgi_cell cell;
    tgi_device_form form;
    tgi_device_places at;
    tgi_device_step *step; /* loads, one for each node of the stage, stores */
    int n, n_load, n_store;
    int store_of[TGI_DEVICE_PORTS]; /* output: its step, or -1 */
    /* what the steps point to on this side */
    tgi_view *seg, *dst;
    tgi_operand *src;
    tgi_epi_step *epi;
    tgi_box *box; /* of the nodes' results, in their order */
} tgi_device_steps;

/* Make the steps of a tiling of a device's net. Their boxes are empty at first. */
tg_status tgi_device_steps_open(tgi_device_steps *s, const tgi_tiling *t,
                                const tgi_device_form *form, tgi_device_places at,
                                tgi_err *err);
void tgi_device_steps_close(tgi_device_steps *s);
/* What its tables take. */
size_t tgi_device_steps_bytes(const tgi_tiling *t, const tgi_device_form *form);

/* Before a band: empty all boxes, so that no step does anything. */
void tgi_device_steps_rest(tgi_device_steps *s);
/* Load `box` of input i from the pixels of the band. */
void tgi_device_steps_load(tgi_device_steps *s, int i, const tgi_box *box,
                           const tgi_device_pixels *px);
/* Let every node compute what it can by now. Advances the flow. */
void tgi_device_steps_nodes(tgi_device_steps *s);
/* Store `box` of output o, which somebody takes, as pixels at `at`. Returns their bytes. */
size_t tgi_device_steps_store(tgi_device_steps *s, int o, const tgi_box *box, void *counts,
                              void *at, float mul, float add);

/* The same to where it stays on the device: px has the address, type, and how its channels and pixels lie. */
void tgi_device_steps_leave(tgi_device_steps *s, int o, const tgi_box *box,
                            const tgi_device_pixels *px);

/* Bytes of output o that one band gives at most in the form of `port`, and in how many rows (slabs
 * times rows). */
size_t tgi_device_store_most(const tgi_tiling *t, int o, const tgi_device_port *port,
                             int64_t *rows);
/* Count the numbers of a loaded value that one band takes at most. */
size_t tgi_device_load_most(const tgi_tiling *t, int value);
/* The vectors of the epilogues, which the steps read on the device: their bytes, and they. */
size_t tgi_device_constants_bytes(const tgi_tiling *t);
void tgi_device_constants_fill(const tgi_tiling *t, void *dst);

#endif
