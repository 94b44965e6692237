/* picked.c - see picked.h. */
#include "io/picked.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"

#include <stdio.h>
#include <string.h>

#define PIECE_BYTES 4096 /* of a row whose samples are taken one by one */

/* An axis of planes. */
typedef struct part {
    char letter;
    int64_t size,
        stride; /* entries that are there now; planes of the inner source between two of its own */
    tgi_axis_list list; /* at NULL: all */
} part;

typedef struct picked {
    tgi_source base;
    tgi_source *inner;
    tgi_image_info info;
    part axis[TGI_IMAGE_MAX_AXES];
    int n_axes;
    tgi_axis_list samples; /* of a pixel; at NULL: all */
    int named; /* these are colours, which become channels where they are no picture any more */
    part *apart; /* they are channels now: this axis; or NULL */
    /* Of what stays, where it is not all: views of the inner source's strings, and copies. */
    char **channel_name, **label;
    uint32_t *channel_color;
    uint8_t *lut;
    double *range;
    tgi_ome_kept *ome;
    size_t bytes;
} picked;

static const picked *picked_of(const tgi_source *s)
{
    return (const picked *)s;
}

int tgi_axis_pick_any(const tgi_axis_pick *p)
{
    return p->channels || p->z || p->t || !tgi_range_empty(p->slices);
}

/* ---- Planes ------------------------------------------------------------------------------ */

/* The plane of the inner source; *sample: of it, where samples are channels now. */
static int64_t inner_plane(const picked *k, int64_t plane, int *sample)
{
    int64_t at = 0;
    for (int i = k->n_axes - 1; i >= 0; i--) {
        const part *a = &k->axis[i];
        const int64_t e = plane % a->size;
        plane /= a->size;
        at += (a->list.at ? a->list.at[e] : e) * a->stride;
        if (a == k->apart && sample)
            *sample = (int)a->list.at[e];
    }
    return at;
}

/* Samples that follow each other in the file are read at once. */
static int is_run(const tgi_axis_list *l, int s0, int s1)
{
    for (int s = s0 + 1; s < s1; s++)
        if (l->at[s] != l->at[s - 1] + 1)
            return 0;
    return 1;
}

typedef struct box {
    int64_t y0, y1, x0, x1;
    size_t row_pitch, sample_pitch;
} box;

/* One sample into its place between the others of a pixel, a piece of a row after the other. */
static tg_status scatter(const picked *k, int thread, int64_t plane, int s, int place, int each,
                         const box *b, char *dst, tgi_err *err)
{
    char piece[PIECE_BYTES];
    const size_t size = tgi_dtype_size(k->info.dtype);
    const int64_t room = (int64_t)(sizeof piece / size);
    for (int64_t y = b->y0; y < b->y1; y++)
        for (int64_t x = b->x0; x < b->x1; x += room) {
            const int64_t n = tgi_min(room, b->x1 - x);
            TGI_TRY(tgi_source_read(k->inner, thread, plane, s, s + 1, y, y + 1, x, x + n,
                                    piece, sizeof piece, sizeof piece, err));
            char *to = dst + (size_t)(y - b->y0) * b->row_pitch +
                       (size_t)((x - b->x0) * each + place) * size;
            for (int64_t i = 0; i < n; i++)
                memcpy(to + (size_t)(i * each) * size, piece + (size_t)i * size, size);
        }
    return TG_OK;
}

static tg_status picked_read(tgi_source *base, int thread, int64_t plane, int s0, int s1,
                             int64_t y0, int64_t y1, int64_t x0, int64_t x1, void *dst,
                             size_t row_pitch, size_t sample_pitch, tgi_err *err)
{
    const picked *k = picked_of(base);
    const tgi_axis_list *l = &k->samples;
    if (plane < 0 || plane >= k->info.n_planes || s0 < 0 || s1 > k->info.samples || s0 >= s1)
        return tgi_fail(err, TG_E_ARG, "a plane outside of those that are chosen: %lld",
                        (long long)plane);
    int only = 0;
    const int64_t from = inner_plane(k, plane, &only);
    if (!l->at || is_run(l, s0, s1)) {
        const int first = k->apart ? only : l->at ? (int)l->at[s0] : s0;
        return tgi_source_read(k->inner, thread, from, first, first + s1 - s0, y0, y1, x0, x1,
                               dst, row_pitch, sample_pitch, err);
    }
    const box b = {y0, y1, x0, x1, row_pitch, sample_pitch};
    for (int s = s0; s < s1; s++) {
        if (sample_pitch == TGI_INTERLEAVED)
            TGI_TRY(scatter(k, thread, from, (int)l->at[s], s - s0, s1 - s0, &b, dst, err));
        else
            TGI_TRY(tgi_source_read(
                k->inner, thread, from, (int)l->at[s], (int)l->at[s] + 1, y0, y1, x0, x1,
                (char *)dst + (size_t)(s - s0) * sample_pitch, row_pitch, sample_pitch, err));
    }
    return TG_OK;
}

/* Planes that are `stride` apart here lie on a grid of the inner source: all of that grid between the first and the
 * last is told, since its decoders are numbered along it. */
static tg_status picked_expect(tgi_source *base, int64_t planes, int64_t stride, tgi_err *err)
{
    const picked *k = picked_of(base);
    int64_t lo = inner_plane(k, 0, NULL), hi = lo, unit = 0;
    const int64_t first = lo;
    if (!k->inner->ops->expect)
        return TG_OK;
    for (int64_t i = 1; i < planes && i * stride < k->info.n_planes; i++) {
        const int64_t at = inner_plane(k, i * stride, NULL);
        lo = tgi_min(lo, at);
        hi = tgi_max(hi, at);
        int64_t a = unit, b = at > first ? at - first : first - at;
        while (b) { /* the greatest common divisor */
            const int64_t r = a % b;
            a = b;
            b = r;
        }
        unit = a;
    }
    return k->inner->ops->expect(k->inner, unit ? (hi - lo) / unit + 1 : 1, unit ? unit : 1,
                                 err);
}

/* ---- The rest of a source ---------------------------------------------------------------- */

static const tgi_image_info *picked_info(const tgi_source *s)
{
    return &picked_of(s)->info;
}

static void free_picked(picked *k)
{
    for (int i = 0; i < k->n_axes; i++)
        tgi_free(k->axis[i].list.at);
    tgi_free(k->samples.at);
    tgi_free(k->channel_name);
    tgi_free(k->label);
    tgi_free(k->channel_color);
    tgi_free(k->lut);
    tgi_free(k->range);
    tgi_ome_kept_free(&k->ome);
    tgi_free(k);
}

static void picked_close(tgi_source **base)
{
    picked *k = (picked *)*base;
    if (!k)
        return;
    tgi_source_close(&k->inner);
    free_picked(k);
    *base = NULL;
}

static size_t picked_bytes(const tgi_source *s)
{
    const picked *k = picked_of(s);
    return sizeof *k + k->bytes + k->inner->ops->codec_bytes(k->inner);
}

static int64_t picked_stream_rows(const tgi_source *s)
{
    const tgi_source *in = picked_of(s)->inner;
    return in->ops->stream_rows ? in->ops->stream_rows(in) : 0;
}

static const tgi_source *picked_inner(const tgi_source *s)
{
    return picked_of(s)->inner;
}

static const tgi_source_ops picked_ops = {.format = "picked",
                                          .fuzzed = TGI_FUZZED,
                                          .info = picked_info,
                                          .read = picked_read,
                                          .close = picked_close,
                                          .codec_bytes = picked_bytes,
                                          .expect = picked_expect,
                                          .stream_rows = picked_stream_rows,
                                          .decoded_bytes = tgi_inner_decoded,
                                          .file = tgi_inner_file,
                                          .held = tgi_inner_held,
                                          .inner = picked_inner};

static part *axis_of(picked *k, char letter)
{
    for (int i = 0; i < k->n_axes; i++)
        if (k->axis[i].letter == letter)
            return &k->axis[i];
    return NULL;
}

/* ---- What is known of what stays --------------------------------------------------------- */

static void *take(picked *k, size_t n, size_t size, tgi_err *err)
{
    void *p = tgi_calloc(TGI_TAG_IO, n ? n : 1, size);
    k->bytes += n * size;
    if (!p)
        (void)tgi_fail(err, TG_E_NOMEM, "no memory for what is chosen");
    return p;
}

static tg_status keep_channels(picked *k, const tgi_image_meta *m, int64_t was,
                               const tgi_axis_list *l, tgi_err *err)
{
    tgi_image_meta *o = &k->info.meta;
    if (m->n_channels == was && m->channel_name &&
        !(k->channel_name = take(k, (size_t)l->n, sizeof *k->channel_name, err)))
        return TG_E_NOMEM;
    if (m->n_channels == was && m->channel_color &&
        !(k->channel_color = take(k, (size_t)l->n, sizeof *k->channel_color, err)))
        return TG_E_NOMEM;
    if (m->n_luts == was && m->lut && !(k->lut = take(k, (size_t)l->n, 768, err)))
        return TG_E_NOMEM;
    if (m->n_ranges == was && m->range &&
        !(k->range = take(k, (size_t)l->n, 2 * sizeof *k->range, err)))
        return TG_E_NOMEM;
    for (int64_t i = 0; i < l->n; i++) {
        if (k->channel_name)
            k->channel_name[i] = m->channel_name[l->at[i]];
        if (k->channel_color)
            k->channel_color[i] = m->channel_color[l->at[i]];
        if (k->lut)
            memcpy(k->lut + i * 768, m->lut + l->at[i] * 768, 768);
        if (k->range)
            memcpy(k->range + 2 * i, m->range + 2 * l->at[i], 2 * sizeof *k->range);
    }
    o->channel_name = k->channel_name;
    o->channel_color = k->channel_color;
    o->lut = k->lut;
    o->range = k->range;
    o->n_channels = k->channel_name || k->channel_color ? (int)l->n : 0;
    o->n_luts = k->lut ? (int)l->n : 0;
    o->n_ranges = k->range ? (int)l->n : 0;
    o->mode = l->n > 1 ? o->mode : 0;
    return TG_OK;
}

/* Of the samples of a pixel, where they are colours: red first. */
static const struct {
    const char *name;
    uint32_t color;
} colour[4] = {{"red", 0xff0000ff}, {"green", 0x00ff00ff}, {"blue", 0x0000ffff}, {"alpha", 0}};

static int is_rgb(const tgi_image_info *in)
{
    return in->meta.colours == 3 && in->samples <= 4 && !in->meta.stored_as;
}

/* All colours, in their order. */
static int are_colours(const picked *k, const tgi_image_meta *m)
{
    const tgi_axis_list *l = &k->samples;
    int all = m->colours > 0 && l->n >= m->colours;
    for (int i = 0; all && i < m->colours; i++)
        all = l->at[i] == i;
    return all;
}

/* What viewers of pictures take for light is: one of the samples, or all colours in their order, alpha behind them or not. */
static tg_status check_picture(const picked *k, const char *text, tgi_err *err)
{
    const tgi_image_info *in = k->inner->ops->info(k->inner);
    const tgi_axis_list *l = &k->samples;
    const int alpha = in->meta.alpha != 0,
              colours = in->meta.colours ? in->meta.colours : in->samples - alpha;
    if (!l->at || l->n == 1 || (!alpha && !in->meta.colours))
        return TG_OK;
    int shown =
        l->n == colours || (alpha && l->n == colours + 1 && l->at[colours] == in->samples - 1);
    for (int i = 0; shown && i < colours; i++)
        shown = l->at[i] == i;
    if (shown)
        return TG_OK;
    return tgi_fail(err, TG_E_ARG,
                    "--channels %s: a PNG or JPEG holds one channel, or all colours in their "
                    "order%s: choose one of these, or write .tif, where each is a channel",
                    text, alpha ? ", with alpha behind them or without" : "");
}

/* A channel for each of the samples that are chosen, with its name. */
static tg_status set_apart(picked *k, tgi_err *err)
{
    tgi_image_meta *o = &k->info.meta;
    const size_t n = (size_t)k->samples.n;
    part *p = axis_of(k, 'C');
    if (!p)
        p = &k->axis[k->n_axes++]; /* in place of the samples */
    *p = (part){.letter = 'C', .size = k->samples.n, .list = k->samples};
    k->samples = (tgi_axis_list){0};
    k->apart = p;
    k->channel_name = take(k, n, sizeof *k->channel_name, err);
    k->channel_color = take(k, n, sizeof *k->channel_color, err);
    if (!k->channel_name || !k->channel_color)
        return TG_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const int64_t s = p->list.at[i];
        if (s < 3 || k->inner->ops->info(k->inner)->meta.alpha)
            memcpy(&k->channel_name[i], &colour[s].name, sizeof k->channel_name[i]);
        k->channel_color[i] = colour[s].color;
    }
    o->channel_name = k->channel_name;
    o->channel_color = k->channel_color;
    o->n_channels = (int)n;
    o->alpha = 0;
    k->info.samples = 1;
    return TG_OK;
}

/* Colours are colours while all are there in their order. */
static void keep_samples(picked *k, const tgi_image_meta *m, int was)
{
    const tgi_axis_list *l = &k->samples;
    tgi_image_meta *o = &k->info.meta;
    if (!are_colours(k, m)) {
        o->colours = 0;
        o->icc = NULL;
        o->icc_bytes = 0;
        o->stored_as = TGI_STORED_LIGHT;
    }
    if (o->alpha && l->at[l->n - 1] != was - 1)
        o->alpha = 0;
    for (int64_t i = 0; i + 1 < l->n; i++) /* alpha is the last one, and there once */
        if (o->alpha && l->at[i] == was - 1)
            o->alpha = 0;
}

static tg_status keep_labels(picked *k, const tgi_image_meta *m, int64_t was, tgi_err *err)
{
    if (!m->label || m->n_labels != was)
        return TG_OK;
    k->label = take(k, (size_t)k->info.n_planes, sizeof *k->label, err);
    if (!k->label)
        return TG_E_NOMEM;
    for (int64_t i = 0; i < k->info.n_planes; i++)
        k->label[i] = m->label[inner_plane(k, i, NULL)];
    k->info.meta.label = k->label;
    k->info.meta.n_labels = k->info.n_planes;
    return TG_OK;
}

static bool goes_back(const tgi_axis_list *l)
{
    int64_t i = 1;
    while (i < l->n && l->at[i] < l->at[i - 1])
        i++;
    return l->n > 1 && i >= l->n;
}

static void keep_distances(picked *k)
{
    tgi_image_info *i = &k->info;
    for (int a = 0; a < k->n_axes; a++) {
        const part *p = &k->axis[a];
        double *each = p->letter == 'Z'   ? &i->meta.physical[0]
                       : p->letter == 'T' ? &i->meta.time_increment
                                          : NULL;
        if (!p->list.at || !each || *each <= 0)
            continue;
        *each *= (double)tgi_axis_list_step(&p->list);
        if (*each > 0)
            continue;
        const size_t n = strlen(i->note);
        snprintf(i->note + n, sizeof i->note - n,
                 "%sthe chosen %s %s: no distance is said of them", n ? "; " : "",
                 p->letter == 'Z' ? "slices" : "times",
                 goes_back(&p->list) ? "go backwards" : "are not equally far apart");
    }
}

static int64_t channels_of(const tgi_image_info *in)
{
    const char *c = strchr(in->axes, 'C');
    return c ? in->shape[c - in->axes] : 1;
}

/* The inner image with what was chosen of its axes. */
static tg_status make_info(picked *k, tgi_err *err)
{
    const tgi_image_info *in = k->inner->ops->info(k->inner);
    tgi_image_info *i = &k->info;
    int a = 0;
    i->n_planes = 1;
    i->n_axes = 0;
    if (k->samples.at) {
        i->samples = (int)k->samples.n;
        keep_samples(k, &in->meta, in->samples);
        if (k->named && !are_colours(k, &in->meta))
            TGI_TRY(set_apart(k, err));
    }
    for (int n = 0; n < k->n_axes; n++)
        i->n_planes *= k->axis[n].size;
    for (int n = 0; n < in->n_axes; n++) {
        const char c = in->axes[n];
        if (c == 'Y' && a < k->n_axes) { /* an axis C that was not there */
            i->axes[i->n_axes] = k->axis[a].letter;
            i->shape[i->n_axes++] = k->axis[a++].size;
        }
        if (c == 'S' && i->samples == 1)
            continue;
        i->axes[i->n_axes] = c;
        i->shape[i->n_axes++] = c == 'S'          ? i->samples
                                : strchr("YX", c) ? in->shape[n]
                                                  : k->axis[a].size;
        a += !strchr("YXS", c);
    }
    i->axes[i->n_axes] = 0;
    for (int n = 0; n < k->n_axes; n++)
        if (k->axis[n].letter == 'C' && k->axis[n].list.at && &k->axis[n] != k->apart)
            TGI_TRY(keep_channels(k, &in->meta, channels_of(in), &k->axis[n].list, err));
    keep_distances(k);
    const part *const of[3] = {axis_of(k, 'Z'), k->apart ? NULL : axis_of(k, 'C'),
                               axis_of(k, 'T')};
    TGI_TRY(tgi_ome_kept_pick(in->meta.ome, of[0] ? &of[0]->list : NULL,
                              of[1] ? &of[1]->list : NULL, of[2] ? &of[2]->list : NULL, &k->ome,
                              err));
    i->meta.ome = k->ome;
    return keep_labels(k, &in->meta, in->n_planes, err);
}

/* ---- What is chosen ---------------------------------------------------------------------- */

/* All of an axis in its order is no choice. */
static void take_list(part *p)
{
    if (tgi_axis_list_is_all(&p->list, p->size)) {
        tgi_free(p->list.at);
        p->list = (tgi_axis_list){0};
    } else {
        p->size = p->list.n;
    }
}

static tg_status no_axis(const picked *k, const char *option, const char *text, char letter,
                         tgi_err *err)
{
    return tgi_fail(err, TG_E_ARG,
                    "%s %s: the image (axes %s) has no axis %c: name its axes with --axes, or "
                    "choose images by --planes",
                    option, text, k->info.axes, letter);
}

static tg_status choose_along(picked *k, char letter, const char *text, const char *option,
                              const char *one, tgi_err *err)
{
    part *p = axis_of(k, letter);
    if (!text)
        return TG_OK;
    if (!p)
        return no_axis(k, option, text, letter, err);
    if (p->list.at)
        return tgi_fail(err, TG_E_ARG, "%s and the first part of --roi both choose slices",
                        option);
    const tgi_axis_entries of = {option, one, p->size, NULL, 0};
    TGI_TRY(tgi_axis_list_parse(text, &of, &p->list, err));
    take_list(p);
    return TG_OK;
}

static tg_status choose_slices(picked *k, tgi_range r, tgi_err *err)
{
    part *p = axis_of(k, 'Z');
    const long long lo = (long long)r.lo, hi = (long long)r.hi;
    if (tgi_range_empty(r))
        return TG_OK;
    if (r.hi == INT64_MAX && r.lo == 0)
        return TG_OK;
    if (!p)
        return tgi_fail(err, TG_E_ARG,
                        "--roi names slices, and the image (axes %s) has no axis Z: leave "
                        "its first part out, or name the axes with --axes",
                        k->info.axes);
    if (r.hi == INT64_MAX)
        r.hi = p->size;
    if (r.lo >= r.hi || r.hi > p->size)
        return tgi_fail(err, TG_E_ARG, "--roi: slices %lld:%lld are not all there: it has %lld",
                        lo, r.hi == p->size ? (long long)p->size : hi, (long long)p->size);
    p->list.at = take(k, (size_t)tgi_range_len(r), sizeof *p->list.at, err);
    if (!p->list.at)
        return TG_E_NOMEM;
    for (int64_t i = r.lo; i < r.hi; i++)
        p->list.at[p->list.n++] = i;
    take_list(p);
    return TG_OK;
}

static tg_status choose_samples(picked *k, const char *text, tgi_err *err)
{
    const tgi_image_info *in = k->inner->ops->info(k->inner);
    char *name[4];
    const int rgb = is_rgb(in);
    for (int i = 0; i < 4; i++)
        memcpy(&name[i], &colour[i].name, sizeof name[i]); /* nobody writes to them */
    if (rgb && !in->meta.alpha)
        name[3] = NULL;
    const tgi_axis_entries of = {"--channels", "channel", in->samples, rgb ? name : NULL, 1};
    TGI_TRY(tgi_axis_list_parse(text, &of, &k->samples, err));
    if (tgi_axis_list_is_all(&k->samples, in->samples)) {
        tgi_free(k->samples.at);
        k->samples = (tgi_axis_list){0};
    }
    return TG_OK;
}

static tg_status choose_channels(picked *k, const char *text, tgi_err *err)
{
    const tgi_image_info *in = k->inner->ops->info(k->inner);
    const tgi_image_meta *m = &in->meta;
    part *p = axis_of(k, 'C');
    if (!text)
        return TG_OK;
    if ((!p || p->size == 1) && in->samples > 1)
        return choose_samples(k, text, err);
    const int added = !p;
    if (!p) { /* the only channel has no axis */
        if (k->n_axes + 3 > TGI_IMAGE_MAX_AXES)
            return tgi_fail(err, TG_E_UNSUPPORTED, "--channels: too many axes (%s)", in->axes);
        p = &k->axis[k->n_axes++];
        *p = (part){.letter = 'C', .size = 1};
    }
    const tgi_axis_entries of = {"--channels", "channel", p->size,
                                 m->n_channels == p->size ? m->channel_name : NULL, 1};
    const int unnamed = added && strpbrk(in->axes, "QI"); /* its planes may be channels */
    tgi_err why = {0};
    const tg_status st = tgi_axis_list_parse(text, &of, &p->list, &why);
    if (st == TG_E_ARG && unnamed)
        return no_axis(k, "--channels", text, 'C', err);
    if (st != TG_OK)
        return tgi_fail(err, st, "%s", why.text);
    take_list(p);
    k->n_axes -= added && !p->list.at;
    return TG_OK;
}

/* ---- Opening ----------------------------------------------------------------------------- */

static tg_status begin(tgi_source *inner, picked **out, tgi_err *err)
{
    const tgi_image_info *in = inner->ops->info(inner);
    int64_t stride = 1;
    picked *k = tgi_calloc(TGI_TAG_IO, 1, sizeof *k);
    if (!k)
        return tgi_fail(err, TG_E_NOMEM, "no memory for what is chosen of an image");
    *k = (picked){.base.ops = &picked_ops, .inner = inner, .info = *in};
    for (int i = 0; i < in->n_axes; i++)
        if (!strchr("YXS", in->axes[i]))
            k->axis[k->n_axes++] = (part){.letter = in->axes[i], .size = in->shape[i]};
    for (int i = k->n_axes - 1; i >= 0; i--) {
        k->axis[i].stride = stride;
        stride *= k->axis[i].size;
    }
    *out = k;
    return TG_OK;
}

static tg_status end(picked *k, tg_status st, tgi_source **out, tgi_err *err)
{
    if (st == TG_OK)
        st = make_info(k, err);
    for (int i = 0; i < k->n_axes && st == TG_OK; i++)
        k->bytes += (size_t)k->axis[i].list.n * sizeof *k->axis[i].list.at;
    if (st == TG_OK)
        *out = &k->base;
    else
        free_picked(k);
    return st;
}

static tg_status refuse_film(const tgi_axis_pick *how, tgi_err *err)
{
    if (how->t)
        return tgi_fail(err, TG_E_ARG,
                        "--t is for images; --frames A:B, --start and --end choose frames of a "
                        "film");
    return tgi_fail(err, TG_E_ARG, "%s is for images, and this is a film",
                    how->channels ? "--channels"
                    : how->z      ? "--z"
                                  : "a part of --roi for slices");
}

tg_status tgi_picked_open(tgi_source *inner, const tgi_axis_pick *how, tgi_source **out,
                          tgi_err *err)
{
    picked *k;
    if (strcmp(inner->ops->format, "film") == 0)
        return refuse_film(how, err);
    TGI_TRY(begin(inner, &k, err));
    k->named = how->apart && is_rgb(inner->ops->info(inner));
    tg_status st = choose_channels(k, how->channels, err);
    if (st == TG_OK && how->picture && how->channels)
        st = check_picture(k, how->channels, err);
    if (st == TG_OK)
        st = choose_slices(k, how->slices, err);
    if (st == TG_OK)
        st = choose_along(k, 'Z', how->z, "--z", "slice", err);
    if (st == TG_OK)
        st = choose_along(k, 'T', how->t, "--t", "time", err);
    return end(k, st, out, err);
}

/* By entries of each axis of planes; list[i].at NULL: all. The lists are taken, also on failure. */
static tg_status open_lists(tgi_source *inner, tgi_axis_list *list, tgi_source **out,
                            tgi_err *err)
{
    picked *k;
    const tg_status st = begin(inner, &k, err);
    for (int i = 0; i < TGI_IMAGE_MAX_AXES; i++)
        if (st != TG_OK || i >= k->n_axes) {
            tgi_free(list[i].at);
        } else if (list[i].at) {
            k->axis[i].list = list[i];
            k->axis[i].size = list[i].n;
        }
    return st == TG_OK ? end(k, st, out, err) : st;
}

/* ---- Planes as entries of axes ----------------------------------------------------------- */

/* The different entries along one axis, in ascending order. */
static int entries_along(const int64_t *plane, int64_t count, int64_t stride, int64_t size,
                         tgi_axis_list *l)
{
    uint8_t *seen = tgi_calloc(TGI_TAG_IO, (size_t)size, 1);
    l->at = tgi_calloc(TGI_TAG_IO, (size_t)size, sizeof *l->at);
    l->n = 0;
    for (int64_t i = 0; seen && l->at && i < count; i++)
        seen[plane[i] / stride % size] = 1;
    for (int64_t i = 0; seen && l->at && i < size; i++)
        if (seen[i])
            l->at[l->n++] = i;
    const int ok = seen && l->at;
    tgi_free(seen);
    return ok;
}

/* Planes (count of them, ascending), numbered over n_axes of these sizes, last fastest, as entries of each axis,
 * where they are all combinations of such: list[i] belongs to axis i. 0, and no lists, where they are not, or
 * memory is short. */
static int factor(const int64_t *plane, int64_t count, int n_axes, const int64_t *size,
                  tgi_axis_list *list)
{
    int64_t stride = 1, all = 1;
    int ok = count > 0;
    memset(list, 0, TGI_IMAGE_MAX_AXES * sizeof *list);
    for (int i = n_axes - 1; ok && i >= 0; i--) {
        ok = entries_along(plane, count, stride, size[i], &list[i]);
        stride *= size[i];
        all *= ok ? list[i].n : 0; /* at most as many as there are planes */
    }
    /* Each plane is one of the combinations, and none is there twice: so they are all, if they are as many. */
    if (ok && all == count)
        return 1;
    for (int i = 0; i < n_axes; i++) {
        tgi_free(list[i].at);
        list[i] = (tgi_axis_list){0};
    }
    return 0;
}

/* The lists belong to the axes in `letters`; put them where the source has these. */
static void place_lists(const tgi_image_info *in, const char *letters, const tgi_axis_list *of,
                        tgi_axis_list *list)
{
    int n = 0;
    for (int i = 0; i < in->n_axes; i++) {
        const char *at = strchr(letters, in->axes[i]);
        if (strchr("YXS", in->axes[i]))
            continue;
        if (at)
            list[n] = of[at - letters];
        if (at && list[n].n == in->shape[i]) { /* all of it */
            tgi_free(list[n].at);
            list[n] = (tgi_axis_list){0};
        }
        n++;
    }
}

tg_status tgi_picked_planes(tgi_source **s, const char *letters, const tgi_planes_spec *planes,
                            int64_t count, int *done, tgi_err *err)
{
    const tgi_image_info *in = (*s)->ops->info(*s);
    char all[TGI_IMAGE_MAX_AXES + 1] = "";
    int64_t size[TGI_IMAGE_MAX_AXES], n = 0;
    tgi_axis_list of[TGI_IMAGE_MAX_AXES] = {{0}}, list[TGI_IMAGE_MAX_AXES] = {{0}};
    *done = 0;
    if (strcmp(in->format, "film") == 0)
        return TG_OK;
    for (int i = 0; i < in->n_axes; i++)
        if (!strchr("YXS", in->axes[i]) && (!letters || strchr(letters, in->axes[i]))) {
            all[n] = in->axes[i];
            size[n++] = in->shape[i];
        }
    int64_t *plane = tgi_calloc(TGI_TAG_IO, (size_t)count, sizeof *plane);
    if (!plane)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the planes that are chosen");
    for (int64_t i = 0; i < count; i++)
        plane[i] = tgi_planes_at(planes, i);
    *done = factor(plane, count, (int)n, size, of);
    tgi_free(plane);
    if (!*done)
        return TG_OK;
    place_lists(in, all, of, list);
    tgi_source *chosen = NULL;
    TGI_TRY(open_lists(*s, list, &chosen, err));
    *s = chosen;
    return TG_OK;
}

/* What one choice takes of the axis; NULL: all. */
static const tgi_axis_list *list_of(const picked *k, char letter)
{
    if (letter == 'S')
        return k->samples.at ? &k->samples : NULL;
    for (int i = 0; i < k->n_axes; i++)
        if (k->axis[i].letter == letter)
            return k->axis[i].list.at ? &k->axis[i].list : NULL;
    return NULL;
}

tg_status tgi_picked_entries(const tgi_source *s, char letter, tgi_axis_list *out, tgi_err *err)
{
    *out = (tgi_axis_list){0};
    for (; s; s = s->ops->inner ? s->ops->inner(s) : NULL) {
        const tgi_axis_list *l =
            s->ops == &picked_ops ? list_of((const picked *)s, letter) : NULL;
        if (l && out->at) { /* entries of entries */
            for (int64_t i = 0; i < out->n; i++)
                out->at[i] = l->at[out->at[i]];
        } else if (l) {
            out->at = tgi_calloc(TGI_TAG_IO, (size_t)l->n, sizeof *out->at);
            if (!out->at)
                return tgi_fail(err, TG_E_NOMEM, "no memory for the entries of an axis");
            out->n = l->n;
            memcpy(out->at, l->at, (size_t)l->n * sizeof *out->at);
        }
    }
    return TG_OK;
}

const int64_t *tgi_picked_channels(const tgi_source *s, int64_t *n, int64_t *all)
{
    for (; s; s = s->ops->inner ? s->ops->inner(s) : NULL) {
        const picked *k = s->ops == &picked_ops ? (const picked *)s : NULL;
        for (int i = 0; k && i < k->n_axes; i++)
            if (k->axis[i].letter == 'C' && k->axis[i].list.at) {
                *n = k->axis[i].list.n;
                *all = channels_of(k->inner->ops->info(k->inner));
                return k->axis[i].list.at;
            }
    }
    return NULL;
}

const int64_t *tgi_picked_choice(const tgi_source *s, int64_t *n, const tgi_image_info **whole)
{
    for (; s; s = s->ops->inner ? s->ops->inner(s) : NULL) {
        const picked *k = s->ops == &picked_ops ? (const picked *)s : NULL;
        const tgi_axis_list *l = k ? &k->samples : NULL;
        for (int i = 0; k && i < k->n_axes && !l->at; i++)
            if (k->axis[i].letter == 'C')
                l = &k->axis[i].list;
        if (!l || !l->at)
            continue;
        *n = l->n;
        *whole = k->inner->ops->info(k->inner);
        return l->at;
    }
    return NULL;
}
