/* inpaint.h - a film without what masks hide, as a source over the film: the same frames, of the same form, and in each
 * of them what is hidden comes from a method (method.h).
 *
 * So the rest of a job, which reads a film and writes one, is as it is for any network: order, segments, times, other
 * tracks, journal. Its network hands on what it gets.
 *
 * A film that is written holds the samples of the film that was read wherever nothing is hidden: not what its
 * pixels became as RGB and back. They are read once more for that, by a source of their own, frame by frame as
 * they are written (tgi_inpaint_put). */
#ifndef TGI_INPAINT_H
#define TGI_INPAINT_H

#include "engine/inpaint/at_size.h"
#include "engine/inpaint/cuts.h"
#include "engine/inpaint/extended.h"
#include "engine/inpaint/on_device.h"
#include "engine/inpaint/pp_order.h"
#include "engine/inpaint/shown.h"
#include "io/film_bypass.h"
#include "io/image.h"
#include "io/masks.h"
#include "io/weights.h"

typedef struct tgi_inpaint_how {
    /* Owned on TG_OK: */
    tgi_masks *masks;
    tgi_graph *network; /* of motions; NULL: each frame is filled by itself */
    tgi_weights
        *weights[3]; /* of ProPainter: motion, completion, generator; NULL: propagate.h */
    tgi_masks *
        small; /* with at_size: masks of the method's size; NULL: those of the film's size, made smaller */
    tgi_at_size *at_size; /* NULL: the method works at the film's size */
    tgi_cuts cuts;        /* each scene has a method of its own; of frames as they are read */
    tgi_source *behind;   /* the same film, split by TGI_FILM_PASSES_OUTSIDE; or NULL */

    tgi_canvas canvas;     /* where a film that was extended lies; height 0: it was not */
    int64_t height, width; /* of the method's frames */
    int shows;             /* nothing is removed: show.h */
    int reach, threads;
    tgi_pp_settings set; /* of ProPainter */
    int iterations;
    int no_cache;   /* what networks found in a frame is made again in each step */
    unsigned flags; /* of its networks: TGI_NET_EXACT, TGI_NET_KINDS */
    const tgi_kernel_set *be;
    const char *scratch; /* a folder, borrowed; or NULL */
    tgi_shown_how shown;
} tgi_inpaint_how;

/* `inner` is owned on TG_OK. TG_E_ARG: its planes are no frames. */
tg_status tgi_inpaint_open(tgi_source *inner, const tgi_inpaint_how *how, tgi_source **out,
                           tgi_err *err);
/* 1: the source is such a one. Of any other the functions below answer nothing. */
int tgi_inpaint_is(const tgi_source *s);
/* Memory and scratch of the method, a part of the source's codec_bytes. */
size_t tgi_inpaint_bytes(const tgi_source *s);
uint64_t tgi_inpaint_disk(const tgi_source *s);
/* Of the method's memory, what a GPU would hold if it computed; 0: nothing. */
size_t tgi_inpaint_networks(const tgi_source *s);
/* The size of the frames that the method works on, and which part of the film's they are. */
void tgi_inpaint_frames(const tgi_source *s, int64_t *height, int64_t *width, tgi_crop *part);
/* Operations of a frame. */
double tgi_inpaint_flops(const tgi_source *s);
/* Seconds of all frames (through a pipe, of one), those around a part too, where `of` says those of a network's pass; the most, or the least, that
 * masks may make of it. */
double tgi_inpaint_seconds(const tgi_source *s, int least, tgi_sched_pass *of, void *user);
/* "81 frames, 20 of them in memory, ..." */
void tgi_inpaint_text(const tgi_source *s, char *buf, size_t cap);
/* What somebody should know of the settings, a sentence, or "". */
void tgi_inpaint_note(const tgi_source *s, char *buf, size_t cap);
/* Take less memory: 1 if it can. Before the first frame is read. */
int tgi_inpaint_shrink(tgi_source *s);
const tgi_masks *tgi_inpaint_masks(const tgi_source *s);
/* Take the memory that was planned: a refusal comes before anything is made. */
tg_status tgi_inpaint_begin(tgi_source *s, tgi_err *err);
/* Begun on a device: 1 where the system pinned no memory, so that copies to and from it wait. */
int tgi_inpaint_copies_wait(const tgi_source *s);
const tgi_cuts *tgi_inpaint_cuts(const tgi_source *s);
/* Scenes of fewer frames than the method takes, which are parts of others now. */
int64_t tgi_inpaint_joined(const tgi_source *s);
const tgi_canvas *tgi_inpaint_canvas(const tgi_source *s);
/* The network of motions; NULL: there is none. */
const tgi_graph *tgi_inpaint_network(const tgi_source *s);
/* Weights i of ProPainter; NULL: there are none. */
const tgi_weights *tgi_inpaint_weights(const tgi_source *s, int i);
/* Compute with these kernels, or networks on a device (NULL: on none): another plan than before, if they are others.
 * What was made is forgotten then. */
tg_status tgi_inpaint_use(tgi_source *s, const tgi_kernel_set *be, const tgi_on_device *on,
                          tgi_err *err);
/* Forget what was made and the plan, before a device is closed that it computes on. */
void tgi_inpaint_leave(tgi_source *s);
/* 1: its method has networks that a device can compute. */
int tgi_inpaint_may_leave_processor(const tgi_source *s);
/* What they take of a device. */
void tgi_inpaint_need(const tgi_source *s, tgi_sched_need *out);
/* 1: it has samples for tgi_inpaint_put. */
int tgi_inpaint_puts(const tgi_source *s);
/* Frames that were made, and that were hidden wholly. */
int64_t tgi_inpaint_all_hidden(const tgi_source *s);
/* Tell `fn`, on this thread alone, how far the frames are that the next one needs. */
void tgi_inpaint_watch(tgi_source *s, void (*fn)(void *user, double fraction), void *user);
/* Samples of frame k where nothing is hidden, into a frame that is written. */
tg_status tgi_inpaint_put(tgi_source *s, int64_t k, tgi_film_bypass *how,
                          const tgi_av_blank *to, tgi_err *err);
/* Frame k, and what of it is known, until the next one is made; for previews, which take so many bytes more. */
size_t tgi_inpaint_look_bytes(const tgi_source *s);
tg_status tgi_inpaint_look(tgi_source *s, int64_t k, tgi_propagated *out, tgi_motion *motion,
                           tgi_err *err);

#endif
