/* ends.h - the two ends of a job: what feeds it rows, and what takes the rows that it makes.
 *
 * A job asks its ends for shapes, bytes, time and lines of the plan, and adds up what they say.
 * It does not ask which ends they are.
 *
 *   tgi_tile_ends   an image in, the tiles of an image out (tile_ends.c)
 *   tgi_pipe_ends   the same tiles, as frames of a film through standard output, or of one that came through a pipe
 *   tgi_array_ends  arrays or an image in, arrays out (array_ends.c) */
#ifndef TGI_ENDS_H
#define TGI_ENDS_H

#include "engine/job/job.h"
#include "engine/plan/speed.h"

/* Samples and bytes that a job reads and writes, all items together. */
typedef struct tgi_traffic {
    double samples_in, samples_out, bytes_in, bytes_out;
} tgi_traffic;

typedef struct tgi_ends {
    const char *after_stop; /* what the command does then: "goes on", "starts over" */
    /* The output is an image. For what asks for one (preview, the tiles of auto), no step of a
     * plan or run: in these plan.layout tells whether the output has tiles. */
    int image_out;
    /* How many items: images, or samples of the arrays. 1 while the files are not open. */
    int64_t (*items)(const tg_job *job);
    /* The shape of each input of the network, N = 1. */
    const tgi_desc *(*shapes)(const tg_job *job);

    /* ---- Steps of a plan, in this order ---- */

    /* Open what has to be read for a plan, and refuse what these ends cannot do. */
    tg_status (*begin)(tg_job *job, tgi_err *err);
    /* Say which part of output 0 is wanted. */
    void (*fit)(const tg_job *job, tgi_stages *stages);
    /* Choose the best tiling that fits, with tgi_plan_choose, into plan.choice. TG_E_BUDGET has
     * no detail. */
    tg_status (*choose)(tg_job *job, tgi_err *err);
    /* Choose again, if what is known now changes the choice; NULL: nothing can change it. */
    tg_status (*choose_again)(tg_job *job, tgi_err *err);
    /* Fill the parts of plan.bytes that the chosen tiling decides. */
    void (*count)(tg_job *job);
    /* Make the writer's window larger, if that helps and takes no more than `room`, with what comes with it: the bytes that it
     * is larger by. The plan fits without. NULL: it never helps. */
    size_t (*widen)(tg_job *job, size_t room);
    void (*write_lines)(tg_job *job);
    /* Refuse a plan whose output cannot be written; NULL: it always can. */
    tg_status (*check_output)(tg_job *job, tgi_err *err);

    /* ---- What a planner asks about a tiling ---- */

    /* Smallest steps of a cut (z,y,x). */
    void (*unit)(const tg_job *job, int64_t unit[3]);
    /* Bytes that a tiling takes beside its arena. */
    size_t (*beside)(const tg_job *job, const tgi_tiling *t);
    /* Of these, rows of an image on their way in: they lie in the arena of a net in stages. */
    size_t (*rows_in)(const tg_job *job, const tgi_tiling *t);
    /* Bytes of the arena that a pass before the network uses (statistics); 0: there is none. */
    size_t (*first_pass)(const tg_job *job);
    /* The answer when no tiling takes less than `least` bytes. */
    tg_status (*refuse)(tg_job *job, size_t least, tgi_err *err);

    /* ---- On a device ---- */

    /* Bytes on the host beside what is pinned. */
    size_t (*device_beside)(const tg_job *job, const tgi_tiling *t);
    void (*form)(const tg_job *job, const tgi_tiling *t, tgi_device_form *out);
    /* Bytes of pixels that a band moves, both ways. */
    double (*band_pixels)(const tg_job *job, const tgi_tiling *t);

    /* ---- Time ---- */

    /* What is read and written, of all items. */
    void (*add_traffic)(const tg_job *job, double items, tgi_traffic *t);
    tgi_codec_speed (*output_codec)(const tg_job *job);
    /* The share of a job's fixed time that these ends take. */
    double fixed_share;

    /* ---- A run ---- */

    const struct tgi_run_steps *steps; /* run.h */
} tgi_ends;

extern const tgi_ends tgi_tile_ends, tgi_pipe_ends, tgi_array_ends;

/* That --tile leaves the output file small tiles, in words, once a plan stands; "" where not. */
void tgi_tile_note(const tg_job *job, char *buf, size_t cap);

/* ---- What the planner lends to ends (job_plan.c) ---- */

/* The bytes that no tiling changes: those of this process, and slack. */
tgi_bytes tgi_plan_first_bytes(tg_job *job);
/* The best tiling of the net that is there, cells of plan.fixed where that is set; plan.bytes
 * has all that no tiling changes. TG_E_BUDGET: none fits, plan.choice.smallest_bytes would. */
tg_status tgi_plan_choose(tg_job *job);
/* Does one of these cells fit? */
int tgi_plan_fits(tg_job *job, const int64_t fixed[3]);
/* What the smallest plan takes here; SIZE_MAX: it could not be counted. */
size_t tgi_plan_least_bytes(const tg_job *job);
/* "6MiB": the smallest such number that is enough. Returns buf. */
const char *tgi_plan_ram_text(const tg_job *job, size_t least, char *buf, size_t cap);
/* Write the plan's lines of the network: weights and arena here, or the buffers on the way to
 * the device that holds them. */
void tgi_plan_network_lines(tg_job *job, const char *weights, const char *arena);
/* Blocks of the input, where they are compressed. */
void tgi_plan_decoder_line(tg_job *job);
/* What lies beside the blocks: the process, what the kernel keeps for them, slack. */
void tgi_plan_process_lines(tg_job *job, const char *process);

/* An image's part of the traffic (plan_seconds.c). */
void tgi_traffic_of_image(const tg_job *job, double items, tgi_traffic *t);

/* One buffer of input rows for a tiling. */
size_t tgi_job_staging_bytes(const tg_job *job, const tgi_tiling *t);
/* Its pixels as a device gets them. */
tgi_device_port tgi_job_image_port(const tg_job *job, const tgi_tiling *t);
/* Bytes that the writer's window and staging take for a tiling. */
size_t tgi_job_extra_bytes(const tg_job *job, const tgi_tiling *t, tgi_bytes *parts);

#endif
