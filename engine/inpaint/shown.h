/* shown.h - frames that were made, as pictures of 8 bits for people: the last one, anew every second (--live), and each of them
 * beside the film (--save-frames). */
#ifndef TGI_SHOWN_H
#define TGI_SHOWN_H

#include "io/image.h"

typedef struct tgi_shown_how {
    const char *live; /* a PNG, or NULL; one that cannot be written is no matter of the film */
    const char *folder; /* made if it is not there; or NULL */
    int64_t first;      /* number of the first frame in the folder */
} tgi_shown_how;

typedef struct tgi_shown tgi_shown;

/* Of frames as `film` says; what `how` and `film` point to is borrowed. NULL: it asks for nothing. Returned; tgi_shown_free. */
tg_status tgi_shown_new(const tgi_image_info *film, const tgi_shown_how *how, tgi_shown **out,
                        tgi_err *err);
void tgi_shown_free(tgi_shown **s);
/* All that it holds and will hold; 0 of NULL. */
size_t tgi_shown_bytes(const tgi_shown *s);
/* Frame k, 0 the first, rows without gaps. NULL: nothing is done. TG_E_IO, TG_E_NO_SPACE: of the folder. */
tg_status tgi_shown_put(tgi_shown *s, int64_t k, const void *pixels, tgi_err *err);

#endif
