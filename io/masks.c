/* masks.c - see masks.h.
 *
 * A row of a mask's file becomes numbers of 0 to 255 for each sample, those one number for each pixel, and the pixels that
 * a row of a frame lies nearest to become 0 or 1. What a file's mask says is kept until another one is asked for, since the
 * last one may be held for many frames; boxes and growth are made anew each time. */
#include "io/masks.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "io/film_out.h"
#include "io/mask_grow.h"
#include "io/mask_numbers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_NOTES 12
#define MOST_BOX_NOTES 4
#define BAND_BYTES ((size_t)256 << 10) /* of rows that are read at once */
#define LOSSY_LIMIT 127
#define GREYS 256

typedef struct box {
    int64_t x0, x1, y0, y1, from, until; /* in frames that are read */
} box;

struct tgi_masks {
    tgi_masks_how how; /* its pointers are only good in open */
    tgi_source *source;
    const tgi_image_info *info;
    int64_t count, skip; /* masks in the file; that of frame 0 */
    int is_still, limit, use_alpha;
    size_t beside; /* bytes_beside */
    box *boxes;
    uint8_t
        *own; /* what mask `own_of` says, 0 or 1, -1: none; a still one with boxes, and grown */
    int64_t own_of;
    void *band; /* rows of the file: [band_at, band_end) of the mask that is read */
    int64_t band_rows, band_at, band_end;
    uint8_t *samples, *line; /* numbers of row line_at: of each sample, of each pixel */
    int64_t line_at;
    int64_t *column; /* of the mask, for each of a frame */
    char note[MOST_NOTES][640];
    int n_notes;
};

/* What was seen in a mask on the way. */
typedef struct seen {
    int64_t n[GREYS]; /* pixels of each number */
    int colours_vary, alpha_varies, has_first;
    uint8_t first[4]; /* samples of the first pixel, at most; alpha is the last */
} seen;

static void add_note(tgi_masks *m, const char *fmt, ...) TGI_PRINTF(2, 3);
static void add_note(tgi_masks *m, const char *fmt, ...)
{
    va_list ap;
    if (m->n_notes == MOST_NOTES)
        return;
    va_start(ap, fmt);
    vsnprintf(m->note[m->n_notes++], sizeof m->note[0], fmt, ap);
    va_end(ap);
}

/* ---- Boxes ------------------------------------------------------------------------------- */

/* The first of the frames whose masks are known, counted from the first that is read, and where they end: with those that
 * were cut off. */
static int64_t known_from(const tgi_masks *m)
{
    return tgi_masks_is_whole(m) ? -m->how.first : 0;
}

static int64_t known_until(const tgi_masks *m)
{
    return tgi_masks_is_whole(m) ? m->how.whole - m->how.first : m->how.frames;
}

/* From frames of `from` pixels on a side to those of `to`: all that it touches. */
static void scale_side(int64_t from, int64_t to, int64_t *lo, int64_t *hi)
{
    *lo = *lo * to / from;
    *hi = (*hi * to + from - 1) / from;
}

/* The part of a box that lies in the frames. */
static tg_status take_box(tgi_masks *m, const tgi_mask_box *b, box *out, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    const int64_t high = h->box_height ? h->box_height : h->height,
                  wide = h->box_width ? h->box_width : h->width;
    char text[TGI_MASK_BOX_TEXT];
    TGI_TRY(tgi_mask_box_check(b, err));
    *out = (box){.x0 = tgi_max(b->x, 0),
                 .x1 = tgi_min(b->x + b->width, wide),
                 .y0 = tgi_max(b->y, 0),
                 .y1 = tgi_min(b->y + b->height, high),
                 .from = b->from - h->first,
                 .until = tgi_min(b->until, h->whole) - h->first};
    if (out->x0 >= out->x1 || out->y0 >= out->y1)
        return tgi_fail(err, TG_E_ARG, "%s lies outside of the frames, which are %lld x %lld",
                        tgi_mask_box_text(b, text), (long long)wide, (long long)high);
    if (b->from >= h->whole)
        return tgi_fail(err, TG_E_ARG, "%s: the film has frames 0 to %lld",
                        tgi_mask_box_text(b, text), (long long)h->whole - 1);
    const int is_read = out->from < h->frames && out->until > 0 && out->from < out->until;
    const int cut = out->x1 - out->x0 != b->width || out->y1 - out->y0 != b->height;
    if (m->n_notes == MOST_BOX_NOTES && (cut || !is_read))
        add_note(m, "there are more boxes that are not as the frames are");
    if (m->n_notes < MOST_BOX_NOTES && !is_read)
        add_note(m, "%s: none of its frames is read", tgi_mask_box_text(b, text));
    if (m->n_notes < MOST_BOX_NOTES && cut)
        add_note(m, "%s: what lies outside of the frames, which are %lld x %lld, is left out",
                 tgi_mask_box_text(b, text), (long long)wide, (long long)high);
    scale_side(wide, h->width, &out->x0, &out->x1);
    scale_side(high, h->height, &out->y0, &out->y1);
    return TG_OK;
}

static tg_status take_boxes(tgi_masks *m, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    if (h->n_boxes < 1)
        return TG_OK;
    m->boxes = tgi_calloc(TGI_TAG_IO, (size_t)h->n_boxes, sizeof *m->boxes);
    if (!m->boxes)
        return tgi_fail(err, TG_E_NOMEM, "no memory for %d boxes", h->n_boxes);
    for (int i = 0; i < h->n_boxes; i++)
        TGI_TRY(take_box(m, &h->box[i], &m->boxes[i], err));
    return TG_OK;
}

static int box_acts(const box *b, int64_t from, int64_t until)
{
    return b->from < until && b->until > from;
}

/* 1: some box is there in a frame that is read. */
static int boxes_act(const tgi_masks *m)
{
    int n = 0;
    for (int i = 0; i < m->how.n_boxes; i++)
        n |= box_acts(&m->boxes[i], 0, m->how.frames);
    return n;
}

/* 1: each box is there in all frames. */
static int boxes_are_still(const tgi_masks *m)
{
    int still = 1;
    for (int i = 0; i < m->how.n_boxes; i++) {
        const box *b = &m->boxes[i];
        still &= b->from <= known_from(m) && b->until >= known_until(m);
    }
    return still;
}

static void put_boxes(const tgi_masks *m, int64_t k, uint8_t *mask)
{
    for (int i = 0; i < m->how.n_boxes; i++) {
        const box *b = &m->boxes[i];
        for (int64_t y = b->y0; box_acts(b, k, k + 1) && y < b->y1; y++)
            memset(mask + y * m->how.width + b->x0, 1, (size_t)(b->x1 - b->x0));
    }
}

/* ---- A mask of the file ------------------------------------------------------------------ */

static void look_at_row(const tgi_masks *m, seen *s)
{
    const size_t each = (size_t)m->info->samples;
    for (int64_t x = 0; x < m->info->width; x++)
        s->n[m->line[x]]++;
    if (!m->info->meta.alpha || each > sizeof s->first)
        return;
    if (!s->has_first)
        memcpy(s->first, m->samples, each);
    s->has_first = 1;
    const uint8_t *p = m->samples;
    for (int64_t x = 0; x < m->info->width; x++, p += each) {
        s->colours_vary |= memcmp(p, s->first, each - 1) != 0;
        s->alpha_varies |= p[each - 1] != s->first[each - 1];
    }
}

/* Row y of the mask as numbers in `line`; rows are asked for from the top down. */
static tg_status take_row(tgi_masks *m, int64_t of, int64_t y, seen *s, tgi_err *err)
{
    const tgi_image_info *i = m->info;
    const size_t samples = (size_t)i->width * (size_t)i->samples,
                 row = samples * tgi_dtype_size(i->dtype);
    if (y == m->line_at)
        return TG_OK;
    if (y >= m->band_end) {
        m->band_at = y;
        m->band_end = tgi_min(y + m->band_rows, i->height);
        TGI_TRY(tgi_source_read(m->source, 0, of, 0, i->samples, m->band_at, m->band_end, 0,
                                i->width, m->band, row, TGI_INTERLEAVED, err));
    }
    tgi_mask_numbers(i, (const char *)m->band + (size_t)(y - m->band_at) * row, samples,
                     m->samples);
    tgi_mask_pixels(i, m->use_alpha, m->samples, i->width, m->line);
    if (s)
        look_at_row(m, s);
    m->line_at = y;
    return TG_OK;
}

/* Places are added up, not computed: Pillow's way, which is another one where a place lies between two pixels. */
static void take_columns(tgi_masks *m)
{
    const double step = (double)m->info->width / (double)m->how.width;
    double at = 0.5 * step;
    for (int64_t x = 0; x < m->how.width; x++) {
        m->column[x] = tgi_min((int64_t)at, m->info->width - 1);
        at += step;
    }
}

/* Mask `of` to `own`. */
static tg_status take_mask(tgi_masks *m, int64_t of, seen *s, tgi_err *err)
{
    const int64_t w = m->how.width;
    const double step = (double)m->info->height / (double)m->how.height;
    double at = 0.5 * step;
    m->own_of = m->line_at = -1;
    m->band_end = 0;
    for (int64_t y = 0; y < m->how.height; y++) {
        uint8_t *to = m->own + y * w;
        TGI_TRY(take_row(m, of, tgi_min((int64_t)at, m->info->height - 1), s, err));
        for (int64_t x = 0; x < w; x++)
            to[x] = (uint8_t)((m->line[m->column[x]] > m->limit) ^ m->how.invert);
        at += step;
    }
    m->own_of = of;
    return TG_OK;
}

static int64_t mask_of(const tgi_masks *m, int64_t k)
{
    return tgi_clamp(m->skip + k, 0, m->count - 1);
}

static size_t pixels_of(const tgi_masks *m)
{
    return (size_t)m->how.height * (size_t)m->how.width;
}

tg_status tgi_masks_read(tgi_masks *m, int64_t k, uint8_t *mask, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    if (k < known_from(m) || k >= known_until(m))
        return tgi_fail(err, TG_E_ARG, "the mask of frame %lld of %lld", (long long)k,
                        (long long)h->frames);
    if (!m->is_still && m->source && m->own_of != mask_of(m, k))
        TGI_TRY(take_mask(m, mask_of(m, k), NULL, err));
    if (m->is_still || m->source)
        memcpy(mask, m->own, pixels_of(m));
    else
        memset(mask, 0, pixels_of(m));
    if (m->is_still)
        return TG_OK;
    put_boxes(m, k, mask);
    if (h->dilation > 0)
        tgi_mask_grow(mask, h->height, h->width, h->dilation);
    return TG_OK;
}

/* ---- Open -------------------------------------------------------------------------------- */

/* What libav decodes to just what was encoded. */
static int is_lossless(const char *codec)
{
    static const char all[] =
        "|ffv1|rawvideo|png|apng|gif|huffyuv|ffvhuff|utvideo|magicyuv|"
        "lagarith|qtrle|rle|msrle|msvideo1|zmbv|flashsv|tscc|cscd|bmp|tiff|"
        "targa|dpx|r210|r10k|v210|v308|v408|v410|ayuv|yuv4|y41p|jpegls|"
        "ljpeg|alias_pix|sgi|sunrast|ppm|pgm|pbm|pam|fraps|";
    char word[64];
    snprintf(word, sizeof word, "|%s|", codec);
    return strstr(all, word) != NULL;
}

static void choose_limit(tgi_masks *m)
{
    const tgi_av_info *film = tgi_film_source_info(m->source);
    m->limit = m->how.threshold < 0 ? 0 : m->how.threshold;
    if (!film || m->how.threshold >= 0 || is_lossless(film->codec))
        return;
    m->limit = LOSSY_LIMIT;
    add_note(m,
             "%.200s: what %s encodes is grey around its edges: numbers above %d of 255 are "
             "masked; --mask-threshold N sets another limit",
             m->how.path, film->codec, LOSSY_LIMIT);
}

static void note_counts(tgi_masks *m)
{
    const tgi_masks_how *h = &m->how;
    char whole[64] = "", rest[80];
    const int64_t n = m->count;
    if (n == 1 || n == h->frames || n == h->whole || h->frames == TGI_MASKS_NO_END)
        return;
    if (h->whole != h->frames)
        snprintf(whole, sizeof whole, " (the whole film has %lld)", (long long)h->whole);
    if (n < h->frames)
        snprintf(rest, sizeof rest, "the last one is held for the rest");
    else
        snprintf(rest, sizeof rest, "those behind mask %lld are not looked at",
                 (long long)h->frames - 1);
    add_note(m, "%.200s: %lld masks for %lld frame%s%s: %s", h->path, (long long)n,
             (long long)h->frames, h->frames == 1 ? "" : "s", whole, rest);
}

static void note_size(tgi_masks *m)
{
    const tgi_masks_how *h = &m->how;
    const int64_t w = m->info->width, t = m->info->height;
    char shape[96] = "";
    if (w == h->width && t == h->height)
        return;
    const double ratio = (double)w * (double)h->height / ((double)t * (double)h->width);
    const double off = ratio > 1 ? ratio - 1 : 1 / ratio - 1;
    if (off > 0.01)
        snprintf(shape, sizeof shape,
                 "; their shapes differ by %.*f %%, so masks are stretched", off < 0.1 ? 1 : 0,
                 100 * off);
    add_note(m,
             "%.200s: masks of %lld x %lld for frames of %lld x %lld: resized to the nearest "
             "pixel%s",
             h->path, (long long)w, (long long)t, (long long)h->width, (long long)h->height,
             shape);
}

static tg_status check_form(const tgi_masks *m, tgi_err *err)
{
    const tgi_image_info *i = m->info;
    const char *c = strchr(i->axes, 'C');
    if (c && i->shape[c - i->axes] > 1)
        return tgi_fail(
            err, TG_E_UNSUPPORTED,
            "%s: %lld channels in planes of their own (axes %s): a mask is grey, RGB or "
            "a palette",
            m->how.path, (long long)i->shape[c - i->axes], i->axes);
    if (i->meta.stored_as < TGI_STORED_CMYK)
        return TG_OK;
    return tgi_fail(err, TG_E_UNSUPPORTED,
                    "%s: its colours are %s: a mask is grey, RGB or a palette", m->how.path,
                    tgi_stored_name(i->meta.stored_as));
}

static tg_status make_room(tgi_masks *m, tgi_err *err)
{
    const tgi_image_info *i = m->info;
    const size_t samples = tgi_sat_mul((size_t)i->width, (size_t)i->samples),
                 row = tgi_sat_mul(samples, tgi_dtype_size(i->dtype));
    m->band_rows = tgi_clamp((int64_t)(BAND_BYTES / row), 1, i->height);
    m->band = tgi_malloc(TGI_TAG_IO, tgi_sat_mul(row, (size_t)m->band_rows));
    m->samples = tgi_malloc(TGI_TAG_IO, samples);
    m->line = tgi_malloc(TGI_TAG_IO, (size_t)i->width);
    m->column = tgi_malloc(TGI_TAG_IO, (size_t)m->how.width * sizeof *m->column);
    return m->band && m->samples && m->line && m->column
               ? TG_OK
               : tgi_fail(err, TG_E_NOMEM, "%s: no memory for a mask of %lld x %lld",
                          m->how.path, (long long)i->width, (long long)i->height);
}

static size_t text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* What is held of a file beside its decoder: its name and what is said of it. Of a set it is held of the whole and of each
 * open file, which are two. */
static size_t bytes_beside(const tgi_masks *m)
{
    const tgi_image_meta *a = &m->info->meta;
    size_t name = text_bytes(m->how.path);
    size_t n = a->icc_bytes + 3 * (size_t)a->n_palette * sizeof *a->palette +
               (size_t)a->n_luts * 768 + (size_t)a->n_ranges * 2 * sizeof *a->range;
    n += text_bytes(a->description) + text_bytes(a->title) + text_bytes(a->acquired) +
         text_bytes(a->about) + text_bytes(a->software) + text_bytes(a->info);
    for (int64_t i = 0; a->label && i < a->n_labels; i++)
        n += sizeof *a->label + text_bytes(a->label[i]);
    for (int i = 0; i < a->n_channels; i++)
        n += sizeof *a->channel_name + sizeof *a->channel_color +
             text_bytes(a->channel_name ? a->channel_name[i] : NULL);
    if (!m->source->ops->file)
        return name + n;
    for (int64_t i = 0; m->source->ops->file(m->source, i); i++)
        name = (size_t)tgi_max((int64_t)name,
                               (int64_t)text_bytes(m->source->ops->file(m->source, i)));
    return 3 * (name + n);
}

static tg_status open_file(tgi_masks *m, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    const tgi_open_opts o = {.threads = 1,
                             .but = h->open.but,
                             .decode_budget = h->open.decode_budget,
                             .decoders = h->open.decoders,
                             .budget = h->open.budget,
                             .spare = h->open.spare,
                             .cancelled = h->open.cancelled,
                             .truncated = h->open.truncated,
                             .surplus = h->open.surplus};
    TGI_TRY(tgi_source_open(h->path, &o, &m->source, err));
    m->info = m->source->ops->info(m->source);
    m->count = m->info->n_planes;
    m->skip = h->first > 0 && m->count == h->whole ? h->first : 0;
    TGI_TRY(check_form(m, err));
    TGI_TRY(make_room(m, err));
    m->beside = bytes_beside(m);
    take_columns(m);
    note_size(m);
    note_counts(m);
    if (m->info->n_files > 1 && m->info->note[0])
        add_note(m, "%.200s: %s", h->path, m->info->note);
    if (m->info->meta.orientation > 1)
        add_note(m,
                 "%.200s: it says that it is turned for viewing, and is taken as it is stored",
                 h->path);
    choose_limit(m);
    return TG_OK;
}

/* ---- The first masks --------------------------------------------------------------------- */

static void note_greys(tgi_masks *m, int64_t of, const seen *s)
{
    int greys = 0;
    int64_t all = 0, above = 0;
    char which[48] = "";
    for (int v = 0; v < GREYS; v++) {
        greys += s->n[v] > 0;
        all += s->n[v];
        above += v > m->limit ? s->n[v] : 0;
    }
    if (greys <= 2 || (m->how.threshold < 0 && m->limit == LOSSY_LIMIT)) /* that has its note */
        return;
    if (m->count > 1)
        snprintf(which, sizeof which, " in mask %lld", (long long)of);
    add_note(m,
             "%.200s: %d different numbers%s: those above %d are %s, %.3g %% of its pixels; "
             "--mask-threshold N sets another limit, of 255",
             m->how.path, greys, which, m->limit, m->how.invert ? "kept" : "masked",
             100 * (double)above / (double)all);
}

static int is_empty(const seen *s)
{
    int64_t n = 0;
    for (int v = 1; v < GREYS; v++)
        n += s->n[v];
    return n == 0;
}

/* What is drawn in alpha alone has one colour everywhere. 0: this mask does not show which. */
static int tells_alpha(const seen *s)
{
    return s->colours_vary || s->alpha_varies;
}

static int has_some(const uint8_t *mask, size_t n)
{
    return memchr(mask, 1, n) != NULL;
}

/* From the first mask on until one has anything, and what that is is known. */
static tg_status look_at_masks(tgi_masks *m, int *removes, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    const size_t n = pixels_of(m);
    int asks_alpha = m->info->meta.alpha && m->info->samples <= 4, empty = 1;
    for (int64_t i = mask_of(m, 0); i <= mask_of(m, h->frames - 1); i++) {
        seen s = {.has_first = 0};
        if (!asks_alpha && !empty && *removes)
            break;
        if (h->open.cancelled && h->open.cancelled())
            return tgi_fail(err, TG_E_CANCELLED, "stopped while masks were looked at");
        TGI_TRY(take_mask(m, i, &s, err));
        if (asks_alpha && tells_alpha(&s)) {
            asks_alpha = 0;
            m->use_alpha = !s.colours_vary;
            if (m->use_alpha) {
                add_note(m, "%.200s: its colours are all the same: alpha is the mask", h->path);
                s = (seen){.has_first = 0};
                *removes = boxes_act(m);
                TGI_TRY(take_mask(m, i, &s, err));
            }
        }
        if (empty && !asks_alpha && !is_empty(&s)) {
            empty = 0;
            note_greys(m, i, &s);
        }
        *removes |= has_some(m->own, n);
    }
    if (empty && !asks_alpha && !h->invert && *removes)
        add_note(m, "%.200s: nothing is masked in it, boxes alone are", h->path);
    return TG_OK;
}

static tg_status nothing(const tgi_masks *m, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    if (!h->path)
        return tgi_fail(err, TG_E_ARG, "nothing is masked: %s",
                        h->n_boxes > 0 ? "no box is there in the frames that are read"
                                       : "give masks or boxes");
    if (h->invert)
        return tgi_fail(err, TG_E_ARG,
                        "%s: nothing is masked: all of it is above %d, and --mask-invert keeps "
                        "that",
                        h->path, m->limit);
    return tgi_fail(err, TG_E_ARG, "%s: nothing is masked: no number in %s is above %d%s",
                    h->path, m->count > 1 ? "any of its masks" : "it", m->limit,
                    m->limit ? ": --mask-threshold N sets another limit" : "");
}

static tg_status nothing_left(const tgi_masks *m, int before_it_grew, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    const char *try =
        !before_it_grew ? ": a smaller --mask-dilation leaves some"
        : !h->path      ? ""
        : h->invert     ? ": it may be meant without --mask-invert"
                    : ": --mask-threshold 127 takes what is above half, --mask-invert keeps "
                      "what the mask shows";
    return tgi_fail(err, TG_E_ARG,
                    "%s%severy pixel is masked, so nothing is left to fill it from%s",
                    h->path ? h->path : "", h->path ? ": " : "", try);
}

/* A still mask is finished at once, and it leaves something and takes something. */
static tg_status make_still(tgi_masks *m, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    const size_t n = pixels_of(m);
    if (m->source && m->own_of != mask_of(m, 0))
        TGI_TRY(take_mask(m, mask_of(m, 0), NULL, err));
    if (!m->source)
        memset(m->own, 0, n);
    put_boxes(m, 0, m->own);
    if (!has_some(m->own, n))
        return nothing(m, err);
    if (!memchr(m->own, 0, n))
        return nothing_left(m, 1, err);
    if (h->dilation > 0)
        tgi_mask_grow(m->own, h->height, h->width, h->dilation);
    return memchr(m->own, 0, n) ? TG_OK : nothing_left(m, 0, err);
}

static tg_status open_parts(tgi_masks *m, tgi_err *err)
{
    const tgi_masks_how *h = &m->how;
    int64_t pixels;
    if (h->frames < 1 || h->height < 1 || h->width < 1 || h->first < 0 ||
        !tgi_mul64_ok(h->height, h->width, &pixels))
        return tgi_fail(err, TG_E_ARG, "masks for %lld frames of %lld x %lld",
                        (long long)h->frames, (long long)h->width, (long long)h->height);
    m->own = tgi_malloc(TGI_TAG_IO, (size_t)pixels);
    if (!m->own)
        return tgi_fail(err, TG_E_NOMEM, "no memory for a mask of %lld x %lld",
                        (long long)h->width, (long long)h->height);
    TGI_TRY(take_boxes(m, err));
    int removes = boxes_act(m);
    if (h->path) {
        TGI_TRY(open_file(m, err));
        TGI_TRY(look_at_masks(m, &removes, err));
    }
    m->is_still = boxes_are_still(m) &&
                  (!m->source || mask_of(m, known_from(m)) == mask_of(m, known_until(m) - 1));
    if (!removes)
        return nothing(m, err);
    return m->is_still ? make_still(m, err) : TG_OK;
}

tg_status tgi_masks_open(const tgi_masks_how *how, tgi_masks **out, tgi_err *err)
{
    tgi_masks *m = tgi_calloc(TGI_TAG_IO, 1, sizeof *m);
    *out = NULL;
    if (!m)
        return tgi_fail(err, TG_E_NOMEM, "no memory for masks");
    m->how = *how;
    m->how.invert = how->invert != 0;
    m->how.whole = tgi_max(how->whole, how->first + how->frames);
    m->own_of = -1;
    const tg_status st = open_parts(m, err);
    m->how.path = NULL;
    m->how.box = NULL;
    if (st == TG_OK)
        *out = m;
    else
        tgi_masks_close(&m);
    return st;
}

/* ---- The rest ---------------------------------------------------------------------------- */

const char *tgi_masks_note(const tgi_masks *m, int i)
{
    return i >= 0 && i < m->n_notes ? m->note[i] : NULL;
}

size_t tgi_masks_bytes(const tgi_masks *m)
{
    const size_t boxes = (size_t)tgi_max(m->how.n_boxes, 0) * sizeof *m->boxes;
    size_t n = tgi_sat_add(sizeof *m + boxes, pixels_of(m));
    if (!m->source)
        return n;
    const size_t width = (size_t)m->info->width, samples = width * (size_t)m->info->samples;
    n = tgi_sat_add(n, samples * tgi_dtype_size(m->info->dtype) * (size_t)m->band_rows);
    n = tgi_sat_add(n, m->beside + samples + width + (size_t)m->how.width * sizeof *m->column);
    return tgi_sat_add(n, m->source->ops->codec_bytes(m->source));
}

int tgi_masks_held(const void *of, int64_t i, tgi_held *out)
{
    const tgi_masks *m = of;
    *out = (tgi_held){.fd = -1};
    return m->source && tgi_source_held(m->source, i, out);
}

int tgi_masks_is_still(const tgi_masks *m)
{
    return m->is_still;
}

void tgi_masks_close(tgi_masks **out)
{
    tgi_masks *m = *out;
    if (!m)
        return;
    tgi_source_close(&m->source);
    tgi_free(m->boxes);
    tgi_free(m->own);
    tgi_free(m->band);
    tgi_free(m->samples);
    tgi_free(m->line);
    tgi_free(m->column);
    tgi_free(m);
    *out = NULL;
}

int tgi_masks_is_whole(const tgi_masks *m)
{
    return !m->source || m->count == 1 || m->count == m->how.whole;
}
