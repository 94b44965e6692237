/* speed.h - how long a plan takes on a machine whose speeds were measured.
 *
 * The choice between plans (choose.c) has fixed constants, so that the same command chooses the
 * same kernels, hence bits, tomorrow. What people are told is another matter: `tegula
 * calibrate` runs every kind of kernel and a small job of each codec once, and this model adds
 * them up.
 *
 *   kernels   per node: work over the rate of its kernel. Work is operations, weighted with the
 *             variant's cost, for convolutions and attention; bytes read and written for all
 *             others. Bytes of
 *             convolutions take time too, part of it behind the arithmetic: the two are added
 *             as squares are (a sum and a maximum were each off by up to 2 in layers whose two
 *             times are alike).
 *   pipeline  processor seconds per sample and byte beside the kernels: conversion, codecs,
 *             checksums, the system's copies. They share the processors with the kernels.
 *   fixed     what a run takes before and after its bands.
 *
 * What was not measured is that of a usual machine (speed_usual.c), and what finished runs took
 * corrects both (lessons.h). */
#ifndef TGI_SPEED_H
#define TGI_SPEED_H

#include "engine/base/json.h"
#include "engine/plan/tiling.h"

#define TGI_MAX_SPEEDS 192 /* three sets of some sixteen, operators without tuned kernels */

typedef struct tgi_kernel_speed {
    char key[40];    /* "avx512 conv_direct/16": set, kernel, class (tgi_speed_key) */
    double one, all; /* work per second: on one thread, on all processors */
} tgi_kernel_speed;

/* Codecs as the files name them: index of the arrays below. */
typedef enum tgi_codec_speed {
    TGI_CODEC_NONE,
    TGI_CODEC_DEFLATE,
    TGI_CODEC_ZSTD,
    TGI_CODEC_LZW,
    TGI_CODEC_COUNT
} tgi_codec_speed;

typedef struct tgi_speeds {
    char processor[96]; /* what the figures belong to */
    int processors;
    tgi_kernel_speed kernel[TGI_MAX_SPEEDS];
    int n_kernels;
    double clear;                   /* seconds per byte of memory made before the first band */
    double fixed;                   /* seconds of a run beside its bands */
    double finish;                  /* seconds per byte of the output, after the bands */
    double statistics;              /* seconds per sample of a first pass */
    double sample;                  /* processor seconds per sample in or out */
    double decode[TGI_CODEC_COUNT]; /* processor seconds per byte of pixels, beyond `sample` */
    double encode[TGI_CODEC_COUNT];
} tgi_speeds;

/* The work of a job beside its kernels. */
typedef struct tgi_speed_io {
    double samples_in, samples_out; /* read (recomputation included) and written */
    double bytes_in, bytes_out;     /* of these pixels, not compressed */
    double samples_statistics;      /* 0: no first pass */
    double arena_bytes;
    tgi_codec_speed in, out;
    /* Of films: processor seconds of their decoder and encoder, which are threads beside the one that
     * converts; threads of the encoder; and rows that are written, each of which is handed on. */
    double decoding, encoding, rows;
    int encoders;
    int is_film; /* frames are written: what is left at the end are packets */
} tgi_speed_io;

/* The key of a node in the table of speeds: set and kernel, as in "avx512 conv_direct/16". A node
 * without a tuned kernel has "reference Where" or, of a flat value, "flat MatMul"; its work is
 * counted in operations and elements moved. */
void tgi_speed_key(const tgi_net_node *n, char *out, size_t size);
/* 1: it is the key of an operator without a tuned kernel, or of all of them ("flat"). */
int tgi_speed_key_untuned(const char *key);
/* Work of position k of a tiling's stage, in the unit of its key. */
double tgi_speed_work(const tgi_tiling *t, int k);
/* Bytes that it reads and writes, and the key of their speed; "" where its work is counted in
 * bytes already. */
double tgi_speed_bytes(const tgi_tiling *t, int k);
void tgi_speed_bytes_key(const tgi_net_node *n, char *out, size_t size);
/* Seconds of both together; and of the arithmetic alone, of what took `both`. */
double tgi_speed_both(double arithmetic, double memory);
double tgi_speed_alone(double both, double memory);
/* What a usual machine with this many processors reaches, by measurement of one; speed_usual.c.
 * And with what was measured here in its place, where `measured` is not NULL. */
void tgi_speeds_usual(int processors, const tgi_speeds *measured, tgi_speeds *out);
/* Add a measurement; the last one of a key counts. Beyond TGI_MAX_SPEEDS: left out. */
void tgi_speed_set(tgi_speeds *s, const char *key, double one, double all);

/* Seconds of position k of the tiling's stage, all its bands, with this many threads; < 0:
 * these figures say nothing about its kernel. */
double tgi_speed_node(const tgi_speeds *s, const tgi_tiling *t, int k, int threads);
/* Seconds of all bands' kernels with this many threads; < 0: these figures say nothing about a
 * kernel of the plan. */
double tgi_speed_kernels(const tgi_speeds *s, const tgi_tiling *t, int threads);
/* Seconds of a job around `kernels` (of all items). */
double tgi_speed_job(const tgi_speeds *s, double kernels, const tgi_speed_io *io, int threads);

/* As members of an open object; and back. TG_E_FORMAT when it is no such object. */
void tgi_speeds_write(tgi_jw *w, const tgi_speeds *s);
tg_status tgi_speeds_read(const tgi_json *object, tgi_speeds *out, tgi_err *err);

/* Where this machine's figures are kept: TEGULA_CACHE, else XDG_CACHE_HOME/tegula, else
 * ~/.cache/tegula; and reading them there. TG_E_NOT_FOUND: nobody has measured, or it was
 * another processor. */
tg_status tgi_speeds_path(char *out, size_t size, tgi_err *err);
tg_status tgi_speeds_load(tgi_speeds *out, tgi_err *err);

#endif
