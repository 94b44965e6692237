/* post.c - see post.h. Step k makes its row of the row of step k - 1; step -1 is the inner source. Rows on the way
 * are doubles where they are values, and bytes of 0 and 1 where they are masks. */
#include "engine/post/post_made.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/post/components.h"
#include "engine/post/otsu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PIECE_BYTES ((size_t)256 << 10) /* of the inner source, read at once */

/* A step, and what it knows of the image at hand. */
typedef struct step {
    tgi_post_step is;
    int64_t known;      /* group; NOTHING */
    double *thresholds; /* otsu: of each part */
    tgi_components_spec spec;
    tgi_components *components;
    size_t most, least; /* of the components' arrays */
} step;

#define NOTHING (-1)

/* Some rows of the inner source. */
typedef struct piece {
    char *rows;
    int64_t plane, y0, y1; /* plane NOTHING: none */
    int sample;
} piece;

typedef struct post {
    tgi_post_made base;
    tgi_source *inner;
    tgi_post_opts how;
    tgi_image_info info; /* of what comes out; its strings are the inner source's */
    tg_dtype from;       /* type of the inner source */
    step step[TGI_POST_STEPS];
    int n;
    /* Planes are numbered group by group; in a group z by z, in z part by part. A part is an image
     * of its own. */
    int64_t depth, after, parts;
    int64_t channels, channel_stride; /* of softmax, in planes; 1: samples are the channels */
    piece *pieces;                    /* one; of softmax one for each channel */
    int64_t n_pieces, piece_rows;
    double *values, *other; /* a row */
    uint8_t *mask;
    uint32_t *numbers;
    void *otsu;
} post;

static post *post_of(tgi_source *s)
{
    return (post *)s;
}

/* ---- Places ------------------------------------------------------------------------------ */

static int64_t plane_of(const post *p, const tgi_post_place *at)
{
    return (at->group * p->depth + at->z) * p->after + at->part / p->info.samples;
}

static int sample_of(const post *p, const tgi_post_place *at)
{
    return (int)(at->part % p->info.samples);
}

static tgi_post_place place_of(const post *p, int64_t plane, int sample, int64_t y)
{
    const int64_t z = plane / p->after;
    return (tgi_post_place){z / p->depth, plane % p->after * p->info.samples + sample,
                            z % p->depth, y};
}

/* ---- Rows of the inner source ------------------------------------------------------------ */

static size_t row_bytes(const post *p)
{
    return (size_t)p->info.width * tgi_dtype_size(p->from);
}

/* Some rows are read together: a call for each would cost more than the row. */
static tg_status inner_row(post *p, int64_t plane, int sample, int64_t y, const char **row,
                           tgi_err *err)
{
    const tgi_post_view *v = &p->how.view;
    const int64_t channel = p->channel_stride ? plane / p->channel_stride : sample;
    piece *r = &p->pieces[channel % p->n_pieces];
    if (r->plane != plane || r->sample != sample || y < r->y0 || y >= r->y1) {
        const int64_t y1 = tgi_min(y + p->piece_rows, p->info.height);
        r->plane = NOTHING;
        TGI_TRY(tgi_source_read(p->inner, 0, tgi_planes_at(&v->planes, plane), sample,
                                sample + 1, v->y.lo + y, v->y.lo + y1, v->x.lo, v->x.hi,
                                r->rows, row_bytes(p), row_bytes(p) * (size_t)(y1 - y), err));
        *r = (piece){r->rows, plane, y, y1, sample};
    }
    *row = r->rows + (size_t)(y - r->y0) * row_bytes(p);
    return TG_OK;
}

/* ---- Steps on values --------------------------------------------------------------------- */

static void sigmoid(double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (double)(float)(1 / (1 + exp(-v[i])));
}

/* The row of channel c of the pixels at hand. */
static tg_status channel_row(post *p, const tgi_post_place *at, int64_t c, double *dst,
                             tgi_err *err)
{
    const char *row;
    int64_t plane = plane_of(p, at);
    int sample = (int)c;
    if (p->channel_stride) {
        const int64_t own = plane / p->channel_stride % p->channels;
        plane += (c - own) * p->channel_stride;
        sample = sample_of(p, at);
    }
    TGI_TRY(inner_row(p, plane, sample, at->y, &row, err));
    tgi_post_to_double(p->from, row, p->info.width, dst);
    return TG_OK;
}

static int64_t channel_of(const post *p, const tgi_post_place *at)
{
    return p->channel_stride ? plane_of(p, at) / p->channel_stride % p->channels
                             : sample_of(p, at);
}

/* Softmax in two passes over the channels: the largest, then the sum. */
static tg_status softmax(post *p, const tgi_post_place *at, tgi_err *err)
{
    const int64_t w = p->info.width, own = channel_of(p, at);
    double *most = p->other, *sum = p->other + w, *own_exp = p->other + 2 * w;
    for (int64_t c = 0; c < p->channels; c++) {
        TGI_TRY(channel_row(p, at, c, p->values, err));
        for (int64_t i = 0; i < w; i++)
            most[i] = c == 0 || p->values[i] > most[i] ? p->values[i] : most[i];
    }
    for (int64_t c = 0; c < p->channels; c++) {
        TGI_TRY(channel_row(p, at, c, p->values, err));
        for (int64_t i = 0; i < w; i++) {
            const double e = exp(p->values[i] - most[i]);
            sum[i] = c == 0 ? e : sum[i] + e;
            if (c == own)
                own_exp[i] = e;
        }
    }
    for (int64_t i = 0; i < w; i++)
        p->values[i] = (double)(float)(own_exp[i] / sum[i]);
    return TG_OK;
}

static int is_on_values(tgi_post_kind k)
{
    return k == TGI_POST_SIGMOID || k == TGI_POST_SOFTMAX;
}

/* p->values is the row of the last step on values. */
static tg_status value_row(post *p, const tgi_post_place *at, tgi_err *err)
{
    const char *row;
    if (p->n && p->step[0].is.kind == TGI_POST_SOFTMAX)
        return softmax(p, at, err);
    TGI_TRY(inner_row(p, plane_of(p, at), sample_of(p, at), at->y, &row, err));
    tgi_post_to_double(p->from, row, p->info.width, p->values);
    if (p->n && p->step[0].is.kind == TGI_POST_SIGMOID)
        sigmoid(p->values, p->info.width);
    return TG_OK;
}

static tg_status tick(post *p, const char *phase, double fraction, tgi_err *err)
{
    return p->how.tick ? p->how.tick(p->how.user, phase, fraction, err) : TG_OK;
}

/* ---- Otsu -------------------------------------------------------------------------------- */

static tg_status otsu_pass(post *p, tgi_otsu *o, tgi_post_place at, int second, tgi_err *err)
{
    for (at.z = 0; at.z < p->depth; at.z++)
        for (at.y = 0; at.y < p->info.height; at.y++) {
            TGI_TRY(value_row(p, &at, err));
            if (second)
                tgi_otsu_count(o, p->values, p->info.width);
            else
                tgi_otsu_range(o, p->values, p->info.width);
            TGI_TRY(tick(p, "otsu", (double)at.z / (double)p->depth, err));
        }
    return TG_OK;
}

static tg_status find_thresholds(post *p, step *s, int64_t group, tgi_err *err)
{
    const tg_dtype type = p->step[0].is.kind == TGI_POST_OTSU ? p->from : TG_DTYPE_F32;
    s->known = NOTHING;
    for (int64_t part = 0; part < p->parts; part++) {
        tgi_otsu o;
        tgi_otsu_begin(&o, type, p->otsu);
        TGI_TRY(otsu_pass(p, &o, (tgi_post_place){group, part, 0, 0}, 0, err));
        if (!tgi_otsu_one_pass(type)) {
            tgi_otsu_bins(&o);
            TGI_TRY(otsu_pass(p, &o, (tgi_post_place){group, part, 0, 0}, 1, err));
        }
        s->thresholds[part] = tgi_otsu_threshold(&o);
    }
    s->known = group;
    return TG_OK;
}

/* ---- Masks ------------------------------------------------------------------------------- */

static tg_status mask_row(post *p, int k, const tgi_post_place *at, uint8_t *dst, tgi_err *err);

/* Whole numbers are a mask as they are. */
static tg_status mask_of_input(post *p, const tgi_post_place *at, uint8_t *dst, tgi_err *err)
{
    const char *row;
    const int64_t w = p->info.width;
    TGI_TRY(inner_row(p, plane_of(p, at), sample_of(p, at), at->y, &row, err));
    if (tgi_dtype_size(p->from) == 1) {
        for (int64_t i = 0; i < w; i++)
            dst[i] = row[i] != 0;
        return TG_OK;
    }
    tgi_post_to_double(p->from, row, w, p->values);
    for (int64_t i = 0; i < w; i++)
        dst[i] = p->values[i] != 0;
    return TG_OK;
}

static tg_status threshold_row(post *p, step *s, const tgi_post_place *at, uint8_t *dst,
                               tgi_err *err)
{
    double above = s->is.value;
    if (s->is.kind == TGI_POST_OTSU) {
        if (s->known != at->group)
            TGI_TRY(find_thresholds(p, s, at->group, err));
        above = s->thresholds[at->part];
    }
    TGI_TRY(value_row(p, at, err));
    for (int64_t i = 0; i < p->info.width; i++)
        dst[i] = p->values[i] > above;
    return TG_OK;
}

typedef struct pass {
    post *p;
    int k;
    int64_t group;
} pass;

static tg_status pass_row(void *user, int64_t part, int64_t z, int64_t y, uint8_t *dst,
                          tgi_err *err)
{
    const pass *a = user;
    return mask_row(a->p, a->k, &(tgi_post_place){a->group, part, z, y}, dst, err);
}

static tg_status pass_tick(void *user, double fraction, tgi_err *err)
{
    const pass *a = user;
    return tick(a->p, tgi_post_name(a->p->step[a->k + 1].is.kind), fraction, err);
}

static tg_status check_count(const post *p, const step *s, tgi_err *err)
{
    const uint64_t n = tgi_components_count(s->components);
    const uint64_t most = p->info.dtype == TG_DTYPE_U8    ? UINT8_MAX
                          : p->info.dtype == TG_DTYPE_U16 ? UINT16_MAX
                                                          : UINT32_MAX;
    return n <= most ? TG_OK
                     : tgi_fail(err, TG_E_ARG,
                                "there are %llu objects, whose numbers do not fit %s: leave "
                                "--dtype out for uint32, or raise min-size",
                                (unsigned long long)n, tgi_dtype_name(p->info.dtype));
}

static tg_status find_components(post *p, int k, int64_t group, tgi_err *err)
{
    step *s = &p->step[k];
    pass a = {p, k - 1, group};
    const tgi_mask_rows rows = {&a, pass_row, pass_tick};
    if (!s->components)
        return tgi_fail(err, TG_E_INTERNAL, "a row before the memory for it");
    s->known = NOTHING;
    TGI_TRY(tgi_components_find(s->components, &rows, err));
    if (s->spec.want == TGI_WANT_NUMBERS)
        TGI_TRY(check_count(p, s, err));
    s->known = group;
    return TG_OK;
}

/* p->numbers is what the step gives for the row; `mask` gets the mask that it looks at. */
static tg_status components_row(post *p, int k, const tgi_post_place *at, uint8_t *mask,
                                tgi_err *err)
{
    step *s = &p->step[k];
    if (s->known != at->group)
        TGI_TRY(find_components(p, k, at->group, err));
    TGI_TRY(mask_row(p, k - 1, at, mask, err));
    return tgi_components_row(s->components, at->part, at->z, at->y, mask, p->numbers, err);
}

/* The mask behind step k. */
static tg_status mask_row(post *p, int k, const tgi_post_place *at, uint8_t *dst, tgi_err *err)
{
    if (k < 0)
        return mask_of_input(p, at, dst, err);
    step *s = &p->step[k];
    if (!s->spec.want && s->is.kind != TGI_POST_LABEL)
        return threshold_row(p, s, at, dst, err);
    TGI_TRY(components_row(p, k, at, dst, err));
    for (int64_t i = 0; i < p->info.width; i++)
        dst[i] =
            s->spec.want == TGI_WANT_HOLES ? dst[i] | (p->numbers[i] != 0) : p->numbers[i] != 0;
    return TG_OK;
}

/* ---- The source -------------------------------------------------------------------------- */

/* Columns x of the last step's row, in the type of what comes out. */
static tg_status out_row(post *p, const tgi_post_place *at, tgi_range x, char *dst,
                         size_t stride, tgi_err *err)
{
    const tgi_post_kind last = p->step[p->n - 1].is.kind;
    const int64_t n = tgi_range_len(x);
    if (is_on_values(last)) {
        TGI_TRY(value_row(p, at, err));
        for (int64_t i = 0; i < n; i++) {
            const float v = (float)p->values[x.lo + i];
            memcpy(dst + (size_t)i * stride, &v, sizeof v);
        }
        return TG_OK;
    }
    if (last != TGI_POST_LABEL) {
        TGI_TRY(mask_row(p, p->n - 1, at, p->mask, err));
        for (int64_t i = 0; i < n; i++)
            dst[(size_t)i * stride] = (char)p->mask[x.lo + i];
        return TG_OK;
    }
    TGI_TRY(components_row(p, p->n - 1, at, p->mask, err));
    const size_t size = tgi_dtype_size(p->info.dtype);
    for (int64_t i = 0; i < n; i++) {
        const uint32_t v = p->numbers[x.lo + i];
        const uint16_t v16 = (uint16_t)v;
        const uint8_t v8 = (uint8_t)v;
        memcpy(dst + (size_t)i * stride,
               size == 4   ? (const void *)&v
               : size == 2 ? (const void *)&v16
                           : (const void *)&v8,
               size);
    }
    return TG_OK;
}

static tg_status post_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                           int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                           size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    post *p = post_of(base);
    const size_t size = tgi_dtype_size(p->info.dtype);
    const int together = sample_pitch == TGI_INTERLEAVED;
    if (thread != 0 || plane < 0 || plane >= p->info.n_planes || s0 < 0 ||
        s1 > p->info.samples || y0 < 0 || y1 > p->info.height || x0 < 0 || x1 > p->info.width)
        return tgi_fail(err, TG_E_INTERNAL, "a box outside of the image of --post: plane %lld",
                        (long long)plane);
    for (int s = s0; s < s1; s++)
        for (int64_t y = y0; y < y1; y++) {
            const tgi_post_place at = place_of(p, plane, s, y);
            char *to = (char *)dst + (size_t)(y - y0) * row_pitch +
                       (size_t)(s - s0) * (together ? size : sample_pitch);
            TGI_TRY(out_row(p, &at, (tgi_range){x0, x1}, to,
                            together ? size * (size_t)(s1 - s0) : size, err));
        }
    return TG_OK;
}

static const tgi_image_info *post_info(const tgi_source *s)
{
    return &((const post *)s)->info;
}

static void post_close(tgi_source **base)
{
    post *p = post_of(*base);
    if (!p)
        return;
    for (int k = 0; k < p->n; k++) {
        tgi_components_close(&p->step[k].components);
        tgi_free(p->step[k].thresholds);
    }
    tgi_source_close(&p->inner);
    for (int64_t i = 0; p->pieces && i < p->n_pieces; i++)
        tgi_free(p->pieces[i].rows);
    tgi_free(p->pieces);
    tgi_free(p->values);
    tgi_free(p->other);
    tgi_free(p->mask);
    tgi_free(p->numbers);
    tgi_free(p->otsu);
    tgi_free(p);
    *base = NULL;
}

static size_t own_bytes(const post *p)
{
    const size_t w = (size_t)p->info.width;
    const size_t one = sizeof(piece) + (size_t)p->piece_rows * row_bytes(p);
    size_t n = sizeof *p + (size_t)p->n_pieces * one + w * (4 * sizeof(double) + 5);
    n += p->otsu ? TGI_OTSU_BYTES + (size_t)p->parts * sizeof(double) : 0;
    return n;
}

static size_t post_bytes(const tgi_source *s)
{
    const post *p = (const post *)s;
    return tgi_sat_add(own_bytes(p), p->inner->ops->codec_bytes(p->inner));
}

static const tgi_source *post_inner(const tgi_source *s)
{
    return ((const post *)s)->inner;
}

static const tgi_source_ops post_ops = {.format = "post",
                                        .fuzzed = TGI_FUZZED,
                                        .info = post_info,
                                        .read = post_read,
                                        .close = post_close,
                                        .codec_bytes = post_bytes,
                                        .decoded_bytes = tgi_inner_decoded,
                                        .file = tgi_inner_file,
                                        .held = tgi_inner_held,
                                        .inner = post_inner};

/* ---- Tables of objects ------------------------------------------------------------------- */

static tgi_post_shape shape_of(const tgi_source *s)
{
    const post *p = (const post *)s;
    const tgi_post_image *image = p->how.image;
    tgi_post_shape t = {.groups = p->info.n_planes / (p->depth * p->after),
                        .parts = p->parts,
                        .depth = p->depth,
                        .height = p->info.height,
                        .width = p->info.width,
                        .samples = p->info.samples,
                        .volume = p->how.volume,
                        .channels = image ? image->channels : (int)tgi_max(1, p->channels),
                        .whole = image ? image->whole : tgi_post_is_whole(p->from),
                        .n_axes = p->info.n_axes};
    memcpy(t.axes, p->info.axes, sizeof t.axes);
    memcpy(t.shape, p->info.shape, sizeof t.shape);
    return t;
}

static int64_t post_plane(const tgi_source *s, const tgi_post_place *at)
{
    return plane_of((const post *)s, at);
}

static tg_status post_numbers(tgi_source *s, const tgi_post_place *at, const uint32_t **row,
                              tgi_err *err)
{
    post *p = post_of(s);
    TGI_TRY(components_row(p, p->n - 1, at, p->mask, err));
    *row = p->numbers;
    return TG_OK;
}

static tg_status post_intensity(tgi_source *s, const tgi_post_place *at, int channel,
                                double *dst, tgi_err *err)
{
    post *p = post_of(s);
    const tgi_post_image *image = p->how.image;
    const char *row;
    if (image)
        return image->row(image->user, plane_of(p, at), at->y, channel, dst, err);
    if (p->channels > 1)
        return channel_row(p, at, channel, dst, err);
    TGI_TRY(inner_row(p, plane_of(p, at), sample_of(p, at), at->y, &row, err));
    tgi_post_to_double(p->from, row, p->info.width, dst);
    return TG_OK;
}

static tg_status post_tick(tgi_source *s, const char *phase, double fraction, tgi_err *err)
{
    return tick(post_of(s), phase, fraction, err);
}

/* ---- Memory ------------------------------------------------------------------------------ */

static size_t post_least(const tgi_source *s)
{
    const post *p = (const post *)s;
    size_t n = 0;
    for (int k = 0; k < p->n; k++)
        if (p->step[k].most)
            n = tgi_sat_add(
                n, tgi_sat_add(p->step[k].least, tgi_components_rest(&p->step[k].spec)));
    return n;
}

static size_t post_most(const tgi_source *s)
{
    const post *p = (const post *)s;
    size_t n = 0;
    for (int k = 0; k < p->n; k++)
        if (p->step[k].most)
            n = tgi_sat_add(
                n, tgi_sat_add(p->step[k].most, tgi_components_rest(&p->step[k].spec)));
    return n;
}

static tg_status post_settle(tgi_source *s, size_t bytes, const char *folder, tgi_err *err)
{
    post *p = post_of(s);
    const size_t least = post_least(s), most = post_most(s);
    for (int k = 0; k < p->n; k++) {
        step *t = &p->step[k];
        if (!t->most)
            continue;
        size_t cache = t->most;
        if (bytes < most)
            cache = t->least + (size_t)((double)(t->most - t->least) *
                                        ((double)(bytes - least) / (double)(most - least)));
        TGI_TRY(tgi_components_open(&t->spec, cache, folder, &t->components, err));
    }
    return TG_OK;
}

static const tgi_post_made_ops made_ops = {.shape = shape_of,
                                           .plane = post_plane,
                                           .numbers = post_numbers,
                                           .intensity = post_intensity,
                                           .tick = post_tick,
                                           .least = post_least,
                                           .most = post_most,
                                           .scratch = post_most,
                                           .settle = post_settle};

/* ---- Open -------------------------------------------------------------------------------- */

/* How planes make images. */
static tg_status group_planes(post *p, tgi_err *err)
{
    const tgi_post_view *v = &p->how.view;
    const int said = tgi_post_neighbours(&p->how.spec);
    int64_t size = 1, has_z = 0;
    p->depth = p->after = 1;
    for (int a = v->n_axes - 1; a >= 0; a--) {
        if (strchr("YXS", v->axes[a]))
            continue;
        if (v->axes[a] == 'Z') {
            p->depth = v->shape[a];
            p->after = size;
            has_z = 1;
        }
        if (v->axes[a] == 'C') {
            p->channels = v->shape[a];
            p->channel_stride = size;
        }
        size *= v->shape[a];
    }
    const int volume = said == 6 || said == 26 || (!said && p->how.volume && has_z);
    if ((said == 6 || said == 26) && !has_z)
        return tgi_fail(
            err, TG_E_ARG,
            "--post: label:%d counts neighbours in volumes, and the image (axes %s) "
            "has no axis Z: label:%d, or name its axes with --axes",
            said, v->axes, said == 6 ? 4 : 8);
    if (!volume)
        p->depth = p->after = 1;
    p->how.volume = volume;
    p->parts = p->after * p->info.samples;
    if (p->info.samples > 1 && !(p->channels > 1)) {
        p->channels = p->info.samples;
        p->channel_stride = 0;
    }
    if (tgi_post_has(&p->how.spec, TGI_POST_SOFTMAX) && p->channels < 2)
        return tgi_fail(err, TG_E_ARG,
                        "--post: softmax is over channels, and the image (axes %s) has one: "
                        "sigmoid, or name its axes with --axes",
                        v->axes);
    return TG_OK;
}

static void make_info(post *p, const tgi_image_info *in)
{
    const tgi_post_view *v = &p->how.view;
    const tgi_post_kind last = p->step[p->n - 1].is.kind;
    tgi_image_info *i = &p->info;
    *i = *in;
    memcpy(i->axes, v->axes, sizeof i->axes);
    memcpy(i->shape, v->shape, sizeof i->shape);
    i->n_axes = v->n_axes;
    i->n_planes = v->n_planes;
    i->height = tgi_range_len(v->y);
    i->width = tgi_range_len(v->x);
    i->bits = 0;
    i->n_levels = i->n_series = 1;
    i->meta.stored_as = TGI_STORED_LIGHT;
    i->meta.n_luts = i->meta.n_ranges = i->meta.mode = i->meta.n_palette = 0;
    i->meta.palette = NULL;
    i->meta.icc_bytes = 0;
    i->dtype = is_on_values(last) ? TG_DTYPE_F32 : TG_DTYPE_U8;
    if (last == TGI_POST_LABEL)
        i->dtype = p->how.dtype ? p->how.dtype : TG_DTYPE_U32;
}

/* Pixels of holes are neighbours by their sides: objects are whole by their corners, too. */
static void make_components(post *p, step *s, int64_t min_size, int objects)
{
    const int volume = p->how.volume;
    const tgi_post_kind k = s->is.kind;
    s->spec = (tgi_components_spec){.want = k == TGI_POST_LABEL      ? TGI_WANT_NUMBERS
                                            : k == TGI_POST_MIN_SIZE ? TGI_WANT_LARGE
                                                                     : TGI_WANT_HOLES,
                                    .parts = p->parts,
                                    .depth = p->depth,
                                    .height = p->info.height,
                                    .width = p->info.width,
                                    .neighbours = objects,
                                    .min_size = min_size};
    if (k == TGI_POST_FILL_HOLES)
        s->spec.neighbours = volume ? 6 : 4;
    s->most = tgi_components_most(&s->spec);
    s->least = tgi_components_least(&s->spec);
}

/* min-size right before label is done by it. */
static void list_steps(post *p)
{
    const tgi_post_spec *s = &p->how.spec;
    p->n = 0;
    for (int i = 0; i < s->n; i++) {
        const int last = i + 1 == s->n;
        if (s->step[i].kind == TGI_POST_MIN_SIZE && !last &&
            s->step[i + 1].kind == TGI_POST_LABEL)
            continue;
        p->step[p->n++] = (step){.is = s->step[i], .known = NOTHING};
    }
}

static void open_components(post *p)
{
    const tgi_post_spec *s = &p->how.spec;
    const int said = tgi_post_neighbours(s), objects = said ? said : p->how.volume ? 26 : 8;
    int64_t size = 0;
    for (int i = 0; i < s->n; i++)
        if (s->step[i].kind == TGI_POST_MIN_SIZE)
            size = s->step[i].size;
    const int before_label = s->n > 1 && s->step[s->n - 1].kind == TGI_POST_LABEL &&
                             s->step[s->n - 2].kind == TGI_POST_MIN_SIZE;
    for (int k = 0; k < p->n; k++) {
        const tgi_post_kind kind = p->step[k].is.kind;
        if (kind == TGI_POST_LABEL)
            make_components(p, &p->step[k], before_label ? size : 0, objects);
        else if (kind == TGI_POST_MIN_SIZE || kind == TGI_POST_FILL_HOLES)
            make_components(p, &p->step[k], kind == TGI_POST_MIN_SIZE ? size : 0, objects);
    }
}

static tg_status check_mask(const post *p, tgi_err *err)
{
    const tgi_post_kind first = p->how.spec.step[0].kind;
    if (is_on_values(first) || tgi_post_makes_mask(&p->how.spec) ||
        !tgi_dtype_is_float(p->from))
        return TG_OK;
    return tgi_fail(
        err, TG_E_ARG,
        "--post: %s takes a mask, and the pixels are %s: threshold:X or otsu in front "
        "of it says which are objects",
        tgi_post_name(first), tgi_dtype_name(p->from));
}

static int allocate_pieces(post *p)
{
    const size_t row = row_bytes(p);
    const int several = p->step[0].is.kind == TGI_POST_SOFTMAX ||
                        (p->how.objects && !p->how.image && p->channels > 1);
    p->n_pieces = several ? p->channels : 1;
    p->piece_rows =
        tgi_clamp((int64_t)(PIECE_BYTES / (row ? row : 1)) / p->n_pieces, 1, p->info.height);
    p->pieces = tgi_calloc(TGI_TAG_IO, (size_t)p->n_pieces, sizeof *p->pieces);
    int ok = p->pieces != NULL;
    for (int64_t i = 0; i < p->n_pieces && ok; i++) {
        p->pieces[i].plane = NOTHING;
        p->pieces[i].rows = tgi_malloc(TGI_TAG_IO, (size_t)p->piece_rows * row);
        ok = p->pieces[i].rows != NULL;
    }
    return ok;
}

static tg_status allocate(post *p, tgi_err *err)
{
    const size_t w = (size_t)p->info.width;
    p->values = tgi_malloc(TGI_TAG_IO, w * sizeof(double));
    p->other = tgi_malloc(TGI_TAG_IO, 3 * w * sizeof(double));
    p->mask = tgi_malloc(TGI_TAG_IO, w);
    p->numbers = tgi_malloc(TGI_TAG_IO, w * sizeof(uint32_t));
    int ok = p->values && p->other && p->mask && p->numbers && allocate_pieces(p);
    for (int k = 0; k < p->n && ok; k++) {
        if (p->step[k].is.kind != TGI_POST_OTSU)
            continue;
        p->step[k].thresholds = tgi_malloc(TGI_TAG_IO, (size_t)p->parts * sizeof(double));
        p->otsu = tgi_malloc(TGI_TAG_IO, TGI_OTSU_BYTES);
        ok = p->otsu && p->step[k].thresholds;
    }
    return ok ? TG_OK : tgi_fail(err, TG_E_NOMEM, "no memory for rows of --post");
}

tg_status tgi_post_open_steps(tgi_source *inner, const tgi_post_opts *o, tgi_source **out,
                              tgi_err *err)
{
    post *p = tgi_calloc(TGI_TAG_IO, 1, sizeof *p);
    if (!p)
        return tgi_fail(err, TG_E_NOMEM, "no memory for --post");
    const tgi_image_info *in = inner->ops->info(inner);
    p->base.source.ops = &post_ops;
    p->base.made = &made_ops;
    p->how = *o;
    p->from = in->dtype;
    list_steps(p);
    make_info(p, in);
    tg_status st = check_mask(p, err);
    if (st == TG_OK)
        st = group_planes(p, err);
    if (st == TG_OK) {
        open_components(p);
        st = allocate(p, err);
    }
    if (st == TG_OK) {
        p->inner = inner;
        *out = &p->base.source;
        return TG_OK;
    }
    tgi_source *base = &p->base.source;
    post_close(&base);
    return st;
}
