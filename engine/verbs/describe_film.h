/* describe_film.h - the member `film` of an image that is one. */
#ifndef TGI_DESCRIBE_FILM_H
#define TGI_DESCRIBE_FILM_H

#include "engine/base/json.h"
#include "io/image.h"

/* Nothing where `s` is no film. */
void tgi_describe_film(tgi_jw *w, const tgi_source *s);

#endif
