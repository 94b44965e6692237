/*
 * tegula.h - run neural networks over images that do not fit in memory.
 *
 * THE IDEA. A *context* (tg_ctx) holds the callbacks and the last error. *Options* (tg_opts)
 * are named strings ("ram" = "1GiB"), with the names of the command line and of job files. A
 * *job* (tg_job) is options bound to a model and an input. Opening a job reads headers only.
 * Planning it reads no pixel and says exactly what memory it needs. Running it keeps to that
 * plan. A run that was stopped or killed is called again with the same options: it continues,
 * and the output has the same bytes.
 *
 *     #include <tegula.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         tg_ctx *ctx = NULL;
 *         tg_opts *o = NULL;
 *         tg_job *job = NULL;
 *         tg_plan_info plan = {.size = sizeof plan};
 *         tg_run_result res = {.size = sizeof res};
 *         tg_status st = tg_ctx_open(NULL, &ctx);
 *         if (st == TG_OK && (st = tg_opts_new(ctx, &o)) == TG_OK &&
 *             (st = tg_opts_set(o, "model", "denoise.onnx")) == TG_OK &&
 *             (st = tg_opts_set(o, "input", "big.tif")) == TG_OK &&
 *             (st = tg_opts_set(o, "output", "out.tif")) == TG_OK &&
 *             (st = tg_opts_set(o, "ram", "1GiB")) == TG_OK &&
 *             (st = tg_job_open(ctx, o, &job)) == TG_OK &&
 *             (st = tg_job_plan(job, &plan)) == TG_OK)
 *             st = tg_job_run(job, &res);
 *         if (st != TG_OK)
 *             fprintf(stderr, "%s\n", tg_ctx_detail(ctx));
 *         tg_job_close(&job);
 *         tg_opts_free(&o);
 *         tg_ctx_close(&ctx);
 *         return st == TG_OK ? 0 : 1;
 *     }
 *
 * CONTENTS
 *
 *     Errors     tg_status, tg_status_name, tg_status_sentence
 *     Context    tg_ctx_open, tg_ctx_close, tg_ctx_detail; log and progress
 *     Options    tg_opts_new, tg_opts_set, tg_opts_get, tg_opts_load, tg_opts_free
 *     Job        tg_job_open, tg_job_close
 *     Plan       tg_job_plan
 *     Run        tg_job_run
 *     Cancel     tg_job_cancel, tg_cancel, tg_cancel_signal
 *     Look       tg_describe, tg_job_verify, tg_job_preview, tg_output_look
 *     Rarely     tg_copy, tg_convert_weights, tg_calibrate, plan and settings as JSON, the option table,
 *                tg_opts_open_output, element types
 *
 * RULES
 *
 *   Size.       A struct that begins with `size` may grow in later versions. Set `size` to its
 *               sizeof and everything else to zero; zero means default. A program built with an
 *               older header gives and gets what that header had. A program built with a newer
 *               one is answered while the members that this library does not know are zero,
 *               else with TG_E_ARG. Structs without `size` never change.
 *   Bytes.      Sizes and counts of bytes are uint64_t and named so (peak_bytes). Differences
 *               of them, and those with a "none" of -1, are int64_t. size_t is for `size`
 *               itself, for numbers of elements and for the room of a text (n, cap).
 *   Ownership.  *Borrowed*: you keep it. *Returned*: it is yours; release it with the call that
 *               is named. *View*: it is valid while its owner lives.
 *   Errors.     Every function that can fail returns a tg_status and leaves one line of detail
 *               in the context (tg_ctx_detail). Results are written only on TG_OK, unless the
 *               function says otherwise. The library never exits, aborts or prints.
 *   Threads.    A context, and all that was made from it, belongs to one thread at a time.
 *               Distinct contexts are independent. tg_cancel and tg_job_cancel may be called
 *               from any thread, and from a signal handler.
 *   Callbacks.  A callback runs on the thread that made the call, never two at once. It may ask
 *               to stop (tg_job_cancel, tg_cancel) and make calls on other jobs. A call on the
 *               same context replaces its detail. A call on a job that is at work answers
 *               TG_E_BUSY; nothing that is in use may be closed or freed.
 *   Memory.     The budget ("ram") is for the whole process: what the program itself holds when
 *               the job is planned is part of peak_bytes (the line "process"). Memory that the
 *               program takes or first touches later is not in the plan, and counts in
 *               measured_peak_bytes all the same. Leave room for it in the budget.
 *
 * OTHER HEADERS
 *
 *     tegula_array.h     inputs and outputs in the caller's memory
 *     tegula_memory.h    memory of the machine, its limits and GPUs; figures of a refusal
 *     tegula_preset.h    named settings; where each setting of a job is from
 *
 * These are experimental: their declarations may still change from one version to the next.
 *
 *     tegula_estimate.h  will a data set, a batch or training fit?
 *     tegula_tracker.h   memory over time, as CSV and as a picture
 *     tegula_pool.h      memory pools with statistics
 *     tegula_trace.h     what a part of a program took of a pool
 */
#ifndef TEGULA_H
#define TEGULA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TG_VERSION_MAJOR 0
#define TG_VERSION_MINOR 1
#define TG_VERSION_PATCH 0
#define TG_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define TG_API __attribute__((visibility("default")))
#else
#define TG_API
#endif

/* ---- Errors ------------------------------------------------------------------------------ */

/* name, value, sentence. Values are never renumbered. There are few codes, one for each thing
 * that a caller would do next; the detail line (tg_ctx_detail) says the rest.
 * docs/reference/errors.md shows what each error says, with its cause and cure. */
#define TG_STATUS_LIST(X)                                                                      \
    X(TG_OK, 0, "success")                                                                     \
    X(TG_E_ARG, -1, "an argument is out of its documented range")                              \
    X(TG_E_NOMEM, -2, "the system refused an allocation")                                      \
    X(TG_E_BUDGET, -3, "the work cannot fit the memory budget you set")                        \
    X(TG_E_IO, -4, "reading or writing a file failed")                                         \
    X(TG_E_FORMAT, -5, "the file is damaged or not of the expected format")                    \
    X(TG_E_UNSUPPORTED, -6, "valid, but not implemented in this build")                        \
    X(TG_E_DEVICE, -7, "the processor lacks what was asked for, or the accelerator failed")    \
    X(TG_E_CANCELLED, -8, "stopped on request; with a journal, the same call goes on")         \
    X(TG_E_NOT_FOUND, -9, "an input file does not exist or cannot be opened")                  \
    X(TG_E_EXISTS, -10, "the output exists already or cannot be created")                      \
    X(TG_E_NO_SPACE, -11, "the disk has no room for the output")                               \
    X(TG_E_BUSY, -12, "another run holds the output; try again later")                         \
    X(TG_E_CHANGED, -13, "the input or the job changed since the journal was written")         \
    X(TG_E_INTERNAL, -14, "a bug in tegula: something it guarantees to itself did not hold")   \
    X(TG_E_DEVICE_LOST, -15, "the accelerator failed during the run; the journal can resume it")

/** What a call answers: TG_OK, or what kind of failure it was. */
typedef enum tg_status {
#define TG_STATUS_ENUM_(name, value, sentence) name = value,
    TG_STATUS_LIST(TG_STATUS_ENUM_)
#undef TG_STATUS_ENUM_
        TG_STATUS_END_ = 0 /* C++98 wants no comma at the end */
} tg_status;

/** Name a status, such as "TG_E_BUDGET". Never NULL; static storage. @thread safe. */
TG_API const char *tg_status_name(tg_status st);
/** Explain a status in one sentence. Never NULL; static storage. @thread safe. */
TG_API const char *tg_status_sentence(tg_status st);

/* ---- Context ----------------------------------------------------------------------------- */

/** A context: callbacks, and the detail of the last failure. */
typedef struct tg_ctx tg_ctx;

/** How important a line of the log is. */
typedef enum tg_log_level { TG_LOG_ERROR, TG_LOG_WARN, TG_LOG_INFO, TG_LOG_DEBUG } tg_log_level;

/** What a running job tells the progress callback, at most some ten times a second. */
typedef struct tg_progress {
    /* "statistics", "run", "check" (tiles of an interrupted run are read back), "verify",
     * "copy", "join" (packets become a film), "finish" or "calibrate"; static */
    const char *phase;
    double fraction;          /* of the phase, 0..1; < 0 while unknown */
    double seconds;           /* since the phase began */
    double eta_seconds;       /* time left in the phase; < 0 while unknown */
    uint64_t memory_bytes;    /* measured now (RssAnon + RssShmem + VmSwap + VmPTE) */
    uint64_t predicted_bytes; /* what the plan promised */
    uint64_t budget_bytes;    /* what the user allows */
    int64_t tiles_done, tiles_total;
    int64_t tiles_resumed; /* of those done: found in the journal, from earlier runs */
    int64_t stage, stages; /* of a run in stages: the one that is computed, from 1; else 0 */
    int64_t stage_resumed; /* the stage where an earlier run was stopped; 0: none */
    /* Of a film, read or written: the same as of tiles; one of a film that is written is done when
     * the encoder has it. 0 in all: none; 0 of total alone: it comes through a pipe, and nobody
     * knows how many. */
    int64_t frames_done, frames_total, frames_resumed;
} tg_progress;

/** Callbacks of a context (RULES, Callbacks). Zero means default in every field; `size` is
 * sizeof(tg_ctx_opts). */
typedef struct tg_ctx_opts {
    size_t size;
    void *user; /* handed to the callbacks; borrowed */
    void (*log)(void *user, tg_log_level level, const char *line); /* one event, no newline */
    void (*progress)(void *user, const tg_progress *p);
} tg_ctx_opts;

/**
 * Open a context.
 *
 * @param opts  callbacks; NULL for none. Copied.
 * @param out   returned; close with tg_ctx_close.
 * @return TG_E_NOMEM, TG_E_ARG (opts->size is not one we know).
 */
TG_API tg_status tg_ctx_open(const tg_ctx_opts *opts, tg_ctx **out);
/**
 * Keep the model of a job that is closed for the next job of this context, if that names the same file, unchanged: many
 * images through one network load it once. It is freed with the context, by a job with another model, or by 0. The
 * memory of its reservation waits for the next job's too, less 32 MiB: between jobs a process holds no more than it
 * did. A copy of this or another context gives it back first.
 *
 * @thread as all of a context: one at a time.
 * @source engine/job/job_open.c.
 */
TG_API void tg_ctx_keep_model(tg_ctx *ctx, int keep);
/** Close a context and set the pointer to NULL; NULL is allowed. Close its jobs and options
 * first. */
TG_API void tg_ctx_close(tg_ctx **ctx);
/** Read the detail of the last failure in this context: one line, "" if there was none. View.
 * After a memory refusal tg_ctx_refusal (tegula_memory.h) has the figures,
 * and what would fit. */
TG_API const char *tg_ctx_detail(const tg_ctx *ctx);
/** Release a text that this library returned; NULL is allowed. */
TG_API void tg_text_free(char *text);

/* ---- Options ----------------------------------------------------------------------------- */

/** Options: named strings. docs/reference/options.md lists the names, values and defaults. */
typedef struct tg_opts tg_opts;

/** Make a new, empty set of options. @param out returned; release with tg_opts_free. */
TG_API tg_status tg_opts_new(tg_ctx *ctx, tg_opts **out);
/** Release a set of options and set the pointer to NULL; NULL is allowed. */
TG_API void tg_opts_free(tg_opts **o);
/**
 * Set one option. The text is copied.
 *
 * "input-tensor" may be set several times (NAME=FILE). Setting "preset" reads the preset
 * (tegula_preset.h); its settings give way to what this call or a job file says, before or
 * after.
 *
 * @return TG_E_ARG  the name is unknown (the detail names the nearest one), or the value does
 *                   not parse; for "preset" also what tg_preset_load returns.
 */
TG_API tg_status tg_opts_set(tg_opts *o, const char *name, const char *value);
/** Read the value of an option as text, else its default, else NULL. View until the next
 * set. */
TG_API const char *tg_opts_get(const tg_opts *o, const char *name);
/**
 * Read a job file: a JSON object of options. Its values are strings, as for tg_opts_set
 * ("ram": "64MiB"); switches may be true or false, whole numbers such as "threads" numbers.
 * Options that are set already keep their values, except those that a preset set.
 *
 * @return TG_E_NOT_FOUND, TG_E_FORMAT (not such an object), TG_E_ARG as tg_opts_set.
 */
TG_API tg_status tg_opts_load(tg_opts *o, const char *path);

/* ---- Job --------------------------------------------------------------------------------- */

/** A job: options bound to a model and an input. */
typedef struct tg_job tg_job;

/**
 * Open a job: bind options to a model and an input. Reads the model, the input's headers and
 * the descriptor. An output's name is looked at by tg_job_plan. That there is none tg_job_run
 * says: a job without one can be planned.
 *
 * @param o    borrowed until this returns.
 * @param out  returned; close with tg_job_close.
 * @return TG_E_ARG        an option is missing, contradicts another or would change nothing
 *                         ("roi" of an array); a source or sink is of no input or output, or of
 *                         one that has a file or another array
 *         TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED  about the model or the input
 *         TG_E_DEVICE     the processor lacks the instruction set or precision asked for
 *         TG_E_BUDGET     the model alone does not fit
 */
TG_API tg_status tg_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out);
/** Close a job and set the pointer to NULL; NULL is allowed. Files stay as they are. */
TG_API void tg_job_close(tg_job **job);

/* ---- Plan -------------------------------------------------------------------------------- */

/** What a line of a plan counts. */
typedef enum tg_plan_kind {
    TG_PLAN_MEMORY, /* part of peak_bytes */
    TG_PLAN_DISK,   /* bytes of a file */
    /* Free memory that is left to other programs when the user set no budget. Part of neither
     * peak nor budget. */
    TG_PLAN_MARGIN,
    TG_PLAN_DEVICE, /* part of device_peak_bytes */
    TG_PLAN_DEVICE_MARGIN
} tg_plan_kind;

/** One line of a plan. */
typedef struct tg_plan_line {
    const char *name; /* "weights", "arena", "output"; view of the job */
    const char *note; /* how the number came about; view */
    uint64_t bytes;
    tg_plan_kind kind;
    /* Of a disk line: free bytes on that filesystem; UINT64_MAX when a machine file is planned
     * for and does not say. */
    uint64_t free_bytes;
} tg_plan_line;

/** What a job needs. tg_job_plan fills it; set `size` first. */
typedef struct tg_plan_info {
    size_t size;
    /* Predicted; the run's measured memory does not exceed it, but for what the program itself
     * takes or touches after the plan (RULES, Memory). */
    uint64_t peak_bytes;
    uint64_t budget_bytes;      /* what the user allows, or what is free less a margin */
    uint64_t arena_bytes;       /* activations */
    uint64_t lower_bound_bytes; /* activations that are alive together, at most: no packing is
                                   smaller */
    int64_t tile[3];            /* largest strip core, z,y,x, in output pixels */
    int64_t halo[3];            /* input pixels read beyond a core, z,y,x, the larger side */
    int64_t strips, bands;      /* of each item; bands are those of all strips */
    int64_t items;              /* planes, volumes or samples the network runs over, in turn */
    double flops;               /* of the whole job, recomputation included */
    double recomputed_fraction; /* pixels computed more than once, relative to one pass */
    double seconds_estimate;    /* of tg_job_run; see `calibrated` */
    const tg_plan_line *lines;  /* view of the job */
    size_t n_lines;
    /* Passes that operators which read a whole image cut the network into; see `staged`. */
    int64_t stages;
    const char *whole_image_only; /* what needs all pixels of a value at once, so that the value
                                     has to fit; NULL: nothing does. View */
    /* 1: seconds_estimate uses the speeds that tg_calibrate measured here. 0: it uses those of
     * a usual machine; with a `device`, those of a model of the GPU. */
    int calibrated;
    /* What is planned for, when option "machine" names a file: "lab3.json: 16 processors,
     * avx512, NAME". NULL: this machine. View. */
    const char *machine;
    const char *device;           /* what computes: "cuda:0, NAME"; NULL: the processor. View */
    uint64_t device_peak_bytes;   /* predicted: of the device's memory, context included */
    uint64_t device_budget_bytes; /* what the user allows, or what is free less a margin */
    /* One line: why the processor computes although a GPU could be expected to. NULL: nothing
     * to say. View. */
    const char *device_notice;
    int64_t lessons; /* finished runs on this machine that corrected seconds_estimate */
    /* 1: the image does not fit, and the stages run one after another: strips, bands, flops and
     * recomputed_fraction are those of all stages, tile that of the stage which hands out the
     * output, halo the largest. 0: they run as one, over the whole image at once where
     * something reads all of it. */
    int staged;
    int64_t kept_values;      /* that pass from one stage to a later one */
    uint64_t kept_bytes;      /* of them in memory at once, at most: part of peak_bytes */
    uint64_t kept_disk_bytes; /* and in a file in the folder of option "scratch" */
    /* Below seconds_estimate where masks decide how long a job takes, which are not read to plan it: what it takes if
     * they hide next to nothing. seconds_estimate is the most then. */
    double seconds_least;
    /* 1: frames of a film that come through a pipe: how many, nobody knows, and items, flops and seconds are those of
     * one. */
    int32_t is_endless;
} tg_plan_info;

/**
 * Plan a job: choose strips, bands and memory, and say what they need. Reads no pixel, writes
 * nothing.
 *
 * @param out  caller-owned, `size` set; may be NULL.
 * @return TG_E_BUDGET  nothing fits; the detail names the smallest budget that would, and how
 *                      to get there
 * @source choice: engine/plan/choose.c; bound: tests/memory.
 */
TG_API tg_status tg_job_plan(tg_job *job, tg_plan_info *out);

/* ---- Run --------------------------------------------------------------------------------- */

/** What a run did. */
typedef struct tg_run_result {
    size_t size;
    /* measured_peak_bytes is of the whole process: RULES, Memory. */
    uint64_t predicted_peak_bytes, measured_peak_bytes, budget_bytes;
    double seconds, compute_seconds, megapixels_per_second;
    int64_t tiles, bands;  /* done by this call */
    int64_t tiles_resumed; /* found done in the journal */
    double recomputed_fraction;
    const char *output; /* path; view of the job */
    /* Tiles begun by all the runs that worked on this output. What exceeds tiles +
     * tiles_resumed was computed more than once. 0 for arrays. */
    int64_t tiles_begun;
    /* Parts of `seconds`. bands_seconds: from the first band until the last tile is on disk.
     * Within it, beside compute_seconds: waiting for bytes of the input, waiting for the
     * writer, and converting input rows to numbers and numbers to output rows. */
    double bands_seconds, stall_read_seconds, stall_write_seconds, convert_seconds;
    /* Processor time of all threads within bands_seconds: kernels, conversions, codecs,
     * checksums and the system's copies. Divided by bands_seconds and by the number of
     * processors it says how busy they were; at 1 only less work would be faster. */
    double processor_seconds;
    int64_t bad_regions; /* of the input, that "on-bad-tile" = "fill" counted as 0 */
    int64_t nonfinite;   /* NaN and infinite values of the network in the tiles of this call */
    /* The GPU that computed ("cuda:0, NAME"; view of the job) and its memory: planned; taken,
     * as the driver says, since before the context was made; allowed. NULL and 0: the processor
     * computed. On a GPU compute_seconds is the time that the calling thread waited for it. */
    const char *device;
    uint64_t device_predicted_bytes, device_measured_bytes, device_budget_bytes;
    /* Seconds of the GPU's uploads, kernels (summed where cells run side by side) and
     * downloads. 0 unless TEGULA_CUDA_TIMES=1 has them measured. */
    double device_upload_seconds, device_kernel_seconds, device_download_seconds;
    /* Of a film, read or written: frames that this call made, and those that it found. 0: none. */
    int64_t frames, frames_resumed;
    /* Of a network that runs in stages: how many there are (0: it ran in one); those that an earlier run
     * was through with; of these, those that ran again for values in memory, which a stop takes. Of
     * several planes or volumes, of the one that the run went on with. */
    int64_t stages, stages_resumed, stages_again;
} tg_run_result;

/**
 * Run the job, or continue an interrupted run of it.
 *
 * Writes OUT.partial and OUT.journal, then renames OUT.partial to OUT. OUT.tegula.json is the
 * receipt.
 *
 * @param out  caller-owned, `size` set; may be NULL. Written on TG_OK and where TG_E_FORMAT says.
 * @return TG_E_EXISTS     the output is finished already (option "yes" overwrites it). With
 *                         "skip-done" TG_OK, and a predicted_peak_bytes of 0, where this job made it
 *         TG_E_BUSY       another run holds the output
 *         TG_E_CHANGED    input or settings differ from those in the journal
 *         TG_E_NO_SPACE   the detail has the bytes missing, and remedies
 *         TG_E_CANCELLED  stopped. The same call continues by the journal; an output without one
 *                         (arrays, memory) starts over
 *         TG_E_FORMAT     the input is damaged. With "on-bad-tile" = "fill" the output is
 *                         complete except for what OUT.errors.json lists, and *out is filled.
 *                         Also: somebody wrote into the input since the job was opened; then
 *                         what was made of it is removed
 *         TG_E_DEVICE_LOST  the GPU failed; the same call continues, as after TG_E_CANCELLED
 *         TG_E_IO, TG_E_BUDGET, TG_E_NOMEM
 */
TG_API tg_status tg_job_run(tg_job *job, tg_run_result *out);

/* ---- Cancel ------------------------------------------------------------------------------ */

/**
 * Ask the call that is running on this job to stop soon. It returns TG_E_CANCELLED and leaves a
 * valid journal, where the output has one.
 *
 * May be called from any thread, from callbacks and from signal handlers, as often as you like.
 * If nothing runs on the job, its next call stops. The request ends with a call on the job that
 * returns TG_E_CANCELLED, and with no other: where the running call is through before it looks,
 * or fails for another reason, the next one stops. tg_job_plan will do to be rid of a request.
 * The job must stay open until this function returns.
 */
TG_API void tg_job_cancel(tg_job *job);
/**
 * Ask every call of this process to stop soon, as tg_job_cancel asks those of one job. Unlike that,
 * the request stays: later calls end in TG_E_CANCELLED, too, until tg_cancel(0).
 * Async-signal-safe.
 *
 * @param signal_number  kept for tg_cancel_signal; 0 clears the request.
 */
TG_API void tg_cancel(int signal_number);
/** Read the number that tg_cancel was given last; 0 when no request is pending. */
TG_API int tg_cancel_signal(void);

/* ---- Look -------------------------------------------------------------------------------- */

/**
 * Describe an image, an array, a model or a file of weights as one JSON object (docs/reference/json.md).
 * Reads headers only.
 *
 * Of an image or array: kind, shape, axes, dtype, compression, levels, physical sizes. Of a
 * model: operators, opset, parameters, halo. Of weights: names, types and shapes.
 *
 * @param json  returned; release with tg_text_free.
 * @return TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED, TG_E_NOMEM.
 */
TG_API tg_status tg_describe(tg_ctx *ctx, const char *path, char **json);
/**
 * Describe what options choose of an image: "channels", "z", "t", "planes", "roi", "axes", "series", and the names of files of a
 * set ("name-z", "name-c", "name-t"); otherwise as tg_describe.
 *
 * @param opts  borrowed, unchanged.
 * @return as tg_describe; TG_E_ARG what is chosen is not there, or `path` is no image.
 */
TG_API tg_status tg_describe_part(tg_ctx *ctx, const char *path, const tg_opts *opts,
                                  char **json);

/** What tg_job_verify found of one output of the network. */
typedef struct tg_verify_output {
    const char *name;
    double min, max; /* of its finite values */
    /* Tiled against whole. */
    double max_abs_difference, relative_l2;
    int bit_equal;
    /* Whole against the reference kernels; PSNR in dB, of the output's range: infinite where
     * nothing differs, NaN where that is no number. */
    double reference_max_abs, reference_relative_l2, reference_psnr;
    /* The GPU against the processor; 0 where no GPU computes. */
    double device_max_abs, device_relative_l2, device_psnr;
    int device_bit_equal;
    int64_t device_nonfinite; /* values that are NaN or infinite there */
} tg_verify_output;

/** What tg_job_verify found over the first plane, volume or sample of the input; of several
 * outputs the worst. */
typedef struct tg_verify_result {
    size_t size;
    double max_abs_difference; /* tiled against whole */
    double relative_l2;        /* of that difference */
    double output_min, output_max;
    int bit_equal;                                   /* 1: every bit */
    int64_t tiles;                                   /* strips compared */
    double reference_max_abs, reference_relative_l2; /* whole against the reference kernels */
    double reference_psnr;
    /* "": the network was tiled. Else why it runs over whole images only; then tiles is 0 and
     * there was nothing to compare. */
    char not_tiled[160];
    /* Where a GPU would compute: the GPU, in the precision of a run, against the processor's
     * float32 over the whole image (PSNR in dB, of the output's range); and two cuts compared
     * on the GPU. device is "" when the processor computes; then nothing was compared. */
    char device[160], device_precision[8];
    double device_max_abs, device_relative_l2, device_psnr;
    int device_bit_equal;
    int64_t device_tiles;
    int64_t items; /* planes, volumes or samples there are: the first one was computed */
    const tg_verify_output *outputs; /* view, until the job is verified again or closed */
    size_t n_outputs;
    int64_t stages; /* the strips are those of so many stages in turn; 0: of one pass */
} tg_verify_result;

/**
 * Run tiled and whole and compare them, and compare the whole run with the reference kernels.
 * Writes nothing.
 *
 * @param out  caller-owned, `size` set.
 * @return TG_E_BUDGET  the whole image does not fit in the budget: use a smaller "roi"
 */
TG_API tg_status tg_job_verify(tg_job *job, tg_verify_result *out);

/** Write a PNG of three crops (raw, result, difference), with the statistics of the full
 * run. Of a network that reads the whole image all of it is computed, in stages as by a run. */
TG_API tg_status tg_job_preview(tg_job *job);

/** Where an output stands. */
typedef enum tg_output_state {
    TG_STATE_RUNNING,  /* a process works on it */
    TG_STATE_STOPPED,  /* the same command goes on */
    TG_STATE_FINISHED, /* it has its name and a receipt, nothing is left to do */
    TG_STATE_STALE     /* files of a run lie there that no run goes on with */
} tg_output_state;

/** What tg_output_look found. EXPERIMENTAL: it may still change from one version to the next. */
typedef struct tg_output_status {
    size_t size;
    tg_output_state state;
    char why[256];    /* of a stale one */
    int64_t process;  /* that works on it, or did last; 0: unknown */
    char input[1024]; /* as its command named it; "": unknown */
    char model[1024];
    int64_t tiles;        /* of the file that are safe on the disk */
    int64_t tiles_in_all; /* 0: unknown */
    /* Of a run in stages; else stages is 1 (0: unknown), and the rest 0. All count from 1. */
    int64_t item, items; /* planes, volumes */
    int64_t stage, stages;
    int again; /* 1: the stage was through; a stop took values in memory, which are made again */
    int64_t cell, cells;
    int64_t rows, rows_in_all; /* of the cell: how many are through */
    double fraction;           /* of all work, 0 to 1; negative: unknown */
    double seconds;          /* that the run which works on it took so far; negative: unknown */
    double seconds_left;     /* at its speed so far; negative: unknown */
    double tiles_per_second; /* of that run; 0: unknown */
    /* Of a film: frames that are done, as tg_progress counts them (given to the encoder), while a
     * process works on it; else those that are safe. 0 in all: it is none. */
    int64_t frames, frames_in_all;
    double frames_per_second; /* of that run; 0: unknown */
    /* Frames whose segments are complete on the disk: no run makes them again. */
    int64_t frames_safe;
} tg_output_status;

/**
 * Look at an image that a run writes in this or another process, or left unfinished, from the files
 * beside it. Takes no lock, changes nothing, and does not disturb the run.
 *
 * EXPERIMENTAL: the declaration may still change from one version to the next.
 *
 * @param out  caller-owned, `size` set.
 * @return TG_E_NOT_FOUND  there is no such output, or it may not be read; a file is there that no run
 *                         is known to have made (no receipt beside it tells of it); arrays, and
 *                         outputs in a folder, have no journal to look at
 */
TG_API tg_status tg_output_look(tg_ctx *ctx, const char *output, tg_output_status *out);

/* ---- Rarely needed ----------------------------------------------------------------------- */

/** Copy an image or array through the reader and the writer, without a network. The options
 * name "input" and "output". */
TG_API tg_status tg_copy(tg_ctx *ctx, const tg_opts *o);

/** Write the tensors of a file of weights (docs/reference/weights.md) as safetensors, with the types and elements that they
 * have. The options name "input" and "output", and with "yes" an output that is there is replaced.
 *
 * EXPERIMENTAL: the declaration may still change from one version to the next.
 *
 * @return TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED  of the input
 *         TG_E_ARG                                       the output is the input, or is not called NAME.safetensors
 *         TG_E_EXISTS, TG_E_BUSY, TG_E_NO_SPACE, TG_E_IO of the output */
TG_API tg_status tg_convert_weights(tg_ctx *ctx, const tg_opts *o);

/** Write the plan as one JSON object (docs/reference/json.md); `why` adds the plans that were
 * rejected.
 * @param json returned; release with tg_text_free. */
TG_API tg_status tg_job_plan_json(tg_job *job, int why, char **json);
/** Write the plans that were rejected when the job was last planned as one JSON object with the
 * member `rejected`: an empty list before the first plan. It is there after a plan that was refused,
 * too (TG_E_BUDGET), and tells what was tried. Plans nothing; the error of the job's context stays.
 * @param job on the thread that plans it
 * @param json returned; release with tg_text_free.
 * @return TG_E_ARG: a NULL; TG_E_NOMEM. */
TG_API tg_status tg_job_rejected_json(const tg_job *job, char **json);
/** Write every resolved setting as a job file for tg_opts_load. @param json returned; release
 * with tg_text_free. */
TG_API tg_status tg_job_save_json(tg_job *job, char **json);

/**
 * Measure the speeds that seconds_estimate is made of: every kind of kernel on one thread and
 * on all, the codecs, and what a run takes beside its bands.
 *
 * Takes some ten seconds of all processors. Writes and removes some 100 MB in a folder of its
 * own in $TEGULA_CACHE, $XDG_CACHE_HOME/tegula or ~/.cache/tegula. calibration.json stays there
 * for later plans. Which plan is chosen does not depend on it.
 *
 * @param json  what was measured, one object (docs/reference/json.md); returned, tg_text_free.
 * @return TG_E_NOT_FOUND (no such folder is named), TG_E_IO, TG_E_NO_SPACE, TG_E_NOMEM,
 *         TG_E_CANCELLED
 */
TG_API tg_status tg_calibrate(tg_ctx *ctx, char **json);

/** One row of the table behind the command line, --help, job files and the manual page. */
typedef struct tg_option {
    const char *name;     /* "ram"; on the command line --ram */
    const char *alias;    /* another spelling or a one-letter form ("m"), or NULL */
    const char *arg;      /* "SIZE"; NULL for a switch; "[=FILE]": may follow, behind '=' */
    const char *fallback; /* default as text, or NULL for none */
    const char *verbs;    /* "plan run verify": where it means something */
    const char *help;     /* one sentence */
} tg_option;

/** List all options: a static table of *n rows. @thread safe. */
TG_API const tg_option *tg_option_table(size_t *n);

/** The row of the first n characters of `word`: a name or an alias, in which an underscore is a
 * hyphen. NULL: there is none. @thread safe. */
TG_API const tg_option *tg_option_find(const char *word, size_t n);

/** How tg_opts_open_output opens a file. */
typedef enum tg_output_how {
    TG_OUTPUT_LOOK,  /* as it is; *fd is -1 when it is not there, or is a descriptor's */
    TG_OUTPUT_OPEN,  /* made, or emptied */
    TG_OUTPUT_APPEND /* made, or as it is, which needs no "yes" */
} tg_output_how;

/**
 * Open a file that an option names ("trace", "save", "csv"; "output" of a program of its own)
 * for writing, with the checks that every output of the library passes.
 *
 * The file may be none that the options read and no other output of theirs, even under another
 * name. A file that is there is emptied only with the option "yes", or when an interrupted run
 * of this output left it. Devices and pipes are written through; folders are refused.
 *
 * @param fd  the caller's to close.
 * @return TG_E_ARG (NULL; not set; one of the set's own files), TG_E_EXISTS, TG_E_IO (a pipe that
 *         nobody reads), TG_E_CANCELLED, TG_E_NOMEM.
 */
TG_API tg_status tg_opts_open_output(const tg_opts *o, const char *name, tg_output_how how,
                                     int *fd);

/** Element types, as in numpy. */
typedef enum tg_dtype {
    TG_DTYPE_NONE = 0,
    TG_DTYPE_U8,
    TG_DTYPE_I8,
    TG_DTYPE_U16,
    TG_DTYPE_I16,
    TG_DTYPE_U32,
    TG_DTYPE_I32,
    TG_DTYPE_U64,
    TG_DTYPE_I64,
    TG_DTYPE_F16,
    TG_DTYPE_F32,
    TG_DTYPE_F64,
    TG_DTYPE_BOOL
} tg_dtype;

#ifdef __cplusplus
}
#endif

#endif
