/* post_spec.h - the language of --post: "sigmoid,threshold:0.5,min-size:50,label".
 *
 * Steps in the order in which they are done. Values become a mask (0 and 1) once, by threshold or otsu;
 * steps on values stand before that one, steps on masks behind it, and label is the last. A list
 * without threshold or otsu begins with a mask: whole numbers, where everything but 0 is an object.
 * stardist and cellpose take what such a network gives and make numbers of objects by themselves, so they are
 * the only step: "stardist:prob=0.5:nms=0.4". "none" is a list of no steps. */
#ifndef TGI_POST_SPEC_H
#define TGI_POST_SPEC_H

#include "engine/base/status.h"

#include <stdint.h>

typedef enum tgi_post_kind {
    TGI_POST_SIGMOID,
    TGI_POST_SOFTMAX,
    TGI_POST_THRESHOLD,
    TGI_POST_OTSU,
    TGI_POST_FILL_HOLES,
    TGI_POST_MIN_SIZE,
    TGI_POST_LABEL,
    TGI_POST_STARDIST,
    TGI_POST_CELLPOSE
} tgi_post_kind;

typedef struct tgi_post_step {
    tgi_post_kind kind;
    double value;   /* of threshold */
    int64_t size;   /* of min-size, and of cellpose */
    int neighbours; /* of label: 4, 8, 6, 26; 0: not said */
    /* Of stardist and cellpose; what is not said is their default. */
    double prob, nms, flow;
    int64_t grid, niter;
    int rays_first;
} tgi_post_step;

#define TGI_POST_STEPS 8
#define TGI_POST_TEXT 128 /* a list, its 0 included */

typedef struct tgi_post_spec {
    int n;
    tgi_post_step step[TGI_POST_STEPS];
} tgi_post_spec;

/* TG_E_ARG: a step that is not known (the nearest is named), without its number, or out of order. */
tg_status tgi_post_parse(const char *text, tgi_post_spec *out, tgi_err *err);
/* 1: a step of this kind is in the list. */
int tgi_post_has(const tgi_post_spec *s, tgi_post_kind kind);
/* 1: values become a mask by a step of the list. */
int tgi_post_makes_mask(const tgi_post_spec *s);
/* 1: what comes out is 0 and 1, or numbers of objects: no means can be made of it. */
int tgi_post_gives_classes(const tgi_post_spec *s);
/* What `label` says of neighbours; 0: nothing. */
int tgi_post_neighbours(const tgi_post_spec *s);
/* 1: numbers of objects come out. */
int tgi_post_gives_numbers(const tgi_post_spec *s);
/* The step that makes objects of what StarDist or Cellpose give; NULL: there is none. */
const tgi_post_step *tgi_post_network(const tgi_post_spec *s);
/* Pixels that come out for one that goes in, in each direction. */
int tgi_post_grid(const tgi_post_spec *s);
/* "sigmoid", "min-size". Static. */
const char *tgi_post_name(tgi_post_kind kind);

#endif
