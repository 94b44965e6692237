/* copy_priv.h - a copy under way, shared by copy.c (what to copy), copy_tiff.c and copy_npy.c.
 */
#ifndef TGI_COPY_PRIV_H
#define TGI_COPY_PRIV_H

#include "engine/ends/input_hash.h"
#include "engine/job/copy.h"
#include "engine/job/job.h"
#include "io/in_turn.h"

#include <stdatomic.h>

#define ROWS_BYTES ((size_t)4 << 20) /* of one sample, at most, unless one row is longer */

typedef struct tgi_copying {
    tg_ctx *ctx;
    const tg_opts *opts;
    tgi_machine *machine; /* too large for the stack */
    tgi_source *source;
    const tgi_image_info *info;
    const char *input, *output;
    const char *but;                  /* the output, where tgi_leave_out says so */
    const tgi_picture_writer *writer; /* makes the output of the tiles; NULL: they stay */
    tgi_image_meta meta;              /* of the output, a view */
    const tgi_copy_part *part;        /* of a job; or NULL */
    tgi_bad_tiles *bad;               /* --on-bad-tile fill; else NULL */
    tg_dtype dtype;
    tgi_planes_spec planes;
    tgi_chosen chosen; /* where not all planes are copied */
    int64_t n_planes;
    tgi_in_turn in_turn; /* where they are no combinations */
    tgi_range y, x;
    char axes[TGI_IMAGE_MAX_AXES + 1]; /* of the output, singletons kept */
    int64_t shape[TGI_IMAGE_MAX_AXES];
    int n_axes;
    tgi_input_hash *hash;            /* of a part NULL: nobody else has its input */
    char input_sum[TGI_SHA256_TEXT]; /* of all of it, as the journal knows it; "": not yet */
    int unsure;        /* nobody knows whether the input is what the interrupted run read */
    int changed;       /* the input is another one now */
    const char *table; /* of --objects, when it has its name */
    char *in_rows, *out_rows;  /* [sample][row][column]; one row of the output */
    size_t row_bytes;          /* of both */
    size_t budget;             /* what --ram allows */
    size_t source_bytes;       /* of the library, that the source took when it was opened */
    int spare;                 /* it was opened to hold as little as it can */
    int went_on;               /* with tiles of an interrupted copy */
    int post;                  /* the source is one of --post (post.h): */
    size_t post_bytes;         /* what it keeps in RAM */
    const char *post_folder;   /* and where the rest; NULL: there is none */
    size_t table_bytes;        /* of these, for the sums of --objects, */
    char *const *channel_name; /* whose columns are the input's channels; or NULL */
    int n_channels;
    int refused;        /* check_budget did not let it begin */
    int64_t step;       /* rows read at once */
    atomic_int surplus; /* the input has more data than pixels */
    double begun;       /* the phase */
    double post_told;   /* what --post does: when it was told last, and what; static text */
    const char *post_phase;
    int64_t n_tiles, resumed;   /* of a TIFF; those that were found */
    int64_t repairs;            /* of these damaged, and written again */
    int64_t seq;                /* of the next tile */
    int64_t clipped, converted; /* values that the output's type does not hold; all of them */
} tgi_copying;

/* copy.c */
void tgi_copy_tell(const tgi_copying *c, double fraction);
tg_status tgi_copy_stopped(void *user, tgi_err *err);
tg_status tgi_copy_check_tick(void *user, double fraction, tgi_err *err);
/* Before the first pixel is read. */
tg_status tgi_copy_watch_input(tgi_copying *c, tgi_err *err);
/* When all is read, or reading failed. TG_E_FORMAT: c->changed when what was made of the input
 * is of no use to anybody. */
tg_status tgi_copy_input_held(tgi_copying *c, tg_status st, tgi_err *err);
tg_status tgi_copy_read_rows(tgi_copying *c, int64_t plane, int64_t y0, int64_t y1,
                             tgi_err *err);
/* n pixels of one sample to every `stride`-th element of dst, in the output's type. */
void tgi_copy_convert(tgi_copying *c, const char *src, int64_t n, char *dst, int64_t stride);
/* Row r (of `rows` read) of sample s. */
const char *tgi_copy_row_of(const tgi_copying *c, int64_t s, int64_t r, int64_t rows);
/* Before the output gets its name. */
tg_status tgi_copy_list_bad(tgi_copying *c, tgi_err *err);
/* After it has it. */
tg_status tgi_copy_verdict(const tgi_copying *c, tgi_err *err);
/* Slots of the writer, and threads that compress. */
int tgi_copy_window_of(const tgi_sink_layout *l);
int tgi_copy_encoders_of(const tgi_copying *c);
/* What the copy takes beside what the process holds by now, against --ram or, without one, all
 * that is free: a copy takes little. `l` NULL: the output is an array. */
tg_status tgi_copy_check_budget(tgi_copying *c, const tgi_sink_layout *l, uint64_t *peak,
                                tgi_err *err);

/* What of the metadata the output has no place for; `l` NULL: it is an array. */
void tgi_copy_tell_lost(const tgi_copying *c, const tgi_sink_layout *l);

/* copy_post.c: what it is when there is no --post is nothing. */
/* Behind the choice of what is copied: put the source of --post in front. */
tg_status tgi_copy_add_post(tgi_copying *c, tgi_err *err);
/* How much of its tables is in RAM where all else takes `others` of the budget. */
tg_status tgi_copy_choose_post(tgi_copying *c, uint64_t others, uint64_t budget, tgi_err *err);
/* 1: it would take less with --scratch. */
int tgi_copy_post_needs_scratch(const tgi_copying *c);
/* Bytes of its scratch files. */
uint64_t tgi_copy_post_scratch(const tgi_copying *c);
/* Before the first row. */
tg_status tgi_copy_begin_post(tgi_copying *c, tgi_err *err);
/* --objects: what of it stands in the way, and when all tiles are there, the table. */
tg_status tgi_copy_check_objects(const tgi_copying *c, int afresh, tgi_err *err);
tg_status tgi_copy_write_objects(tgi_copying *c, int goes_on, tgi_err *err);
/* The input was found to be another one when all was read: the table goes. */
void tgi_copy_forget_objects(const tgi_copying *c, tg_status st);
/* While it reads the image for its tables. */
tg_status tgi_copy_post_tick(void *user, const char *phase, double fraction, tgi_err *err);

/* copy_npy.c */
tg_status tgi_copy_to_npy(tgi_copying *c, tgi_err *err);

/* copy_tiff.c */
tg_status tgi_copy_make_layout(const tgi_copying *c, tgi_sink_layout **out, tgi_err *err);
tg_status tgi_copy_to_tiff(tgi_copying *c, tgi_err *err);

#endif
