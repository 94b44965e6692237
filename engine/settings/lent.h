/* lent.h - arrays in the caller's memory that a set of options names: sources and sinks
 * (tegula_array.h). */
#ifndef TGI_LENT_H
#define TGI_LENT_H

#include "engine/base/status.h"
#include "engine/base/tensor.h"
#include "tegula_array.h"

typedef enum tgi_lent_way { TGI_LENT_SOURCE, TGI_LENT_SINK } tgi_lent_way;

typedef struct tgi_lent {
    tgi_lent_way way;
    char *name;            /* of the network's input or output; NULL: the first */
    const tg_array *array; /* the caller's */
} tgi_lent;

/* Name one, another one in its place, or with `array` NULL none any more. */
tg_status tgi_opts_lend(tg_opts *o, tgi_lent_way way, const char *name, const tg_array *array,
                        tgi_err *err);
/* The i-th of one way in the order given; NULL behind the last. View until the next change. */
const tgi_lent *tgi_opts_lent(const tg_opts *o, tgi_lent_way way, int i);

/* The array as it is now, and its shape. TG_E_ARG: it is none. */
tg_status tgi_lent_look(const tg_array *array, tg_array *now, tgi_desc *shape, tgi_err *err);

/* As tgi_opts_copy and tgi_opts_free do with the rest. */
tg_status tgi_lent_copy(tg_opts *to, const tg_opts *from, tgi_err *err);
void tgi_lent_free(tg_opts *o);

#endif
