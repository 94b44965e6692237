/* scenes.h - a method for each scene of a film: nothing comes from behind a cut.
 *
 * One scene's method is open at a time; its memory is given back before the next one takes its own. So the plan is that of
 * the scene that takes most, and what a scene would take beyond that, after the plan was made smaller, it makes smaller, too. */
#ifndef TGI_SCENES_H
#define TGI_SCENES_H

#include "engine/inpaint/method.h"

typedef struct tgi_scenes_how {
    int64_t lo, hi;       /* frames of the film */
    int64_t first, until; /* of them, those that will be made */
    const int64_t *
        cut; /* borrowed: first frames of scenes, ascending; others than those within lo and hi do not count */
    int64_t n_cuts;
    int64_t
        least; /* frames of a scene: a shorter one is joined to the next, the last to the one before */
    void *user;
    /* A method for frames [lo, hi), planned. */
    tg_status (*open)(void *user, int64_t lo, int64_t hi, tgi_method **out, tgi_err *err);
} tgi_scenes_how;

/* Returned; its ops' free. */
tg_status tgi_scenes_new(const tgi_scenes_how *how, tgi_method **out, tgi_err *err);
/* Scenes; those that were joined. */
int64_t tgi_scenes_count(const tgi_method *m);
int64_t tgi_scenes_joined(const tgi_method *m);

#endif
