/* film_whole.h - whether all of a film is there, by what its file says of itself, and what is not, in words. */
#ifndef TGI_FILM_WHOLE_H
#define TGI_FILM_WHOLE_H

#include "io/av/av.h"

/* What the film lacks, or shows not, which is read all the same; "" nothing. `there`: frames that are there, of more that its
 * header declares; 0: it declares no more. */
void tgi_film_tell_losses(const tgi_av_info *a, int64_t there, char *to, size_t cap);
/* TG_E_FORMAT: it has fewer frames than it declares, or breaks off amid something; `truncated`: such is taken. *empty:
 * frames that an AVI at `path` counts and that have no picture; *of_cut: as `there` above; each is set where it is not 0. */
tg_status tgi_film_check_whole(const tgi_av_info *a, const char *path, int truncated,
                               int64_t *empty, int64_t *of_cut, tgi_err *err);

#endif
