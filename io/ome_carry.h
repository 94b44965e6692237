/* ome_carry.h - elements of an OME-XML that go into the output as they are, out of libxml2's streaming reader. */
#ifndef TGI_OME_CARRY_H
#define TGI_OME_CARRY_H

#include "io/ome_kept.h"

#include <stdbool.h>

typedef struct tgi_ome_carry tgi_ome_carry;

/* Where the reader stands. */
typedef struct tgi_ome_where {
    bool before; /* no Image was met yet */
    bool wanted; /* in the Image that is read, or behind it and in front of the next */
    bool pixels; /* in its Pixels */
    bool alone;  /* there was no other Image so far */
} tgi_ome_where;

/* `malformed` gets what should be a number and is none, and outlives it. NULL: no memory. */
tgi_ome_carry *tgi_ome_carry_new(char *malformed);
/* An element begins; `reader`: xmlTextReaderPtr. True: it and all in it are taken, and the caller does not look
 * at it. */
bool tgi_ome_carry_start(tgi_ome_carry *c, void *reader, const char *name,
                         const tgi_ome_where *at);
/* Within one that is taken: text, or its end. False: nothing is. */
bool tgi_ome_carry_text(tgi_ome_carry *c, const char *text);
bool tgi_ome_carry_end(tgi_ome_carry *c, const char *name);
/* The document is of an older schema, whose elements are others than those of the one that is written: of it times, positions and
 * settings of channels are taken alone. */
void tgi_ome_carry_old(tgi_ome_carry *c);
/* What was taken; NULL and TG_OK: nothing. *dropped: some was too much to keep, and nothing of it is. */
tg_status tgi_ome_carry_take(tgi_ome_carry **c, tgi_ome_kept **out, bool *dropped,
                             tgi_err *err);
void tgi_ome_carry_free(tgi_ome_carry **c);

#endif
