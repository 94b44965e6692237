/* device_steps.h - the steps of a band as a device wants them: a load for each input, the
 * nodes, a store for each output that somebody takes, with the views and boxes of this band in
 * place. */
#ifndef TGI_DEVICE_STEPS_H
#define TGI_DEVICE_STEPS_H

#include "engine/exec/cell.h"
#include "engine/exec/device_exec.h"

/* Addresses on the device of what the steps point to. */
typedef struct tgi_device_places {
    char *weights, *constants, *arena;
} tgi_device_places;

typedef struct tgi_device_steps {
    tgi_cell cell;
    tgi_device_form form;
    tgi_device_places at;
    tgi_device_step *step; /* loads, one for each node of the stage, stores */
    int n, n_load, n_store;
    int store_of[TGI_MAX_PORTS]; /* output: its step, or -1 */
    /* storage of the steps' calls */
    tgi_view *seg, *dst;
    tgi_operand *src;
    tgi_epi_step *epi;
    tgi_box *box; /* of the nodes' results, in their order */
} tgi_device_steps;

/* For a tiling of a device's net; boxes are empty at first. */
tg_status tgi_device_steps_open(tgi_device_steps *s, const tgi_tiling *t,
                                const tgi_device_form *form, tgi_device_places at,
                                tgi_err *err);
void tgi_device_steps_close(tgi_device_steps *s);

/* Before a band: nothing to do in any step. */
void tgi_device_steps_rest(tgi_device_steps *s);
/* The band's pixels fill `box` of input i. */
void tgi_device_steps_load(tgi_device_steps *s, int i, const tgi_box *box,
                           const tgi_device_pixels *px);
/* Every node computes what it can now; advances the flow. */
void tgi_device_steps_nodes(tgi_device_steps *s);
/* `box` of output o, which somebody takes, becomes pixels at `at`. Returns their bytes. */
size_t tgi_device_steps_store(tgi_device_steps *s, int o, const tgi_box *box, void *counts,
                              void *at, float mul, float add);

/* Rows (slabs times rows) and pixels of output o that one band yields at most. */
void tgi_device_store_most(const tgi_tiling *t, int o, int64_t *rows, int64_t *pixels);
/* Vectors of the epilogues, which the steps read on the device. */
size_t tgi_device_constants_bytes(const tgi_tiling *t);
void tgi_device_constants_fill(const tgi_tiling *t, void *dst);

#endif
