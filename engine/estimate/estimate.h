/* estimate.h - what the estimators share. Each answers with the members of an open JSON object
 * (docs/reference/json.md): the settings first, defaults included, then the result. */
#ifndef TGI_ESTIMATE_H
#define TGI_ESTIMATE_H

#include "engine/base/ctx.h"
#include "engine/base/json.h"
#include "engine/graph/graph.h"
#include "engine/settings/gpus.h"
#include "engine/settings/machine.h"
#include "engine/settings/opts.h"
#include "tegula_estimate.h"

/* What `tegula estimate` was asked. */
typedef struct tgi_question {
    tg_ctx *ctx;
    const tg_opts *o;
    const char *const *files;
    size_t n_files;
    tgi_machine machine; /* this one, or that of --machine */
} tgi_question;

/* One file per estimator. What does not fit is TG_E_BUDGET with the object complete. */
tg_status tgi_estimate_data(const tgi_question *q, tgi_jw *w, tgi_err *err);
tg_status tgi_estimate_batch(const tgi_question *q, tgi_jw *w, tgi_err *err);
tg_status tgi_estimate_training(const tgi_question *q, tgi_jw *w, tgi_err *err);
tg_status tgi_estimate_gpu(const tgi_question *q, tgi_jw *w, tgi_err *err);
tg_status tgi_estimate_video(const tgi_question *q, tgi_jw *w, tgi_err *err);

/* n factors, each at least 1, multiplied: TG_E_ARG beyond 2^63. `what` names the product. */
tg_status tgi_product(const char *what, const int64_t *factor, int n, uint64_t *out,
                      tgi_err *err);

/* Memory that --ram gives, or what is free; `where` says which, static. */
uint64_t tgi_estimate_available(const tgi_question *q, const char **where);
/* --size, or the default size of images; *channels 0: not given. */
void tgi_estimate_dims(const tg_opts *o, int64_t *height, int64_t *width, int64_t *channels);
/* The largest power of two <= v; 0 for 0. */
uint64_t tgi_power_of_two(uint64_t v);

/* What --vram and --gpu name, or --machine has (gpus_asked.c): TG_E_ARG when none is given.
 * Returned; tgi_free. */
tg_status tgi_gpus_asked(const tgi_question *q, tgi_gpus **out, tgi_err *err);

/* ---- Real data (data_scan.c, list_count.c) ----------------------------------------------- */

#define TGI_MAX_REASONS 12

typedef struct tgi_scan {
    int64_t images, planes, lists, list_samples;
    int64_t videos, frames; /* a frame is a picture as an image is */
    int64_t not_counted;    /* files */
    uint64_t decoded_bytes; /* of all images as they are, of frames as RGB bytes */
    uint64_t file_bytes;    /* of what was counted */
    uint64_t largest_bytes; /* of one image or frame */
    int64_t compressed;     /* images whose pixels have to be decoded, and videos */
    int floats;             /* all pixels are of 4 bytes or more and floating point */
    int n_reasons;
    struct {
        char why[200]; /* the first file's reason, its name in front */
        char kind[24]; /* "mp4" */
        int64_t files;
    } reason[TGI_MAX_REASONS]; /* by kind of file, the last for all the others */
} tgi_scan;

/* Add what lies at `path`: a folder (and those in it, no links), an image, a list. A file that
 * cannot be counted is in `reason`; one that was named itself is an error. */
tg_status tgi_scan_path(tgi_scan *s, const char *path, tgi_err *err);

/* Count the samples of a .json (elements of the top array, or of the longest array that is a
 * member of the top object, whose name goes to `member`) or a .jsonl file (lines that are not
 * blank). The file is streamed; memory does not depend on it. */
tg_status tgi_list_count(const char *path, int64_t *samples, char *member, size_t cap,
                         tgi_err *err);

/* ---- Models (batch_plan.c) --------------------------------------------------------------- */

/* Extents z,y,x of a model's first input: --size, else what the file declares, else 224 or the
 * next that works. `raw` is the model as imported: a finished graph has forgotten what was
 * declared where it needs it no more. TG_E_ARG when the network does not take the --size. */
tg_status tgi_model_extent(const tgi_graph *g, const tgi_graph *raw, const tg_opts *o,
                           int64_t ext[3], tgi_err *err);
/* "224x224" or "16x224x224". */
void tgi_extent_text(const tgi_graph *g, const int64_t ext[3], char *buf, size_t cap);

/* ---- Behind the calls of tegula_estimate.h ----------------------------------------------- */

tg_status tgi_estimate_image_bytes(int64_t n, int64_t height, int64_t width, int64_t channels,
                                   tg_dtype dtype, uint64_t *out);
tg_status tgi_estimate_text_bytes(int64_t n, int64_t length, tg_dtype dtype, uint64_t *out);
tg_status tgi_estimate_vqa(const tg_vqa_spec *spec, tg_vqa_size *out);
tg_data_strategy tgi_estimate_strategy(uint64_t needed, uint64_t available);
const char *tgi_data_strategy_name(tg_data_strategy s);
tg_status tgi_formula_batch(const tg_batch_spec *spec, tg_batch_result *out);
tg_status tgi_formula_training(tg_ctx *ctx, const tg_train_spec *spec, tg_train_size *out);

#endif
