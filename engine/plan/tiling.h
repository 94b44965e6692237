/* tiling.h - one way to cut the work of a stage, worked out to the byte: cell sizes, band
 * height, ring of every value, offsets in the arena, bands and operations of the whole pass.
 *
 * What is wanted of the stage's output 0 (stage->fit) is cut in cells of `cut` pixels per axis
 * (the last of a row smaller); a cell streams along axis 2. Without a cut the one cell is the
 * whole image, in bands. Cutting columns makes strips, as tall as the image; cutting rows too
 * makes smaller cells. Ring and width of a value are the largest over all cells, so one arena
 * serves each. Where the network runs in
 * fixed boxes, each cell belongs to one box and is counted in that box's frame. */
#ifndef TGI_TILING_H
#define TGI_TILING_H

#include "engine/plan/arena.h"
#include "engine/plan/stream.h"

typedef struct tgi_slot {
    int64_t ring;  /* rows on the stream axis alive together */
    int64_t fed;   /* what the stage loads: rows of a band at most */
    int64_t rows;  /* volumes: stored rows on axis 3; images: 1 */
    int64_t width; /* stored columns, zero columns outside the image included */
    size_t block_pitch, row_pitch, slab_pitch; /* floats; slab: one step of the stream axis */
    size_t bytes, offset;
} tgi_slot;

typedef struct tgi_tiling {
    const tgi_stage *stage; /* borrowed */
    const tgi_net *net;     /* the stage's */
    int64_t band;           /* rows of input 0 fed per band */
    int64_t cut[3];         /* z,y,x extent of a cell in output-0 pixels; images: cut[0] = 1 */
    int64_t n_cut[3];
    int threads;
    tgi_slot *slot;         /* per value */
    unsigned char *carried; /* per value: rows survive a band */
    /* per node of the stage: rows computed along the stream axis, all cuts */
    double *stream_rows;
    int64_t *band_rows;        /* per node of the stage: rows computed in one band at most */
    double *node_flops;        /* per node of the stage, two: of all cells, and of one pass */
    int64_t stream_bands;      /* bands of one walk along the stream axis */
    tgi_flow_cost stream_cost; /* of one such walk */
    tgi_flow_cost cost;        /* of all cells */
    size_t *scratch;           /* per node of the stage: offset */
    size_t arena_bytes, lower_bound_bytes;
    int64_t cells, bands; /* bands of all cells together */
    double flops, whole_flops;
    double work;     /* flops, each node's weighted with its variant's cost */
    int64_t halo[3]; /* input pixels read beyond a cell's own share, larger side */
    int n_values;
} tgi_tiling;

/* Index in cut[] of a value's axis: image axis 2 is y, volume axis 2 is z. */
static inline int tgi_cut_of_axis(const tgi_net *net, int axis)
{
    return axis - TGI_STREAM_AXIS + (net->rank == 4 ? 1 : 0);
}

/* Work out the tiling. `cut` 0 or larger than the output: uncut. `like`: a tiling of the same
 * stage with the same band height and the same cut on the stream axis, whose walk is copied
 * instead of done again; or NULL. Filled in *out; release with tgi_tiling_free. */
tg_status tgi_tiling_make(const tgi_stage *stage, const int64_t cut[3], int64_t band,
                          int threads, const tgi_tiling *like, tgi_tiling *out, tgi_err *err);
void tgi_tiling_free(tgi_tiling *t);
/* What a tiling of that stage holds. */
size_t tgi_tiling_held(const tgi_stage *stage);

/* Core of cell k on each axis of output 0: core[axis - 2]. Cells are numbered z fastest, then
 * y, then x: the cells of one strip follow each other downwards. */
void tgi_tiling_cell(const tgi_tiling *t, int64_t k, tgi_range core[3]);
/* Where cell k lies, z,y,x: pixel i of the region is i + in[] of the network, output pixel o of
 * the file o + out[] of output 0. */
void tgi_tiling_shift(const tgi_tiling *t, int64_t k, int64_t in[3], int64_t out[3]);

static inline double tgi_tiling_recomputed(const tgi_tiling *t)
{
    return t->flops > t->whole_flops && t->whole_flops > 0 ? t->flops / t->whole_flops - 1.0
                                                           : 0.0;
}

#endif
