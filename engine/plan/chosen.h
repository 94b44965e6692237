/* chosen.h - which axis the planes lie along that --planes names. */
#ifndef TGI_CHOSEN_H
#define TGI_CHOSEN_H

#include "engine/base/spec.h"

typedef struct tgi_chosen {
    char letter;  /* of the only axis that they differ in; 'I': they differ in several; 0: there
                     is  one plane */
    int64_t step; /* along that axis from one to the next; 0: not always the same */
} tgi_chosen;

/* Of `count` planes of a resolved spec, numbered over n axes, last fastest. */
tgi_chosen tgi_chosen_axis(const tgi_planes_spec *p, int64_t count, int n, const char *letter,
                           const int64_t *size);

/* A size or an interval along `letter`, of which every step-th is taken; 0: unknown. */
double tgi_chosen_scale(const tgi_chosen *c, char letter, double each);

#endif
