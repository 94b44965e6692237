/*
 * tegula.h - run neural networks over images that do not fit.
 *
 * The model of the world: a *context* holds the processor choice, the threads and the
 * callbacks. *Options* are named strings ("ram" = "1GiB"), the same names as on the command
 * line and in a job file. A *job* is options bound to a model and an input: opening it reads
 * headers only, planning it touches no pixel and says exactly what memory it needs, running it
 * obeys that plan and can be repeated after a crash: it continues where it stopped and the
 * bytes are the same.
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
 * Structs that begin with `size` may grow: set it to sizeof and the rest to zero. A program
 * that was built with an older header gives and gets what that had; one built with a newer
 * header is answered while what this library does not know is zero, else TG_E_ARG. Structs
 * without it never change.
 *
 * Ownership words: *borrowed* (you keep it), *returned* (yours; release it with the named
 * call), *view* (valid while the owner lives). Every function that can fail returns a tg_status
 * and, on failure, leaves a one-line detail in the context (tg_ctx_detail). The library never
 * exits, aborts or prints. A context and what was made from it belong to one thread at a time;
 * distinct contexts are independent. tg_cancel and tg_job_cancel may be called from any thread,
 * and from a signal handler too.
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

/* ---- Status ------------------------------------------------------------------------------ */

/* name, value, sentence. Values are never renumbered. Few codes, chosen by what the caller
 * would do next; the detail line says the rest. */
#define TG_STATUS_LIST(X)                                                                      \
    X(TG_OK, 0, "success")                                                                     \
    X(TG_E_ARG, -1, "an argument is out of its documented range")                              \
    X(TG_E_NOMEM, -2, "the system refused an allocation")                                      \
    X(TG_E_BUDGET, -3, "the work cannot fit the memory budget you set")                        \
    X(TG_E_IO, -4, "reading or writing a file failed")                                         \
    X(TG_E_FORMAT, -5, "the file is damaged or not of the expected format")                    \
    X(TG_E_UNSUPPORTED, -6, "valid, but not implemented in this build")                        \
    X(TG_E_DEVICE, -7, "the processor lacks what was asked for, or the accelerator failed")    \
    X(TG_E_CANCELLED, -8, "stopped on request; the journal can resume it")                     \
    X(TG_E_NOT_FOUND, -9, "an input file does not exist or cannot be opened")                  \
    X(TG_E_EXISTS, -10, "the output exists already or cannot be created")                      \
    X(TG_E_NO_SPACE, -11, "the disk has no room for the output")                               \
    X(TG_E_BUSY, -12, "another run holds the output; try again later")                         \
    X(TG_E_CHANGED, -13, "the input or the job changed since the journal was written")         \
    X(TG_E_INTERNAL, -14, "a bug in tegula: something it guarantees to itself did not hold")   \
    X(TG_E_DEVICE_LOST, -15, "the accelerator failed during the run; the journal can resume it")

typedef enum tg_status {
#define TG_STATUS_ENUM_(name, value, sentence) name = value,
    TG_STATUS_LIST(TG_STATUS_ENUM_)
#undef TG_STATUS_ENUM_
} tg_status;

/** Name of a status ("TG_E_BUDGET"); never NULL. Static storage. @thread safe. */
TG_API const char *tg_status_name(tg_status st);
/** One sentence for a status; never NULL. Static storage. @thread safe. */
TG_API const char *tg_status_sentence(tg_status st);

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

/* ---- Context ----------------------------------------------------------------------------- */

typedef struct tg_ctx tg_ctx;

typedef enum tg_log_level { TG_LOG_ERROR, TG_LOG_WARN, TG_LOG_INFO, TG_LOG_DEBUG } tg_log_level;

/** What a running job tells its watcher, at most some ten times a second. */
typedef struct tg_progress {
    const char *phase;      /* "statistics", "run", "check" (what an interrupted run left),
                               "verify", "copy", "finish", "calibrate"; static */
    double fraction;        /* of the phase, 0..1 */
    double seconds;         /* since the phase began */
    double eta_seconds;     /* < 0 while unknown */
    size_t memory_bytes;    /* measured now (RssAnon + RssShmem + VmSwap + VmPTE) */
    size_t predicted_bytes; /* what the plan promised */
    size_t budget_bytes;    /* what the user allows */
    int64_t tiles_done, tiles_total;
    int64_t tiles_resumed; /* of those done, by the runs before: found in the journal */
} tg_progress;

/** Zero means default in every field; `size` is sizeof(tg_ctx_opts). */
typedef struct tg_ctx_opts {
    size_t size;
    void *user; /* handed to the callbacks; borrowed */
    void (*log)(void *user, tg_log_level level, const char *line); /* one event, no newline */
    void (*progress)(void *user, const tg_progress *p);            /* on the calling thread */
} tg_ctx_opts;

/**
 * Open a context. @param opts NULL for defaults. @param out written only on TG_OK; returned,
 * close with tg_ctx_close. @return TG_E_NOMEM, TG_E_ARG (opts->size is not one we know).
 */
TG_API tg_status tg_ctx_open(const tg_ctx_opts *opts, tg_ctx **out);
/** Close and set to NULL; NULL allowed. Jobs and options made from it must be closed before. */
TG_API void tg_ctx_close(tg_ctx **ctx);
/** The detail of the last failure in this context: one line, "" if none. View. Of a memory
 * refusal tg_ctx_refusal (tegula_memory.h) has the figures and what would do. */
TG_API const char *tg_ctx_detail(const tg_ctx *ctx);
/** Ask every running call of this process to stop soon with TG_E_CANCELLED and a valid journal.
 * Async-signal-safe. `signal_number` is kept for tg_cancel_signal (0 to clear the request). */
TG_API void tg_cancel(int signal_number);
TG_API int tg_cancel_signal(void);
/** Release a text this library returned; NULL allowed. */
TG_API void tg_text_free(char *text);

/* ---- Options ----------------------------------------------------------------------------- */

typedef struct tg_opts tg_opts;

/** One row of the table behind the parser, --help, job files and the manual page. */
typedef struct tg_option {
    const char *name;     /* "ram"; on the command line --ram */
    const char *alias;    /* another spelling or a one-letter form ("m"), or NULL */
    const char *arg;      /* "SIZE"; NULL for a switch; "[=FILE]": may follow, behind '=' */
    const char *fallback; /* default as text, or NULL for none */
    const char *verbs;    /* "plan run verify": where it means something */
    const char *help;     /* one sentence */
} tg_option;

/** All options; a static table of *n rows. @thread safe. */
TG_API const tg_option *tg_option_table(size_t *n);

/** New, empty set of options. Returned; release with tg_opts_free. */
TG_API tg_status tg_opts_new(tg_ctx *ctx, tg_opts **out);
TG_API void tg_opts_free(tg_opts **o);
/**
 * Set one option; the text is copied. "input-tensor" may be set several times (NAME=FILE).
 * Setting "preset" reads the preset (tegula_preset.h): its settings count where neither this
 * call nor a job file says something else, before or after.
 * @return TG_E_ARG  unknown name (the detail names the nearest) or a value that does not parse;
 *         of "preset" also what tg_preset_load returns.
 */
TG_API tg_status tg_opts_set(tg_opts *o, const char *name, const char *value);
/** Value of an option as text, its default, or NULL. View until the next set. */
TG_API const char *tg_opts_get(const tg_opts *o, const char *name);
/** Read a JSON object of options (a job file). Options that are set already win, but for those
 * of a preset.
 * @return TG_E_NOT_FOUND, TG_E_FORMAT (not such an object), TG_E_ARG as tg_opts_set. */
TG_API tg_status tg_opts_load(tg_opts *o, const char *path);

/* How a file is opened that the program itself writes for an option. */
typedef enum tg_output_how {
    TG_OUTPUT_LOOK,  /* as it is; *fd is -1 when it is not there, or is a descriptor's */
    TG_OUTPUT_OPEN,  /* made, or emptied */
    TG_OUTPUT_APPEND /* made, or as it is, which needs no "yes" */
} tg_output_how;

/**
 * Open the file that an option names ("trace", "save", "csv"; "output" of a program of its own)
 * for writing, through the gate that every output of the library passes: it is none of the
 * files that the set's options read, and no other output of them, whatever the names; a file
 * that is there is emptied only with the option "yes", or where an interrupted run of this
 * output left it; devices and pipes are written through, folders refused.
 * @param fd the caller's to close.
 * @return TG_E_ARG (not set; one of the set's own files), TG_E_EXISTS, TG_E_IO (a pipe that
 * nobody reads), TG_E_CANCELLED, TG_E_NOMEM.
 */
TG_API tg_status tg_opts_open_output(const tg_opts *o, const char *name, tg_output_how how,
                                     int *fd);

/* ---- Look -------------------------------------------------------------------------------- */

/**
 * Describe an image, an array or a model file as one JSON object (see docs/reference/json.md):
 * kind, shape, axes, dtype, compression, levels, physical sizes; or operators, opset,
 * parameters, halo. Reads headers only. @param json returned; release with tg_text_free.
 * @return TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED, TG_E_NOMEM.
 */
TG_API tg_status tg_describe(tg_ctx *ctx, const char *path, char **json);

/* ---- Job --------------------------------------------------------------------------------- */

typedef struct tg_job tg_job;

/** What a line of a plan counts. */
typedef enum tg_plan_kind {
    TG_PLAN_MEMORY, /* part of peak_bytes */
    TG_PLAN_DISK,   /* bytes of a file */
    TG_PLAN_MARGIN, /* free memory that a budget nobody set leaves to others: part of neither
                       peak  nor budget */
    TG_PLAN_DEVICE, /* part of device_peak_bytes */
    TG_PLAN_DEVICE_MARGIN
} tg_plan_kind;

/** One line of a plan. */
typedef struct tg_plan_line {
    const char *name; /* "weights", "arena", "output"; view of the job */
    const char *note; /* how it came about; view */
    uint64_t bytes;
    tg_plan_kind kind;
    uint64_t free_bytes; /* disk lines: free on that filesystem; UINT64_MAX: a machine file does
                            not say */
} tg_plan_line;

/** What a job needs. Filled by tg_job_plan; set `size` first. */
typedef struct tg_plan_info {
    size_t size;
    uint64_t peak_bytes;   /* predicted: a bound on what the run's memory measures */
    uint64_t budget_bytes; /* what the user allows, or what is free less a margin */
    uint64_t arena_bytes;  /* activations */
    uint64_t
        lower_bound_bytes; /* largest set of activations alive together: no packing is below */
    int64_t tile[3];       /* largest strip core, z,y,x, in output pixels */
    int64_t halo[3];       /* input pixels read beyond a core, z,y,x, larger side */
    int64_t strips, bands; /* per item; bands of all strips together */
    int64_t items;         /* planes, volumes or samples the network is looped over */
    double flops;          /* of the whole job, recomputation included */
    double recomputed_fraction; /* computed pixels beyond one pass, relative */
    double seconds_estimate;    /* of tg_job_run, see `calibrated` */
    const tg_plan_line *lines;  /* view of the job */
    size_t n_lines;
    int64_t stages; /* passes that the network's whole-extent operators cut it into; more than
                       one still run as one today, over the whole image at once */
    const char *whole_image_only; /* what keeps the network from running in parts; view; NULL:
                                     nothing does */
    int calibrated; /* 1: seconds_estimate is of speeds measured here by tg_calibrate; 0: of
                       those of a usual machine, or GPU where one is `device` */
    const char *machine; /* planned for, where option "machine" names its file: "lab3.json: 16
                            processors, avx512, NAME"; view; NULL: this one */
    const char *device;  /* what computes: "cuda:0, NAME"; view; NULL: the processor */
    uint64_t device_peak_bytes;   /* predicted: of the device's memory, context included */
    uint64_t device_budget_bytes; /* what the user allows, or what is free less a margin */
    const char *device_notice;    /* why the processor computes although a GPU could be expected
                                     to; one line; view; NULL: nothing to say */
    int64_t lessons; /* finished runs here that corrected seconds_estimate; 0: none */
} tg_plan_info;

typedef struct tg_run_result {
    size_t size;
    uint64_t predicted_peak_bytes, measured_peak_bytes, budget_bytes;
    double seconds, compute_seconds, megapixels_per_second;
    int64_t tiles, bands;  /* done by this call */
    int64_t tiles_resumed; /* found done in the journal */
    double recomputed_fraction;
    const char *output;  /* path; view of the job */
    int64_t tiles_begun; /* by all the runs that worked on this output; what exceeds tiles +
                            tiles_resumed was computed more than once. 0 for arrays */
    /* Of `seconds`: from the first band until the last tile is on disk, and where they went
     * beside compute_seconds: waiting for bytes of the input; waiting for the writer; turning
     * input rows into numbers and numbers into output rows. */
    double bands_seconds, stall_read_seconds, stall_write_seconds, convert_seconds;
    /* Processor time of all threads within bands_seconds: kernels, conversions, codecs,
     * checksums and the system's copies. Over bands_seconds times the processors it is how busy
     * they were: 1 means that nothing but less work would be faster. */
    double processor_seconds;
    int64_t bad_regions; /* of the input, that "on-bad-tile" = "fill" counted as 0 */
    int64_t nonfinite;   /* values of the network, in the tiles of this call, that are NaN or
                            infinite */
    /* What computed, "cuda:0, NAME" (view of the job), and its memory: planned; what the driver
     * says was taken since before the context was made; allowed. NULL and 0: the processor.
     * compute_seconds is what the calling thread waited for the device then. */
    const char *device;
    uint64_t device_predicted_bytes, device_measured_bytes, device_budget_bytes;
    /* Seconds that its uploads, kernels (of cells beside each other: summed) and downloads
     * took, where TEGULA_CUDA_TIMES=1 has them measured; else 0. */
    double device_upload_seconds, device_kernel_seconds, device_download_seconds;
} tg_run_result;

/* Of one output of the network. */
typedef struct tg_verify_output {
    const char *name;
    double min, max; /* of its finite values */
    /* Tiled against whole. */
    double max_abs_difference, relative_l2;
    int bit_equal;
    /* Whole against the reference kernels; PSNR in dB, of the output's range: infinite where
     * nothing differs, NaN where that is no number. */
    double reference_max_abs, reference_relative_l2, reference_psnr;
    /* The GPU against the processor; 0 where none computes. */
    double device_max_abs, device_relative_l2, device_psnr;
    int device_bit_equal;
    int64_t device_nonfinite; /* values that are NaN or infinite there */
} tg_verify_output;

/* The first plane, volume or sample of the input; of several outputs the worst. */
typedef struct tg_verify_result {
    size_t size;
    double max_abs_difference; /* tiled against whole */
    double relative_l2;        /* of that difference */
    double output_min, output_max;
    int bit_equal;                                   /* 1: every bit */
    int64_t tiles;                                   /* strips compared */
    double reference_max_abs, reference_relative_l2; /* whole against the reference kernels */
    double reference_psnr;
    char not_tiled[160]; /* "": it was; else why the network runs over whole images only. Then
                            tiles is 0 and there was nothing to compare */
    /* Where a GPU would compute: it, in the precision of a run, against the processor's float32
     * over the whole image; PSNR in dB, of the output's range. And any cut against another
     * there. device "": the processor computes, nothing was compared. */
    char device[160], device_precision[8];
    double device_max_abs, device_relative_l2, device_psnr;
    int device_bit_equal;
    int64_t device_tiles;
    int64_t items; /* planes, volumes or samples there are: the first one was computed */
    const tg_verify_output *outputs; /* view, until the job is verified again or closed */
    size_t n_outputs;
} tg_verify_result;

/**
 * Bind options to a model and an input: reads the model, the input's headers and the
 * descriptor.
 * @param o borrowed until this returns. @param out returned; close with tg_job_close.
 * @return TG_E_ARG         an option is missing or contradicts another
 *         TG_E_NOT_FOUND, TG_E_FORMAT, TG_E_UNSUPPORTED  the model or the input
 *         TG_E_DEVICE      the processor lacks the instruction set or precision asked for
 *         TG_E_BUDGET      the model alone does not fit
 */
TG_API tg_status tg_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out);
TG_API void tg_job_close(tg_job **job);

/**
 * Choose strips, bands and memory, and say what they need. Touches no pixel, writes nothing.
 * @param out caller-owned, `size` set; may be NULL.
 * @return TG_E_BUDGET  nothing fits; the detail names the smallest budget that would and
 * remedies
 * @source choice: engine/plan/choose.c; bound tested by tests/property/test_memory.
 */
TG_API tg_status tg_job_plan(tg_job *job, tg_plan_info *out);
/** The plan as one JSON object; `why` adds what was rejected. Returned text. */
TG_API tg_status tg_job_plan_json(tg_job *job, int why, char **json);
/** Every resolved setting as a job file for tg_opts_load. Returned text. */
TG_API tg_status tg_job_save_json(tg_job *job, char **json);

/**
 * Run, or resume, the job. Writes OUT.partial and OUT.journal, then renames; OUT.tegula.json is
 * the receipt.
 * @return TG_E_EXISTS     the output is finished already (option "yes" overwrites)
 *         TG_E_BUSY       another run holds it
 *         TG_E_CHANGED    input or settings differ from the journal's
 *         TG_E_NO_SPACE   with the bytes missing and remedies
 *         TG_E_CANCELLED  the journal is valid; the same call resumes
 *         TG_E_FORMAT     damaged input; with "on-bad-tile" = "fill" the output is complete
 *                         but for what OUT.errors.json lists, and *out is filled. Also an
 *                         input that was written to since the job was opened: what was made
 *                         of it is removed
 *         TG_E_DEVICE_LOST  the GPU failed; the journal is valid, the same call resumes
 *         TG_E_IO, TG_E_BUDGET, TG_E_NOMEM
 */
TG_API tg_status tg_job_run(tg_job *job, tg_run_result *out);
/** Ask the call that is running on this job to stop soon with TG_E_CANCELLED and a valid
 * journal: what tg_cancel asks of the whole process. From any thread and from callbacks, as
 * often as you like; a job on which nothing runs stops the next call. The request ends with
 * that call. The job must be open until this returns. */
TG_API void tg_job_cancel(tg_job *job);

/** Run tiled and whole, compare, and compare with the reference kernels. Nothing is written.
 * @return TG_E_BUDGET  the whole image does not fit in the budget: use a smaller --roi */
TG_API tg_status tg_job_verify(tg_job *job, tg_verify_result *out);

/** Write a PNG of three crops, raw | result | difference, with the statistics of the full run.
 */
TG_API tg_status tg_job_preview(tg_job *job);

/**
 * Measure the speeds that seconds_estimate is made of: every kind of kernel on one thread and
 * on all, codecs, what a run takes beside its bands. Some ten seconds of all processors; writes
 * and removes some 100 MB in a folder of its own in $TEGULA_CACHE, $XDG_CACHE_HOME/tegula or
 * ~/.cache/tegula, where calibration.json then stands for later plans. Which plan is chosen
 * does not depend on it.
 * @param json what was measured, one object (docs/reference/json.md); returned, tg_text_free.
 * @return TG_E_NOT_FOUND (no such folder is named), TG_E_IO, TG_E_NO_SPACE, TG_E_NOMEM,
 * TG_E_CANCELLED
 */
TG_API tg_status tg_calibrate(tg_ctx *ctx, char **json);

/** Copy an image or array through the reader and the writer; options as tg_opts. */
TG_API tg_status tg_copy(tg_ctx *ctx, const tg_opts *o);

#ifdef __cplusplus
}
#endif

#endif
