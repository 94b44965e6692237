/* preview_inside.h - what a preview holds, and where its crops lie. Private to job_preview.c and
 * preview_places.c. */
#ifndef TGI_PREVIEW_INSIDE_H
#define TGI_PREVIEW_INSIDE_H

#include "engine/job/job.h"
#include "engine/job/pass.h"
#include "engine/verbs/preview_pass.h"
#include "engine/verbs/preview_picture.h"

#define TGI_PREVIEW_LOOK_ROWS 8 /* rows of a crop that are looked at */
#define TGI_PREVIEW_LOOKS 64    /* rows of crops that are looked at, at most */

typedef struct tgi_preview_place {
    int64_t at[3]; /* z,y,x of the crop in output pixels */
    double score;
} tgi_preview_place;

/* How an axis of the output lies over the image's region: out = in * up / down - lead. */
typedef struct tgi_preview_axis {
    int64_t up, down, lead;
    int64_t size, align; /* of a crop, in output pixels */
    int64_t extent;
} tgi_preview_axis;

typedef struct tgi_preview {
    tg_job *job;
    const tgi_stage *stage;
    const tgi_net *net; /* the stage's */
    tgi_preview_axis ax[3];
    int64_t item, slice; /* slice: of a volume, in output pixels */
    tgi_preview_place place[TGI_PREVIEW_CROPS];
    int n_places;
    tgi_tiling tiling;
    tgi_pass pass;
    tgi_range *need; /* two intervals per value */
    int at_once;     /* crops come out of one pass over the image: */
    tgi_preview_pass all;
    tgi_source *decoded;  /* its rows, where --scratch keeps them */
    tgi_reserve *reserve; /* what is held beside it */
    void *staging, *scratch;
    size_t staging_bytes;
    tgi_panel raw, result;
    float *taken;      /* all channels under a crop; the frame's own are shown */
    int64_t origin[3]; /* of the crop that is being computed */
    tgi_picture picture;
    size_t peak; /* of all the above and what is held */
    /* Of the job, which has them again behind the preview. */
    const tgi_picture_writer *writer;
    char *no_scratch;
} tgi_preview;

/* Where rows are read from. */
static inline tgi_source *tgi_preview_source_of(const tgi_preview *v)
{
    return v->decoded ? v->decoded : v->job->source;
}

/* The first axis of z,y,x that is one of the network's. */
int tgi_preview_first_axis(const tg_job *job);
/* Fill ax[]. */
void tgi_preview_lay_axes(tgi_preview *v);
/* Pixels of the region under output pixels [lo, hi): one at least, the same number for the same
 * length. */
tgi_range tgi_preview_input_of(const tgi_preview *v, int k, int64_t lo, int64_t hi);
/* A crop at `lo` or, where the network runs in boxes, the nearest one inside a single cell. */
int64_t tgi_preview_inside_cell(const tgi_preview *v, int k, int64_t lo);
/* What the crop at a place is in the network's output. */
tgi_range tgi_preview_core_of(const tgi_preview *v, int k, const int64_t at[3]);
/* The slice that is shown beside slice z of the output. */
int64_t tgi_preview_slice_of(const tgi_preview *v, int64_t z);

/* The one place that --at names. */
tg_status tgi_preview_place_given(tgi_preview *v, const int64_t at[3], tgi_err *err);
/* The frame of the source, a film, that is shown then; `option` says so in words. TG_E_ARG. */
tg_status tgi_preview_frame_at(const tg_job *job, const char *option, const char *text,
                               int64_t *out, tgi_err *err);
/* The item, and the slice of it, that the frame shown at a time becomes. */
tg_status tgi_preview_frame_given(tgi_preview *v, const char *text, tgi_err *err);
/* The places whose pixels vary most; rows go through v->staging. */
tg_status tgi_preview_densest_places(tgi_preview *v, tgi_err *err);

#endif
