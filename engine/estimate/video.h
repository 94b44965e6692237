/* video.h - what ProPainter takes for a film of a size and length: the parts of `tegula estimate video`. */
#ifndef TGI_ESTIMATE_VIDEO_H
#define TGI_ESTIMATE_VIDEO_H

#include "engine/estimate/estimate.h"
#include "engine/inpaint/pp_order.h"

typedef struct tgi_video_film {
    int64_t width, height, frames;
    tgi_pp_settings set;
} tgi_video_film;

typedef enum tgi_video_kind {
    TGI_VIDEO_FP32,
    TGI_VIDEO_FP16,
    TGI_VIDEO_BF16,
    TGI_VIDEO_KINDS
} tgi_video_kind;

typedef struct tgi_video_need {
    uint64_t peak,
        least;        /* bytes on the processor: all in memory, as little as scratch allows */
    uint64_t scratch; /* bytes of it then */
    /* Of a GPU, its context not counted. Planned for one (--device cuda) with room for all that may stay there: 0 where it does not
     * compute so. Else the networks of the processor, and half of that. */
    uint64_t device[TGI_VIDEO_KINDS];
    double flops;      /* of the whole film */
    double seconds[2]; /* on the processor: the least and the most that masks may make of it */
} tgi_video_need;

/* Settings of the question, at a size and length of its own. */
tgi_video_film tgi_video_film_of(const tgi_question *q, int64_t width, int64_t height,
                                 int64_t frames);
/* Is it planned for a GPU, by the plugin that would compute it? */
int tgi_video_is_far(const tgi_question *q);
/* The least of a GPU's memory that does; 0: it does not compute so. */
tg_status tgi_video_least_device(const tgi_question *q, const tgi_video_film *f,
                                 tgi_video_kind kind, uint64_t *out, tgi_err *err);
/* Plan it with the kernels of the machine that is asked for. TG_E_ARG: too small; TG_E_DEVICE: no plugin. */
tg_status tgi_video_plan(const tgi_question *q, const tgi_video_film *f, int bf16,
                         tgi_video_need *out, tgi_err *err);

/* ---- GPUs (video_gpus.c) ----------------------------------------------------------------- */

/* Of those of the table with kernels and the precision, the one of the least memory that holds `bytes`; NULL: none. */
const tgi_gpu *tgi_video_smallest(const tgi_gpus *t, tgi_video_kind kind, uint64_t bytes);
/* Members "device" and, where --gpu or --price name GPUs, "gpus". */
tg_status tgi_video_put_gpus(const tgi_question *q, const tgi_gpus *t, const tgi_video_film *f,
                             const tgi_video_need *n, tgi_jw *w, tgi_err *err);

/* ---- Beside what is published (video_beside.c) ------------------------------------------- */

/* Members "published", "beside", "by_gpu_memory" and "said_to_save", of a film of this size. */
tg_status tgi_video_put_beside(const tgi_question *q, const tgi_gpus *t,
                               const tgi_video_film *f, tgi_jw *w, tgi_err *err);

#endif
