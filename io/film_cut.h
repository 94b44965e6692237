/* film_cut.h - a part of a film: which frames are read, said by their numbers or by when they are shown. */
#ifndef TGI_FILM_CUT_H
#define TGI_FILM_CUT_H

#include "io/av/av.h"
#include "io/image.h"

/* Frames [first, until) of `all`, when each of them is shown from the first one on. TG_E_ARG: the texts say
 * no such frames, or none. `time`: of frame k in ticks, as tgi_av_ops says it. */
tg_status tgi_film_cut_find(const tgi_film_cut *c, const tgi_av_info *all,
                            int64_t (*time)(const tgi_av_film *f, int64_t k),
                            const tgi_av_film *film, int64_t *first, int64_t *until,
                            tgi_err *err);

/* Seconds of "90", "1:30", "00:01:30.04"; -1: it is no such text. */
double tgi_film_seconds(const char *text);

#endif
