/* post_made.h - the two sources of --post: of steps one behind the other (post.c), and of what StarDist and Cellpose
 * give (post_network.c). post_made.c asks the one at hand. */
#ifndef TGI_POST_MADE_H
#define TGI_POST_MADE_H

#include "engine/post/post.h"

/* See the functions of post.h. */
typedef struct tgi_post_made_ops {
    tgi_post_shape (*shape)(const tgi_source *s);
    int64_t (*plane)(const tgi_source *s, const tgi_post_place *at);
    tg_status (*numbers)(tgi_source *s, const tgi_post_place *at, const uint32_t **row,
                         tgi_err *err);
    tg_status (*intensity)(tgi_source *s, const tgi_post_place *at, int channel, double *dst,
                           tgi_err *err);
    tg_status (*tick)(tgi_source *s, const char *phase, double fraction, tgi_err *err);
    size_t (*least)(const tgi_source *s);
    size_t (*most)(const tgi_source *s);
    size_t (*beside)(const tgi_source *s); /* optional: it is the least */
    size_t (*scratch)(const tgi_source *s);
    tg_status (*settle)(tgi_source *s, size_t bytes, const char *folder, tgi_err *err);
} tgi_post_made_ops;

typedef struct tgi_post_made {
    tgi_source source;
    const tgi_post_made_ops *made;
} tgi_post_made;

tg_status tgi_post_open_steps(tgi_source *inner, const tgi_post_opts *o, tgi_source **out,
                              tgi_err *err);
tg_status tgi_post_open_network(tgi_source *inner, const tgi_post_opts *o, tgi_source **out,
                                tgi_err *err);

#endif
