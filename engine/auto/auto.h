/* auto.h - the settings of a job that are predicted to take the least time on a machine: this
 * one, or that of --machine.
 *
 * Every point of a grid is planned as a run would be, and the least predicted seconds of those
 * that fit win; of equals the point that changes less. The grid, each axis with its default
 * first; what the options set is not varied:
 *
 *   precision  fp32; bf16 only where nothing fits in fp32 and --precision is open, or
 *              beside it when --precision bf16 allows it
 *   isa        every instruction set of the machine, the best first
 *   threads    all processors, all but one, three quarters, a half, a quarter, one
 *   tile       auto, then squares of 256 to 8192 below the image's larger side (volumes: cubes
 *              of 64 to 256); of networks in fixed boxes auto only
 *   scratch    none; the machine's temporary folder, where decoding once helps and fits
 *   ram        the machine's budget, in whole MiB
 *   io         auto: no prediction depends on it but by the room of a buffer, and the reader
 *              decides by the filesystem
 *
 * A set of which not even one thread with tile auto fits has no other points: those would take
 * more. Points that cannot win are not planned: no tiling computes less than one cell does, so
 * the kernels' time of the uncut image, at the rates of that point, is a bound. */
#ifndef TGI_AUTO_H
#define TGI_AUTO_H

#include "engine/job/job.h"

#define TGI_AUTO_TRIES 640
#define TGI_AUTO_THREADS 6
#define TGI_AUTO_TILES 8

/* A point of the grid, and what the planner said of it. */
typedef struct tgi_auto_try {
    int bf16, threads, scratch;
    tgi_isa isa;
    int64_t tile; /* 0: auto */
    int fits;
    double seconds; /* predicted; of a point that was skipped, what it cannot be below */
    int skipped;
    uint64_t peak_bytes;
} tgi_auto_try;

/* What a GPU of the machine would be given; times are projected, never measured. */
typedef struct tgi_auto_device {
    int there;     /* 1: the machine has one that the job fits */
    char gpu[96];  /* as its driver calls it */
    int alike;     /* GPUs of that name */
    double gib;    /* of all its memory */
    int64_t tile;  /* side of a square of output pixels */
    int64_t batch; /* tiles computed together */
    uint64_t needed_bytes;
    double seconds; /* on one; < 0: its speed is unknown */
    char why_not[192];
} tgi_auto_device;

typedef struct tgi_auto {
    tgi_machine machine;
    tg_opts *opts;     /* the command's, and "ram" */
    int64_t extent[3]; /* of the output, z,y,x */
    int volume, boxed, tensor;
    int ram_given;
    tgi_auto_try tried[TGI_AUTO_TRIES];
    int n_tried, best;        /* best < 0: nothing fits */
    int calibrated;           /* the prediction of the best */
    int bf16_asked, bf16_may; /* by --precision bf16; when nothing fits: --precision and the
                                descriptor leave it open */
    int bf16_needed;          /* nothing fits in fp32 */
    size_t beside;            /* what the search itself holds */
    tgi_err refusal;          /* of the first plan that did not fit */
    char scratch[256];        /* the folder; "": none to try */
    char scratch_why[192];    /* of the best's plan */
    double recomputed;        /* of the best */
    tgi_auto_device device;
} tgi_auto;

/* Search. TG_E_BUDGET: nothing fits; `err` says so as the plan of the default settings does.
 * Returned; release with tgi_auto_free, also after a failure. */
tg_status tgi_auto_search(tg_ctx *ctx, const tg_opts *o, tgi_auto **out, tgi_err *err);
void tgi_auto_free(tgi_auto **a);

/* auto_device.c: fill a->device from the machine's GPUs. */
tg_status tgi_auto_find_device(tg_ctx *ctx, tgi_auto *a, tgi_err *err);

/* auto_text.c: the preset file (docs/reference/presets.md), and what was found as an object of
 * members "preset", "reasons" and figures (docs/reference/json.md). Returned; tgi_free. */
tg_status tgi_auto_preset_json(const tgi_auto *a, char **json, tgi_err *err);
tg_status tgi_auto_json(const tgi_auto *a, char **json, tgi_err *err);
/* Where the preset is to be written: "output" that was set by name; one of a job file is the
 * job's. NULL: nowhere. View. */
const char *tgi_auto_output(const tg_opts *o);
/* The answer, after the preset was written where tgi_auto_output says. */
tg_status tgi_auto_finish(const tgi_auto *a, const tg_opts *o, char **json, tgi_err *err);
/* The options of a point, on top of a->opts, into `to`. */
tg_status tgi_auto_options(const tgi_auto *a, const tgi_auto_try *t, tg_opts *to, tgi_err *err);

#endif
