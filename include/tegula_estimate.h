/*
 * tegula_estimate.h - will it fit? Data sets, batches, training and GPUs, before anything runs.
 *
 * EXPERIMENTAL: the declarations of this header may still change from one version to the next.
 *
 * The plain formulas are functions of structs: they read no file, allocate nothing and may be
 * called from any thread. What looks at real things (a folder of images, a model, a job) is
 * tg_estimate_json, which answers with one JSON object, all settings and defaults in it.
 *
 * UNITS. Sizes are bytes; GiB is 1024^3 bytes and GB is 1000^3, and the two are never mixed but
 * where a published formula does so, which is said there. Structs start with their own size
 * (`.size = sizeof x`); zero in any other field means its default, which is named beside it.
 *
 * Sources: docs/reference/estimators.md derives each formula, works an example by hand and
 * lists where published samples disagree with their own formula. There the formula wins.
 */
#ifndef TEGULA_ESTIMATE_H
#define TEGULA_ESTIMATE_H

#include <tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data sets --------------------------------------------------------------------------- */

#define TG_DATA_HEIGHT 224 /* defaults of the specs below */
#define TG_DATA_WIDTH 224
#define TG_DATA_CHANNELS 3
#define TG_DATA_TEXT_LENGTH 128
#define TG_DATA_QUESTION_LENGTH 32
#define TG_DATA_ANSWER_LENGTH 32
#define TG_DATA_METADATA_BYTES 1024

/**
 * Count the bytes of n images as one array: n x height x width x channels x bytes of dtype.
 *
 * @param out written only on TG_OK.
 * @return TG_E_ARG  a number below 1, dtype TG_DTYPE_NONE, or more than 2^63 bytes.
 * @thread safe.
 * @source the definition of a dense array; 1000 x 224 x 224 x 3 x float32 = 602,112,000 bytes.
 */
TG_API tg_status tg_estimate_image_bytes(int64_t n, int64_t height, int64_t width,
                                         int64_t channels, tg_dtype dtype, uint64_t *out);

/**
 * Count the bytes of n texts of `length` tokens: n x 2 x length x bytes of dtype. The 2 is the
 * ids and the attention mask, which a loader keeps beside them in the same type.
 *
 * @return TG_E_ARG as tg_estimate_image_bytes.
 * @thread safe.
 */
TG_API tg_status tg_estimate_text_bytes(int64_t n, int64_t length, tg_dtype dtype,
                                        uint64_t *out);

/** A visual-question data set: an image, a question and an answer per sample. */
typedef struct tg_vqa_spec {
    size_t size;
    int64_t samples;                 /* >= 1 */
    int64_t height, width, channels; /* pixels; TG_DATA_HEIGHT, _WIDTH, _CHANNELS */
    tg_dtype dtype;                  /* of pixels; float32 */
    int images_on_disk;      /* 1: images are read when they are needed, and take no part
                                in `total_bytes`; 0: they are preloaded */
    int64_t question_length; /* tokens; TG_DATA_QUESTION_LENGTH */
    int64_t answer_length;   /* tokens; TG_DATA_ANSWER_LENGTH */
    tg_dtype token_dtype;    /* int64 */
    int64_t metadata_bytes;  /* per sample: names, ids; TG_DATA_METADATA_BYTES; -1: none */
} tg_vqa_spec;

/** Bytes of a visual-question data set, part by part. */
typedef struct tg_vqa_size {
    size_t size;
    uint64_t image_bytes;    /* all images, preloaded or not */
    uint64_t question_bytes; /* by tg_estimate_text_bytes */
    uint64_t answer_bytes;   /* the same */
    uint64_t metadata_bytes; /* samples x metadata_bytes of the spec */
    uint64_t total_bytes;    /* what is in memory: the sum, without images on disk */
} tg_vqa_size;

/**
 * Count the bytes of a visual-question data set, part by part.
 *
 * @param spec borrowed; zero fields take their defaults. @param out written only on TG_OK.
 * @return TG_E_ARG  a size not of this version, a number out of range, more than 2^63 bytes.
 * @thread safe.
 */
TG_API tg_status tg_estimate_vqa(const tg_vqa_spec *spec, tg_vqa_size *out);

/** How a data set should be held. */
typedef enum tg_data_strategy {
    TG_DATA_SMALL,  /* needed < 50 % of available: preload it */
    TG_DATA_MEDIUM, /* needed < 2 x available: load when asked for, behind a cache */
    TG_DATA_LARGE   /* else: stream it, or map the files */
} tg_data_strategy;

/**
 * Choose the strategy that holds `needed_bytes` of data in `available_bytes` of memory. Exactly
 * half is medium, exactly twice is large. @thread safe.
 */
TG_API tg_data_strategy tg_estimate_strategy(uint64_t needed_bytes, uint64_t available_bytes);
/** The name of a strategy: "small", "medium" or "large"; static. @thread safe. */
TG_API const char *tg_data_strategy_name(tg_data_strategy s);

/* ---- Batches ----------------------------------------------------------------------------- */

#define TG_BATCH_LENGTH 128 /* tokens of a sample */
#define TG_BATCH_HIDDEN 768 /* width of its embedding */
#define TG_BATCH_SHARE 0.7  /* of what weights leave: the rest is the allocator's and others' */

/** What a sample and the weights take, for a model known by its parameters alone. */
typedef struct tg_batch_spec {
    size_t size;
    int64_t parameters;    /* >= 1, float32 */
    uint64_t memory_bytes; /* of one GPU; >= 1 */
    int64_t height, width; /* pixels of a sample, three float32 each; TG_DATA_HEIGHT, _WIDTH */
    int64_t length;        /* tokens; TG_BATCH_LENGTH; -1: no text */
    int64_t hidden;        /* TG_BATCH_HIDDEN */
} tg_batch_spec;

/** A batch by one of the two models. */
typedef struct tg_batch_size {
    uint64_t weights_bytes;   /* taken off the memory */
    uint64_t raw;             /* floor((memory - weights) x 0.7 / sample) */
    uint64_t batch;           /* the largest power of two <= raw; 0: not one sample fits */
    uint64_t shortfall_bytes; /* memory missing for one sample; 0 when batch >= 1 */
} tg_batch_size;

/** What tg_estimate_batch answers. */
typedef struct tg_batch_result {
    size_t size;
    uint64_t sample_bytes;   /* height x width x 3 x 4 + length x hidden x 4 */
    tg_batch_size published; /* weights = millions of parameters x 4 / 1000 "GB", subtracted
                                from the memory in GiB as if the units were the same */
    tg_batch_size exact;     /* weights = parameters x 4 bytes */
} tg_batch_result;

/**
 * Find the largest batch of float32 samples beside a model's weights, by the published formula
 * and by the exact one. They differ only in the unit of the weights.
 *
 * 110 million parameters, 16 GiB, 224 x 224 pixels and 128 x 768 of text: a sample is 995,328
 * bytes; raw 11,750 and 11,772; both 8192.
 *
 * @return TG_E_ARG     a size not of this version or a number out of range
 *         TG_E_BUDGET  not one sample fits by the exact formula; *out is filled and says what
 *                      is missing
 * @thread safe.
 */
TG_API tg_status tg_estimate_batch(const tg_batch_spec *spec, tg_batch_result *out);

/* ---- Training ---------------------------------------------------------------------------- */

/** How numbers are held while training. */
typedef enum tg_train_precision {
    TG_TRAIN_FP32,
    TG_TRAIN_O1, /* autocast: float32 weights and gradients, half copies of the weights that
                    products read, half activations where the operator has them */
    TG_TRAIN_O2  /* half weights, gradients and activations, a float32 copy of the weights */
} tg_train_precision;

/** What the optimizer keeps for each parameter. */
typedef enum tg_optimizer {
    TG_OPT_ADAM,     /* two float32 numbers per parameter */
    TG_OPT_ADAMW,    /* two */
    TG_OPT_SGD,      /* none */
    TG_OPT_MOMENTUM, /* one: SGD with momentum */
    TG_OPT_RMSPROP,  /* one */
    TG_OPT_ADAGRAD,  /* one */
    TG_OPT_AMSGRAD   /* three */
} tg_optimizer;

/** What is trained, and how. */
typedef struct tg_train_spec {
    size_t size;
    const char *model;     /* path of an ONNX file */
    int64_t height, width; /* of a sample, pixels; 0: what the model declares, else 224 */
    int64_t batch;         /* samples of one forward and backward pass; 1 */
    int64_t accumulation;  /* passes whose gradients are added before a step; 1 */
    int checkpointing;     /* 1: keep the borders of segments only, compute the rest again */
    tg_train_precision precision;
    tg_optimizer optimizer;
} tg_train_spec;

/** Bytes of one training step at its height, but for what kernels need while they run. */
typedef struct tg_train_size {
    size_t size;
    int64_t parameters;      /* that are trained: weights, scales and shifts */
    int64_t effective_batch; /* batch x accumulation */
    uint64_t weights_bytes;  /* and half or float32 copies beside them */
    uint64_t gradients_bytes;
    uint64_t optimizer_bytes;
    uint64_t activations_bytes; /* what the forward pass keeps for the backward pass */
    uint64_t stored_bytes;      /* of these with checkpointing: borders of segments */
    uint64_t segment_bytes;     /* of these with checkpointing: the largest segment */
    int64_t segments;           /* 0 without checkpointing */
    uint64_t total_bytes;
    uint64_t per_sample_bytes; /* activations of one sample */
} tg_train_size;

/**
 * Predict the memory of training a model from its graph. Activations are the tensors that
 * PyTorch's autograd keeps for each operator (docs/reference/estimators.md has the table), each
 * counted once.
 *
 * @param spec borrowed. @param out written only on TG_OK.
 * @return TG_E_ARG, TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED (the model), TG_E_NOMEM.
 *         Of an operator without a rule all operands and results count; tg_estimate_json names
 *         it in "notes".
 * @thread a context per thread.
 * @source rules: engine/estimate/saved.c; held to 15 % of torch.autograd's saved tensors by
 *         tests/estimate/saved_tensors.py.
 */
TG_API tg_status tg_estimate_training(tg_ctx *ctx, const tg_train_spec *spec,
                                      tg_train_size *out);

/* ---- Real things ------------------------------------------------------------------------- */

/**
 * Estimate what `tegula estimate WHAT [FILES]` prints, as one JSON object
 * (docs/reference/json.md).
 *
 *   "data"      a data set by its numbers, or folders, images and lists (.json, .jsonl)
 *   "batch"     the largest batch: by parameters, or by a model's plan
 *   "training"  memory of training a model
 *   "gpu"       which GPUs of configs/gpus.json can run a job, and in what time
 *
 * @param o      options of the verb "estimate", borrowed.
 * @param files  n_files paths, borrowed.
 * @param json   returned; release with tg_text_free. Set on TG_OK, and on TG_E_BUDGET and
 *               TG_E_DEVICE, where it says what is missing; NULL otherwise.
 * @return TG_E_ARG, TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED, TG_E_NOMEM
 *         TG_E_BUDGET  what was asked about does not fit; the detail names the shortfall
 *         TG_E_DEVICE  no GPU of the table is projected to meet --deadline
 */
TG_API tg_status tg_estimate_json(tg_ctx *ctx, const char *what, const tg_opts *o,
                                  const char *const *files, size_t n_files, char **json);

#ifdef __cplusplus
}
#endif

#endif
