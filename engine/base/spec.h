/* spec.h - the small languages inside option values: "80%", "512x512", "0:10,:,5:", "0,2,5-9".
 *
 * Text in, plain struct out, nothing else: no file is touched and no image is known yet. What
 * can only be judged against an image (is the box inside?) has a `resolve` of its own. Every
 * parser refuses trailing characters, signs, blanks and numbers beyond int64; the detail quotes
 * the value and says what would be right. Outputs are written only on TG_OK. */
#ifndef TGI_SPEC_H
#define TGI_SPEC_H

#include "engine/base/region.h"
#include "engine/base/status.h"

/* ---- memory budget: "1GiB" or "80%" ---- */
typedef struct tgi_ram_spec {
    uint64_t bytes; /* 0 when a percentage was given */
    double percent; /* of what is free, (0,100]; 0 when bytes were given */
} tgi_ram_spec;
tg_status tgi_ram_parse(const char *text, tgi_ram_spec *out, tgi_err *err);

/* ---- tile: "auto", "N" (NxN), "HxW", "DxHxW" ---- */
typedef struct tgi_tile_spec {
    bool automatic;
    int64_t v[3]; /* z,y,x in output pixels; z is 0 when not stated; all 0 when automatic */
} tgi_tile_spec;
tg_status tgi_tile_parse(const char *text, tgi_tile_spec *out, tgi_err *err);

/* ---- region of interest: "z0:z1,y0:y1,x0:x1" or "y0:y1,x0:x1", bounds may be empty ---- */
#define TGI_ROI_OPEN INT64_MAX /* "to the end" */
typedef struct tgi_roi_spec {
    tgi_range ax[3]; /* z,y,x; [0, TGI_ROI_OPEN) where not stated */
} tgi_roi_spec;
tg_status tgi_roi_parse(const char *text, tgi_roi_spec *out, tgi_err *err);
/* The box inside an image of `extent` z,y,x; TG_E_ARG when it reaches beyond, naming the axis.
 */
tg_status tgi_roi_resolve(const tgi_roi_spec *s, const int64_t extent[3], tgi_range out[3],
                          tgi_err *err);

/* For the end of a detail: of "0:12:2", a range with a step, which no option takes, what to write; else nothing. Cut to cap;
 * returns buf. */
const char *tgi_steps_text(const char *item, char *buf, size_t cap);

/* ---- planes: "0,2,5-9", "5:10", "10-" ---- */
#define TGI_PLANES_MAX 64
typedef struct tgi_planes_spec {
    int n;                           /* 0: all planes */
    tgi_range range[TGI_PLANES_MAX]; /* ascending, apart, half open; the last hi may be open */
} tgi_planes_spec;
tg_status tgi_planes_parse(const char *text, tgi_planes_spec *out, tgi_err *err);
/* Close an open end at n_planes, or (n == 0) take all; TG_E_ARG when a plane is not there. */
tg_status tgi_planes_resolve(tgi_planes_spec *s, int64_t n_planes, int64_t *count,
                             tgi_err *err);
/* What is chosen, in one spelling whatever it was written as: "0,2-9", an open end as "10-"; nothing: "all". Cut to
 * cap, of which TGI_PLANES_TEXT is enough; returns buf. */
#define TGI_PLANES_TEXT (TGI_PLANES_MAX * 42)
const char *tgi_planes_text(const tgi_planes_spec *s, char *buf, size_t cap);
/* Number of the i-th chosen plane of a resolved spec, i in [0, count); -1 outside. */
int64_t tgi_planes_at(const tgi_planes_spec *s, int64_t i);

/* ---- normalisation ---- */
typedef enum tgi_normalize_kind {
    TGI_NORM_NONE,
    TGI_NORM_SCALE,      /* x * a + b */
    TGI_NORM_MINMAX,     /* (x - min) / (max - min) */
    TGI_NORM_PERCENTILE, /* (x - p(a)) / (p(b) - p(a)), a < b in [0,100] */
    TGI_NORM_ZSCORE,     /* (x - mean) / standard deviation */
    TGI_NORM_CHAIN       /* steps of a description, one after the other */
} tgi_normalize_kind;
/* A step of a chain. Bounds of CLIP and SPAN are constants, or numbers of the image that is being loaded. */
typedef enum tgi_norm_op {
    TGI_NORM_LINEAR, /* x * a + b */
    TGI_NORM_CLIP,   /* to [a, b] */
    TGI_NORM_CENTRE, /* (x - mean) / (deviation + eps) */
    TGI_NORM_SPAN    /* (x - a) / (b - a + eps) */
} tgi_norm_op;
typedef enum tgi_norm_from {
    TGI_FROM_HERE, /* the step's own, of channel c: a[c % n] */
    TGI_FROM_MIN,
    TGI_FROM_MAX,
    TGI_FROM_LOW, /* the percentiles a and b of the normalisation */
    TGI_FROM_HIGH
} tgi_norm_from;
typedef struct tgi_norm_step {
    tgi_norm_op op;
    tgi_norm_from a_from, b_from;
    const double *a, *b; /* views */
    int n;
    double eps;
} tgi_norm_step;
#define TGI_NORM_STEPS 12
typedef struct tgi_normalize_spec {
    tgi_normalize_kind kind;
    double a, b; /* of a chain: percentiles, where `ranked` */
    /* Of a chain alone: */
    int n_step;
    int measures; /* it needs numbers of the image */
    int ranked; /* 1: by linear interpolation; 2: the smallest value with that share at or below it */
    int by_channel; /* numbers of each channel for itself; else of all together */
    int by_item;    /* numbers of each plane or volume; else of all of them */
    tgi_norm_step step[TGI_NORM_STEPS];
    /* What is done with the network's results by numbers of the image: CENTRE gives them its mean and deviation, SPAN
     * scales them as it would the image. */
    int has_back;
    tgi_norm_step back;
} tgi_normalize_spec;
tg_status tgi_normalize_parse(const char *text, tgi_normalize_spec *out, tgi_err *err);
/* True when a first pass over the image is needed. */
bool tgi_normalize_needs_stats(const tgi_normalize_spec *s);
/* 0: it takes no percentiles; else how, as in `ranked`. */
int tgi_normalize_ranked(const tgi_normalize_spec *s);

/* ---- output element type: TG_DTYPE_NONE means "same as the input" ---- */
tg_status tgi_dtype_spec_parse(const char *text, tg_dtype *out, tgi_err *err);

/* ---- compression: "zstd", "deflate:9" ---- */
typedef enum tgi_compress_kind {
    TGI_COMPRESS_NONE,
    TGI_COMPRESS_DEFLATE,
    TGI_COMPRESS_ZSTD,
    TGI_COMPRESS_LZW
} tgi_compress_kind;
typedef struct tgi_compress_spec {
    tgi_compress_kind kind;
    int level; /* -1: the codec's default */
} tgi_compress_spec;
tg_status tgi_compress_parse(const char *text, tgi_compress_spec *out, tgi_err *err);
const char *tgi_compress_name(tgi_compress_kind k);

/* ---- a point: "z,y,x" or "y,x" (z = -1 when not stated) ---- */
tg_status tgi_at_parse(const char *text, int64_t out[3], tgi_err *err);

/* ---- axes: capital letters, each once, Y and X among them, at most 8 ---- */
tg_status tgi_axes_parse(const char *text, tgi_err *err);

/* ---- how far samples are apart: "500ms", "2s", or "10u", every tenth update ---- */
typedef struct tgi_interval_spec {
    int64_t ms, updates; /* one of them is 0 */
} tgi_interval_spec;
tg_status tgi_interval_parse(const char *text, tgi_interval_spec *out, tgi_err *err);

/* ---- helpers shared by the option table ---- */
/* A whole decimal number within [lo,hi]; `what` names it in the detail ("level"). */
tg_status tgi_int_parse(const char *text, int64_t lo, int64_t hi, const char *what,
                        int64_t *out, tgi_err *err);
/* Index of `text` in "a|b|c", or -1. */
int tgi_choice_index(const char *choices, const char *text);
/* Number of single-character insertions, removals, replacements and swaps of neighbours between
 * two words (those longer than 32 characters are cut). */
int tgi_edit_distance(const char *a, const char *b);

/* The nearest of the names that are offered to one that is none of them. Near is at most a
 * third of the letters and one more; of equals the first offered. */
typedef struct tgi_nearest {
    const char *asked, *found; /* views; found: NULL while nothing was near */
    int best;                  /* a name must be nearer than this */
} tgi_nearest;
tgi_nearest tgi_nearest_to(const char *asked);
/* `shown` is what `found` becomes when `name` is nearer than all before. */
void tgi_nearest_offer(tgi_nearest *n, const char *name, const char *shown);
/* For the end of a detail: '; the nearest is "NAME"', or nothing. Cut to cap; returns buf. */
const char *tgi_nearest_text(const tgi_nearest *n, char *buf, size_t cap);

#endif
