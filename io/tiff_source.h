/* tiff_source.h - the inside of an open TIFF. tiff_block.c finds blocks, tiff_read.c makes
 * pixels of them, tiff_open.c allocates and frees. */
#ifndef TGI_TIFF_SOURCE_H
#define TGI_TIFF_SOURCE_H

#include "io/image.h"
#include "io/tiff_codec.h"
#include "io/tiff_form.h"
#include "io/tiff_series.h"
#include "io/tiff_stream.h"

#include <pthread.h>

typedef struct tgi_tiff_slot {
    uint64_t plane, block; /* what it holds; block UINT64_MAX: nothing */
} tgi_tiff_slot;

typedef struct tgi_tiff_lane {
    tgi_window data, offsets, counts;
    tgi_unpack *unpack;
    uint8_t *cache; /* n_slots blocks */
    tgi_tiff_slot *slots;
    uint8_t *tmp;     /* one row, for the predictor */
    uint64_t decoded; /* bytes of pixels */
} tgi_tiff_lane;

typedef struct tgi_tiff_source {
    tgi_source base;
    tgi_tiff_file file;
    tgi_tiff_index index;
    tgi_tiff_series series;
    tgi_image_info info;
    tgi_form form;
    tgi_packing packing;
    uint8_t *tables;   /* JPEGTables or NULL */
    size_t max_packed; /* compressed bytes of a block that are read at most */
    size_t n_slots;    /* per tgi_tiff_lane */
    int64_t planes_at_once, plane_stride; /* planes read in turn, row by row */
    size_t budget;
    int spare; /* tgi_open_opts.spare */
    int (*cancelled)(void);
    tgi_bad_region_fn *on_bad; /* NULL: a block that cannot be decoded ends the reading */
    void *on_bad_arg;
    atomic_int *surplus;  /* or NULL */
    tgi_streams *streams; /* NULL: blocks are held whole, or stored uncompressed */
    size_t keep;          /* rows a stream keeps */
    pthread_mutex_t lock; /* of `streams` */
    int n_lanes;
    tgi_tiff_lane *lanes;
    size_t bytes, decoder_bytes; /* held, for the plan: without the decoders; by them */
} tgi_tiff_source;

/* Where a block's bytes lie. */
typedef struct tgi_tiff_place {
    uint64_t off, count;
} tgi_tiff_place;

/* Rows of a block: fewer in the last strip. */
uint64_t tgi_tiff_block_rows(const tgi_tiff_page *p, uint64_t block);
/* Place of a plane's page among the pages of the index. */
uint64_t tgi_tiff_rank(const tgi_tiff_source *s, int64_t plane);
/* Find offset and bytes of one block of a plane. TG_E_FORMAT: it does not lie in the file. */
tg_status tgi_tiff_locate(const tgi_tiff_source *s, tgi_tiff_lane *l, int64_t plane,
                          uint64_t block, tgi_tiff_place *out, tgi_err *err);
/* Look at every block of every plane once, at open. Fills max_packed and the packing's
 * history. */
tg_status tgi_tiff_check_blocks(tgi_tiff_source *s, tgi_err *err);
/* A column is the blocks above each other in one sample plane; a reader goes down through
 * it. */
uint64_t tgi_tiff_column_of(const tgi_tiff_page *p, uint64_t block);
uint64_t tgi_tiff_columns(const tgi_tiff_page *p);

/* `read` of tgi_source_ops. */
tg_status tgi_tiff_read(tgi_source *base, int thread, int64_t plane, int s0, int s1, int64_t y0,
                        int64_t y1, int64_t x0, int64_t x1, void *dst, size_t row_pitch,
                        size_t sample_pitch, tgi_err *err);

#endif
