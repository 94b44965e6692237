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
#include "engine/exec/schedule_device.h"
#include "engine/job/decided.h"
#include "engine/out/bad_tiles.h"
#include "engine/out/scratch.h"
#include "engine/plan/choose.h"
#include "engine/plan/mapping.h"
#include "engine/settings/machine.h"
#include "engine/settings/opts.h"
#include "io/frame_window.h"
#include "io/image.h"
#include "io/in_turn.h"
#include "io/picture_out.h"
#include "io/side_file.h"
#include "io/sink.h"
#include "tegula_preset.h"

#define TGI_MAX_PLAN_LINES 26

/* The model's descriptor: what it expects and gives. Absent: all zero. */
typedef struct tgi_descriptor {
    int present;
    int says_values; /* what the network takes or gives: not only how frames reach it */
    char name[64], version[32], license[64];
    char normalize[96]; /* spec as for --normalize, or "" */
    int denormalize;    /* the output is on the input's scale: map it back */
    int labels;         /* the output is classes: write the number of the largest channel */
    int fp32_only;      /* half precision would not do */
    tg_dtype type;      /* of the output; TG_DTYPE_NONE: not said */
    int64_t window;     /* frames that it takes at once; 0: not said */
    char state[512];    /* as --state; "" not said */
    char post[TGI_POST_TEXT]; /* as --post; "" not said */
    int window_mirror;        /* 1: mirrored beyond the first and the last one */
} tgi_descriptor;

/* A side file (--log, --plot): how it may be opened, and whether this job created it. */
typedef struct tgi_job_side {
    tgi_side_how how;
    int made;
} tgi_job_side;

/* Open: what was asked, resolved. Constant afterwards. */
typedef struct tgi_settings {
    char *model, *input, *output; /* input: NULL when all arrays are named */
    char *
        pictures; /* "frames/%05d.png", where each frame is a file: `output` is their list; or NULL */
    char *scratch;   /* folder, or NULL; checked: it is there and may be written to */
    int stays;       /* a stopped run's folder is used, not the one that was given: */
    char *stays_for; /* which is this; NULL: none was */
    const tgi_picture_writer *writer; /* makes the output; NULL: the tiles are the output */
    char *save_frames; /* folder for frames as pictures beside the film; NULL: none */
    int threads;
    const tgi_kernel_set *backend;
    tgi_descriptor descriptor;
    struct tgi_card
        *card; /* a description of bioimage.io or nnU-Net (engine/graph/card.h); NULL: none */
    int bare;  /* --normalize stands for the card's steps before the network */
    tgi_normalize_spec normalize;
    char normalize_text[96];
    int normalize_given;
    int invert;     /* the output is mapped back by the inverse of the normalisation */
    tg_dtype dtype; /* of the output */
    tgi_compress_spec compress;
    tgi_tile_spec tile;
    tgi_pad_mode pad;
    int labels;     /* the network's channels are classes: their numbers are written */
    int raw_size;   /* the output has the size that the network gives */
    int norm_tiles; /* operators that read whole extents read boxes: norm_scope.h */
    int overwrite, exact, verbose;
    int bf16;       /* multiply bfloat16 numbers where that is faster */
    int bf16_here;  /* the processor can do that */
    int tf32;       /* a device may round what it multiplies to TF32 */
    int no_library; /* a device opens no foreign library (cuBLASLt) */
    int isa_given;  /* the user named an instruction set */
    int window;     /* frames that the network takes at once; 1: one */
    tgi_window_edge window_edge;
    tgi_tie tie[TGI_MAX_PORTS]; /* what it carries from frame to frame */
    int n_ties;
    const char *state_init; /* of the options; NULL: zeros */
    const char *constant;   /* of the options; files that are the same for each frame; NULL */
    int64_t appended;       /* channels of such a file that follow those of the image */
} tgi_settings;

/* Bytes of a run, part by part: the plan promises them and the reservation holds them. */
typedef struct tgi_bytes {
    size_t weights, arena, staging, window, journal, decoder, process, allowance;
    size_t scratch;     /* decoded pixels, when their folder is a memory filesystem */
    size_t pyramid;     /* tiles that are read back to make the levels of the output */
    size_t receipt;     /* the buffer that reads the input for its checksum */
    size_t picture;     /* to make a PNG, JPEG or ImageJ stack out of the tiles */
    size_t index;       /* films: places and times of packets */
    size_t inpaint;     /* what removes something from a film: frames, motions, networks */
    size_t tables;      /* films: of the container that is written, of the journal's packets */
    size_t rows;        /* arrays: buffers between their files and the network */
    size_t carried;     /* what a network hands from frame to frame */
    size_t statistics;  /* an image into arrays: tables of the pass that collects statistics */
    size_t kept;        /* values that pass from stage to stage in memory (plan/staged.h) */
    size_t states;      /* of reductions that are being gathered */
    size_t numbers;     /* that came of reductions */
    size_t tilings;     /* tables of a plan in stages, made after `process` was counted */
    size_t page_tables; /* of the reservation: the kernel's, but measured as ours */
    size_t post;        /* --post: what it takes beyond what the network takes before it */
    size_t pinned;      /* jobs on a device: pinned buffers of pixels, both ways */
    size_t total;
    uint64_t kept_disk; /* values that pass from stage to stage, in a scratch file */
    uint64_t output_disk, output_free;
    uint64_t output_sure;  /* part of output_disk that is taken however well tiles compress */
    uint64_t output_packs; /* part of output_disk that --compress makes smaller */
    uint64_t output_held;  /* bytes on that disk that an interrupted run of this output left */
} tgi_bytes;

/* What other processes hold on a device, at a moment. */
typedef struct tgi_device_others {
    int told;   /* 1: the driver lists processes */
    int listed; /* 1: this process is in its list */
    uint64_t bytes;
} tgi_device_others;

/* The device of a job, if it computes instead of the processor (job_device.c). */
typedef struct tgi_job_device {
    const tgi_device_ops *ops; /* NULL: the processor computes */
    tgi_device_info info;
    tg_dtype element;
    unsigned kinds;         /* of variants that may be used: TGI_KIND_* */
    int chosen;             /* which device computes is decided */
    int for_source;         /* it computes what the source makes; the pass is the processor's */
    tgi_sched_pace pace;    /* ... by these rates */
    size_t far;             /* ... with room for buffers that stay there */
    size_t missed;          /* ... which so many more bytes of them would take */
    int by_name;            /* the user named a device: the processor does not take over */
    tgi_device *device;     /* its context; open from the plan to the end of the job */
    uint64_t context_bytes; /* what the context took, kernels included */
    int library;            /* the device's library is open (plan_device.c) */
    uint64_t library_bytes; /* what that library took beside the context */
    int of_file;  /* it stands in a machine file: there is a plan for it, and no device */
    int supposed; /* there is no context; the figures are those of an earlier one */
    int settled;  /* element and kinds were taken over from an interrupted run */
    uint64_t free_bytes;      /* free on the device when the context was made */
    tgi_device_others others; /* at that moment */
    uint64_t limit_bytes;     /* what may be allocated beside the context */
    uint64_t budget_bytes, margin_bytes;
    /* Bytes of this machine that the tilings that were tried take at least: of a net in stages the
     * most of its stages, at the best places of what passes between them. */
    size_t host_least;
    const void *host_stage;          /* whose tilings are tried, */
    size_t stage_least, place_least; /* what they take at least; the most of stages so far */
    size_t
        host_over; /* stages together took so much more than each by itself: planned with less */
    size_t kept_bytes;   /* here, of what passes between the stages that are being planned */
    uint64_t most_taken; /* seen on the device in a stage of the run */
    double seconds_before[3]; /* that its queues worked before the run, for measurements */
    uint64_t ran_out;         /* memory that a plan counted on and did not get; 0: it got all */
    tgi_device_form form;
    tgi_device_need need; /* of the chosen tiling */
} tgi_job_device;

/* Scratch for decoded input: would it help, is it used, and why. */
typedef struct tgi_scratch_part {
    double passes; /* times the input is decoded without it; 0: rows are not streamed */
    int helps, used;
    int no_room;    /* the buffers to write it do not fit the budget */
    uint64_t bytes; /* of the file */
    char why[192];
} tgi_scratch_part;

/* What who asks for a plan wants beside it. */
typedef struct tgi_plan_ask {
    int measured; /* a device's figures: its context is made. Else those of an earlier one do */
    /* Static; what a refusal advises: the caller takes more memory than the plan counts.
     * NULL: the --ram that is enough. */
    const char *remedy;
    size_t beside; /* what the caller holds while the plan runs; the plan counts it */
} tgi_plan_ask;

typedef struct tgi_plan_part {
    int valid;
    double seconds;      /* estimate of the whole job */
    double masks_decide; /* of these, what may fall away when the masks are known */
    int calibrated;      /* 1: by the speeds of this machine */
    int64_t lessons;     /* finished runs that corrected it */
    tgi_net *net;
    tgi_stages *stages; /* of the net; stages->one runs, or choice.staged */
    tgi_choice choice;
    int64_t fixed[3];       /* sides of a cell (z,y,x); 0: chosen */
    int64_t tile_h, tile_w; /* of the output file */
    tgi_sink_layout *layout;
    int window; /* slots of the writer */
    size_t budget, margin;
    tgi_plan_ask ask;
    int adopts; /* an interrupted run decided, and this one keeps to it: */
    tgi_decided adopted;
    tgi_bytes bytes;
    tgi_scratch_part scratch;
    char whole_text[160]; /* what needs a whole image at once; "": nothing */
    tg_plan_line line[TGI_MAX_PLAN_LINES];
    char note[TGI_MAX_PLAN_LINES][192];
    int n_lines;
} tgi_plan_part;

/* Figures of this machine that a plan is given, in place of measuring them. All zero: none. */
typedef struct tgi_known {
    size_t others_bytes;    /* of what the library holds: gone when the job runs */
    uint64_t program_bytes; /* what the program takes */
    /* Borrowed. The device's free memory and context, its kinds too where an element is named. */
    const tgi_job_device *device;
    const struct tgi_lessons *lessons; /* borrowed; of finished runs */
} tgi_known;

struct tg_job {
    tg_ctx *ctx;
    tgi_flag asked; /* tg_job_cancel asked to stop */
    int at_work;    /* a call works on it: a function that the call runs may begin no other */
    tgi_known known;
    tg_opts *opts;       /* a copy; the caller's may be freed */
    tgi_machine machine; /* the machine that is planned for; options can name another one */
    tgi_settings set;
    tgi_graph *graph;
    tgi_source *source;
    struct
    { /* --planes, where these are combinations of entries of axes and the source has these alone */
        int64_t count; /* 0: they are not */
        char letters[TGI_IMAGE_MAX_AXES + 1];
        tgi_planes_spec planes;
    } picked;
    tgi_in_turn in_turn; /* where they are no such combinations */
    const tgi_image_info *info;
    const char *but;           /* the output, where tgi_leave_out says so */
    tgi_bad_tiles *bad;        /* --on-bad-tile fill; else NULL */
    struct tgi_job_post *post; /* job_post.h; NULL: without --post */
    struct tgi_job_film *film; /* job_film.h; NULL: the output is none */
    int film_told;             /* what it will not have was said */
    tgi_mapping map;
    tgi_scratch_place scratch_place; /* of the folder set.scratch */
    tgi_desc in_desc, out_desc;
    tgi_desc in_descs[TGI_MAX_PORTS];       /* of all inputs; the first one is in_desc */
    size_t carried_bytes;                   /* what is handed from frame to frame takes */
    const struct tgi_ends *ends;            /* ends.h; NULL while the job is being opened */
    struct tgi_tensors *tensors;            /* files of arrays (tensors.h) */
    struct tgi_job_settings_list *settings; /* NULL until asked for (job_settings.c) */
    tgi_plan_part plan;
    tgi_job_device dev;
    tgi_job_device refused; /* a device with too little memory, as it was at that moment */
    uint64_t refused_bytes; /* what the job would have taken there; 0: none was refused */
    uint64_t device_peak;   /* of the last plan on a device */
    tgi_err uncounted; /* why a tiling could not be counted on the device; the first reason */
    size_t ran_out;    /* memory of a plan that was not there when it ran; 0: all was there */
    int again;         /* what an earlier run left is of no use: begin anew */
    char machine_text[256], device_text[320];
    size_t held_before;  /* live bytes of the library when the job was opened */
    size_t planned_held; /* of them, when the job was planned last */
    /* It is planned as an interrupted run was: what was opened since is in lines of the plan. */
    int goes_on;
    /* tgi_machine_process, measured at the first question of a plan: what planning itself touches
     * depends on the budget. */
    uint64_t program_bytes, program_more;
    int program_measured;
    size_t source_bytes; /* what opening the source took of the library's memory */
    int spare;           /* opened so that it holds as little as possible */
    char *
        model_key; /* names its network for the next job (tgi_ctx_keep); NULL: it is not kept */
    int told_lost; /* of metadata that the output has no place for the user knows */
    tg_verify_output verified[TGI_MAX_PORTS]; /* results of the last verify */
    char warning[8][640];                     /* also sent to the log when they came up */
    int n_warnings;
    tgi_job_side log, drawn; /* --log and --plot, once they were looked at (job_gate.c) */
    int sides_known;
    atomic_int surplus; /* the input has more data than pixels (tgi_open_opts) */
    int stats_made;     /* --stats was not there: this job wrote it */
    int stats_given; /* the statistics of the last run came from a file, now or when it was begun */
    struct tgi_given_stats *given; /* from the --stats file; NULL: not read (stats_file.c) */
    struct tgi_lessons *lessons;   /* NULL until asked for (plan_seconds.c) */
    double *node_seconds;          /* of the stage's nodes in this run; NULL: not timed */
    double processor_before;       /* processor seconds of this process when the bands began */
    double undisturbed; /* share of the last run's time that its threads had a processor */
};

/* The device that computes the pass; NULL: the processor does. */
static inline const tgi_device_ops *tgi_job_pass_ops(const tg_job *job)
{
    return job->dev.for_source ? NULL : job->dev.ops;
}

#endif
