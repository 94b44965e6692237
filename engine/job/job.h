/* job.h - what a job knows, phase by phase. Each phase fills its own part and reads the earlier
 * ones as they are: open (files, network, mapping) -> plan (tiling, bytes) -> run. */
#ifndef TGI_JOB_H
#define TGI_JOB_H

#include "engine/base/cancel.h"
#include "engine/base/ctx.h"
#include "engine/base/json.h"
#include "engine/base/reserve.h"
#include "engine/base/size.h"
#include "engine/base/status.h"
#include "engine/device/measured.h"
#include "engine/ends/stats.h"
#include "engine/exec/device_exec.h"
#include "engine/out/bad_tiles.h"
#include "engine/out/scratch.h"
#include "engine/plan/choose.h"
#include "engine/plan/mapping.h"
#include "engine/settings/machine.h"
#include "engine/settings/opts.h"
#include "io/image.h"
#include "io/picture_out.h"
#include "io/side_file.h"
#include "io/sink.h"
#include "tegula_preset.h"

#define TGI_MAX_PLAN_LINES 26

/* The model's descriptor: what it expects and gives. Absent: all zero. */
typedef struct tgi_descriptor {
    int present;
    char name[64], version[32], license[64];
    char normalize[96]; /* spec as for --normalize, or "" */
    int denormalize;    /* the output is on the input's scale: map it back */
    int labels;         /* the output is classes: write the number of the largest channel */
    int fp32_only;      /* half precision would not do */
} tgi_descriptor;

/* A side file: how it may be opened, and whether it was not there before. */
typedef struct tgi_job_side {
    tgi_side_how how;
    int made;
} tgi_job_side;

/* Open: what was asked, resolved. Constant afterwards. */
typedef struct tgi_settings {
    char *model, *input, *output;     /* input: NULL when all arrays are named */
    char *scratch;                    /* folder, or NULL; it is there and may be written to */
    const tgi_picture_writer *writer; /* makes the output of the tiles; NULL: they stay */
    int threads;
    const tgi_kernel_set *backend;
    tgi_descriptor descriptor;
    tgi_normalize_spec normalize;
    char normalize_text[96];
    int normalize_given;
    int invert;     /* the output is mapped back by the inverse of the normalisation */
    tg_dtype dtype; /* of the output */
    tgi_compress_spec compress;
    tgi_tile_spec tile;
    tgi_pad_mode pad;
    int labels;   /* the network's channels are classes: their numbers are written */
    int raw_size; /* the output has the size that the network gives */
    int overwrite, exact, verbose;
    int bf16;       /* products of bfloat16 numbers where that is faster */
    int bf16_here;  /* the processor has them */
    int tf32;       /* a device may round what it multiplies to TF32 */
    int no_library; /* a device opens no library of others */
    int isa_given;  /* by name */
} tgi_settings;

/* Bytes of a run, block by block: what the plan promises and the reservation holds. */
typedef struct tgi_bytes {
    size_t weights, arena, staging, window, journal, decoder, process, allowance;
    size_t scratch;     /* decoded pixels, when their folder is a memory filesystem */
    size_t pyramid;     /* tiles read back for the levels of the output */
    size_t receipt;     /* the input being read for its checksum */
    size_t picture;     /* making the output of its tiles, when it is a PNG or JPEG */
    size_t rows;        /* arrays: between their files and the network */
    size_t statistics;  /* of an image to arrays: tables of a first pass */
    size_t page_tables; /* of the reservation: the kernel's, but measured as ours */
    size_t pinned;      /* jobs on a device: pixels on their way to it and back */
    size_t total;
    uint64_t output_disk, output_free;
    uint64_t output_sure;  /* of output_disk, what is taken however well it compresses */
    uint64_t output_packs; /* of output_disk, what --compress makes smaller */
    uint64_t output_held;  /* on that disk, by what an interrupted run left of it */
} tgi_bytes;

/* What other processes hold on a device, at a moment. */
typedef struct tgi_device_others {
    int told;   /* the driver says so */
    int listed; /* and has this process beside them */
    uint64_t bytes;
} tgi_device_others;

/* A device that computes in the processor's place (job_device.c). */
typedef struct tgi_job_device {
    const tgi_device_ops *ops; /* NULL: the processor computes */
    tgi_device_info info;
    tg_dtype element;
    unsigned kinds;           /* of variants that may be used: TGI_KIND_* */
    int chosen;               /* the question was asked */
    int by_name;              /* no way back to the processor */
    tgi_device *device;       /* a context, from the plan to the end of the job */
    uint64_t context_bytes;   /* what it took, kernels included */
    int library;              /* the device's library is open (plan_device.c) */
    uint64_t library_bytes;   /* what it took beside the context */
    int of_file;              /* of a machine file: there is no device, only a plan for it */
    int supposed;             /* no context: figures kept of an earlier one stand for it */
    int settled;              /* element and kinds are those of an interrupted run */
    uint64_t free_bytes;      /* beside it, when it was made */
    tgi_device_others others; /* then */
    uint64_t limit_bytes;     /* what may be allocated beside it */
    uint64_t budget_bytes, margin_bytes;
    /* Of tilings that this machine has no room for, the least that they take here. */
    size_t host_least;
    double seconds_before[3]; /* that its queues worked before the run: measurements */
    uint64_t ran_out;         /* what a plan of this job counted on and did not get; 0 */
    tgi_device_form form;
    tgi_device_need need; /* of the chosen tiling */
} tgi_job_device;

/* Scratch for decoded input: whether it helps, whether it is used, and why. */
typedef struct tgi_scratch_part {
    double passes; /* times the input is decoded without it; 0: rows are not streamed */
    int helps, used;
    uint64_t bytes; /* of the file */
    char why[192];
} tgi_scratch_part;

typedef struct tgi_plan_part {
    int valid;
    double seconds;  /* estimate of the whole job */
    int calibrated;  /* 1: by the speeds of this machine */
    int64_t lessons; /* finished runs that corrected it */
    tgi_net *net;
    tgi_stages *stages; /* of the net; stages->one is what runs */
    tgi_choice choice;
    int64_t fixed[3];       /* sides of a cell (z,y,x); 0: chosen */
    int64_t tile_h, tile_w; /* of the output file */
    tgi_sink_layout *layout;
    int window; /* slots of the writer */
    size_t budget, margin;
    struct {
        int valid;
        int64_t cut[3], band, tile_h, tile_w, fast;
    } adopted;
    tgi_bytes bytes;
    tgi_scratch_part scratch;
    char whole_text[160]; /* what reads the whole image; "": nothing */
    tg_plan_line line[TGI_MAX_PLAN_LINES];
    char note[TGI_MAX_PLAN_LINES][192];
    int n_lines;
} tgi_plan_part;

/* Of a job that is planned to see whether it would do, and never run. All zero: it is none. */
typedef struct tgi_trial {
    const struct tg_job *like; /* the device is as it was when that job was refused */
    size_t beside;      /* held by another job of this process, which this one is instead of */
    int processor_only; /* no device is asked for, whatever the options say */
    int unlearned;      /* what finished runs took is not asked */
} tgi_trial;

struct tg_job {
    tg_ctx *ctx;
    tgi_flag asked; /* to stop: by tg_job_cancel */
    tgi_trial trial;
    tg_opts *opts;       /* a copy: the caller's may go */
    tgi_machine machine; /* planned for; options can name another than this one */
    tgi_settings set;
    tgi_graph *graph;
    tgi_source *source;
    const tgi_image_info *info;
    const char *but;    /* the output, where tgi_leave_out says so */
    tgi_bad_tiles *bad; /* --on-bad-tile fill; else NULL */
    tgi_mapping map;
    tgi_scratch_place scratch_place; /* set.scratch: what its folder is like */
    tgi_desc in_desc, out_desc;
    const struct tgi_ends *ends;            /* ends.h; NULL while it opens */
    struct tgi_tensors *tensors;            /* of arrays: the files (tensors.h) */
    struct tgi_job_settings_list *settings; /* NULL until asked for (job_settings.c) */
    tgi_plan_part plan;
    tgi_job_device dev;
    tgi_job_device refused; /* whose memory did not do, as it was then */
    uint64_t refused_bytes; /* that it would have taken; 0: none was refused */
    uint64_t device_peak;   /* of the last plan there */
    tgi_err uncounted;   /* why a tiling could not be counted there: the first of an attempt */
    int running;         /* figures of the device are measured, not looked up */
    int again;           /* what an earlier run left was of no use: begin once more */
    int without_scratch; /* of a plan: buffers to write it would not fit */
    int plan_is_part;    /* verify and preview: what the plan takes is not all they take */
    char machine_text[256], device_text[320];
    size_t held_before;     /* live bytes of the library when the job was opened */
    uint64_t program_bytes; /* tgi_machine_process */
    size_t source_bytes;    /* of the library, that the source took when it was opened */
    int spare;              /* it was opened to hold as little as it can */
    tg_verify_output verified[TGI_MAX_PORTS]; /* of the last verify, which hands them out */
    char warning[8][256];                     /* also logged when they came up */
    int n_warnings;
    tgi_job_side log, drawn; /* --log and --plot, once they were looked at (job_gate.c) */
    int sides_known;
    atomic_int surplus;            /* the input has more data than pixels (tgi_open_opts) */
    int stats_made;                /* --stats was not there: this job wrote it */
    struct tgi_given_stats *given; /* those that --stats named; NULL: not read (stats_file.c) */
    struct tgi_lessons *lessons;   /* NULL until asked for (plan_seconds.c) */
    double *node_seconds;          /* of the stage's nodes in this run; NULL: not timed */
    double processor_before;       /* processor seconds of this process when that began */
};

#endif
