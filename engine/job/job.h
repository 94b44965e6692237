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

struct tg_job {
    tg_ctx *ctx;
    tgi_flag asked;      /* to stop: by tg_job_cancel */
    tg_opts *opts;       /* a copy: the caller's may go */
    tgi_machine machine; /* planned for; options can name another than this one */
    tgi_settings set;
    tgi_graph *graph;
    tgi_source *source;
    const tgi_image_info *info;
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
    tgi_err uncounted; /* why a tiling could not be counted there: the first of an attempt */
    const struct tg_job *like; /* a trial: the device is as it was when that job was refused */
    int running;               /* figures of the device are measured, not looked up */
    int again;                 /* what an earlier run left was of no use: begin once more */
    int without_scratch;       /* of a plan: buffers to write it would not fit */
    int plan_is_part;   /* verify and preview: what the plan takes is not all they take */
    int processor_only; /* no device is asked for, whatever the options say */
    char machine_text[256], device_text[320];
    size_t held_before; /* live bytes of the library when the job was opened */
    size_t beside; /* held by another job of this process, which this one is tried instead of */
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
    int unlearned;                 /* what finished runs took is neither asked nor told */
};

/* When the input has been read: what was not looked at of it. Once. */
void tgi_job_warn_of_surplus(tg_job *job);
/* Keep a warning for the receipt and tell the log. */
void tgi_job_warn(tg_job *job, const char *fmt, ...) TGI_PRINTF(2, 3);

/* job_open.c */
tg_status tgi_job_open(tg_ctx *ctx, const tg_opts *o, tg_job **out, tgi_err *err);
void tgi_job_close(tg_job **job);

/* job_plan.c: choose and count; fills job->plan. */
tg_status tgi_job_plan(tg_job *job, tgi_err *err);
/* The same for an output that will be written: one that is to be a PNG or JPEG file gets a type
 * that it can hold, unless one was asked for, and is refused when it cannot. */
tg_status tgi_job_plan_output(tg_job *job, tgi_err *err);
/* The same for what only the processor does (verify, preview): a device is left. */
tg_status tgi_job_plan_processor(tg_job *job, tgi_err *err);
/* Net and stages for inputs of this shape, with the kernels of the settings, unless they are
 * there. */
tg_status tgi_job_net(tg_job *job, const tgi_desc *in, tgi_err *err);
/* Forget the plan, not what was adopted: the next question for it plans anew. */
void tgi_job_drop_plan(tg_job *job);
/* Use what an interrupted run decided, in the words of tgi_job_decided: kernels and file tile,
 * and cell and band if they still fit. Before tgi_job_plan; drops a plan made already. */
void tgi_job_adopt(tg_job *job, const char *decided);
void tgi_job_decided(const tg_job *job, char *out, size_t size);
/* Forget what was adopted, and the plan made with it. */
void tgi_job_adopt_none(tg_job *job);
/* job_device.c: which device, before a run is planned; asked once. TG_E_DEVICE and
 * TG_E_UNSUPPORTED where --device names one; else the processor stays, with a notice. */
tg_status tgi_job_device_choose(tg_job *job, tgi_err *err);
/* device_foreign.c: the GPU of the job's machine file, into job->dev. TG_E_DEVICE: none, or no
 * plugin. */
tg_status tgi_job_device_of_file(tg_job *job, const tgi_device_spec *want, tgi_err *err);
/* device_kinds.c. What the last bits of a result depend on: "avx512", or "cuda fp16 9.0 wgmma":
 * sums of tensor cores are another generation's in another generation. Returns buf. */
const char *tgi_job_computed_by(const tg_job *job, char *buf, size_t cap);
/* Choose precision and kinds of variants of the device. Why it cannot compute so; NULL: it can.
 */
const char *tgi_job_pick_kinds(tg_job *job);
/* Of a device that was chosen: take precision and kinds of `was`, in the words of
 * tgi_job_computed_by, where the options leave them open. */
void tgi_job_device_adopt(tg_job *job, const char *was);
/* What the device gains, measured now when nobody has yet; fills `m` with all that is known.
 * < 0: it cannot be measured. */
double tgi_job_gain(tg_job *job, tgi_gain which, tgi_measured *m);
/* For the next job; a folder that cannot be written is no failure. */
void tgi_job_keep_measured(tg_job *job, const tgi_measured *m);
/* 1: nothing but the plan decides whether the library is used. */
int tgi_job_library_is_open(const tg_job *job);
/* plan_device.c: plan on the device, if one is chosen, with `tile` (which chooses the tiling of
 * the net that is there); where that fails back to the processor, unless the user named the
 * device. `in`: as tgi_job_net. */
tg_status tgi_job_plan_on_device(tg_job *job, const tgi_desc *in,
                                 tg_status (*tile)(void *user, tgi_err *err), void *user,
                                 tgi_err *err);
/* Before a plan is run: if it was made without a context, make that now. *holds: 0 when what
 * is measured is not what was supposed, and the plan has to be made again. */
tg_status tgi_job_device_confirm(tg_job *job, int *holds, tgi_err *err);
/* Go back to the processor, dropping the plan: `why` is told, unless --device named the device
 * (then the answer is TG_E_UNSUPPORTED) or it is NULL. */
tg_status tgi_job_device_leave(tg_job *job, const char *why, tgi_err *err);
/* See how much memory there is, and what a context takes of it. Of a job that is not running
 * without making one, where both can be looked up: what an earlier context took, and what the
 * management library says is free. */
tg_status tgi_job_device_see(tg_job *job, tgi_err *err);
/* Make the context and measure both; once. */
tg_status tgi_job_device_open(tg_job *job, tgi_err *err);
/* With nothing of the job's on the device but its context: what is not free any more is the
 * context's, and the rest is allowed anew. */
void tgi_job_device_recount(tg_job *job);
void tgi_job_device_close(tg_job *job);
/* Seconds of an item on the device, as tgi_choose_args wants them; user: the job. */
double tgi_job_device_seconds(void *user, const tgi_tiling *t);
/* Of all items, with the chosen lanes; pixel_bytes: all that go in and out. */
double tgi_job_device_all_seconds(const tg_job *job, const tgi_tiling *t, double items,
                                  double pixel_bytes);
#define TGI_JOB_DEVICE_TALLEST 4096 /* rows of a band that is worth planning */
/* What a tiling takes on the device beside the arena; SIZE_MAX when the host has no room for
 * its side of it: `host` bytes are left there. */
size_t tgi_job_device_extra(tg_job *job, const tgi_tiling *t, size_t host);
/* Of a plan: all that the job will hold on the device, context included. */
uint64_t tgi_job_device_planned(const tg_job *job);
/* Bytes taken on the device now: the context, and what is not free any more beside it; 0 when
 * it does not say. A neighbour's counts too. */
uint64_t tgi_job_device_taken(const tg_job *job);
/* Count the chosen tiling: fills dev.need, bytes.weights and bytes.pinned. */
tg_status tgi_job_device_count(tg_job *job, size_t host, tgi_err *err);
/* Its lines of the plan, and those of what the host holds for it. */
void tgi_job_device_lines(tg_job *job);
/* After a run that ended in `st`: 1 when the device ran out of memory that the plan counted on,
 * or its library has no kernel for a layer; the context is given up and the next plan takes
 * less, or leaves the library out. */
int tgi_job_device_shrink(tg_job *job, tg_status st, const tgi_err *e);
/* What `st` of a run means to the caller: a device that failed in its middle is lost. */
tg_status tgi_job_device_answer(const tg_job *job, tg_status st, const tgi_err *e,
                                tgi_err *err);
/* What a run on the device took of it, before it is given back. */
void tgi_job_device_result(const tg_job *job, tg_run_result *res);
/* The answer when nothing fits this machine's memory: `least` bytes would do, SIZE_MAX: that
 * could not be counted; `or` is another remedy, or "". */
tg_status tgi_job_refuse_host(tg_job *job, size_t least, const char *other_way, tgi_err *err);
/* Of a plan that is refused: what the device was like, for trials. */
void tgi_job_device_keep_refused(tg_job *job);
/* The answer when nothing fits the device. */
tg_status tgi_job_device_refuse(tg_job *job, size_t least, tgi_err *err);
/* plan_scratch.c: after a tiling is chosen; fills plan.scratch. */
tg_status tgi_job_plan_scratch(tg_job *job, tgi_err *err);
/* Disk space that the interrupted run's OUT.partial holds. */
uint64_t tgi_job_held_already(const char *output);
/* Disk for the output and for scratch, at second zero: TG_E_NO_SPACE with remedies. */
tg_status tgi_job_check_disk(const tg_job *job, tgi_err *err);
/* Go without it: its folder is memory, which the budget does not have. */
void tgi_job_drop_scratch(tg_job *job);
/* 1 when rows of the input are streamed out of large compressed blocks. */
int tgi_job_streams_input(const tg_job *job);
/* Threads that read the source at the same time: the caller and the reader ahead. */
#define TGI_JOB_READERS 2
/* Page tables of a populated block: 8 bytes for each 4 KiB page, and the tables' own ends. */
static inline size_t tgi_page_table_bytes(size_t bytes)
{
    return bytes / 512 + ((size_t)64 << 10);
}
/* The most bytes that fit `left` with the tables that map them and `mapped` bytes beside. */
static inline size_t tgi_room_beside(size_t left, size_t mapped)
{
    const size_t none = tgi_page_table_bytes(mapped);
    size_t room = left > none ? (left - none) / 513 * 512 : 0;
    while (left > none && room + 1 + tgi_page_table_bytes(mapped + room + 1) <= left)
        room++;
    return room;
}
/* What that many take then; SIZE_MAX stays what it is. */
static inline size_t tgi_with_tables(size_t bytes, size_t mapped)
{
    return tgi_sat_add(bytes, tgi_page_table_bytes(tgi_sat_add(bytes, mapped)));
}
/* device_kinds.c: what convolutions and products of matrices multiply, as --precision spells
 * it, or "tf32". */
const char *tgi_job_precision(const tg_job *job);
/* TGI_NET_* of what the job's settings and device allow, for its own backend. */
unsigned tgi_job_net_flags(const tg_job *job);
/* What --pyramid asks for. */
static inline tgi_pyramid tgi_opts_pyramid(const tg_opts *opts)
{
    const int k = tgi_opts_choice(opts, TGI_OPT_PYRAMID);
    return k > 0 ? (tgi_pyramid)k : TGI_PYRAMID_NONE;
}
/* Open the input again to hold as little as it can: a plan that does not fit may fit then, at
 * the cost of decoding pixels more than once. 0: that is no less, or was done, or the file is
 * another one now. */
int tgi_job_spare_source(tg_job *job);
/* Of a budget, what a reader may allocate for decoding. Nothing runs in 2 MiB: what is opened
 * in that much can be planned, and the refusal has a figure. */
static inline size_t tgi_decode_budget(size_t budget)
{
    const size_t least = (size_t)2 << 20;
    return (budget > least ? budget : least) / 4;
}
/* What the process holds now that is this job's, the program's or the libraries'. */
size_t tgi_job_process_bytes(tg_job *job);
/* TG_E_ARG for a job that was planned for another machine: it cannot `act` ("run") there. */
tg_status tgi_job_needs_here(const tg_job *job, const char *act, tgi_err *err);
/* One buffer of input rows for a tiling. */
size_t tgi_job_staging_bytes(const tg_job *job, const tgi_tiling *t);
/* Bytes that the writer's window and staging take for a tiling. */
size_t tgi_job_extra_bytes(const tg_job *job, const tgi_tiling *t, tgi_bytes *parts);
/* plan_seconds.c: fill in plan.seconds, of a plan that is complete otherwise. */
void tgi_job_plan_seconds(tg_job *job);
/* A run that computes all of a job on the processor: time its nodes; and keep for the next
 * estimate what it took, in all, when it has finished. */
struct tgi_exec;
void tgi_job_learn_begin(tg_job *job, struct tgi_exec *exec);
void tgi_job_learn_end(tg_job *job, double seconds);
/* What no plan of a planned job's network takes less than with so many threads, when its
 * kernels take at least what they take for tiling `t` of it. */
double tgi_job_least_seconds(const tg_job *job, const tgi_tiling *t, int threads);
/* A round figure for all threads of a usual processor. */
double tgi_flops_per_second(tgi_isa isa, int threads);
/* plan_report.c: one more line of the plan; `fmt` takes `arg`. Lines beyond the last are left
 * out. */
void tgi_job_add_line(tgi_plan_part *p, const char *name, uint64_t bytes, tg_plan_kind kind,
                      uint64_t free_bytes, const char *fmt, const char *arg);
/* Its line for the margin, where there is one. */
void tgi_job_add_margin(tgi_plan_part *p);
/* plan_report.c: the plan in public form, and as JSON. After tgi_job_plan. */
void tgi_job_plan_info(const tg_job *job, tg_plan_info *out);
tg_status tgi_job_plan_json(tg_job *job, int why, char **json, tgi_err *err);
/* job_settings.c: as tg_job_settings; as member "settings"; as a job file. After tgi_job_plan.
 */
tg_status tgi_job_settings(tg_job *job, const tg_setting **list, size_t *n, tgi_err *err);
tg_status tgi_job_put_settings(tgi_jw *w, tg_job *job, tgi_err *err);
tg_status tgi_job_save_json(tg_job *job, char **json, tgi_err *err);

/* job_run.c: an image out, tile by tile. */
tg_status tgi_job_run_tiles(tg_job *job, tg_run_result *out, tgi_err *err);
/* job_tensor.c: arrays, or an image, in; arrays out, as the model declares them. */
void tgi_tensors_close(struct tgi_tensors **t);
tg_status tgi_job_run_arrays(tg_job *job, tg_run_result *out, tgi_err *err);
/* job_gate.c: all that the job writes and reads passes the gate (engine/out/gate.h). */
struct tgi_gate;
tg_status tgi_job_gate(const tg_job *job, tgi_err *err);
tg_status tgi_gate_reads_source(const struct tgi_gate *g, const tgi_source *s, const char *path,
                                tgi_err *err);
/* The same for one more file that is made of what a job is: it is none that the job reads. */
tg_status tgi_job_spares(const tg_job *job, const char *path, const char *what, tgi_err *err);
/* Before a run or verify touches anything: TG_E_EXISTS where --log or --plot names what is
 * there, -y is not given and no interrupted run left it. */
tg_status tgi_job_sides_look(tg_job *job, tgi_err *err);
/* A run that ended in `st`, with nothing to go on from, and that the same command is to begin
 * anew: remove what this job made of them, so that it finds nothing in its way. */
void tgi_job_sides_drop(const tg_job *job, tg_status st);
/* A share of clipped values that is worth a warning. */
#define TGI_CLIPPED_MANY 0.01
/* A copy that is a part of a job: what the job has computed becomes an image. */
typedef struct tgi_copy_part {
    const tgi_image_meta *meta;  /* what to say of it, instead of what the input says */
    struct tgi_journal *journal; /* of the output, open; what a stopped run left is discarded.
                                   It is sealed, and its holder gives the name */
} tgi_copy_part;

/* describe.c, copy.c, job_preview.c; `part` NULL: a job of its own. */
tg_status tgi_describe(const char *path, char **json, tgi_err *err);
tg_status tgi_copy(tg_ctx *ctx, const tg_opts *o, const tgi_copy_part *part, tgi_err *err);
/* Does the journal tell of such a part? Then nobody goes on with it. */
int tgi_copy_was_part(const struct tgi_journal *j);
tg_status tgi_job_preview(tg_job *job, tgi_err *err);
/* job_verify.c */
tg_status tgi_job_verify(tg_job *job, tg_verify_result *out, tgi_err *err);
/* What preview, verify and copy hold at most, as tgi_job_plan says it for run; they refuse
 * (TG_E_BUDGET) what is above the budget. No pixel is touched. */
tg_status tgi_job_preview_peak(tg_job *job, uint64_t *bytes, tgi_err *err);
tg_status tgi_job_verify_peak(tg_job *job, uint64_t *bytes, tgi_err *err);
tg_status tgi_copy_peak(const tg_opts *o, uint64_t *bytes, tgi_err *err);

/* Statistics and the maps for every set: collected, or read from --stats. Arrays of
 * map.n_stats. */
void tgi_job_affine(const tg_job *job, const tgi_stats *s, tgi_affine *in, tgi_affine *out);

/* stats_file.c */
/* TG_E_ARG: --stats is given and changes nothing. */
tg_status tgi_job_stats_check(const tg_job *job, int arrays, tgi_err *err);
tg_status tgi_job_stats_look(tg_job *job, tgi_err *err); /* read them now, if they are there */
tg_status tgi_job_stats_read(tg_job *job, tgi_stats *sets, int *found, tgi_err *err);
/* Keep them in the journal, with where they are from; and take them from it: 1 when it has
 * them. */
tg_status tgi_job_stats_keep(const tg_job *job, struct tgi_journal *j, const tgi_stats *sets,
                             int given, tgi_err *err);
int tgi_job_stats_kept(const tg_job *job, const struct tgi_journal *j, tgi_stats *sets);
/* TG_E_CHANGED when an interrupted output used others than the file that is there holds, or
 * those of a file, and none is there now. */
tg_status tgi_job_stats_same(tg_job *job, const struct tgi_journal *j, tgi_err *err);
/* For passes without a journal (verify, preview): read, or collect with scratch from `mem`. */
tg_status tgi_job_stats_collect(tg_job *job, tgi_reserve *mem, void *rows, size_t rows_bytes,
                                tgi_stats *sets, tgi_err *err);
tg_status tgi_job_stats_write(tg_job *job, const tgi_stats *sets, tgi_err *err);
void tgi_job_stats_forget(tg_job *job); /* of an input that was changed: what it wrote goes */
void tgi_stats_json(tgi_jw *w, const tgi_stats *sets, int64_t n); /* member "channels" */

/* descriptor.c: read MODEL.json beside the model, or what --descriptor names. */
tg_status tgi_descriptor_load(const char *model, const tg_opts *o, tgi_descriptor *d,
                              tgi_err *err);

#endif
