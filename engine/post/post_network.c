/* post_network.c - stardist and cellpose as steps of --post: a source of numbers in front of one whose channels are what
 * such a network gives. Objects of an image are found when its first row is asked for, and kept until another
 * image's is; rows are painted from them. An image is a plane with all of its channels. */
#include "engine/post/cellpose.h"
#include "engine/post/post_made.h"
#include "engine/post/stardist.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "kernels/pixels.h"

#include <string.h>

#define PIECE_BYTES ((size_t)256 << 10) /* rows of one kind, at once */
#define NOTHING (-1)
#define N_CELL 3 /* flow down, flow to the right, certainty */

/* A row of a channel, for intensities. */
typedef struct piece {
    char *row;
    int64_t plane, y; /* plane NOTHING: none */
} piece;

typedef struct network {
    tgi_post_made base;
    tgi_source *inner;
    tgi_post_opts how;
    tgi_post_step is;
    tgi_image_info info; /* of what comes out; its strings are the inner source's */
    tg_dtype from;
    int64_t channels, stride; /* of channels, in planes; 0: samples are the channels */
    int64_t height, width;    /* of the inner source's box */
    int64_t known;            /* plane whose objects are there; NOTHING */
    tgi_stardist *star;
    tgi_cellpose *cell;
    size_t limit; /* of these; 0: not settled */
    const char *folder;
    uint32_t *numbers; /* rows [n0,n1) of plane `known` */
    int64_t n0, n1, n_rows;
    char *raw; /* some rows of the inner source */
    int64_t raw_rows;
    piece *pieces;    /* of each channel, where intensities are asked for */
    int64_t at_plane; /* that is being read */
} network;

static network *network_of(tgi_source *s)
{
    return (network *)s;
}

/* ---- Rows of the inner source ------------------------------------------------------------ */

/* Of the view's planes: channel c of plane `plane` of what comes out. */
static int64_t inner_plane(const network *n, int64_t plane, int64_t c)
{
    return n->stride ? (plane / n->stride * n->channels + c) * n->stride + plane % n->stride
                     : plane;
}

static size_t row_bytes(const network *n)
{
    return (size_t)n->width * tgi_dtype_size(n->from);
}

static tg_status read_channel(network *n, int64_t plane, int64_t c, int64_t y0, int64_t y1,
                              char *dst, tgi_err *err)
{
    const tgi_post_view *v = &n->how.view;
    const int sample = n->stride ? 0 : (int)c;
    return tgi_source_read(n->inner, 0, tgi_planes_at(&v->planes, inner_plane(n, plane, c)),
                           sample, sample + 1, v->y.lo + y0, v->y.lo + y1, v->x.lo, v->x.hi,
                           dst, row_bytes(n), row_bytes(n) * (size_t)(y1 - y0), err);
}

static tg_status tick(network *n, const char *phase, double fraction, tgi_err *err)
{
    return n->how.tick ? n->how.tick(n->how.user, phase, fraction, err) : TG_OK;
}

/* For stardist.h and cellpose.h: plane k of the image at hand. They read an image more than once, and what is told is
 * where in it they are. */
static tg_status rows_of(void *user, int64_t k, int64_t y0, int64_t y1, float *dst,
                         tgi_err *err)
{
    network *n = user;
    const int64_t c = !n->is.rays_first ? k : k == 0 ? n->channels - 1 : k - 1;
    for (int64_t y = y0; y < y1;) {
        const int64_t end = tgi_min(y + n->raw_rows, y1);
        TGI_TRY(read_channel(n, n->at_plane, c, y, end, n->raw, err));
        tgi_pixels_load(n->from, n->raw, (end - y) * n->width, 1.0f, 0.0f,
                        dst + (y - y0) * n->width, 1);
        y = end;
        TGI_TRY(tick(n, tgi_post_name(n->is.kind), (double)y / (double)n->height, err));
    }
    return TG_OK;
}

/* ---- Objects ----------------------------------------------------------------------------- */

static void forget(network *n)
{
    tgi_stardist_close(&n->star);
    tgi_cellpose_close(&n->cell);
    n->known = NOTHING;
    n->n0 = n->n1 = 0;
}

static tgi_stardist_how star_how(const network *n)
{
    tgi_stardist_how how = TGI_STARDIST_HOW;
    how.prob_threshold = (float)n->is.prob;
    how.nms_threshold = (float)n->is.nms;
    how.grid = (int)n->is.grid;
    how.limit_bytes = n->limit;
    return how;
}

static tgi_cellpose_how cell_how(const network *n)
{
    tgi_cellpose_how how = TGI_CELLPOSE_HOW;
    how.cell_threshold = (float)n->is.prob;
    how.flow_threshold = n->is.flow;
    how.niter = (int)n->is.niter;
    how.min_size = (int)n->is.size;
    how.scratch = n->folder;
    how.n_threads = n->how.n_threads;
    how.limit_bytes = n->limit;
    return how;
}

static uint32_t count(const network *n)
{
    return n->star ? tgi_stardist_count(n->star) : tgi_cellpose_count(n->cell);
}

static tg_status find(network *n, int64_t plane, tgi_err *err)
{
    const tgi_post_rows rows = {rows_of, n, n->height, n->width, (int)n->channels};
    const tgi_stardist_how star = star_how(n);
    const tgi_cellpose_how cell = cell_how(n);
    const uint64_t most = n->info.dtype == TG_DTYPE_U8    ? UINT8_MAX
                          : n->info.dtype == TG_DTYPE_U16 ? UINT16_MAX
                                                          : UINT32_MAX;
    if (!n->limit)
        return tgi_fail(err, TG_E_INTERNAL, "a row before the memory for it");
    forget(n);
    n->at_plane = plane;
    TGI_TRY(n->is.kind == TGI_POST_STARDIST ? tgi_stardist_open(&rows, &star, &n->star, err)
                                            : tgi_cellpose_open(&rows, &cell, &n->cell, err));
    if (count(n) > most)
        return tgi_fail(err, TG_E_ARG,
                        "there are %u objects, whose numbers do not fit %s: leave --dtype out "
                        "for uint32",
                        (unsigned)count(n), tgi_dtype_name(n->info.dtype));
    n->known = plane;
    return TG_OK;
}

/* A view of a row of numbers, until the next call. */
static tg_status number_row(network *n, int64_t plane, int64_t y, const uint32_t **row,
                            tgi_err *err)
{
    if (n->known != plane)
        TGI_TRY(find(n, plane, err));
    if (y < n->n0 || y >= n->n1) {
        const int64_t y1 = tgi_min(y + n->n_rows, n->info.height);
        n->n0 = n->n1 = 0;
        if (n->star)
            tgi_stardist_paint(n->star, y, y1, n->numbers);
        else
            TGI_TRY(tgi_cellpose_paint(n->cell, y, y1, n->numbers, err));
        n->n0 = y;
        n->n1 = y1;
    }
    *row = n->numbers + (y - n->n0) * n->info.width;
    return TG_OK;
}

/* ---- The source -------------------------------------------------------------------------- */

static void store(const uint32_t *src, int64_t n, size_t size, char *dst)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t v16 = (uint16_t)src[i];
        const uint8_t v8 = (uint8_t)src[i];
        memcpy(dst + (size_t)i * size,
               size == 4   ? (const void *)&src[i]
               : size == 2 ? (const void *)&v16
                           : (const void *)&v8,
               size);
    }
}

static tg_status network_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                              int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                              size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    network *n = network_of(base);
    const uint32_t *row = NULL;
    (void)sample_pitch; /* there is one */
    if (thread != 0 || plane < 0 || plane >= n->info.n_planes || s0 != 0 || s1 != 1 || y0 < 0 ||
        y1 > n->info.height || x0 < 0 || x1 > n->info.width)
        return tgi_fail(err, TG_E_INTERNAL, "a box outside of the image of --post: plane %lld",
                        (long long)plane);
    for (int64_t y = y0; y < y1; y++) {
        TGI_TRY(number_row(n, plane, y, &row, err));
        store(row + x0, x1 - x0, tgi_dtype_size(n->info.dtype),
              (char *)dst + (size_t)(y - y0) * row_pitch);
    }
    return TG_OK;
}

static const tgi_image_info *network_info(const tgi_source *s)
{
    return &((const network *)s)->info;
}

static void network_close(tgi_source **base)
{
    network *n = network_of(*base);
    if (!n)
        return;
    forget(n);
    tgi_source_close(&n->inner);
    for (int64_t i = 0; n->pieces && i < n->channels; i++)
        tgi_free(n->pieces[i].row);
    tgi_free(n->pieces);
    tgi_free(n->numbers);
    tgi_free(n->raw);
    tgi_free(n);
    *base = NULL;
}

static size_t network_bytes(const tgi_source *s)
{
    const network *n = (const network *)s;
    const size_t raw = (size_t)n->raw_rows * row_bytes(n);
    size_t own = sizeof *n + raw + (size_t)(n->n_rows * n->info.width) * sizeof(uint32_t);
    if (n->pieces)
        own += (size_t)n->channels * (sizeof(piece) + row_bytes(n));
    return tgi_sat_add(own, n->inner->ops->codec_bytes(n->inner));
}

static const tgi_source *network_inner(const tgi_source *s)
{
    return ((const network *)s)->inner;
}

static const tgi_source_ops network_ops = {.format = "post",
                                           .fuzzed = TGI_FUZZED,
                                           .info = network_info,
                                           .read = network_read,
                                           .close = network_close,
                                           .codec_bytes = network_bytes,
                                           .decoded_bytes = tgi_inner_decoded,
                                           .file = tgi_inner_file,
                                           .held = tgi_inner_held,
                                           .inner = network_inner};

/* ---- Tables of objects ------------------------------------------------------------------- */

static tgi_post_shape shape_of(const tgi_source *s)
{
    const network *n = (const network *)s;
    const tgi_post_image *image = n->how.image;
    tgi_post_shape t = {.groups = n->info.n_planes,
                        .parts = 1,
                        .depth = 1,
                        .height = n->info.height,
                        .width = n->info.width,
                        .samples = 1,
                        .channels = image ? image->channels : (int)n->channels,
                        .whole = image ? image->whole : tgi_post_is_whole(n->from),
                        .n_axes = n->info.n_axes};
    memcpy(t.axes, n->info.axes, sizeof t.axes);
    memcpy(t.shape, n->info.shape, sizeof t.shape);
    return t;
}

static int64_t plane_of(const tgi_source *s, const tgi_post_place *at)
{
    (void)s;
    return at->group;
}

static tg_status numbers_at(tgi_source *s, const tgi_post_place *at, const uint32_t **row,
                            tgi_err *err)
{
    return number_row(network_of(s), at->group, at->y, row, err);
}

/* Of what the network gave, the value that a pixel comes of. */
static tg_status intensity_at(tgi_source *s, const tgi_post_place *at, int channel, double *dst,
                              tgi_err *err)
{
    network *n = network_of(s);
    const tgi_post_image *image = n->how.image;
    const int64_t grid = n->is.grid, y = at->y / grid;
    if (image)
        return image->row(image->user, inner_plane(n, at->group, 0), at->y, channel, dst, err);
    piece *p = &n->pieces[channel];
    if (p->plane != at->group || p->y != y) {
        p->plane = NOTHING;
        TGI_TRY(read_channel(n, at->group, channel, y, y + 1, p->row, err));
        *p = (piece){p->row, at->group, y};
    }
    tgi_post_to_double(n->from, p->row, n->width, dst);
    for (int64_t x = n->info.width - 1; grid > 1 && x >= 0; x--)
        dst[x] = dst[x / grid];
    return TG_OK;
}

static tg_status tick_of(tgi_source *s, const char *phase, double fraction, tgi_err *err)
{
    return tick(network_of(s), phase, fraction, err);
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* With and without a scratch file, so many objects, the tallest of so many rows. StarDist's least is what it reads
 * through: how many candidates there are nobody knows before. */
static size_t bytes_of(const network *n, int in_file, uint64_t objects, int64_t tallest)
{
    const tgi_stardist_how star = star_how(n);
    tgi_cellpose_how cell = cell_how(n);
    const uint64_t ends = objects ? (uint64_t)n->height * (uint64_t)n->width : 0;
    cell.scratch = in_file ? "" : NULL;
    if (n->is.kind == TGI_POST_CELLPOSE)
        return tgi_cellpose_bytes(&cell, n->height, n->width, tallest, objects, ends);
    if (!objects)
        return tgi_sat_mul(2 * sizeof(float) * 64 + 8, (size_t)n->width) + 65536;
    return tgi_stardist_bytes(&star, n->width, (int)n->channels - 1,
                              (double)(tallest * n->is.grid), objects);
}

static size_t least(const tgi_source *s)
{
    return bytes_of((const network *)s, 1, 0, 1);
}

static size_t beside(const tgi_source *s)
{
    return bytes_of((const network *)s, 0, 0, 1);
}

/* More than images take, though not the worst of them: rays of 256 values, an object for each 16 pixels. */
static size_t most(const tgi_source *s)
{
    const network *n = (const network *)s;
    const uint64_t values = (uint64_t)n->height * (uint64_t)n->width;
    return bytes_of(n, 0, values / 16 + 1, tgi_min(n->height, 256));
}

static size_t scratch(const tgi_source *s)
{
    const network *n = (const network *)s;
    return n->is.kind == TGI_POST_CELLPOSE
               ? tgi_sat_mul(4, tgi_sat_mul((size_t)n->height, (size_t)n->width))
               : 0;
}

static tg_status settle(tgi_source *s, size_t bytes, const char *folder, tgi_err *err)
{
    network *n = network_of(s);
    (void)err;
    n->limit = bytes;
    n->folder = folder;
    return TG_OK;
}

static const tgi_post_made_ops made_ops = {.shape = shape_of,
                                           .plane = plane_of,
                                           .numbers = numbers_at,
                                           .intensity = intensity_at,
                                           .tick = tick_of,
                                           .least = least,
                                           .most = most,
                                           .beside = beside,
                                           .scratch = scratch,
                                           .settle = settle};

/* ---- Open -------------------------------------------------------------------------------- */

/* Where the channels are. */
static void find_channels(network *n, const tgi_image_info *in)
{
    const tgi_post_view *v = &n->how.view;
    int64_t size = 1;
    n->channels = 1;
    for (int a = v->n_axes - 1; a >= 0; a--) {
        if (strchr("YXS", v->axes[a]))
            continue;
        if (v->axes[a] == 'C') {
            n->channels = v->shape[a];
            n->stride = size;
        }
        size *= v->shape[a];
    }
    if (in->samples > 1 && n->channels == 1) {
        n->channels = in->samples;
        n->stride = 0;
    }
}

static tg_status check_channels(const network *n, const tgi_image_info *in, tgi_err *err)
{
    const char *name = tgi_post_name(n->is.kind), *axes = n->how.view.axes;
    const long long found = (long long)n->channels;
    const int has_z = strchr(axes, 'Z') != NULL;
    if (n->how.volume ||
        (n->is.kind == TGI_POST_CELLPOSE && has_z && n->channels == N_CELL + 1))
        return tgi_fail(err, TG_E_UNSUPPORTED,
                        "--post: %s of volumes is not built: a network over planes, whose "
                        "slices are images by themselves, or --post none for the values",
                        name);
    if (n->stride && in->samples > 1)
        return tgi_fail(err, TG_E_ARG,
                        "--post: %s takes channels along one axis, and the image (axes %s) has "
                        "%d samples in each pixel beside %lld channels",
                        name, axes, in->samples, found);
    if (n->is.kind == TGI_POST_CELLPOSE && n->channels != N_CELL)
        return tgi_fail(err, TG_E_ARG,
                        "--post: cellpose takes 3 channels (flow down, flow to the right, "
                        "cell probability), and the image (axes %s) has %lld: %s",
                        axes, found,
                        n->channels > N_CELL ? "--channels chooses them"
                                             : "name its axes with --axes");
    if (n->is.kind == TGI_POST_STARDIST &&
        (n->channels < 4 || n->channels > TGI_STARDIST_RAYS + 1))
        return tgi_fail(err, TG_E_ARG,
                        "--post: stardist takes a channel of probabilities and 3 to %d of "
                        "distances, and the image (axes %s) has %lld: name its axes with "
                        "--axes, or choose with --channels",
                        TGI_STARDIST_RAYS, axes, found);
    return TG_OK;
}

static void make_info(network *n, const tgi_image_info *in)
{
    const tgi_post_view *v = &n->how.view;
    tgi_image_info *i = &n->info;
    *i = *in;
    i->n_axes = 0;
    i->height = n->height * n->is.grid;
    i->width = n->width * n->is.grid;
    for (int a = 0; a < v->n_axes; a++) {
        const char l = v->axes[a];
        if (l == 'S' || l == 'C')
            continue;
        i->axes[i->n_axes] = l;
        i->shape[i->n_axes++] = l == 'Y' ? i->height : l == 'X' ? i->width : v->shape[a];
    }
    i->axes[i->n_axes] = 0;
    i->n_planes = n->stride ? v->n_planes / n->channels : v->n_planes;
    i->samples = 1;
    i->bits = 0;
    i->n_levels = i->n_series = 1;
    i->meta.stored_as = TGI_STORED_LIGHT;
    i->meta.n_luts = i->meta.n_ranges = i->meta.mode = i->meta.n_palette = 0;
    i->meta.palette = NULL;
    i->meta.icc_bytes = 0;
    i->dtype = n->how.dtype ? n->how.dtype : TG_DTYPE_U32;
}

static tg_status allocate(network *n, tgi_err *err)
{
    const size_t row = row_bytes(n), out = (size_t)n->info.width * sizeof(uint32_t);
    n->raw_rows = tgi_clamp((int64_t)(PIECE_BYTES / (row ? row : 1)), 1, n->height);
    n->n_rows = tgi_clamp((int64_t)(PIECE_BYTES / (out ? out : 1)), 1, n->info.height);
    n->raw = tgi_malloc(TGI_TAG_IO, (size_t)n->raw_rows * row);
    n->numbers = tgi_malloc(TGI_TAG_IO, (size_t)n->n_rows * out);
    int ok = n->raw && n->numbers;
    if (n->how.objects && !n->how.image) {
        n->pieces = tgi_calloc(TGI_TAG_IO, (size_t)n->channels, sizeof *n->pieces);
        ok = ok && n->pieces;
        for (int64_t c = 0; c < n->channels && ok; c++) {
            n->pieces[c].plane = NOTHING;
            n->pieces[c].row = tgi_malloc(TGI_TAG_IO, row);
            ok = n->pieces[c].row != NULL;
        }
    }
    return ok ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for rows of --post");
}

tg_status tgi_post_open_network(tgi_source *inner, const tgi_post_opts *o, tgi_source **out,
                                tgi_err *err)
{
    network *n = tgi_calloc(TGI_TAG_IO, 1, sizeof *n);
    if (!n)
        return tgi_fail(err, TG_E_NOMEM, "no memory for --post");
    const tgi_image_info *in = inner->ops->info(inner);
    n->base.source.ops = &network_ops;
    n->base.made = &made_ops;
    n->how = *o;
    n->is = *tgi_post_network(&o->spec);
    n->from = in->dtype;
    n->height = tgi_range_len(o->view.y);
    n->width = tgi_range_len(o->view.x);
    n->known = NOTHING;
    find_channels(n, in);
    tg_status st = check_channels(n, in, err);
    make_info(n, in);
    if (st == TG_OK)
        st = allocate(n, err);
    if (st == TG_OK) {
        n->inner = inner;
        *out = &n->base.source;
        return TG_OK;
    }
    tgi_source *base = &n->base.source;
    network_close(&base);
    return st;
}
