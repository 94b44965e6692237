/* verify_picture.c - draws the middle of output 0: a row for tegula's tiles, a row for tiles that
 * know nothing of each other. */
#include "engine/verbs/verify_picture.h"

#include "engine/base/arith.h"
#include "engine/base/cancel.h"
#include "engine/base/mem.h"
#include "engine/exec/dense.h"
#include "engine/job/device_kinds.h"
#include "engine/job/job_gate.h"
#include "engine/job/job_open.h"
#include "engine/job/pass.h"
#include "engine/verbs/preview_picture.h"
#include "io/png.h"

#include <string.h>
#include <unistd.h>

#define TILE 256 /* sides that are common elsewhere */
#define OVERLAP 32
#define SIDE 768 /* of a panel at most */

struct tgi_verify_picture {
    tg_job *job;
    const char *path;
    tgi_net *net; /* of a tile */
    tgi_stages *stages;
    tgi_tiling tiling;             /* in one piece */
    int64_t in_dim[2], out_dim[2]; /* y,x: of input and output, of one scale */
    int64_t dim[2], at[2];         /* what both have; where the panels begin */
    int64_t window[2], gives[2];   /* of a tile with its overlap; its output */
    int64_t step[2];               /* windows begin at multiples of it */
    tgi_panel whole, other;
    tgi_picture picture;
    int row;
    float *in, *out, *scratch; /* of a tile; of painting */
};

/* ---- Plan -------------------------------------------------------------------------------- */

static tg_status check_path(const tg_job *job, const char *path, tgi_err *err)
{
    const size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 4, ".png") != 0)
        return tgi_fail(err, TG_E_ARG, "--picture %s: the picture is a PNG: FILE.png", path);
    if (!job->set.overwrite && access(path, F_OK) == 0)
        return tgi_fail(err, TG_E_EXISTS, "--picture %s exists: give -y to overwrite it", path);
    return tgi_job_spares(job, path, "--picture", err);
}

/* Pixel for pixel, whatever a border or a rounding of sizes adds or takes: of one scale. */
static tg_status is_of_one_scale(const tgi_graph *g, int k, int64_t in, int64_t out, int *is,
                                 tgi_err *err)
{
    tgi_place p = {0};
    if (in != out)
        TGI_TRY(tgi_graph_place(g, k, &p, err));
    *is = in == out || (p.up == 1 && p.down == 1);
    return TG_OK;
}

static tg_status check_net(const tg_job *job, const tgi_net *net, tgi_err *err)
{
    const tgi_desc *in = &net->shapes.desc[net->in[0]], *out = &net->shapes.desc[net->out[0]];
    int fits = net->n_in == 1 && net->rank == 4 && !net->values[net->out[0]].flat;
    for (int a = 0; a < 2 && fits; a++)
        TGI_TRY(
            is_of_one_scale(job->graph, 1 + a, in->dim[2 + a], out->dim[2 + a], &fits, err));
    if (fits)
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "--picture shows networks with one input whose first output is an image of "
                    "two axes, pixel for pixel of the input's: verify without it");
}

#define HIDDEN_STRIDE 16 /* of a network that takes any size and rounds it */

/* The next extents that the network takes, in step with the image's end; all of an image that is
 * smaller. */
static void lay_tiles(tgi_verify_picture *p, const tgi_net *net)
{
    const tgi_graph *g = p->job->graph;
    for (int a = 0; a < 2; a++) {
        const int64_t in = net->shapes.desc[net->in[0]].dim[2 + a],
                      out = net->shapes.desc[net->out[0]].dim[2 + a];
        const int64_t divisor = tgi_max(1, g->divisor[1 + a]);
        const int64_t more = 2 * tgi_max(OVERLAP, divisor) + tgi_max(0, in - out);
        const int64_t side = tgi_graph_extent(g, 1 + a, TILE + more);
        const int fixed = tgi_graph_fixed_extent(g, 1 + a) || side > in;
        p->in_dim[a] = in;
        p->out_dim[a] = out;
        p->dim[a] = tgi_min(in, out);
        p->step[a] = in == out ? divisor : divisor * tgi_ceil_div(HIDDEN_STRIDE, divisor);
        p->window[a] = fixed ? in : side + (in - side) % p->step[a];
        p->at[a] = (p->dim[a] - tgi_min(p->dim[a], SIDE)) / 2;
    }
    const int64_t h = tgi_min(p->dim[0], SIDE), w = tgi_min(p->dim[1], SIDE);
    const int channels = net->shapes.desc[net->out[0]].dim[1] == 3 ? 3 : 1;
    p->whole = p->other = (tgi_panel){.h = h, .w = w, .channels = channels};
    p->picture = tgi_picture_layout(2, &p->whole, &p->other);
}

static tg_status plan(tgi_verify_picture *p, tgi_err *err)
{
    const int64_t uncut[3] = {0, 0, 0};
    const tgi_net *whole = p->job->plan.net;
    TGI_TRY(check_path(p->job, p->path, err));
    TGI_TRY(check_net(p->job, whole, err));
    lay_tiles(p, whole);
    tgi_desc in = whole->shapes.desc[whole->in[0]];
    in.dim[2] = p->window[0];
    in.dim[3] = p->window[1];
    TGI_TRY(tgi_net_new(p->job->graph, p->job->set.backend, &in, tgi_job_net_flags(p->job),
                        &p->net, err));
    for (int a = 0; a < 2; a++)
        p->gives[a] = p->net->shapes.desc[p->net->out[0]].dim[2 + a];
    TGI_TRY(tgi_stages_new(p->net, &p->stages, err));
    return tgi_tiling_make(&p->stages->one, uncut, INT32_MAX, p->job->set.threads, NULL,
                           &p->tiling, err);
}

tg_status tgi_verify_picture_plan(tg_job *job, tgi_verify_picture **out, tgi_err *err)
{
    const char *path = tgi_opts_str(job->opts, TGI_OPT_PICTURE);
    *out = NULL;
    if (!path)
        return TG_OK;
    tgi_verify_picture *p = tgi_calloc(TGI_TAG_PLAN, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for --picture");
    *out = p;
    p->job = job;
    p->path = path;
    return plan(p, err);
}

/* Floats of input 0 and output 0 of a tile. */
static size_t tile_floats(const tgi_verify_picture *p, int value)
{
    const tgi_desc *d = &p->net->shapes.desc[value];
    return (size_t)(d->dim[1] * d->dim[2] * d->dim[3]);
}

static size_t panel_floats(const tgi_panel *p)
{
    return (size_t)(p->h * p->w * p->channels);
}

static size_t pixel_bytes(const tgi_verify_picture *p)
{
    return (size_t)(p->picture.height * p->picture.width * p->picture.samples);
}

size_t tgi_verify_picture_bytes(const tgi_verify_picture *p)
{
    if (!p)
        return 0;
    const size_t floats = tile_floats(p, p->net->in[0]) + tile_floats(p, p->net->out[0]) +
                          2 * panel_floats(&p->whole) +
                          tgi_picture_scratch(&p->whole, &p->other);
    return tgi_sat_add(floats * sizeof(float) + pixel_bytes(p),
                       tgi_sat_add(p->net->packed_bytes, p->tiling.arena_bytes));
}

void tgi_verify_picture_free(tgi_verify_picture **pp)
{
    tgi_verify_picture *p = *pp;
    if (!p)
        return;
    tgi_tiling_free(&p->tiling);
    tgi_stages_free(&p->stages);
    tgi_net_free(&p->net);
    tgi_free(p->in);
    tgi_free(p->out);
    tgi_free(p->scratch);
    tgi_free(p->whole.data);
    tgi_free(p->other.data);
    tgi_free(p->picture.pixels);
    tgi_free(p);
    *pp = NULL;
}

/* ---- Paint ------------------------------------------------------------------------------- */

static tg_status open_panels(tgi_verify_picture *p, tgi_err *err)
{
    if (p->scratch)
        return TG_OK;
    const size_t n = panel_floats(&p->whole);
    p->whole.data = tgi_calloc(TGI_TAG_PLAN, n, sizeof(float));
    p->other.data = tgi_calloc(TGI_TAG_PLAN, n, sizeof(float));
    p->picture.pixels = tgi_malloc(TGI_TAG_PLAN, pixel_bytes(p));
    p->scratch =
        tgi_calloc(TGI_TAG_PLAN, tgi_picture_scratch(&p->whole, &p->other), sizeof(float));
    if (!p->whole.data || !p->other.data || !p->picture.pixels || !p->scratch)
        return tgi_fail(err, TG_E_NOMEM, "no memory for --picture");
    tgi_picture_begin(&p->picture);
    return TG_OK;
}

static void cut_panel(const tgi_verify_picture *p, const float *from, tgi_panel *to)
{
    for (int c = 0; c < to->channels; c++)
        for (int64_t y = 0; y < to->h; y++)
            memcpy(to->data + (c * to->h + y) * to->w,
                   from + (c * p->out_dim[0] + p->at[0] + y) * p->out_dim[1] + p->at[1],
                   (size_t)to->w * sizeof(float));
}

static tg_status paint_row(tgi_verify_picture *p, const tgi_verify_values *v, tgi_err *err)
{
    TGI_TRY(open_panels(p, err));
    cut_panel(p, v->whole[0], &p->whole);
    cut_panel(p, v->other[0], &p->other);
    tgi_picture_row(&p->picture, p->row++, &p->whole, &p->other, p->scratch);
    return TG_OK;
}

tg_status tgi_verify_picture_tiled(tgi_verify_picture *p, const tgi_verify_values *v,
                                   tgi_err *err)
{
    return p ? paint_row(p, v, err) : TG_OK;
}

/* ---- Tiles of others --------------------------------------------------------------------- */

/* Where the window of the tile at `at` begins: inside the image, in step with the network. Its
 * output begins with the same number. */
static int64_t window_at(const tgi_verify_picture *p, int a, int64_t at)
{
    const int64_t want = at - (p->gives[a] - TILE) / 2;
    const int64_t inside = tgi_max(0, tgi_min(want, p->in_dim[a] - p->window[a]));
    return inside - inside % p->step[a];
}

/* Pixels of the tile at `at` that its window, which begins at `o`, gives. */
static int64_t kept_of(const tgi_verify_picture *p, int a, int64_t at, int64_t o)
{
    return tgi_min(tgi_min(TILE, p->dim[a] - at), o + p->gives[a] - at);
}

/* What of a tile is kept, without its overlap; the tile's window begins at `o`. */
static void copy_out(const tgi_verify_picture *p, const int64_t o[2], const int64_t at[2],
                     int64_t channels, float *image)
{
    const int64_t h = kept_of(p, 0, at[0], o[0]), w = kept_of(p, 1, at[1], o[1]);
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = at[0]; y < at[0] + h; y++)
            memcpy(image + (c * p->out_dim[0] + y) * p->out_dim[1] + at[1],
                   p->out + (c * p->gives[0] + y - o[0]) * p->gives[1] + at[1] - o[1],
                   (size_t)w * sizeof(float));
}

static void copy_in(const tgi_verify_picture *p, const int64_t o[2], int64_t channels,
                    const float *image)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < p->window[0]; y++)
            memcpy(p->in + (c * p->window[0] + y) * p->window[1],
                   image + (c * p->in_dim[0] + o[0] + y) * p->in_dim[1] + o[1],
                   (size_t)p->window[1] * sizeof(float));
}

static tg_status walk_tiles(tgi_verify_picture *p, tgi_pass *pass, const tgi_verify_values *v,
                            tgi_err *err)
{
    const tgi_desc *in = &p->net->shapes.desc[p->net->in[0]];
    const tgi_desc *out = &p->net->shapes.desc[p->net->out[0]];
    int64_t at[2];
    for (at[0] = 0; at[0] < p->dim[0]; at[0] += TILE)
        for (at[1] = 0; at[1] < p->dim[1]; at[1] += TILE) {
            const int64_t o[2] = {window_at(p, 0, at[0]), window_at(p, 1, at[1])};
            TGI_TRY(tgi_check_cancel(err));
            copy_in(p, o, in->dim[1], v->in[0]);
            TGI_TRY(tgi_pass_walk(pass, err));
            copy_out(p, o, at, out->dim[1], v->other[0]);
        }
    return TG_OK;
}

static tg_status compute_tiles(tgi_verify_picture *p, const tgi_verify_values *v, tgi_err *err)
{
    tgi_pass pass = {0};
    tgi_dense_io dense = {.net = p->net};
    const tgi_pass_end end = {.user = &dense, .load = tgi_dense_load, .store = tgi_dense_store};
    p->in = tgi_calloc(TGI_TAG_PLAN, tile_floats(p, p->net->in[0]), sizeof(float));
    p->out = tgi_calloc(TGI_TAG_PLAN, tile_floats(p, p->net->out[0]), sizeof(float));
    if (!p->in || !p->out)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the tiles of --picture");
    dense.in[0] = p->in;
    dense.out[0] = p->out;
    tg_status st = tgi_pass_take(&pass, NULL, &p->tiling, 0, NULL, 0, 0, err);
    if (st == TG_OK)
        st = tgi_pass_open(&pass, NULL, &end, err);
    if (st == TG_OK)
        st = walk_tiles(p, &pass, v, err);
    tgi_pass_close(&pass);
    return st;
}

tg_status tgi_verify_picture_finish(tgi_verify_picture *p, const tgi_verify_values *v,
                                    tgi_err *err)
{
    if (!p)
        return TG_OK;
    TGI_TRY(compute_tiles(p, v, err));
    TGI_TRY(paint_row(p, v, err));
    tgi_picture rows = tgi_picture_layout(p->row, &p->whole, &p->other);
    return tgi_png_write(p->path, p->picture.pixels, rows.height, rows.width, rows.samples,
                         (size_t)rows.width * (size_t)rows.samples, err);
}
